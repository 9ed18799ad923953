"""fenchel evaluate: how good a model is on labelled data."""

import click

from fenchel.cli import options
from fenchel.cli.kinds import kind_of, reading_for
from fenchel.cli.output import print_facts, print_table


@click.command(short_help="Print accuracy and other scores on a file.")
@click.argument("model")
@click.argument("data")
@options.reading
def evaluate(model, data, **settings):
    """Print accuracy, log-loss, and precision, recall and F1 of each class, of MODEL on the labelled DATA.

    DATA is of the format MODEL was trained on.

    \b
    Example:
      fenchel evaluate model.fenchel test.svm
    """
    from fenchel.saved import load

    fitted = load(model)
    kind = kind_of(fitted)
    facts, table = kind.scores(fitted, kind.labelled(fitted, data, reading_for(fitted, settings)))
    print_facts(facts)
    if table:
        print_table(table)
