"""LogisticRegressionCV: scikit-learn's choice, shapes and semantics; a certificate behind every score."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV as Theirs
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from fenchel import LogisticRegression, LogisticRegressionCV, load

CS = [0.01, 0.1, 1.0, 10.0]
EXACT = {"tol": 1e-9, "max_iter": 5000}


def two():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :10] / X[:, :10].max(axis=0), np.array(["benign", "malign"])[y]


def three():
    X, y = load_iris(return_X_y=True)
    return X / X.max(axis=0), y


def theirs(**settings):
    return Theirs(Cs=CS, cv=3, tol=1e-10, max_iter=10_000, **settings)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
@pytest.mark.parametrize("make", [two, three])
def test_choice_scores_and_paths_are_those_of_scikit_learn(make, scoring, legacy):
    X, y = make()
    settings = {"scoring": scoring, "use_legacy_attributes": legacy}
    ours = LogisticRegressionCV(Cs=CS, cv=3, **EXACT, **settings).fit(X, y)
    reference = theirs(l1_ratios=(0.0,), **settings, solver="newton-cholesky").fit(X, y)
    np.testing.assert_array_equal(ours.C_, reference.C_)
    np.testing.assert_array_equal(ours.l1_ratio_, reference.l1_ratio_)
    np.testing.assert_allclose(ours.coef_, reference.coef_, rtol=1e-3, atol=1e-3)
    assert np.shape(ours.n_iter_) == np.shape(reference.n_iter_)
    for name, rtol in (("scores_", 1e-6), ("coefs_paths_", 2e-3)):
        one, other = getattr(ours, name), getattr(reference, name)
        pairs = [(one, other)] if not legacy else [(one[key], other[key]) for key in other]
        for a, b in pairs:
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=rtol, atol=2e-3)
    assert ours.certificates_.shape == (3, 1, 4)
    assert all(each.converged and each.relative_gap <= 1e-9 for each in ours.certificates_.flat)
    assert ours.certificate_.converged


def test_ratios_are_chosen_too_and_the_refit_is_the_fit_of_the_choice():
    X, y = two()
    grid = {"Cs": CS[:3], "l1_ratios": [0.0, 0.5, 1.0], "cv": 3, "scoring": "neg_log_loss"}
    ours = LogisticRegressionCV(**grid, **EXACT).fit(sp.csr_matrix(X), y)
    reference = Theirs(**grid, solver="saga", tol=1e-5, max_iter=5000, random_state=0,
                       use_legacy_attributes=False).fit(X, y)  # fmt: skip
    assert (ours.C_, ours.l1_ratio_) == (reference.C_, reference.l1_ratio_)
    np.testing.assert_allclose(ours.scores_, reference.scores_, atol=5e-3)
    alone = LogisticRegression(C=ours.C_, l1_ratio=ours.l1_ratio_, **EXACT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, alone.coef_, atol=1e-4)


def test_without_refit_coefficients_are_averaged_and_the_certificate_is_true():
    X, y = three()
    ours = LogisticRegressionCV(Cs=CS, cv=3, refit=False, **EXACT).fit(X, y)
    reference = theirs(
        l1_ratios=(0.0,), refit=False, use_legacy_attributes=False, scoring=None, solver="newton-cholesky"
    ).fit(X, y)
    assert pytest.approx(reference.C_) == ours.C_
    np.testing.assert_allclose(ours.coef_, reference.coef_, atol=2e-3)
    best = LogisticRegression(C=ours.C_, **EXACT).fit(X, y).certificate_
    assert ours.certificate_.dual <= best.primal * (1.0 + 1e-9) and ours.certificate_.primal >= best.dual
    assert "averaged over the folds" in str(ours.certificate_)


def test_groups_are_kept_together():
    (X, y), groups = two(), np.arange(569) % 7
    ours = LogisticRegressionCV(Cs=CS[:2], cv=GroupKFold(3)).fit(X, y, groups=groups)
    folds = list(GroupKFold(3).split(X, y, groups))
    same = LogisticRegressionCV(Cs=CS[:2], cv=folds).fit(X, y)
    np.testing.assert_array_equal(ours.coefs_paths_, same.coefs_paths_)
    with pytest.raises(ValueError, match=r"cv=\[\] makes no folds"):
        LogisticRegressionCV(cv=[]).fit(X, y)


def test_weights_threads_and_folds_change_nothing_they_should_not(tmp_path):
    X, y = two()
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    settings = {"Cs": CS, "cv": folds, "class_weight": "balanced", "tol": 1e-6}
    one, two_threads = (
        LogisticRegressionCV(**settings, n_jobs=jobs).fit(X, y, sample_weight=weight) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.coefs_paths_, two_threads.coefs_paths_)
    reference = Theirs(
        Cs=CS, cv=folds, class_weight="balanced", l1_ratios=(0.0,), scoring=None, tol=1e-10, max_iter=10_000,
        use_legacy_attributes=False, solver="newton-cholesky",
    ).fit(X, y, sample_weight=weight)  # fmt: skip
    np.testing.assert_allclose(one.scores_, reference.scores_, atol=1e-9)
    assert one.score(X, y) == pytest.approx(np.mean(one.predict(X) == y))
    one.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for name in ("coef_", "scores_", "Cs_", "C_", "l1_ratio_", "n_iter_", "certificates_", "certificate_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(one, name))
    np.testing.assert_array_equal(again.predict(X), one.predict(X))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"Cs": 0}, "Cs=0 must be a whole number of at least 1"),
        ({"Cs": [1.0, -1.0]}, "Cs=.* each positive"),
        ({"Cs": []}, "Cs="),
        ({"Cs": [np.nan]}, "Cs="),
        ({"l1_ratios": [1.5]}, "l1_ratios=.* each between 0 and 1"),
        ({"l1_ratios": 0.5}, "l1_ratios=0.5 must be a list"),
        ({"refit": "no"}, "refit='no' must be True or False"),
        ({"cv": KFold(3)}, "fold 0 has no rows of the class 0 to train on"),
    ],
)
def test_wrong_settings_are_named(settings, match):
    X, y = three()
    with pytest.raises(ValueError, match=match):
        LogisticRegressionCV(**settings).fit(X, y)


def test_fits_that_fall_short_are_counted_in_one_warning():
    X, y = three()
    with pytest.warns(ConvergenceWarning, match="of 6 fits behind scores did not converge"):
        LogisticRegressionCV(Cs=[0.1, 9.0], cv=3, tol=1e-12, max_iter=1, solver="eg", refit=False).fit(X, y)


@parametrize_with_checks([LogisticRegressionCV(Cs=2, cv=3, tol=1e-13)])  # some compare to 1e-7
def test_scikit_learns_checks(estimator, check):
    check(estimator)
