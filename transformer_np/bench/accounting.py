"""What a training step of a model costs, counted from its sizes and measured: parameters, operations and memory.

Counted are the matrix products: 2 · m · k · n operations for (m, k) times (k, n). The rest of a step, a few operations
per number, is left out.
"""

from dataclasses import dataclass

import numpy as np

from .. import layers
from ..decoding import DecoderCache
from ..inspection.interpretation import keeping_gradients
from ..models import Bert, TransformerXL
from ..models.bert import MaskedTokenHead
from ..models.decoder_only import DecoderOnly
from ..support.checks import check_all_at_least
from ..support.memory import in_units
from ..support.table import aligned
from .floor import recording

TABLES = layers.Embedding, layers.LearnedPositionalEmbedding, layers.RelativePositionBias
EMBEDDINGS, PROJECTIONS, SCORES = "embeddings", "attention: projections", "attention: scores"
FEED_FORWARD, NORMS, OUTPUT = "feed-forward", "norms", "output"


@dataclass(frozen=True)
class Part:
    """One kind of layer of a model, all its layers together, for one batch.

    forward: operations of the forward pass; the backward pass has twice as many, one product for the gradient of each
        factor
    activations: numbers kept for the backward pass; cache: numbers kept while a text is generated
    quadratic: whether operations and activations grow with the square of the length
    """

    name: str
    layers: int = 0
    parameters: int = 0
    forward: int = 0
    activations: int = 0
    cache: int = 0
    quadratic: bool = False

    def plus(self, layers=1, **numbers):
        new = {name: getattr(self, name) + number for name, number in numbers.items()}
        return Part(**{**vars(self), **new, "layers": self.layers + layers})


def parts(model, length, batch=1):
    """The parts of a model for a batch of sequences of this length, source and target alike  ->  list of Part

    Raises TypeError for a model with other layers than those of GPT, Llama, BERT, T5, the Transformer and
    Transformer-XL, whose memory is empty here.
    """
    check_all_at_least(1, length=length, batch=batch)
    names = (EMBEDDINGS, PROJECTIONS, SCORES, FEED_FORWARD, NORMS, OUTPUT)
    found = {name: Part(name, quadratic=name == SCORES) for name in names}
    counted, T = set(), batch * length
    decodes = isinstance(model, DecoderOnly) or hasattr(model, "decode")

    def add(name, module, **numbers):
        own = {id(p): p.data.size for p in vars(module).values() if hasattr(p, "frozen") and hasattr(p, "data")}
        size = sum(n for key, n in own.items() if key not in counted)
        counted.update(own)
        found[name] = found[name].plus(parameters=size, **numbers)

    for path, module in model.named_modules():
        if isinstance(module, layers.RelativeMultiHeadAttention):
            D, pairs = len(module.w_q.data), T * length * module.num_heads
            kept = T * 5 * D + length * 2 * D  # x, q, k, v, the joined heads; the distances and r
            cache = batch * min(length, model.mem_len) * D
            add(PROJECTIONS, module, forward=2 * D * D * (4 * T + length), activations=kept, cache=cache)
            scores = 3 * 2 * pairs * (D // module.num_heads)  # by content, by distance, and the weighted sum
            found[SCORES] = found[SCORES].plus(forward=scores, activations=pairs)
        elif isinstance(module, layers.MultiHeadAttention):
            (D, inner), shared = module.w_q.shape, module.w_k.shape[1]
            kept = T * (D + 2 * inner + 2 * shared)  # x, q, k, v and the joined heads
            matrices = 2 * D * (inner + shared)
            cache = 2 * T * shared if decodes and not path.startswith("encoder") else 0
            add(PROJECTIONS, module, forward=2 * T * matrices, activations=kept, cache=cache)
            pairs = T * length * module.num_heads
            found[SCORES] = found[SCORES].plus(forward=4 * pairs * module.d_head, activations=pairs)
        elif isinstance(module, layers.FeedForward):
            D, F = module.w1.shape
            gated = hasattr(module, "w_gate")
            inside = F if type(module) is layers.FeedForward else 2 * F  # hidden and slope, or gate and value
            add(FEED_FORWARD, module, forward=2 * T * D * F * (3 if gated else 2), activations=T * (D + inside))
        elif isinstance(module, layers.LayerNorm | layers.RMSNorm):
            add(NORMS, module, activations=T * (module.gamma.shape[0] + 1))
        elif isinstance(module, TABLES):
            add(EMBEDDINGS, module, layers=int(id(module.table) not in counted))  # T5's blocks share their biases
        elif isinstance(module, MaskedTokenHead):
            add(OUTPUT, module, layers=0)  # a bias; its layers come by themselves
        elif isinstance(module, layers.Linear | layers.TiedLinear):
            w = module.table if isinstance(module, layers.TiedLinear) else module.w
            width = w.shape[1 if isinstance(module, layers.TiedLinear) else 0]
            rows = batch if path in ("pooler.linear", "classifier") else T  # these read one vector per text
            add(OUTPUT, module, forward=2 * rows * w.data.size, activations=rows * width)
    total = sum(part.parameters for part in found.values())
    if total != model.num_parameters():
        raise TypeError(f"{type(model).__name__} has layers that are not counted here")
    return [part for part in found.values() if part.layers]


@dataclass(frozen=True)
class Measured:
    """One forward and backward pass as it ran: operations of its matrix products, those between positions among them,
    and the numbers kept for the backward pass and in the cache of decoding."""

    forward: int
    backward: int
    between: int
    activations: int
    cache: int


def measure(model, length, batch=1):
    """Run a forward and a backward pass of a model on random ids  ->  Measured

    Of a BERT with several heads only one runs: that for masked words, or the first of the others.
    """
    rng, phase = np.random.default_rng(0), ["forward"]
    c = model.config
    vocabulary = c.vocab_size if hasattr(c, "vocab_size") else min(c.src_vocab_size, c.tgt_vocab_size)
    ids = rng.integers(0, vocabulary, (batch, length))
    ids[ids == getattr(model.config, "pad_id", None)] = vocabulary - 1
    forward, generating = _passes(model, ids)
    model.train()
    with recording(model, lambda: phase[0]) as products, keeping_gradients(model):
        logits = forward()
        kept = sum(array.size for array in _arrays(model))
        phase[0] = "backward"
        model.backward(np.ones_like(np.asarray(logits)))
    flops = {name: sum(p.flops for p in products if p.kind == name) for name in ("forward", "backward")}
    between = sum(p.flops for p in products if len(p.b.shape) > 2 and p.kind == "forward")
    with model.evaluating():
        cached = sum(array.size for array in generating())
    return Measured(flops["forward"], flops["backward"], between, kept, cached)


def _passes(model, ids):
    """Two functions of no argument: a forward pass to the output that is trained, and one that returns the arrays kept
    while a text is generated."""

    def keys_and_values():
        cache = DecoderCache(len(model.decoder if hasattr(model, "decode") else model.blocks))
        model.decode(ids, model.encode(ids), ids, cache) if hasattr(model, "decode") else model(ids, cache=cache)
        kept = [c for pair in cache.blocks for c in pair if c.length]
        return [array for c in kept for array in (c.keys, c.values)]

    if isinstance(model, Bert):
        c = model.config
        heads = (c.mlm_head, "mlm_logits"), (c.num_classes, "classify"), (c.token_classes, "classify_tokens")
        asked = next((name for has, name in (*heads, (c.span_head, "span_scores")) if has), "forward")
        return lambda: getattr(model, asked)(ids), list
    if isinstance(model, TransformerXL):
        return lambda: model(ids)[0], lambda: model(ids)[1]
    return (lambda: model(ids, ids) if hasattr(model, "decode") else model(ids)), keys_and_values


def _arrays(model):
    """The different arrays of floats that the modules keep."""
    seen = {}
    for _, module in model.named_modules():
        for array in module._kept.values():
            if isinstance(array, np.ndarray) and array.dtype.kind == "f":
                seen[array.__array_interface__["data"][0], array.size] = array
    return seen.values()


def table(model, length, batch=1, measured=None):
    """The parts of a model as text, with the formula 6 · N · tokens and the measured numbers beside them."""
    rows, size = parts(model, length, batch), model.parameters()[0].dtype.itemsize
    summed = ("parameters", "forward", "activations", "cache")
    total = Part("total", **{name: sum(getattr(part, name) for part in rows) for name in summed})

    def row(name, layers, parameters, forward, backward, kept):
        memory = [in_units(size * numbers) if numbers else "–" for numbers in (kept.activations, kept.cache)]
        return name, layers, f"{parameters:,}", _flops(forward), _flops(backward), *memory

    cells = [
        ("", "layers", "parameters", "forward", "backward", "activations", "cache"),
        *(row(p.name, p.layers or "", p.parameters, p.forward, 2 * p.forward, p) for p in (*rows, total)),
    ]
    if measured is not None:
        cells.append(row("measured", "", total.parameters, measured.forward, measured.backward, measured))

    def share_between(length):
        found = parts(model, length, batch)
        return sum(part.forward for part in found if part.quadratic) / sum(part.forward for part in found)

    tied = any(isinstance(module, layers.TiedLinear) for _, module in model.named_modules())
    in_products = total.parameters - sum(part.parameters for part in rows if part.name == EMBEDDINGS and not tied)
    simple, whole = 6 * in_products * batch * length, 3 * total.forward
    lines = [
        f"{type(model).__name__}, a batch of {batch} × {length:,} tokens\n",
        *aligned(cells, "<>>>>>>"),
        "",
        f"quadratic in the length: {share_between(length):.1%} of the operations; "
        f"at twice the length {share_between(2 * length):.1%}",
        f"6 · N · tokens: {_flops(simple)}, {simple / whole:.0%} of {_flops(whole)}; "
        f"N = {in_products:,}{'' if tied else ', without the embeddings'}",
    ]
    return "\n".join(lines)


def _flops(number):
    return in_units(number, 1000, ("", "k", "M", "G", "T", "P")) if number else "–"
