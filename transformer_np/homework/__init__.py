"""Homework: students reimplement the library's functions and get feedback on their mistakes.

    from transformer_np.homework import check
    check("softmax_backward", my_softmax_backward)

In a folder made by `transformer-np start` every check is recorded, and `progress()` draws the record. Inside
`using(answers)` the library computes with the student's functions. The command is `transformer-np homework`.
"""

from .checking import check
from .judging.judge import Verdict
from .path import all_exercises, find
from .record import progress
from .submission import check_all, load
from .swap import using

__all__ = ["Verdict", "all_exercises", "check", "check_all", "find", "load", "progress", "using"]
