"""Runnable examples and refused calls for the reference: of each function of `functional` and each layer, made from the
random arguments of `inspection/samples.py`, and of the functions in CALLS. tests/test_site.py runs them."""

import ast
import contextlib
import importlib
import inspect
import io
import re
import tempfile
import traceback
from pathlib import Path

import numpy as np
from calls import CALLS, IMPORTED, SHOWN

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

    def call(self, function, names, /, **spoiled):
        """A call with the arguments of these names."""
        values = {name: spoiled.get(name, name) for name in names}
        given = (f"{name}={value}" if self.keywords else value for name, value in values.items())
        return f"{function}({', '.join(given)})"

    def refused(self, function, arguments):
        """A call with one wrong argument, and its error; one of each kind of error."""
        found = {}
        for name in reversed(arguments):
            for wrong in _wrong(name, self.names[name]):
                call = self.call(function, arguments, **{name: wrong})
                try:
                    with np.errstate(invalid="ignore"):  # −∞ of a mask as an integer
                        eval(call, self.names)
                except Exception as error:
                    raised = traceback.extract_tb(error.__traceback__)[-1].line.startswith("raise")  # not by NumPy
                    if raised and isinstance(error, ValueError | TypeError | OSError):
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


def _finished(session, result, function, arguments, *refusing, shown=None):
    """The lines with the call, the shapes of its results or what is `shown` of them, and refused calls of it or of
    another."""
    session.type(f"{result} = {session.call(function, arguments)}")
    value = session.names[result]
    if shown:
        session.type(shown)
    elif value is None or (isinstance(value, list | tuple) and len(repr(value)) < 80 and "array" not in repr(value)):
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


def _maker(entry):
    """The call that makes a layer, f(x), of an entry `partial(f, x)` or `lambda **o: f(x, **o)`."""
    if isinstance(entry, ast.Lambda):
        return entry.body
    function, *arguments = entry.args
    return ast.Call(function, arguments, entry.keywords)


def of_layer(name):
    """The lines of the example of a layer."""
    entries = ast.parse(Path(samples.__file__).read_text("utf-8")).body
    table = next(e.value for e in entries if isinstance(e, ast.Assign) and ast.unparse(e.targets[0]) == "LAYERS")
    for key, value in zip(table.keys, table.values, strict=True):
        made, *given = _maker(value.elts[0]), *value.elts[1:]
        if name in (made.func.attr, type(samples.layer_of(key.value, np.random.default_rng(0))[0]).__name__):
            layer, *inputs = (ast.unparse(_Literal().visit(part)) for part in (made, *given))
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


def of_call(module, name):
    """The lines of the example of a function or class in CALLS. It may write files into the current folder."""
    given = dict(CALLS[module][name])
    shown, sources = given.pop(SHOWN, None), " ".join(CALLS[module][name].values())
    within = "." in module or module in given
    needed = {f"transformer_np.{module}": {name}} if within else {"transformer_np": {module}}
    for parent, others in IMPORTED.items():
        if used := {other for other in others if re.search(rf"\b{other}[.(]", sources)}:
            needed[parent] = needed.get(parent, set()) | used
    start = [f"from {parent} import {', '.join(sorted(names))}" for parent, names in sorted(needed.items())]
    random = "rng." in sources
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        session = Session(START[0], *start, *START[1 : 1 + random])
        for argument, source in given.items():
            session.type(f"{argument} = {source}")
        thing = getattr(importlib.import_module(f"transformer_np.{module}"), name)
        accepted = list(inspect.signature(thing).parameters)
        arguments = [argument for argument in given if argument in accepted]
        session.keywords = arguments != accepted[: len(arguments)]
        lines = _finished(session, "result", name if within else f"{module}.{name}", arguments, shown=shown)
    return lines if any("np." in line for line in lines[1:]) else lines[1:]


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
