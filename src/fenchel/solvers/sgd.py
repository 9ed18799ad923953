"""Stochastic gradient descent as in collins2008 7.1.3; with the hinge loss, of subgradients."""

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np

from fenchel._cache import helper, njit
from fenchel.certificates import joined
from fenchel.losses import oracle
from fenchel.solvers.base import State
from fenchel.structures import base

CANDIDATES = (1.0, 0.1, 0.01, 0.001, 0.0001)


@dataclass
class SGDState(State):
    """v the weights; eta0 the chosen rate; mu, visits (n,): vertices averaged (hinge)."""

    v: np.ndarray | None = None
    eta0: float = 0.0
    mu: np.ndarray | None = None
    visits: np.ndarray | None = None
    rng: np.random.Generator | None = None
    steps: int = 0


@dataclass(frozen=True)
class SGD:
    """w ← w − η ∇(n m_i loss_i + λ/2 ‖w‖²) for a random example i, η = eta0/(1 + k/n) after k updates.

    eta0 "search": the best of 1, 0.1, 0.01, 0.001, 0.0001 by the objective after one pass each; those passes
    are counted. With the hinge loss only those of at least 1/(2λn) are tried, else 1/(λn), and the
    certificate rests on the averaged argmax outputs.
    """

    eta0: float | str = "search"
    seed: int = 0
    needs: ClassVar[frozenset] = frozenset({"blocks", "dual", "l2"})
    free_check: ClassVar[bool] = False

    def __post_init__(self):
        if self.eta0 != "search" and not (isinstance(self.eta0, (int, float)) and 0.0 < self.eta0 < np.inf):
            raise ValueError(f"eta0={self.eta0!r} must be 'search' or a positive number")

    def init(self, problem, start):
        state = SGDState(v=problem.weights_at(start), rng=np.random.default_rng(self.seed))
        if problem.loss.hinge:
            state.mu = problem.near_target(0.0)
            state.visits = np.zeros(problem.n)
        state.eta0 = self._search(problem, state) if self.eta0 == "search" else float(self.eta0)
        return state

    def _search(self, problem, state):
        """The candidate of smallest objective after one pass over the same examples, from the same start."""
        order = state.rng.integers(problem.n, size=problem.n)
        candidates = self._candidates(problem)
        best, chosen = np.inf, candidates[-1]
        for candidate in candidates:
            v = self._pass(problem, state, order, candidate, state.v.copy())
            value, _ = problem.value_at(*problem.design.split(v))
            if isfinite(value) and value < best:
                best, chosen = value, candidate
        return chosen

    def _candidates(self, problem):
        """All rates; with the hinge loss those of at least 1/(2λn), or 1/(λn) itself, Pegasos' rate.

        Steps that decrease as 1/k add up too slowly below that, however well the first pass goes.
        """
        if not problem.loss.hinge:
            return CANDIDATES
        slowest = 1.0 / (problem.lam * problem.n)
        return [rate for rate in CANDIDATES if rate >= 0.5 * slowest] or [slowest]

    def step(self, problem, state):
        order = state.rng.integers(problem.n, size=problem.n)
        state.v = self._pass(problem, state, order, state.eta0, state.v, learn=True)
        state.steps += problem.n

    def _pass(self, problem, state, order, eta0, v, learn=False):
        """One pass; v is changed in place and returned. Vertices are averaged only while learning."""
        loss = problem.loss
        nothing = np.zeros((0, *problem.shape[1:]))
        mu, visits = (state.mu, state.visits) if loss.hinge and learn else (nothing, np.zeros(0))
        done = state.steps
        for some in problem.examples.visits(order):
            _epoch(loss, problem.blocks, some, eta0, done, mu, visits, v)
            done += some.size
        state.passes += 1.0
        state.oracle_calls += problem.n
        state.updates += problem.n
        return v

    def point(self, problem, state):
        if not problem.loss.hinge:
            return problem.primal_point(state.v.copy())
        return joined(problem.dual_point(state.mu), problem.bare_point(state.v.copy()))


@njit(cache=True, nogil=True)
def _epoch(loss, blocks, order, eta0, steps, mu, visits, v):
    """Updates over the given order on v = scale·u, so that shrinking all weights costs one multiplication.

    v written; mu and visits (n,) too where visits is not empty: the average of the vertices met, later ones
    weighing more (2/(visits + 1) for the newest).
    """
    n, d = blocks.mass.size, blocks.layout.n_weights
    s, nu, residual = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    scale = 1.0
    for k in range(order.size):
        i = order[k]
        eta = eta0 / (1.0 + (steps + k) / n)
        base.block_scores(blocks, i, v, s)
        for j in range(base.block_length(blocks, i)):
            s[j] *= scale
        oracle(loss, blocks, i, s, nu)
        if visits.size > 0:
            visits[i] += 1.0
            _average(2.0 / (visits[i] + 1.0), nu, base.block_view(blocks, mu, i))
        base.block_residual(blocks, i, nu, residual)
        shrink = max(1.0 - eta * blocks.lam, 1e-3)
        scale *= shrink
        for j in range(d, v.size):  # free of the penalty
            v[j] /= shrink
        weight = eta * n * blocks.mass[i] / scale
        base.block_add(blocks, i, weight, residual, v)
        if scale < 1e-100:
            _rescale(v, scale)
            scale = 1.0
    _rescale(v, scale)


@njit(cache=True)
def _average(newest, nu, mu):
    """μ += newest · (ν − μ); mu written."""
    for j in range(mu.size):
        mu[j] += newest * (nu[j] - mu[j])


@helper(cache=True)
def _rescale(v, scale):
    for j in range(v.size):
        v[j] *= scale
