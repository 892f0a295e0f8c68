"""Keys and values that several heads share: grouped-query attention (Ainslie et al. 2023)."""

import numpy as np

from ..support.checks import check_at_least
from ..support.shapes import shapes


@shapes(x="B G S K")
def repeat_heads(x, repeats):
    """Give each head of keys or values to `repeats` heads of queries that lie side by side.

        y_h = x_g,    g = ⌊h / repeats⌋

    x (B, G, S, K)  ->  y (B, H, S, K) with H = G · repeats

    G = 1 is multi-query attention (Shazeer 2019), repeats = 1 the lecture's attention.
    """
    check_at_least("repeats", repeats, 1)
    return x if repeats == 1 else np.repeat(x, repeats, axis=1)


@shapes(dy="B H S K")
def repeat_heads_backward(dy, repeats):
    """Backward of repeat_heads: a head that was given to several gets the sum of their gradients.

        dx_g = Σ dy_h over the heads h of the group g

    dy (B, H, S, K)  ->  dx (B, G, S, K) with G = H / repeats
    """
    B, H, S, K = dy.shape
    check_at_least("repeats", repeats, 1)
    if H % repeats:
        raise ValueError(f"repeats must divide the heads of dy: got repeats = {repeats} for {H} heads")
    return dy if repeats == 1 else dy.reshape(B, H // repeats, repeats, S, K).sum(axis=2)
