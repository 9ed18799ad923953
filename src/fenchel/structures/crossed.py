"""K labels crossed with attributes: W (A, K), a weight for each pair; f(x, y) is never written out.

Scores and marginals of all examples are (n, K). Targets are rows of a sparse (n, K) matrix: one label, or a
distribution over several (soft labels, merged contexts).
"""

import numpy as np

from fenchel._math import TINY, ordered
from fenchel._sparse import column, row_begin, row_end
from fenchel.structures import base, offsets
from fenchel.structures.flat import CrossedBlocks, settle, softmax


class Crossed(base.Structure):
    """The structure of K labels with a weight for each pair of attribute and label."""

    name = "flat crossed"

    def __init__(self, labels: int):
        self.outputs = self.stride = self.size = labels

    def blocks(self, examples, design, lam) -> CrossedBlocks:
        """The arrays of a problem."""
        return CrossedBlocks(
            targets=examples.y,
            mass=examples.mass,
            lam=lam,
            size=self.size,
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

    def prior(self, examples):
        """(K,) the logarithms of how often each label is true, with mean zero."""
        logs = np.log(self.shares(examples))
        return logs - logs.mean()

    def logarithms(self, mu):
        """(n, K) scores whose marginals are μ."""
        logs = np.maximum(mu, TINY)
        return np.log(logs, out=logs)

    def offset(self, blocks, scores, each_part, enough=None):
        """The free b (K,), mean zero, that minimises the log loss at scores + b; `enough` ends it earlier."""
        return offsets.offset_of_labels(blocks, scores, each_part, enough)

    def tilted(self, blocks, mu, each_part, overwrite=False):
        """μ_i e^δ, divided by its sum, with the δ that balances them; None where δ is far.

        overwrite: mu is written; a copy of a large one took as long as a pass.
        """
        delta = offsets.tilt_of_labels(blocks, mu, each_part)
        if delta is None:
            return None
        mu, growth = mu if overwrite else mu.copy(), np.exp(delta)
        each_part(lambda start, stop: offsets.tilt_rows(start, stop, growth, mu))
        return mu


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
    for k in range(size):
        s[k] = blocks.constant * v[d + k] if blocks.constant > 0.0 else 0.0
    for e in range(row_begin(blocks.rows, i), row_end(blocks.rows, i)):
        x, begin = blocks.rows.data[e], column(blocks.rows, i, e) * size
        for k in range(size):
            s[k] += x * v[begin + k]


@base.block_add.implement(CrossedBlocks)
def _add(blocks, i, step, delta, v):
    size, d = np.uint64(blocks.size), np.uint64(blocks.n_weights)
    for e in range(row_begin(blocks.rows, i), row_end(blocks.rows, i)):
        x, begin = step * blocks.rows.data[e], column(blocks.rows, i, e) * size
        for k in range(size):
            v[begin + k] += x * delta[k]
    if blocks.constant > 0.0:
        for k in range(size):
            v[d + k] += step * blocks.constant * delta[k]


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
    along = step * blocks.norms[i]
    for k in range(blocks.size):
        moved[k] = s[k] + along * delta[k]


@base.block_radius.implement(CrossedBlocks)
def _radius(blocks, i):
    return 2.0 * blocks.norms[i] if blocks.size > 1 else 0.0


@base.block_catch_up.implement(CrossedBlocks)
def _catch_up(blocks, i, now, drift, g, seen, v):
    size = np.uint64(blocks.size)
    for e in range(row_begin(blocks.rows, i), row_end(blocks.rows, i)):
        begin = column(blocks.rows, i, e) * size
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
