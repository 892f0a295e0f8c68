"""The low-rank term of LoRA (Hu et al. 2021): a small change of a large matrix that stays as it is."""

from ..support.checks import check_number
from ..support.shapes import shapes
from .core import linear, linear_backward


@shapes(x="... D_in", a="D_in R", b="R D_out")
def lora(x, a, b, scale=1.0):
    """The term that LoRA adds to x W: the change of W is a product of two thin matrices (Hu et al. 2021, §4.1).

        y = s · (x A) B,    so that  x W + y = x (W + s · A B)

    x (..., D_in), a (D_in, R), b (R, D_out)  ->  y (..., D_out), low (..., R)

    The second result, x A, is what the backward pass needs. With R much smaller than D, A and B have R · (D_in + D_out)
    numbers to learn, where W has D_in · D_out. B starts at 0, so that the first y is 0.
    """
    check_number("scale", scale)
    low = linear(x, a)  # (..., R)
    return float(scale) * linear(low, b), low


@shapes(dy="... D_out", x="... D_in", low="... R", a="D_in R", b="R D_out")
def lora_backward(dy, x, low, a, b, scale=1.0):
    """Backward of lora, two linear maps in a row.

        dlow = s · dy Bᵀ,    dx = dlow Aᵀ,    dA = xᵀ dlow,    dB = s · lowᵀ dy,    the last two summed over the rows

    dy (..., D_out)  ->  dx (..., D_in), da (D_in, R), db (R, D_out)
    """
    check_number("scale", scale)
    dlow, db, _ = linear_backward(dy, low, b)
    dx, da, _ = linear_backward(float(scale) * dlow, x, a)  # scaled here, where the array is small
    return dx, da, float(scale) * db
