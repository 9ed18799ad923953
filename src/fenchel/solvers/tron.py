"""Trust-region Newton with conjugate gradients: Lin, Weng and Keerthi (2008), as compared in yu2011."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel.solvers.base import BatchSolver, BatchState, evaluate

# Constants of the update rule of the region's radius.
ACCEPT, POOR, GOOD = 1e-4, 0.25, 0.75
SHRINK, CUT, GROW = 0.25, 0.5, 4.0


@dataclass
class TRONState(BatchState):
    """Adds the radius of the region in which the quadratic model is trusted."""

    radius: float = np.inf


@dataclass(frozen=True)
class TRON(BatchSolver):
    """Minimises the quadratic model inside a ball, by Hessian-vector products (one pass each).

    accuracy: conjugate gradients stop at residual ≤ accuracy · ‖∇P‖.
    """

    accuracy: float = 0.1
    needs: ClassVar[frozenset] = frozenset({"log", "gradient", "hessian"})

    def __post_init__(self):
        if not 0.0 < self.accuracy < 1.0:
            raise ValueError(f"accuracy={self.accuracy!r} must be between 0 and 1")

    def init(self, problem, start):
        begun = super().init(problem, start)
        return TRONState(**vars(begun), radius=begun.evaluation.gradient_norm / max(problem.lam, 1e-300))

    def step(self, problem, state):
        before = state.evaluation
        direction, residual = self._model_minimum(problem, state)
        slope = float(before.gradient @ direction)
        predicted = -0.5 * (slope - float(direction @ residual))
        after = evaluate(problem, state, before.w + direction)
        actual = before.value - after.value
        length = float(np.linalg.norm(direction))
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

    def _model_minimum(self, problem, state):
        """Conjugate gradients on ∇²P d = −∇P inside the ball; d and the residual −∇P − ∇²P d."""
        now = state.evaluation
        d = np.zeros_like(now.gradient)
        residual = -now.gradient
        search = residual.copy()
        squared = float(residual @ residual)
        target = self.accuracy * np.sqrt(squared)
        for _ in range(max(10, problem.dim)):
            if np.sqrt(squared) <= target:
                break
            product = problem.hessian_product(now, search)
            state.passes += 1.0
            curvature = float(search @ product)
            if curvature <= 0.0:
                break
            alpha = squared / curvature
            if np.linalg.norm(d + alpha * search) > state.radius:
                alpha = to_the_border(d, search, state.radius)
                return d + alpha * search, residual - alpha * product
            d += alpha * search
            residual -= alpha * product
            previous, squared = squared, float(residual @ residual)
            search = residual + (squared / previous) * search
        return d, residual


def to_the_border(d, search, radius) -> float:
    """α ≥ 0 with ‖d + α search‖ = radius."""
    a, b, c = float(search @ search), float(d @ search), float(d @ d) - radius**2
    root = np.sqrt(max(b * b - a * c, 0.0))
    return -c / (b + root) if b > 0.0 else (root - b) / a
