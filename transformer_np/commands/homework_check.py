"""`check` and `status`, and the parts that all actions on a student's file share."""

import json
import os
import sys
import textwrap
import time
from contextlib import nullcontext, redirect_stdout
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from ..support.counts import counted
from . import check_picture, quoted, say

FILE = "homework.py"
OF_OWN = "exercises of your own, from `homework new`; without a course, only these count"  # the help of --exercises
PASSED, NOT_STARTED, WAITING, FAILED = "✓", "·", "◦", "✗"
POLL = 0.3  # seconds between two checks of the files' times, for --watch
WIDTH = 100
MOST_LISTED = 20  # exercises of a course; of a longer one, chapters that are not begun are not listed


# --- the student's file ----------------------------------------------------------------------------------------------


def found_file(path, required=True):
    """The path itself, or if none is named homework.py in this folder or in the only subfolder that has one.

    If there is none or if there are several: ValueError, or None if the file is not required.
    """
    if path is not None:
        return path
    if Path(FILE).exists():
        return FILE
    found = sorted(Path().glob(f"*/{FILE}"))
    if len(found) == 1:
        return str(found[0])
    if not required:
        return None
    if found:
        raise ValueError(f"name the file: {', '.join(map(str, found))}")
    how = "name the file, or create it with `transformer-np homework start .`"
    raise ValueError(f"this folder contains no {FILE}: {how}")


def again(args):
    """The options of a command that another command on the same exercise needs, too, each behind a space."""
    seconds = None if args.time_limit == args.parser.get_default("time_limit") else f"{args.time_limit:g}"
    given = {"--course": args.course, "--exercises": args.exercises, "--time-limit": seconds}
    return "".join(f" {name} {quoted(value)}" for name, value in given.items() if value is not None)


def command_on(action, name, file, args=None):
    """The command `hint` or `solution` on an exercise. It names the file, in which the answer is and beside which a
    teacher's exercise is found, unless `found_file` finds it."""
    found = found_file(None, required=False)
    is_found = found and Path(file) in (Path(found), Path(found).parent)
    options = (again(args) if args else "") + ("" if is_found else f" --file {quoted(file)}")
    return f"transformer-np homework {action} {name}{options}"


def checks_of(args, path):
    """The Checks of the answers in a file, or None with a message on stderr if it cannot be imported. ValueError if it
    contains no answer."""
    from ..homework import load
    from ..homework.limit import TimeLimit
    from ..homework.path import all_exercises
    from ..homework.remarks import not_found
    from ..homework.submission import Checks, LoadError
    from ..support.shadows import shadows

    if path in all_exercises() and not Path(path).exists():
        file = quoted(found_file(None, required=False) or FILE)
        raise ValueError(f"{path} is an exercise; name the file before it: transformer-np homework check {file} {path}")
    for shadow in shadows(path if Path(path).is_dir() else Path(path).parent):
        say(shadow)
    limit = TimeLimit(args.time_limit, ends_process=True)
    os.environ.setdefault("MPLBACKEND", "agg")  # with a window plt.show() waits until somebody closes it
    with redirect_stdout(sys.stderr) if getattr(args, "json", False) else nullcontext():  # the file's own output
        submission = load(path, limit, strict=False)
    for file, crash in submission.crashes.items():
        say(LoadError(Path(path) / file if Path(path).is_dir() else path, crash))
    if submission.definitions or getattr(args, "json", False):
        return Checks(submission, getattr(args, "seed", None), limit)
    remarks = [*submission.skipped, *not_found(submission.survey, submission.survey.elsewhere)]
    if submission.crashes:
        for remark in remarks:
            say(f"! {remark}")
        return None
    imported = [f"for example, {name} is imported from {home}" for name, home in submission.imported.items()]
    why = [*imported[:1], *remarks] or ["`transformer-np homework start work` creates a file with all of them"]
    raise ValueError(f"{path} contains no answer to an exercise; {'; '.join(why)}")


def course_of(args, file):
    """A context in which the exercises of the course are found by name. It yields the Course: that of --course, or else
    that of the course.toml beside the student's file."""
    from ..homework.course import beside, opened

    return opened(args.course if args.course is not None or file is None else beside(file), args.exercises)


# --- check -----------------------------------------------------------------------------------------------------------


def run_check(args):
    from ..homework import find

    args.file = found_file(args.file)
    with course_of(args, args.file) as course:
        name = find(args.name).name if args.name else None
        return _watch(args, course, name) if args.watch else _check(args, course, name)


def _watch(args, course, name):
    try:
        while True:
            seen = _stamps(args.file)
            try:
                _check(args, course, name)
            except (OSError, ValueError) as error:
                if not seen:  # nothing to watch: the file never existed
                    raise
                say(f"transformer-np: {error}")
            print("\nWaiting for the next save. Stop with Ctrl-C.", flush=True)
            while _stamps(args.file) in (seen, {}):
                time.sleep(POLL)
            print(f"\n{'─' * 20} {time.strftime('%H:%M:%S')} {'─' * 20}")
    except KeyboardInterrupt as stop:
        print(stop)
        return 130


def _stamps(path):
    """{file: (time, size)} of the files with answers, of a single one with what it may import, different after every
    save; {} if there are none."""
    from ..homework.handin import may_answer, walk

    path = Path(path)
    if not path.exists():
        return {}
    stamps, beside = {}, [path, *path.parent.glob("*.py"), *path.parent.glob("*/*.py")]
    for file in [file for file, _ in walk(path)] if path.is_dir() else beside:
        try:
            stat = file.stat()
        except OSError:  # an editor is replacing it
            continue
        if may_answer(file.name):
            stamps[file] = stat.st_mtime_ns, stat.st_size
    return stamps


def _check(args, course, name):
    checks = checks_of(args, args.file)
    if checks is None:
        return 1
    if args.json:
        return _print_json(args, course, checks, [name] if name else course.points)
    if name:
        standing = checks.of(name)
        _note(args.file, [standing])
        print(message(standing))
        _show_remarks(checks, [name])
        if not standing.passed:
            _show_ways_on(args, standing, checks)
        elif checks.submission.path.is_file():
            print(f"  compare it with the library's code: {command_on('solution', name, args.file, args)}")
        return 0 if standing.passed else 1
    return _check_all(args, course, checks)


def _check_all(args, course, checks):
    from ..homework.path import chapter_line, chapters

    standings = []
    for title, _, exercises in chapters(course.exercises):
        found = (checks.of(exercise.name) for exercise in exercises)
        for line in _lines(chapter_line(title, ""), found, len(course.points) <= MOST_LISTED):
            print(line, flush=True)
        standings += [checks.of(exercise.name) for exercise in exercises]
    _note(args.file, standings)
    failed = [standing for standing in standings if standing.failed]
    for standing in failed if args.all else failed[:1]:
        print(f"\n{message(standing)}")
        _show_ways_on(args, standing, checks)
    _show_remarks(checks, course.points)
    right = sum(standing.passed for standing in standings)
    unwritten = sum(standing.not_started for standing in standings)
    waiting = len(standings) - right - len(failed) - unwritten
    said = [f"{right} of {counted(len(standings), 'exercise')} right"]
    for number, what in ((len(failed), "wrong"), (waiting, "waiting for another"), (unwritten, "not started")):
        said += [f"{number} {what}"] if number else []
    print(f"\n{', '.join(said)}.")
    if len(failed) > 1 and not args.all:
        print("This explains the first wrong answer. --all explains all of them.")
    following = next((standing for standing in standings if standing.not_started), None)
    if following and not failed:
        name = following.exercise.name
        if name in checks.submission.imported:
            print(message(following))
        where = "".join(f", {checks.submission.place(one)}" for one in following.definitions[:1])
        print(f"Next: {name}{where}    ({command_on('hint', name, args.file, args)})")
    return 0 if right == len(standings) else 1


def _show_remarks(checks, names):
    """Print what `grade` would remark on these exercises."""
    remarks = checks.remarks(names)
    if remarks:
        print()
    for remark in remarks:
        print(textwrap.fill(remark, WIDTH, initial_indent="! ", subsequent_indent="  "))


def _note(file, standings):
    """Add the verdicts to the progress.json beside the file, if there is one. Returns its entries."""
    from ..homework.record import note

    path = Path(file)
    verdicts = [standing.verdict for standing in standings]
    return note(verdicts, path if path.is_dir() else path.parent, where=FILE) or {}


def _lines(title, standings, in_full):
    """Yield the lines of a chapter, each as soon as it is known; exercises that are not started share lines.

    in_full: whether a chapter is listed although nothing of it is begun
    """
    heading = [title]
    for waiting, group in groupby(standings, attrgetter("not_started")):
        lines = map(_line, group)
        if waiting:
            text = f"not started: {', '.join(one.exercise.name for one in group)}"
            filled = textwrap.fill(text, WIDTH, initial_indent=f"  {NOT_STARTED} ", subsequent_indent="    ")
            lines = [filled]
            if heading and not in_full:  # until something of the chapter is begun
                heading += lines
                continue
        for line in lines:
            yield from heading
            heading = []
            yield line


def _line(standing):
    mark, text = state(standing)
    return f"  {mark} {standing.exercise.name}" + ("" if standing.passed else f": {text}")


def message(standing):
    """The verdict on an answer in wrapped lines."""
    from ..homework.judging.words import wrapped

    return wrapped(standing.verdict.message)


def _show_ways_on(args, standing, checks):
    """Print where a wrong answer is, if its lines could be those of several files or cells, and what helps."""
    file, name, submission = args.file, standing.exercise.name, checks.submission
    if standing.definitions and submission.path.suffix != ".py":
        what = "stub" if standing.not_started else "answer"
        print(f"  the {what} is in {submission.place(standing.definitions[0])}")
    if str(file).lower().endswith(".ipynb"):
        print(f'  check it in the notebook: from transformer_np.homework import check; check("{name}", {name})')
    if standing.failed:
        options = f"--seed {checks.seed}{again(args)}"
        print(f"  check with the same inputs: transformer-np homework check {quoted(file)} {name} {options}")
    print(f"  get a hint: {command_on('hint', name, file, args)}")


# --- status ----------------------------------------------------------------------------------------------------------


def run_status(args):
    args.file = found_file(args.file)
    check_picture("--out", args.out)
    with course_of(args, args.file) as course:
        checks = checks_of(args, args.file)
        if checks is None:
            return 1
        if args.json:
            _print_json(args, course, checks, course.points)
        else:
            _show_status(args.file, course, checks)
        if args.out:
            from .. import plots
            from ..homework.record import by_chapter, noted

            entries = noted([checks.of(name).verdict for name in course.points], _note(args.file, []))
            plots.progress(by_chapter(entries, course.exercises)).savefig(args.out)
            say(f"picture: {args.out}")
        return 0


def _show_status(file, course, checks):
    from ..homework.path import chapter_line, chapters
    from ..homework.record import is_right
    from ..homework.stubs import difficulty

    exercises = course.exercises
    width = max(len(exercise.name) for exercise in exercises)
    sections = max(len(exercise.section) for exercise in exercises)
    right = elsewhere = 0
    entries = _note(file, [])
    if course.title:
        print(course.title)
    if course.deadline:
        print(f"Deadline: {course.deadline}")
    for title, notebook, here in chapters(exercises):
        print(chapter_line(title, notebook))
        for exercise in here:
            standing = checks.of(exercise.name)
            entries = _note(file, [standing]) or entries
            right += standing.passed
            mark, text = state(standing)
            before = entries.get(exercise.name)
            if not standing.passed and is_right(entries, exercise.name):
                elsewhere += 1
                text += "; right before" + ("" if before.get("where") == FILE else ", in a notebook")
            elif standing.not_started and before and before.get("where") != FILE:
                text += f"; in a notebook: {before.get('misconception') or before.get('outcome')}"
            about = f"{exercise.name:<{width}}  {difficulty(exercise):<13}  {exercise.section:<{sections}}"
            extended = "extended" if exercise.name in course.extended else ""
            extra = ", ".join(filter(None, [course.worth(exercise.name), extended]))
            print(f"  {mark} {about}  {text}" + (f" ({extra})" if extra else ""), flush=True)
    others = f" in {Path(file).name}, {elsewhere} more in a notebook or before" if elsewhere else ""
    print(f"{right} of {counted(len(exercises), 'exercise')} right{others}")


def _print_json(args, course, checks, names):
    """Print the verdicts as JSON; returns the exit code."""
    from ..grading.formats import verdict_as_dict

    with redirect_stdout(sys.stderr):  # the answers' own output
        standings = [checks.of(name) for name in names]
    exercises = [
        verdict_as_dict(one.verdict) | {
            "waits for": list(one.waits_for),
            "graded": checks.submission.place(*one.definitions[:1]) if one.definitions else "",
            "points": course.points.get(one.exercise.name), "extended": one.exercise.name in course.extended,
        } for one in standings
    ]  # fmt: skip
    right = sum(standing.passed for standing in standings)
    about = {"file": str(args.file), "title": course.title, "deadline": course.deadline, "seed": checks.seed}
    about["remarks"] = checks.remarks(names)
    print(json.dumps({**about, "right": right, "exercises": exercises}, indent=1, ensure_ascii=False), flush=True)
    return 0 if right == len(standings) else 1


def state(standing):
    """A mark and a few words."""
    if standing.passed:
        return PASSED, "right"
    if standing.not_started:
        return NOT_STARTED, "not started"
    if standing.waits_for:
        return WAITING, f"right as soon as {standing.until}"
    misconception = standing.verdict.misconception
    if standing.verdict.core:
        return FAILED, f"right for the lecture, but{f': {misconception}' if misconception else ' not in every case'}"
    return FAILED, standing.verdict.outcome + (f": {misconception}" if misconception else "")


# --- which exercises --------------------------------------------------------------------------------------------------


def add_choice(parser):
    which = parser.add_mutually_exclusive_group()
    help_text = "only these: names, or numbers of notebooks (--only 02,03,softmax)"
    which.add_argument("--only", nargs="+", metavar="NAME", help=help_text)
    which.add_argument("--course", metavar="FILE.toml", help="only the exercises of this course, as `grade` reads it")


def names_of(only, course):
    """The names that the words of --only stand for, in the order of the path; without words, those of the course."""
    from ..homework.path import all_exercises, chosen

    if not only:
        return list(course.points)
    words = [word for text in only for part in text.split(",") if (word := part.strip())]
    wanted = {exercise.name for word in words for exercise in chosen(word)}
    if not wanted:
        raise ValueError("--only names no exercise; for example --only 02,softmax")
    return [name for name in all_exercises() if name in wanted]
