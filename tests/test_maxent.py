"""MaxEnt as a user meets it: events, labels of any kind, candidates, errors."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn import linear_model
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction import DictVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score

from fenchel import LinearSVC, MaxEnt, solvers

WORDS = {
    "sport": ["ball", "goal", "team", "win", "match"],
    "trade": ["market", "price", "goods", "team", "win"],
    "law": ["court", "judge", "case", "price", "match"],
}


def make_events(n=60, seed=0):
    """Events as dicts with strings and numbers, and their labels."""
    rng = np.random.default_rng(seed)
    events, labels = [], []
    for _ in range(n):
        label = str(rng.choice(list(WORDS)))
        other = str(rng.choice(list(WORDS)))
        words = [str(rng.choice(WORDS[label])), str(rng.choice(WORDS[other]))]
        events.append({"first": words[0], words[1]: True, "length": round(float(rng.random()), 2)})
        labels.append(label)
    return events, labels


@pytest.fixture(scope="module")
def data():
    return make_events()


def as_candidates(event):
    """The crossed layout written out as candidates: a name of its own for each pair of feature and label."""
    names = [(f"{k}={v}", 1.0) if isinstance(v, str) else (k, float(v)) for k, v in event.items()]
    return {label: {f"{name} & {label}": value for name, value in names} for label in WORDS}


def as_matrix(events):
    vectorizer = DictVectorizer()
    return vectorizer.fit_transform(events), vectorizer.feature_names_


# ---- the model


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_weights_are_those_of_multinomial_logistic_regression(data, C):
    events, y = data
    X, names = as_matrix(events)
    ours = MaxEnt(C=C, tol=1e-13, max_iter=10**5).fit(events, y)
    theirs = linear_model.LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10**5).fit(X, y)
    assert ours.certificate_.converged and ours.layout_ == "crossed"
    assert ours.classes_.tolist() == ["law", "sport", "trade"]
    columns = [ours.vocabulary_.get(name) for name in names]
    np.testing.assert_allclose(ours.coef_[:, columns], theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(events), theirs.predict_proba(X), atol=1e-5)
    assert ours.score(events, y) == theirs.score(X, y)


def test_candidates_with_crossed_names_give_the_crossed_model(data):
    events, y = data
    crossed = MaxEnt(tol=1e-12).fit(events, y)
    joint = MaxEnt(tol=1e-12).fit_joint(map(as_candidates, events), y)
    assert joint.layout_ == "joint" and joint.coef_.shape == (1, crossed.coef_.size)
    assert not hasattr(joint, "classes_")
    candidates = list(map(as_candidates, events))
    table = [[p[label] for label in crossed.classes_] for p in joint.predict_proba(candidates)]
    np.testing.assert_allclose(table, crossed.predict_proba(events), atol=1e-5)
    assert joint.predict(candidates).tolist() == crossed.predict(events).tolist()
    assert joint.score(candidates, y) == crossed.score(events, y)


def test_joint_features_reach_the_optimum_of_the_formula():
    events = [
        {"a": {"f": 1.0, "g": -2.0}, "b": {"f": 0.5}},
        {"a": {"g": 1.0}, "b": {"h": 2.0}, "c": {"f": -1.0, "h": 0.5}},
        {"only": {"f": 3.0}},
    ]
    truth, weight, sigma2 = ["a", {"b": 0.25, "c": 0.75}, "only"], np.array([2.0, 1.0, 3.0]), 1.5
    rows = [np.array([[c.get(f, 0.0) for f in "fgh"] for c in event.values()]) for event in events]
    targets = [np.array([1.0, 0.0]), np.array([0.0, 0.25, 0.75]), np.array([1.0])]

    def objective(w):
        losses = [np.log(np.exp(F @ w).sum()) - t @ F @ w for F, t in zip(rows, targets, strict=True)]
        return weight @ losses / weight.sum() + w @ w / (2 * sigma2)

    model = MaxEnt(sigma2=sigma2, tol=1e-13).fit_joint(events, truth, sample_weight=weight)
    best = minimize(objective, np.zeros(3), tol=1e-12)
    order = [model.vocabulary_.get(name) for name in "fgh"]
    np.testing.assert_allclose(model.coef_[0, order], best.x, atol=1e-5)
    assert model.certificate_.primal == pytest.approx(best.fun, rel=1e-10)


def test_sigma2_is_c_times_the_number_of_events(data):
    events, y = data
    prior = MaxEnt(sigma2=120.0, C=77.0, tol=1e-12).fit(events, y)
    np.testing.assert_allclose(prior.coef_, MaxEnt(C=2.0, tol=1e-12).fit(events, y).coef_, atol=1e-6)


def test_the_hinge_loss_is_crammer_and_singers_machine(data):
    events, y = data
    X, names = as_matrix(events)
    model = MaxEnt(C=0.5, loss="hinge", tol=1e-9, max_iter=10**5).fit(events, y)
    other = LinearSVC(C=0.5, fit_intercept=False, tol=1e-9, max_iter=10**5).fit(X, y)
    columns = [model.vocabulary_.get(name) for name in names]
    np.testing.assert_allclose(model.coef_[:, columns], other.coef_, atol=1e-3)
    assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_log_proba")
    assert model.explain(events[0]).probabilities is None


@pytest.mark.parametrize("solver", ["gis", "scgis", "cd-primal", "tron", "sdca", solvers.CDDual(seed=3)])
@pytest.mark.parametrize("joint", [False, True])
def test_any_solver_finds_the_same_model(data, solver, joint):
    events, y = data
    events = list(map(as_candidates, events)) if joint else events
    fit = MaxEnt.fit_joint if joint else MaxEnt.fit
    best = fit(MaxEnt(tol=1e-10), events, y).certificate_.primal
    model = fit(MaxEnt(tol=1e-5, solver=solver, max_iter=10**5), events, y)
    assert 0 <= model.certificate_.primal - best <= 1e-5 * best


def test_the_same_seed_gives_the_same_bits(data):
    first, second = (MaxEnt(solver="cd-dual", random_state=5).fit(*data).coef_ for _ in range(2))
    assert (first == second).all()
    assert (MaxEnt(solver="cd-dual", random_state=6).fit(*data).coef_ != first).any()


# ---- labels and weights


def test_soft_labels_are_weighted_events(data):
    events, y = data
    soft = [{label: 0.75, "law": 0.25} if label != "law" else "law" for label in y]
    doubled = [(e, label, 0.75) for e, label in zip(events, y, strict=True)]
    doubled += [(e, "law", 0.25) for e in events]
    model = MaxEnt(tol=1e-12).fit(events, soft)
    names, labels, weight = zip(*doubled, strict=True)
    np.testing.assert_allclose(
        model.coef_, MaxEnt(tol=1e-12).fit(names, labels, sample_weight=weight).coef_, atol=1e-6
    )
    right = [truth.get(label, 0.0) if isinstance(truth, dict) else truth == label
             for truth, label in zip(soft, model.predict(events), strict=True)]  # fmt: skip
    assert model.score(events, soft) == pytest.approx(np.mean(right))


def test_weights_count_events(data):
    events, y = data
    weight = np.arange(60) % 3
    model = MaxEnt(tol=1e-12).fit(events, y, sample_weight=weight)
    many = [e for e, k in zip(events, weight, strict=True) for _ in range(k)]
    np.testing.assert_allclose(
        model.predict_proba(events),
        MaxEnt(tol=1e-12).fit(many, np.repeat(y, weight)).predict_proba(events),
        atol=1e-6,
    )
    right = model.predict(events) == np.array(y)
    assert model.score(events, y, weight) == pytest.approx(np.average(right, weights=weight))


@pytest.mark.parametrize(
    ("labels", "classes", "kind"),
    [
        (["b", "a", "b"], ["a", "b"], "U"),
        ([2, -1, 2], [-1, 2], "i"),
        ([0.5, 2.0, 0.5], [0.5, 2.0], "f"),
        ([True, False, True], [False, True], "b"),
        (np.array(["b", "a", "b"]), ["a", "b"], "U"),
        (np.array([2, -1, 2]), [-1, 2], "i"),
        (pd.Series(["b", "a", "b"]), ["a", "b"], "U"),
        ([np.int64(2), 1, 2], [1, 2], "i"),
        ([2**80, 1, 2], [1, 2, 2**80], "O"),
        ([(2, "x"), (1, "y"), (2, "x")], [(1, "y"), (2, "x")], "O"),
        (["b", 1, None], ["b", 1, None], "O"),
        (["a\0", "a", "b"], ["a", "a\0", "b"], "O"),
        ([{"b": 1.0}, {"a": 0.5, "b": 0.5}, "c"], ["a", "b", "c"], "U"),
        (["x", "x", "x"], ["x"], "U"),
    ],
)
def test_labels_of_any_kind(labels, classes, kind):
    events = [{"f": 1}, {"g": 1}, {"f": 1, "h": 1}]
    model = MaxEnt(C=100.0).fit(events, labels)
    assert model.classes_.tolist() == classes and model.classes_.dtype.kind == kind
    assert model.predict(events).tolist()[0] in classes
    np.testing.assert_allclose(model.predict_proba(events).sum(axis=1), 1.0)


def test_one_label_leaves_nothing_to_learn():
    for loss in ("log", "hinge"):
        model = MaxEnt(loss=loss).fit([["f"], ["g"]], ["x", "x"])
        assert model.certificate_.converged and model.certificate_.primal == 0.0
        assert model.predict([["h"]]).tolist() == ["x"]


# ---- events


def test_unseen_features_are_ignored(data):
    events, y = data
    model = MaxEnt().fit(events, y)
    with_more = [event | {"never": 3.0, "seen": "at all"} for event in events]
    np.testing.assert_array_equal(model.predict_proba(with_more), model.predict_proba(events))
    np.testing.assert_allclose(model.predict_proba([{}, ["nothing known"]]), 1 / 3)


def test_no_events_have_no_labels(data):
    model = MaxEnt().fit(*data)
    assert model.predict([]).shape == (0,)
    assert model.predict_proba([]).shape == (0, 3)
    joint = MaxEnt().fit_joint([{"a": {"f": 1}, "b": {}}], ["a"])
    assert joint.predict([]).shape == (0,) and joint.predict_proba([]) == []


def test_rare_features_can_be_left_out(data):
    events, y = data
    events = [*events, {"once": 1.0}]
    assert "once" in MaxEnt().fit(events, [*y, "law"]).vocabulary_
    assert "once" not in MaxEnt(min_count=2).fit(events, [*y, "law"]).vocabulary_


def test_candidates_may_be_lists():
    model = MaxEnt(C=10.0).fit_joint([[["f"], ["g"]], [["g"], ["f"], ["h"]]], [0, 1])
    assert model.predict([[["g"], ["f"]]]).tolist() == [1]
    assert model.predict_proba([[["g"]]]) == [{0: 1.0}]


def test_events_are_read_once_and_may_be_a_generator(data):
    events, y = data
    model = MaxEnt().fit((event for event in events), y)
    np.testing.assert_array_equal(model.coef_, MaxEnt().fit(events, y).coef_)


# ---- errors

EVENTS, TWO = [{"f": 1}, {"g": 1}], ["a", "b"]
BAD = [
    (dict(), (EVENTS, ["a"]), "2 events but 1 labels in y; they must match"),
    (dict(), ([], []), "there are no events"),
    (dict(), ([{}, []], TWO), "no event has a feature"),
    (dict(min_count=5), (EVENTS, TWO), "no feature occurs in min_count=5 events; lower min_count"),
    (dict(min_count=0), (EVENTS, TWO), "min_count=0 must be a whole number of at least 1"),
    (dict(), (["text", "more"], TWO), "event 0: the string 'text', expected a dict or a list of names"),
    (dict(), ([{"f": 1}, {"f": None}], TWO), "event 1: feature 'f' is None"),
    (dict(), ([{"f": np.inf}, {}], TWO), "event 0: feature 'f' is inf"),
    (dict(), (EVENTS, [["a"], "b"]), r"event 0: the label \['a'\] is a list"),
    (dict(), (EVENTS, ["a", np.nan]), "y contains NaN"),
    (dict(), (EVENTS, ["a", {"a": 0.5}]), "event 1: its probabilities sum to 0.5, expected 1"),
    (dict(), (EVENTS, ["a", {"a": 1.5, "b": -0.5}]), "event 1: the probability of 'b' is -0.5"),
    (dict(loss="hinge"), (EVENTS, ["a", {"b": 1.0}]), "event 1: y gives probabilities, but the hinge loss"),
    (dict(loss="square"), (EVENTS, TWO), "unknown loss 'square'"),
    (dict(solver="cd-dul"), (EVENTS, TWO), "did you mean 'cd-dual'"),
    (dict(solver="lbfgs", loss="hinge"), (EVENTS, TWO), "'lbfgs' cannot train a flat crossed model"),
    (dict(sigma2=-1), (EVENTS, TWO), "sigma2=-1 must be positive"),
    (dict(), (EVENTS, TWO, [1.0]), r"sample_weight has shape \(1,\), expected \(2,\)"),
    (dict(), (EVENTS, TWO, [0.0, 0.0]), "sample_weight is zero everywhere"),
]


@pytest.mark.parametrize(("settings", "arguments", "message"), BAD)
def test_bad_input_is_one_clear_sentence(settings, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        MaxEnt(**settings).fit(*arguments)


def test_a_label_that_is_no_candidate_is_named():
    events = [{"a": ["f"], "b": ["g"]}, {"a": ["f"], "b": ["g"]}]
    with pytest.raises(ValueError, match="event 1: label 'c' is not among its candidates 'a', 'b'"):
        MaxEnt().fit_joint(events, ["a", "c"])
    with pytest.raises(ValueError, match=r"event 0: label 9 is not .* 0, 1, 2, 3, 4 and 3 more"):
        MaxEnt().fit_joint([[["f"]] * 8], [9])
    with pytest.raises(ValueError, match="event 1 has no candidates"):
        MaxEnt().fit_joint([events[0], {}], ["a", "a"])


def test_events_of_the_other_layout_are_refused(data):
    events, y = data
    with pytest.raises(TypeError, match="takes each event's features, as fit did"):
        MaxEnt().fit(events, y).predict([as_candidates(events[0])])
    with pytest.raises(TypeError, match="takes each event's candidates, as fit_joint did"):
        MaxEnt().fit_joint([as_candidates(events[0])], y[:1]).predict(events)


def test_an_unfitted_model_says_so(tmp_path):
    for use in (lambda m: m.predict([]), lambda m: m.explain({}), lambda m: m.top_features()):
        with pytest.raises(NotFittedError):
            use(MaxEnt())
    with pytest.raises(NotFittedError):
        MaxEnt().save(tmp_path / "m")


def test_stopping_early_warns_where_fit_was_called(data):
    with pytest.warns(ConvergenceWarning, match="raise max_iter") as caught:
        MaxEnt(solver="gis", max_iter=2, tol=1e-9).fit(*data)
    assert caught[0].filename == __file__


# ---- scikit-learn's manner


def test_clone_pickle_and_parameters(data):
    events, y = data
    model = MaxEnt(5.0, min_count=2, solver=solvers.CDDual()).fit(events, y)
    assert model.get_params()["sigma2"] == 5.0
    twin = clone(model)
    assert twin.get_params() == model.get_params() and not hasattr(twin, "coef_")
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(events), model.predict_proba(events))


def test_cross_validation_and_grid_search(data):
    events, y = data
    assert cross_val_score(MaxEnt(), events, y, cv=3).mean() > 0.4
    search = GridSearchCV(MaxEnt(), {"C": [0.1, 1.0]}, cv=3, scoring="neg_log_loss").fit(events, y)
    assert search.best_params_["C"] in (0.1, 1.0)


@pytest.mark.parametrize("solver", ["cd-dual", "lbfgs"])
@pytest.mark.parametrize("joint", [False, True])
def test_a_warm_start_saves_passes(data, solver, joint):
    events, y = data
    events = list(map(as_candidates, events)) if joint else events
    model = MaxEnt(solver=solver, warm_start=True, tol=1e-8, max_iter=10**4)
    fit = model.fit_joint if joint else model.fit
    cold = fit(events, y).n_iter_
    assert fit(events, y).n_iter_ < cold


def test_a_warm_start_goes_on_with_new_features_and_labels(data):
    events, y = data
    model = MaxEnt(solver="lbfgs", warm_start=True, tol=1e-6).fit(events, y)
    more, labels = [{"brand": "new"}, *events], ["war", *y]
    warm = model.fit(more, labels)
    cold = MaxEnt(solver="lbfgs", tol=1e-6).fit(more, labels)
    assert warm.trace_[0].primal < cold.trace_[0].primal
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-5)


def test_a_warm_start_may_change_the_layout_or_the_candidates(data):
    events, y = data
    model = MaxEnt(solver="cd-dual", warm_start=True).fit(events, y)
    candidates = list(map(as_candidates, events))
    assert model.fit_joint(candidates, y).certificate_.converged
    fewer = [
        {label: c for label, c in e.items() if label in ("law", t)}
        for e, t in zip(candidates, y, strict=True)
    ]
    assert model.fit_joint(fewer, y).certificate_.converged
    assert model.fit(events, y).certificate_.converged
