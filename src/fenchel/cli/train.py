"""fenchel train: fit a model and save it with its certificate."""

import os
import warnings
from inspect import cleandoc

import click

import fenchel
from fenchel.cli import options
from fenchel.cli.cluster import cluster
from fenchel.cli.failures import FAILED, Failure, require_place, writing
from fenchel.cli.groups import KindGroup, kind_help
from fenchel.cli.kinds import Kind
from fenchel.cli.origin import read_origin, settings_after, shared_counts, shared_sentence
from fenchel.cli.output import certificate_fact, print_json, say, source
from fenchel.cli.progress import gap_bar
from fenchel.cli.traces import save_trace, settings_of
from fenchel.cli.training import Training, read_held_out, read_training
from fenchel.trace import Status

REMEDIES = {
    Status.MAX_PASSES: "raise --max-passes",
    Status.MAX_SECONDS: "raise --max-seconds",
    Status.STALLED: "raise --tol, or scale the features",
    Status.DIVERGED: "scale the features, or use another --solver",
    Status.INTERRUPTED: "train again and let it run",
}

AFTER = """With --trace the gap is checked at every pass; otherwise less often where checking costs a pass, so
that training may end some passes later, with another model that is proven as good.

Exit code 0: proven within tol of the optimum. 1: not converged or interrupted, the model is saved all the
same. 2: wrong usage or wrong input."""

training_options = options.together(
    click.option(
        "-o",
        "--output",
        required=True,
        type=options.FILE,
        metavar="MODEL",
        help="The model file to write; an existing one is replaced once the new one is complete.",
    ),
    options.valid,
    options.init,
    options.solver,
    *options.solving,
    click.option(
        "--trace",
        type=options.FILE,
        metavar="FILE",
        help="Write a line of JSON per check: passes, seconds, objective, dual, gap. Checks at every pass.",
    ),
    click.option(
        "--checkpoint",
        type=options.FILE,
        metavar="FILE",
        help="Keep the run in this file now and then, so that a crash costs no more than what came since.",
    ),
    click.option(
        "--every",
        type=options.NOT_NEGATIVE,
        default=60.0,
        metavar="S",
        help="Seconds between two checkpoints; 0: after every step.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Train on shards by so many processes of this machine. Wants the extra dask.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Train on shards by the workers of a Dask cluster, as tcp://HOST:8786. Wants the extra dask.",
    ),
    options.flag(
        "--resume", "Go on from --checkpoint, if the file is there, to the bit as if never stopped."
    ),
    options.quiet,
    options.json,
)


def _command(kind: Kind) -> click.Command:
    """fenchel train KIND."""
    text = kind_help(kind, "train", f"Train {kind.makes} on {kind.file}.\n\n{cleandoc(kind.about)}", AFTER)

    @click.command(kind.name, help=text, short_help=kind.summary)
    @click.argument("data", type=options.FILE)
    @training_options
    @options.other_constant(kind.other_constant)
    @options.together(*kind.options)
    def command(data, output, valid, init, trace, quiet, as_json, **settings):
        kept = [settings.pop(name) for name in ("checkpoint", "every", "resume")]
        where = [settings.pop(name) for name in ("workers", "scheduler")]
        require_places((output, trace, kept[0]), (data, valid, settings.get("template")))
        options.require_one_stdin(data, valid)
        keepers = _keepers(*kept)
        origin = read_origin(kind, init)
        settings, taken = settings_after(kind, origin, settings)
        training = read_training(kind, data, settings, quiet)
        facts = {"kind": kind.name, "data": {"file": data, kind.noun + "s": training.examples.n}}
        if origin:
            shared = shared_counts(training.model.shared_with(origin, training.data))
            say(shared_sentence(init, shared, taken), quiet)
            facts["init"] = {"model": init, "shared": shared}
        held_out = read_held_out(training, valid, settings, quiet)
        with cluster(training.data, *where, quiet):
            _fit_and_save(training, origin, held_out, output, trace, keepers, quiet)
        if valid:
            measure, score = kind.measure(training.examples), kind.score(training.model, held_out)
            say(f"{measure} {score:.6g} on {source(valid)}", quiet)
            facts["valid"] = {"file": valid, "measure": measure, "score": score}
        if as_json:
            model = training.model
            certificate = certificate_fact(model.certificate_)
            print_json({"model": output, **facts, "solver": model.trace_.solver, "certificate": certificate})
        _finish(training.model, output)

    return command


@click.group(cls=KindGroup, make=_command)
def train():
    """Train a model of some kind and save it with its certificate.

    \b
    Example:
      fenchel train lr train.svm -o model.fenchel -C 0.1 --valid test.svm

    `fenchel train KIND --help` lists the options.
    """


def _keepers(checkpoint, every, resume) -> list:
    """The callback that keeps the run, if one is asked for."""
    if checkpoint is None:
        if resume or options.given("every"):
            raise click.UsageError("--resume and --every go with --checkpoint FILE.")
        return []
    return [fenchel.Checkpoint(checkpoint, every, resume)]


def _fit_and_save(training: Training, origin, held_out, output, trace, keepers, quiet):
    """Fit under the bar, then save the model and its trace, and tell how good the model provably is.

    A model that fell short of tol, or was interrupted, is saved all the same: it has its certificate.
    """
    model, watch = training.model, {}
    if trace:  # each check may cost a pass, but a curve wants one point a pass
        watch = {"check_every": 1.0, "validate": held_out and training.validation(held_out)}
    name = "training" if model.solver == "auto" else model.solver
    with gap_bar(model.tol, quiet, training.kind.compiling, name) as callbacks, warnings.catch_warnings():
        from sklearn.exceptions import ConvergenceWarning

        warnings.simplefilter("ignore", ConvergenceWarning)  # `_finish` says it in the words of options
        warnings.showwarning = lambda message, *_: say(f"fenchel: warning: {message}")
        model.set_params(callbacks=[*callbacks, *keepers])
        model.fit_encoded(training.data, origin=origin, **watch)
    with writing(output):
        model.save(output)
    if trace:
        save_trace(trace, model.trace_, model.certificate_, settings_of(model))
    if model.certificate_.converged:  # else `_finish` says it as a warning
        say(f"{model.trace_.solver} {model.certificate_}", quiet)
    say(f"model written to {output}", quiet)


def require_places(outputs, inputs) -> None:
    """Refuse output files that cannot be written or would replace another file of the call."""
    places = [os.path.realpath(path) for path in (*outputs, *inputs) if path and path != "-"]
    for path in filter(None, outputs):
        if places.count(os.path.realpath(path)) > 1:
            raise Failure(f"{path}: named twice, once to be written; give each file its own name")
        require_place(path)


def _finish(model, output):
    """End with exit code 1 and a warning unless tol was reached."""
    certificate = model.certificate_
    if certificate.converged:
        return
    say(f"fenchel: warning: {model.trace_.solver} {certificate}")
    remedy = REMEDIES[certificate.status]
    say(f"fenchel: warning: {output} holds the best model so far; to reach --tol {model.tol:g}, {remedy}")
    click.get_current_context().exit(FAILED)
