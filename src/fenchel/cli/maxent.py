"""The kind `maxent`: maximum entropy models of events with named features, on event files."""

import click

from fenchel.cli import options
from fenchel.cli.events import read, reading_like, reading_of
from fenchel.cli.lr import class_table
from fenchel.cli.output import Table, in_pieces, label_text, listed, say, source
from fenchel.cli.path import Task, path_options, require_path, run_path
from fenchel.cli.race import race_options, run_race
from fenchel.cli.train import finish, fit_and_save, require_places, training_options

READS = {"format", "explicit", "values", "real_values", "section"}
TOP = 20

data_options = options.together(
    options.event_format(
        required=True,
        help="opennlp: on each line a label and its features. megam: the same, $$$WEIGHT and sections too. "
        "tadm: events of candidates with counts.",
    ),
    *options.event_marks,
    options.loss,
    click.option(
        "--min-count",
        type=click.IntRange(min=1),
        default=1,
        metavar="N",
        help="Leave out features that fewer events have.",
    ),
)

sigma2_option = click.option(
    "--sigma2",
    type=options.POSITIVE,
    default=None,
    show_default="-C holds",
    metavar="S",
    help="Instead of -C: the variance of the prior, as in mean loss + ‖w‖²/(2·S).",
)


@click.command(short_help="Labels of events with named features.")
@click.argument("data")
@training_options
@sigma2_option
@data_options
def train(data, output, valid, trace, quiet, **settings):
    """Train a maximum entropy model (with --loss hinge: its max-margin counterpart) on the event file DATA.

    Features are names, crossed with all labels; or, in files of candidates (tadm, megam --explicit), each
    candidate's own. The model remembers the format: predict and evaluate need not be told. Gzip is
    gunzipped, - is standard input. There is no intercept: add a feature to all events for one.

    \b
    Example:
      fenchel train maxent train.events -o model.fenchel --format opennlp --sigma2 10 --valid test.events

    Exit code 0: proven within tol of the optimum. 1: not converged or interrupted, the model is saved all
    the same. 2: wrong usage or wrong input.
    """
    require_places(output, trace, (data, valid))
    options.require_one_stdin(data, valid)
    model, reading = _estimator(settings), _reading(settings)
    events = read(data, reading, min_count=settings["min_count"], quiet=quiet)
    held_out = valid and read(valid, reading, vocabulary=events.vocabulary, quiet=quiet)
    validate = held_out and _validation(settings, events, held_out)
    model._read_as = reading
    fit_and_save(
        model,
        lambda: model.fit_encoded(events),
        output=output,
        trace=trace,
        quiet=quiet,
        validate=validate,
    )
    if held_out:
        say(f"accuracy {_accuracy(model, held_out):.6g} on {source(valid)}", quiet)
    finish(model, output)


@click.command(short_help="Labels of events with named features.")
@click.argument("data")
@race_options
@sigma2_option
@data_options
def race(data, solvers, output, quiet, **settings):
    """Run several solvers on the same problem, made of the event file DATA.

    Prints a table, the first to reach tol on top. Seconds are the solver's own: neither compiling nor
    checking the gap is counted. --max-passes and --max-seconds hold for each solver.

    \b
    Example:
      fenchel race maxent train.events --format opennlp --solvers cd-dual,lbfgs,scgis --output race/

    Exit code 0: all converged. 1: some did not. 2: wrong usage or wrong input.
    """
    model, reading = _estimator(settings), _reading(settings)
    events = read(data, reading, min_count=settings["min_count"], quiet=quiet)
    settings |= {"C": model.C if model.sigma2 is None else None}
    run_race(model.problem(events), model.problem(_few(events)), solvers, output, quiet, settings)


@click.command(short_help="Labels of events with named features.")
@click.argument("data")
@path_options
@click.option(
    "--constant",
    type=click.Choice(["C", "sigma2"]),
    default="C",
    help="What goes from --from to --to: C, or sigma2 as in mean loss + ‖w‖²/(2·sigma2).",
)
@data_options
def path(data, valid, cv, output, traces, quiet, constant, **settings):
    """Train on the event file DATA for a whole sequence of constants, from strong to weak regularisation.

    Each model starts from the one before. Prints a table: passes, seconds, proven gap and, with --valid or
    --cv, the accuracy of each constant; then the best. --max-passes and --max-seconds hold for each.

    \b
    Example:
      fenchel path maxent train.events --format opennlp --from 0.01 --to 10 --cv 5 -o best.fenchel

    Exit code 0: every model is proven within tol of its optimum. 1: some are not. 2: wrong usage or input.
    """
    require_path(output, traces, data, valid, cv)
    options.require_one_stdin(data, valid)
    reading = _reading(settings)
    events = read(data, reading, min_count=settings["min_count"], quiet=quiet)
    held_out = valid and read(valid, reading, vocabulary=events.vocabulary, quiet=quiet)
    task = _path_task(events, held_out, reading, constant, settings)
    run_path(task, settings, cv, output, traces, quiet)


def _path_task(events, held_out, reading, constant, settings):
    model = _estimator(settings)

    def fold(train, test):
        part = events.take(train)
        return model.problem(part), _validation(settings, part, events.take(test))

    def fitted(fit):
        best = _estimator(settings).set_params(**{constant: fit.constant})
        best._read_as = reading
        best._remember(fit.result)
        return best.set_weights(events, fit.result.w)

    return Task(
        problem=model.problem(events),
        small=model.problem(_few(events)),
        strata=_strata(events),
        fold=fold,
        fitted=fitted,
        validate=held_out and _validation(settings, events, held_out),
        constant=constant,
    )


def predict(model, data, given, probabilities):
    """A line per event: its label, and behind it the probability of each label if asked for."""
    events = _read_for(model, data, given)
    labels = map(_text, model.predict(events).tolist())
    if not probabilities:
        return in_pieces(labels)
    rows = model.predict_proba(events)
    rows = [list(row.values()) for row in rows] if events.joint else rows.tolist()
    pairs = zip(labels, rows, strict=True)
    return in_pieces("\t".join([label, *(f"{p:.6g}" for p in row)]) for label, row in pairs)


def evaluate(model, data, given):
    """Accuracy, log-loss where there are probabilities, and the scores of each label."""
    import numpy as np

    events = _read_for(model, data, given)
    facts = {"events": f"{events.n}"}
    if events.weight is not None:
        facts["weight"] = f"{events.weight.sum():.6g}; accuracy and log-loss count an event by its weight"
    facts["accuracy"] = f"{_accuracy(model, events):.6g}"
    if hasattr(model, "predict_log_proba"):
        facts["log-loss"] = _log_loss(model, events)
    if events.joint:
        return facts, None
    return facts, class_table(np.array(events.y), model.predict(events), model.classes_)


def inspect(model, top):
    """Labels and sizes, and the weights that are heaviest."""
    import numpy as np

    columns, labels = ["feature", "weight"], model.layout_ == "crossed"
    facts = {"layout": "crossed: each feature has a weight for each label"}
    if labels:
        facts["labels"] = listed([_text(label) for label in model.classes_.tolist()])
        columns.append("label")
    else:
        facts["layout"] = "joint: each candidate of an event has features of its own"
    facts["features"] = f"{len(model.vocabulary_):,}"
    facts["weights"] = f"{model.coef_.size:,}, {np.count_nonzero(model.coef_):,} of them other than 0"
    if model._read_as:
        facts["read as"] = ", ".join(f"{name}={value}" for name, value in model._read_as.items())
    rows = [
        [one.feature, f"{one.weight:+.6g}", _text(one.label)][: len(columns)]
        for one in model.top_features(top)
    ]
    return facts, Table(columns, rows, {"weight"}, f"heaviest weights ({len(rows)} of {model.coef_.size:,})")


# ---- settings and data


def _estimator(settings):
    from fenchel.estimators.maxent import MaxEnt

    if settings.get("sigma2") is not None and options.given("C"):
        raise click.UsageError("-C and --sigma2 are two ways to say the same; give one of them.")
    return MaxEnt(
        **options.estimator_settings(settings),
        sigma2=settings.get("sigma2"),
        loss=settings["loss"],
        min_count=settings["min_count"],
    )


def _reading(settings):
    return reading_of({name: settings[name] for name in ("format", "explicit", "values", "real_values")})


def _read_for(model, data, given):
    """Events for a model; a warning if it knows nothing of what they hold."""
    events = read(data, reading_like(model, given), vocabulary=model.vocabulary_)
    if not events.rows.nnz:
        unknown = f"{source(data)}: the model knows none of its features; is it of another format?"
        say(f"fenchel: warning: {unknown}")
    return events


def _few(events, size=5):
    """A few events of each label: enough to compile every kernel."""
    import numpy as np

    strata = _strata(events)
    return events.take(np.concatenate([np.flatnonzero(strata == k)[:size] for k in np.unique(strata)]))


def _strata(events):
    """The number of each event's label; of candidates there is nothing to balance by."""
    import numpy as np

    return np.zeros(events.n, dtype=int) if events.joint else events.targets


def _text(label):
    return "" if label is None else label_text(label)


# ---- scores


def _accuracy(model, events):
    return model.score(events, events.y, events.weight)


def _validation(settings, events, held_out):
    """validate(w, b) of `solve`: the accuracy on held-out events."""
    model = _estimator(settings)
    return lambda w, b: _accuracy(model.set_weights(events, w), held_out)


def _log_loss(model, events):
    """−mean log p(truth), in nats; events whose label the model does not know are left out, and counted."""
    import numpy as np

    logarithms = model.predict_log_proba(events)
    if not events.joint:
        labels = model.classes_.tolist()
        logarithms = [dict(zip(labels, row, strict=True)) for row in logarithms.tolist()]
    weight = np.ones(events.n) if events.weight is None else events.weight
    pairs = [
        (w, truth if isinstance(truth, dict) else {truth: 1.0}, logs)
        for w, truth, logs in zip(weight, events.y, logarithms, strict=True)
    ]
    known = [
        (w, sum(q * logs[k] for k, q in truth.items()))
        for w, truth, logs in pairs
        if truth.keys() <= logs.keys()
    ]
    if not known:
        return "none: the model knows no label of these events"
    loss = -sum(w * value for w, value in known) / sum(w for w, _ in known)
    missing = events.n - len(known)
    rest = f"; {missing} of {events.n} events have a label that is new to the model" if missing else ""
    return f"{loss:.6g} nats an event{rest}"
