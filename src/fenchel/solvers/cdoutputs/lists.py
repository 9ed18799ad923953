"""Outputs held one by one: for every structure whose outputs are worth a plane."""

import numpy as np

from fenchel._cache import helper, njit
from fenchel.losses import block_gap, oracle
from fenchel.solvers import outputs
from fenchel.solvers.dual import RENEWAL
from fenchel.structures import base

MOST = 3  # outputs that a visit adds to a list at most: some on the way to that of the oracle, and that


class Lists:
    """A list of outputs for each example, their weights, and μ and v = w(μ) that these make."""

    def __init__(self, problem, mu=None):
        """At a warm start's μ, or at the truth."""
        self.mu = problem.near_target(0.0) if mu is None else mu
        self.v = problem.proximal_weights(self.mu)
        self.points = outputs.first_points(problem, self.mu, mu is not None)
        self.room = _most_parts(problem)

    def visit(self, problem, order, least: float, gaps) -> None:
        """Ask the oracle for each example of the order, and solve its program; gaps (n,) written.

        least: a violation that is not worth a place in the list.
        """
        room = np.zeros(problem.n, np.uint64)
        room[order] = self.room[order]
        self.points = outputs.with_room(outputs.aged(self.points, order), room, "use sgd", MOST)
        arrays = self.points, self.room, self.mu, self.v, gaps
        _visit_all(problem.loss, problem.blocks, order, least, *arrays)

    def go_over(self, problem, rng, enough: float) -> tuple[float, float]:
        """A cheap pass: solve the program of each list that has more than the truth, to `enough`.

        Returns the gap over the lists as met, and the visits made, as a share of the examples.
        """
        order = rng.permutation(np.flatnonzero(self.points.used > 1))
        gaps = np.zeros(problem.n)
        outputs.go_over(problem.blocks, order, enough, self.points, self.mu, self.v, gaps)
        return float(problem.examples.mass @ gaps), order.size / problem.n

    def refresh(self, problem, epochs: int) -> None:
        """Now and then w(μ) anew: what is kept up by increments drifts by rounding."""
        if epochs % RENEWAL == 0:
            self.v = problem.proximal_weights(self.mu)

    def dual(self, problem) -> float:
        """D(μ)."""
        return problem.dual(self.mu, self.v)

    def point(self, problem):
        """The certificate at w(μ), computed anew."""
        return problem.dual_point(self.mu)

    def marginals(self) -> np.ndarray:
        """μ."""
        return self.mu


def _most_parts(problem):
    """(n,) as many parts as the truth counts: no other output has more, or room is made when it is met."""
    return np.ceil(outputs.per_example(problem, problem.near_target(0.0)) - 1e-9).astype(np.uint64)


@njit(cache=True, nogil=True)
def _visit_all(loss, blocks, order, least, points, room, mu, v, gaps):
    """One visit of each example of the order; points, room, mu, v, gaps written."""
    s, nu, old = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    zeros, delta, pieces = np.zeros(blocks.size), np.empty(blocks.size), np.zeros(blocks.size, np.uint64)
    for i in order:
        mu_i = base.block_view(blocks, mu, i)
        base.block_scores(blocks, i, v, s)
        value = oracle(loss, blocks, i, s, nu)
        gaps[i] = block_gap(loss, blocks, i, s, nu, mu_i, value, np.nan)
        top, found = 0.0, nu[: mu_i.size]
        for j in range(found.size):
            if found[j] != 0.0:
                top += found[j] * s[j]
        size = outputs.size_of(found)
        if top - outputs.best_inside(points, i, s) > least:
            if size <= room[i]:
                _extend(blocks, i, s, found, old[: mu_i.size], pieces, zeros, delta, points)
            else:
                room[i] = size
        outputs.improve(blocks, i, s, 0.1 * gaps[i], points, mu_i, delta, v)


@helper(cache=True, nogil=True)
def _extend(blocks, i, s, found, old, pieces, zeros, delta, points):
    """Append `found`, and before it outputs on the way there from the worst that has weight; points written.

    Where the two differ in several pieces these are exchanged one by one, the one that gains most first: the
    program over the list can then move other masses for each piece. old, pieces, delta: room.
    """
    count = base.block_pieces(blocks, i, found, old, pieces) if _read_worst(points, i, s, old) else 1
    gains = np.zeros(count + 1)
    for j in range(found.size if count > 1 else 0):
        if pieces[j] > np.uint64(0):
            gains[pieces[j]] += s[j] * (found[j] - old[j])
    for left in range(min(count, MOST) - 1, -1, -1):
        piece = 1
        for other in range(2, count + 1):
            piece = other if gains[other] > gains[piece] else piece
        gains[piece] = -1.0
        for j in range(found.size):
            if left == 0 or pieces[j] == np.uint64(piece):
                old[j] = found[j]
        outputs.append(blocks, i, old, zeros, delta, points)


@helper(cache=True, nogil=True)
def _read_worst(points, i, s, old):
    """The point of least score that has weight, old written; returns whether it is an output."""
    worst, least = points.members[i], np.inf
    for a in range(points.members[i], points.members[i] + points.used[i]):
        value = outputs.product_with(points, a, s)
        if points.alpha[a] > 0.0 and value < least:
            worst, least = a, value
    for j in range(old.size):
        old[j] = 0.0
    for e in range(points.entries[worst], points.entries[worst] + points.sizes[worst]):
        if points.values[e] != 1.0:
            return False
        old[points.parts[e]] = 1.0
    return True
