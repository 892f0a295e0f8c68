import sys

from ..tasks import runs
from . import add_command

START = "\n"  # where no prompt is given: the beginning of a line


def add_parser(subparsers):
    parser = add_command(
        subparsers,
        "generate",
        run,
        "go on with a text, with a trained GPT or Transformer-XL",
        'transformer-np generate --prompt "The statement " --max-new-tokens 200 --temperature 0.8',
    )
    add = parser.add_argument
    add("text", nargs="*", metavar="TEXT", help="beginnings of texts, each in quotes (default: a new line)")
    add("--prompt", nargs="+", metavar="TEXT", action="extend", default=[], help="the same, behind a flag")
    add("--model", metavar="DIR", help="folder of the run (default: the newest below this folder)")
    add("--max-new-tokens", type=int, default=500, metavar="N", help="length of what is written (default: 500)")
    add("--temperature", type=float, default=1.0, metavar="X", help="below 1 safer, above 1 wilder, 0 the likeliest")
    add("--top-k", type=int, metavar="N", help="draw from the N likeliest tokens only")
    add("--top-p", type=float, metavar="P", help="draw from the likeliest tokens that together reach probability P")
    add("--seed", type=int, default=0, metavar="N", help="another seed, another text (default: 0)")
    add("--stop", metavar="TEXT", help="end before this comes up")


def run(args):
    from ..tasks import text, xl

    if args.seed < 0:
        raise ValueError(f"--seed must not be negative, got {args.seed}")
    generators = {text.KIND: text.TextGenerator, xl.KIND: xl.XLTextGenerator}
    folder = args.model or runs.newest_run(*generators)
    generator = generators[runs.read_run(folder, *generators)["kind"]].load(folder)
    prompts = [*args.text, *args.prompt] or [START]
    for prompt in prompts:
        length = len(generator.encode(prompt))  # whatever is wrong with a prompt shows before any text
        if length > generator.context:
            print(
                f"the prompt has {length} tokens, the model sees at most {generator.context}: "
                f"the first {length - generator.context} have no influence",
                file=sys.stderr,
            )
    for i, prompt in enumerate(prompts):
        if i:
            print("-" * 20)
        written = generator.generate(
            prompt, args.max_new_tokens, args.temperature, args.top_k, args.top_p, rng=args.seed, stop=args.stop
        )
        print(written if args.text or args.prompt else written.removeprefix(START), flush=True)
    return 0
