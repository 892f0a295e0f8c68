"""What T5 does otherwise: RMS norm, a learned bias for each distance, attention without scale, a feed-forward network
with a gate; and their backwards."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from .activations import _sigmoid
from .attention import (
    _SCALES,
    SCALED_DOT_PRODUCT_ATTENTION,
    SCALED_DOT_PRODUCT_ATTENTION_BACKWARD,
    _cases,
    _products,
    _some_hidden,
    _wrong_attention,
    _wrong_backward,
    _wrong_dscores,
)
from .linear import _GRADIENT_MISTAKES, _without_heads, _wrong_gradients
from .norm import _axis, _of_vector, _rows, _summed

# --- rms_norm --------------------------------------------------------------------------------------------------------


def _rms_norm_cases(rng):
    sizes = draw_sizes(rng, "B T D H", least=3)
    B, T, D, H = sizes.values()
    x = _rows(rng, (B, T, D), 1.5, 3)  # so large that the default ε does not show
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
        Case("x of shape (B, H, T, D)", (_rows(rng, (B, H, T, D), 1.5, 3), gamma), sizes=sizes),
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
)  # fmt: skip


# --- relative_position_buckets ---------------------------------------------------------------------------------------


def _no_boundary(N, max_distance, T):
    """Whether no distance below T is just where a bucket begins: there rounding decides, in float32 and float64."""
    half = N // 2
    n = np.arange(half + 1, min(T, max_distance))
    growth = np.log(n / half) / np.log(max_distance / half) * (N - half)
    return bool((np.abs(growth - np.round(growth)) > 1e-4).all())


def _buckets_cases(rng):
    T, S = (int(n) for n in (rng.integers(4, 8), rng.integers(12, 15)))  # below 16, where 32 buckets have a boundary
    while True:
        N, max_distance = 2 * int(rng.integers(3, 7)), int(rng.integers(16, 25))
        far = int(max_distance * (max_distance / (N // 2)) ** (2 / N)) + 4  # reaches a bucket behind N, were there one
        if _no_boundary(N, max_distance, far) and _no_boundary(2 * N, max_distance, far):
            break
    both, one = {"num_buckets": 2 * N, "max_distance": max_distance}, {"bidirectional": False}
    return [
        Case("", (far,), both, {"T": far, "S": far}),
        Case("S > T", (T, far), both, {"T": T, "S": far}),
        Case("num_buckets and max_distance not given", (S,), sizes={"T": S, "S": S}),
        Case("S > T and no options", (T, S), sizes={"T": T, "S": S}),
        Case("another num_buckets", (S,), {"num_buckets": 16}, {"T": S, "S": S}),
        Case("bidirectional=False", (S,), {"num_buckets": N, "max_distance": max_distance, **one}, {"T": S, "S": S}),
        Case("bidirectional=False, all distances", (far,), both | one, {"T": far, "S": far}),
        Case("bidirectional=False and S > T", (T, far), both | one, {"T": T, "S": far}),
        Case("one query, the last", (1, far), both | {"bidirectional": True}, {"T": 1, "S": far}),
    ]


def _wrong_buckets(made, T, S=None, num_buckets=32, max_distance=128, bidirectional=None):
    if bidirectional is None:
        bidirectional = not made("bidirectional=False by default")
    if made("always bidirectional"):
        bidirectional = True
    if made("never bidirectional"):
        bidirectional = False
    if made("num_buckets not used"):
        num_buckets = 32
    if made("max_distance not used"):
        max_distance = 128
    S = T if S is None or made("S not used") else S
    offset = S - T
    if made("queries from the first position on"):
        offset = 0
    if made("queries moved by T − S"):
        offset = T - S
    before = np.arange(T)[:, None] + offset - np.arange(S)
    if made("key's position minus query's"):
        before = -before
    N = num_buckets
    if bidirectional or made("halved in one direction too"):
        N = num_buckets // 2
    second = N  # where the buckets of the later keys begin
    if bidirectional and made("num_buckets not halved"):
        N, second = num_buckets, num_buckets
    if bidirectional and made("num_buckets halved for the later keys only"):
        N = num_buckets
    if made("num_buckets halved once too often"):
        N, second = N // 2, N // 2
    half = N // 2
    if made("a quarter of the buckets exact"):
        half = max(1, N // 4)
    if bidirectional:
        n = before if made("no absolute value") else np.abs(before)
    elif made("no maximum with 0 in one direction"):
        n = before
    elif made("later keys by their distance in one direction"):
        n = np.abs(before)
    else:
        n = np.maximum(-before if made("earlier keys in bucket 0") else before, 0)
    at_least_1 = np.maximum(n, 1)
    above, below = np.log(at_least_1 / half), np.log(max_distance / half)
    if made("n not divided by N/2") or made("neither divided by N/2"):
        above = np.log(at_least_1)
    if made("max_distance not divided by N/2") or made("neither divided by N/2"):
        below = np.log(max_distance)
    if made("logarithm to base 2 above"):
        above = above / np.log(2)
    if made("logarithm to base 2 below"):
        below = below / np.log(2)
    if made("no logarithm"):
        above, below = at_least_1 - half, max_distance - half
    if made("quotient without logarithm"):
        above, below = at_least_1 / half, max_distance / half
    growth = above / below
    if made("floored before it is multiplied"):
        growth = np.floor(growth)
    growth = growth * (N if made("times N instead of N/2") else N - half - made("times N/2 − 1 instead of N/2"))
    if made("rounded instead of floored"):
        growth = np.round(growth)
    if made("rounded up"):
        growth = np.ceil(growth)
    far = np.floor(growth).astype(int)
    if not made("N/2 not added"):
        far = far + half + made("far buckets one too high")
    if made("everything beyond N/2 in one bucket"):
        far = np.full_like(far, half)
    if made("N buckets, one for each distance"):
        far = n
    if made("everything beyond N/2 in the last bucket"):
        far = np.full_like(far, N - 1)
    if made("cut off at N"):
        far = np.minimum(far, N)
    elif not made("not cut off"):
        far = np.minimum(far, N - 1)
    buckets = np.where(n < half, n, far)
    if made("the distance itself"):
        buckets = n
    if made("all distances by their logarithm"):
        growth = np.log(at_least_1) / np.log(max_distance) * N
        buckets = np.minimum(np.floor(growth).astype(int), N - 1)
    if bidirectional and not made("no second half for later keys"):
        later = before < 0
        if made("earlier keys in the second half"):
            later = before > 0
        if made("distance 0 in the second half"):
            later = before <= 0
        buckets = buckets + (second - made("later keys one bucket lower")) * later
    if made("buckets from 1"):
        buckets = buckets + 1
    return buckets.T if made("transposed") else buckets


RELATIVE_POSITION_BUCKETS = Exercise(
    F.relative_position_buckets,
    (Result("buckets", "T S"),),
    _buckets_cases,
    {
        "key's position minus query's": (
            "The sign of the distance is wrong: past and future have changed places. Here the distance is the query's "
            "position minus the key's, so keys before the query have the first half of the buckets, and with "
            "bidirectional=False it is the keys after it that share bucket 0."
        ),
        "earlier keys in the second half": (
            "The two halves have changed places: keys before the query (and itself) have the buckets 0 … N − 1, keys "
            "after it N … 2N − 1."
        ),
        "earlier keys in bucket 0": (
            "With bidirectional=False the keys before the query share bucket 0. It is the keys after it, which the "
            "causal mask hides; the past is what the buckets are for."
        ),
        "distance 0 in the second half": (
            "The query itself, distance 0, is in the second half of the buckets. It belongs to the first, bucket 0: "
            "the second half is for keys after the query, s > t, not ≥."
        ),
        "no second half for later keys": (
            "Keys after the query have the same buckets as keys as far before it: with bidirectional=True they have "
            "the second half, + N, so that the model can tell past from future."
        ),
        "later keys one bucket lower": (
            "The buckets of later keys begin one too low, so that none stays empty. They are N + the bucket of the "
            "distance; bucket N, distance 0 after the query, is never used."
        ),
        "no absolute value": (
            "With bidirectional=True the distance of later keys is negative and never far: the absolute value is "
            "missing, n = |distance|."
        ),
        "no maximum with 0 in one direction": (
            "With bidirectional=False later keys have negative buckets: the maximum with 0 is missing. They share "
            "bucket 0 with the query itself."
        ),
        "later keys by their distance in one direction": (
            "With bidirectional=False later keys have the bucket of their distance, |distance|, as if they stood "
            "before the query. They share bucket 0 with the query itself: max(distance, 0)."
        ),
        "always bidirectional": (
            "It does not use `bidirectional`: keys after the query always have buckets of their own. With False all "
            "buckets are for the past."
        ),
        "never bidirectional": (
            "It does not use `bidirectional`: all buckets are always for the past. With True the second half is for "
            "keys after the query."
        ),
        "bidirectional=False by default": "The default is bidirectional=False. It is True, as in the encoder.",
        "num_buckets not used": "It does not use `num_buckets`: there are always 32.",
        "max_distance not used": "It does not use `max_distance`: it is always 128.",
        "num_buckets not halved": (
            "With bidirectional=True each direction has all num_buckets buckets, so that there are twice as many. Each "
            "has half of them, N = num_buckets // 2: the table has num_buckets rows."
        ),
        "num_buckets halved for the later keys only": (
            "The later keys begin at num_buckets // 2, but the formula still has all num_buckets, so that the two "
            "directions overlap. With bidirectional=True N is num_buckets // 2 in the formula too."
        ),
        "halved in one direction too": (
            "num_buckets is halved with bidirectional=False too. There is one direction then, and it has all of them."
        ),
        "num_buckets halved once too often": (
            "num_buckets is halved twice before N is put in: N = num_buckets // 2 with bidirectional=True, num_buckets "
            "with False; of these N half are exact."
        ),
        "a quarter of the buckets exact": (
            "Only N/4 buckets hold one distance each. It is half of the N buckets of a direction, N/2."
        ),
        "S not used": (
            "It does not use `S`: there are always as many keys as queries. A decoder with a cache has one query and "
            "S keys."
        ),
        "queries from the first position on": (
            "Query t is taken to stand at position t. The queries are the last T of S positions, so it stands at t + "
            "(S − T), as in causal_mask(T, S). With T = S it makes no difference; a decoder with a cache needs it."
        ),
        "queries moved by T − S": (
            "Query t is taken to stand at t − (S − T): the sign is wrong. The queries are the last T of S positions, t "
            "+ (S − T)."
        ),
        "no logarithm": (
            "Beyond N/2 the buckets are all equally wide: (n − N/2) / (max_distance − N/2). They grow with the "
            "logarithm, log(n / (N/2)) / log(max_distance / (N/2))."
        ),
        "quotient without logarithm": (
            "The two logarithms are missing: it is log(n / (N/2)) / log(max_distance / (N/2)), not the quotient of the "
            "numbers."
        ),
        "N buckets, one for each distance": (
            "Every distance has a bucket of its own until they are used up: beyond N/2 they grow with the logarithm, "
            "so that they reach to max_distance."
        ),
        "everything beyond N/2 in one bucket": (
            "All distances from N/2 on share bucket N/2, and the others stay empty. They grow with the logarithm of "
            "the distance."
        ),
        "everything beyond N/2 in the last bucket": (
            "All distances from N/2 on share the last bucket, N − 1, and those between stay empty. They grow with the "
            "logarithm of the distance."
        ),
        "all distances by their logarithm": (
            "All distances go by their logarithm. The first N/2 distances, from 0 on, have a bucket each."
        ),
        "the distance itself": (
            "This is the distance itself, without a bound: there are only N buckets for a direction, and beyond N/2 "
            "they grow with the logarithm."
        ),
        "n not divided by N/2": (
            "The logarithm above is log n. It is log(n / (N/2)), which is 0 where the second half of the N begins."
        ),
        "max_distance not divided by N/2": (
            "The logarithm below is log max_distance. It is log(max_distance / (N/2)), so that the quotient is 1 at "
            "max_distance."
        ),
        "neither divided by N/2": (
            "This is log n / log max_distance. Both are divided by N/2 first: log(n / (N/2)) / log(max_distance / "
            "(N/2)) goes from 0 to 1 over the second half of the N buckets."
        ),
        "logarithm to base 2 above": (
            "The two logarithms have different bases (np.log2 above, np.log below). Any base will do, but the same for "
            "both."
        ),
        "logarithm to base 2 below": (
            "The two logarithms have different bases (np.log above, np.log2 below). Any base will do, but the same for "
            "both."
        ),
        "times N instead of N/2": (
            "The quotient of the logarithms is multiplied by N. Half of the N buckets are left for it: N/2."
        ),
        "times N/2 − 1 instead of N/2": (
            "The quotient of the logarithms is multiplied by N/2 − 1, so that the last bucket begins at max_distance. "
            "It is multiplied by N/2, and what would be bucket N goes to the last."
        ),
        "far buckets one too high": (
            "The logarithmic buckets are one too high, off by one: the first of them is N/2, since 0 … N/2 − 1 are "
            "taken."
        ),
        "floored before it is multiplied": (
            "The quotient of the logarithms is made a whole number before it is multiplied by N/2, so it is 0 up to "
            "max_distance. Multiply first, then floor."
        ),
        "rounded instead of floored": "The logarithmic bucket is rounded to the nearest. It is rounded down: ⌊…⌋.",
        "rounded up": "The logarithmic bucket is rounded up (ceil). It is rounded down: ⌊…⌋, as astype(int) does.",
        "N/2 not added": (
            "The logarithmic buckets begin at 0 again and share those of the near keys. N/2 is to be added: the first "
            "N/2 are taken."
        ),
        "not cut off": (
            "Distances from max_distance on get buckets beyond the last, which the table does not have. They share the "
            "last one: the minimum with N − 1."
        ),
        "cut off at N": (
            "Distances from max_distance on get bucket N, off by one: counted from 0 the last of N is N − 1."
        ),
        "buckets from 1": "The buckets count from 1. They count from 0, as the rows of a table do.",
        "transposed": "It is transposed, a row for each key. A row is a query: (T, S).",
    },
    _wrong_buckets,
    (
        "Which distances does a model have to tell apart exactly, and for which is a rough idea enough?",
        "n < N/2: n;  else min(N − 1, N/2 + ⌊log(n / (N/2)) / log(max_distance / (N/2)) · N/2⌋);  N = num_buckets // 2 "
        "and + N for keys after the query, if bidirectional; N = num_buckets and n = 0 for them, if not",
        "notebook 13; np.arange with [:, None] for the distances, np.where, np.minimum. log 0 is −inf: take the "
        "maximum with 1 first.",
    ),
    difficulty=3,
    section="Raffel et al. 2020, §2.1",
)  # fmt: skip


# --- relative_position_bias ------------------------------------------------------------------------------------------


def _bias_sizes(rng):
    """What is special about each case of both, its sizes and its buckets."""
    sizes = draw_sizes(rng, "T S R H", least=3)
    T, S, R, _ = sizes.values()

    def case(label, unused=0, **changed):
        new = sizes | changed
        buckets = rng.integers(new["R"] - unused, size=(new["T"], new["S"]))
        buckets[0, :2] = buckets[1, 0] = 0  # a bucket that occurs again, in a row and in a column
        buckets[-1, -1] = new["R"] - 1 - unused
        return label, new, buckets

    yield case("")
    yield case("buckets that never occur", unused=1)
    yield case("as many keys as queries", S=T)
    yield case("as many heads as buckets", H=R)
    yield case("as many heads as queries", H=T)
    yield case("as many heads, queries and keys", S=T, H=T)
    distances = F.relative_position_buckets(T, T + S, 16, 20)
    yield "the buckets of distances", sizes | {"S": T + S, "R": 16}, distances
    yield "one query", sizes | {"T": 1}, F.relative_position_buckets(1, S, R + R % 2, 20, bidirectional=False) % R


def _bias_cases(rng):
    return [
        Case(label, (rng.normal(size=(sizes["R"], sizes["H"])), buckets), sizes=sizes)
        for label, sizes, buckets in _bias_sizes(rng)
    ]


def _wrong_bias(made, table, buckets):
    R, H = table.shape
    T, S = buckets.shape
    if made("the next bucket"):
        buckets = buckets + 1
    if made("buckets counted from 1"):
        buckets = buckets - 1
    if made("counted from the end"):
        buckets = -1 - buckets
    if made("the key's position taken for the bucket"):
        buckets = np.broadcast_to(np.arange(S), (T, S))
    if made("the first query's row for all"):
        buckets = np.broadcast_to(buckets[0], (T, S))
    if made("the one-hot matrix itself"):
        return np.eye(R)[buckets]
    if made("the table transposed before it is indexed"):
        return table.T[buckets]
    by_pair = np.stack([table[row] for row in buckets])  # (T, S, H)
    if made("heads last"):
        return by_pair
    if made("heads in the middle"):
        return by_pair.swapaxes(1, 2)
    if made("reshaped instead of transposed"):
        return by_pair.reshape(H, T, S)
    bias = np.stack([by_pair[..., h] for h in range(H)])
    if made("queries and keys exchanged"):
        bias = bias.swapaxes(1, 2)
    if made("an axis for the batch in front"):
        bias = bias[None]
    if made("queries and keys in one axis"):
        bias = bias.reshape(H, T * S)
    if made("summed over the heads"):
        bias = bias.sum(axis=0)
    if made("averaged over the heads"):
        bias = bias.mean(axis=0)
    if made("the first head only"):
        bias = bias[0]
    if made("the first head for all"):
        bias = np.broadcast_to(bias[0], bias.shape)
    if made("bucket 0 without bias"):
        bias = np.where(buckets == 0, 0, bias)
    if made("the future hidden"):
        bias = np.where(np.arange(S) > np.arange(T)[:, None] + S - T, -np.inf, bias)
    if made("the bias taken as the distance times a slope"):
        bias = bias * buckets
    if made("a softmax over the keys"):
        bias = F.softmax(bias)
    if made("divided by √H"):
        bias = bias / np.sqrt(H)
    return -bias if made("sign turned") else bias


RELATIVE_POSITION_BIAS = Exercise(
    F.relative_position_bias,
    (Result("bias", "H T S"),),
    _bias_cases,
    {
        "heads last": (
            "The heads are the last axis, (T, S, H), as table[buckets] gives it. They must stand in front, (H, T, S), "
            "as in the scores: move the last axis to the front."
        ),
        "heads in the middle": (
            "The heads are in the middle, (T, H, S). They must stand in front, (H, T, S): move the last axis of "
            "table[buckets] to the front."
        ),
        "reshaped instead of transposed": (
            "table[buckets] is reshaped to (H, T, S). The shape is right, but reshape keeps the order in memory, so "
            "that heads, queries and keys are mixed up. Move the last axis to the front: np.moveaxis, or transpose(2, "
            "0, 1)."
        ),
        "queries and keys exchanged": (
            "Queries and keys have changed places, (H, S, T): the bias is transposed, from `.T` or swapaxes(0, 2) of "
            "(T, S, H). The order of the other two stays: np.moveaxis(…, -1, 0), or transpose(2, 0, 1)."
        ),
        "an axis for the batch in front": (
            "There is an axis of length 1 for the batch in front, (1, H, T, S). The bias is (H, T, S), and broadcasts "
            "over the batch as it is."
        ),
        "queries and keys in one axis": (
            "Queries and keys are in one axis, (H, T · S). The last step, back to (H, T, S), is missing."
        ),
        "the table transposed before it is indexed": (
            "It picks columns of the table where rows are meant: a row is a bucket, a column a head. table[buckets], "
            "and only then the heads to the front."
        ),
        "the one-hot matrix itself": (
            "It returns the one-hot rows of the buckets. They still have to be multiplied by the table, which picks a "
            "row of it each."
        ),
        "the next bucket": "It looks up row bucket + 1. Buckets count from 0, as rows do.",
        "buckets counted from 1": "It looks up row bucket − 1. Buckets count from 0, as rows do.",
        "counted from the end": "It counts the rows of the table from the end. Bucket 0 is row 0.",
        "the key's position taken for the bucket": (
            "It looks up the position of the key, 0, 1, 2, …, instead of its bucket: every query gets the same bias."
        ),
        "the first query's row for all": (
            "The first row of buckets stands for every query. Each query has its own distances, buckets[t]."
        ),
        "summed over the heads": "The heads are summed: (T, S). Every head has a bias of its own, (H, T, S).",
        "averaged over the heads": "The heads are averaged: (T, S). Every head has a bias of its own, (H, T, S).",
        "the first head only": "Only the first head is looked up: (T, S). Every head has a bias of its own, (H, T, S).",
        "the first head for all": "All heads get the bias of the first. Every head has a column of the table.",
        "bucket 0 without bias": (
            "Bucket 0 gets no bias, as if it were padding. It is the distance 0, and has a row like any other."
        ),
        "the future hidden": (
            "The future is set to −inf. Hiding is the mask's task: an encoder sees both directions, and the bias is "
            "what the table says."
        ),
        "the bias taken as the distance times a slope": (
            "The number of the table is multiplied by the bucket, a slope times the distance. The number of the "
            "bucket is the bias itself."
        ),
        "a softmax over the keys": (
            "A softmax is taken over the keys. The bias is added to the scores before the softmax, as it is."
        ),
        "divided by √H": "The bias is divided by √H. The lookup scales nothing.",
        "sign turned": "The sign is turned: the bias is −table[buckets]. It is added as the table has it.",
    },
    _wrong_bias,
    (
        "Two keys are as far from their queries. What have they in common in every head?",
        "bias[h, t, s] = table[buckets[t, s], h]",
        "notebook 13; your own embedding of notebook 01, and np.moveaxis to bring the heads to the front.",
    ),
    difficulty=1,
    section="Raffel et al. 2020, §2.1",
)


def _bias_backward_cases(rng):
    cases = []
    for label, sizes, buckets in _bias_sizes(rng):
        dbias = rng.normal(size=(sizes["H"], *buckets.shape))
        cases.append(Case(label, (dbias, buckets, sizes["R"]), sizes=sizes))
    return cases


def _wrong_bias_backward(made, dbias, buckets, num_buckets):
    H, T, S = dbias.shape
    R = num_buckets
    if made("dbias handed on"):
        return dbias.copy()
    if made("buckets counted from 1"):
        buckets = buckets - 1
    if made("the next bucket"):
        buckets = buckets + 1
    if made("rows only up to the largest bucket"):
        R = int(buckets.max()) + 1
    if made("queries and keys exchanged"):
        dbias = dbias.swapaxes(1, 2)
    if made("reshaped instead of transposed"):
        by_pair = dbias.reshape(T, S, H)
    else:
        by_pair = np.stack(list(dbias), axis=-1)  # (T, S, H)
    if made("future left out"):
        by_pair = by_pair * np.tri(T, S, S - T)[..., None]
    flat, rows = buckets.reshape(-1), by_pair.reshape(-1, H)
    one_hot = np.eye(R)[flat]
    count = np.maximum(one_hot.sum(axis=0), 1)[:, None]
    dtable = np.zeros((R, H))
    if made("repeated buckets not added"):
        dtable[flat] = rows
    elif made("only the first pair counts"):
        dtable[flat[::-1]] = rows[::-1]
    elif made("repeated buckets of a query not added"):
        for bucket, row in zip(buckets, by_pair, strict=True):
            dtable[bucket] += row
    elif made("repeated buckets of a key not added"):
        for s in range(S):
            dtable[buckets[:, s]] += by_pair[:, s]
    elif made("the last query only"):
        np.add.at(dtable, buckets[-1], by_pair[-1])
    elif made("pairs counted, dbias not used"):
        dtable += one_hot.sum(axis=0)[:, None]
    else:
        dtable = one_hot.T @ rows
    if made("averaged over the pairs of a bucket"):
        dtable = dtable / count
    if made("multiplied by the number of pairs"):
        dtable = dtable * count
    for name, number in (("queries", T), ("keys", S), ("pairs", T * S), ("heads", H), ("buckets", R)):
        if made(f"divided by the number of {name}"):
            dtable = dtable / number
    if made("no gradient for bucket 0"):
        dtable[0] = 0
    if made("only the rows that occur"):
        dtable = dtable[np.unique(flat)]
    if made("summed over the heads"):
        dtable = dtable.sum(axis=1)
    if made("summed over the heads, in all columns"):
        dtable = np.broadcast_to(dtable.sum(axis=1, keepdims=True), dtable.shape)
    return dtable.T if made("heads first") else dtable


RELATIVE_POSITION_BIAS_BACKWARD = Exercise(
    F.relative_position_bias_backward,
    (Result("dtable", "R H"),),
    _bias_backward_cases,
    {
        "repeated buckets not added": (
            "A bucket that many pairs share counts once: only its last pair is left. `dtable[buckets] += …` reads all "
            "rows, adds, and writes all back, so of equal buckets the last one wins; the same holds for `=`. The "
            "gradients of all pairs that far apart have to be added up."
        ),
        "only the first pair counts": (
            "A bucket that many pairs share counts once, with its first pair. The gradients of all pairs have to be "
            "added up."
        ),
        "repeated buckets of a query not added": (
            "It goes query by query with `dtable[buckets[t]] += …`: a bucket that one query has for two keys counts "
            "once there, since `+=` with repeated indices keeps the last one only."
        ),
        "repeated buckets of a key not added": (
            "It goes key by key with `dtable[buckets[:, s]] += …`: a bucket that two queries have for one key counts "
            "once, since `+=` with repeated indices keeps the last one only."
        ),
        "the last query only": (
            "Only the last query is counted: in the loop over queries the gradient is replaced (=) instead of added to "
            "(+=)."
        ),
        "averaged over the pairs of a bucket": (
            "The gradients of a bucket are averaged over its pairs. It is a sum, without division by the count: a "
            "number that was added to many scores moved the loss as often."
        ),
        "multiplied by the number of pairs": (
            "The sum over the pairs of a bucket is multiplied by their number once more: each pair counts once."
        ),
        "pairs counted, dbias not used": (
            "It counts how often each bucket occurs and does not use dbias. Each pair adds its own gradient, not a 1."
        ),
        "reshaped instead of transposed": (
            "dbias (H, T, S) is reshaped to (T, S, H). The shape is right, but reshape keeps the order in memory, so "
            "that heads, queries and keys are mixed up. Move the first axis to the end: np.moveaxis, or transpose(1, "
            "2, 0)."
        ),
        "queries and keys exchanged": (
            "Queries and keys are exchanged: dbias is turned around by `.T` or swapaxes(0, 2), (S, T, H), and meets "
            "the buckets of other pairs. With T ≠ S NumPy refuses; it is np.moveaxis(dbias, 0, -1)."
        ),
        "heads first": "dtable is transposed, (H, R). A gradient has the shape of its array: (num_buckets, H).",
        "summed over the heads": (
            "The heads are summed, one number for each bucket. Each head has a column of the table, (num_buckets, H)."
        ),
        "summed over the heads, in all columns": (
            "Every column holds the sum over all heads. Each head has a column of the table, and its gradient comes "
            "from dbias[h] alone."
        ),
        "future left out": (
            "Pairs whose key stands after the query are left out. Where a mask hid them, their gradient is 0 already; "
            "an encoder needs them."
        ),
        "no gradient for bucket 0": (
            "Bucket 0 gets no gradient, as if it were padding. It is the distance 0, and has a row like any other."
        ),
        "divided by the number of queries": (
            "The gradient is divided by T, the number of queries. It is a plain sum: any mean is the loss's doing and "
            "is in dbias already."
        ),
        "divided by the number of keys": (
            "The gradient is divided by S, the number of keys. It is a plain sum: any mean is the loss's doing and is "
            "in dbias already."
        ),
        "divided by the number of pairs": (
            "The gradient is divided by T · S, a mean for a sum. Any mean is the loss's doing and is in dbias already."
        ),
        "divided by the number of heads": (
            "The gradient is divided by the number of heads. Each head has a column of its own, and nothing is shared."
        ),
        "divided by the number of buckets": (
            "The gradient is divided by the number of buckets. It is a plain sum over the pairs of each."
        ),
        "buckets counted from 1": "The gradient goes to row bucket − 1 (off by one). Buckets count from 0, as rows do.",
        "the next bucket": "The gradient goes to row bucket + 1 (off by one). Buckets count from 0, as rows do.",
        "rows only up to the largest bucket": (
            "dtable has as many rows as the largest bucket asks for, buckets.max() + 1. It has num_buckets rows, the "
            "shape of the table; buckets that do not occur get a row of zeros."
        ),
        "only the rows that occur": (
            "dtable has rows only for the buckets that occur. It has the shape of the table, num_buckets rows, with "
            "zeros where a bucket does not occur."
        ),
        "dbias handed on": (
            "dbias is returned as it came, a gradient for every pair. dtable is the gradient of the table, "
            "(num_buckets, H): each number of dbias has to go to the row of its bucket."
        ),
    },
    _wrong_bias_backward,
    (
        "To how many scores of a head was one number of the table added?",
        "dtable[r, h] = Σ dbias[h, t, s] over all pairs (t, s) with buckets[t, s] = r",
        "notebook 13; your own embedding_backward of notebook 06, section 7, after np.moveaxis.",
    ),
    difficulty=2,
    section="Raffel et al. 2020, §2.1",
)


# --- unscaled_attention ----------------------------------------------------------------------------------------------


def _unscaled_cases(rng):
    """The calls that try scaled_dot_product_attention with heads, with a bias."""

    def bias_for(q, k):
        return rng.normal(size=(q.shape[1], q.shape[2], k.shape[2]))

    cases = []
    for case in _cases(rng, only_scores=False):
        q, k, _ = case.arguments
        if q.ndim == 4:
            cases.append(Case(case.label, case.arguments, {"bias": bias_for(q, k), **case.options}, case.sizes))
    plain, sizes = cases[0].arguments, cases[0].sizes
    B, T, S = sizes["B"], sizes["T"], sizes["S"]
    q, k, v = (rng.normal(size=(B, B, *array.shape[2:])) for array in plain)
    return [
        *cases,
        Case("no bias", plain, sizes=sizes),
        Case("a mask and no bias", plain, {"mask": _some_hidden(rng, T, S)}, sizes),
        Case("as many heads as rows of the batch", (q, k, v), {"bias": bias_for(q, k)}, sizes | {"H": B}),
    ]


# what the scores are multiplied by, and what the student reads
_FACTORS = {
    "divided by √d_k": (
        lambda H, T, S, K: K**-0.5,
        "The scores are divided by √d_k (sqrt), as in the attention of the original Transformer. T5 leaves the scale "
        "1/√d_k out: its W_q starts smaller by as much.",
    ),
    "divided by d_k": (
        lambda H, T, S, K: K**-1.0,
        "The scores are divided by d_k. There is no scale in this attention: A = softmax(Q Kᵀ + bias + M).",
    ),
    "multiplied by √d_k": (
        lambda H, T, S, K: K**0.5,
        "The scores are multiplied by √d_k (sqrt), as if a scale had to be undone. There is none: A = softmax(Q Kᵀ + "
        "bias + M).",
    ),
    "divided by √d_model": (
        lambda H, T, S, K: (H * K) ** -0.5,
        "The scores are divided by √d_model = √(H · d_k). There is no scale in this attention: A = softmax(Q Kᵀ + bias "
        "+ M).",
    ),
    "divided by √S": (
        lambda H, T, S, K: S**-0.5,
        "The scores are divided by √S, from the number of keys. There is no scale in this attention: A = softmax(Q Kᵀ "
        "+ bias + M).",
    ),
    "divided by √T": (
        lambda H, T, S, K: T**-0.5,
        "The scores are divided by √T, from the number of queries. There is no scale in this attention: A = softmax(Q "
        "Kᵀ + bias + M).",
    ),
    "divided by the fourth root of d_k": (
        lambda H, T, S, K: K**-0.25,
        "One of q and k is divided by the fourth root of d_k, or the scores are. There is no scale in this attention: "
        "A = softmax(Q Kᵀ + bias + M).",
    ),
    "divided by 8": (
        lambda H, T, S, K: 1 / 8,
        "The scores are divided by 8, which is √d_k for d_k = 64. There is no scale in this attention: A = softmax(Q "
        "Kᵀ + bias + M).",
    ),
}


def _factor(made, q, k):
    sizes = q.shape[1], q.shape[2], k.shape[2], q.shape[3]
    return next((factor(*sizes) for name, (factor, _) in _FACTORS.items() if made(name)), 1.0)


def _unscaled(made):
    """A `made` for what scaled_dot_product_attention has in common with this one."""
    return lambda name: name == "no 1/√d_k" or made(name)


def _wrong_bias_of_scores(made, bias, q, k):
    """The bias as it is added."""
    if bias is None:
        if made("bias = None not handled"):
            raise TypeError("unsupported operand")
        return 0.0
    root = q.shape[-1] ** -0.5
    changed = {
        "bias forgotten": lambda: 0.0,
        "bias subtracted": lambda: -bias,
        "bias added twice": lambda: 2 * bias,
        "bias divided by √d_k": lambda: bias * root,
        "bias multiplied by √d_k": lambda: bias / root,
        "scores and bias divided by √d_k": lambda: bias * root,
        "bias transposed": lambda: bias.swapaxes(-1, -2),
        "bias along the batch": lambda: bias[:, None],
        "only what raises a score in the bias": lambda: np.maximum(bias, 0),
        "bias averaged over the heads": lambda: bias.mean(axis=0),
        "bias summed over the heads": lambda: bias.sum(axis=0),
        "bias of the first head for all": lambda: bias[0],
        "bias of the first query for all": lambda: bias[:, :1],
        "scores multiplied by the bias": lambda: _products(_unscaled(made), q, k) * (bias - 1),
        "bias taken for a Boolean mask": lambda: np.where(bias != 0, -np.inf, 0.0),
        "bias after the softmax": lambda: 0.0,
        "weights multiplied by the bias": lambda: 0.0,
    }
    return next((change() for name, change in changed.items() if made(name)), bias)


def _wrong_unscaled_attention(made, q, k, v, bias=None, mask=None):
    if mask is not None and made("bias ignored where there is a mask"):
        bias = None
    if bias is not None and made("mask ignored where there is a bias"):
        mask = None
    if bias is None and made("mask ignored where there is no bias"):
        mask = None
    factor = q.shape[-1] ** -0.5 if made("scores and bias divided by √d_k") else _factor(made, q, k)
    results = _wrong_attention(_unscaled(made), q * factor, k, v, mask, _wrong_bias_of_scores(made, bias, q, k))
    late = made("bias after the softmax") or made("weights multiplied by the bias")
    if bias is None or not late:
        return results
    weights = results[1] + bias if made("bias after the softmax") else results[1] * bias
    return weights @ v, weights


_OF_SCALED = {
    *_SCALES,
    "1/√d_v instead of 1/√d_k",
    "scale after the softmax",
    "mask added before the scale",
    "1/√d_k on dQ only",
    "1/√d_k on dK only",
    "written for four axes only",
    "written for three axes only",
    "softmax over axis 2",  # the queries: there are always four axes
}  # the mistakes in scaled attention that cannot be made here


def _but_those_of_the_scale(mistakes):
    return {name: text for name, text in mistakes.items() if name not in _OF_SCALED}


UNSCALED_ATTENTION = Exercise(
    F.unscaled_attention,
    (Result("out", "B H T K_v"), Result("weights", "B H T S")),
    _unscaled_cases,
    {
        **{name: text for name, (_, text) in _FACTORS.items()},
        "scores and bias divided by √d_k": (
            "Scores and bias together are divided by √d_k (sqrt), (Q Kᵀ + bias) / √d_k. T5 leaves the scale out: A = "
            "softmax(Q Kᵀ + bias + M)."
        ),
        "bias forgotten": "The bias is not used: A = softmax(Q Kᵀ + bias + M). Nothing else tells T5 about positions.",
        "bias subtracted": "The bias is subtracted from the scores: the sign is wrong, it is added.",
        "bias added twice": "The bias is added to the scores twice.",
        "bias divided by √d_k": "The bias is divided by √d_k. It is added as it is: there is no scale here.",
        "bias multiplied by √d_k": "The bias is multiplied by √d_k. It is added as it is: there is no scale here.",
        "bias after the softmax": (
            "The bias is added to the weights, after the softmax, so that they do not add to 1. It belongs to the "
            "scores, before the softmax."
        ),
        "weights multiplied by the bias": (
            "The weights are multiplied by the bias, after the softmax. It is added to the scores, before the softmax."
        ),
        "scores multiplied by the bias": "The scores are multiplied by the bias. It is added: Q Kᵀ + bias.",
        "bias transposed": (
            "The bias is transposed: its last two axes are exchanged. It lies like the scores, (H, T, S): queries are "
            "rows, keys are columns. With T ≠ S NumPy refuses, with T = S nothing is said."
        ),
        "bias along the batch": (
            "The first axis of the bias is laid along the batch (`bias[:, None]`). It is the heads: (H, T, S) "
            "broadcasts over the batch as it is."
        ),
        "only what raises a score in the bias": (
            "The negative numbers of the bias are lost. It raises and lowers scores, and is added as it is."
        ),
        "bias averaged over the heads": "The bias is averaged over the heads. Every head has a bias of its own.",
        "bias summed over the heads": "The bias is summed over the heads. Every head has a bias of its own.",
        "bias of the first head for all": "All heads get the bias of the first. Every head has a bias of its own.",
        "bias of the first query for all": (
            "All queries get the bias of the first. Each has its own distances to the keys, a row of the bias each."
        ),
        "bias taken for a Boolean mask": (
            "The bias hides: it is used as if it were a mask. It is added to the scores and only raises or lowers them."
        ),
        "bias = None not handled": (
            "It fails without a bias. bias is None by default, and then nothing is to be added: a test such as `if "
            "bias is not None` is missing."
        ),
        "bias ignored where there is a mask": (
            "Where there is a mask, the bias is not used, as in `if mask … elif bias …`. Both are applied: Q Kᵀ + bias "
            "+ M."
        ),
        "mask ignored where there is a bias": (
            "Where there is a bias, the mask is not used, as in `if bias … elif mask …`. Both are applied: Q Kᵀ + bias "
            "+ M."
        ),
        "mask ignored where there is no bias": (
            "Without a bias the mask is not used, as when its code is inside `if bias is not None`. Each of the two "
            "may be there without the other."
        ),
        **_but_those_of_the_scale(SCALED_DOT_PRODUCT_ATTENTION.mistakes),
        "output scaled by 1/√d_k": "The output is divided by √d_k. There is no scale in this attention: out = A V.",
    },
    _wrong_unscaled_attention,
    (
        "Which factor is missing that the original attention has, and what is added to the scores in its place?",
        "out = A V,  A = softmax(Q Kᵀ + bias + M), the softmax over the keys; weight 0 in a row hidden whole",
        "notebook 13; your own scaled_dot_product_attention of notebook 02. The bias (H, T, S) broadcasts over the "
        "batch.",
    ),
    difficulty=2,
    section="Raffel et al. 2020, §2.1",
)


# --- unscaled_attention_backward -------------------------------------------------------------------------------------


def _unscaled_backward_cases(rng):
    cases = []
    for forward in _unscaled_cases(rng):
        if "10,000" in forward.label or "far above" in forward.label:  # all weights 0 or 1 there: no gradient
            continue
        out, weights = F.unscaled_attention(*forward.arguments, **forward.options)
        cases.append(
            Case(forward.label, (rng.normal(size=out.shape), *forward.arguments, weights), sizes=forward.sizes)
        )
    return cases


def _wrong_unscaled_attention_backward(made, dout, q, k, v, weights):
    B, _, T, K = q.shape
    root, factor = K**-0.5, _factor(made, q, k)
    both = root if made("dQ and dK divided by √d_k") else 1.0
    of_q = root if made("dQ divided by √d_k") else factor * both
    of_k = root if made("dK divided by √d_k") else factor * both
    unscaled = _unscaled(made)
    *orders, dv = _wrong_backward(unscaled, dout, q * of_k, k * of_q, v, weights)  # dQ = dscores K, dK = dscoresᵀ Q
    used, dweights, dscores = _wrong_dscores(unscaled, dout, q, k, v, weights)
    terms = dscores * factor
    if made("dbias from dA"):
        terms = dweights
    if made("dbias from A"):
        terms = used
    if made("dbias from the scores"):
        terms = q @ k.swapaxes(-1, -2)
    if made("dbias divided by √d_k"):
        terms = terms * root
    sums = {
        "dbias not summed": lambda: terms,
        "dbias averaged over the batch": lambda: terms.mean(axis=0),
        "dbias of the first sentence only": lambda: terms[0],
        "dbias of the last sentence only": lambda: terms[-1],
        "dbias with an axis for the batch": lambda: terms.sum(axis=0, keepdims=True),
        "dbias summed over the heads instead of the batch": lambda: terms.sum(axis=1),
        "dbias summed over the heads too": lambda: terms.sum(axis=(0, 1)),
        "dbias summed over the queries too": lambda: terms.sum(axis=(0, 2)),
        "dbias summed over the keys too": lambda: terms.sum(axis=(0, 3)),
        "dbias transposed": lambda: terms.sum(axis=0).swapaxes(-1, -2),
        "divided by the batch": lambda: terms.sum(axis=0) / B,
        "divided by the number of queries": lambda: terms.sum(axis=0) / T,
    }
    dbias = next((total() for name, total in sums.items() if made(name)), terms.sum(axis=0))
    return (dbias, *orders, dv) if made("dbias first") else (*orders, dv, dbias)


_ALL_OF_DSCORES = {
    name: f"The gradient of the scores is {name}, and with it dQ, dK and dbias. The forward has no scale: dQ = dscores "
    "K, dK = dscoresᵀ Q, dbias = Σ dscores."
    for name in _FACTORS
}
_ORDER = "it is dq, dk, dv, dbias."

UNSCALED_ATTENTION_BACKWARD = Exercise(
    F.unscaled_attention_backward,
    (
        Result("dq", "B H T K"),
        Result("dk", "B H S K"),
        Result("dv", "B H S K_v"),
        Result("dbias", "H T S"),
    ),
    _unscaled_backward_cases,
    {
        **_ALL_OF_DSCORES,
        "dQ and dK divided by √d_k": (
            "dQ and dK are divided by √d_k (sqrt), as in the attention of the original Transformer. The forward has no "
            "scale 1/√d_k here, and so the backward has none: dQ = dscores K, dK = dscoresᵀ Q."
        ),
        "dQ divided by √d_k": "dQ is divided by √d_k. The forward has no scale: dQ = dscores K.",
        "dK divided by √d_k": "dK is divided by √d_k. The forward has no scale: dK = dscoresᵀ Q.",
        "dbias divided by √d_k": "dbias is divided by √d_k. The forward has no scale: dbias is Σ dscores, as it is.",
        "dbias not summed": (
            "dbias is not summed over the batch: (B, H, T, S). Every row of the batch had the same bias, (H, T, S), so "
            "its gradients add."
        ),
        "dbias averaged over the batch": (
            "dbias is a mean over the batch, too small by the factor 1/B. It is the sum Σ dscores: a mean, if there is "
            "one, is the loss's, and is in dout already."
        ),
        "dbias of the first sentence only": (
            "dbias comes from the first row of the batch alone. All rows had the same bias: Σ dscores over the batch."
        ),
        "dbias of the last sentence only": (
            "dbias comes from the last row of the batch alone: replaced (=) in a loop instead of added to (+=). All "
            "rows had the same bias: Σ dscores over the batch."
        ),
        "dbias with an axis for the batch": (
            "dbias keeps an axis of length 1 for the batch (keepdims). It has the shape of the bias, (H, T, S)."
        ),
        "dbias summed over the heads instead of the batch": (
            "dbias is summed over axis 1, the heads. Each head had a bias of its own; it is the batch, axis 0, that "
            "shared it."
        ),
        "dbias summed over the heads too": (
            "dbias is summed over the heads too. Each head had a bias of its own: the sum runs over the batch alone."
        ),
        "dbias summed over the queries too": (
            "dbias is summed over the queries too. Each query had its own row of the bias: the sum runs over the batch "
            "alone."
        ),
        "dbias summed over the keys too": (
            "dbias is summed over the keys too. Each key had its own column of the bias: the sum runs over the batch "
            "alone."
        ),
        "dbias transposed": (
            "dbias is transposed, (H, S, T). It lies like the scores: queries are rows, keys are columns."
        ),
        "dbias from dA": (
            "dbias is made from dA, the gradient of the weights. The bias was added to the scores, before the softmax: "
            "dbias = Σ dscores, behind softmax_backward."
        ),
        "dbias from A": (
            "dbias is Σ A, the sum of the weights, with no gradient in it: dbias = Σ dscores over the batch."
        ),
        "dbias from the scores": (
            "dbias is made from the scores Q Kᵀ themselves. It is the sum of their gradient: Σ dscores over the batch."
        ),
        **_but_those_of_the_scale(SCALED_DOT_PRODUCT_ATTENTION_BACKWARD.mistakes),
        "dV scaled too": "dV is divided by √d_k. There is no scale in this attention: dV = Aᵀ dout.",
        "softmax backward with the scores": (
            "The softmax backward is done with the scores Q Kᵀ in the place of the weights. Its second argument is the "
            "output of the softmax, A."
        ),
        "weights computed anew without the mask": (
            "The weights are computed anew from q and k, without the forward's bias and mask. Use the `weights` that "
            "are handed in."
        ),
        "dQ and dK swapped": f"dQ and dK are returned in the wrong order: {_ORDER}",
        "dK and dV swapped": f"dK and dV are returned in the wrong order: {_ORDER}",
        "dQ and dV swapped": f"The gradients are returned in the wrong order, dv, dk, dq, dbias: {_ORDER}",
        "dV first": f"The gradients are returned in the wrong order, dv, dq, dk, dbias: {_ORDER}",
        "dbias first": f"The gradients are returned in the wrong order, dbias, dq, dk, dv: {_ORDER}",
    },
    _wrong_unscaled_attention_backward,
    (
        "The bias was added to the scores of every row of the batch. What is its gradient, and what is gone from the "
        "other three?",
        "dV = Aᵀ dout,  dscores = softmax_backward(dout Vᵀ, A),  dQ = dscores K,  dK = dscoresᵀ Q,  dbias = Σ dscores "
        "over the batch",
        "notebook 13; your own scaled_dot_product_attention_backward of notebook 06, section 6, without its factor.",
    ),
    difficulty=2,
    section="Raffel et al. 2020, §2.1",
)


# --- gated_feed_forward ----------------------------------------------------------------------------------------------


def _gated_cases(rng):
    sizes = draw_sizes(rng, "B H T D F")
    B, H, T, D, F_ = sizes.values()
    deep, sizes = sizes, _without_heads(sizes)
    x = rng.normal(size=(B, H, T, D))

    def matrices(D, F_):
        """So that the gates are about 1.5, where the two forms of GELU differ most, and the values about 1."""
        w_gate, w1 = rng.normal(size=(2, D, F_)) / D**0.5
        return 1.5 * w_gate, w1, rng.normal(size=(F_, D))

    w = matrices(D, F_)
    return [
        Case("", (x[:, 0], *w), sizes=sizes),
        Case("x of shape (T, D)", (x[0, 0], *w), sizes=sizes),
        Case("x of four axes", (x, *w), sizes=deep),
        Case("one row, x of shape (D,)", (x[0, 0, 0], *w), sizes=sizes),
        Case("d_ff = d_model", (x[:, 0], *matrices(D, D)), sizes=sizes | {"F": D}),
    ]


_GATES = {
    "no GELU": lambda x: x,
    "the exact GELU": lambda x: F.gelu(x, "none"),
    "ReLU for GELU": lambda x: np.maximum(x, 0),
    "sigmoid for GELU": _sigmoid,
    "SiLU for GELU": lambda x: x * _sigmoid(x),
    "x σ(1.702 x) for GELU": lambda x: x * _sigmoid(1.702 * x),
    "tanh for GELU": np.tanh,
    "softmax for GELU": F.softmax,
    "GELU without x in front": lambda x: (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
}


def _wrong_gated(made, x, w_gate, w1, w2):
    given, D = x, x.shape[-1]
    activation = next((f for name, f in _GATES.items() if made(name)), F.gelu)
    if made("W_g and W₁ exchanged"):
        w_gate, w1 = w1, w_gate
    if made("W_g for both"):
        w1 = w_gate
    if made("W₁ for both"):
        w_gate = w1
    gate = x @ (w_gate.T if made("W_g transposed") else w2.T if made("W₂ᵀ for W_g") else w_gate)
    value = x @ (w1.T if made("W₁ transposed") else w2.T if made("W₂ᵀ for W₁") else w1)
    opened = activation(gate)
    if made("GELU of the value instead"):
        hidden = gate * F.gelu(value)
    elif made("GELU of both"):
        hidden = opened * F.gelu(value)
    elif made("GELU of the product"):
        hidden = F.gelu(gate * value)
    elif made("sum for product"):
        hidden = opened + value
    elif made("value left out"):
        hidden = opened
    elif made("gate left out"):
        hidden = value
    elif made("gate multiplied by itself"):
        hidden = opened * gate
    elif made("GELU of W₁ without gate"):
        hidden = F.gelu(value)
    elif made("1 − gate"):
        hidden = (1 - opened) * value
    else:
        hidden = opened * value
    y = hidden @ (w2.T if made("W₂ transposed") else w1.T if made("W₁ᵀ for W₂") else w2)
    if made("W_gᵀ for W₂"):
        y = hidden @ w_gate.T
    if made("GELU at the end as well"):
        y = F.gelu(y)
    if made("x added"):
        y = y + given
    if made("divided by √d_model"):
        y = y / np.sqrt(D)
    if made("gate after the GELU"):
        gate = opened
    if made("hidden for gate"):
        gate = hidden
    if made("hidden for value"):
        value = hidden
    if made("x for value"):
        value = given
    if made("hidden and value for gate and value"):
        gate, value = hidden, value
    if made("gate and value returned exchanged"):
        gate, value = value, gate
    return (gate, value, y) if made("y returned last") else (y, gate, value)


_PRODUCT = "FFN(x) = (GELU(x W_g) · x W₁) W₂."

GATED_FEED_FORWARD = Exercise(
    F.gated_feed_forward,
    (Result("y", "... D"), Result("gate", "... F"), Result("value", "... F")),
    _gated_cases,
    {
        "no GELU": f"The GELU is missing: the gate x W_g is multiplied as it is (a bilinear layer). {_PRODUCT}",
        "the exact GELU": (
            "The GELU is the exact one, with erf. Here it is the one with tanh, the default of gelu, as in T5 v1.1."
        ),
        "ReLU for GELU": f"The gate goes through a ReLU (ReGLU). Here it is the GELU: {_PRODUCT}",
        "sigmoid for GELU": f"The gate goes through a sigmoid (GLU). Here it is the GELU: {_PRODUCT}",
        "SiLU for GELU": (
            f"The gate goes through x · sigmoid(x), SiLU or swish (SwiGLU). Here it is the GELU: {_PRODUCT}"
        ),
        "x σ(1.702 x) for GELU": (
            "The GELU is x · sigmoid(1.702 x), a coarser approximation. Here it is the one with tanh."
        ),
        "tanh for GELU": f"The gate goes through a tanh. Here it is the GELU: {_PRODUCT}",
        "softmax for GELU": f"The gate goes through a softmax over the features. Here it is the GELU: {_PRODUCT}",
        "GELU without x in front": (
            "The gate is Φ(x W_g), between 0 and 1: the factor in front is missing, GELU(x) = x Φ(x)."
        ),
        "GELU of the value instead": (
            f"The GELU is on the wrong factor: x W_g · GELU(x W₁). It is on the gate: {_PRODUCT}"
        ),
        "GELU of both": f"Both factors go through the GELU. Only the gate does: {_PRODUCT}",
        "GELU of the product": f"The GELU is of the product, GELU(x W_g · x W₁). It is on the gate alone: {_PRODUCT}",
        "GELU at the end as well": f"There is a second GELU after W₂. There is none at the end: {_PRODUCT}",
        "GELU of W₁ without gate": (
            f"This is a plain feed-forward network, GELU(x W₁) W₂: the gate x W_g is not used. {_PRODUCT}"
        ),
        "sum for product": f"The two factors are added, GELU(x W_g) + x W₁. They are multiplied: {_PRODUCT}",
        "value left out": f"The value x W₁ is left out, GELU(x W_g) W₂: it is a product of two. {_PRODUCT}",
        "gate left out": f"The gate is left out, x W₁ W₂: it is a product of two. {_PRODUCT}",
        "gate multiplied by itself": (
            f"The gate is multiplied by itself, GELU(x W_g) · x W_g. The other factor is the value, x W₁: {_PRODUCT}"
        ),
        "1 − gate": f"The value is multiplied by 1 − GELU(x W_g), the gate the wrong way round. {_PRODUCT}",
        "W_g and W₁ exchanged": f"W_g and W₁ are exchanged: W_g makes the gate, W₁ the value. {_PRODUCT}",
        "W_g for both": f"Both factors are made with W_g. The value has a matrix of its own, W₁: {_PRODUCT}",
        "W₁ for both": f"Both factors are made with W₁. The gate has a matrix of its own, W_g: {_PRODUCT}",
        "W_g transposed": "W_g is transposed. A row is a token and W_g is (D, F): x W_g, not x W_gᵀ.",
        "W₁ transposed": "W₁ is transposed. A row is a token and W₁ is (D, F): x W₁, not x W₁ᵀ.",
        "W₂ transposed": "W₂ is transposed. A row is a token and W₂ is (F, D): no transpose before it.",
        "W₂ᵀ for W_g": "The gate is made with W₂ᵀ instead of W_g. The shapes fit, but W_g is a matrix of its own.",
        "W₂ᵀ for W₁": "The value is made with W₂ᵀ instead of W₁. The shapes fit, but W₁ is a matrix of its own.",
        "W₁ᵀ for W₂": "The last product is with W₁ᵀ instead of W₂. The shapes fit, but W₂ is a matrix of its own.",
        "W_gᵀ for W₂": "The last product is with W_gᵀ instead of W₂. The shapes fit, but W₂ is a matrix of its own.",
        "x added": f"x is added to the output. The residual path is not part of this function: {_PRODUCT}",
        "divided by √d_model": f"The output is divided by √d_model. There is no scale in it: {_PRODUCT}",
        "gate after the GELU": (
            "What is returned as gate is GELU(x W_g). It is x W_g, before the GELU: the backward needs the slope there."
        ),
        "hidden for gate": (
            "What is returned as gate is the product that W₂ is given. It is x W_g alone, before the GELU."
        ),
        "hidden for value": (
            "What is returned as value is the product that W₂ is given. It is x W₁ alone: the backward needs both "
            "factors."
        ),
        "x for value": "What is returned as value is x. It is the factor x W₁, (..., F).",
        "gate and value returned exchanged": "gate and value are returned in each other's place: y, gate, value.",
        "y returned last": "y is returned last. The order is y, gate, value.",
    },
    _wrong_gated,
    (
        "A ReLU only cuts features off. How can one matrix decide how much of the features of another one passes?",
        "gate = x W_g, value = x W₁, y = (GELU(gate) · value) W₂",
        "notebook 13; your own linear and gelu. There are no biases; return gate before the GELU.",
    ),
    difficulty=1,
    section="Shazeer 2020",
)


# --- gated_feed_forward_backward -------------------------------------------------------------------------------------


def _gated_backward_cases(rng):
    cases = []
    for case in _gated_cases(rng):
        x, *matrices = case.arguments
        y, gate, value = F.gated_feed_forward(*case.arguments)
        cases.append(Case(case.label, (rng.normal(size=y.shape), x, gate, value, *matrices), sizes=case.sizes))
    return cases


def _silu_slope(x):
    return _sigmoid(x) * (1 + x * (1 - _sigmoid(x)))


_SLOPES = {
    "the slope of GELU missing": lambda x: np.ones_like(x),
    "the slope of the exact GELU": lambda x: F.gelu_backward(np.ones_like(x), x, "none"),
    "the slope of the ReLU": lambda x: (x > 0) * 1.0,
    "the slope of the sigmoid": lambda x: _sigmoid(x) * (1 - _sigmoid(x)),
    "the slope of SiLU": _silu_slope,
    "the slope of the tanh": lambda x: 1 - np.tanh(x) ** 2,
    "GELU for its slope": F.gelu,
    "Φ for the slope": lambda x: _GATES["GELU without x in front"](x),
    "the slope at GELU(gate)": lambda x: F.gelu_backward(np.ones_like(x), F.gelu(x)),
}


def _wrong_gated_backward(made, dy, x, gate, value, w_gate, w1, w2):
    opened = gate if made("gate taken for GELU(gate)") else F.gelu(gate)
    slope = next((f for name, f in _SLOPES.items() if made(name)), lambda x: F.gelu_backward(np.ones_like(x), x))
    factors = {
        "gate for GELU(gate) in dW₂": gate * value,
        "dW₂ from the gate alone": opened,
        "dW₂ from the value alone": value,
        "x for hidden in dW₂": x,
    }
    hidden = next((factor for name, factor in factors.items() if made(name)), opened * value)
    dw2, _ = _wrong_gradients(made, dy, hidden)
    if made("dy not sent through W₂"):
        dhidden = dy
    elif made("W₁ for W₂ᵀ"):
        dhidden = dy @ w1
    elif made("W_g for W₂ᵀ"):
        dhidden = dy @ w_gate
    else:
        dhidden = dy @ (w2 if made("W₂ not transposed") else w2.T)
    other = 1.0 if made("value missing in the gate's gradient") else value
    if made("each factor times itself"):
        other = opened
    place = value if made("the slope at the value") else gate * value if made("the slope at the product") else gate
    dgate = dhidden * other * slope(place)
    if made("gate's gradient without dy"):
        dgate = other * slope(gate)
    other = opened
    if made("GELU(gate) missing in the value's gradient"):
        other = 1.0
    if made("gate for GELU(gate) in the value's gradient"):
        other = gate
    if made("GELU(value) for GELU(gate)"):
        other = F.gelu(value)
    if made("each factor times itself"):
        other = value
    dvalue = dhidden * other
    if made("the slope of GELU on the value too"):
        dvalue = dvalue * slope(gate)
    if made("dgate and dvalue exchanged"):
        dgate, dvalue = dvalue, dgate
    inputs = hidden if made("hidden for x in dW₁ and dW_g") else x
    dw_gate, _ = _wrong_gradients(made, dy if made("dW₁ and dW_g from dy") else dgate, inputs)
    dw1, _ = _wrong_gradients(made, dy if made("dW₁ and dW_g from dy") else dvalue, inputs)
    back_gate = w1.T if made("W₁ᵀ for both in dx") else w2 if made("W₂ for W₁ᵀ and W_gᵀ") else w_gate.T
    back_value = w_gate.T if made("W_gᵀ for both in dx") else w2 if made("W₂ for W₁ᵀ and W_gᵀ") else w1.T
    if made("W₁ and W_g exchanged in dx"):
        back_gate, back_value = back_value, back_gate
    if made("W₁ and W_g not transposed"):
        back_gate, back_value = back_gate.T, back_value.T
    through_gate, through_value = dgate @ back_gate, dvalue @ back_value
    ways = {
        "dx through the gate only": through_gate,
        "dx through the value only": through_value,
        "dx a difference": through_value - through_gate,
        "dx a mean of both ways": (through_gate + through_value) / 2,
    }
    dx = next((way for name, way in ways.items() if made(name)), through_gate + through_value)
    if made("dy added to dx"):
        dx = dx + dy
    if made("dx flattened"):
        dx = dx.reshape(-1, dx.shape[-1])
    if made("dx divided by the batch size"):
        dx = dx / len(x)
    if made("dx divided by the number of rows"):
        dx = dx / (x.size // x.shape[-1])
    orders = {
        "dw_gate and dw1 exchanged": (dx, dw1, dw_gate, dw2),
        "dw2 first": (dx, dw2, dw_gate, dw1),
        "dw2 before dw1": (dx, dw_gate, dw2, dw1),
        "in reverse order": (dx, dw2, dw1, dw_gate),
        "dx returned last": (dw_gate, dw1, dw2, dx),
    }
    return next((order for name, order in orders.items() if made(name)), (dx, dw_gate, dw1, dw2))


_OF_A_PRODUCT = "Each factor of a product gets the gradient times the other one"
_ORDER_OF_GATED = "The order is dx, dw_gate, dw1, dw2."

GATED_FEED_FORWARD_BACKWARD = Exercise(
    F.gated_feed_forward_backward,
    (Result("dx", "... D"), Result("dw_gate", "D F"), Result("dw1", "D F"), Result("dw2", "F D")),
    _gated_backward_cases,
    {
        "value missing in the gate's gradient": (
            f"The value is missing in the gradient of the gate. {_OF_A_PRODUCT}: dgate = dhidden · value · GELU′(gate)."
        ),
        "GELU(gate) missing in the value's gradient": (
            f"GELU(gate) is missing in the gradient of the value. {_OF_A_PRODUCT}: dvalue = dhidden · GELU(gate)."
        ),
        "gate for GELU(gate) in the value's gradient": (
            "The gradient of the value is dhidden · gate. The value was multiplied by GELU(gate): dvalue = dhidden · "
            "GELU(gate)."
        ),
        "each factor times itself": (
            f"Each factor gets the gradient times itself. {_OF_A_PRODUCT}: dvalue = dhidden · GELU(gate), and dhidden "
            "· value goes on to the gate."
        ),
        "dgate and dvalue exchanged": (
            "The two gradients go on through each other's matrix: that of the gate, dhidden · value · GELU′(gate), "
            "belongs to W_g, that of the value, dhidden · GELU(gate), to W₁."
        ),
        "gate's gradient without dy": "The gradient of the gate is value · GELU′(gate): dhidden is missing in it.",
        "gate taken for GELU(gate)": (
            "`gate` is used as if it were GELU(gate) already. It is x W_g, before the GELU: the factor beside the "
            "value is gelu(gate)."
        ),
        "the slope of GELU missing": (
            "The backward of the GELU is missing: the gradient of the gate is dhidden · value · GELU′(gate)."
        ),
        "GELU for its slope": (
            "The gradient of the gate has GELU(gate) in it where its slope GELU′(gate) belongs: gelu_backward."
        ),
        "Φ for the slope": (
            "GELU′ is taken to be Φ(gate), (1 + g)/2. That is one term of the product rule; the other is x · g′/2."
        ),
        "the slope of the exact GELU": (
            "The slope is that of the exact GELU, with erf. The forward has the one with tanh, the default of "
            "gelu_backward."
        ),
        "the slope of the ReLU": "The slope is that of the ReLU, 1 where gate > 0. The forward has the GELU.",
        "the slope of the sigmoid": "The slope is that of the sigmoid (GLU). The forward has the GELU.",
        "the slope of SiLU": "The slope is that of x · sigmoid(x), SiLU (SwiGLU). The forward has the GELU.",
        "the slope of the tanh": "The slope is that of the tanh. The forward has the GELU.",
        "the slope at GELU(gate)": (
            "The slope is taken at GELU(gate). It is taken where the GELU was, at gate: GELU′(gate)."
        ),
        "the slope at the value": (
            "The slope of the GELU is taken at the value. The GELU was on the gate: GELU′(gate)."
        ),
        "the slope at the product": (
            "The slope of the GELU is taken at gate · value. The GELU was on the gate alone: GELU′(gate)."
        ),
        "GELU(value) for GELU(gate)": (
            "The gradient of the value is dhidden · GELU(value). Beside the value stood GELU(gate): dvalue = dhidden · "
            "GELU(gate)."
        ),
        "the slope of GELU on the value too": (
            "The slope of the GELU is in the gradient of the value too. The value went through no GELU: dvalue = "
            "dhidden · GELU(gate)."
        ),
        "gate for GELU(gate) in dW₂": (
            "dW₂ is made with gate · value. W₂ was given GELU(gate) · value: dW₂ = (GELU(gate) · value)ᵀ dy."
        ),
        "dW₂ from the gate alone": (
            "dW₂ is made with GELU(gate) alone. W₂ was given the product: dW₂ = (GELU(gate) · value)ᵀ dy."
        ),
        "dW₂ from the value alone": (
            "dW₂ is made with the value alone. W₂ was given the product: dW₂ = (GELU(gate) · value)ᵀ dy."
        ),
        "x for hidden in dW₂": (
            "dW₂ is made with x. W₂ was given the product: dW₂ = (GELU(gate) · value)ᵀ dy."
        ),
        "hidden for x in dW₁ and dW_g": (
            "dW₁ and dW_g are made with the product that W₂ was given. These two matrices were given x."
        ),
        "dW₁ and dW_g from dy": (
            "dW₁ and dW_g are made from dy, the gradient of the output. They need those of value and gate, behind W₂ᵀ "
            "and the product."
        ),
        "dy not sent through W₂": "W₂ is left out on the way back: dhidden = dy W₂ᵀ, here it is dy itself.",
        "W₂ not transposed": "dhidden is dy W₂ where it has to be dy W₂ᵀ: the transpose is missing.",
        "W₁ for W₂ᵀ": "dhidden is dy W₁ where it has to be dy W₂ᵀ. The shapes fit, but it is another matrix.",
        "W_g for W₂ᵀ": "dhidden is dy W_g where it has to be dy W₂ᵀ. The shapes fit, but it is another matrix.",
        "dx through the gate only": (
            "dx comes through the gate only. x went into both factors, so both gradients add: dx = dgate W_gᵀ + dvalue "
            "W₁ᵀ."
        ),
        "dx through the value only": (
            "dx comes through the value only. x went into both factors, so both gradients add: dx = dgate W_gᵀ + "
            "dvalue W₁ᵀ."
        ),
        "dx a difference": (
            "The two ways to x are subtracted, where they have to be added: dx = dgate W_gᵀ + dvalue W₁ᵀ."
        ),
        "dx a mean of both ways": (
            "The two ways to x are averaged, a factor ½ too much: dx = dgate W_gᵀ + dvalue W₁ᵀ, a sum."
        ),
        "W₁ and W_g exchanged in dx": (
            "In dx the two matrices are exchanged: dgate goes back through W_gᵀ, dvalue through W₁ᵀ."
        ),
        "W₁ᵀ for both in dx": "In dx both gradients go back through W₁ᵀ. That of the gate goes through W_gᵀ.",
        "W_gᵀ for both in dx": "In dx both gradients go back through W_gᵀ. That of the value goes through W₁ᵀ.",
        "W₂ for W₁ᵀ and W_gᵀ": (
            "dx comes through W₂ where it has to come through W_gᵀ and W₁ᵀ. The shapes fit, but it is another matrix."
        ),
        "W₁ and W_g not transposed": (
            "dx is made with W_g and W₁ where it has to be W_gᵀ and W₁ᵀ: the transpose is missing."
        ),
        **{name: text for name, text in _GRADIENT_MISTAKES.items() if not name.startswith("bias")},
        "dy added to dx": f"dy is added to dx, the gradient of a residual path. The forward has none: {_PRODUCT}",
        "dx flattened": (
            "dx has all rows in one axis. A gradient has the shape of its array: the last reshape, back to x.shape, is "
            "missing."
        ),
        "dx divided by the batch size": (
            "dx is divided by the batch size, 1/B too much. Any mean is the loss's doing and is in dy already."
        ),
        "dx divided by the number of rows": (
            "dx is divided by the number of rows, 1/(B·T) too much. Any mean is the loss's doing and is in dy already."
        ),
        "dw_gate and dw1 exchanged": f"dw_gate and dw1 are returned in each other's place. {_ORDER_OF_GATED}",
        "dw2 first": f"dw2 is returned before the other two matrices. {_ORDER_OF_GATED}",
        "dw2 before dw1": f"dw2 and dw1 are returned in each other's place. {_ORDER_OF_GATED}",
        "in reverse order": f"The matrices are returned in reverse order. {_ORDER_OF_GATED}",
        "dx returned last": f"dx is returned last. {_ORDER_OF_GATED}",
    },
    _wrong_gated_backward,
    (
        "Two factors are multiplied, and x is in both. What does each factor get, and how many ways lead back to x?",
        "dhidden = dy W₂ᵀ, dgate = dhidden · value · GELU′(gate), dvalue = dhidden · GELU(gate), dx = dgate W_gᵀ + "
        "dvalue W₁ᵀ",
        "notebook 13; your own linear_backward, three times, and gelu_backward. W₂ was given gelu(gate) · value.",
    ),
    difficulty=3,
    section="Shazeer 2020",
)  # fmt: skip

EXERCISES = [
    RMS_NORM,
    RMS_NORM_BACKWARD,
    RELATIVE_POSITION_BUCKETS,
    RELATIVE_POSITION_BIAS,
    RELATIVE_POSITION_BIAS_BACKWARD,
    UNSCALED_ATTENTION,
    UNSCALED_ATTENTION_BACKWARD,
    GATED_FEED_FORWARD,
    GATED_FEED_FORWARD_BACKWARD,
]
