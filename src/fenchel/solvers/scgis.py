"""Sequential conditional GIS: huang2010 section 2.2, with the linear bound or the tighter log bound (39)."""

from dataclasses import dataclass
from math import exp
from typing import ClassVar

import numpy as np
from numba import njit

from fenchel._math import sigmoid, solve_exponential
from fenchel.solvers.columns import ColumnSolver
from fenchel.solvers.gis import require_nonnegative, require_seen


@dataclass(frozen=True)
class SCGIS(ColumnSolver):
    """Minimises, feature by feature, the surrogate of GIS with f_t# = max_i x_it in the place of f#.

    bound "linear": A_t(z) = Q_t(z) + (e^{z f_t#} − 1)/f_t# · E_t,   E_t = Σ_i m_i p_i x_it
    bound "log":    Q_t(z) + P̃_t log(1 + (e^{z f_t#} − 1)/(f_t# P̃_t) · E_t), tighter: (39)
    order: "random" permutations or "cyclic" (4.4).
    """

    bound: str = "linear"
    order: str = "random"
    seed: int = 0
    needs: ClassVar[frozenset] = frozenset({"log", "gradient", "columns"})

    def init(self, problem, start):
        if self.bound not in {"linear", "log"}:
            raise ValueError(f"bound={self.bound!r}; there are 'linear', 'log'")
        require_nonnegative(problem, "scgis")
        require_seen(problem, "scgis")
        return super().init(problem, start)

    def kernel(self):
        return _epoch, self.bound == "log"


@njit(cache=True, nogil=True)
def _epoch(columns, order, mass, empirical, lam, logarithmic, w, scores):
    """One pass over the columns; w (d,) and scores (n,) written. Returns the non-zeros read."""
    touched = 0
    for t in order:
        start, stop = columns.indptr[t], columns.indptr[t + 1]
        expected, largest, covered = 0.0, 0.0, 0.0
        for e in range(start, stop):
            i = columns.indices[e]
            expected += mass[i] * sigmoid(scores[i]) * columns.data[e]
            largest = max(largest, columns.data[e])
            covered += mass[i]
        if largest == 0.0:
            w[t] = 0.0 if lam > 0.0 else w[t]
            continue
        c = empirical[t] - lam * w[t]
        z = _solve_log(c, expected, largest, covered, lam) if logarithmic else 0.0
        if not logarithmic:
            z = solve_exponential(c, expected, largest, lam)
        w[t] += z
        for e in range(start, stop):
            scores[columns.indices[e]] += z * columns.data[e]
        touched += int(stop - start)
    return touched


@njit(cache=True)
def _solve_log(c, expected, rate, covered, lam):
    """Root of  λ z + E e^{fz} / (1 + (e^{fz} − 1) a) = c,  a = E/(f P̃_t) ≤ 1, by Newton in a bracket.

    The left side increases in z. The right end of the bracket is the root of the linear bound's equation
    where that exists, else where the exponential has saturated.
    """
    a = min(expected / (rate * covered), 1.0)
    low, high, z = -1e300, 1e300, 0.0
    for _ in range(200):
        shrunk = exp(-abs(rate * z))
        # E e^{fz} / (1 − a + a e^{fz}), written with the exponential that cannot overflow
        if z > 0.0:
            value = expected / (a + (1.0 - a) * shrunk)
            slope = rate * expected * (1.0 - a) * shrunk / (a + (1.0 - a) * shrunk) ** 2
        else:
            value = expected * shrunk / (1.0 - a + a * shrunk)
            slope = rate * expected * (1.0 - a) * shrunk / (1.0 - a + a * shrunk) ** 2
        excess = value + lam * z - c
        if excess > 0.0:
            high = z
        else:
            low = z
        step = -excess / (slope + lam) if slope + lam > 0.0 else -np.sign(excess) / rate
        if abs(step) <= 1e-15 * max(abs(z), 1e-300) or excess == 0.0:
            break
        limit = 5.0 / rate + abs(z)
        step = min(max(step, -limit), limit)
        if not low < z + step < high:
            step = 0.5 * (low + high) - z
        z += step
    return z
