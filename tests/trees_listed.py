"""Projective trees listed one by one, in the order of heads."""

from functools import cache
from itertools import product

import numpy as np


def is_tree(heads, single):
    """Whether every word gets to the root, no two arcs cross, and the root has as many words as it may."""
    if single and heads.count(0) != 1:
        return False
    for word in range(1, len(heads) + 1):
        for _ in range(len(heads)):
            word = heads[word - 1] if word else 0
        if word:
            return False
    arcs = [(min(arc), max(arc)) for arc in enumerate(heads, 1)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


@cache
def trees(n, single):
    """(trees, n) heads."""
    choices = [[h for h in range(n + 1) if h != m] for m in range(1, n + 1)]
    return np.array([heads for heads in product(*choices) if is_tree(heads, single)])


@cache
def parts(n, single):
    """(trees, n·n): which arcs each tree has, in the order of `eisner.py`."""
    heads = trees(n, single)
    out = np.zeros((len(heads), n * n))
    for m in range(n):
        out[np.arange(len(heads)), m * n + heads[:, m] - (heads[:, m] > m + 1)] = 1.0
    return out
