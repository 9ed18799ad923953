"""LogisticRegression and LinearSVC as a user of scikit-learn meets them."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import linear_model, svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from fenchel import LinearSVC, LogisticRegression, solvers
from fenchel.estimators.inputs import whole_classes
from fenchel.trace import Status

WEIGHT_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


def expected_failures(estimator):
    """At the default tolerance two runs agree to 1e-3, not to the 1e-7 these checks compare with."""
    return dict.fromkeys(WEIGHT_CHECKS, "compares to 1e-7, more than tol asks for")


@parametrize_with_checks(
    [LogisticRegression(), LinearSVC()],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.parametrize("check", sorted(WEIGHT_CHECKS))
@pytest.mark.parametrize("estimator", [LogisticRegression(tol=1e-13), LinearSVC(tol=1e-13, max_iter=100_000)])
def test_a_weight_counts_as_so_many_rows(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        getattr(estimator_checks, check)(type(estimator).__name__, estimator)


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint8, np.uint64, np.float64])
@pytest.mark.parametrize("values", [(0, 1), (3, 7), (0, 1, 2), (5, 9, 100), (1, 120, 121, 127)])
def test_labels_are_found_without_sorting(kind, values):
    y = np.random.default_rng(0).choice(np.array(values, kind), 400)
    classes, codes = whole_classes(y)
    expected, numbers = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, numbers)
    assert classes.dtype == kind


def test_labels_that_must_be_sorted():
    for y in ([1.0, 1.5, 2.0], [0, 10**9, 5], [np.nan, 1.0, 2.0], [2, 2, 2], [4, 5, 6], ["a", "b", "b"]):
        assert whole_classes(np.array(y)) is None


def test_a_table_without_names_after_one_with_names():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 3
    model = LogisticRegression().fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert not hasattr(model.fit(X, y), "feature_names_in_") and model.n_features_in_ == 2


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 10)) * (rng.random((120, 10)) < 0.5)
    y = np.where(X @ rng.normal(size=10) + rng.normal(size=120) > 0.2, "yes", "no")
    return X, y


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_coefficients_are_scikit_learns(data, C, fit_intercept):
    X, y = data
    ours = LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-12).fit(X, y)
    theirs = linear_model.LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-12, max_iter=10_000)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("solver", ["cd-dual", "newton"])
def test_a_scaled_intercept_is_libliners(data, solver):
    X, y = data
    ours = LogisticRegression(C=2.0, intercept_scaling=3.0, solver=solver, tol=1e-12).fit(X, y)
    theirs = linear_model.LogisticRegression(
        C=2.0, solver="liblinear", intercept_scaling=3.0, tol=1e-10, max_iter=10_000
    )
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_linear_svc_is_scikit_learns(data, fit_intercept):
    X, y = data
    ours = LinearSVC(C=0.5, fit_intercept=fit_intercept, tol=1e-9, max_iter=100_000).fit(X, y)
    theirs = svm.LinearSVC(
        C=0.5, loss="hinge", dual=True, fit_intercept=fit_intercept, tol=1e-10, max_iter=1_000_000
    )
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    assert not hasattr(ours, "predict_proba")


@pytest.mark.parametrize("estimator", [LogisticRegression(tol=1e-10), LinearSVC(tol=1e-6, max_iter=10**5)])
def test_every_kind_of_matrix_gives_one_model(data, estimator):
    X, y = data
    X = np.round(X * 4)  # whole numbers, so that integers and float32 hold them exactly
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    inputs = [
        sp.csr_matrix(X),
        sp.csc_matrix(X),
        sp.coo_matrix(X),
        sp.csr_array(X),
        wide,
        X.astype(np.float32),
        X.astype(np.int32),
        np.asfortranarray(X),
        pd.DataFrame(X, columns=[f"x{j}" for j in range(10)]),
    ]
    expected = clone(estimator).fit(X, y)
    for other in inputs:
        model = clone(estimator).fit(other, y)
        same = 1e-7 if model.coef_.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=same, atol=same)
        assert (model.predict(other) == expected.predict(X)).all()


# ---- more than two classes


@pytest.fixture(scope="module")
def many():
    """Three classes of unequal size, labels that are not sorted by size."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(150, 6)) * (rng.random((150, 6)) < 0.6)
    scores = X @ rng.normal(size=(6, 3)) + [0.5, 0.0, -0.7] + rng.gumbel(size=(150, 3))
    return X, np.array(["red", "green", "blue"])[scores.argmax(axis=1)]


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "cd-dual"])
@pytest.mark.parametrize(("C", "fit_intercept"), [(0.01, True), (1.0, True), (1.0, False), (100.0, True)])
def test_many_classes_have_scikit_learns_coefficients(many, C, fit_intercept, solver):
    X, y = many
    ours = LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-13, solver=solver, max_iter=10**5)
    theirs = linear_model.LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-10, max_iter=10**5)
    ours.fit(X, y)
    theirs.fit(X, y)
    assert ours.certificate_.converged
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("class_weight", ["balanced", {"red": 3.0, "blue": 0.5}])
def test_weights_of_many_classes_are_scikit_learns(many, class_weight):
    X, y = many
    sample_weight = np.arange(150) % 4
    ours = LogisticRegression(class_weight=class_weight, tol=1e-13, max_iter=10**5)
    theirs = linear_model.LogisticRegression(class_weight=class_weight, tol=1e-10, max_iter=10**5)
    ours.fit(X, y, sample_weight=sample_weight)
    theirs.fit(X, y, sample_weight=sample_weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)


@pytest.mark.parametrize(("C", "fit_intercept"), [(0.1, True), (1.0, True), (1.0, False)])
def test_many_classes_of_the_svm_are_crammer_and_singers(many, C, fit_intercept):
    X, y = many
    ours = LinearSVC(C=C, fit_intercept=fit_intercept, tol=1e-9, max_iter=10**5).fit(X, y)
    theirs = svm.LinearSVC(
        C=C, multi_class="crammer_singer", fit_intercept=fit_intercept, tol=1e-10, max_iter=10**6
    )
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)


@pytest.mark.parametrize("settings", [dict(), dict(intercept_scaling=2.0), dict(fit_intercept=False)])
@pytest.mark.parametrize("solver", ["cd-dual", "lbfgs"])
def test_a_warm_start_of_many_classes_saves_passes(many, solver, settings):
    X, y = many
    model = LogisticRegression(solver=solver, warm_start=True, tol=1e-8, max_iter=10**4, **settings)
    cold = model.fit(X, y).n_iter_
    assert model.fit(X, y).n_iter_ < cold
    assert model.certificate_.converged


def test_a_warm_start_may_meet_another_number_of_classes(many):
    X, y = many
    model = LogisticRegression(warm_start=True).fit(X, y)
    assert model.fit(X, y == "red").coef_.shape == (1, 6)
    assert model.fit(X, y).coef_.shape == (3, 6)


def test_a_class_without_weight_is_as_one_whose_rows_are_left_out(many):
    X, y = many
    there = y != "green"
    alone = LogisticRegression(tol=1e-8).fit(X[there], y[there])
    weights = {name: float(name != "green") for name in np.unique(y).tolist()}
    for settings, weight in (({}, there.astype(float)), ({"class_weight": weights}, None)):
        model = LogisticRegression(tol=1e-8, **settings).fit(X, y, sample_weight=weight)
        assert "green" not in model.classes_
        np.testing.assert_array_equal(model.coef_, alone.coef_)
    there[np.argmin(there)] = True  # one row of it, which half of the samples miss
    bagged = BaggingClassifier(LogisticRegression(), n_estimators=20, random_state=0)
    assert len({each.classes_.size for each in bagged.fit(X[there], y[there]).estimators_}) == 2


@pytest.mark.parametrize("weight", [-1.0, np.inf])
def test_a_class_weight_that_is_none_is_named(many, weight):
    X, y = many
    with pytest.raises(ValueError, match=r"class_weight\['green'\] is"):
        LogisticRegression(class_weight={"green": weight}).fit(X, y)


def test_solvers_of_scikit_learn_are_met_with_auto(many):
    with pytest.raises(ValueError, match="unknown solver 'saga'; leave it out: 'auto'"):
        LogisticRegression(solver="saga").fit(*many)


def test_sample_weights_count_examples(data):
    X, y = data
    weight = np.arange(120) % 3
    weighted = LogisticRegression(tol=1e-12).fit(X, y, sample_weight=weight)
    repeated = LogisticRegression(tol=1e-12).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-7)


@pytest.mark.parametrize("class_weight", ["balanced", {"yes": 3.0, "no": 0.5}])
def test_class_weights_are_scikit_learns(data, class_weight):
    X, y = data
    ours = LogisticRegression(class_weight=class_weight, tol=1e-12).fit(X, y)
    theirs = linear_model.LogisticRegression(class_weight=class_weight, tol=1e-12, max_iter=10_000)
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, y).coef_, atol=1e-5)


def test_a_class_without_weight_is_an_error(data):
    X, y = data
    with pytest.raises(ValueError, match="only the class 'yes' has examples of positive weight"):
        LogisticRegression().fit(X, y, sample_weight=(y == "yes").astype(float))


@pytest.mark.parametrize("solver", ["cd-dual", "lbfgs", "sag"])
def test_a_warm_start_saves_passes(data, solver):
    X, y = data
    model = LogisticRegression(solver=solver, warm_start=True, tol=1e-8, max_iter=10_000).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ < cold
    assert model.certificate_.converged


def test_a_warm_start_keeps_a_scaled_intercept(data):
    X, y = data
    model = LogisticRegression(solver="lbfgs", intercept_scaling=2.0, warm_start=True, tol=1e-8).fit(X, y)
    assert model.fit(X, y).n_iter_ == 1


def test_callbacks_see_the_trace(data):
    X, y = data
    lengths = []
    LogisticRegression(solver="sag", tol=1e-8, callbacks=[lambda t: lengths.append(len(t))]).fit(X, y)
    assert lengths == list(range(1, len(lengths) + 1)) and len(lengths) > 2


def test_an_interrupt_keeps_the_best_model_with_a_true_certificate(data):
    X, y = data

    def interrupt(trace):
        if len(trace) == 1:
            raise KeyboardInterrupt

    model = LogisticRegression(solver="cd-dual", tol=1e-12, callbacks=[interrupt])
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, y)
    best = LogisticRegression(solver="newton", tol=1e-12).fit(X, y).certificate_.primal
    assert model.certificate_.status is Status.INTERRUPTED
    assert 0 < model.certificate_.primal - best <= model.certificate_.gap
    assert model.score(X, y) > 0.5


def test_stopping_early_warns_with_the_gap_and_the_remedy(data):
    X, y = data
    with pytest.warns(ConvergenceWarning, match=r"gap of .* above tol=1e-12; raise max_iter"):
        LogisticRegression(solver="cd-dual", max_iter=2, tol=1e-12).fit(X, y)


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(data):
    X, y = data
    many = np.repeat(X, 500, axis=0)  # large enough to be split among threads
    labels = np.repeat(y, 500)
    models = [
        LogisticRegression(solver=solver, random_state=3, n_jobs=jobs).fit(many, labels)
        for solver in ("cd-dual", "lbfgs")
        for jobs in (1, 2, None)
    ]
    for k in (0, 3):
        assert (models[k].coef_ == models[k + 1].coef_).all()
        assert (models[k].coef_ == models[k + 2].coef_).all()


def test_probabilities_are_exact_at_large_scores(data):
    X, y = data
    model = LogisticRegression().fit(X, y)
    model.coef_, model.intercept_ = model.coef_ * 0.0, np.array([1000.0])
    np.testing.assert_array_equal(model.predict_log_proba(X[:1]), [[-1000.0, 0.0]])
    np.testing.assert_array_equal(model.predict_proba(X[:1]), [[0.0, 1.0]])


def test_pipelines_grid_search_and_feature_names(data):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.01, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    model = LogisticRegression().fit(X, y)
    assert list(model.feature_names_in_) == list(X.columns)


def test_a_solver_object_is_used_as_it_is(data):
    X, y = data
    model = LogisticRegression(solver=solvers.CDDual(subproblem="bisection", seed=5), tol=1e-6).fit(X, y)
    assert model.trace_.solver == "cd-dual" and model.certificate_.converged
    assert pickle.loads(pickle.dumps(model)).predict(X).tolist() == model.predict(X).tolist()


BAD = [
    (dict(C=0.0), {}, "C=0 must be positive"),
    (dict(C=-1.0), {}, "C=-1 must be positive"),
    (dict(C="strong"), {}, "C='strong' is not a number"),
    (dict(C=float("nan")), {}, "C is NaN"),
    (dict(solver="cd-dul"), {}, "unknown solver 'cd-dul'; did you mean 'cd-dual'"),
    (dict(solver="gis"), dict(X=-np.ones((4, 2))), "gis needs features ≥ 0, but row 0, column 0 holds -1"),
    (dict(solver="iis"), dict(X=-np.ones((4, 2))), "iis needs features ≥ 0"),
    (dict(solver="scgis"), dict(X=-np.ones((4, 2))), "scgis needs features ≥ 0"),
    (dict(), dict(X=np.array([[np.nan], [1], [2], [3]])), "NaN"),
    (dict(), dict(X=np.array([[np.inf], [1], [2], [3]])), "infinity"),
    (dict(), dict(X=np.ones((3, 2))), "inconsistent numbers of samples"),
    (dict(), dict(y=[1, 1, 1, 1]), "only one class"),
    (dict(), dict(sample_weight=[1, 1, -1, 1]), "negative"),
    (dict(), dict(sample_weight=[0, 0, 0, 0]), "at least one non-zero"),
    (dict(tol=-1.0), {}, "tol=-1.0 must be a number, at least 0"),
    (dict(max_iter=-5), {}, "max_iter=-5 must be"),
    (dict(intercept_scaling=-2.0), {}, "intercept_scaling=-2.0 must be a positive"),
    (dict(n_jobs=0), {}, "n_jobs=0"),
    (dict(C=float("inf"), solver="cd-dual"), {}, "it has no regulariser and so no dual; use gis"),
]


@pytest.mark.parametrize(("settings", "arguments", "message"), BAD)
def test_bad_input_is_one_clear_sentence(settings, arguments, message):
    fit = dict(X=np.arange(8.0).reshape(4, 2), y=[0, 1, 1, 0]) | arguments
    with pytest.raises(ValueError, match=message) as caught:
        LogisticRegression(**settings).fit(**fit)
    assert "\n\n" not in str(caught.value)


def test_a_hinge_loss_names_the_solvers_it_has():
    with pytest.raises(ValueError, match="hinge loss here: it offers no gradient; use sgd, cd-dual, eg"):
        LinearSVC(solver="newton").fit([[0.0], [1.0]], [0, 1])


def test_a_warm_start_of_the_svm_keeps_its_dual_variables(data):
    X, y = data
    model = LinearSVC(warm_start=True, tol=1e-6, max_iter=10**5).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ < cold / 2


@pytest.mark.parametrize("weight", [1e300, 1e-300])
def test_weights_may_be_of_any_size(data, weight):
    X, y = data
    ours = LogisticRegression(C=1.0 / weight, tol=1e-10).fit(X, y, sample_weight=np.full(120, weight))
    np.testing.assert_allclose(ours.coef_, LogisticRegression(tol=1e-10).fit(X, y).coef_, rtol=1e-4)


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        LogisticRegression().save(tmp_path / "m")
