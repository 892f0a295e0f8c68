"""Attention without a matrix of scores, for long sequences: what `MultiHeadAttention` keeps instead of its weights."""

from .. import functional as F

# Tiles are worth it if both sizes are reached: they are faster once the scores outgrow the cache.
TILED_BYTES = 16 * 2**20  # of all scores, (B, H, T, S)
TILED_LENGTH = 256  # of queries and of keys


def are_worth_it(q, k):
    B, H, T, _ = q.shape
    S = k.shape[2]
    return B * H * T * S * q.itemsize >= TILED_BYTES and min(T, S) >= TILED_LENGTH


class Tiles:
    """One forward pass, with the arrays from which its backward and its weights are computed."""

    def __init__(self, q, k, mask):
        self.q, self.k, self.mask = q, k, mask

    def forward(self, v):
        """v (B, H, S, K)  ->  heads (B, H, T, K)"""
        heads, self.log_total = F.tiled_attention(self.q, self.k, v, self.mask)
        return heads

    def backward(self, dheads, v, heads):
        """dheads, and the forward's v and heads  ->  dq (B, H, T, K), dk (B, H, S, K), dv (B, H, S, K)"""
        return F.tiled_attention_backward(dheads, self.q, self.k, v, heads, self.log_total, self.mask)

    def weights(self):
        """The weights, which the forward never stored: (B, H, T, S)."""
        return F.softmax(F.attention_scores(self.q, self.k, self.mask))
