"""`new` and `verify`: a teacher's own exercises; `export`: exercises for other graders; `page`: for a browser."""

from pathlib import Path

from ..support.counts import counted
from . import add_command, add_pyodide, number_above_0, quoted, say_folder
from .homework_check import OF_OWN, add_choice, names_of


def add_teaching_parsers(subparsers):
    summary = "write a file with a small exercise that works, for you to change"
    new = add_command(subparsers, "new", run_new, "scaled --in my_exercises", summary)
    new.add_argument("name", metavar="NAME", help="the function that students write")
    folder = "folder for the file; created if necessary"
    new.add_argument("--in", dest="folder", required=True, metavar="DIR", help=folder)

    verify = add_command(subparsers, "verify", run_verify, "my_exercises", "report the problems of your own exercises")
    verify.add_argument("folder", metavar="DIR", help="the folder of the exercises")
    verify.add_argument("--only", nargs="+", metavar="NAME", help="verify only these exercises (default: all)")
    verify.add_argument(
        "--time-limit", type=number_above_0, default=10.0, metavar="SECONDS",
        help="for an answer, or for one mistake (default: 10)",
    )  # fmt: skip

    summary = "write a notebook with exercises and their tests for nbgrader or Otter"
    export = add_command(subparsers, "export", run_export, "source/attention --for nbgrader --only 02", summary)
    export.add_argument("folder", metavar="FOLDER", help="folder for homework.ipynb; created if necessary")
    export.add_argument(
        "--for", dest="grader", required=True, choices=("nbgrader", "otter"),
        help="nbgrader: a source notebook; otter: a notebook, and tests/ for `otter generate`",
    )  # fmt: skip
    export.add_argument(
        "--wheel", metavar="FILE", help="for otter: the wheel of this package that the autograder installs, if this "
        "version is not on the package index",
    )  # fmt: skip
    add_choice(export)

    summary = "write the homework as a web page that needs no installed Python"
    page = add_command(subparsers, "page", run_page, "--out page", summary)
    page.add_argument("--out", required=True, metavar="DIR", help="folder for the page's files; created if necessary")
    page.add_argument("--course", metavar="FILE.toml", help="only the exercises of this course, as `grade` reads it")
    page.add_argument("--exercises", metavar="DIR", help=OF_OWN)
    add_pyodide(page)


def run_page(args):
    from ..homework.course import opened
    from ..homework.page.build import write_page

    with opened(args.course, args.exercises) as course:
        sizes = write_page(args.out, course, args.pyodide)
        number = len(course.points)
    say_folder(args.out, counted(number, "exercise"), sum(sizes.values()), args.pyodide)


def run_export(args):
    from ..homework.course import OWN, opened
    from ..homework.export import NOTEBOOK, REQUIREMENTS, exported
    from ..support.files import write_new

    folder, wheel = Path(args.folder), args.wheel and Path(args.wheel)
    if wheel and (args.grader != "otter" or wheel.suffix != ".whl" or not wheel.is_file()):
        raise ValueError(f"--wheel {wheel} must be a file NAME.whl, and goes with --for otter")
    with opened(args.course) as course:
        names = names_of(args.only, course)
        texts = {folder / path: text for path, text in exported(course, names, args.grader, wheel).items()}
    write_new(texts)
    print(f"{folder / NOTEBOOK}: {counted(len(names), 'exercise')}.")
    if args.grader == "nbgrader":
        name = quoted(folder.resolve().name)
        print(f"In the course's folder, the parent of source/:  nbgrader generate_assignment {name}")
        return
    along = sorted(path.relative_to(folder).as_posix() for path in texts)
    along = [path for path in along if path.startswith(f"{OWN}/") or path.endswith(".whl")]
    command = f"otter generate -t {quoted(folder / 'tests')} -r {quoted(folder / REQUIREMENTS)}"
    if along:  # relative to the folder, in which Otter finds the requirements itself
        command = " ".join([f"cd {quoted(folder)} && otter generate -t tests", *map(quoted, along)])
    print(f"{folder / 'tests'}: one file per exercise. Make the autograder: {command}")
    if not wheel:
        print(f"It installs what {folder / REQUIREMENTS} names. Is this version on no package index? Pass its --wheel.")


def run_new(args):
    from ..homework.new import write_new

    path = write_new(args.name, args.folder)
    folder = quoted(args.folder)
    print(f"{path}: an exercise that works. Change it, then verify it:")
    print(f"  transformer-np homework verify {folder}")
    print(f"  transformer-np homework start work --exercises {folder}    (a student's file)")


def run_verify(args):
    from ..grading.verify import problems, told
    from ..homework import find
    from ..homework.limit import TimeLimit
    from ..homework.own import ExercisesError
    from ..homework.path import exercises_in, own_exercises

    wrong = 0
    try:
        with exercises_in(args.folder, TimeLimit(args.time_limit, ends_process=True)):
            exercises = [find(name) for name in (names_of(args.only, None) if args.only else own_exercises())]
            for exercise in exercises:
                found = problems(exercise, args.time_limit, ends_process=True)
                for problem in found:
                    print(told(exercise, problem), flush=True)
                wrong += len(found)
    except ExercisesError as error:
        print(error)
        return 1
    print(f"{counted(len(exercises), 'exercise')}: {f'{wrong} to correct' if wrong else 'nothing is wrong'}.")
    return 1 if wrong else 0
