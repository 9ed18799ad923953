"""An L1 term: OWL-QN reaches the optimum of other tools, and its certificate brackets it."""

from math import inf, isnan

import numpy as np
import pytest
import scipy.optimize
from sklearn.linear_model import LogisticRegression

from fenchel import Start, problems, solvers
from fenchel.constants import SPARSE, penalties
from fenchel.loop import solve
from fenchel.regularizers import L2, ElasticNet, regularizer
from fenchel.solvers import SOLVERS
from fenchel.trace import Status
from matrix import base, separable, unscaled

RNG = np.random.default_rng(5)
X3 = RNG.normal(size=(80, 12)) * (RNG.uniform(size=(80, 12)) < 0.5)
Y3 = np.argmax(X3 @ RNG.normal(size=(12, 3)) + RNG.gumbel(size=(80, 3)), axis=1)

# Without λ the bound is as far off as max|u| is above λ₁: an error of first order, not of second.
TOL = {0.1: 1e-12, 0.3: 1e-12, 0.5: 1e-12, 1.0: 1e-9}


def binary(kind="dense", **options):
    return problems.binary(*base(kind), **options)


def joint(**constants):
    """The multinomial model written candidate by candidate."""
    F = np.vstack([np.kron(x[None], np.eye(3)) for x in X3])
    return problems.joint(F, Y3, np.arange(0, 3 * len(X3) + 1, 3), **constants)


def reference(X, y, C, l1_ratio, intercept=False):
    """scikit-learn's optimum, to many digits."""
    settings = dict(C=C, l1_ratio=l1_ratio, solver="saga", tol=1e-12, max_iter=200_000, random_state=0)
    return LogisticRegression(fit_intercept=intercept, **settings).fit(X, y)


def solved(problem, tol=1e-9, **options):
    """The result, after a look at each row of its trace."""
    result = solve(problem, options.pop("solver", "lbfgs"), tol=tol, max_passes=1e5, **options)
    best = result.certificate.primal
    for row in result.trace:
        assert row.gap >= 0.0
        assert row.dual <= best * (1.0 + 1e-12)
    return result


# ---- the optimum


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_two_classes_like_scikit_learn(kind, l1_ratio, intercept):
    X, y = base(kind)
    C = 20.0 if kind == "dense" else 1.0
    result = solved(binary(kind, C=C, l1_ratio=l1_ratio, fit_intercept=intercept), tol=TOL[l1_ratio])
    model = reference(X, y, C, l1_ratio, intercept)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.w, model.coef_[0], atol=2e-4)
    np.testing.assert_array_equal(result.w == 0.0, np.abs(model.coef_[0]) < 1e-7)
    assert (result.w != 0.0).any() and (kind == "dense" or (result.w == 0.0).any())


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
def test_several_classes_like_scikit_learn(l1_ratio, intercept):
    problem = problems.flat(X3, Y3, C=0.5, l1_ratio=l1_ratio, fit_intercept=intercept)
    result = solved(problem, tol=TOL[l1_ratio])
    model = reference(X3, Y3, 0.5, l1_ratio, intercept)
    assert result.status is Status.CONVERGED
    theirs = problem.value_at(model.coef_.T.ravel())[0]
    assert abs(theirs - result.certificate.primal) <= 1e-8 * theirs
    if l1_ratio < 1.0:
        np.testing.assert_allclose(result.w.reshape(12, 3), model.coef_.T, atol=2e-4)


def test_candidates_have_the_optimum_of_labels():
    flat = solved(problems.flat(X3, Y3, c1=1.0, c2=0.1), tol=1e-12)
    other = solved(joint(c1=1.0, c2=0.1), tol=1e-12)
    assert other.certificate.primal == pytest.approx(flat.certificate.primal, rel=1e-11)
    np.testing.assert_allclose(other.w, flat.w, atol=1e-5)


@pytest.mark.parametrize("lam", [0.0, 1e-6, 1e-2, 10.0])
@pytest.mark.parametrize("l1", [1e-5, 1e-3, 1e-1])
def test_extreme_constants(lam, l1):
    for data in (base("dense"), base("sparse"), separable(), unscaled()):
        for free in (False, True):
            result = solved(problems.binary(*data, lam=lam, l1=l1, fit_intercept=free), tol=1e-4)
            assert result.status is Status.CONVERGED


@pytest.mark.parametrize("lam", [0.0, 0.1])
def test_a_huge_constant_leaves_no_weight_and_no_step(lam):
    result = solved(binary(l1=1e3, lam=lam))
    assert result.status is Status.CONVERGED and result.certificate.passes == 0.0
    assert not result.w.any() and result.certificate.gap == 0.0 and result.certificate.gradient_norm == 0.0


def test_the_least_constant_that_leaves_no_weight():
    largest = np.abs(binary(l1=1.0).evaluate(np.zeros(10)).smooth).max()
    assert not solved(binary(l1=1.001 * largest)).w.any()
    assert np.count_nonzero(solved(binary(l1=0.99 * largest)).w) == 1


@pytest.mark.parametrize("intercept", [False, True])
def test_the_last_digit_of_the_data_decides_nothing(intercept):
    """Where P is flat to rounding the slope goes on: each of these had one chance in five to stall."""
    X, y = base("sparse")
    for seed in range(30):
        rng = np.random.default_rng(seed)
        order, near = rng.permutation(len(y)), X.copy()
        near.data = near.data * (1.0 + 1e-15 * rng.normal(size=near.data.size))
        problem = problems.binary(near[order], y[order], C=1.0, l1_ratio=1.0, fit_intercept=intercept)
        assert solved(problem, tol=TOL[1.0]).status is Status.CONVERGED


# ---- the certificate


@pytest.mark.parametrize("lam", [0.0, 1e-5, 0.02])
@pytest.mark.parametrize("free", [False, True])
def test_bounds_hold_everywhere(lam, free):
    problem = binary("sparse", lam=lam, l1=5e-3, fit_intercept=free)
    optimum = solved(problem, tol=1e-10).certificate.primal
    rng = np.random.default_rng(0)
    for scale in (0.0, 0.01, 1.0, 30.0):
        w = scale * rng.normal(size=problem.dim) * (rng.uniform(size=problem.dim) < 0.5)
        point = problem.primal_point(w)
        assert point.dual <= optimum * (1.0 + 1e-9) and point.primal >= optimum * (1.0 - 1e-9)
        assert point.gap >= 0.0
        assert point.primal - point.gap == pytest.approx(point.dual, abs=1e-12 * point.primal)


def test_the_gap_is_that_of_the_marginals():
    """g(w) + g*(u) − ⟨w, u⟩ is P(w) − D(μ), by entropies, where the whole step to μ is the better bound."""
    problem = binary(lam=0.5, l1=1e-3)
    w = np.random.default_rng(0).normal(size=problem.dim)
    evaluation = problem.evaluate(w)
    dual = problem.dual(problem.marginals_at(evaluation))
    assert problem.point_at(evaluation).gap == pytest.approx(evaluation.value - dual, rel=1e-10)


def test_without_the_term_the_gap_is_that_of_the_gradient():
    rng = np.random.default_rng(0)
    w, gradient = rng.normal(size=(2, 30))
    plain = L2(0.3).gap(w, gradient, 1.0)
    assert ElasticNet(0.3, 1e-300).gap(w, gradient, inf) == pytest.approx(plain, rel=1e-12)
    assert isnan(L2(0.0).gap(w, gradient, 1.0))


def test_the_conjugate_is_the_largest_difference():
    g = ElasticNet(0.7, 0.4)
    for u in (-3.0, -0.4, -0.1, 0.0, 0.3, 0.41, 2.0):
        w = g.weights(np.array([u]))
        found = scipy.optimize.minimize_scalar(
            lambda t, u=u: g.value(np.array([t])) - t * u, bounds=(-20, 20), options={"xatol": 1e-10}
        )
        assert g.conjugate(w) == pytest.approx(-found.fun, abs=1e-9)
        assert w[0] * u - g.value(w) == pytest.approx(g.conjugate(w), abs=1e-14)


def test_the_subgradient_is_the_one_of_least_norm():
    rng = np.random.default_rng(1)
    w = rng.normal(size=200) * (rng.uniform(size=200) < 0.5)
    gradient, l1 = rng.normal(size=200), 0.6
    found = ElasticNet(0.1, l1).subgradient(w, gradient)
    low = gradient + l1 * np.where(w > 0.0, 1.0, -1.0)
    high = gradient + l1 * np.where(w < 0.0, -1.0, 1.0)
    np.testing.assert_allclose(found, np.clip(0.0, low, high), atol=1e-15)


# ---- the solver


def test_the_bits_do_not_depend_on_the_threads():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 300_000)), np.arange(30) % 2
    for constants in ({"lam": 0.1}, {"lam": 1e-3, "l1": 1e-2}):
        runs = [
            solve(problems.binary(X, y, threads=k, **constants), "lbfgs", tol=0.0, max_passes=15)
            for k in (1, 2, 3)
        ]
        for run in runs[1:]:
            np.testing.assert_array_equal(run.w, runs[0].w)
            assert run.trace.column("gap") == runs[0].trace.column("gap")


def test_a_warm_start_goes_on():
    problem = problems.flat(X3, Y3, c1=1.0, c2=0.1)
    first = solved(problem, tol=1e-8)
    again = solved(problem, tol=1e-8, start=Start(first.w, first.b))
    assert again.certificate.passes == 0.0


def test_auto_goes_by_the_dual_and_a_path_keeps_the_term():
    problem = binary(l1=0.01, lam=0.1)
    assert solved(problem, tol=1e-4, solver="auto").trace.solver == "cd-dual"
    assert solved(binary(l1=0.01, lam=0.0), tol=1e-4, solver="auto").trace.solver == "prox-newton"
    other = problem.with_penalty(0.5)
    assert (other.lam, other.l1) == (0.5, 0.01) and "λ₁ = 0.01" in str(other)


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name not in {"lbfgs", "prox-newton"}])
def test_other_solvers_refuse(solver):
    with pytest.raises(ValueError, match=r"its L1 term has corners; use lbfgs, prox-newton$"):
        solve(problems.flat(X3, Y3, c1=1.0), solvers.make(solver))


def test_the_hinge_loss_refuses():
    with pytest.raises(ValueError, match="the hinge loss takes no L1 term; use the log loss"):
        solve(binary(c1=1.0, loss="hinge"))


# ---- everybody's constants

OBJECTIVES = {
    "c1": (dict(c1=2.0, c2=0.2), lambda loss, l1, l2: loss.sum() + 2.0 * l1 + 0.2 * l2),
    "rho1": (dict(rho1=1.5, rho2=0.2), lambda loss, l1, l2: loss.sum() + 1.5 * l1 + 0.1 * l2),
    "l1": (dict(l1=0.03, lam=0.2), lambda loss, l1, l2: loss.mean() + 0.03 * l1 + 0.1 * l2),
    "l1_ratio": (dict(l1_ratio=0.3, C=2.0), lambda loss, l1, l2: 2.0 * loss.sum() + 0.3 * l1 + 0.35 * l2),
}


def test_every_constant_has_a_test():
    assert OBJECTIVES.keys() == SPARSE.keys()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_our_objective_is_a_multiple_of_theirs(name):
    constants, theirs = OBJECTIVES[name]
    X, y = base("dense")
    problem = binary(**constants)
    ratios = []
    for w in np.random.default_rng(0).normal(size=(4, 10)):
        loss = np.logaddexp(0.0, -(2.0 * y - 1.0) * (X @ w))
        ratios.append(problem.value_at(w)[0] / theirs(loss, np.abs(w).sum(), w @ w))
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-12)


def test_constants_that_may_be_left_out():
    assert penalties(10.0, c1=2.0) == (0.0, 0.2)
    assert penalties(10.0, l1=0.3) == (0.0, 0.3)
    assert penalties(10.0, l1_ratio=0.25) == pytest.approx((0.075, 0.025))
    assert penalties(10.0, l1_ratio=0.25, alpha=2.0) == (1.5, 0.5)
    assert penalties(10.0, l1_ratio=1.0, C=inf) == (0.0, 0.0)
    assert penalties(10.0, C=1.0) == (0.1, 0.0)
    assert regularizer(10.0, {}) == L2(0.1) == regularizer(10.0, {"C": 1.0, "l1_ratio": 0.0})
    assert regularizer(10.0, {"c1": 1.0}) == ElasticNet(0.0, 0.1)


@pytest.mark.parametrize(
    "constants, message",
    [
        (dict(c1=-1.0), "c1=-1 must be a finite number, at least 0"),
        (dict(c1=inf), "c1=inf must be a finite number"),
        (dict(l1_ratio=1.5), "l1_ratio=1.5 must be between 0 and 1"),
        (dict(l1="much"), "l1='much' is not a number"),
        (dict(c1=1.0, C=1.0), "c1 goes with c2, not with C"),
        (dict(l1_ratio=0.5, lam=1.0), "l1_ratio goes with C or alpha, not with lam"),
        (dict(c1=1.0, l1=1.0), r"at most one constant of ‖w‖₁ can be given, got \['c1', 'l1'\]"),
        (dict(l1_ratio=0.5, C=1.0, alpha=1.0), "exactly one constant is needed"),
        (dict(c1=1.0, c2=-1.0), "c2=-1 must be a finite number"),
    ],
)
def test_errors_name_the_offender(constants, message):
    with pytest.raises(ValueError, match=message):
        penalties(10.0, **constants)
