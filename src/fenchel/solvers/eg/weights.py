"""From dual variables to weights and to scores, in the layout of `sentences.py`: A_i and A_iᵀ of a sentence.

Arrays are flat; rows of labels are padded to `width`.
"""

from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel._lanes import kept, larger, load, smaller, spread, store, total, zeros
from fenchel._math import soft
from fenchel.structures.lattice_lanes import KERNEL, LANES, ONE, dot


class Dual(NamedTuple):
    """θ and μ: nodes (N, width), edges (n, K, width). v = u/λ: rows, and of transitions (K, width). All flat.

    The weights are w = soft(v, threshold); those of transitions, which every visit reads, are in `table`.
    """

    theta: np.ndarray
    mu: np.ndarray
    edge_theta: np.ndarray
    edge_mu: np.ndarray
    v: np.ndarray
    edge_v: np.ndarray
    table: np.ndarray
    own: np.ndarray  # (N,) what v of an attribute of one token has beside c (y − μ): its centre's share


class Scratch(NamedTuple):
    """Room for any sentence: (T, width); edges, pairs, edge_delta (K, width); change (rows, width)."""

    s: np.ndarray
    x: np.ndarray
    nu: np.ndarray
    delta: np.ndarray
    edges: np.ndarray
    pairs: np.ndarray
    edge_delta: np.ndarray
    change: np.ndarray


@njit(cache=True, nogil=True)
def fill(d, offsets, theta, nodes, edges):
    """From the problem's layout to this one; nodes, edges written."""
    K, width = d.labels.count, d.labels.width
    for i in range(np.uint64(d.starts.size - 1)):
        T = d.starts[i + ONE] - d.starts[i]
        for k in range(K):
            for t in range(T):
                nodes[(d.starts[i] + t) * width + k] = theta[offsets[i] + t * K + k]
            for a in range(K):
                edges[(i * K + a) * width + k] = theta[offsets[i] + (T + a) * K + k]


@njit(cache=True, nogil=True)
def collect(d, offsets, nodes, edges, out):
    """The inverse of `fill`; out written."""
    K, width = d.labels.count, d.labels.width
    for i in range(np.uint64(d.starts.size - 1)):
        T = d.starts[i + ONE] - d.starts[i]
        for k in range(K):
            for t in range(T):
                out[offsets[i] + t * K + k] = nodes[(d.starts[i] + t) * width + k]
            for a in range(K):
                out[offsets[i] + (T + a) * K + k] = edges[(i * K + a) * width + k]


@njit(cache=True, nogil=True)
def export(d, origin, q, delta, w):
    """The weights of attributes in the problem's layout; w written, delta is room."""
    K, width, e = d.labels.count, d.labels.width, np.uint64(0)
    for r in range(np.uint64(origin.columns.size)):
        for k in range(K):
            w[origin.columns[r] * K + k] = soft(q.v[origin.rows[r] * width + k], d.threshold)
    for i in range(np.uint64(d.starts.size - 1)):
        residual(d, i, q, delta)
        while e < np.uint64(origin.tokens.size) and origin.tokens[e] < d.starts[i + ONE]:
            token, to = origin.tokens[e], origin.own[e] * K
            at = (token - d.starts[i]) * width
            for k in range(K):
                if not d.masked or k == d.y[token]:
                    v = q.own[token] - d.rates[i] * delta[at + k]
                    w[to + k] = soft(origin.values[e] * v, d.threshold)
            e += ONE


@njit(**KERNEL)
def weigh(d, q, room):
    """v = Σ c_i A_iᵀ(y_i − μ_i) added to q.v, q.edge_v, and the table of it; room written."""
    for i in range(np.uint64(d.starts.size - 1)):
        residual(d, i, q, room.delta)
        edge_residual(d, i, q, room.edge_delta)
        gather(d, i, room.delta, room.change)
        take(d, i, d.rates[i], room.change, q.v)
        take_edges(d, i, room.edge_delta, q)


@helper(**KERNEL)
def take_edges(d, i, edge_delta, q):
    """v −= c δ of transitions, and the table anew; q.edge_v, q.table written."""
    for j in range(d.edge_keep.size):
        q.edge_v[j] -= d.rates[i] * edge_delta[j] * d.edge_keep[j]
        q.table[j] = soft(q.edge_v[j], d.threshold)


@helper(**KERNEL)
def difference(d, i, q, delta):
    """delta (T, width) = μ_i − y_i of nodes; written."""
    z, first, width = zeros(8), d.starts[i], d.labels.width
    T = d.starts[i + ONE] - first
    for j in range(np.uint64(0), T * width, LANES):
        store(delta, j, load(q.mu, first * width + j, z))
    for t in range(T):
        delta[t * width + d.y[first + t]] -= 1.0


@helper(**KERNEL)
def residual(d, i, q, delta):
    """The same; of the likeliest label minus the sum of the others, which keeps digits."""
    difference(d, i, q, delta)
    first, K, width = d.starts[i], d.labels.count, d.labels.width
    for t in range(d.starts[i + ONE] - first):
        at, begin, best, others = t * width, (first + t) * width, np.uint64(0), 0.0
        for k in range(K):
            best = k if q.mu[begin + k] > q.mu[begin + best] else best
            others += delta[at + k]
        delta[at + best] -= others


@helper(**KERNEL)
def edge_residual(d, i, q, delta):
    """The same of transitions, (K, width); written."""
    first, size = d.starts[i], np.uint64(d.edge_keep.size)
    for j in range(size):
        delta[j] = q.edge_mu[i * size + j]
    for t in range(first + ONE, d.starts[i + ONE]):
        delta[d.y[t - ONE] * d.labels.width + d.y[t]] -= 1.0


@helper(**KERNEL)
def gather(d, i, delta, change):
    """change (rows of the sentence, width) = A_iᵀ δ where there are weights; written. Returns ‖change‖²."""
    z, width, at = zeros(8), d.labels.width, np.uint64(0)
    squares, blocks = z, d.labels.width // LANES
    for u in range(d.uses.starts[i], d.uses.starts[i + ONE]):
        row, begin, end = np.uint64(d.uses.rows[u]), d.uses.ends[u], d.uses.ends[u + ONE]
        for k in range(np.uint64(0), width, LANES):
            sums = z
            if d.uses.values.size == 0:
                sums = load(delta, np.uint64(d.uses.tokens[begin]) * width + k, z)
                for e in range(begin + ONE, end):
                    sums = sums + load(delta, np.uint64(d.uses.tokens[e]) * width + k, z)
            else:
                for e in range(begin, end):
                    x = spread(d.uses.values[e], z)
                    sums = sums + x * load(delta, np.uint64(d.uses.tokens[e]) * width + k, z)
            if d.masked:
                sums = kept(d.keep, row * blocks + k // LANES, sums)
            store(change, at, sums)
            at += LANES
            squares = squares + sums * sums
    return total(squares)


@helper(**KERNEL)
def squared_pull(d, i, delta, edge_delta, change):
    """‖A_iᵀδ‖²; change as `gather` leaves it."""
    return gather(d, i, delta, change) + of_single(d, i, delta) + edge_square(d, edge_delta)


@helper(**KERNEL)
def take(d, i, c, change, v):
    """v −= c · change, which `gather` left; v written."""
    z, width, at = zeros(8), d.labels.width, np.uint64(0)
    step = spread(-c, z)
    for u in range(d.uses.starts[i], d.uses.starts[i + ONE]):
        row = np.uint64(d.uses.rows[u]) * width
        for k in range(row, row + width, LANES):
            store(v, k, load(v, k, z) + step * load(change, at, z))
            at += LANES


@helper(**KERNEL)
def of_single(d, i, delta):
    """The share in ‖A_iᵀδ‖² of the attributes of one token; with a mask they have the weight of its label."""
    first, width, square = d.starts[i], d.labels.width, 0.0
    for t in range(d.starts[i + ONE] - first):
        if d.masked:
            square += d.single[first + t] * delta[t * width + d.y[first + t]] ** 2
        else:
            square += d.single[first + t] * dot(delta, t * width, delta, t * width, width)
    return square


@helper(**KERNEL)
def edge_square(d, delta):
    """‖δ‖² of transitions, where there are weights."""
    z = zeros(8)
    squares = z
    for j in range(np.uint64(0), np.uint64(d.edge_keep.size), LANES):
        here = load(delta, j, z) * load(d.edge_keep, j, z)
        squares = squares + here * here
    return total(squares)


@helper(**KERNEL)
def scores(d, i, q, delta, s):
    """s (T, width) = A_i w, attributes of one token by its residual μ − y, delta; s written."""
    if d.threshold == 0.0:
        _plain_scores(d, i, q, delta, s)
    else:
        _soft_scores(d, i, q, delta, s)


@helper(**KERNEL)
def _plain_scores(d, i, q, delta, s):
    """Where w = v."""
    z, first, width = zeros(8), d.starts[i], d.labels.width
    for t in range(d.starts[i + ONE] - first):
        token, at = first + t, t * width
        begin, end, own = d.indptr[token], d.indptr[token + ONE], -d.rates[i] * d.single[token]
        even = begin + ((end - begin) & ~ONE) if d.values.size == 0 else begin
        of_all = spread(own if not d.masked else 0.0, z)
        for k in range(np.uint64(0), width, LANES):
            p, q_ = of_all * load(delta, at + k, z), z
            for e in range(begin, even, np.uint64(2)):
                p = p + load(q.v, np.uint64(d.rows[e]) * width + k, z)
                q_ = q_ + load(q.v, np.uint64(d.rows[e + ONE]) * width + k, z)
            for e in range(even, end):
                x = spread(1.0 if d.values.size == 0 else d.values[e], z)
                p = p + x * load(q.v, np.uint64(d.rows[e]) * width + k, z)
            store(s, at + k, p + q_)
        if d.masked:
            s[at + d.y[token]] += own * delta[at + d.y[token]] + d.single[token] * q.own[token]


@helper(**KERNEL)
def _soft_scores(d, i, q, delta, s):
    """Where w = soft(v, threshold)."""
    z, first, width = zeros(8), d.starts[i], d.labels.width
    high, low, rate = spread(d.threshold, z), spread(-d.threshold, z), spread(-d.rates[i], z)
    for t in range(d.starts[i + ONE] - first):
        token, at = first + t, t * width
        count = spread(d.single[token] if not d.masked else 0.0, z)
        for k in range(np.uint64(0), width, LANES):
            own = rate * load(delta, at + k, z)
            p = count * (own - smaller(larger(own, low), high))
            for e in range(d.indptr[token], d.indptr[token + ONE]):
                v = load(q.v, np.uint64(d.rows[e]) * width + k, z)
                x = spread(1.0 if d.values.size == 0 else d.values[e], z)
                p = p + x * (v - smaller(larger(v, low), high))
            store(s, at + k, p)
        if d.masked:
            y = at + d.y[token]
            s[y] += d.single[token] * soft(q.own[token] - d.rates[i] * delta[y], d.threshold)


@njit(**KERNEL)
def squared_norm(d, q):
    """‖w‖², of attributes of one token by its residual y − μ."""
    zero, square = np.uint64(0), 0.0
    for j in range(np.uint64(q.v.size)):
        square += soft(q.v[j], d.threshold) ** 2
    square += dot(q.table, zero, q.table, zero, np.uint64(q.table.size))
    for i in range(np.uint64(d.starts.size - 1)):
        for t in range(d.starts[i], d.starts[i + ONE]):
            if d.single[t] > 0.0:
                square += d.single[t] * _own_square(d, q, i, t)
    return square


@helper(**KERNEL)
def _own_square(d, q, i, t):
    """‖w‖² of an attribute, of value 1 or without an L1 term, that only token t of sentence i has."""
    at, y, square = t * d.labels.width, d.y[t], 0.0
    for k in range(d.labels.count):
        if not d.masked or k == y:
            v = q.own[t] + d.rates[i] * ((1.0 if k == y else 0.0) - q.mu[at + k])
            square += soft(v, d.threshold) ** 2
    return square
