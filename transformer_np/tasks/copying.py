"""Copying from an earlier segment: a task that only a model with a memory can solve."""

from dataclasses import dataclass

import numpy as np

from ..data.streams import Segment
from ..models import GPT, GPTConfig, TransformerXL, TransformerXLConfig
from ..support.checks import check_all_at_least, check_at_least
from ..training import Adam, NextToken, SegmentRecurrence, Trainer
from .trained import share_right

IGNORED = -1  # the target at positions that are not predicted


class CopyStreams:
    """Streams of segments, each with a random symbol first and a question last: which symbol was first `lag` segments
    ago? `batch(step)` for step = 0, 1, 2, …

        lag 2    C · · ?    A · · ?    D · · ?    B · · ?         · any symbol, at random
                                          C          A            the answer

    Ids 0 … symbols − 1 are the symbols, `symbols` is the question. A batch depends only on the sizes, seed and step.
    All streams start over after `segments` batches; the first `lag` segments have no answer. The segment itself tells
    nothing about the answer, so without a memory the best possible accuracy is 1/symbols.
    """

    def __init__(self, symbols=8, lag=2, segment_len=4, batch_size=32, segments=10, seed=0):
        for name, value, least in (("symbols", symbols, 2), ("lag", lag, 0), ("segment_len", segment_len, 2),
                                   ("batch_size", batch_size, 1), ("segments", segments, lag + 1)):  # fmt: skip
            check_at_least(name, value, least)
        self.symbols, self.lag, self.segment_len = symbols, lag, segment_len
        self.batch_size, self.segments, self.seed = batch_size, segments, seed
        self._current = (None, None)  # the cached round and its streams

    @property
    def vocab_size(self):
        return self.symbols + 1

    def batch(self, step):
        """The batch of a step, counted from 0."""
        check_at_least("step", step, 0)
        number, place = divmod(step, self.segments)
        if self._current[0] != number:
            rng = np.random.default_rng([self.seed, number])
            self._current = number, rng.integers(self.symbols, size=(self.segments, self.batch_size, self.segment_len))
        streams = self._current[1]
        ids = streams[place].copy()  # (B, T)
        ids[:, -1] = self.symbols
        targets = np.full_like(ids, IGNORED)
        if place >= self.lag:
            targets[:, -1] = streams[place - self.lag, :, 0]
        return Segment(ids, targets, first=place == 0)


@dataclass(frozen=True)
class CopyCurves:
    """Accuracies during training: steps; accuracies, {model: the share of right answers in new streams after each of
    the steps, in [0, 1]}; chance, the accuracy of guessing; lag and segment_len of the task."""

    steps: list
    accuracies: dict
    chance: float
    lag: int
    segment_len: int


def copy_experiment(
    steps=200, every=10, symbols=8, lag=2, segment_len=4, d_model=32, num_heads=2, num_layers=2, lr=3e-3, seed=0
):
    """Train a Transformer-XL and a GPT of the same width and depth on the same segments of a CopyStreams. After every
    `every` steps, measure the share of questions in unseen streams that each model answers correctly.

    The memory of the Transformer-XL reaches back to the symbol in question; the segments of both models do not.

    ->  CopyCurves;  transformer_np.plots.copy_curves draws them
    """
    check_all_at_least(1, steps=steps, every=every)
    streams = CopyStreams(symbols, lag, segment_len, segments=4 * lag + 2, seed=seed)
    unseen = CopyStreams(symbols, lag, segment_len, batch_size=64, segments=2 * lag + 2, seed=seed + 1)
    sizes = {"d_model": d_model, "num_heads": num_heads, "num_layers": num_layers, "d_ff": 2 * d_model, "seed": seed}
    xl = TransformerXL(TransformerXLConfig(streams.vocab_size, mem_len=lag * segment_len, **sizes))
    gpt = GPT(GPTConfig(streams.vocab_size, max_len=segment_len, **sizes))
    objectives = {
        "Transformer-XL": SegmentRecurrence(xl, ignore_index=IGNORED),
        "GPT": NextToken(gpt, ignore_index=IGNORED),  # each segment is a separate text
    }
    measured = sorted({*range(0, steps + 1, every), steps})
    accuracies = {name: _learn(objective, streams, unseen, measured, lr) for name, objective in objectives.items()}
    return CopyCurves(measured, accuracies, 1 / symbols, lag, segment_len)


def _learn(objective, streams, unseen, measured, lr):
    """Train up to the last of the steps `measured`; returns the accuracy at each of them."""
    trainer, accuracies = Trainer(objective.model, Adam(objective.model.parameters(), lr), objective), []
    for step in measured:
        trainer.fit(streams, step, progress=False)
        if trainer.interrupted:
            raise KeyboardInterrupt
        accuracies.append(_accuracy(objective, unseen))
    return accuracies


def _accuracy(objective, streams):
    """The share of right answers in one round of the streams."""

    def hits(batch):
        likeliest = objective.logits(batch).argmax(axis=-1)  # (B, T)
        return (likeliest == batch.targets)[batch.targets != IGNORED]

    return share_right(objective.model, map(streams.batch, range(streams.segments)), hits)
