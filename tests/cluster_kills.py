"""Kills on a cluster: workers and schedulers of Dask, ended by SIGKILL at random moments of training.

    python tests/cluster_kills.py          50 runs with a worker killed, 10 with two, 5 with the scheduler
    python tests/cluster_kills.py --one 5 --two 1 --scheduler 1 --seed 17

Each run must end proven within its tolerance, at the optimum that one machine finds, or, where the scheduler
is gone, with one sentence and a checkpoint from which the run goes on to that optimum.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import fenchel
from fenchel import LogisticRegression
from fenchel.io.sharding import shard_rows

TOL = 1e-4
SOLVERS = ("cd-dual", "lbfgs")


def write_shards(folder):
    """Rows noisy enough for some dozens of rounds."""
    rng = np.random.default_rng(0)
    X = sp.random(1200, 200, 0.03, "csr", random_state=1)
    y = X @ rng.normal(size=200) + 0.5 * rng.normal(size=1200) > 0.0
    return shard_rows(((X[i : i + 100], y[i : i + 100]) for i in range(0, 1200, 100)), folder, rows=100)


def check(certificate, optimum):
    assert certificate.converged, str(certificate)
    assert certificate.dual <= optimum * (1 + 1e-9), "a bound above the optimum: a false certificate"
    assert certificate.primal <= optimum * (1 + 1.1 * TOL), "not the optimum"


def worker_run(client, shards, optimum, solver, kills, rng, seconds) -> tuple[float, int]:
    """Train on three workers, of which some are killed; the time it took, and the kills that met the run."""
    victims = rng.sample(sorted(client.run(os.getpid).values()), kills)
    moments = [rng.uniform(0.0, seconds) for _ in victims]
    timers = [
        threading.Timer(when, os.kill, (pid, signal.SIGKILL))
        for when, pid in zip(moments, victims, strict=True)
    ]
    began = time.perf_counter()
    for timer in timers:
        timer.start()
    model = LogisticRegression(solver=solver, tol=TOL).fit(shards)
    took = time.perf_counter() - began
    met = sum(not timer.is_alive() for timer in timers)
    for timer in timers:
        timer.join()
    check(model.certificate_, optimum)
    return took, met


def worker_runs(shards, optimum, kills, runs, rng) -> None:
    met, seconds = 0, {}
    for k in range(runs):
        solver = SOLVERS[k % 2]
        took, hits = on_new_workers(shards, optimum, solver, kills, rng, seconds)
        met += hits
        print(f"{kills} killed, {solver}: run {k + 1}, {took:.1f} s, {met} kills met a run", flush=True)


def on_new_workers(shards, optimum, solver, kills, rng, seconds) -> tuple[float, int]:
    """A run on a cluster of its own: Dask does not always start those anew that were killed.

    seconds: of a run without a kill, by solver; written.
    """
    from distributed import Client, LocalCluster

    settings = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": "CRITICAL"}
    with LocalCluster(n_workers=3, **settings) as cluster, Client(cluster) as client:
        for _ in range(2):  # imports and kernels first, then the time
            seconds[solver] = worker_run(client, shards, optimum, solver, 0, rng, 0.0)[0]
        return worker_run(client, shards, optimum, solver, kills, rng, seconds[solver])


class Machines:
    """A scheduler and two workers, each a process of its own."""

    def __init__(self, folder):
        self.address = folder / f"scheduler-{time.monotonic_ns()}.json"
        common = "--scheduler-file", self.address, "--no-dashboard"
        self.processes = [self._start("scheduler", *common, "--port", "0")]
        for _ in range(2):
            self.processes.append(self._start("worker", *common, "--nthreads", "1"))

    def _start(self, *words):
        words = [sys.executable, "-m", "dask", *map(str, words)]
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def where(self) -> str:
        import json

        while not self.address.exists():
            time.sleep(0.2)
        return json.loads(self.address.read_text())["address"]

    def end(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


def train(folder, address) -> subprocess.Popen:
    words = ["train", "lr", "shards", "-o", "model", "--solver", "cd-dual", "--tol", str(TOL)]
    words += ["--checkpoint", "run.ckpt", "--every", "0", "--resume", "--scheduler", address]
    call = [sys.executable, "-m", "fenchel", *words]
    return subprocess.Popen(call, cwd=folder, stderr=subprocess.PIPE, text=True)


def begun(folder) -> tuple[Machines, subprocess.Popen]:
    """Machines, and a run on them that has just written its first checkpoint."""
    (folder / "run.ckpt").unlink(missing_ok=True)
    machines = Machines(folder)
    run = train(folder, machines.where())
    while not (folder / "run.ckpt").exists() and run.poll() is None:
        time.sleep(0.01)
    return machines, run


def seconds_left(folder) -> float:
    """What a run that nobody harms takes from its first checkpoint on."""
    machines, run = begun(folder)
    since = time.perf_counter()
    run.communicate(timeout=300)
    machines.end()
    return time.perf_counter() - since


def scheduler_run(folder, optimum, rng, seconds) -> bool:
    """Kill the scheduler while a model is trained, then go on with another; whether the kill met the run."""
    machines, run = begun(folder)
    time.sleep(rng.uniform(0.0, seconds))
    machines.processes[0].kill()
    said = run.communicate(timeout=120)[1]
    met = run.returncode != 0
    machines.end()
    if met:
        last = [line for line in said.splitlines() if line.startswith("fenchel:")]
        assert len(last) == 1 and "scheduler is gone" in last[0] and "Traceback" not in said, said
        others = Machines(folder)
        again = train(folder, others.where())
        said = again.communicate(timeout=300)[1]
        others.end()
        assert again.returncode == 0, said
    check(fenchel.load(folder / "model").certificate_, optimum)
    return met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--one", type=int, default=50)
    parser.add_argument("--two", type=int, default=10)
    parser.add_argument("--scheduler", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shards = write_shards(folder / "shards")
        optimum = LogisticRegression(tol=1e-8).fit(shards).certificate_.primal
        for kills, runs in ((1, options.one), (2, options.two)):
            if runs:
                worker_runs(shards, optimum, kills, runs, rng)
        met, seconds = 0, seconds_left(folder) if options.scheduler else 0.0
        for k in range(options.scheduler):
            met += scheduler_run(folder, optimum, rng, seconds)
            print(f"scheduler killed: run {k + 1}, {met} met a run", flush=True)
    print("every run ended at the optimum, proven, or with a sentence and a checkpoint that led there")


if __name__ == "__main__":
    main()
