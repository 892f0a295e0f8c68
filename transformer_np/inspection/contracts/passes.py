"""Rules of the forward and the backward pass. A rule yields a message for everything that breaks it: what happened,
where, and what to do next."""

import copy
from functools import partial

import numpy as np

from ..gradcheck import check_gradients
from .case import as_dtype, near, same


def forward_returns_an_array(case):
    output = case.fresh()(*as_dtype(case.inputs, case.dtype), **as_dtype(case.options, case.dtype))
    first = output[0] if isinstance(output, tuple) and output else output
    if first is None:
        yield "forward returned None. Does it end without `return`?"
    elif not isinstance(first, np.ndarray | float):
        yield f"forward returned a {type(first).__name__}. Return a NumPy array, or a tuple that begins with one."
    elif isinstance(first, np.ndarray) and first.dtype.kind != "f":
        yield f"forward returned {first.dtype}. A gradient needs floats: return the dtype of the parameters."
    elif not np.isfinite(first).all():
        yield "forward returned NaN or infinity for finite inputs. Look for a division by 0, a log(0) or a large exp."


def backward_returns_a_gradient_for_each_input(case):
    module = case.fresh()
    output = case.forward(module)
    gradients, floats = case.backward(module, case.dout(output)), case.floats()
    if floats and not gradients:
        yield "backward returned None. Return dx, the gradient of the loss with respect to x: is `return` missing?"
    elif len(gradients) != len(floats):
        count = f"{len(floats)}, not {len(gradients)}"
        yield f"backward must return a gradient for each array of floats, in the order of forward's arguments: {count}."
    else:
        for (i, x), gradient in zip(floats.items(), gradients, strict=True):
            if np.shape(gradient) != x.shape:
                yield f"the gradient of input {i} has shape {np.shape(gradient)}, but the input has {x.shape}."


def forward_keeps_the_dtype(case):
    for dtype in (np.dtype("float32"), np.dtype("float64")):
        output = case.forward(case.fresh(dtype), dtype=dtype)
        if output.dtype != dtype:
            yield f"forward returned {output.dtype} for {dtype} inputs and parameters. {OTHER_DTYPE}"


def backward_keeps_the_dtype(case):
    for dtype in (np.dtype("float32"), np.dtype("float64")):
        module = case.fresh(dtype)
        output = case.forward(module, dtype=dtype)
        for i, gradient in zip(case.floats(), case.backward(module, case.dout(output)), strict=True):
            if gradient.dtype != dtype:
                yield f"the gradient of input {i} is {gradient.dtype} for a {dtype} dout. {OTHER_DTYPE}"


OTHER_DTYPE = (
    "Make arrays and random numbers in between in the dtype of x, such as np.zeros(shape, x.dtype). np.sqrt(3) is a "
    "float64 too: write 3**0.5."
)


def arguments_are_not_changed(case):
    module = case.fresh()
    inputs = as_dtype(case.inputs, case.dtype)
    before = copy.deepcopy(inputs)
    output = case.first(module(*inputs, **as_dtype(case.options, case.dtype)))
    where = [i for i, x in enumerate(inputs) if isinstance(x, np.ndarray) and not same(x, before[i])]
    if where:
        yield f"forward changed its input {where[0]} in place. Write y = x + …, not x += …, or begin with x = x.copy()."
        return
    dout, shown = case.dout(output), case.dout(output)
    kept = {name: array.copy() for name, array in module.intermediates().items()}
    case.backward(module, dout)
    if not same(dout, shown):
        yield "backward changed dout in place. Another part of the model may still need it: begin with dout.copy()."
    if any(isinstance(x, np.ndarray) and not same(x, before[i]) for i, x in enumerate(inputs)):
        yield "backward changed an input of forward in place. Compute with a copy."
    after = module.intermediates()
    for name in kept:
        if name in after and not same(kept[name], after[name]):
            yield f"backward changed the kept array {name!r} in place. A second backward would use other numbers."


def gradients_accumulate(case):
    module = case.random()
    once = copy.deepcopy(module)
    case.step(once)
    for parameter in module.learned().values():
        parameter.grad = 3
    case.step(module)
    for (name, parameter), other in zip(module.learned().items(), once.learned().values(), strict=True):
        if not near(parameter.grad - 3, other.grad, case.dtype):
            added = "overwrites" if near(parameter.grad, other.grad, case.dtype) else "does not simply add to"
            why = "a parameter that is used twice gets both terms, and a step over several batches adds them up"
            yield f"backward {added} the gradient of {name}. Add to it, self.{name}.grad += …: {why}."


def gradients_are_right(case):
    if not case.module.learned() and not case.floats():
        return
    inputs, how = as_dtype(case.inputs, np.float64), {"rng": case.rng, "max_entries": case.max_entries}
    report = check_gradients(case.random(), *inputs, **how, **as_dtype(case.options, np.float64))
    for entry in report.entries:
        if entry.error > report.tolerance:
            yield wrong_gradient(entry, case)


def wrong_gradient(entry, case):
    """A wrong gradient in words, with a guess at the mistake."""
    place = ", ".join(map(str, entry.index))
    ours, right = entry.analytic, entry.numeric
    numbers = f"backward gives {ours:.6g}, differences give {right:.6g}"
    text = f"the gradient of {entry.name} is wrong at ({place}): {numbers}."
    if again := _called_again(case):
        why = "keeps the arrays of its last call alone: make a layer for each call; they may share a Parameter"
        return f"{text} self.{again} is called several times in one forward, and {why}."
    if not np.isfinite(ours):
        return f"{text} Look for a division by 0."
    if right == 0:
        return f"{text} The output does not depend on it: does forward use a copy that was made in __init__?"
    is_input = entry.name.startswith("input")
    if ours == 0:
        return f"{text} A path from the output is missing.{'' if is_input else f' Is self.{entry.name}.grad added to?'}"
    ratio = ours / right
    rows = {n for x in case.inputs if isinstance(x, np.ndarray) and x.ndim > 1 for n in (len(x), x[..., 0].size)}
    if abs(ratio + 1) < 1e-4:
        return f"{text} Only the sign is wrong."
    for n in rows - {1}:
        if abs(ratio * n - 1) < 1e-4:
            return f"{text} It is {n} times too small: is there a mean where a sum belongs?"
        if abs(ratio / n - 1) < 1e-4:
            return f"{text} It is {n} times too large: is there a sum where a mean belongs?"
    if abs(ratio) > 0.4 and abs(2 * ratio - round(2 * ratio)) < 1e-4:
        return f"{text} That is {ratio:g} times the right value."
    ids = [x for x in case.inputs if isinstance(x, np.ndarray) and x.dtype.kind in "iu"]
    if not is_input and any((x == entry.index[0]).sum() > 1 for x in ids):
        several = f"The id {entry.index[0]} comes several times, and `grad[ids] += …` counts it once"
        return f"{text} {several}: F.embedding_backward adds all."
    return text


def _called_again(case):
    """The name of a module inside that one forward calls several times, or None."""
    module, calls = case.fresh(), []
    for name, inner in [*module.named_modules()][1:]:
        inner.forward = partial(_counted, calls, name, inner.forward)
    case.forward(module)
    return next((name for name in calls if calls.count(name) > 1), None)


def _counted(calls, name, forward, *inputs, **options):
    calls.append(name)
    return forward(*inputs, **options)
