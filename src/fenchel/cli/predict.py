"""fenchel predict: labels for data, one line each."""

import click

from fenchel.cli import options
from fenchel.cli.kinds import kind_of

LINES = 10_000  # written at a time


@click.command(short_help="Print a label per example of a file.")
@click.argument("model")
@click.argument("data")
@click.option(
    "--marginals",
    "--probabilities",
    "probabilities",
    is_flag=True,
    help="Add the probability of each class behind the label, tabs between, in the order `inspect` shows.",
)
@options.zero_based
def predict(model, data, **settings):
    """Print the label that MODEL gives to each example of DATA, one line each.

    The labels in DATA are ignored, but must be there: 0 will do.

    \b
    Example:
      fenchel predict model.fenchel test.svm --probabilities > predicted.txt
    """
    from fenchel.estimators.load import load

    fitted = load(model)
    lines = list(kind_of(fitted).predict(fitted, data, **settings))
    for at in range(0, len(lines), LINES):
        click.echo("\n".join(lines[at : at + LINES]))
