"""What the intercept costs: `LogisticRegression().fit` with and without it, at tolerances of 1e-3 and 1e-6.

    FENCHEL_DATA=... python benchmarks/intercept.py [names]

With and without in turn, the best of three each; seconds from the user's arrays to the model, kernels loaded.
"""

import sys
import time
import warnings

import numpy as np

import datasets
from fenchel import LogisticRegression

CASES = {
    "mnist": (datasets.mnist, 0.1),
    "mnist dense": (lambda: dense(datasets.mnist()), 0.1),
    "20newsgroups": (datasets.newsgroups20, 10.0),
    "webkb": (datasets.webkb, 1.0),
    "imdb": (lambda: datasets.load("imdb"), 1.0),
    "a9a": (lambda: datasets.load("a9a"), 1.0),
    "digits": (lambda: digits(), 1.0),
    "brown": (lambda: datasets.brown_contexts(90_000), 1.0),
    "table": (lambda: table(), 1.0),
    "table, raw": (lambda: table(raw=True), 1.0),
    "200,000 x 30": (lambda: two_classes(200_000, 30, 0.5), 1.0),
    "500 x 3,000": (lambda: two_classes(500, 3000, 0.05), 1.0),
}


def dense(pair):
    return pair[0].toarray(), pair[1]


def digits():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def table(raw=False):
    """20,000 x 16, 26 classes: standardised, or counts from 0 to 15 as they come."""
    rng = np.random.default_rng(0)
    y = rng.integers(26, size=20_000)
    if raw:
        means = rng.uniform(2.0, 13.0, size=(26, 16))
        return np.clip(np.round(means[y] + 4.5 * rng.normal(size=(y.size, 16))), 0.0, 15.0), y
    X = 1.2 * rng.normal(size=(26, 16))[y] + rng.normal(size=(y.size, 16))
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def two_classes(n, d, size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (size * X @ rng.normal(size=d) + rng.logistic(size=n) > 0.0).astype(int)


def seconds(make, X, y):
    """Of one fit; and the model."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X, y)
    return time.perf_counter() - start, model


def compare(X, y, C, tol):
    """(seconds, solvers) without and with an intercept."""
    best, took = {False: np.inf, True: np.inf}, {}
    for _ in range(3):
        for free in best:
            spent, model = seconds(
                lambda free=free: LogisticRegression(C=C, tol=tol, fit_intercept=free, max_seconds=60), X, y
            )
            best[free] = min(best[free], spent)
            took[free] = model.trace_.solver if model.certificate_.converged else "not converged"
    return best, took


def main():
    names = sys.argv[1:] or list(CASES)
    print("| data | C | tol | without | with | ratio | solver, without; with |")
    print("|---|--:|--:|--:|--:|--:|---|", flush=True)
    for name in names:
        make, C = CASES[name]
        X, y = make()
        seconds(lambda C=C: LogisticRegression(C=C, max_iter=2), X, y)
        for tol in (1e-3, 1e-6):
            best, took = compare(X, y, C, tol)
            print(
                f"| {name} | {C:g} | {tol:g} | {best[False]:.3f} s | {best[True]:.3f} s "
                f"| {best[True] / best[False]:.2f} | {took[False]}; {took[True]} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
