"""The gate that every text passes before a student reads it: what does not hold for the run at hand is dropped."""

import re
from dataclasses import dataclass
from itertools import combinations

from .compare import close
from .describe import describe_roughly
from .evidence import Evidence

_OF_EVERY_CALL = re.compile(r"\b(always|never|every call|not used|does not use|ignored?|wherever)\b")


def cases_of(labels):
    """ "a", "a and with b", "a, with b and with c"; only the first three of many cases."""
    if len(labels) > 4:
        return f"{', with '.join(labels[:3])} and in {len(labels) - 3} other cases"
    return " and with ".join([", with ".join(labels[:-1]), labels[-1]] if len(labels) > 1 else labels)


def with_cases(text, cases):
    """The text of a mistake with the cases that show it: a mistake is in the code, and a case only shows it."""
    return f"{text} This shows {f'with {cases}' if cases else 'in the plain case'}."


@dataclass(frozen=True)
class Said:
    """One text for the student, and the name of its mistake or None.

    label: of its case; led: whether the text is told with the label; sure: whether it explains every number
    """

    name: str | None
    text: str
    label: str = ""
    led: bool = False
    sure: bool = True


class Gate(Evidence):
    """The evidence, with the texts `said`, the `reasons` by result, and the questions whether they hold."""

    # --- only what is true of this run --------------------------------------------------------------------------------

    def written(self, said):
        """A text with its case."""
        if not said.led or not said.text:
            return said.text
        if said.name not in self.trials.exercise.mistakes and said.name not in self.trials.ignored:
            return f"{f'With {said.label}' if said.label else 'In the plain case'}: {said.text}"  # it is of one case
        plain = said.label and "" in self.labels and self._wrong_in("") and self._explains((said.name,), "")
        return said.text if plain else with_cases(said.text, said.label)

    def keep_what_is_true(self):
        """Drop each text that claims something of every call and is not true of all calls at hand."""
        known = list(dict.fromkeys(said.name for said in self.said if said.name in self.mistakes))
        claims = [said for said in self.said if self._claims_all_calls(said)]
        returned = [x for x, numbers in self.labels.items() if all(self.found[n].results is not None for n in numbers)]
        explained = len({said.name for said in claims}) == 1 and all(
            self._is_explained_by_some(known, label) for label in returned
        )
        explained = explained or (known and self.trials.compatible(known) and self._is_complete(tuple(known)))
        kept = [s for s in self.said if s not in claims or explained or self._is_shown_by_all(s)]
        if any(said.name for said in kept):
            some = any(said.name and said.sure for said in kept)
            kept = [said for said in kept if said.name or said.sure or (said.led and not some)]
            # "the largest error is at …" adds nothing
        if not any(said.text for said in kept) and self.failing:
            i = min(self.failing)
            description = describe_roughly(self._draws(i, self.failing[i][0]))
            kept = [Said(None, description.text, sure=False)]
        self.said = kept

    def _claims_all_calls(self, said):
        if said.name not in self.mistakes:
            return False
        return said.name in self.trials.ignored or bool(_OF_EVERY_CALL.search(said.text))

    def _is_shown_by_all(self, said):
        """Whether the answer has the results of a mistake in every case that the mistake changes, and is right in the
        others, but for those that set an option of which its text does not speak."""
        numbers = [n for n, finding in enumerate(self.found) if finding.results is not None]
        changed = [n for n in numbers if self._changes((said.name,), n)]
        plain, results = self.found[0].case.options, range(len(self.found[0].expected))
        return (
            bool(changed)
            and all(self._agrees((said.name,), i, n) for n in changed for i in results)
            and all(
                any(option not in said.text for option in self.found[n].case.options.keys() - plain.keys())
                for n in {*numbers} - {*changed}
                if self.found[n].wrong
            )
        )

    def _leaves_right(self, mistakes, label):
        """Whether a right answer with these mistakes is right in a case."""
        return not any(self._changes(mistakes, number) for number in self.labels[label])

    def _changes(self, mistakes, number):
        variant, expected = self._try(mistakes, number)[0], self.found[number].expected
        return variant is None or not all(map(close, variant, expected))

    def where(self):
        """The cases that fail, or those that are right although the named mistakes are wrong in them."""
        failed = [label for label, numbers in self.labels.items() if not all(self.found[n].right for n in numbers)]
        right = [label for label in self.labels if label not in failed and not self._is_narrow(label)]
        if not right:
            return ""
        if "" in right:
            return f" The plain case is right; it fails with {cases_of(failed)}."
        if not self.first_failed.tried.crash:  # a crash happens in each case that has its cause
            known = tuple(name for name in self.names if name in self.mistakes)
            if not known or not self.trials.compatible(known):
                return ""
            right = [label for label in right if all(self._changes(known, n) for n in self.labels[label])]
        case, is_right = ("cases", "are") if len(right) > 1 else ("case", "is")
        return f" Only the {case} with {cases_of(right)} {is_right} right." if right else ""

    def _is_narrow(self, label):
        return all(self.found[n].case.is_narrow for n in self.labels[label])

    # --- mistakes that something contradicts --------------------------------------------------------------------------

    def contradicted(self):
        """The named mistakes that change numbers in a way that the answer does not show."""
        named = [said.name for said in self.said if said.name in self.mistakes]
        return {name for name in named if any(self._contradicts(n, name, named) for n in range(len(self.found)))}

    def _contradicts(self, number, name, named):
        """Whether an attempt contradicts a mistake: no set of the named ones with it gives the same numbers."""
        finding = self.found[number]
        if finding.results is None:
            return False
        alone = self._try((name,), number)[0]
        for i, right in enumerate(finding.expected):
            if self._follows(i, finding) or (alone is not None and close(alone[i], right)):
                continue
            if finding.results[i].shape != right.shape:
                continue  # of another mistake, which hides this one
            if finding.case.extended and (i in finding.wrong or not self.first_failed.case.extended):
                continue  # another branch of the code, in which more may be missing than this mistake, or less
            if not self._is_explained_with(name, named, i, number):
                return True
        return False

    def _is_explained_with(self, name, named, i, number):
        others = [other for other in dict.fromkeys(named) if other != name]
        for n in range(len(others) + 1):
            for some in combinations(others, n):
                if self.trials.compatible((name, *some)) and self._agrees((name, *some), i, number):
                    return True
        return False
