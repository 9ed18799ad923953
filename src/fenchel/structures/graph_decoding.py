"""Labels for graphs whose truth nobody knows: the best labels, and the marginals of each node."""

from math import inf
from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel.structures import cliques
from fenchel.structures.elimination import Plans
from fenchel.structures.layouts.graphs import GraphTables, scores


class UnlabelledGraphs(NamedTuple):
    """Graphs to be labelled with given weights."""

    layout: GraphTables
    w: np.ndarray
    plans: Plans
    allowed: np.ndarray  # (N·L,) uint8, 0 where a label cannot be; empty: all can be


@helper(cache=True, nogil=True)
def _tables(data, i):
    """The scores of graph i, −∞ where a label is not allowed."""
    layout, L = data.layout, np.uint64(data.layout.labels)
    s = np.empty(np.int64(layout.offsets[i + 1] - layout.offsets[i]))
    scores(layout, i, data.w, 0.0, s)
    if data.allowed.size > 0:
        for r in range(layout.starts[i], layout.starts[i + 1]):
            at, first = layout.node_at[r], r * L + layout.first_label[r]
            for k in range(layout.node_labels[r]):
                if data.allowed[first + k] == 0:
                    s[at + k] = -inf
    return s


@njit(cache=True, nogil=True)
def best_labels(data, start, stop, out):
    """The best labels of start ≤ i < stop among all L; out (N,) written. Returns a graph none fit, or −1."""
    for i in range(start, stop):
        s, plan = _tables(data, i), cliques.plan_of(data.plans, i)
        labels = out[data.layout.starts[i] : data.layout.starts[i + 1]]
        if not cliques.best_labels(plan, s, labels):
            return i
        for r in range(labels.size):
            labels[r] += data.layout.first_label[data.layout.starts[i] + np.uint64(r)]
    return -1


@njit(cache=True, nogil=True)
def node_marginals(data, start, stop, out, levels):
    """Marginals of the labels of each node; out (N, L), levels (n,) = log Z written. Returns as above."""
    layout = data.layout
    for i in range(start, stop):
        s, plan = _tables(data, i), cliques.plan_of(data.plans, i)
        digits, room = cliques.new_room(plan)
        levels[i] = cliques.gather(plan, s, False, digits, room)
        if levels[i] == -inf:
            return i
        cliques.distribute(plan, digits, room, s)
        for r in range(layout.starts[i], layout.starts[i + 1]):
            for k in range(np.uint64(layout.labels)):
                out[r, k] = 0.0
            for k in range(layout.node_labels[r]):
                out[r, layout.first_label[r] + k] = s[layout.node_at[r] + k]
    return -1
