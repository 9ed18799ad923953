"""ChainCRF: what it takes, what it answers, its constraints, its file, its errors."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from fenchel import ChainCRF, load
from fenchel.features.templates import parse_template
from fenchel.features.tokens import Tokens
from fenchel.trace import Status

WORDS = {"D": ["the", "a"], "N": ["dog", "cat", "walk"], "V": ["walk", "sees", "ate"]}
FOLLOWS = {"": "DN", "D": "N", "N": "VVN", "V": "DN"}


def make_sentences(n=30, seed=0, shortest=1):
    """Words and labels; "walk" is a noun or a verb."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels = []
        for _ in range(rng.integers(shortest, 7)):
            labels.append(str(rng.choice(list(FOLLOWS[labels[-1] if labels else ""]))))
        X.append([str(rng.choice(WORDS[label])) for label in labels])
        y.append(labels)
    return X, y


def as_names(sentences):
    return [[[word] for word in words] for words in sentences]


def as_pairs(sentences):
    """Tokens of two columns: the word and its last letter."""
    return [[(word, word[-1]) for word in words] for words in sentences]


def word_and_last(sentence, t):
    return {"word": sentence[t], "last": t == len(sentence) - 1}


@pytest.fixture(scope="module")
def data():
    return make_sentences()


@pytest.fixture(scope="module")
def model(data):
    return ChainCRF(tol=1e-6, bias=True, boundaries=True).fit(as_names(data[0]), data[1])


# ---- what it takes


def one_hot(sentences):
    words = sorted({word for words in WORDS.values() for word in words})
    return [np.array([[float(word == w) for w in words] for word in sentence]) for sentence in sentences]


KINDS = {
    "lists": as_names,
    "dicts": lambda X: [[{word: 1.0} for word in words] for words in X],
    "dicts of strings": lambda X: [[{"w": word} for word in words] for words in X],
    "tuples": lambda X: tuple(tuple((word,) for word in words) for words in X),
    "arrays": one_hot,
    "CSR": lambda X: [sp.csr_matrix(x) for x in one_hot(X)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tokens_gives_the_same_model(data, kind):
    X, y = data
    reference = ChainCRF(tol=1e-8).fit(as_names(X), y)
    model = ChainCRF(tol=1e-8).fit(KINDS[kind](X), y)
    assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=1e-7)
    assert model.predict(KINDS[kind](X)) == reference.predict(as_names(X))


def test_columns_and_a_preset(data):
    X, y = data
    tokens = Tokens.from_sentences(as_pairs(X))
    model = ChainCRF(template="chunk").fit(tokens, y)
    assert model.predict(tokens) == model.predict(as_pairs(X))
    assert model.score(tokens, y) > 0.9
    assert any(name.startswith("w[0]=") for name in model.attribute_names_)


def test_columns_need_a_template(data):
    with pytest.raises(ValueError, match="columns of strings need a template"):
        ChainCRF().fit(Tokens.from_sentences(as_pairs(data[0])), data[1])


def test_a_template_file_with_attributes_of_transitions(data, tmp_path):
    X, y = data
    path = tmp_path / "template.txt"
    path.write_text("# a comment\nU01:%x[0,0]\nU02:%x[-1,0]/%x[0,1]\nB01:%x[0,1]\nB\n")
    model = ChainCRF(template=str(path), tol=1e-6).fit(as_pairs(X), y)
    assert model.edge_coef_.shape == (len(model.source_.edge_names()), 3, 3)
    assert model.edge_coef_.any()
    assert model.transitions_.any()
    check_against_enumeration(model, as_pairs(X)[:3])


def test_a_template_without_b_has_no_transitions(data):
    X, y = data
    model = ChainCRF(template=parse_template("U01:%x[0,0]")).fit(as_pairs(X), y)
    assert not model.transitions_.any()
    assert not ChainCRF(transitions=False).fit(as_names(X), y).transitions_.any()


def test_a_python_function(data):
    X, y = data
    model = ChainCRF(template=word_and_last).fit(X, y)
    assert "word=the" in model.attribute_names_ and "last" in model.attribute_names_
    assert model.predict(X) == pickle.loads(pickle.dumps(model)).predict(X)


# ---- what it answers


def scores_of(model, sequence):
    """(T, K) of the nodes and (T, K, K) of the transitions into each token, from the public weights."""
    encoded = model.encode([sequence])
    T = encoded.rows.shape[0]
    rows = np.zeros((T, encoded.rows.n_columns))
    edges = np.zeros((T, encoded.edges.n_columns))
    for dense, given in ((rows, encoded.rows), (edges, encoded.edges)):
        for t in range(T):
            where = slice(int(given.indptr[t]), int(given.indptr[t + 1]))
            dense[t, given.indices[where]] = given.data[where]
    return rows @ model.coef_.T, model.transitions_ + np.tensordot(edges, model.edge_coef_, 1)


def enumerate_labels(model, sequence):
    """All label sequences, as codes, and their log-probabilities."""
    nodes, moves = scores_of(model, sequence)
    paths = list(product(range(nodes.shape[1]), repeat=nodes.shape[0]))
    scores = [
        sum(nodes[t, k] for t, k in enumerate(path))
        + sum(moves[t, path[t - 1], path[t]] for t in range(1, len(path)))
        for path in paths
    ]
    return paths, np.array(scores) - logsumexp(scores)


def check_against_enumeration(model, sequences):
    for sequence in sequences:
        paths, logs = enumerate_labels(model, sequence)
        order = np.argsort(-logs)[:4]
        expected = [model.classes_[list(paths[k])].tolist() for k in order]
        found = model.predict_nbest([sequence], 4)[0]
        assert model.predict([sequence])[0] == found[0][0] == expected[0]
        np.testing.assert_allclose([log for _, log in found], logs[order][: len(found)], atol=1e-9)
        marginals = np.zeros((len(sequence), model.classes_.size))
        for path, log in zip(paths, logs, strict=True):
            marginals[np.arange(len(path)), list(path)] += np.exp(log)
        np.testing.assert_allclose(model.predict_marginals([sequence])[0], marginals, atol=1e-9)


def test_best_several_best_and_marginals_are_those_of_an_enumeration(model, data):
    check_against_enumeration(model, as_names(data[0])[:5])


def test_the_probability_of_given_labels(model, data):
    X, y = as_names(data[0]), data[1]
    found = model.log_probability(X, y)
    for k, x in enumerate(X[:5]):
        every = {(*labels,): value for labels, value in model.predict_nbest([x], 3 ** len(x))[0]}
        assert found[k] == pytest.approx(every[(*y[k],)], abs=1e-9)
        assert np.exp(list(every.values())).sum() == pytest.approx(1.0)
    assert model.log_probability([[], X[0]], [[], y[0]]).tolist() == [0.0, found[0]]
    with pytest.raises(ValueError, match="y names the label 'Z', which the model does not know"):
        model.log_probability(X[:1], [["Z"] * len(X[0])])


def test_banned_labels_have_no_probability(data):
    model = ChainCRF(banned=[("V", "V")], tol=0.1).fit(as_names(data[0]), data[1])
    pairs = [list(pair) for pair in product("DNV", "DNV")]
    found = np.exp(model.log_probability([[["walk"], ["walk"]]] * 9, pairs))
    assert found[-1] == 0.0 and found[:-1].all() and found.sum() == pytest.approx(1.0)


def test_several_best_stop_where_there_are_no_more(model):
    assert len(model.predict_nbest([[["dog"]]], 10)[0]) == 3
    assert model.predict_nbest([[]], 2) == [[([], 0.0)]]
    with pytest.raises(ValueError, match="k=0 must be a whole number of at least 1"):
        model.predict_nbest([[["dog"]]], 0)


def test_a_part_of_the_tokens_has_its_own_labels_only():
    X, y = Tokens.from_sentences([[("a", "X"), ("b", "Y")], [("a", "X"), ("a", "X")]]).without_last()
    assert ChainCRF(template="pos").fit(X[1:], y[1:]).classes_.tolist() == ["X"]
    assert ChainCRF(template="pos").fit(X[:1], y[:1]).predict(X[:1]) == [["X", "Y"]]


def test_score_takes_the_tokens_that_fit_takes(data):
    X, y = (Tokens.from_sentences(sentences) for sentences in data)
    model = ChainCRF(template="pos").fit(X, y)
    assert model.score(X, y) == model.score(X, data[1]) > 0.5
    assert model.score(X, y) == model.score(model.encode(X), y)


def test_score_is_the_fraction_of_tokens(model, data):
    X, y = as_names(data[0]), data[1]
    right = [
        a == b
        for found, truth in zip(model.predict(X), y, strict=True)
        for a, b in zip(found, truth, strict=True)
    ]
    assert model.score(X, y) == pytest.approx(np.mean(right))
    first = [1.0] + [0.0] * (len(X) - 1)
    assert model.score(X, y, sample_weight=first) == model.score(X[:1], y[:1])
    with pytest.raises(ValueError, match="sequence 0 has 1 tokens but 2 labels"):
        model.score([[["dog"]]], [["N", "N"]])


def test_explanations_add_up(model, data):
    sequence = as_names(data[0])[0]
    text = str(model.explain(sequence))
    assert sequence[0][0] in text and "from before" in text


# ---- constraints


def test_forced_and_allowed_labels(model):
    X = [[["the"], ["dog"], ["ate"]]]
    assert model.predict(X) == [["D", "N", "V"]]
    assert model.predict(X, allowed=[["N", None, ["D", "N"]]])[0][0] == "N"
    assert model.predict(X, allowed=[[None, None, ["D", "N"]]])[0][2] in "DN"
    marginals = model.predict_marginals(X, allowed=[["N", None, None]])[0]
    np.testing.assert_allclose(marginals[0], [0.0, 1.0, 0.0], rtol=0.0, atol=1e-14)
    assert all(labels[0] == "V" for labels, _ in model.predict_nbest(X, 3, allowed=[["V", None, None]])[0])
    assert model.predict(X, allowed=[None]) == model.predict(X)


def test_transitions_banned_only_at_prediction(model):
    X = [[["the"], ["dog"], ["ate"]]]
    best = model.predict(X, banned=[("D", "N"), ("N", "V")])[0]
    assert ("D", "N") not in pairwise(best)
    assert ("N", "V") not in pairwise(best)


def test_transitions_banned_in_training(data):
    X, y = as_names(data[0]), data[1]
    model = ChainCRF(banned=[("D", "D"), ("V", "V")], tol=1e-6).fit(X, y)
    best = model.predict([[["the"], ["the"], ["a"]]])[0]
    assert ("D", "D") not in pairwise(best)
    assert model.certificate_.primal < ChainCRF(tol=1e-6).fit(X, y).certificate_.primal
    with pytest.raises(ValueError, match="that pair is banned"):
        ChainCRF(banned=[("D", "N")]).fit(X, y)


def test_constraints_nothing_satisfies(model):
    X = [[["dog"]], [["the"], ["dog"]]]
    with pytest.raises(ValueError, match="sequence 1: no labels satisfy the constraints"):
        model.predict(X, allowed=[None, ["D", "N"]], banned=[("D", "N")])
    with pytest.raises(ValueError, match="sequence 1: no labels satisfy the constraints"):
        model.predict_marginals(X, allowed=[None, ["D", "N"]], banned=[("D", "N")])
    with pytest.raises(ValueError, match="sequence 1: no labels satisfy the constraints"):
        model.predict_nbest(X, allowed=[None, ["D", "N"]], banned=[("D", "N")])


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (dict(allowed=[["X", None]]), r"allowed\[0\]\[0\] names the label 'X'"),
        (dict(allowed=[[[], None]]), r"allowed\[0\]\[0\] is empty"),
        (dict(allowed=[["D"]]), r"allowed\[0\] has 1 entries for 2 tokens"),
        (dict(allowed=[]), "allowed has 0 entries for 1 sequences"),
        (dict(banned=[("D", "X")]), "banned names the label 'X'"),
        (dict(banned=["DN"]), "banned holds 'DN', expected pairs"),
    ],
)
def test_wrong_constraints(model, constraints, message):
    with pytest.raises(ValueError, match=message):
        model.predict([[["the"], ["dog"]]], **constraints)


# ---- weights and losses


def test_a_weight_of_two_is_the_sequence_twice(data):
    X, y = as_names(data[0])[:8], data[1][:8]
    weight = np.array([2.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    weighted = ChainCRF(tol=1e-8).fit(X, y, sample_weight=weight)
    again = ChainCRF(tol=1e-8).fit([X[0], X[0], *X[2:]], [y[0], y[0], *y[2:]])
    assert weighted.predict(X) == again.predict(X)
    where = [weighted.attribute_names_.index(name) for name in again.attribute_names_]
    np.testing.assert_allclose(weighted.coef_[:, where], again.coef_, atol=1e-3)


def test_hinge(data):
    X, y = as_names(data[0]), data[1]
    model = ChainCRF(loss="hinge", tol=1e-2).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-2
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="has no marginals; fit with loss='log'"):
        model.predict_marginals(X)
    best, second = model.predict_nbest(X[:1], 2)[0]
    assert best[1] >= second[1]
    assert model.explain(X[0]).tokens[0].probability is None
    costs = [[0.5] * len(labels) for labels in y]
    cheap = ChainCRF(loss="hinge", tol=1e-2).fit(X, y, token_weight=costs)
    assert cheap.certificate_.primal < model.certificate_.primal


def test_costs_of_tokens_only_with_the_hinge_loss(data):
    X, y = as_names(data[0]), data[1]
    with pytest.raises(ValueError, match="token_weight has a meaning only with loss='hinge'"):
        ChainCRF().fit(X, y, token_weight=[[1.0] * len(labels) for labels in y])


def test_bias_and_boundaries_are_attributes(model):
    assert model.attribute_names_[-3:] == ["__bias__", "__start__", "__end__"]
    start = model.coef_[:, -2]
    assert model.classes_[np.argmin(start)] == "V"  # never first in training


def test_observed_weights_only(data):
    X, y = as_names(data[0]), data[1]
    model = ChainCRF(observed=True).fit(X, y)
    where = model.attribute_names_.index("the")
    assert model.coef_[:, where].astype(bool).tolist() == [True, False, False]
    assert model.transitions_[0].astype(bool).tolist() == [False, True, False]


def test_a_mask_of_weights_takes_the_place_of_the_observed_ones(data):
    X, y = as_names(data[0]), data[1]
    model = ChainCRF(tol=1e-8, observed=True)
    encoded = model.encode_training(X, y)
    mask = model.fit_encoded(encoded).weights_ != 0.0
    problem = model.problem(encoded, observed=mask, c2=0.5)
    assert problem.evaluate(model.weights_).value == pytest.approx(model.certificate_.primal)
    with pytest.raises(ValueError, match="observed has shape"):
        model.problem(encoded, observed=mask[1:])


def test_min_count(data):
    X, y = as_names(data[0]), data[1]
    X = [[*X[0][:-1], [*X[0][-1], "once"]], *X[1:]]
    assert "once" in ChainCRF().fit(X, y).attribute_names_
    assert "once" not in ChainCRF(min_count=2).fit(X, y).attribute_names_
    with pytest.raises(ValueError, match="no token has an attribute that counts; lower min_count"):
        ChainCRF(min_count=10_000).fit(X, y)


# ---- going on, and keeping


def test_a_warm_start_keeps_attributes_and_labels_by_name(data):
    X, y = as_names(data[0]), data[1]
    model = ChainCRF(solver="lbfgs", tol=1e-6, warm_start=True).fit(X, y)
    primal = model.certificate_.primal
    model.fit(X, y)
    assert model.trace_[0].primal == pytest.approx(primal, rel=1e-6)
    weight = dict(zip(model.attribute_names_, model.coef_[0], strict=True))["the"]
    assert weight > 0.0
    other = model.encode_training([[["new"], ["the"]]], [["Z", "D"]])  # attributes, labels in other places
    W = model._start(model.problem(other), other).w[:4].reshape(2, 2)
    found = dict(zip(other.source.names(), W[:, other.classes.tolist().index("D")], strict=True))
    assert found == {"new": 0.0, "the": pytest.approx(weight)}


def test_settings_changed_for_the_next_fit_leave_the_model_alone(data):
    X, y = as_names(data[0]), data[1]
    model = ChainCRF(solver="lbfgs", transitions=False, warm_start=True).fit(X, y)
    predicted, weights = model.predict(X), model.coef_.copy()
    model.set_params(transitions=True, bias=True, boundaries=True)
    assert model.predict(X) == predicted
    assert not model.transitions_.any()
    K = model.classes_.size
    data = model.encode_training(X, y)
    start = model._start(model.problem(data), data).w
    np.testing.assert_array_equal(start[: weights.size].reshape(-1, K).T, weights)
    assert start.size == weights.size + 3 * K + K * K and not start[weights.size :].any()


@pytest.mark.parametrize("kind", ["named", "template file", "template", "numbered"])
def test_a_saved_model_answers_the_same(data, tmp_path, kind):
    X, y = data
    X = (as_names if kind == "named" else one_hot if kind == "numbered" else as_pairs)(X)
    path = tmp_path / "template.txt"
    path.write_text("U01:%x[0,0]\nB01:%x[0,1]\nB\n")
    template = {"template file": str(path), "template": parse_template(path.read_text())}.get(kind)
    model = ChainCRF(template=template, boundaries=True, banned=[("D", "D")]).fit(X, y)
    model.save(tmp_path / "model.fenchel")
    again = load(tmp_path / "model.fenchel")
    assert again.predict(X) == model.predict(X)
    np.testing.assert_array_equal(again.weights_, model.weights_)
    assert again.attribute_names_ == model.attribute_names_
    for one, other in zip(again.predict_marginals(X), model.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_saved_function_is_asked_for(data, tmp_path):
    X, y = data
    model = ChainCRF(template=word_and_last).fit(X, y)
    model.save(tmp_path / "model.fenchel")
    again = load(tmp_path / "model.fenchel")
    with pytest.raises(ValueError, match="to that function before predicting"):
        again.predict(X)
    again.template = word_and_last
    assert again.predict(X) == model.predict(X)


def test_pickle_and_clone(model, data):
    X = as_names(data[0])
    assert pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


def test_four_threads_predict_the_same(model, data):
    X = as_names(data[0])
    expected = model.predict(X)
    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(lambda _: model.predict(X), range(16)))


def test_an_interrupted_fit_leaves_a_model_with_its_certificate(data):
    def interrupt(trace):
        if len(trace) == 3:
            raise KeyboardInterrupt

    X, y = as_names(data[0]), data[1]
    model = ChainCRF(solver="lbfgs", tol=1e-9, callbacks=[interrupt])
    with pytest.warns(ConvergenceWarning, match="warm_start=True to go on"):
        model.fit(X, y)
    assert model.certificate_.status is Status.INTERRUPTED
    assert 0.0 < model.certificate_.gap < np.inf
    assert len(model.predict(X)) == len(X)


# ---- edges of the data


def test_empty_sequences_have_no_part_in_training(data):
    X, y = as_names(data[0]), data[1]
    model = ChainCRF(tol=1e-8).fit(X, y)
    weight = np.ones(len(X) + 2)
    padded = ChainCRF(tol=1e-8).fit([[], *X, []], [[], *y, []], sample_weight=weight)
    assert padded.certificate_.primal == pytest.approx(model.certificate_.primal)
    assert padded.predict([[], X[0], []]) == [[], model.predict(X[:1])[0], []]
    assert model.predict([]) == [] and model.predict([[]]) == [[]]
    assert [m.shape for m in model.predict_marginals([[], X[0]])] == [(0, 3), (len(X[0]), 3)]
    assert str(model.explain([]))
    arrays = one_hot(data[0])
    numbered = ChainCRF(tol=1e-8).fit([arrays[0][:0], *arrays], [[], *y])
    assert numbered.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-6)


def test_no_token_at_all():
    for X, y in (([], []), ([[]], [[]])):
        with pytest.raises(ValueError, match="at least one labelled sequence is needed"):
            ChainCRF().fit(X, y)


def test_sequences_of_one_token_are_logistic_regression():
    X = [[["a", "b"]], [["b"]], [["a", "c"]], [["c"]]]
    model = ChainCRF(tol=1e-8).fit(X, [["P"], ["N"], ["P"], ["M"]])
    assert model.predict(X) == [["P"], ["N"], ["P"], ["M"]]
    assert not model.transitions_.any()


def test_one_label():
    X = [[["a"], ["b"]], [["c"]]]
    model = ChainCRF().fit(X, [["P", "P"], ["P"]])
    assert model.predict(X) == [["P", "P"], ["P"]]
    np.testing.assert_allclose(model.predict_marginals(X)[0], 1.0)


def test_attributes_never_seen_count_for_nothing(model):
    assert model.predict([[["the", "unheard"], ["dog"]]]) == model.predict([[["the"], ["dog"]]])
    assert len(model.predict([[["unheard"], []]])[0]) == 2


def test_labels_of_other_kinds():
    X = [[["a"], ["b"]]]
    assert ChainCRF().fit(X, [[3, 1]]).predict(X) == [[3, 1]]
    assert ChainCRF().fit(X, [np.array([True, False])]).predict(X) == [[True, False]]
    with pytest.raises(ValueError, match="cannot be ordered"):
        ChainCRF().fit(X, [["P", 1]])


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([[["a"]], [["a"]]], [["P"], ["P", "N"]], ValueError, "sequence 1 has 1 tokens but 2 labels"),
        ([[["a"]]], [["P"], ["N"]], ValueError, "X has 1 sequences but y has 2"),
        ([[["a"]]], ["P"], ValueError, r"y\[0\] is a string"),
        (["abc"], [["P", "P", "P"]], TypeError, "sequence 0 is a str"),
        ([[["a"], "b"]], [["P", "P"]], TypeError, "sequence 0, token 1: the string 'b'"),
        ([[{"a": None}]], [["P"]], TypeError, "sequence 0, token 0: feature 'a' is None"),
        ([[{"a": float("nan")}]], [["P"]], ValueError, "sequence 0, token 0: feature 'a' is nan"),
        ([{"a": 1.0}], [["P"]], TypeError, "sequence 0 is a dict"),
        ([np.ones((2, 3)), np.ones((1, 2))], [["P", "P"], ["P"]], ValueError, "sequence 1 has 2 columns"),
        ([np.full((1, 2), np.inf)], [["P"]], ValueError, "NaN or infinity"),
    ],
)
def test_wrong_input_is_named(X, y, error, message):
    with pytest.raises(error, match=message):
        ChainCRF().fit(X, y)


def test_wrong_weights_are_named(data):
    X, y = as_names(data[0])[:2], data[1][:2]
    with pytest.raises(ValueError, match=r"sample_weight has shape \(1,\), expected \(3,\)"):
        ChainCRF().fit([[], *X], [[], *y], sample_weight=[1.0])
    with pytest.raises(ValueError, match="token_weight has 1 entries for 2 sequences"):
        ChainCRF(loss="hinge").fit(X, y, token_weight=[[1.0]])
    with pytest.raises(ValueError, match=r"token_weight\[1\] has shape"):
        ChainCRF(loss="hinge").fit(X, y, token_weight=[[1.0] * len(X[0]), [1.0]])


def test_ten_thousand_tokens():
    rng = np.random.default_rng(0)
    labels = np.cumsum(rng.random(10_000) < 0.1) % 3
    X = [[["x" + "abc"[k]] for k in (labels + (rng.random(10_000) < 0.1)) % 3]]
    y = [["PQR"[k] for k in labels]]
    model = ChainCRF(solver="lbfgs").fit(X, y)
    assert model.score(X, y) > 0.9
    marginals = model.predict_marginals(X)[0]
    assert np.isfinite(marginals).all()
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0)
    best, second = model.predict_nbest(X, 2)[0]
    assert best[0] == model.predict(X)[0] and best[1] >= second[1]


def test_five_hundred_labels():
    labels = [f"L{k:03d}" for k in range(500)]
    X = [
        [["even" if k % 2 == 0 else "odd", f"ten{k // 10}"] for k in range(a, a + 50)]
        for a in range(0, 500, 50)
    ]
    y = [labels[a : a + 50] for a in range(0, 500, 50)]
    with pytest.warns(ConvergenceWarning):
        model = ChainCRF(C=100.0, solver="lbfgs", max_iter=15).fit(X, y)
    assert model.transitions_.shape == (500, 500)
    assert model.score(X, y) > 0.1
    np.testing.assert_allclose(model.predict_marginals(X)[0].sum(axis=1), 1.0)
