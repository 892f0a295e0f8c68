"""Word vectors in the two formats of the word2vec tool, text and binary, which gensim and fastText read and write too.

A header line "V D", the number of words and of numbers in each vector, then the words. As text, a line a word: the word
and D numbers, with spaces between them. Binary: the word, a space, D float32 (little-endian); the original tool puts a
line end behind each word's numbers, others do not.
"""

import mmap
from pathlib import Path

import numpy as np

from ..support.checks import as_float_array


def read_vectors(path, only=None):
    """The words of a file, a list, and their vectors, (V, D) float32. What the format is shows in the file, whatever
    its name.

    only: a function of a word: whether to keep it. Of a large file the rest takes no memory

    Raises FileNotFoundError, IsADirectoryError, and ValueError that says in which line (text), or at which word and
    byte (binary), a file is damaged: no header, another count or dimension than it says, a number that is none or not
    finite, a word that is empty, not UTF-8 or comes twice, an end too early or too late.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, expected a file of word vectors")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty, expected word vectors")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        V, D = _header(path, data)
        rows = _text_rows if _is_text(data, D) else _binary_rows
        words, kept, seen = [], [], set()
        for place, word, vector in rows(path, data, V, D):
            if not np.isfinite(vector).all():
                raise ValueError(f"{place}: the vector of {word!r} has a number that is not finite")
            if word in seen:
                raise ValueError(f"{place}: the word {word!r} comes a second time")
            seen.add(word)
            if only is None or only(word):
                words.append(word)
                kept.append(vector)
    return words, np.array(kept, np.float32).reshape(len(words), D)


def write_vectors(path, words, vectors, binary=False):
    """Write words and their vectors (V, D), as text or, with `binary`, in the binary format as the original tool does.

    The text has as many digits as float32 needs: reading gives back the same numbers.

    Raises ValueError, before anything is written, for a count that differs, a word that comes twice, is empty or has
    white space in it, and vectors that are not finite; OSError if the file cannot be written.
    """
    words, vectors = list(words), as_float_array(vectors, "vectors")
    if vectors.ndim != 2 or not vectors.size or len(vectors) != len(words):
        raise ValueError(f"vectors must have the shape ({len(words)}, D), a row for each word; got {vectors.shape}")
    vectors = vectors.astype("<f4")
    if not np.isfinite(vectors).all():
        raise ValueError(f"the vector of {words[int(np.argwhere(~np.isfinite(vectors))[0, 0])]!r} is not finite")
    seen = set()
    for word in words:
        if not isinstance(word, str) or word.split() != [word]:
            raise ValueError(f"a word in a file of vectors must not be empty or have white space in it, got {word!r}")
        if word in seen:
            raise ValueError(f"the word {word!r} comes twice")
        seen.add(word)
    with open(path, "wb") as file:
        file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for word, vector in zip(words, vectors, strict=True):
            numbers = vector.tobytes() if binary else " ".join(map(str, vector)).encode()
            file.write(word.encode() + b" " + numbers + b"\n")


def _header(path, data):
    """The V and D of the first line."""
    line = data[: max(0, data.find(b"\n", 0, 200)) or 200]
    parts = line.split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        numbers = parts[1:-1]  # the last may be cut off
        more = "; a file of GloVe has none: add it" if numbers and all(map(_is_number, numbers)) else ""
        raise ValueError(
            f"{path}, line 1: expected the header, the number of words and that of their dimensions, "
            f"got {_shown(line)}{more}"
        )
    V, D = map(int, parts)
    if not V or not D:
        raise ValueError(f"{path}, line 1: the header says {V} words of {D} dimensions: there is nothing to read")
    least = V * (2 * D + 1)  # bytes: a text of one letter and D digits in a line has the shortest rows
    if least > len(data):
        raise ValueError(
            f"{path}, line 1: the header says {V} words of {D} dimensions, which need {least:,} bytes at least, but "
            f"the file has {len(data):,}: it is cut off, or the header is wrong"
        )
    data.seek(data.find(b"\n") + 1)
    return V, D


_PRINTABLE = bytes(range(32, 127)) + b"\t\r\n"


def _is_text(data, D):
    """Whether the numbers of the first word are written out. As text they take 2D − 1 bytes at least, which all are
    printable; as float32 so many would hardly be, by chance."""
    start = data.find(b" ", data.tell()) + 1
    return not data[start : start + 2 * D - 1].translate(None, _PRINTABLE)


def _text_rows(path, data, V, D):
    """(place, word, vector) of each line."""
    number = 1
    while line := data.readline():
        number += 1
        place, (word, *numbers) = f"{path}, line {number}", line.rstrip(b" \r\n").split(b" ")
        if number > V + 1:
            if not line.strip() and not data[data.tell() :].strip():
                return
            raise ValueError(f"{place}: the header says {V} words, but there are more lines")
        if not word and not numbers:
            raise ValueError(f"{place} is empty, expected a word and {D} numbers")
        word = _decoded(word, place)
        if len(numbers) != D:
            raise ValueError(f"{place}: expected {D} numbers behind {word!r}, as the header says, got {len(numbers)}")
        try:
            with np.errstate(over="ignore"):  # infinity is refused where the number is looked at
                vector = np.array(numbers, np.float32)
        except ValueError:
            wrong = next(text for text in numbers if not _is_number(text))
            raise ValueError(f"{place}: {_shown(wrong)} is not a number") from None
        yield place, word, vector
    if number < V + 1:
        raise ValueError(f"{path}, line {number}: the file ends after {number - 1} words, the header says {V}")


def _binary_rows(path, data, V, D):
    """(place, word, vector) of each word."""
    position, size = data.tell(), 4 * D
    for number in range(1, V + 1):
        while data[position : position + 1] == b"\n":  # behind the numbers of the word before
            position += 1
        place = f"{path}, word {number} at byte {position}"
        end = data.find(b" ", position)
        if end < 0 or end + 1 + size > len(data):
            raise ValueError(f"{place}: the file ends in it, the header says {V} words of {D} dimensions")
        word = _decoded(data[position:end], f"{place} (is the dimension in the header, {D}, right?)")
        position = end + 1 + size
        yield place, word, np.frombuffer(data[end + 1 : position], "<f4")
    if rest := data[position:].strip(b"\r\n"):
        raise ValueError(
            f"{path}, byte {position}: {len(rest)} bytes too many, the header says {V} words of {D} numbers"
        )


def _decoded(word, place):
    """The bytes of a word as text. Behind a wrong dimension there are bytes of numbers, such as 0 and 1."""
    try:
        text = word.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{place}: the word {_shown(word)} is not UTF-8") from None
    if not text or min(text) < " ":
        raise ValueError(f"{place}: expected a word, got {_shown(word)}")
    return text


def _is_number(text):
    try:
        return np.isscalar(float(text))
    except ValueError:
        return False


def _shown(raw, most=40):
    """Some bytes for an error message."""
    return repr(bytes(raw[:most]))[1:] + (" …" if len(raw) > most else "")
