"""The search for the mistakes that explain a wrong answer.

Each result is explained on its own, because dq can be wrong for one reason and dv for another. The search tries the
simplest explanations first: one known mistake; a change that can happen to any function, such as a wrong sign; two
known mistakes; and at the end a description of the numbers. An explanation must reproduce the student's numbers in
every draw of the first failing case. The other failing cases come after it.

At the end the named mistakes are tried on all cases and results, including the right ones. If a mistake changes the
numbers, the answer has to show that change, from this mistake alone or together with other named ones. If it does not,
or if something stays open, the search looks for a few mistakes that together explain all cases. If there are none, it
starts again without the mistakes that were contradicted.

If a case's forward results are wrong, its gradients are usually skipped: even a correct backward pass of a wrong
forward pass returns different gradients. A gradient is explained only if the mistake in the forward pass does not
change it.

The search is bounded by the number of trials, never by time: the same answer and seed give the same text on every
machine.
"""

import re
import warnings
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from .compare import close, wrong_entries, wrong_structure
from .describe import describe_exactly, describe_roughly
from .describe.draw import listed, subject
from .example import smallest_call
from .patterns import patterns_for
from .truth import Gate, Said, cases_of

MOST_PAIR_TRIALS = 300  # a trial is one variant on one case, and takes 0.1 to 4 ms
MOST_CASE_TRIALS = 300  # for the cases that the first explanation leaves open
ENOUGH, MANY = 125, 1000
WORK = 1_600_000  # calls that the interpreter counts in either of them
MOST_STRUCK_OUT = 12  # then no mistake is named at all
MOST_TEXTS = 4  # readers stop after about four


def explain(trials, found, place=None):
    """The misconception (a name or None), the texts for the student, and a sentence on the cases that fail, or "".

    found: a Finding for each case, at least one of them not right; place: where one edit makes the answer right
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # wrong numbers overflow
        warnings.simplefilter("ignore")
        search = _explained(trials, found, place)
        search.add_patterns()
        if not search.patterns:
            search.keep_what_is_true()
        if not (search.names or place or search.first_failed.results is None):
            whole = _Search(trials, found)  # with the mistakes that some cases contradicted
            search = whole if whole.explain_some_cases() else search
        where = search.where()
        sure = any(said.name and said.sure for said in search.said)
        rest = search.rest() if not place or place.also else []
    if place:  # the line says more than the place of the largest error
        texts = [search.written(said) for said in search.said if said.text and said.sure]
        named = any(said.name in search.mistakes for said in search.said)
        about = [place.about] if not texts or (search.first_failed.tried.crash and not named) else []
        return (" and ".join(search.names) if sure else None) or None, texts + about + rest, where
    if not search.names:
        example = smallest_call(found)
        if example and not any(said.sure or said.name for said in search.said):
            return None, [example], where
    return " and ".join(search.names) or None, search.texts + rest, where


def _explained(trials, found, place):
    """The search that found an explanation, or the last one."""
    struck_out, patterns = set(), {}
    while True:
        search = _Search(trials, found, struck_out, place, patterns)
        if not search.open_results:
            search.explain_crash()
            return search
        search.explain_results()
        if search.patterns:
            return search
        contradicted = search.contradicted() | search.found_beside()
        if not struck_out and search.is_cheap and (contradicted or search.is_incomplete):
            whole = _Search(trials, found, (), place, patterns)
            if whole.explain_all_cases():
                return whole
        if not contradicted:
            return search
        struck_out |= contradicted if len(struck_out) < MOST_STRUCK_OUT else set(search.mistakes)


@dataclass(frozen=True)
class _Reason:
    """The explanation of a result: known mistakes, the name of a description, or neither."""

    mistakes: tuple[str, ...] = ()
    description: str | None = None


def _object(name):
    """The name of a result inside a sentence."""
    return subject(name).replace("The ", "the ")


def _without_numbers(text):
    return re.sub(r"[\d(), ]+", " ", text)


class _Search(Gate):
    def __init__(self, trials, found, without=(), place=None, patterns=None):
        super().__init__(trials, found, without)
        self.tried_patterns = {} if patterns is None else patterns  # {listed mistakes: what patterns_for returns}
        self.place, self.without = place, without
        self.is_cheap = trials.most(MANY, WORK) >= ENOUGH  # to try everything
        self.said = []
        self.open_results = sorted(self.failing)
        self.reasons = {}  # {result: _Reason}
        self.explained_exactly = set()  # results
        self.patterns = []  # the Patterns of mistakes that nobody has listed
        self.left = set()  # wrong cells, (result, label of a case), that they leave

    def explain_results(self):
        self._explain_open()
        self._open_independent()
        self._explain_open()
        if self.patterns:
            return
        allowed = len(self.tried) + self.trials.most(MOST_CASE_TRIALS, WORK)
        for i in self.failing:
            self._other_cases(i, allowed)
        if self.first_failed.results is None:
            self._crash_comes_first()
        else:
            self._other_crashes()

    def _open_independent(self):
        """Add the gradients that the mistakes found in the forward pass do not change."""
        for i, labels in self.following.items():
            for label in labels:
                mistakes = {name for j in self.astray[label] for name in self.reasons[j].mistakes}
                fits = mistakes and all(self._fits(mistakes, j, label) for j in self.astray[label])
                if fits and not any(self._unclear(mistakes, i, number) for number in self.labels[label]):
                    self.failing.setdefault(i, []).append(label)
        self.open_results = sorted(self.failing)

    def _unclear(self, mistakes, i, number):
        """Whether a wrong gradient may follow from mistakes in the forward pass: they change it, or it is missing or
        all NaN."""
        finding, (variant, _) = self.found[number], self._try(mistakes, number)
        if finding.results is None or variant is None or not close(variant[i], finding.expected[i]):
            return True
        return bool(np.isnan(finding.results[i]).all())

    def _explain_open(self):
        self._by_known_mistakes([(name,) for name in self.mistakes])
        for i in self._open():
            description = describe_exactly(self._draws(i, self.failing[i][0]))
            if description:
                self._give(i, _Reason(description=description.name), description.text)
        if self._open() and not self.without and self._by_patterns():
            return
        if self._open() and (not self.place or self.place.also):  # one edit is enough: there are no two mistakes
            self._by_known_mistakes(self._pairs())
        for i in self._open():
            description = describe_roughly(self._draws(i, self.failing[i][0]))
            self._give(i, _Reason(description=description.name), description.text, sure=False)

    def _by_patterns(self, whole=True):
        """Explain everything by edits of the right answer with the mistakes named so far, or of the right answer. Not
        whole: or all of the first failing case. Returns whether it is explained."""
        if self.place or self.patterns:
            return bool(self.patterns)
        known = tuple(name for name in self.names if name in self.mistakes)
        first = self.first_failed.case.label
        is_open = self._open() or not known or any(label == first for _, label in self._unexplained())
        for names in dict.fromkeys([known, ()] if is_open else [known]):
            if names not in self.tried_patterns and self.trials.compatible(names):
                self.tried_patterns[names] = patterns_for(self.trials, self.found, names)
            patterns, left = self.tried_patterns.get(names, ([], set()))
            if patterns and not (whole and left):
                self.said = [said for said in self.said if said.name in names]
                for pattern in patterns:
                    shown = (
                        f" This shows with {cases_of(pattern.labels)}."
                        if pattern.labels and "" not in pattern.labels
                        else ""
                    )
                    self._say(pattern.name, pattern.text + shown)
                self.patterns, self.left = patterns, left
                return True
        return False

    def add_patterns(self):
        """Explain by edits what the named mistakes leave, or else all of the first failing case."""
        if self.first_failed.results is not None and not self.patterns and (self.is_incomplete or self._unexplained()):
            self._by_patterns(whole=False)

    def _unexplained(self):
        """The wrong cells, (result, label of a case), that neither a description nor some of the named mistakes
        explain; [] if nothing is named."""
        if self.patterns:
            return self.left
        known = [name for name in self.names if name in self.mistakes]
        some = [some for n in range(1, len(known) + 1) for some in combinations(known, n)]
        described = {i for i, reason in self.reasons.items() if reason.description and i in self.explained_exactly}
        return [
            (i, label)
            for label, numbers in self.labels.items()
            for i in sorted({i for n in numbers for i in self.found[n].wrong or ()} - described)
            if self.names and not any(self._fits(names, i, label) for names in some)
        ]

    def rest(self):
        """[a sentence on what the texts do not explain], or []"""
        left = self._unexplained()
        if not left or not self.names or not all(name in self.mistakes for name in self.names):
            return []  # a description is of one result
        first = self.first_failed.case.label
        left = [(i, label) for i, label in left if label not in self.following.get(i, ())]
        names = [self.trials.exercise.results[i].name for i, label in left if label == first]
        if names and len(names) == len(self.first_failed.wrong or ()):
            return []  # the texts say in which case a mistake shows
        if names:
            alone = "These alone do" if len(self.names) > 1 else "This alone does"
            return [f"{alone} not explain {listed(map(_object, names))}."]
        labels = [label for label in self.labels if any(cell[1] == label for cell in left)]
        return [f"Something else may be wrong with {cases_of(labels)}."] if self.patterns else []

    def _open(self):
        return [i for i in self.open_results if i not in self.reasons]

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
        if led and not sure and any(said.led and not said.sure for said in self.said):
            return  # once is enough
        if not any(said.name == name and said.text == text for said in self.said):
            self.said.append(Said(name, text, label, led, sure))

    @property
    def names(self):
        sure = any(said.name and said.sure for said in self.said)
        return list(dict.fromkeys(said.name for said in self.said if said.name and (said.sure or not sure)))

    @property
    def texts(self):
        return [self.written(said) for said in self.said if said.text]

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
                known = sum(name in self.names for name in mistakes)
                return len(here), known, sum(map(len, here)), self._agreement(mistakes)

            best = max(fits, key=value, default=None)
            here = [i for i in self._open() if best and i in fits[best]]
            if not here:
                return
            for i in here:
                self._give(i, _Reason(best))

    def _pairs(self):
        """Pairs of mistakes for the open results, the likeliest first, until MOST_PAIR_TRIALS are used.

        Each mistake on its own tells which results it changes in the first draw with a wrong result. A pair must not
        change the student's right results. Likelier are pairs with a mistake that was already found, pairs whose
        mistakes both change an open result, pairs that together change exactly the wrong results, and of these the ones
        that together change most of the wrong numbers and fewest of the right ones.
        """
        number = min(n for i in self._open() for n in self._wrong_draws(i, self.failing[i][0]))
        wrong, still_open = set(self.found[number].wrong), set(self._open())
        changes = {name: self._changed_by(name, number) for name in self.mistakes}
        possible = [name for name in self.mistakes if changes[name] and changes[name] <= wrong]
        places = {name: self._wrong_numbers(self._try((name,), number)[0], number) for name in possible}
        here = self._wrong_numbers(self.found[number].results, number)

        def unlikeliness(pair):
            a, b = (changes[name] for name in pair)
            differs = np.mean((places[pair[0]] | places[pair[1]]) != here)
            late = sum(possible.index(name) for name in pair)  # else all are tried with the first few alone
            return not set(pair) & set(self.names), not a & b & still_open, a | b != wrong, differs, late

        allowed = len(self.tried) + self.trials.most(MOST_PAIR_TRIALS, WORK)
        for pair in sorted(combinations(possible, 2), key=unlikeliness):
            if len(self.tried) >= allowed:
                return
            yield pair

    def _wrong_numbers(self, results, number):
        """Which numbers of all results of a case are wrong; all of a result that is missing or has another shape."""
        wrong = []
        for i, expected in enumerate(self.found[number].expected):
            fits = results is not None and results[i].shape == expected.shape
            wrong.append(wrong_entries(results[i], expected) if fits else np.ones(expected.shape, bool))
        return np.concatenate([part.ravel() for part in wrong])

    # --- the cases that remain ----------------------------------------------------------------------------------------

    def _other_cases(self, i, allowed):
        """Explain the other failing cases of result i, until the student has enough to read or `allowed` trials are
        used."""
        reason = self.reasons[i]
        first, *labels = self.failing[i]
        if not reason.mistakes and not reason.description:
            return
        if not reason.mistakes:
            left = labels if self._is_exact(i, first, reason) else []
            left = [label for label in left if not self._is_exact(i, label, reason)]
            if left:  # the description holds for this case, but not for all
                self.said = [replace(s, led=True) if s.name == reason.description else s for s in self.said]
        else:
            left = [label for label in labels if not self._fits(reason.mistakes, i, label)]
            left = self._one_more_mistake(i, reason, left, allowed)
        for label in left:
            if len(self.said) >= MOST_TEXTS or len(self.tried) >= allowed:
                return
            fits = (name for name in self.mistakes if self._fits((name,), i, label) and self._spares((name,), label))
            single = next(fits, None)
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

    def found_beside(self):
        """The named mistakes that explain too little of the first failing case while a result there stays
        unexplained."""
        label = self.first_failed.case.label
        here = [i for i in self.reasons if label in self.failing[i]]
        if all(i in self.explained_exactly for i in here):
            return set()
        main = [i for i in here if self._tells_much(label, i)]
        return {name for i, reason in self.reasons.items() if i not in main for name in reason.mistakes}

    def _is_exact(self, i, label, reason):
        description = describe_exactly(self._draws(i, label))
        return description is not None and description.name.split()[:2] == reason.description.split()[:2]

    def _one_more_mistake(self, i, reason, left, allowed):
        """Name the additional mistake that explains most of the remaining cases; returns the cases that remain then."""
        if not left or len(reason.mistakes) > 1:
            return left
        best, covered = None, []
        for name in self.mistakes:
            both = (*reason.mistakes, name)
            if len(self.tried) >= allowed:
                break
            if name in reason.mistakes or not self._fits(both, i, self.failing[i][0]):
                continue
            now = [
                label for label in left
                if self._fits(both, i, label) and self._spares(both, label) and self._has_shapes(both, label)
            ]  # fmt: skip
            if len(now) > len(covered):
                best, covered = name, now
        if best and best not in self.names:
            shown = [label for label in covered if not self._is_all_nan(i, label)]  # NaN may have any cause
            self._say(best, self.mistakes[best], cases_of(shown or covered), led=True)
        return [label for label in left if label not in covered]

    def _crash_comes_first(self):
        """Put the crash of the first failing case in front, unless a mistake found in other cases explains it."""
        mistakes = {name for reason in self.reasons.values() for name in reason.mistakes}
        number = self.found.index(self.first_failed)
        if any(self._try((name,), number)[0] is None for name in mistakes):
            return
        said, self.said = self.said, []
        self._say_about_crash_or_structure(self.first_failed)
        self.said += [replace(text, led=True) for text in said if text.sure]

    def _other_crashes(self):
        """Report crashes in later cases that no mistake found so far explains."""
        told = {self.first_failed.case.label}
        mistakes = {name for reason in self.reasons.values() for name in reason.mistakes}
        for number, finding in enumerate(self.found):
            if finding.results is not None or finding.case.label in told:
                continue
            told.add(finding.case.label)
            if any(self._try((name,), number)[0] is None for name in mistakes):
                continue
            fact = finding.fact()[0]
            self._say(None, f"{fact} {finding.description().text}", finding.case.label, led=True)

    # --- several mistakes, each in some of the cases ------------------------------------------------------------------

    @property
    def is_incomplete(self):
        """Whether a text describes numbers that nothing explains."""
        return any(not said.sure for said in self.said)

    def explain_all_cases(self):
        """Name a few mistakes, some of which explain each case with all its results. Returns whether there are such
        mistakes."""
        labels = [label for label, numbers in self.labels.items() if any(self._is_wrong(n) for n in numbers)]
        right = [label for label in self.labels if label not in labels]
        covered, allowed = {}, len(self.tried) + self.trials.most(MANY, WORK)
        for name in self.mistakes:
            if len(self.tried) >= allowed:
                break
            here = [label for label in labels if self._explains((name,), label)]
            if here and all(self._explains((name,), label) for label in right):
                covered[name] = here
        left, chosen = list(labels), []
        while left and covered and len(chosen) < MOST_TEXTS:
            best = max(covered, key=lambda name: len(set(covered[name]) & set(left)))
            here = [label for label in covered.pop(best) if label in left]
            if not here:
                break
            chosen.append(best)
            led = here if len(here) < len(labels) else [""]
            self._say(best, self.mistakes[best], cases_of(led), led=all(led))
            left = [label for label in left if not self._is_explained_by_some(chosen, label)]
        return not left and not self.contradicted()

    def explain_some_cases(self):
        """Name the mistake that explains most of the failing cases with all their results, if it changes none of those
        that are right, and is no claim about all calls. Returns whether there is one."""
        right = [label for label, numbers in self.labels.items() if all(self.found[n].right for n in numbers)]
        first = self.first_failed.case.label
        allowed, best, covered = len(self.tried) + self.trials.most(MANY, WORK), None, []
        for name in self.mistakes:
            if len(self.tried) >= allowed:
                break
            if self._claims_all_calls(Said(name, self.mistakes[name])):
                continue
            here = [label for label in self.labels if label not in right and self._explains((name,), label)]
            is_enough = first in here or 2 * len(here) >= len(self.labels) - len(right)
            if is_enough and len(here) > len(covered) and all(self._leaves_right((name,), label) for label in right):
                best, covered = name, here
        if best:
            self.said = [Said(best, self.mistakes[best], "" if "" in covered else cases_of(covered), led=True)]
        return best is not None

    # --- answers that only crash, or return the wrong kind of value ---------------------------------------------------

    def explain_crash(self):
        """Name the one mistake that fails in the same cases in the same way, or else describe the exception."""
        own = self.trials.exercise.mistakes
        fits = [name for name in own if self._fails_alike(name)]
        fits = fits or [name for name in self.mistakes if name not in own and self._fails_alike(name)]
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
            variant, tried = self._try((name,), number)
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
                if not alike[-1] and ours.kind == "ValueError":  # NumPy raises it for any two shapes
                    return False
        return all(alike) or (len(alike) < len(self.found) and self.first_failed.tried.crash is not None)
