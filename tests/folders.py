"""Small folders of pretrained models, with random weights and with tokenizers of the kinds that real ones have."""

import json

import numpy as np
import pytest

from transformer_np.inspection.samples import randomised

tokenizers = pytest.importorskip("tokenizers", reason="tokenizer.json needs the tokenizers library")

WORDS = ["a", "dog", "cat", "bark", "##s", "loud", "in", "london", "where", "?", "not", "bad"]
USUAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
UNKNOWN_FIRST = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", *WORDS]  # the id 0 is a token that texts have


def wordpiece(words=USUAL):
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.BertNormalizer()
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.decoder = tokenizers.decoders.WordPiece()
    special = [(token, words.index(token)) for token in ("[CLS]", "[SEP]")]
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=special
    )
    return made


def bytewise():
    """Tokens are bytes, written as letters; "ã" and " s" are one token."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<end>": 0, **{letter: i for i, letter in enumerate(letters, 1)}, "Ã£": 257, "Ġs": 258}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [("Ã", "£"), ("Ġ", "s")]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    return made


def write(folder, model, tokenizer, seed=0, settings=None, **files):
    """A folder with a random model, more settings in config.json, and these JSON files."""
    randomised(model, np.random.default_rng(seed), 0.5).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = json.loads((folder / "config.json").read_text()) | (settings or {})
    for name, data in {"config": config, **files}.items():
        path = folder / (name.replace("__", "/") + ".json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(data), encoding="utf-8")
    return folder
