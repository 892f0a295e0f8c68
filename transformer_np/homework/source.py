"""The source of the functions and classes of a sheet, in which pieces of code are found."""

import ast
import inspect
import re
from functools import cached_property
from itertools import accumulate
from textwrap import indent
from types import CodeType, FunctionType

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
    | (?s:\"{3}.*?\"{3}|'{3}.*?'{3}) | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    | \d[\w.]*(?:(?<=[eE])[+-]\d+)? | \w+
    | \*\*=? | //=? | <<=? | >>=? | -> | \.\.\. | [-+*/%@&|^<>=!:]= | \n | [^\s\w]""",
    re.VERBOSE,
)


def tokens(text):
    """(token, begin, end) of some code, which may be a fragment. The token "\\n" ends a line, except in brackets."""
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        depth += (token in "([{") - (token in ")]}") if token != "\n" else 0
        if not match["comment"] and (token != "\n" or depth <= 0):
            yield token, *match.span()


def _comparable(text):
    """The tokens of some code, with `;` for the end of a line and nothing after a colon."""
    found = []
    for token, begin, end in tokens(text):
        if token == "\n" and (not found or found[-1][0] in ";:"):
            continue
        found.append((";" if token == "\n" else token, begin, end))
    return found


class Code:
    """The source of a function or class of a sheet."""

    def __init__(self, thing):
        self._lines, self.line = inspect.getsourcelines(thing)
        self.text, self.file = "".join(self._lines), inspect.getsourcefile(thing)

    @cached_property
    def _tokens(self):
        return _comparable(self.text)

    def find(self, old, begin, end):
        """The places of a piece of code between two positions of the text."""
        wanted = [token for token, _, _ in _comparable(old)]
        tokens = [token for token in self._tokens if begin <= token[1] and token[2] <= end]
        texts, n = [text for text, _, _ in tokens], len(wanted)
        places, i = [], 0
        while i + n <= len(texts):
            if texts[i : i + n] == wanted:
                places.append((tokens[i][1], tokens[i + n - 1][2]))
                i += n
            else:
                i += 1
        return places

    def scopes(self, name, body):
        """The places of the functions, classes and methods with this name in the text, or of their bodies."""
        starts = [0, *accumulate(map(len, self._lines))]
        found, left = [], [("", node) for node in ast.parse(self.text).body]
        while left:
            before, node = left.pop(0)
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            path = f"{before}{node.name}"
            if f".{path}".endswith(f".{name}"):
                first = starts[node.lineno - 1]
                if body:
                    first = starts[node.body[0].lineno - 1]
                    first += len(self.text[first:]) - len(self.text[first:].lstrip())
                found.append((first, starts[node.end_lineno] - 1))
            left += [(f"{path}.", child) for child in node.body]
        return found

    def fitted(self, new, begin, end):
        """The new text for a place. If the place takes whole lines, each statement gets a line."""
        line = self.text[self.text.rfind("\n", 0, begin) + 1 : begin]
        if line.strip():
            return " ".join(part.strip() for part in new.splitlines())
        if self.text[end : end + 1] in ("\n", "") and not re.match(r"(if|for|while|with|def)\b", new):
            cuts = [(begin, end) for token, begin, end in tokens(new) if token == ";"]
            for first, last in reversed(cuts):
                new = f"{new[:first]}\n{new[last:].lstrip()}"
        return indent(new, line).removeprefix(line)

    def compiled(self, text):
        """A text that takes the place of this one, as code."""
        return compile(text, f"{self.file}, rewritten", "exec")

    @cached_property
    def unchanged(self):
        return self.compiled(self.text)


def used_by(thing):
    """The functions and classes that a function or class names."""
    if isinstance(thing, type):
        yield from thing.__bases__
        for member in vars(thing).values():
            member = getattr(member, "fget", None) or getattr(member, "__func__", member)  # a property, a static method
            if isinstance(member, FunctionType):
                yield from used_by(member)
        return
    names, left = set(), [thing.__code__]
    while left:
        code = left.pop()
        names.update(code.co_names)
        left += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    values = (thing.__globals__.get(name) for name in sorted(names))
    yield from (value for value in values if isinstance(value, FunctionType | type))


def is_near(thing, answer):
    """Whether something is defined in the same sheet as the answer or in a neighbouring sheet."""
    package = answer.__module__.rpartition(".")[0]
    return thing.__module__ == answer.__module__ or (package != "" and thing.__module__.rpartition(".")[0] == package)
