"""Forward-backward where the edges of a sequence are of several kinds, each with a table of its own.

Edges with the same attributes have the same scores: they are of one kind, and a sequence has as many tables
as kinds, not as edges. A kind adds to the table that all edges share (K, width) where it has weights, and is
cut into strips of `tile` numbers: of all weights it has K · width/tile of them, of observed ones a few. The
padded lattice is then x = [nodes (T, width) | strips of the first kind, of the second, …], and the table of
edges; marginals are laid out in the same way, those of a kind summed over its edges.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from fenchel._cache import external, helper
from fenchel._lanes import exp_lanes, larger, largest, least, load, smaller, spread, store, total, zeros
from fenchel._packed import bare, packed, type_of
from fenchel.structures import lattice
from fenchel.structures.lattice_lanes import (
    KERNEL,
    LANES,
    NUMBERS,
    OF_LABELS,
    OF_ROOM,
    ONE,
    fill_table,
    forward,
    is_sound,
)


@packed
class Kinds(NamedTuple):
    """The kinds of edges of each sequence; those of sequence i are starts[i] … starts[i + 1] − 1."""

    starts: np.ndarray  # (n + 1,) uint64
    ends: np.ndarray  # (kinds + 1,) uint64, into edges
    edges: np.ndarray  # uint64, the edges of each kind, by the token within the sequence that they lead into
    strips: np.ndarray  # (kinds + 1,) uint64, into places
    places: np.ndarray  # (strips,) uint64, where in a table each strip stands
    truth: np.ndarray  # (N,) uint64, where in its sequence's x the true pair of labels is, or NOWHERE
    tile: np.uint64  # numbers of a strip


NOWHERE = np.uint64(2**64 - 1)
_NO, _WHOLE = np.zeros(0, np.uint64), np.uint64(1)
OF_KINDS = type_of(Kinds(_NO, _NO, _NO, _NO, _NO, _NO, _WHOLE))


@external(
    types.float64(types.uint64, OF_LABELS, OF_KINDS, types.uint64, *[NUMBERS] * 2, OF_ROOM, *[NUMBERS] * 2)
)
def _marginals(T, labels, kinds, i, x, edges, room, mu, pairs):
    return marginals(T, labels, kinds, i, bare(x), bare(edges), room, bare(mu), bare(pairs))


@helper(**KERNEL)
def marginals_by_kind(T, labels, kinds, i, x, edges, room, mu, pairs):
    """`marginals` of packed arrays, compiled once for all kernels."""
    return _marginals(T, labels, kinds, i, x.data, edges.data, room, mu.data, pairs.data)


@helper(**KERNEL)
def marginals(T, labels, kinds, i, x, edges, room, mu, pairs):
    """Marginals of sequence i at the scores x and edges (K, width); mu, and pairs of all kinds, written.

    Returns log Z, or nan where scaled probabilities lose their digits.
    """
    K, width = labels.count, labels.width
    top, lowest_edge = fill_table(labels, edges, room.table, room.turned)
    low, high = _fill_tables(T, labels, kinds, i, x, edges, top, room)
    level, lowest = forward(T, K, width, labels.mask, x, room)
    if lowest + min(low, lowest_edge) - high >= -lattice.SPAN:
        _backward(T, K, width, room, mu)
        _sum_pairs(T, K, width, kinds, i, room, mu, pairs)
        if is_sound(T, width, room.sums, mu):
            return level + top * (float(T) - 1.0)
    return np.nan


@helper(**KERNEL)
def _fill_tables(T, labels, kinds, i, x, edges, top, room):
    """e^(edges + strips − top) of each kind, zeros for its marginals, and which edge has which; room written.

    Returns the least and the largest of the exponents, at most and at least 0.
    """
    z, size = zeros(8), labels.count * labels.width
    low, high = z, z
    from_x, table = T * labels.width, size
    for g in range(kinds.starts[i], kinds.starts[i + ONE]):
        for j in range(np.uint64(0), size, LANES):
            store(room.table, table + j, load(room.table, j, z))
            store(room.turned, table + j, z)
        for e in range(kinds.strips[g], kinds.strips[g + ONE]):
            at = kinds.places[e]
            for k in range(np.uint64(0), kinds.tile, LANES):
                allowed = load(labels.allowed, at + k, z)
                score = load(edges, at + k, z) + load(x, from_x + k, z) - spread(top, z)
                score = score * allowed
                low = smaller(low, score)
                high = larger(high, score)
                store(room.table, table + at + k, exp_lanes(score) * allowed)
            from_x += kinds.tile
        for e in range(kinds.ends[g], kinds.ends[g + ONE]):
            room.places[kinds.edges[e]] = table
        table += size
    return least(low), largest(high)


@helper(**KERNEL)
def _backward(T, K, width, room, mu):
    """Marginals of nodes, and, where the transposes of tables would be, of edges summed by kind.

    A table is read once for both: what it gives gamma, row by row, sums to beta. mu, room written.
    """
    z, at = zeros(8), (T - ONE) * width
    share = spread(1.0 / room.sums[T - ONE], z)
    for k in range(np.uint64(0), width, LANES):
        store(mu, at + k, load(room.alpha, at + k, z))
        store(room.gamma, at + k, load(room.nodes, at + k, z) * share)
    for back in range(ONE, T):
        after, at, table = at, at - width, room.places[T - back]
        for a in range(K):
            row, before, sums = table + a * width, spread(room.alpha[at + a], z), z
            for k in range(np.uint64(0), width, LANES):
                here = load(room.table, row + k, z) * load(room.gamma, after + k, z)
                store(room.turned, row + k, load(room.turned, row + k, z) + before * here)
                sums = sums + here
            mu[at + a] = total(sums)
        share = spread(1.0 / room.sums[T - ONE - back], z)
        for k in range(np.uint64(0), width, LANES):
            beta = load(mu, at + k, z)
            store(room.gamma, at + k, beta * load(room.nodes, at + k, z) * share)
            store(mu, at + k, beta * load(room.alpha, at + k, z))


@helper(**KERNEL)
def _sum_pairs(T, K, width, kinds, i, room, mu, pairs):
    """Marginals of edges: the strips of each kind, behind the nodes of mu, and pairs, all kinds; written."""
    z, size, to = zeros(8), K * width, T * width
    table = size
    last = size * (ONE + kinds.starts[i + ONE] - kinds.starts[i])
    for j in range(np.uint64(0), size, LANES):
        sums = z
        for of_kind in range(size, last, size):
            sums = sums + load(room.turned, of_kind + j, z)
        store(pairs, j, sums)
    for g in range(kinds.starts[i], kinds.starts[i + ONE]):
        for e in range(kinds.strips[g], kinds.strips[g + ONE]):
            for k in range(np.uint64(0), kinds.tile, LANES):
                store(mu, to + k, load(room.turned, table + kinds.places[e] + k, z))
            to += kinds.tile
        table += size
