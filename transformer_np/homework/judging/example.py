"""The smallest failing call with its arguments, and the expected result beside the answer's: what is told when nothing
is known about a mistake."""

from inspect import signature

import numpy as np

from ..exercise import call
from .compare import close
from .describe.partial import number, place

MOST_NUMBERS = 8  # of an array in a message
LONG = 200  # letters of a call, with which arrays are told by their shapes
PADDING = -1  # fills up the rows of ids of different lengths in a view


def smallest_call(found):
    """The text about the smallest failing call that returns something of the right shape, or "" if there is none."""
    is_plain_right = all(f.right for f in found if not f.case.label)
    failing = [f for f in found if f.wrong and f.results[f.wrong[0]].shape == f.expected[f.wrong[0]].shape]
    if not failing:
        return ""
    finding = min(failing, key=lambda f: sum(np.size(value) for value in f.arguments.values() if _is_array(value)))
    i = finding.wrong[0]
    draw = finding.draw(i)
    wrong = np.argwhere(draw.wrong)
    is_list = finding.exercise.drive is call or np.any(finding.expected[i] == PADDING)
    if not len(wrong) or (draw.is_coded and not is_list):
        return ""
    index = tuple(int(n) for n in wrong[0])
    calls = _own_call(finding, index)
    row, pair = index[:-1], (finding.expected[i], finding.results[i])
    begin = max(0, index[-1] - MOST_NUMBERS // 2) if index and index[-1] >= MOST_NUMBERS else 0
    parts = [array[index] if calls else array[row][begin:] if index else array for array in pair]
    shown = ([_written(part, digits) for part in parts] for digits in (5, 9, 17))  # they may differ in the last ones
    expected, got = next((two for two in shown if two[0] != two[1]), ("", ""))
    if expected == got:
        return ""
    if calls:
        return f"{calls} must be {expected}; yours is {got}."
    at = [*map(str, row), *([f"{begin}:"] if begin else [])]
    where = f"{draw.name}[{', '.join(at)}]" if at else draw.name
    named = f" ({place(draw, index).rpartition(', ')[0]})" if row and place(draw, index)[:1] != "[" else ""
    own = finding.tried.output if finding.exercise.drive is call and finding.exercise.view else None
    is_changed = isinstance(own, np.ndarray) and not close(own, finding.results[i])
    note = "\nNumbers without a meaning are shown as 0." if is_changed else ""
    shown = _call(finding, is_plain_right)
    return f"In the call {shown}:\n    {where}{named} must be {expected}\n    yours is {got}{note}"


def _own_call(finding, index):
    """The call for one number, if the case has a list of calls; ""."""
    calls = finding.case.arguments[0] if len(finding.case.arguments) == 1 else None
    if not isinstance(calls, list) or len(index) != 1 or index[0] >= len(calls):
        return ""
    names = signature(finding.exercise.reference).parameters
    given = zip(names, calls[index[0]], strict=False)
    return f"{finding.exercise.name}({', '.join(f'{name}={_written(value)}' for name, value in given)})"


def _call(finding, is_label_told):
    shown = _call_with(finding, is_label_told, MOST_NUMBERS)
    return shown if len(shown) <= LONG else _call_with(finding, is_label_told, 0)


def _call_with(finding, is_label_told, most_numbers):
    """The call, with arrays of up to so many numbers as they are and the shapes of larger ones."""
    parts, is_own = [], finding.exercise.drive is call  # or else lists are what the answer's objects are made from
    own = signature(finding.exercise.reference).parameters
    for name, value in finding.arguments.items():
        if isinstance(value, bool) and name not in own:
            continue  # of the drive alone
        if _is_array(value) and np.size(value) > most_numbers:
            parts.append(f"{name} of shape {np.shape(value)}")
        elif _is_array(value) or isinstance(value, int | float | str | bool | None):
            parts.append(f"{name}={_written(value)}")
        elif isinstance(value, list | tuple | dict) and is_own:
            is_short = not isinstance(value, dict) and len(value) <= MOST_NUMBERS and len(str(value)) < 60
            parts.append(f"{name}={value}" if is_short else f"{name} of {len(value)} entries")
    is_label_told = is_label_told and finding.case.label and finding.case.label not in parts
    label = f" ({finding.case.label})" if is_label_told else ""
    return f"{finding.exercise.name}({', '.join(parts)}){label}"


def _is_array(value):
    return isinstance(value, np.ndarray)


def _written(value, digits=5):
    if isinstance(value, float) and len(repr(value)) <= 12:
        return repr(value)
    value = np.asarray(value)
    if value.ndim == 0:
        return number(value[()], digits) if value.dtype.kind in "biuf" else repr(value[()].item())
    if value.dtype.kind in "iu":
        value = value[value != PADDING]
    if value.ndim > 1 and value.size <= MOST_NUMBERS:
        return f"[{', '.join(_written(part, digits) for part in value)}]"
    shown = ", ".join(number(n, digits) for n in value.ravel()[:MOST_NUMBERS])
    return f"[{shown}{', …' if value.size > MOST_NUMBERS else ''}]"
