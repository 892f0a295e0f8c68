"""The embedding and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes


def draw_ids(rng, B, T, V):
    """Ids (B, T) with 0 twice in one sentence and again in the next at the same place, and with V − 1, the last one."""
    ids = rng.integers(V, size=(B, T))
    ids[0, :2] = ids[1, 0] = 0
    ids[-1, -1] = V - 1
    return ids


# --- embedding --------------------------------------------------------------------------------------------------------


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
        Case("ids of shape (T,)", (ids[0], table), sizes=sizes),
        Case("ids of three axes", (rng.integers(V, size=(2, B, T)), table), sizes=sizes),
    ]


def embedding(ids, table):
    y = table[ids]
    return y


EMBEDDING = Exercise(
    F.embedding,
    results=(Result("y", "... D"),),
    cases=embedding_cases,
    answer=embedding,
    hints=(
        "The one-hot row of an id, times the table: what does it pick, and can you get that without multiplying zeros?",
        "y[b, t] = table[ids[b, t]], for ids of any shape",
        "notebook 01, section 1; NumPy indexes an array with an array of whole numbers.",
    ),
    difficulty=1,
    section="§4 step 1",
    chapter="Embeddings and positions",
    place=1,
    mistakes="""
- ids counted from 1:  table[ids] -> table[ids - 1]
  It looks up row id − 1. Ids count from 0, as rows do: id 0 is row 0; with − 1 it gets the last row of the table.
- the next row:  table[ids] -> table[ids + 1]
  It looks up row id + 1. Ids count from 0, as rows do; the last id has no row behind it.
- counted from the end:  table[ids] -> table[-1 - ids]
  It counts the rows from the end of the table, row V − 1 − id, as if the table were upside down. Id 0 is row 0.
- the position taken for the id:
    table[ids] -> table[np.broadcast_to(np.arange(ids.shape[-1]), ids.shape)]
  It looks up the position of a word in its sentence, 0, 1, 2, …, instead of its id: every sentence gets the same rows.
- only the first sentence:  table[ids] -> table[ids[0]]
  Only ids[0] is looked up, the first sentence; the other rows of ids are not used.
- one row for each distinct id:  table[ids] -> table[np.unique(ids)]
  It looks up each distinct id once (np.unique), sorted. Every place of ids gets its row, even where an id occurs again.
- ids flattened:  table[ids] -> table[ids.reshape(-1)]
  The ids are flattened, and the result has all words of all sentences in one axis. y has the axes of ids and one more
  for the D features: the last step, back to ids.shape, is missing.
- the one-hot rows themselves:  table[ids] -> np.eye(len(table))[ids]
  It returns the one-hot rows of the ids, V numbers each. They still have to be multiplied by the table, one_hot @
  table, which picks one row of D numbers each.
- columns for rows:  table[ids] -> table.T[ids]
  It picks columns of the table, as if the table were transposed. A word is a row: table[id], D numbers.
- columns of the table, features first:  table[ids] -> table[:, ids]
  `table[:, ids]` picks columns of the table, and puts their V numbers in front. The ids index the first axis of the
  table, the rows.
- id 0 set to zero:  return y -> y[ids == 0] = 0; return y
  The rows of id 0 are set to zero, as if it were padding. An embedding knows no padding id: id 0 has a row like any
  other; hiding padding is the mask's task.
- multiplied by √d_model:  return y -> return y * np.sqrt(table.shape[1])
  The rows are multiplied by √d_model. The paper does that where it adds the positional encoding (§3.4); this function
  only looks up.
- divided by √d_model:  return y -> return y / np.sqrt(table.shape[1])
  The rows are divided by √d_model. The lookup scales nothing: y holds the rows as they are.
- rows brought to length 1:  return y -> return y / np.linalg.norm(y, axis=-1, keepdims=True)
  Each row is divided by its length (its norm). The lookup changes no number: y holds the rows as they are.
- positional encoding added:  return y -> return y + F.sinusoidal_encoding(*y.shape[-2:], np.float64)
  The positional encoding is added. This function only looks up; adding positions is a step of its own.
- summed over the words:  return y -> return y.sum(axis=-2)
  The rows of a sentence are summed, a bag of words: the axis of the words is gone. Every word keeps its own row.
- averaged over the words:  return y -> return y.mean(axis=-2)
  The rows of a sentence are averaged (mean over the words): the axis of the words is gone. Every word keeps its own
  row.
- features before words:  return y -> return y.swapaxes(-1, -2)
  The last two axes are exchanged (transposed): a word is a row, so the D features are the last axis, (B, T, D).
""",
)


# --- embedding_backward -----------------------------------------------------------------------------------------------


def embedding_backward_cases(rng):
    sizes = draw_sizes(rng, "B T V D", least=4)
    B, T, V, D = sizes.values()
    ids = draw_ids(rng, B, T, V)
    dy = rng.normal(size=(B, T, D))
    some = np.where(ids == 1, 2, np.minimum(ids, V - 2))  # without 1 and V − 1
    deep = rng.integers(V, size=(2, B, T))
    return [
        Case("", (dy, ids, V), sizes=sizes),
        Case("ids that never occur", (dy, some, V + 1), sizes=sizes | {"V": V + 1}),
        Case("as many ids as embeddings", (dy, ids, B * T), sizes=sizes | {"V": B * T}),
        Case("ids of shape (T,)", (dy[0], ids[0], V), sizes=sizes),
        Case("ids of three axes", (rng.normal(size=(2, B, T, D)), deep, V), sizes=sizes),
    ]


def embedding_backward(dy, ids, num_embeddings):
    V, D = num_embeddings, dy.shape[-1]
    dtable = np.zeros((V, D))
    np.add.at(dtable, ids, dy)
    return dtable


EMBEDDING_BACKWARD = Exercise(
    F.embedding_backward,
    results=(Result("dtable", "V D"),),
    cases=embedding_backward_cases,
    answer=embedding_backward,
    hints=(
        "A word stands at three places. By how many ways did its row of the table reach the loss?",
        "dtable[v] = Σ dy[b, t] over all places (b, t) with ids[b, t] = v",
        "notebook 06, section 7; np.add.at, or the one-hot matrix, or a loop. Try it with a repeated id.",
    ),
    difficulty=2,
    section="behind §4 step 1",
    chapter="Backpropagation",
    place=2,
    mistakes="""
- repeated ids not added:  np.add.at(dtable, ids, dy) -> dtable[ids] += dy
  An id that stands at several places counts once: only its last occurrence is left. `dtable[ids] += dy` reads all rows,
  adds, and writes all back, so of equal ids the last one wins; the same holds for `dtable[ids] = dy`. The gradients of
  all occurrences have to be added up.
- only the first occurrence counts:
    np.add.at(dtable, ids, dy) -> dtable[ids.reshape(-1)[::-1]] = dy.reshape(-1, D)[::-1]
  An id that stands at several places counts once, with its first occurrence. The gradients of all occurrences have to
  be added up.
- repeated ids of a sentence not added:
    np.add.at(dtable, ids, dy) ->
        for b in range(len(ids)):
            dtable[ids[b]] += dy[b]
  It goes sentence by sentence with `dtable[ids[b]] += dy[b]`: an id that stands twice in one sentence counts once
  there, since `+=` with repeated indices keeps the last one only.
- repeated ids at the same place not added:
    np.add.at(dtable, ids, dy) ->
        for t in range(ids.shape[-1]):
            dtable[ids[..., t]] += dy[..., t, :]
  It goes place by place with `dtable[ids[:, t]] += dy[:, t]`: an id that two sentences have at the same place counts
  once, since `+=` with repeated indices keeps the last one only.
- the first word left out:  ids, dy) -> ids[..., 1:], dy[..., 1:, :])
  The first word of each sentence is left out, a slice [1:] or a loop from 1. Every place counts.
- the last word left out:  ids, dy) -> ids[..., :-1], dy[..., :-1, :])
  The last word of each sentence is left out, a slice [:-1] or a loop that ends early. Every place counts.
- only the first sentence:
    np.add.at(dtable, ids, dy) ->
        if ids.ndim > 1:
            ids, dy = ids[0], dy[0]
        np.add.at(dtable, ids, dy)
  Only the first sentence is counted, ids[0] and dy[0]. The gradients of all sentences have to be added up.
- ids in another order:  ids, dy) -> ids.T.reshape(-1), dy.reshape(-1, D))
  ids and dy are flattened in different orders (ids.T, or order='F'), so that the gradients go to the rows of other ids.
  Flatten both alike: ids.reshape(-1) and dy.reshape(-1, D).
- only the last sentence:  ids, dy) -> ids[-1], dy[-1])
  Only the last sentence of the batch is counted: in the loop over sentences the gradient is replaced (=) instead of
  added to (+=).
- the largest gradient for the sum:
    np.zeros((V, D)) -> np.full((V, D), -np.inf)
    np.add.at(dtable, ids, dy) -> np.maximum.at(dtable, ids, dy); dtable[np.isinf(dtable)] = 0
  The largest gradient of all places of an id is taken (a maximum). Add them instead.
- averaged over the occurrences:
    return dtable -> return dtable / np.maximum(1, np.bincount(ids.reshape(-1), minlength=V))[:, None]
  The gradients of an id are averaged over its occurrences. It is a sum, without division by the count: a row that was
  used three times moved the loss three times.
- multiplied by the number of occurrences:
    return dtable -> return dtable * np.bincount(ids.reshape(-1), minlength=V)[:, None]
  The sum over the occurrences of an id is multiplied by their number once more: each occurrence counts once.
- occurrences counted, dy not used:  ids, dy) -> ids, 1)
  It counts how often each id occurs and does not use dy. Each occurrence adds its own row of dy, not a 1.
- divided by the batch size:  return dtable -> return dtable / ids.shape[0]
  The gradient is divided by the batch size, 1/B too much. If the loss is a mean, dy already contains that factor; here
  it is a plain sum.
- divided by the length:  return dtable -> return dtable / ids.shape[-1]
  The gradient is divided by the length of a sentence, 1/T too much. If the loss is a mean, dy already contains that
  factor; here it is a plain sum.
- divided by the number of ids:  return dtable -> return dtable / ids.size
  The gradient is divided by the number of all ids, 1/(B·T) too much: a mean for a sum. If the loss is a mean, dy
  already contains that factor.
- divided by the size of the vocabulary:  return dtable -> return dtable / V
  The gradient is divided by the number of embeddings, 1/V too much. It is a plain sum over the places where an id
  stood.
- multiplied by √d_model:  return dtable -> return dtable * np.sqrt(D)
  The gradient is multiplied by √d_model. The forward is a lookup without that factor, so its backward has none.
- no gradient for id 0:  return dtable -> dtable[0] = 0; return dtable
  Row 0 gets no gradient, as if id 0 were padding. An embedding knows no padding id: row 0 is a row like any other.
- ids counted from 1:  ids, dy) -> ids - 1, dy)
  The gradient goes to row id − 1 (off by one). Ids count from 0, as rows do: id 0 looked up row 0.
- the next row:  ids, dy) -> ids + 1, dy)
  The gradient goes to row id + 1 (off by one). Ids count from 0, as rows do.
- rows only up to the largest id:  V, D = num_embeddings -> V, D = ids.max() + 1
  dtable has as many rows as the largest id asks for, ids.max() + 1. It has num_embeddings rows, the shape of the table;
  ids that do not occur get a row of zeros.
- only the rows that occur:  return dtable -> return dtable[np.unique(ids)]
  dtable has rows only for the ids that occur. It has the shape of the table, num_embeddings rows, with zeros where an
  id does not occur.
- the table transposed:  return dtable -> return dtable.T
  dtable is transposed, (D, V). A gradient has the shape of its array: (V, D).
- one-hot matrix not transposed:
    np.add.at(dtable, ids, dy) -> dtable = np.eye(V)[ids.reshape(-1)] @ dy.reshape(-1, D)
  The one-hot matrix (N, V) stands before dy without its transpose. The forward is one_hot @ table, so the gradient of
  the table is one_hotᵀ @ dy.
- summed over the features:  return dtable -> return dtable.sum(axis=-1)
  dy is summed over its last axis, the features: one number for each embedding. The sum runs over the places where an id
  stood; each of the D features has its own.
- dy handed on:  return dy
  dy is returned as it came, a gradient for every place. dtable is the gradient of the table: each row of dy has to go
  to the row of its id, (num_embeddings, D).
""",
)

EXERCISES = [EMBEDDING, EMBEDDING_BACKWARD]
