"""Answers from the lecture that are right as far as it goes, and wrong ones that only a special call shows."""

from inspect import signature

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.homework import all_exercises, check
from transformer_np.layers import blocks
from transformer_np.training import AdamW

LECTURE, WRONG = {}, {}


def lecture(name, *still_to_do):
    """Registers an answer that is right for the lecture, with the cases that it fails."""
    return lambda answer: LECTURE.setdefault(f"{name}: {answer.__name__}", (name, answer, still_to_do))[1]


def wrong(name, mistake):
    """Registers a wrong answer, with the mistake that it is told."""
    return lambda answer: WRONG.setdefault(f"{name}: {mistake}", (name, answer, mistake))[1]


# --- right for the lecture -------------------------------------------------------------------------------------------


@lecture("softmax", "a row of nothing but −inf", "nothing but −inf")
def as_the_notebook_writes_it(x, axis=-1):
    exponentials = np.exp(x - x.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


@lecture("sinusoidal_encoding", "an odd d_model", "dtype=float64")
def for_an_even_d_model(length, d_model, dtype=np.float32):
    angle = np.arange(length)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    encoding = np.zeros((length, d_model), np.float32)
    encoding[:, 0::2], encoding[:, 1::2] = np.sin(angle), np.cos(angle)
    return encoding


def scores_of(q, k, mask):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return scores if mask is None else np.where(mask, -np.inf, scores)


FLOAT_MASKS = ("a finite float mask", "a float mask of numbers and −inf", "a tuple of masks")


@lecture("attention_scores", *FLOAT_MASKS, "a row hidden whole by −inf")
def with_boolean_masks(q, k, mask=None):
    return scores_of(q, k, mask)


@lecture("scaled_dot_product_attention", *FLOAT_MASKS, "a row hidden whole", "a row hidden whole by −inf")
def with_boolean_masks_only(q, k, v, mask=None):
    weights = as_the_notebook_writes_it(scores_of(q, k, mask))
    return weights @ v, weights


@lecture("causal_mask", "S > T", "one query for many keys", "S twice as large as T")
def square(T, S=None):
    return np.triu(np.ones((T, T), bool), k=1)


@lecture("gelu", 'approximate="none"', 'approximate="none" plus x of shape (D,)')
def by_tanh(x, approximate="tanh"):
    return F.gelu(x)


@lecture("negative_sampling_loss", "scores of ±60", "scores of ±10,000")
def as_the_formula_stands(center, context, negatives):
    scores = (center * context).sum(-1), (center[:, None] * negatives).sum(-1)
    p_context, p_negatives = (1 / (1 + np.exp(-s)) for s in scores)
    surprise = np.log1p(-p_negatives).sum(1) + np.log(p_context)
    return float(-surprise.mean()), p_context, p_negatives


@lecture("greedy_decode", "return_log_probs=True")
def ids_alone(model, src, max_len=64, use_cache=True, return_log_probs=False):
    return all_exercises()["greedy_decode"].reference(model, src, max_len)


@lecture("EncoderBlock", "a key/value cache", "a key/value cache plus padding")
class WithoutACache(blocks.EncoderBlock):
    def forward(self, x, mask=None, cache=None):
        return super().forward(x, mask)


@pytest.mark.long
@pytest.mark.parametrize("key", LECTURE)
def test_right_for_the_lecture(key):
    name, answer, still_to_do = LECTURE[key]
    verdict = check(name, answer, seed=3, quiet=True)
    assert verdict.core and not verdict.passed, verdict.message
    first, _, _ = verdict.message.replace("\n", " ").partition(". ")
    assert first == f"{name}: right for the lecture; still to do: {'; '.join(still_to_do)}"


@pytest.mark.long
def test_a_mistake_in_a_core_case_is_not_right_for_the_lecture():
    verdict = check("softmax", lambda x, axis=-1: as_the_notebook_writes_it(2 * x, axis), seed=3, quiet=True)
    assert not verdict.core and "right for the lecture" not in verdict.message


def test_a_mistake_is_named_although_extended_cases_are_not_done():
    def answer(q, k, mask=None):
        return scores_of(q, k, mask if mask is None else ~mask if mask.dtype == bool else mask)

    verdict = check("attention_scores", answer, seed=3, quiet=True)
    assert "mask inverted" in verdict.misconception and not verdict.core


# --- wrong, though nearly all calls give the right result ------------------------------------------------------------


@wrong("AdamW", "parameters updated whole in each block")
class UpdatesWholeParametersInEveryBlock(AdamW):
    def _update_block(self, block):
        for start, end in zip([0, *self._ends[:-1]], self._ends, strict=True):
            if start < block.stop and end > block.start:
                super()._update_block(slice(int(start), int(end)))


@wrong("tiled_attention_backward", "δ of each tile")
def _(dout, q, k, v, out, log_total, mask=None, tile=256):
    own = min(tile, max(1, k.shape[-2] // 2))  # other tiles than those asked for
    answer = all_exercises()["tiled_attention_backward"].variant({"δ of each tile"})
    return answer(dout, q, k, v, out, log_total, mask, own)


@pytest.mark.long
@pytest.mark.parametrize("key", WRONG)
def test_a_wrong_answer_that_nearly_all_calls_pass(key):
    name, answer, mistake = WRONG[key]
    verdict = check(name, answer, seed=3, quiet=True)
    assert verdict.misconception == mistake and not verdict.passed, verdict.message


@pytest.mark.parametrize(("name", "kept_by"), [("sinusoidal_encoding", "d_model"), ("apply_merges", "ids")])
def test_what_an_answer_keeps_for_one_argument_alone_is_wrong_for_another_call(name, kept_by):
    kept, right = {}, all_exercises()[name].reference

    def answer(*arguments, **options):
        given = signature(right).bind(*arguments, **options).arguments
        return kept.setdefault(str(given[kept_by]), right(*arguments, **options))

    assert not check(name, answer, seed=3, quiet=True).core
