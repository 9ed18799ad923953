"""Every solver on every small problem of labels or candidates: the optimum, and a true certificate."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from fenchel import problems, solvers
from fenchel.loop import solve
from fenchel.solvers import SOLVERS
from fenchel.trace import Status
from flat_matrix import (
    Case,
    accepts,
    assert_certified,
    base,
    cases,
    hinge_optimum,
    optimum,
    pairs,
    ragged,
    soft,
    written_out,
)

CASES = cases()
SLOW = {"gis", "iis", "scgis", "sm-s", "sm-g1", "sm-g2", "sm-q", "eg", "eg-batch"}
PIECEWISE = {"sag", "sag-nus", "cd-dual", "sdca", "cd-primal"}
HASTY = {"sgd"}  # its steps shrink: no promise at tol = 1e-6


def must_converge(solver, case):
    if solver in HASTY:
        return False
    if solver in SLOW:
        return case.C <= 1.0
    # Examples that cannot be told apart, and hardly a regulariser: steps along one example or weight crawl.
    return case.C <= 1.0 or solver not in PIECEWISE or not case.name.startswith(("joint-binary", "dense"))


def run(case, solver, *, best=None, **settings):
    """Solve, certify, and return the result and its distance from the optimum, relative to it."""
    best = optimum(case.name)[0] if best is None else best
    problem = case.problem()
    result = solve(problem, solver, **{"tol": 1e-6, "max_passes": 1e5} | settings)
    assert_certified(result, problem, case.dense(), best)
    return result, (result.certificate.primal - best) / max(best, 1e-300)


@pytest.mark.parametrize("solver, name", pairs(CASES))
def test_every_solver_reaches_the_optimum_or_says_how_far_it_is(solver, name):
    case = CASES[name]
    needed = must_converge(solver, case)
    result, excess = run(case, solver, max_passes=1e5 if needed else 50)
    if needed:
        assert result.status is Status.CONVERGED
    if result.status is Status.CONVERGED:
        assert result.certificate.gap <= 1e-6 * result.certificate.primal
        assert excess <= 1e-6


# ---- scikit-learn

COMPARED = [name for name, case in CASES.items() if not case.joint and case.y.ndim == 1 and case.labels > 2]
COMPARED.remove("unseen-label")


@pytest.mark.parametrize("name", COMPARED)
def test_the_optimum_is_that_of_scikit_learn(name):
    case = CASES[name]
    model = LogisticRegression(
        C=case.C, fit_intercept=case.free, solver="newton-cholesky", tol=1e-12, max_iter=10_000
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where rounding keeps it from 1e-12
        model.fit(case.X, case.y, sample_weight=case.weight)
    W, b = model.coef_.T, model.intercept_ - model.intercept_.mean()
    best, w, offset = optimum(name)
    assert best == pytest.approx(case.dense().primal(W.ravel(), b), rel=1e-7)
    result = solve(case.problem(), "newton", tol=1e-10)
    for found, found_b in ((w, offset), (result.w, result.b)):
        size = max(1.0, np.abs(W).max())
        np.testing.assert_allclose(found.reshape(W.shape), W, rtol=0.0, atol=1e-4 * size)
        np.testing.assert_allclose(found_b, b, rtol=0.0, atol=1e-4 * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("free", [False, True], ids=["", "free"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_two_labels_are_two_classes_with_twice_the_constant(kind, free):
    """W = (−w, w)/2 has the scores of w, and ½‖W‖² is ¼‖w‖²."""
    X, y = base(kind, 2)
    two = solve(problems.flat(X, y, C=3.0, fit_intercept=free), "newton", tol=1e-12)
    one = solve(problems.binary(X, y, C=6.0, fit_intercept=free), "newton", tol=1e-12)
    assert two.certificate.primal == pytest.approx(one.certificate.primal, rel=1e-11)
    W = two.w.reshape(-1, 2)
    np.testing.assert_allclose(W[:, 1] - W[:, 0], one.w, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(W.sum(axis=1), 0.0, atol=1e-6)
    if free:
        assert two.b[1] - two.b[0] == pytest.approx(one.b, abs=1e-6)


# ---- the hinge loss

PRECISION = {"cd-dual": 1e-6, "interior-point": 1e-6, "cutting-plane": 1e-4, "sdca": 1e-3, "eg": 1e-2}
PRECISION |= {"cd-outputs": 1e-4, "eg-gap": 1e-2, "eg-batch": 1e-2, "sgd": 1e-2}
HINGE = [
    name
    for name, case in CASES.items()
    if not case.free and (len(case.y) == case.n if case.joint else case.y.ndim == 1)
]


@pytest.mark.parametrize("solver, name", pairs(HINGE, "hinge"))
def test_the_hinge_loss_reaches_the_optimum_of_a_quadratic_program(solver, name):
    """The gap of Frank-Wolfe and subgradients shrinks like 1/passes: there the excess itself is asked for."""
    case, best = CASES[name], hinge_optimum(name)
    needed = case.C <= 1.0
    problem, tol = case.problem(loss="hinge"), PRECISION[solver]
    result = solve(problem, solver, tol=tol, max_passes=3e4 if needed else 200)
    assert_certified(result, problem, case.dense(hinge=True), best, accuracy=1e-8)
    if needed:
        assert result.certificate.primal <= best / (1.0 - tol)  # the gap is compared with P, not with P*
        assert result.status is Status.CONVERGED or solver in {"sdca", "sgd"}


@pytest.mark.parametrize("name", [name for name in COMPARED if name in HINGE and CASES[name].C <= 1.0])
def test_the_hinge_loss_is_the_machine_of_crammer_and_singer_in_liblinear(name):
    case = CASES[name]
    model = LinearSVC(
        C=case.C, multi_class="crammer_singer", fit_intercept=False, tol=1e-10, max_iter=1_000_000
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(case.X, case.y, sample_weight=case.weight)
    found = case.dense(hinge=True).primal(model.coef_.T.ravel())
    assert found == pytest.approx(hinge_optimum(name), rel=1e-7)
    result = solve(case.problem(loss="hinge"), "cd-dual", tol=1e-8, max_passes=1e5)
    assert result.certificate.primal == pytest.approx(found, rel=1e-7)


def test_the_hinge_loss_with_an_intercept_has_a_penalised_constant_feature():
    X, y = base("sparse")
    by_default = problems.flat(X, y, loss="hinge", fit_intercept=True)
    written = problems.flat(sp.hstack([X, np.ones((len(y), 1))]), y, loss="hinge")
    assert not by_default.free and by_default.dim == written.dim == 3 * (X.shape[1] + 1)
    first, second = (solve(p, "cd-dual", tol=1e-6).certificate for p in (by_default, written))
    assert first.primal == second.primal and first.dual == second.dual


# ---- one problem, written in two ways


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_crossed_features_written_out_give_the_same_trace(solver, loss, monkeypatch):
    """Both layouts do the same arithmetic on the same random numbers, in coordinates that both have."""
    monkeypatch.setattr("fenchel.coordinates.WORTH", 0.0)
    X, y = base("dense")
    crossed, (F, starts) = Case("", X, y, labels=3), written_out(X, 3)
    joint = crossed._replace(X=F, starts=starts)
    if not accepts(solver, joint, loss):
        pytest.skip(f"{solver} is not for candidates with the {loss} loss")
    method = solvers.CDDual(subproblem="newton") if solver == "cd-dual" else solver
    # With the hinge loss rounding decides ties, and runs part after a while.
    settings = {"tol": 0.0, "max_passes": 15 if loss == "log" else 5, "check_every": 1.0}
    first, second = (solve(case.problem(loss=loss), method, **settings) for case in (crossed, joint))
    for column in ("primal", "dual"):
        ours, theirs = first.trace.column(column), second.trace.column(column)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12, err_msg=column)
    np.testing.assert_allclose(first.w, second.w, rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("free", [False, True], ids=["", "free"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_soft_labels_equal_replicated_weighted_rows(solver, free):
    X, y = base("dense")[0], soft()
    case = Case("", X, y, free=free, labels=3)
    if not accepts(solver, case):
        pytest.skip(f"{solver} is not for the log loss")
    best = case.dense().optimum()[0]
    hard = Case(
        "", np.repeat(X, 3, axis=0), np.tile(np.arange(3), len(X)), free=free, weight=y.ravel(), labels=3
    )
    assert hard.dense().optimum()[0] == pytest.approx(best, rel=1e-12)
    assert hard.problem().n == len(X) < hard.problem(merge=False).n
    for problem in (hard.problem(), hard.problem(merge=False)):
        result = solve(problem, solver, tol=1e-6, max_passes=5000)
        assert_certified(result, problem, case.dense(), best)
        if solver not in HASTY:
            assert result.status is Status.CONVERGED
            assert result.certificate.primal == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("layout", ["crossed", "joint"])
def test_merging_examples_changes_nothing(layout, loss):
    if layout == "crossed":
        X, y = base("sparse")
        again = [0, 1, 2, 0, 0, 5]
        other = (y[again] + [0, 0, 0, 1, 1, 2]) % 3
        case = Case("", sp.vstack([X, X[again]]).tocsr(), np.concatenate([y, other]), labels=3)
    else:
        F, y, starts = ragged("binary", 1)
        case = Case("", sp.vstack([F, F[:21]]).tocsr(), np.concatenate([y, y[:6]]), 1.0)
        case = case._replace(starts=np.concatenate([starts, starts[-1] + starts[1:7]]))
    case = case._replace(weight=1.0 + np.arange(case.n) % 3)
    solver, dense = "newton" if loss == "log" else "cd-dual", case.dense(hinge=loss == "hinge")
    best = dense.optimum()[0] if loss == "log" else dense.hinge_optimum()[0]
    sizes = set()
    for merge in (True, False):
        problem = case.problem(loss=loss, merge=merge)
        result = solve(problem, solver, tol=1e-8, max_passes=1e5)
        assert_certified(result, problem, dense, best, accuracy=1e-8)
        assert result.certificate.primal == pytest.approx(best, rel=2e-8)
        sizes.add(problem.n)
    assert len(sizes) == 2 and max(sizes) == case.n


# ---- options

OPTIONS = [
    *[("cd-dual", {"subproblem": s, "xi": xi})
      for s in ("newton", "bisection", "line-search", "multiplier") for xi in (0.1, 0.5)],
    *[("cd-primal", {"line_search": s, "order": o}) for s in ("fast", "plain") for o in ("random", "cyclic")],
    *[("scgis", {"bound": b, "order": o}) for b in ("linear", "log") for o in ("random", "cyclic")],
    *[("sdca", {"sampling": s, "step_size": t})
      for s in ("gap", "uniform", "importance", "gap-importance", "max", "residual")
      for t in ("newton", "one-newton", "fixed")],
    ("sdca", {"non_uniform": 0.5, "precision": 1e-8, "first": 0.1}),
    *[("eg", {"order": o, "batch": b}) for o in ("random", "cyclic", "gap") for b in (False, True)],
    *[("eg", {"eta": "search", "batch": b}) for b in (False, True)],
    *[("eg", {"anneal": 10.0, "batch": b}) for b in (False, True)],
    ("eg", {"eta": 0.05}),
    *[("sag", {"sampling": s, "line_search": t})
      for s in ("uniform", "lipschitz") for t in ("skip", "every")],
    ("lbfgs", {"memory": 2}),
    ("tron", {"accuracy": 1e-3}),
]  # fmt: skip


@pytest.mark.parametrize("name", ["dense-C=1", "soft-free", "joint-binary-C=1"])
@pytest.mark.parametrize(
    "solver, options", OPTIONS, ids=[f"{s}-" + "-".join(map(str, o.values())) for s, o in OPTIONS]
)
def test_every_option_reaches_the_optimum(solver, options, name):
    if options.get("subproblem") == "multiplier" and CASES[name].joint:
        with pytest.raises(ValueError, match="'multiplier' is for labels crossed with attributes"):
            solve(CASES[name].problem(), solvers.make(solver, **options))
        return
    hopeless = solver == "sdca" and options.get("sampling") == "max" and options.get("step_size") != "newton"
    result, excess = run(CASES[name], solvers.make(solver, **options), max_passes=100 if hopeless else 2e4)
    if not hopeless:
        assert result.status is Status.CONVERGED
        assert excess <= 1e-6
