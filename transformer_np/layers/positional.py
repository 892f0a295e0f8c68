import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Module, Parameter
from ..support.checks import as_dout, check_all_at_least, check_at_least
from ..support.shapes import shapes
from .initial import normal


class PositionalEncoding(Module):
    """Add the sinusoids of its position to every row (Vaswani et al. 2017, §3.5). There are no parameters.

    x (B, T, D), start: the position of the first row  ->  x + PE[start : start + T]
    """

    def __init__(self, d_model, max_len, rng=None, dtype: DTypeLike = np.float32):
        check_at_least("max_len", max_len, 1)
        self.table = F.sinusoidal_encoding(max_len, d_model, dtype)  # (max_len, D)

    def forward(self, x, start=0):
        y = add_positions(x, self.table, start)  # (B, T, D)
        self.keep(shape=y.shape)
        return y

    def backward(self, dout):
        return as_dout(dout, self.kept("shape"), self.table.dtype)


class LearnedPositionalEmbedding(Module):
    """Add a learned row for each position (Gehring et al. 2017), as GPT and BERT do.

    x (B, T, D), start: the position of the first row  ->  x + table[start : start + T]
    """

    def __init__(self, max_len, d_model, rng=None, dtype: DTypeLike = np.float32, init_std=0.02):
        check_all_at_least(1, max_len=max_len, d_model=d_model)
        self.table = Parameter(normal(rng, (max_len, d_model), init_std, dtype))

    def forward(self, x, start=0):
        y = add_positions(x, self.table.data, start)  # (B, T, D)
        self.keep(positions=np.arange(start, start + y.shape[1]), shape=y.shape)
        return y

    def backward(self, dout):
        positions, shape = self.kept("positions", "shape")
        dout = as_dout(dout, shape, self.table.dtype)
        self.table.grad[positions] += dout.sum(axis=0)  # every row of the batch used the same table
        return dout


@shapes(x="B T D", table="max_len D")
def add_positions(x, table, start):
    """Add row `start` of the table to the first row of x, row `start` + 1 to the second, …"""
    check_at_least("start", start, 0)
    end = start + x.shape[1]
    if end > len(table):
        raise ValueError(f"the sequence is {end} tokens long, more than max_len = {len(table)}")
    return x + table[start:end]
