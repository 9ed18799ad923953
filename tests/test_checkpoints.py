"""Checkpoints: a run that was cut off goes on to the same bits; others are refused."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import fenchel
from fenchel import ChainCRF, Checkpoint, LogisticRegression, problems, solve
from fenchel.errors import DataError
from fenchel.io.tensors import write_tensors
from fenchel.solvers import SOLVERS

RNG = np.random.default_rng(5)
X = RNG.random((60, 6))
Y = (X @ RNG.normal(size=(6, 3)) + 0.5 * RNG.normal(size=(60, 3))).argmax(axis=1)
WORDS = [[[f"w{k}"] for k in RNG.integers(12, size=n)] for n in (3, 1, 5, 4, 6, 2) * 4]
TAGS = [[f"t{int(w[1:]) % 3 if RNG.random() < 0.8 else 0}" for (w,) in words] for words in WORDS]


class Cut(Exception):
    """What ends a run where a crash would."""


class Crashing(Checkpoint):
    """Keeps every step and crashes after some."""

    def __init__(self, path, after):
        super().__init__(path, every=0.0)
        self.left = after

    def save(self, *kept):
        super().save(*kept)
        self.left -= 1
        if self.left == 0:
            raise Cut


def small(solver):
    """A problem that the solver takes: three labels, hinge loss for who wants that."""
    hinge = solver != "auto" and "hinge" in fenchel.solvers.solver_class(solver).needs
    return problems.flat(X, Y, C=1.0, loss="hinge" if hinge else "log", fit_intercept=not hinge)


def cut_and_resume(problem, solver, path, after, **limits):
    with pytest.raises(Cut):
        solve(problem, solver, keeper=Crashing(path, after), **limits)
    return solve(problem, solver, keeper=Checkpoint(path, every=0.0, resume=True), **limits)


@pytest.mark.parametrize("solver", [*SOLVERS, "auto"])
def test_a_run_that_was_cut_off_ends_where_it_would_have(solver, tmp_path):
    if solver == "perceptron":
        pytest.skip("for sequences only")
    limits = {"tol": 1e-7, "max_passes": 30}
    whole = solve(small(solver), solver, **limits)
    after = 1 if len(whole.trace) < 3 else 2
    again = cut_and_resume(small(solver), solver, tmp_path / "run.ckpt", after, **limits)
    assert np.array_equal(again.w, whole.w) and np.array_equal(again.b, whole.b)
    assert again.certificate.gap == whole.certificate.gap
    assert [row.primal for row in again.trace] == [row.primal for row in whole.trace]
    ended = solve(small(solver), solver, keeper=Checkpoint(tmp_path / "run.ckpt", resume=True), **limits)
    assert np.array_equal(ended.w, whole.w) and len(ended.trace) == len(whole.trace)


@pytest.mark.parametrize("solver", ["eg-gap", "sdca", "lbfgs", "cd-outputs", "perceptron"])
def test_sequences_too(solver, tmp_path):
    def model(**more):
        loss = "hinge" if solver == "cd-outputs" else "log"
        return ChainCRF(C=2.0, solver=solver, loss=loss, tol=1e-6, **more)

    whole = model().fit(WORDS, TAGS)
    with pytest.raises(Cut):
        model(callbacks=[Crashing(tmp_path / "run.ckpt", 3)]).fit(WORDS, TAGS)
    again = model(callbacks=[Checkpoint(tmp_path / "run.ckpt", resume=True)]).fit(WORDS, TAGS)
    assert np.array_equal(again.weights_, whole.weights_)


def test_a_checkpoint_of_another_run_is_refused_by_what_differs(tmp_path):
    path = tmp_path / "run.ckpt"
    LogisticRegression(solver="cd-dual", callbacks=[Checkpoint(path)]).fit(X, Y)

    def refusal(data=X, **settings):
        model = LogisticRegression(**{"solver": "cd-dual"} | settings)
        with pytest.raises(DataError) as error:
            model.set_params(callbacks=[Checkpoint(path, resume=True)]).fit(data, Y)
        return str(error.value)

    assert "another solver" in refusal(solver="lbfgs")
    assert "another solver or seed" in refusal(random_state=7)
    assert "another problem" in refusal(C=2.0)
    assert "other data" in refusal(data=X + 1e-9)
    assert "run.ckpt" in refusal(C=3.0)


def test_a_damaged_checkpoint_is_refused_and_a_missing_one_is_a_fresh_start(tmp_path):
    path = tmp_path / "run.ckpt"
    model = LogisticRegression(callbacks=[Checkpoint(path, resume=True)]).fit(X, Y)
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    for damaged in (bytes(content), bytes(content[:100]), b"", b"hello"):
        path.write_bytes(damaged)
        with pytest.raises(DataError):
            model.fit(X, Y)


def test_a_newer_checkpoint_and_a_gzipped_one(tmp_path):
    path = tmp_path / "run.ckpt.gz"
    whole = LogisticRegression(solver="gis", callbacks=[Checkpoint(path)]).fit(X, Y)
    again = LogisticRegression(solver="gis", callbacks=[Checkpoint(path, resume=True)]).fit(X, Y)
    assert path.read_bytes()[:2] == b"\x1f\x8b" and np.array_equal(again.coef_, whole.coef_)
    write_tensors(tmp_path / "new", {"w": X}, {"checkpoint_version": "7"})
    with pytest.raises(DataError, match="new: checkpoint format 7, but this fenchel reads format 1"):
        LogisticRegression(callbacks=[Checkpoint(tmp_path / "new", resume=True)]).fit(X, Y)


def test_a_longer_run_goes_on_from_a_shorter_one(tmp_path):
    path, settings = tmp_path / "run.ckpt", {"solver": "sdca", "tol": 1e-9}
    with pytest.warns(Warning, match="limit of passes"):
        LogisticRegression(max_iter=3, callbacks=[Checkpoint(path)], **settings).fit(X, Y)
    whole = LogisticRegression(**settings).fit(X, Y)
    again = LogisticRegression(callbacks=[Checkpoint(path, resume=True)], **settings).fit(X, Y)
    assert np.allclose(again.coef_, whole.coef_, rtol=1e-4)
    assert again.certificate_.passes > 3


def write_data(path):
    rows = (" ".join(f"{j + 1}:{value}" for j, value in enumerate(x)) for x in X)
    path.write_text("".join(f"{label} {row}\n" for label, row in zip(Y, rows, strict=True)))


def test_kill_and_resume_on_the_command_line(tmp_path):
    write_data(tmp_path / "train.svm")
    common = [
        sys.executable,
        "-m",
        "fenchel",
        "train",
        "lr",
        "train.svm",
        "--solver",
        "gis",
        "--tol",
        "1e-9",
        "-q",
    ]
    kept = ["--checkpoint", "run.ckpt", "--every", "0"]

    def command(name, passes, *more):
        return [*common, "--max-passes", str(passes), "-o", name, *more]

    for resume in ((), ("--resume",)):  # `tests/kills.py` has fifty, at random moments
        running = subprocess.Popen(command("killed", 10**9, *kept, *resume), cwd=tmp_path)
        while not (tmp_path / "run.ckpt").exists():
            assert running.poll() is None, "it ended before its first checkpoint"
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    assert not (tmp_path / "killed").exists()
    for arguments in (command("whole", 3000), command("again", 3000, *kept, "--resume")):
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr  # 1: the limit of passes, the same for both
    whole, again = fenchel.load(tmp_path / "whole"), fenchel.load(tmp_path / "again")
    assert np.array_equal(whole.coef_, again.coef_)
    assert not list(tmp_path.glob(".run.ckpt.*")), "what a killed process had begun to write is left"
