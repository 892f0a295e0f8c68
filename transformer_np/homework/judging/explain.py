"""What a student is told of the mistakes in a wrong answer: which texts, in which order, and of which cases."""

from dataclasses import dataclass
from inspect import signature

import numpy as np

from ..exercise import call
from .compare import close
from .cover import CHANCE, MOST, NOTHING, Cells, Cover, unwarned
from .edit import MOVE
from .hypothesis import Hypothesis
from .words import WIDTH, cases_of, listed, subject, with_cases

_NUMBERS = 8  # of an array in a message
_PADDING = -1  # fills up the rows of ids of different lengths in a view


@dataclass(frozen=True)
class Explanation:
    """names: of the mistakes; texts: about them; where: a sentence on the cases that are right, or none"""

    names: list
    texts: list
    where: str = ""


def explain(trials, found, place=None):
    """The Explanation of a wrong answer.

    found: a Finding for each case, at least one of them not right; place: where edits make the answer right
    """
    with unwarned():
        cells = Cells(trials, found)
        is_one = bool(place) and place.changes == 1
        cover = Cover(cells, is_alone=is_one)  # one edit tells more than pairs of mistakes would
        told = _Told(cells, cover)
        told.mistakes()
        described, rest = told.descriptions(), told.rest()
        if is_one and rest and not place.is_core:
            told.said = []  # the edit gives all numbers, and the mistakes that resemble it some
        if place and place.second:
            text = f"There is a second mistake: {place.second[:1].lower()}{place.second[1:]}"
            rest = [(None, text)] if rest and len(cover.picked) == 1 else []
        told.said += [] if is_one else rest
        told.crashes()
        told.said += described
        if not told.texts and not told.names and not place and cells.first_failed.results is not None:
            told.say(None, smallest_call(found))
        texts, names = told.texts[: MOST + 1], told.names
        if place and place.kind != MOVE and (not texts or _says_more(place, cells, cover)):  # whose line says it
            texts.append(place.edit.text)
        return Explanation(names, texts, told.where())


class _Told:
    """said: [(name of a mistake or None, text)], in the order in which they are read"""

    def __init__(self, cells, cover):
        self.cells, self.cover, self.said = cells, cover, []
        self.label = cells.first_failed.case.label
        self.left = cells.wrong - cover.explained

    @property
    def names(self):
        return list(dict.fromkeys(name for name, _ in self.said if name))

    @property
    def texts(self):
        texts = list(dict.fromkeys(text for _, text in self.said if text))
        return [text for text in texts if not any(text != other and text.endswith(other) for other in texts)]

    def say(self, name, text):
        self.said.append((name, text))

    def mistakes(self):
        """The hypotheses that are believed, each with the cases that show it, unless that is the plain case."""
        cells, cover = self.cells, self.cover
        for h in cover.picked:
            alone = cover.explained - cells.explained([other for other in cover.picked if other is not h])
            labels = [label for label in cells.labels if self._shows(label, cells.covered((h,)), alone)]
            is_here = not labels or (self.label in labels and (not self.label or len(cover.picked) == 1))
            self.say(h.name, h.text if is_here else with_cases(h.text, cases_of(labels)))

    def _shows(self, label, covered, alone):
        """Whether a case shows a hypothesis: it covers all that is explained there, or what no other one does."""
        here = {cell for cell in self.cover.explained if cell[1] == label}
        return bool(here) and (here <= covered or bool(here & alone))

    def crashes(self):
        """What is known of calls without results that no mistake explains, one of each line and kind; what fails in the
        first failing case comes first."""
        cells, told = self.cells, set()
        for finding in cells.found:
            label = finding.case.label
            if finding.results is not None or (NOTHING, label) not in self.left or {label, finding.failure} & told:
                continue
            description = finding.description() if not told else Hypothesis(None, "")
            if label == self.label:
                self.said.insert(0, (description.name, description.text))
            else:
                fact = f"{finding.fact()[0]} {description.text}".rstrip()
                self.say(description.name, f"{f'With {label}' if label else 'In the plain case'}: {fact}")
            told |= {label, finding.failure}

    def descriptions(self):
        """[(name, text)] of what explains every number of a result that no mistake explains in the first failing
        case."""
        cells, said = self.cells, []
        for i in sorted(i for i, label in self.left if label == self.label and i != NOTHING):
            one = cells.exactly((i, self.label))
            if one is None or (one.name in CHANCE and self.names):
                continue
            others = {label for j, label in cells.wrong if j == i and label != self.label}
            found = {label: cells.exactly((i, label)) for label in others}
            holds = {x for x, other in found.items() if other and other.name.split()[:2] == one.name.split()[:2]}
            case = f"With {self.label}: " if self.label else "In the plain case: "
            is_for_all = holds == others and (self.label or not self._is_right_elsewhere(i))
            said.append((one.name, one.text if is_for_all else f"{case}{one.text}"))
            self.left -= {(i, label) for label in {self.label, *holds}}
        return said

    def _is_right_elsewhere(self, i):
        """Whether a result is right in all draws of a case that tells something of it: not all zeros, which are zeros
        with a factor too."""
        found = self.cells.found

        def tells(f):
            is_right = f.wrong is not None and i not in f.wrong and not f.case.is_narrow
            return is_right and np.any(f.expected[i][np.isfinite(f.expected[i])])

        return any(all(tells(found[n]) for n in numbers) for numbers in self.cells.labels.values())

    def rest(self):
        """[(None, a sentence on the results of the first failing case that the named mistakes do not give)], or []; in
        another case the student's mistake may go further than the listed one."""
        here = [cell for cell in self.left if cell[1] == self.label and cell[0] != NOTHING]
        left = sorted(i for i, label in here if not self.cells.described((i, label))) if self.cover.picked else []
        results = self.cells.trials.exercise.results
        what = listed(subject(results[i].name) for i in left).replace("The ", "the ")
        what += f" with {self.label}" if self.label else ""
        this = "this one alone gives" if len(self.cover.picked) == 1 else "these alone give"
        return [(None, f"There may be another mistake: {this} other numbers for {what}.")] if left else []

    def where(self):
        """A sentence on the cases that are right although the named mistakes are wrong in them, or ""."""
        cells = self.cells
        findings = {label: [cells.found[n] for n in numbers] for label, numbers in cells.labels.items()}
        right = [label for label, some in findings.items() if all(f.right for f in some)]
        right = [label for label in right if not all(f.case.is_narrow for f in findings[label])]
        if "" in right or not right:
            return ""
        if not cells.first_failed.tried.crash:  # a crash happens in each case that has its cause
            picked = self.cover.picked
            if not picked or not cells.compatible(picked):
                return ""
            if not any(all(cells.changed(tuple(picked), n) for n in cells.labels[label]) for label in right):
                return ""
        case, are = ("cases", "are") if len(right) > 1 else ("case", "is")
        return f" Only the {case} with {cases_of(right)} {are} right."


def _says_more(place, cells, cover):
    """Whether the line says more than the texts: of a crash that no mistake explains."""
    is_rule = place.edit.text.startswith("The results are right")
    return bool(cells.first_failed.tried.crash) and not cover.picked and not is_rule


# --- what is told when nothing is known about a mistake ---------------------------------------------------------------


def smallest_call(found):
    """The text about the smallest failing call that returns something of the right shape, with its arguments, and the
    expected result beside the answer's; "" if there is none."""
    failing = [f for f in found if f.wrong and f.results[f.wrong[0]].shape == f.expected[f.wrong[0]].shape]
    finding = min(failing, key=_size, default=None)
    draw = finding and finding.draw(finding.wrong[0])
    if not failing or (draw.is_coded and finding.exercise.drive is not call and not np.any(draw.expected == _PADDING)):
        return ""
    output = finding.tried.output
    if isinstance(output, np.ndarray) and output.shape == draw.actual.shape and not close(output, draw.actual):
        return ""  # the exercise's view has replaced numbers that may be anything
    index = tuple(int(n) for n in np.argwhere(draw.wrong)[0])
    given, name = finding.arguments, draw.name
    calls = finding.case.arguments[0] if len(finding.case.arguments) == 1 and finding.exercise.drive is not call else ()
    if isinstance(calls, list) and len(index) == 1 and index[0] < len(calls):  # one number for each of many calls
        given = dict(zip(signature(finding.exercise.reference).parameters, calls[index[0]], strict=False))
        row = index
    else:
        row = index[:-1]
        begin = [slice(index[-1] - _NUMBERS // 2, None)] if index and index[-1] >= _NUMBERS else []
        at = [*map(str, row), *(f"{part.start}:" for part in begin)]
        name, row = f"{draw.name}[{', '.join(at)}]" if at else draw.name, (*row, *begin)
    shown = ([_written(array[row], digits) for array in (draw.expected, draw.actual)] for digits in (5, 9, 17))
    expected, got = next((two for two in shown if two[0] != two[1]), ("", ""))
    with_numbers, with_shapes = (_call(finding, given, most) for most in (_NUMBERS, 0))
    shown = with_numbers if len(with_numbers) <= 2 * WIDTH else with_shapes
    label = finding.case.label if all(f.right for f in found if not f.case.label) else ""
    label = f" ({label})" if label and label not in shown else ""
    return expected and f"In the call {shown}{label}:\n    {name} must be {expected}\n    yours is {got}"


def _size(finding):
    return sum(np.size(value) for value in finding.arguments.values() if isinstance(value, np.ndarray))


def _call(finding, given, most):
    """The call, with arrays of up to so many numbers as they are and the shapes of larger ones."""
    parts, own = [], signature(finding.exercise.reference).parameters
    for name, value in given.items():
        if name not in own and isinstance(value, bool):
            continue  # of the drive alone
        if isinstance(value, np.ndarray) and value.size > most:
            parts.append(f"{name} of shape {value.shape}")
        elif isinstance(value, np.ndarray | int | float | str | bool | None):
            parts.append(f"{name}={_written(value)}")
        elif isinstance(value, list | tuple | dict) and finding.exercise.drive is call:
            is_short = not isinstance(value, dict) and len(str(value)) <= WIDTH // 2
            parts.append(f"{name}={value}" if is_short else f"{name} of {len(value)} entries")
    return f"{finding.exercise.name}({', '.join(parts)})"


def _written(value, digits=5):
    if not isinstance(value, np.ndarray | np.generic) or not value.ndim:
        is_number = isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biuf"
        return _number(value[()], digits) if is_number else repr(value)
    value = value[value != _PADDING] if value.dtype.kind in "iu" else value
    if value.ndim > 1 and value.size <= _NUMBERS:
        return f"[{', '.join(_written(part, digits) for part in value)}]"
    shown = ", ".join(_number(n, digits) for n in value.ravel()[:_NUMBERS])
    return f"[{shown}{', …' if value.size > _NUMBERS else ''}]"


def _number(value, digits):
    return str(value) if isinstance(value, bool | np.bool_) else f"{value:.{digits}g}"
