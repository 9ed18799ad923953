"""Matrices of second derivatives, for the methods that factorise one, and how to solve with them."""

from contextlib import nullcontext

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from threadpoolctl import threadpool_limits

from fenchel._memory import require_memory
from fenchel._sparse import as_csr, as_rows
from fenchel.design import ONE_CORE, Design

UNEVEN = 30.0  # times the curvature's root may differ before features count as badly scaled


def quadratic(design: Design, weights, lam: float) -> np.ndarray:
    """Σ_i weights_i (x_i − x̄)(x_i − x̄)ᵀ + λ I, (A, A); x̄ the weighted mean where offsets are free, else 0.

    The matrix of Newton's method for one weight vector, and of the surrogates with one for each output.
    """
    matrix = design.gram(weights)
    total = weights.sum()
    if design.centred and total > 0.0:
        mean = design.adjoint(weights)
        matrix -= np.outer(mean, mean / total)
    matrix[np.diag_indices(design.n_columns)] += lam
    return matrix


def scales(design: Design, mass, lam: float) -> np.ndarray | None:
    """(d,) √(σ²/4 + λ), σ² as `Design.spreads` has it; None where they are nearly the same."""
    roots = np.sqrt(0.25 * design.spreads(mass) + lam)
    roots[roots == 0.0] = roots.max(initial=0.0)  # a feature that says nothing, and λ = 0
    if not np.isfinite(roots).all() or not roots.max(initial=0.0) > UNEVEN * roots.min(initial=np.inf):
        return None
    return np.repeat(roots, design.outputs)


def matrix_bytes(size: int) -> int:
    """What it takes to make a matrix and to factorise it: four parts of a Gram matrix, and another matrix."""
    return 5 * 8 * size**2


def require_matrix(size: int) -> None:
    """Refuse a matrix that cannot fit, stating its size."""
    require_memory(
        matrix_bytes(size),
        f"a {size} × {size} matrix",
        "use a solver without one: lbfgs, tron, cd-dual",
    )


def hessian(design: Design, examples, mu, lam: float) -> np.ndarray:
    """∇²P, (d, d), at the marginals μ of listed outputs."""
    mass = examples.mass
    if design.matrix:
        return crossed_hessian(design, mass, mu, lam)
    if examples.starts is not None:
        return joint_hessian(design, mass, examples.starts, mu, lam)
    return quadratic(design, mass * mu[:, 0] * mu[:, 1], lam)


def crossed_hessian(design: Design, mass, mu, lam: float) -> np.ndarray:
    """Σ_i m_i (diag μ_i − μ_i μ_iᵀ) ⊗ x_i x_iᵀ + λ I, zhang2005 before (18), for w = W (A, K) row by row.

    With free offsets, the Hessian of the objective with them optimised away: a Schur complement.
    """
    size, labels = design.n_columns, design.outputs
    matrix = np.empty((size, labels, size, labels))
    for k in range(labels):
        for j in range(k + 1):
            weights = mass * mu[:, k] * ((k == j) - mu[:, j])
            matrix[:, k, :, j] = design.gram(weights)
            matrix[:, j, :, k] = matrix[:, k, :, j]
    matrix = matrix.reshape(design.dim, design.dim)
    if design.centred:
        matrix -= _taken_up_by_offsets(design, mass, mu)
    matrix[np.diag_indices(design.dim)] += lam
    return matrix


def _taken_up_by_offsets(design, mass, mu):
    """B H⁺ Bᵀ with H (K, K) the Hessian in the offsets and B (A·K, K) the mixed derivatives."""
    weighted = mu * mass[:, None]
    mixed = np.empty((design.dim, design.outputs))
    for k in range(design.outputs):
        change = -weighted * mu[:, k : k + 1]
        change[:, k] += weighted[:, k]
        mixed[:, k] = design.adjoint(change)
    own = np.diag(weighted.sum(axis=0)) - weighted.T @ mu
    return mixed @ np.linalg.pinv(own, rcond=1e-14, hermitian=True) @ mixed.T


def joint_hessian(design: Design, mass, starts, mu, lam: float) -> np.ndarray:
    """Σ_i m_i (Σ_y μ_iy f_iy f_iyᵀ − g_i g_iᵀ) + λ I with g_i = Σ_y μ_iy f_iy, (d, d)."""
    counts = np.diff(starts.astype(np.int64))
    owner = np.repeat(np.arange(mass.size), counts)
    matrix = design.gram(mass[owner] * mu)
    gather = sp.csr_matrix((mu, (owner, np.arange(mu.size))), (mass.size, mu.size))
    means = Design(as_rows(gather @ as_csr(design.rows)), None, None, design.threads)
    matrix -= means.gram(mass)
    matrix[np.diag_indices(design.dim)] += lam
    return matrix


class Cholesky:
    """A positive definite matrix, factorised; LinAlgError where it is not. The matrix is overwritten."""

    def __init__(self, matrix: np.ndarray):
        with _threads_for(matrix):
            # The transpose is the same matrix, in the order of LAPACK: no copy is made.
            self.factor = cho_factor(matrix.T, overwrite_a=True, check_finite=False)

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        with _threads_for(self.factor[0]):
            return cho_solve(self.factor, rhs, check_finite=False)


def _threads_for(matrix):
    """One thread for LAPACK on a matrix of 2 GiB: with several, SciPy's OpenBLAS crashes the process there.

    Of 17,000 rows it did, of 15,000 it did not; with one thread 20,000 were right.
    """
    return threadpool_limits(1, "blas") if matrix.nbytes >= ONE_CORE else nullcontext()


def solve_positive(matrix, rhs) -> np.ndarray:
    """matrix⁻¹ rhs for a symmetric positive (semi-)definite matrix, whatever the scales of its rows.

    rhs (d,) or (d, m). Cholesky after dividing out the diagonal, so that badly scaled features keep their
    digits; the pseudo-inverse where the matrix is singular (λ = 0 and dependent features).
    """
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale[scale == 0.0] = 1.0
    rhs = (rhs.T / scale).T
    try:
        return (Cholesky(_scaled(matrix, scale)).solve(rhs).T / scale).T
    except LinAlgError:
        with _threads_for(matrix):
            values, vectors = eigh(_scaled(matrix, scale).T, overwrite_a=True)
        keep = values > values[-1] * values.size * np.finfo(float).eps
        kept = vectors[:, keep]
        return ((kept @ ((kept.T @ rhs).T / values[keep]).T).T / scale).T


def _scaled(matrix, scale):
    """matrix_ij / (scale_i scale_j), a new one."""
    scaled = matrix / scale
    scaled /= scale[:, None]
    return scaled
