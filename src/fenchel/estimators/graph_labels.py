"""Graphs given by a user, and the labels of their nodes, as numbers."""

from dataclasses import dataclass
from itertools import chain

import numpy as np

from fenchel.estimators.inputs import describe, require_list
from fenchel.estimators.sequence_labels import distinct_labels, label_lists, sorted_labels
from fenchel.features.graphs import Graph, GraphAttributes, NumberedGraphs, reworded

PARTS = "nodes, edges[, edge_features, cliques, types]"


@dataclass(frozen=True)
class LabelledGraphs:
    """What a GraphCRF is fitted to: graphs and label codes (N,) as numbers, and what they stand for."""

    numbers: NumberedGraphs
    codes: np.ndarray  # from 0 within the labels of the node's type
    classes: list  # an array of labels for each type
    source: GraphAttributes
    weight: np.ndarray | None = None


def as_graphs(graphs) -> list:
    """A list of `Graph`; TypeError names the first that is none."""
    if isinstance(graphs, Graph):
        raise TypeError("graphs is one graph, expected a list of graphs; write [graph]")
    require_list("graphs", graphs, f"a list of graphs, each ({PARTS})")
    return [_as_graph(i, graph) for i, graph in enumerate(graphs)]


def _as_graph(i, graph) -> Graph:
    if not isinstance(graph, tuple | list) or not 1 <= len(graph) <= len(Graph._fields):
        found = f"has {len(graph)} parts" if isinstance(graph, tuple | list) else f"is {describe(graph)}"
        raise TypeError(f"graph {i} {found}, expected ({PARTS})")
    graph = Graph(*graph)
    for name in ("edges", "cliques"):
        require_list(f"graph {i}: {name}", getattr(graph, name), "a list of tuples of node numbers")
    return graph


def code_nodes(y, starts, types, count: int) -> tuple[np.ndarray, list]:
    """(N,) codes of the labels, those of each type from 0 on, and the sorted labels of each type."""
    with reworded("graph", "node"):
        y = label_lists("y", y, np.diff(starts.astype(np.int64)))
        flat = list(chain.from_iterable(y))
        distinct_labels(flat, y)
    codes, classes = np.empty(len(flat), np.int64), []
    for each in range(count):
        own = np.flatnonzero(types == each)
        distinct = list(dict.fromkeys(flat[r] for r in own.tolist()))
        known, places = sorted_labels(np.fromiter(distinct, object, len(distinct)))
        where = dict(zip(distinct, places.tolist(), strict=True))
        codes[own] = [where[flat[r]] for r in own.tolist()]
        classes.append(known)
    return codes, classes


def join_classes(classes: list) -> np.ndarray:
    """The labels of all types, one type after the other."""
    if len(classes) == 1:
        return classes[0]
    return np.fromiter(chain.from_iterable(some.tolist() for some in classes), object)
