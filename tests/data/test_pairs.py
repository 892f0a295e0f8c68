"""Sentence pairs and labelled texts: reading the user's file, and splitting so that nothing leaks."""

import re

import pytest

from transformer_np.data import read_labelled, read_pairs, read_vectors, split_pairs

ROWS = "".join(f"{'good' if i % 2 else 'bad'}\ttext {i}\n" for i in range(6))
SWAPPED = "".join(f"text {i}\t{'good' if i % 2 else 'bad'}\n" for i in range(6))
NAMES = "label\ttext\n", "gold_label\tsentence1\tsentence2\n"  # of columns

# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def write(tmp_path):
    """write(content) -> the path of a file with this text or these bytes."""

    def write(content):
        path = tmp_path / "file"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_reads_two_columns_and_no_more(write):
    path = write("Go.\tVai.\tCC-BY 2.0 (France)\t42\n  Hi! \t Oi! \n\n \t \nBye\tTchau")
    assert read_pairs(path) == [("Go.", "Vai."), ("Hi!", "Oi!"), ("Bye", "Tchau")]
    assert read_pairs(str(path)) == read_pairs(path)
    assert read_pairs(write("a\u2028b\x0bc\x85d\té\n")) == [("a\u2028b\x0bc\x85d", "é")]  # these end no line


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_reads_any_line_end_and_a_byte_order_mark(write, end):
    path = write(b"\xef\xbb\xbf" + end.join(["a\tá", "b\tbê", ""]).encode())
    assert read_pairs(path) == [("a", "á"), ("b", "bê")]


def test_reads_a_label_and_a_text(write):
    path = write("good\tI liked it.\n\n \t \n neutral \t so\tso \r\nbad\té\u2028not\n")
    assert read_labelled(path) == [("I liked it.", "good"), ("so\tso", "neutral"), ("é\u2028not", "bad")]
    assert read_labelled(write(b"\xef\xbb\xbfa\tb")) == [("b", "a")]


NOT_UTF8 = "é you\tvoc".encode() + b"\xe9 \xea"
REFUSED = {  # a function that reads a file: (the content of the file, the error)
    read_pairs: [
        *((text, "has no sentence pairs") for text in ("", "\n \n", "\ufeff")),
        ("a\tb\n\nno tab here\nc\td\n", "line 3: .*no tab in 'no tab here'"),
        ("x" * 100, f"line 1: .*'{'x' * 40}"),
        ("a\tb\n\tc\n", "line 2: the source sentence is empty"),
        ("a\tb\nc\t \td\n", "line 2: the target sentence is empty"),
        *(
            (mark + end.join([b"yes\tsim", NOT_UTF8, b"no\tn\xe3o"]), "line 2: .*0xe9 at column 10")
            for mark in (b"", b"\xef\xbb\xbf")
            for end in (b"\n", b"\r\n")
        ),
    ],
    read_labelled: [
        (" \n", "has no labelled texts"),
        ("a\tb\n\nno tab\n", "line 3: expected a label, a tab and a text; there is no tab in 'no tab'"),
        ("x" * 99, f"line 1: .*'{'x' * 40}"),
        ("a\tb\n\tc\n", "line 2: the label is empty"),
        ("a\tb\nc\t \n", "line 2: the text is empty"),
        (b"a\tb\nc\tvoc\xea\n", "line 2: the byte 0xea at column 6 is not UTF-8"),
        (SWAPPED, "the first column has 6 different entries and the second 2, but the label comes first"),
        *((names + ROWS, r"line 1: no other line has the label '\w+', so this seems") for names in NAMES),
    ],
}


@pytest.mark.parametrize("read, content, message", [(read, *case) for read, cases in REFUSED.items() for case in cases])
def test_files_that_will_not_do(write, read, content, message):
    path = write(content)
    with pytest.raises(ValueError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("read", [*REFUSED, read_vectors])
def test_missing_file_and_folder(tmp_path, read):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nowhere\.tsv"):
        read(tmp_path / "nowhere.tsv")
    with pytest.raises(IsADirectoryError, match=r"is a folder, expected a (text file with|file of word vectors)"):
        read(tmp_path)


@pytest.mark.parametrize("first", ["rare\ta text with words\n", "good\ttext\n"])
def test_a_first_line_that_names_no_columns(write, first):
    """A rare label stands before a whole text, or the label comes again."""
    assert len(read_labelled(write(first + ROWS))) == 7


# --- splitting -------------------------------------------------------------------------------------------------------


def numbered(n):
    return [(f"source {i}", f"target {i}") for i in range(n)]


def test_every_pair_is_in_one_part():
    pairs = numbered(100)
    split = split_pairs(pairs, validation=0.2, test=0.1)
    assert (len(split.train), len(split.validation), len(split.test)) == (70, 20, 10)
    assert sorted(split.train + split.validation + split.test) == sorted(pairs)


def test_a_source_sentence_is_in_one_part_however_it_is_written():
    pairs = [(form(f"Está {i}"), f"{j}") for i in range(60) for j, form in enumerate([str, str.upper, str.lower, str])]
    pairs += [(f"Esta\u0301  {i} ", "decomposed") for i in range(60)]
    split = split_pairs(pairs, validation=0.3, test=0.3)
    parts = split.train, split.validation, split.test
    seen = [{re.search(r"\d+", source)[0] for source, _ in part} for part in parts]
    assert [len(part) for part in seen] == [24, 18, 18]
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])
    assert len(split.train) == 24 * 5


def test_held_out_sentences_are_tested():
    pairs = [*numbered(50), ("Keep me", "a"), ("keep ME", "b")]
    for seed in range(5):
        split = split_pairs(pairs, seed=seed, held_out=["keep me", "not there"])
        assert ("Keep me", "a") in split.test and ("keep ME", "b") in split.test
        assert len(split.test) == 5 + 2 and len(split.validation) == 5
    for wrong in ("keep me", [3]):
        with pytest.raises(TypeError, match="held_out must be a list of strings"):
            split_pairs(pairs, held_out=wrong)


def test_three_sentences_are_enough_and_two_are_not():
    split = split_pairs(numbered(3))
    assert len(split.train) == len(split.validation) == len(split.test) == 1
    with pytest.raises(ValueError, match=r"too few examples .* 2 different texts"):
        split_pairs([*numbered(2), *numbered(2), ("SOURCE 1", "x")])
    with pytest.raises(ValueError, match="too few examples"):
        split_pairs(numbered(3), held_out=["source 0"])
    with pytest.raises(ValueError, match="too few examples"):
        split_pairs([])
    assert split_pairs(iter(numbered(9))) == split_pairs(numbered(9))  # they are read twice
    for wrong in ([("source",)], [(1, 2)], 3):
        with pytest.raises(TypeError, match=r"pairs must be a list of \(source, target\), got"):
            split_pairs(wrong)


@pytest.mark.parametrize("shares", [(0, 0.1), (0.1, 0), (-0.1, 0.1), (0.5, 0.5), (float("nan"), 0.1)])
def test_shares_that_make_no_sense(shares):
    with pytest.raises(ValueError, match=r"(validation|test) must "):
        split_pairs(numbered(50), *shares)
