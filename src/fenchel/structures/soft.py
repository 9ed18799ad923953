"""Softmax of many rows of scores, with exponentials several at a time: `_lanes.exp_lanes`."""

from math import log1p

import numpy as np

from fenchel._cache import njit
from fenchel._lanes import exp_lanes, load, store, zeros
from fenchel._math import REORDER

LANES, CHUNK = 8, 512  # exponentials side by side; numbers that stay in the first cache in between


@njit(cache=True, nogil=True)
def exponentials(numbers, begin, end):
    """eˣ in place of x, x ≤ 0, from begin to end of a flat array."""
    k = np.uint64(begin)
    while k + np.uint64(LANES) <= np.uint64(end):
        store(numbers, k, exp_lanes(load(numbers, k, zeros(LANES))))
        k += np.uint64(LANES)
    for j in range(k, np.uint64(end)):
        numbers[j] = np.exp(max(numbers[j], -708.0))


@njit(cache=True, nogil=True, forceinline=True)
def below_the_best(size, scores, b, mu):
    """The label of largest score + b; mu = what all are below it, written."""
    best, top = np.uint64(0), -np.inf
    for k in range(size):
        mu[k] = scores[k] + b[k]
        if mu[k] > top:
            best, top = k, mu[k]
    for k in range(size):
        mu[k] -= top
    return best


@njit(cache=True, nogil=True)
def soft_residuals(blocks, start, scores):
    """Of the examples from `start` on, whose scores these are: m_i (y_i − μ_i) in the place of scores (m, K).

    Labels crossed with attributes, log loss. Returns Σ m_i loss_i and Σ m_i ‖y_i − μ_i‖₁.
    """
    size, flat, nothing = np.uint64(scores.shape[1]), scores.reshape(-1), np.zeros(scores.shape[1])
    value, moved, count = 0.0, 0.0, np.uint64(scores.shape[0])
    height = np.uint64(max(CHUNK // scores.shape[1], 1))
    best = np.empty(height, np.uint64)
    for first in range(np.uint64(0), count, height):
        last = min(first + height, count)
        for r in range(first, last):
            row, i = flat[r * size :], np.uint64(start) + r
            best[r - first] = below_the_best(size, row, nothing, row)
            for e in range(blocks.targets.indptr[i], blocks.targets.indptr[i + np.uint64(1)]):
                value -= blocks.mass[i] * blocks.targets.data[e] * row[blocks.targets.indices[e]]
        exponentials(flat, first * size, last * size)
        for r in range(first, last):
            rest, distance = _residual_row(
                blocks, np.uint64(start) + r, best[r - first], size, flat[r * size :]
            )
            value += rest
            moved += distance
    return value, moved


@njit(cache=True, nogil=True, fastmath=REORDER)
def _residual_row(blocks, i, best, size, row):
    """row: e^(score − the largest) becomes m (y − μ). Returns m log Σ of the former and Σ |of the latter|."""
    row[best], others, mass = 0.0, 0.0, blocks.mass[i]
    for k in range(size):
        others += row[k]
    scale, rest, distance = mass / (1.0 + others), mass * log1p(others), 0.0
    for k in range(size):
        row[k] *= -scale
    for e in range(blocks.targets.indptr[i], blocks.targets.indptr[i + np.uint64(1)]):
        row[blocks.targets.indices[e]] += mass * blocks.targets.data[e]
    row[best], total = 0.0, 0.0
    for k in range(size):
        total += row[k]
        distance += abs(row[k])
    row[best] = -total  # as the sum of the others: where μ is near one no digits cancel
    return rest, distance + abs(total)
