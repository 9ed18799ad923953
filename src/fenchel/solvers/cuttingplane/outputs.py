"""Working sets of outputs made of several parts: too many to list, so those in the sets are held one by one.

A point of a set is a sparse vector of parts: an output, as the oracle writes it, or the μ_i of a warm start.
All is done by block kernels, for every structure that has them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel._memory import require_memory
from fenchel.losses import block_gap, oracle
from fenchel.solvers.cuttingplane.outcomes import WorkingSets, solve_simplex
from fenchel.structures import base

SPARE = 5  # extensions after which an output of no weight is dropped; the oracle finds it again if need be


class Points(NamedTuple):
    """The sets of all n examples, V points in all; the truth is the first of each.

    A point of 2T − 1 parts takes 12 bytes for each, 32 more, and 8 for every point of its set.
    """

    members: np.ndarray  # (n + 1,) uint64 where the points of each example begin
    entries: np.ndarray  # (V + 1,) uint64 where the parts of each point begin
    parts: np.ndarray  # uint32, which numbers of its block are not 0
    values: np.ndarray  # and what they are
    squares: np.ndarray  # (n + 1,) uint64 where the products of each example begin
    products: np.ndarray  # of an example of m points (m, m): m_i/λ · ⟨A_iᵀ p_a, A_iᵀ p_b⟩
    alpha: np.ndarray  # (V,) weights
    idle: np.ndarray  # (V,) int64, extensions since it had weight


@dataclass
class OutputSets(WorkingSets):
    """points: the outputs in the sets and their weights α, Σ α p = μ."""

    points: Points | None = None
    BYTES = 8 + 8  # mu, and as many numbers for what an extension finds

    def fill(self, problem, warm: bool) -> None:
        truth = problem.near_target(0.0)
        self._add(problem, _no_points(problem.n), truth, _sizes(problem.blocks, truth))
        self.points.alpha[:] = 1.0
        if warm:
            self._add(problem, self.points, self.mu, _sizes(problem.blocks, self.mu))
            self.points.alpha[:] = np.tile([0.0, 1.0], problem.n)

    def extend(self, problem, least: float) -> float:
        self.oracle_calls += problem.n
        found, sizes = np.empty(problem.shape), np.zeros(problem.n, np.uint64)
        gap = _find(problem.loss, problem.blocks, least, self.points, self.mu, self.v, found, sizes)
        self.points = self.points._replace(idle=np.where(self.points.alpha > 0.0, 0, self.points.idle + 1))
        self._add(problem, self.points, found, sizes)
        return gap

    def reoptimise(self, problem, enough: float) -> float:
        return _go_over(problem.blocks, enough, self.points, self.mu, self.v)

    def _add(self, problem, old: Points, found, sizes) -> None:
        """The points of `old` but those long idle, and one found for each example i with sizes[i] > 0."""
        keep = old.idle <= SPARE
        keep[old.members[:-1][np.diff(old.members) > 0]] = True  # the truth
        kept = np.bincount(_owners(old)[keep], minlength=problem.n)
        counts = kept + (sizes > 0)
        parts = int(np.diff(old.entries)[keep].sum() + sizes.sum())
        squares = int(np.square(counts).sum())
        needed = 12 * parts + 8 * squares + 32 * int(counts.sum())
        require_memory(needed, f"working sets of {counts.sum()} outputs", "use slack='1' or sgd")
        self.points = _room(counts, parts)
        _merge(problem.blocks, old, keep, found, sizes, self.points)


def _no_points(n: int) -> Points:
    return _room(np.zeros(n, np.int64), 0)


def _room(counts, parts: int) -> Points:
    """Arrays for so many points of each example, with so many parts in all; none of weight."""
    members = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
    squares = np.concatenate([[0], np.cumsum(np.square(counts))]).astype(np.uint64)
    total = int(members[-1])
    return Points(
        members=members,
        entries=np.zeros(total + 1, np.uint64),
        parts=np.empty(parts, np.uint32),
        values=np.empty(parts),
        squares=squares,
        products=np.empty(int(squares[-1])),
        alpha=np.zeros(total),
        idle=np.zeros(total, np.int64),
    )


def _owners(points: Points) -> np.ndarray:
    """(V,) the example of each point."""
    counts = np.diff(points.members.astype(np.int64))
    return np.repeat(np.arange(counts.size), counts)


@njit(cache=True, nogil=True)
def _sizes(blocks, found):
    """(n,) how many numbers of each block are not 0."""
    sizes = np.zeros(blocks.mass.size, np.uint64)
    for i in range(sizes.size):
        sizes[i] = _size(base.block_view(blocks, found, i))
    return sizes


@helper(cache=True, nogil=True)
def _size(point):
    count = np.uint64(0)
    for j in range(point.size):
        count += np.uint64(point[j] != 0.0)
    return count


@helper(cache=True, nogil=True)
def _product(points, a, s):
    """⟨s, p_a⟩; its parts in ascending order, as `_find` adds them up."""
    total = 0.0
    for e in range(points.entries[a], points.entries[a + np.uint64(1)]):
        total += points.values[e] * s[points.parts[e]]
    return total


@njit(cache=True, nogil=True)
def _find(loss, blocks, least, points, mu, v, found, sizes):
    """The output each example violates most, and its size, or 0 if its set has one nearly as good.

    found like mu, sizes (n,) written. Returns the duality gap.
    """
    s, gap = np.empty(blocks.size), 0.0
    for i in range(sizes.size):
        nu = base.block_view(blocks, found, i)
        base.block_scores(blocks, i, v, s)
        value = oracle(loss, blocks, i, s, nu)
        mu_i = base.block_view(blocks, mu, i)
        gap += blocks.mass[i] * block_gap(loss, blocks, i, s, nu, mu_i, value, np.nan)
        top, inside = 0.0, -np.inf
        for j in range(nu.size):
            if nu[j] != 0.0:
                top += nu[j] * s[j]
        for a in range(points.members[i], points.members[i + 1]):
            inside = max(inside, _product(points, a, s))
        sizes[i] = _size(nu) if top - inside > least else np.uint64(0)
    return gap


@njit(cache=True, nogil=True)
def _merge(blocks, old, keep, found, sizes, new):
    """Fill `new` with the points kept, in their order, each example's new one behind them."""
    zeros, pulled = np.zeros(blocks.size), np.empty(blocks.size)
    for i in range(sizes.size):
        a = _copy(old, i, keep, new)
        if sizes[i] > np.uint64(0):
            point = base.block_view(blocks, found, i)
            _append(point, a, new)
            base.block_move(blocks, i, blocks.mass[i] / blocks.lam, point, zeros, pulled)
            _multiply(new, i, a, pulled)


@helper(cache=True, nogil=True)
def _copy(old, i, keep, new):
    """The points of example i that are kept and their products; new written. Returns where the next goes."""
    one, before = np.uint64(1), old.members[i + 1] - old.members[i]
    a, width = new.members[i], new.members[i + 1] - new.members[i]
    for p in range(before):
        b = old.members[i] + p
        if not keep[b]:
            continue
        at = new.entries[a]
        for e in range(old.entries[b + one] - old.entries[b]):
            new.parts[at + e] = old.parts[old.entries[b] + e]
            new.values[at + e] = old.values[old.entries[b] + e]
        new.entries[a + one] = at + old.entries[b + one] - old.entries[b]
        new.alpha[a], new.idle[a] = old.alpha[b], old.idle[b]
        row, q = new.squares[i] + (a - new.members[i]) * width, np.uint64(0)
        for p2 in range(before):
            if keep[old.members[i] + p2]:
                new.products[row + q] = old.products[old.squares[i] + p * before + p2]
                q += one
        a += one
    return a


@njit(cache=True, nogil=True)
def _append(point, a, new):
    """Point a = what is not 0 of `point`; new written."""
    at = new.entries[a]
    for j in range(point.size):
        if point[j] != 0.0:
            new.parts[at], new.values[at] = j, point[j]
            at += np.uint64(1)
    new.entries[a + np.uint64(1)] = at


@njit(cache=True, nogil=True)
def _multiply(new, i, a, pulled):
    """Row and column of the products of point a, the last of example i; pulled = m_i/λ · A_i A_iᵀ p_a."""
    first, width = new.members[i], new.members[i + 1] - new.members[i]
    for b in range(first, a + np.uint64(1)):
        product = _product(new, b, pulled)
        new.products[new.squares[i] + (a - first) * width + b - first] = product
        new.products[new.squares[i] + (b - first) * width + a - first] = product


@njit(cache=True, nogil=True)
def _go_over(blocks, enough, points, mu, v):
    """Solve the program of each example in turn; alpha, mu, v written. Returns the gap over them as met."""
    s, delta = np.empty(blocks.size), np.empty(blocks.size)
    gap = 0.0
    for i in range(blocks.mass.size):
        first, last = points.members[i], points.members[i + 1]
        count = np.int64(last - first)
        if count == 1:
            continue
        base.block_scores(blocks, i, v, s)
        base.block_augment(blocks, i, s, delta)
        alpha, slopes, top, mean = points.alpha[first:last], np.empty(count), -np.inf, 0.0
        for a in range(count):
            slopes[a] = _product(points, first + np.uint64(a), s)
            top = max(top, slopes[a])
            mean += slopes[a] * alpha[a]
        gap += blocks.mass[i] * (top - mean)
        gram = points.products[points.squares[i] : points.squares[i + 1]].reshape((count, count))
        if solve_simplex(gram, slopes, alpha, enough):
            _put(blocks, i, points, base.block_view(blocks, mu, i), delta, v)
    return gap


@helper(cache=True, nogil=True)
def _put(blocks, i, points, mu, delta, v):
    """μ_i = Σ α p, and w(μ) with it; mu, delta, v written."""
    for j in range(mu.size):
        delta[j], mu[j] = mu[j], 0.0
    for a in range(points.members[i], points.members[i + 1]):
        if points.alpha[a] > 0.0:
            for e in range(points.entries[a], points.entries[a + np.uint64(1)]):
                mu[points.parts[e]] += points.alpha[a] * points.values[e]
    for j in range(mu.size):
        delta[j] -= mu[j]
    base.block_add(blocks, i, blocks.mass[i] / blocks.lam, delta, v)
