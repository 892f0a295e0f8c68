import sys

from . import add_command, add_json, add_model, given_texts, print_json


def add_parser(subparsers):
    parser = add_command(
        subparsers, "classify", run,
        'transformer-np classify "not bad at all" "the plot is dull, but the actors are wonderful"',
    )  # fmt: skip
    add = parser.add_argument
    add("text", nargs="*", metavar="TEXT", help="texts, each in quotes (default: the lines of standard input)")
    add_model(
        parser, "folder of the run (default: the newest classifier below this folder)",
        "a pretrained BERT that classifies texts or tokens, or finds answers", minilm=False,
    )  # fmt: skip
    add("--question", metavar="TEXT", help="with a BERT that finds answers: the question to answer from each text")
    add_json(parser, "one line per text, with its label, the probabilities, unknown words and tokens left out,")


def run(args):
    from ..tasks import runs
    from ..tasks.classify import KIND, Classifier
    from ..tasks.pretrained_classes import PretrainedClassifier

    if args.pretrained is not None:
        classifier = PretrainedClassifier.load(args.pretrained)
    else:
        classifier = Classifier.load(args.model or runs.newest_run(KIND))
    config = classifier.model.config
    if config.span_head != (args.question is not None):
        needs = "needs --question" if config.span_head else "answers no questions: leave out --question"
        raise ValueError(f"the model in {args.pretrained or args.model or 'the newest run'} {needs}")
    if config.span_head or config.token_classes is not None:
        for text in given_texts(args.text):
            _show(classifier, text, args)
        return 0
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


def _show(classifier, text, args):
    """The answer in a text, or the label of each of its tokens."""
    if args.question is not None:
        answer, p = classifier.answer(args.question, text)
        found, lines = {"question": args.question, "answer": answer, "probability": p}, [f"{p:6.1%}  {answer}"]
    else:
        tokens = classifier.tokens(text)
        found = {"tokens": [dict(zip(("token", "label", "probability"), row, strict=True)) for row in tokens]}
        lines = [f"{label} {p:.1%}  {token}" for token, label, p in tokens]
    if args.json:
        print_json({"text": text, **found})
    else:
        print(*lines, sep="\n", flush=True)


def format_probabilities(probabilities):
    """The labels with their probabilities on one line, the likeliest first."""
    likeliest = sorted(probabilities.items(), key=lambda item: -item[1])
    return "  ".join(f"{label} {p:.1%}" for label, p in likeliest)
