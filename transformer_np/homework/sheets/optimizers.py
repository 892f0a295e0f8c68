"""The optimizers: Adam, AdamW, Muon's updates, clipping by the norm, and saving an optimizer to go on from there."""

from dataclasses import replace

import numpy as np

from ... import training
from ...module import Parameter
from ...training import optim
from ...training.muon import QUINTICS
from ...training.optim import is_matrix
from ..exercise import Case, draw_sizes, extended
from .sheet import Sheet

SHEET = Sheet(__file__)

ADAM_STEPS = 5
ADAM_RESULTS = {"change of the parameters": "step number", "gradients after the step": "step number"}
STEPS, SAVED = 6, 3  # of a run that is resumed: in all, and before the state is saved


def with_gradients(parameters, gradients):
    """The parameters with these gradients, in place: an optimizer may hold the gradients in a buffer."""
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad[...] = gradient
    return parameters


def adam_cases(rng):
    sizes = draw_sizes(rng, "D_in D_out D")
    shapes = (sizes["D_in"], sizes["D_out"]), (sizes["D"],), (2, 2)
    values = [rng.normal(size=shape) for shape in shapes]

    def gradients(scale):
        return [[scale * rng.normal(size=shape) for shape in shapes] for _ in range(ADAM_STEPS)]

    still = gradients(1.0)
    for _, of_vector, _ in still:
        of_vector[0] = 0.0
    return [
        Case("", (values, gradients(1.0)), {"lr": 0.1}, sizes),
        Case("lr=0.2", (values, gradients(1.0)), {"lr": 0.2}, sizes),
        Case("betas=(0.5, 0.8)", (values, gradients(2.0)), {"lr": 0.1, "betas": (0.5, 0.8)}, sizes),
        Case("eps=0.3", (values, gradients(0.5)), {"lr": 0.1, "eps": 0.3}, sizes),
        Case("gradients of which a number stays 0", (values, still), {"lr": 0.1}, sizes),
    ]


def drive_adam(answer, values, gradients, blocks=False, **options):
    """How far every number has moved after each step, and the gradients after it, (steps, numbers) each.

    blocks: whether the optimizer updates two blocks in a step, if it can, which part a parameter in the middle
    """
    parameters = [Parameter(array) for array in values]
    optimizer = answer(parameters, **options)
    optimizer.blocks = blocks  # for a mistake
    moved, left = [], []
    for of_step in gradients:
        with_gradients(parameters, of_step)
        if blocks and hasattr(optimizer, "_update_block") and hasattr(optimizer, "steps"):
            optimizer.steps += 1
            size = optimizer.data.size
            for block in (slice(0, size // 2), slice(size // 2, size)):
                optimizer._update_block(block)
        else:
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


# --- with weight decay ------------------------------------------------------------------------------------------------


def adamw_cases(rng):
    plain, *others, _ = adam_cases(rng)
    values, gradients = plain.arguments
    values = [10 * array for array in values]  # so that the decay is seen beside the step
    options = {"lr": 0.1, "weight_decay": 0.3}
    rates = {**options, "rates": by_first_axis}
    return [
        Case("", (values, gradients), options, plain.sizes),
        Case("only matrices decayed", (values, gradients), {**options, "decays": is_matrix}, plain.sizes),
        Case("weight_decay=0", (values, gradients), {**options, "weight_decay": 0.0}, plain.sizes),
        *(replace(case, options={**case.options, "weight_decay": 0.3}) for case in others),
        extended(Case("a rate for each parameter", (values, gradients), rates, plain.sizes)),
        extended(Case("two blocks", (values, gradients), {**options, "blocks": True}, plain.sizes)),
        extended(Case("two blocks plus a rate for each parameter", (values, gradients), {**rates, "blocks": True})),
    ]


def by_first_axis(parameter):
    return 1 / len(parameter.data)


class AdamW(Adam):
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, decays=None, rates=None):
        super().__init__(parameters, lr, betas, eps)
        self.weight_decay, self.decays, self.rates, self.rate = weight_decay, decays, rates or (lambda _: 1.0), lr
        self.rated = rates is not None  # for a mistake

    def in_first_block(self, p):
        """How many elements of a parameter are in the first block. Used by mistakes only."""
        first = sum(q.data.size for q in self.parameters) // 2 if self.blocks else np.inf
        return first - sum(q.data.size for q in self.parameters[: [q is p for q in self.parameters].index(True)])

    def update(self, p, g, m, v):
        self.lr = self.rate * self.rates(p)
        if self.decays is None or self.decays(p):
            p.data -= self.lr * self.weight_decay * p.data
        super().update(p, g, m, v)


# --- Muon's updates ---------------------------------------------------------------------------------------------------


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


# --- clipping ---------------------------------------------------------------------------------------------------------


def clip_cases(rng):
    sizes = draw_sizes(rng, "D_in D_out D", least=3)
    shapes = (sizes["D_in"], sizes["D_out"]), (sizes["D"],), (sizes["D_out"],)

    def case(label, norm, max_norm):
        values, gradients = ([rng.normal(size=shape) for shape in shapes] for _ in range(2))
        gradients[1] = 5 * gradients[1]  # the longest is neither the first nor the last
        factor = norm / np.linalg.norm(flat(gradients))
        return Case(label, (values, [factor * g for g in gradients], max_norm), sizes=sizes)

    overflown = case("a norm that is not finite", 3.0, 1.0)
    overflown.arguments[1][1][0] = np.inf
    return [
        case("", rng.uniform(4, 8), float(rng.uniform(1.5, 2.5))),
        case("max_norm below 1", rng.uniform(2, 4), float(rng.uniform(0.2, 0.5))),
        case("a norm below max_norm", rng.uniform(2, 3), float(rng.uniform(3.5, 4))),
        case("a norm below 1 and max_norm", rng.uniform(0.2, 0.4), float(rng.uniform(0.7, 0.9))),
        case("a norm far below max_norm", rng.uniform(1.2, 1.5), float(rng.uniform(2.5, 3))),
        extended(overflown),
        extended(case("a norm of 0", 0.0, 1.0)),
    ]


def drive_clip(answer, values, gradients, max_norm):
    """The norm, all gradients and all data after the call."""
    parameters = with_gradients([Parameter(array) for array in values], gradients)
    norm = answer(parameters, max_norm)
    return (
        np.nan if norm is None else norm,  # to be recognised like any other wrong number
        flat([parameter.grad for parameter in parameters]),
        flat([parameter.data for parameter in parameters]),
    )


def clip_grad_norm(parameters, max_norm):
    squares = [np.sum(p.grad**2) for p in parameters]
    norm = np.sqrt(sum(squares))
    factor = max_norm / norm
    if norm > max_norm and np.isfinite(norm):
        for p in parameters:
            p.grad *= factor
    return norm


# --- saving and going on ----------------------------------------------------------------------------------------------


def resume_cases(rng):
    def case(label, **options):
        sizes = draw_sizes(rng, "D_in D_out D")
        shapes = (sizes["D_in"], sizes["D_out"]), (sizes["D"],)
        values = [rng.normal(size=shape) for shape in shapes]
        gradients = [[rng.normal(size=shape) for shape in shapes] for _ in range(STEPS)]
        return Case(label, (values, gradients), options, sizes)

    return [
        case(""),
        case("the state of another optimizer", size=2),
        case("a state with averages of one number", size=1),
        case("a state without v", without="v"),
        case("a state without steps", without="steps"),
    ]


def drive_resume(answer, values, gradients, size=None, without=None):
    """Train, save, and go on with a new optimizer.

    ->  the state as it was saved, the parameters after each step behind it, and how far saving and loading share
    memory; or whether a state is refused whose averages have another size, or that lacks a name
    """

    class Averaging(answer):
        """Adam with another ε: every slot and the number of steps matter."""

        slots = ("m", "v")

        def _update(self, p, g, m, v):
            m += 0.2 * (g - m)
            v += 0.1 * (g * g - v)
            p -= 0.1 * m / (1 - 0.8**self.steps) / (np.sqrt(v / (1 - 0.9**self.steps)) + 0.1)

    def made(values):
        parameters = [Parameter(np.array(array)) for array in values]
        return parameters, Averaging(parameters, 0.1)

    def train(parameters, optimizer, gradients):
        for of_step in gradients:
            with_gradients(parameters, of_step)
            optimizer.step()
            yield flat([p.data for p in parameters])

    parameters, optimizer = made(values)
    list(train(parameters, optimizer, gradients[:SAVED]))
    state = optimizer.state_dict()
    if (size or without) and isinstance(state, dict):
        state = {name: array[:size] if np.ndim(array) else array for name, array in state.items() if name != without}
        _, other = made(values)
        before = flat(other.averages.values())
        try:
            other.load_state_dict(state)
            refused = 0.0
        except ValueError:
            refused = 1.0
        return refused, np.array_equal(flat(other.averages.values()), before) and other.steps == 0
    expected, found = {"m", "v", "steps"}, set(state) if isinstance(state, dict) else set()
    if found != expected or np.ndim(state["steps"]):  # check_state refuses it
        size = flat(values).size
        told = found >= {"m", "v"}, "steps" in found, len(found) > 3, bool(found)
        return np.zeros(2 * size + 1), np.zeros((STEPS - SAVED, size)), *map(float, told)
    arrays = all(isinstance(array, np.ndarray | np.generic) for array in state.values())
    saved = {name: np.array(array, float) for name, array in state.items()}
    at_saving = [np.array(p.data) for p in parameters]
    list(train(parameters, optimizer, gradients[SAVED:]))
    kept = all(np.array_equal(saved[name], state[name]) for name in saved)
    parameters, resumed = made(at_saving)
    list(train(parameters, resumed, gradients[:2]))  # what it has gathered so far must go
    for parameter, data in zip(parameters, at_saving, strict=True):
        parameter.data[...] = data
    given = {name: array.copy() for name, array in saved.items()}
    resumed.load_state_dict(given)
    moved = np.array(list(train(parameters, resumed, gradients[SAVED:])))
    spared = all(np.array_equal(saved[name], given[name]) for name in saved)
    return flat([saved.get(name, np.zeros(1)) for name in ("m", "v", "steps")]), moved, kept, spared, arrays, len(saved)


def view_resume(case, output):
    if len(output) == 2:
        refused, unchanged = output
        return np.array([refused]), np.array([float(unchanged)])
    state, moved, *numbers = output
    return np.array([*state, *map(float, numbers)]), moved


class Optimizer:
    slots = ()

    def __init__(self, parameters, lr):
        self.parameters, self.lr, self.steps = list(parameters), lr, 0
        self.averages = {slot: np.zeros(sum(p.data.size for p in self.parameters)) for slot in self.slots}

    def step(self):
        self.steps += 1
        begin = 0
        for p in self.parameters:
            place = slice(begin, begin + p.data.size)
            begin = place.stop
            averages = [self.averages[slot][place].reshape(p.data.shape) for slot in self.slots]
            self._update(p.data, p.grad, *averages)

    def check_state(self, state):
        expected = {**{slot: average.shape for slot, average in self.averages.items()}, "steps": ()}
        if {name: np.shape(values) for name, values in state.items()} != expected:
            raise ValueError("the state does not belong to this optimizer")

    def state_dict(self):
        state = {slot: average.copy() for slot, average in self.averages.items()}
        state["steps"] = np.array(self.steps)
        return state

    def load_state_dict(self, state):
        self.check_state(state)
        for slot in self.slots:
            self.averages[slot][...] = state[slot]
        self.steps = int(state["steps"])


EXERCISES = [
    SHEET.exercise(training.Adam, Adam, adam_cases, ADAM_RESULTS, drive=drive_adam, parts=("_update",)),
    SHEET.exercise(training.AdamW, AdamW, adamw_cases, ADAM_RESULTS, drive=drive_adam, parts=("_update_block",)),
    SHEET.exercise(training.orthogonalised, orthogonalised, orthogonalised_cases, {"orthogonalised g": "D_in D_out"}),
    SHEET.exercise(
        training.clip_grad_norm, clip_grad_norm, clip_cases, {"norm": "", "gradients": "number", "data": "number"},
        drive=drive_clip,
    ),
    SHEET.exercise(
        optim.Optimizer, Optimizer, resume_cases,
        {"the saved state": "...", "the parameters after the next steps": "..."},
        drive=drive_resume, view=view_resume, parts=("state_dict", "load_state_dict"),
    ),
]  # fmt: skip
