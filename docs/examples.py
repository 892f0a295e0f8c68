"""Runnable examples and refused calls for the reference: of each function of `functional` and each layer, made from the
random arguments of `inspection/samples.py`, and of the functions in CALLS. tests/test_site.py runs them."""

import ast
import contextlib
import importlib
import inspect
import io
import re
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
        self.keywords = False  # whether calls name their arguments
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

    def call(self, function, arguments, **spoiled):
        """A call with these arguments, all of them names."""
        values = {name: spoiled.get(name, name) for name in arguments}
        given = (f"{name}={value}" if self.keywords else value for name, value in values.items())
        return f"{function}({', '.join(given)})"

    def refused(self, function, arguments):
        """A call with one wrong argument, and its error; one of each kind of error."""
        found = {}
        for name in reversed(arguments):
            for wrong in _wrong(name, self.names[name]):
                call = self.call(function, arguments, **{name: wrong})
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
    if isinstance(value, list | str | dict):
        return [repr(type(value)())]
    return ["-1"] if isinstance(value, int | float) else ["None"]


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
    session.type(f"{result} = {session.call(function, arguments)}")
    value = session.names[result]
    if value is None or (isinstance(value, list | tuple) and len(repr(value)) < 80 and "array" not in repr(value)):
        session.type(f"print({result})")
    elif isinstance(value, list):
        session.type(f"len({result})")
    elif not isinstance(value, tuple | np.ndarray | int | float):
        session.type(result if len(repr(value)) < 80 and " at 0x" not in repr(value) else f"type({result}).__name__")
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
_FORWARD = {"model": _MODEL, "logits": "model(np.array([[4, 5, 6]]), np.array([[1, 4]]))"}
_BACKWARD = {**_FORWARD, "nothing": "model.backward(np.ones_like(logits))"}
_HEADS = {"weights": "np.full((2, 3, 3), 1 / 3)", "queries": "['a', 'b', 'c']", "keys": "['a', 'b', 'c']"}
_LAYER = {"layer": "layers.MultiHeadAttention(8, 2)", "y": "layer(np.ones((1, 3, 8), np.float32))"}
_IMPORTED = {  # by the sources below
    "transformer_np": ("data", "functional", "inspection", "layers", "masks", "models", "plots"),
    "transformer_np.grading": ("report",),
    "transformer_np.tasks": ("copying", "translation"),
    "transformer_np.training": ("History",),
}
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
    "plots": {
        "Product": {"title": "'a copy'", "terms": "[('A', np.eye(2)), '=', ('B', np.eye(2))]"},
        "architecture": {"model": _MODEL},
        "attention": _HEADS,
        "attention_maps": {**_FORWARD, "kind": "'cross'"},
        "attention_products": {**_LAYER, "words": "['a', 'b', 'c']"},
        "class_results": {"results": "[report.ClassResult('softmax', {'right': 3, 'wrong': 1}, {'no maximum': 1})]"},
        "copy_curves": {"curves": "copying.CopyCurves([10, 20], {'GPT': [0.1, 0.2]}, 0.125, 2, 4)"},
        "decoding_steps": {"steps": "[[('house', -0.2), ('home', -1.9)], [('<eos>', -0.1)]]"},
        "gradient_distance": {"norms": "{'attention': [1.0, 0.9, 0.8], 'RNN': [1.0, 0.5, 0.25]}"},
        "gradient_flow": _BACKWARD,
        "gradient_norms": _BACKWARD,
        "head_ablation": {"table": "inspection.HeadAblation(2.0, {'encoder.0': np.array([2.1, 2.0])})"},
        "head_view": _HEADS,
        "layer_norm_products": {"layer": "layers.LayerNorm(4)", "x": "rng.normal(size=(2, 4)).astype('float32')"},
        "likeliest": {"logits": _LOGITS, "count": "3"},
        "logit_lens": {"logits": "rng.normal(size=(3, 2, 9))", "read": "['a', 'b']"},
        "loss_curves": {"losses": "{'seed 0': [3.0, 2.0], 'seed 1': [3.1, 1.9]}"},
        "mask": {"mask": "masks.causal_mask(4)"},
        "matrices": {"products": "[plots.Product('a product', [('A', np.eye(2)), '·', ('B', np.ones((2, 2)))])]"},
        "model_view": {"weights": "np.full((2, 2, 3, 3), 1 / 3)"},
        "positional_encoding": {"length": "8", "d_model": "16"},
        "principal_components": {"vectors": "rng.normal(size=(9, 4))", "count": "2"},
        "progress": {"chapters": "{'attention': (3, 1, 6), 'training': (0, 0, 5)}"},
        "relative_bias": {"model": "models.T5(models.T5Config(9, 8, 2, 4, 1, 1, 16))", "longest": "16"},
        "sampling": {"logits": "rng.normal(size=9)"},
        "softmax_saturation": {"scores": "[1.0, 0.5, -1.0]", "d_k": "64"},
        "training_curve": {"history": "History([3.0, 2.5, 2.2], [0.1, 0.2, 0.1], [(3, 2.4)])"},
        "translator_attention": {
            "words": "data.WordTokenizer.train(['a b c'], min_count=1)",
            "model": "models.Transformer(models.TransformerConfig(len(words), len(words), 8, 2, 1, 1, 16))",
            "translator": "translation.Translator(model, words, words)",
            "sentence": "'b a'",
        },
        "wavelengths": {"length": "50", "d_model": "16"},
        "word_map": {"words": "['one', 'two', 'three', 'red']", "vectors": "rng.normal(size=(4, 8))"},
    },
    "homework": {
        "find": {"name": "'softmax'"},
        "check": {"name": "'softmax'", "answer": "functional.softmax", "quiet": "True"},
        "using": {"answers": "{'softmax': functional.softmax}"},
    },
    "tasks.classify": {"ClassifyOptions": {"data": "'reviews.tsv'", "dropout": "0.2"}},
    "tasks.copying": {"copy_experiment": {"steps": "2", "every": "1"}},
    "tasks.mlm": {"MLMOptions": {"text": "'texts.txt'", "steps": "100"}},
    "tasks.t5": {"T5Options": {"tasks": "'sentiment,date'", "steps": "100"}},
    "tasks.text": {"GPTOptions": {"text": "'texts.txt'", "block_size": "32"}},
    "tasks.translation": {"TranslationOptions": {"pairs": "'pairs.tsv'", "tokens": "'char'", "steps": "100"}},
    "tasks.word2vec": {"Word2VecOptions": {"text": "'texts.txt'", "window": "5"}},
    "tasks.xl": {"XLOptions": {"text": "'texts.txt'", "mem_len": "32"}},
}


def of_call(module, name):
    """The lines of the example of a function in CALLS."""
    given = CALLS[module][name]
    within, sources = "." in module, " ".join(given.values())
    needed = {f"transformer_np.{module}": {name}} if within else {"transformer_np": {module}}
    for parent, others in _IMPORTED.items():
        if used := {other for other in others if re.search(rf"\b{other}[.(]", sources)}:
            needed[parent] = needed.get(parent, set()) | used
    start = [f"from {parent} import {', '.join(sorted(names))}" for parent, names in needed.items()]
    random = "rng." in sources
    session = Session(START[0], *start, *START[1 : 1 + random])
    for argument, source in given.items():
        session.type(f"{argument} = {source}")
    accepted = list(inspect.signature(getattr(importlib.import_module(f"transformer_np.{module}"), name)).parameters)
    arguments = [argument for argument in given if argument in accepted]
    session.keywords = arguments != accepted[: len(arguments)]
    return _finished(session, "result", name if within else f"{module}.{name}", arguments)


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
