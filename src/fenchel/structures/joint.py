"""Candidate sets: every candidate of an example has its own sparse row f(x, y), and all share w (d,).

Scores, marginals and targets of all candidates lie one after the other, (M,); those of example i between
starts[i] and starts[i + 1].
"""

import numpy as np

from fenchel import _sparse
from fenchel._cache import njit
from fenchel._math import TINY, ordered
from fenchel.structures import base
from fenchel.structures.flat import JointBlocks, settle, softmax


class Joint(base.Structure):
    """The structure of candidate sets, each candidate with its own features."""

    name = "flat joint"
    outputs = None  # one weight vector
    stride = 1  # outcomes per row of features

    def __init__(self, size: int):
        self.size = size

    def blocks(self, examples, design, lam) -> JointBlocks:
        """The arrays of a problem."""
        return JointBlocks(
            rows=design.rows,
            starts=examples.starts,
            y=examples.y,
            mass=examples.mass,
            lam=lam,
            size=self.size,
            n_weights=design.dim,
            norms=design.norms,
            work=np.zeros(design.dim),
        )

    def shape(self, examples):
        """Of the marginals of all candidates."""
        return (examples.y.size,)

    def cleaned(self, examples, mu):
        """mu made to sum to one over the candidates of each example; None where it does not nearly."""
        sums = np.add.reduceat(mu, examples.starts[:-1].astype(np.int64))
        return base.normalised(mu, np.repeat(sums, np.diff(examples.starts.astype(np.int64))))

    def sizes_of_choice(self, examples):
        counts = np.diff(examples.starts.astype(np.int64))
        return np.log(counts), (counts > 1).astype(float)

    def logarithms(self, mu):
        """(M,) scores whose marginals are μ."""
        return np.log(np.maximum(mu, TINY))


# ---- the block kernels


@njit(cache=True, nogil=True)
def row_product(rows, i, j):
    """x_i · x_j, by merging their sorted indices."""
    e, f, total = rows.indptr[i], rows.indptr[j], 0.0
    while e < rows.indptr[i + 1] and f < rows.indptr[j + 1]:
        if rows.indices[e] < rows.indices[f]:
            e += np.uint64(1)
        elif rows.indices[e] > rows.indices[f]:
            f += np.uint64(1)
        else:
            total += rows.data[e] * rows.data[f]
            e += np.uint64(1)
            f += np.uint64(1)
    return total


@base.block_length.implement(JointBlocks)
def _length(blocks, i):
    return np.int64(blocks.starts[i + 1] - blocks.starts[i])


@base.block_view.implement(JointBlocks)
def _view(blocks, mu, i):
    return mu[blocks.starts[i] : blocks.starts[i + 1]]


@base.block_read.implement(JointBlocks)
def _read(blocks, scores, i, s):
    begin = blocks.starts[i]
    for j in range(blocks.starts[i + 1] - begin):
        s[j] = scores[begin + j]


@base.block_write.implement(JointBlocks)
def _write(blocks, i, s, scores):
    begin = blocks.starts[i]
    for j in range(blocks.starts[i + 1] - begin):
        scores[begin + j] = s[j]


@base.block_scores.implement(JointBlocks)
def _scores(blocks, i, v, s):
    begin = blocks.starts[i]
    for j in range(blocks.starts[i + 1] - begin):
        s[j] = _sparse.row_dot(blocks.rows, begin + j, v)


@base.block_add.implement(JointBlocks)
def _add(blocks, i, step, delta, v):
    begin = blocks.starts[i]
    for j in range(blocks.starts[i + 1] - begin):
        if delta[j] != 0.0:
            _sparse.row_add(blocks.rows, begin + j, step * delta[j], v)


@base.block_squared_norm.implement(JointBlocks)
def _squared_norm(blocks, i, delta):
    begin, end, total = blocks.starts[i], blocks.starts[i + 1], 0.0
    for j in range(end - begin):
        _sparse.row_add(blocks.rows, begin + j, delta[j], blocks.work)
    for e in range(blocks.rows.indptr[begin], blocks.rows.indptr[end]):
        t = blocks.rows.indices[e]
        total += blocks.work[t] * blocks.work[t]
        blocks.work[t] = 0.0
    return total


@base.block_gram_row.implement(JointBlocks)
def _gram_row(blocks, i, j, row):
    begin = blocks.starts[i]
    for k in range(blocks.starts[i + 1] - begin):
        row[k] = row_product(blocks.rows, begin + np.uint64(j), begin + k)


@base.block_move.implement(JointBlocks)
def _move(blocks, i, step, delta, s, moved):
    begin, end = blocks.starts[i], blocks.starts[i + 1]
    for j in range(end - begin):
        _sparse.row_add(blocks.rows, begin + j, delta[j], blocks.work)
    for j in range(end - begin):
        moved[j] = s[j] + step * _sparse.row_dot(blocks.rows, begin + j, blocks.work)
    for e in range(blocks.rows.indptr[begin], blocks.rows.indptr[end]):
        blocks.work[blocks.rows.indices[e]] = 0.0


@base.block_radius.implement(JointBlocks)
def _radius(blocks, i):
    begin, end, largest = blocks.starts[i], blocks.starts[i + 1], 0.0
    for true in range(begin, end):
        if blocks.y[true] > 0.0:
            for other in range(begin, end):
                product = row_product(blocks.rows, true, other)
                distance = blocks.norms[true] + blocks.norms[other] - 2.0 * product
                largest = max(largest, distance)
    return largest


@base.block_catch_up.implement(JointBlocks)
def _catch_up(blocks, i, now, drift, g, seen, v):
    begin, end = blocks.rows.indptr[blocks.starts[i]], blocks.rows.indptr[blocks.starts[i + 1]]
    for e in range(begin, end):
        j = blocks.rows.indices[e]
        v[j] -= g[j] * (drift[now] - drift[seen[j]])
        seen[j] = now


@base.block_target.implement(JointBlocks)
def _target(blocks, i, y):
    begin = blocks.starts[i]
    for j in range(blocks.starts[i + 1] - begin):
        y[j] = blocks.y[begin + j]


@base.block_residual.implement(JointBlocks)
def _residual(blocks, i, mu, delta):
    begin = blocks.starts[i]
    for j in range(blocks.starts[i + 1] - begin):
        delta[j] = blocks.y[begin + j] - mu[j]
    settle(np.int64(blocks.starts[i + 1] - begin), mu, delta)


@base.block_cost.implement(JointBlocks)
def _cost(blocks, i, cost):
    begin = blocks.starts[i]
    for j in range(blocks.starts[i + 1] - begin):
        cost[j] = 1.0 - blocks.y[begin + j]


@base.block_marginals.implement(JointBlocks)
def _marginals(blocks, i, s, mu):
    begin = blocks.starts[i]
    m = np.int64(blocks.starts[i + 1] - begin)
    top, rest = softmax(m, s, mu)
    loss = 0.0
    for j in range(m):
        if blocks.y[begin + j] > 0.0:
            loss += blocks.y[begin + j] * ordered(top, s[j], rest)
    return loss
