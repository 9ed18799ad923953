"""Entropy of a sequence from the marginals of its nodes and edges: a sum over edges less one over nodes.

All of it is logarithms, K² for each token: in vector registers they take 2 ns where libm takes 6 to 9. Only
where each edge has its own table (stride K², see `lattice.py`). No `reassoc` among the flags of what calls
log_lanes.
"""

from math import log

import numpy as np

from fenchel._cache import helper, njit
from fenchel._lanes import larger, load, log_lanes, spread, total, zeros
from fenchel._math import TINY

LANES = np.uint64(8)
KERNEL = {"cache": True, "nogil": True, "fastmath": {"contract", "arcp", "nsz"}}


@njit(**KERNEL)
def entropy(T, K, mu):
    """Σ H(edges) − Σ H(inner nodes), lepriol2018 (18)."""
    first, last = (0, K) if T == 1 else (T * K, T * K + (T - 1) * K * K)
    edges = sum_of_logs(np.uint64(first), np.uint64(last), mu)
    nodes = sum_of_logs(np.uint64(K), np.uint64(max(T - 1, 1) * K), mu)
    return max(nodes - edges, 0.0)


@helper(**KERNEL)
def sum_of_logs(start, stop, mu):
    """Σ μ log μ."""
    z = zeros(8)
    tiny, sums, rest = spread(TINY, z), z, 0.0
    whole = start + ((stop - start) & ~np.uint64(7))
    for j in range(start, whole, LANES):
        p = load(mu, j, z)
        sums = sums + p * log_lanes(larger(p, tiny))
    for j in range(whole, stop):
        rest += mu[j] * log(max(mu[j], TINY))
    return total(sums) + rest


@njit(**KERNEL)
def entropy_slopes(T, K, mu, delta, gamma):
    """First and second derivative of γ ↦ H(μ + γ δ), by the same decomposition."""
    first, last = (0, K) if T == 1 else (T * K, T * K + (T - 1) * K * K)
    slope, bend = log_slopes(np.uint64(first), np.uint64(last), mu, delta, gamma)
    inner, inner_bend = log_slopes(np.uint64(K), np.uint64(max(T - 1, 1) * K), mu, delta, gamma)
    return slope - inner, bend - inner_bend


@helper(**KERNEL)
def log_slopes(start, stop, mu, delta, gamma):
    """−Σ δ log p and −Σ δ²/p with p = μ + γδ."""
    z = zeros(8)
    tiny, share = spread(TINY, z), spread(gamma, z)
    slopes, bends, slope, bend = z, z, 0.0, 0.0
    whole = start + ((stop - start) & ~np.uint64(7))
    for j in range(start, whole, LANES):
        change = load(delta, j, z)
        p = larger(load(mu, j, z) + share * change, tiny)
        slopes = slopes + change * log_lanes(p)
        bends = bends + change * change / p
    for j in range(whole, stop):
        p_j = max(mu[j] + gamma * delta[j], TINY)
        slope += delta[j] * log(p_j)
        bend += delta[j] * delta[j] / p_j
    return -total(slopes) - slope, -total(bends) - bend
