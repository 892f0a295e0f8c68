"""A trace of a model's forward and backward: every step, in order, with its name, formula, shape and values.

from transformer_np import trace

steps = trace(model, src, tgt_in, backward=dlogits)
print(steps)                       # a table
steps["encoder.0.attention"]       # the steps of this module
steps[12].value                    # the array
"""

import inspect
import re
import textwrap
from contextlib import ExitStack, contextmanager
from functools import wraps
from html import escape
from typing import overload

import numpy as np

from .. import functional
from ..layers.blocks import AddNorm
from ..models.encoder_decoder import InputEmbedding
from ..module import Module
from ..support.intercept import called_instead_of, calls, methods

BACKWARD = "_backward"
MODEL = "(model)"  # the module name in tables for steps outside all submodules
MOST = 60  # rows of a table


def trace(model, *inputs, backward=None, **options):
    """Run the forward of a model on the inputs, and its backward if requested, and record every step.

    model: a Module, or a method of one that takes the place of its forward: `trace(bert.classify, ids)`
    inputs, options: the arguments of the call
    backward: the gradient of the loss with respect to the output; or a function that computes it from the output, such
        as `lambda logits: F.cross_entropy_backward(F.softmax(logits), targets)`, whose steps are recorded too; None for
        no backward

    Returns a Trace. A step is a call of a function of `functional`, with nested calls listed before it, or a
    computation of a module itself, such as a residual sum or the added positions. The trace keeps a copy of all values,
    so it is for small models and short sequences.

    The model runs in eval(keep=True), without dropout. Afterwards every module is in its previous mode, and
    `intermediates()` has the values of this run. A backward adds to the gradients of the parameters as usual. While the
    model runs, recording functions replace those of `functional`, for every thread.

    Raises TypeError for a model that is not a Module.
    """
    run = model
    if not isinstance(model, Module):
        model = getattr(model, "__self__", None)
        if not isinstance(model, Module):
            raise TypeError(f"model must be a Module or a method of one, got {type(run).__name__}")
    notes = _Notes()
    with model.evaluating(), notes.taken(model):
        model.eval(keep=True)
        notes.know(inputs, options)
        output = run(*inputs, **options)
        if backward is not None:
            dout = backward(output) if callable(backward) else backward
            notes.know(dout)
            notes.direction = "backward"
            model.backward(dout)
    return Trace(notes.steps, output)


class Step:
    """One step of a trace.

    number; direction: "forward" or "backward"; module: dotted name, "" for the model itself; function; formula
    values: {name: array}, all results of the step; value: the first of them, with shape, dtype, min, mean and max
    parameters: the dotted names of the parameters among its arguments; depth: how many functions it is nested in
    """

    def __init__(self, number, direction, module, function, formula, values, parameters=(), depth=0):
        self.number, self.direction, self.module = number, direction, module
        self.function, self.formula, self.values, self.depth = function, formula, values, depth
        self.parameters = parameters

    @property
    def value(self):
        return next(iter(self.values.values()))

    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    min = property(lambda self: float(self.value.min()))
    max = property(lambda self: float(self.value.max()))

    @property
    def mean(self):
        with np.errstate(invalid="ignore"):  # scores of −inf and inf
            return float(self.value.mean())

    def __repr__(self):
        head = f"step {self.number}, {self.direction}: {self.module or MODEL}  {self.function}  {self.formula}"
        values = [f"    {name} {value.shape} {value.dtype}" for name, value in self.values.items()]
        numbers = f"    min {self.min:.4g}, mean {self.mean:.4g}, max {self.max:.4g}"
        return "\n".join([head, *values, numbers])


class Trace:
    """The steps in order, and `output`, the result of the forward.

        trace[12], trace[-1]              a step
        trace[10:20]                      some steps, a Trace
        trace["encoder.0.attention"]      the steps of a module and its submodules, a Trace
        trace["softmax"]                  the steps of a function, a Trace
        trace["encoder.0.softmax"]        the steps of a function within a module
        trace.forward, trace.backward     the steps of one direction

    Steps keep their numbers from the whole trace. Raises KeyError for a name that no step has.
    """

    def __init__(self, steps, output=None):
        self.steps, self.output = list(steps), output

    def __len__(self):
        return len(self.steps)

    def __iter__(self):
        return iter(self.steps)

    @overload
    def __getitem__(self, key: int) -> Step: ...
    @overload
    def __getitem__(self, key: str | slice) -> "Trace": ...
    def __getitem__(self, key):
        if isinstance(key, str):
            return Trace(self._named(key), self.output)
        found = self.steps[key]
        return Trace(found, self.output) if isinstance(key, slice) else found

    def _named(self, name):
        inside, _, function = name.rpartition(".")
        found = [step for step in self.steps if _within(step.module, name) or (step.module or MODEL) == name]
        found = found or [step for step in self.steps if step.function == function and _within(step.module, inside)]
        if not found:
            names = dict.fromkeys(step.module or MODEL for step in self.steps)
            raise KeyError(f"no step of {name!r}; the modules are {', '.join(names)}")
        return found

    forward = property(lambda self: self._of("forward"))
    backward = property(lambda self: self._of("backward"))

    def _of(self, direction):
        return Trace((step for step in self.steps if step.direction == direction), self.output)

    # --- tables --------------------------------------------------------------------------------------------------

    def table(self, most=MOST, width=120):
        """The steps as text: at most `most` of them (None: all), in lines of at most `width` characters. A formula that
        is too long for its column goes on in the next line."""
        before, after, hidden = self._shown(most)
        head = ("step", "", "formula", "module", "function", "shape", "min", "mean", "max")
        rows = [head, *(_text_row(step, digits=2) for step in before + after)]
        widths = [min(most, max(len(row[i]) for row in rows)) for i, most in enumerate(_WIDEST)]
        longest = widths[_FORMULA_AT]
        widths[_FORMULA_AT] = width - (sum(widths) - longest + len(widths) - 1)  # the rest of the width …
        for column in (_MODULE_AT, _MODULE_AT + 1):  # … and more, if that is too little
            less = max(0, min(widths[column] - _NARROWEST, min(longest, _READABLE) - widths[_FORMULA_AT]))
            widths[column] -= less
            widths[_FORMULA_AT] += less
        widths[_FORMULA_AT] = max(_NARROWEST, min(widths[_FORMULA_AT], longest))
        blocks = [_text_lines(row, widths) for row in rows]
        if hidden:
            blocks.insert(1 + len(before), [f"… {hidden} more steps: print(trace.table(most=None)) shows all"])
        lines = [line for block in blocks for line in block]
        dtypes = ", ".join(dict.fromkeys(str(step.dtype) for step in self.steps))
        lines.append(f"{len(self)} steps, {dtypes or 'empty'}; → forward, ← backward, · part of the next")
        if any(len(step.values) > 1 for step in before + after):
            lines.append("+1: further results, in step.values")
        return "\n".join(lines)

    def __str__(self):
        return self.table()

    __repr__ = __str__

    def _repr_html_(self):
        before, after, hidden = self._shown(MOST)
        head = ("step", "", "formula", "module", "function", "shape", "dtype", "min", "mean", "max")
        rows = [_html_row(_html_cells(step), "td") for step in before]
        if hidden:
            text = f"… {hidden} more steps: <code>print(trace.table(most=None))</code> shows all"
            rows.append(f'<tr><td colspan="{len(head)}" style="text-align:left">{text}</td></tr>')
        rows = "\n".join([*rows, *(_html_row(_html_cells(step), "td") for step in after)])
        table = '<div style="overflow-x:auto"><table style="font-size:90%;color:inherit">'
        return f"{table}\n<thead>{_html_row(head, 'th')}</thead>\n<tbody>\n{rows}\n</tbody></table></div>"

    def _shown(self, most):
        """The steps of a table before and after the omitted ones, and the number of omitted steps."""
        if most is None or len(self) <= most:
            return self.steps, [], 0
        end = most // 3
        return self.steps[: most - end], self.steps[len(self) - end :], len(self) - most


def _within(module, name):
    return not name or module == name or module.startswith(name + ".")


_ALIGNED = "><<<<<>>>"
_WIDEST = (6, 1, 200, 26, 21, 20, 9, 9, 9)
_FORMULA_AT, _MODULE_AT = 2, 3
_READABLE, _NARROWEST = 24, 16  # characters that a formula gets at the cost of the names, and that the names keep


def _text_row(step, digits):
    arrow = "→" if step.direction == "forward" else "←"
    function = step.function.removesuffix(BACKWARD)  # the arrow shows the direction
    numbers = [f"{number:.{digits}g}" for number in (step.min, step.mean, step.max)]
    name = "· " * step.depth + function
    if function == "linear" and step.parameters:  # to tell the many linear maps apart
        name += " " + step.parameters[0].rpartition(".")[2]
    shape = str(step.shape) + (f" +{len(step.values) - 1}" if len(step.values) > 1 else "")
    return [str(step.number), arrow, step.formula, step.module or MODEL, name, shape, *numbers]


def _text_lines(row, widths):
    """A row as one line, and one more for each further line of its formula."""
    formula = textwrap.wrap(row[_FORMULA_AT], widths[_FORMULA_AT]) or [""]
    rows = [[*row[:_FORMULA_AT], formula[0], *row[_FORMULA_AT + 1 :]]]
    rows += [["", "", part] for part in formula[1:]]
    return [" ".join(map(_fitted, cells, widths, _ALIGNED)).rstrip() for cells in rows]


def _fitted(text, width, side):
    """The text padded or cut to exactly `width` characters."""
    if len(text) > width:
        text = text[: max(0, width - 1)] + "…" if width else ""
    return f"{text:{side}{width}}" if width else ""


def _html_cells(step):
    number, arrow, formula, module, name, shape, *rest = map(escape, _text_row(step, digits=3))
    return [number, arrow, formula, module, name, shape, str(step.dtype), *rest]


def _html_row(cells, tag):
    """A row with words aligned left and numbers right. It has no colours, so it fits light and dark pages."""
    styles = [_NUMBER, _WORD, _FORMULA, *[_WORD] * 4, *[_NUMBER] * 3]
    row = (f'<{tag} style="{style}">{cell}</{tag}>' for cell, style in zip(cells, styles, strict=True))
    return f"<tr>{''.join(row)}</tr>"


_WORD = "text-align:left;white-space:nowrap;padding:0 .5em"
_NUMBER = "text-align:right;white-space:nowrap;padding:0 .5em"
_FORMULA = "text-align:left;min-width:18em;padding:0 .5em"


# --- recording ------------------------------------------------------------------------------------------------------


class _Notes:
    """The recorder: results of functions, and those arrays of modules that are not just a function's result."""

    def __init__(self):
        self.steps, self.direction = [], "forward"
        self._modules = []  # (dotted name, module) of the running modules, the innermost last
        self._depth = 0  # how many functions are running
        self._names = {}  # id of a parameter's array: its dotted name
        self._known = {}  # id: (array, its copy), of all arrays seen; holding the array keeps its id unique

    @contextmanager
    def taken(self, model):
        """Inside the block, record every call of a function of `functional` and of a module of the model."""
        functions = {name: called_instead_of(getattr(functional, name)) for name in functional.__all__}
        noted = {getattr(functional, name): self._of_function(name, f) for name, f in functions.items()}
        with calls(noted), ExitStack() as stack:
            self._names = {id(parameter.data): path for path, parameter in model.named_parameters()}
            seen = set()
            for path, module in model.named_modules():
                if id(module) not in seen:  # a shared module has several names
                    seen.add(id(module))
                    both = {method: self._of_module(path, module, method) for method in ("forward", "backward")}
                    stack.enter_context(methods(module, both))
            yield

    def know(self, *values):
        """Mark arrays from outside as known, so that they are not recorded as steps."""
        for value in values:
            if isinstance(value, np.ndarray):
                self._copy(value)
            elif isinstance(value, list | tuple | dict):
                self.know(*(value.values() if isinstance(value, dict) else value))

    def _of_function(self, name, function):
        formula, names = _formula(function), _names_of_results(function)

        @wraps(function)
        def noted(*args, **kwargs):
            self._depth += 1
            try:
                result = function(*args, **kwargs)
            finally:
                self._depth -= 1
            direction = "backward" if name.endswith(BACKWARD) else self.direction
            given = [self._name_of(value) for value in (*args, *kwargs.values()) if isinstance(value, np.ndarray)]
            self._note(name, formula, _arrays(result), names, direction, tuple(filter(None, given)))
            return result

        return noted

    def _of_module(self, path, module, method):
        run = getattr(module, method)
        name, formula = _own_step(module) or (type(module).__name__, _formula(type(module)))
        if method == "backward":
            name, formula = name + BACKWARD, f"gradient of {formula}"

        @wraps(run)
        def noted(*args, **kwargs):
            if self._modules and not self._depth:
                self._note_argument(path, args)
            self._modules.append((path, module))
            try:
                result = run(*args, **kwargs)
                new = [array for array in _arrays(result) if self._is_new(array)]
                self._note(name, formula, new, (), self.direction)
            finally:
                self._modules.pop()
            return result

        return noted

    def _note_argument(self, path, args):
        """Record the argument that the calling module has computed for this one."""
        array = next((arg for arg in args if isinstance(arg, np.ndarray)), None)
        if array is None or array.dtype.kind != "f" or not self._is_new(array):
            return
        around, owner = self._modules[-1]
        into = path.removeprefix(f"{around}.")
        name, formula = _own_step(owner) or (f"→ {into}", f"what {into} is given")
        if self.direction == "backward":
            name, formula = name + BACKWARD, f"the gradient that {into} is given"
        self._note(name, formula, [array], (), self.direction)

    def _name_of(self, array):
        """The name of a parameter, also of a transposed one; None for another array."""
        return self._names.get(id(array)) or self._names.get(id(array.base))

    def _note(self, function, formula, arrays, names, direction, parameters=()):
        if not arrays:
            return
        if len(names) != len(arrays):
            names = ["result", *(f"result {i}" for i in range(2, len(arrays) + 1))]
        values = {name: self._copy(array) for name, array in zip(names, arrays, strict=True)}
        path = self._modules[-1][0] if self._modules else ""
        self.steps.append(Step(len(self.steps), direction, path, function, formula, values, parameters, self._depth))

    def _is_new(self, array):
        """Whether the array is unseen or has changed since."""
        seen, copy = self._known.get(id(array), (None, None))
        return seen is None or not np.array_equal(array, copy, equal_nan=array.dtype.kind == "f")

    def _copy(self, array):
        """A copy of the array, because layers may change it in place later."""
        if self._is_new(array):
            copy = array.copy()
            copy.flags.writeable = False
            self._known[id(array)] = array, copy
        return self._known[id(array)][1]


def _own_step(module):
    """Name and formula of a computation that a module does itself, outside all functions and submodules, if known."""
    if isinstance(module, AddNorm):
        return "residual", f"x + Dropout(sublayer({'LayerNorm(x)' if module.norm_first else 'x'}))"
    if isinstance(module, InputEmbedding) and module.scale != 1:
        return "scale", "√d_model · embedding"
    return None


def _arrays(result):
    """The arrays and numbers among the results of a function."""
    results = result if isinstance(result, tuple) else (result,)
    return [np.asarray(value) for value in results if isinstance(value, np.ndarray | float | np.floating)]


# --- formulas, read from the docstrings ------------------------------------------------------------------------------


def _formula(thing):
    """The formula of a function or class, from its docstring: the first indented line; without one, the first of: a
    sentence with dx = …, for a class the formula after the arrow, the text after the colon of the first sentence, the
    first sentence."""
    text = inspect.cleandoc(thing.__doc__ or "")
    if indented := re.search(r"^ +(\S.*)$", text, re.MULTILINE):
        return _tidied(indented[1])
    summary, *rest = (" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    summary = re.split(r"\.(?: (?=[A-Z])|$)", _tidied(summary), maxsplit=1)[0]
    gradient = next((found for found in map(_gradient, [summary, *rest]) if found), None)
    made = re.search(r"-> +(\w.*)", text)  # after the arrow is a shape in parentheses or a formula
    if gradient:
        return gradient
    if isinstance(thing, type) and made:
        return _tidied(made[1])
    return summary.partition(": ")[2] or summary


def _gradient(sentence):
    """The dx = … in a sentence, without the words after it; None if there is none."""
    found = re.search(r"\bd\w+ = [^:\"]*", sentence)
    return _tidied(re.split(r"\.(?: |$)", found[0])[0]) if found else None


def _tidied(text):
    """The text without citations and with single blanks."""
    return " ".join(re.sub(r" \([A-Z][^()]*\d{4}[^()]*\)", "", text).split()).rstrip(".,")


def _names_of_results(function):
    """The names of the results in the docstring, in order: `->  y (..., D), hidden (..., F)`; () without names."""
    arrow = re.findall(r"^.*->(.*(?:\n.*\S.*)*)", function.__doc__ or "", re.MULTILINE)
    return tuple(re.findall(r"(\w+)(?: [A-Z])? \(", arrow[-1])) if arrow else ()
