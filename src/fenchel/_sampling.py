"""Draw an index in proportion to weights that change one at a time: O(log n) to change, O(log n) to draw.

A binary tree in one array: leaves at tree[size:], and each inner node k combines nodes 2k and 2k + 1,
by their sum (to draw) or by their maximum (to find the largest).
"""

import numpy as np

from fenchel._cache import njit


@njit(cache=True)
def make_tree(weights, largest):
    """The tree over the weights; `largest` combines by maximum instead of sum."""
    size = 1
    while size < weights.size:
        size *= 2
    tree = np.zeros(2 * size)
    for i in range(weights.size):  # a slice assignment takes three seconds to compile
        tree[size + i] = weights[i]
    for k in range(size - 1, 0, -1):
        left, right = tree[2 * k], tree[2 * k + 1]
        tree[k] = max(left, right) if largest else left + right
    return tree


@njit(cache=True)
def set_weight(tree, i, weight, largest):
    """Give index i a new weight; tree written."""
    k = tree.size // 2 + i
    tree[k] = weight
    k //= 2
    while k > 0:
        left, right = tree[2 * k], tree[2 * k + 1]
        tree[k] = max(left, right) if largest else left + right
        k //= 2


@njit(cache=True)
def draw(tree, u):
    """The index at fraction u ∈ [0, 1) of the total weight; an index of weight zero is never drawn."""
    size = tree.size // 2
    k, rest = 1, u * tree[1]
    while k < size:
        k *= 2
        if rest >= tree[k] and tree[k + 1] > 0.0:
            rest -= tree[k]
            k += 1
    return k - size


def draw_many(tree, n, u):
    """The same for an array of fractions u and weights of 0 … n − 1 that stay as they are meanwhile."""
    ends = np.cumsum(tree[tree.size // 2 : tree.size // 2 + n])
    return np.searchsorted(ends[:-1], u * ends[-1], "right")


@njit(cache=True)
def find_largest(tree):
    """The first index of largest weight, in a tree of maxima."""
    size = tree.size // 2
    k = 1
    while k < size:
        k *= 2
        if tree[k] < tree[k + 1]:
            k += 1
    return k - size
