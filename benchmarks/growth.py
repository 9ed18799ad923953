"""How cost grows with the data, and what a dual pass costs.

    FENCHEL_DATA=folder python benchmarks/growth.py

Growth: seconds of `fit` at a fixed tol on n/8, n/4, n/2 and n rows of imdb, relative to their non-zeros. The
constant C is scaled so that λ = 1/(C n) stays the same: otherwise more data is also a harder problem.
Pass: seconds of one pass of cd-dual over those of a bare "dot and add" pass in the same random order.
"""

import time

import numpy as np
from numba import njit

import datasets
from fenchel import LogisticRegression, problems, solvers
from fenchel._sparse import row_add, row_dot

CONSTANTS = {"a9a": 4.0, "imdb": 1.0, "20newsgroups": 10.0}


@njit(cache=True)
def dot_and_add(rows, order, w):
    """For each row: a dot product with w, then w += tiny · row: the least a dual method must do."""
    for i in order:
        row_add(rows, i, 1e-9 * row_dot(rows, i, w), w)


def best_time(task, repeat=5):
    """Least wall seconds of several runs."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def growth(solver, tol):
    """Rows (n, non-zeros, seconds, nanoseconds per non-zero) for growing parts of imdb."""
    X, y = datasets.load("imdb")
    order = np.random.default_rng(0).permutation(X.shape[0])
    for part in (8, 4, 2, 1):
        chosen = np.sort(order[: X.shape[0] // part])
        rows, labels = X[chosen], y[chosen]
        model = LogisticRegression(C=float(part), solver=solver, tol=tol, fit_intercept=False)
        seconds = best_time(lambda model=model, rows=rows, labels=labels: model.fit(rows, labels))
        yield rows.shape[0], rows.nnz, seconds, 1e9 * seconds / rows.nnz, model.n_iter_


def passes(name):
    """Rows (pass, seconds of cd-dual, seconds of dot and add, ratio), medians of three runs."""
    X, y = datasets.load(name)
    problem = problems.binary(X, y, C=CONSTANTS[name])
    rng = np.random.default_rng(0)
    timings = np.array([_one_run(problem, rng) for _ in range(3)])
    for k, (ours, bare) in enumerate(np.median(timings, axis=0)):
        yield k + 1, ours, bare, ours / bare


def _one_run(problem, rng, count=6):
    solver, timings = solvers.CDDual(), []
    state = solver.init(problem, None)
    w = np.zeros(problem.dim)
    for _ in range(count):
        order = rng.permutation(problem.n)
        bare = best_time(lambda order=order: dot_and_add(problem.examples.rows, order, w), 3)
        start = time.perf_counter()
        solver.step(problem, state)
        timings.append((time.perf_counter() - start, bare))
    return timings


def main():
    print("| solver | tol | rows | non-zeros | seconds | ns per non-zero | passes |")
    print("|---|---|---|---|---|---|---|")
    for solver, tol in (("auto", 1e-3), ("auto", 1e-6), ("lbfgs", 1e-3), ("tron", 1e-3)):
        for n, nnz, seconds, per, count in growth(solver, tol):
            print(f"| {solver} | {tol:g} | {n:,} | {nnz:,} | {seconds:.4f} | {per:.1f} | {count} |")
    print("\n| set | pass | cd-dual, ms | dot and add, ms | ratio |\n|---|---|---|---|---|")
    for name in CONSTANTS:
        for k, ours, bare, ratio in passes(name):
            print(f"| {name} | {k} | {1e3 * ours:.2f} | {1e3 * bare:.2f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
