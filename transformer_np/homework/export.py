"""Exercises for other graders: a source notebook of nbgrader, or a notebook and test files of Otter.

The cells and tests call `check`, and fail with its message. They run in the notebook's own process, without the walls
of `homework grade`. A teacher's own exercises go along as files.
"""

import json
from textwrap import indent

from .. import __version__
from ..notebooks.texts import as_notebook
from .course import OWN
from .path import all_exercises, own_exercises, own_files
from .stubs import BODY, effort, imports, stub

NOTEBOOK, REQUIREMENTS = "homework.ipynb", "requirements.txt"
_IN_AUTOGRADER = "/autograder/source/files"  # where Otter's container has the files of the autograder
_BEGIN, _END = "### BEGIN SOLUTION", "### END SOLUTION"


def exported(course, names, grader, wheel=None):
    """{path in the folder: text or bytes} of these exercises of a course, for "nbgrader" or "otter".

    wheel: the file of this package that Otter's autograder installs; None for this version from the package index
    """
    exercises = [all_exercises()[name] for name in names]
    stubs = {exercise.name: stub(exercise) for exercise in exercises}
    deadline = f"\n\nDeadline: {course.deadline}" if course.deadline else ""
    cells = [("markdown", f"# {course.title or 'Homework'}{deadline}", [])]
    cells += [("code", imports(exercises, stubs).rstrip(), [])]
    if grader == "otter":
        cells += [("code", 'import otter\n\ngrader = otter.Notebook("homework.ipynb")', [])]
    files = {f"{OWN}/{name}": content for name, content in sorted(own_files(names).items())}
    for exercise in exercises:
        name, parts = exercise.name, course.parts_of(exercise.name)
        about = f"{effort(exercise)}. {exercise.hints[0]}"
        cells.append(("markdown", f"## {name}\n\n{about[0].upper()}{about[1:]}", []))
        if grader == "nbgrader":
            cells.append(("code", _with_markers(stubs[name]), [], _metadata(name, solution=True)))
            for part in parts:
                cells.append(("code", _test(part, grader), [], _metadata(f"{name}-{part.of}", points=part.worth)))
        else:
            cells += [("code", stubs[name].rstrip(), []), ("code", f'grader.check("{name}")', [])]
            files[f"tests/{name}.py"] = _otter_test(name, parts)
    if grader == "otter":
        files |= {wheel.name: wheel.read_bytes()} if wheel else {}
        package = f"{_IN_AUTOGRADER}/{wheel.name}" if wheel else f"transformer-np=={__version__}"
        files[REQUIREMENTS] = f"# what the autograder installs beside Otter's own packages\n{package}\n"
    notebook = json.dumps(as_notebook(cells, "cell"), indent=1, ensure_ascii=False) + "\n"
    return {NOTEBOOK: notebook, **files}


def _with_markers(text):
    """The stub with nbgrader's marks around the bodies: nbgrader replaces the text between the marks."""
    lines = []
    for line in text.rstrip().splitlines():
        space = line[: len(line) - len(line.lstrip())]
        lines += [space + _BEGIN, line, space + _END] if line.strip() == BODY else [line]
    return "\n".join(lines)


def _test(part, grader):
    """A cell or a body that fails with the message of the check."""
    asked = "core" if part.of == "core" else "passed"
    checks = f'verdict = check("{part.exercise}", {part.exercise}, quiet=True)'
    lines = ["from transformer_np.homework import check"]
    if part.exercise not in own_exercises():
        lines += ["", checks]
    else:
        lines += ["from transformer_np.homework.path import exercises_in", ""]
        folder = f'"{OWN}"'
        if grader == "otter":  # a submission may bring an older copy, which Otter would leave in its place
            lines = ["from pathlib import Path", "", *lines, f'own = Path("../source/files/{OWN}")']
            folder = f"own if own.is_dir() else {folder}"
        lines += [f"with exercises_in({folder}):", f"    {checks}"]
    return "\n".join([*lines, f"assert verdict.{asked}, verdict.message"])


def _otter_test(name, parts):
    tests = ["from otter.test_files import test_case", "", "OK_FORMAT = False", f"name = {name!r}"]
    for part in parts:
        tests += ["", "", f"@test_case(points={part.worth:g}, name={part.title!r})"]
        tests += [f"def test_{name}_{part.of}({name}):", indent(_test(part, "otter"), "    ")]
    return "\n".join(tests) + "\n"


def _metadata(grade_id, solution=False, points=None):
    about = {"schema_version": 3, "grade_id": grade_id, "grade": not solution, "solution": solution, "task": False}
    about |= {"locked": not solution} | ({} if points is None else {"points": points})
    return {"nbgrader": {**about, "cell_type": "code"}}
