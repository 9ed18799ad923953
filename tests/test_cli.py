"""The command line: every verb, every error, exit codes, and what goes to stdout or stderr."""

import errno
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import fenchel
from fenchel.cli import COMMANDS, cli, kinds
from fenchel.cli.output import label_text
from fenchel.cli.progress import fraction_done
from fenchel.io.libsvm import read_libsvm
from fenchel.io.trace import read_trace
from fenchel.solvers import SOLVERS

HELP = [[verb] for verb in COMMANDS] + [[verb, kind] for verb in ("train", "race") for kind in kinds.KINDS]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of its own with train.svm and test.svm: two noisy classes, labels +1 and -1."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, n in (("train.svm", 60), ("test.svm", 30)):
        X = rng.random((n, 4)).round(3) + 0.001
        y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(n) > 0.0
        lines = [_line(label, row) for label, row in zip(y, X, strict=True)]
        (tmp_path / name).write_text("".join(lines))
    return tmp_path


def _line(positive, row):
    features = " ".join(f"{j}:{value:.3f}" for j, value in enumerate(row, start=1))
    return f"{'+1' if positive else '-1'} {features}\n"


def run(*arguments, **settings):
    """The finished command: exit_code, stdout, stderr."""
    return CliRunner().invoke(cli, list(map(str, arguments)), prog_name="fenchel", **settings)


def fails(*arguments, code=2, **settings):
    """The one sentence that a command which must fail says."""
    result = run(*arguments, **settings)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("fenchel: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("fenchel: ").rstrip()


@pytest.fixture
def model(folder):
    assert run("train", "lr", "train.svm", "-o", "model", "-q").exit_code == 0
    return "model"


# ---- train


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
def test_trace_has_a_row_per_check_and_the_validation_accuracy(folder, scaling):
    arguments = ["-o", "m", "--valid", "test.svm", "--trace", "t.jsonl", "--solver", "cd-dual", *scaling]
    assert run("train", "lr", "train.svm", *arguments).exit_code == 0
    header = json.loads(Path("t.jsonl").read_text("utf-8").splitlines()[0])
    assert (header["seed"], header["C"], header["tol"]) == (0, 1.0, 1e-3)
    assert header["certificate"]["status"] == "CONVERGED"
    trace = read_trace("t.jsonl")
    assert np.diff(trace.column("passes")).max() == 1.0
    X, y = read_libsvm("test.svm")
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


# ---- train: errors


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "bad.svm: no examples found"),
        ("1 1:2\n-1 1:x\n", "bad.svm:2: value 'x' is not a number"),
        ("1 1:2\n1 1:1\n", "bad.svm: all labels are 1, expected two classes"),
        ("1 1:2\n2 1:1\n3 1:1\n", "bad.svm: 3 classes (1, 2, 3), but lr takes two"),
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
        ((".", "-o", "m"), ".: is a directory"),
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
        "fenchel.cli.progress._number", lambda trace, tol: moves.append(trace[-1].passes) or ""
    )
    assert run("train", "lr", "train.svm", "-o", "m", "--solver", "cd-dual").exit_code == 0
    assert moves and moves == sorted(moves)
    assert fenchel.load("m").certificate_.converged


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
    assert "GiB, but 0.0 GiB are available" in result.stderr


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
    result = run("train", "lr", "train.svm", "-o", "m", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


def test_only_one_file_can_be_standard_input(folder):
    result = run("train", "lr", "-", "-o", "m", "--valid", "-")
    assert result.exit_code == 2
    assert "only one of DATA and --valid" in result.stderr


def test_a_mistyped_command_is_answered_by_the_nearest(folder):
    result = run("tran", "lr", "train.svm")
    assert result.exit_code == 2
    assert "did you mean 'train'?" in result.stderr


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


# ---- predict, evaluate, inspect


def test_predict_prints_a_label_per_example(folder, model):
    result = run("predict", model, "test.svm")
    X, _ = read_libsvm("test.svm")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.split("\n") == [f"{label:.0f}" for label in fenchel.load(model).predict(X)] + [""]


def test_predict_probabilities(folder, model):
    rows = [
        line.split("\t") for line in run("predict", model, "test.svm", "--probabilities").stdout.splitlines()
    ]
    X, _ = read_libsvm("test.svm")
    np.testing.assert_allclose(
        [[float(p) for p in row[1:]] for row in rows], fenchel.load(model).predict_proba(X), rtol=1e-5
    )
    assert all(label == ("1" if float(p) > 0.5 else "-1") for label, _, p in rows)


def test_a_support_vector_machine_has_no_probabilities(folder):
    run("train", "lr", "train.svm", "-o", "svm", "--loss", "hinge", "-q")
    assert fails("predict", "svm", "test.svm", "--probabilities").endswith("train with --loss log")
    assert "log-loss" not in run("evaluate", "svm", "test.svm").stdout


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


def test_evaluate_prints_the_scores_of_scikit_learn(folder, model):
    from sklearn.metrics import log_loss, precision_recall_fscore_support

    result = run("evaluate", model, "test.svm")
    assert (result.exit_code, result.stderr) == (0, "")
    fitted = fenchel.load(model)
    X, y = read_libsvm("test.svm")
    facts = dict(line.split()[:2] for line in result.stdout.splitlines()[:3])
    assert float(facts["accuracy"]) == pytest.approx(fitted.score(X, y), abs=1e-6)
    assert float(facts["log-loss"]) == pytest.approx(log_loss(y, fitted.predict_proba(X)), rel=1e-5)
    shown = [line.split() for line in result.stdout.splitlines()[-2:]]
    expected = np.transpose(precision_recall_fscore_support(y, fitted.predict(X)))
    np.testing.assert_allclose([[float(cell) for cell in row[1:]] for row in shown], expected, atol=1e-4)


def test_evaluate_names_a_label_the_model_does_not_know(folder, model):
    Path("odd.svm").write_text("1 1:1\n3 1:1\n")
    assert fails("evaluate", model, "odd.svm") == "odd.svm: label 3, but the model's are -1 and 1"


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


# ---- race, solvers


def test_race_prints_a_table_and_writes_traces_and_a_plot(folder):
    result = run("race", "lr", "train.svm", "--solvers", "cd-dual,lbfgs,newton", "--output", "race")
    assert result.exit_code == 0, result.stderr
    ends = {line.split()[0]: line.split()[-1] for line in result.stdout.splitlines()[-3:]}
    assert ends == dict.fromkeys(["cd-dual", "lbfgs", "newton"], "converged")
    assert sorted(os.listdir("race")) == ["cd-dual.jsonl", "lbfgs.jsonl", "newton.jsonl", "race.png"]
    assert read_trace("race/cd-dual.jsonl").solver == "cd-dual"
    assert "cd-dual converged: objective" in result.stderr


def test_race_without_matplotlib_says_how_to_get_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    result = run("race", "lr", "train.svm", "--solvers", "newton", "--output", "race")
    assert result.exit_code == 0, result.stderr
    assert "fenchel[report]" in result.stderr
    assert os.listdir("race") == ["newton.jsonl"]


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
    monkeypatch.setattr("fenchel.cli.race._warm_up", lambda *_: None)
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
    result = run("race", "lr", "train.svm", "--solvers", names)
    assert result.exit_code == 2
    assert sentence in result.stderr


@pytest.mark.parametrize(
    ("output", "sentence"), [("a/b", "there is no folder a"), ("train.svm", "is a file")]
)
def test_race_refuses_an_output_that_is_no_folder(folder, output, sentence):
    result = run("race", "lr", "train.svm", "--solvers", "newton", "--output", output, "-q")
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_solvers_lists_them_all_with_what_they_can_do():
    result = run("solvers")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = {line.split()[0]: line.split() for line in result.stdout.splitlines()[-len(SOLVERS) :]}
    assert list(rows) == list(SOLVERS)
    assert rows["cd-dual"][1:3] == ["yes", "yes"]
    assert rows["lbfgs"][1:3] == ["yes", "-"]
    assert "SM(variant='g1')" in rows["sm-g1"]


# ---- help, version, processes


@pytest.mark.parametrize("arguments", [[], *HELP], ids=" ".join)
def test_help_has_an_example_and_explains_each_option(arguments):
    result = run(*arguments, "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"fenchel {' '.join(arguments)}".rstrip() in result.stdout.partition("Example:")[2]
    command = cli
    for name in arguments:
        command = command.get_command(None, name)
    assert all(option.help for option in command.params if option.param_type_name == "option")


def test_help_imports_nothing_heavy():
    script = f"""
import sys
from click.testing import CliRunner
from fenchel.cli import cli
for arguments in {[[], *HELP]!r}:
    assert CliRunner().invoke(cli, [*arguments, "--help"]).exit_code == 0
heavy = {{"numba", "sklearn", "scipy", "numpy", "rich", "matplotlib"}} & set(sys.modules)
sys.exit(f"imported {{heavy}}" if heavy else 0)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_python_m_fenchel_tells_the_version():
    command = [sys.executable, "-m", "fenchel", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"fenchel {fenchel.__version__}\n"


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
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "fenchel: no space left on device\n")


@pytest.mark.parametrize(
    ("label", "text"), [(1.0, "1"), (-1.0, "-1"), (-0.0, "0"), (2.5, "2.5"), (np.float64(3), "3")]
)
def test_labels_are_printed_as_they_stood(label, text):
    assert label_text(label) == text


@pytest.mark.parametrize(
    ("distances", "tol", "done"),
    [
        ([1.0, 0.1], 1e-2, 0.5),
        ([1.0, 0.1, 0.5], 1e-2, 0.5),
        ([1.0, 1e-3], 1e-2, 1.0),
        ([np.inf, 1.0, 0.1], 1e-2, 0.5),
        ([np.inf], 1e-2, 0.0),
        ([1.0], 0.0, 0.0),
    ],
)
def test_the_bar_moves_with_the_logarithm_of_the_gap(distances, tol, done):
    assert fraction_done(distances, tol) == pytest.approx(done)
