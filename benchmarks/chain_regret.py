"""How much solver="auto" leaves to be desired on sequences: its time over that of the best of our solvers.

    python benchmarks/chain_regret.py [--seconds 20] [--only 3] [--precision 1e-3]
        [--solvers auto,eg-gap,lbfgs,tron]

Made-up sequences, few long and many short ones, of 3 to 200 labels; attributes sparse (0/1, by Zipf's law),
real, or dense; all weights or the observed ones; c2 from .003 to 10. Each problem is solved to a proven gap
of --precision; processor seconds of `solve`, kernels loaded by a run of two passes before. What is not done
in --seconds of the wall clock counts as "-".
"""

import argparse
import time
import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fenchel import problems, solve


@dataclass(frozen=True)
class Sequences:
    """What a problem of the grid is made from."""

    n: int
    length: int
    labels: int
    attributes: int
    kind: str  # "sparse", "real" or "dense"
    c2: float
    observed: bool = False

    def __str__(self):
        which = ", observed" * self.observed
        return (
            f"{self.n} x {self.length}, K {self.labels}, {self.attributes} {self.kind}{which}, c2 {self.c2:g}"
        )

    def problem(self):
        rng = np.random.default_rng(self.n + self.labels)
        X = self._tokens(rng)
        y = self._labels(X, rng)
        starts = np.arange(0, y.size + 1, self.length)
        given = {"labels": self.labels, "C": 1.0 / (2.0 * self.c2)}
        return problems.chain(X, y, starts, observed=self.observed, **given)

    def _tokens(self, rng):
        """(N, attributes): ten attributes a token, the r-th as often as 1/r, or a table of numbers."""
        N = self.n * self.length
        if self.kind == "dense":
            return rng.standard_normal((N, self.attributes))
        shares = 1.0 / np.arange(1, self.attributes + 1)
        columns = rng.choice(self.attributes, size=(N, 10), p=shares / shares.sum())
        X = sp.csr_matrix((np.ones(10 * N), (np.repeat(np.arange(N), 10), columns.ravel())))
        X.data[:] = rng.standard_normal(X.nnz) if self.kind == "real" else 1.0
        return X

    def _labels(self, X, rng):
        """Each by its token, its predecessor and chance."""
        weights = rng.standard_normal((X.shape[1], self.labels)) / np.sqrt(X.shape[1])
        scale = 1.0 if self.kind == "dense" else np.sqrt(X.shape[1] / 10.0)
        scores = 3.0 * scale * np.asarray(X @ weights) + rng.gumbel(size=(X.shape[0], self.labels))
        follow, y = rng.standard_normal((self.labels, self.labels)), np.zeros(X.shape[0], np.int64)
        for t in range(X.shape[0]):
            y[t] = np.argmax(scores[t] + (follow[y[t - 1]] if t % self.length else 0.0))
        y[: self.labels] = np.arange(self.labels)  # each label occurs
        return y


GRID = [
    Sequences(3000, 10, 3, 5000, "sparse", 1.0),
    Sequences(3000, 10, 9, 20000, "sparse", 0.003),
    Sequences(3000, 10, 9, 20000, "sparse", 10.0),
    Sequences(2000, 20, 22, 30000, "sparse", 1.0, observed=True),
    Sequences(2000, 20, 22, 30000, "sparse", 0.1, observed=True),
    Sequences(1000, 20, 60, 10000, "sparse", 1.0),
    Sequences(300, 20, 200, 5000, "sparse", 1.0),
    Sequences(20, 1000, 9, 20000, "sparse", 1.0),
    Sequences(20, 1000, 9, 500, "sparse", 0.1),
    Sequences(5, 4000, 3, 2000, "sparse", 10.0),
    Sequences(2000, 15, 9, 5000, "real", 1.0),
    Sequences(2000, 15, 9, 5000, "real", 0.01, observed=True),
    Sequences(2000, 15, 9, 50, "dense", 1.0),
    Sequences(1000, 15, 30, 100, "dense", 0.05),
    Sequences(50, 400, 5, 20, "dense", 0.003),
]


def seconds_of(problem, solver, options):
    """Processor seconds to the proven gap, inf where it was not reached, and who did it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            solve(problem, solver, tol=0.0, max_passes=2)
        except (ValueError, MemoryError):
            return np.inf, "-"
        start = time.process_time()
        result = solve(problem, solver, tol=options.precision, max_seconds=options.seconds, max_passes=1e6)
    taken = time.process_time() - start
    return taken if result.certificate.converged else np.inf, result.trace.solver


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--precision", type=float, default=1e-3)
    parser.add_argument("--only", type=int)
    parser.add_argument("--solvers", default="auto,eg-gap,lbfgs,tron")
    options = parser.parse_args()
    names = options.solvers.split(",")
    print(f"| | problem | {' | '.join(names)} | chosen | regret |\n|--:|---|{'--:|' * len(names)}---|--:|")
    regrets = []
    for number, each in enumerate(GRID, 1):
        if options.only in (None, number):
            problem = each.problem()
            found = {name: seconds_of(problem, name, options) for name in names}
            best = min(seconds for seconds, _ in found.values())
            regrets.append(found["auto"][0] / best)
            cells = " | ".join(f"{s:.2f}" if np.isfinite(s) else "-" for s, _ in found.values())
            print(f"| {number} | {each} | {cells} | {found['auto'][1]} | {regrets[-1]:.2f} |", flush=True)
    print(f"\nregret: median {np.median(regrets):.2f}, worst {max(regrets):.2f}")


if __name__ == "__main__":
    main()
