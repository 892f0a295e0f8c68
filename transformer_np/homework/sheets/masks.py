"""The masks: what to hide, and the additive form."""

import numpy as np

from ... import masks as M
from ..exercise import Case, Exercise, Result, draw_sizes, extended

# --- the form of a Boolean mask ---------------------------------------------------------------------------------------

FORM_MISTAKES = """
- inverted:  return mask -> return ~mask
  The mask is inverted: it is True where a key is seen. In this package True means hidden, so each entry has to be the
  opposite (`~mask`).
- 1/0 instead of True/False:  return mask -> return mask.astype(float)
  The mask holds the numbers 1 and 0 instead of True and False. Attention adds a float mask to the scores, so a 1 would
  raise a hidden score by 1 and hide nothing: the array must be Boolean.
- 0/−inf instead of Boolean:  return mask -> return np.where(mask, -np.inf, 0.0)
  This is the additive mask, 0 where seen and −inf where hidden, the lecture's M. Here a Boolean array is wanted, True =
  hidden; `additive` makes the one from the other.
- 0/−1e9 instead of Boolean:  return mask -> return np.where(mask, -1e9, 0.0)
  This is an additive mask with 0 where seen and −1e9 where hidden. Here a Boolean array is wanted, True = hidden, and a
  large finite number does not hide for certain.
- 0/−1e8 instead of Boolean:  return mask -> return np.where(mask, -1e8, 0.0)
  This is an additive mask with 0 where seen and −1e8 where hidden. Here a Boolean array is wanted, True = hidden, and a
  large finite number does not hide for certain.
- everything hidden:  return mask -> return np.ones_like(mask)
  The mask is True everywhere: it hides all keys from all queries.
- nothing hidden:  return mask -> return np.zeros_like(mask)
  The mask is False everywhere: it hides nothing.
"""

# --- masks by distance ------------------------------------------------------------------------------------------------


def positions(T, S):
    """The positions of the queries, (T, 1), which are the last T of S, and of the keys, (S,)."""
    S = T if S is None else S
    offset = S - T
    return offset + np.arange(T)[:, None], np.arange(S)


POSITION_MISTAKES = """
- aligned to the start:  S - T -> 0
  With S > T the mask is aligned to the start, as if query t stood at position t. The T queries are the last of the S
  positions: query t stands at t + (S − T), so that the last query stands at the last key. Decoding with a key/value
  cache relies on it.
- offset S − T with the wrong sign:  S - T -> T - S
  The offset S − T has the wrong sign: it is taken off the position of the query instead of added. Query t stands at
  position t + (S − T).
- S ignored:  T if S is None else S -> T
  It does not use S: the mask is (T, T), but there are S keys, so it must be (T, S).
- all S rows:  offset + np.arange(T) -> np.arange(S)
  It returns the square (S, S) mask, a row for every position. There are only T queries, the last T of the S positions:
  the shape is (T, S).
- T and S swapped:  offset = -> T, S = S, T; offset =
  T and S are swapped: the mask is built for S queries and T keys, its shape is (S, T). Queries are the rows and keys
  the columns, (T, S), as in the scores.
- an extra axis in front:  [:, None] -> [None, :, None]
  The shape has an extra axis of length 1 in front, (1, T, S). It must be (T, S): NumPy adds the axes for batch and
  heads by itself when it broadcasts.
- two extra axes in front:  [:, None] -> [None, None, :, None]
  The shape has two extra axes of length 1 in front, (1, 1, T, S). It must be (T, S): NumPy adds the axes for batch and
  heads by itself when it broadcasts.
"""


def causal_mask_cases(rng):
    sizes = draw_sizes(rng, "T S", least=3)
    T, S = sorted(sizes.values())
    sizes = {"T": T, "S": S}
    return [
        Case("", (S,), sizes={"T": S, "S": S}),
        extended(Case("S > T", (T, S), sizes=sizes)),
        Case("S = T given", (T, T), sizes={"T": T, "S": T}),
        extended(Case("one query, T = 1", (1, S), sizes={"T": 1, "S": S})),
        extended(Case("S twice as large as T", (T, 2 * T), sizes={"T": T, "S": 2 * T})),
    ]


def causal_mask(T, S=None):
    query, key = positions(T, S)
    mask = key > query
    return mask


CAUSAL_MASK = Exercise(
    M.causal_mask,
    results=(Result("mask", "T S"),),
    cases=causal_mask_cases,
    answer=causal_mask,
    hints=(
        "Which keys stand after the query? And where does query t stand if there are more keys than queries?",
        "True where s > t + (S − T), for the query t = 0 … T − 1 and the key s = 0 … S − 1",
        "notebook 05, section 1; np.arange with [:, None] gives a column, or np.triu with k.",
    ),
    difficulty=1,
    section="§9",
    chapter="Masks",
    place=1,
    mistakes="""
- the diagonal hidden:  key > query -> key >= query
  Off by one: the diagonal is hidden too, so a query does not see its own position, and the first query sees nothing at
  all. Hide s > t, not s ≥ t.
- one future key seen:  key > query -> key > query + 1
  Off by one: a query sees one key of the future, the one right after it. In training that key is the answer, and the
  model copies it. Hide every key with s > t.
- the past hidden:  key > query -> key < query
  It hides the past and shows the future: the wrong triangle, that below the diagonal. Rows are queries, columns are
  keys, and what lies after the query is above the diagonal.
- the key before hidden too:  key > query -> key >= query - 1
  Off by two: besides the future, the query's own position and the key right before it are hidden. Hide s > t.
- only itself seen:  key > query -> key != query
  Everything off the diagonal is hidden, the past as well: each query sees only itself. Only the future, s > t, has to
  be hidden.
- only the next key hidden:  key > query -> key == query + 1
  Only the one key right after the query is hidden; those further in the future are seen. Hide every key with s > t.
- only itself hidden:  key > query -> key == query
  Only the diagonal is hidden: each query sees all but itself, the future too. Everything with s > t has to be hidden,
  and nothing else.
- transposed:  key > query -> (key > query).T
  The mask is transposed: its shape is (S, T), a row for each key. The scores are (T, S), a row for each query, and the
  mask must be so too.
"""
    + POSITION_MISTAKES
    + FORM_MISTAKES,
)


def window_mask_cases(rng):
    T = int(rng.integers(10, 13))
    S = T + int(rng.integers(3, 6))
    window = int(rng.integers(3, 5))
    sizes = {"T": T, "S": T}
    return [
        Case("", (T, 4), sizes=sizes),
        extended(Case("S > T", (T, window, S), sizes={"T": T, "S": S})),
        Case("window 0", (T, 0), sizes=sizes),
        Case("window 1", (T, 1), sizes=sizes),
        Case("window 3", (T + 1, 3), sizes={"T": T + 1, "S": T + 1}),
        Case("a window that covers all", (T, T + 1), sizes=sizes),
        extended(Case("one query, T = 1", (1, window, S), sizes={"T": 1, "S": S})),
    ]


def window_mask(T, window, S=None):
    query, key = positions(T, S)
    distance = np.abs(key - query)
    mask = distance > window
    return mask


WINDOW_MASK = Exercise(
    M.window_mask,
    results=(Result("mask", "T S"),),
    cases=window_mask_cases,
    answer=window_mask,
    hints=(
        "How far is key s from query t, and is that too far?",
        "True where |s − t − (S − T)| > window",
        'notebook 05, section 1, "Try it"; np.abs of a difference of two np.arange, one a column.',
    ),
    difficulty=1,
    section="Vaswani et al. 2017, §4",
    chapter="Masks",
    place=3,
    mistakes="""
- distance < window:  distance > window -> distance >= window
  Off by one: keys at a distance of exactly `window` are hidden. A query sees the distances up to and including `window`
  (≤, not <), so hide |s − t| > window.
- window one too wide:  distance > window -> distance > window + 1
  Off by one: keys at the distance window + 1 are seen. Hide everything with |s − t| > window.
- window halved:  distance > window -> distance > window // 2
  `window` is taken for the width of the whole window, half of it on either side. It is the distance on each side: a
  query sees up to 2 · window + 1 keys.
- window halved, less one:  distance > window -> distance > (window - 1) // 2
  `window` is taken for the number of keys in the whole window, (window − 1)/2 on either side. It is the distance on
  each side: a query sees up to 2 · window + 1 keys.
- window doubled:  distance > window -> distance > 2 * window
  The window is twice as wide on either side: `window` is the distance on each side.
- one key too few in the past:
    distance > window -> (distance > window) | (key < query) & (distance >= window)
  Off by one in the past: the key at the distance `window` before the query is hidden (≥, not >). Hide |s − t| > window,
  on both sides alike.
- one key too few in the future:
    distance > window -> (distance > window) | (key > query) & (distance >= window)
  Off by one in the future: the key at the distance `window` after the query is hidden (≥, not >). A range ends before
  its end. Hide |s − t| > window, on both sides alike.
- causal as well:  return mask -> return mask | (key > query)
  The future is hidden too: this is window_mask | causal_mask. The window is symmetric, a query sees `window` keys on
  either side; to make it causal, combine it with causal_mask: `|`.
- causal the wrong way round:  return mask -> return mask | (key < query)
  The past is hidden: a query sees only itself and the `window` keys after it. The window is symmetric.
- no absolute value, past never hidden:  np.abs(key - query) -> key - query
  One-sided: only keys far in the future are hidden, the past is seen however far it is. The absolute value is missing:
  hide |s − t| > window, not s − t > window.
- no absolute value, future never hidden:  np.abs(key - query) -> query - key
  One-sided: only keys far in the past are hidden, the future is seen however far it is. The absolute value is missing:
  hide |s − t| > window, not t − s > window.
- round the corner:  distance > window -> np.minimum(distance, key.size - distance) > window
  The distance is counted round the corner, as if the last position stood next to the first. A sequence has two ends:
  the distance is |s − t|.
- blocks instead of a band:  distance > window -> key // max(window, 1) != query // max(window, 1)
  The sequence is cut into blocks of `window` positions, and a query sees its own block. The window moves along with the
  query: hide |s − t| > window.
- itself hidden:  return mask -> return mask | (key == query)
  The query's own position is hidden. Its distance is 0, which is inside every window.
- window 0 as no window:  distance > window -> distance > (window or np.inf)
  window = 0 is taken for no window at all, probably by `if window:`. With 0 each position sees itself and nothing else.
- only the edge hidden:  distance > window -> distance == window
  Only the keys at a distance of exactly `window` are hidden; those further away are seen. Hide |s − t| > window.
- only the edge seen:  distance > window -> distance != window
  Only the keys at a distance of exactly `window` are seen; those in between are hidden. Hide |s − t| > window.
"""
    + POSITION_MISTAKES
    + FORM_MISTAKES,
)


# --- padding ----------------------------------------------------------------------------------------------------------


def padding_mask_cases(rng):
    sizes = draw_sizes(rng, "B S", least=3)
    sizes["S"] += 4
    B, S = sizes["B"], sizes["S"]
    position = np.arange(S)
    lengths = rng.permutation(np.arange(B) % (S - 2) + 2)[:, None]  # (B, 1), two tokens at least
    ids = rng.integers(1, 9, (B, S))
    behind = np.where(position < lengths, ids, 0)
    in_front = np.where(position < S - lengths, 0, ids)
    between = ids.copy()
    between[:, [1, 3]] = between[0, -1] = 0
    pad_id = int(rng.integers(3, 6))
    other = np.where(ids == pad_id, pad_id + 1, ids)
    other[:, :2] = 0, pad_id - 1  # with this pad_id, 0 is a token like any other
    other = np.where(position < lengths + 1, other, pad_id)
    empty = behind.copy()
    empty[-1] = 0
    square = np.where(position[:B] <= rng.permutation(B)[:, None], ids[:, :B], 0)
    return [
        Case("", (behind, 0), sizes=sizes),
        Case("a pad_id other than 0", (other, pad_id), sizes=sizes),
        Case("padding in front", (in_front, 0), sizes=sizes),
        Case("padding between tokens", (between, 0), sizes=sizes),
        Case("no padding at all", (ids, 0), sizes=sizes),
        Case("a row of nothing but padding", (empty, 0), sizes=sizes),
        Case("as many rows as tokens", (square, 0), sizes={"B": B, "S": B}),
    ]


def padding_mask(ids, pad_id):
    mask = ids == pad_id
    return mask[:, None, None, :]


PADDING_MASK = Exercise(
    M.padding_mask,
    results=(Result("mask", "B 1 1 S"),),
    cases=padding_mask_cases,
    answer=padding_mask,
    hints=(
        "Which ids are padding? And which axis of the scores (B, H, T, S) are the keys?",
        "mask[b, 0, 0, s] is True where ids[b, s] = pad_id",
        "notebook 05, section 3; `==` compares a whole array, None in an index makes an axis of length 1.",
    ),
    difficulty=1,
    section="behind §9",
    chapter="Masks",
    place=2,
    mistakes="""
- always compares with 0:  ids == pad_id -> ids == 0
  It compares the ids with 0 instead of with pad_id. Where padding has another id, the padding is seen, and a token with
  the id 0 is hidden.
- smaller ids hidden too:  ids == pad_id -> ids <= pad_id
  It hides all ids up to pad_id (≤). Only ids equal to pad_id are padding (==).
- tokens counted:
    mask = ids == pad_id ->
        length = (ids != pad_id).sum(axis=1, keepdims=True)
        mask = np.arange(ids.shape[1]) >= length
  It counts the tokens of a row and hides what comes after as many positions, which is right only if all padding is at
  the end. Compare each id with pad_id.
- first padding seen:
    mask = ids == pad_id ->
        mask = ids == pad_id
        mask = mask & (mask.cumsum(axis=1) > 1)
  Off by one: the first padding position of each row is seen. Hide each position whose id is pad_id.
- last token hidden:
    mask = ids == pad_id ->
        length = (ids != pad_id).sum(axis=1, keepdims=True)
        mask = (ids == pad_id) | (np.arange(ids.shape[1]) == length - 1)
  Off by one: the last token before the padding is hidden as well. Only positions whose id is pad_id are hidden.
- all hidden from the first padding on:  ids == pad_id -> np.logical_or.accumulate(ids == pad_id, axis=1)
  Everything from the first padding on is hidden, tokens as well. Padding may stand in front: hide only the positions
  whose id is pad_id.
- only the last padding hidden:
    mask = ids == pad_id ->
        mask = ids == pad_id
        mask = mask & (mask[:, ::-1].cumsum(axis=1)[:, ::-1] == 1)
  Only one padding position per row is hidden, the last. Hide each position whose id is pad_id.
- only padding at the end hidden:
    ids == pad_id -> np.logical_and.accumulate((ids == pad_id)[:, ::-1], axis=1)[:, ::-1]
  Only the padding at the end of a row is hidden. Padding may stand elsewhere: hide each position whose id is pad_id.
- last padding seen:
    mask = ids == pad_id ->
        mask = ids == pad_id
        mask = mask & (mask[:, ::-1].cumsum(axis=1)[:, ::-1] > 1)
  The last padding position of each row is seen. Hide each position whose id is pad_id.
- last position never hidden:  mask = ids == pad_id -> mask = ids == pad_id; mask[:, -1] = False
  The last position is never hidden, not even where it is padding. Hide each position whose id is pad_id.
- first position never hidden:  mask = ids == pad_id -> mask = ids == pad_id; mask[:, 0] = False
  The first position is never hidden, not even where it is padding. Hide each position whose id is pad_id.
- rows of nothing but padding seen:
    mask = ids == pad_id -> mask = ids == pad_id; mask = mask & ~mask.all(axis=1, keepdims=True)
  A row of nothing but padding is left unmasked. It must be hidden whole; attention gives it weight 0.
- (B, S):  mask[:, None, None, :] -> mask
  The shape is (B, S). Against scores (B, H, T, S), NumPy would take the B for the queries T: two axes of length 1 are
  missing in between, one for the heads and one for the queries, (B, 1, 1, S).
- (B, 1, S):  [:, None, None, :] -> [:, None, :]
  The shape is (B, 1, S). Against scores (B, H, T, S), NumPy would take the B for the heads H: one more axis of length 1
  is missing, (B, 1, 1, S).
- (B, S, 1):  [:, None, None, :] -> [:, :, None]
  The shape is (B, S, 1): the new axis is at the end, and an axis is missing. Keys are the last axis of the scores (B,
  H, T, S): the mask must be (B, 1, 1, S).
- (B, 1, S, 1):  [:, None, None, :] -> [:, None, :, None]
  The padding is on the query axis, (B, 1, S, 1): this hides all keys from padded queries, and no padded key from
  anyone. Keys are the last axis of the scores: (B, 1, 1, S).
- (B, S, 1, 1):  [:, None, None, :] -> [:, :, None, None]
  The padding is on the axis of the heads, (B, S, 1, 1): both new axes are at the end. Keys are the last axis of the
  scores (B, H, T, S): the new axes go in between, (B, 1, 1, S).
- (1, 1, B, S):  [:, None, None, :] -> [None, None]
  Both new axes are in front, (1, 1, B, S): the rows of the batch stand where the queries are. The batch is the first
  axis of the scores (B, H, T, S): the new axes go in between, (B, 1, 1, S).
- (1, B, 1, S):  [:, None, None, :] -> [None, :, None, :]
  The batch stands on the axis of the heads, (1, B, 1, S). The batch is the first axis of the scores (B, H, T, S): both
  new axes go in between, (B, 1, 1, S).
- (B, 1, 1, 1, S):  [:, None, None, :] -> [:, None, None, None, :]
  There is an axis of length 1 too many: (B, 1, 1, 1, S) instead of (B, 1, 1, S).
- (B, S, S):  [:, None, None, :] -> [:, None, :].repeat(ids.shape[1], axis=1)
  The mask is written out for every query, (B, S, S), and the axis of the heads is missing. (B, 1, 1, S) says the same:
  NumPy repeats an axis of length 1 by itself.
- (B, S, S), queries too:  mask[:, None, None, :] -> mask[:, None, :] | mask[:, :, None]
  Padded queries are masked as well as padded keys, which makes it (B, S, S), and the axis of the heads is missing. Only
  keys must be hidden: (B, 1, 1, S).
- joined with the causal mask:
    [:, None, None, :] -> [:, None, None, :] | np.triu(np.ones((ids.shape[1], ids.shape[1]), bool), 1)
  It is joined with the causal mask, (B, 1, S, S). padding_mask hides only padding; the caller combines the two with
  `|`.
- one entry for a sentence:  [:, None, None, :] -> .any(axis=1)[:, None, None, None]
  There is one entry for a sentence, (B, 1, 1, 1), that says whether it has padding. There must be one for each key, (B,
  1, 1, S): no `any` or `all`.
- (B, 1, S, S):  [:, None, None, :] -> [:, None, None, :].repeat(ids.shape[1], axis=2)
  The mask is written out for every query, (B, 1, S, S). (B, 1, 1, S) says the same with less memory, and fits any
  number of queries: NumPy repeats an axis of length 1 by itself.
- (B, 1, S, S), queries too:
    mask[:, None, None, :] -> mask[:, None, None, :] | mask[:, None, :, None]
  Padded queries are masked as well as padded keys, which makes it (B, 1, S, S). Only keys must be hidden, (B, 1, 1, S):
  the results of padded queries are never used.
"""
    + FORM_MISTAKES,
)


# --- the additive form ------------------------------------------------------------------------------------------------


def additive_cases(rng):
    sizes = draw_sizes(rng, "B H T S")
    B, H, T, S = sizes.values()

    def draw(*shape):
        mask = rng.random(shape) < 0.4
        mask[..., 0, :2], mask[..., -1, -2:] = (True, False), (False, True)
        return mask

    return [
        Case("", (draw(T, S),), sizes=sizes),
        extended(Case("dtype=np.float64", (draw(T, S),), {"dtype": np.float64}, sizes)),
        extended(Case("dtype=np.float32", (draw(T, S),), {"dtype": np.float32}, sizes)),
        Case("a mask of shape (B, 1, 1, S)", (draw(B, 1, 1, S),), sizes=sizes),
        Case("a mask of shape (B, H, T, S)", (draw(B, H, T, S),), sizes=sizes),
        Case("a row hidden whole", (draw(T, S) | (np.arange(T) == 1)[:, None],), sizes=sizes),
        Case("nothing hidden", (np.zeros((T, S), bool),), sizes=sizes),
    ]


def additive(mask, dtype=np.float32):
    return np.where(mask, -np.inf, 0).astype(dtype)


FINITE = """
- {name} for −inf:  -np.inf -> {number}
  Hidden entries are {name} instead of −inf. A finite number only makes the weight small: where a whole row is hidden,
  the softmax shifts it away and the row attends to hidden keys. It must be −inf (`-np.inf`).
"""
NUMBERS = ("-1", "-100", "-1000", "-1e4", "-1e5", "-1e6", "-1e8", "-1e9", "-1e10", "-1e20", "-1e30")

ADDITIVE = Exercise(
    M.additive,
    results=(Result("M"),),
    cases=additive_cases,
    answer=additive,
    hints=(
        "Which number leaves a score as it is when added, and which one makes its exponential 0?",
        "M = 0 where seen, −∞ where hidden; softmax(scores + M) then gives hidden keys the weight e^(−∞) = 0",
        "notebook 05, section 1 and 2; np.where takes a condition and two values. 0 times −inf is NaN.",
    ),
    difficulty=1,
    section="§9",
    chapter="Masks",
    place=4,
    mistakes="""
- 0 and −inf swapped:  np.where(mask -> np.where(~mask
  0 and −inf are swapped: −inf stands where the mask is False. True means hidden, so −inf goes where it is True, and 0
  where the key is seen.
- NaN where seen, 0 · (−inf):  np.where(mask, -np.inf, 0) -> (mask * -np.inf)
  The mask is multiplied by −inf, and 0 · (−inf) is NaN, not 0: all that should be seen is NaN. Choose instead of
  multiplying: `np.where`.
- Boolean returned:  return mask.copy()
  The Boolean mask itself comes back. Return a float array to add to the scores: 0 where seen, −inf where hidden.
- 1 where hidden:  np.where(mask, -np.inf, 0) -> mask
  The mask is only turned into numbers, 1 where hidden and 0 where seen. Added to the scores, a 1 would even raise the
  hidden ones: it must be −inf where hidden, 0 where seen.
- 1 where seen:  np.where(mask, -np.inf, 0) -> (~mask)
  This is 1 where seen and 0 where hidden, a mask to multiply by. The additive mask is 0 where seen and −inf where
  hidden.
- 1 added where seen:  , 0) -> , 1)
  Seen entries are 1 instead of 0. A key that is seen must keep its score, so 0 is added there.
- +inf for −inf:  -np.inf -> np.inf
  The sign is wrong: +inf instead of −inf. A hidden key must get a weight of e^(−inf) = 0; +inf makes the softmax NaN.
- NaN where hidden:  -np.inf -> np.nan
  Hidden entries are NaN instead of −inf. NaN makes every sum it is in NaN; e^(−inf) is 0.
- −inf as a whole number:  -np.inf -> -(2.0**63)
  The result is turned into whole numbers, and −inf is not one: it becomes −2⁶³. Keep a float dtype, the one that is
  asked for.
- everything hidden:  np.where(mask, -np.inf, 0) -> np.full(mask.shape, -np.inf)
  The result is −inf everywhere: it hides everything. It must be 0 where the mask is False.
- nothing hidden:  np.where(mask, -np.inf, 0) -> np.zeros(mask.shape)
  The result is 0 everywhere: it hides nothing. It must be −inf where the mask is True.
"""
    + "".join(FINITE.format(name=number.replace("-", "−"), number=number) for number in NUMBERS)
    + """
- the smallest finite number for −inf:  -np.inf -> np.finfo(dtype).min
  Hidden entries are the smallest finite number of the dtype (np.finfo) instead of −inf. A finite number only makes the
  weight small: where a whole row is hidden, the softmax shifts it away and the row attends to hidden keys. It must be
  −inf (`-np.inf`).
- the smallest float32 for −inf:  -np.inf -> np.finfo(np.float32).min
  Hidden entries are the smallest finite float32, −3.4e38, instead of −inf. A finite number only makes the weight small:
  where a whole row is hidden, the softmax shifts it away and the row attends to hidden keys. It must be −inf
  (`-np.inf`).
""",
)

EXERCISES = [CAUSAL_MASK, PADDING_MASK, WINDOW_MASK, ADDITIVE]
