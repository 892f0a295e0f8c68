"""Which mistakes explain a wrong answer.

The simplest explanation first, for each result on its own, because an answer can be wrong in dq for one reason and in
dv for another: one known mistake; a change that any function can suffer, such as a wrong sign; two known mistakes; a
known mistake and such a change; at last what can be said of the numbers. An explanation has to account for the
student's numbers in every draw of the first case that is wrong. What it leaves open in the other cases comes next.

Where what a forward returns is wrong, the gradients of that case are left alone: a right backward of a wrong forward
has other gradients, too. Only those are explained as well that the mistake in the forward does not change.
"""

import re
import warnings
from dataclasses import dataclass, replace
from itertools import combinations
from time import monotonic

import numpy as np

from .compare import close, wrong_structure
from .describe import describe_exactly, describe_roughly

_MORE = "something else is wrong, too."
SECONDS = 0.7  # for pairs of mistakes, of which there may be hundreds, and as long for the cases that are left then


def explain(trials, found):
    """The misconception, a name or None, and the texts that a student reads, for findings of which some failed."""
    search = _Search(trials, found)
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # wrong numbers are divided, squared, …
        warnings.simplefilter("ignore")
        if search.open_results:
            search.explain_results()
        else:
            search.explain_crash()
    return " and ".join(search.names) or None, list(search.texts)


@dataclass(frozen=True)
class _Reason:
    """What explains a result: known mistakes, the name of a description, or neither."""

    mistakes: tuple[str, ...] = ()
    description: str | None = None


@dataclass(frozen=True)
class _Said:
    """One thing a student reads, and the name of the mistake it is about, or None.

    label: of the case it is about; led: whether it begins with that; sure: whether it accounts for every number
    """

    name: str | None
    text: str
    label: str = ""
    led: bool = False
    sure: bool = True

    def __str__(self):
        lead = f"With {self.label}: " if self.label else "In the plain case: "
        return f"{lead if self.led else ''}{self.text}".strip()


def _without_numbers(text):
    return re.sub(r"[\d(), ]+", " ", text)


class _Search:
    def __init__(self, trials, found):
        self.trials, self.found = trials, found
        self.mistakes = trials.exercise.mistakes
        self.said = []
        self.labels = {}  # of the cases: their numbers
        for number, finding in enumerate(found):
            self.labels.setdefault(finding.case.label, []).append(number)
        self.first_failed = next(finding for finding in found if not finding.right)
        results = trials.exercise.results
        gradients = {i for i, result in enumerate(results) if trials.exercise.is_gradient(result)}
        self.astray = {}  # of a case: the results of the forward that are wrong in it
        for finding in found:
            self.astray.setdefault(finding.case.label, set()).update(set(finding.wrong or ()) - gradients)
        self.failing = {}  # of a result that is wrong: the labels of the cases where it is, in order
        self.following = {}  # the same of gradients, where the forward is wrong
        for finding in found:
            for i in finding.wrong or ():
                kind = self.following if i in gradients and self.astray[finding.case.label] else self.failing
                labels = kind.setdefault(i, [])
                if finding.case.label not in labels:
                    labels.append(finding.case.label)
        self.open_results = sorted(self.failing)
        self.reasons = {}  # of a result: its _Reason

    def explain_results(self):
        self._explain_open()
        self._open_independent()
        self._explain_open()
        end = monotonic() + SECONDS
        for i in self.failing:
            if monotonic() < end:
                self._other_cases(i)
        if self.first_failed.results is None:
            self._crash_comes_first()
        else:
            self._other_crashes()

    def _open_independent(self):
        """Of the gradients of wrong forwards, open those that are right with the mistakes found in the forward."""
        for i, labels in self.following.items():
            for label in labels:
                mistakes = {name for j in self.astray[label] for name in self.reasons[j].mistakes}
                fits = mistakes and all(self._fits(mistakes, j, label) for j in self.astray[label])
                if fits and not any(self._unclear(mistakes, i, number) for number in self.labels[label]):
                    self.failing.setdefault(i, []).append(label)
        self.open_results = sorted(self.failing)

    def _unclear(self, mistakes, i, number):
        """Whether a wrong gradient may come from mistakes in the forward: they change it, or there is none, all NaN."""
        finding, (variant, _) = self.found[number], self.trials.variant_on(mistakes, number)
        if finding.results is None or variant is None or not close(variant[i], finding.expected[i]):
            return True
        return bool(np.isnan(finding.results[i]).all())

    def _explain_open(self):
        self._by_known_mistakes([(name,) for name in self.mistakes])
        for i in self._open():
            description = describe_exactly(self._draws(i, self.failing[i][0]))
            if description:
                self._give(i, _Reason(description=description.name), description.text)
        if self._open():
            self._by_known_mistakes(self._pairs())
        end = monotonic() + SECONDS
        for i in self._open():
            if monotonic() < end:
                self._by_mistake_and_change(i)
        for i in self._open():
            description = describe_roughly(self._draws(i, self.failing[i][0]))
            self._give(i, _Reason(description=description.name), description.text, sure=False)

    def _open(self):
        return [i for i in self.open_results if i not in self.reasons]

    def _give(self, i, reason, text="", sure=True):
        self.reasons[i] = reason
        label = self.failing[i][0]
        for name in reason.mistakes:
            self._say(name, self.mistakes[name], label)
        if text:
            self._say(reason.description, text, label, sure=sure)

    def _say(self, name, text, label="", led=False, sure=True):
        if text.startswith(_MORE) and any(said.text.startswith(_MORE) for said in self.said):
            return  # once is enough
        if not any(said.name == name and said.text == text for said in self.said):
            self.said.append(_Said(name, text, label, led, sure))

    @property
    def names(self):
        sure = any(said.name and said.sure for said in self.said)
        return list(dict.fromkeys(said.name for said in self.said if said.name and (said.sure or not sure)))

    @property
    def texts(self):
        return [str(said) for said in self.said if said.text]

    def _draws(self, i, label):
        """Result i next to the right one, where it is wrong."""
        numbers = self.labels[label]
        return [self.found[n].draw(i) for n in numbers if i in (self.found[n].wrong or ())]

    # --- known mistakes -------------------------------------------------------------------------------------------

    def _by_known_mistakes(self, candidates):
        """Explain as many results as possible by one of the candidates, then the rest by another."""
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
        while self._open():

            def value(mistakes):
                here = [fits[mistakes][i] for i in self._open() if i in fits[mistakes]]
                known = sum(name in self.names for name in mistakes)
                return len(here), known, sum(map(len, here)), self._agreement(mistakes)

            best = max(fits, key=value, default=None)
            here = [i for i in self._open() if best and i in fits[best]]
            if not here:
                return
            for i in here:
                self._give(i, _Reason(best))

    def _fits(self, mistakes, i, label):
        """Whether these mistakes give the student's numbers in every draw of a case."""
        possible = self.trials.exercise.compatible(mistakes)
        return possible and all(self._agrees(mistakes, i, number) for number in self.labels[label])

    def _agrees(self, mistakes, i, number):
        finding, (variant, _) = self.found[number], self.trials.variant_on(mistakes, number)
        if finding.results is None or variant is None:
            return finding.results is None and variant is None
        return close(finding.results[i], variant[i])

    def _spares(self, mistakes, label):
        """Whether these mistakes leave right what the student has right in a case."""
        numbers, results = self.labels[label], range(len(self.found[0].expected))
        return all(
            self._agrees(mistakes, i, number)
            for number in numbers
            for i in results
            if self.found[number].wrong is not None and i not in self.found[number].wrong
        )

    def _covered(self, mistakes, i):
        """The labels of the cases where result i is wrong just as these mistakes make it."""
        return [label for label in self.failing[i] if self._fits(mistakes, i, label)]

    def _agreement(self, mistakes):
        results = range(len(self.found[0].expected))
        return sum(self._agrees(mistakes, i, number) for number in range(len(self.found)) for i in results)

    def _pairs(self):
        """Pairs of mistakes that both show where an unexplained result is first wrong; those with a mistake that is
        known to be there come first."""
        number = min(n for i in self._open() for n in self.labels[self.failing[i][0]])
        shown = [name for name in self.mistakes if self._shows(name, number)]
        pairs = sorted(combinations(shown, 2), key=lambda pair: not set(pair) & set(self.names))
        end = monotonic() + SECONDS
        for pair in pairs:
            if monotonic() > end:
                return
            yield pair

    def _shows(self, name, number):
        variant, _ = self.trials.variant_on((name,), number)
        expected = self.found[number].expected
        return variant is None or not all(map(close, variant, expected))

    def _by_mistake_and_change(self, i):
        """A known mistake, and the outcome changed: in sign, by a factor, …"""
        label = self.failing[i][0]
        numbers = [n for n in self.labels[label] if i in (self.found[n].wrong or ())]
        for name in self.mistakes:
            variants = [self.trials.variant_on((name,), n)[0] for n in numbers]
            if not all(self._changes_numbers(variant, i, n) for variant, n in zip(variants, numbers, strict=True)):
                continue
            draws = [
                replace(self.found[n].draw(i), expected=variant[i], inputs={}, others={}, earlier=())
                for variant, n in zip(variants, numbers, strict=True)
            ]
            description = describe_exactly(draws)
            if description:
                text = f"And after this mistake: {description.text}"
                self._give(i, _Reason((name,), description.name), text)
                return

    def _changes_numbers(self, variant, i, number):
        """Whether a variant has other numbers than the reference, in the shape that the student's have, and no numbers
        where the student has truth values."""
        finding = self.found[number]
        return (
            variant is not None
            and variant[i].shape == finding.results[i].shape
            and (variant[i].dtype == bool or finding.results[i].dtype != bool)
            and not close(variant[i], finding.expected[i])
        )

    # --- the cases that this does not account for --------------------------------------------------------------------

    def _other_cases(self, i):
        reason = self.reasons[i]
        first, *labels = self.failing[i]
        if not reason.mistakes and not reason.description:
            return
        if not reason.mistakes:
            left = labels if self._is_exact(i, first, reason) else []
            left = [label for label in left if not self._is_exact(i, label, reason)]
        elif reason.description:
            return
        else:
            left = [label for label in labels if not self._fits(reason.mistakes, i, label)]
            left = self._one_more_mistake(i, reason, left)
        for label in left:
            fits = (name for name in self.mistakes if self._fits((name,), i, label) and self._spares((name,), label))
            single = next(fits, None)
            description = None if single else describe_exactly(self._draws(i, label))
            if single:
                if single not in self.names:
                    self._say(single, self.mistakes[single], label, led=True)
            elif description:
                self._say(description.name, description.text, label, led=True)
            else:
                description = describe_roughly(self._draws(i, label))
                self._say(None, f"{_MORE} {description.text}", label, led=True)

    def _is_exact(self, i, label, reason):
        description = describe_exactly(self._draws(i, label))
        return description is not None and description.name.split()[:2] == reason.description.split()[:2]

    def _one_more_mistake(self, i, reason, left):
        """Say which mistake more explains most of the cases that are left; the cases that are left then."""
        if not left or len(reason.mistakes) > 1:
            return left
        best, covered = None, []
        for name in self.mistakes:
            both = (*reason.mistakes, name)
            if name in reason.mistakes or not self._fits(both, i, self.failing[i][0]):
                continue
            now = [label for label in left if self._fits(both, i, label) and self._spares(both, label)]
            if len(now) > len(covered):
                best, covered = name, now
        if best and best not in self.names:
            self._say(best, self.mistakes[best], " and with ".join(covered), led=True)
        return [label for label in left if label not in covered]

    def _crash_comes_first(self):
        """The first case that is wrong has no results: what explains those of other cases may be another matter."""
        mistakes = {name for reason in self.reasons.values() for name in reason.mistakes}
        number = self.found.index(self.first_failed)
        if any(self.trials.variant_on((name,), number)[0] is None for name in mistakes):
            return
        said, self.said = self.said, []
        self._say_about_crash_or_structure(self.first_failed)
        self.said += [replace(what, led=True) for what in said if what.sure]

    def _other_crashes(self):
        """Cases in which the answer crashes, where it does not in the first that is wrong."""
        told = {self.first_failed.case.label}
        mistakes = {name for reason in self.reasons.values() for name in reason.mistakes}
        for number, finding in enumerate(self.found):
            if finding.results is not None or finding.case.label in told:
                continue
            told.add(finding.case.label)
            if any(self.trials.variant_on((name,), number)[0] is None for name in mistakes):
                continue
            fact = finding.fact()[0]
            self._say(None, f"{fact} {finding.description().text}", finding.case.label, led=True)

    # --- answers that only crash, or return something else ---------------------------------------------------------

    def explain_crash(self):
        """The one mistake that fails in the same cases in the same way, or what there is to say of the exception."""
        fits = [name for name in self.mistakes if self._fails_alike(name)]
        if len(fits) == 1:
            self._say(fits[0], self.mistakes[fits[0]])
        else:
            self._say_about_crash_or_structure(self.first_failed)

    def _say_about_crash_or_structure(self, finding):
        description = finding.description()
        self._say(description.name, description.text)

    def _fails_alike(self, name):
        alike = []
        for number, finding in enumerate(self.found):
            variant, tried = self.trials.variant_on((name,), number)
            if (finding.results is None) != (variant is None):
                return False
            if finding.results is not None:
                if not all(map(close, variant, finding.results)):
                    return False
                continue
            ours, theirs = finding.tried.crash, tried.crash
            if bool(ours) != bool(theirs):
                return False
            if not ours:
                case, exercise = finding.case, finding.exercise
                alike.append(finding.fact()[0] == wrong_structure(exercise, case, tried.output))
            elif ours.kind != theirs.kind:
                return False
            else:
                alike.append(_without_numbers(ours.text) == _without_numbers(theirs.text))
                if not alike[-1] and ours.kind == "ValueError":  # which NumPy raises for every shape that does not fit
                    return False
        return all(alike) or (len(alike) < len(self.found) and self.first_failed.tried.crash is not None)
