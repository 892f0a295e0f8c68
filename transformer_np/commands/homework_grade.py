from contextlib import nullcontext
from pathlib import Path
from textwrap import indent

from ..support.counts import counted
from . import add_command, add_quiet, check_picture, check_writable, number_above_0, number_of_workers, say, seed
from .homework_check import OF_OWN

EXAMPLE = Path(__file__).with_name("course.toml").read_text(encoding="utf-8")

_ABOUT = """
FOLDER contains one .py file, one .ipynb notebook, or one folder of such files, per student; its name is the student's
name. A roster names the people: everyone on it gets a row, and all files whose name contains the id are this student's
attempts. Its columns are id, name, path (a pattern such as "ada*.py"), submitted (a time), deadline (for this person
alone), "corrected softmax" and "written (4)" (points that you give yourself); only id is required.

Each submission runs in bubblewrap, with the standard library and NumPy as its only files, without a network, and with
limits on time and memory. Without bubblewrap and libseccomp nothing is graded, unless you pass --trust: then a
container must be the wall. Submissions must be self-contained: they can import the functions of this package, but not
call them; only the blocks, the optimizers and decoding get the parts that they are built from. Every grading draws new
inputs, the same for all its submissions. What was handed in is kept in grades_records. Run the command again when more
has come in or when something was corrected: it grades only what is new or concerned, and says what has changed.

With --format gradescope, FOLDER is one submission, such as /autograder/submission.

A course names the exercises that count and their points. --course-example prints this one:

"""


def add_grade_parser(subparsers):
    summary = "grade a folder of submissions: one table, and one report per student"
    parser = add_command(subparsers, "grade", run, "submissions --out grades.csv --course course.toml", summary)
    parser.description += _ABOUT + indent(EXAMPLE, "    ")
    add = parser.add_argument
    add("folder", nargs="?", metavar="FOLDER", help="the submissions: one file or folder per student")
    add("--out", metavar="FILE", help="the table of grades (default: grades.csv)")
    add(
        "--format", choices=("csv", "json", "gradescope", "otter"), default="csv",
        help="grades.csv, grades.json, Gradescope's results.json or Otter's final_grades.csv (default: csv)",
    )  # fmt: skip
    help_text = "exercises and their points (default: every exercise, 1 point)"
    add("--course", "--rubric", metavar="FILE.toml", help=help_text)
    add("--course-example", "--rubric-example", action="store_true", help="print an example course and exit")
    help_text = "the people of the course: a column id, and optionally name, path, submitted, deadline"
    add("--roster", metavar="FILE.csv", help=help_text)
    help_text = "grade FOLDER/STUDENT/NAME, as nbgrader collects it, instead of all of a student's folder"
    add("--assignment", default="", metavar="NAME", help=help_text)
    add("--exercises", metavar="DIR", help=OF_OWN)
    add("--reports", metavar="DIR", help="folder for the reports (default: grades_reports, next to the table)")
    for name, default, unit, text in (
        ("--seconds", 10.0, "N", "time limit per exercise, without the time it waits for a processor (default: 10 s)"),
        ("--total-seconds", 600.0, "N", "time limit per submission, all exercises together (default: 600 s)"),
        ("--memory", 2.0, "GiB", "memory limit per submission (default: 2)"),
    ):
        add(name, type=number_above_0, default=default, metavar=unit, help=text)
    add(
        "--workers", type=number_of_workers, default="auto", metavar="N|auto",
        help="submissions graded in parallel (default: auto, one per core)",
    )  # fmt: skip
    add(
        "--seed", type=seed, metavar="N",
        help="seed of the inputs, to repeat a grading; DIR/run.json has the last one (default: a new one)",
    )  # fmt: skip
    add("--picture", metavar="FILE", help="draw the class, with its most frequent mistakes: .png, .svg or .pdf")
    add("--trust", action="store_true", help="grade even if this system has no wall around a submission")
    add_quiet(parser)


def run(args):  # the imports stand here because no other action needs them
    from tqdm import tqdm

    from ..grading.formats import FORMATS, results_even_if_it_fails
    from ..grading.report import class_results
    from ..grading.run import Grading
    from ..grading.sandbox.session import Limits
    from ..homework.course import opened
    from ..support.processes import cores

    if args.course_example:
        print(EXAMPLE, end="")
        return 0
    if args.folder is None:
        raise ValueError("name the folder with the submissions: transformer-np homework grade FOLDER")
    table, out = FORMATS[args.format]
    out = args.out or out
    check_writable("--out", out)
    check_picture("--picture", args.picture)
    limits = Limits(args.seconds, int(args.memory * 2**30), args.total_seconds)
    workers = cores() if args.workers == "auto" else args.workers
    single = args.format == "gradescope"
    written = results_even_if_it_fails(out) if single else nullcontext()
    with written, opened(args.course, args.exercises, args.seconds) as course:
        _check_own(course, args.seconds)
        grading = Grading(
            args.folder, out, course, args.reports, limits, workers, args.seed, table, single, args.trust,
            args.roster, args.assignment,
        )  # fmt: skip
        grading.try_walls()
        print(grading.walls(), flush=True)
        bar = tqdm(total=0, unit="submission", disable=True if args.quiet else None)
        with bar:  # None: only on a terminal
            grades = grading.run(bar)
        if args.picture:
            from .. import plots

            plots.class_results(class_results(grades, course), course.title).savefig(args.picture)
    _tell(grading, grades)
    picture = f", picture: {args.picture}" if args.picture else ""
    print(f"Grades: {out}, reports: {grading.reports}{picture}")
    return 0


def _tell(grading, grades):
    """Print the points of each student, then what the teacher should know of this grading."""
    from ..grading.report import number
    from ..grading.submissions import skipped_entries

    course = grading.rubric
    width = max(len(grade.student) for grade in grades)
    for grade in grades:
        points, remarks = f"{number(grade.points(course))} of {number(course.possible)}", (*grade.notes, *grade.remarks)
        if course.has_extended:
            points += f" + {number(grade.extended_points(course))} of {number(course.possible_extended)}"
        print(f"{grade.student:<{width}}  {points}" + (f"  {'; '.join(remarks)}" if remarks else ""))
    if not grading.single and (skipped := skipped_entries(grading.folder)):
        names = ", ".join(skipped[:10]) + (", …" if len(skipped) > 10 else "")
        print(f"No row for these, which are neither a .py or .ipynb file nor a folder with one: {names}")
    for remark in grading.remarks:
        print(remark)
    if grading.changes:
        print("\n".join(["Since the last grading:", *grading.changes]))
    if grading.earlier:
        print(f"The earlier table: {grading.earlier}")
    if grading.reused:
        print(f"{grading.reused} of {counted(len(grading.attempts), 'submission')} unchanged and not run again")
    print(f"{grading.sentence(grades)} Seed {grading.seed}: keep it from the students.")
    if grading.moodle:
        print(f'Feedback for Moodle, to upload as "multiple feedback files in a zip": {grading.moodle}')


def _check_own(course, seconds):
    """Raise ExercisesError for a teacher's exercise that nobody can be graded with, and name those in doubt."""
    from ..grading.verify import DOUBTS, HINDRANCES, problems, told
    from ..homework.own import ExercisesError
    from ..homework.path import own_exercises

    exercises = [exercise for name, exercise in own_exercises().items() if name in course.points]
    for exercise in exercises:
        for problem in problems(exercise, seconds, True, HINDRANCES):
            raise ExercisesError(f"{exercise.name}: {problem}")
        for problem in problems(exercise, seconds, True, DOUBTS):
            say(f"{told(exercise, problem)}\nCorrect it before you give out the grades.")
