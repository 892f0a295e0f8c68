"""`grade` and `check` say the same of every answer: the results go through the messages and the judging process."""

import copy
import functools
import json
import pickle
import sys

import numpy as np
import pytest

from transformer_np.grading import judges
from transformer_np.grading.sandbox.session import Reply, Task
from transformer_np.grading.sandbox.wire import HEADER
from transformer_np.grading.sandbox.worker import try_case
from transformer_np.homework import all_exercises, checking, load
from transformer_np.homework.checking import verdict_on
from transformer_np.homework.guard import guarded
from transformer_np.homework.judging.attempt import attempt
from transformer_np.homework.judging.compare import close, results_and_problem
from transformer_np.homework.judging.crash import Crash
from transformer_np.homework.judging.trials import Trials
from transformer_np.homework.limit import TimeLimit

SEED = 4
EXERCISES = list(all_exercises())
LONG = [pytest.param(name, marks=() if i % 24 == 15 else pytest.mark.release) for i, name in enumerate(EXERCISES)]


@pytest.fixture(autouse=True)
def no_line(monkeypatch):
    """Only `check` runs the edited answer, so it alone names a line."""
    monkeypatch.setattr(checking, "find_place", lambda *_: None)


@pytest.fixture(scope="module")
def judge():
    judge = judges.Judge()
    yield judge
    judge.close()


def reply_in(content):
    """The Reply in the bytes of a message."""
    text, _ = HEADER.unpack(content[: HEADER.size])
    body = content[HEADER.size :]
    crash = json.loads(body[:text])["crash"]
    return Reply(crash and Crash(**crash), (body[:text], body[text:]))


def replies(task, answer):
    """The replies of a process, without the walls."""
    return [reply_in(try_case(task.exercise, answer, case)) for case in pickle.loads(task.inputs)]


def graded(judge, exercise, answer):
    """The verdict of `grade`, without the walls."""
    task = Task(Trials(exercise, SEED))
    return judge.verdict(task, replies(task, answer))


def said(verdict):
    return verdict.outcome, verdict.misconception, verdict.message, round(verdict.share, 9), verdict.core


def assert_the_same(judge, exercise, answer):
    assert said(graded(judge, exercise, answer)) == said(verdict_on(exercise, answer, SEED, TimeLimit(600)))


def told(exercise, case, tried):
    """What a verdict depends on, and the results."""
    results, wrong = (None, None) if tried.crash else results_and_problem(exercise, case, tried.output)
    results = results or []
    return (tried.crash, tried.changed, tried.broken, tried.shares, wrong, [a.dtype for a in results]), results


def assert_the_same_attempts(task, answer):
    """Of the same attempts, `judge` makes the same verdict."""
    exercise = task.exercise
    for case, reply in zip(task.trials.cases, replies(task, answer), strict=True):
        sent, of_sent = told(exercise, case, judges.attempt_of(exercise, case, reply))
        here, of_here = told(exercise, case, attempt(exercise, answer, case))
        assert sent == here
        if not are_close(of_sent, of_here):  # only of an answer that draws by itself
            _, again = told(exercise, case, attempt(exercise, answer, case))
            assert not are_close(of_here, again)


def are_close(some, others):
    return all(close(*pair) for pair in zip(some, others, strict=True))


def reversed_after(call, which):
    """The function, which afterwards reverses the numbers of one of its arguments: an array or a list."""

    @functools.wraps(call)
    def answer(*arguments, **options):
        output = copy.deepcopy(call(*arguments, **options))
        given = [a for a in (*arguments, *options.values()) if isinstance(a, list) or (is_array(a) and a.size)]
        if which < len(given):
            changed = given[which]
            changed[:] = np.flip(changed) if is_array(changed) else changed[::-1]
        return output

    return answer


def is_array(value):
    return isinstance(value, np.ndarray)


def changing(exercise, which):
    """A right answer that changes one of its inputs after the call; of a class, in every method."""
    right = exercise.variant()
    if not isinstance(right, type):
        return reversed_after(right, which)
    names = [name for name in exercise.parts if hasattr(right, name)] or ["step"]  # of an optimizer
    return type(right.__name__, (right,), {name: reversed_after(getattr(right, name), which) for name in names})


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_every_answer_makes_the_attempts_of_check(name):
    exercise = all_exercises()[name]
    task = Task(Trials(exercise, SEED))
    for mistakes in [(), *([mistake] for mistake in exercise.mistakes)]:
        assert_the_same_attempts(task, exercise.variant(mistakes))


@pytest.mark.long
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", LONG)
def test_an_answer_that_changes_its_input_gets_the_verdict_of_check(judge, name, which):
    exercise = all_exercises()[name]
    assert_the_same(judge, exercise, changing(exercise, which))


def test_parameters_in_another_order_are_told_by_both(judge, tmp_path):
    file, exercise = tmp_path / "homework.py", all_exercises()["softmax_backward"]
    file.write_text("def softmax_backward(y, dy, axis=-1):\n    return y * (dy - (dy * y).sum(axis, keepdims=True))\n")
    answer, task = load(file).answers[exercise.name], Task(Trials(exercise, SEED))
    verdict = judge.verdict(task, replies(task, answer), file.read_bytes())
    assert "The parameters are in the wrong order" in verdict.message
    assert said(verdict) == said(verdict_on(exercise, answer, SEED, TimeLimit(600)))


def test_equal_replies_have_one_verdict_and_others_their_own(judge):
    exercise = all_exercises()["relu"]
    right, wrong = exercise.variant(), exercise.variant({next(iter(exercise.mistakes))})
    first, second, third, fourth = (said(graded(judge, exercise, answer)) for answer in (right, wrong, right, wrong))
    assert first == third != second == fourth


def global_numbers(x, p, rng):
    keep = np.random.random(x.shape) >= p  # noqa: NPY002
    return np.where(keep, x / (1 - p), 0), keep


def first_shortened(ids, merges):
    right = all_exercises()["apply_merges"].reference(list(ids), merges)
    del ids[-1]
    return right


def merges_emptied(ids, merges):
    right = all_exercises()["apply_merges"].reference(ids, dict(merges))
    merges.clear()
    return right


def asks(x):
    return x * float(input("factor: "))


def writes(x):
    sys.stdout.write("x\n")
    sys.stdout.flush()
    return np.maximum(x, 0)


def one_token_too_few(model, src, max_len=64, use_cache=True, return_log_probs=False):
    """Its results are those for the smallest max_len of all cases, which it uses."""
    return all_exercises()["greedy_decode"].reference(model, src, max_len - 1, use_cache, return_log_probs)


OTHERS = {
    "what it writes": ("relu", writes), "global random numbers": ("dropout", global_numbers),
    "a shorter list": ("apply_merges", first_shortened), "an empty dict": ("apply_merges", merges_emptied),
    "a shared result": ("relu", lambda x: np.maximum(x, 0, out=x.copy()) if (x < 0).any() else x),
    "a text": ("relu", lambda x: "a text"), "a dict": ("relu", lambda x: {"y": x}),
    "an array of objects": ("relu", lambda x: np.maximum(x, 0).astype(object)),
    "an array of texts": ("relu", lambda x: x.astype(str)), "dates": ("relu", lambda x: np.zeros(3, "M8[s]")),
    "a list of rows": ("relu", lambda x: np.maximum(x, 0).tolist()),
    "a masked array": ("relu", lambda x: np.ma.masked_less(x, 0)),
    "a matrix": ("softmax", lambda x, axis=-1: np.asmatrix(np.ones((2, 2)))),
    "half of the digits": ("relu", lambda x: np.maximum(x, 0).astype(np.float16)),
    "more digits": ("relu", lambda x: np.maximum(x, 0).astype(np.longdouble)),
    "complex numbers": ("relu", lambda x: np.maximum(x, 0).astype(complex)),
    "whole numbers": ("relu", lambda x: np.maximum(x, 0).astype(int)),
    "other bytes": ("relu", lambda x: np.maximum(x, 0).astype(">f8")),
    "a generator": ("relu", lambda x: (v for v in x)), "a huge number": ("relu", lambda x: 10**30),
    "three dots": ("layer_norm", lambda x, gamma, beta, eps=1e-5: (x, ..., x)),
    "one number of NumPy's": ("layer_norm", lambda x, gamma, beta, eps=1e-5: x.mean()),
    "a wrong signature": ("relu", lambda: 0),
    "an exit": ("relu", lambda x: exit()), "input": ("relu", asks),
    "an argument counted wrong": ("greedy_decode", one_token_too_few),
}  # fmt: skip


@pytest.mark.parametrize("which", OTHERS)
def test_a_strange_answer_gets_the_verdict_of_check(judge, which):
    name, answer = OTHERS[which]
    if answer is not asks:
        return assert_the_same(judge, all_exercises()[name], answer)
    with guarded():
        assert_the_same(judge, all_exercises()[name], answer)
