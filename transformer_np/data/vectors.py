"""Word vectors in the two formats of the word2vec tool, text and binary, which gensim and fastText also read and write.

The header line "V D" gives the number of words and the dimension of the vectors. The text format then has one line per
word: the word and D numbers, separated by spaces. The binary format has the word, a space and D float32
(little-endian); the original tool adds a line end after the numbers of each word, others do not.
"""

import mmap
import re
from pathlib import Path

import numpy as np

from ..support.checks import as_float_array, check_flag
from ..support.files import check_is_file, write_atomically
from ..support.progress import progress


def read_vectors(path, only=None):
    """The words of a file, a list, and their vectors, (V, D) float32. The format is recognized from the content of the
    file, not from its name.

    only: a function that decides for each word whether to keep it; the other words of a large file take no memory

    Raises FileNotFoundError, IsADirectoryError, and ValueError with the line (text) or the word and byte (binary) where
    a file is damaged: no header, a wrong count or dimension, an invalid or non-finite number, a word that is empty, not
    UTF-8 or duplicated, a missing or extra end.
    """
    path = Path(path)
    check_is_file(path, "a file of word vectors")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty, expected word vectors")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        V, D = _header(path, data)
        rows = _text_rows if _is_text(data, D) else _binary_rows
        words, kept, seen = [], [], set()
        for place, word, vector in progress(rows(path, data, V, D), "reading vectors", V):
            if not np.isfinite(vector).all():
                raise ValueError(f"{place}: the vector of {word!r} is not finite")
            if word in seen:
                raise ValueError(f"{place}: the word {word!r} is a duplicate")
            seen.add(word)
            if only is None or only(word):
                words.append(word)
                kept.append(vector)
    return words, np.array(kept, np.float32).reshape(len(words), D)


def write_vectors(path, words, vectors, binary=False):
    """Write words and their vectors (V, D) in the text format or, with `binary`, in the binary format of the original
    tool.

    The text format has enough digits to read back exactly the same float32.

    Raises ValueError, before writing anything, for different numbers of words and vectors, a word that is duplicated,
    empty or has white space, and vectors that are not finite; OSError if the file cannot be written.
    """
    check_flag("binary", binary)
    words, vectors = list(words), as_float_array(vectors, "vectors")
    if vectors.ndim != 2 or not vectors.size or len(vectors) != len(words):
        raise ValueError(f"vectors must have the shape ({len(words)}, D), one row per word; got {vectors.shape}")
    vectors = vectors.astype("<f4")
    if not np.isfinite(vectors).all():
        raise ValueError(f"the vector of {words[int(np.argwhere(~np.isfinite(vectors))[0, 0])]!r} is not finite")
    seen = set()
    for word in words:
        if not isinstance(word, str) or not word or min(word) <= " ":  # other blanks, such as U+00A0, belong to words
            raise ValueError(f"words must be strings without spaces and line ends, and not empty; got {word!r}")
        if word in seen:
            raise ValueError(f"words must be distinct, but {word!r} is a duplicate")
        seen.add(word)

    def write(temporary):
        with open(temporary, "wb") as file:
            file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
            for word, vector in zip(words, vectors, strict=True):
                numbers = vector.tobytes() if binary else " ".join(map(str, vector)).encode()
                file.write(word.encode() + b" " + numbers + b"\n")

    write_atomically(path, write)


BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # of some editors


def _header(path, data):
    """V and D from the first line."""
    start = len(BYTE_ORDER_MARK) if data[: len(BYTE_ORDER_MARK)] == BYTE_ORDER_MARK else 0
    line = data[start:200].partition(b"\n")[0]
    parts = line.split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        numbers = parts[1:-1]  # the last may be cut off
        more = "; GloVe files have no header: add one" if numbers and all(map(_is_number, numbers)) else ""
        header = "the header, the number of words and the dimension of their vectors"
        raise ValueError(f"{path}, line 1: expected {header}, got {_shown(line)}{more}")
    V, D = map(int, parts)
    if not V or not D:
        raise ValueError(f"{path}, line 1: the header says {V} words of {D} dimensions; both must be at least 1")
    least = V * (2 * D + 1)  # bytes: the shortest row is a line of one letter and D digits
    if least > len(data):
        says = f"the header says {V} words of {D} dimensions, which need at least {least:,} bytes"
        has = f"the file has {len(data):,}: it is cut off, or the header is wrong"
        raise ValueError(f"{path}, line 1: {says}, but {has}")
    data.seek(data.find(b"\n") + 1)
    return V, D


_PRINTABLE = bytes(range(32, 127)) + b"\t\r\n"


def _is_text(data, D):
    """Whether the numbers of the first word are text. As text they take at least 2D − 1 bytes, all printable; that many
    bytes of float32 would hardly all be printable by chance. With few dimensions, more of the file is checked."""
    start = data.find(b" ", data.tell()) + 1
    if D > 3:
        return not data[start : start + 2 * D - 1].translate(None, _PRINTABLE)
    beginning = data[start : start + 4000]
    numbers = beginning.split(b"\n")[0].split()
    as_asked = len(numbers) == D and all(map(_is_number, numbers))
    utf8 = "\ufffd" not in beginning.decode("utf-8", "replace").rstrip("\ufffd")  # the last character may be incomplete
    return (as_asked or utf8) and not re.search(rb"[\0-\x08\x0e-\x1f]", beginning)


def _text_rows(path, data, V, D):
    """Yield (place, word, vector) for each line."""
    for number in range(2, V + 2):
        place, line = f"{path}, line {number}", data.readline()
        if not line:
            raise ValueError(f"{path}, line {number - 1}: the file ends after {number - 2} words, the header says {V}")
        word, *numbers = line.rstrip(b" \r\n").split(b" ")
        if not word and not numbers:
            raise ValueError(f"{place} is empty, expected a word and {D} numbers")
        word = _decoded(word, place)
        if len(numbers) != D:
            raise ValueError(f"{place}: expected {D} numbers after {word!r}, as the header says, got {len(numbers)}")
        try:
            with np.errstate(over="ignore"):  # the caller refuses infinity
                vector = np.array(numbers, np.float32)
        except ValueError:
            wrong = next(text for text in numbers if not _is_number(text))
            raise ValueError(f"{place}: {_shown(wrong)} is not a number") from None
        yield place, word, vector
    if data[data.tell() :].strip():
        raise ValueError(f"{path}, line {V + 2}: the header says {V} words, but there are more lines")


def _binary_rows(path, data, V, D):
    """Yield (place, word, vector) for each word."""
    position, size = data.tell(), 4 * D
    for number in range(1, V + 1):
        while data[position : position + 1] == b"\n":  # the line end of the previous word
            position += 1
        place = f"{path}, word {number} at byte {position}"
        end = data.find(b" ", position)
        if end < 0 or end + 1 + size > len(data):
            says = f"the header says {V} words of {D} dimensions"
            raise ValueError(f"{place}: the file ends within this word, but {says}")
        word = _decoded(data[position:end], f"{place} (is the dimension in the header, {D}, right?)")
        position = end + 1 + size
        yield place, word, np.frombuffer(data[end + 1 : position], "<f4")
    if rest := data[position:].strip(b"\r\n"):
        says = f"the header says {V} words of {D} numbers"
        raise ValueError(f"{path}, byte {position}: {len(rest)} bytes too many, {says}")


def _decoded(word, place):
    """The bytes of a word as text. If the header has a wrong dimension, they are bytes of numbers, such as 0x00."""
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
    """The beginning of some bytes, for an error message."""
    return repr(bytes(raw[:most]))[1:] + (" …" if len(raw) > most else "")
