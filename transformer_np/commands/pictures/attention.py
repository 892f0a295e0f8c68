"""`plot attention`, `heads`, `model-view` and `matrices`: the weights of a model, and the products behind them."""

from .. import Unseen, load_pretrained_text, pretrained_folder, say_left_out
from . import flag, model, number, pick, picture

ATTENTION = (
    flag("text", nargs="?", metavar="TEXT", help="the sentence (default: the lecture's)"),
    model(
        "folder of a run: translate, gpt or classify (default: the newest translator below this folder)",
        "a pretrained BERT or GPT",
    ),
    flag(
        "--kind", choices=("encoder", "decoder", "cross"),
        help="self-attention of the encoder or of the decoder, or cross-attention (default: cross)",
    ),
    number("--head", "one head of that layer, counted from 1", shown="all"),
)  # fmt: skip
MATRICES = {
    "five": "Attention of five words", "three": "The lecture's three heads", "eight": "Eight heads",
    "norm": "LayerNorm",
}  # fmt: skip


@picture(
    "attention", "the attention weights of a trained model as heatmaps", '--kind cross "Ana is tired"', *ATTENTION,
    number("--layer", "one layer, counted from 1", shown="all"),
    flag("--layers", metavar="N-M", help="the layers from N to M (default: all)"),
)  # fmt: skip
def draw_attention(args, plots):
    if args.head is not None and args.layer is None:
        raise ValueError("--head counts the heads of one layer: add --layer N")
    if args.layers is not None and args.layer is not None:
        raise ValueError("--layers counts several layers, --layer one: choose one of the two")
    weights, queries, keys = attention_weights(args, plots)
    first, last = (1, len(weights)) if args.layers is None else _range("--layers", args.layers, len(weights))
    weights = _chosen(weights[first - 1 : last], args.layer, args.head)
    return plots.attention(weights, queries, keys, first_layer=first)


def _range(name, text, most):
    """The numbers of N-M."""
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last) <= most):
        raise ValueError(f"{name} must be N-M with 1 ≤ N ≤ M ≤ {most}, got {text}")
    return int(first), int(last)


@picture(
    "heads", "the attention weights of one layer as lines between words, one colour per head",
    '--kind cross --layer 2 "Ana is tired"', *ATTENTION,
    number("--layer", "the layer, counted from 1", shown="the last"),
    number("--word", "only the lines of one query word, counted from 1", shown="all"),
)  # fmt: skip
def draw_heads(args, plots):
    weights, queries, keys = attention_weights(args, plots)
    layer = len(weights) if args.layer is None else args.layer
    if args.word is not None and not 1 <= args.word <= len(queries):
        raise ValueError(f"--word must lie in 1 … {len(queries)}, got {args.word}")
    word = None if args.word is None else args.word - 1
    return plots.head_view(_chosen(weights, layer, args.head), queries, keys, word)


def attention_weights(args, plots):
    """The weights of all layers (L, H, T, S), the T query words and the S key words."""
    import numpy as np

    from ...data import LECTURE_SENTENCE
    from ...models import Bert
    from ...tasks import load_trained

    if args.pretrained is None:
        found = load_trained(args.model, "translate", "gpt", "classify", newest=["translate"])
        text, tokenizer = LECTURE_SENTENCE if args.text is None else args.text, found.reader
        try:
            inputs = found.inputs(text)
        except ValueError as error:
            raise error if args.text is not None else ValueError(f"pass a TEXT, not {text!r}: {error}") from None
        say_left_out(found.left_out(text), reads=found.reads)
        Unseen(found)(text)
        if found.task.kind == "translate":
            return plots.translator_attention(found, text, args.kind or "cross")
    else:
        folder, text = pretrained_folder(args.pretrained, args.text)
        found = load_pretrained_text(folder)
        inputs, tokenizer = _read(found, LECTURE_SENTENCE if text is None else text), found.tokenizer
    model = found.model
    kind = "encoder" if isinstance(model, Bert) else "decoder"
    if args.kind not in (None, kind):
        raise ValueError(f"--kind {args.kind}: a {type(model).__name__} has {kind} attention only")
    model(*inputs)
    words = [tokenizer.token(i) for i in inputs[0][0]]
    return np.stack([block.attention.weights[0] for block in model.blocks]), words, words  # (L, H, T, T)


def _read(found, text):
    """The arguments of the model of a PretrainedFolder for a text."""
    from ...models import Bert
    from ...pretrained.folder import inputs

    encoded = found.read(text)
    if not encoded.ids:
        raise ValueError("the text is empty: there are no tokens to attend to")
    say_left_out(encoded.left_out)
    arguments = tuple(inputs(encoded).values())
    return arguments if isinstance(found.model, Bert) else arguments[:1]


def _chosen(weights, layer, head):
    """All of (L, H, T, S), one layer of it, or one head of that layer."""
    if layer is None:
        return weights
    chosen = pick("layer", weights, layer)
    return chosen if head is None else pick("head", chosen, head)


@picture(
    "model-view", "all heads of all layers of a trained model as thumbnails", '--kind encoder "Ana is tired"',
    *ATTENTION[:3],
)  # fmt: skip
def draw_model_view(args, plots):
    return plots.model_view(attention_weights(args, plots)[0])


@picture(
    "matrices", "the products of attention or LayerNorm as coloured grids with their numbers", "five --product 4",
    flag(
        "example", nargs="?", choices=("five", "three", "eight", "norm"), default="five",
        help="attention of the lecture's five words, its three heads, eight heads with random weights, or LayerNorm",
    ),
    number("--product", "one product, counted from 1", shown="all"),
    number("--head", "the head that is shown, counted from 1", 1),
)  # fmt: skip
def draw_matrices(args, plots):
    products, title = products_of(args, plots), MATRICES[args.example]
    return plots.matrices(products, title) if args.slide is None else [plots.matrices(each) for each in products]


def products_of(args, plots):
    """The products of an example, or the one that is asked for."""
    import numpy as np

    from ...layers import LayerNorm, MultiHeadAttention
    from ...lecture import five_words, three_heads

    five = five_words()
    if args.example == "norm":
        pick("head", range(1), args.head)
        products = plots.layer_norm_products(LayerNorm(4, dtype=np.float64), five.x, five.words)
    else:
        steps = three_heads() if args.example == "three" else five
        layer = steps.layer
        if args.example == "eight":
            layer = MultiHeadAttention(16, 8, bias=False, rng=0, dtype=np.float64)
            layer(np.random.default_rng(0).normal(size=(1, 5, 16)))
        pick("head", range(layer.num_heads), args.head)
        products = plots.attention_products(layer, steps.words, args.head)
    return products if args.product is None else [pick("product", products, args.product)]
