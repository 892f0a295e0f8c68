"""What a model is trained for: from a batch to a loss, and from the loss back into the model."""

from .. import functional as F


class TeacherForcing:
    """The decoder is given the true beginning of the target and asked for the next token, everywhere at once.

        loss = cross_entropy(model(src, tgt_in), tgt_out),  padding not counted, smoothing only in training

    forward(batch)  ->  loss in nats per token, number of tokens that counted;    backward() goes on into the model
    """

    def __init__(self, model, label_smoothing=0.0):
        self.model = model
        self.label_smoothing = label_smoothing

    def forward(self, batch):
        logits = self.model(batch.src, batch.tgt_in)  # (B, T, V)
        self._how = {
            "targets": batch.tgt_out,
            "ignore_index": self.model.config.pad_id,
            "label_smoothing": self.label_smoothing if self.model.training else 0.0,
        }
        loss, self._probs = F.cross_entropy(logits, **self._how)
        return loss, int((batch.tgt_out != self.model.config.pad_id).sum())

    def backward(self):
        self.model.backward(F.cross_entropy_backward(self._probs, **self._how))


class NextToken:
    """A decoder-only model is given a text and asked at every place for the token that follows.

        loss = cross_entropy(model(ids), targets),    targets[t] = ids[t + 1]

    forward(batch)  ->  loss in nats per token, number of tokens;    backward() goes on into the model
    """

    def __init__(self, model):
        self.model = model

    def forward(self, batch):
        logits = self.model(batch.ids)  # (B, T, V)
        loss, self._probs = F.cross_entropy(logits, batch.targets)
        self._targets = batch.targets
        return loss, batch.targets.size

    def backward(self):
        self.model.backward(F.cross_entropy_backward(self._probs, self._targets))


class Classification:
    """An encoder is given a text and asked for its class.

        loss = cross_entropy(model.classify(ids), labels)

    forward(batch)  ->  loss in nats per text, number of texts;    backward() goes on into the model
    """

    def __init__(self, model):
        self.model = model

    def forward(self, batch):
        loss, self._probs = F.cross_entropy(self.model.classify(batch.ids), batch.labels)  # logits (B, C)
        self._labels = batch.labels
        return loss, len(batch.labels)

    def backward(self):
        self.model.backward(F.cross_entropy_backward(self._probs, self._labels))


class MaskedLanguageModel:
    """An encoder is given a text with holes and asked what was there (Devlin et al. 2019, §3.1).

        loss = cross_entropy(model.mlm_logits(ids), targets),  counted only where the target is not negative

    forward(batch)  ->  loss in nats per token asked for, number of those;    backward() goes on into the model
    """

    def __init__(self, model):
        self.model = model

    def forward(self, batch):
        places = batch.targets >= 0  # (B, S)
        self._targets = batch.targets[places]  # (N,)
        loss, self._probs = F.cross_entropy(self.model.mlm_logits(batch.ids, places=places), self._targets)
        return loss, len(self._targets)

    def backward(self):
        self.model.backward(F.cross_entropy_backward(self._probs, self._targets))
