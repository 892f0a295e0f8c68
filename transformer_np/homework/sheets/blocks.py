"""Add & Norm, the encoder block and the decoder block: classes of which the student writes forward and backward."""

from inspect import Parameter as Argument
from inspect import signature

import numpy as np

from ...decoding import KeyValueCache
from ...layers import Dropout, FeedForward, LayerNorm, MultiHeadAttention, blocks
from ...masks import causal_mask, padding_mask
from ...module import Module
from ..exercise import Case, Exercise, Result, extended
from ..judging.compare import close

ALL_DROPPED = 1 - 1e-9  # a dropout that leaves nothing, whatever is drawn and however


# --- cases -----------------------------------------------------------------------------------------------------------


def _sizes(rng, letters):
    """Sizes for these letters, for H, K and D = H · K: all different."""
    heads, features = map(int, rng.choice([(2, 3), (3, 2), (2, 4), (4, 2), (2, 5)]))
    sizes = {"D": heads * features, "H": heads, "K": features}
    free = rng.permutation([size for size in range(2, 10) if size not in sizes.values()])
    return {letter: int(size) for letter, size in zip(letters.split(), free, strict=False)} | sizes


def _values(rng, names_and_shapes):
    """Random values of order 1 for the parameters; a matrix about keeps the size of what it multiplies."""
    values = {}
    for name, shape in names_and_shapes:
        numbers = rng.normal(size=shape)
        if name.endswith("gamma"):
            numbers = rng.uniform(0.5, 2, size=shape)
        elif numbers.ndim == 1:
            numbers *= 0.5
        else:
            numbers /= shape[0] ** 0.5
        values[name] = numbers
    return values


def _shapes(block):
    return [(name, parameter.shape) for name, parameter in block.named_parameters()]


def _padding(rng, rows, length):
    """A padding mask (rows, 1, 1, length): every row ends with padding, the first with more than the second."""
    hidden = rng.integers(1, length - 1, size=rows)
    hidden[:2] = length - 1, 1
    ids = (np.arange(length) < (length - hidden)[:, None]).astype(int)  # 0, the padding, at the end
    return padding_mask(ids, 0)


def _eps(rng):
    return float(rng.uniform(0.2, 0.5))


# --- making an answer's block and reading its gradients --------------------------------------------------------------


def _make(answer, sizes, options):
    """The answer's block. An own class may do without an option: it is made without."""
    arguments = signature(answer).parameters.values()
    if not any(argument.kind is Argument.VAR_KEYWORD for argument in arguments):
        known = {argument.name for argument in arguments}
        options = {name: value for name, value in options.items() if name in known}
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


def _takes(answer, option):
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


def _run(answer, sizes, options, values, before, forward, backward, library):
    """Make a block, give it the values, run it forward and backward: y, what backward returns, the gradients by name.

    A backward that crashes after a wrong forward is not reported: the forward's mistake comes first.
    """
    block = _make(answer, sizes, options)
    parameters = _counterparts(block, values)
    for name, parameter in parameters.items():
        parameter.data = values[name]
        if before is not None:
            parameter.grad = before[name]
    y = forward(block)
    try:
        back = backward(block)
    except Exception:
        if answer is library:
            raise
        right = _run(library, sizes, options, values, before, forward, backward, library)
        if not isinstance(y, np.ndarray) or close(y, right[0]):
            raise
        unknown = [np.full(part.shape, np.nan) for part in (right[1] if type(right[1]) is tuple else (right[1],))]
        back = tuple(unknown) if type(right[1]) is tuple else unknown[0]
        return y, back, {name: np.full(value.shape, np.nan) for name, value in values.items()}
    gradients = {name: np.zeros(value.shape) for name, value in values.items()}
    return y, back, gradients | {name: parameter.grad for name, parameter in parameters.items()}


def _of(part, gradients):
    """The gradients of one part of a block, as one row of numbers. That of b_k is 0, and what rounding makes of it is
    not to be looked at alone."""
    return np.concatenate([gradient.ravel() for name, gradient in gradients.items() if name.startswith(part)])


# --- AddNorm ---------------------------------------------------------------------------------------------------------


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
    sublayer = _values(rng, [("w", (sizes["D"], sizes["D"])), ("b", (sizes["D"],))])
    values = _values(rng, _shapes(blocks.AddNorm(sizes["D"])))
    before = {name: rng.normal(size=value.shape) for name, value in values.items()}
    eps = _eps(rng)

    def case(label, **options):
        return Case(label, (x, dout), {"sublayer": sublayer, "values": values, **options}, sizes)

    return [
        case(""),
        extended(case("norm_first=True", norm_first=True)),
        case("a larger eps", eps=eps),
        case("gradients that are not 0 before", before=before),
        extended(case("a dropout that drops nearly all", dropout=ALL_DROPPED)),
        extended(
            case("norm_first=True and a dropout that drops nearly all", norm_first=True, dropout=ALL_DROPPED, eps=eps)
        ),
    ]


def drive_add_norm(
    answer, x, dout, *, sublayer, values, before=None, norm_first=False, eps=1e-5, dropout=0.0
):  # fmt: skip
    around = []

    def forward(block):
        around.append(_Tanh(sublayer["w"], sublayer["b"]))
        return block.forward(x, around[-1].forward)

    def backward(block):
        return block.backward(dout, around[-1].backward)

    options = {"dropout": dropout, "norm_first": norm_first, "eps": eps, "rng": 0, "dtype": np.float64}
    y, dx, gradients = _run(answer, (x.shape[-1],), options, values, before, forward, backward, blocks.AddNorm)
    return y, dx, around[0].dw, gradients["norm.gamma"], gradients["norm.beta"]


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


PATH_MISTAKES = """
- norm_first ignored:  self.norm_first = norm_first -> self.norm_first = False
  norm_first is not used: with norm_first=True it still computes post-norm, LayerNorm(x + sublayer(x)). Pre-norm is x +
  sublayer(LayerNorm(x)).
- always norm first:  self.norm_first = norm_first -> self.norm_first = True
  This is pre-norm, x + sublayer(LayerNorm(x)), though norm_first is False. The default is the paper's post-norm:
  LayerNorm(x + sublayer(x)), the norm after the residual sum.
- norm_first the wrong way round:  self.norm_first = norm_first -> self.norm_first = not norm_first
  Pre-norm and post-norm are swapped: norm_first=True must be x + sublayer(LayerNorm(x)), norm_first=False LayerNorm(x +
  sublayer(x)).
- norm of the sub-layer alone:
    sublayer(inner) -> sublayer(inner) if self.norm_first else self.norm(sublayer(inner))
    return total if self.norm_first else self.norm(total) -> return total
  This is x + LayerNorm(sublayer(x)): only the sub-layer's output is normalised. Post-norm normalises the sum,
  LayerNorm(x + sublayer(x)).
- residual from behind the norm:  total = x + out -> total = inner + out
  With norm_first the residual path starts behind the norm: LayerNorm(x) + sublayer(LayerNorm(x)). It must carry x
  itself, x + sublayer(LayerNorm(x)), so that nothing is normalised on the way along the residual path.
- norm before and after:  return total if self.norm_first else self.norm(total) -> return self.norm(total)
  With norm_first the sum is normalised once more: LayerNorm(x + sublayer(LayerNorm(x))). In pre-norm the norm stands
  before the sub-layer only.
- residual normalised, the sub-layer's input not:
    in AddNorm.forward: return self.norm(x) + self.dropout(sublayer(x))
  This is LayerNorm(x) + sublayer(x): the residual path is normalised. Post-norm is LayerNorm(x + sublayer(x)), pre-norm
  x + sublayer(LayerNorm(x)).
- norm of each summand:
    total = x + out -> total = self.norm(x) + self.norm(out)
    return total if self.norm_first else self.norm(total) -> return total
  This is LayerNorm(x) + LayerNorm(sublayer(x)), each summand normalised on its own. Post-norm normalises the sum,
  LayerNorm(x + sublayer(x)).
- sub-layer's output subtracted:  total = x + out -> total = x - out
  The sub-layer's output is subtracted, x − sublayer(x): a wrong sign. The residual connection adds it.
- norm behind the sub-layer:
    inner = self.norm(x) if self.norm_first else x -> inner = x
    sublayer(inner) -> self.norm(sublayer(inner)) if self.norm_first else sublayer(inner)
  With norm_first this is x + LayerNorm(sublayer(x)): the norm stands behind the sub-layer. Pre-norm normalises the
  sub-layer's input, x + sublayer(LayerNorm(x)).
- mean instead of sum:  total = x + out -> total = (x + out) / 2
  x and the sub-layer's output are averaged, (x + sublayer(x)) / 2: a factor ½ too many. The residual connection is
  their sum.
- product instead of sum:  total = x + out -> total = x * out
  x and the sub-layer's output are multiplied, x · sublayer(x). The residual connection is a sum: x + sublayer(x).
- sub-layer's gradient subtracted in backward:  return dtotal + dx -> return dtotal - dx
  In backward the gradient that comes through the sub-layer is subtracted: a wrong sign. The two ways to x add up.
- residual added twice:  total = x + out -> total = 2 * x + out
  The residual x is added twice, 2x + sublayer(x): once here, and once more by hand or inside the sub-layer. Add & Norm
  adds it once.
- dropout forgotten:  self.dropout(sublayer(inner)) -> sublayer(inner)
  Dropout is not used: the sub-layer's output must go through it before it is added to x, x + Dropout(sublayer(x)).
- dropout of the sum:
    self.dropout(sublayer(inner)) -> sublayer(inner)
    total = x + out -> total = self.dropout(x + out)
  Dropout hits the whole sum, Dropout(x + sublayer(x)), and so the residual path too. It belongs to the sub-layer's
  output alone: x + Dropout(sublayer(x)).
- norm_first ignored in backward:
    dtotal = dout if self.norm_first else self.norm.backward(dout) -> dtotal = self.norm.backward(dout)
    dx = self.norm.backward(dinner) if self.norm_first else dinner -> dx = dinner
  backward is that of post-norm also where norm_first is True. The forward was x + sublayer(LayerNorm(x)): there dout
  itself takes the residual path, and the norm's backward comes last on the path through the sub-layer.
- always norm first in backward:
    dtotal = dout if self.norm_first else self.norm.backward(dout) -> dtotal = dout
    dx = self.norm.backward(dinner) if self.norm_first else dinner -> dx = self.norm.backward(dinner)
  backward is that of pre-norm though the forward was post-norm. The norm stood at the end of LayerNorm(x +
  sublayer(x)), so its backward comes first, and both paths get what it returns.
- norm's backward last:
    in AddNorm.backward: return self.norm.backward(dout + sublayer_backward(self.dropout.backward(dout)))
  The norm's backward comes last, over the sum of both paths: norm.backward(dout + sublayer_backward(dout)). In
  post-norm the norm is the last step of the forward, so its backward is the first; in pre-norm it is on the path
  through the sub-layer only, and the residual path goes around it.
- norm's backward before the sub-layer's:
    dinner = sublayer_backward(self.dropout.backward(dtotal)) ->
        dout_of_sublayer = self.dropout.backward(dtotal)
        if self.norm_first:
            dout_of_sublayer = self.norm.backward(dout_of_sublayer)
        dinner = sublayer_backward(dout_of_sublayer)
    dx = self.norm.backward(dinner) if self.norm_first else dinner -> dx = dinner
  With norm_first the norm's backward is run before that of the sub-layer, in the order of the forward. The forward was
  x + sublayer(LayerNorm(x)): the gradient comes through the sub-layer first, then through the norm.
- dropout's backward behind the sub-layer's:
    sublayer_backward(self.dropout.backward(dtotal)) -> self.dropout.backward(sublayer_backward(dtotal))
  The dropout's backward is run behind that of the sub-layer. Dropout was the last step of the path,
  Dropout(sublayer(x)), so its backward comes first: sublayer_backward(dropout.backward(…)).
- norm's backward run twice:  dtotal = dout if -> self.norm.backward(dout); dtotal = dout if
  The norm's backward is run twice for one forward. The result is the same, but each run adds to the gradients of γ and
  β, which are now too large. Keep its result in a variable.
- sub-layer's backward past the norm:  self.dropout.backward(dtotal) -> self.dropout.backward(dout)
  The sub-layer's backward gets dout itself. In LayerNorm(x + sublayer(x)) the gradient reaches the sum through the
  norm: the sub-layer must get norm.backward(dout).
- residual path past the norm in backward:  return dtotal + dx -> return dout + dx
  The residual path in backward carries dout itself, around the norm. In LayerNorm(x + sublayer(x)) the norm comes after
  the sum: x gets norm.backward(dout) over the residual path, not dout.
- residual counted twice in backward:  return dtotal + dx -> return 2 * dtotal + dx
  The gradient of the residual path is counted twice. x reaches the sum x + sublayer(x) in two ways, so dx is the
  gradient of the sum once plus what the sub-layer's backward returns.
- no backward of the dropout:  self.dropout.backward(dtotal) -> dtotal
  The dropout's backward is left out: where an output of the sub-layer was dropped, no gradient may pass into it. The
  sub-layer's backward must get dropout.backward(…) of the gradient.
- eps not handed to the norm:  LayerNorm(d_model, eps, dtype=dtype) -> LayerNorm(d_model, dtype=dtype)
  eps is not handed to the LayerNorm, which then works with its default 1e-5.
"""

CLEARED = """
- gradients cleared before they are added:  FIRST -> self.zero_grad(); FIRST
  backward clears the gradients of the parameters, by zero_grad() or by = instead of +=. They must be added to: several
  backward passes may accumulate before an optimizer step.
"""

ADD_NORM = Exercise(
    blocks.AddNorm,
    results=(
        Result("y", "B T D", gradient=False),
        Result("dx", "B T D", gradient=True),
        Result("gradient of the sub-layer's weights", "D D", gradient=True),
        Result("dgamma", "D", gradient=True),
        Result("dbeta", "D", gradient=True),
    ),
    cases=add_norm_cases,
    answer=AddNorm,
    hints=(
        "In which two ways does x reach the sum, and where does the LayerNorm stand: behind the sum or before the "
        "sub-layer?",
        "post-norm: y = LN(x + s(x)), dsum = LN.backward(dout), dx = dsum + s.backward(dsum);   pre-norm: y = x + "
        "s(LN(x)), read it backwards in the same way",
        "notebook 04, steps 5 and 6, and notebook 06, step 9; self.norm and self.dropout have a backward each.",
    ),
    difficulty=2,
    section="§8.1",
    chapter="The blocks",
    place=1,
    drive=drive_add_norm,
    parts=("forward", "backward"),
    mistakes="""
- no residual:  total = x + out -> total = out
  The residual connection is missing: only the sub-layer's output goes on. The sum is x + sublayer(x), the "Add" of Add
  & Norm.
- no norm:
    inner = self.norm(x) if self.norm_first else x -> inner = x
    return total if self.norm_first else self.norm(total) -> return total
  The LayerNorm is missing: this is x + sublayer(x), the Add of Add & Norm without the Norm.
- sub-layer not called:  sublayer(inner) -> np.zeros_like(inner)
  The sub-layer is not called: x alone goes on, nothing is added to it.
- sub-layer called twice:  sublayer(inner) -> sublayer(sublayer(inner))
  The sub-layer is put on its own output, sublayer(sublayer(x)): it must be called once.
- dropout before the sub-layer:  self.dropout(sublayer(inner)) -> sublayer(self.dropout(inner))
  Dropout hits the sub-layer's input, sublayer(Dropout(x)). It belongs to its output: Dropout(sublayer(x)).
- dropout after the norm:
    inner = self.norm(x) ->
        if not self.norm_first:
            return self.dropout(self.norm(x + sublayer(x)))
        inner = self.norm(x)
  Dropout comes last, Dropout(LayerNorm(x + sublayer(x))). It belongs to the sub-layer's output, before the sum:
  LayerNorm(x + Dropout(sublayer(x))).
- no residual in backward:  return dtotal + dx -> return dx
  The residual path is missing in backward: a sum hands its gradient to both terms, so dx is the gradient of the sum x +
  sublayer(x) itself plus what the sub-layer's backward returns.
- no backward of the norm:
    dtotal = dout if self.norm_first else self.norm.backward(dout) -> dtotal = dout
    dx = self.norm.backward(dinner) if self.norm_first else dinner -> dx = dinner
  The norm's backward is left out: dout goes past the LayerNorm, and γ and β get no gradient.
- no backward of the sub-layer:  sublayer_backward(self.dropout.backward(dtotal)) -> np.zeros_like(dtotal)
  The sub-layer's backward is not run: only the residual path hands the gradient on, and the sub-layer's weights get
  none.
- chain without the sum:  in AddNorm.backward: return sublayer_backward(self.norm.backward(dout))
  backward is sublayer_backward(norm.backward(dout)) whatever norm_first says, as if the block were a plain chain: the
  residual path is missing, and in pre-norm the order is wrong too.
"""
    + PATH_MISTAKES
    + CLEARED.replace("FIRST", "dtotal = dout if"),
)

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


def around_the(place, formula, add_norm, forward, backward, more=""):
    """The mistakes around one sub-layer of a block, by its name.

    add_norm, forward, backward: how the answer calls its Add & Norm, `add_norm(x, sublayer)` and
        `add_norm.backward(dout, sublayer_backward)`; more: a further rewrite where its backward is not run
    """
    x, sublayer = forward.split(", ")
    dout, its_backward = backward.split(", ")
    return f"""
- no residual around the {place}:
    {add_norm}({forward}) -> with_residual(0, {add_norm}, {forward})
  The residual connection around the {place} is missing: {formula} must add the sub-layer's input to its output, x +
  sublayer(x).
- residual added twice around the {place}:
    {add_norm}({forward}) -> with_residual(2 * {x}, {add_norm}, {forward})
  The residual is added twice around the {place}, 2x + {place}(x): once here, and once more by hand or inside the
  sub-layer. {formula} adds it once.
- no norm around the {place}:
    {add_norm}({forward}) -> {x} + {add_norm}.dropout({sublayer}({x}))
  The LayerNorm that belongs to the {place} is missing: each sub-layer has one of its own, {formula}.
- input overwritten by += around the {place}:
    {add_norm}({forward}) -> added_in_place({add_norm}, {forward})
  x += {place}(x) writes the sum into the array that the sub-layer was given and keeps for its backward: y is right, the
  gradients of its weights are not. Make a new array, x + sublayer(x).
- no residual around the {place} in backward:
    {add_norm}.backward({backward}) -> backward_without_residual({add_norm}, {backward})
  The residual path around the {place} is missing in backward: a sum hands its gradient to both terms, so dx is the
  gradient of the sum plus what the {place}'s backward returns.
- no backward of the norm around the {place}:
    {add_norm}.backward({backward}) ->
        {dout} + {its_backward}({add_norm}.dropout.backward({dout}))
  The backward of the LayerNorm that belongs to the {place} is left out: the gradient goes past it, and its γ and β get
  none.
- no backward of the {place}:
    {add_norm}.backward({backward}) -> {add_norm}.backward({dout}, np.zeros_like){more}
  The {place}'s backward is not run: only the residual path hands the gradient on, and the weights of the {place} get
  none.
"""


# --- EncoderBlock ----------------------------------------------------------------------------------------------------


def encoder_cases(rng):
    sizes = _sizes(rng, "B T F")
    x, dout = rng.normal(size=(2, *(sizes[letter] for letter in "BTD")))
    made = sizes["D"], sizes["H"], sizes["F"]
    values = _values(rng, _shapes(blocks.EncoderBlock(*made)))
    before = {name: rng.normal(size=value.shape) for name, value in values.items()}
    padding = _padding(rng, sizes["B"], sizes["T"])

    def case(label, mask=None, **options):
        return Case(label, (x, dout, mask), {"sizes": made, "values": values, **options}, sizes)

    return [
        case("", padding),
        extended(case("norm_first=True", causal_mask(sizes["T"]), norm_first=True)),
        case("a larger eps, no mask and gradients that are not 0 before", eps=_eps(rng), before=before),
        extended(case("a dropout that drops nearly all", padding, dropout=ALL_DROPPED)),
        extended(case("a key/value cache", causal_mask(sizes["T"]), cached=True)),
    ]


def drive_encoder(
    answer, x, dout, mask=None, *, sizes, values, before=None, norm_first=False, eps=1e-5, dropout=0.0, cached=False
):  # fmt: skip
    if dropout and not _takes(answer, "dropout"):
        return NOT_ASKED
    masks = () if mask is None else (mask,)

    def forward(block):
        steps, cache = [], KeyValueCache()
        for t in range(x.shape[1] if cached else 0):
            steps.append(block.forward(x[:, t : t + 1], cache=cache))
        y = block.forward(x, *masks)  # the backward pass needs all tokens at once
        return np.concatenate(steps, axis=1) if cached else y

    options = {"dropout": dropout, "norm_first": norm_first, "eps": eps, "rng": 0, "dtype": np.float64}
    y, dx, gradients = _run(
        answer, sizes, options, values, before,
        forward, lambda block: block.backward(dout), blocks.EncoderBlock,
    )  # fmt: skip
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


SELF_ATTENTION_MISTAKES = """
- mask in the place of the memory:  self.attention(x, mask=mask -> self.attention(x, mask
  The mask is handed to the attention in the place of the memory, its second argument: MultiHeadAttention(x,
  memory=None, mask=None). Say mask=mask.
- x handed in as its own memory:  self.attention(x, mask=mask -> self.attention(x, x, mask
  The self-attention is given x as its memory too. y is the same, but its backward then returns the gradient of x in two
  parts, through the queries and through keys and values, of which the second is dropped. Without a memory it returns
  their sum.
"""

ENCODER_BLOCK = Exercise(
    blocks.EncoderBlock,
    results=(
        Result("y", "B T D", gradient=False),
        Result("dx", "B T D", gradient=True),
        Result("gradients of the attention", gradient=True),
        Result("gradients of norm 1", gradient=True),
        Result("gradients of the feed-forward network", gradient=True),
        Result("gradients of norm 2", gradient=True),
    ),
    cases=encoder_cases,
    answer=EncoderBlock,
    hints=(
        "Which two sub-layers does an encoder block have, and what is around each of them?",
        "A = LN(X + MHA(X)), O = LN(A + FFN(A));   dA = dsum₂ + FFN.backward(dsum₂), dsum₂ = LN₂.backward(dout), and "
        "the same once more for X",
        "notebook 05, step 5, for forward; notebook 06, step 9, for backward. attention.backward returns a pair.",
    ),
    difficulty=2,
    section="§8.1",
    chapter="The blocks",
    place=2,
    drive=drive_encoder,
    view=_view(drive_encoder, blocks.EncoderBlock),
    parts=("forward", "backward"),
    mistakes=around_the(
        "attention", "A = LayerNorm(X + MultiHeadAttention(X))", "self.add_norm1", "x, attention", "da, attention"
    )
    + around_the(
        "feed-forward",
        "O = LayerNorm(A + FFN(A))",
        "self.add_norm2",
        "a, self.feed_forward",
        "dout, self.feed_forward.backward",
    )
    + """
- first norm used for all:
    in EncoderBlock.forward: self.add_norm2 -> self.add_norm1
    in EncoderBlock.backward: self.add_norm2 -> self.add_norm1
  One LayerNorm is used for every sub-layer. Each Add & Norm has parameters of its own: γ and β of the others are never
  used, and what the first keeps for its backward is overwritten.
- norms in the wrong order:
    in EncoderBlock.forward: self.add_norm1 -> self.add_norm2
    in EncoderBlock.forward: self.add_norm2 -> self.add_norm1
    in EncoderBlock.backward: self.add_norm1 -> self.add_norm2
    in EncoderBlock.backward: self.add_norm2 -> self.add_norm1
  The LayerNorms are in the wrong order: the first sub-layer uses that of the last.
"""
    + CLEARED.replace("FIRST", "da = self")
    + """
- cache ignored:  self.attention(x, mask=mask, cache=cache) -> self.attention(x, mask=mask)
  `cache` is not used. During decoding x is only the newest token: hand the cache to the attention, which has the keys
  and values of the earlier ones.
- mask ignored:  self.attention(x, mask=mask -> self.attention(x
  The mask is not handed to the attention, which looks at padding and at the future.
"""
    + SELF_ATTENTION_MISTAKES
    + """
- mask inverted:  mask=mask -> mask=None if mask is None else ~mask
  The mask is inverted, ~mask. True has to mean hidden; here it means seen.
- feed-forward before attention:
    self.add_norm1(x, attention) -> self.add_norm1(x, self.feed_forward)
    self.add_norm2(a, self.feed_forward) -> self.add_norm2(a, attention)
  The sub-layers are in the wrong order: the feed-forward network comes first, then attention. It must be attention
  first, then feed-forward.
- no attention:  a = self.add_norm1(x, attention) -> a = x
  The attention sub-layer is missing: this is LayerNorm(X + FFN(X)) alone.
- no feed-forward:  return self.add_norm2(a, self.feed_forward) -> return a
  The feed-forward sub-layer is missing: it ends after A = LayerNorm(X + MultiHeadAttention(X)).
- feed-forward of the block's input:
    self.add_norm2(a, self.feed_forward) -> self.add_norm2(a, lambda a: self.feed_forward(x))
  The feed-forward network is given the block's input X: A + FFN(X). Its input is the result of the first sub-layer: A +
  FFN(A).
- residual of the block's input:
    self.add_norm2(a, self.feed_forward) -> with_residual(x, self.add_norm2, a, self.feed_forward)
  The second residual path starts at the block's input X: X + FFN(A). It must carry the feed-forward sub-layer's own
  input: A + FFN(A).
- sub-layers side by side:
    self.add_norm2(a, self.feed_forward) -> with_residual(a, self.add_norm2, x, self.feed_forward)
  Attention and feed-forward both read the block's input, side by side. They come one after the other: the feed-forward
  network, and its norm in pre-norm, must read A, the result of the first sub-layer.
- norms in the wrong order in backward:
    in EncoderBlock.backward: self.add_norm1 -> self.add_norm2
    in EncoderBlock.backward: self.add_norm2 -> self.add_norm1
  backward uses the LayerNorms in the order of the forward: the norm of the attention for the feed-forward sub-layer and
  the other way round. Each belongs to its own sub-layer.
- pair of the attention not unpacked:  self.attention.backward(d)[0] -> self.attention.backward(d)
  MultiHeadAttention.backward returns a pair, dx and dmemory (None for self-attention). Here the pair as a whole is used
  as if it were the gradient: take its first part, [0].
- backward in the order of the forward:
    self.add_norm2.backward(dout, self.feed_forward.backward) -> self.add_norm1.backward(dout, attention)
    self.add_norm1.backward(da, attention) -> self.add_norm2.backward(da, self.feed_forward.backward)
  backward goes through the sub-layers in the order of the forward, attention first. It must go from the end to the
  start: feed-forward first, then attention.
- dout for both sub-layers:  self.add_norm1.backward(da -> self.add_norm1.backward(dout
  The attention's part of backward starts from dout again. It must start from what the feed-forward sub-layer's backward
  returned, the gradient of A.
"""
    + PATH_MISTAKES,
)

# --- DecoderBlock ----------------------------------------------------------------------------------------------------

_DECODER_PLACES = ("self-attention", "cross-attention", "feed-forward")


def decoder_cases(rng):
    sizes = _sizes(rng, "B T S F")
    made = sizes["D"], sizes["H"], sizes["F"]
    values = _values(rng, _shapes(blocks.DecoderBlock(*made)))
    before = {name: rng.normal(size=value.shape) for name, value in values.items()}
    x, dout = rng.normal(size=(2, *(sizes[letter] for letter in "BTD")))
    memory = rng.normal(size=(sizes["B"], sizes["S"], sizes["D"]))
    masks = causal_mask(sizes["T"]), _padding(rng, sizes["B"], sizes["S"])
    square = rng.normal(size=x.shape), (masks[0], _padding(rng, sizes["B"], sizes["T"]))

    def case(label, memory=memory, masks=(), **options):
        now = sizes | {"S": memory.shape[1]}
        return Case(label, (x, memory, dout, *masks), {"sizes": made, "values": values, **options}, now)

    return [
        case("", masks=masks),
        case("as many source as target places", *square),
        extended(case("norm_first=True", masks=masks, norm_first=True)),
        case("a larger eps, no masks and gradients that are not 0 before", eps=_eps(rng), before=before),
        extended(case("a dropout that drops nearly all", masks=masks, dropout=ALL_DROPPED)),
        extended(case("key/value caches", masks=masks, cached=True)),
    ]


def drive_decoder(
    answer, x, memory, dout, mask=None, memory_mask=None, *,
    sizes, values, before=None, norm_first=False, eps=1e-5, dropout=0.0, cached=False,
):  # fmt: skip
    if dropout and not _takes(answer, "dropout"):
        return NOT_ASKED
    masks = () if mask is None else (mask, memory_mask)

    def forward(block):
        steps, caches = [], (KeyValueCache(), KeyValueCache())
        for t in range(x.shape[1] if cached else 0):
            steps.append(block.forward(x[:, t : t + 1], memory, memory_mask=memory_mask, cache=caches))
        y = block.forward(x, memory, *masks)  # the backward pass needs all tokens at once
        return np.concatenate(steps, axis=1) if cached else y

    options = {"dropout": dropout, "norm_first": norm_first, "eps": eps, "rng": 0, "dtype": np.float64}
    y, back, gradients = _run(
        answer, sizes, options, values, before,
        forward, lambda block: block.backward(dout), blocks.DecoderBlock,
    )  # fmt: skip
    dx, dmemory = back if isinstance(back, tuple | list) and len(back) == 2 else (back, None)
    if dmemory is None:
        dmemory = np.zeros(0)
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


NO_DMEMORY = """
    dmemory = None -> dmemory = np.zeros_like(self.cross_attention.kept("memory"))"""

DECODER_BLOCK = Exercise(
    blocks.DecoderBlock,
    results=(
        Result("y", "B T D", gradient=False),
        Result("dx", "B T D", gradient=True),
        Result("dmemory", "B S D", gradient=True),
        Result("gradients of the self-attention", gradient=True),
        Result("gradients of norm 1", gradient=True),
        Result("gradients of the cross-attention", gradient=True),
        Result("gradients of norm 2", gradient=True),
        Result("gradients of the feed-forward network", gradient=True),
        Result("gradients of norm 3", gradient=True),
    ),
    cases=decoder_cases,
    answer=DecoderBlock,
    hints=(
        "Which of the three sub-layers reads the encoder's output, and in how many places does a gradient leave the "
        "block?",
        "A = LN(Y + MHA(Y)), B = LN(A + MHA(A, C)), O = LN(B + FFN(B));   backward from O to Y: the cross-attention's "
        "backward gives the gradients of A and of C",
        "notebook 05, step 6, for forward; notebook 06, step 9, for backward. cross_attention.backward returns dx and "
        "dmemory.",
    ),
    difficulty=3,
    section="§8.2",
    chapter="The blocks",
    place=3,
    drive=drive_decoder,
    view=_view(drive_decoder, blocks.DecoderBlock),
    parts=("forward", "backward"),
    mistakes=around_the(
        "self-attention",
        "A = LayerNorm(Y + MaskedMultiHeadAttention(Y))",
        "self.add_norm1",
        "x, self_attention",
        "da, self_attention",
    )
    + around_the(
        "cross-attention",
        "B = LayerNorm(A + MultiHeadAttention(A, C))",
        "self.add_norm2",
        "a, cross_attention",
        "db, cross_attention",
        NO_DMEMORY,
    )
    + around_the(
        "feed-forward",
        "O = LayerNorm(B + FFN(B))",
        "self.add_norm3",
        "b, self.feed_forward",
        "dout, self.feed_forward.backward",
    )
    + """
- first norm used for all:
    in DecoderBlock.forward: self.add_norm2 -> self.add_norm1
    in DecoderBlock.forward: self.add_norm3 -> self.add_norm1
    in DecoderBlock.backward: self.add_norm2 -> self.add_norm1
    in DecoderBlock.backward: self.add_norm3 -> self.add_norm1
  One LayerNorm is used for every sub-layer. Each Add & Norm has parameters of its own: γ and β of the others are never
  used, and what the first keeps for its backward is overwritten.
- norms in the wrong order:
    in DecoderBlock.forward: self.add_norm1 -> self.add_norm3
    in DecoderBlock.forward: self.add_norm3 -> self.add_norm1
    in DecoderBlock.backward: self.add_norm1 -> self.add_norm3
    in DecoderBlock.backward: self.add_norm3 -> self.add_norm1
  The LayerNorms are in the wrong order: the first sub-layer uses that of the last.
"""
    + CLEARED.replace("FIRST", "db = self")
    + """
- the two masks swapped:
    self.self_attention(x, mask=mask -> self.self_attention(x, mask=memory_mask
    self.cross_attention(a, memory, memory_mask -> self.cross_attention(a, memory, mask
  The masks are swapped: `mask`, (B, H, T, T), belongs to the self-attention, `memory_mask`, (B, H, T, S), to the
  cross-attention.
- caches ignored:  self.self_attention(x, mask=mask, cache=cache[0]) -> self.self_attention(x, mask=mask)
  `cache` is not used in the self-attention. During decoding x is only the newest token: hand its first part to the
  self-attention, which has the keys and values of the earlier ones.
- mask ignored:  self.self_attention(x, mask=mask -> self.self_attention(x
  `mask` is not handed to the self-attention: every place of the target sees the future, and the model copies the token
  that it has to predict.
- memory_mask ignored:  self.cross_attention(a, memory, memory_mask -> self.cross_attention(a, memory
  `memory_mask` is not handed to the cross-attention: the target looks at the padding of the source.
- mask in both attentions:  self.cross_attention(a, memory, memory_mask -> self.cross_attention(a, memory, mask
  `mask` is used in the cross-attention too. The source is known as a whole, so no future is hidden in it. The
  cross-attention takes `memory_mask`.
"""
    + SELF_ATTENTION_MISTAKES.replace("self.attention", "self.self_attention")
    + """
- no norm at all:
    inner = self.norm(x) if self.norm_first else x -> inner = x
    return total if self.norm_first else self.norm(total) -> return total
  The LayerNorms are missing: each of the three sub-layers has one, LayerNorm(x + sublayer(x)).
- no residual at all:  total = x + out -> total = out
  The residual connections are missing: each of the three sub-layers adds its input to its output, x + sublayer(x).
- no residual at all in backward:  return dtotal + dx -> return dx
  The residual paths are missing in backward: each sum hands its gradient to both terms, so each sub-layer's part is the
  gradient of the sum plus what the sub-layer's backward returns.
- second norm used twice:
    in DecoderBlock.forward: self.add_norm3 -> self.add_norm2
    in DecoderBlock.backward: self.add_norm3 -> self.add_norm2
  The LayerNorm of the cross-attention is used for the feed-forward sub-layer too, which has its own, the third.
- masks inverted:
    def self_attention(x): ->
        if mask is not None:
            mask, memory_mask = ~mask, ~memory_mask
        def self_attention(x):
  The masks are inverted, ~mask. True has to mean hidden; here it means seen.
- self-attention over the memory:
    self.self_attention(x, mask=mask -> self.self_attention(x, memory, memory_mask
  The first attention looks at the memory. It is self-attention: queries, keys and values all come from x. Only the
  second attention reads the memory.
- one attention used for both:
    self.cross_attention(a, memory, memory_mask -> self.self_attention(a, memory, memory_mask
  The self-attention is used a second time as the cross-attention. The two have weights of their own:
  self.self_attention and self.cross_attention.
- cross-attention without memory:  self.cross_attention(a, memory, memory_mask -> self.cross_attention(a, mask=mask
  The cross-attention is not given the memory and is a second self-attention: the encoder's output is never read. Its
  keys and values must come from the memory.
- query and memory swapped:
    self.cross_attention(a, memory, memory_mask -> self.cross_attention(memory, a, memory_mask
  Query and memory are swapped in the cross-attention: the queries come from the memory, keys and values from the
  target. The target asks (queries), the encoder's output answers (keys and values).
- query of the cross-attention is the block's input:
    self.cross_attention(a, memory, memory_mask -> self.cross_attention(x, memory, memory_mask
  The queries of the cross-attention come from the block's input. They must come from A, the result of the
  self-attention sub-layer.
- cross-attention before self-attention:
    self.add_norm1(x, self_attention) -> self.add_norm1(x, cross_attention)
    self.add_norm2(a, cross_attention) -> self.add_norm2(a, self_attention)
  The sub-layers are in the wrong order: cross-attention comes before self-attention. It is self-attention,
  cross-attention, feed-forward.
- feed-forward before cross-attention:
    self.add_norm2(a, cross_attention) -> self.add_norm2(a, self.feed_forward)
    self.add_norm3(b, self.feed_forward) -> self.add_norm3(b, cross_attention)
  The sub-layers are in the wrong order: the feed-forward network comes before cross-attention. It is self-attention,
  cross-attention, feed-forward.
- attentions side by side:  b = self.add_norm2(a, cross_attention) -> b = a + self.add_norm2(x, cross_attention)
  Both attentions read the block's input, side by side, and their results are added. They come one after the other: the
  cross-attention's queries and residual path are A, the result of the self-attention.
- memory normalised in pre-norm:
    return self.cross_attention(a, memory, memory_mask, cache=cache[1]) ->
        keys = self.add_norm2.norm(memory) if self.add_norm2.norm_first else memory
        return self.cross_attention(a, keys, memory_mask, cache=cache[1])
  With norm_first the memory goes through the LayerNorm of the cross-attention too. It normalises the queries' input
  alone: the memory is used as it is.
- no cross-attention:  b = self.add_norm2(a, cross_attention) -> b = a
  The cross-attention sub-layer is missing: the encoder's output is never read.
- no self-attention:  a = self.add_norm1(x, self_attention) -> a = x
  The masked self-attention sub-layer is missing: places of the target do not see each other.
- no feed-forward:  return self.add_norm3(b, self.feed_forward) -> return b
  The feed-forward sub-layer is missing: the block ends after the cross-attention.
- residual of the block's input around the cross-attention:
    self.add_norm2(a, cross_attention) -> with_residual(x, self.add_norm2, a, cross_attention)
  The residual path around the cross-attention starts at the block's input. It must carry this sub-layer's own input, A
  + MultiHeadAttention(A, C).
- residual of the memory:
    self.add_norm2(a, cross_attention) -> with_residual(memory, self.add_norm2, a, cross_attention)
  The residual path around the cross-attention carries the memory. It must carry the sub-layer's own input, the
  target's: A + MultiHeadAttention(A, C).
- residual of the block's input around the feed-forward:
    self.add_norm3(b, self.feed_forward) -> with_residual(x, self.add_norm3, b, self.feed_forward)
  The residual path around the feed-forward network starts at the block's input. It must carry this sub-layer's own
  input, B + FFN(B).
- feed-forward of the self-attention's result:
    self.add_norm3(b, self.feed_forward) -> self.add_norm3(b, lambda b: self.feed_forward(a))
  The feed-forward network is given A, the result of the self-attention. Its input is B, the result of the
  cross-attention: B + FFN(B).
- pair of the self-attention not unpacked:  self.self_attention.backward(d)[0] -> self.self_attention.backward(d)
  MultiHeadAttention.backward returns a pair, dx and dmemory (None for self-attention). Here the pair as a whole is used
  as if it were the gradient: take its first part, [0].
- cross-attention's backward run twice:  return da -> self.cross_attention.backward(d); return da
  The cross-attention's backward is run twice, once for each gradient. Each run adds to the gradients of its weights,
  which are now doubled. Call it once and unpack the pair.
- dmemory from a second run with dA:
    return dx, dmemory -> dmemory = self.cross_attention.backward(da)[1]; return dx, dmemory
  The cross-attention's backward is run a second time, for dmemory, with the gradient of A that the first run led to.
  Both gradients come from one call, with one dout: call it once and unpack the pair. Each run adds to the gradients of
  its weights, too.
- gradients of query and memory swapped:  da, dmemory = self -> dmemory, da = self
  The two gradients of the cross-attention are swapped: its backward returns first that of its input, which goes on to
  the self-attention, then that of the memory.
- gradient of the memory added to dx:  return da -> return da + dmemory
  The memory's gradient is added to the target's: in the cross-attention keys and values came from the memory, so their
  gradient is dmemory alone and not a part of dx.
- residual added to the memory's gradient:  return da -> dmemory = dmemory + d; return da
  The residual path's gradient is added to dmemory. The memory has no residual path: it enters as keys and values alone.
- gradient of the memory not returned:  return dx, dmemory -> return dx, None
  backward does not return dmemory, or returns None for it. The encoder learns through it alone: return dx and the
  second gradient of the cross-attention's backward.
- gradient of the memory is zeros:  return dx, dmemory -> return dx, np.zeros_like(dmemory)
  dmemory is zeros: nothing would reach the encoder. It is the second gradient that the cross-attention's backward
  returns.
- dmemory is dx once more:  return dx, dmemory -> return dx, dx
  dx is returned in the place of dmemory. dmemory is the second gradient of the cross-attention's backward.
- dmemory before dx:  return dx, dmemory -> return dmemory, dx
  The two gradients are returned in the wrong order: it is dx, then dmemory.
- backward in the order of the forward:
    self.add_norm3.backward(dout, self.feed_forward.backward) -> self.add_norm1.backward(dout, self_attention)
    self.add_norm1.backward(da, self_attention) -> self.add_norm3.backward(da, self.feed_forward.backward)
  backward goes through the sub-layers in the order of the forward, self-attention first. It must go from the end to the
  start: feed-forward, cross-attention, self-attention.
- dout for each sub-layer:
    self.add_norm2.backward(db -> self.add_norm2.backward(dout
    self.add_norm1.backward(da -> self.add_norm1.backward(dout
  Each sub-layer's part of backward starts from dout. It must start from what the part after it returned: feed-forward
  from dout, cross-attention from the gradient of B, self-attention from that of A.
- gradient of B for the self-attention too:  self.add_norm1.backward(da -> self.add_norm1.backward(db
  The self-attention's part of backward starts from the gradient of B, as that of the cross-attention does. It must
  start from what the cross-attention's part returned, the gradient of A.
"""
    + PATH_MISTAKES,
)

EXERCISES = [ADD_NORM, ENCODER_BLOCK, DECODER_BLOCK]
