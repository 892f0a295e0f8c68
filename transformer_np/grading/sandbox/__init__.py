"""A sandbox for unread code: each exercise of a submission runs in its own process, which never holds a right result.

The parent, `session`, sends the inputs of one exercise through a `keeper`, a process that forks one isolated process
after the other. There, `worker` isolates itself (`isolation`, `limits`), removes the library's answers from its memory
(`answers`), loads the submission, reads its source for imports (`scan`), calls it and sends the results back (`wire`).
The parent treats them as untrusted bytes and hands them to `judges`.
"""
