"""Matrices of second derivatives, for the methods that factorise one, and how to solve with them."""

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from fenchel._memory import require_memory
from fenchel._sparse import as_csr, as_rows
from fenchel.design import Design


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


def require_matrix(size: int) -> None:
    """Refuse a matrix that cannot fit, stating its size."""
    require_memory(
        5 * 8 * size**2,  # parts of the Gram matrix, their sum, its scaled copy
        f"a {size} × {size} matrix",
        "use a solver without one: lbfgs, tron, cd-dual",
    )


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
