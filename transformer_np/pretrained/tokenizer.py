"""`tokenizer.json`, the tokenizer of a pretrained model, read by the tokenizers library."""

from pathlib import Path


class PretrainedTokenizer:
    """The tokenizer of a pretrained model: from text to ids and back, with special tokens such as [CLS] and [SEP].

    path: a tokenizer.json, or its folder

    Padding and truncation in the file are turned off: the code that makes a batch controls both.

    Raises ModuleNotFoundError without the tokenizers library, FileNotFoundError for a missing file, ValueError for a
    damaged one.
    """

    def __init__(self, path):
        try:
            from tokenizers import Tokenizer
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                'tokenizer.json needs the tokenizers library: pip install "transformer-np[pretrained]"'
            ) from None
        path = Path(path)
        if path.is_dir():
            path = path / "tokenizer.json"
        if not path.is_file():
            raise FileNotFoundError(f"cannot read the tokenizer: there is no {path}")
        try:
            self._tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
        except Exception as error:  # the library raises no narrower type
            raise ValueError(f"{path} is damaged or not a tokenizer: {error}") from None
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def __len__(self):
        return self._tokenizer.get_vocab_size()

    def encode(self, text, max_tokens=None):
        """The ids of a text. With max_tokens, a longer text loses its end but keeps its closing special token."""
        return self._encoded(text, max_tokens).ids

    def tokens(self, text, max_tokens=None):
        """The tokens of a text as strings, one per id; "Ġ", a space in some vocabularies, becomes a space."""
        return [piece.replace("Ġ", " ") for piece in self._encoded(text, max_tokens).tokens]

    def decode(self, ids):
        """The text of the ids, without special tokens."""
        return self._tokenizer.decode([int(i) for i in ids])

    def _encoded(self, text, max_tokens):
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        encoded = self._tokenizer.encode(text)
        if max_tokens is not None and len(encoded.ids) > max_tokens:
            self._tokenizer.enable_truncation(max_tokens)
            encoded = self._tokenizer.encode(text)
            self._tokenizer.no_truncation()
        return encoded
