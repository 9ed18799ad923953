"""P, D and their derivatives in every layout, from sums over examples written out; and free offsets."""

import numpy as np
import pytest

import brute
from fenchel import problems
from fenchel._sparse import as_csr
from fenchel.certificates import share_to_mix
from fenchel.points import LITTLE
from layouts import ALL, joined, made, matrices, offsets, random_mu, split, targets

RNG = np.random.default_rng


@pytest.fixture(params=ALL)
def problem(request):
    return made(request.param)


# ---- the formulas, example by example


def scores(problem, w, b):
    return [A @ w + (offsets(problem, b) if problem.free else 0.0) for A in matrices(problem)]


def primal(problem, w, b=0.0):
    """P(w, b)."""
    loss = brute.hinge_loss if problem.loss.hinge else brute.log_loss
    losses = [loss(s, y) for s, y in zip(scores(problem, w, b), targets(problem), strict=True)]
    return problem.examples.mass @ losses + 0.5 * problem.lam * w @ w


def weights_of(problem, mu):
    """w(μ) = (1/λ) Σ m_i A_iᵀ (y_i − μ_i)."""
    parts = zip(problem.examples.mass, matrices(problem), targets(problem), split(problem, mu), strict=True)
    return sum(m * A.T @ (y - mu_i) for m, A, y, mu_i in parts) / problem.lam


def dual(problem, mu):
    """D(μ)."""
    w, parts = weights_of(problem, mu), split(problem, mu)
    if problem.loss.hinge:
        concave = [np.dot(brute.costs(y), mu_i) for y, mu_i in zip(targets(problem), parts, strict=True)]
    else:
        concave = [brute.entropy(mu_i) for mu_i in parts]
    return problem.examples.mass @ concave - 0.5 * problem.lam * w @ w


def unbalance(problem, mu):
    """Σ m_i (y_i − μ_i) over the outcomes."""
    return problem.examples.mass @ (np.array(targets(problem)) - mu)


def mixed(problem, mu):
    """μ with as much of one distribution as makes it feasible where the offset is free."""
    if not problem.free:
        return mu
    excess, shares = -unbalance(problem, mu), problem.examples.mass @ np.array(targets(problem))
    share = max(share_to_mix(excess, shares), 1e-16)
    return (1.0 - share) * mu + share * (shares - excess * (1.0 - share) / share)


def differences(function, w, step=1e-5):
    """Central differences of a function of w, entry by entry."""
    return np.array([(function(w + step * e) - function(w - step * e)) / (2 * step) for e in np.eye(len(w))])


# ---- the primal


def test_value_and_offset_against_the_formula(problem):
    w = RNG(0).normal(size=problem.penalised)
    value, b = problem.value_at(w)
    assert value == pytest.approx(primal(problem, w, b), rel=1e-13)
    assert problem.evaluate(problem.design.join(w, b)).value == pytest.approx(value, rel=1e-14)
    if not problem.free:
        assert np.all(b == 0.0)
        return
    given = RNG(1).normal(size=np.shape(b))
    assert problem.value_at(w, given)[0] == pytest.approx(primal(problem, w, given), rel=1e-13)
    mu = joined(problem, [brute.marginals(s) for s in scores(problem, w, b)])
    np.testing.assert_allclose(unbalance(problem, mu), 0.0, atol=1e-14)
    assert abs(np.mean(b)) <= 1e-15 or not problem.design.matrix


def test_gradient_against_central_differences(problem):
    """Of P in all weights, β included; at the best offset, of the least P over offsets too."""
    v = RNG(2).normal(size=problem.dim)
    gradient, split = problem.evaluate(v).gradient, problem.design.split
    np.testing.assert_allclose(gradient, differences(lambda u: problem.evaluate(u).value, v), atol=1e-9)
    np.testing.assert_allclose(gradient, differences(lambda u: primal(problem, *split(u)), v), atol=1e-9)
    w = v[: problem.penalised]
    best = problem.evaluate(problem.design.join(w, problem.value_at(w)[1])).gradient
    slopes = differences(lambda u: problem.value_at(u)[0], w)
    np.testing.assert_allclose(best[: problem.penalised], slopes, atol=1e-9)
    np.testing.assert_allclose(best[problem.penalised :], 0.0, atol=1e-14)


@pytest.mark.parametrize("scale", [1e3, 1e5])
@pytest.mark.parametrize("name", ["binary", "crossed-2", "crossed-5", "joint"])
def test_gradient_at_scores_of_a_thousand(name, scale):
    """Every quantity stays finite, and the gradient is that of a sum of flat pieces."""
    problem = made(name)
    w = scale * RNG(3).normal(size=problem.dim)
    assert np.abs(problem.design.scores(w)).max() >= 0.3 * scale
    now = problem.evaluate(w)
    slopes = differences(lambda u: problem.value_at(u)[0], w, step=1e-4)
    np.testing.assert_allclose(now.gradient, slopes, rtol=1e-4, atol=1e-12 * now.value / 1e-4)


def test_scores_and_marginals_there(problem):
    v = RNG(4).normal(size=problem.dim)
    now = problem.evaluate(v)
    mu, s = problem.marginals_at(now), problem.scores_at(now)
    assert problem.marginals_at(now) is mu and problem.scores_at(now) is s
    expected = [brute.marginals(s_i) for s_i in scores(problem, *problem.design.split(v))]
    for found, wanted in zip(split(problem, mu), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_array_equal(problem.marginals(s), mu)


def test_hessian_and_its_products_against_differences_of_the_gradient(problem):
    """Free offsets of all labels moved together change nothing: there alone ∇²P is made regular."""
    v, direction = RNG(5).normal(size=(2, problem.dim))
    now = problem.evaluate(v)
    expected = differences(lambda u: problem.evaluate(u).gradient, v)
    matrix = problem.hessian(now)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-15)
    if problem.free and problem.design.matrix:
        own = matrix[problem.penalised :, problem.penalised :]
        own -= own.sum() / own.size
        assert np.linalg.matrix_rank(problem.hessian(now)) == problem.dim - (problem.design.outputs == 1)
    np.testing.assert_allclose(matrix, expected, atol=1e-8)
    np.testing.assert_allclose(problem.hessian_product(now, direction), matrix @ direction, atol=1e-13)


def test_empirical_features_against_the_formula(problem):
    parts = zip(problem.examples.mass, matrices(problem, True), targets(problem), strict=True)
    np.testing.assert_allclose(problem.empirical, sum(m * A.T @ y for m, A, y in parts), atol=1e-15)


# ---- the dual


@pytest.mark.parametrize("seed", range(3))
def test_dual_against_the_formula(problem, seed):
    mu = random_mu(problem, RNG(seed))
    np.testing.assert_allclose(problem.weights_of(mu), weights_of(problem, mu), atol=1e-13)
    assert problem.dual(mu) == pytest.approx(dual(problem, mu), rel=1e-12)
    assert problem.dual(mu, problem.weights_of(mu)) == problem.dual(mu)
    assert problem.concave(mu) == pytest.approx(dual(problem, mu) + primal_penalty(problem, mu), rel=1e-12)


def primal_penalty(problem, mu):
    w = weights_of(problem, mu)
    return 0.5 * problem.lam * w @ w


@pytest.mark.parametrize("seed", range(3))
def test_weak_duality_and_two_gaps_that_agree(problem, seed):
    """The gap of the block gaps, and P − D from their formulas, at a feasible point."""
    rng = RNG(seed)
    mu = random_mu(problem, rng)
    point = problem.dual_point(mu)
    moved = problem.tilt(mu) if problem.free else mu
    assert problem.value_at(rng.normal(size=problem.penalised))[0] >= dual(problem, moved)
    np.testing.assert_allclose(point.w, weights_of(problem, moved), atol=1e-12)
    assert point.primal == pytest.approx(primal(problem, point.w, point.b), rel=1e-12)
    assert point.gap == pytest.approx(point.primal - dual(problem, moved), rel=1e-9, abs=1e-13)
    assert point.primal >= point.dual and point.gap >= 0.0


def test_primal_gap_computed_two_ways_agrees(problem):
    """‖∇P‖²/(2λ) = P(w) − D(marginals at w)."""
    v = RNG(6).normal(size=problem.dim)
    point, w = problem.primal_point(v), v[: problem.penalised]
    np.testing.assert_array_equal(point.w, w)
    mu = joined(problem, [np.array(brute.marginals(s)) for s in scores(problem, w, point.b)])
    value = primal(problem, w, point.b)
    assert point.gap >= (value - dual(problem, mixed(problem, mu))) * (1.0 - 1e-9)
    dearer = 1.0 + 1e-9 + 1.5 * LITTLE * problem.free
    assert point.gap <= (value - dual(problem, mu)) * dearer


@pytest.mark.parametrize("name", ["crossed", "joint"])
@pytest.mark.parametrize("seed", range(3))
def test_hinge_value_dual_and_gap_against_the_formulas(name, seed):
    rng = RNG(seed)
    if name == "crossed":
        problem = problems.flat(rng.normal(size=(8, 3)), rng.integers(4, size=8), labels=4, loss="hinge")
    else:
        F, starts = rng.normal(size=(17, 4)), [0, 1, 4, 9, 17]
        problem = problems.joint(F, [0, 2, 1, 7], starts, loss="hinge")
    w, mu = rng.normal(size=problem.dim), random_mu(problem, rng)
    assert problem.value_at(w)[0] == pytest.approx(primal(problem, w), rel=1e-13)
    point = problem.dual_point(mu)
    assert problem.dual(mu) == pytest.approx(dual(problem, mu), rel=1e-12)
    assert point.gap == pytest.approx(primal(problem, point.w) - dual(problem, mu), rel=1e-12)
    assert problem.value_at(w)[0] >= problem.dual(mu)


def test_near_the_target_is_a_mixture_with_the_uniform_distribution(problem):
    found = split(problem, problem.near_target(0.1))
    for mu, y in zip(found, targets(problem), strict=True):
        np.testing.assert_allclose(mu, 0.9 * y + 0.1 / len(y), rtol=1e-15)


@pytest.mark.parametrize("name", ["crossed-1-free", "crossed-2-free", "crossed-5-free"])
def test_tilting_makes_mu_feasible_and_keeps_a_feasible_one(name):
    problem = made(name)
    mu = random_mu(problem, RNG(7))
    tilted = problem.tilt(mu)
    np.testing.assert_allclose(unbalance(problem, tilted), 0.0, atol=1e-14)
    odds = mu * (tilted[0] / mu[0])  # one e^δ for all examples
    np.testing.assert_allclose(tilted, odds / odds.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(problem.tilt(tilted), tilted, rtol=1e-11)


def test_tilting_the_border_gives_a_feasible_point_too():
    X, y = np.ones((20, 1)), np.arange(20) % 3
    problem = problems.flat(X, y, fit_intercept=True, merge=False)
    border = problem.tilt(np.eye(3)[y])
    assert np.isfinite(border).all()
    np.testing.assert_allclose(unbalance(problem, border), 0.0, atol=1e-14)


# ---- the weights and β, another λ, threads


def test_weights_and_offsets_joined_and_split_again(problem):
    """Offsets of labels come back with mean zero: what they have in common changes no marginal."""
    w, outputs = RNG(8).normal(size=problem.penalised), problem.design.outputs
    b = RNG(9).normal(size=outputs) if problem.free else np.zeros(outputs)
    v = problem.design.join(w, b)
    assert v.shape == (problem.dim,) == (problem.penalised + outputs * problem.free,)
    found, offset = problem.design.split(v)
    np.testing.assert_array_equal(found, w)
    assert np.shape(offset) == ((outputs,) if problem.free and problem.design.matrix else ())
    np.testing.assert_allclose(offset, b - b.mean() if problem.design.matrix else b[0], atol=1e-14)
    alike = problem.marginals(problem.scores(problem.design.join(found, offset)))
    np.testing.assert_allclose(alike, problem.marginals(problem.scores(v)), rtol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_another_penalty_makes_the_same_problem_as_a_fresh_one(name):
    used, fresh = made(name), made(name, lam=0.03)
    w, mu = RNG(10).normal(size=used.dim), random_mu(used, RNG(11))
    used.evaluate(w), used.dual_point(mu), used.columns, used.empirical
    other = used.with_penalty(0.03)
    assert other.lam == other.blocks.lam == 0.03 and used.lam == used.blocks.lam == 0.5
    assert other.evaluate(w).value == fresh.evaluate(w).value
    np.testing.assert_array_equal(other.evaluate(w).gradient, fresh.evaluate(w).gradient)
    np.testing.assert_array_equal(other.weights_of(mu), fresh.weights_of(mu))
    assert other.dual_point(mu).gap == fresh.dual_point(mu).gap
    assert other.offers == fresh.offers and str(other) == str(fresh)


def large(name, threads):
    """So many multiplications that the work is split."""
    rng = RNG(12)
    X, y = rng.normal(size=(2003, 40)), rng.integers(6, size=2003)
    settings = {"lam": 0.1, "threads": threads}
    if name == "joint":
        F = rng.normal(size=(12_018, 40))
        return problems.joint(F, y, np.arange(0, 12_019, 6), **settings)
    if name.startswith("binary"):
        X = rng.normal(size=(12_007, 40))
        return problems.binary(X, X[:, 0] > 0.0, fit_intercept="free" in name, **settings)
    return problems.flat(X, y, fit_intercept="free" in name, **settings)


@pytest.mark.parametrize("name", ["binary", "binary-free", "crossed", "crossed-free", "joint"])
def test_the_number_of_threads_changes_no_bit(name, monkeypatch):
    monkeypatch.setattr("fenchel._threads.LARGE", 100_000)
    one, two, three = (large(name, threads) for threads in (1, 2, 3))
    assert one.design.work >= 100_000
    w, direction = 0.1 * RNG(13).normal(size=(2, one.dim))
    mu = random_mu(one, RNG(14))
    for other in (two, three):
        now, then = one.evaluate(w), other.evaluate(w)
        assert now.value == then.value
        np.testing.assert_array_equal(one.primal_point(w).b, other.primal_point(w).b)
        np.testing.assert_array_equal(now.gradient, then.gradient)
        products = [p.hessian_product(e, direction) for p, e in ((one, now), (other, then))]
        np.testing.assert_array_equal(*products)
        np.testing.assert_array_equal(one.hessian(now), other.hessian(then))
        assert one.dual(mu) == other.dual(mu) and one.dual_point(mu).gap == other.dual_point(mu).gap
        np.testing.assert_array_equal(one.empirical, other.empirical)


def test_parts_of_the_work_add_up(monkeypatch):
    """The same numbers, but for rounding, whether a small problem is split or not."""
    whole = {name: made(name).evaluate(np.ones(made(name).dim)) for name in ALL}
    monkeypatch.setattr("fenchel._threads.LARGE", 1)
    for name, expected in whole.items():
        found = made(name).evaluate(np.ones(made(name).dim))
        assert found.value == pytest.approx(expected.value, rel=1e-14)
        np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-14)


# ---- free offsets of several labels


def of_labels(y, labels, mass):
    """A problem of examples with these labels; only its scores matter, so it has a feature of zeros."""
    X = np.zeros((len(y), 1))
    return problems.flat(X, y, labels=labels, sample_weight=mass, fit_intercept=True, merge=False)


def check_offset(shift, spread, rare, labels=4):
    """Σ m_i (y_i − softmax(s_i + b)) = 0 and mean(b) = 0, wherever the scores of a label are moved to."""
    rng = RNG(0)
    s = spread * rng.normal(size=(50, labels))
    s[:, 0] += shift
    y = np.concatenate([np.arange(labels), rng.integers(labels, size=50 - labels)])
    problem = of_labels(y, labels, np.where(y == 1, rare, 1.0))
    away = np.zeros(labels)
    away[0] = -shift
    for more in (0.0, away, 20.0 * rng.normal(size=labels)):
        b = problem.structure.offset(problem.blocks, s + more, problem.each_part)
        # The best b is known to an ulp of its size, and the balance no better than that.
        rounding = 4.0 * np.spacing(np.abs(b).max() + abs(shift))
        mu = problem.marginals(s + more + b)
        np.testing.assert_allclose(unbalance(problem, mu), 0.0, atol=1e-14 + rounding)
        assert abs(b.mean()) <= rounding


@pytest.mark.parametrize("spread", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("shift", [0.0, 3.0, -1500.0])
@pytest.mark.parametrize("rare", [0.5, 1e-3])
def test_the_offsets_balance_targets_and_marginals(spread, shift, rare):
    check_offset(shift, spread, rare)


@pytest.mark.parametrize("spread", [0.0, 1.0, 1e3])
@pytest.mark.parametrize("shift", [1e5, -1e8])
def test_the_offsets_of_far_scores_balance_too(spread, shift):
    check_offset(shift, spread, 0.5)


@pytest.mark.parametrize("shift", [0.0, 3.0, -1500.0])
def test_the_offsets_of_widely_spread_scores_and_a_rare_label_balance_too(shift):
    check_offset(shift, 1e3, 1e-3)


@pytest.mark.parametrize("labels", [1, 2, 20])
def test_the_offsets_of_few_and_many_labels_balance(labels):
    check_offset(3.0, 1.0, 0.5, labels)


def test_the_offset_of_two_labels_is_that_of_two_classes():
    rng = RNG(15)
    s, y = rng.normal(size=40), (rng.uniform(size=40) < 0.3).astype(int)
    two = of_labels(y, 2, None)
    b = two.structure.offset(two.blocks, np.column_stack([np.zeros(40), s]), two.each_part)
    classes = problems.binary(np.zeros((40, 1)), y, fit_intercept=True)
    expected = classes.structure.offset(classes.blocks, s, classes.each_part)
    assert b[1] - b[0] == pytest.approx(expected, rel=1e-13)


# ---- layouts of the same problem


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_crossed_labels_are_candidates_written_out(loss):
    rng = RNG(18)
    X, y = rng.normal(size=(12, 3)), rng.integers(4, size=12)
    crossed = problems.flat(X, y, labels=4, loss=loss)
    F = np.vstack([np.kron(x, np.eye(4)) for x in as_csr(crossed.examples.rows).toarray()])
    written = problems.joint(F, y, np.arange(0, 49, 4), loss=loss)
    w, mu = rng.normal(size=12), random_mu(crossed, rng)
    assert crossed.value_at(w)[0] == pytest.approx(written.value_at(w)[0], rel=1e-14)
    assert crossed.dual(mu) == pytest.approx(written.dual(mu.ravel()), rel=1e-13)
