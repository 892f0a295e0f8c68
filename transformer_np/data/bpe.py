"""Byte-level byte-pair encoding: a vocabulary between characters and words that can spell every text."""

import heapq
import re
from collections import Counter, defaultdict
from itertools import pairwise

from ..support.checks import as_text_ids, check_at_least, check_kind, each_text
from ..support.progress import progress
from .tokenizers import SPECIAL_TOKENS, UNK, Tokenizer

FIRST_BYTE = len(SPECIAL_TOKENS)  # the id of the byte 0
FIRST_MERGE = FIRST_BYTE + 256
LONGEST_TOKEN = 4 * 65  # bytes: a piece has a space and 64 characters
MOST_KNOWN = 100_000  # pieces whose ids are kept, about 25 MB

# A piece is an English ending after an apostrophe; a run of letters, digits or other signs, with an optional space
# before it; or white space, except the last space before a word. (Radford et al. 2019 do not limit the length of a
# piece; the limit of 64 keeps text without any spaces as fast as other text.)
_PIECE = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]{1,64}| ?\d{1,64}| ?(?:[^\s\w]|_){1,64}|\s{1,64}(?!\S)|\s{1,64}")


class BPETokenizer(Tokenizer):
    """Tokens are byte sequences: the 256 single bytes, and merges of two tokens that are often adjacent (Sennrich et
    al. 2016; on UTF-8 bytes: Radford et al. 2019, §2.2).

        ids        0 … 3             4 … 259       260, 261, …
        tokens     special tokens    the bytes     merges[0], merges[1], …

        tokenizer = BPETokenizer.train(["low lower lowest"], max_size=263)
        tokenizer.decode(tokenizer.encode("any text: é 漢"))     # the same text, to the letter

    A text is first cut into pieces, roughly words with the space before them, and no token crosses from one piece into
    the next. Within a piece, merges are applied in the order in which they were learned, each wherever possible.
    No text is unknown: a character that is not in the training text is spelled in bytes.

    merges: pairs of ids, each below the id of its own merge. Raises ValueError for anything else.
    """

    kind = "bpe"
    fields = ("merges",)
    lowercase = False

    def __init__(self, merges):
        _check_merges(merges)
        self.merges = [list(pair) for pair in merges]
        self.spelled = [b""] * FIRST_BYTE + [bytes([byte]) for byte in range(256)]  # the bytes of each token
        for left, right in self.merges:
            self.spelled.append(self.spelled[left] + self.spelled[right])
            if len(self.spelled[-1]) > LONGEST_TOKEN:  # thirty merges of a few bytes can double to a gigabyte
                raise ValueError(f"merges spells a token of more than {LONGEST_TOKEN} bytes, longer than any piece")
        self._merged = {tuple(pair): FIRST_MERGE + i for i, pair in enumerate(self.merges)}
        self._known = {}  # piece -> its ids
        printable = (token.decode("utf-8", "backslashreplace") for token in self.spelled[FIRST_BYTE:])
        self.vocabulary = [*SPECIAL_TOKENS, *printable]  # bytes that are not a whole character appear as "\\xe2"

    @staticmethod
    def cut(text):
        return _PIECE.findall(text)

    @classmethod
    def train(cls, texts, min_count=2, max_size=1000):
        """Learn the merges: repeatedly turn the most frequent pair of adjacent tokens into a token. Among equally
        frequent pairs, the one with the smaller ids comes first.

        texts: an iterable of strings; min_count: rarer pairs do not become tokens; max_size: the most tokens in the
            vocabulary, including the 4 special tokens and 256 bytes
        Raises ValueError for no text or a bound that is too small, TypeError for a single string.
        """
        check_at_least("min_count", min_count, 1)
        check_at_least("max_size", max_size, FIRST_MERGE)
        pieces = Counter(piece for text in each_text("texts", texts) for piece in cls.cut(text))
        if not pieces:
            raise ValueError("there is no text to learn a vocabulary from")
        words = [_byte_ids(piece) for piece in pieces]
        return cls(learn_merges(words, list(pieces.values()), max_size - FIRST_MERGE, FIRST_MERGE, min_count))

    def encode(self, text):
        """The ids of a text, without special tokens."""
        check_kind("text", text, str)
        ids = []
        for piece in progress(self.cut(text), "tokenizing"):
            found = self._known.get(piece)
            if found is None:
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                found = self._known[piece] = apply_merges(_byte_ids(piece), self._merged)
            ids += found
        return ids

    def decode(self, ids):
        """The text of the ids, without special tokens. Bytes that are not UTF-8 become "�": encoding never gives such
        bytes, but a model may generate them."""
        ids = map(self._checked, as_text_ids(ids).tolist())
        return b"".join(self.spelled[i] for i in ids).decode("utf-8", "replace")

    def pieces(self, text):
        """One string for each id of `encode`: the tokens."""
        return [self.token(i) for i in self.encode(text)]

    def unknown(self, text):
        """The pieces of a text that are not in the vocabulary: always none, as bytes can spell every text."""
        return []


def learn_merges(words, counts, num_merges, first_id, min_count=2):
    """Learn the merges of byte-pair encoding: repeatedly turn the most frequent pair of adjacent tokens into a token
    (Sennrich et al. 2016, algorithm 1).

        merge i:    (left, right)  ->  first_id + i,    in all words, from left to right

    words: lists of ids below first_id, each word once; counts: how often each word occurs in the text
    A pair counts at every place of a word: (1, 1) twice in 1 1 1.
    num_merges: the most merges; fewer if no pair is left that occurs at least min_count times

    ->  a list of pairs (left, right), in the order in which they were learned

    Among equally frequent pairs, the one with the smaller left id comes first, then the one with the smaller right id.
    """
    # A merge changes counts only in the words that contain the pair, so only these are updated.
    words = list(words)
    frequency, places = Counter(), defaultdict(set)  # of a pair: how often it occurs, and in which words
    for i, word in enumerate(words):
        for pair in pairwise(word):
            frequency[pair] += counts[i]
            places[pair].add(i)
    queue = [(-count, pair) for pair, count in frequency.items()]
    heapq.heapify(queue)

    merges = []
    while queue and len(merges) < num_merges:
        count, pair = heapq.heappop(queue)
        if -count != frequency[pair]:
            continue  # outdated: the new count is in the queue too
        if -count < min_count:
            break
        new = first_id + len(merges)
        merges.append(pair)
        changed = set()
        for i in places.pop(pair):
            before, words[i] = words[i], _merge(words[i], pair, new)
            for other in pairwise(before):
                frequency[other] -= counts[i]
                changed.add(other)
            for other in pairwise(words[i]):
                frequency[other] += counts[i]
                places[other].add(i)
                changed.add(other)
        for other in changed:
            if frequency[other] > 0:
                heapq.heappush(queue, (-frequency[other], other))
    return merges


def apply_merges(ids, merges):
    """Encode a word with byte-pair encoding: apply the merges in the order in which they were learned, each wherever
    possible, from left to right (Sennrich et al. 2016).

    ids: of the word's single bytes; merges: {(left, right): id of the merge}, where a merge that was learned earlier
        has a smaller id

    ->  the list of ids when no merge is left to apply
    """
    ids, last = list(ids), float("inf")
    while len(ids) > 1:
        pair = min(pairwise(ids), key=lambda pair: merges.get(pair, last))  # the merge learned first
        if pair not in merges:
            break
        ids = _merge(ids, pair, merges[pair])
    return ids


def _byte_ids(piece):
    try:
        return [FIRST_BYTE + byte for byte in piece.encode("utf-8")]
    except UnicodeEncodeError as error:
        raise ValueError(f"{piece[error.start]!r} is half of a surrogate pair, which UTF-8 cannot encode") from None


def _merge(ids, pair, new):
    """The ids with every occurrence of the pair replaced by `new`, from left to right."""
    left, right = pair
    merged = []
    for i in ids:
        if i == right and merged and merged[-1] == left:
            merged[-1] = new
        else:
            merged.append(i)
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
