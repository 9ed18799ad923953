"""Improved iterative scaling: huang2010 section 2.2, (28)."""

from dataclasses import dataclass
from math import exp, log
from typing import ClassVar

import numpy as np
from numba import njit

from fenchel import _sparse
from fenchel.solvers.base import BatchSolver, evaluate
from fenchel.solvers.gis import require_nonnegative, require_seen


@dataclass(frozen=True)
class IIS(BatchSolver):
    """Updates all weights at once like GIS, with the row sum of each example instead of the largest.

    A_t(z) = Q_t(z) + Σ_i m_i p_i x_it (e^{z f#(i)} − 1)/f#(i),    f#(i) = Σ_t x_it
    """

    needs: ClassVar[frozenset] = frozenset({"log", "gradient", "columns"})

    def init(self, problem, start):
        require_nonnegative(problem, "iis")
        require_seen(problem, "iis")
        return super().init(problem, start)

    def step(self, problem, state):
        now = state.evaluation
        w = now.w.copy()
        expected = problem.examples.mass * now.mu[:, 0]
        sums = _sparse.row_sums(problem.examples.rows)
        touched = _update_all(problem.design.columns, expected, sums, problem.empirical, problem.lam, w)
        state.passes += touched / max(problem.examples.rows.nnz, 1)
        state.updates += problem.dim
        state.stalled = bool(np.array_equal(w, now.w))
        state.evaluation = evaluate(problem, state, w, now.b)


@njit(cache=True)
def _update_all(columns, expected, sums, empirical, lam, w):
    """Solve A_t'(z) = 0 for every t; w (d,) written. Returns the non-zeros read beyond the first time."""
    touched = 0
    for t in range(w.size):
        count = int(columns.indptr[t + 1] - columns.indptr[t])
        if count > 0 or lam > 0.0:
            z, iterations = _solve(columns, t, expected, sums, empirical[t] - lam * w[t], lam)
            w[t] += z
            touched += (iterations - 1) * count
    return touched


@njit(cache=True)
def _solve(columns, t, expected, sums, c, lam):
    """Root of Σ_i e_i x_it e^{z f#(i)} + λ z = c, increasing and convex in z, by Newton from the right."""
    z = 0.0
    for k in range(100):
        total, slope, least = 0.0, 0.0, 1e300
        for e in range(columns.indptr[t], columns.indptr[t + 1]):
            i = columns.indices[e]
            term = expected[i] * columns.data[e] * exp(z * sums[i])
            total += term
            slope += term * sums[i]
            if term > 0.0:
                least = min(least, sums[i])
        excess = total + lam * z - c
        step = excess / (slope + lam) if slope + lam > 0.0 else 0.0
        if k == 0 and excess < 0.0:
            # A Newton step from the left lands right of the root; so do two closed-form bounds.
            step = -step
            if total > 0.0:
                step = min(step, log(c / total) / least)
            if lam > 0.0:
                step = min(step, (c - total) / lam)
            step = -step
        z -= step
        if k > 0 and step <= 1e-14 * max(abs(z), 1e-300):
            break
    return z, k + 1
