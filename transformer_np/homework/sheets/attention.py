"""Attention: the scores, and the weighted values."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes, extended
from ..notes import amended
from .softmax import softmax

# --- scores and masks, as attention_scores and scaled_dot_product_attention share them -------------------------------


def attention_inputs(rng, sizes, axes=4):
    """q, k and v of these sizes, with the leading axes B and H, B alone, or none."""
    lead = [sizes["B"], sizes["H"]][: axes - 2]
    T, S, K, K_v = (sizes[letter] for letter in ("T", "S", "K", "K_v"))
    return rng.normal(size=(*lead, T, K)), rng.normal(size=(*lead, S, K)), rng.normal(size=(*lead, S, K_v))


def some_hidden(rng, *shape):
    """A mask that hides something in every row and leaves something to see, not the same in every row."""
    mask = rng.random(shape) < 0.4
    hidden, seen = rng.permutation(shape[-1])[:2]
    mask[..., hidden], mask[..., seen] = True, False
    if len(shape) > 1 and shape[-2] > 1:
        mask[..., 0, [hidden, seen]] = False, True
    return mask


def attention_cases(rng, only_scores):
    """The calls that try attention_scores (q, k, mask), or attention (q, k, v, mask)."""
    sizes = draw_sizes(rng, "B H T S K K_v", least=3)
    B, H, T, S, K, K_v = sizes.values()
    n = T + 1
    equal = dict(sizes, T=n, S=n, K=n, K_v=n)
    wide = dict(sizes, K=K + 7)

    def call(label, q, k, v, mask=None, sizes=sizes):
        return Case(label, (q, k) if only_scores else (q, k, v), {} if mask is None else {"mask": mask}, sizes)

    def case(label, mask=None, axes=4, sizes=sizes):
        return call(label, *attention_inputs(rng, sizes, axes), mask, sizes)

    hidden, whole_row = some_hidden(rng, T, S), some_hidden(rng, T, S)
    whole_row[1] = True
    padding = some_hidden(rng, B, 1, 1, S)

    # scores of exactly a · b: in every row one is far above the others, in float32 too
    steps = rng.permuted(np.tile(np.linspace(-1, 1, S), (B, H, 1)), axis=-1)[..., None]  # (B, H, S, 1)
    heights = 1e4 / np.arange(1, T + 1)[:, None] * rng.choice([-1, 1], (B, H, T, 1))
    direction = rng.choice([-1.0, 1.0], K)
    far = heights * direction, steps * direction * K**-0.5, rng.normal(size=(B, H, S, K_v))

    # a hidden key whose score, 2000 and more, would leave nothing to the others
    high, high_mask = attention_inputs(rng, sizes), padding.copy()
    high[0][..., 0], high[1][..., 0, 0], high_mask[..., 0], high_mask[..., 1] = 1, 2000 * K**0.5, True, False

    return [
        case(""),
        case("a Boolean mask (T, S)", hidden),
        case("a Boolean mask (B, 1, 1, S)", padding),
        extended(case("a finite float mask", rng.normal(size=(T, S)))),
        extended(case("a float mask of 0 and −inf", np.where(some_hidden(rng, T, S), -np.inf, 0))),
        extended(case("a float mask, finite and −inf", np.where(padding, -np.inf, rng.normal(size=(H, T, S))))),
        extended(case("a tuple of masks", (padding, rng.normal(size=(T, S)), hidden))),
        case("inputs (T, K) and (S, K)", some_hidden(rng, T, S), axes=2, sizes=wide),
        case("inputs (B, T, K) and (B, S, K)", axes=3),
        case("all sizes equal", some_hidden(rng, n, n), sizes=equal),
        case("all sizes equal and a mask (B, 1, 1, S)", some_hidden(rng, B, 1, 1, n), sizes=equal),
        case("inputs (T, K) and all sizes equal", axes=2, sizes=equal),
        call("scores of ±10,000", *far),
        extended(case("a row hidden whole", whole_row)),
        extended(case("a row hidden whole by −inf", np.where(whole_row, -np.inf, rng.normal(size=(T, S))))),
        *([] if only_scores else [call("a hidden score far above all others", *high, high_mask)]),
    ]


def masked(scores, mask):
    if isinstance(mask, tuple):
        for part in mask:
            scores = masked(scores, part)
        return scores
    if mask is None:
        return scores
    if mask.dtype == bool:
        return np.where(mask, -np.inf, scores)
    return scores + mask


SCALE_MISTAKES = """
- no 1/√d_k:  1 / np.sqrt(q.shape[-1]) -> 1
  The scale is missing: the scores are not divided by √d_k (`np.sqrt(q.shape[-1])`). Without it their variance grows
  with d_k, the softmax saturates, and its gradient dies.
- 1/d_k instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> q.shape[-1]
  The scores are divided by d_k instead of √d_k: the square root (sqrt) is missing, or the scale 1/√d_k is applied
  twice. The scores come out too small, and the weights too even.
- 1/d_k² instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> q.shape[-1] ** 2
  The scores are divided by d_k², the square, instead of by the square root √d_k (sqrt).
- 1/√(d_k T) instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> np.sqrt(q.shape[-1] * q.shape[-2])
  The scale is 1/√(d_k · T): the length has no part in it. It is 1/√d_k (sqrt), from the last axis of q.
- multiplied by √d_k:  1 / np.sqrt(q.shape[-1]) -> np.sqrt(q.shape[-1])
  The scores are multiplied by √d_k instead of divided by it.
- multiplied by d_k:  1 / np.sqrt(q.shape[-1]) -> q.shape[-1]
  The scores are multiplied by d_k. They have to be divided by √d_k.
- 1/√d_model instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> np.sqrt(np.prod(q.shape[1:-2]) * q.shape[-1])
  The scale is 1/√d_model = 1/√(H · d_k), the width of all heads together. Each dot product is over the d_k features of
  one head, so it is 1/√d_k: the last axis of q.
- 1/√S instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> np.sqrt(k.shape[-2])
  The scale is 1/√S, from the number of keys (`k.shape[-2]`), instead of 1/√d_k. The dot product has d_k summands: the
  last axis of q and k.
- 1/√T instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> np.sqrt(q.shape[-2])
  The scale is 1/√T, from the number of queries (`q.shape[-2]`), instead of 1/√d_k. The dot product has d_k summands:
  the last axis of q and k.
- 1/√B instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> np.sqrt(q.shape[0])
  The scale is 1/√ of the first axis (`q.shape[0]`, or `len(q)`) instead of 1/√d_k, the last axis of q.
- 1/√H instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> np.sqrt(np.prod(q.shape[1:-2]))
  The scale is 1/√H, from the number of heads (`q.shape[1]`), instead of 1/√d_k, the last axis of q.
- 1/S instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> k.shape[-2]
  The scores are divided by S, the number of keys, as if a mean over the keys were meant. The scale is 1/√d_k (sqrt),
  from the last axis of q.
- 1/T instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> q.shape[-2]
  The scores are divided by T, the number of queries. The scale is 1/√d_k (sqrt), from the last axis of q.
- 1/√(d_k/H) instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> np.sqrt(q.shape[-1] / np.prod(q.shape[1:-2]))
  The scale is 1/√(d_k/H): the last axis of q is divided by the number of heads once more. It is d_k already, the width
  of one head: 1/√d_k.
- fourth root of d_k:  np.sqrt(q.shape[-1]) -> q.shape[-1] ** 0.25
  The scale is the fourth root, 1/√√d_k, instead of 1/√d_k: the square root (sqrt) is taken twice, or only one of q and
  k is scaled by it.
- √d_k rounded down:  np.sqrt(q.shape[-1]) -> int(np.sqrt(q.shape[-1]))
  √d_k is rounded to a whole number, by `int` or `//`. It is not whole unless d_k is a square.
- always 1/8:  np.sqrt(q.shape[-1]) -> 8
  The scores are always divided by 8, which is √64 and right for d_k = 64 only. Divide by √d_k, from `q.shape[-1]`.
- always 1/2:  np.sqrt(q.shape[-1]) -> 2
  The scores are always divided by 2, which is √4 and right for d_k = 4 only, the lecture's example. Divide by √d_k,
  from `q.shape[-1]`.
"""

PRODUCT_MISTAKES = """
- K Qᵀ instead of Q Kᵀ:  q @ np.swapaxes(k, -1, -2) -> k @ np.swapaxes(q, -1, -2)
  The product is K Qᵀ instead of Q Kᵀ: the scores are transposed, one row per key. Rows must be queries, (..., T, S):
  each query chooses among the keys.
- K untransposed:  np.swapaxes(k, -1, -2) -> k
  The product is Q K, without the transpose of K. Each score is the dot product of a query with a key, two rows, so the
  last two axes of K have to be swapped: Q Kᵀ.
- Q with itself:  np.swapaxes(k, -1, -2) -> np.swapaxes(q, -1, -2)
  The product is Q Qᵀ instead of Q Kᵀ: the keys are not used.
- K with itself:  q @ np.swapaxes -> k @ np.swapaxes
  The product is K Kᵀ instead of Q Kᵀ: the queries are not used.
- K reshaped, not transposed:  np.swapaxes(k, -1, -2) -> k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])
  K is reshaped to (..., K, S) instead of transposed. The shape is right, but reshape keeps the order in memory and
  tears the keys apart: swap the last two axes, `np.swapaxes(k, -1, -2)`.
- cosine of q and k:
    scores = q @ ->
        q = q / np.linalg.norm(q, axis=-1, keepdims=True)
        k = k / np.linalg.norm(k, axis=-1, keepdims=True)
        scores = q @
  Queries and keys are divided by their norms, so that the scores are cosines. Here the dot product is taken as it is, Q
  Kᵀ/√d_k: their lengths count.
- scores with the wrong sign:  q @ np.swapaxes -> -q @ np.swapaxes
  The scores have the wrong sign: the key that fits best has the smallest one.
- k.T of more than two axes:  np.swapaxes(k, -1, -2) -> k.T
  It works for matrices only: with more axes `k.T` reverses all of them, heads and batch too, and `np.dot` does not work
  head by head. Swap the last two axes alone, `np.swapaxes(k, -1, -2)`, and multiply with `@`.
- written for four axes only:  np.swapaxes(k, -1, -2) -> k.transpose(0, 1, 3, 2)
  It works for inputs (B, H, T, K) only. The inputs may have any leading axes, or none: name the axes from the end, -1
  and -2, or write `...` in einsum.
- written for three axes only:  np.swapaxes(k, -1, -2) -> k.transpose(0, 2, 1)
  It works for inputs (B, T, K) only. The inputs may have any leading axes, or none: name the axes from the end, -1 and
  -2, or write `...` in einsum.
"""

MASK_MISTAKES = """
- mask ignored:  in masked: return scores
  The mask is not used: hidden keys keep their scores.
- Boolean mask ignored:  np.where(mask, -np.inf, scores) -> scores
  A Boolean mask is not used, only a float one. Where it is True, the score must become −inf.
- only the first of several masks:  in masked: for part in mask: -> for part in mask[:1]:
  Only the first mask of a tuple is applied. Apply all of them: go through the tuple.
- mask inverted:  np.where(mask, -np.inf -> np.where(~mask, -np.inf
  The mask is inverted: it hides where the mask is False and shows where it is True. True means hidden.
- mask transposed:
    if mask.dtype == bool: ->
        mask = np.swapaxes(mask, -1, -2)
        if mask.dtype == bool:
  The mask is on the wrong axis: it is transposed, and hides queries where it should hide keys. The mask lies like the
  scores, (..., T, S): queries are rows, keys are columns.
- Boolean mask added as 1/0:  np.where(mask, -np.inf, scores) -> scores + mask
  The Boolean mask is added to the scores, as the numbers 1 and 0: this raises hidden scores by 1. True must become
  −inf.
- Boolean mask subtracted as 1/0:  np.where(mask, -np.inf, scores) -> scores - mask
  The Boolean mask is subtracted from the scores, as the numbers 1 and 0: this lowers hidden scores by 1 and hides
  nothing. True must become −inf.
- Boolean mask multiplied as 1/0:  np.where(mask, -np.inf, scores) -> scores * mask
  The scores are multiplied by the Boolean mask, as 1 and 0: hidden scores stay, and those to be seen become 0. True
  must become −inf, and False leave the score as it is.
- hidden scores set to 0:  mask, -np.inf -> mask, 0
  Hidden scores are set to 0 instead of −inf. e⁰ is 1, not 0: a hidden key with score 0 still gets weight, before all
  keys with a negative score.
- hidden scores NaN:  mask, -np.inf -> mask, np.nan
  Hidden scores become NaN instead of −inf. NaN makes every sum that it is in NaN; e^(−inf) is 0.
- only mask[0] used:
    if mask.dtype == bool: ->
        mask = mask[0]
        if mask.dtype == bool:
  Only mask[0] is used, for all: the first row of the mask stands for every query, or the first sentence's padding for
  the whole batch.
- hidden scores +inf:  mask, -np.inf -> mask, np.inf
  The sign is wrong: hidden scores become +inf instead of −inf.
- −inf times the mask:  np.where(mask, -np.inf, scores) -> scores + mask * -np.inf
  The mask is multiplied by −inf, and 0 · (−inf) is NaN, not 0: every score that should stay becomes NaN. Choose instead
  of multiplying: `np.where`.
- float mask ignored:  scores + mask -> scores
  A float mask is not used, only a Boolean one. A float mask is the lecture's M and has to be added to the scores.
- float mask taken for Boolean:  scores + mask -> np.where(mask.astype(bool), -np.inf, scores)
  A float mask is used as if it were Boolean: each number other than 0 hides. A float mask, the lecture's M, has to be
  added to the scores: a finite number only raises or lowers one.
- only −inf in a float mask:  scores + mask -> np.where(np.isinf(mask), -np.inf, scores)
  Only the −inf of a float mask are used, and its finite numbers are lost. Add the float mask to the scores.
- negative numbers in a float mask hide:  scores + mask -> np.where(mask < 0, -np.inf, scores)
  A float mask hides wherever it is negative. It has to be added to the scores: only −inf hides, a finite number raises
  or lowers a score.
- float mask multiplied:  scores + mask -> scores * mask
  A float mask is multiplied with the scores. It is the lecture's M and has to be added: 0 leaves a score as it is, −inf
  hides it.
- float mask subtracted:  scores + mask -> scores - mask
  A float mask is subtracted from the scores. It has to be added: its −inf must make a score −inf.
- float mask times −1e9:  scores + mask -> scores + mask * -1e9
  A float mask is multiplied by −1e9 before it is added, as if it held 1 and 0. A float mask holds what must be added to
  the scores, as it is.
- mask added before the scale:
    @ np.swapaxes(k, -1, -2) * scale -> @ np.swapaxes(k, -1, -2)
    = masked(scores, mask) -> = masked(scores, mask) * scale
  The float mask is added before the scale and so divided by √d_k too. M is added to the scaled scores, Q Kᵀ/√d_k + M.
  With 0 and −inf alone it makes no difference, with finite numbers it does.
- always causal:
    if mask is None: ->
        T, S = scores.shape[-2:]
        scores = np.where(np.tri(T, S, S - T), scores, -np.inf)
        if mask is None:
  The future is hidden in any case, mask or no mask. Only the mask says what is hidden: encoders and cross-attention see
  every key.
- always causal, aligned to the start:
    if mask is None: ->
        scores = np.where(np.tri(*scores.shape[-2:]), scores, -np.inf)
        if mask is None:
  The future is hidden in any case, mask or no mask, and key s counts as the future of query t where s > t. Only the
  mask says what is hidden: encoders and cross-attention see every key.
- float mask added twice:  scores + mask -> scores + 2 * mask
  A float mask is added to the scores twice. Once is enough.
- scores[mask] without broadcasting:
    in masked:
        if mask is not None:
            scores[mask] = -np.inf
        return scores
  `scores[mask] = …` needs a Boolean mask of just the shape of the scores. The mask only has to broadcast, (T, S) or (B,
  1, 1, S), and may be float: `np.where` broadcasts.
"""

# --- attention_scores ------------------------------------------------------------------------------------------------


def attention_scores(q, k, mask=None):
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ np.swapaxes(k, -1, -2) * scale
    scores = masked(scores, mask)
    return scores


_FINITE = {
    "−100": "-100",
    "−1000": "-1000",
    "−1e4": "-1e4",
    "−1e5": "-1e5",
    "−1e6": "-1e6",
    "−1e8": "-1e8",
    "−1e9": "-1e9",
    "−1e10": "-1e10",
    "−1e20": "-1e20",
    "−1e30": "-1e30",
    "the smallest float32": "np.finfo(np.float32).min",
    "the smallest finite number": "np.finfo(float).min",
}
_FINITE_MISTAKES = "".join(
    f"""
- {number} for −inf:  mask, -np.inf -> mask, {code}
  Hidden scores are set to {number} instead of −inf, or lowered by it. A finite number does not hide for certain: in a
  row hidden whole softmax takes it for a score like any other. It must be −inf (`-np.inf`).
"""
    for number, code in _FINITE.items()
)

ATTENTION_SCORES = Exercise(
    F.attention_scores,
    results=(Result("scores", "... T S"),),
    cases=lambda rng: attention_cases(rng, only_scores=True),
    answer=attention_scores,
    hints=(
        "A query and a key are two rows. Which operation says how well they fit, and how does its size grow with d_k?",
        "scores = Q Kᵀ / √d_k, then −∞ where a Boolean mask is True, or + M for a float mask",
        "notebook 02, step 3, and notebook 05, section 1; np.swapaxes, `@`, np.where, and mask.dtype to tell the masks "
        "apart.",
    ),
    difficulty=2,
    section="§4 step 3",
    chapter="Self-attention",
    place=2,
    mistakes=SCALE_MISTAKES
    + PRODUCT_MISTAKES
    + """
- np.dot over all axes:  q @ np.swapaxes(k, -1, -2) -> np.dot(q, np.swapaxes(k, -1, -2))
  `np.dot` (or `np.inner`) multiplies every matrix of the one stack with every matrix of the other: each head with each
  other head and each row of the batch with each other. `@` multiplies them pair by pair.
- maximum subtracted:
    scores = masked(scores, mask) ->
        scores = masked(scores, mask)
        largest = scores.max(axis=-1, keepdims=True)
        scores = scores - np.where(np.isfinite(largest), largest, 0)
  The largest score of each row is already subtracted. That is part of softmax; the scores are Q Kᵀ/√d_k as they are,
  with the mask.
- softmax taken already:  = masked(scores, mask) -> = softmax(masked(scores, mask))
  These are the weights: softmax is applied already. attention_scores returns what softmax is applied to.
- exponential taken already:  = masked(scores, mask) -> = np.exp(masked(scores, mask))
  The exponential of the scores is returned instead of the scores.
- softmax before the mask:  = masked(scores, mask) -> = masked(softmax(scores), mask)
  Softmax is applied, and the mask after it. attention_scores returns the scores before softmax, with the mask applied.
"""
    + MASK_MISTAKES
    + _FINITE_MISTAKES,
)


# --- scaled_dot_product_attention ------------------------------------------------------------------------------------


def scaled_dot_product_attention(q, k, v, mask=None):
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ np.swapaxes(k, -1, -2) * scale
    scores = masked(scores, mask)
    weights = softmax(scores)
    out = weights @ v
    return out, weights


_ATTENTION_SCALES = """
- 1/√d_v instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> np.sqrt(v.shape[-1])
  The scale is 1/√d_v, from the width of the values (`v.shape[-1]`), instead of 1/√d_k, the width of queries and keys
  (`q.shape[-1]`).
- scale after the softmax:
    @ np.swapaxes(k, -1, -2) * scale -> @ np.swapaxes(k, -1, -2)
    softmax(scores) -> softmax(scores) * scale
  The scale 1/√d_k is applied after the softmax: the weights are divided by it, and no longer add to 1. It belongs to
  the scores, before the softmax.
"""
ATTENTION_MISTAKES = (
    """
- output scaled by 1/√d_k:  weights @ v -> weights @ v * scale
  The output is divided by √d_k as well. The scale belongs to the scores only.
"""
    + PRODUCT_MISTAKES
    + """
- softmax over the queries:  softmax(scores) -> softmax(scores, axis=-2)
  The softmax runs over the queries (axis −2), so that columns add to 1. The weights of each query must add to 1: it
  runs over the keys, the last axis (axis=-1).
- softmax over axis 0:  softmax(scores) -> softmax(scores, axis=0)
  The softmax runs over axis 0, the batch. The weights of each query must add to 1: it runs over the keys, the last axis
  (axis=-1).
- softmax over axis 1:  softmax(scores) -> softmax(scores, axis=1)
  The softmax runs over axis 1, which are the heads in (B, H, T, S). The weights of each query must add to 1: it runs
  over the keys, the last axis (axis=-1).
- softmax over axis 2:  softmax(scores) -> softmax(scores, axis=2)
  The softmax runs over axis 2, which are the queries in (B, H, T, S). The weights of each query must add to 1: it runs
  over the keys, the last axis (axis=-1).
- softmax over all scores:  softmax(scores) -> softmax(scores, axis=None)
  The softmax runs over all scores at once: all weights together add to 1. The weights of each query must add to 1: it
  runs over the keys, the last axis (axis=-1).
- no softmax:  softmax(scores) -> scores
  There is no softmax: the values are weighted with the scores themselves. Weights must be positive and add to 1.
- no exponential:  softmax(scores) -> scores / scores.sum(axis=-1, keepdims=True)
  The scores are divided by their sum, without the exponential. Scores have either sign: only exp makes weights of them
  that are positive, and 0 for −inf.
- not divided by the sum:  y / np.where(total == 0, 1, total) -> y
  The exponentials are not divided by their sum: the weights of a query do not add to 1.
- argmax instead of softmax:
    softmax(scores) -> (scores == scores.max(axis=-1, keepdims=True)) * np.where(np.isinf(scores), 0.0, 1.0)
  Each query takes the one best key, with weight 1. Softmax gives every key a share: without it there is no gradient.
- 2 to the power of the scores:  np.exp(x - largest) -> 2 ** (x - largest)
  The softmax is made with powers of 2 (`2 ** scores`) instead of powers of e (`np.exp`).
- sum without keepdims:  y.sum(axis=axis, keepdims=True) -> y.sum(axis=axis)
  The sum of the softmax loses its axis, and is then divided through along the wrong one: it takes keepdims=True. With T
  ≠ S NumPy refuses, with T = S nothing is said.
- sigmoid instead of softmax:  softmax(scores) -> 1 / (1 + np.exp(-scores))
  Each score goes through a sigmoid on its own. With softmax the keys compete: the weights of a query add to 1.
- softmax twice:  softmax(scores) -> softmax(softmax(scores))
  Softmax is applied twice, the second time to the weights. Between 0 and 1 they differ little, so the result is nearly
  even.
- maximum not subtracted:  x - largest -> x
  The softmax does not subtract the largest score of the row before the exponential. exp overflows at 710, and inf/inf
  is NaN: large scores give NaN.
- maximum of all scores subtracted:
    x - largest -> x - x.max()
    np.where(total == 0, 1, total) -> total
  The softmax subtracts the largest of all scores instead of the largest of each row. In a row far below it all
  exponentials are 0, and nothing is left to divide by.
- NaN for a row hidden whole:  x - largest -> x - x.max(axis=axis, keepdims=True)
  A row hidden whole gives NaN: −inf − (−inf), or 0/0. A query that may see nothing has weight 0 everywhere, and output
  0.
"""
    + amended(
        MASK_MISTAKES,
        instead="""
- hidden scores +inf:
    mask, -np.inf -> mask, np.inf
    x - largest -> x - np.where(np.isinf(largest), 0, largest)
  The sign is wrong: hidden scores become +inf instead of −inf.
""",
    )
    + """
- mask after the softmax:
    scores = masked(scores, mask) -> seen = np.exp(masked(0 * scores, mask))
    softmax(scores) -> softmax(scores) * seen
  The mask is applied after the softmax: hidden weights are set to 0, and those left do not add to 1. Mask the scores,
  before the softmax.
- weights −inf where hidden:
    scores = masked(scores, mask) -> pass
    softmax(scores) -> masked(softmax(scores), mask)
  The mask is applied after the softmax: hidden weights become −inf, and the output with them. Mask the scores, before
  the softmax, which makes 0 of −inf.
- mask after the softmax, then renormalised:
    scores = masked(scores, mask) -> seen = np.exp(masked(0 * scores, mask))
    weights = softmax(scores) ->
        weights = softmax(scores) * seen
        weights = weights / weights.sum(axis=-1, keepdims=True)
  The mask is applied after the softmax, and the weights that are left are divided by their sum. A row hidden whole
  becomes 0/0 = NaN, and a large hidden score leaves 0 for all others. Mask the scores, before the softmax.
- maximum of hidden scores too:
    scores = masked(scores, mask) -> seen = np.exp(masked(0 * scores, mask))
    weights = softmax(scores) ->
        weights = softmax(scores) * seen
        total = weights.sum(axis=-1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
  Hidden scores take part in the softmax, in its maximum at least, and are only taken out after it: the mask comes too
  late. Where a hidden score is far above the others, their exponentials are 0, and nothing is left. Mask the scores
  first.
- a large finite number for −inf:  mask, -np.inf -> mask, -1e9
  Hidden scores are set to a large finite number such as −1e9 or −1e8 instead of −inf. If a whole row is hidden, all its
  scores are equal, and the weights uniform, 1/S each: it reads hidden keys. They must be 0.
- a large finite number added for −inf:  np.where(mask, -np.inf, scores) -> scores - 1e9 * mask
  A large finite number such as −1e9 or −1e4 is added to hidden scores instead of −inf. In a row hidden whole the
  softmax shifts it away again, and the row attends as if there were no mask. Its weights must be 0.
- values weighted with Aᵀ:  weights @ v -> np.swapaxes(weights, -1, -2) @ v
  The weights are transposed before they meet the values: Aᵀ V instead of A V. Row t of A holds the weights of query t.
- V transposed:  weights @ v -> weights @ np.swapaxes(v, -1, -2)
  The output is A Vᵀ instead of A V: the values are transposed.
- V A instead of A V:  weights @ v -> v @ weights
  The output is V A instead of A V: the two factors are in the wrong order.
- values weighted with the scores:  weights @ v -> scores @ v
  The output is made of the scores instead of the weights: it is A V, with A after the softmax.
- keys instead of values:  weights @ v -> weights @ k
  The weights are multiplied with the keys: A K instead of A V.
- queries instead of values:  weights @ v -> weights @ q
  The weights are multiplied with the queries: A Q instead of A V.
- keys and values swapped:  scores = q @ -> k, v = v, k; scores = q @
  Keys and values are swapped: the scores are Q Vᵀ, and the output is made of the keys. The arguments are q, k, v.
- scores returned instead of weights:  return out, weights -> return out, scores
  The second result are the scores. It must be the weights, the softmax of the scores.
- weights before masking returned:
    scores = masked(scores, mask) -> unmasked = scores; scores = masked(scores, mask)
    return out, weights -> return out, softmax(unmasked)
  The second result are the weights without the mask. It must be those that made the output.
- weights averaged over the heads:
    return out, weights ->
        if q.ndim == 4:
            weights = weights.mean(axis=1)
        return out, weights
  The weights are averaged over the heads. Every head has its own, (B, H, T, S), and the backward needs them all.
- weights returned transposed:  return out, weights -> return out, np.swapaxes(weights, -1, -2)
  The weights are returned transposed, a row for each key. They are (..., T, S): a row for each query.
- heads merged already:
    return out, weights ->
        if q.ndim == 4:
            out = np.swapaxes(out, 1, 2).reshape(len(out), q.shape[2], -1)
        return out, weights
  The heads are merged in the output already, (B, T, H · d_v). It must stay (B, H, T, d_v): merge_heads comes after.
- outputs swapped:  return out, weights -> return weights, out
  The two results are in the wrong order: it is out first, then weights.
"""
)

SCALED_DOT_PRODUCT_ATTENTION = Exercise(
    F.scaled_dot_product_attention,
    results=(Result("out", "... T K_v"), Result("weights", "... T S")),
    cases=lambda rng: attention_cases(rng, only_scores=False),
    answer=scaled_dot_product_attention,
    hints=(
        "How much of each value does a query take, and when must a hidden key drop out so that the rest still adds to "
        "1?",
        "out = A V,  A = softmax(Q Kᵀ / √d_k + M), the softmax over the keys; weight 0 in a row hidden whole",
        "notebook 02, step 3 to step 5, and notebook 05, section 2; attention_scores and softmax are exercises of "
        "their own.",
    ),
    difficulty=2,
    section="§4 steps 3 to 5",
    chapter="Self-attention",
    place=3,
    mistakes=SCALE_MISTAKES + _ATTENTION_SCALES + ATTENTION_MISTAKES,
)


EXERCISES = [ATTENTION_SCORES, SCALED_DOT_PRODUCT_ATTENTION]
