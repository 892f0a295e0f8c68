"""The results of an answer beside those of hypotheses: the one place that says what is true of a run.

A cell is (a result, the label of a case), or (NOTHING, label) for calls that return no results. A hypothesis covers a
wrong cell if its program gives what the answer gives in every draw of the case; it is refuted if it changes what the
answer has otherwise. A gradient of a wrong forward pass follows from it, and proves nothing.
"""

import re
import warnings
from contextlib import contextmanager
from functools import cache
from itertools import combinations

import numpy as np

from .compare import are_close, close
from .describe import describe_exactly
from .hypothesis import listed

NOTHING = -1
CHANCE = ("NaN everywhere", "all zeros", "the same number everywhere")  # what many mistakes make
_OF_EVERY_CALL = re.compile(r"\b(always|never|every call|not used|does not use|ignored?|wherever)\b")


@contextmanager
def unwarned():
    """Inside the block, no warning is raised or shown: wrong numbers overflow."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


class Cells:
    """wrong, following: wrong cells, and those of gradients that follow from a wrong forward pass
    first_failed: None if only calls that must raise fail; first: its wrong cells; labels: {label: numbers of its cases}
    tried: the runs so far; cached ones count too, so that an answer judged earlier changes nothing; joined: the number
    of those with several hypotheses
    """

    def __init__(self, trials, found):
        self.trials, self.found = trials, found
        self.joined, self.tried = 0, set()
        for name in ("agrees", "changed", "exactly"):
            setattr(self, name, cache(getattr(self, name)))
        self.first_failed = next((finding for finding in found if not finding.right), None)
        self.labels, astray = {}, {}
        exercise = trials.exercise
        gradients = {i for i, result in enumerate(exercise.results) if exercise.is_gradient(result)}
        for number, finding in enumerate(found):
            self.labels.setdefault(finding.case.label, []).append(number)
            astray.setdefault(finding.case.label, set()).update({*(finding.wrong or ())} - gradients)
        every = {
            (i, f.case.label) for f in found for i in ([NOTHING] if f.wrong is None else f.wrong) if not f.case.raises
        }
        self.following = {(i, label) for i, label in every if i in gradients and astray[label]}
        self.wrong = every - self.following
        self.first = {cell for cell in self.wrong if cell[1] == self.first_failed.case.label}
        self.mistakes = listed(trials)

    # --- running hypotheses ---------------------------------------------------------------------------------------

    def run(self, some, number):
        """The results of a program with some hypotheses on a case, or None, and its attempt."""
        some = frozenset(some)
        self.joined += len(some) > 1 and (some, number) not in self.tried
        self.tried.add((some, number))
        return self.trials.variant_on([h.name for h in some], number)

    def compatible(self, some):
        """Whether these hypotheses can be made together."""
        return self.trials.compatible([h.name for h in some])

    # --- what is true of a cell -----------------------------------------------------------------------------------

    def agrees(self, some, i, number):
        """Whether a program can be made and gives result i of a case as the answer does, or no results in the same
        way."""
        if not self.compatible(some):
            return False
        finding, (results, tried) = self.found[number], self.run(some, number)
        if finding.results is None or results is None:
            return finding.results is None and results is None and _fails_alike(finding.tried, tried)
        return i == NOTHING or close(finding.results[i], results[i])

    def covers(self, some, cell):
        """Whether a program gives what the answer gives in every draw of a cell."""
        return all(self.agrees(some, cell[0], n) for n in self.labels[cell[1]])

    def covered(self, some, cells=None):
        return {cell for cell in (self.wrong if cells is None else cells) if self.covers(some, cell)}

    def explained(self, picked):
        """The wrong cells that some of these hypotheses together cover."""
        return set().union(*map(self.covered, subsets(picked)))

    def changed(self, some, number):
        """The results of a case that some hypotheses change in a right answer: all, if it has no results with them."""
        results, expected = self.run(some, number)[0], self.found[number].expected
        return {i for i, right in enumerate(expected) if results is None or not close(results[i], right)}

    def refuted(self, one, beside=(), by_wrong=True):
        """Whether a hypothesis changes a result that the answer has otherwise, whichever of those beside it hold.

        by_wrong: whether a result that is wrong otherwise counts; it does if the hypothesis speaks of every call
        """
        is_of_all = one.name in self.trials.ignored or bool(_OF_EVERY_CALL.search(one.text))
        for number, finding in enumerate(self.found):
            if finding.results is None or finding.case.raises:
                continue
            for i in self.changed((one,), number):
                is_wrong, is_extended = i in finding.wrong, finding.case.extended
                # of another branch, in which more may be missing than this mistake, or less
                is_other = is_extended and (is_wrong or not self.first_failed.case.extended)
                if not is_of_all and (is_other or (is_wrong and not by_wrong)):
                    continue
                is_hidden = finding.results[i].shape != finding.expected[i].shape  # by another mistake
                if is_hidden or (i, finding.case.label) in self.following:
                    continue
                if not any(self.agrees((one, *some), i, number) for some in [(), *subsets(beside)]):
                    return True
        return False

    def tells_something(self, cell):
        """Whether a wrong cell has other numbers than the 0, NaN and infinity that many mistakes make by chance."""
        draws = self.draws(*cell) if cell[0] != NOTHING else []
        if any(draw.actual.shape != draw.expected.shape for draw in draws):
            return any(np.any(draw.actual) for draw in draws)
        pairs = [(draw.actual[draw.wrong], draw.expected[draw.wrong]) for draw in draws]
        return not draws or any(np.any(own[np.isfinite(own) | ~np.isfinite(right)]) for own, right in pairs)

    def exactly(self, cell):
        """The description that explains every number of a wrong cell, or None."""
        return None if cell[0] == NOTHING else describe_exactly(self.draws(*cell))

    def described(self, cell):
        """The same, but none of what many mistakes make."""
        one = self.exactly(cell)
        return None if one and one.name in CHANCE else one

    def draws(self, i, label):
        """The draws of a case in which result i is wrong."""
        return [self.found[n].draw(i) for n in self.labels[label] if i in (self.found[n].wrong or ())]


def subsets(some):
    """All sets of some hypotheses but the empty one, small ones first."""
    return [part for n in range(1, len(some) + 1) for part in combinations(some, n)]


def _fails_alike(one, other):
    """Whether two attempts without results raise the same exception, or return the same kind of value."""
    if one.crash and other.crash:
        return one.crash.is_like(other.crash)
    return not one.crash and not other.crash and _form(one.output) == _form(other.output)


def _form(output, depth=2):
    """What an output is made of: the types and lengths of its parts; a list may hold itself."""
    parts = getattr(output, "shape", None)
    if depth and isinstance(output, list | tuple):
        parts = tuple(_form(part, depth - 1) for part in output)
    return type(output).__name__, parts  # a class of a submission is another one in each case


# --- the search -------------------------------------------------------------------------------------------------------


MOST = 4  # hypotheses; readers stop after about four texts


class Cover:
    """picked: the Hypotheses that are believed; explained: the cells that they cover

    is_alone: whether only what covers a cell alone is looked for
    """

    def __init__(self, cells, is_alone=False):
        self.cells, self.is_alone, self._allowed = cells, is_alone, None
        first, number = cells.first_failed, cells.found.index(cells.first_failed)
        self._possible = [  # those that change a right result would have to be undone by another mistake
            h for h in cells.mistakes if first.results is None or cells.changed((h,), number) <= {*first.wrong}
        ]
        self.picked = self._consistent()
        if not self.picked:  # something else may be wrong beside where a hypothesis is refuted by a wrong result
            picked = self._consistent(by_wrong=False)
            explained = {cell for cell in cells.explained(picked) if cell[0] != NOTHING}  # a crash alone proves little
            failing = {label for _, label in cells.wrong}
            is_much = cells.first <= explained or 2 * len({label for _, label in explained}) >= len(failing)
            self.picked = picked if is_much else []
        self.explained = cells.explained(self.picked)

    def _consistent(self, by_wrong=True):
        """The chosen hypotheses, of which none is refuted."""
        struck_out = set()
        while True:
            picked = self._chosen([h for h in self._possible if h not in struck_out])
            others = {h: [other for other in picked if other is not h] for h in picked}
            refuted = {h for h in picked if self.cells.refuted(h, others[h], by_wrong)}
            if not refuted:
                return picked
            struck_out |= refuted

    def _chosen(self, candidates):
        cells = self.cells
        picked = self._grown([], candidates)
        if not self.is_alone and self._is_open(picked):
            pairs = self._pairs(picked, candidates)
            pair = next((pair for pair in pairs if all(cells.covers(pair, cell) for cell in cells.first)), None)
            picked = self._grown(list(pair), candidates) if pair else picked
        return picked

    def _is_open(self, picked):
        """Whether a result of the first failing case is neither explained nor described exactly."""
        left = self.cells.first - self.cells.explained(picked)
        return any(self.cells.described(cell) is None for cell in left)

    def _grown(self, picked, candidates):
        """The hypotheses, with one more as long as it covers more, of the first failing case, and then of the next."""
        cells = self.cells
        while len(picked) < MOST and (left := cells.wrong - cells.explained(picked)):
            new = [h for h in candidates if h not in picked]
            gains = self._gains(picked, new, left, left & cells.first)
            if not gains:  # what a description of the first failing case says of other cases too is told
                of_described = {i for i, label in left & cells.first if cells.described((i, label))}
                left = {cell for cell in left if not (cell[0] in of_described and cells.described(cell))}
                labels = {self._cause(x, left): x for x in [*cells.labels][::-1]}  # the first label of each
                left -= cells.first
                telling = {cell for cell in left if cells.tells_something(cell)}
                for label in [x for x in cells.labels if x in labels.values()]:
                    gains = self._gains(picked, new, left, {cell for cell in left if cell[1] == label})
                    gains = {h: gain for h, gain in gains.items() if gain & telling or gain == left}
                    if gains:
                        break
            if not gains:
                break
            best = [h for h in gains if not cells.refuted(h, picked)] or [*gains]
            most = max(len(gains[h]) for h in best)
            best = [h for h in best if len(gains[h]) == most]
            listed = cells.trials.exercise.mistakes  # a teacher's text tells more than the name of an argument
            picked = [*picked, max(best, key=lambda h: (h.name in listed, self._agreement(h)))]
        return picked

    def _cause(self, label, left):
        """What the cells left of a case have in common with those of another: calls that fail alike have one cause."""
        findings = (self.cells.found[n] for n in self.cells.labels[label])
        is_failure = {i for i, other in left if other == label} == {NOTHING}
        return next(f.failure for f in findings if f.results is None) if is_failure else label

    def _gains(self, picked, new, left, wanted):
        """{hypothesis: the cells left that it covers} of those that cover most of some wanted cells."""
        here = {h: gain for h in new if (gain := len(self._gain(picked, h, wanted)))} if wanted else {}
        likeliest = [h for h in here if here[h] == max(here.values())]
        return {h: self._gain(picked, h, left) for h in likeliest}

    def _gain(self, picked, h, cells):
        """Those of some cells that a hypothesis covers, alone or with some of the picked ones."""
        gain = self.cells.covered((h,), cells)
        left = {cell for cell in cells - gain if picked and self._is_part_of(cell, h)}
        for some in subsets(picked) if left else ():
            if self.cells.joined >= self.cells.trials.most_joined:
                break
            gain |= self.cells.covered((*some, h), left - gain)
        return gain

    def _is_part_of(self, cell, h):
        """Whether a hypothesis may be one of several that a wrong cell shows: it changes this result, and no right one.
        A call without results has one cause."""
        (i, label), cells = cell, self.cells
        number = cells.labels[label][0]
        return i != NOTHING and i in cells.changed((h,), number) <= {*(cells.found[number].wrong or ())}

    def _agreement(self, h):
        """How many results are, and how many calls end, as with a hypothesis."""
        cells, found = self.cells, self.cells.found
        ends = sum((cells.run((h,), n)[0] is None) == (finding.results is None) for n, finding in enumerate(found))
        return ends + sum(cells.agrees((h,), i, n) for n in range(len(found)) for i in range(len(found[n].expected)))

    def _pairs(self, picked, candidates):
        """Pairs that change nothing that is right in the first failing case, the likeliest first: with a hypothesis
        that is picked, then those whose changes, added or multiplied, give most of the student's numbers."""
        cells, finding = self.cells, self.cells.first_failed
        if finding.results is None:
            return
        number = cells.found.index(finding)
        if self._allowed is None:  # what is struck out makes no pairs anew
            self._allowed = len(cells.tried) + cells.trials.most()
        base = _numbers(finding.expected, finding.expected)
        own = _numbers(finding.results, finding.expected)
        here = ~are_close(own, base, 1e-4)
        own, base = own[here], base[here]
        numbers = {h: _numbers(cells.run((h,), number)[0], finding.expected)[here] for h in candidates}

        def unlikeliness(pair):
            one, other = map(numbers.get, pair)
            both = one + other - base, one * other / base
            return not {*pair} & {*picked}, -max(are_close(some, own, 1e-4).mean() for some in (*both, one, other))

        for pair in sorted(combinations(candidates, 2), key=unlikeliness):
            if len(cells.tried) >= self._allowed:
                return
            yield pair


def _numbers(results, expected):
    """All numbers of some results in one array; NaN for a result that is missing or of a wrong shape."""
    results = [None] * len(expected) if results is None else results
    return np.concatenate([
        np.ravel(a).astype(float) if a is not None and a.shape == right.shape else np.full(right.size, np.nan)
        for a, right in zip(results, expected, strict=True)
    ])  # fmt: skip
