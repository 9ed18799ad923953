"""fenchel train lr: what it says, writes and refuses."""

import errno
import gzip
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import fenchel
from commands import fails, misused, run, write_classes
from fenchel.cli import progress
from fenchel.io.libsvm import read_libsvm
from fenchel.io.trace import read_trace


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder):
    assert run("train", "lr", "train.svm", "-o", "model", "-q").exit_code == 0
    return "model"


def test_train_tells_on_stderr_what_it_read_and_what_is_proven(folder):
    result = run("train", "lr", "train.svm", "-o", "model", "--valid", "test.svm")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "train.svm: 60 examples, 4 features, 240 non-zeros, read in" in result.stderr
    assert "converged: objective" in result.stderr
    model = fenchel.load("model")
    X, y = read_libsvm("test.svm")
    assert f"accuracy {np.mean(model.predict(X) == y):.6g} on test.svm" in result.stderr


def test_train_is_the_estimator(folder):
    options = ["-C", "2", "--tol", "1e-8", "--intercept-scaling", "2", "--class-weight", "balanced"]
    run("train", "lr", "train.svm", "-o", "model", "--solver", "cd-dual", "--seed", "5", *options)
    X, y = read_libsvm("train.svm")
    settings = dict(C=2.0, tol=1e-8, intercept_scaling=2.0, class_weight="balanced")
    expected = fenchel.LogisticRegression(solver="cd-dual", random_state=5, **settings).fit(X, y)
    np.testing.assert_array_equal(fenchel.load("model").coef_, expected.coef_)
    np.testing.assert_array_equal(fenchel.load("model").intercept_, expected.intercept_)


def test_train_many_classes_is_the_estimator(folder):
    options = ["-C", "2", "--tol", "1e-8", "--class-weight", "balanced"]
    assert run("train", "lr", "three.svm", "-o", "m", "--solver", "cd-dual", *options).exit_code == 0
    settings = dict(C=2.0, tol=1e-8, class_weight="balanced", solver="cd-dual", random_state=0)
    expected = fenchel.LogisticRegression(**settings).fit(*read_libsvm("three.svm"))
    np.testing.assert_array_equal(fenchel.load("m").coef_, expected.coef_)


def test_train_hinge_without_intercept(folder):
    assert run("train", "lr", "train.svm", "-o", "m", "--loss", "hinge", "--no-intercept").exit_code == 0
    model = fenchel.load("m")
    assert type(model).__name__ == "LinearSVC"
    assert model.intercept_ == 0.0


def test_quiet_says_nothing(folder):
    result = run("train", "lr", "train.svm", "-o", "model", "--valid", "test.svm", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_standard_input_and_gzip_give_the_same_model(folder, model):
    text = Path("train.svm").read_bytes()
    Path("train.svm.gz").write_bytes(gzip.compress(text))
    assert run("train", "lr", "-", "-o", "piped", input=text).exit_code == 0
    assert run("train", "lr", "train.svm.gz", "-o", "zipped").exit_code == 0
    for other in ("piped", "zipped"):
        np.testing.assert_array_equal(fenchel.load(other).coef_, fenchel.load(model).coef_)


@pytest.mark.parametrize("scaling", [[], ["--intercept-scaling", "3"], ["--loss", "hinge"]])
@pytest.mark.parametrize(("data", "test"), [("train.svm", "test.svm"), ("three.svm", "three-test.svm")])
def test_trace_has_a_row_per_check_and_the_validation_accuracy(folder, data, test, scaling):
    arguments = ["-o", "m", "--valid", test, "--trace", "t.jsonl", "--solver", "cd-dual", *scaling]
    assert run("train", "lr", data, *arguments).exit_code == 0
    header = json.loads(Path("t.jsonl").read_text("utf-8").splitlines()[0])
    assert (header["seed"], header["C"], header["tol"]) == (0, 1.0, 1e-3)
    assert header["certificate"]["status"] == "CONVERGED"
    trace = read_trace("t.jsonl")
    assert np.diff(trace.column("passes")).max() < 2.5  # a check a pass, and a step is up to one and a half
    X, y = read_libsvm(test)
    assert trace[-1].validation == np.mean(fenchel.load("m").predict(X) == y)


def test_validation_data_of_one_class_are_scored_right(folder):
    lines = [line for line in Path("test.svm").read_text().splitlines(True) if line[0] == "-"]
    Path("negative.svm").write_text("".join(lines))
    run("train", "lr", "train.svm", "-o", "m", "--valid", "negative.svm", "--trace", "t.jsonl")
    X, y = read_libsvm("negative.svm")
    assert read_trace("t.jsonl")[-1].validation == np.mean(fenchel.load("m").predict(X) == y)


def test_not_converged_saves_the_model_warns_and_exits_with_1(folder):
    arguments = ("--solver", "lbfgs", "--tol", "1e-12", "--max-passes", "2", "--quiet")
    result = run("train", "lr", "train.svm", "-o", "model", *arguments)
    assert result.exit_code == 1
    assert "fenchel: warning: lbfgs stopped at the limit of passes: objective" in result.stderr
    assert "to reach --tol 1e-12, raise --max-passes" in result.stderr
    assert not fenchel.load("model").certificate_.converged


def test_interrupted_training_saves_the_best_model_so_far(folder, monkeypatch):
    from fenchel.solvers.lbfgs import LBFGS

    step, steps = LBFGS.step, []

    def interrupt(self, problem, state):
        steps.append(1)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return step(self, problem, state)

    monkeypatch.setattr(LBFGS, "step", interrupt)
    result = run("train", "lr", "train.svm", "-o", "model", "--solver", "lbfgs", "--tol", "1e-12")
    assert result.exit_code == 1
    assert "lbfgs interrupted: objective" in result.stderr
    assert "model holds the best model so far" in result.stderr
    assert fenchel.load("model").certificate_.status.name == "INTERRUPTED"


def test_interrupted_reading_ends_in_a_sentence(folder, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("fenchel.io.libsvm.read_libsvm", interrupt)
    assert fails("train", "lr", "train.svm", "-o", "model", code=1) == "interrupted"


def test_an_existing_model_is_replaced_and_nothing_else_is_left(folder, model):
    before = set(os.listdir())
    assert run("train", "lr", "train.svm", "-o", model, "-C", "0.1").exit_code == 0
    assert fenchel.load(model).C == 0.1
    assert set(os.listdir()) == before


# ---- errors


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "bad.svm: no examples found"),
        ("1 1:2\n-1 1:x\n", "bad.svm:2: value 'x' is not a number"),
        ("1 1:2\n1 1:1\n", "bad.svm: all labels are 1, expected two classes or more"),
        ("1 0:2\n2 1:1\n", "bad.svm:1: index 0, but indices start at 1 (use --zero-based)"),
    ],
)
def test_bad_data_are_named(folder, text, sentence):
    Path("bad.svm").write_text(text)
    result = run("train", "lr", "bad.svm", "-o", "model", "-q")
    assert (result.exit_code, result.stderr) == (2, f"fenchel: {sentence}\n")
    assert not Path("model").exists()


def test_zero_based_files_are_read_when_told(folder):
    Path("zero.svm").write_text("1 0:2\n-1 0:1 3:1\n")
    assert run("train", "lr", "zero.svm", "-o", "model", "--zero-based").exit_code == 0
    assert fenchel.load("model").n_features_in_ == 4
    assert run("predict", "model", "zero.svm", "--zero-based").stdout.split() == ["1", "-1"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("missing.svm", "-o", "m"), "missing.svm: no such file or directory"),
        ((".", "-o", "m"), ".: a folder without shards (no manifest.json); `fenchel shard` makes them"),
        (("train.svm", "-o", "no/such/m"), "no/such/m: cannot be written, there is no folder no/such"),
        (("train.svm", "-o", "."), ".: is a folder, expected the name of a file to write"),
        (("train.svm", "-o", "/dev/null"), "/dev/null: is no regular file, and would be replaced by one"),
        (("train.svm", "-o", "m", "--trace", "no/t"), "no/t: cannot be written, there is no folder no"),
    ],
)
def test_files_that_cannot_be_used_are_named(folder, arguments, sentence):
    assert fails("train", "lr", *arguments) == sentence


def test_a_folder_without_permission_is_named(folder, monkeypatch):
    os.mkdir("closed")
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != "closed")  # root may write everywhere
    assert fails("train", "lr", "train.svm", "-o", "closed/m").endswith(
        "permission denied in the folder closed"
    )


def test_a_file_without_permission_is_named(folder, monkeypatch):
    def closed(path, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr("fenchel.io.libsvm.read_libsvm", closed)
    assert fails("train", "lr", "train.svm", "-o", "model") == "train.svm: permission denied"


def test_the_bar_of_a_terminal_moves_at_every_check(folder, monkeypatch):
    moves = []
    monkeypatch.setattr("fenchel.cli.progress.bar_is_shown", lambda quiet: True)
    monkeypatch.setattr(
        "fenchel.cli.progress._Bar._show", lambda bar, distance, passes, **more: moves.append(passes)
    )
    assert run("train", "lr", "train.svm", "-o", "m", "--solver", "cd-dual").exit_code == 0
    assert moves and moves == sorted(moves)
    assert fenchel.load("m").certificate_.converged


def test_the_bar_says_how_long_compiling_takes(monkeypatch):
    shown = []
    monkeypatch.setattr("fenchel.cli.progress.bar_is_shown", lambda quiet: True)
    monkeypatch.setattr(
        "rich.progress.Progress.update", lambda bar, task, description, **more: shown.append(description)
    )
    with progress.gap_bar(1e-3, quiet=False, compiling=15) as (bar,):
        bar.compiling(True, 4.2, 3)
        bar.compiling(True, 16.0, 9)  # a slow machine: no promise that was broken
        bar.compiling(False, 16.1, 9)
    words = "compiling kernels, once on this machine: "
    assert shown == [f"{words}4 s so far, usually under 15", f"{words}16 s so far", "training"]


def test_reading_is_shown_in_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("fenchel.cli.progress.bar_is_shown", lambda quiet: not quiet)
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    with progress.reading("train.svm", quiet=False):
        pass
    assert "reading train.svm" in capsys.readouterr().err
    with progress.reading("train.svm", quiet=True):
        pass
    assert not capsys.readouterr().err


def test_a_full_disk_is_a_sentence_and_exit_code_1(folder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    sentence = fails("train", "lr", "train.svm", "-o", "model", "-q", code=1)
    assert sentence == "model: cannot be written, no space left on device"


def test_a_solver_that_cannot_train_this_is_refused(folder):
    result = run("train", "lr", "train.svm", "-o", "m", "--loss", "hinge", "--solver", "lbfgs", "-q")
    assert result.exit_code == 2
    assert "fenchel: solver 'lbfgs' cannot train a binary model with the hinge loss" in result.stderr


@pytest.mark.parametrize("arguments", [("-o", "train.svm"), ("-o", "m", "--trace", "m")])
def test_no_file_is_written_over_another_of_the_same_call(folder, arguments):
    before = Path("train.svm").read_bytes()
    assert "named twice" in fails("train", "lr", "train.svm", *arguments)
    assert Path("train.svm").read_bytes() == before


def test_too_little_memory_is_a_sentence(folder, monkeypatch):
    monkeypatch.setattr("fenchel._memory.available_bytes", lambda: 0)
    result = run("train", "lr", "train.svm", "-o", "m", "--solver", "newton", "-q")
    assert result.exit_code == 2
    assert " bytes, but 0 bytes are available; " in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--solver", "cd-daul"), "did you mean 'cd-dual'?"),
        (("-C", "0"), "'-C'"),
        (("--tol", "-1"), "'--tol'"),
        (("--loss", "square"), "'--loss'"),
        (("--no-intercept", "--intercept-scaling", "1"), "has no meaning with --no-intercept"),
        (("--sovler", "cd-dual"), "No such option"),
    ],
)
def test_wrong_options_are_usage_errors(folder, arguments, sentence):
    assert sentence in misused("train", "lr", "train.svm", "-o", "m", *arguments)


def test_only_one_file_can_be_standard_input(folder):
    assert "only one of DATA and --valid" in misused("train", "lr", "-", "-o", "m", "--valid", "-")


def test_a_mistyped_command_is_answered_by_the_nearest(folder):
    assert "did you mean 'train'?" in misused("tran", "lr", "train.svm")


@pytest.mark.parametrize("where", ["before", "after"])
def test_debug_shows_the_traceback(folder, where):
    arguments = ["train", "lr", "missing.svm", "-o", "m"]
    result = run(*(["--debug", *arguments] if where == "before" else [*arguments, "--debug"]))
    assert isinstance(result.exception, FileNotFoundError)


def test_an_unexpected_error_is_a_sentence_too(folder, monkeypatch):
    def broken(*_, **__):
        raise ArithmeticError("the dual exceeds the primal")

    monkeypatch.setattr("fenchel.io.libsvm.read_libsvm", broken)
    sentence = fails("train", "lr", "train.svm", "-o", "m", code=1)
    assert sentence.startswith("internal error, please report it (ArithmeticError: the dual")


@pytest.mark.filterwarnings("always")
def test_a_warning_of_training_is_a_line(folder, monkeypatch):
    keep = fenchel.LogisticRegression.set_weights

    def warning(*arguments):
        warnings.warn("something is missing", RuntimeWarning, stacklevel=1)
        return keep(*arguments)

    monkeypatch.setattr(fenchel.LogisticRegression, "set_weights", warning)
    told = run("train", "lr", "train.svm", "-o", "m", "-q")
    assert told.exit_code == 0 and told.stderr == "fenchel: warning: something is missing\n"
