"""Running code that nobody has read: a process of its own for each submission, which never holds a right result.

The parent, `session`, draws the inputs and judges. The child, `worker`, shuts itself in (`isolation`, `limits`), takes
the library's answers out of its own memory (`answers`), loads the submission, calls it and sends back what it returned
(`wire`). What comes back is taken for what it is: bytes from a stranger.
"""
