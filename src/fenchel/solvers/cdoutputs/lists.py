"""Outputs held one by one: for every structure whose outputs are worth a plane."""

import numpy as np

from fenchel._cache import njit
from fenchel.losses import block_gap, oracle
from fenchel.solvers import outputs
from fenchel.solvers.dual import RENEWAL
from fenchel.structures import base


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
        self.points = outputs.with_room(outputs.aged(self.points, order), room, "use sgd")
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
    s, nu = np.empty(blocks.size), np.empty(blocks.size)
    zeros, delta = np.zeros(blocks.size), np.empty(blocks.size)
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
                outputs.append(blocks, i, found, zeros, delta, points)
            else:
                room[i] = size
        outputs.improve(blocks, i, s, 0.1 * gaps[i], points, mu_i, delta, v)
