"""Edges of a sentence, of one kind or of several: what differs between them, in the layout of `sentences.py`.

Kernels are picked by the type of d.kinds, so that sentences without attributes of edges compile nothing of
them. Of one kind there is nothing but the table of transitions.
"""

from functools import partial

import numpy as np

from fenchel._cache import helper, njit
from fenchel._dispatch import kernel_by_type
from fenchel._lanes import larger, load, smaller, spread, store, zeros
from fenchel.solvers.eg.kinds import OneKind
from fenchel.structures.lattice_kinds import NOWHERE, Kinds, marginals_by_kind
from fenchel.structures.lattice_lanes import KERNEL, LANES, ONE, marginals_apart

by_kinds = partial(kernel_by_type, field="kinds")


@by_kinds
def marginals_of(d, i, x, edges, room, mu, pairs):
    """Marginals of sentence i at the scores x and edges (K, width); mu, pairs written. Gives log Z or nan."""


@by_kinds
def kind_scores(d, i, v, s):
    """The scores of kinds, behind those of nodes; s written."""


@by_kinds
def kind_residual(d, i, mu, delta):
    """μ_i − y_i of kinds, behind that of nodes; delta written."""


@by_kinds
def true_pairs(d, i, x):
    """⟨x, y_i⟩ of kinds."""


@by_kinds
def fill_edges(d, i, origin, theta, at, nodes, edges, to):
    """From edges of sentence i as the problem lays them out, theta[at:], to the table edges[to:] and kinds.

    nodes, edges written.
    """


@by_kinds
def collect_edges(d, i, origin, nodes, edges, to, theta, at):
    """The inverse of `fill_edges`; theta written."""


# ---- one kind


@marginals_of.implement(OneKind)
def _marginals(d, i, x, edges, room, mu, pairs):
    return marginals_apart(d.starts[i + ONE] - d.starts[i], d.labels, x, edges, room, mu, pairs)


@kind_scores.implement(OneKind)
def _no_scores(d, i, v, s):
    pass


@kind_residual.implement(OneKind)
def _no_residual(d, i, mu, delta):
    pass


@true_pairs.implement(OneKind)
def _nothing(d, i, x):
    return 0.0


@fill_edges.implement(OneKind)
def _fill(d, i, origin, theta, at, nodes, edges, to):
    return fill_table(d, origin, theta, at, edges, to)


@collect_edges.implement(OneKind)
def _collect(d, i, origin, nodes, edges, to, theta, at):
    return collect_table(d, origin, edges, to, theta, at)


@njit(cache=True, nogil=True)
def fill_table(d, origin, theta, at, edges, to):
    K, width = d.labels.count, d.labels.width
    for a in range(K):
        for b in range(K):
            edges[to + a * width + b] = theta[at + origin.labels[a] * K + origin.labels[b]]


@njit(cache=True, nogil=True)
def collect_table(d, origin, edges, to, theta, at):
    """The inverse; theta written."""
    K, width = d.labels.count, d.labels.width
    for a in range(K):
        for b in range(K):
            theta[at + origin.labels[a] * K + origin.labels[b]] = edges[to + a * width + b]


# ---- several


@marginals_of.implement(Kinds)
def _marginals_by_kind(d, i, x, edges, room, mu, pairs):
    T = d.starts[i + ONE] - d.starts[i]
    return marginals_by_kind(T, d.labels, d.kinds, i, x, edges, room, mu, pairs)


@kind_scores.implement(Kinds)
def _kind_scores(d, i, v, s):
    return sum_tiles(d, i, v, s)


@helper(**KERNEL)
def sum_tiles(d, i, v, s):
    z, at = zeros(8), (d.starts[i + ONE] - d.starts[i]) * d.labels.width
    high, low = spread(d.threshold, z), spread(-d.threshold, z)
    for strip in range((d.begins[i] + at) // d.tile, d.begins[i + ONE] // d.tile):
        for k in range(np.uint64(0), d.tile, LANES):
            sums = z
            for e in range(d.indptr[strip], d.indptr[strip + ONE]):
                here = load(v, np.uint64(d.tiles[e]) * d.tile + k, z)
                if d.threshold > 0.0:
                    here = here - smaller(larger(here, low), high)
                if d.values.size > 0:
                    here = here * spread(d.values[e], z)
                sums = sums + here
            store(s, at + k, sums)
        at += d.tile


@kind_residual.implement(Kinds)
def _kind_residual(d, i, mu, delta):
    for j in range((d.starts[i + ONE] - d.starts[i]) * d.labels.width, d.begins[i + ONE] - d.begins[i]):
        delta[j] = mu[d.begins[i] + j]
    for t in range(d.starts[i] + ONE, d.starts[i + ONE]):
        if d.kinds.truth[t] != NOWHERE:
            delta[d.kinds.truth[t]] -= 1.0


@true_pairs.implement(Kinds)
def _true_pairs(d, i, x):
    score = 0.0
    for t in range(d.starts[i] + ONE, d.starts[i + ONE]):
        if d.kinds.truth[t] != NOWHERE:
            score += x[d.kinds.truth[t]]
    return score


@fill_edges.implement(Kinds)
def _fill_by_kind(d, i, origin, theta, at, nodes, edges, to):
    return fill_kinds(d, i, origin, theta, at, nodes, edges, to)


@collect_edges.implement(Kinds)
def _collect_by_kind(d, i, origin, nodes, edges, to, theta, at):
    return collect_kinds(d, i, origin, nodes, edges, to, theta, at)


@njit(cache=True, nogil=True)
def fill_kinds(d, i, origin, theta, at, nodes, edges, to):
    """The table that kinds share: an entry as an edge has it whose kind adds nothing there, else 0."""
    K, width, size = d.labels.count, d.labels.width, np.uint64(d.edge_keep.size)
    table, added = np.zeros(np.int64(size)), np.zeros(np.int64(size), np.uint8)
    for j in range(size):
        edges[to + j] = 0.0
    for g in range(d.kinds.starts[i], d.kinds.starts[i + ONE]):
        fill_table(d, origin, theta, at + (d.kinds.edges[d.kinds.ends[g]] - ONE) * K * K, table, np.uint64(0))
        for j in range(size):
            added[j] = 0
        for e in range(d.kinds.strips[g], d.kinds.strips[g + ONE]):
            for k in range(d.kinds.tile):
                added[d.kinds.places[e] + k] = 1
        for j in range(size):
            if added[j] == 0:
                edges[to + j] = table[j]
    here = d.begins[i] + (d.starts[i + ONE] - d.starts[i]) * width
    for g in range(d.kinds.starts[i], d.kinds.starts[i + ONE]):
        fill_table(d, origin, theta, at + (d.kinds.edges[d.kinds.ends[g]] - ONE) * K * K, table, np.uint64(0))
        for e in range(d.kinds.strips[g], d.kinds.strips[g + ONE]):
            for k in range(d.kinds.tile):
                place = d.kinds.places[e] + k
                nodes[here + k] = table[place] - edges[to + place]
            here += d.kinds.tile


@njit(cache=True, nogil=True)
def collect_kinds(d, i, origin, nodes, edges, to, theta, at):
    """Each edge gets the shared table and what its kind adds; theta written."""
    K, size = d.labels.count, np.uint64(d.edge_keep.size)
    table, here = np.zeros(np.int64(size)), d.begins[i] + (d.starts[i + ONE] - d.starts[i]) * d.labels.width
    for g in range(d.kinds.starts[i], d.kinds.starts[i + ONE]):
        for j in range(size):
            table[j] = edges[to + j]
        for e in range(d.kinds.strips[g], d.kinds.strips[g + ONE]):
            for k in range(d.kinds.tile):
                table[d.kinds.places[e] + k] += nodes[here + k]
            here += d.kinds.tile
        for e in range(d.kinds.ends[g], d.kinds.ends[g + ONE]):
            collect_table(d, origin, table, np.uint64(0), theta, at + (d.kinds.edges[e] - ONE) * K * K)
