"""From text to ids and back: a vocabulary of words or of characters, learned from a training text."""

import re
import unicodedata
from collections import Counter
from functools import cache

from ..support.progress import progress

PAD, BOS, EOS, UNK = range(4)
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")


class Tokenizer:
    """A vocabulary, with a rule that cuts a text into pieces and one that joins pieces to a text.

    A subclass defines `kind`, `cut` and `join`. The first four ids are the special tokens. No text is ever cut into a
    special token, whatever the user types: padding, start and end come only from the program.

    Raises ValueError unless the vocabulary is a list of distinct strings with the special tokens first.
    """

    kind = None
    fields = ("vocabulary", "lowercase")  # the constructor's arguments, which are also the names of attributes

    def __init__(self, vocabulary, lowercase=False):
        _check_vocabulary(vocabulary)
        if not isinstance(lowercase, bool):
            raise ValueError(f"lowercase must be true or false, got {lowercase!r}")
        self.vocabulary = list(vocabulary)
        self.lowercase = lowercase
        self._ids = {token: i for i, token in enumerate(self.vocabulary)}

    @staticmethod
    def cut(text):
        """The pieces of a text, as a list of strings."""
        raise NotImplementedError

    @staticmethod
    def join(pieces):
        """The text that was cut into these pieces, up to white space."""
        raise NotImplementedError

    @classmethod
    def train(cls, texts, min_count=1, max_size=None, lowercase=False):
        """Learn a vocabulary: all pieces that occur at least min_count times, by count, then alphabetically.

        texts: an iterable of strings; max_size: the most tokens in the vocabulary, including the special ones
        Raises ValueError for no text, no piece that is frequent enough, or a max_size without room for a piece.
        """
        if isinstance(texts, str):
            raise TypeError("texts must be a list of strings, got a single string; put it into a list")
        _check_bound("min_count", min_count, 1)
        if max_size is not None:
            _check_bound("max_size", max_size, len(SPECIAL_TOKENS) + 1)  # one token besides the special ones
        counts = Counter(_key(piece, lowercase) for text in texts for piece in cls.cut(_nfc(text)))
        if not counts:
            raise ValueError("there is no text to learn a vocabulary from")
        learned = sorted((t for t in counts if counts[t] >= min_count), key=lambda t: (-counts[t], t))
        if not learned:
            raise ValueError(f"min_count is {min_count}, but no token occurs more than {max(counts.values())} times")
        return cls([*SPECIAL_TOKENS, *learned][:max_size], lowercase)

    def __len__(self):
        return len(self.vocabulary)

    def __repr__(self):
        return f"{type(self).__name__} of {len(self)} tokens"

    def encode(self, text):
        """The ids of a text, without start and end tokens; a piece that is not in the vocabulary becomes UNK."""
        pieces = progress(self.cut(_nfc(text)), "tokenizing")
        return [self._ids.get(_key(piece, self.lowercase), UNK) for piece in pieces]

    def decode(self, ids):
        """The text of the ids, without special tokens except "<unk>"."""
        return self.join([self.token(i) for i in ids if i not in (PAD, BOS, EOS)])

    def token(self, i):
        """The token of an id; ValueError if there is none."""
        if not 0 <= i < len(self):
            raise ValueError(f"an id must lie in 0 … {len(self) - 1}, got {i}")
        return self.vocabulary[i]

    def unknown(self, text):
        """The pieces of a text that are not in the vocabulary: as typed, each once, in order."""
        pieces = dict.fromkeys(self.cut(_nfc(text)))
        return [piece for piece in pieces if _key(piece, self.lowercase) not in self._ids]

    def to_dict(self):
        """The tokenizer as plain data, for a JSON file."""
        return {"kind": self.kind, **{name: getattr(self, name) for name in self.fields}}

    @classmethod
    def from_dict(cls, data):
        """The tokenizer that `to_dict` described, an instance of the class with that `kind`.

        Raises ValueError for a wrong description.
        """
        if not isinstance(data, dict):
            raise ValueError(f"a tokenizer is described by a dict, got {type(data).__name__}")
        kinds = {known.kind: known for known in (cls, *cls.__subclasses__()) if known.kind}
        kind = data.get("kind")
        if kind not in list(kinds):
            raise ValueError(f"the kind of the tokenizer must be {' or '.join(map(repr, kinds))}, got {kind!r}")
        tokenizer = kinds[kind]
        expected = {"kind", *tokenizer.fields}
        if data.keys() != expected:
            raise ValueError(f"a {kind} tokenizer is described by {sorted(expected)}, got {list(data)}")
        return tokenizer(**{name: data[name] for name in tokenizer.fields})


class CharTokenizer(Tokenizer):
    """Every character is a token, including white space: a small vocabulary, long sequences, hardly any unknowns."""

    kind = "char"

    @staticmethod
    def cut(text):
        return list(text)

    @staticmethod
    def join(pieces):
        return "".join(pieces)


class WordTokenizer(Tokenizer):
    """Words and punctuation marks: short sequences, but words that are not in the training text are unknown.

    A word is letters and digits, with hyphens and apostrophes inside: "segunda-feira", "don't", "d'água".
    """

    kind = "word"

    @classmethod
    def train(cls, texts, min_count=2, max_size=None, lowercase=False):
        """As `Tokenizer.train`, but a word that occurs only once stays unknown, so that the model sees "<unk>"."""
        return super().train(texts, min_count, max_size, lowercase)

    @staticmethod
    def cut(text):
        return _word_or_mark().findall(text)

    @staticmethod
    def join(pieces):
        """Words with spaces between them; a mark joins the word before it, an opening mark the word after it."""
        text, opened, quoted = [], True, False  # opened: the next piece follows without a space
        for piece in pieces:
            opens, closes = piece in OPENING, piece in CLOSING
            if piece == '"':  # the same mark opens and closes alternately
                opens, closes, quoted = not quoted, quoted, not quoted
            text += [piece] if opened or closes else [" ", piece]
            opened = opens
        return "".join(text)


class PlainWordTokenizer(Tokenizer):
    """Words only, without punctuation: for word vectors.

    A word is as in WordTokenizer, but may contain underscores, so that an identifier is one word: "don't", "__init__".
    """

    kind = "plain word"

    @classmethod
    def train(cls, texts, min_count=5, max_size=None, lowercase=True):
        """As `Tokenizer.train`; a word with fewer than min_count occurrences has too few neighbours to learn from."""
        return super().train(texts, min_count, max_size, lowercase)

    @staticmethod
    def cut(text):
        return [piece for piece in _word_with_underscores().findall(text) if piece.strip("_")]

    @staticmethod
    def join(pieces):
        return " ".join(pieces)


OPENING = frozenset("([{“‘«¿¡")
CLOSING = frozenset(",.!?;:…)]}”’»%")


@cache  # compiled on first use, because it looks at every Unicode character
def _word_or_mark():
    """A word, or any single character that is not white space."""
    return re.compile(_word("[^\\W_]") + "|\\S")


@cache
def _word_with_underscores():
    return re.compile(_word("\\w"))


def _word(letter):
    """The pattern of a word, given the pattern of a letter.

    `\\w` has the letters and digits of all scripts but not their combining signs, such as the vowels of Hindi.
    """
    combining = "".join(c for c in map(chr, range(0x20000)) if unicodedata.category(c)[0] == "M")
    letters = f"(?:{letter}|[{combining}\u200c\u200d])+"  # and the two joiners, which Persian spelling uses
    return f"{letters}(?:[-‐'’]{letters})*"


def _nfc(text):
    """The composed form of a text: é as one character, not as e and an accent."""
    return unicodedata.normalize("NFC", text)


def _key(piece, lowercase):
    return piece.lower() if lowercase else piece


def _check_bound(name, value, least):
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")


def _check_vocabulary(vocabulary):
    if not isinstance(vocabulary, list | tuple):
        raise ValueError(f"vocabulary must be a list of strings, got {type(vocabulary).__name__}")
    if tuple(vocabulary[: len(SPECIAL_TOKENS)]) != SPECIAL_TOKENS:
        raise ValueError(f"vocabulary must begin with {list(SPECIAL_TOKENS)}, got {vocabulary[: len(SPECIAL_TOKENS)]}")
    seen = set()
    for i, token in enumerate(vocabulary):
        if not isinstance(token, str) or not token:
            raise ValueError(f"vocabulary must hold strings, none empty; entry {i} is {token!r}")
        if token in seen:
            raise ValueError(f"vocabulary has {token!r} twice, the second time as entry {i}")
        seen.add(token)
