"""Which shards are in memory when: some at a time in random order, and the next ones read meanwhile.

Arrays are mapped files. A thread of its own gives the pages of the next shards their places, so that a pass
meets no page that it has to wait for. Dual variables and other numbers of examples that have room on disk go
with the shards of these examples, and count as they do. While all fits memory the system keeps it there, and
is only told which pages come next; else `backing` exchanges them.
"""

import mmap
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from weakref import ReferenceType, ref

import numpy as np

from fenchel._memory import available_bytes
from fenchel.io.backing import Backing, advise

IN_MEMORY = 1 << 26  # bytes up to which an array of dual variables is no burden
ROOMY = 0.5  # of what memory there is, up to which the system is left to keep files in it
POPULATE_READ = 22  # of madvise, in Linux from 5.14 on; elsewhere it is refused, and pages come when met


class Companion(NamedTuple):
    """An array on disk beside the shards, as long as somebody holds it."""

    array: ReferenceType
    begins: np.ndarray | None  # (n + 1,) where the numbers of each example begin; None: a row for each
    backing: Backing


class Part(NamedTuple):
    """The numbers of an array that belong to shards: their bytes, from begin to end.

    It holds the array, whose memory must not be given to others while its pages are exchanged.
    """

    array: np.ndarray
    begin: int
    end: int
    backing: Backing


class Paged:
    """What training asks of `io.shards.Shards`: pieces, memory, arrays and their bounds are its own."""

    def room(self, shape, begins: np.ndarray | None = None, kind=np.float64) -> np.ndarray:
        """An array for numbers of examples: where it is large, on disk, in a file that nobody else sees.

        begins: (n + 1,) where those of each example begin; by default its rows are the examples.
        """
        size = np.dtype(kind).itemsize * int(np.prod(shape, dtype=np.int64))
        if size <= IN_MEMORY:
            return np.empty(shape, kind)
        with tempfile.TemporaryFile(dir=self._scratch) as file:
            try:  # a full disk is an error now, not a crash later
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                place = self._scratch or tempfile.gettempdir()
                what = f"{place}, {size / 1e6:,.1f} MB for numbers of the examples"
                raise OSError(error.errno, error.strerror, what) from None
            backing = Backing(file, shared=True)
        array = backing.map(kind).reshape(shape)
        self._forget()
        if begins is not None or array.shape[0] == self.n:
            self._companions.append(Companion(ref(array), begins, backing))
        return array

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
        groups = [self._parts(shards) for shards in together]
        load, release = (_take, _give_back) if self._is_too_large else (_announce, _dismiss)
        with ThreadPoolExecutor(1) as reader:
            coming, leaving, held = reader.submit(load, groups[0]), None, []
            try:
                for number, now in enumerate(groups):
                    coming.result()
                    if leaving is not None:
                        leaving.result()
                    held = groups[number : number + 2]
                    if held[1:]:
                        coming = reader.submit(load, held[1])
                    yield number
                    leaving, held = reader.submit(release, now), held[1:]
                leaving.result()
            finally:  # where a pass is broken off, too: what changed is then in its place
                for parts in held:
                    reader.submit(release, parts).result()

    @property
    def is_larger_than_memory(self) -> bool:
        """Whether the arrays of the shards alone do not fit."""
        return self.size > available_bytes()

    @property
    def _is_too_large(self) -> bool:
        """Whether arrays and what is beside them take more memory than the system should keep files in."""
        beside = sum(array.nbytes for array, _, _ in self._beside())
        return self.size + beside > ROOMY * available_bytes()

    def dismiss(self, shards: np.ndarray) -> None:
        """Tell the system that the pages of shards are not needed any more."""
        _dismiss(self._parts(shards))

    def _parts(self, shards) -> list[Part]:
        """What shards have of all arrays that they are ranges of, and of what is beside them."""
        own = [(self.arrays[name], self._bounds[name], self._backings.get(name)) for name in self._divided]
        return [
            Part(array, begin * array.itemsize, end * array.itemsize, backing)
            for array, bounds, backing in (*own, *self._beside())
            for begin, end in zip(bounds[shards].tolist(), bounds[shards + 1].tolist(), strict=True)
            if end > begin
        ]

    def _forget(self):
        """Let go of companions whose arrays nobody holds: of their files, too."""
        self._companions[:] = [one for one in self._companions if one.array() is not None]

    def _beside(self):
        """(array, its bounds at the shards, backing) of the companions that there are."""
        for (_, begins, backing), array in [(one, one.array()) for one in self._companions]:
            if array is not None and begins is not None:
                yield array, begins[self.pieces].astype(np.int64), backing
            elif array is not None:
                yield array, self.pieces * (array.size // max(self.n, 1)), backing

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
        others = (np.diff(bounds) * array.itemsize for array, bounds, _ in self._beside())
        ends = np.cumsum(sum(others, self._sizes)[turns])
        count = -(-int(ends[-1]) // self.memory)
        number = np.unique((ends - 1) * count // ends[-1], return_inverse=True)[1]
        return np.split(turns, np.flatnonzero(np.diff(number)) + 1)


def _take(parts):
    """Read parts into memory of their own."""
    for part in parts:
        part.backing.take(part.array.ctypes.data, part.begin, part.end)


def _give_back(parts):
    for part in parts:
        part.backing.give_back(part.array.ctypes.data, part.begin, part.end)


def _announce(parts):
    """Have the system read parts and give their pages a place, so that nobody waits for one of them later."""
    for advice in (mmap.MADV_WILLNEED, POPULATE_READ):
        _tell(parts, advice)


def _dismiss(parts):
    """They stay in the system's cache while there is room."""
    _tell(parts, mmap.MADV_DONTNEED)


def _tell(parts, advice):
    for part in parts:
        begin = part.begin - part.begin % mmap.PAGESIZE
        advise(part.array.ctypes.data + begin, part.end - begin, advice)
