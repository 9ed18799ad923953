"""Examples at places: rounds against their number, and the time that as many machines would take.

    FENCHEL_DATA=... python benchmarks/places.py --sets imdb,20newsgroups,mnist --places 1,2,4,8,16,32,64
    FENCHEL_DATA=... python benchmarks/places.py --parts optimum --first 2000 --tol 1e-4 --places 1,2,4,8
    FENCHEL_DATA=... python benchmarks/places.py --sets conll2000 --copies 40 --solvers eg-gap --places 1,8
    FENCHEL_DATA=... python benchmarks/places.py --parts workers --sets mnist     two processes against one
    python benchmarks/places.py --parts dask-ml                     the same rows, workers and objective

Rounds are exact: K parts run one after the other on this machine. Simulated time: each question takes as long
as its slowest place, by the clock of its processor; what is sent passes log2 K hops each way over links of 1
and 10 Gbit/s, 0.2 ms each. --first: that many examples of a set; --copies: as often repeated.
optimum: that of one machine, by sums and in rounds, with the objectives' distance and the proven gap.
"""

import argparse
import tempfile
import time
import warnings
from dataclasses import replace
from math import ceil, log2
from typing import NamedTuple

import numpy as np

import datasets
import parsing
from fenchel import ChainCRF, DependencyParser, LogisticRegression, problems, solve
from fenchel.data import take_examples
from fenchel.distributed.spread import spread_here
from fenchel.io.sharding import shard_rows, shard_sequences

SETS = {"imdb": 1.0, "20newsgroups": 10.0, "mnist": 0.1, "conll2000": 1.0, "spanish": 0.1}  # and C
DUAL = {"conll2000": "eg-gap", "spanish": "eg-gap"}  # else cd-dual
LATENCY = 2e-4  # seconds
ROUNDS = 8  # passes that two workers are timed for


def make_problem(name, first=None, copies=1):
    """As LogisticRegression with its free intercept, ChainCRF and DependencyParser have it."""
    if name in DUAL:
        return make_structured(name, first, copies)
    loaders = {"20newsgroups": datasets.newsgroups20, "mnist": datasets.mnist}
    X, y = loaders.get(name, lambda: datasets.load(name))()
    some = slice(None) if first is None else np.random.default_rng(0).permutation(y.size)[:first]
    X, (classes, codes) = X[some], np.unique(y[some], return_inverse=True)
    settings = {"C": SETS[name], "fit_intercept": True}
    if classes.size == 2:
        return problems.binary(X, codes, **settings)
    return problems.flat(X, codes, labels=classes.size, merge=False, **settings)


def make_structured(name, first, copies):
    """Chunks of CoNLL-2000, or Spanish trees."""
    if name == "spanish":
        tokens, heads = parsing.spanish()
        chosen = parsing.without_crossing(heads)[:first]
        model = DependencyParser(C=SETS[name])
        return model.problem(model.encode_training(tokens[chosen], [heads[i] for i in chosen]))
    tokens, labels = datasets.sentences(name)[0][:first].without_last()
    model = ChainCRF(C=SETS[name], template="chunk")
    whole = model.problem(model.encode_training(tokens, labels))
    if copies == 1:
        return whole
    repeated = take_examples(whole.examples, np.tile(np.arange(whole.n), copies))
    repeated = replace(repeated, mass=repeated.mass / copies)
    return replace(whole, examples=repeated).with_penalty(whole.lam / copies)


def simulated(calls, count, gigabits) -> float:
    """Seconds that the questions would take on `count` machines."""
    hops = ceil(log2(count)) if count > 1 else 0
    wire = sum(hops * ((c.down + c.up) * 8e-9 / gigabits + 2 * LATENCY) for c in calls)
    return wire + sum(max(c.seconds) for c in calls)


def rounds_against_places(name, problem, solvers, counts, tol, most):
    """A line for each solver and number of places."""
    print(f"{name}, C = {SETS[name]}, to {tol:g}: {problem}", flush=True)
    print("solver      K  rounds  passes     gap  MB/round   work s  1 Gbit/s  10 Gbit/s", flush=True)
    for solver in solvers:
        for count in counts:
            spread = spread_here(problem, count)
            spread.places.calls.clear()
            found = solve(spread, solver, tol=tol, max_passes=most)
            calls = spread.places.calls
            made = sum(call.name == "round" for call in calls)
            made = made or sum(call.name in ("pull", "curved_along") for call in calls)
            megabytes = sum(c.down + c.up for c in calls) / 1e6 / max(made, 1)
            work = sum(max(c.seconds) for c in calls)
            row = f"{solver:10} {count:3} {made:7} {found.certificate.passes:7.1f} "
            row += f"{found.certificate.relative_gap:7.1e} {megabytes:9.3f} {work:8.2f} "
            print(row + "".join(f" {simulated(calls, count, speed):9.2f}" for speed in (1, 10)), flush=True)


def same_optimum(name, problem, counts, tol, most):
    """By sums and in rounds, against one machine."""
    alone = solve(problem, "auto", tol=tol / 10, max_passes=most).certificate
    print(f"{name}: {problem}; one machine {alone.primal:.8g}, gap {alone.relative_gap:.1e}", flush=True)
    for solver in ("lbfgs", DUAL.get(name, "cd-dual")):
        for count in counts:
            found = solve(spread_here(problem, count), solver, tol=tol, max_passes=most).certificate
            above, proven = found.primal / alone.primal - 1.0, found.relative_gap
            true = found.dual <= alone.primal and above <= proven
            row = f"{solver:8} {count:3}: {above:9.1e} above, gap {proven:.1e}, {found.passes:6.1f} passes"
            print(row + ("" if true else "  NOT WITHIN THE GAPS"), flush=True)


def workers_against_one(names, copies):
    """Processes of this machine, one thread each: what a round takes, with one of them and with two."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            shards, model, solvers = ON_WORKERS[name](folder + "/shards", copies)
            for solver in solvers:
                alone = seconds_of_a_round(model, solver, shards, 1)
                both = seconds_of_a_round(model, solver, shards, 2)
                ratio = alone.whole / both.whole
                print(f"{name}, {solver}: one worker {alone}; two {both}; {ratio:.2f} times", flush=True)


class RoundTaken(NamedTuple):
    """Seconds of a round, as the one who asks waits for it; what places worked of them; bytes of all."""

    whole: float
    work: float
    bytes: float

    def __str__(self):
        return f"{self.whole:.3f} s a round (work {self.work:.3f}), {self.bytes / 1e6:.3f} MB"


def seconds_of_a_round(model, solver, shards, count) -> RoundTaken:
    """The median over ROUNDS rounds, the first left out: it compiles and fills caches."""
    from distributed import Client, LocalCluster

    from fenchel.distributed.cluster import Cluster

    gathered, work = Cluster._results, []

    def noted(self, tasks):
        answers = gathered(self, tasks)
        asked = tasks[0].key.split("-")[1] if len(tasks) == self.count else ""
        if asked in ("round", "pull"):
            work.append(max(max(seconds) for _, _, seconds in answers))
        return answers

    settings = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": "ERROR"}
    Cluster._results = noted
    try:
        with LocalCluster(n_workers=count, **settings) as cluster, Client(cluster), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is not to converge
            found = model.set_params(solver=solver, tol=1e-12, max_iter=ROUNDS, random_state=0).fit(shards)
    finally:
        Cluster._results = gathered
    steps = found.trace_.steps
    took = np.diff([step.seconds for step in steps])[1:]
    sent = np.diff([step.bytes for step in steps])[1:]
    return RoundTaken(*map(float, (np.median(took), np.median(work[2:]), np.median(sent))))


def rows_on_disk(folder, copies):
    """MNIST: 60,000 dense rows, ten classes."""
    X, y = datasets.mnist()
    batches = [(X[i : i + 5000], y[i : i + 5000]) for i in range(0, y.size, 5000)] * copies
    return shard_rows(batches, folder, rows=5000), LogisticRegression(C=0.1), ("cd-dual", "lbfgs")


def sentences_on_disk(folder, copies):
    """CoNLL-2000, 8,936 sentences."""
    tokens, labels = datasets.sentences("conll2000")[0].without_last()
    batches = [(tokens[i : i + 500], labels[i : i + 500]) for i in range(0, len(labels), 500)] * copies
    return shard_sequences(batches, folder, template="chunk", rows=500), ChainCRF(C=1.0), ("eg-gap", "lbfgs")


ON_WORKERS = {"mnist": rows_on_disk, "conll2000": sentences_on_disk}


def against_dask_ml(rows, columns, tol):
    """LogisticRegression of both on made-up rows, the same workers and objective."""
    from distributed import Client, LocalCluster

    rng = np.random.default_rng(0)
    truth, size = rng.normal(size=columns), rows // 20
    settings = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": "ERROR"}

    def batches():
        for _ in range(20):
            X = rng.normal(size=(size, columns)) * (rng.random((size, columns)) < 0.2)
            yield X, (X @ truth + rng.normal(size=size) > 0).astype(float)

    with tempfile.TemporaryDirectory() as folder:
        shards = shard_rows(batches(), folder + "/shards", rows=size)
        with LocalCluster(n_workers=2, **settings) as cluster, Client(cluster):
            LogisticRegression(tol=0.5).fit(shards)  # kernels
            began = time.perf_counter()
            model = LogisticRegression(tol=tol).fit(shards)
            print(
                f"fenchel, two workers: {time.perf_counter() - began:.2f} s, {model.certificate_}", flush=True
            )
            rival(shards, model.certificate_.primal)


def rival(shards, ours):
    """dask-ml's LogisticRegression on the same rows and objective.

    Dask looks for a library `sparse` and would find our sparse.py: run a copy of this folder without that.
    """
    try:
        import dask.array as da
        from dask_ml.linear_model import LogisticRegression as Rival
    except ImportError:
        print("dask-ml is not installed")
        return
    X = da.from_array(shards.rows.matrix.toarray(), chunks=(shards.n // 2, -1))
    y = da.from_array(np.array(shards.array("labels")), chunks=shards.n // 2)
    for solver in ("lbfgs", "admm"):
        began = time.perf_counter()
        model = Rival(solver=solver, C=1.0, fit_intercept=True).fit(X, y)
        took = time.perf_counter() - began
        margins = np.where(y.compute() > 0, 1.0, -1.0) * (X.compute() @ model.coef_ + model.intercept_)
        value = np.logaddexp(0.0, -margins).mean() + 0.5 * np.square(model.coef_).sum() / shards.n
        print(f"dask-ml {solver}: {took:.2f} s, objective {value:.8g}, {value / ours - 1:.1e} above ours")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--parts", default="rounds", help="rounds, optimum, workers, dask-ml")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--places", default="1,2,4,8,16,32,64")
    parser.add_argument("--solvers", default="")
    parser.add_argument("--first", type=int)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--max-passes", type=float, default=200.0)
    parser.add_argument("--rows", type=int, default=40_000)
    options = parser.parse_args()
    counts, names = [int(count) for count in options.places.split(",")], options.sets.split(",")
    if "workers" in options.parts:
        workers_against_one([name for name in names if name in ON_WORKERS], options.copies)
    if "dask-ml" in options.parts:
        against_dask_ml(options.rows, 200, options.tol)
    for name in names if "optimum" in options.parts or "rounds" in options.parts else ():
        problem = make_problem(name, options.first, options.copies)
        if "optimum" in options.parts:
            same_optimum(name, problem, counts, options.tol, options.max_passes)
        if "rounds" in options.parts:
            own = options.solvers.split(",") if options.solvers else [DUAL.get(name, "cd-dual"), "lbfgs"]
            rounds_against_places(name, problem, own, counts, options.tol, options.max_passes)


if __name__ == "__main__":
    main()
