"""What a model is trained for: from a batch to a loss, and from the loss back into the model."""

import numpy as np

from .. import functional as F


class Objective:
    """What all objectives share: a question to the model at some places of the batch, and the cross-entropy of its
    answers.

        loss = cross_entropy(logits(batch), targets(batch)),  not counted where the target is `ignore_index`

    A subclass says what the logits and the targets of a batch are.

    forward(batch)  ->  loss in nats per target that counts, number of those;    backward() goes on into the model
    """

    def __init__(self, model, ignore_index=None, label_smoothing=0.0):
        self.model, self.ignore_index, self.label_smoothing = model, ignore_index, label_smoothing

    def logits(self, batch):
        raise NotImplementedError(f"{type(self).__name__} does not say what its logits are")

    def targets(self, batch):
        return batch.targets

    def count(self, batch):
        """How many targets count."""
        targets = self.targets(batch)
        return targets.size if self.ignore_index is None else int(np.count_nonzero(targets != self.ignore_index))

    def forward(self, batch):
        self._how = {
            "targets": self.targets(batch),
            "ignore_index": self.ignore_index,
            "label_smoothing": self.label_smoothing if self.model.training else 0.0,
        }
        loss, self._probs = F.cross_entropy(self.logits(batch), **self._how)
        return loss, self.count(batch)

    def backward(self, dloss=1.0):
        self.model.backward(F.cross_entropy_backward(self._probs, **self._how, dloss=dloss))


class TeacherForcing(Objective):
    """The decoder is given the true beginning of the target and asked for the next token, everywhere at once.

    loss = cross_entropy(model(src, tgt_in), tgt_out),  padding not counted, smoothing only in training
    """

    def __init__(self, model, label_smoothing=0.0):
        super().__init__(model, model.config.pad_id, label_smoothing)

    def logits(self, batch):
        return self.model(batch.src, batch.tgt_in)  # (B, T, V)

    def targets(self, batch):
        return batch.tgt_out


class NextToken(Objective):
    """A decoder-only model is given a text and asked at every place for the token that follows.

    loss = cross_entropy(model(ids), targets),    targets[t] = ids[t + 1]
    """

    def logits(self, batch):
        return self.model(batch.ids)  # (B, T, V)


class Classification(Objective):
    """An encoder is given a text and asked for its class.

    loss = cross_entropy(model.classify(ids), labels)
    """

    def logits(self, batch):
        return self.model.classify(batch.ids)  # (B, C)

    def targets(self, batch):
        return batch.labels


class MaskedLanguageModel(Objective):
    """An encoder is given a text with holes and asked what was there (Devlin et al. 2019, §3.1).

    loss = cross_entropy(model.mlm_logits(ids), targets),  asked only where the target is not negative
    """

    def __init__(self, model):
        super().__init__(model, ignore_index=-1)

    def logits(self, batch):
        return self.model.mlm_logits(batch.ids, places=self._places(batch))  # (N, V)

    def targets(self, batch):
        return batch.targets[self._places(batch)]  # (N,)

    def _places(self, batch):
        places = batch.targets >= 0  # (B, S)
        if not places.any():  # in a few rows of a batch: the model answers at one place, and it does not count
            places[0, 0] = True
        return places


class NegativeSampling(Objective):
    """Word2Vec is given pairs of words and asked which word stood near, among some that were drawn.

    loss = negative_sampling_loss(center, context, negatives),  nats per pair
    """

    def count(self, batch):
        return len(batch.center)

    def forward(self, batch):
        return self.model(batch.center, batch.context, batch.negatives), self.count(batch)

    def backward(self, dloss=1.0):
        self.model.backward(dloss)
