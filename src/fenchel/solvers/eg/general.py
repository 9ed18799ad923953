"""Exponentiated gradient on blocks of any structure: collins2008 Figures 1 and 3."""

import numpy as np

from fenchel._cache import helper, njit
from fenchel.losses import block_gap, oracle
from fenchel.solvers.eg.chain import FASTER, LEAST, SLOWER
from fenchel.structures import base


@njit(cache=True)
def first(blocks, first, theta):
    """θ_i = −first · cost_i, so that the truth is ahead of other labels by `first`; theta written."""
    for i in range(blocks.mass.size):
        theta_i = base.block_view(blocks, theta, i)
        base.block_cost(blocks, i, theta_i)
        for j in range(theta_i.size):
            theta_i[j] *= -first


@njit(cache=True, nogil=True)
def settle(blocks, theta, mu, entropies):
    """Marginals at θ and their entropies; mu, entropies (n,) written."""
    for i in range(blocks.mass.size):
        theta_i, mu_i = base.block_view(blocks, theta, i), base.block_view(blocks, mu, i)
        loss = base.block_marginals(blocks, i, theta_i, mu_i)
        entropies[i], _ = base.block_entropy_at(blocks, i, theta_i, mu_i, loss)


@njit(cache=True, nogil=True)
def epoch(loss, blocks, order, search, theta, mu, entropies, gaps, rates, v):
    """Figure 3 over the given order; theta, mu, entropies, gaps, rates, v written.

    search: most trials of an example, whether a step must improve the dual, and the most a rate can be.

    Returns trials made and examples whose first trial improved the dual. With the log loss the gap of an
    example is not looked up at w, which would take another oracle, but known from the step: KL is quadratic
    near μ, and so KL(μ ‖ marginals at s) ≈ ⟨s − θ, ν − μ⟩/(2η).
    """
    s, moved, nu = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    delta = np.empty(blocks.size)
    trials, at_once, (most_trials, adapt, cap) = 0, 0, search
    for i in order:
        theta_i, mu_i = base.block_view(blocks, theta, i), base.block_view(blocks, mu, i)
        base.block_scores(blocks, i, v, s)
        if loss.hinge:
            value = oracle(loss, blocks, i, s, nu)
            gaps[i] = block_gap(loss, blocks, i, s, nu, mu_i, value, entropies[i])
        rate, before = blocks.mass[i] / blocks.lam, rates[i]
        for trial in range(most_trials):
            trials += 1
            _move(loss, rates[i], theta_i, s, moved)
            value = base.block_marginals(blocks, i, moved, nu)
            entropy, rounding = base.block_entropy_at(blocks, i, moved, nu, value)
            gain, size = _gain(loss, blocks, i, rate, s, mu_i, nu, entropy - entropies[i], delta)
            if not adapt or gain >= -rounding - 1e-15 * size:
                entropies[i] = entropy
                at_once += 1 if trial == 0 else 0
                along = 0.0
                for j in range(mu_i.size):
                    along += (s[j] - theta_i[j]) * delta[j]
                    theta_i[j], mu_i[j] = moved[j], nu[j]
                if not loss.hinge:
                    gaps[i] = max(0.5 * along / rates[i], 0.0)
                base.block_add(blocks, i, -rate, delta, v)
                if adapt:
                    rates[i] = min(rates[i] * FASTER, cap)
                break
            rates[i] *= SLOWER
        else:
            rates[i] = LEAST * before
    return trials, at_once


@helper(cache=True)
def _gain(loss, blocks, i, rate, s, mu, nu, entropy_gain, delta):
    """(D(ν in the place of μ_i) − D(μ))/m_i, yu2011 (54), and the sizes added up; delta = ν − μ_i written."""
    gain, size = 0.0, 0.0
    for j in range(mu.size):
        delta[j] = nu[j] - mu[j]
        gain += s[j] * delta[j]
        size += abs(s[j] * delta[j])
    gain -= 0.5 * rate * base.block_squared_norm(blocks, i, delta)
    return gain if loss.hinge else gain + entropy_gain, size


@njit(cache=True, nogil=True)
def move_all(loss, blocks, rate, theta, mu, entropies, v, new_theta, new_mu, new_entropies):
    """One trial of the batch update; new_theta, new_mu, new_entropies written. Returns the gap met."""
    s, nu = np.empty(blocks.size), np.empty(blocks.size)
    total = 0.0
    for i in range(blocks.mass.size):
        theta_i, moved = base.block_view(blocks, theta, i), base.block_view(blocks, new_theta, i)
        base.block_scores(blocks, i, v, s)
        value = oracle(loss, blocks, i, s, nu)
        mu_i, new = base.block_view(blocks, mu, i), base.block_view(blocks, new_mu, i)
        total += blocks.mass[i] * block_gap(loss, blocks, i, s, nu, mu_i, value, entropies[i])
        _move(loss, rate, theta_i, s, moved)
        value = base.block_marginals(blocks, i, moved, new)
        new_entropies[i], _ = base.block_entropy_at(blocks, i, moved, new, value)
    return total


@njit(cache=True)
def _move(loss, rate, theta, s, moved):
    """moved = θ − rate · (gradient in the space of scores); written."""
    for j in range(theta.size):
        moved[j] = theta[j] + rate * (s[j] if loss.hinge else s[j] - theta[j])
