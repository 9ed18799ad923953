"""A solver in the space that the rows of a dense table span: the same optimum, proven on the table itself."""

import numpy as np
import pytest

from fenchel import LogisticRegression, Start, problems, solve
from fenchel.choosing import relay
from fenchel.solvers import LBFGS, TRON
from fenchel.solvers.inrows import InRows


def wide(labels, n=30, d=80, seed=0):
    """Columns of very different scale, far from zero, and fewer rows than columns."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) + 1.0) * np.exp(rng.normal(size=d))
    return X, np.arange(n) % labels


def problem_of(labels, free, C=1.0, **more):
    X, y = wide(labels)
    make = problems.binary if labels == 2 else problems.flat
    return make(X, y, C=C, fit_intercept=free, **more)


@pytest.mark.parametrize("solver", [LBFGS(), TRON()])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e3])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("labels", [2, 3])
def test_it_ends_at_the_optimum_of_all_columns(labels, free, C, solver):
    problem = problem_of(labels, free, C)
    inside = solve(problem, InRows(solver), tol=1e-8, max_passes=1e5)
    plain = solve(problem, "lbfgs", tol=1e-8, max_passes=1e5)
    assert inside.certificate.relative_gap <= 1e-8
    assert inside.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-8)
    assert problem.value_at(inside.w, inside.b)[0] == pytest.approx(inside.certificate.primal, rel=1e-10)
    assert all(row.primal >= row.dual for row in inside.trace)


def test_a_start_outside_of_the_rows_is_led_back():
    problem = problem_of(3, True)
    rng = np.random.default_rng(1)
    start = Start(rng.normal(size=problem.penalised), rng.normal(size=3))
    led = solve(problem, InRows(LBFGS()), tol=1e-7, start=start, max_passes=1e5)
    assert led.certificate.relative_gap <= 1e-7
    assert np.linalg.matrix_rank(np.vstack([wide(3)[0], led.w.reshape(-1, 3).T])) == 30


def test_auto_turns_where_columns_are_raw_and_says_so():
    X, y = wide(3, n=120, d=900)
    model = LogisticRegression(C=100.0).fit(X, y)
    assert "on rows" in model.trace_.solver
    assert model.certificate_.relative_gap <= 1e-3


def test_sparse_features_are_refused_in_one_sentence():
    X = np.where(np.arange(4000).reshape(40, 100) % 7, 0.0, 1.0)
    with pytest.raises(ValueError, match="turns a dense table"):
        solve(problems.binary(X, np.arange(40) % 2), InRows(LBFGS()))


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e120])
def test_any_scale_of_a_wide_table_is_chosen_for_in_silence(scale):
    X, y = wide(2, n=40, d=300)
    X[3] = 0.0
    assert relay("auto", problems.binary(X * scale, y, C=1.0))
