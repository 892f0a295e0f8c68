"""Saving an optimizer and going on from there."""

import numpy as np

from ...module import Parameter
from ...training import optim
from ..exercise import Case, draw_sizes
from .adam import flat
from .sheet import Sheet

SHEET = Sheet(__file__)

STEPS, SAVED = 6, 3  # in all, and before the state is saved


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
            for parameter, gradient in zip(parameters, of_step, strict=True):
                parameter.grad[...] = gradient
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
    SHEET.exercise(
        optim.Optimizer, Optimizer, resume_cases,
        {"the saved state": "...", "the parameters after the next steps": "step number"},
        drive=drive_resume, view=view_resume, parts=("state_dict", "load_state_dict"),
    ),
]  # fmt: skip
