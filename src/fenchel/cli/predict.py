"""fenchel predict: labels for data, one line each."""

import click

from fenchel.cli import options
from fenchel.cli.failures import Failure
from fenchel.cli.kinds import kind_of, reading_for
from fenchel.cli.kinds.base import Form
from fenchel.cli.recognise import expecting
from fenchel.errors import DataError


@click.command(short_help="Print a label per example of a file.")
@click.argument("model", type=options.FILE)
@click.argument("data", type=options.FILE)
@options.flag("--marginals", "Add the probability of each label behind it.")
@options.flag("--probabilities", "Add the probabilities of all labels, below a first line that names them.")
@options.flag("--labels-only", "Taggers and parsers: print what is predicted without the lines of DATA.")
@click.option(
    "--nbest",
    type=click.IntRange(min=1),
    metavar="K",
    help="Taggers: the K best labellings of each sentence, each behind a line `# rank log-probability`.",
)
@options.flag(
    "--unlabelled", "libsvm and event files: lines have no label in front; each line is an example."
)
@options.reading
@options.json
def predict(model, data, marginals, probabilities, labels_only, as_json, **settings):
    """Print the label that MODEL gives to each example of DATA, one line each.

    DATA is of the format MODEL was trained on. Its labels are ignored, but must be there (0 will do) unless
    --unlabelled says that none is. Where each event has candidates of its own (tadm, megam --explicit), a
    label is their number, from 0. Of no example nothing is printed.

    A tagger (`crf`, `tagger`) prints the lines of a column file with its label behind each. The file has as
    many columns as that of training, the last being ignored, or one fewer: no label; for `tagger` the first
    is enough. Of a CRFsuite file it prints labels alone. From standard input (-) each sentence is answered as
    soon as its blank line is there.

    \b
    Example:
      fenchel predict model.fenchel test.svm --probabilities > predicted.txt
      fenchel predict model.fenchel new.events --unlabelled --json
      tail -f tokens.txt | fenchel predict tagger.fenchel -
    """
    from fenchel.saved import load

    if marginals and probabilities:
        raise click.UsageError("--probabilities has those of --marginals among them; give one of them.")
    fitted = load(model)
    kind, form = kind_of(fitted), Form(marginals, probabilities, labels_only, as_json)
    given = reading_for(fitted, settings)
    if (marginals or probabilities) and (reason := kind.why_no_probabilities(fitted, form)):
        raise Failure(f"{model}: {reason}")
    try:
        with expecting(kind.name, data, "format" in given):
            for piece in kind.predict(fitted, data, given, form):
                click.echo(piece)  # and flushes: who writes to us through a pipe may wait for it
    except DataError as error:
        if not _found_nothing(error):
            raise


def _found_nothing(error):
    """Whether all that is wrong with a file is that it is empty."""
    return error.line is None and error.message.startswith("no ") and error.message.endswith(" found")
