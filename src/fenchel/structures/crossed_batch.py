"""P and its gradient for K labels on dense features: scores, softmax and gradient in one walk over the rows.

The scores of a few rows stay in the first cache, between products that `dense_products.py` makes: arrays have
`width` columns, K rounded up to a multiple of LANES; those beyond K are padding.
"""

from math import log1p

import numpy as np

from fenchel._cache import helper, njit
from fenchel._lanes import exp_lanes, larger, largest, load, spread, store, total, zeros
from fenchel.structures.dense_products import LANES, add_transposed, padded, times

HEIGHT = np.uint64(32)  # rows whose scores stay in the first cache
ABSENT = -1e30  # the score of a label that is padding


def value_and_pull(blocks, start, stop, w, scores, pull):
    """Σ m_i loss_i and Σ m_i ‖y_i − μ_i‖₁ over start ≤ i < stop; pull += Σ m_i A_iᵀ(y_i − μ_i), written.

    w, pull (dim,). scores: those of all examples, or empty: then at w.
    """
    w = padded(w, blocks.size)
    wide = np.zeros_like(w)
    answer = _value_and_pull(blocks, start, stop, w, scores, wide)
    pull.reshape(-1, blocks.size)[:] += wide[:, : blocks.size]
    return answer


@njit(cache=True, nogil=True)
def _value_and_pull(blocks, start, stop, w, scores, pull):
    """w, pull (A, or A + 1 where offsets are free, width)."""
    columns, labels, width = (
        np.uint64(blocks.layout.rows.n_columns),
        np.uint64(blocks.size),
        np.uint64(w.shape[1]),
    )
    data, weights, sums, s = (
        blocks.layout.rows.data,
        w.reshape(-1),
        pull.reshape(-1),
        np.empty(HEIGHT * width),
    )
    value, moved, stop = 0.0, 0.0, np.uint64(stop)
    for first in range(np.uint64(start), stop, HEIGHT):
        count = min(HEIGHT, stop - first)
        if scores.size == 0:
            times(data[first * columns :], count, columns, weights, width, s)
            if blocks.layout.constant > 0.0:
                _add_offsets(blocks.layout.constant, count, weights[columns * width :], width, s)
        else:
            _copy(scores.reshape(-1)[first * labels :], count, labels, width, s)
        for r in range(count):
            row = s[r * width : (r + np.uint64(1)) * width]
            for k in range(labels, width):
                row[k] = ABSENT
            loss, distance = _residual(blocks, first + r, labels, row)
            value += loss
            moved += distance
        add_transposed(data[first * columns :], count, columns, s, width, sums)
        if blocks.layout.constant > 0.0:
            _add_to_offsets(blocks.layout.constant, count, s, width, sums[columns * width :])
    return value, moved


@helper(cache=True, nogil=True, forceinline=True)
def _residual(blocks, i, labels, row):
    """row: scores become m (y − μ), padding 0. Returns m · loss and Σ |m (y − μ)|.

    The likeliest label is left out of sums and set last, from those of the others: no digits cancel.
    """
    width, mass, loss = np.uint64(row.size), blocks.mass[i], 0.0
    top, lanes = spread(ABSENT, zeros(LANES)), zeros(LANES)
    for k in range(np.uint64(0), width, np.uint64(LANES)):
        top = larger(top, load(row, k, lanes))
    peak, best = largest(top), np.uint64(0)
    while row[best] != peak and best < labels - np.uint64(1):
        best += np.uint64(1)
    for e in range(blocks.outcomes.targets.indptr[i], blocks.outcomes.targets.indptr[i + np.uint64(1)]):
        loss += blocks.outcomes.targets.data[e] * (peak - row[blocks.outcomes.targets.indices[e]])
    level = spread(peak, lanes)
    for k in range(np.uint64(0), width, np.uint64(LANES)):
        store(row, k, exp_lanes(load(row, k, lanes) - level))
    row[best] = 0.0
    sums = zeros(LANES)
    for k in range(np.uint64(0), width, np.uint64(LANES)):
        sums = sums + load(row, k, lanes)
    others = total(sums)
    scale = spread(-mass / (1.0 + others), lanes)
    for k in range(np.uint64(0), width, np.uint64(LANES)):
        store(row, k, load(row, k, lanes) * scale)
    for k in range(labels, width):
        row[k] = 0.0
    for e in range(blocks.outcomes.targets.indptr[i], blocks.outcomes.targets.indptr[i + np.uint64(1)]):
        row[blocks.outcomes.targets.indices[e]] += mass * blocks.outcomes.targets.data[e]
    row[best] = 0.0
    sums, sizes = zeros(LANES), zeros(LANES)
    for k in range(np.uint64(0), width, np.uint64(LANES)):
        here = load(row, k, lanes)
        sums = sums + here
        sizes = sizes + larger(here, zeros(LANES) - here)
    rest = total(sums)
    row[best] = -rest
    return mass * (loss + log1p(others)), total(sizes) + abs(rest)


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
