from . import add_command, add_json, print_json


def add_parser(subparsers):
    parser = add_command(subparsers, "evaluate", run, "other.tsv --model runs/tatoeba")
    add = parser.add_argument
    add(
        "file", metavar="FILE",
        help="a file of the form that the run was trained on: a text, pairs, labelled texts; of a T5, pairs of a text "
        "with its prefix and the answer, or a text if it was trained on spans only",
    )  # fmt: skip
    add("--model", metavar="DIR", help="folder of the run (default: the newest below this folder)")
    add_json(parser, "the numbers")


def run(args):
    from .. import tasks
    from ..tasks import runs, trained

    measured = [task.kind for task in tasks.all_tasks() if task.Result.evaluate is not trained.Trained.evaluate]
    folder = args.model or runs.newest_run(*measured)
    found = tasks.load_trained(folder, *tasks.TASKS).evaluate(args.file)
    if args.json:
        print_json({"model": str(folder), "file": args.file, **found})
        return
    if args.model is None:
        print(f"model {folder}")
    for name, value in found.items():
        share = not name.startswith(("loss", "perplexity"))
        kind = "," if isinstance(value, int) else ".1%" if share else ".4f" if value < 1e9 else ".4g"
        print(name, format(value, kind))
