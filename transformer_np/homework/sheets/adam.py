"""Adam."""

import numpy as np

from ... import training
from ...module import Parameter
from ..exercise import Case, Exercise, Result, draw_sizes

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
    chapter="Training and decoding",
    place=3,
    drive=_drive_adam,
    parts=("_update",),
)


EXERCISES = [ADAM]
