"""Graphs whose labellings are listed one by one: values, marginals and the rest from the formulas."""

from itertools import combinations, product
from math import prod

import numpy as np
import scipy.sparse as sp

from fenchel import problems
from fenchel.graphs import join_graphs

SIZES = (2, 3)  # labels of the two types of nodes


class Labellings:
    """All labellings of one graph, and which parts each is made of: tables of nodes, then of links."""

    def __init__(self, labels, links):
        self.y = np.array(list(product(*map(range, labels))), dtype=np.int64)
        scopes = [*((v,) for v in range(len(labels))), *links]
        columns = []
        for scope in scopes:
            at = np.zeros(len(self.y), np.int64)
            for v in scope:
                at = at * labels[v] + self.y[:, v]
            columns.append(np.eye(prod(labels[v] for v in scope))[at])
        self.parts = np.hstack(columns)

    def probabilities(self, s):
        scores = self.parts @ s
        p = np.exp(scores - scores.max())
        return p / p.sum()

    def log_partition(self, s):
        scores = self.parts @ s
        return scores.max() + np.log(np.exp(scores - scores.max()).sum())


def labels_of(graphs, i, sizes=SIZES):
    return [sizes[t] for t in graphs.types[int(graphs.starts[i]) : int(graphs.starts[i + 1])]]


def of_treewidth(n, width, rng):
    """Random links of a graph whose treewidth is at most this: each node joins some of a clique before it."""
    cliques, links = [tuple(range(min(width, n)))], []
    for v in range(n):
        near = cliques[rng.integers(len(cliques))] if v >= width else tuple(range(v))
        near = tuple(u for u in near if u < v and rng.uniform() < 0.8)
        cliques += [(*some, v) for some in combinations(near, min(len(near), width - 1))]
        links += [(u, v) if rng.uniform() < 0.5 else (v, u) for u in near if rng.uniform() < 0.9]
        if len(near) > 1 and rng.uniform() < 0.4:
            links.append(tuple(rng.permutation([*near, v]).tolist()))
    return links


# One node; none joined; two edges and one node alone; a cycle; the same edge twice and the other way round; a
# clique alone; a grid of 2 × 3; a star.
SHAPES = [
    (1, []),
    (3, []),
    (5, [(3, 0), (1, 2)]),
    (5, [(0, 1), (1, 2), (2, 3), (4, 3), (4, 0)]),
    (2, [(0, 1), (0, 1), (1, 0)]),
    (3, [(2, 0, 1)]),
    (6, [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]),
    (6, [(5, v) for v in range(5)]),
]


def random_shapes(rng, several=12):
    """SHAPES, and graphs of at most 8 nodes and treewidth 1 to 3."""
    more = [(n, of_treewidth(n, 1 + k % 3, rng)) for k, n in enumerate(rng.integers(2, 9, size=several))]
    return SHAPES + more


def random_problem(seed=0, loss="log", shapes=None, features=2, A=4, negative=True, **settings):
    """Graphs of these shapes with nodes of two types, attributes of nodes and edges, and random labels."""
    rng = np.random.default_rng(seed)
    shapes = random_shapes(rng) if shapes is None else shapes
    starts, links = np.cumsum([0, *(n for n, _ in shapes)]), [some for _, some in shapes]
    types = rng.integers(2, size=starts[-1])
    types[:2] = 0, 1
    F = sum(map(len, links))
    Z = sp.csr_matrix((rng.uniform(size=(F, features)) < 0.5) * rng.uniform(size=(F, features)))
    X = (rng.uniform(size=(starts[-1], A)) < 0.6) * rng.uniform(0.2, 1.0, size=(starts[-1], A))
    X *= rng.choice([-1.0, 1.0], size=X.shape) if negative else 1.0
    y = rng.integers(np.array(SIZES)[types])
    graphs = join_graphs(starts, links, types, Z)
    constant = {} if "c1" in settings else {"C": 0.7}
    settings = {"labels": SIZES, "loss": loss} | constant | settings
    return problems.graph(sp.csr_matrix(X), y, graphs, **settings)


def listed(problem):
    """`Labellings` of every graph of a problem."""
    graphs = problem.structure.graphs
    return [
        Labellings(labels_of(graphs, i, problem.structure.sizes), graphs.links_of(i)) for i in range(graphs.n)
    ]
