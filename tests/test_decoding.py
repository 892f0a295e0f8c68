"""Greedy and beam search, against searches written out over the whole model, without a cache."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from shared import few_of

from transformer_np.decoding import DecoderCache, Excluding, beam_search, greedy_decode, greedy_steps, log_softmax
from transformer_np.masks import causal_mask

PAD, BOS, EOS = 0, 1, 2
SRC = np.array([[4, 9, 4, 7, 3, 2, 10], [5, 4, 2, 0, 0, 0, 0], [3, 8, 3, 3, 6, 0, 0]])
SEEDS = range(6)


@pytest.fixture
def speaker(random_model):
    """A model whose next token is neither certain nor uniform, that reaches the end token at times and never pads."""

    def make(seed, **config):
        model = random_model(seed, scale=2.0, **{"norm_first": True, "max_len": 12, **config})
        for name, parameter in model.named_parameters():
            if parameter.data.ndim == 1 and not name.endswith("gamma"):
                parameter.data = 0
        model.tgt_input.embedding.table.data *= 2
        model.output.b.data[[PAD, EOS]] = -20, 3
        return model

    return make


def next_log_probs(model, src, ids):
    """log p of the token after `ids`, from the whole model and the definition."""
    logits = model(src[None], np.array([[BOS, *ids]]))[0, -1].astype(float)
    return logits - np.log(np.exp(logits).sum())


def score(log_prob, length, penalty):
    return log_prob / ((5 + length) / 6) ** penalty


def every_output(model, src, max_len, penalty):
    """(score, log p, ids) of every output there is, best first. The end token counts as a token."""
    log_probs = cache(lambda *ids: next_log_probs(model, src, ids))
    found = []
    for length in range(1, max_len + 1):
        for ids in product(range(model.config.tgt_vocab_size), repeat=length):
            if EOS not in ids[:-1] and (length == max_len or ids[-1] == EOS):
                total = sum(log_probs(*ids[:i])[token] for i, token in enumerate(ids))
                found.append((score(total, length, penalty), total, [token for token in ids if token != EOS]))
    return sorted(found, reverse=True)


def test_the_models_of_these_tests_have_something_to_say(speaker):
    """Otherwise the tests below could not fail."""
    outputs = [greedy_decode(speaker(seed), SRC, 9) for seed in SEEDS]
    lengths = [len(ids) for rows in outputs for ids in rows]
    assert 9 in lengths and len({n for n in lengths if n < 9}) >= 3
    assert sum(len(set(ids)) > 1 for rows in outputs for ids in rows) >= 6
    assert any(len({len(ids) for ids in rows}) == 3 for rows in outputs)  # the rows of a batch end apart


# --- greedy ----------------------------------------------------------------------------------------------------------


SEEDS_AND_LENGTHS = few_of(product(SEEDS, (1, 4, 9)), [*product(SEEDS, (9,)), (0, 1), (1, 4), (2, 4)])


@pytest.mark.parametrize(("seed", "max_len"), SEEDS_AND_LENGTHS)
def test_greedy(speaker, seed, max_len):
    """Every token is the most likely one of the whole model, with the cache and without."""
    model = speaker(seed)
    for use_cache in (True, False):
        outputs, log_probs = greedy_decode(model, SRC, max_len, use_cache, return_log_probs=True)
        for src, ids, total in zip(SRC, outputs, log_probs, strict=True):
            ended = [*ids, EOS][:max_len]
            steps = [next_log_probs(model, src, ended[:i]) for i in range(len(ended))]
            assert ended == [step.argmax() for step in steps] and all(type(token) is int for token in ids)
            assert total == pytest.approx(sum(step.max() for step in steps), rel=1e-10)


def test_greedy_stops_when_every_row_has_ended(speaker):
    model = speaker(3)
    assert [len(ids) for ids in greedy_decode(model, SRC[1:], 12)] == [1, 2]
    assert len(list(greedy_steps(model, SRC[1:], 12))) == 3
    model.output.b.data[EOS] = 99
    assert greedy_decode(model, SRC, 12) == [[], [], []]
    assert len(list(greedy_steps(model, SRC, 12))) == 1


def test_log_softmax(rng):
    x = 3 * rng.normal(size=(2, 3, 5))
    np.testing.assert_allclose(log_softmax(x), np.log(np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)), rtol=1e-12)
    assert log_softmax(np.array([1e4, -1e4], np.float32)).tolist() == [0, -2e4]
    assert log_softmax(np.zeros(2, np.float32)).dtype == np.float32


# --- cache -----------------------------------------------------------------------------------------------------------


def test_a_step_processes_one_token(speaker):
    model, queries = speaker(0), {True: [], False: []}
    for use_cache, seen in queries.items():
        for step, _ in enumerate(greedy_steps(model, SRC, 5, use_cache)):
            for block in model.decoder:
                assert block.self_attention.weights.shape[3] == step + 1
                assert block.cross_attention.weights.shape[3] == 7
            seen.append(block.self_attention.weights.shape[2])
            assert block.cross_attention.weights.shape[2] == seen[-1]
    assert queries == {True: [1] * 5, False: [1, 2, 3, 4, 5]}


@pytest.mark.parametrize("parts", [[1] * 6, [3, 1, 2], [6]])
def test_decode_in_parts(speaker, parts):
    """With the cache, however many tokens come at a time, and with padding in the target."""
    model = speaker(4).eval()
    tgt = np.array([[1, 5, 4, 11, 12, 3], [1, 8, 8, 3, 0, 0], [1, 5, 0, 0, 7, 6]])
    memory = model.encode(SRC)
    whole, cache, start = model.decode(tgt, memory, SRC), DecoderCache(2), 0
    for length in parts:
        part = model.decode(tgt[:, start : start + length], memory, SRC, cache)
        np.testing.assert_allclose(part, whole[:, start : start + length], rtol=1e-12, atol=1e-12)
        start += length
    hidden = (causal_mask(6) | (tgt == PAD)[:, None, None, :])[:, 0, -parts[-1] :]
    assert not model.decoder[1].self_attention.weights[:, 0][hidden].any()


# --- beam search -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "max_len"), SEEDS_AND_LENGTHS)
def test_a_beam_of_one_is_greedy(speaker, seed, max_len):
    model = speaker(seed)
    outputs, log_probs = greedy_decode(model, SRC, max_len, return_log_probs=True)
    for penalty in (0.0, 0.6, 2.0):
        found = beam_search(model, SRC, 1, max_len, penalty, return_hypotheses=True)
        assert [len(hypotheses) for hypotheses in found] == [1, 1, 1]
        assert [hypotheses[0].ids for hypotheses in found] == outputs
        np.testing.assert_allclose([hypotheses[0].log_prob for hypotheses in found], log_probs, rtol=1e-10)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 3.0])
def test_a_wide_beam_is_exhaustive_search(speaker, penalty, seed):
    model = speaker(seed, tgt_vocab_size=4)
    model.output.b.data[PAD] = 0
    found = beam_search(model, SRC[:2], 4**4, 4, penalty, return_hypotheses=True)
    for src, hypotheses in zip(SRC, found, strict=False):
        expected = every_output(model, src, 4, penalty)
        assert len(expected) == 1 + 3 + 9 + 27 + 81
        assert [h.ids for h in hypotheses] == [ids for *_, ids in expected]
        numbers = [(h.score, h.log_prob) for h in hypotheses]
        np.testing.assert_allclose(numbers, [numbers for *numbers, _ in expected], rtol=1e-10)


# --- what decoding leaves behind, and tokens that are never chosen ---------------------------------------------------


@pytest.mark.parametrize("decode", [greedy_decode, beam_search])
def test_decoding_leaves_the_model_as_it_was(speaker, decode):
    model, plain = speaker(1, dropout=0.5), speaker(1)
    states = [m.rng.bit_generator.state for _, m in model.named_modules() if hasattr(m, "rng")]
    before, src = model.state_dict(), SRC.copy()
    outputs = decode(model, src, max_len=6)
    assert np.array_equal(src, SRC)
    assert outputs == decode(plain.eval(), SRC, max_len=6)  # no dropout
    assert all(m.training and m.keeping for _, m in model.named_modules())
    assert not any(m.training or m.keeping for _, m in plain.named_modules())
    assert states == [m.rng.bit_generator.state for _, m in model.named_modules() if hasattr(m, "rng")]
    assert all(np.array_equal(values, before[name]) for name, values in model.state_dict().items())
    assert not any(p.grad.any() for p in model.parameters())
    assert all(name.endswith("weights") for name in model.intermediates())


def test_an_interrupted_decoding_restores_the_mode(speaker):
    model = speaker(0)
    steps = greedy_steps(model, SRC, 6)
    next(steps)
    assert not model.training
    steps.close()
    assert model.training


def test_excluded_tokens_are_never_chosen_and_the_others_keep_their_probability(speaker):
    model = speaker(0)
    first = [ids[0] for ids in greedy_decode(model, SRC, 10) if ids]
    without = Excluding(model, first)
    for tokens, log_probs in greedy_steps(without, SRC, 10):
        assert not np.isin(tokens, first).any() and np.isneginf(log_probs[:, first]).all()
    outputs, totals = greedy_decode(without, SRC, 10, return_log_probs=True)
    for src, ids, total in zip(SRC, outputs, totals, strict=True):
        src = src[src != PAD]
        ended = [*ids, EOS] if len(ids) < 10 else ids
        expected = sum(next_log_probs(model, src, ended[:i])[token] for i, token in enumerate(ended))
        assert total == pytest.approx(expected, rel=1e-5)
    for size, longest in ((2, 10), (5, 10), (99, 1)):
        for hypotheses in beam_search(without, SRC, size, longest, return_hypotheses=True):
            assert not any(set(hypothesis.ids) & set(first) for hypothesis in hypotheses)
            assert all(np.isfinite(hypothesis.score) for hypothesis in hypotheses)
    assert greedy_decode(Excluding(model, []), SRC, 10) == greedy_decode(model, SRC, 10)
    assert greedy_decode(Excluding(Excluding(model, first[:1]), first[1:]), SRC, 10) == outputs
    size = model.config.tgt_vocab_size
    for wrong, error in ((3, TypeError), ([2.7], TypeError), ([-1], ValueError), ([size], ValueError),
                         (range(size), ValueError)):  # fmt: skip
        with pytest.raises(error, match="ids"):
            Excluding(model, wrong)
