import os
from pathlib import Path
from tempfile import TemporaryDirectory

from ..support.files import write_text
from . import add_command, quoted


def add_parser(subparsers):
    parser = add_command(subparsers, "start", run, "work")
    parser.add_argument("folder", metavar="DIR", help="a new or empty folder")
    help_text = "keep the solutions in the notebooks, and cut them into slides for `jupyter nbconvert --to slides`"
    parser.add_argument("--teacher", action="store_true", help=help_text)
    path = "only the sections for one lecture of 90 minutes, or for four lab sessions of 90 minutes, in their order"
    parser.add_argument("--path", choices=("lecture", "lab"), help=path)


def run(args):
    from ..homework import all_exercises
    from ..homework.record import EMPTY, FILE
    from ..homework.stubs import stub_file
    from ..notebooks.paths import path_notebooks
    from ..notebooks.texts import copy, copy_of, students_cells, teachers_cells, texts

    folder, notebooks, exercises = Path(args.folder), texts(), all_exercises()
    _check_free(folder)
    if not notebooks:
        what = "this installation has no notebooks: install the package from a wheel or a working copy"
        raise FileNotFoundError(what)
    cells_of = teachers_cells if args.teacher else students_cells
    parts = path_notebooks(args.path, cells_of, exercises) if args.path else ()
    if parts:
        files = {part.file: copy(part.cells, part.file.partition(".")[0], args.teacher) for part in parts}
    else:
        files = {f"{text.stem}.ipynb": copy_of(text, args.teacher) for text in notebooks}
    first, last, count = *(f(files) for f in (min, max)), len(files)
    files |= {"homework.py": stub_file(exercises.values()), FILE: EMPTY}
    _make(folder, files)

    print(f"{folder}: {count} notebooks and homework.py with {len(exercises)} exercises. Begin with {first}:")
    print(f"  jupyter lab {quoted(folder / first)}")
    print(f"  transformer-np homework check {quoted(folder / 'homework.py')}")
    if args.teacher:
        print(f"  jupyter nbconvert --execute --to slides {quoted(folder / last)}    (slides, with their results)")
    for part in parts:
        print(f"{part.minutes:>5} min  {part.file}: {'; '.join(heading for heading, _ in part.times)}")


def _make(folder, files):
    """Write the files aside, then move them: a process that is killed leaves no half of a folder."""
    folder = Path(os.path.realpath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder.parent if os.access(folder.parent, os.W_OK) else folder
    with TemporaryDirectory(prefix=f".{folder.name}.", dir=beside) as aside:
        whole = Path(aside) / folder.name
        whole.mkdir()
        for name, text in files.items():
            write_text(whole / name, text)
        if not folder.exists():
            whole.rename(folder)
            return
        for file in whole.iterdir():  # the folder itself stays: somebody's shell may be in it
            file.rename(folder / file.name)


def _check_free(folder):
    """Raise ValueError or OSError unless the folder can be filled without touching a file that is there."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a new folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(f"{folder} already contains files, and nothing was written; name a new or an empty folder")
    above = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not above.is_dir():
        raise ValueError(f"{folder} cannot be created: {above} is a file; name another folder")
    if not os.access(above, os.W_OK):
        raise PermissionError(f"{folder} cannot be written: no permission in {above}; name another folder")
