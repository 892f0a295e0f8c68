"""Add & Norm, the encoder block and the decoder block: classes of which the student writes forward and backward."""

from inspect import Parameter as Argument
from inspect import signature

import numpy as np

from ...layers.blocks import AddNorm, DecoderBlock, EncoderBlock
from ...masks import causal_mask, padding_mask
from ...support.checks import trusting
from ..exercise import Case, Exercise, Result
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
    return padding_mask(np.arange(length) < (length - hidden)[:, None], False)


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


# --- one sub-layer with residual path, norm and dropout, right or wrong ----------------------------------------------


class _Path:
    """What is around one sub-layer, done again without AddNorm. `around`: what the names of mistakes in it end with."""

    def __init__(self, made, norm, dropout, norm_first, around="", before=""):
        self.made, self.norm, self.dropout = made, norm, dropout
        self.around, self.before = around, before
        self.norm_first = norm_first
        if made("norm_first ignored"):
            self.norm_first = False
        if made("always norm first"):
            self.norm_first = True
        if made("norm_first the wrong way round"):
            self.norm_first = not norm_first

    def forward(self, x, sublayer, residual=None):
        made = self.made
        norm = (lambda x: x) if made(f"no norm{self.around}") or made("no norm at all") else self.norm
        dropout = (lambda x: x) if made("dropout forgotten") else self.dropout
        residual = x if residual is None else residual
        if self.norm_first:
            inner = norm(x)
            out = sublayer(inner)
            if made("residual from behind the norm"):
                residual = inner
            if made("norm behind the sub-layer"):
                out = norm(sublayer(x))
        else:
            out = sublayer(x)
            if made("norm of the sub-layer alone"):
                out = norm(out)
        if made("residual normalised, the sub-layer's input not"):
            return norm(residual) + dropout(sublayer(x))
        if made("norm of each summand"):
            return norm(residual) + norm(dropout(out))
        if made(f"no residual{self.around}") or made("no residual at all"):
            residual = 0
        if made("sub-layer's output subtracted"):
            out = -out
        if made("residual added twice") or (self.around and made(f"residual added twice{self.around}")):
            residual = 2 * residual
        if made("product instead of sum"):
            total = residual * dropout(out)
        elif made(f"input overwritten by +={self.around}"):
            x += dropout(out)
            total = x
        elif made("dropout of the sum"):
            total = dropout(residual + out)
        else:
            total = residual + dropout(out)
        if made("mean instead of sum"):
            total = total / 2
        if (self.norm_first and not made("norm before and after")) or made("norm of the sub-layer alone"):
            return total
        return norm(total)

    def backward(self, dout, sublayer_backward):
        made, norm = self.made, self.norm
        norm_first = self.norm_first
        if made("norm_first ignored in backward"):
            norm_first = False
        if made("always norm first in backward"):
            norm_first = True
        dropout = (lambda d: d) if made("no backward of the dropout") else self.dropout.backward
        if made("norm's backward last"):
            return norm.backward(dout + sublayer_backward(dropout(dout)))
        norm_backward = (lambda d: d) if made(f"no backward of the norm{self.around}") else norm.backward
        if made("norm's backward run twice"):
            norm.backward(dout)
        if made(f"no backward of the {self.before or 'sub-layer'}"):
            sublayer_backward = np.zeros_like
        if made("dropout's backward behind the sub-layer's"):
            before_it, after_it, dropout = dropout, sublayer_backward, lambda d: d
            sublayer_backward = lambda d: before_it(after_it(d))  # noqa: E731
        if norm_first and made("norm's backward before the sub-layer's"):
            through = sublayer_backward(norm_backward(dropout(dout)))
            residual = dout
        elif norm_first:
            through = norm_backward(sublayer_backward(dropout(dout)))
            residual = dout
        else:
            residual = norm_backward(dout)
            through = sublayer_backward(dropout(dout if made("sub-layer's backward past the norm") else residual))
            if made("residual path past the norm in backward"):
                residual = dout
        if made(f"no residual{self.around} in backward") or made("no residual at all in backward"):
            return through
        if made("sub-layer's gradient subtracted in backward"):
            return residual - through
        if made("residual counted twice in backward"):
            return 2 * residual + through
        return residual + through


_PATH_MISTAKES = {
    "norm_first ignored": (
        "norm_first is not used: with norm_first=True it still computes post-norm, LayerNorm(x + sublayer(x)). "
        "Pre-norm is x + sublayer(LayerNorm(x))."
    ),
    "always norm first": (
        "This is pre-norm, x + sublayer(LayerNorm(x)), though norm_first is False. The default is the paper's "
        "post-norm: LayerNorm(x + sublayer(x)), the norm after the residual sum."
    ),
    "norm_first the wrong way round": (
        "Pre-norm and post-norm are swapped: norm_first=True must be x + sublayer(LayerNorm(x)), norm_first=False "
        "LayerNorm(x + sublayer(x))."
    ),
    "norm of the sub-layer alone": (
        "This is x + LayerNorm(sublayer(x)): only the sub-layer's output is normalised. Post-norm normalises the sum, "
        "LayerNorm(x + sublayer(x))."
    ),
    "residual from behind the norm": (
        "With norm_first the residual path starts behind the norm: LayerNorm(x) + sublayer(LayerNorm(x)). It must "
        "carry x itself, x + sublayer(LayerNorm(x)), so that nothing is normalised on the way along the residual path."
    ),
    "norm before and after": (
        "With norm_first the sum is normalised once more: LayerNorm(x + sublayer(LayerNorm(x))). In pre-norm the norm "
        "stands before the sub-layer only."
    ),
    "residual normalised, the sub-layer's input not": (
        "This is LayerNorm(x) + sublayer(x): the residual path is normalised. Post-norm is LayerNorm(x + sublayer(x)), "
        "pre-norm x + sublayer(LayerNorm(x))."
    ),
    "norm of each summand": (
        "This is LayerNorm(x) + LayerNorm(sublayer(x)), each summand normalised on its own. Post-norm normalises the "
        "sum, LayerNorm(x + sublayer(x))."
    ),
    "sub-layer's output subtracted": (
        "The sub-layer's output is subtracted, x − sublayer(x): a wrong sign. The residual connection adds it."
    ),
    "norm behind the sub-layer": (
        "With norm_first this is x + LayerNorm(sublayer(x)): the norm stands behind the sub-layer. Pre-norm normalises "
        "the sub-layer's input, x + sublayer(LayerNorm(x))."
    ),
    "mean instead of sum": (
        "x and the sub-layer's output are averaged, (x + sublayer(x)) / 2: a factor ½ too many. The residual "
        "connection is their sum."
    ),
    "product instead of sum": (
        "x and the sub-layer's output are multiplied, x · sublayer(x). The residual connection is a sum: x + "
        "sublayer(x)."
    ),
    "sub-layer's gradient subtracted in backward": (
        "In backward the gradient that comes through the sub-layer is subtracted: a wrong sign. The two ways to x add "
        "up."
    ),
    "residual added twice": (
        "The residual x is added twice, 2x + sublayer(x): once here, and once more by hand or inside the sub-layer. "
        "Add & Norm adds it once."
    ),
    "dropout forgotten": (
        "Dropout is not used: the sub-layer's output must go through it before it is added to x, x + "
        "Dropout(sublayer(x))."
    ),
    "dropout of the sum": (
        "Dropout hits the whole sum, Dropout(x + sublayer(x)), and so the residual path too. It belongs to the "
        "sub-layer's output alone: x + Dropout(sublayer(x))."
    ),
    "norm_first ignored in backward": (
        "backward is that of post-norm also where norm_first is True. The forward was x + sublayer(LayerNorm(x)): "
        "there dout itself takes the residual path, and the norm's backward comes last on the path through the "
        "sub-layer."
    ),
    "always norm first in backward": (
        "backward is that of pre-norm though the forward was post-norm. The norm stood at the end of LayerNorm(x + "
        "sublayer(x)), so its backward comes first, and both paths get what it returns."
    ),
    "norm's backward last": (
        "The norm's backward comes last, over the sum of both paths: norm.backward(dout + sublayer_backward(dout)). In "
        "post-norm the norm is the last step of the forward, so its backward is the first; in pre-norm it is on the "
        "path through the sub-layer only, and the residual path goes around it."
    ),
    "norm's backward before the sub-layer's": (
        "With norm_first the norm's backward is run before that of the sub-layer, in the order of the forward. The "
        "forward was x + sublayer(LayerNorm(x)): the gradient comes through the sub-layer first, then through the norm."
    ),
    "dropout's backward behind the sub-layer's": (
        "The dropout's backward is run behind that of the sub-layer. Dropout was the last step of the path, "
        "Dropout(sublayer(x)), so its backward comes first: sublayer_backward(dropout.backward(…))."
    ),
    "norm's backward run twice": (
        "The norm's backward is run twice for one forward. What it returns is the same, but each run adds to the "
        "gradients of γ and β, which are now too large. Keep its result in a variable."
    ),
    "sub-layer's backward past the norm": (
        "The sub-layer's backward gets dout itself. In LayerNorm(x + sublayer(x)) the gradient reaches the sum through "
        "the norm: the sub-layer must get norm.backward(dout)."
    ),
    "residual path past the norm in backward": (
        "The residual path in backward carries dout itself, around the norm. In LayerNorm(x + sublayer(x)) the norm "
        "comes after the sum: x gets norm.backward(dout) over the residual path, not dout."
    ),
    "residual counted twice in backward": (
        "The gradient of the residual path is counted twice. x reaches the sum x + sublayer(x) in two ways, so dx is "
        "the gradient of the sum once plus what the sub-layer's backward returns."
    ),
    "no backward of the dropout": (
        "The dropout's backward is left out: where an output of the sub-layer was dropped, no gradient may pass into "
        "it. The sub-layer's backward must get dropout.backward(…) of the gradient."
    ),
    "eps not handed to the norm": "eps is not handed to the LayerNorm, which then works with its default 1e-5.",
    "gradients cleared before they are added": (
        "backward clears the gradients of the parameters, by zero_grad() or by = instead of +=. They must be added to: "
        "several backward passes may pile up before an optimizer's step."
    ),
}


def _for_the(place, formula):
    """The mistakes around one sub-layer of a block, by its name."""
    return {
        f"no residual around the {place}": (
            f"The residual connection around the {place} is missing: {formula} must add the sub-layer's input to its "
            "output, x + sublayer(x)."
        ),
        f"residual added twice around the {place}": (
            f"The residual is added twice around the {place}, 2x + {place}(x): once here, and once more by hand or "
            f"inside the sub-layer. {formula} adds it once."
        ),
        f"no norm around the {place}": (
            f"The LayerNorm that belongs to the {place} is missing: each sub-layer has one of its own, {formula}."
        ),
        f"input overwritten by += around the {place}": (
            f"x += {place}(x) writes the sum into the array that the sub-layer was given and keeps for its backward: y "
            f"is right, the gradients of its weights are not. Make a new array, x + sublayer(x)."
        ),
        f"no residual around the {place} in backward": (
            f"The residual path around the {place} is missing in backward: a sum hands its gradient to both terms, so "
            f"dx is the gradient of the sum plus what the {place}'s backward returns."
        ),
        f"no backward of the norm around the {place}": (
            f"The backward of the LayerNorm that belongs to the {place} is left out: the gradient goes past it, and "
            f"its γ and β get none."
        ),
        f"no backward of the {place}": (
            f"The {place}'s backward is not run: only the residual path hands the gradient on, and the weights of the "
            f"{place} get none."
        ),
    }


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


def _add_norm_cases(rng):
    sizes = _sizes(rng, "B T")
    sizes = {letter: sizes[letter] for letter in "BTD"}
    x, dout = rng.normal(size=(2, *sizes.values()))
    sublayer = _values(rng, [("w", (sizes["D"], sizes["D"])), ("b", (sizes["D"],))])
    values = _values(rng, _shapes(AddNorm(sizes["D"])))
    before = {name: rng.normal(size=value.shape) for name, value in values.items()}
    eps = _eps(rng)

    def case(label, **options):
        return Case(label, (x, dout), {"sublayer": sublayer, "values": values, **options}, sizes)

    return [
        case(""),
        case("norm_first=True", norm_first=True),
        case("a larger eps", eps=eps),
        case("gradients that are not 0 before", before=before),
        case("a dropout that drops nearly all", dropout=ALL_DROPPED),
        case("norm_first=True and a dropout that drops nearly all", norm_first=True, dropout=ALL_DROPPED, eps=eps),
    ]


def _drive_add_norm(
    answer, x, dout, *, sublayer, values, before=None, norm_first=False, eps=1e-5, dropout=0.0
):  # fmt: skip
    around = []

    def forward(block):
        around.append(_Tanh(sublayer["w"], sublayer["b"]))
        return block.forward(x, around[-1].forward)

    def backward(block):
        return block.backward(dout, around[-1].backward)

    options = {"dropout": dropout, "norm_first": norm_first, "eps": eps, "rng": 0, "dtype": np.float64}
    y, dx, gradients = _run(answer, (x.shape[-1],), options, values, before, forward, backward, AddNorm)
    return y, dx, around[0].dw, gradients["norm.gamma"], gradients["norm.beta"]


def _wrong_add_norm(made):
    class Answer(AddNorm):
        def __init__(self, d_model, dropout=0.0, norm_first=False, eps=1e-5, bias=True, rng=None, dtype=np.float32):
            eps = 1e-5 if made("eps not handed to the norm") else eps
            super().__init__(d_model, dropout, norm_first, eps, bias, rng, dtype)

        def _path(self):
            return _Path(made, self.norm, self.dropout, self.norm_first)

        def forward(self, x, sublayer):
            if made("sub-layer not called"):
                return self._path().forward(x, np.zeros_like)
            if made("dropout before the sub-layer"):
                plain = _Path(made, self.norm, lambda x: x, self.norm_first)
                return plain.forward(x, lambda x: sublayer(self.dropout(x)))
            if made("dropout after the norm") and not self.norm_first:
                return self.dropout(self.norm(x + sublayer(x)))
            if made("sub-layer called twice"):
                return self._path().forward(x, lambda x: sublayer(sublayer(x)))
            return self._path().forward(x, sublayer)

        def backward(self, dout, sublayer_backward):
            if made("gradients cleared before they are added"):
                self.zero_grad()
            if made("chain without the sum"):
                return sublayer_backward(self.norm.backward(dout))
            return self._path().backward(dout, sublayer_backward)

    return Answer


ADD_NORM = Exercise(
    AddNorm,
    (
        Result("y", "B T D", gradient=False),
        Result("dx", "B T D", gradient=True),
        Result("gradient of the sub-layer's weights", "D D", gradient=True),
        Result("dgamma", "D", gradient=True),
        Result("dbeta", "D", gradient=True),
    ),
    _add_norm_cases,
    {
        "no residual": (
            "The residual connection is missing: only the sub-layer's output goes on. The sum is x + sublayer(x), the "
            '"Add" of Add & Norm.'
        ),
        "no norm": "The LayerNorm is missing: this is x + sublayer(x), the Add of Add & Norm without the Norm.",
        "sub-layer not called": "The sub-layer is not called: x alone goes on, nothing is added to it.",
        "sub-layer called twice": (
            "The sub-layer is put on its own output, sublayer(sublayer(x)): it must be called once."
        ),
        "dropout before the sub-layer": (
            "Dropout hits the sub-layer's input, sublayer(Dropout(x)). It belongs to its output: Dropout(sublayer(x))."
        ),
        "dropout after the norm": (
            "Dropout comes last, Dropout(LayerNorm(x + sublayer(x))). It belongs to the sub-layer's output, before the "
            "sum: LayerNorm(x + Dropout(sublayer(x)))."
        ),
        "no residual in backward": (
            "The residual path is missing in backward: a sum hands its gradient to both terms, so dx is the gradient "
            "of the sum x + sublayer(x) itself plus what the sub-layer's backward returns."
        ),
        "no backward of the norm": (
            "The norm's backward is left out: dout goes past the LayerNorm, and γ and β get no gradient."
        ),
        "no backward of the sub-layer": (
            "The sub-layer's backward is not run: only the residual path hands the gradient on, and the sub-layer's "
            "weights get none."
        ),
        "chain without the sum": (
            "backward is sublayer_backward(norm.backward(dout)) whatever norm_first says, as if the block were a plain "
            "chain: the residual path is missing, and in pre-norm the order is wrong too."
        ),
        **_PATH_MISTAKES,
    },
    _wrong_add_norm,
    (
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
    drive=_drive_add_norm,
    parts=("forward", "backward"),
)


# --- EncoderBlock ----------------------------------------------------------------------------------------------------


def _encoder_cases(rng):
    sizes = _sizes(rng, "B T F")
    x, dout = rng.normal(size=(2, *(sizes[letter] for letter in "BTD")))
    made = sizes["D"], sizes["H"], sizes["F"]
    values = _values(rng, _shapes(EncoderBlock(*made)))
    before = {name: rng.normal(size=value.shape) for name, value in values.items()}
    padding = _padding(rng, sizes["B"], sizes["T"])

    def case(label, mask=None, **options):
        return Case(label, (x, dout, mask), {"sizes": made, "values": values, **options}, sizes)

    return [
        case("", padding),
        case("norm_first=True", causal_mask(sizes["T"]), norm_first=True),
        case("a larger eps, no mask and gradients that are not 0 before", eps=_eps(rng), before=before),
        case("a dropout that drops nearly all", padding, dropout=ALL_DROPPED),
    ]


def _drive_encoder(
    answer, x, dout, mask=None, *, sizes, values, before=None, norm_first=False, eps=1e-5, dropout=0.0
):  # fmt: skip
    if dropout and not _takes(answer, "dropout"):
        return NOT_ASKED
    masks = () if mask is None else (mask,)
    options = {"dropout": dropout, "norm_first": norm_first, "eps": eps, "rng": 0, "dtype": np.float64}
    y, dx, gradients = _run(
        answer, sizes, options, values, before,
        lambda block: block.forward(x, *masks), lambda block: block.backward(dout), EncoderBlock,
    )  # fmt: skip
    return y, dx, *(_of(part, gradients) for part in ("attention", "add_norm1", "feed_forward", "add_norm2"))


class _Quick:
    """A wrong variant: there are many, and their shapes need no check."""

    def __init_subclass__(cls):
        for name in ("forward", "backward"):
            setattr(cls, name, _unchecked(cls.__dict__[name]))


def _unchecked(method):
    def run(*arguments):
        with trusting():
            return method(*arguments)

    return run


def _paths(made, block, places):
    """The sub-layers' surroundings, in order."""
    add_norms = [getattr(block, f"add_norm{i + 1}") for i in range(len(places))]
    norms = [add_norm.norm for add_norm in add_norms]
    if made("first norm used for all"):
        norms = [norms[0]] * len(norms)
    if made("second norm used twice"):
        norms[-1] = norms[-2]
    if made("norms in the wrong order"):
        norms = norms[::-1]
    return [
        _Path(made, norm, add_norm.dropout, add_norm.norm_first, f" around the {place}", place)
        for norm, add_norm, place in zip(norms, add_norms, places, strict=True)
    ]


def _wrong_encoder(made):
    class Answer(_Quick, EncoderBlock):
        def __init__(self, d_model, num_heads, d_ff, **options):
            if made("eps not handed to the norm"):
                options["eps"] = 1e-5
            EncoderBlock.__init__(self, d_model, num_heads, d_ff, **options)

        def forward(self, x, mask=None):
            first, second = _paths(made, self, ("attention", "feed-forward"))
            if made("mask ignored"):
                mask = None
            if made("mask inverted") and mask is not None:
                mask = ~mask
            attention, feed_forward = (lambda x: self.attention(x, None, mask)), self.feed_forward
            if made("mask in the place of the memory"):
                attention = lambda x: self.attention(x, mask)  # noqa: E731
            if made("x handed in as its own memory"):
                attention = lambda x: self.attention(x, x, mask)  # noqa: E731
            if made("feed-forward before attention"):
                return second.forward(first.forward(x, feed_forward), attention)
            if made("no attention"):
                return second.forward(x, feed_forward)
            a = first.forward(x, attention)
            if made("no feed-forward"):
                return a
            if made("feed-forward of the block's input"):
                return second.forward(a, lambda a: feed_forward(x))
            if made("residual of the block's input"):
                return second.forward(a, feed_forward, residual=x)
            if made("sub-layers side by side"):
                return second.forward(x, feed_forward, residual=a)
            return second.forward(a, feed_forward)

        def backward(self, dout):
            if made("gradients cleared before they are added"):
                self.zero_grad()
            first, second = _paths(made, self, ("attention", "feed-forward"))
            if made("norms in the wrong order in backward"):
                first.norm, second.norm = second.norm, first.norm
            if made("pair of the attention not unpacked"):
                attention = self.attention.backward
            else:
                attention = lambda d: self.attention.backward(d)[0]  # noqa: E731
            if made("backward in the order of the forward"):
                return second.backward(first.backward(dout, attention), self.feed_forward.backward)
            da = second.backward(dout, self.feed_forward.backward)
            if made("dout for both sub-layers"):
                return first.backward(dout, attention)
            return first.backward(da, attention)

    return Answer


_BLOCK_MISTAKES = {
    "first norm used for all": (
        "One LayerNorm is used for every sub-layer. Each Add & Norm has parameters of its own: γ and β of the others "
        "are never used, and what the first keeps for its backward is overwritten."
    ),
    "norms in the wrong order": "The LayerNorms are in the wrong order: the first sub-layer uses that of the last.",
    "gradients cleared before they are added": _PATH_MISTAKES["gradients cleared before they are added"],
}

ENCODER_BLOCK = Exercise(
    EncoderBlock,
    (
        Result("y", "B T D", gradient=False),
        Result("dx", "B T D", gradient=True),
        Result("gradients of the attention", gradient=True),
        Result("gradients of norm 1", gradient=True),
        Result("gradients of the feed-forward network", gradient=True),
        Result("gradients of norm 2", gradient=True),
    ),
    _encoder_cases,
    {
        **_for_the("attention", "A = LayerNorm(X + MultiHeadAttention(X))"),
        **_for_the("feed-forward", "O = LayerNorm(A + FFN(A))"),
        **_BLOCK_MISTAKES,
        "mask ignored": "The mask is not handed to the attention: padding and the future are looked at.",
        "mask in the place of the memory": (
            "The mask is handed to the attention in the place of the memory, its second argument: "
            "MultiHeadAttention(x, memory=None, mask=None). Say mask=mask."
        ),
        "x handed in as its own memory": (
            "The self-attention is given x as its memory too. y is the same, but its backward then returns the "
            "gradient of x in two parts, through the queries and through keys and values, of which the second is "
            "dropped. Without a memory it returns their sum."
        ),
        "mask inverted": "The mask is inverted, ~mask: True hides, here it is what is seen.",
        "feed-forward before attention": (
            "The sub-layers are in the wrong order: the feed-forward network comes first, then attention. It must be "
            "attention first, then feed-forward."
        ),
        "no attention": "The attention sub-layer is missing: this is LayerNorm(X + FFN(X)) alone.",
        "no feed-forward": (
            "The feed-forward sub-layer is missing: it ends after A = LayerNorm(X + MultiHeadAttention(X))."
        ),
        "feed-forward of the block's input": (
            "The feed-forward network is given the block's input X: A + FFN(X). Its input is the result of the first "
            "sub-layer: A + FFN(A)."
        ),
        "residual of the block's input": (
            "The second residual path starts at the block's input X: X + FFN(A). It must carry the feed-forward "
            "sub-layer's own input: A + FFN(A)."
        ),
        "sub-layers side by side": (
            "Attention and feed-forward both read the block's input, side by side. They come one after the other: the "
            "feed-forward network, and its norm in pre-norm, must read A, the result of the first sub-layer."
        ),
        "norms in the wrong order in backward": (
            "backward uses the LayerNorms in the order of the forward: the norm of the attention for the feed-forward "
            "sub-layer and the other way round. Each belongs to its own sub-layer."
        ),
        "pair of the attention not unpacked": (
            "MultiHeadAttention.backward returns a pair, dx and dmemory (None for self-attention). Here the pair as a "
            "whole is used as if it were the gradient: take its first part, [0]."
        ),
        "backward in the order of the forward": (
            "backward goes through the sub-layers in the order of the forward, attention first. It must go from the "
            "end to the start: feed-forward first, then attention."
        ),
        "dout for both sub-layers": (
            "The attention's part of backward starts from dout again. It must start from what the feed-forward "
            "sub-layer's backward returned, the gradient of A."
        ),
        **_PATH_MISTAKES,
    },
    _wrong_encoder,
    (
        "Which two sub-layers does an encoder block have, and what is around each of them?",
        "A = LN(X + MHA(X)), O = LN(A + FFN(A));   dA = dsum₂ + FFN.backward(dsum₂), dsum₂ = LN₂.backward(dout), and "
        "the same once more for X",
        "notebook 05, step 5, for forward; notebook 06, step 9, for backward. attention.backward returns a pair.",
    ),
    difficulty=2,
    section="§8.1",
    chapter="The blocks",
    place=2,
    drive=_drive_encoder,
    view=_view(_drive_encoder, EncoderBlock),
    parts=("forward", "backward"),
)

# --- DecoderBlock ----------------------------------------------------------------------------------------------------

_DECODER_PLACES = ("self-attention", "cross-attention", "feed-forward")


def _decoder_cases(rng):
    sizes = _sizes(rng, "B T S F")
    made = sizes["D"], sizes["H"], sizes["F"]
    values = _values(rng, _shapes(DecoderBlock(*made)))
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
        case("norm_first=True", masks=masks, norm_first=True),
        case("a larger eps, no masks and gradients that are not 0 before", eps=_eps(rng), before=before),
        case("a dropout that drops nearly all", masks=masks, dropout=ALL_DROPPED),
    ]


def _drive_decoder(
    answer, x, memory, dout, mask=None, memory_mask=None, *,
    sizes, values, before=None, norm_first=False, eps=1e-5, dropout=0.0,
):  # fmt: skip
    if dropout and not _takes(answer, "dropout"):
        return NOT_ASKED
    masks = () if mask is None else (mask, memory_mask)
    options = {"dropout": dropout, "norm_first": norm_first, "eps": eps, "rng": 0, "dtype": np.float64}
    y, back, gradients = _run(
        answer, sizes, options, values, before,
        lambda block: block.forward(x, memory, *masks), lambda block: block.backward(dout), DecoderBlock,
    )  # fmt: skip
    dx, dmemory = back if isinstance(back, tuple | list) and len(back) == 2 else (back, None)
    if dmemory is None:
        dmemory = np.zeros(0)
    parts = ("self_attention", "add_norm1", "cross_attention", "add_norm2", "feed_forward", "add_norm3")
    return y, dx, dmemory, *(_of(part, gradients) for part in parts)


def _wrong_decoder(made):
    class Answer(_Quick, DecoderBlock):
        def __init__(self, d_model, num_heads, d_ff, **options):
            if made("eps not handed to the norm"):
                options["eps"] = 1e-5
            DecoderBlock.__init__(self, d_model, num_heads, d_ff, **options)

        def forward(self, x, memory, mask=None, memory_mask=None):
            if made("the two masks swapped"):
                mask, memory_mask = memory_mask, mask
            if made("mask ignored"):
                mask = None
            if made("memory_mask ignored"):
                memory_mask = None
            if made("mask in both attentions"):
                memory_mask = mask
            if made("masks inverted") and mask is not None:
                mask, memory_mask = ~mask, ~memory_mask
            first, second, third = _paths(made, self, _DECODER_PLACES)

            def self_attention(x):
                if made("self-attention over the memory"):
                    return self.self_attention(x, memory, memory_mask)
                if made("mask in the place of the memory"):
                    return self.self_attention(x, mask)
                return self.self_attention(x, x if made("x handed in as its own memory") else None, mask)

            def cross_attention(a):
                attention = self.self_attention if made("one attention used for both") else self.cross_attention
                if made("cross-attention without memory"):
                    return attention(a, None, mask)
                if made("query and memory swapped"):
                    return attention(memory, a, memory_mask)
                if made("query of the cross-attention is the block's input"):
                    return attention(x, memory, memory_mask)
                if made("memory normalised in pre-norm") and second.norm_first:
                    return attention(a, second.norm(memory), memory_mask)
                return attention(a, memory, memory_mask)

            if made("cross-attention before self-attention"):
                a = first.forward(x, cross_attention)
                b = second.forward(a, self_attention)
            elif made("feed-forward before cross-attention"):
                a = first.forward(x, self_attention)
                return third.forward(second.forward(a, self.feed_forward), cross_attention)
            elif made("no cross-attention"):
                b = first.forward(x, self_attention)
            elif made("no self-attention"):
                b = second.forward(x, cross_attention)
            else:
                a = first.forward(x, self_attention)
                residual = x if made("residual of the block's input around the cross-attention") else a
                if made("residual of the memory"):
                    residual = memory
                b = second.forward(a, cross_attention, residual)
            if made("no feed-forward"):
                return b
            if made("attentions side by side"):
                return third.forward(a + second.forward(x, cross_attention), self.feed_forward)
            if made("residual of the block's input around the feed-forward"):
                return third.forward(b, self.feed_forward, x)
            if made("feed-forward of the self-attention's result"):
                return third.forward(b, lambda b: self.feed_forward(a))
            return third.forward(b, self.feed_forward)

        def backward(self, dout):
            if made("gradients cleared before they are added"):
                self.zero_grad()
            first, second, third = _paths(made, self, _DECODER_PLACES)
            found = []

            def self_attention(d):
                if made("pair of the self-attention not unpacked"):
                    return self.self_attention.backward(d)
                return self.self_attention.backward(d)[0]

            def cross_attention(d):
                da, dmemory = self.cross_attention.backward(d)
                if made("cross-attention's backward run twice"):
                    self.cross_attention.backward(d)
                if made("gradients of query and memory swapped"):
                    da, dmemory = dmemory, da
                found.append(dmemory)
                if made("gradient of the memory added to dx"):
                    return da + dmemory
                if made("residual added to the memory's gradient"):
                    found[0] = dmemory + d
                return da

            if made("backward in the order of the forward"):
                d = second.backward(first.backward(dout, self_attention), cross_attention)
                return third.backward(d, self.feed_forward.backward), found[0]
            db = third.backward(dout, self.feed_forward.backward)
            if made("no backward of the cross-attention"):
                found.append(np.zeros_like(self.cross_attention.kept("memory")))
            da = second.backward(dout if made("dout for each sub-layer") else db, cross_attention)
            if made("gradient of B for the self-attention too"):
                da = db
            dx = first.backward(dout if made("dout for each sub-layer") else da, self_attention)
            dmemory = found[0]
            if made("dmemory from a second run with dA"):
                dmemory = self.cross_attention.backward(da)[1]
            if made("gradient of the memory not returned"):
                return dx, None
            if made("gradient of the memory is zeros"):
                dmemory = np.zeros_like(dmemory)
            if made("dmemory is dx once more"):
                dmemory = dx
            return (dmemory, dx) if made("dmemory before dx") else (dx, dmemory)

    return Answer


DECODER_BLOCK = Exercise(
    DecoderBlock,
    (
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
    _decoder_cases,
    {
        **_for_the("self-attention", "A = LayerNorm(Y + MaskedMultiHeadAttention(Y))"),
        **_for_the("cross-attention", "B = LayerNorm(A + MultiHeadAttention(A, C))"),
        **_for_the("feed-forward", "O = LayerNorm(B + FFN(B))"),
        **_BLOCK_MISTAKES,
        "the two masks swapped": (
            "The masks are swapped: `mask`, (B, H, T, T), belongs to the self-attention, `memory_mask`, (B, H, T, S), "
            "to the cross-attention."
        ),
        "mask ignored": (
            "`mask` is not handed to the self-attention: every place of the target sees the future, and the model "
            "copies what it is asked for."
        ),
        "memory_mask ignored": (
            "`memory_mask` is not handed to the cross-attention: the target looks at the padding of the source."
        ),
        "mask in both attentions": (
            "`mask` is used in the cross-attention too. The source is known as a whole, so no future is hidden in it; "
            "what is hidden there is `memory_mask`."
        ),
        "mask in the place of the memory": (
            "The mask is handed to the attention in the place of the memory, its second argument: "
            "MultiHeadAttention(x, memory=None, mask=None). Say mask=mask."
        ),
        "x handed in as its own memory": (
            "The self-attention is given x as its memory too. y is the same, but its backward then returns the "
            "gradient of x in two parts, through the queries and through keys and values, of which the second is "
            "dropped. Without a memory it returns their sum."
        ),
        "no norm at all": (
            "The LayerNorms are missing: each of the three sub-layers has one, LayerNorm(x + sublayer(x))."
        ),
        "no residual at all": (
            "The residual connections are missing: each of the three sub-layers adds its input to its output, x + "
            "sublayer(x)."
        ),
        "no residual at all in backward": (
            "The residual paths are missing in backward: each sum hands its gradient to both terms, so each "
            "sub-layer's part is the gradient of the sum plus what the sub-layer's backward returns."
        ),
        "second norm used twice": (
            "The LayerNorm of the cross-attention is used for the feed-forward sub-layer too. That one has its own, "
            "the third."
        ),
        "masks inverted": "The masks are inverted, ~mask: True hides, here it is what is seen.",
        "self-attention over the memory": (
            "The first attention looks at the memory. It is self-attention: queries, keys and values all come from x. "
            "Only the second attention reads the memory."
        ),
        "one attention used for both": (
            "The self-attention is used a second time as the cross-attention. The two have weights of their own: "
            "self.self_attention and self.cross_attention."
        ),
        "cross-attention without memory": (
            "The cross-attention is not given the memory and is a second self-attention: the encoder's output is never "
            "read. Its keys and values must come from the memory."
        ),
        "query and memory swapped": (
            "Query and memory are swapped in the cross-attention: the queries come from the memory, keys and values "
            "from the target. The target asks (queries), the encoder's output answers (keys and values)."
        ),
        "query of the cross-attention is the block's input": (
            "The queries of the cross-attention come from the block's input. They must come from A, the result of the "
            "self-attention sub-layer."
        ),
        "cross-attention before self-attention": (
            "The sub-layers are in the wrong order: cross-attention comes before self-attention. It is self-attention, "
            "cross-attention, feed-forward."
        ),
        "feed-forward before cross-attention": (
            "The sub-layers are in the wrong order: the feed-forward network comes before cross-attention. It is "
            "self-attention, cross-attention, feed-forward."
        ),
        "attentions side by side": (
            "Both attentions read the block's input, side by side, and their results are added. They come one after "
            "the other: the cross-attention's queries and residual path are A, the result of the self-attention."
        ),
        "memory normalised in pre-norm": (
            "With norm_first the memory goes through the LayerNorm of the cross-attention too. It normalises the "
            "queries' input alone: the memory is used as it is."
        ),
        "no cross-attention": "The cross-attention sub-layer is missing: the encoder's output is never read.",
        "no self-attention": (
            "The masked self-attention sub-layer is missing: places of the target do not see each other."
        ),
        "no feed-forward": "The feed-forward sub-layer is missing: the block ends after the cross-attention.",
        "residual of the block's input around the cross-attention": (
            "The residual path around the cross-attention starts at the block's input. It must carry this sub-layer's "
            "own input, A + MultiHeadAttention(A, C)."
        ),
        "residual of the memory": (
            "The residual path around the cross-attention carries the memory. It must carry the sub-layer's own input, "
            "the target's: A + MultiHeadAttention(A, C)."
        ),
        "residual of the block's input around the feed-forward": (
            "The residual path around the feed-forward network starts at the block's input. It must carry this "
            "sub-layer's own input, B + FFN(B)."
        ),
        "feed-forward of the self-attention's result": (
            "The feed-forward network is given A, the result of the self-attention. Its input is B, the result of the "
            "cross-attention: B + FFN(B)."
        ),
        "pair of the self-attention not unpacked": (
            "MultiHeadAttention.backward returns a pair, dx and dmemory (None for self-attention). Here the pair as a "
            "whole is used as if it were the gradient: take its first part, [0]."
        ),
        "cross-attention's backward run twice": (
            "The cross-attention's backward is run twice, once for each gradient. Each run adds to the gradients of "
            "its weights, which are now doubled. Call it once and unpack the pair."
        ),
        "dmemory from a second run with dA": (
            "The cross-attention's backward is run a second time, for dmemory, with the gradient of A that the first "
            "run led to. Both gradients come from one call, with one dout: call it once and unpack the pair. Each run "
            "adds to the gradients of its weights, too."
        ),
        "gradients of query and memory swapped": (
            "The two gradients of the cross-attention are swapped: its backward returns first that of its input, which "
            "goes on to the self-attention, then that of the memory."
        ),
        "gradient of the memory added to dx": (
            "The memory's gradient is added to the target's: in the cross-attention keys and values came from the "
            "memory, so their gradient is dmemory alone and not a part of dx."
        ),
        "residual added to the memory's gradient": (
            "The residual path's gradient is added to dmemory. The memory has no residual path: it enters as keys and "
            "values alone."
        ),
        "gradient of the memory not returned": (
            "backward does not return dmemory, or returns None for it. The encoder learns through it alone: return dx "
            "and the second gradient of the cross-attention's backward."
        ),
        "gradient of the memory is zeros": (
            "dmemory is zeros: nothing would reach the encoder. It is the second gradient that the cross-attention's "
            "backward returns."
        ),
        "dmemory is dx once more": (
            "dx is returned in the place of dmemory. dmemory is the second gradient of the cross-attention's backward."
        ),
        "dmemory before dx": "The two gradients are returned in the wrong order: it is dx, then dmemory.",
        "backward in the order of the forward": (
            "backward goes through the sub-layers in the order of the forward, self-attention first. It must go from "
            "the end to the start: feed-forward, cross-attention, self-attention."
        ),
        "dout for each sub-layer": (
            "Each sub-layer's part of backward starts from dout. It must start from what the part after it returned: "
            "feed-forward from dout, cross-attention from the gradient of B, self-attention from that of A."
        ),
        "gradient of B for the self-attention too": (
            "The self-attention's part of backward starts from the gradient of B, as that of the cross-attention does. "
            "It must start from what the cross-attention's part returned, the gradient of A."
        ),
        **_PATH_MISTAKES,
    },
    _wrong_decoder,
    (
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
    drive=_drive_decoder,
    view=_view(_drive_decoder, DecoderBlock),
    parts=("forward", "backward"),
)

EXERCISES = [ADD_NORM, ENCODER_BLOCK, DECODER_BLOCK]
