"""The kinds of models that `train`, `race` and `path` know, and the kind of a model in a file.

A kind is a module of `fenchel.cli` with

    train, race, path                                click commands: fenchel train KIND, and so on
    READS                                            which options of `options.reading` it knows
    predict(model, data, given, probabilities) -> lines   what `fenchel predict` prints
    evaluate(model, data, given) -> (facts, table)      what `fenchel evaluate` prints; the table may be None
    inspect(model, top) -> (facts, table)             what `fenchel inspect` prints, beyond the common facts
"""

from importlib import import_module

import click

KINDS = {"lr": "fenchel.cli.lr", "maxent": "fenchel.cli.maxent"}

CLASSES = {"LogisticRegression": "lr", "LinearSVC": "lr", "MaxEnt": "maxent"}


def targets(verb: str) -> dict[str, str]:
    """kind: where its command for this verb is."""
    return {kind: f"{module}:{verb}" for kind, module in KINDS.items()}


def kind_of(model):
    """The module of the kind of a fitted model."""
    return import_module(KINDS[CLASSES[type(model).__name__]])


def reading_for(model, settings) -> dict:
    """The reading options that were given; one that has no meaning for the model is an error."""
    given = {name: value for name, value in settings.items() if value not in (None, False)}
    for name in given:
        if name not in kind_of(model).READS:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} has no meaning for a {type(model).__name__} model.")
    return given
