"""From text to ids and back: a vocabulary of words or of characters, learned from a training text."""

import re
import unicodedata
from collections import Counter
from functools import cache

from ..support.checks import as_text_ids, check_at_least, check_flag, check_kind, each_text
from ..support.progress import progress

PAD, BOS, EOS, UNK = range(4)
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")


class Tokenizer:
    """A vocabulary, with a rule that cuts a text into pieces and a rule that joins pieces to a text.

    A subclass defines `kind`, `cut` and, if its pieces have something between them, `join`. The first four ids are the
    special tokens. No text is ever cut into a special token, even if the user types one: padding, start and end come
    only from the program.

    Raises ValueError unless the vocabulary is a list of distinct strings with the special tokens first.
    """

    kind = None
    special_ids = range(len(SPECIAL_TOKENS))
    fields = ("vocabulary", "lowercase")  # the constructor's arguments, which are also the names of attributes

    def __init__(self, vocabulary, lowercase=False):
        _check_vocabulary(vocabulary)
        if not isinstance(lowercase, bool):
            raise ValueError(f"lowercase must be true or false, got {lowercase!r}")
        self.vocabulary = list(vocabulary)
        self.lowercase = lowercase
        self._ids = {token: i for i, token in enumerate(self.vocabulary)}
        # of several tokens with the same plain form the most frequent, which comes first
        self._plain_ids = {self.plain(token): i for token, i in reversed(self._ids.items())}

    @staticmethod
    def cut(text):
        """The pieces of a text, as a list of strings."""
        raise NotImplementedError

    @staticmethod
    def join(pieces):
        """The text that was cut into these pieces, up to white space: by default the pieces one after the other."""
        return "".join(pieces)

    @staticmethod
    def plain(piece):
        """A piece as in the text, without the notes of `cut` about the spaces around it."""
        return piece

    @classmethod
    def train(cls, texts, min_count=1, max_size=None, lowercase=False):
        """Learn a vocabulary: all pieces that occur at least min_count times, by count, then alphabetically.

        texts: an iterable of strings; max_size: the most tokens in the vocabulary, including the special ones
        Raises ValueError for no text, no piece that is frequent enough, or a max_size without room for a piece.
        """
        check_at_least("min_count", min_count, 1)
        if max_size is not None:
            check_at_least("max_size", max_size, len(SPECIAL_TOKENS) + 1)  # one token besides the special ones
        check_flag("lowercase", lowercase)
        counts = Counter()
        for text in each_text("texts", texts):
            for piece, count in Counter(cls.cut(_nfc(text))).items():
                counts[_key(piece, lowercase)] += count
        if not counts:
            raise ValueError("there is no text to learn a vocabulary from")
        learned = sorted((t for t in counts if counts[t] >= min_count), key=lambda t: (-counts[t], t))
        if not learned:
            most = max(counts.values())
            often = "once" if most == 1 else f"{most} times"
            asked = "is the text long enough, and are there spaces between its words?"
            raise ValueError(f"min_count is {min_count}, but no token occurs more than {often}: {asked}")
        return cls([*SPECIAL_TOKENS, *learned][:max_size], lowercase)

    def __len__(self):
        return len(self.vocabulary)

    def __repr__(self):
        return f"{type(self).__name__} of {len(self)} tokens"

    def encode(self, text):
        """The ids of a text, without start and end tokens; a piece that is not in the vocabulary becomes UNK."""
        pieces = self.cut(_nfc(text))
        ids = {piece: self._id(piece) for piece in set(pieces)}
        return [ids[piece] for piece in progress(pieces, "tokenizing")]

    def _id(self, piece):
        """The id of a piece, or else of the same piece with other spaces around it, or else UNK."""
        key = _key(piece, self.lowercase)
        found = self._ids.get(key)
        return self._plain_ids.get(self.plain(key), UNK) if found is None else found

    def pieces(self, text):
        """One string for each id of `encode`: the pieces of the text, as typed."""
        return [self.plain(piece) for piece in self.cut(_nfc(text))]

    def decode(self, ids):
        """The text of the ids, without special tokens except "<unk>"."""
        return self.join([self.token(i) for i in as_text_ids(ids).tolist() if i not in (PAD, BOS, EOS)])

    def token(self, i):
        """The token of an id; ValueError if there is none."""
        return self.vocabulary[self._checked(i)]

    def _checked(self, i):
        if not 0 <= i < len(self):
            raise ValueError(f"an id must lie in 0 … {len(self) - 1}, got {i}")
        return i

    def unknown(self, text):
        """The pieces of a text that are not in the vocabulary: as typed, each once, in order."""
        pieces = (self.plain(piece) for piece in self.cut(_nfc(text)) if self._id(piece) == UNK)
        return list(dict.fromkeys(pieces))

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


class WordTokenizer(Tokenizer):
    """Words and punctuation marks: short sequences, but words that are not in the training text are unknown.

    A word is letters and digits, with hyphens and apostrophes inside: "segunda-feira", "don't", "d'água". A mark has
    usual spaces around it: none before a comma, one after it. If the spaces in a text differ, the mark becomes another
    token, which notes "‿" for no space and " " for a space, before or after the mark:

        at 14:30, he said        at  14  :‿  30  ,  he  said

    So `join(cut(text))` is the text again, except that a run of white space becomes one space. A noted mark that is not
    in the vocabulary is encoded as the same mark without the note or with another note.
    """

    kind = "word"

    @classmethod
    def train(cls, texts, min_count=2, max_size=None, lowercase=False):
        """As `Tokenizer.train`, but a word that occurs only once stays unknown, so that the model sees "<unk>"."""
        return super().train(texts, min_count, max_size, lowercase)

    @staticmethod
    def cut(text):
        pieces, opened, quoted = [], True, False  # opened: the next piece follows without a space
        gap, end = JOINED, 0  # the gap before the last piece, and where that piece ends
        for found in _word_or_mark("[^\\W_]").finditer(text):
            piece, before, gap = found.group(), gap, " " if found.start() > end else JOINED
            opens, closes = _sides(piece, "", quoted)
            if pieces and gap != _usual_gap(opened, closes):
                if found.lastindex:  # a word: the mark before it gets the note
                    if pieces[-1] == JOINED:  # two notes tell this mark from a note
                        pieces[-1] = before + JOINED
                    pieces[-1] += gap
                else:
                    opens, closes = _sides(piece, gap, quoted)
                    piece = gap + piece
            pieces.append(piece)
            opened, end = opens, found.end()
            if found.group() == QUOTE:
                quoted = opens
        return pieces

    @staticmethod
    def join(pieces):
        """Words with spaces between them; a mark joins the word before it, an opening mark the word after it, unless it
        has a note."""
        text, opened, quoted, after = [], True, False, ""
        for piece in pieces:
            note, mark, noted_after = _parts(piece)
            opens, closes = _sides(mark, note, quoted)
            gap = note or after or _usual_gap(opened, closes)
            text += [mark] if gap == JOINED else [" ", mark]
            opened, after = opens, noted_after
            if mark == QUOTE:
                quoted = opens
        return "".join(text).strip()

    @staticmethod
    def plain(piece):
        return _parts(piece)[1]


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
        return [piece for piece in _word_or_mark("\\w").findall(text) if piece.strip("_")]  # "" for a mark

    @staticmethod
    def join(pieces):
        return " ".join(pieces)


OPENING = frozenset("([{“‘«¿¡")
CLOSING = frozenset(",.!?;:…)]}”’»%")
QUOTE = '"'
JOINED = "‿"  # the note for no space


def _usual_gap(opened, closes):
    """The gap between two pieces: the first opens or not, the second closes or not."""
    return JOINED if opened or closes else " "


def _sides(mark, note, quoted):
    """Whether a piece opens, and whether it closes. A quote follows the note before it, or else opens and closes in
    turn."""
    if mark == QUOTE:
        closes = note == JOINED if note else quoted
        return not closes, closes
    return mark in OPENING, mark in CLOSING


def _parts(piece):
    """The note before a mark, the mark or word, the note after it; no note is an empty string."""
    noted = [note if note in (" ", JOINED) and len(piece) > 1 else "" for note in (piece[0], piece[-1])]
    plain = piece[len(noted[0]) : len(piece) - len(noted[1])]
    return (noted[0], plain, noted[1]) if plain else (noted[0], JOINED, "")


@cache  # compiled on first use, because it looks at every Unicode character
def _word_or_mark(letter):
    """The pattern of a word, which is the group 1, or any single character that is not white space.

    letter: the pattern of a letter. `\\w` has the letters and digits of all scripts but not their combining signs, such
        as the vowels of Hindi
    """
    combining = "".join(c for c in map(chr, range(0x20000)) if unicodedata.category(c)[0] == "M")
    letters = f"(?:{letter}|[{combining}\u200c\u200d])+"  # and the two joiners, which Persian spelling uses
    return re.compile(f"({letters}(?:[-‐'’]{letters})*)|\\S")


def _nfc(text):
    """The composed form of a text: é as one character, not as e and an accent. TypeError for anything but a text."""
    check_kind("text", text, str)
    return unicodedata.normalize("NFC", text)


def _key(piece, lowercase):
    return piece.lower() if lowercase else piece


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
