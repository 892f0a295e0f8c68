"""Known mistakes and descriptions that explain one result of a wrong answer, and then its other cases."""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from .compare import close, wrong_entries
from .describe import describe_exactly, describe_roughly
from .truth import Gate, Said, cases_of

MOST_PAIR_TRIALS = 1000  # a trial is one variant on one case, and takes 0.1 to 4 ms
MOST_SIMPLE = 3  # cases that one of two mistakes may explain
MOST_TEXTS = 4  # readers stop after about four


@dataclass(frozen=True)
class Reason:
    """The explanation of a result: known mistakes, the name of a description, or neither."""

    mistakes: tuple[str, ...] = ()
    description: str | None = None


class ByResult(Gate):
    """The reasons of the wrong results, and the texts about them."""

    def __init__(self, trials, found, without=()):
        super().__init__(trials, found, without)
        self.said = []
        self.reasons = {}  # {result: Reason}
        self.explained_exactly = set()  # results

    @property
    def names(self):
        sure = any(said.name and said.sure for said in self.said)
        return list(dict.fromkeys(said.name for said in self.said if said.name and (said.sure or not sure)))

    def _open(self):
        return [i for i in sorted(self.failing) if i not in self.reasons]

    def _give(self, i, reason, text="", sure=True):
        self.reasons[i] = reason
        if sure:
            self.explained_exactly.add(i)
        label = self.failing[i][0]
        for name in reason.mistakes:
            self._say(name, self.mistakes[name], label)
        if text:
            self._say(reason.description, text, label, sure=sure)

    def _say(self, name, text, label="", led=False, sure=True):
        if not any(said.name == name and said.text == text for said in self.said):
            self.said.append(Said(name, text, label, led, sure))

    # --- known mistakes -------------------------------------------------------------------------------------------

    def _by_known_mistakes(self, candidates):
        """Explain as many results as possible by one candidate, then the remaining ones by another."""
        fits = {}
        for mistakes in candidates:
            covered = {
                i: self._covered(mistakes, i)
                for i in self._open()
                if self._fits(mistakes, i, self.failing[i][0])
                and (len(mistakes) == 1 or self._spares(mistakes, self.failing[i][0]))
            }
            if covered:
                fits[mistakes] = covered
                if len(mistakes) > 1 and self._is_complete(mistakes):
                    break
        while self._open():

            def value(mistakes):
                here = [fits[mistakes][i] for i in self._open() if i in fits[mistakes]]
                return len(here), self._keeps(mistakes), sum(map(len, here)), self._agreement(mistakes)

            best = max(fits, key=value, default=None)
            here = [i for i in self._open() if best and i in fits[best]]
            if not here:
                return
            for i in here:
                self._give(i, Reason(best))

    def _keeps(self, mistakes):
        """Whether mistakes still explain what some of them explain already."""
        known = [i for i, reason in self.reasons.items() if {*reason.mistakes} & {*mistakes}]
        return all(self._fits(mistakes, i, self.failing[i][0]) for i in known)

    def _pairs(self):
        """Pairs of mistakes for the open results, the likeliest first, until MOST_PAIR_TRIALS are used.

        Each mistake on its own tells which results it changes in the first draw with a wrong result, or the first that
        a mistake which explains another draw leaves open, or in another draw or case if it changes none there. A pair
        must not change the student's right results. Likelier are pairs with a mistake that was already found, explains
        a draw, gives a wrong result but for a factor, or explains a case with few arguments, of these the ones of which
        one or the other gives most of the student's wrong numbers, and then the ones that together change most of the
        wrong numbers and fewest of the right ones.
        """
        draws = sorted({n for i in self._open() for n in self._wrong_draws(i, self.failing[i][0])})
        partly = self._unexplained_draws(draws)
        number = next(iter(partly.values()), draws[0])
        later = [n for n in draws if n != number]
        later += [self.labels[label][0] for label in self.labels if self._wrong_in(label)]
        wrong = set(self.found[number].wrong)
        changes = {name: self._changed_by(name, number) for name in self.mistakes}
        possible = [
            name for name in self.mistakes
            if changes[name] <= wrong and (changes[name] or any(self._changed_by(name, n) for n in later))
        ]  # fmt: skip
        expected, results = self.found[number].expected, self.found[number].results
        variants = {name: self._try((name,), number)[0] for name in possible}
        here = _apart(results, expected, expected)
        places = {name: _apart(variant, expected, expected) for name, variant in variants.items()}
        same = {name: here & ~_apart(variant, results, expected) for name, variant in variants.items()}

        others = [] if self.names else self._simple_failing()  # they take many trials
        beside = {
            name for name, variant in variants.items()
            if any(_is_times(results[i], variant[i], expected[i]) for i in wrong if variant is not None)
            or any(self._explains((name,), label) for label in others)
        }  # fmt: skip

        def unlikeliness(pair):
            differs = np.mean((places[pair[0]] | places[pair[1]]) != here)
            new = 1 - np.mean(same[pair[0]] | same[pair[1]])
            late = sum(possible.index(name) for name in pair)  # else all are tried with the first few alone
            return not set(pair) & {*self.names, *partly}, not set(pair) & beside, new, differs, late

        allowed = len(self.tried) + self.trials.most(MOST_PAIR_TRIALS)
        for pair in sorted(combinations(possible, 2), key=unlikeliness):
            if len(self.tried) >= allowed:
                return
            yield pair

    def _unexplained_draws(self, draws):
        """{mistake that gives an open result in some draws: the first draw in which it does not}"""
        fits, fails = {}, {}
        for (names, i, number), agrees in self.agreed.items():
            if len(names) == 1 and i in self._open() and number in draws:
                (fits if agrees else fails).setdefault(next(iter(names)), number)
        return {name: fails[name] for name in fits if name in fails}

    def _simple_failing(self):
        """The labels of the failing cases with the fewest arguments, but the first: one of two mistakes may have no
        effect there."""

        def count(label):
            case = self.found[self.labels[label][0]].case
            return sum(value is not None for value in (*case.arguments, *case.options.values()))

        first, *failing = [label for label in self.labels if self._wrong_in(label)]
        return sorted((label for label in failing if count(label) <= count(first)), key=count)[:MOST_SIMPLE]

    def _open_independent(self):
        """Add the gradients that the mistakes found in the forward pass do not change."""
        for i, labels in self.following.items():
            for label in labels:
                mistakes = {name for j in self.astray[label] for name in self.reasons[j].mistakes}
                fits = mistakes and all(self._fits(mistakes, j, label) for j in self.astray[label])
                if fits and not any(self._unclear(mistakes, i, number) for number in self.labels[label]):
                    self.failing.setdefault(i, []).append(label)

    def _unclear(self, mistakes, i, number):
        """Whether a wrong gradient may follow from mistakes in the forward pass: they change it, or it is missing or
        all NaN."""
        finding, (variant, _) = self.found[number], self._try(mistakes, number)
        return finding.results is None or variant is None or not close(variant[i], finding.expected[i])

    # --- the cases that remain ----------------------------------------------------------------------------------------

    def _other_cases(self, i, allowed):
        """Explain the other failing cases of result i, until the student has enough to read or `allowed` trials are
        used."""
        reason = self.reasons[i]
        first, *labels = self.failing[i]
        if not reason.mistakes and not reason.description:
            left = [label for label in labels if self._tells_much(label, i)]
        elif not reason.mistakes:
            left = labels if self._is_exact(i, first, reason) else []
            left = [label for label in left if not self._is_exact(i, label, reason)]
            if left:  # the description holds for this case, but not for all
                self.said = [replace(s, led=True) if s.name == reason.description else s for s in self.said]
            strange = self._of_wrong_shape(i)
            label = next((label for label in left if label in strange), "") if first not in strange else ""
            if label:
                self._say(None, self.found[self._wrong_draws(i, label)[0]].fact()[0], label, led=True)
        else:
            left = [label for label in labels if not self._fits(reason.mistakes, i, label)]
            left = self._one_more_mistake(i, reason, left, allowed)
        for label in left:
            if len(self.said) >= MOST_TEXTS or len(self.tried) >= allowed:
                return
            likely = self._likely_in([label])
            fits = (name for name in likely if self._fits((name,), i, label) and self._spares((name,), label))
            single = next(fits, None) if self._tells_something(i, label) else None
            if single:
                if single not in self.names:
                    self._say(single, self.mistakes[single], label, led=True)
            elif reason.mistakes and self._leaves_right(reason.mistakes, label):  # or it may follow from them
                description = describe_exactly(self._draws(i, label))
                if description:
                    self._say(description.name, description.text, label, led=True)
                else:
                    description = describe_roughly(self._draws(i, label))
                    # no more than the fact: another branch of the code may have the same mistake
                    self._say(None, description.text, label, led=True, sure=False)

    def _tells_something(self, i, label):
        """Whether a wrong result has other numbers than the 0, NaN and infinity that many mistakes make by chance."""
        draws = self._draws(i, label)
        if any(draw.actual.shape != draw.expected.shape for draw in draws):
            return any(np.any(draw.actual) for draw in draws)
        wrong = [(draw.actual[draw.wrong], draw.expected[draw.wrong]) for draw in draws]
        return any(np.any(got[np.isfinite(got) | ~np.isfinite(right)]) for got, right in wrong)

    def _of_wrong_shape(self, i):
        """The labels of the cases in which a result has a wrong shape."""
        return [x for x in self.failing[i] if any(d.actual.shape != d.expected.shape for d in self._draws(i, x))]

    def _likely_in(self, labels):
        """The mistakes, first those that speak of these cases or of an option that they set alone."""
        options = [self.found[self.labels[label][0]].case.options for label in labels]
        options = set().union(*options) - self.found[0].case.options.keys()
        words = [*options, *(label.removeprefix("a ") for label in labels if label)]
        return sorted(self.mistakes, key=lambda name: not any(word in self.mistakes[name] for word in words))

    def _is_exact(self, i, label, reason):
        description = describe_exactly(self._draws(i, label))
        return description is not None and description.name.split()[:2] == reason.description.split()[:2]

    def _one_more_mistake(self, i, reason, left, allowed):
        """Name the additional mistake that explains most of the remaining cases; returns the cases that remain then."""
        if not left:
            return left
        best, covered = None, []
        for name in self._likely_in(left):
            both = (*reason.mistakes, name)
            if len(self.tried) >= allowed:
                break
            now = [label for label in left if name not in reason.mistakes and self._fits(both, i, label)]
            is_chance = len(now) < len(left) and not any(self._tells_something(i, label) for label in now)
            if len(now) > len(covered) and not is_chance and self._fits(both, i, self.failing[i][0]):
                best, covered = name, now
        if best and best not in self.names:
            self._say(best, self.mistakes[best], cases_of(covered), led=True)
        return [label for label in left if label not in covered]


def _is_times(actual, variant, right):
    """Whether a wrong result is a number times the one of a variant that is wrong too."""
    if not (actual.shape == variant.shape == right.shape and actual.size > 2) or close(variant, right):
        return False
    largest = np.argmax(np.abs(variant))
    factor = actual.flat[largest] / (variant.flat[largest] or 1)
    return bool(np.isfinite(factor)) and factor != 0 and close(actual, factor * variant)


def _apart(results, others, expected):
    """Which numbers of all results two answers have otherwise; all of a result that is missing or of a wrong shape."""
    if results is None:
        results = [np.empty(0)] * len(expected)
    return np.concatenate([
        (wrong_entries(a, b) if a.shape == b.shape == right.shape else np.ones(right.shape, bool)).ravel()
        for a, b, right in zip(results, others, expected, strict=True)
    ])  # fmt: skip
