"""The record of a training run: loss and learning rate of every step. It is written to a file beside the checkpoint, so
that neither memory nor checkpoints grow with the number of steps."""

import os
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import numpy as np

from ..support.files import naming
from .checkpoint import load_checkpoint

NUMBERS = np.dtype("<f8")
ROW = 2 * NUMBERS.itemsize  # bytes of a step: its loss, its learning rate
CHUNK = 1 << 16  # rows read at once


@dataclass
class History:
    """The record of a training run: loss (nats per token) and learning rate of every step, (step, loss) of every
    validation, and the seconds spent in steps."""

    losses: list = field(default_factory=list)
    learning_rates: list = field(default_factory=list)
    validation: list = field(default_factory=list)
    seconds: float = 0.0

    @classmethod
    def load(cls, path):
        """The history in a checkpoint, such as runs/gpt-1/checkpoint.safetensors, and in the file beside it.

        Raises FileNotFoundError or ValueError if one of them is missing or damaged.
        """
        tensors, header = load_checkpoint(path, "history.")
        try:
            return read_history(path, tensors, header)[0]
        except KeyError as error:
            raise ValueError(f"{path} has no history: {error} is missing, as in a merged run") from None

    def __repr__(self):
        losses = self.losses
        steps = f"{len(losses)} steps in {self.seconds:.1f} s"
        loss = f", loss {losses[0]:.4f} → {losses[-1]:.4f}" if losses else ""
        validation = f", validation {self.validation[-1][1]:.4f}" if self.validation else ""
        return f"<History: {steps}{loss}{validation}>"


class Record:
    """The rows (loss, learning rate) of all steps: saved rows in a file, newer rows in memory.

    Rows are appended to the file and never changed. A checkpoint has their checksum. Rows in the file after its last
    step come from a process that died before the next checkpoint; the next `save` cuts them off.
    """

    def __init__(self, rows=()):
        self._path, self._saved, self._sum = None, 0, 0  # of the file: its path, its number of rows, their checksum
        self._rest = array("d", np.ravel(rows))

    def __len__(self):
        return self._saved + len(self._rest) // 2

    def append(self, loss, learning_rate):
        """Add a step."""
        self._rest.extend((loss, learning_rate))

    def rows(self, start, stop):
        """The rows of the steps start + 1 … stop, an array (stop − start, 2)."""
        count = max(0, min(stop, self._saved) - start)
        parts = [np.fromfile(self._path, NUMBERS, 2 * count, offset=ROW * start)] if count else []
        if count and len(parts[0]) != 2 * count:
            raise ValueError(f"{self._path} was changed during the training run: steps are missing")
        begin, end = (2 * max(0, place - self._saved) for place in (start, stop))
        return np.concatenate([*parts, np.array(self._rest[begin:end])]).reshape(-1, 2)

    def save(self, checkpoint, write=True):
        """Append the new rows to the file of this checkpoint and flush it to disk  ->  the checksum of all rows.

        write: False in a process that leaves the writing to another process
        """
        path = history_path(checkpoint)
        moved = path != self._path
        start, total = (0, 0) if moved else (self._saved, self._sum)
        new = self.rows(start, len(self)).astype(NUMBERS, copy=False).tobytes()
        if write:
            with naming(path), open(path, "r+b" if start else "wb") as file:
                file.seek(ROW * start)
                file.truncate()
                file.write(new)
                file.flush()
                os.fsync(file.fileno())
        self._path, self._saved, self._sum = path, len(self), crc32(new, total)
        self._rest = array("d")
        return self._sum

    @classmethod
    def load(cls, checkpoint, steps, checksum):
        """The record of a checkpoint with this number of steps. Raises FileNotFoundError, or ValueError if the rows of
        the file are not those of the checkpoint."""
        checkpoint, record = Path(checkpoint), cls()
        record._path, record._saved = history_path(checkpoint), steps
        if not record._path.is_file():
            raise FileNotFoundError(f"{record._path} is missing: copy it together with {checkpoint.name}")
        if record._path.stat().st_size < ROW * steps:
            raise ValueError(f"{record._path} is damaged: it has fewer steps than {checkpoint}")
        for start in range(0, steps, CHUNK):
            record._sum = crc32(record.rows(start, min(start + CHUNK, steps)).tobytes(), record._sum)
        if record._sum != checksum:
            raise ValueError(f"{record._path} is damaged: its losses are not those of {checkpoint}")
        return record

    def history(self, validation=(), seconds=0.0):
        """The History that reads from this record."""
        return Recorded(self, list(validation), seconds)


class Recorded(History):
    """The History of a Record, whose losses and learning rates are read when they are asked for, as lists."""

    def __init__(self, record, validation, seconds):
        self._record, self.validation, self.seconds = record, validation, seconds

    losses = property(lambda self: self._column(0))
    learning_rates = property(lambda self: self._column(1))

    def _column(self, number):
        return self._record.rows(0, len(self._record))[:, number].tolist()


def read_history(checkpoint, tensors, header):
    """The History and the Record of a checkpoint with these tensors and this header. Raises KeyError if an entry is
    missing, and the errors of Record.load."""
    if "history.losses" in tensors:  # from a version without a file beside the checkpoint
        record = Record(np.stack([tensors[f"history.{name}"] for name in ("losses", "learning_rates")], axis=1))
    else:
        record = Record.load(checkpoint, header["step"], header["history"])
    validation = [(int(step), float(loss)) for step, loss in tensors["history.validation"]]
    return record.history(validation, header["seconds"]), record


def history_path(checkpoint):
    """The file of the record that belongs to a checkpoint."""
    return Path(f"{str(checkpoint).removesuffix('.safetensors')}.history")  # rate_0.1 and rate_0.2 have two
