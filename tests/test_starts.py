"""Where a run begins, how far it may go, and what it may return."""

import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import fenchel
from fenchel import ChainCRF, LogisticRegression, problems, solve
from fenchel._compiling import compiling_clock
from fenchel.solvers.base import BatchSolver, evaluate
from fenchel.trace import Meter

FIRST = [[["a"], ["b"]], [["a"], ["c"]], [["a"], ["b"]]], [["X", "Y"], ["Y", "X"], ["X", "X"]]
SECOND = [[["a"], ["b"]], [["b"], ["c"]], [["c"], ["b"]]], [["Y", "Y"], ["X", "X"], ["X", "Y"]]


@pytest.mark.parametrize("solver", ["sag", "lbfgs", "tron", "eg-gap", "sdca"])
def test_a_warm_start_with_observed_weights_keeps_none_that_are_not(solver):
    model = ChainCRF(observed=True, warm_start=True, solver=solver, C=100, max_iter=20_000)
    model.fit(*FIRST).fit(*SECOND)
    fresh = ChainCRF(observed=True, solver="tron", C=100, tol=1e-9).fit(*SECOND)
    optimum = fresh.certificate_.primal
    assert optimum == pytest.approx(0.242703, abs=1e-6)
    assert model.certificate_.dual <= optimum * (1.0 + 1e-12)
    assert model.certificate_.primal >= optimum * (1.0 - 1e-9)
    assert not model.weights_[fresh.weights_ == 0.0].any()


# ---- marginals that are none


def unrolled_chain(loss="log"):
    rng = np.random.default_rng(0)
    problem = problems.chain(
        rng.normal(size=(9, 3)), rng.integers(0, 2, 9), np.array([0, 3, 5, 9]), C=1.0, loss=loss
    )
    return problem, solve(problem, "sdca", max_passes=5)


def test_a_start_whose_edges_contradict_its_nodes_is_refused():
    problem, result = unrolled_chain()
    mu = result.mu.copy()
    mu[6:10] = np.roll(mu[6:10], 1)  # the first edge: still a distribution, of other nodes
    with pytest.raises(ValueError, match="those of neighbours agree"):
        solve(problem, "sdca", start=fenchel.Start(result.w, 0.0, mu))


def test_sums_over_edges_are_taken_from_a_result_only():
    problem, result = unrolled_chain("hinge")
    with pytest.raises(ValueError, match=r"sums over edges are taken from result\.start"):
        solve(problem, "sdca", start=fenchel.Start(result.w, 0.0, result.mu.copy()))
    assert solve(problem, "sdca", start=result.start).certificate.converged


def test_a_start_that_is_nearly_one_is_made_one():
    problem, result = unrolled_chain()
    noise = 1.0 + 1e-11 * np.random.default_rng(1).normal(size=result.mu.size)
    mu = problem.entropic.structure.cleaned(problem.examples, result.mu * noise)
    np.testing.assert_allclose(mu, result.mu, atol=1e-9)
    nodes, edges = mu[:6].reshape(3, 2), mu[6:14].reshape(2, 2, 2)
    np.testing.assert_allclose(edges.sum(axis=2), nodes[:2], atol=1e-15)
    np.testing.assert_allclose(edges.sum(axis=1), nodes[1:], atol=1e-15)


def test_probabilities_off_by_rounding_are_divided_by_their_sum():
    problem = problems.flat(np.eye(6), [0, 1, 2] * 2, C=1.0)
    mu = np.full((6, 3), 1.0 / 3.0 + 1e-10)
    cleaned = problem.structure.cleaned(problem.examples, mu)
    np.testing.assert_allclose(cleaned.sum(axis=1), 1.0, atol=1e-15)
    assert problem.structure.cleaned(problem.examples, mu + 1e-6) is None


# ---- how far a run goes


@dataclass(frozen=True)
class Shuffling(BatchSolver):
    """A pass a step, along the gradient; counts its steps."""

    made: list
    needs: ClassVar[frozenset] = frozenset({"log", "gradient"})

    def step(self, problem, state):
        now = state.evaluation
        state.evaluation = evaluate(problem, state, now.w - 0.1 * now.gradient)
        self.made.append(state.passes)


@pytest.mark.parametrize("limit, steps", [(0, 1), (0.5, 1), (1, 1), (2, 2), (2.5, 3), (3, 3)])
def test_at_least_one_step_is_made_and_none_begins_at_the_limit(limit, steps):
    rng = np.random.default_rng(0)
    problem = problems.binary(rng.normal(size=(20, 3)), rng.integers(0, 2, 20))
    made = []
    solve(problem, Shuffling(made), tol=1e-9, max_passes=limit)
    assert len(made) == steps
    made.clear()
    solve(problem, Shuffling(made), tol=1e-9, max_seconds=0.0)
    assert len(made) == 1


def refits(solver, X, y, max_iter, times):
    """The certificates of fits that each go on from the last."""
    model = LogisticRegression(solver=solver, warm_start=True, max_iter=max_iter, tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [model.fit(X, y).certificate_ for _ in range(times)]


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "tron", "cd-primal", "sgd", "gis", "sag"])
def test_fits_of_one_pass_each_go_on_from_the_last(solver):
    X, y = load_iris(return_X_y=True)
    values = [certificate.primal for certificate in refits(solver, X, y == 1, 1, 5)]
    assert min(values[1:]) < values[0] < np.log(2.0)


@pytest.mark.parametrize("solver", ["cd-dual", "sdca", "eg"])
def test_fits_of_one_pass_each_go_on_in_the_dual(solver):
    X, y = load_iris(return_X_y=True)
    bounds = [certificate.dual for certificate in refits(solver, X, y == 1, 1, 5)]
    assert all(before < after for before, after in pairwise(bounds))


@pytest.mark.parametrize("solver, off", [("cd-dual", 1e-3), ("sdca", 0.2), ("eg", 0.2)])
@pytest.mark.parametrize("classes", [2, 3])
def test_restarts_of_a_dual_solver_with_a_free_intercept_come_near_the_optimum(solver, off, classes):
    X, y = load_iris(return_X_y=True)
    y = y == 1 if classes == 2 else y
    best = LogisticRegression(solver="newton", tol=1e-9).fit(X, y).certificate_.primal
    first, *_, last = refits(solver, X, y, 5, 8)
    assert last.primal < first.primal and last.dual > first.dual
    assert last.primal <= (1.0 + off) * best


# ---- what is returned


@pytest.mark.parametrize("solver", ["sgd", "sdca", "eg", "cd-dual", "sag"])
def test_no_model_is_worse_than_no_weights(solver):
    rng = np.random.default_rng(0)
    X = 1e4 * rng.normal(size=(40, 3))
    for loss in ("log", "hinge") if solver != "sag" else ("log",):
        for free in (False, True):
            problem = problems.binary(X, rng.integers(0, 2, 40), C=100.0, loss=loss, fit_intercept=free)
            result = solve(problem, solver, max_passes=1)
            assert result.certificate.primal <= problem.value_at(np.zeros(problem.penalised))[0] * (
                1.0 + 1e-12
            )
            assert problem.value_at(result.w)[0] == pytest.approx(result.certificate.primal, rel=1e-9)


def never_seen(y, starts):
    """(K, K) bool: pairs of labels that do not follow each other in the data."""
    banned = np.ones((y.max() + 1, y.max() + 1), bool)
    for a, b in pairwise(starts):
        banned[y[a : b - 1], y[a + 1 : b]] = False
    return banned


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_the_objective_without_weights_is_known_without_a_pass(loss):
    rng = np.random.default_rng(0)
    X, y, starts = rng.normal(size=(9, 2)), rng.integers(0, 3, 9), np.array([0, 4, 5, 9])
    made = [
        problems.binary(X, y > 0, loss=loss),
        problems.binary(X, y > 0, loss=loss, fit_intercept=True),
        problems.flat(X, y, loss=loss),
        problems.flat(X, y, loss=loss, fit_intercept=True),
        problems.joint(X, [0, 0, 1], starts, loss=loss),
        problems.chain(X, y, starts, loss=loss),
        problems.chain(X, y, starts, loss=loss, banned=never_seen(y, starts)),
    ]
    for problem in made:
        expected = problem.value_at(np.zeros(problem.penalised))[0]
        assert problem.value_at_zero == pytest.approx(expected, rel=1e-13)


# ---- the clock


def test_a_meter_does_not_run_while_idle():
    idle = [0.0]
    meter = Meter(lambda: idle[0])
    with meter.running():
        idle[0] = 5.0
    assert meter.seconds < -4.0 and meter.wall < -4.0  # nothing but five idle seconds went by


def test_compiling_is_charged_to_nobody():
    from numba import njit

    @dataclass(frozen=True)
    class Compiling(Shuffling):
        def step(self, problem, state):
            njit(lambda x: x * x)(3.0)
            super().step(problem, state)

    rng = np.random.default_rng(0)
    problem = problems.binary(rng.normal(size=(20, 3)), rng.integers(0, 2, 20))
    solve(problem, Shuffling([]), max_passes=1)  # the problem's own kernels
    clock, meter = compiling_clock(), Meter()
    before = clock()
    result = solve(problem, Compiling([]), tol=1e-12, max_passes=3)
    compiled = clock() - before
    assert compiled > 0.0
    assert result.certificate.seconds <= meter.wall - compiled
