"""Common to the solvers that hold dual variables for each example: first point, free offset, certificate."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel._math import TINY
from fenchel._memory import require_memory
from fenchel.solvers.base import State

PATIENCE = 8  # passes that an example may be left out
ROUNDS = 4  # further visits at most, to examples that have a gap, before others are chosen
RENEWAL = 10  # epochs after which what is kept up by increments is computed anew


@dataclass
class DualState(State):
    """mu the dual variables, v the weights: w(μ) and β; centre: β₀, where the offset is free."""

    mu: np.ndarray | None = None
    v: np.ndarray | None = None
    rng: np.random.Generator | None = None
    epochs: int = 0
    dual: float = 0.0  # D(μ) when last computed
    centre: np.ndarray | float = 0.0
    hands_out_copies: ClassVar[bool] = False  # whether `mu` is one
    off_balance: float = np.inf  # ‖β − β₀‖ when the centre was last moved
    gap: float = np.nan  # met in the last pass
    # Whether v is w(μ) of these examples. At a place among others (`fenchel.distributed`) it holds what those
    # add, too: then v and the centre are moved by who adds them up.
    alone: bool = True

    def free_weights(self, problem) -> np.ndarray:
        """β, as a view."""
        return self.v[problem.penalised :]


class Due:
    """Which examples a pass visits: few blocks carry most of the gap (lepriol2018 section 7 asks for this).

    The gap of an example that a pass leaves out is taken to grow by the factor `growth`; one is due when that
    is not below the mean, and after PATIENCE passes in any case.
    """

    def __init__(self, n: int, growth: float):
        self.growth, self.age = growth, np.ones(n)  # age: by how much a gap is taken to have grown

    def among(self, order, gaps) -> np.ndarray:
        """The examples of `order` that are due, in its order; gaps (n,): as last met, inf where unknown."""
        known = np.isfinite(gaps)
        return order[self._are_due(np.where(known, gaps, 0.0), ~known)[order]]

    def rounds(self, rng, gaps, enough) -> np.ndarray:
        """Those that are due in random order, where all gaps are known; where these are fewer than `enough`,
        then those that have a gap, up to ROUNDS times: choosing takes as long as visiting a few.
        """
        due = np.flatnonzero(self._are_due(gaps, False))
        unsettled = due[gaps[due] > 0.0]
        more = min(ROUNDS, int((enough - due.size) // max(unsettled.size, 1)))
        order = [due, *[unsettled] * more]
        return np.concatenate([rng.permutation(each) for each in order]).view(np.uint64)

    def _are_due(self, gaps, unknown) -> np.ndarray:
        due = (gaps * self.age >= gaps.mean()) | (self.age >= self.growth**PATIENCE) | unknown
        self.age *= self.growth
        self.age[due] = 1.0
        return due


def array_bytes(problem) -> int:
    """Of an array of all dual variables."""
    return 8 * int(np.prod(problem.shape, dtype=float))


class DualSolver:
    """A solver whose state is a point of the dual; its certificate costs a pass."""

    free_check: ClassVar[bool] = False

    def copies(self, problem) -> float:
        """How many arrays of the size of all dual variables it holds."""
        return 4

    def reserve(self, problem) -> None:
        """Refuse, stating the size, where these arrays cannot fit."""
        if problem.examples.disk is not None:
            return  # these arrays have room beside the examples
        copies = self.copies(problem)
        needed = int(copies * array_bytes(problem)) + 4 * 8 * problem.dim
        shape = " × ".join(map(str, problem.shape))
        others = "lbfgs, tron or cd-primal" if problem.structure.listed else "eg or lbfgs"
        advice = "sgd" if problem.loss.hinge else others
        require_memory(needed, f"{copies:.2g} arrays of {shape} dual variables", f"use {advice}")

    def first_mu(self, problem, start, fresh: np.ndarray) -> np.ndarray:
        """A warm start's own dual variables, else the marginals at its weights, else the `fresh` point."""
        if start is not None and start.mu is not None and start.mu.shape == problem.shape:
            return start.mu.copy() if problem.loss.hinge else np.maximum(start.mu, TINY)
        if start is not None and problem.loss.name == "log":
            return np.maximum(problem.marginals(problem.scores(problem.weights_at(start))), TINY)
        return fresh

    def first_centre(self, problem, start) -> np.ndarray:
        """β₀ of a warm start, else the best one without weights."""
        if start is not None and start.mu is not None and start.centre is not None and problem.free:
            return start.centre / problem.design.constant
        return problem.weights_at(start)[problem.penalised :]

    def recentre(self, problem, state, gap: float = 0.0) -> None:
        """Move β₀ to β, and β by what Σ m_i (y_i − μ_i) adds to it there.

        The proximal point method for the offset, which for the dual is the method of multipliers: without a
        penalty on b the marginals would have to balance, Σ m_i (y_i − μ_i) = 0, with the penalty
        λ/2 ‖β − β₀‖² every block moves alone, as if β were the weight of a feature like others.
        gap: met in the pass, if blocks may not have answered to the last move yet; then the centre waits
        where they are no nearer to balance, as long as the gap is more than the penalty.
        """
        if not (problem.free and state.alone):
            return
        beta = state.free_weights(problem)
        moved = beta - state.centre
        size = float(np.linalg.norm(moved))
        if size <= state.off_balance or gap <= 0.5 * problem.lam * size**2:
            state.centre, state.off_balance = beta.copy(), size
            beta += moved

    def note_gap(self, problem, state, gap: float) -> None:
        """Remember an estimate of the gap, relative to the dual objective.

        The dual only grows, ever less: it is computed at epochs 1, 2, 4, 8, … and taken as it was in between.
        """
        state.gap = float(gap)
        if not state.alone:
            return
        if state.epochs & (state.epochs - 1) == 0:
            own = problem.regularizer.read(state.v[: problem.penalised])
            penalty = problem.regularizer.conjugate(own)
            state.dual = self.concave(problem, state) - penalty
        state.relative_gap_estimate = float(gap) / state.dual if state.dual > 1e-300 else np.nan

    def concave(self, problem, state) -> float:
        """Σ m_i H_i(μ_i)."""
        return problem.concave(state.mu)

    def refresh(self, problem, state) -> None:
        """Every so many epochs, w(μ) anew: what is kept up by increments drifts by rounding."""
        state.epochs += 1
        if state.alone and state.epochs % RENEWAL == 0:
            state.v = problem.proximal_weights(state.mu, state.centre)

    def point(self, problem, state):
        return problem.dual_point(
            state.mu, offset=state.free_weights(problem), overwrite=state.hands_out_copies
        )
