import sys

from . import COMMANDS, add_command, add_json, given_texts, print_json


def add_parser(subparsers):
    parser = add_command(
        subparsers,
        "classify",
        run,
        COMMANDS["classify"],
        'transformer-np classify "not bad at all" "the plot is dull, but the actors are wonderful"',
    )
    add = parser.add_argument
    add("text", nargs="*", metavar="TEXT", help="texts, each in quotes (default: the lines of standard input)")
    add("--model", metavar="DIR", help="folder of the run (default: the newest classifier below this folder)")
    add_json(parser, "one line per text, with its label, the probabilities, unknown words and tokens left out,")


def run(args):
    from ..tasks import runs
    from ..tasks.classify import KIND, Classifier

    classifier = Classifier.load(args.model or runs.newest_run(KIND))
    for text in given_texts(args.text):
        unknown = classifier.tokenizer.unknown(text)
        left_out, probabilities = classifier.left_out(text), classifier.probabilities(text)
        if args.json:
            label = max(probabilities, key=probabilities.get)
            found = {"text": text, "label": label, "probabilities": probabilities}
            print_json({**found, "unknown": unknown, "tokens_left_out": left_out})
            continue
        if unknown:
            print(f"the model does not know: {', '.join(unknown)}", file=sys.stderr)
        if left_out:
            print(f"the text is too long for the model: its last {left_out} tokens are ignored", file=sys.stderr)
        print(format_probabilities(probabilities), text, sep="  ", flush=True)
    return 0


def format_probabilities(probabilities):
    """The labels with their probabilities on one line, the likeliest first."""
    likeliest = sorted(probabilities.items(), key=lambda item: -item[1])
    return "  ".join(f"{label} {p:.1%}" for label, p in likeliest)
