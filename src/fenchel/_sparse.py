"""Rows of a sparse matrix as three flat arrays, and the kernels that walk along them.

Dense input becomes rows here, once, so that no kernel further down has a dense twin. One integer width
and one float width: each kernel is compiled once, whatever the user's matrix held.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit

from fenchel._math import REORDER


class Rows(NamedTuple):
    """A CSR matrix. Row i holds `data[indptr[i]:indptr[i+1]]` in the columns `indices[...]`."""

    indptr: np.ndarray  # (n + 1,) int64
    indices: np.ndarray  # (nnz,) int32
    data: np.ndarray  # (nnz,) float64
    n_columns: int

    @property
    def shape(self):
        return self.indptr.size - 1, self.n_columns

    @property
    def nnz(self):
        return self.data.size


def as_rows(X) -> Rows:
    """Rows of a dense or SciPy sparse matrix; arrays are shared with X where their types allow."""
    if not sp.issparse(X):
        X = sp.csr_matrix(np.asarray(X, dtype=np.float64))
    else:
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    if X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"{X.shape[1]} columns are more than the 2147483647 that fit a 32-bit index")
    return Rows(
        np.require(X.indptr, np.int64, "CW"),
        np.require(X.indices, np.int32, "CW"),
        np.require(X.data, np.float64, "CW"),
        int(X.shape[1]),
    )


def as_csr(rows: Rows) -> sp.csr_matrix:
    """The same matrix for SciPy, sharing the arrays."""
    return sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=rows.shape)


def transpose(rows: Rows) -> Rows:
    """The columns as rows: entry lists of each feature, for the methods that update one feature at a time."""
    return as_rows(as_csr(rows).tocsc().T)


def take(rows: Rows, keep: np.ndarray) -> Rows:
    """The rows whose numbers or mask `keep` gives."""
    return as_rows(as_csr(rows)[keep])


@njit(cache=True, nogil=True, fastmath=REORDER)
def row_dot(rows, i, w):
    """x_i · w."""
    total = 0.0
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        total += rows.data[e] * w[rows.indices[e]]
    return total


@njit(cache=True, nogil=True)
def row_add(rows, i, step, w):
    """w += step · x_i."""
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        w[rows.indices[e]] += step * rows.data[e]


@njit(cache=True, nogil=True)
def dot_rows(rows, w, out):
    """out[i] = x_i · w, for every row."""
    for i in range(out.size):
        out[i] = row_dot(rows, i, w)


@njit(cache=True, nogil=True)
def add_rows(rows, r, w):
    """w += Σ_i r_i x_i."""
    for i in range(r.size):
        if r[i] != 0.0:
            row_add(rows, i, r[i], w)


@njit(cache=True, nogil=True, fastmath=REORDER)
def squared_norms(rows):
    """‖x_i‖² of every row."""
    n = rows.indptr.size - 1
    out = np.empty(n)
    for i in range(n):
        total = 0.0
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            total += rows.data[e] ** 2
        out[i] = total
    return out


@njit(cache=True, nogil=True)
def row_sums(rows):
    """Σ_j x_ij of every row."""
    n = rows.indptr.size - 1
    out = np.zeros(n)
    for i in range(n):
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            out[i] += rows.data[e]
    return out


@njit(cache=True, nogil=True)
def weighted_gram(rows, weights, out):
    """Upper triangle of out += Σ_i weights_i x_i x_iᵀ; out (d, d) written. Indices within a row increase."""
    for i in range(weights.size):
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            scaled = weights[i] * rows.data[e]
            target = out[rows.indices[e]]
            for f in range(e, rows.indptr[i + 1]):
                target[rows.indices[f]] += scaled * rows.data[f]
