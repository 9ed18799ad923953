"""K labels crossed with attributes: W (A, K), a weight for each pair; f(x, y) is never written out.

Scores and marginals of all examples are (n, K). Targets are rows of a sparse (n, K) matrix: one label, or a
distribution over several (soft labels, merged contexts).
"""

import numpy as np

from fenchel._cache import njit
from fenchel._math import TINY, ordered
from fenchel.structures import base
from fenchel.structures.flat import CrossedBlocks, settle, softmax


class Crossed(base.Structure):
    """The structure of K labels with a weight for each pair of attribute and label."""

    name = "flat crossed"

    def __init__(self, labels: int):
        self.outputs = self.stride = self.size = labels

    def blocks(self, examples, design, lam, n_free) -> CrossedBlocks:
        """The arrays of a problem."""
        return CrossedBlocks(
            targets=examples.y,
            mass=examples.mass,
            lam=lam,
            size=self.size,
            n_free=n_free,
            **design.geometry(),
        )

    def shape(self, examples):
        """Of the marginals of all examples."""
        return examples.n, self.size

    def cleaned(self, examples, mu):
        """The rows of mu made to sum to one; None where they do not nearly, or are negative."""
        return base.normalised(mu, mu.sum(axis=1, keepdims=True))

    def sizes_of_choice(self, examples):
        return np.log(self.size), float(self.size > 1)

    def shares(self, examples):
        """The mass of each label."""
        y = examples.y
        mass = np.repeat(examples.mass, np.diff(y.indptr.astype(np.int64)))
        return np.bincount(y.indices, weights=mass * y.data, minlength=self.size)

    def logarithms(self, mu):
        """(n, K) scores whose marginals are μ."""
        return np.log(np.maximum(mu, TINY))

    def offset(self, blocks, scores, b=0.0):
        """The free b (K,), mean zero, that minimises the log loss at fixed scores: damped Newton.

        Where scores lie far apart the loss is all but piecewise linear and Newton's steps are wild: then for
        scores divided by T, which are close, and T goes to one by halves.
        """
        b = np.broadcast_to(np.asarray(b, dtype=float), (self.size,))
        b, balanced = _balance(blocks, scores, b - b.mean(), steps=20, halvings=10)
        if balanced:
            return b
        centre = blocks.mass @ scores
        scores = scores - centre
        temperature = max(np.abs(scores).max(), 1.0)
        b = np.zeros(self.size)
        while temperature > 1.0:
            b, _ = _balance(blocks, scores / temperature, b, enough=1e-2)
            cooler = max(0.5 * temperature, 1.0)
            b, temperature = b * (temperature / cooler), cooler
        b = _balance(blocks, scores, b)[0] - centre
        return b - b.mean()

    def offset_of(self, blocks, mu, scores):
        """The b (K,) with which scores + b come nearest to log μ: Σ m_i Var over μ_i of the difference."""
        off = self.logarithms(mu) - scores
        off -= np.sum(mu * off, axis=1, keepdims=True)
        pull = blocks.mass @ (mu * off)
        return np.linalg.pinv(_offset_hessian(blocks, mu), hermitian=True) @ pull

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


def _balance(blocks, scores, b, enough=1e-16, steps=100, halvings=60):
    """b after Newton steps, each halved until the loss decreases; and whether it balances to rounding."""
    mu, scratch = np.empty_like(scores), np.empty_like(scores)
    value, excess, scale = _unbalance(blocks, scores, b, mu)
    for _ in range(steps):
        if (np.abs(excess) <= enough * scale).all():
            break
        step = _newton_step(_offset_hessian(blocks, mu), excess, 4.0 * (1.0 + np.abs(scores + b).max()))
        slope = excess @ step
        for _ in range(halvings):
            moved = b - step
            moved -= moved.mean()
            new_value, new_excess, new_scale = _unbalance(blocks, scores, moved, scratch)
            if new_value <= value - 1e-4 * slope and slope > 1e-13 * value:
                break
            if slope <= 1e-9 * value and np.abs(new_excess).sum() < np.abs(excess).sum():
                break  # the value has no digits left to tell
            step, slope = 0.5 * step, 0.5 * slope
        else:
            break
        b, value, excess, scale, mu, scratch = moved, new_value, new_excess, new_scale, scratch, mu
    rounding = 1e-15 + 2.0 * np.spacing(np.abs(scores + b).max())
    return b, bool((np.abs(excess) <= rounding).all())


def _newton_step(hessian, excess, longest):
    """hessian⁻¹ excess, no entry longer than allowed; where the hessian has no digits, along the gradient."""
    values, vectors = np.linalg.eigh(hessian)
    values = np.maximum(values, max(1e-15 * values[-1], 1e-150))
    step = vectors @ ((vectors.T @ excess) / values)
    step -= step.mean()
    return step * min(1.0, longest / max(np.abs(step).max(), TINY))


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
        loss += blocks.targets.data[e] * ordered(top, s[blocks.targets.indices[e]], rest)
    return loss
