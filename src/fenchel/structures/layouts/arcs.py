"""A row of features for each arc of a tree, and one weight vector for all.

A sentence of n words has n·n arcs, those of a word's n possible heads one after the other (`eisner.py`), each
with dozens of features. Most are shared: each sentence has a list of its distinct columns, and an entry holds
its place there. Kernels fetch the weights of the list once, and work on those, which stay in the cache.
"""

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel._math import REORDER, soft
from fenchel.structures import base
from fenchel.structures.layouts.distinct import distinct_columns
from fenchel.trees import arc_offsets


class ArcRows(NamedTuple):
    """M arcs of n sentences in d weights."""

    indptr: np.ndarray  # (M + 1,) uint64 where the entries of each arc begin
    local: np.ndarray  # (nnz,) uint32 the place of an entry's column in the list of its sentence
    data: np.ndarray  # (nnz,)
    columns: np.ndarray  # uint32, the lists, one after the other
    lists: np.ndarray  # (n + 1,) uint64 where the list of each sentence begins
    offsets: np.ndarray  # (n + 1,) uint64 where the arcs of each sentence begin
    n_weights: int  # d


def arc_targets(heads, starts) -> np.ndarray:
    """(M,) 1 where an arc is of the true tree; heads (N,): 0 for the root, else a word from 1."""
    starts, heads = np.asarray(starts, np.int64), np.asarray(heads, np.int64)
    lengths = np.diff(starts)
    words = np.arange(heads.size) - np.repeat(starts[:-1], lengths)
    first = np.repeat(arc_offsets(starts)[:-1].astype(np.int64), lengths) + words * np.repeat(
        lengths, lengths
    )
    y = np.zeros(int((lengths * lengths).sum()))
    y[first + np.where(heads <= words, heads, heads - 1)] = 1.0
    return y


def arc_rows(rows, offsets, room) -> ArcRows:
    """The layout of rows, M of them, and where the arcs of sentences begin; room: of `Examples`."""
    distinct = distinct_columns(rows, offsets, room)
    shared = distinct.local, rows.data, distinct.columns, distinct.starts
    return ArcRows(rows.indptr, *shared, offsets, rows.n_columns)


@helper(cache=True, nogil=True)
def _fetch(layout, i, v, threshold):
    """The weights of the columns of sentence i, read through a soft threshold."""
    begin = layout.lists[i]
    found = np.empty(np.int64(layout.lists[i + 1] - begin))
    for c in range(np.uint64(found.size)):
        found[c] = soft(v[layout.columns[begin + c]], threshold)
    return found


@helper(cache=True, nogil=True, fastmath=REORDER)
def _dot(layout, i, found, step, s):
    """s[j] += step · x_j · found for each arc j of sentence i; s written."""
    begin, local, data, indptr = layout.offsets[i], layout.local, layout.data, layout.indptr
    for j in range(layout.offsets[i + 1] - begin):
        total = 0.0
        for e in range(indptr[begin + j], indptr[begin + j + np.uint64(1)]):
            total += data[e] * found[local[e]]
        s[j] += step * total


@helper(cache=True, nogil=True)
def _gather(layout, i, delta):
    """A_iᵀ delta on the columns of sentence i."""
    found = np.zeros(np.int64(layout.lists[i + 1] - layout.lists[i]))
    begin, local, data, indptr = layout.offsets[i], layout.local, layout.data, layout.indptr
    for j in range(layout.offsets[i + 1] - begin):
        if delta[j] != 0.0:
            for e in range(indptr[begin + j], indptr[begin + j + np.uint64(1)]):
                found[local[e]] += delta[j] * data[e]
    return found


@njit(cache=True, nogil=True)
def arc_scores(layout, i, v, threshold, s):
    """s = A_i w, w = soft(v, threshold); s written."""
    for j in range(layout.offsets[i + 1] - layout.offsets[i]):
        s[j] = 0.0
    _dot(layout, i, _fetch(layout, i, v, threshold), 1.0, s)


@base.block_scores.implement(ArcRows)
def _scores(blocks, i, v, s):
    arc_scores(blocks.layout, i, v, blocks.threshold, s)


@base.block_add.implement(ArcRows)
def _add(blocks, i, step, delta, v):
    layout, found = blocks.layout, _gather(blocks.layout, i, delta)
    for c in range(np.uint64(found.size)):
        v[layout.columns[layout.lists[i] + c]] += step * found[c]


@base.block_squared_norm.implement(ArcRows)
def _squared_norm(blocks, i, delta):
    total, found = 0.0, _gather(blocks.layout, i, delta)
    for c in range(np.uint64(found.size)):
        total += found[c] * found[c]
    return total


@base.block_move.implement(ArcRows)
def _move(blocks, i, step, delta, s, moved):
    for j in range(base.block_length(blocks, i)):
        moved[j] = s[j]
    _dot(blocks.layout, i, _gather(blocks.layout, i, delta), step, moved)


@base.block_catch_up.implement(ArcRows)
def _catch_up(blocks, i, now, drift, g, seen, v):
    layout = blocks.layout
    for c in range(layout.lists[i], layout.lists[i + 1]):
        j = layout.columns[c]
        v[j] -= g[j] * (drift[now] - drift[seen[j]])
        seen[j] = now


@base.block_radius.implement(ArcRows)
def _radius(blocks, i):
    y = np.empty(blocks.size)
    base.block_target(blocks, i, y)
    return radius(blocks.layout, i, _gather(blocks.layout, i, y))


@njit(cache=True, nogil=True)
def radius(layout, i, truth):
    """R_i ≥ max over trees of ‖F(x, ỹ) − F(x, y)‖²; truth: F(x, y).

    A word has one of n arcs, so that feature c of a tree is between the sums over words of the least and of
    the largest it has among a word's arcs.
    """
    begin, one = layout.offsets[i], np.uint64(1)
    n = np.uint64(sqrt(np.float64(layout.offsets[i + 1] - begin)) + 0.5)
    low, high, here = np.zeros(truth.size), np.zeros(truth.size), np.zeros(truth.size)
    least, most, met = np.full(truth.size, inf), np.full(truth.size, -inf), np.zeros(truth.size, np.uint64)
    for m in range(n):
        for j in range(begin + m * n, begin + m * n + n):
            for e in range(layout.indptr[j], layout.indptr[j + one]):
                here[layout.local[e]] += layout.data[e]
            for e in range(layout.indptr[j], layout.indptr[j + one]):
                c = layout.local[e]
                if here[c] != 0.0:
                    least[c], most[c], met[c] = min(least[c], here[c]), max(most[c], here[c]), met[c] + one
                    here[c] = 0.0
        for e in range(layout.indptr[begin + m * n], layout.indptr[begin + m * n + n]):
            c = layout.local[e]
            if met[c] > 0:
                low[c] += least[c] if met[c] == n else min(least[c], 0.0)
                high[c] += most[c] if met[c] == n else max(most[c], 0.0)
                least[c], most[c], met[c] = inf, -inf, 0
    total = 0.0
    for c in range(truth.size):
        total += max(high[c] - truth[c], truth[c] - low[c]) ** 2
    return total
