"""The kinds of models that `train`, `race` and `path` know, and the kind of a model in a file.

A kind is a module of `fenchel.cli` with

    train, race, path                                click commands: fenchel train KIND, and so on
    READS                                            which options of `options.reading` it knows
    predict(model, data, given, probabilities) -> pieces   what `fenchel predict` prints, some lines at a time
    evaluate(model, data, given) -> (facts, table)      what `fenchel evaluate` prints; the table may be None
    inspect(model, top) -> (facts, *tables)            what `fenchel inspect` prints, beyond the common facts
    TOP                                              how many heaviest features that is unless told
"""

from importlib import import_module

import click

from fenchel.cli.failures import Failure

KINDS = {"lr": "fenchel.cli.lr", "maxent": "fenchel.cli.maxent", "crf": "fenchel.cli.crf"}

CLASSES = {"LogisticRegression": "lr", "LinearSVC": "lr", "MaxEnt": "maxent", "ChainCRF": "crf"}


def targets(verb: str) -> dict[str, str]:
    """kind: where its command for this verb is."""
    return {kind: f"{module}:{verb}" for kind, module in KINDS.items()}


def kind_of(model):
    """The module of the kind of a fitted model."""
    name = type(model).__name__
    if name not in CLASSES:
        raise Failure(f"a {name} model is for use in Python only: fenchel.load reads it there")
    return import_module(KINDS[CLASSES[name]])


def has_probabilities(model) -> bool:
    """Whether a model can tell the probability of a label: those of the hinge loss cannot."""
    return hasattr(model, "predict_proba") or (hasattr(model, "predict_marginals") and model.loss == "log")


def reading_for(model, settings) -> dict:
    """The reading options that were given; one that has no meaning for the model is an error."""
    given = {name: value for name, value in settings.items() if value not in (None, False)}
    for name in given:
        if name not in kind_of(model).READS:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} has no meaning for a {type(model).__name__} model.")
    return given
