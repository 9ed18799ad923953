"""Cutting planes for the hinge loss: SVM-struct (Tsochantaridis et al. 2004, Joachims et al. 2009).

    slack "n"   each example has its own slack and a working set of outputs; the most violated output enters
    slack "1"   one slack for all: each step adds the tangent of Σ m_i loss_i at w as a plane

and then the quadratic program over what was collected is solved, by pair updates of its dual.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fenchel._memory import require_memory
from fenchel.certificates import FEW, certified, change_of_sum, reach, score_rounding
from fenchel.solvers.base import State
from fenchel.solvers.cuttingplane.outcomes import OutcomeSets
from fenchel.solvers.cuttingplane.outputs import OutputSets
from fenchel.solvers.outputs import solve_simplex

PASSES = 100  # most passes over the working sets before they are extended again
EXACT = 0.1  # the working sets are solved to this part of the gap; a smaller violation adds no output
IDLE = 50  # steps after which a plane of no weight is dropped


class Planes(NamedTuple):
    """Σ m_i loss_i ≥ c_t − ⟨g_t, w⟩ for every plane t, and the w that is best for their weights α."""

    w: np.ndarray  # Σ α_t g_t / λ, but for the first
    gradients: list  # g_t
    offsets: np.ndarray  # c_t
    errors: np.ndarray  # (2, planes): what rounding may have added to c_t, and by how much g_t is off
    gram: np.ndarray  # ⟨g, g⟩
    alpha: np.ndarray
    idle: np.ndarray  # steps since it had weight


@dataclass
class PlanesState(State):
    """All planes at once: a step puts new ones in their place, so that an interrupt finds either."""

    planes: Planes | None = None


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
            return problem.dual_point(state.mu)
        planes, lam = state.planes, problem.lam
        point = problem.bare_point(planes.w)
        made = sum(a * g for a, g in zip(planes.alpha, planes.gradients, strict=True)) / lam
        penalty = problem.regularizer.value(made)
        dual = float(planes.alpha @ planes.offsets) - penalty
        # Offsets are sums that cancel, gradients are sums over all examples: what rounding may have added.
        offset, error = planes.errors @ planes.alpha
        slack = problem.regularizer.slack(made, penalty, 0.0, error)
        more = offset + slack + FEW * penalty
        return certified(point.w, point.b, point.primal, point.primal - dual, point.rounding, more)

    # ---- one slack per example

    def _first_sets(self, problem, start):
        """Sets of the true output and of what has mass in a warm start."""
        kind = OutcomeSets if problem.structure.listed else OutputSets
        numbers = int(np.prod(problem.shape, dtype=float))
        require_memory(kind.BYTES * numbers, f"{numbers} dual variables", "use slack='1' or sgd")
        warm = start is not None and start.mu is not None and start.mu.shape == problem.shape
        mu = start.mu.copy() if warm else problem.near_target(0.0)
        state = kind(mu=mu, v=problem.proximal_weights(mu))
        state.fill(problem, warm)
        return state

    def _extend_sets(self, problem, state):
        """One pass: over all outputs where the working sets are solved, else over the working sets."""
        self._count(problem, state)
        if state.passes_left == 0:
            state.gap = state.extend(problem, EXACT * state.gap if np.isfinite(state.gap) else 0.0)
            dual = problem.dual(state.mu, state.v)
            state.relative_gap_estimate = state.gap / max(dual, 1e-300)
            state.passes_left = PASSES
            return
        left = state.reoptimise(problem, EXACT**2 * state.gap)
        state.passes_left -= 1
        if left <= EXACT * state.gap or state.passes_left == 0:
            state.passes_left = 0
            state.v = problem.proximal_weights(state.mu)

    def _count(self, problem, state):
        state.passes += 1.0
        state.updates += problem.n

    # ---- one slack for all

    def _first_plane(self, problem, start):
        """The plane of the true outputs, loss ≥ 0."""
        planes = f"{2 * IDLE} planes of {problem.dim} weights"
        require_memory(8 * 2 * IDLE * problem.dim, planes, "use slack='n'")
        first = Planes(
            w=start.w.copy() if start else np.zeros(problem.dim),
            gradients=[np.zeros(problem.dim)],
            offsets=np.zeros(1),
            errors=np.zeros((2, 1)),
            gram=np.zeros((1, 1)),
            alpha=np.ones(1),
            idle=np.zeros(1, int),
        )
        return PlanesState(planes=first)

    def _add_plane(self, problem, state):
        """The tangent at w joins the planes, and their program is solved anew."""
        planes = self._with_tangent(problem, state.planes)
        self._count(problem, state)
        state.oracle_calls += problem.n
        alpha, gram = planes.alpha.copy(), planes.gram / problem.lam
        solve_simplex(gram, planes.offsets - gram @ alpha, alpha, 0.0)
        planes = self._without_idle(planes._replace(alpha=alpha))
        held = np.flatnonzero(planes.alpha)
        w = sum(planes.alpha[t] * planes.gradients[t] for t in held) / problem.lam
        state.planes = planes._replace(w=w)

    def _with_tangent(self, problem, planes):
        """The planes and the one at their w, of no weight yet."""
        now = problem.evaluate(planes.w)
        pull = problem.lam * planes.w - now.gradient
        loss = now.value - problem.regularizer.value(planes.w)
        gradients = [*planes.gradients, pull]
        products = np.array([float(pull @ other) for other in gradients])
        reached = reach(problem.extent, planes.w, 0.0)
        offset_error = score_rounding(problem.extent, reached, now.value, loss, now.moved)
        error = change_of_sum(problem.extent, now.moved) + FEW * problem.lam * np.linalg.norm(planes.w)
        return Planes(
            planes.w,
            gradients,
            np.append(planes.offsets, loss + float(pull @ planes.w)),
            np.column_stack([planes.errors, [offset_error, error]]),
            np.block([[planes.gram, products[:-1, None]], [products[None, :]]]),
            np.append(planes.alpha, 0.0),
            np.append(planes.idle, 0),
        )

    def _without_idle(self, planes):
        """Drop planes that had no weight for long; the first, loss ≥ 0, stays."""
        idle = np.where(planes.alpha > 0.0, 0, planes.idle + 1)
        keep = np.flatnonzero((idle <= IDLE) | (np.arange(idle.size) == 0))
        return Planes(
            planes.w,
            [planes.gradients[t] for t in keep],
            planes.offsets[keep],
            planes.errors[:, keep],
            planes.gram[np.ix_(keep, keep)],
            planes.alpha[keep],
            idle[keep],
        )
