"""Limited-memory BFGS: the batch rival of all five papers (Liu and Nocedal 1989).

With an L1 term OWL-QN (Andrew and Gao 2007): the subgradient of least norm takes the gradient's place, and a
step stays in the orthant it starts into, where P is smooth; a weight that would leave it stops at zero.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fenchel._cache import njit
from fenchel._math import REORDER
from fenchel.coordinates import Centred, Whitened
from fenchel.solvers.base import BatchSolver, BatchState, evaluate
from fenchel.solvers.lbfgs import vectors
from fenchel.solvers.lbfgs.memory import Pairs

SUFFICIENT, FLAT = 1e-4, 1e-14  # share of the promised decrease (Armijo); where P changes no more
NEAREST, FARTHEST = 0.05, 100.0  # times a step may shrink, or grow, at once


@dataclass
class LBFGSState(BatchState):
    """Adds the last steps and gradient changes, and the coordinates these are in: None are the weights.

    inside: the evaluation in these coordinates.
    """

    pairs: Pairs | None = None
    coordinates: Centred | Whitened | None = None
    inside: "_Inside | None" = None


@dataclass(frozen=True)
class LBFGS(BatchSolver):
    """Quasi-Newton with `memory` pairs and a line search for the Wolfe conditions; OWL-QN with an L1 term.

    rounded: it works in `Problem.coordinates`: Gaussian columns that differ by a factor of 100 took more than
    1,000 passes without, 33 with them. False: in the weights as they are, as the papers run it.
    """

    memory: int = 10
    rounded: bool = True
    needs: ClassVar[frozenset] = frozenset({"log", "descent"})

    def __post_init__(self):
        if not (isinstance(self.memory, int) and self.memory > 0):
            raise ValueError(f"memory={self.memory!r} must be a positive whole number")

    def init(self, problem, start):
        begun, coordinates = super().init(problem, start), problem.coordinates if self.rounded else None
        inside = _Inside.of(begun.evaluation, coordinates)
        pairs = Pairs(self.memory, problem.dim)
        return LBFGSState(**vars(begun), pairs=pairs, coordinates=coordinates, inside=inside)

    def step(self, problem, state):
        pairs = state.pairs
        direction, slope = self._direction(problem, state)
        if not slope < 0.0:  # memory spoilt by rounding: start it anew
            pairs.forget()
            direction, slope = self._direction(problem, state)
        first = 1.0 if len(pairs) else min(1.0, 1.0 / max(np.sqrt(max(-slope, 0.0)), 1e-300))
        search = _search_orthant if problem.l1 > 0.0 else _search_line
        after = search(problem, state, direction, slope, first)
        if after is None:
            state.stalled = not len(pairs)
            pairs.forget()
            return
        inside = _Inside.of(after, state.coordinates)
        pairs.remember(problem.design, state.inside, inside)
        state.evaluation, state.inside = after, inside
        state.updates += 1

    def _direction(self, problem, state):
        """The direction of the memory and its slope; with an L1 term only where it agrees with −gradient."""
        now, coordinates, gradient = state.evaluation, state.coordinates, state.inside.smooth
        if now.gradient is not now.smooth:
            gradient = now.gradient if coordinates is None else coordinates.gradient(now.gradient)
        direction, slope = state.pairs.direction(problem.design, gradient)
        if coordinates is not None:
            direction = coordinates.direction(direction)
        if problem.l1 > 0.0:
            slope = _by_parts(problem, _align, now.gradient, direction)
        return direction, slope


class _Inside(NamedTuple):
    """What the memory keeps of an evaluation, in its coordinates."""

    w: np.ndarray
    smooth: np.ndarray

    @classmethod
    def of(cls, evaluation, coordinates):
        if coordinates is None:
            return evaluation
        return cls(coordinates.inside(evaluation.w), coordinates.gradient(evaluation.smooth))


def _search_line(problem, state, direction, slope, step):
    """A point that meets both Wolfe conditions, inside a bracket that shrinks; None where none is found.

    The next step is where the slope, known at two points, would vanish: the first one may be off by a factor
    of hundreds, and doubling or halving it took half of all passes. Near the optimum P is constant to
    rounding; there a smaller slope alone counts as descent.
    """
    before = state.evaluation
    low, low_slope, high, high_slope = 0.0, slope, np.inf, np.nan
    for _ in range(50):
        after = evaluate(problem, state, vectors.moved(problem.design, before.w, step, direction))
        after_slope = vectors.dot(problem.design, after.gradient, direction)
        flat = abs(after.value - before.value) <= FLAT * abs(before.value)
        enough = after.value <= before.value + SUFFICIENT * step * slope
        if not (enough or (flat and after_slope <= -slope)):
            high, high_slope = step, after_slope
        elif after_slope < 0.9 * slope:
            low, low_slope = step, after_slope
        else:
            return after
        if np.isfinite(high):
            step = low + (high - low) * _share(low_slope, high_slope, NEAREST, 0.5)
        else:
            step *= _share(slope, after_slope, 2.0, FARTHEST)
    return after if after.value < before.value else None


def _share(slope, after_slope, least, most):
    """How far a step should have gone, in units of it, for the slope to vanish; within bounds."""
    change = after_slope - slope
    return min(max(-slope / change, least), most) if change > 0.0 else most


def _search_orthant(problem, state, direction, slope, step):
    """A point of sufficient decrease inside the orthant, by halving the step; None where none is found.

    Andrew and Gao (2007), section 3.2: the decrease promised is that along the projected step. Near the
    optimum P is constant to rounding, as in `_search_line`: there the slope along the step tells, which on a
    quadratic may rise to the opposite of what it was before P rises.
    """
    before = state.evaluation
    for _ in range(50):
        w = np.empty_like(before.w)
        last = problem.penalised
        promised = _by_parts(problem, _move_in_orthant, last, before.w, before.gradient, step, direction, w)
        after = evaluate(problem, state, w)
        if after.value < before.value and after.value <= before.value + SUFFICIENT * promised:
            return after
        flat = promised < 0.0 and abs(after.value - before.value) <= FLAT * abs(before.value)
        if flat and _by_parts(problem, _slope_along, after.gradient, before.w, w) <= -0.9 * promised:
            return after
        step *= 0.5
    return None


def _by_parts(problem, kernel, *arrays) -> float:
    """The sum of what kernel(start, stop, *arrays) returns over parts of the weights, by threads."""
    dim = problem.dim
    return sum(problem.design.for_each_part(dim, 2 * dim, lambda start, stop: kernel(start, stop, *arrays)))


@njit(cache=True, nogil=True, fastmath=REORDER)
def _slope_along(start, stop, gradient, w, moved):
    """⟨gradient, moved − w⟩."""
    total = 0.0
    for j in range(np.uint64(start), np.uint64(stop)):
        total += gradient[j] * (moved[j] - w[j])
    return total


@njit(cache=True, nogil=True, fastmath=REORDER)
def _align(start, stop, gradient, direction):
    """direction_j = 0 where it is not against the gradient, written; returns ⟨gradient, direction⟩."""
    slope = 0.0
    for j in range(np.uint64(start), np.uint64(stop)):
        product = gradient[j] * direction[j]
        if product < 0.0:
            slope += product
        else:
            direction[j] = 0.0
    return slope


@njit(cache=True, nogil=True, fastmath=REORDER)
def _move_in_orthant(start, stop, last, w, gradient, step, direction, out):
    """out = w + step · direction, but 0 where its sign is not that of w, or at w = 0 that of −gradient.

    Weights from `last` on have no penalty, and no orthant. out written; returns ⟨gradient, out − w⟩.
    """
    promised = 0.0
    for j in range(np.uint64(start), np.uint64(stop)):
        moved = w[j] + step * direction[j]
        side = w[j] if w[j] != 0.0 else -gradient[j]
        if j < last and not moved * side > 0.0:
            moved = 0.0
        out[j] = moved
        promised += gradient[j] * (moved - w[j])
    return promised
