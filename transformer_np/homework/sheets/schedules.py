"""Learning rates over the steps of a training."""

from math import cos, pi, sin

import numpy as np

from ... import training
from ..exercise import Case, Exercise, Result


def _drive_schedule(answer, calls):
    """The learning rate of every call, (calls,)."""
    rates = [answer(*arguments) for arguments in calls]
    return None if any(rate is None for rate in rates) else np.array(rates)


def _noam_cases(rng):
    d_model, warmup = (int(n) for n in (rng.integers(8, 100), rng.integers(10, 40)))
    steps = [1, 2, warmup // 2, warmup - 1, warmup, warmup + 1, 2 * warmup, 5 * warmup]
    late = [int(step) for step in warmup + np.sort(rng.integers(2, 300, size=6))]
    return [
        Case("", ([(step, d_model, warmup) for step in steps],)),
        Case("steps after the warm-up", ([(step, d_model, warmup) for step in late],)),
        Case("warmup=1", ([(step, d_model, 1) for step in (1, 2, 3, 10)],)),
        Case("d_model=512, warmup=4000", ([(step, 512, 4000) for step in (1, 100, 3999, 4000, 8000, 100000)],)),
    ]


def _wrong_noam_schedule(made, step, d_model, warmup):
    if made("steps counted from 0"):
        step = step - 1
    if made("rate 0 at the first step"):
        step = step - 1
        if step == 0:
            return 0.0
    if made("step one too large"):
        step = step + 1
    rise, fall = step / warmup**1.5, 1 / step**0.5
    if made("warm-up with warmup^(−1/2)"):
        rise = step * warmup**-0.5
    if made("warm-up with warmup^(−1)"):
        rise = step / warmup
    if made("warm-up with warmup^(−2)"):
        rise = step / warmup**2
    if made("warm-up with warmup^(−3)"):
        rise = step * warmup**-3.0
    if made("warm-up without step"):
        rise = warmup**-1.5
    if made("step and warmup swapped in the warm-up"):
        rise = warmup * step**-1.5
    if made("√step in the warm-up"):
        rise = step**0.5 * warmup**-1.5
    if made("growing with √step"):
        fall = step**0.5
    if made("falling with 1/step"):
        fall = 1 / step
    if made("falling with 1/step from the peak"):
        fall = warmup**0.5 / step
    if made("falling from step 1 after the warm-up"):
        fall = 1 / max(1, step - warmup) ** 0.5
    if made("constant after the warm-up"):
        fall = warmup**-0.5
    factor = d_model**-0.5
    if made("no d_model"):
        factor = 1.0
    if made("√d_model for its inverse"):
        factor = d_model**0.5
    if made("1/d_model without the root"):
        factor = 1 / d_model
    if made("d_model without the exponent"):
        factor = float(d_model)
    if made("highest rate 1"):
        factor = warmup**0.5
    if made("d_model and warmup swapped"):
        return warmup**-0.5 * min(step**-0.5, step * d_model**-1.5)
    if made("1/√d_model in the first term only"):
        return min(factor * fall, rise)
    if made("1/√d_model in the second term only"):
        return min(fall, factor * rise)
    if made("sum for minimum"):
        return factor * (rise + fall)
    if made("product for minimum"):
        return factor * rise * fall
    if made("no warm-up"):
        return factor * fall
    if made("no fall"):
        return factor * rise
    if made("0 in the warm-up"):
        return factor * fall * (step >= warmup)
    if made("jump at the end of the warm-up"):
        return factor * (step / warmup if step < warmup else fall)
    if made("jump after the end of the warm-up"):
        return factor * (step / warmup if step <= warmup else fall)
    return factor * (max(rise, fall) if made("maximum for minimum") else min(rise, fall))


NOAM_SCHEDULE = Exercise(
    training.noam_schedule,
    (Result("lr", "call"),),
    _noam_cases,
    {
        "maximum for minimum": (
            "The larger of the two terms is taken: the rate starts high, falls, and then grows without end. It is the "
            "smaller, min(step^(−1/2), step · warmup^(−3/2))."
        ),
        "sum for minimum": "The two terms are added; the rate is the smaller of them: min(…, …).",
        "product for minimum": "The two terms are multiplied; the rate is the smaller of them: min(…, …).",
        "no warm-up": (
            "There is no warm-up: this is d_model^(−1/2) · step^(−1/2), highest at step 1. Up to `warmup` steps the "
            "rate rises in a straight line, step · warmup^(−3/2). With another exponent, warmup^(+3/2) or none, this "
            "term is never the smaller one."
        ),
        "0 in the warm-up": (
            "The rate is 0 before `warmup` steps. It rises in a straight line there, step · warmup^(−3/2)."
        ),
        "no fall": "The rate rises without end: after `warmup` steps it falls with step^(−1/2).",
        "constant after the warm-up": (
            "The rate stays at its highest after the warm-up; it falls with step^(−1/2) there."
        ),
        "growing with √step": "The exponent of step has lost its sign: step^(+1/2) where it is step^(−1/2), 1/√step.",
        "falling with 1/step": "The rate falls with 1/step instead of 1/√step: the exponent of step is −1/2.",
        "falling with 1/step from the peak": (
            "After the warm-up the rate falls with 1/step, from the right height. It falls with 1/√step: the exponent "
            "is −1/2."
        ),
        "falling from step 1 after the warm-up": (
            "After the warm-up the steps are counted anew, (step − warmup)^(−1/2). step goes on: step^(−1/2)."
        ),
        "warm-up with warmup^(−1/2)": (
            "The warm-up is step · warmup^(−1/2); the exponent is −3/2, so that both terms are equal at step = warmup."
        ),
        "warm-up with warmup^(−1)": (
            "The warm-up is step / warmup, which is 1 at its end. It is step · warmup^(−3/2), so that both terms are "
            "equal at step = warmup."
        ),
        "warm-up with warmup^(−2)": (
            "The warm-up is step · warmup^(−2); the exponent is −3/2, so that both terms are equal at step = warmup."
        ),
        "warm-up with warmup^(−3)": "The exponent of warmup is −3 instead of −3/2.",
        "warm-up without step": (
            "The second term is warmup^(−3/2), without step: the rate is constant instead of rising. It is step · "
            "warmup^(−3/2)."
        ),
        "step and warmup swapped in the warm-up": (
            "The second term is warmup · step^(−3/2), which falls: step and warmup have changed places, step · "
            "warmup^(−3/2)."
        ),
        "d_model and warmup swapped": (
            "d_model and warmup have changed places: d_model^(−1/2) stands in front, warmup^(−3/2) in the warm-up."
        ),
        "√step in the warm-up": "The warm-up rises with √step; it is a straight line, step · warmup^(−3/2).",
        "no d_model": "The factor d_model^(−1/2) = 1/√d_model is missing: a wider model has a lower rate.",
        "√d_model for its inverse": "The factor is √d_model where it is 1/√d_model: the exponent has lost its sign.",
        "1/d_model without the root": (
            "The factor is 1/d_model; the square root is missing, d_model^(−1/2) = 1/√d_model."
        ),
        "d_model without the exponent": "The factor is d_model itself; it is d_model^(−1/2) = 1/√d_model.",
        "1/√d_model in the first term only": (
            "1/√d_model stands before step^(−1/2) only: it belongs before the minimum, as a factor of both terms."
        ),
        "1/√d_model in the second term only": (
            "1/√d_model stands before the warm-up only: it belongs before the minimum, as a factor of both terms."
        ),
        "highest rate 1": (
            "The rate is scaled so that its highest value is 1. That of the paper is 1/√(d_model · warmup)."
        ),
        "steps counted from 0": (
            "It counts with step − 1. The first step is 1: step^(−1/2) and step · warmup^(−3/2) as they are."
        ),
        "rate 0 at the first step": (
            "It counts with step − 1, and the rate of the first step is 0. The first step is 1: step^(−1/2) and step · "
            "warmup^(−3/2) as they are."
        ),
        "jump at the end of the warm-up": (
            "The warm-up is step / warmup, up to 1, and the fall begins at warmup^(−1/2): the rate jumps down at step "
            "= warmup. The warm-up is step · warmup^(−3/2), which ends where the fall begins."
        ),
        "jump after the end of the warm-up": (
            "The warm-up is step / warmup, up to 1, and the fall begins at warmup^(−1/2): the rate jumps down after "
            "step = warmup. The warm-up is step · warmup^(−3/2), which ends where the fall begins."
        ),
        "step one too large": (
            "It counts with step + 1. The first step is 1: step^(−1/2) and step · warmup^(−3/2) as they are."
        ),
    },
    _wrong_noam_schedule,
    (
        "Which of two curves is lower before `warmup` steps, and which after?",
        "lr = d_model^(−1/2) · min(step^(−1/2), step · warmup^(−3/2))",
        "notebook 07, “The learning rate”; Python's own min and ** are enough.",
    ),
    difficulty=1,
    section="Vaswani et al. 2017, §5.3",
    chapter="Training and decoding",
    place=4,
    drive=_drive_schedule,
)


def _cosine_cases(rng):
    warmup, after = (int(n) for n in (rng.integers(6, 15), rng.integers(16, 60)))
    total, max_lr = warmup + after, float(rng.uniform(0.5, 2))
    min_lr = float(max_lr * rng.uniform(0.1, 0.3))
    rates = max_lr, min_lr
    falling = [warmup + after * i // 7 for i in range(1, 7)]
    within = [1, 2, warmup // 2, warmup - 1, warmup, warmup + 1, *falling, total - 1, total]
    return [
        Case("", ([(step, *rates, warmup, total) for step in within],)),
        Case("steps after `total`", ([(total + n, *rates, warmup, total) for n in (1, 3, after, 2 * after + 5)],)),
        Case("warmup=0", ([(step, *rates, 0, total) for step in (1, total // 3, total // 2, total - 1)],)),
        Case("min_lr=0", ([(step, max_lr, 0.0, warmup, total) for step in within],)),
    ]


def _wrong_cosine_schedule(made, step, max_lr, min_lr, warmup, total):
    if made("steps counted from 0"):
        step = step - 1
    if made("step one too large"):
        step = step + 1
    if made("divided by a warm-up of 0"):
        step / warmup  # what min(1, step / warmup) does at warmup=0
    if made("max_lr and min_lr swapped"):
        max_lr, min_lr = min_lr, max_lr
    low = 0.0 if made("min_lr not used") or made("min_lr as a lower bound") else min_lr
    if made("warm-up as a factor of the cosine"):
        rise = min(1.0, step / warmup) if warmup else 1.0
        return rise * (min_lr + (max_lr - min_lr) * (1 + cos(pi * min(1.0, step / total))) / 2)
    if step <= warmup and warmup and not made("no warm-up"):
        if made("max_lr in the warm-up"):
            return max_lr
        if made("0 in the warm-up"):
            return 0.0
        if made("warm-up from min_lr"):
            return min_lr + (max_lr - min_lr) * step / warmup
        if made("warm-up one step too long"):
            return max_lr * step / (warmup + 1)
        if made("warm-up over all steps"):
            return max_lr * step / total
        if made("cosine in the warm-up"):
            return max_lr * (1 - cos(pi * step / warmup)) / 2
        return max_lr * step / warmup
    if made("constant after the warm-up"):
        return max_lr
    if made("0 after `total`") and step > total:
        return 0.0
    if made("max_lr after `total`") and step > total:
        return max_lr
    progress = (step - warmup) / (total - warmup)
    if made("progress one step behind"):
        progress = (step - warmup - 1) / (total - warmup)
    if made("progress from the step after the warm-up"):
        progress = (step - warmup - 1) / (total - warmup - 1)
    if made("progress from step 0") or made("no warm-up"):
        progress = step / total
    if made("progress over all steps"):
        progress = (step - warmup) / total
    if made("progress not from the warm-up"):
        progress = step / (total - warmup)
    if not made("rises again after `total`"):
        progress = min(1.0, progress)
    if made("straight line for cosine"):
        return low + (max_lr - low) * (1 - progress)
    angle = pi * progress
    if made("whole cosine"):
        angle = 2 * angle
    if made("quarter of a cosine"):
        return low + (max_lr - low) * cos(angle / 2)
    if made("π missing"):
        angle = progress
    if made("degrees for radians"):
        angle = 180 * progress
    wave = sin(angle) if made("sine for cosine") else cos(angle)
    height = (1 + wave) / 2
    if made("minus for plus before the cosine"):
        height = (1 - wave) / 2
    if made("½ missing"):
        height = 1 + wave
    if made("1 + missing"):
        height = wave
    if made("1 missing in the bracket"):
        height = wave / 2
    if made("min_lr added to the whole height"):
        return min_lr + max_lr * height
    if made("min_lr not added"):
        return (max_lr - min_lr) * height
    rate = low + (max_lr - low) * height
    return max(min_lr, rate) if made("min_lr as a lower bound") else rate


COSINE_SCHEDULE = Exercise(
    training.cosine_schedule,
    (Result("lr", "call"),),
    _cosine_cases,
    {
        "no warm-up": (
            "There is no warm-up: the cosine starts at step 0. Up to `warmup` steps the rate rises in a straight line, "
            "max_lr · step / warmup; the cosine begins after it."
        ),
        "max_lr in the warm-up": (
            "The rate is max_lr all through the warm-up. It rises in a straight line there, max_lr · step / warmup."
        ),
        "0 in the warm-up": "The rate is 0 in the warm-up. It rises in a straight line there, max_lr · step / warmup.",
        "warm-up from min_lr": ("The warm-up starts from min_lr. It starts from 0: max_lr · step / warmup."),
        "warm-up one step too long": (
            "The warm-up divides by warmup + 1; it ends with max_lr at step `warmup`: step / warmup."
        ),
        "warm-up over all steps": (
            "The warm-up divides by `total`: it has to reach max_lr at step `warmup`, step / warmup."
        ),
        "cosine in the warm-up": "The warm-up follows a cosine too; it is a straight line, max_lr · step / warmup.",
        "warm-up as a factor of the cosine": (
            "The cosine starts at step 0, and the warm-up is a factor before it, so that max_lr is never reached. It "
            "is one after the other: first the line up to max_lr, then the cosine from there."
        ),
        "divided by a warm-up of 0": (
            "warmup=0 ends in a division by 0. There is no warm-up then: ask for step ≤ warmup before dividing by it."
        ),
        "constant after the warm-up": (
            "The rate stays at max_lr after the warm-up; it falls to min_lr at step `total` there."
        ),
        "rises again after `total`": (
            "After step `total` the cosine goes on, and the rate rises again. It stays at min_lr: the progress is at "
            "most 1."
        ),
        "0 after `total`": "The rate is 0 after step `total`; it stays at min_lr.",
        "max_lr after `total`": "The rate is max_lr again after step `total`; it stays at min_lr.",
        "progress from step 0": (
            "The cosine is counted from step 0, step / total, so that the rate jumps at the end of the warm-up. It "
            "begins after it: (step − warmup) / (total − warmup)."
        ),
        "progress over all steps": (
            "The progress is (step − warmup) / total, which does not reach 1 at step `total`. It is (step − warmup) / "
            "(total − warmup)."
        ),
        "progress not from the warm-up": (
            "The progress is step / (total − warmup): warmup is not subtracted above. It is (step − warmup) / (total − "
            "warmup)."
        ),
        "progress one step behind": (
            "The progress is (step − warmup − 1) / (total − warmup), one step behind: it is 1 at step `total`, not "
            "after it."
        ),
        "progress from the step after the warm-up": (
            "The progress is (step − warmup − 1) / (total − warmup − 1): the cosine begins one step late. It begins at "
            "step `warmup`, where the warm-up ends."
        ),
        "straight line for cosine": (
            "The rate falls in a straight line; it follows half a cosine, (1 + cos(π · progress)) / 2."
        ),
        "whole cosine": "The rate goes down and up again: 2π instead of π. It is half a cosine, cos(π · progress).",
        "quarter of a cosine": (
            "This is cos(π/2 · progress), a quarter of a cosine. It is half of one, (1 + cos(π · progress)) / 2."
        ),
        "π missing": "π is missing in the cosine: cos(π · progress), which runs from 1 to −1.",
        "degrees for radians": "The angle is in degrees, 180 · progress; cos takes radians, π · progress.",
        "sine for cosine": "This is a sine; it is (1 + cos(π · progress)) / 2, which runs from 1 to 0.",
        "minus for plus before the cosine": (
            "This is (1 − cos(π · progress)) / 2, which rises from 0 to 1. It is (1 + cos(π · progress)) / 2."
        ),
        "½ missing": "The factor ½ is missing: (1 + cos(π · progress)) / 2 runs from 1 to 0, without it from 2.",
        "1 + missing": (
            "This is cos(π · progress), which runs to −1: the rate is negative. It is (1 + cos(π · progress)) / 2."
        ),
        "1 missing in the bracket": (
            "The 1 in (1 + cos(π · progress)) / 2 is missing: half a cosine alone runs from ½ to −½."
        ),
        "min_lr not used": (
            "min_lr is not used: the rate falls to 0. It falls to min_lr: min_lr + (max_lr − min_lr) · (1 + cos) / 2."
        ),
        "min_lr as a lower bound": (
            "min_lr is a lower bound, max(min_lr, …), of a cosine that falls to 0. The cosine itself runs from max_lr "
            "to min_lr: min_lr + (max_lr − min_lr) · (1 + cos) / 2."
        ),
        "min_lr added to the whole height": (
            "This is min_lr + max_lr · (1 + cos) / 2, which starts above max_lr. The cosine's height is max_lr − "
            "min_lr."
        ),
        "min_lr not added": (
            "This is (max_lr − min_lr) · (1 + cos) / 2, which falls to 0: min_lr has to be added to it."
        ),
        "max_lr and min_lr swapped": "max_lr and min_lr have changed places: the rate falls from max_lr to min_lr.",
        "steps counted from 0": "It counts with step − 1. The first step is 1, with max_lr / warmup.",
        "step one too large": "It counts with step + 1. The first step is 1, with max_lr / warmup.",
    },
    _wrong_cosine_schedule,
    (
        (
            "What is the share of the way from the end of the warm-up to `total`, and what should become of it after "
            "`total`?"
        ),
        "max_lr · step / warmup up to `warmup`; then min_lr + (max_lr − min_lr) · (1 + cos(π · progress)) / 2",
        (
            "Loshchilov & Hutter 2017, equation 5; math.cos and math.pi. progress = (step − warmup) / (total − "
            "warmup), at most 1."
        ),
    ),
    difficulty=1,
    section="Loshchilov & Hutter 2017",
    chapter="Training and decoding",
    place=5,
    drive=_drive_schedule,
)


EXERCISES = [NOAM_SCHEDULE, COSINE_SCHEDULE]
