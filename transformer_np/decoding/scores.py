"""The scores of the next token: their logarithms, and the tokens that are never chosen."""

import numpy as np

from ..support.checks import as_float_array, as_text_ids, check_flag


class Excluding:
    """A model for decoding that never chooses some tokens, such as <unk>. The log p of all other tokens is unchanged.

        greedy_decode(Excluding(model, [UNK]), src)

    It works with all functions of `decoding`. All other attributes and calls are those of the model, which may exclude
    other tokens itself.

    padded: whether ids of an encoder–decoder's source that equal pad_id are padding; if not, it has none
    """

    def __init__(self, model, ids, padded=True):
        check_flag("padded", padded)
        size = getattr(model.config, "tgt_vocab_size", None) or model.config.vocab_size
        ids = as_text_ids(ids, "ids", size).tolist()
        self.model, self.excluded, self.padded = model, [*getattr(model, "excluded", []), *ids], padded
        if len(set(self.excluded)) == size:
            raise ValueError(f"ids excludes all {size} tokens: one must be left to choose")

    def encode(self, src):
        return self.model.encode(src, **self._padding(src))

    def decode(self, tgt_in, memory, src, cache=None):
        return self.model.decode(tgt_in, memory, src, cache, **self._padding(src))

    def _padding(self, src):
        return {} if self.padded else {"padding": np.zeros(np.shape(src), bool)}

    def __getattr__(self, name):
        return getattr(self.model, name)

    def __call__(self, *args, **kwargs):
        return self.model(*args, **kwargs)


def exclude(model, scores):
    """The scores (B, V) of the next token, with −∞ for the tokens that the model excludes."""
    excluded = getattr(model, "excluded", [])
    if excluded:
        scores = scores.copy()
        scores[:, excluded] = -np.inf
    return scores


def finite(logits, step=None):
    """The logits (..., V); ValueError if a row has no token to choose. A single −inf marks an excluded token."""
    if not np.isfinite(logits.max(axis=-1)).all():  # NaN is larger than any number here
        where = "" if step is None else f" of step {step}"
        raise ValueError(f"the logits{where} are not finite: a weight of the model is not, or its values overflow")
    return logits


def log_softmax(logits):
    """log p over the last axis, without the underflow of log(softmax)."""
    logits = as_float_array(logits, "logits")
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
