"""fenchel predict: labels for data, one line each."""

import click

from fenchel.cli import options
from fenchel.cli.failures import Failure
from fenchel.cli.kinds import kind_of, reading_for

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
@options.reading
def predict(model, data, probabilities, **settings):
    """Print the label that MODEL gives to each example of DATA, one line each.

    DATA is of the format MODEL was trained on. Its labels are ignored, but must be there: 0 will do. Where
    each event has candidates of its own (tadm, megam --explicit), a label is their number, from 0.

    \b
    Example:
      fenchel predict model.fenchel test.svm --probabilities > predicted.txt
    """
    from fenchel.estimators.load import load

    fitted = load(model)
    given = reading_for(fitted, settings)
    if probabilities and not hasattr(fitted, "predict_proba"):
        raise Failure(f"{model}: a model of the hinge loss has no probabilities; train with --loss log")
    lines = list(kind_of(fitted).predict(fitted, data, given, probabilities))
    for at in range(0, len(lines), LINES):
        click.echo("\n".join(lines[at : at + LINES]))
