"""Dense tables: the same models and certificates as from sparse rows, whatever the order of the array."""

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel import LogisticRegression, _sparse, losses, problems, solve, solvers
from fenchel.structures import crossed_batch
from fenchel.trace import Status
from test_problem import differences

N, COLUMNS = 1100, 26  # more numbers than `_sparse.SMALL`


def data(labels, zeros=0.2, seed=0):
    """X with some zeros, y; columns in units of their own, and far from centred."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, COLUMNS)) * np.exp(rng.normal(size=COLUMNS)) + rng.normal(size=COLUMNS)
    y = (X @ rng.normal(size=(COLUMNS, labels)) + 3.0 * rng.gumbel(size=(N, labels))).argmax(axis=1)
    X[rng.uniform(size=X.shape) < zeros] = 0.0
    return X, y


def pair(labels, free, **settings):
    """The problem on a table and on sparse rows."""
    X, y = data(labels)
    make = problems.binary if labels == 2 else problems.flat
    dense, sparse = (make(each, y, fit_intercept=free, **settings) for each in (X, sp.csr_matrix(X)))
    assert isinstance(dense.examples.rows, _sparse.Table) and isinstance(sparse.examples.rows, _sparse.Rows)
    return dense, sparse


KINDS = [(labels, free) for labels in (2, 3, 4, 11, 13) for free in (False, True)]


@pytest.mark.parametrize("labels, free", KINDS)
@pytest.mark.parametrize("scale", [0.1, 300.0])
def test_values_gradients_and_hessians_are_those_of_sparse_rows(labels, free, scale):
    dense, sparse = pair(labels, free, lam=1e-3)
    rng = np.random.default_rng(1)
    w, direction = scale * rng.normal(size=dense.dim), rng.normal(size=dense.dim)
    one, other = dense.evaluate(w), sparse.evaluate(w)
    assert one.value == pytest.approx(other.value, rel=1e-13)
    assert one.moved == pytest.approx(other.moved, rel=1e-12)
    size = np.abs(other.gradient).max()
    np.testing.assert_allclose(one.gradient, other.gradient, atol=1e-13 * size)
    known = dense.evaluate(w, dense.scores(w))
    assert known.value == pytest.approx(one.value, rel=1e-13)
    np.testing.assert_allclose(known.gradient, one.gradient, atol=1e-13 * size)
    np.testing.assert_allclose(dense.scores(w), sparse.scores(w), atol=1e-12 * scale)
    products = dense.hessian_product(one, direction), sparse.hessian_product(other, direction)
    np.testing.assert_allclose(*products, atol=1e-12)
    np.testing.assert_allclose(dense.hessian(one), sparse.hessian(other), atol=1e-12)


@pytest.mark.parametrize("labels", [2, 3, 8, 40, 41, 70])
@pytest.mark.parametrize("scale", [0.0, 0.1, 300.0])
def test_several_rows_at_a_time_are_as_one_after_the_other(labels, scale):
    """Labels or rows side by side, padding, soft targets, ties (scale 0), a last group that is not full."""
    rng = np.random.default_rng(labels)
    X, soft = rng.normal(size=(205, 12)), rng.dirichlet(np.ones(labels), size=205)
    soft[::3] = np.eye(labels)[rng.integers(0, labels, 69)]
    for features in (X, sp.csr_matrix(X * (X > 0.5))):
        problem = problems.flat(features, soft, fit_intercept=True, lam=1e-3)
        w, pull = scale * rng.normal(size=problem.dim), np.zeros((2, problem.dim))
        sizes = problem.blocks, 0, problem.n, w, np.empty((0, 0))
        one = losses.log_value_and_pull(*sizes, pull[0])
        assert crossed_batch.value_and_pull(*sizes, pull[1]) == pytest.approx(one, rel=1e-13)
        np.testing.assert_allclose(pull[1], pull[0], atol=1e-14 * max(np.abs(pull[0]).max(), 1.0))


def test_numbers_that_overflow_are_not_hidden():
    X, y = data(3)
    problem = problems.flat(X, y, lam=1e-3)
    for number in (np.nan, np.inf):
        w = np.full(problem.dim, 0.1)
        w[4] = number
        assert not np.isfinite(problem.evaluate(w).value)


def test_the_gradient_against_differences():
    dense, _ = pair(5, True, lam=1e-3)
    w = 0.1 * np.random.default_rng(2).normal(size=dense.dim)
    slopes = differences(lambda u: dense.evaluate(u).value, w, step=1e-5)
    np.testing.assert_allclose(dense.evaluate(w).gradient, slopes, atol=1e-8)


@pytest.mark.parametrize("labels, free", [(2, True), (3, True), (3, False), (11, True)])
@pytest.mark.parametrize("name", ["lbfgs", "tron", "newton", "cd-dual", "sdca", "eg-gap", "sag", "cd-primal"])
def test_every_kind_of_solver_finds_the_same_optimum(name, labels, free):
    dense, sparse = pair(labels, free, C=0.01)
    best = solve(sparse, "newton", tol=1e-10).certificate.primal
    result = solve(dense, name, tol=1e-4, max_passes=3000)
    assert result.status is Status.CONVERGED
    assert best <= result.certificate.primal * (1.0 + 1e-9)
    assert result.certificate.primal <= best * (1.0 + 1.1e-4)
    assert result.certificate.dual <= best * (1.0 + 1e-9)


def test_the_block_of_a_hessian_of_many_labels_by_rows_and_by_tables(monkeypatch):
    dense, sparse = pair(7, True, lam=1e-2)
    w = 0.1 * np.random.default_rng(3).normal(size=dense.dim)
    monkeypatch.setattr("fenchel.matrices.TALL", 64)  # many small blocks
    np.testing.assert_allclose(
        dense.hessian(dense.evaluate(w)), sparse.hessian(sparse.evaluate(w)), atol=1e-12
    )


def test_the_number_of_threads_changes_no_bit():
    X, y = data(5)
    one, two = (problems.flat(X, y, fit_intercept=True, threads=threads, C=1.0) for threads in (1, 2))
    w = np.random.default_rng(4).normal(size=one.dim)
    np.testing.assert_array_equal(one.evaluate(w).gradient, two.evaluate(w).gradient)


@pytest.mark.parametrize("labels", [2, 3])
def test_any_order_and_width_of_numbers(labels):
    X, y = data(labels)
    kinds = [X, np.asfortranarray(X), X[::-1][::-1], X.astype(np.float32).astype(np.float64)]
    fits = [LogisticRegression(tol=1e-8).fit(each, y) for each in kinds]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.coef_, fits[0].coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(fits[1].coef_, fits[0].coef_)
    narrow = LogisticRegression(tol=1e-8).fit(X.astype(np.float32), y)
    np.testing.assert_array_equal(narrow.coef_, fits[3].coef_.astype(np.float32))


def test_a_table_is_not_copied():
    X, y = data(2, zeros=0.0)
    problem = problems.binary(X, y)
    assert np.shares_memory(problem.examples.rows.data, X)
    X.flags.writeable = False
    assert problems.binary(X, y).value_at(np.zeros(COLUMNS))[0] == pytest.approx(np.log(2.0))


def test_what_stays_dense():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1000, 40))
    assert isinstance(_sparse.as_features(X), _sparse.Table)
    assert isinstance(_sparse.as_features(X[:50]), _sparse.Rows)  # small
    X[rng.uniform(size=X.shape) < 0.7] = 0.0
    rows = _sparse.as_features(X)
    assert isinstance(rows, _sparse.Rows) and rows.nnz == np.count_nonzero(X)
    np.testing.assert_array_equal(_sparse.as_csr(rows).toarray(), X)


def test_examples_of_no_weight_are_left_out():
    X, y = data(3)
    weight = np.ones(N)
    weight[::2] = 0.0
    kept = solve(problems.flat(X, y, sample_weight=weight, C=1.0), "lbfgs", tol=1e-6)
    alone = solve(problems.flat(X[1::2], y[1::2], C=1.0), "lbfgs", tol=1e-6)
    assert kept.certificate.primal == pytest.approx(alone.certificate.primal, rel=1e-6)


def test_columns_far_from_zero():
    """A table of timestamps: shifted, and the intercept is that of the values as given."""
    X, y = data(3)
    near = LogisticRegression(tol=1e-8).fit(X, y)
    far = LogisticRegression(tol=1e-8).fit(X + 1e7 * (X != 0.0) + 1e7 * (X == 0.0), y)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-4)
    np.testing.assert_allclose(far.predict_proba(X + 1e7), near.predict_proba(X), atol=1e-4)


def test_iterative_scaling_names_the_first_negative_of_a_table():
    X, y = data(3)
    X = np.abs(X)
    X[7, 2] = -0.5
    with pytest.raises(ValueError, match=r"row 7, column 2 holds -0\.5"):
        solve(problems.flat(X, y, C=1.0), solvers.GIS())
