import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..support.checks import check_at_least, check_flag
from .attention import MultiHeadAttention
from .places import BandWeights, Written


class WindowAttention(MultiHeadAttention):
    """Multi-head self-attention to neighbours: the keys at most `window` positions away, on both sides or, if `causal`,
    only before the query (Vaswani et al. 2017, §4, "restricted").

    Parameters and result are those of MultiHeadAttention with masks.window_mask(T, window), combined with
    causal_mask(T) if causal. But time and memory grow with T · window, not with T².
    """

    taps = ("x", "q", "k", "v", "concat")
    places = (("scores", BandWeights), ("weights", BandWeights), ("written", Written))

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

    def forward(self, x):
        """x (B, T, D)  ->  (B, T, D)"""
        return super().forward(x)

    def _scores(self, q, k, mask):
        return F.window_scores(q, k, self.window, self.causal)  # (B, H, T, R)

    def _attend(self, q, k, v, mask):
        return F.window_attention(q, k, v, self.window, self.causal)  # (B, H, T, K), (B, H, T, R)

    def _attend_backward(self, dheads, q, k, v, weights, concat):
        return F.window_attention_backward(dheads, q, k, v, weights, self.window, self.causal)

    def backward(self, dout):
        """dout (B, T, D)  ->  dx (B, T, D)"""
        return super().backward(dout)[0]
