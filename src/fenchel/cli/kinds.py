"""The kinds of models that `train` and `race` know, and the kind of a model in a file.

A kind is a module of `fenchel.cli` with

    train, race                                      click commands: fenchel train KIND, fenchel race KIND
    predict(model, data, **options) -> lines          what `fenchel predict` prints
    evaluate(model, data, **options) -> (facts, table)  what `fenchel evaluate` prints
    inspect(model, top) -> (facts, table)             what `fenchel inspect` prints, beyond the common facts
"""

from importlib import import_module

KINDS = {"lr": "fenchel.cli.lr"}

CLASSES = {"LogisticRegression": "lr", "LinearSVC": "lr"}


def targets(verb: str) -> dict[str, str]:
    """kind: where its command for this verb is."""
    return {kind: f"{module}:{verb}" for kind, module in KINDS.items()}


def kind_of(model):
    """The module of the kind of a fitted model."""
    return import_module(KINDS[CLASSES[type(model).__name__]])
