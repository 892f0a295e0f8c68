"""Sentence pairs: reading the user's file, and splitting so that nothing leaks."""

import re

import pytest

from transformer_np.data import LECTURE_SENTENCE, read_pairs, split_pairs

# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def write(tmp_path):
    def write(data):
        path = tmp_path / "pairs.tsv"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


def error(kind, path, *parts):
    """The error that reading the file raises names the file and every one of the parts."""
    with pytest.raises(kind) as caught:
        read_pairs(path)
    for part in (str(path), *parts):
        assert part in str(caught.value)


def test_reads_two_columns_and_no_more(write):
    path = write("Go.\tVai.\tCC-BY 2.0 (France)\t42\n  Hi! \t Oi! \n\n \t \nBye\tTchau")
    assert read_pairs(path) == [("Go.", "Vai."), ("Hi!", "Oi!"), ("Bye", "Tchau")]
    assert read_pairs(str(path)) == read_pairs(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_reads_any_line_end_and_a_byte_order_mark(write, end):
    path = write(b"\xef\xbb\xbf" + end.join(["a\tá", "b\tbê", ""]).encode())
    assert read_pairs(path) == [("a", "á"), ("b", "bê")]


def test_rare_separators_do_not_end_a_line(write):
    assert read_pairs(write("a\u2028b\x0bc\x85d\té\n")) == [("a\u2028b\x0bc\x85d", "é")]


def test_missing_file_and_folder(tmp_path):
    error(FileNotFoundError, tmp_path / "nowhere.tsv", "no file")
    error(IsADirectoryError, tmp_path, "is a folder, expected")


@pytest.mark.parametrize("text", ["", "\n \n", "\ufeff"])
def test_nothing_to_read(write, text):
    error(ValueError, write(text), "no sentence pairs")


def test_one_column(write):
    error(ValueError, write("a\tb\n\nno tab here\nc\td\n"), "line 3:", "no tab in 'no tab here'")
    error(ValueError, write("x" * 100), "line 1:", "'" + "x" * 40)


def test_an_empty_side(write):
    error(ValueError, write("a\tb\n\tc\n"), "line 2: the source sentence is empty")
    error(ValueError, write("a\tb\nc\t \td\n"), "line 2: the target sentence is empty")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_not_utf8(write, mark, end):
    second = "é you\tvoc".encode() + b"\xe9 \xea"
    data = mark + end.join([b"yes\tsim", second, b"no\tn\xe3o"])
    error(ValueError, write(data), "line 2:", "0xe9 at column 10")


def test_reading_gives_back_the_built_in_corpus(write, corpus):
    pairs = list(corpus[:50])
    assert read_pairs(write("".join(f"{a}\t{b}\n" for a, b in pairs))) == pairs


# --- splitting -------------------------------------------------------------------------------------------------------


def numbered(n):
    return [(f"source {i}", f"target {i}") for i in range(n)]


def sources(part):
    return {source.lower() for source, _ in part}


def test_every_pair_is_in_one_part():
    pairs = numbered(100)
    split = split_pairs(pairs, validation=0.2, test=0.1)
    assert (len(split.train), len(split.validation), len(split.test)) == (70, 20, 10)
    assert sorted(split.train + split.validation + split.test) == sorted(pairs)


def test_a_source_sentence_is_in_one_part_however_it_is_written():
    pairs = [(form(f"Está {i}"), f"{j}") for i in range(60) for j, form in enumerate([str, str.upper, str.lower, str])]
    pairs += [(f"Esta\u0301  {i} ", "decomposed") for i in range(60)]
    split = split_pairs(pairs, validation=0.3, test=0.3)
    seen = [
        {re.search(r"\d+", source)[0] for source, _ in part} for part in (split.train, split.validation, split.test)
    ]
    assert [len(part) for part in seen] == [24, 18, 18]
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])
    assert len(split.train) == 24 * 5


def test_the_seed_decides():
    pairs = numbered(50)
    assert split_pairs(pairs, seed=3) == split_pairs(pairs, seed=3)
    assert split_pairs(pairs, seed=3).test != split_pairs(pairs, seed=4).test
    assert split_pairs(pairs).test != pairs[-5:] and split_pairs(pairs).test != pairs[:5]


def test_held_out_sentences_are_tested():
    pairs = [*numbered(50), ("Keep me", "a"), ("keep ME", "b")]
    for seed in range(5):
        split = split_pairs(pairs, seed=seed, held_out=["keep me", "not there"])
        assert ("Keep me", "a") in split.test and ("keep ME", "b") in split.test
        assert len(split.test) == 5 + 2 and len(split.validation) == 5


def test_the_lecture_sentence_can_be_held_out(corpus):
    split = split_pairs(corpus, held_out=[LECTURE_SENTENCE])
    assert LECTURE_SENTENCE in {source for source, _ in split.test}
    assert not sources(split.train) & (sources(split.validation) | sources(split.test))


def test_three_sentences_are_enough_and_two_are_not():
    split = split_pairs(numbered(3))
    assert len(split.train) == len(split.validation) == len(split.test) == 1
    with pytest.raises(ValueError, match=r"too few examples .* 2 different texts"):
        split_pairs([*numbered(2), *numbered(2), ("SOURCE 1", "x")])
    with pytest.raises(ValueError, match="too few examples"):
        split_pairs(numbered(3), held_out=["source 0"])
    with pytest.raises(ValueError, match="too few examples"):
        split_pairs([])


@pytest.mark.parametrize("shares", [(0, 0.1), (0.1, 0), (-0.1, 0.1), (0.5, 0.5), (float("nan"), 0.1)])
def test_shares_that_make_no_sense(shares):
    with pytest.raises(ValueError, match=r"(validation|test) must "):
        split_pairs(numbered(50), *shares)


def test_held_out_is_a_list():
    with pytest.raises(TypeError, match="held_out"):
        split_pairs(numbered(50), held_out="source 1")
