"""Questions to a trained model: what would it say after each layer, which inputs does each layer mix, what is lost
without a head, and which parts wrote a word?"""

from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from .. import functional as F
from ..layers import RMSNorm, TiedLinear
from ..layers.activations import activate
from ..models import Bert, TransformerXL
from ..models.bert import MaskedTokenHead, MeanPooler
from ..models.decoder_only import DecoderOnly
from ..models.encoder_decoder import EncoderDecoder
from ..module import Module
from ..support.checks import MOST, as_float_array, as_ids, check_at_least, check_number, short
from ..support.table import aligned


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
    paths = [path for path, module in model.named_modules() if module in blocks]
    parts = {"input": f"{paths[0]}.add_norm1.residual_before", **{path: path for path in paths}}
    states = {}
    with model.evaluating():
        with _noted(model, parts, states):
            model(*inputs)
        return np.stack([output(x if norm is None else norm(x)) for x in states.values()])


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
        most = max(map(len, self.without.values()), default=0)
        rows = [["", *(f"head {h + 1}" for h in range(most))]]
        for name, changes in self.changes.items():
            rows.append([name, *(f"{change:+.3f}" for change in changes), *[""] * (most - len(changes))])
        lines = aligned(rows, "<" + ">" * most, gap="   ")
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
    named = ((path, module) for path, module in model.named_modules() if path)
    attentions = {path: module.num_heads for path, module in named if "weights" in module.replaceable()}
    if not attentions:
        raise ValueError(f"model must have attention layers, {type(model).__name__} has none")
    if not callable(measure):
        raise TypeError(f"measure must be a function that returns a number, got {short(measure)}")
    baseline, without = measure(), {}
    check_number("what measure returns", baseline)
    for path, num_heads in attentions.items():
        values = without[path] = np.empty(num_heads)
        for head in range(num_heads):

            def off(weights, head=head):
                weights[:, head] = 0
                return weights

            with model.replacing(f"{path}.weights", off):
                values[head] = measure()
    return HeadAblation(float(baseline), without)


# --- who wrote this word? --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contributions:
    """The terms of a logit: what enters the first block, each head {attention: (H,)}, each {feed-forward: number}, and
    the biases. `total` is their sum."""

    embedding: float
    heads: dict[str, np.ndarray]
    feed_forwards: dict[str, float]
    biases: float

    @property
    def total(self) -> float:
        heads = sum(float(values.sum()) for values in self.heads.values())
        return self.embedding + heads + sum(self.feed_forwards.values()) + self.biases


def contributions(model, inputs, target, position=-1) -> Contributions:
    """Split a logit among the parts that wrote into the residual path: "direct logit attribution" (Elhage et al. 2021).

        logit = (x₀ + Σ head + Σ feed-forward + biases) · d

    Every sub-layer adds its output to the residual path, so the last state is a sum. d is the row of the output
    projection that reads it. Each norm on the way divides by a number that depends on the whole sum; here these numbers
    are held fixed, as they are for these inputs, and d goes back through the norms as through linear maps. The terms
    add up to the logit, but a part that is taken away also changes the norms and every later layer: see `measured`.

    A Bert reads the last state through a head that is not linear. There each unit of the activation is held at its
    ratio output / input too, so that the head is a linear map as well ("ε-rule" of Bach et al. 2015 with ε = 0).

    model: a GPT, Llama, TransformerXL; a Transformer or T5, whose decoder is split, with all of the encoder in the
        heads of cross-attention; a Bert with a classifier, whose logit is that of a class, or else with an mlm_head
    inputs: the arguments of its forward for one text, a tuple, or the ids alone: (1, T) or (T,)
    target: an id, or a pair of ids for the difference of their logits, first − second
    position: of the logit; a classifier has one for the whole text

    Raises TypeError for another model, and ValueError for a target that is not there.
    """
    classifies = isinstance(model, Bert) and model.classifier is not None
    blocks, norm, output = (model.blocks, None, model.classifier) if classifies else _upper_part(model)
    inputs = _one_text(inputs)
    paths = {id(module): path for path, module in model.named_modules()}
    with model.evaluating():
        model.eval(keep=True)
        logits = logits_of(model, inputs)
        rows, d, biases = _read_by(model, output, _targets(target, logits.shape[-1]), _place(logits, position))
        if norm is not None:
            d, biases = _before_norm(norm, d, biases, rows)
        heads, feed_forwards = {}, {}
        for block in reversed(blocks):
            for sublayer, add_norm in reversed(block.parts()):
                if not add_norm.norm_first:
                    d, biases = _before_norm(add_norm.norm, d, biases, rows)
                path, wrote = paths[id(sublayer)], float(np.vdot(add_norm.kept("written")[0, rows], d))
                if hasattr(sublayer, "num_heads"):
                    written = sublayer.intermediates()["written"][0][:, rows]  # (H, R, D)
                    heads[path] = (written * d).sum(axis=(1, 2))  # (H,)
                    biases += wrote - float(heads[path].sum())
                else:
                    feed_forwards[path] = wrote
        embedding = float(np.vdot(blocks[0].add_norm1.kept("residual_before")[0, rows], d))
    return Contributions(embedding, dict(reversed(heads.items())), dict(reversed(feed_forwards.items())), biases)


def _read_by(model, output, targets, position):
    """What Σ sign · logit multiplies the last states with, and adds: positions (R,), vectors (R, D), a number."""
    head = output if isinstance(output, MaskedTokenHead) else None
    last = output.output if head else output
    d, bias = 0.0, 0.0
    for target, sign in targets:
        if isinstance(last, TiedLinear):
            d = d + sign * last.scale * last.table.data[target]
        else:
            d = d + sign * last.w.data[:, target]
            bias += 0.0 if last.b is None else sign * float(last.b.data[target])
        bias += sign * float(head.b.data[target]) if head else 0.0
    rows, d = np.array([position]), d[None]  # (1, D)
    if head:
        d, bias = _before_norm(head.norm, d, bias, rows)
        act = partial(activate, head.activation, with_slope=False)
        return rows, *_before_units(head.linear, head.linear.kept("x")[0, rows], act, d, bias)
    if output is not getattr(model, "classifier", None):
        return rows, d, bias
    if isinstance(model.pooler, MeanPooler):
        share = model.pooler.kept("share")[0]  # (T, 1)
        return np.arange(len(share)), share * d, bias
    linear = model.pooler.linear
    return np.array([0]), *_before_units(linear, linear.kept("x"), lambda u: (F.tanh(u), None), d, bias)


def _before_units(linear, x, act, d, biases):
    """The vectors that read x (R, D) as d reads act(x W + b), each unit held at its ratio output / input."""
    before = x @ linear.w.data + linear.b.data  # (R, D)
    d = d * np.divide(act(before)[0], before, out=np.zeros_like(before), where=before != 0)
    return d @ linear.w.data.T, biases + float((d @ linear.b.data).sum())


def _before_norm(norm, d, biases, rows):
    """The vectors that read the input of a norm as d reads its output, with the norm's scales held fixed."""
    before = d * norm.gamma.data
    if isinstance(norm, RMSNorm):
        return before * norm.kept("inv_rms")[0, rows], biases
    before -= before.mean(axis=-1, keepdims=True)  # Σ x̂ d = Σ x (d − mean d) / σ
    shift = 0.0 if norm.beta is None else float((d @ norm.beta.data).sum())
    return before * norm.kept("inv_std")[0, rows], biases + shift


@dataclass(frozen=True)
class Effects:
    """How a score changes when one part is switched off, or patched from another input.

    score: with everything on; heads: {attention: (H,)}; feed_forwards: {feed-forward: number}
    positions: of an estimate: the same changes for each position, {attention: (H, T), feed-forward: (T,)}
    """

    score: float
    heads: dict[str, np.ndarray]
    feed_forwards: dict[str, float]
    positions: dict[str, np.ndarray]


def attribution(model, inputs, target, other=None, position=-1) -> Effects:
    """Estimate by one backward pass what switching off each head and feed-forward network does to a logit:
    "attribution patching" (Nanda 2023; Syed et al. 2023).

        change ≈ Σ ∂logit/∂z · (z_new − z),    z the output of a head or of a feed-forward network

    z_new is 0, or with `other` the value that the part has for other inputs of the same lengths. It is the first term
    of a Taylor series: good for a small change close to the output, wrong where later layers react to the change, often
    in sign. `measured` tries it.

    model: a GPT, Llama, Transformer, T5, or a Bert with a classifier or else an mlm_head
    inputs, target, position: as in `contributions`

    The gradients of the parameters stay as they are.
    """
    inputs = _one_text(inputs)
    parts = _parts(model)
    values, slopes = {}, {}

    with model.evaluating():
        model.eval(keep=True)
        with keeping_gradients(model), _noted(model, parts, values, slopes):
            (score,) = _score(model, inputs, target, position, backward=True)
        new = {name: 0.0 for name in parts}
        if other is not None:
            with _noted(model, parts, new := {}):
                _score(model, _like(inputs, _one_text(other)), target, position)
    heads, feed_forwards, positions = {}, {}, {}
    for name in parts:
        change = (slopes[name] * (new[name] - values[name]))[0]  # (T, H·K) or (T, D)
        number = _heads_of(model, name)
        if number:
            positions[name] = change.reshape(len(change), number, -1).sum(axis=-1).T  # (H, T)
            heads[name] = positions[name].sum(axis=-1)
        else:
            positions[name] = change.sum(axis=-1)  # (T,)
            feed_forwards[name] = float(positions[name].sum())
    return Effects(score, heads, feed_forwards, positions)


@contextmanager
def keeping_gradients(model):
    """After the block, the gradients of the parameters are as before it."""
    before = [parameter.grad.copy() for parameter in model.learned().values()]
    try:
        yield
    finally:
        for parameter, gradient in zip(model.learned().values(), before, strict=True):
            parameter.grad = gradient


def measured(model, inputs, target, other=None, position=-1, batch_size=16) -> Effects:
    """What switching off each head and feed-forward network, or patching it, does to a logit, by trying each.

    As `attribution`, without an estimate: row by row of a batch, each row with another part switched off.
    """
    check_at_least("batch_size", batch_size, 1)
    inputs, parts = _one_text(inputs), _parts(model)
    with model.evaluating():
        model.eval()
        new = {}
        if other is not None:
            with _noted(model, parts, new):
                _score(model, _like(inputs, _one_text(other)), target, position)
        (score,) = _score(model, inputs, target, position)
        numbers = {name: _heads_of(model, name) for name in parts}
        switches = [(name, head) for name in parts for head in range(numbers[name] or 1)]
        changes = {name: np.zeros(numbers[name] or 1) for name in parts}
        for begin in range(0, len(switches), batch_size):
            some = switches[begin : begin + batch_size]
            rows = tuple(a if a is None else np.repeat(a, len(some), axis=int(a.ndim > 2)) for a in inputs)
            with ExitStack() as stack:
                for name in dict.fromkeys(name for name, _ in some):

                    def changed(z, name=name, some=some):
                        z = z.copy()
                        split = z.reshape(*z.shape[:2], numbers[name] or 1, -1)  # (rows, T, H, K)
                        for row, (part, head) in enumerate(some):
                            if part == name:
                                patched = new[name].reshape(1, *split.shape[1:])[0, :, head] if new else 0.0
                                split[row, :, head] = patched
                        return z

                    stack.enter_context(model.replacing(parts[name], changed))
                for (name, head), found in zip(some, _score(model, rows, target, position), strict=True):
                    changes[name][head] = found - score
    heads = {name: values for name, values in changes.items() if numbers[name]}
    return Effects(score, heads, {name: float(v[0]) for name, v in changes.items() if not numbers[name]}, {})


def _parts(model):
    """{name of a part: the value that `replacing` changes for it} of all attentions and feed-forward networks."""
    names = [path for path, module in model.named_modules() if path and "concat" in module.taps]
    found = {path: f"{path}.concat" for path in names}
    blocks = {path.rpartition(".")[0] for path in names}
    found |= {path: path for path, _ in model.named_modules() if path in {f"{block}.feed_forward" for block in blocks}}
    if not found:
        raise ValueError(f"model must have attention layers, {type(model).__name__} has none")
    return found


@contextmanager
def _noted(model, parts, values, slopes=None):
    """In the block, what each part computes is noted in values by its name, and with slopes the gradient there."""

    def noting(into, name):
        return lambda array, *_: into.setdefault(name, array)

    with ExitStack() as stack:
        for name, value in parts.items():
            slope = () if slopes is None else (noting(slopes, name),)
            stack.enter_context(model.replacing(value, noting(values, name), *slope))
        yield


def _heads_of(model, name):
    """The number of heads of a part; None for a feed-forward network."""
    return getattr(dict(model.named_modules())[name], "num_heads", None)


def _score(model, inputs, target, position, backward=False):
    """The logit of the target, or the difference of two, of every row  ->  a list; backward: of its sum as well"""
    logits = logits_of(model, inputs)
    at = (slice(None), _place(logits, position)) if logits.ndim == 3 else slice(None)
    dlogits, scores = np.zeros_like(logits), 0.0
    for index, sign in _targets(target, logits.shape[-1]):
        scores = scores + sign * logits[at][:, index]
        dlogits[at][:, index] += sign
    if backward:
        model.backward(dlogits)
    return [float(score) for score in scores]


def logits_of(model, inputs):
    """(B, T, V), of a Bert with a classifier (B, C)"""
    if isinstance(model, Bert):
        return (model.mlm_logits if model.classifier is None else model.classify)(*inputs)
    logits = model(*(list(a) if np.ndim(a) > 2 else a for a in inputs))  # the memory of a TransformerXL is a list
    return logits[0] if isinstance(logits, tuple) else logits


def _targets(target, size):
    """[(id, sign), …] of an id or of a pair."""
    ids = as_ids(np.atleast_1d(target), size, "target")
    if ids.shape not in ((1,), (2,)):
        raise ValueError(f"target must be an id or a pair of ids, got shape {ids.shape}")
    return list(zip(ids.tolist(), (1.0, -1.0), strict=False))


def _place(logits, position):
    """The position from the front, of logits (B, T, V); a classifier (B, C) has one for the whole text."""
    length = logits.shape[1] if logits.ndim == 3 else MOST
    check_at_least("position", position, -MOST)
    if not -length <= position < length:
        raise ValueError(f"position must lie in {-length} … {length - 1} for these inputs, got {position}")
    return position % length


def _one_text(inputs):
    """The inputs as a tuple of arrays with one row each, or None; the rows of a memory (L, B, M, D) are its axis 1."""
    arrays = inputs if isinstance(inputs, tuple) else (inputs,)
    arrays = tuple(array if array is None else np.atleast_2d(array) for array in arrays)
    if any(array is not None and array.shape[array.ndim > 2] != 1 for array in arrays):
        raise ValueError(f"inputs must be those of one text, got {[np.shape(array) for array in arrays]}")
    return arrays


def _like(inputs, others):
    """The other inputs, which must have the shapes of the inputs."""
    shapes, found = [np.shape(array) for array in inputs], [np.shape(array) for array in others]
    if found != shapes:
        raise ValueError(f"other must have the shapes of inputs, {shapes}, got {found}: use texts of equal length")
    return others
