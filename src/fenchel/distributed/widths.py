"""σ′ of a round of CoCoA+, for groups of weights: how far places may go on their own (`visiting.py`).

σ′ = K is safe for all. For the changes δ_p of a round all that it took is, of any group g of weights,

    Σ_{j in g} (Σ_p δ_pj)² ≤ σ′_g Σ_{j in g} Σ_p δ_pj²

K where all places want the same, 1 where no two of them share a feature. Frequent features are of the first
kind and rare ones of the second: on text one σ′ for all is ruled by a few hundred words, and the others go a
fraction of the way they may. So columns are grouped by how many rows have them, and the σ′ of a group is what
the last round has needed. σ′_g is σ′ with the columns of g multiplied by √(σ′_g/σ′).
"""

from typing import NamedTuple

import numpy as np

# σ′ of a round is what the one before needed, but no less than NARROWER times what it was; after a round that
# was undone it is WIDER times as large.
NARROWER, WIDER = 0.5, 2.0


class Groups(NamedTuple):
    """Columns in groups that have a σ′ each; those of number `count` have none: one row alone has them."""

    of: np.ndarray  # (A,) uint8
    count: int

    @classmethod
    def by(cls, counts: np.ndarray, alike: bool) -> "Groups":
        """counts (A,): how many rows of all places have a column. alike: whether σ′ has to be one of all."""
        if alike:
            return cls((counts <= 1).astype(np.uint8), 1)
        of = np.log2(np.maximum(counts, 1)).astype(np.uint8)  # 0 or 1, 2 or 3, 4 to 7, ...
        return cls(of, int(of.max(initial=0)) + 1)

    def first_widths(self, most: float) -> np.ndarray:
        """(G + 1,) σ′ of each group, and of free offsets, before anything is known."""
        return np.full(self.count + 1, most)

    def squares(self, change: np.ndarray, outputs: int, free: int) -> np.ndarray:
        """(G + 1,) Σ δ_j² of each group, and of the last `free` weights, the free offsets.

        What is neither of columns nor free, such as transitions, is of the last group.
        """
        size = self.of.size * outputs
        of_columns = np.square(change[:size].reshape(-1, outputs)).sum(axis=1)
        sums = np.bincount(self.of, weights=of_columns, minlength=self.count + 1)
        others = np.square(change[size:])
        sums[-2] += others[: others.size - free].sum()
        sums[-1] = others[others.size - free :].sum()
        return sums


def needed(together: np.ndarray, apart: np.ndarray, most: float) -> np.ndarray:
    """(G,) σ′ that the changes of a round took: of Σ_j (Σ_p δ_pj)² and Σ_j Σ_p δ_pj²."""
    return np.clip(together / np.maximum(apart, 1e-300), 1.0, most)


def after(widths: np.ndarray, found: np.ndarray, accepted: bool, most: float) -> np.ndarray:
    """σ′ of the next round, where this one was made with `widths` and has needed `found`."""
    least = (NARROWER if accepted else WIDER) * widths
    return np.minimum(np.maximum(least, found), most)
