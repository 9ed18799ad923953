"""Cutting planes for the hinge loss: SVM-struct (Tsochantaridis et al. 2004, Joachims et al. 2009).

    slack "n"   each example has its own slack and a working set of outputs; the most violated output enters
    slack "1"   one slack for all: each step adds the tangent of Σ m_i loss_i at w as a plane

and then the quadratic program over what was collected is solved, by pair updates of its dual.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numba import njit

from fenchel._memory import require_memory
from fenchel.problem import Point
from fenchel.solvers.base import State
from fenchel.solvers.cddual_flat import optimise_hinge, put_block
from fenchel.structures import base

PASSES = 100  # most passes over the working sets before they are extended again
EXACT = 0.1  # the working sets are solved to this part of the gap; a smaller violation adds no output
IDLE = 50  # steps after which a plane of no weight is dropped
ROUNDING = 64.0 * np.finfo(float).eps


@dataclass
class WorkingSets(State):
    """mu the dual variables, v = w(μ), working: 1 where an output is in its example's set; the last gap."""

    mu: np.ndarray | None = None
    v: np.ndarray | None = None
    working: np.ndarray | None = None
    gap: float = np.inf
    passes_left: int = 0  # over the working sets, before they are extended again


@dataclass
class Planes(State):
    """Σ m_i loss_i ≥ c_t − ⟨g_t, w⟩ for every plane t: gradients g, offsets c, products ⟨g, g⟩, weights α."""

    w: np.ndarray | None = None
    gradients: list = field(default_factory=list)
    offsets: list = field(default_factory=list)
    gram: np.ndarray | None = None
    alpha: np.ndarray | None = None
    idle: np.ndarray | None = None


@dataclass(frozen=True)
class CuttingPlane:
    """Minimises over ever more of the constraints of the max-margin problem.

    slack: "n", as collins2008 ran it, or "1".
    """

    slack: str = "n"
    needs: ClassVar[frozenset] = frozenset({"hinge", "blocks", "vertices", "dual"})
    free_check: ClassVar[bool] = False

    def __post_init__(self):
        if self.slack not in {"n", "1"}:
            raise ValueError(f"slack={self.slack!r}; there are 'n', '1'")

    def init(self, problem, start):
        if self.slack == "1":
            require_memory(
                8 * 2 * IDLE * problem.dim, f"{2 * IDLE} planes of {problem.dim} weights", "use slack='n'"
            )
            w = start.w.copy() if start else np.zeros(problem.dim)
            nothing = np.zeros(problem.dim), 0.0  # the true outputs: loss ≥ 0
            return Planes(
                w=w,
                gradients=[nothing[0]],
                offsets=[nothing[1]],
                gram=np.zeros((1, 1)),
                alpha=np.ones(1),
                idle=np.zeros(1, int),
            )
        numbers = int(np.prod(problem.shape, dtype=float))
        require_memory(9 * numbers, f"{numbers} dual variables", "use slack='1' or sgd")
        mu = problem.near_target(0.0) if start is None or start.mu is None else start.mu.copy()
        return WorkingSets(mu=mu, v=problem.augmented_of(mu), working=(mu > 0.0).astype(np.uint8))

    def step(self, problem, state):
        if self.slack == "1":
            self._add_plane(problem, state)
        else:
            self._extend_sets(problem, state)

    def point(self, problem, state):
        if self.slack == "n":
            return problem.dual_point(state.mu, problem.design.weights(state.v)[0])
        primal, b = problem.value_at(state.w)
        penalty = problem.regularizer.value(state.w)
        # Offsets of early planes are large and cancel: what rounding may have added is taken off.
        size = float(state.alpha @ np.abs(state.offsets)) + penalty
        dual = float(state.alpha @ state.offsets) - penalty - ROUNDING * size
        return Point(state.w, b, primal, dual, primal - dual)

    # ---- one slack per example

    def _extend_sets(self, problem, state):
        """One pass: over all outputs where the working sets are solved, else over the working sets."""
        self._count(problem, state)
        if state.passes_left == 0:
            least = EXACT * state.gap if np.isfinite(state.gap) else 0.0
            state.gap = _extend(problem.blocks, least, state.mu, state.v, state.working)
            state.relative_gap_estimate = state.gap / max(problem.dual(state.mu), 1e-300)
            state.passes_left = PASSES
            return
        left = _reoptimise(problem.blocks, np.arange(problem.n), state.working, state.mu, state.v)
        state.passes_left -= 1
        if left <= EXACT * state.gap or state.passes_left == 0:
            state.passes_left = 0
            state.v = problem.augmented_of(state.mu)

    def _count(self, problem, state):
        state.passes += 1.0
        state.oracle_calls += problem.n
        state.updates += problem.n

    # ---- one slack for all

    def _add_plane(self, problem, state):
        now = problem.evaluate(state.w)
        self._count(problem, state)
        pull = problem.lam * state.w - now.gradient
        state.gradients.append(pull)
        loss = now.value - problem.regularizer.value(state.w)
        state.offsets.append(loss + float(pull @ state.w))
        products = np.array([float(pull @ other) for other in state.gradients])
        state.gram = np.block([[state.gram, products[:-1, None]], [products[None, :]]])
        state.alpha, state.idle = np.append(state.alpha, 0.0), np.append(state.idle, 0)
        solve_simplex(state.gram / problem.lam, np.array(state.offsets), state.alpha)
        self._forget(state)
        held = np.flatnonzero(state.alpha)
        state.w = sum(state.alpha[t] * state.gradients[t] for t in held) / problem.lam

    def _forget(self, state):
        """Drop planes that had no weight for long; the first, loss ≥ 0, stays."""
        state.idle = np.where(state.alpha > 0.0, 0, state.idle + 1)
        keep = np.flatnonzero((state.idle <= IDLE) | (np.arange(state.idle.size) == 0))
        if keep.size < state.idle.size:
            state.gradients = [state.gradients[t] for t in keep]
            state.offsets = [state.offsets[t] for t in keep]
            state.gram = state.gram[np.ix_(keep, keep)]
            state.alpha, state.idle = state.alpha[keep], state.idle[keep]


@njit(cache=True, nogil=True)
def _margins(blocks, i, v, s, cost):
    """s = scores at v plus cost; s, cost written. Returns the number of outputs."""
    base.block_scores(blocks, i, v, s)
    base.block_cost(blocks, i, cost)
    m = base.block_length(blocks, i)
    for j in range(m):
        s[j] += cost[j]
    return m


@njit(cache=True, nogil=True)
def _extend(blocks, least, mu, v, working):
    """Add to each working set the output violated most, if by more than `least`; working written.

    Returns the duality gap Σ m_i (max s_i − ⟨s_i, μ_i⟩).
    """
    s, cost = np.empty(blocks.size), np.empty(blocks.size)
    gap = 0.0
    for i in range(blocks.mass.size):
        m = _margins(blocks, i, v, s, cost)
        mu_i, set_i = base.block_view(blocks, mu, i), base.block_view(blocks, working, i)
        best, inside, mean = 0, -np.inf, 0.0
        for j in range(m):
            best = j if s[j] > s[best] else best
            mean += s[j] * mu_i[j]
            if set_i[j] > 0:
                inside = max(inside, s[j])
        gap += blocks.mass[i] * (s[best] - mean)
        if s[best] - inside > least:
            set_i[best] = 1
    return gap


@njit(cache=True, nogil=True)
def _reoptimise(blocks, order, working, mu, v):
    """One pass of pair updates within the working sets; mu, v written. Returns the gap over them as met."""
    s, slopes, z = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    first, second = np.empty(blocks.size), np.empty(blocks.size)
    gap = 0.0
    for i in order:
        m = _margins(blocks, i, v, s, first)
        mu_i, set_i = base.block_view(blocks, mu, i), base.block_view(blocks, working, i)
        top, mean, count = -np.inf, 0.0, 0
        for j in range(m):
            # an output that is not in the set has no mass, and a slope that keeps it so
            z[j], slopes[j] = mu_i[j], -s[j] if set_i[j] > 0 else np.inf
            mean += s[j] * mu_i[j]
            if set_i[j] > 0:
                top = max(top, s[j])
                count += 1
        gap += blocks.mass[i] * (top - mean)
        if count > 1:
            rate = blocks.mass[i] / blocks.lam
            optimise_hinge(blocks, i, rate, z[:m], slopes, first, second)
            put_block(blocks, i, rate, False, z, mu_i, first, v)
    return gap


@njit(cache=True)
def solve_simplex(gram, linear, alpha):
    """max ⟨c, α⟩ − ½ αᵀGα over the simplex, by pairs that violate optimality most; alpha (T,) written."""
    slopes = linear - gram @ alpha
    for _ in range(1000 * alpha.size):
        up, down = 0, -1
        for t in range(alpha.size):
            up = t if slopes[t] > slopes[up] else up
            if alpha[t] > 0.0 and (down < 0 or slopes[t] < slopes[down]):
                down = t
        violation = slopes[up] - slopes[down]
        if violation <= 1e-13 * (abs(slopes[up]) + abs(slopes[down])):
            break
        curvature = gram[up, up] + gram[down, down] - 2.0 * gram[up, down]
        moved = violation / curvature if violation < curvature * alpha[down] else alpha[down]
        alpha[down] = alpha[down] - moved if moved < alpha[down] else 0.0
        alpha[up] += moved
        for t in range(alpha.size):
            slopes[t] += moved * (gram[t, down] - gram[t, up])
