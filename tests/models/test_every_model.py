"""Every model, with each of its options: the contract, what a token reaches, the start, seeds, files."""

import inspect

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.decoding import DecoderCache, generate
from transformer_np.inspection import check_model
from transformer_np.inspection.samples import MODELS, model_of, small_model
from transformer_np.training import load_model, save_model

LLAMA3 = {
    **{"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 2.0},
    "original_max_position_embeddings": 16,
}
GROUPED = {"num_heads": 6, "num_kv_heads": 2}
OPTIONS = {  # name of the class and, after a comma, what is changed: the changes
    **{name: {} for name in MODELS},
    "Transformer, tied": {"tie_embeddings": True},
    "Transformer, one table": {"tie_embeddings": True, "src_vocab_size": 13, "norm_first": True},
    "Transformer, gelu, no encoder": {"activation": "gelu", "layer_norm_eps": 0.1, "num_encoder_layers": 0},
    "GPT, untied, no bias": {"tie_embeddings": False, "bias": False},
    "GPT, relu, dropout": {"activation": "relu", "dropout": 0.3},
    "GPT, gelu, sinusoids": {"activation": "gelu", "positions": "sinusoidal"},
    "GPT, alibi": {"positions": "alibi"},
    "GPT, window": {"window": 1},
    "GPT, alibi, window, grouped": {"positions": "alibi", "window": 1, "num_kv_heads": 1},
    "GPT, all": {"positions": "rotary", "norm": "rms", "activation": "gated_silu", "bias": False, **GROUPED},
    "Llama, plain": {"num_kv_heads": 6, "num_heads": 6, "d_head": None},
    "Llama, grouped, tied": {"tie_embeddings": True, "qkv_bias": False, **GROUPED},
    "Llama, window, llama3": {"window": 1, "rope_scaling": LLAMA3},
    "Llama, multi-query, biases, tied": {"num_kv_heads": 1, "qkv_bias": True, "tie_embeddings": True},
    "T5, v1.0": {"activation": "relu", "tie_embeddings": True},
    "T5, v1.1": {"activation": "gated_gelu", "tie_embeddings": False},
    "Bert, relu": {"activation": "relu"},
    "Bert, bare": {"mlm_head": False, "pooler": False, "num_classes": None, "activation": "gelu_tanh"},
    "TransformerXL, untied, pre-norm": {"tie_embeddings": False, "norm_first": True},
}
SIZES = {  # of fresh models
    **{name: {"vocab_size": 50, "d_ff": 96} for name in ("GPT", "Llama", "TransformerXL", "Bert")},
    "T5": {"vocab_size": 50, "d_ff": 96, "d_head": 16},
    "Transformer": {"src_vocab_size": 50, "tgt_vocab_size": 50, "d_ff": 96},
}
CAUSAL = [name for name in OPTIONS if not name.startswith(("Bert", "Word2Vec"))]
CACHED = [name for name in OPTIONS if name.startswith(("GPT", "Llama"))]
IDS = np.array([[4, 7, 4, 0, 7, 1], [7, 2, 2, 5, 4, 3]])  # some tokens come more than once, some not at all


def class_of(name):
    return name.partition(",")[0]


def first(output):
    return output[0] if isinstance(output, tuple) else output


@pytest.fixture
def make(rng):
    """make(name of OPTIONS, …) -> the model with random parameters, and a batch."""
    return lambda name, **changes: model_of(class_of(name), rng, **OPTIONS[name] | changes)


@pytest.mark.parametrize("entries", [1, pytest.param(8, marks=pytest.mark.release)])
@pytest.mark.parametrize("name", OPTIONS)
def test_the_contract(make, name, entries):
    """All that the package asks of a model, the gradients of every parameter among it, and nothing to advise."""
    model, batch = make(name)
    assert not check_model(model, tuple(batch), causal=name in CAUSAL, max_entries=entries).advice


@pytest.mark.parametrize("name", [name for name in MODELS if name != "Word2Vec"])
def test_ids_that_will_not_do(make, name):
    """Each input of ids is named, with what was expected and what came."""
    model, batch = make(name)
    places = [i for i, x in enumerate(batch) if isinstance(x, np.ndarray)]
    names = list(inspect.signature(model.forward).parameters)
    vocabulary = {n: getattr(model.config, f"{n[:3]}_vocab_size", 0) or model.config.vocab_size for n in names[:2]}
    for i in places:
        ids, most = batch[i], vocabulary[names[i]] - 1
        wrong = [
            (ids.astype(float), TypeError, "must be whole numbers"),
            (ids.astype(bool), TypeError, "must be whole numbers"),
            (np.where(ids == 3, most + 1, ids), ValueError, f"must lie in 0 … {most}, got {most + 1} at index"),
            (np.where(ids == 4, -1, ids), ValueError, f"must lie in 0 … {most}, got -1"),
            (ids[0], ValueError, r"must have the axes \(batch, length\), got shape"),
            (ids[:, :0], ValueError, r"is empty, its shape is \(2, 0\)"),
        ]
        if name not in ("T5", "TransformerXL"):
            wrong.append((np.full((2, 10), 3), ValueError, "is 10 tokens long, more than max_len = 9"))
        for bad, error, message in wrong:
            with pytest.raises(error, match=f"{names[i]} {message}"):
                model(*batch[:i], bad, *batch[i + 1 :])


@pytest.mark.parametrize("name", CAUSAL)
def test_a_token_reaches_what_follows_and_nothing_before(make, name):
    model, batch = make(name)
    place, tokens = max((i, x) for i, x in enumerate(batch) if isinstance(x, np.ndarray))
    model.eval()
    before = first(model(*batch))
    for t in range(tokens.shape[1]):
        changed = tokens.copy()
        changed[:, t] = np.where(tokens[:, t] == 6, 8, 6)  # no padding
        after = first(model(*batch[:place], changed, *batch[place + 1 :]))
        assert np.array_equal(after[:, :t], before[:, :t])
        reached = range(t, min(tokens.shape[1], t + 1 if "window" in name else tokens.shape[1]))
        if "window" in name:  # two blocks look back by one token each
            assert np.array_equal(after[:, t + 3 :], before[:, t + 3 :])
        assert all(not np.isclose(after[:, i], before[:, i], rtol=1e-6).all(axis=-1).any() for i in reached)


@pytest.mark.parametrize("parts", [[1] * 6, [3, 1, 2], [2, 4], [6]])
@pytest.mark.parametrize("name", CACHED)
def test_logits_with_a_cache_are_those_without(make, name, parts):
    dtype, tolerance = ("float32", 1e-5) if parts == [2, 4] else ("float64", 1e-12)
    model = make(name, dtype=dtype, max_len=6)[0].eval()
    cache, start, found = DecoderCache(len(model.blocks)), 0, []
    for length in parts:
        found.append(model(IDS[:, start : start + length], cache))
        start += length
    assert cache.length == 6 and np.array_equal(cache.ids, IDS)
    np.testing.assert_allclose(np.concatenate(found, axis=1), model(IDS), rtol=tolerance, atol=tolerance)
    attention = model.blocks[0].attention
    groups = model.config.num_kv_heads or model.config.num_heads
    assert cache.blocks[0][0].keys.shape == (2, groups, 6, attention.d_head)  # not repeated


@pytest.mark.parametrize("name", [name for name in OPTIONS if name.startswith(("GPT", "Llama", "TransformerXL"))])
def test_generation_with_a_cache_and_without_takes_the_most_likely_tokens(make, name):
    """Beyond the context too, where the text goes on from its last max_len tokens; a memory is long enough for all."""
    model, _ = make(name, **{"mem_len": 14} if name.startswith("TransformerXL") else {"max_len": 8})
    model.eval()
    for use_cache in (True, False):
        text = generate(model, IDS, 8, temperature=0, use_cache=use_cache)
        assert text.shape == (2, 14)
        for end in range(6, 14):
            seen = text[:, max(0, end - getattr(model.config, "max_len", end)) : end]
            assert np.array_equal(text[:, end], first(model(seen))[:, -1].argmax(axis=-1))


@pytest.mark.parametrize("name", [*CAUSAL, "Bert"])
def test_a_fresh_model_knows_nothing(rng, name):
    model = small_model(class_of(name), **OPTIONS[name] | {"d_model": 48} | SIZES[class_of(name)])
    ids = [rng.integers(3, 50, size=(64, 9)) for _ in range(2 if class_of(name) in ("Transformer", "T5") else 1)]
    logits = first(getattr(model.eval(), "mlm_logits", model)(*ids))
    loss = F.cross_entropy(logits, rng.integers(logits.shape[-1], size=(64, 9)))[0]
    assert -0.1 < loss - np.log(50) < 0.5  # half of the variance of the logits


@pytest.mark.parametrize("name", OPTIONS)
def test_same_seed_same_bits(name):
    """Parameters, dropout, outputs and gradients."""

    def one_step(seed):
        model, (_, *batch) = small_model(class_of(name), **OPTIONS[name], seed=seed), MODELS[class_of(name)]
        batch = [[m.astype(np.float32) for m in x] if isinstance(x, list) else x for x in batch]
        output = first(model(*batch))
        model.backward(output)
        return [output, *(p.grad for p in model.parameters()), *(p.data for p in model.parameters())]

    once, same, other = one_step(5), one_step(5), one_step(6)
    assert all(np.array_equal(a, b) for a, b in zip(once, same, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(once, other, strict=True))


@pytest.mark.parametrize("name", OPTIONS)
def test_a_file_brings_the_model_back(make, name, tmp_path):
    model, batch = make(name)
    model.parameters()[0].freeze()  # it is saved all the same
    save_model(tmp_path / "model.safetensors", model)
    again, _ = load_model(tmp_path / "model.safetensors")
    assert again.config == model.config and not again.training
    assert np.array_equal(first(again(*batch)), first(model.eval()(*batch)))
