"""Dynamic programs over projective trees: log-partition, arc marginals, the best tree, the k best.

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

from fenchel._cache import helper, njit
from fenchel._math import REORDER

LONGEST = 340  # words up to which the number of trees, below 6.75ⁿ, cannot overflow
LEAST = 1e-250  # of the sum over trees: what has underflowed before is nothing beside it


@helper(cache=True, nogil=True, forceinline=True)
def arc(n, head, word):
    """Where the arc from a head to a word lies among the n·n."""
    n, h, m = np.int64(n), np.int64(head), np.int64(word)
    return np.uint64((m - 1) * n + (h if h < m else h - 1))


@njit(cache=True, nogil=True)
def marginals(n, s, single, mu, tops):
    """Marginals of all arcs at the scores s; mu (n·n,) and tops (n,), the best score of each word, written.

    Returns log Z less the sum of the tops: every tree is then at most 1, and none of weight is lost. In
    probabilities; by logarithms where their sum underflows.
    """
    N = n + 1
    weights = np.empty(N * N)
    for m in range(n):
        tops[m] = -inf
        for h in range(n):
            tops[m] = max(tops[m], s[m * n + h])
        for h in range(n):
            score = s[m * n + h]
            weights[(h if h <= m else h + 1) * N + m + 1] = exp(score - tops[m]) if score > -inf else 0.0
    if n <= LONGEST:
        charts = np.zeros((12, N * N))
        total = _inside(n, weights, single, charts)
        if total > LEAST:
            _outside(n, weights, single, charts, 1.0 / total, mu)
            return log(total)
    return _log_marginals(n, s, single, tops, mu)


@helper(cache=True, nogil=True, fastmath=REORDER)
def _inside(n, weights, single, charts):
    """Charts 0 to 5 written: R, R turned, L, L turned, s(i → j) S, s(j → i) S turned. Returns Z."""
    N = np.uint64(n + 1)
    R, Rt, L, Lt = charts[0], charts[1], charts[2], charts[3]
    right, left = charts[4], charts[5]
    one = np.uint64(1)
    for i in range(N):
        R[i * N + i] = Rt[i * N + i] = L[i * N + i] = Lt[i * N + i] = 1.0
    for width in range(one, N):
        for i in range(N - width):
            j = i + width
            row, turned, total = i * N, j * N, 0.0
            for k in range(i, j):
                total += R[row + k] * Lt[turned + k + one]
            right[row + j] = total * weights[row + j]
            if i > 0:
                left[turned + i] = total * weights[turned + i]
                total = 0.0
                for k in range(i, j):
                    total += L[row + k] * left[turned + k]
                L[row + j] = Lt[turned + i] = total
            if i > 0 or not single or width == N - one:
                total = 0.0
                for k in range(i + one, j + one):
                    total += right[row + k] * Rt[turned + k]
                R[row + j] = Rt[turned + i] = total
    return R[N - one]


@helper(cache=True, nogil=True, fastmath=REORDER)
def _outside(n, weights, single, charts, share, mu):
    """Derivatives of Z by charts 0 to 5 in charts 6 to 11, and marginals: written."""
    N, one = np.uint64(n + 1), np.uint64(1)
    R, Rt, L, Lt = charts[0], charts[1], charts[2], charts[3]
    right, left = charts[4], charts[5]
    dR, dRt, dL, dLt = charts[6], charts[7], charts[8], charts[9]
    d_right, d_left = charts[10], charts[11]
    dR[N - one] = 1.0
    for back in range(one, N):
        width = N - back
        for i in range(N - width):
            j = i + width
            row, turned = i * N, j * N
            along = dR[row + j] + dRt[turned + i]
            if along > 0.0 and (i > 0 or not single or back == one):
                for k in range(i + one, j + one):
                    d_right[row + k] += along * Rt[turned + k]
                    dRt[turned + k] += along * right[row + k]
            along = dL[row + j] + dLt[turned + i]
            if along > 0.0:
                for k in range(i, j):
                    dL[row + k] += along * left[turned + k]
                    d_left[turned + k] += along * L[row + k]
            along = d_right[row + j] * weights[row + j]
            mu[arc(n, i, j)] = d_right[row + j] * right[row + j] * share
            if i > 0:
                along += d_left[turned + i] * weights[turned + i]
                mu[arc(n, j, i)] = d_left[turned + i] * left[turned + i] * share
            for k in range(i, j):
                dR[row + k] += along * Lt[turned + k + one]
                dLt[turned + k + one] += along * R[row + k]


# ---- by logarithms: slower, right at any scores


@helper(cache=True, nogil=True, fastmath=False)
def _shares(count, logs):
    """logs[k] ← e^logs[k] / Σ e^logs, written; returns log Σ e^logs."""
    top, total = -inf, 0.0
    for k in range(count):
        top = max(top, logs[k])
    for k in range(count):
        logs[k] = exp(logs[k] - top) if logs[k] > -inf else 0.0
        total += logs[k]
    for k in range(count):
        logs[k] = logs[k] / total if total > 0.0 else 0.0
    return top + log(total) if total > 0.0 else -inf


@helper(cache=True, nogil=True, fastmath=False)
def _log_marginals(n, s, single, tops, mu):
    """The same with charts of logarithms; mu written.

    From the whole down to the parts: each has the probability of what it is a part of times its share there.
    The heads of a word then sum to one whatever rounding has made of the scores.
    """
    S, terms = np.full((n + 1, n + 1), -inf), np.empty(n + 1)
    R, L = S.copy(), S.copy()
    for i in range(n + 1):
        R[i, i] = L[i, i] = 0.0
    for width in range(1, n + 1):
        for i in range(n + 1 - width):
            j = i + width
            _splits(i, j, R, L, terms)
            S[i, j] = _shares(width, terms)
            if i > 0:
                _left_splits(n, i, j, s, tops, S, L, terms)
                L[i, j] = _shares(width, terms)
            if i > 0 or not single or width == n:
                _right_splits(n, i, j, s, tops, S, R, terms)
                R[i, j] = _shares(width, terms)
    for a in range(n * n):
        mu[a] = 0.0
    if R[0, n] > -inf:
        _hand_down(n, s, tops, S, R, L, terms, mu)
    return R[0, n]


@helper(cache=True, nogil=True)
def _splits(i, j, R, L, terms):
    for k in range(i, j):
        terms[k - i] = R[i, k] + L[k + 1, j]


@helper(cache=True, nogil=True)
def _right_splits(n, i, j, s, tops, S, R, terms):
    for k in range(i + 1, j + 1):
        terms[k - i - 1] = ((s[arc(n, i, k)] - tops[k - 1]) + S[i, k]) + R[k, j]


@helper(cache=True, nogil=True)
def _left_splits(n, i, j, s, tops, S, L, terms):
    for k in range(i, j):
        terms[k - i] = ((s[arc(n, j, k)] - tops[k - 1]) + S[k, j]) + L[i, k]


@helper(cache=True, nogil=True)
def _hand_down(n, s, tops, S, R, L, terms, mu):
    """Probabilities of all parts; terms, mu written."""
    in_R, in_L = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1))
    in_R[0, n] = 1.0
    for width in range(n, 0, -1):
        for i in range(n + 1 - width):
            j = i + width
            if in_R[i, j] > 0.0:
                _right_splits(n, i, j, s, tops, S, R, terms)
                _shares(width, terms)
                for k in range(i + 1, j + 1):
                    mu[arc(n, i, k)] += in_R[i, j] * terms[k - i - 1]
                    in_R[k, j] += in_R[i, j] * terms[k - i - 1]
            if in_L[i, j] > 0.0:
                _left_splits(n, i, j, s, tops, S, L, terms)
                _shares(width, terms)
                for k in range(i, j):
                    mu[arc(n, j, k)] += in_L[i, j] * terms[k - i]
                    in_L[i, k] += in_L[i, j] * terms[k - i]
            p = mu[arc(n, i, j)] + (mu[arc(n, j, i)] if i > 0 else 0.0)
            if p > 0.0:
                _splits(i, j, R, L, terms)
                _shares(width, terms)
                for k in range(i, j):
                    in_R[i, k] += p * terms[k - i]
                    in_L[k + 1, j] += p * terms[k - i]


# ---- the best trees


SPLIT, RIGHT, LEFT = 0, 1, 2  # S, R and L


@njit(cache=True, nogil=True)
def best_tree(n, s, single, heads):
    """The tree of largest score; heads (n,) written. Returns its score."""
    N = np.uint64(n + 1)
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
    _unfold(n, 0, made, heads)
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
        _unfold(n, r, made, heads[r])
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


@helper(cache=True, nogil=True)
def _unfold(n, rank, made, heads):
    """heads (n,) of the tree of this rank; written."""
    N, size = n + 1, 1
    stack = np.empty((2 * N, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = RIGHT, 0, n, rank
    while size > 0:
        size -= 1
        kind, i, j, r = stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3]
        if i == j:
            continue
        item = (kind * N + i) * N + j
        k, a, b = made[item, r, 0], made[item, r, 1], made[item, r, 2]
        if kind == SPLIT:
            first, second = (RIGHT, i, k), (LEFT, k + 1, j)
        elif kind == RIGHT:
            heads[k - 1] = i
            first, second = (SPLIT, i, k), (RIGHT, k, j)
        else:
            heads[k - 1] = j
            first, second = (LEFT, i, k), (SPLIT, k, j)
        stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = first[0], first[1], first[2], a
        size += 1
        stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = second[0], second[1], second[2], b
        size += 1
