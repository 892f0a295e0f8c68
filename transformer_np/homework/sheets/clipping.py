"""Clipping gradients by their norm."""

import numpy as np

from ... import training
from ...module import Parameter
from ..exercise import Case, Exercise, Result, draw_sizes, extended
from .adam import flat


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
        case("a norm far below max_norm", rng.uniform(0.2, 0.4), float(rng.uniform(0.7, 0.9))),
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


CLIP_GRAD_NORM = Exercise(
    training.clip_grad_norm,
    results=(Result("norm", ""), Result("gradients", "number"), Result("data", "number")),
    cases=clip_cases,
    answer=clip_grad_norm,
    hints=(
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
    drive=drive_clip,
    mistakes="""
- each parameter by itself:
    if norm > max_norm and np.isfinite(norm): for p in parameters: p.grad *= factor ->
        for p in parameters:
            p.grad *= min(1, max_norm / np.linalg.norm(p.grad))
  Each parameter is clipped by its own norm. There is one norm over all parameters together, √(Σ g²), and one factor, so
  that the direction stays.
- each parameter scaled to max_norm:  p.grad *= factor -> p.grad *= max_norm / np.linalg.norm(p.grad)
  Where the norm is too large, each parameter is divided by its own norm. There is one factor for all, max_norm divided
  by the norm over all parameters together, so that the direction stays.
- norm of those so far:
    total = 0.0
    for p in parameters:
        total += np.sum(p.grad**2)
        p.grad *= min(1, max_norm / np.sqrt(total))
    return np.sqrt(total)
  Each gradient is scaled inside the loop that adds up the norm, by the norm of the parameters so far. First comes the
  norm over all parameters, then, in a second loop, one factor for all.
- every value clipped:  p.grad *= factor -> p.grad = np.clip(p.grad, -max_norm, max_norm)
  Every value is cut to −max_norm … max_norm, which changes the direction. All gradients are scaled together, by
  max_norm / norm.
- root forgotten:  np.sqrt(sum(squares)) -> sum(squares)
  The square root is missing: this is Σ g², the norm is √(Σ g²).
- norms added:  np.sqrt(sum(squares)) -> sum(np.sqrt(squares))
  The norms of the parameters are added. The norm of all is the root of the sum of their squares.
- sum of absolute values:
    p.grad**2 -> np.abs(p.grad)
    np.sqrt(sum(squares)) -> sum(squares)
  This is the sum of |g|, the L1 norm; the norm is √(Σ g²), L2.
- largest value for the norm:
    np.sum(p.grad**2) -> np.max(np.abs(p.grad))
    np.sqrt(sum(squares)) -> max(squares)
  This is the largest |g|, the maximum norm; the norm is √(Σ g²), over all values.
- largest norm of a parameter:  sum(squares) -> max(squares)
  This is the largest norm of a single parameter; the norm is √(Σ g²) over all parameters together.
- g not squared:
    p.grad**2 -> p.grad
    np.sqrt(sum(squares)) -> abs(sum(squares))
  The gradients are added without being squared, so that signs cancel: the norm is √(Σ g²).
- mean for sum:  sum(squares) -> sum(squares) / sum(p.grad.size for p in parameters)
  This is the root of the mean of g²; the norm is the root of the sum, √(Σ g²).
- norm of the last parameter:  sum(squares) -> squares[-1]
  This is the norm of the last parameter alone: the sum has to go on over all parameters, `+=` and not `=`.
- norm of the first parameter:  sum(squares) -> squares[0]
  This is the norm of the first parameter alone; the sum runs over all parameters.
- norm of the parameters:  p.grad**2 -> p.data**2
  This is the norm of the parameters' values, `.data`. Take the norm of their gradients, `.grad`.
- factor upside down:  max_norm / norm -> norm / max_norm
  The factor is norm / max_norm, upside down: the gradients grow. It is max_norm / norm.
- divided by the norm only:  max_norm / norm -> 1 / norm
  The gradients are brought to norm 1: the factor is max_norm / norm, not 1 / norm.
- multiplied by max_norm only:  max_norm / norm -> max_norm
  The gradients are multiplied by max_norm: the factor is max_norm / norm.
- root of the factor:  max_norm / norm -> np.sqrt(max_norm / norm)
  The factor is √(max_norm / norm); it is max_norm / norm, without a root.
- square of the factor:  max_norm / norm -> (max_norm / norm) ** 2
  The factor is (max_norm / norm)²; it is max_norm / norm, without the square.
- always scaled:  norm > max_norm -> norm > 0
  The gradients are scaled even where their norm is below max_norm, and so made larger. Only a norm above max_norm is
  brought down to it.
- scaled where the norm is below:  norm > max_norm -> norm < max_norm
  The comparison is the wrong way round: gradients with a norm below max_norm are scaled, those above are not.
- squared norm compared with max_norm:  norm > max_norm -> norm**2 > max_norm
  Σ g² is compared with max_norm; it is the norm √(Σ g²) that must not be above.
- gradients not scaled:  p.grad *= factor -> g = p.grad; g = g * factor
  The gradients do not change. `g = g * factor` gives a new array to the local name g: write `p.grad *= factor`.
- gradients set to 0:  p.grad *= factor -> p.grad *= 0
  Gradients above max_norm are set to 0; they are scaled to the norm max_norm.
- only the first gradient scaled:  p.grad *= factor -> p.grad *= factor; break
  Only the first gradient is scaled: a `return` or `break` inside the loop ends it too soon.
- only the last gradient scaled:
    for p in parameters: p.grad *= factor ->
        for p in parameters:
            g = p.grad
        g *= factor
  Only the last gradient is scaled: the line has to stand inside a loop over all.
- parameters scaled:  p.grad *= factor -> p.data *= factor
  The parameters' values, `.data`, are scaled; it is their gradients, `.grad`, that are too large.
- norm after clipping returned:  return norm -> return min(norm, max_norm)
  The norm after clipping is returned. Return the norm before clipping: it shows how often and how much was clipped.
- factor returned:  return norm -> return factor
  max_norm / norm is returned; it is the norm before clipping.
- smaller factor returned:  return norm -> return min(1, factor)
  The factor of the scaling, at most 1, is returned; it is the norm before clipping.
- squared norm returned:  return norm -> return norm**2
  Σ g² is returned; it is the norm √(Σ g²), with the root.
- nothing returned:  return norm -> pass
  Nothing is returned; it is the norm before clipping, to look at. The `return` is missing.
""",
)


EXERCISES = [CLIP_GRAD_NORM]
