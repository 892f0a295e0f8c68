"""The weights with the lowest validation loss of a training run, kept beside those of the last step.

A checkpoint has them as its model. If they are not the weights of the last step, it has those too, to resume from.
"""

import math

import numpy as np

from .checkpoint import model_tensors

LAST = "last."  # prefix of the last step's weights in a checkpoint whose model has the weights of another step


class Best:
    """The best weights so far.

    step, loss: the step with the lowest validation loss, and that loss; None and infinity before the first validation
    latest: the loss of the last validation, measured on the same batches
    """

    def __init__(self, model):
        self.model = model
        self.step, self.loss, self.latest = None, math.inf, math.inf
        self._weights = {}

    def offer(self, step, loss):
        """Keep the model's weights of this step if their loss is the lowest so far."""
        self.latest = loss
        if loss < self.loss:
            self.step, self.loss, self._weights = step, loss, self._learned()

    def _learned(self):
        return {name: parameter.data.copy() for name, parameter in self.model.learned().items()}

    def put(self):
        """Put the best weights into the model  ->  the weights that it had before, so that they can be restored."""
        before = self._learned()
        if self._weights:
            self.model.load_state_dict(self._weights)
        return before

    def measure(self, validate):
        """Measure the loss of the best weights with validate(): later losses may be measured on other batches."""
        if self._weights:
            before = self.put()
            self.loss = validate()
            self.model.load_state_dict(before)

    # --- in a checkpoint -----------------------------------------------------------------------------------------

    def tensors(self, step):
        """{name: array} of the weights for a checkpoint of this step, which the model has just done."""
        last = model_tensors(self.model)
        if not self._weights or step == self.step:
            return last
        best = {f"model.{name}": values for name, values in self._weights.items()}
        return {**best, **{name.replace("model.", LAST, 1): values for name, values in last.items()}}

    def header(self):
        """JSON data for the header of a checkpoint."""
        return {"best": {"step": self.step, "loss": self.loss, "latest": self.latest}} if self._weights else {}

    def check(self, header, weights):
        """Raises ValueError if the header or the best weights of a checkpoint do not belong to this model. Both may be
        missing."""
        found = header.get("best", {"step": 0, "loss": 0.0, "latest": 0.0})
        own = {name: values.shape for name, values in self.model.learned().items()}
        numbers = isinstance(found, dict) and [found.get(name) for name in ("step", "loss", "latest")]
        fits = numbers and all(type(number) in (int, float) for number in numbers)
        if not fits or (weights and {name: np.shape(values) for name, values in weights.items()} != own):
            raise ValueError("its best weights do not belong to this model")

    def restore(self, header, weights):
        """Continue from a checkpoint: its header and its best weights. There are none if the weights of its last step,
        which the model has now, are the best or the only ones."""
        found = header.get("best")
        if found:
            self.step, self.loss, self.latest = found["step"], found["loss"], found["latest"]
            self._weights = weights or self._learned()
