"""Judging in a process of its own: the results of a submission are hostile data, and a verdict beyond the limits ends.

The limits are processor time and memory of one verdict, not a clock: they do not depend on the machine's other work.
"""

import hashlib
import json
import os
import pickle
import signal
import socket
import sys
from dataclasses import asdict, replace

import numpy as np

from ..homework.answers import Survey, survey
from ..homework.judging.attempt import RULES, Attempt, changed
from ..homework.judging.finding import findings
from ..homework.judging.judge import Verdict, judge
from ..homework.judging.syntax import function_in, order_of
from ..homework.judging.trials import Trials
from ..homework.parts import ROOT
from ..homework.path import all_exercises, own_folder, use_exercises
from ..support.processes import THREADS
from .copies import answers_in
from .sandbox.bubblewrap import OPTIONS, packages
from .sandbox.limits import limit
from .sandbox.process import Process, received
from .sandbox.wire import CHANGEABLE, unpack

SECONDS = 120  # processor time of a verdict
OF_TREES = 10  # processor time of the syntax trees of a submission
MEMORY = 4 << 30  # bytes of address space


class NotJudged(Exception):
    """The results of a submission could not be judged within the limits."""


class Judge:
    """Verdicts on the results of submissions, one after the other."""

    def __init__(self, stopped=lambda: False):
        self.stopped, self._process, self._known = stopped, None, set()

    def verdict(self, task, replies, source=b""):
        """The Verdict on the replies of a submission, given the file with its answer. Raises NotJudged, or Stopped when
        the grading ends."""
        one = task.name, task.trials.seed
        inputs = None if one in self._known else task.inputs
        said = self._told("verdict", *one, inputs, replies, source)
        self._known.add(one)
        return Verdict(**said)

    def survey(self, files):
        """The Survey of files: their syntax trees may be as hostile as their results. Raises NotJudged."""
        return Survey(**self._told("survey", files))

    def answers(self, sources, names):
        """{name: [text, runs]} of the Answers in the code of files, {name: bytes}. Raises NotJudged."""
        return self._told("answers", sources, names)

    def _told(self, *asked):
        try:
            if self._process is None:
                self._start()
            self._process.send(asked)
            said = json.loads(self._process.read(int.from_bytes(self._process.read(8))))
        except (OSError, EOFError):
            self.close()
            raise NotJudged("it takes too much time or memory") from None
        except BaseException:
            self.close()
            raise
        if "error" in said:
            raise NotJudged(said["error"])
        return said

    def _start(self):
        paths = list(dict.fromkeys([*map(os.path.abspath, sys.path), str(ROOT), packages()]))
        command = [sys.executable, *OPTIONS, "-c", _CHILD, repr(paths), str(own_folder() or "")]
        self._process = Process(command, {**os.environ, **dict.fromkeys(THREADS, "1")}, self.stopped)

    def close(self):
        if self._process is not None:
            self._process.close()
        self._process, self._known = None, set()


def attempt_of(exercise, case, reply):
    """The reply of a submission's process on a case, as the Attempt that `check` would have made."""
    if reply.crash is not None:
        return Attempt(crash=reply.crash)
    message, given = unpack(*reply.content), (*case.arguments, *case.options.values())
    back = iter(message["after"])
    after = [next(back) if type(value) in CHANGEABLE else None for value in given]
    broken = tuple(rule for rule in RULES if rule in message["broken"])
    shares = message["shares"] if isinstance(message["shares"], bool) else None
    return Attempt(message["output"], None, changed(exercise, case, after), broken, shares)


# --- inside ----------------------------------------------------------------------------------------------------------

_CHILD = """
import ast, sys
sys.path[:] = ast.literal_eval(sys.argv[1])
from transformer_np.grading.judges import main
main()
"""


def main():
    """Answer what the grader asks, until it is gone."""
    limit("RLIMIT_AS", MEMORY)
    limit("RLIMIT_CORE", 0)
    _, _, folder, number = sys.argv
    use_exercises(folder or None)
    end, judging = socket.socket(fileno=int(number)), _Judging()
    while True:
        try:
            what, *asked = received(end)
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, SECONDS if what == "verdict" else OF_TREES)  # then the system ends this
        try:
            said = getattr(judging, what)(*asked)
        except Exception as error:  # a strange result must not end the run
            said = {"error": type(error).__name__}
        content = json.dumps(said).encode()
        end.sendall(len(content).to_bytes(8) + content)


class _Judging:
    """What a Judge asks for, as values for JSON."""

    def __init__(self):
        self._trials, self._verdicts = {}, {}

    def survey(self, files):
        return asdict(survey(files))

    def answers(self, sources, names):
        return {name: [one.text, one.runs] for name, one in answers_in(sources, names).items()}

    def verdict(self, name, seed, inputs, replies, source):
        trials = self._trials.get((name, seed)) or self._drawn(name, seed, inputs)
        key = name, seed, hashlib.sha256(pickle.dumps([replies, source])).digest()
        if key not in self._verdicts:  # it depends on nothing but these bytes
            with np.errstate(all="ignore"):
                pairs = zip(trials.cases, replies, strict=True)
                attempts = [attempt_of(trials.exercise, case, reply) for case, reply in pairs]
                found = findings(trials, attempts)
                is_right = all(finding.right for finding in found)
                order = () if is_right else order_of(trials.exercise, function_in(source, name))
                self._verdicts[key] = asdict(judge(trials, found, order=order))
        return self._verdicts[key]

    def _drawn(self, name, seed, inputs):
        """The trials with the inputs that the submission got, to the last digit."""
        trials = self._trials[name, seed] = Trials(all_exercises()[name], seed)
        trials.cases = [
            replace(case, arguments=arguments, options=options)
            for case, (arguments, options) in zip(trials.cases, pickle.loads(inputs), strict=True)
        ]
        return trials
