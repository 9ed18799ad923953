"""Options that run a method as its paper prints it, where the library's own choice is another."""

import numpy as np
import pytest

from fenchel import Start, problems, solvers
from fenchel.loop import solve
from fenchel.solvers.sdca import FIRST_GAP
from flat_matrix import cases, optimum
from matrix import sparse_features

CASES = cases()
SAME = [
    solvers.CDDual(subproblem="newton-from-zero", xi=0.9),
    solvers.CDDual(subproblem="newton-from-middle"),
    solvers.CDDual(subproblem="newton", first=1e-10),
    solvers.CDPrimal(gamma=0.001, evaluate="when asked"),
    solvers.SCGIS(evaluate="when asked"),
    solvers.SDCA(absolute=True, renew=None),
    solvers.SDCA(begin="last"),
    solvers.EG(cap=np.inf),
    solvers.EG(eta=0.2, adapt=False),
    solvers.EG(batch=True, eta=0.02, adapt=False),
    solvers.SM("g1", damped=False),
    solvers.Newton(damped=False),
]


@pytest.mark.parametrize("solver", SAME, ids=repr)
def test_as_printed_they_reach_the_same_optimum(solver):
    case = CASES["sparse-C=1"]
    best = optimum(case.name)[0]
    result = solve(case.problem(), solver, tol=1e-4, max_passes=5e4)
    assert result.certificate.converged
    assert best <= result.certificate.primal * (1.0 + 1e-12)
    assert result.certificate.primal <= best * (1.0 + 1e-4)
    assert all(row.dual <= row.primal for row in result.trace)


@pytest.mark.parametrize("subproblem", ["newton-from-zero", "newton-from-middle", "bisection", "line-search"])
def test_every_first_point_of_the_sub_problem_solves_it(subproblem):
    problem = two_classes()
    best = solve(problem, "lbfgs", tol=1e-10).certificate.primal
    result = solve(problem, solvers.CDDual(subproblem=subproblem), tol=1e-6)
    assert result.certificate.primal == pytest.approx(best, rel=1e-6)


def two_classes():
    X = sparse_features(np.random.default_rng(0))
    return problems.binary(X, np.arange(X.shape[0]) % 3 == 0, C=10.0)


def test_the_first_point_of_dual_coordinate_descent_leaves_other_labels_what_it_is_told():
    problem = CASES["sparse-C=1"].problem()
    state = solvers.CDDual(subproblem="newton", first=1e-10).init(problem, None)
    assert state.mu.min() == pytest.approx(0.5e-10)  # two labels that are not the true one share it


def test_gaps_stay_as_last_met_unless_they_are_renewed():
    problem = CASES["sparse-C=1"].problem()
    stale, fresh = solvers.SDCA(sampling="max", non_uniform=1.0, renew=None), solvers.SDCA(renew=2)
    state = stale.init(problem, None)
    for _ in range(12):
        stale.step(problem, state)
    assert state.passes == 12.0 and (state.gaps < FIRST_GAP).all()
    assert state.newtons >= 12 * problem.n
    renewed = fresh.init(problem, None)
    fresh.step(problem, renewed)
    fresh.step(problem, renewed)
    assert renewed.passes == 3.0
    scores = problem.scores(renewed.v)
    np.testing.assert_allclose(renewed.gaps, problem.block_gaps(renewed.mu, scores), atol=1e-12)


def test_a_line_search_begins_where_it_is_told():
    problem = CASES["sparse-C=1"].problem()
    found = {}
    for begin in ("middle", "last"):
        solver = solvers.SDCA(sampling="uniform", step_size="one-newton", begin=begin)
        found[begin] = solver.init(problem, None)
        for _ in range(3):
            solver.step(problem, found[begin])
    assert (found["middle"].begins == 0.5).all()
    assert 0.01 <= found["last"].begins.min() < found["last"].begins.max() <= 0.99
    assert not np.array_equal(found["middle"].mu, found["last"].mu)  # one step from elsewhere ends elsewhere


def test_a_fixed_rate_stays_and_a_capped_one_grows_to_its_cap():
    problem = CASES["sparse-C=1"].problem()
    for solver, rates in ((solvers.EG(eta=0.3, adapt=False), {0.3}), (solvers.EG(eta=0.3, cap=0.3), {0.3})):
        state = solver.init(problem, None)
        for _ in range(5):
            solver.step(problem, state)
        assert set(state.rates.tolist()) <= rates


def test_a_pass_over_the_weights_alone_is_what_counts_if_nobody_asks_for_more():
    problem = CASES["sparse-C=1"].problem()
    asked = solve(problem, solvers.SCGIS(evaluate="when asked"), tol=0.0, max_passes=4, check_every=1.0)
    each = solve(problem, solvers.SCGIS(), tol=0.0, max_passes=8)
    assert asked.trace[1].passes == pytest.approx(1.0)
    assert each.trace[1].passes == pytest.approx(2.0)
    np.testing.assert_allclose(asked.trace.column("primal")[:4], each.trace.column("primal")[:4], rtol=1e-12)
    assert asked.certificate.gap == pytest.approx(each.certificate.gap, rel=1e-6)


def test_whole_steps_are_the_formula():
    problem = CASES["sparse-C=1"].problem()
    solver = solvers.Newton(damped=False)
    state = solver.init(problem, None)
    expected = state.evaluation.w - np.linalg.solve(
        problem.hessian(state.evaluation), state.evaluation.gradient
    )
    solver.step(problem, state)
    np.testing.assert_allclose(state.evaluation.w, expected, rtol=1e-9, atol=1e-12)


def test_gradients_of_dual_solvers_are_noted_on_request():
    problem = two_classes()
    rows = solve(problem, "cd-dual", tol=1e-8, gradients=True, check_every=1.0).trace
    assert np.isnan(solve(problem, "cd-dual").trace[-1].gradient_norm)
    last = problem.evaluate(solve(problem, "cd-dual", tol=1e-8, check_every=1.0).w)
    assert rows[-1].gradient_norm == pytest.approx(last.gradient_norm, rel=1e-6)
    # P − P* ≤ ‖∇P‖²/(2λ), and the gap of the dual solver bounds it too
    assert all(row.gradient_norm > 0.0 for row in rows[:3])


def test_wrong_settings_are_refused_by_name():
    for make, word in (
        (lambda: solvers.CDDual(first=0.0), "first"),
        (lambda: solvers.SDCA(renew=0), "renew"),
        (lambda: solvers.SDCA(begin="end"), "begin"),
        (lambda: solvers.EG(cap=0.0), "cap"),
        (lambda: solve(two_classes(), solvers.CDPrimal(gamma=0.7)), "gamma"),
        (lambda: solve(two_classes(), solvers.SCGIS(evaluate="never")), "evaluate"),
    ):
        with pytest.raises(ValueError, match=f"^{word}="):
            make()


@pytest.mark.parametrize("far", [50.0, 200.0])
@pytest.mark.parametrize("evaluate", ["each pass", "when asked"])
@pytest.mark.parametrize("solver", [solvers.CDPrimal, solvers.SCGIS])
def test_a_long_way_back_loses_no_outcome(solver, evaluate, far):
    """1 + expm1(z) is 0 below z = −37: the outcome was gone, and the objective rose from pass to pass."""
    X = np.column_stack([np.ones(6), [1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]])
    problem = problems.flat(X, [0, 1, 2, 0, 1, 2], C=10.0)
    best = solve(problem, solvers.LBFGS(), tol=1e-10).certificate.primal
    w = np.zeros(problem.dim)
    w[0] = far
    settings = {"start": Start(w), "tol": 1e-6, "max_passes": 2000, "check_every": 1.0}
    result = solve(problem, solver(evaluate=evaluate), **settings)
    assert result.certificate.converged
    assert (np.diff(result.trace.column("primal")) <= 1e-9).all()
    assert result.certificate.primal == pytest.approx(best, rel=1e-6)
