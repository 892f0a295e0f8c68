"""Batches that mix several tasks."""

from ..support.checks import MOST, check_at_least
from .batching import Seq2SeqBatch, pad_batch
from .tokenizers import PAD


class MixedBatches:
    """Some rows of each task in every batch (Raffel et al. 2020, §3.5.2): `batch(step)` for step = 0, 1, 2, …

    parts: Seq2SeqBatches, SpanBatches or similar, one per task; their batch sizes are the shares of the mixture

    Raises ValueError for an empty list.
    """

    def __init__(self, parts, pad_id=PAD):
        check_at_least("pad_id", pad_id, -MOST)
        self.parts, self.pad_id = list(parts), pad_id
        if not self.parts:
            raise ValueError("there are no batches to mix")

    def batch(self, step):
        """The batch of a training step, counted from 0: the rows of all parts, in order."""
        batches = [part.batch(step) for part in self.parts]
        columns = zip(*((batch.src, batch.tgt_in, batch.tgt_out) for batch in batches), strict=True)
        return Seq2SeqBatch(*(pad_batch([row for array in arrays for row in array], self.pad_id) for arrays in columns))
