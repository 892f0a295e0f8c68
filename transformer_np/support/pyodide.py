"""Pyodide, the Python of a browser: its version, its address, and copies of the files that a page needs."""

import hashlib
import json
from pathlib import Path

from .files import read_json

VERSION = "314.0.7"  # has all packages that this one depends on
ADDRESS = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"  # where its own loader takes packages
LOCK = "pyodide-lock.json"
LOADER = "pyodide.mjs"
_CORE = (LOADER, "pyodide.asm.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")  # .mjs or .js


def read_lock(folder):
    """The lock file of a Pyodide in a folder, {"info": …, "packages": {name: …}}. ValueError if there is none."""
    for name in (LOCK, LOADER):
        if not (Path(folder) / name).is_file():
            raise ValueError(f"{folder} contains no {name}: --pyodide needs the folder of a full Pyodide distribution")
    return read_json(Path(folder) / LOCK)


def copied(folder, lock, packages):
    """{name: bytes} of the files of a Pyodide in a folder, with these packages of its lock file and what they need.

    Raises ValueError for a package that is missing.
    """
    folder, entries = Path(folder), needed(lock, packages)
    names = [name for name in _CORE if (folder / name).is_file()]
    for name, entry in entries.items():
        if not (folder / entry["file_name"]).is_file():
            raise ValueError(f"{folder} lacks the package {name}: --pyodide needs a full Pyodide distribution")
        names.append(entry["file_name"])
    files = {name: (folder / name).read_bytes() for name in names}
    return {**files, LOCK: json.dumps({**lock, "packages": entries}).encode()}


def needed(lock, packages):
    """The entries of a lock file for these packages and for what they depend on."""
    found, left = {}, list(packages)
    while left:
        name = left.pop(0).lower().replace("_", "-")
        if name not in found:
            if name not in lock["packages"]:
                raise ValueError(f"this Pyodide has no package {name}: --pyodide needs a full Pyodide distribution")
            found[name] = lock["packages"][name]
            left += found[name]["depends"]
    return found


def short_hash(content):
    """For a file name that changes with its content: a browser may keep a file under its name forever."""
    return hashlib.sha256(content).hexdigest()[:12]
