"""Who wrote a word: the split of a logit, and the estimate of what a head does."""

import numpy as np

from ..exercise import Case, draw_sizes
from .sheet import Sheet

SHEET = Sheet(__file__)


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
    N, D = sizes.values()

    def case(label, N=N, scale=1.0, **options):
        written, gamma, e = scale * rng.normal(size=(N, D)), rng.uniform(0.5, 2, size=D), rng.normal(size=D)
        return Case(label, (written, gamma, e), options, {"N": N, "D": D})

    return [
        case(""),
        case("eps=0.5", eps=0.5),
        case("one part", 1),
        case("as many parts as features", D),
        case("what is written near 0", scale=1e-3),
    ]


def answered_split(written, gamma, e, eps=1e-6):
    total = np.sum(written, axis=0)
    scale = np.sqrt(np.mean(total**2) + eps)
    normed = written / scale
    return (normed * gamma) @ e


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
    T, H, K = sizes.values()

    def case(label, T=T, H=H, patched=False):
        dz, z, z_new = rng.normal(size=(3, T, H * K))
        options = {"z_new": z_new} if patched else {}
        return Case(label, (dz, z, H), options, {"T": T, "H": H, "K": K, "D": H * K})

    return [case(""), case("z_new", patched=True), case("one token", T=1), case("one head", H=1)]


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
