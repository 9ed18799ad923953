"""Dynamic programs over projective trees: log-partition, arc marginals, the best tree.

A sentence of n words, 1 … n, and the root 0. The arc from head h to word m scores s[(m − 1)·n + h], heads
behind m one place earlier (a word is not its own head): n heads for each of n words. Eisner (1996):

    S[i, j] = Σ_k R[i, k] L[k + 1, j]                        words i … j before an arc joins i and j
    R[i, j] = Σ_k s(i → k) S[i, k] R[k, j]                    i with all it has on its right, up to j
    L[i, j] = Σ_k L[i, k] S[k, j] s(j → k)                    j with all it has on its left, down to i

and R[0, n] is the sum over trees. Where the root has one word only, R[0, j] is nothing for 0 < j < n.

Charts lie row by row, N = n + 1 numbers each; what is read down a column is kept turned as well, so that
every inner loop runs along two rows.
"""

from math import exp, inf, log

import numpy as np
from numba import carray

from fenchel._cache import external, helper
from fenchel._math import REORDER

SPLIT, RIGHT, LEFT = 0, 1, 2  # the charts S, R and L
NUMBERS, HEADS = "CPointer(float64)", "CPointer(int64)"
ANY = 2**40  # a length that no array has: of pointers it is not known
LONGEST = 340  # words up to which the number of trees, below 6.75ⁿ, cannot overflow
LEAST = 1e-250  # of the sum over trees: what has underflowed before is nothing beside it


@helper(cache=True, nogil=True, forceinline=True)
def arc(n, head, word):
    """Where the arc from a head to a word lies among the n·n."""
    n, h, m = np.int64(n), np.int64(head), np.int64(word)
    return np.uint64((m - 1) * n + (h if h < m else h - 1))


@external(f"float64(int64, {NUMBERS}, boolean, {NUMBERS}, {NUMBERS})")
def marginals(n, s, single, mu, tops):
    """Marginals of all arcs at the scores s; mu (n·n,) and tops (n,), the best score of each word, written.

    Returns log Z less the sum of the tops: every tree is then at most 1, and none of weight is lost. In
    probabilities; by logarithms where their sum underflows.
    """
    N, s, mu, tops = n + 1, carray(s, ANY), carray(mu, ANY), carray(tops, ANY)
    charts = np.zeros(13 * N * N)
    for m in range(n):
        tops[m] = -inf
        for h in range(n):
            tops[m] = max(tops[m], s[m * n + h])
        for h in range(n):
            score, at = s[m * n + h], (h if h <= m else h + 1) * N + m + 1
            charts[12 * N * N + at] = exp(score - tops[m]) if score > -inf else 0.0
    if n <= LONGEST:
        total = _inside(np.uint64(N), single, charts)
        if total > LEAST:
            _outside(np.uint64(N), single, 1.0 / total, charts, mu)
            return log(total)
    return _log_marginals(n, s, single, tops, charts, mu)


@helper(cache=True, nogil=True, forceinline=True)
def _charts(N):
    """Where R, R turned, L, L turned, s(i → j) S, s(j → i) S turned, their derivatives and weights begin."""
    size = N * N
    two, four = size + size, size + size + size + size
    return np.uint64(0), size, two, two + size, four, four + size, four + two, four + four + four


# Kernels of their own, compiled once: inside another kernel every use would be compiled again.
@helper(cache=True, nogil=True, fastmath=REORDER)
def _dot(c, p, q, count):
    """Σ c[p + k] c[q + k] over k < count."""
    total = 0.0
    for k in range(count):
        total += c[p + k] * c[q + k]
    return total


@helper(cache=True, nogil=True, fastmath=REORDER)
def _add_slopes(c, along, p, q, d, count):
    """along times the derivatives of `_dot` are added to those of its arguments, d behind them; c written."""
    for k in range(count):
        c[p + d + k] += along * c[q + k]
        c[q + d + k] += along * c[p + k]


@helper(cache=True, nogil=True)
def _inside(N, single, c):
    """The charts of sums, c written; returns Z."""
    R, Rt, L, Lt, right, left, _, weights = _charts(N)
    one = np.uint64(1)
    for i in range(N):
        for chart in (R, Rt, L, Lt):
            c[chart + i * N + i] = 1.0
    for width in range(one, N):
        for i in range(N - width):
            row, at, turned = i * N + i, i * N + i + width, (i + width) * N + i
            total = _dot(c, R + row, Lt + turned + one, width)
            c[right + at] = total * c[weights + at]
            if i > 0:
                c[left + turned] = total * c[weights + turned]
                c[L + at] = c[Lt + turned] = _dot(c, L + row, left + turned, width)
            if i > 0 or not single or width == N - one:
                c[R + at] = c[Rt + turned] = _dot(c, right + row + one, Rt + turned + one, width)
    return c[N - one]


@helper(cache=True, nogil=True)
def _outside(N, single, share, c, mu):
    """The derivatives of Z, c written, and marginals, mu written."""
    R, Rt, L, Lt, right, left, d, weights = _charts(N)
    n, one = N - np.uint64(1), np.uint64(1)
    c[d + n] = 1.0
    for back in range(n):
        width = n - back
        for i in range(N - width):
            row, at, turned = i * N + i, i * N + i + width, (i + width) * N + i
            if i > 0 or not single or width == n:
                along = c[d + R + at] + c[d + Rt + turned]
                _add_slopes(c, along, right + row + one, Rt + turned + one, d, width)
            along = c[d + right + at] * c[weights + at]
            mu[arc(n, i, i + width)] = c[d + right + at] * c[right + at] * share
            if i > 0:
                _add_slopes(c, c[d + L + at] + c[d + Lt + turned], L + row, left + turned, d, width)
                along += c[d + left + turned] * c[weights + turned]
                mu[arc(n, i + width, i)] = c[d + left + turned] * c[left + turned] * share
            _add_slopes(c, along, R + row, Lt + turned + one, d, width)


# ---- by logarithms: slower, right at any scores


@helper(cache=True, nogil=True, fastmath=False)
def _log_marginals(n, s, single, tops, c, mu):
    """The same with charts of logarithms, and probabilities of S, R and L behind them; c, mu written.

    From the whole down to the parts: each has the probability of what it is a part of times its share there.
    The heads of a word then sum to one whatever rounding has made of the scores.
    """
    N, terms = n + 1, np.empty(n)
    for at in range(3 * N * N):
        c[at], c[3 * N * N + at] = -inf, 0.0
    for i in range(N):
        c[(RIGHT * N + i) * N + i] = c[(LEFT * N + i) * N + i] = 0.0
    for a in range(n * n):
        mu[a] = 0.0
    for width in range(1, N):
        for i in range(N - width):
            for chart in range(3):
                if i > 0 or chart == SPLIT or (chart == RIGHT and (not single or width == n)):
                    c[(chart * N + i) * N + i + width] = _shares(n, chart, i, i + width, s, tops, c, terms)
    level = c[RIGHT * N * N + n]
    if level > -inf:
        c[(3 + RIGHT) * N * N + n] = 1.0
        for width in range(n, 0, -1):
            for i in range(N - width):
                for chart in (RIGHT, LEFT, SPLIT):
                    _hand_down(n, chart, i, i + width, s, tops, c, terms, mu)
    return level


@helper(cache=True, nogil=True, fastmath=False)
def _shares(n, chart, i, j, s, tops, c, terms):
    """The share of each split in a chart of i, j; terms written. Returns the logarithm of their sum."""
    N, top, total = n + 1, -inf, 0.0
    for k in range(i, j):
        if chart == SPLIT:
            terms[k - i] = c[(RIGHT * N + i) * N + k] + c[(LEFT * N + k + 1) * N + j]
        elif chart == RIGHT:
            ahead = s[arc(n, i, k + 1)] - tops[k]
            terms[k - i] = (ahead + c[i * N + k + 1]) + c[(RIGHT * N + k + 1) * N + j]
        else:
            terms[k - i] = ((s[arc(n, j, k)] - tops[k - 1]) + c[k * N + j]) + c[(LEFT * N + i) * N + k]
        top = max(top, terms[k - i])
    for k in range(j - i):
        terms[k] = exp(terms[k] - top) if terms[k] > -inf else 0.0
        total += terms[k]
    for k in range(j - i):
        terms[k] = terms[k] / total if total > 0.0 else 0.0
    return top + log(total) if total > 0.0 else -inf


@helper(cache=True, nogil=True, fastmath=False)
def _hand_down(n, chart, i, j, s, tops, c, terms, mu):
    """The probability of a chart's i, j to what it is made of; c, terms, mu written."""
    N = n + 1
    of_S, of_R, of_L = 3 * N * N, (3 + RIGHT) * N * N, (3 + LEFT) * N * N
    p = c[((3 + chart) * N + i) * N + j]
    if not p > 0.0:
        return
    _shares(n, chart, i, j, s, tops, c, terms)
    for k in range(i, j):
        share = p * terms[k - i]
        if chart == SPLIT:
            c[of_R + i * N + k] += share
            c[of_L + (k + 1) * N + j] += share
        elif chart == RIGHT:
            mu[arc(n, i, k + 1)] += share
            c[of_S + i * N + k + 1] += share
            c[of_R + (k + 1) * N + j] += share
        else:
            mu[arc(n, j, k)] += share
            c[of_L + i * N + k] += share
            c[of_S + k * N + j] += share


# ---- the best trees


@external(f"float64(int64, {NUMBERS}, boolean, {HEADS})")
def best_tree(n, s, single, heads):
    """The tree of largest score; heads (n,) written. Returns its score."""
    N, s = np.uint64(n + 1), carray(s, ANY)
    charts, made, one = np.full((6, n + 1, n + 1), -inf), np.zeros((3 * N * N, 1, 3), np.int64), np.uint64(1)
    R, Rt, L, Lt, right, left = charts[0], charts[1], charts[2], charts[3], charts[4], charts[5]
    for i in range(N):
        R[i, i] = Rt[i, i] = L[i, i] = Lt[i, i] = 0.0
    for width in range(one, N):
        for i in range(N - width):
            j = i + width
            best, k = _best(R[i], Lt[j], i, j, one)
            made[i * N + j, 0, 0] = k
            right[i, j] = best + s[arc(n, i, j)]
            if i > 0:
                left[j, i] = best + s[arc(n, j, i)]
                best, k = _best(L[i], left[j], i, j, np.uint64(0))
                L[i, j] = Lt[j, i] = best
                made[(np.uint64(LEFT) * N + i) * N + j, 0, 0] = k
            if i > 0 or not single or width == N - one:
                best, k = _best(right[i], Rt[j], i + one, j + one, np.uint64(0))
                R[i, j] = Rt[j, i] = best
                made[(np.uint64(RIGHT) * N + i) * N + j, 0, 0] = k
    unfold(n, 0, made, carray(heads, ANY))
    return R[0, n]


@helper(cache=True, nogil=True, forceinline=True)
def _best(a, b, begin, end, ahead):
    """The largest a[k] + b[k + ahead] of begin ≤ k < end, the first of them, and its k."""
    best, at = a[begin] + b[begin + ahead], begin
    for k in range(begin + np.uint64(1), end):
        value = a[k] + b[k + ahead]
        if value > best:
            best, at = value, k
    return best, at


@helper(cache=True, nogil=True)
def unfold(n, rank, made, heads):
    """heads (n,) of the tree of this rank; written. made[item, rank]: its split, ranks of its halves."""
    N, size = n + 1, 1
    stack = np.empty((2 * N, 2), np.int64)
    stack[0, 0], stack[0, 1] = RIGHT * N * N + n, rank
    while size > 0:
        size -= 1
        item, r = stack[size, 0], stack[size, 1]
        chart, i, j = item // (N * N), item // N % N, item % N
        if i == j:
            continue
        k = made[item, r, 0]
        if chart != SPLIT:
            heads[k - 1] = i if chart == RIGHT else j
        first, second = (RIGHT, SPLIT, LEFT)[chart], (LEFT, RIGHT, SPLIT)[chart]
        begin = k + 1 if chart == SPLIT else k
        stack[size, 0], stack[size, 1] = (first * N + i) * N + k, made[item, r, 1]
        stack[size + 1, 0], stack[size + 1, 1] = (second * N + begin) * N + j, made[item, r, 2]
        size += 2
