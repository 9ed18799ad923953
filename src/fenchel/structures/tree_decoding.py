"""Trees for sentences whose heads nobody knows: best and k best trees, marginals of arcs.

Scores of the arcs of all sentences lie one after the other, those of sentence i from offsets[i] on, in the
order of `eisner.py`.
"""

import numpy as np

from fenchel._cache import helper, njit
from fenchel.structures.eisner import LEFT, RIGHT, SPLIT, arc, best_tree, marginals, unfold


@njit(cache=True, nogil=True)
def all_best_trees(starts, offsets, start, stop, scores, single, heads):
    """The best trees of the sentences start ≤ i < stop; heads (N,) written."""
    for i in range(start, stop):
        n = np.int64(starts[i + 1] - starts[i])
        if n > 0:
            best_tree(n, scores[offsets[i] :].ctypes, single, heads[starts[i] :].ctypes)


@njit(cache=True, nogil=True)
def all_marginals(starts, offsets, start, stop, scores, single, mu, levels):
    """Marginals of arcs of the sentences start ≤ i < stop; mu like scores, levels (n,) = log Z written."""
    for i in range(start, stop):
        tops, levels[i] = np.empty(np.int64(starts[i + 1] - starts[i])), 0.0
        if tops.size > 0:
            given, found = scores[offsets[i] :].ctypes, mu[offsets[i] :].ctypes
            levels[i] = marginals(tops.size, given, single, found, tops.ctypes)
            for m in range(tops.size):
                levels[i] += tops[m]


@njit(cache=True, nogil=True)
def best_trees(n, s, single, heads, values):
    """The k best trees; heads (k, n) and values (k,), best first, written. Returns how many there are.

    Every item has a list of its k best (its split, and the places of both halves in their lists). Of two
    lists the pairs (a, b) with (a + 1)(b + 1) ≤ k are enough.
    """
    N, most = n + 1, values.size
    scores, counts = np.empty((3 * N * N, most)), np.zeros(3 * N * N, np.int64)
    made = np.empty((3 * N * N, most, 3), np.int64)
    for i in range(N):
        for kind in (RIGHT, LEFT):
            counts[(kind * N + i) * N + i], scores[(kind * N + i) * N + i, 0] = 1, 0.0
    for width in range(1, N):
        for i in range(N - width):
            j = i + width
            for k in range(i, j):
                _offer(N, SPLIT, i, j, RIGHT, i, k, LEFT, k + 1, j, k, 0.0, scores, counts, made)
            for k in range(i, j if i > 0 else i):
                plus = s[arc(n, j, k)]
                _offer(N, LEFT, i, j, LEFT, i, k, SPLIT, k, j, k, plus, scores, counts, made)
            for k in range(i + 1, j + 1 if i > 0 or not single or width == n else i + 1):
                plus = s[arc(n, i, k)]
                _offer(N, RIGHT, i, j, SPLIT, i, k, RIGHT, k, j, k, plus, scores, counts, made)
    whole = (RIGHT * N) * N + n
    for r in range(counts[whole]):
        values[r] = scores[whole, r]
        unfold(n, r, made, heads[r])
    return counts[whole]


@helper(cache=True, nogil=True)
def _offer(N, kind, i, j, first, i1, j1, second, i2, j2, k, plus, scores, counts, made):
    """Enter what two items make into the list of a third; scores, counts, made written."""
    item, one, two = (kind * N + i) * N + j, (first * N + i1) * N + j1, (second * N + i2) * N + j2
    most = scores.shape[1]
    for a in range(counts[one]):
        for b in range(min(counts[two], most // (a + 1))):
            value = (scores[one, a] + plus) + scores[two, b]
            r = counts[item]
            if r == most:
                if not value > scores[item, most - 1]:
                    break
                r -= 1
            else:
                counts[item] += 1
            while r > 0 and scores[item, r - 1] < value:
                scores[item, r] = scores[item, r - 1]
                for c in range(3):
                    made[item, r, c] = made[item, r - 1, c]
                r -= 1
            scores[item, r] = value
            made[item, r, 0], made[item, r, 1], made[item, r, 2] = k, a, b
