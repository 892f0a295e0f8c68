import importlib.util
import json
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from . import add_command, add_pyodide, say_folder

PACKAGES = ["numpy", "matplotlib", "ipython", "micropip", "ssl", "sqlite3", "jedi", "threadpoolctl", "safetensors"]
WIDGETS = ["comm", "ipywidgets", "jupyterlab-widgets", "widgetsnbextension"]  # the sliders
STARTED = ["micropip", "piplite", "ipykernel", "comm", "pyodide-kernel", "jedi", "ipython"]  # with the kernel
EXTENSIONS = ("@jupyterlite/pyodide-kernel-extension", "@jupyter-widgets/jupyterlab-manager")
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
    config = {"appName": "transformer_np", "exposeAppInBrowser": True, "litePluginSettings": {KERNEL: settings}}
    (folder / "jupyter-lite.json").write_text(
        json.dumps({"jupyter-lite-schema-version": 0, "jupyter-config-data": config}), "utf-8"
    )
    command = [sys.executable, "-m", "jupyterlite_core", "build", "--contents", contents, "--output-dir", out]
    command += ["--apps", "lab", "--apps", "notebooks", "--apps", "tree", "--no-sourcemaps", "--no-libarchive"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(out, ignore_errors=True)
        raise OSError(f"JupyterLite was not built: {(done.stderr or done.stdout).strip()[-500:]}")
    _without_other_extensions(out)
    return len(texts())


def _without_other_extensions(out):
    """Leave out the extensions that happen to be installed for JupyterLab: they may be made for another version."""
    path = out / "jupyter-lite.json"
    config = json.loads(path.read_text("utf-8"))
    found = config["jupyter-config-data"]["federated_extensions"]
    for extension in [one for one in found if one["name"] not in EXTENSIONS]:
        found.remove(extension)
        shutil.rmtree(out / "extensions" / extension["name"], ignore_errors=True)
    path.write_text(json.dumps(config), "utf-8")


def _python(folder):
    """({file of static/pyodide: bytes}, the settings of the kernel).

    The lock file also lists this package, the sliders and the kernel's own packages: a cell that imports one has the
    browser fetch it, and no cell installs anything.
    """
    from ..support.pyodide import ADDRESS, LOADER, LOCK, copied, entry_of, installed_wheel, read_lock

    lock = read_lock(folder) if folder else _lock_of_network(ADDRESS)
    known, wheels = lock["packages"], {"transformer-np": _own_wheel(), **_kernel_wheels(lock["info"]["python"])}
    wheels |= {name: installed_wheel(name) for name in WIDGETS if name not in wheels}
    wheels |= {name: installed_wheel(name) for name in ("tqdm",) if name not in known}
    needed = [name for name in (*PACKAGES, "tqdm", *WIDGETS) if name in known or name in wheels]
    depends = {"transformer-np": needed, "ipywidgets": ["comm", "ipython"], "pyodide-kernel": ["comm", "ipython"]}
    for name, (file, content) in wheels.items():
        known[name] = entry_of(file, content, [n for n in depends.get(name, ()) if n != name], [name.replace("-", "_")])
    files, packages = dict(wheels.values()), [*needed, *wheels]
    options = {"packages": STARTED}  # otherwise the kernel would ask the network for them
    if folder:
        older = Path(folder) / "pyodide.js"  # of a classic worker, in which the kernels before 314 run
        loader = older.name if lock["info"]["python"] < "3.13" else LOADER
        files |= {loader: older.read_bytes()} if loader == older.name else {}
        settings = {"pyodideUrl": f"./static/pyodide/{loader}", "loadPyodideOptions": options}
        return {**copied(folder, lock, packages, files), **files}, {**settings, "disablePyPIFallback": True}
    for entry in known.values():
        if entry["file_name"] not in files:
            entry["file_name"] = f"{ADDRESS}{entry['file_name']}"
    options["lockFileURL"] = f"./static/pyodide/{LOCK}"
    return {**files, LOCK: json.dumps(lock).encode()}, {
        "pyodideUrl": f"{ADDRESS}{LOADER}",
        "loadPyodideOptions": options,
    }


def _kernel_wheels(python):
    """{name: (file, bytes)} of the wheels that JupyterLite's kernel brings. ValueError if they need another Python."""
    from importlib.metadata import distribution

    kernel = distribution("jupyterlite-pyodide-kernel")
    made_for = import_module("jupyterlite_pyodide_kernel.constants").PYODIDE_VERSION
    if (made_for < "3") != (python < "3.13"):  # Pyodide's versions are 0.27 … 0.29, then 314
        raise ValueError(
            f"JupyterLite's kernel {kernel.version} needs Pyodide {made_for}, but the folder has Python {python}: name "
            "another folder, or install another version of jupyterlite-pyodide-kernel"
        )
    files = kernel.files
    found = sorted(Path(file.locate()) for file in files if file.suffix == ".whl")
    newest = {file.name.split("-")[0].replace("_", "-"): file for file in found}  # of two versions, the later
    return {name: (file.name, file.read_bytes()) for name, file in newest.items()}


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
