"""P and its gradient for K labels: scores, softmax and gradient in one walk over the rows.

The scores of a few rows stay in the first cache, between products with dense rows, which `dense_products.py`
makes, or with sparse ones: arrays have `width` columns, K rounded up to a multiple of LANES; those beyond K
are padding.
"""

from math import log1p

import numpy as np

from fenchel._cache import helper, njit
from fenchel._dispatch import kernel_by_type
from fenchel._lanes import (
    chosen,
    exp_lanes,
    lanes_of,
    larger,
    largest,
    load,
    log1p_lanes,
    log_lanes,
    smaller,
    spread,
    store,
    total,
    zeros,
)
from fenchel._sparse import Rows, Table
from fenchel.structures.dense_products import LANES, add_transposed, padded, times

HEIGHT = np.uint64(32)  # rows whose scores stay in the first cache
ABSENT = -1e30  # the score of a label that is padding
FEW = 40  # labels up to which rows are side by side in registers; beyond, labels are
RICH = 16  # entries of a column from which on padding its weights costs next to nothing


def value_and_pull(blocks, start, stop, w, scores, pull):
    """Σ m_i loss_i and Σ m_i ‖y_i − μ_i‖₁ over start ≤ i < stop; pull += Σ m_i A_iᵀ(y_i − μ_i), written.

    w, pull (dim,). scores: those of all examples, or empty: then at w.
    """
    many = True if blocks.size > FEW else None
    if blocks.size % LANES == 0:
        shape = -1, blocks.size
        return _value_and_pull(blocks, start, stop, w.reshape(shape), scores, pull.reshape(shape), many)
    w = padded(w, blocks.size)
    wide = np.zeros_like(w)
    answer = _value_and_pull(blocks, start, stop, w, scores, wide, many)
    pull.reshape(-1, blocks.size)[:] += wide[:, : blocks.size]
    return answer


def pays(rows, labels: int) -> bool:
    """Whether there are kernels for such rows, and a walk over them takes longer than padding W does."""
    return isinstance(rows, Rows | Table) and (labels % LANES == 0 or rows.nnz >= RICH * rows.n_columns)


@njit(cache=True, nogil=True)
def _value_and_pull(blocks, start, stop, w, scores, pull, many):
    """w, pull (A, or A + 1 where offsets are free, width). many: None where labels are few, for which the
    kernel of many is then not compiled.
    """
    rows, labels, width = blocks.layout.rows, np.uint64(blocks.size), np.uint64(w.shape[1])
    weights, sums, s = w.reshape(-1), pull.reshape(-1), np.empty(HEIGHT * width)
    room = np.empty(HEIGHT * (labels + labels + np.uint64(1)))
    free = np.uint64(rows.n_columns) * width  # where the weights of the constant begin
    value, moved, stop = 0.0, 0.0, np.uint64(stop)
    for first in range(np.uint64(start), stop, HEIGHT):
        count = min(HEIGHT, stop - first)
        if scores.size == 0:
            several_scores(rows, first, count, weights, width, s)
            if blocks.layout.constant > 0.0:
                _add_offsets(blocks.layout.constant, count, weights[free:], width, s)
        else:
            _copy(scores.reshape(-1)[first * labels :], count, labels, width, s)
        if many is None:
            loss, distance = _residuals_of_few(blocks, first, count, labels, width, s, room)
        else:
            loss, distance = _residuals_of_many(blocks, first, count, labels, width, s)
        value += loss
        moved += distance
        add_several(rows, first, count, s, width, sums)
        if blocks.layout.constant > 0.0:
            _add_to_offsets(blocks.layout.constant, count, s, width, sums[free:])
    return value, moved


@kernel_by_type
def several_scores(rows, first, count, w, width, s):
    """s (count, width) = x W of the rows from `first` on, written; w and s flat."""


@kernel_by_type
def add_several(rows, first, count, s, width, pull):
    """pull (A, width) += xᵀ s of the same rows; written."""


@several_scores.implement(Table)
def _dense_scores(rows, first, count, w, width, s):
    columns = np.uint64(rows.n_columns)
    times(rows.data[first * columns :], count, columns, w, width, s)


@add_several.implement(Table)
def _add_dense(rows, first, count, s, width, pull):
    columns = np.uint64(rows.n_columns)
    add_transposed(rows.data[first * columns :], count, columns, s, width, pull)


@several_scores.implement(Rows)
def _sparse_scores(rows, first, count, w, width, s):
    for r in range(count):
        begin, end, k = rows.indptr[first + r], rows.indptr[first + r + np.uint64(1)], np.uint64(0)
        while k + np.uint64(8) <= width:
            _scores_of_row(rows, begin, end, w[k:], width, s[r * width + k :], zeros(8))
            k += np.uint64(8)
        if k < width:
            _scores_of_row(rows, begin, end, w[k:], width, s[r * width + k :], zeros(4))


@helper(cache=True, nogil=True, forceinline=True)
def _scores_of_row(rows, begin, end, w, width, s, none):
    """The scores of as many labels as `none` has lanes, from the entries between begin and end; written."""
    sums = none
    for e in range(begin, end):
        sums = sums + spread(rows.data[e], none) * load(w, np.uint64(rows.indices[e]) * width, none)
    store(s, np.uint64(0), sums)


@add_several.implement(Rows)
def _add_sparse(rows, first, count, s, width, pull):
    wide = width - width % np.uint64(8)
    for r in range(count):
        for e in range(rows.indptr[first + r], rows.indptr[first + r + np.uint64(1)]):
            x, to = rows.data[e], np.uint64(rows.indices[e]) * width
            _add_row(x, s[r * width :], np.uint64(0), wide, pull[to:], zeros(8))
            _add_row(x, s[r * width :], wide, width, pull[to:], zeros(LANES))


@helper(cache=True, nogil=True, forceinline=True)
def _add_row(x, s, k, stop, pull, none):
    """pull[k:stop] += x s[k:stop], as many at a time as `none` has lanes; written."""
    factor = spread(x, none)
    while k < stop:
        store(pull, k, load(pull, k, none) + factor * load(s, k, none))
        k += np.uint64(lanes_of(none))


@helper(cache=True, nogil=True)
def _residuals_of_few(blocks, first, count, labels, width, s, room):
    """s (count, width): scores become m (y − μ), padding 0. Returns Σ m · loss and Σ |m (y − μ)|.

    Eight rows at a time, which turned on their side lie next to each other: a row of three takes 100 ns
    otherwise, most of it waiting for the exponentials of the same row. The likeliest label is left out of
    sums and set last, from those of the others: no digits cancel. room: for (labels, HEIGHT) scores, as many
    targets, and masses.
    """
    t, y = room, room[labels * HEIGHT :]
    mass = y[labels * HEIGHT :]
    _turn(blocks, first, count, labels, width, s, t, y, mass)
    none = zeros(8)
    one, value, moved = spread(1.0, none), none, none
    for g in range(np.uint64(0), count, np.uint64(8)):
        top, best, m = load(t, g, none), none, load(mass, g, none)
        for k in range(np.uint64(1), labels):
            here = load(t, k * HEIGHT + g, none)
            best = chosen(here - top, spread(float(k), none), best)
            top = larger(top, here)
        loss, others = none, none
        for k in range(labels):
            here, off = load(t, k * HEIGHT + g, none), best - spread(float(k), none)
            loss = loss + load(y, k * HEIGHT + g, none) * (top - here)
            e = chosen(off * off, exp_lanes(here - top), none)
            others = others + e
            store(t, k * HEIGHT + g, e)
        share, rest, sizes = m / (one + others), none, none
        for k in range(labels):
            off, e = best - spread(float(k), none), load(t, k * HEIGHT + g, none)
            residual = chosen(off * off, m * load(y, k * HEIGHT + g, none) - share * e, none)
            rest = rest + residual
            sizes = sizes + larger(residual, none - residual)
            store(t, k * HEIGHT + g, residual)
        for k in range(labels):
            off = best - spread(float(k), none)
            store(t, k * HEIGHT + g, chosen(off * off, load(t, k * HEIGHT + g, none), none - rest))
        more = chosen(others - one, log_lanes(one + others), log1p_lanes(smaller(others, one)))
        value = value + m * (loss + more)
        moved = moved + sizes + larger(rest, none - rest)
    for r in range(count):
        for k in range(labels):
            s[r * width + k] = t[k * HEIGHT + r]
        for k in range(labels, width):
            s[r * width + k] = 0.0
    return total(value), total(moved)


@helper(cache=True, nogil=True, forceinline=True)
def _turn(blocks, first, count, labels, width, s, t, y, mass):
    """t, y (labels, HEIGHT): scores and targets turned on their side; mass; all written, zeros from `count`
    on to the next multiple of eight.
    """
    indptr = blocks.outcomes.targets.indptr
    for r in range((count + np.uint64(7)) // np.uint64(8) * np.uint64(8)):
        mass[r] = 0.0
        for k in range(labels):
            t[k * HEIGHT + r], y[k * HEIGHT + r] = 0.0, 0.0
    for r in range(count):
        i = first + r
        mass[r] = blocks.mass[i]
        for k in range(labels):
            t[k * HEIGHT + r] = s[r * width + k]
        for e in range(indptr[i], indptr[i + np.uint64(1)]):
            k = np.uint64(blocks.outcomes.targets.indices[e])
            y[k * HEIGHT + r] = blocks.outcomes.targets.data[e]


@helper(cache=True, nogil=True)
def _residuals_of_many(blocks, first, count, labels, width, s):
    """The same row by row, with labels side by side."""
    value, moved = 0.0, 0.0
    for r in range(count):
        row = s[r * width : (r + np.uint64(1)) * width]
        for k in range(labels, width):
            row[k] = ABSENT
        loss, distance = _residual(blocks, first + r, labels, row)
        value += loss
        moved += distance
    return value, moved


@helper(cache=True, nogil=True, forceinline=True)
def _residual(blocks, i, labels, row):
    """row: scores become m (y − μ), padding 0. Returns m · loss and Σ |m (y − μ)|."""
    width, mass, loss = np.uint64(row.size), blocks.mass[i], 0.0
    wide = width - width % np.uint64(8)  # labels up to here by eights, the rest by fours
    peak = max(_peak(row, np.uint64(0), wide, zeros(8)), _peak(row, wide, width, zeros(LANES)))
    best = np.uint64(0)
    while row[best] != peak and best < labels - np.uint64(1):
        best += np.uint64(1)
    for e in range(blocks.outcomes.targets.indptr[i], blocks.outcomes.targets.indptr[i + np.uint64(1)]):
        loss += blocks.outcomes.targets.data[e] * (peak - row[blocks.outcomes.targets.indices[e]])
    row[best] = ABSENT  # left out of the sum: no digits cancel
    others = _exponentials(row, np.uint64(0), wide, peak, zeros(8))
    others += _exponentials(row, wide, width, peak, zeros(LANES))
    row[best] = 0.0
    for k in range(labels, width):
        row[k] = 0.0
    share = mass / (1.0 + others)
    _scale(row, np.uint64(0), wide, -share, zeros(8))
    _scale(row, wide, width, -share, zeros(LANES))
    rest = moved = share * others
    for e in range(blocks.outcomes.targets.indptr[i], blocks.outcomes.targets.indptr[i + np.uint64(1)]):
        k, more = np.uint64(blocks.outcomes.targets.indices[e]), mass * blocks.outcomes.targets.data[e]
        if k != best:
            moved += abs(row[k] + more) + row[k]
            row[k] += more
            rest -= more
    row[best] = rest
    return mass * (loss + log1p(others)), moved + abs(rest)


@helper(cache=True, nogil=True, forceinline=True)
def _peak(row, k, stop, none):
    """The largest of row[k:stop], as many at a time as `none` has lanes."""
    top = none + spread(ABSENT, none)
    while k < stop:
        top = larger(top, load(row, k, none))
        k += np.uint64(lanes_of(none))
    return largest(top)


@helper(cache=True, nogil=True, forceinline=True)
def _exponentials(row, k, stop, peak, none):
    """row[k:stop] = e^(row − peak), written; returns their sum."""
    level, sums = spread(peak, none), none
    while k < stop:
        here = exp_lanes(load(row, k, none) - level)
        store(row, k, here)
        sums = sums + here
        k += np.uint64(lanes_of(none))
    return total(sums)


@helper(cache=True, nogil=True, forceinline=True)
def _scale(row, k, stop, factor, none):
    """row[k:stop] *= factor, written."""
    factors = spread(factor, none)
    while k < stop:
        store(row, k, load(row, k, none) * factors)
        k += np.uint64(lanes_of(none))


@helper(cache=True, nogil=True, forceinline=True)
def _copy(scores, count, labels, width, s):
    for r in range(count):
        for k in range(labels):
            s[r * width + k] = scores[r * labels + k]


@helper(cache=True, nogil=True, forceinline=True)
def _add_offsets(constant, count, beta, width, s):
    for r in range(count):
        for k in range(width):
            s[r * width + k] += constant * beta[k]


@helper(cache=True, nogil=True, forceinline=True)
def _add_to_offsets(constant, count, s, width, beta):
    for r in range(count):
        for k in range(width):
            beta[k] += constant * s[r * width + k]
