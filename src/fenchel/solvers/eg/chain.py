"""Exponentiated gradient for chains: what makes a visit of a sentence cheap.

The same steps as `solver.py` takes, one sentence at a time, on arrays arranged for them (`sentences.py`):

  * rows of w by frequency: most uses fall on few rows, which then stay in the cache;
  * an attribute of one token only needs no row: it adds c x² (y_t − μ_t) to the scores of that token,
    c = m_i/λ (CoNLL-2000: 65 % of the attributes; w shrinks from 64 to 22 MB);
  * A_iᵀδ is gathered row by row of the sentence: a trial of a rate reads and writes each row once;
  * where some weights are not there, rows fall into tiles of 8, and tiles without weights are not there
    (CoNLL-2000: 8 of the 22 MB are left); the mask is a bit a weight, applied to what is gathered;
  * what the next sentence needs is asked for while this one is visited;
  * with an L1 term v = u/λ is kept, and weights are read through its soft threshold; the dual grows by at
    least what the quadratic bound of the L2 case says, which is the test of a step;
  * labels in explicit vector registers, `lattice_lanes.py`.

A pass over CoNLL-2000 takes 0.2 s where the general kernels take 0.6 s. The certificate comes from the same
arrays, with w(μ) computed anew: `problem.proven_point` says what it rests on.
"""

from copy import copy

import numpy as np

from fenchel._cache import helper, njit
from fenchel._lanes import load, spread, store, total, zeros
from fenchel._packed import tail
from fenchel._prefetch import prefetch
from fenchel.solvers.eg import weights
from fenchel.solvers.eg.edges import marginals_of, true_pairs
from fenchel.solvers.eg.kinds import OneKind
from fenchel.solvers.eg.proximal import Centre, best_bound, proximal_penalty
from fenchel.solvers.eg.sentences import arrange
from fenchel.solvers.eg.weights import Dual, Scratch
from fenchel.structures.lattice_lanes import KERNEL, LANES, ONE, Room, dot

FASTER, SLOWER = 1.05, 0.5  # what becomes of a rate after a step, and after a refused trial
PAIRS = 2**30  # bytes up to which μ of edges is kept: beyond, each visit computes it again from θ
# The centre moves while a gap is at most so many times the proximal penalty, half as many after a move that
# was longer than the one before. Dutch names, to CRFsuite's objective after 100 iterations: 7.8 passes for
# c1 = c2 = .1 and 7.2 for 1, .001 (11.0 and 10.0 at 1 from the start); always at 30, small sets never settle.
TRUST = 30.0
LEAST = 0.1  # what is left of a rate if none would do: a vanishing one would end it for good


def keeps_pairs(problem) -> bool:
    """Whether μ of the edges is kept beside θ."""
    return 8 * problem.n * problem.structure.labels**2 <= PAIRS


def zeros_by_lines(size: int) -> np.ndarray:
    """Zeros that begin with a line of the cache, 64 bytes: a tile of eight then lies in one line, not two."""
    room = np.zeros(size + 7)
    begin = -(room.ctypes.data // 8) % 8
    return room[begin : begin + size]


class Arrangement:
    """A chain problem's examples and dual variables in the layout of these kernels."""

    def __init__(self, problem):
        self.kappa = proximal_penalty(problem) if problem.used_elsewhere is None else 0.0
        self.lam = problem.lam + self.kappa
        self.sentences, self.origin = arrange(problem, self.lam, vectors=True)
        self.single = self.sentences.single.copy()
        width, K, N = int(self.sentences.labels.width), problem.structure.labels, problem.examples.y.size
        edges, of_tiles = problem.n * K * width, self.origin.tiles.size * int(self.sentences.tile)
        kept, numbers = edges if keeps_pairs(problem) else 0, int(self.sentences.begins[-1])
        sizes = numbers, numbers, edges, kept, problem.n, of_tiles, K * width, K * width, N
        self.dual = Dual(*map(zeros_by_lines, sizes))
        self.centre = Centre(self.dual, self.kappa / self.lam) if self.kappa > 0.0 else None
        self.farthest, self.trust = np.inf, TRUST  # the distance of the last move, and as TRUST says
        self.room = self._new_room()

    def _new_room(self) -> tuple[Room, Scratch]:
        """For a thread."""
        d = self.sentences
        K, width, longest = int(d.labels.count), int(d.labels.width), int(np.diff(d.starts).max(initial=0))
        kinds = 0 if isinstance(d.kinds, OneKind) else int(np.diff(d.kinds.starts).max(initial=0))
        sizes = [int(np.diff(d.begins).max(initial=0))] * 4 + [K * width] * 4
        return Room.of(longest, K, width, kinds), Scratch(*map(np.zeros, sizes))

    def begin_ahead(self, problem, first: float) -> None:
        """θ with the true label of each token ahead of the others by first · its cost."""
        d, K, width = self.sentences, problem.structure.labels, int(self.sentences.labels.width)
        together = isinstance(d.kinds, OneKind)  # no strips of kinds between the nodes of sentences
        nodes = self.dual.theta.reshape(-1, width) if together else np.zeros((d.y.size, width))
        np.multiply(-first, problem.examples.cost[:, None], out=nodes[:, :K])
        nodes[np.arange(d.y.size), d.y] = 0.0
        if not together:
            self.dual.theta[d.places[:, None] + np.arange(width)] = nodes

    def begin_at(self, problem, theta: np.ndarray) -> None:
        """θ as given in the problem's own layout."""
        offsets = problem.structure.offsets(problem.examples.starts)
        weights.fill(self.sentences, self.origin, offsets, theta, self.dual.theta, self.dual.edge_theta)

    def settle(self, problem, entropies) -> bool:
        """μ and its entropies at θ, and w(μ). False where θ lies too far apart for these kernels."""
        fixed = self.sentences, self.dual

        def part(start, stop):
            weights.settle_all(*fixed, *self._new_room(), np.uint64(start), np.uint64(stop), entropies)

        if self.dual.edge_mu.size > 0:  # else `weigh` does it
            problem.design.for_each_part(problem.n, problem.design.work, part)
        self.weigh(entropies)
        return not np.isnan(entropies).any()

    def weigh(self, entropies) -> None:
        """v, and with it the weights, anew."""
        if self.centre is None:
            self.dual.v[:], self.dual.edge_v[:] = 0.0, 0.0
        else:
            self.centre.restore(self.dual)
        weights.weigh(self.sentences, self.dual, *self.room, entropies)

    def visit(self, order, most_trials, rates, entropies, gaps) -> tuple[int, int]:
        """One step for each sentence of the order; rates, entropies, gaps (n,) written.

        Returns trials, and how many of them scores too far apart for these kernels ended.
        """
        fixed = self.sentences, self.dual, *self.room, order.astype(np.uint64), most_trials
        return _visit_all(*fixed, rates, entropies, gaps)

    def penalty(self) -> float:
        """λ/2 ‖w‖²: what the dual has beside the entropies, as near as the centre is."""
        return 0.5 * (self.lam - self.kappa) * weights.squared_norm(self.sentences, self.dual)

    def follow(self, gap: float) -> float:
        """Move the centre, if there is one, to the weights; returns κ/2 ‖w − w₀‖² as it was.

        gap: of the proximal problem, as met in the pass. Where it is many times that, sentences left out have
        not answered to the last move yet: it waits.
        """
        if self.centre is None:
            return 0.0
        distance = 0.5 * self.kappa * self.centre.squared_distance(self.sentences, self.dual)
        if gap <= self.trust * distance:
            self.trust = self.trust if distance <= self.farthest else max(0.5 * self.trust, 1.0)
            self.centre.follow(self.sentences, self.dual, settled=gap <= distance)
            self.farthest = distance
        return distance

    def point(self, problem, entropies):
        """The certificate at w(μ), computed anew: what is kept up by increments drifts.

        None where scores lie too far apart for these kernels.
        """
        self.weigh(entropies)
        value, gap, moved = self._sums(problem, entropies)
        if np.isnan(value):
            return None
        if self.centre is None:
            return problem.proven_point(self.weights(problem), value, gap, moved)
        fixed = self.sentences, self.dual, self.centre, self.lam
        return problem.bounded_point(
            self.weights(problem), value, best_bound(problem, *fixed, entropies, moved), moved
        )

    def _sums(self, problem, entropies) -> tuple[float, float, float]:
        """Σ m_i loss_i, Σ m_i · block gap, Σ m_i ‖y_i − μ_i‖₁ at the weights; or nan, as of `point`."""
        mass, fixed = problem.examples.mass, (self.sentences, self.dual)

        def part(start, stop):
            return _certify(*fixed, *self._new_room(), np.uint64(start), np.uint64(stop), mass, entropies)

        parts = problem.design.for_each_part(problem.n, problem.design.work, part)
        return tuple(map(sum, zip(*parts, strict=True)))

    def theta(self, problem) -> np.ndarray:
        """θ as the problem lays it out."""
        out, offsets = np.empty(problem.shape), problem.structure.offsets(problem.examples.starts)
        weights.collect(self.sentences, self.origin, offsets, self.dual.theta, self.dual.edge_theta, out)
        return out

    def weights(self, problem, v=None) -> np.ndarray:
        """w in the problem's own layout; v: what those have that no sentence uses."""
        w = np.zeros(problem.dim) if v is None else v.copy()
        weights.export(self.sentences, self.origin, self.dual, self.room[1], w)
        if problem.structure.transitions:
            K, labels = problem.structure.labels, self.origin.labels.astype(np.int64)
            w[-K * K :].reshape(K, K)[np.ix_(labels, labels)] = self.dual.table.reshape(K, -1)[:, :K]
        return w

    # ---- at a place among others: `distributed/visiting.py`

    def __deepcopy__(self, memo) -> "Arrangement":
        """With a θ of its own; what θ tells is shared until `settle` computes it anew."""
        other, theta, edges = copy(self), self.dual.theta, self.dual.edge_theta
        other.dual = self.dual._replace(
            theta=zeros_by_lines(theta.size), edge_theta=zeros_by_lines(edges.size)
        )
        other.dual.theta[:], other.dual.edge_theta[:] = theta, edges
        return other

    def set_out(self, problem, v) -> None:
        """Go on from the common weights v with the problem's λ/σ′.

        An attribute that one token of all places has is nobody else's: its σ′ is 1, and its weights are those
        of the residual.
        """
        self.sentences.rates[:] = problem.examples.mass / problem.lam
        self.sentences.single[:] = self.single * (problem.lam / self.lam)
        weights.enter(self.sentences, self.origin, v, self.dual.v)
        if problem.structure.transitions:
            K, labels = problem.structure.labels, self.origin.labels.astype(np.int64)
            table = v[-K * K :].reshape(K, K)[np.ix_(labels, labels)]
            for edges in (self.dual.edge_v, self.dual.table):
                edges.reshape(K, -1)[:, :K] = table

    def come_back(self, problem, v) -> np.ndarray:
        """The weights after visits that began at v; those of one token's attributes as if with σ′ too."""
        w, K, own = self.weights(problem, v), problem.structure.labels, self.origin.own.astype(np.int64)
        w.reshape(-1, K)[own] -= (self.lam / problem.lam - 1.0) * v.reshape(-1, K)[own]
        return w

    def share(self, problem, entropies) -> np.ndarray:
        """What these sentences add to the common weights, anew."""
        self.sentences.rates[:], self.sentences.single[:] = problem.examples.mass / problem.lam, self.single
        self.weigh(entropies)
        return self.weights(problem)

    def sums_at(self, problem, v, entropies) -> tuple[float, float, float]:
        """`Problem.value_and_gap` at the common weights v."""
        self.set_out(problem, v)
        return self._sums(problem, entropies)


@njit(**KERNEL)
def _certify(d, q, room, scratch, start, stop, mass, entropies):
    """Σ m_i loss_i, Σ m_i · block gap, Σ m_i ‖y_i − μ_i‖₁ over start ≤ i < stop, at w; room, scratch written.

    The gap of a block is loss_i + ⟨A_i w, y_i − μ_i⟩ − H(μ_i): lepriol2018 (11).
    """
    s, nu, pairs, delta, edge_delta = scratch.s, scratch.nu, scratch.pairs, scratch.delta, scratch.edge_delta
    zero, value, gap, moved = np.uint64(0), 0.0, 0.0, 0.0
    for i in range(start, stop):
        size = d.begins[i + ONE] - d.begins[i]
        weights.residual(d, i, q, delta)
        weights.edge_residual(d, i, *_edges_before(d, i, q, room, scratch), edge_delta)
        weights.scores(d, i, q, delta, s)
        level = marginals_of(d, i, s, q.table, room, nu, pairs)
        loss = level - _truth(d, i, q, s)
        loss = 0.0 if loss < 0.0 else loss  # nan stays
        along = dot(s, zero, delta, zero, size)
        along += dot(q.table, zero, edge_delta, zero, np.uint64(q.table.size))
        value += mass[i] * loss
        gap += mass[i] * max(loss - along - entropies[i], 0.0)
        for j in range(size):
            moved += mass[i] * abs(delta[j])
        for j in range(q.table.size):
            moved += mass[i] * abs(edge_delta[j])
    return value, gap, moved


@helper(**KERNEL)
def _edges_before(d, i, q, room, scratch):
    """(array, where in it) of μ of the edges of sentence i, at θ where that is not kept; scratch written."""
    at, pairs = weights.edge_marginals(d, i, q, scratch)
    if q.edge_mu.size == 0:
        x, edges = tail(q.theta, d.begins[i]), tail(q.edge_theta, i * np.uint64(q.table.size))
        marginals_of(d, i, x, edges, room, scratch.nu, pairs)
    return pairs, at


@helper(**KERNEL)
def _truth(d, i, q, s):
    """The score of the true labels."""
    first, width, score = d.starts[i], d.labels.width, true_pairs(d, i, s)
    for t in range(d.starts[i + ONE] - first):
        score += s[t * width + d.y[first + t]]
        if t > np.uint64(0):
            score += q.table[d.y[first + t - ONE] * width + d.y[first + t]]
    return score


# ---- a step


@helper(**KERNEL)
def _blend(theta, at, s, rate, size, x):
    """x = θ + rate (s − θ); written."""
    z = zeros(8)
    share = spread(rate, z)
    for j in range(np.uint64(0), size, LANES):
        old = load(theta, at + j, z)
        store(x, j, old + share * (load(s, j, z) - old))


@helper(**KERNEL)
def _compare(theta, mu, at, mu_at, size, s, x, nu, delta):
    """delta = ν − μ, written; returns ⟨s, δ⟩, ⟨θ, δ⟩ and ⟨x, ν⟩; θ, μ from at and mu_at on."""
    z = zeros(8)
    linear, here, inner = z, z, z
    for j in range(np.uint64(0), size, LANES):
        new = load(nu, j, z)
        change = new - load(mu, mu_at + j, z)
        store(delta, j, change)
        linear = linear + load(s, j, z) * change
        here = here + load(theta, at + j, z) * change
        inner = inner + load(x, j, z) * new
    return total(linear), total(here), total(inner)


@helper(**KERNEL)
def _copy(x, size, out, at):
    z = zeros(8)
    for j in range(np.uint64(0), size, LANES):
        store(out, at + j, load(x, j, z))


@helper(**KERNEL)
def _fetch(d, i, q):
    """Ask for the rows of sentence i, and for its dual variables, before they are needed."""
    edge_size = np.uint64(q.table.size)
    for u in range(d.uses.starts[i], d.uses.starts[i + ONE]):
        for k in range(np.uint64(0), d.tile, LANES):
            prefetch(q.v, np.uint64(d.uses.tiles[u]) * d.tile + k)
    for j in range(d.begins[i], d.begins[i + ONE], LANES):
        prefetch(q.theta, j)
        prefetch(q.mu, j)
    for j in range(i * edge_size, (i + ONE) * edge_size, LANES):
        prefetch(q.edge_theta, j)
        if q.edge_mu.size > 0:
            prefetch(q.edge_mu, j)


@njit(**KERNEL)
def _visit_all(d, q, room, scratch, order, most_trials, rates, entropies, gaps):
    """collins2008 Figure 3 over the order; q, rates, entropies, gaps written.

    Returns the trials made, and how many came to nothing because scores lay too far apart.
    """
    trials, lost = 0, 0
    for k in range(order.size):
        if k + 1 < order.size:
            _fetch(d, order[k + 1], q)
        more, failed = _visit(d, order[k], most_trials, q, room, scratch, rates, entropies, gaps)
        trials, lost = trials + more, lost + failed
    return trials, lost


@helper(inline="always", **KERNEL)  # its code is compiled once, as part of the loop
def _visit(d, i, most_trials, q, room, scratch, rates, entropies, gaps):
    """One step for sentence i: the rate is halved until the dual does not fall. Returns trials and losses."""
    s, x, nu, edges, pairs = scratch.s, scratch.x, scratch.nu, scratch.edges, scratch.pairs
    delta, edge_delta = scratch.delta, scratch.edge_delta
    edge_size, c = np.uint64(q.table.size), d.rates[i]
    at, size, edge_at = d.begins[i], d.begins[i + ONE] - d.begins[i], i * edge_size
    before, lost = rates[i], 0
    weights.difference(d, i, q, delta)
    weights.scores(d, i, q, delta, s)
    edges_before, before_at = _edges_before(d, i, q, room, scratch)
    for trial in range(most_trials):
        _blend(q.theta, at, s, rates[i], size, x)
        _blend(q.edge_theta, edge_at, q.table, rates[i], edge_size, edges)
        level = marginals_of(d, i, x, edges, room, nu, pairs)
        if np.isnan(level):
            lost += 1
            rates[i] *= SLOWER
            continue
        linear, here, inner = _compare(q.theta, q.mu, at, at, size, s, x, nu, delta)
        of_edges = q.table, edges, pairs, edge_delta
        more, there, outer = _compare(q.edge_theta, edges_before, edge_at, before_at, edge_size, *of_edges)
        linear, here = linear + more, here + there
        # v changes at once: nearly all trials are steps, and to gather twice costs more than a way back
        square = weights.pull(d, i, c, delta, q.v)
        square += weights.of_single(d, i, delta) + weights.edge_square(d, edge_delta)
        entropy = weights.entropy_of(level, inner, outer)
        if entropy - entropies[i] + linear - 0.5 * c * square >= -1e-13 * (1.0 + abs(level)):
            gaps[i] = max(0.5 * (linear - here) / rates[i], 0.0)
            rates[i] = min(1.0, FASTER * rates[i])
            entropies[i], q.levels[i] = entropy, level
            _copy(x, size, q.theta, at)
            _copy(nu, size, q.mu, at)
            _copy(edges, edge_size, q.edge_theta, edge_at)
            if q.edge_mu.size > 0:
                _copy(pairs, edge_size, q.edge_mu, edge_at)
            weights.take_edges(d, i, edge_delta, q)
            return trial + 1, lost
        weights.pull(d, i, -c, delta, q.v)
        rates[i] *= SLOWER
    rates[i] = LEAST * before
    return most_trials, lost
