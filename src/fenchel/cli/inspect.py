"""fenchel inspect: what a model file holds."""

import os

import click

from fenchel.cli import options
from fenchel.cli.kinds import kind_of
from fenchel.cli.output import certificate_fact, show
from fenchel.report.tables import Told

SILENT = {"callbacks", "verbose", "warm_start"}


@click.command(short_help="Print what a model file holds.")
@click.argument("model", type=options.FILE)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=None,
    show_default="20; 5 of each label of a tagger",
    metavar="N",
    help="How many heaviest features to show.",
)
@options.json
def inspect(model, top, as_json):
    """Print what MODEL is, how it was trained, certificate, heaviest features, transitions of a tagger.

    `fenchel dump` writes all weights.

    \b
    Example:
      fenchel inspect model.fenchel --top 5
      fenchel inspect model.fenchel --json | jq .certificate.relative_gap
    """
    from fenchel.saved import load

    fitted = load(model)
    kind = kind_of(fitted)
    facts, tables = kind.inspect(fitted, kind.top if top is None else top)
    show(facts_of(fitted, model) | facts, tables if top != 0 else [], as_json)


def facts_of(fitted, path) -> dict:
    """Class, size, certificate, and the constructor's arguments that say something of the model."""
    settings = fitted.get_params(deep=False).items()
    told = {name: value for name, value in settings if name not in SILENT}
    size = os.path.getsize(path)
    return {
        "class": type(fitted).__name__,
        "file": Told({"name": str(path), "bytes": size}, f"{path}, {size:,} bytes"),
        "certificate": certificate_fact(fitted.certificate_),
        "settings": Told(told, ", ".join(f"{name}={value}" for name, value in told.items())),
    }
