"""Softmax of many rows of scores, with exponentials several at a time: `_lanes.exp_lanes`."""

import numpy as np

from fenchel._cache import njit
from fenchel._lanes import exp_lanes, load, store, zeros

LANES, CHUNK = 8, 512  # exponentials side by side; numbers that stay in the first cache in between


@njit(cache=True, nogil=True)
def exponentials(numbers, begin, end):
    """eˣ in place of x, x ≤ 0, from begin to end of a flat array."""
    k = np.uint64(begin)
    while k + np.uint64(LANES) <= np.uint64(end):
        store(numbers, k, exp_lanes(load(numbers, k, zeros(LANES))))
        k += np.uint64(LANES)
    for j in range(k, np.uint64(end)):
        numbers[j] = np.exp(max(numbers[j], -708.0))


@njit(cache=True, nogil=True, forceinline=True)
def below_the_best(size, scores, b, mu):
    """The label of largest score + b; mu = what all are below it, written."""
    best, top = np.uint64(0), -np.inf
    for k in range(size):
        mu[k] = scores[k] + b[k]
        if mu[k] > top:
            best, top = k, mu[k]
    for k in range(size):
        mu[k] -= top
    return best
