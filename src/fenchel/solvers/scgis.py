"""Sequential conditional GIS: huang2010 section 2.2, with the linear bound or the tighter log bound (39)."""

from dataclasses import dataclass
from math import exp
from typing import ClassVar

import numpy as np

from fenchel._cache import helper, njit
from fenchel._math import TINY, solve_exponential
from fenchel.solvers.columns import FARTHEST, ColumnSolver, move_weight
from fenchel.solvers.gis import require_nonnegative, require_seen


@dataclass(frozen=True)
class SCGIS(ColumnSolver):
    """Minimises, weight by weight, the surrogate of GIS with f_t# = max f_t(x, y) in the place of f#.

    bound "linear": A_t(z) = Q_t(z) + (e^{z f_t#} − 1)/f_t# · E_t,   E_t = Σ p̃(x) p(y|x) f_t(x, y)
    bound "log":    Q_t(z) + P̃_t log(1 + (e^{z f_t#} − 1)/(f_t# P̃_t) · E_t), tighter: (39)
    order: "random" permutations or "cyclic" (4.4). evaluate: as in `ColumnSolver`. Without a regulariser the
    linear bound has the closed form (25).
    """

    bound: str = "linear"
    order: str = "random"
    evaluate: str = "each pass"
    seed: int = 0
    needs: ClassVar[frozenset] = frozenset({"log", "gradient", "columns"})
    by_shards: ClassVar[bool] = False

    def init(self, problem, start):
        if self.bound not in {"linear", "log"}:
            raise ValueError(f"bound={self.bound!r}; there are 'linear', 'log'")
        require_nonnegative(problem, "scgis")
        require_seen(problem, "scgis")
        return super().init(problem, start)

    def kernel(self):
        return _epoch, self.bound == "log"


@njit(cache=True, nogil=True)
def _epoch(columns, order, empirical, lam, logarithmic, w, exponentials, sums):
    """One pass over the weights; w (d,), exponentials and sums written. Returns the non-zeros read."""
    touched = 0
    for t in order:
        a, k = np.uint64(t // columns.outputs), np.uint64(t % columns.outputs)
        expected, largest, covered = _expectation(columns, a, k, exponentials, sums)
        own = lam if t < columns.penalised else 0.0
        if largest == 0.0:
            w[t] = 0.0 if own > 0.0 else w[t]
            continue
        c = empirical[t] - own * w[t]
        if logarithmic:
            z = _solve_log(c, expected, largest, covered, own)
        else:
            z = solve_exponential(c, expected, largest, own)
        z = min(max(z, -FARTHEST / largest), FARTHEST / largest)
        w[t] += z
        move_weight(columns, a, k, z, exponentials, sums)
        touched += int(columns.entries.indptr[a + np.uint64(1)] - columns.entries.indptr[a])
    return touched


@helper(cache=True, nogil=True)
def _expectation(columns, a, k, exponentials, sums):
    """E_t, f_t# and P̃_t, the mass of the examples that have the feature at all."""
    expected, largest, covered = 0.0, 0.0, 0.0
    last = columns.mass.size
    for e in range(columns.entries.indptr[a], columns.entries.indptr[a + np.uint64(1)]):
        row, x = columns.entries.indices[e], columns.entries.data[e]
        i = columns.owner[row]
        expected += columns.mass[i] * exponentials[row * np.uint64(columns.stride) + k] / sums[i] * x
        largest = max(largest, x)
        if i != last:
            covered += columns.mass[i]
            last = i
    return expected, largest, covered


@helper(cache=True)
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
        bottom = max(a + (1.0 - a) * shrunk if z > 0.0 else 1.0 - a + a * shrunk, TINY)
        value = expected * (1.0 if z > 0.0 else shrunk) / bottom
        slope = rate * expected * (1.0 - a) * shrunk / bottom / bottom
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
