"""Common to the methods that go through the weights and update each from its column alone.

As huang2010 section 2.4 they keep S(x, y), the exponential of each score, and T(x), the sums of these over
the outcomes of an example: changing one weight changes few of them, (18) and (19). No S is smaller than
TINY: an outcome 690 below the best could not come back if it were lost to underflow.
"""

from dataclasses import dataclass
from math import exp, expm1

import numpy as np

from fenchel._cache import helper, njit
from fenchel._math import TINY
from fenchel.solvers.base import BatchSolver, BatchState, evaluate
from fenchel.structures import base

ORDERS = ("random", "cyclic")
FARTHEST = 300.0  # the most a score may change in one update: e^300 is far from overflow


@dataclass
class ColumnState(BatchState):
    """Adds the random numbers that order the columns."""

    rng: np.random.Generator | None = None


class ColumnSolver(BatchSolver):
    """A step is a pass over all weights from the scores of the last evaluation, then an evaluation: it
    refreshes the scores (no drift), optimises the free offset and yields the certificate.

    A subclass has the fields `order` and `seed`, and `kernel()`: the epoch and its one option.
    """

    def init(self, problem, start):
        if self.order not in ORDERS:
            raise ValueError(f"order={self.order!r}; there are {', '.join(map(repr, ORDERS))}")
        return ColumnState(**vars(super().init(problem, start)), rng=np.random.default_rng(self.seed))

    def step(self, problem, state):
        before, weights = state.evaluation, problem.present
        w, columns = before.w.copy(), problem.columns
        order = state.rng.permutation(weights) if self.order == "random" else weights
        exponentials, sums = np.empty(int(columns.starts[-1])), np.empty(problem.n)
        _exponentials(problem.blocks, problem.scores_at(before), columns.starts, exponentials, sums)
        epoch, option = self.kernel()
        touched = epoch(columns, order, problem.empirical, problem.lam, option, w, exponentials, sums)
        state.passes += touched / max(columns.entries.nnz * columns.outputs, 1)
        state.updates += weights.size
        state.evaluation = evaluate(problem, state, w)
        state.stalled = bool(np.array_equal(w, before.w))


@njit(cache=True, nogil=True)
def _exponentials(blocks, scores, starts, exponentials, sums):
    """S = e^(score − the example's largest) and T, the sums of S over an example; both written."""
    s = np.empty(blocks.size)
    for i in range(sums.size):
        base.block_read(blocks, scores, i, s)
        m = base.block_length(blocks, i)
        top = s[0]
        for j in range(m):
            top = max(top, s[j])
        sums[i] = 0.0
        for j in range(m):
            exponentials[starts[i] + np.uint64(j)] = max(exp(s[j] - top), TINY)
            sums[i] += exponentials[starts[i] + np.uint64(j)]


@helper(cache=True, nogil=True)
def move_weight(columns, a, k, z, exponentials, sums):
    """Add z to the weight (a, k): S ← S e^{zx}, T ← T + S(e^{zx} − 1), (18), (19); both written.

    One exponential serves a run of equal values: with 0/1 features, the whole column (huang2010 4.3).
    """
    value, growth = 0.0, 0.0
    for e in range(columns.entries.indptr[a], columns.entries.indptr[a + 1]):
        row, x = columns.entries.indices[e], columns.entries.data[e]
        if x != value:
            value, growth = x, expm1(z * x)
        o, i = row * np.uint64(columns.stride) + np.uint64(k), columns.owner[row]
        before = sums[i]
        sums[i] += exponentials[o] * growth
        exponentials[o] = max(exponentials[o] * (1.0 + growth), TINY)
        if not 0.5 * before <= sums[i] <= 1e100:
            _renew(columns.starts[i], columns.starts[i + 1], exponentials, sums, i)


@helper(cache=True, nogil=True)
def _renew(begin, end, exponentials, sums, i):
    """T summed anew, where a difference has lost digits, with S scaled so that the largest is 1."""
    largest, total = 0.0, 0.0
    for o in range(begin, end):
        largest = max(largest, exponentials[o])
    for o in range(begin, end):
        exponentials[o] = max(exponentials[o] / largest, TINY)
        total += exponentials[o]
    sums[i] = total
