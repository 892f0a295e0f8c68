"""A small training with the student's functions beside the same training with the library's."""

import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field

from ..support.checks import check_at_least
from ..training.optim import Optimizer
from .judging.attempt import crash_of
from .swap import started_answers, using

ROUNDING = 1e-6  # of the loss: more than what float32 inside an answer adds up to in some hundred steps


class TrainingCrash(Exception):
    """The training cannot go on: `crash` is what an answer raised, with the student's lines."""

    def __init__(self, step, crash):
        self.crash = crash
        text = f"{crash.kind}: {crash.text}" if crash.text else crash.kind
        super().__init__(f"step {step}: {text}" + (f"\n{crash.trace}" if crash.trace else ""))


@dataclass
class LossCurves:
    """The losses of every step from the same seed, {"library": [...], "yours": [...]}; calls: {name: how often the
    student's was called}; left_out: the names of answers that are not started."""

    losses: dict = field(default_factory=dict)
    calls: dict = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def part_at(self):
        """The first step, from 1, whose losses differ by more than rounding, or None."""
        pairs = zip(*self.losses.values(), strict=False)
        return next((i for i, (a, b) in enumerate(pairs, 1) if not abs(a - b) <= ROUNDING * abs(a)), None)


def train_both(answers, steps=200, every=10, seed=0, report=lambda step, library, yours: None, in_both=()):
    """Train the built-in translator, small and in float64, with the library's functions, then with the answers in their
    places.

    answers: as for `using`
    report: called with a step and its two losses, for step 1 and every `every` steps
    in_both: names of answers that the training with the library's functions uses too: a right dropout that draws other
        random numbers would part the two

    There is dropout only where the answers have one of the two functions of it, as it draws at random.

    ->  LossCurves. Raises TrainingCrash for what goes wrong in the student's code and for a loss that is not finite.
    """
    check_at_least("steps", steps, 1)
    check_at_least("every", every, 1)
    curves = LossCurves()
    started, curves.left_out = started_answers(answers)
    dropout = 0.1 if started.keys() & {"dropout", "dropout_backward"} else 0.0
    library, yours = curves.losses["library"], curves.losses["yours"] = [], []
    shared = {name: started[name] for name in in_both if name in started}
    with using(shared) if shared else nullcontext():
        trainer, batches = _prepare(dropout, steps, seed)
        _fit(trainer, batches, steps)
    library += trainer.history.losses
    with using(started) as swap, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        curves.calls = swap.calls
        trainer = None
        try:
            trainer, batches = _prepare(dropout, steps, seed)
            for step in sorted({1, *range(every, steps + 1, every), steps}):
                _fit(trainer, batches, step)
                report(step, library[step - 1], trainer.history.losses[-1])
        except (Exception, SystemExit) as error:
            raise TrainingCrash(trainer.step + 1 if trainer else 1, crash_of(error)) from None
        finally:
            yours += trainer.history.losses if trainer else []
    return curves


class _Stepping(Optimizer):
    """An Adam that is a class of its own, with `step` and `lr`, where the Trainer wants an Optimizer."""

    def __init__(self, kind, parameters, **how):
        super().__init__(parameters, lr=0.0)
        self.own = kind(self.parameters, **how)

    def step(self, part=None):
        self.steps += 1
        self.own.lr = self.lr
        self.own.step()


def _prepare(dropout, steps, seed):
    """The trainer of a translator with one block a stack, and its batches. In float64, so that a right answer that adds
    in another order stays together with the library's."""
    from ..tasks.translation import TranslationOptions, TranslationTask
    from ..training import Trainer

    task = TranslationTask()
    options = TranslationOptions(
        steps=steps,
        batch_size=32,
        layers=1,
        heads=4,
        d_model=32,
        d_ff=64,
        dropout=dropout,
        lr=5e-3,  # small, so that rounding does not grow: with 0.02, 1e-10 becomes 10 % in 100 steps
        warmup=60,
        seed=seed,
    )
    pairs = task.load(options)
    setup = task.setup(options, pairs, task.train_tokenizers(options, pairs))
    model = setup.model.astype("float64")
    kind, how = type(setup.optimizer), {"betas": (0.9, 0.98), "eps": 1e-9}
    own = not issubclass(kind, Optimizer)
    adam = _Stepping(kind, model.parameters(), **how) if own else kind(model.parameters(), **how)
    return Trainer(model, adam, setup.objective, schedule=setup.schedule, clip_norm=setup.clip_norm), setup.batches


def _fit(trainer, batches, steps):
    trainer.fit(batches, steps, progress=False)
    if trainer.interrupted:
        raise KeyboardInterrupt
