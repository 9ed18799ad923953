"""A sequence of regularisation constants, each fit started from the one before: collins2008 7.1.2."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf, isnan, nan

import numpy as np

from fenchel.choosing import as_solver, require
from fenchel.constants import penalty
from fenchel.loop import Result, solve
from fenchel.problem import Problem
from fenchel.solvers.base import Solver
from fenchel.trace import Status


@dataclass(frozen=True)
class Fit:
    """One constant of a path: its value, the λ it stands for, the result, and the validation score."""

    constant: float
    lam: float
    result: Result
    score: float = nan


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
    **constants: Iterable[float],
) -> Path:
    """Fit the problem for a whole sequence of constants, each to its own certificate.

    constants: exactly one of the names of `fenchel.constants`, with its values: C=[0.01, 0.1, 1] or
    collins_C=1000 * 0.7 ** np.arange(24). They are fitted from the strongest regulariser to the weakest;
    a dual solver keeps its dual variables from one to the next, another starts from the last weights.
    tol, max_passes, max_seconds, check_every: for each constant, as in `solve`. seed: added to the solver's
    own. validate(w, b): a score, the higher the better. after_fit: called with each Fit once it is made.
    An L1 term of the problem stays as it is. Ctrl-C ends the path after the fit it interrupts.
    """
    if len(constants) != 1:
        raise ValueError(f"exactly one kind of constant is needed, got {sorted(constants) or 'none'}")
    ((name, values),) = constants.items()
    if not isinstance(values, Iterable):
        raise ValueError(
            f"{name}={values!r} is no sequence of constants; give a list, as {name}=[0.1, 1, 10]"
        )
    steps = sorted(((penalty(problem.total, **{name: c}), float(c)) for c in values), reverse=True)
    if not steps:
        raise ValueError(f"{name} has no values; at least one is needed")
    limits = {"tol": tol, "max_passes": max_passes, "max_seconds": max_seconds, "check_every": check_every}
    fits, start = [], None
    for lam, _ in steps:  # a constant that a solver cannot train is refused before the first fit
        weaker = problem.with_penalty(lam)
        require(weaker, as_solver(solver, weaker))
    for k, (lam, constant) in enumerate(steps):
        problem = problem.with_penalty(lam)
        # another seed for each: the same draws would leave out the same examples
        result = solve(problem, solver, start=start, seed=seed + k, callbacks=callbacks, **limits)
        score = validate(result.w, result.b) if validate else nan
        fits.append(Fit(constant, lam, result, score))
        if after_fit:
            after_fit(fits[-1])
        if result.status is Status.INTERRUPTED:
            break
        start = result.start
    return Path(name, fits)
