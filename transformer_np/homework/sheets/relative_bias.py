"""The bias of distances: its buckets, the bias, its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes

# --- relative_position_buckets ---------------------------------------------------------------------------------------


def no_boundary(N, max_distance, T):
    """Whether no distance below T is just where a bucket begins: there rounding decides, in float32 and float64."""
    half = N // 2
    n = np.arange(half + 1, min(T, max_distance))
    growth = np.log(n / half) / np.log(max_distance / half) * (N - half)
    return bool((np.abs(growth - np.round(growth)) > 1e-4).all())


def buckets_cases(rng):
    T, S = (int(n) for n in (rng.integers(4, 8), rng.integers(12, 15)))  # below 16, where 32 buckets have a boundary
    while True:
        N, max_distance = 2 * int(rng.integers(3, 7)), int(rng.integers(16, 25))
        far = int(max_distance * (max_distance / (N // 2)) ** (2 / N)) + 4  # reaches a bucket behind N, were there one
        if no_boundary(N, max_distance, far) and no_boundary(2 * N, max_distance, far):
            break
    both, one = {"num_buckets": 2 * N, "max_distance": max_distance}, {"bidirectional": False}
    return [
        Case("", (far,), both, {"T": far, "S": far}),
        Case("S > T", (T, far), both, {"T": T, "S": far}),
        Case("num_buckets and max_distance not given", (S,), sizes={"T": S, "S": S}),
        Case("S > T and no options", (T, S), sizes={"T": T, "S": S}),
        Case("another num_buckets", (S,), {"num_buckets": 16}, {"T": S, "S": S}),
        Case("bidirectional=False", (S,), {"num_buckets": N, "max_distance": max_distance, **one}, {"T": S, "S": S}),
        Case("bidirectional=False, all distances", (far,), both | one, {"T": far, "S": far}),
        Case("bidirectional=False and S > T", (T, far), both | one, {"T": T, "S": far}),
        Case("one query, the last", (1, far), both | {"bidirectional": True}, {"T": 1, "S": far}),
    ]


def relative_position_buckets(T, S=None, num_buckets=32, max_distance=128, bidirectional=True):
    S = T if S is None else S
    t = np.arange(T)[:, None] + S - T
    s = np.arange(S)
    distance = t - s
    N = num_buckets // 2 if bidirectional else num_buckets
    half = N // 2
    n = np.abs(distance) if bidirectional else np.maximum(distance, 0)
    above = np.log(np.maximum(n, 1) / half)
    below = np.log(max_distance / half)
    growth = above / below * (N - half)
    far = half + np.floor(growth).astype(int)
    buckets = np.where(n < half, n, np.minimum(far, N - 1))
    if bidirectional:
        buckets = buckets + N * (distance < 0)
    return buckets


RELATIVE_POSITION_BUCKETS = Exercise(
    F.relative_position_buckets,
    results=(Result("buckets", "T S"),),
    cases=buckets_cases,
    answer=relative_position_buckets,
    hints=(
        "Which distances does a model have to tell apart exactly, and for which is a rough idea enough?",
        "n < N/2: n;  else min(N − 1, N/2 + ⌊log(n / (N/2)) / log(max_distance / (N/2)) · N/2⌋);  N = num_buckets // 2 "
        "and + N for keys after the query, if bidirectional; N = num_buckets and n = 0 for them, if not",
        "notebook 13; np.arange with [:, None] for the distances, np.where, np.minimum. log 0 is −inf: take the "
        "maximum with 1 first.",
    ),
    difficulty=3,
    section="Raffel et al. 2020, §2.1",
    chapter="T5",
    place=3,
    mistakes="""
- key's position minus query's:  t - s -> s - t
  The sign of the distance is wrong: past and future are swapped. Here the distance is the query's position minus the
  key's, so keys before the query have the first half of the buckets, and with bidirectional=False it is the keys after
  it that share bucket 0.
- earlier keys in the second half:  distance < 0 -> distance > 0
  The two halves are swapped: keys before the query (and itself) have the buckets 0 … N − 1, keys after it N … 2N − 1.
- earlier keys in bucket 0:  np.maximum(distance, 0) -> np.maximum(-distance, 0)
  With bidirectional=False the keys before the query share bucket 0. It is the keys after it, which the causal mask
  hides; the past is what the buckets are for.
- distance 0 in the second half:  distance < 0 -> distance <= 0
  The query itself, distance 0, is in the second half of the buckets. It belongs to the first, bucket 0: the second half
  is for keys after the query, s > t, not ≥.
- no second half for later keys:  if bidirectional: buckets = buckets + N * (distance < 0) -> pass
  Keys after the query have the same buckets as keys as far before it: with bidirectional=True they have the second
  half, + N, so that the model can tell past from future.
- later keys one bucket lower:  N * (distance < 0) -> (N - 1) * (distance < 0)
  The buckets of later keys begin one too low, so that none stays empty. They are N + the bucket of the distance; bucket
  N, distance 0 after the query, is never used.
- no absolute value:  np.abs(distance) -> distance
  With bidirectional=True the distance of later keys is negative and never far: the absolute value is missing, n =
  |distance|.
- no maximum with 0 in one direction:  np.maximum(distance, 0) -> distance
  With bidirectional=False later keys have negative buckets: the maximum with 0 is missing. They share bucket 0 with the
  query itself.
- later keys by their distance in one direction:  np.maximum(distance, 0) -> np.abs(distance)
  With bidirectional=False later keys have the bucket of their distance, |distance|, as if they stood before the query.
  They share bucket 0 with the query itself: max(distance, 0).
- always bidirectional:  s = np.arange(S) -> s = np.arange(S); bidirectional = True
  It does not use `bidirectional`: keys after the query always have buckets of their own. With False all buckets are for
  the past.
- never bidirectional:  s = np.arange(S) -> s = np.arange(S); bidirectional = False
  It does not use `bidirectional`: all buckets are always for the past. With True the second half is for keys after the
  query.
- bidirectional=False by default:  bidirectional=True -> bidirectional=False
  The default is bidirectional=False. It is True, as in the encoder.
- num_buckets not used:  num_buckets // 2 if bidirectional else num_buckets -> 16 if bidirectional else 32
  It does not use `num_buckets`: there are always 32.
- max_distance not used:  max_distance / half -> 128 / half
  It does not use `max_distance`: it is always 128.
- num_buckets not halved:  num_buckets // 2 if bidirectional else num_buckets -> num_buckets
  With bidirectional=True each direction has all num_buckets buckets, so that there are twice as many. Each has half of
  them, N = num_buckets // 2: the table has num_buckets rows.
- num_buckets halved for the later keys only:
    num_buckets // 2 if bidirectional else num_buckets -> num_buckets
    N * (distance < 0) -> num_buckets // 2 * (distance < 0)
  The later keys begin at num_buckets // 2, but the formula still has all num_buckets, so that the two directions
  overlap. With bidirectional=True N is num_buckets // 2 in the formula too.
- halved in one direction too:  num_buckets // 2 if bidirectional else num_buckets -> num_buckets // 2
  num_buckets is halved with bidirectional=False too. There is one direction then, and it has all of them.
- num_buckets halved once too often:  half = N // 2 -> N = N // 2; half = N // 2
  num_buckets is halved twice before N is put in: N = num_buckets // 2 with bidirectional=True, num_buckets with False;
  of these N half are exact.
- a quarter of the buckets exact:  N // 2 -> N // 4
  Only N/4 buckets hold one distance each. It is half of the N buckets of a direction, N/2.
- S not used:  S = T if S is None else S -> S = T
  It does not use `S`: there are always as many keys as queries. A decoder with a cache has one query and S keys.
- queries from the first position on:  [:, None] + S - T -> [:, None]
  Query t is taken to stand at position t. The queries are the last T of S positions, so it stands at t + (S − T), as in
  causal_mask(T, S). With T = S it makes no difference; a decoder with a cache needs it.
- queries moved by T − S:  + S - T -> + T - S
  Query t is taken to stand at t − (S − T): the sign is wrong. The queries are the last T of S positions, t + (S − T).
- no logarithm:
    np.log(np.maximum(n, 1) / half) -> np.maximum(n, 1) - half
    np.log(max_distance / half) -> max_distance - half
  Beyond N/2 the buckets are all equally wide: (n − N/2) / (max_distance − N/2). They grow with the logarithm, log(n /
  (N/2)) / log(max_distance / (N/2)).
- quotient without logarithm:
    np.log(np.maximum(n, 1) / half) -> np.maximum(n, 1) / half
    np.log(max_distance / half) -> max_distance / half
  The two logarithms are missing: it is log(n / (N/2)) / log(max_distance / (N/2)), not the quotient of the numbers.
- N buckets, one for each distance:  np.minimum(far, N - 1) -> np.minimum(n, N - 1)
  Every distance has a bucket of its own until they are used up: beyond N/2 they grow with the logarithm, so that they
  reach to max_distance.
- everything beyond N/2 in one bucket:  np.minimum(far, N - 1) -> half
  All distances from N/2 on share bucket N/2, and the others stay empty. They grow with the logarithm of the distance.
- everything beyond N/2 in the last bucket:  np.minimum(far, N - 1) -> N - 1
  All distances from N/2 on share the last bucket, N − 1, and those between stay empty. They grow with the logarithm of
  the distance.
- all distances by their logarithm:
    np.maximum(n, 1) / half -> np.maximum(n, 1)
    max_distance / half -> max_distance
    * (N - half) -> * N
    half + np.floor -> np.floor
    np.where(n < half, n, np.minimum(far, N - 1)) -> np.minimum(far, N - 1)
  All distances go by their logarithm. The first N/2 distances, from 0 on, have a bucket each.
- the distance itself:  np.where(n < half, n, np.minimum(far, N - 1)) -> n
  This is the distance itself, without a bound: there are only N buckets for a direction, and beyond N/2 they grow with
  the logarithm.
- n not divided by N/2:  np.maximum(n, 1) / half -> np.maximum(n, 1)
  The logarithm above is log n. It is log(n / (N/2)), which is 0 where the second half of the N begins.
- max_distance not divided by N/2:  max_distance / half -> max_distance
  The logarithm below is log max_distance. It is log(max_distance / (N/2)), so that the quotient is 1 at max_distance.
- neither divided by N/2:
    np.maximum(n, 1) / half -> np.maximum(n, 1)
    max_distance / half -> max_distance
  This is log n / log max_distance. Both are divided by N/2 first: log(n / (N/2)) / log(max_distance / (N/2)) goes from
  0 to 1 over the second half of the N buckets.
- logarithm to base 2 above:  np.log(np.maximum -> np.log2(np.maximum
  The two logarithms have different bases (np.log2 above, np.log below). Any base will do, but the same for both.
- logarithm to base 2 below:  np.log(max_distance -> np.log2(max_distance
  The two logarithms have different bases (np.log above, np.log2 below). Any base will do, but the same for both.
- times N instead of N/2:  * (N - half) -> * N
  The quotient of the logarithms is multiplied by N. Half of the N buckets are left for it: N/2.
- times N/2 − 1 instead of N/2:  * (N - half) -> * (N - half - 1)
  The quotient of the logarithms is multiplied by N/2 − 1, so that the last bucket begins at max_distance. It is
  multiplied by N/2, and what would be bucket N goes to the last.
- far buckets one too high:  half + np.floor -> half + 1 + np.floor
  The logarithmic buckets are one too high, off by one: the first of them is N/2, since 0 … N/2 − 1 are taken.
- floored before it is multiplied:  above / below -> np.floor(above / below)
  The quotient of the logarithms is made a whole number before it is multiplied by N/2, so it is 0 up to max_distance.
  Multiply first, then floor.
- rounded instead of floored:  np.floor -> np.round
  The logarithmic bucket is rounded to the nearest. It is rounded down: ⌊…⌋.
- rounded up:  np.floor -> np.ceil
  The logarithmic bucket is rounded up (ceil). It is rounded down: ⌊…⌋, as astype(int) does.
- N/2 not added:  half + np.floor -> np.floor
  The logarithmic buckets begin at 0 again and share those of the near keys. N/2 must be added: the first N/2 are taken.
- not cut off:  np.minimum(far, N - 1) -> far
  Distances from max_distance on get buckets beyond the last, which the table does not have. They share the last one:
  the minimum with N − 1.
- cut off at N:  np.minimum(far, N - 1) -> np.minimum(far, N)
  Distances from max_distance on get bucket N, off by one: counted from 0 the last of N is N − 1.
- buckets from 1:  np.where( -> 1 + np.where(
  The buckets count from 1. They count from 0, as the rows of a table do.
- transposed:  return buckets -> return buckets.T
  It is transposed, a row for each key. A row is a query: (T, S).
""",
)


# --- relative_position_bias ------------------------------------------------------------------------------------------


def bias_sizes(rng):
    """What is special about each case of both, its sizes and its buckets."""
    sizes = draw_sizes(rng, "T S R H", least=3)
    T, S, R, _ = sizes.values()

    def case(label, unused=0, **changed):
        new = sizes | changed
        buckets = rng.integers(new["R"] - unused, size=(new["T"], new["S"]))
        buckets[0, :2] = buckets[1, 0] = 0  # a bucket that occurs again, in a row and in a column
        buckets[-1, -1] = new["R"] - 1 - unused
        return label, new, buckets

    yield case("")
    yield case("buckets that never occur", unused=1)
    yield case("as many keys as queries", S=T)
    yield case("as many heads as buckets", H=R)
    yield case("as many heads as queries", H=T)
    yield case("as many heads, queries and keys", S=T, H=T)
    distances = F.relative_position_buckets(T, T + S, 16, 20)
    yield "the buckets of distances", sizes | {"S": T + S, "R": 16}, distances
    yield "one query", sizes | {"T": 1}, F.relative_position_buckets(1, S, R + R % 2, 20, bidirectional=False) % R


def bias_cases(rng):
    return [
        Case(label, (rng.normal(size=(sizes["R"], sizes["H"])), buckets), sizes=sizes)
        for label, sizes, buckets in bias_sizes(rng)
    ]


def relative_position_bias(table, buckets):
    by_pair = table[buckets]
    bias = np.moveaxis(by_pair, -1, 0)
    return bias


RELATIVE_POSITION_BIAS = Exercise(
    F.relative_position_bias,
    results=(Result("bias", "H T S"),),
    cases=bias_cases,
    answer=relative_position_bias,
    hints=(
        "Two keys have the same distance from their queries. Which number do they share in every head?",
        "bias[h, t, s] = table[buckets[t, s], h]",
        "notebook 13; your own embedding of notebook 01, and np.moveaxis to bring the heads to the front.",
    ),
    difficulty=1,
    section="Raffel et al. 2020, §2.1",
    chapter="T5",
    place=4,
    mistakes="""
- heads last:  np.moveaxis(by_pair, -1, 0) -> by_pair
  The heads are the last axis, (T, S, H), as table[buckets] gives it. They must stand in front, (H, T, S), as in the
  scores: move the last axis to the front.
- heads in the middle:  np.moveaxis(by_pair, -1, 0) -> by_pair.swapaxes(1, 2)
  The heads are in the middle, (T, H, S). They must stand in front, (H, T, S): move the last axis of table[buckets] to
  the front.
- reshaped instead of transposed:  np.moveaxis(by_pair, -1, 0) -> by_pair.reshape(-1, *buckets.shape)
  table[buckets] is reshaped to (H, T, S). The shape is right, but reshape keeps the order in memory, so that heads,
  queries and keys are mixed up. Move the last axis to the front: np.moveaxis, or transpose(2, 0, 1).
- queries and keys exchanged:  np.moveaxis(by_pair, -1, 0) -> by_pair.T
  Queries and keys are swapped, (H, S, T): the bias is transposed, from `.T` or swapaxes(0, 2) of (T, S, H). The order
  of the other two stays: np.moveaxis(…, -1, 0), or transpose(2, 0, 1).
- an axis for the batch in front:  return bias -> return bias[None]
  There is an axis of length 1 for the batch in front, (1, H, T, S). The bias is (H, T, S), and broadcasts over the
  batch as it is.
- queries and keys in one axis:  return bias -> return bias.reshape(len(bias), -1)
  Queries and keys are in one axis, (H, T · S). The last step, back to (H, T, S), is missing.
- the table transposed before it is indexed:  return table.T[buckets]
  It picks columns of the table. A row is a bucket, a column a head. table[buckets], and only then the heads to the
  front.
- the one-hot matrix itself:  return np.eye(len(table))[buckets]
  It returns the one-hot rows of the buckets. They still have to be multiplied by the table, which picks a row of it
  each.
- the next bucket:  [buckets] -> [buckets + 1]
  It looks up row bucket + 1. Buckets count from 0, as rows do.
- buckets counted from 1:  [buckets] -> [buckets - 1]
  It looks up row bucket − 1. Buckets count from 0, as rows do.
- counted from the end:  [buckets] -> [-1 - buckets]
  It counts the rows of the table from the end. Bucket 0 is row 0.
- the key's position taken for the bucket:  [buckets] -> [np.indices(buckets.shape)[1]]
  It looks up the position of the key, 0, 1, 2, …, instead of its bucket: every query gets the same bias.
- the first query's row for all:  [buckets] -> [np.broadcast_to(buckets[0], buckets.shape)]
  The first row of buckets stands for every query. Each query has its own distances, buckets[t].
- summed over the heads:  return bias -> return bias.sum(axis=0)
  The heads are summed: (T, S). Every head has a bias of its own, (H, T, S).
- averaged over the heads:  return bias -> return bias.mean(axis=0)
  The heads are averaged: (T, S). Every head has a bias of its own, (H, T, S).
- the first head only:  return bias -> return bias[0]
  Only the first head is looked up: (T, S). Every head has a bias of its own, (H, T, S).
- the first head for all:  return bias -> return np.stack([bias[0]] * len(bias))
  All heads get the bias of the first. Every head has a column of the table.
- bucket 0 without bias:  return bias -> return np.where(buckets == 0, 0, bias)
  Bucket 0 gets no bias, as if it were padding. It is the distance 0, and has a row like any other.
- the future hidden:  return bias -> T, S = buckets.shape; return np.where(np.tri(T, S, S - T), bias, -np.inf)
  The future is set to −inf. Hiding is the mask's task: an encoder sees both directions, and the bias is what the table
  says.
- the bias taken as the distance times a slope:  return bias -> return bias * buckets
  The number of the table is multiplied by the bucket, a slope times the distance. The number of the bucket is the bias
  itself.
- a softmax over the keys:  return bias -> return F.softmax(bias)
  A softmax is taken over the keys. The bias is added to the scores before the softmax, as it is.
- divided by √H:  return bias -> return bias / np.sqrt(len(bias))
  The bias is divided by √H. The lookup scales nothing.
- sign turned:  by_pair = table -> by_pair = -table
  The sign is turned: the bias is −table[buckets]. It is added as the table has it.
""",
)


def bias_backward_cases(rng):
    cases = []
    for label, sizes, buckets in bias_sizes(rng):
        dbias = rng.normal(size=(sizes["H"], *buckets.shape))
        cases.append(Case(label, (dbias, buckets, sizes["R"]), sizes=sizes))
    return cases


def relative_position_bias_backward(dbias, buckets, num_buckets):
    H, T, S = dbias.shape
    by_pair = np.moveaxis(dbias, 0, -1)
    flat, rows = buckets.reshape(-1), by_pair.reshape(T * S, H)
    dtable = np.zeros((num_buckets, H))
    np.add.at(dtable, flat, rows)
    return dtable


RELATIVE_POSITION_BIAS_BACKWARD = Exercise(
    F.relative_position_bias_backward,
    results=(Result("dtable", "R H"),),
    cases=bias_backward_cases,
    answer=relative_position_bias_backward,
    hints=(
        "To how many scores of a head was one number of the table added?",
        "dtable[r, h] = Σ dbias[h, t, s] over all pairs (t, s) with buckets[t, s] = r",
        "notebook 13; your own embedding_backward of notebook 06, section 7, after np.moveaxis.",
    ),
    difficulty=2,
    section="Raffel et al. 2020, §2.1",
    chapter="T5",
    place=5,
    mistakes="""
- repeated buckets not added:  np.add.at(dtable, flat, rows) -> dtable[flat] += rows
  A bucket that many pairs share counts once: only its last pair is left. `dtable[buckets] += …` reads all rows, adds,
  and writes all back, so of equal buckets the last one wins; the same holds for `=`. The gradients of all pairs that
  far apart have to be added up.
- only the first pair counts:  np.add.at(dtable, flat, rows) -> dtable[flat[::-1]] = rows[::-1]
  A bucket that many pairs share counts once, with its first pair. The gradients of all pairs have to be added up.
- repeated buckets of a query not added:
    np.add.at(dtable, flat, rows) ->
        for t in range(T):
            dtable[buckets[t]] += by_pair[t]
  It goes query by query with `dtable[buckets[t]] += …`: a bucket that one query has for two keys counts once there,
  since `+=` with repeated indices keeps the last one only.
- repeated buckets of a key not added:
    np.add.at(dtable, flat, rows) ->
        for s in range(S):
            dtable[buckets[:, s]] += by_pair[:, s]
  It goes key by key with `dtable[buckets[:, s]] += …`: a bucket that two queries have for one key counts once, since
  `+=` with repeated indices keeps the last one only.
- the last query only:  np.add.at(dtable, flat, rows) -> np.add.at(dtable, buckets[-1], by_pair[-1])
  Only the last query is counted: in the loop over queries the gradient is replaced (=) instead of added to (+=).
- averaged over the pairs of a bucket:
    return dtable ->
        count = np.bincount(flat, minlength=num_buckets)
        return dtable / np.maximum(count, 1)[:, None]
  The gradients of a bucket are averaged over its pairs. It is a sum, without division by the count: a number that was
  added to many scores moved the loss as often.
- multiplied by the number of pairs:
    return dtable ->
        count = np.bincount(flat, minlength=num_buckets)
        return dtable * count[:, None]
  The sum over the pairs of a bucket is multiplied by their number once more: each pair counts once.
- pairs counted, dbias not used:  flat, rows) -> flat, 1)
  It counts how often each bucket occurs and does not use dbias. Each pair adds its own gradient, not a 1.
- reshaped instead of transposed:  np.moveaxis(dbias, 0, -1) -> dbias.reshape(T, S, H)
  dbias (H, T, S) is reshaped to (T, S, H). The shape is right, but reshape keeps the order in memory, so that heads,
  queries and keys are mixed up. Move the first axis to the end: np.moveaxis, or transpose(1, 2, 0).
- queries and keys exchanged:  np.moveaxis(dbias, 0, -1) -> dbias.T
  Queries and keys are exchanged: dbias is turned around by `.T` or swapaxes(0, 2), (S, T, H), and meets the buckets of
  other pairs. With T ≠ S NumPy refuses; it is np.moveaxis(dbias, 0, -1).
- heads first:  return dtable -> return dtable.T
  dtable is transposed, (H, R). A gradient has the shape of its array: (num_buckets, H).
- summed over the heads:  return dtable -> return dtable.sum(axis=1)
  The heads are summed, one number for each bucket. Each head has a column of the table, (num_buckets, H).
- summed over the heads, in all columns:  return dtable -> return dtable.sum(axis=1, keepdims=True) * np.ones(H)
  Every column holds the sum over all heads. Each head has a column of the table, and its gradient comes from dbias[h]
  alone.
- future left out:  np.moveaxis(dbias, 0, -1) -> np.moveaxis(dbias * np.tri(T, S, S - T), 0, -1)
  Pairs whose key stands after the query are left out. Where a mask hid them, their gradient is 0 already; an encoder
  needs them.
- no gradient for bucket 0:  return dtable -> dtable[0] = 0; return dtable
  Bucket 0 gets no gradient, as if it were padding. It is the distance 0, and has a row like any other.
- divided by the number of queries:  return dtable -> return dtable / T
  The gradient is divided by T, the number of queries. It is a plain sum: if the loss is a mean, that is already in
  dbias.
- divided by the number of keys:  return dtable -> return dtable / S
  The gradient is divided by S, the number of keys. It is a plain sum: if the loss is a mean, that is already in dbias.
- divided by the number of pairs:  return dtable -> return dtable / (T * S)
  The gradient is divided by T · S, a mean for a sum. If the loss is a mean, that is already in dbias.
- divided by the number of heads:  return dtable -> return dtable / H
  The gradient is divided by the number of heads. Each head has a column of its own, and nothing is shared.
- divided by the number of buckets:  return dtable -> return dtable / num_buckets
  The gradient is divided by the number of buckets. It is a plain sum over the pairs of each.
- buckets counted from 1:  buckets.reshape(-1) -> buckets.reshape(-1) - 1
  The gradient goes to row bucket − 1 (off by one). Buckets count from 0, as rows do.
- the next bucket:  buckets.reshape(-1) -> buckets.reshape(-1) + 1
  The gradient goes to row bucket + 1 (off by one). Buckets count from 0, as rows do.
- rows only up to the largest bucket:  (num_buckets, H) -> (buckets.max() + 1, H)
  dtable has as many rows as the largest bucket asks for, buckets.max() + 1. It has num_buckets rows, the shape of the
  table; buckets that do not occur get a row of zeros.
- only the rows that occur:  return dtable -> return dtable[np.unique(buckets)]
  dtable has rows only for the buckets that occur. It has the shape of the table, num_buckets rows, with zeros where a
  bucket does not occur.
- dbias handed on:  return dbias
  dbias is returned as it came, a gradient for every pair. dtable is the gradient of the table, (num_buckets, H): each
  number of dbias has to go to the row of its bucket.
""",
)


EXERCISES = [RELATIVE_POSITION_BUCKETS, RELATIVE_POSITION_BIAS, RELATIVE_POSITION_BIAS_BACKWARD]
