"""Binary L2 logistic regression: seconds to come within 1e-3 and 1e-6 of the optimum, ours and rivals'.

    FENCHEL_DATA=folder python benchmarks/binary.py [--sets a9a,imdb,20newsgroups] [--solvers name,...]
        [--repeat 3] [--blas-threads 1] [--output benchmarks/RESULTS.md] [--rivals-only]

No intercept; a time is a whole `fit` from a SciPy CSR matrix in memory, conversions and copies included.
Each solver first fits a handful of rows, so that imports and compilation are not counted.
BLAS gets one thread unless told otherwise: with two, scikit-learn's lbfgs took ten times as long on imdb.
"""

import sys
import warnings
from functools import partial
from itertools import chain
from pathlib import Path

import datasets
from measure import Binary, machine, reference
from race import Rules, choose, markdown, parser, publish, race
from rivals import RIVALS, spaced

OURS = ["auto", "cd-dual", "tron", "lbfgs", "sdca", "sag", "eg", "cd-primal"]
CONSTANTS = {"a9a": 4.0, "imdb": 1.0, "20newsgroups": 10.0}


class Fenchel:
    """One of our solvers, with a rival's face; tol bounds the duality gap relative to P."""

    tolerances = spaced(1, -8)

    def __init__(self, solver):
        self.solver, self.name = solver, f"fenchel {solver}"

    def skip(self, X):
        return None

    def fit(self, X, y, C, tol):
        from fenchel import LogisticRegression

        model = LogisticRegression(C=C, solver=self.solver, tol=tol, fit_intercept=False, max_iter=10_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X, y).coef_.ravel()


def preamble(repeat, threads):
    """The head of the results file: what was measured, and on what."""
    facts = ", ".join(f"{key} {value}" for key, value in machine().items())
    return (
        "# Binary L2 logistic regression\n\n"
        "Seconds of a whole `fit` (conversions included, compilation not) until (P - P*)/P* is at\n"
        "most the target, for P(w) = C sum log(1 + exp(-y w.x)) + 1/2 ||w||^2 without intercept.\n"
        "Each solver runs at the loosest of its tolerances, a quarter of a decade apart or less, that\n"
        f"reaches the target; best time of {2 * repeat} runs, half of them in turn with all others, and\n"
        "worst excess. The ratio is to the fastest rival of that column.\n\n"
        f"Machine: {facts}; BLAS threads {threads}, other threads as each package likes.\n"
    )


def measure_set(name, solvers, rules):
    """The section of one set."""
    problem = Binary(*datasets.load(name), CONSTANTS[name])
    best = reference(problem, name)
    measured = race(problem, best, solvers, rules, partial(print, f"{name}:", file=sys.stderr))
    return markdown(f"{name}, {problem}; optimum {best:.8g})", measured, RIVALS)


def main():
    """Measure, print each set's table as soon as it is complete, and write them all."""
    results = Path(__file__).with_name("RESULTS.md")
    options = parser(__doc__.splitlines()[0], CONSTANTS, results).parse_args()
    ours = [] if options.rivals_only else [Fenchel(name) for name in OURS]
    solvers = choose(RIVALS + ours, options.solvers)
    rules = Rules(repeat=options.repeat, rounds=options.repeat, threads=options.blas_threads)
    sections = (measure_set(name, solvers, rules) for name in options.sets)
    publish(chain([preamble(options.repeat, options.blas_threads)], sections), options.output)


if __name__ == "__main__":
    main()
