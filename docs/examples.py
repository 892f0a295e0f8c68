"""Runnable examples and refused calls for the reference: of each function of `functional` and each layer, made from the
random arguments of `inspection/samples.py`, and of the functions in CALLS. tests/test_site.py runs them."""

import ast
import contextlib
import importlib
import inspect
import io
from pathlib import Path

import numpy as np

from transformer_np import functional as F
from transformer_np import layers
from transformer_np.inspection import samples

START = ["import numpy as np", "rng = np.random.default_rng(0)"]


class Session:
    """Lines as one types them into Python, with what it answers."""

    def __init__(self, *lines):
        self.names, self.lines = {}, []
        for line in lines:
            self.type(line)

    def type(self, line):
        """A line, and the value of an expression below it."""
        first, *rest = line.splitlines()
        self.lines += [f">>> {first}", *(f"... {more}" for more in rest)]
        if ast.parse(line).body[0].__class__ is not ast.Expr:
            exec(line, self.names)
            return
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            value = eval(line, self.names)
        self.lines += said.getvalue().splitlines() if value is None else [repr(value)]

    def refused(self, function, arguments):
        """A call with one wrong argument, and its error; one of each kind of error."""
        found = {}
        for name in reversed(arguments):
            for wrong in _wrong(name, self.names[name]):
                call = f"{function}({', '.join(wrong if name == other else other for other in arguments)})"
                try:
                    eval(call, self.names)
                except (ValueError, TypeError) as error:
                    found.setdefault(type(error).__name__, (call, str(error).splitlines()[0]))
        for kind, (call, text) in sorted(found.items(), reverse=True):  # ValueError first
            self.lines += [f">>> {call}", "Traceback (most recent call last):", f"{kind}: {text}"]


def _wrong(name, value):
    """An argument, spoiled."""
    if isinstance(value, np.ndarray):
        return [f"{name}[..., :-1]", f"{name}.astype(int)"] if value.dtype.kind == "f" else [f"{name} + 0.5"]
    if isinstance(value, list | str):
        return [repr(type(value)())]
    return ["-1"] if isinstance(value, int | float) else []


def of_function(name):
    """The lines of the example of a function of `functional`."""
    session = Session(START[0], "from transformer_np import functional as F", START[1])
    forward = name.removesuffix("_backward")
    given = samples.arguments_of(forward, np.random.default_rng(0))
    arrays = getattr(F.FUNCTIONS[forward], "shapes", {})
    for argument, value in given.items():
        session.type(f"{argument} = {_source(value, argument in arrays)}")
    if forward == name:
        return _finished(session, "y", f"F.{name}", list(given))
    wanted, outputs = list(inspect.signature(F.FUNCTIONS[name]).parameters), F.FUNCTIONS[forward](**given)
    dout = wanted[0] if wanted[0] in ("dy", "dout", "dh", "dbias") else "dloss"
    new = [p for p in wanted if p not in given and p not in (dout, *inspect.signature(F.FUNCTIONS[forward]).parameters)]
    settings = [p for p in new if p in samples.EXAMPLES and p != "keep"]
    kept = [p for p in new if p not in settings]  # the last outputs of the forward function
    first = [dout[1:]] * ((len(outputs) if isinstance(outputs, tuple) else 1) - len(kept))
    session.type(f"{', '.join(first + kept)} = F.{forward}({', '.join(given)})")
    for setting in settings:
        session.type(f"{setting} = {_source(samples.EXAMPLES[setting], False)}")
    session.type(f"{dout} = np.ones_like({dout[1:]})" if dout != "dloss" else "dloss = 1.0")
    return _finished(session, "gradients", f"F.{name}", [p for p in wanted if p in session.names])


def _finished(session, result, function, arguments, *refusing):
    """The lines with the call, the shapes of its results, and refused calls of it or of another."""
    session.type(f"{result} = {function}({', '.join(arguments)})")
    value = session.names[result]
    if value is None or (isinstance(value, list | tuple) and len(repr(value)) < 80 and "array" not in repr(value)):
        session.type(f"print({result})")
    elif isinstance(value, list):
        session.type(f"len({result})")
    else:
        session.type(f"[np.shape(part) for part in {result}]" if isinstance(value, tuple) else f"np.shape({result})")
    session.refused(*(refusing or (function, arguments)))
    return session.lines


def _source(value, random):
    """An argument as Python code."""
    if random:
        return f"rng.normal(size={value.shape})"
    if value is np.float64:
        return "np.float64"
    if not isinstance(value, np.ndarray):
        return repr(value)
    return f"np.triu(np.ones({value.shape}, bool), 1)" if value.dtype == bool else f"np.array({value.tolist()})"


class _Literal(ast.NodeTransformer):
    """The source of a sample with the sizes in it."""

    def visit_Name(self, node):
        value = getattr(samples, node.id, None) if node.id.startswith("_") else None
        if value is None:
            return node
        shape = isinstance(value, tuple)
        text = f"rng.normal(size={value}).astype('float32')" if shape else _source(value, False)
        return ast.parse(text, mode="eval").body

    def visit_Call(self, node):
        self.generic_visit(node)
        node.keywords = [keyword for keyword in node.keywords if keyword.arg is not None]  # without **o
        return node


def of_layer(name):
    """The lines of the example of a layer."""
    entries = ast.parse(Path(samples.__file__).read_text("utf-8")).body
    table = next(e.value for e in entries if isinstance(e, ast.Assign) and ast.unparse(e.targets[0]) == "LAYERS")
    for key, value in zip(table.keys, table.values, strict=True):
        made = value.elts[0].body.func.attr
        if name in (made, type(samples.layer_of(key.value, np.random.default_rng(0))[0]).__name__):
            layer, *inputs = (ast.unparse(_Literal().visit(part)) for part in (value.elts[0].body, *value.elts[1:]))
            break
    else:
        raise KeyError(name)
    session = Session(START[0], "from transformer_np import layers", START[1], f"layer = {layer}")
    for argument, text in zip(("x", "memory", "mask"), inputs, strict=False):
        session.type(f"{argument} = {text}")
    given = [argument for argument in ("x", "memory", "mask") if argument in session.names]
    session.type(f"y = layer({', '.join(given)})")
    session.type("np.shape(y)")
    session.type("dy = np.ones_like(y)")
    return _finished(session, "gradients", "layer.backward", ["dy"], "layer", given)


_MODEL = "models.Transformer(models.TransformerConfig(9, 9, 8, 2, 1, 1, 16))"
_GPT = "models.GPT(models.GPTConfig(9, max_len=8, d_model=8, num_heads=2, num_layers=1))"
_LOGITS, _SRC, _TGT = "rng.normal(size=(2, 9))", "np.array([[4, 5, 6]])", "np.array([[1, 4]])"
CALLS = {  # {module: {function: {argument: its source}}}
    "masks": {
        "causal_mask": {"T": "4"},
        "padding_mask": {"ids": "np.array([[5, 6, 0], [7, 0, 0]])", "pad_id": "0"},
        "window_mask": {"T": "5", "window": "1"},
        "additive": {"mask": "masks.causal_mask(3)"},
    },
    "decoding": {
        "log_softmax": {"logits": _LOGITS},
        "greedy_decode": {"model": _MODEL, "src": _SRC, "max_len": "5"},
        "beam_search": {"model": _MODEL, "src": _SRC, "beam_size": "2"},
        "sequence_log_probs": {"model": _MODEL, "src": _SRC, "tgt_in": _TGT, "tgt_out": _TGT},
        "sampling_distribution": {"logits": _LOGITS, "temperature": "0.5", "top_k": "3"},
        "generate": {"model": _GPT, "prompt": _SRC, "max_new_tokens": "5", "temperature": "0"},
    },
    "data": {
        "pad_batch": {"sequences": "[[5, 6, 7], [8]]"},
        "shift_right": {"ids": "[5, 6, 7]", "bos_id": "1"},
        "as_encoder_input": {"ids": "[5, 6, 7]", "max_len": "4"},
        "mask_tokens": {"ids": "np.array([[2, 5, 6, 3]])", "vocab_size": "9", "rng": "0"},
        "split_pairs": {"pairs": "[(f'word {i}', f'palavra {i}') for i in range(20)]", "validation": "0.2"},
        "split_text": {"text": "'to be or not to be ' * 10", "validation": "0.2"},
        "validation_batches": {"ids": "np.arange(60)", "block_size": "8", "batch_size": "2"},
        "written_dates": {"size": "5"},
        "sentiment_sentences": {"size": "600"},
        "count_spans": {"length": "100", "density": "0.15"},
        "choose_spans": {"length": "100", "rng": "0"},
        "corrupt_spans": {"ids": "[5, 6, 7, 8, 9, 10]", "sentinels": "[90, 91, 92]", "rng": "0"},
    },
    "training": {
        "noam_schedule": {"step": "10", "d_model": "64", "warmup": "300"},
        "cosine_schedule": {"step": "10", "max_lr": "0.002", "min_lr": "0.0", "warmup": "5", "total": "100"},
        "clip_grad_norm": {"parameters": f"{_GPT}.parameters()", "max_norm": "1.0"},
    },
}


def of_call(module, name):
    """The lines of the example of a function in CALLS."""
    start = f"from transformer_np import {module}, models" if module != "masks" else "from transformer_np import masks"
    given = CALLS[module][name]
    random = any("rng." in source for source in given.values())
    session = Session(START[0], start, *([START[1]] if random else []))
    for argument, source in given.items():
        session.type(f"{argument} = {source}")
    return _finished(session, "result", f"{module}.{name}", list(given))


def of(thing):
    """The lines of the example of a function or layer, or None for anything else."""
    name = getattr(thing, "__name__", "")
    if F.FUNCTIONS.get(name) is thing or getattr(F, name, None) is thing:
        return of_function(name)
    if getattr(layers, name, None) is thing and isinstance(thing, type):
        return of_layer(name)
    for module, calls in CALLS.items():
        if name in calls and getattr(importlib.import_module(f"transformer_np.{module}"), name) is thing:
            return of_call(module, name)
    return None
