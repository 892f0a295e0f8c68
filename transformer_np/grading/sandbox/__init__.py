"""A sandbox for unread code: every submission has processes of its own, which never hold a right result.

The grader's side: `session` tries a submission on the exercises through a `keeper`, which starts bubblewrap; `package`
cuts out the code that is given to it. Inside: `worker` forks for every exercise and calls the answer, `given` offers
the modules, `limits` bounds time, memory and system calls. Results come back as messages in the form of `wire`, which
are untrusted bytes until `judges` has read them.
"""
