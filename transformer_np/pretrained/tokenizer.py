"""`tokenizer.json`, the tokenizer of a pretrained model, read by the tokenizers library."""

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..models.layouts.folder import OLDER_TOKENIZERS, TOKENIZER, located
from ..support.checks import as_text_ids, check_kind
from ..support.files import LARGEST_JSON, read_bytes, read_json_object

TOKENIZER_CONFIG = "tokenizer_config.json"
NO_SEGMENTS = ("PreTrainedTokenizerFast", "TokenizersBackend", "DistilBert", "Roberta", "XLMRoberta", "MPNet")
_SEEN = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that stand for themselves (Radford et al. 2019)
_BYTES = {chr(256 + i): byte for i, byte in enumerate(b for b in range(256) if b not in _SEEN)}
_BYTES |= {chr(byte): byte for byte in _SEEN}  # {letter in the vocabulary: the byte that it stands for}
LETTERS = {byte: letter for letter, byte in _BYTES.items()}


@dataclass(frozen=True)
class Encoded:
    """A text, or a pair of texts, as a model reads it: lists with one entry per token.

    ids, segments: the segment is 0 or, in most tokenizers for the second text, 1
    texts: 0 or 1, the text that the token is from, or None for one that the tokenizer added, such as [CLS]
    places: the token's (start, end) in its text;  words: the number of its word in its text, or None
    left_out: the number of tokens that were cut off
    """

    ids: list
    segments: list
    texts: list = field(default_factory=list)
    places: list = field(default_factory=list)
    words: list = field(default_factory=list)
    left_out: int = 0


class PretrainedTokenizer:
    """The tokenizer of a pretrained model: from text to ids and back, with special tokens such as [CLS] and [SEP].

    path: a tokenizer.json, or its folder; a tokenizer_config.json beside it is read too
    text: the content of a tokenizer.json, instead of a path
    segments: with `text`, whether a second text has segment 1; with a path, tokenizer_config.json says it

    Padding and truncation in the file are turned off: the code that makes a batch controls both.

    Raises ModuleNotFoundError without the tokenizers library, FileNotFoundError for a missing file, ValueError for a
    damaged one.
    """

    kind = "pretrained"
    special_ids = ()  # the ids that `decode` cannot leave out itself: none

    def __init__(self, path=None, text=None, segments=True):
        try:
            from tokenizers import Tokenizer
        except ModuleNotFoundError:
            how = 'pip install "transformer-np[pretrained]"'
            raise ModuleNotFoundError(f"tokenizer.json needs the tokenizers library: {how}") from None
        self.name, self.segments, self.settings = "the tokenizer" if path is None else _file(Path(path)), segments, {}
        if text is None:
            self.settings = read_json_object(self.name.parent / TOKENIZER_CONFIG, optional=True)
            self.segments = _with_segments(self.settings)
            text = read_bytes(self.name, "a tokenizer", LARGEST_JSON).decode("utf-8", "replace")
        try:
            with _errors(f"{self.name} is damaged or not a tokenizer"):
                self._tokenizer = Tokenizer.from_str(text)
                self._tokenizer.no_padding()
                self._tokenizer.no_truncation()
                self._tokenizer.encode("")  # a template may name tokens that do not exist
        except TypeError:
            raise ValueError(f"{self.name} is damaged or not a tokenizer") from None
        self._text = self._normalized(text)
        parts = [part for part in (self._tokenizer.decoder, self._tokenizer.pre_tokenizer) if part is not None]
        rules = b"".join(part.__getstate__() for part in parts)  # as JSON
        self._bytewise, self._blank = b'"ByteLevel"' in rules, "▁" if "▁".encode() in rules else ""
        self._added = set(self._tokenizer.get_added_tokens_decoder())

    def __len__(self):
        return self._tokenizer.get_vocab_size()

    def encode(self, text, max_tokens=None, special=True):
        """The ids of a text. With max_tokens, a longer text loses its end but keeps its closing special token.

        special: whether special tokens such as [CLS] are added
        """
        return self.read(text, max_tokens=max_tokens, special=special).ids

    def read(self, text, second=None, max_tokens=None, cut="longest_first", special=True):
        """A text, or two as one sequence  ->  Encoded

        cut: what becomes shorter if there are more than max_tokens: "longest_first", the longer text, or "only_second"

        Raises TypeError for anything but strings; ValueError if too many tokens would be left after cutting the second.
        """
        texts = [text] if second is None else [text, second]
        for text in texts:
            check_kind("text", text, str)
        with _errors(f"{self.name} cannot encode this text"):
            whole = encoded = self._tokenizer.encode(*texts, add_special_tokens=special)
            if max_tokens is not None and len(whole.ids) > max_tokens:
                if cut == "only_second" and max_tokens <= len(whole.ids) - whole.sequence_ids.count(1):
                    raise ValueError(f"the first text leaves no room for the second in {max_tokens} tokens")
                self._tokenizer.enable_truncation(max_tokens, strategy="longest_first" if second is None else cut)
                try:
                    encoded = self._tokenizer.encode(*texts, add_special_tokens=special)
                finally:
                    self._tokenizer.no_truncation()
        left_out = len(whole.ids) - len(encoded.ids)
        segments = encoded.type_ids if self.segments else [0] * len(encoded.ids)
        own = segments, encoded.sequence_ids, encoded.offsets, encoded.word_ids
        return Encoded(encoded.ids, *own, left_out)

    def tokens(self, text, max_tokens=None):
        """The tokens of a text as a person reads them, one string per id: see `token`."""
        return [self.token(i) for i in self.encode(text, max_tokens)]

    def token(self, i):
        """The token of an id as a person reads it: bytes as the characters that they spell, and a space where the
        vocabulary writes "Ġ" or "▁". A byte that is only a part of a character is a number such as "\\xc3".
        ValueError if there is no such id."""
        token = self._written(i)
        if int(i) in self._added:
            return token
        if not self._bytewise:
            return token.replace(self._blank or " ", " ")
        with suppress(KeyError):  # for a letter that is no byte
            return bytes(_BYTES[letter] for letter in token).decode("utf-8", "backslashreplace")
        return token

    def _written(self, i):
        """The token of an id as the vocabulary writes it."""
        token = self._tokenizer.id_to_token(int(i)) if 0 <= i < 2**32 else None
        if token is None:
            raise ValueError(f"an id must lie in 0 … {len(self) - 1}, got {i}")
        return token

    def without_token(self, size):
        """The ids below a size that no token has: a model may have more rows in its embedding."""
        return [i for i in range(size) if self._tokenizer.id_to_token(i) is None]

    def unknown(self, text):
        """The pieces of a text that it does not know: none, because it cuts unknown words into known pieces."""
        return []

    @property
    def unknown_token(self):
        """The token of an unknown piece, such as [UNK], or None."""
        return getattr(self._tokenizer.model, "unk_token", None)

    def decode(self, ids):
        """The text of the ids, without special tokens. ValueError if there is no such id."""
        ids = as_text_ids(ids).tolist()
        for i in ids:  # the library leaves out what it does not know
            self._written(i)
        with _errors(f"{self.name} cannot decode these ids"):
            return self._tokenizer.decode(ids)

    def to_dict(self):
        """The tokenizer as plain data, for a JSON file; `text` of the constructor takes its "json"."""
        return {"kind": self.kind, "json": self._text, **({} if self.segments else {"segments": False})}

    def _normalized(self, text):
        """The content of tokenizer.json, with what tokenizer_config.json says of a BERT's case and accents: it counts
        more, as in transformers."""
        keys = {"do_lower_case": "lowercase", "strip_accents": "strip_accents"}
        keys |= {"tokenize_chinese_chars": "handle_chinese_chars"}
        given = {ours: self.settings[key] for key, ours in keys.items() if key in self.settings}
        normalizer = self._tokenizer.normalizer
        if type(normalizer).__name__ != "BertNormalizer":
            return text
        for name, value in given.items():
            if value not in (True, False, None) or (value is None and name != "strip_accents"):
                raise ValueError(f"{self.name.parent / TOKENIZER_CONFIG}: {name} must be true or false, got {value!r}")
        if all(getattr(normalizer, name) == value for name, value in given.items()):
            return text
        for name, value in given.items():
            setattr(normalizer, name, value)
        self._tokenizer.normalizer = normalizer
        return self._tokenizer.to_str()


def _with_segments(settings):
    """Whether a tokenizer with these settings tells a model the segments of a pair, as in transformers 5."""
    names = settings.get("model_input_names")
    kind = str(settings.get("tokenizer_class") or "")
    return "token_type_ids" in names if isinstance(names, list) else not kind.startswith(NO_SEGMENTS)


def _file(path):
    """The tokenizer.json of this path; FileNotFoundError that says how to make one from older files."""
    path = located(path)
    path = path / TOKENIZER if path.is_dir() else path
    if path.is_file():
        return path
    older = [name for name in OLDER_TOKENIZERS if (path.parent / name).is_file()]
    folder = repr(str(path.parent))
    how = f"from transformers import AutoTokenizer; AutoTokenizer.from_pretrained({folder}).save_pretrained({folder})"
    hint = f', only {" and ".join(older)}. Make it where transformers is installed: python -c "{how}"'
    raise FileNotFoundError(f"cannot read the tokenizer: there is no {path}{hint if older else ''}")


@contextmanager
def _errors(what):
    """In the block, an error of the tokenizers library becomes a ValueError of one line. A panic of the library is a
    BaseException, and prints many lines before it is raised: they are left out."""
    with _silent():
        try:
            yield
        except (ValueError, TypeError):
            raise
        except BaseException as error:
            if isinstance(error, Exception) or type(error).__name__ == "PanicException":
                raise ValueError(f"{what}: {' '.join(str(error).split())[:200]}") from None
            raise


@contextmanager
def _silent():
    """In the block, what libraries in other languages write to the standard error is dropped."""
    try:
        before, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except OSError:  # it is closed
        yield
        return
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nothing)
