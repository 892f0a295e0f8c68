"""Keys and values of the tokens so far, so that a time step computes those of the newest token alone."""

import numpy as np

from ..support.checks import check_at_least


class KeyValueCache:
    """The keys and values that one attention has computed so far, (B, H, length, K) each.

    With the cache, a decoding step computes query, key and value of the newest token only: O(length) work per step
    instead of O(length²).
    """

    def __init__(self):
        self.length = 0
        self._buffers = None  # keys and values, with spare room at the end

    def append(self, k, v):
        """Add the newest keys and values, (B, H, T, K). Returns all keys and values so far."""
        end = self.length + k.shape[2]
        if self._buffers is None or end > self._buffers[0].shape[2]:
            self._buffers = tuple(self._grown(i, new, 2 * end) for i, new in enumerate((k, v)))
        for buffer, new in zip(self._buffers, (k, v), strict=True):
            buffer[:, :, self.length : end] = new
        self.length = end
        return self.keys, self.values

    def _grown(self, i, new, capacity):
        buffer = np.empty((*new.shape[:2], capacity, new.shape[3]), new.dtype)
        if self._buffers is not None:
            buffer[:, :, : self.length] = self._buffers[i][:, :, : self.length]
        return buffer

    keys = property(lambda self: self._buffers[0][:, :, : self.length])
    values = property(lambda self: self._buffers[1][:, :, : self.length])

    def select(self, rows):
        """Keep only these rows of the batch, in this order; a row may occur twice."""
        if self._buffers is not None:
            self._buffers = tuple(buffer[rows] for buffer in self._buffers)


class DecoderCache:
    """The state of a decoder between time steps: its input ids, and a pair of key/value caches for every block."""

    def __init__(self, num_blocks):
        check_at_least("num_blocks", num_blocks, 1)
        self.ids = None  # (B, length)
        self.blocks = [(KeyValueCache(), KeyValueCache()) for _ in range(num_blocks)]

    @property
    def length(self):
        return 0 if self.ids is None else self.ids.shape[1]

    def extend(self, ids):
        """Append ids, (B, T), that have been decoded."""
        self.ids = ids if self.ids is None else np.concatenate([self.ids, ids], axis=1)

    def select(self, rows):
        """Keep only these rows of the batch, in this order; a row may occur twice."""
        self.ids = self.ids[rows]
        for pair in self.blocks:
            for cache in pair:
                cache.select(rows)
