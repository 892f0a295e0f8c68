import argparse
import json
import sys
from importlib.util import find_spec

from ..bench import DEFAULT, TRAINING, WHAT, WHOLE
from ..support.progress import note
from . import add_command, add_quiet, check_writable, number_of_workers, positive_number


def add_parser(subparsers):
    parser = add_command(subparsers, "bench", run, "transformer-np bench gpt base --against torch --json bench.json")
    kinds = "; ".join(f"{name}: {summary}" for name, summary in WHAT.items())
    parser.add_argument(
        "what", nargs="*", type=_what, metavar="WHAT",
        help=f"what to measure (default: {' '.join(DEFAULT)}; about two minutes). {kinds}",
    )  # fmt: skip
    parser.add_argument("--against", choices=("torch",), help="also measure the same models in PyTorch")
    parser.add_argument(
        "--profile",
        action="store_true",
        help="break down the time of one training step, by kind of function and by layer",
    )
    parser.add_argument(
        "--workers", type=number_of_workers, default="auto", metavar="N|auto",
        help="also train with this many processes (default: auto, one per core)",
    )  # fmt: skip
    parser.add_argument(
        "--rounds", type=positive_number, metavar="N",
        help="turns per contestant (default: 7; for whole commands: 3; for `tasks`: 2 seeds)",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="3 short turns per contestant: rough numbers")
    parser.add_argument(
        "--plain", action="store_true",
        help="include attention that holds all weights for 4096 tokens, which takes about 10 GB",
    )  # fmt: skip
    parser.add_argument(
        "--text", metavar="FILE", help="the data of `train`, `translate` or `classify` (default: the built-in ones)"
    )
    parser.add_argument("--json", metavar="FILE", help="write all measurements, including the time of every turn")
    add_quiet(parser)


def run(args):
    if args.against and find_spec("torch") is None:
        raise ModuleNotFoundError('--against torch needs PyTorch: pip install -e ".[bench]"')
    if args.profile and args.against:
        raise ValueError("--profile measures only this package: leave out --against")
    if args.profile and not set(args.what) <= TRAINING.keys():
        raise ValueError(f"--profile needs training steps: WHAT must be among {', '.join(TRAINING)}")
    whole = [name for name in WHOLE if name in args.what]
    if args.text and len(whole) != 1:
        raise ValueError(
            f"--text is the data of one of {', '.join(WHOLE)}: WHAT needs one of them, or leave out --text"
        )
    if args.json:
        check_writable("--json", args.json)
    from ..bench import report
    from ..support.files import write_text
    from ..support.platform import check_processes
    from ..support.processes import cores

    check_processes("benchmarks need")
    machine = report.machine()
    print(report.head(machine, args.against is not None), flush=True)
    what = args.what or [name for name in DEFAULT if not args.profile or name in TRAINING]
    workers = _most_workers() if args.workers == "auto" else args.workers
    options = {name: value for name, value in vars(args).items() if name not in ("run", "parser")}
    found = {"machine": machine, "options": {**options, "what": what, "workers": workers}, "races": [], "profiles": {}}
    outcomes = [] if args.profile else _races(args, what, workers, cores(), found)
    for name in dict.fromkeys(what if args.profile else ()):
        _profile(name, args.quick, found, by=("kind", "layer"))
    for name in whole:
        found[name] = _whole(name, args)
    if "tasks" in what:
        found["tasks"] = _tasks(args)
    if args.json:
        found["races"] = report.races_as_json(outcomes)
        write_text(args.json, json.dumps(found, indent=1, allow_nan=False, default=vars))  # vars: of dataclasses
        print(f"\n{args.json}")
    wrong = report.unequal(outcomes)
    for sentence in wrong:
        print(f"transformer-np: error: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


def _most_workers():
    from ..bench.configurations import LEAST_ROWS
    from ..support.platform import can_fork
    from ..support.processes import cores

    return min(cores(), LEAST_ROWS) if can_fork() else 1


def _races(args, what, workers, threads, found):
    """All races, and a short profile after each training race  ->  [Outcome]"""
    from ..bench import measure, report
    from ..bench.races import races

    rounds, burst = (measure.QUICK_ROUNDS, measure.QUICK_BURST) if args.quick else (measure.ROUNDS, measure.BURST)
    outcomes = []
    for race in races(what, workers, args.against == "torch", threads, args.quick, args.plain):
        outcomes.append(measure.run_race(race, args.rounds or rounds, burst, note))
        print(f"\n{report.table(outcomes[-1])}", flush=True)
        if race.name in TRAINING:
            _profile(race.name, args.quick, found)
    return outcomes


def _profile(name, quick, found, by=("kind",)):
    from ..bench import measure, report

    found["profiles"][name] = profile = measure.profile(name, quick, note)
    for each in by:
        print(f"\n{report.profile_table(name, profile, each)}", flush=True)


def _whole(name, args):
    """Run one of the whole commands  ->  its outcome"""
    from ..bench import whole

    rounds = args.rounds or (whole.QUICK_ROUNDS if args.quick else whole.ROUNDS)
    steps = whole.RACES[name].quick if args.quick else whole.RACES[name].steps
    outcome = whole.run_whole(name, args.text, steps, rounds, args.against == "torch", note)
    print(f"\n{whole.table(outcome)}", flush=True)
    return outcome


def _tasks(args):
    """Train on each task with `--rounds` seeds  ->  their scores"""
    from ..bench import tasks

    scores = []
    print(f"\n{tasks.HEAD}", flush=True)
    for task in tasks.TASKS:
        found = []
        for seed in range(args.rounds or (1 if args.quick else 2)):
            note(f"{task}, seed {seed}")
            found.append(tasks.score(task, seed, args.against == "torch"))
        print(tasks.row(found), flush=True)  # at once: all tasks take an hour
        scores += found
    return scores


def _what(name):
    if name not in WHAT:
        raise argparse.ArgumentTypeError(f"invalid choice: {name!r} (choose from {', '.join(WHAT)})")
    return name
