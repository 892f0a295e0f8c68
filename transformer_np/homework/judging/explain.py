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
from dataclasses import replace
from itertools import combinations

import numpy as np

from .by_result import MOST_TEXTS, ByResult, Reason
from .compare import close, wrong_structure
from .describe import describe_exactly, describe_roughly
from .describe.crashes import FIXED_AXES
from .example import smallest_call
from .mended import ABOUT_ORDER, ORDER_OF_RESULTS, fixed_axes, with_results_in_order, with_right_shapes
from .patterns import patterns_for
from .truth import Said, cases_of, with_cases
from .words import listed, subject

MOST_CASE_TRIALS = 300  # for the cases that the first explanation leaves open
SAME_NUMBER = "the same number everywhere"
CHANCE = ("NaN everywhere", "all zeros", SAME_NUMBER)  # descriptions of what many mistakes make
MOST_STRUCK_OUT = 12  # then no mistake is named at all


def explain(trials, found, place=None, behind=()):
    """The names of the mistakes, the texts for the student, those to show behind the line, and a sentence on the cases
    that fail, or "".

    found: a Finding for each case, at least one of them not right; place: where one edit makes the answer right
    behind: the Findings without what crashes first, if they are known
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # wrong numbers overflow
        warnings.simplefilter("ignore")
        search = _explained(trials, found, place)
        search.add_patterns()
        if not search.patterns:
            search.keep_what_is_true()
            search.drop_what_others_explain()
        if not (search.names or place or search.first_failed.results is None):
            whole = _Search(trials, found)  # with the mistakes that some cases contradicted
            search = whole if whole.explain_some_cases(search.without) else search
        if any(name in search.mistakes for name in search.names) and search.first_failed.tried.crash:
            search.said = [said for said in search.said if said.name not in CHANCE]
        where = search.where()
        sure = any(said.name and said.sure for said in search.said)
        rest = search.rest() if not place or place.also else []
    if place:  # the line says more than the place of the largest error
        texts = [search.written(said) for said in search.said if said.text and said.sure][:MOST_TEXTS]
        named = any(said.name in search.mistakes for said in search.said)
        says_more = (
            search.first_failed.tried.crash and not named and not place.about.startswith("The results are right")
        )
        about = _about(place) if not texts or says_more else []
        names, more = [], []
        if place.after and (search.is_incomplete or search.patterns or not search.names or search.left_open()):
            names, more = _left_by(place, trials, found, search.names)
        names = (search.names if sure else []) + (names if sure else [place.kind, *names] if names else [])
        return names, texts + rest + about, more, where
    texts = [search.written(said) for said in search.said if said.text]
    if not any(name in search.mistakes for name in search.names) and (axes := fixed_axes(found)):
        more = [said for said in search.said if said.sure and said.name not in (None, FIXED_AXES)][:1]  # such as `.T`
        return [*(said.name for said in more), FIXED_AXES], [*map(search.written, more), axes], [], where
    if behind and search.names:
        more, said = _left_in(_explained(trials, [f for f in behind if not f.case.raises], None), search.names)
        return [*search.names, *more], [*texts[:MOST_TEXTS], *said], [], where
    if not any(name in search.mistakes for name in search.names) and (mended := with_results_in_order(found)):
        more, said = _left_in(_explained(trials, mended, None), ())
        return [ORDER_OF_RESULTS, *more], [ABOUT_ORDER, *said], [], where
    if not any(name in search.mistakes for name in search.names) and (mended := with_right_shapes(found)):
        more, said = _left_in(_explained(trials, mended, None), search.names, described=True)
        return [*search.names, *more], [*texts, *said], [], where
    if not search.names:
        example = smallest_call(found)
        if example and not any(said.sure or said.name for said in search.said):
            return [], [example], [], where
    told = [said.name for said in search.said if said.text]
    named = 1 + max((n for n, name in enumerate(told) if name in search.mistakes), default=-1)
    return search.names, [*texts[:named], *rest, *texts[named:]][: MOST_TEXTS + len(rest)], [], where


def _explained(trials, found, place):
    """The search that found an explanation, or the last one."""
    struck_out, patterns = set(), {}
    while True:
        search = _Search(trials, found, struck_out, place, patterns)
        if not search.failing:
            search.explain_crash()
            return search
        search.explain_results()
        if search.patterns:
            return search
        contradicted = search.contradicted() | search.found_beside()
        if not struck_out and (contradicted or search.is_incomplete):
            whole = _Search(trials, found, (), place, patterns)
            if whole.explain_all_cases():
                return whole
        if not contradicted:
            return search
        struck_out |= contradicted if len(struck_out) < MOST_STRUCK_OUT else set(search.mistakes)


def _about(place):
    """The sentences on a Place, each with its line where there are two."""
    if not place.also:
        return [place.about]
    places = [place]
    while places[-1].also:
        places.append(places[-1].also)
    return [f"Line {part.line}: {part.about}" for part in sorted(places, key=lambda part: part.line) if part.about]


def _left_by(place, trials, found, named):
    """The names of the mistakes that stay in an answer after the edits of a Place, and the texts about them; none if
    the edits change what is wrong there: they may be more than the repair."""
    after = [finding for finding in place.after if not finding.case.raises]
    left = [(now, before) for now, before in zip(after, found, strict=True) if now.wrong != []]
    if not left or not all(_is_same(now, before) for now, before in left):
        return [], []
    search = _explained(trials, after, place)
    names, texts = _left_in(search, named)
    labels = list(dict.fromkeys(now.case.label for now, _ in left))
    is_known = names or any(said.name in search.mistakes and said.sure for said in search.said)
    still = [] if is_known else [f"With that mended, the results are still wrong with {cases_of(labels)}."]
    return names, texts + still


def _left_in(search, named, described=False):
    """The names of the other mistakes that a search has found in an answer without those named, and their texts.

    described: whether an exact description of a result counts as a mistake
    """
    search.keep_what_is_true()
    said = {said.name: said.text for said in search.said if said.name and said.sure}
    new = [
        name for name in said if name not in named and (name in search.mistakes or (described and name not in CHANCE))
    ]
    return new, [f"With that mended, this is left: {said[name]}" for name in new]


def _is_same(now, before):
    if now.results is None or before.results is None:
        return bool(now.tried.crash and before.tried.crash and now.tried.crash.text == before.tried.crash.text)
    return all(map(close, now.results, before.results))


def _failure_of(finding):
    """What distinguishes a case without results from others: the student's line and the kind of an exception, or what
    is returned."""
    crash = finding.tried.crash
    return (crash.trace.rpartition(", line ")[2], crash.kind) if crash else _without_numbers(finding.fact()[0])


def _without_numbers(text):
    return re.sub(r"[\d(), ]+", " ", text)


def _numbers_in(text):
    return sorted(re.findall(r"\d+", text))


class _Search(ByResult):
    def __init__(self, trials, found, without=(), place=None, patterns=None):
        super().__init__(trials, found, without)
        self.tried_patterns = {} if patterns is None else patterns  # {listed mistakes: what patterns_for returns}
        self.place, self.without = place, without
        self.patterns = []  # the Patterns of mistakes that nobody has listed
        self.left = set()  # wrong cells, (result, label of a case), that they leave

    def explain_results(self):
        self._explain_open()
        self._open_independent()
        self._explain_open()
        if self.patterns:
            return
        allowed = len(self.tried) + self.trials.most(MOST_CASE_TRIALS)
        for i in self.failing:
            self._other_cases(i, allowed)
        if self.first_failed.results is None:
            self._crash_comes_first()
        else:
            self._other_crashes()

    def _explain_open(self):
        self._by_known_mistakes([(name,) for name in self.mistakes])
        self._describe_exactly(lambda i, name: not self._is_chance(i, name))
        if self._open() and not self.place and (named := {*self.names} & {*self.mistakes}):
            self._by_known_mistakes(pair for pair in self._pairs() if named & {*pair})  # texts of ours say more
        if self._open() and not self.without and self._by_patterns():  # once: it is slow
            return
        if self._open() and (not self.place or self.place.also):  # one edit is enough: there are no two mistakes
            self._by_known_mistakes(self._pairs())
            self._drop_explained_descriptions()
        self._describe_exactly(self._is_chance)
        for i in self._open():
            description = describe_roughly(self._draws(i, self.failing[i][0]))
            self._give(i, Reason(description=description.name), description.text, sure=False)

    def _describe_exactly(self, is_wanted):
        for i in self._open():
            description = describe_exactly(self._draws(i, self.failing[i][0]))
            if description and is_wanted(i, description.name):
                self._give(i, Reason(description=description.name), description.text)

    def _is_chance(self, i, name):
        """Whether what a description says of a result may follow from other mistakes."""
        has_right_shape = all(d.actual.shape == d.expected.shape for d in self._draws(i, self.failing[i][0]))
        return name == SAME_NUMBER or (name == "transposed" and has_right_shape)

    def _drop_explained_descriptions(self):
        """Forget the descriptions of numbers that mistakes found for another result explain."""
        for i, reason in self.reasons.items():
            found = [other.mistakes for other in self.reasons.values() if other.mistakes]
            fits = [names for names in found if self._fits(names, i, self.failing[i][0])] if reason.description else []
            if fits:
                self.reasons[i] = Reason(fits[0])
                self.said = [said for said in self.said if said.name != reason.description]

    def _by_patterns(self, whole=True):
        """Explain everything by edits of the right answer with the mistakes named so far, or of the right answer. Not
        whole: or all of the first failing case. Returns whether it is explained."""
        if self.place or self.patterns:
            return bool(self.patterns)
        known = tuple(name for name in self.names if name in self.mistakes)
        first = self.first_failed.case.label
        is_open = self._open() or not known or any(label == first for _, label in self.left_open())
        for names in dict.fromkeys([known, ()] if is_open else [known]):
            if names not in self.tried_patterns and self.trials.compatible(names):
                self.tried_patterns[names] = patterns_for(self.trials, self.found, names)
            patterns, left = self.tried_patterns.get(names, ([], set()))
            if patterns and not (whole and left):
                self.said = [said for said in self.said if said.name in names]
                for pattern in patterns:
                    elsewhere = pattern.labels and "" not in pattern.labels
                    text = with_cases(pattern.text, cases_of(pattern.labels)) if elsewhere else pattern.text
                    self._say(pattern.name, text)
                self.patterns, self.left = patterns, left
                return True
        return False

    def drop_what_others_explain(self):
        """Forget named mistakes as long as the others explain as much without them."""
        names = list(dict.fromkeys(said.name for said in self.said if said.name in self.mistakes))
        cells = [(i, label) for label in self.labels for i in self._wrong_in(label)] if len(names) > 2 else []
        told = {name: {cell for cell in cells if self._some_fit((name,), *cell)} for name in names}
        explained = {cell for cell in cells if self._some_fit(names, *cell)}
        crashed = {f.case.label: n for n, f in enumerate(self.found) if f.results is None}.values()
        for name in sorted(names, key=lambda name: len(told[name])) if explained else ():
            others = [other for other in names if other != name]
            if any(self._try((name,), n)[0] is None for n in crashed):
                continue
            if others and all(self._some_fit(others, *cell) for cell in explained):
                names = others
        self.said = [said for said in self.said if said.name in names or said.name not in self.mistakes]

    def add_patterns(self):
        """Explain by edits what the named mistakes leave, or else all of the first failing case."""
        if not self.patterns and (self.is_incomplete or self.left_open()):
            self._by_patterns(whole=False)

    def left_open(self):
        """The wrong cells, (result, label of a case), that neither a description nor some of the named mistakes
        explain; [] if nothing is named."""
        if self.patterns:
            return self.left
        known = [name for name in self.names if name in self.mistakes]
        described = {i for i, reason in self.reasons.items() if reason.description and i in self.explained_exactly}
        return [
            (i, label)
            for label in self.labels
            for i in self._wrong_in(label)
            if self.names and i not in described and not self._some_fit(known, i, label)
        ]

    def rest(self):
        """[a sentence on what the named mistakes do not explain], or []"""
        known = [name for name in self.names if name in self.mistakes]
        if not known or self.patterns:
            return []  # a description claims no cause
        left = {}  # {label: results}
        for i, label in self.left_open():
            if label not in self.following.get(i, ()):
                left.setdefault(label, []).append(i)
        first, one = self.first_failed.case.label, len(self.names) == 1
        in_part = [x for x in left if any(i not in left[x] and self._some_fit(known, i, x) for i in self._wrong_in(x))]
        told = {"", *(said.label for said in self.said if said.led)}
        free = [x for x in left if x not in told and all(self._leaves_right((name,), x) for name in known)]
        if "" in left and "" not in in_part and all(self._leaves_right((name,), "") for name in known):
            return ["What is wrong in the plain case is open."]
        if len(free) > 1 and first not in in_part:  # one may be a branch with the same mistake
            this = "this also explains" if one else "these also explain"
            return [f"Whether {this} the results with {cases_of(free)} is open: there may be another mistake."]
        for label in in_part[:1]:
            names = listed(subject(self.trials.exercise.results[i].name) for i in left[label]).replace("The ", "the ")
            where = f" with {label}" if label != first else ""
            return [f"{'This alone does' if one else 'These alone do'} not explain {names}{where}."]
        return []

    def _some_fit(self, names, i, label):
        return any(self._fits(some, i, label) for n in range(1, len(names) + 1) for some in combinations(names, n))

    def found_beside(self):
        """The named mistakes that explain too little of the first failing case while a result there stays
        unexplained."""
        label = self.first_failed.case.label
        here = [i for i in self.reasons if label in self.failing[i]]
        if all(i in self.explained_exactly for i in here):
            return set()
        main = [i for i in here if self._tells_much(label, i)]
        return {name for i, reason in self.reasons.items() if i not in main for name in reason.mistakes}

    # --- several mistakes, each in some of the cases ------------------------------------------------------------------

    @property
    def is_incomplete(self):
        """Whether a text describes numbers that nothing explains."""
        return any(not said.sure for said in self.said)

    def explain_all_cases(self):
        """Name a few mistakes, some of which explain each case with all its results. Returns whether there are such
        mistakes."""
        labels = list(filter(self._wrong_in, self.labels))
        right = [label for label in self.labels if label not in labels]
        covered, least = {}, self.trials.least
        for name in self.mistakes:
            if self.trials.left <= least:
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
        return not left

    def explain_some_cases(self, likely=()):
        """Name the mistake that explains most of the failing cases with all their results, if it changes none of those
        that are right, and is no claim about all calls, and the likely ones that explain others. Returns whether there
        is one.

        likely: the mistakes to try first, which explain a case
        """
        right = [label for label, numbers in self.labels.items() if all(self.found[n].right for n in numbers)]
        first = self.first_failed.case.label
        least, explained = self.trials.least, {}
        for name in sorted(self.mistakes, key=lambda name: name not in likely):
            if self.trials.left <= least:
                break
            if self._claims_all_calls(Said(name, self.mistakes[name])):
                continue
            here = [label for label in self.labels if label not in right and self._explains((name,), label)]
            if here and all(self._leaves_right((name,), label) for label in right):
                explained[name] = here
        best = max(explained, key=lambda name: (first in explained[name], len(explained[name])), default=None)
        covered = explained.get(best, [])
        if not covered or (first not in covered and 2 * len(covered) < len(self.labels) - len(right)):
            return False
        for name in (best, *(name for name in likely if name in explained and name != best)):
            new = [label for label in explained[name] if name == best or label not in covered]
            if new:
                self.said.append(Said(name, self.mistakes[name], "" if "" in new else cases_of(new), led=True))
                covered = [*covered, *new]
        return True

    # --- answers that crash, or return the wrong kind of value --------------------------------------------------------

    def explain_crash(self):
        """Name the one mistake that fails in the same cases in the same way, or else describe the exception."""
        fits = next((name for name in self.mistakes if self._fails_alike(name)), None)
        if fits:
            self._say(fits, self.mistakes[fits])
        else:
            self._say_about_crash_or_structure(self.first_failed)
            self._other_crashes()

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
                if ours.kind == "ValueError" and not (alike[-1] and _numbers_in(ours.text) == _numbers_in(theirs.text)):
                    return False  # NumPy raises it for any two shapes
        return all(alike) or (len(alike) < len(self.found) and self.first_failed.tried.crash is not None)

    def _crash_comes_first(self):
        """Put the crash of the first failing case in front, unless a mistake found in other cases explains it."""
        mistakes = {name for reason in self.reasons.values() for name in reason.mistakes}
        number = self.found.index(self.first_failed)
        if any(self._try((name,), number)[0] is None for name in mistakes):
            return
        said, self.said = self.said, []
        name = self._crashes_like(number)
        if name:
            self._say(name, self.mistakes[name])
        else:
            self._say_about_crash_or_structure(self.first_failed)
        chance = {s.label for s in said if not any(self._tells_something(i, s.label) for i in self._wrong_in(s.label))}
        self.said += [replace(text, led=True) for text in said if text.sure and text.label not in chance]

    def _crashes_like(self, number):
        """A mistake that raises the same exception in a case, and leaves right what the answer has right, or None."""
        ours = self.found[number].tried.crash
        right = [n for n, finding in enumerate(self.found) if finding.right]
        for name in self._likely_in([self.found[number].case.label]) if ours else ():
            theirs = self._try((name,), number)[1].crash
            if self.trials.left <= self.trials.least:
                return None
            if theirs and (theirs.kind, theirs.text) == (ours.kind, ours.text):
                if not any(self._changes((name,), n) for n in right):
                    return name
        return None

    def _other_crashes(self):
        """Report crashes in later cases that no mistake found so far explains, one of each line and kind."""
        told, known = {self.first_failed.case.label}, set()
        advised = self.first_failed.results is None
        mistakes = {name for reason in self.reasons.values() for name in reason.mistakes}
        if advised:
            known.add(_failure_of(self.first_failed))
        for number, finding in enumerate(self.found):
            if finding.results is not None or finding.case.label in told or _failure_of(finding) in known:
                continue
            told.add(finding.case.label)
            known.add(_failure_of(finding))
            if any(self._try((name,), number)[0] is None for name in mistakes):
                continue
            fact, name = finding.fact()[0], self._crashes_like(number)
            text = self.mistakes[name] if name else "" if advised else finding.description().text
            advised = True  # the next one often has the same cause, which other words would hide
            self._say(name, f"{fact} {text}".rstrip(), finding.case.label, led=True)
