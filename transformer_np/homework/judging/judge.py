"""From an answer's outputs to a verdict: its outcome and its explanation."""

from dataclasses import dataclass, replace
from inspect import signature
from textwrap import fill

import numpy as np

from .attempt import RULES, guarded, unheard, warn_of
from .example import smallest_call
from .explain import explain
from .family import without_huge_arrays
from .finding import findings
from .place import INVENTED
from .seen import suspects_of
from .truth import cases_of
from .unread import about_unread, labels_of_unread
from .words import listed

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
    core_share: that of the core cases, None if it is not known
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
    core_share: float | None = None

    @property
    def passed(self):
        return self.outcome == "passed"

    def __repr__(self):
        return f"<{self.exercise}: {self.outcome}{f' ({self.misconception})' if self.misconception else ''}>"


def judge(trials, attempts, pointed=None):
    """The verdict on an answer, from its attempts at all cases of the trials, and what is known about its lines, a
    Pointed or None."""
    exercise, found = trials.exercise, findings(trials, attempts)
    place, suspects = (pointed.place, pointed.suspects) if pointed else (None, ())
    failed = [finding for finding in found if not finding.right]
    if not failed:
        said, seed = f"{exercise.name}: right.", trials.seed
        return Verdict(exercise.name, "passed", said, share=1.0, seed=seed, core=True, core_share=1.0)
    left_out = [finding for of in trials.unread.values() for finding in of.values()]
    labels = _labels([*failed, *left_out])
    core = all(finding.case.extended for finding in failed)
    first = failed[0] if core else next(finding for finding in failed if not finding.case.extended)
    crash = first.tried.crash
    if crash and crash.not_started and first is found[0]:
        return Verdict(exercise.name, "not started", _not_started(exercise, crash), seed=trials.seed)
    crashes = crash and not first.case.raises  # a call that must raise may crash in the same way
    broken = _broken_contracts([f for f in failed if not (crashes and f.case.raises and f.tried.crash)])
    only_rules = all(finding.wrong == [] for finding in failed)  # the numbers are right
    if only_rules:
        known, texts, behind, names = list(broken), list(broken.values()), [], []
        summary, trace = "The results are right, but the function breaks a rule.", ""
        where = "" if "" in _labels(failed) else f" The plain case is right; it fails with {cases_of(_labels(failed))}."
    else:
        explained = [finding for finding in found if not finding.case.raises]
        try:
            names, texts, behind, where = explain(trials, explained, place, pointed.behind if pointed else ())
        except Exception as error:  # what is read raises
            warn_of(error, exercise.name)
            names, texts, behind, where = [], [smallest_call(found)], [], ""
        suspects = _lines_of(names, pointed) if pointed and not place else ()
        if place and "nan_to_num" in place.repair and any(name in exercise.mistakes for name in names):
            place = None  # which only hides it
        trials.begin()
        texts += [f"Also: {text}" for name, text in broken.items() if name != SHARED]
        unread = labels_of_unread(trials, tuple(name for name in names if name in exercise.mistakes))
        texts += about_unread(unread)
        known = [*(names or broken or ([place.kind] if place else [])), *(f"{name} not used" for name in unread)]
        summary, trace = first.fact({i for finding in (*found, *left_out) for i in finding.wrong or ()})
    if core:
        lead = f"right for the lecture; still to do: {'; '.join(labels)}. {summary}"
    else:
        lead = f"{'' if only_rules else first.outcome + '. '}{summary}{where}"
    message = [_filled(f"{exercise.name}: {lead}")]
    change, at = pointed.change if pointed and CHANGED in broken else ("", None)
    if change and not (place and place.line == at):
        n = next(n for n, text in enumerate(texts) if text.endswith(broken[CHANGED]))
        texts.insert(n + 1, f"Line {at} changes it:\n{change}")
    message += [trace] if trace else []
    message += [_filled(text) for text in texts if text]
    if place and place.kind in INVENTED and sum(name in exercise.mistakes for name in names) > 1:
        place = replace(place, repair="")
        message += [f"Look at line {place.line}:", place.shown]
    elif place:
        message += _shown(place, "the rest" if trials.unread else "the results" if broken and not only_rules else "it")
    message += [_filled(text) for text in behind] + [suspect.text for suspect in suspects]
    line = place.line if place else suspects[0].node.lineno if suspects else at
    of_core = [[finding for finding in of if not finding.case.extended] for of in (found, left_out)]
    share, core_share = _share(found, left_out), _share(*of_core)
    return Verdict(
        exercise.name, first.outcome, "\n".join(message), " and ".join(known) or None, share, trials.seed, core,
        line, place.repair if place else "", core_share,
    )  # fmt: skip


def _share(found, left_out):
    """The fraction of the cases that are right, 1 of none. left_out: wrong ones for parameters that nothing reads"""
    wrong = _labels([*(finding for finding in found if not finding.right), *left_out])
    return 1 - len(wrong) / max(1, len({*_labels(found), *wrong}))


def _lines_of(names, pointed):
    """The Suspects to show beside the texts of mistakes: those where the values of these mistakes first occur, but none
    that runs under a condition on an argument that is not used, for it may be right where it should not run, and none
    of a method that the student need not write."""
    sides, unused = pointed.sides, {name.removesuffix(" not used") for name in names}
    listed = [name for name in names if name in sides.trials.exercise.mistakes] if sides else []
    suspects = pointed.suspects if listed or not names else [one for one in pointed.suspects if not one.reads]
    try:
        if listed:
            with unheard(), guarded(), without_huge_arrays(sides.trials.cases), np.errstate(all="ignore"):
                suspects = suspects_of(sides, listed, pointed.suspects)
    except Exception as error:
        warn_of(error, names[0])
    suspects = [suspect for suspect in suspects if not unused & sides.asked_around(suspect.node)]
    return [suspect for suspect in suspects if not (listed and sides.is_given(suspect.node))]


def _shown(place, what):
    """The lines of a Place, with what is proved of them."""
    right = f"{what} right{' for the lecture' if place.after else ''}"
    if place.before:
        shown = dict(sorted([*place.before, (place.line, place.shown)]))
        return [f"Look at lines {listed(map(str, shown))}, where the first wrong value is made:", *shown.values()]
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
    many = ("Two", "Several")[len(places) > 2]
    return [f"{many} changes in {where} make {right}:", *dict.fromkeys(part.shown for part in places)]


def _filled(text):
    return text if "\n" in text else fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


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
            "`x[…] = …` and the methods of a list write into the input, and `y = x` makes no copy of it. Make a new "
            "array or list; of lists in a list, list(…) makes only the outer one new."
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
