"""Training objectives: from a batch to a loss, and from the loss back into the model."""

import numpy as np

from .. import functional as F
from ..module import Module
from ..support.checks import MOST, check_at_least, check_has, check_kind, check_number


class Objective:
    """The base of all objectives: the cross-entropy of the model's predictions at some positions of a batch.

        loss = cross_entropy(logits(batch), targets(batch)),  not counted where the target is `ignore_index`

    A subclass defines the logits and the targets of a batch.

    forward(batch)  ->  loss in nats per counted target, number of counted targets;    backward() continues in the model
    """

    _last = None  # the probabilities of the last forward, and how its loss was computed

    def __init__(self, model, ignore_index=None, label_smoothing=0.0):
        check_kind("model", model, Module)
        check_number("label_smoothing", label_smoothing, "[0, 1]")
        if ignore_index is not None:
            check_at_least("ignore_index", ignore_index, -MOST)
        self.model, self.ignore_index, self.label_smoothing = model, ignore_index, label_smoothing

    def logits(self, batch):
        raise NotImplementedError(f"{type(self).__name__} does not define logits(batch)")

    def targets(self, batch):
        return batch.targets

    def count(self, batch):
        """The number of targets that count."""
        targets = self.targets(batch)
        return targets.size if self.ignore_index is None else int(np.count_nonzero(targets != self.ignore_index))

    def forward(self, batch):
        self._last = None  # until this forward has succeeded
        smoothing = self.label_smoothing if self.model.training else 0.0
        how = {"targets": self.targets(batch), "ignore_index": self.ignore_index, "label_smoothing": smoothing}
        loss, probs = F.cross_entropy(self.logits(batch), **how)
        self._last = probs, how
        return loss, self.count(batch)

    def backward(self, dloss=1.0):
        if self._last is None:
            raise RuntimeError(f"{type(self).__name__}.backward needs a forward before it")
        probs, how = self._last
        self.model.backward(F.cross_entropy_backward(probs, **how, dloss=dloss))


class TeacherForcing(Objective):
    """The decoder reads the true beginning of the target and predicts the next token, at all positions at once.

    loss = cross_entropy(model(src, tgt_in), tgt_out),  padding not counted, smoothing only in training mode
    """

    def __init__(self, model, label_smoothing=0.0):
        check_has("model", model, "config.pad_id")
        super().__init__(model, model.config.pad_id, label_smoothing)

    def logits(self, batch):
        return self.model(batch.src, batch.tgt_in)  # (B, T, V)

    def targets(self, batch):
        return batch.tgt_out


class NextToken(Objective):
    """A decoder-only model reads a text and predicts the next token at every position.

    loss = cross_entropy(model(ids), targets),    targets[t] = ids[t + 1]
    """

    def logits(self, batch):
        return self.model(batch.ids)  # (B, T, V)


class Classification(Objective):
    """An encoder reads a text and predicts its class.

    loss = cross_entropy(model.classify(ids, padding, segments), labels)
    """

    def logits(self, batch):
        how = {name: getattr(batch, name, None) for name in ("padding", "segments")}
        return self.model.classify(batch.ids, **how)  # (B, C)

    def targets(self, batch):
        return batch.labels


class MaskedLanguageModel(Objective):
    """An encoder reads a text with masked tokens and predicts them (Devlin et al. 2019, §3.1).

    loss = cross_entropy(model.mlm_logits(ids), targets),  only at positions whose target is not negative
    """

    def __init__(self, model):
        super().__init__(model, ignore_index=-1)

    def logits(self, batch):
        return self.model.mlm_logits(batch.ids, places=self._places(batch))  # (N, V)

    def targets(self, batch):
        return np.maximum(batch.targets[self._places(batch)], -1)  # (N,)

    def _places(self, batch):
        places = batch.targets >= 0  # (B, S)
        if not places.any():  # possible in a few rows: predict one position, which does not count
            places[0, 0] = True
        return places


class NegativeSampling(Objective):
    """Word2Vec reads pairs of words and distinguishes the context word from randomly drawn words.

    loss = negative_sampling_loss(center, context, negatives),  nats per pair
    """

    def count(self, batch):
        return len(batch.center)

    def forward(self, batch):
        return self.model(batch.center, batch.context, batch.negatives), self.count(batch)

    def backward(self, dloss=1.0):
        self.model.backward(dloss)
