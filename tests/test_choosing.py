"""The rule behind solver="auto": what it sees of a problem."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel import problems, solve
from fenchel.choosing import Forecast, relay, solver_name
from fenchel.trace import Status


def choose(problem):
    """The name of the first solver."""
    return solver_name(relay("auto", problem)[0].solver)


def sequences(n, length, attributes):
    """n sequences, two labels, an attribute a token."""
    rng = np.random.default_rng(0)
    N = n * length
    X = sp.csr_matrix((np.ones(N), rng.integers(0, attributes, N), np.arange(N + 1)), (N, attributes))
    return problems.chain(X, rng.integers(0, 2, N), np.arange(0, N + 1, length), labels=2)


@pytest.mark.parametrize(
    "n, length, attributes, name",
    [
        (50, 20, 30, "eg-gap"),
        (1, 500, 50, "lbfgs"),  # 575 passes of eg-gap, 14 of lbfgs
        (40, 500, 50, "lbfgs"),
        (4, 500, 4000, "eg-gap"),
        (1, 4000, 8000, "lbfgs"),
    ],
)
def test_long_sequences(n, length, attributes, name):
    assert choose(sequences(n, length, attributes)) == name


def test_dense_tokens():
    X, y = np.random.default_rng(0).normal(size=(1000, 30)), np.arange(1000) % 3
    starts = np.arange(0, 1001, 10)
    assert choose(problems.chain(X, y, starts)) == "lbfgs"
    assert choose(problems.chain(sp.csr_matrix(X), y, starts)) == "eg-gap"
    assert choose(problems.chain(X, y, starts, loss="hinge")) == "cd-outputs"


def test_max_margin_trees():
    heads, starts = np.array([0, 1, 2, 0, 1]), np.array([0, 3, 5])
    arcs = sp.csr_matrix(np.ones((13, 2)))
    assert choose(problems.projective(arcs, heads, starts, loss="hinge")) == "cd-outputs"


def test_weights_of_observed_pairs_alone_go_to_exponentiated_gradient():
    rng = np.random.default_rng(0)
    X, y = sp.random(300, 200, 0.05, random_state=rng, format="csr"), rng.integers(0, 12, 300)
    problem = problems.flat(X, y, C=1.0, observed=True)
    assert choose(problem) == "eg-gap"
    assert solve(problem, tol=1e-6).status is Status.CONVERGED
    assert choose(problems.flat(X, y, C=1.0)) == "cd-dual"
    assert choose(problems.flat(X, y, C=1.0, loss="hinge", observed=True)) == "cd-dual"
    assert choose(problems.flat(X, y, C=math.inf, observed=True)) != "eg-gap"


def test_few_examples_and_easy_blocks_go_to_the_dual():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800, 900)), rng.integers(0, 3, 800)
    assert choose(problems.flat(X[:400], y[:400], C=100.0)) == "cd-dual"  # fewer examples than features
    X = X[:, :600]  # still too many for coordinates in which P is round
    assert choose(problems.flat(X, y, C=0.01)) == "cd-dual"
    assert choose(problems.flat(X, y, C=100.0)) == "lbfgs"  # a dense table
    X[X < 1.5] = 0.0
    assert choose(problems.flat(sp.csr_matrix(X), y, C=0.1)) == "cd-dual"
    assert choose(problems.flat(sp.csr_matrix(X), y, C=100.0)) == "lbfgs"
    assert choose(problems.flat(X, y, C=1e-4)) == "lbfgs"  # done at once by any method
    assert choose(problems.flat(X, y, C=math.inf)) == "lbfgs"  # no dual


@pytest.mark.parametrize("kind, first", [(np.asarray, "lbfgs"), (sp.csr_matrix, "cd-dual")])
def test_a_column_that_dwarfs_the_others_goes_to_a_method_that_scales_them(kind, first):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 400)), rng.integers(0, 2, 200)
    X *= np.exp(rng.normal(size=400))  # scales as they come: nothing to mind but where rows can be turned
    assert choose(problems.binary(kind(X), y, C=1.0)) == first
    X[:, 7] *= 1e4
    problem = problems.binary(kind(X), y, C=1.0, fit_intercept=True)
    result = solve(problem, "auto", max_passes=100)
    assert result.trace.solver.startswith("lbfgs") and result.certificate.converged


def test_few_features_go_to_coordinates_in_which_the_objective_is_round():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 30)), rng.integers(0, 3, 400)
    for C in (0.01, 1.0, 100.0, math.inf):
        assert choose(problems.flat(X, y, C=C)) == "lbfgs"
    X[X < 1.0], y = 0.0, rng.integers(0, 50, 400)  # five of thirty are left
    for C in (0.1, 10.0):
        assert choose(problems.flat(sp.csr_matrix(X), y, C=C)) == "lbfgs"


def test_a_matrix_that_is_nothing_beside_the_calls_around_it_goes_to_newton_at_once():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 20)), rng.integers(0, 2, 4000)
    assert choose(problems.binary(X[:200], y[:200], C=1.0)) == "newton"
    assert choose(problems.binary(X, y, C=1.0)) == "lbfgs"


def hopeless():
    """What all columns have in common is thirty times the rest: dual coordinate descent gets nowhere."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 400)), rng.integers(0, 2, 200)
    X += 30.0 * rng.normal(size=(200, 1))
    return problems.binary(sp.csr_matrix(X), y, C=1.0, fit_intercept=True)


def test_another_solver_takes_over_from_one_that_is_slow():
    problem = hopeless()
    alone = solve(problem, "cd-dual", max_passes=100)
    assert not alone.certificate.converged
    result = solve(problem, "auto", max_passes=1000)
    assert result.certificate.converged
    assert result.trace.solver.startswith("cd-dual, then tron")
    assert all(row.primal >= row.dual for row in result.trace)
    passes = [row.passes for row in result.trace]
    assert passes == sorted(passes) and passes[-1] <= 300


@pytest.mark.parametrize("most", [59, 60, 61, 64, 72])
def test_a_change_of_solver_does_not_begin_a_step_past_the_limit(most):
    result = solve(hopeless(), "auto", max_passes=most)
    assert most <= result.certificate.passes <= most + 5  # the trials of the last step's line search


def test_an_interrupt_while_the_next_solver_begins_keeps_the_model(monkeypatch):
    def interrupted(self, problem, start):
        raise KeyboardInterrupt

    monkeypatch.setattr("fenchel.solvers.tron.TRON.init", interrupted)
    result = solve(hopeless(), "auto", max_passes=1000)
    assert result.status is Status.INTERRUPTED
    assert result.certificate.dual <= result.certificate.primal and np.isfinite(result.w).all()


def test_a_solver_that_was_asked_for_stays():
    result = solve(hopeless(), "cd-dual", max_passes=40)
    assert result.trace.solver == "cd-dual"


def test_the_forecast_goes_by_the_last_half():
    forecast = Forecast(begun=5.0)
    for passes in range(1, 21):
        forecast.note(5.0 + passes, 10.0 ** (-0.1 * passes))
    assert forecast.passes_left(1e-4, look=30.0) == 0.0
    assert forecast.passes_left(1e-4, look=8.0) == pytest.approx(20.0)
    assert forecast.passes_left(1e-1, look=8.0) == 0.0
    for passes in range(21, 60):
        forecast.note(5.0 + passes, 0.01)  # the same point still: tron between two looks at P
    assert forecast.passes_left(1e-4, look=8.0) == pytest.approx(20.0)
    for passes in range(60, 160):
        forecast.note(5.0 + passes, 0.01 + 1e-9 * passes)
    assert forecast.passes_left(1e-4, look=8.0) == math.inf


def test_the_forecast_waits_until_it_has_seen_half_of_the_passes():
    forecast = Forecast()
    forecast.note(80.0, 40.0)
    assert forecast.passes_left(1e-3, look=60.0) == 0.0
    for passes in range(81, 170):
        forecast.note(float(passes), 40.0)
        forecast.note(passes + 0.5, 40.0 * 10.0 ** (-(passes - 80) / 50))
    assert 0.0 < forecast.passes_left(1e-3, look=60.0) < 200.0


def test_a_matrix_that_does_not_fit(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(500, 20)), np.arange(500) % 2
    for features in (X, sp.csr_matrix(X)):
        problem = problems.binary(features, y)
        monkeypatch.undo()
        assert "newton" in [solver_name(leg.solver) for leg in relay("auto", problem)]
        monkeypatch.setattr("fenchel.choosing.available_bytes", lambda: 2 * 5 * 8 * 20**2 - 1)
        assert "newton" not in [solver_name(leg.solver) for leg in relay("auto", problem)]
