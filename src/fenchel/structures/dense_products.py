"""Products of dense rows with the weights of K labels, x W and xᵀ s, for kernels that take several rows.

BLAS would do the two products at twice this speed, but in blocks of rows that must be handed to and fro: on
20,000 × 16 with 26 labels its calls, the passes over arrays between them and the waiting of threads for each
other took 7 ms where one kernel takes 2. Four rows at a time share what is loaded of W, eight labels are side
by side in registers.

W and s have `width` columns, K rounded up to a multiple of LANES; those beyond K are padding.
"""

import numpy as np

from fenchel._cache import helper
from fenchel._lanes import load, spread, store, zeros

LANES = 4
FOUR = np.uint64(4)  # rows that share a tile of W


def padded(w: np.ndarray, labels: int) -> np.ndarray:
    """(rows, width) of w (rows · K,); zeros where there is nothing."""
    out = np.zeros((w.size // labels, -(-labels // LANES) * LANES))
    out[:, :labels] = w.reshape(-1, labels)
    return out


@helper(cache=True, nogil=True)
def times(x, count, columns, w, width, s):
    """s (count, width) = x W, written; x (count, columns) and w flat."""
    r = np.uint64(0)
    while r + FOUR <= count:
        k = np.uint64(0)
        while k + np.uint64(8) <= width:
            _times_four(x, r, columns, w, width, k, s, zeros(8))
            k += np.uint64(8)
        if k < width:
            _times_four(x, r, columns, w, width, k, s, zeros(4))
        r += FOUR
    for left in range(r, count):
        for k in range(np.uint64(0), width, np.uint64(LANES)):
            sums = zeros(LANES)
            for j in range(columns):
                sums = sums + spread(x[left * columns + j], sums) * load(w, j * width + k, sums)
            store(s, left * width + k, sums)


@helper(cache=True, nogil=True, forceinline=True)
def _times_four(x, r, columns, w, width, k, s, none):
    """The tile of rows r … r + 3 and labels from k on, as many as `none` has lanes."""
    a, b, c, d = none, none, none, none
    one, two, three = columns, columns + columns, columns + columns + columns
    for j in range(columns):
        at, here = r * columns + j, load(w, j * width + k, none)
        a = a + spread(x[at], here) * here
        b = b + spread(x[at + one], here) * here
        c = c + spread(x[at + two], here) * here
        d = d + spread(x[at + three], here) * here
    at = r * width + k
    store(s, at, a)
    store(s, at + width, b)
    store(s, at + width + width, c)
    store(s, at + width + width + width, d)


@helper(cache=True, nogil=True)
def add_transposed(x, count, columns, s, width, pull):
    """pull (columns, width) += xᵀ s, written; all flat."""
    r = np.uint64(0)
    while r + FOUR <= count:
        k = np.uint64(0)
        while k + np.uint64(8) <= width:
            _add_four(x, r, columns, s, width, k, pull, zeros(8))
            k += np.uint64(8)
        if k < width:
            _add_four(x, r, columns, s, width, k, pull, zeros(4))
        r += FOUR
    for left in range(r, count):
        for j in range(columns):
            for k in range(np.uint64(0), width, np.uint64(LANES)):
                here = load(s, left * width + k, zeros(LANES))
                at = j * width + k
                store(pull, at, load(pull, at, here) + spread(x[left * columns + j], here) * here)


@helper(cache=True, nogil=True, forceinline=True)
def _add_four(x, r, columns, s, width, k, pull, none):
    """The share of rows r … r + 3 in the labels from k on, as many as `none` has lanes."""
    at = r * width + k
    a, b = load(s, at, none), load(s, at + width, none)
    c, d = load(s, at + width + width, none), load(s, at + width + width + width, none)
    one, two, three = columns, columns + columns, columns + columns + columns
    for j in range(columns):
        at, to = r * columns + j, j * width + k
        here = load(pull, to, none) + spread(x[at], none) * a + spread(x[at + one], none) * b
        store(pull, to, here + spread(x[at + two], none) * c + spread(x[at + three], none) * d)
