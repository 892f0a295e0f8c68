"""A batch of windows of a text."""

import numpy as np

from ...data import text
from ..exercise import Case
from .sheet import Sheet

SHEET = Sheet(__file__)

DRAWN = 64  # batches: enough for every start to occur


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
    """Many batches, or the first output that is not a pair."""
    batches = []
    for _ in range(DRAWN):
        output = answer(ids, block_size, batch_size, rng)
        if not isinstance(output, tuple | list) or len(output) != 2:
            return output
        batches.append([np.array(part) for part in output])
    return batches


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
    SHEET.exercise(
        text.text_windows, text_windows, windows_cases,
        {"inputs": "B T", "targets": "B T", "the starts of the windows": "place"},
        drive=drive_windows, view=view_windows,
    ),
]  # fmt: skip
