"""Binary L2 logistic regression: seconds to come within 1e-3 and 1e-6 of the optimum, ours and rivals'.

    FENCHEL_DATA=folder python benchmarks/binary.py [--sets a9a,imdb,20newsgroups] [--solvers name,...]
        [--repeat 3] [--blas-threads 1] [--output benchmarks/RESULTS.md] [--rivals-only]

No intercept; a time is a whole `fit` from a SciPy CSR matrix in memory, conversions and copies included.
Each solver first fits a handful of rows, so that imports and compilation are not counted.
BLAS gets one thread unless told otherwise: with two, scikit-learn's lbfgs took ten times as long on imdb.
"""

import argparse
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import datasets
from measure import Timing, machine, objective, reference, seconds_to, timed
from rivals import RIVALS, spaced

OURS = ["auto", "cd-dual", "tron", "lbfgs", "sdca", "sag", "eg", "cd-primal"]
CONSTANTS = {"a9a": 4.0, "imdb": 1.0, "20newsgroups": 10.0}
TARGETS = (1e-3, 1e-6)


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


def warm_up(solver, X, y, C):
    """Fit 50 rows of each class, all features, once."""
    rows = np.sort(np.concatenate([np.flatnonzero(y < 0)[:50], np.flatnonzero(y > 0)[:50]]))
    solver.fit(X[rows], y[rows], C, solver.tolerances[0])


def measure_solver(solver, X, y, C, best, repeat, threads):
    """One Timing per target; `best` is P*. A solver that cannot run says why in each."""
    reason = solver.skip(X)
    if reason is not None:
        return [Timing(target, reason=f"skipped: {reason}") for target in TARGETS]
    warm_up(solver, X, y, C)  # before the limit, which binds only the libraries already loaded
    with threadpool_limits(limits=threads, user_api="blas"):
        return seconds_to(
            lambda tol: solver.fit(X, y, C, tol),
            lambda w: (objective(X, y, C, w) - best) / best,
            solver.tolerances,
            TARGETS,
            repeat,
        )


def measure_set(name, solvers, repeat, threads, progress):
    """(title, rows) of one set; a row is (solver's name, is it a rival, Timings)."""
    X, y = datasets.load(name)
    C = CONSTANTS[name]
    best = reference(X, y, C, name)
    measured = {}
    for solver in solvers:
        progress(f"{name}: {solver.name}")
        measured[solver] = measure_solver(solver, X, y, C, best, repeat, threads)
    with threadpool_limits(limits=threads, user_api="blas"):
        in_turn(measured, lambda solver, tol: solver.fit(X, y, C, tol), repeat)
    rows = [(solver.name, solver in RIVALS, timings) for solver, timings in measured.items()]
    shape = f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} non-zeros"
    return f"{name}, C = {C:g} ({shape}; optimum {best:.8g})", rows


def in_turn(measured, fit, rounds):
    """Time all solvers again, in turn, at the tolerances found: the machine's speed wanders over minutes, and
    what is compared should meet the same of it. Slow ones, over a second, are left as they are."""
    for _ in range(rounds):
        for solver, timings in measured.items():
            for k, timing in enumerate(timings):
                if timing.seconds is not None and timing.seconds < 1.0:
                    seconds, _ = timed(partial(fit, solver), timing.tolerance)
                    timings[k] = replace(timing, seconds=min(timing.seconds, seconds))


def fastest_rivals(rows):
    """Per target, the least seconds of any rival, or None."""
    fastest = []
    for k in range(len(TARGETS)):
        seconds = [timings[k].seconds for _, rival, timings in rows if rival]
        fastest.append(min((s for s in seconds if s is not None), default=None))
    return fastest


def cells(timing, fastest):
    """Seconds, ratio to the fastest rival, tolerance and excess, as text."""
    if timing.seconds is None:
        return ["-", "-", "-", "-"]
    ratio = f"{timing.seconds / fastest:.2f}" if fastest else "-"
    return [f"{timing.seconds:.3f}", ratio, f"{timing.tolerance:.1e}", f"{timing.excess:.1e}"]


def table(rows):
    """(header, lines) of text cells, in the order measured."""
    header = ["solver"]
    for target in TARGETS:
        header += [f"s to {target:.0e}", "/ best rival", "tolerance", "excess"]
    fastest = fastest_rivals(rows)
    lines = []
    for name, _, timings in rows:
        line = [name]
        for timing, least in zip(timings, fastest, strict=True):
            line += cells(timing, least)
        lines.append(line)
    return header, lines


def markdown(title, rows):
    """A Markdown section: the table, its columns aligned, then the reasons for what is missing."""
    header, lines = table(rows)
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    aligns = [str.ljust] + [str.rjust] * (len(header) - 1)
    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    body = [[pad(c, w) for pad, c, w in zip(aligns, line, widths, strict=True)] for line in [header, *lines]]
    text = ["| " + " | ".join(line) + " |" for line in [body[0], rule, *body[1:]]]
    return "\n".join([f"## {title}", "", *text, *footnotes(rows)])


def footnotes(rows):
    """One line for each target a solver did not reach, targets with the same reason joined."""
    notes = {}
    for name, _, timings in rows:
        for timing in timings:
            if timing.reason:
                notes.setdefault((name, timing.reason), []).append(f"{timing.target:.0e}")
    lines = [f"- {name}, to {' and '.join(targets)}: {reason}" for (name, reason), targets in notes.items()]
    return ["", *lines] if lines else []


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


def choose(names, rivals_only):
    """The solvers to run: all, or those whose names are listed."""
    solvers = RIVALS + ([] if rivals_only else [Fenchel(name) for name in OURS])
    unknown = [name for name in names if name not in [solver.name for solver in solvers]]
    if unknown:
        known = ", ".join(solver.name for solver in solvers)
        raise SystemExit(f"unknown solver {unknown[0]!r}; the solvers are {known}")
    return [solver for solver in solvers if not names or solver.name in names]


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    listed = partial(str.split, sep=",")
    parser.add_argument("--sets", type=listed, default=list(CONSTANTS), help="comma separated (default: all)")
    parser.add_argument("--solvers", type=listed, default=[], help="comma separated names (default: all)")
    parser.add_argument("--repeat", type=int, default=3, help="runs at the tolerance found (default: 3)")
    parser.add_argument("--blas-threads", type=int, default=1, help="threads of BLAS (default: 1)")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("RESULTS.md"))
    parser.add_argument("--rivals-only", action="store_true", help="leave fenchel's own solvers out")
    return parser.parse_args()


def main():
    """Measure, print each set's table as soon as it is complete, and write them all."""
    options = arguments()
    solvers = choose(options.solvers, options.rivals_only)
    sections = [preamble(options.repeat, options.blas_threads)]
    progress = partial(print, flush=True)
    for name in options.sets:
        measured = measure_set(name, solvers, options.repeat, options.blas_threads, progress)
        sections.append(markdown(*measured))
        print(sections[-1] + "\n", flush=True)
        options.output.write_text("\n\n".join(section.strip() for section in sections) + "\n")


if __name__ == "__main__":
    main()
