"""A text as parallel streams of consecutive segments, for a model with a memory."""

from dataclasses import dataclass

import numpy as np

from ..support.checks import as_text_ids, check_all_at_least, check_at_least
from ..support.counts import counted
from .batching import Lazy


@dataclass(frozen=True)
class Segment:
    """A segment of every stream: ids (B, T), and the token after each of them, targets (B, T).

    first: whether the streams begin here; otherwise row b continues row b of the previous segment
    """

    ids: np.ndarray
    targets: np.ndarray
    first: bool


class TextStreams:
    """A text cut into `batch_size` streams, and the streams into segments: `batch(step)` for step = 0, 1, 2, …

        a b c d e f g h i j k l m    2 streams, segments of 3     batch 0    batch 1    batch 0 again
                                                                  a b c      d e f      a b c
                                                                  g h i      j k l      g h i

    Row b of a batch continues row b of the previous batch, so that a memory carried from step to step holds the text
    directly before the row. After `segments` batches all streams start over, and `first` is True. A batch depends only
    on the text, the sizes and the step.

    ids: the whole text, (n,), of any integer type; its end is not used if it does not fill a segment of every stream

    Raises ValueError for sizes below 1 and for a text too short for one segment per stream and the token after it;
    TypeError for ids that are not whole numbers.
    """

    def __init__(self, ids, segment_len, batch_size):
        check_all_at_least(1, segment_len=segment_len, batch_size=batch_size)
        ids = as_text_ids(ids)
        length = (len(ids) - 1) // batch_size
        if length < segment_len:
            streams = f"{batch_size} streams with one segment of {segment_len} each, and the token after them"
            needed = f"{streams}, need {batch_size * segment_len + 1}: pass a longer text or smaller sizes"
            raise ValueError(f"the text has {counted(len(ids), 'token')}, but {needed}")
        used = batch_size * length
        self.segment_len, self.batch_size = segment_len, batch_size
        self._ids, self._targets = (part.reshape(batch_size, length) for part in (ids[:used], ids[1 : used + 1]))

    @property
    def segments(self):
        """The number of whole segments in a stream."""
        return self._ids.shape[1] // self.segment_len

    def batch(self, step):
        """The batch of a training step, counted from 0."""
        check_at_least("step", step, 0)
        return self._segment((step % self.segments) * self.segment_len)

    def in_order(self):
        """The segments for validation: the streams once, from beginning to end, each segment made on demand. The last
        segment may be shorter."""
        return Lazy(self._segment, range(0, self._ids.shape[1], self.segment_len))

    def _segment(self, start):
        end = start + self.segment_len
        ids, targets = (part[:, start:end].astype(np.intp) for part in (self._ids, self._targets))
        return Segment(ids, targets, first=start == 0)
