"""Rows of a sparse matrix as three flat arrays, and the kernels that walk along them.

Dense input becomes rows here, once, so that no kernel further down has a dense twin. One integer width
and one float width: each kernel is compiled once, whatever the user's matrix held. Integers are unsigned,
since Numba otherwise tests each index for counting from the end: that took as long as the arithmetic.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fenchel._cache import njit
from fenchel._math import REORDER


class Rows(NamedTuple):
    """A CSR matrix. Row i holds `data[indptr[i]:indptr[i+1]]` in the columns `indices[...]`."""

    indptr: np.ndarray  # (n + 1,) uint64
    indices: np.ndarray  # (nnz,) uint32
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
        np.require(X.indptr, np.int64, "CW").view(np.uint64),
        np.require(X.indices, np.int32, "CW").view(np.uint32),
        np.require(X.data, np.float64, "CW"),
        int(X.shape[1]),
    )


def as_csr(rows: Rows) -> sp.csr_matrix:
    """The same matrix for SciPy, sharing the arrays."""
    indices, indptr = rows.indices.view(np.int32), rows.indptr.view(np.int64)
    return sp.csr_matrix((rows.data, indices, indptr), shape=rows.shape)


def transpose(rows: Rows) -> Rows:
    """The columns as rows: entry lists of each feature, for the methods that update one feature at a time."""
    return as_rows(as_csr(rows).tocsc().T)


def with_full_row(rows: Rows, value: float) -> Rows:
    """One more row, of the same value in all columns."""
    return Rows(
        np.append(rows.indptr, rows.indptr[-1] + np.uint64(rows.n_columns)),
        np.append(rows.indices, np.arange(rows.n_columns, dtype=np.uint32)),
        np.append(rows.data, np.full(rows.n_columns, value)),
        rows.n_columns,
    )


def take(rows: Rows, keep: np.ndarray) -> Rows:
    """The rows whose numbers or mask `keep` gives."""
    return as_rows(as_csr(rows)[keep])


def full_columns(rows: Rows) -> np.ndarray:
    """(n_columns,) bool: which columns have an entry in every row."""
    n = rows.shape[0]
    for count in (min(n, 100), n):  # of most sparse matrices a few rows already rule out all
        indices = rows.indices[: int(rows.indptr[count])].view(np.int32)
        full = np.bincount(indices, minlength=rows.n_columns) == count
        if not full.any():
            break
    return full


def minus(rows: Rows, shift: np.ndarray) -> Rows:
    """x_ij − shift_j at the entries there are."""
    return rows._replace(data=rows.data - shift[rows.indices])


@njit(cache=True, nogil=True, fastmath=REORDER)
def sum_of_squares(w):
    """‖w‖². One thread: at 100,000 entries BLAS wakes others, and waits for them where the cores are busy."""
    total = 0.0
    for j in range(w.size):
        total += w[j] * w[j]
    return total


# Row kernels are inlined by force: a call costs as much as a row of a dozen entries.
@njit(cache=True, nogil=True, fastmath=REORDER, forceinline=True)
def row_dot(rows, i, w):
    """x_i · w."""
    total = 0.0
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        total += rows.data[e] * w[rows.indices[e]]
    return total


@njit(cache=True, nogil=True, forceinline=True)
def row_add(rows, i, step, w):
    """w += step · x_i."""
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        w[rows.indices[e]] += step * rows.data[e]


@intrinsic
def prefetch(typing_context, array, index):
    """Ask the processor for the cache line where array[index] begins; changes nothing else."""

    def emit(context, builder, signature, args):
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, args[0])
        where = [args[1]] + [context.get_constant(types.intp, 0)] * (kind.ndim - 1)
        pointer = cgutils.get_item_pointer(context, builder, kind, view, where, wraparound=False)
        number = ir.IntType(32)
        address = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        declared = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, declared, "llvm.prefetch.p0")
        builder.call(function, [address, number(0), number(3), number(1)])  # for reading, to keep, data
        return context.get_dummy_value()

    return types.void(array, index), emit


@njit(cache=True, nogil=True, forceinline=True)
def prefetch_row(rows, i):
    """Bring row i into the cache ahead of its use.

    In random order each row starts with a wait for memory: a pass of dot and add over 25,000 × 138 entries
    took 21 ms without this, 14 ms with it, 11 ms in sequential order.
    """
    for e in range(rows.indptr[i], rows.indptr[i + 1], 8):
        prefetch(rows.data, e)
    for e in range(rows.indptr[i], rows.indptr[i + 1], 16):
        prefetch(rows.indices, e)


@njit(cache=True, nogil=True)
def row_product(rows, i, j):
    """x_i · x_j, by merging their sorted indices."""
    e, f, total = rows.indptr[i], rows.indptr[j], 0.0
    while e < rows.indptr[i + 1] and f < rows.indptr[j + 1]:
        if rows.indices[e] < rows.indices[f]:
            e += np.uint64(1)
        elif rows.indices[e] > rows.indices[f]:
            f += np.uint64(1)
        else:
            total += rows.data[e] * rows.data[f]
            e += np.uint64(1)
            f += np.uint64(1)
    return total


@njit(cache=True, nogil=True)
def dot_rows(rows, start, stop, w, out):
    """out[i] = x_i · w, for start ≤ i < stop."""
    for i in range(start, stop):
        out[i] = row_dot(rows, i, w)


@njit(cache=True, nogil=True)
def dot_rows_matrix(rows, start, stop, w, out):
    """out[i] = x_i W for start ≤ i < stop; w (A, K) as one array, row by row; out (n, K) written."""
    size = np.uint64(out.shape[1])
    for i in range(start, stop):
        for k in range(size):
            out[i, k] = 0.0
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            x, begin = rows.data[e], np.uint64(rows.indices[e]) * size
            for k in range(size):
                out[i, k] += x * w[begin + k]


@njit(cache=True, nogil=True)
def add_rows_matrix(rows, start, stop, r, w):
    """W += Σ_i x_i r_iᵀ over start ≤ i < stop; r (n, K), w (A, K) as one array, written."""
    size = np.uint64(r.shape[1])
    for i in range(start, stop):
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            x, begin = rows.data[e], np.uint64(rows.indices[e]) * size
            for k in range(size):
                w[begin + k] += x * r[i, k]


@njit(cache=True, nogil=True)
def add_rows(rows, start, stop, r, w):
    """w += Σ_i r_i x_i over start ≤ i < stop."""
    for i in range(start, stop):
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
def weighted_gram(rows, start, stop, weights, out):
    """Upper triangle of out += Σ_i weights_i x_i x_iᵀ over start ≤ i < stop; out (d, d) written.

    Indices within a row increase, so that the second is never the smaller.
    """
    d, flat = np.uint64(out.shape[1]), out.reshape(-1)
    for i in range(start, stop):
        end = rows.indptr[i + 1]
        for e in range(rows.indptr[i], end):
            scaled = weights[i] * rows.data[e]
            begin = np.uint64(rows.indices[e]) * d
            for f in range(e, end):
                flat[begin + np.uint64(rows.indices[f])] += scaled * rows.data[f]
