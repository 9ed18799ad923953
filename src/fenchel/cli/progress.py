"""The bar whose number is the gap."""

import sys
from contextlib import contextmanager
from math import inf, isfinite, log


@contextmanager
def gap_bar(tol: float, quiet: bool):
    """A list of callbacks for a run: one that moves a bar on stderr, or none where nobody would see it."""
    from fenchel._compiling import heard_by

    if not bar_is_shown(quiet):
        with heard_by(lambda compiling, seconds, kernels: None):
            yield []
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[number]}"))
    console = Console(file=sys.stderr)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task, name = progress.add_task("starting", total=1.0, number=""), "training"

        def tell(compiling, seconds, kernels):
            words = f"compiling kernels, once on this machine: {kernels}" if compiling else name
            progress.update(task, description=words)

        def move(trace):
            nonlocal name
            name = trace.solver
            progress.update(
                task,
                description=name,
                completed=fraction_done(trace.distances(), tol),
                number=_number(trace, tol),
            )

        with heard_by(tell):
            yield [move]


@contextmanager
def reading(path: str, quiet: bool):
    """A sign on stderr that a file is being read, where somebody would see it."""
    if not bar_is_shown(quiet):
        yield
        return
    from rich.console import Console

    with Console(file=sys.stderr).status(f"reading {path}"):
        yield


def bar_is_shown(quiet: bool) -> bool:
    """Whether somebody looks at stderr and did not ask for silence."""
    return not quiet and sys.stderr.isatty()


def fraction_done(distance: list[float], tol: float) -> float:
    """How far the distance fell from the first towards tol, between 0 and 1, on a logarithmic scale."""
    known = [number for number in distance if isfinite(number)]
    first, best = known[0] if known else inf, min(known, default=inf)
    if best <= tol:
        return 1.0
    if not known or tol <= 0.0:
        return 0.0
    return log(first / best) / log(first / tol)


def _number(trace, tol):
    return f"{trace.measure} {trace.distances()[-1]:.2g} → {tol:g}, {trace[-1].passes:.4g} passes"
