"""Dense numbers of tokens, in the layout of `sentences.py`: products that read no index.

The rows of labels of these columns are the first tiles, in order, so that what is said of tiles holds for
them too; no strip lists them. Four tokens share what is loaded of the weights, four columns what is loaded
of the dual variables. Kernels are picked by the type of d.vectors: without any nothing of this is compiled.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from fenchel._cache import helper
from fenchel._dispatch import kernel_by_type
from fenchel._lanes import kept, larger, load, smaller, spread, store, total, zeros
from fenchel._packed import packed
from fenchel.structures.lattice_lanes import KERNEL, LANES, ONE

by_vectors = partial(kernel_by_type, field="vectors")
ZERO, FOUR = np.uint64(0), np.uint64(4)


@packed
class NoVectors(NamedTuple):
    """All attributes are sparse."""


@packed
class Vectors(NamedTuple):
    """A row of numbers for each token."""

    data: np.ndarray  # (N·columns,)
    columns: np.uint64
    tiles: np.uint64  # of a column


@by_vectors
def vector_scores(d, i, v, s):
    """s (T, width) = x W; written. Without vectors s is left as it is."""


@by_vectors
def first_sum(d, s, at, none):
    """The lanes that a sum of scores begins with: what `vector_scores` left at s[at:], or none."""


@by_vectors
def pull_vectors(d, i, c, delta, v):
    """v −= c xᵀδ where there are weights; v written. Returns ‖xᵀδ‖² of them."""


@vector_scores.implement(NoVectors)
def _no_scores(d, i, v, s):
    pass


@first_sum.implement(NoVectors)
def _none(d, s, at, none):
    return none


@pull_vectors.implement(NoVectors)
def _no_pull(d, i, c, delta, v):
    return 0.0


@vector_scores.implement(Vectors)
def _vector_scores(d, i, v, s):
    return times_weights(d, i, v, s)


@first_sum.implement(Vectors)
def _first_sum(d, s, at, none):
    return load(s, at, none)


@pull_vectors.implement(Vectors)
def _pull_vectors(d, i, c, delta, v):
    return add_transposed(d, i, c, delta, v)


@helper(**KERNEL)
def times_weights(d, i, v, s):
    T, width, columns = d.starts[i + ONE] - d.starts[i], d.labels.width, d.vectors.columns
    first = d.starts[i] * columns
    if d.implied:
        for t in range(T):
            store(s, t * width + d.tile, zeros(8))
    for b in range(d.vectors.tiles):
        for k in range(ZERO, d.tile, LANES):
            t, to = ZERO, b * d.tile + k
            while t + FOUR <= T:
                _four_tokens(d, first + t * columns, v, to, s, t * width + to)
                t += FOUR
            for left in range(t, T):
                _one_token(d, first + left * columns, v, to, s, left * width + to)


@helper(**KERNEL)
def _four_tokens(d, x, v, label, s, to):
    """Scores of four tokens, whose numbers begin at x, for the eight labels from `label` on; s written."""
    z, columns, width = zeros(8), d.vectors.columns, d.labels.width
    a, b, c, e = z, z, z, z
    stride = d.vectors.tiles * d.tile
    one, two, three = columns, columns + columns, columns + columns + columns
    for j in range(columns):
        w, at = _weight(d, v, j * stride + label), x + j
        a = a + spread(d.vectors.data[at], z) * w
        b = b + spread(d.vectors.data[at + one], z) * w
        c = c + spread(d.vectors.data[at + two], z) * w
        e = e + spread(d.vectors.data[at + three], z) * w
    store(s, to, a)
    store(s, to + width, b)
    store(s, to + width + width, c)
    store(s, to + width + width + width, e)


@helper(**KERNEL)
def _one_token(d, x, v, label, s, to):
    z, stride = zeros(8), d.vectors.tiles * d.tile
    sums = z
    for j in range(d.vectors.columns):
        sums = sums + spread(d.vectors.data[x + j], z) * _weight(d, v, j * stride + label)
    store(s, to, sums)


@helper(**KERNEL)
def _weight(d, v, at):
    """soft(v, threshold), eight of them."""
    z = zeros(8)
    w = load(v, at, z)
    if d.threshold > 0.0:
        w = w - smaller(larger(w, spread(-d.threshold, z)), spread(d.threshold, z))
    return w


@helper(**KERNEL)
def add_transposed(d, i, c, delta, v):
    square, tiles = 0.0, d.vectors.tiles
    for b in range(tiles):
        for k in range(ZERO, d.tile, LANES):
            j, label = ZERO, b * d.tile + k
            while j + FOUR <= d.vectors.columns:
                square += _four_columns(d, i, c, j, label, delta, v)
                j += FOUR
            for left in range(j, d.vectors.columns):
                square += _one_column(d, i, c, left, label, delta, v)
    return square


@helper(**KERNEL)
def _four_columns(d, i, c, j, label, delta, v):
    z, width, columns = zeros(8), d.labels.width, d.vectors.columns
    p, q, r, s = z, z, z, z
    for t in range(d.starts[i + ONE] - d.starts[i]):
        here, at = load(delta, t * width + label, z), (d.starts[i] + t) * columns + j
        p = p + spread(d.vectors.data[at], z) * here
        q = q + spread(d.vectors.data[at + ONE], z) * here
        r = r + spread(d.vectors.data[at + ONE + ONE], z) * here
        s = s + spread(d.vectors.data[at + ONE + ONE + ONE], z) * here
    square = _take(d, c, j, label, p, v) + _take(d, c, j + ONE, label, q, v)
    return square + _take(d, c, j + ONE + ONE, label, r, v) + _take(d, c, j + ONE + ONE + ONE, label, s, v)


@helper(**KERNEL)
def _one_column(d, i, c, j, label, delta, v):
    z, width = zeros(8), d.labels.width
    sums = z
    for t in range(d.starts[i + ONE] - d.starts[i]):
        x = d.vectors.data[(d.starts[i] + t) * d.vectors.columns + j]
        sums = sums + spread(x, z) * load(delta, t * width + label, z)
    return _take(d, c, j, label, sums, v)


@helper(**KERNEL)
def _take(d, c, j, label, sums, v):
    """v −= c · sums of column j where there are weights, written; returns their squared norm."""
    z, at = zeros(8), j * d.vectors.tiles * d.tile + label
    if d.masked:
        sums = kept(d.keep, at // d.tile, sums)
    store(v, at, load(v, at, z) - spread(c, z) * sums)
    of_implied = total(sums) ** 2 if d.implied else 0.0
    return total(sums * sums) + of_implied
