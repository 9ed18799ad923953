"""The regularisation path of collins2008 Table 2 on MNIST: effective passes, seconds and validation error.

    FENCHEL_DATA=folder python benchmarks/path.py [--solver eg] [--tol 0.001]

Pixels / 255, the first 59,000 training images, the 10,000 test images as validation set, no intercept. 24
constants from 1000 down by 0.7; each is fitted to a proven gap of tol · objective, by exponentiated gradient
from the uniform distribution as in the paper, or by another solver. The gap is checked at every pass.
"""

import argparse
import time

import numpy as np

import datasets
from fenchel import path, problems, solvers

CONSTANTS = 1000.0 * 0.7 ** np.arange(24)
TRAINING = 59_000


def validation(X, truth):
    """The share of right answers of weights W (784, 10)."""
    return lambda w, b: float(np.mean((X @ w.reshape(X.shape[1], -1) + b).argmax(axis=1) == truth))


def show(fit):
    """A line of the table."""
    certificate = fit.result.certificate
    print(
        f"| {fit.constant:9.4f} | {certificate.passes:6.2f} | {certificate.seconds:7.2f} "
        f"| {certificate.relative_gap:.1e} | {100.0 * (1.0 - fit.score):5.2f} |",
        flush=True,
    )


def main():
    """Fit the path and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--solver", default="eg")
    parser.add_argument("--tol", type=float, default=1e-3)
    options = parser.parse_args()
    X, y = datasets.mnist()
    problem = problems.flat(X[:TRAINING], y[:TRAINING], collins_C=CONSTANTS[0])
    solver = solvers.make(options.solver, **({"first": 0.0} if options.solver == "eg" else {}))
    print("| C | passes | seconds | gap | error % |\n|--:|--:|--:|--:|--:|")
    begin = time.perf_counter()
    fits = path(
        problem,
        solver,
        collins_C=CONSTANTS,
        tol=options.tol,
        check_every=1.0,
        validate=validation(*datasets.mnist_test()),
        after_fit=show,
    )
    print(
        f"\n{len(fits)} constants, {fits.passes:.1f} passes, {fits.seconds:.1f} s of solving, "
        f"{time.perf_counter() - begin:.1f} s with checks and compilation; "
        f"best at C = {fits.best.constant:.4g}, error {100.0 * (1.0 - fits.best.score):.2f} %"
    )


if __name__ == "__main__":
    main()
