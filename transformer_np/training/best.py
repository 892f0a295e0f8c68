"""The weights with the lowest validation loss of a training run, kept beside those of the last step."""

import math

import numpy as np

PREFIX = "best."  # of their names in a checkpoint


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
            self.step, self.loss, self._weights = step, loss, self.model.state_dict()

    def put(self):
        """Put the best weights into the model  ->  the weights that it had, to put them back."""
        before = self.model.state_dict()
        if self._weights:
            self.model.load_state_dict(self._weights)
        return before

    def measure(self, validate):
        """Measure their loss with validate(), because later ones may be measured on other batches."""
        if self._weights:
            before = self.put()
            self.loss = validate()
            self.model.load_state_dict(before)

    # --- in a checkpoint -----------------------------------------------------------------------------------------

    def tensors(self, step):
        """{name: array} for a checkpoint of this step: empty if its own weights are the best."""
        if step == self.step:
            return {}
        return {PREFIX + name: values for name, values in self._weights.items()}

    def header(self):
        """JSON data for the header of a checkpoint."""
        return {"best": {"step": self.step, "loss": self.loss, "latest": self.latest}} if self._weights else {}

    def check(self, header, weights):
        """Raises ValueError if the header and the best weights of a checkpoint are not of this model; there may be
        none."""
        found = header.get("best", {"step": 0, "loss": 0.0, "latest": 0.0})
        own = {name: values.shape for name, values in self.model.named_parameters()}
        numbers = isinstance(found, dict) and [found.get(name) for name in ("step", "loss", "latest")]
        fits = numbers and all(type(number) in (int, float) for number in numbers)
        if not fits or (weights and {name: np.shape(values) for name, values in weights.items()} != own):
            raise ValueError("its best weights are not of this model")

    def restore(self, header, weights):
        """Continue from a checkpoint: its header and its best weights; none if those of its last step, which the model
        has now, are the best."""
        found = header.get("best")
        if found:
            self.step, self.loss, self.latest = found["step"], found["loss"], found["latest"]
            self._weights = weights or self.model.state_dict()
