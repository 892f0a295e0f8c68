"""Byte-pair encoding: learning the merges, and applying them."""

from itertools import pairwise

import numpy as np

from ...data import bpe
from ..exercise import Case, Exercise, Result
from ..notes import amended

FIRST = 260  # the id of the first merge: letters are below it


def _words(rng, letters=5, syllables=6, words=14, longest=3):
    """Different words of ids that share syllables, so that some pairs are frequent."""
    ids = rng.permutation(np.arange(101, 123))[:letters]
    parts = [rng.choice(ids, size=int(rng.integers(1, 4))).tolist() for _ in range(syllables)]
    found = {}
    while len(found) < words:
        word = [i for n in rng.integers(syllables, size=int(rng.integers(1, longest + 1))) for i in parts[n]]
        found[tuple(word)] = word
    return list(found.values())


def _same(answer, other, case):
    return answer(*case.arguments, **case.options) == other(*case.arguments, **case.options)


def _drawn(rng, draw, exercise, differ, agree=()):
    """A drawn case in which the mistakes of `differ` change the result, all in other ways, and those of `agree` do
    not."""
    right = exercise.variant()
    while True:
        case = draw(rng)
        if not all(_same(right, exercise.variant({name}), case) for name in agree):
            continue
        results = [right(*case.arguments, **case.options)]
        for name in differ:
            results.append(exercise.variant({name})(*case.arguments, **case.options))
            if results.count(results[-1]) > 1:
                break
        else:
            return case


def merged(ids, pair, new):
    """The ids with every occurrence of the pair replaced by `new`, from left to right."""
    result, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == pair:
            result.append(new)
            i += 2
        else:
            result.append(ids[i])
            i += 1
    return result


_MERGING = """
- only the first place in a word:  in merged: result.append(new); i += 2 -> return [*result, new, *ids[i + 2 :]]
  A pair is merged only once in each word. A merge applies at every place where the pair stands: go on to the end of the
  word.
- the right token kept:  i += 2 -> i += 1
  The right token of a merged pair stays in the word, behind the new token. The new token takes the place of both: go on
  two places further.
- merged from right to left:
    in merged:
        ids, i = list(ids), len(ids) - 2
        while i >= 0:
            if tuple(ids[i : i + 2]) == pair:
                ids[i : i + 2] = [new]
            i -= 1
        return ids
  Pairs are merged from right to left. The order matters where a token stands three times in a row: merge from left to
  right.
"""

# --- learning the merges ----------------------------------------------------------------------------------------------

_TIES = ("the larger ids among equals", "the first found among equals")
_SEEN_WHERE_PLAIN = (
    "counts not used", "a pair counts once per word", "the rarest pair", "words not changed",
    "all merges from one count", "one merge too few",
    "one merge too many", "ids one too large", "frequencies not reset", "the order in a pair ignored",
)  # fmt: skip

_SEEN_WHERE_RARE = ("never too rare", "min_count itself too rare", "only the first place in a word")


def learn_cases(rng):
    def plain(rng):
        words = _words(rng)
        return Case("", (words, rng.integers(1, 1000, size=len(words)).tolist(), int(rng.integers(5, 9)), FIRST))

    def equal(rng):
        words = _words(rng, words=9)
        return Case("equally frequent pairs", (words, [1] * len(words), 5, FIRST))

    def rare(rng):
        words = _words(rng)
        counts = rng.integers(1, 9, size=len(words)).tolist()
        return Case("min_count=12", (words, counts, 60, FIRST), {"min_count": 12})

    def in_a_row(rng):
        a, b, c = rng.permutation(np.arange(101, 123))[:3].tolist()
        words = [[b, a, a, a, c], [a, a, a], [c, a, a, a, a, b], [b, c]]
        return Case("a letter three times in a row", (words, rng.integers(1, 60, size=4).tolist(), 2, FIRST))

    def few(rng):
        a, b, c = rng.permutation(np.arange(101, 123))[:3].tolist()
        return Case("no pair left", ([[a, b], [c], [b, a, b]], [3, 4, 5], 9, FIRST), {"min_count": 1})

    return [
        _drawn(rng, plain, LEARN, _SEEN_WHERE_PLAIN, _TIES),
        _drawn(rng, equal, LEARN, _TIES),
        _drawn(rng, rare, LEARN, _SEEN_WHERE_RARE, _TIES),
        _drawn(rng, in_a_row, LEARN, ("the right token kept", "merged from right to left"), _TIES),
        few(rng),
    ]


def view_merges(case, output):
    """The pairs as one array, filled up with −1, with two rows more than a right answer can have."""
    if not isinstance(output, list | tuple):
        raise TypeError("the merges are a list")
    most = case.arguments[2] + 2
    rows = [[int(left), int(right)] for left, right in output][:most]
    return (np.array(rows + [[-1, -1]] * (most - len(rows))),)


def learn_merges(words, counts, num_merges, first_id, min_count=2):
    merges = []
    for step in range(num_merges):
        frequency = {}
        for word, count in zip(words, counts, strict=True):
            for pair in pairwise(word):
                frequency[pair] = frequency.get(pair, 0) + count
        if not frequency:
            break
        best = min(frequency, key=lambda pair: (-frequency[pair], pair))
        if frequency[best] < min_count:
            break
        merges.append(best)
        words = [merged(word, best, first_id + step) for word in words]
    return merges


LEARN = Exercise(
    bpe.learn_merges,
    results=(Result("merges", "merge side"),),
    cases=learn_cases,
    answer=learn_merges,
    hints=(
        "After the first merge the words have a new token. Which pairs are more frequent now, and which are rarer?",
        "frequency(l, r) = Σ over the words of (count of the word) · (how often r follows l in it); merge the largest, "
        "replace it in all words, and count again",
        "Sennrich et al. 2016, algorithm 1; itertools.pairwise(word) gives the pairs of a word. Counting "
        "everything again after each merge is slow and right.",
    ),
    difficulty=3,
    section="Sennrich et al. 2016",
    chapter="Text and batches",
    place=1,
    view=view_merges,
    mistakes="""
- counts not used:  + count -> + 1
  Every word counts once. A pair in a word that occurs 20 times occurs 20 times: add the count of the word.
- a pair counts once per word:  pairwise(word) -> set(pairwise(word))
  A pair that stands in a word twice is counted once. Count every place: "banana" has the pair (a, n) twice.
- the rarest pair:  -frequency[pair] -> frequency[pair]
  The rarest pair is merged. Merge the most frequent one.
- words not changed:  words = [merged(word, best, first_id + step) for word in words] -> pass
  The words stay as they were, so the same pair is the most frequent one every time. Replace the pair by the new token
  in all words, then count again.
- all merges from one count:
    best = min(frequency, key=lambda pair: (-frequency[pair], pair)) ->
        ranked = sorted(frequency, key=lambda pair: (-frequency[pair], pair))
        if step >= len(ranked):
            break
        best = ranked[step]
    words = [merged(word, best, first_id + step) for word in words] -> pass
  The pairs are counted only once, and the most frequent ones are taken in order. A merge changes the counts, and makes
  pairs with the new token: merge one pair in all words, then count again.
- frequencies not reset:
    merges = [] -> merges, frequency = [], {}
    frequency = {} -> pass
  The frequencies of the earlier steps are still in the sum. Count from zero after each merge: a merge makes other pairs
  rarer.
- the larger ids among equals:  min(frequency, key=lambda pair: (-frequency[pair], pair)) ->
        max(frequency, key=lambda pair: (frequency[pair], pair))
  Among equally frequent pairs, the one with the larger ids is merged. Take the smaller left id, then the smaller right
  id: min over (−frequency, pair).
- the first found among equals:  min(frequency, key=lambda pair: (-frequency[pair], pair)) ->
        max(frequency, key=frequency.get)
  Among equally frequent pairs, the one that was found first is merged. Take the smaller left id, then the smaller right
  id: the result must not depend on the order of the words.
- the order in a pair ignored:  pairwise(word) -> map(tuple, map(sorted, pairwise(word)))
  The pairs (l, r) and (r, l) are counted as one. They are different: a merge replaces l followed by r.
- never too rare:  frequency[best] < min_count -> frequency[best] < 1
  `min_count` is not used: pairs are merged however rare they are. Stop when the most frequent pair occurs fewer than
  min_count times.
- min_count itself too rare:  frequency[best] < min_count -> frequency[best] <= min_count
  A pair that occurs exactly min_count times is not merged. It is frequent enough: stop only below min_count.
- one merge too few:  range(num_merges) -> range(num_merges - 1)
  There is one merge too few. Learn num_merges of them, as long as there are pairs.
- one merge too many:  range(num_merges) -> range(num_merges + 1)
  There is one merge too many. Stop after num_merges.
- ids one too large:  first_id + step -> first_id + step + 1
  The ids of the merges are one too large. The first merge has the id first_id itself.
- no end without pairs:  if not frequency: -> if step < 0:
  The loop goes on when no pair is left, and looks for the most frequent one among none. Stop there: every word is a
  single token.
"""
    + _MERGING,
)

# --- applying them ----------------------------------------------------------------------------------------------------


def apply_cases(rng):
    def drawn(label, words):
        def draw(rng):
            known = _words(rng)
            pairs = learn_merges(known, rng.integers(1, 60, size=len(known)).tolist(), 20, FIRST, 1)
            return Case(label, (words(rng, known), {pair: FIRST + i for i, pair in enumerate(pairs)}))

        return draw

    def long_word(rng, known):
        return [i for n in rng.integers(6, size=6) for i in known[n]]

    def in_a_row(rng):
        a, b, c = rng.permutation(np.arange(101, 123))[:3].tolist()
        return Case("a letter three times in a row", ([b, a, a, a, c, a, a, a], {(a, a): FIRST, (FIRST, a): FIRST + 1}))

    seen = (
        "the first pair from the left", "the latest merge first", "only one merge", "the smallest ids first",
        "the longest token first", "merged as soon as it can be",
    )  # fmt: skip
    plain = _drawn(rng, drawn("", long_word), APPLY, seen)
    one = Case("a word of one id", ([plain.arguments[0][0]], plain.arguments[1]))
    unknown = Case("a word without a merge", ([7, 8, 9], plain.arguments[1]))
    return [plain, _drawn(rng, in_a_row, APPLY, ("merged from right to left", "the right token kept")), one, unknown]


def view_ids(case, output):
    """The ids as one array, filled up with −1, as long as the word and two more."""
    width = len(case.arguments[0]) + 2
    ids = [int(i) for i in output][:width]
    return (np.array(ids + [-1] * (width - len(ids))),)


def apply_merges(ids, merges):
    ids = list(ids)
    for _ in range(len(ids)):  # a merge shortens the word; with two mistakes it may not, and the loop must end
        known = [pair for pair in pairwise(ids) if pair in merges]
        if not known:
            break
        pair = min(known, key=merges.get)
        ids = merged(ids, pair, merges[pair])
    return ids


def with_longest_tokens(ids, merges):
    """The ids cut from left to right, each time the longest token that fits. Used by a mistake only."""
    spelled = {i: (i,) for i in ids}
    for (left, right), new in sorted(merges.items(), key=lambda item: item[1]):
        spelled[new] = spelled.get(left, (left,)) + spelled.get(right, (right,))
    result, at = [], 0
    while at < len(ids):
        fits = [i for i, spelling in spelled.items() if tuple(ids[at : at + len(spelling)]) == spelling]
        result.append(max(fits, key=lambda i: len(spelled[i])))
        at += len(spelled[result[-1]])
    return result


APPLY = Exercise(
    bpe.apply_merges,
    results=(Result("ids", "token"),),
    cases=apply_cases,
    answer=apply_merges,
    hints=(
        "Two known pairs overlap in a word. Which of them was merged when the merges were learned?",
        "while some pair of adjacent ids is in merges: replace the pair with the smallest merges[pair] by "
        "merges[pair], wherever it stands",
        "Sennrich et al. 2016; learn_merges has the same loop, but the pair comes from `merges`, not from counting.",
    ),
    difficulty=2,
    section="Sennrich et al. 2016",
    chapter="Text and batches",
    place=2,
    view=view_ids,
    mistakes="""
- the first pair from the left:  min(known, key=merges.get) -> known[0]
  The known pair that stands first in the word is merged. Take the pair that was learned first, the one with the
  smallest merges[pair], wherever it stands.
- the latest merge first:  min(known, key=merges.get) -> max(known, key=merges.get)
  The merge that was learned last is applied first. Apply the merges in the order in which they were learned: the
  smallest merges[pair] first.
- the smallest ids first:  min(known, key=merges.get) -> min(known)
  The pair with the smallest ids is merged first. The order is that of the merges: compare merges[pair], not the pair.
- only one merge:  ids = merged(ids, pair, merges[pair]) -> return merged(ids, pair, merges[pair])
  Only one merge is applied. Look for known pairs again in the new ids, until there are none.
- the longest token first:  return with_longest_tokens(ids, merges)
  The word is cut into the longest tokens from left to right. Byte-pair encoding repeats the merges in the order in
  which they were learned, and that can give other tokens.
- merged as soon as it can be:
    result = []
    for i in ids:
        result.append(i)
        while len(result) > 1 and tuple(result[-2:]) in merges:
            result[-2:] = [merges[tuple(result[-2:])]]
    return result
  The word is read once, and the last two tokens are merged as soon as they are a known pair. A merge that was learned
  earlier may need one of them with the next token: take the smallest merges[pair] of the whole word.
- nothing merged:  return list(ids)
  The ids come back unchanged. Replace the pairs that are in `merges`.
- the pair instead of its id:  merged(ids, pair, merges[pair]) -> merged(ids, pair, pair[0])
  A pair is replaced by its left id. Replace it by the id of the merge, merges[pair].
"""
    + amended(_MERGING, without=["only the first place in a word"]),  # here it is found again
)

EXERCISES = [LEARN, APPLY]
