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
        return sp.hstack([as_csr(self.sparse), sp.csr_matrix(self.table.matrix)], format="csr")

    @property
    def sparse(self) -> Rows:
        """The columns that are not of the table, in a copy."""
        kept = np.ones(self.nnz, bool)
        kept[self._places] = False
        indptr = self.indptr - np.arange(self.indptr.size, dtype=np.uint64) * np.uint64(self.dense)
        return Rows(indptr, self.indices, self.data[kept], self.n_columns - self.dense)

    @property
    def table(self) -> Table:
        """The last columns, in a copy."""
        return Table(self.data[self._places].reshape(-1), self.shape[0], self.dense)

    @property
    def _places(self):
        """(n, dense) where the numbers of the table are."""
        return self.indptr[1:].astype(np.int64)[:, None] + np.arange(-self.dense, 0)

    def take(self, keep) -> "Mixed":
        """The rows whose numbers or mask `keep` gives."""
        return beside(as_rows(as_csr(self.sparse)[keep]), self.table.matrix[keep])


def beside(sparse: Rows, table: np.ndarray) -> Mixed:
    """The columns of sparse rows, then those of a table (n, d)."""
    n, dense = table.shape
    before = np.arange(n + 1, dtype=np.uint64) * np.uint64(dense)
    indptr = sparse.indptr + before
    data, of_table = np.empty(sparse.nnz + table.size), np.zeros(sparse.nnz + table.size, bool)
    of_table[indptr[1:].astype(np.int64)[:, None] + np.arange(-dense, 0)] = True
    data[of_table], data[~of_table] = table.ravel(), sparse.data
    return Mixed(indptr, sparse.indices, data, sparse.n_columns + dense, dense)


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
