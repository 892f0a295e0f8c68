"""The smallest failing call with its arguments, and the expected result beside the answer's: what is told when nothing
is known about a mistake."""

from inspect import signature

import numpy as np

from ..exercise import call
from .describe.partial import number
from .words import WIDTH

_NUMBERS = 8  # of an array in a message
_PADDING = -1  # fills up the rows of ids of different lengths in a view


def smallest_call(found):
    """The text about the smallest failing call that returns something of the right shape, or "" if there is none."""
    failing = [f for f in found if f.wrong and f.results[f.wrong[0]].shape == f.expected[f.wrong[0]].shape]
    finding = min(failing, key=_size, default=None)
    draw = finding and finding.draw(finding.wrong[0])
    if not failing or (draw.is_coded and finding.exercise.drive is not call and not np.any(draw.expected == _PADDING)):
        return ""
    index = tuple(int(n) for n in np.argwhere(draw.wrong)[0])
    given, name = finding.arguments, draw.name
    calls = finding.case.arguments[0] if len(finding.case.arguments) == 1 else None
    if isinstance(calls, list) and len(index) == 1 and index[0] < len(calls):  # one number for each of many calls
        given = dict(zip(signature(finding.exercise.reference).parameters, calls[index[0]], strict=False))
        row = index
    else:
        row = index[:-1]
        begin = [slice(index[-1] - _NUMBERS // 2, None)] if index and index[-1] >= _NUMBERS else []
        at = [*map(str, row), *(f"{part.start}:" for part in begin)]
        name, row = f"{draw.name}[{', '.join(at)}]" if at else draw.name, (*row, *begin)
    shown = ([_written(array[row], digits) for array in (draw.expected, draw.actual)] for digits in (5, 9, 17))
    expected, got = next((two for two in shown if two[0] != two[1]), ("", ""))
    with_numbers, with_shapes = (_call(finding, given, most) for most in (_NUMBERS, 0))
    shown = with_numbers if len(with_numbers) <= 2 * WIDTH else with_shapes
    label = finding.case.label if all(f.right for f in found if not f.case.label) else ""
    label = f" ({label})" if label and label not in shown else ""
    return expected and f"In the call {shown}{label}:\n    {name} must be {expected}\n    yours is {got}"


def _size(finding):
    return sum(np.size(value) for value in finding.arguments.values() if isinstance(value, np.ndarray))


def _call(finding, given, most):
    """The call, with arrays of up to so many numbers as they are and the shapes of larger ones."""
    parts, own = [], signature(finding.exercise.reference).parameters
    for name, value in given.items():
        if name not in own and isinstance(value, bool):
            continue  # of the drive alone
        if isinstance(value, np.ndarray) and value.size > most:
            parts.append(f"{name} of shape {value.shape}")
        elif isinstance(value, np.ndarray | int | float | str | bool | None):
            parts.append(f"{name}={_written(value)}")
        elif isinstance(value, list | tuple | dict) and finding.exercise.drive is call:
            is_short = not isinstance(value, dict) and len(str(value)) <= WIDTH // 2
            parts.append(f"{name}={value}" if is_short else f"{name} of {len(value)} entries")
    return f"{finding.exercise.name}({', '.join(parts)})"


def _written(value, digits=5):
    if not isinstance(value, np.ndarray | np.generic) or not value.ndim:
        is_number = isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biuf"
        return number(value[()], digits) if is_number else repr(value)
    value = value[value != _PADDING] if value.dtype.kind in "iu" else value
    if value.ndim > 1 and value.size <= _NUMBERS:
        return f"[{', '.join(_written(part, digits) for part in value)}]"
    shown = ", ".join(number(n, digits) for n in value.ravel()[:_NUMBERS])
    return f"[{shown}{', …' if value.size > _NUMBERS else ''}]"
