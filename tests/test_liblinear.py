"""LIBLINEAR's text models: there and back, and what is damaged."""

import numpy as np
import pytest

import fenchel
from commands import fails, run
from fenchel import LinearSVC, LogisticRegression
from fenchel.errors import DataError
from fenchel.io.liblinear import LinearModel, read_liblinear, write_liblinear

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 4))
SCORES = X @ RNG.normal(size=(4, 3)) + 0.3 * RNG.normal(size=(60, 3))


@pytest.mark.parametrize("labels", [np.array([-1, 1]), np.array([3, 7, 10])])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("estimator", [LogisticRegression, LinearSVC])
def test_models_come_back_as_they_went(estimator, labels, intercept, tmp_path):
    y = labels[SCORES[:, : labels.size].argmax(axis=1)]
    model = estimator(fit_intercept=intercept).fit(X, y)
    model.to_liblinear(tmp_path / "model")
    again = fenchel.load(tmp_path / "model")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.coef_, model.coef_) and np.array_equal(again.intercept_, model.intercept_)
    if estimator is LogisticRegression and labels.size == 2:
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_liblinear_predicts_the_same(tmp_path):
    liblinearutil = pytest.importorskip("liblinear.liblinearutil", reason="LIBLINEAR is not installed")
    for labels in (np.array([-1, 1]), np.array([3, 7, 10])):
        y = labels[SCORES[:, : labels.size].argmax(axis=1)]
        model = LogisticRegression().fit(X, y)
        model.to_liblinear(tmp_path / "model")
        other = liblinearutil.load_model(str(tmp_path / "model"))
        found, _, _ = liblinearutil.predict([], list(map(list, X)), other, "-q")
        assert np.array_equal(found, model.predict(X))


def test_two_weight_vectors_of_crammer_and_singer_are_one_here(tmp_path):
    (tmp_path / "model").write_text(
        "solver_type MCSVM_CS\nnr_class 2\nlabel 1 2\nnr_feature 2\nbias -1\nw\n1 -1 \n0.5 2 \n"
    )
    found = read_liblinear(tmp_path / "model")
    assert found.labels.tolist() == [1, 2]
    assert found.weights.tolist() == [[-2.0, 1.5]]


def test_convert_there_and_back_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    LogisticRegression().fit(X, SCORES[:, 0] > 0).to_liblinear("one")
    for arguments in (("one", "two", "--to", "fenchel"), ("two", "three", "--to", "liblinear")):
        assert run("convert", *arguments).exit_code == 0
    assert (tmp_path / "one").read_text() == (tmp_path / "three").read_text()
    assert "not trained here" in run("inspect", "two").stdout
    assert "no counterpart in crfsuite" in fails("convert", "one", "two", "--to", "crfsuite")


def test_strings_and_fractions_are_no_labels_of_liblinear(tmp_path):
    with pytest.raises(ValueError, match="whole numbers, not 'a'"):
        write_liblinear(
            tmp_path / "m", LinearModel(np.array(["a", "b"]), np.ones((1, 2)), np.zeros(1), "L2R_LR")
        )
    with pytest.raises(ValueError, match=r"not 1\.5"):
        write_liblinear(
            tmp_path / "m", LinearModel(np.array([0, 1.5]), np.ones((1, 2)), np.zeros(1), "L2R_LR")
        )


GOOD = "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 1\nw\n1 \n0.5 \n2 \n"


@pytest.mark.parametrize(
    "before, after, said",
    [
        ("w\n", "", "no line `w`|expected one of"),
        ("2 \n", "", "cut short"),
        ("2 \n", "2 \n3 \n", "line 10: expected 3 rows of 1"),
        ("0.5", "nan", "line 8"),
        ("0.5", "x", "line 8: a weight is no number"),
        ("0.5", "0.5 1", "line 8"),
        ("nr_feature 2", "nr_feature 99999999999", "do not go together"),
        ("nr_class 2", "nr_class 3", "do not go together"),
        ("label 1 -1", "label 1 1", "do not go together"),
        ("label 1 -1", "label a b", "no number"),
        ("bias 1\n", "", "no bias before it"),
        ("bias 1\n", "bias 1\nbias 1\n", "each once"),
        ("L2R_LR", "L2R_L2LOSS_SVR", "not a classifier"),
    ],
)
def test_what_is_damaged_is_named(before, after, said, tmp_path):
    (tmp_path / "model").write_text(GOOD.replace(before, after, 1))
    with pytest.raises(DataError, match=said):
        fenchel.load(tmp_path / "model")
