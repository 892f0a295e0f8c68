"""The built-in sentiment set, the user's labelled file, and the batches an encoder learns from."""

import re
from collections import Counter

import numpy as np
import pytest

from transformer_np import data
from transformer_np.data import BOS, EOS, IGNORED, Split, as_encoder_input, labels_of, mask_tokens, sentiment_sentences

# --- the built-in set ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sentences():
    return sentiment_sentences()


@pytest.mark.long
def test_thousands_of_different_sentences_half_of_each_kind(sentences):
    assert len(sentences) == len({sentence for sentence, _ in sentences}) == 12_000
    assert Counter(label for _, label in sentences) == {"positive": 6000, "negative": 6000}
    assert sentiment_sentences() == sentences
    small = sentiment_sentences(600)
    assert len(dict(small)) == 600 and Counter(dict(small).values()) == {"positive": 300, "negative": 300}


@pytest.mark.parametrize("size, error", [(599, ValueError), (601, ValueError), (12_002, ValueError), (1e3, TypeError)])
def test_sizes_that_there_are_not(size, error):
    with pytest.raises(error, match="size must be"):
        sentiment_sentences(size)


@pytest.mark.long
def test_the_article_fits_the_word_behind_it(sentences):
    articles = {tuple(found) for sentence, _ in sentences for found in re.findall(r"\b(an?) (\w)", sentence)}
    assert {article for article, letter in articles if letter in "aeiou"} == {"an"}
    assert {article for article, letter in articles if letter not in "aeiou"} == {"a"}


PRAISE = "good|nice|pleasant|interesting|charming|impressive|great|wonderful|excellent|superb|fantastic|brilliant"
FAULT = "bad|poor|unpleasant|boring|dull|disappointing|terrible|awful|horrible|dreadful|dismal|hopeless"
TURNS = r"not(?! only)|never|far from|anything but"


def reading(sentence):
    """What a sentence means, found a second time: by taking it apart."""
    for pattern in (r"(?:although|even though) .*, (.*)", r"(.*), (?:although|even though) .*", r".*; however, (.*)"):
        match = re.fullmatch(pattern, sentence)
        if match:
            return reading(match[1])
    if ", but " in sentence:
        return reading(sentence.split(", but ")[1])
    praised, faulted = (re.search(rf"\b({words})\b", sentence) for words in (PRAISE, FAULT))
    if praised or faulted:
        assert not (praised and faulted), sentence
        good = bool(praised)
    else:
        words = r"\b(loved?|liked?|enjoyed|enjoy|recommend|praise|disliked?|hated|complained|tired)\b"
        found = re.findall(words, sentence)
        assert len(found) == 1, sentence
        good = found[0] not in ("dislike", "disliked", "hated", "complained", "tired")
        if "could not praise" in sentence:
            return "positive"
    turned = re.search(rf"\b({TURNS}|nobody)\b", sentence)
    return "positive" if good != bool(turned) else "negative"


@pytest.mark.long
def test_the_label_is_what_the_sentence_means(sentences):
    for sentence, label in sentences:
        assert reading(sentence) == label, sentence


@pytest.mark.parametrize(
    "pattern",
    [
        r"\bnot\b.*\bat all\b", r"\bnot only\b", r"\bnobody\b", r"\bvery\b", ", but ", "; however, ", "^although ",
        ", even though ",
    ],
)  # fmt: skip
def test_no_turn_of_phrase_gives_the_label_away(sentences, pattern):
    labels = Counter(label for sentence, label in sentences if re.search(pattern, sentence))
    assert min(labels["positive"], labels["negative"]) >= 50
    assert max(labels.values()) <= 3 * min(labels.values())


@pytest.mark.long
def test_no_word_gives_the_label_away(sentences):
    """The best that can be done with one word is far from what there is to reach."""
    count = {label: Counter() for label in ("positive", "negative")}
    for sentence, label in sentences:
        count[label].update(set(data.WordTokenizer.cut(sentence)))
    for word in ("good", "bad", "boring", "not", "never", "nobody", "but", "although", "wonderful", "awful"):
        shares = [count[label][word] for label in count]
        assert min(shares) > 0.2 * sum(shares), (word, shares)


# --- labels and batches ---------------------------------------------------------------------------------------------


def test_labels_that_cannot_be_learned():
    train = [("a", "x"), ("b", "y")]
    with pytest.raises(ValueError, match="the test part has labels that no training text has: 'p', 'q';"):
        labels_of(Split(train, train, [("c", "q"), ("d", "p"), ("e", "x")]))
    with pytest.raises(ValueError, match="the validation part has labels"):
        labels_of(Split(train, [("c", "z")], train))
    with pytest.raises(ValueError, match="all training texts have the label 'x': a classifier needs at least two"):
        labels_of(Split(train[:1], train[:1], train[:1]))
    assert labels_of(Split(train[::-1], train[:1], [])) == ["x", "y"]


def test_an_encoder_input():
    assert as_encoder_input([7, 8, 9], 8) == [BOS, 7, 8, 9, EOS]
    assert as_encoder_input([7, 8, 9], 4) == [BOS, 7, 8, EOS]
    assert as_encoder_input([], 4) == [BOS, EOS]
    for ids in ([1.5], "abc", 7, np.datetime64("2020-01-01")):
        with pytest.raises((TypeError, ValueError), match="ids"):
            as_encoder_input(ids, 8)


@pytest.mark.parametrize("kind", [data.WordTokenizer, data.CharTokenizer])
def test_a_vocabulary_with_a_mask(kind):
    plain = kind.train(["A b < mask > a b < mask >"], lowercase=True)
    tokenizer = data.with_mask(plain)
    assert len(tokenizer) == len(plain) + 1 and tokenizer.token(len(plain)) == "<mask>"
    text = "a <mask> b"
    assert tokenizer.encode(text) == plain.encode(text) and len(plain) not in tokenizer.encode(text)
    loaded = data.Tokenizer.from_dict(tokenizer.to_dict())
    assert loaded.vocabulary == tokenizer.vocabulary and loaded.lowercase


# --- holes -----------------------------------------------------------------------------------------------------------

V, MASK = 50, 49


def test_how_much_is_hidden():
    """15 % are asked for; of these 80 % masked, 10 % exchanged, 10 % left: within four standard deviations."""
    ids = np.random.default_rng(1).integers(4, MASK, size=(400, 300))
    holes, targets = mask_tokens(ids, V, 0)
    chosen = targets != IGNORED
    n = chosen.sum()
    assert abs(chosen.mean() - 0.15) < 4 * (0.15 * 0.85 / ids.size) ** 0.5
    masked, same = (holes == MASK)[chosen], (holes == ids)[chosen]
    assert abs(masked.mean() - 0.8) < 4 * (0.8 * 0.2 / n) ** 0.5
    assert abs(same.mean() - (0.1 + 0.1 / 45)) < 4 * (0.1 * 0.9 / n) ** 0.5  # some are exchanged for themselves
    exchanged = np.bincount(holes[chosen][~masked & ~same], minlength=V)
    assert not exchanged[:4].any() and exchanged[4:MASK].min() > 0 and exchanged[MASK] == 0
    assert np.array_equal(targets[chosen], ids[chosen]) and np.array_equal(holes[~chosen], ids[~chosen])


def test_special_tokens_are_never_asked_for():
    ids = np.random.default_rng(2).integers(0, V, size=(200, 40))
    holes, targets = mask_tokens(ids, V, 0)
    special = (ids < 4) | (ids == MASK)
    assert {data.PAD, BOS, EOS, data.UNK} == set(range(4)) and special.sum() > 500
    assert (targets[special] == IGNORED).all() and np.array_equal(holes[special], ids[special])


def test_something_is_always_asked_for():
    for seed in range(50):
        _, targets = mask_tokens(np.array([[BOS, 7, EOS]]), V, seed)
        assert targets.tolist() == [[IGNORED, 7, IGNORED]]
    with pytest.raises(ValueError, match="there is no token that can be masked"):
        mask_tokens(np.array([[BOS, data.UNK, EOS]]), V, 0)
    with pytest.raises(ValueError, match="a vocabulary of 5 tokens has none besides the special tokens and <mask>"):
        mask_tokens(np.array([[4]]), 5, 0)


def test_a_text_has_other_holes_in_every_epoch():
    batches = data.MaskedBatches([[BOS, *range(4, 30), EOS]], 1, V, seed=5)
    assert len({str(batches.batch(step).targets.tolist()) for step in range(4)}) > 1
