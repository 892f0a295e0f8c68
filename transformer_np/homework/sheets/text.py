"""A text as ids and batches: byte-pair encoding, and windows drawn from a text."""

from itertools import pairwise

import numpy as np

from ...data import bpe, text
from ..exercise import Case
from .draws import pairs
from .sheet import Sheet

SHEET = Sheet(__file__)

FIRST = 260  # the id of the first merge: letters are below it
DRAWN = 64  # batches: enough for every start to occur


def _letters(rng, number=3):
    """Different ids of letters."""
    return [int(i) for i in rng.permutation(np.arange(101, 123))[:number]]


def _words(rng, words=14):
    """Different words of ids, of one to three syllables that they share, so that some pairs are frequent."""
    ids = _letters(rng, 5)
    found, parts = {}, []
    while all(a + b == b + a for a in parts for b in parts):  # aa, a: too few different words are made of these
        parts = [rng.choice(ids, size=int(rng.integers(1, 4))).tolist() for _ in range(6)]
    while len(found) < words:
        word = [i for n in rng.integers(6, size=int(rng.integers(1, 4))) for i in parts[n]]
        found[tuple(word)] = word
    return list(found.values())


def _drawn(draw, exercise, differ, agree=()):
    """A case of `draw()` in which the mistakes of `differ` change the result, each in another way, and those of `agree`
    do not."""

    def result(*mistakes):
        return exercise.variant(mistakes)(*case.arguments, **case.options)

    while True:
        case = draw()
        if all(result(name) == result() for name in agree):
            results = [result(), *map(result, differ)]
            if all(one not in results[:n] for n, one in enumerate(results)):
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


# --- learning the merges ----------------------------------------------------------------------------------------------

_TIES = (
    "the larger ids among equals", "the first found among equals", "the larger right id among equals",
    "the larger left id among equals",
)  # fmt: skip
_SEEN_WHERE_PLAIN = (
    "counts not used", "a pair counts once per word", "the rarest pair", "words not changed",
    "all merges from one count", "one merge too few",
    "one merge too many", "ids one too large", "frequencies not reset", "the order in a pair ignored",
    "broken pairs stay counted",
)  # fmt: skip

_SEEN_WHERE_RARE = (
    "never too rare", "min_count itself too rare", "only the first place in a word", "rare words left out",
    "min_count compared with the number of words",
)  # fmt: skip


def learn_cases(rng):
    def case(label, words, most, num_merges, **options):  # most: the counts are below it; None: a drawn number
        counts = rng.integers(1, most, size=len(words)).tolist()
        return Case(label, (words, counts, num_merges or int(rng.integers(5, 9)), FIRST), options)

    def in_a_row():
        a, b, c = _letters(rng)
        return case("a letter three times in a row", [[b, a, a, a, c], [a, a, a], [c, a, a, a, a, b], [b, c]], 60, 2)

    def few():
        a, b, c = _letters(rng)
        return Case("no pair left at min_count=1", ([[a, b], [c], [b, a, b]], [3, 4, 5], 9, FIRST), {"min_count": 1})

    digits = [[12, 1, 12], [11, 12, 1, 2], [1, 12, 11, 12]]
    usual = _drawn(lambda: case("", _words(rng), 1000, None), LEARN, _SEEN_WHERE_PLAIN, _TIES)
    return [
        usual,
        Case("first_id=300", (*usual.arguments[:3], 300)),
        _drawn(lambda: Case("equally frequent pairs", (_words(rng, words=9), [3] * 9, 5, FIRST)), LEARN, _TIES),
        _drawn(lambda: case("min_count=12", _words(rng), 16, 60, min_count=12), LEARN, _SEEN_WHERE_RARE, _TIES),
        _drawn(in_a_row, LEARN, ("the right token kept", "merged from right to left"), _TIES),
        few(),
        _drawn(
            lambda: case("ids of one and two digits", digits, 60, 2), LEARN, ("digits of other ids replaced",), _TIES
        ),
    ]


def view_merges(case, output):
    """The pairs as one array, filled up with −1, with two rows more than a right answer can have."""
    if not isinstance(output, list | tuple):
        raise TypeError("the merges are a list")
    most = case.arguments[2] + 2
    rows = [list(map(int, pair)) for pair in output][:most]
    return (np.array(rows + [[-1] * len(rows[0] if rows else "lr")] * (most - len(rows))),)


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


LEARN = SHEET.exercise(bpe.learn_merges, learn_merges, learn_cases, {"merges": "merge side"}, view=view_merges)

# --- applying them ----------------------------------------------------------------------------------------------------


def apply_cases(rng):
    def long_word():
        known = _words(rng)
        pairs = learn_merges(known, rng.integers(1, 60, size=len(known)).tolist(), 20, FIRST, 1)
        word = [i for n in rng.integers(6, size=6) for i in known[n]]
        return Case("", (word, {pair: FIRST + i for i, pair in enumerate(pairs)}))

    def in_a_row():
        a, b, c = _letters(rng)
        return Case("a letter three times in a row", ([b, a, a, a, c, a, a, a], {(a, a): FIRST, (FIRST, a): FIRST + 1}))

    seen = (
        "the first pair from the left", "the latest merge first", "only one merge", "the smallest ids first",
        "the longest token first", "merged as soon as it can be",
    )  # fmt: skip
    plain = _drawn(long_word, APPLY, seen)
    word, merges = plain.arguments
    steps = {(5, 6): FIRST, (FIRST, 7): FIRST + 1, (FIRST + 1, 8): FIRST + 2}
    return [
        plain,
        _drawn(in_a_row, APPLY, ("merged from right to left", "the right token kept")),
        Case("a word of one id", ([word[0]], merges)),
        Case("a word without a merge", (word, {(7, 8): FIRST})),  # what is kept of a word is old
        Case("the merges in another order", (word, dict(reversed(merges.items())))),
        Case("merges that build on each other", ([5, 6, 7, 8], steps)),
        Case("ids of one and two digits", ([11, 12, 1, 12], {(1, 12): FIRST, (11, 12): FIRST + 1})),
    ]


def view_ids(case, output):
    """The ids as one array, filled up with −1, as long as the word and two more."""
    if isinstance(output, tuple):
        raise TypeError("the ids are a list")
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


APPLY = SHEET.exercise(bpe.apply_merges, apply_merges, apply_cases, {"ids": "token"}, view=view_ids)


# --- windows of a text ------------------------------------------------------------------------------------------------


def windows_cases(rng):
    def case(label, T, B, starts):
        ids = rng.permutation(np.arange(100, 400))[: T + starts]
        return Case(label, (ids, T, B, np.random.default_rng(rng.integers(2**31))), sizes={"T": T, "B": B})

    return [
        case("", int(rng.integers(5, 9)), int(rng.integers(4, 7)), int(rng.integers(8, 13))),
        case("one window", 3, 1, 4),
        case("a text of one window and the token after it", 4, 3, 1),
        case("more rows than starts", 3, 12, 4),
    ]


def drive_windows(answer, ids, block_size, batch_size, rng):
    """Many batches."""
    return pairs(answer(ids, block_size, batch_size, rng) for _ in range(DRAWN))


def view_windows(case, batches):
    """What every right answer has in common, whatever its random numbers.

    inputs, targets: the places in the text that the first batch shows, counted from the start of each row
    starts: whether windows start at each place, and facts about how the starts of one batch belong together
    """
    ids, block_size, rows, _ = case.arguments
    if not isinstance(batches, list) or len(batches) != DRAWN or not all(len(pair) == 2 for pair in batches):
        raise ValueError("no pairs of inputs and targets")
    inputs, targets = (np.array(part) for part in batches[0])
    starts = [_places(np.atleast_2d(pair[0])[:, 0], ids) for pair in batches]
    if inputs.ndim == 2:
        begin = _places(inputs, ids)[:, :1]
        inputs = _places(inputs, ids) - begin
        targets = _places(targets, ids) - (begin if targets.ndim == 2 and len(targets) == len(begin) else 0)
    seen = np.isin(np.arange(len(ids)), np.concatenate(starts))
    facts = [all((own == starts[0]).all() for own in starts if own.shape == starts[0].shape)]
    if rows > 1:
        steps = [np.diff(own) % (len(ids) - block_size) for own in starts]  # from row to row
        facts += [all((step == n).all() for step in steps) for n in (0, 1, block_size % (len(ids) - block_size))]
        facts += [all(len(set(own.tolist())) == len(own) for own in starts)]
        facts += [all((np.diff(own) >= 0).all() for own in starts)]
    if 1 < len(ids) - block_size < rows:  # then the starts occur often enough to tell
        found = np.concatenate(starts)
        often = np.bincount(found[found >= 0], minlength=len(ids))[: len(ids) - block_size]
        facts += [((often - often.mean()) ** 2).sum() > 40 * often.mean()]  # χ², by chance once in 10⁸
    return inputs, targets, np.array([*seen, *facts], float)


def _places(part, ids):
    """Where the ids of an array stand in the text, −1000 for a number that is not in it."""
    place = {int(i): n for n, i in enumerate(ids)}
    return np.array([place.get(int(i), -1000) for i in part.reshape(-1)]).reshape(part.shape)


def text_windows(ids, block_size, batch_size, rng):
    starts = rng.integers(len(ids) - block_size, size=batch_size)
    inputs = np.stack([ids[s : s + block_size] for s in starts])
    targets = np.stack([ids[s + 1 : s + 1 + block_size] for s in starts])
    return inputs, targets


EXERCISES = [
    LEARN, APPLY,
    SHEET.exercise(
        text.text_windows, text_windows, windows_cases,
        {"inputs": "B T", "targets": "B T", "the starts of the windows": "place"},
        drive=drive_windows, view=view_windows,
    ),
]  # fmt: skip
