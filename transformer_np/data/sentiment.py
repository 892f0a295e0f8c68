"""Sentences with a label: the user's file, and a built-in set of praise and complaint, made by a small grammar.

A sentence of the built-in set says something about one thing, or two things that pull in different directions:

    the plot | is | not boring at all                          positive
    although | the actors were superb | , I did not enjoy the film           negative

Its label is what it means in the end, not which words are in it. What makes the difference is

    negation      not good · never dull · far from interesting · anything but weak · nobody enjoyed … turn the meaning
                  round; "not only clever but also funny" does not
    intensity     very good · absolutely awful leave it; "not very good" turns it
    contrast      X, but Y · X; however, Y · although X, Y · Y, although X: the main clause Y decides, wherever it is

so that no word by itself gives a label away. Only what is unambiguous is said: nothing is "not wonderful".
"""

from itertools import combinations, product

import numpy as np

from ..support.checks import check_at_least
from .files import read_lines

POSITIVE, NEGATIVE = "positive", "negative"
OPPOSITE = {POSITIVE: NEGATIVE, NEGATIVE: POSITIVE}

# --- words -----------------------------------------------------------------------------------------------------------

# what may be spoken of together: one thing, several things
DOMAINS = (
    (("the film", "the movie", "the plot", "the ending", "the dialogue", "the acting"), ("the actors", "the jokes")),
    (("the book", "the novel", "the story", "the style", "the first chapter"), ("the characters", "the pictures")),
    (("the restaurant", "the food", "the soup", "the service", "the wine"), ("the waiters", "the desserts")),
    (("the hotel", "the room", "the view", "the breakfast"), ("the beds", "the people at the desk")),
    (("the concert", "the music", "the singer", "the show"), ("the songs", "the dancers")),
)
# plain words, which can be negated and weighed, and strong ones, which say all by themselves
PLAIN = {
    POSITIVE: ("good", "nice", "pleasant", "interesting", "charming", "impressive"),
    NEGATIVE: ("bad", "poor", "unpleasant", "boring", "dull", "disappointing"),
}
STRONG = {
    POSITIVE: ("great", "wonderful", "excellent", "superb", "fantastic", "brilliant"),
    NEGATIVE: ("terrible", "awful", "horrible", "dreadful", "dismal", "hopeless"),
}
WHOLES = ("film", "movie", "book", "novel", "restaurant", "hotel", "concert", "show", "story", "meal")

# --- what is said of one thing: {a} stands for an adjective, {x} for the thing ----------------------------------------

SAME_PLAIN = ("very {a}", "really {a}", "quite {a}", "extremely {a}", "{a}")
SAME_STRONG = ("absolutely {a}", "truly {a}", "just {a}", "simply {a}", "{a}")
SAME_TWICE = ("{a} and {b}", "not only {a} but also {b}", "both {a} and {b}")
TURNED = ("not {a}", "not {a} at all", "not at all {a}", "never {a}", "far from {a}", "anything but {a}")
TURNED_PRAISE = ("not very {a}", "not really {a}", "not particularly {a}")  # hardly said of a fault
VERBAL = {
    POSITIVE: (
        "I loved {x}",
        "I liked {x}",
        "I really enjoyed {x}",
        "everybody enjoyed {x}",
        "I would recommend {x}",
        "I never got tired of {x}",
        "nobody disliked {x}",
        "nobody complained about {x}",
        "I did not dislike {x} at all",
        "I could not praise {x} enough",
    ),
    NEGATIVE: (
        "I hated {x}",
        "I disliked {x}",
        "I really disliked {x}",
        "everybody disliked {x}",
        "everybody complained about {x}",
        "I got tired of {x}",
        "nobody enjoyed {x}",
        "nobody liked {x}",
        "I did not enjoy {x} at all",
        "I did not like {x}",
        "I would not recommend {x}",
        "I never liked {x}",
    ),
}
# X is the clause that is set aside, Y the one that decides
CONTRASTS = (
    "{X}, but {Y}",
    "{X}; however, {Y}",
    "although {X}, {Y}",
    "even though {X}, {Y}",
    "{Y}, although {X}",
    "{Y}, even though {X}",
)


def _predicates(label):
    """All that can follow "is", of one meaning."""
    plain, turned = PLAIN[label], PLAIN[OPPOSITE[label]]
    yield from (frame.format(a=a) for frame, a in product(SAME_PLAIN, plain))
    yield from (frame.format(a=a) for frame, a in product(SAME_STRONG, STRONG[label]))
    yield from (frame.format(a=a, b=b) for frame, (a, b) in product(SAME_TWICE, combinations(plain, 2)))
    yield from (frame.format(a=a) for frame, a in product(TURNED, turned))
    if label == NEGATIVE:
        yield from (frame.format(a=a) for frame, a in product(TURNED_PRAISE, turned))


def _clauses(label, things):
    """Everything of one meaning that can be said of the things: two lists of (clause, thing), what they are and what
    people do with them."""
    being = [
        (f"{thing} {be} {predicate}", thing)
        for number, forms in enumerate((("is", "was"), ("are", "were")))
        for thing, be, predicate in product(things[number], forms, _predicates(label))
    ]
    return being, [(frame.format(x=thing), thing) for thing, frame in product((*things[0], *things[1]), VERBAL[label])]


def _short(label):
    """No clause at all: "what a boring book", "not bad at all"."""
    for adjective in (*PLAIN[label], *STRONG[label]):
        article = "an" if adjective[0] in "aeiou" else "a"
        for whole in WHOLES:
            yield f"what {article} {adjective} {whole}"
            yield f"{article} {adjective} {whole}"
        yield adjective
    for adjective in PLAIN[OPPOSITE[label]]:
        yield f"not {adjective} at all"
        yield f"not {adjective}"


def sentiment_sentences(size=12_000):
    """Praise and complaint, each sentence once: a list of (sentence, "positive" or "negative"), as many of one as
    of the other, always the same. A third of them are one clause, a few less than one, the rest are two in contrast.

    size: how many sentences, an even number from 600 to 12,000

    Raises ValueError for another size.
    """
    check_at_least("size", size, 600)
    if size > 12_000 or size % 2:
        raise ValueError(f"size must be an even number up to 12000, got {size}")
    rng = np.random.default_rng(0)
    clauses = {label: [_clauses(label, things) for things in DOMAINS] for label in OPPOSITE}
    labelled = []
    for label in OPPOSITE:
        chosen = dict.fromkeys([*_short(label)][: size // 8])
        alone = len(chosen) + size // 6
        while len(chosen) < size // 2:
            domain = rng.integers(len(DOMAINS))
            decides, thing = _clause(clauses[label][domain], rng)
            set_aside, other = _clause(clauses[OPPOSITE[label]][domain], rng)
            if len(chosen) < alone:
                chosen[decides] = None
            elif thing != other:
                chosen[_any(CONTRASTS, rng).format(X=set_aside, Y=decides)] = None
        labelled += [(sentence, label) for sentence in chosen]
    return labelled


def _clause(kinds, rng):
    """One clause with its thing: three times out of four what it is, else what people do with it."""
    being, doing = kinds
    return _any(doing if rng.random() < 0.25 else being, rng)


def _any(options, rng):
    return options[rng.integers(len(options))]


# --- the user's file -------------------------------------------------------------------------------------------------


def read_labelled(path):
    """Read labelled texts from a UTF-8 file, one a line: the label, a tab, the text. Blank lines are ignored, and so is
    white space around label and text.

    ->  a list of (text, label)

    Raises FileNotFoundError, IsADirectoryError, and ValueError with the line for a file that is not of this form.
    """
    lines = read_lines(path, "a text file with a label, a tab and a text a line")
    labelled = [_labelled(line, place) for place, line in lines]
    if not labelled:
        raise ValueError(f"{path} has no labelled texts in it")
    return labelled


def _labelled(line, where):
    label, tab, text = line.partition("\t")
    if not tab:
        beginning = repr(line.strip()[:40]) + (" …" if len(line.strip()) > 40 else "")
        raise ValueError(f"{where}: expected a label, a tab and a text; there is no tab in {beginning}")
    for what, value in (("label", label), ("text", text)):
        if not value.strip():
            raise ValueError(f"{where}: the {what} is empty")
    return text.strip(), label.strip()


def labels_of(split):
    """The labels of the training part of a data.Split of (text, label), in alphabetical order.

    Raises ValueError if there is only one, or another part has a label that the training part has not.
    """
    labels = sorted({label for _, label in split.train})
    for part in ("validation", "test"):
        unseen = sorted({label for _, label in getattr(split, part)} - set(labels))
        if unseen:
            raise ValueError(
                f"in the {part} part there are labels that no training text has: {', '.join(map(repr, unseen))}; "
                "give more texts of each label"
            )
    if len(labels) < 2:
        raise ValueError(f"all training texts have the label {labels[0]!r}: there is nothing to tell apart")
    return labels
