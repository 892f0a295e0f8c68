from . import add_command, add_model, positive_number, say

MOST = 5e11  # operations that are measured without being asked: some seconds
SIZES = {"layers": 4, "heads": 4, "d_model": 128, "vocab_size": 69, "d_ff": None, "kv_heads": None}  # of a GPT


def add_parser(subparsers):
    example = "--layers 12 --heads 12 --d-model 768 --vocab-size 50257 --length 1024"
    parser = add_command(subparsers, "explain", run, example)
    add_model(
        parser, "folder of a run (default: a GPT of the sizes below)", "a pretrained BERT, GPT, Llama or T5",
        minilm=False,
    )  # fmt: skip
    add = parser.add_argument
    for name, default, text in (
        ("--layers", None, f"blocks of the GPT (default: {SIZES['layers']})"),
        ("--heads", None, f"attention heads (default: {SIZES['heads']})"),
        ("--d-model", None, f"features of a token (default: {SIZES['d_model']})"),
        ("--vocab-size", None, f"tokens of the vocabulary (default: {SIZES['vocab_size']})"),
        ("--batch-size", 1, "sequences in a batch (default: 1)"),
        ("--d-ff", None, "features inside the feed-forward network (default: 4 * d_model)"),
        ("--kv-heads", None, "heads of keys and values (default: as many as heads)"),
        ("--length", None, "tokens of a sequence (default: the model's longest, or 64)"),
    ):
        add(name, type=positive_number, default=default, metavar="N", help=text)
    add("--measure", action="store_true", help="measure large models too; small ones always are")


def run(args):
    from ..bench.accounting import measure, parts, table

    model = _model(args)
    length = args.length or min(getattr(model.config, "max_len", 64), 1024)
    longest = getattr(model.config, "max_len", length)
    measured, operations = None, 3 * sum(part.forward for part in parts(model, length, args.batch_size))
    if length > longest:
        say(f"not measured: the model is made for at most {longest:,} tokens, and --length is {length:,}")
    elif args.measure or operations < MOST:
        measured = measure(model, length, args.batch_size)
    print(table(model, length, args.batch_size, measured))


def _model(args):
    sizes = {name: vars(args)[name] or default for name, default in SIZES.items()}
    given = [f"--{name.replace('_', '-')}" for name in sizes if vars(args)[name] is not None]
    if given and (args.model or args.pretrained):
        raise ValueError(
            f"{', '.join(given)} would be ignored: a trained model has sizes of its own; leave out one of them"
        )
    if args.pretrained is not None:
        from ..pretrained import load_any

        return load_any(args.pretrained)
    if args.model is not None:
        from ..tasks.runs import load_layers

        return load_layers(args.model)
    from ..layers.initial import blank
    from ..models import GPT, GPTConfig

    config = GPTConfig(
        sizes["vocab_size"], args.length or 64, sizes["d_model"], sizes["heads"], sizes["layers"], sizes["d_ff"],
        num_kv_heads=sizes["kv_heads"],
    )  # fmt: skip
    with blank():
        return GPT(config)
