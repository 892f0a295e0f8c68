"""The training loop."""

import math
import os
import signal
import statistics
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import numpy as np

from ..support.checks import check_flag, check_number, short
from ..support.processes import STOP_SIGNALS
from .best import LAST, Best
from .checkpoint import load_checkpoint, load_model_tensors, model_header, model_tensors, save_checkpoint
from .choice import team_of
from .history import Record, read_history
from .optim import clip_arrays
from .share import Share

LEAST_TO_MEASURE = 20  # remaining steps: with fewer, timing some is not worth it
MOST_REHEARSALS, REHEARSAL_SECONDS = 6, 0.5


class TrainingError(RuntimeError):
    """The training run cannot continue: the loss, the gradient or a parameter is not finite."""


class Trainer:
    """The training loop: forward, backward, clip, update; it also validates, saves and resumes.

        trainer = Trainer(model, Adam(model.parameters()), TeacherForcing(model, label_smoothing=0.1),
                          schedule=lambda step: noam_schedule(step, d_model=64, warmup=400), clip_norm=1.0,
                          checkpoint="run/checkpoint.safetensors")
        trainer.fit(batches, steps=1000, validation=list(held_out.in_order()), validate_every=200)

    objective: .forward(batch) -> loss, number of tokens, and .backward(dloss), such as TeacherForcing. If it carries a
        state from step to step, the checkpoint includes it: .state_dict() -> {name: array}, .check_state(state),
        .load_state_dict(state)
    schedule: step, from 1 -> learning rate; without it the optimizer keeps its own
    clip_norm: the largest norm of all gradients together
    checkpoint: path of the file to save to and to resume from; it holds model, optimizer and random states. A file
        beside it, with the ending .history, has the loss and the learning rate of every step
    header: JSON data to store in the checkpoint
    workers: how many processes share each batch; "auto" is one per core, or one if measured steps are no faster with
        several; "mpi" is all processes that mpiexec started; a Team (see `choice`) is used as it is. The losses are the
        same as with one process except for rounding, including dropout. With several processes, a batch must be a
        dataclass of arrays and the objective needs .count(batch); an objective with a state also needs
        .state_of_rows(state, rows) and .join_states(states)
    keep_best: keep the weights with the lowest validation loss as well. The checkpoint has both: `load_model` takes the
        best weights, `resume` continues from the last weights

    team: the Team of the last `fit`; team.size is its number of processes
    best: the Best weights with keep_best, else None
    """

    def __init__(
        self,
        model,
        optimizer,
        objective,
        schedule=None,
        clip_norm=None,
        checkpoint=None,
        header=None,
        workers=1,
        keep_best=False,
    ):
        if clip_norm is not None:
            check_number("clip_norm", clip_norm, "(0, ∞)")
        self.model, self.optimizer, self.objective = model, optimizer, objective
        self.schedule, self.clip_norm, self.checkpoint = schedule, clip_norm, checkpoint
        self.header = header or {}
        self._record = Record()
        self.history = self._record.history()
        check_flag("keep_best", keep_best)
        self.best = Best(model) if keep_best else None
        self.interrupted = False
        self.team = self._chosen = team_of(workers)
        self._share = Share(model, objective)  # of this process; in `fit` it may be one of several
        self._asked_to_stop, self._stop = lambda: False, False  # in this process, in any of the team
        self._save = False  # whether the leader of the team has found that it is time to save

    @property
    def leads(self):
        """Whether this process shows progress, measures and saves: one of the processes of mpiexec, or the only one."""
        return self.team.rank == 0

    @property
    def step(self):
        """The number of steps done so far."""
        return len(self._record)

    def choose_team(self, batches, steps):
        """Decide how many processes share these batches, if `workers` left it open  ->  the Team.

        If enough steps remain, a few are timed with one process and with several. These leave no trace.
        """
        measure = partial(self._time_step, batches) if steps - self.step >= LEAST_TO_MEASURE else None
        self.team = self._chosen.for_batches(self._ahead(batches, steps), measure)
        if self.team.size == 1 and self.team.reason:
            self.optimizer.move(np.zeros)  # out of the shared memory, whose small pages are slower
            self.optimizer.move_gradients(np.zeros_like(self.optimizer.grad))
        return self.team

    def fit(
        self,
        batches,
        steps,
        validation=None,
        validate_every=None,
        checkpoint_every=None,
        progress=True,
        sample=None,
        save_seconds=None,
    ):
        """Train until `steps` steps are done in total, including earlier ones; step n uses `batches.batch(n − 1)`.

        validation: batches to measure the loss on, every `validate_every` steps and at the end
        sample: batches to measure the loss on before the end; default: all of `validation`. The best weights are those
            with the lowest loss on the sample
        checkpoint_every: the number of steps between saves; save_seconds: the number of seconds between saves. With a
            checkpoint path, `fit` always saves at the end
        progress: show a bar on stderr

        On Ctrl-C, SIGTERM or SIGHUP, `fit` finishes the step, saves, and returns with `interrupted` set; a second
        signal stops at once.

        Raises TrainingError if the loss, a gradient or a parameter is not finite; the last checkpoint then stays
        unchanged.

        ->  the History
        """
        self.interrupted = self._stop = False
        self.model.train()
        quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # divergence raises TrainingError instead
        with quiet, self._stopping_softly():
            if self.best and validation and self.step and not self._validated(steps):  # the sample may be another now
                self.best.measure(lambda: self.validate(sample or validation))

            def train(team):
                saved = time.perf_counter()
                with self._sharing(team, batches), self._bar(steps, progress and team.rank == 0) as bar:
                    while self.step < steps and not self._stop:
                        started = time.perf_counter()
                        due = save_seconds is not None and started - saved >= save_seconds
                        loss, tokens = self._one_step(batches.batch(self.step), due and team.rank == 0)
                        seconds = time.perf_counter() - started
                        self.history.seconds += seconds
                        state = f"loss {loss:.3f}, {tokens / seconds:,.0f} tokens/s"
                        bar.set_postfix_str(state, refresh=False)
                        bar.update()
                        if self.step == steps:
                            break
                        if validation and _due(self.step, validate_every):
                            bar.set_postfix_str(f"{state}, validating", refresh=progress and sys.stderr.isatty())
                            self._record_validation(validation, sample)
                            bar.set_postfix_str(state, refresh=False)
                        if self.checkpoint and (self._save or _due(self.step, checkpoint_every)):
                            self.save()
                            saved = time.perf_counter()
                    if validation and self.step == steps and not self._validated(steps):
                        self._record_validation(validation, sample, last=True)
                    if self.checkpoint:
                        self.save()

            self.choose_team(batches, steps).run(self.optimizer, train)
        self.interrupted = self.step < steps
        return self.history

    def _ahead(self, batches, steps):
        """At most the next three batches: one of them may be the last of an epoch, which may be small."""
        return (batches.batch(step) for step in range(self.step, min(self.step + 3, steps)))

    @contextmanager
    def _sharing(self, team, batches):
        """Inside, this process is a member of the team."""
        alone, self._share = self._share, Share(self.model, self.objective, team)
        try:
            with self._share.taken(batches, self.step):
                yield
        finally:
            self._share = alone

    def _time_step(self, batches, team):
        """The seconds that a step takes with a team: the median of a few steps that change only the gradients, which
        every step clears."""
        generators = self._generators()
        states = [generator.bit_generator.state for generator in generators]
        carried = {name: array.copy() for name, array in self.objective.state_dict().items()} if self._carries else {}

        def rehearse(member):
            seconds = []
            with self._sharing(member, batches):
                batch = batches.batch(self.step)
                while len(seconds) < 2 or (len(seconds) < MOST_REHEARSALS and sum(seconds) < REHEARSAL_SECONDS):
                    started = time.perf_counter()
                    self.optimizer.zero_grad()
                    part, share = self._share.of(batch)
                    self.objective.forward(part)
                    self.objective.backward(share)
                    member.total(0.0)
                    member.add_gradients(self.optimizer)
                    member.updated()
                    seconds += member.total(time.perf_counter() - started)  # the same for all: they stop together
            return statistics.median(seconds[1:]) / member.size  # the first step warms up

        try:
            self.model.train()
            return team.run(self.optimizer, rehearse)
        finally:
            for generator, state in zip(generators, states, strict=True):
                generator.bit_generator.state = state
            if self._carries:
                self.objective.load_state_dict(carried)

    def _one_step(self, batch, due=False):
        """->  loss and number of tokens of the whole batch; due: whether it is time to save, as this member sees it"""
        number, team = self.step + 1, self._share.team
        self.optimizer.zero_grad()
        part, share = self._share.of(batch)
        loss, tokens = self.objective.forward(part)
        self.objective.backward(share)  # the loss is the mean over the tokens of all members
        asked = self._asked_to_stop()
        loss, tokens, asked_to_stop, due = team.total(loss * share, tokens if share else 0, asked, due)
        if not math.isfinite(loss):
            raise self._diverged(f"the loss is {loss}", number)
        own = team.add_gradients(self.optimizer)
        if self.clip_norm is not None:
            norm = clip_arrays([self.optimizer.grad[own]], self.clip_norm, team.total_of_parts)
            if not math.isfinite(norm):
                raise self._diverged(f"the norm of the gradient is {norm}", number)
        if self.schedule is not None:
            self.optimizer.lr = self.schedule(number)
        self.optimizer.step(own)
        team.updated()
        self._record.append(loss, self.optimizer.lr)
        self._stop, self._save = bool(asked_to_stop), bool(due)
        return loss, tokens

    def _record_validation(self, validation, sample, last=False):
        """Measure the loss on the sample, or at the end on all of the validation data."""
        some = sample is not None and len(sample) < len(validation)
        loss = self.validate(sample if some and not last else validation)
        if not math.isfinite(loss):
            raise self._diverged(f"the validation loss is {loss}", self.step)
        self.history.validation.append((self.step, loss))
        if self.best:
            self.best.offer(self.step, self.validate(sample) if some and last else loss)

    def _validated(self, step):
        return [done for done, _ in self.history.validation[-1:]] == [step]

    def _diverged(self, what, number):
        saved = self.checkpoint and Path(self.checkpoint).exists()
        kept = f"; the checkpoint of an earlier step is untouched: {self.checkpoint}" if saved else ""
        return TrainingError(f"{what} at step {number}: try a smaller learning rate{kept}")

    def validate(self, batches):
        """The mean loss per token over all batches, in eval mode."""
        nats, tokens = 0.0, 0
        with self.model.evaluating():
            for batch in batches:
                part, share = self._share.of(batch)
                loss, counted = self.objective.forward(part)
                if share:
                    nats, tokens = nats + loss * counted, tokens + counted
        nats, tokens, asked_to_stop = self._share.team.total(nats, tokens, self._asked_to_stop())
        self._stop = bool(asked_to_stop)
        return nats / max(1, tokens)

    # --- exact resume --------------------------------------------------------------------------------------------

    def save(self):
        """Write the checkpoint atomically. If a parameter is not finite, raise TrainingError and write nothing.

        If several processes train, all of them must call this; the first one writes.
        """
        carried = self._share.all_carried()
        leads = self._share.team.rank == 0
        if leads and not np.isfinite(self.optimizer.data).all():
            raise self._diverged("a parameter is not finite", self.step)
        checksum = self._record.save(self.checkpoint, write=leads)
        if not leads:
            return
        tensors = {
            **(self.best.tensors(self.step) if self.best else model_tensors(self.model)),
            **{f"optimizer.{name}": array for name, array in self.optimizer.state_dict().items()},
            **{f"objective.{name}": array for name, array in carried.items()},
            "history.validation": np.array(self.history.validation, np.float64).reshape(-1, 2),
        }
        header = {
            **self.header,
            **model_header(self.model),
            **(self.best.header() if self.best else {}),
            "step": self.step,
            "seconds": self.history.seconds,
            "history": checksum,
            "random_states": [generator.bit_generator.state for generator in self._generators()],
        }
        save_checkpoint(self.checkpoint, tensors, header)

    def resume(self):
        """Continue from the checkpoint: the losses are then the same as without the interruption, bit for bit.

        Raises FileNotFoundError or ValueError, with nothing changed, if the file is missing, damaged or does not fit.
        """
        tensors, header = load_checkpoint(self.checkpoint)
        own = model_header(self.model)
        if header.get("model") != own["model"] or header.get("config") != own["config"]:
            raise ValueError(f"{self.checkpoint} belongs to another model: {_differences(header, own)}")
        other = [name for name, value in self.header.items() if header.get(name, value) != value]
        if other:
            raise ValueError(
                f"{self.checkpoint} belongs to another run: its {' and '.join(other)} differs from the one given here"
            )
        try:
            generators, states = self._generators(), header["random_states"]
            history, record = read_history(self.checkpoint, tensors, header)
        except KeyError as error:
            raise ValueError(f"{self.checkpoint} is not a checkpoint to resume from: {error} is missing") from None
        except TypeError as error:
            raise ValueError(f"{self.checkpoint} is damaged: {error}") from None
        if not isinstance(states, list) or len(generators) != len(states):
            found = len(states) if isinstance(states, list) else "no"
            raise ValueError(f"{self.checkpoint} has {found} random states, the model has {len(generators)}")
        try:
            for generator, state in zip(generators, states, strict=True):
                type(generator.bit_generator)().state = state
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self.checkpoint} has a damaged random state: {error}") from None
        averages, carried = (_with_prefix(prefix, tensors) for prefix in ("optimizer.", "objective."))
        last = LAST if _with_prefix(LAST, tensors) else "model."
        best = _with_prefix("model.", tensors) if last == LAST else {}
        try:
            self.optimizer.check_state(averages)
        except ValueError as error:
            raise ValueError(f"{self.checkpoint} does not fit the optimizer: {error}") from None
        if self._carries:
            try:
                self.objective.check_state(carried)
            except ValueError as error:
                raise ValueError(f"{self.checkpoint} does not fit the objective: {error}") from None
        try:
            Best(self.model).check(header, best)
        except ValueError as error:
            raise ValueError(f"{self.checkpoint} is damaged: {error}") from None
        load_model_tensors(self.model, tensors, self.checkpoint, last)  # the last step that can fail
        self.optimizer.load_state_dict(averages)
        if self._carries:
            self.objective.load_state_dict(carried)
        for generator, state in zip(generators, states, strict=True):
            generator.bit_generator.state = state
        self.history, self._record = history, record
        if self.best:
            self.best.restore(header, best)

    @property
    def _carries(self):
        """Whether the objective carries a state from step to step."""
        return hasattr(self.objective, "state_dict")

    def _generators(self):
        """The distinct random generators in the model, which dropout draws from."""
        found = {id(m.rng): m.rng for _, m in self.model.named_modules() if hasattr(m, "rng")}
        return list(found.values())

    # --- bar and Ctrl-C ------------------------------------------------------------------------------------------

    def _bar(self, steps, progress):
        if not progress:
            return _NoBar()
        from tqdm import tqdm  # here, because `import transformer_np` loads NumPy alone

        return tqdm(
            total=steps,
            initial=self.step,
            desc="training",
            unit="step",
            # few lines in a log file, unless tqdm's own variable says otherwise
            mininterval=0.2 if sys.stderr.isatty() else float(os.environ.get("TQDM_MININTERVAL", 5)),
            dynamic_ncols=True,
        )

    @contextmanager
    def _stopping_softly(self):
        """Inside the block, the first Ctrl-C, SIGTERM or SIGHUP only sets a flag, so that no step is cut short. A
        second signal has its usual effect."""
        asked = threading.Event()
        self._asked_to_stop = asked.is_set
        if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
            yield
            return

        def on_interrupt(*_):
            asked.set()
            restore()

        def restore():
            for number, handler in before.items():
                signal.signal(number, handler)

        heard = [s for s in STOP_SIGNALS if s == signal.SIGINT or signal.getsignal(s) != signal.SIG_IGN]  # nohup
        before = {number: signal.signal(number, on_interrupt) for number in heard}
        try:
            yield
        finally:
            restore()


class _NoBar(nullcontext):
    """A bar that shows nothing. (tqdm's own silent bar takes locks, which a dying worker could leave locked.)"""

    def __enter__(self):
        return self

    def set_postfix_str(self, *_, **__):
        pass

    def update(self):
        pass


def _with_prefix(prefix, tensors):
    """The tensors whose names begin with the prefix, by name without it."""
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}


def _due(step, every):
    return bool(every) and step % every == 0


def _differences(header, own):
    """The differences between two models' headers, for an error message."""
    if header.get("model") != own["model"]:
        return f"a {header.get('model')}, not a {own['model']}"
    theirs = header.get("config")
    if not isinstance(theirs, dict):
        return f"its configuration is {short(theirs)}"
    return ", ".join(
        f"{name} {short(theirs.get(name))}, not {value!r}"
        for name, value in own["config"].items()
        if theirs.get(name) != value
    )
