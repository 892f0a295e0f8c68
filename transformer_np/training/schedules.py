"""Learning rates over the steps of a training run; step 1 is the first."""

from math import cos, pi

from ..support.checks import check_all_at_least, check_at_least, check_number


def noam_schedule(step, d_model, warmup):
    """The paper's learning rate (Vaswani et al. 2017, eq. 3): rises linearly for `warmup` steps, then falls as 1/√step.

    lr = d_model^(−1/2) · min(step^(−1/2), step · warmup^(−3/2)),  at most 1/√(d_model · warmup)
    """
    check_all_at_least(1, step=step, d_model=d_model, warmup=warmup)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def cosine_schedule(step, max_lr, min_lr, warmup, total):
    """max_lr · step / warmup up to step `warmup`, then half a cosine from max_lr down to min_lr at step `total`, and
    min_lr after it (Loshchilov & Hutter 2017). Steps count from 1; with warmup 0 the first one is on the cosine."""
    for name, value, least in (("step", step, 1), ("warmup", warmup, 0), ("total", total, 1)):
        check_at_least(name, value, least)
    if warmup >= total:
        raise ValueError(f"warmup must lie in 0 … total − 1, got warmup {warmup} and total {total}")
    check_number("max_lr", max_lr, "[0, ∞)")
    check_number("min_lr", min_lr, "[0, ∞)")
    if step <= warmup:
        return max_lr * step / warmup
    progress = min(1.0, (step - warmup) / (total - warmup))
    return min_lr + (max_lr - min_lr) * (1 + cos(pi * progress)) / 2
