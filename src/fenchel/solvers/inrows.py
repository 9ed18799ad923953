"""Another solver, in the space that the rows of a dense table span, where they are fewer than its columns.

The optimum is a sum of rows: what lies outside them changes no score, and costs its penalty. So X = LQᵀ, the
columns of Q (A, n) orthonormal, w = Qv, and P(w) of X is P(v) of L (n, n): a pass takes n/A of the time, and
coordinates can be made round by a matrix of n rows instead of A. What is proven is proven of w, on X.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.linalg import qr

from fenchel._sparse import Table
from fenchel.problem import Problem
from fenchel.solvers.base import BatchState, Solver, Start, State

COUNTERS = ("passes", "oracle_calls", "updates")


@dataclass
class InRowsState(State):
    """Adds the problem of L, the other solver's state on it, and Q."""

    turned: Problem | None = None
    inner: BatchState | None = None
    basis: np.ndarray | None = None


@dataclass(frozen=True)
class InRows:
    """`solver`, one of those whose state is an evaluation of P, on the problem of L. For dense features, the
    log loss and an L2 penalty.
    """

    solver: Solver
    free_check: ClassVar[bool] = False
    where: ClassVar[str] = " on rows"  # in a trace

    @property
    def needs(self) -> frozenset:
        return self.solver.needs | {"l2", "dual", "outcomes"}

    def init(self, problem, start):
        if not isinstance(problem.design.rows, Table):
            raise ValueError("InRows turns a dense table; these features are sparse, use its solver as it is")
        basis, root = qr(problem.design.rows.matrix.T, mode="economic", check_finite=False)
        rows = Table(np.ascontiguousarray(root.T).reshape(-1), *root.T.shape)
        turned = replace(problem, examples=replace(problem.examples, rows=rows))
        inner = self.solver.init(turned, None if start is None else _turn(problem, basis, start))
        return _told(InRowsState(turned=turned, inner=inner, basis=basis))

    def step(self, problem, state):
        before = [getattr(state.inner, name) for name in COUNTERS]
        self.solver.step(state.turned, state.inner)
        share = state.turned.design.n_columns / problem.design.n_columns
        for name, was, unit in zip(COUNTERS, before, (share, 1, 1), strict=True):
            more = unit * (getattr(state.inner, name) - was)
            setattr(state, name, getattr(state, name) + more)
        _told(state)

    def point(self, problem, state):
        own, offset = state.turned.design.split(state.inner.evaluation.w)
        w = (state.basis @ own.reshape(state.basis.shape[1], -1)).reshape(-1)
        if problem.free:
            beta = np.broadcast_to(offset / problem.design.constant, problem.design.outputs)
            w = np.concatenate([w, beta])
        return problem.point_at(problem.evaluate(w))


def _turn(problem, basis, start):
    """The warm start in the space of the rows: Qᵀw, and the offset of the features as they are inside."""
    inside = problem.weights_at(start)
    own = inside[: problem.penalised].reshape(basis.shape[0], -1)
    offset = problem.design.constant * inside[problem.penalised :] if problem.free else 0.0
    return Start((basis.T @ own).reshape(-1), offset)


def _told(state):
    """The state with what the other solver knows of its own."""
    inner = state.inner
    state.relative_gap_estimate, state.stalled = state.turned.estimate(inner.evaluation), inner.stalled
    return state
