"""fenchel convert: models of one program for another."""

import click

from fenchel.cli import options
from fenchel.cli.failures import Failure, require_place, writing
from fenchel.cli.output import say

WRITERS = {"liblinear": "to_liblinear", "crfsuite": "to_crfsuite", "onnx": "to_onnx", "fenchel": "save"}


@click.command(short_help="Write a model for another program.")
@click.argument("model", type=options.FILE)
@click.argument("output", type=options.FILE)
@click.option(
    "--to",
    "target",
    type=click.Choice(list(WRITERS)),
    required=True,
    help="liblinear: text, of `lr` models with whole numbers for labels. crfsuite: binary, of `crf` models. "
    "onnx: a graph, of `lr` models. fenchel: a model file of ours, from LIBLINEAR's or CRFsuite's.",
)
def convert(model, output, target):
    """Write MODEL, of fenchel, LIBLINEAR or CRFsuite, to OUTPUT for another of these, or as ONNX.

    The other program gives the same labels. Probabilities of LIBLINEAR are the same for two classes only.
    ONNX takes rows of float64 and needs the package onnx (pip install 'fenchel[onnx]').
    What the other's files cannot hold (labels that are no numbers, banned transitions) is refused.

    \b
    Example:
      fenchel convert model.fenchel model.liblinear --to liblinear
      fenchel convert tagger.crfsuite tagger.fenchel --to fenchel
    """
    from fenchel.saved import load

    require_place(output)
    fitted = load(model)
    if target == "fenchel":
        fitted = getattr(fitted, "chain_", fitted)  # a CRF is for Python; the commands know its ChainCRF
    if not hasattr(fitted, WRITERS[target]):
        raise Failure(f"{model}: a {type(fitted).__name__} model has no counterpart in {target}")
    try:
        with writing(output):
            getattr(fitted, WRITERS[target])(output)
    except ImportError as error:  # of what is an extra
        raise Failure(str(error)) from None
    say(f"model written to {output}")
