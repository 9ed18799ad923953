"""Graphs of bounded treewidth: every node has one of the labels of its type, and linked nodes depend on each
other.

    score(y) = Σ_v x_v · W[:, y_v] + Σ over links f of Σ_b z_fb V_b[labels of its nodes]

with a table V_b for each attribute b of a kind of links, `fenchel.graphs`. The parts of an example are the
entries of its tables: of nodes, then of links. Their marginals tell the entropy of a tree, but of no graph
with cycles: for that the block of a `full` graph has tables for cliques and separators of its junction tree
too, which have no weights. `elimination.py` makes the tree, `cliques.py` has the oracles.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np

from fenchel._cache import helper
from fenchel._sparse import squared_norms
from fenchel.graphs import Graphs
from fenchel.structures import base, cliques
from fenchel.structures.cliques import find_best, plan_of, sum_over, table_word
from fenchel.structures.elimination import Plans, make_plans
from fenchel.structures.flat import settle
from fenchel.structures.lattice_entropy import log_slopes, sum_of_logs
from fenchel.structures.layouts.distinct import NO_COLUMNS, distinct_columns
from fenchel.structures.layouts.graphs import GraphTables

IN_ORDER = {"contract", "arcp", "nsz"}  # flags of what calls logarithms in vector registers


@dataclass(frozen=True)
class Junction(base.Structure):
    """The structure of labelled graphs.

    graphs: those of the examples, or others to be labelled. sizes: how many labels each type has. full:
    whether blocks have tables for all cliques and separators.
    """

    graphs: Graphs
    sizes: tuple
    full: bool = False
    name = "junction"
    listed = False
    products = False
    offers = frozenset({"entropy", "vertices"})

    @property
    def outputs(self) -> int:
        """All labels, of one type after the other."""
        return sum(self.sizes)

    @property
    def extra(self) -> int:
        return int(self.graphs.tables.widths(self.sizes).sum())

    @property
    def tells_entropy(self) -> bool:
        return self.full

    def telling_entropy(self) -> "Junction":
        return self if self.full else replace(self, full=True)

    @cached_property
    def plans(self) -> Plans:
        return make_plans(self.graphs, self.sizes, self.full)

    @cached_property
    def offsets(self) -> np.ndarray:
        """(n + 1,) where the block of each graph begins."""
        return np.concatenate([[0], np.cumsum(self.plans.sizes())]).astype(np.uint64)

    def shape(self, examples=None) -> tuple:
        return (int(self.offsets[-1]),)

    def largest(self, examples=None) -> int:
        return int(np.diff(self.offsets).max())

    @property
    def labels_of_nodes(self) -> np.ndarray:
        """(N,) how many labels each node has."""
        return np.asarray(self.sizes)[self.graphs.types]

    @property
    def first_labels(self) -> np.ndarray:
        """(N,) where among all labels those of each node begin."""
        return np.concatenate([[0], np.cumsum(self.sizes)])[self.graphs.types]

    def layout(self, examples, design) -> GraphTables:
        distinct = distinct_columns(examples.rows, self.graphs.starts)
        links = distinct_columns(self.graphs.rows, self.graphs.link_starts)
        bare = self.tables(examples.rows, design.dim)
        return bare._replace(distinct=distinct, distinct_links=links, work=np.zeros(design.dim))

    def tables(self, rows, n_weights: int) -> GraphTables:
        """The layout without distinct columns: to score graphs whose nodes have these rows."""
        graphs, labels = self.graphs, self.labels_of_nodes
        starts, link_starts = graphs.starts.astype(np.int64), graphs.link_starts.astype(np.int64)
        node_at, nodes = _within(labels, starts)
        link_at, _ = _within(graphs.link_widths(self.sizes), link_starts)
        link_at += np.repeat(nodes, np.diff(link_starts))
        tables = rows.n_columns * self.outputs + np.cumsum([0, *graphs.tables.widths(self.sizes)])
        negative = min(rows.data.min(initial=0.0), graphs.rows.data.min(initial=0.0)) < 0.0
        return GraphTables(
            rows=rows,
            links=graphs.rows,
            starts=graphs.starts,
            link_starts=graphs.link_starts,
            offsets=self.offsets,
            node_at=node_at.astype(np.uint64),
            link_at=link_at.astype(np.uint64),
            first_label=self.first_labels.astype(np.uint64),
            node_labels=labels.astype(np.uint64),
            tables=tables.astype(np.uint64),
            distinct=NO_COLUMNS,
            distinct_links=NO_COLUMNS,
            work=np.empty(0),
            cross=2.0 * negative,
            labels=self.outputs,
            n_weights=n_weights,
        )

    def outcomes(self, examples) -> "GraphOutcomes":
        return GraphOutcomes(examples.y, examples.cost, self.graphs.starts, self.plans)

    def measures(self, examples):
        nodes, links = np.diff(self.graphs.starts), np.diff(self.graphs.link_starts)
        parts = float(examples.mass @ (nodes + links).astype(float))
        return parts, float(examples.cost.max()), sqrt(squared_norms(self.graphs.rows).max(initial=0.0))

    def sizes_of_choice(self, examples):
        first = self.graphs.starts[:-1].astype(np.int64)
        labels = self.labels_of_nodes
        return np.add.reduceat(np.log(labels), first), np.add.reduceat(examples.cost * (labels > 1), first)


def _within(sizes, starts):
    """Where pieces of these sizes begin, each from the start of its own group on, and the size of groups."""
    ends = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return ends[:-1] - np.repeat(ends[starts[:-1]], np.diff(starts)), np.diff(ends[starts])


# ---- outcomes


class GraphOutcomes(NamedTuple):
    """Labels of n graphs of N nodes in all."""

    y: np.ndarray  # (N,) uint32 labels, each counted from 0 within its type
    cost: np.ndarray  # (N,) Hamming cost of a wrong label
    starts: np.ndarray  # (n + 1,) uint64 nodes of each graph
    plans: Plans


@helper(cache=True, nogil=True)
def truth(outcomes, i):
    return outcomes.y[outcomes.starts[i] : outcomes.starts[i + 1]]


@base.block_target.implement(GraphOutcomes)
def _target(blocks, i, y):
    return cliques.write_output(plan_of(blocks.outcomes.plans, i), truth(blocks.outcomes, i), y)


@base.block_truth.implement(GraphOutcomes)
def _truth(blocks, i, s):
    return cliques.output_score(plan_of(blocks.outcomes.plans, i), truth(blocks.outcomes, i), s)


@base.block_residual.implement(GraphOutcomes)
def _residual(blocks, i, mu, delta):
    return residual(plan_of(blocks.outcomes.plans, i), truth(blocks.outcomes, i), mu, delta)


@helper(cache=True, nogil=True)
def residual(plan, labels, mu, delta):
    """delta = y − μ; at each node the likeliest label gets minus the sum of the others, to keep digits."""
    cliques.write_output(plan, labels, delta)
    for j in range(plan[cliques.SIZE]):
        delta[j] -= mu[j]
    at = np.uint64(0)
    for v in range(np.uint64(labels.size)):
        end = at + plan[table_word(plan, v)]
        settle(np.int64(end - at), mu[at:end], delta[at:end])
        at = end


@base.block_cost.implement(GraphOutcomes)
def _cost(blocks, i, cost):
    outcomes = blocks.outcomes
    own = outcomes.cost[outcomes.starts[i] : outcomes.starts[i + 1]]
    return hamming(plan_of(outcomes.plans, i), truth(outcomes, i), own, cost)


@helper(cache=True, nogil=True)
def hamming(plan, labels, own, cost):
    """The cost of each label of each node; links cost nothing. Written."""
    for j in range(plan[cliques.SIZE]):
        cost[j] = 0.0
    at = np.uint64(0)
    for v in range(np.uint64(labels.size)):
        size = plan[table_word(plan, v)]
        for k in range(size):
            cost[at + k] = 0.0 if k == labels[v] else own[v]
        at += size


@base.block_marginals.implement(GraphOutcomes)
def _marginals(blocks, i, s, mu):
    plan, labels = plan_of(blocks.outcomes.plans, i), truth(blocks.outcomes, i)
    return sum_over(plan.ctypes, labels.ctypes, s.ctypes, mu.ctypes, 1)


@base.block_loss.implement(GraphOutcomes)
def _loss(blocks, i, s, room):
    plan, labels = plan_of(blocks.outcomes.plans, i), truth(blocks.outcomes, i)
    return sum_over(plan.ctypes, labels.ctypes, s.ctypes, room.ctypes, 0)


@base.block_argmax.implement(GraphOutcomes)
def _argmax(blocks, i, s, mu):
    plan, labels = plan_of(blocks.outcomes.plans, i), truth(blocks.outcomes, i).copy()
    find_best(plan.ctypes, labels.ctypes, s.ctypes)
    cliques.write_output(plan, labels, mu)
    return cliques.output_score(plan, labels, s)


@base.block_pieces.implement(GraphOutcomes)
def _pieces(blocks, i, one, other, pieces):
    return components(plan_of(blocks.outcomes.plans, i), truth(blocks.outcomes, i).size, one, other, pieces)


@helper(cache=True, nogil=True)
def components(plan, n, one, other, pieces):
    """The connected components of the n nodes where two labellings differ; pieces written."""
    first, second = cliques.labels_in(plan, n, one), cliques.labels_in(plan, n, other)
    of_node, count = np.zeros(n, np.uint64), np.uint64(0)
    for v in range(n):
        if first[v] != second[v] and of_node[v] == 0:
            count += np.uint64(1)
            of_node[v] = count
            while cliques.spread_over(plan, first, second, of_node):
                pass
    cliques.write_pieces(plan, first, second, of_node, pieces)
    return np.int64(count)


@base.block_entropy.implement(GraphOutcomes)
def _entropy(blocks, i, mu):
    return entropy(plan_of(blocks.outcomes.plans, i), mu)


@helper(cache=True, nogil=True, fastmath=IN_ORDER)
def entropy(plan, mu):
    """Σ count · H(table), lepriol2018 (17); of full blocks only."""
    at, total = np.uint64(0), 0.0
    for t in range(plan[cliques.TABLES]):
        size, count = table(plan, t)
        if count != 0.0:
            total -= count * sum_of_logs(at, at + size, mu)
        at += size
    return max(total, 0.0)


@base.block_entropy_slopes.implement(GraphOutcomes)
def _slopes(blocks, i, mu, delta, gamma):
    return entropy_slopes(plan_of(blocks.outcomes.plans, i), mu, delta, gamma)


@helper(cache=True, nogil=True, fastmath=IN_ORDER)
def entropy_slopes(plan, mu, delta, gamma):
    """First and second derivative of γ ↦ H(μ + γ δ), by the same decomposition."""
    at, slope, bend = np.uint64(0), 0.0, 0.0
    for t in range(plan[cliques.TABLES]):
        size, count = table(plan, t)
        if count != 0.0:
            first, second = log_slopes(at, at + size, mu, delta, gamma)
            slope += count * first
            bend += count * second
        at += size
    return slope, bend


@helper(cache=True, nogil=True, forceinline=True)
def table(plan, t):
    """Numbers of a table, and its count."""
    word = table_word(plan, t)
    return plan[word], float(np.int64(plan[word + np.uint64(1)]))
