"""The fastest way through a block of labels: Newton on the multiplier of Σ_k p_k = 1.

Labels crossed with attributes, scores s = x W. The block sub-problem, yu2011 (42), from q = μ_i with
c = m_i‖x_i‖²/λ is

    min_p F(p) = Σ_k p_k log p_k + c/2 ‖p − q‖² − ⟨s, p⟩  over the simplex

whose solution has log p_k + c(p_k − q_k) − s_k = ν for all k, ν the multiplier.

The arrays of this file have `width` columns, K rounded up to a multiple of LANES; those beyond K are padding,
zero in W and mu. Logarithms of mu are kept, so that no step takes more than one.
"""

from math import exp, log, log1p

import numpy as np

from fenchel._cache import helper, njit
from fenchel._lanes import exp_lanes, larger, largest, load, spread, store, total, zeros
from fenchel._math import REORDER, TINY
from fenchel._prefetch import prefetch, prefetch_row
from fenchel._sparse import column, row_begin, row_end
from fenchel.solvers.dual import Due

LANES = 4  # labels handled side by side: one AVX2 register
FLOOR = log(TINY)  # no log-probability is smaller, so that none is lost to underflow
ABSENT = -1e30  # the score of a label that is padding
ACCEPT = 0.1  # share of the block's progress that an inexact solution may leave
NEWTONS = 8  # joint Newton steps before the sub-problem goes to the slow, safe solver
AHEAD = np.uint64(16)  # entries between asking for a row of W and using it
CACHED = 1 << 16  # a W of up to this many entries (half a megabyte) stays in the second-level cache
GROWTH = 4.0  # of the gap of an example that is left out, per pass


class Lanes:
    """The dual variables, their logarithms and the weights, padded; and which examples a pass visits.

    The gap of an example was met[i] when last visited. To visit those that are due halves the visits to a gap
    of 1e-6 on MNIST, and saves a third on 20newsgroups.
    """

    def __init__(self, mu, v, room=np.empty):
        """room(shape): an array for dual variables."""
        n, self.labels = mu.shape
        self.width = -(-self.labels // LANES) * LANES
        self.mu, self.v = self._pad(mu, room), self._pad(v.reshape(-1, self.labels))
        self.logs = room(self.mu.shape)
        self.logs[:] = FLOOR
        np.log(np.maximum(mu, TINY), out=self.logs[:, : self.labels])
        self.met, self.due = np.zeros(n), Due(n, GROWTH)

    def _pad(self, array, room=np.empty):
        padded = room((array.shape[0], self.width))
        padded[:, : self.labels] = array
        padded[:, self.labels :] = 0.0
        return padded

    def unpadded(self, array):
        """`mu` or `v` as everybody else knows it."""
        return np.ascontiguousarray(array[:, : self.labels])

    def set_weights(self, v):
        """Replace the weights."""
        self.v[:, : self.labels] = v.reshape(-1, self.labels)

    @property
    def free_weights(self):
        """β, the last row, as a view."""
        return self.v[-1, : self.labels]

    def epoch(self, problem, order, fresh):
        """One pass over the examples that are due, all of them the first time; returns visits and the gap."""
        order = order if fresh or not self.met.any() else self.due.among(order, self.met)
        for some in problem.examples.visits(order):
            _epoch(problem.blocks, some, fresh, self.mu, self.logs, self.v.reshape(-1), self.met)
        return order.size, float(np.sum(problem.examples.mass * self.met))


@njit(cache=True, nogil=True)
def _epoch(blocks, order, fresh, mu, logmu, w, met):
    """One pass over the examples of `order`; mu, logmu, w and met written.

    met (n,): KL(μ_i ‖ softmax(x_i W)) as the pass met it, before its update; untouched where not visited.
    fresh: w does not hold the examples' first residuals y_i − μ_i yet; each is added with its first update.
    """
    rows, targets, columns = blocks.layout.rows, blocks.outcomes.targets, mu.shape[1]
    s, p, t, r = np.empty(columns), np.empty(columns), np.empty(columns), np.empty(columns)
    stars, logs = mu.reshape(-1), logmu.reshape(-1)
    for o in range(order.size):
        i = order[o]
        _prefetch_example(blocks, order[min(o + 1, order.size - 1)], mu, logmu)
        _scores(rows, i, w, s)
        _add_tail(blocks, i, w, s)
        step, at = blocks.mass[i] / blocks.lam, i * np.uint64(columns)
        met[i] = _block(step * blocks.layout.norms[i], s, stars, logs, at, p, t, r)
        _replace(0.0 if fresh else step, step, p, t, stars, logs, at, r)
        if fresh:
            for e in range(targets.indptr[i], targets.indptr[i + 1]):
                r[targets.indices[e]] += step * targets.data[e]
        for k in range(blocks.size, columns):
            r[k] = 0.0
        _add(rows, i, r, w)
        _keep_tail(blocks, r, w)


@helper(cache=True, nogil=True, forceinline=True)
def _prefetch_example(blocks, i, mu, logmu):
    """Bring what the next step needs into the cache: its rows are far apart in a random order."""
    prefetch_row(blocks.layout.rows, i)
    prefetch(blocks.mass, i)
    prefetch(blocks.layout.norms, i)
    begin, end = i * np.uint64(mu.shape[1]), (i + np.uint64(1)) * np.uint64(mu.shape[1])
    for k in range(begin, end, 8):
        prefetch(mu.reshape(-1), k)
        prefetch(logmu.reshape(-1), k)


@helper(cache=True, nogil=True)
def _add_tail(blocks, i, w, s):
    """s += what free offsets contribute, and ABSENT for padding; s written."""
    columns, size = np.uint64(s.size), np.uint64(blocks.size)
    if blocks.layout.constant > 0.0:
        begin = np.uint64(w.size) - columns
        for k in range(size):
            s[k] += blocks.layout.constant * w[begin + k]
    for k in range(size, columns):
        s[k] = ABSENT


@helper(cache=True, nogil=True)
def _keep_tail(blocks, r, w):
    """The same update for the weights of the constant feature; w written."""
    if blocks.layout.constant > 0.0:
        columns = np.uint64(r.size)
        begin = np.uint64(w.size) - columns
        for k in range(columns):
            w[begin + k] += blocks.layout.constant * r[k]


# x_i W and W += x_i ⊗ r are most of the time: sums stay in registers, up to 16 labels in a walk along a row.
@njit(cache=True, nogil=True, forceinline=True)
def _scores(rows, i, w, s):
    """s = x_i W; w is W flat, s (width,) written."""
    columns, k = np.uint64(s.size), np.uint64(0)
    while k + np.uint64(16) <= columns:
        store(s, k, _scores_tile(rows, i, w, columns, k, zeros(16)))
        k += np.uint64(16)
    left = columns - k
    if left == np.uint64(12):
        store(s, k, _scores_tile(rows, i, w, columns, k, zeros(12)))
    elif left == np.uint64(8):
        store(s, k, _scores_tile(rows, i, w, columns, k, zeros(8)))
    elif left == np.uint64(4):
        store(s, k, _scores_tile(rows, i, w, columns, k, zeros(4)))


@helper(cache=True, nogil=True, forceinline=True)
def _scores_tile(rows, i, w, columns, k, sums):
    """sums + x_i W[:, k:k + lanes of sums].

    Where W outgrows the cache, its rows are asked for AHEAD of their use.
    """
    end = row_end(rows, i)
    for e in range(row_begin(rows, i), end):
        if w.size > CACHED:
            f = column(rows, i, min(e + AHEAD, end - np.uint64(1))) * columns + k
            prefetch(w, f)
            prefetch(w, min(f + np.uint64(8), np.uint64(w.size - 1)))
        at = column(rows, i, e) * columns + k
        sums = sums + spread(rows.data[e], sums) * load(w, at, sums)
    return sums


@njit(cache=True, nogil=True, forceinline=True)
def _add(rows, i, r, w):
    """W += x_i ⊗ r; w is W flat, written."""
    columns, k = np.uint64(r.size), np.uint64(0)
    while k + np.uint64(16) <= columns:
        _add_tile(rows, i, load(r, k, zeros(16)), columns, k, w)
        k += np.uint64(16)
    left = columns - k
    if left == np.uint64(12):
        _add_tile(rows, i, load(r, k, zeros(12)), columns, k, w)
    elif left == np.uint64(8):
        _add_tile(rows, i, load(r, k, zeros(8)), columns, k, w)
    elif left == np.uint64(4):
        _add_tile(rows, i, load(r, k, zeros(4)), columns, k, w)


@helper(cache=True, nogil=True, forceinline=True)
def _add_tile(rows, i, step, columns, k, w):
    """W[:, k:k + lanes of step] += x_i ⊗ step."""
    for e in range(row_begin(rows, i), row_end(rows, i)):
        at = column(rows, i, e) * columns + k
        store(w, at, load(w, at, step) + spread(rows.data[e], step) * step)


@njit(cache=True, nogil=True, forceinline=True)
def _replace(before, step, p, t, mu, logmu, at, r):
    """Row `at` of flat mu and logmu becomes p and its logarithms t; r = before·μ_i − step·p written."""
    for k in range(np.uint64(0), np.uint64(p.size), np.uint64(LANES)):
        new, old = load(p, k, zeros(LANES)), load(mu, at + k, zeros(LANES))
        store(r, k, spread(before, new) * old - spread(step, new) * new)
        store(mu, at + k, new)
        store(logmu, at + k, load(t, k, zeros(LANES)))


@njit(cache=True, nogil=True, forceinline=True)
def _block(c, s, mu, logmu, at, p, t, r):
    """Minimise F from q, row `at` of flat mu; p and its logarithms t written, r is room.

    Newton on all log p_k and ν together, from q. With e_k = log p_k + c(p_k − q_k) − s_k and h_k = 1 + c p_k
    a step is

        log p_k ← log p_k + Δ_k,   Δ_k = (ν − e_k)/h_k,   ν such that Σ p_k Δ_k = 0

    after which p is divided by its sum z. Before that, e_k = ν + c p_k(exp Δ_k − 1 − Δ_k) exactly, and these
    terms sum to c(z − 1): F, strongly convex with constant c, is then within about c(z − 1)² of its minimum.
    The step is accepted when that is little of the decrease in reach at q, about the Newton decrement
    Σ p_k h_k Δ_k² there. One step does it nearly always, and at once for c = 0, whose solution is softmax(s).
    Returns KL(q ‖ softmax(s)).
    """
    met, reach, accepted = _start(s, mu, logmu, at, p, t, r), 0.0, False
    for newton in range(NEWTONS):
        top, decrement = _step(c, p, t, r)
        if newton == 0:
            reach = decrement
        mass = _normalise(top, p, t)
        excess = mass * exp(min(top, 300.0)) - 1.0
        accepted = c * excess * excess <= ACCEPT * reach + c * 1e-26  # the latter is rounding
        if accepted:
            break
        _residual(c, s, mu, at, p, t, r)
    if not accepted:
        _solve_safely(c, s, mu[at : at + np.uint64(s.size)], p, t)
    return met


@njit(cache=True, nogil=True, forceinline=True)
def _start(s, mu, logmu, at, p, t, r):
    """p = q, t = log q, r = t − s written. Returns KL(q ‖ softmax(s)) = log Σ exp(s + Σ q r), or some 700."""
    mean, mass = zeros(LANES), zeros(LANES)
    for k in range(np.uint64(0), np.uint64(s.size), np.uint64(LANES)):
        q, logs = load(mu, at + k, mean), load(logmu, at + k, mean)
        residual = logs - load(s, k, mean)
        mean = mean + q * residual
        store(p, k, q)
        store(t, k, logs)
        store(r, k, residual)
    level = spread(total(mean), mean)
    for k in range(np.uint64(0), np.uint64(s.size), np.uint64(LANES)):
        mass = mass + (exp_lanes(load(s, k, mass) + level) - load(p, k, mass))
    return max(log1p(total(mass)), 0.0)


@njit(cache=True, nogil=True, forceinline=True)
def _step(c, p, t, r):
    """t ← t + Δ, the Newton step at p with the residual e = r; t written. Returns the largest t, Σ p h Δ²."""
    weights, sums = zeros(LANES), zeros(LANES)
    one, slope = spread(1.0, weights), spread(c, weights)
    for k in range(np.uint64(0), np.uint64(p.size), np.uint64(LANES)):
        here = load(p, k, one)
        weight = here / (one + slope * here)
        weights = weights + weight
        sums = sums + weight * load(r, k, one)
    nu = spread(total(sums) / total(weights), one)
    decrement, top, floor = zeros(LANES), spread(FLOOR, one), spread(FLOOR, one)
    for k in range(np.uint64(0), np.uint64(p.size), np.uint64(LANES)):
        here, off = load(p, k, one), nu - load(r, k, one)
        delta = off / (one + slope * here)
        decrement = decrement + here * delta * off
        moved = larger(load(t, k, one) + delta, floor)
        top = larger(top, moved)
        store(t, k, moved)
    return largest(top), total(decrement)


@helper(cache=True, nogil=True, forceinline=True)
def _normalise(top, p, t):
    """t ← t − log Σ exp t and p = exp t, of sum one, written; top the largest t. Returns Σ exp(t − top)."""
    sums = zeros(LANES)
    level = spread(top, sums)
    for k in range(np.uint64(0), np.uint64(p.size), np.uint64(LANES)):
        value = exp_lanes(load(t, k, sums) - level)
        sums = sums + value
        store(p, k, value)
    mass = total(sums)
    level, scale = spread(top + log(mass), sums), spread(1.0 / mass, sums)
    floor, tiny = spread(FLOOR, sums), spread(TINY, sums)
    for k in range(np.uint64(0), np.uint64(p.size), np.uint64(LANES)):
        store(t, k, larger(load(t, k, sums) - level, floor))
        store(p, k, larger(load(p, k, sums) * scale, tiny))
    return mass


@helper(cache=True, nogil=True, forceinline=True)
def _residual(c, s, mu, at, p, t, r):
    """r = t + c(p − q) − s written."""
    slope = spread(c, zeros(LANES))
    for k in range(np.uint64(0), np.uint64(s.size), np.uint64(LANES)):
        change = load(p, k, slope) - load(mu, at + k, slope)
        store(r, k, load(t, k, slope) + slope * change - load(s, k, slope))


@helper(cache=True, nogil=True, fastmath=REORDER)
def _solve_safely(c, s, q, p, t):
    """Minimise F to rounding, from anywhere; p and t = log p written.

    Σ_k p_k(ν) − 1 with log p_k + c p_k = s_k + c q_k − ν falls and is convex in ν, so that Newton on ν climbs
    to its root from any ν left of it: ν = max_k (s_k + c q_k) − c, where the largest p_k is 1.
    """
    top = s[0] + c * q[0]
    for k in range(1, s.size):
        top = max(top, s[k] + c * q[k])
    nu = -c
    for _ in range(1000):
        mass, slope = 0.0, 0.0
        for k in range(s.size):
            t[k], p[k] = _omega(c, s[k] + c * q[k] - top - nu)
            mass += p[k]
            slope += p[k] / (1.0 + c * p[k])
        new = nu + (mass - 1.0) / slope
        if not new > nu:  # rounding has ended the climb
            break
        nu = new
    for k in range(s.size):
        p[k] = max(p[k] / mass, TINY)
        t[k] = max(t[k] - log(mass), FLOOR)


@helper(cache=True, nogil=True)
def _omega(c, a):
    """(log p, p) with log p + c p = a, c > 0: c p is Wright's ω at z = a + log c.

    Newton in log p descends from the right. ω ≤ z for z ≥ 1, and log p ≤ a always.
    """
    z = a + log(c)
    t = log(z / c) if z > 1.0 else a
    if t < FLOOR:
        return FLOOR, TINY
    for _ in range(50):
        p = exp(t)
        move = (t + c * p - a) / (1.0 + c * p)
        t -= move
        if not move > 1e-16 * max(abs(t), 1.0):
            break
    return t, exp(t)
