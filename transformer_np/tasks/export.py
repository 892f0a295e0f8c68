"""Our tokenizers of characters and byte pairs as a tokenizer.json, which other libraries read."""

import json

from ..data import BPETokenizer, CharTokenizer
from ..data.bpe import FIRST_BYTE
from ..data.masking import MASK_TOKEN, MASK_WORD
from ..data.tokenizers import BOS, EOS, SPECIAL_TOKENS, UNK
from ..pretrained.tokenizer import LETTERS, TOKENIZER, TOKENIZER_CONFIG, PretrainedTokenizer

# The pattern of BPETokenizer, in the classes of Unicode that Python's \\w, \\d and \\s mean
_WHITE = "\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_PIECE = (
    rf"'(?:s|t|re|ve|m|ll|d)| ?[\p{{L}}\p{{Nl}}\p{{No}}]{{1,64}}| ?\p{{Nd}}{{1,64}}| ?[^\p{{L}}\p{{N}}{_WHITE}]{{1,64}}"
    rf"|[{_WHITE}]{{1,64}}(?![^{_WHITE}])|[{_WHITE}]{{1,64}}"
)


def as_pretrained(tokenizer, around=False):
    """{name: content} of the files that give other libraries the ids of this tokenizer: tokenizer.json and, for our
    own, tokenizer_config.json

    around: whether a text stands between <bos> and <eos>, as in a BERT

    Raises ValueError for words, whose spaces follow rules that the file cannot express, and for byte pairs that spell
    the same token twice.
    """
    if isinstance(tokenizer, PretrainedTokenizer):
        return {TOKENIZER: tokenizer.to_dict()["json"]}
    if isinstance(tokenizer, BPETokenizer):
        parts = _of_byte_pairs(tokenizer)
    elif isinstance(tokenizer, CharTokenizer):
        parts = _of_characters(tokenizer)
    else:
        what = f"a tokenizer of {tokenizer.kind}s, whose rules for spaces and marks tokenizer.json cannot express"
        raise ValueError(f"the run has {what}: train with --tokens char, or bpe where the task has it")
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    masks = {MASK_WORD: len(tokenizer) - 1} if tokenizer.vocabulary[-1] == MASK_TOKEN else {}
    special = {token: i for i, token in enumerate(SPECIAL_TOKENS)} | masks
    added = [{"id": i, "content": token, **flags} for token, i in special.items()]
    found = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, **parts}
    found["post_processor"] = _template() if around else None
    names = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), SPECIAL_TOKENS, strict=True))
    names |= {"cls_token": SPECIAL_TOKENS[BOS], "sep_token": SPECIAL_TOKENS[EOS]} if around else {}
    names |= {"mask_token": MASK_WORD} if masks else {}
    names |= {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]} if around else {}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **names}
    return {TOKENIZER: json.dumps(found, ensure_ascii=False), TOKENIZER_CONFIG: json.dumps(settings)}


def _of_characters(tokenizer):
    lower = [{"type": "Lowercase"}] if tokenizer.lowercase else []
    vocabulary = {MASK_WORD if token == MASK_TOKEN else token: i for i, token in enumerate(tokenizer.vocabulary)}
    return {
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, *lower]},
        "pre_tokenizer": _split(r"[\s\S]"),
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": SPECIAL_TOKENS[UNK]},
    }


def _of_byte_pairs(tokenizer):
    names = [*SPECIAL_TOKENS, *("".join(LETTERS[byte] for byte in token) for token in tokenizer.spelled[FIRST_BYTE:])]
    vocabulary = {name: i for i, name in enumerate(names)}
    if len(vocabulary) < len(names):
        twice = next(name for i, name in enumerate(names) if vocabulary[name] != i)
        raise ValueError(f"two tokens of the tokenizer spell {twice!r}: tokenizer.json cannot express that")
    model = {"type": "BPE", "vocab": vocabulary, "merges": [[names[a], names[b]] for a, b in tokenizer.merges]}
    none = dict.fromkeys(("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"))
    bytewise = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    return {
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [_split(_PIECE), bytewise]},
        "decoder": bytewise,
        "model": {**model, **none, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False},
    }


def _split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _template():
    first, last = ({"SpecialToken": {"id": SPECIAL_TOKENS[i], "type_id": 0}} for i in (BOS, EOS))
    a, b = ({"Sequence": {"id": name, "type_id": number}} for number, name in enumerate("AB"))
    end = {"SpecialToken": {"id": SPECIAL_TOKENS[EOS], "type_id": 1}}
    tokens = {
        SPECIAL_TOKENS[i]: {"id": SPECIAL_TOKENS[i], "ids": [i], "tokens": [SPECIAL_TOKENS[i]]} for i in (BOS, EOS)
    }
    return {
        "type": "TemplateProcessing", "single": [first, a, last], "pair": [first, a, last, b, end],
        "special_tokens": tokens,
    }  # fmt: skip
