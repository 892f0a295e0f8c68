"""Mistakes as rewrites of a right answer, one line per mistake.

    - mean for sum:  np.sum -> np.mean
      The text that the student reads, on the lines below.

The arrow leads from a piece of the right answer to the code that a student writes instead. A piece is compared token by
token, so spaces, comments and line breaks do not matter; `;` stands for the end of a line. The piece has to occur once
in the answer and in the helper functions of the sheets that the answer calls. These words may precede it:

    every        rewrite every place where it occurs
    2nd, 3rd, …  rewrite this one
    in name:     look into this function, class or method only

Several rewrites, or long ones, go on separate lines, indented by four; a piece of several lines follows its arrow,
indented by eight. Code without an arrow is the whole body of the wrong answer, or after `in name:` the whole body of a
helper or method. Lines that begin with # are comments.

    - divided by D − 1:
        in variance: x.mean() -> x.sum() / (D - 1)
        return y ->
            if y.ndim > 1:
                y = 2 * y
            return y
      The text.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, takewhile
from operator import eq
from textwrap import dedent

from ..support.counts import counted
from .source import Code, is_near, tokens, used_by


class Exclusive(ValueError):
    """Two mistakes rewrite the same place and cannot be made together."""


class Mistakes(Mapping):
    """{name: text} of the mistakes in an answer, in order, and the answer with any of them made.

    answer: a right answer, a function or class in plain code; notes: the mistakes, as described above

    The notes are read when they are first needed, and a wrong answer is compiled when it is first used.
    """

    __hash__ = object.__hash__

    def __init__(self, answer, notes):
        self.answer, self.notes = answer, notes
        self._places = {}
        self._made = lru_cache(256)(self._make)  # a search for pairs tries thousands

    @cached_property
    def _entries(self):
        entries = {}
        for entry in read(self.notes):
            if entry.name in entries:
                raise ValueError(f"{self.answer.__name__}: there are two mistakes called {entry.name!r}")
            entries[entry.name] = entry
        return entries

    def __getitem__(self, name):
        return self._entries[name].text

    def __iter__(self):
        return iter(self._entries)

    def __len__(self):
        return len(self._entries)

    def variant(self, names=()):
        """The answer with these mistakes. Exclusive if two of them rewrite the same place; ValueError if a rewrite
        finds nothing, or more than one place."""
        return self._made(frozenset(names))

    def compatible(self, names):
        """Whether these mistakes can be made together."""
        try:
            self._edits(names)
        except Exclusive:
            return False
        return True

    def problems(self):
        """The problems of the notes, one sentence each."""
        try:
            names = list(self)
        except ValueError as error:
            return [str(error)]
        found = [f"{self.answer.__name__}, {name!r}: has no text for the student" for name in names if not self[name]]
        for name in names:
            try:
                self.variant([name])
            except ValueError as error:
                found.append(str(error))
            except SyntaxError as error:
                found.append(f"{self._about(name)}: {error}")
        return found

    # --- finding the places -------------------------------------------------------------------------------------------

    @cached_property
    def _family(self):
        """The answer and the functions and classes of the sheets that it uses: {function or class: its Code}."""
        found, left = {}, [self.answer]
        while left:
            thing = left.pop()
            if thing not in found:
                found[thing] = Code(thing)
                left += [used for used in used_by(thing) if is_near(used, self.answer)]
        return found

    def _edits(self, names):
        """The places that these mistakes rewrite, in order: {code: [(begin, end, new text, name), …]}."""
        edits = {}
        for name in names:
            if name not in self._places:
                self._places[name] = self._located(self._entries[name])
            for code, *edit in self._places[name]:
                edits.setdefault(code, []).append((*edit, name))
        for code, of_code in edits.items():
            of_code.sort()
            for (*first, name), (*second, other) in pairwise(of_code):
                overlap = second[0] < first[1] or second[0] == first[0]
                if overlap and (name == other or first != second):
                    name, other = sorted((name, other))
                    raise Exclusive(f"{self._about(name)} and {other!r} rewrite the same place")
            edits[code] = list(dict.fromkeys(tuple(edit) for *edit, _ in of_code))
        return edits

    def _located(self, entry):
        """The places that one mistake rewrites: [(code, begin, end, new text), …]."""
        places = []
        for where, which, old, new in entry.rewrites:
            found = self._scopes(entry.name, where, old is None)
            if old is not None:
                found = [(code, *place) for code, begin, end in found for place in code.find(old, begin, end)]
                found = self._chosen(f"{self._about(entry.name)}: {old!r}", which, found)
            places += [(code, *place, code.fitted(new, *place)) for code, *place in found]
        if not places:
            raise ValueError(f"{self._about(entry.name)}: has no rewrite")
        return [(code, *_trimmed(code.text, *place)) for code, *place in places]

    @staticmethod
    def _chosen(about, which, found):
        """The places that a rewrite selects among those found."""
        least = 1 if which in ("", "every") else int(which[:-2])
        if len(found) < least:
            often = f"is in the answer {counted(len(found), 'time')}" if found else "is not in the answer"
            raise ValueError(f"{about} {often}{f', not {which}' if found else ''}")
        if which == "every":
            return found
        if not which and len(found) > 1:
            raise ValueError(
                f"{about} is in the answer {len(found)} times; write more of it, or 'every', '2nd' or 'in name:' before"
            )
        return [found[least - 1]]

    def _scopes(self, name, where, whole):
        """The parts of the answer that a rewrite looks into, or the body that it replaces: [(code, begin, end), …]."""
        if not where:
            if not whole:
                return [(code, 0, len(code.text)) for code in self._family.values()]
            if isinstance(self.answer, type):
                raise ValueError(f"{self._about(name)}: say with 'in name:' which method has this body")
        where = where or self.answer.__name__
        scopes = [(code, *scope) for code in self._family.values() for scope in code.scopes(where, whole)]
        if len(scopes) != 1:
            raise ValueError(f"{self._about(name)}: there are {len(scopes)} functions or classes {where!r}")
        return scopes

    def _about(self, name):
        return f"{self.answer.__name__}, {name!r}"

    # --- making the answer --------------------------------------------------------------------------------------------

    def rewritten(self, names):
        """The new text of all code that these mistakes change."""
        texts = {}
        for code, edits in self._edits(names).items():
            pieces, at = [], 0
            for begin, end, new in edits:
                pieces += [code.text[at:begin], new]
                at = end
            texts[code] = "".join([*pieces, code.text[at:]])
        return texts

    def _make(self, names):
        """The answer compiled with these mistakes, together with everything that it uses from the sheets."""
        if not names:
            return self.answer
        modules, texts = {}, self.rewritten(names)
        for thing, code in self._family.items():
            modules.setdefault(thing.__module__, []).append((code.line, thing, code))
        again = {}
        for name, members in reversed(modules.items()):  # the helpers of other sheets first
            space = dict(vars(sys.modules[name]))
            space.update({key: again[id(value)] for key, value in space.items() if id(value) in again})
            for _, thing, code in sorted(members, key=lambda member: member[0]):
                exec(code.compiled(texts[code]) if code in texts else code.unchanged, space)
                again[id(thing)] = space[thing.__name__]
        return again[id(self.answer)]


def _trimmed(text, begin, end, new):
    """A rewrite of a piece of one line without the tokens at its ends that stay as they are, so that another mistake
    may rewrite those; whole where a bracket would be parted from the other."""
    old = text[begin:end]
    if "\n" in old + new or not new:
        return begin, end, new
    both = [list(tokens(code)) for code in (old, new)]
    words = [[token for token, _, _ in found] for found in both]
    first = _common(*words)
    last = _common(*(found[first:][::-1] for found in words))
    places = [(found[first - 1][2] if first else 0, found[-last][1] if last else None) for found in both]
    short, shown = (code[slice(*place)] for code, place in zip((old, new), places, strict=True))
    if not (_is_balanced(short) and _is_balanced(shown)):
        return begin, end, new
    begin += places[0][0]
    return begin, begin + len(short), shown


def _common(some, other):
    """How many tokens two lists have in common at their beginning."""
    return sum(takewhile(bool, map(eq, some, other)))


def _is_balanced(text):
    depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return False
    return depth == 0


# --- reading the notes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    name: str
    text: str
    code: str  # of its rewrites

    @property
    def rewrites(self):
        """[(the function, class or method to look into, or ""; "", "every" or "2nd"; the old code, or None for a body;
        the new code), …]"""
        first = self.code.partition("\n")[0]
        if first and not re.search(r"^in [\w.]+:| ->", first):
            return [("", "", None, self.code)]
        return [self._rewrite(*piece.split("\n", 1)) for piece in re.split(r"\n(?! )", self.code) if piece]

    def _rewrite(self, head, below=""):
        where, which, old, arrow, new = _HEAD.fullmatch(head).groups("")
        new = f"{new.strip()}\n{dedent(below)}".strip("\n")
        if where and not arrow:
            return where, "", None, f"{old}\n{new}".strip("\n")
        if not arrow:
            raise ValueError(f"{self.name!r}: {head.strip()!r} has no arrow")
        if not old or not new:
            raise ValueError(f"{self.name!r}: a rewrite needs code on both sides of its arrow; `pass` for nothing")
        return where, which, old, new


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
    return [Entry(name, " ".join(text), "\n".join(code)) for name, code, text in entries]
