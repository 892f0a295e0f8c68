"""Saving an optimizer and going on from there."""

import numpy as np

from ...module import Parameter
from ...training import optim
from ..exercise import Case, Exercise, Result, draw_sizes
from .adam import flat

STEPS, SAVED = 6, 3  # in all, and before the state is saved


def resume_cases(rng):
    def case(label, of_other=False):
        sizes = draw_sizes(rng, "D_in D_out D")
        shapes = (sizes["D_in"], sizes["D_out"]), (sizes["D"],)
        values = [rng.normal(size=shape) for shape in shapes]
        gradients = [[rng.normal(size=shape) for shape in shapes] for _ in range(STEPS)]
        return Case(label, (values, gradients), {"of_other": True} if of_other else {}, sizes)

    return [case(""), case("the state of another optimizer", True)]


def drive_resume(answer, values, gradients, of_other=False):
    """Train, save, and go on with a new optimizer.

    ->  the state as it was saved, the parameters after each step behind it, and how far saving and loading share
    memory; or whether the state of another optimizer is refused
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
    if of_other:
        _, other = made([array[..., :1] for array in values])
        before = flat(other.averages.values())
        try:
            other.load_state_dict(state)
            refused = 0.0
        except ValueError:
            refused = 1.0
        return refused, np.array_equal(flat(other.averages.values()), before) and other.steps == 0
    saved = {name: np.array(array, float) for name, array in state.items()}
    at_saving = [np.array(p.data) for p in parameters]
    list(train(parameters, optimizer, gradients[SAVED:]))
    kept = all(np.array_equal(saved[name], state[name]) for name in saved)
    parameters, resumed = made(at_saving)
    resumed.load_state_dict(saved)
    moved = np.array(list(train(parameters, resumed, gradients[SAVED:])))
    return flat([saved.get(name, np.zeros(1)) for name in ("m", "v", "steps")]), moved, kept, len(saved)


def view_resume(case, output):
    if len(output) == 2:
        refused, unchanged = output
        return np.array([refused]), np.array([float(unchanged)])
    state, moved, kept, entries = output
    return np.array([*state, float(kept), float(entries)]), moved


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


OPTIMIZER = Exercise(
    optim.Optimizer,
    results=(Result("the saved state"), Result("the parameters after the next steps", "step number")),
    cases=resume_cases,
    answer=Optimizer,
    hints=(
        "Adam divides by 1 − βᵗ. Which t would it use in the first step after a break, if only m and v were saved?",
        "the state is {name of a slot: its running average, …} and the number of steps",
        "self.averages is {slot: array}; the docstring of state_dict says what the state holds. Copy the arrays: "
        "training goes on after saving.",
    ),
    difficulty=2,
    section="§5.3 of Vaswani et al. 2017, behind Adam",
    chapter="Training and decoding",
    place=2.5,
    drive=drive_resume,
    view=view_resume,
    parts=("state_dict", "load_state_dict"),
    mistakes="""
- the state is not a copy:  average.copy() -> average
  The state holds the running averages themselves, so the next steps change it. Save copies: the file may be written
  later.
- steps always saved as 0:  np.array(self.steps) -> np.array(0)
  The saved number of steps is 0. Then Adam's bias correction starts again after a break: save self.steps.
- steps saved one too large:  np.array(self.steps) -> np.array(self.steps + 1)
  The saved number of steps is one too large. Save the steps that are done: the next step counts itself.
- steps saved one too small:  np.array(self.steps) -> np.array(self.steps - 1)
  The saved number of steps is one too small. self.steps is already the number of steps that are done.
- steps not loaded:  self.steps = int(state["steps"]) -> pass
  The number of steps is not loaded, so it is 0 after a break. Adam's first steps would again be divided by 1 − β¹, 1 −
  β², …: set self.steps.
- steps loaded one too large:  int(state["steps"]) -> int(state["steps"]) + 1
  The number of steps is one too large after loading. step() counts the next step itself.
- averages not loaded:  self.averages[slot][...] = state[slot] -> pass
  The running averages are not loaded: they begin at 0 again. Copy every slot of the state into self.averages.
- only the first average loaded:  in load_state_dict: for slot in self.slots -> for slot in self.slots[:1]
  Only the first of the running averages is loaded, and the others begin at 0 again. Copy every slot.
- the first average for all:  = state[slot] -> = state[self.slots[0]]
  All running averages are loaded from the first slot of the state. Each slot has its own name.
- averages saved as 0:  average.copy() -> np.zeros_like(average)
  The saved averages are 0. Save the values that the optimizer has now.
- only the first average saved:  average.copy() -> average.copy() if slot == self.slots[0] else np.zeros_like(average)
  Only the first of the running averages is saved. Save every slot: {slot: average.copy() for all of self.averages}.
- state not checked:
    self.check_state(state) -> pass
    self.averages[slot][...] = state[slot] -> self.averages[slot] = np.array(state[slot])
  The state of another optimizer is loaded without an error. Call self.check_state(state) first, which raises
  ValueError.
- checked too late:
    in load_state_dict:
        self.steps = int(state["steps"])
        self.check_state(state)
        for slot in self.slots:
            self.averages[slot][...] = state[slot]
  The state is checked after a part of it was loaded. Check first: an optimizer that refuses a state must not change.
""",
)

EXERCISES = [OPTIMIZER]
