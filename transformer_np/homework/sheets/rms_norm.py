"""RMS norm and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from .norm import random_rows

# --- rms_norm --------------------------------------------------------------------------------------------------------


_AXES = {
    "over the batch": lambda ndim: 0,
    "over the positions": lambda ndim: -2,
    "over batch and positions": lambda ndim: tuple(range(ndim - 1)),
    "over positions and features": lambda ndim: tuple(range(ndim)[-2:]),
    "over all numbers at once": lambda ndim: tuple(range(ndim)),
}


def _axis(made, ndim):
    """The axis of the means, or the wrong one."""
    return next((axis(ndim) for name, axis in _AXES.items() if made(name)), -1)


def _summed(made, terms, name):
    """A gradient of γ or β: the sum over the rows, or what is made of it."""
    rows = tuple(range(terms.ndim - 1))
    if made(f"{name} not summed"):
        return terms
    if made(f"{name} averaged"):
        return terms.mean(axis=rows)
    if made(f"{name} divided by the batch"):
        return terms.sum(axis=rows) / len(terms)
    if made(f"{name} summed over the batch only"):
        return terms.sum(axis=0)
    if made(f"{name} summed over the first two axes"):
        return terms.sum(axis=(0, 1))
    if made(f"{name} summed over the positions only"):
        return terms.sum(axis=-2)
    if made(f"{name} summed over the features"):
        return terms.sum(axis=-1)
    if made(f"{name} summed over everything"):
        return terms.sum()
    return terms.sum(axis=rows, keepdims=made(f"{name} with keepdims"))


def _of_vector(name, formula, letter):
    """The mistakes that the gradients of γ and β share."""
    return {
        f"{name} not summed": (
            f"{name} is not summed over the rows: {letter} is one vector of D numbers that met every row, so its "
            f"gradient, Σ {formula}, is summed over all axes but the last and has the shape (D,)."
        ),
        f"{name} averaged": (
            f"{name} is a mean over the rows where it has to be a sum, Σ {formula}: it is too small by the number of "
            "rows. The mean of the loss is already in dy."
        ),
        f"{name} divided by the batch": (
            f"{name} is divided by the size of the batch. The mean of the loss is already in dy: {name} is the sum "
            f"Σ {formula}."
        ),
        f"{name} summed over the batch only": (
            f"{name} is summed over the first axis only. {letter} met every row, so the sum runs over all axes but the "
            "last, batch and positions."
        ),
        f"{name} summed over the positions only": (
            f"{name} is summed over the positions only, axis −2. {letter} met every row, so the sum runs over all axes "
            "but the last, batch and positions."
        ),
        f"{name} summed over the first two axes": (
            f"{name} is always summed over the axes 0 and 1, which is right for (B, T, D) only. The sum runs over all "
            "axes but the last, however many there are."
        ),
        f"{name} summed over the features": (
            f"{name} is summed over the last axis, the features. {letter} has one number for each feature: the sum "
            "runs over all axes but the last and leaves the shape (D,)."
        ),
        f"{name} summed over everything": (
            f"{name} is a single number, summed over the features too. {letter} has one number for each feature: the "
            "sum runs over all axes but the last and leaves the shape (D,)."
        ),
        f"{name} with keepdims": (
            f"{name} keeps axes of length 1 in front, from keepdims=True. It has the shape of {letter}, (D,)."
        ),
    }


def _rms_norm_cases(rng):
    sizes = draw_sizes(rng, "B T D H", least=3)
    B, T, D, H = sizes.values()
    x = random_rows(rng, (B, T, D), 1.5, 3)  # so large that the default ε does not show
    gamma = rng.normal(size=D)
    level = x.copy()
    level[-1, 0] = 0
    plain = {"B": B, "T": T, "D": D}
    return [
        Case("", (x, gamma), sizes=plain),
        Case("eps=0.3", (x, gamma), {"eps": 0.3}, plain),
        Case("numbers so small that ε counts", (0.0015 * x, gamma), sizes=plain),
        Case("a row of zeros", (level, gamma), sizes=plain),
        Case("x of shape (T, D)", (x[0], gamma), {"eps": 0.1}, {"T": T, "D": D}),
        Case("x of shape (B, H, T, D)", (random_rows(rng, (B, H, T, D), 1.5, 3), gamma), sizes=sizes),
        Case("one row, x of shape (D,)", (x[0, 0], gamma), {"eps": 0.2}, {"D": D}),
    ]


_DEFAULTS = (1e-3, 1e-5, 1e-8, 1e-12)  # for eps, in place of 1e-6


def _other_default(eps):
    return f"eps={eps:g} by default"


def _wrong_rms_norm(made, x, gamma, eps=1e-6):
    axis, keep, D = _axis(made, x.ndim), not made("mean square without keepdims"), x.shape[-1]
    if made("eps not used"):
        eps = 1e-6
    for default in _DEFAULTS:
        if made(_other_default(default)) and eps == 1e-6:
            eps = default
    if made("eps forgotten"):
        eps = 0.0
    if made("eps squared"):
        eps = eps * eps
    if made("eps added to the sum of the squares"):
        eps = eps / D
    if made("γ before the norm"):
        x, gamma = x * gamma, np.ones_like(gamma)
    centred = x - x.mean(axis=axis, keepdims=True)
    above = centred if made("centred") or made("mean subtracted above the root only") else x
    below = centred if made("centred") or made("variance for the mean square") else x
    mean_square = (below**2).mean(axis=axis, keepdims=keep)
    if made("sum for the mean"):
        mean_square = (below**2).sum(axis=axis, keepdims=keep)
    if made("divided by D − 1"):
        mean_square = mean_square * (D / (D - 1))
    if made("square of the mean"):
        mean_square = below.mean(axis=axis, keepdims=keep) ** 2
    if made("mean of the absolute values"):
        mean_square = np.abs(below).mean(axis=axis, keepdims=keep) ** 2
    if made("largest number for the root mean square"):
        mean_square = np.abs(below).max(axis=axis, keepdims=keep) ** 2
    if made("not squared"):
        mean_square = below.mean(axis=axis, keepdims=keep)
    if made("eps outside the root"):
        rms = np.sqrt(mean_square) + eps
    elif made("eps inside and outside the root"):
        rms = np.sqrt(mean_square + eps) + eps
    elif made("eps as a lower bound"):
        rms = np.sqrt(np.maximum(mean_square, eps))
    elif made("mean square not rooted"):
        rms = mean_square + eps
    else:
        rms = np.sqrt(mean_square + eps)
    inv_rms = rms if made("multiplied by the root mean square") else 1 / rms
    x_hat = above * inv_rms
    y = x if made("γ on x itself") else x_hat
    if made("1 + γ for γ"):
        y = y * (1 + gamma)
    elif made("γ added"):
        y = y + gamma
    elif made("divided by γ"):
        y = y / gamma
    elif not made("γ forgotten"):
        y = y * gamma
    if made("y for x_hat"):
        x_hat = y
    if made("x for x_hat"):
        x_hat = x
    if made("root mean square for inv_rms"):
        inv_rms = 1 / inv_rms
    if made("mean square for inv_rms"):
        inv_rms = mean_square
    if made("inverse mean square for inv_rms"):
        inv_rms = inv_rms**2
    if made("inv_rms without ε"):
        inv_rms = 1 / np.sqrt(mean_square)
    if made("inv_rms without its axis"):
        inv_rms = inv_rms[..., 0]
    if made("inv_rms repeated"):
        inv_rms = inv_rms * np.ones_like(x)
    return (y, inv_rms, x_hat) if made("x_hat and inv_rms swapped") else (y, x_hat, inv_rms)


RMS_NORM = Exercise(
    F.rms_norm,
    (Result("y", "... D"), Result("x_hat", "... D"), Result("inv_rms", "... 1")),
    _rms_norm_cases,
    {
        "centred": (
            "The mean μ is subtracted: this is layer norm without β, (x − μ) / √(σ² + ε). RMS norm leaves the mean in, "
            "x / √(mean(x²) + ε): that saves a pass over the numbers and works as well."
        ),
        "mean subtracted above the root only": (
            "The mean is subtracted from the x above the root. RMS norm has no centring: x̂ = x / √(mean(x²) + ε)."
        ),
        "variance for the mean square": (
            "x is divided by the standard deviation: the mean is subtracted under the root. It is the mean of x² "
            "itself, x / √(mean(x²) + ε), without centring."
        ),
        "mean square without keepdims": (
            "The mean square loses the axis it was taken over, so it has the shape (B, T) and does not broadcast "
            "against x, (B, T, D). keepdims=True leaves an axis of length 1: (B, T, 1)."
        ),
        "sum for the mean": (
            "Under the root is the sum Σ x², not divided by D: it has to be the mean. So x̂ has length 1 instead of a "
            "mean square of 1."
        ),
        "divided by D − 1": "The squares are divided by D − 1 (ddof=1). Their mean divides by D.",
        "square of the mean": "This is the square of the mean, mean(x)². It has to be the mean of squares, mean(x²).",
        "mean of the absolute values": (
            "x is divided by the mean of |x| instead of by the root of the mean of x²."
        ),
        "largest number for the root mean square": (
            "x is divided by the largest |x| of its row instead of by the root of the mean of x²."
        ),
        "not squared": (
            "Under the root is the mean of x: the square is missing, √(mean(x²) + ε). The root of a negative mean is "
            "NaN."
        ),
        "mean square not rooted": (
            "x is divided by mean(x²) + ε; the square root is missing. Only √(mean(x²) + ε) makes the mean square of "
            "x̂ 1."
        ),
        "multiplied by the root mean square": "x is multiplied by √(mean(x²) + ε); it has to be divided by it.",
        "eps not used": "The argument `eps` is not used: the number under the root is always the same.",
        **{
            _other_default(eps): (
                f"The default is eps={eps:g} instead of eps=1e-6, which shows where the mean square is small."
            )
            for eps in _DEFAULTS
        },
        "eps forgotten": "ε is missing under the root, √(mean(x²) + ε). In a row of zeros this divides by 0.",
        "eps outside the root": (
            "ε is added to the root mean square, √mean(x²) + ε; it belongs under the root: √(mean(x²) + ε)."
        ),
        "eps inside and outside the root": (
            "ε is added twice: under the root, where it belongs, and once more after it."
        ),
        "eps squared": "ε is squared, √(mean(x²) + ε²). It is added to the mean square as it is.",
        "eps added to the sum of the squares": (
            "ε is added to the sum of the squares before that is divided by D: ε/D instead of ε. It is added to the "
            "mean, √(mean(x²) + ε)."
        ),
        "eps as a lower bound": (
            "ε is a lower bound of the mean square, max(mean(x²), ε), instead of a summand: √(mean(x²) + ε) has it in "
            "every row."
        ),
        "over the batch": (
            "The mean square runs over the first axis, the sentences of the batch. It runs over the last one, the D "
            "features of one word: a sentence must not depend on its neighbours."
        ),
        "over the positions": (
            "The mean square runs over the positions, axis −2, instead of over the D features of one word, axis −1. So "
            "a word depends on later ones, past every mask."
        ),
        "over batch and positions": (
            "There is one mean square for each feature, over all words of all sentences, as in batch norm. It is one "
            "for each word, over its D features, axis −1."
        ),
        "over positions and features": (
            "The mean square runs over positions and features together, axes (−2, −1): one for a whole sentence. It is "
            "one for each word, over axis −1 alone."
        ),
        "over all numbers at once": (
            "There is one mean square for the whole array. It is one for every row: axis=-1."
        ),
        "γ forgotten": "The scale is missing: y = γ · x̂. γ = 1 at the start of a training hides this.",
        "1 + γ for γ": "x̂ is scaled by 1 + γ, as in some other models. Here γ is the scale itself: y = γ · x̂.",
        "γ added": "γ is added to x̂ as if it were a shift; it scales: y = γ · x̂. RMS norm in T5 has no shift.",
        "divided by γ": "x̂ is divided by γ; it has to be multiplied by it: y = γ · x̂.",
        "γ on x itself": "γ is applied to x instead of to the normalised x̂: y = γ · x̂.",
        "γ before the norm": (
            "x is multiplied by γ before it is normalised, so that γ is in the mean square too. First the norm, then "
            "the scale: y = γ · x̂."
        ),
        "y for x_hat": (
            "What is returned as x_hat is y, γ · x̂. The backward needs x̂ itself, before γ: dγ = Σ dy · x̂."
        ),
        "x for x_hat": "The input x is returned as x_hat; the backward needs x̂ = x / √(mean(x²) + ε).",
        "root mean square for inv_rms": (
            "What is returned as inv_rms is √(mean(x²) + ε); inv_rms is its inverse, by which the backward multiplies."
        ),
        "mean square for inv_rms": (
            "What is returned as inv_rms is the mean square, mean(x²); inv_rms is 1/√(mean(x²) + ε)."
        ),
        "inverse mean square for inv_rms": (
            "What is returned as inv_rms is 1/(mean(x²) + ε), without the square root: inv_rms is 1/√(mean(x²) + ε)."
        ),
        "inv_rms without ε": (
            "What is returned as inv_rms is 1/√mean(x²), without the ε that x̂ was divided with: it is 1/√(mean(x²) + "
            "ε)."
        ),
        "inv_rms without its axis": (
            "inv_rms has lost the last axis: (B, T) instead of (B, T, 1). With the axis of length 1, keepdims=True, it "
            "broadcasts against x̂ in the backward."
        ),
        "inv_rms repeated": (
            "inv_rms is repeated for every feature. It is one number for each row: the shape is (…, 1), not (…, D)."
        ),
        "x_hat and inv_rms swapped": "x_hat and inv_rms are returned in the wrong order: y, x_hat, inv_rms.",
    },
    _wrong_rms_norm,
    (
        "Which of the two things that layer norm does to a row is left when nothing is subtracted?",
        "y = γ · x̂,  x̂ = x / √(mean(x²) + ε), the mean over the last axis",
        "notebook 13; layer_norm of notebook 04, section 6, has the rest. ndarray.mean with axis=-1 and keepdims=True.",
    ),
    difficulty=1,
    section="Zhang & Sennrich 2019",
    chapter="T5",
    place=1,
)  # fmt: skip


# --- rms_norm_backward -----------------------------------------------------------------------------------------------


def _rms_norm_backward_cases(rng):
    cases = []
    for case in _rms_norm_cases(rng):
        x, gamma = case.arguments
        _, x_hat, inv_rms = F.rms_norm(x, gamma, case.options.get("eps", 0.01))
        label = case.label.replace("eps=0.3", "a forward with eps=0.3")
        cases.append(Case(label, (rng.normal(size=x.shape), x_hat, inv_rms, gamma), sizes=case.sizes))
    return cases


def _wrong_rms_norm_backward(made, dy, x_hat, inv_rms, gamma):
    D, axis = dy.shape[-1], _axis(made, dy.ndim)
    terms = dy if made("dgamma without x̂") else dy * x_hat
    if made("dgamma with γ"):
        terms = terms * gamma
    if made("dgamma of x"):
        terms = terms / inv_rms
    if made("dgamma with inv_rms"):
        terms = terms * inv_rms
    dgamma = _summed(made, terms, "dgamma")

    dx_hat = dy if made("γ missing in dx") or made("γ after the mean") else dy * gamma
    if made("dx̂ divided by γ"):
        dx_hat = dy / gamma
    if made("x̂ for γ in dx̂"):
        dx_hat = dy * x_hat
    inside = dy if made("γ missing in the mean") else dx_hat
    keep = not made("mean without keepdims")
    if made("product of the means"):
        mean = inside.mean(axis=axis, keepdims=keep) * x_hat.mean(axis=axis, keepdims=keep)
    else:
        factor = 1.0 if made("x̂ missing inside the mean") else x_hat
        mean = (inside * factor).mean(axis=axis, keepdims=keep)
    if made("sum for the mean"):
        mean = mean * D
    if made("mean divided by D − 1"):
        mean = mean * D / (D - 1)
    if made("mean term doubled"):
        mean = 2 * mean
    if made("mean term halved"):
        mean = mean / 2
    if made("mean term with one inv_rms too many"):
        mean = mean * inv_rms
    if made("mean term with x for both x̂"):
        mean = mean / inv_rms**2
    if made("mean term with inv_rms² too much"):
        mean = mean * inv_rms**2
    if made("mean term added"):
        mean = -mean
    second = mean if made("x̂ missing before the mean") else x_hat * mean
    if made("both x̂ before the mean"):
        second = x_hat * x_hat * inside.mean(axis=axis, keepdims=True)
    if made("mean term missing"):
        second = 0
    if made("mean(dx̂) subtracted too"):
        second = second + dx_hat.mean(axis=axis, keepdims=True)
    if made("only mean(dx̂) subtracted"):
        second = dx_hat.mean(axis=axis, keepdims=True)
    if made("only the diagonal"):
        second = dx_hat * x_hat * x_hat / D
    scale = inv_rms
    if made("inv_rms forgotten"):
        scale = 1.0
    if made("inv_rms squared"):
        scale = inv_rms**2
    if made("divided by inv_rms"):
        scale = 1 / inv_rms
    dx = (dx_hat - second) * scale
    if made("mean term outside the bracket"):
        dx = dx_hat * inv_rms - second
    if made("γ after the mean"):
        dx = dx * gamma
    if made("dx divided by the number of rows"):
        dx = dx / (dy.size // D)
    if made("dx divided by the batch"):
        dx = dx / len(dy)
    if made("dx divided by D"):
        dx = dx / D
    if made("dy added to dx"):
        dx = dx + dy
    return (dgamma, dx) if made("dx and dgamma swapped") else (dx, dgamma)


RMS_NORM_BACKWARD = Exercise(
    F.rms_norm_backward,
    (Result("dx", "... D"), Result("dgamma", "D")),
    _rms_norm_backward_cases,
    {
        "mean(dx̂) subtracted too": (
            "mean(dx̂) is subtracted too: this is the backward of layer norm. RMS norm subtracts no mean, so nothing "
            "comes back through one: dx = (dx̂ − x̂ · mean(dx̂ · x̂)) / √(mean(x²) + ε)."
        ),
        "only mean(dx̂) subtracted": (
            "mean(dx̂) is subtracted, and x̂ · mean(dx̂ · x̂) is not. It is the other way round: RMS norm has no mean that "
            "was subtracted, but every x of a row is in its mean square."
        ),
        "mean term missing": (
            "The term −x̂ · mean(dx̂ · x̂) is missing, as if mean(x²) were a constant. Every x of a row is in its mean "
            "square, and this is the way through it."
        ),
        "mean without keepdims": (
            "The mean loses the axis it was taken over, so it has the shape (B, T) and does not broadcast against x̂, "
            "(B, T, D). keepdims=True leaves an axis of length 1: (B, T, 1)."
        ),
        "γ missing in dx": (
            "γ is missing in dx: the gradient of x̂ is dx̂ = dy · γ. γ = 1 at the start of a training hides this."
        ),
        "γ after the mean": (
            "γ is multiplied at the end. It belongs before the mean, dx̂ = dy · γ, because the mean mixes the features, "
            "and each has its own γ."
        ),
        "dx̂ divided by γ": "dy is divided by γ on the way to x̂: y = γ · x̂ gives dx̂ = dy · γ.",
        "x̂ for γ in dx̂": (
            "dy is multiplied by x̂ on the way to x̂: that is dγ before the sum. y = γ · x̂ gives dx̂ = dy · γ."
        ),
        "γ missing in the mean": "The mean is mean(dy · x̂): γ is missing in it. It is mean(dx̂ · x̂) with dx̂ = dy · γ.",
        "x̂ missing inside the mean": (
            "The term through the mean square is x̂ · mean(dx̂): the x̂ inside the mean is missing, x̂ · mean(dx̂ · x̂)."
        ),
        "x̂ missing before the mean": (
            "The term through the mean square is mean(dx̂ · x̂), the same for the whole row: the x̂ in front of it is "
            "missing."
        ),
        "both x̂ before the mean": (
            "The term is x̂² · mean(dx̂). Only one x̂ stands before the mean, the other is inside: x̂ · mean(dx̂ · x̂)."
        ),
        "product of the means": (
            "The term is x̂ · mean(dx̂) · mean(x̂), a product of two means. It is the mean of the product, mean(dx̂ · x̂)."
        ),
        "sum for the mean": (
            "The term is x̂ · Σ dx̂ · x̂ where it has to be a mean over the features: it is too large by the factor D."
        ),
        "mean divided by D − 1": "The mean over the features is divided by D − 1 instead of D.",
        "mean term added": (
            "The term is added where it has to be subtracted: dx̂ − x̂ · mean(dx̂ · x̂). A sign is wrong."
        ),
        "mean term doubled": (
            "The term x̂ · mean(dx̂ · x̂) is too large by a factor 2. The 2 from x² and the ½ from the root cancel."
        ),
        "mean term halved": (
            "The term x̂ · mean(dx̂ · x̂) is too small by a factor 2. The 2 from x² and the ½ from the root cancel."
        ),
        "mean term with one inv_rms too many": (
            "The term through the mean square has one factor inv_rms = 1/√(mean(x²) + ε) too many: with x̂ for x only "
            "one is left, inv_rms · x̂ · mean(dx̂ · x̂)."
        ),
        "mean term with inv_rms² too much": (
            "The term through the mean square has inv_rms² too much, inv_rms³ in all. That is right with x itself; x̂ = "
            "x · inv_rms, and there are two of them, so with x̂ one is left: inv_rms · x̂ · mean(dx̂ · x̂)."
        ),
        "mean term with x for both x̂": (
            "The term through the mean square is made with x, x · mean(dx̂ · x): it needs the normalised x̂ in both "
            "places, x̂ · mean(dx̂ · x̂)."
        ),
        "mean term outside the bracket": (
            "Only dx̂ is divided by √(mean(x²) + ε), the term x̂ · mean(dx̂ · x̂) is not. inv_rms stands before both: a "
            "bracket is missing."
        ),
        "only the diagonal": (
            "This is the diagonal of the Jacobian alone, dx̂ · (1 − x̂²/D) / √(mean(x²) + ε), as if each output hung on "
            "its own x only. Every x of a row is in the mean square, and so in all outputs of the row."
        ),
        "inv_rms forgotten": "The factor inv_rms is missing in dx: everything is divided by √(mean(x²) + ε).",
        "inv_rms squared": "inv_rms is in dx twice: dx̂ and the mean are divided by √(mean(x²) + ε) once.",
        "divided by inv_rms": "dx is divided by inv_rms. It is 1/√(mean(x²) + ε) already: multiply by it.",
        "over the batch": "The mean runs over the first axis, the batch; it runs over the features of a row, axis −1.",
        "over the positions": (
            "The mean runs over the positions, axis −2; it runs over the features of a row, axis −1."
        ),
        "over batch and positions": (
            "The mean runs over batch and positions; it runs over the features of a row, axis −1."
        ),
        "over positions and features": (
            "The mean runs over positions and features together; it runs over the features of a row alone, axis −1."
        ),
        "over all numbers at once": "The mean runs over the whole array; it runs over the features of a row, axis −1.",
        "dx divided by the number of rows": (
            "dx is divided by the number of rows. A row depends on its own numbers only, and the mean of the loss is "
            "already in dy."
        ),
        "dx divided by the batch": "dx is divided by the size of the batch. The mean of the loss is already in dy.",
        "dx divided by D": "dx as a whole is divided by D. Only the subtracted term is a mean over D.",
        "dy added to dx": (
            "dy is added to dx, as if there were a residual path around the norm. That is not part of this function."
        ),
        **_of_vector("dgamma", "dy · x̂", "γ"),
        "dgamma without x̂": "x̂ is missing in dgamma, as if γ were a shift: y = γ · x̂ gives dγ = Σ dy · x̂.",
        "dgamma with γ": "γ is a factor in dgamma: y is linear in γ, so dγ = Σ dy · x̂, with dy and not with dx̂.",
        "dgamma of x": "dgamma is Σ dy · x: what γ multiplies is the normalised x̂, dγ = Σ dy · x̂.",
        "dgamma with inv_rms": "inv_rms is a factor in dgamma. It is in x̂ already: dγ = Σ dy · x̂.",
        "dx and dgamma swapped": "dx and dgamma are returned in the wrong order: dx, dgamma.",
    },
    _wrong_rms_norm_backward,
    (
        "x reaches y by itself and through the mean square of its row. What does each of the two ways contribute?",
        "dx = (dx̂ − x̂ · mean(dx̂ · x̂)) / √(mean(x²) + ε),  dx̂ = dy · γ,  dγ = Σ dy · x̂ over the rows",
        "notebook 13; layer norm in notebook 06, section 5; a mean over axis −1 with keepdims=True.",
    ),
    difficulty=3,
    section="Zhang & Sennrich 2019",
    chapter="T5",
    place=2,
)  # fmt: skip


EXERCISES = [RMS_NORM, RMS_NORM_BACKWARD]
