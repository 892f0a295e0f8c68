"""The tokenizer of a pretrained model in the living page: what of tokenizer.json the page reads."""

import json
import re

KNOWN = {  # what `live_page/pretrained.js` has, of each part of a tokenizer
    "model": {"BPE", "WordPiece", "WordLevel"},
    "normalizer": set("NFC NFD NFKC NFKD Lowercase StripAccents Strip Prepend Replace BertNormalizer Sequence".split()),
    "pre_tokenizer": {
        *("ByteLevel", "Split", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit", "BertPreTokenizer"),
        *("Metaspace", "Sequence"),
    },
    "post_processor": {"ByteLevel", "TemplateProcessing", "BertProcessing", "RobertaProcessing", "Sequence"},
    "decoder": {"ByteLevel", "WordPiece", "Metaspace", "Replace", "ByteFallback", "Fuse", "Strip", "Sequence"},
}
PARTS = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "post_processor": "processors",
         "decoder": "decoders"}  # fmt: skip
WHITE = r"\t-\r\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


def described(tokenizer):
    """A PretrainedTokenizer as plain data for the page: its rules, and its vocabulary and merges by id.

    Raises ValueError for a tokenizer with a part that the page does not have, and names the part.
    """
    found = json.loads(tokenizer.to_dict()["json"])
    model = found["model"]
    vocabulary = model.pop("vocab") if isinstance(model.get("vocab"), dict) else {}
    for name, known in KNOWN.items():
        for part in _parts(name, found.get(name)):
            if part["type"] not in known:
                raise ValueError(f"the page has no tokenizer with the {name} {part['type']}: use another model")
            if isinstance(pattern := part.get("pattern"), dict) and "Regex" in pattern:
                part["pattern"] = {"Regex": translated(pattern["Regex"])}
    if model["type"] == "BPE" and (model.get("continuing_subword_prefix") or model.get("end_of_word_suffix")):
        what = "a prefix or suffix of its words"
        raise ValueError(f"the page has no tokenizer of byte pairs with {what}: use another model")
    tokens = {i: token for token, i in vocabulary.items()}
    tokens |= {token["id"]: token["content"] for token in found["added_tokens"]}
    if model["type"] == "BPE":
        pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"])
        model["merges"] = [(vocabulary[a], vocabulary[b], vocabulary[a + b]) for a, b in pairs]
    before, after = _around(found.get("post_processor"))
    rules = {name: found.get(name) for name in ("normalizer", "pre_tokenizer", "decoder")}
    bytewise = any(part["type"] == "ByteLevel" for part in _parts("decoder", rules["decoder"]))
    listed = [tokens.get(i) for i in range(1 + max(tokens))]
    made = {"kind": "pretrained", "tokens": listed, "model": model, "added": found["added_tokens"], **rules}
    return {**made, "bytewise": bytewise, "before": before, "after": after}


def _parts(name, part):
    """The part itself and all parts of a Sequence."""
    if part is None:
        return []
    inside = part.get(PARTS.get(name, ""), []) if part["type"] == "Sequence" else []
    return [part, *(each for one in inside for each in _parts(name, one))]


def _around(processor):
    """The ids of the special tokens before and after a text."""
    before, after = [], []
    for part in _parts("post_processor", processor):
        if part["type"] == "TemplateProcessing":
            seen = False
            for item in part["single"]:
                if "Sequence" in item:
                    seen = True
                else:
                    ids = part["special_tokens"][item["SpecialToken"]["id"]]["ids"]
                    (after if seen else before).extend(ids)
        elif part["type"] in ("BertProcessing", "RobertaProcessing"):
            before.append(part["cls"][1])
            after.append(part["sep"][1])
    return before, after


def translated(pattern):
    """A pattern of Oniguruma as JavaScript writes it: white space is Unicode's, and (?i:…) has both cases of a letter.

    Raises ValueError for a pattern with a group or a quantifier that JavaScript does not have.
    """
    unknown = f"the page cannot read the tokenizer's pattern {pattern!r}: use another model"
    if any(sign in pattern for sign in ("(?>", "++", "*+", "?+", "\\h", "\\G", "&&", "[[:")):
        raise ValueError(unknown)
    made, in_class, ignoring = [], False, 0  # ignoring: the depth of groups inside (?i:
    for part in re.findall(r"\(\?i:|\\.|.", pattern.replace(r"[\s\S]", "[^]"), re.DOTALL):  # any character
        if part == "(?i:":
            made.append("(?:")
            ignoring = 1
        elif part == "\\s":
            made.append(WHITE if in_class else f"[{WHITE}]")
        elif part == "\\S":
            if in_class:
                raise ValueError(unknown)
            made.append(f"[^{WHITE}]")
        elif part[0] == "\\":
            made.append(part[1] if part[1] in "'\"" else part)
        else:
            in_class = (in_class or part == "[") and part != "]"
            if ignoring and not in_class:
                ignoring += (part == "(") - (part == ")")
            both = ignoring and part.isalpha() and not in_class
            made.append(f"[{part.lower()}{part.upper()}{'ſ' if part in 'sS' else ''}]" if both else part)
    return "".join(made)
