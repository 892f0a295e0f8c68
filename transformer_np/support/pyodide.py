"""Pyodide, the Python of a browser: its version, its address, and copies of the files that a page needs."""

import hashlib
import json
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path

from .files import read_json

VERSION = "314.0.7"  # has all packages that this one depends on
LOCK = "pyodide-lock.json"
LOADER = "pyodide.mjs"
_CORE = (LOADER, "pyodide.asm.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")  # .mjs or .js


def address(version=VERSION):
    """Where the loader of a Pyodide takes its packages."""
    return f"https://cdn.jsdelivr.net/pyodide/v{version}/full/"


def read_lock(folder):
    """The lock file of a Pyodide in a folder, {"info": …, "packages": {name: …}}. ValueError if there is none."""
    if not Path(folder).is_dir():
        raise ValueError(f"there is no folder {folder}: --pyodide needs the folder of a full Pyodide distribution")
    for name in (LOCK, LOADER):
        if not (Path(folder) / name).is_file():
            raise ValueError(f"{folder} contains no {name}: --pyodide needs the folder of a full Pyodide distribution")
    return read_json(Path(folder) / LOCK)


def copied(folder, lock, packages, others=()):
    """{name: bytes} of the files of a Pyodide in a folder, with these packages of its lock file and what they need.

    others: file names of packages that come from elsewhere. Raises ValueError for a package that is missing.
    """
    folder, entries = Path(folder), needed(lock, packages)
    names = [name for name in _CORE if (folder / name).is_file()]
    for name, entry in entries.items():
        if entry["file_name"] in others:
            continue
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


# --- packages that Pyodide does not have -----------------------------------------------------------------------------


def wheel_of(files, name, version):
    """(file name, bytes) of a wheel with these files, {path in it: bytes}, of pure Python."""
    info, content = f"{name}-{version}.dist-info", BytesIO()
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: transformer_np\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    write_archive(content, {**files, f"{info}/RECORD": record.encode()})
    return f"{name}-{version}-py3-none-any.whl", content.getvalue()


def write_archive(target, files):
    """Write a .zip file of {path: bytes}; the same content gives the same bytes."""
    with zipfile.ZipFile(target, "w") as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED, 9)  # its date is 1980


def installed_wheel(name):
    """The wheel of a package of pure Python that is installed here. ModuleNotFoundError if it is not."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        raise ModuleNotFoundError(f"the site needs {name}: pip install 'transformer-np[site]'") from None
    files = {
        file.as_posix(): Path(file.locate()).read_bytes()
        for file in found.files
        if file.suffix not in (".pyc", "") and ".." not in file.parts and not file.parts[0].endswith(".dist-info")
    }
    return wheel_of(files, name.replace("-", "_"), found.version)


def entry_of(wheel, content, depends, modules):
    """The entry of a wheel in a lock file: a cell that imports one of the modules has Pyodide fetch it."""
    name, version = wheel.split("-")[:2]
    return {
        "name": name.replace("_", "-"), "version": version, "file_name": wheel, "install_dir": "site",
        "sha256": hashlib.sha256(content).hexdigest(), "package_type": "package", "imports": modules,
        "depends": depends, "unvendored_tests": False,
    }  # fmt: skip
