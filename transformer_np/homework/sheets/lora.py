"""The low-rank term of LoRA and its backward."""

import numpy as np  # noqa: F401 - for the mistakes

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes


def lora_cases(rng, backward=False):
    sizes = draw_sizes(rng, "B H T D_in D_out R", least=2)
    B, H, T, D_in, D_out, R = sizes.values()
    plain = {letter: size for letter, size in sizes.items() if letter != "H"}
    scale = float(rng.uniform(0.3, 0.7))

    def case(label, sizes, *rows, wide=R, out=D_out, **options):
        sizes = sizes | {"R": wide, "D_out": out}
        x, a, b = rng.normal(size=(*rows, D_in)), rng.normal(size=(D_in, wide)), rng.normal(size=(wide, out))
        given = (rng.normal(size=(*rows, out)), x, x @ a, a, b) if backward else (x, a, b)
        return Case(label, given, options, sizes)

    return [
        case("", plain, B, T, scale=scale),
        case("the default scale", plain, B, T),
        case("x of shape (T, D_in)", plain, T, scale=scale),
        case("x of four axes", sizes, B, H, T, scale=scale),
        case("one row, x of shape (D_in,)", plain, scale=scale),
        case("R = 1", plain, B, T, wide=1, scale=scale),
        case("as many outputs as inputs", plain, B, T, out=D_in, scale=scale),
    ]


def lora(x, a, b, scale=1.0):
    low = x @ a
    y = scale * (low @ b)
    return y, low


LORA = Exercise(
    F.lora,
    results=(Result("y", "... D_out"), Result("low", "... R")),
    cases=lora_cases,
    answer=lora,
    hints=(
        "A product of two thin matrices stands for a change of W. In which order does a row of x meet them?",
        "low = x A,  y = s · low B",
        "notebook 16, section 2; linear of notebook 04, twice. A · B itself is never needed.",
    ),
    difficulty=1,
    section="Hu et al. 2021",
    chapter="Fine-tuning",
    place=1,
    mistakes="""
- scale forgotten:  scale * (low @ b) -> low @ b
  The scale is missing: y = s · (x A) B.
- scale squared:  scale * (low @ b) -> scale**2 * (low @ b)
  The scale counts twice. It multiplies y once.
- scale inside low:
    low = x @ a -> low = scale * (x @ a)
    scale * (low @ b) -> low @ b
  `low` contains the scale. y is right, but low is x A alone: the backward pass multiplies by the scale itself.
- divided by the scale:  scale * (low @ b) -> (low @ b) / scale
  The product is divided by the scale. It is multiplied by it.
- divided by the rank:  scale * (low @ b) -> scale * (low @ b) / a.shape[-1]
  The product is divided by R. In the paper s is α/R, but here `scale` is already s.
- x added:  scale * (low @ b) -> scale * (low @ b) + x.sum(axis=-1, keepdims=True)
  The input is added to y. The term is only what LoRA adds to x W: s · (x A) B.
- an activation between:  low @ b -> np.maximum(low, 0) @ b
  There is an activation (ReLU) between A and B. Both maps are linear, so that A B can be added to W afterwards.
- only A:  scale * (low @ b) -> scale * np.broadcast_to(low.sum(axis=-1, keepdims=True), (*low.shape[:-1], b.shape[1]))
  B is not used. After x A, which has R numbers per row, the product with B (R, D_out) follows.
- the two results exchanged:  return y, low -> return low, y
  y and low are returned in each other's place. The order is y, low.
- low left out:  return y, low -> return y
  `low` is not returned: the backward pass needs x A. Return y, low.
- leading axes flattened:  return y, low -> return y.reshape(-1, y.shape[-1]), low.reshape(-1, low.shape[-1])
  The rows of all leading axes come out as one axis. y has the leading axes of x.
""",
)


def lora_backward(dy, x, low, a, b, scale=1.0):
    x_rows, low_rows, dy_rows = (rows.reshape(-1, rows.shape[-1]) for rows in (x, low, dy))
    dlow = scale * (dy @ b.T)
    dlow_rows = dlow.reshape(-1, dlow.shape[-1])
    dx = dlow @ a.T
    da = x_rows.T @ dlow_rows
    db = scale * (low_rows.T @ dy_rows)
    return dx, da, db


LORA_BACKWARD = Exercise(
    F.lora_backward,
    results=(Result("dx", "... D_in"), Result("da", "D_in R"), Result("db", "R D_out")),
    cases=lambda rng: lora_cases(rng, backward=True),
    answer=lora_backward,
    hints=(
        "Two linear maps in a row: through which of them does the gradient go first?",
        "dlow = s · dy Bᵀ,  dx = dlow Aᵀ,  dA = xᵀ dlow,  dB = s · lowᵀ dy",
        "notebook 16, section 2; linear_backward of notebook 06, twice. Make rows of the leading axes with reshape.",
    ),
    difficulty=2,
    section="Hu et al. 2021",
    chapter="Fine-tuning",
    place=2,
    mistakes="""
- scale forgotten everywhere:
    dlow = scale * (dy @ b.T) -> dlow = dy @ b.T
    db = scale * -> db = 1.0 *
  No gradient has the scale. y = s · low B, so each of the three is multiplied by s.
- scale forgotten in db:  db = scale * -> db = 1.0 *
  The scale is missing in dB: dB = s · lowᵀ dy.
- scale forgotten in dlow:  dlow = scale * (dy @ b.T) -> dlow = dy @ b.T
  The scale is missing in dx and dA. Both come from dlow = s · dy Bᵀ.
- scale twice in dx:  dx = dlow @ a.T -> dx = scale * (dlow @ a.T)
  The scale counts twice in dx: dlow = s · dy Bᵀ already has it.
- scale twice in da:  da = x_rows.T @ dlow_rows -> da = scale * (x_rows.T @ dlow_rows)
  The scale counts twice in dA: dlow = s · dy Bᵀ already has it.
- da without b:  da = x_rows.T @ dlow_rows -> da = np.tile(x_rows.T @ dy_rows.sum(1, keepdims=True), a.shape[1])
  dA does not use B. The gradient reaches A through B: dA = xᵀ dlow with dlow = s · dy Bᵀ.
- db with x:  low_rows.T @ dy_rows -> np.tile(x_rows.sum(1), (b.shape[0], 1)) @ dy_rows
  dB is computed with x. The input of B is low = x A: dB = s · lowᵀ dy.
- da transposed:  return dx, da, db -> return dx, da.T, db
  dA is transposed. A gradient has the shape of its array, (D_in, R).
- db transposed:  return dx, da, db -> return dx, da, db.T
  dB is transposed. A gradient has the shape of its array, (R, D_out).
- da and db exchanged:  return dx, da, db -> return dx, db, da
  dA and dB are returned in each other's place. The order is dx, da, db, that of x, a, b.
- averaged over the rows:
    da = x_rows.T @ dlow_rows -> da = x_rows.T @ dlow_rows / len(x_rows)
    db = scale * -> db = scale / len(x_rows) *
  dA and dB are averaged over the rows. They are sums: if the loss is a mean, that is already in dy.
- only the last sentence:
    x_rows, -> x_, low_, dy_ = (x[-1:], low[-1:], dy[-1:]) if x.ndim > 1 else (x, low, dy); x_rows,
    in (x, low, dy) -> in (x_, low_, dy_)
    dlow_rows = dlow.reshape -> dlow_ = dlow[-1:] if x.ndim > 1 else dlow; dlow_rows = dlow_.reshape
  dA and dB come from the last sentence alone: = in a loop where there should be +=. The gradients of all rows add.
- dx without dy:  dx = dlow @ a.T -> dx = np.ones_like(dlow) @ a.T
  dx does not use dy. The chain rule goes back through B, then through A: dx = dlow Aᵀ.
- a sign wrong:  return dx, da, db -> return -dx, -da, -db
  The sign of all gradients is wrong.
""",
)

EXERCISES = [LORA, LORA_BACKWARD]
