"""Graphs as flat arrays: which nodes are joined by links, and which tables of weights links have.

A link is an edge, (u, v), or a clique of more nodes, (u, v, w, …), by numbers of nodes within their graph.
Its kind is the types of its nodes, in order: all links of a kind share their tables of weights, one for the
constant attribute 1 that every link has, and one for each of its own attributes.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from numbers import Integral
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fenchel._sparse import Rows, as_rows, take


class Tables(NamedTuple):
    """The tables of weights of links: of each kind, for each attribute that links of it have."""

    kinds: tuple  # of tuples of types
    columns: np.ndarray  # (B, 2) int64: kind, and attribute, of which 0 is the constant; sorted

    def widths(self, sizes) -> np.ndarray:
        """(B,) numbers of each table, where a node of type t has sizes[t] labels."""
        of_kind = [int(np.prod([sizes[t] for t in kind])) for kind in self.kinds]
        return np.array(of_kind, np.int64)[self.columns[:, 0]]


@dataclass(frozen=True)
class Graphs:
    """n graphs of N nodes and F links."""

    starts: np.ndarray  # (n + 1,) uint64 nodes of each graph
    types: np.ndarray  # (N,) int64 which set of labels a node has
    link_starts: np.ndarray  # (n + 1,) uint64 links of each graph
    scope_starts: np.ndarray  # (F + 1,) int64 where the nodes of each link begin
    scopes: np.ndarray  # int64 nodes of the links, numbered within their graph
    tables: Tables
    rows: Rows  # (F, B) attributes of the links, by the columns of `tables`

    @property
    def n(self) -> int:
        return self.starts.size - 1

    @cached_property
    def owners(self) -> np.ndarray:
        """The graph of each entry of `scopes`."""
        of_link = np.repeat(np.arange(self.n), np.diff(self.link_starts.astype(np.int64)))
        return np.repeat(of_link, np.diff(self.scope_starts))

    def link_widths(self, sizes) -> np.ndarray:
        """(F,) how many combinations of labels the nodes of each link have."""
        if self.scope_starts.size == 1:
            return np.zeros(0, np.int64)
        nodes = self.starts[:-1].astype(np.int64)[self.owners] + self.scopes
        return np.multiply.reduceat(np.asarray(sizes)[self.types[nodes]], self.scope_starts[:-1])

    def links_of(self, i: int) -> list:
        """The links of graph i as tuples."""
        first, last = int(self.link_starts[i]), int(self.link_starts[i + 1])
        begin = int(self.scope_starts[first])
        flat = self.scopes[begin : self.scope_starts[last]].tolist()
        ends = (self.scope_starts[first : last + 1] - begin).tolist()
        return [tuple(flat[a:b]) for a, b in pairwise(ends)]

    def take(self, keep) -> "Graphs":
        """The graphs of these numbers, in this order."""
        links, link_starts = _pieces(self.link_starts.astype(np.int64), keep)
        nodes, starts = _pieces(self.starts.astype(np.int64), keep)
        entries, scope_starts = _pieces(self.scope_starts, links)
        return replace(
            self,
            starts=starts.astype(np.uint64),
            types=self.types[nodes],
            link_starts=link_starts.astype(np.uint64),
            scope_starts=scope_starts,
            scopes=self.scopes[entries],
            rows=take(self.rows, links),
        )


def _pieces(starts, keep):
    """The numbers of all that the kept pieces hold, and where each piece begins among them."""
    counts = np.diff(starts)[keep]
    ends = np.concatenate([[0], np.cumsum(counts)])
    return np.repeat(starts[:-1][keep] - ends[:-1], counts) + np.arange(ends[-1]), ends


def join_graphs(starts, links, types=None, features=None, tables: Tables | None = None) -> Graphs:
    """Graphs of nodes starts[i] … starts[i + 1] − 1, joined by links[i], a list of tuples of node numbers.

    types (N,): of each node; all are of type 0 unless given. features (F, B): of all links in turn, dense or
    sparse. tables: those of a model; links and attributes that it does not know then have no weights. Without
    them all that are there have.
    """
    starts = np.asarray(starts, dtype=np.int64)
    types = np.zeros(starts[-1], np.int64) if types is None else np.asarray(types, dtype=np.int64)
    checked = [
        _checked(i, some, size) for i, (some, size) in enumerate(zip(links, np.diff(starts), strict=True))
    ]
    every = list(chain.from_iterable(checked))
    scope_starts = np.concatenate([[0], np.cumsum([len(link) for link in every], dtype=np.int64)])
    scopes = np.fromiter(chain.from_iterable(every), np.int64, scope_starts[-1])
    link_starts = np.concatenate([[0], np.cumsum([len(some) for some in checked], dtype=np.int64)])
    firsts = np.repeat(starts[:-1], [sum(map(len, some)) for some in checked])
    signatures = _signatures(types[firsts + scopes], scope_starts)
    tables, rows = _rows(signatures, features, tables)
    starts, link_starts = starts.astype(np.uint64), link_starts.astype(np.uint64)
    return Graphs(starts, types, link_starts, scope_starts, scopes, tables, rows)


def _checked(i, links, size) -> list:
    """The links of graph i as tuples of nodes that are there; ValueError names the first that is none."""
    if size == 0:
        raise ValueError(f"graph {i} has no nodes; at least one is needed")
    links = links.tolist() if hasattr(links, "tolist") else links
    return [_checked_link(i, link, size) for link in links]


def _checked_link(i, link, size) -> tuple:
    nodes = tuple(link) if isinstance(link, list | tuple | np.ndarray) else ()
    if len(nodes) < 2 or not all(isinstance(u, Integral) for u in nodes):
        raise ValueError(f"graph {i}: {link!r} is no link, expected the numbers of two nodes or more")
    shown = f"graph {i}: the {'edge' if len(nodes) == 2 else 'clique'} ({', '.join(map(str, nodes))})"
    for u in nodes:
        if not 0 <= u < size:
            raise ValueError(f"{shown} names node {u}, but the graph has {size} nodes, from 0 on")
    if len(set(nodes)) < len(nodes):
        twice = next(u for u in nodes if nodes.count(u) > 1)
        raise ValueError(f"{shown} joins node {twice} with itself; leave it out")
    return nodes


def _signatures(types, scope_starts) -> list:
    """The kind of each link: the types of its nodes."""
    flat, ends = types.tolist(), scope_starts.tolist()
    return [tuple(flat[a:b]) for a, b in pairwise(ends)]


def _rows(signatures, features, tables) -> tuple[Tables, Rows]:
    """The attributes of all links by columns of tables, which are made of what there is unless given."""
    kinds = tuple(sorted(set(signatures), key=lambda kind: (len(kind), kind)))
    kinds = kinds if tables is None else tables.kinds
    number = {kind: k for k, kind in enumerate(kinds)}
    of_link = np.array([number.get(kind, -1) for kind in signatures], np.int64)
    F = of_link.size
    own = sp.coo_matrix((F, 0) if features is None else sp.csr_matrix(features))
    stride = own.shape[1] + 1
    link = np.concatenate([np.arange(F), own.row])
    key = of_link[link] * stride + np.concatenate([np.zeros(F, np.int64), own.col + 1])
    value = np.concatenate([np.ones(F), own.data])
    if tables is None:
        seen = np.unique(key[value != 0.0])
        tables = Tables(kinds, np.column_stack([seen // stride, seen % stride]))
    columns = tables.columns[:, 0] * stride + tables.columns[:, 1]
    place = np.minimum(np.searchsorted(columns, key), max(columns.size - 1, 0))
    known = (of_link[link] >= 0) & (columns[place] == key) if columns.size else np.zeros(key.size, bool)
    entries = value[known], (link[known], place[known])
    return tables, as_rows(sp.csr_matrix(entries, shape=(F, columns.size)))
