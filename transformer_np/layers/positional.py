import numpy as np

from .. import functional as F
from ..checks import check_at_least, shapes
from ..initial import normal
from ..module import Module, Parameter


class PositionalEncoding(Module):
    """Add the sinusoids of the position to every row (Vaswani et al. 2017, §3.5). Nothing is learned.

    x (B, T, D), start: the position of the first row  ->  x + PE[start : start + T]
    """

    def __init__(self, d_model, max_len, rng=None, dtype=np.float32):
        check_at_least("max_len", max_len, 1)
        self.table = F.sinusoidal_encoding(max_len, d_model, dtype)  # (max_len, D)

    @shapes(x="B T D")
    def forward(self, x, start=0):
        return x + self.table[_positions(start, x.shape[1], len(self.table))]  # (B, T, D)

    def backward(self, dout):
        return dout


class LearnedPositionalEmbedding(Module):
    """Add a learned row for each position (Gehring et al. 2017), as GPT and BERT do.

    x (B, T, D), start: the position of the first row  ->  x + table[start : start + T]
    """

    def __init__(self, max_len, d_model, rng=None, dtype=np.float32, init_std=0.02):
        check_at_least("max_len", max_len, 1)
        check_at_least("d_model", d_model, 1)
        self.table = Parameter(normal(rng, (max_len, d_model), init_std, dtype))

    @shapes(x="B T D")
    def forward(self, x, start=0):
        positions = _positions(start, x.shape[1], len(self.table.data))
        self.keep(positions=np.arange(positions.start, positions.stop))
        return x + self.table.data[positions]  # (B, T, D)

    def backward(self, dout):
        self.table.grad[self.kept("positions")] += dout.sum(axis=0)  # every row of the batch met the same table
        return dout


def _positions(start, length, max_len):
    if start + length > max_len:
        raise ValueError(f"the sequence is {start + length} tokens long, more than max_len = {max_len}")
    return slice(start, start + length)
