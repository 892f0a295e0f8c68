"""Learning rate schedules."""

from math import cos, pi, sin  # noqa: F401 - sin for the mistakes

import numpy as np

from ... import training
from ..exercise import Case, Exercise, Result, extended


def drive_schedule(answer, calls):
    """The learning rate of every call, (calls,)."""
    rates = [answer(*arguments) for arguments in calls]
    return None if any(rate is None for rate in rates) else np.array(rates)


def noam_cases(rng):
    d_model, warmup = (int(n) for n in (rng.integers(8, 100), rng.integers(10, 40)))
    steps = [1, 2, warmup // 2, warmup - 1, warmup, warmup + 1, 2 * warmup, 5 * warmup]
    late = [int(step) for step in warmup + np.sort(rng.integers(2, 300, size=6))]
    return [
        Case("", ([(step, d_model, warmup) for step in steps],)),
        Case("steps after the warm-up", ([(step, d_model, warmup) for step in late],)),
        Case("warmup=1", ([(step, d_model, 1) for step in (1, 2, 3, 10)],)),
        Case("d_model=512, warmup=4000", ([(step, 512, 4000) for step in (1, 100, 3999, 4000, 8000, 100000)],)),
    ]


def noam_schedule(step, d_model, warmup):
    rise = step * warmup**-1.5
    fall = step**-0.5
    return d_model**-0.5 * min(rise, fall)


NOAM_SCHEDULE = Exercise(
    training.noam_schedule,
    results=(Result("lr", "call"),),
    cases=noam_cases,
    answer=noam_schedule,
    hints=(
        "Which of two curves is lower before `warmup` steps, and which after?",
        "lr = d_model^(−1/2) · min(step^(−1/2), step · warmup^(−3/2))",
        "notebook 07, “The learning rate”; Python's own min and ** are enough.",
    ),
    difficulty=1,
    section="Vaswani et al. 2017, §5.3",
    chapter="Training and decoding",
    place=4,
    drive=drive_schedule,
    mistakes="""
- maximum for minimum:  min(rise, fall) -> max(rise, fall)
  The larger of the two terms is taken: the rate starts high, falls, and then grows without end. It is the smaller,
  min(step^(−1/2), step · warmup^(−3/2)).
- sum for minimum:  min(rise, fall) -> (rise + fall)
  The two terms are added; the rate is the smaller of them: min(…, …).
- product for minimum:  min(rise, fall) -> rise * fall
  The two terms are multiplied; the rate is the smaller of them: min(…, …).
- no warm-up:  min(rise, fall) -> fall
  There is no warm-up: this is d_model^(−1/2) · step^(−1/2), highest at step 1. Up to `warmup` steps the rate rises in a
  straight line, step · warmup^(−3/2). With another exponent, warmup^(+3/2) or none, this term is never the smaller one.
- 0 in the warm-up:  min(rise, fall) -> (0 if step < warmup else fall)
  The rate is 0 before `warmup` steps. It rises in a straight line there, step · warmup^(−3/2).
- no fall:  min(rise, fall) -> rise
  The rate rises without end: after `warmup` steps it falls with step^(−1/2).
- constant after the warm-up:  step**-0.5 -> warmup**-0.5
  The rate stays at its highest after the warm-up; it falls with step^(−1/2) there.
- growing with √step:  step**-0.5 -> step**0.5
  The exponent of step has lost its sign: step^(+1/2) where it is step^(−1/2), 1/√step.
- falling with 1/step:  step**-0.5 -> 1 / step
  The rate falls with 1/step instead of 1/√step: the exponent of step is −1/2.
- falling with 1/step from the peak:  step**-0.5 -> warmup**0.5 / step
  After the warm-up the rate falls with 1/step, from the right height. It falls with 1/√step: the exponent is −1/2.
- falling from step 1 after the warm-up:  step**-0.5 -> max(1, step - warmup) ** -0.5
  After the warm-up the steps are counted from 1 again, (step − warmup)^(−1/2). Use the step itself: step^(−1/2).
- warm-up with warmup^(−1/2):  warmup**-1.5 -> warmup**-0.5
  The warm-up is step · warmup^(−1/2); the exponent is −3/2, so that both terms are equal at step = warmup.
- warm-up with warmup^(−1):  step * warmup**-1.5 -> step / warmup
  The warm-up is step / warmup, which is 1 at its end. It is step · warmup^(−3/2), so that both terms are equal at step
  = warmup.
- warm-up with warmup^(−2):  step * warmup**-1.5 -> step / warmup**2
  The warm-up is step · warmup^(−2); the exponent is −3/2, so that both terms are equal at step = warmup.
- warm-up with warmup^(−3):  step * warmup**-1.5 -> step / warmup**3
  The exponent of warmup is −3 instead of −3/2.
- warm-up without step:  step * warmup**-1.5 -> warmup**-1.5
  The second term is warmup^(−3/2), without step: the rate is constant instead of rising. It is step · warmup^(−3/2).
- step and warmup swapped in the warm-up:  step * warmup**-1.5 -> warmup * step**-1.5
  The second term is warmup · step^(−3/2), which falls: step and warmup are swapped, step · warmup^(−3/2).
- d_model and warmup swapped:
    warmup**-1.5 -> d_model**-1.5
    d_model**-0.5 -> warmup**-0.5
  d_model and warmup are swapped: d_model^(−1/2) stands in front, warmup^(−3/2) in the warm-up.
- √step in the warm-up:  step * warmup**-1.5 -> step**0.5 * warmup**-1.5
  The warm-up rises with √step; it is a straight line, step · warmup^(−3/2).
- no d_model:  d_model**-0.5 * min -> min
  The factor d_model^(−1/2) = 1/√d_model is missing: a wider model has a lower rate.
- √d_model for its inverse:  d_model**-0.5 -> d_model**0.5
  The factor is √d_model where it is 1/√d_model: the exponent has lost its sign.
- 1/d_model without the root:  d_model**-0.5 -> 1 / d_model
  The factor is 1/d_model; the square root is missing, d_model^(−1/2) = 1/√d_model.
- d_model without the exponent:  d_model**-0.5 -> d_model
  The factor is d_model itself; it is d_model^(−1/2) = 1/√d_model.
- 1/√d_model in the first term only:  d_model**-0.5 * min(rise, fall) -> min(rise, d_model**-0.5 * fall)
  1/√d_model stands before step^(−1/2) only: it belongs before the minimum, as a factor of both terms.
- 1/√d_model in the second term only:  d_model**-0.5 * min(rise, fall) -> min(d_model**-0.5 * rise, fall)
  1/√d_model stands before the warm-up only: it belongs before the minimum, as a factor of both terms.
- highest rate 1:  d_model**-0.5 -> warmup**0.5
  The rate is scaled so that its highest value is 1. In the paper the highest value is 1/√(d_model · warmup).
- steps counted from 0:  rise = -> step = step - 1; rise =
  It counts with step − 1. The first step is 1: step^(−1/2) and step · warmup^(−3/2) as they are.
- rate 0 at the first step:
    rise = ->
        step = step - 1
        if step == 0:
            return 0.0
        rise =
  It counts with step − 1, and the rate of the first step is 0. The first step is 1: step^(−1/2) and step ·
  warmup^(−3/2) as they are.
- jump at the end of the warm-up:  min(rise, fall) -> (step / warmup if step < warmup else fall)
  The warm-up is step / warmup, up to 1, and the fall begins at warmup^(−1/2): the rate jumps down at step = warmup. The
  warm-up is step · warmup^(−3/2), which ends where the fall begins.
- jump after the end of the warm-up:  min(rise, fall) -> (step / warmup if step <= warmup else fall)
  The warm-up is step / warmup, up to 1, and the fall begins at warmup^(−1/2): the rate jumps down after step = warmup.
  The warm-up is step · warmup^(−3/2), which ends where the fall begins.
- step one too large:  rise = -> step = step + 1; rise =
  It counts with step + 1. The first step is 1: step^(−1/2) and step · warmup^(−3/2) as they are.
""",
)


def cosine_cases(rng):
    warmup, after = (int(n) for n in (rng.integers(6, 15), rng.integers(16, 60)))
    total, max_lr = warmup + after, float(rng.uniform(0.5, 2))
    min_lr = float(max_lr * rng.uniform(0.1, 0.3))
    rates = max_lr, min_lr
    falling = [warmup + after * i // 7 for i in range(1, 7)]
    within = [1, 2, warmup // 2, warmup - 1, warmup, warmup + 1, *falling, total - 1, total]
    return [
        Case("", ([(step, *rates, warmup, total) for step in within],)),
        Case("steps after `total`", ([(total + n, *rates, warmup, total) for n in (1, 3, after, 2 * after + 5)],)),
        extended(Case("warmup=0", ([(step, *rates, 0, total) for step in (1, total // 3, total // 2, total - 1)],))),
        Case("min_lr=0", ([(step, max_lr, 0.0, warmup, total) for step in within],)),
    ]


def cosine_schedule(step, max_lr, min_lr, warmup, total):
    if step <= warmup:
        return max_lr * step / warmup
    progress = (step - warmup) / (total - warmup)
    progress = min(1, progress)
    height = (1 + cos(pi * progress)) / 2
    return min_lr + (max_lr - min_lr) * height


COSINE_SCHEDULE = Exercise(
    training.cosine_schedule,
    results=(Result("lr", "call"),),
    cases=cosine_cases,
    answer=cosine_schedule,
    hints=(
        (
            "Which share of the steps from the end of the warm-up to `total` is done, and what happens to the share "
            "after `total`?"
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
    drive=drive_schedule,
    mistakes="""
- no warm-up:
    height = (1 + cos(pi * min(1, step / total))) / 2
    return min_lr + (max_lr - min_lr) * height
  There is no warm-up: the cosine starts at step 0. Up to `warmup` steps the rate rises in a straight line, max_lr ·
  step / warmup; the cosine begins after it.
- max_lr in the warm-up:  max_lr * step / warmup -> max_lr
  The rate is max_lr all through the warm-up. It rises in a straight line there, max_lr · step / warmup.
- 0 in the warm-up:  max_lr * step / warmup -> 0.0
  The rate is 0 in the warm-up. It rises in a straight line there, max_lr · step / warmup.
- warm-up from min_lr:  max_lr * step / warmup -> min_lr + (max_lr - min_lr) * step / warmup
  The warm-up starts from min_lr. It starts from 0: max_lr · step / warmup.
- warm-up one step too long:  step / warmup -> step / (warmup + 1)
  The warm-up divides by warmup + 1; it ends with max_lr at step `warmup`: step / warmup.
- warm-up over all steps:  step / warmup -> step / total
  The warm-up divides by `total`: it has to reach max_lr at step `warmup`, step / warmup.
- cosine in the warm-up:  max_lr * step / warmup -> max_lr * (1 - cos(pi * step / warmup)) / 2
  The warm-up follows a cosine too; it is a straight line, max_lr · step / warmup.
- warm-up as a factor of the cosine:
    rise = min(1, step / warmup) if warmup else 1
    height = (1 + cos(pi * min(1, step / total))) / 2
    return rise * (min_lr + (max_lr - min_lr) * height)
  The cosine starts at step 0, and the warm-up is a factor before it, so that max_lr is never reached. It is one after
  the other: first the line up to max_lr, then the cosine from there.
- divided by a warm-up of 0:
    if step <= warmup: return max_lr * step / warmup ->
        rise = min(1, step / warmup)
        if rise < 1:
            return max_lr * rise
  warmup=0 ends in a division by 0. There is no warm-up then: ask for step ≤ warmup before dividing by it.
- constant after the warm-up:  return min_lr + (max_lr - min_lr) * height -> return max_lr
  The rate stays at max_lr after the warm-up; it falls to min_lr at step `total` there.
- rises again after `total`:  min(1, progress) -> progress
  After step `total` the cosine goes on, and the rate rises again. It stays at min_lr: the progress is at most 1.
- 0 after `total`:
    progress = min(1, progress) ->
        if progress > 1:
            return 0.0
  The rate is 0 after step `total`; it stays at min_lr.
- max_lr after `total`:
    progress = min(1, progress) ->
        if progress > 1:
            return max_lr
  The rate is max_lr again after step `total`; it stays at min_lr.
- progress from step 0:  (step - warmup) / (total - warmup) -> step / total
  The cosine is counted from step 0, step / total, so that the rate jumps at the end of the warm-up. It begins after it:
  (step − warmup) / (total − warmup).
- progress over all steps:  / (total - warmup) -> / total
  The progress is (step − warmup) / total, which does not reach 1 at step `total`. It is (step − warmup) / (total −
  warmup).
- progress not from the warm-up:  (step - warmup) / -> step /
  The progress is step / (total − warmup): warmup is not subtracted above. It is (step − warmup) / (total − warmup).
- progress one step behind:  (step - warmup) -> (step - warmup - 1)
  The progress is (step − warmup − 1) / (total − warmup), one step behind: it is 1 at step `total`, not after it.
- progress from the step after the warm-up:
    (step - warmup) / (total - warmup) -> (step - warmup - 1) / (total - warmup - 1)
  The progress is (step − warmup − 1) / (total − warmup − 1): the cosine begins one step late. It begins at step
  `warmup`, where the warm-up ends.
- straight line for cosine:  (1 + cos(pi * progress)) / 2 -> 1 - progress
  The rate falls in a straight line; it follows half a cosine, (1 + cos(π · progress)) / 2.
- whole cosine:  pi * progress -> 2 * pi * progress
  The rate goes down and up again: 2π instead of π. It is half a cosine, cos(π · progress).
- quarter of a cosine:  (1 + cos(pi * progress)) / 2 -> cos(pi / 2 * progress)
  This is cos(π/2 · progress), a quarter of a cosine. It is half of one, (1 + cos(π · progress)) / 2.
- π missing:  pi * progress -> progress
  π is missing in the cosine: cos(π · progress), which runs from 1 to −1.
- degrees for radians:  pi * progress -> 180 * progress
  The angle is in degrees, 180 · progress; cos takes radians, π · progress.
- sine for cosine:  cos(pi * progress) -> sin(pi * progress)
  This is a sine; it is (1 + cos(π · progress)) / 2, which runs from 1 to 0.
- minus for plus before the cosine:  1 + cos -> 1 - cos
  This is (1 − cos(π · progress)) / 2, which rises from 0 to 1. It is (1 + cos(π · progress)) / 2.
- ½ missing:  (1 + cos(pi * progress)) / 2 -> 1 + cos(pi * progress)
  The factor ½ is missing: (1 + cos(π · progress)) / 2 runs from 1 to 0, without it from 2.
- 1 + missing:  (1 + cos(pi * progress)) / 2 -> cos(pi * progress)
  This is cos(π · progress), which runs to −1: the rate is negative. It is (1 + cos(π · progress)) / 2.
- 1 missing in the bracket:  (1 + cos(pi * progress)) -> cos(pi * progress)
  The 1 in (1 + cos(π · progress)) / 2 is missing: half a cosine alone runs from ½ to −½.
- min_lr not used:  min_lr + (max_lr - min_lr) * height -> max_lr * height
  min_lr is not used: the rate falls to 0. It falls to min_lr: min_lr + (max_lr − min_lr) · (1 + cos) / 2.
- min_lr as a lower bound:  min_lr + (max_lr - min_lr) * height -> max(min_lr, max_lr * height)
  min_lr is a lower bound, max(min_lr, …), of a cosine that falls to 0. The cosine itself runs from max_lr to min_lr:
  min_lr + (max_lr − min_lr) · (1 + cos) / 2.
- min_lr added to the whole height:  (max_lr - min_lr) * height -> max_lr * height
  This is min_lr + max_lr · (1 + cos) / 2, which starts above max_lr. The cosine's height is max_lr − min_lr.
- min_lr not added:  min_lr + (max_lr - min_lr) -> (max_lr - min_lr)
  This is (max_lr − min_lr) · (1 + cos) / 2, which falls to 0: min_lr has to be added to it.
- max_lr and min_lr swapped:  if step <= warmup: -> max_lr, min_lr = min_lr, max_lr; if step <= warmup:
  max_lr and min_lr are swapped: the rate falls from max_lr to min_lr.
- steps counted from 0:  if step <= warmup: -> step = step - 1; if warmup and step <= warmup:
  It counts with step − 1. The first step is 1, with max_lr / warmup.
- step one too large:  if step <= warmup: -> step = step + 1; if step <= warmup:
  It counts with step + 1. The first step is 1, with max_lr / warmup.
""",
)


EXERCISES = [NOAM_SCHEDULE, COSINE_SCHEDULE]
