"""The shapes that `@shapes` states: what fits is called at once, what does not fit is refused by name."""

import inspect

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np import generate
from transformer_np.inspection.samples import arguments_of, small_model
from transformer_np.models import GPT
from transformer_np.support import shapes as checking
from transformer_np.support.shapes import shapes

STATED = [name for name in F.__all__ if hasattr(F.FUNCTIONS[name], "shapes")]


def others(array):
    """The array with every axis longer, one axis more or less, nothing in it, or of another kind."""
    for axis in range(array.ndim):
        yield np.repeat(array, 2, axis)
        yield np.take(array, [], axis)
        yield np.take(array, [0], axis)
    yield array[None]
    if array.ndim:
        yield array[0]
    yield from (array.astype(np.float32), array.astype(int), array.tolist(), np.asfortranarray(array), None)
    yield array.astype(array.dtype.newbyteorder())


def outcome(call):
    try:
        call()
    except (TypeError, ValueError) as error:
        return str(error)


@pytest.mark.parametrize("name", STATED)
def test_the_quick_test_says_what_the_full_check_says(name, rng, monkeypatch):
    """All that the full check refuses is refused, in its words; what is right does not even get there."""
    function, given = F.FUNCTIONS[name], arguments_of(name, rng)
    with monkeypatch.context() as patch:
        patch.setattr(checking, "_checked", lambda *_: pytest.fail("the quick test refused what is right"))
        function(**given)
        function(*given.values())
    optional = {n for n, p in inspect.signature(function).parameters.items() if p.default is not p.empty}
    refused = 0
    for array in function.shapes:
        for other in others(given[array]):
            call = {**given, array: other}
            message = outcome(lambda call=call: checking._checked(name, dict(call), function.shapes, optional))
            if message is not None:
                assert outcome(lambda call=call: function(**call)) == message
                refused += 1
    assert refused >= len(function.shapes)


def test_an_optional_array(rng):
    @shapes(x="... D", b="E E D")
    def add(x, b=None):
        return x if b is None else x + b.sum(axis=(0, 1))

    x = rng.normal(size=(2, 3))
    assert add(x) is x and add(x, None) is x
    assert add(x, b=rng.normal(size=(2, 2, 3))).shape == x.shape
    with pytest.raises(ValueError, match=r"add: b must have shape \(E, E, D\) .* D = 3; got \(2, 2, 4\)"):
        add(x, rng.normal(size=(2, 2, 4)))
    with pytest.raises(ValueError, match=r"add: b must have shape \(E, E, D\) with .*; got \(2, 4, 3\)"):
        add(x, rng.normal(size=(2, 4, 3)))


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ({"b": "E", "x": "E D"}, "b may be None, so another array must stand before it"),
        ({"x": "D", "b": "E", "c": "E"}, "the letters of c stand before it only in an argument that may be None"),
        ({"x": "D", "rest": "D"}, r"may not have the parameter \*rest"),
    ],
)
def test_a_statement_that_could_not_be_checked(specs, message):
    def function(x, b=None, c=None, *rest):
        pass

    function = function if "rest" in specs else lambda x, b=None, c=None: None
    with pytest.raises(TypeError, match=message):
        shapes(**specs)(function)


def test_a_call_of_the_wrong_arguments():
    with pytest.raises(TypeError, match=r"linear\(\) missing 1 required positional argument: 'w'"):
        F.linear(np.ones((2, 3)))
    with pytest.raises(TypeError, match="unexpected keyword argument 'bias'"):
        F.linear(np.ones((2, 3)), np.ones((3, 2)), bias=None)


def test_a_debugger_shows_the_check():
    code = inspect.getsource(F.FUNCTIONS["linear"].__code__)
    assert code.startswith("def linear(x, w, b=default_b):") and "s_w[-2] == s_x[-1]" in code


def test_nothing_turns_the_checks_off():
    """Not even the decoding of one token after another, where they once took a fifth of the time."""
    refused = []

    class Asking(GPT):
        def forward(self, *inputs, **options):
            refused.append(outcome(lambda: F.linear(np.ones((2, 3)), np.ones((4, 2)))))
            return super().forward(*inputs, **options)

    generate(Asking(small_model("GPT").config), [[1, 2]], 3)
    assert len(refused) == 3 and all(message.startswith("linear: w must have shape") for message in refused)
