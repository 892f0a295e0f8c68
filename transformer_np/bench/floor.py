"""The floor under a training step: its matrix products alone, and the update of the parameters."""

import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Layout:
    """How an array lies in memory: its elements fill `extent` bytes, the first is `offset` bytes after the lowest."""

    shape: tuple
    strides: tuple
    offset: int
    extent: int

    @classmethod
    def of(cls, array):
        low, high = np.lib.array_utils.byte_bounds(array)
        return cls(array.shape, array.strides, array.ctypes.data - low, high - low)

    def array(self, rng, dtype):
        """A new array that lies so, with random numbers."""
        buffer = rng.standard_normal(-(-self.extent // dtype.itemsize)).astype(dtype)
        return np.ndarray(self.shape, dtype, buffer, self.offset, self.strides)


@dataclass(frozen=True)
class Product:
    """One matrix product, or a batch of them: a (..., m, k) times b (..., k, n). kind: what it was a part of."""

    kind: str | None
    a: Layout
    b: Layout
    shape: tuple
    dtype: np.dtype

    @property
    def flops(self):
        """Floating-point operations, a multiplication and an addition each."""
        return 2 * int(np.prod(self.shape)) * self.a.shape[-1]


def noting_products(note):
    """A kind of array that calls note(a, b, result) for every matrix product that is made with it or with what comes
    from it. A product with a vector is a sum and does not count."""

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
    """`with recording(model) as products: …` collects every matrix product that forward and backward make inside, with
    the parameters or with what was computed from them. kind() says which kind a product is of."""
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
    """The same products on arrays that lie as those did. Factors of one layout are one array, and so are results of one
    shape: they are in the processor's caches where those of a step may not be, so that this is a floor."""

    def __init__(self, products):
        rng, dtype = np.random.default_rng(0), products[0].dtype
        lefts = {product.a: product.a.array(rng, dtype) for product in products}
        rights = {product.b: product.b.array(rng, dtype) for product in products}
        results = {product.shape: np.empty(product.shape, dtype) for product in products}
        self._products = [(p.kind, lefts[p.a], rights[p.b], results[p.shape]) for p in products]

    def run(self):
        """All products, one after the other."""
        for _, a, b, result in self._products:
            np.matmul(a, b, out=result)

    def seconds_by_kind(self):
        """All products once more, timed one by one  ->  {kind: seconds}"""
        seconds = Counter()
        for kind, a, b, result in self._products:
            started = time.perf_counter()
            np.matmul(a, b, out=result)
            seconds[kind] += time.perf_counter() - started
        return seconds
