"""Several labels or candidates, the dual side: kept up and computed anew, naive twins, warm starts."""

import numpy as np
import pytest

from fenchel import solvers
from fenchel.loop import solve
from fenchel.trace import Status
from flat_matrix import assert_certified, assert_distributions, cases, optimum

CASES = cases()
DUAL = ("cd-dual", "sdca", "eg", "eg-batch")
PLAIN = ("dense-C=1", "sparse-C=10000", "weights", "joint-real-C=1", "joint-binary-C=10000")


def of_positive_weight(name, loss="log"):
    """A problem and its dense twin, both without the examples of weight zero."""
    case = CASES[name].without_zero_weights()
    return case.problem(loss=loss, merge=False), case.dense(hinge=loss == "hinge")


# ---- the dual, kept up and computed anew


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("solver", DUAL)
def test_the_weights_kept_up_incrementally_are_those_of_the_dual_variables(solver, name, loss):
    problem, dense = of_positive_weight(name, loss)
    method = solvers.make(solver)
    state = method.init(problem, None)
    for _ in range(29):  # the last renewal was after 20
        method.step(problem, state)
    mu = state.mu.ravel()
    assert_distributions(state.mu, problem.examples.starts)
    anew = dense.weights(mu)
    np.testing.assert_allclose(state.v, anew, rtol=0.0, atol=1e-10 * max(np.abs(anew).max(), 1e-12))
    point = method.point(problem, state)
    assert point.dual == pytest.approx(dense.dual(mu), rel=1e-10, abs=1e-10 * point.primal)
    assert point.primal == pytest.approx(dense.primal(anew), rel=1e-8)


@pytest.mark.parametrize("name", ["dense-C=1-free", "sparse-C=10000-free", "weights-free", "soft-free"])
@pytest.mark.parametrize("solver", DUAL)
def test_the_dual_of_free_offsets_is_that_of_a_feasible_point(solver, name):
    problem, dense = of_positive_weight(name)
    method = solvers.make(solver)
    state = method.init(problem, None)
    for _ in range(19):
        method.step(problem, state)
    point = method.point(problem, state)
    mu = problem.tilt(state.mu)
    residual = dense.mass @ (dense.y.reshape(mu.shape) - mu)
    assert np.abs(residual).max() <= 1e-13
    assert point.b.shape == (3,) and abs(point.b.mean()) <= 1e-12
    assert point.dual == pytest.approx(dense.dual(mu.ravel()), rel=1e-10)
    assert point.primal == pytest.approx(dense.primal(point.w, point.b), rel=1e-12)


# ---- naive twins


def with_constant(problem, dense):
    """Features as solvers see them, with a constant one in the place of each label where offsets are free."""
    return np.hstack([dense.F, problem.design.constant * dense.ones]) if dense.free else dense.F


def recentred(dense, w, centre):
    """The weights after a pass: β moves once more by as much as it did; and the new centre."""
    now, moved = w.copy(), w[dense.F.shape[1] :] - centre
    now[dense.F.shape[1] :] += moved
    return now, w[dense.F.shape[1] :]


def sdca_passes(F, origin, dense, mu, passes, rng):
    """lepriol2018 Algorithm 1, uniform sampling: γ maximises the dual along ν − μ, by bisection."""
    w, mu = origin + F.T @ (dense.mass[dense.owner] * (dense.y - mu)) / dense.lam, mu.copy()
    centre = origin[dense.F.shape[1] :]
    for k, u in enumerate(rng.random((passes * dense.n, 2))[:, 1]):
        if k and k % dense.n == 0:
            w, centre = recentred(dense, w, centre)
        i = int(u * dense.n)
        block = slice(dense.first[i], dense.first[i] + dense.counts[i])
        A, s = F[block], F[block] @ w
        nu = np.exp(s - np.logaddexp.reduce(s))
        delta, rate = nu - mu[block], dense.mass[i] / dense.lam
        low, high = 0.0, 1.0
        for _ in range(60):
            gamma = 0.5 * (low + high)
            slope = delta @ (s - rate * gamma * A @ (A.T @ delta) - np.log(mu[block] + gamma * delta))
            low, high = (gamma, high) if slope > 0.0 else (low, gamma)
        mu[block] += gamma * delta
        w -= rate * gamma * A.T @ delta
    return recentred(dense, w, centre)[0], mu


TWINS = ("dense-C=1", "sparse-C=1", "weights", "soft", "joint-real-C=1", "joint-soft")
FREE_TWINS = ("dense-C=1-free", "sparse-C=1-free", "weights-free", "soft-free")


@pytest.mark.parametrize("name", [*TWINS, *FREE_TWINS])
def test_passes_of_sdca_are_those_of_its_naive_twin(name):
    problem, dense = of_positive_weight(name)
    method = solvers.SDCA(sampling="uniform", precision=1e-14, seed=3)
    state = method.init(problem, None)
    first = state.mu.ravel().copy()
    for _ in range(2):
        method.step(problem, state)
    parts = with_constant(problem, dense), problem.origin, dense
    w, mu = sdca_passes(*parts, first, 2, np.random.default_rng(3))
    np.testing.assert_allclose(state.v, w, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(state.mu.ravel(), mu, rtol=0.0, atol=1e-9)


def cd_dual_pass(F, origin, dense, mu, rng):
    """yu2011 Algorithm 7: blocks in random order, each sub-problem (42) by Newton on Σ z = 1.

    An example's residual y − μ enters w with its first update.
    """
    w, mu = origin.copy(), mu.copy()
    for i in rng.permutation(dense.n):
        block = slice(dense.first[i], dense.first[i] + dense.counts[i])
        A, before, rate = F[block], mu[block].copy(), dense.mass[i] / dense.lam
        s, K = A @ w, rate * A @ A.T
        z = before.copy()
        for _ in range(200):
            gradient = np.log(z) + 1.0 - s + K @ (z - before)
            inverse = np.linalg.inv(K + np.diag(1.0 / z))
            step = inverse @ (gradient - (inverse.sum(axis=0) @ gradient) / inverse.sum())
            z -= step * min(1.0, 0.9 / max(np.max(step / z), 1e-300))
        mu[block] = z
        w += rate * A.T @ (dense.y[block] - z)
    return recentred(dense, w, origin[dense.F.shape[1] :])[0], mu


@pytest.mark.parametrize("subproblem", ["newton", "bisection"])
@pytest.mark.parametrize("name", [*TWINS, *FREE_TWINS])
def test_a_pass_of_cd_dual_is_that_of_its_naive_twin(name, subproblem):
    problem, dense = of_positive_weight(name)
    method = solvers.CDDual(subproblem=subproblem, seed=3)
    state = method.init(problem, None)
    state.inner, state.leave = 1e-13, 0.0
    first = state.mu.ravel().copy()
    method.step(problem, state)
    parts = with_constant(problem, dense), problem.origin, dense
    w, mu = cd_dual_pass(*parts, first, np.random.default_rng(3))
    np.testing.assert_allclose(state.v, w, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(state.mu.ravel(), mu, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("subproblem", ["newton", "bisection", "line-search", "multiplier"])
@pytest.mark.parametrize("name", ["dense-C=1", "sparse-C=10000", "weights", "soft", "dense-K=7"])
def test_every_pass_of_cd_dual_increases_the_dual(name, subproblem):
    """However roughly a block is solved ("multiplier" leaves a tenth of its progress), never downhill."""
    problem, dense = of_positive_weight(name)
    method = solvers.CDDual(subproblem=subproblem)
    state = method.init(problem, None)
    before = dense.dual(state.mu.ravel())
    for _ in range(15):
        method.step(problem, state)
        assert_distributions(state.mu, None)
        after = dense.dual(state.mu.ravel())
        assert after >= before - 1e-13 * abs(before)
        before = after


def sgd_passes(dense, eta0, passes, rng):
    """collins2008 7.1.3: w ← w − η(n m_i ∇loss_i + λ w), η = eta0/(1 + k/n)."""
    n, w = dense.n, np.zeros(dense.F.shape[1])
    for k, i in enumerate(i for _ in range(passes) for i in rng.integers(n, size=n)):
        eta = eta0 / (1.0 + k / n)
        block = slice(dense.first[i], dense.first[i] + dense.counts[i])
        A, y = dense.F[block], dense.y[block]
        s = A @ w + (1.0 - y if dense.hinge else 0.0)
        nu = np.eye(len(s))[np.argmax(s)] if dense.hinge else np.exp(s - np.logaddexp.reduce(s))
        w = (1.0 - eta * dense.lam) * w - eta * n * dense.mass[i] * A.T @ (nu - y)
    return w


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("name", ["dense-C=1", "sparse-C=1", "weights", "joint-real-C=1"])
def test_two_passes_of_sgd_are_those_of_its_naive_twin(name, loss):
    problem, dense = of_positive_weight(name, loss)
    method = solvers.SGD(eta0=0.1, seed=5)
    state = method.init(problem, None)
    for _ in range(2):
        method.step(problem, state)
    w = sgd_passes(dense, 0.1, 2, np.random.default_rng(5))
    np.testing.assert_allclose(state.v, w, rtol=1e-9, atol=1e-12)


# ---- warm starts

WARM = {
    **dict.fromkeys(("newton", "lbfgs", "tron", "cd-primal", "gis", "iis", "scgis", "sm-q", "sm-g1"), 1.0),
    **dict.fromkeys(DUAL, 12.0),  # their first check comes after ten passes
    **dict.fromkeys(("sag", "sag-nus"), 50.0),  # the gradients of all examples are collected anew
}


@pytest.mark.parametrize("name", ["dense-C=1", "sparse-C=1-free", "soft-free", "joint-binary-C=1"])
@pytest.mark.parametrize("solver", WARM)
def test_a_warm_start_from_the_result_converges_at_once(solver, name):
    if CASES[name].joint and solver.startswith("sm-"):
        pytest.skip("not for candidates")
    problem = CASES[name].problem()
    first = solve(problem, solver, tol=1e-6, max_passes=1e5)
    again = solve(problem, solver, tol=1.1e-6, max_passes=1e5, start=first.start)
    assert again.status is Status.CONVERGED
    assert again.certificate.passes <= WARM[solver]
    assert_certified(again, problem, CASES[name].dense(), optimum(name)[0])


@pytest.mark.parametrize("name", ["dense-C=1", "dense-C=0.0001", "sparse-C=1", "joint-real-C=1"])
@pytest.mark.parametrize("solver", ["cd-dual", "sdca", "eg"])
def test_a_warm_start_of_the_hinge_loss_keeps_its_dual_variables(solver, name):
    problem = CASES[name].problem(loss="hinge")
    first = solve(problem, solver, tol=1e-2, max_passes=1e4)
    again = solve(problem, solver, tol=1e-2, max_passes=1e4, start=first.start)
    assert first.status is again.status is Status.CONVERGED
    assert again.certificate.dual >= first.certificate.dual * (1.0 - 1e-9)
    assert again.certificate.passes <= first.certificate.passes


@pytest.mark.parametrize("solver", DUAL)
def test_a_warm_start_carries_from_one_constant_to_the_next(solver):
    strong, weak = (CASES["sparse-C=1"]._replace(C=C).problem() for C in (1.0, 1.2))
    start = solve(strong, solver, tol=1e-4, max_passes=1e4).start
    warm = solve(weak, solver, tol=1e-4, max_passes=1e4, start=start)
    cold = solve(weak, solver, tol=1e-4, max_passes=1e4)
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-4)
    assert warm.certificate.passes <= cold.certificate.passes
