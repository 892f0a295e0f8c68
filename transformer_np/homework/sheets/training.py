"""Adam, the two schedules of the learning rate, and the clipping of gradients."""

from math import cos, pi, sin

import numpy as np

from ... import training
from ...module import Parameter
from ..exercise import Case, Exercise, Result, draw_sizes

# --- Adam ------------------------------------------------------------------------------------------------------------

_STEPS = 5


def _adam_cases(rng):
    sizes = draw_sizes(rng, "D_in D_out D")
    shapes = (sizes["D_in"], sizes["D_out"]), (sizes["D"],)
    values = [rng.normal(size=shape) for shape in shapes]

    def gradients(scale):
        return [[scale * rng.normal(size=shape) for shape in shapes] for _ in range(_STEPS)]

    still = gradients(1.0)
    for _, of_vector in still:
        of_vector[0] = 0.0
    return [
        Case("", (values, gradients(1.0)), {"lr": 0.1}, sizes),
        Case("betas=(0.5, 0.8)", (values, gradients(2.0)), {"lr": 0.2, "betas": (0.5, 0.8)}, sizes),
        Case("eps=0.3", (values, gradients(0.5)), {"lr": 0.1, "betas": (0.8, 0.95), "eps": 0.3}, sizes),
        Case("a gradient that stays 0", (values, still), {"lr": 0.1, "betas": (0.9, 0.98), "eps": 1e-9}, sizes),
    ]


def _drive_adam(answer, values, gradients, **options):
    """How far every number has moved after each step, (steps, numbers)."""
    parameters = [Parameter(array) for array in values]
    optimizer = answer(parameters, **options)
    moved = []
    for of_step in gradients:
        for parameter, gradient in zip(parameters, of_step, strict=True):
            parameter.grad[...] = (
                gradient  # in place, after the optimizer was made: it may hold the gradients in a buffer
            )
        optimizer.step()
        moved.append(_flat([p.data - array for p, array in zip(parameters, values, strict=True)]))
    return np.array(moved)


def _flat(arrays):
    return np.concatenate([np.ravel(array) for array in arrays])


def _wrong_adam(made):
    class Adam:
        def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            self.parameters, self.lr, self.betas, self.eps = list(parameters), lr, betas, eps
            if made("betas not used"):
                self.betas = 0.9, 0.999
            self.m = [np.zeros(p.shape) for p in self.parameters]
            self.v = [np.zeros(p.shape) for p in self.parameters]
            self.largest = [np.zeros(p.shape) for p in self.parameters]
            self.t = 0

        def zero_grad(self):
            for p in self.parameters:
                p.grad[...] = 0

        def step(self):
            self.t += 2 if made("steps counted twice") else 1
            for i, p in enumerate(self.parameters):
                if made("steps counted for each parameter") and i:
                    self.t += 1
                if not (made("only the first parameter") and i):
                    p.data = self._updated(i, p.data.copy(), p.grad.copy())

        def _updated(self, i, p, g):
            beta1, beta2 = self.betas
            if made("β₁ and β₂ swapped"):
                beta1, beta2 = beta2, beta1
            if made("β₁ for both averages"):
                beta2 = beta1
            if made("β₂ for both averages"):
                beta1 = beta2
            if made("weight decay added to the gradient"):
                g = g + 0.01 * p
            old_m, old_v = self.m[i], self.v[i]
            new1, new2 = 1 - beta1, 1 - beta2
            if made("β and 1 − β exchanged"):
                beta1, beta2, new1, new2 = new1, new2, beta1, beta2
            if made("1 − β₁ missing"):
                new1 = 1
            if made("1 − β₂ missing"):
                new2 = 1
            if made("v a sum that forgets nothing"):
                beta2, new2 = 1, 1
            m = beta1 * old_m + new1 * g
            if made("g not squared in v"):
                square = g
            elif made("|g| for g² in v"):
                square = np.abs(g)
            elif made("m² for g² in v"):
                square = m * m
            elif made("one v for a whole parameter"):
                square = np.sum(g * g)
            elif made("one mean square for a whole parameter"):
                square = np.mean(g * g)
            elif made("v centred"):
                square = (g - m) ** 2
            else:
                square = g * g
            v = beta2 * old_v + new2 * square
            if made("v never falls"):
                v = np.maximum(v, old_v)
            if not (made("averages not kept") or made("m not kept")):
                self.m[i] = m
            if not (made("averages not kept") or made("v not kept")):
                self.v[i] = v
            if made("averages of the step before"):
                m, v = old_m, old_v
            m_hat, v_hat = self._corrected(m, v)
            if made("corrected averages kept") or made("corrected m kept"):
                self.m[i] = m_hat
            if made("corrected averages kept") or made("corrected v kept"):
                self.v[i] = v_hat
            if made("largest v so far"):
                v_hat = self.largest[i] = np.maximum(self.largest[i], v_hat)
            if made("g for m"):
                m_hat = g
            if made("m of the next step"):
                m_hat = beta1 * m_hat + (1 - beta1) * g / (1 - beta1**self.t)
            return self._moved(p, g, m_hat, v_hat)

        def _corrected(self, m, v):
            beta1, beta2 = self.betas
            t = self.t
            if made("t from 0"):
                t -= 1
            if made("t one too small, the first step not corrected"):
                t -= 1
                if t == 0:
                    return m, v
            if made("t one too large"):
                t += 1
            first, second = 1 - beta1**t, 1 - beta2**t
            if made("bias corrections swapped"):
                first, second = second, first
            if made("root of 1 − β₂ᵗ missing"):
                second = second**2  # it comes under the root
            if made("β₁ in both bias corrections") or made("β₁ for both averages"):
                second = first
            if made("β₂ in both bias corrections") or made("β₂ for both averages"):
                first = second
            if made("β · t for βᵗ"):
                first, second = 1 - beta1 * t, 1 - beta2 * t
            if made("β for βᵗ") or made("β₁ for β₁ᵗ"):
                first = 1 - beta1
            if made("β for βᵗ") or made("β₂ for β₂ᵗ"):
                second = 1 - beta2
            if made("βᵗ for 1 − βᵗ"):
                first, second = beta1**t, beta2**t
            if made("1 + βᵗ for 1 − βᵗ"):
                first, second = 1 + beta1**t, 1 + beta2**t
            if made("multiplied by 1 − βᵗ"):
                first, second = 1 / first, 1 / second
            if made("no bias correction") or made("m not corrected"):
                first = 1
            if made("no bias correction") or made("v not corrected"):
                second = 1
            return m / first, v / second

        def _moved(self, p, g, m_hat, v_hat):
            eps, lr = self.eps, self.lr
            if made("eps forgotten"):
                eps = 0.0
            if made("eps not used"):
                eps = 1e-8
            if made("lr not used"):
                lr = 1.0
            if made("lr divided by √t"):
                lr = lr / self.t**0.5
            if made("lr fixed at 0.001"):
                lr = 1e-3
            if made("eps under the root"):
                root = np.sqrt(v_hat + eps)
            elif made("square root forgotten"):
                root = v_hat + eps
            elif made("eps as a lower bound"):
                root = np.maximum(np.sqrt(v_hat), eps)
            elif made("root of eps"):
                root = np.sqrt(v_hat) + eps**0.5
            elif made("eps added before v is corrected"):
                root = np.sqrt(v_hat) + eps / np.sqrt(1 - self.betas[1] ** self.t)
            else:
                root = np.sqrt(v_hat) + eps
            update = m_hat * root if made("multiplied by the root") else m_hat / root
            if made("eps added to the quotient") or made("eps added to the step"):
                update = m_hat / np.sqrt(v_hat)
                update += eps / (lr if made("eps added to the step") else 1)
            if made("v not used"):
                update = m_hat
            if made("plain gradient descent"):
                update = g
            if made("only the sign of m"):
                update = np.sign(m_hat)
            if made("p itself decayed"):
                p = p - 0.01 * lr * p
            if made("parameters not changed"):
                return p
            if made("p replaced by the update"):
                return -lr * update
            return p + lr * update if made("ascent") else p - lr * update

    return Adam


ADAM = Exercise(
    training.Adam,
    (Result("change of the parameters", "step number"),),
    _adam_cases,
    {
        "no bias correction": (
            "The bias correction is missing: m and v start at 0 and are too small at first; m̂ = m / (1 − β₁ᵗ) and v̂ "
            "= v / (1 − β₂ᵗ) make up for it."
        ),
        "m not corrected": "m is not corrected for its start at 0: m̂ = m / (1 − β₁ᵗ), as v̂ = v / (1 − β₂ᵗ).",
        "v not corrected": (
            "v is not corrected for its start at 0, so that the first steps are far too long: v̂ = v / (1 − β₂ᵗ), as "
            "m̂ = m / (1 − β₁ᵗ)."
        ),
        "bias corrections swapped": (
            "The two bias corrections have changed places: m is divided by 1 − β₂ᵗ and v by 1 − β₁ᵗ, and should be the "
            "other way round."
        ),
        "β₁ in both bias corrections": "v is corrected with β₁; its own average has β₂: v̂ = v / (1 − β₂ᵗ).",
        "β₂ in both bias corrections": "m is corrected with β₂; its own average has β₁: m̂ = m / (1 − β₁ᵗ).",
        "β for βᵗ": (
            "The bias correction divides by 1 − β at every step: the power t is missing, or t does not grow. It is 1 − "
            "βᵗ, which goes to 1."
        ),
        "β₁ for β₁ᵗ": (
            "m is divided by 1 − β₁ at every step: the power t is missing. It is 1 − β₁ᵗ, which goes to 1, as in v̂."
        ),
        "β₂ for β₂ᵗ": (
            "v is divided by 1 − β₂ at every step: the power t is missing. It is 1 − β₂ᵗ, which goes to 1, as in m̂."
        ),
        "β · t for βᵗ": "The bias correction has β · t where it should have the power βᵗ: 1 − βᵗ.",
        "βᵗ for 1 − βᵗ": "The bias correction divides by βᵗ instead of by 1 − βᵗ.",
        "1 + βᵗ for 1 − βᵗ": "The bias correction divides by 1 + βᵗ instead of by 1 − βᵗ: a sign is wrong.",
        "multiplied by 1 − βᵗ": (
            "The averages are multiplied by 1 − βᵗ where they have to be divided by it: they are too small, and become "
            "smaller."
        ),
        "root of 1 − β₂ᵗ missing": (
            "With the correction drawn to the front the factor is √(1 − β₂ᵗ) / (1 − β₁ᵗ), because v̂ stands under the "
            "root; here it has 1 − β₂ᵗ without the root."
        ),
        "corrected averages kept": (
            "m̂ and v̂ are stored in the place of m and v, so that the next step corrects them again. The averages go "
            "on from the uncorrected m and v."
        ),
        "corrected m kept": (
            "m̂ is stored in the place of m, so that the next step corrects it again. The average goes on from the "
            "uncorrected m."
        ),
        "corrected v kept": (
            "v̂ is stored in the place of v, so that the next step corrects it again. The average goes on from the "
            "uncorrected v."
        ),
        "t one too small, the first step not corrected": (
            "t is one too small: the first step, with t = 0, goes without a bias correction, and the second has 1 − "
            "β¹. Count before the update, so that the first step has t = 1."
        ),
        "t from 0": (
            "t is 0 in the first step, so that 1 − β⁰ = 0 is divided by: NaN or inf. The first step has t = 1; count "
            "before the update."
        ),
        "t one too large": "t is one too large: the first step has t = 1, 1 − β¹. Here it begins with 1 − β².",
        "steps counted twice": (
            "t grows by 2 at every step. The library's `step` has counted already: read `self.steps`, do not add to it."
        ),
        "steps counted for each parameter": (
            "t grows with every parameter instead of once a step: the second parameter has t = 2 in the first step "
            "already."
        ),
        "eps not used": "The argument `eps` is not used: the ε beside the root is always the same.",
        "eps forgotten": "ε is missing: m̂ / (√v̂ + ε). Where a gradient has always been 0 this is 0/0, which is NaN.",
        "eps under the root": "ε is added under the root, √(v̂ + ε). It stands beside it: √v̂ + ε.",
        "root of eps": "√ε is added to √v̂; it is ε itself, √v̂ + ε.",
        "eps as a lower bound": "ε is a lower bound, max(√v̂, ε), where it has to be added: √v̂ + ε.",
        "eps added before v is corrected": (
            "ε is added to √v, and the bias correction comes after it, so that ε is divided by √(1 − β₂ᵗ) too. It is "
            "√v̂ + ε, with the corrected v̂."
        ),
        "eps added to the quotient": (
            "ε is added to the quotient, m̂ / √v̂ + ε: a bracket is missing. It is m̂ / (√v̂ + ε)."
        ),
        "eps added to the step": (
            "ε is added to the step, lr · m̂ / √v̂ + ε: a bracket is missing. It is lr · m̂ / (√v̂ + ε)."
        ),
        "square root forgotten": "m̂ is divided by v̂ + ε: the square root is missing, m̂ / (√v̂ + ε).",
        "multiplied by the root": "m̂ is multiplied by √v̂ + ε where it has to be divided by it.",
        "β₁ and β₂ swapped": "β₁ and β₂ have changed places in the averages: m has β₁, v has β₂; betas = (β₁, β₂).",
        "β₁ for both averages": "β₁ is used for v too; v has β₂: betas = (β₁, β₂).",
        "β₂ for both averages": "β₂ is used for m too; m has β₁: betas = (β₁, β₂).",
        "betas not used": "The argument `betas` is not used: β₁ and β₂ are always 0.9 and 0.999.",
        "β and 1 − β exchanged": (
            "β and 1 − β have changed places: m = β₁ m + (1 − β₁) g keeps most of the old average and takes in a "
            "little of the new gradient."
        ),
        "1 − β₁ missing": "The factor 1 − β₁ is missing: m = β₁ m + (1 − β₁) g. Without it m is a sum, not an average.",
        "1 − β₂ missing": (
            "The factor 1 − β₂ is missing: v = β₂ v + (1 − β₂) g². Without it v is a sum, not an average."
        ),
        "v a sum that forgets nothing": (
            "v is the sum of all g², as in Adagrad. It is an average that forgets: v = β₂ v + (1 − β₂) g²."
        ),
        "g not squared in v": (
            "The gradient is not squared in v: v = β₂ v + (1 − β₂) g². The root of a negative v is NaN."
        ),
        "|g| for g² in v": "v averages |g| instead of g²: v = β₂ v + (1 − β₂) g².",
        "m² for g² in v": "v averages m² instead of g²: v = β₂ v + (1 − β₂) g², with the gradient itself.",
        "v centred": "v averages (g − m)² instead of g²: it is the mean square, not the variance.",
        "one v for a whole parameter": (
            "v has the sum of g² over a whole parameter, one number. Every element has its own: g · g, element by "
            "element."
        ),
        "one mean square for a whole parameter": (
            "v has the mean of g² over a whole parameter, one number. Every element has its own: g · g, element by "
            "element."
        ),
        "averages not kept": (
            "m and v do not remember: at every step they start from 0 again. `m = …` gives a new array to a local "
            "name; write into the one that is there, `m *= β₁` and then `m += …`, or store it."
        ),
        "m not kept": "m does not remember: at every step it starts from 0 again. Write the new m into the stored one.",
        "v not kept": "v does not remember: at every step it starts from 0 again. Write the new v into the stored one.",
        "averages of the step before": (
            "The update uses m and v from before this step. First take g into the averages, then move the parameters."
        ),
        "m of the next step": (
            "m̂ takes in g a second time, β₁ m̂ + (1 − β₁) g / (1 − β₁ᵗ): that is the look-ahead of NAdam. Adam uses m̂ "
            "as it is."
        ),
        "g for m": "The gradient itself stands above the fraction line. It is its average m̂: m̂ / (√v̂ + ε).",
        "v not used": (
            "Only m̂ is used, p −= lr · m̂: that is momentum. Adam divides by √v̂ + ε, so that every element has a "
            "step of its own."
        ),
        "plain gradient descent": "This is p −= lr · g, without either average. Adam has p −= lr · m̂ / (√v̂ + ε).",
        "only the sign of m": (
            "The step is lr · sign(m̂). In Adam its size is m̂ / (√v̂ + ε), which changes from step to step."
        ),
        "largest v so far": "v̂ is the largest one so far, as in AMSGrad. In Adam v̂ may fall again.",
        "v never falls": (
            "v is kept at its largest value: max(v, β₂ v + (1 − β₂) g²). In Adam v may fall again: v = β₂ v + (1 − β₂) "
            "g²."
        ),
        "weight decay added to the gradient": "A weight decay of 0.01 · p is added to the gradient. Adam has none.",
        "p itself decayed": "The parameters are made smaller by lr · 0.01 · p, as in AdamW. Adam has no weight decay.",
        "lr not used": "The learning rate is missing: p −= lr · m̂ / (√v̂ + ε).",
        "lr divided by √t": (
            "The learning rate falls with 1/√t. A schedule is set from outside; here lr is used as it is."
        ),
        "lr fixed at 0.001": "The learning rate is always 0.001, the default; it is the argument `lr`.",
        "ascent": "The update is added, so the loss grows: p −= lr · m̂ / (√v̂ + ε), against the gradient.",
        "parameters not changed": (
            "The parameters do not change. `p = p − …` gives a new array to the local name p; write into the one that "
            "is there, `p −= …`, or assign to the parameter's `.data`."
        ),
        "p replaced by the update": (
            "The parameter becomes the update, −lr · m̂ / (√v̂ + ε), instead of being moved by it."
        ),
        "only the first parameter": (
            "Only the first parameter moves: a `return` or `break` inside the loop ends it too soon."
        ),
    },
    _wrong_adam,
    (
        (
            "Both averages start at 0. How much of their final size have they after one step, and what makes up for "
            "the rest?"
        ),
        (
            "m = β₁ m + (1 − β₁) g,  v = β₂ v + (1 − β₂) g²,  p −= lr · m̂ / (√v̂ + ε),  m̂ = m / (1 − β₁ᵗ),  v̂ = v / "
            "(1 − β₂ᵗ)"
        ),
        (
            "notebook 07, “Training”; Kingma & Ba 2015, algorithm 1. self.steps is t, 1 at the first step. Write with "
            "`*=` and `+=`."
        ),
    ),
    difficulty=2,
    section="Vaswani et al. 2017, §5.3",
    drive=_drive_adam,
    parts=("_update",),
)


# --- schedules -------------------------------------------------------------------------------------------------------


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
    drive=_drive_schedule,
)


# --- clip_grad_norm --------------------------------------------------------------------------------------------------


def _clip_cases(rng):
    sizes = draw_sizes(rng, "D_in D_out D", least=3)
    shapes = (sizes["D_in"], sizes["D_out"]), (sizes["D"],), (sizes["D_out"],)

    def case(label, norm, max_norm):
        values, gradients = ([rng.normal(size=shape) for shape in shapes] for _ in range(2))
        gradients[1] = 5 * gradients[1]  # the longest is neither the first nor the last
        factor = norm / np.linalg.norm(_flat(gradients))
        return Case(label, (values, [factor * g for g in gradients], max_norm), sizes=sizes)

    return [
        case("", rng.uniform(4, 8), float(rng.uniform(1.5, 2.5))),
        case("max_norm below 1", rng.uniform(2, 4), float(rng.uniform(0.2, 0.5))),
        case("a norm below max_norm", rng.uniform(2, 3), float(rng.uniform(3.5, 4))),
        case("a norm far below max_norm", rng.uniform(0.2, 0.4), float(rng.uniform(0.7, 0.9))),
    ]


def _drive_clip(answer, values, gradients, max_norm):
    """The norm, all gradients and all data after the call."""
    parameters = [Parameter(array) for array in values]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad[...] = gradient
    norm = answer(parameters, max_norm)
    return (
        np.nan if norm is None else norm,  # to be recognised like any other wrong number
        _flat([parameter.grad for parameter in parameters]),
        _flat([parameter.data for parameter in parameters]),
    )


def _wrong_clip_grad_norm(made, parameters, max_norm):
    arrays = [p.data if made("norm of the parameters") else p.grad for p in parameters]
    lengths = [float(np.sqrt((g * g).sum())) for g in arrays]
    norm = sum(length**2 for length in lengths) ** 0.5
    everything = _flat(arrays)
    if made("root forgotten"):
        norm = norm**2
    if made("norms added"):
        norm = sum(lengths)
    if made("sum of absolute values"):
        norm = np.abs(everything).sum()
    if made("largest value for the norm"):
        norm = np.abs(everything).max()
    if made("largest norm of a parameter"):
        norm = max(lengths)
    if made("g not squared"):
        norm = abs(everything.sum())
    if made("mean for sum"):
        norm = np.sqrt(np.mean(everything**2))
    if made("norm of the last parameter"):
        norm = lengths[-1]
    if made("norm of the first parameter"):
        norm = lengths[0]
    factor = max_norm / norm
    so_far = np.cumsum([length**2 for length in lengths]) ** 0.5
    if made("factor upside down"):
        factor = norm / max_norm
    if made("divided by the norm only"):
        factor = 1 / norm
    if made("multiplied by max_norm only"):
        factor = max_norm
    if made("root of the factor"):
        factor = factor**0.5
    if made("square of the factor"):
        factor = factor**2
    above = norm < max_norm if made("scaled where the norm is below") else norm > max_norm
    if made("squared norm compared with max_norm"):
        above = norm * norm > max_norm
    if made("always scaled"):
        above = True
    for i, (p, length) in enumerate(zip(parameters, lengths, strict=True)):
        g = p.grad
        if made("each parameter by itself"):
            g = g * min(1, max_norm / length)
        elif made("each parameter scaled to max_norm"):
            g = g * (max_norm / length if above else 1)
        elif made("norm of those so far"):
            g = g * min(1, max_norm / so_far[i])
        elif made("every value clipped"):
            g = np.clip(g, -max_norm, max_norm)
        elif above and not made("gradients not scaled"):
            g = g * factor
        if made("gradients set to 0") and above:
            g = 0 * g
        if made("parameters scaled"):
            p.data = p.data * (factor if above else 1)
        elif not (made("only the first gradient scaled") and i) and not (
            made("only the last gradient scaled") and i < len(parameters) - 1
        ):
            p.grad = g
    if made("norm after clipping returned"):
        return min(norm, max_norm)
    if made("factor returned"):
        return factor
    if made("smaller factor returned"):
        return min(1, factor)
    if made("squared norm returned"):
        return norm**2
    return None if made("nothing returned") else norm


CLIP_GRAD_NORM = Exercise(
    training.clip_grad_norm,
    (Result("norm", ""), Result("gradients", "number"), Result("data", "number")),
    _clip_cases,
    {
        "each parameter by itself": (
            "Each parameter is clipped by its own norm. There is one norm over all parameters together, √(Σ g²), and "
            "one factor, so that the direction stays."
        ),
        "each parameter scaled to max_norm": (
            "Where the norm is too large, each parameter is divided by its own norm. There is one factor for all, "
            "max_norm divided by the norm over all parameters together, so that the direction stays."
        ),
        "norm of those so far": (
            "Each gradient is scaled inside the loop that adds up the norm, by the norm of the parameters so far. "
            "First comes the norm over all parameters, then, in a second loop, one factor for all."
        ),
        "every value clipped": (
            "Every value is cut to −max_norm … max_norm, which changes the direction. All gradients are scaled "
            "together, by max_norm / norm."
        ),
        "root forgotten": "The square root is missing: this is Σ g², the norm is √(Σ g²).",
        "norms added": (
            "The norms of the parameters are added. The norm of all is the root of the sum of their squares."
        ),
        "sum of absolute values": "This is the sum of |g|, the L1 norm; the norm is √(Σ g²), L2.",
        "largest value for the norm": (
            "This is the largest |g|, the maximum norm; the norm is √(Σ g²), over all values."
        ),
        "largest norm of a parameter": (
            "This is the largest norm of a single parameter; the norm is √(Σ g²) over all parameters together."
        ),
        "g not squared": "The gradients are added without being squared, so that signs cancel: the norm is √(Σ g²).",
        "mean for sum": "This is the root of the mean of g²; the norm is the root of the sum, √(Σ g²).",
        "norm of the last parameter": (
            "This is the norm of the last parameter alone: the sum has to go on over all parameters, `+=` and not `=`."
        ),
        "norm of the first parameter": (
            "This is the norm of the first parameter alone; the sum runs over all parameters."
        ),
        "norm of the parameters": (
            "This is the norm of the parameters' values, `.data`; it is that of their gradients, `.grad`."
        ),
        "factor upside down": "The factor is norm / max_norm, upside down: the gradients grow. It is max_norm / norm.",
        "divided by the norm only": "The gradients are brought to norm 1: the factor is max_norm / norm, not 1 / norm.",
        "multiplied by max_norm only": "The gradients are multiplied by max_norm: the factor is max_norm / norm.",
        "root of the factor": "The factor is √(max_norm / norm); it is max_norm / norm, without a root.",
        "square of the factor": "The factor is (max_norm / norm)²; it is max_norm / norm, without the square.",
        "always scaled": (
            "The gradients are scaled even where their norm is below max_norm, and so made larger. Only a norm above "
            "max_norm is brought down to it."
        ),
        "scaled where the norm is below": (
            "The comparison is the wrong way round: gradients with a norm below max_norm are scaled, those above are "
            "not."
        ),
        "squared norm compared with max_norm": (
            "Σ g² is compared with max_norm; it is the norm √(Σ g²) that must not be above."
        ),
        "gradients not scaled": (
            "The gradients do not change. `g = g * factor` gives a new array to the local name g: write `p.grad *= "
            "factor`."
        ),
        "gradients set to 0": "Gradients above max_norm are set to 0; they are scaled to the norm max_norm.",
        "only the first gradient scaled": (
            "Only the first gradient is scaled: a `return` or `break` inside the loop ends it too soon."
        ),
        "only the last gradient scaled": (
            "Only the last gradient is scaled: the line has to stand inside a loop over all."
        ),
        "parameters scaled": (
            "The parameters' values, `.data`, are scaled; it is their gradients, `.grad`, that are too large."
        ),
        "norm after clipping returned": (
            "The norm after the clipping is returned. The one before it says more: how often, and how much, was "
            "clipped."
        ),
        "factor returned": "max_norm / norm is returned; it is the norm before clipping.",
        "smaller factor returned": "The factor of the scaling, at most 1, is returned; it is the norm before clipping.",
        "squared norm returned": "Σ g² is returned; it is the norm √(Σ g²), with the root.",
        "nothing returned": "Nothing is returned; it is the norm before clipping, to look at. The `return` is missing.",
    },
    _wrong_clip_grad_norm,
    (
        "What happens to the direction of a step if every parameter is clipped by itself?",
        (
            "norm = √(Σ g²) over all parameters; where norm > max_norm: g · max_norm / norm; the norm before it is "
            "returned"
        ),
        "notebook 07, “Training”, step 4; np.sum, and `p.grad *= factor` to write in place.",
    ),
    difficulty=1,
    section="Pascanu et al. 2013",
    drive=_drive_clip,
)

EXERCISES = [ADAM, NOAM_SCHEDULE, COSINE_SCHEDULE, CLIP_GRAD_NORM]
