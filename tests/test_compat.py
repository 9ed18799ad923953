"""CRF of fenchel.compat: the arguments, the weights and the answers of sklearn_crfsuite.CRF."""

import inspect
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import RandomizedSearchCV, cross_val_predict

from fenchel import load
from fenchel.compat import CRF
from fenchel.features.naming import CRFSUITE

WORDS = {"D": ["the", "a"], "N": ["dog", "cat", "walk"], "V": ["walk", "sees", "ate"]}
FOLLOWS = {"": "DN", "D": "N", "N": "VVN", "V": "DN"}


def make_corpus(n=40, seed=0):
    """Sentences with attributes of every kind; "walk" is a noun or a verb."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels, tokens = [], []
        for t in range(rng.integers(1, 7)):
            labels.append(str(rng.choice(list(FOLLOWS[labels[-1] if labels else ""]))))
            word = str(rng.choice(WORDS[labels[-1]]))
            token = {"bias": 1.0, "word": word, "short": len(word) < 3, "size": len(word) / 4 - 0.9}
            token["place"] = t / 7  # without it, labels of "walk walk walk" can score the same
            token["shape"] = {"end": word[-1], "has": sorted(set(word) & set("ae"))}
            tokens.append(token if t else token | {"first": True})
        X.append(tokens)
        y.append(labels)
    return X, y


@pytest.fixture(scope="module")
def corpus():
    return make_corpus()


@pytest.fixture(scope="module")
def model(corpus):
    return CRF(c2=0.1).fit(*corpus)


# ---- CRFsuite itself


@pytest.fixture(scope="module")
def original():
    reason = "sklearn-crfsuite, which these tests compare with, is not installed"
    return pytest.importorskip("sklearn_crfsuite", reason=reason)


SETTINGS = [
    dict(c1=0.0, c2=1.0),
    dict(c1=0.1, c2=0.1),
    dict(c1=1.0, c2=0.0),
    dict(c2=1.0, all_possible_states=True),
    dict(c2=1.0, all_possible_transitions=True),
    dict(c1=0.1, c2=0.1, all_possible_states=True, all_possible_transitions=True),
    dict(c2=1.0, min_freq=3),
    dict(c2=1.0, min_freq=1, all_possible_states=True),
]


def largest_difference(one, other):
    return max(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in {*one, *other})


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_weights_objective_and_predictions_are_those_of_crfsuite(original, corpus, settings):
    X, y = corpus
    theirs = original.CRF(algorithm="lbfgs", epsilon=1e-9, delta=1e-13, max_iterations=5000, **settings).fit(
        X, y
    )
    tol = (
        1e-7 if settings["c2"] else 1e-4
    )  # without c2 the proof is loose, and the weights need not be unique
    ours = CRF(tol=tol, max_iterations=5000, **settings).fit(X, y)
    objective = ours.certificate_.primal * len(X)
    assert objective == pytest.approx(theirs.training_log_.last_iteration["loss"], rel=1e-5)
    if settings["c2"]:
        assert ours.state_features_.keys() == theirs.state_features_.keys()
        assert ours.transition_features_.keys() == theirs.transition_features_.keys()
        far = 3e-3 if "c1" in settings and settings["c1"] > 0.0 else 1e-3  # its OWL-QN ends 1e-3 away
        assert largest_difference(ours.state_features_, theirs.state_features_) < far
        assert largest_difference(ours.transition_features_, theirs.transition_features_) < far
        assert ours.attributes_ == theirs.attributes_
        assert ours.num_attributes_ == theirs.num_attributes_
    assert ours.classes_ == theirs.classes_
    best_two = ours.chain_.predict_nbest(X, 2)
    clear = [k for k, best in enumerate(best_two) if len(best) == 1 or best[0][1] - best[1][1] > 1e-3]
    assert len(clear) > 30  # of labels that score the same rounding chooses
    assert [ours.predict(X)[k] for k in clear] == [list(theirs.predict(X)[k]) for k in clear]
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=0.03)
    for found, expected in zip(ours.predict_marginals(X), theirs.predict_marginals(X), strict=True):
        for one, other in zip(found, expected, strict=True):
            assert list(one) == list(other)
            assert one == pytest.approx(other, abs=2e-3)


def test_the_default_objective_is_as_low_as_crfsuites(original, corpus):
    X, y = corpus
    for settings in (dict(), dict(c1=0.1, c2=0.1), dict(algorithm="l2sgd", c2=0.5)):
        theirs = original.CRF(**(settings | {"algorithm": "lbfgs"})).fit(X, y)
        ours = CRF(**settings).fit(X, y).certificate_.primal * len(X)
        assert ours <= theirs.training_log_.last_iteration["loss"] / (1 - 1e-4)


def test_attributes_are_named_as_in_python_crfsuite(original):
    from pycrfsuite import ItemSequence

    tokens = [
        {
            "a": "x",
            "b": 2,
            "c": True,
            "d": False,
            "e": {"f": "y", "g": {"h": 0.5}},
            "i": ["j", "k"],
            "l": {"m"},
        },
        ["n", "o", "o"],
        {b"p": b"q", "": "", "r": "s:t=ü"},
        {},
    ]
    for t, expected in enumerate(ItemSequence(tokens).items()):
        found = CRFSUITE.attributes(tokens[t])
        sums = {}
        for name, value in zip(found.names, found.values, strict=True):
            sums[name] = sums.get(name, 0.0) + float(value)
        assert sums.keys() == expected.keys()
        if t != 1:  # what comes twice adds up; items() shows it once
            assert sums == expected
    X = [ItemSequence(tokens)]
    assert CRF().fit(X, [["A", "B", "A", "B"]]).predict(X)[0][:3] == ["A", "B", "A"]


def test_values_that_add_up_to_less_than_nothing_have_no_weight(original):
    X, y = [[{"a": -1.0, "b": 1}, {"b": 2.5, "z": 0}]], [["P", "N"]]
    theirs, ours = original.CRF().fit(X, y), CRF().fit(X, y)
    assert ours.state_features_.keys() == theirs.state_features_.keys() == {("b", "P"), ("b", "N")}


def test_the_constructor_takes_the_same_arguments(original):
    theirs = inspect.signature(original.CRF).parameters
    ours = inspect.signature(CRF).parameters
    assert list(ours) == [*theirs, "tol"]
    assert {name: p.default for name, p in theirs.items()} == {name: ours[name].default for name in theirs}


# ---- arguments


@pytest.mark.parametrize("algorithm", ["pa", "arow"])
def test_algorithms_without_an_objective_are_refused(corpus, algorithm):
    with pytest.raises(ValueError, match="no objective whose optimum could be certified; use 'lbfgs'"):
        CRF(algorithm=algorithm).fit(*corpus)


def test_an_unknown_algorithm_is_named(corpus):
    with pytest.raises(ValueError, match="unknown algorithm 'sgd'"):
        CRF(algorithm="sgd").fit(*corpus)


def test_settings_without_meaning_are_named_once(corpus):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        CRF(epsilon=1e-3, gamma=2.0, keep_tempfiles=True, pa_type=1).fit(*corpus)
    assert [str(w.message) for w in seen] == [
        "CRF ignores epsilon, pa_type, gamma, keep_tempfiles: without meaning here"
    ]
    with pytest.warns(UserWarning, match="ignores c1, num_memories"):
        CRF(algorithm="l2sgd", c1=0.5, num_memories=3).fit(*corpus)


def test_algorithms_agree(corpus):
    X, y = corpus
    weights = [CRF(algorithm, tol=1e-8).fit(X, y).chain_.weights_ for algorithm in (None, "lbfgs", "l2sgd")]
    np.testing.assert_allclose(weights[1], weights[0], atol=1e-3)
    np.testing.assert_allclose(weights[2], weights[0], atol=1e-3)
    assert CRF("lbfgs", num_memories=3).fit(X, y).trace_.solver == "lbfgs"


def test_max_iterations_limits_the_passes(corpus):
    """As in CRFsuite a limit that was asked for is no warning; the certificate tells."""
    for solver in ({}, {"num_memories": 5}):
        model = CRF("lbfgs", max_iterations=3, **solver).fit(*corpus)
        assert model.certificate_.passes <= 5 and not model.certificate_.converged
        assert model.certificate_.gap > 0.0


def test_held_out_accuracy_is_noted(corpus):
    X, y = corpus
    model = CRF("lbfgs", tol=1e-4).fit(X[:30], y[:30], X[30:], y[30:])
    assert model.trace_[-1].validation == pytest.approx(model.score(X[30:], y[30:]))
    with pytest.raises(ValueError, match="both of X_dev and y_dev"):
        CRF().fit(X, y, X_dev=X)
    with pytest.raises(ValueError, match="X_dev has"):
        CRF().fit(X, y, X, y[1:])


# ---- the fitted model


def test_single_sequences(model, corpus):
    X, _ = corpus
    assert model.predict_single(X[0]) == model.predict(X)[0]
    assert model.predict_marginals_single(X[0]) == model.predict_marginals(X)[0]
    assert all(sum(token.values()) == pytest.approx(1.0) for token in model.predict_marginals_single(X[0]))
    assert model.predict([]).tolist() == []
    assert model.predict([[]]).tolist() == [[]]
    assert len(model.predict_single([{"never": "seen"}])) == 1


def test_labels_come_in_the_order_they_appear():
    X = [[["a"], ["b"]], [["c"]]]
    assert CRF().fit(X, [["z", "y"], ["x"]]).classes_ == ["z", "y", "x"]


def test_what_was_learnt(model):
    assert all(weight != 0.0 for weight in model.state_features_.values())
    assert {name for name, _ in model.state_features_} == set(model.attributes_)
    assert model.num_attributes_ == len(model.attributes_)
    assert ("D", "D") not in model.transition_features_
    assert model.size_ > 0
    assert model.certificate_.relative_gap <= 1e-4


def test_what_only_crfsuite_has_says_so(model):
    assert not hasattr(model, "tagger_")
    with pytest.raises(AttributeError, match="trace_ holds"):
        model.training_log_


def test_the_chain_within_takes_the_same_tokens(model, corpus):
    X, _ = corpus
    assert model.chain_.predict(X) == model.predict(X).tolist()
    assert "word:" in str(model.chain_.explain(X[0]))
    assert len(model.chain_.predict_nbest(X[:1], 2)[0]) in (1, 2)


def test_the_chain_within_can_be_saved(model, corpus, tmp_path):
    model.chain_.save(tmp_path / "model.fenchel")
    chain = load(tmp_path / "model.fenchel")
    assert chain.predict(corpus[0]) == model.predict(corpus[0]).tolist()


def test_pickle_clone_and_parameters(model, corpus):
    X, _ = corpus
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert again.state_features_ == model.state_features_
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    with pytest.raises(NotFittedError):
        clone(model).classes_


def test_predictions_are_an_array_of_lists_whatever_their_lengths(corpus):
    X, y = corpus
    pairs = [(x[:2], labels[:2]) for x, labels in zip(X, y, strict=True) if len(x) >= 2]
    X, y = map(list, zip(*pairs, strict=True))
    found = cross_val_predict(CRF(c2=0.1), X, y, cv=3)
    assert found.shape == (len(X),) and all(type(labels) is list for labels in found)
    assert np.mean([a == b for a, b in zip(found, y, strict=True)]) > 0.5


def test_random_search_over_c1_and_c2(corpus):
    X, y = corpus
    choices = {"c1": [0.01, 0.1], "c2": [0.01, 0.1, 1.0]}
    search = RandomizedSearchCV(CRF("lbfgs", tol=1e-2), choices, n_iter=3, cv=2, random_state=0).fit(X, y)
    assert set(search.best_params_) == {"c1", "c2"}
    assert search.best_score_ > 0.5


def test_wrong_tokens_are_named():
    with pytest.raises(TypeError, match="sequence 1, token 1: the string 'b'"):
        CRF().fit([[["a"]], [["a"], "b"]], [["P"], ["P", "P"]])
    with pytest.raises(TypeError, match=r"sequence 0, token 0: the name 0\.5 is a float"):
        CRF().fit([[[0.5, 1.0]]], [["P"]])
    with pytest.raises(ValueError, match="sequence 0 has 1 tokens but 2 labels"):
        CRF().fit([[["a"]]], [["P", "N"]])
