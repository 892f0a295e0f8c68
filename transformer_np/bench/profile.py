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
from .configurations import CONFIGURATIONS, Repeated
from .floor import Replay
from .work import products_of_step, trainer_of

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


class Stopwatch:
    """Exclusive seconds by name: `call = stopwatch.timed(function, name)`."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.seconds, self.calls, self._open = Counter(), 0, []

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
                self.calls += 1
                if self._open:
                    self._open[-1][1] += seconds

        return call


def kind_of(name):
    """(kind, "forward" or "backward") of a function of `functional`, by its name."""
    forward = name.removesuffix(BACKWARD)
    kind = next((kind for kind, names in KINDS.items() if forward in names), OTHER)
    return kind, "forward" if name == forward else "backward"


@contextmanager
def timing_functions(stopwatch, optimizer):
    """Inside the block, time every public function of `functional`, by (kind, direction), and the optimizer."""
    originals = {getattr(functional, name): kind_of(name) for name in functional.__all__}
    originals[optim.clip_arrays] = (OPTIMIZER, "")
    timed = {function: stopwatch.timed(function, name) for function, name in originals.items()}
    with calls(timed), timing_methods(stopwatch, optimizer, {"step": (OPTIMIZER, ""), "zero_grad": (OPTIMIZER, "")}):
        yield


@contextmanager
def timing_layers(stopwatch, trainer):
    """Inside the block, time forward and backward of every module, by (dotted name, direction), the loss around the
    model, and the optimizer."""
    seen = set()
    with ExitStack() as stack:
        for name, module in trainer.model.named_modules():
            if id(module) not in seen:  # a shared module has several names
                seen.add(id(module))
                stack.enter_context(timing_methods(stopwatch, module, _both_directions(name or "(model)")))
        stack.enter_context(timing_methods(stopwatch, trainer.objective, _both_directions(LOSS)))
        methods = {"step": (OPTIMIZER, ""), "zero_grad": (OPTIMIZER, "")}
        stack.enter_context(timing_methods(stopwatch, trainer.optimizer, methods))
        yield


def _both_directions(name):
    return {"forward": (name, "forward"), "backward": (name, "backward")}


def timing_methods(stopwatch, owner, names):
    """Inside the block, time these methods of one object, {method: name}."""
    return methods(owner, {method: stopwatch.timed(getattr(owner, method), name) for method, name in names.items()})


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


class Profile:
    """A work for `child`: profiles training on one core. Its `run` returns the profile instead of seconds."""

    def __init__(self, configuration):
        configuration = CONFIGURATIONS[configuration]
        self.trainer = trainer_of(configuration)
        self.batches = Repeated(configuration.batches())
        self.stopwatch = Stopwatch()
        with timing_functions(self.stopwatch, self.trainer.optimizer):
            products = products_of_step(
                self.trainer, self.batches.batches, lambda: self.stopwatch.running() or (REST, "")
            )
        self.replay = Replay(products)

    def check(self):
        return None

    def run(self, steps):
        """{"step": median milliseconds of a step without any stopwatch, "kinds" and "layers": a list of Part each,
        "calls": timed calls per step for each of the two, "microseconds": overhead of the stopwatch per call}"""
        alone, kinds, floors, layers, calls = [], [], [], [], {}
        for _ in range(WARM_UP):
            self._seconds_of_a_step()
        for _ in range(steps):  # in turn, so that other load on the machine affects all of them
            alone.append(self._seconds_of_a_step())
            with timing_functions(self.stopwatch, self.trainer.optimizer):
                kinds.append(self._exclusive_seconds())
            calls["kinds"] = self.stopwatch.calls
            floors.append(self.replay.seconds_by_kind())
            with timing_layers(self.stopwatch, self.trainer):
                layers.append(self._exclusive_seconds())
            calls["layers"] = self.stopwatch.calls
        return {
            "step": 1e3 * median(alone),
            "kinds": with_floors(parts_of(kinds), floors),
            "layers": parts_of(layers),
            "calls": calls,
            "microseconds": microseconds_per_call(),
        }

    def _seconds_of_a_step(self):
        history = self.trainer.history
        before = history.seconds
        self.trainer.fit(self.batches, self.trainer.step + 1, progress=False)
        return history.seconds - before

    def _exclusive_seconds(self):
        """Do one more step  ->  {(name, direction): seconds}"""
        self.stopwatch.clear()
        whole = self._seconds_of_a_step()
        return add_rest(self.stopwatch.seconds, whole)


def add_rest(seconds, whole):
    """The times of a step, and under REST the remaining time."""
    return {**seconds, (REST, ""): whole - sum(seconds.values())}


def parts_of(steps):
    """A list of Part in order of appearance, from several steps, {(name, direction): seconds} each."""
    names = dict.fromkeys(name for step in steps for name, _ in step)

    def milliseconds(name, *directions):
        return 1e3 * sum(median(step.get((name, d), 0.0) for step in steps) for d in directions)

    return [Part(name, milliseconds(name, "forward", ""), milliseconds(name, "backward")) for name in names]


def with_floors(parts, floors):
    """The parts with their floors: the medians of {(kind, direction): seconds} of the matrix products alone."""
    alone = {part.name: part for part in parts_of(floors)}
    return [
        Part(part.name, part.forward, part.backward, alone[part.name].total if part.name in alone else None)
        for part in parts
    ]


def microseconds_per_call(calls=10_000):
    """The overhead of the stopwatch per call."""
    nothing = Stopwatch().timed(lambda: None, "nothing")
    started = time.perf_counter()
    for _ in range(calls):
        nothing()
    return 1e6 * (time.perf_counter() - started) / calls
