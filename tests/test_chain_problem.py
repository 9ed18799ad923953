"""The objective of chains, its derivatives and its dual against sums over all sequences written out."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from chains import Data, allow_only, parts_of, random_data
from fenchel import problems
from fenchel.structures import base

C = 0.7


def with_banned(seed=5):
    data = random_data(seed)
    data.banned = allow_only(data)
    return data


DATA = {
    "plain": random_data(),
    "edges": random_data(1, B=2),
    "edges alone": random_data(1, B=2, transitions=False),
    "no transitions": random_data(2, transitions=False),
    "negative": random_data(3, negative=True),
    "weights": random_data(4, weight=np.array([1.0, 0.5, 2.0, 0.0, 3.0, 1.0])),
    "banned": with_banned(),
    "one label": random_data(6, K=1),
    "two labels": random_data(7, K=2, lengths=(1, 5, 2)),
}
everywhere = pytest.mark.parametrize("name", DATA)


@cache
def pair(name, loss="log"):
    """The problem and its twin, all sequences written out."""
    data = DATA[name]
    if loss == "hinge":
        costs = np.random.default_rng(0).integers(0, 4, size=len(data.y)) / 2.0
        more = (data.edges, data.transitions, data.banned, data.weight, costs)
        data = Data(data.X, data.y, data.starts, data.K, *more)
    problem = data.problem(loss, C=C)
    return problem, kept(data).written_out(problem.lam, loss == "hinge")


def kept(data):
    """The same without the sequences of weight zero."""
    if data.weight is None:
        return data
    keep = np.flatnonzero(data.weight)
    tokens = np.concatenate([np.arange(data.starts[i], data.starts[i + 1]) for i in keep])
    starts = np.concatenate([[0], np.cumsum(np.diff(data.starts)[keep])])
    rest = (data.transitions, data.banned, data.weight[keep], data.costs[tokens])
    return Data(data.X[tokens], data.y[tokens], starts, data.K, data.edges[tokens], *rest)


def some_weights(problem, seed=0, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=problem.dim)


# ---- the primal


@everywhere
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_value_and_gradient_of_the_log_loss(name, scale):
    problem, brute = pair(name)
    w = some_weights(problem, scale=scale)
    now = problem.evaluate(w)
    assert now.value == pytest.approx(brute.primal(w), rel=1e-12)
    assert problem.value_at(w)[0] == pytest.approx(now.value, rel=1e-13)
    np.testing.assert_allclose(now.gradient, brute.gradient(w)[0], rtol=1e-9, atol=1e-11 * (1.0 + scale))


@everywhere
def test_value_and_subgradient_of_the_hinge_loss(name):
    problem, brute = pair(name, "hinge")
    w, other = some_weights(problem), some_weights(problem, 1)
    now = problem.evaluate(w)
    assert now.value == pytest.approx(brute.primal(w), rel=1e-12)
    assert brute.primal(other) >= now.value + now.gradient @ (other - w) - 1e-12


@everywhere
def test_gradient_and_hessian_are_the_differences(name):
    problem, _ = pair(name)
    w, direction = some_weights(problem), some_weights(problem, 1)
    now, h = problem.evaluate(w), 1e-5
    up, down = problem.evaluate(w + h * direction), problem.evaluate(w - h * direction)
    assert now.gradient @ direction == pytest.approx((up.value - down.value) / (2 * h), rel=1e-7, abs=1e-9)
    curved = problem.hessian_product(now, direction)
    np.testing.assert_allclose(curved, (up.gradient - down.gradient) / (2 * h), rtol=1e-5, atol=1e-7)


@everywhere
def test_scores_are_those_of_the_features(name):
    problem, _ = pair(name)
    data, w = kept(DATA[name]), some_weights(pair(name)[0])
    for each in (problem, problem.entropic):
        stride = each.blocks.layout.stride
        expected = np.concatenate([data.matrix(i, stride) @ w for i in range(data.n)])
        np.testing.assert_allclose(each.scores(w), expected, rtol=1e-12, atol=1e-12)


def test_the_expected_features_of_the_data():
    for name in DATA:
        problem, brute = pair(name)
        expected = brute.F.T @ (brute.mass[brute.owner] * brute.y)
        np.testing.assert_allclose(problem.empirical, expected, rtol=1e-12, atol=1e-14)


# ---- weights of sequences and of tokens


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_a_weight_of_two_is_a_sequence_given_twice_and_of_zero_one_left_out(loss):
    data = random_data(8, lengths=(2, 3, 1))
    data.weight = np.array([2.0, 0.0, 1.0])
    tokens, starts = np.array([0, 1, 0, 1, 5]), np.array([0, 2, 4, 5])
    twice = Data(data.X[tokens], data.y[tokens], starts, data.K)
    w = some_weights(data.problem(C=C))
    value = data.problem(loss, C=C).evaluate(w).value
    assert value == pytest.approx(twice.problem(loss, C=C).evaluate(w).value, rel=1e-13)
    assert data.problem(loss).n == 2


def test_a_token_of_no_cost_may_be_labelled_as_it_likes():
    data = random_data(8, lengths=(4, 2))
    zero = np.zeros(data.problem().dim)
    data.costs = np.array([0.0, 0.5, 2.0, 1.0, 0.0, 0.0])
    assert data.problem("hinge", lam=1.0).evaluate(zero).value == pytest.approx((3.5 + 0.0) / 2)


# ---- weights that there are


def test_only_weights_that_the_data_show_move():
    data = random_data(9, B=2)
    problem = data.problem(observed=True, C=C)
    shown = np.zeros(problem.dim, bool)
    for i in range(data.n):
        shown |= data.features(i, data.y[data.tokens(i)]) != 0.0
    np.testing.assert_array_equal(problem.structure.mask, shown)
    assert 0 < shown.sum() < shown.size
    w = np.where(shown, some_weights(problem), 0.0)
    now, brute = problem.evaluate(w), data.written_out(problem.lam)
    assert now.value == pytest.approx(brute.primal(w), rel=1e-12)
    np.testing.assert_allclose(now.gradient, np.where(shown, brute.gradient(w)[0], 0.0), atol=1e-12)
    mu = problem.marginals(problem.scores(w))
    assert not problem.weights_of(mu)[~shown].any()
    direction = np.where(shown, some_weights(problem, 1), 0.0)
    curved = problem.hessian_product(now, direction)
    assert not curved[~shown].any()
    h = 1e-5
    up, down = (problem.evaluate(w + step * direction).gradient for step in (h, -h))
    np.testing.assert_allclose(curved, (up - down) / (2 * h), rtol=1e-5, atol=1e-7)


def test_an_attribute_seen_only_with_some_labels_keeps_its_other_weights_at_zero_in_norms_and_moves():
    data = random_data(9, lengths=(4, 3, 2))
    problem = data.problem(observed=True, C=C)
    mask, rng = problem.structure.mask, np.random.default_rng(0)
    for i in range(data.n):
        A = data.matrix(i, 0) * mask
        check_geometry(problem.blocks, i, A, rng)


# ---- geometry of a block


def check_geometry(blocks, i, A, rng):
    """‖Aᵀδ‖², s + step·A Aᵀδ and v + step·Aᵀδ against the dense matrix."""
    delta, s, moved = rng.normal(size=len(A)), rng.normal(size=len(A)), np.full(len(A), np.nan)
    v = rng.normal(size=A.shape[1])
    assert base.block_squared_norm(blocks, i, delta) == pytest.approx(((A.T @ delta) ** 2).sum(), rel=1e-11)
    base.block_move(blocks, i, -0.3, delta, s, moved)
    np.testing.assert_allclose(moved, s - 0.3 * A @ (A.T @ delta), rtol=1e-10, atol=1e-11)
    added = v.copy()
    base.block_add(blocks, i, -0.3, delta, added)
    np.testing.assert_allclose(added, v - 0.3 * A.T @ delta, rtol=1e-10, atol=1e-11)


@everywhere
def test_norms_and_moves_are_those_of_the_dense_matrix(name):
    problem, rng = pair(name)[0], np.random.default_rng(1)
    data = kept(DATA[name])
    for each in (problem, problem.entropic):
        for i in range(data.n):
            check_geometry(each.blocks, i, data.matrix(i, each.blocks.layout.stride), rng)


@everywhere
def test_the_radius_bounds_the_distance_of_any_output(name):
    problem, data = pair(name)[0], kept(DATA[name])
    for i in range(data.n):
        true = data.features(i, data.y[data.tokens(i)])
        farthest = max(((data.features(i, y) - true) ** 2).sum() for y in data.outputs(i))
        for each in (problem, problem.entropic):
            assert base.block_radius(each.blocks, i) >= farthest * (1.0 - 1e-12)


def test_the_radius_is_that_of_appendix_c_where_a_label_is_absent():
    """‖F(x, y)‖² + ‖Σ_t x_t‖² + (T − 1)²: attained by the sequence of the absent label alone."""
    data = random_data(10, K=4, lengths=(1, 2, 3, 3))
    problem = data.problem()
    for i in range(data.n):
        true = data.features(i, data.y[data.tokens(i)])
        X = data.X[data.tokens(i)]
        expected = true @ true + (X.sum(axis=0) ** 2).sum() + (len(X) - 1.0) ** 2
        farthest = max(((data.features(i, y) - true) ** 2).sum() for y in data.outputs(i))
        assert expected == pytest.approx(farthest)
        assert base.block_radius(problem.blocks, i) == pytest.approx(expected)


# ---- the dual


def some_dual(problem, brute, seed=2):
    """Probabilities of the sequences that some weights give, and their parts with a table per edge."""
    q = brute.marginals(brute.scores(some_weights(problem, seed)))
    return q, brute.part_marginals(q)


@everywhere
def test_weights_of_marginals(name):
    problem, brute = pair(name)
    q, mu = some_dual(problem, brute)
    np.testing.assert_allclose(problem.entropic.weights_of(mu), brute.weights(q), rtol=1e-9, atol=1e-10)
    if problem is problem.entropic:
        return
    data = kept(DATA[name])
    pieces = np.split(q, brute.first[1:])
    shared = [p @ parts_of(data.outputs(i), data.K, 0) for i, p in enumerate(pieces)]
    np.testing.assert_allclose(
        problem.weights_of(np.concatenate(shared)), brute.weights(q), rtol=1e-9, atol=1e-10
    )


@everywhere
def test_marginals_at_scores(name):
    problem, brute = pair(name)
    w = some_weights(problem, 2)
    _, mu = some_dual(problem, brute)
    unrolled = problem.entropic
    np.testing.assert_allclose(unrolled.marginals(unrolled.scores(w)), mu, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(unrolled.structure.cleaned(problem.examples, mu), mu, atol=1e-13)
    assert unrolled.structure.cleaned(problem.examples, 0.9 * mu) is None


@everywhere
def test_the_dual_of_the_log_loss_and_its_gap(name):
    problem, brute = pair(name)
    unrolled = problem.entropic
    q, mu = some_dual(problem, brute)
    assert unrolled.dual(mu) == pytest.approx(brute.dual(q), rel=1e-10, abs=1e-12)
    point = unrolled.dual_point(mu)
    assert point.primal == pytest.approx(brute.primal(brute.weights(q)), rel=1e-10)
    assert point.gap == pytest.approx(brute.primal(brute.weights(q)) - brute.dual(q), rel=1e-9, abs=1e-12)
    assert point.primal >= unrolled.dual(mu)


@everywhere
def test_block_gaps_are_divergences_of_sequences(name):
    problem, brute = pair(name)
    unrolled, w = problem.entropic, some_weights(problem)
    q, mu = some_dual(problem, brute)
    p = brute.marginals(brute.scores(w))
    ratio = np.log(np.where(q > 0.0, q, 1.0) / np.where(q > 0.0, p, 1.0))
    kl = np.add.reduceat(q * ratio, brute.first)
    np.testing.assert_allclose(unrolled.block_gaps(mu, unrolled.scores(w)), kl, rtol=1e-9, atol=1e-11)


@everywhere
def test_the_dual_of_the_hinge_loss_and_its_gap(name):
    problem, brute = pair(name, "hinge")
    for each in {id(p): p for p in (problem, problem.entropic)}.values():
        mu = each.marginals(each.scores(some_weights(problem, 2)))
        q, _ = some_dual(problem, brute)
        assert each.dual(mu) == pytest.approx(brute.dual(q), rel=1e-10)
        point = each.dual_point(mu)
        assert point.primal == pytest.approx(brute.primal(brute.weights(q)), rel=1e-10)
        assert point.gap == pytest.approx(point.primal - brute.dual(q), rel=1e-9, abs=1e-12)


@everywhere
def test_the_first_point_lies_between_the_truth_and_the_middle(name):
    problem, brute = pair(name)
    unrolled = problem.entropic
    uniform = 1.0 / np.diff(np.append(brute.first, len(brute.y)))[brute.owner]
    expected = brute.part_marginals(0.9 * brute.y + 0.1 * uniform)
    np.testing.assert_allclose(unrolled.near_target(0.1), expected, rtol=1e-12, atol=1e-14)
    truth = unrolled.near_target(0.0)
    np.testing.assert_array_equal(truth, brute.part_marginals(brute.y))
    assert not unrolled.weights_of(truth).any()
    assert unrolled.dual(truth) == 0.0


def test_marginals_of_a_shared_table_do_not_tell_the_entropy():
    problem, _ = pair("plain")
    scores = problem.scores(some_weights(problem))
    mu = problem.marginals(scores)
    for ask in (problem.dual, problem.dual_point, lambda mu: problem.block_gaps(mu, scores)):
        with pytest.raises(ValueError, match=r"problem\.entropic"):
            ask(mu)


# ---- what is refused


def arrays():
    data = random_data(lengths=(2, 3))
    return {"X": data.X, "y": data.y, "starts": data.starts, "labels": 3}


def refusal(**changes):
    """The message of the error, of one line."""
    given = arrays() | changes
    with pytest.raises(ValueError) as error:
        problems.chain(given.pop("X"), given.pop("y"), given.pop("starts"), **given)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_labels_that_cannot_be_are_refused():
    assert "label 3, but labels=3" in refusal(y=[0, 1, 2, 3, 0])
    assert "must hold labels 0, 1" in refusal(y=[0, -1, 2, 1, 0])
    assert "must hold labels 0, 1" in refusal(y=[0.5, 1, 2, 1, 0])
    assert "must hold labels 0, 1" in refusal(y=list("abcab"))


def test_shapes_that_do_not_match_are_refused():
    assert "y has shape (4,), expected (5,)" in refusal(y=[0, 1, 2, 1])
    assert "y has shape (5, 1)" in refusal(y=np.zeros((5, 1), int))
    assert "4" in refusal(edges=np.ones((4, 2)))
    assert "X has 1 dimensions" in refusal(X=np.ones(5))
    assert "NaN" in refusal(X=np.full((5, 2), np.nan))
    assert "banned has shape (2, 2), expected (3, 3)" in refusal(banned=np.zeros((2, 2)))
    assert "sample_weight has shape (5,), expected (2,)" in refusal(sample_weight=np.ones(5))


def test_sequences_must_cover_all_tokens_and_none_may_be_empty():
    assert "from 0 to 5" in refusal(starts=[0, 2])
    assert "from 0 to 5" in refusal(starts=[1, 5])
    assert "from 0 to 5" in refusal(starts=[0])
    assert "1" in refusal(starts=[0, 2, 2, 5])
    assert refusal(starts=[0, 3, 2, 5])
    assert "whole numbers" in refusal(starts=[0, 2.5, 5])


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"y": [0, 2**32, 2, 1, 0]}, "label 4294967296, but labels=3"),
        ({"y": [0, np.nan, 2, 1, 0]}, "must hold labels 0, 1"),
        ({"labels": 2.5, "y": [0, 0, 1, 1, 0]}, "labels=2.5 must be a positive whole number"),
        ({"edges": np.ones((4, 2))}, "edges has 4 rows"),
        ({"starts": [0, 2, 2, 5]}, "sequence 1 has no tokens"),
        ({"starts": [0, 2]}, "rows of X"),
        ({"starts": [0, np.nan, 5]}, "whole numbers"),
    ],
)
def test_refusals_speak_of_sequences(changes, message):
    assert message in refusal(**changes)


def test_costs_of_tokens_belong_to_the_hinge_loss():
    assert "loss='hinge'" in refusal(token_weight=np.ones(5))
    assert "token_weight has shape (4,), expected (5,)" in refusal(loss="hinge", token_weight=np.ones(4))
    assert "at least 0" in refusal(loss="hinge", token_weight=-np.ones(5))
    assert "finite" in refusal(loss="hinge", token_weight=np.full(5, np.inf))


def test_data_that_hold_a_banned_pair_are_refused():
    banned = np.zeros((3, 3), bool)
    banned[2, 1] = True
    message = refusal(y=[0, 1, 0, 2, 1], banned=banned)
    assert "label 1 follows label 2 at row 4" in message
    # From one sequence to the next nothing follows anything.
    problems.chain(arrays()["X"], [0, 2, 1, 1, 0], [0, 2, 5], labels=3, banned=banned)


def test_nothing_banned_is_no_table_at_all():
    assert random_data(banned=np.zeros((3, 3), bool)).problem().structure.banned is None


def test_dense_and_sparse_attributes_are_one_problem():
    given = arrays()
    dense = problems.chain(given["X"], given["y"], given["starts"])
    sparse = problems.chain(sp.csc_matrix(given["X"]), given["y"], given["starts"])
    w = some_weights(dense)
    assert dense.evaluate(w).value == sparse.evaluate(w).value
