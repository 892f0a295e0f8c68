"""The code in the last hint of an exercise runs with whatever its cases hand over, and the papers' places are right."""

import numpy as np
import pytest

from transformer_np.homework import all_exercises
from transformer_np.homework.judging.attempt import argument_names

FRAGMENTS = {  # {exercise: (code, what its names stand for besides the arguments)}
    "rotary": ("np.multiply.outer(positions, frequencies)", {"frequencies": np.ones(3)}),
    "sinusoidal_encoding": ("np.arange(0, d_model, 2)", {}),
    "rotary_frequencies": ("np.arange(0, K, 2)", {}),
    "scaled_dot_product_attention_backward": ("np.swapaxes(x, -1, -2)", {"x": np.ones((2, 3, 4))}),
    "text_windows": ("rng.integers(high, size=B)", {"high": 5, "rng": np.random.default_rng(0), "B": 2}),
}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_a_fragment_runs_on_every_case(name):
    exercise, (code, names) = all_exercises()[name], FRAGMENTS[name]
    assert code in exercise.hints[2]
    for case in exercise.cases(np.random.default_rng(0)):
        given = dict(zip(argument_names(exercise), case.arguments, strict=False)) | case.options | names
        if not case.raises:
            assert isinstance(eval(code, {"np": np}, given), np.ndarray)


def test_what_the_papers_say_otherwise():
    assert "section 4, where p is the probability of keeping" in all_exercises()["dropout"].hints[2]
    assert "beside n finished ones" in all_exercises()["beam_search"].hints[1]


@pytest.mark.parametrize("name", all_exercises())
def test_the_second_hint_is_no_line_of_the_docstring(name):
    exercise = all_exercises()[name]
    lines = [" ".join(line.split()) for line in (exercise.reference.__doc__ or "").splitlines()]
    assert exercise.hints[1] not in lines
