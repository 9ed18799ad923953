"""Dynamic programs on a lattice against the list of all sequences."""

from math import inf

import numpy as np
import pytest

from chains import NOTHING, Lattice, allowed, length, sequences
from fenchel.structures import lattice, lattice_covariance, lattice_entropy

SIZES = [(T, K) for T in range(1, 6) for K in range(1, 5)]
SCALES = (0.0, 1.0, 10.0, 1e3)
KINDS = ("finite", "ties", "banned", "impossible nodes")


def draw(T, K, stride, scale, kind, seed=0):
    """Scores and a table of banned pairs, or None."""
    rng = np.random.default_rng([T, K, stride, int(scale), KINDS.index(kind), seed])
    s = scale * rng.normal(size=length(T, K, stride))
    if kind == "ties":
        s = scale * rng.integers(-1, 2, size=s.size).astype(float)
    if kind == "impossible nodes":
        s[rng.uniform(size=s.size) < 0.25] = -inf
    banned = rng.uniform(size=(K, K)) < 0.4 if kind == "banned" else None
    return s, banned


def as_flags(banned):
    return NOTHING if banned is None else banned.astype(np.uint8).ravel()


def cases(K_squared=True, shared=True):
    """(T, K, s, stride, banned) of all sizes, scales and kinds."""
    for T, K in SIZES:
        strides = [K * K] * K_squared + [0] * shared
        for stride in dict.fromkeys(strides):
            for scale in SCALES:
                for kind in KINDS:
                    s, banned = draw(T, K, stride, scale, kind)
                    yield T, K, s, stride, banned


def run(kernel, T, K, s, stride, banned=None):
    """(log Z, marginals) by a forward-backward kernel."""
    mu, levels = np.full(s.size, np.nan), np.full(T, np.nan)
    kernel(T, K, s, stride, as_flags(banned), mu, levels)
    return levels.sum(), mu


KERNELS = [lattice.forward_backward, lattice.log_forward_backward]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_log_partition_and_marginals_are_those_of_the_list_of_sequences(kernel):
    for T, K, s, stride, banned in cases():
        brute = Lattice(T, K, s, stride, banned)
        level, mu = run(kernel, T, K, s, stride, banned)
        assert level == pytest.approx(brute.log_partition, rel=1e-12, abs=1e-10)
        np.testing.assert_allclose(mu, brute.marginals, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("stride", [0, 9])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_where_no_sequence_can_be_log_z_is_minus_infinity_and_marginals_are_zero(kernel, stride):
    s = np.zeros(length(3, 3, stride))
    level, mu = run(kernel, 3, 3, s, stride, np.ones((3, 3), bool))
    assert level == -inf and not mu.any()
    s[3:6] = -inf
    level, mu = run(kernel, 3, 3, s, stride)
    assert level == -inf and not mu.any()


@pytest.mark.parametrize(
    "kernel",
    [lattice.forward_backward, lattice.log_forward_backward],
    ids=["scaled", "logarithms"],
)
def test_a_path_that_is_unlikely_at_first_and_the_only_good_one_later_is_not_lost(kernel):
    """Label 1 cannot follow 0: its prefix is e^−1000 of the other's, its whole e^50 times the other."""
    T, K, stride = 6, 2, 0
    s = np.zeros(length(T, K, stride))
    s[[1, 3]] = -500.0
    s[[5, 7, 9]] = 350.0
    banned = np.array([[False, True], [False, False]])
    brute = Lattice(T, K, s, stride, banned)
    level, mu = run(kernel, T, K, s, stride, banned)
    assert brute.log_partition == pytest.approx(50.0 + np.log(2.0), rel=1e-9)
    assert level == pytest.approx(brute.log_partition, rel=1e-12)
    np.testing.assert_allclose(mu, brute.marginals, rtol=1e-9, atol=1e-11)


def test_marginals_are_the_gradient_of_log_z():
    T, K = 4, 3
    for stride in (0, K * K):
        s, _ = draw(T, K, stride, 1.0, "finite")
        _, mu = run(lattice.forward_backward, T, K, s, stride)
        for j in range(s.size):
            step = 1e-5 * np.eye(s.size)[j]
            up, _ = run(lattice.forward_backward, T, K, s + step, stride)
            down, _ = run(lattice.forward_backward, T, K, s - step, stride)
            assert mu[j] == pytest.approx((up - down) / 2e-5, abs=1e-9)


@pytest.mark.parametrize(
    "stride, scale",
    [(0, 3.0), (9, 3.0), (0, 2e3), (9, 2e3)],
)
def test_a_chain_of_ten_thousand_tokens_neither_underflows_nor_drifts(stride, scale):
    T, K = 10_000, 3
    s = scale * np.random.default_rng(0).normal(size=length(T, K, stride))
    level, mu = run(lattice.forward_backward, T, K, s, stride)
    assert np.isfinite(level) and np.isfinite(mu).all()
    slow, _ = run(lattice.log_forward_backward, T, K, s, stride)
    assert level == pytest.approx(slow, rel=1e-11)
    np.testing.assert_allclose(mu[: T * K].reshape(T, K).sum(axis=1), 1.0, rtol=0.0, atol=1e-9)
    edges = mu[T * K :].sum() if stride == 0 else mu[T * K :].reshape(T - 1, -1).sum(axis=1)
    np.testing.assert_allclose(edges, T - 1 if stride == 0 else 1.0, rtol=1e-9)


def test_five_hundred_labels():
    T, K = 3, 500
    s = np.random.default_rng(1).normal(size=length(T, K, 0))
    level, mu = run(lattice.forward_backward, T, K, s, 0)
    nodes, table = s[: T * K].reshape(T, K), s[T * K :].reshape(K, K)
    alpha = nodes[0]
    for t in range(1, T):
        alpha = nodes[t] + np.logaddexp.reduce(alpha[:, None] + table, axis=0)
    assert level == pytest.approx(np.logaddexp.reduce(alpha), rel=1e-12)
    np.testing.assert_allclose(mu[: T * K].reshape(T, K).sum(axis=1), 1.0, atol=1e-12)
    labels, best = np.empty(T, np.int64), nodes[0]
    score = lattice.viterbi(T, K, s, 0, NOTHING, labels)
    for t in range(1, T):
        best = nodes[t] + (best[:, None] + table).max(axis=0)
    assert score == pytest.approx(best.max(), rel=1e-12)
    assert score == pytest.approx(nodes[range(T), labels].sum() + table[labels[:-1], labels[1:]].sum())


# ---- best sequences


def tie_to_the_smaller(brute):
    """Of the best sequences the one whose last label is smallest, then the label before it, and so on."""
    best = brute.y[brute.scores == brute.scores.max()]
    return min(best.tolist(), key=lambda labels: labels[::-1])


def test_viterbi_finds_the_best_sequence_and_ties_go_to_the_smaller_label():
    for T, K, s, stride, banned in cases():
        brute = Lattice(T, K, s, stride, banned)
        labels = np.full(T, -1)
        score = lattice.viterbi(T, K, s, stride, as_flags(banned), labels)
        if not len(brute.scores):
            assert score == -inf and ((labels >= 0) & (labels < K)).all()
            continue
        assert score == pytest.approx(brute.scores.max(), rel=1e-12, abs=1e-12)
        if (s == np.round(s)).all():  # where sums are exact
            assert labels.tolist() == tie_to_the_smaller(brute)
        at = np.flatnonzero((brute.y == labels).all(axis=1))
        assert brute.scores[at[0]] == pytest.approx(score, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("k", [1, 5, 2000])
def test_the_k_best_sequences_are_the_first_of_the_sorted_list(k):
    for T, K, s, stride, banned in cases():
        brute = Lattice(T, K, s, stride, banned)
        labels, scores = np.full((k, T), -1), np.full(k, np.nan)
        count = lattice.best_sequences(T, K, s, stride, as_flags(banned), labels, scores)
        assert count == min(k, len(brute.scores))
        best = np.sort(brute.scores)[::-1][:count]
        np.testing.assert_allclose(scores[:count], best, rtol=1e-12, atol=1e-12)
        assert len(np.unique(labels[:count], axis=0)) == count
        if banned is not None:
            assert allowed(labels[:count], banned).all()
        numbers = labels[:count] @ K ** np.arange(T - 1, -1, -1)
        of_all = np.full(K**T, -inf)
        of_all[brute.y @ K ** np.arange(T - 1, -1, -1)] = brute.scores
        np.testing.assert_allclose(of_all[numbers], scores[:count], rtol=1e-12, atol=1e-12)


def test_the_best_of_the_k_best_is_viterbis():
    for T, K, s, stride, banned in cases():
        labels, one, scores = np.zeros(T, np.int64), np.zeros((1, T), np.int64), np.zeros(1)
        score = lattice.viterbi(T, K, s, stride, as_flags(banned), labels)
        if lattice.best_sequences(T, K, s, stride, as_flags(banned), one, scores):
            assert scores[0] == pytest.approx(score, rel=1e-12) and one[0].tolist() == labels.tolist()


def test_there_are_as_many_sequences_as_labels_to_the_power_of_tokens():
    for T, K in SIZES:
        labels, scores = np.zeros((1100, T), np.int64), np.zeros(1100)
        s = np.zeros(length(T, K, 0))
        assert lattice.best_sequences(T, K, s, 0, NOTHING, labels, scores) == K**T == len(sequences(T, K))


# ---- what pair marginals determine


def test_entropy_of_pair_marginals_is_that_of_the_sequences():
    for T, K, s, stride, banned in cases(shared=False):
        brute = Lattice(T, K, s, stride, banned)
        if len(brute.scores):
            assert lattice_entropy.entropy(T, K, brute.marginals) == pytest.approx(
                brute.entropy, rel=1e-9, abs=1e-11
            )


def test_entropy_slopes_are_the_differences_of_the_entropy():
    for T, K in SIZES:
        a, b = (draw(T, K, K * K, 1.0, "finite", seed)[0] for seed in (1, 2))
        mu = Lattice(T, K, a, K * K).marginals
        delta = Lattice(T, K, b, K * K).marginals - mu

        def entropy(gamma, T=T, K=K, mu=mu, delta=delta):
            return lattice_entropy.entropy(T, K, mu + gamma * delta)

        for gamma in (0.2, 0.5, 0.9):
            slope, bend = lattice_entropy.entropy_slopes(T, K, mu, delta, gamma)
            h = 1e-4
            near = [entropy(gamma + step) for step in (-h, 0.0, h)]
            assert slope == pytest.approx((near[2] - near[0]) / (2 * h), abs=1e-6)
            assert bend == pytest.approx((near[2] - 2 * near[1] + near[0]) / h**2, rel=1e-4, abs=1e-4)


# ---- second derivatives


def test_covariance_is_that_of_the_list_of_sequences():
    rng = np.random.default_rng(3)
    for T, K, s, stride, banned in cases():
        brute = Lattice(T, K, s, stride, banned)
        if not len(brute.scores):
            continue
        direction, out = rng.normal(size=s.size), np.full(s.size, np.nan)
        lattice_covariance.covariance(T, K, s, stride, as_flags(banned), direction, out)
        np.testing.assert_allclose(out, brute.covariance(direction), rtol=1e-8, atol=1e-10)


def test_covariance_is_the_change_of_the_marginals():
    T, K = 5, 3
    for stride in (0, K * K):
        s, _ = draw(T, K, stride, 1.0, "finite")
        direction, out = np.random.default_rng(4).normal(size=s.size), np.empty(s.size)
        lattice_covariance.covariance(T, K, s, stride, NOTHING, direction, out)
        _, up = run(lattice.forward_backward, T, K, s + 1e-5 * direction, stride)
        _, down = run(lattice.forward_backward, T, K, s - 1e-5 * direction, stride)
        np.testing.assert_allclose(out, (up - down) / 2e-5, atol=1e-8)


def test_scores_of_a_shared_table_are_copied_to_every_edge():
    T, K = 4, 2
    s, _ = draw(T, K, 0, 1.0, "finite")
    out = np.empty(length(T, K, K * K))
    lattice_covariance.unshare(T, K, s, 0, out)
    np.testing.assert_array_equal(out[: T * K], s[: T * K])
    np.testing.assert_array_equal(out[T * K :], np.tile(s[T * K :], T - 1))
    assert run(lattice.forward_backward, T, K, out, K * K)[0] == pytest.approx(
        run(lattice.forward_backward, T, K, s, 0)[0]
    )
