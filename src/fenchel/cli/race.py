"""fenchel race: several solvers on one problem, as a table, trace files and a plot."""

import dataclasses
from math import inf
from pathlib import Path

import click

from fenchel.cli import kinds, options
from fenchel.cli.failures import FAILED, Failure, as_failure, require_place, writing
from fenchel.cli.groups import LazyGroup
from fenchel.cli.output import Table, print_table, say
from fenchel.cli.progress import gap_bar
from fenchel.trace import Status


@click.group(cls=LazyGroup, targets=kinds.targets("race"), subcommand_metavar="KIND ...")
def race():
    """Run several solvers on one problem and compare them.

    \b
    Example:
      fenchel race lr train.svm --solvers cd-dual,lbfgs,newton --output race/

    `fenchel race KIND --help` lists the options.
    """


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
        metavar="DIR",
        help="Write DIR/SOLVER.jsonl (a trace per solver) and DIR/race.png (a plot).",
    ),
    *options.solving,
    options.quiet,
)


def run_race(problem, small, names, output, quiet, settings) -> None:
    """Race the solvers on `problem`, each compiled on `small` first; print, write, set the exit code."""
    runners = _line_up(problem, names, settings["seed"])
    folder = _folder(output)
    results, failures = {}, {}
    for name, solver in runners.items():
        try:
            _warm_up(small, solver)
            results[name] = _run(problem, solver, quiet, settings)
        except (ValueError, MemoryError) as error:  # of this solver: it wants features ≥ 0, say
            failures[name] = as_failure(error).message
            continue
        say(f"{name} {results[name].certificate}", quiet)
        if folder:
            _save(folder, name, results[name], settings)
        if results[name].status is Status.INTERRUPTED:
            break
    if folder and results:
        _plot(folder, results, settings["tol"])
    print_table(_table(results, failures))
    if failures or len(results) < len(names) or not all(r.certificate.converged for r in results.values()):
        click.get_current_context().exit(FAILED)


def _line_up(problem, names, seed):
    """The solvers by name, after making sure that each can run this problem at all."""
    from fenchel.loop import require
    from fenchel.solvers import make

    runners = {name: make(name) for name in names}
    for name, solver in runners.items():
        require(problem, solver)
        if hasattr(solver, "seed"):
            runners[name] = dataclasses.replace(solver, seed=seed)
    return runners


def _warm_up(small, solver):
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
            tol=settings["tol"],
            max_passes=settings["max_passes"],
            max_seconds=inf if settings["max_seconds"] is None else settings["max_seconds"],
            check_every=1.0,
            callbacks=callbacks,
        )


def _folder(output):
    if output is None:
        return None
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise Failure(f"{folder}: is a file, expected a folder to write into")
    if not folder.parent.is_dir():
        raise Failure(f"{folder}: cannot be made, there is no folder {folder.parent}")
    with writing(folder):
        folder.mkdir(exist_ok=True)
    require_place(folder / "race.png")
    return folder


def _save(folder, name, result, settings):
    from fenchel.io.trace import write_trace

    path = folder / f"{name}.jsonl"
    facts = {key: settings[key] for key in ("seed", "C", "tol")}
    with writing(path):
        write_trace(path, result.trace, **facts, certificate=result.certificate.to_dict())


def _plot(folder, results, tol):
    from fenchel.report.plots import plot_race

    path = folder / "race.png"
    try:
        with writing(path):
            plot_race([result.trace for result in results.values()], path, tol)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        say("no plot: matplotlib is missing; pip install 'fenchel[report]' brings it")


def _table(results, failures):
    """The converged ones by time, then the others by what they proved, then those that could not run."""

    def rank(item):
        certificate = item[1].certificate
        if certificate.converged:
            return (0, certificate.seconds)
        return (1, certificate.relative_gap if certificate.gap >= 0.0 else inf)

    rows = [_cells(name, result.certificate) for name, result in sorted(results.items(), key=rank)]
    rows += [[name, "", "", "", "", f"failed: {sentence}"] for name, sentence in failures.items()]
    columns = ["solver", "seconds", "passes", "objective", "relative gap", "end"]
    return Table(columns, rows, numbers=set(columns[1:5]))


def _cells(name, certificate):
    gap = certificate.relative_gap
    return [
        name,
        f"{certificate.seconds:.3g}",
        f"{certificate.passes:.4g}",
        f"{certificate.primal:.10g}",
        f"{gap:.2e}" if gap == gap else "none",
        certificate.status.value,
    ]
