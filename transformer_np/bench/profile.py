"""A profile of one training step, by kind of function and by layer.

It measures rather than samples: a stopwatch wraps every function. Times are exclusive, without the functions called
inside, so that all times add up to the whole step.
"""

import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from statistics import median

from .. import functional
from ..support.intercept import calls, methods
from ..training import optim
from .floor import Replay
from .work import Training, products_of_step

KINDS = {  # functions of `functional`, with their backwards
    "linear": ("linear",),
    "attention": (
        "attention_scores", "scaled_dot_product_attention", "tiled_attention", "window_attention",
        "relative_attention", "relative_shift", "split_heads", "merge_heads",
    ),
    "softmax": ("softmax",),
    "layer norm": ("layer_norm",),
    "activation": ("relu", "gelu", "tanh"),
    "embedding": ("embedding", "sinusoidal_encoding"),
    "dropout": ("dropout",),
    "loss": ("cross_entropy",),
}  # fmt: skip
OTHER, OPTIMIZER, LOSS, REST = "other functions", "optimizer", "loss", "rest of Python"
BACKWARD = "_backward"
WARM_UP = 3  # steps before the first measured one
UPDATE = dict.fromkeys(("step", "zero_grad"), (OPTIMIZER, ""))


class Stopwatch:
    """Exclusive seconds by name: `call = stopwatch.timed(function, name)`."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.seconds, self._open = Counter(), []

    def running(self):
        """The name of the innermost running call, None outside of all."""
        return self._open[-1][0] if self._open else None

    def timed(self, function, name):
        @wraps(function)
        def call(*args, **kwargs):
            self._open.append([name, 0.0])  # and the seconds of the calls inside
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                seconds = time.perf_counter() - started
                _, inside = self._open.pop()
                self.seconds[name] += seconds - inside
                if self._open:
                    self._open[-1][1] += seconds

        return call


def kind_of(name):
    """(kind, "forward" or "backward") of a function of `functional`, by its name."""
    forward = name.removesuffix(BACKWARD)
    kind = next((kind for kind, names in KINDS.items() if forward in names), OTHER)
    return kind, "forward" if name == forward else "backward"


def by_kind(stopwatch, trainer):
    """Inside the block, time every public function of `functional`, by (kind, direction), and the optimizer."""
    functions = {getattr(functional, name): kind_of(name) for name in functional.__all__}
    return _timing(stopwatch, {**functions, optim.clip_arrays: (OPTIMIZER, "")}, [(trainer.optimizer, UPDATE)])


def by_layer(stopwatch, trainer):
    """Inside the block, time forward and backward of every module, by (dotted name, direction), the loss around the
    model, and the optimizer."""
    modules = {}
    for name, module in trainer.model.named_modules():
        modules.setdefault(module, name or "(model)")  # a shared module has several names
    owners = [(owner, {d: (name, d) for d in ("forward", "backward")}) for owner, name in modules.items()]
    loss = (trainer.objective, {d: (LOSS, d) for d in ("forward", "backward")})
    return _timing(stopwatch, {}, [*owners, loss, (trainer.optimizer, UPDATE)])


@contextmanager
def _timing(stopwatch, functions, owners):
    """Inside the block, time functions, {function: name}, and methods, [(object, {method: name})]."""
    with ExitStack() as stack:
        stack.enter_context(calls({function: stopwatch.timed(function, name) for function, name in functions.items()}))
        for owner, names in owners:
            timed = {method: stopwatch.timed(getattr(owner, method), name) for method, name in names.items()}
            stack.enter_context(methods(owner, timed))
        yield


@dataclass(frozen=True)
class Part:
    """A row of a profile: milliseconds per step of forward and backward, and for a kind with matrix products `floor`,
    the milliseconds of the products alone. Times without a direction are in `forward`."""

    name: str
    forward: float
    backward: float
    floor: float | None = None

    @property
    def total(self):
        return self.forward + self.backward


class Profile(Training):
    """A work that profiles training on one core. Its `run` returns the profile instead of seconds."""

    def __init__(self, configuration):
        super().__init__(configuration)
        self.stopwatch = watch = Stopwatch()
        with by_kind(watch, self.trainer):
            products = products_of_step(self.trainer, self.batches.batches, lambda: watch.running() or (REST, ""))
        self.replay = Replay(products)

    def run(self, steps):
        """{"step": median milliseconds of a step without any stopwatch, "kinds" and "layers": a list of Part each}"""
        alone, floors, found = [], [], {"kinds": [], "layers": []}
        super().run(WARM_UP)
        for _ in range(steps):  # in turn, so that other load on the machine affects all of them
            alone.append(super().run(1))
            floors.append(self.replay.seconds_by_kind())
            for by, timing in (("kinds", by_kind), ("layers", by_layer)):
                self.stopwatch.clear()
                with timing(self.stopwatch, self.trainer):
                    whole = super().run(1)
                found[by].append(add_rest(self.stopwatch.seconds, whole))
        kinds, layers = parts_of(found["kinds"], floors), parts_of(found["layers"])
        return {"step": 1e3 * median(alone), "kinds": kinds, "layers": layers}


def add_rest(seconds, whole):
    """The times of a step, and under REST the remaining time."""
    return {**seconds, (REST, ""): whole - sum(seconds.values())}


def parts_of(steps, floors=()):
    """A list of Part in order of appearance: the medians of several steps, {(name, direction): seconds} each. floors:
    the same of the matrix products alone"""

    def milliseconds(steps, name, *directions):
        return 1e3 * sum(median(step.get((name, d), 0.0) for step in steps) for d in directions)

    with_products = {name for products in floors for name, _ in products}
    return [
        Part(
            name, milliseconds(steps, name, "forward", ""), milliseconds(steps, name, "backward"),
            milliseconds(floors, name, "forward", "", "backward") if name in with_products else None,
        )
        for name in dict.fromkeys(name for step in steps for name, _ in step)
    ]  # fmt: skip
