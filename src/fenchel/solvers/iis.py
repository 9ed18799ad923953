"""Improved iterative scaling: huang2010 section 2.2, (28)."""

from dataclasses import dataclass
from math import exp, log
from typing import ClassVar

import numpy as np

from fenchel._cache import njit
from fenchel.solvers.base import BatchSolver, evaluate
from fenchel.solvers.columns import FARTHEST
from fenchel.solvers.gis import require_nonnegative, require_seen, row_sums


@dataclass(frozen=True)
class IIS(BatchSolver):
    """Updates all weights at once like GIS, with the feature sum of each output instead of the largest.

    A_t(z) = Q_t(z) + Σ p̃(x) p(y|x) f_t(x, y) (e^{z f#(x, y)} − 1)/f#(x, y),    f#(x, y) = Σ_t f_t(x, y)
    """

    needs: ClassVar[frozenset] = frozenset({"log", "gradient", "columns"})
    by_shards: ClassVar[bool] = False

    def init(self, problem, start):
        require_nonnegative(problem, "iis")
        require_seen(problem, "iis")
        return super().init(problem, start)

    def step(self, problem, state):
        now, columns = state.evaluation, problem.columns
        w = now.w.copy()
        mu = problem.marginals_at(now).ravel()
        sums = row_sums(problem)
        touched = _update_all(columns, problem.present, mu, sums, problem.empirical, problem.lam, w)
        state.passes += touched / max(columns.entries.nnz * columns.outputs, 1)
        state.updates += problem.dim
        state.stalled = bool(np.array_equal(w, now.w))
        state.evaluation = evaluate(problem, state, w)


@njit(cache=True, nogil=True)
def _update_all(columns, weights, mu, sums, empirical, lam, w):
    """Solve A_t'(z) = 0 for every t of weights; w (d,) written. Returns non-zeros read but the first time."""
    touched = 0
    for t in weights:
        a, k = np.uint64(t // columns.outputs), np.uint64(t % columns.outputs)
        count = int(columns.entries.indptr[a + np.uint64(1)] - columns.entries.indptr[a])
        own = lam if t < columns.penalised else 0.0
        if count > 0 or own > 0.0:
            z, iterations = _solve(columns, a, k, mu, sums, empirical[t] - own * w[t], own)
            w[t] += z
            touched += (iterations - 1) * count
    return touched


@njit(cache=True, nogil=True)
def _solve(columns, a, k, mu, sums, c, lam):
    """Root of Σ p̃ p f e^{z f#} + λ z = c, increasing and convex in z, by Newton from the right."""
    z = 0.0
    for iteration in range(100):
        total, slope, least, largest = _moments(columns, a, k, mu, sums, z)
        excess = total + lam * z - c
        step = excess / (slope + lam) if slope + lam > 0.0 else 0.0
        if iteration == 0 and excess < 0.0:
            # A Newton step from the left lands right of the root; so do two closed-form bounds.
            step = -step
            if total > 0.0:
                step = min(step, log(c / total) / least)
            if lam > 0.0:
                step = min(step, (c - total) / lam)
            step = -step
        z = min(z - step, FARTHEST / largest) if largest > 0.0 else z - step
        if iteration > 0 and step <= 1e-14 * max(abs(z), 1e-300):
            break
    return z, iteration + 1


@njit(cache=True, nogil=True)
def _moments(columns, a, k, mu, sums, z):
    """Σ p̃ p f e^{z f#}, its derivative in z, and the least and largest f# that have a part in it."""
    total, slope, least, largest = 0.0, 0.0, 1e300, 0.0
    value, growth = 0.0, 1.0
    for e in range(columns.entries.indptr[a], columns.entries.indptr[a + np.uint64(1)]):
        row = columns.entries.indices[e]
        if sums[row] != value:
            value, growth = sums[row], exp(z * sums[row])
        p = mu[row * np.uint64(columns.stride) + k]
        if p == 0.0:  # an outcome lost to underflow, whose exponential may be infinite
            continue
        term = columns.mass[columns.owner[row]] * p * columns.entries.data[e] * growth
        total += term
        slope += term * value
        if term > 0.0:
            least, largest = min(least, value), max(largest, value)
    return total, slope, least, largest
