"""Small problems of lists of outcomes in both layouts, and A_i and y_i of their examples written out."""

from itertools import pairwise

import numpy as np

from fenchel import problems
from fenchel._sparse import as_csr

LABELS = (1, 2, 5)
SIZES = (1, 2, 7)  # of candidate sets
N = 9


def soft_targets(size, rng):
    """Certain distributions, distributions with a zero, and general ones."""
    y = rng.dirichlet(np.ones(size), size=N)
    y[::3] = np.eye(size)[rng.integers(size, size=len(y[::3]))]
    y[1::3, 0] = 0.0 if size > 1 else 1.0
    return y / y.sum(axis=1, keepdims=True)


def numbers(shape, rng):
    """Features of either sign, many of them zero."""
    return np.where(rng.uniform(size=shape) < 0.4, 0.0, rng.normal(size=shape))


def crossed(labels, free=False, seed=0, **settings):
    rng = np.random.default_rng(seed)
    X, y, weight = numbers((N, 4), rng), soft_targets(labels, rng), rng.integers(1, 4, size=N)
    y[0], y[3], y[6] = np.eye(labels)[[0, labels // 2, labels - 1]]
    settings = {"lam": 0.5, "sample_weight": weight, "merge": False} | settings
    return problems.flat(X, y, fit_intercept=free, **settings)


def joint(seed=0, **settings):
    """Sets of every size in turn; the last feature is absent, two candidates are equal."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(np.resize(SIZES, N))])
    F = numbers((starts[-1], 5), rng)
    F[:, 4], F[4] = 0.0, F[5]
    y = np.concatenate([soft_targets(size, rng)[i] for i, size in enumerate(np.diff(starts))])
    settings = {"lam": 0.5, "sample_weight": rng.integers(1, 4, size=N), "merge": False} | settings
    return problems.joint(F, y, starts, **settings)


def binary(free=False, seed=0, **settings):
    rng = np.random.default_rng(seed)
    X, y, weight = numbers((N, 4), rng), soft_targets(2, rng)[:, 0], rng.integers(1, 4, size=N)
    return problems.binary(X, y, fit_intercept=free, **{"lam": 0.5, "sample_weight": weight} | settings)


# name: (function, settings); made anew by each test
FLAT = {f"crossed-{k}{'-free' * free}": (crossed, (k, free)) for k in LABELS for free in (False, True)}
FLAT["joint"] = (joint, ())
ALL = {"binary": (binary, ()), "binary-free": (binary, (True,))} | FLAT


def made(name, **settings):
    """The problem of that name."""
    function, arguments = ALL[name]
    return function(*arguments, **settings)


def rows(problem):
    return as_csr(problem.examples.rows).toarray()


def matrices(problem, whole=False):
    """A_i of every example: kron(x_i, I_K), the rows of its candidates, or (x_i, 0).

    Of the penalised weights; of the whole array, with the constant feature of a free offset, if asked.
    """
    X = rows(problem)
    if problem.examples.starts is not None:
        return [X[a:b] for a, b in pairwise(problem.examples.starts.astype(int))]
    if whole and problem.free:
        X = np.hstack([X, np.full((len(X), 1), problem.design.constant)])
    if problem.design.matrix:
        return [np.kron(x, np.eye(problem.design.outputs)) for x in X]
    return [np.vstack([x, np.zeros_like(x)]) for x in X]


def targets(problem):
    """y_i of every example, as long as A_i."""
    y = problem.examples.y
    if problem.examples.starts is not None:
        return np.split(y, problem.examples.starts[1:-1].astype(int))
    return list(as_csr(y).toarray()) if problem.design.matrix else list(np.column_stack([y, 1.0 - y]))


def offsets(problem, b):
    """What the free offset or offsets b add to the scores of every example."""
    return b if problem.design.matrix else np.array([b, 0.0])


def split(problem, mu):
    """The marginals of all examples, one by one."""
    return np.split(mu, problem.examples.starts[1:-1].astype(int)) if mu.ndim == 1 else list(mu)


def joined(problem, parts):
    """The inverse of `split`."""
    return np.concatenate(parts) if problem.examples.starts is not None else np.array(parts)


def random_mu(problem, rng):
    """A point inside the simplex for every example."""
    return joined(problem, [rng.dirichlet(np.ones(len(y))) for y in targets(problem)])
