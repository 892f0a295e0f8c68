"""Plain text: read from the user's file or from Python's own help, split in two, cut into windows for a model."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..support.checks import as_text_ids, check_all_at_least, check_at_least, check_number
from ..support.counts import counted
from . import large
from .batching import Lazy
from .files import read_utf8


def read_text(path):
    """Read a UTF-8 text file as one string, with "\\n" as line end.

    Raises FileNotFoundError, IsADirectoryError, and ValueError for a file that is empty or not UTF-8.
    """
    text = read_utf8(path)
    if not text.strip():
        raise ValueError(f"{path} has no text")
    return text


def open_text(path):
    """The text of a file: as `read_text`, or a LargeText if the file is large. Raises the errors of read_text."""
    path = Path(path)
    if not path.is_file() or path.stat().st_size <= large.LARGE:
        return read_text(path)
    text = large.LargeText(path)
    if not any(string.strip() for string in text.strings()):
        raise ValueError(f"{path} has no text")
    return text


def documentation_text():
    """Python's built-in help on the language, by topic in alphabetical order: about 450,000 characters of English that
    exist on every machine. The text differs slightly between versions of Python."""
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name].strip() for name in sorted(topics)) + "\n"


@dataclass(frozen=True)
class TextSplit:
    """The beginning of a text, for training, and the rest, for validation; of a large file two LargeTexts."""

    train: str | large.LargeText
    validation: str | large.LargeText


def split_text(text, validation=0.1):
    """Cut a text in two; `validation` is the share of its characters, at the end, for validation.

    Raises ValueError for a share outside (0, 1), and for a text too short for two parts.
    """
    check_number("validation", validation, "(0, 1)")
    end = int(len(text) * (1 - validation))
    if not 0 < end < len(text):
        raise ValueError(f"the text is too short to split in two: it has {counted(len(text), 'character')}")
    return TextSplit(text[:end], text[end:])


@dataclass(frozen=True)
class TextBatch:
    """A batch of windows, ids (B, T), and the token after each id, targets (B, T): targets[t] is ids[t + 1]."""

    ids: np.ndarray
    targets: np.ndarray


class TextBatches:
    """A text as an endless sequence of batches: `batch(step)` for step = 0, 1, 2, …

    A batch is `batch_size` windows of `block_size` tokens that start anywhere in the text. It depends only on
    the text, batch_size, block_size, seed and step, so a resumed training run gets exactly the batches it would have
    had.

        batches = TextBatches(tokenizer.encode(text), block_size=64, batch_size=12)
        batches.batch(0).ids                              # (12, 64)

    ids: the whole text, (n,), of any integer type; it may be a file in memory (np.memmap)

    Raises ValueError for sizes below 1 and for a text too short for one block and the token after it; TypeError for ids
    that are not whole numbers.
    """

    def __init__(self, ids, block_size, batch_size, seed=0):
        self.ids = _checked(ids, block_size, batch_size)
        check_at_least("seed", seed, 0)
        self.block_size, self.batch_size, self.seed = block_size, batch_size, seed
        if len(self.ids) <= block_size:
            needed = f"a block of {block_size} and the token after it need {block_size + 1}"
            text = f"the training text has {len(self.ids)} tokens"
            raise ValueError(f"{text}, but {needed}: pass a longer text or a smaller block_size")

    def batch(self, step):
        """The batch of a training step, counted from 0."""
        check_at_least("step", step, 0)
        rng = np.random.default_rng([self.seed, step])
        windows = text_windows(self.ids, self.block_size, self.batch_size, rng)
        return TextBatch(*(part.astype(np.intp, copy=False) for part in windows))


def text_windows(ids, block_size, batch_size, rng):
    """Get a batch: windows of a text that start anywhere, and the token after each of their tokens.

        inputs[b, t] = ids[s_b + t],    targets[b, t] = ids[s_b + t + 1]

    ids (n,), the whole text; block_size T < n; batch_size B; rng draws the starts s_b, each of 0 … n − T − 1 with the
    same probability and independently of the others

    ->  inputs (B, T), targets (B, T)
    """
    starts = rng.integers(len(ids) - block_size, size=batch_size)
    windows = ids[starts[:, None] + np.arange(block_size + 1)]  # (B, T + 1)
    return windows[:, :-1], windows[:, 1:]


def validation_batches(ids, block_size, batch_size):
    """A whole text in consecutive windows, so that every token but the first is predicted exactly once: a sequence of
    TextBatch, each made on demand. The rest at the end is a shorter window in a batch of its own.

    Raises ValueError for sizes below 1 and for fewer than two tokens.
    """
    ids = _checked(ids, block_size, batch_size)
    if len(ids) < 2:
        found = counted(len(ids), "token")
        raise ValueError(f"the validation text has {found}, but at least 2 are needed: pass a longer text")
    full, rest = divmod(len(ids) - 1, block_size)  # windows, and tokens of the shorter one

    def batch(start):
        """The batch that begins with this window."""
        number = min(batch_size, full - start)
        shape = (number, block_size) if number else (1, rest)
        begin, size = start * block_size, shape[0] * shape[1]
        tokens = ids[begin : begin + size + 1].astype(np.intp)
        return TextBatch(tokens[:-1].reshape(shape), tokens[1:].reshape(shape))

    return Lazy(batch, [*range(0, full, batch_size), *([full] if rest else [])])


def _checked(ids, block_size, batch_size):
    check_all_at_least(1, block_size=block_size, batch_size=batch_size)
    return as_text_ids(ids)
