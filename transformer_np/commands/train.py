from dataclasses import fields
from typing import get_args

from ..tasks import TASKS, task_of
from . import add_command, add_quiet, number_above_0, number_of_workers, positive_number, quoted, say


def add_parser(subparsers, only=None):
    """only: the kind whose flags are added, because to read a kind's options takes as long as to load its models"""
    example = "example: transformer-np train translate --pairs por.txt --out runs/tatoeba"
    parser = subparsers.add_parser("train", help="train a model", description="Train a model.", epilog=example)
    kinds = parser.add_subparsers(metavar="KIND", required=True)
    for kind, (_, summary) in TASKS.items():
        if only in (None, kind):
            _add_kind(kinds, kind, summary)
        else:
            kinds.add_parser(kind, help=summary)


def _add_kind(kinds, kind, summary):
    """A sub-command with a flag for every option of the task."""
    from ..tasks.task import SAVE_SECONDS

    task = task_of(kind)
    parser = add_command(kinds, kind, run, task.example, summary)
    parser.set_defaults(task=task)
    add = parser.add_argument
    add("--out", metavar="DIR", help=f"folder for the run (default: runs/{task.kind}-1, or the next free number)")
    add_quiet(parser)
    add("--resume", action="store_true", help="continue the run in --out with its options (--steps may be larger)")
    add(
        "--workers", type=number_of_workers, metavar="N|auto",
        help="processes that share each step; auto: one per core if that makes a few measured steps faster; 1: the "
        "same numbers to the last bit in every run (default: auto; with --resume as before; with mpiexec all that it "
        "started)",
    )  # fmt: skip
    add(
        "--validate-every", type=positive_number, metavar="N",
        help="steps between validations (default: a tenth of all steps, at least 100; with --resume as before)",
    )  # fmt: skip
    add(
        "--save-every", type=float, metavar="SECONDS",
        help="seconds between saves of the run; it is also saved at the end and at Ctrl-C "
        f"(default: {SAVE_SECONDS:.0f}; with --resume as before)",
    )  # fmt: skip
    add(
        "--keep", choices=("best", "last"),
        help="the weights to use: those of the step with the lowest validation loss, or of the last step "
        "(default: best; with --resume as before)",
    )  # fmt: skip
    add(
        "--constant-lr", type=number_above_0, metavar="X",
        help="with --resume: this learning rate from now on (default: the schedule goes on, and --steps stretches it)",
    )  # fmt: skip
    for field in fields(task.Options):
        kind = (*get_args(field.type), field.type)[0]  # the float of `float | None`
        shown = "" if field.default is None else f" (default: {field.default})"
        flag, text = "--" + field.name.replace("_", "-"), field.metadata["text"]
        if kind is bool:
            add(flag, action="store_const", const=True, help=text)
            continue
        add(
            flag, type=kind, choices=field.metadata["choices"],
            metavar=field.metadata["metavar"] or (None if kind is str else {int: "N", float: "X"}[kind]),
            help=text + shown,
        )  # fmt: skip


def run(args):
    from ..tasks import runs
    from ..training.mpi import MPITeam, launched_by_mpi

    workers = args.workers or (None if args.resume else "auto")
    if launched_by_mpi():
        workers = MPITeam()
    if args.workers and launched_by_mpi():
        raise ValueError("--workers and mpiexec exclude each other: let mpiexec start more processes")
    if args.resume and not args.out:
        raise ValueError("--resume needs the folder of the run: --out DIR")
    task = args.task
    asked = {f.name: getattr(args, f.name) for f in fields(task.Options) if getattr(args, f.name) is not None}
    folder = args.out or runs.free_folder(task.kind)
    options = asked if args.resume else task.Options(**asked)
    trained = task.train(
        options, folder, resume=args.resume, progress=not args.quiet,
        report=None if args.quiet else say, workers=workers,
        validate_every=args.validate_every, save_seconds=args.save_every, keep=args.keep,
        constant_lr=args.constant_lr,
    )  # fmt: skip
    trainer = trained.trainer
    if not trainer.leads:
        return 0
    if trainer.interrupted:
        say(f"interrupted after step {trainer.step}; everything is saved. Continue with")
        say(f"  transformer-np train {task.kind} --out {quoted(folder)} --resume")
        return 130
    print(f"steps {trainer.step}")
    print(f"wall time {trainer.history.seconds:.1f} s")
    for what, number in task.speed(trained).items():
        print(f"{what} {number:,.0f}")
    print(f"validation loss {trained.validation_loss:.4f}")
    if trained.kept:
        print(trained.kept)
    for what, share in trained.measured.items():
        print(f"{what} {share:.1%}")
    print(f"saved in {folder}", flush=True)
    for line in [] if args.quiet else trained.advice:
        say(f"advice: {line}")
    return 0
