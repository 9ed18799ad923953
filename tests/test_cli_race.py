"""fenchel race: table, traces, plot, and what it refuses."""

import os
import sys
from pathlib import Path

import pytest

from commands import misused, run, write_classes
from fenchel.io.trace import read_trace


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path)
    return tmp_path


def test_race_prints_a_table_and_writes_traces_and_a_plot(folder):
    result = run("race", "lr", "train.svm", "--solvers", "cd-dual,lbfgs,newton", "--output", "race")
    assert result.exit_code == 0, result.stderr
    ends = {line.split()[0]: line.split()[-1] for line in result.stdout.splitlines()[-3:]}
    assert ends == dict.fromkeys(["cd-dual", "lbfgs", "newton"], "converged")
    assert sorted(os.listdir("race")) == [
        "cd-dual.jsonl",
        "lbfgs.jsonl",
        "newton.jsonl",
        "race.html",
        "race.png",
    ]
    assert read_trace("race/cd-dual.jsonl").solver == "cd-dual"
    assert "cd-dual converged: objective" in result.stderr


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_race_of_many_classes(folder, loss):
    arguments = ("--solvers", "cd-dual,sdca", "--loss", loss, "--class-weight", "balanced", "-q")
    result = run("race", "lr", "three.svm", *arguments, "--max-passes", "5000")
    assert result.exit_code == 0, result.stdout
    objectives = [float(line.split()[3]) for line in result.stdout.splitlines()[-2:]]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-3)


def test_race_without_matplotlib_says_how_to_get_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    result = run("race", "lr", "train.svm", "--solvers", "newton", "--output", "race")
    assert result.exit_code == 0, result.stderr
    assert "fenchel[report]" in result.stderr
    assert sorted(os.listdir("race")) == ["newton.jsonl", "race.html"]


def test_a_solver_that_fails_does_not_end_the_race(folder):
    Path("minus.svm").write_text(Path("train.svm").read_text().replace(" 1:", " 1:-"))
    result = run("race", "lr", "minus.svm", "--solvers", "gis,newton", "--class-weight", "balanced")
    assert result.exit_code == 1
    newton, gis = result.stdout.splitlines()[-2:]
    assert "converged" in newton
    assert "failed: " in gis


def test_race_exits_with_1_if_one_falls_short(folder):
    arguments = ("--solvers", "lbfgs,newton", "--max-passes", "2", "--tol", "1e-12")
    result = run("race", "lr", "train.svm", *arguments)
    assert result.exit_code == 1
    assert "stopped at the limit of passes" in result.stdout


def test_ctrl_c_ends_the_race_and_shows_who_ran(folder, monkeypatch):
    from fenchel.solvers.lbfgs import LBFGS

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(LBFGS, "step", interrupt)
    monkeypatch.setattr("fenchel.cli.race.warm_up", lambda *_: None)
    result = run("race", "lr", "train.svm", "--solvers", "newton,lbfgs,tron")
    assert result.exit_code == 1
    assert "interrupted" in result.stdout
    assert "tron" not in result.stdout


def test_race_without_a_regulariser_has_no_gap_but_runs(folder):
    arguments = ("--solvers", "newton", "-C", "inf", "--output", "race")
    result = run("race", "lr", "train.svm", *arguments)
    assert result.exit_code == 0, result.stderr
    assert "none" in result.stdout


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ("newton,cd-daul", "did you mean 'cd-dual'?"),
        (" , ", "no solver is named"),
        ("auto", "'auto' is a choice"),
    ],
)
def test_race_refuses_wrong_names(folder, names, sentence):
    assert sentence in misused("race", "lr", "train.svm", "--solvers", names)


@pytest.mark.parametrize(
    ("output", "sentence"), [("a/b", "there is no folder a"), ("train.svm", "is a file")]
)
def test_race_refuses_an_output_that_is_no_folder(folder, output, sentence):
    said = misused("race", "lr", "train.svm", "--solvers", "newton", "--output", output, "-q")
    assert sentence in said
