"""Learning names and attributes from more text than fits memory: some of it at a time, counted."""

from collections.abc import Iterable

import numpy as np

from fenchel.features import interning
from fenchel.features.encode import encode
from fenchel.features.interning import ABSENT, Grid, Plan
from fenchel.features.naming import PLAIN
from fenchel.features.vocabulary import Vocabulary


def frequent_names(batches: Iterable, min_count: int, naming=PLAIN) -> Vocabulary:
    """The names that so many of the events of all batches have, in the order first seen.

    batches: iterables of events, as `features.encode` takes them.
    """
    vocabulary, counts, first = Vocabulary(), np.zeros(0, np.int64), 0
    for events in batches:
        rows, vocabulary = encode(events, vocabulary, grow=True, naming=naming, first=first)
        more = np.bincount(rows.indices, minlength=len(vocabulary))
        more[: counts.size] += counts
        counts, first = more, first + rows.shape[0]
    return vocabulary if min_count == 1 else vocabulary.keep(counts >= min_count)


class AttributeCounts:
    """The attributes of the lines of a template over many grids: how often each is, and where it was first.

    Their order is that of `interning.renumber`: token by token, and of a token in the order of the lines.
    """

    def __init__(self, plan: Plan, widths: np.ndarray):
        self._plan, self._tokens = plan, 0
        self._groups = [interning.nothing_met(width) for width in widths]
        self._counts = [np.zeros(0, np.int64) for _ in widths]
        self._first = [np.zeros(0, np.int64) for _ in widths]

    def add(self, grid: Grid) -> None:
        """Count the attributes of some more tokens."""
        plan, n = self._plan, int(grid.starts[-1])
        numbers = np.empty((plan.group.size, n), np.uint32)
        for g, met in enumerate(self._groups):
            lines = np.flatnonzero(plan.group == g).astype(np.uint64)
            self._groups[g] = met = interning.intern_group(plan, grid, lines, met, numbers)
            self._lengthen(g, int(met.count))
            for line in lines.tolist():
                self._count(g, line, numbers[line])
        self._tokens += n

    def _lengthen(self, g, size):
        more = size - self._counts[g].size
        self._counts[g] = np.append(self._counts[g], np.zeros(more, np.int64))
        self._first[g] = np.append(self._first[g], np.full(more, np.iinfo(np.int64).max))

    def _count(self, g, line, numbers):
        there = np.flatnonzero(numbers != ABSENT)
        found, at, often = np.unique(numbers[there], return_index=True, return_counts=True)
        self._counts[g][found] += often
        place = (self._tokens + there[at]) * self._plan.group.size + line
        self._first[g][found] = np.minimum(self._first[g][found], place)

    def chosen(self, min_count: int):
        """The keys of each group, where its attributes begin among all, and the new number of each of these.

        ABSENT for those met less often; and how many are left.
        """
        keys = [met.keys[: met.count * met.width].reshape(met.count, met.width) for met in self._groups]
        begin = np.concatenate([[0], np.cumsum([len(some) for some in keys])]).astype(np.uint64)
        none = [np.zeros(0, np.int64)]  # a template may have no line of this kind
        often = np.concatenate(none + self._counts) >= min_count
        order = np.argsort(np.concatenate(none + self._first)[often], kind="stable")
        new, kept = np.full(often.size, ABSENT, np.uint32), np.flatnonzero(often)
        new[kept[order]] = np.arange(kept.size, dtype=np.uint32)
        return keys, begin, new, kept.size
