"""Examples at places: sums and rounds over parts find the optimum of one machine, and prove it as well."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel import Checkpoint, LogisticRegression, problems, solve
from fenchel.choosing import plan
from fenchel.data import take_examples
from fenchel.distributed.places import Here, parts
from fenchel.distributed.rounds import Rounds
from fenchel.distributed.spread import Spread, spread_here
from fenchel.distributed.vectors import Packed, dense, packed, plus, size_of, total
from fenchel.distributed.widths import Groups, after, needed
from fenchel.io.sharding import shard_rows
from fenchel.solvers import make


def made_up(classes=2, n=160, seed=0, **settings):
    """A problem on sparse rows, with noise."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, 30, 0.2, "csr", random_state=seed)
    X.data = rng.normal(size=X.nnz)
    y = (X @ rng.normal(size=(30, classes)) + rng.normal(size=(n, classes))).argmax(axis=1)
    if classes == 2:
        return problems.binary(X, y, **{"C": 2.0} | settings)
    return problems.flat(X, y, labels=classes, merge=False, **{"C": 2.0} | settings)


def same_optimum(problem, count, solver, tol=1e-6, **settings):
    """The result on places, once its certificate is that of one machine."""
    alone = solve(problem, settings.pop("against", "lbfgs"), tol=1e-9, max_passes=5000)
    spread = spread_here(problem, count)
    found = solve(spread, solver, tol=tol, max_passes=5000, **settings)
    assert found.certificate.converged
    assert found.certificate.dual <= alone.certificate.primal * (1 + 1e-12)
    assert found.certificate.primal == pytest.approx(alone.certificate.primal, rel=2 * tol)
    assert problem.value_at(found.w, found.b if problem.free else None)[0] == pytest.approx(
        found.certificate.primal, rel=1e-9
    )
    assert all(row.dual <= row.primal * (1 + 1e-12) for row in found.trace)
    return found


@pytest.mark.parametrize("count", [1, 2, 4, 8])
@pytest.mark.parametrize("solver", ["lbfgs", "tron"])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_sums_over_places(classes, free, solver, count):
    problem = made_up(classes, fit_intercept=free)
    found = same_optimum(problem, count, solver)
    alone = solve(problem, solver, tol=1e-6)
    assert found.certificate.passes == alone.certificate.passes
    np.testing.assert_allclose(found.w, alone.w, atol=1e-7)


@pytest.mark.parametrize("count", [1, 2, 4, 8])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_rounds_of_dual_coordinates(classes, free, count):
    same_optimum(made_up(classes, fit_intercept=free), count, "cd-dual", tol=1e-5)


@pytest.mark.parametrize("solver", ["eg-gap", "sdca", "eg"])
@pytest.mark.parametrize("classes", [2, 4])
def test_rounds_of_other_dual_solvers(classes, solver):
    same_optimum(made_up(classes, fit_intercept=classes == 4), 3, solver, tol=1e-4)


def test_rounds_of_batch_steps():
    same_optimum(made_up(4, n=60, C=0.5), 3, "eg-batch", tol=1e-3)


@pytest.mark.parametrize("solver", ["cd-dual", "eg-gap", "sdca", "lbfgs"])
@pytest.mark.parametrize("classes", [2, 4])
def test_elastic_net(classes, solver):
    problem = made_up(classes, l1_ratio=0.3, fit_intercept=True)
    found = same_optimum(problem, 3, solver, tol=1e-4)
    assert (found.w == 0.0).any()


@pytest.mark.parametrize("solver", ["cd-dual", "sdca"])
@pytest.mark.parametrize("classes", [2, 4])
def test_hinge(classes, solver):
    problem = made_up(classes, loss="hinge", C=0.5)
    same_optimum(problem, 3, solver, tol=1e-3, against="cd-dual")


def test_iterative_scaling():
    rng = np.random.default_rng(0)
    X, y = sp.random(80, 12, 0.3, "csr", random_state=0), rng.integers(2, size=80)
    problem = problems.binary(X, y, C=1.0)
    alone, found = (solve(one, "gis", max_passes=20, tol=0.0) for one in (problem, spread_here(problem, 3)))
    np.testing.assert_allclose(found.w, alone.w, rtol=1e-9)
    with pytest.raises(ValueError, match="gis needs features ≥ 0, but there is -1"):
        solve(spread_here(problems.binary(-X.ceil(), y), 3), "gis")


@pytest.mark.parametrize("solver", ["cd-dual", "tron"])
def test_a_run_is_taken_up_again(tmp_path, solver):
    """By other places, which know nothing of it."""
    problem, settings = made_up(2, fit_intercept=True), {"tol": 1e-6}
    whole = solve(spread_here(problem, 2), solver, **settings)
    kept = Checkpoint(tmp_path / "run", every=0)
    solve(spread_here(problem, 2), solver, max_passes=4, keeper=kept, **settings)
    kept = Checkpoint(tmp_path / "run", every=0, resume=True)
    found = solve(spread_here(problem, 2), solver, keeper=kept, **settings)
    assert found.certificate.converged
    np.testing.assert_allclose(found.w, whole.w, atol=1e-9 if solver == "tron" else 1e-4)


def test_sums_are_those_of_the_whole():
    problem = made_up(4, fit_intercept=True)
    spread = spread_here(problem, 3)
    w = np.random.default_rng(1).normal(size=spread.dim)
    w[spread.penalised :] *= problem.design.constant / spread.design.constant
    own = w.copy()
    own[spread.penalised :] *= spread.design.constant / problem.design.constant
    ours, theirs = spread.evaluate(w), problem.evaluate(own)
    assert ours.value == pytest.approx(theirs.value, rel=1e-13)
    np.testing.assert_allclose(ours.smooth[: spread.penalised], theirs.smooth[: spread.penalised], atol=1e-14)
    d = np.zeros(spread.dim)
    d[: spread.penalised] = np.random.default_rng(2).normal(size=spread.penalised)
    ours, theirs = spread.hessian_product(ours, d), problem.hessian_product(theirs, d)
    np.testing.assert_allclose(ours[: spread.penalised], theirs[: spread.penalised], atol=1e-13)
    assert spread.value_at_zero == pytest.approx(problem.value_at_zero)
    assert spread.n == problem.n
    assert "at 3 places" in str(spread)


@pytest.mark.parametrize("count, solver", [(2, "eg-gap"), (3, "lbfgs")])
def test_sequences_go_by_sums_at_many_places(count, solver):
    """Their rounds grow with the places, those of sums do not; the hinge loss has no other way."""
    assert spread_here(some_chains(), count).plan() == [solver]
    assert spread_here(some_chains(loss="hinge"), count).plan() == ["eg-gap"]


def test_sparse_tables_of_few_columns_go_by_sums_as_on_one_machine():
    rng = np.random.default_rng(0)
    X = sp.random(3000, 100, 0.1, "csr", rng=rng)
    problem = problems.binary(X, X @ rng.normal(size=100) > 0.0, C=1.0, fit_intercept=True)
    assert spread_here(problem, 2).plan()[0][0] == plan(problem)[0][0] == "lbfgs"


def same_shares(spread, v):
    """What the dual variables add up to is v, where several places know it."""
    np.testing.assert_allclose(dense(spread.places.sum("share")), v[spread.shared], atol=1e-12)


@pytest.mark.parametrize("solver", ["cd-dual", "eg"])
def test_weights_that_only_one_place_has_are_not_sent(solver):
    """They stay there, and are part of the dual, of the model and of its certificate all the same."""
    rng = np.random.default_rng(3)
    X = sp.random(60, 400, 0.02, "csr", random_state=1)  # many a column is of one row
    problem = problems.binary(X, (X @ rng.normal(size=400) > 0.0).astype(int), C=10.0)
    spread = spread_here(problem, 3)
    rounds = Rounds(make(solver))
    state = rounds.init(spread, None)
    assert 0 < spread.shared.size < problem.dim
    for _ in range(3):
        rounds.step(spread, state)
        sent = spread.places.calls[-1]
        assert sent.name == "round" and max(sent.down, sent.up) <= 8 * spread.shared.size + 400
        rounds._told(spread, state)
        whole = rounds.whole(spread, state)
        np.testing.assert_allclose(spread.residuals("mu"), problem.lam * whole, atol=1e-12)
        assert state.dual == pytest.approx(spread.dual("mu", whole[: problem.penalised]), rel=1e-12)
    found = same_optimum(problem, 3, solver, tol=1e-6)
    np.testing.assert_allclose(found.w, solve(problem, "lbfgs", tol=1e-12).w, atol=0.02)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.3])
@pytest.mark.parametrize("solver", ["cd-dual", "eg", "sdca"])
def test_a_round_raises_the_dual_by_what_the_places_gained(solver, l1_ratio):
    """σ′ = K: D after a round is no less than before, and v is w of all dual variables."""
    problem = made_up(2, l1_ratio=l1_ratio) if l1_ratio else made_up(2)
    spread, rounds = spread_here(problem, 4), Rounds(make(solver))
    state = rounds.init(spread, None)
    rounds.step(spread, state)
    for _ in range(6):
        before = state.dual
        state.widths[:] = 4.0
        rounds.step(spread, state)
        assert state.accepted and state.dual >= before
        rounds._told(spread, state)
        same_shares(spread, state.v)
        mu = np.concatenate([place.state.mu for place in spread.places.places])
        order = np.random.default_rng(0).permutation(problem.n)
        order = np.concatenate([np.sort(some) for some in np.array_split(order, 4)])
        whole = np.empty_like(mu)
        whole[order] = mu
        assert problem.dual(whole) == pytest.approx(state.dual, rel=1e-10)


def test_a_round_that_lowers_the_dual_is_undone():
    problem = problems.binary(np.ones((8, 1)), [0, 1, 1, 1, 1, 1, 1, 1], C=100.0)  # all share one feature
    spread, rounds = spread_here(problem, 8), Rounds(make("cd-dual"))
    state = rounds.init(spread, None)
    undone = 0
    for _ in range(30):
        state.widths[:] = 1.0 if state.rounds < 3 else state.widths
        before, v = state.dual, state.v
        rounds.step(spread, state)
        undone += not state.accepted
        if not state.accepted:
            assert state.dual == before and state.v is v
        point = rounds.point(spread, state)
        assert point.dual <= point.primal
        same_shares(spread, state.v)
    assert undone
    same_optimum(problem, 8, "cd-dual", tol=1e-6)


def test_places_that_lack_a_class():
    problem = made_up(2, fit_intercept=True)
    order = np.argsort(problem.examples.y, kind="stable")
    sorted_ones = replace(problem, examples=take_examples(problem.examples, order))
    best = solve(problem, "lbfgs", tol=1e-8).certificate.primal
    spread = Spread.over(Here(parts(sorted_ones, 4, seed=None)), sorted_ones)
    for solver in ("lbfgs", "cd-dual"):
        found = solve(spread, solver, tol=1e-5, max_passes=5000)
        assert found.certificate.primal == pytest.approx(best, rel=2e-5)


def test_examples_on_disk_without_room_for_a_copy_have_one_width(tmp_path, monkeypatch):
    X, y = sp.random(60, 12, 0.3, "csr", random_state=0), np.arange(60) % 2
    shards = shard_rows([(X, y)], tmp_path / "shards", rows=20)
    data = LogisticRegression().encode_training(shards)
    problem = LogisticRegression().problem(data)
    assert Spread.over(Here([problem]), problem).groups.count > 1
    monkeypatch.setattr("fenchel.distributed.place.available_bytes", lambda: 100)
    assert Spread.over(Here([problem]), problem).groups.count == 1


def test_what_a_round_needed_is_by_groups():
    """Columns that all places push alike need σ′ = K, those of one place 1; offsets have their own."""
    groups = Groups.by(np.array([1, 2, 40, 40]), alike=False)
    assert groups.of.tolist() == [0, 1, 5, 5] and groups.first_widths(4.0).tolist() == [4.0] * 7
    shares = [np.array([p == 0, 0.0, 1.0, 2.0, (-1.0) ** p]) for p in range(4)]
    apart = sum(groups.squares(np.asarray(share), 1, 1) for share in shares)
    found = needed(groups.squares(sum(shares), 1, 1), apart, 4.0)
    assert found.tolist() == [1.0, 1.0, 1.0, 1.0, 1.0, 4.0, 1.0]
    alike = Groups.by(np.array([1, 2, 40, 40]), alike=True)
    assert alike.squares(np.arange(4.0), 1, 0).tolist() == [1.0 + 4.0 + 9.0, 0.0]
    widths = np.array([4.0, 4.0, 1.0])
    assert after(widths, np.array([1.0, 3.0, 2.0]), True, 4.0).tolist() == [2.0, 3.0, 2.0]
    assert after(widths, np.array([1.0, 3.0, 2.0]), False, 4.0).tolist() == [4.0, 4.0, 2.0]


def test_many_places_on_text_take_fewer_rounds_than_the_safe_width(monkeypatch):
    """Words of all frequencies: σ′ = K for all takes more."""
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(600), 20), (400 ** rng.random(12_000)).astype(int)
    X = sp.csr_matrix((np.full(12_000, 0.2), (rows, columns)), (600, 400))
    y = X @ rng.normal(size=400) + 0.1 * rng.normal(size=600) > 0.0
    problem = problems.binary(X, y, C=5.0, fit_intercept=True)
    ours = same_optimum(problem, 30, "cd-dual", tol=1e-3).certificate.passes
    monkeypatch.setattr("fenchel.distributed.rounds.after", lambda widths, *others: widths)
    safe = same_optimum(problem, 30, "cd-dual", tol=1e-3).certificate.passes
    assert ours < 0.7 * safe


def test_changes_are_sent_as_what_is_smaller():
    v = np.zeros(1000)
    v[[3, 500]] = 1.0, -2.0
    small = packed(v)
    assert isinstance(small, Packed) and size_of(small) < 100
    np.testing.assert_array_equal(dense(small), v)
    assert packed(np.ones(5)) is not None and not isinstance(packed(np.ones(5)), Packed)
    np.testing.assert_array_equal(dense(plus(small, small)), 2 * v)
    np.testing.assert_array_equal(dense(total([small, np.ones(1000), small])), 2 * v + 1)
    assert total([(1, np.ones(2))] * 5)[0] == 5


def test_what_cannot_be_done_is_a_sentence():
    with pytest.raises(ValueError, match="'cd-primal' does not work on examples that are elsewhere"):
        solve(spread_here(made_up(), 2), "cd-primal")


def test_sequences():
    """General kernels at places."""
    rng = np.random.default_rng(0)
    X, starts = sp.random(60, 20, 0.2, "csr", random_state=0), np.arange(0, 61, 4)
    y = (X @ rng.normal(size=(20, 3))).argmax(axis=1)
    problem = problems.chain(X, y, starts, labels=3, C=1.0)
    same_optimum(problem, 3, "lbfgs", tol=1e-5)
    same_optimum(problem, 3, "sdca", tol=1e-4)


def some_chains(seed=0, **settings):
    """Attributes that all places have, that some have, and that one token has alone."""
    rng = np.random.default_rng(seed)
    common, rare = sp.random(90, 12, 0.3, "csr", random_state=seed), sp.random(90, 60, 0.02, "csr")
    X, starts = sp.hstack([common.ceil(), rare.ceil(), sp.eye(90)]).tocsr(), np.arange(0, 91, 5)
    y = (X @ rng.normal(size=(162, 3)) + 0.5 * rng.normal(size=(90, 3))).argmax(axis=1)
    return problems.chain(X, y, starts, labels=3, **(settings if "c1" in settings else {"C": 1.0} | settings))


@pytest.mark.parametrize("count", [1, 2, 4, 8])
@pytest.mark.parametrize("settings", [{}, {"observed": True}])
@pytest.mark.parametrize("solver", ["eg", "eg-gap"])
def test_sequences_on_their_lane(solver, settings, count):
    """The weights of attributes that one token has are nobody's but its own, and not sent as steps."""
    problem = some_chains(**settings)
    spread = spread_here(problem, count)
    rounds = spread.adapted(make(solver))
    state = rounds.init(spread, None)
    for _ in range(4):
        rounds.step(spread, state)
        rounds._told(spread, state)
        assert all(place.state.arranged is not None for place in spread.places.places)
        same_shares(spread, state.v)
        spread.places.each("take", state.v[spread.shared])
        whole = spread.places.places[0].problem.lam * rounds.whole(spread, state)
        np.testing.assert_allclose(spread.residuals("mu"), whole, atol=1e-12)
    found = same_optimum(problem, count, solver, tol=1e-5)
    alone = solve(problem, "lbfgs", tol=1e-10)
    np.testing.assert_allclose(found.w, alone.w, atol=0.05)


def test_a_round_on_the_lane_is_undone():
    problem = some_chains(C=100.0)
    spread = spread_here(problem, 4)
    rounds = spread.adapted(make("eg"))
    state = rounds.init(spread, None)
    rounds.step(spread, state)
    state.widths[:], before, dual = 0.05, state.v.copy(), state.dual  # far too bold
    rounds.step(spread, state)
    assert not state.accepted and state.dual == dual
    rounds._told(spread, state)
    same_shares(spread, before)


def test_sequences_with_an_l1_term_and_trees():
    same_optimum(some_chains(c1=0.02, c2=0.2), 3, "eg-gap", tol=1e-4)
    rng = np.random.default_rng(0)
    lengths = [3, 4, 2, 5, 3, 4]
    F = sp.random(sum(k * k for k in lengths), 25, 0.2, "csr", random_state=0)
    heads = np.concatenate([[0, *range(1, k)] for k in lengths])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    F.data = rng.normal(size=F.nnz)
    problem = problems.projective(F, heads, starts, C=1.0)
    same_optimum(problem, 3, "lbfgs", tol=1e-6)
    same_optimum(problem, 3, "eg", tol=1e-4)


@pytest.mark.parametrize("solver", ["cd-dual", "lbfgs"])
def test_observed_weights_are_those_that_any_place_has_seen(solver):
    problem = made_up(4, n=24, observed=True, C=1.0)
    assert not problem.structure.mask.all()
    found = same_optimum(problem, 8, solver, tol=1e-5)
    assert (found.w[~problem.structure.mask] == 0.0).all()
