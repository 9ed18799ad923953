"""train --init: going on from a saved model, on new data, with new labels and features."""

import numpy as np
import pytest

import fenchel
from commands import fails, misused, run, write_classes, write_events
from fenchel import LogisticRegression, MaxEnt
from fenchel.io.trace import read_trace

SENTENCES = ["the D\ncat N\nsleeps V\n", "dogs N\nbark V\n", "a D\ndog N\n"]
NEW = "dog N\nloudly A\n"  # a word and a label that the others do not have
TREES = "the\tD\t2\ncat\tN\t3\nsleeps\tV\t0\n\ndogs\tN\t2\nbark\tV\t0\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path)
    write_events(tmp_path)
    (tmp_path / "words.txt").write_text("\n".join(SENTENCES))
    (tmp_path / "more.txt").write_text("\n".join([*SENTENCES, NEW]))
    (tmp_path / "trees.txt").write_text(TREES)
    return tmp_path


CASES = {
    "lr": ("train.svm", "train.svm", [], "2 of 2 classes, 4 of 4 features"),
    "two of three": ("train.svm", "three.svm", [], "1 of 3 classes, 4 of 4 features"),
    "maxent": ("train.events", "test.events", ["--format", "opennlp"], "3 of 3 labels, 19 of 19 features"),
    "candidates": ("train.tadm", "train.tadm", ["--format", "tadm"], "5 of 5 features"),
    "tagger": ("words.txt", "more.txt", ["--rare", "1"], "3 of 4 tags, "),
    "crf": ("words.txt", "more.txt", ["--template", "pos"], "3 of 4 labels, "),
    "parser": ("trees.txt", "trees.txt", ["--min-count", "1"], "features"),
}


@pytest.mark.parametrize("case", CASES)
def test_every_kind_goes_on_and_tells_what_it_took_over(folder, case):
    first, second, options, taken = CASES[case]
    kind = {"two of three": "lr", "candidates": "maxent"}.get(case, case)
    assert run("train", kind, first, "-o", "old", "-C", "3", *options).exit_code == 0
    if kind != "maxent":
        options = []
    result = run("train", kind, second, "-o", "new", "--init", "old", "--trace", "run", *options)
    assert result.exit_code == 0, result.output
    assert "old: going on from its weights of " in result.stderr and taken in result.stderr
    assert fenchel.load("new").C == 3.0 and "its C = 3.0" in result.stderr
    assert fenchel.load("new").certificate_.converged


def test_the_first_look_is_at_the_old_weights(folder):
    assert run("train", "lr", "train.svm", "-o", "old", "--solver", "lbfgs", "--tol", "1e-8").exit_code == 0
    assert (
        run(
            "train", "lr", "train.svm", "-o", "new", "--init", "old", "--solver", "lbfgs", "--trace", "run"
        ).exit_code
        == 0
    )
    assert read_trace("run")[0].primal == pytest.approx(fenchel.load("old").certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(fenchel.load("new").coef_, fenchel.load("old").coef_, rtol=1e-3)


def test_options_that_are_given_hold(folder):
    assert run("train", "lr", "train.svm", "-o", "old", "-C", "3", "--no-intercept").exit_code == 0
    result = run("train", "lr", "train.svm", "-o", "new", "--init", "old", "-C", "0.5")
    assert "its no_intercept = True\n" in result.stderr
    assert fenchel.load("new").get_params()["C"] == 0.5 and not fenchel.load("new").fit_intercept


def test_features_that_new_data_lack_are_kept(folder):
    (folder / "narrow.svm").write_text("1 1:1\n-1 2:1\n")
    assert run("train", "lr", "train.svm", "-o", "old").exit_code == 0
    assert run("train", "lr", "narrow.svm", "-o", "new", "--init", "old").exit_code == 0
    assert run("predict", "new", "test.svm").exit_code == 0
    assert run("shard", "lr", "narrow.svm", "-o", "shards").exit_code == 0
    assert "has 2 features, but" in fails("train", "lr", "shards", "-o", "new", "--init", "old")


def test_what_cannot_be_gone_on_from_is_refused(folder):
    assert run("train", "lr", "train.svm", "-o", "old").exit_code == 0
    sentence = fails("train", "maxent", "train.events", "--format", "opennlp", "-o", "new", "--init", "old")
    assert sentence == "old: a LogisticRegression model, expected MaxEnt as `maxent` trains it"
    assert "only --solver sgd" in misused(
        "train", "lr", "train.svm", "-o", "new", "--init", "old", "--loss", "hinge"
    )
    assert fails("train", "lr", "train.svm", "-o", "new", "--init", "none") == "none: no such model file"


def test_a_model_of_other_things_is_no_start(folder):
    (folder / "other.events").write_text("yes other names\nno of features\n")
    options = ["--format", "opennlp", "-o"]
    assert run("train", "maxent", "train.events", *options, "old").exit_code == 0
    result = run("train", "maxent", "other.events", *options, "new", "--init", "old")
    assert "old: knows none of 2 labels and 4 features; training starts anew" in result.stderr


def test_two_classes_and_three_start_from_each_other():
    X, y = np.eye(3), np.array(["a", "b", "c"])
    two = LogisticRegression(solver="lbfgs", tol=1e-9).fit(X[:2], y[:2])
    three = LogisticRegression()
    data = three.encode_training(X, y)
    w, b = three._weights_from(two, data, three.shared_with(two, data))
    W = w.reshape(3, 3)
    np.testing.assert_array_equal(W[:, 1] - W[:, 0], two.coef_[0])
    np.testing.assert_array_equal(b[1] - b[0], two.intercept_[0])
    again = LogisticRegression()
    back = again.encode_training(X[:2], y[:2])
    w, b = again._weights_from(two, back, again.shared_with(two, back))
    np.testing.assert_array_equal(w, two.coef_[0])


def test_a_fit_starts_from_another_model():
    events, y = [["a"], ["b"], ["a", "c"]], ["x", "y", "y"]
    old = MaxEnt(solver="lbfgs", tol=1e-9).fit(events, y)
    new = MaxEnt(solver="lbfgs")
    new.fit_encoded(new.encode_training(events, y), origin=old)
    assert new.trace_[0].primal == pytest.approx(old.certificate_.primal, rel=1e-8)
