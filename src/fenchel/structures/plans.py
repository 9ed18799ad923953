"""Junction trees of graphs in flat arrays: which tables there are, and how they fit together.

A node v that is summed out (`elimination.py`) leaves a message over its neighbours S_v, its separator. Both
together are a clique C_v, which hangs on that of the node of S_v that is next to go. With these cliques, of
which some are part of others, p(y) = Π_v p(y_v | y_S_v), and (lepriol2018 (17) to (19))

    H(μ) = Σ_v H(C_v) − H(S_v) = Σ over tables t of count_t · H(t)

where the count of a set of nodes is how often it is a clique less how often it is a separator.

Oracles work in a room: the block of a graph, that is tables of nodes, of links, perhaps of more scopes; then
the messages; then the tables of cliques. A view is what a clique sees of it: where that begins, and for each
axis of the clique the step from one label to the next, 0 where there is no such axis.
"""

from collections import Counter
from itertools import accumulate
from math import prod
from typing import NamedTuple

import numpy as np

from fenchel._memory import available_bytes
from fenchel._packed import packed
from fenchel.structures.elimination import eliminate


@packed
class Plans(NamedTuple):
    """The junction trees of n graphs: those that are equal but for their attributes have one plan."""

    most: np.uint64  # axes of a clique
    of: np.ndarray  # (n,) the plan of each graph; all but counts are uint64
    # of each plan
    blocks: np.ndarray  # numbers of its block
    fronts: np.ndarray  # and of messages
    rooms: np.ndarray  # and of tables of cliques
    tables: np.ndarray  # where its tables begin; one more than there are plans
    cliques: np.ndarray  # where its cliques begin, each summed out before the next; one more
    # of each table of a block
    sizes: np.ndarray
    counts: np.ndarray  # float64
    # of each clique
    places: np.ndarray  # where in the room its table begins
    volumes: np.ndarray  # numbers of it
    messages: np.ndarray  # where in the room its message begins
    axes: np.ndarray  # where its axes begin, the last is of the node that goes; one more
    views: np.ndarray  # where its views begin, of what enters it: first the node that goes; one more
    received: np.ndarray  # where those of messages begin, behind those of tables of the block
    # of each axis
    nodes: np.ndarray
    labels: np.ndarray  # how many
    # of each view
    begins: np.ndarray  # where in the room
    steps_at: np.ndarray  # where its steps begin
    steps: np.ndarray


def make_plans(graphs, sizes, full: bool) -> Plans:
    """The plans of graphs whose nodes of type t have sizes[t] labels.

    full: blocks have a table for every scope of count other than 0, so that they tell the entropy.
    """
    known, room, cards = {}, available_bytes(), np.asarray(sizes)[graphs.types]
    lists = Plans(*([] for _ in Plans._fields))
    for starts in (lists.tables, lists.cliques, lists.axes, lists.views):
        starts.append(0)
    for i in range(graphs.n):
        labels, links = cards[int(graphs.starts[i]) : int(graphs.starts[i + 1])].tolist(), graphs.links_of(i)
        shape = tuple(labels), tuple(links)
        if shape not in known:
            known[shape] = len(known)
            _append_plan(labels, links, eliminate(i, labels, links, room), full, lists)
        lists.of.append(known[shape])
    counts = np.array(lists.counts, np.float64)
    arrays = Plans(*(np.array(some, np.uint64) for some in lists._replace(counts=[])))
    return arrays._replace(counts=counts, most=np.diff(arrays.axes).max())


def _append_plan(labels, links, order, full, lists) -> None:
    rank = {v: k for k, (v, _) in enumerate(order)}
    cliques = [(*sorted(around, key=lambda u: -rank[u]), v) for v, around in order]
    scopes, counts = _scopes(len(labels), links, cliques, full)
    room = [*scopes, *(clique[:-1] for clique in cliques), *cliques]
    sizes = [prod(labels[u] for u in scope) for scope in room]
    begins, messages, tables = list(accumulate(sizes, initial=0)), len(scopes), len(scopes) + len(cliques)
    entering = [[] for _ in cliques]
    for t, scope in enumerate(room[:tables]):
        if scope:
            entering[min(rank[u] for u in scope)].append((begins[t], scope, t < messages))
    for clique, some in zip(cliques, entering, strict=True):
        _append_clique(labels, clique, some, lists)
    lists.blocks.append(begins[messages])
    lists.fronts.append(begins[tables])
    lists.rooms.append(begins[-1])
    lists.sizes.extend(sizes[:messages])
    lists.counts.extend(counts)
    lists.messages.extend(begins[messages:tables])
    lists.places.extend(begins[tables:-1])
    lists.volumes.extend(sizes[tables:])
    lists.tables.append(len(lists.sizes))
    lists.cliques.append(len(lists.volumes))


def _append_clique(labels, clique, entering, lists) -> None:
    """entering: where that begins in the room, its scope, and whether it is a table of the block."""
    lists.nodes.extend(clique)
    lists.labels.extend(labels[u] for u in clique)
    lists.axes.append(len(lists.nodes))
    lists.received.append(len(lists.begins) + sum(given for _, _, given in entering))
    for begin, scope, _ in entering:
        step = {u: prod(labels[w] for w in scope[k + 1 :]) for k, u in enumerate(scope)}
        lists.begins.append(begin)
        lists.steps_at.append(len(lists.steps))
        lists.steps.extend(step.get(u, 0) for u in clique)
    lists.views.append(len(lists.begins))


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
