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
