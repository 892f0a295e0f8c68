"""How inputs are drawn that several sheets need."""

from dataclasses import replace
from inspect import signature

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes
from .sheet import results_of


def only(sizes, letters):
    """The sizes of these letters alone: those that the arrays of a case have."""
    return {letter: sizes[letter] for letter in letters.split()}


def of_every_rank(x, others, sizes, **options):
    """The cases of a function of the rows of x, (B, H, T, D), with the same other arguments; the first is the plain
    one, (B, T, D). sizes: those of x, then others."""
    *lead, D = list(sizes)[:4]

    def case(label, x, *without):
        here = {letter: size for letter, size in sizes.items() if letter not in without}
        return Case(label, (x, *others), options, here)

    return [
        case("", x[:, 0], "H"),
        case(f"x of shape (T, {D})", x[0, 0], "B", "H"),
        case("x of four axes", x),
        case(f"x of shape ({D},)", x[0, 0, 0], *lead),
    ]


def sizes_without_squares(rng, letters):
    """Sizes without a square for K: 1/√4 would pass for a mean over two."""
    while True:
        sizes = draw_sizes(rng, letters)
        if sizes.get("K") not in (4, 9):
            return sizes


def far_apart(rng, q, k, signs=(-1, 1)):
    """q and k of the same shapes whose scores are some ±10,000 and so far apart in each row that rounding, in float32
    too, does not decide between them; the largest is another one in each row."""
    across = rng.choice(signs, size=(*q.shape[:-1], 1)) * rng.uniform(0.5, 1.5, size=(*q.shape[:-1], 1))
    ranks = rng.permutation(np.arange(k.shape[-2])) - (k.shape[-2] // 2 if len(signs) > 1 else -1)
    return across * (100 + rng.random(q.shape)), ranks[:, None] * (100 + rng.random(k.shape))


def of_forward(forward, cases, without=()):
    """The cases of a backward function: those of its forward. A backward takes the gradient of the first result, and
    what else it takes has the name of an argument or a result of the forward.

    without: parts of the labels of cases that have no gradient, or the same as another case
    """
    parameters = signature(getattr(F, f"{forward.__name__}_backward")).parameters
    needed = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]

    def backward_cases(rng):
        plain, *others = cases(rng)
        for case in (plain, *others):
            if case.raises or any(part in case.label for part in without):
                continue
            results = forward(*case.arguments, **case.options)
            results = results if isinstance(results, tuple) else (results,)
            known = dict(zip(results_of(forward), results, strict=True))
            known |= signature(forward).bind(*case.arguments, **case.options).arguments
            gradient = rng.normal(size=np.shape(results[0]))
            arguments = tuple(known.get(name, gradient) for name in needed)
            options = {name: value for name, value in case.options.items() if name in parameters.keys() - needed}
            label = case.label if "x" in parameters else case.label.replace("x of", f"{needed[0]} of")
            changed = {"label": label, "arguments": arguments, "options": options}
            if case.options.keys() - parameters.keys() - plain.options.keys():  # the backward sees what it led to
                changed |= {"label": f"{label} in the forward", "extended": False}
            yield replace(case, **changed)

    return backward_cases
