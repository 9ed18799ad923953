"""Sparse rows with a table beside them: words of a token and its vector."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fenchel._sparse import Rows, Table, as_csr, as_rows, column, height, row_begin, row_end


class Mixed(NamedTuple):
    """Row i holds `data[indptr[i]:indptr[i+1]]`: sparse entries, then a number for each of the last columns.

    Kernels walk along them as along others. Those that take several rows at a time take the table apart.
    """

    indptr: np.ndarray  # (n + 1,) uint64
    indices: np.ndarray  # uint32, the columns of sparse entries alone
    data: np.ndarray  # (nnz,) float64
    n_columns: int
    dense: int  # columns of the table

    @property
    def shape(self):
        return self.indptr.size - 1, self.n_columns

    @property
    def nnz(self):
        return self.data.size

    @property
    def matrix(self) -> sp.csr_matrix:
        """(n, n_columns) for SciPy, without zeros."""
        return sp.hstack([as_csr(part) for part in self.apart()], format="csr")

    def apart(self) -> tuple[Rows, Table]:
        """The first columns and the last, in copies."""
        n, before = self.shape[0], np.arange(self.indptr.size, dtype=np.uint64) * np.uint64(self.dense)
        indptr = self.indptr - before
        of_table = _of_table(np.diff(indptr), self.dense)
        sparse = Rows(indptr, self.indices, self.data[~of_table], self.n_columns - self.dense)
        return sparse, Table(self.data[of_table], n, self.dense)

    def take(self, keep) -> "Mixed":
        """The rows whose numbers or mask `keep` gives."""
        sparse, table = self.apart()
        return beside(as_rows(as_csr(sparse)[keep]), table.matrix[keep])


def beside(sparse: Rows, table: np.ndarray) -> Mixed:
    """The columns of sparse rows, then those of a table (n, d)."""
    n, dense = table.shape
    of_table = _of_table(np.diff(sparse.indptr), dense)
    data = np.empty(of_table.size)
    data[of_table], data[~of_table] = table.ravel(), sparse.data
    indptr = sparse.indptr + np.arange(n + 1, dtype=np.uint64) * np.uint64(dense)
    return Mixed(indptr, sparse.indices, data, sparse.n_columns + dense, dense)


def _of_table(counts, dense: int):
    """(nnz,) bool: the entries that are of the table; counts (n,): those of each row that are not."""
    counts = np.stack([counts.astype(np.int64), np.full(counts.size, dense)], axis=1)
    return np.repeat(np.tile([False, True], counts.shape[0]), counts.ravel())


@row_begin.implement(Mixed)
def _begin(rows, i):
    return rows.indptr[i]


@row_end.implement(Mixed)
def _end(rows, i):
    return rows.indptr[i + 1]


@column.implement(Mixed)
def _column(rows, i, e):
    dense, left = np.uint64(rows.dense), rows.indptr[np.uint64(i) + np.uint64(1)] - np.uint64(e)
    if left <= dense:
        return np.uint64(rows.n_columns) - left
    return np.uint64(rows.indices[np.uint64(e) - np.uint64(i) * dense])


@height.implement(Mixed)
def _height(rows):
    return rows.indptr.size - 1
