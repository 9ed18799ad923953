"""One solve: what was asked, and what came of it."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf

from fenchel import solve

SECONDS = 60.0  # a run that takes longer hangs


@dataclass
class Run:
    """One solve: what was asked, and the result or the error that came of it."""

    solver: str
    tol: float
    settings: str
    result: object = None
    value: float = inf  # P of the result, in extended precision
    error: BaseException | None = None
    warned: list = field(default_factory=list)
    pressed: str | None = None


def attempt(run, problem, solver, interrupt=None, **given) -> Run:
    """Solve, and keep what came of it."""
    if interrupt is not None:  # compile first: under a trace function that takes many times as long
        keep(Run(run.solver, run.tol, ""), partial(solve, problem, solver, max_passes=3.0))
    return keep(run, partial(solve, problem, solver, max_seconds=SECONDS, **given), interrupt)


def keep(run, make: Callable, interrupt=None) -> Run:
    """The result of make(), or its error, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if interrupt is None:
                run.result = make()
            else:
                with interrupt:
                    run.result = make()
        except (Exception, KeyboardInterrupt) as error:
            run.error = error
    run.pressed = interrupt.pressed if interrupt else None
    run.warned = [w for w in caught if issubclass(w.category, RuntimeWarning)]
    return run
