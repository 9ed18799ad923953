"""In which order the nodes of a graph are summed out, and where the tables of that lie: a junction tree.

Summing out a node v joins its neighbours S_v, its separator, by a table over them; the node and its separator
are a clique C_v. The order is greedy, the node next whose neighbours lack the fewest edges (min-fill), which
makes the graph triangulated. The clique of v hangs on that of the node of S_v which is next to go. With these
cliques, of which some are part of others, p(y) = Π_v p(y_v | y_S_v), and (lepriol2018 (17) to (19))

    H(μ) = Σ_v H(C_v) − H(S_v) = Σ over tables t of count_t · H(t)

where the count of a set of nodes is how often it is a clique less how often it is a separator.

Graphs that are equal but for their attributes have one plan. All plans lie in flat arrays.
"""

from collections import Counter
from heapq import heapify, heappop, heappush
from itertools import accumulate, chain, combinations
from math import prod
from typing import NamedTuple

import numpy as np

from fenchel._memory import available_bytes, require_memory

CROWDED = 48  # neighbours from which on a node is not looked at: a table over so many cannot be


class Plans(NamedTuple):
    """The junction trees of all graphs, each a piece of one array: kernels take one array as its plan."""

    of: np.ndarray  # (n,) uint64 the plan of each graph
    starts: np.ndarray  # (plans + 1,) uint64 where each begins
    words: np.ndarray  # uint64

    def sizes(self) -> np.ndarray:
        """(n,) numbers of the block of each graph."""
        return self.words[self.starts[:-1] + np.uint64(SIZE)][self.of]


# A block holds tables: of nodes, of links, perhaps of more scopes. A plan begins with these numbers, then has
# the size and the count of each table, then where its cliques begin, each summed out before the next:
SIZE, ROOM, MESSAGES, TABLES, CLIQUES, AXES = range(6)
HEAD = 6  # numbers of a block; of all cliques and messages; where these begin; tables; cliques; most axes
# A clique begins with these, then has the labels of its axes, then their nodes, the one that goes last. Then
# what enters it: whether a message of another clique, or a table of the block; where it begins, in the room
# or in the block; and for each axis the step from one label to the next, 0 where it has no such axis.
AT, MESSAGE, VOLUME, AXIS, ENTERS = range(5)
CLIQUE = 5  # where in the room its table begins; where its message does; numbers of it; axes; what enters


def make_plans(graphs, sizes, full: bool) -> Plans:
    """The plans of graphs whose nodes of type t have sizes[t] labels.

    full: blocks have a table for every scope of count other than 0, so that they tell the entropy.
    """
    known, of, pieces = {}, np.empty(graphs.n, np.uint64), []
    room, cards = available_bytes(), np.asarray(sizes)[graphs.types]
    for i in range(graphs.n):
        labels, links = cards[int(graphs.starts[i]) : int(graphs.starts[i + 1])].tolist(), graphs.links_of(i)
        shape = tuple(labels), tuple(links)
        if shape not in known:
            known[shape] = len(known)
            order = _eliminate(i, labels, links, room)
            pieces.append(np.array(_plan(labels, links, order, full), np.int64))
        of[i] = known[shape]
    starts = np.cumsum([0, *map(len, pieces)])
    return Plans(of, starts.astype(np.uint64), np.concatenate(pieces).view(np.uint64))


def _eliminate(i, labels, links, room) -> list:
    """[(node, its separator)] in the order of elimination.

    MemoryError where the tables of graph i would not fit the room: nothing was allocated yet.
    """
    near = [set() for _ in labels]
    for link in links:
        for u, v in combinations(link, 2):
            near[u].add(v)
            near[v].add(u)
    gone, order, total, heap = [False] * len(labels), [], 0, [(_fill(near, v), v) for v in range(len(labels))]
    heapify(heap)
    while heap:
        fill, v = heappop(heap)
        if gone[v] or fill != _fill(near, v):
            continue  # put back when that changed
        around, gone[v] = near[v], True
        total += prod(labels[u] for u in around) * labels[v]
        if 8 * total > room:
            what = f"graph {i}: tables of {len(around) + 1} nodes (treewidth {len(around)} or more)"
            require_memory(8 * total, what, "leave out links that close cycles, or labels")
        order.append((v, around))
        for u in _join(near, v):
            heappush(heap, (_fill(near, u), u))
    return order


def _fill(near, v) -> int:
    """How many edges the neighbours of v lack; of trees, whose leaves lack none, nothing is counted."""
    around = near[v]
    if len(around) < 2 or len(around) > CROWDED:
        return 0 if len(around) < 2 else len(around) ** 2
    return sum(w not in near[u] for u, w in combinations(around, 2))


def _join(near, v) -> set:
    """Take v out and join its neighbours; all nodes whose fill that may change."""
    around, changed = near[v], set(near[v])
    for u in around:
        near[u].discard(v)
    for u, w in combinations(around, 2):
        if w not in near[u]:
            near[u].add(w)
            near[w].add(u)
            changed |= near[u] & near[w]
    return changed


def _plan(labels, links, order, full) -> list:
    """The words of one plan."""
    rank = {v: k for k, (v, _) in enumerate(order)}
    cliques = [(*sorted(around, key=lambda u: -rank[u]), v) for v, around in order]
    scopes, counts = _scopes(len(labels), links, cliques, full)
    sizes, volumes = _volumes(labels, scopes), _volumes(labels, cliques)
    messages = _volumes(labels, [clique[:-1] for clique in cliques])
    places = [sum(volumes) + begin for begin in _begins(messages)]
    entering = [[] for _ in cliques]
    for scope, begin in zip(scopes, _begins(sizes), strict=True):
        entering[min(rank[u] for u in scope)].append((0, begin, scope))
    for clique, begin in zip(cliques, places, strict=True):
        if len(clique) > 1:
            entering[rank[clique[-2]]].append((1, begin, clique[:-1]))
    head = [sum(sizes), sum(volumes) + sum(messages), sum(volumes), len(scopes), len(cliques)]
    head += [max(map(len, cliques)), *chain.from_iterable(zip(sizes, counts, strict=True))]
    facts = zip(_begins(volumes), places, volumes, strict=True)
    pieces = [_clique(labels, *each) for each in zip(facts, cliques, entering, strict=True)]
    first = len(head) + len(cliques)
    return [*head, *(first + begin for begin in _begins(map(len, pieces))), *chain.from_iterable(pieces)]


def _clique(labels, facts, clique, entering) -> list:
    """The words of one clique; facts: where its table and its message begin, and its volume."""
    words = [*facts, len(clique), len(entering), *(labels[u] for u in clique), *clique]
    for is_message, begin, scope in entering:
        step = {u: prod(labels[w] for w in scope[k + 1 :]) for k, u in enumerate(scope)}
        words += [is_message, begin, *(step.get(u, 0) for u in clique)]
    return words


def _volumes(labels, scopes) -> list:
    """How many combinations of labels each scope has."""
    return [prod(labels[u] for u in scope) for scope in scopes]


def _scopes(n, links, cliques, full) -> tuple[list, list]:
    """The scopes of the tables of a block, nodes and links first, and the count of each."""
    left = Counter(map(frozenset, cliques))
    left.subtract(frozenset(clique[:-1]) for clique in cliques if len(clique) > 1)
    scopes = [*((v,) for v in range(n)), *links]
    counts = [left.pop(frozenset(scope), 0) for scope in scopes]
    if full:
        missing = {frozenset(scope): scope for clique in cliques for scope in (clique, clique[:-1])}
        more = {missing[scope]: count for scope, count in left.items() if count}
        scopes, counts = [*scopes, *more], [*counts, *more.values()]
    return scopes, counts


def _begins(sizes) -> list:
    """Where pieces of these sizes begin, one after the other."""
    return list(accumulate(sizes, initial=0))[:-1]
