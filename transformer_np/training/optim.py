"""Optimizers. All parameters move into one flat buffer, and all gradients into another. An update is then a few passes
over memory, not a few passes per tensor."""

import numpy as np

from ..module import as_parameters
from ..support.checks import check_kind, check_number, short
from ..support.memory import check_memory

BLOCK = 1 << 15  # elements updated together: their arrays stay in the cache between the lines of the formula


class Optimizer:
    """The base of all optimizers. `parameters` is a list of Parameter of one dtype; `lr` may change between steps.

    slots: names of the running averages, which have one number per parameter element and start at zero
    """

    slots = ()
    _is_new_copy = False

    def __init__(self, parameters, lr):
        self.parameters = as_parameters(parameters)
        if not self.parameters:
            raise ValueError("parameters is empty: there is nothing to learn")
        if len({id(p) for p in self.parameters}) < len(self.parameters):
            raise ValueError("parameters holds the same Parameter twice")
        if any(p.frozen for p in self.parameters):
            raise ValueError("parameters has frozen ones: pass model.learned().values()")
        if len({p.dtype for p in self.parameters}) > 1:
            raise ValueError(f"parameters mixes dtypes: {sorted({str(p.dtype) for p in self.parameters})}")
        self.lr = lr
        self.steps = 0
        size = sum(p.data.nbytes for p in self.parameters)
        check_memory(f"training {sum(p.data.size for p in self.parameters):,} parameters", (2 + len(self.slots)) * size)
        self._gather()
        self.averages = {slot: np.zeros_like(self.data) for slot in self.slots}

    @property
    def lr(self):
        return self._lr

    @lr.setter
    def lr(self, lr):
        check_number("lr", lr, "[0, ∞)")
        self._lr = float(lr)  # a float64 of NumPy would make float64 of float32

    def __getstate__(self):
        """A copy gathers the copied parameters anew: its buffers would be other arrays than those of the parameters."""
        return {name: value for name, value in vars(self).items() if name not in ("data", "grad", "_views")}

    def __setstate__(self, state):
        vars(self).update(state)
        self._gather()
        self._is_new_copy = True

    def _gather(self):
        """Lay all parameters side by side in one buffer, and all gradients in another."""
        self.data = np.concatenate([p.data.reshape(-1) for p in self.parameters])
        self.grad = np.concatenate([p.grad.reshape(-1) for p in self.parameters])
        self._bind()

    def _bind(self):
        """Make each parameter a view of its place in the buffers `data` and `grad`, which hold all parameters."""
        self._views, start = [], 0
        for p in self.parameters:
            place = slice(start, start + p.data.size)
            p.bind(self.data[place].reshape(p.shape), self.grad[place].reshape(p.shape))
            self._views.append((p.data, p.grad))
            start = place.stop

    def move(self, allocate):
        """Move parameters and averages into arrays from allocate(size, dtype), such as memory that processes share."""

        def moved(array):
            new = allocate(array.size, array.dtype)
            new[...] = array
            return new

        self._check_own()
        self.data = moved(self.data)
        self.averages = {slot: moved(average) for slot, average in self.averages.items()}
        self._bind()

    def move_gradients(self, buffer):
        """Use this buffer for the gradients from now on, with its current values."""
        self._check_own()
        self.grad = buffer
        self._bind()

    def _check_own(self):
        if any(p.frozen for p in self.parameters):
            what = "a parameter was frozen after the optimizer was made, and would still move"
            raise RuntimeError(f"{what}: make a new one")
        views = zip(self.parameters, self._views, strict=True)
        if any(p.data is not data or p.grad is not grad for p, (data, grad) in views):
            how = "after the optimizer was made (astype, unfreeze, another optimizer)"
            raise RuntimeError(f"a parameter was replaced {how}: make a new one")

    def _check_copied(self):
        if self._is_new_copy and not self.grad.any():
            both = "Copy both together, model, optimizer = copy.deepcopy((model, optimizer))"
            what = "this copied optimizer has parameters of its own, and no model gives them a gradient"
            raise RuntimeError(f"{what}. {both}, or make a new optimizer for the model")
        self._is_new_copy = False

    def zero_grad(self):
        self.grad[...] = 0

    def step(self, part=None):
        """Update every parameter from its gradient; part: a slice of the buffers, to update only these elements."""
        self._check_own()
        self._check_copied()
        self.steps += 1
        start, stop, _ = (part or slice(None)).indices(self.data.size)
        for block in self._blocks(start, stop):
            self._update_block(block)

    def part(self, rank, size):
        """The slice of the buffers that the member `rank` of a team of `size` updates."""
        return slice(*(self.data.size * n // size for n in (rank, rank + 1)))

    def _blocks(self, start, stop):
        for begin in range(start, stop, BLOCK):
            yield slice(begin, min(begin + BLOCK, stop))

    def _update_block(self, block):
        self._update(self.data[block], self.grad[block], *(self.averages[slot][block] for slot in self.slots))

    def _update(self, p, g, *averages):
        raise NotImplementedError

    def state_dict(self):
        """Copies of the running averages, and the number of steps as an array (): later steps do not change them."""
        return {**{slot: average.copy() for slot, average in self.averages.items()}, "steps": np.array(self.steps)}

    def check_state(self, state):
        """Raise ValueError if `state` is not a state_dict of the same optimizer with the same parameters."""
        check_kind("state", state, dict)
        expected = {**{slot: average.shape for slot, average in self.averages.items()}, "steps": ()}
        found = {name: np.shape(values) for name, values in state.items()}
        if found != expected:
            name = type(self).__name__
            raise ValueError(f"the state does not belong to this {name}: expected {expected}, got {found}")

    def load_state_dict(self, state):
        """Continue from a state_dict of the same optimizer with the same parameters; it is checked first."""
        self.check_state(state)
        for slot, average in self.averages.items():
            average[...] = state[slot]
        self.steps = int(state["steps"])


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum μ:  u = μ u + g,  p −= lr u."""

    slots = ("velocity",)

    def __init__(self, parameters, lr=0.1, momentum=0.0):
        check_number("momentum", momentum, "[0, 1]")
        self.momentum = momentum
        super().__init__(parameters, lr)

    def _update(self, p, g, velocity):
        velocity *= self.momentum
        velocity += g
        p -= self.lr * velocity


class Adam(Optimizer):
    """Adam (Kingma & Ba 2015): a step of about lr for every element, whatever the size of its gradient.

        m = β₁ m + (1 − β₁) g,    v = β₂ v + (1 − β₂) g²
        p −= lr · m̂ / (√v̂ + ε),    m̂ = m / (1 − β₁ᵗ),  v̂ = v / (1 − β₂ᵗ)

    m and v start at 0 and are too small at first; m̂ and v̂ correct this.

    The paper of the Transformer uses β = (0.9, 0.98), ε = 1e-9 (Vaswani et al. 2017, §5.3).
    """

    slots = ("m", "v")

    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise TypeError(f"betas must be two numbers, got {short(betas)}")
        for beta in betas:
            check_number("betas", beta, "[0, 1)")
        check_number("eps", eps, "[0, ∞)")
        self.betas, self.eps = betas, eps
        super().__init__(parameters, lr)

    def _update(self, p, g, m, v):
        beta1, beta2 = self.betas
        correction = (1 - beta2**self.steps) ** 0.5  # √v̂ + ε = (√v + ε · correction) / correction
        scratch = (1 - beta1) * g
        m *= beta1
        m += scratch
        np.multiply(g, g, out=scratch)
        scratch *= 1 - beta2
        v *= beta2
        v += scratch
        np.sqrt(v, out=scratch)
        scratch += self.eps * correction
        np.divide(m, scratch, out=scratch)
        scratch *= self.lr * correction / (1 - beta1**self.steps)
        p -= scratch


class AdamW(Adam):
    """Adam with decoupled weight decay λ (Loshchilov & Hutter 2019):  p −= lr · λ · p before Adam's step.

    decays: a function that returns whether a Parameter is decayed; by default all are. GPTs usually decay the matrices,
        but not the biases and the γ of the norms: `decays=is_matrix`
    rates: a function from a Parameter to the factor of its learning rate, such as a lower one for pretrained layers
        (Howard & Ruder 2018, §3.2); by default 1
    """

    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, decays=None, rates=None):
        check_number("weight_decay", weight_decay, "[0, ∞)")
        self.weight_decay = weight_decay
        super().__init__(parameters, lr, betas, eps)
        found = [] if rates is None else [rates(p) for p in self.parameters]
        for rate in found:
            check_number("what rates returns", rate, "[0, ∞)")
        self._rates = np.array(found, self.data.dtype) if found else None
        self._ends = np.cumsum([p.data.size for p in self.parameters])
        self._decayed = None  # or 1 and 0 for every element of the buffer, in a byte each
        if decays is not None:
            chosen = np.array([bool(decays(p)) for p in self.parameters], np.int8)
            self._decayed = np.repeat(chosen, [p.data.size for p in self.parameters])

    def _update_block(self, block):
        if self._rates is None:
            self._decay_and_update(block)
            return
        first, last = np.searchsorted(self._ends, (block.start, block.stop - 1), side="right")
        rate, edges = self.lr, (block.start, *self._ends[first:last], block.stop)
        for factor, start, stop in zip(self._rates[first : last + 1], edges, edges[1:], strict=False):
            self.lr = rate * float(factor)
            self._decay_and_update(slice(start, stop))
        self.lr = rate

    def _decay_and_update(self, block):
        rate = self.lr * self.weight_decay
        if self._decayed is not None:
            rate = self.data.dtype.type(rate) * self._decayed[block]
        self.data[block] *= 1 - rate
        super()._update_block(block)


def is_matrix(parameter):
    """Whether a Parameter has two axes or more: the weights of linear maps and the tables of embeddings."""
    return parameter.data.ndim >= 2


def clip_grad_norm(parameters, max_norm):
    """Scale all gradients together, in place, so that their norm √(Σ g²), over all parameters that are not frozen, is
    at most max_norm (Pascanu et al. 2013).

    ->  the norm before clipping; if it is not finite, the gradients are left unchanged
    """
    return clip_arrays([p.grad for p in as_parameters(parameters) if not p.frozen], max_norm)


def clip_arrays(gradients, max_norm, total=None):
    """`clip_grad_norm` for a list of arrays. If these are only a part of all gradients, total(squares) takes their sum
    of squares and returns the sum over all gradients."""
    check_number("max_norm", max_norm, "(0, ∞)")
    floats = (isinstance(g, np.ndarray) and g.dtype.kind == "f" for g in gradients)
    if isinstance(gradients, str | np.ndarray) or not all(floats):
        raise TypeError(f"gradients must be a list of arrays of floats, got {short(gradients)}")
    # in blocks: one sum of millions of float32 loses digits, and would depend on the division of the gradients
    flat = (g.reshape(-1) for g in gradients)
    blocks = (one[begin : begin + BLOCK] for one in flat for begin in range(0, one.size, BLOCK))
    squares = sum(float(np.vdot(block, block)) for block in blocks)
    norm = (squares if total is None else total(squares)) ** 0.5
    if max_norm < norm < float("inf"):
        for g in gradients:
            g *= max_norm / norm
    return norm
