import sys
import textwrap
import time
from pathlib import Path

from . import add_command, check_writable, positive_number
from .homework_grade import add_grade_parser

FILE = "homework.py"
PASSED, NOT_STARTED, WAITING, FAILED = "✓", "·", "◦", "✗"
POLL = 0.3  # seconds between two checks of the files' times, for --watch
WIDTH = 100


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "homework",
        help="reimplement the library's functions and get feedback",
        description="Reimplement the library's functions and get feedback on each mistake.",
        epilog="example: transformer-np homework start work",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    start = _add_action(actions, "start", run_start, "create a file with the functions to write", "work --only softmax")
    start.add_argument("folder", metavar="FOLDER", help=f"folder for {FILE}; created if necessary")
    start.add_argument("--only", nargs="+", metavar="NAME", help="include only these exercises (default: all)")

    check = _add_action(actions, "check", run_check, "check the answers and explain mistakes", f"{FILE} softmax")
    _add_file(check)
    check.add_argument("name", nargs="?", metavar="NAME", help="check only this exercise (default: all, in order)")
    check.add_argument("--all", action="store_true", help="continue after the first mistake")
    check.add_argument("--watch", action="store_true", help="check again at every save, until Ctrl-C")
    check.add_argument("--seed", type=_seed, metavar="N", help="seed of the inputs (default: new inputs every time)")

    hint = _add_action(actions, "hint", run_hint, "show a hint for an exercise, in three levels", "softmax --level 2")
    hint.add_argument("name", metavar="NAME", help="the exercise")
    hint.add_argument(
        "--level",
        type=int,
        choices=(1, 2, 3),
        default=1,
        help="1: a question; 2: also the equation; 3: also where to look (default: 1)",
    )

    status = _add_action(actions, "status", run_status, "show a table of all exercises", FILE)
    _add_file(status, optional=True)

    solution = _add_action(
        actions,
        "solution",
        run_solution,
        "print the library's code, once the answer is right",
        f"softmax --file {FILE}",
    )
    solution.add_argument("name", metavar="NAME", help="the exercise")
    solution.add_argument("--file", default=FILE, metavar="FILE", help=f"the file with the answers (default: {FILE})")

    run = _add_action(
        actions,
        "run",
        run_training,
        "train a small translator with the answers, and one with the library's functions",
        f"{FILE} train -o losses.png",
    )
    _add_file(run)
    run.add_argument("what", choices=("train",), help="the action")
    run.add_argument("--steps", type=positive_number, default=200, metavar="N", help="training steps (default: 200)")
    run.add_argument("-o", "--out", metavar="PICTURE", help="draw both loss curves: .png, .svg or .pdf")

    add_grade_parser(actions)


def _add_action(actions, name, run, summary, arguments):
    return add_command(actions, name, run, summary, f"transformer-np homework {name} {arguments}")


def _add_file(parser, optional=False):
    default = f" (default: {FILE} in this folder)" if optional else ""
    nargs = "?" if optional else None
    parser.add_argument(
        "file", nargs=nargs, metavar="FILE", help=f"the file with the answers, or a folder of files{default}"
    )


def _seed(text):
    return 0 if text == "0" else positive_number(text, "a whole number, 0 or more")


# --- start, hint -----------------------------------------------------------------------------------------------------


def run_start(args):
    from ..homework import all_exercises, find
    from ..homework.stubs import stub_file

    exercises = [find(name) for name in args.only] if args.only else list(all_exercises().values())
    folder = Path(args.folder)
    path = folder / FILE
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder")
    text = stub_file(exercises)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ValueError(f"{path} already exists and was not overwritten; choose another folder") from None
    names = [name for name in all_exercises() if name in {exercise.name for exercise in exercises}]
    print(f"{path}: {_counted(len(names))}, the first is {names[0]}. Implement it, save the file, then check it:")
    print(f"  transformer-np homework check {_quoted(path)}")
    print(f"  transformer-np homework check {_quoted(path)} --watch    (again at every save)")
    print(f"  transformer-np homework hint {names[0]}")
    return 0


def run_hint(args):
    from ..homework import find
    from ..homework.path import chapters
    from ..homework.stubs import difficulty

    exercise = find(args.name)
    ((title, notebook, _),) = chapters([exercise])
    print(f"{exercise.name}: {difficulty(exercise)}; {exercise.section}; {title}, notebook {notebook}")
    titles = ("A question", "The equation", "Where to look")
    for heading, text in list(zip(titles, exercise.hints, strict=True))[: args.level]:
        print(f"\n{heading}\n{_filled(text)}")
    if args.level < 3:
        print(f"\nMore: transformer-np homework hint {exercise.name} --level {args.level + 1}")
    return 0


def _filled(text):
    lines = (textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="  ") for line in text.splitlines())
    return "\n".join(lines)


# --- check -----------------------------------------------------------------------------------------------------------


def run_check(args):
    from ..homework import find

    name = find(args.name).name if args.name else None
    if not args.watch:
        return _check_once(args, name)
    try:
        while True:
            seen = _stamps(args.file)
            try:
                _check_once(args, name)
            except (OSError, ValueError) as error:
                if not seen:  # nothing to watch: the file never existed
                    raise
                print(f"transformer-np: {error}", file=sys.stderr)
            print("\nWaiting for the next save. Stop with Ctrl-C.", flush=True)
            while _stamps(args.file) in (seen, {}):
                time.sleep(POLL)
            print(f"\n{'─' * 20} {time.strftime('%H:%M:%S')} {'─' * 20}")
    except KeyboardInterrupt:
        print()
        return 130


def _stamps(path):
    """{file: (time, size)} of the files with answers, which changes at every save; {} if there are none."""
    path = Path(path)
    if not path.exists():
        return {}
    stamps = {}
    for file in (path if path.is_dir() else path.parent).glob("*.py"):
        try:
            stat = file.stat()
        except OSError:  # an editor is replacing it
            continue
        stamps[file] = stat.st_mtime_ns, stat.st_size
    return stamps


def _check_once(args, name):
    from ..homework.submission import Checks

    submission = _load(args.file)
    if submission is None:
        return 1
    checks = Checks(submission, args.seed)
    if name:
        standing = checks.of(name)
        print(_message(standing))
        if not standing.passed:
            _show_ways_on(args.file, standing, checks.seed)
        return 1 if standing.failed else 0
    return _check_all(args, submission, checks)


def _check_all(args, submission, checks):
    from ..homework import all_exercises
    from ..homework.path import chapters

    standings, stopped = [], False
    for title, _, exercises in chapters(all_exercises().values()):
        lines = _List(title)
        for exercise in exercises:
            standing = checks.of(exercise.name)
            standings.append(standing)
            lines.add(standing)
            if standing.failed and not args.all:
                stopped = True
                break
        lines.end()
        if stopped:
            break
    failed = [standing for standing in standings if standing.failed]
    for standing in failed:
        print(f"\n{_message(standing)}")
        _show_ways_on(args.file, standing, checks.seed)
    right = sum(standing.passed for standing in standings)
    print()
    if stopped:
        print(f"{right} right before the first mistake. --all checks the rest, too.")
        return 1
    print(f"{right} of {_counted(len(standings))} right" + (f", {len(failed)} wrong." if failed else "."))
    following = next((standing for standing in standings if standing.not_started), None)
    if following and not failed:
        name = following.exercise.name
        if name in submission.imported:
            print(_message(following))
        print(f"Next: {name}    (transformer-np homework hint {name})")
    return 1 if failed else 0


class _List:
    """The lines of a chapter, printed one by one; exercises that are not started share lines."""

    def __init__(self, title):
        self.title, self.waiting, self.begun = title, [], False

    def add(self, standing):
        name = standing.exercise.name
        if standing.not_started:
            self.waiting.append(name)
            return
        self.end()
        if standing.waits_for:
            self._print(f"  {WAITING} {name}: right as soon as {' and '.join(standing.waits_for)} {_is(standing)}")
        else:
            self._print(f"  {PASSED if standing.passed else FAILED} {name}{_in_short(standing)}")

    def end(self):
        if self.waiting:
            text = f"not started: {', '.join(self.waiting)}"
            self._print(textwrap.fill(text, WIDTH, initial_indent=f"  {NOT_STARTED} ", subsequent_indent="    "))
        self.waiting = []

    def _print(self, text):
        if not self.begun:
            print(self.title)
        self.begun = True
        print(text, flush=True)


def _is(standing):
    return "is" if len(standing.waits_for) == 1 else "are"


def _in_short(standing):
    return "" if standing.passed else f": {standing.verdict.outcome}"


def _message(standing):
    """The verdict on an answer in wrapped lines; lines of code and of tables are not wrapped."""
    lines = standing.verdict.message.splitlines()
    return "\n".join(line if line.startswith(" ") else textwrap.fill(line, WIDTH) for line in lines)


def _show_ways_on(file, standing, seed):
    """Print the commands that help after a wrong answer."""
    name = standing.exercise.name
    if standing.failed:
        print(f"  check with the same inputs: transformer-np homework check {_quoted(file)} {name} --seed {seed}")
    print(f"  get a hint: transformer-np homework hint {name}")


# --- status, solution ------------------------------------------------------------------------------------------------


def run_status(args):
    from ..homework import all_exercises
    from ..homework.path import chapters
    from ..homework.stubs import difficulty
    from ..homework.submission import Checks

    if args.file is None and not Path(FILE).exists():
        raise ValueError(
            f"this folder contains no {FILE}: name the file, or create it with `transformer-np homework start .`"
        )
    submission = _load(args.file or FILE)
    if submission is None:
        return 1
    checks, exercises = Checks(submission), all_exercises()
    width = max(map(len, exercises))
    sections = max(len(exercise.section) for exercise in exercises.values())
    right = 0
    for title, notebook, here in chapters(exercises.values()):
        print(f"{title} (notebook {notebook})")
        for exercise in here:
            standing = checks.of(exercise.name)
            right += standing.passed
            mark, state = _state(standing)
            about = f"{exercise.name:<{width}}  {difficulty(exercise):<13}  {exercise.section:<{sections}}"
            print(f"  {mark} {about}  {state}", flush=True)
    print(f"{right} of {_counted(len(exercises))} right")
    return 0


def _state(standing):
    if standing.passed:
        return PASSED, "right"
    if standing.not_started:
        return NOT_STARTED, "not started"
    if standing.waits_for:
        return WAITING, f"right as soon as {' and '.join(standing.waits_for)} {_is(standing)}"
    misconception = standing.verdict.misconception
    return FAILED, standing.verdict.outcome + (f": {misconception}" if misconception else "")


def run_solution(args):
    import inspect

    from ..homework import find
    from ..homework.submission import Checks

    exercise = find(args.name)
    submission = _load(args.file)
    if submission is None:
        return 1
    standing = Checks(submission).of(exercise.name)
    if not standing.passed:
        print(_message(standing))
        print(f"The library's code is shown once {exercise.name} in {args.file} is right.")
        return 1
    print(f"# {exercise.reference.__module__.replace('.', '/')}.py")
    print(inspect.getsource(exercise.reference), end="")
    return 0


# --- run -------------------------------------------------------------------------------------------------------------


def run_training(args):
    from ..homework.submission import Checks, library_instead
    from ..homework.training_run import TrainingCrash, train_both

    if args.out:
        if Path(args.out).suffix.lower() not in (".png", ".svg", ".pdf"):
            raise ValueError(f"-o {args.out}: the name must end in .png, .svg or .pdf")
        check_writable("-o", args.out)
    submission = _load(args.file)
    if submission is None:
        return 1
    checks = Checks(submission)
    standings = [checks.of(name) for name in submission.answers]
    if all(standing.not_started for standing in standings):
        raise ValueError(f"{args.file}: no answer is started, so there is nothing to train with")
    for standing in standings:
        if standing.failed:
            print(f"{standing.exercise.name} is not right ({_state(standing)[1]}), but it is used.")
    print(f"Trains a translator with one block per stack for {args.steps} steps, twice from the same seed:")
    print("with the library's functions, then with yours. Losses are in nats per token.")
    in_both = [
        standing.exercise.name for standing in standings if standing.passed and standing.exercise.name == "dropout"
    ]
    if in_both:
        print("Both use your dropout: it is right, but may draw other random numbers than the library's.")
    print()
    print(f"{'step':>6}  {'library':>10}  {'yours':>10}  difference", flush=True)

    def report(step, library, yours):
        print(f"{step:>6}  {library:>10.6f}  {yours:>10.6f}  {yours - library:+.1e}", flush=True)

    every = -(-args.steps // 20)
    missing = [standing.exercise.name for standing in standings if standing.not_started]
    try:
        with library_instead(submission, missing):
            curves = train_both(submission, args.steps, every, report=report, in_both=in_both)
    except TrainingCrash as crash:
        print(crash, file=sys.stderr)
        return 1
    print()
    _show_outcome(curves)
    if args.out:
        from .. import plots

        plots.loss_curves(curves.losses).savefig(args.out)
        print(args.out)
    return 0


def _show_outcome(curves):
    part_at = curves.part_at
    if part_at is None:
        print("The losses are equal up to rounding.")
    else:
        print(f"The losses differ from step {part_at} on.")
    used = [f"{name} ({times:,})" for name, times in curves.calls.items() if times]
    unused = [name for name, times in curves.calls.items() if not times]
    for what, names in (
        ("Your functions, with the number of calls:", used),
        ("Your functions that this training run did not call:", unused),
    ):
        if names:
            print(textwrap.fill(f"{what} {', '.join(names)}", WIDTH, subsequent_indent="  "))


# --- helpers ---------------------------------------------------------------------------------------------------------


def _load(path):
    """The submission in a file, or None with a message on stderr if it cannot be imported. ValueError if it contains no
    answer."""
    from ..homework import load
    from ..homework.submission import LoadError

    try:
        submission = load(path)
    except LoadError as error:
        print(error, file=sys.stderr)
        return None
    if not submission.answers:
        some = next(iter(submission.imported.items()), None)
        why = f"; for example, {some[0]} is imported from {some[1]}" if some else ""
        raise ValueError(
            f"{path} contains no answer to an exercise{why}. Create a file with `transformer-np homework start`"
        )
    return submission


def _counted(number):
    return f"{number} exercise" if number == 1 else f"{number} exercises"


def _quoted(path):
    import shlex

    return shlex.quote(str(path))
