"""Learning rate schedules."""

from math import cos, pi, sin  # noqa: F401 - sin for the mistakes

import numpy as np

from ... import training
from ..exercise import Case, extended
from .sheet import Sheet

SHEET = Sheet(__file__)


def drive_schedule(answer, calls):
    """The learning rate of every call, (calls,)."""
    rates = [answer(*arguments) for arguments in calls]
    return None if any(rate is None for rate in rates) else np.array(rates)


def noam_cases(rng):
    d_model, warmup = (int(n) for n in (rng.integers(8, 100), rng.integers(10, 40)))
    steps = [1, 2, warmup // 2, warmup - 1]
    late = [int(step) for step in warmup + np.sort(rng.integers(2, 300, size=6))]
    late = [warmup + 1, *late, 5 * warmup]
    return [
        Case("", ([(step, d_model, warmup) for step in late],)),
        Case("steps of the warm-up", ([(step, d_model, warmup) for step in steps],)),
        Case("the last step of the warm-up", ([(warmup, d_model, warmup)],)),
        Case("warmup=1", ([(step, d_model, 1) for step in (1, 2, 3, 10)],)),
        Case("d_model=512 with warmup=4000", ([(step, 512, 4000) for step in (1, 100, 3999, 4000)],)),
    ]


def noam_schedule(step, d_model, warmup):
    rise = step * warmup**-1.5
    fall = step**-0.5
    return d_model**-0.5 * min(rise, fall)


def cosine_cases(rng):
    warmup, after = (int(n) for n in (rng.integers(6, 15), rng.integers(16, 60)))
    total, max_lr = warmup + after, float(rng.uniform(0.5, 2))
    min_lr = float(max_lr * rng.uniform(0.1, 0.3))
    rates = max_lr, min_lr
    falling = [warmup + after * i // 7 for i in range(1, 7)]
    falling = [warmup + 1, *falling, total - 1, total]
    rising = [1, 2, warmup // 2, warmup - 1]
    return [
        Case("", ([(step, *rates, warmup, total) for step in falling],)),
        Case("steps of the warm-up", ([(step, *rates, warmup, total) for step in rising],)),
        Case("the last step of the warm-up", ([(warmup, *rates, warmup, total)],)),
        Case("steps after `total`", ([(total + n, *rates, warmup, total) for n in (1, 3, after, 2 * after + 5)],)),
        extended(Case("warmup=0", ([(step, *rates, 0, total) for step in (1, total // 3, total // 2, total - 1)],))),
        Case("min_lr=0", ([(step, max_lr, 0.0, warmup, total) for step in falling],)),
    ]


def cosine_schedule(step, max_lr, min_lr, warmup, total):
    if step <= warmup:
        return max_lr * step / warmup
    progress = (step - warmup) / (total - warmup)
    progress = min(1, progress)
    height = (1 + cos(pi * progress)) / 2
    return min_lr + (max_lr - min_lr) * height


EXERCISES = [
    SHEET.exercise(training.noam_schedule, noam_schedule, noam_cases, {"lr": "call"}, drive=drive_schedule),
    SHEET.exercise(training.cosine_schedule, cosine_schedule, cosine_cases, {"lr": "call"}, drive=drive_schedule),
]
