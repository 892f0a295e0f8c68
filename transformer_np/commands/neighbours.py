import sys

from . import add_command, add_json, add_vectors, check_writable, given_vectors, positive_number, print_json


def add_parser(subparsers):
    parser = add_command(subparsers, "neighbours", run, "list integer --analogy list lists tuple")
    add = parser.add_argument
    add("word", nargs="*", metavar="WORD", help="words to find the neighbours of")
    add("--analogy", nargs=3, metavar=("A", "B", "C"), help="find the word that is to C as B is to A: man king woman")
    add_vectors(parser)
    add("--count", type=positive_number, default=10, metavar="N", help="how many words to show (default: 10)")
    add("--save", metavar="FILE", help="write all vectors to a file in the word2vec text format")
    add("--binary", action="store_true", help="with --save: use the binary format")
    add_json(parser, "one line per question, with the words and their cosines,")


def run(args):
    if not args.word and not args.analogy and not args.save:
        raise ValueError("there is nothing to do: give a WORD, --analogy A B C or --save FILE")
    if args.binary and not args.save:
        raise ValueError("--binary needs --save FILE")
    check_writable("--save", args.save)
    vectors = given_vectors(args)
    found = [(word, vectors.neighbours(word, args.count)) for word in args.word]
    if args.analogy:
        a, b, c = args.analogy
        found.append((f"{a} : {b} = {c} : ?", vectors.analogy(a, b, c, args.count)))
    if args.save:
        vectors.write(args.save, args.binary)
        print(args.save, file=sys.stderr if args.json else sys.stdout)
    for number, (question, words) in enumerate(found):
        if args.json:
            words = [{"word": word, "cosine": float(cosine)} for word, cosine in words]
            print_json({"question": question, "neighbours": words})
            continue
        if number:
            print()
        print("\n".join([question, *(f"  {cosine:6.3f}  {word}" for word, cosine in words)]))
