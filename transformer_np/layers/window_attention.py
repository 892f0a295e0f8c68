import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..support.checks import check_at_least, check_flag, shapes
from .attention import MultiHeadAttention


class WindowAttention(MultiHeadAttention):
    """Multi-head self-attention to neighbours: the keys at most `window` positions away, on both sides or, if `causal`,
    only before the query (Vaswani et al. 2017, §4, "restricted").

    Parameters and result are those of MultiHeadAttention with masks.window_mask(T, window), combined with
    causal_mask(T) if causal. But time and memory grow with T · window, not with T².
    """

    always_kept = ("weights",)

    def __init__(self, d_model, num_heads, window, causal=False, bias=True, rng=None, dtype: DTypeLike = np.float32):
        check_at_least("window", window, 0)
        check_flag("causal", causal)
        super().__init__(d_model, num_heads, bias, rng, dtype)
        self.window, self.causal = window, causal

    @property
    def weights(self) -> np.ndarray:
        """The attention weights of the last forward by distance, (B, H, T, R): weights[..., t, j] is the weight that
        query t gives to key t − window + j (window: at most T − 1). None before the first forward."""
        return self._kept.get("weights")

    def replaceable(self):
        return {name: place for name, place in super().replaceable().items() if name != "memory"}

    @shapes(x="B T D")
    def forward(self, x):
        """x (B, T, D)  ->  (B, T, D)"""
        q, k, v = (F.split_heads(self._project(name, x), self.num_heads) for name in "qkv")  # (B, H, T, K)
        heads, weights = F.window_attention(q, k, v, self.window, self.causal)  # (B, H, T, K), (B, H, T, R)
        concat = F.merge_heads(heads)  # (B, T, D)
        self.keep(x=x, q=q, k=k, v=v, weights=weights, concat=concat)
        return self._project("o", concat)

    def backward(self, dout):
        """dout (B, T, D)  ->  dx (B, T, D)"""
        x, q, k, v, weights, concat = self.kept("x", "q", "k", "v", "weights", "concat")
        dconcat = self._project_backward("o", dout, concat)  # (B, T, D)
        dheads = F.split_heads(dconcat, self.num_heads)  # (B, H, T, K)
        gradients = F.window_attention_backward(dheads, q, k, v, weights, self.window, self.causal)
        dq, dk, dv = map(F.merge_heads, gradients)
        dx = self._project_backward("q", dq, x)
        dx += self._project_backward("k", dk, x)
        dx += self._project_backward("v", dv, x)
        return dx
