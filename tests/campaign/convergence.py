"""How often a solver does not reach 1e-3 in 1,000 passes from a cold start, where C·scale² ≤ 1e3."""

from math import inf

import numpy as np

from fenchel.solvers import SOLVERS, make, solver_class

from .attempts import Run, attempt
from .draws import draw

SEEDS = 1000
TRIES = 60  # draws until a solver takes a problem: some want features ≥ 0


def rows_of(seed, solvers=None):
    """(solver, loss, kind, status, relative gap) of every solver and loss on its problem of this seed."""
    return [
        row
        for k, name in enumerate(SOLVERS)
        if solvers is None or name in solvers
        for loss in _losses(name)
        for row in _row(np.random.default_rng([seed, k, loss == "hinge"]), name, loss)
    ]


def _losses(name):
    if name == "perceptron":  # it converges to nothing
        return []
    needs = solver_class(name).needs
    return [loss for loss, other in (("log", "hinge"), ("hinge", "log")) if other not in needs]


def _row(rng, name, loss):
    """The first problem drawn that the solver takes, solved with its default options."""
    for _ in range(TRIES):
        try:
            drawn = draw(rng, loss=loss, tame=True)
        except ValueError:
            continue
        if not drawn.tame or not solver_class(name).needs <= drawn.problem.offers:
            continue
        run = attempt(Run(name, 1e-3, ""), drawn.problem, make(name), tol=1e-3, max_passes=1000.0)
        if run.result is not None:
            certificate = run.result.certificate
            yield name, loss, drawn.kind, certificate.status.name, float(certificate.relative_gap)
            return
        if not isinstance(run.error, ValueError):  # else features ≥ 0 are wanted
            yield name, loss, drawn.kind, type(run.error).__name__, inf
            return
