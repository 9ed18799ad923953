"""Common to the methods that go through the features and update each weight from its column alone."""

from dataclasses import dataclass

import numpy as np

from fenchel.solvers.base import BatchSolver, BatchState, evaluate

ORDERS = ("random", "cyclic")


@dataclass
class ColumnState(BatchState):
    """Adds the random numbers that order the columns."""

    rng: np.random.Generator | None = None


class ColumnSolver(BatchSolver):
    """A step is a pass over all columns from the scores of the last evaluation, then an evaluation: it
    refreshes the scores (no drift), optimises the free offset and yields the certificate.

    A subclass has the fields `order` and `seed`, and `kernel()`: the epoch and its one option.
    """

    def init(self, problem, start):
        if self.order not in ORDERS:
            raise ValueError(f"order={self.order!r}; there are {', '.join(map(repr, ORDERS))}")
        return ColumnState(**vars(super().init(problem, start)), rng=np.random.default_rng(self.seed))

    def step(self, problem, state):
        before, d = state.evaluation, problem.dim
        w, scores = before.w.copy(), before.scores.copy()
        order = state.rng.permutation(d) if self.order == "random" else np.arange(d)
        epoch, option = self.kernel()
        columns, mass = problem.design.columns, problem.examples.mass
        touched = epoch(columns, order, mass, problem.empirical, problem.lam, option, w, scores)
        state.passes += touched / max(problem.examples.rows.nnz, 1)
        state.updates += d
        state.evaluation = evaluate(problem, state, w, before.b)
        state.stalled = bool(np.array_equal(w, before.w))
