"""fenchel train: fit a model and save it with its certificate."""

import os
import warnings

import click

from fenchel.cli import kinds, options
from fenchel.cli.failures import FAILED, Failure, require_place, writing
from fenchel.cli.groups import LazyGroup
from fenchel.cli.output import say
from fenchel.cli.progress import gap_bar
from fenchel.cli.traces import save_trace
from fenchel.trace import Status


@click.group(cls=LazyGroup, targets=kinds.targets("train"), subcommand_metavar="KIND ...")
def train():
    """Train a model of some kind and save it with its certificate.

    \b
    Example:
      fenchel train lr train.svm -o model.fenchel -C 0.1 --valid test.svm

    `fenchel train KIND --help` lists the options.
    """


training_options = options.together(
    click.option(
        "-o",
        "--output",
        required=True,
        metavar="MODEL",
        help="The model file to write; an existing one is replaced once the new one is complete.",
    ),
    options.valid,
    options.solver,
    *options.solving,
    click.option(
        "--trace",
        metavar="FILE",
        help="Write a line of JSON per check: passes, seconds, objective, dual, gap. Checks at every pass.",
    ),
    options.quiet,
)

REMEDIES = {
    Status.MAX_PASSES: "raise --max-passes",
    Status.MAX_SECONDS: "raise --max-seconds",
    Status.STALLED: "raise --tol, or scale the features",
    Status.DIVERGED: "scale the features, or use another --solver",
    Status.INTERRUPTED: "train again and let it run",
}


def fit_and_save(model, fit, *, output, trace=None, quiet=False, validate=None) -> None:
    """Run `fit` under the bar, then save the model and its trace, and tell how good the model provably is.

    A model that fell short of tol, or was interrupted, is saved all the same: it has its certificate.
    """
    if trace:  # each check may cost a pass, but a curve wants one point a pass
        model._watch = {"check_every": 1.0} | ({"validate": validate} if validate else {})
    with gap_bar(model.tol, quiet) as callbacks, warnings.catch_warnings():
        from sklearn.exceptions import ConvergenceWarning

        warnings.simplefilter("ignore", ConvergenceWarning)  # `finish` says it in the words of options
        model.set_params(callbacks=callbacks)
        fit()
    with writing(output):
        model.save(output)
    if trace:
        save_trace(trace, model.trace_, model.certificate_, _settings(model))
    if model.certificate_.converged:  # else `finish` says it as a warning
        say(f"{model.trace_.solver} {model.certificate_}", quiet)
    say(f"model written to {output}", quiet)


def require_places(output, trace, inputs) -> None:
    """Refuse output files that cannot be written or would replace another file of the call."""
    places = [os.path.realpath(path) for path in (output, trace, *inputs) if path and path != "-"]
    for path in filter(None, (output, trace)):
        if places.count(os.path.realpath(path)) > 1:
            raise Failure(f"{path}: named twice, once to be written; give each file its own name")
        require_place(path)


def finish(model, output) -> None:
    """End with exit code 1 and a warning unless tol was reached."""
    certificate = model.certificate_
    if certificate.converged:
        return
    say(f"fenchel: warning: {model.trace_.solver} {certificate}")
    remedy = REMEDIES[certificate.status]
    say(f"fenchel: warning: {output} holds the best model so far; to reach --tol {model.tol:g}, {remedy}")
    click.get_current_context().exit(FAILED)


def _settings(model):
    """Seed, constant and tol of a model."""
    settings = model.get_params(deep=False)
    if settings.get("sigma2") is not None:
        settings["C"] = None
    return settings | {"seed": settings["random_state"]}
