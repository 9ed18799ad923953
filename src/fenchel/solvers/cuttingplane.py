"""Cutting planes for the hinge loss: SVM-struct (Tsochantaridis et al. 2004, Joachims et al. 2009).

    slack "n"   each example has its own slack and a working set of outputs; the most violated output enters
    slack "1"   one slack for all: each step adds the tangent of Σ m_i loss_i at w as a plane

and then the quadratic program over what was collected is solved, by pair updates of its dual.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fenchel._memory import require_memory
from fenchel.problem import Point
from fenchel.solvers.base import State
from fenchel.solvers.outputsets import OutputSets
from fenchel.solvers.workingsets import OutcomeSets, solve_simplex

PASSES = 100  # most passes over the working sets before they are extended again
EXACT = 0.1  # the working sets are solved to this part of the gap; a smaller violation adds no output
IDLE = 50  # steps after which a plane of no weight is dropped
ROUNDING = 64.0 * np.finfo(float).eps


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
        return self._first_plane(problem, start) if self.slack == "1" else self._first_sets(problem, start)

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

    def _first_sets(self, problem, start):
        """Sets of the true output and of what has mass in a warm start."""
        kind = OutputSets if problem.structure.linked else OutcomeSets
        numbers = int(np.prod(problem.shape, dtype=float))
        require_memory(kind.BYTES * numbers, f"{numbers} dual variables", "use slack='1' or sgd")
        warm = start is not None and start.mu is not None and start.mu.shape == problem.shape
        mu = start.mu.copy() if warm else problem.near_target(0.0)
        state = kind(mu=mu, v=problem.augmented_of(mu))
        state.fill(problem, warm)
        return state

    def _extend_sets(self, problem, state):
        """One pass: over all outputs where the working sets are solved, else over the working sets."""
        self._count(problem, state)
        if state.passes_left == 0:
            state.gap = state.extend(problem, EXACT * state.gap if np.isfinite(state.gap) else 0.0)
            dual = problem.dual(state.mu, problem.design.weights(state.v)[0])
            state.relative_gap_estimate = state.gap / max(dual, 1e-300)
            state.passes_left = PASSES
            return
        left = state.reoptimise(problem, EXACT**2 * state.gap)
        state.passes_left -= 1
        if left <= EXACT * state.gap or state.passes_left == 0:
            state.passes_left = 0
            state.v = problem.augmented_of(state.mu)

    def _count(self, problem, state):
        state.passes += 1.0
        state.updates += problem.n

    # ---- one slack for all

    def _first_plane(self, problem, start):
        """The plane of the true outputs, loss ≥ 0."""
        planes = f"{2 * IDLE} planes of {problem.dim} weights"
        require_memory(8 * 2 * IDLE * problem.dim, planes, "use slack='n'")
        return Planes(
            w=start.w.copy() if start else np.zeros(problem.dim),
            gradients=[np.zeros(problem.dim)],
            offsets=[0.0],
            gram=np.zeros((1, 1)),
            alpha=np.ones(1),
            idle=np.zeros(1, int),
        )

    def _add_plane(self, problem, state):
        now = problem.evaluate(state.w)
        self._count(problem, state)
        state.oracle_calls += problem.n
        pull = problem.lam * state.w - now.gradient
        state.gradients.append(pull)
        loss = now.value - problem.regularizer.value(state.w)
        state.offsets.append(loss + float(pull @ state.w))
        products = np.array([float(pull @ other) for other in state.gradients])
        state.gram = np.block([[state.gram, products[:-1, None]], [products[None, :]]])
        state.alpha, state.idle = np.append(state.alpha, 0.0), np.append(state.idle, 0)
        gram = state.gram / problem.lam
        solve_simplex(gram, np.array(state.offsets) - gram @ state.alpha, state.alpha, 0.0)
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
