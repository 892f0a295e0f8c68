"""The outputs of executed notebooks as text, and whether two executions printed the same."""

import math
import re

AROUND = 120  # characters of a long line that a message shows

_NUMBER = re.compile(r"[-+−]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_CLOCK = re.compile(r"\s*Time\b")


def pieces(outputs):
    """[(kind, text)] of a cell's outputs, the kinds named as in the file. A picture's own text/plain says nothing."""
    pieces = []
    for output in outputs:
        if output["output_type"] == "stream":
            pieces.append((output["name"], output["text"]))
        elif output["output_type"] == "error":
            pieces.append(("error", f"{output['ename']}: {output['evalue']}"))
        else:
            data = output["data"]
            picture = any(kind.startswith("image/") for kind in data)
            pieces += [(kind, data[kind]) for kind in sorted(data) if not (picture and kind == "text/plain")]
    return pieces


def text_difference(a, b, exact=False):
    """None, or the first line that differs."""
    a, b = (["" if _CLOCK.match(line) else line for line in text.splitlines()] for text in (a, b))
    if len(a) != len(b):
        return f"{len(a)} lines of output, now {len(b)}"
    for x, y in zip(a, b, strict=True):
        if x != y and (exact or not _close(x, y)):
            return "{!r}, now {!r}".format(*_around_difference(x.strip(), y.strip()))
    return None


def _around_difference(a, b):
    """Two lines, of long ones only what is around their first difference: a page of HTML can be one line."""
    if max(len(a), len(b)) <= 2 * AROUND:
        return a, b
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, same - AROUND // 2)
    return tuple("…" * (start > 0) + line[start : start + AROUND] + "…" for line in (a, b))


def _close(a, b):
    """Are two lines the same words with nearly the same numbers between them? Blanks do not count."""
    words = [["".join(part.split()) for part in _NUMBER.split(line)] for line in (a, b)]
    if words[0] != words[1]:
        return False
    numbers = ([found.replace("−", "-") for found in _NUMBER.findall(line)] for line in (a, b))
    return all(_close_numbers(x, y) for x, y in zip(*numbers, strict=True))


def _close_numbers(a, b):
    x, y = float(a), float(b)
    if "." not in a + b and "e" not in (a + b).lower():
        return math.isclose(x, y, rel_tol=1e-3)  # whole numbers
    decimals = max(_decimals(a), _decimals(b))
    return math.isclose(x, y, rel_tol=1e-3, abs_tol=max(1e-6, 1.000001 * 10.0**-decimals))


def _decimals(text):
    """The place of the last digit: 2 in 0.25, 5 in 2.5e-4. A number as "1." may have lost its zeros: 6."""
    mantissa, _, exponent = text.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return (digits or 6) - int(exponent or 0)
