"""Peak memory of training on a million events, with a primal and a dual solver, beside estimates.

    FENCHEL_DATA=folder python benchmarks/memory.py [--events 1000000] [--solvers lbfgs,cd-dual]
        [--change 0.2] [--passes 3] [--seed 0]

The events are the contexts of `datasets.brown_contexts`, repeated, a share of their attributes replaced at
random. Each solver trains in a process of its own: the system remembers only the highest peak of a process.
"""

import argparse
import resource
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import datasets


def corpus(events, change, seed):
    """(X, y) of so many events; each attribute is replaced with probability `change`.

    The new one is that of a random place in the corpus, so that common attributes stay common.
    """
    rng = np.random.default_rng(seed)
    X, y = datasets.brown_contexts()
    rows = np.arange(events) % X.shape[0]
    made, labels = X[rows], y[rows]
    replaced = rng.random(made.nnz) < change
    made.indices[replaced] = rng.choice(X.indices, np.count_nonzero(replaced))
    made.has_sorted_indices = made.has_canonical_format = False
    made.sum_duplicates()
    made.data[:] = 1.0
    return made, labels


def build(folder, events, change, seed):
    """Write the corpus; (non-zeros, attributes, classes)."""
    X, y = corpus(events, change, seed)
    sp.save_npz(folder / "X.npz", X, compressed=False)
    np.save(folder / "y.npy", y)
    return X.nnz, X.shape[1], int(y.max()) + 1


def peak():
    """The most memory this process ever held, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def train(folder, solver, passes):
    """(examples after equal ones were merged, relative gap, peaks compiled, loaded, trained)."""
    from fenchel import problems, solve

    X, y = datasets.brown_contexts(1000)
    solve(problems.flat(X, y, C=1.0), solver, max_passes=1)
    peaks = [peak()]
    X, y = sp.load_npz(folder / "X.npz"), np.load(folder / "y.npy")
    peaks.append(peak())
    problem = problems.flat(X, y, C=1.0)
    result = solve(problem, solver, tol=0.0, max_passes=passes)
    return problem.n, result.certificate.relative_gap, [*peaks, peak()]


def fresh(task, *arguments):
    """What the task gives, run in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(task, *arguments).result()


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    listed = partial(str.split, sep=",")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--solvers", type=listed, default=["lbfgs", "cd-dual"], help="comma separated")
    parser.add_argument(
        "--change", type=float, default=0.2, help="share of attributes replaced (default: 0.2)"
    )
    parser.add_argument("--passes", type=float, default=3.0, help="of each solver (default: 3)")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    """Build the corpus, train on it, and print a table in megabytes."""
    options = arguments()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nnz, d, K = fresh(build, folder, options.events, options.change, options.seed)
        print(f"{options.events:,} events, {nnz:,} non-zeros, {d:,} attributes, {K} classes, in MB:")
        print(f"non-zeros x 12 bytes {12e-6 * nnz:,.0f}, weights (d K x 8 bytes) {8e-6 * d * K:,.0f}\n")
        print("| solver | compiled | corpus loaded | trained | examples N | N K x 8 bytes | gap |")
        print("|---|--:|--:|--:|--:|--:|--:|", flush=True)
        for solver in options.solvers:
            n, gap, peaks = fresh(train, folder, solver, options.passes)
            columns = [solver, *(f"{1e-6 * each:,.0f}" for each in peaks), f"{n:,}", f"{8e-6 * n * K:,.0f}"]
            print("| " + " | ".join([*columns, f"{gap:.1e}"]) + " |", flush=True)


if __name__ == "__main__":
    main()
