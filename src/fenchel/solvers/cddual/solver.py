"""Dual coordinate descent: yu2011 Algorithms 1 and 4 to 7, 9; Crammer-Singer blocks for the hinge loss.

The kernels are in `pair.py` for two classes, `lists.py` for labels and candidates, and `multiplier.py` for
the fastest way through a block of labels.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel._sparse import inner
from fenchel.design import AT_ONCE
from fenchel.solvers.cddual import lists, pair
from fenchel.solvers.cddual.multiplier import Lanes
from fenchel.solvers.cddual.pair import Method
from fenchel.solvers.dual import DualSolver, DualState, Due

EPS2 = 1e-8  # (36): the first dual point
ROUND = 1e5  # multiplications that take as long as what is done between steps
GROWTH = 4.0  # hinge loss: of the gap of an example that is left out, per pass
INNER_FIRST, INNER_LAST = 1e-2, 1e-8  # tolerance of the sub-problem, section 6.1
# Share of a block's first violation that a visit may leave: CoNLL-2000, 44 tags, 30 to 40 pairs a visit and
# not 120 to 200, and the objective after each pass within 2 % of what it is with exact blocks.
LEAVE = 0.3

METHODS = {
    "newton": Method.NEWTON,
    "bisection": Method.BISECTION,
    "line-search": Method.LINE_SEARCH,
    "multiplier": Method.MULTIPLIER,
    "newton-from-zero": Method.FROM_ZERO,
    "newton-from-middle": Method.FROM_MIDDLE,
}


def _has_even_blocks(problem) -> bool:
    """Whether A_i A_iᵀ is ‖x_i‖² times the identity, and v the weights: labels crossed with attributes."""
    return problem.structure.name == "flat crossed" and problem.structure.mask is None and problem.l1 == 0.0


@dataclass
class CDDualState(DualState):
    """Adds log μ (two classes: the log-odds), the inner tolerance and the gap met in the last pass.

    newtons: of the log loss, Newton steps of Algorithm 4; pairs of Algorithm 6.
    """

    newtons: int = 0
    logs: np.ndarray | None = None
    fresh: bool = False  # v is still zero: the first pass builds it
    inner: float = INNER_FIRST
    leave: float = LEAVE
    last_gap: float = np.nan
    met: np.ndarray | None = None  # (n,) hinge loss: the gap of each example when last visited
    due: Due | None = None


class LanesState(CDDualState):
    """With the multiplier method: mu and v live in `lanes`, padded, and are unpadded when looked at."""

    hands_out_copies: ClassVar[bool] = True

    def __init__(self, problem, mu, v, **fields):
        self.lanes = Lanes(mu, v, problem.examples.room)
        super().__init__(**fields)

    mu = property(lambda self: self.lanes.unpadded(self.lanes.mu), lambda self, mu: None)

    @property
    def v(self):
        return self.lanes.unpadded(self.lanes.v).ravel()

    @v.setter
    def v(self, v):
        if v is not None:
            self.lanes.set_weights(v)

    def free_weights(self, problem) -> np.ndarray:
        return self.lanes.free_weights if problem.free else np.empty(0)


@dataclass(frozen=True)
class CDDual(DualSolver):
    """Optimises one example's dual variables at a time, in a fresh random order each pass.

    subproblem, how two marginals are optimised. "newton": Algorithm 4, begun by a Newton step on the
        log-odds. "newton-from-zero": from (35), as printed; "newton-from-middle": from the middle of the
        interval. "bisection": Algorithm 9. "line-search": one Newton step with (21). Of several labels the
        two that violate optimality most are taken, again and again (Algorithm 6). "multiplier", for labels
        crossed with attributes: all of them at once, by Newton on the multiplier of Σ μ = 1. "auto":
        "multiplier" there, else "newton".
    xi: how far Algorithm 4 moves towards the border when a Newton step would leave the interval (30).
    first: ε₁ of the first point (36), ε of (51): what labels that an example was not seen with share.
    With the hinge loss the sub-problem has a closed form (Algorithm 1, Crammer and Singer's blocks; for
    candidates, of two at a time), and these settings have no effect.
    """

    subproblem: str = "auto"
    xi: float = 0.1
    first: float = 1e-3
    seed: int = 0
    needs: ClassVar[frozenset] = frozenset({"outcomes", "blocks", "dual"})

    def __post_init__(self):
        if self.subproblem not in {*METHODS, "auto"}:
            raise ValueError(
                f"subproblem={self.subproblem!r}; there are 'auto', {', '.join(map(repr, METHODS))}"
            )
        for name in ("xi", "first"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ValueError(f"{name}={getattr(self, name)!r} must be between 0 and 1")

    def _method(self, problem) -> Method:
        even = _has_even_blocks(problem)
        if self.subproblem == "multiplier" and not even:
            raise ValueError(
                f"subproblem='multiplier' is for labels crossed with attributes, all weights, not for this "
                f"{problem.structure.name} model; use 'newton'"
            )
        if self.subproblem == "auto":
            return Method.MULTIPLIER if even else Method.NEWTON
        return METHODS[self.subproblem]

    def init(self, problem, start):
        self.reserve(problem)
        method = self._method(problem)
        mu = self.first_mu(problem, start, self._fresh(problem))
        fresh, centre = start is None and not problem.loss.hinge, self.first_centre(problem, start)
        v = problem.origin if fresh else problem.proximal_weights(mu, centre)
        common = {"rng": np.random.default_rng(self.seed), "fresh": fresh, "centre": centre}
        if problem.loss.hinge:
            met, due = np.zeros(problem.n), Due(problem.n, GROWTH)
            return CDDualState(mu=mu, v=v, met=met, due=due, **common)
        if method is Method.MULTIPLIER:
            return LanesState(problem, mu, v, **common)
        return CDDualState(mu=mu, v=v, logs=problem.logarithms(mu), **common)

    def _fresh(self, problem):
        """(36): the wrong label's share is min(ε₁, ε₂ λ/m_i); (51) for several; zero with the hinge loss."""
        mu = problem.near_target(0.0)
        if problem.loss.hinge:
            return mu
        if problem.structure.name != "binary":
            lists.spread_targets(problem.blocks, self.first, mu)
            return mu
        for at in range(0, problem.n, AT_ONCE):  # on disk not all of them have room
            some, mass = mu[at : at + AT_ONCE], problem.examples.mass[at : at + AT_ONCE]
            small = np.minimum(self.first, EPS2 * problem.lam / mass)[:, None]
            some[:] = np.where(some == 0.0, small, np.where(some == 1.0, 1.0 - small, some))
        return mu

    def step(self, problem, state):
        """One round; where few examples are due and that takes no time, several, up to half a pass."""
        visits, enough = 0, min(0.5, ROUND / max(problem.design.work, 1.0)) * problem.n
        while visits < enough:
            visits += self._round(problem, state, enough)

    def _round(self, problem, state, enough) -> int:
        """Optimise the blocks that are due; returns how many."""
        if problem.loss.hinge:
            return self._met(problem, state, *self._hinge_step(problem, state, enough))
        if isinstance(state, LanesState):
            order = state.rng.permutation(problem.n).view(np.uint64)
            visits, gap = state.lanes.epoch(problem, order, state.fresh and state.epochs == 0)
            return self._met(problem, state, visits, gap)
        return self._met(problem, state, problem.n, self._log_step(problem, state))

    def _met(self, problem, state, visits, gap) -> int:
        """Count the visits and remember the gap that they met."""
        state.passes += visits / problem.n
        state.oracle_calls += visits
        state.updates += visits
        self.recentre(problem, state)
        self.refresh(problem, state)
        # The gap met during the pass, carried on to its end by most of the progress since the last one.
        progress = (gap / state.last_gap) ** 0.6 if gap < state.last_gap else 1.0
        self.note_gap(problem, state, gap * progress)
        state.last_gap = gap
        return visits

    def _hinge_step(self, problem, state, enough):
        """Visits of those that are due, first of all, and the gap: most have none, and are visited rarely."""
        if problem.structure.name == "binary":
            epoch = pair.hinge_epoch
        else:
            epoch = lists.hinge_epoch if _has_even_blocks(problem) else lists.hinge_pair_epoch
        order = state.due.rounds(state.rng, state.met, enough)
        for some in problem.examples.visits(order):
            epoch(problem.blocks, some, state.mu, state.v, state.met)
        return order.size, inner(problem.examples.mass, state.met)

    def _log_step(self, problem, state):
        method = int(self._method(problem))
        fresh = state.epochs == 0 and state.fresh
        binary, precision = problem.structure.name == "binary", (state.inner, state.leave)
        epoch = pair.log_epoch if binary else lists.log_epoch
        made = (
            epoch(problem.dual_blocks, some, fresh, method, self.xi, precision, state.mu, state.logs, state.v)
            for some in problem.examples.shuffled(state.rng)
        )
        newtons, gap = map(sum, zip(*made, strict=True))
        state.newtons += int(newtons)
        if newtons <= problem.n:  # the shrinking inner tolerance of section 6.1
            state.inner = max(INNER_LAST, 0.1 * state.inner)
        return gap
