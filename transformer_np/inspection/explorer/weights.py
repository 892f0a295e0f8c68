"""The weights of a model in a page: float32, float16 or int8, compressed."""

import base64
import gzip
from dataclasses import replace

import numpy as np

FORMATS = ("float32", "float16", "int8")
LARGEST = 63  # of int8: half of the range compresses to 7 bits, and 5 million parameters to less than 6 MB


def rounded(model, weights):
    """A float32 copy of the model, its weights rounded to this format. Raises ValueError for weights too large."""
    state = {name: np.atleast_2d(array) for name, array in model.state_dict().items()}
    with np.errstate(over="ignore"):
        if weights == "int8":
            state = {name: np.multiply(*_int8(array), dtype=np.float32) for name, array in state.items()}
        else:
            state = {name: array.astype(weights).astype(np.float32) for name, array in state.items()}
    shapes = {name: array.shape for name, array in model.state_dict().items()}
    without = {"dropout": 0.0} if hasattr(model.config, "dropout") else {}
    copy = type(model)(replace(model.config, dtype="float32", **without))
    copy.load_state_dict({name: array.reshape(shapes[name]) for name, array in state.items()})
    return copy


def packed(arrays, weights):
    """The numbers of matrices and vectors (1, N) as the page reads them: base64 of gzip, in this format."""
    if weights != "int8":
        numbers = np.concatenate([array.ravel() for array in arrays]).astype(np.dtype(weights).newbyteorder("<"))
        return {"weights": _compressed(numbers)}
    whole, exact = [np.zeros(0, np.int8)], [np.zeros(0, "<f4")]
    for array in arrays:
        numbers, scales = _int8(array)
        if len(array) == 1:
            exact.append(array[0])
        else:
            whole.append(numbers.ravel().astype(np.int8))
            exact.append(scales.ravel())
    exact = np.concatenate(exact).astype("<f4")
    return {"weights": _compressed(np.concatenate(whole)), "floats": _compressed(exact)}


def _int8(array):
    """Whole numbers in −63 … 63 and the scale of each row (R, 1), so that their product is nearly the array (R, N). A
    vector (1, N) stays as it is, with scale 1."""
    array = np.asarray(array, np.float32)
    if len(array) == 1:
        return array, np.ones((1, 1), np.float32)
    scales = np.abs(array).max(axis=1, keepdims=True) / np.float32(LARGEST)
    return np.rint(array / np.where(scales == 0, 1, scales)), scales


def _compressed(numbers):
    level = 9 if numbers.nbytes < 1 << 24 else 1  # the digits of weights are noise: more effort finds little
    return base64.b64encode(gzip.compress(numbers.tobytes(), level, mtime=0)).decode("ascii")
