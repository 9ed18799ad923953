"""Lists of outcomes: what K labels and sets of candidates have in common. The distribution is a softmax."""

from math import exp, inf, log, log1p
from typing import NamedTuple

import numpy as np

from fenchel._cache import njit
from fenchel._math import TINY, kl_term, ordered, xlogx
from fenchel._sparse import Rows
from fenchel.structures import base

LISTED = frozenset({"hessian", "matrix", "columns", "outcomes", "entropy", "vertices"})


class LabelOutcomes(NamedTuple):
    """K labels."""

    targets: Rows  # (n, K) empirical probabilities of the labels


class CandidateOutcomes(NamedTuple):
    """M candidates of n examples."""

    y: np.ndarray  # (M,) empirical probabilities of the candidates
    starts: np.ndarray  # (n + 1,) uint64


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


@base.block_settled.implement(LabelOutcomes, CandidateOutcomes)
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


@base.block_argmax.implement(LabelOutcomes, CandidateOutcomes)
def _argmax(blocks, i, s, mu):
    best = 0
    for j in range(base.block_length(blocks, i)):
        mu[j] = 0.0
        if s[j] > s[best]:
            best = j
    mu[best] = 1.0
    return s[best]


@base.block_weakest.implement(LabelOutcomes, CandidateOutcomes)
def _weakest(blocks, i, s, mu):
    worst = -1
    for j in range(base.block_length(blocks, i)):
        if mu[j] > 0.0 and (worst < 0 or s[j] < s[worst]):
            worst = j
    return worst


@base.block_entropy.implement(LabelOutcomes, CandidateOutcomes)
def _entropy(blocks, i, mu):
    total = 0.0
    for j in range(base.block_length(blocks, i)):
        total -= xlogx(mu[j])
    return total


@base.block_divergence.implement(LabelOutcomes, CandidateOutcomes)
def _divergence(blocks, i, mu, entropy, s, loss):
    return kl_softmax(base.block_length(blocks, i), mu, s)


@base.block_loss.implement(LabelOutcomes, CandidateOutcomes)
def _loss(blocks, i, s, room):
    base.block_target(blocks, i, room)
    return kl_softmax(base.block_length(blocks, i), room, s)


@base.block_augment.implement(LabelOutcomes, CandidateOutcomes)
def _augment(blocks, i, s, room):
    return augment_list(blocks, i, s, room)


@njit(cache=True, nogil=True, forceinline=True)
def augment_list(blocks, i, s, room):
    """`block_augment` of a list of outcomes: the score of the truth becomes 0; s, room written."""
    truth = 0.0
    base.block_target(blocks, i, room)
    for j in range(base.block_length(blocks, i)):
        if room[j] > 0.0:
            truth += room[j] * s[j]
    base.block_cost(blocks, i, room)
    for j in range(base.block_length(blocks, i)):
        s[j] = ordered(s[j], truth, room[j])
    return 0.0


@base.block_entropy_slopes.implement(LabelOutcomes, CandidateOutcomes)
def _slopes(blocks, i, mu, delta, gamma):
    first, second = 0.0, 0.0
    for j in range(base.block_length(blocks, i)):
        if delta[j] != 0.0:
            p = max(mu[j] + gamma * delta[j], TINY)
            first -= delta[j] * log(p)
            second -= delta[j] * delta[j] / p
    return first, second


@base.block_covariance.implement(LabelOutcomes, CandidateOutcomes)
def _covariance(blocks, i, mu, s, t):
    mean = 0.0
    for j in range(base.block_length(blocks, i)):
        mean += mu[j] * s[j]
    for j in range(base.block_length(blocks, i)):
        t[j] = mu[j] * (s[j] - mean)
