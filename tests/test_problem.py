"""P, D, their derivatives and certificates: against formulas, central differences and each other."""

import numpy as np
import pytest
import scipy.sparse as sp

from brute import Dense
from fenchel import losses, problems
from fenchel.certificates import joined, share_to_mix
from fenchel.points import LITTLE, NO_WEIGHTS
from matrix import Case, base

RNG = np.random.default_rng
WEIGHTS = RNG(7).integers(1, 5, size=48).astype(float)


def setting(kind, free=False, weighted=False, soft=False):
    X, y = base(kind)
    y = RNG(1).uniform(size=len(y)) if soft else y
    return Case("", X, y, 2.0, free, WEIGHTS if weighted else None)


SETTINGS = {
    f"{kind}{'-free' * free}{'-weights' * weighted}{'-soft' * soft}": (kind, free, weighted, soft)
    for kind in ("dense", "sparse")
    for free in (False, True)
    for weighted in (False, True)
    for soft in (False, True)
}


@pytest.fixture(params=SETTINGS)
def case(request):
    return setting(*SETTINGS[request.param])


def differences(function, w, step=1e-5):
    """Central differences of a function of w, entry by entry."""
    return np.array([(function(w + step * e) - function(w - step * e)) / (2 * step) for e in np.eye(len(w))])


def feasible(case, mu):
    """μ moved to where the free offset's constraint holds."""
    return case.problem().tilt(mu) if case.free else mu


def mixed(case, mu):
    """μ with as much of one distribution as makes it feasible where the offset is free."""
    if not case.free:
        return mu
    dense = case.dense()
    y = np.column_stack([dense.y, 1.0 - dense.y])
    excess, shares = dense.mass @ (mu - y), dense.mass @ y
    share = max(share_to_mix(excess, shares), 1e-16)
    return (1.0 - share) * mu + share * (shares - excess * (1.0 - share) / share)


def random_mu(n, seed):
    p = RNG(seed).uniform(size=n)
    return np.column_stack([p, 1.0 - p])


def test_value_and_offset_against_the_formula(case):
    problem, dense = case.problem(), case.dense()
    w = RNG(2).normal(size=problem.penalised)
    value, b = problem.value_at(w)
    assert value == pytest.approx(dense.primal(w, b), rel=1e-13)
    given = 0.7 * case.free
    assert problem.value_at(w, given) == (pytest.approx(dense.primal(w, given), rel=1e-13), given)
    if case.free:
        assert value < min(dense.primal(w, b + 1e-3), dense.primal(w, b - 1e-3))
        assert abs(dense.gradient(w, b)[1]) <= 1e-14
    else:
        assert b == 0.0


def test_gradient_against_the_formula_and_central_differences(case):
    problem, dense = case.problem(), case.dense()
    v = RNG(3).normal(size=problem.dim)
    w, b = problem.design.split(v)
    now = problem.evaluate(v)
    assert now.value == pytest.approx(dense.primal(w, b), rel=1e-13)
    gradient, slope = dense.gradient(w, b)
    expected = np.append(gradient, [problem.design.constant * slope] * case.free)
    np.testing.assert_allclose(now.gradient, expected, atol=1e-14)
    np.testing.assert_allclose(now.gradient, differences(lambda u: problem.evaluate(u).value, v), atol=1e-9)
    assert now.gradient_norm == pytest.approx(np.linalg.norm(now.gradient))


def test_gradient_at_the_best_offset_is_that_of_the_least_value_over_offsets(case):
    problem = case.problem()
    w = RNG(3).normal(size=problem.penalised)
    gradient = problem.evaluate(problem.design.join(w, problem.value_at(w)[1])).gradient
    np.testing.assert_allclose(gradient[problem.penalised :], 0.0, atol=1e-14)
    slopes = differences(lambda u: problem.value_at(u)[0], w)
    np.testing.assert_allclose(gradient[: problem.penalised], slopes, atol=1e-9)


@pytest.mark.parametrize("scale", [1e3, 1e5])
def test_gradient_at_scores_of_a_thousand(scale):
    """Every quantity stays finite, and the gradient is that of a sum of flat pieces."""
    case = setting("dense")
    problem = case.problem()
    w = scale * RNG(4).normal(size=problem.dim)
    assert np.abs(problem.design.scores(w)).max() >= 0.3 * scale
    now = problem.evaluate(w)
    slopes = differences(lambda u: problem.value_at(u)[0], w, step=1e-4)
    np.testing.assert_allclose(now.gradient, slopes, rtol=1e-4, atol=1e-12 * now.value / 1e-4)


def test_hessian_product_against_differences_of_the_gradient(case):
    problem = case.problem()
    w, direction = RNG(5).normal(size=(2, problem.dim))
    step = 1e-5
    ahead, behind = (problem.evaluate(w + sign * step * direction).gradient for sign in (1.0, -1.0))
    product = problem.hessian_product(problem.evaluate(w), direction)
    np.testing.assert_allclose(product, (ahead - behind) / (2 * step), atol=1e-8)


def test_quadratic_equals_the_dense_formula_and_the_hessian_product(case):
    problem, dense = case.problem(), case.dense()
    now = problem.evaluate(RNG(6).normal(size=problem.dim))
    mu = problem.marginals_at(now)
    weights = problem.examples.mass * mu[:, 0] * mu[:, 1]
    X = with_constant(problem, dense)
    penalty = np.diag([case.lam] * problem.penalised + [0.0] * case.free)
    matrix = problem.quadratic(weights)
    np.testing.assert_allclose(matrix, (X.T * weights) @ X + penalty, atol=1e-14)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-16)
    np.testing.assert_array_equal(problem.hessian(now), matrix)
    direction = RNG(7).normal(size=problem.dim)
    np.testing.assert_allclose(matrix @ direction, problem.hessian_product(now, direction), atol=1e-13)


def with_constant(problem, dense):
    """The features as solvers see them: with the constant one of a free offset."""
    return np.hstack([dense.X, np.full((48, 1), problem.design.constant)]) if problem.free else dense.X


def test_empirical_features(case):
    problem, dense = case.problem(), case.dense()
    expected = with_constant(problem, dense).T @ (dense.mass * dense.y)
    np.testing.assert_allclose(problem.empirical, expected, atol=1e-15)


# ---- the dual


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_mu_and_dual_against_the_formula(case, seed):
    problem, dense, mu = case.problem(), case.dense(), random_mu(48, seed)
    np.testing.assert_allclose(problem.weights_of(mu), dense.weights(mu), atol=1e-13)
    assert problem.dual(mu) == pytest.approx(dense.dual(mu), rel=1e-12)
    assert problem.dual(mu, problem.weights_of(mu)) == problem.dual(mu)


@pytest.mark.parametrize("seed", range(3))
def test_weak_duality_for_random_points(case, seed):
    """P(w, b) ≥ D(μ) for any w, b and any feasible μ."""
    dense = case.dense()
    mu = feasible(case, random_mu(48, seed))
    best, _, _ = dense.optimum()
    assert dense.dual(mu) <= best
    assert case.problem().dual(mu) <= case.problem().value_at(RNG(seed).normal(size=dense.X.shape[1]))[0]


def test_strong_duality_at_the_optimum(case):
    dense = case.dense()
    best, w, b = dense.optimum()
    mu = case.problem().marginals(dense.X @ w + b)
    assert dense.dual(mu) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_dual_point_is_feasible_and_its_gap_agrees_with_the_difference(case, seed):
    problem, dense = case.problem(), case.dense()
    mu = random_mu(48, seed)
    point = problem.dual_point(mu)
    moved = feasible(case, mu)
    if case.free:
        assert abs(dense.mass @ (dense.y - moved[:, 0])) <= 1e-14
    np.testing.assert_allclose(point.w, dense.weights(moved), atol=1e-12)
    assert point.primal == pytest.approx(dense.primal(point.w, point.b), rel=1e-12)
    assert point.dual == pytest.approx(dense.dual(moved), rel=1e-10, abs=1e-10 * point.primal)
    assert point.primal >= point.dual
    assert point.gap == pytest.approx(dense.primal(point.w, point.b) - dense.dual(moved), rel=1e-9)


def test_primal_point_gap_computed_two_ways_agrees(case):
    """‖∇P‖²/(2λ) = P(w) − D(marginals at w)."""
    problem, dense = case.problem(), case.dense()
    w = RNG(8).normal(size=problem.penalised)
    point = problem.primal_point(problem.design.join(w, 0.3))
    mu, value = problem.marginals(dense.X @ w + point.b), dense.primal(w, point.b)
    near = 1.5 * LITTLE if case.free else 1e-9  # a little is left off balance, and paid for
    assert point.gap == pytest.approx(value - dense.dual(mu), rel=near)
    assert point.dual == pytest.approx(dense.dual(mu), rel=1e-9, abs=near * point.gap + 1e-12)
    assert point.dual <= dense.dual(mixed(case, mu)) + 1e-9 * point.gap + 1e-12
    assert point.gradient_norm == pytest.approx(np.linalg.norm(dense.gradient(w, point.b)[0]))


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3, 1e20])
def test_values_and_gaps_of_two_classes_are_those_of_the_kernel_of_all_structures(loss, scale):
    X, y = base("sparse")
    problem = problems.binary(X, y, C=2.0, loss=loss)
    n, scores, mu = problem.n, scale * RNG(3).normal(size=problem.n), random_mu(problem.n, 4)
    mu[:4] = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    gaps, others, given = (
        np.empty(n),
        np.empty(n),
        (problem.loss, problem.blocks, 0, n, NO_WEIGHTS, scores, mu),
    )
    sums = losses.pair_value_and_gap(*given, gaps)
    np.testing.assert_allclose(sums, losses.value_and_gap(*given, NO_WEIGHTS, others), rtol=1e-12)
    np.testing.assert_allclose(gaps, others, rtol=1e-12)


def test_two_points_joined_have_one_bound_of_each():
    case = setting("dense")
    problem, dense, mu = case.problem(), case.dense(), random_mu(48, 0)
    w = 1e-3 * RNG(9).normal(size=problem.dim)
    point = joined(problem.dual_point(mu), problem.bare_point(w))
    assert point.primal == pytest.approx(dense.primal(w)) and point.dual == pytest.approx(dense.dual(mu))
    assert point.gap == pytest.approx(point.primal - point.dual)


@pytest.mark.parametrize("seed", range(3))
def test_hinge_dual_against_the_formula(seed):
    X, y = base("sparse")
    problem, dense = problems.binary(X, y, loss="hinge", lam=0.1), Dense(X, y, 0.1, hinge=True)
    mu = random_mu(48, seed)
    point = problem.dual_point(mu)
    assert point.primal == pytest.approx(dense.primal(dense.weights(mu)), rel=1e-12)
    assert point.dual == pytest.approx(dense.dual(mu), rel=1e-10, abs=1e-12)
    assert point.gap >= 0.0
    w = RNG(seed).normal(size=X.shape[1])
    assert problem.value_at(w)[0] == pytest.approx(dense.primal(w), rel=1e-13)


# ---- the weights and β


def test_weights_and_offset_joined_and_split_again(case):
    problem = case.problem()
    w, b = RNG(10).normal(size=problem.penalised), 0.4 if case.free else 0.0
    v = problem.design.join(w, b)
    assert v.shape == (problem.dim,) == (problem.penalised + case.free,)
    found, offset = problem.design.split(v)
    np.testing.assert_array_equal(found, w)
    assert offset == pytest.approx(b, abs=1e-14)


def test_proximal_weights_hold_those_of_mu_and_what_its_residuals_add_to_the_centre(case):
    """For any μ, β is β₀ + σ/λ Σ m_i (y_i − μ_i); for a feasible one the centre itself."""
    problem, dense = case.problem(), case.dense()
    mu = random_mu(48, 11)
    v = problem.proximal_weights(mu, 0.7)
    expected = with_constant(problem, dense).T @ (dense.mass * (dense.y - mu[:, 0])) / case.lam
    expected[problem.penalised :] += 0.7
    np.testing.assert_allclose(v, expected, atol=1e-12)
    np.testing.assert_array_equal(v[: problem.penalised], problem.weights_of(mu))
    v = problem.proximal_weights(feasible(case, mu), 0.7)
    np.testing.assert_allclose(v[problem.penalised :], 0.7, atol=1e-12)


# ---- problems from arrays


def test_labels_in_any_of_their_spellings_make_the_same_problem():
    X, y = base("dense")
    expected = problems.binary(X, y)
    for labels in (2.0 * y - 1.0, y.astype(int), y.astype(bool), (2 * y - 1).astype(np.int8), y.tolist()):
        np.testing.assert_array_equal(problems.binary(X, labels).examples.y, expected.examples.y)


def test_dense_and_sparse_make_the_same_problem():
    X, y = base("sparse")
    w = RNG(12).normal(size=X.shape[1])
    kinds = (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix)
    values = {problems.binary(kind(X), y).value_at(w)[0] for kind in kinds}
    assert values == {problems.binary(X.toarray(), y).value_at(w)[0]}


def test_rows_of_weight_zero_are_dropped():
    X, y = base("dense")
    weight = np.where(np.arange(48) % 3 == 0, 0.0, 2.0)
    kept = problems.binary(X[weight > 0], y[weight > 0], C=2.0)
    dropped = problems.binary(X, y, C=1.0, sample_weight=weight)
    assert dropped.n == kept.n and dropped.lam == pytest.approx(kept.lam)
    np.testing.assert_allclose(dropped.examples.mass, kept.examples.mass)


def test_the_constant_feature_is_one_more_penalised_weight():
    for kind in ("dense", "sparse"):
        X, y = base(kind)
        problem = problems.binary(X, y, fit_intercept=True, intercept_scaling=3.0)
        w = RNG(13).normal(size=X.shape[1] + 1)
        wide = np.hstack([X.toarray() if sp.issparse(X) else X, np.full((48, 1), 3.0)])
        assert not problem.free
        assert problem.value_at(w)[0] == pytest.approx(Dense(wide, y, problem.lam).primal(w), rel=1e-13)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"loss": "squared"}, "unknown loss 'squared'; there are log, hinge"),
        ({"y": np.ones(47)}, "X has 48 rows but y has 47 entries"),
        ({"y": np.ones((48, 1))}, r"y has shape \(48, 1\), expected one label per row"),
        ({"y": np.full(48, 2.0)}, "y must hold labels 0/1 or −1/\\+1, or probabilities"),
        ({"y": np.full(48, np.nan)}, "y must hold labels"),
        ({"y": np.full(48, 0.5), "loss": "hinge"}, "takes labels, not probabilities"),
        ({"y": np.ones(48)}, "only one class has examples"),
        ({"y": np.zeros(48)}, "only one class has examples"),
        ({"X": np.zeros((0, 3)), "y": np.zeros(0)}, "X has no rows"),
        ({"sample_weight": np.ones(3)}, r"sample_weight has shape \(3,\), expected \(48,\)"),
        ({"sample_weight": np.full(48, np.nan)}, "NaN or infinity"),
        ({"sample_weight": -np.ones(48)}, r"sample_weight\[0\] is negative"),
        ({"sample_weight": np.zeros(48)}, "zero everywhere"),
        ({"fit_intercept": True, "intercept_scaling": 0.0}, "intercept_scaling=0 must be a positive"),
        ({"C": 1.0, "lam": 1.0}, "exactly one constant"),
    ],
    ids=str,
)
def test_errors_name_the_offender(change, message):
    X, y = base("dense")
    with pytest.raises(ValueError, match=message):
        problems.binary(**{"X": X, "y": y} | change)


def test_a_class_left_without_weight_is_an_error():
    X, y = base("dense")
    with pytest.raises(ValueError, match="only one class has examples of positive weight"):
        problems.binary(X, y, sample_weight=y)


def test_a_problem_says_what_it_is():
    assert str(setting("sparse", free=True).problem()) == (
        "binary log, n = 48, d = 60, 288 non-zeros, λ = 0.0104167, free intercept"
    )
