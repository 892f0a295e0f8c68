"""Muon's orthogonal updates."""

import numpy as np

from ... import training
from ...training.muon import QUINTICS
from ..exercise import Case, draw_sizes
from .sheet import Sheet

SHEET = Sheet(__file__)


def orthogonalised_cases(rng):
    sizes = draw_sizes(rng, "D_in D_out", least=3)
    least, most = sorted(sizes.values())

    def case(label, D_in=least, D_out=most, scale=2.0, **options):
        # singular values of different sizes, for which each iteration matters
        u, _, vt = np.linalg.svd(rng.normal(size=(D_in, D_out)), full_matrices=False)
        g = scale * (u * np.geomspace(1, 0.2, min(D_in, D_out))) @ vt
        return Case(label, (g,), options, {"D_in": D_in, "D_out": D_out})

    zeros = case("a g of zeros")
    zeros.arguments[0][...] = 0
    return [
        case(""),
        case("more rows than columns", most, least),
        case("a square g", least, least),
        case("quintics of one iteration", quintics=QUINTICS[:1]),
        case("quintics of five iterations", quintics=QUINTICS),
        case("quintics of numbers below 2", quintics=[(1.5, -0.5, 0.1)] * 2),
        case("a g of tiny numbers", scale=1e-8),
        zeros,
    ]


def orthogonalised(g, quintics=QUINTICS[:3]):
    norm = np.sqrt(np.sum(g**2))
    x = g / norm if norm > 0 else g
    for a, b, c in quintics:
        gram = x @ x.T
        cubed = gram @ x
        fifth = gram @ cubed
        x = a * x + b * cubed + c * fifth
    return x


EXERCISES = [
    SHEET.exercise(training.orthogonalised, orthogonalised, orthogonalised_cases, {"orthogonalised g": "D_in D_out"}),
]
