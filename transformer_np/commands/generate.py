from . import Unseen, add_command, add_json, add_model, print_json, say

START = "\n"  # the default prompt: the beginning of a line


def add_parser(subparsers):
    example = '--prompt "The statement " --max-new-tokens 200 --temperature 0.8'
    parser = add_command(subparsers, "generate", run, example)
    add = parser.add_argument
    add("text", nargs="*", metavar="TEXT", help="beginnings of texts, each in quotes (default: a new line)")
    add("--prompt", nargs="+", metavar="TEXT", action="extend", default=[], help="the same as TEXT, as an option")
    pretrained = "a pretrained GPT or Llama: a folder, a .gguf file, or an installed package with one"
    add_model(parser, "folder of the run (default: the newest below this folder)", pretrained, minilm=False)
    add("--chat", action="store_true", help="with --pretrained: TEXT is what you say to a model of conversations")
    add("--max-new-tokens", type=int, default=500, metavar="N", help="tokens to generate (default: 500)")
    add(
        "--temperature", type=float, metavar="X",
        help="below 1 safer, above 1 wilder; 0 takes the likeliest token (default: 1, or the folder's)",
    )  # fmt: skip
    add("--top-k", type=int, metavar="N", help="draw only from the N likeliest tokens")
    help_text = "draw only from the likeliest tokens that together reach probability P"
    add("--top-p", type=float, metavar="P", help=help_text)
    add("--seed", type=int, default=0, metavar="N", help="seed of the random draws (default: 0)")
    add("--stop", metavar="TEXT", help="end the text before this occurs")
    add_json(parser, "one line per text, with its beginning, the whole text and unseen words,")


def run(args):
    from ..support.checks import check_at_least
    from ..tasks import load_trained
    from ..tasks.pretrained_text import PretrainedTextGenerator

    check_at_least("--seed", args.seed, 0)
    if args.pretrained is not None:
        generator = PretrainedTextGenerator.load(args.pretrained, args.chat)
    elif args.chat:
        raise ValueError("--chat needs --pretrained: the runs of this package continue texts")
    else:
        generator = load_trained(args.model, "gpt", "xl")
    if generator.not_applied:
        say(f"not applied here, from generation_config.json: {', '.join(generator.not_applied)}")
    asked = {"temperature": args.temperature, "top_k": args.top_k, "top_p": args.top_p}
    asked = {"temperature": 1.0, **generator.sampling} | {k: v for k, v in asked.items() if v is not None}
    given = [*args.text, *args.prompt]
    prompts = given or [START]
    left_out, new, unseen = [], [], Unseen(generator, quiet=args.json)
    for prompt in prompts:
        try:
            length = len(generator.encode(prompt))  # reports a bad prompt before any text is generated
        except ValueError:
            if given:
                raise
            raise ValueError("pass a TEXT to continue: this model cannot begin with a new line") from None
        new.append(unseen(prompt)["unseen"])
        left_out.append(max(0, length - generator.context))
        if left_out[-1]:
            sees = f"the model sees at most {generator.context}: the first {left_out[-1]} are ignored"
            say(f"the prompt has {length} tokens, but {sees}")
    for i, prompt in enumerate(prompts):
        if i and not args.json:
            print("-" * 20)
        pieces = generator.stream(prompt, args.max_new_tokens, **asked, rng=args.seed, stop=args.stop)
        if args.json:
            print_json({"prompt": prompt, "text": "".join(pieces), "unseen": new[i], "tokens_left_out": left_out[i]})
            continue
        try:
            for number, piece in enumerate(pieces):
                if number or (given and not args.chat):  # neither a default nor a question is shown
                    print(piece, end="", flush=True)
        except KeyboardInterrupt:
            print(flush=True)  # the text ends here, and so does its line
            raise
        print(flush=True)
