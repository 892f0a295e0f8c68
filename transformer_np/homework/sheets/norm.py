"""Layer normalisation and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes

# --- layer_norm ------------------------------------------------------------------------------------------------------


def _rows(rng, shape, least, most):
    """Random rows, each with a mean and a standard deviation of its own, the latter between `least` and `most`."""
    z = rng.normal(size=shape)
    z = (z - z.mean(axis=-1, keepdims=True)) / z.std(axis=-1, keepdims=True)
    rows = (*shape[:-1], 1)
    return z * rng.uniform(least, most, size=rows) + rng.normal(size=rows)


def _layer_norm_cases(rng):
    sizes = draw_sizes(rng, "B T D H", least=3)  # from 3 on: two numbers, normalised, are −1 and 1 whatever they were
    B, T, D, H = sizes.values()
    x = _rows(rng, (B, T, D), 1.5, 3)  # so large that the default ε does not show
    gamma, beta = rng.normal(size=(2, D))
    level = x.copy()
    level[-1, 0] = 0.25
    deep = _rows(rng, (B, H, T, D), 1.5, 3)
    plain = {"B": B, "T": T, "D": D}
    return [
        Case("", (x, gamma, beta), sizes=plain),
        Case("eps=0.3", (x, gamma, beta), {"eps": 0.3}, plain),
        Case("numbers so small that ε counts", (0.0015 * x, gamma, beta), sizes=plain),
        Case("a row of equal numbers", (level, gamma, beta), sizes=plain),
        Case("x of shape (T, D)", (x[0], gamma, beta), {"eps": 0.1}, {"T": T, "D": D}),
        Case("x of shape (B, H, T, D)", (deep, gamma, beta), sizes=sizes),
        Case("one row, x of shape (D,)", (x[0, 0], gamma, beta), {"eps": 0.2}, {"D": D}),
    ]


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


_DEFAULTS = (1e-3, 1e-6, 1e-8, 1e-12)  # for eps, in place of 1e-5


def _other_default(eps):
    return f"eps={eps:g} by default"


def _wrong_layer_norm(made, x, gamma, beta, eps=1e-5):
    axis, keep = _axis(made, x.ndim), not made("statistics without keepdims")
    if made("eps not used"):
        eps = 1e-5
    for default in _DEFAULTS:
        if made(_other_default(default)) and eps == 1e-5:
            eps = default
    if made("eps forgotten"):
        eps = 0.0
    if made("eps squared"):
        eps = eps * eps
    mean = x.mean(axis=axis, keepdims=keep)
    if made("sum for the mean"):
        mean = x.sum(axis=axis, keepdims=keep)
    centred = x + mean if made("mean added") else x - mean
    if made("mean not subtracted"):
        centred = x
    deviation = x if made("variance not centred") else centred
    if made("mean subtracted in σ² only"):
        centred = x
    variance = (deviation**2).mean(axis=axis, keepdims=keep)
    if made("divided by D − 1"):
        variance = variance * (x.shape[-1] / (x.shape[-1] - 1))
    if made("variance not divided by D"):
        variance = (deviation**2).sum(axis=axis, keepdims=keep)
    if made("mean absolute deviation"):
        variance = np.abs(deviation).mean(axis=axis, keepdims=keep) ** 2
    if made("eps outside the root"):
        std = np.sqrt(variance) + eps
    elif made("eps inside and outside the root"):
        std = np.sqrt(variance + eps) + eps
    elif made("eps as a lower bound"):
        std = np.sqrt(np.maximum(variance, eps))
    elif made("variance not rooted"):
        std = variance + eps
    elif made("largest minus smallest number"):
        std = x.max(axis=axis, keepdims=keep) - x.min(axis=axis, keepdims=keep) + eps
    else:
        std = np.sqrt(variance + eps)
    inv_std = std if made("multiplied by the standard deviation") else 1 / std
    x_hat = x * inv_std - mean if made("mean subtracted after the division") else centred * inv_std
    if made("normalised twice"):
        x_hat = (x_hat - x_hat.mean(axis=axis, keepdims=keep)) / np.sqrt(x_hat.var(axis=axis, keepdims=keep) + eps)
    if made("only the mean divided"):
        x_hat = x - mean * inv_std
    if made("γ and β swapped"):
        gamma, beta = beta, gamma
    scaled = x if made("γ and β on x itself") else x_hat
    if not made("γ forgotten"):
        factor = 1 + gamma if made("1 + γ for γ") else gamma
        if made("γ squared"):
            factor = gamma**2
        if made("divided by γ"):
            factor = 1 / gamma
        scaled = (centred if made("γ on x − μ") else scaled) * factor
    if made("β inside the bracket"):
        y = gamma * (x_hat + beta)
    elif made("β forgotten"):
        y = scaled
    else:
        y = scaled - beta if made("β subtracted") else scaled + beta
    if made("x_hat with γ"):
        x_hat = x_hat * gamma
    if made("y for x_hat"):
        x_hat = y
    if made("x_hat only centred"):
        x_hat = centred
    if made("x for x_hat"):
        x_hat = x
    if made("mean for x_hat"):
        x_hat = mean
    if made("standard deviation for inv_std"):
        inv_std = 1 / inv_std
    if made("variance for inv_std"):
        inv_std = variance
    if made("inverse variance for inv_std"):
        inv_std = inv_std**2
    if made("inv_std without ε"):
        inv_std = 1 / np.sqrt(variance)
    if made("inv_std without its axis"):
        inv_std = inv_std[..., 0]
    if made("inv_std repeated"):
        inv_std = inv_std * np.ones_like(x)
    return (y, inv_std, x_hat) if made("x_hat and inv_std swapped") else (y, x_hat, inv_std)


LAYER_NORM = Exercise(
    F.layer_norm,
    (Result("y", "... D"), Result("x_hat", "... D"), Result("inv_std", "... 1")),
    _layer_norm_cases,
    {
        "statistics without keepdims": (
            "Mean and variance lose the axis they were taken over, so they have the shape (B, T) and do not broadcast "
            "against x, (B, T, D). keepdims=True leaves an axis of length 1: (B, T, 1)."
        ),
        "divided by D − 1": (
            "The variance is divided by D − 1 (ddof=1, the estimate for a sample). Layer norm divides by D: σ² = 1/D Σ "
            "(x − μ)²."
        ),
        "eps not used": "The argument `eps` is not used: the number under the root is always the same.",
        **{
            _other_default(
                eps
            ): f"The default is eps={eps:g} instead of eps=1e-5, which shows where a variance is small."
            for eps in _DEFAULTS
        },
        "eps forgotten": (
            "ε is missing under the root: σ instead of √(σ² + ε). Where all numbers of a row are equal this divides by "
            "0."
        ),
        "eps outside the root": "ε is added to the standard deviation, √σ² + ε; it belongs under the root: √(σ² + ε).",
        "eps inside and outside the root": (
            "ε is added twice: under the root, where it belongs, and once more after it."
        ),
        "eps squared": "ε is squared: √(σ² + ε²) instead of √(σ² + ε). It is added to the variance as it is.",
        "eps as a lower bound": (
            "ε is a lower bound of the variance, max(σ², ε), instead of a summand: √(σ² + ε) has it in every row."
        ),
        "variance not rooted": (
            "x − μ is divided by the variance σ² + ε; the square root is missing. Only √(σ² + ε) makes the variance of "
            "x̂ 1."
        ),
        "variance not divided by D": (
            "σ² is the sum of the squares Σ (x − μ)², not divided by D: it has to be their mean. So x̂ has length 1 "
            "instead of variance 1."
        ),
        "mean absolute deviation": (
            "x − μ is divided by the mean of |x − μ| instead of by the standard deviation, the root of the mean of (x "
            "− μ)²."
        ),
        "largest minus smallest number": (
            "x − μ is divided by the range max x − min x instead of by the standard deviation √(σ² + ε)."
        ),
        "multiplied by the standard deviation": "x − μ is multiplied by √(σ² + ε); it has to be divided by it.",
        "over the batch": (
            "Mean and variance run over the first axis, the sentences of the batch. In layer norm they run over the "
            "last one, the D features of one word: a sentence must not depend on its neighbours."
        ),
        "over the positions": (
            "Mean and variance run over the positions, axis −2, instead of over the D features of one word, axis −1. "
            "So a word depends on later ones, past every mask."
        ),
        "over batch and positions": (
            "This is batch norm: one mean and one variance for each feature, over all words of all sentences. Layer "
            "norm takes them for each word, over its D features, axis −1."
        ),
        "over positions and features": (
            "Mean and variance run over positions and features together, axes (−2, −1): one mean for a whole sentence. "
            "Layer norm has one for each word, over axis −1 alone."
        ),
        "over all numbers at once": (
            "There is one mean and one variance for the whole array. Layer norm has one of each for every row: axis=-1."
        ),
        "mean not subtracted": (
            "The mean μ is not subtracted: this is RMS norm, x / √(mean(x²) + ε). Layer norm has x − μ, above and in "
            "σ²."
        ),
        "mean subtracted after the division": (
            "This is x/√(σ² + ε) − μ: the mean is subtracted after the division. It comes before: a bracket is "
            "missing, x̂ = (x − μ)/√(σ² + ε)."
        ),
        "normalised twice": (
            "x̂ is normalised a second time. Because of ε its variance is a little below 1, and the second time changes "
            "it: once is meant."
        ),
        "γ squared": "γ is in y twice, γ² · x̂ + β. It is γ · x̂ + β.",
        "divided by γ": "x̂ is divided by γ. It is multiplied: y = γ · x̂ + β.",
        "γ on x − μ": (
            "y is γ · (x − μ) + β, without the division by the standard deviation. It is made from x̂: y = γ · x̂ + β."
        ),
        "only the mean divided": (
            "This is x − μ/√(σ² + ε): only the mean is divided. A bracket is missing, x̂ = (x − μ)/√(σ² + ε)."
        ),
        "mean subtracted in σ² only": (
            "The mean μ is subtracted in the variance, but not from the x above it: x̂ = (x − μ) / √(σ² + ε)."
        ),
        "variance not centred": (
            "The variance is the mean of x² instead of the mean of (x − μ)²: the mean is not subtracted in it."
        ),
        "mean added": "The mean is added, x + μ, where it has to be subtracted: a sign is wrong.",
        "sum for the mean": "μ is the sum of the numbers of a row; it is not divided by D.",
        "γ forgotten": "The scale is missing: y = γ · x̂ + β. γ = 1 at the start of a training hides this.",
        "β forgotten": "The shift is missing: y = γ · x̂ + β. β = 0 at the start of a training hides this.",
        "γ and β swapped": "γ and β have changed places: here β scales and γ is added. y = γ · x̂ + β.",
        "β inside the bracket": (
            "This is γ · (x̂ + β): the shift is scaled too. β stands outside the bracket, y = γ · x̂ + β."
        ),
        "β subtracted": "β is subtracted where it has to be added: y = γ · x̂ + β.",
        "1 + γ for γ": "x̂ is scaled by 1 + γ. Here γ is the scale itself and starts at 1: y = γ · x̂ + β.",
        "γ and β on x itself": "γ and β are applied to x instead of to the normalised x̂: y = γ · x̂ + β.",
        "x_hat with γ": (
            "What is returned as x_hat is γ · x̂. The backward needs x̂ itself, before γ and β: dγ = Σ dy · x̂."
        ),
        "y for x_hat": "y is returned twice: x_hat is to be the normalised x, before γ and β.",
        "x_hat only centred": "What is returned as x_hat is x − μ; it is not divided by √(σ² + ε).",
        "x for x_hat": "The input x is returned as x_hat; the backward needs the normalised x̂ = (x − μ) / √(σ² + ε).",
        "mean for x_hat": (
            "The mean μ is returned where x_hat belongs: what the backward needs is y, x̂ and 1/√(σ² + ε), in this "
            "order."
        ),
        "standard deviation for inv_std": (
            "What is returned as inv_std is √(σ² + ε); inv_std is its inverse, 1/√(σ² + ε), by which the backward "
            "multiplies."
        ),
        "variance for inv_std": "What is returned as inv_std is the variance σ²; inv_std is 1/√(σ² + ε).",
        "inverse variance for inv_std": (
            "What is returned as inv_std is 1/(σ² + ε), without the square root: inv_std is 1/√(σ² + ε)."
        ),
        "inv_std without ε": (
            "What is returned as inv_std is 1/σ, without the ε that x̂ was divided with: inv_std is 1/√(σ² + ε)."
        ),
        "inv_std without its axis": (
            "inv_std has lost the last axis: (B, T) instead of (B, T, 1). With the axis of length 1, keepdims=True, it "
            "broadcasts against x̂ in the backward."
        ),
        "inv_std repeated": (
            "inv_std is repeated for every feature. It is one number for each row: the shape is (…, 1), not (…, D)."
        ),
        "x_hat and inv_std swapped": "x_hat and inv_std are returned in the wrong order: y, x_hat, inv_std.",
    },
    _wrong_layer_norm,
    (
        "Which numbers share a mean: those of one word, or those of one feature?",
        "y = γ · x̂ + β,  x̂ = (x − μ) / √(σ² + ε),  σ² = 1/D Σ (x − μ)²,  μ and σ² over the last axis",
        "notebook 04, section 6; ndarray.mean with axis=-1 and keepdims=True. inv_std is 1/√(σ² + ε).",
    ),
    difficulty=1,
    section="§8.1",
    chapter="Feed-forward network and layer norm",
    place=6,
)


# --- layer_norm_backward ---------------------------------------------------------------------------------------------


def _layer_norm_backward_cases(rng):
    sizes = draw_sizes(rng, "B T D H", least=3)
    B, T, D, H = sizes.values()
    gamma, beta = rng.normal(size=(2, D))

    def case(label, shape, eps=1e-5):
        dy = rng.normal(size=shape)
        _, x_hat, inv_std = F.layer_norm(_rows(rng, shape, 0.5, 2), gamma, beta, eps)
        letters = {2: "TD", 3: "BTD", 4: "BHTD"}.get(len(shape), "D")
        return Case(label, (dy, x_hat, inv_std, gamma), sizes=dict(zip(letters, shape, strict=True)))

    return [
        case("", (B, T, D)),
        case("a forward with eps=0.3", (B, T, D), 0.3),
        case("x of shape (T, D)", (T, D)),
        case("x of shape (B, H, T, D)", (B, H, T, D)),
        case("one row, x of shape (D,)", (D,), 0.1),
    ]


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


def _wrong_layer_norm_backward(made, dy, x_hat, inv_std, gamma):
    D, axis = dy.shape[-1], _axis(made, dy.ndim)
    dgamma_terms = dy if made("dgamma without x̂") else dy * x_hat
    if made("dgamma with γ"):
        dgamma_terms = dgamma_terms * gamma
    if made("dgamma of x − μ"):
        dgamma_terms = dgamma_terms / inv_std
    if made("dgamma with inv_std"):
        dgamma_terms = dgamma_terms * inv_std
    dbeta_terms = dy * gamma if made("dbeta with γ") else dy
    if made("dbeta with x̂"):
        dbeta_terms = dbeta_terms * x_hat
    dgamma, dbeta = _summed(made, dgamma_terms, "dgamma"), _summed(made, dbeta_terms, "dbeta")
    if made("dgamma and dbeta swapped"):
        dgamma, dbeta = dbeta, dgamma

    dx_hat = dy if made("γ missing in dx") or made("γ after the means") else dy * gamma
    if made("dx̂ divided by γ"):
        dx_hat = dy / gamma
    if made("x̂ for γ in dx̂"):
        dx_hat = dy * x_hat
    first = dy if made("γ missing in mean(dx̂)") else dx_hat
    second = dy if made("γ missing in mean(dx̂ · x̂)") else dx_hat
    if not made("x̂ missing inside mean(dx̂ · x̂)"):
        second = second * x_hat
    keep = not made("means without keepdims")
    first, second = first.mean(axis=axis, keepdims=keep), second.mean(axis=axis, keepdims=keep)
    if made("sums for means") or made("sum for mean(dx̂)"):
        first = first * D
    if made("sums for means") or made("sum for mean(dx̂ · x̂)"):
        second = second * D
    if made("means divided by D − 1"):
        first, second = first * D / (D - 1), second * D / (D - 1)
    if not made("x̂ missing before mean(dx̂ · x̂)"):
        second = second * x_hat
    if made("mean(dx̂ · x̂) doubled"):
        second = 2 * second
    if made("mean(dx̂ · x̂) halved"):
        second = second / 2
    if made("mean(dx̂ · x̂) with one inv_std too many"):
        second = second * inv_std
    if made("mean(dx̂ · x̂) with one inv_std too few"):
        second = second / inv_std
    if made("mean(dx̂ · x̂) with two inv_std too many"):
        second = second * inv_std**2
    if made("mean(dx̂) with one inv_std too few"):
        first = first / inv_std
    if made("mean(dx̂) added"):
        first = -first
    if made("mean(dx̂ · x̂) added"):
        second = -second
    if made("mean(dx̂) missing") or made("no mean terms"):
        first = 0
    if made("mean(dx̂ · x̂) missing") or made("no mean terms"):
        second = 0
    if made("means outside the bracket"):
        dx = dx_hat * inv_std - first - second
    elif made("only the diagonal"):
        dx = dx_hat * inv_std * (1 - 1 / D - x_hat * x_hat / D)
    else:
        scale = inv_std
        if made("inv_std forgotten"):
            scale = 1.0
        if made("inv_std squared"):
            scale = inv_std**2
        if made("divided by inv_std"):
            scale = 1 / inv_std
        dx = (dx_hat - first - second) * scale
    if made("γ after the means"):
        dx = dx * gamma
    if made("dx divided by the number of rows"):
        dx = dx / (dy.size // D)
    if made("dx divided by the batch"):
        dx = dx / len(dy)
    if made("dx divided by D"):
        dx = dx / D
    if made("dy added to dx"):
        dx = dx + dy
    return dx, dgamma, dbeta


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


LAYER_NORM_BACKWARD = Exercise(
    F.layer_norm_backward,
    (Result("dx", "... D"), Result("dgamma", "D"), Result("dbeta", "D")),
    _layer_norm_backward_cases,
    {
        "means without keepdims": (
            "The means lose the axis they were taken over, so they have the shape (B, T) and do not broadcast against "
            "dx̂, (B, T, D). keepdims=True leaves an axis of length 1: (B, T, 1)."
        ),
        "no mean terms": (
            "Both means are missing: this is dx̂ / √(σ² + ε), as if μ and σ² were constants. But every x of a row is "
            "in its μ and σ²; these two ways are −mean(dx̂) and −x̂ · mean(dx̂ · x̂)."
        ),
        "mean(dx̂) missing": (
            "The term −mean(dx̂) is missing, the way of x through the mean μ: moving all x of a row together changes "
            "nothing, so dx must add to 0 in a row."
        ),
        "mean(dx̂ · x̂) missing": (
            "The term −x̂ · mean(dx̂ · x̂) is missing, the way of x through the variance σ²: it is not a constant."
        ),
        "γ missing in dx": (
            "γ is missing in dx: the gradient of x̂ is dx̂ = dy · γ. γ = 1 at the start of a training hides this."
        ),
        "γ after the means": (
            "γ is multiplied at the end. It belongs before the means, dx̂ = dy · γ, because they mix the features, and "
            "each has its own γ."
        ),
        "dx̂ divided by γ": "dy is divided by γ on the way to x̂: y = γ · x̂ + β gives dx̂ = dy · γ.",
        "x̂ for γ in dx̂": (
            "dy is multiplied by x̂ on the way to x̂: that is dγ before the sum. y = γ · x̂ + β gives dx̂ = dy · γ."
        ),
        "γ missing in mean(dx̂)": "The first mean is mean(dy): γ is missing in it. It is mean(dx̂) with dx̂ = dy · γ.",
        "γ missing in mean(dx̂ · x̂)": (
            "The second mean is mean(dy · x̂): γ is missing in it. It is mean(dx̂ · x̂) with dx̂ = dy · γ."
        ),
        "x̂ missing inside mean(dx̂ · x̂)": (
            "The term through the variance is x̂ · mean(dx̂): the x̂ inside the mean is missing, x̂ · mean(dx̂ · x̂)."
        ),
        "x̂ missing before mean(dx̂ · x̂)": (
            "The term through the variance is mean(dx̂ · x̂), the same for the whole row: the x̂ in front of it is "
            "missing."
        ),
        "sums for means": (
            "Both terms are sums over the features where they have to be means: they are too large by the factor D."
        ),
        "sum for mean(dx̂)": (
            "The first term is the sum Σ dx̂ where it has to be the mean over the features: it is too large by the "
            "factor D."
        ),
        "sum for mean(dx̂ · x̂)": (
            "The second term is x̂ · Σ dx̂ · x̂ where it has to be a mean over the features: it is too large by the "
            "factor D."
        ),
        "means divided by D − 1": "The means over the features are divided by D − 1 instead of D.",
        "mean(dx̂) added": (
            "The first mean is added where it has to be subtracted: dx̂ − mean(dx̂) − x̂ · mean(dx̂ · x̂). A sign is wrong."
        ),
        "mean(dx̂ · x̂) added": (
            "The second mean is added where it has to be subtracted: dx̂ − mean(dx̂) − x̂ · mean(dx̂ · x̂). A sign is wrong."
        ),
        "mean(dx̂ · x̂) doubled": (
            "The term through the variance is too large by a factor 2. The 2 from (x − μ)² and the ½ from the root "
            "cancel."
        ),
        "mean(dx̂ · x̂) halved": (
            "The term through the variance is too small by a factor 2. The 2 from (x − μ)² and the ½ from the root "
            "cancel."
        ),
        "mean(dx̂ · x̂) with one inv_std too many": (
            "The term through the variance has one factor 1/√(σ² + ε) too many: with x̂ for x − μ only one is left, "
            "inv_std · x̂ · mean(dx̂ · x̂)."
        ),
        "mean(dx̂ · x̂) with two inv_std too many": (
            "The term through the variance has the factor 1/√(σ² + ε) two times too many, as when x − μ is taken for "
            "x̂: x̂ holds it already, and before the bracket it stands once for all terms."
        ),
        "mean(dx̂ · x̂) with one inv_std too few": (
            "The term through the variance lacks a factor 1/√(σ² + ε): it is inv_std · x̂ · mean(dx̂ · x̂)."
        ),
        "mean(dx̂) with one inv_std too few": (
            "The term through the mean lacks the factor 1/√(σ² + ε): it is inv_std · mean(dx̂)."
        ),
        "means outside the bracket": (
            "Only dx̂ is divided by √(σ² + ε), the two means are not. inv_std stands before all three: a bracket is "
            "missing."
        ),
        "only the diagonal": (
            "This is the diagonal of the Jacobian alone, dx̂ · (1 − 1/D − x̂²/D) / √(σ² + ε), as if each output hung "
            "on its own x only. Every x of a row is in μ and σ², and so in all outputs of the row: the terms are means "
            "over dx̂."
        ),
        "inv_std forgotten": "The factor inv_std is missing in dx: everything is divided by √(σ² + ε).",
        "inv_std squared": "inv_std is in dx twice: dx̂ and the means are divided by √(σ² + ε) once.",
        "divided by inv_std": "dx is divided by inv_std. inv_std is 1/√(σ² + ε) already: multiply by it.",
        "over the batch": "The means run over the first axis, the batch; they run over the features of a row, axis −1.",
        "over the positions": (
            "The means run over the positions, axis −2; they run over the features of a row, axis −1."
        ),
        "over batch and positions": (
            "The means run over batch and positions: that is the backward of batch norm. Those of layer norm run over "
            "the features of a row, axis −1."
        ),
        "over positions and features": (
            "The means run over positions and features together; they run over the features of a row alone, axis −1."
        ),
        "over all numbers at once": "The means run over the whole array; they run over the features of a row, axis −1.",
        "dx divided by the number of rows": (
            "dx is divided by the number of rows. A row depends on its own numbers only, and the mean of the loss is "
            "already in dy."
        ),
        "dx divided by the batch": "dx is divided by the size of the batch. The mean of the loss is already in dy.",
        "dx divided by D": "dx as a whole is divided by D. Only the two subtracted terms are means over D.",
        "dy added to dx": (
            "dy is added to dx, as if there were a residual path around the norm. That is not part of this function."
        ),
        **_of_vector("dgamma", "dy · x̂", "γ"),
        "dgamma without x̂": "x̂ is missing in dgamma, so that it equals dbeta: y = γ · x̂ + β gives dγ = Σ dy · x̂.",
        "dgamma with γ": "γ is a factor in dgamma: y is linear in γ, so dγ = Σ dy · x̂, with dy and not with dx̂.",
        "dgamma of x − μ": ("dgamma is Σ dy · (x − μ): what γ multiplies is the normalised x̂, dγ = Σ dy · x̂."),
        "dgamma with inv_std": "inv_std is a factor in dgamma. It is in x̂ already: dγ = Σ dy · x̂.",
        **_of_vector("dbeta", "dy", "β"),
        "dbeta with γ": "γ is a factor in dbeta: β is added after the scaling, so dβ = Σ dy, with dy and not with dx̂.",
        "dbeta with x̂": "x̂ is a factor in dbeta, so that it equals dgamma: β is added as it is, dβ = Σ dy.",
        "dgamma and dbeta swapped": "dgamma and dbeta are returned in the wrong order: dx, dgamma, dbeta.",
    },
    _wrong_layer_norm_backward,
    (
        "x reaches y by itself, through μ and through σ². What does each of the three ways contribute?",
        ("dx = (dx̂ − mean(dx̂) − x̂ · mean(dx̂ · x̂)) / √(σ² + ε),  dx̂ = dy · γ,  dγ = Σ dy · x̂,  dβ = Σ dy over the rows"),
        "notebook 06, section 5; means over axis −1 with keepdims=True, sums over all axes but the last.",
    ),
    difficulty=3,
    section="behind §8.1",
    chapter="Backpropagation",
    place=9,
)

EXERCISES = [LAYER_NORM, LAYER_NORM_BACKWARD]
