"""The files that a student has handed in: those that can hold answers. Links are never followed.

Files that nobody wrote for the course are left out: hidden ones, caches, environments, a copy of this package.
"""

import json
import os
import re
import stat
from pathlib import Path, PurePosixPath

ENDINGS = (".py", ".ipynb")
MOST_BYTES = 1 << 20  # of one file
MOST_NOTEBOOK = 16 << 20  # of a notebook, whose outputs hold pictures
MOST_FILES, MOST_TOTAL = 100, 8 << 20  # files and bytes of one submission
MOST_ENTRIES = 10_000  # files and folders of any kind in one submission
LEFT_OUT = ("__pycache__", "__MACOSX", "site-packages", "dist-packages", "node_modules")
_OF_ENVIRONMENT = ("lib", "lib64", "bin", "include", "share", "scripts", "conda-meta", "pkgs", "envs")


def hand_in(path):
    """({name relative to the folder: bytes}, {name: Path}, remarks) of a file or a folder; of a notebook the bytes are
    those without its outputs. Links, special files and files beyond the limits are skipped with a remark."""
    path = Path(path)
    is_folder = path.is_dir() and not path.is_symlink()
    root = path if is_folder else path.parent
    found = walk(path) if is_folder else [(path, "it is a link" if path.is_symlink() else "")]
    files, paths, remarks, total = {}, {}, [], 0
    for file, problem in sorted(found, key=lambda one: rank(one[0].relative_to(root).as_posix())):
        if not problem and not may_answer(file.name):
            continue
        if len(files) + len(remarks) >= MOST_FILES:
            remarks.append(f"only the first {MOST_FILES} files were read")
            break
        relative = file.relative_to(root).as_posix()
        name = re.sub(r"[^ -~]", lambda sign: sign[0] if sign[0].isprintable() else "_", stem(relative))
        name += PurePosixPath(relative).suffix.lower() if may_answer(relative) else ""
        try:
            if problem:
                raise ValueError(problem)
            content = content_of(file)
            if name in files:
                raise ValueError("another file has the same name but for characters that cannot be printed")
            if total + len(content) > MOST_TOTAL:
                raise ValueError(f"all files together are larger than {MOST_TOTAL >> 20} MiB")
            total += len(content)
            files[name], paths[name] = content, file
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or error
            remarks.append(" ".join(f"{name} was skipped: {said}".split())[:300])
    return files, paths, remarks


def rank(name):
    """Orders files: first those called homework, then those higher up, then by name."""
    path = PurePosixPath(name)
    return path.stem.casefold() != "homework", len(path.parts), path.suffix == ".ipynb", name


def may_answer(name):
    """Whether a file of this name can hold answers: .py, .PY or a notebook."""
    return name.lower().endswith(ENDINGS)


def stem(name):
    """A name without the ending of a file that can hold answers."""
    return next((name[: -len(ending)] for ending in ENDINGS if name.lower().endswith(ending)), name)


def walk(folder):
    """(path, "" or why it is skipped) of the files and links in a folder, the first MOST_ENTRIES."""
    left, waiting = MOST_ENTRIES, [Path(folder)]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                entries = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            yield place, error.strerror or "it cannot be read"
            continue
        names = {entry.name for entry in entries}
        without = _OF_ENVIRONMENT if names & {"pyvenv.cfg", "conda-meta"} else ()
        folders = []
        for entry in entries:
            if entry.name.startswith(".") or entry.name in LEFT_OUT or entry.name.casefold() in without:
                continue
            left -= 1
            if left < 0:
                yield place, f"there are more than {MOST_ENTRIES} files and folders"
                return
            if entry.is_dir(follow_symlinks=False):
                if not os.path.lexists(os.path.join(entry.path, "functional", "core.py")):  # this package
                    folders.append(Path(entry.path))
            else:
                linked = entry.is_symlink() and (may_answer(entry.name) or not entry.is_file())
                yield Path(entry.path), "it is a link" if linked else ""
        waiting += reversed(folders)


def content_of(path):
    """The bytes of a file, of a notebook without its outputs. OSError or ValueError if it cannot be an answer: a link,
    a pipe, too large, in another encoding."""
    kind = os.lstat(path).st_mode
    if stat.S_ISLNK(kind) or not stat.S_ISREG(kind):
        raise ValueError("it is a link" if stat.S_ISLNK(kind) else "it is not a regular file")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    is_notebook = path.name.lower().endswith(".ipynb")
    most = MOST_NOTEBOOK if is_notebook else MOST_BYTES
    with open(os.open(path, flags), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        advice = ": clear its outputs and hand it in again" if is_notebook else ""
        raise ValueError(f"it is larger than {most >> 20} MiB{advice}")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or content[:200].count(0) > len(content[:200]) // 3:
        raise ValueError("it is UTF-16; save it as UTF-8 and hand it in again")
    if not is_notebook and content.lstrip()[:1] == b"{":
        try:
            without_outputs(content)
        except ValueError:  # Python that begins with a set
            return content
        raise ValueError("it is a notebook; give its name the ending .ipynb and hand it in again")
    if is_notebook:
        content = without_outputs(content)
        if len(content) > MOST_BYTES:
            raise ValueError(f"its code is larger than {MOST_BYTES >> 20} MiB")
    return content


# --- notebooks -------------------------------------------------------------------------------------------------------


def without_outputs(notebook):
    """A notebook with nothing but its cells' kinds and texts: the same for every time that it is saved. The tests of
    nbgrader are no code of the student's. ValueError if it is no notebook."""
    try:
        read = json.loads(notebook)
        cells = read["cells"] if "cells" in read else [cell for sheet in read["worksheets"] for cell in sheet["cells"]]
        source = "source" if "cells" in read else "input"  # of code, before version 4
        cells = [(str(c["cell_type"]), c[source] if source in c else c["source"], _is_test(c)) for c in cells]
        texts = [(kind, text if isinstance(text, str) else "".join(text), test) for kind, text, test in cells]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("it is not a notebook") from None
    kept = [{"cell_type": "test" if test else kind, "source": text} for kind, text, test in texts]
    return json.dumps({"cells": kept}).encode()


def _is_test(cell):
    """Whether a cell is a test of nbgrader's, not the student's code."""
    about = (cell.get("metadata") or {}).get("nbgrader") or {}
    return about.get("grade", False) and not about.get("solution", False)


def cells_of(notebook):
    """[(number, kind, text)] of a notebook without outputs; all cells are counted, from 1."""
    return [(n, cell["cell_type"], cell["source"]) for n, cell in enumerate(json.loads(notebook)["cells"], 1)]
