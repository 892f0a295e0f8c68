import sys

from ..tasks import runs
from . import add_command

START = "\n"  # the default prompt: the beginning of a line


def add_parser(subparsers):
    parser = add_command(
        subparsers,
        "generate",
        run,
        "continue a text with a trained GPT or Transformer-XL",
        'transformer-np generate --prompt "The statement " --max-new-tokens 200 --temperature 0.8',
    )
    add = parser.add_argument
    add("text", nargs="*", metavar="TEXT", help="beginnings of texts, each in quotes (default: a new line)")
    add("--prompt", nargs="+", metavar="TEXT", action="extend", default=[], help="the same as TEXT, as an option")
    add("--model", metavar="DIR", help="folder of the run (default: the newest below this folder)")
    add("--max-new-tokens", type=int, default=500, metavar="N", help="tokens to generate (default: 500)")
    add(
        "--temperature",
        type=float,
        default=1.0,
        metavar="X",
        help="below 1 safer, above 1 wilder; 0 takes the likeliest token (default: 1)",
    )
    add("--top-k", type=int, metavar="N", help="draw only from the N likeliest tokens")
    add(
        "--top-p", type=float, metavar="P", help="draw only from the likeliest tokens that together reach probability P"
    )
    add("--seed", type=int, default=0, metavar="N", help="seed of the random draws (default: 0)")
    add("--stop", metavar="TEXT", help="end the text before this occurs")


def run(args):
    from ..tasks import text, xl

    if args.seed < 0:
        raise ValueError(f"--seed must not be negative, got {args.seed}")
    generators = {text.KIND: text.TextGenerator, xl.KIND: xl.XLTextGenerator}
    folder = args.model or runs.newest_run(*generators)
    generator = generators[runs.read_run(folder, *generators)["kind"]].load(folder)
    prompts = [*args.text, *args.prompt] or [START]
    for prompt in prompts:
        length = len(generator.encode(prompt))  # reports a bad prompt before any text is generated
        if length > generator.context:
            print(
                f"the prompt has {length} tokens, but the model sees at most {generator.context}: "
                f"the first {length - generator.context} are ignored",
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
