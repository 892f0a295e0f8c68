"""Attention with relative positions: the shift, the attention, their backwards."""

import re

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes, extended
from ..notes import amended
from .attention import masked
from .draws import far_apart, sizes_without_squares
from .softmax import softmax, softmax_backward
from .tiled_attention import MASK_MISTAKES, SCALE_MISTAKES

# --- relative_shift --------------------------------------------------------------------------------------------------


def _present(T, S):
    """Where the key is not in the query's future, (T, S)."""
    return np.tri(T, S, S - T, dtype=bool)


def shift_cases(rng):
    sizes = draw_sizes(rng, "B H T", least=3)
    B, H, T = sizes.values()
    S = T + int(rng.integers(2, 5))
    sizes |= {"S": S}
    return [
        Case("", (rng.normal(size=(B, H, T, S)),), sizes=sizes),
        Case("as many keys as queries", (rng.normal(size=(B, H, T, T)),), sizes=sizes | {"S": T}),
        Case("one query, T = 1", (rng.normal(size=(B, H, 1, S)),), sizes=sizes | {"T": 1}),
        Case("one batch axis, x of shape (B, T, S)", (rng.normal(size=(B, T, S)),), sizes=sizes),
        Case("no batch axis, x of shape (T, S)", (rng.normal(size=(T, S)),), sizes=sizes),
    ]


def without_future(case, output):
    """y where the key is not in the query's future, 0 elsewhere: the leftovers there mean nothing."""
    (x,) = case.arguments
    if not isinstance(output, np.ndarray) or output.shape != x.shape or output.dtype.kind not in "biuf":
        return (output,)
    return (np.where(_present(*x.shape[-2:]), output, 0),)


def relative_shift(x):
    T, S = x.shape[-2:]
    y = np.zeros_like(x)
    for t in range(T):
        for s in range(S):
            column = s + T - 1 - t
            if 0 <= column < S:
                y[..., t, s] = x[..., t, column]
    return y


_SHIFT_MISTAKES = """
- not shifted:  column = s + T - 1 - t -> column = s
  Nothing is shifted: y[t, s] = x[t, s]. Column c of x is a distance, column s of y is a key.
- by t instead of T − 1 − t:  column = s + T - 1 - t -> column = s + t
  Row t is shifted by t. It is the last row that stays where it is and the first that moves most: by T − 1 − t.
- one place too far:  column = s + T - 1 - t -> column = s + T - t
  Every row is shifted one place too far, by T − t: off by one. A zero behind each row, where the trick needs it in
  front, does the same. The last row does not move.
- one place too little:  column = s + T - 1 - t -> column = s + T - 2 - t
  Every row is shifted one place too little, by T − 2 − t: off by one. The last row does not move.
- by S − 1 − t instead of T − 1 − t:  column = s + T - 1 - t -> column = s + S - 1 - t
  Row t is shifted by S − 1 − t; it is by T − 1 − t, with the number of queries. So the distance is taken as t − s, as
  if there were no memory, but query t stands at position S − T + t. With S = T nobody would notice.
- to the other side:  column = s + T - 1 - t -> column = s - (T - 1 - t)
  The rows are shifted to the right. They have to move to the left: y[t, s] comes from column s + T − 1 − t.
- by t, round the end:  column = s + T - 1 - t -> column = (s + t) % S
  Row t is rolled by t. It is the last row that stays where it is and the first that moves most: by T − 1 − t.
- by t to the other side, round the end:  column = s + T - 1 - t -> column = (s - t) % S
  Row t is rolled to the right by t, as np.roll does with a positive number. The rows have to move to the left: row t by
  T − 1 − t, the last one not at all.
- to the other side, round the end:  column = s + T - 1 - t -> column = (s - (T - 1 - t)) % S
  The rows are rolled to the right. They have to move to the left: y[t, s] comes from column s + T − 1 − t.
- every row by the same:  column = s + T - 1 - t -> column = s + T - 1
  All rows are shifted by T − 1. Each row moves one place less than the row above it: T − 1 − t.
- distances in reverse order:  column = s + T - 1 - t -> column = S - T + t - s
  Column c is taken for the distance c, the order reversed. Column c belongs to the distance S − 1 − c: the farthest
  comes first, distance 0 last.
"""

RELATIVE_SHIFT = Exercise(
    F.relative_shift,
    results=(Result("y", "... T S"),),
    cases=shift_cases,
    answer=relative_shift,
    view=without_future,
    hints=(
        "How far is query t from key s, and in which column of x is that distance?",
        "y[t, s] = x[t, s + T − 1 − t] for every key that is not in the query's future",
        "notebook 10, “Transformer-XL”; Dai et al. 2019, appendix B. Row by row, or with one zero in front of each "
        "row and reshape.",
    ),
    difficulty=2,
    section="Dai et al. 2019, appendix B",
    chapter="Long sequences",
    place=9,
    mistakes=_SHIFT_MISTAKES
    + """
- last numbers left off instead of the first:
    flat = np.concatenate([np.zeros_like(x[..., :1]), x], axis=-1).reshape(*x.shape[:-2], -1)
    return flat[..., : -x.shape[-2]].reshape(x.shape)
  After the rows with their zeros were laid end to end, the last T numbers are left off. It is the first T.
- one row of S left off instead of T:
    flat = np.concatenate([np.zeros_like(x[..., :1]), x], axis=-1).reshape(*x.shape[:-2], -1)
    return flat[..., x.shape[-1] :].reshape(x.shape)
  After the rows with their zeros were laid end to end, S numbers are left off. It is T of them, one zero for each row,
  so that T · S remain; with S ≠ T the reshape fails.
- the column of zeros kept:  return y -> return np.concatenate([np.zeros_like(y[..., :1]), y], axis=-1)
  y is (T, S + 1): the column of zeros that was put in front is still there.
""",
)


# --- relative_shift_backward -----------------------------------------------------------------------------------------


def shift_backward_cases(rng):
    cases = []
    for forward in shift_cases(rng):
        (x,) = forward.arguments
        dy = np.where(_present(*x.shape[-2:]), x, 0)  # hidden keys have the gradient 0
        cases.append(Case(forward.label.replace("x of", "dy of"), (dy,), sizes=forward.sizes))
    return cases


def relative_shift_backward(dy):
    T, S = dy.shape[-2:]
    dx = np.zeros_like(dy)
    for t in range(T):
        for s in range(S):
            column = s + T - 1 - t
            if 0 <= column < S:
                dx[..., t, column] = dy[..., t, s]
    return dx


RELATIVE_SHIFT_BACKWARD = Exercise(
    F.relative_shift_backward,
    results=(Result("dx", "... T S"),),
    cases=shift_backward_cases,
    answer=relative_shift_backward,
    hints=(
        "Where in x did the number at y[t, s] come from?",
        "dx[t, s + T − 1 − t] = dy[t, s], and 0 where nothing came from",
        "notebook 10, “Transformer-XL”; the three steps of the forward in reverse: T zeros in front, cut again, the "
        "first column left off.",
    ),
    difficulty=2,
    section="Dai et al. 2019, appendix B",
    chapter="Long sequences",
    place=10,
    mistakes="""
- not shifted:  column = s + T - 1 - t -> column = s
  Nothing is shifted: dx[t, s] = dy[t, s]. The forward moved y[t, s] there from x[t, s + T − 1 − t].
- shifted once more:  return relative_shift(dy)
  This is the forward shift once more, to the left. The gradient has to go back to where the number came from, to the
  right by T − 1 − t.
- shifted once more, round the end:
    if 0 <= column < S: dx[..., t, column] = dy[..., t, s] -> dx[..., t, s] = dy[..., t, column % S]
  The rows are rolled to the left, as in the forward. The gradient has to go back to where the number came from, to the
  right by T − 1 − t.
- by t instead of T − 1 − t:  column = s + T - 1 - t -> column = s + t
  Row t is shifted back by t. In the forward the last row stayed where it was and the first moved most: by T − 1 − t.
- one place too far back:  column = s + T - 1 - t -> column = s + T - t
  Every row goes back one place too far: off by one. Cutting the column of the padded zeros off at the right end instead
  of the left does this.
- one place too little:  column = s + T - 1 - t -> column = s + T - 2 - t
  Every row goes back one place too little: off by one. It is T − 1 − t, for the last row 0.
- by S − 1 − t instead of T − 1 − t:  column = s + T - 1 - t -> column = s + S - 1 - t
  Row t is shifted back by S − 1 − t; it is by T − 1 − t, with the number of queries. So the distance is taken as t − s,
  as if there were no memory, but query t stands at position S − T + t. With S = T nobody would notice.
- every row by the same:  column = s + T - 1 - t -> column = s + T - 1
  All rows are shifted back by T − 1. Row t moved by T − 1 − t.
- distances in reverse order:  column = s + T - 1 - t -> column = S - T + t - s
  Column c of dx is taken for the distance c, the order reversed. Column c belongs to the distance S − 1 − c.
- zeros behind instead of in front:
    zeros = np.zeros((*dy.shape[:-2], dy.shape[-2]))
    flat = np.concatenate([dy.reshape(*dy.shape[:-2], -1), zeros], axis=-1)
    return flat.reshape(*dy.shape[:-1], dy.shape[-1] + 1)[..., 1:]
  The T zeros for the numbers that were left off are put at the end. In the forward the first T were left off, so the
  zeros belong in front.
- S zeros in front instead of T:
    zeros = np.zeros((*dy.shape[:-2], dy.shape[-1]))
    flat = np.concatenate([zeros, dy.reshape(*dy.shape[:-2], -1)], axis=-1)
    return flat.reshape(*dy.shape[:-1], dy.shape[-1] + 1)[..., 1:]
  S zeros are put in front. The forward left off T numbers, so that T · (S + 1) come together; with S ≠ T the reshape
  fails.
- the column of zeros kept:  return dx -> return np.concatenate([np.zeros_like(dx[..., :1]), dx], axis=-1)
  dx is (T, S + 1): the column of the padded zeros is still there. They are no part of x and need no gradient.
""",
)


# --- relative_attention ----------------------------------------------------------------------------------------------


def _relative_inputs(rng, B, H, T, S, K, K_v):
    shapes = (B, H, T, K), (B, H, S, K), (B, H, S, K_v), (H, S, K), (H, K), (H, K)
    return tuple(rng.normal(size=shape) for shape in shapes)


def _relative_sizes(rng):
    sizes = sizes_without_squares(rng, "B H T K K_v")
    B, H, T, K, K_v = sizes.values()
    return {"B": B, "H": H, "T": T, "S": T + 2 + int(rng.integers(2)), "K": K, "K_v": K_v}


def relative_cases(rng):
    while True:  # S is no other size, and the mask needs a few queries
        sizes = _relative_sizes(rng)
        if sizes["T"] > 2 and len(set(sizes.values())) == 6:
            break
    B, H, T, S = (sizes[letter] for letter in "BHTS")
    plain = _relative_inputs(rng, *sizes.values())
    hidden = rng.random((B, H, T, S)) < 0.3
    hidden[..., 0] = False  # something to see in every row
    empty = hidden.copy()
    empty[0, :, 1] = empty[-1, 0, -1] = True
    padding = np.zeros((B, 1, 1, S), bool)
    padding[0, ..., 1:3] = padding[1, ..., :2] = True
    bias = rng.normal(size=(T, S))
    q, k, *others = plain
    large = *far_apart(rng, q, k), *others

    def of(**other):
        changed = sizes | other
        return _relative_inputs(rng, *changed.values()), changed

    square, square_sizes = of(S=T)
    single, single_sizes = of(T=1)
    heads, heads_sizes = of(H=T)
    same, same_sizes = of(K_v=sizes["K"])
    fewer, fewer_sizes = of(S=T - 1)
    return [
        Case("", plain, sizes=sizes),
        Case("as many keys as queries", square, sizes=square_sizes),
        Case("one query, T = 1", single, sizes=single_sizes),
        Case("a Boolean mask", plain, {"mask": hidden}, sizes),
        Case("a float mask to be added", plain, {"mask": bias}, sizes),
        Case("keys hidden from everyone", plain, {"mask": padding}, sizes),
        extended(Case("rows that are hidden whole", plain, {"mask": empty}, sizes)),
        Case("scores of ±10,000", large, sizes=sizes),
        Case("as many queries as heads", heads, sizes=heads_sizes),
        Case("K_v = K", same, sizes=same_sizes),
        Case("fewer keys than queries", fewer, sizes=fewer_sizes, extended=True, raises="ValueError"),
    ]


def relative_attention(q, k, v, r, content_bias, position_bias, mask=None):
    if k.shape[-2] < q.shape[-2]:
        raise ValueError("there are fewer keys than queries")
    scale = 1 / np.sqrt(q.shape[-1])
    content = (q + content_bias[:, None]) @ np.swapaxes(k, -1, -2)
    distances = (q + position_bias[:, None]) @ np.swapaxes(r, -1, -2)
    scores = (content + relative_shift(distances)) * scale
    scores = masked(scores, mask)
    T, S = scores.shape[-2:]
    present = np.tri(T, S, S - T, dtype=bool)
    scores = np.where(present, scores, -np.inf)
    weights = softmax(scores)
    out = weights @ v
    return out, weights


_IN_THE_SHIFT = re.sub(
    r"^(- .+\n  )",
    r"\1In the shift of the position term: ",
    amended(_SHIFT_MISTAKES, without=["distances in reverse order"]),  # that is R in reverse order
    flags=re.MULTILINE,
)

RELATIVE_ATTENTION = Exercise(
    F.relative_attention,
    results=(Result("out", "B H T K_v"), Result("weights", "B H T S")),
    cases=relative_cases,
    answer=relative_attention,
    hints=(
        "A score has two parts: what the key says and how far away it is. Which bias belongs to each part?",
        "scores = ((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k, −inf in the future and where the mask hides; out = "
        "softmax(scores) V",
        "notebook 10, “Transformer-XL”; Dai et al. 2019, §3.3; relative_shift, and causal_mask(T, S) for the future.",
    ),
    difficulty=3,
    section="Dai et al. 2019, §3.3",
    chapter="Long sequences",
    place=11,
    mistakes="""
- biases swapped:
    q + content_bias -> q + position_bias
    q + position_bias -> q + content_bias
  The two biases are swapped: the content bias u belongs to the term with the keys, (Q + u) Kᵀ, the position bias v to
  the term with the distances, (Q + v) Rᵀ.
- content bias forgotten:  (q + content_bias[:, None]) -> q
  The content bias u is not added to q in the term with the keys, (Q + u) Kᵀ.
- position bias forgotten:  (q + position_bias[:, None]) -> q
  The position bias v is not added to q in the term with the distances, (Q + v) Rᵀ.
- content bias in both terms:  q + position_bias -> q + content_bias
  The content bias u is in both terms. The term with the distances has a bias of its own, (Q + v) Rᵀ.
- position bias in both terms:  q + content_bias -> q + position_bias
  The position bias v is in both terms. The term with the keys has a bias of its own, (Q + u) Kᵀ.
- both biases in both terms:
    q + content_bias[:, None] -> q + (content_bias + position_bias)[:, None]
    q + position_bias[:, None] -> q + (content_bias + position_bias)[:, None]
  Both biases are added to q in both terms: u belongs to (Q + u) Kᵀ alone, v to (Q + v) Rᵀ.
- biases subtracted:
    q + content_bias -> q - content_bias
    q + position_bias -> q - position_bias
  The biases are subtracted from q; they are added.
- biases added along the queries:
    content_bias[:, None] -> content_bias
    position_bias[:, None] -> position_bias
  The biases (H, K) are added as if their first axis were the queries: NumPy aligns axes from the right. They are one
  row a head, content_bias[:, None]. With T ≠ H it crashes.
- r in reverse order:  np.swapaxes(r, -1, -2) -> np.swapaxes(r[:, ::-1], -1, -2)
  R is read in reverse order. Row c of R is the distance S − 1 − c: the farthest first, distance 0 in the last row.
- √d_model instead of √d_k:  np.sqrt(q.shape[-1]) -> np.sqrt(q.shape[1] * q.shape[-1])
  The scores are divided by √d_model = √(H · K). Each head has its own √d_k, q.shape[-1].
"""
    + SCALE_MISTAKES
    + """
- 1/√(2 d_k):  np.sqrt(q.shape[-1]) -> np.sqrt(2 * q.shape[-1])
  The scores are divided by √(2 d_k), since there are two terms. It is √d_k, as in all attention here.
- biases not scaled:
    q + content_bias -> q * scale + content_bias
    q + position_bias -> q * scale + position_bias
    (content + relative_shift(distances)) * scale -> content + relative_shift(distances)
  Only q is scaled, the biases are added behind it: their share lacks the factor 1/√d_k. Scale the scores, ((Q + u) Kᵀ +
  shift((Q + v) Rᵀ)) / √d_k.
- scale only in the content term:
    (content + relative_shift(distances)) * scale -> content * scale + relative_shift(distances)
  Only the term with the keys has the factor 1/√d_k. Both have it: ((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k.
- scale only in the position term:
    (content + relative_shift(distances)) * scale -> content + relative_shift(distances) * scale
  Only the term with the distances has the factor 1/√d_k. Both have it: ((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k.
- position term forgotten:  content + relative_shift(distances) -> content
  The term with the distances, shift((Q + v) Rᵀ), is missing: nothing tells how far away a key is.
- content term forgotten:  content + relative_shift(distances) -> relative_shift(distances)
  The term with the keys, (Q + u) Kᵀ, is missing: nothing depends on the content of a key.
- position term subtracted:  content + relative_shift -> content - relative_shift
  The term with the distances is subtracted; a sign is wrong.
- k of the first sequence for r:  np.swapaxes(r, -1, -2) -> np.swapaxes(k[0], -1, -2)
  The position term is made with keys instead of R: it is shift((Q + v) Rᵀ).
"""
    + _IN_THE_SHIFT
    + """
- future not hidden:
    scores = np.where(present, scores, -np.inf) -> pass
    in relative_shift:
        T, S = x.shape[-2:]
        flat = np.concatenate([np.zeros_like(x[..., :1]), x], axis=-1).reshape(*x.shape[:-2], -1)
        return flat[..., T:].reshape(x.shape)
  The future is not hidden: a key behind the query has no distance, and what the shift leaves there means nothing. Set
  these scores to −inf, even without a mask.
- future not hidden, position term 0 there:  scores = np.where(present, scores, -np.inf) -> pass
  The future is not hidden: a key behind the query has no distance. That its position term is 0 does not hide it; set
  these scores to −inf, even without a mask.
- future not hidden, distances rolled round:
    scores = np.where(present, scores, -np.inf) -> pass
    column = s + T - 1 - t -> column = (s + T - 1 - t) % S
  The future is not hidden: a key behind the query has no distance, and what the roll brings there belongs to keys far
  in the past. Set these scores to −inf, even without a mask.
- future hidden as if S = T:  np.tri(T, S, S - T, dtype=bool) -> np.tri(T, S, dtype=bool)
  The future is hidden as if query t stood at position t. The queries are the last T of S positions: hidden is s > t +
  (S − T), as in causal_mask(T, S).
- future hidden after the softmax:
    scores = np.where(present, scores, -np.inf) -> pass
    softmax(scores) -> np.where(present, softmax(scores), 0)
  The future is set to 0 after the softmax: it was in the sum, and the weights add to less than 1. Hide first (−inf),
  then softmax.
- past hidden instead of the future:  np.tri(T, S, S - T, dtype=bool) -> ~np.tri(T, S, S - T - 1, dtype=bool)
  The past is hidden instead of the future: the mask is the wrong way round.
- the token itself hidden:  np.tri(T, S, S - T, dtype=bool) -> np.tri(T, S, S - T - 1, dtype=bool)
  The token itself is hidden too, off by one: distance 0 is seen, and only later keys are the future.
"""
    + amended(MASK_MISTAKES, without=["only the first of several masks"])
    + """
- mask after the softmax:
    scores = masked(scores, mask) -> pass
    weights = softmax(scores) ->
        weights = softmax(scores)
        if mask is not None and mask.dtype == bool:
            weights = weights * ~mask
  The mask is applied after the softmax: hidden keys were in the sum, and the weights add to less than 1. Hide first
  (−inf), then softmax.
- −1e9 for −inf:
    mask, -np.inf -> mask, -1e9
    present, scores, -np.inf -> present, scores, -1e9
  Hidden scores are set to −1e9 instead of −inf. A query that may see nothing then has equal scores and gets a mean of
  values, those of the future too; its weights and output are 0.
- −1e9 added for −inf:  np.where(mask, -np.inf, scores) -> scores - 1e9 * mask
  −1e9 is added to hidden scores. In a row that is hidden whole that changes nothing, and the query sees all; its
  weights and output are 0. Set hidden scores to −inf.
- NaN where all is hidden:  x - largest -> x - x.max(axis=axis, keepdims=True)
  A query that may see nothing gets NaN: −inf − (−inf), or 0/0. Its weights and its output are 0.
- softmax over the queries:  softmax(scores) -> softmax(scores, axis=-2)
  The softmax runs over the queries instead of the keys, axis −2 instead of −1: the weights of a query do not add to 1.
- not divided by the sum:  y / np.where(total == 0, 1, total) -> y
  The exponentials are not divided by their sum: the weights of a query do not add to 1.
- largest score not subtracted:
    x - largest -> x
    np.where(total == 0, 1, total) -> total
  The largest score is not subtracted before the exponential: exp of a large score overflows, and inf/inf is NaN.
- keys in place of the values:  weights @ v -> weights @ k
  The weights multiply the keys K instead of the values V: out = A V.
""",
)


# --- relative_attention_backward -------------------------------------------------------------------------------------


def relative_backward_cases(rng):
    cases = []
    for forward in relative_cases(rng):
        if forward.raises or "10,000" in forward.label:  # all weights 0 or 1 there: no gradient
            continue
        out, weights = F.relative_attention(*forward.arguments, **forward.options)
        arguments = rng.normal(size=out.shape), *forward.arguments, weights
        cases.append(Case(forward.label, arguments, sizes=forward.sizes))
    return cases


def relative_attention_backward(dout, q, k, v, r, content_bias, position_bias, weights):
    scale = 1 / np.sqrt(q.shape[-1])
    dweights = dout @ np.swapaxes(v, -1, -2)
    dscores = softmax_backward(dweights, weights) * scale
    ddistances = relative_shift_backward(dscores)
    dq_content, dq_position = dscores @ k, ddistances @ r
    dq = dq_content + dq_position
    dk = np.swapaxes(dscores, -1, -2) @ (q + content_bias[:, None])
    dr = (np.swapaxes(ddistances, -1, -2) @ (q + position_bias[:, None])).sum(axis=0)
    dv = np.swapaxes(weights, -1, -2) @ dout
    dcontent_bias = dq_content.sum(axis=(0, 2))
    dposition_bias = dq_position.sum(axis=(0, 2))
    return dq, dk, dv, dr, dcontent_bias, dposition_bias


DSCORES_SCALE_MISTAKES = """
- 1/d_k instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> q.shape[-1]
  The factor is 1/d_k instead of 1/√d_k: the square root is missing, or the scale is there twice.
- multiplied by √d_k:  1 / np.sqrt(q.shape[-1]) -> np.sqrt(q.shape[-1])
  dscores is multiplied by √d_k (sqrt(K)). Divide by it.
- √ of the values' size:  np.sqrt(q.shape[-1]) -> np.sqrt(v.shape[-1])
  The scale is 1/√d_v, with the size of the values. The scores were divided by √d_k, q.shape[-1].
"""

SOFTMAX_BACKWARD_MISTAKES = """
- sum of the softmax missing:  y * (dy - total) -> y * dy
  The backward of the softmax is A · (dA − Σ dA · A) along the keys; here the sum is missing.
- sum of the softmax added:  dy - total -> dy + total
  In the backward of the softmax the sum Σ dA · A is added. Subtract it: a sign is wrong.
- mean instead of the sum:  np.sum -> np.mean
  The backward of the softmax uses a mean of dA · A. It must be the sum over the keys.
- sum not weighted by A:  np.sum(dy * y -> np.sum(dy
  In the backward of the softmax the sum is Σ dA instead of Σ dA · A: each dA counts with its weight.
- sum not multiplied by A:  y * (dy - total) -> y * dy - total
  This is A · dA − Σ dA · A: the factor A stands before both terms, A · (dA − Σ dA · A). A bracket is missing.
- A missing before the bracket:  y * (dy - total) -> dy - total
  The factor A in front is missing: dscores = A · (dA − Σ dA · A).
- only the diagonal of the softmax:  y * (dy - total) -> dy * y * (1 - y)
  This is dA · A · (1 − A), the diagonal of the softmax's Jacobian alone. Every score is in the sum under every weight:
  the off-diagonal terms −Aᵢ Aⱼ are missing.
- softmax left out:  y * (dy - total) -> dy
  The backward of the softmax is left out: dA is used as if it were the gradient of the scores.
"""

RELATIVE_ATTENTION_BACKWARD = Exercise(
    F.relative_attention_backward,
    results=(
        Result("dq", "B H T K"),
        Result("dk", "B H S K"),
        Result("dv", "B H S K_v"),
        Result("dr", "H S K"),
        Result("dcontent_bias", "H K"),
        Result("dposition_bias", "H K"),
    ),
    cases=relative_backward_cases,
    answer=relative_attention_backward,
    hints=(
        "q is in two terms of each score. Which gradient comes back through each, and who shares R and the biases?",
        "ddistances = relative_shift_backward(dscores); dQ = dscores K + ddistances R, dK = dscoresᵀ (Q + u), dR = Σ "
        "ddistancesᵀ (Q + v), dV = Aᵀ dout; du, dv: the two terms of dQ, summed",
        "notebook 10, “Transformer-XL”, and 06 for attention's backward; relative_shift_backward. R is shared by the "
        "batch, the biases by batch and queries.",
    ),
    difficulty=3,
    section="Dai et al. 2019, §3.3",
    chapter="Long sequences",
    place=12,
    mistakes="""
- dQ without the position term:  dq_content + dq_position -> dq_content
  dQ lacks the position term: q went into both terms of the scores, so dQ = dscores K + ddistances R.
- dQ without the content term:  dq_content + dq_position -> dq_position
  dQ lacks the content term: q went into both terms of the scores, so dQ = dscores K + ddistances R.
- biases swapped:
    q + content_bias -> q + position_bias
    q + position_bias -> q + content_bias
  The two biases are swapped: dK takes q with the content bias, dscoresᵀ (Q + u), and dR takes q with the position bias,
  ddistancesᵀ (Q + v).
- content bias forgotten:  (q + content_bias[:, None]) -> q
  In dK the content bias is missing: the keys met Q + u, so dK = dscoresᵀ (Q + u).
- position bias forgotten:  (q + position_bias[:, None]) -> q
  In dR the position bias is missing: R met Q + v, so dR = Σ ddistancesᵀ (Q + v).
- content bias in both terms:  q + position_bias -> q + content_bias
  dR contains the content bias u. It needs the position bias: dR = Σ ddistancesᵀ (Q + v).
- position bias in both terms:  q + content_bias -> q + position_bias
  dK contains the position bias v. It needs the content bias: dK = dscoresᵀ (Q + u).
- both biases in both terms:
    q + content_bias[:, None] -> q + (content_bias + position_bias)[:, None]
    q + position_bias[:, None] -> q + (content_bias + position_bias)[:, None]
  Both biases are added to q in dK and dR: dK has (Q + u), dR has (Q + v).
- biases subtracted:
    q + content_bias -> q - content_bias
    q + position_bias -> q - position_bias
  The biases are subtracted from q in dK and dR; in the forward they were added.
- biases added along the queries:
    content_bias[:, None] -> content_bias
    position_bias[:, None] -> position_bias
  The biases (H, K) are added as if their first axis were the queries: NumPy aligns axes from the right. They are one
  row a head, content_bias[:, None]. With T ≠ H it crashes.
- r in reverse order:
    ddistances @ r -> ddistances @ r[:, ::-1]
    ).sum(axis=0) -> ).sum(axis=0)[:, ::-1]
  R is used in reverse order. Row c of R is the distance S − 1 − c: the farthest first, distance 0 in the last row.
- not shifted:  relative_shift_backward(dscores) -> dscores
  The shift is not undone: dscores has a column for each key, and R and dR a row for each distance. First ddistances =
  relative_shift_backward(dscores).
- dR without the shift:  np.swapaxes(ddistances, -1, -2) -> np.swapaxes(dscores, -1, -2)
  dR is made from dscores, whose columns are keys. Its rows are distances: dR = Σ ddistancesᵀ (Q + v).
- position term of dQ without the shift:  dq_content + dq_position -> dq_content + dscores @ r
  The position term of dQ is dscores R, whose columns are keys. The rows of R are distances: ddistances R.
- shifted forward once more:  relative_shift_backward(dscores) -> relative_shift(dscores)
  dscores is shifted forward once more, to the left. Back is to the right: relative_shift_backward, not relative_shift.
- by t instead of T − 1 − t:  column = s + T - 1 - t -> column = s + t
  Row t is shifted back by t; it is by T − 1 − t: the last row did not move.
- by S − 1 − t instead of T − 1 − t:  column = s + T - 1 - t -> column = s + S - 1 - t
  The distance of query t and key s is taken as t − s, as if there were no memory. Query t stands at position S − T + t:
  row t is shifted back by T − 1 − t, not by S − 1 − t.
- one place too far:  column = s + T - 1 - t -> column = s + T - t
  The shift back is off by one: row t goes by T − 1 − t, the last row not at all.
- one place too little:  column = s + T - 1 - t -> column = s + T - 2 - t
  The shift back is off by one, too little: row t goes by T − 1 − t, the last row not at all.
- no 1/√d_k:  1 / np.sqrt(q.shape[-1]) -> 1
  The scale is missing: the scores were divided by √d_k (sqrt(K)), so dscores has the factor 1/√d_k too.
"""
    + DSCORES_SCALE_MISTAKES
    + """
- √d_model instead of √d_k:  np.sqrt(q.shape[-1]) -> np.sqrt(q.shape[1] * q.shape[-1])
  The factor is 1/√d_model = 1/√(H · K). Each head has its own √d_k, q.shape[-1].
- scale only in the content term:  relative_shift_backward(dscores) -> relative_shift_backward(dscores / scale)
  The factor 1/√d_k is missing in what goes back to the position term: ddistances needs it as well as dscores.
- scale only in the position term:
    softmax_backward(dweights, weights) * scale -> softmax_backward(dweights, weights)
    relative_shift_backward(dscores) -> relative_shift_backward(dscores) * scale
  The factor 1/√d_k is missing in what goes back to the content term: dscores needs it as well as ddistances.
"""
    + SOFTMAX_BACKWARD_MISTAKES
    + """
- Q and K swapped:
    dscores @ k -> dscores @ q
    q + content_bias -> k + content_bias
  dQ and dK are made with the wrong partner: dQ has dscores K, dK is dscoresᵀ (Q + u). It shows no error where there are
  as many keys as queries.
- dscores not transposed:
    np.swapaxes(dscores, -1, -2) -> dscores
    np.swapaxes(ddistances, -1, -2) -> ddistances
  In dK or dR the gradient is not transposed: dK = dscoresᵀ (Q + u), dR = Σ ddistancesᵀ (Q + v). It shows no error where
  there are as many keys as queries.
- A not transposed:  np.swapaxes(weights, -1, -2) -> weights
  dV is A dout; it is Aᵀ dout: a row of A is a query, a row of dV is a key. It shows no error where there are as many
  keys as queries.
- dscores in place of A in dV:  np.swapaxes(weights, -1, -2) -> np.swapaxes(dscores, -1, -2)
  dV is made with dscoresᵀ instead of Aᵀ: out = A V, so dV = Aᵀ dout.
- dR not summed over the batch:  ).sum(axis=0) -> )
  dr keeps an axis of B: it is not summed over the batch. All sequences share R, (H, S, K).
- dR of the last sequence only:  ).sum(axis=0) -> )[-1]
  dr is that of the last sequence only, overwritten instead of added. All sequences share R: dR is the sum over the
  batch.
- bias gradients swapped:
    dq_content.sum -> dq_position.sum
    dq_position.sum -> dq_content.sum
  The two bias gradients are swapped: dcontent_bias is the sum of dscores K, dposition_bias that of ddistances R.
- bias gradients from the whole dQ:
    dq_content.sum -> dq.sum
    dq_position.sum -> dq.sum
  Both bias gradients are the sum of the whole dQ. u was in the content term only, so it gets Σ dscores K; v was in the
  position term only and gets Σ ddistances R.
- bias gradients not summed over the queries:  every axis=(0, 2) -> axis=0
  The bias gradients keep an axis of T: they are not summed over the queries. A head has one bias for all queries.
- bias gradients not summed over the batch:  every axis=(0, 2) -> axis=2
  The bias gradients keep an axis of B: they are not summed over the batch. All sequences share the biases.
- bias gradients not summed at all:
    dq_content.sum(axis=(0, 2)) -> dq_content
    dq_position.sum(axis=(0, 2)) -> dq_position
  The bias gradients are (B, H, T, K), not summed. A head has one bias: they are sums over batch and queries, (H, K).
- bias gradients summed over heads too:  every axis=(0, 2) -> axis=(0, 1, 2)
  The bias gradients are summed over the heads too. Each head has its own biases, (H, K).
- mean over the batch:
    ).sum(axis=0) -> ).mean(axis=0)
    every .sum(axis=(0, 2)) -> .sum(axis=2).mean(axis=0)
  A mean over the batch is taken, too small by the factor 1/B. A parameter that all sequences share gets the sum: if the
  loss is a mean, that is already in dout.
- mean over the queries:  every .sum(axis=(0, 2)) -> .sum(axis=0).mean(axis=1)
  The bias gradients are a mean over the queries, too small by the factor 1/T. They are sums over batch and queries.
""",
)


EXERCISES = [RELATIVE_SHIFT, RELATIVE_SHIFT_BACKWARD, RELATIVE_ATTENTION, RELATIVE_ATTENTION_BACKWARD]
