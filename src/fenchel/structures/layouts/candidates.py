"""Several rows of features per example, one for each part, and one weight vector for all.

Scores, marginals and targets of all parts lie one after the other, (M,); those of example i between
offsets[i] and offsets[i + 1].
"""

from typing import NamedTuple

import numpy as np

from fenchel import _sparse
from fenchel._cache import njit
from fenchel.structures import base


class CandidateRows(NamedTuple):
    """M candidates of n examples in d weights."""

    rows: _sparse.Rows  # (M, d)
    offsets: np.ndarray  # (n + 1,) uint64
    norms: np.ndarray  # (M,) ‖f(x_i, y)‖²
    work: np.ndarray  # (d,) zero between kernels: where a combination of rows is added up
    n_weights: int  # d


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


@base.block_scores.implement(CandidateRows)
def _scores(blocks, i, v, s):
    begin, end = blocks.layout.offsets[i], blocks.layout.offsets[i + 1]
    for j in range(end - begin):
        if blocks.threshold == 0.0:
            s[j] = _sparse.row_dot(blocks.layout.rows, begin + j, v)
        else:
            s[j] = _sparse.soft_dot(blocks.layout.rows, begin + j, v, blocks.threshold)


@base.block_add.implement(CandidateRows)
def _add(blocks, i, step, delta, v):
    begin, end = blocks.layout.offsets[i], blocks.layout.offsets[i + 1]
    for j in range(end - begin):
        if delta[j] != 0.0:
            _sparse.row_add(blocks.layout.rows, begin + j, step * delta[j], v)


@base.block_squared_norm.implement(CandidateRows)
def _squared_norm(blocks, i, delta):
    layout, total = blocks.layout, 0.0
    begin, end = layout.offsets[i], layout.offsets[i + 1]
    for j in range(end - begin):
        _sparse.row_add(layout.rows, begin + j, delta[j], layout.work)
    for e in range(layout.rows.indptr[begin], layout.rows.indptr[end]):
        t = layout.rows.indices[e]
        total += layout.work[t] * layout.work[t]
        layout.work[t] = 0.0
    return total


@base.block_norms.implement(CandidateRows)
def _norms(blocks, i, norms):
    begin, end = blocks.layout.offsets[i], blocks.layout.offsets[i + 1]
    for j in range(end - begin):
        norms[j] = row_product(blocks.layout.rows, begin + j, begin + j)


@base.block_product.implement(CandidateRows)
def _product(blocks, i, j, k):
    begin = blocks.layout.offsets[i]
    return row_product(blocks.layout.rows, begin + np.uint64(j), begin + np.uint64(k))


@base.block_move_pair.implement(CandidateRows)
def _move_pair(blocks, i, step, j, k, norms, slopes):
    rows, begin, end = blocks.layout.rows, blocks.layout.offsets[i], blocks.layout.offsets[i + 1]
    first, second = begin + np.uint64(j), begin + np.uint64(k)
    for other in range(begin, end):
        product = row_product(rows, first, other) - row_product(rows, second, other)
        slopes[other - begin] += step * product


@base.block_move.implement(CandidateRows)
def _move(blocks, i, step, delta, s, moved):
    layout = blocks.layout
    begin, end = layout.offsets[i], layout.offsets[i + 1]
    for j in range(end - begin):
        _sparse.row_add(layout.rows, begin + j, delta[j], layout.work)
    for j in range(end - begin):
        moved[j] = s[j] + step * _sparse.row_dot(layout.rows, begin + j, layout.work)
    for e in range(layout.rows.indptr[begin], layout.rows.indptr[end]):
        layout.work[layout.rows.indices[e]] = 0.0


@base.block_radius.implement(CandidateRows)
def _radius(blocks, i):
    """Of a list of candidates: the farthest of them from any that is true."""
    layout, y, largest = blocks.layout, np.empty(blocks.size), 0.0
    begin, end = layout.offsets[i], layout.offsets[i + 1]
    base.block_target(blocks, i, y)
    for true in range(begin, end):
        if y[true - begin] > 0.0:
            for other in range(begin, end):
                product = row_product(layout.rows, true, other)
                distance = layout.norms[true] + layout.norms[other] - 2.0 * product
                largest = max(largest, distance)
    return largest


@base.block_catch_up.implement(CandidateRows)
def _catch_up(blocks, i, now, drift, g, seen, v):
    layout = blocks.layout
    for e in range(layout.rows.indptr[layout.offsets[i]], layout.rows.indptr[layout.offsets[i + 1]]):
        j = layout.rows.indices[e]
        v[j] -= g[j] * (drift[now] - drift[seen[j]])
        seen[j] = now
