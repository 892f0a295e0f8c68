"""Texts of any size: read from the file in parts, with their tokens in another file that is mapped into memory."""

import tempfile
from copy import copy
from pathlib import Path

import numpy as np

from ..support.checks import short
from ..support.progress import progress
from .files import read_utf8

LARGE = 1 << 24  # bytes of a file, characters of a text: a larger one stays on disk
PART = 1 << 20  # characters


class LargeText:
    """The text of a UTF-8 file, with "\\n" as line end, read whenever it is needed. Its length and its slices are those
    of the string; slices are LargeTexts too.

    Raises ValueError with line and column for a byte that is not UTF-8.
    """

    def __init__(self, path):
        self.path = Path(path).absolute()
        self._start, self._end = 0, sum(map(len, self._read()))  # characters of the file

    def __len__(self):
        return self._end - self._start

    def __getitem__(self, part):
        start, end, step = part.indices(len(self))
        if step != 1:
            raise ValueError(f"a slice of a large text must have the step 1, got {step}")
        text = copy(self)
        text._start, text._end = self._start + start, self._start + max(start, end)
        return text

    def __repr__(self):
        return f"<LargeText: characters {self._start:,} … {self._end:,} of {self.path}>"

    def strings(self):
        """Yield the text as strings of about PART characters."""
        place = 0  # of the string in the file
        for string in self._read():
            cut = string[max(0, self._start - place) : max(0, self._end - place)]
            place += len(string)
            if cut:
                yield cut
            if place >= self._end:
                return
        raise ValueError(f"{self.path} became shorter while it was read: it had {self._end:,} characters")

    def _read(self):
        try:
            with open(self.path, encoding="utf-8-sig") as file:  # without the byte order mark of some editors
                while string := file.read(PART):
                    yield string
        except UnicodeDecodeError:
            read_utf8(self.path)  # raises the error with the place
            raise


def parts(text):
    """Yield a string or a LargeText in parts of about PART characters.

    A part ends before white space that follows another character. No token of a character or byte-pair tokenizer
    crosses such a place, and no accent does, so the tokens of the parts are those of the whole text. A text without
    white space is one part.
    """
    rest = []
    strings = (text[start : start + PART] for start in range(0, len(text), PART))
    for string in text.strings() if isinstance(text, LargeText) else strings:
        end = max(string.rfind(" "), string.rfind("\n"))
        while end > 0 and string[end - 1].isspace():
            end -= 1
        if end > 0:
            yield "".join([*rest, string[:end]])
            rest, string = [], string[end:]
        rest.append(string)
    if any(rest):
        yield "".join(rest)


def encode_text(tokenizer, text):
    """The ids of a string or a LargeText, (n,), in the smallest unsigned type. The ids of a large text are in a
    temporary file, which is deleted with the array.

    The ids are those of tokenizer.encode(text) for a tokenizer of characters or byte pairs; see `parts`.
    """
    if isinstance(tokenizer, str | bytes) or not hasattr(tokenizer, "encode"):  # a string has an `encode` of its own
        raise TypeError(f"tokenizer must be a tokenizer, such as a CharTokenizer; got {short(tokenizer)}")
    dtype = np.min_scalar_type(len(tokenizer) - 1)
    some = progress(parts(text), "tokenizing", total=-(-len(text) // PART), least=2)
    arrays = (np.array(tokenizer.encode(part), dtype) for part in some)
    if len(text) <= LARGE:
        return np.concatenate([np.zeros(0, dtype), *arrays])
    with tempfile.TemporaryFile() as file:
        for array in arrays:
            file.write(array.data)
        file.flush()
        return np.asarray(np.memmap(file, dtype, "r"))
