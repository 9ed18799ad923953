"""Rows of a matrix as flat arrays, sparse or dense, and the kernels that walk along them.

A kernel asks `row_begin`, `row_end` and `column` where the entries of a row are, and no kernel has a dense
twin: of a dense table the column is counted, not read, and LLVM sees that entries lie side by side. One
integer width and one float width: each kernel is compiled once for sparse rows and once for dense ones,
whatever the user's matrix held. Integers are unsigned, since Numba otherwise tests each index for counting
from the end: that took as long as the arithmetic.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fenchel._cache import njit
from fenchel._dispatch import kernel_by_type
from fenchel._math import REORDER, soft

DENSE = 0.4  # share of non-zeros from which on a dense matrix stays one
BLOCK = 1 << 22  # entries that NumPy is given at a time
SMALL = 2_000  # numbers up to which it is made sparse all the same: one set of kernels serves both


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

    @property
    def matrix(self):
        """(n, n_columns) for SciPy, sharing the arrays."""
        return as_csr(self)


class Table(NamedTuple):
    """A dense matrix. Row i holds `data[i·n_columns : (i + 1)·n_columns]`."""

    data: np.ndarray  # (n · n_columns,) float64
    n_rows: int
    n_columns: int

    @property
    def shape(self):
        return self.n_rows, self.n_columns

    @property
    def nnz(self):
        return self.data.size

    @property
    def matrix(self):
        """(n, n_columns), sharing the numbers."""
        return self.data.reshape(self.shape)


def as_features(X) -> Rows | Table:
    """Rows of a SciPy matrix, or of a dense one with many zeros; else the table, shared if it may be.

    Entries of a row need be in no order: that of text is the order of its words, and sorting takes longer
    than a pass. Rows stay what they are.
    """
    if isinstance(X, Rows):
        return X
    if sp.issparse(X):
        return as_rows(X, ordered=False)
    X = np.require(X, np.float64, "CW")
    if X.size <= SMALL or not _has_non_zeros(X.reshape(-1), DENSE * X.size):
        return as_rows(X)
    return Table(X.reshape(-1), *map(int, X.shape))


def as_rows(X, ordered: bool = True) -> Rows:
    """Rows of a dense or SciPy sparse matrix; arrays are shared with X where their types allow.

    ordered: whether entries must be in the order of their columns. None occurs twice in a row.
    """
    X = X.tocsr() if sp.issparse(X) else np.require(X, np.float64, "C")
    if X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"{X.shape[1]} columns are more than the 2147483647 that fit a 32-bit index")
    if not sp.issparse(X):
        return _without_zeros(X)
    if not X.has_canonical_format and (ordered or _repeats(X.indptr, X.indices, X.shape[1])):
        X = X.copy()
        X.sum_duplicates()
    return Rows(
        np.require(X.indptr, np.int64, "CW").view(np.uint64),
        np.require(X.indices, np.int32, "CW").view(np.uint32),
        np.require(X.data, np.float64, "CW"),
        int(X.shape[1]),
    )


@njit(cache=True, nogil=True)
def _repeats(indptr, indices, n_columns):
    """Whether a column occurs twice in a row."""
    last = np.zeros(n_columns, np.int64)
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if last[indices[e]] == i + 1:
                return True
            last[indices[e]] = i + 1
    return False


def _without_zeros(X: np.ndarray) -> Rows:
    """scipy.sparse.csr_matrix(X) in a third of the time: it looks for the non-zeros three times.

    A small one by NumPy: that takes microseconds more, and nothing to compile.
    """
    indptr = np.zeros(X.shape[0] + 1, np.uint64)
    if X.size <= SMALL:
        found = X != 0.0
        np.cumsum(found.sum(axis=1, dtype=np.uint64), out=indptr[1:])
        return Rows(indptr, found.nonzero()[1].astype(np.uint32), X[found], int(X.shape[1]))
    _count(X.reshape(-1), X.shape[1], indptr)
    indices, data = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1])
    _collect(X.reshape(-1), X.shape[1], indptr, indices, data)
    return Rows(indptr, indices, data, int(X.shape[1]))


@njit(cache=True, nogil=True)
def _has_non_zeros(numbers, enough):
    """Whether at least so many of them are not zero; no more are looked at than it takes."""
    found = 0
    for first in range(np.uint64(0), np.uint64(numbers.size), np.uint64(4096)):
        for j in range(first, min(first + np.uint64(4096), np.uint64(numbers.size))):
            found += numbers[j] != 0.0
        if found >= enough:
            return True
    return False


@njit(cache=True, nogil=True)
def _count(X, n_columns, indptr):
    """indptr[i + 1] = the non-zeros of the first i + 1 rows of X, flat; written."""
    for i in range(indptr.size - 1):
        count = 0
        for j in range(n_columns):
            count += X[i * n_columns + j] != 0.0
        indptr[i + 1] = indptr[i] + np.uint64(count)


@njit(cache=True, nogil=True)
def _collect(X, n_columns, indptr, indices, data):
    """The non-zeros of X, flat, and their columns; indices, data written."""
    for i in range(indptr.size - 1):
        e = indptr[i]
        for j in range(n_columns):
            if X[i * n_columns + j] != 0.0:
                indices[e], data[e] = j, X[i * n_columns + j]
                e += np.uint64(1)


def as_csr(rows: Rows | Table) -> sp.csr_matrix:
    """The same matrix for SciPy, sharing the arrays of sparse rows."""
    if not isinstance(rows, Rows):
        return as_csr(_without_zeros(rows.matrix)) if isinstance(rows, Table) else rows.matrix
    indices, indptr = rows.indices.view(np.int32), rows.indptr.view(np.int64)
    return sp.csr_matrix((rows.data, indices, indptr), shape=rows.shape)


def transpose(rows: Rows | Table) -> Rows:
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


def take(rows: Rows | Table, keep: np.ndarray) -> Rows | Table:
    """The rows whose numbers or mask `keep` gives."""
    if isinstance(rows, Table):
        kept = rows.matrix[keep]
        return Table(kept.reshape(-1), *kept.shape)
    return as_rows(as_csr(rows)[keep]) if isinstance(rows, Rows) else rows.take(keep)


def column_counts(rows: Rows) -> np.ndarray:
    """(n_columns,) entries of each column; some at a time, since NumPy first makes 64-bit numbers of them."""
    counts = np.zeros(rows.n_columns, np.int64)
    for at in range(0, rows.nnz, BLOCK):
        counts += np.bincount(rows.indices[at : at + BLOCK].view(np.int32), minlength=rows.n_columns)
    return counts


def full_columns(rows: Rows | Table) -> np.ndarray:
    """(n_columns,) bool: which columns have an entry in every row."""
    n = rows.shape[0]
    if isinstance(rows, Table):
        return np.ones(rows.n_columns, bool)
    few = min(n, 100)  # of most sparse matrices these already rule out all
    first = rows.indices[: int(rows.indptr[few])].view(np.int32)
    full = np.bincount(first, minlength=rows.n_columns) == few
    return column_counts(rows) == n if n > few and full.any() else full


def minus(rows: Rows | Table, shift: np.ndarray) -> Rows | Table:
    """x_ij − shift_j at the entries there are."""
    if isinstance(rows, Table):
        return rows._replace(data=(rows.matrix - shift).reshape(-1))
    return rows._replace(data=rows.data - shift[rows.indices])


@njit(cache=True, nogil=True, fastmath=REORDER)
def sum_of_squares(w):
    """‖w‖². One thread: at 100,000 entries BLAS wakes others, and waits for them where the cores are busy."""
    total = 0.0
    for j in range(w.size):
        total += w[j] * w[j]
    return total


def inner(x, y) -> float:
    """⟨x, y⟩ in one thread: from 10,000 entries on BLAS wakes others, for 3 ms where the cores are busy."""
    return float(x @ y if x.size < 10_000 else np.einsum("i,i", x, y))


@kernel_by_type
def row_begin(rows, i):
    """Where the entries of row i begin in `rows.data`."""


@kernel_by_type
def row_end(rows, i):
    """Where they end."""


@kernel_by_type
def column(rows, i, e):
    """The column of entry e, one of row i."""


@row_begin.implement(Rows)
def _row_begin(rows, i):
    return rows.indptr[i]


@row_end.implement(Rows)
def _row_end(rows, i):
    return rows.indptr[i + 1]


@column.implement(Rows)
def _column(rows, i, e):
    return np.uint64(rows.indices[e])


@row_begin.implement(Table)
def _table_begin(rows, i):
    return np.uint64(i) * np.uint64(rows.n_columns)


@row_end.implement(Table)
def _table_end(rows, i):
    return (np.uint64(i) + np.uint64(1)) * np.uint64(rows.n_columns)


@column.implement(Table)
def _table_column(rows, i, e):
    return e - np.uint64(i) * np.uint64(rows.n_columns)


@kernel_by_type
def height(rows):
    """The number of rows."""


@height.implement(Rows)
def _height(rows):
    return rows.indptr.size - 1


@height.implement(Table)
def _table_height(rows):
    return rows.n_rows


# Row kernels are inlined by force: a call costs as much as a row of a dozen entries.
@njit(cache=True, nogil=True, fastmath=REORDER, forceinline=True)
def row_dot(rows, i, w):
    """x_i · w."""
    total = 0.0
    for e in range(row_begin(rows, i), row_end(rows, i)):
        total += rows.data[e] * w[column(rows, i, e)]
    return total


@njit(cache=True, nogil=True, fastmath=REORDER, forceinline=True)
def soft_dot(rows, i, v, threshold):
    """x_i · soft(v, threshold)."""
    total = 0.0
    for e in range(row_begin(rows, i), row_end(rows, i)):
        total += rows.data[e] * soft(v[column(rows, i, e)], threshold)
    return total


@njit(cache=True, nogil=True, forceinline=True)
def row_add(rows, i, step, w):
    """w += step · x_i."""
    for e in range(row_begin(rows, i), row_end(rows, i)):
        w[column(rows, i, e)] += step * rows.data[e]


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
        for e in range(row_begin(rows, i), row_end(rows, i)):
            x, begin = rows.data[e], column(rows, i, e) * size
            for k in range(size):
                out[i, k] += x * w[begin + k]


@njit(cache=True, nogil=True)
def add_rows_matrix(rows, start, stop, r, w):
    """W += Σ_i x_i r_iᵀ over start ≤ i < stop; r (n, K), w (A, K) as one array, written."""
    size = np.uint64(r.shape[1])
    for i in range(start, stop):
        for e in range(row_begin(rows, i), row_end(rows, i)):
            x, begin = rows.data[e], column(rows, i, e) * size
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
    out = np.empty(height(rows))
    for i in range(out.size):
        total = 0.0
        for e in range(row_begin(rows, i), row_end(rows, i)):
            total += rows.data[e] ** 2
        out[i] = total
    return out


@njit(cache=True, nogil=True)
def column_bounds(rows):
    """The least and the largest entry of each column, ∞ and −∞ where it has none.

    NumPy, which goes by columns, takes twice as long.
    """
    low, high = np.empty(rows.n_columns), np.empty(rows.n_columns)
    for j in range(low.size):
        low[j], high[j] = np.inf, -np.inf
    for i in range(height(rows)):
        for e in range(row_begin(rows, i), row_end(rows, i)):
            j, x = column(rows, i, e), rows.data[e]
            low[j], high[j] = min(low[j], x), max(high[j], x)
    return low, high


@njit(cache=True, nogil=True)
def row_sums(rows):
    """Σ_j x_ij of every row."""
    out = np.zeros(height(rows))
    for i in range(out.size):
        for e in range(row_begin(rows, i), row_end(rows, i)):
            out[i] += rows.data[e]
    return out
