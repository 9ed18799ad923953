"""The one who knows λ, and λ₁ where weights are to be exactly zero."""

from dataclasses import dataclass
from math import nan, sqrt
from typing import ClassVar

import numpy as np

from fenchel._cache import njit
from fenchel._math import REORDER
from fenchel._sparse import sum_of_squares
from fenchel.constants import penalties


@dataclass(frozen=True)
class L2:
    """g(w) = λ/2 ‖w‖². Its conjugate at u is ‖u‖²/(2λ), attained at w = u/λ. λ = 0 leaves no dual."""

    lam: float
    l1: ClassVar[float] = 0.0
    threshold: ClassVar[float] = 0.0

    def read(self, v: np.ndarray) -> np.ndarray:
        """The w that attains the conjugate at u = λ v; v itself."""
        return v

    def value(self, w: np.ndarray) -> float:
        return 0.5 * self.lam * sum_of_squares(w)

    def gradient(self, w: np.ndarray) -> np.ndarray:
        return self.lam * w

    def subgradient(self, w: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The subgradient of P of least norm, from the gradient of its smooth part: here that gradient."""
        return gradient

    def weights(self, u: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The w that attains the conjugate at u; in `out`, perhaps u itself, if given."""
        return np.divide(u, self.lam, out=out)

    def conjugate(self, w: np.ndarray) -> float:
        """g*(u) at the u whose conjugate is attained at w."""
        return self.value(w)

    def gap(self, w: np.ndarray, gradient: np.ndarray, loss: float) -> float:
        """g(w) + g*(u) − ⟨w, u⟩ at u = λw − ∇P(w): ‖∇P(w)‖²/(2λ); nan where λ = 0."""
        return float(np.linalg.norm(gradient)) ** 2 / (2.0 * self.lam) if self.lam > 0.0 else nan

    def slack(self, w: np.ndarray, gap: float, loss: float, error: float) -> float:
        """By how much the gap may grow where the gradient is off by `error` in norm."""
        return sqrt(2.0 * gap / self.lam) * error + error**2 / (2.0 * self.lam) if self.lam > 0.0 else nan


@dataclass(frozen=True)
class ElasticNet:
    """g(w) = λ₁‖w‖₁ + λ/2 ‖w‖², λ₁ > 0: weights that do not pay are exactly zero.

    Its conjugate at u is ‖soft(u)‖²/(2λ), soft(u) = sign(u) max(|u| − λ₁, 0), attained at w = soft(u)/λ; with
    λ = 0 it is 0 where all |u_j| ≤ λ₁, else ∞.
    """

    lam: float
    l1: float

    @property
    def threshold(self) -> float:
        """λ₁/λ, where v = u/λ begins to count: w = soft(v, λ₁/λ)."""
        return self.l1 / self.lam

    def read(self, v: np.ndarray) -> np.ndarray:
        """The w that attains the conjugate at u = λ v."""
        return v - np.clip(v, -self.threshold, self.threshold)

    def value(self, w: np.ndarray) -> float:
        return _value(w, self.lam, self.l1)

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Of the smooth part."""
        return self.lam * w

    def subgradient(self, w: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The subgradient of P of least norm (the pseudo-gradient), from the gradient of its smooth part."""
        out = gradient.copy()  # which goes on behind w where coordinates are free
        _subgradient(w, gradient, self.l1, out)
        return out

    def weights(self, u: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The w that attains the conjugate at u; in `out`, perhaps u itself, if given."""
        return np.divide(u - np.clip(u, -self.l1, self.l1), self.lam, out=out)

    def conjugate(self, w: np.ndarray) -> float:
        """g*(u) at the u whose conjugate is attained at w."""
        return 0.5 * self.lam * sum_of_squares(w)

    def gap(self, w: np.ndarray, gradient: np.ndarray, loss: float) -> float:
        """P(w) less the better of two lower bounds, from the smooth part's gradient and Σ m_i loss_i.

        With μ the marginals at w, u = Σ m_i A_iᵀ(y_i − μ_i) = λw − gradient and 0 ≤ t ≤ 1, the point
        y + t(μ − y) is feasible, and because H is concave and H(y) ≥ 0

            P(w) − D(y + t(μ − y)) ≤ (1 − t) loss + g(w) + g*(tu) − ⟨w, tu⟩.

        t = 1 is the usual bound. At t = λ₁/max|u_j| the conjugate is 0, however small λ is.
        """
        gap, largest = _gap_and_largest(w, gradient, self.lam, self.l1, 1.0)
        if largest <= self.l1:
            return gap
        t = self.l1 / largest
        inside, _ = _gap_and_largest(w, gradient, self.lam, self.l1, t)
        return min(gap, inside + (1.0 - t) * max(loss, 0.0))

    def slack(self, w: np.ndarray, gap: float, loss: float, error: float) -> float:
        """By how much the gap may grow where the gradient is off by `error` in norm.

        u enters times w; squared as without λ₁ or, where λ = 0, through t by 1/λ₁ of the loss.
        """
        growth = error * float(np.linalg.norm(w))
        if self.lam == 0.0:
            return growth + error * loss / self.l1
        return growth + L2(self.lam).slack(w, gap, loss, error)


def regularizer(total: float, constants: dict[str, float]) -> L2 | ElasticNet:
    """From the named constants of `fenchel.constants` (C=1.0 unless any is given), for that total weight."""
    return of_penalties(*penalties(total, **(constants or {"C": 1.0})))


def of_penalties(lam: float, l1: float) -> L2 | ElasticNet:
    """λ₁‖w‖₁ + λ/2 ‖w‖²."""
    return ElasticNet(lam, l1) if l1 > 0.0 else L2(lam)


@njit(cache=True, nogil=True, fastmath=REORDER)
def _value(w, lam, l1):
    total = 0.0
    for j in range(w.size):
        total += l1 * abs(w[j]) + 0.5 * lam * w[j] * w[j]
    return total


@njit(cache=True, nogil=True)
def _subgradient(w, gradient, l1, out):
    """gradient + λ₁ sign(w); at w = 0 the number nearest to zero of gradient ± λ₁. out (d,) written."""
    for j in range(w.size):
        g = gradient[j]
        if w[j] > 0.0:
            out[j] = g + l1
        elif w[j] < 0.0:
            out[j] = g - l1
        elif abs(g) <= l1:
            out[j] = 0.0
        else:
            out[j] = g - l1 if g > 0.0 else g + l1


@njit(cache=True, nogil=True, fastmath=REORDER)
def _gap_and_largest(w, gradient, lam, l1, t):
    """g(w) + g*(tu) − ⟨w, tu⟩ and max |u_j|, for u = λw − gradient.

    With c the number nearest to tu within ± λ₁ a coordinate contributes (λw − tu + c)²/(2λ) + λ₁|w| − wc:
    two terms that are never negative, so nothing cancels. Without λ the first counts only where tu ≠ c by
    more than rounding (t < 1 is chosen such that it does not).
    """
    total, largest = 0.0, 0.0
    for j in range(w.size):
        u = lam * w[j] - gradient[j]
        largest = max(largest, abs(u))
        c = max(-l1, min(l1, t * u))
        excess = lam * w[j] - t * u + c
        if lam > 0.0:
            total += excess * excess / (2.0 * lam)
        elif abs(excess) > 1e-14 * l1:
            total += np.inf
        total += max(l1 * abs(w[j]) - w[j] * c, 0.0)
    return total, largest
