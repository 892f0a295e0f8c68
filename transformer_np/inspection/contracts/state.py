"""Rules of what a layer holds: names, modes, random numbers, copies, and what is left after a refused call."""

import copy
import pickle
import sys

import numpy as np

from ...module import Module, Parameter
from ..gradcheck import is_float
from .case import arrays_in, near, refusal, same

# --- names and state -------------------------------------------------------------------------------------------------


def parameters_have_names(case):
    for path, part in case.module.named_modules():
        for name, value in vars(part).items():
            if name not in ("_kept", "_changes") and is_nameless(value):
                what = f"{path + '.' if path else ''}{name} is a {type(value).__name__} with parameters without names"
                advice = "Make each Parameter an attribute of its own; modules may be attributes or the items of a list"
                yield f"{what}: no optimizer trains them, and no file holds them. {advice}."
        for name, value in vars(type(part)).items():
            if isinstance(value, Parameter | Module):
                yield f"{name} belongs to the class {type(part).__name__}: write self.{name} = … in __init__ instead."


def a_step_makes_no_parameters(case):
    module = case.fresh()
    named = [name for name, _ in module.named_parameters()]
    plain = {array.shape: name for name, array in arrays_in(module).items() if is_float(array)}
    before = set(arrays_in(module))
    case.forward(module)
    before |= set(arrays_in(module))
    case.step(module)
    if [name for name, _ in module.named_parameters()] != named:
        yield "a forward or backward pass makes new parameters. Make all of them in __init__, for the optimizer."
    for name, array in arrays_in(module).items():
        if name not in before and array.shape in plain:
            own = f"self.{plain[array.shape]}"
            advice = f"Write {own} = Parameter(…), and add to {own}.grad."
            yield f"backward stores a gradient in self.{name}, where no optimizer looks for it. {advice}"


def is_nameless(value):
    """Whether a Parameter or Module is in a container where no name leads to it; a list gives names to modules."""

    def holds(value):
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple | set) else ()
        return isinstance(value, Parameter | Module) or any(map(holds, items))

    if isinstance(value, Parameter | Module):
        return False
    return holds([item for item in value if not isinstance(item, Module)] if isinstance(value, list) else value)


def state_dict_holds_all(case):
    """What a few steps change is in the state, or a checkpoint would lose it."""
    trained, loaded = case.random(), case.fresh()
    for factor in (1, 2):
        case.forward(trained, [factor * x if is_float(x) else x for x in case.inputs])
    before = {name: array.copy() for name, array in arrays_in(loaded).items()}
    loaded.load_state_dict(trained.state_dict())
    if not same(case.forward(loaded.eval()), case.forward(trained.eval())):
        after = arrays_in(trained)
        changed = [f"self.{name}" for name, array in before.items() if name in after and not same(array, after[name])]
        what = f"{' and '.join(changed) or 'a value'} changes in forward, but is no Parameter, so no file holds it"
        yield f"after some training, a copy with its state_dict gives another output: {what}."


# --- modes and random numbers ----------------------------------------------------------------------------------------


def eval_keeps_nothing(case):
    module = case.fresh().eval()
    before = arrays_in(module)
    output = case.forward(module)
    for name, array in arrays_in(module).items():
        if array is not before.get(name):
            short = name.rpartition(".")[2]
            advice = f"Write self.keep({short}=…) in forward and self.kept({short!r}) in backward"
            why = "they keep nothing in eval(), and refuse a backward without forward"
            yield f"forward stores an array in self.{name} also in eval(). {advice}: {why}."
    if not same(case.forward(module), output):
        yield "two forward passes in eval() differ. Draw random numbers only `if self.training`."


def eval_can_keep(case):
    module = case.fresh().eval(keep=True)
    error = refusal(lambda: case.step(module))
    if error is not None:
        yield f"backward after eval(keep=True) raised {said(error)}. Keep what it needs with self.keep(…)."


def no_backward_of_an_earlier_forward(case):
    """After a forward in eval(), backward may refuse, or it needs nothing; it may not use what an earlier one kept."""
    module = case.random()
    output = case.forward(module)
    case.forward(module.eval(), [x + 1 if is_float(x) else x for x in case.inputs])
    error = refusal(lambda: case.backward(module, case.dout(output)))
    if error is not None and not isinstance(error, RuntimeError):
        yield f"backward after a forward in eval() raised {said(error)}. self.kept(…) raises an error that explains it."
    elif error is None and has_gradient(module):
        what = "backward after a forward in eval() still gave gradients, of values that were stored elsewhere"
        yield f"{what}. Fetch them with self.kept(…), which refuses."


def randomness_is_its_own(case):
    one, other = case.fresh(), case.fresh()
    state = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(1)  # noqa: NPY002
        first = case.forward(one)
        np.random.seed(2)  # noqa: NPY002
        second = case.forward(other)
    finally:
        np.random.set_state(state)  # noqa: NPY002
    if not same(first, second):
        advice = "Draw from a Generator of the layer's own, self.rng = np.random.default_rng(rng), not from np.random."
        yield f"two copies with the same state give different outputs. {advice}"
    elif not one.generators() and not same(case.forward(one), first):
        yield "the layer draws random numbers, but not from self.rng, where gradient checks and checkpoints look."


# --- copies ----------------------------------------------------------------------------------------------------------


def by_pickle(value):
    return pickle.loads(pickle.dumps(value))


def copies_stand_alone(case):
    for way, duplicate in (("copy.deepcopy", copy.deepcopy), ("pickle", by_pickle)):
        module = case.random()
        if way == "pickle" and not all(is_importable(type(part)) for _, part in module.named_modules()):
            continue  # Python pickles no class that is defined inside a function, or defined again since
        error = refusal(lambda: duplicate(module))  # noqa: B023
        if error is not None:
            advice = "Hold only arrays, numbers, modules and functions that have a name: no lambda, no open file."
            yield f"{way} raised {said(error)}. {advice}"
            continue
        yield from copied(case, way, module, duplicate(module))
        yield from copied_with_its_optimizer(case, way, duplicate)


def is_importable(cls):
    return getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is cls


def copied(case, way, module, other):
    expected = case.forward(copy.deepcopy(module))
    if not same(case.forward(copy.deepcopy(other)), expected):
        yield f"the output of a copy by {way} differs from that of the original."
    for parameter in other.parameters():
        parameter.data = parameter.data + 1
    if not same(case.forward(copy.deepcopy(module)), expected):
        yield f"a change to the parameters of a copy by {way} changes the original: both hold the same array."


def copied_with_its_optimizer(case, way, duplicate):
    from ...training import SGD

    module = case.random()
    if not module.learned():
        return
    module, optimizer = duplicate((module, SGD(module.learned().values(), lr=1.0)))
    before = module.state_dict()
    for parameter in module.learned().values():
        parameter.grad = 1
    optimizer.step()
    still = [name for name, parameter in module.learned().items() if same(parameter.data, before[name])]
    if still:
        yield f"a copy by {way} of layer and optimizer together does not learn: a step leaves {still[0]} as it was."


# --- what is refused -------------------------------------------------------------------------------------------------


def wrong_inputs(case):
    """(in words, the inputs, whether they must be refused: some layers take any number of features)"""
    for i, x in enumerate(case.inputs):
        if is_float(x) and x.ndim:
            wider = np.concatenate([x, x[..., :1]], axis=-1)
            yield f"input {i} of shape {wider.shape}", [*case.inputs[:i], wider, *case.inputs[i + 1 :]], False
        elif isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.ndim:
            for bad in (-1, 10**9):
                ids = x.astype(np.int64)
                ids.flat[-1] = bad
                yield f"the id {bad} in input {i}", [*case.inputs[:i], ids, *case.inputs[i + 1 :]], True


def wrong_ids_are_refused(case):
    for words, inputs, must in wrong_inputs(case):
        if must and refusal(lambda: case.forward(case.fresh(), inputs)) is None:  # noqa: B023
            yield f"forward accepted {words}. NumPy reads a negative index from the end: F.embedding refuses it."


def a_refused_call_leaves_nothing(case):
    for words, inputs, _ in wrong_inputs(case):
        module = case.random()
        output = case.forward(module)
        if refusal(lambda: case.forward(module, inputs)) is None:  # noqa: B023
            continue
        error = refusal(lambda: case.backward(module, case.dout(output)))  # noqa: B023
        if error is None and has_gradient(module):
            advice = "Keep them with self.keep(…) and fetch them with self.kept(…)."
            yield f"forward refused {words}, but backward then answered with values of an earlier forward. {advice}"
            return
        if error is not None and not isinstance(error, RuntimeError):
            advice = "Fetch what it needs with self.kept(…), which says that there is no forward."
            yield f"after a forward that refused {words}, backward raised {said(error)}. {advice}"
            return


def a_wrong_dout_is_refused(case):
    output = case.forward(case.fresh())
    if not output.ndim:
        return
    *lead, last = output.shape
    for shape in sorted({(1, *lead, last), (*lead, last + 1), (*lead, 1), (1,) * output.ndim} - {output.shape}):
        module = case.random()
        case.forward(module)
        error = refusal(lambda: case.backward(module, np.ones(shape, case.dtype)))  # noqa: B023
        advice = "Compare dout.shape with the shape of the output first."
        if error is None:
            what = f"a dout of shape {shape} for an output of {output.shape}, and its gradients mean nothing"
            yield f"backward accepted {what}. {advice}"
            return
        if has_gradient(module):
            yield f"backward refused a dout of shape {shape}, but only after it had added gradients. {advice}"
            return


def has_gradient(module):
    return any(parameter.grad.any() for parameter in module.learned().values())


def said(error):
    return f"{type(error).__name__}: {error}"


# --- the rows of a batch ---------------------------------------------------------------------------------------------


def rows_do_not_mix(case):
    module = case.random().eval()
    whole = case.forward(module)
    arrays = [x for x in case.inputs if isinstance(x, np.ndarray)]
    if len(arrays) < len(case.inputs) or not whole.ndim or any(len(x) != len(whole) or len(x) < 2 for x in arrays):
        return
    by_rows = {k: x for k, x in case.options.items() if isinstance(x, np.ndarray) and x.shape[:1] == whole.shape[:1]}
    if any(x.shape == 2 * whole.shape[:1] for x in by_rows.values()):  # (B, S), or a mask (T, S) of as many tokens
        return
    for row in range(len(whole)):
        options = case.options | {name: x[row : row + 1] for name, x in by_rows.items()}
        alone = case.forward(module, [x[row : row + 1] for x in case.inputs], options=options)
        if alone.shape != whole[row : row + 1].shape or not near(alone, whole[row : row + 1], case.dtype):
            advice = "Look for a sum, a mean or a softmax over the axis of the batch."
            yield f"row {row} of the batch gives another output alone than beside the others. {advice}"
            return


def the_future_is_hidden(case):
    module = case.random().eval()
    whole = case.forward(module)
    place = max((i for i, x in enumerate(case.inputs) if isinstance(x, np.ndarray) and x.ndim > 1), default=None)
    if place is None:
        yield "no input has the axes (batch, length), so there is no future to hide. Pass a batch of texts."
        return
    tokens = case.inputs[place]
    for t in range(1, tokens.shape[1]):
        changed = tokens.copy()
        another = np.where(tokens[:, t] == tokens.min(), tokens.max(), tokens.min())
        changed[:, t] = tokens[:, t] + 1 if is_float(tokens) else another
        other = case.forward(module, [*case.inputs[:place], changed, *case.inputs[place + 1 :]])
        if not near(other[:, :t], whole[:, :t], case.dtype):
            yield f"a change of token {t} changes the output before it. Hide the future with masks.causal_mask(T)."
            return
