"""Primal coordinate descent: huang2010 Algorithm 3, with the O(1) line-search test of section 3.2.1."""

from dataclasses import dataclass
from math import exp, expm1, log, log1p
from typing import ClassVar

import numpy as np

from fenchel._cache import helper, njit
from fenchel.solvers.columns import FARTHEST, ColumnSolver, move_weight

BETA = 0.5  # step reduction


@dataclass(frozen=True)
class CDPrimal(ColumnSolver):
    """One Newton step per weight, z = −A'(0)/A''(0), shortened until P decreases enough.

    line_search "fast": first the bound (38)-(39), which costs O(1); it assumes f_t ≥ 0, so a column with
    negative entries, and "plain", use the decrease itself, (35).
    gamma: what share of the decrease that the slope promises is enough (0.01 in 5.2, 0.001 in 5.1).
    order: "random" permutations or "cyclic". evaluate: as in `ColumnSolver`.
    """

    line_search: str = "fast"
    gamma: float = 0.01
    order: str = "random"
    evaluate: str = "each pass"
    seed: int = 0
    needs: ClassVar[frozenset] = frozenset({"log", "gradient", "columns"})
    by_shards: ClassVar[bool] = False

    def init(self, problem, start):
        if self.line_search not in {"fast", "plain"}:
            raise ValueError(f"line_search={self.line_search!r}; there are 'fast', 'plain'")
        if not 0.0 < self.gamma < 0.5:
            raise ValueError(f"gamma={self.gamma!r} must be between 0 and 1/2")
        return super().init(problem, start)

    def kernel(self):
        return _epoch, (self.line_search == "fast", self.gamma)


@njit(cache=True, nogil=True)
def _epoch(columns, order, empirical, lam, search, w, exponentials, sums):
    """One pass over the weights; w (d,), exponentials and sums written. Returns the non-zeros read.

    search: whether it is the fast one, and γ.
    """
    touched, (fast, gamma) = 0, search
    for t in order:
        a, k = np.uint64(t // columns.outputs), np.uint64(t % columns.outputs)
        count = int(columns.entries.indptr[a + np.uint64(1)] - columns.entries.indptr[a])
        expected, curvature, covered, smallest, largest = _moments(columns, a, k, exponentials, sums)
        touched += count
        own = lam if t < columns.penalised else 0.0
        slope, curvature = own * w[t] - empirical[t] + expected, curvature + own
        if slope == 0.0 or curvature <= 0.0:
            continue
        z = -slope / curvature
        reach = max(largest, -smallest)
        if reach > 0.0:
            z = min(max(z, -FARTHEST / reach), FARTHEST / reach)
        bounded = fast and smallest >= 0.0 and largest > 0.0
        for _ in range(60):
            change = own * z * (w[t] + 0.5 * z) - z * empirical[t]
            if bounded and change + _bound(z, expected, largest, covered) <= gamma * z * slope:
                break
            touched += count
            if change + _log_ratio(columns, a, k, exponentials, sums, z) <= gamma * z * slope:
                break
            z *= BETA
        else:
            continue
        w[t] += z
        move_weight(columns, a, k, z, exponentials, sums)
    return touched


@njit(cache=True, nogil=True)
def _moments(columns, a, k, exponentials, sums):
    """Σ p̃(x) E[f_t], Σ p̃(x) Var[f_t], (30) and (31) at z = 0, P̃_t, and the least and largest f_t."""
    expected, variance, covered, smallest, largest = 0.0, 0.0, 0.0, 0.0, 0.0
    end, e = columns.entries.indptr[a + np.uint64(1)], columns.entries.indptr[a]
    while e < end:
        i = columns.owner[columns.entries.indices[e]]
        mean, square = 0.0, 0.0
        while e < end and columns.owner[columns.entries.indices[e]] == i:
            row, x = columns.entries.indices[e], columns.entries.data[e]
            p = exponentials[row * np.uint64(columns.stride) + k] / sums[i]
            mean += p * x
            square += p * x * x
            smallest, largest = min(smallest, x), max(largest, x)
            e += np.uint64(1)
        expected += columns.mass[i] * mean
        variance += columns.mass[i] * max(square - mean * mean, 0.0)
        covered += columns.mass[i]
    return expected, variance, covered, smallest, largest


@njit(cache=True)
def _bound(z, expected, largest, covered):
    """P̃_t log(1 + (e^{z f#} − 1) E/(f# P̃_t)) of (39), without overflow."""
    a = min(expected / (largest * covered), 1.0)
    u = z * largest
    if u > 1.0 and a > 0.0:
        return covered * (u + log(a + (1.0 - a) * exp(-u)))
    return covered * log1p(a * expm1(u)) if a < 1.0 else covered * u


@helper(cache=True, nogil=True)
def _log_ratio(columns, a, k, exponentials, sums, z):
    """Σ_x p̃(x) log(1 + Σ_y p(y|x)(e^{z f_t(x,y)} − 1)): the change of the log-partitions, (17).

    One exponential serves a run of equal values (4.3).
    """
    total, value, growth = 0.0, 0.0, 0.0
    end, e = columns.entries.indptr[a + np.uint64(1)], columns.entries.indptr[a]
    while e < end:
        i, ratio = columns.owner[columns.entries.indices[e]], 0.0
        while e < end and columns.owner[columns.entries.indices[e]] == i:
            row, x = columns.entries.indices[e], columns.entries.data[e]
            if x != value:
                value, growth = x, expm1(z * x)
            ratio += exponentials[row * np.uint64(columns.stride) + k] / sums[i] * growth
            e += np.uint64(1)
        total += columns.mass[i] * log1p(max(ratio, -1.0 + 1e-16))
    return total
