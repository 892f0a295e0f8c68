"""The matrix products of a training step, recorded and computed alone: a lower bound for its time."""

import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Layout:
    """The memory layout of an array: it spans `extent` bytes; its first element is at `offset` from the lowest byte."""

    shape: tuple
    strides: tuple
    offset: int
    extent: int

    @classmethod
    def of(cls, array):
        low, high = np.lib.array_utils.byte_bounds(array)
        return cls(array.shape, array.strides, array.ctypes.data - low, high - low)

    def array(self, rng, dtype):
        """A new array with this layout and random numbers."""
        buffer = rng.standard_normal(-(-self.extent // dtype.itemsize)).astype(dtype)
        return np.ndarray(self.shape, dtype, buffer, self.offset, self.strides)


@dataclass(frozen=True)
class Product:
    """One matrix product, or a batch of them: a (..., m, k) times b (..., k, n). kind: the function it is part of"""

    kind: str | None
    a: Layout
    b: Layout
    shape: tuple
    dtype: np.dtype

    @property
    def flops(self):
        """The number of floating-point operations: multiplications and additions."""
        return 2 * int(np.prod(self.shape)) * self.a.shape[-1]


def noting_products(note):
    """An array class that calls note(a, b, result) for every matrix product of its arrays or of arrays computed from
    them. Products with a vector do not count."""

    class Noting(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
            plain = [np.asarray(x) if isinstance(x, np.ndarray) else x for x in inputs]
            if out is not None:
                options["out"] = tuple(map(np.asarray, out))
            result = getattr(ufunc, method)(*plain, **options)
            if ufunc is np.matmul and min(x.ndim for x in plain) > 1:
                note(*plain, result)
            if out is not None:
                return out[0]
            return result.view(Noting) if isinstance(result, np.ndarray) else result

    return Noting


@contextmanager
def recording(model, kind=lambda: None):
    """`with recording(model) as products: …` collects the matrix products of forward and backward inside: those of the
    parameters and of arrays computed from them. kind() returns the kind of the current product."""
    products = []

    def note(a, b, result):
        products.append(Product(kind(), Layout.of(a), Layout.of(b), result.shape, result.dtype))

    noting = noting_products(note)
    plain = [(p, p.data) for p in model.parameters()]
    for p, data in plain:
        p.bind(data.view(noting), p.grad)
    try:
        yield products
    finally:
        for p, data in plain:
            p.bind(data, p.grad)


class Replay:
    """The same products on arrays of the same layouts. Factors of one layout share an array, and so do results of one
    shape: unlike those of a real step, they stay in the processor's caches, which makes this a lower bound."""

    def __init__(self, products):
        rng, dtype = np.random.default_rng(0), products[0].dtype
        lefts = {product.a: product.a.array(rng, dtype) for product in products}
        rights = {product.b: product.b.array(rng, dtype) for product in products}
        results = {product.shape: np.empty(product.shape, dtype) for product in products}
        self._products = [(p.kind, lefts[p.a], rights[p.b], results[p.shape]) for p in products]

    def seconds_by_kind(self):
        """Compute all products and time each  ->  {kind: seconds}"""
        seconds = Counter()
        for kind, a, b, result in self._products:
            started = time.perf_counter()
            np.matmul(a, b, out=result)
            seconds[kind] += time.perf_counter() - started
        return seconds
