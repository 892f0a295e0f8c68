"""Byte-level byte-pair encoding: a vocabulary between characters and words in which every text can be written."""

import heapq
import re
from collections import Counter, defaultdict
from itertools import pairwise

from ..support.checks import check_at_least
from .tokenizers import SPECIAL_TOKENS, UNK, Tokenizer

FIRST_BYTE = len(SPECIAL_TOKENS)  # the id of the byte 0
FIRST_MERGE = FIRST_BYTE + 256

# A piece is an English ending after an apostrophe; letters, digits or other signs, each with a space before them or
# not; or white space, but for a last space that belongs to the word after it. (Radford et al. 2019 have no longest
# piece; with one, text without any spaces takes no longer than other text.)
_PIECE = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]{1,64}| ?\d{1,64}| ?(?:[^\s\w]|_){1,64}|\s{1,64}(?!\S)|\s{1,64}")


class BPETokenizer(Tokenizer):
    """Every token is a sequence of bytes: the 256 bytes themselves, and what is merged from two tokens that often stand
    side by side (Sennrich et al. 2016; on UTF-8 bytes: Radford et al. 2019, §2.2).

        ids        0 … 3             4 … 259       260, 261, …
        tokens     special tokens    the bytes     merges[0], merges[1], …

        tokenizer = BPETokenizer.train(["low lower lowest"], max_size=263)
        tokenizer.decode(tokenizer.encode("any text: é 漢"))     # the same text, to the letter

    A text is first cut into pieces, about words with the space before them, and no token reaches from one piece into
    the next. In a piece the merge that was learned first is done first, wherever it can be, then the next, until there
    is none left. Nothing is ever unknown: a character that did not occur in the training text is spelled in bytes.

    merges: pairs of ids, each below the id of its own merge. Raises ValueError where they are something else.
    """

    kind = "bpe"
    fields = ("merges",)
    lowercase = False

    def __init__(self, merges):
        _check_merges(merges)
        self.merges = [list(pair) for pair in merges]
        self._bytes = [b""] * FIRST_BYTE + [bytes([byte]) for byte in range(256)]
        for left, right in self.merges:
            self._bytes.append(self._bytes[left] + self._bytes[right])
        self._merged = {tuple(pair): FIRST_MERGE + i for i, pair in enumerate(self.merges)}
        self._known = {}  # piece -> its ids
        self.vocabulary = [
            *SPECIAL_TOKENS,
            *(token.decode("utf-8", "backslashreplace") for token in self._bytes[FIRST_BYTE:]),
        ]

    @staticmethod
    def cut(text):
        return _PIECE.findall(text)

    @staticmethod
    def join(pieces):
        return "".join(pieces)

    @classmethod
    def train(cls, texts, min_count=2, max_size=1000):
        """Learn the merges: again and again the pair of tokens that stands side by side most often becomes a token. Of
        equally frequent pairs the one with the smaller ids goes first.

        texts: an iterable of strings; min_count: a pair that is rarer is not worth a token; max_size bounds the whole
            vocabulary, the 4 special tokens and 256 bytes included

        A pair's count changes only in the pieces that hold it, so that each merge looks at those alone.

        Raises ValueError if there is no text, or a bound is too small; TypeError for a single string.
        """
        if isinstance(texts, str):
            raise TypeError("texts must be several strings, got a single one; put it into a list")
        check_at_least("min_count", min_count, 1)
        check_at_least("max_size", max_size, FIRST_MERGE)
        pieces = Counter(piece for text in texts for piece in cls.cut(text))
        if not pieces:
            raise ValueError("there is no text to learn a vocabulary from")
        words = [_byte_ids(piece) for piece in pieces]
        weights = list(pieces.values())

        counts, places = Counter(), defaultdict(set)  # of a pair: how often it occurs, and in which words
        for i, word in enumerate(words):
            for pair in pairwise(word):
                counts[pair] += weights[i]
                places[pair].add(i)
        queue = [(-count, pair) for pair, count in counts.items()]
        heapq.heapify(queue)

        merges = []
        while queue and FIRST_MERGE + len(merges) < max_size:
            count, pair = heapq.heappop(queue)
            if -count != counts[pair]:
                continue  # it has changed since; the new count is in the queue too
            if -count < min_count:
                break
            new = FIRST_MERGE + len(merges)
            merges.append(pair)
            changed = set()
            for i in places.pop(pair):
                before, words[i] = words[i], _merge(words[i], pair, new)
                for other in pairwise(before):
                    counts[other] -= weights[i]
                    changed.add(other)
                for other in pairwise(words[i]):
                    counts[other] += weights[i]
                    places[other].add(i)
                    changed.add(other)
            for other in changed:
                if counts[other] > 0:
                    heapq.heappush(queue, (-counts[other], other))
        return cls(merges)

    def encode(self, text):
        """The ids of a text, no special token added."""
        ids = []
        for piece in self.cut(text):
            found = self._known.get(piece)
            if found is None:
                found = self._known[piece] = self._encode_piece(piece)
            ids += found
        return ids

    def _encode_piece(self, piece):
        ids, last = _byte_ids(piece), len(self)
        while len(ids) > 1:
            pair = min(pairwise(ids), key=lambda pair: self._merged.get(pair, last))  # the merge learned first
            if pair not in self._merged:
                break
            ids = _merge(ids, pair, self._merged[pair])
        return ids

    def decode(self, ids):
        """The text of the ids, special tokens left out. Bytes that are not UTF-8, which no text is encoded as but a
        model may say, become "�"."""
        return b"".join(self._bytes[i] for i in map(self._checked, ids)).decode("utf-8", "replace")

    def token(self, i):
        """The token of an id, to be shown: bytes that are not a whole character as "\\xe2"."""
        return self.vocabulary[self._checked(i)]

    def _checked(self, i):
        if not 0 <= i < len(self):
            raise ValueError(f"an id must lie in 0 … {len(self) - 1}, got {i}")
        return i

    def unknown(self, text):
        """Nothing: every text can be written in bytes."""
        return []


def _byte_ids(piece):
    try:
        return [FIRST_BYTE + byte for byte in piece.encode("utf-8")]
    except UnicodeEncodeError as error:
        raise ValueError(f"{piece[error.start]!r} is half of a surrogate pair, no text that UTF-8 can write") from None


def _merge(ids, pair, new):
    """The ids with `new` for every occurrence of the pair, from left to right."""
    left, right = pair
    merged, i = [], 0
    while i < len(ids):
        if ids[i] == left and i + 1 < len(ids) and ids[i + 1] == right:
            merged.append(new)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


def _check_merges(merges):
    if not isinstance(merges, list | tuple):
        raise ValueError(f"merges must be a list of pairs of ids, got {type(merges).__name__}")
    seen = set()
    for i, pair in enumerate(merges):
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(type(part) is int for part in pair):
            raise ValueError(f"merges must hold pairs of ids; entry {i} is {pair!r}")
        if not all(UNK < part < FIRST_MERGE + i for part in pair):
            raise ValueError(f"the ids of merge {i} must lie in {FIRST_BYTE} … {FIRST_MERGE + i - 1}, got {list(pair)}")
        if tuple(pair) in seen:
            raise ValueError(f"merges has {list(pair)} twice, the second time as entry {i}")
        seen.add(tuple(pair))
