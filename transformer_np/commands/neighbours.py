from ..tasks import runs
from . import add_command, check_writable, positive_number


def add_parser(subparsers):
    parser = add_command(
        subparsers,
        "neighbours",
        run,
        "words with similar vectors, and analogies, by a trained Word2Vec or a file of vectors",
        "transformer-np neighbours list integer --analogy list lists tuple",
    )
    add = parser.add_argument
    add("word", nargs="*", metavar="WORD", help="words whose neighbours are wanted")
    add("--analogy", nargs=3, metavar=("A", "B", "C"), help="what is to C as B is to A: man king woman")
    add_vectors(parser)
    add("--count", type=positive_number, default=10, metavar="N", help="how many to show (default: 10)")
    add("--save", metavar="FILE", help="write all vectors to a file in the word2vec text format")
    add("--binary", action="store_true", help="with --save: in the binary format")


def add_vectors(parser):
    """Where the vectors come from: two options that exclude each other."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--model", metavar="DIR", help="folder of the run (default: the newest Word2Vec)")
    source.add_argument("--vectors", metavar="FILE", help="vectors in the word2vec text or binary format instead")


def given_vectors(args):
    """The WordVectors that the arguments name."""
    from ..tasks.word2vec import KIND, WordVectors

    if args.vectors is not None:
        return WordVectors.read(args.vectors)
    return WordVectors.load(args.model or runs.newest_run(KIND))


def run(args):
    if not args.word and not args.analogy and not args.save:
        raise ValueError("there is nothing to do: give a WORD, --analogy A B C or --save FILE")
    if args.binary and not args.save:
        raise ValueError("--binary needs --save FILE")
    if args.save:
        check_writable("--save", args.save)
    vectors = given_vectors(args)
    found = [(word, vectors.neighbours(word, args.count)) for word in args.word]
    if args.analogy:
        a, b, c = args.analogy
        found.append((f"{a} : {b} = {c} : ?", vectors.analogy(a, b, c, args.count)))
    if args.save:
        vectors.write(args.save, args.binary)
        print(args.save)
    for number, (question, words) in enumerate(found):
        if number:
            print()
        print("\n".join([question, *(f"  {cosine:6.3f}  {word}" for word, cosine in words)]))
    return 0
