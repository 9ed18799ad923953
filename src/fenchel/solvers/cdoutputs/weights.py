"""From flows to weights and to scores, in the layout of `eg/sentences.py`: A_i and A_iᵀ of a sentence.

Weights of attributes lie in tiles, of all labels or, with a mask, of eight of them; tokens then have a list
of tiles for each strip of eight labels, and what a tile has no weight for stays 0. An attribute that one
token alone has needs no tile: it adds m_i/λ x² (y_t − μ_t) to the scores of that token, with a mask to that
of its true label, the only one there is a weight for.
"""

from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel._lanes import load, spread, store, zeros
from fenchel._prefetch import prefetch
from fenchel.structures.lattice_lanes import KERNEL, LANES, ONE

ZERO = np.uint64(0)
HALF, LOWER = np.uint64(16), np.uint64(65535)  # a pair of labels is before · 2¹⁶ + here


class Weights(NamedTuple):
    """mu (N, width) marginals of labels; v (tiles, tile) and edges (K, width) weights. All flat."""

    mu: np.ndarray
    v: np.ndarray
    edges: np.ndarray  # −∞ where a pair cannot be
    cost: np.ndarray  # (N,) of a wrong label
    moves: bool  # whether transitions have weights
    work: np.ndarray  # like v, zero between kernels; empty without a mask


def new_weights(d, examples, moves: bool, tiles: int) -> Weights:
    """No weights."""
    K, width = int(d.labels.count), int(d.labels.width)
    edges = np.zeros((K, width))
    edges[:, :K][~d.labels.allowed.reshape(K, width)[:, :K].astype(bool)] = -np.inf
    mu, v = np.zeros(examples.y.size * width), np.zeros(tiles * int(d.tile))
    return Weights(mu, v, edges.ravel(), examples.cost, moves, np.zeros(v.size if d.masked else 0))


@helper(**KERNEL)
def place_of(pair, width):
    """Where the weight of a pair of labels is in a table of transitions."""
    return (pair >> HALF) * width + (pair & LOWER)


@helper(**KERNEL)
def score(d, q, i, low, high, s):
    """s = A_i w + cost for the tokens low ≤ t ≤ high; written."""
    z, first, width, c = zeros(8), d.starts[i], d.labels.width, d.rates[i]
    strips = width // d.tile
    for t in range(low, high + ONE):
        token, at = first + t, t * width
        own, price = spread(0.0 if d.masked else -c * d.single[token], z), spread(q.cost[token], z)
        for b in range(strips):
            begin, end = d.indptr[token * strips + b], d.indptr[token * strips + b + ONE]
            even = begin + ((end - begin) & ~ONE) if d.values.size == 0 else begin
            for k in range(ZERO, d.tile, LANES):
                place = b * d.tile + k
                p, more = price + own * load(q.mu, token * width + place, z), z
                for e in range(begin, even, np.uint64(2)):
                    p = p + load(q.v, np.uint64(d.tiles[e]) * d.tile + k, z)
                    more = more + load(q.v, np.uint64(d.tiles[e + ONE]) * d.tile + k, z)
                for e in range(even, end):
                    x = spread(1.0 if d.values.size == 0 else d.values[e], z)
                    p = p + x * load(q.v, np.uint64(d.tiles[e]) * d.tile + k, z)
                store(s, at + place, p + more)
        left = 1.0 - q.mu[token * width + d.y[token]] if d.masked else 1.0
        s[at + d.y[token]] += c * d.single[token] * left - q.cost[token]


@helper(**KERNEL)
def add_token(d, token, label, step, v):
    """v += step · x for the weights that the attributes of a token have for a label; v written."""
    strips, lane = d.labels.width // d.tile, label % d.tile
    strip = token * strips + label // d.tile
    for e in range(d.indptr[strip], d.indptr[strip + ONE]):
        tile = np.uint64(d.tiles[e])
        if not d.masked or (np.uint64(d.keep[tile]) >> lane) & ONE:
            v[tile * d.tile + lane] += step if d.values.size == 0 else step * d.values[e]


@helper(**KERNEL)
def take_squares(d, token, label, work):
    """Σ of squares of the weights that the attributes of a token have for a label; they are 0 then."""
    strips, lane, total = d.labels.width // d.tile, label % d.tile, 0.0
    strip = token * strips + label // d.tile
    for e in range(d.indptr[strip], d.indptr[strip + ONE]):
        at = np.uint64(d.tiles[e]) * d.tile + lane
        total += work[at] * work[at]
        work[at] = 0.0
    return total


@helper(**KERNEL)
def square_by_weights(d, q, i, low, high, best, worst):
    """‖A_iᵀ(best − worst)‖² of the attributes of low … high, where the paths differ."""
    first, total = d.starts[i], 0.0
    for t in range(low, high + ONE):
        add_token(d, first + t, best[t], 1.0, q.work)
        add_token(d, first + t, worst[t], -1.0, q.work)
        y = d.y[first + t]
        total += d.single[first + t] * ((best[t] == y) + (worst[t] == y))
    for t in range(low, high + ONE):
        total += take_squares(d, first + t, best[t], q.work)
        total += take_squares(d, first + t, worst[t], q.work)
    return total


@helper(**KERNEL)
def write_weights(d, q, i, low, high, moved):
    """Take what was moved over to μ and w; q.mu, q.v written, moved zero again."""
    width, first = d.labels.width, d.starts[i]
    for t in range(low, high + ONE):
        for k in range(d.labels.count):
            delta = moved[t * width + k]
            if delta != 0.0:
                moved[t * width + k] = 0.0
                q.mu[(first + t) * width + k] += delta
                add_token(d, first + t, k, -d.rates[i] * delta, q.v)


@helper(**KERNEL)
def fetch(d, flow, q, i, ask):
    """Ask for the tiles of the tokens of sentence i that will be visited, before they are needed."""
    strips = d.labels.width // d.tile
    for token in range(d.starts[i], d.starts[i + ONE]):
        if ask or flow.used[token] > ONE:
            for e in range(d.indptr[token * strips], d.indptr[(token + ONE) * strips]):
                for k in range(ZERO, d.tile, LANES):
                    prefetch(q.v, np.uint64(d.tiles[e]) * d.tile + k)


# ---- all sentences


@njit(**KERNEL)
def weigh(d, flow, q):
    """μ of labels, and v += Σ m_i/λ A_iᵀ(y_i − μ_i); q.mu, q.v, q.edges written."""
    width = d.labels.width
    for i in range(np.uint64(d.starts.size - 1)):
        for t in range(d.starts[i], d.starts[i + ONE]):
            for e in range(flow.begin[t], flow.begin[t] + flow.used[t]):
                pair = np.uint64(flow.pairs[e])
                q.mu[t * width + (pair & LOWER)] += flow.mass[e]
                if t > d.starts[i]:
                    at = place_of(pair, width)
                    q.edges[at] -= d.rates[i] * flow.mass[e] * d.edge_keep[at]
            if t > d.starts[i]:
                at = d.y[t - ONE] * width + d.y[t]
                q.edges[at] += d.rates[i] * d.edge_keep[at]
            for k in range(d.labels.count):
                delta = (1.0 if k == d.y[t] else 0.0) - q.mu[t * width + k]
                if delta != 0.0:
                    add_token(d, t, k, d.rates[i] * delta, q.v)


@njit(**KERNEL)
def cost_and_square(d, q, mass):
    """Σ m_i ⟨cost_i, μ_i⟩, and ‖w‖² of attributes."""
    width, cost, square = d.labels.width, 0.0, 0.0
    for j in range(np.uint64(q.v.size)):
        square += q.v[j] * q.v[j]
    for i in range(np.uint64(d.starts.size - 1)):
        for t in range(d.starts[i], d.starts[i + ONE]):
            cost += mass[i] * q.cost[t] * (1.0 - q.mu[t * width + d.y[t]])
            if d.single[t] > 0.0:
                for k in range(d.labels.count):
                    if not d.masked or k == d.y[t]:
                        delta = d.rates[i] * ((1.0 if k == d.y[t] else 0.0) - q.mu[t * width + k])
                        square += d.single[t] * delta * delta
    return cost, square


def own_weights(d, origin, q, problem) -> np.ndarray:
    """w as the problem lays it out."""
    K, width, labels = int(d.labels.count), int(d.labels.width), origin.labels
    w = np.zeros(problem.dim)
    table = w[: problem.examples.rows.n_columns * K].reshape(-1, K)
    tiles, mu = q.v.reshape(-1, int(d.tile))[origin.tiles], q.mu.reshape(-1, width)[origin.tokens, :K]
    rates = d.rates[np.searchsorted(d.starts, origin.tokens, side="right") - 1] * origin.values
    each, true = np.arange(origin.tokens.size), d.y[origin.tokens]
    if d.masked:
        places = origin.places[:, None].astype(np.int64) + np.arange(tiles.shape[1])
        there = places < K
        columns = np.broadcast_to(origin.columns[:, None], places.shape)[there]
        table[columns, labels[places[there]]] = tiles[there]
        table[origin.own, labels[true]] = rates * (1.0 - mu[each, true])
    else:
        table[origin.columns] = tiles[:, :K]
        mu[each, true] -= 1.0
        table[origin.own] = -rates[:, None] * mu
    if q.moves:
        edges = q.edges.reshape(K, width)[:, :K]
        w[-K * K :].reshape(K, K)[np.ix_(labels, labels)] = np.where(np.isfinite(edges), edges, 0.0)
    return w
