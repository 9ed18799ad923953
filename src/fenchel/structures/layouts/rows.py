"""One row of features per example, by itself or crossed with K labels.

`SingleRows`: one weight vector; the parts of an example are two, the score of the second is always 0.
`CrossedRows`: W (A, K), a weight for each pair of attribute and label; f(x, y) is never written out.
"""

from typing import NamedTuple

import numpy as np

from fenchel._cache import njit
from fenchel._math import soft
from fenchel._sparse import Rows, Table, column, row_begin, row_end, soft_dot
from fenchel.structures import base

NO_MASK = np.empty(0, np.uint8)


class SingleRows(NamedTuple):
    """n examples of d features."""

    rows: Rows | Table
    norms: np.ndarray  # (n,) ‖x_i‖² + σ²
    constant: float  # σ, the value of the constant feature of a free offset; 0 without
    n_weights: int  # d; v[d], where σ > 0, is the weight β of the constant feature


class CrossedRows(NamedTuple):
    """n examples of A attributes, K labels."""

    rows: Rows | Table  # (n, A)
    norms: np.ndarray  # (n,) ‖x_i‖² + σ²
    constant: float  # σ, the value of the constant feature of free offsets; 0 without
    n_weights: int  # A·K; behind them, where σ > 0, the K weights β of the constant feature
    labels: int  # K
    mask: np.ndarray = NO_MASK  # (A·K,) uint8, 0 where a weight stays 0; empty: none does


# ---- one weight vector


@base.block_length.implement(SingleRows)
def _two(blocks, i):
    return 2


@base.block_view.implement(SingleRows, CrossedRows)
def _view(blocks, mu, i):
    return mu[i]


@base.block_read.implement(SingleRows)
def _read_one(blocks, scores, i, s):
    s[0] = scores[i]
    s[1] = 0.0


@base.block_write.implement(SingleRows)
def _write_one(blocks, i, s, scores):
    scores[i] = s[0]


@base.block_scores.implement(SingleRows)
def _score(blocks, i, v, s):
    layout, dot = blocks.layout, 0.0
    if blocks.threshold == 0.0:
        for e in range(row_begin(layout.rows, i), row_end(layout.rows, i)):
            dot += layout.rows.data[e] * v[column(layout.rows, i, e)]
    else:
        dot = soft_dot(layout.rows, i, v, blocks.threshold)
    if layout.constant > 0.0:
        dot += layout.constant * v[layout.n_weights]
    s[0] = dot
    s[1] = 0.0


@base.block_add.implement(SingleRows)
def _add_one(blocks, i, step, delta, v):
    layout, change = blocks.layout, step * delta[0]
    for e in range(row_begin(layout.rows, i), row_end(layout.rows, i)):
        v[column(layout.rows, i, e)] += change * layout.rows.data[e]
    if layout.constant > 0.0:
        v[layout.n_weights] += change * layout.constant


@base.block_squared_norm.implement(SingleRows)
def _squared_norm_of_one(blocks, i, delta):
    return delta[0] * delta[0] * blocks.layout.norms[i]


@base.block_move.implement(SingleRows)
def _move_one(blocks, i, step, delta, s, moved):
    moved[0] = s[0] + step * blocks.layout.norms[i] * delta[0]
    moved[1] = s[1]


@base.block_radius.implement(SingleRows)
def _radius_of_one(blocks, i):
    return blocks.layout.norms[i]


@base.block_catch_up.implement(SingleRows)
def _catch_up_one(blocks, i, now, drift, g, seen, v):
    rows = blocks.layout.rows
    for e in range(row_begin(rows, i), row_end(rows, i)):
        j = column(rows, i, e)
        v[j] -= g[j] * (drift[now] - drift[seen[j]])
        seen[j] = now


# ---- crossed with labels


@base.block_length.implement(CrossedRows)
def _length(blocks, i):
    return blocks.layout.labels


@base.block_read.implement(CrossedRows)
def _read(blocks, scores, i, s):
    for k in range(blocks.layout.labels):
        s[k] = scores[i, k]


@base.block_write.implement(CrossedRows)
def _write(blocks, i, s, scores):
    for k in range(blocks.layout.labels):
        scores[i, k] = s[k]


@base.block_scores.implement(CrossedRows)
def _scores(blocks, i, v, s):
    layout = blocks.layout
    labels, d = np.uint64(layout.labels), np.uint64(layout.n_weights)
    for k in range(labels):
        s[k] = layout.constant * v[d + k] if layout.constant > 0.0 else 0.0
    for e in range(row_begin(layout.rows, i), row_end(layout.rows, i)):
        x, begin = layout.rows.data[e], column(layout.rows, i, e) * labels
        if blocks.threshold == 0.0:
            for k in range(labels):
                s[k] += x * v[begin + k]
        else:
            for k in range(labels):
                s[k] += x * soft(v[begin + k], blocks.threshold)


@base.block_add.implement(CrossedRows)
def _add(blocks, i, step, delta, v):
    layout = blocks.layout
    labels, d = np.uint64(layout.labels), np.uint64(layout.n_weights)
    for e in range(row_begin(layout.rows, i), row_end(layout.rows, i)):
        x, begin = step * layout.rows.data[e], column(layout.rows, i, e) * labels
        if layout.mask.size == 0:
            for k in range(labels):
                v[begin + k] += x * delta[k]
        else:
            for k in range(labels):
                v[begin + k] += x * delta[k] * layout.mask[begin + k]
    if layout.constant > 0.0:
        for k in range(labels):
            v[d + k] += step * layout.constant * delta[k]


@base.block_squared_norm.implement(CrossedRows)
def _squared_norm(blocks, i, delta):
    layout, total = blocks.layout, 0.0
    for k in range(layout.labels):
        if layout.mask.size == 0:
            total += delta[k] * delta[k] * layout.norms[i]
        else:
            total += delta[k] * delta[k] * masked_norm(layout, i, k)
    return total


@njit(cache=True, nogil=True)
def masked_norm(layout, i, k):
    """‖x_i‖² + σ² of the attributes that have a weight for label k."""
    labels, total = np.uint64(layout.labels), layout.constant * layout.constant
    for e in range(row_begin(layout.rows, i), row_end(layout.rows, i)):
        x, j = layout.rows.data[e], column(layout.rows, i, e) * labels + np.uint64(k)
        total += x * x * layout.mask[j]
    return total


# A_i A_iᵀ is diagonal, yu2011 (48): no weight belongs to two labels.
@base.block_norms.implement(CrossedRows)
def _norms(blocks, i, norms):
    layout, labels = blocks.layout, np.uint64(blocks.layout.labels)
    for k in range(labels):
        norms[k] = layout.norms[i] if layout.mask.size == 0 else layout.constant * layout.constant
    if layout.mask.size > 0:
        for e in range(row_begin(layout.rows, i), row_end(layout.rows, i)):
            x, begin = layout.rows.data[e], column(layout.rows, i, e) * labels
            for k in range(labels):
                norms[k] += x * x * layout.mask[begin + k]


@base.block_product.implement(CrossedRows)
def _product(blocks, i, j, k):
    return 0.0


@base.block_move_pair.implement(CrossedRows)
def _move_pair(blocks, i, step, j, k, norms, slopes):
    slopes[j] += step * norms[j]
    slopes[k] -= step * norms[k]


@base.block_move.implement(CrossedRows)
def _move(blocks, i, step, delta, s, moved):
    layout = blocks.layout
    for k in range(layout.labels):
        norm = layout.norms[i] if layout.mask.size == 0 else masked_norm(layout, i, k)
        moved[k] = s[k] + step * norm * delta[k]


@base.block_radius.implement(CrossedRows)
def _radius(blocks, i):
    return 2.0 * blocks.layout.norms[i] if blocks.layout.labels > 1 else 0.0


@base.block_catch_up.implement(CrossedRows)
def _catch_up(blocks, i, now, drift, g, seen, v):
    labels, rows = np.uint64(blocks.layout.labels), blocks.layout.rows
    for e in range(row_begin(rows, i), row_end(rows, i)):
        begin = column(rows, i, e) * labels
        for k in range(labels):
            j = begin + k
            v[j] -= g[j] * (drift[now] - drift[seen[j]])
            seen[j] = now
