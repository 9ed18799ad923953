"""The kinds of models that the command line knows, and the kind of a model in a file.

A kind is one object, described in `kinds.base`: a module here and a line in KINDS. Every verb then knows it.
"""

from functools import cache
from importlib import import_module

import click

from fenchel.cli.failures import Failure
from fenchel.cli.kinds.base import Kind

KINDS = {
    "lr": "fenchel.cli.kinds.lr:Linear",
    "maxent": "fenchel.cli.kinds.maxent:Events",
    "tagger": "fenchel.cli.kinds.tagger:WordTagger",
    "crf": "fenchel.cli.kinds.crf:Chain",
    "parser": "fenchel.cli.kinds.parser:Parser",
}


@cache
def load_kind(name: str) -> Kind:
    """The kind of that name."""
    module, _, attribute = KINDS[name].partition(":")
    return getattr(import_module(module), attribute)(name)


def kind_of(model) -> Kind:
    """The kind of a fitted model."""
    name = type(model).__name__
    for kind in map(load_kind, KINDS):
        if name in kind.classes:
            return kind
    if hasattr(model, "chain_"):
        raise Failure("a model of CRFsuite or of compat.CRF; `fenchel convert --to fenchel` makes it a `crf`")
    raise Failure(f"a {name} model is for use in Python only: fenchel.load reads it there")


def reading_for(model, settings) -> dict:
    """The reading options that were given; one that has no meaning for the model is an error."""
    given = {name: value for name, value in settings.items() if value not in (None, False)}
    for name in given:
        if name not in kind_of(model).reads:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} has no meaning for a {type(model).__name__} model.")
    return given
