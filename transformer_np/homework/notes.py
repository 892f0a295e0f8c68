"""Reading the mistakes of a sheet: names, rewrites and texts, in the form that `rewriting` describes."""

import re
from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Rewrite:
    """where: the function, class or method to look into, or ""; which: "", "every" or "2nd"; old: None for a body"""

    where: str
    which: str
    old: str | None
    new: str


@dataclass(frozen=True)
class Entry:
    name: str
    text: str
    lines: tuple[str, ...]  # of its rewrites

    @property
    def rewrites(self):
        if self.lines and not re.search(r"^in [\w.]+:| ->", self.lines[0]):
            return [Rewrite("", "", None, "\n".join(self.lines))]
        pieces = []
        for line in self.lines:
            if line.startswith(" ") and pieces:
                pieces[-1].append(line)
            else:
                pieces.append([line])
        return [self._rewrite(head, dedent("\n".join(below))) for head, *below in pieces]

    def _rewrite(self, head, below):
        where, which, old, arrow, new = _HEAD.fullmatch(head).groups("")
        new = "\n".join([new.strip(), below]).strip("\n")
        if where and not arrow:
            return Rewrite(where, "", None, f"{old}\n{new}".strip("\n"))
        if not arrow:
            raise ValueError(f"{self.name!r}: {head.strip()!r} has no arrow")
        if not old or not new:
            raise ValueError(f"{self.name!r}: a rewrite needs code on both sides of its arrow; `pass` for nothing")
        return Rewrite(where, which, old, new)


_HEAD = re.compile(r"(?:in ([\w.]+): ?)?(?:(every|\d+(?:st|nd|rd|th)) )?(.*?)(?:( ->)(.*))?")


def read(notes):
    """The mistakes of some notes."""
    entries = []
    for line in notes.splitlines():
        if line.startswith("- "):
            name, _, code = line[2:].partition(":  ")
            entries.append((name.removesuffix(":"), [code.strip()] if code else [], []))
        elif line.startswith("  ") and entries:
            _, code, text = entries[-1]
            if line.startswith("    ") and not text:
                code.append(line[4:])
            else:
                text.append(line.strip())
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"not part of a mistake: {line!r}; a mistake begins with '- name:'")
    return [Entry(name, " ".join(text), tuple(code)) for name, code, text in entries]
