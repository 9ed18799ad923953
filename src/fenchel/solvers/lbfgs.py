"""Limited-memory BFGS: the batch rival of all five papers (Liu and Nocedal 1989)."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fenchel.solvers.base import BatchSolver, BatchState, evaluate


@dataclass
class LBFGSState(BatchState):
    """The last steps, gradient changes and 1/⟨step, change⟩, oldest first."""

    steps: list = field(default_factory=list)
    changes: list = field(default_factory=list)
    curvatures: list = field(default_factory=list)


@dataclass(frozen=True)
class LBFGS(BatchSolver):
    """Quasi-Newton with `memory` pairs and a line search for the Wolfe conditions."""

    memory: int = 10
    needs: ClassVar[frozenset] = frozenset({"log", "gradient"})

    def __post_init__(self):
        if not (isinstance(self.memory, int) and self.memory > 0):
            raise ValueError(f"memory={self.memory!r} must be a positive whole number")

    def init(self, problem, start):
        return LBFGSState(**vars(super().init(problem, start)))

    def step(self, problem, state):
        before = state.evaluation
        direction = -self._inverse_hessian_product(state, before.gradient)
        if not before.gradient @ direction < 0.0:  # memory spoilt by rounding: start it anew
            self._forget(state)
            direction = -before.gradient
        first = 1.0 if state.steps else min(1.0, 1.0 / max(before.gradient_norm, 1e-300))
        after = self._search(problem, state, direction, first)
        if after is None:
            state.stalled = not state.steps
            self._forget(state)
            return
        self._remember(state, after.w - before.w, after.gradient - before.gradient)
        state.evaluation = after
        state.updates += 1

    def _inverse_hessian_product(self, state, gradient):
        """The two-loop recursion."""
        q = gradient.copy()
        weights = []
        pairs = list(zip(state.steps, state.changes, state.curvatures, strict=True))
        for step, change, curvature in reversed(pairs):
            weights.append(curvature * (step @ q))
            q -= weights[-1] * change
        if pairs:
            _, change, curvature = pairs[-1]
            q /= curvature * (change @ change)
        for (step, change, curvature), weight in zip(pairs, reversed(weights), strict=True):
            q += (weight - curvature * (change @ q)) * step
        return q

    def _remember(self, state, step, change):
        product = step @ change
        if product <= 1e-16 * (change @ change):
            return
        state.steps.append(step)
        state.changes.append(change)
        state.curvatures.append(1.0 / product)
        if len(state.steps) > self.memory:
            for queue in (state.steps, state.changes, state.curvatures):
                queue.pop(0)

    def _forget(self, state):
        for queue in (state.steps, state.changes, state.curvatures):
            queue.clear()

    def _search(self, problem, state, direction, step):
        """A point that meets both Wolfe conditions, by bisection of a bracket; None where none is found.

        Near the optimum P is constant to rounding; there a smaller slope alone counts as descent.
        """
        before = state.evaluation
        slope = float(before.gradient @ direction)
        low, high = 0.0, np.inf
        for _ in range(50):
            after = evaluate(problem, state, before.w + step * direction, before.b)
            after_slope = float(after.gradient @ direction)
            flat = abs(after.value - before.value) <= 1e-14 * abs(before.value)
            if not (after.value <= before.value + 1e-4 * step * slope or (flat and after_slope <= -slope)):
                high = step
            elif after_slope < 0.9 * slope:
                low = step
            else:
                return after
            step = 0.5 * (low + high) if np.isfinite(high) else 2.0 * step
        return after if after.value < before.value else None
