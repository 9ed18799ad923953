"""Run solvers on one problem, ours and rivals', and lay out the times: what the benchmark scripts share.

A solver has a `name`; `tolerances`, from loose to tight; `skip(X)`, a reason not to run it on X, or None;
and `fit(X, y, C, tol)`, which gives weights.
"""

import argparse
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from measure import Timing, seconds_to, timed

TARGETS = (1e-3, 1e-6)


@dataclass(frozen=True)
class Rules:
    """How a race is run.

    repeat: runs at the tolerance found. rounds: runs of all solvers in turn after that, of those that take
    less than `in_turn` seconds. stride, patience: of `seconds_to`. threads: of BLAS.
    """

    repeat: int = 3
    rounds: int = 3
    in_turn: float = 1.0
    stride: int = 1
    patience: float = 20.0
    threads: int = 1


def race(problem, best, solvers, rules, progress):
    """{solver: one Timing per target}; `best` is P*."""
    measured = {}
    for solver in solvers:
        progress(solver.name)
        measured[solver] = measure_solver(solver, problem, best, rules)
    progress("all in turn")
    with threadpool_limits(limits=rules.threads, user_api="blas"):
        in_turn(measured, problem, best, rules)
    return measured


def measure_solver(solver, problem, best, rules):
    """One Timing per target. A solver that cannot run says why in each."""
    reason = solver.skip(problem.X)
    if reason is not None:
        return [Timing(target, reason=f"skipped: {reason}") for target in TARGETS]
    warm_up(solver, problem)  # before the limit, which binds only the libraries already loaded
    with threadpool_limits(limits=rules.threads, user_api="blas"):
        return seconds_to(
            partial(solver.fit, problem.X, problem.y, problem.C),
            partial(problem.excess, best),
            solver.tolerances,
            TARGETS,
            rules.repeat,
            rules.patience,
            rules.stride,
        )


def warm_up(solver, problem):
    """Fit about 100 rows, some of each class, all features, once."""
    classes = np.unique(problem.y)
    count = max(1, 100 // classes.size)
    rows = np.sort(np.concatenate([np.flatnonzero(problem.y == each)[:count] for each in classes]))
    solver.fit(problem.X[rows], problem.y[rows], problem.C, solver.tolerances[0])


def in_turn(measured, problem, best, rules):
    """Time all solvers again, in turn, at the tolerances found: the machine's speed wanders over minutes, and
    what is compared should meet the same of it. Slow ones are left as they are."""
    for _ in range(rules.rounds):
        for solver, timings in measured.items():
            for k, timing in enumerate(timings):
                if timing.seconds is not None and timing.seconds < rules.in_turn:
                    fit = partial(solver.fit, problem.X, problem.y, problem.C)
                    seconds, w = timed(fit, timing.tolerance)
                    excess = max(timing.excess, problem.excess(best, w))
                    timings[k] = replace(timing, seconds=min(timing.seconds, seconds), excess=excess)


def fastest(measured, rivals):
    """Per target, the least seconds of any rival, or None."""
    times = [
        [timing.seconds for timing in timings] for solver, timings in measured.items() if solver in rivals
    ]
    return [min((s for s in column if s is not None), default=None) for column in zip(*times, strict=True)]


def cells(timing, least):
    """Seconds, ratio to the fastest rival, tolerance and excess, as text."""
    if timing.seconds is None:
        return ["-", "-", "-", "-"]
    ratio = f"{timing.seconds / least:.2f}" if least else "-"
    return [f"{timing.seconds:.3f}", ratio, f"{timing.tolerance:.1e}", f"{timing.excess:.1e}"]


def table(measured, rivals):
    """(header, lines) of text cells, in the order measured."""
    header = ["solver"]
    for target in TARGETS:
        header += [f"s to {target:.0e}", "/ best rival", "tolerance", "excess"]
    least = fastest(measured, rivals) or [None] * len(TARGETS)
    lines = []
    for solver, timings in measured.items():
        line = [solver.name]
        for timing, seconds in zip(timings, least, strict=True):
            line += cells(timing, seconds)
        lines.append(line)
    return header, lines


def markdown(title, measured, rivals):
    """A Markdown section: the table, its columns aligned, then the reasons for what is missing."""
    header, lines = table(measured, rivals)
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    aligns = [str.ljust] + [str.rjust] * (len(header) - 1)
    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    body = [[pad(c, w) for pad, c, w in zip(aligns, line, widths, strict=True)] for line in [header, *lines]]
    text = ["| " + " | ".join(line) + " |" for line in [body[0], rule, *body[1:]]]
    return "\n".join([f"## {title}", "", *text, *footnotes(measured)])


def footnotes(measured):
    """One line for each target a solver did not reach, targets with the same reason joined."""
    notes = {}
    for solver, timings in measured.items():
        for timing in timings:
            if timing.reason:
                notes.setdefault((solver.name, timing.reason), []).append(f"{timing.target:.0e}")
    lines = [f"- {name}, to {' and '.join(targets)}: {reason}" for (name, reason), targets in notes.items()]
    return ["", *lines] if lines else []


def choose(solvers, names):
    """All solvers, or those whose names are listed."""
    known = [solver.name for solver in solvers]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"unknown solver {unknown[0]!r}; the solvers are {', '.join(known)}")
    return [solver for solver in solvers if not names or solver.name in names]


def parser(description, sets, output=None):
    """The command line that the benchmarks share."""
    made = argparse.ArgumentParser(description=description)
    listed = partial(str.split, sep=",")
    made.add_argument("--sets", type=listed, default=list(sets), help="comma separated (default: all)")
    made.add_argument("--solvers", type=listed, default=[], help="comma separated names (default: all)")
    made.add_argument("--repeat", type=int, default=3, help="runs at the tolerance found (default: 3)")
    made.add_argument("--blas-threads", type=int, default=1, help="threads of BLAS (default: 1)")
    made.add_argument("--output", type=Path, default=output, help=f"file to write (default: {output})")
    made.add_argument("--rivals-only", action="store_true", help="leave fenchel's own solvers out")
    return made


def publish(sections, output):
    """Print each section as soon as it is complete, and write them all to the file `output`, if any."""
    texts = []
    for section in sections:
        texts.append(section.strip())
        print(texts[-1] + "\n", flush=True)
        if output is not None:
            output.write_text("\n\n".join(texts) + "\n")
