import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Module, Parameter
from ..support.checks import as_dout, as_float_array, check_all_at_least, check_flag, check_kind, check_number
from .initial import blank, normal


class Embedding(Module):
    """A table with a learned row of d_model numbers for every id: (...) -> (..., d_model).

    The rows start normal with standard deviation `init_std`, 1/√d_model unless given: length 1 on average.

    frozen: whether the table stays fixed; its gradient is then 0. Do not give it to an optimizer with weight decay.
    """

    frozen = False

    def __init__(self, num_embeddings, d_model, rng=None, dtype: DTypeLike = np.float32, init_std=None):
        check_all_at_least(1, num_embeddings=num_embeddings, d_model=d_model)
        std = d_model**-0.5 if init_std is None else init_std
        self.table = Parameter(normal(rng, (num_embeddings, d_model), std, dtype))

    @classmethod
    def from_vectors(cls, vectors, frozen=False):
        """An embedding whose rows are the given vectors (V, D), such as those of `data.read_vectors`."""
        check_flag("frozen", frozen)
        vectors = as_float_array(vectors, "vectors")
        if vectors.ndim != 2:
            raise ValueError(f"vectors must have the axes (V, D), got shape {vectors.shape}")
        if not np.isfinite(vectors).all():
            row = int(np.argwhere(~np.isfinite(vectors))[0, 0])
            raise ValueError(f"vectors must be finite, but row {row} holds NaN or infinity")
        with blank():
            embedding = cls(*vectors.shape, dtype=vectors.dtype)
        embedding.table, embedding.frozen = vectors, frozen
        return embedding

    def forward(self, ids):
        y = F.embedding(ids, self.table.data)
        self.keep(ids=np.asarray(ids))
        return y  # (..., D)

    def backward(self, dy):
        """Adds to the table's gradient. Ids have no gradient: returns None."""
        ids = self.kept("ids")
        dy = as_dout(dy, (*ids.shape, self.table.shape[1]), self.table.dtype, "dy")
        if not self.frozen:
            self.table.grad += F.embedding_backward(dy, ids, len(self.table.data))


class TiedLinear(Module):
    """Scores of every row of an embedding's table, y = x Eᵀ: an output projection that shares its parameter with the
    embedding (Press & Wolf 2017; Vaswani et al. 2017, §3.4). Both layers add to the same gradient.

    scale: x is first multiplied by it. T5 uses 1/√D, because its embeddings are large.

    x (..., D)  ->  y (..., V)
    """

    def __init__(self, embedding, scale=1.0):
        check_kind("embedding", embedding, Embedding)
        check_number("scale", scale)
        self.table, self.scale = embedding.table, scale

    taps = ("x",)

    def forward(self, x):
        x = x if self.scale == 1 else x * self.scale
        x = self.keep(x=x)
        return F.linear(x, self.table.data.T)  # (..., V)

    def backward(self, dy):
        if self.table.frozen:
            dx = F.linear(dy, self.table.data)
        else:
            dx, dw, _ = F.linear_backward(dy, self.kept("x"), self.table.data.T)
            self.table.grad += dw.T
        dx = self.gradient(x=dx)
        return dx if self.scale == 1 else dx * self.scale
