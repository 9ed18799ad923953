"""fenchel race: several solvers on one problem, as a table, trace files and a plot."""

import dataclasses
from math import inf

import click

from fenchel.cli import options
from fenchel.cli.failures import FAILED, as_failure
from fenchel.cli.groups import KindGroup, kind_help
from fenchel.cli.kinds import Kind
from fenchel.cli.output import print_json, print_table, say
from fenchel.cli.progress import gap_bar
from fenchel.cli.report import write_page
from fenchel.cli.traces import draw, save_trace, settings_of, trace_folder
from fenchel.cli.training import Training, read_training
from fenchel.report.tables import Table, Told, number
from fenchel.trace import Status

ABOUT = """Prints a table, the first to reach tol on top. Seconds are the solver's own: neither compiling nor
checking the gap is counted. --max-passes and --max-seconds hold for each solver."""

AFTER = "Exit code 0: all converged. 1: some did not. 2: wrong usage or wrong input."

race_options = options.together(
    click.option(
        "--solvers",
        type=options.SolverNames(),
        required=True,
        metavar="A,B,...",
        help="Who races: names from `fenchel solvers`, commas between.",
    ),
    click.option(
        "--output",
        type=options.FILE,
        metavar="DIR",
        help="Write DIR/SOLVER.jsonl (a trace per solver), DIR/race.html (a page) and DIR/race.png (a plot).",
    ),
    *options.solving,
    options.quiet,
    options.json,
)


def _command(kind: Kind) -> click.Command:
    """fenchel race KIND."""
    before = f"Run several solvers on the same problem, made of {kind.file}.\n\n{ABOUT}"

    @click.command(kind.name, help=kind_help(kind, "race", before, AFTER), short_help=kind.summary)
    @click.argument("data", type=options.FILE)
    @race_options
    @options.other_constant(kind.other_constant)
    @options.together(*kind.options)
    def command(data, solvers, output, quiet, as_json, **settings):
        _run_all(read_training(kind, data, settings, quiet), solvers, output, quiet, as_json, settings)

    return command


@click.group(cls=KindGroup, make=_command)
def race():
    """Run several solvers on one problem and compare them.

    \b
    Example:
      fenchel race lr train.svm --solvers cd-dual,lbfgs,newton --output race/

    `fenchel race KIND --help` lists the options.
    """


def _run_all(training: Training, names, output, quiet, as_json, settings):
    """Race the solvers, each compiled on a few examples first; print, write, set the exit code."""
    problem, small = training.problem(), training.few().problem()
    runners = _line_up(problem, names, settings["seed"])
    folder, facts = trace_folder(output, "race.png"), settings_of(training.model)
    results, failures = {}, {}
    for name, solver in runners.items():
        try:
            warm_up(small, solver)
            results[name] = _run(problem, solver, quiet, settings)
        except (ValueError, MemoryError) as error:  # of this solver: it wants features ≥ 0, say
            failures[name] = as_failure(error).message
            continue
        say(f"{name} {results[name].certificate}", quiet)
        if folder:
            save_trace(folder / f"{name}.jsonl", results[name].trace, results[name].certificate, facts)
        if results[name].status is Status.INTERRUPTED:
            break
    if folder and results:
        draw(folder / "race.png", [result.trace for result in results.values()], settings["tol"])
        write_page(folder / "race.html", None, [folder / f"{name}.jsonl" for name in results])
    table = _table(results, failures)
    if as_json:
        print_json({"problem": str(problem), "tol": settings["tol"]}, [table])
    else:
        print_table(table)
    if failures or len(results) < len(names) or not all(r.certificate.converged for r in results.values()):
        click.get_current_context().exit(FAILED)


def _line_up(problem, names, seed):
    """The solvers by name, after making sure that each can run this problem at all."""
    from fenchel.choosing import require, reseeded
    from fenchel.solvers import make

    runners = {name: reseeded(make(name), seed) for name in names}
    for solver in runners.values():
        require(problem, solver)
    return runners


def warm_up(small, solver) -> None:
    """Compile on a few examples, so that nobody's clock runs meanwhile."""
    from fenchel.loop import solve

    solve(small, solver, max_passes=3, check_every=1.0)


def _run(problem, solver, quiet, settings):
    """One solve, of a copy: what a problem keeps (columns, norms) each solver pays for itself."""
    from fenchel.loop import solve

    with gap_bar(settings["tol"], quiet) as callbacks:
        return solve(
            dataclasses.replace(problem),
            solver,
            **solve_limits(settings),
            check_every=1.0,
            callbacks=callbacks,
        )


def solve_limits(settings) -> dict:
    """When `solve` ends, from the options of a command."""
    seconds = settings["max_seconds"]
    return {
        "tol": settings["tol"],
        "max_passes": settings["max_passes"],
        "max_seconds": inf if seconds is None else seconds,
    }


def _table(results, failures):
    """The converged ones by time, then the others by what they proved, then those that could not run."""

    def rank(item):
        certificate = item[1].certificate
        if certificate.converged:
            return (0, certificate.seconds)
        return (1, certificate.relative_gap if certificate.gap >= 0.0 else inf)

    rows = [_cells(name, result.certificate) for name, result in sorted(results.items(), key=rank)]
    none = [Told(None, "")] * 4
    rows += [[name, *none, f"failed: {sentence}"] for name, sentence in failures.items()]
    columns = ["solver", "seconds", "passes", "objective", "relative gap", "end"]
    return Table(columns, rows, numbers=set(columns[1:5]), key="runs")


def _cells(name, certificate):
    return [
        name,
        number(certificate.seconds, ".3g"),
        number(certificate.passes, ".4g"),
        number(certificate.primal, ".10g"),
        gap_cell(certificate),
        certificate.status.value,
    ]


def gap_cell(certificate) -> Told:
    """The relative gap; without a regulariser there is none."""
    gap = certificate.relative_gap
    return number(gap, ".2e") if gap == gap else Told(None, "none")
