"""The arranged kernels of EG for chains do what the general ones do, only faster."""

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel import problems, solve, solvers
from fenchel.solvers.eg.chain import Arrangement
from fenchel.solvers.eg.sentences import suits
from fenchel.structures import lattice, lattice_lanes
from fenchel.structures.lattice_lanes import Labels, Room, padded
from fenchel.trace import Status

KINDS = {
    "all weights": {},
    "weights": {"sample_weight": np.random.default_rng(1).random(25) + 0.5},
    "observed": {"observed": True},
    "any mask": {"half": True},
    "real": {"real": True},
    "real, observed": {"real": True, "observed": True},
    "banned": {"bans": True, "K": 9},
    "banned, observed": {"bans": True, "K": 9, "observed": True},
    "no transitions": {"transitions": False},
    "nine labels": {"K": 9},  # the weights of the last are implied
    "nine labels, real": {"K": 9, "real": True},
    "edges": {"edges": 3},
    "edges, observed": {"edges": 3, "observed": True, "K": 9},
    "edges, any mask": {"edges": 3, "half": True},
    "edges, real": {"edges": 3, "real": True, "transitions": False},
    "edges, banned": {"edges": 3, "bans": True, "K": 9},
}


def chain(K=4, C=1.0, n=25, seed=0, longest=7, real=False, bans=False, half=False, edges=0, **settings):
    """Sentences of 0/1 attributes, some of which occur once only; every fifth has one token.

    real: attributes are numbers. bans: every other transition that does not occur. half: of the weights.
    edges: so many attributes of transitions; some have none, and first tokens have them to no effect.
    """
    rng = np.random.default_rng(seed)
    lengths = np.where(np.arange(n) % 5 == 0, 1, rng.integers(1, longest + 1, n))
    N = int(lengths.sum())
    X = sp.csr_matrix((rng.random((N, 12)) < 0.3).astype(float))
    X = sp.hstack([X, sp.eye(N, format="csr")[:, ::3]], format="csr")  # a third of the tokens has its own
    if edges:
        settings["edges"] = sp.csr_matrix((rng.random((N, edges)) < 0.5).astype(float))
    if real:
        X.data[:] = rng.normal(size=X.nnz)
        for matrix in [settings["edges"]] if edges else []:
            matrix.data[:] = rng.integers(1, 3, matrix.nnz)  # rows that are the same but for their values
    y, starts = rng.integers(K, size=N), np.concatenate([[0], np.cumsum(lengths)])
    if bans:
        settings["banned"] = absent_pairs(y, starts, K) & (np.arange(K * K).reshape(K, K) % 2 == 0)
    if half:
        settings["observed"] = rng.random(X.shape[1] * K + (1 + edges) * K * K) < 0.5
    return problems.chain(X, y, starts, labels=K, C=C, **settings)


def absent_pairs(y, starts, K):
    """(K, K) bool: the pairs of labels that do not occur."""
    absent, inside = np.ones((K, K), bool), np.setdiff1d(np.arange(1, y.size), starts)
    absent[y[inside - 1], y[inside]] = False
    return absent


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
        mu, pairs = np.empty(T * width), np.empty(K * width)
        room, labels = Room.of(T, K, width), Labels.of(K)
        level = lattice_lanes.marginals(np.uint64(T), labels, x.ravel(), edges.ravel(), room, mu, pairs)
        if np.isnan(level):
            assert scale == 1e3  # too far apart for scaled probabilities
            continue
        assert level == pytest.approx(levels.sum(), rel=1e-12, abs=1e-9)
        found = mu.reshape(T, width)[:, :K].ravel(), pairs.reshape(K, width)[:, :K].ravel()
        np.testing.assert_allclose(np.concatenate(found), plain, rtol=1e-8, atol=1e-11)
        assert not mu.reshape(T, width)[:, K:].any()


def test_a_mask_holds_where_every_attribute_has_one_token():
    X, observed = sp.eye(6, format="csr"), np.ones(6 * 2 + 4, bool)
    observed[[1, 4, 15]] = False
    problem = problems.chain(X, [0, 1, 1, 0, 0, 1], [0, 3, 6], labels=2, observed=observed)
    problem_of_all = problems.chain(X, [0, 1, 1, 0, 0, 1], [0, 3, 6], labels=2, observed=True)
    for each in (problem, problem_of_all):
        result = solve(each, "eg", tol=1e-8)
        assert result.status is Status.CONVERGED and not result.w[~each.structure.mask].any()


def test_chains_with_the_log_loss_are_arranged():
    assert all(suits(chain(**kind)) for kind in KINDS.values())
    assert not suits(chain(loss="hinge"))
    assert not suits(chain().entropic)


def marginals_of(arranged, problem):
    """μ of all nodes, then of the edges of each sentence."""
    K, width = problem.structure.labels, int(arranged.sentences.labels.width)
    places, edges = np.argsort(arranged.origin.labels), arranged.dual.edge_mu.reshape(-1, K, width)
    nodes = arranged.dual.mu[arranged.sentences.places[:, None] + places]
    return np.concatenate([nodes.ravel(), edges[:, places][:, :, places].ravel()])


def by_kind(mu, problem):
    """The same of μ in the problem's own layout."""
    K, lengths = problem.structure.labels, np.diff(problem.examples.starts.astype(int))
    blocks = np.split(mu, problem.structure.offsets(problem.examples.starts)[1:-1].astype(int))
    pairs = list(zip(blocks, lengths, strict=True))
    edges = [b[T * K :].reshape(-1, K * K).sum(axis=0) for b, T in pairs]
    return np.concatenate([b[: T * K] for b, T in pairs] + edges)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_moves_the_dual_as_the_general_kernels_do(monkeypatch, kind):
    problem, solver = chain(**KINDS[kind]), solvers.EG(order="cyclic")
    monkeypatch.setattr("fenchel.solvers.eg.chain.proximal_penalty", lambda problem: 0.0)
    fast = solver.init(problem, None)
    assert fast.arranged is not None
    monkeypatch.setattr("fenchel.solvers.eg.solver.suits", lambda problem: False)
    slow = solver.init(problem, None)
    for _ in range(3):
        solver.step(problem, fast)
        solver.step(problem, slow)
        np.testing.assert_allclose(
            marginals_of(fast.arranged, problem), by_kind(slow.mu, problem), atol=1e-10
        )
        np.testing.assert_allclose(fast.entropies, slow.entropies, rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(fast.gaps, slow.gaps, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(fast.rates, slow.rates)
        assert fast.arranged.penalty() == pytest.approx(0.5 * problem.lam * slow.v @ slow.v, rel=1e-8)
        np.testing.assert_allclose(fast.arranged.weights(problem), slow.v, atol=1e-9 * np.abs(slow.v).max())
        one, other = solver.point(problem, fast), solver.point(problem, slow)
        assert one.primal == pytest.approx(other.primal, rel=1e-10)
        assert one.gap == pytest.approx(other.gap, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("settings", [{"observed": True}, {"observed": True, "l1_ratio": 0.3, "C": 100.0}])
def test_marginals_of_edges_need_not_be_kept(monkeypatch, settings):
    """They are computed again from θ: the same visits, the same certificate, the same weights."""
    problem, solver = chain(**settings), solvers.EG(order="gap")
    states = []
    for room in (2**30, 0):
        monkeypatch.setattr("fenchel.solvers.eg.chain.PAIRS", room)
        assert solver.copies(problem) == pytest.approx(2 if room else 2 - 25 * 16 / problem.shape[0])
        states.append(solver.init(problem, None))
    assert states[1].arranged.dual.edge_mu.size == 0
    for _ in range(12):  # w(μ) is renewed in the tenth
        for state in states:
            solver.step(problem, state)
        one, other = (solver.point(problem, state) for state in states)
        assert one.primal == pytest.approx(other.primal, rel=1e-12)
        assert one.gap == pytest.approx(other.gap, rel=1e-8, abs=1e-12)
        np.testing.assert_allclose(one.w, other.w, atol=1e-10)


@pytest.mark.parametrize("kind", ["observed", "edges", "edges, observed", "edges, real"])
def test_theta_goes_in_and_out(kind):
    """What a warm start brings, and what scores too far apart take to the general kernels."""
    problem = chain(**KINDS[kind])
    w = np.random.default_rng(4).normal(size=problem.dim)
    w[~problem.structure.mask if problem.structure.mask is not None else []] = 0.0
    theta, arranged = problem.scores(w), Arrangement(problem)
    arranged.begin_at(problem, theta)
    np.testing.assert_allclose(arranged.theta(problem), theta, atol=1e-12)


def test_observed_attributes_of_edges_take_little_room():
    """A kind of edge has numbers where it has weights: here each has one, where all weights are 22 · 22."""
    y = np.random.default_rng(0).integers(22, size=60)
    given = {"labels": 22, "edges": sp.eye(60, format="csr")}
    full, few = (
        problems.chain(np.ones((60, 1)), y, np.arange(0, 61, 10), observed=observed, **given)
        for observed in (False, True)
    )
    numbers = [int(Arrangement(problem).sentences.begins[-1]) - 60 * 24 for problem in (full, few)]
    assert numbers == [54 * 22 * 24, 54 * 8]
    assert solvers.EG().copies(few) < 0.3 * solvers.EG().copies(full) < 0.3 * 2.3


CASES = [("all weights", order, C) for order in ("random", "cyclic", "gap") for C in (1e-6, 1e-2, 1.0, 1e2)]
CASES += [(kind, "gap", C) for kind in KINDS if kind != "all weights" for C in (1e-2, 1.0)]


@pytest.mark.parametrize("kind, order, C", CASES)
def test_it_reaches_the_optimum(kind, order, C):
    problem = chain(C=C, **KINDS[kind])
    best = solve(problem, "tron", tol=1e-9, max_passes=20_000).certificate
    result = solve(problem, solvers.EG(order=order), tol=1e-5, max_passes=20_000)
    assert result.status is Status.CONVERGED
    assert result.certificate.primal <= best.primal * (1.0 + 1e-5) + 1e-15
    assert all(row.primal >= row.dual for row in result.trace)


@pytest.mark.parametrize("shared", [1, 60])
def test_no_first_score_is_far_from_zero(monkeypatch, shared):
    """However many attributes all tokens have in common: from far away the first passes undo each other."""
    monkeypatch.setattr("fenchel.solvers.eg.chain.proximal_penalty", lambda problem: 0.0)
    rng, N = np.random.default_rng(3), 600
    y = (rng.random(N) < 0.2).astype(int)
    problem = problems.chain(np.ones((N, shared)), y, np.arange(0, N + 1, 6), C=200.0)
    states = [solvers.EG(first=first).init(problem, None) for first in (None, 10.0)]
    by_default, by_ten = (np.abs(problem.scores(s.arranged.weights(problem))).max() for s in states)
    assert by_default < 20.0
    assert shared == 1 or by_ten > 3.0 * by_default


@pytest.mark.parametrize("C", [1e4, 1e6])
def test_almost_no_penalty_leaves_a_true_certificate(C):
    problem = chain(C=C)
    best = solve(problem, "tron", tol=1e-6, max_passes=3000).certificate
    certificate = solve(problem, solvers.EG(order="gap"), tol=1e-3, max_passes=500).certificate
    assert certificate.dual <= best.primal * (1.0 + 1e-6) and certificate.primal >= best.dual * (1.0 - 1e-6)


def test_a_warm_start_is_never_worse_than_none():
    far = solve(chain(C=1e-3), "eg", tol=1e-6)
    problem = chain(C=100.0)
    cold = solve(problem, "eg", tol=1e-4, max_passes=5000)
    warm = solve(problem, "eg", tol=1e-4, max_passes=5000, start=far.start)
    near = solve(problem, "eg", tol=1e-4, max_passes=5000, start=cold.start)
    assert warm.status is near.status is Status.CONVERGED
    assert warm.certificate.passes <= 1.5 * cold.certificate.passes
    assert near.certificate.passes < cold.certificate.passes


@pytest.mark.parametrize("begin", [False, True])
def test_scores_too_far_apart_leave_the_lane(monkeypatch, begin):
    """Attributes of size 1e3 at C = 1e3: θ soon has differences that no scaled probability can hold."""
    monkeypatch.setattr("fenchel.solvers.eg.chain.proximal_penalty", lambda problem: 0.0)
    rng = np.random.default_rng(0)
    X, y, starts = 1e3 * rng.normal(size=(30, 3)), rng.integers(3, size=30), np.arange(0, 31, 5)
    problem = problems.chain(X, y, starts, labels=3, C=1e3)
    solver, start = solvers.EG(order="cyclic", first=10.0), None  # by itself it begins farther ahead
    if begin:
        start = solve(problem, "lbfgs", max_passes=20).start
        start = start._replace(w=100.0 * start.w)
    state = solver.init(problem, start)
    for _ in range(5):
        solver.step(problem, state)
        point = solver.point(problem, state)
        assert point.dual <= problem.value_at_zero * (1.0 + 1e-12)
    assert state.arranged is None and np.isfinite(state.entropies).all()
