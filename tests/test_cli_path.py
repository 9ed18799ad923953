"""fenchel path: the table, the best constant, models and traces."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import fenchel
from commands import fails, misused, run, write_classes, write_events
from fenchel.cli.path import constants, folds
from fenchel.io.libsvm import read_libsvm

STEPS = ("--from", "0.01", "--to", "10", "--steps", "4")
EVENTS = ("maxent", "train.events", "--format", "opennlp")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path)
    write_events(tmp_path)
    return tmp_path


def rows_of(result):
    """The rows of the table: lists of cells."""
    lines = result.stdout.splitlines()
    begin = next(k for k, line in enumerate(lines) if set(line.strip()) == {"─"})
    return [line.split() for line in lines[begin + 1 :] if line and not line.startswith("best")]


@pytest.mark.parametrize("data", ["train.svm", "three.svm"])
def test_a_path_goes_from_strong_to_weak_and_certifies_each_step(folder, data):
    result = run("path", "lr", data, *STEPS)
    assert result.exit_code == 0, result.stderr
    rows = rows_of(result)
    assert [row[0] for row in rows] == ["0.01", "0.1", "1", "10"]
    assert all(float(row[4]) <= 1e-3 and row[-1] == "converged" for row in rows)
    assert "accuracy" not in result.stdout and "best" not in result.stdout
    assert result.stderr.count("converged: objective") == 4


def test_the_ends_may_come_in_any_order_and_coincide(folder):
    there = run("path", "lr", "train.svm", *STEPS, "-q").stdout
    back = run("path", "lr", "train.svm", "--to", "0.01", "--from", "10", "--steps", "4", "-q").stdout
    assert [row.split()[0] for row in there.splitlines()[3:]] == [r.split()[0] for r in back.splitlines()[3:]]
    assert constants({"first": 2.0, "last": 2.0, "steps": 3}) == [2.0]


@pytest.mark.parametrize(("data", "test"), [("train.svm", "test.svm"), ("three.svm", "three-test.svm")])
@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_validation_names_the_best_constant_and_saves_its_model(folder, data, test, loss):
    options = ("--loss", loss, "--tol", "1e-4", "--max-passes", "10000")
    result = run("path", "lr", data, *STEPS, *options, "--valid", test, "-o", "best", "-q")
    assert (result.exit_code, result.stderr) == (0, "")
    accuracies = {row[0]: float(row[5]) for row in rows_of(result)}
    best = max(accuracies, key=accuracies.get)
    assert result.stdout.endswith(f"best  C = {best}, accuracy {accuracies[best]:.6g}\n")
    model = fenchel.load("best")
    assert float(best) == model.C
    assert model.score(*read_libsvm(test)) == pytest.approx(accuracies[best], abs=1e-6)
    assert model.certificate_.converged


def test_without_scores_the_last_model_is_saved(folder):
    assert run("path", "lr", "three.svm", *STEPS, "-o", "last", "-q", "--tol", "1e-10").exit_code == 0
    model = fenchel.load("last")
    expected = fenchel.LogisticRegression(C=10.0, tol=1e-10).fit(*read_libsvm("three.svm"))
    assert model.C == 10.0
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-3)


@pytest.mark.parametrize("kind", [("lr", "three.svm"), EVENTS])
def test_cross_validation_is_the_mean_over_folds(folder, kind):
    result = run("path", *kind, *STEPS, "--cv", "3", "--seed", "4", "-o", "best")
    assert result.exit_code == 0, result.stderr
    rows = rows_of(result)
    assert all(0.3 < float(row[5]) <= 1.0 and row[6] == "±" for row in rows)
    assert "fold 3 of 3" in result.stderr
    best = max(rows, key=lambda row: float(row[5]))
    assert f"best  C = {best[0]}, accuracy {best[5]}" in result.stdout
    assert float(best[0]) == fenchel.load("best").C


def test_a_fold_is_scored_by_the_model_of_the_others(folder):
    X, y = read_libsvm("three.svm")
    expected = [
        fenchel.LogisticRegression(C=0.5, tol=1e-6).fit(X[a], y[a]).score(X[b], y[b])
        for a, b in folds(y, 3, 0)
    ]
    result = run("path", "lr", "three.svm", "--from", "0.5", "--to", "0.5", "--cv", "3", "--tol", "1e-6")
    (row,) = rows_of(result)
    assert float(row[5]) == pytest.approx(np.mean(expected), abs=1e-6)
    assert float(row[7]) == pytest.approx(np.std(expected), abs=1e-4)


def test_folds_share_out_each_class():
    strata = np.repeat([0, 1, 2], [10, 5, 3])
    pairs = folds(strata, 3, seed=0)
    assert sorted(np.concatenate([test for _, test in pairs])) == list(range(18))
    for train, test in pairs:
        assert sorted([*train, *test]) == list(range(18))
        assert (np.bincount(strata[test], minlength=3) >= [3, 1, 1]).all()
    assert any((a != b).any() for (_, a), (_, b) in zip(pairs, folds(strata, 3, seed=1), strict=True))


def test_events_and_candidates_have_paths_too(folder):
    result = run("path", *EVENTS, *STEPS, "--valid", "test.events", "-o", "best", "--constant", "sigma2")
    assert result.exit_code == 0, result.stderr
    best = float(result.stdout.splitlines()[-1].split()[3].rstrip(","))
    model = fenchel.load("best")
    assert model.sigma2 == best and model.layout_ == "crossed"
    assert run("evaluate", "best", "test.events").exit_code == 0
    result = run("path", "maxent", "train.tadm", "--format", "tadm", *STEPS, "--cv", "2", "-q")
    assert result.exit_code == 0 and len(rows_of(result)) == 4


def test_traces_and_a_picture_are_written(folder):
    assert run("path", "lr", "train.svm", *STEPS, "--traces", "out").exit_code == 0
    names = ["C-0.01.jsonl", "C-0.1.jsonl", "C-1.jsonl", "C-10.jsonl", "path.png"]
    assert sorted(os.listdir("out")) == names
    headers = [json.loads(Path("out", name).read_text().splitlines()[0]) for name in names[:-1]]
    assert [header["C"] for header in headers] == [0.01, 0.1, 1.0, 10.0]


def test_a_constant_that_falls_short_is_a_warning_and_exit_code_1(folder):
    options = ("--solver", "lbfgs", "--max-passes", "3", "--tol", "1e-9", "-o", "m", "-q")
    result = run("path", "lr", "train.svm", *STEPS, *options)
    assert result.exit_code == 1
    assert "of 4 constants fell short of --tol 1e-09; to reach it, raise --max-passes" in result.stderr
    assert "stopped at the limit of passes" in result.stdout
    assert not fenchel.load("m").certificate_.converged


@pytest.mark.parametrize(("examples", "rows"), [(60, 1), (40, 4)])
def test_ctrl_c_keeps_what_was_done(folder, monkeypatch, examples, rows):
    """In the first model of all 60 examples, and in that of the 40 that a fold trains on."""
    from fenchel.solvers.lbfgs import LBFGS

    step = LBFGS.step

    def interrupt(self, problem, state):
        if problem.n == examples:
            raise KeyboardInterrupt
        return step(self, problem, state)

    monkeypatch.setattr("fenchel.cli.path.warm_up", lambda *_: None)
    monkeypatch.setattr(LBFGS, "step", interrupt)
    options = ("--solver", "lbfgs", "--tol", "1e-6", "--cv", "3", "-o", "m", "-q")
    result = run("path", "lr", "train.svm", *STEPS, *options)
    assert result.exit_code == 1
    assert len(rows_of(result)) == rows
    assert "interrupted" in result.stderr
    assert fenchel.load("m").C in (0.01, 0.1, 1.0, 10.0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--valid", "test.svm", "--cv", "3"), "--valid and --cv are two ways"),
        (("--cv", "1"), "'--cv'"),
        (("--from", "0"), "'--from'"),
        (("--to", "inf"), "inf is not a finite number"),
        (("--steps", "0"), "'--steps'"),
        (("-C", "1"), "No such option"),
        (("--traces", "train.svm"), "is a file, expected a folder"),
        (("--solver", "lbfgs", "--loss", "hinge", "-q"), "cannot train a binary model with the hinge loss"),
    ],
)
def test_wrong_options_are_refused(folder, arguments, sentence):
    assert sentence in misused("path", "lr", "train.svm", *arguments)


def test_files_and_folds_that_cannot_be_are_named(folder):
    assert "named twice" in fails("path", "lr", "train.svm", "-o", "train.svm")
    assert (
        fails("path", "lr", "train.svm", "--cv", "99", "-q") == "--cv 99 needs as many examples; there are 60"
    )
    Path("lone.svm").write_text("1 1:1\n1 1:2\n1 1:3\n2 1:4\n")
    assert "use a smaller --cv" in fails("path", "lr", "lone.svm", "--cv", "4", "-q")
