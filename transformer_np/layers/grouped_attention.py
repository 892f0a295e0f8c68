import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..support.checks import check_at_least, check_flag, check_kv_heads
from .attention import MultiHeadAttention
from .norm import RMSNorm


class GroupedQueryAttention(MultiHeadAttention):
    """The attention of Llama: heads of queries share heads of keys and values (Ainslie et al. 2023), and queries and
    keys are turned by their positions (Su et al. 2021). A self-attention if it is rotary.

    num_kv_heads: G heads of keys and values, each shared by H/G heads of queries; w_k and w_v are then (D, G·K).
        None means H, 1 is multi-query attention
    rotary: the arguments of functional.rotary after the positions, such as {"theta": 10000.0}; None turns nothing
    norm_eps: of an RMSNorm of each head's queries and of its keys, before they are turned, as in Qwen3; None is no norm
    output_bias: whether w_o has a bias if the others have; Qwen2 has none there
    """

    def __init__(
        self, d_model, num_heads, bias=True, rng=None, dtype: DTypeLike = np.float32, d_head=None,
        num_kv_heads=None, rotary=None, output_bias=True, norm_eps=None,
    ):  # fmt: skip
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.rotary = rotary
        check_at_least("num_heads", num_heads, 1)
        check_kv_heads(self.num_kv_heads, num_heads)
        check_flag("output_bias", output_bias)
        super().__init__(d_model, num_heads, bias, rng, dtype, d_head)
        if not output_bias:
            self.__dict__["b_o"] = None
        self.norm_q = self.norm_k = None
        if norm_eps is not None:
            self.norm_q, self.norm_k = (RMSNorm(self.d_head, norm_eps, dtype=dtype) for _ in "qk")
        if rotary is not None:
            F.rotary(np.zeros((1, self.d_head)), [0], **rotary)  # raises errors now, not in the first forward

    @property
    def _repeats(self):
        return self.num_heads // self.num_kv_heads

    def _sizes(self, d_model):
        shared = self.num_kv_heads * self.d_head
        return {**super()._sizes(d_model), "k": (d_model, shared), "v": (d_model, shared)}

    def forward(self, x, memory=None, mask=None, cache=None):
        if memory is not None and self.rotary is not None:
            raise ValueError("rotary positions are those of one sequence: memory must be None")
        return super().forward(x, memory, mask, cache)

    def _heads(self, name, x, cache=None):
        heads = F.split_heads(self._project(name, x), self.num_heads if name == "q" else self.num_kv_heads)
        if name == "v":
            return heads
        heads = heads if self.norm_q is None else getattr(self, f"norm_{name}")(heads)
        if self.rotary is None:
            return heads
        start = 0 if cache is None else cache.length
        return F.rotary(heads, np.arange(start, start + x.shape[1]), **self.rotary)

    def _heads_backward(self, name, dheads, x):
        if self.rotary is not None and name != "v":
            dheads = F.rotary_backward(dheads, np.arange(x.shape[1]), **self.rotary)
        if self.norm_q is not None and name != "v":
            dheads = getattr(self, f"norm_{name}").backward(dheads)
        return super()._heads_backward(name, dheads, x)

    def _attend(self, q, k, v, mask):
        if self._is_folded(q, mask):
            B, H, _, K = q.shape
            heads, weights = F.scaled_dot_product_attention(q.reshape(B, -1, self._repeats, K), k, v)
            return heads.reshape(B, H, 1, K), weights.reshape(B, H, 1, -1)
        return super()._attend(q, F.repeat_heads(k, self._repeats), F.repeat_heads(v, self._repeats), mask)

    def _scores(self, q, k, mask):
        return super()._scores(q, F.repeat_heads(k, self._repeats), mask)

    def _is_folded(self, q, mask):
        """Decoding: the heads of a group are queries of the one head they share, and nothing is copied."""
        return self._repeats > 1 and q.shape[2] == 1 and mask is None and not self._shows("weights")

    def _attend_backward(self, dheads, q, k, v, weights, concat):
        k, v = F.repeat_heads(k, self._repeats), F.repeat_heads(v, self._repeats)  # (B, H, S, K)
        dq, dk, dv = super()._attend_backward(dheads, q, k, v, weights, concat)
        return dq, F.repeat_heads_backward(dk, self._repeats), F.repeat_heads_backward(dv, self._repeats)
