"""What programs read, what a shell completes, weights of classes, files without labels or of another kind."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import fenchel
from commands import fails, misused, run, write_classes, write_events
from fenchel.cli import progress, recognise
from fenchel.io.libsvm import read_libsvm
from fenchel.metrics import accuracy
from fenchel.trace import Row, Trace


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path)
    write_events(tmp_path)
    (tmp_path / "words.txt").write_text("the D\ncat N\n\na D\ndog N\n")
    return tmp_path


@pytest.fixture
def model(folder):
    assert run("train", "lr", "train.svm", "-o", "model", "-q").exit_code == 0
    return "model"


@pytest.fixture
def events(folder):
    result = run("train", "maxent", "train.events", "--format", "opennlp", "-o", "events", "-q")
    assert result.exit_code == 0, result.output
    return "events"


def told(*arguments, code=0):
    """The one object that a command prints."""
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.output
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


# ---- json


def test_train_tells_model_data_solver_and_certificate(folder):
    found = told("train", "lr", "train.svm", "-o", "m", "-q", "--valid", "test.svm")
    assert found["model"] == "m" and found["data"] == {"file": "train.svm", "examples": 60}
    certificate = fenchel.load("m").certificate_
    assert found["certificate"]["relative_gap"] == certificate.relative_gap
    assert found["certificate"]["converged"] is True and found["valid"]["measure"] == "accuracy"
    assert told("train", "lr", "train.svm", "-o", "n", "-q", "--init", "m")["init"]["shared"]["class"] == [
        2,
        2,
    ]
    short = told("train", "lr", "train.svm", "-o", "m", "-C", "inf", "--max-passes", "1", code=1)
    assert short["certificate"]["gap"] is None and short["certificate"]["converged"] is False


def test_evaluate_and_inspect_tell_numbers(folder, model):
    X, y = read_libsvm("test.svm")
    fitted, found = fenchel.load(model), told("evaluate", model, "test.svm")
    assert found["accuracy"] == accuracy(y, fitted.predict(X)) and found["examples"] == 30
    assert [row["class"] for row in found["classes"]] == ["-1", "1"] and found["proven"]["of"] == 30
    found = told("inspect", model, "--top", "1")
    assert found["class"] == "LogisticRegression" and found["settings"]["C"] == 1.0
    assert found["features"] == {"count": 4, "used": 4} and found["intercept"] == fitted.intercept_.tolist()
    assert abs(found["weights"][0]["weight"]) == np.abs(fitted.coef_).max()


def test_race_cv_and_path_tell_numbers(folder):
    found = told("race", "lr", "train.svm", "--solvers", "lbfgs,cd-dual", "-q")
    assert {run["solver"] for run in found["runs"]} == {"lbfgs", "cd-dual"}
    assert all(run["end"] == "converged" and run["relative_gap"] <= 1e-3 for run in found["runs"])
    found = told("cv", "lr", "train.svm", "-k", "3", "-q")
    assert found["mean"] == pytest.approx(np.mean([fold["accuracy"] for fold in found["folds"]]))
    found = told("path", "lr", "train.svm", "--steps", "2", "--valid", "test.svm", "-q")
    assert [row["c"] for row in found["constants"]] == [0.001, 100.0]
    assert found["best"]["c"] in (0.001, 100.0)


def test_predict_tells_a_line_per_example(folder, model, events):
    X, _ = read_libsvm("test.svm")
    found = [json.loads(line) for line in run("predict", model, "test.svm", "--json").stdout.splitlines()]
    assert [float(one["label"]) for one in found] == fenchel.load(model).predict(X).tolist()
    lines = run("predict", events, "test.events", "--json", "--probabilities").stdout.splitlines()
    for one in map(json.loads, lines):
        assert sum(one["probabilities"].values()) == pytest.approx(1.0)
        assert one["label"] == max(one["probabilities"], key=one["probabilities"].get)


def test_dump_gives_back_every_weight(folder, model):
    run("dump", model, "-o", "model.txt")
    lines = (folder / "model.txt").read_text().splitlines()
    found = dict(line.rsplit("\t", 1) for line in lines if not line.startswith("#"))
    fitted = fenchel.load(model)
    assert float(found.pop("intercept\t1")) == fitted.intercept_[0]
    assert [float(found[f"feature\t{j}\t1"]) for j in range(1, 5)] == fitted.coef_[0].tolist()
    assert lines[0] == "# LogisticRegression" and lines[2] == "# 5 weights"


# ---- weights of classes, files without labels, nothing at all


def test_classes_have_weights(folder):
    options = ("--class-weight", "1=2.5", "--class-weight", "-1=0.5")
    assert run("train", "lr", "train.svm", "-o", "m", *options).exit_code == 0
    X, y = read_libsvm("train.svm")
    expected = fenchel.LogisticRegression(class_weight={1.0: 2.5, -1.0: 0.5}, random_state=0).fit(X, y)
    np.testing.assert_array_equal(fenchel.load("m").coef_, expected.coef_)
    given = ("train", "maxent", "train.events", "--format", "opennlp", "-o", "m")
    assert run(*given, "--class-weight", "law=3").exit_code == 0
    assert fenchel.load("m").class_weight == {"law": 3.0}
    assert "expected LABEL=WEIGHT" in misused(*given, "--class-weight", "law")
    assert "no label of a libsvm file" in misused(
        "train", "lr", "train.svm", "-o", "m", "--class-weight", "a=1"
    )
    of_candidates = ("train", "maxent", "train.tadm", "--format", "tadm", "-o", "m", "-q")
    assert fails(*of_candidates, *options).startswith("--class-weight has no meaning for labels that are")


def test_a_weight_of_a_class_is_that_of_its_events():
    events, y = [["a"], ["b"], ["a", "b"], ["c"]], ["x", "y", "y", "x"]
    weighted = fenchel.MaxEnt(class_weight={"x": 3.0}, tol=1e-9).fit(events, y)
    plain = fenchel.MaxEnt(tol=1e-9).fit(events, y, sample_weight=[3.0, 1.0, 1.0, 3.0])
    np.testing.assert_allclose(weighted.coef_, plain.coef_, atol=1e-6)


def test_lines_without_labels_are_read_when_told(folder, model, events):
    for name, fitted in (("test.svm", model), ("test.events", events)):
        lines = (folder / name).read_text().splitlines()
        (folder / "bare").write_text("".join(f"{line.split(' ', 1)[1]}\n" for line in lines))
        bare = run("predict", fitted, "bare", "--unlabelled")
        assert (bare.exit_code, bare.stderr) == (0, "")
        assert bare.stdout == run("predict", fitted, name).stdout
    warned = run("predict", events, "bare").stderr
    assert "40 of 40 lines begin with a feature of the model, taken as the label" in warned


@pytest.mark.parametrize("text", ["", "\n"])
def test_nothing_to_predict_is_nothing_predicted(folder, model, events, text):
    for fitted in (model, events):
        result = run("predict", fitted, "-", input=text)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


# ---- data of another kind


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("crf", "train.svm"), "train.svm: is no data for `crf`; it looks like a libsvm file, which `lr`"),
        (("tagger", "train.svm"), "train.svm: is no data for `tagger`; it looks like a libsvm file"),
        (("parser", "train.svm"), "train.svm: is no data for `parser`; it looks like a libsvm file"),
        (("lr", "words.txt"), "it looks like a column file, which `crf` or `tagger` reads"),
        (("lr", "model"), "model: is no data for `lr`; it looks like a model"),
        (("crf", "run"), "run: is no data for `crf`; it looks like a trace of a run"),
    ],
)
def test_a_file_of_another_kind_is_told_apart(folder, arguments, sentence):
    run("train", "lr", "train.svm", "-o", "model", "--trace", "run", "-q")
    assert sentence in fails("train", *arguments, "-o", "new")


def test_events_without_labels_are_no_training_data(folder):
    lines = (folder / "train.events").read_text().splitlines()
    (folder / "bare").write_text("".join(f"id={k} {line}\n" for k, line in enumerate(lines)))
    found = fails("train", "maxent", "bare", "--format", "opennlp", "-o", "m")
    assert found.startswith("each of the 90 events has a label of its own")


def test_what_a_file_looks_like(folder):
    looks = {
        "1 3:1 5:2.5\n-1 2:1\n": "libsvm",
        "1\tw=a\tw=b\n\n2\tw=c\n": None,
        "the D\n\na D\n": "columns",
        "the\tD\t2\ncat\tN\t0\n": "heads",
        "label one two\nother three\n": None,
        "": None,
    }
    for text, look in looks.items():
        (folder / "file").write_text(text)
        assert recognise.look_of("file") == look, text
    assert recognise.look_of("-") is None


# ---- completion


def completed(folder, line):
    """What bash offers at the end of a line, after sourcing the script; fenchel is on the PATH."""
    (folder / "fenchel").write_text(f'#!/bin/sh\nexec {sys.executable} -m fenchel "$@"\n')
    (folder / "fenchel").chmod(0o755)
    script = f"""
source <(fenchel completion bash)
COMP_WORDS=({shlex.join(line.split(" "))}); COMP_CWORD={line.count(" ")}
_fenchel_completion fenchel; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment["PATH"] = f"{folder}{os.pathsep}{environment['PATH']}"
    found = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, env=environment, check=True)
    return found.stdout.decode().split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("fenchel ev", ["evaluate"]),
        ("fenchel train ", ["lr", "maxent", "tagger", "crf", "parser"]),
        ("fenchel train lr x --loss h", ["hinge"]),
        ("fenchel race crf x --solvers lbfgs,eg-", ["lbfgs,eg-gap", "lbfgs,eg-batch"]),
    ],
)
def test_bash_completes_commands_kinds_options_and_solvers(tmp_path, line, offered):
    assert completed(tmp_path, line) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell):
    script = run("completion", shell).stdout
    assert f"_FENCHEL_COMPLETE={shell}_complete" in script


# ---- how long it will take


def trace_of(*points):
    rows = [Row(k, 0, 0, seconds, 1.0, 1.0 - gap, gap) for k, (seconds, gap) in enumerate(points)]
    return Trace("eg", "", rows)


@pytest.mark.parametrize(
    ("points", "left"),
    [
        (((1.0, 1e-1), (2.0, 1e-2)), 1.0),
        (((1.0, 1e-1), (2.0, 1e-1), (4.0, 1e-2)), 2.0),
        (((1.0, 1e-1),), np.inf),
        (((1.0, 1e-2), (2.0, 1e-1)), np.inf),
        (((1.0, 1e-1), (2.0, 1e-4)), 0.0),
    ],
)
def test_the_time_left_goes_by_the_slope_of_the_gap(points, left):
    assert progress.seconds_left(trace_of(*points), 1e-3) == pytest.approx(left)


def test_in_a_pipe_lines_come_now_and_then(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 6.0, 7.0, 13.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    tell = progress._Lines(1e-3)
    for _ in range(4):
        tell(trace_of((1.0, 1e-1), (2.0, 1e-2)))
    line = "eg: relative gap 0.01 → 0.001, 1 passes, 2 s, about 1 s left\n"
    assert capsys.readouterr().err == 2 * line


def test_in_a_pipe_lines_come_before_the_first_check(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 60.0, 61.0, 130.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    tell = progress._Lines(1e-3)
    for passes, estimate in ((1.0, 0.5), (2.0, 0.25), (3.0, 0.1), (4.0, np.nan)):
        tell.stepped(passes, estimate)
    told = "training: gap about 0.25 → 0.001, 2 passes\ntraining: 4 passes\n"
    assert capsys.readouterr().err == told


def test_lines_between_checks_name_the_solver(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 60.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    tell = progress._Lines(1e-3)
    tell(trace_of((1.0, 1e-1)))
    tell.stepped(2.0, 0.25)
    assert capsys.readouterr().err == "eg: gap about 0.25 → 0.001, 2 passes\n"


def test_lines_before_the_first_check_name_the_solver_that_was_asked_for(folder, capsys, monkeypatch):
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    told = run("train", "lr", "train.svm", "-o", "model", "--solver", "cd-dual", "--tol", 1e-9).stderr
    assert "cd-dual: gap about" in told and "training:" not in told


def test_the_bar_takes_a_line_of_80_columns(monkeypatch, capsys):
    monkeypatch.setattr(progress, "bar_is_shown", lambda quiet: True)
    monkeypatch.setenv("COLUMNS", "80")
    trace = trace_of((1.0, 1e-1), (30_000.0, 1e-2))
    trace.rows[-1] = replace(trace[-1], bytes=1e9)
    trace.company = "16 workers, the slowest 1.9 times the median"
    with progress.gap_bar(1e-12, quiet=False) as (bar,):
        bar(trace)
        bar.stepped(1234.0, 0.25)
        shown = "".join(segment.text for segment in bar.progress.console.render(bar.progress))
        assert shown.count("\n") == 1 and len(shown) <= 81
        assert "gap about 0.25 → 1e-12, 1234 passes, 16 workers" in shown and "h left" in shown
