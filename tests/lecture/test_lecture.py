"""The worked examples of the lecture: verdicts come from the numbers, and change when a number or a layer changes."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np import lecture
from transformer_np.commands.lecture import best_aligned
from transformer_np.layers import PositionalEncoding
from transformer_np.layers.blocks import EncoderBlock
from transformer_np.lecture import ERRATUM, REPRODUCED, TRUNCATED, exercises, format_examples, printed
from transformer_np.models import encoder_decoder

ERRATA = {5, 7, 10, 12, 14, 15, 18, 22, 23}
CUT_OFF = {4, 9}


@pytest.fixture(scope="module")
def rows():
    return {example.row: example for example in lecture.worked_examples()}


def not_ok(rows=range(1, 25)):
    """The rows, among these, that are not as expected when they are computed now."""
    return {row for row in rows if not lecture.examples.EXAMPLES[row]().ok}


# --- verdicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "computed", "digits", "expected"),
    [
        ([0.12, 0.35], [0.1249, 0.3451], 2, REPRODUCED),
        ([0.13], [0.125], 2, REPRODUCED),  # half a unit: either neighbour is rounded
        ([0.12], [0.125], 2, REPRODUCED),
        ([0.12, 0.34], [0.1249, 0.3451], 2, TRUNCATED),
        ([-0.12], [-0.1299], 2, TRUNCATED),  # cut off, not rounded down
        ([-0.13], [-0.1201], 2, ERRATUM),
        ([0.12, 0.34], [0.1249, 0.3551], 2, ERRATUM),
        ([0.11], [0.125], 2, ERRATUM),
        ([0.12], [0.119], 1, REPRODUCED),
        ([7], [7.4], 0, REPRODUCED),
        ([7], [7.6], 0, TRUNCATED),
        ([0.3], [0.1 + 0.2], None, REPRODUCED),
        ([0.3], [0.3 + 1e-9], None, ERRATUM),
        ([-np.inf, 0], [-np.inf, 0], None, REPRODUCED),
        ([-np.inf, 0], [0, -np.inf], None, ERRATUM),
        ([-np.inf], [np.inf], 2, ERRATUM),
        ([0.5], [np.nan], 1, ERRATUM),
    ],
)
def test_verdict(shown, computed, digits, expected):
    assert lecture.verdict(shown, computed, digits) == expected


def test_verdict_wants_one_shape():
    with pytest.raises(ValueError, match=r"one shape, got \(2,\) and \(1,\)"):
        lecture.verdict([1.0, 2.0], [1.0], 1)


# --- the worked examples --------------------------------------------------------------------------------------------


def test_every_row_is_there_once_and_as_expected(rows):
    assert list(rows) == list(range(1, 25))
    assert {row: example.failed for row, example in rows.items() if not example.ok} == {}
    assert {row for row, example in rows.items() if example.verdict == ERRATUM} == ERRATA
    assert {row for row, example in rows.items() if example.verdict == TRUNCATED} == CUT_OFF
    assert all(example.reason and example.where and example.title for example in rows.values())
    assert lecture.summary(rows.values()) == (
        "24 worked examples: 7 reproduced, 2 with fitted weights, 4 exercises without a printed answer, "
        "2 truncated in print, 9 errata; all as expected"
    )


def test_every_printed_digit_counts(rows):
    """Any entry of any reproduced or truncated row, off by two units of its last digit, is found."""
    for row in set(rows) - ERRATA:
        example = rows[row]
        unit = 1e-9 if example.digits is None else 10.0**-example.digits
        for index in np.ndindex(example.printed.shape):
            if not np.isfinite(example.printed[index]):
                continue
            wrong = example.printed.copy()
            wrong[index] += 2 * unit
            changed = replace(example, printed=wrong)
            assert changed.verdict == ERRATUM and not changed.ok, (row, index)


def test_what_the_documents_do_not_determine_is_not_called_reproduced(rows):
    fitted = {row for row, example in rows.items() if example.verdict == lecture.FITTED}
    assert fitted == {6, 13}  # a pseudo-inverse fits any
    assert {row for row, example in rows.items() if example.verdict == lecture.ANSWERED} == {17, 19, 20, 21}
    assert replace(rows[6], printed=rows[6].printed + 1).verdict == ERRATUM


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("FIVE_EMBEDDINGS", 1), ("FIVE_PROJECTIONS", 1), ("FIVE_QKV", 1), ("FIVE_SCORES", 2), ("FIVE_WEIGHTS", 3),
        ("FIVE_OUTPUT", 4), ("THREE_SHAPES", 8), ("FIVE_POSITIONS", 9), ("POSITIONS_NAMED_1", 10),
        ("SPREAD_OF_SQUARES", 11), ("FEED_FORWARD_BEFORE", 13), ("FEED_FORWARD_HIDDEN", 13), ("MASK", 16),
        ("EXERCISE_1", 17), ("EXERCISE_3", 19), ("PARTS_OF_BLOCK", 20), ("LAYERS_AND_HEADS", 22),
        ("HEADS_ELSEWHERE", 22), ("TWO_SCORES", 24),
    ],
)  # fmt: skip
def test_the_examples_read_the_printed_numbers(monkeypatch, name, row):
    source = getattr(printed, name)
    values = source.values.copy()
    values[(0,) * values.ndim] += 3
    monkeypatch.setattr(printed, name, replace(source, values=values))
    assert not_ok({row}) == {row}


def test_printed_numbers_have_the_digits_they_claim():
    sources = {name: value for name in dir(printed) if isinstance(value := getattr(printed, name), printed.Printed)}
    assert len(sources) > 25
    for name, source in sources.items():
        assert source.where.startswith(tuple(printed.DOCUMENTS)), name
        if source.digits is not None:
            np.testing.assert_allclose(np.round(source.values, source.digits), source.values, atol=1e-15, err_msg=name)
        with pytest.raises(ValueError, match="read-only"):
            source.values[...] = 0


# --- a broken package is found --------------------------------------------------------------------------------------

_attention_scores, _softmax = F.attention_scores, F.softmax
_sinusoids, _attention = F.sinusoidal_encoding, F.scaled_dot_product_attention
_gone = lambda *args: np.zeros((args[0], args[-1]), bool)  # noqa: E731  a mask that hides nothing


def _plain_split(x, num_heads):
    """Cuts the rows, not the features."""
    B, T, D = x.shape
    return x.reshape(B, num_heads, T, D // num_heads)


def _wrong_pairs(length, d_model, dtype=np.float32):
    """2i where i belongs: the frequencies fall too fast."""
    angle = np.arange(length)[:, None] / 10000.0 ** (2 * np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, d_model).astype(dtype)


@pytest.mark.parametrize(
    ("name", "broken", "found"),
    [
        (
            "attention_scores",
            lambda q, k, mask=None: _attention_scores(q, k, mask) * q.shape[-1] ** 0.5,
            {2, 3, 4, 5, 7, 17, 24},
        ),
        ("attention_scores", lambda q, k, mask=None: _attention_scores(q, k), {16, 20}),
        ("softmax", lambda x, axis=-1: _softmax(x, axis=-2), {3, 4, 5, 7, 16, 23, 24}),
        ("softmax", lambda x, axis=-1: np.exp(x), {3, 4, 5, 7, 23, 24}),
        ("relu", lambda x: np.abs(x), {13}),
        ("split_heads", _plain_split, {6, 7}),
        ("sinusoidal_encoding", _wrong_pairs, {9, 18}),
        ("sinusoidal_encoding", lambda n, d, dtype=np.float32: _sinusoids(n, d, dtype)[:, ::-1].copy(), {9, 10, 18}),
        ("sinusoidal_encoding", lambda n, d, dtype=np.float32: _sinusoids(n, d, dtype) * 1.01, {9, 11}),
        ("sinusoidal_encoding", lambda n, d, dtype=np.float32: _sinusoids(44, d, dtype)[np.arange(n) % 44], {12}),
        ("scaled_dot_product_attention", lambda q, k, v, mask=None: _attention(q, k, v**2, mask), {4, 14}),
    ],
)
def test_a_broken_function_is_found(monkeypatch, name, broken, found):
    monkeypatch.setattr(F, name, broken)
    assert not_ok(found) == found


def test_a_mask_that_hides_nothing_is_found(monkeypatch):
    monkeypatch.setattr(lecture.examples.architecture, "causal_mask", lambda n: np.zeros((n, n), bool))
    monkeypatch.setattr(lecture.questions, "causal_mask", lambda n: np.zeros((n, n), bool))
    assert not_ok() == {16, 19}


def test_a_decoder_without_its_mask_is_found(monkeypatch):
    monkeypatch.setattr(encoder_decoder, "causal_mask", _gone)
    assert not_ok() == {20}
    assert exercises()[3].letters == ("b",)


def test_a_positional_encoding_in_every_block_is_found(monkeypatch):
    plain = EncoderBlock.__init__

    def with_encoding(self, d_model, *args, **options):
        plain(self, d_model, *args, **options)
        self.position = PositionalEncoding(d_model, 5)

    monkeypatch.setattr(EncoderBlock, "__init__", with_encoding)
    assert not_ok() == {15}


# --- the steps and the exercises ------------------------------------------------------------------------------------


def test_what_no_row_shows_of_the_steps():
    five = lecture.five_positions()
    np.testing.assert_allclose(five.output, printed.FIVE_EMBEDDINGS.values + five.encoding, atol=1e-12)
    position, distance = lecture.nearest_return(4, 1000)
    encoding = F.sinusoidal_encoding(1000, 4, np.float64)
    assert distance == pytest.approx(np.linalg.norm(encoding[position] - encoding[0]), abs=1e-12)
    scores, weights = np.array([[3.0, 2, 1], [1, 1 + 1e-15, 0]]), np.array([[0.5, 0.2, 0.3], [0.5, 0.4, 0.1]])
    assert lecture.steps.order_broken(scores, weights) == [(0,)]  # a tie breaks nothing
    assert lecture.steps.order_broken(scores[:1], np.full((1, 3), 1 / 3)) == []


def test_exercises():
    found = exercises()
    assert [exercise.number for exercise in found] == [1, 2, 3, 4, 5]
    assert [exercise.letters for exercise in found] == [("a",), (), ("a",), ("a", "b"), ("c",)]
    assert all(list(exercise.options) == ["a", "b", "c", "d"] for exercise in found)
    assert found[1].closest == "b" and float(found[1].computed) == pytest.approx(0.936415, abs=1e-6)
    assert "(b)" in found[1].explanation
    with pytest.raises(TypeError, match="words"):
        _ = found[3].closest


def test_exercises_as_text_and_their_letters():
    text = lecture.format_exercises(exercises())
    assert text.count("→") == 5
    assert " → (a)  [0 −∞ −∞] [0 0 −∞] [0 0 0]\n" in text and "answer    none of the options\n" in text
    first = exercises()[0]
    assert replace(first, computed=first.options["c"] + 0.004).letters == ("c",)
    assert replace(first, computed=first.options["c"] + 0.006).letters == ()


@pytest.mark.parametrize(
    ("powers", "text"),
    [((0, 0), "O(1)"), ((1, 0), "O(n)"), ((2.001, 1), "O(h n²)"), ((2, 2), "O(h² n²)"), ((1.5, 0), "O(n^1.5)")],
)
def test_big_o(powers, text):
    assert lecture.questions.big_o(*powers) == text


# --- the report -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [72, 80, 110, 150])
def test_report_fits_the_terminal(rows, width):
    text = format_examples(rows.values(), width)
    assert max(map(len, text.splitlines())) <= width
    assert max(map(len, lecture.format_exercises(exercises(), width).splitlines())) <= width
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_report_table(rows):
    header, line, *body = format_examples(rows.values()).splitlines()
    table = body[: body.index("")]
    assert len(table) == 24  # at 110 columns no cell is wrapped
    verdict_column, digits_end = header.index("verdict"), header.index("digits") + len("digits")
    for row, text in enumerate(table, 1):
        assert text[:3] == f"{row:3}" and text[verdict_column:] == rows[row].verdict
        assert rows[row].where in text and rows[row].title in text
        assert text[:digits_end].endswith("exact" if rows[row].digits is None else f" {rows[row].digits}")
    assert set(line) == {"─", " "}


def test_report_shows_printed_true_and_why(rows):
    text = format_examples(rows.values())
    errata, cut_off = text.split("Truncated in print")[0].split("\nErrata\n")[1], text.split("Truncated in print\n")[1]
    for row in ERRATA:
        assert f"\n{row:3}  {rows[row].where}: {rows[row].title}\n" in errata
    assert "printed    0.909\n" in errata and "true     0.93641\n" in errata
    assert "printed    0.7    0.2    0.1   (row 1 of matrix 1)\n" in errata
    assert errata.count("why") == len(ERRATA) and cut_off.count("why") == len(CUT_OFF)
    assert "Not as expected" not in text


def test_report_says_what_is_not_as_expected(rows):
    wrong = replace(rows[2], printed=rows[2].printed + 1, checks=(("the sky is green", False),))
    text = format_examples([rows[1], wrong])
    assert "erratum !" in text
    assert text.endswith("Not as expected\n───────────────\n  2  expected: reproduced; the sky is green")
    told = "2 worked examples: 1 reproduced, 0 truncated in print, 1 erratum; NOT as expected: 2"
    assert lecture.summary([rows[1], wrong]) == told


def test_too_narrow():
    for write in (format_examples, lecture.format_exercises):
        with pytest.raises(ValueError, match="at least 72 columns, got 40"):
            write([], width=40)


def test_the_page_of_errata_has_these_rows_and_numbers(rows):
    page = (Path(__file__).parents[2] / "docs" / "errata.md").read_text(encoding="utf-8")
    tables = {int(line.split("|")[1]): line.split("|")[2:-1] for line in page.splitlines() if re.match(r"\| \d", line)}
    assert set(tables) == ERRATA | CUT_OFF
    assert "24 worked examples, 7 are reproduced" in " ".join(page.split()) and len(rows) == 24
    for row, (where, *cells) in tables.items():
        example = rows[row]
        assert where.strip() in example.where
        known = [*example.printed.ravel(), *example.computed.ravel()]
        for number in re.findall(r"(?<![\w.^])\d+\.\d+(?![\w.])", " ".join(cells)):
            digits = len(number.split(".")[1])
            assert number in example.reason or any(f"{value:.{digits}f}" == number for value in known), (row, number)


def test_the_picture_shows_the_head_with_the_best_alignment(rng):
    weights = rng.random((2, 3, 6, 5)) / 10
    weights[1, 0, range(5), range(5)] = 1
    weights[0, 2, 5] = 1  # where no word stands beside it
    assert best_aligned(weights) == (1, 0)
