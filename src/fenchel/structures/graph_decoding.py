"""Labels for graphs whose truth nobody knows: the best labels, and the marginals of each node."""

from math import inf
from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel._packed import packed
from fenchel.structures.cliques import find_best, sum_over
from fenchel.structures.layouts.graphs import GraphTables, scores
from fenchel.structures.plans import Plans


@packed
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
    """The best labels of start ≤ i < stop; out (N,) uint32, of each among its type's, written.

    Returns a graph that no labels fit, or −1.
    """
    for i in range(start, stop):
        s, labels = _tables(data, i), out[data.layout.starts[i] : data.layout.starts[i + 1]]
        if find_best(data.plans, i, labels.ctypes, s.ctypes) == -inf:
            return i
    return -1


@njit(cache=True, nogil=True)
def node_marginals(data, start, stop, best, out):
    """Marginals of the labels of each node; out (N, L) written, zero before. Returns as above.

    best (N,) uint32: the best labels, written too: without any there is nothing to sum over.
    """
    layout = data.layout
    for i in range(start, stop):
        s, labels = _tables(data, i), best[layout.starts[i] : layout.starts[i + 1]]
        mu = np.empty(s.size)
        if find_best(data.plans, i, labels.ctypes, s.ctypes) == -inf:
            return i
        sum_over(data.plans, i, labels.ctypes, s.ctypes, mu.ctypes, True)
        for r in range(layout.starts[i], layout.starts[i + 1]):
            for k in range(layout.node_labels[r]):
                out[r, layout.first_label[r] + k] = mu[layout.node_at[r] + k]
    return -1
