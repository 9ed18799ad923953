"""Matrices of second derivatives, for the methods that factorise one, and how to solve with them."""

from contextlib import nullcontext

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, eigh
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs
from threadpoolctl import threadpool_limits

from fenchel._memory import require_memory
from fenchel._sparse import as_csr, as_rows
from fenchel.design import ONE_CORE, TALL, Design


def quadratic(design: Design, weights, lam: float) -> np.ndarray:
    """Σ_i weights_i x_i x_iᵀ + λ I, (A, A); with free offsets the constant feature, without λ, comes last.

    The matrix of Newton's method for one weight vector, and of the surrogates with one for each output.
    """
    matrix = bordered_gram(design, weights)
    penalised = np.arange(design.n_columns)
    matrix[penalised, penalised] += lam
    return matrix


def bordered_gram(design: Design, weights) -> np.ndarray:
    """Xᵀ diag(weights) X, with the constant feature of free offsets as last column of X."""
    if not design.free:
        return design.gram(weights)
    size, gram = design.n_columns, design.gram(weights)
    matrix = np.empty((size + 1, size + 1))
    matrix[:size, :size] = gram
    matrix[size, :size] = matrix[:size, size] = design.constant * design.transposed(weights)
    matrix[size, size] = design.constant**2 * weights.sum()
    return matrix


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


def hessian(design: Design, mass, starts, mu, lam: float) -> np.ndarray:
    """Σ mass_i A_iᵀ(diag μ_i − μ_i μ_iᵀ)A_i + λI, (d, d); starts: of candidates, else None."""
    if design.matrix:
        return crossed_hessian(design, mass, mu, lam)
    if starts is not None:
        return joint_hessian(design, mass, starts, mu, lam)
    return quadratic(design, mass * mu[:, 0] * mu[:, 1], lam)


def crossed_hessian(design: Design, mass, mu, lam: float) -> np.ndarray:
    """Σ_i m_i (diag μ_i − μ_i μ_iᵀ) ⊗ x_i x_iᵀ + λ I, zhang2005 before (18), for w = W (A, K) row by row.

    Free offsets of all labels moved together change nothing: there the matrix is made regular.
    """
    size, labels = design.n_columns + design.free, design.outputs
    matrix = np.zeros((size, labels, size, labels))
    by_rows, by_blocks = design.hessian_work
    if by_rows <= by_blocks:
        _add_by_rows(design, mass, mu, matrix)
    else:
        _add_by_blocks(design, mass, mu, matrix)
    if design.free:
        matrix[-1, :, -1, :] += np.trace(matrix[-1, :, -1, :]) / labels**2
    matrix = matrix.reshape(design.dim, design.dim)
    penalised = np.arange(design.penalised)
    matrix[penalised, penalised] += lam
    return matrix


def _add_by_rows(design, mass, mu, matrix):
    """matrix (A, K, A, K) += the sums of `crossed_hessian`, a Gram matrix for each pair of labels."""
    for k in range(design.outputs):
        matrix[:, k, :, k] = bordered_gram(design, mass * mu[:, k])
    for k in range(design.outputs):
        for j in range(k + 1):
            matrix[:, k, :, j] -= bordered_gram(design, mass * mu[:, k] * mu[:, j])
            matrix[:, j, :, k] = matrix[:, k, :, j]


def _add_by_blocks(design, mass, mu, matrix):
    """The same by BLAS on blocks of rows: −Σ_i m_i z_i z_iᵀ, z_i = x_i ⊗ μ_i, and Σ_i m_i x_i z_iᵀ, which has
    the blocks of single labels.
    """
    size, labels = design.n_columns + design.free, design.outputs
    height, flat = min(max(2 * TALL // design.dim, 32), design.n), matrix.reshape(design.dim, design.dim)
    room, roots, own = np.empty((height, size, labels)), np.sqrt(mass)[:, None], np.zeros((size, design.dim))
    for start, block in design.dense_blocks(height):
        weights = roots[start : start + block.shape[0]]
        x = np.multiply(block, weights)
        if design.free:
            x = np.hstack([x, design.constant * weights])
        z = np.multiply(x[:, :, None], mu[start : start + x.shape[0], None, :], out=room[: x.shape[0]])
        z = z.reshape(x.shape[0], design.dim)
        dsyrk(-1.0, z.T, beta=1.0, c=flat.T, overwrite_c=True, lower=True)
        own += x.T @ z
    np.copyto(flat, flat.T, where=np.tri(design.dim, k=-1, dtype=bool))
    blocks = np.einsum("akbk->abk", matrix)  # a view
    blocks += own.reshape(size, size, labels)


def joint_hessian(design: Design, mass, starts, mu, lam: float) -> np.ndarray:
    """Σ_i m_i (Σ_y μ_iy f_iy f_iyᵀ − g_i g_iᵀ) + λ I with g_i = Σ_y μ_iy f_iy, (d, d)."""
    counts = np.diff(starts.astype(np.int64))
    owner = np.repeat(np.arange(mass.size), counts)
    matrix = design.gram(mass[owner] * mu)
    gather = sp.csr_matrix((mu, (owner, np.arange(mu.size))), (mass.size, mu.size))
    means = Design(as_rows(gather @ as_csr(design.rows)), None, design.threads)
    matrix -= means.gram(mass)
    matrix[np.diag_indices(design.dim)] += lam
    return matrix


class Cholesky:
    """A positive definite matrix, factorised; LinAlgError where it is not. The matrix is overwritten."""

    def __init__(self, matrix: np.ndarray):
        with _threads_for(matrix):
            # The transpose is the same matrix, in the order of LAPACK: no copy is made. SciPy's functions
            # around these two take longer than a matrix of fifty rows.
            self.factor, failed = dpotrf(matrix.T, overwrite_a=True, clean=False)
        if failed:
            raise LinAlgError(f"the leading {failed} rows are not positive definite")

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        with _threads_for(self.factor):
            return dpotrs(self.factor, rhs)[0]


def _threads_for(matrix):
    """One thread for LAPACK on a matrix of 2 GiB: with several, SciPy's OpenBLAS crashes the process there.

    Of 17,000 rows it did, of 15,000 it did not; with one thread 20,000 were right.
    """
    return threadpool_limits(1, "blas") if matrix.nbytes >= ONE_CORE else nullcontext()


class Scaled:
    """A positive definite matrix, factorised after dividing out its diagonal, which keeps the digits of badly
    scaled features. A little is added to the rest, as little as it takes to stay positive under rounding.
    """

    def __init__(self, matrix: np.ndarray):
        self.scale = diagonal_scale(matrix)
        for ridge in (1e-14, 1e-12, 1e-10, 1e-8):
            ones = scaled(matrix, self.scale)
            ones.flat[:: ones.shape[0] + 1] += ridge
            try:
                self.factor = Cholesky(ones)
                return
            except LinAlgError:
                continue
        raise LinAlgError("the matrix is not positive definite")

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        return self.factor.solve(rhs / self.scale) / self.scale


def diagonal_scale(matrix) -> np.ndarray:
    """(d,) the roots of its diagonal, one where that is zero."""
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale[scale == 0.0] = 1.0
    return scale


def solve_positive(matrix, rhs) -> np.ndarray:
    """matrix⁻¹ rhs for a symmetric positive (semi-)definite matrix, whatever the scales of its rows.

    rhs (d,) or (d, m). Cholesky after dividing out the diagonal, so that badly scaled features keep their
    digits; the pseudo-inverse where the matrix is singular (λ = 0 and dependent features).
    """
    scale = diagonal_scale(matrix)
    rhs = (rhs.T / scale).T
    try:
        return (Cholesky(scaled(matrix, scale)).solve(rhs).T / scale).T
    except LinAlgError:
        with _threads_for(matrix):
            values, vectors = eigh(scaled(matrix, scale).T, overwrite_a=True)
        keep = values > values[-1] * values.size * np.finfo(float).eps
        kept = vectors[:, keep]
        return ((kept @ ((kept.T @ rhs).T / values[keep]).T).T / scale).T


def scaled(matrix, scale):
    """matrix_ij / (scale_i scale_j), a new one."""
    ones = matrix / scale
    ones /= scale[:, None]
    return ones
