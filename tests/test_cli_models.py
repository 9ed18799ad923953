"""fenchel predict, evaluate and inspect on models of libsvm files."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fenchel
from commands import fails, misused, run, write_classes
from fenchel.io.libsvm import read_libsvm


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder):
    assert run("train", "lr", "train.svm", "-o", "model", "-q").exit_code == 0
    return "model"


def test_predict_prints_a_label_per_example(folder, model):
    result = run("predict", model, "test.svm")
    X, _ = read_libsvm("test.svm")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.split("\n") == [f"{label:.0f}" for label in fenchel.load(model).predict(X)] + [""]


def test_predict_probabilities(folder, model):
    header, *rows = [
        line.split("\t") for line in run("predict", model, "test.svm", "--probabilities").stdout.splitlines()
    ]
    assert header == ["label", "-1", "1"]
    X, _ = read_libsvm("test.svm")
    np.testing.assert_allclose(
        [[float(p) for p in row[1:]] for row in rows], fenchel.load(model).predict_proba(X), rtol=1e-5
    )
    assert all(label == ("1" if float(p) > 0.5 else "-1") for label, _, p in rows)
    own = [f"{row[0]}\t{max(row[1:], key=float)}" for row in rows]
    assert run("predict", model, "test.svm", "--marginals").stdout.splitlines() == own


@pytest.mark.parametrize("data", ["train.svm", "three.svm"])
def test_a_support_vector_machine_has_no_probabilities(folder, data):
    run("train", "lr", data, "-o", "svm", "--loss", "hinge", "-q")
    assert fails("predict", "svm", data, "--probabilities").endswith("train with --loss log")
    assert "log-loss" not in run("evaluate", "svm", data).stdout


def test_fewer_features_than_the_model_are_padded(folder, model):
    Path("narrow.svm").write_text("0 1:1\n")
    assert run("predict", model, "narrow.svm").stdout == "1\n"


@pytest.mark.parametrize("verb", ["predict", "evaluate"])
def test_more_features_than_the_model_are_an_error_with_both_numbers(folder, model, verb):
    Path("wide.svm").write_text("1 1:1\n-1 9:1\n")
    expected = "wide.svm:2: index 9, expected at most 4 (all the model has; train with --features N for more)"
    assert fails(verb, model, "wide.svm") == expected


def test_the_number_of_features_can_be_given_to_train(folder):
    Path("wide.svm").write_text("1 1:1\n-1 9:1\n")
    assert run("train", "lr", "train.svm", "-o", "m", "--features", "9").exit_code == 0
    assert run("predict", "m", "wide.svm").exit_code == 0


def test_predict_many_classes(folder):
    run("train", "lr", "three.svm", "-o", "m", "-q")
    header, *lines = run("predict", "m", "three-test.svm", "--probabilities").stdout.splitlines()
    rows = [line.split("\t") for line in lines]
    assert header == "label\t0\t1\t2"
    X, _ = read_libsvm("three-test.svm")
    fitted = fenchel.load("m")
    assert [row[0] for row in rows] == [f"{label:.0f}" for label in fitted.predict(X)]
    np.testing.assert_allclose(
        [[float(p) for p in row[1:]] for row in rows], fitted.predict_proba(X), rtol=1e-5
    )


@pytest.mark.parametrize(("data", "test"), [("train.svm", "test.svm"), ("three.svm", "three-test.svm")])
def test_evaluate_prints_the_scores_of_scikit_learn(folder, data, test):
    from sklearn.metrics import log_loss, precision_recall_fscore_support

    run("train", "lr", data, "-o", "model", "-q")
    result = run("evaluate", "model", test)
    assert (result.exit_code, result.stderr) == (0, "")
    fitted = fenchel.load("model")
    X, y = read_libsvm(test)
    facts = dict(line.split()[:2] for line in result.stdout.splitlines()[:3])
    assert float(facts["accuracy"]) == pytest.approx(fitted.score(X, y), abs=1e-6)
    assert float(facts["log-loss"]) == pytest.approx(log_loss(y, fitted.predict_proba(X)), rel=1e-5)
    shown = [line.split() for line in result.stdout.splitlines()[-fitted.classes_.size :]]
    expected = np.transpose(precision_recall_fscore_support(y, fitted.predict(X)))
    np.testing.assert_allclose([[float(cell) for cell in row[1:]] for row in shown], expected, atol=1e-4)


def test_evaluate_names_a_label_the_model_does_not_know(folder, model):
    Path("odd.svm").write_text("1 1:1\n3 1:1\n")
    assert fails("evaluate", model, "odd.svm") == "odd.svm: label 3, but the model's are -1, 1"


@pytest.mark.parametrize("verb", ["predict", "evaluate", "inspect"])
def test_a_missing_or_foreign_model_is_named(folder, verb):
    data = [] if verb == "inspect" else ["test.svm"]
    assert fails(verb, "nowhere", *data) == "nowhere: no such model file"
    assert fails(verb, "train.svm", *data).startswith("train.svm: not a fenchel model, or a damaged one")


def test_inspect_shows_class_certificate_and_heaviest_features(folder, model):
    result = run("inspect", model, "--top", "2")
    assert (result.exit_code, result.stderr) == (0, "")
    fitted = fenchel.load(model)
    assert "LogisticRegression" in result.stdout
    assert str(fitted.certificate_) in result.stdout
    assert "C=1.0" in result.stdout
    heaviest = np.argsort(-np.abs(fitted.coef_[0]))[:2] + 1
    assert [int(line.split()[0]) for line in result.stdout.splitlines()[-2:]] == heaviest.tolist()


def test_inspect_shows_which_class_a_weight_is_of(folder):
    run("train", "lr", "three.svm", "-o", "m", "-q")
    result = run("inspect", "m", "--top", "3")
    w = fenchel.load("m").coef_
    assert "classes      0, 1, 2\n" in result.stdout
    shown = [line.split() for line in result.stdout.splitlines()[-3:]]
    for feature, weight, label in shown:
        assert float(weight) == pytest.approx(w[int(label), int(feature) - 1], rel=1e-5)
    assert abs(float(shown[0][1])) == pytest.approx(np.abs(w).max(), rel=1e-5)


@pytest.mark.parametrize("verb", ["predict", "evaluate"])
@pytest.mark.parametrize("option", [["--format", "tadm"], ["--explicit"], ["--section", "dev"]])
def test_options_of_event_files_have_no_meaning_here(folder, model, verb, option):
    said = misused(verb, model, "test.svm", *option)
    assert f"{option[0]} has no meaning for a LogisticRegression model" in said


def test_a_reader_that_leaves_ends_predict_quietly(folder, model):
    line = Path("test.svm").read_text().splitlines(True)[0]
    Path("long.svm").write_text(line * 50_000)
    command = [sys.executable, "-m", "fenchel", "predict", model, "long.svm"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline().strip() in {b"1", b"-1"}
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() in {0, 1}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_results_that_find_no_room_are_a_sentence(folder, model):
    command = [sys.executable, "-m", "fenchel", "predict", model, "test.svm"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=buffered)
    assert (done.returncode, done.stderr) == (1, "fenchel: no space left on device\n")
