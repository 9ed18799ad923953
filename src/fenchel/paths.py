"""A sequence of regularisation constants, each fit started from the one before: collins2008 7.1.2."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf, isnan, nan

import numpy as np

from fenchel.choosing import as_solver, require
from fenchel.constants import SPARSE, penalties
from fenchel.loop import solve
from fenchel.problem import Problem
from fenchel.results import Result
from fenchel.solvers.base import Solver, Start
from fenchel.structures.passes import all_targets
from fenchel.trace import Status

NEARER = 0.9  # MNIST at C = 167, 1,290, 10,000 by cd-dual: 203, 186, 161 passes; 217, 233, 227 with 1


@dataclass(frozen=True)
class Fit:
    """One constant of a path: its value, the λ and λ₁ it stands for, the result, and the validation score."""

    constant: float
    lam: float
    result: Result
    score: float = nan
    l1: float = 0.0


@dataclass(frozen=True)
class Path:
    """The fits in the order they were made, from the strongest regulariser to the weakest."""

    name: str
    fits: list[Fit]

    def __iter__(self):
        return iter(self.fits)

    def __len__(self):
        return len(self.fits)

    def __getitem__(self, k) -> Fit:
        return self.fits[k]

    @property
    def passes(self) -> float:
        """Of all fits together."""
        return sum(fit.result.certificate.passes for fit in self.fits)

    @property
    def seconds(self) -> float:
        """Of all fits together, checks of the gap excluded."""
        return sum(fit.result.certificate.seconds for fit in self.fits)

    @property
    def best(self) -> Fit | None:
        """The fit of highest validation score; of equals the most regularised. None without scores."""
        scored = [fit for fit in self.fits if not isnan(fit.score)]
        return max(scored, key=lambda fit: fit.score) if scored else None


def path(
    problem: Problem,
    solver: Solver | str = "auto",
    *,
    tol: float = 1e-3,
    max_passes: float = 1000.0,
    max_seconds: float = inf,
    seed: int = 0,
    check_every: float | None = None,
    validate: Callable[[np.ndarray, float], float] | None = None,
    callbacks: Iterable[Callable] = (),
    after_fit: Callable[[Fit], None] | None = None,
    **constants: Iterable[float] | float,
) -> Path:
    """Fit the problem for a whole sequence of constants, each to its own certificate.

    constants: one of the names of `fenchel.constants`, with its values: C=[0.01, 0.1, 1] or
    collins_C=1000 * 0.7 ** np.arange(24). With an L1 term the other constant may be given too, one of the two
    with values: C=[0.1, 1], l1_ratio=0.5, or c1=[1, 0.1], c2=0.1. They are fitted from the strongest
    regulariser to the weakest (of an L1 term: from the largest λ₁); a dual solver keeps its dual variables
    from one to the next, another starts from the last weights.
    tol, max_passes, max_seconds, check_every: for each constant, as in `solve`. seed: added to the solver's
    own. validate(w, b): a score, the higher the better. after_fit: called with each Fit once it is made.
    An L1 term of the problem stays as it is where none is named. Ctrl-C ends the path after the fit it
    interrupts.
    """
    name, steps = _steps(problem, constants)
    limits = {"tol": tol, "max_passes": max_passes, "max_seconds": max_seconds, "check_every": check_every}
    fits, start = [], None
    for l1, lam, _ in steps:  # a constant that a solver cannot train is refused before the first fit
        weaker = problem.with_penalty(lam, l1=l1)
        require(weaker, as_solver(solver, weaker))
    for k, (l1, lam, constant) in enumerate(steps):
        if start is not None and solver == "auto":
            start = _nearer_to_targets(problem, start, lam)
        problem = problem.with_penalty(lam, l1=l1)
        # another seed for each: the same draws would leave out the same examples
        result = solve(problem, solver, start=start, seed=seed + k, callbacks=callbacks, **limits)
        score = validate(result.w, result.b) if validate else nan
        fits.append(Fit(constant, lam, result, score, l1))
        if after_fit:
            after_fit(fits[-1])
        if result.status is Status.INTERRUPTED:
            break
        start = result.start
    return Path(name, fits)


def _nearer_to_targets(problem, start, lam) -> Start:
    """The start for a weaker λ′: μ moved to y + (λ′/λ)^NEARER (μ − y).

    Then w(μ) = Σ m_i A_iᵀ(y_i − μ_i)/λ′ is a little more than before; with the same μ it were far too large.
    """
    if start.mu is None or problem.loss.hinge or problem.l1 > 0.0 or not problem.structure.listed:
        return start
    if problem.examples.disk is not None:  # there they may be more than memory holds
        return start
    targets = np.empty(problem.shape)
    all_targets(problem.blocks, targets)
    return start._replace(mu=targets + (lam / problem.lam) ** NEARER * (start.mu - targets))


def _steps(problem, constants) -> tuple[str, list]:
    """The name of the constant that has values, and (λ₁, λ, value) of each, the strongest first."""
    several = [name for name, values in constants.items() if isinstance(values, Iterable)]
    if len(constants) == 1 and not several:
        ((name, value),) = constants.items()
        raise ValueError(f"{name}={value!r} is no sequence of constants; give a list, as {name}=[0.1, 1, 10]")
    if len(several) != 1 or len(constants) > 2 or (len(constants) == 2 and not SPARSE.keys() & constants):
        raise ValueError(f"exactly one kind of constant is needed, got {sorted(constants) or 'none'}")
    name, values = several[0], list(constants[several[0]])
    if not values:
        raise ValueError(f"{name} has no values; at least one is needed")
    steps = []
    for value in values:
        lam, l1 = penalties(problem.total, **constants | {name: value})
        steps.append((l1 if SPARSE.keys() & constants else problem.l1, lam, float(value)))
    return name, sorted(steps, reverse=True)
