"""Adam."""

import numpy as np

from ... import training
from ...module import Parameter
from ...training.optim import is_matrix
from ..exercise import Case, Exercise, Result, draw_sizes

_STEPS = 5


def adam_cases(rng):
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


def drive_adam(answer, values, gradients, **options):
    """How far every number has moved after each step, and the gradients after it, (steps, numbers) each."""
    parameters = [Parameter(array) for array in values]
    optimizer = answer(parameters, **options)
    moved, left = [], []
    for of_step in gradients:
        for parameter, gradient in zip(parameters, of_step, strict=True):
            parameter.grad[...] = gradient  # in place: an optimizer may hold the gradients in a buffer
        optimizer.step()
        moved.append(flat([p.data - array for p, array in zip(parameters, values, strict=True)]))
        left.append(flat([p.grad for p in parameters]))
    return np.array(moved), np.array(left)


def flat(arrays):
    return np.concatenate([np.ravel(array) for array in arrays])


class Adam:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.parameters, self.lr, self.betas, self.eps = list(parameters), lr, betas, eps
        self.m = [np.zeros(p.shape) for p in self.parameters]
        self.v = [np.zeros(p.shape) for p in self.parameters]
        self.t = 0

    def step(self):
        self.t += 1
        for p, m, v in zip(self.parameters, self.m, self.v, strict=True):
            self.update(p, p.grad, m, v)

    def update(self, p, g, m, v):
        beta1, beta2 = self.betas
        m[...] = beta1 * m + (1 - beta1) * g
        v[...] = beta2 * v + (1 - beta2) * g**2
        m_hat = m / (1 - beta1**self.t)
        v_hat = v / (1 - beta2**self.t)
        p.data -= self.lr * m_hat / (np.sqrt(v_hat) + self.eps)


ADAM = Exercise(
    training.Adam,
    results=(Result("change of the parameters", "step number"), Result("gradients after the step", "step number")),
    cases=adam_cases,
    answer=Adam,
    hints=(
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
    drive=drive_adam,
    parts=("_update",),
    mistakes="""
- gradients cleared:  self.update(p, p.grad, m, v) -> self.update(p, p.grad, m, v); p.grad[...] = 0
  The step sets the gradients to 0. That is the task of zero_grad: after a step the caller may still read them.
- gradients squared in place:  v[...] = -> g **= 2; v[...] =
  g is changed in place, and g is the parameter's own gradient. Compute g² as a new array: g * g.
- no bias correction:
    m / (1 - beta1**self.t) -> m
    v / (1 - beta2**self.t) -> v
  The bias correction is missing: m and v start at 0 and are too small at first; m̂ = m / (1 − β₁ᵗ) and v̂ = v / (1 −
  β₂ᵗ) make up for it.
- m not corrected:  m / (1 - beta1**self.t) -> m
  m is not corrected for its start at 0: m̂ = m / (1 − β₁ᵗ), as v̂ = v / (1 − β₂ᵗ).
- v not corrected:  v / (1 - beta2**self.t) -> v
  v is not corrected for its start at 0, so that the first steps are far too long: v̂ = v / (1 − β₂ᵗ), as m̂ = m / (1 −
  β₁ᵗ).
- bias corrections swapped:
    beta1**self.t -> beta2**self.t
    beta2**self.t -> beta1**self.t
  The two bias corrections are swapped: m is divided by 1 − β₂ᵗ and v by 1 − β₁ᵗ, and should be the other way round.
- β₁ in both bias corrections:  beta2**self.t -> beta1**self.t
  v is corrected with β₁; its own average has β₂: v̂ = v / (1 − β₂ᵗ).
- β₂ in both bias corrections:  beta1**self.t -> beta2**self.t
  m is corrected with β₂; its own average has β₁: m̂ = m / (1 − β₁ᵗ).
- β for βᵗ:
    beta1**self.t -> beta1
    beta2**self.t -> beta2
  The bias correction divides by 1 − β at every step: the power t is missing, or t does not grow. It is 1 − βᵗ, which
  goes to 1.
- β₁ for β₁ᵗ:  beta1**self.t -> beta1
  m is divided by 1 − β₁ at every step: the power t is missing. It is 1 − β₁ᵗ, which goes to 1, as in v̂.
- β₂ for β₂ᵗ:  beta2**self.t -> beta2
  v is divided by 1 − β₂ at every step: the power t is missing. It is 1 − β₂ᵗ, which goes to 1, as in m̂.
- β · t for βᵗ:
    beta1**self.t -> beta1 * self.t
    beta2**self.t -> beta2 * self.t
  The bias correction has β · t where it should have the power βᵗ: 1 − βᵗ.
- βᵗ for 1 − βᵗ:
    (1 - beta1**self.t) -> beta1**self.t
    (1 - beta2**self.t) -> beta2**self.t
  The bias correction divides by βᵗ instead of by 1 − βᵗ.
- 1 + βᵗ for 1 − βᵗ:
    1 - beta1**self.t -> 1 + beta1**self.t
    1 - beta2**self.t -> 1 + beta2**self.t
  The bias correction divides by 1 + βᵗ instead of by 1 − βᵗ: a sign is wrong.
- multiplied by 1 − βᵗ:
    m / (1 - beta1**self.t) -> m * (1 - beta1**self.t)
    v / (1 - beta2**self.t) -> v * (1 - beta2**self.t)
  The averages are multiplied by 1 − βᵗ, so they become even smaller. Divide by it.
- root of 1 − β₂ᵗ missing:  (1 - beta2**self.t) -> (1 - beta2**self.t) ** 2
  With the correction drawn to the front the factor is √(1 − β₂ᵗ) / (1 − β₁ᵗ), because v̂ stands under the root; here it
  has 1 − β₂ᵗ without the root.
- corrected averages kept:
    m_hat = m / -> m_hat = m[...] = m /
    v_hat = v / -> v_hat = v[...] = v /
  m̂ and v̂ are stored in the place of m and v, so that the next step corrects them again. The averages go on from the
  uncorrected m and v.
- corrected m kept:  m_hat = m / -> m_hat = m[...] = m /
  m̂ is stored in the place of m, so that the next step corrects it again. The average goes on from the uncorrected m.
- corrected v kept:  v_hat = v / -> v_hat = v[...] = v /
  v̂ is stored in the place of v, so that the next step corrects it again. The average goes on from the uncorrected v.
- t one too small, the first step not corrected:
    m / (1 - beta1**self.t) -> m / (1 - beta1**self.t) if self.t else m
    v / (1 - beta2**self.t) -> v / (1 - beta2**self.t) if self.t else v
    in step:
        for p, m, v in zip(self.parameters, self.m, self.v, strict=True):
            self.update(p, p.grad, m, v)
        self.t += 1
  t is one too small: the first step, with t = 0, goes without a bias correction, and the second has 1 − β¹. Count
  before the update, so that the first step has t = 1.
- t from 0:
    in step:
        for p, m, v in zip(self.parameters, self.m, self.v, strict=True):
            self.update(p, p.grad, m, v)
        self.t += 1
  t is 0 in the first step, so that 1 − β⁰ = 0 is divided by: NaN or inf. The first step has t = 1; count before the
  update.
- t one too large:  self.t = 0 -> self.t = 1
  t is one too large: the first step has t = 1, 1 − β¹. Here it begins with 1 − β².
- steps counted twice:  self.t += 1 -> self.t += 2
  t grows by 2 at every step. The library's `step` has counted already: read `self.steps`, do not add to it.
- steps counted for each parameter:
    in step:
        for p, m, v in zip(self.parameters, self.m, self.v, strict=True):
            self.t += 1
            self.update(p, p.grad, m, v)
  t grows with every parameter instead of once per step: the second parameter has t = 2 in the first step already.
- eps not used:  + self.eps -> + 1e-8
  The argument `eps` is not used: the ε beside the root is always the same.
- eps forgotten:  (np.sqrt(v_hat) + self.eps) -> np.sqrt(v_hat)
  ε is missing: m̂ / (√v̂ + ε). Where a gradient has always been 0 this is 0/0, which is NaN.
- eps under the root:  (np.sqrt(v_hat) + self.eps) -> np.sqrt(v_hat + self.eps)
  ε is added under the root, √(v̂ + ε). It stands beside it: √v̂ + ε.
- root of eps:  + self.eps -> + self.eps**0.5
  √ε is added to √v̂; it is ε itself, √v̂ + ε.
- eps as a lower bound:  (np.sqrt(v_hat) + self.eps) -> np.maximum(np.sqrt(v_hat), self.eps)
  ε is a lower bound, max(√v̂, ε). Add it: √v̂ + ε.
- eps added before v is corrected:  + self.eps -> + self.eps / np.sqrt(1 - beta2**self.t)
  ε is added to √v, and the bias correction comes after it, so that ε is divided by √(1 − β₂ᵗ) too. It is √v̂ + ε, with
  the corrected v̂.
- eps added to the quotient:  m_hat / (np.sqrt(v_hat) + self.eps) -> (m_hat / np.sqrt(v_hat) + self.eps)
  ε is added to the quotient, m̂ / √v̂ + ε: a bracket is missing. It is m̂ / (√v̂ + ε).
- eps added to the step:
    self.lr * m_hat / (np.sqrt(v_hat) + self.eps) -> self.lr * m_hat / np.sqrt(v_hat) + self.eps
  ε is added to the step, lr · m̂ / √v̂ + ε: a bracket is missing. It is lr · m̂ / (√v̂ + ε).
- square root forgotten:  np.sqrt(v_hat) -> v_hat
  m̂ is divided by v̂ + ε: the square root is missing, m̂ / (√v̂ + ε).
- multiplied by the root:  m_hat / -> m_hat *
  m̂ is multiplied by √v̂ + ε. Divide by it.
- β₁ and β₂ swapped:
    beta1 * m + (1 - beta1) -> beta2 * m + (1 - beta2)
    beta2 * v + (1 - beta2) -> beta1 * v + (1 - beta1)
  β₁ and β₂ are swapped in the averages: m has β₁, v has β₂; betas = (β₁, β₂).
- β₁ for both averages:  beta1, beta2 = self.betas -> beta1 = beta2 = self.betas[0]
  β₁ is used for v too; v has β₂: betas = (β₁, β₂).
- β₂ for both averages:  beta1, beta2 = self.betas -> beta1 = beta2 = self.betas[1]
  β₂ is used for m too; m has β₁: betas = (β₁, β₂).
- betas not used:  beta1, beta2 = self.betas -> beta1, beta2 = 0.9, 0.999
  The argument `betas` is not used: β₁ and β₂ are always 0.9 and 0.999.
- β and 1 − β exchanged:
    beta1 * m + (1 - beta1) -> (1 - beta1) * m + beta1
    beta2 * v + (1 - beta2) -> (1 - beta2) * v + beta2
  β and 1 − β are swapped: m = β₁ m + (1 − β₁) g keeps most of the old average and takes in a little of the new
  gradient.
- 1 − β₁ missing:  (1 - beta1) * g -> g
  The factor 1 − β₁ is missing: m = β₁ m + (1 − β₁) g. Without it m is a sum, not an average.
- 1 − β₂ missing:  (1 - beta2) * g**2 -> g**2
  The factor 1 − β₂ is missing: v = β₂ v + (1 − β₂) g². Without it v is a sum, not an average.
- v a sum that forgets nothing:  beta2 * v + (1 - beta2) * g**2 -> v + g**2
  v is the sum of all g², as in Adagrad. It is an average that forgets: v = β₂ v + (1 − β₂) g².
- g not squared in v:  g**2 -> g
  The gradient is not squared in v: v = β₂ v + (1 − β₂) g². The root of a negative v is NaN.
- |g| for g² in v:  g**2 -> np.abs(g)
  v averages |g| instead of g²: v = β₂ v + (1 − β₂) g².
- m² for g² in v:  g**2 -> m**2
  v averages m² instead of g²: v = β₂ v + (1 − β₂) g², with the gradient itself.
- v centred:  g**2 -> (g - m) ** 2
  v averages (g − m)² instead of g²: it is the mean square, not the variance.
- one v for a whole parameter:  g**2 -> np.sum(g**2)
  v has the sum of g² over a whole parameter, one number. Every element has its own: g · g, element by element.
- one mean square for a whole parameter:  g**2 -> np.mean(g**2)
  v has the mean of g² over a whole parameter, one number. Every element has its own: g · g, element by element.
- averages not kept:
    m[...] = -> m =
    v[...] = -> v =
  m and v do not remember: at every step they start from 0 again. `m = …` gives a new array to a local name; write into
  the one that is there, `m *= β₁` and then `m += …`, or store it.
- m not kept:  m[...] = -> m =
  m does not remember: at every step it starts from 0 again. Write the new m into the stored one.
- v not kept:  v[...] = -> v =
  v does not remember: at every step it starts from 0 again. Write the new v into the stored one.
- averages of the step before:
    beta1, beta2 = self.betas -> beta1, beta2 = self.betas; old_m, old_v = m.copy(), v.copy()
    m_hat = m -> m_hat = old_m
    v_hat = v -> v_hat = old_v
  The update uses m and v from before this step. First take g into the averages, then move the parameters.
- m of the next step:
    m_hat = m / (1 - beta1**self.t) ->
        m_hat = m / (1 - beta1**self.t)
        m_hat = beta1 * m_hat + (1 - beta1) * g / (1 - beta1**self.t)
  m̂ takes in g a second time, β₁ m̂ + (1 − β₁) g / (1 − β₁ᵗ): that is the look-ahead of NAdam. Adam uses m̂ as it is.
- g for m:  self.lr * m_hat -> self.lr * g
  The gradient itself stands above the fraction line. It is its average m̂: m̂ / (√v̂ + ε).
- v not used:  self.lr * m_hat / (np.sqrt(v_hat) + self.eps) -> self.lr * m_hat
  Only m̂ is used, p −= lr · m̂: that is momentum. Adam divides by √v̂ + ε, so that every element has a step of its own.
- plain gradient descent:  self.lr * m_hat / (np.sqrt(v_hat) + self.eps) -> self.lr * g
  This is p −= lr · g, without either average. Adam has p −= lr · m̂ / (√v̂ + ε).
- only the sign of m:  self.lr * m_hat / (np.sqrt(v_hat) + self.eps) -> self.lr * np.sign(m_hat)
  The step is lr · sign(m̂). In Adam its size is m̂ / (√v̂ + ε), which changes from step to step.
- largest v so far:
    self.t = 0 -> self.t, self.largest = 0, {}
    v_hat = v / (1 - beta2**self.t) ->
        v_hat = np.maximum(v / (1 - beta2**self.t), self.largest.get(id(v), 0))
        self.largest[id(v)] = v_hat
  v̂ is the largest one so far, as in AMSGrad. In Adam v̂ may fall again.
- v never falls:  beta2 * v + (1 - beta2) * g**2 -> np.maximum(v, beta2 * v + (1 - beta2) * g**2)
  v is kept at its largest value: max(v, β₂ v + (1 − β₂) g²). In Adam v may fall again: v = β₂ v + (1 − β₂) g².
- weight decay added to the gradient:  beta1, beta2 = self.betas -> beta1, beta2 = self.betas; g = g + 0.01 * p.data
  A weight decay of 0.01 · p is added to the gradient. Adam has none.
- p itself decayed:  p.data -= -> p.data -= self.lr * 0.01 * p.data; p.data -=
  The parameters are made smaller by lr · 0.01 · p, as in AdamW. Adam has no weight decay.
- lr not used:  self.lr * m_hat -> m_hat
  The learning rate is missing: p −= lr · m̂ / (√v̂ + ε).
- lr divided by √t:  self.lr * m_hat -> self.lr / self.t**0.5 * m_hat
  The learning rate falls with 1/√t. A schedule is set from outside; here lr is used as it is.
- lr fixed at 0.001:  self.lr * m_hat -> 1e-3 * m_hat
  The learning rate is always 0.001, the default. Use the argument `lr`.
- ascent:  p.data -= -> p.data +=
  The update is added, so the loss grows: p −= lr · m̂ / (√v̂ + ε), against the gradient.
- parameters not changed:  p.data -= -> p = p.data -
  The parameters do not change. `p = p − …` gives a new array to the local name p; write into the one that is there, `p
  −= …`, or assign to the parameter's `.data`.
- p replaced by the update:  p.data -= -> p.data = -
  The parameter becomes the update, −lr · m̂ / (√v̂ + ε), instead of being moved by it.
- only the first parameter:  self.update(p, p.grad, m, v) -> self.update(p, p.grad, m, v); break
  Only the first parameter moves: a `return` or `break` inside the loop ends it too soon.
""",
)

# --- with weight decay ------------------------------------------------------------------------------------------------


def adamw_cases(rng):
    plain, *_, still = adam_cases(rng)
    values, gradients = plain.arguments
    values = [10 * array for array in values]  # so that the decay is seen beside the step
    options = {"lr": 0.1, "weight_decay": 0.3}
    return [
        Case("", (values, gradients), options, plain.sizes),
        Case("only matrices decayed", (values, gradients), {**options, "decays": is_matrix}, plain.sizes),
        Case("weight_decay=0", (values, gradients), {**options, "weight_decay": 0.0}, plain.sizes),
        Case("betas=(0.9, 0.98)", still.arguments, {**still.options, "lr": 0.2, "weight_decay": 0.5}, plain.sizes),
    ]


class AdamW(Adam):
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, decays=None):
        super().__init__(parameters, lr, betas, eps)
        self.weight_decay, self.decays = weight_decay, decays

    def update(self, p, g, m, v):
        if self.decays is None or self.decays(p):
            p.data -= self.lr * self.weight_decay * p.data
        super().update(p, g, m, v)


ADAMW = Exercise(
    training.AdamW,
    results=(Result("change of the parameters", "step number"), Result("gradients after the step", "step number")),
    cases=adamw_cases,
    answer=AdamW,
    hints=(
        "If λ p is added to the gradient, Adam divides it by √v̂. What is then left of the decay of a parameter with "
        "large gradients?",
        "p −= lr · λ · p, then p −= lr · m̂ / (√v̂ + ε) with m and v of the gradient alone",
        "Loshchilov & Hutter 2019, algorithm 2. self.data[block] are the parameters; self._decayed is None, or 1 and "
        "0 for every element. super()._update_block(block) is Adam's step.",
    ),
    difficulty=1,
    section="Loshchilov & Hutter 2019",
    chapter="Training and decoding",
    place=3.2,
    drive=drive_adam,
    parts=("_update_block",),
    mistakes="""
- decay in the gradient:
    p.data -= self.lr * self.weight_decay * p.data -> g = g + self.weight_decay * p.data
  λ p is added to the gradient, so it also goes into m and v, and is divided by √v̂. This is Adam with L2
  regularisation. AdamW takes lr · λ · p directly from the parameters.
- decay in the gradient, with lr:
    p.data -= self.lr * self.weight_decay * p.data -> g = g + self.lr * self.weight_decay * p.data
  lr · λ · p is added to the gradient, so it also goes into m and v, and is divided by √v̂. Take it directly from the
  parameters, before Adam's step.
- decay without lr:  p.data -= self.lr * self.weight_decay * p.data -> p.data -= self.weight_decay * p.data
  The parameters shrink by λ p in each step. The decay has the learning rate as a factor too: lr · λ · p.
- decay without p:  self.lr * self.weight_decay * p.data -> self.lr * self.weight_decay
  The same number lr · λ is taken from every parameter. The decay is proportional to the parameter: lr · λ · p.
- decay by the sign:  self.lr * self.weight_decay * p.data -> self.lr * self.weight_decay * np.sign(p.data)
  lr · λ · sign(p) is taken from the parameters, which is L1 regularisation. The decay is proportional to p: lr · λ · p.
- decay by the square:  self.lr * self.weight_decay * p.data -> self.lr * self.weight_decay * p.data**2
  lr · λ · p² is taken from the parameters. λ p² / 2 is the penalty, and its gradient is λ p: the decay is lr · λ · p.
- parameters grow:  p.data -= self.lr * self.weight_decay -> p.data += self.lr * self.weight_decay
  lr · λ · p is added to the parameters, so they grow. Subtract it.
- decay after the step:
    in AdamW.update:
        super().update(p, g, m, v)
        if self.decays is None or self.decays(p):
            p.data -= self.lr * self.weight_decay * p.data
  The decay comes after Adam's step and shrinks the step, too. Decay first: it uses the old parameters.
- lr squared:  p.data -= self.lr * self.weight_decay -> p.data -= self.lr**2 * self.weight_decay
  The decay has the factor lr². It is lr · λ · p, with lr once.
- half of λ:  p.data -= self.lr * self.weight_decay -> p.data -= self.lr * self.weight_decay / 2
  The decay has the factor λ/2. The penalty is λ p² / 2 and its gradient λ p, so the decay is lr · λ · p.
- twice λ:  p.data -= self.lr * self.weight_decay -> p.data -= 2 * self.lr * self.weight_decay
  The decay has the factor 2 λ. It is lr · λ · p: the factor 2 of the square is cancelled by the ½ of the penalty.
- no decay:  p.data -= self.lr * self.weight_decay * p.data -> pass
  This is Adam: the parameters do not decay. Subtract lr · λ · p before its step.
- only the decay:  super().update(p, g, m, v) -> pass
  Adam's step is missing, the parameters only decay. Call super()._update_block(block) after the decay.
- everything decayed:  if self.decays is None or self.decays(p): -> if True:
  All parameters decay, whatever `decays` says. self._decayed is None, or has 1 for the elements that decay and 0 for
  the others.
- the others decayed:  self.decays(p): -> not self.decays(p):
  The wrong parameters decay: self._decayed has 1 for the elements that decay, and 0 for the others.
- nothing decayed by default:  self.decays is None or self.decays(p) -> self.decays is not None and self.decays(p)
  Without `decays` nothing decays. None means that all parameters decay.
""",
)

EXERCISES = [ADAM, ADAMW]
