"""Dual coordinate descent over cached outputs, for the hinge loss.

    max over α of D(μ),   μ_i = Σ_a α_ia p_ia over the few outputs p_ia that example i has met

Chang and Yih 2013; Shah, Kolmogorov and Lampert 2015 (multi-plane block Frank-Wolfe); Osokin et al. 2016
(pairwise steps, gap sampling). A visit asks the oracle for the output that violates the margin most, adds it
to those of the example, and moves mass from the worst of them to the best until they agree. Such steps need
no oracle: cheap passes over what is cached come between the passes that ask it.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel.solvers.base import State
from fenchel.solvers.cdoutputs.flows import Flows, suits
from fenchel.solvers.cdoutputs.lists import Lists
from fenchel.solvers.dual import DualSolver, Due

GROWTH = 2.0  # of the gap of an example that is left out, per pass
CHEAP = 10  # most cheap passes between two passes of the oracle
LEAST = 0.01  # of the mean gap: an example that has less is left as it is
EXACT = 0.3  # they end where the gap over what is cached is at most this part of the whole


@dataclass
class CDOutputsState(State):
    """cache: the outputs met so far, and μ and w(μ) with them. gaps (n,): as last met; due: who is next."""

    cache: Lists | Flows | None = None
    gaps: np.ndarray | None = None
    due: Due | None = None
    rng: np.random.Generator | None = None
    epochs: int = 0

    @property
    def dual_variables(self):
        return self.cache.marginals()


@dataclass(frozen=True)
class CDOutputs(DualSolver):
    """Asks the oracle for outputs by gap, and moves mass between those it gave before.

    cheap: most passes over the cached outputs between two that ask the oracle; 0 for none.
    """

    cheap: int = CHEAP
    seed: int = 0
    needs: ClassVar[frozenset] = frozenset({"hinge", "blocks", "vertices", "dual"})
    by_shards: ClassVar[bool] = False

    def __post_init__(self):
        if not (isinstance(self.cheap, int) and self.cheap >= 0):
            raise ValueError(f"cheap={self.cheap!r} must be a whole number, at least 0")

    def copies(self, problem) -> int:
        return 2

    def init(self, problem, start):
        self.reserve(problem)
        mu = self.first_mu(problem, start, None)
        kind = Flows if suits(problem) else Lists
        state = CDOutputsState(cache=kind(problem, mu), gaps=np.full(problem.n, np.inf))
        state.rng, state.due = np.random.default_rng(self.seed), Due(problem.n, GROWTH)
        return state

    def step(self, problem, state):
        """A pass that asks the oracle, and cheap ones until they have next to nothing left to gain."""
        order = self._order(problem, state)
        least = LEAST * float(problem.examples.mass @ np.where(np.isfinite(state.gaps), state.gaps, 0.0))
        state.cache.visit(problem, order, least, state.gaps)
        state.passes += order.size / problem.n
        state.oracle_calls += order.size
        state.updates += order.size
        gap = float(problem.examples.mass @ state.gaps)
        for _ in range(self.cheap):
            left, visits = state.cache.go_over(problem, state.rng, EXACT * least)
            state.passes += visits
            if left <= EXACT * gap:
                break
        state.epochs += 1
        state.cache.refresh(problem, state.epochs)
        dual = state.cache.dual(problem)
        state.relative_gap_estimate = gap / dual if dual > 1e-300 else np.nan

    def _order(self, problem, state):
        order = state.rng.permutation(problem.n)
        return order if state.epochs < 2 else state.due.among(order, problem.examples.mass * state.gaps)

    def point(self, problem, state):
        return state.cache.point(problem)
