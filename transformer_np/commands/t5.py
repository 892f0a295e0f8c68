from . import Unseen, add_beam, add_command, add_json, add_model, for_each_text, length_penalty, print_json, say


def add_parser(subparsers):
    parser = add_command(subparsers, "t5", run, '"date: 24 March 2019" "sentiment: not bad at all"')
    add = parser.add_argument
    add("text", nargs="*", metavar="TEXT", help="texts, each in quotes (default: the lines of standard input)")
    add_model(
        parser, "folder of the run (default: the newest T5 below this folder)",
        "folder of a T5 in Hugging Face's layout, including tokenizer.json", minilm=False,
    )  # fmt: skip
    add_beam(add)
    add("--max-len", type=int, metavar="N", help="maximal number of tokens in an answer (default: the model's)")
    add_json(parser, "one line per text, with its answer, whether its task is known and unseen words,")


def run(args):
    from ..tasks import load_trained
    from ..tasks.t5 import TextToText

    penalty = length_penalty(args)
    pretrained = args.pretrained
    answers = TextToText.from_pretrained(pretrained) if pretrained else load_trained(args.model, "t5")
    if answers.not_applied:
        say(f"not applied here, from generation_config.json: {', '.join(answers.not_applied)}")
    unseen = Unseen(answers, quiet=args.json)

    def use(text):
        new = unseen(text)
        length, known = answers.encode(text).shape[1], answers.knows(text)
        if not known and not args.json:
            learned = ", ".join(answers.learned)
            say(f"the text belongs to no task that the model has learned; it has learned: {learned}")
        if answers.longest is not None and length > answers.longest:
            where = "those that config.json names are" if answers.pretrained else "the training texts had"
            say(f"the text has {length} tokens, but {where} at most {answers.longest}")
        answer = answers.answer(text, args.beam, penalty, args.max_len)
        if args.json:
            print_json({"text": text, "answer": answer, "known": known, "unseen": new["unseen"]})
        else:
            print(answer, flush=True)

    return for_each_text(args.text, use, args.json)
