"""Sequences of dense tokens: the same problems, models and labels as from sparse rows, without a copy."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from chains import assert_certified, random_data
from fenchel import ChainCRF, load, problems, solve, solvers
from fenchel._mixed import Mixed, beside
from fenchel._sparse import Rows, Table, as_csr, as_rows
from fenchel.structures import base, chain_batch
from fenchel.trace import Status
from test_chain_problem import DATA, check_geometry, kept, pair, some_weights

LENGTHS = tuple(1 + np.arange(40) * 7 % 9)


def dense(problem):
    """The same problem on a table: those of these tests are small enough to be made sparse otherwise."""
    rows = problem.examples.rows
    table = Table(as_csr(rows).toarray().reshape(-1), *rows.shape)
    return replace(problem, examples=replace(problem.examples, rows=table))


def mixed(problem):
    """The same problem with a table of the last columns, about half of them, beside sparse rows."""
    rows = problem.examples.rows
    X, columns = as_csr(rows), rows.n_columns // 2
    both = beside(as_rows(X[:, :columns].tocsr()), X[:, columns:].toarray())
    return replace(problem, examples=replace(problem.examples, rows=both))


MORE = {
    "many labels": random_data(11, lengths=LENGTHS, A=7, K=13),
    "longer than a group": random_data(12, lengths=(1, 150, 2, 70, 1), A=3, K=4, B=1),
    "observed": random_data(13, lengths=LENGTHS, A=9, K=4, B=2),
}


@cache
def twins(name, made=dense):
    """The problem on a table, or on a table beside sparse rows, and on sparse rows."""
    sparse = pair(name)[0] if name in DATA else MORE[name].problem(C=0.7, observed=name == "observed")
    return made(sparse), sparse


everywhere = pytest.mark.parametrize("name", [*DATA, *MORE])
both_ways = pytest.mark.parametrize("made", [dense, mixed])


def close(one, other, digits=1e-12):
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=digits * (1.0 + np.abs(other).max(initial=0.0)))


# ---- the problem


@everywhere
@both_ways
@pytest.mark.parametrize("scale", [0.3, 100.0, 1000.0])
def test_values_and_gradients_are_those_of_sparse_rows(name, made, scale):
    table, sparse = twins(name, made)
    w = some_weights(table, scale=scale)
    one, other = table.evaluate(w), sparse.evaluate(w)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    assert one.moved == pytest.approx(other.moved, rel=1e-10, abs=1e-13)
    close(one.gradient, other.gradient)
    scores = table.scores(w)
    close(scores, sparse.scores(w))
    known = table.evaluate(w, scores)
    assert known.value == pytest.approx(one.value, rel=1e-13)
    close(known.gradient, one.gradient)


@everywhere
@both_ways
def test_products_marginals_and_weights_are_those_of_sparse_rows(name, made):
    table, sparse = twins(name, made)
    w, direction = some_weights(table), some_weights(table, 1)
    now = table.evaluate(w), sparse.evaluate(w)
    close(table.hessian_product(now[0], direction), sparse.hessian_product(now[1], direction))
    mu = table.marginals_at(now[0])
    close(mu, sparse.marginals_at(now[1]))
    close(table.weights_of(mu), sparse.weights_of(mu))
    close(table.empirical, sparse.empirical)
    for one, other in zip(table.extent, sparse.extent, strict=True):
        close(one, other)


@everywhere
def test_subgradients_of_the_hinge_loss_are_those_of_sparse_rows(name):
    sparse = (DATA | MORE)[name].problem("hinge", C=0.7)
    w = some_weights(sparse)
    one, other = dense(sparse).evaluate(w), sparse.evaluate(w)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    close(one.gradient, other.gradient)


@pytest.mark.parametrize("name", ["plain", "edges", "negative"])
@both_ways
def test_norms_moves_and_radii_are_those_of_the_matrix(name, made):
    (table, sparse), data, rng = twins(name, made), kept(DATA[name]), np.random.default_rng(1)
    for one, other in ((table, sparse), (table.entropic, sparse.entropic)):
        for i in range(data.n):
            check_geometry(one.blocks, i, data.matrix(i, one.blocks.layout.stride), rng)
            assert base.block_radius(one.blocks, i) == pytest.approx(base.block_radius(other.blocks, i))


@both_ways
def test_weights_that_the_data_show(made):
    data = MORE["observed"]
    shown = problems.chain(sp.csr_matrix(data.X), data.y, data.starts, observed=True).structure.mask
    table = made(problems.chain(sp.csr_matrix(data.X), data.y, data.starts))
    np.testing.assert_array_equal(table.structure.observed(table.examples), shown)
    assert 0 < shown.sum() < shown.size


def test_groups_of_any_size_change_nothing_but_the_order_of_sums():
    table, _ = twins("many labels")
    w, pull = some_weights(table), np.zeros((2, table.dim))
    chain_batch.value_and_pull(table.blocks, 0, table.n, w, np.empty(0), pull[0])
    for i in range(table.n):
        chain_batch.value_and_pull(table.blocks, i, i + 1, w, np.empty(0), pull[1])
    close(pull[0], pull[1])


# ---- solvers


@cache
def optimum(loss="log"):
    problem = random_data(14, lengths=LENGTHS, A=8, K=4, negative=True).problem(loss, C=0.5)
    solver = "tron" if loss == "log" else solvers.CuttingPlane(slack="1")
    result = solve(problem, solver, tol=1e-9 if loss == "log" else 1e-5, max_passes=1e5)
    assert result.status is Status.CONVERGED
    return problem, result.certificate.primal


LOG = ["lbfgs", "tron", "sdca", "eg", "eg-gap", "eg-batch", "sag", "sag-nus", "sgd"]


@pytest.mark.parametrize("name, made", [*((name, dense) for name in LOG), ("lbfgs", mixed), ("sdca", mixed)])
def test_every_solver_finds_the_same_optimum(name, made):
    problem, best = optimum()
    problem = made(problem)
    tol = 1e-2 if name == "sgd" else 1e-4
    result = solve(problem, name, tol=tol, max_passes=2e4)
    assert result.status is Status.CONVERGED
    assert_certified(result, best, accuracy=1e-8)
    assert result.certificate.primal <= best / (1.0 - tol)


@pytest.mark.parametrize("name", ["cutting-plane", "sdca", "cd-outputs"])
def test_solvers_of_the_hinge_loss(name):
    problem, best = optimum("hinge")
    problem = dense(problem)
    result = solve(problem, name, tol=1e-2, max_passes=2e4)
    assert result.status is Status.CONVERGED
    assert_certified(result, best, accuracy=2e-5)


def test_an_l1_term():
    data = random_data(14, lengths=LENGTHS, A=8, K=4, negative=True)
    sparse = data.problem(c1=0.5, c2=0.5)
    results = [solve(each, "lbfgs", tol=1e-6) for each in (dense(sparse), sparse)]
    results += [solve(each, "eg-gap", tol=1e-6) for each in (dense(sparse), mixed(sparse))]
    for result in results:
        assert result.certificate.primal == pytest.approx(results[1].certificate.primal, rel=1e-6)
    np.testing.assert_array_equal(results[0].w == 0.0, results[1].w == 0.0)


@pytest.mark.parametrize("settings", [{}, {"K": 9}, {"K": 9, "observed": True}, {"B": 2}])
@both_ways
def test_exponentiated_gradient_takes_the_same_steps_as_on_sparse_rows(settings, made):
    """Nine labels: the weights of the last are implied."""
    observed, settings = (
        settings.get("observed", False),
        {k: v for k, v in settings.items() if k != "observed"},
    )
    data = random_data(15, **({"lengths": LENGTHS, "A": 9, "K": 4, "negative": True} | settings))
    sparse, solver = data.problem(C=0.7, observed=observed), solvers.EG(order="gap")
    results = [solve(each, solver, tol=1e-7, max_passes=500) for each in (made(sparse), sparse)]
    assert results[0].status is Status.CONVERGED
    assert results[0].certificate.passes == pytest.approx(results[1].certificate.passes, rel=0.05)
    np.testing.assert_allclose(results[0].w, results[1].w, atol=1e-6)


# ---- arrays as users have them

N_SEQUENCES, COLUMNS = 160, 30


@cache
def sentences():
    """Arrays (T, d) of more numbers than are made sparse, T from 1 on, and labels."""
    rng = np.random.default_rng(5)
    means, X, y = rng.normal(size=(4, COLUMNS)), [], []
    for i in range(N_SEQUENCES):
        labels = rng.integers(4, size=1 + i % 9)
        X.append((0.4 * means[labels] + rng.normal(size=(labels.size, COLUMNS))).astype(np.float32))
        y.append([f"L{k}" for k in labels])
    return X, y


@pytest.mark.parametrize("settings", [{}, {"bias": True, "boundaries": True}, {"banned": [("L0", "L0")]}])
def test_a_model_of_arrays_is_that_of_sparse_matrices(settings):
    X, y = sentences()
    if "banned" in settings:
        keep = [i for i, labels in enumerate(y) if ("L0", "L0") not in pairwise(labels)]
        X, y = [X[i] for i in keep] * 2, [y[i] for i in keep] * 2
    sparse = [sp.csr_matrix(x) for x in X]
    one, other = (ChainCRF(tol=1e-7, solver="tron", **settings).fit(each, y) for each in (X, sparse))
    assert isinstance(one.encode(X).rows, Table) and isinstance(one.encode(sparse).rows, Rows)
    close(one.coef_, other.coef_, 1e-3)
    close(one.transitions_, other.transitions_, 1e-3)
    assert one.attribute_names_ == other.attribute_names_
    assert one.predict(X) == one.predict(sparse)
    for here, there in zip(one.predict_marginals(X), one.predict_marginals(sparse), strict=True):
        close(here, there)
    few = slice(5, 8)  # so few that they are made sparse
    assert one.predict(X[few]) == one.predict(X)[few]
    assert one.predict_nbest(X, 2)[few] == one.predict_nbest(X[few], 2)
    known = [[labels[0], *[None] * (len(labels) - 1)] for labels in y]
    assert [labels[0] for labels in one.predict(X, allowed=known)] == [labels[0] for labels in y]


def test_any_width_of_numbers_and_an_empty_sequence():
    X, y = sentences()
    fits = [
        ChainCRF(tol=1e-5).fit([np.zeros((0, COLUMNS)), *(x.astype(kind) for x in X)], [[], *y])
        for kind in (np.float32, np.float64)
    ]
    np.testing.assert_array_equal(fits[0].weights_, fits[1].weights_)
    assert fits[0].predict([np.zeros((0, COLUMNS)), *X])[0] == []
    whole = ChainCRF(tol=1e-5).fit([np.rint(3 * x).astype(np.int8) for x in X], y)
    assert whole.score([np.rint(3 * x) for x in X], y) > 0.5


def test_arrays_beside_sparse_matrices_are_made_sparse():
    X, y = sentences()
    encoded = ChainCRF().encode_training([sp.csr_matrix(X[0]), *X[1:]], y)
    assert isinstance(encoded.sequences.rows, Rows)


def pairs_and_dicts(rng):
    """Sequences as (array, names of each token), the same with one dict a token, and labels."""
    paired, merged, y = [], [], []
    for T in (3, 1, 4, 0, 2, 5):
        vectors, names = rng.normal(size=(T, 3)), [["a", "b"][: 1 + t % 2] for t in range(T)]
        dicts = [dict.fromkeys(words, 1.0) for words in names]
        for known, row in zip(dicts, vectors, strict=True):
            known.update((f"vector[{j}]", float(x)) for j, x in enumerate(row))
        paired.append((vectors, names))
        merged.append(dicts)
        y.append([str(k) for k in rng.integers(3, size=T)])
    return paired, merged, y


def test_numbers_beside_names_are_attributes_among_others(tmp_path):
    """The optimum is that of one dict a token, found by lbfgs; labels and the model file go with it."""
    paired, merged, y = pairs_and_dicts(np.random.default_rng(5))
    model = ChainCRF(tol=1e-8).fit(paired, y)
    plain = ChainCRF(tol=1e-8, solver="lbfgs").fit(merged, y)
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-7)
    assert sorted(model.attribute_names_) == sorted(plain.attribute_names_)
    place = [plain.attribute_names_.index(name) for name in model.attribute_names_]
    np.testing.assert_allclose(model.coef_, plain.coef_[:, place], atol=1e-3)
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").predict(paired) == model.predict(paired) == plain.predict(merged)


def test_numbers_beside_columns_and_functions():
    paired, _, y = pairs_and_dicts(np.random.default_rng(6))
    words = [(vectors, [" ".join(names) for names in tokens]) for vectors, tokens in paired]
    by_function = ChainCRF(template=lambda sentence, t: sentence[t].split()).fit(words, y)
    assert by_function.predict(words) == ChainCRF().fit(paired, y).predict(paired)
    columns = ChainCRF(template="pos").fit(words, y)
    assert columns.attribute_names_[-3:] == ["vector[0]", "vector[1]", "vector[2]"]


@pytest.mark.parametrize("settings", [{}, {"bias": True, "boundaries": True}, {"solver": "lbfgs"}])
def test_vectors_beside_names_stay_a_table(settings):
    """The model is that of sparse matrices of both; what follows a table is in it too."""
    (vectors, y), rng = sentences(), np.random.default_rng(8)
    words = [rng.integers(50, size=(len(x), 2)) for x in vectors]
    names = [[[f"w{a}", f"x{b}"] for a, b in each.tolist()] for each in words]
    X = list(zip(vectors, names, strict=True))
    model = ChainCRF(tol=1e-7, **settings).fit(X, y)
    rows = model.encode(X).rows
    assert isinstance(rows, Mixed) and rows.dense == COLUMNS + (3 if "bias" in settings else 0)
    whole = as_csr(model.encode(X).rows)
    parts = np.split(np.arange(whole.shape[0]), np.cumsum([len(x) for x in vectors])[:-1])
    plain = ChainCRF(tol=1e-7, solver="lbfgs").fit([whole[part] for part in parts], y)
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)
    assert model.predict(X) == plain.predict([whole[part] for part in parts])
    some = [X[i] for i in (3, 0, 7)]  # so few that their vectors are made sparse
    assert model.predict(some) == [model.predict(X)[i] for i in (3, 0, 7)]
    weight = np.ones(len(X))
    weight[::2] = 0.0
    half = ChainCRF(tol=1e-7, **settings).fit(X[1::2], y[1::2]).certificate_.primal
    assert ChainCRF(tol=1e-7, **settings).fit(
        X, y, sample_weight=weight
    ).certificate_.primal == pytest.approx(half, rel=1e-6)


def test_pairs_that_do_not_match_are_refused():
    paired, _, y = pairs_and_dicts(np.random.default_rng(7))
    with pytest.raises(ValueError, match="sequence 1 has 2 rows of numbers but 1 tokens"):
        ChainCRF().fit([paired[0], (np.ones((2, 3)), [["a"]]), *paired[2:]], y)
    with pytest.raises(TypeError, match=r"sequence 2 is no pair \(array, tokens\)"):
        ChainCRF().fit([*paired[:2], paired[2][1], *paired[3:]], y)


def test_arrays_are_not_copied_once_more():
    X, y = sentences()
    flat, codes = np.concatenate(X, dtype=np.float64), np.concatenate(y) == "L1"
    starts = np.concatenate([[0], np.cumsum([len(x) for x in X])])
    problem = problems.chain(flat, codes.astype(int), starts)
    assert np.shares_memory(problem.examples.rows.data, flat)
    model = ChainCRF()
    encoded = model.encode_training(X, y)
    assert np.shares_memory(model.problem(encoded).examples.rows.data, encoded.sequences.rows.data)


def test_what_is_no_number_is_refused():
    X, y = sentences()
    for wrong in (np.nan, np.inf):
        bad = [x.copy() for x in X]
        bad[3][0, 1] = wrong
        with pytest.raises(ValueError, match="NaN or infinity"):
            ChainCRF().fit(bad, y)
    with pytest.raises(ValueError, match="sequence 3 has 2 columns, expected 30"):
        ChainCRF().fit([*X[:3], X[3][:, :2], *X[4:]], y)
    with pytest.raises(ValueError, match="something else than numbers"):
        ChainCRF().fit([*X[:3], np.full(X[3].shape, "x"), *X[4:]], y)


def test_the_number_of_threads_changes_no_bit():
    X, y = sentences()
    models = [ChainCRF(tol=1e-6, solver="lbfgs", n_jobs=jobs).fit(X * 4, y * 4) for jobs in (1, 2)]
    np.testing.assert_array_equal(models[0].weights_, models[1].weights_)
