from . import Unseen, add_beam, add_command, add_json, for_each_text, length_penalty, print_json, say


def add_parser(subparsers):
    parser = add_command(subparsers, "translate", run, '--show-steps "Lucas will travel in December"')
    add = parser.add_argument
    add("text", nargs="*", metavar="TEXT", help="sentences, each in quotes (default: the lines of standard input)")
    add("--model", metavar="DIR", help="folder of the run (default: the newest translator below this folder)")
    add_beam(add)
    help_text = "print the token, its log-probability and the runners-up of each time step"
    add("--show-steps", action="store_true", help=help_text)
    add_json(parser, "one line per sentence, with its translation, and its unknown and unseen words,")


def run(args):
    from ..tasks import load_trained
    from ..tasks.translation import format_steps

    if args.show_steps and args.beam != 1:
        raise ValueError("--show-steps works only with greedy decoding: leave out --beam")
    if args.show_steps and args.json:
        raise ValueError("--show-steps and --json exclude each other: leave out one")
    penalty = length_penalty(args)
    translator = load_trained(args.model, "translate")
    unseen = Unseen(translator, quiet=args.json)

    def use(sentence):
        new = unseen(sentence)
        length = translator.encode(sentence).shape[1]
        if translator.longest is not None and length > translator.longest and not args.json:
            most = f"those in training had at most {translator.longest}: expect mistakes"
            say(f"the sentence has {length} tokens, but {most}")
        if args.show_steps:
            print("\n".join(format_steps(sentence, translator)))
        translation = translator.translate(sentence, args.beam, penalty)
        if args.json:
            print_json({"text": sentence, "translation": translation, **new})
        else:
            print(translation, flush=True)

    return for_each_text(args.text, use, args.json)
