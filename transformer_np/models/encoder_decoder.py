"""The shared part of the encoder–decoders: from ids through two stacks of blocks to scores, and back."""

import numpy as np

from ..layers import Dropout
from ..masks import causal_mask, padding_mask
from ..module import Module, forward_part
from ..support.checks import as_rows, check_cache, check_number
from ..support.shapes import shapes


class InputEmbedding(Module):
    """The input of the first block: scale · embedding + position, then dropout (Vaswani et al. 2017, §5.4).

    position: a module that adds a vector for the place of each token, or None

    ids (B, T), start: the position of the first id  ->  (B, T, D)
    """

    def __init__(self, embedding, dropout, rng, position=None, scale=1.0):
        check_number("scale", scale)
        self.embedding = embedding
        self.position = position
        self.dropout = Dropout(dropout, rng=rng)
        self.scale = scale

    def forward(self, ids, start=0):
        x = self.embedding(ids)  # (B, T, D)
        if self.scale != 1:
            x *= self.scale
        if self.position is not None:
            x = self.position(x, start)
        return self.dropout(x)

    def backward(self, dout):
        dx = self.dropout.backward(dout)
        if self.position is not None:
            dx = self.position.backward(dx)
        self.embedding.backward(dx if self.scale == 1 else dx * self.scale)


class EncoderDecoder(Module):
    """An encoder and a decoder. A subclass makes the parts:

    src_input, tgt_input: from ids to the input of the first block
    encoder, decoder: lists of EncoderBlock and DecoderBlock; encoder_norm, decoder_norm: after the last block, or None
    output: from the decoder's last states to scores
    config: has src_vocab_size, tgt_vocab_size, pad_id, max_len

    pads_target: whether pad_id means padding in the target too; if not, it is an ordinary token there, and the causal
        mask hides the padding after a target
    limited: whether max_len limits the length of a sequence
    """

    pads_target = True
    limited = True

    def forward(self, src, tgt_in):
        """src (B, S), tgt_in (B, T)  ->  logits (B, T, V)"""
        return self.decode(tgt_in, self.encode(src), src)

    @forward_part
    def encode(self, src, padding=None):
        """src (B, S)  ->  memory (B, S, D)

        padding: (B, S), True where src is padded (default: where it is pad_id)
        """
        src = as_rows(src, self.config.src_vocab_size, "src")
        self._check_sequences("src", src, padded=padding is None)
        mask = self._hidden(src, padding)  # (B, 1, 1, S)
        x = self.src_input(src)  # (B, S, D)
        for block in self.encoder:
            x = block(x, mask)
        memory = self.encoder_norm(x) if self.encoder_norm else x
        self.__dict__["_kept"] = {}  # what an earlier decode kept belongs to another memory
        self.keep(encoded=(memory,))
        return memory

    @forward_part
    @shapes(memory="B S D")
    def decode(self, tgt_in, memory, src, cache=None, padding=None):
        """tgt_in (B, T), memory (B, S, D) = encode(src), src (B, S) for its padding  ->  logits (B, T, V)

        cache: a decoding.DecoderCache; tgt_in then holds only the tokens that are new since the last call with it
        padding: of src, as in `encode`
        """
        tgt_in = as_rows(tgt_in, self.config.tgt_vocab_size, "tgt_in")
        check_cache(cache, len(self.decoder), tgt_in)
        past = None if cache is None else cache.ids
        ids = tgt_in if past is None else np.concatenate([past, tgt_in], axis=1)  # (B, S): all target ids so far
        self._check_sequences("tgt_in", ids, padded=self.pads_target)
        if not len(tgt_in) == len(memory) == len(src):
            raise ValueError(f"batch sizes differ: tgt_in {len(tgt_in)}, memory {len(memory)}, src {len(src)}")
        if np.shape(src) != memory.shape[:2]:
            what = f"src of shape {np.shape(src)} does not fit memory of shape {memory.shape}"
            raise ValueError(f"{what}: pass the src of this memory")
        start = ids.shape[1] - tgt_in.shape[1]
        mask = (causal_mask(tgt_in.shape[1], ids.shape[1]),)  # (T, S)
        if self.pads_target:
            mask += (padding_mask(ids, self.config.pad_id),)  # (B, 1, 1, S)
        memory_mask = self._hidden(np.asarray(src), padding)  # (B, 1, 1, S)
        x = self.tgt_input(tgt_in, start)  # (B, T, D)
        for i, block in enumerate(self.decoder):
            x = block(x, memory, mask, memory_mask, (None, None) if cache is None else cache.blocks[i])
        x = self.decoder_norm(x) if self.decoder_norm else x
        if cache is not None:
            cache.extend(tgt_in)
        self.keep(decoded=(memory,))
        return self.output(x)  # (B, T, V)

    def backward(self, dlogits):
        """From dlogits (B, T, V) to the gradients of all parameters. Ids have no gradient: returns None.

        Raises RuntimeError if the last `decode` read another memory than the last `encode` returned.
        """
        ((encoded,), (decoded,)) = self.kept("encoded", "decoded")
        if encoded is not decoded and not np.array_equal(encoded, decoded):
            raise RuntimeError("decode read another memory than the last encode returned: encode this source again")
        dx = self.output.backward(dlogits)  # (B, T, D)
        dx = self.decoder_norm.backward(dx) if self.decoder_norm else dx
        dmemory = 0
        for block in reversed(self.decoder):
            dx, dmemory_here = block.backward(dx)
            dmemory = dmemory + dmemory_here  # every decoder block read the memory
        self.tgt_input.backward(dx)
        if not self.decoder:  # nothing read the memory
            return
        dmemory = self.encoder_norm.backward(dmemory) if self.encoder_norm else dmemory
        for block in reversed(self.encoder):
            dmemory = block.backward(dmemory)
        self.src_input.backward(dmemory)

    def _hidden(self, src, padding):
        return padding_mask(src, self.config.pad_id) if padding is None else padding[:, None, None, :]

    def _check_sequences(self, name, ids, padded=True):
        """Check that ids (B, T) are not longer than max_len, and that no row is only padding."""
        if self.limited and ids.shape[1] > self.config.max_len:
            raise ValueError(f"{name} is {ids.shape[1]} tokens long, more than max_len = {self.config.max_len}")
        empty = (ids == self.config.pad_id).all(axis=1)
        if padded and empty.any():
            raise ValueError(f"{name} has nothing but padding in row {int(empty.argmax())}")
