"""`using`: the library computes with the student's functions, and afterwards with its own again."""

import sys
import types

import numpy as np
import pytest
from test_rewrites import AsInThePaper

from transformer_np import functional as F
from transformer_np import masks
from transformer_np.homework import all_exercises, check, swap, using
from transformer_np.homework.exercise import Case, Exercise, Result
from transformer_np.homework.training_run import TrainingCrash, train_both
from transformer_np.inspection.samples import small_model

EXERCISES = all_exercises()


def calling(reference):
    """The library's own as a student might hand it in: a function that calls it, or a class that inherits from it."""
    if isinstance(reference, type):
        return type(reference.__name__, (reference,), {})
    return lambda *args, **options: reference(*args, **options)


@pytest.fixture
def everything_is_restored():
    def everything():
        return {
            (name, attribute): id(value)
            for name, module in list(sys.modules.items())
            if name.startswith("transformer_np") and module is not None
            for attribute, value in list(vars(module).items())
        }

    before = everything()
    yield
    after = everything()
    assert {place: after[place] for place in before} == before


SRC, TGT = np.array([[3, 4, 5], [6, 3, 0]]), np.array([[1, 5], [1, 6]])


def test_restored_after_an_error_and_not_reentrant(everything_is_restored):
    answers = {"softmax": calling(F.softmax)}
    with pytest.raises(KeyError), using(answers):
        raise KeyError
    with using(answers), pytest.raises(RuntimeError, match="cannot be nested"), using(answers):
        pass
    with using(answers):
        pass


def test_a_check_inside_is_refused(everything_is_restored):
    with using({"softmax": calling(F.softmax)}), pytest.raises(RuntimeError, match="inside `using`"):
        check("softmax", F.softmax, quiet=True)
    assert check("softmax", F.softmax, quiet=True).passed


def test_what_is_not_started_or_no_exercise_or_the_librarys_is_left_alone(everything_is_restored):
    def softmax(x, axis=-1):
        raise NotImplementedError

    original = F.softmax
    module = types.ModuleType("homework")
    vars(module).update(softmax=softmax, softmax_backward=calling(F.softmax_backward), other=print, relu=F.relu)
    with using(module) as swapped:
        assert F.softmax is original
        assert swapped.left_out == ("softmax",)
    with pytest.raises(ValueError, match="no answer"), using({"other": print}):
        pass
    with pytest.raises(TypeError, match="answers must be a module"), using("homework.py"):
        pass


def test_a_module_loaded_inside_is_restored_too(everything_is_restored):
    name = "transformer_np.loaded_later"
    with using({"softmax": calling(F.softmax)}):
        later = types.ModuleType(name)
        later.softmax = F.softmax
        sys.modules[name] = later
    try:
        assert later.softmax is F.softmax
    finally:
        del sys.modules[name]


def attention_with_one_mask(q, k, v, mask=None):
    """A right answer that knows nothing of tuples, works in float64 and returns a list."""
    assert mask is None or isinstance(mask, np.ndarray)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, -np.inf, scores) if mask.dtype == bool else scores + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    weights = powers / powers.sum(-1, keepdims=True)
    return [weights @ v, weights]


ATTENTION = Exercise(
    F.scaled_dot_product_attention, (Result("out"), Result("weights")),
    lambda rng: [Case("", tuple(rng.normal(size=(3, 2, 3, 4))))], "", F.scaled_dot_product_attention,
    ("?", "", ""), 2, "§4",
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_library_may_ask_for_more_than_the_exercise(everything_is_restored, monkeypatch, dtype):
    """Masks in a tuple, results of the dtype it works in."""
    monkeypatch.setattr(swap, "all_exercises", lambda: {"scaled_dot_product_attention": ATTENTION})
    expected = small_model("Transformer", dtype=dtype)(SRC, TGT)
    called = []
    answer = lambda *given, **options: called.append(given) or attention_with_one_mask(*given, **options)  # noqa: E731
    with using({"scaled_dot_product_attention": answer}):
        model = small_model("Transformer", dtype=dtype)
        logits = model(SRC, TGT)
        model.backward(np.ones_like(logits))
    assert logits.dtype == dtype and len(called) == 1 + 5  # before, whether it is started
    np.testing.assert_allclose(logits, expected, rtol=1e-4 if dtype == "float32" else 1e-12)


def test_masks_of_all_kinds_become_one(rng):
    hidden, added = masks.causal_mask(3), rng.normal(size=(2, 1, 1, 3))
    padding = rng.random((2, 1, 1, 3)) < 0.5
    q, k, v = rng.normal(size=(3, 2, 4, 3, 5))
    for several in ((hidden,), (hidden, padding), (added, added), (hidden, added), (added, hidden, padding), ()):
        one = swap.one_mask(several, q.dtype)
        expected = F.scaled_dot_product_attention(q, k, v, several)[0]
        np.testing.assert_allclose(F.scaled_dot_product_attention(q, k, v, one)[0], expected, rtol=1e-12)
    assert swap.one_mask((hidden, padding), q.dtype).dtype == bool


# --- training with it ------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_training_with_the_librarys_own_gives_the_same_to_the_last_bit(few_pairs, everything_is_restored):
    answers = {name: calling(exercise.reference) for name, exercise in EXERCISES.items()}
    rows = []
    curves = train_both(answers, steps=4, every=2, report=lambda *row: rows.append(row))
    assert curves.losses["library"] == curves.losses["yours"]
    assert curves.part_at is None
    assert [(step, library) for step, library, _ in rows] == [(n, curves.losses["library"][n - 1]) for n in (1, 2, 4)]


@pytest.mark.long
def test_a_dropout_that_draws_other_numbers_can_be_used_in_both(few_pairs, everything_is_restored):
    def dropout(x, p, rng):
        keep = rng.random(x.shape) >= p
        return x * keep / (1 - p), keep

    assert train_both({"dropout": dropout}, steps=2).part_at == 1
    assert train_both({"dropout": dropout}, steps=2, in_both=["dropout"]).part_at is None


@pytest.mark.long
def test_an_adam_that_is_a_class_of_its_own(few_pairs, everything_is_restored):
    class Forgetful(AsInThePaper):
        def step(self):
            self.m = [0.0] * len(self.m)
            super().step()

    assert train_both({"Adam": AsInThePaper}, steps=20).part_at is None
    assert train_both({"Adam": Forgetful}, steps=20).part_at == 3  # the first two losses come before a second step


@pytest.mark.long
def test_training_stops_at_a_loss_that_is_not_finite(few_pairs, everything_is_restored):
    with pytest.raises(TrainingCrash, match=r"step 1: TrainingError: the loss is nan") as stopped:
        train_both({"softmax": lambda x, axis=-1: x * np.nan}, steps=3)
    assert "learning rate" not in str(stopped.value)
    assert "With the library's functions the loss of this step is" in str(stopped.value)
