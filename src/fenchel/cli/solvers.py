"""fenchel solvers: the matrix of solvers and what each can train."""

import dataclasses

import click

from fenchel.cli.output import Table, print_table


@click.command(short_help="List the solvers.")
def solvers():
    """List the solvers: name, class and options, what each is, and for which loss of two classes it works.

    \b
    Example:
      fenchel solvers
    """
    from fenchel.solvers import SOLVERS

    columns = ["solver", "log", "hinge", "class and options", "what it does"]
    print_table(Table(columns, [_cells(name) for name in SOLVERS], title="two classes, with a regulariser"))


def _cells(name):
    from fenchel.problem import OFFERS
    from fenchel.solvers import SOLVERS, solver_class

    solver = solver_class(name)
    works = [solver.needs <= OFFERS["binary", loss] | {"dual"} for loss in ("log", "hinge")]
    marks = ["yes" if able else "-" for able in works]
    return [name, *marks, _signature(solver, SOLVERS[name][1]), (solver.__doc__ or "").split("\n")[0]]


def _signature(solver, options):
    """Class(option=value, ...) as this name of it makes it."""
    values = {f.name: f.default for f in dataclasses.fields(solver)} | options
    return f"{solver.__name__}({', '.join(f'{name}={value!r}' for name, value in values.items())})"
