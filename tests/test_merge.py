"""Merging examples of equal features: fewer of them, the same objective."""

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel import problems
from fenchel._sparse import as_csr, as_rows
from fenchel.data import MANY, Examples, merge_contexts, weighted_examples

RNG = np.random.default_rng


def contexts(n=30, distinct=7, labels=4, seed=0):
    """Rows of which many are equal, with any labels."""
    rng = RNG(seed)
    X = np.where(rng.uniform(size=(distinct, 5)) < 0.4, 0.0, rng.normal(size=(distinct, 5)))
    return X[rng.integers(distinct, size=n)], rng.integers(labels, size=n)


def candidate_sets(n=30, distinct=6, seed=0):
    """Candidate sets of 1 to 4, of which many are equal, with any true candidate: F, y, starts."""
    rng = RNG(seed)
    sets = [rng.integers(3, size=(1 + k % 4, 5)).astype(float) for k in range(distinct)]
    chosen = [sets[k] for k in rng.integers(distinct, size=n)]
    starts = np.concatenate([[0], np.cumsum([len(F) for F in chosen])])
    return np.vstack(chosen), rng.integers(np.diff(starts)), starts


def crossed_pair(X, y, labels=4, **settings):
    """The problem merged and as it is."""
    return tuple(
        problems.flat(X, y, labels=labels, lam=0.1, merge=merge, **settings) for merge in (True, False)
    )


def joint_pair(F, y, starts, **settings):
    return tuple(problems.joint(F, y, starts, lam=0.1, merge=merge, **settings) for merge in (True, False))


def check_same_objective(merged, plain, fewer=True):
    """P (and its gradient where there is one) at random weights; masses and targets stay distributions."""
    assert merged.n < plain.n if fewer else merged.n == plain.n
    assert merged.lam == plain.lam
    assert merged.examples.mass.sum() == pytest.approx(1.0, rel=1e-14)
    for seed in range(3):
        w = RNG(seed).normal(size=plain.penalised)
        assert merged.value_at(w)[0] == pytest.approx(plain.value_at(w)[0], rel=1e-13)
        if not plain.loss.hinge:
            one, other = (problem.evaluate(problem.design.join(w, 0.3)) for problem in (merged, plain))
            np.testing.assert_allclose(one.gradient, other.gradient, atol=1e-14)
    np.testing.assert_allclose(target_sums(merged.examples), 1.0, rtol=1e-14)


def target_sums(examples):
    if examples.starts is None:
        return np.asarray(as_csr(examples.y).sum(axis=1)).ravel()
    return np.add.reduceat(examples.y, examples.starts[:-1].astype(int))


WEIGHTS = {"": None, "weights": RNG(9).integers(0, 4, size=30), "real": RNG(10).uniform(size=30)}


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_merging_labels_keeps_the_objective(loss, weight):
    X, y = contexts()
    for features in (X, sp.csr_matrix(X)):
        check_same_objective(*crossed_pair(features, y, loss=loss, sample_weight=WEIGHTS[weight]))


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_merging_candidates_keeps_the_objective(loss, weight):
    check_same_objective(*joint_pair(*candidate_sets(), loss=loss, sample_weight=WEIGHTS[weight]))


def test_merging_keeps_the_objective_with_free_offsets():
    X, y = contexts()
    y[:4] = np.arange(4)
    merged, plain = crossed_pair(X, y, fit_intercept=True)
    check_same_objective(merged, plain)
    w = RNG(3).normal(size=plain.penalised)
    np.testing.assert_allclose(merged.value_at(w)[1], plain.value_at(w)[1], atol=1e-13)


def test_the_log_loss_merges_all_equal_features_and_the_hinge_only_those_of_one_label():
    X, y = contexts()
    pairs = np.column_stack([X, y])
    assert crossed_pair(X, y)[0].n == len(np.unique(X, axis=0))
    assert crossed_pair(X, y, loss="hinge")[0].n == len(np.unique(pairs, axis=0))


@pytest.mark.parametrize(("other", "fewer"), [(0, 0), (1, 2)])
def test_few_of_many_are_merged_where_they_contradict_each_other(other, fewer):
    """One pair of equal rows with different labels slows dual coordinates down at large C."""
    X, y = sp.identity(MANY, format="csr"), np.tile([0, 1], MANY // 2)
    X, y = sp.vstack([X, X[:1], X[5:6]]).tocsr(), np.append(y, [other, y[5]])
    problem = problems.flat(X, y, lam=1e-4)
    assert problem.examples.merged == fewer
    F, starts = sp.kron(X, sp.identity(2)).tocsr(), np.arange(0, 2 * len(y) + 1, 2)
    assert problems.joint(F, y, starts, lam=1e-4).examples.merged == fewer


def test_the_hinge_merges_only_candidate_sets_with_the_same_true_one():
    F, starts = np.tile([[1.0, 0.0], [0.0, 2.0]], (4, 1)), [0, 2, 4, 6, 8]
    assert joint_pair(F, [0, 1, 0, 0], starts)[0].n == 1
    merged, _ = joint_pair(F, [0, 1, 0, 0], starts, loss="hinge")
    np.testing.assert_array_equal(merged.examples.y, [1.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(merged.examples.mass, [0.75, 0.25])


@pytest.mark.parametrize("copies", [2, 3, 7, 10, 49])
def test_targets_of_the_hinge_loss_stay_zero_or_one(copies):
    """The cost of the truth is exactly nothing, however many examples are merged."""
    X, y = np.tile([[1.0], [2.0]], (copies, 1)), np.tile([0, 1], copies)
    merged, _ = crossed_pair(X, y, labels=2, loss="hinge")
    np.testing.assert_array_equal(as_csr(merged.examples.y).toarray(), np.eye(2))
    F, starts = np.tile([[1.0], [2.0]], (copies, 1)), np.arange(0, 2 * copies + 1, 2)
    merged, _ = joint_pair(F, np.ones(copies, int), starts, loss="hinge")
    np.testing.assert_array_equal(merged.examples.y, [0.0, 1.0])


def test_merged_targets_are_means_weighted_by_mass():
    X, y, weight = np.array([[1.0], [2.0], [1.0], [1.0]]), [0, 1, 2, 0], [1.0, 4.0, 2.0, 1.0]
    examples = crossed_pair(X, y, labels=3, sample_weight=weight)[0].examples
    np.testing.assert_array_equal(as_csr(examples.rows).toarray(), [[1.0], [2.0]])
    np.testing.assert_allclose(examples.mass, [0.5, 0.5])
    np.testing.assert_allclose(as_csr(examples.y).toarray(), [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])


def test_soft_targets_are_merged_too():
    X, _ = contexts()
    y = RNG(4).dirichlet(np.ones(4), size=30)
    check_same_objective(*crossed_pair(X, y))
    check_same_objective(
        *crossed_pair(X, sp.csr_matrix(np.where(y == y.max(axis=1, keepdims=True), 1.0, 0.0)))
    )
    F, _, starts = candidate_sets()
    p = RNG(5).uniform(size=starts[-1])
    p /= np.repeat(np.add.reduceat(p, starts[:-1]), np.diff(starts))
    check_same_objective(*joint_pair(F, p, starts))


def test_equal_rows_replace_a_sample_weight():
    """A row of weight three is that row three times."""
    X, y = contexts(12, 12)
    count = RNG(6).integers(1, 5, size=12)
    repeated, _ = crossed_pair(np.repeat(X, count, axis=0), np.repeat(y, count))
    weighted, _ = crossed_pair(X, y, sample_weight=count)
    assert repeated.n == weighted.n
    np.testing.assert_array_equal(repeated.examples.rows.data, weighted.examples.rows.data)
    np.testing.assert_allclose(repeated.examples.mass, weighted.examples.mass, rtol=1e-14)
    sides = (as_csr(problem.examples.y).toarray() for problem in (repeated, weighted))
    np.testing.assert_allclose(*sides, rtol=1e-14)


def test_repeated_candidate_sets_replace_a_sample_weight():
    F, y, starts = candidate_sets(8, 8)
    count = RNG(7).integers(1, 5, size=8)
    sets = np.split(F, starts[1:-1])
    repeated = [sets[i] for i in np.repeat(np.arange(8), count)]
    ends = np.cumsum([0, *map(len, repeated)])
    one, _ = joint_pair(np.vstack(repeated), np.repeat(y, count), ends)
    other, _ = joint_pair(F, y, starts, sample_weight=count)
    np.testing.assert_array_equal(one.examples.starts, other.examples.starts)
    np.testing.assert_allclose(one.examples.mass, other.examples.mass, rtol=1e-14)
    np.testing.assert_allclose(one.examples.y, other.examples.y, atol=1e-15)


# ---- what is not equal


def test_without_duplicates_the_same_object_comes_back():
    X, y = contexts(7, 7)
    targets = as_rows(sp.csr_matrix(np.eye(4)[y]))
    X[:, 0] = np.arange(7.0)
    for by_target in (False, True):
        examples, _ = weighted_examples(as_rows(X), targets)
        assert merge_contexts(examples, by_target) is examples
    F, true = np.arange(12.0).reshape(6, 2), np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    examples, _ = weighted_examples(as_rows(F), true, starts=np.array([0, 2, 4, 6], dtype=np.uint64))
    assert merge_contexts(examples) is examples and merge_contexts(examples, by_target=True) is examples


def explicit(data):
    """Rows with these entries stored, zeros included."""
    n = len(data)
    return sp.csr_matrix((np.ravel(data), np.tile([0, 1], n), np.arange(0, 2 * n + 1, 2)), shape=(n, 2))


def test_the_sign_of_a_zero_changes_no_objective():
    """Stored zeros of either sign, or none: merged or not, the same model."""
    X = sp.vstack([explicit([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.0]]), sp.csr_matrix([[0.0, 1.0]])])
    merged, plain = crossed_pair(X, [0, 1, 2, 1], labels=3)
    assert merged.n < plain.n
    check_same_objective(merged, plain)
    merged, plain = joint_pair(explicit([[0.0, 1.0], [2.0, 1.0], [-0.0, 1.0], [2.0, 1.0]]), [0, 1], [0, 2, 4])
    w = np.array([0.3, -0.7])
    assert merged.value_at(w)[0] == pytest.approx(plain.value_at(w)[0], rel=1e-14)


def test_candidates_in_another_order_change_no_objective():
    one, other = [1.0, 0.0], [0.0, 2.0]
    F, starts = np.array([one, other, other, one, one, other]), [0, 2, 4, 6]
    merged, plain = joint_pair(F, [0, 0, 1], starts)
    check_same_objective(merged, plain)


@pytest.mark.parametrize(
    "F, starts",
    [
        ([[1.0], [2.0], [1.0], [2.0], [3.0]], [0, 2, 5]),  # one more candidate
        ([[1.0], [2.0], [1.0], [2.0]], [0, 1, 4]),  # the same rows, cut elsewhere
        ([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]], [0, 2, 4]),  # the same entries, in other rows
        ([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [0, 2, 4]),  # in other columns
    ],
)
def test_sets_that_differ_are_not_merged(F, starts):
    merged, plain = joint_pair(np.array(F), [0, 0], starts)
    check_same_objective(merged, plain, fewer=False)


def test_rows_without_features_are_equal_to_each_other():
    X, y = np.zeros((5, 3)), [0, 1, 2, 0, 0]
    X[3, 1] = 1.0
    merged, plain = crossed_pair(X, y, labels=3)
    assert merged.n == 2
    check_same_objective(merged, plain)


def test_what_is_left_is_in_the_order_of_first_appearance():
    X = np.array([[3.0], [1.0], [3.0], [2.0], [1.0]])
    merged, _ = crossed_pair(X, [0, 1, 2, 3, 0])
    np.testing.assert_array_equal(as_csr(merged.examples.rows).toarray().ravel(), [3.0, 1.0, 2.0])
    np.testing.assert_allclose(merged.examples.mass, [0.4, 0.4, 0.2])


def test_the_examples_given_are_left_alone():
    X, y = contexts()
    targets = as_rows(sp.csr_matrix(np.eye(4)[y]))
    examples = Examples(as_rows(X), targets, np.full(30, 1 / 30))
    before = [part.copy() for part in (*examples.rows[:3], *targets[:3], examples.mass)]
    merge_contexts(examples)
    for old, new in zip(before, (*examples.rows[:3], *targets[:3], examples.mass), strict=True):
        np.testing.assert_array_equal(old, new)


def test_many_examples_are_grouped_as_numpy_would():
    rng = RNG(8)
    X, y = rng.integers(3, size=(3000, 5)).astype(float), rng.integers(3, size=3000)
    merged, plain = crossed_pair(sp.csr_matrix(X), y, labels=3)  # a dense table of this size stays as it is
    assert merged.n == len(np.unique(X, axis=0))
    check_same_objective(merged, plain)


@pytest.mark.parametrize("joint", [False, True])
def test_targets_of_thousands_of_equal_contexts_sum_to_one(joint):
    """Shares of 1/n each, added up, would be off by 1e-13: an offset could not be balanced to rounding."""
    n, K = 3000, 7
    y = np.random.default_rng(0).integers(K, size=n)
    if joint:
        problem = problems.joint(np.tile(np.eye(K), (n, 1)), y, np.arange(n + 1) * K, lam=1.0)
        y = problem.examples.y
    else:
        y = problems.flat(sp.csr_matrix(np.ones((n, 1))), y, lam=1.0).examples.y.data
    assert y.size == K
    assert abs(y.sum() - 1.0) <= 4e-16


def test_a_problem_tells_of_duplicates_that_were_merged():
    X, y = contexts()
    problem = problems.flat(sp.csr_matrix(X), y, C=1.0)
    assert f"n = {problem.n} ({30 - problem.n} duplicates merged), d" in str(problem)
    assert "merged" not in str(problems.flat(sp.csr_matrix(X), y, C=1.0, merge=False))
