"""Lists of outputs, a few of each example, and the quadratic program over the list of one of them.

    max over α_i of D(μ),   μ_i = Σ_a α_ia p_ia,   α_i ≥ 0 with Σ_a α_ia = 1

A point p of a list is a sparse vector of parts: an output, as the oracle writes it, or the μ_i of a warm
start. All is done by block kernels, for every structure that has them.
"""

from typing import NamedTuple

import numpy as np
from numba import carray

from fenchel._cache import helper, njit
from fenchel._memory import require_memory
from fenchel._packed import packed, tail
from fenchel.structures import base

SPARE = 5  # extensions after which an output of no weight is dropped; the oracle finds it again if need be


@packed
class Points(NamedTuple):
    """The lists of all n examples, in V slots; the truth is the first of each list.

    A point of 2T − 1 parts takes 12 bytes for each, 40 more, and 8 for every slot of its list.
    """

    members: np.ndarray  # (n + 1,) uint64 where the slots of each example begin
    used: np.ndarray  # (n,) uint64 how many of them hold a point
    entries: np.ndarray  # (V + 1,) uint64 where the room of each slot begins
    sizes: np.ndarray  # (V,) uint64 how many parts its point has
    parts: np.ndarray  # uint32, which numbers of its block are not 0
    values: np.ndarray  # and what they are
    squares: np.ndarray  # (n + 1,) uint64 where the products of each example begin
    products: np.ndarray  # of an example of m slots (m, m): m_i/λ · ⟨A_iᵀ p_a, A_iᵀ p_b⟩
    alpha: np.ndarray  # (V,) weights
    idle: np.ndarray  # (V,) int64, extensions since it had weight


def first_points(problem, mu, warm: bool) -> Points:
    """Lists of the truth and, of a warm start, of its μ_i, which then has all the weight."""
    truth = problem.near_target(0.0)
    points = added(problem, no_points(problem.n), truth)
    if warm:
        points = added(problem, points, mu)
    points.alpha[:] = np.tile([0.0, 1.0], problem.n) if warm else 1.0
    return points


def added(problem, points: Points, found, sizes=None) -> Points:
    """The points, and found_i behind those of each example i with sizes[i] > 0; by default of all."""
    sizes = per_example(problem, found != 0.0).astype(np.uint64) if sizes is None else sizes
    points = with_room(points, sizes, "use slack='1' or sgd")
    _append_all(problem.blocks, found, sizes, points)
    return points


def per_example(problem, values) -> np.ndarray:
    """(n,) the sums of values, one for each part, over the parts of each example."""
    if values.ndim == 2:
        return values.sum(axis=1, dtype=float)
    return np.add.reduceat(values, problem.blocks.layout.offsets[:-1].astype(np.int64), dtype=float)


def no_points(n: int) -> Points:
    """Empty lists."""
    return _room(np.zeros(n, np.int64), np.zeros(0, np.int64))


def aged(points: Points, visited=slice(None)) -> Points:
    """The points, those without weight one extension older; visited: the examples that were extended."""
    once = np.zeros(points.used.size, np.int64)
    once[visited] = 1
    return points._replace(idle=np.where(points.alpha > 0.0, 0, points.idle + once[_owners(points)]))


def with_room(old: Points, sizes, advice: str) -> Points:
    """The points but those long idle, and a free slot for sizes[i] parts behind those of each example."""
    place = np.arange(old.alpha.size) - old.members[:-1].astype(np.int64)[_owners(old)]
    keep = (old.idle <= SPARE) & (place < old.used.astype(np.int64)[_owners(old)]) | (place == 0)
    kept = np.bincount(_owners(old)[keep], minlength=sizes.size)
    counts = kept + (sizes > 0)
    room, free = np.zeros(int(counts.sum()), np.int64), np.zeros(int(counts.sum()), bool)
    free[(np.cumsum(counts) - 1)[sizes > 0]] = True
    room[free], room[~free] = sizes[sizes > 0], old.sizes[keep]
    needed = 12 * int(room.sum()) + 8 * int(np.square(counts).sum()) + 40 * room.size
    require_memory(needed, f"lists of {room.size} outputs", advice)
    new = _room(counts, room)
    _copy_all(old, keep, new)
    return new


def _room(counts, room) -> Points:
    """Slots for so many points of each example, and of so many parts each; none is used."""
    members = _starts(counts)
    squares, entries = _starts(np.square(counts)), _starts(room)
    return Points(
        members=members,
        used=np.zeros(counts.size, np.uint64),
        entries=entries,
        sizes=np.zeros(room.size, np.uint64),
        parts=np.empty(int(entries[-1]), np.uint32),
        values=np.empty(int(entries[-1])),
        squares=squares,
        products=np.empty(int(squares[-1])),
        alpha=np.zeros(room.size),
        idle=np.zeros(room.size, np.int64),
    )


def _starts(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)


def _owners(points: Points) -> np.ndarray:
    """(V,) the example of each slot."""
    counts = np.diff(points.members.astype(np.int64))
    return np.repeat(np.arange(counts.size), counts)


@helper(cache=True, nogil=True)
def size_of(point):
    count = np.uint64(0)
    for j in range(point.size):
        count += np.uint64(point[j] != 0.0)
    return count


@njit(cache=True, nogil=True)
def _copy_all(old, keep, new):
    """Fill `new` with the points kept, in their order; written."""
    for i in range(old.used.size):
        width, before = new.members[i + 1] - new.members[i], old.members[i + 1] - old.members[i]
        for p in range(before):
            if not keep[old.members[i] + p]:
                continue
            a = new.members[i] + new.used[i]
            _copy(old, old.members[i] + p, new, a)
            row, q = new.squares[i] + new.used[i] * width, np.uint64(0)
            for p2 in range(before):
                if keep[old.members[i] + p2]:
                    new.products[row + q] = old.products[old.squares[i] + p * before + p2]
                    q += np.uint64(1)
            new.used[i] += np.uint64(1)


@helper(cache=True, nogil=True)
def _copy(old, b, new, a):
    """Point a of the one is point b of the other; new written."""
    for e in range(old.sizes[b]):
        new.parts[new.entries[a] + e] = old.parts[old.entries[b] + e]
        new.values[new.entries[a] + e] = old.values[old.entries[b] + e]
    new.sizes[a], new.alpha[a], new.idle[a] = old.sizes[b], old.alpha[b], old.idle[b]


@njit(cache=True, nogil=True)
def _append_all(blocks, found, sizes, points):
    """Append found_i for each example i with sizes[i] > 0; points written."""
    zeros, pulled = np.zeros(blocks.size), np.empty(blocks.size)
    for i in range(sizes.size):
        if sizes[i] > np.uint64(0):
            append(blocks, i, base.block_view(blocks, found, i), zeros, pulled, points)


@helper(cache=True, nogil=True)
def append(blocks, i, point, zeros, pulled, points):
    """Put what is not 0 of `point` into the free slot of example i, with its products; points written.

    zeros, pulled (blocks.size,): zeros, and room for m_i/λ · A_i A_iᵀ p.
    """
    a, size = points.members[i] + points.used[i], np.uint64(0)
    for j in range(point.size):
        if point[j] != 0.0:
            at = points.entries[a] + size
            points.parts[at], points.values[at] = j, point[j]
            size += np.uint64(1)
    points.sizes[a], points.alpha[a], points.idle[a] = size, 0.0, 0
    base.block_move(blocks, i, blocks.mass[i] / blocks.lam, point, zeros, pulled)
    width, last = points.members[i + 1] - points.members[i], points.used[i]
    for b in range(last + np.uint64(1)):
        product = product_with(points, points.members[i] + b, pulled)
        points.products[points.squares[i] + last * width + b] = product
        points.products[points.squares[i] + b * width + last] = product
    points.used[i] += np.uint64(1)


@helper(cache=True, nogil=True)
def product_with(points, a, s):
    """⟨s, p_a⟩; its parts in ascending order, as those of an output are added up."""
    total = 0.0
    for e in range(points.entries[a], points.entries[a] + points.sizes[a]):
        total += points.values[e] * s[points.parts[e]]
    return total


@helper(cache=True, nogil=True)
def best_inside(points, i, s):
    """The largest score of the points of example i."""
    inside = -np.inf
    for a in range(points.members[i], points.members[i] + points.used[i]):
        inside = max(inside, product_with(points, a, s))
    return inside


@njit(cache=True, nogil=True)
def go_over(blocks, order, enough, points, mu, v, gaps):
    """Solve the program of each example in turn; points, mu, v, gaps (n,) written.

    gaps: over the lists, as met, and 0 where a list holds the truth alone.
    """
    s, delta = np.empty(blocks.size), np.empty(blocks.size)
    for i in order:
        gaps[i] = 0.0
        if points.used[i] > np.uint64(1):
            base.block_scores(blocks, i, v, s)
            base.block_augment(blocks, i, s, delta)
            gaps[i] = improve(blocks, i, s, enough, points, base.block_view(blocks, mu, i), delta, v)


@helper(cache=True, nogil=True)
def improve(blocks, i, s, enough, points, mu, delta, v):
    """Solve the program of example i at the scores s, cost added; points, mu, delta, v written.

    Returns the gap over its list.
    """
    first = points.members[i]
    used, width = np.int64(points.used[i]), np.int64(points.members[i + 1] - first)
    alpha, top, mean = carray(tail(points.alpha, first).data, used), -np.inf, 0.0
    slopes = np.empty(used)
    for a in range(alpha.size):
        slopes[a] = product_with(points, first + np.uint64(a), s)
        top = max(top, slopes[a])
        mean += slopes[a] * alpha[a]
    gram = carray(tail(points.products, points.squares[i]).data, (width, width))
    if solve_simplex(gram, slopes, alpha, enough):
        _put(blocks, i, points, mu, delta, v)
    return max(top - mean, 0.0)


@njit(cache=True, nogil=True)
def solve_simplex(gram, slopes, alpha, enough):
    """max ⟨c, α⟩ − ½ αᵀGα over the simplex, by pairs that violate optimality most, until by `enough` at most.

    slopes = c − Gα at the first α. slopes, alpha (T,) written; returns whether alpha has changed.
    """
    changed = False
    for _ in range(1000 * alpha.size):
        up, down = 0, -1
        for t in range(alpha.size):
            up = t if slopes[t] > slopes[up] else up
            if alpha[t] > 0.0 and (down < 0 or slopes[t] < slopes[down]):
                down = t
        violation = slopes[up] - slopes[down]
        if violation <= max(enough, 1e-13 * (abs(slopes[up]) + abs(slopes[down]))):
            break
        changed = True
        curvature = gram[up, up] + gram[down, down] - 2.0 * gram[up, down]
        moved = violation / curvature if violation < curvature * alpha[down] else alpha[down]
        alpha[down] = alpha[down] - moved if moved < alpha[down] else 0.0
        alpha[up] += moved
        for t in range(alpha.size):
            slopes[t] += moved * (gram[t, down] - gram[t, up])
    total = 0.0  # many small moves drift, and a point off the simplex has a bound that is none
    for t in range(alpha.size):
        total += alpha[t]
    for t in range(alpha.size):
        alpha[t] /= total
    return changed


@helper(cache=True, nogil=True)
def _put(blocks, i, points, mu, delta, v):
    """μ_i = Σ α p, and w(μ) with it; mu, delta, v written."""
    for j in range(mu.size):
        delta[j], mu[j] = mu[j], 0.0
    for a in range(points.members[i], points.members[i] + points.used[i]):
        if points.alpha[a] > 0.0:
            for e in range(points.entries[a], points.entries[a] + points.sizes[a]):
                mu[points.parts[e]] += points.alpha[a] * points.values[e]
    for j in range(mu.size):
        delta[j] -= mu[j]
    base.block_add(blocks, i, blocks.mass[i] / blocks.lam, delta, v)
