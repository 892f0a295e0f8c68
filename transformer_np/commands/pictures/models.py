"""`plot architecture`, `gradients` and `copying`: models and their training."""

from . import model, number, picture


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
