"""Word2Vec: vectors of words, learned from the words around them (Mikolov et al. 2013a, 2013b)."""

from dataclasses import dataclass

import numpy as np

from .. import functional as F
from ..layers.initial import uniform
from ..module import Module, Parameter
from ..support.checks import as_ids
from .base import ModelConfig, fitting


@dataclass(frozen=True)
class Word2VecConfig(ModelConfig):
    """Sizes of a Word2Vec. d_model: the length of a word's vector."""

    vocab_size: int
    d_model: int = 100
    dtype: str = "float32"
    seed: int = 0


class Word2Vec(Module):
    """Skip-gram with negative sampling: two vectors per word are all its parameters.

        model = Word2Vec(Word2VecConfig(vocab_size=11, d_model=16))
        loss = model(np.array([4, 5]), np.array([5, 6]), np.array([[7, 8, 9], [10, 4, 7]]))       # 4 ln 2 at first

    center: the vector of a word whose neighbours are predicted; these are the vectors to use after training
    context: the vector of a word as a neighbour, or as a randomly drawn word

    Words with the same neighbours have to match the same context vectors, so their center vectors become alike. There
    are two tables because a word hardly ever stands near itself: with one table, c · c would have to be small.

    The center vectors start uniform in ±0.5/D, the context vectors at 0, as in the original. So the first loss is
    (K + 1) ln 2, and the first gradient depends only on which words occur together.
    """

    def __init__(self, config: Word2VecConfig):
        c = self.config = fitting(config, Word2VecConfig)
        self.center = Parameter(uniform(c.seed, (c.vocab_size, c.d_model), 0.5 / c.d_model, c.dtype))
        self.context = Parameter(np.zeros((c.vocab_size, c.d_model), c.dtype))

    def forward(self, center_ids, context_ids, negative_ids):
        """center_ids (N,), context_ids (N,), negative_ids (N, K)  ->  loss in nats per pair

        Row n has a word, a neighbour of it, and K drawn words.

        Raises ValueError for ids out of range and for shapes that do not fit together.
        """
        ids = {"center_ids": center_ids, "context_ids": context_ids, "negative_ids": negative_ids}
        center_ids, context_ids, negative_ids = (as_ids(ids[name], len(self.center.data), name) for name in ids)
        if center_ids.ndim != 1 or context_ids.shape != center_ids.shape:
            shapes = f"{center_ids.shape} and {context_ids.shape}"
            raise ValueError(f"center_ids and context_ids must have one shape (N,), got {shapes}")
        if negative_ids.ndim != 2 or len(negative_ids) != len(center_ids):
            raise ValueError(f"negative_ids must have the shape ({len(center_ids)}, K), got {negative_ids.shape}")
        center = F.embedding(center_ids, self.center.data)  # (N, D)
        context = F.embedding(context_ids, self.context.data)  # (N, D)
        negatives = F.embedding(negative_ids, self.context.data)  # (N, K, D)
        loss, p_context, p_negatives = F.negative_sampling_loss(center, context, negatives)
        self.keep(
            center_ids=center_ids, context_ids=context_ids, negative_ids=negative_ids, center_vectors=center,
            context_vectors=context, negative_vectors=negatives, p_context=p_context, p_negatives=p_negatives,
        )  # fmt: skip
        return loss

    def backward(self, dloss=1.0):
        """From dloss to the gradients of both tables. Ids have no gradient: returns None."""
        dloss = np.asarray(dloss).item()  # it may be an array without axes
        center_ids, context_ids, negative_ids = self.kept("center_ids", "context_ids", "negative_ids")
        values = self.kept("center_vectors", "context_vectors", "negative_vectors", "p_context", "p_negatives")
        dcenter, dcontext, dnegatives = F.negative_sampling_loss_backward(*values, dloss=dloss)
        V = len(self.center.data)
        self.center.grad += F.embedding_backward(dcenter, center_ids, V)
        self.context.grad += F.embedding_backward(dcontext, context_ids, V)
        self.context.grad += F.embedding_backward(dnegatives, negative_ids, V)
