"""Every solver on every small problem: the optimum, and a certificate that holds on every row of a trace."""

import warnings
from itertools import pairwise
from math import inf, isfinite, isnan

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import naive
from brute import Dense
from fenchel import problems, solvers
from fenchel.loop import solve
from fenchel.losses import LOSSES
from fenchel.offers import REGULARISED, offered
from fenchel.solvers import SOLVERS as ALL
from fenchel.solvers import solver_class
from fenchel.structures.binary import Binary
from fenchel.trace import Status
from matrix import Case, base, cases, labels, optimum, separable

CASES = {case.name: case for case in cases()}
# cutting-plane is for the hinge loss with more than two outputs: tests/test_flat_solvers.py
SOLVERS = [name for name in ALL if solver_class(name).needs <= offered(Binary, LOSSES["log"]) | REGULARISED]
SLOW = {"gis", "iis", "scgis", "sm-s", "sm-g1", "sm-g2", "sm-q", "eg", "eg-batch"}
HASTY = {"sgd"}  # its steps shrink: no promise at tol = 1e-6
UNREGULARISED = (
    "gis",
    "iis",
    "scgis",
    "cd-primal",
    "sm-s",
    "sm-g1",
    "sm-g2",
    "sm-q",
    "newton",
    "lbfgs",
    "tron",
    "sag",
    "sag-nus",
    "prox-newton",
)
DUAL = ("cd-dual", "sdca", "eg", "eg-batch")


def must_converge(solver, case):
    if solver == "newton":
        return True
    if solver in HASTY:
        return False
    if solver in SLOW:
        return case.C <= 1.0 and case.scaled
    return case.scaled or case.C < 1e4


def assert_certified(result, dense, best):
    """The certificate is true: of the model returned, and on every row against the known optimum `best`."""
    rounding = 1e-11 * max(abs(best), 1e-300)
    primal = inf
    for row in result.trace:
        assert isfinite(row.primal) and isfinite(row.dual)
        assert row.primal >= row.dual - 1e-12 * abs(row.primal)
        assert row.dual <= best + rounding
        primal = min(primal, row.primal)
        assert primal >= best - rounding
        assert primal - best <= row.gap + rounding
    certificate = result.certificate
    assert certificate.primal == pytest.approx(dense.primal(result.w, result.b), rel=1e-9, abs=1e-14)
    assert certificate.primal <= primal  # less where w = 0 is better than all of them
    assert certificate.dual <= best + rounding
    assert certificate.primal - best <= certificate.gap + rounding


def run(case, solver, *, best=None, **settings):
    """Solve, certify, and return the result and its distance from the optimum, relative to it."""
    dense = case.dense()
    best = optimum(case.name)[0] if best is None else best
    result = solve(case.problem(), solver, **{"tol": 1e-6, "max_passes": 1e5} | settings)
    assert_certified(result, dense, best)
    return result, (dense.primal(result.w, result.b) - best) / best


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_reaches_the_optimum_or_says_how_far_it_is(solver, name):
    case = CASES[name]
    needed = must_converge(solver, case)
    result, excess = run(case, solver, max_passes=1e5 if needed else 200)
    if needed:
        assert result.status is Status.CONVERGED
    if result.status is Status.CONVERGED:
        assert result.certificate.gap <= 1e-6 * result.certificate.primal
        assert excess <= 1e-6


@pytest.mark.parametrize("sampling", ["uniform", "importance", "gap-importance", "residual"])
@pytest.mark.parametrize(
    "name", ["dense-C=1-free", "sparse-C=10000", "unscaled-C=1", "weights", "separable-free"]
)
def test_sdca_converges_with_every_sampling(sampling, name):
    result, excess = run(CASES[name], solvers.SDCA(sampling=sampling))
    assert result.status is Status.CONVERGED
    assert excess <= 1e-6


def reference(case):
    """scikit-learn's (w, b) at a tight tolerance."""
    model = LogisticRegression(
        C=case.C, fit_intercept=case.free, solver="newton-cholesky", tol=1e-12, max_iter=10_000
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where rounding keeps it from 1e-12
        model.fit(case.X, case.y, sample_weight=case.weight)
    return model.coef_[0], float(model.intercept_[0]) if case.free else 0.0


@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_that_of_scikit_learn(name):
    case = CASES[name]
    value = case.dense().primal(*reference(case))
    assert optimum(name)[0] == pytest.approx(value, rel=1e-7)
    result = solve(case.problem(), "newton", tol=1e-10)
    assert result.certificate.primal == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("solver", ["newton", "tron", "lbfgs"])
def test_tight_runs_agree_with_the_coefficients_of_scikit_learn(solver, name):
    case = CASES[name]
    if solver != "newton" and case.C > 1.0 and not case.scaled:
        pytest.skip("only newton must converge on unscaled columns at C = 1e4")
    w, b = reference(case)
    result = solve(case.problem(), solver, tol=1e-10, max_passes=1e5)
    assert result.status is Status.CONVERGED
    size = max(1.0, np.abs(w).max())
    np.testing.assert_allclose(result.w, w, rtol=0.0, atol=1e-4 * size)
    assert result.b == pytest.approx(b, abs=1e-4 * max(1.0, abs(b)))


# ---- the hinge loss

HINGE = {
    "dense": (*base("dense"), 1.0, None),
    "sparse": (*base("sparse"), 1.0, None),
    "sparse-strong": (*base("sparse"), 1e-2, None),
    "separable": (*separable(), 10.0, None),
    "weights": (*base("dense", 4), 1.0, np.random.default_rng(7).integers(0, 5, size=48).astype(float)),
}


@pytest.mark.parametrize("intercept", [None, 1.0, 3.0], ids=["none", "constant", "constant-3"])
@pytest.mark.parametrize("name", HINGE)
@pytest.mark.parametrize("solver", ["cd-dual", "interior-point", "sdca", "eg", "eg-batch", "sgd"])
def test_the_hinge_loss_reaches_the_optimum_of_linear_svc(solver, name, intercept):
    X, y, C, weight = HINGE[name]
    keep = slice(None) if weight is None else weight > 0.0
    model = LinearSVC(
        C=C, loss="hinge", dual=True, tol=1e-10, max_iter=10_000_000, random_state=0,
        fit_intercept=intercept is not None, intercept_scaling=intercept or 1.0,
    )  # fmt: skip
    model.fit(X[keep], y[keep], sample_weight=None if weight is None else weight[keep])
    wide = (
        X if intercept is None else sp.hstack([sp.csr_matrix(X), np.full((len(y), 1), intercept)]).toarray()
    )
    w = model.coef_[0] if intercept is None else np.append(model.coef_[0], model.intercept_[0] / intercept)
    lam = 1.0 / (C * (len(y) if weight is None else weight.sum()))
    dense = Dense(wide, y, lam, weight, hinge=True)
    best = dense.primal(w)

    exact = solver in {"cd-dual", "interior-point", "sdca"}
    problem = problems.binary(
        X, y, loss="hinge", C=C, fit_intercept=intercept is not None, intercept_scaling=intercept,
        sample_weight=weight,
    )  # fmt: skip
    tol = 1e-6 if exact else 1e-2
    result = solve(problem, solver, tol=tol, max_passes=500 if solver == "sgd" else 2e4)
    assert result.status is Status.CONVERGED or solver == "sgd"
    for row in result.trace:
        assert row.primal >= row.dual - 1e-12 * row.primal
        assert row.dual <= best * (1.0 + 1e-9)
    assert result.certificate.primal == pytest.approx(dense.primal(result.w), rel=1e-9)
    assert -1e-9 * best <= result.certificate.primal - best <= result.certificate.gap + 1e-9 * best
    if result.status is Status.CONVERGED:
        assert result.certificate.primal <= best * (1.0 + tol + 1e-9)


def test_the_hinge_loss_with_an_intercept_is_linear_svc_by_default():
    X, y = base("dense")
    by_default = problems.binary(X, y, loss="hinge", fit_intercept=True)
    constant = problems.binary(X, y, loss="hinge", fit_intercept=True, intercept_scaling=1.0)
    assert not by_default.free and by_default.dim == constant.dim == X.shape[1] + 1


# ---- options

EASY = "dense-C=1"
OPTIONS = [
    *[("cd-dual", {"subproblem": s, "xi": xi})
      for s in ("newton", "bisection", "line-search") for xi in (0.1, 0.5)],
    *[("cd-primal", {"line_search": s, "order": o}) for s in ("fast", "plain") for o in ("random", "cyclic")],
    *[("scgis", {"bound": b, "order": o}) for b in ("linear", "log") for o in ("random", "cyclic")],
    *[("sdca", {"sampling": s, "step_size": t})
      for s in ("gap", "uniform", "importance", "gap-importance", "max", "residual")
      for t in ("newton", "one-newton", "fixed")],
    ("sdca", {"non_uniform": 0.5}),
    ("sdca", {"precision": 1e-8, "first": 0.1}),
    *[("eg", {"order": o, "batch": b}) for o in ("random", "cyclic") for b in (False, True)],
    ("eg", {"eta": 0.05}),
    *[("sag", {"sampling": s, "line_search": t})
      for s in ("uniform", "lipschitz") for t in ("skip", "every")],
    ("lbfgs", {"memory": 2}),
    ("tron", {"accuracy": 1e-3}),
]  # fmt: skip


@pytest.mark.parametrize("name", [EASY, "sparse-C=1-free"])
@pytest.mark.parametrize(
    "solver, options", OPTIONS, ids=[f"{s}-" + "-".join(map(str, o.values())) for s, o in OPTIONS]
)
def test_every_option_reaches_the_optimum(solver, options, name):
    hopeless = solver == "sdca" and options.get("sampling") == "max" and options.get("step_size") != "newton"
    result, excess = run(CASES[name], solvers.make(solver, **options), max_passes=100 if hopeless else 2e4)
    if not hopeless:
        assert result.status is Status.CONVERGED
        assert excess <= 1e-6


@pytest.mark.parametrize(
    "solver, option",
    [
        ("cd-dual", {"subproblem": "nwton"}),
        ("cd-dual", {"xi": 1.0}),
        ("cd-primal", {"line_search": "slow"}),
        ("cd-primal", {"order": "sorted"}),
        ("scgis", {"bound": "cubic"}),
        ("sm-q", {"variant": "z"}),
        ("sdca", {"sampling": "best"}),
        ("sdca", {"step_size": "long"}),
        ("sdca", {"non_uniform": 1.5}),
        ("eg", {"order": "sorted"}),
        ("eg", {"eta": 0.0}),
        ("sag", {"sampling": "gap"}),
        ("sag", {"line_search": "never"}),
        ("sgd", {"eta0": -1.0}),
    ],
)
def test_a_wrong_option_is_named_with_its_value(solver, option):
    with pytest.raises(ValueError, match="=".join(map(str, (*option, repr(next(iter(option.values()))))))):
        solve(CASES[EASY].problem(), solvers.make(solver, **option))


@pytest.mark.parametrize("line_search", ["fast", "plain"])
def test_cd_primal_takes_columns_with_negative_entries(line_search):
    X, y = base("dense")
    X = X - X.mean(axis=0)
    result = solve(problems.binary(X, y), solvers.CDPrimal(line_search=line_search), tol=1e-8)
    assert result.status is Status.CONVERGED
    best = Dense(X, y, 1.0 / len(y)).optimum()[0]
    assert result.certificate.primal == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("solver", ["gis", "iis", "scgis", "sm-s", "sm-g2"])
def test_iterative_scaling_names_the_first_negative_feature(solver):
    X, y = base("dense")
    X[3, 2] = -0.5
    with pytest.raises(ValueError, match=rf"{solver} needs features ≥ 0, but row 3, column 2 holds -0.5"):
        solve(problems.binary(X, y), solver)


# ---- extremes


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("free", [False, True], ids=["", "free"])
@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_extreme_constants_leave_a_true_certificate(C, free, solver):
    X, y = base("sparse")
    case = Case("", X, y, C, free)
    best = case.dense().optimum()[0]
    result, _ = run(case, solver, best=best, max_passes=300)
    if C == 1e-6 and solver not in HASTY:
        assert result.status is Status.CONVERGED


@pytest.mark.parametrize("free", [False, True], ids=["", "free"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_features_of_ten_thousand_leave_a_true_certificate(solver, free):
    X, y = base("dense")
    X = 1e4 * X / 0.3
    case = Case("", X, y, 1.0, free, scaled=False)
    best = case.dense().optimum()[0]
    result, _ = run(case, solver, best=best, max_passes=100)
    assert np.isfinite(result.w).all() and isfinite(result.b)
    if solver in DUAL:
        assert np.isfinite(result.mu).all()
        assert (result.mu >= 0.0).all() and np.allclose(result.mu.sum(axis=1), 1.0, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("subproblem", ["newton", "bisection", "line-search"])
@pytest.mark.parametrize("scale", [1e4, 1e6])
def test_cd_dual_stays_finite_on_huge_features(scale, subproblem):
    X, y = base("dense")
    problem = problems.binary(scale * X, y, C=1e4)
    solver = solvers.CDDual(subproblem=subproblem)
    state = solver.init(problem, None)
    for _ in range(50):
        solver.step(problem, state)
        assert np.isfinite(state.mu).all() and np.isfinite(state.v).all()
        assert (state.mu > 0.0).all() and (state.mu < 1.0 + 1e-15).all()
    point = solver.point(problem, state)
    assert isfinite(point.primal) and point.primal >= point.dual


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_warm_start_at_scores_of_a_thousand_recovers(solver):
    """Sigmoids there are 0 and 1 to rounding, and half of the examples are on the wrong side."""
    X, y = base("sparse", 6)
    case = Case("", X, y)
    best, _, _ = case.dense().optimum()
    w = np.full(X.shape[1], 400.0)
    assert np.abs(X @ w).max() >= 1e3
    result, excess = run(case, solver, best=best, start=solvers.base.Start(w), max_passes=3000)
    if solver in {"newton", "tron", "lbfgs", "cd-primal", "cd-dual", "sag", "sdca"}:
        assert result.status is Status.CONVERGED and excess <= 1e-6


TINY_PROBLEMS = {
    "one-example-per-class": (np.array([[1.0, 0.0], [0.0, 2.0]]), [1.0, 0.0]),
    "ties": (np.array([[1.0, 2.0]] * 4), [1.0, 0.0, 1.0, 0.0]),
    "single-feature": (np.array([[0.5], [1.0], [2.0], [1.5]]), [0.0, 1.0, 1.0, 0.0]),
    "one-column-of-ones": (np.ones((5, 1)), [1.0, 1.0, 0.0, 1.0, 0.0]),
    "all-zero": (np.zeros((4, 3)), [1.0, 0.0, 0.0, 0.0]),
    "empty-rows": (sp.csr_matrix(([2.0], ([1], [0])), shape=(4, 2)), [1.0, 1.0, 0.0, 0.0]),
}
EXPLICIT = sp.csr_matrix(([0.0, 1.0, 2.0, 1.0, 0.0], [0, 0, 0, 0, 1], [0, 1, 2, 3, 5]), shape=(4, 2))


@pytest.mark.parametrize("free", [False, True], ids=["", "free"])
@pytest.mark.parametrize("name", TINY_PROBLEMS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_degenerate_problems_are_solved(solver, name, free):
    X, y = TINY_PROBLEMS[name]
    case = Case("", X, np.array(y), 1.0, free)
    best = case.dense().optimum()[0]
    result, excess = run(case, solver, best=best, max_passes=3000)
    if solver not in HASTY:
        assert result.status is Status.CONVERGED
        assert excess <= 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_stored_zeros_are_like_any_other_zero(solver):
    case = Case("", EXPLICIT, np.array([1.0, 0.0, 1.0, 0.0]))
    best = case.dense().optimum()[0]
    _, excess = run(case, solver, best=best, max_passes=3000)
    assert excess <= 1e-5


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "tron", "cd-primal", "sag", "cd-dual", "sdca", "eg"])
def test_a_large_common_shift_of_the_features_does_not_move_the_optimum(solver):
    """With a free offset the shift is only another b; no certificate may claim less than the truth."""
    X, y = base("dense")
    best = Case("", X / 0.3, y, 1.0, True).dense().optimum()[0]
    problem = problems.binary(X / 0.3 + 1e4, y, C=1.0, fit_intercept=True)
    result = solve(problem, solver, tol=1e-6, max_passes=2000)
    for row in result.trace:
        assert row.dual <= best * (1.0 + 1e-6)
    if solver not in {"eg", "cd-primal"}:  # cd-primal alternates between w and b, and crawls here
        assert result.certificate.primal <= best * (1.0 + 1e-5)


# ---- the dual, kept up and computed anew


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("name", ["dense-C=1", "sparse-C=10000", "unscaled-C=1", "weights"])
@pytest.mark.parametrize("solver", DUAL)
def test_the_weights_kept_up_incrementally_are_those_of_the_dual_variables(solver, name, loss):
    case = CASES[name]
    problem = problems.binary(case.X, case.y, loss=loss, C=case.C, sample_weight=case.weight)
    if case.weight is not None:
        case = case._replace(
            X=case.X[case.weight > 0], y=case.y[case.weight > 0], weight=case.weight[case.weight > 0]
        )
    dense = Dense(case.X, case.y, case.lam, case.weight, hinge=loss == "hinge")
    method = solvers.make(solver)
    state = method.init(problem, None)
    for _ in range(30):
        method.step(problem, state)
    w = state.v
    anew = dense.weights(state.mu)
    np.testing.assert_allclose(w, anew, rtol=0.0, atol=1e-10 * max(np.abs(anew).max(), 1e-12))
    point = problem.dual_point(state.mu)
    assert point.dual == pytest.approx(dense.dual(state.mu), rel=1e-10, abs=1e-10 * point.primal)
    # w is a sum divided by λ = 1/(C n): its last digit is worth as much more as C is large.
    assert point.primal == pytest.approx(dense.primal(anew), rel=max(1e-10, 1e-13 * case.C))


@pytest.mark.parametrize("solver", DUAL)
def test_the_dual_of_a_free_offset_is_that_of_a_feasible_point(solver):
    case = CASES["dense-C=1-free"]
    problem, dense = case.problem(), case.dense()
    method = solvers.make(solver)
    state = method.init(problem, None)
    for _ in range(30):
        method.step(problem, state)
    point = method.point(problem, state)
    mu = problem.tilt(state.mu)
    assert abs(dense.mass @ (dense.y - mu[:, 0])) <= 1e-14
    assert point.dual == pytest.approx(dense.dual(mu), rel=1e-10)
    assert point.primal == pytest.approx(dense.primal(point.w, point.b), rel=1e-12)


@pytest.mark.parametrize("limits", [{"check_every": 1.0, "max_passes": 30.0}, {"max_passes": 0.0}])
@pytest.mark.parametrize("solver", DUAL)
def test_the_first_check_is_as_true_as_the_last(solver, limits):
    """Before the first pass too the dual is a bound: here the optimum is below H of the first point."""
    X, y = np.array([[1e5], [-1e5]] * 5), np.array([1.0, 0.0] * 5)
    case = Case("", X, y)
    run(case, solver, best=case.dense().optimum()[0], **limits)


# ---- without a regulariser


def overlapping():
    rng = np.random.default_rng(11)
    X = rng.integers(0, 3, size=(60, 4)).astype(float)
    X[:, 0] += 1.0
    return X, labels(X, rng, noise=3.0)


@pytest.mark.parametrize("free", [False, True], ids=["", "free"])
@pytest.mark.parametrize("solver", UNREGULARISED)
def test_unregularised_optimum_is_that_of_scikit_learn(solver, free):
    X, y = overlapping()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(
            C=inf, fit_intercept=free, solver="newton-cholesky", tol=1e-12, max_iter=1000
        )
        model.fit(X, y)
    result = solve(problems.binary(X, y, C=inf, fit_intercept=free), solver, tol=1e-6, max_passes=1e5)
    assert result.status is Status.CONVERGED
    dense = Dense(X, y, 0.0, free=free)
    best = dense.primal(model.coef_[0], model.intercept_[0] if free else 0.0)
    assert dense.primal(result.w, result.b) == pytest.approx(best, rel=1e-8)
    np.testing.assert_allclose(result.w, model.coef_[0], rtol=0.0, atol=1e-3)
    assert isnan(result.certificate.gap) and isnan(result.certificate.dual)
    assert "none: unregularised" in str(result.certificate)
    assert all(isnan(row.gap) for row in result.trace)


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name not in UNREGULARISED])
def test_solvers_that_need_a_dual_refuse_a_problem_without_a_regulariser(solver):
    X, y = overlapping()
    with pytest.raises(
        ValueError, match=rf"solver '{solver}' cannot .* no regulariser and so no dual; use gis"
    ):
        solve(problems.binary(X, y, C=inf), solver)


@pytest.mark.parametrize("solver", ["gis", "iis", "scgis", "sm-s"])
def test_a_feature_never_seen_with_the_class_1_is_named(solver):
    X, y = overlapping()
    X[y == 1.0, 2] = 0.0
    with pytest.raises(ValueError, match=rf"{solver} .*feature 2 never occurs with the class 1"):
        solve(problems.binary(X, y, C=inf), solver)
    assert solve(problems.binary(X, y, C=1.0), solver, max_passes=1e4).status is Status.CONVERGED


@pytest.mark.parametrize("solver", UNREGULARISED)
def test_without_an_optimum_the_run_ends_with_finite_numbers(solver):
    """A feature that only the class 1 has: its weight would grow for ever."""
    X, y = overlapping()
    X[y == 0.0, 2] = 0.0
    result = solve(problems.binary(X, y, C=inf), solver, tol=1e-12, max_passes=500)
    assert np.isfinite(result.w).all() and isfinite(result.certificate.primal)
    assert result.certificate.primal < solve(problems.binary(X, y, C=1.0), "newton").certificate.primal


@pytest.mark.parametrize("solver", ["gis", "scgis", "sm-s", "iis", "sm-g1", "sm-g2", "sm-q"])
@pytest.mark.parametrize("C", [inf, 1.0])
def test_surrogate_methods_increase_the_likelihood_at_each_step(solver, C):
    X, y = overlapping()
    primal = solve(problems.binary(X, y, C=C), solver, tol=1e-5, max_passes=400).trace.column("primal")
    assert len(primal) > 2
    assert all(after <= before * (1.0 + 1e-15) for before, after in pairwise(primal))


# ---- soft targets


@pytest.mark.parametrize("free", [False, True], ids=["", "free"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_soft_target_equals_replicated_weighted_rows(solver, free):
    X, _ = base("dense")
    y = np.random.default_rng(8).uniform(size=len(X))
    y[:4] = [0.0, 1.0, 0.5, 1e-9]
    soft = Case("", X, y, 1.0, free)
    hard = Case("", np.vstack([X, X]), np.repeat([1.0, 0.0], len(X)), 1.0, free, np.concatenate([y, 1.0 - y]))
    best = soft.dense().optimum()[0]
    assert hard.dense().optimum()[0] == pytest.approx(best, rel=1e-12)
    for case in (soft, hard):
        result, excess = run(case, solver, best=best, max_passes=5000)
        if solver not in HASTY:
            assert result.status is Status.CONVERGED and excess <= 1e-6


# ---- naive twins


@pytest.mark.parametrize("free", [False, True], ids=["", "free"])
@pytest.mark.parametrize("name", ["dense-C=1", "sparse-C=1", "weights"])
def test_a_pass_of_cd_dual_is_that_of_its_naive_twin(name, free):
    problem, dense = with_weighted_rows(CASES[name], free)
    for subproblem in ("newton", "bisection"):
        method = solvers.CDDual(subproblem=subproblem, seed=3)
        state = method.init(problem, None)
        state.inner = 1e-14
        first, rng = state.mu.copy(), np.random.default_rng(3)
        method.step(problem, state)
        w, mu = naive.cd_dual_pass(dense, problem.design.constant, first, rng)
        np.testing.assert_allclose(state.v, w, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(state.mu, mu, rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("hinge", [False, True], ids=["log", "hinge"])
@pytest.mark.parametrize("free", [False, True], ids=["", "free"])
@pytest.mark.parametrize("name", ["dense-C=1", "sparse-C=1", "weights"])
def test_two_passes_of_sgd_are_those_of_its_naive_twin(name, free, hinge):
    if hinge and free:
        pytest.skip("the hinge loss has no free offset")
    problem, dense = with_weighted_rows(CASES[name], free, hinge)
    method = solvers.SGD(eta0=0.1, seed=5)
    state = method.init(problem, None)
    for _ in range(2):
        method.step(problem, state)
    w = naive.sgd_passes(dense, problem.design.constant, 0.1, 2, np.random.default_rng(5))
    np.testing.assert_allclose(state.v, w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sampling", ["uniform", "lipschitz"])
@pytest.mark.parametrize("free", [False, True], ids=["", "free"])
@pytest.mark.parametrize("name", ["dense-C=1", "sparse-C=1", "weights"])
def test_three_passes_of_sag_are_those_of_its_naive_twin(name, free, sampling):
    problem, dense = with_weighted_rows(CASES[name], free)
    method = solvers.SAG(sampling=sampling, line_search="every", seed=9)
    state = method.init(problem, None)
    for _ in range(3):
        method.step(problem, state)
    rng = np.random.default_rng(9)
    w = naive.sag_passes(dense, problem.design.constant, sampling == "lipschitz", 3, rng)
    np.testing.assert_allclose(state.v, w, rtol=1e-8, atol=1e-11)


def with_weighted_rows(case, free, hinge=False):
    """The problem and its dense twin without the rows of weight zero, which the library drops."""
    if case.weight is not None:
        keep = case.weight > 0.0
        case = case._replace(X=case.X[keep], y=case.y[keep], weight=case.weight[keep])
    case = case._replace(free=free)
    if hinge:
        problem = problems.binary(case.X, case.y, loss="hinge", C=case.C, sample_weight=case.weight)
        return problem, Dense(case.X, case.y, case.lam, case.weight, hinge=True)
    return case.problem(), case.dense()


# ---- the registry


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_is_labelled_with_the_name_of_its_solver(solver):
    assert solve(CASES[EASY].problem(), solver, max_passes=2).trace.solver == solver


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "tron", "sdca", "eg", "cd-dual"])
@pytest.mark.parametrize("scale", [1e4, 1e6, 1e8])
def test_certificates_hold_on_separable_data_where_the_objective_vanishes(solver, scale):
    """The free offset must be balanced relative to what is left of the loss, not to one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    y = (X[:, 0] > 0.3) * 1.0
    X[:, 0] += np.where(y > 0, 0.3, -0.3)
    for C in (1.0, 1e6):
        problem = problems.binary(X * scale, y, C=C, fit_intercept=True)
        best = solve(problem, "newton", tol=1e-9, max_passes=1000).certificate
        run = solve(problem, solver, max_passes=200).certificate
        assert run.primal - best.primal <= run.gap * (1 + 1e-9) + 1e-12 * best.primal
        assert run.primal >= run.dual


@pytest.mark.parametrize("solver", ["cd-dual", "eg", "newton"])
def test_weights_that_span_24_orders_of_magnitude_leave_a_true_certificate(solver):
    rng = np.random.default_rng(0)
    y, weight = rng.random(12), 10.0 ** np.linspace(-12, 12, 12)
    problem = problems.binary(np.full((12, 1), 1e4), y, C=1000.0, fit_intercept=True, sample_weight=weight)
    certificate = solve(problem, solver).certificate
    optimum = solve(problem, "newton", tol=1e-12).certificate
    assert certificate.primal - optimum.primal <= certificate.gap + 1e-12 * optimum.primal
    assert certificate.primal >= certificate.dual


@pytest.mark.parametrize("sampling", ["gap", "uniform", "residual"])
def test_sdca_with_the_hinge_loss_survives_huge_features(sampling):
    X = np.random.default_rng(0).normal(size=(12, 2)) * 1e8
    problem = problems.binary(X, np.array([0.0, 1.0] * 6), C=1.0, loss="hinge")
    certificate = solve(problem, solvers.SDCA(sampling=sampling), max_passes=300, tol=1e-9).certificate
    assert certificate.primal >= certificate.dual and np.isfinite(certificate.gap)


def test_iis_passes_over_stored_zeros():
    X = sp.csr_matrix(np.abs(np.random.default_rng(0).normal(size=(20, 3))))
    X.data[:3] = 0.0
    assert solve(problems.binary(X, np.arange(20) % 2.0, C=0.1), "iis").certificate.converged
