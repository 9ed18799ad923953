"""fenchel evaluate: how good a model is on labelled data."""

import click

from fenchel.cli import options
from fenchel.cli.kinds import kind_of, reading_for
from fenchel.cli.output import show
from fenchel.cli.recognise import expecting


@click.command(short_help="Print accuracy and other scores on a file.")
@click.argument("model", type=options.FILE)
@click.argument("data", type=options.FILE)
@options.reading
@options.json
def evaluate(model, data, as_json, **settings):
    """Print accuracy, log-loss, and precision, recall and F1 of each class, of MODEL on the labelled DATA.

    DATA is of the format MODEL was trained on.

    \b
    Example:
      fenchel evaluate model.fenchel test.svm
      fenchel evaluate tagger.fenchel test.txt --json | jq .accuracy
    """
    from fenchel.saved import load

    fitted = load(model)
    kind = kind_of(fitted)
    given = reading_for(fitted, settings)
    with expecting(kind.name, data, "format" in given):
        examples = kind.labelled(fitted, data, given)
    facts, table = kind.scores(fitted, examples)
    show(facts, [table] if table else [], as_json, model=model, data=data)
