"""Clipping gradients by their norm."""

import numpy as np

from ... import training
from ...module import Parameter
from ..exercise import Case, Exercise, Result, draw_sizes
from .adam import flat


def _clip_cases(rng):
    sizes = draw_sizes(rng, "D_in D_out D", least=3)
    shapes = (sizes["D_in"], sizes["D_out"]), (sizes["D"],), (sizes["D_out"],)

    def case(label, norm, max_norm):
        values, gradients = ([rng.normal(size=shape) for shape in shapes] for _ in range(2))
        gradients[1] = 5 * gradients[1]  # the longest is neither the first nor the last
        factor = norm / np.linalg.norm(flat(gradients))
        return Case(label, (values, [factor * g for g in gradients], max_norm), sizes=sizes)

    return [
        case("", rng.uniform(4, 8), float(rng.uniform(1.5, 2.5))),
        case("max_norm below 1", rng.uniform(2, 4), float(rng.uniform(0.2, 0.5))),
        case("a norm below max_norm", rng.uniform(2, 3), float(rng.uniform(3.5, 4))),
        case("a norm far below max_norm", rng.uniform(0.2, 0.4), float(rng.uniform(0.7, 0.9))),
    ]


def _drive_clip(answer, values, gradients, max_norm):
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


def _wrong_clip_grad_norm(made, parameters, max_norm):
    arrays = [p.data if made("norm of the parameters") else p.grad for p in parameters]
    lengths = [float(np.sqrt((g * g).sum())) for g in arrays]
    norm = sum(length**2 for length in lengths) ** 0.5
    everything = flat(arrays)
    if made("root forgotten"):
        norm = norm**2
    if made("norms added"):
        norm = sum(lengths)
    if made("sum of absolute values"):
        norm = np.abs(everything).sum()
    if made("largest value for the norm"):
        norm = np.abs(everything).max()
    if made("largest norm of a parameter"):
        norm = max(lengths)
    if made("g not squared"):
        norm = abs(everything.sum())
    if made("mean for sum"):
        norm = np.sqrt(np.mean(everything**2))
    if made("norm of the last parameter"):
        norm = lengths[-1]
    if made("norm of the first parameter"):
        norm = lengths[0]
    factor = max_norm / norm
    so_far = np.cumsum([length**2 for length in lengths]) ** 0.5
    if made("factor upside down"):
        factor = norm / max_norm
    if made("divided by the norm only"):
        factor = 1 / norm
    if made("multiplied by max_norm only"):
        factor = max_norm
    if made("root of the factor"):
        factor = factor**0.5
    if made("square of the factor"):
        factor = factor**2
    above = norm < max_norm if made("scaled where the norm is below") else norm > max_norm
    if made("squared norm compared with max_norm"):
        above = norm * norm > max_norm
    if made("always scaled"):
        above = True
    for i, (p, length) in enumerate(zip(parameters, lengths, strict=True)):
        g = p.grad
        if made("each parameter by itself"):
            g = g * min(1, max_norm / length)
        elif made("each parameter scaled to max_norm"):
            g = g * (max_norm / length if above else 1)
        elif made("norm of those so far"):
            g = g * min(1, max_norm / so_far[i])
        elif made("every value clipped"):
            g = np.clip(g, -max_norm, max_norm)
        elif above and not made("gradients not scaled"):
            g = g * factor
        if made("gradients set to 0") and above:
            g = 0 * g
        if made("parameters scaled"):
            p.data = p.data * (factor if above else 1)
        elif not (made("only the first gradient scaled") and i) and not (
            made("only the last gradient scaled") and i < len(parameters) - 1
        ):
            p.grad = g
    if made("norm after clipping returned"):
        return min(norm, max_norm)
    if made("factor returned"):
        return factor
    if made("smaller factor returned"):
        return min(1, factor)
    if made("squared norm returned"):
        return norm**2
    return None if made("nothing returned") else norm


CLIP_GRAD_NORM = Exercise(
    training.clip_grad_norm,
    (Result("norm", ""), Result("gradients", "number"), Result("data", "number")),
    _clip_cases,
    {
        "each parameter by itself": (
            "Each parameter is clipped by its own norm. There is one norm over all parameters together, √(Σ g²), and "
            "one factor, so that the direction stays."
        ),
        "each parameter scaled to max_norm": (
            "Where the norm is too large, each parameter is divided by its own norm. There is one factor for all, "
            "max_norm divided by the norm over all parameters together, so that the direction stays."
        ),
        "norm of those so far": (
            "Each gradient is scaled inside the loop that adds up the norm, by the norm of the parameters so far. "
            "First comes the norm over all parameters, then, in a second loop, one factor for all."
        ),
        "every value clipped": (
            "Every value is cut to −max_norm … max_norm, which changes the direction. All gradients are scaled "
            "together, by max_norm / norm."
        ),
        "root forgotten": "The square root is missing: this is Σ g², the norm is √(Σ g²).",
        "norms added": (
            "The norms of the parameters are added. The norm of all is the root of the sum of their squares."
        ),
        "sum of absolute values": "This is the sum of |g|, the L1 norm; the norm is √(Σ g²), L2.",
        "largest value for the norm": (
            "This is the largest |g|, the maximum norm; the norm is √(Σ g²), over all values."
        ),
        "largest norm of a parameter": (
            "This is the largest norm of a single parameter; the norm is √(Σ g²) over all parameters together."
        ),
        "g not squared": "The gradients are added without being squared, so that signs cancel: the norm is √(Σ g²).",
        "mean for sum": "This is the root of the mean of g²; the norm is the root of the sum, √(Σ g²).",
        "norm of the last parameter": (
            "This is the norm of the last parameter alone: the sum has to go on over all parameters, `+=` and not `=`."
        ),
        "norm of the first parameter": (
            "This is the norm of the first parameter alone; the sum runs over all parameters."
        ),
        "norm of the parameters": (
            "This is the norm of the parameters' values, `.data`; it is that of their gradients, `.grad`."
        ),
        "factor upside down": "The factor is norm / max_norm, upside down: the gradients grow. It is max_norm / norm.",
        "divided by the norm only": "The gradients are brought to norm 1: the factor is max_norm / norm, not 1 / norm.",
        "multiplied by max_norm only": "The gradients are multiplied by max_norm: the factor is max_norm / norm.",
        "root of the factor": "The factor is √(max_norm / norm); it is max_norm / norm, without a root.",
        "square of the factor": "The factor is (max_norm / norm)²; it is max_norm / norm, without the square.",
        "always scaled": (
            "The gradients are scaled even where their norm is below max_norm, and so made larger. Only a norm above "
            "max_norm is brought down to it."
        ),
        "scaled where the norm is below": (
            "The comparison is the wrong way round: gradients with a norm below max_norm are scaled, those above are "
            "not."
        ),
        "squared norm compared with max_norm": (
            "Σ g² is compared with max_norm; it is the norm √(Σ g²) that must not be above."
        ),
        "gradients not scaled": (
            "The gradients do not change. `g = g * factor` gives a new array to the local name g: write `p.grad *= "
            "factor`."
        ),
        "gradients set to 0": "Gradients above max_norm are set to 0; they are scaled to the norm max_norm.",
        "only the first gradient scaled": (
            "Only the first gradient is scaled: a `return` or `break` inside the loop ends it too soon."
        ),
        "only the last gradient scaled": (
            "Only the last gradient is scaled: the line has to stand inside a loop over all."
        ),
        "parameters scaled": (
            "The parameters' values, `.data`, are scaled; it is their gradients, `.grad`, that are too large."
        ),
        "norm after clipping returned": (
            "The norm after the clipping is returned. The one before it says more: how often, and how much, was "
            "clipped."
        ),
        "factor returned": "max_norm / norm is returned; it is the norm before clipping.",
        "smaller factor returned": "The factor of the scaling, at most 1, is returned; it is the norm before clipping.",
        "squared norm returned": "Σ g² is returned; it is the norm √(Σ g²), with the root.",
        "nothing returned": "Nothing is returned; it is the norm before clipping, to look at. The `return` is missing.",
    },
    _wrong_clip_grad_norm,
    (
        "What happens to the direction of a step if every parameter is clipped by itself?",
        (
            "norm = √(Σ g²) over all parameters; where norm > max_norm: g · max_norm / norm; the norm before it is "
            "returned"
        ),
        "notebook 07, “Training”, step 4; np.sum, and `p.grad *= factor` to write in place.",
    ),
    difficulty=1,
    section="Pascanu et al. 2013",
    chapter="Training and decoding",
    place=6,
    drive=_drive_clip,
)


EXERCISES = [CLIP_GRAD_NORM]
