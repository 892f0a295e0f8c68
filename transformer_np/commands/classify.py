from ..support.checks import short
from . import Unseen, add_command, add_json, add_model, for_each_text, print_json, say_left_out


def add_parser(subparsers):
    example = '"not bad at all" "the plot is dull, but the actors are wonderful"'
    parser = add_command(subparsers, "classify", run, example)
    add = parser.add_argument
    add("text", nargs="*", metavar="TEXT", help="texts, each in quotes (default: the lines of standard input)")
    add_model(
        parser, "folder of the run (default: the newest classifier below this folder)",
        "a pretrained BERT that classifies texts or tokens, or finds answers", minilm=False,
    )  # fmt: skip
    add("--question", metavar="TEXT", help="with a BERT that finds answers: the question to answer from each text")
    add("--pair", action="store_true", help="texts in pairs: TEXT TEXT, or two with a tab between them on each line")
    given = "its label, the probabilities, unknown and unseen words and tokens left out"
    add_json(parser, f"one line per text, with {given},")


def run(args):
    from ..tasks import load_trained
    from ..tasks.pretrained_classes import PretrainedClassifier

    if args.pretrained is not None:
        classifier = PretrainedClassifier.load(args.pretrained)
    else:
        classifier = load_trained(args.model, "classify")
    config = classifier.model.config
    if config.span_head != (args.question is not None):
        needs = "needs --question" if config.span_head else "answers no questions: leave out --question"
        raise ValueError(f"the model in {args.pretrained or args.model or 'the newest run'} {needs}")
    if args.pair and (config.span_head or config.token_classes is not None):
        raise ValueError(f"--pair is for a model that classifies texts, which {args.pretrained} is not")
    if classifier.pairs is not None and classifier.pairs != args.pair:
        how = "pairs of texts: pass --pair, and two of them" if classifier.pairs else "one text: leave out --pair"
        raise ValueError(f"the model reads {how}")
    texts = args.text
    if args.pair:
        if len(texts) % 2:
            raise ValueError(f"--pair needs the texts two by two, got {len(texts)}")
        texts = ["\t".join(two) for two in zip(texts[::2], texts[1::2], strict=True)]
    unseen = Unseen(classifier, quiet=args.json)

    def use(text):
        found, lines, left_out = _found(classifier, text, args)
        new = unseen(text)
        if args.json:
            print_json({**found, **new, "tokens_left_out": left_out})
        else:
            say_left_out(left_out)
            print(*lines, sep="\n", flush=True)

    return for_each_text(texts, use, args.json)


def _found(classifier, text, args):
    """What the model says of a text: for JSON, as lines to print, and the number of tokens that it does not read."""
    if args.question is not None:
        answer = classifier.find_answer(args.question, text)
        span = {"answer": answer.span, "probability": answer.span_probability}
        found = {"text": text, "question": args.question, "answer": answer.text, "probability": answer.probability}
        found |= {"no_answer": answer.no_answer, "best_span": span}
        return found, [f"{answer.probability:6.1%}  {answer.text or 'no answer'}"], answer.left_out
    texts = text.split("\t", 1) if args.pair else [text]
    if args.pair and len(texts) < 2:
        raise ValueError(f"--pair needs two texts with a tab between them on each line; there is none in {short(text)}")
    encoded = classifier.read(*(part.strip() for part in texts))
    if classifier.model.config.token_classes is not None:
        tokens = classifier.tokens_of(encoded, text)
        rows = [dict(zip(("token", "label", "probability"), row, strict=True)) for row in tokens]
        lines = [f"{label} {p:.1%}  {token}" for token, label, p in tokens]
        return {"text": text, "tokens": rows}, lines, encoded.left_out
    values = classifier.values_of(encoded)
    found = {"text": texts[0], **({"second": texts[1]} if args.pair else {}), "label": max(values, key=values.get)}
    found |= {"output": classifier.output, "values" if classifier.output == "number" else "probabilities": values}
    return found, ["  ".join([format_probabilities(values, classifier.output), *texts])], encoded.left_out


def format_probabilities(probabilities, output="one"):
    """The labels with their probabilities on one line, the likeliest first; the numbers of a regression as numbers."""
    likeliest = sorted(probabilities.items(), key=lambda item: -item[1])
    return "  ".join(f"{label} {p:.4g}" if output == "number" else f"{label} {p:.1%}" for label, p in likeliest)
