"""The living page: its model computes what NumPy's computes, and the page does what it says in a real browser."""

import base64
import json

import numpy as np
import pytest
from browsing import opened

from transformer_np import functional as F
from transformer_np.data import BPETokenizer, CharTokenizer, WordTokenizer
from transformer_np.data.tokenizers import SPECIAL_TOKENS
from transformer_np.inspection.explorer.live import explore_live
from transformer_np.masks import causal_mask
from transformer_np.models import GPT, GPTConfig, Transformer, TransformerConfig

HOSTILE = "</script><b id='broken'>"
SOURCE_WORDS = [*SPECIAL_TOKENS, "ana", "is", "tired", "<", "script", ">", "don't"]
TARGET_WORDS = [*SPECIAL_TOKENS, "Ana", "está", "cansada", "<", "script", ">", "/", "b", "."]
SIZES = {"d_model": 12, "num_heads": 3, "dropout": 0.1}

INTERMEDIATES = """
const [source, given, changes] = arguments;
const values = live.model.forward(live.model.encode?.(source, changes), given, changes);
const bytes = (data) => btoa(Array.from(new Uint8Array(data.buffer), (byte) => String.fromCharCode(byte)).join(""));
return Object.fromEntries(Object.entries(values).map(([name, value]) => {
  const parts = [value].flat();
  const all = Float64Array.from(parts.flatMap((part) => [...part.data]));
  return [name, [value.length ? [parts.length] : [], parts[0].rows, parts[0].columns, bytes(all)]];
}));
"""


@pytest.fixture
def tokenizers():
    return WordTokenizer(SOURCE_WORDS, lowercase=True), WordTokenizer(TARGET_WORDS)


@pytest.fixture
def make_translator(random_module):
    def make(layers=2, d_ff=10, max_len=16, **config):
        sizes = {"src_vocab_size": len(SOURCE_WORDS), "tgt_vocab_size": len(TARGET_WORDS)}
        sizes |= {"num_encoder_layers": layers, "num_decoder_layers": layers, "d_ff": d_ff, "max_len": max_len}
        config = TransformerConfig(**SIZES, **{**sizes, **config})
        return random_module(Transformer(config))

    return make


@pytest.fixture
def make_gpt(random_module):
    def make(vocab_size=9, **config):
        return random_module(GPT(GPTConfig(vocab_size, **{"max_len": 8, "num_layers": 2, **SIZES, **config})))

    return make


# --- the forward pass -------------------------------------------------------------------------------------------------


def numbers_in_page(browser, source, given, changes=()):
    """{name: array} of every intermediate that the page's model computes; the heads are the first axis."""
    found = browser.execute_script(INTERMEDIATES, source, given, list(changes))
    return {
        name: np.frombuffer(base64.b64decode(text)).reshape(*heads, rows, columns)
        for name, (heads, rows, columns, text) in found.items()
    }


def numbers_in_numpy(model, *ids):
    """{name: array} of every intermediate, every module's output under its name with ".out", and the masked scores."""
    outputs = {}

    def noting(path, forward):
        def forward_and_note(*args, **kwargs):
            out = forward(*args, **kwargs)
            outputs[f"{path}.out"] = out.copy()  # the next module may scale it in place
            return out

        return forward_and_note

    for path, module in model.named_modules():
        if path:
            object.__setattr__(module, "forward", noting(path, module.forward))
    try:
        model.eval(keep=True)
        model(*(np.array([row]) for row in ids))
    finally:
        for path, module in model.named_modules():
            vars(module).pop("forward", None)
    found = model.intermediates() | outputs
    for name in [name for name in found if name.endswith(".weights")]:
        path = name.removesuffix("weights")
        mask = None if "encoder" in path or "cross" in path else causal_mask(found[name].shape[2])
        found[f"{path}scores"] = F.attention_scores(found[f"{path}q"], found[f"{path}k"], mask)
    return {name: array[0] for name, array in found.items() if array.dtype.kind == "f" and array.ndim > 2}


def largest_difference(browser, model, source, given):
    """Between the page and NumPy, over all intermediates, which must be the same ones."""
    page = numbers_in_page(browser, source, given)
    expected = numbers_in_numpy(model, *([source, given] if isinstance(model, Transformer) else [given]))
    missing = expected.keys() - page.keys()
    assert all("dropout" in name for name in missing), missing
    worst = 0
    for name in page.keys() & expected.keys():
        seen = ~np.isneginf(expected[name])
        assert page[name].shape == expected[name].shape, name
        assert np.array_equal(seen, ~np.isneginf(page[name])), name
        worst = max(worst, np.abs(page[name][seen] - expected[name][seen]).max(initial=0))
    return worst


def load(browser, page, tmp_path):
    (tmp_path / "page.html").write_text(page.page, encoding="utf-8")
    browser.get((tmp_path / "page.html").as_uri())


def test_three_sentences_in_the_page_and_in_numpy(browser, make_translator, tokenizers, tmp_path):
    model = make_translator(norm_first=False)
    load(browser, explore_live(model, tokenizers, "Ana is tired"), tmp_path)
    for source, given in (([4, 5, 6], [1, 4, 5, 6]), ([7], [1]), ([10, 3, 9, 4, 4], [1, 12, 11])):
        assert largest_difference(browser, model, source, given) < 1e-4


@pytest.mark.long
@pytest.mark.parametrize("choices", [
    {"norm_first": True, "activation": "gelu"},
    {"tie_embeddings": True, "activation": "gelu_tanh"},
    {"norm_first": True, "tie_embeddings": True, "src_vocab_size": 13, "activation": "silu"},  # one vocabulary
    {"num_encoder_layers": 0},
])
def test_every_kind_of_translator(browser, make_translator, tokenizers, tmp_path, choices):
    model = make_translator(**choices)
    if choices.get("src_vocab_size"):
        tokenizers = [tokenizers[1]] * 2
    load(browser, explore_live(model, tokenizers, "Ana is tired"), tmp_path)
    assert largest_difference(browser, model, [10, 3, 9, 4, 4], [1, 12, 11]) < 1e-4


@pytest.mark.long
@pytest.mark.parametrize("choices", [{}, {"tie_embeddings": False, "bias": False}, {"activation": "relu"}])
def test_every_kind_of_gpt(browser, make_gpt, tmp_path, choices):
    model = make_gpt(**choices)
    load(browser, explore_live(model, CharTokenizer([*SPECIAL_TOKENS, *"abcde"]), "abc"), tmp_path)
    assert largest_difference(browser, model, None, [4, 5, 6, 6, 8, 7, 4, 5]) < 1e-4
