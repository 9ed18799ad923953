"""How the marginals of a sequence change with its scores: second derivatives of log Z along a direction."""

import numpy as np

from fenchel._cache import helper, njit
from fenchel.structures.lattice import forward_backward


@njit(cache=True, nogil=True)
def covariance(T, K, at, stride, banned, direction, out):
    """out = ∂μ/∂s · direction at the scores `at`: each part's covariance with ⟨direction, parts⟩; written.

    Given the label of a position, what lies before and behind it is independent; so with F and B the
    conditional expectations of the direction's sum up to and beyond the position, cov = μ (F + B − mean).
    """
    scores, mu, levels = np.empty(T * K + (T - 1) * K * K), np.empty(T * K + (T - 1) * K * K), np.empty(T)
    unshare(T, K, at, stride, scores)
    forward_backward(T, K, scores, K * K, banned, mu, levels)
    before, behind = np.zeros((T, K)), np.zeros((T, K))
    _expect_before(T, K, mu, direction, stride, before)
    _expect_behind(T, K, mu, direction, stride, behind)
    mean = 0.0
    for k in range(K):
        mean += mu[k] * (before[0, k] + behind[0, k])
    for j in range(T * K, T * K + K * K if stride == 0 else T * K + (T - 1) * stride):
        out[j] = 0.0
    for t in range(T):
        for k in range(K):
            out[t * K + k] = mu[t * K + k] * (before[t, k] + behind[t, k] - mean)
    for t in range(1, T):
        pair, edge = T * K + (t - 1) * K * K, T * K + (t - 1) * stride
        for a in range(K):
            for b in range(K):
                j = a * K + b
                here = direction[edge + j] + direction[t * K + b]
                out[edge + j] += mu[pair + j] * (before[t - 1, a] + here + behind[t, b] - mean)


@njit(cache=True, nogil=True)
def unshare(T, K, s, stride, out):
    """The same scores with a table for each edge; out written."""
    for j in range(T * K):
        out[j] = s[j]
    for t in range(1, T):
        edge, own = T * K + (t - 1) * stride, T * K + (t - 1) * K * K
        for j in range(K * K):
            out[own + j] = s[edge + j]


@helper(cache=True, nogil=True)
def _expect_before(T, K, mu, direction, stride, before):
    """before[t, b] = E[Σ of the direction over parts up to t | label b at t]; written."""
    for b in range(K):
        before[0, b] = direction[b]
    for t in range(1, T):
        pair, edge = T * K + (t - 1) * K * K, T * K + (t - 1) * stride
        for b in range(K):
            node, total = mu[t * K + b], 0.0
            for a in range(K):
                total += mu[pair + a * K + b] * (before[t - 1, a] + direction[edge + a * K + b])
            before[t, b] = direction[t * K + b] + (total / node if node > 0.0 else 0.0)


@helper(cache=True, nogil=True)
def _expect_behind(T, K, mu, direction, stride, behind):
    """behind[t, a] = E[Σ of the direction over parts beyond t | label a at t]; written."""
    for t in range(T - 2, -1, -1):
        pair, edge = T * K + t * K * K, T * K + t * stride
        for a in range(K):
            node, total = mu[t * K + a], 0.0
            for b in range(K):
                here = direction[edge + a * K + b] + direction[(t + 1) * K + b]
                total += mu[pair + a * K + b] * (here + behind[t + 1, b])
            behind[t, a] = total / node if node > 0.0 else 0.0
