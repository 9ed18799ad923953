"""Estimators fitted again and again with warm_start=True, to data, constants and solvers that change."""

from typing import NamedTuple

import numpy as np

from fenchel import ChainCRF, LinearSVC, LogisticRegression
from fenchel.solvers import SOLVERS, solver_class

from .attempts import Run, keep
from .choices import Interrupt
from .draws import constant, listed_binary, listed_chain, listed_crossed, matrix, seen


class Fitted(NamedTuple):
    """What the checks ask of a result, out of an estimator."""

    w: np.ndarray
    b: np.ndarray | float
    status: object
    certificate: object
    trace: object


def refits(rng):
    """(Listed, Run) for each of a few fits of one estimator."""
    return list((_flat if rng.random() < 0.5 else _chain)(rng))


def _change(rng, model, needs):
    """Settings for the next fit: a solver that can, tol, max_iter, C."""
    able = [name for name in SOLVERS if needs >= solver_class(name).needs]
    C = constant(rng, 1.0, tame=rng.random() < 0.8)
    solver = "auto" if rng.random() < 0.2 else str(rng.choice(able))
    model.set_params(C=C, solver=solver, tol=float(10.0 ** rng.uniform(-8, -2)))
    model.set_params(max_iter=int(rng.choice([1, 5, 50, 1000])), random_state=int(rng.integers(100)))


def _fit(rng, model, X, y, weight, read):
    """A Run of model.fit, interrupted now and then."""
    run = Run(str(model.solver), model.tol, f"{model}")
    interrupt = Interrupt(int(10.0 ** rng.uniform(0, 3))) if rng.random() < 0.1 else None

    def make():
        model.fit(X, y, sample_weight=weight)
        return read(model)

    return keep(run, make, interrupt)


# ---- labels


def _flat(rng):
    hinge, K, A, n = bool(rng.random() < 0.4), int(rng.integers(2, 4)), int(rng.integers(1, 5)), 8
    intercept = bool(rng.random() < 0.7)
    scaling = None if rng.random() < 0.6 else float(10.0 ** rng.uniform(-1, 1))
    kind = LinearSVC if hinge else LogisticRegression
    model = kind(warm_start=True, fit_intercept=intercept, intercept_scaling=scaling, n_jobs=1)
    X = matrix(rng, n, A)
    for _ in range(rng.integers(2, 5)):
        X = X + (rng.random((n, A)) < 0.2) * rng.standard_normal((n, A)) * np.abs(X).max()
        y = np.concatenate([np.arange(K), rng.integers(K, size=n - K)])
        weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.3 else None
        _change(rng, model, _FLAT[hinge])
        scale = (1.0 if hinge and scaling is None else scaling) if intercept else None
        run = _fit(rng, model, X, y, weight, lambda model, scale=scale: _read_flat(model, scale))
        yield _list_flat(model, X, y, weight, scale, hinge), run


_OUTCOMES = {"blocks", "outcomes", "dual", "bound"}
_FLAT = {
    False: _OUTCOMES | {"log", "descent", "gradient", "hessian", "matrix", "columns", "surrogates"},
    True: _OUTCOMES | {"hinge"},
}


def _read_flat(model, scale):
    w, b = model.coef_.T, model.intercept_
    if scale:
        w, b = np.vstack([w, b / scale]), 0.0
    return Fitted(w.ravel(), b, model.certificate_.status, model.certificate_, model.trace_)


def _list_flat(model, X, y, weight, scale, hinge):
    full = np.hstack([X, np.full((len(X), 1), scale)]) if scale else X
    free, mass = model.fit_intercept and not scale, np.ones(len(y)) if weight is None else weight
    lam = 1.0 / (np.longdouble(model.C) * mass.sum())
    if y.max() == 1:
        return listed_binary(full, y.astype(float), mass, lam, 0.0, hinge, free)
    return listed_crossed(full, np.eye(y.max() + 1)[y], mass, lam, 0.0, hinge, free)


# ---- sequences

WORDS, TAGS = ("a", "b", "c", "d", "e"), ("X", "Y", "Z")
_CHAIN = {
    False: {"log", "descent", "gradient", "hessian", "blocks", "dual", "bound"},
    True: {"hinge", "blocks", "vertices", "dual", "bound"},
}


def _chain(rng):
    hinge = bool(rng.random() < 0.3)
    model = ChainCRF(loss="hinge" if hinge else "log", warm_start=True, n_jobs=1)
    model.set_params(observed=bool(rng.random() < 0.5), transitions=bool(rng.random() < 0.8))
    for _ in range(rng.integers(2, 5)):
        words, tags = _some(rng, WORDS), _some(rng, TAGS)
        X, y = _sentences(rng, words, tags)
        weight = rng.integers(1, 4, len(X)).astype(float) if rng.random() < 0.3 else None
        _change(rng, model, _CHAIN[hinge])
        run = _fit(rng, model, X, y, weight, _read_chain)
        yield _list_chain(model, X, y, weight, hinge), run


def _some(rng, names):
    """A few of the names, in any order."""
    return list(rng.permutation(names)[: rng.integers(1, len(names) + 1)])


def _sentences(rng, words, tags):
    X, y = [], []
    for T in rng.integers(1, 5, size=rng.integers(1, 5)):
        X.append([{str(w): _number(rng) for w in _some(rng, words)} for _ in range(T)])
        y.append([str(tag) for tag in rng.choice(tags, size=T)])
    return X, y


def _number(rng):
    return float(rng.choice([1.0, 1.0, 1.0, 0.5, -2.0, 100.0]))


def _read_chain(model):
    return Fitted(model.weights_, 0.0, model.certificate_.status, model.certificate_, model.trace_)


def _list_chain(model, X, y, weight, hinge):
    """By the names that the sentences hold: attributes in order of appearance, labels sorted."""
    names = list(dict.fromkeys(name for sentence in X for token in sentence for name in token))
    if hasattr(model, "weights_") and set(names) == set(model.attribute_names_):
        names = model.attribute_names_
    tags = sorted({tag for sentence in y for tag in sentence})
    K, starts = len(tags), np.concatenate([[0], np.cumsum([len(sentence) for sentence in X])])
    table = np.zeros((starts[-1], len(names)))
    for t, token in enumerate(token for sentence in X for token in sentence):
        for name, value in token.items():
            table[t, names.index(name)] = value
    codes = np.array([tags.index(tag) for sentence in y for tag in sentence])
    mass = np.ones(len(X)) if weight is None else weight
    lam, E = 1.0 / (np.longdouble(model.C) * mass.sum()), np.zeros((len(table), 0))
    mask = seen(table, E, codes, starts, K, model.transitions, mass > 0.0) if model.observed else None
    costs = np.ones(len(table))
    shape = table, E, codes, starts, K, mass, lam, 0.0, hinge, costs, model.transitions
    return listed_chain(*shape, mask=mask)[0]
