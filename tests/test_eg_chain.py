"""The arranged kernels of EG for chains do what the general ones do, only faster."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel.solvers.eg as eg
from fenchel import problems, solve, solvers
from fenchel.solvers.eg_chain import suits
from fenchel.structures import lattice, lattice_lanes
from fenchel.structures.lattice_lanes import Room, padded
from fenchel.trace import Status


def binary_chain(K=4, C=1.0, n=25, seed=0, longest=7, **settings):
    """Sentences of 0/1 attributes, some of which occur once only; every fifth has one token."""
    rng = np.random.default_rng(seed)
    lengths = np.where(np.arange(n) % 5 == 0, 1, rng.integers(1, longest + 1, n))
    N = int(lengths.sum())
    X = sp.csr_matrix((rng.random((N, 12)) < 0.3).astype(float))
    X = sp.hstack([X, sp.eye(N, format="csr")[:, ::3]], format="csr")  # a third of the tokens has its own
    y = rng.integers(K, size=N)
    return problems.chain(X, y, np.concatenate([[0], np.cumsum(lengths)]), labels=K, C=C, **settings)


@pytest.mark.parametrize("K", [1, 2, 5, 8, 9, 22])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e3])
def test_padded_marginals_are_the_plain_ones(K, scale):
    rng, width = np.random.default_rng(K), padded(K)
    for T in (1, 2, 6):
        s = scale * rng.normal(size=T * K + K * K)
        plain, levels = np.empty_like(s), np.empty(T)
        lattice.forward_backward(T, K, s, 0, np.empty(0, np.uint8), plain, levels)
        x, edges = np.zeros((T, width)), np.zeros((K, width))
        x[:, :K], edges[:, :K] = s[: T * K].reshape(T, K), s[T * K :].reshape(K, K)
        mu, pairs, mask = np.empty(T * width), np.empty(K * width), (np.arange(width) < K).astype(float)
        sizes = np.uint64(T), np.uint64(K), np.uint64(width)
        room = Room.of(T, K, width)
        level = lattice_lanes.marginals(*sizes, mask, x.ravel(), edges.ravel(), room, mu, pairs)
        assert level == pytest.approx(levels.sum(), rel=1e-12, abs=1e-9)
        found = mu.reshape(T, width)[:, :K].ravel(), pairs.reshape(K, width)[:, :K].ravel()
        np.testing.assert_allclose(np.concatenate(found), plain, rtol=1e-8, atol=1e-11)
        assert not mu.reshape(T, width)[:, K:].any()


def test_only_chains_of_all_weights_and_binary_attributes_are_arranged():
    assert suits(binary_chain())
    assert not suits(binary_chain(loss="hinge"))
    assert not suits(binary_chain(observed=True))
    assert not suits(binary_chain(transitions=False))
    assert not suits(problems.chain(np.full((3, 1), 0.5), [0, 1, 0], [0, 3]))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_pass_moves_the_dual_as_the_general_kernels_do(monkeypatch, weighted):
    weight = np.random.default_rng(1).random(25) + 0.5 if weighted else None
    problem, solver = binary_chain(sample_weight=weight), solvers.EG(order="cyclic")
    fast = solver.init(problem, None)
    assert fast.arranged is not None
    monkeypatch.setattr(eg, "suits", lambda problem: False)
    slow = solver.init(problem, None)
    for _ in range(3):
        solver.step(problem, fast)
        solver.step(problem, slow)
        np.testing.assert_allclose(fast.arranged.marginals(problem), slow.mu, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(fast.entropies, slow.entropies, rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(fast.gaps, slow.gaps, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(fast.rates, slow.rates)
        assert fast.arranged.squared_norm() == pytest.approx(slow.v @ slow.v, rel=1e-8)


@pytest.mark.parametrize("order", ["random", "cyclic", "gap"])
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e2])
def test_it_reaches_the_optimum(C, order):
    problem = binary_chain(C=C)
    best = solve(problem, "tron", tol=1e-9, max_passes=20_000).certificate
    result = solve(problem, solvers.EG(order=order), tol=1e-5, max_passes=20_000)
    assert result.status is Status.CONVERGED
    assert result.certificate.primal <= best.primal * (1.0 + 1e-5) + 1e-15
    assert all(row.primal >= row.dual for row in result.trace)


@pytest.mark.parametrize("C", [1e4, 1e6])
def test_almost_no_penalty_leaves_a_true_certificate(C):
    problem = binary_chain(C=C)
    best = solve(problem, "tron", tol=1e-6, max_passes=3000).certificate
    certificate = solve(problem, solvers.EG(order="gap"), tol=1e-3, max_passes=500).certificate
    assert certificate.dual <= best.primal * (1.0 + 1e-6) and certificate.primal >= best.dual * (1.0 - 1e-6)


def test_a_warm_start_is_never_worse_than_none():
    far = solve(binary_chain(C=1e-3), "eg", tol=1e-6)
    problem = binary_chain(C=100.0)
    cold = solve(problem, "eg", tol=1e-4, max_passes=5000)
    warm = solve(problem, "eg", tol=1e-4, max_passes=5000, start=far.start)
    near = solve(problem, "eg", tol=1e-4, max_passes=5000, start=cold.start)
    assert warm.status is near.status is Status.CONVERGED
    assert warm.certificate.passes <= 1.5 * cold.certificate.passes
    assert near.certificate.passes < cold.certificate.passes
