import argparse
import sys
from textwrap import indent

from . import add_command, check_writable, number_of_workers, positive_number

EXAMPLE = """\
# What counts, and how much. Every line may be left out.

partial = true      # points by the share of the cases that are right; false: all or nothing
pass_mark = 50      # percent of the points, for the column "passed"

# the exercises that count; without this line all do
exercises = ["softmax", "softmax_backward"]

[points]            # 1 for each that is not named here; 0: checked and reported, but without points
softmax_backward = 2.5
"""

_ABOUT = """
FOLDER holds a .py file, or a folder of .py files, for each student; its name is the student's. Each submission runs in
processes of its own, with limits on time and memory, and as far as the system allows it without network and without
sight of other files. It has to bring what it computes with: the functions of this package can be imported, but not
called; only for the blocks, Adam and decoding are the layers and models there. The inputs are drawn once, from the
seed, and are the same for all. When the command is run again, only what is new or was changed is graded.

A rubric says what counts, and how much (--rubric-example prints this one):

"""


def add_grade_parser(subparsers):
    parser = add_command(
        subparsers,
        "grade",
        run,
        "grade a folder of submissions into a table and a report for each student",
        "transformer-np homework grade submissions --out grades.csv --rubric rubric.toml",
    )
    parser.description += _ABOUT + indent(EXAMPLE, "    ")
    add = parser.add_argument
    add("folder", nargs="?", metavar="FOLDER", help="the submissions: a file or a folder for each student")
    add("--out", default="grades.csv", metavar="FILE", help="the table (default: grades.csv)")
    add("--rubric", metavar="FILE.toml", help="what counts, and how much (default: every exercise counts 1 point)")
    add("--rubric-example", action="store_true", help="print an example of a rubric, and nothing else")
    add("--reports", metavar="DIR", help="folder for the reports (default: beside the table, grades_reports)")
    add("--seconds", type=_positive, default=10.0, metavar="N", help="time for each exercise (default: 10)")
    add("--memory", type=_positive, default=2.0, metavar="GiB", help="memory for each submission (default: 2)")
    add(
        "--workers", type=number_of_workers, default="auto", metavar="N|auto",
        help="submissions at the same time (default: auto, one for each core)",
    )  # fmt: skip
    add("--seed", type=_seed, metavar="N", help="of the inputs (default: that of the last run into DIR, or drawn)")


def run(args):
    from tqdm import tqdm

    from ..homework.grading.report import number
    from ..homework.grading.rubric import default_rubric, read_rubric
    from ..homework.grading.run import Grading
    from ..homework.grading.sandbox.session import Limits
    from ..support.processes import cores

    if args.rubric_example:
        print(EXAMPLE, end="")
        return 0
    if args.folder is None:
        raise ValueError("say which folder holds the submissions: transformer-np homework grade FOLDER")
    check_writable("--out", args.out)
    rubric = read_rubric(args.rubric) if args.rubric else default_rubric()
    grading = Grading(
        args.folder,
        args.out,
        rubric,
        args.reports,
        Limits(args.seconds, int(args.memory * 2**30)),
        cores() if args.workers == "auto" else args.workers,
        args.seed,
    )
    with tqdm(total=len(grading.submissions), unit="submission", file=sys.stderr) as bar:
        grades = grading.run(bar)
    width = max(len(grade.student) for grade in grades)
    for grade in grades:
        points = f"{number(grade.points(rubric))} of {number(rubric.possible)}"
        print(f"{grade.student:<{width}}  {points}" + (f"  {'; '.join(grade.remarks)}" if grade.remarks else ""))
    if grading.reused:
        print(f"{grading.reused} of {len(grades)} were graded before and are unchanged")
    print(grading.sentence(grades))
    print(f"{args.out}, reports in {grading.reports}")
    return 0


def _positive(text):
    try:
        if 0 < float(text) < float("inf"):
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")


def _seed(text):
    return int(text) if text.isdecimal() and text == "0" else positive_number(text, "a whole number from 0")
