"""BLEU: how many n-grams of translations occur in given ones (Papineni et al. 2002)."""

from collections import Counter
from math import exp, log

from ..data import WordTokenizer

LONGEST = 4  # words of an n-gram


def bleu(outputs, references):
    """The score of translations against one reference each, in [0, 1]; None if no reference has LONGEST words.

        BLEU = min(1, e^(1 − r/c)) · (p₁ p₂ p₃ p₄)^¼
        pₙ = Σ min(count in output, count in reference) / Σ count in output

    c and r are the numbers of words of all outputs and of all references; the sums run over all n-grams of all
    outputs. Words and marks are cut as by WordTokenizer, and case counts. Without a common 4-gram it is 0.

    Raises ValueError for no output.
    """
    if not outputs:
        raise ValueError("there are no translations to score")
    matched, total, lengths, possible = Counter(), Counter(), [0, 0], False
    for pair in zip(outputs, references, strict=True):
        cut = [[WordTokenizer.plain(piece) for piece in WordTokenizer.cut(text)] for text in pair]
        lengths = [length + len(words) for length, words in zip(lengths, cut, strict=True)]
        for n in range(1, LONGEST + 1):
            output, reference = (Counter(zip(*(words[i:] for i in range(n)), strict=False)) for words in cut)
            matched[n] += (output & reference).total()
            total[n] += output.total()
        possible |= len(cut[1]) >= LONGEST
    if not possible:  # such as numbers: not even the right ones would have a 4-gram
        return None
    if not all(matched[n] for n in range(1, LONGEST + 1)):
        return 0.0
    c, r = lengths
    return exp(min(0.0, 1 - r / c) + sum(log(matched[n] / total[n]) for n in range(1, LONGEST + 1)) / LONGEST)
