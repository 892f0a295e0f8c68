"""Who wrote a word: the split of a logit, and the estimate of what a head does."""

import numpy as np

from ...support.shapes import shapes
from ..exercise import draw_sizes
from .draws import Calls
from .sheet import Sheet

SHEET = Sheet(__file__)


@shapes(written="N D", gamma="D", e="D")
def split_logit(written, gamma, e, eps=1e-6):
    """Split a logit among the parts that wrote the last state of a model with RMSNorm (Elhage et al. 2021).

        logit = Σ part,    part_n = (written_n / r · γ) · e,    r = √(mean(x²) + ε),    x = Σ written_n

    written (N, D), what each of N parts has added to the residual path; gamma (D,); e (D,), the word's row of the
    output projection  ->  parts (N,)

    r is the scale of the last norm for the sum x of all parts. It is held fixed: the same number divides every part.
    """
    x = written.sum(axis=0)  # (D,)
    r = np.sqrt((x**2).mean() + eps)
    return written / r @ (gamma * e)


def split_cases(rng):
    sizes = draw_sizes(rng, "N D", least=3)
    case = Calls(rng, split_logit, sizes, gamma=lambda gamma: rng.uniform(0.5, 2, size=gamma.shape))
    return [
        case(""),
        case("eps=0.5", eps=0.5),
        case("one part", {"N": 1}),
        case("as many parts as features", {"N": sizes["D"]}),
        case("what is written near 0", written=lambda written: 1e-3 * written),
    ]


def answered_split(written, gamma, e, eps=1e-6):
    total = np.sum(written, axis=0)
    scale = np.sqrt(np.mean(total**2) + eps)
    normed = written / scale
    return (normed * gamma) @ e


@shapes(dz="T D", z="T D", z_new="T D")
def head_attribution(dz, z, num_heads, z_new=None):
    """Estimate from one backward pass what switching off each head of a layer does to a score, or patching it (Nanda
    2023; Syed et al. 2023).

        change_h ≈ Σ dz · (z_new − z)    over the tokens and the features of head h

    z (T, D), the heads' outputs side by side, head h in the columns h·K … (h+1)·K − 1 with K = D / num_heads
    dz (T, D), the gradient of the score with respect to z; z_new (T, D), what z would become, or None for 0, a head
    that is switched off  ->  change (H,)
    """
    change = dz * ((0 if z_new is None else z_new) - z)  # (T, D)
    return change.reshape(len(z), num_heads, -1).sum(axis=(0, 2))


def head_cases(rng):
    sizes = draw_sizes(rng, "T H K", least=2)
    H, K = sizes["H"], sizes["K"]
    case = Calls(rng, head_attribution, sizes | {"D": H * K}, z_new=None, num_heads=H)
    return [
        case(""),
        case("z_new", z_new=np.copy),
        case("one token", {"T": 1}),
        case("one head", {"H": 1, "D": K}, num_heads=1),
    ]


def answered_heads(dz, z, num_heads, z_new=None):
    T, D = z.shape
    new = np.zeros_like(z) if z_new is None else z_new
    effect = dz * (new - z)
    heads = effect.reshape(T, num_heads, D // num_heads)
    return heads.sum(axis=2).sum(axis=0)


EXERCISES = [
    SHEET.exercise(split_logit, answered_split, split_cases, {"parts": "N"}),
    SHEET.exercise(head_attribution, answered_heads, head_cases, {"change": "H"}),
]
