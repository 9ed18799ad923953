"""Sequences: from weights to the scores of nodes and edges and back, the kernels behind A_i and A_iᵀ.

w = [W (A, K) | V (B, K, K) | T (K, K)]; V and T may be empty. Sums over the tokens of a sequence that must be
squared (‖A_iᵀδ‖²) are gathered by its distinct columns first, in a buffer that stays in the cache.
"""

import numpy as np

from fenchel._cache import helper, njit
from fenchel._math import REORDER
from fenchel.structures import base
from fenchel.structures.chain_parts import ChainBlocks, target, tokens


@njit(cache=True, nogil=True)
def parts_of(blocks):
    """Where V and T begin in w."""
    K = np.uint64(blocks.labels)
    V = np.uint64(blocks.rows.n_columns) * K
    return V, V + np.uint64(blocks.edges.n_columns) * K * K


@base.block_scores.implement(ChainBlocks)
def _scores(blocks, i, v, s):
    return scores(blocks, i, v, s)


@njit(cache=True, nogil=True, fastmath=REORDER)
def scores(blocks, i, v, s):
    """s = scores of nodes and edges at the weights v; written."""
    K, T = np.uint64(blocks.labels), np.uint64(tokens(blocks, i))
    V, table = parts_of(blocks)
    pairs, nodes = K * K, T * K
    for j in range(blocks.offsets[i + 1] - blocks.offsets[i]):
        s[j] = 0.0
    for t in range(T):
        gather(blocks.rows, blocks.starts[i] + t, K, v, np.uint64(0), s, t * K)
    if blocks.tables > 0:
        for t in range(tables_of(blocks, T)):
            for j in range(pairs):
                s[nodes + t * pairs + j] = v[table + j]
    if blocks.edges.n_columns > 0:
        for t in range(np.uint64(1), T):
            gather(blocks.edges, blocks.starts[i] + t, pairs, v, V, s, nodes + (t - np.uint64(1)) * pairs)


@helper(cache=True, nogil=True)
def tables_of(blocks, T):
    """How many tables of edges a sequence of T tokens has."""
    return T - np.uint64(1) if blocks.stride > 0 else np.uint64(1)


@njit(cache=True, nogil=True, fastmath=REORDER)
def gather(rows, r, width, v, begin, s, at):
    """s[at:at + width] += Σ_e x_e · v[begin + column·width:][:width] over the entries of row r; s written."""
    for e in range(rows.indptr[r], rows.indptr[r + 1]):
        x, j = rows.data[e], begin + np.uint64(rows.indices[e]) * width
        for k in range(width):
            s[at + k] += x * v[j + k]


@base.block_add.implement(ChainBlocks)
def _add(blocks, i, step, delta, v):
    return add(blocks, i, step, delta, v)


@njit(cache=True, nogil=True, fastmath=REORDER)
def add(blocks, i, step, delta, v):
    """v += step · A_iᵀ delta, where there are weights; v written."""
    K, T = np.uint64(blocks.labels), np.uint64(tokens(blocks, i))
    V, table = parts_of(blocks)
    pairs, nodes = K * K, T * K
    for t in range(T):
        scatter(blocks.rows, blocks.starts[i] + t, K, step, delta, t * K, blocks.mask, v, np.uint64(0))
    if blocks.tables > 0:
        for t in range(tables_of(blocks, T)):
            add_masked(pairs, step, delta, nodes + t * pairs, blocks.mask, v, table)
    if blocks.edges.n_columns > 0:
        for t in range(np.uint64(1), T):
            at = nodes + (t - np.uint64(1)) * pairs
            scatter(blocks.edges, blocks.starts[i] + t, pairs, step, delta, at, blocks.mask, v, V)


@helper(cache=True, nogil=True, fastmath=REORDER)
def scatter(rows, r, width, step, delta, at, mask, v, begin):
    """The transpose of `gather`; v written."""
    for e in range(rows.indptr[r], rows.indptr[r + 1]):
        j = begin + np.uint64(rows.indices[e]) * width
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
    for j in range((distinct.starts[i + 1] - distinct.starts[i]) * width):
        buffer[j] = 0.0
    for t in range(count):
        here = at + t * width
        for e in range(rows.indptr[first + t], rows.indptr[first + t + np.uint64(1)]):
            x, j = rows.data[e], np.uint64(distinct.local[e]) * width
            for k in range(width):
                buffer[j + k] += x * delta[here + k]


@helper(cache=True, nogil=True, fastmath=REORDER)
def keep_masked(distinct, i, width, begin, mask, buffer):
    """Zero in the buffer what has no weight, and return the sum of the squares of the rest; written."""
    total, first = 0.0, distinct.starts[i]
    for c in range(distinct.starts[i + 1] - first):
        at, j = c * width, begin + np.uint64(distinct.columns[first + c]) * width
        for k in range(width):
            if mask.size > 0:
                buffer[at + k] *= mask[j + k]
            total += buffer[at + k] * buffer[at + k]
    return total


@helper(cache=True, nogil=True, fastmath=REORDER)
def sum_tables(blocks, T, delta, table):
    """table (K, K) = Σ of the tables of edges of delta, where there are weights; written."""
    K = np.uint64(blocks.labels)
    pairs, total = K * K, 0.0
    begin = parts_of(blocks)[1]
    for j in range(pairs):
        table[j] = 0.0
    for t in range(tables_of(blocks, T)):
        for j in range(pairs):
            table[j] += delta[T * K + t * pairs + j]
    for j in range(pairs):
        table[j] *= blocks.tables if blocks.mask.size == 0 or blocks.tables == 0 else blocks.mask[begin + j]
        total += table[j] * table[j]
    return total


@helper(cache=True, nogil=True)
def new_buffer(distinct, i, width):
    return np.empty(np.int64((distinct.starts[i + 1] - distinct.starts[i]) * width))


@base.block_squared_norm.implement(ChainBlocks)
def _squared_norm(blocks, i, delta):
    return squared_norm(blocks, i, delta)


@njit(cache=True, nogil=True)
def squared_norm(blocks, i, delta):
    """‖A_iᵀ delta‖²."""
    K, T, first = np.uint64(blocks.labels), np.uint64(tokens(blocks, i)), blocks.starts[i]
    buffer, table = new_buffer(blocks.distinct, i, K), np.empty(K * K)
    collect(blocks.rows, blocks.distinct, i, first, T, K, delta, np.uint64(0), buffer)
    total = keep_masked(blocks.distinct, i, K, np.uint64(0), blocks.mask, buffer)
    total += sum_tables(blocks, T, delta, table)
    if blocks.edges.n_columns > 0:
        V, one = parts_of(blocks)[0], np.uint64(1)
        edges = new_buffer(blocks.distinct_edges, i, K * K)
        collect(blocks.edges, blocks.distinct_edges, i, first + one, T - one, K * K, delta, T * K, edges)
        total += keep_masked(blocks.distinct_edges, i, K * K, V, blocks.mask, edges)
    return total


@base.block_move.implement(ChainBlocks)
def _move(blocks, i, step, delta, s, moved):
    return move(blocks, i, step, delta, s, moved)


@njit(cache=True, nogil=True)
def move(blocks, i, step, delta, s, moved):
    """moved = s + step · A_i A_iᵀ delta; written."""
    K, T, first = np.uint64(blocks.labels), np.uint64(tokens(blocks, i)), blocks.starts[i]
    buffer, table = new_buffer(blocks.distinct, i, K), np.empty(K * K)
    for j in range(blocks.offsets[i + 1] - blocks.offsets[i]):
        moved[j] = s[j]
    collect(blocks.rows, blocks.distinct, i, first, T, K, delta, np.uint64(0), buffer)
    keep_masked(blocks.distinct, i, K, np.uint64(0), blocks.mask, buffer)
    spread(blocks.rows, blocks.distinct, first, T, K, step, buffer, moved, np.uint64(0))
    sum_tables(blocks, T, delta, table)
    for t in range(tables_of(blocks, T)):
        for j in range(K * K):
            moved[T * K + t * K * K + j] += step * table[j]
    if blocks.edges.n_columns > 0:
        V, one = parts_of(blocks)[0], np.uint64(1)
        edges = new_buffer(blocks.distinct_edges, i, K * K)
        collect(blocks.edges, blocks.distinct_edges, i, first + one, T - one, K * K, delta, T * K, edges)
        keep_masked(blocks.distinct_edges, i, K * K, V, blocks.mask, edges)
        spread(blocks.edges, blocks.distinct_edges, first + one, T - one, K * K, step, edges, moved, T * K)


@njit(cache=True, nogil=True, fastmath=REORDER)
def spread(rows, distinct, first, count, width, step, buffer, s, at):
    """s_t += step · x_t · buffer for `count` rows from `first`: the buffer as weights; s written."""
    for t in range(count):
        here = at + t * width
        for e in range(rows.indptr[first + t], rows.indptr[first + t + np.uint64(1)]):
            x, j = step * rows.data[e], np.uint64(distinct.local[e]) * width
            for k in range(width):
                s[here + k] += x * buffer[j + k]


@base.block_catch_up.implement(ChainBlocks)
def _catch_up(blocks, i, now, drift, g, seen, v):
    return catch_up(blocks, i, now, drift, g, seen, v)


@njit(cache=True, nogil=True)
def catch_up(blocks, i, now, drift, g, seen, v):
    """Pay the postponed updates of the weights of sequence i; v, seen written."""
    K = np.uint64(blocks.labels)
    V, table = parts_of(blocks)
    for c in range(blocks.distinct.starts[i], blocks.distinct.starts[i + 1]):
        j = np.uint64(blocks.distinct.columns[c]) * K
        pay(j, j + K, now, drift, g, seen, v)
    for c in range(blocks.distinct_edges.starts[i], blocks.distinct_edges.starts[i + 1]):
        j = V + np.uint64(blocks.distinct_edges.columns[c]) * K * K
        pay(j, j + K * K, now, drift, g, seen, v)
    pay(table, np.uint64(blocks.n_weights), now, drift, g, seen, v)


@helper(cache=True, nogil=True)
def pay(start, stop, now, drift, g, seen, v):
    for j in range(start, stop):
        v[j] -= g[j] * (drift[now] - drift[seen[j]])
        seen[j] = now


# ---- the radius


@base.block_radius.implement(ChainBlocks)
def _radius(blocks, i):
    return radius(blocks, i)


@njit(cache=True, nogil=True)
def radius(blocks, i):
    """R_i ≥ max over ỹ of ‖F(x, ỹ) − F(x, y)‖², lepriol2018 Appendix C.

    ‖F(x, ỹ)‖ is largest where all labels are one, if F ≥ 0. If y lacks a label that one can be it, and
    nothing of F(x, y) cancels: ‖F(x, y)‖² + max ‖F(x, ỹ)‖². Else (the sum of the norms)².
    """
    K, T = blocks.labels, tokens(blocks, i)
    if K == 1:
        return 0.0
    here = np.empty(blocks.size)
    target(blocks, i, here)
    used = np.zeros(K, np.uint8)
    for t in range(T):
        used[blocks.y[blocks.starts[i] + np.uint64(t)]] = 1
    true, constant = squared_norm(blocks, i, here), largest_norm(blocks, i)
    absent = False
    for k in range(K):
        absent = absent or used[k] == 0
    if absent and not has_negatives(blocks, i):
        return true + constant
    return true + constant + 2.0 * np.sqrt(true * constant)


@helper(cache=True, nogil=True)
def largest_norm(blocks, i):
    """‖Σ_t |x_t|‖² + (T − 1)² + ‖Σ_t |z_t|‖²: no output has features of a larger norm."""
    T = tokens(blocks, i)
    total = column_sums(blocks.rows, blocks.distinct, i, blocks.starts[i], blocks.starts[i + 1])
    total += column_sums(blocks.edges, blocks.distinct_edges, i, blocks.starts[i], blocks.starts[i + 1])
    return total + blocks.tables * float(T - 1) ** 2


@helper(cache=True, nogil=True)
def column_sums(rows, distinct, i, first, last):
    """Σ over columns of (Σ over rows of |x|)²."""
    sums, total = np.zeros(np.int64(distinct.starts[i + 1] - distinct.starts[i])), 0.0
    for e in range(rows.indptr[first], rows.indptr[last]):
        sums[distinct.local[e]] += abs(rows.data[e])
    for c in range(sums.size):
        total += sums[c] * sums[c]
    return total


@helper(cache=True, nogil=True)
def has_negatives(blocks, i):
    first, last = blocks.starts[i], blocks.starts[i + 1]
    for e in range(blocks.rows.indptr[first], blocks.rows.indptr[last]):
        if blocks.rows.data[e] < 0.0:
            return True
    for e in range(blocks.edges.indptr[first], blocks.edges.indptr[last]):
        if blocks.edges.data[e] < 0.0:
            return True
    return False
