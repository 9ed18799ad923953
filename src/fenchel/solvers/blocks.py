"""Common to the solvers that hold dual variables for each example: first point, free offset, certificate."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel._math import TINY
from fenchel._memory import require_memory
from fenchel.solvers.base import State

RENEWAL = 10  # epochs after which what is kept up by increments is computed anew


@dataclass
class DualState(State):
    """mu the dual variables, v the augmented weights, w(μ) and the offset."""

    mu: np.ndarray | None = None
    v: np.ndarray | None = None
    rng: np.random.Generator | None = None
    epochs: int = 0
    dual: float = 0.0  # D(μ) when last computed


class DualSolver:
    """A solver whose state is a point of the dual; its certificate costs a pass."""

    free_check: ClassVar[bool] = False

    def reserve(self, problem, copies: int) -> None:
        """Refuse, stating the size, where so many arrays of dual variables cannot fit."""
        needed = 8 * (copies * int(np.prod(problem.shape, dtype=float)) + 4 * problem.dim)
        shape = " × ".join(map(str, problem.shape))
        others = "eg or lbfgs" if problem.structure.linked else "lbfgs, tron or cd-primal"
        require_memory(needed, f"{copies} arrays of {shape} dual variables", f"use {others}")

    def first_mu(self, problem, start, fresh: np.ndarray) -> np.ndarray:
        """A warm start's own dual variables, else the marginals at its weights, else the `fresh` point."""
        if start is not None and start.mu is not None and start.mu.shape == problem.shape:
            return start.mu.copy() if problem.loss.hinge else np.maximum(start.mu, TINY)
        if start is not None and problem.loss.name == "log":
            scores = problem.scores(start.w) + problem.design.to_shifted(start.w, start.b)
            return np.maximum(problem.marginals(scores), TINY)
        return fresh

    def first_v(self, problem, mu, start=None) -> np.ndarray:
        """w(μ) with the offset that a warm start's μ speak of, or the one that balances a fresh μ.

        The offset of the warm start itself is the best for other weights than w(μ): with it, fits of a few
        passes each undid what the one before had reached.
        """
        if not problem.free:
            return problem.augmented_of(mu)
        if start is None:
            return problem.augmented_of(mu, problem.tilt(mu)[0])
        v = problem.augmented_of(mu)
        w, _ = problem.design.weights(v)
        b = problem.structure.offset_of(problem.blocks, mu, problem.scores(w))
        problem.design.offsets(v)[:] = b + problem.design.along_centre(w)
        return v

    def settle_offset(self, problem, state) -> np.ndarray | None:
        """Optimise the free offset, if there is one, at the current weights; returns the scores: a pass."""
        if not problem.free:
            return None
        w, b = problem.design.weights(state.v)
        scores = problem.scores(w)
        b = problem.offset(scores, problem.design.to_shifted(w, b))
        problem.design.offsets(state.v)[:] = b + problem.design.along_centre(w)
        state.passes += 1.0
        return scores + b

    def note_gap(self, problem, state, gap: float) -> None:
        """Remember an estimate of the gap, relative to the dual objective.

        The dual only grows, ever less: it is computed at epochs 1, 2, 4, 8, … and taken as it was in between.
        """
        if state.epochs & (state.epochs - 1) == 0:
            penalty = 0.5 * problem.lam * problem.design.squared_norm(state.v)
            state.dual = self.concave(problem, state) - penalty
        state.relative_gap_estimate = float(gap) / state.dual if state.dual > 1e-300 else np.nan

    def concave(self, problem, state) -> float:
        """Σ m_i H_i(μ_i)."""
        return problem.concave(state.mu)

    def refresh(self, problem, state) -> None:
        """Every so many epochs, w(μ) anew: what is kept up by increments drifts by rounding."""
        state.epochs += 1
        if state.epochs % RENEWAL == 0:
            state.v = problem.augmented_of(state.mu, problem.design.offsets(state.v))

    def point(self, problem, state):
        return problem.dual_point(state.mu)
