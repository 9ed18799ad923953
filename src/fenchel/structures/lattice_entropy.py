"""Entropy of a sequence from the marginals of its nodes and edges: a sum over edges less one over nodes.

Only where each edge has its own table (stride K², see `lattice.py`).
"""

import numpy as np

from fenchel._cache import njit
from fenchel.structures.stretches import KERNEL, log_slopes, sum_of_logs


@njit(**KERNEL)
def entropy(T, K, mu):
    """Σ H(edges) − Σ H(inner nodes), lepriol2018 (18)."""
    first, last = (0, K) if T == 1 else (T * K, T * K + (T - 1) * K * K)
    edges = sum_of_logs(np.uint64(first), np.uint64(last), mu)
    nodes = sum_of_logs(np.uint64(K), np.uint64(max(T - 1, 1) * K), mu)
    return max(nodes - edges, 0.0)


@njit(**KERNEL)
def entropy_slopes(T, K, mu, delta, gamma):
    """First and second derivative of γ ↦ H(μ + γ δ), by the same decomposition."""
    first, last = (0, K) if T == 1 else (T * K, T * K + (T - 1) * K * K)
    slope, bend = log_slopes(np.uint64(first), np.uint64(last), mu, delta, gamma)
    inner, inner_bend = log_slopes(np.uint64(K), np.uint64(max(T - 1, 1) * K), mu, delta, gamma)
    return slope - inner, bend - inner_bend
