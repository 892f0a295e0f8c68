"""`plot PICTURE`: a picture's flags stand above the function that draws it. To add a picture, add one such function."""

import argparse
from functools import partial
from pathlib import Path

import numpy as np

from ..support.checks import check_at_least
from ..tasks import runs
from . import (
    add_command,
    add_model,
    add_vectors,
    check_picture,
    check_writable,
    given_vectors,
    read_pretrained,
)

PICTURES = []  # (name, summary, example, flags, draw)


def picture(name, summary, example, *flags):
    """Make `plot NAME` of the function below, which takes the parsed arguments and returns a figure.

    flags: functions that add an argument to the parser they are given
    """

    def register(draw):
        PICTURES.append((name, summary, example, flags, draw))
        return draw

    return register


def flag(*names, **settings):
    return lambda parser: parser.add_argument(*names, **settings)


MOST = 2000  # rows, columns, layers or words of a picture: with more, one is less than a pixel


def number(name, text, default=None, shown=None, most=MOST):
    """A flag that takes a whole number. shown: the default in words, where it is not a number."""
    text = f"{text} (default: {shown or default})"
    return flag(name, type=partial(_at_most, most), default=default, metavar="N", help=text)


def _at_most(most, text):
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid int value: {text!r}") from None
    if number > most:
        raise argparse.ArgumentTypeError(f"must be at most {most:,}: no picture can show more; got {text}")
    return number


def model(of_run, pretrained, **options):
    return partial(add_model, of_run=of_run, pretrained=pretrained, **options)


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "plot", help="draw a picture", description="Draw a picture.", epilog="example: transformer-np plot pe -o pe.png"
    )
    pictures = parser.add_subparsers(metavar="PICTURE", required=True)
    for name, summary, example, flags, draw in PICTURES:
        sub = add_command(pictures, name, run, summary, f"transformer-np plot {name} {example} -o {name}.png")
        sub.set_defaults(draw=draw)
        sub.add_argument("-o", "--out", required=True, metavar="FILE", help="the picture: .png, .svg or .pdf")
        sub.add_argument("--slide", metavar="TITLE", help="a slide of 16:9 with this title in large type")
        for add in flags:
            add(sub)


def run(args):
    if args.draw is draw_matrices and Path(args.out).suffix.lower() == ".html":
        check_writable("-o", args.out)
        if args.slide is not None:
            raise ValueError("--slide makes pictures: the name after -o must end in .png, .svg or .pdf")
        matrices_page(args).save(args.out)
    else:
        check_picture("-o", args.out)
        figure = args.draw(args)
        if args.slide is None:
            figure.savefig(args.out)
        else:
            figure.save_slide(args.out, args.slide)
    print(args.out)
    return 0


# --- positions, masks, scores ----------------------------------------------------------------------------------------

ENCODING = number("--length", "positions", 50), number("--d-model", "features", 64)


@picture("pe", "the positional encoding as a heatmap", "--length 100 --d-model 128", *ENCODING)
def draw_pe(args):
    from .. import plots

    return plots.positional_encoding(args.length, args.d_model)


@picture(
    "wavelengths", "the waves of the positional encoding and their lengths", "--length 100 --d-model 128", *ENCODING
)
def draw_wavelengths(args):
    from .. import plots

    return plots.wavelengths(args.length, args.d_model)


@picture(
    "bias",
    "the bias that each head of a trained T5 adds to the scores, by the distance between two words",
    "--model runs/t5-1",
    model("folder of the run (default: the newest T5 below this folder)", "folder of a pretrained T5", minilm=False),
    number("--longest", "largest distance", 20),
)
def draw_bias(args):
    from .. import plots
    from ..models import T5
    from ..tasks.t5 import KIND, TextToText

    if args.pretrained:
        return plots.relative_bias(T5.from_pretrained(args.pretrained), args.longest)
    return plots.relative_bias(TextToText.load(args.model or runs.newest_run(KIND)).model, args.longest)


@picture(
    "mask",
    "the causal mask",
    "--length 5 --window 2",
    number("--length", "positions", 8),
    number("--window", "also hide the keys more than N positions back", shown="none"),
)
def draw_mask(args):
    from .. import plots
    from ..masks import causal_mask, window_mask

    mask = causal_mask(args.length)
    return plots.mask(mask if args.window is None else mask | window_mask(args.length, args.window))


@picture(
    "saturation",
    "why the scores are divided by √d_k: a softmax and its gradient",
    "--d-k 64",
    number("--d-k", "features of a head", 64),
)
def draw_saturation(args):
    from .. import plots

    return plots.softmax_saturation(d_k=args.d_k)


# --- attention --------------------------------------------------------------------------------------------------------

ATTENTION = (
    flag("text", nargs="?", metavar="TEXT", help="the sentence (default: the lecture's)"),
    model(
        "folder of a run: translate, gpt or classify (default: the newest translator below this folder)",
        "a pretrained BERT or GPT",
    ),
    flag(
        "--kind",
        choices=("encoder", "decoder", "cross"),
        help="self-attention of the encoder or of the decoder, or cross-attention (default: cross)",
    ),
    number("--head", "one head of that layer, counted from 1", shown="all"),
)


@picture(
    "attention",
    "the attention weights of a trained model as heatmaps",
    '--kind cross "Ana is tired"',
    *ATTENTION,
    number("--layer", "one layer, counted from 1", shown="all"),
)
def draw_attention(args):
    from .. import plots

    if args.head is not None and args.layer is None:
        raise ValueError("--head counts the heads of one layer: add --layer N")
    weights, queries, keys = attention_weights(args)
    return plots.attention(_chosen(weights, args.layer, args.head), queries, keys)


@picture(
    "heads",
    "the attention weights of one layer as lines between words, one colour per head",
    '--kind cross --layer 2 "Ana is tired"',
    *ATTENTION,
    number("--layer", "the layer, counted from 1", shown="the last"),
    number("--word", "only the lines of one query word, counted from 1", shown="all"),
)
def draw_heads(args):
    from .. import plots

    weights, queries, keys = attention_weights(args)
    layer = len(weights) if args.layer is None else args.layer
    if args.word is not None and not 1 <= args.word <= len(queries):
        raise ValueError(f"--word must lie in 1 … {len(queries)}, got {args.word}")
    word = None if args.word is None else args.word - 1
    return plots.head_view(_chosen(weights, layer, args.head), queries, keys, word)


def attention_weights(args):
    """The weights of all layers (L, H, T, S), the T query words and the S key words."""
    from .. import plots
    from ..data import LECTURE_SENTENCE
    from ..models import Bert
    from ..tasks import classify, text, translation

    if args.pretrained is None:
        folder, sentence = (
            args.model or runs.newest_run(translation.KIND),
            LECTURE_SENTENCE if args.text is None else args.text,
        )
        of_kind = {translation.KIND: None, text.KIND: text.TextGenerator, classify.KIND: classify.Classifier}
        trained = of_kind[runs.read_run(folder, *of_kind)["kind"]]
        if trained is None:
            translator = translation.Translator.load(folder)
            return plots.translator_attention(translator, sentence, args.kind or "cross")
        trained = trained.load(folder)
        model, ids = trained.model, trained.encode(sentence)
        words = [trained.tokenizer.token(i) for i in ids]
    else:
        model, ids, words = read_pretrained(args)
    kind = "encoder" if isinstance(model, Bert) else "decoder"
    if args.kind not in (None, kind):
        raise ValueError(f"--kind {args.kind}: a {type(model).__name__} has {kind} attention only")
    model(np.array([ids]))
    return np.stack([block.attention.weights[0] for block in model.blocks]), words, words  # (L, H, T, T)


def _chosen(weights, layer, head):
    """All of (L, H, T, S), one layer of it, or one head of that layer."""
    if layer is None:
        return weights
    chosen = _pick("layer", weights, layer)
    return chosen if head is None else _pick("head", chosen, head)


def _pick(name, stack, number):
    if not 1 <= number <= len(stack):
        raise ValueError(f"--{name} must lie in 1 … {len(stack)}, got {number}")
    return stack[number - 1]


@picture(
    "model-view",
    "all heads of all layers of a trained model as thumbnails",
    '--kind encoder "Ana is tired"',
    *ATTENTION[:3],
)
def draw_model_view(args):
    from .. import plots

    weights, _, _ = attention_weights(args)
    return plots.model_view(weights)


# --- products of matrices --------------------------------------------------------------------------------------------


@picture(
    "matrices",
    "the products of attention or LayerNorm as coloured grids with their numbers; as .html, a page that steps through",
    "five --product 4",
    flag(
        "example",
        nargs="?",
        choices=("five", "three", "eight", "norm"),
        default="five",
        help="attention of the lecture's five words, its three heads, eight heads with random weights, or LayerNorm",
    ),
    number("--product", "one product, counted from 1", shown="all"),
    number("--head", "the head that is shown, counted from 1", 1),
)
def draw_matrices(args):
    from .. import plots

    products, title = products_of(args)
    return plots.matrices(products, title=title if args.slide is None else None)


def matrices_page(args):
    from .. import plots

    return plots.matrices_page(*products_of(args))


MATRICES = {
    "five": "Attention of five words",
    "three": "The lecture's three heads",
    "eight": "Eight heads",
    "norm": "LayerNorm",
}


def products_of(args):
    """The products of an example and a title."""
    from .. import plots
    from ..layers import LayerNorm, MultiHeadAttention
    from ..lecture import five_words, three_heads

    five = five_words()
    if args.example == "norm":
        products = plots.layer_norm_products(LayerNorm(4, dtype=np.float64), five.x, five.words)
    elif args.example == "eight":
        layer = MultiHeadAttention(16, 8, bias=False, rng=0, dtype=np.float64)
        layer(np.random.default_rng(0).normal(size=(1, 5, 16)))
        products = plots.attention_products(layer, five.words, args.head)
    else:
        steps = five if args.example == "five" else three_heads()
        products = plots.attention_products(steps.layer, steps.words, args.head)
    if args.product is not None:
        products = [_pick("product", products, args.product)]
    return products, MATRICES[args.example]


# --- models and their training ---------------------------------------------------------------------------------------


@picture(
    "architecture",
    "a model as boxes and arrows, with shapes and numbers of parameters",
    "--model runs/translate-1",
    model("folder of a run (default: no run, the paper's base model)", "a pretrained BERT, GPT or T5"),
)
def draw_architecture(args):
    from .. import plots
    from ..models import Transformer, TransformerConfig
    from ..pretrained import load_any, minilm_folder
    from ..tasks.fine_tuning import load

    if args.model:
        return plots.architecture(load(Path(args.model) / runs.CHECKPOINT)[0])
    if args.pretrained is not None:
        return plots.architecture(load_any(args.pretrained or minilm_folder()))
    # one vocabulary of 37,000 tokens for both languages (Vaswani et al. 2017, §5.1)
    return plots.architecture(Transformer(TransformerConfig(37_000, 37_000, tie_embeddings=True)))


@picture(
    "gradients",
    "the gradient by layer in a fresh encoder–decoder, LayerNorm after and before the sub-layers",
    "--layers 12",
    number("--layers", "blocks in each stack", 6),
)
def draw_gradients(args):
    """Random sentences through two models that differ only in where the LayerNorm is (Xiong et al. 2020)."""
    from .. import functional as F
    from .. import plots
    from ..models import Transformer, TransformerConfig

    check_at_least("--layers", args.layers, 1)
    rng = np.random.default_rng(0)
    src, tgt = rng.integers(3, 50, (16, 12)), rng.integers(3, 50, (16, 13))
    models = {}
    for name, norm_first in {"LayerNorm after (the paper)": False, "LayerNorm first": True}.items():
        sizes = {"d_model": 64, "num_heads": 4, "d_ff": 256, "dropout": 0.0}
        layers = {"num_encoder_layers": args.layers, "num_decoder_layers": args.layers}
        model = models[name] = Transformer(TransformerConfig(50, 50, norm_first=norm_first, **sizes, **layers))
        _, probs = F.cross_entropy(model(src, tgt[:, :-1]), tgt[:, 1:])
        model.backward(F.cross_entropy_backward(probs, tgt[:, 1:]))
    return plots.gradient_flow(models)


@picture(
    "copying",
    "Transformer-XL and GPT learning to copy from an earlier segment",
    "--steps 200",
    number("--steps", "training steps", 200),
)
def draw_copying(args):
    from .. import plots
    from ..tasks.copying import copy_experiment

    return plots.copy_curves(copy_experiment(steps=args.steps))


# --- predictions and words -------------------------------------------------------------------------------------------


@picture(
    "steps",
    "the likeliest words at each time step of a trained translator",
    '--candidates 3 "Ana is tired"',
    flag("text", nargs="?", metavar="TEXT", help="the sentence (default: the lecture's)"),
    flag("--model", metavar="DIR", help="folder of the run (default: the newest translator)"),
    number("--candidates", "words shown at each step", 5),
)
def draw_steps(args):
    from .. import plots
    from ..data import LECTURE_SENTENCE
    from ..tasks.translation import KIND, Translator

    check_at_least("--candidates", args.candidates, 1)
    translator = Translator.load(args.model or runs.newest_run(KIND))
    return plots.decoding_steps(translator.steps(LECTURE_SENTENCE if args.text is None else args.text, args.candidates))


@picture(
    "sampling",
    "how temperature, top-k and top-p change the next-token probabilities of a trained GPT",
    '--model runs/gpt-1 "The "',
    flag("text", metavar="TEXT", help="the beginning of a text"),
    flag("--model", metavar="DIR", help="folder of the run (default: the newest GPT below this folder)"),
)
def draw_sampling(args):
    from .. import plots
    from ..tasks.text import KIND, TextGenerator

    generator = TextGenerator.load(args.model or runs.newest_run(KIND))
    ids, tokenizer = generator.encode(args.text)[-generator.context :], generator.tokenizer
    with generator.model.evaluating():
        logits = generator.model(np.array([ids]))[0, -1]  # (V,)
    return plots.sampling(logits, [tokenizer.token(i) for i in range(len(logits))])


@picture(
    "words",
    "a map of words by their vectors",
    "list integer exception --near 8",
    flag("word", nargs="*", metavar="WORD", help="words to show (default: the most frequent)"),
    number("--near", "also show the N nearest neighbours of each WORD", 0),
    number("--count", "how many words to show when no WORD is given", 60),
    add_vectors,
)
def draw_words(args):
    from .. import plots

    check_at_least("--near", args.near, 0)
    check_at_least("--count", args.count, 3)
    if args.near and not args.word:
        raise ValueError("--near shows the neighbours of a WORD: give at least one")
    vectors = given_vectors(args)
    if not args.word:
        return plots.word_map(vectors.words[: args.count], vectors.vectors[: args.count])
    group_of = {vectors.row(word): word for word in args.word}  # the requested words come first
    for word in args.word if args.near else ():
        for other, _ in vectors.neighbours(word, args.near):
            group_of.setdefault(vectors.row(other), word)
    rows = list(group_of)
    groups = list(group_of.values()) if args.near else None
    return plots.word_map([vectors.words[row] for row in rows], vectors.vectors[rows], groups)
