"""The model in the living page and the one in NumPy, side by side: every intermediate and every gradient."""

import base64
from contextlib import ExitStack

import numpy as np
from browsing import LivePage

from transformer_np import functional as F
from transformer_np.models import Bert, Transformer

PACKED = """
const bytes = ({ buffer }) => {
  let text = "";
  for (let at = 0; at < buffer.byteLength; at += 8192)
    text += String.fromCharCode(...new Uint8Array(buffer.slice(at, at + 8192)));
  return btoa(text);
};
const packed = (found) => Object.fromEntries(Object.entries(found).map(([name, value]) => {
  const parts = [value].flat(), all = new Float64Array(parts.length * parts[0].rows * parts[0].columns);
  parts.forEach(({ data }, i) => all.set(data, i * data.length));
  return [name, [value.length ? [parts.length] : [], parts[0].rows, parts[0].columns, bytes(all)]];
}));
const [src, given, changes, targets, known] = arguments;
const encoded = live.model.encode?.(src, changes);
const run = (ids, before) => ({ src, given: ids, changes, encoded, weights: live.model.weights,
                                values: live.model.forward(encoded, ids, changes, before) });
const found = run(given, known ? run(given.slice(0, known)) : null);
"""
INTERMEDIATES = PACKED + "return packed(found.values);"
GRADIENTS = (
    PACKED
    + """
const { loss, dlogits } = live.crossEntropy(found.values["output.out"], targets);
const { gradients, weights } = live.backward(live.model, found, dlogits);
return [loss, packed(gradients), packed(weights)];
"""
)


def numbers_in_page(browser, source, given, changes=(), known=0):
    """{name: array} of every intermediate that the page's model computes; the heads are the first axis. known: so many
    tokens are computed before, and then the rest"""
    return unpacked(browser.execute_script(INTERMEDIATES, source, given, list(changes), None, known))


def unpacked(found):
    return {
        name: np.frombuffer(base64.b64decode(text)).reshape(*heads, rows, columns)
        for name, (heads, rows, columns, text) in found.items()
    }


def logits_of(model, *ids):
    """The logits (1, T, V) of one source and one target, or of one text. In a text of a Bert, the first [SEP] ends the
    first of two segments."""
    if not isinstance(model, Bert):
        return model(*(np.array([row]) for row in ids))
    [row] = ids
    if model.classifier:
        return model.classify(np.array([row]))
    segments = np.cumsum([i == SEPARATOR for i in row]) - [i == SEPARATOR for i in row] > 0
    segments = segments.astype(int)[None] if model.config.type_vocab_size > 1 else None
    none = np.zeros((1, len(row)), bool)
    ask = model.mlm_logits if model.mlm_head else model
    return ask(np.array([row]), padding=none, segments=segments)


SEPARATOR = 3  # [SEP] of the tests' tokenizers


def numbers_in_numpy(model, *ids):
    """{name: array} of every intermediate, and every module's output under its name with ".out"."""
    outputs = {}

    def noting(path):
        def note(out):
            outputs[f"{path}.out"] = out.copy()  # the next module may scale it in place
            return out

        return note

    model.eval(keep=True)
    with ExitStack() as stack:
        for path, _ in list(model.named_modules())[1:]:
            stack.enter_context(model.replacing(path, noting(path)))
        logits_of(model, *ids)
        found = model.intermediates() | outputs
    return {name: array[0] for name, array in found.items() if array.dtype.kind == "f" and array.ndim > 2}


def largest_difference(browser, model, source, given):
    """Between the page and NumPy, over all intermediates, which must be the same ones."""
    page = numbers_in_page(browser, source, given)
    expected = numbers_in_numpy(model, *([source, given] if isinstance(model, Transformer) else [given]))
    for here, there in HEAD.items():
        if there in expected:
            page[there] = page[here]
    missing = expected.keys() - page.keys()  # the slope of an activation is for the backward pass
    unused = ("dropout", "mlm_head.output.out", "pooler.hidden", "pooler.share")
    others = (".slope", ".written", ".residual_before", ".residual_after")
    assert all(name.startswith(unused) or "dropout" in name or name.endswith(others) for name in missing), missing
    assert all(name.endswith(OF_THE_PAGE) for name in page.keys() - expected.keys())
    worst = 0
    for name in page.keys() & expected.keys():
        seen = ~np.isneginf(expected[name])
        assert page[name].shape == expected[name].shape, name
        assert np.array_equal(seen, ~np.isneginf(page[name])), name
        worst = max(worst, np.abs(page[name][seen] - expected[name][seen]).max(initial=0))
    return worst


OF_THE_PAGE = (  # values that NumPy does not keep under a name
    *(".sum", ".before", "hidden", "memory", "input", "output.x", "output.out", "pooler.out", "pooler.linear.out"),
)
HEAD = {"hidden": "mlm_head.linear.x", "output.x": "mlm_head.output.x", "output.out": "mlm_head.out"}  # of a Bert


def load(browser, page, tmp_path):
    browser.get(page.save(tmp_path / "page.html").as_uri())
    LivePage(browser)  # waits
    LOADED["model"] = page.model


LOADED = {}


def cut_head(head, K):
    def cut(array, _=None):
        array = array.copy()
        array[..., head * K : (head + 1) * K] = 0
        return array

    return cut, cut


def replaced_row(position, vector):
    def forward(array):
        array = array.copy()
        array[0, position] = vector
        return array

    def backward(dnew, _):
        return np.where(np.arange(dnew.shape[1])[:, None] == position, 0, dnew)

    return forward, backward


def changes_of(model):
    """Changes of the page, each with the arguments of `replacing` for the same change in NumPy."""
    path = "decoder.1.cross_attention" if isinstance(model, Transformer) else "blocks.1.attention"
    block = "encoder.0" if isinstance(model, Transformer) else "blocks.0"
    layer = dict(model.named_modules())[path]
    row = np.linspace(-1, 1, model.config.d_model)
    return [
        ([], []),
        ([{"type": "head", "path": path, "head": 1}], [(f"{path}.concat", *cut_head(1, layer.d_head))]),
        ([{"type": "off", "name": f"{block}.feed_forward.out"}], [(f"{block}.feed_forward", np.zeros_like)]),
        (
            [{"type": "replace", "name": f"{block}.attention.out", "position": 1, "vector": row.tolist()}],
            [(f"{block}.attention", *replaced_row(1, row))],
        ),
    ]


def largest_gradient_difference(browser, model, source, given, targets, which=slice(None)):
    """Between the page and NumPy in float64, over the loss, the gradients of all parameters and those of q, k, v, with
    and without changes. which: of the changes"""
    model = type(model)(model.config).astype("float64")
    model.load_state_dict({name: array.astype("f8") for name, array in LOADED["model"].state_dict().items()})
    worst = 0
    for changes, replaced in changes_of(model)[which]:
        loss, gradients, weights = browser.execute_script(GRADIENTS, source, given, changes, targets)
        gradients, weights = unpacked(gradients), unpacked(weights)
        caught = {}

        def catching(name, caught=caught):
            return lambda dnew, old: caught.setdefault(name, dnew)

        names = [f"{path}.{part}" for path, m in model.named_modules() if hasattr(m, "w_q") for part in "qkv"]
        model.eval(keep=True)
        model.zero_grad()
        with ExitStack() as stack:
            for arguments in replaced:
                stack.enter_context(model.replacing(*arguments))
            for name in names:
                stack.enter_context(model.replacing(name, lambda array: array, catching(name)))
            ids = [row for row in (source, given) if row is not None]
            wanted = np.array([[-1 if i is None else i for i in targets]])
            logits = logits_of(model, *ids)
            wanted = wanted.reshape(logits.shape[:-1])  # a classifier has one for the whole text
            expected, probs = F.cross_entropy(logits, wanted, -1)
            model.backward(F.cross_entropy_backward(probs, wanted, -1))
        worst = max(worst, abs(expected - loss))
        for name, parameter in model.named_parameters():
            found = weights[name].reshape(parameter.shape) if name in weights else np.zeros(parameter.shape)
            worst = max(worst, np.abs(found - parameter.grad).max())
        for name in names:
            worst = max(worst, np.abs(gradients[name] - caught[name][0]).max())
        assert np.abs(caught[names[0]]).max() > 1e-6 or changes
    return worst
