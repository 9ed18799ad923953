"""Two outputs, +1 and −1, one weight vector: f(x, +1) = x, f(x, −1) = 0 (huang2010 7.11).

Scores are (n,), the score of +1; that of −1 is 0. Marginals are (n, 2), the probabilities of +1 and −1,
kept apart so that neither loses its digits when the other is near one (yu2011 section 3.3).
Targets are (n,), the empirical probability of +1.
"""

from math import exp, log, log1p
from typing import NamedTuple

import numpy as np
from numba import njit

from fenchel import _sparse
from fenchel._math import TINY, kl_pair, log1pexp, sigmoid_pair, xlogx
from fenchel.structures import base


class BinaryBlocks(NamedTuple):
    """The arrays behind the block kernels of `structures/base.py`, for n examples of d features."""

    rows: _sparse.Rows
    y: np.ndarray  # (n,)
    mass: np.ndarray  # (n,)
    norms: np.ndarray  # (n,) ‖x_i − x̄‖²
    cross: np.ndarray  # (n,) x_i · x̄; zero where nothing is centred
    centre_norm: float  # ‖x̄‖²
    lam: float
    size: int  # marginals per example: 2
    n_weights: int  # d; v[d] is the free offset b, then v[d+1] = c and v[d+2] = x̄ · v
    n_free: int  # 0 or 1


class Binary:
    """The structure of two-class models."""

    name = "binary"
    blocks_type = BinaryBlocks
    block_size = 2

    def target(self, y):
        """(n, 2) empirical marginals."""
        return np.column_stack([y, 1.0 - y])

    def marginals(self, scores):
        """(n, 2) marginals at the scores."""
        mu = np.empty((scores.size, 2))
        _marginals(scores, mu)
        return mu

    def log_oracle(self, scores, y, mass):
        """Σ m_i loss_i, marginals (n, 2) and m_i (y_i − μ_i), (n,): all that P and ∇P need, in one sweep."""
        mu, residual = np.empty((scores.size, 2)), np.empty(scores.size)
        return _log_oracle(scores, y, mass, mu, residual), mu, residual

    def log_losses(self, scores, y):
        """log Z(s_i) − ⟨s_i, y_i⟩, (n,)."""
        losses = np.empty(scores.size)
        _log_losses(scores, y, losses)
        return losses

    def hinge_losses(self, scores, y):
        """max over outputs of cost + score, less the score of the true output, (n,)."""
        sign = 2.0 * y - 1.0
        return np.maximum(0.0, 1.0 - sign * scores)

    def hinge_gaps(self, scores, y, mu):
        """max(s_i + cost_i) − ⟨s_i + cost_i, μ_i⟩ ≥ 0, (n,): the block gaps of the hinge loss."""
        margin = scores + 1.0 - 2.0 * y  # augmented score of +1 less that of −1
        return np.where(margin > 0.0, mu[:, 1] * margin, -mu[:, 0] * margin)

    def costs(self, y, mu):
        """⟨cost_i, μ_i⟩, (n,)."""
        return y * mu[:, 1] + (1.0 - y) * mu[:, 0]

    def entropies(self, mu):
        """H(μ_i), (n,)."""
        out = np.empty(mu.shape[0])
        _entropies(mu, out)
        return out

    def kl(self, mu, scores):
        """KL(μ_i ‖ marginals at s_i), (n,)."""
        out = np.empty(mu.shape[0])
        _kl(mu, scores, out)
        return out

    def log_value_and_gap(self, scores, y, mass, mu):
        """Σ m_i loss_i and Σ m_i KL(μ_i ‖ marginals at s_i)."""
        return _log_value_and_gap(scores, y, mass, mu)

    def residual(self, y, mu):
        """y_i − μ_i in the space of scores, (n,), without cancellation."""
        return y * mu[:, 1] - (1.0 - y) * mu[:, 0]

    def covariance(self, mu):
        """Variance of the outcome under μ_i, (n,): the weights of the Hessian's Gram matrix."""
        return mu[:, 0] * mu[:, 1]

    def offset(self, scores, y, mass, b):
        """The free b that minimises the log loss at fixed scores: Σ m_i (y_i − σ(s_i + b)) = 0, by Newton."""
        return _balance(scores, y, mass, b)

    def tilt(self, mu, y, mass):
        """δ and μ'_i ∝ μ_i exp(δ on +1) with Σ m_i (y_i − μ'_i) = 0: the feasible neighbour of μ."""
        odds = np.log(np.maximum(mu[:, 0], TINY)) - np.log(np.maximum(mu[:, 1], TINY))
        delta = _balance(odds, y, mass, 0.0)
        return delta, self.marginals(odds + delta)


@njit(cache=True, nogil=True)
def _log_oracle(scores, y, mass, mu, residual):
    """Value of the log loss; mu (n, 2) and residual (n,) written. One exponential serves all three."""
    total = 0.0
    for i in range(scores.size):
        s = scores[i]
        e = exp(-abs(s))
        near, far = 1.0 / (1.0 + e), e / (1.0 + e)
        p, q = (near, far) if s > 0.0 else (far, near)
        # y log(1 + e⁻ˢ) + (1 − y) log(1 + eˢ), the logarithm of 1 + e^−|s| in both
        total += mass[i] * (log1p(e) + (max(s, 0.0) * (1.0 - y[i]) - min(s, 0.0) * y[i]))
        mu[i, 0], mu[i, 1] = p, q
        residual[i] = mass[i] * (y[i] * q - (1.0 - y[i]) * p)
    return total


@njit(cache=True, nogil=True)
def _marginals(scores, mu):
    for i in range(scores.size):
        mu[i, 0], mu[i, 1] = sigmoid_pair(scores[i])


@njit(cache=True, nogil=True)
def _log_losses(scores, y, losses):
    """y log(1 + e⁻ˢ) + (1 − y) log(1 + eˢ): a sum of positive terms, so no digits cancel."""
    for i in range(scores.size):
        loss = 0.0
        if y[i] > 0.0:
            loss += y[i] * log1pexp(-scores[i])
        if y[i] < 1.0:
            loss += (1.0 - y[i]) * log1pexp(scores[i])
        losses[i] = loss


@njit(cache=True, nogil=True)
def _log_value_and_gap(scores, y, mass, mu):
    value, gap = 0.0, 0.0
    for i in range(scores.size):
        s = scores[i]
        value += mass[i] * (log1p(exp(-abs(s))) + (max(s, 0.0) * (1.0 - y[i]) - min(s, 0.0) * y[i]))
        gap += mass[i] * kl_pair(mu[i, 0], mu[i, 1], s)
    return value, gap


@njit(cache=True, nogil=True)
def _entropies(mu, out):
    for i in range(out.size):
        out[i] = -xlogx(mu[i, 0]) - xlogx(mu[i, 1])


@njit(cache=True, nogil=True)
def _kl(mu, scores, out):
    for i in range(out.size):
        out[i] = kl_pair(mu[i, 0], mu[i, 1], scores[i])


@njit(cache=True, nogil=True)
def _balance(scores, y, mass, b):
    """Root b of Σ m_i (σ(s_i + b) − y_i), an increasing function, by Newton inside a shrinking bracket.

    Where every s_i + b is at most the log-odds of the mean target, the function is not positive, and where
    every one is at least that, not negative: a bracket to begin with.
    """
    ones, zeros = 0.0, 0.0
    for i in range(scores.size):
        ones += mass[i] * y[i]
        zeros += mass[i] * (1.0 - y[i])
    middle = log(ones) - log(zeros)
    low, high = middle - scores.max(), middle - scores.min()
    b = min(max(b, low), high)
    for _ in range(200):
        above, below, slope = 0.0, 0.0, 0.0
        for i in range(scores.size):
            p, q = sigmoid_pair(scores[i] + b)
            above += mass[i] * (1.0 - y[i]) * p
            below += mass[i] * y[i] * q
            slope += mass[i] * p * q
        excess = above - below
        if abs(excess) <= 1e-16 * (above + below):  # relative: on separable data both are tiny
            break
        if excess > 0.0:
            high = b
        else:
            low = b
        new = b - excess / slope if slope > 0.0 else 0.5 * (low + high)
        if not low < new < high:
            new = 0.5 * (low + high)
        if new == b:
            break
        b = new
    return b


@base.block_scores.implement(BinaryBlocks)
def _scores(blocks, i, v, s):
    d = blocks.n_weights
    dot = 0.0
    for e in range(blocks.rows.indptr[i], blocks.rows.indptr[i + 1]):
        dot += blocks.rows.data[e] * v[blocks.rows.indices[e]]
    s[0] = dot + v[d] - v[d + 1] * (blocks.cross[i] - blocks.centre_norm) - v[d + 2]
    s[1] = 0.0


@base.block_add.implement(BinaryBlocks)
def _add(blocks, i, step, delta, v):
    change = step * delta[0]
    d = blocks.n_weights
    for e in range(blocks.rows.indptr[i], blocks.rows.indptr[i + 1]):
        v[blocks.rows.indices[e]] += change * blocks.rows.data[e]
    v[d + 1] += change
    v[d + 2] += change * blocks.cross[i]


@base.block_add_free.implement(BinaryBlocks)
def _add_free(blocks, i, step, delta, v):
    if blocks.n_free > 0:
        v[blocks.n_weights] += step * delta[0]


@base.block_squared_norm.implement(BinaryBlocks)
def _squared_norm(blocks, i, delta):
    return delta[0] * delta[0] * blocks.norms[i]


@base.block_move.implement(BinaryBlocks)
def _move(blocks, i, step, delta, s, moved):
    moved[0] = s[0] + step * (blocks.norms[i] + blocks.n_free) * delta[0]
    moved[1] = s[1]


@base.block_radius.implement(BinaryBlocks)
def _radius(blocks, i):
    return blocks.norms[i]


@base.block_catch_up.implement(BinaryBlocks)
def _catch_up(blocks, i, now, drift, g, seen, v):
    for e in range(blocks.rows.indptr[i], blocks.rows.indptr[i + 1]):
        j = blocks.rows.indices[e]
        v[j] -= g[j] * (drift[now] - drift[seen[j]])
        seen[j] = now


@base.block_target.implement(BinaryBlocks)
def _target(blocks, i, y):
    y[0] = blocks.y[i]
    y[1] = 1.0 - blocks.y[i]


@base.block_cost.implement(BinaryBlocks)
def _cost(blocks, i, cost):
    cost[0] = 1.0 - blocks.y[i]
    cost[1] = blocks.y[i]


@base.block_marginals.implement(BinaryBlocks)
def _block_marginals(blocks, i, s, mu):
    mu[0], mu[1] = sigmoid_pair(s[0] - s[1])
    return s[1] + log1pexp(s[0] - s[1])


@base.block_argmax.implement(BinaryBlocks)
def _block_argmax(blocks, i, s, mu):
    best = 0 if s[0] > s[1] else 1
    mu[best] = 1.0
    mu[1 - best] = 0.0
    return s[best]


@base.block_entropy.implement(BinaryBlocks)
def _block_entropy(blocks, i, mu):
    return -xlogx(mu[0]) - xlogx(mu[1])


@base.block_kl.implement(BinaryBlocks)
def _block_kl(blocks, i, mu, s):
    return kl_pair(mu[0], mu[1], s[0] - s[1])


@base.block_entropy_slopes.implement(BinaryBlocks)
def _entropy_slopes(blocks, i, mu, delta, gamma):
    p = max(mu[0] + gamma * delta[0], TINY)
    q = max(mu[1] + gamma * delta[1], TINY)
    first = -delta[0] * log(p) - delta[1] * log(q)
    return first, -delta[0] * delta[0] / p - delta[1] * delta[1] / q
