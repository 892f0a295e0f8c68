"""What the package asks of every layer and every model, for layers and models of your own."""

import traceback
from dataclasses import dataclass, field
from inspect import Parameter, signature
from itertools import takewhile

import numpy as np

from ...module import Module
from ...support.checks import as_rng, check_at_least, check_choice, check_flag
from . import passes, state
from .case import Case

BASIC = {  # without these no other rule can be asked
    "parameters have names": state.parameters_have_names,
    "forward returns an array": passes.forward_returns_an_array,
    "forward keeps the dtype": passes.forward_keeps_the_dtype,
    "backward returns a gradient for each input": passes.backward_returns_a_gradient_for_each_input,
    "random numbers come from self.rng": state.randomness_is_its_own,
}
RULES = {
    "backward keeps the dtype": passes.backward_keeps_the_dtype,
    "arguments are not changed": passes.arguments_are_not_changed,
    "a step makes no parameters": state.a_step_makes_no_parameters,
    "gradients are added up": passes.gradients_accumulate,
    "gradients are right": passes.gradients_are_right,
    "state_dict holds all that changes": state.state_dict_holds_all,
    "eval() keeps nothing": state.eval_keeps_nothing,
    "eval(keep=True) keeps what backward needs": state.eval_can_keep,
    "no backward of an earlier forward": state.no_backward_of_an_earlier_forward,
    "copies stand alone": state.copies_stand_alone,
    "a refused call leaves nothing": state.a_refused_call_leaves_nothing,
}
BEFORE_GRADIENTS = "arguments are not changed", "gradients are added up"  # else the same mistake shows twice
ADVICE = {  # the layers of the package do this; one that does not is right as long as it gets what it should
    "wrong ids are refused": state.wrong_ids_are_refused,
    "a wrong dout is refused": state.a_wrong_dout_is_refused,
}
OF_A_MODEL = {"rows of a batch do not mix": state.rows_do_not_mix}
OF_A_CAUSAL_MODEL = OF_A_MODEL | {"the future is hidden": state.the_future_is_hidden}


@dataclass
class ContractReport:
    """What was asked, and the answers: `print(report)` shows a line for each rule and each message.

    messages: {rule: what breaks it}; unasked: rules that have to wait until a more basic one is kept
    advice: what would make the layer safer; it breaks no rule
    """

    target: str
    messages: dict[str, list[str]] = field(default_factory=dict)
    unasked: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)

    @property
    def broken(self):
        """The rules that are broken."""
        return [rule for rule, messages in self.messages.items() if messages]

    @property
    def passed(self):
        return not self.broken

    def __str__(self):
        count = f"keeps all {len(self.messages)} rules"
        if not self.passed:
            count = f"breaks {len(self.broken)} rule{'s' if len(self.broken) > 1 else ''}"
        lines = [f"{self.target} {count}"]
        for rule, messages in sorted(self.messages.items(), key=lambda item: not item[1]):  # what is broken first
            lines.append(f"  {'BROKEN' if messages else 'kept  '}  {rule}")
            lines += [f"          {message}" for message in messages]
        if self.unasked:
            lines.append(f"  not asked until these are kept: {', '.join(self.unasked)}")
        return "\n".join(lines + [f"  advice  {text}" for text in self.advice])

    __repr__ = __str__


def check_layer(layer, *inputs, on_fail="raise", rng=0, max_entries=10, **options):
    """Ask a layer of your own what the tests of the package ask of each of its layers.

        check_layer(MyLayer(6, 4), np.random.default_rng(0).normal(size=(2, 3, 6)))

    layer: a Module; inputs: of one forward, in order; options: its keyword arguments, such as mask=…
    on_fail: "raise" an AssertionError that shows the report, or only "return" the report
    max_entries: how many random entries of every array the gradient check compares, or None for all

    The rules: shapes and dtype are kept and arguments left alone; every gradient agrees with finite differences and is
    added to Parameter.grad; train() and eval() differ as they should; copies, pickles and state_dict work; random
    numbers come from self.rng; and a refused call leaves nothing behind. The report also gives advice.

    ->  ContractReport

    Raises TypeError for what is no Module, AssertionError for a broken rule.
    """
    return _check(layer, list(inputs), options, BASIC | RULES, on_fail, rng, max_entries)


def check_model(model, batch, causal=False, on_fail="raise", rng=0, max_entries=3, **options):
    """Ask a model of your own what check_layer asks of a layer, and that the rows of a batch do not mix.

        check_model(MyModel(config), (src, tgt_in))

    batch: the inputs of one forward: an array or a list of ids, a tuple of several inputs, a dictionary, or a batch of
        transformer_np.data. Of the last two, forward gets the fields that have the names of its arguments
    causal: also ask that no token of the last input affects an output before its own position

    The other arguments, the result and the errors are those of check_layer.
    """
    check_flag("causal", causal)
    inputs, more = _inputs_of(model, batch)
    rules = BASIC | RULES | (OF_A_CAUSAL_MODEL if causal else OF_A_MODEL)
    return _check(model, inputs, more | options, rules, on_fail, rng, max_entries)


def _inputs_of(model, batch):
    """The inputs of a forward, as a list and keyword arguments."""
    if isinstance(batch, tuple):
        return list(batch), {}
    if isinstance(batch, list | np.ndarray):
        return [batch], {}
    found = {}
    for name, parameter in signature(model.forward).parameters.items() if isinstance(model, Module) else ():
        if name in batch if isinstance(batch, dict) else hasattr(batch, name):
            found[name] = batch[name] if isinstance(batch, dict) else getattr(batch, name)
        elif parameter.default is Parameter.empty and parameter.kind is Parameter.POSITIONAL_OR_KEYWORD:
            raise TypeError(f"batch has no {name}, which {type(model).__name__}.forward needs")
    names = list(takewhile(found.__contains__, signature(model.forward).parameters))  # the others go by name
    return [found[name] for name in names], {name: value for name, value in found.items() if name not in names}


def _check(module, inputs, options, rules, on_fail, rng, max_entries):
    check_choice("on_fail", on_fail, ("raise", "return"))
    if max_entries is not None:
        check_at_least("max_entries", max_entries, 1)
    name = getattr(module, "__name__", type(module).__name__)
    if isinstance(module, type):
        raise TypeError(f"pass an object of the class, {name}(…), not the class {name} itself")
    if not isinstance(module, Module):
        how = f"write `class {name}(Module)`, with `from transformer_np.module import Module, Parameter`"
        raise TypeError(f"a layer or model is a Module, got {name}: {how}")
    case = Case(module, [_as_input(x) for x in inputs], options, as_rng(rng), max_entries)
    report = ContractReport(name)
    for rule, function in rules.items():
        needed = [*BASIC, *(BEFORE_GRADIENTS if rule == "gradients are right" else ())]
        if any(report.messages.get(other) for other in needed):
            report.unasked.append(rule)
        else:
            report.messages[rule] = _ask(function, case)
    for function in ADVICE.values() if report.passed else ():
        report.advice += _ask(function, case)
    if on_fail == "raise" and not report.passed:
        raise AssertionError(str(report))
    return report


def _ask(function, case):
    """What breaks a rule."""
    messages = []
    try:
        messages.extend(function(case))
    except Exception as error:  # of the user's code
        messages.append(_where(error))
    return messages


def _as_input(x):
    """A list of numbers as an array; a list of arrays, such as a memory per layer, stays one."""
    return np.asarray(x) if isinstance(x, list) and not any(isinstance(item, np.ndarray) for item in x) else x


def _where(error):
    """An error of the user's code in one line, with the last line outside this package."""
    own = __name__.partition(".")[0]
    frames = traceback.walk_tb(error.__traceback__)
    frames = [f for f in frames if f[0].f_globals.get("__name__", "").partition(".")[0] != own]
    said = f"{type(error).__name__}: {error}"
    if not frames:
        return said
    frame, line = frames[-1]
    return f"{frame.f_code.co_name}, line {line}, raised {said}"
