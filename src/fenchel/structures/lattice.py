"""Dynamic programs on a lattice of T positions and K labels: log-partition, marginals, best sequences.

The scores of one sequence lie in one flat array s. First the nodes, s[t·K + k]; then the edges: labels (a, b)
at positions (t − 1, t) score s[T·K + (t − 1)·stride + a·K + b], where stride is K² (a table for each edge) or
0 (one table for all). Marginals have the same layout; those of a shared table are summed over the edges.

`banned` (K·K,) marks pairs of labels that cannot follow each other with 1; empty, nothing is banned. A node
of score −∞ cannot be. Where no sequence is left, log Z is −∞.
"""

from math import exp, inf, log, log1p

import numpy as np

from fenchel._cache import helper, njit
from fenchel._math import REORDER

SPAN = 600.0  # scores of one step that lie closer than this cannot underflow when scaled


@njit(cache=True, nogil=True, fastmath=REORDER)
def forward_backward(T, K, s, stride, banned, mu, levels):
    """Marginals of all nodes and edges; mu written, and levels (T,), whose sum is log Z.

    In probabilities, each position scaled to sum to one; by logarithms where a step spans too much for that.
    """
    size, base = np.uint64(K), np.uint64(T * K)
    alpha, table, turned = np.empty(T * K), np.empty(K * K), np.empty(K * K)
    span, constrained = _span(T, K, s, stride)
    constrained = constrained or banned.size > 0
    if span > SPAN:
        return log_forward_backward(T, K, s, stride, banned, mu, levels)
    reached = np.ones(K, np.uint8)
    top = 0.0
    for t in range(np.uint64(T)):
        at = t * size
        peak = _exponentiate(K, s, at, mu)
        if t == np.uint64(0):
            for k in range(size):
                alpha[k] = mu[k]
        else:
            edge = base + (t - np.uint64(1)) * np.uint64(stride)
            if t == np.uint64(1) or _changes(K, s, edge, stride):
                top = _fill_table(K, s, edge, banned, table, turned)
            peak += top
            _advance(K, alpha, at, table, mu)
        total = 0.0
        for k in range(size):
            total += alpha[at + k]
        if constrained:
            _reach(K, s, at, t > np.uint64(0), table, reached)
        if not total > 1e-250 or (constrained and _lost(K, alpha, at, total, reached)):
            return log_forward_backward(T, K, s, stride, banned, mu, levels)
        scale = 1.0 / total
        for k in range(size):
            alpha[at + k] *= scale
            mu[at + k] *= scale
        levels[t] = peak + log(total)
    _backward(T, K, s, stride, banned, alpha, table, turned, mu)
    return


@njit(cache=True, nogil=True)
def _span(T, K, s, stride):
    """The widest range of finite scores at a position plus that of the edges; whether a node is −∞."""
    widest, constrained = 0.0, False
    for t in range(T):
        widest = max(widest, _range(s, t * K, (t + 1) * K))
        for j in range(np.uint64(t * K), np.uint64((t + 1) * K)):
            constrained = constrained or s[j] == -inf
    edges = 0.0
    for t in range(1, T if stride > 0 else min(T, 2)):
        edges = max(edges, _range(s, T * K + (t - 1) * stride, T * K + (t - 1) * stride + K * K))
    return widest + edges, constrained


@njit(cache=True, nogil=True)
def _reach(K, s, at, inner, table, reached):
    """Which labels a sequence can have here, given which it could have before; reached (K,) written."""
    before = reached.copy()
    for b in range(np.uint64(K)):
        possible = not inner
        for a in range(np.uint64(K) if inner else np.uint64(0)):
            possible = possible or (before[a] > 0 and table[a * np.uint64(K) + b] > 0.0)
        reached[b] = 1 if possible and s[at + b] > -inf else 0


@helper(cache=True, nogil=True)
def _lost(K, alpha, at, total, reached):
    """Whether a label that can be here is all but lost to underflow: later it may be the only one left."""
    for k in range(np.uint64(K)):  # noqa: SIM110 (kernels have no generators)
        if reached[k] > 0 and alpha[at + k] < 1e-250 * total:
            return True
    return False


@helper(cache=True, nogil=True)
def _range(s, start, stop):
    low, high = inf, -inf
    for j in range(np.uint64(start), np.uint64(stop)):
        high = max(high, s[j])
        low = min(low, s[j] if s[j] > -inf else low)
    return high - low if high > low else 0.0


@helper(cache=True, nogil=True)
def _exponentiate(K, s, at, mu):
    """mu[at + k] = e^(s[at + k] − peak), written; returns peak, the largest."""
    peak = -inf
    for k in range(np.uint64(K)):
        peak = max(peak, s[at + k])
    for k in range(np.uint64(K)):
        mu[at + k] = exp(s[at + k] - peak) if peak > -inf else 0.0
    return peak


@helper(cache=True, nogil=True)
def _changes(K, s, edge, stride):
    """Whether the table at `edge` differs from the one before it."""
    if stride == 0:
        return False
    step = np.uint64(stride)
    for j in range(np.uint64(K * K)):  # noqa: SIM110 (kernels have no generators)
        if s[edge + j] != s[edge + j - step]:
            return True
    return False


@helper(cache=True, nogil=True)
def _fill_table(K, s, edge, banned, table, turned):
    """table[a, b] = e^(score − top), 0 where banned, and its transpose; written. Returns top, the largest."""
    top, size = -inf, np.uint64(K)
    for j in range(size * size):
        top = max(top, s[edge + j])
    for a in range(size):
        for b in range(size):
            j = a * size + b
            forbidden = banned.size > 0 and banned[j] > 0
            table[j] = 0.0 if forbidden else exp(s[edge + j] - top)
            turned[b * size + a] = table[j]
    return top


@helper(cache=True, nogil=True, fastmath=REORDER)
def _advance(K, alpha, at, table, mu):
    """alpha[at + b] = mu[at + b] · Σ_a alpha[at − K + a] table[a, b]; alpha written."""
    size = np.uint64(K)
    for b in range(size):
        alpha[at + b] = 0.0
    for a in range(size):
        before, row = alpha[at - size + a], a * size
        for b in range(size):
            alpha[at + b] += before * table[row + b]
    for b in range(size):
        alpha[at + b] *= mu[at + b]


@helper(cache=True, nogil=True, fastmath=REORDER)
def _backward(T, K, s, stride, banned, alpha, table, turned, mu):
    """From scaled nodes in mu to marginals of nodes and edges; table, turned, mu written."""
    size, base = np.uint64(K), np.uint64(T * K)
    beta, gamma = np.ones(K), np.empty(K)
    if stride == 0:
        for j in range(size * size):
            mu[base + j] = 0.0
    for back in range(np.uint64(T)):
        t = np.uint64(T - 1) - back
        at = t * size
        for k in range(size):
            gamma[k] = mu[at + k] * beta[k]
            mu[at + k] = alpha[at + k] * beta[k]
        if t == np.uint64(0):
            break
        edge = base + (t - np.uint64(1)) * np.uint64(stride)
        if back > np.uint64(0) and stride > 0 and _changes(K, s, edge + np.uint64(stride), stride):
            _fill_table(K, s, edge, banned, table, turned)
        for a in range(size):
            before, row = alpha[at - size + a], edge + a * size
            if stride == 0:
                for b in range(size):
                    mu[row + b] += before * gamma[b]
            else:
                for b in range(size):
                    mu[row + b] = before * gamma[b] * table[a * size + b]
        for a in range(size):
            beta[a] = 0.0
        for b in range(size):
            row, after = b * size, gamma[b]
            for a in range(size):
                beta[a] += turned[row + a] * after
    if stride == 0 and T > 1:
        for j in range(size * size):
            mu[base + j] *= table[j]


# ---- by logarithms: slower, right at any scores


@helper(cache=True, nogil=True)
def _edge_score(K, s, edge, banned, a, b):
    return -inf if banned.size > 0 and banned[a * K + b] > 0 else s[edge + a * K + b]


@helper(cache=True, nogil=True)
def _add_logs(x, y):
    """log(eˣ + eʸ)."""
    low, high = (x, y) if x < y else (y, x)
    return high if low == -inf else high + log1p(exp(low - high))


@njit(cache=True, nogil=True)
def log_forward_backward(T, K, s, stride, banned, mu, levels):
    """`forward_backward` in logarithms; mu and levels (T,) written.

    Each position is made to sum to one here too: numbers stay as small as one step's, however long the
    sequence, and no digits are lost to their sums.
    """
    alpha, beta = np.empty((T, K)), np.zeros((T, K))
    possible = True
    for t in range(T):
        levels[t] = _log_advance(t, K, s, T * K + (t - 1) * stride, banned, alpha)
        possible = possible and levels[t] > -inf
    for j in range(T * K + K * K if stride == 0 else T * K + (T - 1) * stride):
        mu[j] = 0.0
    if not possible:
        for t in range(T):
            levels[t] = -inf
        return
    for t in range(T - 2, -1, -1):
        _log_retreat(t, K, s, T * K + t * stride, banned, beta)
    _log_marginals(T, K, s, stride, banned, beta, mu)


@helper(cache=True, nogil=True)
def _log_advance(t, K, s, edge, banned, alpha):
    """alpha[t] from alpha[t − 1], written; returns the logarithm of what it was divided by."""
    level = -inf
    for b in range(K):
        total = 0.0 if t == 0 else -inf
        for a in range(K if t > 0 else 0):
            total = _add_logs(total, alpha[t - 1, a] + _edge_score(K, s, edge, banned, a, b))
        alpha[t, b] = total + s[t * K + b]
        level = _add_logs(level, alpha[t, b])
    for b in range(K):
        alpha[t, b] -= level if level > -inf else 0.0
    return level


@helper(cache=True, nogil=True)
def _log_retreat(t, K, s, edge, banned, beta):
    """beta[t] from beta[t + 1], less its largest; written."""
    top = -inf
    for a in range(K):
        total = -inf
        for b in range(K):
            ahead = s[(t + 1) * K + b] + beta[t + 1, b]
            total = _add_logs(total, _edge_score(K, s, edge, banned, a, b) + ahead)
        beta[t, a] = total
        top = max(top, total)
    for a in range(K):
        beta[t, a] -= top if top > -inf else 0.0


@helper(cache=True, nogil=True)
def _log_marginals(T, K, s, stride, banned, beta, mu):
    """From left to right: each edge is its node times the probability to go on so; mu written.

    Nodes are then the sums of their edges to the last digit, whatever rounding has made of the scores: with
    scores of 1e12 nodes and edges found apart would be marginals of no distribution.
    """
    logs = np.empty(K)
    for k in range(K):
        logs[k] = s[k] + beta[0, k]
    _exponentiate_shares(K, logs)
    for k in range(K):
        mu[k] = logs[k]
    for t in range(1, T):
        edge = T * K + (t - 1) * stride
        for a in range(K):
            before = mu[(t - 1) * K + a]
            if before > 0.0:
                for b in range(K):
                    logs[b] = _edge_score(K, s, edge, banned, a, b) + (s[t * K + b] + beta[t, b])
                _exponentiate_shares(K, logs)
                for b in range(K):
                    mu[edge + a * K + b] += before * logs[b]
                    mu[t * K + b] += before * logs[b]


@helper(cache=True, nogil=True)
def _exponentiate_shares(size, logs):
    """logs[j] ← e^logs[j] / Σ e^logs; written."""
    top, total = -inf, 0.0
    for j in range(size):
        top = max(top, logs[j])
    for j in range(size):
        logs[j] = exp(logs[j] - top) if logs[j] > -inf else 0.0
        total += logs[j]
    for j in range(size):
        logs[j] = logs[j] / total if total > 0.0 else 0.0


# ---- best sequences


@njit(cache=True, nogil=True)
def viterbi(T, K, s, stride, banned, labels):
    """The sequence of largest score, ties to the smaller label; labels (T,) written. Returns its score."""
    size = np.uint64(K)
    back = np.zeros(T * K, np.int32)
    best, ahead = np.empty(K), np.empty(K)
    for k in range(size):
        best[k] = s[k]
    for t in range(np.uint64(1), np.uint64(T)):
        at, edge = t * size, np.uint64(T * K) + (t - np.uint64(1)) * np.uint64(stride)
        for b in range(size):
            ahead[b] = -inf
        for a in range(size):
            row, so_far = edge + a * size, best[a]
            if banned.size == 0:
                for b in range(size):
                    score = so_far + s[row + b]
                    back[at + b] = a if score > ahead[b] else back[at + b]
                    ahead[b] = score if score > ahead[b] else ahead[b]
            else:
                for b in range(size):
                    score = so_far + s[row + b] if banned[a * size + b] == 0 else -inf
                    back[at + b] = a if score > ahead[b] else back[at + b]
                    ahead[b] = score if score > ahead[b] else ahead[b]
        for b in range(size):
            best[b] = ahead[b] + s[at + b]
    last = 0
    for k in range(K):
        last = k if best[k] > best[last] else last
    score = best[last]
    for t in range(T - 1, -1, -1):
        labels[t] = last
        last = back[t * K + last]
    return score


@njit(cache=True, nogil=True)
def best_sequences(T, K, s, stride, banned, labels, scores):
    """The k sequences of largest score, best first; labels (k, T), scores (k,) written. Returns how many.

    At each node the k best ways to get there; k grows K-fold at most, so few positions have fewer.
    """
    k = scores.size
    best = np.full((T, K, k), -inf)
    back = np.zeros((T, K, k), np.int64)
    for b in range(K):
        best[0, b, 0] = s[b]
    for t in range(1, T):
        edge = T * K + (t - 1) * stride
        for b in range(K):
            for a in range(K):
                step = _edge_score(K, s, edge, banned, a, b) + s[t * K + b]
                for rank in range(k):
                    score = best[t - 1, a, rank] + step
                    if not _insert(best[t, b], back[t, b], score, a * k + rank):
                        break
    final, origin = np.full(k, -inf), np.zeros(k, np.int64)
    for b in range(K):
        for rank in range(k):
            if not _insert(final, origin, best[T - 1, b, rank], b * k + rank):
                break
    count = 0
    while count < k and final[count] > -inf:
        scores[count] = final[count]
        state = origin[count]
        for t in range(T - 1, -1, -1):
            labels[count, t] = state // k
            state = back[t, state // k, state % k]
        count += 1
    return count


@helper(cache=True, nogil=True)
def _insert(scores, origins, score, origin):
    """Put a score into a list sorted from the largest, if it belongs there; scores, origins written."""
    last = scores.size - 1
    if not score > scores[last]:
        return False
    while last > 0 and score > scores[last - 1]:
        scores[last], origins[last] = scores[last - 1], origins[last - 1]
        last -= 1
    scores[last], origins[last] = score, origin
    return True
