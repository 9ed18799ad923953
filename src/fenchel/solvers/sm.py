"""Surrogate maximisation: zhang2005 (12), (15), (16), (21), each with the regulariser added."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fenchel.problem import solve_positive
from fenchel.solvers.base import BatchSolver, BatchState, backtrack, evaluate
from fenchel.solvers.gis import largest_row_sum, require_nonnegative, require_seen, scaled_update


@dataclass
class SMState(BatchState):
    """Adds what a variant computes once: the largest row sum (s, g2) or the factorised matrix (q)."""

    fixed: object = None


@dataclass(frozen=True)
class SM(BatchSolver):
    """Maximises a surrogate that touches the log-likelihood at the current weights.

    variant "s":  (12), separate in every weight; on features divided by f#, the largest row sum (6).
                  With one weight vector per pair of classes this is the step of GIS.
    variant "g1": (15), a Newton step on Q_T: matrix Σ m p x xᵀ + λ I.
    variant "g2": (16), a Newton step on Q_J, feature by feature, on features divided by f#.
    variant "q":  (21), the quadratic bound p(1 − p) ≤ ¼: matrix ¼ Σ m x xᵀ + λ I, factorised once.
    """

    variant: str = "q"
    needs: ClassVar[frozenset] = frozenset({"log", "gradient", "hessian"})

    def __post_init__(self):
        if self.variant not in {"s", "g1", "g2", "q"}:
            raise ValueError(f"variant={self.variant!r}; there are 's', 'g1', 'g2', 'q'")

    def init(self, problem, start):
        if self.variant in {"s", "g2"}:
            require_nonnegative(problem, f"sm-{self.variant}")
        if self.variant == "s":
            require_seen(problem, "sm-s")
        begun = super().init(problem, start)
        fixed = self._bound(problem) if self.variant == "q" else largest_row_sum(problem)
        return SMState(**vars(begun), fixed=fixed)

    def _bound(self, problem):
        """¼ Σ m x xᵀ + λ I, factorised where it has full rank."""
        matrix = problem.quadratic(0.25 * problem.examples.mass)
        try:
            return cho_factor(matrix)
        except np.linalg.LinAlgError:
            return matrix

    def step(self, problem, state):
        now = state.evaluation
        if self.variant == "s":
            w = scaled_update(problem, now, state.fixed)
            state.evaluation = evaluate(problem, state, w, now.b)
            state.updates += problem.dim
            state.stalled = bool(np.array_equal(w, now.w))
        elif self.variant == "q":
            backtrack(problem, state, -self._solve_bound(state.fixed, now.gradient))
        elif self.variant == "g1":
            matrix = problem.quadratic(problem.examples.mass * now.mu[:, 0])
            backtrack(problem, state, -solve_positive(matrix, now.gradient), sufficient=0.0)
        else:
            backtrack(problem, state, -now.gradient / self._diagonal(problem, state), sufficient=0.0)

    def _solve_bound(self, fixed, gradient):
        if isinstance(fixed, tuple):
            return cho_solve(fixed, gradient)
        return solve_positive(fixed, gradient)

    def _diagonal(self, problem, state):
        """Σ_i m_i f_it p_i(1 − p_i)·f# + λ: (16) on f/f#, written for the features as they are."""
        weights = problem.examples.mass * problem.structure.covariance(state.evaluation.mu)
        diagonal = state.fixed * problem.design.adjoint(weights) + problem.lam
        diagonal[diagonal <= 0.0] = 1.0
        return diagonal
