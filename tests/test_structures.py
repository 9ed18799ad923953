"""The binary structure against the enumeration of its two outputs, as a batch and block by block."""

import numpy as np
import pytest
from numba import njit

import brute
from fenchel import problems
from fenchel._sparse import as_rows
from fenchel.data import Examples
from fenchel.losses import LOSSES
from fenchel.problem import Problem
from fenchel.regularizers import L2
from fenchel.structures import base as kernels
from fenchel.structures.binary import Binary
from matrix import base

SCORES = np.array([0.0, 1.0, -1.0, 30.0, -30.0, 1e3, -1e3])
TARGETS = np.array([0.0, 1.0, 0.5, 0.25, 1e-9])
GRID = [(s, y) for s in SCORES for y in TARGETS]
MU = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [1e-300, 1.0], [0.3, 0.7]])


def column(k):
    return np.array([pair[k] for pair in GRID])


def of_targets(y, loss="log", mass=None, free=False, features=None):
    """A problem of examples with these targets and one feature, by default of zeros; no regulariser."""
    features = np.zeros(len(y)) if features is None else np.asarray(features)
    mass = np.ones(len(y)) if mass is None else mass
    examples = Examples(as_rows(features[:, None]), np.asarray(y, dtype=float), mass)
    return Problem(examples, Binary(), LOSSES[loss], L2(0.0), free)


def losses_of(scores, y, loss="log"):
    """(n,) the losses, each the value of a problem of its own: its score the one feature, of weight one."""
    of_one = (of_targets([t], loss, features=[s]) for s, t in zip(scores, y, strict=True))
    return [problem.value_at(np.ones(1))[0] for problem in of_one]


def concaves_of(y, mu, loss="log"):
    """(n,) H(μ_i), by a problem for each."""
    return [of_targets([t], loss).concave(pair[None]) for t, pair in zip(y, mu, strict=True)]


def test_marginals_against_enumeration():
    expected = np.array([brute.marginals(s) for s in SCORES])
    found = of_targets(np.zeros(SCORES.size)).marginals(SCORES)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-320)


def test_log_losses_against_enumeration_with_soft_targets():
    expected = [brute.log_loss(s, y) for s, y in GRID]
    np.testing.assert_allclose(losses_of(column(0), column(1)), expected, rtol=1e-13)


def test_hinge_losses_against_enumeration():
    for y in (0.0, 1.0):
        expected = [brute.hinge_loss(s, y) for s in SCORES]
        found = losses_of(SCORES, np.full(SCORES.size, y), "hinge")
        np.testing.assert_allclose(found, expected)


def test_the_value_of_a_problem_is_the_weighted_sum_of_the_losses():
    mass = np.random.default_rng(0).uniform(size=len(GRID))
    problem = of_targets(column(1), mass=mass, features=column(0))
    expected = mass @ [brute.log_loss(s, y) for s, y in GRID]
    assert problem.value_at(np.ones(1))[0] == pytest.approx(expected, rel=1e-13)
    assert problem.evaluate(np.ones(1)).value == pytest.approx(expected, rel=1e-13)


def test_entropies_costs_and_residuals_against_enumeration():
    found = concaves_of(np.zeros(5), MU)
    np.testing.assert_allclose(found, [brute.entropy(pair) for pair in MU], rtol=1e-14)
    for y in (0.0, 1.0):
        expected = [np.dot(brute.costs(y), pair) for pair in MU]
        np.testing.assert_allclose(concaves_of(np.full(5, y), MU, "hinge"), expected)
    y = np.array([0.0, 1.0, 0.5, 0.25, 0.3])
    delta, t = np.empty((5, 2)), np.empty((5, 2))
    residuals_and_covariances(of_targets(y).blocks, MU, np.array([1.0, 0.0]), delta, t)
    np.testing.assert_allclose(delta, np.column_stack([y, 1.0 - y]) - MU, atol=1e-16)
    np.testing.assert_allclose(t, [brute.covariance(pair)[0] for pair in MU], atol=1e-16)


@njit
def residuals_and_covariances(blocks, mu, s, delta, t):
    for i in range(blocks.mass.size):
        kernels.block_residual(blocks, i, mu[i], delta[i])
        kernels.block_covariance(blocks, i, mu[i], s, t[i])


def check_kl(scores):
    for p in (0.0, 1e-300, 1e-3, 0.5, 0.9, 1.0):
        mu = np.tile([p, 1.0 - p], (scores.size, 1))
        expected = [brute.kl([p, 1.0 - p], s) for s in scores]
        found = of_targets(np.zeros(scores.size)).block_gaps(mu, scores)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-15)


def test_kl_against_enumeration():
    check_kl(SCORES)


def test_kl_where_marginals_are_subnormal_against_enumeration():
    check_kl(np.array([710.0, -715.0, 720.0, -740.0, 745.0]))


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_hinge_gaps_against_enumeration(p):
    mu = np.tile([p, 1.0 - p], (SCORES.size, 1))
    for y in (0.0, 1.0):
        expected = [brute.hinge_gap([p, 1.0 - p], s, y) for s in SCORES]
        gaps = of_targets(np.full(SCORES.size, y), "hinge").block_gaps(mu, SCORES)
        np.testing.assert_allclose(gaps, expected, atol=1e-13)


def test_marginals_are_the_derivative_of_the_log_partition():
    for s in SCORES:
        h = 1e-5 * max(1.0, abs(s))
        slope = (brute.log_partition(s + h) - brute.log_partition(s - h)) / (2 * h)
        assert of_targets([0.0]).marginals(np.array([s]))[0, 0] == pytest.approx(slope, rel=1e-4, abs=1e-9)


def balance(problem, scores, b):
    """Σ m_i (σ(s_i + b) − y_i)."""
    return problem.examples.mass @ (problem.marginals(scores + b)[:, 0] - problem.examples.y)


def check_offset(shift, spread, rare):
    rng = np.random.default_rng(0)
    scores = shift + spread * rng.normal(size=50)
    y = (rng.uniform(size=50) < 0.5).astype(float)
    mass = np.where(y == 1.0, rare, 1.0)
    problem = of_targets(y, mass=mass / mass.sum(), free=True)
    for moved in (scores, scores - shift, scores + 20.0):
        b = problem.structure.offset(problem.blocks, moved, problem.each_part)
        # The best b is known to an ulp of its size, and the balance no better than that.
        assert abs(balance(problem, moved, b)) <= 1e-15 + 4.0 * np.spacing(abs(b) + abs(shift))


@pytest.mark.parametrize("spread", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("shift", [0.0, 3.0, -1500.0])
@pytest.mark.parametrize("rare", [0.5, 1e-3])
def test_the_offset_balances_targets_and_marginals(spread, shift, rare):
    check_offset(shift, spread, rare)


@pytest.mark.parametrize("spread", [0.0, 1.0, 1e3])
@pytest.mark.parametrize("shift", [1e5, -1e8])
def test_the_offset_of_far_scores_balances_too(spread, shift):
    check_offset(shift, spread, 0.5)


@pytest.mark.parametrize("shift", [0.0, 3.0, -1500.0])
def test_the_offset_of_widely_spread_scores_and_a_rare_class_balances_too(shift):
    check_offset(shift, 1e3, 1e-3)


def test_tilting_makes_mu_feasible_and_keeps_a_feasible_one():
    rng = np.random.default_rng(1)
    p = rng.uniform(size=20)
    mu, y, mass = np.column_stack([p, 1.0 - p]), (rng.uniform(size=20) < 0.3).astype(float), np.full(20, 0.05)
    problem = of_targets(y, mass=mass, free=True)
    tilted = problem.tilt(mu)
    assert abs(mass @ (y - tilted[:, 0])) <= 1e-14
    odds, before = (pair[:, 0] / pair[:, 1] for pair in (tilted, mu))
    np.testing.assert_allclose(odds / before, odds[0] / before[0], rtol=1e-12)  # one e^δ for all examples
    np.testing.assert_allclose(problem.tilt(tilted), tilted, rtol=1e-11)
    border = problem.tilt(problem.near_target(0.0))
    assert np.isfinite(border).all() and abs(mass @ (y - border[:, 0])) <= 1e-14


def test_without_a_free_offset_nothing_is_tilted():
    """The bound is that of μ itself, which does not balance."""
    mu = np.column_stack([[0.2, 0.9], [0.8, 0.1]])
    problem = problems.binary(np.eye(2), [0.0, 1.0], lam=0.5)
    assert problem.dual_point(mu).dual == pytest.approx(problem.dual(mu), rel=1e-14)
    assert abs(problem.examples.mass @ (problem.examples.y - mu[:, 0])) > 0.01


def test_near_the_target_is_a_mixture_with_the_uniform_distribution():
    """lepriol2018 (21)."""
    mu = of_targets([0.0, 1.0, 0.25]).near_target(0.1)
    np.testing.assert_allclose(mu, [[0.05, 0.95], [0.95, 0.05], [0.275, 0.725]], rtol=1e-15)


# ---- block kernels, from Python and from compiled code


@pytest.fixture(params=[False, True], ids=["", "free"])
def problem(request):
    X, y = base("sparse")
    y = np.where(np.arange(len(y)) % 5 == 0, 0.25, y)
    return problems.binary(X, y, C=2.0, fit_intercept=request.param)


@njit
def call_all(blocks, i, v, mu, delta, s, y, cost, marginals, argmax, moved, u):
    kernels.block_scores(blocks, i, v, s)
    kernels.block_target(blocks, i, y)
    kernels.block_cost(blocks, i, cost)
    loss = kernels.block_marginals(blocks, i, s, marginals)
    top = kernels.block_argmax(blocks, i, s, argmax)
    kernels.block_move(blocks, i, 0.7, delta, s, moved)
    kernels.block_add(blocks, i, 0.7, delta, u)
    return (
        loss,
        top,
        kernels.block_squared_norm(blocks, i, delta),
        kernels.block_radius(blocks, i),
        kernels.block_entropy(blocks, i, mu),
        kernels.block_divergence(blocks, i, mu, np.nan, s, 0.0),
        kernels.block_entropy_slopes(blocks, i, mu, delta, 0.5),
    )


def test_block_kernels_equal_the_batch_methods(problem):
    """Called by Python, compiled, and as whole-array methods: three ways to the same numbers."""
    rng = np.random.default_rng(2)
    w, b = rng.normal(size=problem.penalised), 0.3 if problem.free else 0.0
    v, constant = problem.design.join(w, b), problem.design.constant
    scores = problem.design.scores(v)
    X, batch = problem.design.rows, problem.marginals(scores)
    for i in range(problem.n):
        p = rng.uniform(0.05, 0.95)
        mu, delta = np.array([p, 1.0 - p]), np.array([0.1, -0.1])
        results, buffers = [], []
        for function in (call_all, call_all.py_func):
            arrays = [np.zeros(2) for _ in range(6)] + [np.zeros(v.size)]
            plain = problem.blocks
            if function is not call_all:  # NumPy's unsigned scalars do not index a range
                rows = X._replace(indptr=X.indptr.view(np.int64), indices=X.indices.view(np.int32))
                plain = problem.blocks._replace(layout=problem.blocks.layout._replace(rows=rows))
            results.append(function(plain, i, v, mu, delta, *arrays))
            buffers.append(arrays)
        for compiled, interpreted in zip(buffers[0], buffers[1], strict=True):
            np.testing.assert_allclose(compiled, interpreted, rtol=1e-12, atol=1e-14)
        for compiled, interpreted in zip(results[0], results[1], strict=True):
            np.testing.assert_allclose(compiled, interpreted, rtol=1e-12, atol=1e-14)

        s, y, cost, marginals, argmax, moved, u = buffers[0]
        loss, top, squared, radius, entropy, kl, slopes = results[0]
        row = np.zeros(v.size)
        from_rows(X, i, row)
        row[problem.penalised :] = constant
        assert scores[i] == pytest.approx(row[: problem.penalised] @ w + b, rel=1e-12, abs=1e-13)
        np.testing.assert_allclose(s, [scores[i], 0.0], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(y, [problem.examples.y[i], 1.0 - problem.examples.y[i]])
        np.testing.assert_allclose(cost, y[::-1])
        np.testing.assert_allclose(marginals, batch[i], rtol=1e-11)
        assert loss == pytest.approx(brute.log_loss(scores[i], y[0]), rel=1e-12)
        assert top == pytest.approx(max(scores[i], 0.0))
        np.testing.assert_array_equal(argmax, [1.0, 0.0] if scores[i] > 0.0 else [0.0, 1.0])
        assert radius == pytest.approx(row @ row, rel=1e-10, abs=1e-14)
        assert squared == pytest.approx(0.01 * radius)
        assert moved[0] - s[0] == pytest.approx(0.07 * radius, rel=1e-9, abs=1e-13)
        np.testing.assert_allclose(u, 0.07 * row, atol=1e-14)
        assert entropy == pytest.approx(brute.entropy(mu))
        assert kl == pytest.approx(brute.kl(mu, scores[i]), rel=1e-9, abs=1e-14)
        middle = mu + 0.5 * delta
        assert slopes[0] == pytest.approx(-delta @ np.log(middle))
        assert slopes[1] == pytest.approx(-(delta**2) @ (1.0 / middle))


def from_rows(rows, i, out):
    start, stop = int(rows.indptr[i]), int(rows.indptr[i + 1])
    out[rows.indices[start:stop]] = rows.data[start:stop]


def test_the_argmax_of_a_tie_is_one_output():
    problem = problems.binary(np.eye(2), [0.0, 1.0])
    for i, s in enumerate(([0.0, 0.0], [1.0, 1.0])):
        mu = np.empty(2)
        assert kernels.block_argmax(problem.blocks, i, np.array(s), mu) == s[0]
        assert sorted(mu) == [0.0, 1.0]


def test_cost_augmented_argmax_is_the_vertex_of_the_hinge_loss(problem):
    if problem.free:
        pytest.skip("the hinge loss has no free offset")
    hinge = problems.binary(*base("sparse"), loss="hinge")
    w = np.random.default_rng(3).normal(size=hinge.dim)
    s, cost, mu = np.empty(2), np.empty(2), np.empty(2)
    for i, (score, y) in enumerate(zip(hinge.design.scores(w), hinge.examples.y, strict=True)):
        kernels.block_scores(hinge.blocks, i, w, s)
        kernels.block_cost(hinge.blocks, i, cost)
        top = kernels.block_argmax(hinge.blocks, i, s + cost, mu)
        assert top - (score if y == 1.0 else 0.0) == pytest.approx(brute.hinge_loss(score, y))


def test_catching_up_pays_the_postponed_part_of_the_examples_weights_only():
    problem = problems.binary(*base("sparse"))
    v, g = np.arange(float(problem.dim + 1)), np.ones(problem.dim + 1)  # as if with β
    seen, drift = np.zeros(problem.dim + 1, dtype=np.int64), np.array([0.0, 0.5, 2.0])
    before = v.copy()
    kernels.block_catch_up(problem.blocks, 3, 2, drift, g, seen, v)
    rows = problem.examples.rows
    mine = rows.indices[int(rows.indptr[3]) : int(rows.indptr[4])]
    expected = before.copy()
    expected[mine] -= 2.0
    np.testing.assert_array_equal(v, expected)
    assert set(np.flatnonzero(seen)) == set(mine.tolist())
