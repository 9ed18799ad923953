"""Two outputs, +1 and −1, one weight vector: f(x, +1) = x, f(x, −1) = 0 (huang2010 7.11).

Scores are (n,), the score of +1; that of −1 is 0. Marginals are (n, 2), the probabilities of +1 and −1,
kept apart so that neither loses its digits when the other is near one (yu2011 section 3.3).
Targets are (n,), the empirical probability of +1.
"""

from math import exp, log, log1p
from typing import NamedTuple

import numpy as np

from fenchel._math import TINY, kl_pair, xlogx
from fenchel._sparse import Rows, Table, column, row_begin, row_end
from fenchel.structures import base, offsets


class BinaryBlocks(NamedTuple):
    """The arrays behind the block kernels of `structures/base.py`, for n examples of d features."""

    rows: Rows | Table
    y: np.ndarray  # (n,)
    mass: np.ndarray  # (n,)
    norms: np.ndarray  # (n,) ‖x_i‖² + σ²
    constant: float  # σ, the value of the constant feature of a free offset; 0 without
    lam: float
    size: int  # marginals per example: 2
    n_weights: int  # d; v[d], where σ > 0, is the weight β of the constant feature


class Binary(base.Structure):
    """The structure of two-class models."""

    name = "binary"
    size = 2
    outputs = None  # one weight vector
    stride = 2  # outcomes per row of features

    def blocks(self, examples, design, lam) -> BinaryBlocks:
        """The arrays of a problem."""
        return BinaryBlocks(y=examples.y, mass=examples.mass, lam=lam, size=self.size, **design.geometry())

    def shape(self, examples):
        """Of the marginals of all examples."""
        return examples.n, 2

    def cleaned(self, examples, mu):
        """The rows of mu made to sum to one; None where they do not nearly, or are negative."""
        return base.normalised(mu, mu.sum(axis=1, keepdims=True))

    def sizes_of_choice(self, examples):
        return log(2.0), 1.0

    def shares(self, examples):
        """The mass of +1 and of −1."""
        return np.array([examples.mass @ examples.y, examples.mass @ (1.0 - examples.y)])

    def prior(self, examples):
        """The log-odds of +1."""
        ones, others = self.shares(examples)
        return log(ones) - log(others)

    def logarithms(self, mu):
        """(n,) scores whose marginals are μ: the log-odds."""
        return np.log(np.maximum(mu[:, 0], TINY)) - np.log(np.maximum(mu[:, 1], TINY))

    def offset(self, blocks, scores, each_part, enough=None):
        """The free b that minimises the log loss at scores + b; it costs too little to end earlier."""
        return offsets.offset_of_two(blocks, scores, each_part)

    def tilted(self, blocks, mu, each_part, overwrite=False):
        """None: a pair of marginals is tilted by its log-odds."""
        return None


@base.block_length.implement(BinaryBlocks)
def _length(blocks, i):
    return 2


@base.block_view.implement(BinaryBlocks)
def _view(blocks, mu, i):
    return mu[i]


@base.block_read.implement(BinaryBlocks)
def _read(blocks, scores, i, s):
    s[0] = scores[i]
    s[1] = 0.0


@base.block_write.implement(BinaryBlocks)
def _write(blocks, i, s, scores):
    scores[i] = s[0]


@base.block_scores.implement(BinaryBlocks)
def _scores(blocks, i, v, s):
    dot = 0.0
    for e in range(row_begin(blocks.rows, i), row_end(blocks.rows, i)):
        dot += blocks.rows.data[e] * v[column(blocks.rows, i, e)]
    if blocks.constant > 0.0:
        dot += blocks.constant * v[blocks.n_weights]
    s[0] = dot
    s[1] = 0.0


@base.block_add.implement(BinaryBlocks)
def _add(blocks, i, step, delta, v):
    change = step * delta[0]
    for e in range(row_begin(blocks.rows, i), row_end(blocks.rows, i)):
        v[column(blocks.rows, i, e)] += change * blocks.rows.data[e]
    if blocks.constant > 0.0:
        v[blocks.n_weights] += change * blocks.constant


@base.block_squared_norm.implement(BinaryBlocks)
def _squared_norm(blocks, i, delta):
    return delta[0] * delta[0] * blocks.norms[i]


@base.block_move.implement(BinaryBlocks)
def _move(blocks, i, step, delta, s, moved):
    moved[0] = s[0] + step * blocks.norms[i] * delta[0]
    moved[1] = s[1]


@base.block_radius.implement(BinaryBlocks)
def _radius(blocks, i):
    return blocks.norms[i]


@base.block_catch_up.implement(BinaryBlocks)
def _catch_up(blocks, i, now, drift, g, seen, v):
    for e in range(row_begin(blocks.rows, i), row_end(blocks.rows, i)):
        j = column(blocks.rows, i, e)
        v[j] -= g[j] * (drift[now] - drift[seen[j]])
        seen[j] = now


@base.block_target.implement(BinaryBlocks)
def _target(blocks, i, y):
    y[0] = blocks.y[i]
    y[1] = 1.0 - blocks.y[i]


@base.block_residual.implement(BinaryBlocks)
def _residual(blocks, i, mu, delta):
    delta[0] = blocks.y[i] * mu[1] - (1.0 - blocks.y[i]) * mu[0]
    delta[1] = -delta[0]


@base.block_cost.implement(BinaryBlocks)
def _cost(blocks, i, cost):
    cost[0] = 1.0 - blocks.y[i]
    cost[1] = blocks.y[i]


@base.block_marginals.implement(BinaryBlocks)
def _block_marginals(blocks, i, s, mu):
    # One exponential serves marginals and loss: y log(1 + e⁻ˢ) + (1 − y) log(1 + eˢ).
    margin, y = s[0] - s[1], blocks.y[i]
    e = exp(-abs(margin))
    near, far = 1.0 / (1.0 + e), e / (1.0 + e)
    mu[0] = near if margin > 0.0 else far
    mu[1] = far if margin > 0.0 else near
    return log1p(e) + (max(margin, 0.0) * (1.0 - y) - min(margin, 0.0) * y)


@base.block_argmax.implement(BinaryBlocks)
def _block_argmax(blocks, i, s, mu):
    best = 0 if s[0] > s[1] else 1
    mu[best] = 1.0
    mu[1 - best] = 0.0
    return s[best]


@base.block_entropy.implement(BinaryBlocks)
def _block_entropy(blocks, i, mu):
    return -xlogx(mu[0]) - xlogx(mu[1])


@base.block_divergence.implement(BinaryBlocks)
def _divergence(blocks, i, mu, entropy, s, loss):
    return kl_pair(mu[0], mu[1], s[0] - s[1])


@base.block_loss.implement(BinaryBlocks)
def _loss(blocks, i, s, room):
    return kl_pair(blocks.y[i], 1.0 - blocks.y[i], s[0] - s[1])


@base.block_augment.implement(BinaryBlocks)
def _augment(blocks, i, s, room):
    return base.augment_list(blocks, i, s, room)


@base.block_covariance.implement(BinaryBlocks)
def _covariance(blocks, i, mu, s, t):
    t[0] = mu[0] * mu[1] * (s[0] - s[1])
    t[1] = -t[0]


@base.block_entropy_slopes.implement(BinaryBlocks)
def _entropy_slopes(blocks, i, mu, delta, gamma):
    p = max(mu[0] + gamma * delta[0], TINY)
    q = max(mu[1] + gamma * delta[1], TINY)
    first = -delta[0] * log(p) - delta[1] * log(q)
    return first, -delta[0] * delta[0] / p - delta[1] * delta[1] / q
