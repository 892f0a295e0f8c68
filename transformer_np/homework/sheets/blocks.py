"""Add & Norm, the encoder block and the decoder block: classes of which the student writes forward and backward."""

from functools import lru_cache
from inspect import Parameter as Argument
from inspect import signature

import numpy as np

from ...decoding import KeyValueCache
from ...inspection.samples import randomised
from ...layers import Dropout, FeedForward, LayerNorm, MultiHeadAttention, blocks
from ...masks import causal_mask, padding_mask
from ...module import Module
from ..exercise import Case, extended
from ..judging.compare import close
from .sheet import Sheet

SHEET = Sheet(__file__)

ALL_DROPPED = 1 - 1e-9  # a dropout that leaves nothing, whatever is drawn and however


# --- cases -----------------------------------------------------------------------------------------------------------


def _sizes(rng, letters):
    """Sizes for these letters, for H, K and D = H · K: all different."""
    heads, features = map(int, rng.choice([(2, 3), (3, 2), (2, 4), (4, 2), (2, 5)]))
    sizes = {"D": heads * features, "H": heads, "K": features}
    free = rng.permutation([size for size in range(2, 10) if size not in sizes.values()])
    return {letter: int(size) for letter, size in zip(letters.split(), free, strict=False)} | sizes


def _values(rng, block):
    """{name: random values} of the parameters of a block."""
    return {name: parameter.data for name, parameter in randomised(block, rng).named_parameters()}


def _padding(rng, rows, length):
    """A padding mask (rows, 1, 1, length): every row ends with padding, the first with more than the second."""
    hidden = rng.integers(1, length - 1, size=rows)
    hidden[:2] = length - 1, 1
    ids = (np.arange(length) < (length - hidden)[:, None]).astype(int)  # 0, the padding, at the end
    return padding_mask(ids, 0)


def _so_far(masks, t):
    """The masks of token t and the keys up to it, of which a causal one, (T, T), hides none."""
    return (mask[..., : t + 1] for mask in masks if mask.ndim > 2)


def _cases_of_all(rng, case):
    """The cases that all three have; the first is the plain one."""
    return [
        case(""),
        extended(case("norm_first=True", norm_first=True)),
        case("a larger eps", eps=float(rng.uniform(0.2, 0.5))),
        case("a second forward and backward", second=True),
        extended(case("dropout", dropout=ALL_DROPPED)),
        extended(case("norm_first=True plus dropout", norm_first=True, dropout=ALL_DROPPED)),
    ]


# --- making an answer's block and reading its gradients --------------------------------------------------------------


def _make(answer, sizes, options):
    """The answer's block. An own class may do without an option: it is made without."""
    options = {"dropout": 0.0, "norm_first": False, "eps": 1e-5, "rng": 0, "dtype": np.float64} | options
    options = {name: value for name, value in options.items() if takes(answer, name)}
    block = answer(*sizes, **options)
    if "dtype" not in options:
        block.astype(np.float64)
    return block


NOT_ASKED = -1  # what a drive returns then: an own class may do without dropout


def _view(drive, reference):
    """What a class that is not asked would have had to give is taken as given."""

    def view(case, output):
        if isinstance(output, int) and output == NOT_ASKED:
            return drive(reference, *case.arguments, **case.options)
        return output

    return view


@lru_cache(2048)  # reading a signature takes as long as a small block; a search makes some 200 classes
def takes(answer, option):
    return any(a.name == option or a.kind is Argument.VAR_KEYWORD for a in signature(answer).parameters.values())


def _counterparts(block, values):
    """{name in the library's block: the answer's parameter}. An own class may call its parameters otherwise: then those
    of the same last name and shape, in order, and after that those of the same shape."""
    own = dict(block.named_parameters())
    if {name: p.shape for name, p in own.items()} == {name: value.shape for name, value in values.items()}:
        return own
    left = dict(sorted(own.items(), key=lambda item: _reads_memory(item[0])))
    found = {}
    for same in (lambda a, b: a == b, lambda a, b: _last(a) == _last(b), lambda a, b: True):
        for name, value in values.items():
            for candidate, parameter in left.items():
                if name not in found and parameter.shape == value.shape and same(candidate, name):
                    found[name] = left.pop(candidate)
                    break
    return found


def _last(name):
    return name.rpartition(".")[2].lower().replace("_", "")


def _reads_memory(name):
    """Whether a parameter is of the cross-attention, which may have been made before the self-attention."""
    name = name.lower()
    return "norm" not in name and any(word in name for word in ("cross", "memory", "enc"))


def _run(
    answer, library, x, dout, forward, backward=lambda block, dout: block.backward(dout), *,
    sizes, values, second=False, **options
):  # fmt: skip
    """Make a block, give it the values, run it forward and backward: y, what backward returns, and the gradients by
    name. second: whether there is a first round with other numbers, whose gradients count too

    A backward that crashes after a wrong forward is not reported: the forward's mistake comes first.
    """
    block = _make(answer, sizes, options)
    parameters = _counterparts(block, values)
    for name, parameter in parameters.items():
        parameter.data = values[name]
    rounds = [(x[::-1], dout[::-1]), (x, dout)] if second else [(x, dout)]
    try:
        for x, dout in rounds:
            y = None
            y = forward(block, x)
            back = backward(block, dout)
    except Exception:
        if answer is library or y is None or not issubclass(library, Module):  # not there where answers are graded
            raise
        right, back, _ = _run(library, library, x, dout, forward, backward, sizes=sizes, values=values, **options)
        if not isinstance(y, np.ndarray) or close(y, right):
            raise
        unknown = tuple(part * np.nan for part in back) if type(back) is tuple else back * np.nan
        return y, unknown, {name: value * np.nan for name, value in values.items()}
    gradients = {name: np.zeros(value.shape) for name, value in values.items()}
    return y, back, gradients | {name: parameter.grad for name, parameter in parameters.items()}


def _of(part, gradients):
    """The gradients of one part of a block, as one row of numbers. That of b_k is 0, and what rounding makes of it is
    not to be looked at alone."""
    return np.concatenate([gradient.ravel() for name, gradient in gradients.items() if name.startswith(part)])


class _Tanh:
    """A sub-layer of one matrix, tanh(x) w + b, with its backward."""

    def __init__(self, w, b):
        self.w, self.b = w, b
        self.dw = np.zeros_like(w)

    def forward(self, x):
        self.hidden = np.tanh(x)
        return self.hidden @ self.w + self.b

    def backward(self, dy):
        self.dw += np.einsum("btd,bte->de", self.hidden, dy)
        return (dy @ self.w.T) * (1 - self.hidden**2)


def add_norm_cases(rng):
    sizes = _sizes(rng, "B T")
    sizes = {letter: sizes[letter] for letter in "BTD"}
    x, dout = rng.normal(size=(2, *sizes.values()))
    sublayer = {"w": rng.normal(size=2 * (sizes["D"],)) / sizes["D"] ** 0.5, "b": 0.5 * rng.normal(size=sizes["D"])}
    values = _values(rng, blocks.AddNorm(sizes["D"], dtype=np.float64))

    def case(label, **options):
        options = {"sublayer": sublayer, "values": values, **options}
        return Case(label, (x, dout), options, sizes, is_narrow="dropout" in options)

    return _cases_of_all(rng, case)


def drive_add_norm(answer, x, dout, *, sublayer, second=False, **options):
    around = {}

    def forward(block, x):
        return block.forward(x, around.setdefault(id(block), _Tanh(**sublayer)).forward)

    def backward(block, dout):
        return block.backward(dout, around[id(block)].backward)

    y, dx, gradients = _run(
        answer, blocks.AddNorm, x, dout, forward, backward, sizes=x.shape[-1:], second=second, **options
    )
    return y, dx, next(iter(around.values())).dw, gradients["norm.gamma"], gradients["norm.beta"]


class AddNorm(Module):
    def __init__(self, d_model, dropout=0.0, norm_first=False, eps=1e-5, rng=None, dtype=np.float32):
        self.norm = LayerNorm(d_model, eps, dtype=dtype)
        self.dropout = Dropout(dropout, rng=rng)
        self.norm_first = norm_first

    def forward(self, x, sublayer):
        inner = self.norm(x) if self.norm_first else x
        out = self.dropout(sublayer(inner))
        total = x + out
        return total if self.norm_first else self.norm(total)

    def backward(self, dout, sublayer_backward):
        dtotal = dout if self.norm_first else self.norm.backward(dout)
        dinner = sublayer_backward(self.dropout.backward(dtotal))
        dx = self.norm.backward(dinner) if self.norm_first else dinner
        return dtotal + dx


# --- mistakes around one sub-layer of a block -------------------------------------------------------------------------


def with_residual(residual, add_norm, x, sublayer):
    """Add & Norm whose residual path carries something else than x."""
    if add_norm.norm_first:
        return residual + add_norm.dropout(sublayer(add_norm.norm(x)))
    return add_norm.norm(residual + add_norm.dropout(sublayer(x)))


def added_in_place(add_norm, x, sublayer):
    """Add & Norm that writes its sum into x."""
    x += add_norm.dropout(sublayer(add_norm.norm(x) if add_norm.norm_first else x))
    return x if add_norm.norm_first else add_norm.norm(x)


def backward_without_residual(add_norm, dout, sublayer_backward):
    if add_norm.norm_first:
        return add_norm.norm.backward(sublayer_backward(add_norm.dropout.backward(dout)))
    return sublayer_backward(add_norm.dropout.backward(add_norm.norm.backward(dout)))


def backward_of_post_norm(add_norm, dout, sublayer_backward):
    """The backward of LayerNorm(x + sublayer(x)), whatever the options are."""
    dsum = add_norm.norm.backward(dout)
    return dsum + sublayer_backward(dsum)


def encoder_cases(rng):
    sizes = _sizes(rng, "B T F")
    x, dout = rng.normal(size=(2, *(sizes[letter] for letter in "BTD")))
    made = sizes["D"], sizes["H"], sizes["F"]
    values = _values(rng, blocks.EncoderBlock(*made, dtype=np.float64))
    causal, padding = causal_mask(sizes["T"]), _padding(rng, sizes["B"], sizes["T"])

    def case(label, mask=padding, **options):
        options = {"sizes": made, "values": values, **options}
        return Case(label, (x, dout, mask), options, sizes, is_narrow="dropout" in options)

    return [
        *_cases_of_all(rng, case),
        case("a causal mask", causal),
        case("no mask", None),
        extended(case("a tuple of masks", (causal, padding))),
        extended(case("a key/value cache", causal, cache=True)),
        extended(case("a key/value cache plus padding", cache=True)),
    ]


def drive_encoder(answer, x, dout, mask=None, *, second=False, cache=False, **options):
    if options.get("dropout") and not takes(answer, "dropout"):
        return NOT_ASKED
    masks = () if mask is None else (mask,)

    def forward(block, x):
        held, first = KeyValueCache(), range(min(3, x.shape[1]) if cache else 0)
        steps = [block.forward(x[:, t : t + 1], *_so_far(masks, t), cache=held) for t in first]
        y = block.forward(x, *masks)  # the backward pass needs all tokens at once
        return np.concatenate([*steps, y[:, len(steps) :]], axis=1)

    y, dx, gradients = _run(answer, blocks.EncoderBlock, x, dout, forward, second=second, **options)
    return y, dx, *(_of(part, gradients) for part in ("attention", "add_norm1", "feed_forward", "add_norm2"))


class EncoderBlock(Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False, eps=1e-5, rng=None, dtype=np.float32):
        rng = np.random.default_rng(rng)
        self.attention = MultiHeadAttention(d_model, num_heads, rng=rng, dtype=dtype)
        self.add_norm1 = AddNorm(d_model, dropout, norm_first, eps, rng, dtype)
        self.feed_forward = FeedForward(d_model, d_ff, rng=rng, dtype=dtype)
        self.add_norm2 = AddNorm(d_model, dropout, norm_first, eps, rng, dtype)

    def forward(self, x, mask=None, cache=None):
        def attention(x):
            return self.attention(x, mask=mask, cache=cache)

        a = self.add_norm1(x, attention)
        return self.add_norm2(a, self.feed_forward)

    def backward(self, dout):
        def attention(d):
            return self.attention.backward(d)[0]

        da = self.add_norm2.backward(dout, self.feed_forward.backward)
        return self.add_norm1.backward(da, attention)


def decoder_cases(rng):
    sizes = _sizes(rng, "B T S F")
    made = sizes["D"], sizes["H"], sizes["F"]
    values = _values(rng, blocks.DecoderBlock(*made, dtype=np.float64))
    x, dout = rng.normal(size=(2, *(sizes[letter] for letter in "BTD")))
    memory = rng.normal(size=(sizes["B"], sizes["S"], sizes["D"]))
    masks = causal_mask(sizes["T"]), _padding(rng, sizes["B"], sizes["S"])
    square = rng.normal(size=x.shape), (masks[0], _padding(rng, sizes["B"], sizes["T"]))
    tuples = (masks[0], square[1][1]), (masks[1], _padding(rng, sizes["B"], sizes["S"]))

    def case(label, memory=memory, masks=masks, **options):
        now = sizes | {"S": memory.shape[1]}
        options = {"sizes": made, "values": values, **options}
        return Case(label, (x, memory, dout, *masks), options, now, is_narrow="dropout" in options)

    return [
        *_cases_of_all(rng, case),
        case("as many source as target places", *square),
        case("no masks", masks=()),
        extended(case("a mask but no memory_mask", masks=(masks[0], None))),
        extended(case("tuples of masks", masks=tuples)),
        extended(case("key/value caches", cache=True)),
        extended(case("key/value caches plus padding", masks=(square[1][1], masks[1]), cache=True)),
        extended(case("key/value caches but no masks", masks=(), cache=True)),
    ]


def drive_decoder(answer, x, memory, dout, mask=None, memory_mask=None, *, second=False, cache=False, **options):
    if options.get("dropout") and not takes(answer, "dropout"):
        return NOT_ASKED
    masks = () if mask is None else (mask, memory_mask)

    def forward(block, x):
        steps, caches = [], (KeyValueCache(), KeyValueCache())
        for t in range(min(3, x.shape[1]) if cache else 0):
            if t == 1:
                caches = caches[0], KeyValueCache()  # only the first holds the target
            mask = next(_so_far(masks[:1], t), None)
            steps.append(block.forward(x[:, t : t + 1], memory, mask, memory_mask=memory_mask, cache=caches))
        y = block.forward(x, memory, *masks)  # the backward pass needs all tokens at once
        return np.concatenate([*steps, y[:, len(steps) :]], axis=1)

    y, back, gradients = _run(answer, blocks.DecoderBlock, x, dout, forward, second=second, **options)
    dx, dmemory = back if isinstance(back, tuple | list) and len(back) == 2 else (back, None)
    dmemory = np.zeros(0) if dmemory is None else dmemory
    parts = ("self_attention", "add_norm1", "cross_attention", "add_norm2", "feed_forward", "add_norm3")
    return y, dx, dmemory, *(_of(part, gradients) for part in parts)


class DecoderBlock(Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False, eps=1e-5, rng=None, dtype=np.float32):
        rng = np.random.default_rng(rng)
        self.self_attention = MultiHeadAttention(d_model, num_heads, rng=rng, dtype=dtype)
        self.add_norm1 = AddNorm(d_model, dropout, norm_first, eps, rng, dtype)
        self.cross_attention = MultiHeadAttention(d_model, num_heads, rng=rng, dtype=dtype)
        self.add_norm2 = AddNorm(d_model, dropout, norm_first, eps, rng, dtype)
        self.feed_forward = FeedForward(d_model, d_ff, rng=rng, dtype=dtype)
        self.add_norm3 = AddNorm(d_model, dropout, norm_first, eps, rng, dtype)

    def forward(self, x, memory, mask=None, memory_mask=None, cache=(None, None)):
        def self_attention(x):
            return self.self_attention(x, mask=mask, cache=cache[0])

        def cross_attention(a):
            return self.cross_attention(a, memory, memory_mask, cache=cache[1])

        a = self.add_norm1(x, self_attention)
        b = self.add_norm2(a, cross_attention)
        return self.add_norm3(b, self.feed_forward)

    def backward(self, dout):
        dmemory = None

        def self_attention(d):
            return self.self_attention.backward(d)[0]

        def cross_attention(d):
            nonlocal dmemory
            da, dmemory = self.cross_attention.backward(d)
            return da

        db = self.add_norm3.backward(dout, self.feed_forward.backward)
        da = self.add_norm2.backward(db, cross_attention)
        dx = self.add_norm1.backward(da, self_attention)
        return dx, dmemory


EXERCISES = [
    SHEET.exercise(
        blocks.AddNorm, AddNorm, add_norm_cases, {"y": "B T D"},
        drive=drive_add_norm, parts=("forward", "backward"),
        gradients={"dx": "B T D", "gradient of the sub-layer's weights": "D D", "dgamma": "D", "dbeta": "D"},
    ),
    SHEET.exercise(
        blocks.EncoderBlock, EncoderBlock, encoder_cases, {"y": "B T D"},
        drive=drive_encoder, view=_view(drive_encoder, blocks.EncoderBlock), parts=("forward", "backward"),
        gradients={
            "dx": "B T D", "gradients of the attention": "...", "gradients of norm 1": "...",
            "gradients of the feed-forward network": "...", "gradients of norm 2": "...",
        },
    ),
    SHEET.exercise(
        blocks.DecoderBlock, DecoderBlock, decoder_cases, {"y": "B T D"},
        drive=drive_decoder, view=_view(drive_decoder, blocks.DecoderBlock), parts=("forward", "backward"),
        gradients={
            "dx": "B T D", "dmemory": "B S D", "gradients of the self-attention": "...", "gradients of norm 1": "...",
            "gradients of the cross-attention": "...", "gradients of norm 2": "...",
            "gradients of the feed-forward network": "...", "gradients of norm 3": "...",
        },
    ),
]  # fmt: skip
