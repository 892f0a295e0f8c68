"""Clipping gradients by their norm."""

import numpy as np

from ... import training
from ...module import Parameter
from ..exercise import Case, draw_sizes, extended
from .adam import flat
from .sheet import Sheet

SHEET = Sheet(__file__)


def clip_cases(rng):
    sizes = draw_sizes(rng, "D_in D_out D", least=3)
    shapes = (sizes["D_in"], sizes["D_out"]), (sizes["D"],), (sizes["D_out"],)

    def case(label, norm, max_norm):
        values, gradients = ([rng.normal(size=shape) for shape in shapes] for _ in range(2))
        gradients[1] = 5 * gradients[1]  # the longest is neither the first nor the last
        factor = norm / np.linalg.norm(flat(gradients))
        return Case(label, (values, [factor * g for g in gradients], max_norm), sizes=sizes)

    overflown = case("a norm that is not finite", 3.0, 1.0)
    overflown.arguments[1][1][0] = np.inf
    return [
        case("", rng.uniform(4, 8), float(rng.uniform(1.5, 2.5))),
        case("max_norm below 1", rng.uniform(2, 4), float(rng.uniform(0.2, 0.5))),
        case("a norm below max_norm", rng.uniform(2, 3), float(rng.uniform(3.5, 4))),
        case("a norm below 1 and max_norm", rng.uniform(0.2, 0.4), float(rng.uniform(0.7, 0.9))),
        case("a norm far below max_norm", rng.uniform(1.2, 1.5), float(rng.uniform(2.5, 3))),
        extended(overflown),
    ]


def drive_clip(answer, values, gradients, max_norm):
    """The norm, all gradients and all data after the call."""
    parameters = [Parameter(array) for array in values]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad[...] = gradient
    norm = answer(parameters, max_norm)
    return (
        np.nan if norm is None else norm,  # to be recognised like any other wrong number
        flat([parameter.grad for parameter in parameters]),
        flat([parameter.data for parameter in parameters]),
    )


def clip_grad_norm(parameters, max_norm):
    squares = [np.sum(p.grad**2) for p in parameters]
    norm = np.sqrt(sum(squares))
    factor = max_norm / norm
    if norm > max_norm and np.isfinite(norm):
        for p in parameters:
            p.grad *= factor
    return norm


EXERCISES = [
    SHEET.exercise(
        training.clip_grad_norm, clip_grad_norm, clip_cases, {"norm": "", "gradients": "number", "data": "number"},
        drive=drive_clip,
    ),
]  # fmt: skip
