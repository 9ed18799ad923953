"""A_i and A_iᵀ: weights to scores, score vectors back to weights, and the layout of w.

w is one array of `dim` numbers: a weight per feature, or, with K outputs (labels crossed with attributes),
K per attribute, W (A, K) row by row; then weights that are not of attributes (of transitions); then, where
the offset is free, β, one number per output: the weights of a constant feature of value σ, so that the offset
is b = σβ. β has no penalty. σ is `Problem.constant`: it matters to how fast solvers are, and to nothing else.

Where b is free, a column in a narrow band far from zero (a timestamp) is first shifted next to zero, which
changes b alone: products of such a column have no digits left for its spread. `join` and `split` translate
between w and b as given and the array of all.
"""

from copy import copy
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fenchel import _sparse
from fenchel._cache import njit
from fenchel._threads import PARTS, for_each_share, thread_count

TALL = 2**17  # numbers of a block of rows that BLAS is given: half of the second-level cache
ALONE = 2**18  # multiplications up to which BLAS takes one core; the others are busy with other parts
IN_BLAS = 0.1  # time of a multiplication inside BLAS relative to one in our loop, about 1 ns
SIDE_BY_SIDE = 0.25  # likewise one in a loop over dense rows, which fills registers
CALLS = 2e4  # multiplications that the calls of dense blocks take as long as
AT_ONCE = 2**20  # rows whose norms are computed in one call: on disk there is no room for those of all
ONE_CORE = 2**31  # bytes of a matrix from which on only one core factorises it: `curvature.Cholesky`
FAR = 2.0  # a column is shifted where it is farther from zero than this many times its width: exactly, then


Features = _sparse.Rows | _sparse.Table


class Columns(NamedTuple):
    """The weights one by one: the entries of each column of X, and which outcomes they speak of.

    Weight (a, k) of column a and output k speaks, in row r, of the outcome r·stride + k; outcomes of all
    examples lie one after the other, those of example i between starts[i] and starts[i + 1].
    """

    entries: _sparse.Rows  # (columns, rows of X)
    outputs: int  # weights of a column
    stride: int  # outcomes of a row
    owner: np.ndarray  # (rows of X,) uint32, the example of each row
    starts: np.ndarray  # (n + 1,) uint64
    mass: np.ndarray  # (n,)
    penalised: int  # weights; those behind are of the constant feature of free offsets, the last column


class Design:
    """The linear map from weights to scores: s_i = x_i · w, (n,), or with K `outputs` s_i = x_i W, (n, K)."""

    def __init__(
        self,
        rows: Features,
        outputs: int | None,
        threads=None,
        extra=0,
        free=False,
        shifts=True,
        room=np.empty,
    ):
        """extra: weights not of X. free: whether offsets are; their constant is then 1.

        shifts: whether columns far from zero may be shifted, which copies all numbers. room: what gives an
        array for a number of each row.
        """
        self.n, self.n_columns = rows.shape
        self.matrix = outputs is not None
        self.outputs = outputs or 1
        self.penalised = self.n_columns * self.outputs + extra
        self.dim = self.penalised + self.outputs * free
        self.threads = thread_count(threads)
        self.constant = float(free)
        self.shift = shift_of_far_columns(rows) if free and shifts else None
        self._room = room
        self.rows = rows if self.shift is None else _sparse.minus(rows, self.shift)
        self._centre = None

    @property
    def free(self) -> bool:
        """Whether there are free offsets."""
        return self.constant > 0.0

    def with_constant(self, constant: float) -> "Design":
        """The same map with another value of the constant feature."""
        other = copy(self)
        other.constant = float(constant)
        return other

    def for_each_part(self, count: int, work: float, task, parts: int = PARTS) -> list:
        """[task(start, stop) for each part of 0 … count − 1], by threads; one part if the work is small."""
        return for_each_share(count, work, self.threads, task, parts)

    @property
    def work(self) -> float:
        """Multiplications of a pass over all scores, as long as those of a loop over sparse rows take."""
        return self.rows.nnz * self.outputs * (SIDE_BY_SIDE if isinstance(self.rows, _sparse.Table) else 1.0)

    @property
    def table(self) -> np.ndarray | None:
        """(n, A), where features are dense and there are several outputs: then BLAS does the work."""
        return self.rows.matrix if self.matrix and isinstance(self.rows, _sparse.Table) else None

    def scores(self, w: np.ndarray) -> np.ndarray:
        """A w, (n,) or (n, K)."""
        out = self._room((self.n, self.outputs) if self.matrix else self.n)
        if self.table is not None:
            dot = _times_matrix
        else:
            dot = _sparse.dot_rows_matrix if self.matrix else _sparse.dot_rows
        rows = self.rows if self.table is None else self.table
        self.for_each_part(self.n, self.work, lambda start, stop: dot(rows, start, stop, w, out))
        if self.free:
            out += self.constant * (w[self.penalised :] if self.matrix else w[-1])
        return out

    def adjoint(self, r: np.ndarray) -> np.ndarray:
        """Aᵀ r, (dim,), of r (n,) or (n, K)."""
        pulled = self.transposed(r)
        if not self.free:
            return pulled
        out = np.empty(self.dim)
        out[: self.penalised] = pulled
        out[self.penalised :] = self.constant * r.sum(axis=0)
        return out

    def transposed(self, r: np.ndarray) -> np.ndarray:
        """Xᵀ r, flat, of r (n,) or (n, any)."""
        add = _sparse.add_rows_matrix if r.ndim == 2 else _sparse.add_rows

        def part(start, stop):
            out = np.zeros((self.n_columns, r.shape[1] if r.ndim == 2 else 1))
            if r.ndim == 2 and self.table is not None:
                _add_product(self.table[start:stop], r[start:stop], out)
            else:
                add(self.rows, start, stop, r, out.reshape(-1))
            return out.reshape(-1)

        first, *others = self.for_each_part(self.n, self.work, part)
        for other in others:
            first += other
        return first

    def spreads(self, mass: np.ndarray) -> np.ndarray:
        """(A,) the variance of each column divided by its share of entries: rare ones do not look small."""
        variance = self.squares(mass)
        if self.free:
            with np.errstate(over="ignore", invalid="ignore"):
                variance -= self.centre(mass) ** 2
        if isinstance(self.rows, _sparse.Table):
            return np.maximum(variance, 0.0)
        share = _sparse.column_counts(self.rows) / self.n
        return np.maximum(variance, 0.0) / np.maximum(share, 1.0 / self.n)

    def squares(self, mass: np.ndarray) -> np.ndarray:
        """(A,) Σ_i m_i x_ij²."""

        def part(start, stop):
            out = np.zeros(self.n_columns)
            _add_squares(self.rows, start, stop, mass, out)
            return out

        with np.errstate(over="ignore", invalid="ignore"):
            return sum(self.for_each_part(self.n, self.rows.nnz, part))

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """Xᵀ diag(weights) X, (A, A), weights ≥ 0: by sparse rows, or by dense blocks where that is less."""
        by_rows, by_blocks = self.gram_work
        if by_rows <= by_blocks + CALLS:
            return self._gram_by_rows(weights, by_rows)
        return self._gram_by_blocks(weights)

    @cached_property
    def gram_work(self) -> tuple[float, float]:
        """Work of the Gram matrix by sparse rows and by dense blocks, in multiplications of our own loop."""
        by_blocks = 0.5 * IN_BLAS * self.n * float(self.n_columns) ** 2
        if isinstance(self.rows, _sparse.Table):
            return inf, by_blocks
        counts = np.diff(self.rows.indptr).astype(np.float64)
        return 0.5 * float(counts @ counts), by_blocks

    @property
    def hessian_work(self) -> tuple[float, float]:
        """Likewise of the Hessian: K(K + 1)/2 Gram matrices, or one of all A·K products."""
        by_rows, by_blocks = self.gram_work
        pairs = self.outputs * (self.outputs + 1) / 2
        return pairs * (by_rows + CALLS), float(self.outputs) ** 2 * by_blocks + CALLS

    @property
    def matrix_seconds(self) -> float:
        """About what the Hessian and its factorisation take, in seconds."""
        cores = thread_count(None) if 8 * self.dim**2 >= ONE_CORE else 1  # that stand idle
        return 1e-9 * (min(self.hessian_work) + 0.3 * IN_BLAS * cores * float(self.dim) ** 3)

    @property
    def whitening_seconds(self) -> float:
        """Likewise of a Gram matrix, the root of it and the root's inverse."""
        return 1e-9 * (min(self.gram_work) + 0.5 * IN_BLAS * float(self.n_columns) ** 3)

    @property
    def turning_seconds(self) -> float:
        """Likewise of the orthonormal basis of the rows of a table."""
        return 1e-9 * 1.2 * IN_BLAS * float(self.n) ** 2 * self.n_columns

    def _gram_by_rows(self, weights, work):
        def part(start, stop):
            out = np.zeros((self.n_columns, self.n_columns))
            add_weighted_pairs(self.rows, start, stop, weights, out)
            return out

        gram, *others = self.for_each_part(self.n, work, part)
        for other in others:
            gram += other
        del others
        diagonal = gram.diagonal().copy()
        gram += gram.T
        np.fill_diagonal(gram, diagonal)
        return gram

    def _gram_by_blocks(self, weights):
        out, roots = np.zeros((self.n_columns, self.n_columns)), np.sqrt(weights)[:, None]
        height = min(max(1, 2 * TALL // max(self.n_columns, 1)), self.n)
        room = np.empty((height, self.n_columns))
        for start, block in self.dense_blocks(height):
            count = block.shape[0]
            scaled = np.multiply(block, roots[start : start + count], out=room[:count])
            out += scaled.T @ scaled
        return out

    def dense_blocks(self, height: int):
        """(start, X[start : start + height]) over all rows, dense."""
        for start in range(0, self.n, height):
            block = self._dense_if_small[start : start + height]
            yield start, block.toarray() if sp.issparse(block) else block

    @cached_property
    def _dense_if_small(self) -> np.ndarray | sp.csr_matrix:
        """(n, A): a small matrix is made dense once and for all; slices of a sparse one take longer."""
        matrix = self.rows.matrix
        return matrix.toarray() if sp.issparse(matrix) and self.n * self.n_columns <= TALL else matrix

    def columns(self, mass, stride, starts=None) -> Columns:
        """For the methods that update one weight at a time; rows are examples, or candidates by `starts`."""
        n = mass.size
        if starts is None:
            owner, starts = np.arange(n), np.arange(n + 1) * stride
        else:
            owner = np.repeat(np.arange(n), np.diff(starts.astype(np.int64)))
        entries = _sparse.transpose(self.rows)
        if self.free:
            entries = _sparse.with_full_row(entries, self.constant)
        owner, starts = owner.astype(np.uint32), starts.astype(np.uint64)
        return Columns(entries, self.outputs, stride, owner, starts, mass, self.penalised)

    def centre(self, mass: np.ndarray) -> np.ndarray:
        """(A,) the mean of each column."""
        if self._centre is None:
            self._centre = self.transposed(mass)
        return self._centre

    def centred(self, centre: np.ndarray) -> "Design":
        """The same map, whose columns are known to have these means."""
        other = copy(self)
        other._centre = centre
        return other

    @cached_property
    def norms(self) -> np.ndarray:
        """‖x_i‖², (n,), without the constant feature."""
        if not isinstance(self.rows, _sparse.Rows):
            return _sparse.squared_norms(self.rows)
        out = self._room(self.n)
        for at in range(0, self.n, AT_ONCE):
            some = self.rows._replace(indptr=self.rows.indptr[at : at + AT_ONCE + 1])
            out[at : at + AT_ONCE] = _sparse.squared_norms(some)
        return out

    @cached_property
    def largest_row_sum(self) -> float:
        """The largest Σ_t x_t of a row, without the constant feature."""
        return float(_sparse.row_sums(self.rows).max(initial=0.0))

    @cached_property
    def least_entry(self) -> float:
        """The least entry, at most 0."""
        return float(min(self.rows.data.min(initial=0.0), 0.0))

    def geometry(self) -> dict:
        """What the block kernels of examples, one per row, want to know of the features."""
        return {
            "rows": self.rows,
            "norms": np.add(self.norms, self.constant**2, out=self._room(self.n)),
            "constant": self.constant,
            "n_weights": self.penalised,
        }

    def join(self, w: np.ndarray, b=0.0) -> np.ndarray:
        """All weights (dim,) from those of the features as given and the offset b."""
        if not self.free:
            return np.array(w)
        return np.concatenate([w, np.broadcast_to(self._inner(w, b) / self.constant, self.outputs)])

    def split(self, v: np.ndarray):
        """(w, b) of all weights: the inverse of `join`. b is a number where there is one output, else of
        mean zero.
        """
        if not self.free:
            return v.copy(), 0.0
        w, b = v[: self.penalised].copy(), self.constant * v[self.penalised :]
        if self.shift is not None:
            b = b - self._along_shift(w)
        return w, (b - b.mean() if self.matrix else float(b[0]))

    def _inner(self, w, b):
        """The offset of shifted features that goes with w and the offset b of the features as given."""
        b = np.asarray(b, dtype=np.float64)
        return b if self.shift is None else b + self._along_shift(w)

    def shift_reach(self, w) -> float:
        """The most that the terms of shift · W come to, of one output."""
        if self.shift is None:
            return 0.0
        sizes = np.abs(w[: self.n_columns * self.outputs]).reshape(self.n_columns, self.outputs)
        return float((np.abs(self.shift) @ sizes).max())

    def _along_shift(self, w):
        """shift · W, (K,)."""
        return self.shift @ w[: self.penalised].reshape(self.n_columns, self.outputs)


def _times_matrix(table, start, stop, w, out):
    """out[start:stop] = table[start:stop] @ W, written, in blocks that BLAS leaves to the core that asks."""
    height = _height(table.shape[1], out.shape[1])
    W = w[: table.shape[1] * out.shape[1]].reshape(table.shape[1], out.shape[1])
    for first in range(start, stop, height):
        last = min(first + height, stop)
        np.matmul(table[first:last], W, out=out[first:last])


def _add_product(table, r, out):
    """out (A, K) += tableᵀ r, likewise."""
    height, room = _height(table.shape[1], r.shape[1]), np.empty_like(out)
    for first in range(0, table.shape[0], height):
        out += np.matmul(table[first : first + height].T, r[first : first + height], out=room)


def _height(columns, outputs):
    return max(ALONE // max(columns * outputs, 1), 32)


def shift_of_far_columns(rows: Features) -> np.ndarray | None:
    """(A,) the least entry of each column that has no zero and lies in a narrow band far from zero, else 0.

    None where there is no such column. x − shift is exact: both are within a factor of two (Sterbenz).
    """
    full = _sparse.full_columns(rows)
    if not full.any():
        return None
    low, high = _sparse.column_bounds(rows)
    far = full & (0.5 * high - 0.5 * low < 0.5 / FAR * np.abs(low))  # halves: a difference may overflow
    return np.where(far, low, 0.0) if far.any() else None


@njit(cache=True, nogil=True)
def _add_squares(rows, start, stop, r, out):
    """out_j += Σ_i r_i x_ij² over start ≤ i < stop; written."""
    for i in range(start, stop):
        for e in range(_sparse.row_begin(rows, i), _sparse.row_end(rows, i)):
            out[_sparse.column(rows, i, e)] += r[i] * rows.data[e] * rows.data[e]


@njit(cache=True, nogil=True)
def add_weighted_pairs(rows, start, stop, weights, out):
    """out_jk += Σ_i weights_i x_ij x_ik over start ≤ i < stop; out (d, d) written.

    Of j ≠ k only one of the two entries, whichever column comes first in the row.
    """
    d, flat = np.uint64(out.shape[1]), out.reshape(-1)
    for i in range(start, stop):
        end = rows.indptr[i + 1]
        for e in range(rows.indptr[i], end):
            scaled = weights[i] * rows.data[e]
            begin = np.uint64(rows.indices[e]) * d
            for f in range(e, end):
                flat[begin + np.uint64(rows.indices[f])] += scaled * rows.data[f]
