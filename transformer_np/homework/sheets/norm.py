"""Layer normalisation and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes
from .sheet import Sheet

SHEET = Sheet(__file__)


def random_rows(rng, shape, least, most):
    """Random rows, each with a mean and a standard deviation of its own, the latter between `least` and `most`."""
    z = rng.normal(size=shape)
    z = (z - z.mean(axis=-1, keepdims=True)) / z.std(axis=-1, keepdims=True)
    rows = (*shape[:-1], 1)
    return z * rng.uniform(least, most, size=rows) + rng.normal(size=rows)


def layer_norm_cases(rng):
    sizes = draw_sizes(rng, "B T D H", least=3)  # from 3 on: two numbers, normalised, are −1 and 1 whatever they were
    B, T, D, H = sizes.values()
    x = random_rows(rng, (B, T, D), 1.5, 3)  # so large that the default ε does not show
    gamma, beta = rng.normal(size=(2, D))
    level = x.copy()
    level[-1, 0] = 0.25
    deep = random_rows(rng, (B, H, T, D), 1.5, 3)
    plain = {"B": B, "T": T, "D": D}
    return [
        Case("", (x, gamma, beta), sizes=plain),
        Case("eps=0.3", (0.3 * x, gamma, beta), {"eps": 0.3}, plain),
        Case("numbers so small that ε counts", (0.0015 * x, gamma, beta), sizes=plain),
        Case("a row of equal numbers", (level, gamma, beta), sizes=plain),
        Case("x of shape (T, D)", (x[0], gamma, beta), sizes={"T": T, "D": D}),
        Case("x of shape (B, H, T, D)", (deep, gamma, beta), sizes=sizes),
        Case("x of shape (D,)", (x[0, 0], gamma, beta), sizes={"D": D}),
    ]


def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    variance = (centred**2).mean(axis=-1, keepdims=True)
    std = np.sqrt(variance + eps)
    inv_std = 1 / std
    x_hat = centred * inv_std
    y = gamma * x_hat + beta
    return y, x_hat, inv_std


def of_other_defaults(eps, small):
    """The mistakes of another default ε."""
    others = [other for other in (1e-3, 1e-5, 1e-6, 1e-8, 1e-12) if other != float(eps)]
    return "".join(SHEET["another default ε"].format(eps=eps, other=other, small=small) for other in others)


def layer_norm_backward_cases(rng):
    sizes = draw_sizes(rng, "B T D H", least=3)
    B, T, D, H = sizes.values()
    gamma, beta = rng.normal(size=(2, D))

    def case(label, shape, eps=1e-5):
        dy = rng.normal(size=shape)
        _, x_hat, inv_std = F.layer_norm(random_rows(rng, shape, 0.5, 2), gamma, beta, eps)
        letters = {2: "TD", 3: "BTD", 4: "BHTD"}.get(len(shape), "D")
        return Case(label, (dy, x_hat, inv_std, gamma), sizes=dict(zip(letters, shape, strict=True)))

    return [
        case("", (B, T, D)),
        case("a forward with eps=0.3", (B, T, D), 0.3),
        case("x of shape (T, D)", (T, D)),
        case("x of shape (B, H, T, D)", (B, H, T, D)),
        case("x of shape (D,)", (D,)),
    ]


def layer_norm_backward(dy, x_hat, inv_std, gamma):
    rows = tuple(range(dy.ndim - 1))
    dgamma = (dy * x_hat).sum(axis=rows)
    dbeta = dy.sum(axis=rows)
    dx_hat = dy * gamma
    first = dx_hat.mean(axis=-1, keepdims=True)
    second = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = inv_std * (dx_hat - first - second)
    return dx, dgamma, dbeta


def of_vector(name, summand, formula, letter):
    """The mistakes that the gradients of γ and β share."""
    return SHEET["of a vector"].format(name=name, summand=summand, formula=formula, letter=letter)


EXERCISES = [
    SHEET.exercise(
        F.layer_norm, layer_norm, layer_norm_cases, {"y": "... D", "x_hat": "... D", "inv_std": "... 1"},
        mistakes=SHEET["layer_norm"] + of_other_defaults("1e-5", "a variance"),
    ),
    SHEET.exercise(
        F.layer_norm_backward, layer_norm_backward, layer_norm_backward_cases,
        {"dx": "... D", "dgamma": "D", "dbeta": "D"},
        mistakes=SHEET["layer_norm_backward"] + of_vector("dgamma", "(dy * x_hat)", "dy · x̂", "γ")
        + SHEET["layer_norm_backward 2"] + of_vector("dbeta", "dy", "dy", "β"),
    ),
]  # fmt: skip
