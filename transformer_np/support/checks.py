"""Argument checks whose errors name the argument, the expected value and the actual one."""

import sys
from collections.abc import Iterable
from contextlib import contextmanager
from operator import attrgetter

import numpy as np


def as_float_array(value, name):
    """The value as an array of floats; TypeError for anything else."""
    array = as_array(value, name, "floats")
    if array.dtype.kind != "f":
        kind = array.dtype if isinstance(value, np.ndarray | list | tuple | int | bool) else type(value).__name__
        raise TypeError(f"{name} must be an array of floats, got {kind}")
    return array


def is_masked_array(value):
    """Whether the value is a masked array. NumPy imports np.ma at its first use, which an isolated process may not do.
    So this function does not touch np.ma: before the module is loaded, no masked array exists."""
    module = sys.modules.get("numpy.ma")
    return module is not None and isinstance(value, module.MaskedArray)


def as_array(value, name, kind="numbers"):
    """The value as an array, for an argument that takes lists too; kind: what it holds, for the message.

    Raises TypeError for a ragged list, and for a masked array and a matrix, whose operators mean something else.
    """
    if isinstance(value, np.matrix) or is_masked_array(value):
        raise TypeError(f"{name} must be a plain array of {kind}, got a {type(value).__name__}: pass np.asarray of it")
    try:
        return np.asanyarray(value)  # another subclass, such as a memmap, stays one
    except (ValueError, OverflowError) as error:
        why = "its rows differ in length" if "inhomogeneous" in str(error) else error
        raise TypeError(f"{name} must be an array of {kind}: {why}") from None


def as_ids(ids, size=None, name="ids"):
    """The token ids as an integer array, all in 0 … size − 1 if a size is given.

    Raises TypeError for anything but whole numbers, ValueError for an empty array or an id out of range.
    """
    ids = as_array(ids, name, "whole numbers")
    if ids.size == 0:
        raise ValueError(f"{name} is empty, its shape is {ids.shape}")
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{name} must be whole numbers (token ids), got {ids.dtype}")
    if size is None:
        return ids
    check_at_least("size", size, 1)
    low, high = ids.min(), ids.max()
    if low < 0 or high >= size:
        worst = low if low < 0 else high
        where = tuple(int(i) for i in np.argwhere(ids == worst)[0])
        raise ValueError(f"{name} must lie in 0 … {size - 1}, got {worst} at index {where}")
    return ids


def as_rows(ids, size, name="ids", longest=None):
    """`as_ids` of a batch, (B, T); ValueError for other axes, and for a T above `longest`, the model's max_len."""
    ids = as_ids(ids, size, name)
    if ids.ndim != 2:
        raise ValueError(f"{name} must have the axes (batch, length), got shape {ids.shape}")
    if longest is not None and ids.shape[1] > longest:
        raise ValueError(f"{name} is {ids.shape[1]} tokens long, more than max_len = {longest}")
    return ids


def as_text_ids(ids, name="ids", size=None):
    """The token ids of a whole text, (n,), as an integer array, as `as_ids` does; n may be 0."""
    ids = as_array(ids if isinstance(ids, np.ndarray) else as_list(name, ids, "token ids"), name, "whole numbers")
    if ids.ndim != 1:
        raise ValueError(f"{name} must have the one axis (length,), got shape {ids.shape}")
    return as_ids(ids, size, name) if ids.size else ids.astype(np.intp)


def as_masks(mask, shape):
    """A tuple of masks, from one mask, a tuple of several, or None.

    Each is Boolean (True hides) or float (added to the scores) and broadcasts to the shape of the scores. Raises
    TypeError for anything else, ValueError for a shape that does not broadcast.
    """
    if mask is None:
        return ()
    masks = mask if isinstance(mask, tuple) else (mask,)
    for i, mask in enumerate(masks):
        name = f"mask[{i}]" if len(masks) > 1 else "mask"
        if not isinstance(mask, np.ndarray) or mask.dtype.kind not in "bf" or is_masked_array(mask):
            kind = mask.dtype if type(mask) is np.ndarray else type(mask).__name__
            raise TypeError(f"{name} must be a Boolean array (True = hidden) or a float array (added), got {kind}")
        try:
            fits = np.broadcast_shapes(mask.shape, shape) == tuple(shape)
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(f"{name} of shape {mask.shape} does not broadcast to the scores' shape {tuple(shape)}")
    return masks


MOST = 2**63 - 1  # the largest whole number that an array can hold


def check_at_least(name, value, least):
    """Raise TypeError unless the value is a whole number, ValueError if it is smaller than `least` or over MOST."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be a whole number, got {short(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {short(value)}")
    if value > MOST:
        raise ValueError(f"{name} must be at most {MOST}, got {short(value)}")


def check_all_at_least(least, **values):
    """`check_at_least` for several values, by name."""
    for name, value in values.items():
        check_at_least(name, value, least)


INTERVALS = {  # in the notation of mathematics; a number that is not finite lies in none of them
    "(−∞, ∞)": lambda x: True, "[0, ∞)": lambda x: x >= 0, "(0, ∞)": lambda x: x > 0, "[1, ∞)": lambda x: x >= 1,
    "[0, 1)": lambda x: 0 <= x < 1, "(0, 1)": lambda x: 0 < x < 1, "[0, 1]": lambda x: 0 <= x <= 1,
    "(0, 1]": lambda x: 0 < x <= 1, "[0, 10]": lambda x: 0 <= x <= 10,
}  # fmt: skip
_LARGEST = sys.float_info.max


def check_number(name, value, interval="(−∞, ∞)"):
    """Raise TypeError unless the value is a real number; True and False are not. Raise ValueError unless it is finite
    and in the interval, one of INTERVALS."""
    if type(value) is not float:
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise TypeError(f"{name} must be a number, got {short(value)}")
        value = value.item() if isinstance(value, np.generic) else value
    if not (-_LARGEST <= value <= _LARGEST and INTERVALS[interval](value)):
        bounds = "be finite" if interval == "(−∞, ∞)" else f"lie in {interval}"
        raise ValueError(f"{name} must {bounds}, got {short(value)}")


def check_flag(name, value):
    """Raise TypeError unless the value is True or False: "no" and other objects would silently count as True."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {short(value)}")


def check_typed(name, value, kind, least, interval):
    """Check a value by its annotation: int, at least `least`; float, in the interval; bool, str or another class."""
    if kind is int:
        check_at_least(name, value, least)
    elif kind is float:
        check_number(name, value, interval)
    elif kind is bool:
        check_flag(name, value)
    elif not isinstance(value, kind):
        raise TypeError(f"{name} must be a {'string' if kind is str else kind.__name__}, got {short(value)}")


def as_rng(rng):
    """The Generator of an argument `rng`: the Generator itself, or a new one from a seed; None draws the seed."""
    try:
        if isinstance(rng, np.ndarray) and type(rng) is not np.ndarray:  # np.matrix ends the process
            raise TypeError
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise TypeError(f"rng must be a numpy.random.Generator or a seed, 0 or more, got {short(rng)}") from None


def as_dout(dout, shape, dtype, name="dout"):
    """The gradient of a forward's output; ValueError unless it has the output's shape and dtype."""
    dout = as_float_array(dout, name)
    if dout.shape != tuple(shape) or dout.dtype != dtype:
        right = f"the shape and dtype of the forward's output, {tuple(shape)} and {np.dtype(dtype)}"
        raise ValueError(f"{name} must have {right}; got {dout.shape} and {dout.dtype}")
    return dout


@contextmanager
def refusing(text, kinds=ValueError):
    """Inside the block, an error of a class, or of one of several, becomes a ValueError that begins with this text."""
    try:
        yield
    except kinds as error:
        raise ValueError(f"{text}: {error}") from None


def short(value, most=60):
    """A value on one short line, for an error message."""
    if isinstance(value, int) and abs(value) >= 10**most:  # Python refuses to print thousands of digits
        return f"a number of about {int(value.bit_length() * 0.30103) + 1} digits"
    text = " ".join(repr(value).split())
    return text if len(text) <= most else text[: most - 2] + " …"


def listed(names, separator=", "):
    """The first few names, for a message."""
    return separator.join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "") or "nothing"


def check_kind(name, value, kind):
    """Raise TypeError unless the value is an object of this class, or of one of these classes."""
    if not isinstance(value, kind):
        expected = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
        article = "an" if expected[0] in "AEIOU" else "a"
        raise TypeError(f"{name} must be {article} {expected}, got {short(value)}")


def check_has(name, value, *attributes):
    """Raise TypeError unless the value is an object with these attributes, such as "config" or "config.pad_id"."""
    try:
        attrgetter(*attributes)(value)
    except AttributeError:
        raise TypeError(f"{name} must be an object with .{', .'.join(attributes)}; got {short(value)}") from None


def check_cache(cache, num_blocks, ids):
    """Raise TypeError unless the cache is None or a decoding.DecoderCache, ValueError for other blocks or rows."""
    if cache is None:
        return
    check_has("cache", cache, "ids", "blocks", "extend")
    if len(cache.blocks) != num_blocks:
        raise ValueError(f"cache must be a DecoderCache({num_blocks}), one pair per block; got {len(cache.blocks)}")
    if cache.ids is not None and len(cache.ids) != len(ids):
        how = "cache.select(rows) keeps or repeats rows"
        raise ValueError(f"batch sizes differ: ids {len(ids)}, cache {len(cache.ids)}; {how}")


def as_list(name, values, what):
    """The values as a list; what: each of them, for the message. Raises TypeError for a string and for what cannot be
    iterated over."""
    try:
        if isinstance(values, str):
            raise TypeError
        return list(values)
    except TypeError:
        raise TypeError(f"{name} must be a list of {what}, got {short(values)}") from None


def each_text(name, texts):
    """The texts one by one; TypeError for a single string, and for anything but a string among them."""
    if isinstance(texts, str):
        raise TypeError(f"{name} must be a list of strings, got a single string; put it into a list")
    for text in texts if isinstance(texts, Iterable) else [texts]:
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a list of strings, got {short(text)}")
        yield text


@contextmanager
def expecting(name, what, given):
    """Inside the block, where the argument is read, a value that cannot be read becomes a TypeError that says what it
    must be."""
    try:
        yield
    except (AttributeError, TypeError, ValueError):
        raise TypeError(f"{name} must be a list of {what}, got {short(given)}") from None


def check_axis(axis, ndim):
    """Raise TypeError unless the axis is a whole number, ValueError unless an array of ndim axes has it."""
    if ndim == 0:
        raise ValueError("a single number has no axis; expected an array with at least one")
    check_at_least("axis", axis, -ndim)
    if axis >= ndim:
        raise ValueError(f"axis must be less than {ndim}, the number of axes, got {axis}")


def check_heads(num_heads, d_model):
    """Raise ValueError unless num_heads divides d_model."""
    if d_model % num_heads:
        raise ValueError(f"num_heads must divide d_model, got {num_heads} heads for d_model = {d_model}")


def check_kv_heads(num_kv_heads, num_heads):
    """Raise ValueError unless num_kv_heads divides num_heads, so that equally many heads of queries share each."""
    check_at_least("num_kv_heads", num_kv_heads, 1)
    if num_heads % num_kv_heads:
        raise ValueError(f"num_kv_heads must divide num_heads, got {num_kv_heads} for num_heads = {num_heads}")


def check_choice(name, value, choices):
    """Check that the value is one of these names."""
    if not isinstance(value, str) or value not in choices:
        *names, last = (f'"{choice}"' for choice in choices)
        raise ValueError(f"{name} must be {', '.join(names)} or {last}, got {short(value)}")


def floating_dtype(name, value):
    """The name of a floating dtype, such as "float32", given as a name, a type or a dtype."""
    if not isinstance(value, str | type | np.dtype):
        raise TypeError(f"{name} must be a floating type, got {short(value)}")
    try:
        dtype = np.dtype(value)
    except (TypeError, ValueError, SyntaxError):  # NumPy reads "," as Python
        dtype = None
    if dtype is None or dtype.kind != "f":
        raise ValueError(f"{name} must be a floating type, got {short(value)}")
    return dtype.name
