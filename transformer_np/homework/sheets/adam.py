"""Adam."""

from dataclasses import replace

import numpy as np

from ... import training
from ...module import Parameter
from ...training.optim import is_matrix
from ..exercise import Case, draw_sizes, extended
from .sheet import Sheet

SHEET = Sheet(__file__)

_STEPS = 5


def adam_cases(rng):
    sizes = draw_sizes(rng, "D_in D_out D")
    shapes = (sizes["D_in"], sizes["D_out"]), (sizes["D"],), (2, 2)
    values = [rng.normal(size=shape) for shape in shapes]

    def gradients(scale):
        return [[scale * rng.normal(size=shape) for shape in shapes] for _ in range(_STEPS)]

    still = gradients(1.0)
    for _, of_vector, _ in still:
        of_vector[0] = 0.0
    return [
        Case("", (values, gradients(1.0)), {"lr": 0.1}, sizes),
        Case("lr=0.2", (values, gradients(1.0)), {"lr": 0.2}, sizes),
        Case("betas=(0.5, 0.8)", (values, gradients(2.0)), {"lr": 0.1, "betas": (0.5, 0.8)}, sizes),
        Case("eps=0.3", (values, gradients(0.5)), {"lr": 0.1, "eps": 0.3}, sizes),
        Case("gradients of which a number stays 0", (values, still), {"lr": 0.1}, sizes),
    ]


def drive_adam(answer, values, gradients, blocks=False, **options):
    """How far every number has moved after each step, and the gradients after it, (steps, numbers) each.

    blocks: whether the optimizer updates two blocks in a step, if it can, which part a parameter in the middle
    """
    parameters = [Parameter(array) for array in values]
    optimizer = answer(parameters, **options)
    optimizer.blocks = blocks  # for a mistake
    moved, left = [], []
    for of_step in gradients:
        for parameter, gradient in zip(parameters, of_step, strict=True):
            parameter.grad[...] = gradient  # in place: an optimizer may hold the gradients in a buffer
        if blocks and hasattr(optimizer, "_update_block") and hasattr(optimizer, "steps"):
            optimizer.steps += 1
            size = optimizer.data.size
            for block in (slice(0, size // 2), slice(size // 2, size)):
                optimizer._update_block(block)
        else:
            optimizer.step()
        moved.append(flat([p.data - array for p, array in zip(parameters, values, strict=True)]))
        left.append(flat([p.grad for p in parameters]))
    return np.array(moved), np.array(left)


def flat(arrays):
    return np.concatenate([np.ravel(array) for array in arrays])


class Adam:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.parameters, self.lr, self.betas, self.eps = list(parameters), lr, betas, eps
        self.m = [np.zeros(p.shape) for p in self.parameters]
        self.v = [np.zeros(p.shape) for p in self.parameters]
        self.t = 0

    def step(self):
        self.t += 1
        for p, m, v in zip(self.parameters, self.m, self.v, strict=True):
            self.update(p, p.grad, m, v)

    def update(self, p, g, m, v):
        beta1, beta2 = self.betas
        m[...] = beta1 * m + (1 - beta1) * g
        v[...] = beta2 * v + (1 - beta2) * g**2
        m_hat = m / (1 - beta1**self.t)
        v_hat = v / (1 - beta2**self.t)
        p.data -= self.lr * m_hat / (np.sqrt(v_hat) + self.eps)


# --- with weight decay ------------------------------------------------------------------------------------------------


def adamw_cases(rng):
    plain, *others, _ = adam_cases(rng)
    values, gradients = plain.arguments
    values = [10 * array for array in values]  # so that the decay is seen beside the step
    options = {"lr": 0.1, "weight_decay": 0.3}
    rates = {**options, "rates": by_first_axis}
    return [
        Case("", (values, gradients), options, plain.sizes),
        Case("only matrices decayed", (values, gradients), {**options, "decays": is_matrix}, plain.sizes),
        Case("weight_decay=0", (values, gradients), {**options, "weight_decay": 0.0}, plain.sizes),
        *(replace(case, options={**case.options, "weight_decay": 0.3}) for case in others),
        extended(Case("a rate for each parameter", (values, gradients), rates, plain.sizes)),
        extended(Case("two blocks", (values, gradients), {**options, "blocks": True}, plain.sizes)),
        extended(Case("two blocks plus a rate for each parameter", (values, gradients), {**rates, "blocks": True})),
    ]


def by_first_axis(parameter):
    return 1 / len(parameter.data)


class AdamW(Adam):
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, decays=None, rates=None):
        super().__init__(parameters, lr, betas, eps)
        self.weight_decay, self.decays, self.rates, self.rate = weight_decay, decays, rates or (lambda _: 1.0), lr
        self.rated = rates is not None  # for a mistake

    def in_first_block(self, p):
        """How many elements of a parameter are in the first block. Used by mistakes only."""
        first = sum(q.data.size for q in self.parameters) // 2 if self.blocks else np.inf
        return first - sum(q.data.size for q in self.parameters[: [q is p for q in self.parameters].index(True)])

    def update(self, p, g, m, v):
        self.lr = self.rate * self.rates(p)
        if self.decays is None or self.decays(p):
            p.data -= self.lr * self.weight_decay * p.data
        super().update(p, g, m, v)


EXERCISES = [
    SHEET.exercise(
        training.Adam, Adam, adam_cases,
        {"change of the parameters": "step number", "gradients after the step": "step number"},
        drive=drive_adam, parts=("_update",),
    ),
    SHEET.exercise(
        training.AdamW, AdamW, adamw_cases,
        {"change of the parameters": "step number", "gradients after the step": "step number"},
        drive=drive_adam, parts=("_update_block",),
    ),
]  # fmt: skip
