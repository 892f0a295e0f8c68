import sys

from ..tasks import runs
from . import add_command, given_texts


def add_parser(subparsers):
    parser = add_command(
        subparsers,
        "translate",
        run,
        "translate sentences with a trained model",
        'transformer-np translate --show-steps "Lucas will travel in December"',
    )
    add = parser.add_argument
    add("text", nargs="*", metavar="TEXT", help="sentences, each in quotes (default: the lines of standard input)")
    add("--model", metavar="DIR", help="folder of the run (default: the newest translator below this folder)")
    add("--beam", type=int, default=1, metavar="N", help="beam size (default: 1, which is greedy)")
    add("--length-penalty", type=float, default=0.6, metavar="X", help="length penalty of beam search (default: 0.6)")
    add(
        "--show-steps",
        action="store_true",
        help="print the token, its log-probability and the runners-up of each time step",
    )


def run(args):
    from ..tasks.translation import KIND, Translator, format_steps

    if args.show_steps and args.beam != 1:
        raise ValueError("--show-steps works only with greedy decoding: leave out --beam")
    if not 0 <= args.length_penalty <= 10:
        raise ValueError(f"--length-penalty must lie in 0 … 10, got {args.length_penalty}")
    translator = Translator.load(args.model or runs.newest_run(KIND))
    for sentence in given_texts(args.text):
        unknown = translator.src_tokenizer.unknown(sentence)
        if unknown:
            print(f"the model does not know: {', '.join(unknown)}", file=sys.stderr)
        if args.show_steps:
            print("\n".join(format_steps(sentence, translator)))
        print(translator.translate(sentence, args.beam, args.length_penalty), flush=True)
    return 0
