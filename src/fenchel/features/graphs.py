"""Graph: what a GraphCRF labels; and how its attributes and types become numbers."""

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fenchel._sparse import Rows, Table, as_csr
from fenchel.features.sequences import SOURCES, source_for
from fenchel.graphs import Graphs, Tables, join_graphs


class Graph(NamedTuple):
    """Nodes and what joins them. A tuple of the same parts in this order does as well.

    nodes : the attributes of each node: dicts or lists of names as in ChainCRF, an array (N, A) or a sparse
        matrix
    edges : pairs (u, v) of node numbers, from 0 on; the order counts: the table of an edge has the labels of
        u in its rows
    edge_features : the attributes of each edge, like those of nodes; None for none
    cliques : tuples of three node numbers or more
    types : the type of each node, a string or a number: nodes of a type share a set of labels. None: all do
    """

    nodes: object
    edges: object = ()
    edge_features: object = None
    cliques: object = ()
    types: object = None

    @classmethod
    def chain(cls, nodes, order: int = 1) -> "Graph":
        """A sequence. With order 2 each node depends on the two before it: cliques of three; and so on."""
        length = nodes.shape[0] if hasattr(nodes, "shape") else len(nodes)
        links = [[tuple(range(t - m, t + 1)) for t in range(m, length)] for m in range(1, order + 1)]
        return cls(nodes, links[0], cliques=list(chain.from_iterable(links[1:])))


@dataclass(frozen=True)
class NumberedGraphs:
    """Graphs as numbers: the attributes of all nodes (N, A), and the shapes."""

    rows: Rows | Table
    graphs: Graphs


class GraphAttributes:
    """The attributes of nodes and edges, the types of nodes and the tables of links that a model knows."""

    def __init__(self, nodes, edges, types: list, tables: Tables | None = None):
        self.nodes, self.edges, self.types, self.tables = nodes, edges, types, tables

    @classmethod
    def learn(cls, graphs: list, min_count: int) -> tuple["GraphAttributes", NumberedGraphs]:
        """What is known of these graphs, and they as numbers."""
        nodes = source_for([graph.nodes for graph in graphs], None)
        with_edges = [graph.edge_features for graph in graphs if graph.edge_features is not None]
        edges = source_for(with_edges, None) if with_edges else None
        found = dict.fromkeys(chain.from_iterable(g.types for g in graphs if g.types is not None))
        source = cls(nodes, edges, sorted(found, key=lambda each: (str(type(each)), each)) or [None])
        data = source._numbers(graphs, lambda source, X: source.learn(X, min_count))
        source.tables = data.graphs.tables
        return source, data

    def read(self, graphs: list) -> NumberedGraphs:
        """Other graphs, as the numbers of this model."""
        return self._numbers(graphs, lambda source, X: source.read(X))

    def _numbers(self, graphs, encode) -> NumberedGraphs:
        with reworded("graph", "node"):
            data = encode(self.nodes, [graph.nodes for graph in graphs])
        links = [[*_as_list(graph.edges), *_as_list(graph.cliques)] for graph in graphs]
        types = self._types(graphs, np.diff(data.starts.astype(np.int64)))
        features = self._edge_features(graphs, [len(some) for some in links], encode)
        return NumberedGraphs(data.rows, join_graphs(data.starts, links, types, features, self.tables))

    def _types(self, graphs, lengths) -> np.ndarray:
        """(N,) the number of each node's type."""
        where = {each: k for k, each in enumerate(self.types)}
        out = []
        for i, (graph, length) in enumerate(zip(graphs, lengths.tolist(), strict=True)):
            types = [None] * length if graph.types is None else _as_list(graph.types)
            if len(types) != length:
                raise ValueError(f"graph {i} has {length} nodes but {len(types)} types; they must match")
            unknown = [each for each in types if each not in where]
            if unknown:
                known = ", ".join(map(repr, self.types))
                raise ValueError(f"graph {i}: a node is of type {unknown[0]!r}; the model knows {known}")
            out += [where[each] for each in types]
        return np.array(out, np.int64)

    def _edge_features(self, graphs, counts, encode):
        """(F, B) the attributes of all links, of which cliques have none; None where the model knows none."""
        if self.edges is None:
            return None
        edges = [len(_as_list(graph.edges)) for graph in graphs]
        given = [_features_of(i, *each) for i, each in enumerate(zip(graphs, edges, strict=True))]
        kept = [i for i, count in enumerate(edges) if count]
        with reworded("edge_features of graph", "edge", kept):
            own = as_csr(encode(self.edges, [given[i] for i in kept]).rows)
        firsts = np.cumsum([0, *counts])
        places = [np.arange(first, first + count) for first, count in zip(firsts[:-1], edges, strict=True)]
        lengths = np.zeros(firsts[-1], np.int64)
        lengths[np.concatenate(places)] = np.diff(own.indptr)
        shape = firsts[-1], own.shape[1]
        return sp.csr_matrix((own.data, own.indices, np.cumsum([0, *lengths])), shape=shape)

    # ---- the model file

    def to_file(self) -> tuple[dict, dict]:
        facts, arrays = {"types": self.types, "kinds": self.tables.kinds}, {"columns": self.tables.columns}
        for name, source in (("nodes", self.nodes), ("edges", self.edges)):
            facts[name], own = source.to_file() if source else (None, {})
            arrays |= {f"{name}.{key}": array for key, array in own.items()}
        return facts, arrays

    @classmethod
    def from_file(cls, facts, arrays) -> "GraphAttributes":
        sources = []
        for name in ("nodes", "edges"):
            own = {k.removeprefix(f"{name}."): a for k, a in arrays.items() if k.startswith(f"{name}.")}
            known = facts[name]
            if known and known.get("function"):
                raise ValueError(f"the {name} have no template that is a function")
            sources.append(SOURCES[known["kind"]].from_file(known, own) if known else None)
        nodes, edges = sources
        types, kinds = facts["types"], tuple(tuple(kind) for kind in facts["kinds"])
        if len(set(types)) < max(len(types), 1) or not set(chain.from_iterable(kinds)) <= {
            *range(len(types))
        }:
            raise ValueError(f"types are {types!r}, kinds of links {kinds!r}")
        columns = arrays["columns"]
        keys = (
            columns @ [2**32, 1] if columns.dtype == np.int64 and columns.shape[1:] == (2,) else np.zeros(2)
        )
        limits = len(kinds), 1 + (edges.sizes[0] if edges else 0)
        if (np.diff(keys) <= 0).any() or (columns < 0).any() or (columns >= limits).any():
            raise ValueError("the columns of links are damaged")
        return cls(nodes, edges, types, Tables(kinds, columns))


def _as_list(values) -> list:
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _features_of(i, graph, count):
    """The edge features of graph i, if it has edges: one entry for each."""
    given = graph.edge_features
    found = 0 if given is None else given.shape[0] if hasattr(given, "shape") else len(given)
    if found != count:
        raise ValueError(f"graph {i} has {count} edges but {found} entries of edge_features; they must match")
    return given


@contextmanager
def reworded(sequence, token, numbers=None):
    """Errors of sources of attributes, which speak of sequences and tokens, in the words of graphs.

    numbers: the true number of each sequence, where some were left out.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        words = str(error).split(" ")
        if numbers and words[0] == "sequence" and words[1].rstrip(",").isdigit():
            words[1] = words[1].replace(words[1].rstrip(","), str(numbers[int(words[1].rstrip(","))]))
        text = " ".join(words).replace("sequence", sequence).replace("token", token)
        raise type(error)(text) from None
