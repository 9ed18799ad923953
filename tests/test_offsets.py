"""Free offsets: weights β of a constant feature σ without a penalty, b = σβ."""

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits

from fenchel import Start, curvature, problems, solve, solvers
from fenchel.certificates import share_to_mix
from fenchel.points import LITTLE
from fenchel.problem import Problem
from fenchel.trace import Status
from layouts import made

RNG = np.random.default_rng
FREE = ("binary-free", "crossed-2-free", "crossed-5-free")
DUAL = ("cd-dual", "sdca", "eg", "eg-batch", "eg-gap")


def far(labels, n=30):
    """Columns in a narrow band far from zero, and columns that are not."""
    rng = RNG(0)
    X = rng.normal(size=(n, 4)) + np.array([1e9, 0.0, -3e5, 0.0])
    y = np.concatenate([np.arange(labels), rng.integers(labels, size=n - labels)])
    if labels == 2:
        return X, problems.binary(X, y, lam=0.5, fit_intercept=True)
    return X, problems.flat(X, y, labels=labels, lam=0.5, fit_intercept=True)


# ---- weights and offset, joined and split


@pytest.mark.parametrize("labels", [2, 5])
def test_far_columns_are_joined_and_split_again(labels):
    X, problem = far(labels)
    np.testing.assert_array_equal(problem.design.shift != 0.0, [True, False, True, False])
    W = RNG(1).normal(size=(4, problem.design.outputs))
    b = RNG(2).normal(size=problem.design.outputs) - X.mean(axis=0) @ W
    v = problem.design.join(W.ravel(), b)
    w, found = problem.design.split(v)
    np.testing.assert_array_equal(w, W.ravel())
    rounding = 4.0 * np.spacing(1e9 * np.abs(W[0]).max())
    np.testing.assert_allclose(found, b if labels == 2 else b - b.mean(), rtol=0.0, atol=rounding)
    # The scores are those of the features as given, in as many digits as b has.
    exact = X.astype(np.longdouble) @ W + b
    exact = exact[:, 0] if labels == 2 else exact
    np.testing.assert_allclose(problem.scores(v), exact.astype(float), rtol=0.0, atol=rounding)


@pytest.mark.parametrize("labels", [2, 5])
def test_the_gradient_at_far_columns_against_central_differences(labels):
    _, problem = far(labels)
    v, h = RNG(3).normal(size=problem.dim), 1e-5
    slopes = [
        (problem.evaluate(v + h * e).value - problem.evaluate(v - h * e).value) / (2 * h)
        for e in np.eye(problem.dim)
    ]
    np.testing.assert_allclose(problem.evaluate(v).gradient, slopes, atol=1e-8)


@pytest.mark.parametrize("name", FREE)
def test_without_weights_the_best_offset_is_known(name):
    problem = made(name)
    at_origin = problem.evaluate(problem.origin)
    assert at_origin.value == pytest.approx(problem.value_at_zero, rel=1e-14)
    np.testing.assert_allclose(at_origin.gradient[problem.penalised :], 0.0, atol=1e-15)
    w, b = problem.design.split(problem.origin)
    assert not w.any()
    np.testing.assert_allclose(b, problem.value_at(w)[1], atol=1e-13)
    np.testing.assert_array_equal(problem.weights_at(None), problem.origin)
    np.testing.assert_allclose(problem.weights_at(Start(w, b)), problem.origin, atol=1e-15)


# ---- certificates


@pytest.mark.parametrize("name", FREE)
def test_the_certificate_is_of_the_best_offset_wherever_the_solver_is(name):
    problem = made(name)
    w, shape = (
        RNG(4).normal(size=problem.penalised),
        np.shape(problem.value_at(np.zeros(problem.penalised))[1]),
    )
    best, *others = (
        problem.primal_point(problem.design.join(w, c * RNG(5).normal(size=shape))) for c in (0, 1, 9)
    )
    value, b = problem.value_at(w)
    exact = problem.estimate(problem.evaluate(problem.design.join(w, b))) * value
    for point in (best, *others):  # what is left off balance is paid for, and is little beside the gap
        assert -1e-14 * value <= point.primal - value <= LITTLE * exact
        assert exact * (1.0 - 1e-9) <= point.gap <= (1.0 + 1.5 * LITTLE) * exact


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "tron", "gis", "cd-primal"])
def test_a_batch_solver_is_certified_at_each_step_only_without_a_free_offset(solver):
    X, y = np.abs(RNG(6).normal(size=(60, 8))), RNG(7).integers(0, 2, 60)
    bound, free = (
        solve(problems.binary(X, y, C=10.0, fit_intercept=free), solver, tol=1e-6, max_passes=1e4)
        for free in (False, True)
    )
    assert bound.status is free.status is Status.CONVERGED
    assert free.trace[-1].gap <= 1e-6 * free.trace[-1].primal  # proven, not guessed
    passes = np.array(free.trace.column("passes"))
    if solver in {"lbfgs", "gis"}:
        assert len(bound.trace) >= 0.4 * bound.certificate.passes and len(free.trace) < 0.4 * passes[-1]


@pytest.mark.parametrize("far", [30.0, 1000.0])
@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize("solver", ["newton", "tron", "lbfgs", "cd-primal", "sag", "cd-dual", "sdca", "eg"])
def test_a_warm_start_far_off_in_the_offset_alone_recovers(solver, name, far):
    """All marginals are 0 or 1 to rounding there, and P has no curvature in β."""
    problem = made(name)
    b = far * np.linspace(-1.0, 1.0, problem.design.outputs) if problem.design.matrix else far
    result = solve(problem, solver, tol=1e-6, start=Start(np.zeros(problem.penalised), b), max_passes=2000)
    best = solve(problem, "newton", tol=1e-13).certificate.primal
    assert result.status is Status.CONVERGED
    assert result.certificate.primal <= best * (1.0 + 1e-6)


# ---- solvers of the dual


@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize(
    "solver", [*map(solvers.make, DUAL), solvers.EG(anneal=10.0)], ids=[*DUAL, "eg-anneal"]
)
def test_recentring_keeps_beta_at_its_centre_and_what_the_residuals_add(solver, name):
    """β = β₀ + σ/λ Σ m_i (y_i − μ_i), and w = w(μ), after every pass; the last but one was not a renewal."""
    problem = made(name)
    state = solver.init(problem, None)
    np.testing.assert_array_equal(state.centre, problem.origin[problem.penalised :])
    moved = 0
    for _ in range(13):
        before = np.array(state.centre)
        solver.step(problem, state)
        now = problem.with_penalty(getattr(state, "lam", problem.lam), problem.design.constant)  # annealing
        expected = now.proximal_weights(state.mu, state.centre)
        np.testing.assert_allclose(state.v, expected, rtol=1e-10, atol=1e-11)
        moved += not np.array_equal(before, state.centre)
    assert state.epochs >= 13  # cd-dual makes several rounds in a step where few examples are due
    assert moved >= 3


@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize("solver", DUAL)
def test_the_centre_ends_at_the_best_offset(solver, name):
    problem = made(name)
    method = solvers.make(solver)
    state = method.init(problem, None)
    for _ in range(300):
        method.step(problem, state)
    best = solve(problem, "newton", tol=1e-13)
    _, b = problem.design.split(np.append(best.w, state.centre))
    np.testing.assert_allclose(b, best.b, atol=1e-5)


@cache
def digits(classes):
    """Pixels from 0 to 1, many of them mostly on: far from orthogonal to a constant."""
    X, y = load_digits(return_X_y=True)
    return X / 16.0, (y if classes == 10 else y % 2)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("classes", [2, 10])
def test_an_intercept_at_most_doubles_the_passes_of_cd_dual(classes, C):
    X, y = digits(classes)
    make = problems.binary if classes == 2 else problems.flat
    bound, free = (
        solve(make(X, y, C=C, fit_intercept=free), "cd-dual", tol=1e-4, max_passes=2000, check_every=1)
        for free in (False, True)
    )
    assert bound.status is free.status is Status.CONVERGED
    assert free.certificate.passes <= 2.0 * bound.certificate.passes


# ---- the constant feature


@pytest.mark.parametrize("factor", [0.1, 10.0])
@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize("solver", ["lbfgs", "newton", "tron", "cd-primal", "sag", *DUAL[:3]])
def test_the_size_of_the_constant_feature_changes_nothing_of_the_optimum(monkeypatch, solver, name, factor):
    best, usual = solve(made(name), "newton", tol=1e-13), curvature.constant
    monkeypatch.setattr(curvature, "constant", lambda *arguments: factor * usual(*arguments))
    problem = made(name)
    assert problem.design.constant == pytest.approx(factor * usual_constant(name, usual))
    result = solve(problem, solver, tol=1e-9, max_passes=1e5)
    assert result.status is Status.CONVERGED
    assert result.certificate.primal == pytest.approx(best.certificate.primal, rel=1e-9)
    np.testing.assert_allclose(result.w, best.w, atol=1e-4)
    np.testing.assert_allclose(result.b, best.b, atol=1e-4)


def usual_constant(name, usual):
    problem = made(name)
    shares = problem.structure.shares(problem.examples)
    return usual(float(problem.examples.mass @ problem.design.norms), shares, problem.lam)


# ---- the best offset


def imbalance(mass, y, scores):
    """Σ m_i (y_i − μ_i) and Σ m_i |y_i − μ_i| of each label, y the true ones; no digits cancel in a term."""
    scores = scores.astype(np.longdouble)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    mu = e / e.sum(axis=1, keepdims=True)
    rows = np.arange(len(y))
    e[rows, y] = 0.0
    residual = -mu
    residual[rows, y] = (e.sum(axis=1)) / (e.sum(axis=1) + np.exp(scores[rows, y] - scores.max(axis=1)))
    return mass @ residual, mass @ np.abs(residual)


@pytest.mark.parametrize("margin", [0.0, 3.0, 20.0, 60.0])
@pytest.mark.parametrize("labels", [2, 3, 10, 40])
def test_offsets_of_labels_balance_relative_to_what_is_left(labels, margin):
    """Where all examples are all but certain too, and residuals of 1e-25 are to cancel."""
    rng = RNG(8)
    y = np.concatenate([np.arange(labels), rng.integers(labels, size=500)])
    problem = problems.flat(np.zeros((len(y), 1)), y, labels=labels, fit_intercept=True, merge=False)
    scores = rng.normal(size=(len(y), labels)) + 3.0 * rng.normal(size=labels)
    scores[np.arange(len(y)), y] += margin
    b = problem.structure.offset(problem.blocks, scores, problem.each_part)
    left, total = imbalance(problem.examples.mass, y, scores + b)
    assert (np.abs(left) <= 1e-13 * total).all()
    assert abs(b.mean()) <= 1e-14 * max(1.0, np.abs(b).max())


@pytest.mark.parametrize("margin", [0.0, 3.0, 20.0, 60.0])
def test_the_offset_of_two_classes_balances_relative_to_what_is_left(margin):
    rng = RNG(9)
    y = rng.integers(2, size=500)
    problem = problems.binary(np.zeros((500, 1)), y, fit_intercept=True)
    scores = rng.normal(size=500) + 5.0 + margin * (2.0 * y - 1.0)
    b = problem.structure.offset(problem.blocks, scores, problem.each_part)
    left, total = imbalance(problem.examples.mass, y, np.column_stack([np.zeros(500), scores + b]))
    assert (np.abs(left) <= 1e-13 * total).all()


# ---- what is left off balance


@pytest.mark.parametrize("labels", [2, 3, 10])
def test_the_share_to_mix_leaves_room_for_a_distribution_and_no_less_does(labels):
    rng = RNG(10)
    shares = rng.dirichlet(np.ones(labels))
    excess = 1e-3 * rng.normal(size=labels)
    excess -= excess.mean()

    def mixed_with(share):
        return shares - excess * (1.0 - share) / share

    share = share_to_mix(excess, shares)
    assert mixed_with(share).min() == pytest.approx(0.0, abs=1e-12)
    assert mixed_with(share).sum() == pytest.approx(1.0)
    assert mixed_with(0.99 * share).min() < 0.0
    assert share_to_mix(np.zeros(labels), shares) == 0.0


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("labels", [2, 4])
def test_bounds_hold_where_offsets_are_left_off_balance(labels, C, monkeypatch):
    """A point is no better than its certificate says, however far its offset is from the best one."""
    rng = RNG(11)
    X = rng.normal(size=(80, 3)) * [1.0, 30.0, 0.01] + [5.0, 0.0, 0.0]
    y = np.concatenate([np.arange(labels), rng.integers(labels, size=80 - labels)])
    problem = (problems.binary if labels == 2 else problems.flat)(X, y, C=C, fit_intercept=True)
    best = solve(problem, "newton", tol=1e-10)
    optimum = best.certificate.primal
    monkeypatch.setattr(Problem, "_balance", lambda self, v, scores=None, **_: (v, scores))
    for far in (0.0, 1e-9, 1e-6, 1e-3, 0.1, 10.0):
        v = problem.weights_at(Start(best.w, best.b))
        v[problem.penalised :] += far * rng.normal(size=problem.dim - problem.penalised)
        point = problem.point_at(problem.evaluate(v))
        assert point.dual <= optimum * (1.0 + 1e-12)
        assert point.primal >= optimum * (1.0 - 1e-9)
        assert far > 1e-9 or point.gap <= 1e-2 * point.primal
