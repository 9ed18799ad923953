"""Options that several commands share, each with its meaning, default and unit."""

import click

from fenchel.solvers import SOLVERS, solver_class


class SolverName(click.ParamType):
    """A name of SOLVERS or "auto"; a wrong one is answered by the nearest right one."""

    name = "solver"

    def convert(self, value, param, ctx):
        if value == "auto" or value in SOLVERS:
            return value
        try:
            solver_class(value)
        except ValueError as error:  # it knows the nearest name
            self.fail(str(error), param, ctx)


class SolverNames(click.ParamType):
    """Names of SOLVERS with commas between, each once."""

    name = "solvers"

    def convert(self, value, param, ctx):
        if not isinstance(value, str):
            return value
        names = [name.strip() for name in value.split(",") if name.strip()]
        if not names:
            self.fail("no solver is named; `fenchel solvers` lists them", param, ctx)
        if "auto" in names:
            self.fail("'auto' is a choice among solvers; name those that shall race", param, ctx)
        for name in names:
            SolverName().convert(name, param, ctx)
        return tuple(dict.fromkeys(names))


POSITIVE = click.FloatRange(min=0.0, min_open=True)
NOT_NEGATIVE = click.FloatRange(min=0.0)

solver = click.option(
    "--solver",
    type=SolverName(),
    default="auto",
    metavar="NAME",
    help="Which solver trains; `fenchel solvers` lists them. auto chooses by loss and size.",
)
constant = click.option(
    "-C",
    "C",
    type=POSITIVE,
    default=1.0,
    metavar="FLOAT",
    help="Weight of the losses: minimises C Σ loss + ½‖w‖². inf means no regulariser, and no proof.",
)
tol = click.option(
    "--tol",
    type=NOT_NEGATIVE,
    default=1e-3,
    metavar="FLOAT",
    help="Stop when gap ≤ tol · objective; 0.001 is proven within 0.1 % of the optimum. No unit.",
)
max_passes = click.option(
    "--max-passes",
    type=click.IntRange(min=1),
    default=1000,
    metavar="N",
    help="Stop after so many passes over the data.",
)
max_seconds = click.option(
    "--max-seconds",
    type=NOT_NEGATIVE,
    default=None,
    show_default="no limit",
    metavar="S",
    help="Stop after so many seconds.",
)
seed = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Seed of the random order of examples or features.",
)
threads = click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=None,
    show_default="all cores, where it pays",
    metavar="N",
    help="Threads for passes over all examples. The result does not depend on it.",
)
loss = click.option(
    "--loss",
    type=click.Choice(["log", "hinge"]),
    default="log",
    help="log: logistic regression. hinge: support vector machine.",
)
zero_based = click.option(
    "--zero-based",
    is_flag=True,
    help="The file counts features from 0, not from 1. Say it alike for training and prediction.",
)
quiet = click.option(
    "-q", "--quiet", is_flag=True, help="Only warnings and errors on stderr: no sizes, bar or certificate."
)


def together(*options):
    """One decorator out of several options, listed in this order by --help."""

    def decorate(command):
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# What every run of a solver takes, in the order of `--help`.
solving = (constant, tol, max_passes, max_seconds, seed, threads)
