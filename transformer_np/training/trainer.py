"""The training loop."""

import json
import math
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from ..module import Module
from ..support.checks import as_list, check_at_least, check_flag, check_has, check_kind, check_number, short
from ..support.processes import stopping_softly
from ..support.progress import training_bar
from .choice import LEAST_TO_MEASURE, seconds_per_step, team_of
from .optim import clip_arrays
from .share import Share, most_rows
from .state import State, diverged
from .state import TrainingError as TrainingError


class Trainer:
    """The training loop: forward, backward, clip, update; it also validates, saves and resumes.

        trainer = Trainer(model, Adam(model.parameters()), TeacherForcing(model, label_smoothing=0.1),
                          schedule=lambda step: noam_schedule(step, d_model=64, warmup=400), clip_norm=1.0,
                          checkpoint="run/checkpoint.safetensors")
        trainer.fit(batches, steps=1000, validation=list(held_out.in_order()), validate_every=200)

    optimizer: an Optimizer of the model's parameters; one of your own is a subclass that defines _update(p, g, …)
    objective: .forward(batch) -> loss, number of tokens, and .backward(dloss), such as TeacherForcing. If it carries a
        state from step to step, the checkpoint includes it: .state_dict() -> {name: array}, .check_state(state),
        .load_state_dict(state)
    schedule: step, from 1 -> learning rate; without it the optimizer keeps its own
    clip_norm: the largest norm of all gradients together
    checkpoint: path of the file to save to and to resume from; it holds model, optimizer and random states. A file
        beside it, with the ending .history, has the loss and the learning rate of every step. `fit` makes the folder
    header: a dictionary of JSON data to store in the checkpoint
    workers: how many processes share each batch; "auto" is one per core, or one if measured steps are no faster with
        several; "mpi" is all processes that mpiexec started; a Team (see `choice`) is used as it is. The losses are the
        same as with one process except for rounding, including dropout. With several processes, a batch must be a
        dataclass of arrays and the objective needs .count(batch); an objective with a state also needs
        .state_of_rows(state, rows) and .join_states(states)
    tokens_at_once: the most tokens of a batch that a process computes at once; the gradients of such pieces are added,
        with the same result except for rounding (gradient accumulation). A large batch then needs less memory, and less
        time if the values of a piece stay in the cache. Batch and objective must be as for several workers
    keep_best: keep the weights with the lowest validation loss as well. The checkpoint has both: `load_model` takes the
        best weights, `resume` continues from the last weights. Default: only if the resumed checkpoint has them

    state: the State that a checkpoint holds; `history` and `best` are parts of it
    team: the Team of the last `fit`; team.size is its number of processes
    best: the Best weights if they are kept, else None
    """

    def __init__(
        self, model, optimizer, objective, schedule=None, clip_norm=None, checkpoint=None, header=None, workers=1,
        keep_best=None, tokens_at_once=None,
    ):  # fmt: skip
        check_kind("model", model, Module)
        model.generators()  # whose states are saved: what is none is refused here, not after the training
        parts = "parameters", "data", "grad", "step"  # not its class, which `using` exchanges
        if not all(hasattr(optimizer, name) for name in parts):
            own = "one of your own is a subclass of training.Optimizer"
            raise TypeError(f"optimizer must be an Optimizer such as Adam, got {short(optimizer)}; {own}")
        check_has("objective", objective, "forward", "backward")
        if schedule is not None and not callable(schedule):
            raise TypeError(f"schedule must be a function from a step to a learning rate, got {short(schedule)}")
        if clip_norm is not None:
            check_number("clip_norm", clip_norm, "(0, ∞)")
        if keep_best is not None:
            check_flag("keep_best", keep_best)
        if tokens_at_once is not None:
            check_at_least("tokens_at_once", tokens_at_once, 1)
        check_kind("header", header or {}, dict)
        try:
            json.dumps(header)
        except (TypeError, ValueError) as error:  # here, not after the training
            raise TypeError(f"header must be JSON data: {error}") from None
        self.model, self.optimizer, self.objective = model, optimizer, objective
        self.schedule, self.clip_norm, self.checkpoint = schedule, clip_norm, checkpoint
        self.state = State(model, optimizer, objective, keep_best, header or {})
        self.interrupted = False
        self.team = self._chosen = team_of(workers)
        self._tokens_at_once = tokens_at_once
        self._share = Share(model, objective, None, tokens_at_once)  # of this process; in `fit` of one of several
        self._asked_to_stop, self._stop = lambda: False, False  # in this process, in any of the team
        self._save = False  # whether the leader of the team has found that it is time to save

    history = property(lambda self: self.state.history)
    best = property(lambda self: self.state.best)
    step = property(lambda self: self.state.step, doc="The number of steps done so far.")

    @property
    def leads(self):
        """Whether this process shows progress, measures and saves: one of the processes of mpiexec, or the only one."""
        return self.team.rank == 0

    def fit(
        self, batches, steps, validation=None, validate_every=None, checkpoint_every=None, progress=True, sample=None,
        save_seconds=None,
    ):  # fmt: skip
        """Train until `steps` steps are done in total, including earlier ones; step n uses `batches.batch(n − 1)`.

        batches: .batch(number) -> the batch of that step
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
        check_has("batches", batches, "batch")
        check_at_least("steps", steps, 0)
        for name, every in (("validate_every", validate_every), ("checkpoint_every", checkpoint_every)):
            check_at_least(name, every or 0, 0)
        check_number("save_seconds", save_seconds or 0, "[0, ∞)")
        validation, sample = _batches("validation", validation), _batches("sample", sample)
        asked = getattr(getattr(self.objective, "model", None), "parameters", self.model.parameters)()
        for name, parameters in (("optimizer", self.optimizer.parameters), ("objective", asked)):
            if not {id(p) for p in parameters} & {id(p) for p in self.model.parameters()}:
                raise ValueError(f"{name} has no parameter of this model, which would learn nothing: make a new one")
        if self.checkpoint and self.leads:
            Path(self.checkpoint).parent.mkdir(parents=True, exist_ok=True)
        self.interrupted = self._stop = False
        self.model.train(check=self.model._seals is not None)
        quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # divergence raises TrainingError instead
        with quiet, stopping_softly() as self._asked_to_stop:
            if self.best and validation and self.step and not self._validated(steps):  # the sample may be another now
                self.best.measure(lambda: self.validate(sample or validation))

            team = self.choose_team(batches, steps)
            due = {"validate": validate_every or steps, "save": checkpoint_every or steps, "seconds": save_seconds}
            team.run(self.optimizer, partial(self._train, batches, steps, validation, sample, due, progress))
        self.interrupted = self.step < steps
        return self.history

    def _train(self, batches, steps, validation, sample, due, progress, member):
        """The loop of one member of the team. due: the numbers of steps, and of seconds, between what is to be done."""
        saved, bar = time.perf_counter(), training_bar(steps, self.step, progress and member.rank == 0)
        with self.sharing(member, batches), bar as show:
            while self.step < steps and not self._stop:
                started = time.perf_counter()
                late = due["seconds"] is not None and started - saved >= due["seconds"]
                loss, tokens = self._one_step(batches.batch(self.step), late and member.rank == 0)
                seconds = time.perf_counter() - started
                self.history.seconds += seconds
                show(f"loss {loss:.3f}, {tokens / seconds:,.0f} tokens/s")
                if self.step == steps:
                    break
                if validation and self.step % due["validate"] == 0:
                    with show.while_("validating"):
                        self._record_validation(validation, sample)
                if self.checkpoint and (self._save or self.step % due["save"] == 0):
                    self.save()
                    saved = time.perf_counter()
            if validation and self.step == steps and not self._validated(steps):
                self._record_validation(validation, sample, last=True)
            if self.checkpoint:
                self.save()

    def _one_step(self, batch, due=False):
        """->  loss and number of tokens of the whole batch; due: whether it is time to save, as this member sees it"""
        number, team = self.step + 1, self._share.team
        self.optimizer.zero_grad()
        loss, tokens = 0.0, 0
        for part, share in self._share.pieces(batch):
            of_part, counted = self.objective.forward(part)
            self.objective.backward(share)  # the loss is the mean over the tokens of all pieces of all members
            loss, tokens = loss + of_part * share, tokens + (counted if share else 0)
        loss, tokens, asked_to_stop, due = team.total(loss, tokens, self._asked_to_stop(), due)
        self._check_finite("the loss", loss, number)
        own = team.add_gradients(self.optimizer)
        if self.clip_norm is not None:
            norm = clip_arrays([self.optimizer.grad[own]], self.clip_norm, lambda part: team.total(part)[0])
            self._check_finite("the norm of the gradient", norm, number)
        if self.schedule is not None:
            rate = self.schedule(number)
            check_number(f"the learning rate of the schedule for step {number}", rate, "[0, ∞)")
            self.optimizer.lr = rate
        self.optimizer.step(own)
        team.updated(self.optimizer)
        self.state.record.append(loss, self.optimizer.lr)
        self._stop, self._save = bool(asked_to_stop), bool(due)
        return loss, tokens

    def _record_validation(self, validation, sample, last=False):
        """Measure the loss on the sample, or at the end on all of the validation data."""
        some = sample and len(sample) < len(validation)
        loss = self.validate(sample if some and not last else validation)
        self._check_finite("the validation loss", loss, self.step)
        self.history.validation.append((self.step, loss))
        if self.best:
            self.best.offer(self.step, self.validate(sample) if some and last else loss)

    def _validated(self, step):
        return [done for done, _ in self.history.validation[-1:]] == [step]

    def _check_finite(self, what, number, step):
        if not math.isfinite(number):
            raise diverged(f"{what} is {number}", step, self.checkpoint)

    def validate(self, batches):
        """The mean loss per token over all batches, in eval mode. ValueError if there is none."""
        nats, tokens, batch = 0.0, 0, None
        with self.model.evaluating():
            for batch in batches:
                for part, share in self._share.pieces(batch):
                    loss, counted = self.objective.forward(part)
                    if share:
                        nats, tokens = nats + loss * counted, tokens + counted
        if batch is None:
            raise ValueError("batches is empty: there is no loss to measure")
        nats, tokens, asked_to_stop = self._share.team.total(nats, tokens, self._asked_to_stop())
        self._stop = bool(asked_to_stop)
        return nats / max(1, tokens)

    def save(self):
        """Write the checkpoint: see State.save."""
        self.state.save(self.checkpoint, self._share)

    def resume(self):
        """Continue from the checkpoint: see State.load."""
        if self.checkpoint is None:
            raise ValueError("there is nothing to resume from: pass checkpoint=… to the Trainer")
        self.state.load(self.checkpoint)

    # --- several processes ---------------------------------------------------------------------------------------

    def choose_team(self, batches, steps):
        """Decide how many processes share these batches, if `workers` left it open  ->  the Team.

        If enough steps remain, a few are timed with one process and with several. These leave no trace.
        """
        measure = partial(seconds_per_step, self, batches) if steps - self.step >= LEAST_TO_MEASURE else None
        rows = partial(most_rows, batches, self.step, steps)
        self.team = self._chosen.for_batches(rows, measure)
        if self.team.size == 1 and self.team.reason:
            self.optimizer.move(np.zeros)  # out of the shared memory, whose small pages are slower
            self.optimizer.move_gradients(np.zeros_like(self.optimizer.grad))
        return self.team

    @contextmanager
    def sharing(self, member, batches):
        """Inside, this process is a member of a team; yields its Share."""
        alone, self._share = self._share, Share(self.model, self.objective, member, self._tokens_at_once)
        try:
            with self._share.taken(batches, self.step):
                yield self._share
        finally:
            self._share = alone


def _batches(name, batches):
    """The batches, or None, in what can be read more than once, which an iterator cannot be."""
    return batches if batches is None or hasattr(batches, "__len__") else as_list(name, batches, "batches")
