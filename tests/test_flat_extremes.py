"""Several labels or candidates at the borders: huge scores, extreme constants, no regulariser, few data."""

from itertools import pairwise
from math import inf, isfinite, isnan

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel import problems, solvers
from fenchel.loop import solve
from fenchel.losses import LOSSES
from fenchel.offers import offered
from fenchel.solvers import SOLVERS, solver_class
from fenchel.structures.crossed import Crossed
from fenchel.trace import Status
from flat_matrix import (
    Case,
    accepts,
    assert_certified,
    cases,
    hinge_optimum,
    label,
    optimum,
    pairs,
    ragged,
)

CASES = cases()
HASTY = {"sgd"}
UNREGULARISED = [s for s in SOLVERS if solver_class(s).needs <= offered(Crossed, LOSSES["log"])]


# ---- extremes


@pytest.mark.parametrize("C", [1e-6, 1e6])
@pytest.mark.parametrize("solver, name", pairs(["sparse-C=1", "dense-C=1-free", "joint-binary-C=1"]))
def test_extreme_constants_leave_a_true_certificate(solver, name, C):
    case = CASES[name]._replace(C=C)
    problem, best = case.problem(), case.dense().optimum()[0]
    result = solve(problem, solver, tol=1e-6, max_passes=50)
    assert_certified(result, problem, case.dense(), best)
    if C == 1e-6 and solver not in HASTY:
        assert result.status is Status.CONVERGED


@pytest.mark.parametrize("C", [1e-6, 1e6])
@pytest.mark.parametrize("solver, name", pairs(["sparse-C=1", "dense-C=1", "joint-real-C=1"], "hinge"))
def test_extreme_constants_with_the_hinge_loss(solver, name, C):
    case = CASES[name]._replace(C=C)
    problem, dense = case.problem(loss="hinge"), case.dense(hinge=True)
    result = solve(problem, solver, tol=1e-2, max_passes=100)
    assert_certified(result, problem, dense, hinge_optimum(name, C), accuracy=1e-7)


@pytest.mark.parametrize("mu", [False, True], ids=["weights", "dual"])
@pytest.mark.parametrize("solver, name", pairs(["sparse-C=1", "dense-K=7-free", "joint-binary-C=1"]))
def test_a_warm_start_at_scores_of_a_thousand_recovers(solver, name, mu):
    """Softmaxes there are 0 and 1 to rounding, and most examples are on the wrong side."""
    case, (best, _, _) = CASES[name], optimum(name)
    problem, dense = case.problem(), case.dense()
    w, join = np.random.default_rng(0).normal(size=problem.penalised), problem.design.join
    w *= 1e3 / np.abs(problem.scores(join(w))).max()
    b = np.linspace(-1e3, 1e3, 7) if case.free else 0.0
    start = fenchel.Start(w, b, problem.marginals(problem.scores(join(w, b))) if mu else None)
    result = solve(problem, solver, tol=1e-6, start=start, max_passes=1000)
    assert_certified(result, problem, dense, best)
    if solver in {"newton", "tron", "lbfgs", "cd-primal", "cd-dual", "sag", "sdca"}:
        assert result.status is Status.CONVERGED


@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("signs", [False, True], ids=["normal", "signs"])
@pytest.mark.parametrize("name", ["dense-C=1-free", "dense-K=7-free"])
def test_free_offsets_are_the_best_at_scores_of_any_size(name, signs, scale):
    """P(w) = min_b P(w, b): where b falls short of it, no gap computed from the gradient is a bound."""
    problem, dense = CASES[name].problem(), CASES[name].dense()
    for seed in range(1, 4):
        rng = np.random.default_rng(seed)
        d = problem.penalised
        w = rng.choice([-1.0, 1.0], size=d) if signs else rng.normal(size=d)
        w *= scale / np.abs(problem.scores(problem.design.join(w))).max()
        b = problem.value_at(w)[1]
        assert abs(b.mean()) <= 1e-12 * np.abs(b).max()
        assert np.abs(dense.gradient(w, b)[1]).max() <= 1e-9


@pytest.mark.parametrize("scale", [1e4, 1e-4])
@pytest.mark.parametrize("solver, name", pairs(["dense-C=1", "dense-C=1-free", "joint-real-C=1"]))
def test_features_of_any_size_leave_a_true_certificate(solver, name, scale):
    case = CASES[name]._replace(X=scale * CASES[name].X)
    problem, best = case.problem(), case.dense().optimum()[0]
    assert_certified(solve(problem, solver, tol=1e-6, max_passes=30), problem, case.dense(), best)


TINY = {
    "one-example-per-label": Case("", np.diag([1.0, 2.0, 0.5]), np.arange(3), labels=3),
    "ties": Case("", np.array([[1.0, 2.0]] * 4), np.array([0, 1, 2, 0]), labels=3),
    "all-zero": Case("", np.zeros((4, 2)), np.array([0, 1, 2, 0]), labels=3),
    "all-zero-free": Case("", np.zeros((4, 2)), np.array([0, 1, 2, 0]), free=True, labels=3),
    "empty-rows-free": Case(
        "", sp.csr_matrix(([2.0], ([1], [0])), shape=(4, 2)), np.array([0, 1, 2, 0]), free=True, labels=3
    ),
    "stored-zeros": Case(
        "", sp.csr_matrix(([0.0, 1.0, 2.0, 1.0, 0.0], [0, 0, 0, 0, 1], [0, 1, 2, 3, 5]), shape=(4, 2)),
        np.array([0, 1, 2, 0]), labels=3,
    ),
    "equal-candidates": Case("", np.ones((5, 2)), np.array([1, 0]), starts=np.array([0, 3, 5])),
    "candidates-without-features": Case("", np.zeros((5, 2)), np.array([1, 0]), starts=np.array([0, 3, 5])),
}  # fmt: skip


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("solver", SOLVERS)
def test_degenerate_problems_are_solved(solver, name, loss):
    case = TINY[name]
    if not accepts(solver, case, loss) or (loss == "hinge" and case.free):
        pytest.skip("not offered")
    problem, dense = case.problem(loss=loss), case.dense(hinge=loss == "hinge")
    best = dense.optimum()[0] if loss == "log" else dense.hinge_optimum()[0]
    result = solve(problem, solver, tol=1e-6 if loss == "log" else 1e-2, max_passes=3000)
    assert_certified(result, problem, dense, best, accuracy=1e-11 if loss == "log" else 1e-7)
    if solver not in HASTY:
        assert result.status is Status.CONVERGED


# ---- without a regulariser


def overlapping(free=False, n=40):
    rng = np.random.default_rng(11)
    X = rng.integers(0, 3, size=(n, 3)).astype(float)
    X[:, 0] += 1.0
    return Case("", X, label(X, rng, 3, noise=6.0), inf, free, labels=3)


def overlapping_candidates():
    F, _, starts = ragged("binary", 4, n=60, d=4)
    rng = np.random.default_rng(5)
    y = rng.integers(np.diff(starts))
    return Case("", F, y, inf, starts=starts)


@pytest.mark.parametrize("layout", ["crossed", "crossed-free", "joint"])
@pytest.mark.parametrize("solver", UNREGULARISED)
def test_the_unregularised_optimum_is_reached(solver, layout):
    case = overlapping_candidates() if layout == "joint" else overlapping("free" in layout)
    if not accepts(solver, case):
        pytest.skip("not for candidates")
    dense = case.dense()
    best, w, _ = dense.optimum()
    assert np.abs(w).max() < 10.0  # there is an optimum
    result = solve(case.problem(), solver, tol=1e-5, max_passes=1e5)
    assert result.status is Status.CONVERGED
    assert dense.primal(result.w, result.b) == pytest.approx(best, rel=1e-8)
    assert result.certificate.primal == pytest.approx(best, rel=1e-8)
    assert isnan(result.certificate.gap) and isnan(result.certificate.dual)
    assert "none: unregularised" in str(result.certificate)


@pytest.mark.parametrize("layout", ["crossed", "joint"])
@pytest.mark.parametrize("solver", ["gis", "sm-s", "scgis"])
def test_one_step_is_the_closed_form(solver, layout):
    """huang2010 (25) and zhang2005 (12): z = log(P̃(f_t) / E_t) / f#, for scgis one weight after the other."""
    case = overlapping_candidates() if layout == "joint" else overlapping()
    if not accepts(solver, case):
        pytest.skip("not for candidates")
    problem, dense = case.problem(), case.dense()
    w = np.random.default_rng(0).normal(size=problem.dim)
    method = solvers.make(solver, **({"order": "cyclic"} if solver == "scgis" else {}))
    state = method.init(problem, fenchel.Start(w))
    method.step(problem, state)

    def logarithm(w):
        mass = dense.mass[dense.owner]
        return np.log((dense.F.T @ (mass * dense.y)) / (dense.F.T @ (mass * dense.marginals(dense.F @ w))))

    if solver == "scgis":
        for t in range(w.size):
            w[t] += logarithm(w)[t] / dense.F[:, t].max()
    else:
        w = w + logarithm(w) / dense.F.sum(axis=1).max()
    np.testing.assert_allclose(state.evaluation.w, w, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("layout", ["crossed", "crossed-free", "joint"])
@pytest.mark.parametrize("C", [inf, 1.0])
@pytest.mark.parametrize("solver", ["gis", "iis", "scgis", "sm-s", "sm-g1", "sm-g2", "sm-q"])
def test_surrogate_methods_increase_the_likelihood_at_each_step(solver, C, layout):
    case = overlapping_candidates() if layout == "joint" else overlapping("free" in layout)
    if not accepts(solver, case):
        pytest.skip("not for candidates")
    problem, method = case._replace(C=C).problem(), solvers.make(solver)
    state = method.init(problem, None)
    first, primal = state.evaluation, [state.evaluation.value]
    while state.passes < 200 and state.evaluation.gradient_norm > 1e-3 * first.gradient_norm:
        method.step(problem, state)
        primal.append(state.evaluation.value)
    assert len(primal) > 2
    assert all(after <= before * (1.0 + 1e-15) for before, after in pairwise(primal))


@pytest.mark.parametrize("solver", ["gis", "iis", "scgis", "sm-s"])
def test_a_pair_of_feature_and_label_never_seen_is_named(solver):
    case = overlapping()
    case.X[case.y == 2, 1] = 0.0
    with pytest.raises(ValueError, match=rf"{solver} .*feature 1 never occurs with the label 2"):
        solve(case.problem(), solver)
    assert solve(case._replace(C=1.0).problem(), solver, max_passes=1e4).status is Status.CONVERGED


@pytest.mark.parametrize("solver", ["gis", "iis", "scgis"])
def test_a_feature_no_true_candidate_has_is_named(solver):
    F, y, starts = ragged("binary", 4)
    F = F.toarray()
    F[starts[:-1] + y, 2] = 0.0
    with pytest.raises(ValueError, match=rf"{solver} .*feature 2 never occurs with a true candidate"):
        solve(problems.joint(F, y, starts, C=inf), solver)


@pytest.mark.parametrize("solver", UNREGULARISED)
def test_without_an_optimum_the_run_ends_with_finite_numbers(solver):
    """A feature that only the label 1 has, and another that all have: its weights grow for ever."""
    case = overlapping()
    case.X[case.y != 1, 2] = 0.0
    if solver in {"gis", "iis", "scgis", "sm-s"}:
        pytest.skip("refused: feature 2 never occurs with the label 0")
    result = solve(case.problem(), solver, tol=1e-12, max_passes=300)
    assert np.isfinite(result.w).all() and isfinite(result.certificate.primal)
    assert result.certificate.primal < case._replace(C=1.0).dense().optimum()[0]


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name not in UNREGULARISED])
def test_solvers_that_need_a_dual_refuse_a_problem_without_a_regulariser(solver):
    with pytest.raises(ValueError, match=rf"solver '{solver}' cannot train a flat crossed model"):
        solve(overlapping().problem(), solver)
