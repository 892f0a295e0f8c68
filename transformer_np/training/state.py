"""All that a training run changes, which is all that a checkpoint holds."""

from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path

import numpy as np

from ..support.checks import refusing, short
from .best import LAST, Best
from .checkpoint import load_checkpoint, load_model_tensors, model_header, model_tensors, save_checkpoint
from .history import Record, read_history


class TrainingError(RuntimeError):
    """The training run cannot continue: the loss, the gradient or a parameter is not finite."""


def diverged(what, step, checkpoint):
    kept = f"; the checkpoint of an earlier step is untouched: {checkpoint}"
    kept = kept if checkpoint and Path(checkpoint).exists() else ""
    return TrainingError(f"{what} at step {step}: try a smaller learning rate{kept}")


class State:
    """Model, optimizer, random generators, what the objective carries, the best weights, and the record of the steps.

    keep_best: as in the Trainer;  header: JSON data to store in the checkpoint
    """

    def __init__(self, model, optimizer, objective, keep_best, header):
        self.model, self.optimizer, self.objective, self.header = model, optimizer, objective, header
        self.best, self._keep_best = Best(model) if keep_best else None, keep_best
        self.record = Record()
        self.history = self.record.history()

    @property
    def step(self):
        return len(self.record)

    @property
    def carries(self):
        """Whether the objective carries a state from step to step."""
        return hasattr(self.objective, "state_dict")

    @contextmanager
    def restored(self):
        """After the block, the generators and what the objective carries are as they were before."""
        generators = self.model.generators()
        states = [generator.bit_generator.state for generator in generators]
        carried = {name: array.copy() for name, array in self.objective.state_dict().items()} if self.carries else {}
        try:
            yield
        finally:
            for generator, state in zip(generators, states, strict=True):
                generator.bit_generator.state = state
            if self.carries:
                self.objective.load_state_dict(carried)

    def save(self, path, share):
        """Write the checkpoint atomically. If a parameter is not finite, raise TrainingError and write nothing.

        If several processes train, all of them must call this; the first one writes.
        """
        carried = share.all_carried()
        share.team.share_averages(self.optimizer)
        leads = share.team.rank == 0
        if leads and not np.isfinite(self.optimizer.data).all():
            raise diverged("a parameter is not finite", self.step, path)
        checksum = self.record.save(path, write=leads)
        if not leads:
            return
        tensors = {
            **(self.best.tensors(self.step) if self.best else model_tensors(self.model)),
            **{f"optimizer.{name}": array for name, array in self.optimizer.state_dict().items()},
            **{f"objective.{name}": array for name, array in carried.items()},
            "history.validation": np.array(self.history.validation, np.float64).reshape(-1, 2),
        }
        header = {
            **self.header, **model_header(self.model), **(self.best.header() if self.best else {}), "step": self.step,
            "seconds": self.history.seconds, "history": checksum, "optimizer": type(self.optimizer).__name__,
            "random_states": [generator.bit_generator.state for generator in self.model.generators()],
        }  # fmt: skip
        save_checkpoint(path, tensors, header)

    def load(self, path):
        """Continue from the checkpoint: the losses are then the same as without the interruption, bit for bit.

        Raises FileNotFoundError or ValueError, with nothing changed, if the file is missing, damaged or does not fit.
        """
        tensors, header = load_checkpoint(path)
        own = model_header(self.model)
        if own["config"] and isinstance(header.get("config"), dict):
            # a field that is newer than the checkpoint has its default
            config = {f.name: f.default for f in fields(self.model.config) if f.default is not MISSING}
            header["config"] = config | header["config"]
        if header.get("model") != own["model"] or header.get("config") != own["config"]:
            raise ValueError(f"{path} belongs to another model: {_differences(header, own)}")
        known = self.header.items()
        if other := [name for name, value in known if _unplaced(header.get(name, value)) != _unplaced(value)]:
            differing = f"its {' and '.join(other)} differs from the one given here"
            raise ValueError(f"{path} belongs to another run: {differing}")
        optimizer = type(self.optimizer).__name__
        if (was := header.get("optimizer", optimizer)) != optimizer:  # other classes have averages of the same names
            raise ValueError(f"{path} belongs to another run: its optimizer is {was}, not {optimizer}")
        try:
            generators, states = self.model.generators(), header["random_states"]
            history, record = read_history(path, tensors, header)
        except KeyError as error:
            raise ValueError(f"{path} cannot be resumed: {error} is missing, as in a merged run") from None
        except TypeError as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        if not isinstance(states, list) or len(generators) != len(states):
            found = len(states) if isinstance(states, list) else "no"
            raise ValueError(f"{path} has {found} random states, the model has {len(generators)}")
        with refusing(f"{path} has a damaged random state", (KeyError, TypeError, ValueError)):
            for generator, state in zip(generators, states, strict=True):
                type(generator.bit_generator)().state = state
        averages, carried = (_with_prefix(prefix, tensors) for prefix in ("optimizer.", "objective."))
        last = LAST if _with_prefix(LAST, tensors) else "model."
        best = _with_prefix("model.", tensors) if last == LAST else {}
        with refusing(f"{path} does not fit the optimizer"):
            self.optimizer.check_state(averages)
        if self.carries:
            with refusing(f"{path} does not fit the objective"):
                self.objective.check_state(carried)
        with refusing(f"{path} is damaged"):
            Best(self.model).check(header, best)
        load_model_tensors(self.model, tensors, path, last)  # the last step that can fail
        self.optimizer.load_state_dict(averages)
        if self.carries:
            self.objective.load_state_dict(carried)
        for generator, state in zip(generators, states, strict=True):
            generator.bit_generator.state = state
        self.history, self.record = history, record
        if self._keep_best is None:
            self.best = Best(self.model) if "best" in header else None
        if self.best:
            self.best.restore(header, best)


def _with_prefix(prefix, tensors):
    """The tensors whose names begin with the prefix, by name without it."""
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}


def _unplaced(value):
    """An entry of a header without the folder of its files, which may have moved."""
    return {key: part for key, part in value.items() if key != "folder"} if isinstance(value, dict) else value


def _differences(header, own):
    """The differences between two models' headers, for an error message."""
    if header.get("model") != own["model"]:
        return f"a {header.get('model')}, not a {own['model']}"
    theirs = header.get("config")
    if not own["config"] or not isinstance(theirs, dict):
        return f"its configuration is {short(theirs)}"
    return ", ".join(
        f"{name} {short(theirs.get(name))}, not {value!r}"
        for name, value in own["config"].items()
        if theirs.get(name) != value
    )
