"""Which shards are in memory when: some at a time in random order, and the next ones read meanwhile.

Arrays are mapped files. A thread of its own has the system read the pages of the next shards and give them
their places, so that a pass meets no page that it has to wait for.
"""

import ctypes
import mmap
from concurrent.futures import ThreadPoolExecutor

import numpy as np

POPULATE_READ = 22  # of madvise, in Linux from 5.14 on; elsewhere it is refused, and pages come when met
_LIBRARY = ctypes.CDLL(None)


def _advise(address: int, size: int, advice: int) -> None:
    """madvise(2); what the system does not know it may refuse: that is advice, too."""
    _LIBRARY.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_int(advice))


class Paged:
    """What training asks of `io.shards.Shards`: pieces, memory, arrays and their bounds are its own."""

    def visits(self, order: np.ndarray):
        """Yield the examples of a pass some shards at a time, as `Examples.visits` says.

        Shards take turns as the order meets them first; examples of those in memory together are mixed as
        the order has them.
        """
        together, group = self._groups(order)
        for number in self._loaded(together):
            yield order[group == number]

    def shuffled(self, rng):
        """The same in an order that is drawn as it goes: no number for each example is in memory."""
        together = self._cut(rng.permutation(self.pieces.size - 1))
        for number in self._loaded(together):
            spans = [np.arange(*self.pieces[shard : shard + 2].tolist()) for shard in together[number]]
            yield rng.permutation(np.concatenate(spans)).view(np.uint64)

    def _loaded(self, together):
        """0, 1, ... for each group of shards while it is in memory; the next one is read meanwhile."""
        reader = ThreadPoolExecutor(1)
        try:
            coming = reader.submit(self._load, together[0])
            for number, now in enumerate(together):
                coming.result()
                if number + 1 < len(together):
                    coming = reader.submit(self._load, together[number + 1])
                yield number
                self._advise(now, mmap.MADV_DONTNEED)  # they stay in the system's cache while there is room
        finally:
            reader.shutdown(wait=False, cancel_futures=True)

    def _load(self, shards):
        """Read shards and give their pages a place, so that nobody has to wait for one of them later."""
        self._advise(shards, mmap.MADV_WILLNEED)
        self._advise(shards, POPULATE_READ)

    def _groups(self, order):
        """The shards that are in memory together, group by group, and the group of each of the examples."""
        shards = self.pieces.size - 1
        shard = np.searchsorted(self.pieces, order.view(np.int64), "right").astype(np.int32) - np.int32(1)
        first = np.full(shards, order.size)
        first[shard[::-1]] = np.arange(order.size)[::-1]  # what is written last stays: each one's first place
        turns = np.argsort(first, kind="stable")[: np.count_nonzero(first < order.size)]
        together, group = self._cut(turns), np.empty(shards, np.int32)
        for number, some in enumerate(together):
            group[some] = number
        return together, group[shard]

    def _cut(self, turns) -> list[np.ndarray]:
        """Shards in this order, cut into groups of about one size that memory holds."""
        ends = np.cumsum(self._sizes[turns])
        count = -(-int(ends[-1]) // self.memory)
        number = np.unique((ends - 1) * count // ends[-1], return_inverse=True)[1]
        return np.split(turns, np.flatnonzero(np.diff(number)) + 1)

    def _advise(self, shards, advice):
        """Tell the system about the pages of shards; by its own function, which lets other threads go on."""
        for name in self._divided:
            array, bounds = self.arrays[name], self._bounds[name]
            for shard in shards if array.size else ():
                begin, end = (int(bound) * array.itemsize for bound in bounds[shard : shard + 2])
                begin -= begin % mmap.PAGESIZE
                if end > begin:
                    _advise(array.ctypes.data + begin, end - begin, advice)
