"""`plot pe`, `wavelengths`, `bias`, `mask` and `saturation`: positions, masks, scores."""

from . import model, number, picture

ENCODING = number("--length", "positions", 50), number("--d-model", "features", 64)


@picture("pe", "the positional encoding as a heatmap", "--length 100 --d-model 128", *ENCODING)
def draw_pe(args, plots):
    return plots.positional_encoding(args.length, args.d_model)


@picture(
    "wavelengths", "the waves of the positional encoding and their lengths", "--length 100 --d-model 128", *ENCODING
)
def draw_wavelengths(args, plots):
    return plots.wavelengths(args.length, args.d_model)


@picture(
    "bias", "the bias that each head of a trained T5 adds to the scores, by the distance between two words",
    "--model runs/t5-1", number("--longest", "largest distance", 20),
    model("folder of the run (default: the newest T5 below this folder)", "folder of a pretrained T5", minilm=False),
)  # fmt: skip
def draw_bias(args, plots):
    from ...models import T5
    from ...tasks import load_trained

    model = T5.from_pretrained(args.pretrained) if args.pretrained else load_trained(args.model, "t5").model
    return plots.relative_bias(model, args.longest)


@picture(
    "mask", "the causal mask", "--length 5 --window 2", number("--length", "positions", 8),
    number("--window", "also hide the keys more than N positions back", shown="none"),
)  # fmt: skip
def draw_mask(args, plots):
    from ...masks import causal_mask, window_mask
    from ...support.checks import check_at_least

    check_at_least("--length", args.length, 1)
    mask = causal_mask(args.length)
    return plots.mask(mask if args.window is None else mask | window_mask(args.length, args.window))


@picture(
    "saturation", "why the scores are divided by √d_k: a softmax and its gradient", "--d-k 64",
    number("--d-k", "features of a head", 64),
)  # fmt: skip
def draw_saturation(args, plots):
    return plots.softmax_saturation(d_k=args.d_k)
