"""The search for the fewest hypotheses that together give the student's numbers in all wrong cells.

First the listed mistakes and ignored arguments, each time the one that covers most; then pairs of which neither covers
a cell alone. What changes a cell that the answer has otherwise is struck out, and the search begins again. It is
bounded by the work of its runs, never by time: the same answer and seed give the same text on every machine.
"""

from itertools import combinations

import numpy as np

from .cells import NOTHING, subsets
from .compare import close

MOST = 4  # hypotheses; readers stop after about four texts


class Cover:
    """picked: the Hypotheses that are believed; explained: the cells that they cover

    place: where edits make the answer right, which tells more than pairs would
    is_alone: whether only what covers a cell alone is looked for
    """

    def __init__(self, cells, place=None, is_alone=False):
        self.cells, self._allowed = cells, None
        self.is_one = is_alone or (bool(place) and place.edits == 1)
        self.picked = self._consistent(cells.refuted)
        if not self.picked:  # something else may be wrong beside where a hypothesis is refuted by a wrong result
            picked = self._consistent(cells.refuted_by_right)
            explained = {cell for cell in cells.explained(picked) if cell[0] != NOTHING}  # a crash alone proves little
            failing = {label for _, label in cells.wrong}
            is_much = cells.first <= explained or 2 * len({label for _, label in explained}) >= len(failing)
            self.picked = picked if is_much else []
        self.explained = cells.explained(self.picked)

    def _consistent(self, is_refuted):
        """The chosen hypotheses, of which none is refuted."""
        struck_out = set()
        while True:
            picked = self._chosen([h for h in self.cells.mistakes if h not in struck_out])
            refuted = {h for h in picked if is_refuted(h, [other for other in picked if other is not h])}
            if not refuted:
                return picked
            struck_out |= refuted

    def _chosen(self, candidates):
        cells = self.cells
        picked = self._grown([], candidates)
        if not self.is_one and self._is_open(picked):
            pairs = self._pairs(picked, candidates)
            pair = next((pair for pair in pairs if all(cells.covers(pair, cell) for cell in cells.first)), None)
            picked = self._grown(list(pair), candidates) if pair else picked
        if more := cells.independent(picked):
            cells.wrong |= more
            cells.following -= more
            picked = self._grown(picked, candidates)
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
                left = {cell for cell in left if not (cell[0] in of_described and cells.described(cell))} - cells.first
                telling = self._telling(left)
                labels = [x for x in cells.labels if any(cell[1] == x for cell in left)]
                for label in labels:
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
            picked = [
                *picked,
                max(best, key=lambda h: (h.name in listed, self._speaks_of(h, gains[h]), self._agreement(h))),
            ]
        return self._fewest(picked)

    def _fewest(self, picked):
        """The hypotheses without those that explain nothing which the others leave."""
        explained = self.cells.explained(picked)
        for h in sorted(picked, key=lambda h: len(self.cells.covered((h,)))):
            others = [other for other in picked if other is not h]
            if others and self.cells.explained(others) == explained:
                picked = others
        return picked

    def _speaks_of(self, h, gain):
        """Whether the text of a hypothesis speaks of a case of the cells that it covers, or of an option set there."""
        cases = [self.cells.found[self.cells.labels[label][0]].case for label in {label for _, label in gain}]
        words = [word for case in cases for word in (case.label.removeprefix("a "), *case.options)]
        return any(word and word in h.text for word in words)

    def _gains(self, picked, new, left, wanted):
        """{hypothesis: the cells left that it covers} of those that cover most of some wanted cells."""
        here = {h: gain for h in new if (gain := len(self._gain(picked, h, wanted)))} if wanted else {}
        likeliest = [h for h in here if here[h] == max(here.values())]
        return {h: self._gain(picked, h, left) for h in likeliest}

    def _telling(self, left):
        """Those of some wrong cells that no mistake has by chance, and the first of each result if nothing crashes
        before."""
        cells = self.cells
        firsts = {(i, cells.first_label_of(i)) for i, _ in left} if cells.first_failed.results is not None else set()
        return {cell for cell in left if cell in firsts or cells.tells_something(cell)}

    def _gain(self, picked, h, cells):
        """Those of some cells that a hypothesis covers, alone or with some of the picked ones."""
        gain = set()
        for some in [(), *subsets(picked)]:
            left = {cell for cell in cells - gain if not (some and self._is_crash(cell))}
            gain |= self.cells.covered((*some, h), left) if left else set()
        return gain

    def _is_crash(self, cell):
        """Whether a cell is that of a call that crashes, which has one cause."""
        return self.cells.found[self.cells.labels[cell[1]][0]].tried.crash is not None

    def _agreement(self, h):
        found = self.cells.found
        return sum(self.cells.agrees((h,), i, n) for n in range(len(found)) for i in range(len(found[n].expected)))

    def _pairs(self, picked, candidates):
        """Pairs that change nothing that is right in the first failing case, the likeliest first: with a hypothesis
        that is picked, then those whose changes, added or multiplied, give most of the student's numbers."""
        cells, finding = self.cells, self.cells.first_failed
        if finding.results is None:
            return
        number = cells.found.index(finding)
        runs = {h: cells.run((h,), number)[0] for h in candidates}
        if self._allowed is None:  # what is struck out makes no pairs anew
            self._allowed = len(cells.tried) + cells.trials.most()
        right, own = finding.expected, finding.results
        changed = {
            h: {i for i, r in enumerate(right) if run is None or not close(run[i], r)} for h, run in runs.items()
        }
        possible = [h for h in candidates if changed[h] <= {*finding.wrong}]
        own, base = _numbers(own, right), _numbers(right, right)
        numbers = {h: _numbers(runs[h], right) for h in possible}
        here = ~np.isclose(own, base, rtol=1e-4, equal_nan=True)

        def unlikeliness(pair):
            one, other = (numbers[h][here] for h in pair)
            both = one + other - base[here], one * other / base[here]
            same = max(np.isclose(some, own[here], rtol=1e-4, equal_nan=True).mean() for some in (*both, one, other))
            return not {*pair} & {*picked}, -same

        for pair in sorted(combinations(possible, 2), key=unlikeliness):
            if len(cells.tried) >= self._allowed:
                return
            if cells.compatible(pair):
                yield pair


def _numbers(results, expected):
    """All numbers of some results in one array; NaN for a result that is missing or of a wrong shape."""
    results = [None] * len(expected) if results is None else results
    return np.concatenate([
        np.ravel(a).astype(float) if a is not None and a.shape == right.shape else np.full(right.size, np.nan)
        for a, right in zip(results, expected, strict=True)
    ])  # fmt: skip
