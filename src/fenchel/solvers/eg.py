"""Exponentiated gradient on the dual: collins2008 Figures 1 to 3, yu2011 Algorithm 8."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from fenchel._math import TINY
from fenchel.solvers.blocks import DualSolver, DualState
from fenchel.structures import base

FIRST_SCORE = 10.0  # θ of the true outcome at the start; the others are 0
FASTER, SLOWER = 1.05, 0.5
TRIALS = 30  # halvings of a rate before a step is given up


@dataclass
class EGState(DualState):
    """theta (n, size): μ_i is the marginals at θ_i; rates (n,), one per example (batch: one for all)."""

    theta: np.ndarray | None = None
    rates: np.ndarray | None = None


@dataclass(frozen=True)
class EG(DualSolver):
    """Multiplies the dual variables by e^{−η·gradient}: an addition to their scores θ.

        log:    θ_i ← θ_i − η (θ_i − A_i w)        hinge:  θ_i ← θ_i + η (cost_i + A_i w)

    batch=False visits one example at a time, "random" or "cyclic" order; each has its own rate, which starts
    at `eta`, is halved until the dual increases, and grows by 5 % after (7.1). batch=True moves all at once.
    """

    order: str = "random"
    batch: bool = False
    eta: float = 0.5
    seed: int = 0
    needs: ClassVar[frozenset] = frozenset({"blocks", "dual"})

    def __post_init__(self):
        if self.order not in {"random", "cyclic"}:
            raise ValueError(f"order={self.order!r}; there are 'random', 'cyclic'")
        if not 0.0 < self.eta < np.inf:
            raise ValueError(f"eta={self.eta!r} must be a positive number")

    def init(self, problem, start):
        theta = np.empty((problem.n, problem.structure.block_size))
        fresh = np.empty_like(theta)
        _first(problem.blocks, theta, fresh)
        mu = self.first_mu(problem, start, fresh)
        if mu is not fresh:
            theta = np.log(np.maximum(mu, TINY))
        rates = np.full(1 if self.batch else problem.n, self.eta)
        rng = np.random.default_rng(self.seed)
        return EGState(mu=mu, v=self.first_v(problem, mu), rng=rng, theta=theta, rates=rates)

    def step(self, problem, state):
        gap = self._batch_step(problem, state) if self.batch else self._online_step(problem, state)
        state.updates += problem.n
        self.settle_offset(problem, state)
        self.refresh(problem, state)
        self.note_gap(problem, state, gap)

    def _online_step(self, problem, state):
        n = problem.n
        order = state.rng.integers(n, size=n) if self.order == "random" else np.arange(n)
        hinge = problem.loss.name == "hinge"
        trials, gap = _epoch(problem.blocks, hinge, order, state.theta, state.mu, state.rates, state.v)
        state.passes += trials / n
        state.oracle_calls += trials
        return gap

    def _batch_step(self, problem, state):
        """Figure 1: one rate for all, halved until the dual increases."""
        hinge = problem.loss.name == "hinge"
        offset = state.v[problem.dim]
        before = self._dual_at(problem, state.mu, state.v)
        theta, mu = np.empty_like(state.theta), np.empty_like(state.mu)
        for _ in range(TRIALS):
            gap = _move_all(problem.blocks, hinge, state.rates[0], state.theta, state.mu, state.v, theta, mu)
            v = problem.augmented_of(mu, offset)
            state.passes += 1.0
            state.oracle_calls += problem.n
            if self._dual_at(problem, mu, v) >= before:
                state.theta, state.mu, state.v = theta, mu, v
                state.rates[0] *= FASTER
                return gap
            state.rates[0] *= SLOWER
        state.stalled = True
        return gap

    def _dual_at(self, problem, mu, v):
        """D(μ) as the dual solvers see it: the free offset fixed, its constraint priced."""
        w, _ = problem.design.weights(v)
        examples = problem.examples
        unbalanced = examples.mass @ problem.structure.residual(examples.y, mu)
        return problem.dual(mu, w) - v[problem.dim] * unbalanced


@njit(cache=True)
def _first(blocks, theta, mu):
    """θ_i = FIRST_SCORE · y_i and its marginals; theta, mu (n, size) written."""
    for i in range(theta.shape[0]):
        base.block_target(blocks, i, theta[i])
        for j in range(blocks.size):
            theta[i, j] *= FIRST_SCORE
        base.block_marginals(blocks, i, theta[i], mu[i])


@njit(cache=True, nogil=True)
def _epoch(blocks, hinge, order, theta, mu, rates, v):
    """Figure 3 over the given order; theta, mu, rates, v written. Returns trials made and the gap met."""
    s, moved, nu, delta = (
        np.empty(blocks.size),
        np.empty(blocks.size),
        np.empty(blocks.size),
        np.empty(blocks.size),
    )
    trials, total = 0, 0.0
    for i in order:
        total += blocks.mass[i] * _look(blocks, i, hinge, v, mu[i], s, nu)
        rate = blocks.mass[i] / blocks.lam
        entropy = base.block_entropy(blocks, i, mu[i])
        for _ in range(TRIALS):
            trials += 1
            _move(hinge, rates[i], theta[i], s, moved)
            base.block_marginals(blocks, i, moved, nu)
            for j in range(blocks.size):
                delta[j] = nu[j] - mu[i, j]
            gain = -0.5 * rate * base.block_squared_norm(blocks, i, delta)
            for j in range(blocks.size):
                gain += s[j] * delta[j]
            if not hinge:
                gain += base.block_entropy(blocks, i, nu) - entropy
            if gain >= -1e-15 * (1.0 + abs(entropy)):
                for j in range(blocks.size):
                    theta[i, j], mu[i, j] = moved[j], nu[j]
                base.block_add(blocks, i, -rate, delta, v)
                # With the log loss a rate of 1 already moves θ to the scores; more would overshoot.
                rates[i] = rates[i] * FASTER if hinge else min(rates[i] * FASTER, 1.0)
                break
            rates[i] *= SLOWER
    return trials, total


@njit(cache=True, nogil=True)
def _move_all(blocks, hinge, rate, theta, mu, v, new_theta, new_mu):
    """One trial of the batch update; new_theta, new_mu written. Returns the gap met."""
    s, nu = np.empty(blocks.size), np.empty(blocks.size)
    total = 0.0
    for i in range(theta.shape[0]):
        total += blocks.mass[i] * _look(blocks, i, hinge, v, mu[i], s, nu)
        _move(hinge, rate, theta[i], s, new_theta[i])
        base.block_marginals(blocks, i, new_theta[i], new_mu[i])
    return total


@njit(cache=True)
def _look(blocks, i, hinge, v, mu, s, nu):
    """s = scores at w, with the cost for the hinge loss (written); returns the block gap of μ there."""
    base.block_scores(blocks, i, v, s)
    if not hinge:
        return base.block_kl(blocks, i, mu, s)
    base.block_cost(blocks, i, nu)
    gap = 0.0
    for j in range(blocks.size):
        s[j] += nu[j]
        gap -= s[j] * mu[j]
    return gap + base.block_argmax(blocks, i, s, nu)


@njit(cache=True)
def _move(hinge, rate, theta, s, moved):
    """moved = θ − rate · (gradient in the space of scores); written."""
    for j in range(theta.size):
        moved[j] = theta[j] + rate * (s[j] if hinge else s[j] - theta[j])
