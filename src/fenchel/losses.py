"""Log from hinge: which oracle answers, which block gap, which concave term of the dual.

    log      loss_i = log Z(s_i) − ⟨s_i, y_i⟩, H = entropy: logistic regression, maximum entropy, CRFs
    hinge    loss_i = max(s_i + cost_i) − ⟨s_i, y_i⟩, H = ⟨cost, μ⟩: SVMs, max-margin Markov networks

The kernels take `hinge`, a flag, and work for every structure.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from fenchel.structures import base


@dataclass(frozen=True)
class Loss:
    """A loss by its name."""

    name: str

    @property
    def hinge(self) -> bool:
        return self.name == "hinge"


LOSSES = {name: Loss(name) for name in ("log", "hinge")}


@njit(cache=True, nogil=True)
def oracle(blocks, i, hinge, s, nu):
    """ν = marginals at s, or the cost-augmented argmax as a 0/1 vector; nu written. Returns loss_i.

    With the hinge loss s is written too: each score, less that of the truth, plus the cost. The difference
    comes first, where large scores would swallow the cost.
    """
    if not hinge:
        return base.block_marginals(blocks, i, s, nu)
    truth = 0.0
    base.block_target(blocks, i, nu)
    for j in range(base.block_length(blocks, i)):
        if nu[j] > 0.0:
            truth += nu[j] * s[j]
    base.block_cost(blocks, i, nu)
    for j in range(base.block_length(blocks, i)):
        s[j] = (s[j] - truth) + nu[j]
    return max(base.block_argmax(blocks, i, s, nu), 0.0)


@njit(cache=True, nogil=True)
def block_gap(blocks, i, hinge, s, nu, mu):
    """KL(μ_i ‖ marginals at s), lepriol2018 (11), or ⟨s, ν − μ⟩; s and nu as `oracle` left them."""
    if not hinge:
        return base.block_kl(blocks, i, mu, s)
    gap = 0.0
    for j in range(base.block_length(blocks, i)):
        if nu[j] != mu[j]:  # an outcome of score −∞ and no mass counts nothing
            gap += s[j] * (nu[j] - mu[j])
    return max(gap, 0.0)


@njit(cache=True, nogil=True)
def value_and_pull(blocks, hinge, start, stop, v, scores, pull):
    """Σ m_i loss_i over start ≤ i < stop; pull += Σ m_i A_iᵀ(y_i − ν_i), written in the augmented layout.

    scores: those of all examples, or empty: then at the weights v.
    """
    s, nu, delta = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    total = 0.0
    for i in range(start, stop):
        base.read_scores(blocks, i, v, scores, s)
        total += blocks.mass[i] * oracle(blocks, i, hinge, s, nu)
        base.block_residual(blocks, i, nu, delta)
        base.block_add(blocks, i, blocks.mass[i], delta, pull)
    return total


@njit(cache=True, nogil=True)
def value_and_gap(blocks, hinge, start, stop, v, scores, mu, gaps):
    """Σ m_i loss_i and Σ m_i · block gap over start ≤ i < stop; gaps (n,) written.

    mu may be empty: then only the value is computed.
    """
    s, nu = np.empty(blocks.size), np.empty(blocks.size)
    value, gap = 0.0, 0.0
    for i in range(start, stop):
        base.read_scores(blocks, i, v, scores, s)
        value += blocks.mass[i] * oracle(blocks, i, hinge, s, nu)
        if mu.size > 0:
            gaps[i] = block_gap(blocks, i, hinge, s, nu, base.block_view(blocks, mu, i))
            gap += blocks.mass[i] * gaps[i]
    return value, gap


@njit(cache=True, nogil=True)
def concave(blocks, hinge, start, stop, mu):
    """Σ m_i H_i(μ_i) over start ≤ i < stop."""
    cost = np.empty(blocks.size)
    total = 0.0
    for i in range(start, stop):
        mu_i = base.block_view(blocks, mu, i)
        if not hinge:
            total += blocks.mass[i] * base.block_entropy(blocks, i, mu_i)
            continue
        base.block_cost(blocks, i, cost)
        for j in range(base.block_length(blocks, i)):
            total += blocks.mass[i] * cost[j] * mu_i[j]
    return total
