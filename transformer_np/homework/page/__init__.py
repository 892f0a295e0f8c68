"""The homework as a folder of static files: Python runs in the browser (Pyodide), nothing is installed.

The page's own files are in `files/`; `tab.py` and `split.py` are what runs there in Python. The editor,
`files/codemirror.js`, is made by `files/codemirror.entry.js`.
"""

import hashlib
import inspect
import json
import zipfile
from io import BytesIO
from pathlib import Path

from ...support.files import read_json, write_atomically
from ..limit import GRACE, SECONDS
from ..path import all_exercises, chapters, own_exercises, own_folder
from ..stubs import difficulty, pieces_of_file
from .tab import default

PYODIDE = "314.0.7"  # has all that this package needs
ADDRESS = "https://cdn.jsdelivr.net/pyodide/v{}/full/"  # where Pyodide's own loader takes its packages
FILES = Path(__file__).parent / "files"
_PACKAGE = Path(__file__).parents[2]
_LEFT_OUT = {  # what no exercise needs
    "bench", "explorer", "finished", "grading", "lecture", "notebooks", "page/files", "plots", "pretrained", "tasks",
}  # fmt: skip
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
LOCK = "pyodide-lock.json"


def write_page(out, course, pyodide=None):
    """Write the page of a Course into the folder `out`, over the files of an earlier one; returns {file: bytes in it}.

    pyodide: a folder with Pyodide, which is copied; None to load it from the network. Raises NotADirectoryError or
    ValueError for a folder without Pyodide, OSError if a file cannot be written.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; name a folder")
    files = {file.name: file.read_bytes() for file in sorted(FILES.iterdir()) if "entry" not in file.name}
    archive = package()
    name = f"transformer_np-{_hash(archive)}.zip"  # a new name for each content: the old one may be kept by a browser
    files[name] = archive
    settings = {
        "pyodide": ADDRESS.format(PYODIDE),
        "archive": name, "seconds": SECONDS, "grace": GRACE, "own": OWN if own_exercises() else "",
    }  # fmt: skip
    if pyodide is not None:
        local = copied(pyodide, ["numpy"])
        settings["pyodide"] = f"{next(iter(local)).partition('/')[0]}/"
        files |= local
    files["course.json"] = json.dumps({**settings, **described(course)}, ensure_ascii=False).encode()
    for old in out.glob("transformer_np-*.zip"):
        if old.name != name:
            old.unlink()
    for path, content in files.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out / path, lambda temporary, content=content: temporary.write_bytes(content))
    return {path: len(content) for path, content in files.items()}


# --- the course -------------------------------------------------------------------------------------------------------

OWN = "exercises"  # the folder of a teacher's own exercises in the archive


def described(course):
    """What the page shows of a Course, and the parts from which it puts homework.py together."""
    head, pieces = pieces_of_file(course.exercises)
    found = []
    for (title, notebook, _), (heading, exercises) in zip(chapters(course.exercises), pieces, strict=True):
        here = []
        for exercise, comment, text in exercises:
            here.append(
                {
                    "name": exercise.name, "about": f"{difficulty(exercise)}, {exercise.section}", "hints": exercise.hints,
                    "task": paragraphs(inspect.getdoc(exercise.reference)), "comment": comment, "stub": text,
                    "text": default(exercise), "points": course.points[exercise.name],
                    "extended": exercise.name in course.extended,
                }
            )  # fmt: skip
        found.append({"title": title or "Exercises", "notebook": notebook, "heading": heading, "exercises": here})
    return {"title": course.title, "deadline": course.deadline, "head": head, "chapters": found}


def paragraphs(docstring):
    """A docstring as [[kind, text]]: "text" for prose, whose lines may be broken anew, "code" for formulas and shapes."""
    found = []
    for part in docstring.split("\n\n"):
        lines = part.splitlines()
        if all(line.startswith("    ") for line in lines):
            found.append(["code", inspect.cleandoc(part)])
        elif any("->" in line for line in lines):
            found.append(["code", part])
        else:
            found.append(["text", " ".join(line.strip() for line in lines)])
    return found


# --- Python's files ---------------------------------------------------------------------------------------------------


def package():
    """The bytes of a .zip file with the package as far as the homework needs it, and a teacher's own exercises."""
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, file in _contents():
            entry = zipfile.ZipInfo(path)  # of 1980: the same content is the same file
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    return content.getvalue()


def _contents():
    for file in sorted(_PACKAGE.rglob("*")):
        name = file.relative_to(_PACKAGE).as_posix()
        is_part = file.suffix in (".py", ".md", ".toml", ".txt") and "__pycache__" not in name
        if is_part and not any(f"/{name}".startswith(f"/{out}/") or f"/{out}/" in f"/{name}" for out in _LEFT_OUT):
            yield f"transformer_np/{name}", file
    if own_exercises():
        sheets = {inspect.getsourcefile(type_or_function.reference) for type_or_function in own_exercises().values()}
        for file in sorted(own_folder().glob("*.py")):
            yield f"{OWN}/{file.name}", file
            if str(file) in sheets and file.with_suffix(".md").exists():
                yield f"{OWN}/{file.stem}.md", file.with_suffix(".md")


def copied(folder, packages):
    """{path: bytes} of the files of a Pyodide in a folder, with these packages and what they need."""
    folder = Path(folder)
    if not (folder / LOCK).is_file():
        raise ValueError(f"{folder} contains no {LOCK}: --pyodide needs the folder of a full Pyodide distribution")
    lock = read_json(folder / LOCK)
    lock["packages"] = needed(lock, packages, folder)
    names = [name for name in CORE if (folder / name).is_file()]
    if "pyodide.mjs" not in names:
        raise ValueError(f"{folder} contains no pyodide.mjs: --pyodide needs the folder of a full Pyodide distribution")
    names += [entry["file_name"] for entry in lock["packages"].values()]
    to = f"pyodide-{_hash((folder / 'pyodide.asm.wasm').read_bytes())}"  # a browser may keep files under this name forever
    files = {f"{to}/{name}": (folder / name).read_bytes() for name in names}
    return {**files, f"{to}/{LOCK}": json.dumps(lock).encode()}


def needed(lock, packages, folder):
    """The entries of a lock file for these packages and for what they depend on."""
    found, left = {}, list(packages)
    while left:
        name = left.pop().lower().replace("_", "-")
        if name in found:
            continue
        entry = lock["packages"].get(name)
        if entry is None or not (folder / entry["file_name"]).is_file():
            raise ValueError(
                f"{folder} has no package {name}: --pyodide needs the folder of a full Pyodide distribution"
            )
        found[name] = entry
        left += entry["depends"]
    return found


def _hash(content):
    return hashlib.sha256(content).hexdigest()[:12]
