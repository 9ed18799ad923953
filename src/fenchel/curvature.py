"""What a problem knows of its second derivatives, and of the penalty that its free offsets may do with."""

from functools import cached_property

import numpy as np

from fenchel.certificates import Evaluation
from fenchel.coordinates import Centred, Whitened, coordinates_of, scales
from fenchel.matrices import hessian, quadratic, require_matrix
from fenchel.structures import passes

REACH, SOFT = 0.2, 0.1  # of σ²: relative to the mean ‖x‖², and of κ to the curvature


def constant(square: float, shares, lam: float) -> float:
    """σ, the value of the constant feature of free offsets, where Σ m_i ‖x_i‖² = square.

    Solvers of the dual give its weights β the penalty λ/2 ‖β − β₀‖², which on the offset b = σβ itself is
    κ/2 ‖b − b₀‖² with κ = λ/σ².
    """
    shares = shares / shares.sum()
    own = float(shares @ (1.0 - shares))  # the curvature of the loss in b, without features
    least = lam / (SOFT * max(own, 1e-6)) if own > 0.0 else 0.0
    square = max(REACH * square, least)
    return float(np.clip(np.sqrt(square), 1e-100, 1e100)) if square > 0.0 else 1.0


class Curved:
    """What a problem knows of its second derivatives."""

    @cached_property
    def scales(self) -> np.ndarray:
        """(A,) about the curvature's root of each feature; ones for candidates and sequences."""
        if self.examples.starts is not None:
            return np.ones(self.design.n_columns)
        return scales(self.design, self.examples.mass, self.lam)

    @cached_property
    def coordinates(self) -> Centred | Whitened | None:
        """Better ones than the weights themselves, or None."""
        return coordinates_of(self)

    def hessian_product(self, evaluation: Evaluation, direction) -> np.ndarray:
        """∇²P(w) · direction: one pass."""
        product = self.curved_along(evaluation, direction)
        product[: self.penalised] += self.lam * direction[: self.penalised]
        return product

    def curved_along(self, evaluation: Evaluation, direction) -> np.ndarray:
        """The same without the penalty's part."""
        at = (self.marginals_at if self.structure.listed else self.scores_at)(evaluation)
        scores = self.scores(direction)
        self.each_part(lambda start, stop: passes.all_covariances(self.blocks, start, stop, at, scores))
        return self.adjoint(scores)

    def hessian(self, evaluation: Evaluation) -> np.ndarray:
        """∇²P(w), (dim, dim)."""
        return self.covariances(self.examples.mass, self.marginals_at(evaluation))

    def covariances(self, mass, mu) -> np.ndarray:
        """Σ mass_i A_iᵀ(diag μ_i − μ_i μ_iᵀ)A_i + λI, (dim, dim), for masses (n,) of any size."""
        require_matrix(self.dim)
        matrix = hessian(self.design, mass, self.examples.starts, mu, self.lam)
        if self.structure.mask is not None:  # a weight that is not there has no part in any other's
            absent = np.flatnonzero(~self.structure.mask)
            matrix[absent], matrix[:, absent] = 0.0, 0.0
            matrix[absent, absent] = 1.0
        return matrix

    def quadratic(self, weights) -> np.ndarray:
        """Σ_i weights_i x_i x_iᵀ + λ I, (A, A); with a free offset the constant feature is the last."""
        require_matrix(self.design.n_columns)
        return quadratic(self.design, weights, self.lam)
