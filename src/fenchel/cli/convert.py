"""fenchel convert: models of one program for another."""

import click

from fenchel.cli.failures import Failure, require_place, writing
from fenchel.cli.output import say

WRITERS = {"liblinear": "to_liblinear", "crfsuite": "to_crfsuite", "fenchel": "save"}


@click.command(short_help="Write a model for another program.")
@click.argument("model")
@click.argument("output")
@click.option(
    "--to",
    "target",
    type=click.Choice(list(WRITERS)),
    required=True,
    help="liblinear: text, of `lr` models with whole numbers for labels. crfsuite: binary, of `crf` models. "
    "fenchel: a model file of ours, from any of these.",
)
def convert(model, output, target):
    """Write MODEL, of fenchel, LIBLINEAR or CRFsuite, to OUTPUT for another of these.

    The other program gives the same labels. Probabilities of LIBLINEAR are the same for two classes only.
    What the other's files cannot hold (labels that are no numbers, banned transitions) is refused.

    \b
    Example:
      fenchel convert model.fenchel model.liblinear --to liblinear
      fenchel convert tagger.crfsuite tagger.fenchel --to fenchel
    """
    from fenchel.saved import load

    require_place(output)
    fitted = load(model)
    if not hasattr(fitted, WRITERS[target]):
        raise Failure(f"{model}: a {type(fitted).__name__} model has no counterpart in {target}")
    with writing(output):
        getattr(fitted, WRITERS[target])(output)
    say(f"model written to {output}")
