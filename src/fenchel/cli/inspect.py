"""fenchel inspect: what a model file holds."""

import os

import click

from fenchel.cli.kinds import kind_of
from fenchel.cli.output import print_facts, print_table

SILENT = {"callbacks", "verbose", "warm_start"}


@click.command(short_help="Print what a model file holds.")
@click.argument("model")
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=None,
    show_default="20; 5 of each label of a tagger",
    metavar="N",
    help="How many heaviest features to show.",
)
def inspect(model, top):
    """Print what MODEL is, how it was trained, certificate, heaviest features, transitions of a tagger.

    \b
    Example:
      fenchel inspect model.fenchel --top 5
    """
    from fenchel.saved import load

    fitted = load(model)
    kind = kind_of(fitted)
    facts, tables = kind.inspect(fitted, kind.top if top is None else top)
    print_facts(facts_of(fitted, model) | facts)
    for table in tables if top != 0 else ():
        print_table(table)


def facts_of(fitted, path) -> dict[str, str]:
    """Class, size, certificate, and the constructor's arguments that say something of the model."""
    settings = fitted.get_params(deep=False).items()
    told = [f"{name}={value}" for name, value in settings if name not in SILENT]
    return {
        "class": type(fitted).__name__,
        "file": f"{path}, {os.path.getsize(path):,} bytes",
        "certificate": str(fitted.certificate_),
        "settings": ", ".join(told),
    }
