import textwrap
from itertools import count
from pathlib import Path

from ..support.counts import counted
from . import COMMANDS, add_command, add_json, number_above_0, positive_number, quoted, seed
from .homework_check import (
    FILE,
    OF_OWN,
    WIDTH,
    add_choice,
    again,
    checks_of,
    command_on,
    course_of,
    found_file,
    message,
    names_of,
    run_check,
    run_status,
)
from .homework_grade import add_grade_parser
from .homework_run import run_training
from .homework_teach import add_teaching_parsers


def add_parser(subparsers):
    about = "Reimplement the library's functions and get feedback on each mistake."
    example = "example: transformer-np homework start work"
    parser = subparsers.add_parser("homework", help=COMMANDS["homework"], description=about, epilog=example)
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    summary = "create a file with the functions to write"
    start = add_command(actions, "start", run_start, "work --only softmax", summary)
    start.add_argument("folder", metavar="FOLDER", help=f"folder for {FILE}; created if necessary")
    help_text = f"FOLDER is your {FILE}: start this exercise over, and keep the old answer in a file beside it"
    start.add_argument("--reset", metavar="NAME", help=help_text)
    add_choice(start)
    _add(start, "--exercises")

    check = add_command(actions, "check", run_check, f"{FILE} softmax", "check the answers and explain mistakes")
    _add_file(check, optional=True)
    check.add_argument("name", nargs="?", metavar="NAME", help="check only this exercise (default: all, in order)")
    check.add_argument("--all", action="store_true", help="explain every wrong answer, not only the first")
    check.add_argument("--watch", action="store_true", help="check again at every save, until Ctrl-C")
    check.add_argument("--seed", type=seed, metavar="N", help="seed of the inputs (default: new inputs every time)")
    _add(check, "--course", "--exercises", "--time-limit")
    add_json(check, "the verdicts")

    hint = add_command(actions, "hint", run_hint, "softmax --level 2", "show a hint for an exercise, in four levels")
    hint.add_argument("name", metavar="NAME", help="the exercise")
    hint.add_argument(
        "--level", type=int, choices=(1, 2, 3, 4), default=1,
        help="1: a question; 2: also the equation; 3: also where to look; 4: also how one edit of your code makes it "
        "right, if one does (default: 1)",
    )  # fmt: skip
    hint.add_argument("--file", metavar="FILE", help=f"the file with the answers, for level 4 {_DEFAULT_FILE}")
    _add(hint, "--time-limit", "--course", "--exercises")

    status = add_command(actions, "status", run_status, FILE, "show a table of all exercises")
    _add_file(status, optional=True)
    _add(status, "--course", "--exercises", "--time-limit")
    add_json(status, "the verdicts")
    help_text = "draw the progress by chapter, with what the progress.json beside the file remembers"
    status.add_argument("-o", "--out", metavar="PICTURE", help=help_text)

    listing = add_command(actions, "list", run_list, "", "list all exercises by chapter")
    _add(listing, "--exercises")

    summary = "print the library's code, once the answer is right"
    solution = add_command(actions, "solution", run_solution, f"softmax --file {FILE}", summary)
    solution.add_argument("name", metavar="NAME", help="the exercise")
    solution.add_argument("--file", metavar="FILE", help=f"the file with the answers {_DEFAULT_FILE}")
    _add(solution, "--time-limit", "--course", "--exercises")

    summary = "train a small translator with the answers, and one with the library's functions"
    run = add_command(actions, "run", run_training, f"{FILE} train -o losses.png", summary)
    _add_file(run)
    run.add_argument("what", nargs="?", choices=("train",), help="the action")
    run.add_argument("--steps", type=positive_number, default=200, metavar="N", help="training steps (default: 200)")
    run.add_argument("-o", "--out", metavar="PICTURE", help="draw both loss curves: .png, .svg or .pdf")
    _add(run, "--time-limit", "--course", "--exercises")

    add_grade_parser(actions)
    add_teaching_parsers(actions)


_DEFAULT_FILE = f"(default: {FILE} in this folder or in its only subfolder with one)"
_SHARED = {
    "--exercises": {"metavar": "DIR", "help": OF_OWN},
    "--course": {"metavar": "FILE.toml", "help": "the course (default: course.toml beside the file, or all exercises)"},
    "--time-limit": {
        "type": number_above_0, "default": 10.0, "metavar": "SECONDS",
        "help": "stop an exercise that takes longer, and show the line that was running (default: 10)",
    },
}  # fmt: skip


def _add(parser, *names):
    for name in names:
        parser.add_argument(name, **_SHARED[name])


def _add_file(parser, optional=False):
    default = f" {_DEFAULT_FILE}" if optional else ""
    help_text = f"the file with the answers, or a folder of files{default}"
    parser.add_argument("file", nargs="?" if optional else None, metavar="FILE", help=help_text)


# --- start, hint -----------------------------------------------------------------------------------------------------


def run_start(args):
    from ..homework.course import FILE as COURSE
    from ..homework.course import text_of
    from ..support.files import write_new

    if args.reset:
        return _reset(args)
    folder = Path(args.folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder, or an exercise with --reset")
    names, texts = _chosen(args, folder)
    there = folder / COURSE
    if there in texts and there.exists() and text_of(there) == texts[there]:
        del texts[there]
    write_new(texts)
    path, number = folder / FILE, counted(len(names), "exercise")
    print(f"{path}: {number}, the first is {names[0]}. Implement it, save the file, then check it:")
    print(f"  transformer-np homework check {quoted(path)}")
    print(f"  transformer-np homework check {quoted(path)} --watch    (again at every save)")
    print(f"  {command_on('hint', names[0], path)}")


def _reset(args):
    """Write the stub of an exercise in place of the answer, which is kept in a file of its own."""
    from ..data.files import read_utf8
    from ..homework import find
    from ..homework.stubs import with_stub
    from ..support.files import write_text

    file = Path(args.folder) / FILE if Path(args.folder).is_dir() else Path(args.folder)
    if file.suffix.lower() == ".ipynb":
        raise ValueError(
            f"{file} is a notebook, and --reset only rewrites .py files: copy the cell from a new notebook"
        )
    with course_of(args, file):
        name = find(args.reset).name
        text, old, line = with_stub(read_utf8(file), find(args.reset))
    number = next(n for n in count(1) if not _aside(file, name, n).exists())
    write_text(_aside(file, name, number), old)
    write_text(file, text)
    print(f"{file}, line {line}: {name} is a stub again. The old answer is in {_aside(file, name, number)}")


def _aside(file, name, number):
    return file.with_name(f"{file.stem}.{name}.{number}.txt")  # no .py file: it would be a second definition


def _chosen(args, folder):
    """The names of the exercises to start with, and the {path: text} of all files: the stubs, and for a choice of
    exercises a course.toml with a copy of a teacher's own."""
    from ..homework.course import FILE as COURSE
    from ..homework.course import OWN, opened, released, text_of, written
    from ..homework.path import all_exercises, own_files, own_folder
    from ..homework.stubs import stub_file

    with opened(args.course, args.exercises) as course:
        names = names_of(args.only, course)
        texts = {folder / FILE: stub_file([all_exercises()[name] for name in names])}
        own = own_files(names)
        if own_folder() != (folder / OWN).resolve():
            texts |= {folder / OWN / name: content for name, content in own.items()}
        if args.course or args.only or args.exercises:
            text = text_of(args.course) if args.course else written(names)
            texts[folder / COURSE] = released(text, folder, own_folder() if own else None)
        return names, texts


def run_hint(args):
    from ..homework import find
    from ..homework.path import chapter_line, chapters
    from ..homework.stubs import difficulty

    with course_of(args, found_file(args.file, required=args.level == 4)):
        exercise = find(args.name)
        repair = _repair(args, exercise) if args.level == 4 else ""
        ((title, notebook, _),) = chapters([exercise])
    chapter = chapter_line(title, notebook).replace(" (", ", ").rstrip(")")
    print("; ".join(filter(None, [f"{exercise.name}: {difficulty(exercise)}", exercise.section, chapter])))
    titles = ("A question", "The equation", "Where to look")
    for heading, text in list(zip(titles, exercise.hints, strict=True))[: args.level]:
        print(f"\n{heading}\n{_filled(text)}")
    if repair:
        print(f"\n{repair}")
    if args.level < 3:
        options = again(args) + (f" --file {quoted(args.file)}" if args.file else "")
        print(f"\nMore: transformer-np homework hint {exercise.name} --level {args.level + 1}{options}")


def _repair(args, exercise):
    """The last level of a hint: a line of the student's code after the edit that makes it right."""
    checks = checks_of(args, found_file(args.file))
    if checks is None:
        return "Your file cannot be read, so there is no hint on your own code."
    standing = checks.of(exercise.name)
    verdict = standing.verdict
    if verdict.passed:
        return "Your own code\n  It is right."
    if standing.waits_for:
        return f"Your own code\n  It waits for {', '.join(standing.waits_for)}."
    if standing.not_started:
        return "Your own code\n  It is not written yet."
    if verdict.mends and not verdict.repair:
        return "Your own code\n  What has to change is what `check` marks."
    if not verdict.repair:
        return "Your own code\n  No edit was found that makes it right."
    return f"Your own code, line {verdict.line}: this change makes {verdict.mends}\n{verdict.repair}"


def run_list(args):
    from ..homework import all_exercises
    from ..homework.course import opened
    from ..homework.path import chapter_line, chapters

    with opened(None, args.exercises):
        for title, notebook, here in chapters(all_exercises().values()):
            print(chapter_line(title, notebook))
            names = ", ".join(exercise.name for exercise in here)
            print(textwrap.fill(names, WIDTH, initial_indent="  ", subsequent_indent="  "))


def _filled(text):
    lines = (textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="  ") for line in text.splitlines())
    return "\n".join(lines)


# --- solution --------------------------------------------------------------------------------------------------------


def run_solution(args):
    import inspect

    from ..homework import find
    from ..homework.path import own_exercises

    with course_of(args, found_file(args.file, required=False)):
        exercise, file = find(args.name), found_file(args.file)
        checks = checks_of(args, file)
        if checks is None:
            return 1
        standing = checks.of(exercise.name)
        if not standing.passed:
            print(message(standing))
            print(f"The library's code is shown once {exercise.name} in {file} is right.")
            return 1
        home = f"{exercise.reference.__module__.replace('.', '/')}.py"
        print(f"# {Path(home).name if exercise.name in own_exercises() else home}")
        print(inspect.getsource(exercise.reference), end="")
        return 0
