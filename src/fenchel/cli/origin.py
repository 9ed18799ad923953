"""Going on from a saved model: `train --init MODEL`."""

import click

from fenchel.cli import options
from fenchel.cli.failures import Failure
from fenchel.cli.kinds import Kind

# What belongs to a run, and not to the model it makes.
RUN = {"solver", "tol", "max_seconds"}
CONSTANTS = {"C", "sigma2", "c1", "c2", "l1_ratio"}  # one that is given takes the place of all


def read_origin(kind: Kind, path: str | None):
    """The model to go on from; None without a path, and a Failure if it is of another kind."""
    if path is None:
        return None
    from fenchel.saved import load

    model = load(path)
    if type(model).__name__ not in kind.classes:
        wanted = " or ".join(kind.classes)
        raise Failure(f"{path}: a {type(model).__name__} model, expected {wanted} as `{kind.name}` trains it")
    return model


def settings_after(kind: Kind, model, settings: dict) -> tuple[dict, dict]:
    """The options of a command, those not given as the model was trained; and which of them that changed."""
    if model is None:
        return settings, {}
    known = {name: value for name, value in kind.settings_of(model).items() if name not in RUN}
    if any(options.given(name) for name in CONSTANTS & settings.keys()):
        known = {name: value for name, value in known.items() if name not in CONSTANTS}
    taken = {name: value for name, value in known.items() if not options.given(name)}
    changed = {name: value for name, value in taken.items() if settings.get(name, value) != value}
    settings = settings | taken
    if settings.get("loss") == "hinge" and settings["solver"] != "sgd":
        raise click.UsageError(
            "--init: of the hinge loss only --solver sgd starts from weights; the others start from dual "
            "variables, which a model file does not hold."
        )
    return settings, changed


def shared_counts(shared: dict) -> dict[str, tuple[int, int]]:
    """How many labels, features, ... of the data the model knows, and how many there are, if any."""
    return {what: (match.shared, match.total) for what, match in shared.items() if match.total}


def shared_sentence(path: str, counts: dict[str, tuple[int, int]], settings: dict) -> str:
    """What is taken over from a model."""
    parts = [f"{known:,} of {total:,} {_plural(what)}" for what, (known, total) in counts.items()]
    if not any(known for known, _ in counts.values()):
        return f"{path}: knows none of {' and '.join(parts).replace('0 of ', '')}; training starts anew"
    told = ", ".join(f"{name} = {getattr(value, 'name', value)}" for name, value in settings.items())
    return f"{path}: going on from its weights of {', '.join(parts)}" + (f"; its {told}" if told else "")


def _plural(noun):
    if noun == "class":
        return "classes"
    head, _, rest = noun.partition(" ")
    return f"{head}s {rest}".rstrip()
