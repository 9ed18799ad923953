"""Problems from arrays: the level below the estimators.

from fenchel import problems, solvers, solve
result = solve(problems.binary(X, y, C=1.0), solvers.CDDual(), tol=1e-6)
"""

import numpy as np
import scipy.sparse as sp

from fenchel._memory import require_memory
from fenchel.constants import penalty
from fenchel.data import weighted_examples
from fenchel.losses import LOSSES
from fenchel.problem import Problem
from fenchel.regularizers import L2
from fenchel.structures.binary import Binary


def binary(
    X,
    y,
    *,
    loss="log",
    fit_intercept=False,
    intercept_scaling=None,
    sample_weight=None,
    threads=None,
    **constant,
) -> Problem:
    """Two classes: logistic regression (loss="log") or the linear support vector machine (loss="hinge").

    X: (n, d) dense or sparse. y: (n,) labels 0/1 or −1/+1; with the log loss also probabilities of the
    class 1. Exactly one regularisation constant of `fenchel.constants`, by name: C=1.0 unless given.
    fit_intercept adds a free (unpenalised) offset; with intercept_scaling=s, and always with the hinge
    loss, a penalised constant feature s (default 1) instead, as LIBLINEAR does. threads: for passes over all
    examples; None uses all cores where it pays. The numbers do not depend on it.
    """
    if loss not in LOSSES:
        raise ValueError(f"unknown loss {loss!r}; there are {', '.join(LOSSES)}")
    X, y = _matrix(X), _targets(y, loss)
    if fit_intercept and loss == "hinge" and intercept_scaling is None:
        intercept_scaling = 1.0
    if fit_intercept and intercept_scaling is not None:
        X = with_constant(X, intercept_scaling)
    require_memory(6 * 8 * X.shape[1], f"training {X.shape[1]} weights", "hash or renumber the features")
    examples, total = weighted_examples(X, y, sample_weight)
    if not (examples.y < 1.0).any() or not (examples.y > 0.0).any():
        raise ValueError("only one class has examples of positive weight; two are needed")
    lam = penalty(total, **(constant or {"C": 1.0}))
    free = bool(fit_intercept and intercept_scaling is None)
    return Problem(examples, Binary(), LOSSES[loss], L2(lam), free, threads)


def with_constant(X, value: float):
    """X with one more column, constant."""
    value = float(value)
    if not (np.isfinite(value) and value > 0.0):
        raise ValueError(f"intercept_scaling={value:g} must be a positive finite number")
    column = np.full((X.shape[0], 1), value)
    if sp.issparse(X):
        return sp.hstack([X, sp.csr_matrix(column)], format="csr")
    return np.hstack([X, column])


def _matrix(X):
    """X as a SciPy matrix or a 2-D array of finite numbers."""
    if not sp.issparse(X):
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions, expected 2: one row per example")
    values = X.data if sp.issparse(X) else X
    # A sum is a fraction of the cost of looking at each number, and finite where all of them are (and small).
    if not np.isfinite(values.sum(dtype=np.float64)) and not np.isfinite(values).all():
        raise ValueError("X contains NaN or infinity; remove or impute those entries first")
    return X


def _targets(y, loss):
    y = np.asarray(y, dtype=np.float64)
    if y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}, expected one label per row")
    if np.isin(y, (-1.0, 1.0)).all():
        y = (y + 1.0) / 2.0
    if not ((y >= 0.0) & (y <= 1.0)).all():
        raise ValueError("y must hold labels 0/1 or −1/+1, or probabilities between 0 and 1")
    if loss == "hinge" and not np.isin(y, (0.0, 1.0)).all():
        raise ValueError("the hinge loss takes labels, not probabilities")
    return y
