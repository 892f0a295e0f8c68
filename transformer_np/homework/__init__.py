"""The tests as homework: a student writes the library's functions anew, and a check says what is wrong with them.

    from transformer_np.homework import check
    check("softmax_backward", my_softmax_backward)

`using(answers)` has the library compute with what the student wrote. On the command line: `transformer-np homework`.
"""

from .checking import check
from .judging.judge import Verdict
from .path import all_exercises, find
from .submission import check_all, load
from .swap import using

__all__ = ["Verdict", "all_exercises", "check", "check_all", "find", "load", "using"]
