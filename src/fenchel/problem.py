"""Problem: the one formula, put together from examples, structure, loss and regulariser.

    s_i     = A_i w + b                                   scores of the outcomes of example i
    loss_i  = Ω*(s_i + cost_i) − ⟨s_i, y_i⟩                y_i: empirical marginals, 0/1 or soft
    P(w, b) = Σ_i m_i loss_i + λ/2 ‖w‖²                    masses m_i > 0 sum to one
    D(μ)    = Σ_i m_i H_i(μ_i) − λ/2 ‖w(μ)‖²,   w(μ) = (1/λ) Σ_i m_i A_iᵀ(y_i − μ_i)
    gap     = P − D ≥ 0

Conventions. w (d,) are the penalised weights, b the free (unpenalised) offset. Solvers of the primal see
w alone: b is optimised away, P(w) = min_b P(w, b), whose gradient is that of P at the best b; so with the
log loss gap = ‖∇P(w)‖²/(2λ) holds with an intercept too. μ is feasible if Σ m_i (y_i − μ_i) = 0 where
b is free; `dual_point` moves it there first. Scores and residuals are (n,), marginals (n, block size).
"""

from dataclasses import dataclass
from functools import cached_property
from math import nan

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from fenchel._memory import require_memory
from fenchel.data import Examples
from fenchel.design import TAIL, Design
from fenchel.losses import Hinge, Log
from fenchel.regularizers import L2
from fenchel.structures.binary import Binary

# What a problem gives to a solver, beyond its plain value. A solver's `needs` are checked against this.
OFFERS = {
    ("binary", "log"): frozenset({"binary", "log", "gradient", "hessian", "columns", "blocks"}),
    ("binary", "hinge"): frozenset({"binary", "hinge", "blocks"}),
}


@dataclass
class Evaluation:
    """P and its gradient at w, with everything met on the way: b, scores (b included), marginals."""

    w: np.ndarray
    b: float
    value: float
    gradient: np.ndarray
    scores: np.ndarray
    mu: np.ndarray

    @property
    def gradient_norm(self) -> float:
        return float(np.linalg.norm(self.gradient))


@dataclass(frozen=True)
class Point:
    """A model and bounds around the optimum: primal = P(w, b) and dual ≤ min P; gap = primal − dual."""

    w: np.ndarray
    b: float
    primal: float
    dual: float
    gap: float
    gradient_norm: float = nan


@dataclass(frozen=True)
class Problem:
    """Σ m_i loss_i + λ/2 ‖w‖² over given examples; `free` adds an unpenalised offset b."""

    examples: Examples
    structure: Binary
    loss: Log | Hinge
    regularizer: L2
    free: bool = False
    threads: int | None = None

    @property
    def n(self) -> int:
        return self.examples.n

    @property
    def dim(self) -> int:
        return self.design.dim

    @property
    def lam(self) -> float:
        return self.regularizer.lam

    @property
    def offers(self) -> frozenset:
        offered = OFFERS[self.structure.name, self.loss.name]
        return offered | {"dual"} if self.lam > 0.0 else offered

    def __str__(self) -> str:
        rows = self.examples.rows
        free = ", free intercept" if self.free else ""
        return (
            f"{self.structure.name} {self.loss.name}, n = {self.n}, d = {self.dim}, "
            f"{rows.nnz} non-zeros, λ = {self.lam:.6g}{free}"
        )

    @cached_property
    def design(self) -> Design:
        return Design(self.examples.rows, self.examples.mass, centred=self.free, threads=self.threads)

    @cached_property
    def blocks(self):
        """The named tuple of arrays that the block kernels take."""
        design, examples = self.design, self.examples
        return self.structure.blocks_type(
            rows=design.rows,
            y=examples.y,
            mass=examples.mass,
            norms=design.norms,
            cross=design.cross,
            centre_norm=design.centre_norm,
            lam=self.lam,
            size=self.structure.block_size,
            n_weights=design.dim,
            n_free=int(self.free),
        )

    @cached_property
    def empirical(self) -> np.ndarray:
        """P̃(f) = Σ m_i A_iᵀ y_i, (d,): the expected features under the data."""
        return self.design.adjoint(self.examples.mass * self.examples.y)

    # ---- the primal

    def offset(self, scores, b=0.0) -> float:
        """The best free offset at the scores; 0 where none is free."""
        examples = self.examples
        return self.structure.offset(scores, examples.y, examples.mass, b) if self.free else 0.0

    def value_at(self, w, b=None) -> tuple[float, float]:
        """P(w, b) and b; b is optimised away unless it is given."""
        scores = self.design.scores(w)
        b = self.offset(scores) if b is None else b
        losses = self.loss.losses(self.structure, scores + b, self.examples.y)
        return float(self.examples.mass @ losses) + self.regularizer.value(w), b

    def evaluate(self, w, b=0.0) -> Evaluation:
        """P and ∇P at w for the log loss: one pass. b starts the search for the best offset."""
        examples = self.examples
        scores = self.design.scores(w) if w.any() else np.zeros(self.n)
        b = self.offset(scores, b)
        scores += b
        loss, mu, residual = self.structure.log_oracle(scores, examples.y, examples.mass)
        value = loss + self.regularizer.value(w)
        gradient = self.regularizer.gradient(w) - self._pull(residual)
        return Evaluation(w, b, value, gradient, scores, mu)

    def hessian_product(self, evaluation: Evaluation, direction) -> np.ndarray:
        """∇²P(w) · direction: one pass. With a free offset, the Hessian of min_b P (a Schur complement)."""
        weights = self.examples.mass * self.structure.covariance(evaluation.mu)
        scores = self.design.scores(direction)
        if self.free:
            total = weights.sum()
            scores -= (weights @ scores) / total if total > 0.0 else 0.0
        return self.design.adjoint(weights * scores) + self.lam * direction

    def quadratic(self, weights) -> np.ndarray:
        """Σ_i weights_i (x_i − x̄)(x_i − x̄)ᵀ + λ I, (d, d); x̄ the weighted mean where the offset is free.

        The matrix of Newton's method and of every quadratic surrogate.
        """
        require_memory(
            5 * 8 * self.dim**2,  # parts of the Gram matrix, their sum, its scaled copy
            f"a {self.dim} × {self.dim} matrix",
            "use a solver without one: lbfgs, tron, cd-dual",
        )
        matrix = self.design.gram(weights)
        total = weights.sum()
        if self.free and total > 0.0:
            mean = self.design.adjoint(weights)
            matrix -= np.outer(mean, mean / total)
        matrix[np.diag_indices(self.dim)] += self.lam
        return matrix

    # ---- the dual

    def weights_of(self, mu) -> np.ndarray:
        """w(μ), (d,): one pass."""
        examples = self.examples
        return self.regularizer.weights(self._pull(examples.mass * self.structure.residual(examples.y, mu)))

    def _pull(self, residual) -> np.ndarray:
        """Σ A_iᵀ residual_i, (d,), of residuals m_i (y_i − μ_i); on centred features where b is free.

        There the residuals sum to zero but for rounding, which must not be multiplied by a large mean.
        """
        pull = self.design.adjoint(residual)
        return pull - residual.sum() * self.design.centre if self.free else pull

    def augmented_of(self, mu, b=0.0) -> np.ndarray:
        """The augmented vector of `design.py`: w(μ) on centred features, and the offset b; one pass."""
        examples, d = self.examples, self.dim
        residual = examples.mass * self.structure.residual(examples.y, mu)
        v = np.zeros(d + TAIL)
        v[:d] = self.regularizer.weights(self.design.adjoint(residual))
        v[d] = b
        v[d + 1] = self.regularizer.weights(residual.sum())
        v[d + 2] = self.design.centre @ v[:d]
        return v

    def dual(self, mu, w=None) -> float:
        """D(μ); the caller may hand in w(μ)."""
        w = self.weights_of(mu) if w is None else w
        concave = self.loss.concave(self.structure, self.examples.y, mu)
        return float(self.examples.mass @ concave) - self.regularizer.value(w)

    # ---- certificates

    def point_at(self, evaluation: Evaluation) -> Point:
        """The certificate of a primal solver, free with its gradient: ‖∇P(w)‖²/(2λ), lepriol2018 (8)."""
        norm = evaluation.gradient_norm
        gap = norm**2 / (2.0 * self.lam) if self.lam > 0.0 else nan
        dual = lower_bound(evaluation.value, gap)
        return Point(evaluation.w, evaluation.b, evaluation.value, dual, gap, norm)

    def primal_point(self, w) -> Point:
        """The certificate at w: one pass. Log loss only."""
        return self.point_at(self.evaluate(w))

    def dual_point(self, mu, w=None) -> Point:
        """The certificate of a dual solver at w(μ): Σ m_i · block gap, lepriol2018 (11); one pass.

        The caller may hand in w(μ); where the offset is free μ is tilted first, and w(μ) is another.
        """
        examples, structure = self.examples, self.structure
        if self.free:
            _, mu = structure.tilt(mu, examples.y, examples.mass)
        if self.free or w is None:
            w = self.weights_of(mu)
        scores = self.design.scores(w)
        b = self.offset(scores)
        scores += b
        value, gap = self.loss.value_and_gap(structure, scores, examples.y, examples.mass, mu)
        primal = value + self.regularizer.value(w)
        return Point(w, b, primal, lower_bound(primal, gap), gap)

    def mixed_point(self, w, mu) -> Point:
        """Primal value of one point and dual value of another: what a subgradient method can certify."""
        primal, b = self.value_at(w)
        dual = self.dual(mu)
        return Point(w, b, primal, dual, primal - dual)


def lower_bound(primal: float, gap: float) -> float:
    """primal − gap, less what rounding may have added: where both are huge their difference has no digits."""
    return primal - gap - 4.0 * np.finfo(float).eps * (abs(primal) + gap)


def solve_positive(matrix, rhs) -> np.ndarray:
    """matrix⁻¹ rhs for a symmetric positive (semi-)definite matrix, whatever the scales of its rows.

    Cholesky after dividing out the diagonal, so that badly scaled features keep their digits; the
    pseudo-inverse where the matrix is singular (λ = 0 and dependent features).
    """
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale[scale == 0.0] = 1.0
    scaled = matrix / np.outer(scale, scale)
    try:
        return cho_solve(cho_factor(scaled, check_finite=False), rhs / scale, check_finite=False) / scale
    except LinAlgError:
        values, vectors = eigh(scaled)
        keep = values > values[-1] * values.size * np.finfo(float).eps
        kept = vectors[:, keep]
        return kept @ ((kept.T @ (rhs / scale)) / values[keep]) / scale
