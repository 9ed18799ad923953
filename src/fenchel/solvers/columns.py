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
EVALUATIONS = ("each pass", "when asked")
FARTHEST = 300.0  # the most a score may change in one update: e^300 is far from overflow


@dataclass
class ColumnState(BatchState):
    """Adds the random numbers that order the columns; and, between evaluations, weights, S and T."""

    rng: np.random.Generator | None = None
    w: np.ndarray | None = None
    exponentials: np.ndarray | None = None
    sums: np.ndarray | None = None


class ColumnSolver(BatchSolver):
    """A step is a pass over all weights from the scores of the last evaluation, then an evaluation: it
    refreshes the scores (no drift), optimises the free offset and yields the certificate.

    evaluate "when asked" leaves the evaluation to who measures, and goes on from S and T as they are: what
    huang2010 and yu2011 time is the pass over the weights alone.
    A subclass has the fields `order`, `evaluate` and `seed`, and `kernel()`: the epoch and its one option.
    """

    @property
    def free_check(self) -> bool:
        return self.evaluate == "each pass"

    def init(self, problem, start):
        for name, words in (("order", ORDERS), ("evaluate", EVALUATIONS)):
            if getattr(self, name) not in words:
                raise ValueError(f"{name}={getattr(self, name)!r}; there are {', '.join(map(repr, words))}")
        return ColumnState(**vars(super().init(problem, start)), rng=np.random.default_rng(self.seed))

    def step(self, problem, state):
        if state.sums is None:
            self._exponentiate(problem, state)
        weights, columns, before = problem.present, problem.columns, state.w.copy()
        order = state.rng.permutation(weights) if self.order == "random" else weights
        epoch, option = self.kernel()
        written = state.w, state.exponentials, state.sums
        touched = epoch(columns, order, problem.empirical, problem.lam, option, *written)
        state.passes += touched / max(columns.entries.nnz * columns.outputs, 1)
        state.updates += weights.size
        state.stalled = bool(np.array_equal(state.w, before))
        if self.free_check:
            state.evaluation, state.sums = evaluate(problem, state, state.w), None

    def _exponentiate(self, problem, state):
        """S and T anew, at the weights of the last evaluation."""
        state.w, starts = state.evaluation.w.copy(), problem.columns.starts
        state.exponentials, sums = np.empty(int(starts[-1])), np.empty(problem.n)
        _exponentials(problem.blocks, problem.scores_at(state.evaluation), starts, state.exponentials, sums)
        state.sums = sums

    def point(self, problem, state):
        if self.free_check or state.w is None:
            return super().point(problem, state)
        return problem.primal_point(state.w.copy())


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
    value, growth, factor = 0.0, 0.0, 1.0
    for e in range(columns.entries.indptr[a], columns.entries.indptr[a + 1]):
        row, x = columns.entries.indices[e], columns.entries.data[e]
        if x != value:
            value, growth, factor = x, expm1(z * x), exp(z * x)  # 1 + growth is 0 from e^−37 on
        o, i = row * np.uint64(columns.stride) + np.uint64(k), columns.owner[row]
        before = sums[i]
        sums[i] += exponentials[o] * growth
        exponentials[o] = max(exponentials[o] * factor, TINY)
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
