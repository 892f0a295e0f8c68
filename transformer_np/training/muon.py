"""Muon: momentum whose matrices are made orthogonal before each step."""

import re
from itertools import pairwise

import numpy as np

from ..support.checks import as_float_array, check_at_least, check_number
from .optim import AdamW, is_matrix

# (a, b, c) of each iteration (Amsel et al. 2025, algorithm 1, safety factor 1.01)
QUINTICS = (
    (8.2052, -22.9019, 16.4607), (4.0664, -2.8612, 0.5184), (3.9096, -2.8234, 0.5250), (3.2856, -2.4153, 0.4853),
    (2.2779, -1.6198, 0.3985),
)  # fmt: skip


def orthogonalised(g, quintics=QUINTICS[:3]):
    """The orthogonal matrix nearest to g, roughly: U Vᵀ of the decomposition g = U Σ Vᵀ (Jordan et al. 2024).

        X = g / ‖g‖,    then for each (a, b, c) of `quintics`    X = a X + b (X Xᵀ) X + c (X Xᵀ)² X

    This is a Newton–Schulz iteration: each one applies σ → a σ + b σ³ + c σ⁵ to every singular value and leaves U and V
    as they are. The first quintics are steep, so that small singular values grow; the later ones press all of them
    towards 1. a, b and c of each iteration are the best for what the one before has left (Amsel et al. 2025, "The Polar
    Express"). The default's three iterations bring all σ ≥ 0.003 ‖g‖ to 0.18 … 1.88, five to 0.86 … 1.13.

    g (M, N)  ->  (M, N); ‖g‖ is the Frobenius norm, the root of the sum of all squares. A g of zeros stays 0
    """
    g = as_float_array(g, "g")
    if g.ndim != 2:
        raise ValueError(f"g must be a matrix, got shape {g.shape}")
    norm = np.linalg.norm(g)
    x = g / norm if norm else g
    is_tall = x.shape[0] > x.shape[1]
    if is_tall:
        x = x.T  # X Xᵀ is then the smaller of the two products
    wide = x.shape[1] >= 2 * x.shape[0]  # X Xᵀ can be followed without X, which is then multiplied once, at the end
    gram = step = steps = None
    for a, b, c in quintics:
        gram = x @ x.T if steps is None else step @ gram @ step  # (M, M)
        step = gram @ gram.T  # .T changes nothing, but NumPy computes half of a symmetric product
        step *= c
        step += b * gram
        step.flat[:: len(step) + 1] += a  # the identity times a
        if wide:
            steps = step if steps is None else step @ steps
        else:
            x = step @ x  # (M, N)
    if steps is not None:
        x = np.matmul(steps, x, out=np.empty_like(x))  # in the order of g
    return x.T if is_tall else x


def in_blocks(model):
    """A function that returns whether a Parameter is a matrix of a linear map in one of the blocks of a model.

    Embeddings, the output and the vectors are not: an update of equal length in all directions suits a linear map
    between features, whereas a row of an embedding belongs to one token (Jordan et al. 2024).
    """
    chosen = {id(parameter) for name, parameter in model.named_parameters() if re.search(r"\.\d+\..*\bw[^.]*$", name)}
    return lambda parameter: id(parameter) in chosen


class Muon(AdamW):
    """Momentum orthogonalised by Newton–Schulz (Jordan et al. 2024) for matrices, AdamW for the other parameters.

        M = μ M + (1 − μ) G
        W −= lr · (λ W + √max(1, d_out / d_in) · orthogonalised((1 − μ) G + μ M))

    G is the gradient of a matrix W (d_in, d_out). A gradient usually has a few large singular values: most rows change
    in the same few directions. Adam, which scales each element by itself, evens that out only partly. After
    `orthogonalised` all singular values are about 1, so that rare directions are learned as fast as frequent ones.
    (1 − μ) G + μ M is Nesterov's momentum, one step ahead.

    iterations: of Newton–Schulz; more than three cost time and did not lower the losses of small GPTs
    matrices: a function that returns whether a Parameter is orthogonalised, such as `in_blocks(model)`; by default all
        with two axes are
    others: the learning rate of the other parameters is `others · lr`; they have no weight decay
    """

    def __init__(
        self, parameters, lr=0.03, momentum=0.9, iterations=3, weight_decay=0.1, matrices=None, others=0.2,
        betas=(0.9, 0.99), eps=1e-8,
    ):  # fmt: skip
        check_number("momentum", momentum, "[0, 1)")
        check_number("others", others, "[0, ∞)")
        check_at_least("iterations", iterations, 1)
        self.momentum = momentum
        self.quintics = [*QUINTICS, *[QUINTICS[-1]] * iterations][:iterations]  # the last serves all further ones
        chosen = matrices or is_matrix
        super().__init__(
            parameters, lr, betas, eps, weight_decay, decays=chosen, rates=lambda p: 1.0 if chosen(p) else others
        )
        self._shapes = {}  # of the matrices, by the start of their place in the buffers
        for p, end in zip(self.parameters, self._ends, strict=True):
            if chosen(p):
                if p.data.ndim != 2:
                    raise ValueError(f"matrices chose a parameter of shape {p.shape}: Muon needs two axes")
                self._shapes[int(end) - p.data.size] = p.shape

    def part(self, rank, size):
        """As Optimizer.part, with whole matrices, and equal shares of their products rather than of their elements."""
        starts = [0, *map(int, self._ends)]
        work = [self._products(start) + end - start for start, end in pairwise(starts)]
        done = np.cumsum([0, *work])
        cuts = [starts[np.abs(done - done[-1] * n / size).argmin()] for n in range(size + 1)]
        return slice(cuts[rank], cuts[rank + 1])

    def _products(self, start):
        """The multiplications of the matrix at this place."""
        rows, columns = sorted(self._shapes.get(start, (0, 0)))
        return len(self.quintics) * rows * rows * (2 * columns + rows)

    def _blocks(self, start, stop):
        """Slices of the buffers that are updated together: whole matrices, and blocks of what lies between them."""
        between = start
        for begin, shape in self._shapes.items():
            if start <= begin < stop:
                yield from super()._blocks(between, begin)
                between = begin + shape[0] * shape[1]
                yield slice(begin, between)
        yield from super()._blocks(between, stop)

    def _update_block(self, block):
        shape = self._shapes.get(block.start)
        if shape is None:
            super()._update_block(block)
            return
        w, g, m = (array[block].reshape(shape) for array in (self.data, self.grad, self.averages["m"]))
        added = (1 - self.momentum) * g
        m *= self.momentum
        m += added
        added += self.momentum * m
        step = orthogonalised(added, self.quintics)
        step *= self.lr * max(1.0, shape[1] / shape[0]) ** 0.5
        w *= 1 - self.lr * self.weight_decay
        w -= step
