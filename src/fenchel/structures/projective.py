"""Trees: every word of a sentence has a head, another word or the root, and no two arcs cross.

    score(y) = Σ_m x_{y_m → m} · w

with a row of features x for each arc that can be, n·n of a sentence of n words, in the order of `eisner.py`.
The parts of an example are its arcs. What arcs are probable does not tell how probable trees are: the entropy
is none of marginals alone, but known where the scores behind them are (`block_entropy_at`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from fenchel._cache import helper, njit
from fenchel._math import ordered
from fenchel.structures import base, eisner
from fenchel.structures.flat import settle
from fenchel.structures.layouts.arcs import ArcRows, arc_rows


class TreeOutcomes(NamedTuple):
    """Trees of n sentences with M arcs in all."""

    y: np.ndarray  # (M,) 1 for the arcs of the true tree, else 0
    offsets: np.ndarray  # (n + 1,) uint64 where the arcs of each sentence begin
    single: bool  # whether only one word has the root as its head


@dataclass(frozen=True)
class Projective(base.Structure):
    """The structure of projective trees. single_root: whether only one word has the root as its head."""

    single_root: bool = True
    name = "projective"
    listed = False
    products = False
    tells_entropy = False
    offers = frozenset({"vertices"})
    outputs = None  # one weight vector

    def shape(self, examples):
        """Of the marginals of all arcs."""
        return (examples.y.size,)

    def begins(self, examples):
        return examples.starts

    def largest(self, examples) -> int:
        return int(np.diff(examples.starts).max())

    def layout(self, examples, design) -> ArcRows:
        return arc_rows(examples.rows, examples.starts, examples.room)

    def outcomes(self, examples) -> TreeOutcomes:
        return TreeOutcomes(examples.y, examples.starts, self.single_root)

    def sizes_of_choice(self, examples):
        """C(3n − 2, n − 1)/n trees with one root, C(3n, n)/(2n + 1) with any number; all heads can be wrong,

        by a star around a leaf of the true tree, unless that is a star around the root.
        """
        n = np.sqrt(np.diff(examples.starts).astype(np.float64))
        top, taken = (3.0 * n - 2.0, n - 1.0) if self.single_root else (3.0 * n, n)
        ways = gammaln(top + 1.0) - gammaln(taken + 1.0) - gammaln(top - taken + 1.0)
        counts = ways - np.log(n if self.single_root else 2.0 * n + 1.0)
        return counts, n - _roots(examples.y, examples.starts, n)

    def measures(self, examples):
        words = np.sqrt(np.diff(examples.starts).astype(np.float64))
        return float(examples.mass @ words), 1.0, 0.0


def _roots(y, starts, n):
    """(n,) 1 where the head of every word is the root, else 0."""
    lengths, begins = n.astype(np.int64), starts[:-1].astype(np.int64)
    return np.array([y[a : a + m * m : m].all() for a, m in zip(begins, lengths, strict=True)], float)


@helper(cache=True, nogil=True, forceinline=True)
def _words(trees, i):
    """How many words sentence i has."""
    return np.int64(np.sqrt(np.float64(trees.offsets[i + 1] - trees.offsets[i])) + 0.5)


@base.block_target.implement(TreeOutcomes)
def _target(blocks, i, y):
    trees = blocks.outcomes
    begin = trees.offsets[i]
    for j in range(trees.offsets[i + 1] - begin):
        y[j] = trees.y[begin + j]


@base.block_residual.implement(TreeOutcomes)
def _residual(blocks, i, mu, delta):
    n = np.uint64(_words(blocks.outcomes, i))
    base.block_target(blocks, i, delta)
    for j in range(n * n):
        delta[j] -= mu[j]
    for at in range(np.uint64(0), n * n, n):
        settle(np.int64(n), mu[at : at + n], delta[at : at + n])


@base.block_marginals.implement(TreeOutcomes)
def _marginals(blocks, i, s, mu):
    tops = np.empty(_words(blocks.outcomes, i))
    rest = eisner.marginals(tops.size, s.ctypes, blocks.outcomes.single, mu.ctypes, tops.ctypes)
    return less_truth(blocks.outcomes, i, s, tops, rest)


@njit(cache=True, nogil=True, fastmath=False)
def less_truth(trees, i, s, tops, rest):
    """log Z − ⟨s, y⟩, added up word by word; rest: log Z less the tops."""
    n, begin, ahead = np.uint64(tops.size), trees.offsets[i], 0.0
    for m in range(n):
        for h in range(n):
            if trees.y[begin + m * n + h] > 0.0:
                ahead = ordered(tops[m], s[m * n + h], ahead)
    return max(ahead + rest, 0.0)


@base.block_argmax.implement(TreeOutcomes)
def _argmax(blocks, i, s, mu):
    trees = blocks.outcomes
    heads = np.empty(_words(trees, i), np.int64)
    score = eisner.best_tree(heads.size, s.ctypes, trees.single, heads.ctypes)
    for j in range(heads.size * heads.size):
        mu[j] = 0.0
    for m in range(heads.size):
        mu[eisner.arc(heads.size, heads[m], m + 1)] = 1.0
    return score
