"""Two outputs, +1 and −1, one weight vector: f(x, +1) = x, f(x, −1) = 0 (huang2010 7.11).

Scores are (n,), the score of +1; that of −1 is 0. Marginals are (n, 2), the probabilities of +1 and −1,
kept apart so that neither loses its digits when the other is near one (yu2011 section 3.3).
Targets are (n,), the empirical probability of +1.
"""

from math import exp, log, log1p
from typing import NamedTuple

import numpy as np

from fenchel._math import TINY, kl_pair, xlogx
from fenchel._sparse import inner
from fenchel.structures import base, offsets
from fenchel.structures.flat import LISTED, augment_list
from fenchel.structures.layouts.rows import SingleRows


class PairOutcomes(NamedTuple):
    """Two classes."""

    y: np.ndarray  # (n,) the empirical probability of the first


class Binary(base.Structure):
    """The structure of two-class models."""

    name = "binary"
    size = 2
    outputs = None  # one weight vector
    per_row = 2  # outcomes per row of features
    offers = (LISTED | {"surrogates"}) - {"vertices"}

    def layout(self, examples, design) -> SingleRows:
        return SingleRows(**design.geometry())

    def outcomes(self, examples) -> PairOutcomes:
        return PairOutcomes(examples.y)

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
        return np.array([inner(examples.mass, examples.y), inner(examples.mass, 1.0 - examples.y)])

    def prior(self, shares):
        """The log-odds of +1."""
        ones, others = shares
        return log(ones) - log(others)

    def logarithms(self, mu):
        """(n,) scores whose marginals are μ: the log-odds."""
        return np.log(np.maximum(mu[:, 0], TINY)) - np.log(np.maximum(mu[:, 1], TINY))

    def offset(self, blocks, scores, each_part, enough=0.0, left=0.0):
        """The free b that minimises the log loss at scores + b; `left`: what may be off balance."""
        return offsets.offset_of_two(offsets.PairSums(blocks, scores, each_part), left)

    def tilted(self, blocks, mu, each_part, overwrite=False):
        """None: a pair of marginals is tilted by its log-odds."""
        return None


@base.block_target.implement(PairOutcomes)
def _target(blocks, i, y):
    y[0] = blocks.outcomes.y[i]
    y[1] = 1.0 - blocks.outcomes.y[i]


@base.block_residual.implement(PairOutcomes)
def _residual(blocks, i, mu, delta):
    delta[0] = blocks.outcomes.y[i] * mu[1] - (1.0 - blocks.outcomes.y[i]) * mu[0]
    delta[1] = -delta[0]


@base.block_marginals.implement(PairOutcomes)
def _block_marginals(blocks, i, s, mu):
    # One exponential serves marginals and loss: y log(1 + e⁻ˢ) + (1 − y) log(1 + eˢ).
    margin, y = s[0] - s[1], blocks.outcomes.y[i]
    e = exp(-abs(margin))
    near, far = 1.0 / (1.0 + e), e / (1.0 + e)
    mu[0] = near if margin > 0.0 else far
    mu[1] = far if margin > 0.0 else near
    return log1p(e) + (max(margin, 0.0) * (1.0 - y) - min(margin, 0.0) * y)


@base.block_argmax.implement(PairOutcomes)
def _block_argmax(blocks, i, s, mu):
    best = 0 if s[0] > s[1] else 1
    mu[best] = 1.0
    mu[1 - best] = 0.0
    return s[best]


@base.block_entropy.implement(PairOutcomes)
def _block_entropy(blocks, i, mu):
    return -xlogx(mu[0]) - xlogx(mu[1])


@base.block_divergence.implement(PairOutcomes)
def _divergence(blocks, i, mu, entropy, s, loss):
    return kl_pair(mu[0], mu[1], s[0] - s[1])


@base.block_loss.implement(PairOutcomes)
def _loss(blocks, i, s, room):
    return kl_pair(blocks.outcomes.y[i], 1.0 - blocks.outcomes.y[i], s[0] - s[1])


@base.block_augment.implement(PairOutcomes)
def _augment(blocks, i, s, room):
    return augment_list(blocks, i, s, room)


@base.block_covariance.implement(PairOutcomes)
def _covariance(blocks, i, mu, s, t):
    t[0] = mu[0] * mu[1] * (s[0] - s[1])
    t[1] = -t[0]


@base.block_entropy_slopes.implement(PairOutcomes)
def _entropy_slopes(blocks, i, mu, delta, gamma):
    p = max(mu[0] + gamma * delta[0], TINY)
    q = max(mu[1] + gamma * delta[1], TINY)
    first = -delta[0] * log(p) - delta[1] * log(q)
    return first, -delta[0] * delta[0] / p - delta[1] * delta[1] / q
