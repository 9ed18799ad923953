"""Which solver: the rule behind "auto", and whether the one asked for can do it."""

import numpy as np

from fenchel._memory import available_bytes
from fenchel.curvature import UNEVEN, matrix_bytes, spread
from fenchel.problem import Problem
from fenchel.solvers import SOLVERS, make, solver_class
from fenchel.solvers.base import Solver

# Where `choose` takes dual coordinate descent: at most this share of non-zeros, or this curvature times it.
SPARSE, EASY = 0.1, 200.0
# Not where features are so many times apart and the curvature is above this: then L-BFGS, which scales them.
APART, HARD = 100.0, 1e6
# Newton there if there are fewer examples a column than this, and its matrices take no more seconds.
WIDE, PATIENT = 3.0, 5.0
# Passes after which a solver is asked how many more it will need, and how many it may at a tolerance of 1e-3.
LOOK, PATIENCE = 8.0, 40.0
# Exponentiated gradient where sequences have at most so many tokens on average, or, where there are more
# attributes than tokens, so many.
LONG, LONG_IF_RICH = 100, 3000


def relay(solver: Solver | str, problem: Problem) -> list[Solver]:
    """The solver, and those that may take over from it: none unless it was chosen by "auto"."""
    names = plan(problem) if isinstance(solver, str) and solver == "auto" else []
    return [make(name) for name in names] or [as_solver(solver, problem)]


class Forecast:
    """How many passes are left, going by how the gap fell over the last half of those made."""

    def __init__(self):
        self.met: list[tuple[float, float]] = []  # passes, log of the gap relative to P

    def note(self, passes: float, gap: float) -> None:
        if gap > 0.0 and np.isfinite(gap):
            self.met.append((passes - (self.met[0][0] if self.met else passes), float(np.log(gap))))

    def passes_left(self, tol: float) -> float:
        """0 as long as there is too little to go by."""
        if not self.met or self.met[-1][0] < LOOK or self.met[-1][1] <= np.log(tol):
            return 0.0
        passes, gap = self.met[-1]
        half = next(each for each in self.met if each[0] >= 0.5 * passes)
        if half[1] <= gap or half[0] == passes:
            return np.inf
        return (gap - np.log(tol)) * (passes - half[0]) / (half[1] - gap)


def patience(tol: float) -> float:
    """Passes that a solver may still need before another one takes over."""
    return PATIENCE * max(1.0, -np.log10(tol) / 3.0)


def as_solver(solver: Solver | str, problem: Problem) -> Solver:
    """The solver itself, or the one of that name."""
    if isinstance(solver, str):
        return make(choose(problem) if solver == "auto" else solver)
    if isinstance(solver, type) or not hasattr(solver, "needs"):
        raise ValueError(f"solver={solver!r} is neither a solver's name nor an instance such as CDDual()")
    return solver


def plan(problem: Problem) -> list[str]:
    return [choose(problem)]


def choose(problem: Problem) -> str:
    """The rule behind solver="auto"; docs/choosing.md has the measurements it rests on.

    With an L1 term the one solver that takes it. Sequences: exponentiated gradient unless they are long, or
    cutting planes for the hinge loss. Otherwise:
    Newton where its eight or so matrices cost no more than 60 passes of another method (or next to nothing)
    and fit in half of the memory: it does not mind badly scaled features. Else dual coordinate descent, where
    its dual variables fit and it converges fast: on sparse data, and with several labels also where the
    curvature of a block, m‖x‖²/λ, is small. Else a method of the primal.
    """
    if problem.l1 > 0.0:
        return "lbfgs"
    fits = 4 * 8 * float(np.prod(problem.shape, dtype=float)) <= 0.5 * available_bytes()
    if problem.structure.linked:
        return _choose_for_sequences(problem, fits)
    if problem.loss.hinge:
        return "cd-dual"
    if _is_worth_a_matrix(problem) and matrix_bytes(problem.dim) <= 0.5 * available_bytes():
        return "newton"
    if problem.lam > 0.0 and fits and _suits_dual_coordinates(problem):
        return "cd-dual"
    uneven = _badly_scaled(problem) or problem.design.shift is not None
    return "lbfgs" if problem.structure.name == "binary" or uneven else "tron"


def _is_worth_a_matrix(problem) -> bool:
    """Whether Newton's matrices are quick, or cheap enough where hardly anything else can prove its model."""
    design = problem.design
    seconds = 8.0 * design.matrix_seconds
    if seconds <= max(60 * 3e-9 * design.work, 0.05):
        return True
    wide = problem.lam > 0.0 and design.n < WIDE * design.n_columns
    if seconds > PATIENT or not wide or spread(problem.scales) <= UNEVEN:
        return False
    low, high = np.quantile(problem.scales, [0.1, 0.9])  # one column apart does no harm
    return bool(high > APART * low)


def _choose_for_sequences(problem, fits) -> str:
    """A block of exponentiated gradient is a sequence: the longer, the slower."""
    if problem.loss.hinge:
        return "cutting-plane" if fits else "sgd"
    tokens, attributes = problem.examples.rows.shape
    short = tokens <= problem.n * (LONG if attributes < tokens else LONG_IF_RICH)
    return "eg-gap" if problem.lam > 0.0 and fits and short else "lbfgs"


def _suits_dual_coordinates(problem) -> bool:
    rows = problem.examples.rows
    density = rows.nnz / max(rows.shape[0] * rows.shape[1], 1)
    curvature = problem.examples.mass.mean() * problem.design.norms.mean() / problem.lam
    easy = problem.structure.name != "binary" and curvature * density <= EASY
    return (density <= SPARSE or easy) and not (curvature > HARD and _badly_scaled(problem))


def _badly_scaled(problem) -> bool:
    """Whether only a method that scales the features itself gets anywhere."""
    return spread(problem.scales) > APART


def solver_name(solver: Solver) -> str:
    """The name of a solver in SOLVERS, the one with most options in common; else its class's."""
    for name, (target, options) in sorted(SOLVERS.items(), key=lambda item: -len(item[1][1])):
        if target.endswith(f":{type(solver).__name__}") and all(
            getattr(solver, option) == value for option, value in options.items()
        ):
            return name
    return type(solver).__name__


def require(problem: Problem, solver: Solver) -> None:
    """Refuse a solver that needs what the problem does not offer, and say what would do."""
    missing = sorted(solver.needs - problem.offers)
    if not missing:
        return
    able = [name for name in SOLVERS if solver_class(name).needs <= problem.offers]
    raise ValueError(
        f"solver {solver_name(solver)!r} cannot train a {problem.structure.name} model with the "
        f"{problem.loss.name} loss here: {_lack(problem, missing)}; "
        + (f"use {', '.join(able)}" if able else "no solver can")
    )


def _lack(problem, missing) -> str:
    """What the problem does not have, in words."""
    if problem.l1 > 0.0:
        return "its L1 term has corners" if not problem.loss.hinge else "the hinge loss takes no L1 term"
    if missing == ["dual"]:
        return "it has no regulariser and so no dual"
    return f"it offers no {'gradient' if 'log' in missing else missing[0]}"
