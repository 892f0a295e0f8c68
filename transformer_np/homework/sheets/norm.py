"""Layer normalisation and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes

# --- layer_norm -------------------------------------------------------------------------------------------------------


def random_rows(rng, shape, least, most):
    """Random rows, each with a mean and a standard deviation of its own, the latter between `least` and `most`."""
    z = rng.normal(size=shape)
    z = (z - z.mean(axis=-1, keepdims=True)) / z.std(axis=-1, keepdims=True)
    rows = (*shape[:-1], 1)
    return z * rng.uniform(least, most, size=rows) + rng.normal(size=rows)


def layer_norm_cases(rng):
    sizes = draw_sizes(rng, "B T D H", least=3)  # from 3 on: two numbers, normalised, are −1 and 1 whatever they were
    B, T, D, H = sizes.values()
    x = random_rows(rng, (B, T, D), 1.5, 3)  # so large that the default ε does not show
    gamma, beta = rng.normal(size=(2, D))
    level = x.copy()
    level[-1, 0] = 0.25
    deep = random_rows(rng, (B, H, T, D), 1.5, 3)
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


def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    variance = (centred**2).mean(axis=-1, keepdims=True)
    std = np.sqrt(variance + eps)
    inv_std = 1 / std
    x_hat = centred * inv_std
    y = gamma * x_hat + beta
    return y, x_hat, inv_std


LAYER_NORM = Exercise(
    F.layer_norm,
    results=(Result("y", "... D"), Result("x_hat", "... D"), Result("inv_std", "... 1")),
    cases=layer_norm_cases,
    answer=layer_norm,
    hints=(
        "Which numbers share a mean: those of one word, or those of one feature?",
        "y = γ · x̂ + β,  x̂ = (x − μ) / √(σ² + ε),  σ² = 1/D Σ (x − μ)²,  μ and σ² over the last axis",
        "notebook 04, section 6; ndarray.mean with axis=-1 and keepdims=True. inv_std is 1/√(σ² + ε).",
    ),
    difficulty=1,
    section="§8.1",
    chapter="Feed-forward network and layer norm",
    place=6,
    mistakes="""
- statistics without keepdims:  every keepdims=True -> keepdims=False
  Mean and variance lose the axis they were taken over, so they have the shape (B, T) and do not broadcast against x,
  (B, T, D). keepdims=True leaves an axis of length 1: (B, T, 1).
- divided by D − 1:
    (centred**2).mean(axis=-1, keepdims=True) -> (centred**2).sum(axis=-1, keepdims=True) / (x.shape[-1] - 1)
  The variance is divided by D − 1 (ddof=1, the estimate for a sample). Layer norm divides by D: σ² = 1/D Σ (x − μ)².
- eps not used:  variance + eps -> variance + 1e-5
  The argument `eps` is not used: the number under the root is always the same.
- eps=0.001 by default:  eps=1e-5 -> eps=1e-3
  The default is eps=0.001 instead of eps=1e-5, which shows where a variance is small.
- eps=1e-06 by default:  eps=1e-5 -> eps=1e-6
  The default is eps=1e-06 instead of eps=1e-5, which shows where a variance is small.
- eps=1e-08 by default:  eps=1e-5 -> eps=1e-8
  The default is eps=1e-08 instead of eps=1e-5, which shows where a variance is small.
- eps=1e-12 by default:  eps=1e-5 -> eps=1e-12
  The default is eps=1e-12 instead of eps=1e-5, which shows where a variance is small.
- eps forgotten:  variance + eps -> variance
  ε is missing under the root: σ instead of √(σ² + ε). Where all numbers of a row are equal this divides by 0.
- eps outside the root:  np.sqrt(variance + eps) -> np.sqrt(variance) + eps
  ε is added to the standard deviation, √σ² + ε; it belongs under the root: √(σ² + ε).
- eps inside and outside the root:  np.sqrt(variance + eps) -> np.sqrt(variance + eps) + eps
  ε is added twice: under the root, where it belongs, and once more after it.
- eps squared:  variance + eps -> variance + eps**2
  ε is squared: √(σ² + ε²) instead of √(σ² + ε). It is added to the variance as it is.
- eps as a lower bound:  variance + eps -> np.maximum(variance, eps)
  ε is a lower bound of the variance, max(σ², ε), instead of a summand: √(σ² + ε) has it in every row.
- variance not rooted:  np.sqrt(variance + eps) -> variance + eps
  x − μ is divided by the variance σ² + ε; the square root is missing. Only √(σ² + ε) makes the variance of x̂ 1.
- variance not divided by D:  (centred**2).mean -> (centred**2).sum
  σ² is the sum of the squares Σ (x − μ)², not divided by D: it has to be their mean. So x̂ has length 1 instead of
  variance 1.
- mean absolute deviation:
    (centred**2).mean(axis=-1, keepdims=True) -> np.abs(centred).mean(axis=-1, keepdims=True) ** 2
  x − μ is divided by the mean of |x − μ| instead of by the standard deviation, the root of the mean of (x − μ)².
- largest minus smallest number:
    np.sqrt(variance + eps) -> x.max(axis=-1, keepdims=True) - x.min(axis=-1, keepdims=True) + eps
  x − μ is divided by the range max x − min x instead of by the standard deviation √(σ² + ε).
- multiplied by the standard deviation:  1 / std -> std
  x − μ is multiplied by √(σ² + ε); it has to be divided by it.
- over the batch:  every axis=-1 -> axis=0
  Mean and variance run over the first axis, the sentences of the batch. In layer norm they run over the last one, the D
  features of one word: a sentence must not depend on its neighbours.
- over the positions:  every axis=-1 -> axis=-2
  Mean and variance run over the positions, axis −2, instead of over the D features of one word, axis −1. So a word
  depends on later ones, past every mask.
- over batch and positions:  every axis=-1 -> axis=tuple(range(x.ndim - 1))
  This is batch norm: one mean and one variance for each feature, over all words of all sentences. Layer norm takes them
  for each word, over its D features, axis −1.
- over positions and features:  every axis=-1 -> axis=tuple(range(x.ndim)[-2:])
  Mean and variance run over positions and features together, axes (−2, −1): one mean for a whole sentence. Layer norm
  has one for each word, over axis −1 alone.
- over all numbers at once:  every axis=-1 -> axis=None
  There is one mean and one variance for the whole array. Layer norm has one of each for every row: axis=-1.
- mean not subtracted:  x - mean -> x
  The mean μ is not subtracted: this is RMS norm, x / √(mean(x²) + ε). Layer norm has x − μ, above and in σ².
- mean subtracted after the division:  centred * inv_std -> x * inv_std - mean
  This is x/√(σ² + ε) − μ: the mean is subtracted after the division. It comes before: a bracket is missing, x̂ = (x −
  μ)/√(σ² + ε).
- normalised twice:
    y = gamma ->
        x_hat = x_hat - x_hat.mean(axis=-1, keepdims=True)
        x_hat = x_hat / np.sqrt((x_hat**2).mean(axis=-1, keepdims=True) + eps)
        y = gamma
  x̂ is normalised a second time. Because of ε its variance is a little below 1, and the second time changes it:
  normalise once.
- γ squared:  gamma * x_hat -> gamma**2 * x_hat
  γ is in y twice, γ² · x̂ + β. It is γ · x̂ + β.
- divided by γ:  gamma * x_hat -> x_hat / gamma
  x̂ is divided by γ. It is multiplied: y = γ · x̂ + β.
- γ on x − μ:  gamma * x_hat -> gamma * centred
  y is γ · (x − μ) + β, without the division by the standard deviation. It is made from x̂: y = γ · x̂ + β.
- only the mean divided:  centred * inv_std -> x - mean * inv_std
  This is x − μ/√(σ² + ε): only the mean is divided. A bracket is missing, x̂ = (x − μ)/√(σ² + ε).
- mean subtracted in σ² only:  centred * inv_std -> x * inv_std
  The mean μ is subtracted in the variance, but not from the x above it: x̂ = (x − μ) / √(σ² + ε).
- variance not centred:  centred**2 -> x**2
  The variance is the mean of x² instead of the mean of (x − μ)²: the mean is not subtracted in it.
- mean added:  x - mean -> x + mean
  The mean is added, x + μ. Subtract it: a sign is wrong.
- sum for the mean:  x.mean -> x.sum
  μ is the sum of the numbers of a row; it is not divided by D.
- γ forgotten:  gamma * x_hat -> x_hat
  The scale is missing: y = γ · x̂ + β. γ = 1 at the start of a training hides this.
- β forgotten:  gamma * x_hat + beta -> gamma * x_hat
  The shift is missing: y = γ · x̂ + β. β = 0 at the start of a training hides this.
- γ and β swapped:  gamma * x_hat + beta -> beta * x_hat + gamma
  γ and β are swapped: here β scales and γ is added. y = γ · x̂ + β.
- β inside the bracket:  gamma * x_hat + beta -> gamma * (x_hat + beta)
  This is γ · (x̂ + β): the shift is scaled too. β stands outside the bracket, y = γ · x̂ + β.
- β subtracted:  gamma * x_hat + beta -> gamma * x_hat - beta
  β is subtracted. Add it: y = γ · x̂ + β.
- 1 + γ for γ:  gamma * x_hat -> (1 + gamma) * x_hat
  x̂ is scaled by 1 + γ. Here γ is the scale itself and starts at 1: y = γ · x̂ + β.
- γ and β on x itself:  gamma * x_hat -> gamma * x
  γ and β are applied to x instead of to the normalised x̂: y = γ · x̂ + β.
- x_hat with γ:  return y, x_hat -> return y, gamma * x_hat
  The returned x_hat is γ · x̂. The backward needs x̂ itself, before γ and β: dγ = Σ dy · x̂.
- y for x_hat:  return y, x_hat -> return y, y
  y is returned twice: x_hat must be the normalised x, before γ and β.
- x_hat only centred:  return y, x_hat -> return y, centred
  The returned x_hat is x − μ; it is not divided by √(σ² + ε).
- x for x_hat:  return y, x_hat -> return y, x
  The input x is returned as x_hat; the backward needs the normalised x̂ = (x − μ) / √(σ² + ε).
- mean for x_hat:  return y, x_hat -> return y, mean
  The mean μ is returned where x_hat belongs: what the backward needs is y, x̂ and 1/√(σ² + ε), in this order.
- standard deviation for inv_std:  x_hat, inv_std -> x_hat, std
  The returned inv_std is √(σ² + ε); inv_std is its inverse, 1/√(σ² + ε), by which the backward multiplies.
- variance for inv_std:  x_hat, inv_std -> x_hat, variance
  The returned inv_std is the variance σ²; inv_std is 1/√(σ² + ε).
- inverse variance for inv_std:  x_hat, inv_std -> x_hat, inv_std**2
  The returned inv_std is 1/(σ² + ε), without the square root: inv_std is 1/√(σ² + ε).
- inv_std without ε:  x_hat, inv_std -> x_hat, 1 / np.sqrt(variance)
  The returned inv_std is 1/σ, without the ε that x̂ was divided with: inv_std is 1/√(σ² + ε).
- inv_std without its axis:  x_hat, inv_std -> x_hat, inv_std[..., 0]
  inv_std has lost the last axis: (B, T) instead of (B, T, 1). With the axis of length 1, keepdims=True, it broadcasts
  against x̂ in the backward.
- inv_std repeated:  x_hat, inv_std -> x_hat, inv_std * np.ones_like(x)
  inv_std is repeated for every feature. It is one number for each row: the shape is (…, 1), not (…, D).
- x_hat and inv_std swapped:  y, x_hat, inv_std -> y, inv_std, x_hat
  x_hat and inv_std are returned in the wrong order: y, x_hat, inv_std.
""",
)


# --- layer_norm_backward ----------------------------------------------------------------------------------------------


def layer_norm_backward_cases(rng):
    sizes = draw_sizes(rng, "B T D H", least=3)
    B, T, D, H = sizes.values()
    gamma, beta = rng.normal(size=(2, D))

    def case(label, shape, eps=1e-5):
        dy = rng.normal(size=shape)
        _, x_hat, inv_std = F.layer_norm(random_rows(rng, shape, 0.5, 2), gamma, beta, eps)
        letters = {2: "TD", 3: "BTD", 4: "BHTD"}.get(len(shape), "D")
        return Case(label, (dy, x_hat, inv_std, gamma), sizes=dict(zip(letters, shape, strict=True)))

    return [
        case("", (B, T, D)),
        case("a forward with eps=0.3", (B, T, D), 0.3),
        case("x of shape (T, D)", (T, D)),
        case("x of shape (B, H, T, D)", (B, H, T, D)),
        case("one row, x of shape (D,)", (D,), 0.1),
    ]


def layer_norm_backward(dy, x_hat, inv_std, gamma):
    rows = tuple(range(dy.ndim - 1))
    dgamma = (dy * x_hat).sum(axis=rows)
    dbeta = dy.sum(axis=rows)
    dx_hat = dy * gamma
    first = dx_hat.mean(axis=-1, keepdims=True)
    second = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = inv_std * (dx_hat - first - second)
    return dx, dgamma, dbeta


def of_vector(name, summand, formula, letter):
    """The mistakes that the gradients of γ and β share."""
    return f"""
- {name} not summed:  {summand}.sum(axis=rows) -> {summand}
  {name} is not summed over the rows: {letter} is one vector of D numbers that met every row, so its gradient, Σ
  {formula}, is summed over all axes but the last and has the shape (D,).
- {name} averaged:  {summand}.sum(axis=rows) -> {summand}.mean(axis=rows)
  {name} is a mean over the rows. It must be a sum, Σ {formula}: it is too small by the number of rows. The mean of the
  loss is already in dy.
- {name} divided by the batch:  {summand}.sum(axis=rows) -> {summand}.sum(axis=rows) / len(dy)
  {name} is divided by the size of the batch. The mean of the loss is already in dy: {name} is the sum Σ {formula}.
- {name} summed over the batch only:  {summand}.sum(axis=rows) -> {summand}.sum(axis=0)
  {name} is summed over the first axis only. {letter} met every row, so the sum runs over all axes but the last, batch
  and positions.
- {name} summed over the positions only:  {summand}.sum(axis=rows) -> {summand}.sum(axis=-2)
  {name} is summed over the positions only, axis −2. {letter} met every row, so the sum runs over all axes but the
  last, batch and positions.
- {name} summed over the first two axes:  {summand}.sum(axis=rows) -> {summand}.sum(axis=(0, 1))
  {name} is always summed over the axes 0 and 1, which is right for (B, T, D) only. The sum runs over all axes but the
  last, however many there are.
- {name} summed over the features:  {summand}.sum(axis=rows) -> {summand}.sum(axis=-1)
  {name} is summed over the last axis, the features. {letter} has one number for each feature: the sum runs over all
  axes but the last and leaves the shape (D,).
- {name} summed over everything:  {summand}.sum(axis=rows) -> {summand}.sum()
  {name} is a single number, summed over the features too. {letter} has one number for each feature: the sum runs over
  all axes but the last and leaves the shape (D,).
- {name} with keepdims:  {summand}.sum(axis=rows) -> {summand}.sum(axis=rows, keepdims=True)
  {name} keeps axes of length 1 in front, from keepdims=True. It has the shape of {letter}, (D,).
"""


LAYER_NORM_BACKWARD = Exercise(
    F.layer_norm_backward,
    results=(Result("dx", "... D"), Result("dgamma", "D"), Result("dbeta", "D")),
    cases=layer_norm_backward_cases,
    answer=layer_norm_backward,
    hints=(
        "x reaches y by itself, through μ and through σ². What does each of the three ways contribute?",
        ("dx = (dx̂ − mean(dx̂) − x̂ · mean(dx̂ · x̂)) / √(σ² + ε),  dx̂ = dy · γ,  dγ = Σ dy · x̂,  dβ = Σ dy over the rows"),
        "notebook 06, section 5; means over axis −1 with keepdims=True, sums over all axes but the last.",
    ),
    difficulty=3,
    section="behind §8.1",
    chapter="Backpropagation",
    place=9,
    mistakes="""
- means without keepdims:  every keepdims=True -> keepdims=False
  The means lose the axis they were taken over, so they have the shape (B, T) and do not broadcast against dx̂, (B, T,
  D). keepdims=True leaves an axis of length 1: (B, T, 1).
- no mean terms:  (dx_hat - first - second) -> dx_hat
  Both means are missing: this is dx̂ / √(σ² + ε), as if μ and σ² were constants. But every x of a row is in its μ and
  σ²; these two ways are −mean(dx̂) and −x̂ · mean(dx̂ · x̂).
- mean(dx̂) missing:  dx_hat - first - second -> dx_hat - second
  The term −mean(dx̂) is missing, the path of x through the mean μ: moving all x of a row together changes nothing, so
  dx must add to 0 in a row.
- mean(dx̂ · x̂) missing:  dx_hat - first - second -> dx_hat - first
  The term −x̂ · mean(dx̂ · x̂) is missing, the path of x through the variance σ²: it is not a constant.
- γ missing in dx:  dy * gamma -> dy
  γ is missing in dx: the gradient of x̂ is dx̂ = dy · γ. γ = 1 at the start of a training hides this.
- γ after the means:
    dy * gamma -> dy
    inv_std * -> gamma * inv_std *
  γ is multiplied at the end. It belongs before the means, dx̂ = dy · γ, because they mix the features, and each has its
  own γ.
- dx̂ divided by γ:  dy * gamma -> dy / gamma
  dy is divided by γ on the way to x̂: y = γ · x̂ + β gives dx̂ = dy · γ.
- x̂ for γ in dx̂:  dy * gamma -> dy * x_hat
  dy is multiplied by x̂ on the way to x̂: that is dγ before the sum. y = γ · x̂ + β gives dx̂ = dy · γ.
- γ missing in mean(dx̂):  dx_hat.mean -> dy.mean
  The first mean is mean(dy): γ is missing in it. It is mean(dx̂) with dx̂ = dy · γ.
- γ missing in mean(dx̂ · x̂):  (dx_hat * x_hat).mean -> (dy * x_hat).mean
  The second mean is mean(dy · x̂): γ is missing in it. It is mean(dx̂ · x̂) with dx̂ = dy · γ.
- x̂ missing inside mean(dx̂ · x̂):  (dx_hat * x_hat).mean -> dx_hat.mean
  The term through the variance is x̂ · mean(dx̂): the x̂ inside the mean is missing, x̂ · mean(dx̂ · x̂).
- x̂ missing before mean(dx̂ · x̂):  x_hat * (dx_hat * x_hat).mean -> (dx_hat * x_hat).mean
  The term through the variance is mean(dx̂ · x̂), the same for the whole row: the x̂ in front of it is missing.
- sums for means:
    dx_hat.mean -> dx_hat.sum
    (dx_hat * x_hat).mean -> (dx_hat * x_hat).sum
  Both terms are sums over the features. They must be means: they are too large by the factor D.
- sum for mean(dx̂):  dx_hat.mean -> dx_hat.sum
  The first term is the sum Σ dx̂. It must be the mean over the features: it is too large by the factor D.
- sum for mean(dx̂ · x̂):  (dx_hat * x_hat).mean -> (dx_hat * x_hat).sum
  The second term is x̂ · Σ dx̂ · x̂. It must be a mean over the features: it is too large by the factor D.
- means divided by D − 1:
    dx_hat - first - second -> dx_hat - (first + second) * dy.shape[-1] / (dy.shape[-1] - 1)
  The means over the features are divided by D − 1 instead of D.
- mean(dx̂) added:  dx_hat - first -> dx_hat + first
  The first mean is added. Subtract it: dx̂ − mean(dx̂) − x̂ · mean(dx̂ · x̂). A sign is wrong.
- mean(dx̂ · x̂) added:  first - second -> first + second
  The second mean is added. Subtract it: dx̂ − mean(dx̂) − x̂ · mean(dx̂ · x̂). A sign is wrong.
- mean(dx̂ · x̂) doubled:  first - second -> first - 2 * second
  The term through the variance is too large by a factor 2. The 2 from (x − μ)² and the ½ from the root cancel.
- mean(dx̂ · x̂) halved:  first - second -> first - second / 2
  The term through the variance is too small by a factor 2. The 2 from (x − μ)² and the ½ from the root cancel.
- mean(dx̂ · x̂) with one inv_std too many:  first - second -> first - inv_std * second
  The term through the variance has one factor 1/√(σ² + ε) too many: with x̂ for x − μ only one is left, inv_std · x̂ ·
  mean(dx̂ · x̂).
- mean(dx̂ · x̂) with two inv_std too many:  first - second -> first - inv_std**2 * second
  The term through the variance has the factor 1/√(σ² + ε) two times too many, as when x − μ is taken for x̂: x̂ holds
  it already, and before the bracket it stands once for all terms.
- mean(dx̂ · x̂) with one inv_std too few:  first - second -> first - second / inv_std
  The term through the variance lacks a factor 1/√(σ² + ε): it is inv_std · x̂ · mean(dx̂ · x̂).
- mean(dx̂) with one inv_std too few:  dx_hat - first -> dx_hat - first / inv_std
  The term through the mean lacks the factor 1/√(σ² + ε): it is inv_std · mean(dx̂).
- means outside the bracket:  inv_std * (dx_hat - first - second) -> inv_std * dx_hat - first - second
  Only dx̂ is divided by √(σ² + ε), the two means are not. inv_std stands before all three: a bracket is missing.
- only the diagonal:
    (dx_hat - first - second) -> dx_hat * (1 - 1 / dy.shape[-1] - x_hat**2 / dy.shape[-1])
  This is the diagonal of the Jacobian alone, dx̂ · (1 − 1/D − x̂²/D) / √(σ² + ε), as if each output depended on its own
  x only. Every x of a row is in μ and σ², and so in all outputs of the row: the terms are means over dx̂.
- inv_std forgotten:  inv_std * (dx_hat -> (dx_hat
  The factor inv_std is missing in dx: everything is divided by √(σ² + ε).
- inv_std squared:  inv_std * -> inv_std**2 *
  inv_std is in dx twice: dx̂ and the means are divided by √(σ² + ε) once.
- divided by inv_std:  inv_std * -> 1 / inv_std *
  dx is divided by inv_std. inv_std is 1/√(σ² + ε) already: multiply by it.
- over the batch:  every axis=-1 -> axis=0
  The means run over the first axis, the batch; they run over the features of a row, axis −1.
- over the positions:  every axis=-1 -> axis=-2
  The means run over the positions, axis −2; they run over the features of a row, axis −1.
- over batch and positions:  every axis=-1 -> axis=rows
  The means run over batch and positions: that is the backward of batch norm. Those of layer norm run over the features
  of a row, axis −1.
- over positions and features:  every axis=-1 -> axis=tuple(range(dy.ndim)[-2:])
  The means run over positions and features together; they run over the features of a row alone, axis −1.
- over all numbers at once:  every axis=-1 -> axis=None
  The means run over the whole array; they run over the features of a row, axis −1.
- dx divided by the number of rows:  return dx -> return dx / (dy.size // dy.shape[-1])
  dx is divided by the number of rows. A row depends on its own numbers only, and the mean of the loss is already in dy.
- dx divided by the batch:  return dx -> return dx / len(dy)
  dx is divided by the size of the batch. The mean of the loss is already in dy.
- dx divided by D:  return dx -> return dx / dy.shape[-1]
  dx as a whole is divided by D. Only the two subtracted terms are means over D.
- dy added to dx:  return dx -> return dx + dy
  dy is added to dx, as if there were a residual path around the norm. That is not part of this function.
"""
    + of_vector("dgamma", "(dy * x_hat)", "dy · x̂", "γ")
    + """
- dgamma without x̂:  (dy * x_hat).sum -> dy.sum
  x̂ is missing in dgamma, so that it equals dbeta: y = γ · x̂ + β gives dγ = Σ dy · x̂.
- dgamma with γ:  (dy * x_hat).sum -> (dy * gamma * x_hat).sum
  γ is a factor in dgamma: y is linear in γ, so dγ = Σ dy · x̂, with dy and not with dx̂.
- dgamma of x − μ:  (dy * x_hat).sum -> (dy * x_hat / inv_std).sum
  dgamma is Σ dy · (x − μ): what γ multiplies is the normalised x̂, dγ = Σ dy · x̂.
- dgamma with inv_std:  (dy * x_hat).sum -> (dy * x_hat * inv_std).sum
  inv_std is a factor in dgamma. It is in x̂ already: dγ = Σ dy · x̂.
"""
    + of_vector("dbeta", "dy", "dy", "β")
    + """
- dbeta with γ:  dy.sum -> (dy * gamma).sum
  γ is a factor in dbeta: β is added after the scaling, so dβ = Σ dy, with dy and not with dx̂.
- dbeta with x̂:  dy.sum -> (dy * x_hat).sum
  x̂ is a factor in dbeta, so that it equals dgamma: β is added as it is, dβ = Σ dy.
- dgamma and dbeta swapped:  dgamma, dbeta -> dbeta, dgamma
  dgamma and dbeta are returned in the wrong order: dx, dgamma, dbeta.
""",
)

EXERCISES = [LAYER_NORM, LAYER_NORM_BACKWARD]
