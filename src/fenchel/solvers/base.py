"""What a solver is: frozen settings, and three methods that know a Problem and nothing else.

    init(problem, start) -> State      arrays its kernels update in place
    step(problem, state)               go on: about a pass; never prints, times, stops or reads a file
    point(problem, state) -> Point     the model so far and the bounds that prove its quality

`needs` names what it asks of a problem (see offers.py). `free_check` says that `point` costs nothing.
`certifies = False` says that it minimises nothing: then its points have neither P nor bounds.
`by_shards = False` says that it wants all examples at hand, or their columns: not where they are too many.
"""

from dataclasses import dataclass
from math import nan
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from fenchel.certificates import Evaluation, Point
from fenchel.problem import Problem


class Start(NamedTuple):
    """Where to begin: weights, offset and, from a dual solver on the same examples, its dual variables.

    trusted: mu is as a solver left it, for outputs that are the same; then it is not looked through.
    centre: the offset around which it had got there; b is the best one for w, which is another.
    """

    w: np.ndarray
    b: float | np.ndarray = 0.0
    mu: np.ndarray | None = None
    trusted: bool = False
    centre: np.ndarray | None = None


@dataclass
class State:
    """What every solver counts as it goes."""

    passes: float = 0.0  # example visits / n, or non-zeros touched / all non-zeros
    oracle_calls: int = 0
    updates: int = 0
    relative_gap_estimate: float = nan  # gap / objective as met on the way; nan if unknown
    stalled: bool = False  # the last step changed nothing
    finished: bool = False  # nothing is left to do, for a solver that proves nothing

    @property
    def dual_variables(self) -> np.ndarray | None:
        """What a later run can start from."""
        return getattr(self, "mu", None)


class Solver(Protocol):
    """The interface; solvers need not inherit from it."""

    needs: ClassVar[frozenset]
    free_check: ClassVar[bool]

    def init(self, problem: Problem, start: Start | None) -> State: ...
    def step(self, problem: Problem, state: State) -> None: ...
    def point(self, problem: Problem, state: State) -> Point: ...


@dataclass
class BatchState(State):
    """The state of a solver that evaluates P and ∇P at one w per step."""

    evaluation: Evaluation | None = None


class BatchSolver:
    """Common to solvers whose state is one evaluation: their certificate is free with the gradient, but for
    the search for a free offset.
    """

    free_check: ClassVar[bool] = True

    def init(self, problem, start):
        evaluation = problem.evaluate(problem.balanced_at(start))  # measuring: not counted
        estimate = problem.estimate(evaluation) if problem.free else nan
        return BatchState(evaluation=evaluation, relative_gap_estimate=estimate)

    def point(self, problem, state):
        return problem.point_at(state.evaluation)


def evaluate(problem, state, w) -> Evaluation:
    """P and ∇P at w, counted as one pass."""
    state.passes += 1.0
    state.oracle_calls += problem.n
    evaluation = problem.evaluate(w)
    if problem.free:
        state.relative_gap_estimate = problem.estimate(evaluation)
    return evaluation


def backtrack(problem, state, direction, sufficient=1e-4, trials=60, damped=True) -> None:
    """Move along a descent direction: halve the step until P has decreased enough (Armijo).

    damped=False takes the whole step, whatever becomes of P.
    """
    before = state.evaluation
    slope = float(before.gradient @ direction)
    step = 1.0
    for _ in range(trials):
        after = evaluate(problem, state, before.w + step * direction)
        if not damped or after.value <= before.value + sufficient * step * slope:
            state.updates += 1
            state.evaluation = after
            return
        # Where P no longer changes in its last digit, the gradient still tells progress.
        if after.value <= before.value * (1.0 + 1e-14) and after.gradient_norm < 0.9 * before.gradient_norm:
            state.updates += 1
            state.evaluation = after
            return
        step *= 0.5
    state.stalled = True
