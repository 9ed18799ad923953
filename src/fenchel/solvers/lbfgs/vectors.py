"""Sums and products of vectors of weights: by threads over parts of long ones, by NumPy for short ones.

Of millions of weights memory is what takes the time, so the kernels walk over it once. Of a few hundred NumPy
is as fast, and nothing has to be compiled before a first fit.
"""

import numpy as np

from fenchel._cache import njit
from fenchel._math import REORDER

SHORT = 900  # weights; BLAS does as many with ten vectors in one thread: the same digits on every machine
CHUNK = 1024  # numbers of a vector that stay in the first cache while those of the memory pass by


def dot(design, a, b) -> float:
    """⟨a, b⟩."""
    if a.size <= SHORT:
        return float(a @ b)
    return _sum_of_parts(design, a.size, 2, lambda start, stop: _dot(start, stop, a, b))


def moved(design, w, step, direction) -> np.ndarray:
    """w + step · direction."""
    if w.size <= SHORT:
        return w + step * direction
    out = np.empty_like(w)
    _sum_of_parts(design, w.size, 2, lambda start, stop: _move(start, stop, w, step, direction, out))
    return out


def difference(design, before, after, s, y) -> tuple[float, float]:
    """s = w' − w and y = ∇' − ∇ between two points, written; ⟨s, y⟩ and ⟨y, y⟩."""
    if s.size <= SHORT:
        np.subtract(after.w, before.w, out=s)
        np.subtract(after.smooth, before.smooth, out=y)
        return float(s @ y), float(y @ y)
    given = before.w, after.w, before.smooth, after.smooth, s, y
    parts = design.for_each_part(s.size, 4 * s.size, lambda start, stop: _subtract(start, stop, *given))
    product, square = map(sum, zip(*parts, strict=True))
    return product, square


def products(design, rows, steps, changes, gradient) -> np.ndarray:
    """(4, pairs): ⟨s, ∇⟩, ⟨y, ∇⟩, ⟨s, y'⟩, ⟨y, y'⟩ of the pairs in these rows, y' the newest.

    rows: a slice, or their numbers.
    """
    if gradient.size <= SHORT:
        s, y = steps[rows], changes[rows]
        return np.array([s @ gradient, y @ gradient, s @ y[-1], y @ y[-1]])
    rows = _numbered(rows, len(steps))

    def part(start, stop):
        out = np.zeros((4, len(rows)))
        _multiply(start, stop, rows, steps, changes, gradient, out)
        return out

    return _sum_of_parts(design, gradient.size, 4 * (len(rows) + 1), part)


def combination(design, rows, steps, changes, along, scale, gradient) -> tuple[np.ndarray, float]:
    """d = −(scale ∇ + Σ along[0] s + Σ along[1] y) over the pairs in these rows; and ⟨d, ∇⟩."""
    if gradient.size <= SHORT:
        d = -scale * gradient - along[0] @ steps[rows] - along[1] @ changes[rows]
        return d, float(d @ gradient)
    rows = _numbered(rows, len(steps))
    d, given = np.empty_like(gradient), (rows, steps, changes, along, scale, gradient)
    work = 4 * (len(rows) + 1)
    slope = _sum_of_parts(design, d.size, work, lambda start, stop: _combine(start, stop, *given, d))
    return d, slope


def _numbered(rows: slice | np.ndarray, count: int) -> np.ndarray:
    """The rows of an array of so many by their numbers, as kernels take them."""
    return np.arange(count, dtype=np.uint64)[rows] if isinstance(rows, slice) else rows


def _sum_of_parts(design, size, work, task):
    """The sum of task(start, stop) over parts of the vectors; work: multiplications for each number."""
    return sum(design.for_each_part(size, work * size, task))


@njit(cache=True, nogil=True, fastmath=REORDER)
def _dot(start, stop, a, b):
    total = 0.0
    for j in range(np.uint64(start), np.uint64(stop)):
        total += a[j] * b[j]
    return total


@njit(cache=True, nogil=True)
def _move(start, stop, w, step, direction, out):
    """out = w + step · direction; out written."""
    for j in range(np.uint64(start), np.uint64(stop)):
        out[j] = w[j] + step * direction[j]
    return 0.0


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
