"""fenchel solvers: the matrix of solvers and what each can train."""

import dataclasses
import re
import sys
from inspect import cleandoc

import click

from fenchel.cli import options
from fenchel.cli.output import print_facts, print_table
from fenchel.report.tables import Table

# Short enough for 80 columns.
HEADS = {"binary": "two", "flat crossed": "cross", "flat joint": "joint", "junction": "graph"}
HEADS |= {"projective": "tree"}


@click.command(short_help="List the solvers.")
@click.argument("name", required=False)
def solvers(name):
    """List the solvers and what each can train; with a NAME, what that one is and which options it has.

    l stands for the log loss, h for the hinge loss. Columns: two is two classes of `lr`; cross more classes
    of `lr`, `tagger`, and `maxent` where features are crossed with labels; joint `maxent` of candidates;
    chain `crf`; graph GraphCRF of Python; tree `parser`.

    \b
    Example:
      fenchel solvers
      fenchel solvers sdca
    """
    from fenchel.offers import STRUCTURES
    from fenchel.solvers import SOLVERS

    if name is not None:
        return _print_one(options.SolverName().convert(name, None, None))
    names = [HEADS.get(structure.name, structure.name) for structure in STRUCTURES]
    rows = [_cells(name, STRUCTURES) for name in SOLVERS]
    print_table(Table(["solver", *names, "method"], rows))


def _print_one(name):
    """What a solver is, its losses, and its class with options."""
    from fenchel.offers import STRUCTURES
    from fenchel.solvers import SOLVERS, solver_class

    solver = solver_class(name)
    trains = {structure.name: ", ".join(_losses(solver, structure)) or "-" for structure in STRUCTURES}
    print_facts({"solver": name, "options": _signature(solver, SOLVERS[name][1])} | trains)
    click.echo(f"\n{cleandoc(solver.__doc__ or '')}")


def _cells(name, structures):
    from fenchel.solvers import solver_class

    solver = solver_class(name)
    marks = ["".join(loss[0] for loss in _losses(solver, structure)) or "-" for structure in structures]
    return [name, *marks, _method(solver)]


def _method(solver):
    """The name of the method, with which the solver's file begins."""
    return re.split(r"[.:;,]|\(| (?:with|on|as|for) ", sys.modules[solver.__module__].__doc__ or "")[0]


def _losses(solver, structure):
    """The losses with which the solver trains this structure."""
    from fenchel.losses import LOSSES
    from fenchel.offers import REGULARISED, offered

    return [name for name, loss in LOSSES.items() if solver.needs <= offered(structure, loss) | REGULARISED]


def _signature(solver, options):
    """Class(option=value, ...) as this name of it makes it."""
    values = {f.name: f.default for f in dataclasses.fields(solver)} | options
    return f"{solver.__name__}({', '.join(f'{name}={value!r}' for name, value in values.items())})"
