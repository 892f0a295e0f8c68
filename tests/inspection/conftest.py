"""Firefox, and the small models of the living page."""

import shutil

import pytest
from firefox import Firefox

from transformer_np.data import WordTokenizer
from transformer_np.data.tokenizers import SPECIAL_TOKENS
from transformer_np.models import GPT, GPTConfig, Transformer, TransformerConfig

SOURCE_WORDS = [*SPECIAL_TOKENS, "ana", "is", "tired", "<", "script", ">", "don't"]
TARGET_WORDS = [*SPECIAL_TOKENS, "Ana", "está", "cansada", "<", "script", ">", "/", "b", "."]
SIZES = {"d_model": 12, "num_heads": 3, "dropout": 0.1}


@pytest.fixture(scope="session")
def firefox(tmp_path_factory):
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        pytest.skip("Firefox is not there")
    browser = Firefox(program, tmp_path_factory.mktemp("firefox"))
    try:
        yield browser
    finally:
        browser.quit()


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
