"""Forward-backward with explicit vector registers, for rows of labels padded to a multiple of LANES.

The padded lattice of T tokens is x (T, width) and one table of edges (K, width), flat. LLVM leaves the last
rows of a loop over so few labels to scalar code: this is twice as fast as the plain loops of `lattice.py` at
22 labels. Where scaled probabilities lose their digits the answer is nan: `lattice.py` has the logarithms.

No `reassoc` among the flags: it would reorder the reductions inside of exp_lanes, which was wrong by 0.3.
"""

from math import log
from typing import NamedTuple

import numpy as np
from numba import types

from fenchel._cache import external, helper, njit
from fenchel._lanes import exp_lanes, least, load, smaller, spread, store, total, zeros
from fenchel._packed import bare, packed, tail, type_of
from fenchel.structures import lattice

LANES = np.uint64(8)
ONE = np.uint64(1)
KERNEL = {"cache": True, "nogil": True, "fastmath": {"contract", "arcp", "nsz"}}


@packed
class Labels(NamedTuple):
    """K labels in rows of `width` numbers, and which may follow which."""

    count: np.uint64
    width: np.uint64
    mask: np.ndarray  # (width,) 1 on labels, 0 on padding
    allowed: np.ndarray  # (K·width,) 1 on pairs of labels that can be, 0 on others and on padding

    @classmethod
    def of(cls, K, banned=None):
        width = padded(K)
        mask = (np.arange(width) < K).astype(float)
        allowed = np.tile(mask, (K, 1))
        if banned is not None:
            allowed[:, :K] *= ~banned
        return cls(np.uint64(K), np.uint64(width), mask, allowed.ravel())


@packed
class Room(NamedTuple):
    """Scratch for sequences of at most T tokens; (T, width) but table and turned (K, width), sums (T,).

    Of table and turned there are more where edges are of several kinds: `lattice_kinds.py`.
    """

    nodes: np.ndarray
    alpha: np.ndarray
    gamma: np.ndarray
    sums: np.ndarray
    table: np.ndarray
    turned: np.ndarray
    places: np.ndarray  # (T,) where the table of the edge into each token begins

    @classmethod
    def of(cls, T, K, width, kinds=0):
        tables = np.zeros((1 + kinds) * K * width), np.zeros((1 + kinds) * K * width)
        nodes = np.zeros(T * width), np.zeros(T * width), np.zeros(T * width)
        return cls(*nodes, np.zeros(T), *tables, np.zeros(T, np.uint64))


def padded(K: int) -> int:
    """The width of a row of K labels."""
    return -(-K // int(LANES)) * int(LANES)


@njit(**KERNEL)
def marginals(T, labels, x, edges, room, mu, pairs):
    """Marginals at the scores x (T, width), edges (K, width); mu, pairs written. Returns log Z, or nan."""
    K, width = labels.count, labels.width
    top, lowest_edge = fill_table(labels, edges, room.table, room.turned)
    level, lowest = forward(T, K, width, labels.mask, x, room)
    if lowest + lowest_edge >= -lattice.SPAN:  # exp_lanes clips: a wider step would be another one
        _backward(T, K, width, room, mu, pairs)
        if is_sound(T, width, room.sums, mu):
            return level + top * (float(T) - 1.0)
    return np.nan


NUMBERS = types.CPointer(types.float64)
OF_LABELS, OF_ROOM = type_of(Labels.of(1)), type_of(Room.of(1, 1, int(LANES)))


@external(types.float64(types.uint64, OF_LABELS, NUMBERS, NUMBERS, OF_ROOM, NUMBERS, NUMBERS))
def _marginals(T, labels, x, edges, room, mu, pairs):
    return marginals(T, labels, bare(x), bare(edges), room, bare(mu), bare(pairs))


@helper(**KERNEL)
def marginals_apart(T, labels, x, edges, room, mu, pairs):
    """`marginals` of packed arrays, compiled once for all kernels."""
    return _marginals(T, labels, x.data, edges.data, room, mu.data, pairs.data)


@helper(**KERNEL)
def _largest(x, at, mask, width):
    """Of a row, padding left out."""
    z = zeros(8)
    low = spread(np.inf, z)
    for k in range(np.uint64(0), width, LANES):
        here = load(mask, k, z)
        low = smaller(low, (spread(1.0, z) - here) * spread(1e300, z) - load(x, at + k, z) * here)
    return -least(low)


@helper(**KERNEL)
def fill_table(labels, edges, table, turned):
    """table = e^(edges − top) and its transpose, 0 where pairs cannot be; written.

    Returns top, the largest, and the least less it.
    """
    K, width, z, top = labels.count, labels.width, zeros(8), -np.inf
    low = z
    for a in range(K):
        for k in range(a * width, a * width + K):
            if labels.allowed[k] > 0.0:
                top = max(top, edges[k])
    top = top if top > -np.inf else 0.0
    for a in range(K):
        for k in range(np.uint64(0), width, LANES):
            allowed = load(labels.allowed, a * width + k, z)
            score = (load(edges, a * width + k, z) - spread(top, z)) * allowed
            low = smaller(low, score)
            store(table, a * width + k, exp_lanes(score) * allowed)
        for b in range(K):
            turned[b * width + a] = table[a * width + b]
    return top, least(low)


@helper(**KERNEL)
def _product(x, at, table, K, width, out, to):
    """out[to:to + width] = Σ_j x[at + j] table[j]; written. Two sums at a time hide the latency of one."""
    z, even = zeros(8), K & ~ONE
    for k in range(np.uint64(0), width, LANES):
        p, q = z, z
        for j in range(np.uint64(0), even, np.uint64(2)):
            p = p + spread(x[at + j], z) * load(table, j * width + k, z)
            q = q + spread(x[at + j + ONE], z) * load(table, (j + ONE) * width + k, z)
        if even < K:
            p = p + spread(x[at + even], z) * load(table, even * width + k, z)
        store(out, to + k, p + q)


@helper(**KERNEL)
def forward(T, K, width, mask, x, room):
    """room.alpha scaled to sum to one at each token, room.nodes = e^(x − peak).

    Returns log Z less what edges contribute, and the least of all x − peak. The scales are multiplied up and
    their logarithm taken now and then.
    """
    z, level, scale = zeros(8), 0.0, 1.0
    low = z
    for t in range(T):
        at = t * width
        peak = _largest(x, at, mask, width)
        if t > np.uint64(0):
            table = tail(room.table, room.places[t])
            _product(room.alpha, at - width, table, K, width, room.alpha, at)
        sums = z
        for k in range(np.uint64(0), width, LANES):
            score = (load(x, at + k, z) - spread(peak, z)) * load(mask, k, z)
            low = smaller(low, score)
            node = exp_lanes(score) * load(mask, k, z)
            store(room.nodes, at + k, node)
            node = node * load(room.alpha, at + k, z) if t > np.uint64(0) else node
            store(room.alpha, at + k, node)
            sums = sums + node
        room.sums[t] = total(sums)
        share = spread(1.0 / room.sums[t], z)
        for k in range(np.uint64(0), width, LANES):
            store(room.alpha, at + k, load(room.alpha, at + k, z) * share)
        level += peak
        scale *= room.sums[t]
        if not 1e-200 < scale < 1e200:
            level += log(scale)
            scale = 1.0
    return level + log(scale), least(low)


@helper(**KERNEL)
def _backward(T, K, width, room, mu, pairs):
    """Marginals of nodes (mu) and of the edges summed over the sequence (pairs); both and gamma written."""
    z, at = zeros(8), (T - ONE) * width
    share = spread(1.0 / room.sums[T - ONE], z)
    for k in range(np.uint64(0), width, LANES):
        store(mu, at + k, load(room.alpha, at + k, z))
        store(room.gamma, at + k, load(room.nodes, at + k, z) * share)
    for back in range(ONE, T):
        at = (T - ONE - back) * width
        _product(room.gamma, at + width, room.turned, K, width, mu, at)
        share = spread(1.0 / room.sums[T - ONE - back], z)
        for k in range(np.uint64(0), width, LANES):
            beta = load(mu, at + k, z)
            store(room.gamma, at + k, beta * load(room.nodes, at + k, z) * share)
            store(mu, at + k, beta * load(room.alpha, at + k, z))
    for a in range(np.uint64(0), K, np.uint64(2)):  # two rows share what is loaded of gamma
        other = min(a + ONE, K - ONE)
        for k in range(np.uint64(0), width, LANES):
            p, q = z, z
            for t in range(ONE, T):
                before, after = (t - ONE) * width, load(room.gamma, t * width + k, z)
                p = p + spread(room.alpha[before + a], z) * after
                q = q + spread(room.alpha[before + other], z) * after
            store(pairs, a * width + k, p * load(room.table, a * width + k, z))
            store(pairs, other * width + k, q * load(room.table, other * width + k, z))


@helper(**KERNEL)
def is_sound(T, width, sums, mu):
    """Whether the scaled probabilities kept their digits: no tiny sum, and marginals that sum to one."""
    first, low = 0.0, sums[0]
    for k in range(width):
        first += mu[k]
    for t in range(T):
        low = min(low, sums[t])
    return low > 1e-250 and abs(first - 1.0) < 1e-9


@njit(**KERNEL)
def dot(x, at, y, to, size):
    """⟨x[at:at + size], y[to:to + size]⟩, size a multiple of LANES."""
    z = zeros(8)
    sums = z
    for j in range(np.uint64(0), size, LANES):
        sums = sums + load(x, at + j, z) * load(y, to + j, z)
    return total(sums)
