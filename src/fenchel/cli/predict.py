"""fenchel predict: labels for data, one line each."""

import click

from fenchel.cli import options
from fenchel.cli.failures import Failure
from fenchel.cli.kinds import kind_of, reading_for


@click.command(short_help="Print a label per example of a file.")
@click.argument("model")
@click.argument("data")
@click.option(
    "--marginals",
    "--probabilities",
    "probabilities",
    is_flag=True,
    help="Add the probability of each class behind the label, tabs between, in the order `inspect` shows; "
    "with `crf` that of the label alone.",
)
@click.option(
    "--nbest",
    type=click.IntRange(min=1),
    metavar="K",
    help="Taggers: the K best labellings of each sentence, each behind a line `# rank log-probability`.",
)
@options.reading
def predict(model, data, probabilities, **settings):
    """Print the label that MODEL gives to each example of DATA, one line each.

    DATA is of the format MODEL was trained on. Its labels are ignored, but must be there: 0 will do. Where
    each event has candidates of its own (tadm, megam --explicit), a label is their number, from 0.

    A tagger (`crf`, `tagger`) prints the lines of a column file with its label behind each. The file has as
    many columns as that of training, the last being ignored, or one fewer: no label; for `tagger` the first
    is enough. Of a CRFsuite file it prints labels alone. From standard input (-) each sentence is answered as
    soon as its blank line is there.

    \b
    Example:
      fenchel predict model.fenchel test.svm --probabilities > predicted.txt
      tail -f tokens.txt | fenchel predict tagger.fenchel -
    """
    from fenchel.saved import load

    fitted = load(model)
    given = reading_for(fitted, settings)
    kind = kind_of(fitted)
    if probabilities and (reason := kind.why_no_probabilities(fitted)):
        raise Failure(f"{model}: {reason}")
    for piece in kind.predict(fitted, data, given, probabilities):
        click.echo(piece)  # and flushes: who writes to us through a pipe may wait for it
