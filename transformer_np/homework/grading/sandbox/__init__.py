"""A sandbox for unread code: each submission runs in its own process, which never holds a right result.

The parent, `session`, draws the inputs and judges. The child, `worker`, isolates itself (`isolation`, `limits`),
removes the library's answers from its memory (`answers`), loads the submission, calls it and sends the results back
(`wire`). The parent treats them as untrusted bytes.
"""
