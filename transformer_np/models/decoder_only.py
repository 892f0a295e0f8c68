"""The parts that decoder-only models share: a stack of blocks under a causal mask, from ids to the next token."""

from ..layers import Linear, TiedLinear
from ..layers.initial import normal, width_std
from ..masks import causal_mask, window_mask
from ..module import Module
from ..support.checks import as_rows, check_cache
from .base import Pretrained


def output_of(embedding, c, rng):
    """The projection to the scores that a config asks for: the embedding transposed, or a matrix of its own."""
    if c.tie_embeddings:
        return TiedLinear(embedding)
    return Linear(c.d_model, c.vocab_size, bias=False, rng=rng, dtype=c.dtype, init_std=width_std(c.d_model))


class DecoderOnly(Pretrained, Module):
    """Embedding, blocks, norm and output projection of a model that reads from left to right.

    A subclass makes `embedding`, `blocks`, `norm` and `output`. It may add positions to the embeddings (`_positioned`
    and its backward). Its config has vocab_size, max_len, d_model, num_layers, window and tie_embeddings.
    """

    inputs = ("embedding", "position", "dropout")

    def _draw(self, rng):
        """Start the matrices of the blocks; those that write into the residual path smaller (GPT-2)."""
        std = width_std(self.config.d_model)
        residual = std / (2 * self.config.num_layers) ** 0.5
        for block in self.blocks:
            attention, feed_forward = block.attention, block.feed_forward
            read = [attention.w_q, attention.w_k, attention.w_v, feed_forward.w1]
            read.append(getattr(feed_forward, "w_gate", None))
            for w in filter(None, read):
                w.data = normal(rng, w.shape, std, w.dtype)
            for w in (attention.w_o, feed_forward.w2):
                w.data = normal(rng, w.shape, residual, w.dtype)

    def _positioned(self, x, start):
        """x (B, T, D), the embeddings of the tokens from position `start` on  ->  what enters the blocks."""
        return x

    def _positioned_backward(self, dx):
        return dx

    def forward(self, ids, cache=None, last=False):
        """ids (B, T)  ->  logits (B, T, V), or with `last` those of the last token alone, (B, 1, V)

        cache: a decoding.DecoderCache; ids then holds only the tokens that are new since the last call with it
        """
        ids = as_rows(ids, self.config.vocab_size)
        check_cache(cache, self.config.num_layers, ids)
        T = ids.shape[1]
        start = 0 if cache is None else cache.length
        if start + T > self.config.max_len:
            raise ValueError(f"ids is {start + T} tokens long, more than max_len = {self.config.max_len}")
        masks = self._masks(T, start + T)
        mask = masks if len(masks) > 1 else next(iter(masks), None)
        x = self._positioned(self.embedding(ids), start)  # (B, T, D)
        for i, block in enumerate(self.blocks):
            x = block(x, mask, None if cache is None else cache.blocks[i][0])
        if cache is not None:
            cache.extend(ids)
        return self.output(self.norm(x[:, -1:] if last else x))  # (B, T, V)

    def _masks(self, T, S):
        """The masks of T new tokens over S in all, a tuple; each is (T, S)."""
        masks = () if T == 1 else (causal_mask(T, S),)  # one token sees all before it
        window = self.config.window
        if window is not None and window < S - 1:
            masks += (window_mask(T, window, S),)
        return masks

    def backward(self, dlogits):
        """From dlogits (B, T, V) to the gradients of all parameters. Ids have no gradient: returns None."""
        dx = self.norm.backward(self.output.backward(dlogits))  # (B, T, D)
        for block in reversed(self.blocks[self.first_learning :]):
            dx = block.backward(dx)
        if self.first_learning is not None:
            return
        self.embedding.backward(self._positioned_backward(dx))
