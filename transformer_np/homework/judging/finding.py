"""What an answer gives in one case, next to what is right, and the rules that it breaks."""

import re
from dataclasses import replace
from functools import cached_property
from inspect import signature

import numpy as np

from ..exercise import call
from .attempt import RULES, argument_names, arrays_of, given
from .compare import close, results_and_problem
from .describe import Draw, about_crash, about_structure
from .words import cases_of, listed, subject


def findings(trials, attempts):
    """A Finding for every attempt at the cases of the trials, with which a verdict begins."""
    trials.begin()
    found, attempts = [], _with_rules_of_all_calls(attempts)
    for case, tried, expected, shares in zip(trials.cases, attempts, trials.expected, trials.shares, strict=True):
        results = trials.results(case, tried)
        found.append(Finding(trials.exercise, case, tried, results, expected, shares, tuple(found)))
    if any(finding.wrong != [] for finding in found):
        for finding in found:
            finding.shares = finding.tried.shares  # only an answer with the right numbers is asked for its memory
    return found


def _with_rules_of_all_calls(attempts):
    """The attempts, without "rng not used" if a call of the answer did use it: not every call needs random numbers."""
    if all(tried.crash or "rng not used" in tried.broken for tried in attempts):
        return attempts
    return [replace(t, broken=tuple(name for name in t.broken if name != "rng not used")) for t in attempts]


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
            return results_and_problem(self.exercise, self.case, self.tried.output)[1], ""
        if not self.wrong:
            return self.other_dtype, ""
        i = self._worst
        own = argument_names(self.exercise) if self.exercise.drive is call else ()

        def named(wrong):
            names = [self.exercise.results[j].name for j in wrong]
            return listed(f"the returned {name}" if name in own else name for name in names)

        compared = [i for i, value in enumerate(self.expected) if value.size and np.any(value)]
        right = [self.exercise.results[i].name for i in compared if i not in {*self.wrong, *wrong_somewhere}]
        also = f" ({', '.join(right)} right)" if right and not self.case.is_narrow else ""
        actual, expected = self.results[i], self.expected[i]
        if actual.shape != expected.shape:
            letters = self.draw(i).letters
            comma = "," * (len(letters) == 1)
            axes = "" if any(letter.startswith("axis") for letter in letters) else f"({', '.join(letters)}{comma}) = "
            name = self.exercise.results[i].name
            if not actual.size and expected.size:
                return f"{subject(name)} is missing or empty.{also}", ""
            wanted = f"{axes if letters else ''}{expected.shape}"
            others = [j for j in self.wrong if j != i]
            also += f" Also wrong: {named(others)}." if others else ""
            return f"{subject(name, own)} must have the shape {wanted}, got {actual.shape}.{also}", ""
        elsewhere = listed(
            self.exercise.results[i].name for i in sorted(wrong_somewhere) if i not in self.wrong and i in compared
        )
        elsewhere = f", and in other cases {elsewhere}" if elsewhere else ""
        return f"Wrong: {named(self.wrong)}{elsewhere}{also}.", ""

    @property
    def failure(self):
        """What distinguishes a call without results from others: the student's line and the kind of an exception, or
        what is returned."""
        crash = self.tried.crash
        return (crash.trace.rpartition(", line ")[2], crash.kind) if crash else type(self.tried.output).__name__

    def draw(self, i):
        """Result i next to the right one, for a description."""
        results, arguments = self.exercise.results, self.arguments
        earlier = [before for before in self.before if before.wrong is not None and i not in before.wrong]
        earlier = [before.results[i] for before in earlier if self._has_other_inputs(before)]
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
            tuple(earlier),
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
        return given(self.exercise, self.case)

    @property
    def _left_out(self):
        """{name: None} of the arguments that are None by default and in the line that raised an exception."""
        line = self.tried.crash.trace.rpartition(", line ")[2]
        parameters = signature(self.exercise.reference).parameters.values()
        return {p.name: None for p in parameters if p.default is None and re.search(rf"\b{p.name}\b", line)}

    def description(self):
        """The description of a crash or of an output of the wrong kind."""
        if self.tried.crash:
            return about_crash(self.tried.crash, self.case, self._left_out | self.arguments)
        return about_structure(self.exercise, self.tried.output, self.expected)


# --- rules ------------------------------------------------------------------------------------------------------------


CHANGED = "changes its input"
OTHER_DTYPE = "another dtype"
SHARED = "copy or view"
NOT_REFUSED = "does not raise the exception"


def broken_rules(failed):
    """{name: text} of the rules that these Findings break."""
    broken = {}
    if names := dict.fromkeys(name for finding in failed for name in finding.tried.changed):
        broken[CHANGED] = (
            f"It changes {' and '.join(names)}, but the caller still needs the old values. `x -= …`, `x *= …`, "
            "`x[…] = …` and the methods of a list write into the input, and `y = x` makes no copy of it. Make a new "
            "array or list; of lists in a list, list(…) makes only the outer one new."
        )
    if other := next((finding.other_dtype for finding in failed if finding.other_dtype), ""):
        broken[OTHER_DTYPE] = (
            f"{other} The caller relies on it: a smaller dtype loses digits, a larger one makes what follows slower."
        )
    has_rng = bool(failed) and "rng" in signature(failed[0].exercise.reference).parameters
    for name, text in RULES.items():
        if any(name in finding.tried.broken for finding in failed):
            broken[name] = text if has_rng else text.replace(" Draw from `rng` alone.", "")
    shared = next((finding.memory for finding in failed if finding.memory), "")
    if shared and CHANGED not in broken:
        broken[SHARED] = shared
    refused = {}
    for finding in failed:
        if finding.not_refused:
            refused.setdefault(finding.not_refused, {})[finding.case.label] = None
    if refused:
        broken[NOT_REFUSED] = " ".join(f"With {cases_of(list(labels))}: {text}" for text, labels in refused.items())
    return broken
