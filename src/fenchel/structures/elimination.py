"""In which order the nodes of a graph are summed out: always the one whose neighbours lack the fewest edges.

That is min-fill; joining the neighbours of each node that goes makes the graph triangulated.
"""

from heapq import heapify, heappop, heappush
from itertools import combinations
from math import prod

from fenchel._memory import require_memory

CROWDED = 48  # neighbours from which on a node is not looked at: a table over so many cannot be


def eliminate(i, labels, links, room) -> list:
    """[(node, its neighbours when it goes)] in the order of elimination.

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
            what = f"graph {i}, with a clique of {len(around) + 1} nodes (treewidth {len(around)} or more),"
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
