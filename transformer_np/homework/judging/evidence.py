"""The results of an answer beside those of the exercise's mistakes: the questions that the search in `explain` asks."""

from itertools import combinations

from .compare import close, wrong_entries

FEW_NUMBERS = 10


class Evidence:
    """The findings of an answer's cases, and the trials of mistakes on the same cases."""

    def __init__(self, trials, found, without=()):
        self.trials, self.found = trials, found
        texts = dict(trials.exercise.mistakes) | {name: ignored.text for name, ignored in trials.ignored.items()}
        self.mistakes = {name: text for name, text in texts.items() if name not in without}
        self.tried = set()  # the trials so far; cached ones count too, so that an earlier answer changes nothing
        self.agreed = {}  # whether a result of a trial is the answer's, {trial and result: bool}
        self.labels = {}  # {label: numbers of its cases}
        for number, finding in enumerate(found):
            self.labels.setdefault(finding.case.label, []).append(number)
        self.first_failed = next(finding for finding in found if not finding.right)
        results = trials.exercise.results
        gradients = {i for i, result in enumerate(results) if trials.exercise.is_gradient(result)}
        self.astray = {}  # {label: wrong results of the forward pass}
        for finding in found:
            self.astray.setdefault(finding.case.label, set()).update(set(finding.wrong or ()) - gradients)
        self.failing = {}  # {wrong result: labels of the cases where it is wrong}
        self.following = {}  # the same for gradients in cases with a wrong forward pass
        for finding in found:
            for i in finding.wrong or ():
                kind = self.following if i in gradients and self.astray[finding.case.label] else self.failing
                labels = kind.setdefault(i, [])
                if finding.case.label not in labels:
                    labels.append(finding.case.label)

    def _try(self, mistakes, number):
        """A trial: the results of a variant on a case, or None, and its attempt."""
        self.tried.add((frozenset(mistakes), number))
        return self.trials.variant_on(mistakes, number)

    def _agrees(self, mistakes, i, number):
        finding, (variant, _) = self.found[number], self._try(mistakes, number)
        if finding.results is None or variant is None:
            return (
                finding.results is None and variant is None and self._fails_like(number, self._try(mistakes, number)[1])
            )
        key = frozenset(mistakes), i, number
        if key not in self.agreed:
            self.agreed[key] = close(finding.results[i], variant[i])
        return self.agreed[key]

    def _fails_like(self, number, tried):
        """Whether an answer without results raises the exception, or returns the kind of value, of another attempt."""
        finding, ours, theirs = self.found[number], self.found[number].tried.crash, tried.crash
        if ours and theirs:
            return ours.kind == theirs.kind
        return not ours and not theirs and _form(finding.tried.output) == _form(tried.output)

    def _fits(self, mistakes, i, label):
        """Whether the mistakes give the student's numbers in every draw of a case."""
        possible = self.trials.compatible(mistakes)
        return possible and all(self._agrees(mistakes, i, number) for number in self.labels[label])

    def _spares(self, mistakes, label):
        """Whether the mistakes leave the student's right results of a case right."""
        numbers, results = self.labels[label], range(len(self.found[0].expected))
        return all(
            self._agrees(mistakes, i, number)
            for number in numbers
            for i in results
            if self.found[number].wrong is not None and i not in self.found[number].wrong
        )

    def _covered(self, mistakes, i):
        """The labels of the failing cases in which the mistakes explain result i."""
        return [label for label in self.failing[i] if self._fits(mistakes, i, label)]

    def _is_complete(self, mistakes):
        """Whether the mistakes give the same results as the answer, in every case."""
        results = range(len(self.found[0].expected))
        return all(self._agrees(mistakes, i, n) for n in range(len(self.found)) for i in results)

    def _agreement(self, mistakes):
        results = range(len(self.found[0].expected))
        return sum(self._agrees(mistakes, i, number) for number in range(len(self.found)) for i in results)

    def _explains(self, mistakes, label):
        """Whether mistakes give all that the answer returns in a case."""
        return self.trials.compatible(mistakes) and all(
            self._agrees(mistakes, i, number) or self._follows(i, self.found[number])
            for number in self.labels[label]
            for i in range(len(self.found[number].expected))
        )

    def _is_explained_by_some(self, names, label):
        return any(self._explains(some, label) for n in range(1, len(names) + 1) for some in combinations(names, n))

    def _tells_much(self, label, i):
        """Whether so many numbers of a result are wrong in a case that no other mistake has the same by chance."""
        found = [self.found[n] for n in self.labels[label] if i in (self.found[n].wrong or ())]
        pairs = [(f.results[i], f.expected[i]) for f in found]
        return (
            any(a.shape != b.shape for a, b in pairs)
            or sum(wrong_entries(*pair).sum() for pair in pairs) >= FEW_NUMBERS
        )

    def _follows(self, i, finding):
        """Whether a result is a gradient of a wrong forward pass, which proves nothing."""
        return i in self.following and bool(self.astray[finding.case.label]) and finding.case.label in self.following[i]

    def _wrong_in(self, label):
        return sorted({i for number in self.labels[label] for i in self.found[number].wrong or ()})

    def _draws(self, i, label):
        """The draws of a case in which result i is wrong."""
        return [self.found[n].draw(i) for n in self._wrong_draws(i, label)]

    def _wrong_draws(self, i, label):
        return [n for n in self.labels[label] if i in (self.found[n].wrong or ())]

    def _changed_by(self, name, number):
        """The results of a case that a mistake changes on its own; all where it crashes."""
        variant, expected = self._try((name,), number)[0], self.found[number].expected
        return {i for i, right in enumerate(expected) if variant is None or not close(variant[i], right)}


def _form(output):
    """What an output is made of: the types and lengths of its parts."""
    parts = tuple(map(_form, output)) if isinstance(output, list | tuple) else getattr(output, "shape", None)
    return type(output), parts
