"""Which labels and features of new data another model knows: where training can go on from its weights."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Match(NamedTuple):
    """Names that data and a model share: their places there, and how many each has.

    new, old: (shared,) places among those of the data and among the model's. total, known: how many they are.
    """

    new: np.ndarray
    old: np.ndarray
    total: int
    known: int

    @property
    def shared(self) -> int:
        return self.new.size

    @property
    def is_whole(self) -> bool:
        """Whether both have the same names."""
        return self.shared == self.total == self.known


def match_names(new: Sequence, old: Sequence) -> Match:
    """The names that both lists have."""
    where = {name: k for k, name in enumerate(old)}
    pairs = [(k, where[name]) for k, name in enumerate(new) if name in where]
    return Match(*np.array(pairs, np.int64).reshape(-1, 2).T, len(new), len(old))


def match_nothing(new: int, old: int) -> Match:
    """Columns of which none is known to be the same."""
    return Match(np.empty(0, np.int64), np.empty(0, np.int64), new, old)


def match_numbers(new: int, old: int) -> Match:
    """Columns without names are the same where their number is."""
    both = np.arange(min(new, old))
    return Match(both, both, new, old)
