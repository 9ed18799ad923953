"""Graphs: tables of scores of nodes and links.

w = [W (A, L) | tables of links]; the L labels are those of all types of nodes, one type after the other. A
column of the links' attributes has a table of weights, one for each combination of labels of the nodes.

What must be squared (‖A_iᵀδ‖²) is added up in a work array like w, and cleared by the columns of the graph.
"""

from typing import NamedTuple

import numpy as np
from numba import carray

from fenchel._cache import helper, njit
from fenchel._math import REORDER, soft
from fenchel._packed import packed
from fenchel._sparse import Rows, Table, column, row_begin, row_end
from fenchel.structures import base
from fenchel.structures.layouts.distinct import (
    NO_COLUMNS,
    AllColumns,
    Distinct,
    distinct_column,
    distinct_columns,
    distinct_count,
)
from fenchel.structures.layouts.tables import pay

ONE = np.uint64(1)


@packed
class GraphTables(NamedTuple):
    """n graphs of N nodes and F links: tables of nodes, then of links, then perhaps some of no weights."""

    rows: Rows | Table  # (N, A) attributes of the nodes
    links: Rows  # (F, B) attributes of the links
    starts: np.ndarray  # (n + 1,) uint64 nodes of each graph
    link_starts: np.ndarray  # (n + 1,) uint64 links of each graph
    offsets: np.ndarray  # (n + 1,) uint64 where the block of each graph begins
    node_at: np.ndarray  # (N,) uint64 where in its block the table of each node begins
    link_at: np.ndarray  # (F,) uint64 and that of each link
    first_label: np.ndarray  # (N,) uint64 where among all labels those of each node begin
    node_labels: np.ndarray  # (N,) uint64 how many it has
    tables: np.ndarray  # (B + 1,) uint64 where in w the table of each column of links begins
    distinct: Distinct | AllColumns  # columns of rows
    distinct_links: Distinct  # columns of links
    work: np.ndarray  # (d,) zero between kernels
    cross: float  # 0 where no attribute is negative, else 2
    labels: int  # L
    n_weights: int  # d


def graph_tables(graphs, sizes, offsets, rows, n_weights: int) -> GraphTables:
    """Without distinct columns, to score graphs whose nodes have these rows; sizes: labels of each type."""
    labels, first_labels = np.asarray(sizes), np.cumsum([0, *sizes])
    starts, link_starts = graphs.starts.astype(np.int64), graphs.link_starts.astype(np.int64)
    node_at, nodes = _within(labels[graphs.types], starts)
    link_at, _ = _within(graphs.link_widths(sizes), link_starts)
    link_at += np.repeat(nodes, np.diff(link_starts))
    tables = rows.n_columns * sum(sizes) + np.cumsum([0, *graphs.tables.widths(sizes)])
    negative = min(rows.data.min(initial=0.0), graphs.rows.data.min(initial=0.0)) < 0.0
    return GraphTables(
        rows=rows,
        links=graphs.rows,
        starts=graphs.starts,
        link_starts=graphs.link_starts,
        offsets=offsets,
        node_at=node_at.astype(np.uint64),
        link_at=link_at.astype(np.uint64),
        first_label=first_labels[graphs.types].astype(np.uint64),
        node_labels=labels[graphs.types].astype(np.uint64),
        tables=tables.astype(np.uint64),
        distinct=NO_COLUMNS,
        distinct_links=NO_COLUMNS,
        work=np.empty(0),
        cross=2.0 * negative,
        labels=sum(sizes),
        n_weights=n_weights,
    )


def with_columns(layout: GraphTables) -> GraphTables:
    """For training: the distinct columns too, and the work array."""
    return layout._replace(
        distinct=distinct_columns(layout.rows, layout.starts),
        distinct_links=distinct_columns(layout.links, layout.link_starts),
        work=np.zeros(layout.n_weights),
    )


def _within(sizes, starts):
    """Where pieces of these sizes begin, each from the start of its own group on, and the size of groups."""
    ends = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return ends[:-1] - np.repeat(ends[starts[:-1]], np.diff(starts)), np.diff(ends[starts])


@base.block_scores.implement(GraphTables)
def _scores(blocks, i, v, s):
    return scores(blocks.layout, i, v, blocks.threshold, s)


@njit(cache=True, nogil=True)
def scores(layout, i, v, threshold, s):
    """s = scores of the tables of graph i at the weights soft(v, threshold); written."""
    for j in range(layout.offsets[i + 1] - layout.offsets[i]):
        s[j] = 0.0
    add_scores(layout, i, 1.0, v, threshold, s)


@njit(cache=True, nogil=True, fastmath=REORDER)
def add_scores(layout, i, step, v, threshold, s):
    """s += step · A_i soft(v, threshold); s written."""
    rows, links, L = layout.rows, layout.links, np.uint64(layout.labels)
    for r in range(layout.starts[i], layout.starts[i + 1]):
        at, first, width = layout.node_at[r], layout.first_label[r], layout.node_labels[r]
        for e in range(row_begin(rows, r), row_end(rows, r)):
            x, j = step * rows.data[e], column(rows, r, e) * L + first
            for k in range(width):
                s[at + k] += x * soft(v[j + k], threshold)
    for f in range(layout.link_starts[i], layout.link_starts[i + 1]):
        for e in range(links.indptr[f], links.indptr[f + ONE]):
            x, c, at = step * links.data[e], np.uint64(links.indices[e]), layout.link_at[f]
            j = layout.tables[c]
            for k in range(layout.tables[c + ONE] - j):
                s[at + k] += x * soft(v[j + k], threshold)


@base.block_add.implement(GraphTables)
def _add(blocks, i, step, delta, v):
    return add(blocks.layout, i, step, delta, v)


@njit(cache=True, nogil=True, fastmath=REORDER)
def add(layout, i, step, delta, v):
    """v += step · A_iᵀ delta; v written."""
    rows, links, L = layout.rows, layout.links, np.uint64(layout.labels)
    for r in range(layout.starts[i], layout.starts[i + 1]):
        at, first, width = layout.node_at[r], layout.first_label[r], layout.node_labels[r]
        for e in range(row_begin(rows, r), row_end(rows, r)):
            x, j = step * rows.data[e], column(rows, r, e) * L + first
            for k in range(width):
                v[j + k] += x * delta[at + k]
    for f in range(layout.link_starts[i], layout.link_starts[i + 1]):
        for e in range(links.indptr[f], links.indptr[f + ONE]):
            x, c, at = step * links.data[e], np.uint64(links.indices[e]), layout.link_at[f]
            j = layout.tables[c]
            for k in range(layout.tables[c + ONE] - j):
                v[j + k] += x * delta[at + k]


@njit(cache=True, nogil=True, fastmath=REORDER)
def clear(layout, i):
    """‖work‖², of the columns of graph i, which it has; work is zero again."""
    L, total = np.uint64(layout.labels), 0.0
    for c in range(distinct_count(layout.distinct, i)):
        begin = distinct_column(layout.distinct, i, c) * L
        for j in range(begin, begin + L):
            total += layout.work[j] * layout.work[j]
            layout.work[j] = 0.0
    for c in range(distinct_count(layout.distinct_links, i)):
        b = distinct_column(layout.distinct_links, i, c)
        for j in range(layout.tables[b], layout.tables[b + ONE]):
            total += layout.work[j] * layout.work[j]
            layout.work[j] = 0.0
    return total


@helper(cache=True, nogil=True, forceinline=True)
def work_of(layout):
    """The work array, as the weights are."""
    return carray(layout.work.data, layout.work.size)


@base.block_squared_norm.implement(GraphTables)
def _squared_norm(blocks, i, delta):
    add(blocks.layout, i, 1.0, delta, work_of(blocks.layout))
    return clear(blocks.layout, i)


@base.block_move.implement(GraphTables)
def _move(blocks, i, step, delta, s, moved):
    for j in range(base.block_length(blocks, i)):
        moved[j] = s[j]
    add(blocks.layout, i, 1.0, delta, work_of(blocks.layout))
    add_scores(blocks.layout, i, step, work_of(blocks.layout), 0.0, moved)
    clear(blocks.layout, i)


@base.block_catch_up.implement(GraphTables)
def _catch_up(blocks, i, now, drift, g, seen, v):
    return catch_up(blocks.layout, i, now, drift, g, seen, v)


@njit(cache=True, nogil=True)
def catch_up(layout, i, now, drift, g, seen, v):
    """Pay the postponed updates of the weights of graph i; v, seen written."""
    L = np.uint64(layout.labels)
    for c in range(distinct_count(layout.distinct, i)):
        begin = distinct_column(layout.distinct, i, c) * L
        pay(begin, begin + L, now, drift, g, seen, v)
    for c in range(distinct_count(layout.distinct_links, i)):
        b = distinct_column(layout.distinct_links, i, c)
        pay(layout.tables[b], layout.tables[b + ONE], now, drift, g, seen, v)


@base.block_radius.implement(GraphTables)
def _radius(blocks, i):
    here = np.empty(blocks.size)
    base.block_target(blocks, i, here)
    return radius(blocks.layout, i, here)


@njit(cache=True, nogil=True)
def radius(layout, i, here):
    """R_i ≥ max over ỹ of ‖F(x, ỹ) − F(x, y)‖²: ‖F(x, y)‖² + ‖Σ |x|‖², and twice their product where
    attributes may be negative. No output has features of a larger norm than ‖Σ |x|‖, all labels one. here: y.
    """
    rows, links, work = layout.rows, layout.links, work_of(layout)
    add(layout, i, 1.0, here, work)
    true = clear(layout, i)
    for r in range(layout.starts[i], layout.starts[i + 1]):
        for e in range(row_begin(rows, r), row_end(rows, r)):
            work[column(rows, r, e) * np.uint64(layout.labels)] += abs(rows.data[e])
    for f in range(layout.link_starts[i], layout.link_starts[i + 1]):
        for e in range(links.indptr[f], links.indptr[f + ONE]):
            work[layout.tables[links.indices[e]]] += abs(links.data[e])
    most = clear(layout, i)
    return true + most + layout.cross * np.sqrt(true * most)
