"""A sandbox for unread code: every exercise of every submission has a process of its own, which never holds a right
result and leaves nothing behind.

The grader's side: `session` tries a submission on the exercises through a `keeper`, which starts Python in
`bubblewrap`, and talks to it as `process` says; `package` cuts out the code that is given to it, and `calls` lists the
system calls that it may use.
Inside: `worker` forks for every exercise and calls the answer, `given` offers the modules, `limits` leaves the
namespaces of the process that forks and bounds time and memory. Results come back as messages in the form of `wire`,
which are untrusted bytes until `judges` has read them.
"""
