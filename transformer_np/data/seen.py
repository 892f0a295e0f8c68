"""What a model has seen in training: the words and the white space of its texts."""

import re
import unicodedata
from collections import Counter

from ..support.checks import check_flag, check_kind
from .tokenizers import PlainWordTokenizer

MOST_WORDS, MOST_RUNS = 20_000, 200  # of training texts with more words, none are kept
NEW = 0.25  # of the words in unseen data: where more are new, as in sums of letters, the model goes by smaller units
NO_WIDTH = dict.fromkeys(map(ord, "\u200b\u2060\ufeff"))  # signs that take no place on the screen


class Seen:
    """The words and the white space of training texts, by which a text that somebody types is read.

        seen = Seen.of(["Ana is tired"], ["is Ana tired"], tokenizer)
        seen.fold(" Ana  is\\ttired ")      # "Ana is tired"
        seen.outside("Ana is happy")       # ["happy"]

    words: the most frequent first, or () if they are not known
    spaces: the runs of white space in the texts beside a space between words, such as "\\n"; None if they are not known
    lowercase: whether the words are in lower case, and upper case makes no difference
    """

    def __init__(self, words=(), spaces=(), lowercase=False):
        check_flag("lowercase", lowercase)
        self.words, self.spaces, self.lowercase = tuple(words), spaces if spaces is None else tuple(spaces), lowercase
        self._known = frozenset(self.words)

    @classmethod
    def of(cls, texts, unseen, tokenizer, running=False, lowercase=False):
        """From the training texts, and other texts of the same kind that the model has not seen.

        running: the texts are parts of one text, of which a text of characters may begin and end with a space
        lowercase: whether the texts are in lower case, as of a tokenizer with `lowercase` they are
        """
        words, spaces, lowercase = Counter(), Counter(), lowercase or tokenizer.lowercase
        for text in texts:
            spaces.update(run for run in re.findall(r"\s+", text) if run != " ")
            if len(words) <= MOST_WORDS:
                words.update(_words(text, lowercase))
        known = [] if len(words) > MOST_WORDS else [w for w, _ in words.most_common() if not tokenizer.unknown(w)]
        new = Counter(word in words for text in unseen for word in _words(text, lowercase)) if known else Counter()
        if new[False] > NEW * new.total():
            known = []
        runs = [run for run, _ in spaces.most_common(MOST_RUNS)]
        return cls(known, runs + [" "] * (running and tokenizer.kind == "char"), lowercase)

    def fold(self, text):
        """The text with the white space of the training texts: another run of it becomes a line break or a space, and
        none is left at the ends. The text itself if their white space is not known."""
        check_kind("text", text, str)
        if self.spaces is None:
            return text
        text = text.translate(NO_WIDTH).replace("\r\n", "\n").replace("\r", "\n")
        if not text.strip():  # a beginning without a word, such as a line break
            breaks = [run for run in self.spaces if "\n" in run] if "\n" in text else []
            return text if text in self.spaces else min(breaks, key=len, default="")

        def folded(found):
            run = found[0]
            nearest = (run, *["\n\n"] * (run.count("\n") > 1), *["\n"] * ("\n" in run))
            inside = 0 < found.start() and found.end() < len(text)
            return next((each for each in nearest if each in self.spaces), " " if inside else "")

        return re.sub(r"\s+", folded, text)

    def outside(self, text, continued=False):
        """The words of a text that are not in the training texts, each once, in order; none if these are not known.

        continued: the text goes on, so that at its end the beginning of a known word will do
        """
        words = _words(text, self.lowercase) if self.words else []
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        begun = continued and new and new[-1] == words[-1] and unicodedata.category(text[-1])[0] in "LM"
        return new[:-1] if begun and any(known.startswith(new[-1]) for known in self.words) else new

    def to_dict(self):
        """Plain data, for a JSON file."""
        return {"words": " ".join(self.words), "spaces": self.spaces, "lowercase": self.lowercase}

    @classmethod
    def from_dict(cls, data):
        """What `to_dict` described. Raises ValueError for a wrong description."""
        try:
            words, spaces, lowercase = data["words"].split(), data["spaces"], bool(data["lowercase"])
            if spaces is None or all(isinstance(run, str) and not run.strip() for run in spaces):
                return cls(words, spaces, lowercase)
        except (AttributeError, KeyError, TypeError):
            pass
        raise ValueError(f"what the model has seen is described by words, spaces and lowercase, got {data!r:.80}")


def _words(text, lowercase):
    """The words of a text, without numbers, of which most are new."""
    found = PlainWordTokenizer.cut(unicodedata.normalize("NFC", text.lower() if lowercase else text))
    kinds = {word: {unicodedata.category(c)[0] for c in word} for word in set(found)}
    return [word for word in found if "L" in kinds[word] and "N" not in kinds[word]]
