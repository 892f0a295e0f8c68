"""The messages of the child to its parent: JSON, then the bytes of arrays. No pickle: the child is not trusted."""

import json
import math
import re
import struct

import numpy as np

HEADER = struct.Struct("<II")  # bytes of JSON, bytes of arrays
ENDED = struct.Struct("<if")  # what the process that forks says at the end of another: exit code, processor seconds
MOST_JSON, MOST_BYTES = 1 << 20, 8 << 20
CHANGEABLE = (np.ndarray, list, dict)  # the kinds of arguments that come back after a call
_MOST_THINGS, _MOST_NESTED = 20_000, 8
_DTYPES = {
    np.dtype(name).str for name in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
}
_NO_NUMBERS = re.compile(r"[<>|][USOVmM]\d{0,9}(\[\w+\])?")  # dtypes of which only the name matters


class TooLarge(ValueError):
    """A result larger than any exercise asks for."""


def pack(message, output=None, after=()):
    """A message, the output of an answer and its arguments after the call, as bytes. Raises TooLarge."""
    arrays = _Arrays()
    trees = {"output": arrays.tree(output), "after": [arrays.tree(value) for value in after]}
    text = json.dumps(message | trees).encode()
    if len(text) > MOST_JSON:
        raise TooLarge("the result is too large")
    return HEADER.pack(len(text), arrays.size) + text + b"".join(arrays.parts)


def unpack(text, content):
    """The message, with the original "output" and the list "after". ValueError for bytes that are no message, or that
    would take more memory than `pack` allows."""
    try:
        message = json.loads(text, object_hook=_Values(content).value)
        if isinstance(message["after"], list) and "output" in message:
            return message
    except (KeyError, TypeError, IndexError, OverflowError, RecursionError, AttributeError) as error:
        raise ValueError(f"not a message: {error}") from None
    raise ValueError("not a message")


class _Arrays:
    """The parts of a result: its structure, with an object of one key for what JSON lacks, such as {"a": [dtype, shape,
    start]} for an array, and the arrays' bytes."""

    def __init__(self):
        self.parts, self.size, self.things = [], 0, 0

    def tree(self, value, depth=0):
        self.things += 1
        if self.things > _MOST_THINGS or depth > _MOST_NESTED:
            raise TooLarge("the result is too large: too many things in lists")
        kind = type(value)
        if value is None or kind in (bool, float, str) or (kind is int and abs(value) < 1 << 63):
            return value
        if isinstance(value, list | tuple):
            parts = [self.tree(part, depth + 1) for part in value]
            return parts if isinstance(value, list) else {"t": parts}
        if kind is dict:
            return {"d": [[self.tree(part, depth + 1) for part in pair] for pair in value.items()]}
        if isinstance(value, np.ndarray | np.generic):
            if np.ma.is_masked(value):
                return {"m": []}
            array = np.asarray(value)
            if self.size + array.nbytes > MOST_BYTES:  # before anything copies it
                raise TooLarge(f"the result is too large: an array of shape {array.shape}")
            if array.dtype.kind == "f" and array.dtype.itemsize > 8:  # longdouble
                array = array.astype(np.float64)
            array = array.astype(array.dtype.newbyteorder("="), copy=False)
            if array.dtype.str in _DTYPES:
                self.parts.append(array.tobytes())
                self.size += array.nbytes
                said = [array.dtype.str, list(array.shape), self.size - array.nbytes]
                return {"a": said} if isinstance(value, np.ndarray) else {"n": said}
            if array.ndim:
                return {"o": array.dtype.str}
        return {"x": kind.__name__[:60]}


class _Values:
    """The reverse of _Arrays, for bytes that cannot be trusted: several arrays may name the same bytes."""

    def __init__(self, content):
        self.content, self.size, self.things = content, 0, 0

    def value(self, said):
        """What an object of JSON stands for."""
        self.things += 1
        if self.things > _MOST_THINGS:
            raise ValueError("not a result: too many things")
        if len(said) != 1:  # the message itself, or a crash in it
            return said
        ((kind, inside),) = said.items()
        if kind == "t":
            return tuple(inside)
        if kind == "d":
            return dict(inside)
        if kind == "a":
            return self._array(*inside)
        if kind == "n":  # a number, whose kind a message may name
            return self._array(*inside)[()]
        if kind == "m":
            return np.ma.masked_all(1)
        if kind == "o" and _NO_NUMBERS.fullmatch(inside):
            return np.empty(0, inside)
        if kind == "x":
            return ... if inside == "ellipsis" else type(plain_text(inside, 60) or "thing", (), {})()
        raise ValueError("not a result")

    def _array(self, dtype, shape, start):
        known = dtype in _DTYPES and 0 <= len(shape) <= 64
        if not known or not all(type(n) is int and 0 <= n < 1 << 40 for n in [*shape, start]):
            raise ValueError("not an array")
        dtype, count = np.dtype(dtype), math.prod(shape)
        self.size += count * dtype.itemsize
        if start + count * dtype.itemsize > len(self.content) or self.size > MOST_BYTES:
            raise ValueError("not an array: bytes are missing")
        return np.frombuffer(self.content, dtype, count, start).reshape(shape).copy()


def plain_text(text, most=2000):
    """Untrusted text made printable: a string of limited length without control characters."""
    text = str(text)[: 2 * most]
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)[:most]


def one_line(text, most=120):
    """Untrusted text as one printable line, with single spaces."""
    return " ".join(plain_text(str(text)[: 4 * most], 4 * most).split())[:most]
