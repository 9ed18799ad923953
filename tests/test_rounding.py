"""Where rounding takes digits away the certificate pays for them: scores, values, constants of any size."""

from itertools import pairwise
from math import inf

import numpy as np
import pytest

from chains import NOTHING, Lattice, length, sequences
from fenchel import problems, solve
from fenchel.losses import Log
from fenchel.solvers import EG, SDCA
from fenchel.structures import base, lattice, lattice_lanes
from fenchel.trace import Status

STEEP = {"nodes": [[0.0, -1000.0], [0.0, 0.0], [-600.0, 0.0]], "edges": [[-460.0, -1000.0], [-1000.0, 0.0]]}


@pytest.mark.parametrize("scale", [1e3, 1e9, 1e18, 1e30, 1e300])
@pytest.mark.parametrize("shared", [True, False])
def test_marginals_of_any_scores_are_those_of_the_best_sequences(scale, shared):
    T, K = 4, 3
    s = scale * np.random.default_rng(0).normal(size=length(T, K, 0 if shared else K * K))
    mu, levels = np.empty(s.size), np.empty(T)
    lattice.forward_backward(T, K, s, 0 if shared else K * K, NOTHING, mu, levels)
    brute = Lattice(T, K, s, 0 if shared else K * K)
    assert levels.sum() == pytest.approx(brute.log_partition, rel=1e-12)
    np.testing.assert_allclose(mu, brute.marginals, atol=1e-9)


def by_lanes(nodes, edges):
    """log Z and marginals of nodes by the kernel with vector registers."""
    T, K = nodes.shape
    width = lattice_lanes.padded(K)
    x, table = np.zeros((T, width)), np.zeros((K, width))
    x[:, :K], table[:, :K] = nodes, edges
    mu, pairs = np.zeros(T * width), np.zeros(K * width)
    room, labels = lattice_lanes.Room.of(T, K, width), lattice_lanes.Labels.of(K)
    level = lattice_lanes.marginals(np.uint64(T), labels, x.ravel(), table.ravel(), room, mu, pairs)
    return level, mu.reshape(T, width)[:, :K]


def test_vector_registers_leave_steep_steps_to_logarithms():
    level, _ = by_lanes(np.array(STEEP["nodes"]), np.array(STEEP["edges"]))
    assert np.isnan(level)  # it is −999.3, and was −707.3 once


def test_vector_registers_agree_with_the_list_of_sequences_at_large_scores():
    rng, answered = np.random.default_rng(1), 0
    for _ in range(500):
        T, K = rng.integers(1, 5), rng.integers(1, 5)
        nodes, edges = 10.0 ** rng.uniform(0, 4) * rng.normal(size=(T, K)), 300.0 * rng.normal(size=(K, K))
        brute = Lattice(T, K, np.concatenate([nodes.ravel(), edges.ravel()]), 0)
        level, mu = by_lanes(nodes, edges)
        if not np.isnan(level):
            assert level == pytest.approx(brute.log_partition, rel=1e-12, abs=1e-9)
            np.testing.assert_allclose(mu.ravel(), brute.marginals[: T * K], atol=1e-9)
        answered += not np.isnan(level)
    assert 100 < answered < 500


# ---- chains with large values and constants


def chain_objective(X, y, starts, K, lam, w):
    """P of a log-loss chain with a table of transitions, every sequence listed, in extended precision."""
    w = w.astype(np.longdouble)
    W, table = w[: X.shape[1] * K].reshape(-1, K), w[X.shape[1] * K :].reshape(K, K)
    total = np.longdouble(0.0)
    for a, b in pairwise(starts):
        every, scores = sequences(b - a, K), X[a:b].astype(np.longdouble) @ W
        truth = y[a:b]
        less = scores - scores[np.arange(b - a), truth][:, None]
        s = less[np.arange(b - a), every].sum(axis=1)
        s = s + (table[every[:, :-1], every[:, 1:]] - table[truth[:-1], truth[1:]]).sum(axis=1)
        top = s.max()
        total += top + np.log(np.exp(s - top).sum())
    return total / (len(starts) - 1) + lam / 2 * (w @ w)


def small_chain(scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    starts = np.array([0, 3, 5, 9])
    return scale * rng.normal(size=(9, 4)), rng.integers(0, 2, size=9), starts


def never_false(result, objectives, allowed=1e-12):
    """The bound is not above the least objective known, and nothing infinite has converged."""
    best = min(objectives)
    assert result.certificate.dual <= best * (1.0 + allowed)
    assert result.status is not Status.CONVERGED or np.isfinite(result.certificate.primal)


@pytest.mark.parametrize("solver", ["sgd", "sdca", "lbfgs", "eg", "tron", "sag"])
def test_a_raw_timestamp_in_a_chain_divides_nothing_by_zero(solver):
    X, y, starts = small_chain()
    X[:, 0] = 1.7e18
    problem = problems.chain(X, y, starts, C=1.0)
    result = solve(problem, solver, max_passes=20)
    assert result.certificate.primal <= problem.value_at_zero * (1.0 + 1e-12)
    never_false(result, [chain_objective(X, y, starts, 2, problem.lam, result.w), problem.value_at_zero])


@pytest.mark.parametrize("solver", ["sdca", "eg", "eg-gap", "lbfgs"])
@pytest.mark.parametrize("C", [1e6, 1e10, 1e12, 1e14])
def test_no_bound_above_the_optimum_of_separable_chains_at_large_constants(solver, C):
    X, y, starts = small_chain()
    X[:, 0] = 2.0 * y - 1.0  # separable
    problem = problems.chain(X, y, starts, C=C)
    found = [solve(problem, each, tol=1e-9, max_passes=300) for each in {solver, "tron", "lbfgs"}]
    objectives = [chain_objective(X, y, starts, 2, problem.lam, result.w) for result in found]
    for result in found:
        never_false(result, objectives)


def test_the_cost_of_a_wrong_label_counts_among_what_is_rounded():
    """Scores and costs cancel where the margin is met: P of 1e-8 is a difference of numbers of size 1."""
    X, y, starts = small_chain()
    X[:, 0] = 2.0 * y - 1.0
    problem = problems.chain(X, y, starts, C=1e8, loss="hinge")
    assert problem.extent.cost == 1.0 and problems.chain(X, y, starts).extent.cost == 0.0
    found = [
        solve(problem, each, tol=1e-9, max_passes=300)
        for each in ("cutting-plane", "sdca", "eg", "cd-outputs")
    ]
    best = min(problem.value_at(result.w)[0] for result in found)
    for result in found:
        never_false(result, [best])


# ---- flat models


@pytest.mark.parametrize("solver", ["sdca", "cd-dual", "eg", "eg-batch", "sag", "lbfgs"])
@pytest.mark.parametrize("size", [1e13, 1e20, 1e60])
def test_no_bound_above_the_optimum_where_one_value_is_huge(solver, size):
    X = np.random.default_rng(0).standard_normal((8, 2))
    X[0, 0] = size
    problem = problems.flat(X, [0, 1, 2, 0, 1, 2, 0, 1], C=0.1)
    result = solve(problem, solver, max_passes=200)
    best = solve(problem, "newton", max_passes=200).certificate.primal
    never_false(result, [best, result.certificate.primal])
    assert result.certificate.primal <= np.log(3.0) * (1.0 + 1e-12)


def test_a_value_whose_square_overflows_is_refused():
    X = np.random.default_rng(0).standard_normal((8, 2))
    X[3, 1] = -1e155
    with pytest.raises(ValueError, match=r"X contains 1e\+155, whose square overflows; scale that column"):
        problems.binary(X, [0, 1] * 4)


@pytest.mark.parametrize("make", [problems.flat, problems.binary])
@pytest.mark.parametrize("solver, C", [("sdca", 1e200), ("eg", 1e160), ("eg", 1e200), ("cd-dual", 1e250)])
@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_an_infinite_objective_never_converges(make, solver, C, loss):
    rng = np.random.default_rng(0)
    problem = make(rng.standard_normal((12, 3)), rng.integers(0, 2, 12), C=C, loss=loss)
    result = solve(problem, solver, max_passes=50)
    assert np.isfinite(result.certificate.primal)
    assert result.certificate.primal <= problem.value_at_zero * (1.0 + 1e-12)
    never_false(result, [result.certificate.primal])


# ---- entropies


def test_an_entropy_below_zero_reads_nobody_elses_memory():
    X, y, starts = small_chain()
    problem = problems.chain(X, y, starts, C=1.0)
    assert problem.blocks.layout.stride == 0
    length_of_first = int(problem.blocks.layout.offsets[1])
    memory = np.full(problem.shape, np.nan)  # whatever lies behind the block
    s = np.zeros(length_of_first)
    loss = base.block_marginals(problem.blocks, 0, s, memory[:length_of_first])
    for entropy in (-1e-18, -1.0, np.nan):
        gap = base.block_divergence(problem.blocks, 0, memory[:length_of_first], entropy, s, loss)
        assert np.isfinite(gap) and gap >= 0.0


@pytest.mark.parametrize("solver", [EG(), EG(order="gap"), EG(batch=True), EG(anneal=8.0)])
def test_entropies_of_exponentiated_gradient_are_never_negative(solver):
    X, y, starts = small_chain(scale=30.0)
    problem = problems.chain(np.abs(X) > 10.0, y, starts, C=1e8)
    state = solver.init(problem, None)
    for _ in range(30):
        solver.step(problem, state)
        assert (state.entropies >= 0.0).all()


def test_rounding_in_the_gap_of_a_dual_point_is_of_the_size_of_the_scores():
    """w(μ) is computed anew: weights that drifted cannot lend a point a better bound than it has."""
    rng = np.random.default_rng(0)
    problem = problems.flat(rng.standard_normal((30, 4)), rng.integers(0, 3, 30), C=10.0)
    solver = SDCA()
    state = solver.init(problem, None)
    for _ in range(5):
        solver.step(problem, state)
    before = solver.point(problem, state)
    state.v += rng.normal(size=state.v.size)
    after = solver.point(problem, state)
    assert after.dual == before.dual and after.dual == pytest.approx(problem.dual(state.mu), rel=1e-12)
    assert isinstance(problem.loss, Log) and after.dual > -inf


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_marginals_whose_sums_drifted_prove_nothing_false(loss):
    """Sums off by 1e-13, as after a thousand updates, times scores of 1e24: once a dual of 2e9 above P."""
    rng = np.random.default_rng(3)
    F, starts = 3e19 * rng.integers(0, 4, size=(14, 2)).astype(float), np.array([0, 3, 5, 9, 12, 14])
    problem = problems.joint(F, np.array([0, 1, 2, 0, 1]), starts, lam=0.9, loss=loss)
    for _ in range(50):
        mu = rng.dirichlet(np.ones(14))
        for begin, end in pairwise(starts):
            mu[begin:end] *= (1.0 + 1e-13 * rng.normal()) / mu[begin:end].sum()
        assert problem.dual_point(mu).dual <= problem.value_at_zero
