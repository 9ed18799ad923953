"""Surrogate maximisation: zhang2005 (12), (15), (16), (21), each with the regulariser added."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from fenchel._cache import njit
from fenchel.matrices import Cholesky, solve_positive
from fenchel.solvers.base import BatchSolver, BatchState, backtrack, evaluate
from fenchel.solvers.gis import largest_row_sum, require_nonnegative, require_seen, scaled_update

CHUNK = 2**22  # numbers in the matrices of (16) that are held at a time


@dataclass
class SMState(BatchState):
    """Adds what a variant computes once: the largest row sum (s, g2) or the factorised matrix (q)."""

    fixed: object = None


@dataclass(frozen=True)
class SM(BatchSolver):
    """Maximises a surrogate that touches the log-likelihood at the current weights.

    variant "s":  (12), separate in every weight; on features divided by f#, the largest row sum (6).
    variant "g1": (15), a Newton step on Q_T, label by label: matrices Σ m p_k x xᵀ + λ I.
    variant "g2": (16), a Newton step on Q_J, attribute by attribute, on features divided by f#.
    variant "q":  (21), the quadratic bound diag p − ppᵀ ⪯ ½(I − 11ᵀ/K): the matrix ½ Σ m x xᵀ + λ I is
                  factorised once. With one weight vector for two classes, p(1 − p) ≤ ¼.
    damped: steps of (15) and (16), which bound nothing, are halved while P rises; False takes them whole.
    """

    variant: str = "q"
    damped: bool = True
    needs: ClassVar[frozenset] = frozenset({"log", "gradient", "surrogates"})
    by_shards: ClassVar[bool] = False

    def __post_init__(self):
        if self.variant not in {"s", "g1", "g2", "q"}:
            raise ValueError(f"variant={self.variant!r}; there are 's', 'g1', 'g2', 'q'")

    def init(self, problem, start):
        if self.variant in {"s", "g2"}:
            require_nonnegative(problem, f"sm-{self.variant}")
        if self.variant == "s":
            require_seen(problem, "sm-s")
        elif problem.structure.mask is not None:
            raise ValueError(f"sm-{self.variant} moves all weights; for observed ones use sm-s or lbfgs")
        begun = super().init(problem, start)
        fixed = self._bound(problem) if self.variant == "q" else largest_row_sum(problem)
        return SMState(**vars(begun), fixed=fixed)

    def _bound(self, problem):
        """½ Σ m x xᵀ + λ I (¼ for one weight vector), factorised where it has full rank."""
        share = 0.5 if problem.design.matrix else 0.25
        try:
            return Cholesky(problem.quadratic(share * problem.examples.mass))
        except np.linalg.LinAlgError:
            return problem.quadratic(share * problem.examples.mass)

    def step(self, problem, state):
        now = state.evaluation
        if self.variant == "s":
            w = scaled_update(problem, now, state.fixed)
            state.evaluation = evaluate(problem, state, w)
            state.updates += problem.dim
            state.stalled = bool(np.array_equal(w, now.w))
            return
        gradient = now.gradient.reshape(-1, problem.design.outputs)
        if self.variant == "q":
            direction = -self._quadratic_step(problem, state.fixed, gradient).ravel()
            backtrack(problem, state, direction, damped=self.damped)
        elif self.variant == "g1":
            direction = -self._by_label(problem, now, gradient).ravel()
            backtrack(problem, state, direction, sufficient=0.0, damped=self.damped)
        else:
            direction = -self._by_attribute(problem, now, state.fixed, gradient).ravel()
            backtrack(problem, state, direction, sufficient=0.0, damped=self.damped)

    def _quadratic_step(self, problem, fixed, gradient):
        """(½FD̃Fᵀ + λI)⁻¹ G (I − 11ᵀ/K) + G 11ᵀ/(Kλ), of which (21) is the case λ = 0; G (A, K)."""
        solve = fixed.solve if isinstance(fixed, Cholesky) else partial(solve_positive, fixed)
        if not problem.design.matrix:
            return solve(gradient[:, 0])
        mean = gradient.mean(axis=1, keepdims=True)
        step = solve(gradient - mean)
        if problem.lam > 0.0:
            step[: problem.design.n_columns] += mean[: problem.design.n_columns] / problem.lam
        return step

    def _by_label(self, problem, now, gradient):
        """(15): H_k⁻¹ F_k for every label k."""
        mu, mass = problem.marginals_at(now), problem.examples.mass
        return np.column_stack(
            [
                solve_positive(problem.quadratic(mass * mu[:, k]), gradient[:, k])
                for k in range(gradient.shape[1])
            ]
        )

    def _by_attribute(self, problem, now, rate, gradient):
        """(16): H_j⁻¹ F_j for every attribute j, with f# · Σ m f_j (diag p − ppᵀ) + λ I on f/f#."""
        mu, lam, outputs = problem.marginals_at(now), problem.lam, problem.design.outputs
        step = np.empty_like(gradient)
        height = max(1, CHUNK // outputs**2)
        for start in range(0, gradient.shape[0], height):
            stop = min(start + height, gradient.shape[0])
            matrices = np.zeros((stop - start, outputs, outputs))
            _covariances(problem.columns, start, stop, rate, mu, matrices)
            # Without λ a constant over the labels is free, and the gradient has none: 11ᵀ changes nothing.
            own = max(problem.design.n_columns - start, 0) if lam > 0.0 else 0
            matrices[:own] += lam * np.eye(outputs)
            matrices[own:] += self._filler(problem, matrices[own:])
            step[start:stop] = _solve_each(matrices, gradient[start:stop, :, None])[:, :, 0]
        return step

    def _filler(self, problem, matrices):
        """What makes the matrices regular where λ = 0: 11ᵀ in their own scale; I where they are zero."""
        size = matrices.shape[1]
        scale = np.trace(matrices, axis1=1, axis2=2) / size
        ones = np.ones((size, size)) if problem.design.matrix else np.zeros((size, size))
        filler = scale[:, None, None] * (ones + 1e-12 * np.eye(size))
        filler[scale <= 0.0] = np.eye(size)
        return filler


def _solve_each(matrices, rhs):
    """matrix⁻¹ rhs of each; by pseudo-inverses where one is singular: λ is lost beside huge features."""
    try:
        return np.linalg.solve(matrices, rhs)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(matrices, hermitian=True) @ rhs


@njit(cache=True, nogil=True)
def _covariances(columns, start, stop, rate, mu, matrices):
    """matrices[j − start] += rate · Σ_i m_i x_ij (diag p_i − p_i p_iᵀ) for start ≤ j < stop; written."""
    outputs = columns.outputs
    for j in range(start, stop):
        out = matrices[j - start]
        for e in range(columns.entries.indptr[j], columns.entries.indptr[j + 1]):
            i = columns.entries.indices[e]
            weight = rate * columns.mass[i] * columns.entries.data[e]
            for k in range(outputs):
                scaled = weight * mu[i, k]
                out[k, k] += scaled
                for other in range(outputs):
                    out[k, other] -= scaled * mu[i, other]
