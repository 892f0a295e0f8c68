"""RMS norm and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes
from .norm import of_other_defaults, of_vector, random_rows
from .sheet import Sheet

SHEET = Sheet(__file__)


def rms_norm_cases(rng):
    sizes = draw_sizes(rng, "B T D H", least=3)
    B, T, D, H = sizes.values()
    x = random_rows(rng, (B, T, D), 1.5, 3)  # so large that the default ε does not show
    gamma = rng.normal(size=D)
    level = x.copy()
    level[-1, 0] = 0
    plain = {"B": B, "T": T, "D": D}
    return [
        Case("", (x, gamma), sizes=plain),
        Case("eps=0.3", (0.3 * x, gamma), {"eps": 0.3}, plain),
        Case("numbers so small that ε counts", (0.0015 * x, gamma), sizes=plain),
        Case("a row of zeros", (level, gamma), sizes=plain),
        Case("x of shape (T, D)", (x[0], gamma), sizes={"T": T, "D": D}),
        Case("x of shape (B, H, T, D)", (random_rows(rng, (B, H, T, D), 1.5, 3), gamma), sizes=sizes),
        Case("x of shape (D,)", (x[0, 0], gamma), sizes={"D": D}),
    ]


def rms_norm(x, gamma, eps=1e-6):
    mean_square = (x**2).mean(axis=-1, keepdims=True)
    rms = np.sqrt(mean_square + eps)
    inv_rms = 1 / rms
    x_hat = x * inv_rms
    y = gamma * x_hat
    return y, x_hat, inv_rms


def rms_norm_backward_cases(rng):
    for case in rms_norm_cases(rng):
        x, gamma = case.arguments
        _, x_hat, inv_rms = F.rms_norm(x, gamma, case.options.get("eps", 0.01))
        label = case.label.replace("eps=0.3", "a forward with eps=0.3")
        yield Case(label, (rng.normal(size=x.shape), x_hat, inv_rms, gamma), sizes=case.sizes)


def rms_norm_backward(dy, x_hat, inv_rms, gamma):
    rows = tuple(range(dy.ndim - 1))
    dgamma = (dy * x_hat).sum(axis=rows)
    dx_hat = dy * gamma
    mean = (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = inv_rms * (dx_hat - x_hat * mean)
    return dx, dgamma


EXERCISES = [
    SHEET.exercise(
        F.rms_norm, rms_norm, rms_norm_cases, {"y": "... D", "x_hat": "... D", "inv_rms": "... 1"},
        mistakes=SHEET["rms_norm"] + of_other_defaults("1e-6", "the mean square"),
    ),
    SHEET.exercise(
        F.rms_norm_backward, rms_norm_backward, rms_norm_backward_cases, {"dx": "... D", "dgamma": "D"},
        mistakes=SHEET["rms_norm_backward"] + SHEET["norm: axes of the means"].replace("every ", "")
        + of_vector("dgamma", "(dy * x_hat)", "dy · x̂", "γ") + SHEET["rms_norm_backward 2"],
    ),
]  # fmt: skip
