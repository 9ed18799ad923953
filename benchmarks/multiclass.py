"""Multinomial L2 logistic regression: seconds to come within 1e-3 and 1e-6 of the optimum, ours and rivals'.

    FENCHEL_DATA=folder python benchmarks/multiclass.py [--sets newsgroups20,mnist,brown] [--solvers name,...]
        [--repeat 3] [--patience 200] [--blas-threads 1] [--output file] [--rivals-only]

No intercept; a time is a whole `fit` from a SciPy CSR matrix in memory, conversions and copies included.
MNIST too is CSR: a fifth of it is not zero, and lbfgs, saga and Cyanure were faster so than on a dense array.
Each solver first fits a handful of rows, so that imports and compilation are not counted. BLAS gets one
thread unless told otherwise: with two, on a busy machine, lbfgs took 15 times as long on a dense MNIST.
"""

import sys
import warnings
from functools import partial
from itertools import chain

import datasets
from measure import Multinomial, machine, reference
from race import Rules, choose, markdown, parser, publish, race
from rivals import MULTINOMIAL, spaced

OURS = ["auto", "cd-dual", "sdca", "eg", "tron", "lbfgs", "sag"]
CONSTANTS = {"newsgroups20": 10.0, "mnist": 0.1, "brown": 1.0}
PRECISION = 1e-10  # of the optimum: a ten-thousandth of the tightest target


class Fenchel:
    """One of our solvers, with a rival's face; tol bounds the duality gap relative to P."""

    tolerances = spaced(1, -8)

    def __init__(self, solver):
        self.solver, self.name = solver, f"fenchel {solver}"

    def skip(self, X):
        return None

    def fit(self, X, y, C, tol):
        from fenchel import problems, solve

        problem = problems.flat(X, y, C=C)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return solve(problem, self.solver, tol=tol, max_passes=10_000).w.reshape(X.shape[1], -1)


def preamble(rules):
    """The head of the results: what was measured, and on what."""
    facts = ", ".join(f"{key} {value}" for key, value in machine().items())
    return (
        "# Multinomial L2 logistic regression\n\n"
        "Seconds of a whole `fit` (conversions included, compilation not) until (P - P*)/P* is at\n"
        "most the target, for P(W) = C sum (log sum_k exp(x.w_k) - x.w_y) + 1/2 ||W||^2 without\n"
        f"intercept. P* is proven to a relative {PRECISION:.0e}. Each solver runs at the loosest of its\n"
        "tolerances, a quarter of a decade apart, that reaches the target; best time of\n"
        f"{1 + rules.rounds} runs, all but the first in turn with all others (a single run if that took\n"
        f"over {rules.in_turn:g} s), and worst excess. The ratio is to the\n"
        "fastest rival of that column.\n\n"
        f"Machine: {facts}; BLAS threads {rules.threads}, other threads as each package likes.\n"
    )


def measure_set(name, solvers, rules):
    """The section of one set."""
    problem = Multinomial(*datasets.CLASSES[name](), CONSTANTS[name])
    best = reference(problem, name, PRECISION)
    measured = race(problem, best, solvers, rules, partial(print, f"{name}:", file=sys.stderr))
    title = f"{name}, {problem}, {problem.shape[1]} classes; optimum {best:.9g})"
    return markdown(title, measured, MULTINOMIAL)


def arguments():
    """Parse the command line."""
    made = parser(__doc__.splitlines()[0], CONSTANTS)
    made.add_argument("--patience", type=float, default=200.0, help="longest run, seconds (default: 200)")
    return made.parse_args()


def main():
    """Measure, and print each set's table as soon as it is complete."""
    options = arguments()
    ours = [] if options.rivals_only else [Fenchel(name) for name in OURS]
    solvers = choose(MULTINOMIAL + ours, options.solvers)
    rules = Rules(
        repeat=1,
        rounds=options.repeat - 1,
        in_turn=60.0,
        stride=4,
        patience=options.patience,
        threads=options.blas_threads,
    )
    sections = (measure_set(name, solvers, rules) for name in options.sets)
    publish(chain([preamble(rules)], sections), options.output)


if __name__ == "__main__":
    main()
