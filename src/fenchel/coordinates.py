"""Weights in coordinates in which P is rounder, for methods that go by its gradient."""

from math import inf

import numpy as np
from scipy.linalg.lapack import dtrtri

from fenchel._memory import available_bytes
from fenchel.design import Design
from fenchel.matrices import Cholesky, diagonal_scale, matrix_bytes, quadratic, scaled

UNEVEN = 30.0  # times the curvature's root may differ before features count as badly scaled
ROUNDING = 1e-12  # added to a diagonal of ones
# Likewise where there are less than so many times as many examples as features: these are next to dependent
# then, along which the loss, as classes come apart, has no curvature left, and what is left of P is drawn out
# (300 × 300, ten classes, C = 10,000: 44 passes, 66 in the weights themselves, over 1,500 without this).
FEW, EVENLY = 1.25, 1e-2
# Whitened where that takes no longer than so many passes; seconds of a pass for each multiplication and each
# score, and for its calls.
WORTH, MULTIPLICATION, SCORE, CALLS = 6.0, 3e-9, 1e-8, 1e-4


class Centred:
    """z = scale · w, where features differ much in scale, and free offsets are those of centred features,
    β + x̄ · W/σ: at raw values of 0 to 15 an offset and the weights are hardly told apart otherwise.
    """

    def __init__(self, design: Design, mass, roots: np.ndarray):
        self.design, middle = design, float(np.median(roots)) if roots.size else 1.0
        own = roots / middle if spread(roots) > UNEVEN else np.ones(roots.size)
        self.scale = np.repeat(np.append(own, [0.5 * design.constant / middle] * design.free), design.outputs)
        self.centre = design.centre(mass) / design.constant if design.free else None

    def inside(self, w: np.ndarray) -> np.ndarray:
        """z of w."""
        z = w.copy()
        if self.centre is not None:
            z[self.design.penalised :] += self._along_centre(w)
        z *= self.scale
        return z

    def gradient(self, g: np.ndarray) -> np.ndarray:
        """The gradient in z, from that in w."""
        g = g.copy()
        if self.centre is not None:
            own, free = self._parts(g)
            own -= np.outer(self.centre, free)
        g /= self.scale
        return g

    def direction(self, d: np.ndarray) -> np.ndarray:
        """The direction in w, from that in z."""
        d = d / self.scale
        if self.centre is not None:
            d[self.design.penalised :] -= self._along_centre(d)
        return d

    def _parts(self, v):
        """Weights (A, K) and those of the constant (K,), as views."""
        own = self.design.penalised
        return v[:own].reshape(-1, self.design.outputs), v[own:]

    def _along_centre(self, w):
        return self.centre @ self._parts(w)[0]


class Whitened:
    """z = Rw, RᵀR = q Σ_i m_i x_i x_iᵀ + λI: of one output P is about round then, of several nearly so.

    q: about the curvature of the loss along a score. One matrix for all outputs, with a row for each feature,
    where Newton's has one for each weight; the constant feature of free offsets is one of them, without λ.
    """

    def __init__(self, matrix: np.ndarray, outputs: int, n: int):
        """matrix: RᵀR, but for what is added to its diagonal; n: of how many examples."""
        scale, self.outputs = diagonal_scale(matrix), outputs
        ones = scaled(matrix, scale)
        ones.flat[:: len(ones) + 1] += EVENLY if n < FEW * len(ones) else ROUNDING
        root = np.triu(Cholesky(ones).factor)
        self.root, self.inverse = root * scale, dtrtri(root)[0] / scale[:, None]

    def inside(self, w: np.ndarray) -> np.ndarray:
        """z of w."""
        return self._times(self.root, w)

    def gradient(self, g: np.ndarray) -> np.ndarray:
        """The gradient in z, from that in w."""
        return self._times(self.inverse.T, g)

    def direction(self, d: np.ndarray) -> np.ndarray:
        """The direction in w, from that in z."""
        return self._times(self.inverse, d)

    def _times(self, matrix, v):
        return (matrix @ v.reshape(-1, self.outputs)).reshape(-1)


def coordinates_of(problem) -> Centred | Whitened | None:
    """Those that are worth their time, or None: the weights themselves.

    They mix weights, which is not for a mask; nor, but for the offset, for an L1 term.
    """
    design, mass = problem.design, problem.examples.mass
    if problem.structure.mask is not None:
        return None
    if problem.l1 == 0.0 and passes_to_whiten(problem) <= WORTH:
        matrix = quadratic(design, loss_curvature(problem.shares) * mass, problem.lam)
        return Whitened(matrix, design.outputs, design.n)
    roots = problem.scales
    return Centred(design, mass, roots) if problem.free or spread(roots) > UNEVEN else None


def loss_curvature(shares) -> float:
    """q of labels that are true so often."""
    shares = shares / shares.sum()
    return float(shares @ (1.0 - shares)) / shares.size


def passes_to_whiten(problem) -> float:
    """How many passes the matrix takes as long as; infinite where there is none, or no room for it."""
    design = problem.design
    if not problem.structure.listed or problem.examples.starts is not None:
        return inf
    if matrix_bytes(design.n_columns) > 0.5 * available_bytes():
        return inf
    a_pass = MULTIPLICATION * design.work + SCORE * design.n * design.outputs + CALLS
    return design.whitening_seconds / a_pass


def scales(design: Design, mass, lam: float) -> np.ndarray:
    """(A,) √(v/4 + λ), v as `Design.spreads` has it: about the root of the curvature along each feature."""
    roots = np.sqrt(0.25 * design.spreads(mass) + lam)
    roots[roots == 0.0] = roots.max(initial=0.0) or 1.0  # a feature that says nothing, and λ = 0
    return roots if np.isfinite(roots).all() else np.ones(roots.size)


def spread(roots: np.ndarray) -> float:
    """How many times the scales differ."""
    return float(roots.max(initial=1.0) / roots.min(initial=np.inf)) if roots.size else 1.0
