"""fenchel solvers: the matrix of solvers and what each can train."""

import dataclasses

import click

from fenchel.cli.output import Table, print_table


@click.command(short_help="List the solvers.")
def solvers():
    """List the solvers: name, what each can train with which loss, what it is, class and options.

    binary is two classes of `lr`; flat crossed more classes of `lr`, `tagger`, and `maxent` where features
    are crossed with labels; flat joint `maxent` of candidates; chain `crf`.

    \b
    Example:
      fenchel solvers
    """
    from fenchel.offers import STRUCTURES
    from fenchel.solvers import SOLVERS

    names = [structure.name for structure in STRUCTURES]
    columns = ["solver", *names, "what it does", "class and options"]
    rows = [_cells(name, STRUCTURES) for name in SOLVERS]
    print_table(Table(columns, rows, title="losses that each solver can train, with a regulariser"))


def _cells(name, structures):
    from fenchel.solvers import SOLVERS, solver_class

    solver = solver_class(name)
    marks = [", ".join(_losses(solver, structure)) or "-" for structure in structures]
    return [name, *marks, (solver.__doc__ or "").split("\n")[0], _signature(solver, SOLVERS[name][1])]


def _losses(solver, structure):
    """The losses with which the solver trains this structure."""
    from fenchel.losses import LOSSES
    from fenchel.offers import offered

    return [name for name, loss in LOSSES.items() if solver.needs <= offered(structure, loss) | {"dual"}]


def _signature(solver, options):
    """Class(option=value, ...) as this name of it makes it."""
    values = {f.name: f.default for f in dataclasses.fields(solver)} | options
    return f"{solver.__name__}({', '.join(f'{name}={value!r}' for name, value in values.items())})"
