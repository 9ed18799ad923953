"""Projective trees against enumeration, and the solvers that train on them against each other."""

from math import comb

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel import problems, trees
from fenchel._cache import njit
from fenchel.loop import solve
from fenchel.losses import LOSSES
from fenchel.offers import REGULARISED, offered
from fenchel.solvers import SOLVERS, solver_class
from fenchel.structures import base, eisner
from fenchel.structures.projective import Projective
from fenchel.structures.tree_decoding import all_best_trees, all_marginals, best_trees
from trees_listed import parts
from trees_listed import trees as listed_trees

CASES = [(n, single) for n in range(1, 7) for single in (True, False)]


def one_sentence(n):
    return np.array([0, n], np.uint64), np.array([0, n * n], np.uint64)


def marginals(n, s, single):
    mu, levels = np.empty(n * n), np.empty(1)
    all_marginals(*one_sentence(n), 0, 1, s, single, mu, levels)
    return levels[0], mu


def best_tree(n, s, single):
    heads = np.empty(n, np.int64)
    all_best_trees(*one_sentence(n), 0, 1, s, single, heads)
    return heads


@pytest.mark.parametrize(("n", "single"), CASES)
def test_sums_and_maxima_are_those_of_all_trees(n, single):
    rng = np.random.default_rng(n)
    listed, heads, k = parts(n, single), listed_trees(n, single), 8
    for scale in (0.0, 1.0, 30.0, 1e3, 1e12):
        s = scale * rng.normal(size=n * n)
        scores = listed @ s
        p = np.exp(scores - scores.max())
        p /= p.sum()
        level, mu = marginals(n, s, single)
        assert level == pytest.approx(scores.max() + np.log(np.exp(scores - scores.max()).sum()), rel=1e-14)
        np.testing.assert_allclose(mu, p @ listed, atol=1e-12)
        np.testing.assert_allclose(mu.reshape(n, n).sum(axis=1), 1.0, rtol=1e-13)
        best = best_tree(n, s, single)
        of_best = scores[(heads == best).all(axis=1)]
        assert of_best == pytest.approx(scores.max(), rel=1e-14)
        found, values = np.empty((k, n), np.int64), np.empty(k)
        count = best_trees(n, s, single, found, values)
        assert count == min(k, len(heads))
        np.testing.assert_allclose(values[:count], np.sort(scores)[::-1][:count], atol=1e-14 * (1.0 + scale))
        assert len({tuple(one) for one in found[:count].tolist()}) == count
        rows = {tuple(one): score for one, score in zip(heads.tolist(), scores, strict=True)}
        of_found = [rows[tuple(one)] for one in found[:count].tolist()]
        np.testing.assert_allclose(of_found, values[:count], atol=1e-14 * (1.0 + scale))
        np.testing.assert_array_equal(found[0], best)


def test_equal_scores_count_the_trees():
    for n in (1, 2, 5, 20, 100):
        one, many = comb(3 * n - 2, n - 1) // n, comb(3 * n, n) // (2 * n + 1)
        for single, count in ((True, one), (False, many)):
            assert marginals(n, np.zeros(n * n), single)[0] == pytest.approx(float(np.log(float(count))))


def test_probabilities_and_logarithms_agree_where_both_can_be():
    """Trees that are nothing beside the likeliest head of each word are summed by logarithms."""
    rng, n = np.random.default_rng(0), 12
    s = 3.0 * rng.normal(size=n * n)
    level = marginals(n, s, True)[0]
    lowered = s.reshape(n, n).copy()
    for m in range(n):  # heads that make circles, far above all others
        lowered[m, m + 1 if m % 2 == 0 and m + 1 < n else max(m - 1, 0)] += 400.0
    far, other = marginals(n, lowered.ravel(), True)
    assert np.isfinite(other).all() and far > level
    np.testing.assert_allclose(other.reshape(n, n).sum(axis=1), 1.0, rtol=1e-12)
    h = 1e-4
    for j in (1, 40, 77):
        up, down = lowered.ravel().copy(), lowered.ravel().copy()
        up[j], down[j] = up[j] + h, down[j] - h
        slope = (marginals(n, up, True)[0] - marginals(n, down, True)[0]) / (2 * h)
        assert slope == pytest.approx(other[j], abs=1e-6)


def test_an_arc_that_cannot_be():
    s = np.zeros(9)
    s[0] = -np.inf  # the first word is not the root's
    level, mu = marginals(3, s, False)
    kept = listed_trees(3, False)[:, 0] != 0
    assert level == pytest.approx(np.log(kept.sum())) and mu[0] == 0.0
    level, mu = marginals(3, np.full(9, -np.inf), True)
    assert level == -np.inf and not mu.any()


def test_trees_longer_than_numbers_reach():
    n = eisner.LONGEST + 5
    level, mu = marginals(n, np.zeros(n * n), False)
    assert level == pytest.approx(
        float(np.log(float(comb(3 * n, n) // (2 * n + 1) >> 100))) + 100 * np.log(2)
    )
    np.testing.assert_allclose(mu.reshape(n, n).sum(axis=1), 1.0, rtol=1e-10)


# ---- problems


def made(loss="log", single=True, n=12, C=1.0):
    """A problem on sentences of up to five words, and F, heads, lengths."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 6, size=n)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    F = sp.random(int((lengths**2).sum()), 15, 0.4, random_state=1, format="csr")
    F.data = np.round(4.0 * F.data - 1.5)
    truth, heads, at = F @ rng.normal(size=15) + rng.normal(size=F.shape[0]), [], 0
    for length in lengths:
        choice = parts(length, single) @ truth[at : at + length**2]
        heads += listed_trees(length, single)[choice.argmax()].tolist()
        at += length**2
    problem = problems.projective(F, heads, starts, loss=loss, single_root=single, C=C, threads=1)
    return problem, F, lengths


def objective(problem, w, F, lengths, loss, single=True):
    """P by enumeration."""
    s, y, at, total = F @ w, problem.examples.y, 0, 0.0
    for mass, n in zip(problem.examples.mass, lengths, strict=True):
        here = slice(at, at + n * n)
        outputs = parts(n, single)
        cost = n - outputs @ y[here] if loss == "hinge" else 0.0
        scores = outputs @ s[here] + cost
        value = scores.max() if loss == "hinge" else np.logaddexp.reduce(scores)
        total += mass * (value - s[here] @ y[here])
        at += n * n
    return total + 0.5 * problem.lam * w @ w


@pytest.mark.parametrize("single", [True, False])
def test_value_and_gradient_are_those_of_all_trees(single):
    problem, F, lengths = made(single=single)
    rng = np.random.default_rng(2)
    w, d, h = rng.normal(size=15), rng.normal(size=15), 1e-5
    now = problem.evaluate(w)
    assert now.value == pytest.approx(objective(problem, w, F, lengths, "log", single), rel=1e-12)
    ends = [objective(problem, w + t * d, F, lengths, "log", single) for t in (h, -h)]
    assert now.gradient @ d == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)


@njit
def entropies_at(blocks, theta, found, rounding):
    mu = np.empty(blocks.size)
    for i in range(blocks.mass.size):
        own = base.block_view(blocks, theta, i)
        loss = base.block_marginals(blocks, i, own, mu)
        found[i], rounding[i] = base.block_entropy_at(blocks, i, own, mu, loss)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e6])
def test_the_entropy_at_scores_is_that_of_all_trees_and_never_more(scale, single):
    problem, _, lengths = made(single=single)
    theta = scale * np.random.default_rng(3).normal(size=problem.shape)
    found, rounding = np.empty(problem.n), np.empty(problem.n)
    entropies_at(problem.blocks, theta, found, rounding)
    for i, (n, end) in enumerate(zip(lengths, np.cumsum(lengths**2), strict=True)):
        scores = parts(n, single) @ theta[end - n * n : end]
        p = np.exp(scores - np.logaddexp.reduce(scores))
        entropy = -(p[p > 0.0] @ np.log(p[p > 0.0]))
        assert found[i] <= entropy + 1e-12
        assert found[i] >= entropy - 2.0 * rounding[i] - 1e-12 and rounding[i] <= 1e-13 * (1.0 + scale) * n


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_solvers_find_one_optimum(loss):
    """The others, which take as long again to compile, are compared in benchmarks/parsing.py."""
    problem, F, lengths = made(loss)
    tol = 1e-6 if loss == "log" else 1e-3
    values = {}
    for name in {"log": ("lbfgs", "eg"), "hinge": ("eg", "cutting-plane", "cd-outputs")}[loss]:
        result = solve(problem, name, tol=tol, max_passes=20_000)
        assert all(row.primal >= row.dual for row in result.trace.rows), name
        values[name] = objective(problem, result.w, F, lengths, loss)
        assert values[name] == pytest.approx(result.certificate.primal, rel=1e-9), name
    assert max(values.values()) <= min(values.values()) * (1.0 + 1.01 * tol), values


@pytest.mark.parametrize("single", [True, False])
def test_what_no_weights_cost_is_known_without_a_pass(single):
    for loss in ("log", "hinge"):
        problem, F, lengths = made(loss, single)
        value = objective(problem, np.zeros(15), F, lengths, loss, single)
        assert problem.value_at_zero == pytest.approx(value, rel=1e-12)
    star = problems.projective(
        sp.csr_matrix((10, 3)), [0, 0, 0, 0], [0, 3, 4], loss="hinge", single_root=False
    )
    assert star.value_at_zero == 1.0  # of three words one hangs from the root in any tree


def test_which_solvers_are_able():
    able = {
        loss: {
            name
            for name in SOLVERS
            if solver_class(name).needs <= offered(Projective(), LOSSES[loss]) | REGULARISED
        }
        for loss in LOSSES
    }
    assert able["log"] == {"lbfgs", "sgd", "sag", "sag-nus", "eg", "eg-gap", "eg-batch"}
    assert able["hinge"] >= {"eg", "sdca", "sgd", "cutting-plane", "cd-outputs"}
    with pytest.raises(ValueError, match=r"'sdca'.*projective.*do not tell the entropy.*eg"):
        solve(made()[0], "sdca")


def test_what_is_no_tree_is_refused_by_its_number():
    F, starts = sp.csr_matrix((8, 3)), [0, 2, 4]
    with pytest.raises(ValueError, match=r"sentence 1, word 2: a second root, after word 1"):
        problems.projective(F, [0, 1, 0, 0], starts)
    with pytest.raises(ValueError, match=r"sentence 0, word 1: heads go round in a circle: 1 -> 2 -> 1"):
        problems.projective(F, [2, 1, 0, 1], starts)
    with pytest.raises(ValueError, match=r"sentence 1, word 2: head 3 is out of range"):
        problems.projective(F, [0, 1, 0, 3], starts)
    with pytest.raises(ValueError, match=r"F has 8 rows, expected 9"):
        problems.projective(F, [0, 1, 1], [0, 3])
    with pytest.raises(ValueError, match=r"sentence 0: arcs cross"):
        problems.projective(sp.csr_matrix((16, 3)), [0, 4, 1, 3], [0, 4])


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_projective_is_what_enumeration_says(n):
    from itertools import product

    kept = {tuple(heads) for heads in listed_trees(n, False).tolist()}
    for heads in product(range(n + 1), repeat=n):
        good = trees.fault(heads) is None and trees.is_projective(heads)
        assert good == (heads in kept), heads
