"""`grade` and `check` say the same of every answer: the results go through the messages and the judging process."""

import copy
import pickle

import numpy as np
import pytest

from transformer_np.grading import judges
from transformer_np.grading.sandbox.session import Reply, Task
from transformer_np.grading.sandbox.wire import HEADER, pack
from transformer_np.homework import all_exercises
from transformer_np.homework.checking import verdict_on
from transformer_np.homework.judging.attempt import attempt_with
from transformer_np.homework.judging.judge import Trials
from transformer_np.homework.limit import TimeLimit

SEED = 4
EXERCISES = list(all_exercises())
SHARE = EXERCISES[::20]  # of the default run


@pytest.fixture(scope="module")
def judge():
    judge = judges.Judge()
    yield judge
    judge.close()


def graded(judge, exercise, answer):
    """The verdict of `grade`, without the walls."""
    task, replies = Task(exercise, Trials(exercise, SEED)), []
    for arguments, options in pickle.loads(task.inputs):
        tried = attempt_with(exercise, answer, arguments, options)
        after = [value for value in (*arguments, *options.values()) if type(value) is np.ndarray]
        content = pack({"kind": "tried"}, tried.output, after)
        text, _ = HEADER.unpack(content[: HEADER.size])
        body = content[HEADER.size :]
        replies.append(Reply(tried.crash, (body[:text], body[text:])))
    return judge.verdict(task, replies)


def said(verdict):
    return verdict.outcome, verdict.misconception, verdict.message, round(verdict.share, 9), verdict.core


def assert_the_same(judge, exercise, answer):
    assert said(graded(judge, exercise, answer)) == said(verdict_on(exercise, answer, SEED, TimeLimit(600)))


def changing(exercise, which):
    """A right answer that changes one of its arrays after the call. None for a class, which has several calls."""
    right = exercise.variant()
    if isinstance(right, type):
        return None

    def answer(*arguments, **options):
        output = copy.deepcopy(right(*arguments, **options))
        arrays = [
            a for a in (*arguments, *options.values()) if isinstance(a, np.ndarray) and a.size and a.flags.writeable
        ]
        if which < len(arrays):
            arrays[which][...] = arrays[which].ravel()[::-1].reshape(arrays[which].shape)
        return output

    return answer


@pytest.mark.parametrize("name", SHARE)
def test_a_wrong_answer_gets_the_verdict_of_check(judge, name):
    exercise = all_exercises()[name]
    assert_the_same(judge, exercise, exercise.variant({next(iter(exercise.mistakes))}))


@pytest.mark.long
@pytest.mark.parametrize("name", EXERCISES)
def test_every_wrong_answer_gets_the_verdict_of_check(judge, name):
    exercise = all_exercises()[name]
    for mistake in exercise.mistakes:
        assert_the_same(judge, exercise, exercise.variant({mistake}))


@pytest.mark.long
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", EXERCISES)
def test_an_answer_that_changes_its_input_gets_the_verdict_of_check(judge, name, which):
    exercise = all_exercises()[name]
    answer = changing(exercise, which)
    if answer is None:
        pytest.skip("a class")
    assert_the_same(judge, exercise, answer)
