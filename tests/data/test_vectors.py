"""Word vectors in files: the formats byte by byte, and every way in which a file can be damaged."""

import struct

import numpy as np
import pytest

from transformer_np.data import read_vectors, write_vectors

WORDS = ["the", "naïve", "东京"]
VECTORS = np.array([[1.5, -2, 0.1], [0, 3e-8, 1e20], [-0.25, 7, 1 / 3]], np.float32)
TEXT = "3 3\nthe 1.5 -2.0 0.1\nnaïve 0.0 3e-08 1e+20\n东京 -0.25 7.0 0.33333334\n".encode()


def floats(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


ROWS = [word.encode() + b" " + floats(*vector) for word, vector in zip(WORDS, VECTORS, strict=True)]
BINARY = b"3 3\n" + b"".join(row + b"\n" for row in ROWS)
NO_HEADERS = b"\n", b"3\n", b"three 3\n", b"-3 3\n", b"\x00\xff" * 300
NOT_FINITE = b"nan", b"-inf", b"1e+99"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "vectors"


def reading(path, content, **options):
    path.write_bytes(content)
    return read_vectors(path, **options)


@pytest.mark.parametrize("binary, content", [(False, TEXT), (True, BINARY)])
def test_what_is_written(path, binary, content):
    write_vectors(path, WORDS, VECTORS, binary)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "content",
    [
        TEXT,
        BINARY,
        b"3 3\n" + b"".join(ROWS),  # as gensim writes it
        TEXT.replace(b"\n", b" \n"),  # as the original tool ends its lines
        TEXT.replace(b"\n", b"\r\n"),
        TEXT.rstrip(b"\n"),
        TEXT + b"\n\n",
        BINARY.rstrip(b"\n"),
        BINARY.replace(b"3 3\n", b" 3\t3 \n"),
        TEXT.replace(b"1.5", b"+15e-1"),
    ],
)
def test_what_is_read(path, content):
    words, vectors = reading(path, content)
    assert words == WORDS and vectors.dtype == np.float32 and np.array_equal(vectors, VECTORS)


def test_numbers_that_look_like_text_and_line_ends(path):
    """Bytes of floats may be any bytes: here spaces, line ends and digits."""
    tricky = np.frombuffer(b"\n\n\x00 1\n\n2\n3 4\n\n\n 0000 1\n ", "<f4").reshape(2, 3)
    for end in (b"\n", b""):
        words, vectors = reading(path, b"2 3\na " + tricky[0].tobytes() + end + b"b " + tricky[1].tobytes() + end)
        assert words == ["a", "b"] and np.array_equal(vectors, tricky)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("V, D", [(1, 1), (12, 1), (1, 300), (40, 2), (12, 3), (12, 4), (300, 25)])
def test_there_and_back(path, binary, V, D):
    """Words of real files have blanks that are no spaces; a float32 may consist of printable bytes."""
    rng = np.random.default_rng(V)
    vectors = (rng.normal(size=(V, D)) * 10.0 ** rng.integers(-6, 6, size=(V, 1))).astype(np.float32)
    vectors[0, 0] = np.frombuffer(b"1.25", "<f4")[0] if V > 1 else vectors[0, 0]
    words = ["a\u00a0b", "c\u2003d", *(f"word_{i}" for i in range(V))][:V]
    write_vectors(path, words, vectors, binary)
    for mark in (b"", b"\xef\xbb\xbf")[: 1 if binary else 2]:  # a text may begin with a byte order mark
        path.write_bytes(mark + path.read_bytes())
        found, read = read_vectors(path)
        assert found == words and np.array_equal(read, vectors)


@pytest.mark.parametrize("content", [TEXT, BINARY])
def test_only_some_words(path, content):
    words, vectors = reading(path, content, only={"东京", "the", "else"}.__contains__)
    assert words == ["the", "东京"] and np.array_equal(vectors, VECTORS[[0, 2]])
    words, vectors = reading(path, content, only=lambda word: False)
    assert words == [] and vectors.shape == (0, 3)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "is empty"),
        *((text, "line 1: expected the header") for text in NO_HEADERS),
        (b"the 1.5 -2.0\n", r"line 1: expected the header.*got 'the 1\.5 -2\.0'; GloVe files have no header"),
        (b"0 3\n", "line 1: the header says 0 words"),
        (b"3 0\n", "line 1: the header says 3 words of 0 dimensions"),
        (b"3 3\n", "line 1: the header says 3 words of 3 dimensions, which need at least 21 bytes"),
        (b"3 3", "line 1: the header says 3 words"),
        (b"999999999999 300\nthe 1 2\n", "line 1: the header says 999999999999 words"),
        # text
        (TEXT.replace(b"3 3", b"2 3"), "line 4: the header says 2 words, but there are more"),
        (TEXT.replace(b"3 3", b"4 3"), "line 4: the file ends after 3 words, the header says 4"),
        (TEXT.replace(b"3 3", b"3 2"), "line 2: expected 2 numbers after 'the', as the header says, got 3"),
        (TEXT.replace(b"3 3", b"3 4"), "line 2: expected 4 numbers after 'the', as the header says, got 3"),
        (TEXT.replace(b" 3e-08", b""), "line 3: expected 3 numbers after 'naïve', as the header says, got 2"),
        (TEXT.replace(b"3e-08", b"3e-0b"), "line 3: '3e-0b' is not a number"),
        (TEXT.replace(b"1.5", b"one"), "line 2: 'one' is not a number"),
        (TEXT.replace(b" 7.0", b"  7.0"), "line 4: expected 3 numbers"),
        *((TEXT.replace(b"1e+20", x), "line 3: the vector of 'naïve' is not finite") for x in NOT_FINITE),
        (TEXT.replace("东京".encode(), b"the"), "line 4: the word 'the' is a duplicate"),
        (TEXT.replace("naïve".encode(), "naïve".encode("latin-1")), r"line 3: the word 'na\\xefve' is not UTF-8"),
        (TEXT.replace("naïve".encode(), b""), "line 3: expected a word, got ''"),
        (TEXT.replace("\nnaïve".encode(), "\n\nnaïve".encode()), "line 3 is empty"),
        (TEXT[:-20], "line 4: expected 3 numbers after '东京', as the header says, got [12]"),
        # binary
        (BINARY.replace(b"3 3\n", b"2 3\n"), "byte 40: 19 bytes too many, the header says 2 words"),
        (BINARY.replace(b"3 3\n", b"4 3\n"), "word 4 at byte 61: the file ends within this word"),
        (BINARY.replace(b"3 3\n", b"3 2\n"), "word 2 at byte 16 .is the dimension in the header, 2, right"),
        (BINARY[:-6], "word 3 at byte 41: the file ends within this word, but the header says 3 words of 3 dimensions"),
        (BINARY[:42], "word 3 at byte 41: the file ends within this word"),
        (b"2 3\na " + floats(1, 2, 3) + b"b " + floats(1, np.nan, 3), "word 2 at byte 18: the vector of 'b' is"),
        (b"2 3\na " + floats(1, 2, 3) + b"a " + floats(1, 2, 3), "word 2 at byte 18: the word 'a' is a dup"),
        (b"2 3\na " + floats(1, 2, 3) + b"\xff " + floats(1, 2, 3), r"word 2 at byte 18.*'\\xff' is not UTF-8"),
        (b"2 3\na " + floats(1, 2, 3) + b" " + floats(1, 2, 3) + b"\n", "word 2 at byte 18.*expected a word, got ''"),
    ],
)
def test_damaged_files(path, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        reading(path, content)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "words, vectors, message",
    [
        (WORDS[:2], VECTORS, r"vectors must have the shape \(2, D\), one row per word; got \(3, 3\)"),
        (WORDS, VECTORS[0], r"vectors must have the shape \(3, D\)"),
        ([], np.zeros((0, 3)), r"vectors must have the shape \(0, D\)"),
        (["the", "new york", "x"], VECTORS, "without spaces and line ends, and not empty; got 'new york'"),
        (["the", "", "x"], VECTORS, "and not empty; got ''"),
        (["the", "x\n", "x"], VECTORS, "without spaces"),
        (["the", "x", "the"], VECTORS, "'the' is a duplicate"),
        (WORDS, np.where(VECTORS == 7, np.inf, VECTORS), "the vector of '东京' is not finite"),
        (WORDS, np.where(VECTORS == 7, 1e300, VECTORS.astype(float)), "the vector of '东京' is not finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
def test_what_cannot_be_written(path, words, vectors, message):
    with pytest.raises(ValueError, match=message):
        write_vectors(path, words, vectors)
    assert not path.exists()
