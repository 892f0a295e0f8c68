"""The calls that try an answer: each label says all that is special about its call, and every argument is tried."""

import functools
import inspect
import re
from contextlib import nullcontext
from types import FunctionType

import numpy as np
import pytest

from transformer_np.homework import all_exercises
from transformer_np.homework.sheets import text

EXERCISES = all_exercises()

# sizes, which every case may draw anew, and what else is drawn
SIZES = set("T S K length num_heads num_embeddings num_merges max_len block_size batch_size repeats rng merges".split())

# how labels name an argument, where they do not use its own name
WORDS = {
    "mask": "mask|hidden|window",
    "memory_mask": "mask",
    "b": "bias",
    "cached": "cache",
    "size": "another optimizer|one number",
    "decays": "decayed",
    "rates": "rate",
    "ignore_index": "ignored",
    "max_norm": "norm",
    "num_buckets": "buckets|default options",
    "max_distance": "default options",
    "tile": "tiles",
    "d_model": "dimensions",
}


@functools.cache
def cases_of(name, seed=0):
    return EXERCISES[name].cases(np.random.default_rng(seed))


def settings(exercise, case):
    """The arguments of a call that are no arrays, by name; of arrays and lists, that they are given."""
    first = () if exercise.drive.__name__ == "call" else (None,)
    signature = inspect.signature(exercise.drive if first else exercise.reference)
    bound = signature.bind(*first, *case.arguments, **case.options)
    bound.apply_defaults()
    flat = {**bound.arguments, **bound.arguments.get("options", {})}
    told = bool | int | float | str | dict | type | type(None) | FunctionType
    return {name: value if isinstance(value, told) else "given" for name, value in flat.items() if name != "options"}


@pytest.mark.parametrize("name", EXERCISES)
def test_a_label_names_every_setting_and_can_be_listed(name):
    """ "with A, with B and with C": no commas outside brackets and numbers, and no label twice."""
    plain, *others = cases_of(name)
    usual = settings(EXERCISES[name], plain)
    for case in others:
        for argument, value in settings(EXERCISES[name], case).items():
            if argument not in SIZES and value != usual.get(argument, usual):
                assert re.search(rf"\b{argument}\b|{WORDS.get(argument, argument)}", case.label), (case.label, argument)
    labels = [case.label for case in cases_of(name)]
    assert len(set(labels)) == len(labels)
    assert [label for label in labels if re.search(r",(?!\d)", re.sub(r"\(.*?\)", "", label))] == []


@pytest.mark.parametrize("name", [name for name in EXERCISES if hasattr(EXERCISES[name].reference, "shapes")])
def test_the_letters_of_a_case_are_the_sizes_of_its_arrays(name):
    reference = EXERCISES[name].reference
    for case in cases_of(name):
        given = inspect.signature(reference).bind(*case.arguments, **case.options).arguments
        for argument, axes in reference.shapes.items():
            named = re.search(rf"\b{argument} of shape \((.*?),?\)", case.label)
            letters = named[1].split(", ") if named else [letter for letter in axes if letter != "..."]
            shape = np.shape(given.get(argument))
            sizes = shape if named else shape[len(shape) - len(letters) :]
            assert all(case.sizes.get(letter, n) == n for letter, n in zip(letters, sizes, strict=argument in given))


# arguments that an answer need not look at, because the part that the student writes is handed what is made of them
HANDED_ON = {
    "Optimizer": {"lr"},
    "AddNorm": {"bias", "rng", "dtype", "norm"},
    "EncoderBlock": {"activation", "bias", "rng", "dtype"},
    "DecoderBlock": {"activation", "bias", "rng", "dtype"},
}


@pytest.mark.parametrize("name", EXERCISES)
def test_every_argument_is_tried_with_two_values(name):
    exercise, seen = EXERCISES[name], {}
    called = exercise.reference.__init__ if isinstance(exercise.reference, type) else exercise.reference
    signature = inspect.signature(called)

    @functools.wraps(called)
    def noted(*arguments, **options):
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        for argument, value in bound.arguments.items():
            seen.setdefault(argument, set()).add(value.tobytes() if isinstance(value, np.ndarray) else repr(value))
        return called(*arguments, **options)

    answer = noted
    if isinstance(exercise.reference, type):
        answer = type(name, (exercise.reference,), {"__init__": noted})
    for case in (case for seed in (0, 5) for case in cases_of(name, seed)):
        with pytest.raises(ValueError) if case.raises else nullcontext():
            exercise.drive(answer, *case.arguments, **case.options)
    assert {a for a, values in seen.items() if len(values) < 2} - {"self"} == HANDED_ON.get(name, set())


@pytest.mark.parametrize("name", EXERCISES)
def test_an_error_that_the_docstring_promises_has_a_case(name):
    promised = set(re.findall(r"Raises (\w+)", EXERCISES[name].reference.__doc__))
    assert promised <= {case.raises for case in cases_of(name)}


class Unlucky:
    """A generator that first draws one letter again and again, and answers 1,000 times."""

    permutation = staticmethod(list)

    def __init__(self):
        self.rng, self.asked = np.random.default_rng(0), 0

    def integers(self, *given, **options):
        self.asked += 1
        assert self.asked < 1000, "the drawing does not end"
        return self.rng.integers(*given, **options)

    def choice(self, ids, size):
        return np.repeat(ids[:1] if self.asked < 10 else self.rng.choice(ids), size)


def test_different_words_are_drawn_where_all_syllables_are_of_one_letter():
    assert len({*map(tuple, text._words(Unlucky()))}) == 14
