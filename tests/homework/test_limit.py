"""A check ends: answers that loop, sleep, catch everything, or raise what cannot be shown."""

import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from shared import IMPATIENT, python

from transformer_np.homework import check, load
from transformer_np.homework.checking import verdict_on
from transformer_np.homework.exercise import Case, Exercise, Result
from transformer_np.homework.limit import Interrupted, Stopped, TimeLimit
from transformer_np.homework.submission import Checks, LoadError

LOOPS = """
def relu(x):
    n = 0
    while True:
        n += 1
"""
CATCHES = """
def relu(x):
    while True:
        try:
            relu_of(x)
        except:
            pass


def relu_of(x):
    return x
"""
RETURNS = """
def relu(x):
    try:
        while True:
            x = x + 0
    except:
        return x * (x > 0)
"""


def loaded(folder, text):
    file = folder / "homework.py"
    file.write_text(text, encoding="utf-8")
    return load(file)


@pytest.mark.long
@pytest.mark.parametrize("text", [LOOPS, CATCHES, RETURNS, "def relu(x):\n    import time\n    time.sleep(1000)\n"])
def test_an_answer_that_does_not_end(tmp_path, text):
    verdict = check("relu", loaded(tmp_path, text).answers["relu"], quiet=True, time_limit=0.2)
    assert (verdict.outcome, verdict.misconception) == ("crashed", "takes too long")
    assert verdict.message.startswith("relu: crashed. It took longer than 0.2 s. This line was running:\n  File ")
    assert "homework.py" in verdict.message and "transformer_np" not in verdict.message


@pytest.mark.long
def test_the_case_in_which_an_answer_was_stopped(tmp_path):
    waits = loaded(tmp_path, "def relu(x):\n    while (x == 0).any(): pass\n    return x * (x > 0)\n").answers["relu"]
    said = check("relu", waits, quiet=True, time_limit=0.5).message
    assert "longer than 0.5 s. It was stopped with some x exactly 0. This line was running" in said


def test_an_exercise_that_does_not_end_without_an_argument_that_nothing_reads(tmp_path):
    def every(x, period=0):
        taken, i = [], 0
        while i < len(x):
            taken.append(x[i])
            i += period
        return np.array(taken)

    exercise = Exercise(
        every, (Result("y"),), lambda rng: [Case("", (rng.normal(size=6),), {"period": 2})], "",
        every, ("?", "", ""), 1, "",
    )  # fmt: skip
    answer = loaded(tmp_path, "def every(x, period=0):\n    return x[::3]\n").modules[-1].every
    verdict = verdict_on(exercise, answer, 0, TimeLimit(0.2))
    assert (verdict.outcome, verdict.misconception) == ("wrong shape", None)
    assert verdict.message.startswith("every: wrong shape. ")
    endless = replace(exercise, cases=lambda rng: [Case("", (rng.normal(size=6),))])
    said = verdict_on(endless, answer, 0, TimeLimit(0.2)).message
    assert said.startswith("every: crashed. The exercise's own code took longer than 0.2 s, not the answer.")


@pytest.mark.long
def test_a_time_that_is_over_before_the_first_input():
    for seconds in (1e-6, 1e-5, 1e-4):
        assert check("relu", lambda x: x, time_limit=seconds, quiet=True).outcome in ("crashed", "wrong value")


# Python notes an alarm that another thread receives just before the handler is taken back, and drops it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_time_that_is_over_while_the_limit_is_set_or_taken_back():
    before = signal.getsignal(signal.SIGALRM)
    for seconds in np.geomspace(1e-6, 3e-4, 500):
        try:
            with TimeLimit(seconds)("it"):
                sum(range(100))
        except Stopped:
            pass
        left = signal.getitimer(signal.ITIMER_REAL), signal.getsignal(signal.SIGALRM)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        assert left == ((0, 0), before)


def test_in_another_thread_too(tmp_path):
    answer, found = loaded(tmp_path, LOOPS).answers["relu"], []
    thread = threading.Thread(target=lambda: found.append(check("relu", answer, quiet=True, time_limit=0.2)))
    thread.start()
    thread.join(60)
    assert [verdict.misconception for verdict in found] == ["takes too long"]
    assert "n += 1" in found[0].message or "while True" in found[0].message


@pytest.mark.long
def test_a_right_answer_that_calls_one_that_does_not_end(tmp_path):
    submission = loaded(tmp_path, LOOPS + "\n\ndef relu_backward(dy, x):\n    relu(x)\n    return dy * (x > 0)\n")
    standing = Checks(submission, seed=0, limit=TimeLimit(0.2)).of("relu_backward")
    assert standing.waits_for == ("relu",)
    assert standing.verdict.message.endswith("It is right as soon as your relu is.")


@pytest.mark.long
def test_a_file_that_does_not_end(tmp_path):
    (tmp_path / "homework.py").write_text("x = 1\nwhile True:\n    x = 1\n", encoding="utf-8")
    with pytest.raises(LoadError, match=r"it took longer than 0\.2 s\n  File .*homework\.py"):
        load(tmp_path / "homework.py", time_limit=0.2)


def test_ctrl_c_says_what_was_running(tmp_path):
    text = "def relu(x):\n    stop()\n\n\ndef stop():\n    raise KeyboardInterrupt\n"
    with pytest.raises(Interrupted, match=r"^relu: interrupted\. This line was running:\n  File .*\n    stop\(\)\n"):
        check("relu", loaded(tmp_path, text).answers["relu"], quiet=True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("class Odd(Exception):\n    def __str__(self): return 1 / 0\n\n\ndef relu(x): raise Odd\n", "Odd: its text"),
        ("class Odd(BaseException): pass\n\n\ndef relu(x): raise Odd('me')\n", "relu: crashed. Odd: me."),
        ("import numpy as np\n\n\nclass E:\n    __class__ = np.ndarray\n\n\ndef relu(x): return E()\n", "relu: c"),
        ("class F(float):\n    def __float__(s): raise SystemExit\n\n\ndef relu(x): return F()\n", "relu: c"),
        ("relu = 3\n", "relu: crashed. It must be a function or a class, got int."),
        ("relu = None\n", "got NoneType."),
    ],
)  # fmt: skip
def test_whatever_is_handed_in_gets_a_verdict(tmp_path, text, told):
    verdict = Checks(loaded(tmp_path, text), seed=0).of("relu").verdict
    assert verdict.outcome == "crashed" and told in verdict.message


def test_a_long_message_is_cut_off(tmp_path):
    text = "def relu(x):\n    raise ValueError('x' * 10**6)\n"
    assert len(Checks(loaded(tmp_path, text), seed=0).of("relu").verdict.message) < 30_000
    with pytest.raises(LoadError) as caught:
        loaded(tmp_path, f"x = {'(' * 40_000}\n")
    assert len(str(caught.value)) < 30_000


def test_the_verdict_on_a_slow_answer_is_that_on_a_fast_one():
    def relu(x):
        time.sleep(0.001)
        return np.abs(x)

    found = [check("relu", answer, seed=0, quiet=True) for answer in (relu, np.abs)]
    assert found[0].message.startswith(found[1].message)  # of which there are no lines


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_limit_is_above_0(seconds):
    with pytest.raises(ValueError, match="a number of seconds above 0"):
        TimeLimit(seconds)


@pytest.mark.long
@pytest.mark.parametrize("top", ["    return sum(range(10**12))", "    return x\n\n\nsum(range(10**12))"])
def test_c_code_that_does_not_return_ends_the_command(tmp_path, top):
    (tmp_path / "homework.py").write_text(f"def relu(x):\n{top}\n", encoding="utf-8")
    ended = python(*IMPATIENT, "homework", "check", "homework.py", "--time-limit", "0.2", cwd=tmp_path)
    assert ended.returncode == 1
    assert f'File "homework.py", line {2 + top.count(chr(10))} in ' in ended.stderr


@pytest.mark.long
def test_a_profiler_works_after_a_limit_in_a_thread():
    """In a process of its own, which would not end."""
    code = """if True:
        import sys, threading
        from transformer_np.homework.limit import TimeLimit
        def limited():
            with TimeLimit(5)("softmax"):
                pass
        thread = threading.Thread(target=limited)
        thread.start()
        thread.join()
        sys.setprofile(lambda *_: None)
        (lambda: None)()
        sys.setprofile(None)
    """
    assert python("-c", code, timeout=60).returncode == 0


STAYS = """
import atexit, os, subprocess, sys, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
atexit.register(time.sleep, 1000)
child = "import os, time\\nif os.fork() == 0:\\n    print(os.getpid(), file=open('pid', 'w'), flush=True)\\n"
child += "    time.sleep(1000)"
subprocess.run([sys.executable, "-c", child], start_new_session=True)
while not (os.path.exists("pid") and open("pid").read().endswith("\\n")): time.sleep(0.01)
def relu(x):
    return x * (x > 0)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a detached process has no parent")
def test_what_a_file_leaves_behind_ends_with_the_command(tmp_path):
    (tmp_path / "homework.py").write_text(STAYS)
    done = python(*"-m transformer_np homework check homework.py relu".split(), cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("relu: right.\n"), done.stderr
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
