"""What L-BFGS remembers of the curvature: its last steps and the changes of the gradient along them.

The two-loop recursion touches every vector of the memory twice, one after the other, and each time the vector
it updates. Here its numbers come from inner products instead: one pass over the memory for the products with
the newest pair and the gradient, one for the sum of its vectors (Chen, Wang and Zhou 2014). At millions of
weights, where memory is what takes the time, that is half the traffic.
"""

from dataclasses import dataclass, field

import numpy as np

from fenchel._cache import njit
from fenchel._math import REORDER

CHUNK = 1024  # numbers of a vector that stay in the first cache while those of the memory pass by


@dataclass
class Pairs:
    """At most `memory` pairs s = w' − w, y = ∇' − ∇, in the `rows` of two arrays, oldest first."""

    memory: int
    dim: int
    rows: list = field(default_factory=list)

    def __post_init__(self):
        # Memory the system gives only where it is written to: a run of three steps takes three rows.
        self.steps, self.changes = np.empty((2, self.memory, self.dim))
        self.sy, self.yy = np.zeros(
            (2, self.memory, self.memory)
        )  # ⟨s_i, y_j⟩ for i not newer, and ⟨y_i, y_j⟩

    def __len__(self) -> int:
        return len(self.rows)

    def forget(self) -> None:
        self.rows.clear()

    def remember(self, design, before, after) -> None:
        """Add the pair between two evaluations in place of the oldest, unless it shows no curvature."""
        if len(self.rows) == self.memory:
            self.rows.pop(0)
        row = min(set(range(self.memory)) - set(self.rows))
        s, y = self.steps[row], self.changes[row]
        parts = design.for_each_part(
            self.dim,
            4 * self.dim,
            lambda start, stop: _subtract(start, stop, before.w, after.w, before.smooth, after.smooth, s, y),
        )
        product, square = map(sum, zip(*parts, strict=True))
        if product > 1e-16 * square:
            self.rows.append(row)
            self.sy[row, row], self.yy[row, row] = product, square

    def direction(self, design, gradient) -> tuple[np.ndarray, float]:
        """−H · gradient, H the approximate inverse Hessian, and its product with the gradient."""
        rows, out = np.array(self.rows, dtype=np.uint64), np.empty(self.dim)
        work = 4 * (len(rows) + 1) * self.dim
        with_gradient = self._products(design, rows, gradient, work)
        along = np.zeros((2, len(rows)))
        scale = _two_loops(rows, self.sy, self.yy, with_gradient, along)
        slopes = design.for_each_part(
            self.dim,
            work,
            lambda start, stop: _combine(
                start, stop, rows, self.steps, self.changes, along, scale, gradient, out
            ),
        )
        return out, sum(slopes)

    def _products(self, design, rows, gradient, work):
        """(2, pairs): ⟨s, gradient⟩ and ⟨y, gradient⟩ of each; those with the newest y are kept."""
        if not len(rows):
            return np.zeros((2, 0))

        def part(start, stop):
            out = np.zeros((4, len(rows)))
            _multiply(start, stop, rows, self.steps, self.changes, gradient, out)
            return out

        found, newest = sum(design.for_each_part(self.dim, work, part)), self.rows[-1]
        self.sy[self.rows, newest] = found[2]
        self.yy[self.rows, newest] = self.yy[newest, self.rows] = found[3]
        return found[:2]


@njit(cache=True, nogil=True, fastmath=REORDER)
def _subtract(start, stop, w, w_after, gradient, gradient_after, s, y):
    """s = w' − w and y = ∇' − ∇ from start to stop; s and y written. Returns ⟨s, y⟩ and ⟨y, y⟩ there."""
    product, square = 0.0, 0.0
    for j in range(np.uint64(start), np.uint64(stop)):
        s[j] = w_after[j] - w[j]
        y[j] = gradient_after[j] - gradient[j]
        product += s[j] * y[j]
        square += y[j] * y[j]
    return product, square


@njit(cache=True, nogil=True, fastmath=REORDER)
def _multiply(start, stop, rows, steps, changes, gradient, out):
    """out (4, pairs) += ⟨s, ∇⟩, ⟨y, ∇⟩, ⟨s, y'⟩, ⟨y, y'⟩ of each from start to stop, y' the newest."""
    for first in range(start, stop, CHUNK):
        last = min(first + CHUNK, stop)
        g, newest = gradient[first:last], changes[rows[rows.size - 1], first:last]
        for k in range(rows.size):
            s, y = steps[rows[k], first:last], changes[rows[k], first:last]
            sg, yg, sy, yy = 0.0, 0.0, 0.0, 0.0
            for j in range(g.size):
                sg += s[j] * g[j]
                yg += y[j] * g[j]
                sy += s[j] * newest[j]
                yy += y[j] * newest[j]
            out[0, k] += sg
            out[1, k] += yg
            out[2, k] += sy
            out[3, k] += yy


@njit(cache=True, nogil=True)
def _two_loops(rows, sy, yy, with_gradient, along):
    """Nocedal's recursion on inner products: H ∇ = scale ∇ + Σ along[0] s + Σ along[1] y; along written."""
    n = rows.size
    if n == 0:
        return 1.0
    c, alpha = along[0], along[1]
    for i in range(n - 1, -1, -1):
        product = with_gradient[0, i]
        for j in range(i + 1, n):
            product -= alpha[j] * sy[rows[i], rows[j]]
        alpha[i] = product / sy[rows[i], rows[i]]
    newest = rows[n - 1]
    scale = sy[newest, newest] / yy[newest, newest]
    for i in range(n):
        product = with_gradient[1, i]
        for j in range(n):
            product -= alpha[j] * yy[rows[i], rows[j]]
        product *= scale
        for j in range(i):
            product += c[j] * sy[rows[j], rows[i]]
        c[i] = alpha[i] - product / sy[rows[i], rows[i]]
    for i in range(n):
        alpha[i] *= -scale
    return scale


@njit(cache=True, nogil=True, fastmath=REORDER)
def _combine(start, stop, rows, steps, changes, along, scale, gradient, out):
    """out = −(scale ∇ + Σ along[0] s + Σ along[1] y) from start to stop, written; returns ⟨out, ∇⟩ there."""
    slope = 0.0
    for first in range(start, stop, CHUNK):
        last = min(first + CHUNK, stop)
        g, d = gradient[first:last], out[first:last]
        for j in range(d.size):
            d[j] = -scale * g[j]
        for k in range(rows.size):
            s, y, a, b = steps[rows[k], first:last], changes[rows[k], first:last], along[0, k], along[1, k]
            for j in range(d.size):
                d[j] -= a * s[j] + b * y[j]
        for j in range(d.size):
            slope += d[j] * g[j]
    return slope
