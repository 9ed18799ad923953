"""K labels crossed with attributes: W (A, K), a weight for each pair; f(x, y) is never written out.

Scores and marginals of all examples are (n, K). Targets are rows of a sparse (n, K) matrix: one label, or a
distribution over several (soft labels, merged contexts).
"""

import numpy as np
from numba import njit

from fenchel._math import TINY
from fenchel.structures import base
from fenchel.structures.flat import CrossedBlocks, settle, softmax


class Crossed:
    """The structure of K labels with a weight for each pair of attribute and label."""

    name = "flat crossed"

    def __init__(self, labels: int):
        self.outputs = self.stride = self.size = labels

    def blocks(self, examples, design, lam, n_free) -> CrossedBlocks:
        """The arrays of a problem."""
        return CrossedBlocks(
            rows=design.rows,
            targets=examples.y,
            mass=examples.mass,
            norms=design.norms,
            cross=design.cross,
            centre_norm=design.centre_norm,
            lam=lam,
            size=self.size,
            n_weights=design.dim,
            n_free=n_free,
        )

    def shape(self, examples):
        """Of the marginals of all examples."""
        return examples.n, self.size

    def logarithms(self, mu):
        """(n, K) scores whose marginals are μ."""
        return np.log(np.maximum(mu, TINY))

    def offset(self, blocks, scores, b=0.0):
        """The free b (K,), mean zero, that minimises the log loss at fixed scores: Σ m_i (y_i − μ_i) = 0."""
        b = np.broadcast_to(np.asarray(b, dtype=float), (self.size,)) - np.mean(b)
        here = _descend(blocks, scores, b)
        if here.balanced or np.abs(here.excess).max() <= 1e-12:
            return here.b
        cooled = _descend(blocks, scores, _cooled_offset(blocks, scores))
        return cooled.b if cooled.value <= here.value else here.b

    def level(self, blocks, mu, scores) -> None:
        """Subtract from the scores (n, K) what free offsets take up, so that the changes sum to zero."""
        changes = scores.copy()
        base.all_covariances(blocks, 0, blocks.mass.size, mu, changes)
        scores -= np.linalg.pinv(_offset_hessian(blocks, mu), hermitian=True) @ changes.sum(axis=0)


# ---- free offsets of the crossed layout


def _offset_hessian(blocks, mu):
    """Σ m_i (diag μ_i − μ_i μ_iᵀ), (K, K)."""
    weighted = mu * blocks.mass[:, None]
    return np.diag(weighted.sum(axis=0)) - weighted.T @ mu


def _descend(blocks, scores, b):
    """The balance at the best b found by damped Newton steps from b.

    Where one fails, b_k += log(target/expected share of k): iterative scaling, which never does.
    """
    here = _Balance(blocks, scores, b)
    for _ in range(100):
        if here.balanced:
            break
        there = _newton_step(blocks, scores, here) or _scaling_step(blocks, scores, here)
        if there is None:  # as near as rounding allows
            break
        here = there
    return here


def _cooled_offset(blocks, scores):
    """b to begin with where scores are so far apart that the loss is nearly piecewise linear.

    The best b of scores/T, times T, for a temperature T that falls to one.
    """
    temperature = max(0.1 * float(np.ptp(scores)), 1.0)
    b = np.zeros(scores.shape[1])
    while temperature > 1.0:
        b = temperature * _descend(blocks, scores / temperature, b / temperature).b
        temperature *= 0.5
    return b


class _Balance:
    """The loss at scores + b, b of mean zero, and its gradient there."""

    def __init__(self, blocks, scores, b):
        self.b = b - b.mean()
        self.mu = np.empty((blocks.mass.size, b.size))
        self.value, self.excess, self.scale = _unbalance(blocks, scores, self.b, self.mu)

    @property
    def balanced(self) -> bool:
        return bool((np.abs(self.excess) <= 1e-16 * self.scale).all())

    def better_than(self, other, slope=0.0) -> bool:
        """Less loss by a part of the slope; where that is lost to rounding, much less of a gradient."""
        if self.value <= other.value - 1e-4 * slope and self.value < other.value:
            return True
        flat = self.value <= other.value * (1.0 + 1e-15)
        return bool(flat and np.abs(self.excess).max() < 0.5 * np.abs(other.excess).max())


def _newton_step(blocks, scores, here):
    """The balance after a Newton step, halved until the loss decreases; None where it does not."""
    hessian = _offset_hessian(blocks, here.mu)
    scale = hessian.diagonal().max()
    if not scale > TINY:
        return None
    step = np.linalg.pinv(hessian / scale, rcond=1e-14, hermitian=True) @ here.excess / scale
    slope = here.excess @ step
    for _ in range(30):
        there = _Balance(blocks, scores, here.b - step)
        if there.better_than(here, slope):
            return there
        step, slope = 0.5 * step, 0.5 * slope
    return None


def _scaling_step(blocks, scores, here):
    """The balance after a step of iterative scaling; None where that changes nothing."""
    share = blocks.mass @ here.mu
    step = np.log(np.maximum(share - here.excess, TINY)) - np.log(np.maximum(share, TINY))
    there = _Balance(blocks, scores, here.b + step)
    return there if there.better_than(here) else None


@njit(cache=True, nogil=True)
def _unbalance(blocks, scores, b, mu):
    """Σ m_i loss_i at scores + b, its gradient Σ m_i (μ_i − y_i) (K,), and the sum of what cancels in it.

    mu (n, K) written.
    """
    n, size = mu.shape
    s, delta = np.empty(size), np.empty(size)
    value, excess, scale = 0.0, np.zeros(size), np.zeros(size)
    for i in range(n):
        for k in range(size):
            s[k] = scores[i, k] + b[k]
        value += blocks.mass[i] * base.block_marginals(blocks, i, s, mu[i])
        base.block_residual(blocks, i, mu[i], delta)
        for k in range(size):
            excess[k] -= blocks.mass[i] * delta[k]
            scale[k] += blocks.mass[i] * abs(delta[k])
    return value, excess, scale


# ---- the block kernels


@base.block_length.implement(CrossedBlocks)
def _length(blocks, i):
    return blocks.size


@base.block_view.implement(CrossedBlocks)
def _view(blocks, mu, i):
    return mu[i]


@base.block_read.implement(CrossedBlocks)
def _read(blocks, scores, i, s):
    for k in range(blocks.size):
        s[k] = scores[i, k]


@base.block_write.implement(CrossedBlocks)
def _write(blocks, i, s, scores):
    for k in range(blocks.size):
        scores[i, k] = s[k]


@base.block_scores.implement(CrossedBlocks)
def _scores(blocks, i, v, s):
    size, d = np.uint64(blocks.size), np.uint64(blocks.n_weights)
    uncentred = blocks.cross[i] - blocks.centre_norm
    for k in range(size):
        s[k] = v[d + k] - v[d + size + k] * uncentred - v[d + np.uint64(2) * size + k]
    for e in range(blocks.rows.indptr[i], blocks.rows.indptr[i + 1]):
        x, begin = blocks.rows.data[e], np.uint64(blocks.rows.indices[e]) * size
        for k in range(size):
            s[k] += x * v[begin + k]


@base.block_add.implement(CrossedBlocks)
def _add(blocks, i, step, delta, v):
    size, d = np.uint64(blocks.size), np.uint64(blocks.n_weights)
    for e in range(blocks.rows.indptr[i], blocks.rows.indptr[i + 1]):
        x, begin = step * blocks.rows.data[e], np.uint64(blocks.rows.indices[e]) * size
        for k in range(size):
            v[begin + k] += x * delta[k]
    for k in range(size):
        v[d + size + k] += step * delta[k]
        v[d + np.uint64(2) * size + k] += step * delta[k] * blocks.cross[i]


@base.block_add_free.implement(CrossedBlocks)
def _add_free(blocks, i, step, delta, v):
    for k in range(blocks.n_free):
        v[blocks.n_weights + k] += step * delta[k]


@base.block_squared_norm.implement(CrossedBlocks)
def _squared_norm(blocks, i, delta):
    total = 0.0
    for k in range(blocks.size):
        total += delta[k] * delta[k]
    return total * blocks.norms[i]


@base.block_gram_row.implement(CrossedBlocks)
def _gram_row(blocks, i, j, row):
    for k in range(blocks.size):
        row[k] = 0.0
    row[j] = blocks.norms[i]


@base.block_move.implement(CrossedBlocks)
def _move(blocks, i, step, delta, s, moved):
    along = step * (blocks.norms[i] + (1.0 if blocks.n_free > 0 else 0.0))
    for k in range(blocks.size):
        moved[k] = s[k] + along * delta[k]


@base.block_radius.implement(CrossedBlocks)
def _radius(blocks, i):
    return 2.0 * blocks.norms[i] if blocks.size > 1 else 0.0


@base.block_catch_up.implement(CrossedBlocks)
def _catch_up(blocks, i, now, drift, g, seen, v):
    size = np.uint64(blocks.size)
    for e in range(blocks.rows.indptr[i], blocks.rows.indptr[i + 1]):
        begin = np.uint64(blocks.rows.indices[e]) * size
        for k in range(size):
            j = begin + k
            v[j] -= g[j] * (drift[now] - drift[seen[j]])
            seen[j] = now


@base.block_target.implement(CrossedBlocks)
def _target(blocks, i, y):
    for k in range(blocks.size):
        y[k] = 0.0
    for e in range(blocks.targets.indptr[i], blocks.targets.indptr[i + 1]):
        y[blocks.targets.indices[e]] = blocks.targets.data[e]


@base.block_residual.implement(CrossedBlocks)
def _residual(blocks, i, mu, delta):
    for k in range(blocks.size):
        delta[k] = -mu[k]
    for e in range(blocks.targets.indptr[i], blocks.targets.indptr[i + 1]):
        delta[blocks.targets.indices[e]] += blocks.targets.data[e]
    settle(blocks.size, mu, delta)


@base.block_cost.implement(CrossedBlocks)
def _cost(blocks, i, cost):
    for k in range(blocks.size):
        cost[k] = 1.0
    for e in range(blocks.targets.indptr[i], blocks.targets.indptr[i + 1]):
        cost[blocks.targets.indices[e]] -= blocks.targets.data[e]


@base.block_marginals.implement(CrossedBlocks)
def _marginals(blocks, i, s, mu):
    top, rest = softmax(blocks.size, s, mu)
    loss = 0.0
    for e in range(blocks.targets.indptr[i], blocks.targets.indptr[i + 1]):
        loss += blocks.targets.data[e] * ((top - s[blocks.targets.indices[e]]) + rest)
    return loss
