"""Loops over examples, the same for every structure: these can be split among threads."""

import numpy as np

from fenchel._cache import helper, njit
from fenchel._math import REORDER
from fenchel.structures.base import (
    block_add,
    block_covariance,
    block_length,
    block_marginals,
    block_read,
    block_residual,
    block_scores,
    block_target,
    block_view,
    block_write,
)


@helper(cache=True, nogil=True, forceinline=True)
def read_scores(blocks, i, v, scores, s):
    """s = scores of example i: those given for all, or, where none are (an empty array), at the weights v."""
    if scores.size == 0:
        block_scores(blocks, i, v, s)
    else:
        block_read(blocks, scores, i, s)


@helper(cache=True, nogil=True, fastmath=REORDER, forceinline=True)
def sum_of_sizes(m, delta):
    """Σ |δ_j| over j < m."""
    total = 0.0
    for j in range(np.uint64(m)):
        total += abs(delta[j])
    return total


@njit(cache=True, nogil=True)
def all_marginals(blocks, start, stop, scores, mu):
    """Marginals at the scores of start ≤ i < stop; mu written."""
    s = np.empty(blocks.size)
    for i in range(start, stop):
        block_read(blocks, scores, i, s)
        block_marginals(blocks, i, s, block_view(blocks, mu, i))


@njit(cache=True, nogil=True)
def all_scores(blocks, start, stop, v, scores):
    """A_i w for start ≤ i < stop; scores written."""
    s = np.empty(blocks.size)
    for i in range(start, stop):
        block_scores(blocks, i, v, s)
        block_write(blocks, i, s, scores)


@njit(cache=True, nogil=True)
def add_scores(blocks, start, stop, scores, v):
    """v += Σ A_iᵀ scores_i over start ≤ i < stop; v written."""
    s = np.empty(blocks.size)
    for i in range(start, stop):
        block_read(blocks, scores, i, s)
        block_add(blocks, i, 1.0, s, v)


@njit(cache=True, nogil=True)
def all_targets(blocks, mu):
    """μ_i = y_i; mu written."""
    for i in range(blocks.mass.size):
        block_target(blocks, i, block_view(blocks, mu, i))


@njit(cache=True, nogil=True)
def near_targets(blocks, epsilon, mu):
    """μ_i = (1 − ε) y_i + ε · uniform, lepriol2018 (21); mu written. All scores 0 are uniform."""
    s, uniform = np.zeros(blocks.size), np.empty(blocks.size)
    for i in range(blocks.mass.size):
        mu_i = block_view(blocks, mu, i)
        block_target(blocks, i, mu_i)
        block_marginals(blocks, i, s, uniform)
        for j in range(block_length(blocks, i)):
            mu_i[j] = (1.0 - epsilon) * mu_i[j] + epsilon * uniform[j]


@njit(cache=True, nogil=True)
def add_targets(blocks, start, stop, v):
    """v += Σ m_i A_iᵀ y_i over start ≤ i < stop; v written."""
    y = np.empty(blocks.size)
    for i in range(start, stop):
        block_target(blocks, i, y)
        block_add(blocks, i, blocks.mass[i], y, v)


@njit(cache=True, nogil=True)
def add_residuals(blocks, start, stop, mu, v):
    """v += Σ m_i A_iᵀ (y_i − μ_i) over start ≤ i < stop; v written."""
    delta = np.empty(blocks.size)
    for i in range(start, stop):
        block_residual(blocks, i, block_view(blocks, mu, i), delta)
        block_add(blocks, i, blocks.mass[i], delta, v)


@njit(cache=True, nogil=True)
def all_covariances(blocks, start, stop, at, scores):
    """scores_i ← m_i · covariance · scores_i for start ≤ i < stop, at as in `block_covariance`; written."""
    s, t = np.empty(blocks.size), np.empty(blocks.size)
    for i in range(start, stop):
        block_read(blocks, scores, i, s)
        block_covariance(blocks, i, block_view(blocks, at, i), s, t)
        for j in range(block_length(blocks, i)):
            t[j] *= blocks.mass[i]
        block_write(blocks, i, t, scores)
