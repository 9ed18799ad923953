"""Sequences: tables of scores of nodes and edges.

w = [W (A, K) | V (B, K, K) | T (K, K)]; V and T may be empty. Sums over the tokens of a sequence that must be
squared (‖A_iᵀδ‖²) are gathered by its distinct columns first, in a buffer that stays in the cache. Of a dense
table these are all columns, and nothing is listed.
"""

from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel._math import REORDER, soft
from fenchel._sparse import Rows, Table, column, row_begin, row_end
from fenchel.structures import base
from fenchel.structures.layouts.distinct import (
    AllColumns,
    Distinct,
    distinct_column,
    distinct_count,
    place_of,
)


class LatticeTables(NamedTuple):
    """n sequences of N tokens, K labels: nodes (T, K), then tables of edges (K, K), one or T − 1 of them."""

    rows: Rows | Table  # (N, A) attributes of the tokens
    edges: Rows  # (N, B) attributes of the transition into each token
    starts: np.ndarray  # (n + 1,) uint64 tokens of each sequence
    offsets: np.ndarray  # (n + 1,) uint64 where the block of each sequence begins
    distinct: Distinct | AllColumns  # of rows
    distinct_edges: Distinct  # of edges
    mask: np.ndarray  # (d,) uint8, 0 where a weight stays 0; empty: none does
    labels: int  # K
    stride: int  # K² where each edge has its own table, else 0
    tables: int  # 1 with a table of transitions, else 0
    n_weights: int  # A·K + B·K² + tables·K²


@njit(cache=True, nogil=True)
def tokens(layout, i):
    """How many tokens sequence i has."""
    return np.int64(layout.starts[i + 1] - layout.starts[i])


# ---- weights to scores and back


@njit(cache=True, nogil=True)
def parts_of(layout):
    """Where V and T begin in w."""
    K = np.uint64(layout.labels)
    V = np.uint64(layout.rows.n_columns) * K
    return V, V + np.uint64(layout.edges.n_columns) * K * K


@base.block_scores.implement(LatticeTables)
def _scores(blocks, i, v, s):
    return scores(blocks.layout, i, v, blocks.threshold, s)


@njit(cache=True, nogil=True, fastmath=REORDER)
def scores(layout, i, v, threshold, s):
    """s = scores of nodes and edges at the weights soft(v, threshold); written."""
    K, T = np.uint64(layout.labels), np.uint64(tokens(layout, i))
    for j in range(T * K):
        s[j] = 0.0
    for t in range(T):
        gather(layout.rows, layout.starts[i] + t, K, v, np.uint64(0), threshold, s, t * K)
    edge_scores(layout, i, v, threshold, s)


@njit(cache=True, nogil=True, fastmath=REORDER)
def edge_scores(layout, i, v, threshold, s):
    """The part of `scores` that is of edges: s, from its nodes on, written."""
    K, T = np.uint64(layout.labels), np.uint64(tokens(layout, i))
    V, table = parts_of(layout)
    pairs, nodes = K * K, T * K
    for t in range(tables_of(layout, T)):
        for j in range(pairs):
            s[nodes + t * pairs + j] = soft(v[table + j], threshold) if layout.tables > 0 else 0.0
    if layout.edges.n_columns > 0:
        for t in range(np.uint64(1), T):
            at = nodes + (t - np.uint64(1)) * pairs
            gather(layout.edges, layout.starts[i] + t, pairs, v, V, threshold, s, at)


@helper(cache=True, nogil=True)
def tables_of(layout, T):
    """How many tables of edges a sequence of T tokens has."""
    return T - np.uint64(1) if layout.stride > 0 else np.uint64(1)


@njit(cache=True, nogil=True, fastmath=REORDER)
def gather(rows, r, width, v, begin, threshold, s, at):
    """s[at:at + width] += Σ_e x_e · soft(v)[begin + column·width:][:width] over entries of row r; written."""
    for e in range(row_begin(rows, r), row_end(rows, r)):
        x, j = rows.data[e], begin + column(rows, r, e) * width
        if threshold == 0.0:
            for k in range(width):
                s[at + k] += x * v[j + k]
        else:
            for k in range(width):
                s[at + k] += x * soft(v[j + k], threshold)


@base.block_add.implement(LatticeTables)
def _add(blocks, i, step, delta, v):
    return add(blocks.layout, i, step, delta, v)


@njit(cache=True, nogil=True, fastmath=REORDER)
def add(layout, i, step, delta, v):
    """v += step · A_iᵀ delta, where there are weights; v written."""
    K, T = np.uint64(layout.labels), np.uint64(tokens(layout, i))
    for t in range(T):
        scatter(layout.rows, layout.starts[i] + t, K, step, delta, t * K, layout.mask, v, np.uint64(0))
    add_edges(layout, i, step, delta, v)


@njit(cache=True, nogil=True, fastmath=REORDER)
def add_edges(layout, i, step, delta, v):
    """The part of `add` that is of edges; v written."""
    K, T = np.uint64(layout.labels), np.uint64(tokens(layout, i))
    V, table = parts_of(layout)
    pairs, nodes = K * K, T * K
    if layout.tables > 0:
        for t in range(tables_of(layout, T)):
            add_masked(pairs, step, delta, nodes + t * pairs, layout.mask, v, table)
    if layout.edges.n_columns > 0:
        for t in range(np.uint64(1), T):
            at = nodes + (t - np.uint64(1)) * pairs
            scatter(layout.edges, layout.starts[i] + t, pairs, step, delta, at, layout.mask, v, V)


@helper(cache=True, nogil=True, fastmath=REORDER)
def scatter(rows, r, width, step, delta, at, mask, v, begin):
    """The transpose of `gather`; v written."""
    for e in range(row_begin(rows, r), row_end(rows, r)):
        j = begin + column(rows, r, e) * width
        add_masked(width, step * rows.data[e], delta, at, mask, v, j)


@helper(cache=True, nogil=True, fastmath=REORDER, forceinline=True)
def add_masked(width, x, delta, at, mask, v, j):
    """v[j:j + width] += x · delta[at:at + width] where the mask allows; v written."""
    if mask.size == 0:
        for k in range(width):
            v[j + k] += x * delta[at + k]
    else:
        for k in range(width):
            v[j + k] += x * delta[at + k] * mask[j + k]


# ---- sums over a sequence, by distinct columns


@njit(cache=True, nogil=True, fastmath=REORDER)
def collect(rows, distinct, i, first, count, width, delta, at, buffer):
    """buffer (distinct columns, width) = Σ_t x_t δ_t over `count` rows from `first`; written."""
    for j in range(distinct_count(distinct, i) * width):
        buffer[j] = 0.0
    for t in range(count):
        here, r = at + t * width, first + t
        for e in range(row_begin(rows, r), row_end(rows, r)):
            x, j = rows.data[e], place_of(distinct, e, column(rows, r, e)) * width
            for k in range(width):
                buffer[j + k] += x * delta[here + k]


@helper(cache=True, nogil=True, fastmath=REORDER)
def keep_masked(distinct, i, width, begin, mask, buffer):
    """Zero in the buffer what has no weight, and return the sum of the squares of the rest; written."""
    total = 0.0
    for c in range(distinct_count(distinct, i)):
        at, j = c * width, begin + distinct_column(distinct, i, c) * width
        for k in range(width):
            if mask.size > 0:
                buffer[at + k] *= mask[j + k]
            total += buffer[at + k] * buffer[at + k]
    return total


@helper(cache=True, nogil=True, fastmath=REORDER)
def sum_tables(layout, T, delta, table):
    """table (K, K) = Σ of the tables of edges of delta, where there are weights; written."""
    K = np.uint64(layout.labels)
    pairs, total = K * K, 0.0
    begin = parts_of(layout)[1]
    for j in range(pairs):
        table[j] = 0.0
    for t in range(tables_of(layout, T)):
        for j in range(pairs):
            table[j] += delta[T * K + t * pairs + j]
    for j in range(pairs):
        table[j] *= layout.tables if layout.mask.size == 0 or layout.tables == 0 else layout.mask[begin + j]
        total += table[j] * table[j]
    return total


@helper(cache=True, nogil=True)
def new_buffer(distinct, i, width):
    return np.empty(np.int64(distinct_count(distinct, i) * width))


@base.block_squared_norm.implement(LatticeTables)
def _squared_norm(blocks, i, delta):
    return squared_norm(blocks.layout, i, delta)


@njit(cache=True, nogil=True)
def squared_norm(layout, i, delta):
    """‖A_iᵀ delta‖²."""
    K, T, first = np.uint64(layout.labels), np.uint64(tokens(layout, i)), layout.starts[i]
    buffer, table = new_buffer(layout.distinct, i, K), np.empty(K * K)
    collect(layout.rows, layout.distinct, i, first, T, K, delta, np.uint64(0), buffer)
    total = keep_masked(layout.distinct, i, K, np.uint64(0), layout.mask, buffer)
    total += sum_tables(layout, T, delta, table)
    if layout.edges.n_columns > 0:
        V, one = parts_of(layout)[0], np.uint64(1)
        edges = new_buffer(layout.distinct_edges, i, K * K)
        collect(layout.edges, layout.distinct_edges, i, first + one, T - one, K * K, delta, T * K, edges)
        total += keep_masked(layout.distinct_edges, i, K * K, V, layout.mask, edges)
    return total


@base.block_move.implement(LatticeTables)
def _move(blocks, i, step, delta, s, moved):
    return move(blocks.layout, i, step, delta, s, moved)


@njit(cache=True, nogil=True)
def move(layout, i, step, delta, s, moved):
    """moved = s + step · A_i A_iᵀ delta; written."""
    K, T, first = np.uint64(layout.labels), np.uint64(tokens(layout, i)), layout.starts[i]
    buffer, table = new_buffer(layout.distinct, i, K), np.empty(K * K)
    for j in range(layout.offsets[i + 1] - layout.offsets[i]):
        moved[j] = s[j]
    collect(layout.rows, layout.distinct, i, first, T, K, delta, np.uint64(0), buffer)
    keep_masked(layout.distinct, i, K, np.uint64(0), layout.mask, buffer)
    spread(layout.rows, layout.distinct, first, T, K, step, buffer, moved, np.uint64(0))
    sum_tables(layout, T, delta, table)
    for t in range(tables_of(layout, T)):
        for j in range(K * K):
            moved[T * K + t * K * K + j] += step * table[j]
    if layout.edges.n_columns > 0:
        V, one = parts_of(layout)[0], np.uint64(1)
        edges = new_buffer(layout.distinct_edges, i, K * K)
        collect(layout.edges, layout.distinct_edges, i, first + one, T - one, K * K, delta, T * K, edges)
        keep_masked(layout.distinct_edges, i, K * K, V, layout.mask, edges)
        spread(layout.edges, layout.distinct_edges, first + one, T - one, K * K, step, edges, moved, T * K)


@njit(cache=True, nogil=True, fastmath=REORDER)
def spread(rows, distinct, first, count, width, step, buffer, s, at):
    """s_t += step · x_t · buffer for `count` rows from `first`: the buffer as weights; s written."""
    for t in range(count):
        here, r = at + t * width, first + t
        for e in range(row_begin(rows, r), row_end(rows, r)):
            x, j = step * rows.data[e], place_of(distinct, e, column(rows, r, e)) * width
            for k in range(width):
                s[here + k] += x * buffer[j + k]


@base.block_catch_up.implement(LatticeTables)
def _catch_up(blocks, i, now, drift, g, seen, v):
    return catch_up(blocks.layout, i, now, drift, g, seen, v)


@njit(cache=True, nogil=True)
def catch_up(layout, i, now, drift, g, seen, v):
    """Pay the postponed updates of the weights of sequence i; v, seen written."""
    K = np.uint64(layout.labels)
    V, table = parts_of(layout)
    for c in range(distinct_count(layout.distinct, i)):
        j = distinct_column(layout.distinct, i, c) * K
        pay(j, j + K, now, drift, g, seen, v)
    for c in range(distinct_count(layout.distinct_edges, i)):
        j = V + distinct_column(layout.distinct_edges, i, c) * K * K
        pay(j, j + K * K, now, drift, g, seen, v)
    pay(table, np.uint64(layout.n_weights), now, drift, g, seen, v)


@helper(cache=True, nogil=True)
def pay(start, stop, now, drift, g, seen, v):
    for j in range(start, stop):
        v[j] -= g[j] * (drift[now] - drift[seen[j]])
        seen[j] = now


# ---- the radius


@base.block_radius.implement(LatticeTables)
def _radius(blocks, i):
    here = np.empty(blocks.size)
    base.block_target(blocks, i, here)
    return radius(blocks.layout, i, here)


@njit(cache=True, nogil=True)
def radius(layout, i, here):
    """R_i ≥ max over ỹ of ‖F(x, ỹ) − F(x, y)‖², lepriol2018 Appendix C.

    ‖F(x, ỹ)‖ is largest where all labels are one, if F ≥ 0. If y lacks a label that one can be it, and
    nothing of F(x, y) cancels: ‖F(x, y)‖² + max ‖F(x, ỹ)‖². Else (the sum of the norms)². here: y.
    """
    K, T = layout.labels, tokens(layout, i)
    if K == 1:
        return 0.0
    used = np.zeros(K, np.uint8)
    for j in range(T * K):
        used[j % K] |= here[j] > 0.0
    true, constant = squared_norm(layout, i, here), largest_norm(layout, i)
    absent = False
    for k in range(K):
        absent = absent or used[k] == 0
    if absent and not has_negatives(layout, i):
        return true + constant
    return true + constant + 2.0 * np.sqrt(true * constant)


@helper(cache=True, nogil=True)
def largest_norm(layout, i):
    """‖Σ_t |x_t|‖² + (T − 1)² + ‖Σ_t |z_t|‖²: no output has features of a larger norm."""
    T = tokens(layout, i)
    total = column_sums(layout.rows, layout.distinct, i, layout.starts[i], layout.starts[i + 1])
    total += column_sums(layout.edges, layout.distinct_edges, i, layout.starts[i], layout.starts[i + 1])
    return total + layout.tables * float(T - 1) ** 2


@helper(cache=True, nogil=True)
def column_sums(rows, distinct, i, first, last):
    """Σ over columns of (Σ over rows of |x|)²."""
    sums, total = np.zeros(np.int64(distinct_count(distinct, i))), 0.0
    for r in range(first, last):
        for e in range(row_begin(rows, r), row_end(rows, r)):
            sums[place_of(distinct, e, column(rows, r, e))] += abs(rows.data[e])
    for c in range(sums.size):
        total += sums[c] * sums[c]
    return total


@helper(cache=True, nogil=True)
def has_negatives(layout, i):
    first, last = layout.starts[i], layout.starts[i + 1]
    for e in range(row_begin(layout.rows, first), row_begin(layout.rows, last)):
        if layout.rows.data[e] < 0.0:
            return True
    for e in range(row_begin(layout.edges, first), row_begin(layout.edges, last)):
        if layout.edges.data[e] < 0.0:
            return True
    return False
