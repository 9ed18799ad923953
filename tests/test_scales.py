"""Columns far from zero, and of very different sizes: the optimum is reached all the same, and proven."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris

from fenchel import LogisticRegression, Start, problems, solve
from fenchel.design import shift_of_far_columns
from fenchel.trace import Status

MEANS = [0.0, 1e3, 1e6, 1e9]  # times the spread


@cache
def data(name):
    """Standardised columns and labels of two, three or five classes."""
    rng = np.random.default_rng(0)
    if name == "five":
        X = rng.normal(size=(150, 6))
        return X, np.argmax(X @ rng.normal(size=(6, 5)) + rng.gumbel(size=(150, 5)), axis=1)
    X, y = (load_iris if name == "iris" else load_breast_cancer)(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def apart(X):
    """The columns in sizes from 1e-6 to 1e9, in no order."""
    d = X.shape[1]
    return X * np.geomspace(1e-6, 1e9, d)[np.random.default_rng(1).permutation(d)]


def objective(model, X, y, C):
    """P at coef_ and intercept_, in 64 binary digits; the means, which cancel, are taken together."""
    X, W, b = (np.asarray(array, np.longdouble) for array in (X, model.coef_, model.intercept_))
    low, n = X.min(axis=0), len(y)
    scores = (X - low) @ W.T + (b + W @ low)
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros((n, 1)), scores])
    scores -= scores.max(axis=1, keepdims=True)
    true = scores[np.arange(n), np.searchsorted(model.classes_, y)]
    return (np.log(np.exp(scores).sum(axis=1)) - true).mean() + (W**2).sum() / (2 * np.longdouble(C) * n)


def assert_proven(X, y, C, **settings):
    """fit warns, which is an error here, unless it converged to 0.1 %."""
    model = LogisticRegression(C=C, **settings).fit(X, y)
    certificate = model.certificate_
    value = objective(model, X.toarray() if sp.issparse(X) else X, y, C)
    assert certificate.converged and certificate.relative_gap <= 1e-3
    assert certificate.dual <= value * (1.0 + 1e-12)
    # The intercept is as large as the mean, and rounded.
    assert abs(value - certificate.primal) <= 1e-6 * value
    return model


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", ["cancer", "iris", "five"])
@pytest.mark.parametrize("mean", MEANS)
def test_the_default_converges(name, mean, C):
    X, y = data(name)
    assert_proven(X + mean, y, C)
    assert_proven(apart(X + mean), y, C)


@pytest.mark.parametrize("mean", [1e6, 1e9])
@pytest.mark.parametrize("name", ["cancer", "iris"])
def test_sparse_input_is_the_same(name, mean):
    X, y = data(name)
    X = np.hstack([X * (np.abs(X) > 0.5), X + mean])  # columns with and without zeros
    dense, sparse = (assert_proven(each, y, 1.0, solver="newton") for each in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(dense.coef_, sparse.coef_, rtol=1e-10)  # sums in another order
    assert_proven(sp.csr_matrix(X), y, 1.0)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_timestamp(classes):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    y = np.digitize(x[:, 0] + rng.normal(size=300), [-0.5, 0.5][: classes - 1])
    model = assert_proven(1.7e9 + x, y, 1.0)
    near = LogisticRegression(tol=1e-10).fit(x, y)
    np.testing.assert_allclose(model.coef_, near.coef_, atol=0.05)
    assert (model.predict(1.7e9 + x) == near.predict(x)).mean() > 0.98


@pytest.mark.parametrize("name", ["cancer", "iris"])
def test_without_an_intercept(name):
    X, y = data(name)
    for each in (X + 1e3, apart(X)):
        assert_proven(each, y, 1.0, fit_intercept=False)


@pytest.mark.parametrize("solver", ["lbfgs", "tron", "cd-dual", "sdca", "eg", "sag"])
def test_every_solver_sees_the_shifted_columns(solver):
    X, y = data("iris")
    far = problems.flat(X + 1e9, y, C=0.1, fit_intercept=True)
    result = solve(far, solver, tol=1e-4)
    near = solve(problems.flat(X, y, C=0.1, fit_intercept=True), "newton", tol=1e-10)
    assert result.status is Status.CONVERGED
    assert result.certificate.primal == pytest.approx(near.certificate.primal, rel=2e-4)
    assert far.value_at(result.w, result.b)[0] == pytest.approx(result.certificate.primal, rel=1e-6)
    again = solve(far, solver, tol=1e-3, start=Start(result.w, result.b))
    assert again.status is Status.CONVERGED and again.certificate.passes <= result.certificate.passes + 1


def test_only_narrow_columns_without_zeros_are_shifted_and_exactly():
    X = np.array([[1e9 + 1.0, 5.0, 0.0, -7e3, 1e308], [1e9 + 3.5, 8.0, 1e9, -7e3 - 1.0, -1e308]])
    np.testing.assert_array_equal(
        shift_of_far_columns(problems.as_rows(X)), [1e9 + 1.0, 0.0, 0.0, -7e3 - 1.0, 0.0]
    )
    assert shift_of_far_columns(problems.as_rows(X[:, 1:3])) is None


@pytest.mark.parametrize("n, classes", [(400, 2), (1000, 2), (1000, 3)])
def test_many_columns(n, classes):
    """More than a matrix is worth if scales were alike. 400 examples are all but separable."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, 300))
    y = np.argmax(Z @ rng.normal(size=(300, classes)) / 6.0 + rng.gumbel(size=(n, classes)), axis=1)
    for X in (Z * np.geomspace(1e-6, 1e9, 300), np.hstack([Z, 1e9 * rng.normal(size=(n, 1))]), Z + 1e9):
        assert_proven(X, y, 1.0)


@pytest.mark.parametrize("lam", [0.0, 1e-3])
def test_a_column_that_says_nothing_has_no_scale(lam):
    X, y = data("cancer")
    X = np.hstack([X[:, :3] * [1.0, 1e3, 1e6], np.zeros((len(X), 1)), np.full((len(X), 1), 3.0)])
    problem = problems.binary(X, y, lam=lam, fit_intercept=True)
    assert np.isfinite(problem.scales).all() and problem.scales.min() > 0.0
    assert solve(problem, "lbfgs").status is Status.CONVERGED


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("worth", [0.0, 6.0], ids=["centred", "whitened"])
def test_coordinates_are_one_linear_map(free, worth, monkeypatch):
    """Into them and back, and gradients by the transpose, whatever the scales."""
    monkeypatch.setattr("fenchel.coordinates.WORTH", worth)
    X, y = data("five")
    problem = problems.flat(apart(X) if free else 10.0 * X + 40.0, y, C=1.0, fit_intercept=free)
    inside, rng = problem.coordinates, np.random.default_rng(3)
    if worth == 0.0 and not free:  # columns alike: the weights themselves
        assert inside is None
        return
    z, g = rng.normal(size=(2, problem.dim))
    np.testing.assert_allclose(inside.inside(inside.direction(z)), z, rtol=1e-6, atol=1e-6)
    assert inside.gradient(g) @ z == pytest.approx(g @ inside.direction(z), rel=1e-9)


@pytest.mark.parametrize("solver", ["lbfgs", "tron"])
def test_few_passes_on_raw_columns(solver):
    """Counts with correlated columns far from zero: hundreds of passes where coordinates are the weights."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 800)
    X = np.round(
        20.0 + 3.0 * rng.normal(size=(800, 1)) + rng.normal(size=(4, 10))[y] + rng.normal(size=(800, 10))
    )
    X = X * np.geomspace(0.1, 10.0, 10)
    model = LogisticRegression(C=10.0, solver=solver, tol=1e-6, fit_intercept=False).fit(X, y)
    assert model.certificate_.converged and model.certificate_.passes <= 60


def test_about_as_many_examples_as_features_are_no_trap():
    """Of nearly dependent features P is not round in coordinates that are made as if it were."""
    rng = np.random.RandomState(0)
    X, y = rng.randn(300, 300), rng.randint(0, 10, 300)
    model = LogisticRegression(C=1e4).fit(X, y)
    assert model.certificate_.converged and model.trace_.solver == "lbfgs" and model.n_iter_[0] <= 100
