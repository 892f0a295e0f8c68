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
HELP = "pydoc-data"  # the text of Python's help, on which notebooks train; some Pyodides lack it
STARTED = ["micropip", "piplite", "ipykernel", "comm", "pyodide-kernel", "jedi", "ipython"]  # with the kernel
EXTENSIONS = ("@jupyterlite/pyodide-kernel-extension", "@jupyter-widgets/jupyterlab-manager")
KERNEL, KERNEL_PACKAGE = "@jupyterlite/pyodide-kernel-extension:kernel", "jupyterlite-pyodide-kernel"


def add_parser(subparsers):
    parser = add_command(subparsers, "site", run, "--out site")
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
    settings = {"jupyter-lite-schema-version": 0, "jupyter-config-data": config}
    (folder / "jupyter-lite.json").write_text(json.dumps(settings), "utf-8")
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

    The list of packages also has this package, the sliders and the kernel's own packages: a cell that imports one has
    the browser fetch it, and no cell installs anything.
    """
    from pydoc_data import topics

    from ..support.pyodide import LOADER, copied, installed_wheel, read_lock, wheel_of

    kernel, version = _kernel()
    lock = read_lock(folder) if folder else {"packages": {}}
    known, wheels = lock["packages"], {"transformer-np": _own_wheel(), **kernel}
    is_new = version >= "3"  # Pyodide's versions are 0.27 … 0.29, then 314; kernels before 314 run in a classic worker
    if folder and is_new != (lock["info"]["python"] >= "3.13"):
        has = f"{folder} has Python {lock['info']['python']}"
        how = f"name another folder, or install another version of {KERNEL_PACKAGE}"
        raise ValueError(f"the installed {KERNEL_PACKAGE} needs Pyodide {version}, but {has}: {how}")
    wheels |= {name: installed_wheel(name) for name in ("tqdm", *WIDGETS) if name not in wheels and name not in known}
    if HELP not in known:
        help_texts = {"pydoc_data/__init__.py": b"", "pydoc_data/topics.py": Path(topics.__file__).read_bytes()}
        wheels[HELP] = wheel_of(help_texts, "pydoc_data", "1.0.0")
    entries = _entries(wheels, PACKAGES if not folder else [name for name in PACKAGES if name in known])
    files = dict(wheels.values())
    loader = LOADER if is_new else "pyodide.js"
    settings = {"pyodideUrl": f"./static/pyodide/{loader}", "loadPyodideOptions": {"packages": STARTED}}
    if not folder:
        return {**files, loader: _loader(version, entries, is_new)}, settings
    files[loader] = (Path(folder) / loader).read_bytes()
    lock["packages"] |= entries
    return {**copied(folder, lock, entries, files), **files}, {**settings, "disablePyPIFallback": True}


def _entries(wheels, packages):
    """The entries of the list of packages for {name: (file, bytes)}. packages: of Pyodide, which ours need"""
    from ..support.pyodide import entry_of

    needed = [*packages, "tqdm", HELP, *WIDGETS]
    depends = {"transformer-np": needed, "ipywidgets": ["comm", "ipython"], "pyodide-kernel": ["comm", "ipython"]}
    return {
        name: entry_of(file, content, [n for n in depends.get(name, ()) if n != name], [name.replace("-", "_")])
        for name, (file, content) in wheels.items()
    }


def _loader(version, entries, is_new):
    """A loader that takes Pyodide from its own address when a notebook is opened, as bytes."""
    from ..notebooks import __file__ as notebooks
    from ..support.pyodide import LOADER, address

    home = address(version)
    text = Path(notebooks).with_name("loader.js").read_text("utf-8")
    constants = f"const PYODIDE = {json.dumps(home)};\nconst OURS = {json.dumps(entries)};\n"
    if is_new:
        begin = f'import {{ loadPyodide as load, version }} from "{home}{LOADER}";\n'
        end = "export { version };\nexport const loadPyodide ="
    else:
        begin = f'importScripts("{home}pyodide.js");\nconst load = self.loadPyodide;\n'
        end = "self.loadPyodide ="
    return f"{begin}{constants}{text}{end} (options) => withOurs(load, options);\n".encode()


def _kernel():
    """({name: (file, bytes)} of the wheels that JupyterLite's kernel brings, the Pyodide for which it was made)."""
    from importlib.metadata import files

    wheels = [file for file in files(KERNEL_PACKAGE) if file.match("pypi/*.whl")]
    found = sorted(Path(file.locate()) for file in wheels)
    newest = {file.name.split("-")[0].replace("_", "-"): file for file in found}  # of two versions, the later
    version = import_module("jupyterlite_pyodide_kernel.constants").PYODIDE_VERSION
    return {name: (file.name, file.read_bytes()) for name, file in newest.items()}, version


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
    for text in sorted((root.parent / "notebooks" / "text").glob("[0-9]*")):  # in a working copy
        files[f"{root.name}/notebooks/{text.name}"] = text.read_bytes()
    return wheel_of(files, root.name, __version__)
