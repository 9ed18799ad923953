"""Graphs of bounded treewidth: every node has one of the labels of its type, and linked nodes depend on each
other.

    score(y) = Σ_v x_v · W[:, y_v] + Σ over links f of Σ_b z_fb V_b[labels of its nodes]

with a table V_b for each attribute b of a kind of links, `fenchel.graphs`. The parts of an example are the
entries of its tables: of nodes, then of links. Their marginals tell the entropy of a tree, but of no graph
with cycles: for that the block of a `full` graph has tables for cliques and separators of its junction tree
too, which have no weights. `plans.py` makes the tree, `cliques.py` has the oracles.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np

from fenchel._cache import helper
from fenchel._packed import packed, tail
from fenchel._sparse import squared_norms
from fenchel.graphs import Graphs
from fenchel.structures import base
from fenchel.structures.cliques import find_best, output_score, sum_over, write_output
from fenchel.structures.flat import settle
from fenchel.structures.layouts.graphs import GraphTables, graph_tables, with_columns
from fenchel.structures.plans import Plans, make_plans
from fenchel.structures.stretches import log_slopes, sum_of_logs


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
        return np.concatenate([[0], np.cumsum(self.plans.blocks[self.plans.of])]).astype(np.uint64)

    def shape(self, examples=None) -> tuple:
        return (int(self.offsets[-1]),)

    def largest(self, examples=None) -> int:
        return int(np.diff(self.offsets).max())

    def layout(self, examples, design) -> GraphTables:
        return with_columns(self.tables(examples.rows, design.dim))

    def tables(self, rows, n_weights: int) -> GraphTables:
        """What scores graphs whose nodes have these rows."""
        return graph_tables(self.graphs, self.sizes, self.offsets, rows, n_weights)

    def outcomes(self, examples) -> "GraphOutcomes":
        return GraphOutcomes(examples.y, examples.cost, self.graphs.starts, self.plans)

    def measures(self, examples):
        nodes, links = np.diff(self.graphs.starts), np.diff(self.graphs.link_starts)
        parts = float(examples.mass @ (nodes + links).astype(float))
        return parts, float(examples.cost.max()), sqrt(squared_norms(self.graphs.rows).max(initial=0.0))

    def sizes_of_choice(self, examples):
        first = self.graphs.starts[:-1].astype(np.int64)
        labels = np.asarray(self.sizes)[self.graphs.types]
        return np.add.reduceat(np.log(labels), first), np.add.reduceat(examples.cost * (labels > 1), first)


# ---- outcomes


@packed
class GraphOutcomes(NamedTuple):
    """Labels of n graphs of N nodes in all."""

    y: np.ndarray  # (N,) uint32 labels, each counted from 0 within its type
    cost: np.ndarray  # (N,) Hamming cost of a wrong label
    starts: np.ndarray  # (n + 1,) uint64 nodes of each graph
    plans: Plans


@helper(cache=True, nogil=True, forceinline=True)
def _labels(outcomes, i):
    """Where the labels of graph i begin."""
    return tail(outcomes.y, outcomes.starts[i]).data


@base.block_target.implement(GraphOutcomes)
def _target(blocks, i, y):
    write_output(blocks.outcomes.plans, i, _labels(blocks.outcomes, i), y.ctypes)


@base.block_truth.implement(GraphOutcomes)
def _truth(blocks, i, s):
    return output_score(blocks.outcomes.plans, i, _labels(blocks.outcomes, i), s.ctypes)


@base.block_residual.implement(GraphOutcomes)
def _residual(blocks, i, mu, delta):
    """At each node the likeliest label gets minus the sum of the others, to keep digits."""
    plans, outcomes, at = blocks.outcomes.plans, blocks.outcomes, np.uint64(0)
    base.block_target(blocks, i, delta)
    for j in range(base.block_length(blocks, i)):
        delta[j] -= mu[j]
    first = plans.tables[plans.of[i]]
    for table in range(first, first + outcomes.starts[i + 1] - outcomes.starts[i]):
        end = at + plans.sizes[table]
        settle(np.int64(end - at), mu[at:end], delta[at:end])
        at = end


@base.block_cost.implement(GraphOutcomes)
def _cost(blocks, i, cost):
    """Links cost nothing."""
    plans, outcomes, at = blocks.outcomes.plans, blocks.outcomes, np.uint64(0)
    for j in range(base.block_length(blocks, i)):
        cost[j] = 0.0
    for v in range(outcomes.starts[i + 1] - outcomes.starts[i]):
        node, size = outcomes.starts[i] + v, plans.sizes[plans.tables[plans.of[i]] + v]
        for k in range(size):
            cost[at + k] = 0.0 if k == outcomes.y[node] else outcomes.cost[node]
        at += size


@base.block_marginals.implement(GraphOutcomes)
def _marginals(blocks, i, s, mu):
    return sum_over(blocks.outcomes.plans, i, _labels(blocks.outcomes, i), s.ctypes, mu.ctypes, True)


@base.block_loss.implement(GraphOutcomes)
def _loss(blocks, i, s, room):
    return sum_over(blocks.outcomes.plans, i, _labels(blocks.outcomes, i), s.ctypes, room.ctypes, False)


@base.block_argmax.implement(GraphOutcomes)
def _argmax(blocks, i, s, mu):
    outcomes = blocks.outcomes
    labels = np.empty(np.int64(outcomes.starts[i + 1] - outcomes.starts[i]), np.uint32)
    find_best(outcomes.plans, i, labels.ctypes, s.ctypes)
    write_output(outcomes.plans, i, labels.ctypes, mu.ctypes)
    return output_score(outcomes.plans, i, labels.ctypes, s.ctypes)


@base.block_entropy.implement(GraphOutcomes)
def _entropy(blocks, i, mu):
    """Σ count · H(table), lepriol2018 (17); of full blocks only."""
    plans, at, total = blocks.outcomes.plans, np.uint64(0), 0.0
    for t in range(plans.tables[plans.of[i]], plans.tables[plans.of[i] + np.uint64(1)]):
        if plans.counts[t] != 0.0:
            total -= plans.counts[t] * sum_of_logs(at, at + plans.sizes[t], mu)
        at += plans.sizes[t]
    return max(total, 0.0)


@base.block_entropy_slopes.implement(GraphOutcomes)
def _slopes(blocks, i, mu, delta, gamma):
    """By the same decomposition."""
    plans, at, slope, bend = blocks.outcomes.plans, np.uint64(0), 0.0, 0.0
    for t in range(plans.tables[plans.of[i]], plans.tables[plans.of[i] + np.uint64(1)]):
        if plans.counts[t] != 0.0:
            first, second = log_slopes(at, at + plans.sizes[t], mu, delta, gamma)
            slope += plans.counts[t] * first
            bend += plans.counts[t] * second
        at += plans.sizes[t]
    return slope, bend
