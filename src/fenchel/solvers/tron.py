"""Trust-region Newton with conjugate gradients: Lin, Weng and Keerthi (2008), as compared in yu2011."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel.solvers.base import BatchSolver, BatchState, evaluate

# Constants of the update rule of the region's radius.
ACCEPT, POOR, GOOD = 1e-4, 0.25, 0.75
SHRINK, CUT, GROW = 0.25, 0.5, 4.0


@dataclass
class Inner:
    """Conjugate gradients on ∇²P d = −∇P so far, in `Problem.coordinates`."""

    d: np.ndarray
    residual: np.ndarray  # −∇P − ∇²P d
    search: np.ndarray  # where to go next
    squared: float  # ‖residual‖²
    target: float  # the norm of the residual that is enough
    count: int = 0


@dataclass
class TRONState(BatchState):
    """Adds the radius of the region in which the quadratic model is trusted, and its minimum so far."""

    radius: float = np.inf
    inner: Inner | None = None


@dataclass(frozen=True)
class TRON(BatchSolver):
    """Minimises the quadratic model inside a ball by Hessian-vector products, one to a step.

    accuracy: conjugate gradients stop at residual ≤ accuracy · ‖∇P‖. rounded: it works in
    `Problem.coordinates`; False: in the weights as they are, as the papers run it.
    """

    accuracy: float = 0.1
    rounded: bool = True
    needs: ClassVar[frozenset] = frozenset({"log", "gradient", "hessian"})

    def __post_init__(self):
        if not 0.0 < self.accuracy < 1.0:
            raise ValueError(f"accuracy={self.accuracy!r} must be between 0 and 1")

    def init(self, problem, start):
        state = TRONState(**vars(super().init(problem, start)))
        state.inner = self._begin(problem, state)
        state.radius = np.sqrt(state.inner.squared) / max(problem.lam, 1e-300)
        return state

    def step(self, problem, state):
        inner = state.inner or self._begin(problem, state)
        more = self._go_on(problem, state, inner)
        more &= state.updates > 0  # the first product is tried at once: a step must have led somewhere
        state.inner = inner if more else None
        if not more:
            self._try(problem, state, inner)

    def _coordinates(self, problem):
        return problem.coordinates if self.rounded else None

    def _begin(self, problem, state):
        gradient, inside = state.evaluation.gradient, self._coordinates(problem)
        residual = -(gradient if inside is None else inside.gradient(gradient))
        squared = float(residual @ residual)
        return Inner(
            np.zeros_like(residual), residual, residual.copy(), squared, self.accuracy * np.sqrt(squared)
        )

    def _go_on(self, problem, state, inner) -> bool:
        """One step of conjugate gradients; whether there is another one to be made."""
        if inner.count >= max(10, problem.dim) or np.sqrt(inner.squared) <= inner.target:
            return False
        product = self._hessian_product(problem, state.evaluation, inner.search)
        state.passes += 1.0
        inner.count += 1
        curvature = float(inner.search @ product)
        if curvature <= 0.0:
            return False
        alpha = inner.squared / curvature
        outside = np.linalg.norm(inner.d + alpha * inner.search) > state.radius
        if outside:
            alpha = to_the_border(inner.d, inner.search, state.radius)
        inner.d += alpha * inner.search
        inner.residual -= alpha * product
        previous, inner.squared = inner.squared, float(inner.residual @ inner.residual)
        inner.search = inner.residual + (inner.squared / previous) * inner.search
        return not outside and np.sqrt(inner.squared) > inner.target

    def _hessian_product(self, problem, now, direction):
        inside = self._coordinates(problem)
        if inside is None:
            return problem.hessian_product(now, direction)
        return inside.gradient(problem.hessian_product(now, inside.direction(direction)))

    def _try(self, problem, state, inner):
        """Look at the minimum of the model; take it, or shrink the ball."""
        before, inside = state.evaluation, self._coordinates(problem)
        direction = inner.d if inside is None else inside.direction(inner.d)
        slope = float(before.gradient @ direction)
        predicted = -0.5 * (slope - float(inner.d @ inner.residual))
        after = evaluate(problem, state, before.w + direction)
        actual = before.value - after.value
        length = float(np.linalg.norm(inner.d))
        if abs(actual) <= 1e-14 * abs(before.value) and after.gradient_norm < before.gradient_norm:
            actual = predicted  # P is flat to rounding; the gradient shows the progress
        self._resize(state, length, slope, actual, predicted)
        if actual > ACCEPT * predicted:
            state.evaluation = after
            state.updates += 1
        elif length <= 1e-16 * (1.0 + float(np.linalg.norm(before.w))) or state.radius < 1e-300:
            state.stalled = True

    def _resize(self, state, length, slope, actual, predicted):
        """Shrink the ball after a poor prediction, widen it after a good one."""
        curvature = -actual - slope  # of P along the step
        best = GROW if curvature <= 0.0 else max(SHRINK, -0.5 * slope / curvature)
        state.radius = min(state.radius, max(length, 1e-300) * GROW**8)
        if actual < ACCEPT * predicted:
            state.radius = min(max(best, SHRINK) * length, CUT * state.radius)
        elif actual < POOR * predicted:
            state.radius = max(SHRINK * state.radius, min(best * length, CUT * state.radius))
        elif actual < GOOD * predicted:
            state.radius = max(SHRINK * state.radius, min(best * length, GROW * state.radius))
        else:
            state.radius = max(state.radius, min(best * length, GROW * state.radius))


def to_the_border(d, search, radius) -> float:
    """α ≥ 0 with ‖d + α search‖ = radius."""
    a, b, c = float(search @ search), float(d @ search), float(d @ d) - radius**2
    root = np.sqrt(max(b * b - a * c, 0.0))
    return -c / (b + root) if b > 0.0 else (root - b) / a
