"""Cached outputs: flows of label sequences and lists of outputs are what they say, and reach one optimum."""

import numpy as np
import pytest
import scipy.sparse as sp

from chains import allow_only, random_data
from fenchel import problems, solve
from fenchel.solvers import CDOutputs
from fenchel.solvers.base import Start
from fenchel.solvers.cdoutputs import flows
from fenchel.solvers.cdoutputs.flows import Flows
from fenchel.solvers.cdoutputs.lists import Lists
from fenchel.structures import base
from fenchel.trace import Status

TOL = 1e-4
LENGTHS = (1, 2, 5, 7, 3, 8, 6, 4, 1, 7) * 3


def data(K=4, **more):
    return random_data(5, LENGTHS, A=12, K=K, **more)


def problem(C=1.0, **more):
    return data(**more).problem("hinge", C=C)


def go(problem, steps, start=None, **settings):
    """The cache after so many steps, and D after each."""
    solver = CDOutputs(**settings)
    state = solver.init(problem, start)
    duals = [state.cache.dual(problem)]
    for _ in range(steps):
        solver.step(problem, state)
        duals.append(state.cache.dual(problem))
    return state.cache, duals


def by_lists(monkeypatch):
    monkeypatch.setattr("fenchel.solvers.cdoutputs.solver.suits", lambda problem: False)


# ---- what is held


def tokens_of(cache):
    """(N,) lists of (before, here, mass)."""
    flow = cache.flow
    for token in range(flow.used.size):
        slots = slice(int(flow.begin[token]), int(flow.begin[token] + flow.used[token]))
        pairs = flow.pairs[slots].astype(np.int64)
        yield list(zip(pairs >> 16, pairs & 65535, flow.mass[slots], strict=True))


def assert_flow(problem, cache):
    """Masses are positive, sum to one, agree between neighbours to the last bit; weights are those of μ."""
    starts, K, label = set(problem.examples.starts.tolist()), problem.structure.labels, cache.origin.labels
    nodes = None
    for t, support in enumerate(tokens_of(cache)):
        before, here = np.zeros(K), np.zeros(K)
        for a, b, mass in support:
            assert mass > 0.0
            before[a] += mass
            here[b] += mass
            banned = problem.structure.banned
            assert t in starts or banned is None or not banned[label[a], label[b]]
        assert here.sum() == 1.0
        if t not in starts:
            np.testing.assert_array_equal(before, nodes)
        nodes = here
    mu, kept = cache.marginals(), [array.copy() for array in cache.weights[:3]]
    cache.weigh()
    for old, new in zip(kept, cache.weights[:3], strict=True):
        np.testing.assert_allclose(old, new, atol=1e-10)
    mine, general = cache.point(problem), problem.dual_point(mu)
    assert mine.primal == pytest.approx(general.primal, rel=1e-10, abs=1e-12)
    assert mine.gap == pytest.approx(general.gap, rel=1e-8, abs=1e-10)
    np.testing.assert_allclose(mine.w, general.w, atol=1e-10)
    assert cache.dual(problem) == pytest.approx(problem.dual(mu), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize(
    "kind", ["plain", "values", "banned", "no transitions", "observed", "observed values"]
)
def test_a_flow_stays_a_flow(kind):
    examples = data(transitions=kind != "no transitions", K=10 if "observed" in kind else 4)
    if "values" in kind:
        examples.X *= np.random.default_rng(0).normal(size=examples.X.shape)
    if kind == "banned":
        examples.banned = allow_only(examples)
    made = examples.problem("hinge", C=1.0, observed="observed" in kind)
    cache, duals = go(made, 6)
    assert isinstance(cache, Flows)
    assert_flow(made, cache)
    assert duals == sorted(duals)


def test_the_gram_matrix_is_that_of_the_tokens():
    examples = data()
    examples.X[3, :] = 0.0
    cache = Flows(examples.problem("hinge"))
    gram, starts = cache.gram, examples.starts
    for i in range(examples.n):
        X = examples.X[starts[i] : starts[i + 1]]
        dense = np.zeros((len(X), len(X)))
        for t in range(len(X)):
            slots = slice(int(gram.begin[starts[i] + t]), int(gram.begin[starts[i] + t + 1]))
            dense[t, gram.tokens[slots]] = gram.values[slots]
        np.testing.assert_allclose(dense, X @ X.T, atol=1e-12)


def test_lists_hold_what_they_say(monkeypatch):
    by_lists(monkeypatch)
    made = problem()
    cache, duals = go(made, 6)
    assert isinstance(cache, Lists) and duals == sorted(duals)
    for i in range(made.n):
        first, points = int(cache.points.members[i]), cache.points
        used = range(first, first + int(points.used[i]))
        mu = np.zeros(base.block_length(made.blocks, i))
        for a in used:
            slots = slice(int(points.entries[a]), int(points.entries[a] + points.sizes[a]))
            np.add.at(mu, points.parts[slots], points.alpha[a] * points.values[slots])
        assert points.alpha[used].sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(base.block_view(made.blocks, cache.mu, i), mu, atol=1e-14)
    np.testing.assert_allclose(cache.v, made.proximal_weights(cache.mu), atol=1e-10)


def test_an_output_larger_than_all_before_gets_room(monkeypatch):
    """As of structures whose outputs have more or fewer parts: here room is made for one part only."""
    by_lists(monkeypatch)
    made = problem()
    monkeypatch.setattr("fenchel.solvers.cdoutputs.lists._most_parts", lambda _: np.ones(made.n, np.uint64))
    result = solve(made, CDOutputs(), tol=TOL)
    assert result.status is Status.CONVERGED


# ---- one optimum


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_flows_and_lists_agree(C, monkeypatch):
    made = problem(C=C)
    by_flow = solve(made, CDOutputs(), tol=TOL, max_passes=3000 if C <= 1.0 else 300)
    by_lists(monkeypatch)
    by_list = solve(made, CDOutputs(), tol=TOL, max_passes=3000 if C <= 1.0 else 300)
    for one, other in ((by_flow, by_list), (by_list, by_flow)):
        assert all(row.primal >= row.dual for row in one.trace)
        assert one.certificate.dual <= other.certificate.primal * (1.0 + 1e-12)
        assert C > 1.0 or one.status is Status.CONVERGED


def hard_cases():
    """Sentences twice, equal tokens, labels that never occur, a token each, no attributes at all."""
    examples = data()
    twice = random_data(5, LENGTHS * 2, A=12, K=4)
    half = len(examples.y)
    twice.X[half:], twice.y[half:] = twice.X[:half], twice.y[:half]
    equal = data()
    equal.X[:] = 1.0
    bare = data()
    bare.X[:] = 0.0
    return {
        "twice": twice,
        "equal": equal,
        "bare": bare,
        "more labels": random_data(5, LENGTHS, A=12, K=4, costs=np.ones(half)),
        "tokens": random_data(5, (1,) * 20, A=6, K=3),
        "weights": data(weight=np.arange(1.0, 31.0), costs=1.0 + examples.y % 2),
        "edges": data(B=2),
    }


@pytest.mark.parametrize("name", hard_cases())
def test_hard_cases(name):
    made = hard_cases()[name].problem("hinge", C=0.5, observed=name == "twice")
    result = solve(made, CDOutputs(), tol=1e-3, max_passes=3000)
    rival = solve(made, "sdca", tol=1e-2, max_passes=2000)
    assert result.status is Status.CONVERGED
    assert all(row.primal >= row.dual for row in result.trace)
    assert result.certificate.dual <= rival.certificate.primal * (1.0 + 1e-12)
    assert rival.certificate.dual <= result.certificate.primal * (1.0 + 1e-12)


def test_slots_are_made_where_a_token_needs_more(monkeypatch):
    monkeypatch.setattr(flows, "FEW", 1)
    made = problem(C=10.0)
    cache, _ = go(made, 30)
    assert np.diff(cache.flow.begin.astype(np.int64)).max() > 2
    assert_flow(made, cache)


def test_long_sequences_whose_products_would_not_fit_take_lists(monkeypatch):
    assert flows.suits(problem())
    monkeypatch.setattr(flows, "available_bytes", lambda: 1000)
    assert not flows.suits(problem())


@pytest.mark.parametrize("labels", [3, 40])
def test_many_labels(labels):
    rng = np.random.default_rng(0)
    X = sp.random(200, 300, density=0.05, random_state=0, format="csr")
    y = np.asarray((X @ rng.normal(size=(300, labels))).argmax(axis=1)).ravel()
    made = problems.flat(X, y, C=10.0, loss="hinge")
    best = solve(made, "cd-dual", tol=TOL, max_passes=1e4).certificate
    result = solve(made, CDOutputs(), tol=TOL, max_passes=1e4)
    assert result.status is Status.CONVERGED
    assert result.certificate.dual <= best.primal and best.dual <= result.certificate.primal


# ---- settings, starts, counts


def test_without_cheap_passes_every_visit_asks():
    made = problem()
    result = solve(made, CDOutputs(cheap=0), tol=1e-2)
    assert result.status is Status.CONVERGED
    assert result.trace[-1].oracle_calls == pytest.approx(result.trace[-1].passes * made.n)
    with_them = solve(made, CDOutputs(), tol=1e-2).trace[-1]
    assert with_them.oracle_calls < 0.5 * with_them.passes * made.n
    with pytest.raises(ValueError, match="cheap=-1 must be a whole number"):
        CDOutputs(cheap=-1)


@pytest.mark.parametrize("kind", ["flows", "lists", "banned", "observed"])
def test_a_warm_start(kind, monkeypatch):
    examples = data()
    if kind == "lists":
        by_lists(monkeypatch)
    if kind == "banned":
        examples.banned = allow_only(examples)
    made, next_one = (examples.problem("hinge", C=C, observed=kind == "observed") for C in (1.0, 1.5))
    before = solve(made, CDOutputs(), tol=TOL)
    cache, duals = go(made, 2, before.start)
    assert duals[0] >= (0.999 if kind == "lists" else 0.5) * problem_dual(before)
    if kind != "lists":
        assert_flow(made, cache)
    cold = solve(next_one, CDOutputs(), tol=TOL)
    warm = solve(next_one, CDOutputs(), tol=TOL, start=before.start)
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=2 * TOL)
    assert go(made, 0, Start(before.w))[1] == [0.0]


def problem_dual(result):
    return result.certificate.dual


def test_a_start_keeps_the_marginals_of_labels():
    made = problem()
    mu = solve(made, "sdca", tol=1e-1, max_passes=50).mu
    cache = Flows(made, mu.copy())
    nodes = np.zeros(mu.size, bool)
    for i in range(made.n):
        T = int(np.diff(made.examples.starts)[i])
        nodes[int(made.blocks.layout.offsets[i]) :][: T * made.structure.labels] = True
    np.testing.assert_allclose(cache.marginals()[nodes], mu[nodes], atol=1e-12)
    assert_flow(made, cache)


def test_lists_that_cannot_fit_are_refused(monkeypatch):
    by_lists(monkeypatch)
    made = problem()
    monkeypatch.setattr("fenchel._memory.available_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match=r"dual variables needs .* use sgd"):
        go(made, 0)


def test_the_same_seed_gives_the_same_bits():
    made = problem()
    first, second = (solve(made, CDOutputs(seed=3), tol=1e-3) for _ in range(2))
    np.testing.assert_array_equal(first.w, second.w)
