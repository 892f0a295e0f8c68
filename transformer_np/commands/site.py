import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from . import add_command, add_pyodide, say_folder

PACKAGES = ["numpy", "matplotlib", "ipython", "micropip", "ssl", "sqlite3", "jedi", "threadpoolctl", "safetensors"]
WIDGETS = ["comm", "ipywidgets", "jupyterlab-widgets", "widgetsnbextension"]  # the sliders
KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"


def add_parser(subparsers):
    parser = add_command(subparsers, "site", run, "transformer-np site --out site")
    parser.add_argument("--out", required=True, metavar="DIR", help="a new or empty folder for the site")
    add_pyodide(parser)


def run(args):
    from ..support.platform import check_processes

    check_processes("JupyterLite needs")
    for module in ("jupyterlite_core", "jupyterlite_pyodide_kernel"):
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError("the site is made with JupyterLite: pip install 'transformer-np[site]'")
    out = Path(args.out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} is not an empty folder, and nothing was written; name a new one")
    python, settings = _python(args.pyodide)
    with TemporaryDirectory() as folder:
        number = _make(Path(folder), out.resolve(), settings)
    place = out / "static" / "pyodide"
    place.mkdir(parents=True)
    for name, content in python.items():
        (place / name).write_bytes(content)
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    say_folder(args.out, f"JupyterLite with {number} notebooks", size, args.pyodide)
    return 0


def _make(folder, out, settings):
    """Build JupyterLite with the students' notebooks; returns their number."""
    from ..homework.path import all_exercises
    from ..homework.record import EMPTY, FILE
    from ..homework.stubs import stub_file
    from ..notebooks.in_a_browser import browser_copy
    from ..notebooks.texts import texts

    contents = folder / "contents"
    contents.mkdir()
    for text in texts():
        (contents / f"{text.stem}.ipynb").write_text(browser_copy(text), "utf-8")
    (contents / "homework.py").write_text(stub_file(all_exercises().values()), "utf-8")
    (contents / FILE).write_text(EMPTY, "utf-8")
    config = {"appName": "transformer_np", "litePluginSettings": {KERNEL: settings}}
    (folder / "jupyter-lite.json").write_text(
        json.dumps({"jupyter-lite-schema-version": 0, "jupyter-config-data": config}), "utf-8"
    )
    command = [sys.executable, "-m", "jupyterlite_core", "build", "--contents", contents, "--output-dir", out]
    command += ["--apps", "lab", "--apps", "notebooks", "--apps", "tree", "--no-sourcemaps", "--no-libarchive"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(out, ignore_errors=True)
        raise OSError(f"JupyterLite was not built: {(done.stderr or done.stdout).strip()[-500:]}")
    return len(texts())


def _python(folder):
    """({file of static/pyodide: bytes}, the settings of the kernel): the lock file lists this package, so that a cell
    which imports it has the browser fetch it, and no cell installs anything."""
    from ..support.pyodide import ADDRESS, LOADER, LOCK, copied, entry_of, installed_wheel, read_lock

    lock = read_lock(folder) if folder else _lock_of_network(ADDRESS)
    known = lock["packages"]
    name, content = _own_wheel()
    wheels = {"transformer-np": (name, content, ["transformer_np"])}
    for needed in (*WIDGETS, "tqdm"):
        if needed not in known:
            wheels[needed] = (*installed_wheel(needed), [needed.replace("-", "_")])
    present = [name for name in (*PACKAGES, "tqdm") if name in known] + [
        name for name in wheels if name != "transformer-np"
    ]
    for package, (name, content, modules) in wheels.items():
        depends = [other for other in present if other != package] if package == "transformer-np" else _needs(package)
        known[package] = entry_of(name, content, [other for other in depends if other in (*known, *wheels)], modules)
    files = {name: content for name, content, _ in wheels.values()}
    if folder:
        local = copied(folder, lock, [*present, "transformer-np"], files)
        return {**local, **files}, {"pyodideUrl": f"./static/pyodide/{LOADER}", "disablePyPIFallback": True}
    for entry in known.values():
        if entry["file_name"] not in files:
            entry["file_name"] = f"{ADDRESS}{entry['file_name']}"
    options = {"lockFileURL": f"./static/pyodide/{LOCK}"}
    settings = {"pyodideUrl": f"{ADDRESS}{LOADER}", "disablePyPIFallback": True, "loadPyodideOptions": options}
    return {**files, LOCK: json.dumps(lock).encode()}, settings


def _needs(package):
    return {"ipywidgets": ["ipython", "comm", "jupyterlab-widgets", "widgetsnbextension"]}.get(package, [])


def _lock_of_network(address):
    from urllib.request import urlopen

    from ..support.pyodide import LOCK

    try:
        with urlopen(f"{address}{LOCK}", timeout=30) as answer:
            return json.loads(answer.read())
    except (OSError, ValueError) as error:
        raise OSError(f"{address}{LOCK} cannot be read ({error}): pass --pyodide with a folder") from None


def _own_wheel():
    """This package as a wheel, without what a notebook in a browser cannot use."""
    from .. import __version__
    from ..support.pyodide import wheel_of

    root = Path(__file__).parents[1]
    files = {}
    for file in sorted(root.rglob("*")):
        name = file.relative_to(root.parent).as_posix()
        if file.is_file() and not {"__pycache__", "finished", "sandbox"} & set(file.parts):
            files[name] = file.read_bytes()
    for text in sorted((root.parent / "notebooks" / "text").glob("*_results.json")):  # in a working copy
        files[f"{root.name}/notebooks/{text.name}"] = text.read_bytes()
    return wheel_of(files, root.name, __version__)
