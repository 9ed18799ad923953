"""Graphs of bounded treewidth: every oracle against the list of all labellings."""

import numpy as np
import pytest

from fenchel import problems
from fenchel._cache import njit
from fenchel.graphs import join_graphs
from fenchel.structures import base, graph_decoding
from fenchel.structures.graph_decoding import UnlabelledGraphs
from fenchel.structures.plans import make_plans
from graphs import SIZES, listed, random_problem
from test_problem import differences

NOTHING = np.empty(0)


def pieces(problem, values):
    """Of an array of all blocks: those of each graph."""
    return np.split(values, problem.structure.offsets[1:-1].astype(int))


def truths(problem):
    return np.split(problem.examples.y.astype(int), problem.examples.starts[1:-1].astype(int))


def scores_of(problem, scale, rng):
    """Scores of tables, whole numbers times the scale: sums are exact, and there are ties."""
    return scale * rng.integers(-4, 5, size=problem.shape[0]).astype(float)


def value_of(problem, s):
    """Σ m_i loss_i at these scores."""
    return problem.evaluate(np.zeros(problem.dim), s).value


@pytest.fixture(scope="module")
def problem():
    return random_problem()


@pytest.mark.parametrize("scale", [0.0, 0.25, 1e3, 1e15])
def test_marginals_and_losses_are_those_of_the_list(problem, scale):
    s = scores_of(problem, scale, np.random.default_rng(1))
    found, losses = pieces(problem, problem.marginals(s)), 0.0
    for own, mu, every, true, mass in zip(
        pieces(problem, s), found, listed(problem), truths(problem), problem.examples.mass, strict=True
    ):
        np.testing.assert_allclose(mu, every.probabilities(own) @ every.parts, rtol=1e-9, atol=1e-14)
        at_truth = every.parts[(every.y == true).all(axis=1)][0] @ own
        losses += mass * (every.log_partition(own) - at_truth)
    assert value_of(problem, s) == pytest.approx(losses, rel=1e-12, abs=1e-12)


def test_the_number_of_labellings(problem):
    """log Z of no scores is its logarithm, and so is the loss."""
    assert problem.value_at_zero == pytest.approx(value_of(problem, np.zeros(problem.shape)), rel=1e-13)
    counts = [len(every.y) for every in listed(problem)]
    assert problem.value_at_zero == pytest.approx(problem.examples.mass @ np.log(counts), rel=1e-13)


def test_a_small_loss_keeps_its_digits():
    """Where the truth is 40 ahead of all others, 1 − p is lost; −log p is not."""
    graphs = join_graphs([0, 3], [[(0, 1), (1, 2), (0, 2)]])
    small = problems.graph(np.ones((3, 1)), [0, 0, 0], graphs, labels=2)
    s = np.zeros(small.shape)
    s[[0, 2, 4]] = 40.0
    assert value_of(small, s) == pytest.approx(3.0 * np.log1p(np.exp(-40.0)), rel=1e-12)


@pytest.mark.parametrize("scale", [0.25, 30.0])
def test_the_entropy_and_its_slopes_are_those_of_the_list(problem, scale):
    full = problem.entropic
    assert full.tells_entropy and not problem.tells_entropy
    rng = np.random.default_rng(2)
    s, t = np.zeros(full.shape), np.zeros(full.shape)
    firsts = [len(every.parts[0]) for every in listed(full)]
    for array in (s, t):
        for own, first in zip(pieces(full, array), firsts, strict=True):
            own[:first] = scale * rng.integers(-4, 5, size=first)
    mu, nu = full.marginals(s), full.marginals(t)
    entropies = []
    for own, every in zip(pieces(full, s), listed(full), strict=True):
        p = every.probabilities(own[: every.parts.shape[1]])
        entropies.append(-(p[p > 0.0] @ np.log(p[p > 0.0])))
    assert full.concave(mu) == pytest.approx(full.examples.mass @ entropies, rel=1e-11, abs=1e-13)
    # Between the two distributions marginals are a mixture's: its entropy is not theirs, but the formula is
    # smooth there, and its derivatives must be those of `concave`.
    delta, step = nu - mu, 1e-4
    values = [full.concave(mu + (0.5 + k * step) * delta) for k in (-1, 0, 1)]
    first, second = slopes(full.blocks, mu, delta, 0.5)
    assert first == pytest.approx((values[2] - values[0]) / (2.0 * step), rel=1e-6, abs=1e-6)
    assert second == pytest.approx((values[2] - 2.0 * values[1] + values[0]) / step**2, rel=1e-3, abs=1e-3)


@njit
def slopes(blocks, mu, delta, gamma):
    first, second = 0.0, 0.0
    for i in range(blocks.mass.size):
        own, change = base.block_view(blocks, mu, i), base.block_view(blocks, delta, i)
        slope, bend = base.block_entropy_slopes(blocks, i, own, change, gamma)
        first += blocks.mass[i] * slope
        second += blocks.mass[i] * bend
    return first, second


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3])
def test_the_hinge_loss_is_that_of_the_list(scale):
    hinge = random_problem(3, loss="hinge")
    s = scores_of(hinge, scale, np.random.default_rng(4))
    total = 0.0
    for own, every, true, mass in zip(
        pieces(hinge, s), listed(hinge), truths(hinge), hinge.examples.mass, strict=True
    ):
        scores, wrong = every.parts @ own, (every.y != true).sum(axis=1)
        total += mass * ((scores + wrong).max() - scores[wrong == 0][0])
    assert value_of(hinge, s) == pytest.approx(total, rel=1e-13)


def test_the_best_labels_are_the_best_of_the_list(problem):
    """At the weights, where some labels are not allowed, and where none are left."""
    structure, rng = problem.structure, np.random.default_rng(5)
    w, N, L = rng.normal(size=problem.dim), problem.examples.y.size, sum(SIZES)
    allowed = rng.uniform(size=(N, L)) < 0.7
    firsts = problem.blocks.layout.first_label.astype(int)
    allowed[np.arange(N), firsts] = True
    data = UnlabelledGraphs(structure.tables(problem.examples.rows, w.size), w, structure.plans, NOTHING)
    s, starts = pieces(problem, problem.scores(w)), problem.examples.starts.astype(int)
    for mask in (np.ones_like(allowed), allowed):
        data = data._replace(allowed=mask.astype(np.uint8).ravel())
        best, mu = np.empty(N, np.uint32), np.zeros((N, L))
        assert graph_decoding.best_labels(data, 0, problem.n, best) == -1
        assert graph_decoding.node_marginals(data, 0, problem.n, best, mu) == -1
        for i, every in enumerate(listed(problem)):
            nodes = np.arange(starts[i], starts[i + 1])
            possible = mask[nodes, firsts[nodes] + every.y].all(axis=1)
            scores = np.where(possible, every.parts @ s[i], -np.inf)
            assert scores[(every.y == best[nodes]).all(axis=1)][0] == pytest.approx(scores.max(), abs=1e-12)
            p = np.exp(scores - scores.max())
            for v, node in enumerate(nodes):
                shares = np.bincount(every.y[:, v], p / p.sum())
                found = mu[node, firsts[node] : firsts[node] + shares.size]
                np.testing.assert_allclose(found, shares, atol=1e-13)
                assert mu[node].sum() == pytest.approx(1.0)
    data = data._replace(allowed=np.zeros(N * L, np.uint8))
    assert graph_decoding.best_labels(data, 0, problem.n, best) == 0


@njit
def probe(blocks, i, delta, s, moved, v):
    """What layout kernels give of example i; moved, v written."""
    base.block_move(blocks, i, 0.5, delta, s, moved)
    seen, drift = np.zeros(v.size, np.int64), np.array([0.0, 2.0])
    base.block_catch_up(blocks, i, 1, drift, np.ones(v.size), seen, v)
    return base.block_squared_norm(blocks, i, delta), base.block_radius(blocks, i)


@pytest.mark.parametrize("negative", [False, True])
def test_the_layout_is_the_matrix_it_stands_for(negative):
    problem = random_problem(6, negative=negative)
    columns = np.array([problem.scores(unit) for unit in np.eye(problem.dim)]).T
    rng = np.random.default_rng(7)
    for i, (every, true) in enumerate(zip(listed(problem), truths(problem), strict=True)):
        A = columns[slice(*problem.structure.offsets[i : i + 2].astype(int))]
        delta, s = rng.normal(size=(2, len(A)))
        moved, v = np.empty(len(A)), np.zeros(problem.dim)
        square, radius = probe(problem.blocks, i, delta, s, moved, v)
        assert square == pytest.approx(np.sum((A.T @ delta) ** 2))
        np.testing.assert_allclose(moved, s + 0.5 * A @ (A.T @ delta), atol=1e-12)
        assert (v[(A != 0.0).any(axis=0)] == -2.0).all()
        assert not problem.blocks.layout.work.any()
        F = every.parts @ A
        farthest = np.sum((F - F[(every.y == true).all(axis=1)]) ** 2, axis=1).max()
        assert farthest <= radius * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_the_gradient_against_differences(loss):
    problem = random_problem(8, loss=loss)
    w = np.random.default_rng(9).normal(size=problem.dim)
    found = differences(lambda u: problem.evaluate(u).value, w, step=1e-6)
    np.testing.assert_allclose(problem.evaluate(w).gradient, found, atol=2e-7)


def test_weights_of_no_mass_leave_out_their_graphs():
    whole = random_problem(10)
    weight = np.tile([1.0, 0.0], whole.n)[: whole.n]
    some = random_problem(10, sample_weight=weight)
    w = np.random.default_rng(0).normal(size=whole.dim)
    losses = [value_of_one(whole, w, i) for i in np.flatnonzero(weight)]
    assert some.evaluate(w).value == pytest.approx(np.mean(losses) + some.regularizer.value(w))


def value_of_one(problem, w, i):
    every, own = listed(problem)[i], pieces(problem, problem.scores(w))[i]
    at_truth = every.parts[(every.y == truths(problem)[i]).all(axis=1)][0] @ own
    return every.log_partition(own) - at_truth


# ---- triangulation


def grid(height, width):
    across = [(r * width + c, r * width + c + 1) for r in range(height) for c in range(width - 1)]
    down = [(r * width + c, (r + 1) * width + c) for r in range(height - 1) for c in range(width)]
    return across + down


@pytest.mark.parametrize(
    "nodes, links, width",
    [
        (1, [], 0),
        (6, [(v, v + 1) for v in range(5)], 1),
        (5000, [(0, v) for v in range(1, 5000)], 1),
        (200, [(v, (v + 1) % 200) for v in range(200)], 2),
        (12, grid(2, 6), 2),
        (30, grid(3, 10), 3),
        (4, [(0, 1, 2, 3)], 3),
        (300, [(v - m, v) for m in (1, 2) for v in range(m, 300)], 2),
    ],
    ids=["node", "chain", "star", "cycle", "two rows", "three rows", "clique", "second order"],
)
def test_min_fill_finds_the_treewidth(nodes, links, width):
    plans = make_plans(join_graphs([0, nodes], [links]), (2,), False)
    assert plans.most - 1 == width


def test_equal_graphs_have_one_plan():
    links = [(0, 1), (1, 2)]
    graphs = join_graphs([0, 3, 6, 8, 11], [links, links, links[:1], links], [0] * 8 + [0, 1, 0])
    assert make_plans(graphs, (2, 3), False).of.tolist() == [0, 0, 1, 2]
    assert make_plans(graphs, (2, 2), False).of.tolist() == [0, 0, 1, 0]


def test_a_treewidth_that_cannot_fit_is_refused_with_its_size():
    many = [(u, v) for u in range(60) for v in range(u)]
    words = r"graph 1, with a clique of 60 nodes \(treewidth 59 or more\), needs .* GiB"
    with pytest.raises(MemoryError, match=words):
        make_plans(join_graphs([0, 1, 61], [[], many]), (4,), False)
