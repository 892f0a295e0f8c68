"""Sequences whose items are made on demand."""

from collections.abc import Sequence


class Lazy(Sequence):
    """make(place) for each of the places; a slice is lazy too.

    batches = Lazy(make_batch, range(1_000_000))
    batches[::1000][3]                                    # only this batch is made
    """

    def __init__(self, make, places):
        self._make, self._places = make, places

    def __len__(self):
        return len(self._places)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return Lazy(self._make, self._places[i])
        return self._make(self._places[i])
