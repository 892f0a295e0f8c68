"""Judging in a process of its own: the results of a submission are hostile data, and a verdict beyond the limits ends.

The limits are processor time and memory of one verdict, not a clock: they do not depend on the machine's other work.
"""

import hashlib
import json
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
from dataclasses import asdict, replace

from ..homework.answers import Survey, survey
from ..homework.judging.attempt import RULES, Attempt, changed
from ..homework.judging.judge import Verdict
from ..homework.path import own_folder
from ..support.processes import THREADS, interrupts_blocked
from .copies import answers_from, answers_in, as_texts
from .sandbox.bubblewrap import OPTIONS, packages
from .sandbox.keeper import Stopped
from .sandbox.package import ROOT
from .sandbox.wire import CHANGEABLE, unpack

SECONDS = 120  # processor time of a verdict
OF_TREES = 10  # processor time of the syntax trees of a submission
MEMORY = 4 << 30  # bytes of address space
_LENGTH = struct.Struct("<Q")


class NotJudged(Exception):
    """The results of a submission could not be judged within the limits."""


class Judge:
    """Verdicts on the results of submissions, one after the other."""

    def __init__(self, stopped=lambda: False):
        self.stopped, self.process = stopped, None

    def verdict(self, task, replies, source=b""):
        """The Verdict on the replies of a submission, given the file with its answer. Raises NotJudged, or Stopped when
        the grading ends."""
        if self.process is None:
            self._start()  # which empties `known`
        sent = {"name": task.name, "seed": task.trials.seed, "replies": replies, "source": source}
        if (task.name, task.trials.seed) not in self.known:
            sent["inputs"] = task.inputs
            self.known.add((task.name, task.trials.seed))
        return Verdict(**self._told(sent))

    def survey(self, files):
        """The Survey of files: their syntax trees may be as hostile as their results. Raises NotJudged."""
        return Survey(**self._told({"survey": files}))

    def answers(self, sources, names):
        """{name of an exercise: its Answer} in the code of files, {name: bytes}. Raises NotJudged."""
        return answers_from(self._told({"files": sources, "names": names}))

    def _told(self, sent):
        if self.process is None:
            self._start()
        content = pickle.dumps(sent)
        try:
            self._write(_LENGTH.pack(len(content)) + content)
            said = json.loads(self._read(*_LENGTH.unpack(self._read(_LENGTH.size))))
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
        with interrupts_blocked():
            self.process = subprocess.Popen(
                [sys.executable, *OPTIONS, "-c", _CHILD, repr(paths), str(own_folder() or "")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
                env={**os.environ, **dict.fromkeys(THREADS, "1")}, start_new_session=True,
            )  # fmt: skip
        self.known = set()
        os.set_blocking(self.process.stdin.fileno(), False)

    def _write(self, content):
        left = memoryview(content)
        while left:
            if self.stopped():
                raise Stopped
            if select.select([], [self.process.stdin], [], 0.2)[1]:
                left = left[os.write(self.process.stdin.fileno(), left[: 1 << 16]) :]

    def _read(self, size):
        content = bytearray()
        while len(content) < size:
            if self.stopped():
                raise Stopped
            if select.select([self.process.stdout], [], [], 0.2)[0]:
                part = os.read(self.process.stdout.fileno(), size - len(content))
                if not part:
                    raise EOFError
                content += part
        return bytes(content)

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


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


# --- the process -----------------------------------------------------------------------------------------------------

_CHILD = """
import sys
sys.path[:] = eval(sys.argv[1])
from transformer_np.grading.judges import main
main()
"""


def main():
    import numpy as np

    from ..homework.judging.judge import judge
    from ..homework.judging.trials import Trials
    from ..homework.judging.unread import function_in, without_unread
    from ..homework.path import all_exercises, use_exercises
    from ..homework.private import for_students
    from .sandbox.limits import limit

    limit("RLIMIT_AS", MEMORY)
    limit("RLIMIT_CORE", 0)
    use_exercises(sys.argv[2] or None)
    answers, sys.stdout = os.dup(1), sys.stderr
    requests, known, seen = sys.stdin.buffer, {}, {}

    def verdict(sent):
        one = sent["name"], sent["seed"]
        if one not in known:
            trials = known[one] = Trials(all_exercises()[sent["name"]], sent["seed"])
            inputs = pickle.loads(sent["inputs"])  # to the last digit those that the submission got
            trials.cases = [
                replace(case, arguments=arguments, options=options)
                for case, (arguments, options) in zip(trials.cases, inputs, strict=True)
            ]
        trials = known[one]
        key = *one, hashlib.sha256(pickle.dumps([sent["replies"], sent["source"]])).digest()
        if key not in seen:  # the verdict depends on nothing but these bytes
            pairs = zip(trials.cases, sent["replies"], strict=True)
            with np.errstate(all="ignore"):
                attempts = [attempt_of(trials.exercise, case, reply) for case, reply in pairs]
                read = without_unread(trials, attempts, function_in(sent["source"], sent["name"]))
                seen[key] = asdict(for_students(judge(*read), trials.exercise))
        return seen[key]

    while length := requests.read(_LENGTH.size):
        sent = pickle.loads(requests.read(*_LENGTH.unpack(length)))
        if hasattr(signal, "setitimer"):
            seconds = SECONDS if "name" in sent else OF_TREES
            signal.setitimer(signal.ITIMER_PROF, seconds)  # then the system ends this process
        try:
            if "survey" in sent:
                said = asdict(survey(sent["survey"]))
            else:
                said = as_texts(answers_in(sent["files"], sent["names"])) if "files" in sent else verdict(sent)
        except Exception as error:  # a strange result must not end the run
            said = {"error": type(error).__name__}
        content = json.dumps(said).encode()
        content = _LENGTH.pack(len(content)) + content
        while content:
            content = content[os.write(answers, content) :]
