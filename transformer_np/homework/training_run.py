"""A small training run with the student's functions next to the same run with the library's."""

import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field

from ..support.checks import check_at_least
from ..training.optim import Optimizer
from ..training.state import TrainingError
from .judging.crash import Crash, crash_of
from .limit import Stopped
from .swap import started_answers, using

ROUNDING = 1e-6  # relative to the loss: more than the error of float32 inside an answer after a few hundred steps


class TrainingCrash(Exception):
    """The training run cannot continue: `crash` is an answer's exception, with the student's lines."""

    def __init__(self, step, crash):
        self.crash = crash
        super().__init__(f"step {step}: {crash.told}")


@dataclass
class LossCurves:
    """The losses of both training runs: {"library": [...], "yours": [...]}, one per step."""

    losses: dict = field(default_factory=dict)

    @property
    def part_at(self):
        """The first step, counted from 1, whose losses differ by more than rounding, or None."""
        pairs = zip(*self.losses.values(), strict=False)
        return next((i for i, (a, b) in enumerate(pairs, 1) if not abs(a - b) <= ROUNDING * abs(a)), None)


def train_both(answers, steps=200, every=10, report=lambda step, library, yours: None, in_both=(), limit=None):
    """Train a small built-in translator in float64 with the library's functions, then with the answers in their place.

    answers: as for `using`
    report: called with a step and its two losses, at step 1 and every `every` steps
    in_both: names of answers that both runs use: a right dropout may draw different random numbers from the library's,
        which changes the losses
    limit: a TimeLimit for each step with the answers

    The translator uses dropout only if the answers contain one of the two dropout functions.

    ->  LossCurves. Raises TrainingCrash if the student's code raises an exception or takes too long, or if a loss is
    not finite.
    """
    check_at_least("steps", steps, 1)
    check_at_least("every", every, 1)
    curves, step = LossCurves(), 1
    started, _ = started_answers(answers)
    dropout = 0.1 if started.keys() & {"dropout", "dropout_backward"} else 0.0
    library, yours = curves.losses["library"], curves.losses["yours"] = [], []
    shared = {name: started[name] for name in in_both if name in started}
    with using(shared) if shared else nullcontext():
        library += _losses(dropout, steps)
    with using(started), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        losses = _losses(dropout, steps)
        try:
            for step in range(1, steps + 1):
                with limit(f"step {step}") if limit else nullcontext():
                    yours.append(next(losses))
                if step in (1, steps) or step % every == 0:
                    report(step, library[step - 1], yours[-1])
        except Stopped as stopped:
            raise TrainingCrash(step, Crash("TimeoutError", str(stopped), "", stopped.trace)) from None
        except TrainingError as error:  # the same run is stable with the library's functions: not the learning rate
            text = (
                f"{str(error).partition(' at step')[0]}. With the library's functions the loss of this step is "
                f"{library[step - 1]:.6f}, so one of yours gives the number that is not finite"
            )
            raise TrainingCrash(step, Crash("TrainingError", text, "", "")) from None
        except (Exception, SystemExit) as error:
            raise TrainingCrash(step, crash_of(error)) from None
    return curves


class _Stepping(Optimizer):
    """The student's Adam, a class with `step` and `lr`, as the Optimizer that the Trainer needs."""

    def __init__(self, kind, parameters, **how):
        super().__init__(parameters, lr=0.0)
        self.own = kind(self.parameters, **how)

    def step(self, part=None):
        self.steps += 1
        self.own.lr = self.lr
        self.own.step()


def _losses(dropout, steps):
    """Train a translator with one block per stack, and yield the loss of each step. In float64, so that a right answer
    that adds in another order gives the library's losses up to rounding."""
    from ..tasks.translation import TranslationOptions, TranslationTask
    from ..training import Trainer

    task = TranslationTask()
    small = {"layers": 1, "heads": 4, "d_model": 32, "d_ff": 64, "dropout": dropout}
    lr = 5e-3  # small, because rounding grows with it: with 0.02, 1e-10 becomes 10 % after 100 steps
    options = TranslationOptions(steps=steps, batch_size=32, lr=lr, warmup=60, seed=0, **small)
    pairs = task.load(options)
    setup = task.setup(options, pairs, task.train_tokenizers(options, pairs))
    model = setup.model.astype("float64")
    kind, how = type(setup.optimizer), {"betas": (0.9, 0.98), "eps": 1e-9}
    own = not issubclass(kind, Optimizer)
    adam = _Stepping(kind, model.parameters(), **how) if own else kind(model.parameters(), **how)
    trainer = Trainer(model, adam, setup.objective, schedule=setup.schedule, clip_norm=setup.clip_norm)
    for step in range(1, steps + 1):
        trainer.fit(setup.batches, step, progress=False)
        if trainer.interrupted:
            raise KeyboardInterrupt
        yield trainer.history.losses[-1]
