"""The student's starting file: the library's signatures and docstrings with empty bodies."""

import ast
import builtins
import inspect
import sys
import textwrap

from ..support.intercept import is_of_package
from .definitions import DEFINES, first_line, read_by, stored, tree_of, unread
from .exercise import public_home
from .path import chapter_line, chapters, own_exercises

_DIFFICULTY = {1: "a line or two", 2: "a few lines", 3: "takes thought"}
WIDTH = 119  # of a heading
BODY = "raise NotImplementedError"


def difficulty(exercise):
    """The amount of work, in words."""
    return _DIFFICULTY[exercise.difficulty]


def effort(exercise):
    """The amount of work, and the section that explains the exercise, if it names one: "a line or two, §4"."""
    return ", ".join(filter(None, [difficulty(exercise), exercise.section]))


def stub(exercise):
    """The source of an exercise with its exact signature and docstring, and `raise NotImplementedError` as body.

    A class is complete except for the bodies of the methods to write.
    """
    text = textwrap.dedent(inspect.getsource(inspect.unwrap(exercise.reference)))
    lines, tree = text.splitlines(), ast.parse(text).body[0]
    parts, top = [tree], tree.lineno
    if isinstance(tree, ast.ClassDef):
        top = first_line(tree)  # @dataclass is a part of what is given
        parts = [item for item in tree.body if isinstance(item, ast.FunctionDef) and item.name in exercise.parts]
    for part in reversed(parts):  # from the end, so that earlier line numbers stay valid
        first = part.body[0]
        begin = first.end_lineno if ast.get_docstring(part) is not None else first.lineno - 1
        lines[begin : part.end_lineno] = [" " * (part.col_offset + 4) + BODY]
    return "\n".join(lines[top - 1 :]) + "\n"


def stub_file(exercises):
    """The text of a file with the stubs of these exercises, in the order of the path, ready to be imported."""
    head, found = pieces_of_file(exercises)
    return f"{head}\n" + "\n\n".join(
        piece for heading, here in found for piece in (heading, *(f"{comment}\n{text}" for _, comment, text in here))
    )


def pieces_of_file(exercises):
    """(head, [(heading of a chapter with its imports, [(exercise, comment, stub)])]), the parts of `stub_file`."""
    exercises = [exercise for _, _, here in chapters(exercises) for exercise in here]
    stubs = {exercise.name: stub(exercise) for exercise in exercises}
    pieces, known = [], set()
    for title, notebook, here in chapters(exercises):
        heading = f"# --- {chapter_line(title, notebook)} "
        heading += "-" * (WIDTH - len(heading)) + "\n"
        if needed := _own_imports(here, stubs, known):
            heading += f"{needed}\n"
        pieces.append((heading, [(exercise, _comment(exercise), stubs[exercise.name]) for exercise in here]))
    return f"{_head(exercises)}\n\n{_general_imports(exercises, stubs)}", pieces


def _comment(exercise):
    about = " ".join(effort(exercise).split())
    return f"# {about}; hint: transformer-np homework hint {exercise.name}"  # one line, by which the page knows it


def with_stub(text, exercise):
    """(the text of a student's file with the stub of an exercise in place of its definitions, these as text, the line
    of the stub). ValueError if there is none at the top level of the file."""
    lines, places = text.removesuffix("\n").split("\n"), _definitions(text, exercise.name)  # the lines of Python
    if not places:
        raise ValueError(f"the file has no {exercise.name} at its top level")
    old = ["\n".join(lines[begin:end]) for begin, end in places]
    for begin, end in reversed(places[1:]):
        del lines[begin:end]
    begin, end = places[0]
    lines[begin:end] = stub(exercise).rstrip().splitlines()
    return "\n".join(lines) + "\n", "\n\n\n".join(old) + "\n", begin + 1


def _definitions(text, name):
    """[(first line, line after it)] of what defines a name at the top of a file, counted from 0."""
    tree = tree_of(text)
    if tree is None:  # a student may have lost the way in just this function
        found = [(line, body) for other, body, line in unread(text) if other == name]
        return [(line, line + body.count("\n") + 1) for line, body in found]
    nodes = [node for node in tree.body if isinstance(node, DEFINES | ast.Assign | ast.AnnAssign)]
    return [(first_line(node) - 1, node.end_lineno) for node in nodes if [*stored(node)][:1] == [name]]


_COMMANDS = (
    ("check homework.py", "check all, in order, up to the first mistake"),
    ("check homework.py --watch", "check again at every save"),
    ("check homework.py {first}", "check one exercise"),
    ("hint {first}", "ask for a hint; more with --level 2, 3 and 4"),
    ("status homework.py", "show a table of all exercises"),
    ("run homework.py train", "train a translator with your functions"),
    ("solution {first}", "show the library's code, once yours is right"),
    ("start homework.py --reset NAME", "start an answer over; the old one is kept"),
)
_HEAD = '''"""{title}: write the bodies so that each function does what it documents.

{commands}

Hand in this file, under this name, with your answers at its top level. Leave out the course's notebooks,
old versions and environments. If several files answer an exercise, the first right answer counts.

Functions may call each other. They leave their arguments as they are and return new arrays, but for
those that say otherwise, and float64 stays float64.{lecture}
The letters in the shapes:

    B batch · T target (query) length · S source (key) length · D d_model · H heads · K d_k · F d_ff · V vocabulary
"""'''


def _head(exercises):
    """The docstring of a file with these exercises."""
    first, own = exercises[0].name, own_exercises().keys()
    of_library = any(exercise.name not in own for exercise in exercises)
    title = "The Transformer to reimplement" if of_library else "The homework"
    lecture = " § is a section of the lecture notes (INF721, L17: Transformers)." if of_library else ""
    commands = [(f"transformer-np homework {words.format(first=first)}", what) for words, what in _COMMANDS]
    commands = [one for one in commands if of_library or not one[0].endswith(" train")]
    width = max(len(words) for words, _ in commands)
    shown = "\n".join(f"    {words:<{width}}    {what}" for words, what in commands)
    return _HEAD.format(title=title, commands=shown, lecture=lecture)


# --- imports ---------------------------------------------------------------------------------------------------------


def imports(exercises, stubs):
    """The import lines for the names that the stubs {name: text} use but do not define."""
    own = _own_imports(exercises, stubs, set())
    return _general_imports(exercises, stubs) + (f"\n{own}\n" if own else "")


def _general_imports(exercises, stubs):
    """The lines for NumPy, which the bodies need even if no signature does, and for other libraries."""
    used = {name for text in stubs.values() for name in _free_names(text)}
    numpy = "import numpy as np" + ("" if "np" in used else "  # noqa: F401")
    others = _needed(exercises, stubs, set(), of_package=False)
    return "\n\n".join("\n".join(block) for block in (others, [numpy]) if block) + "\n"


def _own_imports(exercises, stubs, known):
    """The lines for names of this package, without those in `known`, to which they are added."""
    lines = _needed(exercises, stubs, known, of_package=True)
    return "\n".join(["# for what is already written below; you need not look at it", *lines]) if lines else ""


def _needed(exercises, stubs, known, of_package):
    """The lines for the names of this package, or else of others, that the stubs of these exercises need, without those
    in `known`, to which they are added."""
    names_of = {}
    for exercise in exercises:
        module = sys.modules[inspect.unwrap(exercise.reference).__module__]
        for name in _free_names(stubs[exercise.name]) - stubs.keys() - known - {"np"}:
            home = public_home(name, getattr(module, name), module.__name__)
            if is_of_package(home) == of_package:
                names_of.setdefault(home, set()).add(name)
    known.update(*names_of.values())
    return [_import(home, _sorted(names_of[home])) for home in sorted(names_of)]


def _import(home, names):
    """The line, or the lines where one would be longer than most linters allow."""
    line = f"from {home} import {', '.join(names)}"
    return line if len(line) <= 88 else f"from {home} import (\n" + "".join(f"    {name},\n" for name in names) + ")"


def _sorted(names):
    """Constants, then classes, then functions, as usual in an import."""
    return sorted(names, key=lambda name: (not name.isupper() or len(name) == 1, name.islower(), name))


def _free_names(stub):
    """The names that a stub reads but neither defines nor takes as arguments."""
    names = {name for node in ast.parse(stub).body for name in stored(node)}
    return read_by(stub) - names - set(dir(builtins))
