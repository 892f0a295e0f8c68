"""Batches that mix several tasks."""

import numpy as np

from ..support.checks import MOST, check_at_least
from .batching import Seq2SeqBatch
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
        return Seq2SeqBatch(
            *(self._stacked([getattr(b, name) for b in batches]) for name in ("src", "tgt_in", "tgt_out"))
        )

    def _stacked(self, arrays):
        width = max(array.shape[1] for array in arrays)
        return np.concatenate(
            [np.pad(a, ((0, 0), (0, width - a.shape[1])), constant_values=self.pad_id) for a in arrays]
        )
