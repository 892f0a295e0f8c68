"""The embedding and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes
from .draws import only
from .sheet import Sheet

SHEET = Sheet(__file__)


def draw_ids(rng, B, T, V):
    """Ids (B, T) with 0 twice in one sentence and again in the next at the same place, and with V − 1, the last one."""
    ids = rng.integers(V, size=(B, T))
    ids[0, :2] = ids[1, 0] = 0
    ids[-1, -1] = V - 1
    return ids


def embedding_cases(rng):
    sizes = draw_sizes(rng, "B T V D", least=4)
    B, T, V, D = sizes.values()
    table = rng.normal(size=(V, D))
    ids = draw_ids(rng, B, T, V)
    square = rng.normal(size=(V, V))
    return [
        Case("", (ids, table), sizes=sizes),
        Case("the last id not in use", (np.minimum(ids, V - 2), table), sizes=sizes),
        Case("as many dimensions as embeddings", (ids, square), sizes=sizes | {"D": V}),
        Case("ids of shape (T,)", (ids[0], table), sizes=only(sizes, "T V D")),
        Case("ids of three axes", (rng.integers(V, size=(2, B, T)), table), sizes=sizes),
    ]


def embedding(ids, table):
    y = table[ids]
    return y


def embedding_backward_cases(rng):
    sizes = draw_sizes(rng, "B T V D", least=4)
    B, T, V, D = sizes.values()
    ids = draw_ids(rng, B, T, V)
    dy = rng.normal(size=(B, T, D))
    some = np.clip(ids, 2, V - 2)  # without 0, 1 and V − 1
    deep = rng.integers(V, size=(2, B, T))
    return [
        Case("", (dy, ids, V), sizes=sizes),
        Case("ids that never occur", (dy, some, V + 1), sizes=sizes | {"V": V + 1}),
        Case("as many ids as embeddings", (dy, ids, B * T), sizes=sizes | {"V": B * T}),
        Case("ids of shape (T,)", (dy[0], ids[0], V), sizes=only(sizes, "T V D")),
        Case("ids of three axes", (rng.normal(size=(2, B, T, D)), deep, V), sizes=sizes),
    ]


def embedding_backward(dy, ids, num_embeddings):
    V, D = num_embeddings, dy.shape[-1]
    dtable = np.zeros((V, D))
    np.add.at(dtable, ids, dy)
    return dtable


EXERCISES = [
    SHEET.exercise(F.embedding, embedding, embedding_cases),
    SHEET.exercise(F.embedding_backward, embedding_backward, embedding_backward_cases, {"dtable": "V D"}),
]
