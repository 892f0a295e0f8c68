"""From an answer's outputs to a verdict: its outcome, its explanation and its lines."""

from dataclasses import dataclass, replace
from textwrap import fill

from .crash import warn_of
from .edit import MOVE, ORDER
from .explain import Explanation, explain, smallest_call
from .finding import CHANGED, SHARED, broken_rules
from .place import Place, Pointed
from .words import WIDTH, cases_of, listed

OUTCOMES = ("passed", "not started", "crashed", "wrong shape", "wrong value", "wrong gradient")


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
    mends: what the edit makes right, in words: "it right", "the results right for the lecture"
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
    mends: str = ""

    @property
    def passed(self):
        return self.outcome == "passed"

    def __repr__(self):
        return f"<{self.exercise}: {self.outcome}{f' ({self.misconception})' if self.misconception else ''}>"


def judge(trials, found, pointed=None, order=(), is_brief=False):
    """The verdict on an answer, from its Findings in all cases of the trials, and what is known about its lines, a
    Pointed or None.

    order: its parameters in the right order, if it has another one
    is_brief: whether no mistake is looked for, which takes longest
    """
    exercise, pointed = trials.exercise, pointed or Pointed()
    if found[0].tried.not_started:
        return not_started(trials, found[0].tried)
    failed = [finding for finding in found if not finding.right]
    if not failed:
        said, seed = f"{exercise.name}: right.", trials.seed
        return Verdict(exercise.name, "passed", said, share=1.0, seed=seed, core=True, core_share=1.0)
    core = all(finding.case.extended for finding in failed)
    first = next(finding for finding in failed if core or not finding.case.extended)
    rules = broken_rules([finding for finding in failed if not _is_crash_of(first, finding)])
    if order:  # what else is said would be of the wrong arguments
        text = f"The parameters are in the wrong order: the exercise has ({', '.join(order)})."
        explanation = Explanation([ORDER], [text])
        is_shown = pointed.place and pointed.place.kind == ORDER
        lines = lines_to_show(pointed if is_shown else Pointed(), {}, [])
    elif all(finding.wrong == [] for finding in failed):
        explanation = Explanation(list(rules), list(rules.values()))
        lines = lines_to_show(pointed, rules, [])
    else:
        explanation = _unexplained(found) if is_brief else _explained(trials, found, pointed)
        lines = lines_to_show(pointed, rules, explanation.names)
        explanation = _with_rules(explanation, rules, lines)
    message = [_lead(trials, found, first, core, _labels(failed), explanation), *_told(explanation, rules, lines)]
    core_share = _share([finding for finding in found if not finding.case.extended])
    return Verdict(
        exercise.name, first.outcome, "\n".join(message), " and ".join(explanation.names) or None, _share(found),
        trials.seed, core, lines.first, lines.place.repair if lines.place else "", core_share, lines.mends,
    )  # fmt: skip


def _share(found):
    """The fraction of the cases that are right, 1 of none."""
    return 1 - len(_labels(finding for finding in found if not finding.right)) / max(1, len(_labels(found)))


def _is_crash_of(first, finding):
    """Whether a call that must raise crashes as the first failing one may: that is no broken rule."""
    return bool(first.tried.crash and not first.case.raises and finding.case.raises and finding.tried.crash)


def _explained(trials, found, pointed):
    explained = [finding for finding in found if not finding.case.raises]
    try:
        return explain(trials, explained, pointed.place)
    except Exception as error:  # what is read raises
        warn_of(error, trials.exercise.name)
        return _unexplained(found)


def _unexplained(found):
    first = next(finding for finding in found if finding.wrong != [])
    if first.tried.crash:
        described = first.description()
        return Explanation([*filter(None, [described.name])], [described.text])
    return Explanation([], [smallest_call(found)])


def _with_rules(explanation, rules, lines):
    """The Explanation with the rules that are broken too."""
    also = [f"Also: {text}" for name, text in rules.items() if name != SHARED]
    names = explanation.names or [*rules] or ([lines.place.kind] if lines.place else [])
    return replace(explanation, names=names, texts=[*explanation.texts, *also])


def _lead(trials, found, first, core, labels, explanation):
    """The beginning of a message: the outcome, what is wrong, and the cases that fail; after a crash, its lines."""
    exercise = trials.exercise
    if all(finding.wrong == [] for finding in found):
        summary, trace = "The results are right, but the function breaks a rule.", ""
    else:
        summary, trace = first.fact({i for finding in found for i in finding.wrong or ()})
        summary = f"{first.outcome}. {summary}" if not core else summary
    plain = [finding for finding in found if not finding.case.label]
    is_plain_right = plain and all(f.right for f in plain) and not all(f.case.is_narrow for f in plain)
    where = f" The plain case is right; it fails with {cases_of(labels)}." if is_plain_right else explanation.where
    lead = f"right for the lecture; still to do: {'; '.join(labels)}. {summary}" if core else f"{summary}{where}"
    return "\n".join([_filled(f"{exercise.name}: {lead}"), *([trace] if trace else [])])


def _told(explanation, rules, lines):
    """The texts of a message with the lines that they speak of."""
    told = []
    for text in filter(None, explanation.texts):
        told.append(_filled(text))
        if lines.change and CHANGED in rules and text.endswith(rules[CHANGED]):
            told.append(lines.change)
    return [*told, *lines.shown]


def _filled(text):
    return text if "\n" in text else fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def not_started(trials, tried):
    """The verdict on an answer whose attempt shows that it is not written yet."""
    exercise, text, name, called = trials.exercise, "not started", None, tried.crash.where
    if called in exercise.parts:
        text = f"{text}: its {called} is not written yet"
    elif called and called not in (exercise.name, "<lambda>"):
        text, name = f"{text}: it calls {called}, which is not written yet", f"{called} not written"
    return Verdict(exercise.name, "not started", f"{exercise.name}: {text}.", name, seed=trials.seed)


def _labels(findings):
    return list(dict.fromkeys(finding.case.label for finding in findings))


# --- the lines that a message shows -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lines:
    """place: where edits make the answer right, or None; mends: what they make right; shown: what the student reads
    first: the number of the line to look at, or None; change: the line that changes an argument, ""
    """

    place: Place | None = None
    shown: tuple = ()
    first: int | None = None
    change: str = ""
    mends: str = ""


def lines_to_show(pointed, rules, names):
    """The Lines for a wrong answer.

    pointed: a Pointed; rules: {name: text} of those that are broken; names: of the mistakes that are told
    """
    place, change = pointed.place, pointed.change if CHANGED in rules else None
    if place:
        what = "the results" if rules and names else "it"
        mends = f"{what} right{' for the lecture' if place.is_core else ''}"
        is_told = change and change.line == place.line
        return Lines(place, _of_place(place, mends), place.line, "" if is_told else _look(change), mends)
    suspects = [h for h in pointed.suspects if not change or [*h.marks] != [*change.marks]]  # which is shown by itself
    first = next((h.line for h in (*pointed.suspects, *filter(None, [change]))), None)
    return Lines(None, tuple(map(_look, suspects)), first, _look(change))


def _look(suspect):
    """The lines of a Hypothesis below its text; "" of None."""
    return "\n".join([f"{suspect.text}:", *suspect.marks.values()]) if suspect else ""


def _of_place(place, right):
    """The lines of a Place, with what is proved of them."""
    lines = [*place.marks]
    if place.kind == MOVE:
        return (f"{place.edit.text[:-1]}; that makes {right}:", *place.marks.values())
    if len(lines) == 1:
        change = {1: "One change", 2: "Two changes"}.get(place.changes, "Several changes")
        return (f"{change} in line {place.line} make{'s' * (place.changes == 1)} {right}:", *place.marks.values())
    if len(lines) == 2:
        (one, first), (other, second) = place.marks.items()
        return (f"Two changes make {right}, one in line {one}:", first, f"and one in line {other}:", second)
    return (f"Several changes in lines {listed(map(str, lines))} make {right}:", *place.marks.values())
