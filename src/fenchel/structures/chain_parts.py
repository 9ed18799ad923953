"""Sequences: the arrays of a problem, and the kernels of nodes and edges: targets, costs, oracles."""

from typing import NamedTuple

import numpy as np

from fenchel import _sparse
from fenchel._cache import njit
from fenchel._math import REORDER
from fenchel.structures import base, lattice, lattice_covariance, lattice_entropy


class Distinct(NamedTuple):
    """The distinct columns of each example: so that a sum over its rows touches each weight once."""

    local: np.ndarray  # (nnz,) uint32, for each entry of the rows the place of its column in the list
    columns: np.ndarray  # uint32, the lists, one after the other
    starts: np.ndarray  # (n + 1,) uint64 where the list of each example begins


class ChainBlocks(NamedTuple):
    """The arrays behind the block kernels, for n sequences of N tokens in all, K labels."""

    rows: _sparse.Rows  # (N, A) attributes of the tokens
    edges: _sparse.Rows  # (N, B) attributes of the transition into each token
    y: np.ndarray  # (N,) uint32 labels
    cost: np.ndarray  # (N,) Hamming cost of a wrong label
    starts: np.ndarray  # (n + 1,) uint64 tokens of each sequence
    offsets: np.ndarray  # (n + 1,) uint64 where the block of each sequence begins
    mass: np.ndarray  # (n,)
    distinct: Distinct  # of rows
    distinct_edges: Distinct  # of edges
    banned: np.ndarray  # (K·K,) uint8, 1 where a pair of labels cannot be; empty: all can
    mask: np.ndarray  # (d,) uint8, 0 where a weight stays 0; empty: none does
    lam: float
    labels: int  # K
    stride: int  # K² where each edge has its own table, else 0
    tables: int  # 1 with a table of transitions, else 0
    size: int  # numbers of the largest block
    n_weights: int  # A·K + B·K² + tables·K²


# ---- where parts lie


@njit(cache=True, nogil=True)
def tokens(blocks, i):
    """How many tokens sequence i has."""
    return np.int64(blocks.starts[i + 1] - blocks.starts[i])


@base.block_length.implement(ChainBlocks)
def _length(blocks, i):
    return np.int64(blocks.offsets[i + 1] - blocks.offsets[i])


@base.block_view.implement(ChainBlocks)
def _view(blocks, mu, i):
    return mu[blocks.offsets[i] : blocks.offsets[i + 1]]


@base.block_read.implement(ChainBlocks)
def _read(blocks, scores, i, s):
    begin = blocks.offsets[i]
    for j in range(blocks.offsets[i + 1] - begin):
        s[j] = scores[begin + j]


@base.block_write.implement(ChainBlocks)
def _write(blocks, i, s, scores):
    begin = blocks.offsets[i]
    for j in range(blocks.offsets[i + 1] - begin):
        scores[begin + j] = s[j]


# ---- targets and costs


@base.block_target.implement(ChainBlocks)
def _target(blocks, i, y):
    return target(blocks, i, y)


@njit(cache=True, nogil=True)
def target(blocks, i, y):
    """The true labels as marginals of nodes and edges; y written."""
    for j in range(blocks.offsets[i + 1] - blocks.offsets[i]):
        y[j] = 0.0
    begin, T, K, before = blocks.starts[i], tokens(blocks, i), blocks.labels, 0
    for t in range(T):
        label = np.int64(blocks.y[begin + np.uint64(t)])
        y[t * K + label] = 1.0
        if t > 0:
            y[T * K + (t - 1) * blocks.stride + before * K + label] += 1.0
        before = label


@base.block_residual.implement(ChainBlocks)
def _residual(blocks, i, mu, delta):
    return residual(blocks, i, mu, delta)


@njit(cache=True, nogil=True)
def residual(blocks, i, mu, delta):
    """delta = y − μ; at each node the likeliest label gets minus the sum of the others, to keep digits."""
    target(blocks, i, delta)
    for j in range(blocks.offsets[i + 1] - blocks.offsets[i]):
        delta[j] -= mu[j]
    K = np.uint64(blocks.labels)
    for t in range(np.uint64(tokens(blocks, i))):
        at, best, others = t * K, np.uint64(0), 0.0
        for k in range(K):
            best = k if mu[at + k] > mu[at + best] else best
        for k in range(K):
            others += delta[at + k]
        delta[at + best] -= others


@base.block_cost.implement(ChainBlocks)
def _cost(blocks, i, cost):
    return hamming(blocks, i, cost)


@njit(cache=True, nogil=True)
def hamming(blocks, i, cost):
    """The cost of each label of each token; edges cost nothing. Written."""
    for j in range(blocks.offsets[i + 1] - blocks.offsets[i]):
        cost[j] = 0.0
    K = np.uint64(blocks.labels)
    for t in range(np.uint64(tokens(blocks, i))):
        token = blocks.starts[i] + t
        for k in range(K):
            cost[t * K + k] = 0.0 if k == blocks.y[token] else blocks.cost[token]


@base.block_augment.implement(ChainBlocks)
def _augment(blocks, i, s, room):
    hamming(blocks, i, room)
    for j in range(blocks.offsets[i + 1] - blocks.offsets[i]):
        s[j] += room[j]
    return truth_score(blocks, i, s)


@njit(cache=True, nogil=True, fastmath=False)
def truth_score(blocks, i, s):
    """⟨s, y_i⟩."""
    begin, T, K, total = blocks.starts[i], tokens(blocks, i), blocks.labels, 0.0
    before = 0
    for t in range(T):
        label = np.int64(blocks.y[begin + np.uint64(t)])
        total += s[t * K + label]
        if t > 0:
            total += s[T * K + (t - 1) * blocks.stride + before * K + label]
        before = label
    return total


# ---- oracles


@base.block_marginals.implement(ChainBlocks)
def _marginals(blocks, i, s, mu):
    levels = np.empty(tokens(blocks, i))
    lattice.forward_backward(levels.size, blocks.labels, s, blocks.stride, blocks.banned, mu, levels)
    return less_truth(blocks, i, s, levels)


@njit(cache=True, nogil=True, fastmath=False)
def less_truth(blocks, i, s, levels):
    """log Z − ⟨s, y⟩, added up position by position."""
    T, K, begin, loss, before = levels.size, blocks.labels, blocks.starts[i], 0.0, 0
    for t in range(T):
        label = np.int64(blocks.y[begin + np.uint64(t)])
        step = levels[t] - s[t * K + label]
        if t > 0:
            step -= s[T * K + (t - 1) * blocks.stride + before * K + label]
        loss += step
        before = label
    return max(loss, 0.0)


@base.block_loss.implement(ChainBlocks)
def _loss(blocks, i, s, room):
    return base.block_marginals(blocks, i, s, room)


@base.block_argmax.implement(ChainBlocks)
def _argmax(blocks, i, s, mu):
    return argmax(blocks, i, s, mu)


@njit(cache=True, nogil=True)
def argmax(blocks, i, s, mu):
    """The best sequence as marginals; mu written. Returns its score."""
    T, K = tokens(blocks, i), blocks.labels
    best = np.empty(T, np.int64)
    score = lattice.viterbi(T, K, s, blocks.stride, blocks.banned, best)
    for j in range(blocks.offsets[i + 1] - blocks.offsets[i]):
        mu[j] = 0.0
    for t in range(T):
        mu[t * K + best[t]] = 1.0
        if t > 0:
            mu[T * K + (t - 1) * blocks.stride + best[t - 1] * K + best[t]] += 1.0
    return score


@base.block_covariance.implement(ChainBlocks)
def _covariance(blocks, i, at, s, t):
    lattice_covariance.covariance(tokens(blocks, i), blocks.labels, at, blocks.stride, blocks.banned, s, t)


@base.block_entropy.implement(ChainBlocks)
def _entropy(blocks, i, mu):
    return lattice_entropy.entropy(tokens(blocks, i), blocks.labels, mu)


@base.block_entropy_at.implement(ChainBlocks)
def _entropy_at(blocks, i, theta, mu, loss):
    size = 1.0 + loss
    for j in range(base.block_length(blocks, i)):
        size += abs(theta[j]) * mu[j]
    return max(loss + balance(blocks, i, theta, mu) - 4e-15 * size, 0.0), 4e-15 * size


@njit(cache=True, nogil=True, fastmath=REORDER)
def balance(blocks, i, s, mu):
    """⟨s, y_i − μ⟩."""
    total = 0.0
    for j in range(blocks.offsets[i + 1] - blocks.offsets[i]):
        total += s[j] * mu[j]
    return truth_score(blocks, i, s) - total


@base.block_divergence.implement(ChainBlocks)
def _divergence(blocks, i, mu, entropy, s, loss):
    if not entropy >= 0.0:  # sums over the edges tell nothing of it, and no entropy is below zero
        entropy = base.block_entropy(blocks, i, mu) if blocks.stride > 0 else 0.0
    return max(loss + balance(blocks, i, s, mu) - entropy, 0.0)


@base.block_entropy_slopes.implement(ChainBlocks)
def _slopes(blocks, i, mu, delta, gamma):
    return lattice_entropy.entropy_slopes(tokens(blocks, i), blocks.labels, mu, delta, gamma)
