"""Lists of outcomes: what the crossed and the joint layout of flat labels have in common.

K labels, or a set of candidates per example; the distribution over them is a softmax. Two layouts map weights
to scores, each in its own file: crossed (a weight for each pair of attribute and label) and joint (a sparse
row f(x, y) for each candidate, one weight vector).
"""

from math import exp, inf, log, log1p
from typing import NamedTuple

import numpy as np

from fenchel import _sparse
from fenchel._cache import njit
from fenchel._math import TINY, kl_term, xlogx
from fenchel.structures import base


class CrossedBlocks(NamedTuple):
    """The arrays behind the block kernels of `structures/base.py`, for n examples, A attributes, K labels."""

    rows: _sparse.Rows | _sparse.Table  # (n, A)
    targets: _sparse.Rows  # (n, K) empirical probabilities of the labels
    mass: np.ndarray  # (n,)
    norms: np.ndarray  # (n,) ‖x_i‖² + σ²
    constant: float  # σ, the value of the constant feature of free offsets; 0 without
    lam: float
    size: int  # K
    n_weights: int  # A·K; behind them, where σ > 0, the K weights β of the constant feature


class JointBlocks(NamedTuple):
    """The same for M candidates of n examples in d weights."""

    rows: _sparse.Rows  # (M, d)
    starts: np.ndarray  # (n + 1,) uint64
    y: np.ndarray  # (M,) empirical probabilities of the candidates
    mass: np.ndarray  # (n,)
    lam: float
    size: int  # the most candidates an example has
    n_weights: int  # d
    norms: np.ndarray  # (M,) ‖f(x_i, y)‖²
    work: np.ndarray  # (d,) zero between kernels: where a combination of rows is added up


@njit(cache=True, nogil=True, fastmath=False)
def softmax(m, s, mu):
    """μ = softmax of s[:m] (written); returns the largest score and log Z less it: no digits cancel.

    Scores of −∞ are outcomes that cannot be; all of them −∞ gives the uniform distribution.
    """
    best = 0
    for j in range(m):
        if s[j] > s[best]:
            best = j
    top = s[best]
    if top == -inf:
        for j in range(m):
            mu[j] = 1.0 / m
        return 0.0, log(m)
    others = 0.0
    for j in range(m):
        mu[j] = exp(s[j] - top)
        if j != best:
            others += mu[j]
    scale = 1.0 / (1.0 + others)
    for j in range(m):
        mu[j] *= scale
    return top, log1p(others)


@njit(cache=True, nogil=True, fastmath=False)
def kl_softmax(m, mu, s):
    """KL(μ ‖ softmax of s): a sum of terms ≥ 0, by logarithms where the softmax underflows."""
    best = 0
    for j in range(m):
        if s[j] > s[best]:
            best = j
    top = s[best]
    if top == -inf:
        total = log(m)
        for j in range(m):
            total += xlogx(mu[j])
        return total
    others = 0.0
    for j in range(m):
        if j != best:
            others += exp(s[j] - top)
    rest, total = log1p(others), 0.0
    for j in range(m):
        nu = exp(s[j] - top - rest)
        if nu > TINY or mu[j] <= 0.0:
            total += kl_term(mu[j], nu)
        elif s[j] == -inf:
            return inf
        else:
            total += max(mu[j] * (log(mu[j]) - (s[j] - top - rest) - 1.0) + nu, 0.0)
    return total


@njit(cache=True, nogil=True, fastmath=False)
def settle(m, mu, delta):
    """delta[top] = −Σ of the others, top the likeliest outcome: there y − μ would lose its digits."""
    best, others = 0, 0.0
    for j in range(m):
        if mu[j] > mu[best]:
            best = j
    for j in range(m):
        if j != best:
            others += delta[j]
    delta[best] = -others


@base.block_settled.implement(CrossedBlocks, JointBlocks)
def _settled(blocks, i, mu, room):
    best, others = 0, 0.0
    for j in range(mu.size):
        room[j] = mu[j]
        if mu[j] > mu[best]:
            best = j
    for j in range(mu.size):
        if j != best:
            others += mu[j]
    room[best] = 1.0 - others
    return room[: mu.size]


@base.block_argmax.implement(CrossedBlocks, JointBlocks)
def _argmax(blocks, i, s, mu):
    best = 0
    for j in range(base.block_length(blocks, i)):
        mu[j] = 0.0
        if s[j] > s[best]:
            best = j
    mu[best] = 1.0
    return s[best]


@base.block_weakest.implement(CrossedBlocks, JointBlocks)
def _weakest(blocks, i, s, mu):
    worst = -1
    for j in range(base.block_length(blocks, i)):
        if mu[j] > 0.0 and (worst < 0 or s[j] < s[worst]):
            worst = j
    return worst


@base.block_entropy.implement(CrossedBlocks, JointBlocks)
def _entropy(blocks, i, mu):
    total = 0.0
    for j in range(base.block_length(blocks, i)):
        total -= xlogx(mu[j])
    return total


@base.block_divergence.implement(CrossedBlocks, JointBlocks)
def _divergence(blocks, i, mu, entropy, s, loss):
    return kl_softmax(base.block_length(blocks, i), mu, s)


@base.block_loss.implement(CrossedBlocks, JointBlocks)
def _loss(blocks, i, s, room):
    base.block_target(blocks, i, room)
    return kl_softmax(base.block_length(blocks, i), room, s)


@base.block_augment.implement(CrossedBlocks, JointBlocks)
def _augment(blocks, i, s, room):
    return base.augment_list(blocks, i, s, room)


@base.block_entropy_slopes.implement(CrossedBlocks, JointBlocks)
def _slopes(blocks, i, mu, delta, gamma):
    first, second = 0.0, 0.0
    for j in range(base.block_length(blocks, i)):
        if delta[j] != 0.0:
            p = max(mu[j] + gamma * delta[j], TINY)
            first -= delta[j] * log(p)
            second -= delta[j] * delta[j] / p
    return first, second


@base.block_covariance.implement(CrossedBlocks, JointBlocks)
def _covariance(blocks, i, mu, s, t):
    mean = 0.0
    for j in range(base.block_length(blocks, i)):
        mean += mu[j] * s[j]
    for j in range(base.block_length(blocks, i)):
        t[j] = mu[j] * (s[j] - mean)
