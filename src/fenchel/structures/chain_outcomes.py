"""Sequences: what label sequences are, and the oracles of nodes and edges."""

from typing import NamedTuple

import numpy as np

from fenchel._cache import njit
from fenchel.structures import base, lattice, lattice_covariance, lattice_entropy
from fenchel.structures.layouts.tables import tokens


class ChainOutcomes(NamedTuple):
    """Labels of n sequences of N tokens in all, K of them; parts lie as in `layouts/tables.py`."""

    y: np.ndarray  # (N,) uint32 labels
    cost: np.ndarray  # (N,) Hamming cost of a wrong label
    starts: np.ndarray  # (n + 1,) uint64 tokens of each sequence
    banned: np.ndarray  # (K·K,) uint8, 1 where a pair of labels cannot be; empty: all can
    labels: int  # K
    stride: int  # K² where each edge has its own table, else 0


@njit(cache=True, nogil=True)
def numbers(chain, i):
    """How many nodes and edges sequence i has."""
    T, K = chain.starts[i + 1] - chain.starts[i], np.uint64(chain.labels)
    return T * K + (T - np.uint64(1) if chain.stride > 0 else np.uint64(1)) * K * K


# ---- targets and costs


@base.block_target.implement(ChainOutcomes)
def _target(blocks, i, y):
    return target(blocks.outcomes, i, y)


@njit(cache=True, nogil=True)
def target(chain, i, y):
    """The true labels as marginals of nodes and edges; y written."""
    for j in range(numbers(chain, i)):
        y[j] = 0.0
    begin, T, K, before = chain.starts[i], tokens(chain, i), chain.labels, 0
    for t in range(T):
        label = np.int64(chain.y[begin + np.uint64(t)])
        y[t * K + label] = 1.0
        if t > 0:
            y[T * K + (t - 1) * chain.stride + before * K + label] += 1.0
        before = label


@base.block_residual.implement(ChainOutcomes)
def _residual(blocks, i, mu, delta):
    return residual(blocks.outcomes, i, mu, delta)


@njit(cache=True, nogil=True)
def residual(chain, i, mu, delta):
    """delta = y − μ; at each node the likeliest label gets minus the sum of the others, to keep digits."""
    target(chain, i, delta)
    for j in range(numbers(chain, i)):
        delta[j] -= mu[j]
    K = np.uint64(chain.labels)
    for t in range(np.uint64(tokens(chain, i))):
        at, best, others = t * K, np.uint64(0), 0.0
        for k in range(K):
            best = k if mu[at + k] > mu[at + best] else best
        for k in range(K):
            others += delta[at + k]
        delta[at + best] -= others


@base.block_cost.implement(ChainOutcomes)
def _cost(blocks, i, cost):
    return hamming(blocks.outcomes, i, cost)


@njit(cache=True, nogil=True)
def hamming(chain, i, cost):
    """The cost of each label of each token; edges cost nothing. Written."""
    for j in range(numbers(chain, i)):
        cost[j] = 0.0
    K = np.uint64(chain.labels)
    for t in range(np.uint64(tokens(chain, i))):
        token = chain.starts[i] + t
        for k in range(K):
            cost[t * K + k] = 0.0 if k == chain.y[token] else chain.cost[token]


@base.block_truth.implement(ChainOutcomes)
def _truth(blocks, i, s):
    return truth_score(blocks.outcomes, i, s)


@njit(cache=True, nogil=True, fastmath=False)
def truth_score(chain, i, s):
    """⟨s, y_i⟩."""
    begin, T, K, total = chain.starts[i], tokens(chain, i), chain.labels, 0.0
    before = 0
    for t in range(T):
        label = np.int64(chain.y[begin + np.uint64(t)])
        total += s[t * K + label]
        if t > 0:
            total += s[T * K + (t - 1) * chain.stride + before * K + label]
        before = label
    return total


# ---- oracles


@base.block_marginals.implement(ChainOutcomes)
def _marginals(blocks, i, s, mu):
    chain = blocks.outcomes
    levels = np.empty(tokens(chain, i))
    lattice.forward_backward(levels.size, chain.labels, s, chain.stride, chain.banned, mu, levels)
    return less_truth(chain, i, s, levels)


@njit(cache=True, nogil=True, fastmath=False)
def less_truth(chain, i, s, levels):
    """log Z − ⟨s, y⟩, added up position by position."""
    T, K, begin, loss, before = levels.size, chain.labels, chain.starts[i], 0.0, 0
    for t in range(T):
        label = np.int64(chain.y[begin + np.uint64(t)])
        step = levels[t] - s[t * K + label]
        if t > 0:
            step -= s[T * K + (t - 1) * chain.stride + before * K + label]
        loss += step
        before = label
    return max(loss, 0.0)


@base.block_argmax.implement(ChainOutcomes)
def _argmax(blocks, i, s, mu):
    return argmax(blocks.outcomes, i, s, mu)


@njit(cache=True, nogil=True)
def argmax(chain, i, s, mu):
    """The best sequence as marginals; mu written. Returns its score."""
    T, K = tokens(chain, i), chain.labels
    best = np.empty(T, np.int64)
    score = lattice.viterbi(T, K, s, chain.stride, chain.banned, best)
    for j in range(numbers(chain, i)):
        mu[j] = 0.0
    for t in range(T):
        mu[t * K + best[t]] = 1.0
        if t > 0:
            mu[T * K + (t - 1) * chain.stride + best[t - 1] * K + best[t]] += 1.0
    return score


@base.block_covariance.implement(ChainOutcomes)
def _covariance(blocks, i, at, s, t):
    chain = blocks.outcomes
    lattice_covariance.covariance(tokens(chain, i), chain.labels, at, chain.stride, chain.banned, s, t)


@base.block_entropy.implement(ChainOutcomes)
def _entropy(blocks, i, mu):
    chain = blocks.outcomes
    return lattice_entropy.entropy(tokens(chain, i), chain.labels, mu) if chain.stride > 0 else 0.0


@base.block_entropy_slopes.implement(ChainOutcomes)
def _slopes(blocks, i, mu, delta, gamma):
    chain = blocks.outcomes
    return lattice_entropy.entropy_slopes(tokens(chain, i), chain.labels, mu, delta, gamma)
