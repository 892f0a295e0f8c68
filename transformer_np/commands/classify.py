import sys

from ..tasks import runs
from . import add_command, given_texts


def add_parser(subparsers):
    parser = add_command(
        subparsers,
        "classify",
        run,
        "classify texts with a trained model: the probability of each label",
        'transformer-np classify "not bad at all" "the plot is dull, but the actors are wonderful"',
    )
    add = parser.add_argument
    add("text", nargs="*", metavar="TEXT", help="texts, each in quotes (default: the lines of standard input)")
    add("--model", metavar="DIR", help="folder of the run (default: the newest classifier below this folder)")


def run(args):
    from ..tasks.classify import KIND, Classifier

    classifier = Classifier.load(args.model or runs.newest_run(KIND))
    for text in given_texts(args.text):
        unknown = classifier.tokenizer.unknown(text)
        if unknown:
            print(f"the model does not know: {', '.join(unknown)}", file=sys.stderr)
        left_out = classifier.left_out(text)
        if left_out:
            print(f"the text is too long for the model: its last {left_out} tokens are ignored", file=sys.stderr)
        print(format_probabilities(classifier.probabilities(text)), text, sep="  ", flush=True)
    return 0


def format_probabilities(probabilities):
    """The labels with their probabilities on one line, the likeliest first."""
    likeliest = sorted(probabilities.items(), key=lambda item: -item[1])
    return "  ".join(f"{label} {p:.1%}" for label, p in likeliest)
