"""L1 and elastic net by methods of the dual: the optimum of OWL-QN on every structure; weak λ by a centre."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel import ChainCRF, LogisticRegression, MaxEnt, MaxEntTagger, Start, problems
from fenchel.choosing import plan
from fenchel.loop import solve
from fenchel.regularizers import L2, ElasticNet
from fenchel.solvers import EG
from fenchel.solvers.eg import proximal, sentences
from graphs import random_problem

RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 10)) * (RNG.uniform(size=(60, 10)) < 0.5)
Y = np.argmax(X @ RNG.normal(size=(10, 3)) + RNG.gumbel(size=(60, 3)), axis=1)
STARTS = np.concatenate([[0], np.cumsum(RNG.integers(1, 8, 30))])
TOKENS = sp.random(STARTS[-1], 50, 0.08, "csr", rng=RNG)
LABELS = RNG.integers(0, 4, STARTS[-1])
CONSTANTS = [(0.1, 0.1), (0.6, 0.02), (0.3, 2.0), (4.0, 1.0)]


def chain(binary=True, **settings):
    tokens = TOKENS.copy()
    if binary:
        tokens.data[:] = 1.0
    return problems.chain(tokens, LABELS, STARTS, **settings)


def edges():
    return sp.random(STARTS[-1], 4, 0.3, "csr", rng=np.random.default_rng(2))


def joint(**settings):
    F = sp.kron(sp.csr_matrix(X), sp.identity(3), format="csr")
    return problems.joint(F, Y, np.arange(0, 181, 3), **settings)


def trees(**settings):
    """Sentences of one to five words, each the head of the next one."""
    rng = np.random.default_rng(4)
    lengths = rng.integers(1, 6, size=20)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    arcs = sp.random(int(np.sum(lengths**2)), 15, 0.3, "csr", rng=rng)
    return problems.projective(arcs, np.concatenate([np.arange(n) for n in lengths]), starts, **settings)


MADE = {
    "binary": lambda **c: problems.binary(X, Y > 0, **c),
    "binary-free": lambda **c: problems.binary(X, Y > 0, fit_intercept=True, **c),
    "crossed": lambda **c: problems.flat(X, Y, **c),
    "crossed-free": lambda **c: problems.flat(X, Y, fit_intercept=True, **c),
    "crossed-observed": lambda **c: problems.flat(np.abs(X), Y, observed=True, **c),
    "joint": joint,
    "chain": chain,
    "chain-observed": lambda **c: chain(observed=True, **c),
    "chain-values": lambda **c: chain(binary=False, **c),
    "chain-values-observed": lambda **c: chain(binary=False, observed=True, **c),
    "chain-edges": lambda **c: chain(edges=edges(), **c),
    "chain-alone": lambda **c: chain(transitions=False, **c),
    "graph": lambda **c: random_problem(seed=3, **c),
    "trees": trees,
}


def solvers_for(name):
    if name in {"graph", "trees"}:
        return "eg-gap", "eg", "eg-batch"
    return ("eg-gap", "eg", "sdca") + (() if name.startswith("chain") else ("cd-dual",))


@pytest.mark.parametrize("constants", CONSTANTS, ids=str)
@pytest.mark.parametrize("name", MADE)
def test_dual_methods_find_the_optimum_of_owl_qn(name, constants):
    c1, c2 = constants
    problem = MADE[name](c1=c1, c2=c2)
    best = solve(problem, "lbfgs", tol=1e-10, max_passes=50_000)
    floor = best.certificate.primal
    for solver in solvers_for(name):
        result = solve(problem, solver, tol=1e-6, max_passes=5000)
        assert result.certificate.converged, (solver, result.certificate)
        assert floor * (1.0 - 1e-8) <= result.certificate.primal <= floor * (1.0 + 1.1e-6), solver
        for row in result.trace:
            assert row.primal >= row.dual and row.dual <= floor * (1.0 + 1e-9), solver
        u = problem.lam * best.w - best_gradient(problem, best)
        clear = np.abs(np.abs(u) - problem.l1) > 1e-2 * problem.l1
        np.testing.assert_array_equal((result.w == 0.0)[clear], (best.w == 0.0)[clear])


def best_gradient(problem, result):
    """Of the smooth part, at the penalised weights."""
    evaluation = problem.evaluate(problem.design.join(result.w, result.b))
    return evaluation.smooth[: problem.penalised]


def weak(c1, c2, **settings):
    """A chain whose λ is far below what makes visits easy."""
    problem = chain(c1=c1, c2=c2, **settings)
    assert proximal.proximal_penalty(problem) > 0.0
    return problem


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("constants", [(0.6, 1e-3), (0.1, 1e-5), (0.0, 0.01), (0.0, 1e-4)], ids=str)
def test_a_centre_makes_weak_regularisers_easy(constants, observed):
    c1, c2 = constants
    problem = weak(c1, c2, observed=observed)
    floor = solve(problem, "lbfgs", tol=1e-6, max_passes=50_000).certificate
    result = solve(problem, "eg-gap", tol=1e-4, max_passes=3000)
    assert result.certificate.converged
    assert result.certificate.primal <= floor.primal * (1.0 + 1.1e-4)
    for row in result.trace:
        assert row.primal >= row.dual and row.dual <= floor.primal * (1.0 + 1e-9)


def test_the_bound_of_mixtures_is_below_the_optimum_at_every_pass(monkeypatch):
    """However large κ is: the certificate is of the problem asked for."""
    problem = weak(0.3, 1e-3, observed=True)
    floor = solve(problem, "lbfgs", tol=1e-9, max_passes=50_000).certificate.primal
    for reach in (0.17, 3.0, 100.0):
        monkeypatch.setattr(proximal, "REACH", reach)
        result = solve(problem, EG(order="gap"), tol=1e-9, max_passes=40, check_every=1.0)
        assert len(result.trace) > 20
        assert all(
            row.dual <= floor * (1.0 + 1e-12) and row.primal >= floor * (1 - 1e-9) for row in result.trace
        )


@pytest.mark.parametrize("name", [name for name in MADE if name.startswith("chain")])
@pytest.mark.parametrize("c1", [0.1, 1.0])
def test_without_an_l2_term_a_centre_takes_its_place(name, c1):
    """The optimum of OWL-QN, from which the bound keeps its distance at every check."""
    problem = MADE[name](c1=c1, c2=0.0)
    floor = solve(problem, "lbfgs", tol=1e-7, max_passes=50_000).certificate
    result = solve(problem, "eg-gap", tol=1e-3, max_passes=3000)
    assert result.certificate.converged
    assert floor.dual <= result.certificate.primal <= floor.primal * (1.0 + 1.1e-3)
    for row in result.trace:
        assert row.primal >= row.dual and row.dual <= floor.primal * (1.0 + 1e-9)
    again = solve(problem, "eg-gap", tol=1e-3, max_passes=3000, start=result.start)
    assert again.certificate.converged


def test_without_an_l2_term_a_start_may_be_far_away():
    problem = chain(c1=0.1, c2=0.0)
    far = Start(1e4 * np.random.default_rng(0).normal(size=problem.dim), 0.0)
    assert solve(problem, "eg-gap", tol=1e-2, max_passes=3000, start=far).certificate.converged


def test_without_an_l2_term_attributes_may_all_be_zero():
    for transitions in (True, False):
        problem = problems.chain(
            sp.csr_matrix((6, 3)), [0, 1, 1, 0, 0, 1], [0, 3, 6], c1=0.1, c2=0.0, transitions=transitions
        )
        assert solve(problem, "eg-gap", tol=1e-6).certificate.converged


def test_without_an_l2_term_other_ways_of_exponentiated_gradient_are_refused():
    with pytest.raises(ValueError, match=r"without an L2 term \(c2 = 0\) .*; use lbfgs"):
        solve(chain(c1=0.1, c2=0.0), EG(lane=False))
    for name in ("graph", "trees"):
        with pytest.raises(ValueError, match="use lbfgs"):
            solve(MADE[name](c1=0.1, c2=0.0), "eg")


def test_mixed_entropies_are_those_of_the_mixture():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(6), size=20)
    H = -(q * np.log(q)).sum(axis=1)
    for t in (1.0, 0.9, 0.3):
        mixed = t * q
        mixed[:, 0] += 1.0 - t
        expected = -(mixed * np.log(mixed)).sum(axis=1)
        np.testing.assert_allclose(proximal._mixed_entropies(t, H, np.log(q[:, 0])), expected, rtol=1e-12)


def test_an_attribute_too_rare_for_its_price_has_no_weight_from_the_start():
    problem = chain(c1=5.5, c2=0.1)
    counts = np.bincount(TOKENS.indices, minlength=50)
    W = solve(problem, "eg-gap", tol=1e-6).w[: 50 * 4].reshape(50, 4)
    assert (counts <= 5).any() and not W[counts <= 5].any()
    columns = sentences.arrange(problem, problem.lam)[1].columns
    assert set(columns.tolist()) == set(np.flatnonzero(counts > 5).tolist())


def test_auto_takes_the_dual_where_there_is_one():
    assert plan(chain(c1=0.1, c2=0.1))[0][0] == "eg-gap"
    assert plan(chain(c1=0.1, c2=0.0))[0][0] == "eg-gap"
    assert plan(MADE["graph"](c1=0.1, c2=0.0)) == plan(MADE["trees"](c1=0.1, c2=0.0)) == ["lbfgs"]
    assert plan(MADE["binary"](c1=0.1, c2=10.0))[0][0] == "cd-dual"
    assert plan(MADE["crossed"](c1=0.1, c2=10.0))[0][0] == "eg-gap"
    for name in ("binary", "crossed"):
        assert plan(MADE[name](c1=1.0, c2=1e-4)) == plan(MADE[name](c1=1.0, c2=0.0)) == ["prox-newton"]


def test_gradient_methods_and_the_hinge_loss_refuse_an_l1_term():
    for solver in ("sgd", "sag", "tron", "gis"):
        with pytest.raises(ValueError, match=r"its L1 term has corners; use .*cd-dual, eg"):
            solve(MADE["binary"](c1=0.1, c2=0.1), solver)
    with pytest.raises(ValueError, match="hinge loss takes no L1 term"):
        solve(chain(loss="hinge", c1=0.1, c2=0.1), "sdca")


def test_a_penalty_path_keeps_the_l1_term():
    problem = chain(c1=0.3, c2=0.1)
    other = problem.with_penalty(3.0 * problem.lam)
    fresh = replace(problem, regularizer=ElasticNet(3.0 * problem.lam, problem.l1))
    assert other.dual_blocks.threshold == fresh.dual_blocks.threshold == problem.l1 / other.lam
    one, two = (solve(each, "eg-gap", tol=1e-8).certificate.primal for each in (other, fresh))
    assert one == pytest.approx(two, rel=1e-7)
    assert replace(problem, regularizer=L2(0.1)).dual_blocks.threshold == 0.0


# ---- estimators


def test_logistic_regression_takes_l1_ratio():
    from sklearn.linear_model import LogisticRegression as Theirs

    for ratio in (0.3, 0.7):
        ours = LogisticRegression(C=0.5, l1_ratio=ratio, tol=1e-9).fit(X, Y)
        theirs = Theirs(C=0.5, l1_ratio=ratio, solver="saga", tol=1e-10, max_iter=100_000).fit(X, Y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
        assert (ours.coef_ == 0.0).any()
    with pytest.raises(ValueError, match=r"l1_ratio=1\.5 must be a number between 0 and 1"):
        LogisticRegression(l1_ratio=1.5).fit(X, Y)


SENTENCES = [
    [["the"], ["cat"], ["sleeps"]],
    [["a"], ["dog"], ["barks", "loud"]],
    [["the"], ["dog"], ["sleeps"]],
]
TAGS = [["D", "N", "V"]] * 3


def test_chain_crf_takes_the_constants_of_crfsuite():
    sparse = ChainCRF(c1=0.3, c2=0.1, tol=1e-6).fit(SENTENCES, TAGS)
    assert (sparse.weights_ == 0.0).any() and sparse.predict(SENTENCES) == TAGS
    same = ChainCRF(c2=0.25, tol=1e-8).fit(SENTENCES, TAGS)
    usual = ChainCRF(C=2.0, tol=1e-8).fit(SENTENCES, TAGS)
    np.testing.assert_allclose(same.weights_, usual.weights_, atol=1e-3)
    with pytest.raises(ValueError, match=r"c1=0\.1 without c2; give both"):
        ChainCRF(c1=0.1).fit(SENTENCES, TAGS)
    with pytest.raises(ValueError, match="C=2 and c2=1 are two ways"):
        ChainCRF(C=2.0, c2=1.0).fit(SENTENCES, TAGS)
    for wrong in (-0.1, float("nan"), float("inf"), "1"):
        with pytest.raises(ValueError, match=r"c1=.* must be a finite number, at least 0, or None"):
            ChainCRF(c1=wrong, c2=0.1).fit(SENTENCES, TAGS)


def test_maxent_takes_observed_and_l1_ratio():
    events, y = [["a", "b"], ["b", "c"], ["a"], ["c"]], ["x", "y", "x", "y"]
    model = MaxEnt(observed=True, tol=1e-8).fit(events, y)
    seen = np.array([["a" in e for e in events], ["b" in e for e in events], ["c" in e for e in events]])
    for k, label in enumerate(model.classes_):
        met = seen[:, [given == label for given in y]].any(axis=1)
        assert not model.coef_[k][~met].any()
    assert (MaxEnt(l1_ratio=0.5).fit(events, y).coef_ == 0.0).any()
    with pytest.raises(ValueError, match="observed has no meaning for candidates"):
        MaxEnt(observed=True).fit_joint([{"x": ["a"], "y": ["b"]}] * 2, ["x", "y"])
    tagger = MaxEntTagger(observed=True).fit([["a", "b"], ["b", "a"]], [["X", "Y"], ["Y", "X"]])
    assert (tagger.coef_ == 0.0).any()


def test_without_regulariser_observed_pairs_can_be_scaled():
    """What OpenNLP does: GIS on the pairs that were seen, no prior."""
    events = [["a", "b"], ["b", "c"], ["a"], ["c"], ["a", "c"], ["b"]] * 2
    y = ["x", "y", "x", "y", "y", "x", "y", "x", "x", "y", "x", "y"]
    best = MaxEnt(C=np.inf, observed=True, solver="lbfgs", tol=1e-8).fit(events, y).certificate_.primal
    scaled = MaxEnt(C=np.inf, observed=True, solver="gis", tol=1e-6, max_iter=20_000).fit(events, y)
    assert scaled.certificate_.primal == pytest.approx(best, rel=1e-6)
