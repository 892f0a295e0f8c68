"""Word2Vec: vectors for words, learned from the words around them (Mikolov et al. 2013a, 2013b)."""

from dataclasses import dataclass

import numpy as np

from .. import functional as F
from ..layers.initial import uniform
from ..module import Module, Parameter
from ..support.checks import as_ids, check_at_least


@dataclass(frozen=True)
class Word2VecConfig:
    """Sizes of a Word2Vec. d_model: the numbers in a word's vector."""

    vocab_size: int
    d_model: int = 100
    dtype: str = "float32"
    seed: int = 0

    def __post_init__(self):
        for name in ("vocab_size", "d_model"):
            check_at_least(name, getattr(self, name), 1)
        if np.dtype(self.dtype).kind != "f":
            raise ValueError(f"dtype must be a floating type, got {self.dtype!r}")
        object.__setattr__(self, "dtype", np.dtype(self.dtype).name)


class Word2Vec(Module):
    """Skip-gram with negative sampling: two vectors for each word, and nothing else.

        model = Word2Vec(Word2VecConfig(vocab_size=11, d_model=16))
        loss = model(np.array([4, 5]), np.array([5, 6]), np.array([[7, 8, 9], [10, 4, 7]]))       # 4 ln 2 at first

    center: what a word is where it is asked about; these are the vectors that are used afterwards
    context: what a word is where it stands near another, or is drawn as one that does not

    Words with the same neighbours are asked for the same context vectors, and so their center vectors become alike.
    There are two tables because a word hardly ever stands near itself: with one, c · c would have to be small.

    The center vectors start uniform in ±0.5/D, the context vectors at 0, as in the original: the first loss is
    (K + 1) ln 2, and all that the first gradient can see is which words occur together.
    """

    def __init__(self, config):
        c = self.config = config
        self.center = Parameter(uniform(c.seed, (c.vocab_size, c.d_model), 0.5 / c.d_model, c.dtype))
        self.context = Parameter(np.zeros((c.vocab_size, c.d_model), c.dtype))

    def forward(self, center_ids, context_ids, negative_ids):
        """N words, one that stood near each, and K drawn for each: (N,), (N,), (N, K)  ->  loss in nats per pair

        Raises ValueError for ids out of range and shapes that do not belong together.
        """
        center_ids, context_ids = as_ids(center_ids, len(self.center.data)), as_ids(context_ids, len(self.center.data))
        negative_ids = as_ids(negative_ids, len(self.center.data), "negative_ids")
        if center_ids.ndim != 1 or context_ids.shape != center_ids.shape:
            raise ValueError(
                f"center_ids and context_ids must have one shape (N,), got {center_ids.shape} and {context_ids.shape}"
            )
        if negative_ids.ndim != 2 or len(negative_ids) != len(center_ids):
            raise ValueError(f"negative_ids must have the shape ({len(center_ids)}, K), got {negative_ids.shape}")
        center = F.embedding(center_ids, self.center.data)  # (N, D)
        context = F.embedding(context_ids, self.context.data)  # (N, D)
        negatives = F.embedding(negative_ids, self.context.data)  # (N, K, D)
        loss, p_context, p_negatives = F.negative_sampling_loss(center, context, negatives)
        self.keep(
            center_ids=center_ids,
            context_ids=context_ids,
            negative_ids=negative_ids,
            center_vectors=center,
            context_vectors=context,
            negative_vectors=negatives,
            p_context=p_context,
            p_negatives=p_negatives,
        )
        return loss

    def backward(self, dloss=1.0):
        """Adds to the gradients of both tables. Ids have no gradient: returns None."""
        center_ids, context_ids, negative_ids, *values = self.kept(
            *("center_ids", "context_ids", "negative_ids"),
            *("center_vectors", "context_vectors", "negative_vectors", "p_context", "p_negatives"),
        )
        dcenter, dcontext, dnegatives = F.negative_sampling_loss_backward(*values, dloss=dloss)
        V = len(self.center.data)
        self.center.grad += F.embedding_backward(dcenter, center_ids, V)
        self.context.grad += F.embedding_backward(dcontext, context_ids, V)
        self.context.grad += F.embedding_backward(dnegatives, negative_ids, V)
