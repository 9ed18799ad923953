"""Training at workers by the command line: what a terminal sends and shows, and errors of workers."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from select import select

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel import LogisticRegression
from fenchel.cli.cluster import _as_many_as_shards
from fenchel.distributed.cluster import Cluster
from fenchel.distributed.rounds import Rounds
from fenchel.distributed.vectors import dense
from fenchel.io.sharding import shard_rows

distributed = pytest.importorskip("distributed")
CTRL_C, LONG = b"\x03", 120  # seconds
TAKE_IT = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # the terminal that sends signals to this session
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def client():
    settings = {"threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(n_workers=2, **settings) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = sp.random(400, 60, 0.1, "csr", random_state=1)
    y = X @ rng.normal(size=60) + 2.0 * rng.normal(size=400) > 0.0
    batches = [(X[i : i + 200], y[i : i + 200]) for i in (0, 200)]
    return shard_rows(batches, tmp_path_factory.mktemp("s") / "shards", rows=200)


class Terminal:
    """A command in the foreground of a terminal of 80 columns."""

    def __init__(self, *words):
        self.side, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        call = [sys.executable, "-c", TAKE_IT, sys.executable, "-m", "fenchel", *map(str, words)]
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), other)
        self.process = subprocess.Popen(call, start_new_session=True, **streams)
        self.shown, self.end = "", time.monotonic() + LONG
        os.close(other)

    def until(self, words) -> None:
        """Go on until it shows these, or to its end."""
        while (words is None or words not in self.shown) and time.monotonic() < self.end:
            try:
                more = os.read(self.side, 1 << 16) if select([self.side], [], [], 0.1)[0] else None
            except OSError:  # nobody is at the other end
                return
            self.shown += (more or b"").decode(errors="replace")

    def finish(self) -> int:
        self.until(None)
        self.process.kill()
        os.close(self.side)
        return self.process.wait()


def test_ctrl_c_in_a_terminal_keeps_the_workers_and_the_best_model(shards, tmp_path):
    words = "train", "lr", shards.folder, "-o", tmp_path / "model", "--workers", 2, "--solver", "cd-dual"
    run = Terminal(*words, "-C", 1e7, "--tol", 1e-12, "--max-passes", 10**7, "--max-seconds", 60)
    run.until(" passes")
    os.write(run.side, CTRL_C)
    assert run.finish() == 1
    assert "cd-dual interrupted" in run.shown and "Traceback" not in run.shown
    assert "\x1b[2K\x1b[1A" not in run.shown  # the bar never took two lines, which would be erased so
    assert fenchel.load(tmp_path / "model").certificate_.status.value == "interrupted"


@pytest.mark.parametrize("at", [2, 5])
def test_a_run_that_was_interrupted_in_a_round_goes_on_to_the_optimum(
    client, shards, tmp_path, monkeypatch, at
):
    ask, rounds = Cluster.sum, []

    def interrupted(self, name, *arguments):
        answer = ask(self, name, *arguments)
        rounds.extend([name] if name == "round" else [])
        if name == "round" and len(rounds) == at:
            raise KeyboardInterrupt
        return answer

    def kept_whole(self, problem, state, folder):
        keep(self, problem, state, folder)
        if len(rounds) == at:  # the weights are what the dual variables of all places add up to
            np.testing.assert_allclose(
                state.v[problem.shared], dense(problem.places.sum("share")), atol=1e-12
            )
            found.append(True)

    keep, found = Rounds.keep_copies, []
    monkeypatch.setattr(Rounds, "keep_copies", kept_whole)
    monkeypatch.setattr(Cluster, "sum", interrupted)
    settings = {"solver": "cd-dual", "tol": 1e-6, "C": 10.0, "fit_intercept": False}
    kept = fenchel.Checkpoint(tmp_path / "run.ckpt", every=0)
    with pytest.warns(match="interrupted"):
        first = LogisticRegression(**settings, callbacks=[kept]).fit(shards)
    again = fenchel.Checkpoint(tmp_path / "run.ckpt", every=0, resume=True)
    model = LogisticRegression(**settings, callbacks=[again]).fit(shards)
    client.close()
    alone = LogisticRegression(C=10.0, tol=1e-8, fit_intercept=False).fit(shards).certificate_.primal
    assert found and first.certificate_.dual <= alone * (1 + 1e-9)
    assert model.certificate_.converged and model.certificate_.primal == pytest.approx(alone, rel=2e-6)
    assert model.trace_[-1].dual >= first.certificate_.dual * (1 - 1e-9)


def test_a_worker_that_does_not_see_the_folder_is_named(client, shards):
    elsewhere = fenchel.Shards(shards.folder)
    elsewhere.folder = Path("/on/this/machine/alone")
    with pytest.raises(
        ValueError, match=r"worker at inproc:.*: /on/this.* no such folder .* disk that all workers"
    ):
        LogisticRegression().fit(elsewhere)


def test_no_more_workers_than_shards(capsys):
    assert _as_many_as_shards(9, 2, False) == 2
    assert "2 shards for 9 workers: 2 will work" in capsys.readouterr().err
    assert _as_many_as_shards(2, 2, False) == 2
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b"PK")]
)
def test_dual_variables_that_are_lost_beside_a_checkpoint_are_told(client, shards, tmp_path, damage):
    settings = {"solver": "cd-dual", "tol": 1e-6}
    LogisticRegression(**settings, callbacks=[fenchel.Checkpoint(tmp_path / "c", every=0)]).fit(shards)
    for path in (tmp_path / "c.places").glob("0-*.npz"):
        damage(path)
    again = fenchel.Checkpoint(tmp_path / "c", every=0, resume=True)
    with pytest.warns(
        RuntimeWarning, match=r"c\.places: 1 of 2 workers' dual variables are missing or damaged"
    ):
        model = LogisticRegression(solver="cd-dual", tol=1e-7, callbacks=[again]).fit(shards)
    assert model.certificate_.converged
