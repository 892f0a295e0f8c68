"""The training loop."""

import math
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .checkpoint import load_checkpoint, load_model_tensors, model_header, model_tensors, save_checkpoint
from .optim import clip_grad_norm


class TrainingError(RuntimeError):
    """The training cannot go on: the loss, the gradient or a parameter is not finite."""


@dataclass
class History:
    """What happened so far: loss (nats per token) and learning rate of every step, (step, loss) of every validation,
    and the seconds spent in steps."""

    losses: list = field(default_factory=list)
    learning_rates: list = field(default_factory=list)
    validation: list = field(default_factory=list)
    seconds: float = 0.0


class Trainer:
    """Runs the steps of a training: forward, backward, clip, update; validates, saves, resumes.

        trainer = Trainer(model, Adam(model.parameters()), TeacherForcing(model, label_smoothing=0.1),
                          schedule=lambda step: noam_schedule(step, d_model=64, warmup=400), clip_norm=1.0,
                          checkpoint="run/checkpoint.safetensors")
        trainer.fit(batches, steps=1000, validation=list(held_out.in_order()), validate_every=200)

    objective: .forward(batch) -> loss, number of tokens, and .backward(), such as TeacherForcing. One that carries
        something from step to step has it saved and restored: .state_dict() -> {name: array}, .check_state(state),
        .load_state_dict(state)
    schedule: step, from 1 -> learning rate; without it the optimizer keeps its own
    clip_norm: the largest norm of all gradients together
    checkpoint: path of the file that is saved to and resumed from; it holds model, optimizer, history and random states
    header: JSON data to store with it
    """

    def __init__(self, model, optimizer, objective, schedule=None, clip_norm=None, checkpoint=None, header=None):
        self.model, self.optimizer, self.objective = model, optimizer, objective
        self.schedule, self.clip_norm, self.checkpoint = schedule, clip_norm, checkpoint
        self.header = header or {}
        self.history = History()
        self.interrupted = False

    @property
    def step(self):
        """How many steps are done."""
        return len(self.history.losses)

    def fit(self, batches, steps, validation=None, validate_every=None, checkpoint_every=None, progress=True):
        """Go on to `steps` steps in all, counted from the very first; step n is given `batches.batch(n − 1)`.

        validation: batches to measure the loss on, every `validate_every` steps and at the end
        checkpoint_every: save that often; a training with a checkpoint file always saves at the end
        progress: show a bar on stderr

        Ctrl-C finishes the step, saves, and returns with `interrupted` set; pressed again it stops at once.
        Raises TrainingError on a loss, gradient or parameter that is not finite; the last checkpoint is then left as it
        is.

        ->  the History
        """
        self.interrupted = False
        self.model.train()
        quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # a divergence is a TrainingError instead
        with self._stop_softly() as asked_to_stop, self._bar(steps, progress) as bar, quiet:
            while self.step < steps and not asked_to_stop():
                started = time.perf_counter()
                loss, tokens = self._one_step(batches.batch(self.step))
                seconds = time.perf_counter() - started
                self.history.seconds += seconds
                bar.set_postfix_str(f"loss {loss:.3f}, {tokens / seconds:,.0f} tokens/s", refresh=False)
                bar.update()
                last = self.step == steps
                if validation and (last or _due(self.step, validate_every)):
                    self._record_validation(validation)
                if self.checkpoint and _due(self.step, checkpoint_every) and not last:
                    self.save()
            self.interrupted = self.step < steps
            if self.checkpoint:
                self.save()
        return self.history

    def _one_step(self, batch):
        number = self.step + 1
        self.optimizer.zero_grad()
        loss, tokens = self.objective.forward(batch)
        if not math.isfinite(loss):
            raise self._diverged(f"the loss is {loss}", number)
        self.objective.backward()
        if self.clip_norm is not None:
            norm = clip_grad_norm(self.optimizer.parameters, self.clip_norm)
            if not math.isfinite(norm):
                raise self._diverged(f"the norm of the gradient is {norm}", number)
        if self.schedule is not None:
            self.optimizer.lr = self.schedule(number)
        self.optimizer.step()
        self.history.losses.append(loss)
        self.history.learning_rates.append(self.optimizer.lr)
        return loss, tokens

    def _record_validation(self, batches):
        loss = self.validate(batches)
        if not math.isfinite(loss):
            raise self._diverged(f"the validation loss is {loss}", self.step)
        self.history.validation.append((self.step, loss))

    def _diverged(self, what, number):
        saved = self.checkpoint and Path(self.checkpoint).exists()
        kept = f"; the checkpoint of an earlier step is untouched: {self.checkpoint}" if saved else ""
        return TrainingError(f"{what} at step {number}: try a smaller learning rate{kept}")

    def validate(self, batches):
        """The mean loss per token over all batches, in eval mode."""
        with self.model.evaluating():
            losses = [self.objective.forward(batch) for batch in batches]
        return sum(loss * tokens for loss, tokens in losses) / max(1, sum(tokens for _, tokens in losses))

    # --- what a training needs to go on exactly ------------------------------------------------------------------

    def save(self):
        """Write the checkpoint, atomically. Raises TrainingError, and leaves it, if a parameter is not finite."""
        if not np.isfinite(self.optimizer.data).all():
            raise self._diverged("a parameter is not finite", self.step)
        history = self.history
        tensors = {
            **model_tensors(self.model),
            **{f"optimizer.{name}": array for name, array in self.optimizer.state_dict().items()},
            **{f"objective.{name}": array for name, array in self._objective_state().items()},
            "history.losses": np.array(history.losses),
            "history.learning_rates": np.array(history.learning_rates),
            "history.validation": np.array(history.validation, np.float64).reshape(-1, 2),
        }
        header = {
            **self.header,
            **model_header(self.model),
            "step": self.step,
            "seconds": history.seconds,
            "random_states": [generator.bit_generator.state for generator in self._generators()],
        }
        save_checkpoint(self.checkpoint, tensors, header)

    def resume(self):
        """Take up the training where the checkpoint left it: the same losses follow, bit for bit.

        Raises FileNotFoundError or ValueError, with nothing changed, if the file is missing, damaged or does not fit.
        """
        tensors, header = load_checkpoint(self.checkpoint)
        own = model_header(self.model)
        if header.get("model") != own["model"] or header.get("config") != own["config"]:
            raise ValueError(f"{self.checkpoint} is of another model: {_differences(header, own)}")
        try:
            generators, states = self._generators(), header["random_states"]
            history = History(
                losses=tensors["history.losses"].tolist(),
                learning_rates=tensors["history.learning_rates"].tolist(),
                validation=[(int(step), float(loss)) for step, loss in tensors["history.validation"]],
                seconds=header["seconds"],
            )
        except KeyError as error:
            raise ValueError(f"{self.checkpoint} holds no training to go on with: {error} is missing") from None
        if len(generators) != len(states):
            raise ValueError(f"{self.checkpoint} has {len(states)} random states, the model has {len(generators)}")
        averages, carried = (_with_prefix(prefix, tensors) for prefix in ("optimizer.", "objective."))
        try:
            self.optimizer.check_state(averages)
        except ValueError as error:
            raise ValueError(f"{self.checkpoint} does not fit the optimizer: {error}") from None
        if self._carries:
            try:
                self.objective.check_state(carried)
            except ValueError as error:
                raise ValueError(f"{self.checkpoint} does not fit the objective: {error}") from None
        load_model_tensors(self.model, tensors, self.checkpoint)  # the last that can fail
        self.optimizer.load_state_dict(averages)
        if self._carries:
            self.objective.load_state_dict(carried)
        for generator, state in zip(generators, states, strict=True):
            generator.bit_generator.state = state
        self.history = history

    @property
    def _carries(self):
        """Whether the objective carries something from step to step."""
        return hasattr(self.objective, "state_dict")

    def _objective_state(self):
        return self.objective.state_dict() if self._carries else {}

    def _generators(self):
        """The distinct random generators in the model: dropout draws from them."""
        found = {id(m.rng): m.rng for _, m in self.model.named_modules() if hasattr(m, "rng")}
        return list(found.values())

    # --- bar and Ctrl-C ------------------------------------------------------------------------------------------

    def _bar(self, steps, progress):
        from tqdm import tqdm  # here, because `import transformer_np` loads NumPy alone

        return tqdm(
            total=steps,
            initial=self.step,
            desc="training",
            unit="step",
            disable=not progress,
            mininterval=0.2 if sys.stderr.isatty() else 5.0,  # a log file wants few lines
            dynamic_ncols=True,
        )

    @contextmanager
    def _stop_softly(self):
        """Inside, the first Ctrl-C only raises a flag: a step is never torn in two. The second is Python's own."""
        asked = threading.Event()
        if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
            yield asked.is_set
            return

        def on_interrupt(*_):
            asked.set()
            signal.signal(signal.SIGINT, before)

        before = signal.signal(signal.SIGINT, on_interrupt)
        try:
            yield asked.is_set
        finally:
            signal.signal(signal.SIGINT, before)


def _with_prefix(prefix, tensors):
    """The tensors whose names begin so, without it."""
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}


def _due(step, every):
    return bool(every) and step % every == 0


def _differences(header, own):
    """What tells one model's header from another's, for an error message."""
    if header.get("model") != own["model"]:
        return f"a {header.get('model')}, not a {own['model']}"
    theirs = header.get("config", {})
    return ", ".join(
        f"{name} {theirs.get(name)!r}, not {value!r}"
        for name, value in own["config"].items()
        if theirs.get(name) != value
    )
