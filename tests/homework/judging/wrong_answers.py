"""Wrong answers as students write them, each with what its verdict says.

    --- a condition is no place where the shape is wrong
    says: The padding is on the query axis
    def padding_mask(ids, pad_id):
        mask = np.zeros((*ids.shape[:1], 1, ids.shape[1], 1), dtype=bool)  # shown
        ...

A line of the code that ends with `# shown` is one that the message shows with a mark below, and it shows no others; one
with `# not shown` is not among them. A title that ends with `# release` is of an answer that is tried before a release
only: its verdict takes a second on a busy machine, and others of its kind are always tried. Before the code, one text
a line, where line breaks do not count:

    says: a part of the message, after those of the lines above it; "line @" is the number of the line shown
    not: no part of the message; once: a part that comes once; marks: what is marked in a line
    named: the names of all mistakes, joined by "and"; outcome: of the verdict; repair: the line after the edit
"""

import re
from dataclasses import dataclass
from itertools import pairwise

import pytest

_KEYS = re.compile(r"(says|not|once|marks|named|outcome|repair): ?(.*)")


@dataclass(frozen=True)
class WrongAnswer:
    """what: it shows; told: [(key, text)]; code: below `import numpy as np`; shown, hidden: {number: line}"""

    what: str
    told: list
    code: str
    shown: dict
    hidden: dict

    def is_told_by(self, verdict):
        """Asserts what is said above the code and beside it, and what holds of every message."""
        message, at, numbers = " ".join(verdict.message.split()), 0, list(map(str, self.shown))
        assert not verdict.passed
        for key, text in self.told:
            text = text.replace("lines @", "lines " + " and ".join(", ".join(numbers).rsplit(", ", 1)))
            while "line @" in text:
                text = text.replace("line @", f"line {numbers.pop(0)}", 1)
            if key == "says":
                assert text in message[at:], verdict.message
                at = message.index(text, at)
            elif key == "not":
                assert text not in message, verdict.message
            elif key == "once":
                assert message.count(text) == 1, verdict.message
            elif key == "marks":
                assert text in [marked for _, marked in shown_in(verdict.message)], verdict.message
            elif key == "named":
                assert {*(verdict.misconception or "").split(" and ")} == {*text.split(" and ")}, verdict.message
            else:
                assert getattr(verdict, key).strip() == text, verdict.repair
        lines = [line for line, _ in shown_in(verdict.message)]
        if self.shown:
            assert lines == [*self.shown.values()], verdict.message
            assert verdict.line in self.shown
        assert not {*lines} & {*self.hidden.values()}, verdict.message
        assert len({*lines}) == len(lines), verdict.message
        assert all(len(line) < 260 for line in verdict.message.splitlines())


def shown_in(message):
    """[(line, what is marked in it)] of the student's lines with a mark below, without those of a traceback."""
    lines = re.sub(r"  File .*(\n {4}.*)+", "", message).splitlines()
    pairs = [(line, marks) for line, marks in pairwise(lines) if {*marks} == {" ", "^"} != {*line}]
    return [(line.strip(), line[marks.index("^") : len(marks)]) for line, marks in pairs]


def wrong_answers(text):
    """The WrongAnswers of a text, as parameters of a test."""
    found = []
    for block in text.strip().removeprefix("--- ").split("\n--- "):
        title, *rest = block.rstrip().split("\n")
        what, told = title.removesuffix("  # release"), []
        while match := _KEYS.fullmatch(rest[0]):
            told.append(match.groups())
            rest.pop(0)
        lines = [re.fullmatch(r"(.*?)(?:  # ((?:not )?shown))?", line).groups() for line in rest]
        marked = {mark: {n: line.strip() for n, (line, of) in enumerate(lines, 2) if of == mark} for _, mark in lines}
        code = "\n".join(line for line, _ in lines) + "\n"
        answer = WrongAnswer(what, told, code, marked.get("shown", {}), marked.get("not shown", {}))
        found.append(pytest.param(answer, id=what, marks=() if what == title else pytest.mark.release))
    return found
