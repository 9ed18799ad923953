"""Primal coordinate descent: huang2010 Algorithm 3, with the O(1) line-search test of section 3.2.1."""

from dataclasses import dataclass
from math import exp, expm1, log, log1p
from typing import ClassVar

from numba import njit

from fenchel._math import log1pexp, sigmoid, sigmoid_pair
from fenchel.solvers.columns import ColumnSolver

BETA, GAMMA = 0.5, 0.01  # step reduction and sufficient decrease, huang2010 5.2


@dataclass(frozen=True)
class CDPrimal(ColumnSolver):
    """One Newton step per weight, z = −A'(0)/A''(0), shortened until P decreases enough.

    line_search "fast": first the bound (38)-(39), which costs O(1); it assumes x_t ≥ 0, so a column with
    negative entries, and "plain", use the decrease itself, (35).
    order: "random" permutations or "cyclic".
    """

    line_search: str = "fast"
    order: str = "random"
    seed: int = 0
    needs: ClassVar[frozenset] = frozenset({"log", "gradient", "columns"})

    def init(self, problem, start):
        if self.line_search not in {"fast", "plain"}:
            raise ValueError(f"line_search={self.line_search!r}; there are 'fast', 'plain'")
        return super().init(problem, start)

    def kernel(self):
        return _epoch, self.line_search == "fast"


@njit(cache=True, nogil=True)
def _epoch(columns, order, mass, empirical, lam, fast, w, scores):
    """One pass over the columns; w (d,) and scores (n,) written. Returns the non-zeros read."""
    touched = 0
    for t in order:
        start, stop = columns.indptr[t], columns.indptr[t + 1]
        expected, curvature, covered = 0.0, lam, 0.0
        largest, smallest = 0.0, 0.0
        for e in range(start, stop):
            i, x = columns.indices[e], columns.data[e]
            p, q = sigmoid_pair(scores[i])
            expected += mass[i] * p * x
            curvature += mass[i] * p * q * x * x
            covered += mass[i]
            largest = max(largest, x)
            smallest = min(smallest, x)
        touched += int(stop - start)
        slope = lam * w[t] - empirical[t] + expected
        if slope == 0.0 or curvature <= 0.0:
            continue
        z = -slope / curvature
        bounded = fast and smallest >= 0.0 and largest > 0.0
        for _ in range(60):
            change = lam * z * (w[t] + 0.5 * z) - z * empirical[t]
            if bounded and change + _bound(z, expected, largest, covered) <= GAMMA * z * slope:
                break
            touched += int(stop - start)
            if change + _log_ratio(columns, t, mass, scores, z) <= GAMMA * z * slope:
                break
            z *= BETA
        else:
            continue
        w[t] += z
        for e in range(start, stop):
            scores[columns.indices[e]] += z * columns.data[e]
    return touched


@njit(cache=True)
def _bound(z, expected, largest, covered):
    """P̃_t log(1 + (e^{z f#} − 1) E/(f# P̃_t)) of (39), without overflow."""
    a = min(expected / (largest * covered), 1.0)
    u = z * largest
    if u > 1.0 and a > 0.0:
        return covered * (u + log(a + (1.0 - a) * exp(-u)))
    return covered * log1p(a * expm1(u)) if a < 1.0 else covered * u


@njit(cache=True)
def _log_ratio(columns, t, mass, scores, z):
    """Σ_i m_i log(1 + p_i (e^{z x_it} − 1)): the change of the log-partitions, (17)."""
    total = 0.0
    for e in range(columns.indptr[t], columns.indptr[t + 1]):
        i = columns.indices[e]
        u = z * columns.data[e]
        if abs(u) > 1.0:  # p may underflow while p eᵘ does not
            total += mass[i] * (log1pexp(scores[i] + u) - log1pexp(scores[i]))
        else:
            total += mass[i] * log1p(sigmoid(scores[i]) * expm1(u))
    return total
