"""`plot architecture`, `gradients`, `copying`, `loss`, `steps`, `sampling`, `words`: models and what they learn."""

from pathlib import Path

from .. import Unseen, add_vectors, given_vectors, say_left_out
from . import flag, model, number, picture


@picture(
    "architecture", "a model as boxes and arrows, with shapes and numbers of parameters", "--model runs/translate-1",
    model("folder of a run (default: no run, the paper's base model)", "a pretrained BERT, GPT or T5"),
)  # fmt: skip
def draw_architecture(args, plots):
    from ...models import Transformer, TransformerConfig
    from ...pretrained import load_any, minilm_folder
    from ...tasks.runs import load_layers

    if args.model:
        return plots.architecture(load_layers(args.model))
    if args.pretrained is not None:
        return plots.architecture(load_any(args.pretrained or minilm_folder()))
    # one vocabulary of 37,000 tokens for both languages (Vaswani et al. 2017, §5.1)
    return plots.architecture(Transformer(TransformerConfig(37_000, 37_000, tie_embeddings=True)))


@picture(
    "gradients", "the gradient by layer in a fresh encoder–decoder, LayerNorm after and before the sub-layers",
    "--layers 12", number("--layers", "blocks in each stack", 6),
)  # fmt: skip
def draw_gradients(args, plots):
    """Random sentences through two models that differ only in where the LayerNorm is (Xiong et al. 2020)."""
    import numpy as np

    from ... import functional as F
    from ...models import Transformer, TransformerConfig
    from ...support.checks import check_at_least

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
    "copying", "Transformer-XL and GPT learning to copy from an earlier segment", "--steps 200",
    number("--steps", "training steps", 200),
)  # fmt: skip
def draw_copying(args, plots):
    from ...tasks.copying import copy_experiment

    return plots.copy_curves(copy_experiment(steps=args.steps))


@picture(
    "loss", "the loss and the learning rate of a training run", "runs/gpt-1",
    flag("folder", nargs="?", metavar="RUN", help="folder of the run (default: the newest below this folder)"),
)  # fmt: skip
def draw_loss(args, plots):
    from ...tasks import TASKS, runs, task_of
    from ...training import History, load_checkpoint

    checkpoint = Path(args.folder or runs.newest_run(*TASKS)) / runs.CHECKPOINT
    history, kind = History.load(checkpoint), load_checkpoint(checkpoint, "history.")[1].get("kind")
    unit = task_of(kind).Result.unit if kind in TASKS else "token"  # a Trainer's own checkpoint is of no kind
    return plots.training_curve(history, unit=f"nats per {unit}")


@picture(
    "steps", "the likeliest words at each time step of a trained translator", '--candidates 3 "Ana is tired"',
    flag("text", nargs="?", metavar="TEXT", help="the sentence (default: the lecture's)"),
    flag("--model", metavar="DIR", help="folder of the run (default: the newest translator)"),
    number("--candidates", "words shown at each step", 5),
)  # fmt: skip
def draw_steps(args, plots):
    from ...data import LECTURE_SENTENCE
    from ...support.checks import check_at_least
    from ...tasks import load_trained

    check_at_least("--candidates", args.candidates, 1)
    translator, text = load_trained(args.model, "translate"), LECTURE_SENTENCE if args.text is None else args.text
    Unseen(translator)(text)
    return plots.decoding_steps(translator.steps(text, args.candidates))


@picture(
    "sampling", "how temperature, top-k and top-p change the next-token probabilities of a trained GPT",
    '--model runs/gpt-1 "The "', flag("text", metavar="TEXT", help="the beginning of a text"),
    flag("--model", metavar="DIR", help="folder of the run (default: the newest GPT below this folder)"),
)  # fmt: skip
def draw_sampling(args, plots):
    from ...tasks import load_trained

    generator = load_trained(args.model, "gpt")
    inputs = generator.inputs(args.text)
    say_left_out(generator.left_out(args.text), reads=generator.reads)
    Unseen(generator)(args.text)
    with generator.model.evaluating():
        logits = generator.model(*inputs)[0, -1]  # (V,)
    return plots.sampling(logits, [generator.writer.token(i) for i in range(len(logits))])


@picture(
    "words", "a map of words by their vectors", "list integer exception --near 8",
    flag("word", nargs="*", metavar="WORD", help="words to show (default: the most frequent)"),
    number("--near", "also show the N nearest neighbours of each WORD", 0),
    number("--count", "how many words to show when no WORD is given", 60), add_vectors,
)  # fmt: skip
def draw_words(args, plots):
    from ...support.checks import check_at_least

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
