"""What is said of any wrong array beside the right one, whatever made it."""

import re
from dataclasses import replace

import numpy as np
import pytest

from transformer_np.homework.exercise import Case, Exercise, Result
from transformer_np.homework.judging.attempt import attempt
from transformer_np.homework.judging.describe import Draw, describe_exactly
from transformer_np.homework.judging.finding import findings
from transformer_np.homework.judging.judge import judge
from transformer_np.homework.judging.trials import Trials

SIZES = [{"B": 2, "T": 3, "K": 5}, {"B": 3, "T": 4, "K": 2}, {"B": 4, "T": 6, "K": 3}]
SQUARE = [{"T": 4, "S": 4}, {"T": 5, "S": 5}, {"T": 6, "S": 6}]


def normal(rng, shape):
    return rng.normal(size=shape)


def some_zeros(rng, shape):
    return rng.normal(size=shape) * (rng.random(shape) < 0.8)


def additive(rng, shape):
    return np.where(rng.random(shape) < 0.5, -np.inf, 0)


def truth(rng, shape):
    return rng.random(shape) < 0.4


def causal(rng, shape):
    return np.triu(np.ones(shape, bool), 1)


def draws(change, axes="B T K", make=normal, sizes=SIZES, **more):
    """Three results, changed by change(right, sizes)."""
    rng = np.random.default_rng(0)
    made = []
    for letters in sizes:
        shape = tuple(letters[letter] for letter in axes.split())
        right = make(rng, shape)
        inputs = {name: value(rng, shape) for name, value in more.items()}
        made.append(Draw("y", axes, change(right, letters, **inputs), right, letters, inputs))
    return made


EXACT = [  # name, change of the right result, and what it is made of
    ("wrong sign", lambda y, n: -y),
    ("constant factor 1/B", lambda y, n: y / n["B"]),
    ("constant factor 1/(B·T)", lambda y, n: y / (n["B"] * n["T"])),
    ("constant factor √K", lambda y, n: y * n["K"] ** 0.5),
    ("constant factor −1/√K", lambda y, n: -y / n["K"] ** 0.5),
    ("constant factor K", lambda y, n: y * n["K"]),
    ("constant factor 2", lambda y, n: 2 * y),
    ("constant factor K/(K − 1)", lambda y, n: y * n["K"] / (n["K"] - 1)),
    ("constant factor 1.77", lambda y, n: 1.77 * y),
    ("constant factor 1/2", lambda y, n: y / 2, {"sizes": [SIZES[0]] * 2}),
    ("constant offset 1", lambda y, n: y + 1),
    ("all zeros", lambda y, n: 0 * y),
    ("NaN everywhere", lambda y, n: np.nan * y),
    ("transposed", lambda y, n: y.transpose(0, 2, 1)),
    ("reversed along T", lambda y, n: y[:, ::-1]),
    ("rolled forward along T by one place", lambda y, n: np.roll(y, 1, 1)),
    ("shifted forward along T by one place", lambda y, n: np.concatenate([0 * y[:, :1], y[:, :-1]], 1)),
    ("shifted backward along T by one place", lambda y, n: np.concatenate([y[:, 1:], 0 * y[:, :1]], 1)),
    ("the absolute value of the right result", lambda y, n: abs(y)),
    ("the square of the right result", lambda y, n: y * y),
    ("the exponential of the right result", lambda y, n: np.exp(y)),
    ("1 − the right result", lambda y, n: 1 - y),
    ("truncated to integers", lambda y, n: np.trunc(y)),
    ("plus the identity", lambda y, n: y + np.eye(len(y)), {"axes": "T S", "sizes": SQUARE}),
    # an input in the result
    ("returns x", lambda y, n, x: x, {"x": normal}),
    ("x added", lambda y, n, x: y + x, {"x": normal}),
    ("x not added", lambda y, n, x: y - x, {"x": normal}),
    ("x as an extra factor", lambda y, n, x: y * x, {"x": normal}),
    ("x missing as a factor", lambda y, n, x: y / x, {"x": normal}),
    # masks
    ("True and False instead of numbers", lambda y, n: np.isneginf(y), {"make": additive}),
    *(
        (name, change, {"axes": "T S", "make": causal, "sizes": SQUARE})
        for name, change in [
            ("inverted", lambda m, n: ~m),
            ("transposed", lambda m, n: m.T),
            ("off by one diagonal", lambda m, n: np.triu(np.ones(m.shape, bool))),
            ("off by one diagonal", lambda m, n: np.triu(np.ones(m.shape, bool), 2)),
            ("numbers instead of True and False", lambda m, n: m * 1),
            ("numbers instead of True and False", lambda m, n: m * 1.0),
            ("an additive mask", lambda m, n: np.where(m, -np.inf, 0)),
            ("an additive mask", lambda m, n: np.where(m, -1e9, 0)),
            ("False everywhere", lambda m, n: m & False),
        ]
    ),
    # of the wrong shape
    ("extra axis of length 1", lambda y, n: y[..., None]),
    ("extra axis of length 1", lambda y, n: y.sum((), keepdims=True)[None], {"axes": "K"}),
    ("missing axis of length 1", lambda y, n: y[..., 0], {"axes": "B T I", "sizes": [of | {"I": 1} for of in SIZES]}),
    ("not summed over B and T", lambda y, n: _parts(y, (n["B"], n["T"])), {"axes": "K"}),
    ("not summed over B", lambda y, n: _parts(y, (n["B"],)), {"axes": "T K"}),
    ("not averaged over B", lambda y, n: _parts(y, (n["B"],)) * n["B"], {"axes": "T K"}),
    ("summed over B and T", lambda y, n: y.sum((0, 1))),
    ("averaged over K", lambda y, n: y.mean(-1)),
    ("summed over T", lambda y, n: y.sum(1, keepdims=True)),
    ("without the last along T", lambda y, n: y[:, :-1]),
    ("without the first along T", lambda y, n: y[:, 1:]),
    ("only the last along T", lambda y, n: y[:, -1]),
    ("nearly right", lambda y, n: y.astype(np.float16)),
]


def _parts(y, lead):
    """Random parts that add up to y."""
    parts = np.random.default_rng(1).normal(size=(*lead, *y.shape))
    axes = tuple(range(len(lead)))
    return parts - (parts.sum(axes) - y) / np.prod(lead)


def of(rows):
    return pytest.mark.parametrize("row", rows, ids=[row[0] for row in rows])


@of(EXACT)
def test_a_change_of_every_number_is_named(row):
    name, change, *options = row
    found = describe_exactly(draws(change, **dict(*options)))
    assert found.name == name
    assert re.search(r"\by\b", found.text)


def test_a_finding_must_hold_in_every_draw():
    turn = iter([-1, -1, 1.5])
    assert describe_exactly(draws(lambda y, n: next(turn) * y)) is None
    assert describe_exactly(draws(lambda y, n: np.sin(3 * y) + y)) is None


def test_one_single_number_proves_no_ratio():
    assert describe_exactly([Draw("loss", "", np.array(1.3), np.array(2.6), {"B": 2})]) is None
    two = [Draw("loss", "", np.array(c / b), np.array(c), {"B": b, "T": 7}) for b, c in ((3, 1.3), (5, 2.2), (4, 1.7))]
    assert describe_exactly(two).name == "constant factor 1/B"


def test_single_numbers_that_were_handed_in_name_a_factor():
    rng = np.random.default_rng(0)
    right = rng.normal(size=(3, 4))
    made = [Draw("y", "B T", right * (1 - p), right, {"B": 3, "T": 4}, numbers={"p": p}) for p in (0.17, 0.41)]
    assert describe_exactly(made).name == "constant factor 1 − p"


def test_one_boolean_is_of_no_earlier_call_and_hides_nothing():
    yes, no = np.array(True), np.array(False)
    found = describe_exactly(3 * [Draw("same", "", yes, no, {}, earlier=[yes])])
    assert (found.name, found.text) == ("inverted", "`same` is inverted: True and False are swapped.")


def test_swapped_results_are_named():
    rng = np.random.default_rng(0)
    dq, dk = rng.normal(size=(2, 3, 4))
    others, returned = {"dq": dq, "dk": dk}, {"dq": dk, "dk": dq}
    swapped = Draw("dq", "T K", dk, dq, {}, others=others, returned=returned)
    assert describe_exactly([swapped]).name == "dq and dk swapped"
    twice = Draw("dq", "T K", dk, dq, {}, others=others, returned={"dq": dk, "dk": dk})
    assert describe_exactly([twice]).name == "dk instead of dq"


def test_numbers_that_a_view_has_made_are_not_described():
    rolled = draws(lambda y, n: np.roll(y, 1), "T", make=lambda rng, shape: rng.permutation(*shape))
    assert describe_exactly(rolled).name == "rolled forward along T by one place"
    ids = [replace(draw, of_view=True) for draw in rolled]
    assert describe_exactly(ids) is None


@pytest.mark.parametrize("by", [1, 3e-4])
def test_an_example_shows_a_wrong_number(by):
    def long_rows(x, w):
        return x * w

    made = [Case("", (np.ones((3, 20)), np.arange(1.0, 21)))]
    right, error = lambda x, w: x * w, np.outer([by, 5, 0], np.arange(20) > 18)
    exercise = Exercise(
        long_rows, (Result("y", "B K"),), lambda rng: made, "", right, ("",), difficulty=1, section="§0"
    )
    trials = Trials(exercise, 0)
    attempts = [attempt(exercise, lambda x, w: x * w + error, case) for case in trials.cases]
    message = judge(trials, findings(trials, attempts)).message
    (expected,), (got,) = re.findall("must be (.*)", message), re.findall("yours is (.*)", message)
    assert expected != got
