"""GraphCRF: all solvers find one optimum, chains are ChainCRF's, and what users ask of a model."""

import numpy as np
import pytest
import scipy.sparse as sp

from chains import assert_certified
from fenchel import ChainCRF, Graph, GraphCRF, choosing, load, solve, solvers
from fenchel._sparse import Table
from fenchel.solvers import solver_class
from fenchel.trace import Status
from graphs import SHAPES, random_problem
from test_junction import grid

# ---- solvers

TOL = {"log": 1e-6, "hinge": 1e-3}
SLOW = {"sgd": 2e-2}


NAMES = {
    "log": ("lbfgs", "eg", "eg-gap", "eg-batch", "sdca", "sag", "sag-nus", "sgd"),
    "hinge": ("eg", "sdca", "sgd", "cutting-plane", "cd-outputs"),
}


def test_the_solvers_of_graphs():
    for loss, names in NAMES.items():
        problem = random_problem(loss=loss)
        assert all(solver_class(name).needs <= problem.offers for name in names)
    with pytest.raises(ValueError, match="solver 'tron' cannot train a junction model"):
        solve(random_problem(), "tron")


def test_auto_goes_by_length_loss_and_density():
    short, long = (random_problem(shapes=[(n, [(0, 1)])] * 3) for n in (4, 150))
    assert choosing.plan(short)[0][0] == "eg-gap" and choosing.plan(long) == ["lbfgs"]
    assert choosing.plan(random_problem(loss="hinge")) == ["cd-outputs"]
    graphs, y = random_graphs([(40, [(0, 1)])] * 4, A=300)
    model = GraphCRF()
    dense = model.problem(model.encode_training(graphs, y))
    assert isinstance(dense.examples.rows, Table) and choosing.plan(dense) == ["lbfgs"]


@pytest.fixture(scope="module")
def best():
    """The optima, by one solver each."""
    log = solve(random_problem(11), "lbfgs", tol=1e-12).certificate
    hinge = solve(random_problem(11, loss="hinge"), "cutting-plane", tol=1e-6, max_passes=10**5).certificate
    return {"log": log, "hinge": hinge}


@pytest.mark.parametrize("loss, name", [(loss, name) for loss, names in NAMES.items() for name in names])
def test_every_solver_finds_the_optimum(loss, name, best):
    tol = SLOW.get(name, TOL[loss])
    result = solve(random_problem(11, loss=loss), name, tol=tol, max_passes=10**5)
    assert result.status is Status.CONVERGED
    assert_certified(result, best[loss].primal, accuracy=1e-11 + best[loss].relative_gap)


@pytest.mark.parametrize("sampling", ["uniform", "importance", "gap-importance", "max"])
def test_every_sampling_finds_the_optimum(sampling, best):
    result = solve(random_problem(11), solvers.SDCA(sampling=sampling), tol=1e-5, max_passes=5000)
    assert result.status is Status.CONVERGED
    assert_certified(result, best["log"].primal)


def test_residual_sampling_is_refused():
    with pytest.raises(ValueError, match="needs outputs that can be listed"):
        solve(random_problem(), solvers.SDCA(sampling="residual"))


def random_graphs(shapes, A=6, K=3, seed=0):
    """Graphs with dense attributes, and labels that follow them and the label before."""
    rng = np.random.default_rng(seed)
    W, graphs, y = rng.normal(size=(A, K)), [], []
    for n, links in shapes:
        X = rng.uniform(size=(n, A)) * (rng.uniform(size=(n, A)) < 0.7)
        scores = X @ W + 0.5 * rng.gumbel(size=(n, K))
        graphs.append(Graph(X, links))
        y.append([f"label {k}" for k in scores.argmax(axis=1)])
    return graphs, y


def test_a_grid_of_two_rows_trains_to_a_small_gap():
    graphs, y = random_graphs([(24, grid(2, 12))] * 12, K=5)
    model = GraphCRF(C=3.0, tol=1e-4).fit(graphs, y)
    assert model.certificate_.relative_gap <= 1e-4 and model.certificate_.gap >= 0.0
    assert model.score(graphs, y) > 0.5


# ---- chains


CHAINS = [(n, [(t, t + 1) for t in range(n - 1)]) for n in (1, 5, 3, 8, 2, 6)]


def test_a_chain_is_a_chain_crf():
    graphs, y = random_graphs(CHAINS)
    X = [graph.nodes for graph in graphs]
    settings = {"C": 2.0, "solver": "lbfgs", "tol": 1e-12}
    graph, chain = GraphCRF(**settings).fit(graphs, y), ChainCRF(**settings).fit(X, y)
    assert graph.certificate_.primal == pytest.approx(chain.certificate_.primal, rel=1e-10)
    np.testing.assert_allclose(graph.coef_, chain.coef_, atol=1e-10)
    np.testing.assert_allclose(graph.tables_[(None, None), None], chain.transitions_, atol=1e-10)
    for found, expected in zip(graph.predict_marginals(graphs), chain.predict_marginals(X), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)
    assert graph.predict(graphs) == chain.predict(X)
    allowed = [[None if t % 2 else ["label 0", "label 2"] for t in range(len(x))] for x in X]
    assert graph.predict(graphs, allowed=allowed) == chain.predict(X, allowed=allowed)
    assert graph.score(graphs, y) == chain.score(X, y)


def test_a_chain_of_second_order():
    nodes = [["a"], ["b"], ["c"], ["d"]]
    assert Graph.chain(nodes).edges == [(0, 1), (1, 2), (2, 3)] and not Graph.chain(nodes).cliques
    assert Graph.chain(nodes, order=2).cliques == [(0, 1, 2), (1, 2, 3)]
    assert Graph.chain(nodes[:1], order=3).edges == []
    # every third label is "high": the label before does not tell, the two before do
    X, y = [[["x"]] * 9] * 4, [["low", "low", "high"] * 3, ["low", "high", "low"] * 3] * 2
    first, second = (GraphCRF(C=100.0).fit([Graph.chain(x, k) for x in X], y) for k in (1, 2))
    begun = [["low", "high", *[None] * 7]]
    predicted = second.predict([Graph.chain(X[0], 2)], allowed=begun)[0]
    assert predicted == ["low", "high", "low"] * 3
    assert second.certificate_.primal < 0.5 * first.certificate_.primal


# ---- a model


@pytest.fixture(scope="module")
def town():
    """Houses along streets, which have labels of their own; edges have attributes, cliques are of three."""
    rng = np.random.default_rng(5)
    graphs, y = [], []
    for _ in range(12):
        n = int(rng.integers(2, 6))
        street = rng.choice(["old", "new"])
        nodes = [
            {"floors": float(rng.integers(1, 4)), "roof": rng.choice(["flat", "steep"])} for _ in range(n)
        ]
        edges = [(v, v + 1) for v in range(n - 1)] + [(v, n) for v in range(n)]
        features = [{"gap": float(rng.uniform())} for _ in range(n - 1)] + [["in street"]] * n
        types = ["house"] * n + ["street"]
        cliques = [(v, v + 1, n) for v in range(n - 1)]
        graphs.append(Graph([*nodes, {"lamps": street}], edges, features, cliques, types))
        houses = ["brick" if node["floors"] > 1 and street == "new" else "wood" for node in nodes]
        y.append([*houses, street])
    return graphs, y, GraphCRF(C=5.0).fit(graphs, y)


def test_types_have_their_own_labels(town):
    graphs, y, model = town
    assert model.classes_.tolist() == ["brick", "wood", "new", "old"]
    assert model.types_ == {"house": slice(0, 2), "street": slice(2, 4)}
    assert model.coef_.shape == (4, len(model.attribute_names_))
    shapes = {key: table.shape for key, table in model.tables_.items()}
    assert shapes[("house", "street"), "in street"] == (2, 2)
    assert shapes[("house", "house", "street"), None] == (2, 2, 2)
    assert model.score(graphs, y) == 1.0
    for graph, mu in zip(graphs, model.predict_marginals(graphs), strict=True):
        assert not mu[-1, :2].any() and not mu[:-1, 2:].any()
        np.testing.assert_allclose(mu.sum(axis=1), 1.0)
        assert len(mu) == len(graph.nodes)


def test_labels_can_be_forced(town):
    graphs, _, model = town
    forced = [["wood", *[None] * (len(graph.nodes) - 2), "new"] for graph in graphs]
    for labels, mu in zip(
        model.predict(graphs, allowed=forced), model.predict_marginals(graphs, allowed=forced), strict=True
    ):
        assert labels[0] == "wood" and labels[-1] == "new"
        np.testing.assert_allclose(mu[[0, -1]], [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]], atol=1e-14)
    with pytest.raises(ValueError, match="names the label 'new', which the model does not know"):
        model.predict(graphs, allowed=[["new"] + [None] * (len(graph.nodes) - 1) for graph in graphs])


def test_an_explanation_adds_up_to_the_score(town):
    graphs, _, model = town
    told = model.explain(graphs[0])
    nodes = sum(share for node in told.nodes for _, share in node.attributes)
    links = {link: share for node in told.nodes for link, share in node.links}
    assert set(links) == {*graphs[0].edges, *graphs[0].cliques}
    best = nodes + sum(links.values())
    for other in (["wood", "brick"], ["brick", "wood"]):
        forced = [[*(other * 3)[: len(graphs[0].nodes) - 1], None]]
        codes = model.predict_codes([graphs[0]], allowed=forced)
        assert score_of(model, graphs[0], codes) <= best + 1e-12
    assert score_of(model, graphs[0], model.predict_codes([graphs[0]])) == pytest.approx(best)
    assert "links" in str(told) and str(told).count("\n") == len(graphs[0].nodes)


def score_of(model, graph, codes):
    """The score of labels, by the public weights."""
    data = model.encode([graph])
    total = sum(x @ model.coef_[code] for x, code in zip(data.rows.matrix.toarray(), codes, strict=True))
    names = [dict.fromkeys(f, 1.0) if isinstance(f, list) else f for f in graph.edge_features]
    first = {"house": 0, "street": 2}
    for k, link in enumerate([*graph.edges, *graph.cliques]):
        types = tuple(graph.types[v] for v in link)
        at = tuple(codes[v] - first[graph.types[v]] for v in link)
        features = {None: 1.0} | (names[k] if k < len(graph.edges) else {})
        total += sum(x * model.tables_[types, name][at] for name, x in features.items())
    return total


def test_a_model_can_be_saved_and_loaded(town, tmp_path):
    graphs, _, model = town
    model.save(tmp_path / "town.fenchel")
    again = load(tmp_path / "town.fenchel")
    assert again.predict(graphs) == model.predict(graphs)
    assert again.types_ == model.types_ and again.certificate_.primal == model.certificate_.primal
    np.testing.assert_array_equal(again.predict_marginals(graphs)[0], model.predict_marginals(graphs)[0])


def test_a_warm_start_goes_on_and_the_hinge_loss_has_no_marginals():
    graphs, y = random_graphs(SHAPES)
    model = GraphCRF(C=0.5, solver="lbfgs", tol=1e-8, warm_start=True).fit(graphs, y)
    assert model.fit(graphs, y).certificate_.passes <= 2
    with pytest.raises(ValueError, match="has no marginals"):
        GraphCRF(loss="hinge", solver="sgd", tol=0.5).fit(graphs, y).predict_marginals(graphs)


def test_sparse_and_dense_nodes_are_the_same():
    graphs, y = random_graphs([*SHAPES, (400, [(v, v + 1) for v in range(399)])], A=12)
    sparse = [graph._replace(nodes=sp.csr_matrix(graph.nodes)) for graph in graphs]
    one, other = (GraphCRF(solver="lbfgs", tol=1e-8).fit(each, y) for each in (graphs, sparse))
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-9)


TWO = [["a"], ["b"]]


@pytest.mark.parametrize(
    "bad, words",
    [
        ((TWO, [(0, 2)]), r"graph 1: the edge \(0, 2\) names node 2, but the graph has 2 nodes"),
        ((TWO, [(-1, 0)]), r"graph 1: the edge \(-1, 0\) names node -1"),
        ((TWO, [(1, 1)]), r"graph 1: the edge \(1, 1\) joins node 1 with itself"),
        ((TWO, [], None, [(0, 1, 0)]), r"graph 1: the clique \(0, 1, 0\) joins node 0 with itself"),
        ((TWO, [(0,)]), r"graph 1: \(0,\) is no link"),
        ((TWO, [(0.5, 1)]), "graph 1: .* is no link"),
        (([], []), "graph 1 has no nodes"),
        (([["a"], 7], []), "graph 1, node 1: a int, expected a dict or a list of names"),
        ((TWO, [(0, 1)], [["x"], ["y"]]), "graph 1 has 1 edges but 2 entries of edge_features"),
        ((TWO, [(0, 1)], None, (), ["t"]), "graph 1 has 2 nodes but 1 types"),
        ((TWO, 5), "graph 1: edges is of type int"),
        (7, r"graph 1 is of type int, expected \(nodes, edges"),
    ],
)
def test_a_graph_that_is_none_is_named(bad, words):
    first = Graph(TWO, [(0, 1)], [["x"]] if "edge_features" in words else None)
    first = first._replace(types=["t", "t"]) if "types" in words else first
    with pytest.raises((ValueError, TypeError), match=words):
        GraphCRF().fit([first, bad], [["x", "y"]] * 2)


def test_what_does_not_fit_the_model_is_named(town):
    graphs, y, model = town
    nodes = [{"floors": 1.0}, {"floors": 2.0}]
    with pytest.raises(
        ValueError, match="graph 0: a node is of type 'shed'; the model knows 'house', 'street'"
    ):
        model.predict([Graph(nodes, [(0, 1)], [[]], types=["house", "shed"])])
    with pytest.raises(ValueError, match="y has 11; they must match"):
        GraphCRF().fit(graphs, y[:-1])
    with pytest.raises(ValueError, match=r"graph 0 has \d nodes but 1 labels in y"):
        GraphCRF().fit(graphs, [["wood"], *y[1:]])
    with pytest.raises(TypeError, match=r"write \[graph\]"):
        model.predict(graphs[0])
    wide, labels = random_graphs(CHAINS)
    with pytest.raises(ValueError, match="graph 1 has 5 columns, expected 6"):
        GraphCRF().fit([wide[0], wide[1]._replace(nodes=wide[1].nodes[:, :5])], labels[:2])
