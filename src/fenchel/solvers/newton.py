"""Newton's method with the exact Hessian, damped: zhang2005 (18)."""

from dataclasses import dataclass
from typing import ClassVar

from fenchel.matrices import solve_positive
from fenchel.solvers.base import BatchSolver, backtrack


@dataclass(frozen=True)
class Newton(BatchSolver):
    """w ← w − step · (∇²P)⁻¹ ∇P, step halved until P decreases; with damped=False it is 1, as printed.

    One Cholesky factorisation of a (d, d) matrix an iteration: for few features, however many examples,
    and whatever their scales.
    """

    damped: bool = True
    needs: ClassVar[frozenset] = frozenset({"log", "gradient", "matrix"})

    def step(self, problem, state):
        now = state.evaluation
        direction = -solve_positive(problem.hessian(now), now.gradient)
        backtrack(problem, state, direction, damped=self.damped)
