"""Cutting planes on label sequences: working sets of outputs that are too many to list."""

import numpy as np
import pytest

from fenchel import problems, solve
from fenchel.solvers import outputs
from fenchel.solvers.base import Start
from fenchel.solvers.cuttingplane import CuttingPlane
from fenchel.structures import base
from fenchel.trace import Status

TOL = 1e-3


def sequences(n, longest, labels, attributes, seed=0):
    """Sparse attributes, and labels that a noisy linear model gave; where the tokens of each begin."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, longest + 1, n))])
    X = rng.random((starts[-1], attributes)) * (rng.random((starts[-1], attributes)) < 0.2)
    scores = X @ rng.normal(size=(attributes, labels)) + 0.5 * rng.normal(size=(starts[-1], labels))
    return X, scores.argmax(axis=1), starts


@pytest.fixture(scope="module")
def problem():
    X, y, starts = sequences(50, 10, 5, 30)
    return problems.chain(X, y, starts, loss="hinge", labels=5, C=1.0)


@pytest.fixture(scope="module")
def result(problem):
    return solve(problem, CuttingPlane(slack="n"), tol=TOL, max_passes=3000)


def go(problem, steps, start=None):
    """The state after so many steps."""
    solver = CuttingPlane(slack="n")
    state = solver.init(problem, start)
    for _ in range(steps):
        solver.step(problem, state)
    return state


def dense_points(problem, points, i):
    """(m, block) the points of example i, and their weights."""
    chosen = range(int(points.members[i]), int(points.members[i] + points.used[i]))
    rows = np.zeros((len(chosen), base.block_length(problem.blocks, i)))
    for row, a in zip(rows, chosen, strict=True):
        span = slice(int(points.entries[a]), int(points.entries[a] + points.sizes[a]))
        row[points.parts[span]] = points.values[span]
    return rows, points.alpha[chosen.start : chosen.stop]


def assert_consistent(problem, state):
    """α are distributions, μ = Σ α p, products are those of features, v = w(μ), and the truth is first."""
    y = np.empty(problem.blocks.size)
    for i in range(problem.n):
        rows, alpha = dense_points(problem, state.points, i)
        assert (alpha >= 0.0).all() and alpha.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(base.block_view(problem.blocks, state.mu, i), alpha @ rows, atol=1e-14)
        base.block_target(problem.blocks, i, y)
        np.testing.assert_array_equal(rows[0], y[: rows.shape[1]])
        features = [pulled(problem, i, row) for row in rows]
        products = np.inner(features, features) * problem.examples.mass[i] / problem.lam
        span = slice(int(state.points.squares[i]), int(state.points.squares[i + 1]))
        np.testing.assert_allclose(state.points.products[span], products.ravel(), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(state.v, problem.proximal_weights(state.mu), atol=1e-11)
    for i in range(problem.n):
        first, T = int(problem.blocks.layout.offsets[i]), int(np.diff(problem.examples.starts)[i])
        nodes = state.mu[first:][: T * problem.structure.labels].reshape(T, -1)
        np.testing.assert_allclose(nodes.sum(axis=1), 1.0, atol=1e-12)
    assert (state.mu >= 0.0).all()


def pulled(problem, i, point):
    """A_iᵀ p."""
    v = np.zeros(problem.dim)
    base.block_add(problem.blocks, i, 1.0, point, v)
    return v


def test_a_slack_per_sequence_reaches_the_optimum(problem, result):
    assert result.status is Status.CONVERGED and result.certificate.relative_gap <= TOL
    assert all(row.primal >= row.dual for row in result.trace)
    duals = [row.dual for row in result.trace]
    assert duals == sorted(duals)
    assert problem.dual(result.mu) == pytest.approx(result.trace[-1].dual, rel=1e-9)


@pytest.mark.parametrize("rival", [CuttingPlane(slack="1"), "sdca"], ids=["slack 1", "sdca"])
def test_it_is_the_optimum_of_other_solvers(problem, result, rival):
    """Each dual bound is below each objective, and these lie within the tolerances of each other."""
    other = solve(problem, rival, tol=TOL, max_passes=3000).certificate
    mine = result.certificate
    assert other.relative_gap <= TOL
    assert mine.dual <= other.primal and other.dual <= mine.primal
    assert mine.primal == pytest.approx(other.primal, rel=TOL)


def test_passes_over_the_sets_call_no_oracle(problem, result):
    last = result.trace[-1]
    assert last.oracle_calls < 0.2 * last.passes * problem.n


def test_the_sets_hold_what_they_say(problem):
    assert_consistent(problem, go(problem, 0))
    state = go(problem, 150)
    assert state.points.alpha.size > 2 * problem.n
    assert_consistent(problem, state)


def test_outputs_long_without_weight_are_dropped(problem, monkeypatch):
    monkeypatch.setattr(outputs, "SPARE", 0)
    few = go(problem, 150)
    monkeypatch.undo()
    many = go(problem, 150)
    assert few.points.alpha.size < many.points.alpha.size
    assert_consistent(problem, few)


def test_a_warm_start_begins_where_it_ended(problem, result):
    """Its marginals are a point of the set, of weight one, though no output."""
    state = go(problem, 0, result.start)
    assert_consistent(problem, state)
    assert problem.dual(state.mu) == pytest.approx(problem.dual(result.mu), rel=1e-12)
    again = solve(problem, CuttingPlane(slack="n"), tol=2 * TOL, start=result.start)
    assert again.status is Status.CONVERGED and again.certificate.passes <= 10.0
    assert_consistent(problem, go(problem, 10, result.start))
    assert go(problem, 0, Start(result.w)).points.alpha.size == problem.n


@pytest.mark.parametrize("kind", ["edges", "observed", "banned", "single tokens", "weighted"])
def test_every_kind_of_chain_is_solved(kind):
    X, y, starts = sequences(12, 1 if kind == "single tokens" else 5, 3, 8, seed=1)
    options = {"loss": "hinge", "labels": 4, "C": 0.5}
    if kind == "edges":
        options["edges"] = (X[:, :2] > 0.5).astype(float)
    if kind == "observed":
        options["observed"] = True
    if kind == "banned":
        pairs = np.delete(y[:-1] * 4 + y[1:], starts[1:-1] - 1)
        options["banned"] = np.bincount(pairs, minlength=16).reshape(4, 4) == 0
    if kind == "weighted":
        options |= {"sample_weight": np.arange(1.0, 13.0), "token_weight": 1.0 + (y == 0)}
    problem = problems.chain(X, y, starts, **options)
    found = solve(problem, CuttingPlane(slack="n"), tol=TOL, max_passes=3000)
    best = solve(problem, CuttingPlane(slack="1"), tol=TOL, max_passes=3000)
    assert found.status is Status.CONVERGED
    assert all(row.primal >= row.dual for row in found.trace)
    assert found.certificate.primal == pytest.approx(best.certificate.primal, rel=2 * TOL)


def test_sets_that_cannot_fit_are_refused(problem, monkeypatch):
    monkeypatch.setattr("fenchel._memory.available_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match=r"dual variables needs .* use slack='1' or sgd"):
        go(problem, 0)
    monkeypatch.setattr("fenchel._memory.available_bytes", lambda: 16 * problem.shape[0])
    with pytest.raises(MemoryError, match=r"lists of \d+ outputs needs"):
        go(problem, 200)
