"""From dual variables to weights and to scores, in the layout of `sentences.py`: A_i and A_iᵀ of a sentence.

Arrays are flat; rows of labels are padded to `width`, places of labels are those of `sentences.py`.
"""

from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel._lanes import kept, larger, load, smaller, spread, store, total, zeros
from fenchel._math import soft
from fenchel._packed import packed, tail
from fenchel.solvers.eg.edges import (
    collect_edges,
    fill_edges,
    kind_residual,
    kind_scores,
    marginals_of,
)
from fenchel.solvers.eg.vectors import first_sum, pull_vectors, vector_scores
from fenchel.structures.lattice_lanes import KERNEL, LANES, ONE, dot


@packed
class Dual(NamedTuple):
    """θ and μ: nodes (N, width), those of a sentence followed by the strips of its kinds of edges; and edges
    (n, K, width). v = u/λ: tiles, and of transitions (K, width). All flat.

    The weights are w = soft(v, threshold); those of transitions, which every visit reads, are in `table`.
    """

    theta: np.ndarray
    mu: np.ndarray
    edge_theta: np.ndarray
    edge_mu: np.ndarray  # or empty: computed again from θ whenever it is needed
    levels: np.ndarray  # (n,) log Z at θ
    v: np.ndarray
    edge_v: np.ndarray
    table: np.ndarray
    own: np.ndarray  # (N,) what v of an attribute of one token has beside c (y − μ): its centre's share


@packed
class Scratch(NamedTuple):
    """Room for any sentence: (T, width) and strips of kinds; edges, pairs, before, edge_delta (K, width)."""

    s: np.ndarray
    x: np.ndarray
    nu: np.ndarray
    delta: np.ndarray
    edges: np.ndarray
    pairs: np.ndarray
    before: np.ndarray
    edge_delta: np.ndarray


@njit(cache=True, nogil=True)
def fill(d, origin, offsets, theta, nodes, edges):
    """From the problem's layout to this one; nodes, edges written."""
    K, width, size = d.labels.count, d.labels.width, np.uint64(d.edge_keep.size)
    for i in range(np.uint64(d.starts.size - 1)):
        T, begin = d.starts[i + ONE] - d.starts[i], d.begins[i]
        for k in range(K):
            for t in range(T):
                nodes[begin + t * width + k] = theta[offsets[i] + t * K + origin.labels[k]]
        fill_edges(d, i, origin, theta, offsets[i] + T * K, nodes, edges, i * size)


@njit(cache=True, nogil=True)
def collect(d, origin, offsets, nodes, edges, out):
    """The inverse of `fill`; out written."""
    K, width, size = d.labels.count, d.labels.width, np.uint64(d.edge_keep.size)
    for i in range(np.uint64(d.starts.size - 1)):
        T, begin = d.starts[i + ONE] - d.starts[i], d.begins[i]
        for k in range(K):
            for t in range(T):
                out[offsets[i] + t * K + origin.labels[k]] = nodes[begin + t * width + k]
        collect_edges(d, i, origin, nodes, edges, i * size, out, offsets[i] + T * K)


@njit(cache=True, nogil=True)
def export(d, origin, q, scratch, w):
    """The weights of attributes in the problem's layout; w, scratch written."""
    for r in range(np.uint64(origin.columns.size)):
        to, at, place = origin.columns[r] * d.labels.count, origin.tiles[r] * d.tile, origin.places[r]
        for k in range(min(d.tile, d.labels.count - place)):
            w[to + origin.labels[place + k]] = soft(q.v[at + k], d.threshold)
            if d.implied:
                w[to + d.tile] -= q.v[at + k]
    _export_own(d, origin, q, scratch.delta, w)


@njit(cache=True, nogil=True)
def enter(d, origin, w, v):
    """The inverse for attributes that have tiles, without an L1 term; v written."""
    for r in range(np.uint64(origin.columns.size)):
        start, at, place = origin.columns[r] * d.labels.count, origin.tiles[r] * d.tile, origin.places[r]
        for k in range(min(d.tile, d.labels.count - place)):
            v[at + k] = w[start + origin.labels[place + k]]


@helper(cache=True, nogil=True)
def _export_own(d, origin, q, delta, w):
    """Those of attributes of one token; labels stand in their own order unless there is a mask."""
    K, e, last = d.labels.count, np.uint64(0), np.uint64(d.y.size)
    for i in range(np.uint64(d.starts.size - 1)):
        while e < np.uint64(origin.tokens.size) and origin.tokens[e] < d.starts[i + ONE]:
            token, to, x = origin.tokens[e], origin.own[e] * K, origin.values[e]
            own, rate, y = q.own[token], d.rates[i], d.y[token]
            if token != last:  # many a token has several
                begin = d.begins[i] + (token - d.starts[i]) * d.labels.width
                _token_residual(d, q, token, begin, delta, np.uint64(0))
                last = token
            if d.masked:
                w[to + origin.labels[y]] = soft(x * (own - rate * delta[y]), d.threshold)
            else:
                for k in range(K):
                    w[to + k] = soft(x * (own - rate * delta[k]), d.threshold)
            e += ONE


@njit(**KERNEL)
def settle_all(d, q, room, scratch, start, stop, entropies):
    """μ at θ and its entropies, of sentences from start to stop; room, scratch written."""
    for i in range(start, stop):
        at, pairs = edge_marginals(d, i, q, scratch)
        entropies[i] = settle(d, i, q, room, tail(pairs, at))


@njit(**KERNEL)
def weigh(d, q, room, scratch, entropies):
    """v = Σ c_i A_iᵀ(y_i − μ_i) added to q.v, q.edge_v, and the table of it; room, scratch written.

    Where μ of edges is not kept, it is computed at θ.
    """
    kept = q.edge_mu.size > 0
    for i in range(np.uint64(d.starts.size - 1)):
        at, pairs = edge_marginals(d, i, q, scratch)
        if not kept:
            entropies[i] = settle(d, i, q, room, tail(pairs, at))
        residual(d, i, q, scratch.delta)
        edge_residual(d, i, pairs, at, scratch.edge_delta)
        pull(d, i, d.rates[i], scratch.delta, q.v)
        take_edges(d, i, scratch.edge_delta, q)


@helper(**KERNEL)
def settle(d, i, q, room, pairs):
    """μ of a sentence at its θ, and log Z; q.mu, pairs, q.levels written.

    Returns H(μ_i), or nan where θ lies too far apart.
    """
    size, zero, begin, end = np.uint64(q.table.size), np.uint64(0), d.begins[i], d.begins[i + ONE]
    x, mu, edges = tail(q.theta, begin), tail(q.mu, begin), tail(q.edge_theta, i * size)
    level = marginals_of(d, i, x, edges, room, mu, pairs)
    q.levels[i] = level
    return entropy_of(level, dot(x, zero, mu, zero, end - begin), dot(edges, zero, pairs, zero, size))


@helper(**KERNEL)
def entropy_of(level, inner, outer):
    """log Z − ⟨θ, μ⟩ less what rounding may have added to it: an entropy never above the true one; or nan."""
    entropy = level - inner - outer - 4e-15 * (1.0 + abs(level) + abs(inner) + abs(outer))
    return 0.0 if entropy < 0.0 else entropy


@helper(**KERNEL)
def edge_marginals(d, i, q, scratch):
    """Where μ of the edges of a sentence is, or will be: (at, array)."""
    if q.edge_mu.size > 0:
        return i * np.uint64(q.table.size), q.edge_mu
    return np.uint64(0), scratch.before


@helper(**KERNEL)
def take_edges(d, i, edge_delta, q):
    """v −= c δ of transitions, and the table anew; q.edge_v, q.table written."""
    z = zeros(8)
    step, high, low = spread(-d.rates[i], z), spread(d.threshold, z), spread(-d.threshold, z)
    for j in range(np.uint64(0), np.uint64(d.edge_keep.size), LANES):
        v = load(q.edge_v, j, z) + step * load(edge_delta, j, z) * load(d.edge_keep, j, z)
        store(q.edge_v, j, v)
        store(q.table, j, v - smaller(larger(v, low), high))


@helper(**KERNEL)
def difference(d, i, q, delta):
    """delta (T, width) = μ_i − y_i of nodes; written."""
    z, first, width, begin = zeros(8), d.starts[i], d.labels.width, d.begins[i]
    T = d.starts[i + ONE] - first
    for j in range(np.uint64(0), T * width, LANES):
        store(delta, j, load(q.mu, begin + j, z))
    for t in range(T):
        delta[t * width + d.y[first + t]] -= 1.0


@helper(**KERNEL)
def residual(d, i, q, delta):
    """The same, of kinds too; of the likeliest label minus the sum of the others, which keeps digits."""
    for t in range(d.starts[i + ONE] - d.starts[i]):
        at = t * d.labels.width
        _token_residual(d, q, d.starts[i] + t, d.begins[i] + at, delta, at)
    kind_residual(d, i, q.mu, delta)


@helper(**KERNEL)
def _token_residual(d, q, token, begin, delta, at):
    """Of one token, whose μ begins there; delta[at:at + width] written."""
    width, best, others = d.labels.width, np.uint64(0), 0.0
    for k in range(width):
        delta[at + k] = q.mu[begin + k]
        best = k if q.mu[begin + k] > q.mu[begin + best] else best
    delta[at + d.y[token]] -= 1.0
    for k in range(width):
        others += delta[at + k] if k != best else 0.0
    delta[at + best] = -others


@helper(**KERNEL)
def edge_residual(d, i, pairs, at, delta):
    """The same of transitions, (K, width), whose μ is pairs[at:]; written."""
    first = d.starts[i]
    for j in range(np.uint64(d.edge_keep.size)):
        delta[j] = pairs[at + j]
    for t in range(first + ONE, d.starts[i + ONE]):
        delta[d.y[t - ONE] * d.labels.width + d.y[t]] -= 1.0


@helper(**KERNEL)
def pull(d, i, c, delta, v):
    """v −= c A_iᵀ δ where there are weights; v written. Returns ‖A_iᵀδ‖² of them."""
    z, step, more = zeros(8), spread(-c, zeros(8)), pull_vectors(d, i, c, delta, v)
    squares = z
    for u in range(d.uses.starts[i], d.uses.starts[i + ONE]):
        begin, end, tile = d.uses.ends[u], d.uses.ends[u + ONE], np.uint64(d.uses.tiles[u])
        for k in range(np.uint64(0), d.tile, LANES):
            sums = z
            if d.uses.values.size == 0:
                sums = load(delta, np.uint64(d.uses.strips[begin]) * d.tile + k, z)
                for e in range(begin + ONE, end):
                    sums = sums + load(delta, np.uint64(d.uses.strips[e]) * d.tile + k, z)
            else:
                for e in range(begin, end):
                    x = spread(d.uses.values[e], z)
                    sums = sums + x * load(delta, np.uint64(d.uses.strips[e]) * d.tile + k, z)
            if d.masked:
                sums = kept(d.keep, tile, sums)
            store(v, tile * d.tile + k, load(v, tile * d.tile + k, z) + step * sums)
            squares = squares + sums * sums
            if d.implied:
                more += total(sums) ** 2
    return total(squares) + more


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
    """s = A_i w of nodes and kinds, attributes of one token by its residual μ − y, delta; s written."""
    vector_scores(d, i, q.v, s)
    if d.threshold == 0.0:
        _plain_scores(d, i, q, delta, s)
    else:
        _soft_scores(d, i, q, delta, s)
    kind_scores(d, i, q.v, s)


@helper(**KERNEL)
def _plain_scores(d, i, q, delta, s):
    """Where w = v."""
    z, first, width = zeros(8), d.starts[i], d.labels.width
    strips, strip = width // d.tile, d.begins[i] // d.tile
    for t in range(d.starts[i + ONE] - first):
        token, at = first + t, t * width
        own = -d.rates[i] * d.single[token]
        of_all = spread(own if not d.masked else 0.0, z)
        for b in range(strips):
            begin, end = d.indptr[strip], d.indptr[strip + ONE]
            strip += ONE
            even = begin + ((end - begin) & ~ONE) if d.values.size == 0 else begin
            for k in range(np.uint64(0), d.tile, LANES):
                to = at + b * d.tile + k
                p, q_ = of_all * load(delta, to, z), first_sum(d, s, to, z)
                for e in range(begin, even, np.uint64(2)):
                    p = p + load(q.v, np.uint64(d.tiles[e]) * d.tile + k, z)
                    q_ = q_ + load(q.v, np.uint64(d.tiles[e + ONE]) * d.tile + k, z)
                for e in range(even, end):
                    x = spread(1.0 if d.values.size == 0 else d.values[e], z)
                    p = p + x * load(q.v, np.uint64(d.tiles[e]) * d.tile + k, z)
                store(s, to, p + q_)
        if d.implied:
            s[at + d.tile] = -total(load(s, at, z))
        if d.masked:
            s[at + d.y[token]] += own * delta[at + d.y[token]] + d.single[token] * q.own[token]


@helper(**KERNEL)
def _soft_scores(d, i, q, delta, s):
    """Where w = soft(v, threshold)."""
    z, first, width = zeros(8), d.starts[i], d.labels.width
    strips, strip = width // d.tile, d.begins[i] // d.tile
    high, low, rate = spread(d.threshold, z), spread(-d.threshold, z), spread(-d.rates[i], z)
    for t in range(d.starts[i + ONE] - first):
        token, at = first + t, t * width
        count = spread(d.single[token] if not d.masked else 0.0, z)
        for b in range(strips):
            for k in range(np.uint64(0), d.tile, LANES):
                to = at + b * d.tile + k
                own = rate * load(delta, to, z)
                p = first_sum(d, s, to, z) + count * (own - smaller(larger(own, low), high))
                for e in range(d.indptr[strip], d.indptr[strip + ONE]):
                    v = load(q.v, np.uint64(d.tiles[e]) * d.tile + k, z)
                    x = spread(1.0 if d.values.size == 0 else d.values[e], z)
                    p = p + x * (v - smaller(larger(v, low), high))
                store(s, to, p)
            strip += ONE
        if d.masked:
            y = at + d.y[token]
            s[y] += d.single[token] * soft(q.own[token] - d.rates[i] * delta[y], d.threshold)


@njit(**KERNEL)
def squared_norm(d, q):
    """‖w‖², of attributes of one token by its residual y − μ."""
    zero, square = np.uint64(0), 0.0
    for j in range(np.uint64(q.v.size)):
        square += soft(q.v[j], d.threshold) ** 2
    if d.implied:
        for j in range(zero, np.uint64(q.v.size), LANES):
            square += total(load(q.v, j, zeros(8))) ** 2
    square += dot(q.table, zero, q.table, zero, np.uint64(q.table.size))
    for i in range(np.uint64(d.starts.size - 1)):
        for t in range(d.starts[i], d.starts[i + ONE]):
            if d.single[t] > 0.0:
                square += d.single[t] * _own_square(d, q, i, t)
    return square


@helper(**KERNEL)
def _own_square(d, q, i, t):
    """‖w‖² of an attribute, of value 1 or without an L1 term, that only token t of sentence i has."""
    at, y, square = d.begins[i] + (t - d.starts[i]) * d.labels.width, d.y[t], 0.0
    for k in range(d.labels.count):
        if not d.masked or k == y:
            v = q.own[t] + d.rates[i] * ((1.0 if k == y else 0.0) - q.mu[at + k])
            square += soft(v, d.threshold) ** 2
    return square
