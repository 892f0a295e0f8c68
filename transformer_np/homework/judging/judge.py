"""From an answer's outputs to a verdict: its outcome and its explanation."""

from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from textwrap import fill

import numpy as np

from ..exercise import call
from .attempt import RULES, Attempt, argument_names, arrays_of, attempt, crash_of, guarded, unheard, work_of
from .compare import close, results_and_problem, wrong_structure
from .describe import Draw, about_crash, about_structure
from .describe.draw import listed, subject
from .explain import explain
from .family import without_huge_arrays
from .ignored import ignored_arguments
from .seen import suspects_of
from .truth import cases_of

FEWEST = 40  # trials of a search
OUTCOMES = ("passed", "not started", "crashed", "wrong shape", "wrong value", "wrong gradient")
CHANGED = "changes its input"
OTHER_DTYPE = "another dtype"
SHARED = "copy or view"
NOT_REFUSED = "does not raise the exception"
WIDTH = 100  # of a message; the student's own lines are not wrapped


@dataclass(frozen=True)
class Verdict:
    """The result of a check.

    outcome: one of OUTCOMES
    misconception: the name of the mistake that explains the answer, or None; several names are joined by "and"
    message: the text for the student; share: the fraction of cases that are right
    core: whether all core cases are right: the answer is right for the lecture, though extended cases may fail
    seed: check(name, answer, seed=verdict.seed) repeats the check with the same inputs
    line: of the student's file, where one edit makes the answer right, or None; repair: this line after the edit
    """

    exercise: str
    outcome: str
    message: str
    misconception: str | None = None
    share: float = 0.0
    seed: int | None = None
    core: bool = False
    line: int | None = None
    repair: str = ""

    @property
    def passed(self):
        return self.outcome == "passed"

    def __repr__(self):
        return f"<{self.exercise}: {self.outcome}{f' ({self.misconception})' if self.misconception else ''}>"


class Trials:
    """The cases of an exercise, drawn from a seed, with the results of the reference and of the wrong variants.

    left: the work that may still be done for a verdict, by all searches together, in units of `work_of`; an answer that
    was judged before changes nothing: what it made known is paid for again
    """

    DRAWS = 3  # of every case, with different sizes and numbers
    WORK, OF_A_VARIANT = 4_000_000, 5_000

    def __init__(self, exercise, seed):
        self.exercise, self.seed = exercise, seed
        self._of_variant = {}
        self.begin()
        self.cases = [
            case for child in np.random.SeedSequence(seed).spawn(self.DRAWS)
            for case in exercise.cases(np.random.default_rng(child))
        ]  # fmt: skip
        self.cases += _with_other_numbers(self.cases[0])
        self.cases.sort(key=lambda case: bool(case.raises))  # at the end: they have no results to explain

    @cached_property
    def expected(self):
        """The right results of every case."""
        return [self.results(case, tried) for case, tried in zip(self.cases, self._of_reference, strict=True)]

    @cached_property
    def shares(self):
        """Whether the reference's results share memory with an argument, for every case."""
        return [tried.shares for tried in self._of_reference]

    @cached_property
    def _of_reference(self):
        return [attempt(self.exercise, self.exercise.reference, case) for case in self.cases]

    def begin(self):
        """Before another verdict."""
        self.left, self._paid = self.WORK, set()

    def most(self, trials):
        """At most this number of trials, fewer if a call of the exercise is so long that little work is left."""
        return min(trials, max(FEWEST, self.left // (self._work + self.OF_A_VARIANT)))

    @property
    def beside(self):
        """The work that may be done beside trying every known mistake, in two calls each."""
        return max(0, self.left - len(self.exercise.mistakes) * (2 * self._work + self.OF_A_VARIANT))

    @property
    def least(self):
        """The work that one more search must leave; any may make a few trials."""
        return min(0, self.left - FEWEST * self._work)

    @cached_property
    def _work(self):
        case, answer = self.cases[0], self.exercise.variant()
        attempt(self.exercise, answer, case, is_trial=True)  # what it remembers for the next time
        return work_of(lambda: self.results(case, attempt(self.exercise, answer, case, is_trial=True)), case)

    @cached_property
    def ignored(self):
        """{name of a mistake: Ignored} for every argument that an answer may leave unused."""
        return ignored_arguments(self.exercise, self.cases)

    def compatible(self, mistakes):
        """Whether these mistakes can be made together."""
        return self.exercise.compatible([name for name in mistakes if name not in self.ignored])

    def variant_on(self, mistakes, number):
        """The results of a wrong variant on one case, or None, and its attempt."""
        key = mistakes, number = frozenset(mistakes), number
        left = self.left
        if key not in self._of_variant:
            try:
                answer = self.exercise.variant([name for name in mistakes if name not in self.ignored])
                self._of_variant[key] = self.results_of(answer, number, mistakes)
            except SyntaxError as error:  # two rewrites beside each other may make no code
                self._of_variant[key] = None, Attempt(crash=crash_of(error))
        self.left = left
        if key not in self._paid:
            self.left -= self._work + self.OF_A_VARIANT * (mistakes not in self._paid)
            self._paid |= {key, mistakes}
        return self._of_variant[key]

    def results_of(self, answer, number, mistakes=()):
        """An answer's results on one case, or None, and its attempt, without the arguments that mistakes ignore."""
        case = called = self.cases[number]
        for name in mistakes:
            called = self.ignored[name].applied(called) if name in self.ignored else called
        self.left -= self._work
        tried = attempt(self.exercise, answer, called, is_trial=True)
        return self.results(case, tried), tried

    def results(self, case, tried):
        """The attempt's output as one array for each result, or None if it has no such output."""
        return None if tried.crash else results_and_problem(self.exercise, case, tried.output)[0]


def _with_other_numbers(case):
    """[the case with the rows of its first array in reverse order]: other numbers of the same shapes, for an answer
    that remembers what it returned for a shape. [] for a case without such an array."""
    arguments = list(case.arguments)
    for i, array in enumerate(arguments):
        if isinstance(array, np.ndarray) and array.ndim and not np.array_equal(array, array[::-1]):
            arguments[i] = array[::-1].copy()
            return [replace(case, arguments=tuple(arguments))]
    return []


def findings(trials, attempts):
    """A Finding for every attempt at the cases of the trials."""
    found, attempts = [], _with_rules_of_all_calls(attempts)
    for case, tried, expected, shares in zip(trials.cases, attempts, trials.expected, trials.shares, strict=True):
        results = trials.results(case, tried)
        found.append(Finding(trials.exercise, case, tried, results, expected, shares, tuple(found)))
    if any(finding.wrong != [] for finding in found):
        for finding in found:
            finding.shares = finding.tried.shares  # only an answer with the right numbers is asked for its memory
    return found


def judge(trials, attempts, pointed=None):
    """The verdict on an answer, from its attempts at all cases of the trials, and what is known about its lines, a
    Pointed or None."""
    exercise, found = trials.exercise, findings(trials, attempts)
    place, suspects = (pointed.place, pointed.suspects) if pointed else (None, ())
    failed = [finding for finding in found if not finding.right]
    if not failed:
        return Verdict(exercise.name, "passed", f"{exercise.name}: right.", share=1.0, seed=trials.seed, core=True)
    core = all(finding.case.extended for finding in failed)
    first = failed[0] if core else next(finding for finding in failed if not finding.case.extended)
    crash = first.tried.crash
    if crash and crash.not_started and first is found[0]:
        return Verdict(exercise.name, "not started", _not_started(exercise, crash), seed=trials.seed)
    crashes = crash and not first.case.raises  # a call that must raise may crash in the same way
    broken = _broken_contracts([f for f in failed if not (crashes and f.case.raises and f.tried.crash)])
    only_rules = all(finding.wrong == [] for finding in failed)  # the numbers are right
    if only_rules:
        misconception, texts, behind = " and ".join(broken), list(broken.values()), []
        summary, trace = "The results are right, but the function breaks a rule.", ""
        where = "" if "" in _labels(failed) else f" The plain case is right; it fails with {cases_of(_labels(failed))}."
    else:
        explained = [finding for finding in found if not finding.case.raises]
        names, texts, behind, where = explain(trials, explained, place)
        suspects = _lines_of(names, pointed) if pointed and not place else ()
        trials.begin()
        texts += [f"Also: {text}" for name, text in broken.items() if name != SHARED]
        misconception = " and ".join(names) or " and ".join(broken) or (place.kind if place else None)
        summary, trace = first.fact({i for finding in found for i in finding.wrong or ()})
    if core:
        lead = f"right for the lecture; still to do: {'; '.join(_labels(failed))}. {summary}"
    else:
        lead = f"{'' if only_rules else first.outcome + '. '}{summary}{where}"
    message = [_filled(f"{exercise.name}: {lead}")]
    message += [trace] if trace else []
    message += [_filled(text) for text in texts if text]
    if place:
        message += _shown(place, "the results" if broken and not only_rules else "it")
    message += [_filled(text) for text in behind] + [suspect.text for suspect in suspects]
    line = place.line if place else suspects[0].node.lineno if suspects else None
    share = 1 - len(_labels(failed)) / len(_labels(found))
    return Verdict(
        exercise.name, first.outcome, "\n".join(message), misconception, share, trials.seed, core,
        line, place.repair if place else "",
    )  # fmt: skip


def _lines_of(names, pointed):
    """The Suspects to show beside the texts of mistakes: those where the values of these mistakes first occur."""
    listed = [name for name in names if name in pointed.sides.trials.exercise.mistakes] if pointed.sides else []
    if not listed:
        return pointed.suspects
    try:
        with unheard(), guarded(), without_huge_arrays(), np.errstate(all="ignore"):
            return suspects_of(pointed.sides, listed, pointed.suspects)
    except Exception:  # what is read raises
        return pointed.suspects


def _shown(place, what):
    """The lines of a Place, with what is proved of them."""
    right = f"{what} right{' for the lecture' if place.after else ''}"
    if not place.also:
        return [f"One change in line {place.line} makes {right}:", place.shown]
    places = [place]
    while places[-1].also:
        places.append(places[-1].also)
    lines = sorted({part.line for part in places})
    if len(lines) == 2 == len(places):
        one, other = f"Two changes make {right}, one in line {place.line}:", f"and one in line {place.also.line}:"
        return [one, place.shown, other, place.also.shown]
    where = f"lines {listed(map(str, lines))}" if len(lines) > 1 else f"line {lines[0]}"
    return [f"{('Two', 'Several')[len(places) > 2]} changes in {where} make {right}:", *(part.shown for part in places)]


def _filled(text):
    return text if "\n" in text else fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _with_rules_of_all_calls(attempts):
    """The attempts, without "rng not used" if a call of the answer did use it: not every call needs random numbers."""
    if all(tried.crash or "rng not used" in tried.broken for tried in attempts):
        return attempts
    return [replace(t, broken=tuple(name for name in t.broken if name != "rng not used")) for t in attempts]


def _not_started(exercise, crash):
    if crash.where in exercise.parts:
        return f"{exercise.name}: not started: its {crash.where} is not written yet."
    if crash.where and crash.where not in (exercise.name, "<lambda>"):
        return f"{exercise.name}: not started: it calls {crash.where}, which is not written yet."
    return f"{exercise.name}: not started."


def _labels(findings):
    return list(dict.fromkeys(finding.case.label for finding in findings))


_FROM_RNG = " Draw from `rng` alone."


def _broken_contracts(failed):
    """{name: text} of the rules that an answer breaks although its numbers may be right."""
    broken = {}
    if any(finding.tried.changed for finding in failed):
        names = list(dict.fromkeys(name for finding in failed for name in finding.tried.changed))
        broken[CHANGED] = (
            f"It changes {' and '.join(names)}, but the caller still needs the old values. `x -= …`, `x *= …`, "
            "`x[…] = …` and the methods of a list write into the input. Make a new array or list; of lists in a list, "
            "list(…) makes only the outer one new."
        )
    if any(finding.other_dtype for finding in failed):
        said = next(finding.other_dtype for finding in failed if finding.other_dtype)
        broken[OTHER_DTYPE] = f"{said} The numbers lose digits, or do not fit to those of the caller."
    for name, text in RULES.items():
        if any(name in finding.tried.broken for finding in failed):
            has_rng = "rng" in signature(failed[0].exercise.reference).parameters
            broken[name] = text if has_rng else text.replace(_FROM_RNG, "")
    shared = [finding.memory for finding in failed if finding.memory]
    if shared and CHANGED not in broken:
        broken[SHARED] = shared[0]
    refused = {}
    for finding in failed:
        if finding.not_refused:
            refused.setdefault(finding.not_refused, []).extend(_labels([finding]))
    if refused:
        said = (f"With {cases_of(list(dict.fromkeys(labels)))}: {text}" for text, labels in refused.items())
        broken[NOT_REFUSED] = " ".join(said)
    return broken


class Finding:
    """One case: the expected and the actual results.

    shares: whether the right results share memory with an argument; before: the findings of the earlier cases
    """

    def __init__(self, exercise, case, tried, results, expected, shares=None, before=()):
        self.exercise, self.case, self.tried, self.results, self.expected = exercise, case, tried, results, expected
        self.shares, self.before = shares, before

    @cached_property
    def not_refused(self):
        """A sentence on a call that must raise an exception and does not, or ""."""
        if not self.case.raises or (self.tried.crash and self.tried.crash.kind == self.case.raises):
            return ""
        got = f"raised {self.tried.crash.kind}" if self.tried.crash else "returned a result"
        return f"it must raise {self.case.raises}, as its docstring says, but it {got}."

    @cached_property
    def wrong(self):
        """The indices of the wrong results, or None if there are no results."""
        if self.case.raises:
            return []
        if self.results is None:
            return None
        pairs = zip(self.results, self.expected, strict=True)
        return [i for i, pair in enumerate(pairs) if not close(*pair)]

    @cached_property
    def other_dtype(self):
        """A sentence on a result whose dtype is not the one that the call asks for, or ""."""
        wanted = self.case.options.get("dtype")
        if self.results is None or self.case.raises or self.exercise.drive is not call:
            return ""
        for result, array, expected in zip(self.exercise.results, self.results, self.expected, strict=True):
            if wanted is not None and array.dtype != wanted:
                return f"{result.name} must have dtype {np.dtype(wanted)}, got {array.dtype}."
            if array.dtype.kind == expected.dtype.kind == "f" and array.dtype.itemsize < expected.dtype.itemsize:
                return f"{result.name} must have dtype {expected.dtype}, that of the arguments, got {array.dtype}."
        return ""

    @cached_property
    def memory(self):
        """A sentence on a result that is no view though the docstring promises one, or shares memory though it must
        not, or ""."""
        if self.exercise.drive is not call or self.case.raises or self.tried.shares in (None, self.shares):
            return ""
        promised = "a view of" in (self.exercise.reference.__doc__ or "")
        if promised and self.shares:
            return "The result must be a view of its argument, as the docstring says: numbers are not copied."
        if promised or self.shares:
            return ""
        return "The result shares its memory with an argument, so a change of one changes the other. Make a new array."

    @property
    def right(self):
        return self.wrong == [] and not (
            self.tried.changed or self.tried.broken or self.other_dtype or self.memory or self.not_refused
        )

    @property
    def _worst(self):
        """The result to report: the first with a wrong shape, or else the first wrong one."""
        shapes = [i for i in self.wrong if self.results[i].shape != self.expected[i].shape]
        return (shapes or self.wrong)[0]

    @cached_property
    def outcome(self):
        if self.tried.crash:
            return "crashed"
        if self.wrong is None:
            return "wrong shape"
        if not self.wrong:
            return "wrong value"
        i = self._worst
        if self.results[i].shape != self.expected[i].shape:
            return "wrong shape"
        return "wrong gradient" if self.exercise.is_gradient(self.exercise.results[i]) else "wrong value"

    def fact(self, wrong_somewhere=()):
        """A sentence on the difference between actual and expected, and after a crash the student's lines.

        wrong_somewhere: the indices of the results that are wrong in any case, which are not called right
        """
        if self.tried.crash:
            crash = self.tried.crash
            text = crash.text.partition("\n")[0]
            return f"{crash.kind}: {text}".removesuffix(": ").rstrip(".") + ".", crash.trace
        if self.wrong is None:
            return wrong_structure(self.exercise, self.case, self.tried.output), ""
        if not self.wrong:
            return self.other_dtype, ""
        i = self._worst
        given = argument_names(self.exercise) if self.exercise.drive is call else ()

        def named(wrong):
            names = [self.exercise.results[j].name for j in wrong]
            return listed(f"the returned {name}" if name in given else name for name in names)

        compared = [i for i, value in enumerate(self.expected) if value.size and np.any(value)]
        right = [self.exercise.results[i].name for i in compared if i not in {*self.wrong, *wrong_somewhere}]
        also = f" ({', '.join(right)} right)" if right and not self.case.is_narrow else ""
        actual, expected = self.results[i], self.expected[i]
        if actual.shape != expected.shape:
            letters = self.draw(i).letters
            comma = "," * (len(letters) == 1)
            axes = "" if any(letter.startswith("axis") for letter in letters) else f"({', '.join(letters)}{comma}) = "
            name = subject(self.exercise.results[i].name)
            if not actual.size and expected.size:
                return f"{name} is missing or empty.{also}", ""
            if self.exercise.results[i].name in given:
                name = f"The returned {name}"
            wanted = f"{axes if letters else ''}{expected.shape}"
            others = [j for j in self.wrong if j != i]
            also += f" Also wrong: {named(others)}." if others else ""
            return f"{name} must have the shape {wanted}, got {actual.shape}.{also}", ""
        elsewhere = listed(
            self.exercise.results[i].name for i in sorted(wrong_somewhere) if i not in self.wrong and i in compared
        )
        elsewhere = f", and in other cases {elsewhere}" if elsewhere else ""
        return f"Wrong: {named(self.wrong)}{elsewhere}{also}.", ""

    def draw(self, i):
        """Result i next to the right one, for a description."""
        results, arguments = self.exercise.results, self.arguments
        earlier = [before for before in self.before if before.wrong is not None and i not in before.wrong]
        names = [result.name for result in results]
        return Draw(
            results[i].name,
            results[i].axes,
            self.results[i],
            self.expected[i],
            self.case.sizes,
            {name: value for name, value in arguments.items() if isinstance(value, np.ndarray) and value.ndim},
            {name: float(v) for name, v in arguments.items() if isinstance(v, int | float) and not isinstance(v, bool)},
            dict(zip(names, self.expected, strict=True)),
            dict(zip(names, self.results, strict=True)),
            tuple(before.results[i] for before in earlier),
            tuple(before.results[i] for before in earlier if self._has_other_inputs(before)),
            self.exercise.view is not None,
        )

    def _has_other_inputs(self, before):
        """Whether an earlier case has other arrays; if it has the same, an equal result says nothing."""
        return not all(
            np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
            for a, b in zip(*(arrays_of(finding.case) for finding in (self, before)), strict=False)
        )

    @property
    def arguments(self):
        return dict(zip(argument_names(self.exercise), self.case.arguments, strict=False)) | self.case.options

    def description(self):
        """The description of a crash or of an output of the wrong kind."""
        if self.tried.crash:
            return about_crash(self.tried.crash, self.case, self.arguments)
        return about_structure(self.exercise, self.tried.output, self.expected)
