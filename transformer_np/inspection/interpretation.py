"""Questions to a trained model: what would it say after each layer, which inputs does each layer mix, and what is lost
without a head?"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from ..models import Bert, TransformerXL
from ..models.decoder_only import DecoderOnly
from ..models.encoder_decoder import EncoderDecoder
from ..module import Module
from ..support.checks import as_float_array
from ..support.intercept import methods


def logits_by_layer(model, *inputs):
    """The logits that a model would give if it ended after each block: the "logit lens" (nostalgebraist 2020).

        logits_l = output(norm(x_l)),    x_0 the input of the first block, x_l the output of block l

    model: a GPT, Llama, TransformerXL; a Transformer or T5, whose decoder is shown; or a Bert with an mlm_head
    inputs: the arguments of its forward

    ->  (L + 1, B, T, V); the last are the logits of the model itself. `plots.logit_lens` draws them.

    Every block adds to its input, so the last projection can read all x_l. A word that it does not find may still be
    there, in directions that later blocks turn.

    Raises TypeError for another model.
    """
    blocks, norm, output = _upper_part(model)
    states = []
    with model.evaluating():
        with ExitStack() as stack:
            for block in blocks:
                stack.enter_context(methods(block, {"forward": _noting(block.forward, states)}))
            model(*inputs)
        return np.stack([output(x if norm is None else norm(x)) for x in states])


def _noting(forward, states):
    """The forward of a block, which adds its output to the states, and before the first one its input."""

    def noted(x, *args, **kwargs):
        if not states:
            states.append(x)
        result = forward(x, *args, **kwargs)
        states.append(result[0] if isinstance(result, tuple) else result)
        return result

    return noted


def _upper_part(model):
    """The blocks whose output becomes the logits, the norm after them or None, and the projection."""
    if isinstance(model, EncoderDecoder):
        return model.decoder, model.decoder_norm, model.output
    if isinstance(model, DecoderOnly | TransformerXL):
        return model.blocks, model.norm, model.output
    if isinstance(model, Bert) and model.mlm_head is not None:
        return model.blocks, None, model.mlm_head
    expected = "a GPT, Llama, TransformerXL, Transformer, T5 or a Bert with an mlm_head"
    raise TypeError(f"model must be {expected}, got {type(model).__name__}")


def attention_rollout(weights):
    """How much of each input word each layer's output contains, if words only moved by attention and by the residual
    path, half of it each (Abnar & Zuidema 2020, §3).

        R_l = A_l R_{l−1},    A_l = (mean of the heads' weights + I) / 2,    R_0 = I

    weights: (L, H, T, T) of the layers of one stack, or (L, B, H, T, T)
    ->  R (L, T, T), or (L, B, T, T): row t of R_l adds up to 1

    The weights of one layer say where it looks among the *outputs of the layer below*, which are mixed already. The
    rollout multiplies the mixtures. It ignores values, feed-forward networks and the size of each contribution.

    Raises ValueError for another shape.
    """
    weights = as_float_array(weights, "weights")
    if weights.ndim not in (4, 5) or weights.shape[-1] != weights.shape[-2] or weights.size == 0:
        raise ValueError(f"weights must have the axes (L, H, T, T) or (L, B, H, T, T), got shape {weights.shape}")
    mixed, layers = np.eye(weights.shape[-1], dtype=weights.dtype), []
    for layer in weights.mean(axis=-3):  # (T, T) or (B, T, T)
        mixed = (layer + np.eye(layer.shape[-1], dtype=layer.dtype)) / 2 @ mixed
        layers.append(mixed)
    return np.stack(layers)


@dataclass(frozen=True)
class HeadAblation:
    """A measure of the whole model, `baseline`, and without each head, `without`: {name of the attention: (H,)}.

    changes: {name: without − baseline}. `print` shows the changes as a table with one row per attention.
    """

    baseline: float
    without: dict[str, np.ndarray]

    @property
    def changes(self) -> dict[str, np.ndarray]:
        return {name: values - self.baseline for name, values in self.without.items()}

    def __str__(self):
        width = max(map(len, self.without), default=0)
        most = max(map(len, self.without.values()), default=0)
        lines = [" " * width + "".join(f"{f'head {h + 1}':>9}" for h in range(most))]
        for name, changes in self.changes.items():
            lines.append(f"{name:<{width}}" + "".join(f"{change:>+9.3f}" for change in changes))
        return "\n".join([*lines, f"change without the head; {self.baseline:.3f} with all heads"])

    __repr__ = __str__


def head_ablation(model: Module, measure: Callable[[], float]) -> HeadAblation:
    """Switch off one head after the other and measure the model each time.

    model: any model with attention
    measure: a function that runs the model and returns a number, such as a loss:

        head_ablation(model, lambda: F.cross_entropy(model(ids), targets)[0])

    ->  HeadAblation; `plots.head_ablation` draws it. A head is off when all its weights are 0: it then adds nothing.

    A small change does not prove that a head does nothing: another one may do the same (Michel et al. 2019).

    Raises ValueError for a model without attention.
    """
    attentions = {
        path: module.num_heads for path, module in model.named_modules() if path and "weights" in module.replaceable()
    }
    if not attentions:
        raise ValueError(f"model must have attention layers, {type(model).__name__} has none")
    baseline, without = float(measure()), {}
    for path, num_heads in attentions.items():
        values = without[path] = np.empty(num_heads)
        for head in range(num_heads):

            def off(weights, head=head):
                weights[:, head] = 0
                return weights

            with model.replacing(f"{path}.weights", off):
                values[head] = measure()
    return HeadAblation(baseline, without)
