"""The linear map and its backward."""

import numpy as np  # noqa: F401 - for the mistakes

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes


def without_heads(sizes):
    """The sizes of the cases that are not of four axes."""
    return {letter: size for letter, size in sizes.items() if letter != "H"}


# --- linear -----------------------------------------------------------------------------------------------------------


def linear_cases(rng):
    sizes = draw_sizes(rng, "B H T D_in D_out")
    B, H, T, D_in, D_out = sizes.values()
    deep, sizes = sizes, without_heads(sizes)
    x, w, b = rng.normal(size=(B, H, T, D_in)), rng.normal(size=(D_in, D_out)), rng.normal(size=D_out)
    square = rng.normal(size=(D_in, D_in))
    b_square = rng.normal(size=D_in)
    words = rng.normal(size=(B, D_in, D_in))
    return [
        Case("", (x[:, 0], w, b), sizes=sizes),
        Case("no bias", (x[:, 0], w), sizes=sizes),
        Case("x of shape (T, D_in)", (x[0, 0], w, b), sizes=sizes),
        Case("x of four axes", (x, w, b), sizes=deep),
        Case("one row, x of shape (D_in,)", (x[0, 0, 0], w, b), sizes=sizes),
        Case("as many outputs as inputs", (x[:, 0], square, b_square), sizes=sizes | {"D_out": D_in}),
        Case(
            "as many words as inputs and outputs", (words, square, b_square), sizes=sizes | {"D_out": D_in, "T": D_in}
        ),
    ]


def linear(x, w, b=None):
    y = x @ w
    if b is not None:
        y = y + b
    return y


LINEAR = Exercise(
    F.linear,
    results=(Result("y", "... D_out"),),
    cases=linear_cases,
    answer=linear,
    hints=(
        "One row of x, D_in numbers, is to become D_out numbers. On which side of x does a (D_in, D_out) matrix stand?",
        "y = x W + b, the same W and b for every row",
        "notebook 04, section 1; @ multiplies the last two axes, and a (D_out,) array broadcasts over all rows. b may "
        "be None.",
    ),
    difficulty=1,
    section="§4 step 2",
    chapter="Feed-forward network and layer norm",
    place=1,
    mistakes="""
- b forgotten:  y = y + b -> pass
  The bias is forgotten: y = x W + b, here + b is missing.
- b = None not handled:  if b is not None: y = y + b -> y = y + b
  It fails without a bias. b is None by default, and then nothing is added: a test such as `if b is not None` is
  missing, or the default itself.
- b subtracted:  y + b -> y - b
  The bias is subtracted, y = x W − b: the sign of b is wrong, it is + b.
- b added before the product:
    x @ w -> (x if b is None else x + b) @ w
    y = y + b -> pass
  The bias is added to x before the product, (x + b) W. b has one number for each output and is added after the product:
  x W + b.
- b multiplied instead of added:  y + b -> y * b
  The product x W is multiplied by b, element by element. The bias is added: x W + b.
- b added for every input:  y + b -> y + b * x.shape[-1]
  The bias is added once for every input, D_in times: it stands inside the sum over the inputs. It is added once, after
  the sum: Σᵢ xᵢ wᵢⱼ + bⱼ.
- b added to the rows instead of the columns:  y + b -> y + (b[:, None] if x.ndim > 1 else b)
  The bias is added along the wrong axis (`b[:, None]`): each row gets one number. b has one number for each column of
  y, and every row gets the same b.
- b added only to the first row:  y = y + b -> y.reshape(-1, y.shape[-1])[0] += b
  Only the first row gets the bias. Every row, each word of each sentence, gets the same b.
- w transposed:  x @ w -> x @ w.T
  W is transposed, x Wᵀ, as PyTorch stores it. Here W is (D_in, D_out) and a row is a token: y = x W.
- w before x:  x @ w -> w @ x
  The product is W x, with W on the left, as for columns. Here a row is a token and the matrix multiplies from the
  right: x W.
- divided by √D_in:  x @ w -> x @ w / np.sqrt(x.shape[-1])
  The product is divided by √D_in. The linear map has no scale of its own: y = x W + b.
- a ReLU at the end:  return y -> return np.maximum(y, 0)
  Negative numbers are cut off at the end (ReLU). The linear map has no activation: y = x W + b.
- leading axes flattened:  return y -> return y.reshape(-1, y.shape[-1])
  The rows of all leading axes come out as one axis. y has the leading axes of x, (..., D_out): the last reshape is
  missing.
- summed over the rows:  return y -> return y.sum(axis=-2) if y.ndim > 1 else y
  The rows (the words of a sentence) are summed: their axis is gone. Every row of x has its own row of y, (..., D_out).
- transposed:  return y -> return y.swapaxes(-1, -2) if y.ndim > 1 else y
  The last two axes are exchanged: y comes out transposed. A row is a token, so the D_out numbers are the last axis,
  (..., T, D_out).
""",
)


# --- linear_backward --------------------------------------------------------------------------------------------------


def linear_backward_cases(rng):
    sizes = draw_sizes(rng, "B H T D_in D_out")
    B, H, T, D_in, D_out = sizes.values()
    deep, sizes = sizes, without_heads(sizes)
    x, dy, w = rng.normal(size=(B, H, T, D_in)), rng.normal(size=(B, H, T, D_out)), rng.normal(size=(D_in, D_out))
    square, dy_square = rng.normal(size=(D_in, D_in)), rng.normal(size=(B, T, D_in))
    words, dy_words = rng.normal(size=(2, D_in, D_in))
    as_square = sizes | {"D_out": D_in}
    return [
        Case("", (dy[:, 0], x[:, 0], w), sizes=sizes),
        Case("x of shape (T, D_in)", (dy[0, 0], x[0, 0], w), sizes=sizes),
        Case("x of four axes", (dy, x, w), sizes=deep),
        Case("one row, x of shape (D_in,)", (dy[0, 0, 0], x[0, 0, 0], w), sizes=sizes),
        Case("as many outputs as inputs", (dy_square, x[:, 0], square), sizes=as_square),
        Case("as many words as inputs and outputs", (dy_words, words, square), sizes=as_square | {"T": D_in}),
    ]


def gradients(dy, x):
    """The gradients of w and b in y = x w + b."""
    lead = tuple(range(dy.ndim - 1))
    x_rows, dy_rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    dw = x_rows.T @ dy_rows
    db = dy.sum(axis=lead)
    return dw, db


# the mistakes in `gradients`
BIAS_MISTAKES = """
- bias gradient not summed:  dy.sum(axis=lead) -> dy
  The gradient of a bias is not summed: it is dy itself, one gradient for each row. Every row met the same b, so it is Σ
  dy over all rows, with the shape of b.
- bias gradient summed over the batch only:  dy.sum(axis=lead) -> dy.sum(axis=0)
  The gradient of a bias is summed over the first axis, the batch, only. Every row of every sentence met the same b: sum
  over all axes but the last.
- bias gradient summed over the words only:  dy.sum(axis=lead) -> dy.sum(axis=-2)
  The gradient of a bias is summed over the words of a sentence only, one gradient for each sentence. Sum over the batch
  too: over all axes but the last.
- bias gradient summed over everything:  dy.sum(axis=lead) -> dy.sum()
  The gradient of a bias is summed over all axes to a single number. The last axis stays: b has one number for each
  output.
- bias gradient summed over the features:  dy.sum(axis=lead) -> dy.sum(axis=-1)
  The gradient of a bias is summed over the last axis, the features. It is the other way around: sum over all axes but
  the last, and keep the last.
- bias gradient with axes of length 1:  dy.sum(axis=lead) -> dy.sum(axis=lead, keepdims=True)
  The gradient of a bias keeps axes of length 1 in front (keepdims). It has the shape of b, one axis.
- bias gradient of the last row:  dy.sum(axis=lead) -> dy_rows[-1]
  The gradient of a bias comes from the last row alone. Every row met the same bias: sum over all of them.
- bias gradient averaged over the rows:  dy.sum(axis=lead) -> dy.mean(axis=lead)
  The gradient of a bias is averaged over the rows (mean), too small by their number, a factor 1/(B·T). It is a sum: if
  the loss is a mean, that is already in dy.
- bias gradient divided by the batch size:  dy.sum(axis=lead) -> dy.sum(axis=lead) / len(dy)
  The gradient of a bias is divided by the batch size, 1/B too much. It is a plain sum: if the loss is a mean, that is
  already in dy.
- bias gradient divided by the length:  dy.sum(axis=lead) -> dy.sum(axis=lead) / (dy.shape[-2] if dy.ndim > 1 else 1)
  The gradient of a bias is divided by the number of words, 1/T too much. It is a plain sum: if the loss is a mean, that
  is already in dy.
- bias gradient without dy:  dy.sum(axis=lead) -> np.ones_like(dy).sum(axis=lead)
  The gradient of a bias is the number of rows (or 1), without dy. ∂y/∂b is 1, but the chain rule multiplies it by dy,
  and the rows add: Σ dy.
- bias gradient of zeros:  dy.sum(axis=lead) -> np.zeros(dy.shape[-1])
  The gradient of a bias is 0. It is the sum of dy over all rows: y grows with b by as much.
"""

WEIGHT_MISTAKES = """
- x reshaped, not transposed:  x_rows.T @ dy_rows -> x.reshape(x.shape[-1], -1) @ dy_rows
  In the gradient of a matrix x is reshaped to (D_in, rows) instead of transposed. The shape is right, but reshape keeps
  the order in memory and tears the rows apart. First (rows, D_in), then the transpose: xᵀ dy.
- weight gradient averaged over the rows:  x_rows.T @ dy_rows -> x_rows.T @ dy_rows / len(x_rows)
  The gradient of a matrix is averaged over the rows, a factor 1/(B·T) too much. It is a sum, xᵀ dy: if the loss is a
  mean, that is already in dy.
- weight gradient divided by the batch size:  x_rows.T @ dy_rows -> x_rows.T @ dy_rows / len(dy)
  The gradient of a matrix is divided by the batch size, 1/B too much. It is a plain sum, xᵀ dy: if the loss is a mean,
  that is already in dy.
- weight gradient divided by the length:
    x_rows.T @ dy_rows -> x_rows.T @ dy_rows / (dy.shape[-2] if dy.ndim > 1 else 1)
  The gradient of a matrix is divided by the number of words, 1/T too much. It is a plain sum, xᵀ dy: if the loss is a
  mean, that is already in dy.
- weight gradient transposed:  x_rows.T @ dy_rows -> dy_rows.T @ x_rows
  The gradient of a matrix is transposed: dyᵀ x, (D_out, D_in). A gradient has the shape of its array: xᵀ dy, (D_in,
  D_out).
- weight gradient of every sentence:  x_rows.T @ dy_rows -> x.swapaxes(-1, -2) @ dy
  The gradient of a matrix is not summed over the batch: there is one for each sentence. All sentences met the same
  matrix, so their gradients add.
- weight gradient without dy:  x_rows.T @ dy_rows -> x_rows.T @ np.ones_like(dy_rows)
  The gradient of a matrix does not use dy: it is the sum of its inputs. The chain rule multiplies them by dy: xᵀ dy.
- weight gradient from the sums:  x_rows.T @ dy_rows -> np.outer(x.sum(axis=lead), dy.sum(axis=lead))
  The rows are summed first, x and dy each on its own, and then multiplied. Each row of x belongs with its own row of
  dy: multiply first, then sum over the rows, xᵀ dy.
- only the first sentence:
    lead = ->
        if x.ndim > 1:
            x, dy = x[:1], dy[:1]
        lead =
  A gradient of parameters comes from the first sentence alone, x[0] and dy[0]. All sentences met the same parameters:
  their gradients add.
- weight gradient of the last row:  x_rows.T @ dy_rows -> np.outer(x_rows[-1], dy_rows[-1])
  The gradient of a matrix comes from the last row alone (an outer product that is replaced, not added to). Every row
  met the same matrix: sum over all of them, xᵀ dy.
- only the last sentence:
    lead = ->
        if x.ndim > 1:
            x, dy = x[-1:], dy[-1:]
        lead =
  A gradient of parameters comes from the last sentence alone: in the loop over the batch it is replaced (=) instead of
  added to (+=). All sentences met the same parameters.
- x.T for the rows:  x_rows.T @ dy_rows -> x.T @ dy
  The gradient of the matrix is x.T @ dy, which is right for x of two axes only: of three axes .T reverses all.
  `x.reshape(-1, D_in)` and the same for dy make rows of any x first.
- a single row not handled:  x_rows.T @ dy_rows -> np.einsum("...ti,...to->...io", x, dy).sum(axis=lead[:-1])
  It fails for x of one axis, a single row (D_in,). x may have any leading axes, none too: the gradient of the matrix is
  then the outer product of x and dy. `x.reshape(-1, D_in)` makes rows of any x.
"""


def linear_backward(dy, x, w):
    dw, db = gradients(dy, x)
    dx = dy @ w.T
    return dx, dw, db


LINEAR_BACKWARD = Exercise(
    F.linear_backward,
    results=(Result("dx", "... D_in"), Result("dw", "D_in D_out"), Result("db", "D_out")),
    cases=linear_backward_cases,
    answer=linear_backward,
    hints=(
        "Which rows did a number of x meet on its way to y, and which rows did a number of W or b meet?",
        "dx = dy Wᵀ, dW = xᵀ dy, db = Σ dy, the last two summed over all rows",
        "notebook 06, section 2; reshape(-1, …) makes rows of any leading axes. Each gradient has the shape of its "
        "array.",
    ),
    difficulty=2,
    section="behind §4 step 2",
    chapter="Backpropagation",
    place=1,
    mistakes=BIAS_MISTAKES
    + WEIGHT_MISTAKES
    + """
- weight gradient from x dyᵀ:  dx = dy @ w.T -> dx = dy @ w.T; dw = x @ dy.swapaxes(-1, -2)
  dw is x dyᵀ, the transpose on the wrong one of the two: that sums over features. The sum runs over the rows: xᵀ dy.
- weight gradient from dy xᵀ:  dx = dy @ w.T -> dx = dy @ w.T; dw = dy @ x.swapaxes(-1, -2)
  dw is dy xᵀ, in the wrong order: that sums over features. The sum runs over the rows: xᵀ dy.
- w not transposed in dx:  dy @ w.T -> dy @ w
  dx is dy W. It must be dy Wᵀ: the transpose is missing. A gradient goes back through W from outputs to inputs.
- w reshaped, not transposed in dx:  dy @ w.T -> dy @ w.reshape(w.shape[::-1])
  In dx the matrix is reshaped to (D_out, D_in) instead of transposed. The shape is right, but reshape keeps the order
  in memory: dx = dy Wᵀ, with w.T.
- dx without dy:  dy @ w.T -> np.ones_like(dy) @ w.T
  dx does not use dy: it is the sum of the columns of W. The chain rule needs dy: dx = dy Wᵀ.
- dx divided by the batch size:  dy @ w.T -> dy @ w.T / len(x)
  dx is divided by the batch size, 1/B too much. dx = dy Wᵀ: if the loss is a mean, that is already in dy.
- dx divided by the number of rows:  dy @ w.T -> dy @ w.T / (x.size // x.shape[-1])
  dx is divided by the number of rows, 1/(B·T) too much. dx = dy Wᵀ: if the loss is a mean, that is already in dy.
- dx flattened:  return dx -> return dx.reshape(-1, x.shape[-1])
  dx has all rows in one axis. A gradient has the shape of its array: the last reshape, back to x.shape, is missing.
- dx summed over the rows:  return dx -> return dx.sum(axis=tuple(range(dx.ndim - 1)))
  dx is summed over the rows. Each row of x reached its own row of y only, so dx = dy Wᵀ has a row for each.
- dx multiplied by x:  dy @ w.T -> dy @ w.T * x
  dx is multiplied by x. ∂y/∂x is W and does not depend on x: dx = dy Wᵀ.
- dx transposed:  return dx -> return (dx.swapaxes(-1, -2) if dx.ndim > 1 else dx)
  The last two axes of dx are exchanged (W dyᵀ): dx has the shape of x, dx = dy Wᵀ.
- dx and dw exchanged:  return dx, dw, db -> return dw, dx, db
  dx and dw are returned in each other's place. The order is dx, dw, db, that of x, w, b.
- dw and db exchanged:  return dx, dw, db -> return dx, db, dw
  dw and db are returned in each other's place. The order is dx, dw, db, that of x, w, b.
- dx returned last:  return dx, dw, db -> return dw, db, dx
  The gradients come in the order dw, db, dx. The order is dx, dw, db, that of x, w, b.
""",
)

EXERCISES = [LINEAR, LINEAR_BACKWARD]
