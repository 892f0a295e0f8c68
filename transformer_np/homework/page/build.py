"""The page as a folder of static files. Its editor, `files/codemirror.js`, is made from `files/codemirror.entry.js`."""

import inspect
import json
from io import BytesIO
from pathlib import Path

from ...support.files import write_atomically
from ...support.pyodide import address, copied, read_lock, short_hash, write_archive
from ..course import OWN
from ..limit import SECONDS
from ..path import chapters, own_files
from ..stubs import effort, pieces_of_file
from .tab import default

_FILES = Path(__file__).parent / "files"
_PACKAGE = Path(__file__).parents[2]
_NOT_NEEDED = {"bench", "explorer", "grading", "lecture", "page/files", "plots", "pretrained", "tasks"}


def write_page(out, course, pyodide=None):
    """Write the page of a Course into the folder `out`, over an earlier one; returns {file: bytes in it}.

    pyodide: a folder with Pyodide, which is copied; None to load it from the network. Raises NotADirectoryError if
    `out` is a file, ValueError for a folder with another page or without Pyodide, OSError if a file cannot be written.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; name a folder")
    if (out / "index.html").exists() and not (out / "course.json").exists():
        raise ValueError(f"{out} contains another page, and nothing was written; name another folder")
    files = {file.name: file.read_bytes() for file in sorted(_FILES.iterdir()) if "entry" not in file.name}
    python = {}
    if pyodide is not None:
        python = copied(pyodide, read_lock(pyodide), ["numpy"])
    home = f"pyodide-{short_hash(python['pyodide.asm.wasm'])}/" if python else address()
    files |= {f"{home}{name}": content for name, content in python.items()}
    own = own_files(course.points)
    archive = package(own)
    name = f"transformer_np-{short_hash(archive)}.zip"
    files[name] = archive
    settings = {"pyodide": home, "archive": name, "seconds": SECONDS, "own": OWN if own else ""}
    files["course.json"] = json.dumps({**settings, **described(course)}, ensure_ascii=False).encode()
    for old in (*out.glob("transformer_np-*.zip"), *out.glob("pyodide-*/*")):
        if old.relative_to(out).as_posix() not in files:
            old.unlink()
    for path, content in files.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out / path, lambda temporary, content=content: temporary.write_bytes(content))
    return {path: len(content) for path, content in files.items()}


# --- the course ------------------------------------------------------------------------------------------------------


def described(course):
    """What the page shows of a Course, and the parts from which it puts homework.py together."""
    head, pieces = pieces_of_file(course.exercises)
    found = []
    for (title, notebook, _), (heading, exercises) in zip(chapters(course.exercises), pieces, strict=True):
        here = [_described(course, *parts) for parts in exercises]
        found.append({"title": title or "Exercises", "notebook": notebook, "heading": heading, "exercises": here})
    return {"title": course.title, "deadline": course.deadline, "head": head, "chapters": found}


def _described(course, exercise, comment, stub):
    return {
        "name": exercise.name, "about": effort(exercise), "hints": exercise.hints,
        "task": paragraphs(inspect.getdoc(exercise.reference) or ""), "comment": comment, "stub": stub,
        "text": default(exercise), "worth": course.worth(exercise.name),
        "extended": exercise.name in course.extended,
    }  # fmt: skip


def paragraphs(docstring):
    """A docstring as [[kind, text]]: "text" for prose, which may be wrapped, "code" for formulas and shapes."""
    found = []
    for part in filter(None, docstring.split("\n\n")):
        if all(line.startswith("    ") for line in part.splitlines()):
            found.append(["code", inspect.cleandoc(f"\n{part}")])
        else:
            found.append(["code", part] if "->" in part else ["text", " ".join(part.split())])
    return found


# --- Python's files --------------------------------------------------------------------------------------------------


def package(own):
    """The bytes of a .zip file with what the homework needs of the package, and a teacher's files {name: bytes}."""
    found = {}
    for file in sorted(_PACKAGE.rglob("*")):
        name = file.relative_to(_PACKAGE).as_posix()
        needed = not any(f"/{folder}/" in f"/{name}" for folder in (*_NOT_NEEDED, "__pycache__"))
        is_text_of_notebook = file.suffix == ".md" and file.parent.name == "notebooks"
        if needed and file.suffix in (".py", ".md", ".toml", ".txt") and not is_text_of_notebook:
            found[f"{_PACKAGE.name}/{name}"] = file.read_bytes()
    content = BytesIO()
    write_archive(content, found | {f"{OWN}/{name}": text for name, text in own.items()})
    return content.getvalue()
