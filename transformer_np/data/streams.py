"""A text as parallel streams of segments that follow one another: for a model that remembers."""

from dataclasses import dataclass

import numpy as np

from ..support.checks import check_at_least


@dataclass(frozen=True)
class Segment:
    """A segment of every stream: ids (B, T), and what follows each of their tokens, targets (B, T).

    first: whether the streams begin here; otherwise row b goes on where row b of the segment before ended
    """

    ids: np.ndarray
    targets: np.ndarray
    first: bool


class TextStreams:
    """A text cut into `batch_size` streams, and the streams into segments: `batch(step)` for step = 0, 1, 2, …

        a b c d e f g h i j k l m    2 streams, segments of 3     batch 0    batch 1    batch 0 again
                                                                  a b c      d e f      a b c
                                                                  g h i      j k l      g h i

    Row b of a batch goes on where row b of the batch before ended, so that a memory carried from step to step is what
    really came before; after `segments` batches all streams begin anew, and `first` says so. A batch depends on the
    text, the sizes and the step alone.

    ids: the whole text, (n,); what is left over at the end of the text, less than a segment a stream, is not used

    Raises ValueError for sizes below 1 and for a text shorter than one segment in each stream and the token after it;
    TypeError for ids that are not whole numbers.
    """

    def __init__(self, ids, segment_len, batch_size):
        check_at_least("segment_len", segment_len, 1)
        check_at_least("batch_size", batch_size, 1)
        ids = np.asarray(ids)
        if ids.ndim != 1:
            raise ValueError(f"ids must have the one axis (length,), got shape {ids.shape}")
        if ids.size and ids.dtype.kind not in "iu":
            raise TypeError(f"ids must be whole numbers (token ids), got {ids.dtype}")
        length = (len(ids) - 1) // batch_size
        if length < segment_len:
            raise ValueError(
                f"the text has {len(ids)} tokens, but {batch_size} streams with a segment of {segment_len} each, "
                f"and the token after them, need {batch_size * segment_len + 1}: give a longer text or smaller sizes"
            )
        used = batch_size * length
        self.segment_len, self.batch_size = segment_len, batch_size
        self._ids, self._targets = (part.reshape(batch_size, length) for part in (ids[:used], ids[1 : used + 1]))

    @property
    def segments(self):
        """How many whole segments a stream has."""
        return self._ids.shape[1] // self.segment_len

    def batch(self, step):
        """The batch of a training step, counted from 0."""
        if step < 0:
            raise ValueError(f"step must not be negative, got {step}")
        return self._segment((step % self.segments) * self.segment_len)

    def in_order(self):
        """The streams once, from their beginning to their end, where a shorter segment may be: for a validation."""
        for start in range(0, self._ids.shape[1], self.segment_len):
            yield self._segment(start)

    def _segment(self, start):
        end = start + self.segment_len
        return Segment(self._ids[:, start:end], self._targets[:, start:end], first=start == 0)
