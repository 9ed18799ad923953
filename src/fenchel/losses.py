"""Log from hinge: which oracle answers, which block gap, which concave term of the dual.

    log      loss_i = log Z(s_i) − ⟨s_i, y_i⟩, H = entropy: logistic regression, maximum entropy, CRFs
    hinge    loss_i = max(s_i + cost_i) − ⟨s_i, y_i⟩, H = ⟨cost, μ⟩: SVMs, max-margin Markov networks

A loss is a named tuple whose type picks the implementation of its kernels, like the blocks of a structure: a
branch at run time costs as much as a row of a dozen entries. They work for every structure.
"""

from math import exp, log1p
from typing import NamedTuple

import numpy as np

from fenchel._cache import njit
from fenchel._dispatch import kernel_by_type
from fenchel._math import kl_pair, ordered
from fenchel.structures import base, passes
from fenchel.structures.binary_batch import HEIGHT, several_scores


class Log(NamedTuple):
    """The log loss."""

    hinge: bool = False
    name = "log"


class Hinge(NamedTuple):
    """The hinge loss, with the cost of a wrong output."""

    hinge: bool = True
    name = "hinge"


LOSSES = {loss.name: loss for loss in (Log(), Hinge())}


@kernel_by_type
def oracle(loss, blocks, i, s, nu):
    """ν = marginals at s, or the cost-augmented argmax as a 0/1 vector; nu written. Returns loss_i.

    With the hinge loss s is written too: the cost is added, see `block_augment`.
    """


@kernel_by_type
def block_gap(loss, blocks, i, s, nu, mu, value, entropy):
    """KL(μ_i ‖ marginals at s), lepriol2018 (11), or ⟨s, ν − μ⟩; s and nu as `oracle` left them.

    value: what `oracle` returned. entropy: H(μ_i), or nan where μ_i tells it.
    """


@kernel_by_type
def block_concave(loss, blocks, i, mu, room):
    """H_i(μ_i); room written."""


@oracle.implement(Log)
def _log_oracle(loss, blocks, i, s, nu):
    return base.block_marginals(blocks, i, s, nu)


@block_gap.implement(Log)
def _log_gap(loss, blocks, i, s, nu, mu, value, entropy):
    return base.block_divergence(blocks, i, mu, entropy, s, value)


@block_concave.implement(Log)
def _log_concave(loss, blocks, i, mu, room):
    return base.block_entropy(blocks, i, mu)


@oracle.implement(Hinge)
def _hinge_oracle(loss, blocks, i, s, nu):
    truth = base.block_augment(blocks, i, s, nu)
    return max(base.block_argmax(blocks, i, s, nu) - truth, 0.0)


@block_gap.implement(Hinge)
def _hinge_gap(loss, blocks, i, s, nu, mu, value, entropy):
    gap = 0.0
    for j in range(base.block_length(blocks, i)):
        if nu[j] != mu[j]:  # an outcome of score −∞ and no mass counts nothing
            gap += s[j] * (nu[j] - mu[j])
    return max(gap, 0.0)


@block_concave.implement(Hinge)
def _hinge_concave(loss, blocks, i, mu, room):
    total = 0.0
    base.block_cost(blocks, i, room)
    for j in range(base.block_length(blocks, i)):
        total += room[j] * mu[j]
    return total


@njit(cache=True, nogil=True)
def log_value_and_pull(blocks, start, stop, v, scores, pull):
    """Σ m_i loss_i and Σ m_i ‖y_i − μ_i‖₁ over start ≤ i < stop; pull += Σ m_i A_iᵀ(y_i − μ_i), written in
    the augmented layout.

    scores: those of all examples, or empty: then at the weights v. The log loss has its own loop, without
    `oracle` between: on rows of a dozen entries that takes 47 ns an example instead of 81.
    """
    s, mu, delta = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    total, moved = 0.0, 0.0
    for i in range(start, stop):
        passes.read_scores(blocks, i, v, scores, s)
        total += blocks.mass[i] * base.block_marginals(blocks, i, s, mu)
        base.block_residual(blocks, i, mu, delta)
        moved += blocks.mass[i] * passes.sum_of_sizes(base.block_length(blocks, i), delta)
        base.block_add(blocks, i, blocks.mass[i], delta, pull)
    return total, moved


@njit(cache=True, nogil=True)
def hinge_value_and_pull(blocks, start, stop, v, scores, pull):
    """The same for the hinge loss: its value and a subgradient."""
    loss, s, nu, delta = Hinge(True), np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    total, moved = 0.0, 0.0
    for i in range(start, stop):
        passes.read_scores(blocks, i, v, scores, s)
        total += blocks.mass[i] * oracle(loss, blocks, i, s, nu)
        base.block_residual(blocks, i, nu, delta)
        moved += blocks.mass[i] * passes.sum_of_sizes(base.block_length(blocks, i), delta)
        base.block_add(blocks, i, blocks.mass[i], delta, pull)
    return total, moved


@njit(cache=True, nogil=True)
def value_and_gap(loss, blocks, start, stop, v, scores, mu, entropies, gaps):
    """Σ m_i loss_i, Σ m_i · block gap and Σ m_i ‖y_i − μ_i‖₁ over start ≤ i < stop; gaps (n,) written.

    mu may be None: then only the value is computed. entropies (n,): H(μ_i), or empty where mu tells.
    """
    s, nu, room = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    value, gap, moved = 0.0, 0.0, 0.0
    for i in range(start, stop):
        passes.read_scores(blocks, i, v, scores, s)
        loss_i = oracle(loss, blocks, i, s, nu)
        value += blocks.mass[i] * loss_i
        if mu is not None:
            entropy = entropies[i] if entropies.size > 0 else np.nan
            mu_i = base.block_settled(blocks, i, base.block_view(blocks, mu, i), room)
            gaps[i] = block_gap(loss, blocks, i, s, nu, mu_i, loss_i, entropy)
            gap += blocks.mass[i] * gaps[i]
            base.block_residual(blocks, i, mu_i, s)
            moved += blocks.mass[i] * passes.sum_of_sizes(mu_i.size, s)
    return value, gap, moved


# ---- two classes


def pair_value_and_gap(loss, blocks, start, stop, v, scores, mu, gaps):
    """`value_and_gap` of two classes, from arrays one by one.

    To count references to all of `blocks` takes longer than a short row: examples of one entry or none took
    150 to 170 ns each, here 4 (hinge) and 40 (log loss).
    """
    rows, constant = blocks.layout.rows, blocks.layout.constant
    given = rows, constant, blocks.outcomes.y, blocks.mass
    return _pair_value_and_gap(loss, *given, start, stop, v, scores, mu, gaps)


@njit(cache=True, nogil=True)
def _pair_value_and_gap(loss, rows, constant, targets, masses, start, stop, v, scores, mu, gaps):
    """Where scores are not known they lie in gaps until these are."""
    value, gap, moved, stop, known = 0.0, 0.0, 0.0, np.uint64(stop), scores.size > 0
    offset = 0.0 if known or constant == 0.0 else constant * v[-1]
    for first in range(np.uint64(start), stop, HEIGHT):
        last = min(first + HEIGHT, stop)
        if not known:
            several_scores(rows, first, last - first, v, offset, gaps)
        for i in range(first, last):
            s, y, mass = scores[i] if known else gaps[i], targets[i], masses[i]
            value += mass * pair_loss(loss, y, s)
            if mu is not None:
                gaps[i] = pair_gap(loss, y, s, mu[i, 0], mu[i, 1])
                gap += mass * gaps[i]
                moved += 2.0 * mass * abs(y * mu[i, 1] - (1.0 - y) * mu[i, 0])
    return value, gap, moved


@kernel_by_type
def pair_loss(loss, y, s):
    """loss_i at the score s of the first class, that of the second being 0; y: how true the first is."""


@kernel_by_type
def pair_gap(loss, y, s, p, q):
    """The gap of such an example whose marginals are p and q."""


@pair_loss.implement(Log)
def _log_pair_loss(loss, y, s):
    return log1p(exp(-abs(s))) + (max(s, 0.0) * (1.0 - y) - min(s, 0.0) * y)


@pair_gap.implement(Log)
def _log_pair_gap(loss, y, s, p, q):
    return kl_pair(p, q, s)


@pair_loss.implement(Hinge)
def _hinge_pair_loss(loss, y, s):
    truth = y * s
    return max(ordered(s, truth, 1.0 - y), ordered(0.0, truth, y), 0.0)


@pair_gap.implement(Hinge)
def _hinge_pair_gap(loss, y, s, p, q):
    truth = y * s
    first, second = ordered(s, truth, 1.0 - y), ordered(0.0, truth, y)
    if first > second:
        return max(first * (1.0 - p) - second * q, 0.0)
    return max(second * (1.0 - q) - first * p, 0.0)


@njit(cache=True, nogil=True)
def concave(loss, blocks, start, stop, mu):
    """Σ m_i H_i(μ_i) over start ≤ i < stop."""
    room, total = np.empty(blocks.size), 0.0
    for i in range(start, stop):
        total += blocks.mass[i] * block_concave(loss, blocks, i, base.block_view(blocks, mu, i), room)
    return total
