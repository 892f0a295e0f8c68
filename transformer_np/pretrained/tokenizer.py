"""`tokenizer.json`, the tokenizer of a pretrained model, read by the tokenizers library."""

from pathlib import Path


class PretrainedTokenizer:
    """The tokenizer of a pretrained model: from text to ids and back, with special tokens such as [CLS] and [SEP].

    path: a tokenizer.json, or its folder
    text: the content of a tokenizer.json, instead of a path

    Padding and truncation in the file are turned off: the code that makes a batch controls both.

    Raises ModuleNotFoundError without the tokenizers library, FileNotFoundError for a missing file, ValueError for a
    damaged one.
    """

    kind = "pretrained"
    special_ids = ()  # the ids that `decode` cannot leave out itself: none

    def __init__(self, path=None, text=None):
        try:
            from tokenizers import Tokenizer
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                'tokenizer.json needs the tokenizers library: pip install "transformer-np[pretrained]"'
            ) from None
        if text is None:
            path = Path(path)
            if path.is_dir():
                path = path / "tokenizer.json"
            if not path.is_file():
                raise FileNotFoundError(f"cannot read the tokenizer: there is no {path}")
            text = path.read_text(encoding="utf-8")
        try:
            self._tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # the library raises no narrower type
            raise ValueError(f"{path or 'the tokenizer'} is damaged or not a tokenizer: {error}") from None
        self._text = text
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def __len__(self):
        return self._tokenizer.get_vocab_size()

    def encode(self, text, max_tokens=None, special=True):
        """The ids of a text. With max_tokens, a longer text loses its end but keeps its closing special token.

        special: whether special tokens such as [CLS] are added
        """
        return self._encoded(text, max_tokens, special).ids

    def encode_pair(self, first, second, max_tokens=None):
        """Two texts as one sequence, the second cut off if needed  ->  ids, the segment of each, and its place
        (start, end) in the second text, or None for other tokens"""
        encoded = self._encoded(first, max_tokens, pair=second)
        places = zip(encoded.offsets, encoded.sequence_ids, strict=True)
        return encoded.ids, encoded.type_ids, [place if of == 1 else None for place, of in places]

    def tokens(self, text, max_tokens=None):
        """The tokens of a text as strings, one per id; "Ġ", a space in some vocabularies, becomes a space."""
        return [piece.replace("Ġ", " ") for piece in self._encoded(text, max_tokens).tokens]

    def token(self, i):
        """The token of an id, as in `tokens`; ValueError if there is none."""
        token = self._tokenizer.id_to_token(int(i))
        if token is None:
            raise ValueError(f"an id must lie in 0 … {len(self) - 1}, got {i}")
        return token.replace("Ġ", " ")

    def unknown(self, text):
        """The pieces of a text that it does not know: none, because it cuts unknown words into known pieces."""
        return []

    def decode(self, ids):
        """The text of the ids, without special tokens."""
        return self._tokenizer.decode([int(i) for i in ids])

    def to_dict(self):
        """The tokenizer as plain data, for a JSON file; `text` of the constructor takes its "json"."""
        return {"kind": self.kind, "json": self._text}

    def _encoded(self, text, max_tokens, special=True, pair=None):
        texts = [text] if pair is None else [text, pair]
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"text must be a string, got {type(text).__name__}")
        encoded = self._tokenizer.encode(*texts, add_special_tokens=special)
        if max_tokens is not None and len(encoded.ids) > max_tokens:
            if pair is not None and max_tokens <= len(encoded.ids) - encoded.sequence_ids.count(1):
                raise ValueError(f"the first text leaves no room for the second in {max_tokens} tokens")
            self._tokenizer.enable_truncation(max_tokens, strategy="longest_first" if pair is None else "only_second")
            encoded = self._tokenizer.encode(*texts, add_special_tokens=special)
            self._tokenizer.no_truncation()
        return encoded
