import argparse
import json
import shlex
from importlib.util import find_spec
from itertools import groupby
from operator import attrgetter

from ..bench import DEFAULT, TRAINING, WHAT, WHOLE
from ..support.progress import note
from . import add_command, add_quiet, check_writable, number_of_workers, positive_number, say


def add_parser(subparsers):
    parser = add_command(subparsers, "bench", run, "gpt base --against torch --into bench.md")
    kinds = "; ".join(f"{name}: {summary}" for name, summary in WHAT.items())
    parser.add_argument(
        "what", nargs="*", type=_what, metavar="WHAT",
        help=f"what to measure (default: {' '.join(DEFAULT)}; about two minutes). {kinds}",
    )  # fmt: skip
    parser.add_argument("--against", choices=("torch",), help="also measure the same in PyTorch")
    parser.add_argument(
        "--profile", action="store_true",
        help="break down the time of one training step, by kind of function, also of PyTorch, and by layer",
    )  # fmt: skip
    parser.add_argument(
        "--train", action="append", default=[], metavar='"COMMAND"',
        help='train with these options of `transformer-np train`, such as "gpt --steps 400 --lr 0.02"; several --train '
        "are compared in turn",
    )  # fmt: skip
    parser.add_argument(
        "--workers", type=number_of_workers, default="auto", metavar="N|auto",
        help="also train with this many processes (default: auto, one per core)",
    )  # fmt: skip
    parser.add_argument(
        "--rounds", type=positive_number, metavar="N",
        help="turns per contestant (default: 7); seeds of whole commands (default: 3, for `tasks` 2)",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="fewer and shorter turns: rough numbers")
    help_text = "the data of `train`, `translate` or `loss` (default: the built-in ones)"
    parser.add_argument("--text", metavar="FILE", help=help_text)
    parser.add_argument("--json", metavar="FILE", help="write all measurements, including the time of every turn")
    parser.add_argument(
        "--into", metavar="FILE.md",
        help="write the tables into a Markdown file, in place of those that the same command made on such a processor",
    )  # fmt: skip
    add_quiet(parser)


def run(args):
    if args.against and find_spec("torch") is None:
        raise ModuleNotFoundError('--against torch needs PyTorch: pip install -e ".[bench]"')
    if args.profile and not set(args.what) <= TRAINING.keys():
        raise ValueError(f"--profile needs training steps: WHAT must be among {', '.join(TRAINING)}")
    whole = [name for name in WHOLE if name in args.what]
    if args.text and (len(whole) != 1 or "tasks" in whole):
        own = [name for name in WHOLE if name != "tasks"]
        raise ValueError(f"--text is the data of one of {', '.join(own)}: WHAT needs one of them, or leave out --text")
    check_writable("--json", args.json)
    check_writable("--into", args.into)
    from ..bench import report
    from ..support.files import write_text
    from ..support.platform import check_processes

    check_processes("benchmarks need")
    machine, command = report.machine(), _typed(args)
    texts = [report.head(command, machine, args.against)]
    print(texts[0], flush=True)
    default = [] if args.train else [name for name in DEFAULT if not args.profile or name in TRAINING]
    found, outcomes = {"command": command, "machine": machine}, []
    for name, measured, text in _measured(args, args.what or default, whole):
        found.setdefault(name, []).append(measured)
        outcomes += measured if name == "races" else []
        texts.append(text)
        print(f"\n{text}", flush=True)
    if args.into:
        report.put_into(args.into, command, machine, "\n\n".join(texts))
    if args.json:
        write_text(args.json, json.dumps(found, indent=1, allow_nan=False, default=vars))  # vars: of dataclasses
        print(f"\n{args.json}")
    wrong = report.unequal(outcomes)
    for sentence in wrong:
        say(f"transformer-np: error: {sentence}")
    return 1 if wrong else 0


def _typed(args):
    """The command as it is typed, without the options that say where its results go."""
    words = ["transformer-np", "bench", *args.what]
    for name, value in vars(args).items():
        if name in ("what", "json", "into", "quiet", "run", "parser") or value == args.parser.get_default(name):
            continue
        for each in value if isinstance(value, list) else [value]:
            words += [f"--{name}"] if each is True else [f"--{name}", str(each)]
    return shlex.join(words)


def _measured(args, what, whole):
    """Measure one group after the other  ->  for each the kind, the measurements and their tables"""
    from tempfile import TemporaryDirectory

    from ..bench import measure, report
    from ..bench import whole as commands
    from ..bench.races import races
    from ..support.processes import cores

    against_torch, rounds = args.against == "torch", args.rounds
    if args.profile:
        for name in dict.fromkeys(what):
            profile = measure.profile(name, against_torch, args.quick, note)
            yield "profiles", {"name": name, **profile}, report.profile_tables(name, profile)
        return
    usual, burst = (measure.QUICK_ROUNDS, measure.QUICK_BURST) if args.quick else (measure.ROUNDS, measure.BURST)
    workers = _most_workers() if args.workers == "auto" else args.workers
    found = races(what, workers, against_torch, cores(), args.quick)
    for _, group in groupby(found, attrgetter("group")):
        outcomes = [measure.run_race(race, rounds or usual, burst, note) for race in group]
        yield "races", outcomes, report.race_tables(outcomes)
    with TemporaryDirectory() as folder:
        chosen = [(name, list(commands.groups(name, args.text, against_torch, folder))) for name in whole]
        chosen += [("train", [[commands.ours(*shlex.split(line)) for line in args.train]])] if args.train else []
        for name, groups in chosen:
            usual = 1 if args.quick else commands.ROUNDS_OF_TASKS if name == "tasks" else commands.ROUNDS
            for group in groups:
                commands.run(group, rounds or usual, note)
            yield "commands", groups, commands.tables(groups)


def _most_workers():
    from ..bench.configurations import LEAST_ROWS
    from ..support.platform import can_fork
    from ..support.processes import cores

    return min(cores(), LEAST_ROWS) if can_fork() else 1


def _what(name):
    if name not in WHAT:
        raise argparse.ArgumentTypeError(f"invalid choice: {name!r} (choose from {', '.join(WHAT)})")
    return name
