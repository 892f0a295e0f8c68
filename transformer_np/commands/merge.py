from . import add_command


def add_parser(subparsers):
    parser = add_command(subparsers, "merge", run, "--model runs/play --out my-play")
    add = parser.add_argument
    add("--model", metavar="DIR", required=True, help="folder of the run")
    add("--out", metavar="DIR", required=True, help="folder for the merged model")
    add(
        "--pretrained", action="store_true",
        help="write a folder in Hugging Face's layout (default: a run, which the other commands read with --model)",
    )  # fmt: skip


def run(args):
    from ..support.files import held
    from ..tasks import runs

    with held(args.out):
        (runs.merge_as_pretrained if args.pretrained else runs.merge)(args.model, args.out)
    print(f"saved in {args.out}")
