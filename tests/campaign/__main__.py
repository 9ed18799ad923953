"""The command line: python -m tests.campaign --help."""

import argparse
import multiprocessing
import sys
import time
from functools import partial
from itertools import count, islice

from .. import conftest  # noqa: F401  points Numba's cache at a folder of its own, before Numba is imported
from . import tables

CHUNK = 25  # seeds handed to a process at a time


def main():
    arguments = _arguments()
    if arguments.only is not None:
        sys.exit(_only(arguments))
    from .convergence import SEEDS, rows_of
    from .runs import kind_of, report_of

    if arguments.convergence:
        tasks, work = range(arguments.problems or SEEDS), partial(rows_of, solvers=arguments.solvers)
        rows = [row for found in _each(work, tasks, arguments) for row in found]
        print(tables.convergence(rows))
        return
    of_kind = (seed for seed in count(arguments.seed) if kind_of(seed) in arguments.kinds)
    seeds = list(islice(of_kind, arguments.problems or 1000))
    reports = []
    for report in _each(partial(report_of, solvers=arguments.solvers), seeds, arguments):
        reports.append(report)
        for what, solver, text in report.violations:  # at once: a long campaign may be cut short
            print(f"seed {report.seed}: {what}: {report.kind} {solver}: {text}", file=sys.stderr)
    print(tables.summary(reports, arguments.show))
    sys.exit(any(report.violations for report in reports))


def _arguments():
    from .runs import ALL

    parser = argparse.ArgumentParser(
        prog="python -m tests.campaign", description=sys.modules[__package__].__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--problems", type=int, help="how many (1,000), with --convergence how many seeds")
    parser.add_argument("--seed", type=int, default=0, help="of the first problem; the next has the next")
    parser.add_argument("--kinds", nargs="+", default=ALL, choices=ALL)
    parser.add_argument("--solvers", nargs="+", help="only these")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after so many")
    parser.add_argument("--jobs", type=int, default=1, help="processes; the results are the same")
    parser.add_argument("--show", type=int, default=40, help="how many violations to print")
    parser.add_argument("--only", type=int, metavar="SEED", help="this one problem, with all its numbers")
    parser.add_argument("--convergence", action="store_true", help="who stops short of 1e-3 in 1,000 passes")
    return parser.parse_args()


def _only(arguments) -> bool:
    from .runs import report_of

    report = report_of(arguments.only, arguments.solvers)
    print(*report.lines, sep="\n")
    return bool(report.violations)


def _each(work, tasks, arguments):
    """work(task) for each task, in order, by processes; nothing is begun after the given seconds."""
    began = time.monotonic()
    pool = multiprocessing.get_context("spawn").Pool(arguments.jobs) if arguments.jobs > 1 else None
    answers = pool.imap(work, tasks, CHUNK) if pool else map(work, tasks)
    for done, answer in enumerate(answers, 1):
        yield answer
        if sys.stderr.isatty() and done % 100 == 0:
            print(f"\r{done} of {len(tasks)}, {time.monotonic() - began:.0f} s", end="", file=sys.stderr)
        if time.monotonic() - began > arguments.seconds:
            break
    if pool:
        pool.terminate()


if __name__ == "__main__":
    main()
