"""Stretches of numbers, start ≤ j < stop, eight at a time in vector registers: probabilities and entropies.

Logarithms take 2 ns there where libm takes 6 to 9. No `reassoc` among the flags of what calls exp_lanes or
log_lanes: it would reorder the reductions inside of them.
"""

from math import exp, inf, log

import numpy as np

from fenchel._cache import helper
from fenchel._lanes import exp_lanes, larger, load, log_lanes, spread, store, total, zeros
from fenchel._math import REORDER, TINY

LANES = np.uint64(8)
KERNEL = {"cache": True, "nogil": True, "fastmath": {"contract", "arcp", "nsz"}}


@helper(cache=True, nogil=True, fastmath=REORDER)
def largest(start, stop, x):
    top = -inf
    for j in range(start, stop):
        top = max(top, x[j])
    return top


@helper(**KERNEL)
def normalise(start, stop, x):
    """e^x over their sum in the place of x, written, zeros where all are −∞; returns the log of the sum."""
    top = largest(start, stop, x)
    if top == -inf:
        for j in range(start, stop):
            x[j] = 0.0
        return -inf
    z = zeros(8)
    sums, peak, rest, whole = z, spread(top, z), 0.0, start + ((stop - start) & ~np.uint64(7))
    least = exp_lanes(spread(-inf, z))  # what is taken for e^−∞
    for j in range(start, whole, LANES):
        p = exp_lanes(load(x, j, z) - peak) - least
        store(x, j, p)
        sums = sums + p
    for j in range(whole, stop):
        x[j] = exp(x[j] - top)
        rest += x[j]
    sum_of_all = total(sums) + rest
    for j in range(start, stop):
        x[j] /= sum_of_all
    return top + log(sum_of_all)


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
