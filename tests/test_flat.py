"""Lists of outcomes, crossed and joint, against enumeration and against A_i written out as a matrix."""

from math import inf, log

import numpy as np
import pytest
from numba import njit

import brute
from fenchel import losses, problems
from fenchel.structures import base as kernels
from layouts import FLAT, LABELS, SIZES, N, crossed, joint, made, matrices, offsets, targets

RNG = np.random.default_rng


@pytest.fixture(params=FLAT)
def problem(request):
    return made(request.param)


# ---- every kernel in one compiled call, so that each problem costs one compilation


@njit
def inference(blocks, i, s, mu, direction, nu, argmax, y, delta, cost, t):
    loss = kernels.block_marginals(blocks, i, s, nu)
    best = kernels.block_argmax(blocks, i, s, argmax)
    kernels.block_target(blocks, i, y)
    kernels.block_residual(blocks, i, mu, delta)
    kernels.block_cost(blocks, i, cost)
    kernels.block_covariance(blocks, i, mu, direction, t)
    return (
        loss,
        best,
        kernels.block_entropy(blocks, i, mu),
        kernels.block_divergence(blocks, i, mu, np.nan, s, 0.0),
    )


@njit
def linear(blocks, i, v, step, delta, s, moved, u, gram, norms, pair):
    kernels.block_scores(blocks, i, v, s)
    kernels.block_move(blocks, i, step, delta, s, moved)
    kernels.block_add(blocks, i, step, delta, u)
    kernels.block_norms(blocks, i, norms)
    last = kernels.block_length(blocks, i) - 1
    kernels.block_move_pair(blocks, i, step, 0, last, norms, pair)
    for j in range(last + 1):
        for k in range(last + 1):
            gram[j, k] = norms[j] if j == k else kernels.block_product(blocks, i, j, k)
    return kernels.block_squared_norm(blocks, i, delta), kernels.block_radius(blocks, i)


@njit
def slopes(blocks, i, mu, delta, gamma):
    return kernels.block_entropy_slopes(blocks, i, mu, delta, gamma)


def infer(problem, i, s, mu, direction=None):
    """What `inference` returns and writes, by name; buffers are longer than the block, as solvers' are."""
    m = len(s)
    names = ("nu", "argmax", "y", "delta", "cost", "t")
    buffers = {name: np.full(problem.blocks.size + 2, np.nan) for name in names}
    direction = np.ones(m) if direction is None else direction
    numbers = inference(
        problem.blocks, i, np.array(s, float), np.array(mu, float), direction, *buffers.values()
    )
    for name, buffer in buffers.items():
        assert np.isnan(buffer[m:]).all(), f"{name} is written beyond the block"
    found = dict(zip(("loss", "best", "entropy", "kl"), numbers, strict=True))
    return found | {name: buffer[:m] for name, buffer in buffers.items()}


def score_lists(m, rng):
    """Scores of m outcomes: plain, large, far apart, all equal, tied at the top."""
    plain = rng.normal(size=m)
    return [
        plain,
        1e3 * plain,
        np.resize([1e3, -1e3, 0.0], m),
        np.zeros(m),
        np.full(m, -1e3),
        np.round(plain),
    ]


def distributions(m, rng):
    """Points of the simplex: inside, a vertex, on a face, next to a vertex."""
    inside = rng.dirichlet(np.ones(m))
    face = np.where(np.arange(m) % 2 == 0, inside, 0.0)
    vertex = np.eye(m)[m - 1]
    near = np.where(vertex == 1.0, 1.0, 1e-300)
    return [inside, vertex, face / face.sum(), near]


def test_inference_against_enumeration(problem):
    """Marginals, loss, argmax, entropy, KL, residual, cost and covariance of every example."""
    rng = RNG(1)
    for i, y in enumerate(targets(problem)):
        m = len(y)
        for s in score_lists(m, rng):
            for mu in distributions(m, rng):
                direction = rng.normal(size=m)
                check_inference(infer(problem, i, s, mu, direction), s, y, mu, direction)


def check_inference(found, s, y, mu, direction):
    np.testing.assert_allclose(found["nu"], brute.marginals(s), rtol=1e-12, atol=1e-320)
    assert found["nu"].sum() == pytest.approx(1.0, abs=1e-15)
    assert found["loss"] == pytest.approx(brute.log_loss(s, y), rel=1e-13, abs=1e-300)
    assert found["best"] == max(s) and np.dot(found["argmax"], s) == max(s)
    assert sorted(found["argmax"]) == [0.0] * (len(s) - 1) + [1.0]
    assert found["entropy"] == pytest.approx(brute.entropy(mu), rel=1e-14, abs=1e-290)
    assert found["kl"] == pytest.approx(brute.kl(mu, s), rel=1e-10, abs=1e-15) and found["kl"] >= 0.0
    np.testing.assert_array_equal(found["y"], y)
    np.testing.assert_allclose(found["delta"], y - mu, atol=3e-16)
    np.testing.assert_allclose(found["cost"], brute.costs(y), atol=1e-16)
    np.testing.assert_allclose(found["t"], brute.covariance(mu) @ direction, atol=1e-15)


def test_the_first_of_equal_scores_is_the_argmax(problem):
    for i, y in enumerate(targets(problem)):
        found = infer(problem, i, np.full(len(y), 2.0), y)
        np.testing.assert_array_equal(found["argmax"], np.eye(len(y))[0])


@pytest.mark.parametrize("gap", [1.0, 40.0, 300.0])
@pytest.mark.parametrize("level", [0.0, 1e3, -1e3])
def test_a_small_loss_keeps_its_digits(level, gap):
    """log(1 + Σ e^−gap) is far below the rounding of log Z and of the scores."""
    crossed_five, candidates = crossed(5), joint()
    for problem in (crossed_five, candidates):
        for i, y in enumerate(targets(problem)):
            if len(y) > 1 and y.max() == 1.0:
                s = level - gap * (1.0 - y)
                found = infer(problem, i, s, y)
                assert found["loss"] == pytest.approx(brute.log_loss(s, y), rel=1e-13, abs=0.0)


def test_residuals_keep_their_digits_near_a_vertex():
    """y − μ at the likeliest outcome is the sum of the others' probabilities, not 1 − (1 − 1e-30)."""
    problem = problems.flat(np.ones((2, 1)), [0, 2], labels=3, merge=False)
    found = infer(problem, 0, np.zeros(3), [1.0, 1e-30, 2e-30])["delta"]
    np.testing.assert_allclose(found, [3e-30, -1e-30, -2e-30], rtol=1e-15)
    problem = problems.joint(np.eye(3), [1], [0, 3])
    found = infer(problem, 0, np.zeros(3), [1e-200, 1.0, 0.0])["delta"]
    np.testing.assert_allclose(found, [-1e-200, 1e-200, 0.0], rtol=1e-15)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_marginals_are_the_gradient_of_the_log_partition(problem, scale):
    rng, h = RNG(2), 1e-5
    for i, y in enumerate(targets(problem)):
        s = scale * rng.normal(size=len(y))
        slope = [
            (brute.log_partition(s + h * e) - brute.log_partition(s - h * e)) / (2.0 * h)
            for e in np.eye(len(y))
        ]
        np.testing.assert_allclose(infer(problem, i, s, y)["nu"], slope, atol=1e-13 * scale / h)


# ---- outcomes that cannot be


def test_outcomes_of_score_minus_infinity_have_no_mass():
    problem = problems.flat(np.ones((3, 1)), [0, 1, 2], labels=3, merge=False)
    s = np.array([0.5, -inf, 1.0])
    found = infer(problem, 0, s, [0.25, 0.0, 0.75])
    np.testing.assert_allclose(found["nu"], brute.marginals(s), rtol=1e-15)
    assert found["nu"][1] == 0.0 and found["best"] == 1.0
    assert found["loss"] == pytest.approx(brute.log_loss(s, [1.0, 0.0, 0.0]), rel=1e-14)
    assert found["kl"] == pytest.approx(brute.kl([0.25, 0.0, 0.75], s), rel=1e-12)
    assert infer(problem, 0, s, [0.25, 0.25, 0.5])["kl"] == inf
    assert infer(problem, 1, s, [0.25, 0.0, 0.75])["loss"] == inf


def test_a_target_on_an_impossible_outcome_costs_infinity_also_for_candidates():
    problem = problems.joint(np.eye(3), [0.5, 0.0, 0.5], [0, 3])
    assert infer(problem, 0, [0.0, -inf, 1.0], [0.5, 0.0, 0.5])["loss"] < inf
    assert infer(problem, 0, [-inf, 0.0, 1.0], [0.0, 0.0, 1.0])["loss"] == inf


@pytest.mark.parametrize("make", [lambda: crossed(2), joint], ids=["crossed", "joint"])
def test_where_every_score_is_minus_infinity_the_marginals_are_uniform(make):
    problem = make()
    s = np.full(2, -inf)
    found = infer(problem, 1, s, [0.25, 0.75])
    np.testing.assert_array_equal(found["nu"], [0.5, 0.5])
    assert sorted(found["argmax"]) == [0.0, 1.0]
    assert found["kl"] == pytest.approx(log(2.0) - brute.entropy([0.25, 0.75]), rel=1e-14)


@pytest.mark.parametrize("far", [700.0, 745.0, 1e3, 1e5])
def test_kl_where_marginals_underflow(far):
    problem = crossed(5)
    s = np.array([0.0, -far, 1.0, -2.0 * far, -far])
    for mu in ([0.2, 0.2, 0.2, 0.2, 0.2], [0.0, 1.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0, 0.0]):
        assert infer(problem, 0, s, mu)["kl"] == pytest.approx(brute.kl(mu, s), rel=1e-10, abs=1e-15)


# ---- the hinge loss


def hinge_problems():
    rng = RNG(3)
    starts = np.concatenate([[0], np.cumsum(np.resize(SIZES, N))])
    y = rng.integers(np.diff(starts))
    F = rng.normal(size=(starts[-1], 3))
    yield problems.joint(F, y, starts, loss="hinge", merge=False)
    for k in LABELS:
        X = rng.normal(size=(N, 2))
        yield problems.flat(X, rng.integers(k, size=N), labels=k, loss="hinge", merge=False)


@njit
def hinge(loss, blocks, i, s, nu, mu):
    """The loss and the block gap; s and nu written."""
    value = losses.oracle(loss, blocks, i, s, nu)
    return value, losses.block_gap(loss, blocks, i, s, nu, mu, value, np.nan)


@pytest.mark.parametrize("problem", list(hinge_problems()), ids=["joint", *map(str, LABELS)])
def test_the_hinge_oracle_and_gap_against_enumeration(problem):
    rng = RNG(4)
    for i, y in enumerate(targets(problem)):
        for s in score_lists(len(y), rng):
            for mu in distributions(len(y), rng):
                augmented, nu = s.copy(), np.empty(len(y))
                loss, gap = hinge(problem.loss, problem.blocks, i, augmented, nu, mu)
                assert loss == pytest.approx(brute.hinge_loss(s, y), rel=1e-14, abs=1e-13)
                truth = np.dot(y, s)
                np.testing.assert_allclose(augmented, s - truth + brute.costs(y), rtol=1e-15, atol=1e-12)
                assert np.dot(nu, augmented) == max(augmented) and sorted(nu)[-1] == 1.0 == nu.sum()
                assert gap == pytest.approx(brute.hinge_gap(mu, s, y), rel=1e-13, abs=1e-12)


def test_large_scores_do_not_swallow_the_cost():
    problem = problems.flat(np.ones((2, 1)), [0, 1], labels=2, loss="hinge", merge=False)
    for i in range(2):
        scores, mu = np.full(2, 1e17), np.array([0.5, 0.5])
        assert hinge(problem.loss, problem.blocks, i, scores, np.empty(2), mu) == (1.0, 0.5)


def test_the_hinge_gap_of_an_impossible_outcome_without_mass_is_finite():
    problem = problems.flat(np.ones((2, 1)), [0, 1], labels=3, loss="hinge", merge=False)
    s, nu, mu = np.array([0.0, -inf, 0.5]), np.empty(3), np.array([0.5, 0.0, 0.5])
    assert hinge(problem.loss, problem.blocks, 0, s, nu, mu) == (1.5, pytest.approx(0.75))


# ---- entropy along a direction


def test_entropy_slopes_against_differences(problem):
    rng, h = RNG(5), 1e-5
    for i, y in enumerate(targets(problem)):
        m = len(y)
        mu, other = 0.9 * rng.dirichlet(np.ones(m), size=2) + 0.1 / m
        delta = other - mu
        for gamma in (0.0, 0.5, 1.0):
            ahead, here, behind = (brute.entropy(mu + (gamma + k * h) * delta) for k in (1, 0, -1))
            first, second = slopes(problem.blocks, i, mu, delta, gamma)
            assert first == pytest.approx((ahead - behind) / (2 * h), abs=1e-8)
            assert second == pytest.approx((ahead - 2 * here + behind) / h**2, rel=1e-4, abs=1e-4)


def test_entropy_slopes_are_finite_at_the_border_and_ignore_what_does_not_move():
    problem = crossed(5)
    mu, delta = np.array([1.0, 0.0, 0.0, 0.0, 0.0]), np.array([-1.0, 1.0, 0.0, 0.0, 0.0])
    for gamma in (0.0, 1.0):
        first, second = slopes(problem.blocks, 0, mu, delta, gamma)
        assert np.isfinite([first, second]).all() and second < 0.0
        assert first > 0.0 if gamma == 0.0 else first < 0.0
    assert slopes(problem.blocks, 0, mu, np.zeros(5), 0.5) == (0.0, 0.0)


# ---- weights to scores and back


def multiply(problem, i, v, step, delta):
    """What `linear` returns and writes, by name."""
    size = problem.blocks.size + 2
    buffers = {"s": np.zeros(size), "moved": np.zeros(size), "u": np.zeros(v.size)}
    buffers |= {"gram": np.zeros((size, size)), "norms": np.zeros(size), "pair": np.zeros(size)}
    squared, radius = linear(problem.blocks, i, v, step, delta, *buffers.values())
    return buffers | {"squared": squared, "radius": radius}


def test_linear_kernels_against_dense_matrices(problem):
    """Scores, their change, sums over outcomes, norms, Gram matrix; a constant feature where b is free."""
    rng, step = RNG(6), 0.7
    w = rng.normal(size=problem.penalised)
    b = rng.normal(size=problem.design.outputs) if problem.free else 0.0
    v = problem.design.join(w, b)
    plain, whole = matrices(problem), matrices(problem, whole=True)
    for i, (A, C, y) in enumerate(zip(plain, whole, targets(problem), strict=True)):
        m, delta = len(y), rng.normal(size=len(y))
        found = multiply(problem, i, v, step, delta)
        s = A @ w + (offsets(problem, b) if problem.free else 0.0)
        np.testing.assert_allclose(found["s"][:m], s, atol=1e-13)
        np.testing.assert_allclose(C @ v, s, atol=1e-13)
        np.testing.assert_allclose(found["moved"][:m], s + step * C @ (C.T @ delta), atol=1e-13)
        np.testing.assert_allclose(found["u"], step * C.T @ delta, atol=1e-14)
        assert found["squared"] == pytest.approx(np.sum((C.T @ delta) ** 2), rel=1e-12, abs=1e-14)
        np.testing.assert_allclose(found["gram"][:m, :m], C @ C.T, atol=1e-14)
        np.testing.assert_allclose(found["pair"][:m], step * C @ (C[0] - C[-1]), atol=1e-13)
        expected = max(np.sum((C[t] - f) ** 2) for t in np.flatnonzero(y) for f in C)
        assert found["radius"] == pytest.approx(expected, rel=1e-12, abs=1e-14)
        for name in ("s", "moved", "gram"):
            assert not found[name][m:].any(), f"{name} is written beyond the block"


def test_weights_are_kept_up_by_additions(problem):
    """After many steps they are the sum of A_iᵀ δ, β included, and scores agree with them."""
    rng = RNG(7)
    v, expected, whole = np.zeros(problem.dim), 0.0, matrices(problem, whole=True)
    for _ in range(30):
        i = rng.integers(N)
        delta = rng.normal(size=len(whole[i]))
        add(problem.blocks, i, 0.3, delta, v)
        expected = expected + 0.3 * whole[i].T @ delta
    np.testing.assert_allclose(v, expected, atol=1e-13)
    for i, C in enumerate(whole):
        s = multiply(problem, i, v, 0.0, np.zeros(len(C)))["s"]
        np.testing.assert_allclose(s[: len(C)], C @ expected, atol=1e-12)


@njit
def add(blocks, i, step, delta, v):
    kernels.block_add(blocks, i, step, delta, v)


@njit
def catch_up(blocks, i, now, drift, g, seen, v):
    kernels.block_catch_up(blocks, i, now, drift, g, seen, v)


def test_catching_up_pays_the_postponed_part_of_the_examples_weights_only(problem):
    for i, A in enumerate(matrices(problem)):
        v = np.arange(float(problem.dim))
        g, seen = np.linspace(1.0, 2.0, problem.dim), np.zeros(problem.dim, dtype=np.int64)
        catch_up(problem.blocks, i, 2, np.array([0.0, 0.5, 2.0]), g, seen, v)
        mine = np.append(A.any(axis=0), np.zeros(problem.dim - problem.penalised, bool))
        np.testing.assert_allclose(v, np.arange(problem.dim) - 2.0 * g * mine)
        np.testing.assert_array_equal(seen, 2 * mine)


@njit
def copied(blocks, scores, mu, out):
    """Scores copied example by example, and the sum of the views of mu."""
    s, total = np.empty(blocks.size), 0.0
    for i in range(blocks.mass.size):
        kernels.block_read(blocks, scores, i, s)
        kernels.block_write(blocks, i, s, out)
        total += kernels.block_view(blocks, mu, i).sum()
    return total


def test_reading_writing_and_viewing_meet_every_outcome_once(problem):
    scores, mu = RNG(8).normal(size=(2, *problem.shape))
    out = np.zeros(problem.shape)
    assert copied(problem.blocks, scores, mu, out) == pytest.approx(mu.sum())
    np.testing.assert_array_equal(out, scores)


def both_ways(kernel, arguments, shapes):
    """What a kernel returns and writes, compiled and interpreted, must be the same."""
    buffers = [[np.zeros(shape) for shape in shapes] for _ in range(2)]
    compiled = kernel(*arguments, *buffers[0])
    np.testing.assert_allclose(kernel.py_func(*arguments, *buffers[1]), compiled, rtol=1e-12, atol=1e-14)
    for one, other in zip(*buffers, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_compiled_kernels_equal_their_python_functions(problem):
    rng = RNG(9)
    v, m = rng.normal(size=problem.dim), problem.blocks.size
    for i, y in enumerate(targets(problem)):
        s, delta = rng.normal(size=(2, len(y)))
        both_ways(linear, (problem.blocks, i, v, 0.7, delta), (m, m, v.size, (m, m), m, m))
        mu = rng.dirichlet(np.ones(len(y)))
        both_ways(inference, (problem.blocks, i, s, mu, delta), 6 * (m,))
