"""RMS norm and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from .norm import of_vector, random_rows

# --- rms_norm ---------------------------------------------------------------------------------------------------------


def rms_norm_cases(rng):
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


def rms_norm(x, gamma, eps=1e-6):
    mean_square = (x**2).mean(axis=-1, keepdims=True)
    rms = np.sqrt(mean_square + eps)
    inv_rms = 1 / rms
    x_hat = x * inv_rms
    y = gamma * x_hat
    return y, x_hat, inv_rms


RMS_NORM = Exercise(
    F.rms_norm,
    results=(Result("y", "... D"), Result("x_hat", "... D"), Result("inv_rms", "... 1")),
    cases=rms_norm_cases,
    answer=rms_norm,
    hints=(
        "Which of the two things that layer norm does to a row is left when nothing is subtracted?",
        "y = γ · x̂,  x̂ = x / √(mean(x²) + ε), the mean over the last axis",
        "notebook 13; layer_norm of notebook 04, section 6, has the rest. ndarray.mean with axis=-1 and keepdims=True.",
    ),
    difficulty=1,
    section="Zhang & Sennrich 2019",
    chapter="T5",
    place=1,
    mistakes="""
- centred:
    x**2 -> (x - x.mean(axis=-1, keepdims=True)) ** 2
    x * inv_rms -> (x - x.mean(axis=-1, keepdims=True)) * inv_rms
  The mean μ is subtracted: this is layer norm without β, (x − μ) / √(σ² + ε). RMS norm leaves the mean in, x /
  √(mean(x²) + ε): that saves a pass over the numbers and works as well.
- mean subtracted above the root only:  x * inv_rms -> (x - x.mean(axis=-1, keepdims=True)) * inv_rms
  The mean is subtracted from the x above the root. RMS norm has no centring: x̂ = x / √(mean(x²) + ε).
- variance for the mean square:  x**2 -> (x - x.mean(axis=-1, keepdims=True)) ** 2
  x is divided by the standard deviation: the mean is subtracted under the root. It is the mean of x² itself, x /
  √(mean(x²) + ε), without centring.
- mean square without keepdims:  keepdims=True -> keepdims=False
  The mean square loses the axis it was taken over, so it has the shape (B, T) and does not broadcast against x, (B, T,
  D). keepdims=True leaves an axis of length 1: (B, T, 1).
- sum for the mean:  (x**2).mean -> (x**2).sum
  The root is taken of the sum Σ x². Divide the sum by D: it is the mean. So x̂ has length 1 instead of a mean square of
  1.
- divided by D − 1:
    (x**2).mean(axis=-1, keepdims=True) -> (x**2).sum(axis=-1, keepdims=True) / (x.shape[-1] - 1)
  The squares are divided by D − 1 (ddof=1). Their mean divides by D.
- square of the mean:  (x**2).mean(axis=-1, keepdims=True) -> x.mean(axis=-1, keepdims=True) ** 2
  This is the square of the mean, mean(x)². It has to be the mean of squares, mean(x²).
- mean of the absolute values:  (x**2).mean(axis=-1, keepdims=True) -> np.abs(x).mean(axis=-1, keepdims=True) ** 2
  x is divided by the mean of |x| instead of by the root of the mean of x².
- largest number for the root mean square:
    (x**2).mean(axis=-1, keepdims=True) -> np.abs(x).max(axis=-1, keepdims=True) ** 2
  x is divided by the largest |x| of its row instead of by the root of the mean of x².
- not squared:  (x**2).mean -> x.mean
  The root is taken of the mean of x: the square is missing, √(mean(x²) + ε). The root of a negative mean is NaN.
- mean square not rooted:  np.sqrt(mean_square + eps) -> mean_square + eps
  x is divided by mean(x²) + ε; the square root is missing. Only √(mean(x²) + ε) makes the mean square of x̂ 1.
- multiplied by the root mean square:  1 / rms -> rms
  x is multiplied by √(mean(x²) + ε); it has to be divided by it.
- eps not used:  mean_square + eps -> mean_square + 1e-6
  The argument `eps` is not used: the number under the root is always the same.
- eps=0.001 by default:  eps=1e-6 -> eps=1e-3
  The default is eps=0.001 instead of eps=1e-6, which shows where the mean square is small.
- eps=1e-05 by default:  eps=1e-6 -> eps=1e-5
  The default is eps=1e-05 instead of eps=1e-6, which shows where the mean square is small.
- eps=1e-08 by default:  eps=1e-6 -> eps=1e-8
  The default is eps=1e-08 instead of eps=1e-6, which shows where the mean square is small.
- eps=1e-12 by default:  eps=1e-6 -> eps=1e-12
  The default is eps=1e-12 instead of eps=1e-6, which shows where the mean square is small.
- eps forgotten:  mean_square + eps -> mean_square
  ε is missing under the root, √(mean(x²) + ε). In a row of zeros this divides by 0.
- eps outside the root:  np.sqrt(mean_square + eps) -> np.sqrt(mean_square) + eps
  ε is added to the root mean square, √mean(x²) + ε; it belongs under the root: √(mean(x²) + ε).
- eps inside and outside the root:  np.sqrt(mean_square + eps) -> np.sqrt(mean_square + eps) + eps
  ε is added twice: under the root, where it belongs, and once more after it.
- eps squared:  mean_square + eps -> mean_square + eps**2
  ε is squared, √(mean(x²) + ε²). It is added to the mean square as it is.
- eps added to the sum of the squares:  mean_square + eps -> mean_square + eps / x.shape[-1]
  ε is added to the sum of the squares before that is divided by D: ε/D instead of ε. It is added to the mean,
  √(mean(x²) + ε).
- eps as a lower bound:  mean_square + eps -> np.maximum(mean_square, eps)
  ε is a lower bound of the mean square, max(mean(x²), ε), instead of a summand: √(mean(x²) + ε) has it in every row.
- over the batch:  axis=-1 -> axis=0
  The mean square runs over the first axis, the sentences of the batch. It runs over the last one, the D features of one
  word: a sentence must not depend on its neighbours.
- over the positions:  axis=-1 -> axis=-2
  The mean square runs over the positions, axis −2, instead of over the D features of one word, axis −1. So a word
  depends on later ones, past every mask.
- over batch and positions:  axis=-1 -> axis=tuple(range(x.ndim - 1))
  There is one mean square for each feature, over all words of all sentences, as in batch norm. It is one for each word,
  over its D features, axis −1.
- over positions and features:  axis=-1 -> axis=tuple(range(x.ndim)[-2:])
  The mean square runs over positions and features together, axes (−2, −1): one for a whole sentence. It is one for each
  word, over axis −1 alone.
- over all numbers at once:  axis=-1 -> axis=None
  There is one mean square for the whole array. It is one for every row: axis=-1.
- γ forgotten:  gamma * x_hat -> x_hat
  The scale is missing: y = γ · x̂. γ = 1 at the start of a training hides this.
- 1 + γ for γ:  gamma * x_hat -> (1 + gamma) * x_hat
  x̂ is scaled by 1 + γ, as in some other models. Here γ is the scale itself: y = γ · x̂.
- γ added:  gamma * x_hat -> gamma + x_hat
  γ is added to x̂ as if it were a shift; it scales: y = γ · x̂. RMS norm in T5 has no shift.
- divided by γ:  gamma * x_hat -> x_hat / gamma
  x̂ is divided by γ; it has to be multiplied by it: y = γ · x̂.
- γ on x itself:  gamma * x_hat -> gamma * x
  γ is applied to x instead of to the normalised x̂: y = γ · x̂.
- γ before the norm:
    mean_square = -> x = x * gamma; mean_square =
    gamma * x_hat -> x_hat
  x is multiplied by γ before it is normalised, so that γ is in the mean square too. First the norm, then the scale: y =
  γ · x̂.
- y for x_hat:  return y, x_hat -> return y, y
  The returned x_hat is y, γ · x̂. The backward needs x̂ itself, before γ: dγ = Σ dy · x̂.
- x for x_hat:  return y, x_hat -> return y, x
  The input x is returned as x_hat; the backward needs x̂ = x / √(mean(x²) + ε).
- root mean square for inv_rms:  x_hat, inv_rms -> x_hat, rms
  The returned inv_rms is √(mean(x²) + ε); inv_rms is its inverse, by which the backward multiplies.
- mean square for inv_rms:  x_hat, inv_rms -> x_hat, mean_square
  The returned inv_rms is the mean square, mean(x²); inv_rms is 1/√(mean(x²) + ε).
- inverse mean square for inv_rms:  x_hat, inv_rms -> x_hat, inv_rms**2
  The returned inv_rms is 1/(mean(x²) + ε), without the square root: inv_rms is 1/√(mean(x²) + ε).
- inv_rms without ε:  x_hat, inv_rms -> x_hat, 1 / np.sqrt(mean_square)
  The returned inv_rms is 1/√mean(x²), without the ε that x̂ was divided with: it is 1/√(mean(x²) + ε).
- inv_rms without its axis:  x_hat, inv_rms -> x_hat, inv_rms[..., 0]
  inv_rms has lost the last axis: (B, T) instead of (B, T, 1). With the axis of length 1, keepdims=True, it broadcasts
  against x̂ in the backward.
- inv_rms repeated:  x_hat, inv_rms -> x_hat, inv_rms * np.ones_like(x)
  inv_rms is repeated for every feature. It is one number for each row: the shape is (…, 1), not (…, D).
- x_hat and inv_rms swapped:  y, x_hat, inv_rms -> y, inv_rms, x_hat
  x_hat and inv_rms are returned in the wrong order: y, x_hat, inv_rms.
""",
)


# --- rms_norm_backward ------------------------------------------------------------------------------------------------


def rms_norm_backward_cases(rng):
    cases = []
    for case in rms_norm_cases(rng):
        x, gamma = case.arguments
        _, x_hat, inv_rms = F.rms_norm(x, gamma, case.options.get("eps", 0.01))
        label = case.label.replace("eps=0.3", "a forward with eps=0.3")
        cases.append(Case(label, (rng.normal(size=x.shape), x_hat, inv_rms, gamma), sizes=case.sizes))
    return cases


def rms_norm_backward(dy, x_hat, inv_rms, gamma):
    rows = tuple(range(dy.ndim - 1))
    dgamma = (dy * x_hat).sum(axis=rows)
    dx_hat = dy * gamma
    mean = (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = inv_rms * (dx_hat - x_hat * mean)
    return dx, dgamma


RMS_NORM_BACKWARD = Exercise(
    F.rms_norm_backward,
    results=(Result("dx", "... D"), Result("dgamma", "D")),
    cases=rms_norm_backward_cases,
    answer=rms_norm_backward,
    hints=(
        "x reaches y by itself and through the mean square of its row. What does each of the two ways contribute?",
        "dx = (dx̂ − x̂ · mean(dx̂ · x̂)) / √(mean(x²) + ε),  dx̂ = dy · γ,  dγ = Σ dy · x̂ over the rows",
        "notebook 13; layer norm in notebook 06, section 5; a mean over axis −1 with keepdims=True.",
    ),
    difficulty=3,
    section="Zhang & Sennrich 2019",
    chapter="T5",
    place=2,
    mistakes="""
- mean(dx̂) subtracted too:  dx_hat - x_hat * mean -> dx_hat - x_hat * mean - dx_hat.mean(axis=-1, keepdims=True)
  mean(dx̂) is subtracted too: this is the backward of layer norm. RMS norm subtracts no mean, so nothing comes back
  through one: dx = (dx̂ − x̂ · mean(dx̂ · x̂)) / √(mean(x²) + ε).
- only mean(dx̂) subtracted:  dx_hat - x_hat * mean -> dx_hat - dx_hat.mean(axis=-1, keepdims=True)
  mean(dx̂) is subtracted, and x̂ · mean(dx̂ · x̂) is not. It is the other way round: RMS norm has no mean that was
  subtracted, but every x of a row is in its mean square.
- mean term missing:  (dx_hat - x_hat * mean) -> dx_hat
  The term −x̂ · mean(dx̂ · x̂) is missing, as if mean(x²) were a constant. Every x of a row is in its mean square, and
  this is the way through it.
- mean without keepdims:  keepdims=True -> keepdims=False
  The mean loses the axis it was taken over, so it has the shape (B, T) and does not broadcast against x̂, (B, T, D).
  keepdims=True leaves an axis of length 1: (B, T, 1).
- γ missing in dx:  dy * gamma -> dy
  γ is missing in dx: the gradient of x̂ is dx̂ = dy · γ. γ = 1 at the start of a training hides this.
- γ after the mean:
    dy * gamma -> dy
    inv_rms * -> gamma * inv_rms *
  γ is multiplied at the end. It belongs before the mean, dx̂ = dy · γ, because the mean mixes the features, and each
  has its own γ.
- dx̂ divided by γ:  dy * gamma -> dy / gamma
  dy is divided by γ on the way to x̂: y = γ · x̂ gives dx̂ = dy · γ.
- x̂ for γ in dx̂:  dy * gamma -> dy * x_hat
  dy is multiplied by x̂ on the way to x̂: that is dγ before the sum. y = γ · x̂ gives dx̂ = dy · γ.
- γ missing in the mean:  (dx_hat * x_hat).mean -> (dy * x_hat).mean
  The mean is mean(dy · x̂): γ is missing in it. It is mean(dx̂ · x̂) with dx̂ = dy · γ.
- x̂ missing inside the mean:  (dx_hat * x_hat).mean -> dx_hat.mean
  The term through the mean square is x̂ · mean(dx̂): the x̂ inside the mean is missing, x̂ · mean(dx̂ · x̂).
- x̂ missing before the mean:  x_hat * mean -> mean
  The term through the mean square is mean(dx̂ · x̂), the same for the whole row: the x̂ in front of it is missing.
- both x̂ before the mean:
    (dx_hat * x_hat).mean -> dx_hat.mean
    x_hat * mean -> x_hat**2 * mean
  The term is x̂² · mean(dx̂). Only one x̂ stands before the mean, the other is inside: x̂ · mean(dx̂ · x̂).
- product of the means:
    (dx_hat * x_hat).mean(axis=-1, keepdims=True) ->
        dx_hat.mean(axis=-1, keepdims=True) * x_hat.mean(axis=-1, keepdims=True)
  The term is x̂ · mean(dx̂) · mean(x̂), a product of two means. It is the mean of the product, mean(dx̂ · x̂).
- sum for the mean:  (dx_hat * x_hat).mean -> (dx_hat * x_hat).sum
  The term is x̂ · Σ dx̂ · x̂. It must be a mean over the features: it is too large by the factor D.
- mean divided by D − 1:
    (dx_hat * x_hat).mean(axis=-1, keepdims=True) -> (dx_hat * x_hat).sum(axis=-1, keepdims=True) / (dy.shape[-1] - 1)
  The mean over the features is divided by D − 1 instead of D.
- mean term added:  dx_hat - x_hat * mean -> dx_hat + x_hat * mean
  The term is added. Subtract it: dx̂ − x̂ · mean(dx̂ · x̂). A sign is wrong.
- mean term doubled:  x_hat * mean -> 2 * x_hat * mean
  The term x̂ · mean(dx̂ · x̂) is too large by a factor 2. The 2 from x² and the ½ from the root cancel.
- mean term halved:  x_hat * mean -> x_hat * mean / 2
  The term x̂ · mean(dx̂ · x̂) is too small by a factor 2. The 2 from x² and the ½ from the root cancel.
- mean term with one inv_rms too many:  x_hat * mean -> inv_rms * x_hat * mean
  The term through the mean square has one factor inv_rms = 1/√(mean(x²) + ε) too many: with x̂ for x only one is left,
  inv_rms · x̂ · mean(dx̂ · x̂).
- mean term with inv_rms² too much:  x_hat * mean -> inv_rms**2 * x_hat * mean
  The term through the mean square has inv_rms² too much, inv_rms³ in all. That is right with x itself; x̂ = x ·
  inv_rms, and there are two of them, so with x̂ one is left: inv_rms · x̂ · mean(dx̂ · x̂).
- mean term with x for both x̂:  x_hat * mean -> x_hat * mean / inv_rms**2
  The term through the mean square is made with x, x · mean(dx̂ · x): it needs the normalised x̂ in both places, x̂ ·
  mean(dx̂ · x̂).
- mean term outside the bracket:  inv_rms * (dx_hat - x_hat * mean) -> inv_rms * dx_hat - x_hat * mean
  Only dx̂ is divided by √(mean(x²) + ε), the term x̂ · mean(dx̂ · x̂) is not. inv_rms stands before both: a bracket is
  missing.
- only the diagonal:  (dx_hat - x_hat * mean) -> dx_hat * (1 - x_hat**2 / dy.shape[-1])
  This is the diagonal of the Jacobian alone, dx̂ · (1 − x̂²/D) / √(mean(x²) + ε), as if each output depended on its own
  x only. Every x of a row is in the mean square, and so in all outputs of the row.
- inv_rms forgotten:  inv_rms * (dx_hat -> (dx_hat
  The factor inv_rms is missing in dx: everything is divided by √(mean(x²) + ε).
- inv_rms squared:  inv_rms * -> inv_rms**2 *
  inv_rms is in dx twice: dx̂ and the mean are divided by √(mean(x²) + ε) once.
- divided by inv_rms:  inv_rms * -> 1 / inv_rms *
  dx is divided by inv_rms. It is 1/√(mean(x²) + ε) already: multiply by it.
- over the batch:  axis=-1 -> axis=0
  The mean runs over the first axis, the batch; it runs over the features of a row, axis −1.
- over the positions:  axis=-1 -> axis=-2
  The mean runs over the positions, axis −2; it runs over the features of a row, axis −1.
- over batch and positions:  axis=-1 -> axis=rows
  The mean runs over batch and positions; it runs over the features of a row, axis −1.
- over positions and features:  axis=-1 -> axis=tuple(range(dy.ndim)[-2:])
  The mean runs over positions and features together; it runs over the features of a row alone, axis −1.
- over all numbers at once:  axis=-1 -> axis=None
  The mean runs over the whole array; it runs over the features of a row, axis −1.
- dx divided by the number of rows:  return dx -> return dx / (dy.size // dy.shape[-1])
  dx is divided by the number of rows. A row depends on its own numbers only, and the mean of the loss is already in dy.
- dx divided by the batch:  return dx -> return dx / len(dy)
  dx is divided by the size of the batch. The mean of the loss is already in dy.
- dx divided by D:  return dx -> return dx / dy.shape[-1]
  dx as a whole is divided by D. Only the subtracted term is a mean over D.
- dy added to dx:  return dx -> return dx + dy
  dy is added to dx, as if there were a residual path around the norm. That is not part of this function.
"""
    + of_vector("dgamma", "(dy * x_hat)", "dy · x̂", "γ")
    + """
- dgamma without x̂:  (dy * x_hat).sum -> dy.sum
  x̂ is missing in dgamma, as if γ were a shift: y = γ · x̂ gives dγ = Σ dy · x̂.
- dgamma with γ:  (dy * x_hat).sum -> (dy * gamma * x_hat).sum
  γ is a factor in dgamma: y is linear in γ, so dγ = Σ dy · x̂, with dy and not with dx̂.
- dgamma of x:  (dy * x_hat).sum -> (dy * x_hat / inv_rms).sum
  dgamma is Σ dy · x: what γ multiplies is the normalised x̂, dγ = Σ dy · x̂.
- dgamma with inv_rms:  (dy * x_hat).sum -> (dy * x_hat * inv_rms).sum
  inv_rms is a factor in dgamma. It is in x̂ already: dγ = Σ dy · x̂.
- dx and dgamma swapped:  return dx, dgamma -> return dgamma, dx
  dx and dgamma are returned in the wrong order: dx, dgamma.
""",
)

EXERCISES = [RMS_NORM, RMS_NORM_BACKWARD]
