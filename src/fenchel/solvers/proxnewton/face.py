"""The minimum of the model over a few weights: where they keep their sign it is that of a plain quadratic.

    h(d) = ⟨slopes, d⟩ + ½ dᵀH d + Σ corner_t (|w_t + d_t| − |w_t|)

by the matrix H or, where that is too large, by conjugate gradients. A weight that a step would take beyond
zero stops there.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from fenchel._cache import njit
from fenchel._sparse import inner
from fenchel.matrices import Cholesky

RATES = 0.3 ** np.arange(4)
SWEEPS, LAST = 10, 1e-3  # with a matrix; a round that adds less than this share is the last
WORK, IN_A_ROW = 1e9, 20  # multiplications of all Newton steps, and steps without sweeps in between
RIDGE = (
    1e-10  # where features add up to one another: large steps along such directions, until a weight is zero
)
# Conjugate gradients: iterations, fewer on faces of many weights (imdb, C = 30 to 1e-3 and 1e-6: 104, 214
# passes; with 20: 118, 259; but digits at C = 10,000 with 10: not in 1,000), and the residual relative to the
# first.
MOST, MOST_OF_MANY, MANY, ENOUGH = 20, 10, 2000, 0.03


@dataclass
class Face:
    """corner: λ₁, or 0 of weights without penalty; diagonal: of H; product: d -> H d."""

    w: np.ndarray
    slopes: np.ndarray
    corner: np.ndarray
    diagonal: np.ndarray
    product: Callable

    def by_products(self):
        """A step, and by how much h decreases: conjugate gradients, the diagonal divided out."""
        slopes = self.slopes + self.corner * np.sign(self.w)
        step = conjugate_gradients(self.product, -slopes, self.diagonal)
        found = shortened(self.w, slopes, self.corner, step, self.product)
        return (found[0], found[2]) if found else (step, 0.0)

    def by_matrix(self, matrix):
        """The same by coordinate descent, which the matrix makes cheap, and Newton steps in turn."""
        w, slopes, total = self.w.copy(), self.slopes.copy(), 0.0
        left = int(np.clip(WORK / w.size**3, 4, 200))
        while left > 0:
            before = w != 0.0
            decrease = _sweeps(matrix, self.corner, SWEEPS, w, slopes)
            more, count = self._newton(matrix, w, slopes, min(left, IN_A_ROW))
            total, left = total + decrease + more, left - count
            if decrease + more <= LAST * total and np.array_equal(w != 0.0, before):
                break
        return w - self.w, total

    def _newton(self, matrix, w, slopes, most):
        """Newton steps over the weights that are not zero, again where some became so; both written.

        Returns by how much h decreased, and the steps made.
        """
        total, count = 0.0, 0
        while count < most:
            count += 1
            keep = (w != 0.0) | (self.corner == 0.0)
            if not keep.any():
                break
            step, signed = np.zeros_like(w), slopes + self.corner * np.sign(w)
            step[keep] = _solve(matrix[keep][:, keep], -signed[keep])
            found = shortened(w, signed, self.corner, step, matrix.__matmul__)
            if found is None:
                break
            w += found[0]
            slopes += found[1]
            total += found[2]
            if w[keep].all():
                break
        return total, count


def shortened(w, slopes, corner, step, product):
    """(d, H d, decrease) of the first of some parts of the step that decreases h; None where none does.

    slopes: with the sign of the corner. The last part is that up to the first weight that becomes zero: so
    far the step is straight, and h decreases along it.
    """
    turning = (step * w < 0.0) & (corner > 0.0) & (np.abs(step) > np.abs(w))
    rates = RATES[:1]
    if turning.any():
        rates = np.append(RATES, np.min(np.abs(w[turning] / step[turning])))
    for rate in rates:
        moved = rate * step
        crossed = turning & (np.abs(moved) >= np.abs(w))
        moved[crossed] = -w[crossed]
        curved = product(moved)
        change = inner(slopes + 0.5 * curved, moved)
        if change < 0.0:
            return moved, curved, -change
    return None


def _solve(matrix, rhs):
    """matrix⁻¹ rhs; zeros where it has no digits."""
    scale = np.sqrt(np.diag(matrix))
    matrix = matrix / np.outer(scale, scale)
    np.fill_diagonal(matrix, 1.0 + RIDGE)
    try:
        return Cholesky(matrix).solve(rhs / scale) / scale
    except LinAlgError:
        return np.zeros_like(rhs)


def conjugate_gradients(product, rhs, diagonal):
    """x with product(x) ≈ rhs."""
    x, r = np.zeros_like(rhs), rhs.copy()
    z = r / diagonal
    p, size = z.copy(), inner(r, z)
    enough = ENOUGH**2 * size
    for _ in range(MOST if x.size <= MANY else MOST_OF_MANY):
        curved = product(p)
        bend = inner(p, curved)
        if not bend > 0.0:
            break
        x += (size / bend) * p
        r -= (size / bend) * curved
        z = r / diagonal
        size, last = inner(r, z), size
        if not size > enough:
            break
        p = z + (size / last) * p
    return x


@njit(cache=True, nogil=True)
def _sweeps(matrix, corner, count, w, slopes):
    """So many rounds of coordinate descent on h; w and slopes written. Returns by how much it decreased."""
    decrease = 0.0
    for _ in range(count):
        for t in range(w.size):
            bend = matrix[t, t]
            if not bend > 0.0:
                continue
            target = w[t] - slopes[t] / bend
            new = target - min(max(target, -corner[t] / bend), corner[t] / bend)
            z = new - w[t]
            if z == 0.0:
                continue
            decrease -= z * (slopes[t] + 0.5 * bend * z) + corner[t] * (abs(new) - abs(w[t]))
            w[t] = new
            for j in range(w.size):
                slopes[j] += z * matrix[t, j]
    return decrease
