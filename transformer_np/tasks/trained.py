"""The result of a training run: a model with its tokenizers, from the finished run or from its folder."""

from math import exp
from pathlib import Path

import numpy as np

from ..data import PAD, UNK, Seen, pad_batch
from ..pretrained.folder import inputs
from ..support.checks import refusing
from . import runs


class Trained:
    """The base of what a task's model is used with, such as a Translator.

    task: the Task, which sets this attribute of its `Result`
    seen: the data.Seen of its training texts
    reader, writer: the tokenizers of the texts that it reads and of those that it writes
    labels: the names of the classes of a text, if it has such
    mask: the id of a hidden token, if it has one
    reads: the part of a text that is too long that it reads: its "beginning" or its "end"
    unit: its loss is in nats per token, text or pair
    """

    task, seen, labels, mask, reads, unit = None, Seen(), None, None, "beginning", "token"

    reader = property(lambda self: self.tokenizer)
    writer = property(lambda self: self.reader)

    def inputs(self, text):
        """The arguments of the model for a text; of an encoder–decoder those of its encoder."""
        return (np.atleast_2d(self.encode(text)),)

    def left_out(self, text):
        """The number of tokens of a text that the model does not read, because it is too long."""
        return 0

    def plain(self, text):
        """The text without the signs for what is hidden in it."""
        return text

    @classmethod
    def of(cls, run):
        """From a finished training run."""
        return cls._known(run.setup.model, run.tokenizers, run.options, run.setup.facts)

    @classmethod
    def load(cls, folder):
        """From the folder of a run; FileNotFoundError or ValueError if it holds no usable model."""
        description, options, tokenizers = cls.task().read(folder)
        model = runs.load_run_model(folder, tokenizers)
        with refusing(f"{Path(folder) / runs.DESCRIPTION} is damaged"):
            return cls._known(model, tokenizers, options, description)

    def evaluate(self, path):
        """What the model makes of a file of the form that its task trains on  ->  {name: number}, such as the loss in
        nats; shares are in [0, 1]. Raises ValueError for a file without examples, and for a model that has no measure.
        """
        raise ValueError(f"a run of the kind {self.task.kind!r} has no measure for a file")

    @classmethod
    def _known(cls, model, tokenizers, options, facts):
        """As `_made`, with what it has seen, which older runs do not say."""
        made = cls._made(model, tokenizers, options, facts)
        if "seen" in facts:
            made.seen = Seen.from_dict(facts["seen"])
        return made

    @classmethod
    def _made(cls, model, tokenizers, options, facts):
        """facts: those of the `Setup`. Raises ValueError if they do not fit the model."""
        return cls(model, *tokenizers.values())


class ReadsEncoded(Trained):
    """The base of those that read a text, or a pair of texts, as an Encoded: a subclass defines `read`."""

    def encode(self, text, second=None):
        """The ids of one text between [CLS] and [SEP], or of a pair; as `read`."""
        return self.read(text, second).ids

    def inputs(self, text):
        return tuple(inputs(self.read(text)).values())

    def left_out(self, text, second=None):
        """The number of tokens that are cut off, because the model reads at most so many."""
        return self.read(text, second).left_out


def mean_loss(objective, batches):
    """The mean loss of an objective per counted target of all batches, in eval mode."""
    nats, targets = 0.0, 0
    with objective.model.evaluating():
        for batch in batches:
            loss, counted = objective.forward(batch)
            nats, targets = nats + loss * counted, targets + counted
    return float(nats / max(1, targets))


def share_right(model, batches, hits):
    """The share of what a model gets right in all batches, in [0, 1], in eval mode; hits(batch): where it does."""
    with model.evaluating():
        return float(np.concatenate([hits(batch) for batch in batches]).mean())


def with_perplexity(loss):
    """{name: number} of a mean loss."""
    return {"loss (nats per token)": loss, "perplexity": exp(min(loss, 700.0))}


def unknown_tokens(pairs, unknown=(UNK,)):
    """{name: number} of the unknown ids in pairs of ids, which count in the loss like other tokens; empty without."""
    found = int(np.isin(np.concatenate([side for pair in pairs for side in pair]), unknown).sum())
    return {"unknown tokens": found} if found else {}


def in_batches(sources, written, batch_size, pad_id=PAD):
    """The texts that a model writes for lists of source ids, in their order; written(src, chosen): those for a batch
    (B, S) of the sources at these places, which have similar lengths. Raises ValueError without sources."""
    if not sources:
        raise ValueError("there are no examples to measure")
    order, texts = sorted(range(len(sources)), key=lambda i: len(sources[i])), {}
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        src = pad_batch([sources[i] for i in chosen], pad_id)
        texts |= zip(chosen, written(src, chosen), strict=True)
    return [texts[i] for i in range(len(sources))]


def share_equal(outputs, targets):
    """The share of outputs that are the target, in [0, 1]."""
    return sum(output == target for output, target in zip(outputs, targets, strict=True)) / len(targets)
