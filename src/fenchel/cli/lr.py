"""The kind `lr`: logistic regression and support vector machines of two classes or more, on libsvm files."""

import time

import click

from fenchel.cli import options
from fenchel.cli.failures import Failure
from fenchel.cli.output import Table, count, in_pieces, label_text, listed, say, source
from fenchel.cli.path import Task, path_options, require_path, run_path
from fenchel.cli.race import race_options, run_race
from fenchel.cli.train import finish, fit_and_save, require_places, training_options

READS = {"zero_based"}
TOP = 20

data_options = options.together(
    options.loss,
    click.option("--no-intercept", is_flag=True, help="Leave the intercept out."),
    click.option(
        "--intercept-scaling",
        type=options.POSITIVE,
        default=None,
        show_default="free intercept; 1 for the hinge loss",
        metavar="S",
        help="Make the intercept the weight of a constant feature of this value, penalised like the others.",
    ),
    click.option(
        "--class-weight",
        type=click.Choice(["balanced"]),
        default=None,
        show_default="all examples weigh 1",
        help="balanced: each class weighs the same in total, n / (classes · its examples) per example.",
    ),
    click.option(
        "--features",
        type=click.IntRange(min=1),
        default=None,
        show_default="the largest index in DATA",
        metavar="N",
        help="Number of features, for when other files hold some that DATA lacks.",
    ),
    options.zero_based,
)


@click.command(short_help="Two classes or more, from a libsvm file.")
@click.argument("data")
@training_options
@data_options
def train(data, output, valid, trace, quiet, **settings):
    """Train logistic regression (or, with --loss hinge, a support vector machine) on the libsvm file DATA.

    DATA has one example a line: label index:value ..., indices from 1 and increasing. Of more than two
    different labels it makes a multinomial model (with --loss hinge: Crammer and Singer's machine).
    Gzip is gunzipped whatever its name, - is standard input.

    \b
    Example:
      fenchel train lr train.svm -o model.fenchel -C 0.1 --tol 1e-4 --valid test.svm

    With --trace the gap is checked at every pass; otherwise less often where checking costs a pass, so that
    training may end some passes later, with another model that is proven as good.

    Exit code 0: proven within tol of the optimum. 1: not converged or interrupted, the model is saved all
    the same. 2: wrong usage or wrong input.
    """
    require_places(output, trace, (data, valid))
    _check(settings, data, valid)
    X, y = _read_classes(data, settings, quiet)
    held_out = valid and _read_like(valid, X.shape[1], _classes(y), settings["zero_based"], quiet)
    validate = held_out and _validation(settings, _classes(y), *held_out)
    model = _estimator(settings)
    fit_and_save(model, lambda: model.fit(X, y), output=output, trace=trace, quiet=quiet, validate=validate)
    if held_out:
        say(f"accuracy {model.score(*held_out):.6g} on {source(valid)}", quiet)
    finish(model, output)


@click.command(short_help="Two classes or more, from a libsvm file.")
@click.argument("data")
@race_options
@data_options
def race(data, solvers, output, quiet, **settings):
    """Run several solvers on the same problem, made of the libsvm file DATA.

    Prints a table, the first to reach tol on top. Seconds are the solver's own: neither compiling nor
    checking the gap is counted. --max-passes and --max-seconds hold for each solver.

    \b
    Example:
      fenchel race lr train.svm --solvers cd-dual,lbfgs,tron --tol 1e-6 --output race/

    Exit code 0: all converged. 1: some did not. 2: wrong usage or wrong input.
    """
    _check(settings, data)
    X, y = _read_classes(data, settings, quiet)
    run_race(_problem(X, y, settings), _small(X, y, settings), solvers, output, quiet, settings)


@click.command(short_help="Two classes or more, from a libsvm file.")
@click.argument("data")
@path_options
@data_options
def path(data, valid, cv, output, traces, quiet, **settings):
    """Train on the libsvm file DATA for a whole sequence of C, from strong to weak regularisation.

    Each model starts from the one before. Prints a table: passes, seconds, proven gap and, with --valid or
    --cv, the accuracy of each C; then the best C. --max-passes and --max-seconds hold for each C.

    \b
    Example:
      fenchel path lr train.svm --from 0.001 --to 100 --cv 5 -o best.fenchel

    Exit code 0: every model is proven within tol of its optimum. 1: some are not. 2: wrong usage or input.
    """
    require_path(output, traces, data, valid, cv)
    _check(settings, data, valid)
    X, y = _read_classes(data, settings, quiet)
    held_out = valid and _read_like(valid, X.shape[1], _classes(y), settings["zero_based"], quiet)
    run_path(_path_task(X, y, held_out, settings), settings, cv, output, traces, quiet)


def _path_task(X, y, held_out, settings):
    classes = _classes(y)

    def fold(train, test):
        validate = _validation(settings, _some(y[train]), X[test], y[test])
        return _problem(X[train], y[train], settings), validate

    def fitted(fit):
        model = _shell(settings | {"C": fit.constant}, classes, X.shape[1])
        model._remember(fit.result)
        model._keep(fit.result.w, fit.result.b)
        return model

    return Task(
        problem=_problem(X, y, settings),
        small=_small(X, y, settings),
        strata=y,
        fold=fold,
        fitted=fitted,
        validate=held_out and _validation(settings, classes, *held_out),
    )


def predict(model, data, given, probabilities):
    """A line per example: its label, and behind it the probability of each class if asked for."""
    X, _ = _read(data, model.n_features_in_, **given)
    labels = map(label_text, model.predict(X).tolist())
    if not probabilities:
        return in_pieces(labels)
    rows = model.predict_proba(X).tolist()
    pairs = zip(labels, rows, strict=True)
    return in_pieces("\t".join([label, *(f"{p:.6g}" for p in row)]) for label, row in pairs)


def evaluate(model, data, given):
    """Accuracy, log-loss where there are probabilities, and the scores of each class."""
    from fenchel.metrics import accuracy, log_loss

    X, y = _read_like(data, model.n_features_in_, model.classes_, quiet=True, **given)
    predicted = model.predict(X)
    facts = {"examples": f"{y.size}", "accuracy": f"{accuracy(y, predicted):.6g}"}
    if hasattr(model, "predict_log_proba"):
        loss = log_loss(y, model.predict_log_proba(X), model.classes_)
        facts["log-loss"] = f"{loss:.6g} nats an example"
    return facts, class_table(y, predicted, model.classes_)


def class_table(truth, predicted, classes):
    """Precision, recall and F1 of each class."""
    from fenchel.metrics import class_scores

    columns = ["class", "precision", "recall", "F1", "examples"]
    rows = [
        [label_text(label), *(f"{score:.4f}" for score in scores), str(support)]
        for label, *scores, support in zip(*class_scores(truth, predicted, classes), strict=True)
    ]
    return Table(columns, rows, numbers=set(columns[1:] if truth.dtype.kind == "U" else columns))


def inspect(model, top):
    """Classes and sizes, and the features that weigh most."""
    import numpy as np

    from fenchel.estimators.explanation import heaviest

    labels, w = [label_text(label) for label in model.classes_.tolist()], model.coef_
    used = f"{w.shape[1]:,}, {np.count_nonzero(w.any(axis=0)):,} of them with a weight other than 0"
    intercepts = ", ".join(f"{b:.6g}" for b in model.intercept_[:10]) + (", ..." if len(w) > 10 else "")
    facts = {"classes": listed(labels), "features": used, "intercept": intercepts}
    if len(labels) == 2:
        facts["classes"] += f" (a positive score says {labels[1]})"
    places = zip(*np.unravel_index(heaviest(w.ravel(), top), w.shape), strict=True)
    rows = [_weight_cells(w[k, j], j, k, labels) for k, j in places if w[k, j]]
    title = f"heaviest features, counted from 1 ({len(rows)} of {w.size:,} weights)"
    last = "speaks for" if len(labels) == 2 else "class"
    return facts, Table(["feature", "weight", last], rows, {"feature", "weight"}, title)


def _weight_cells(weight, feature, output, labels):
    """One weight: of two classes, the one it speaks for; of more, the one it is of."""
    label = labels[output] if len(labels) > 2 else labels[int(weight > 0.0)]
    return [str(feature + 1), f"{weight:+.6g}", label]


# ---- reading


def _check(settings, *files):
    if settings["no_intercept"] and settings["intercept_scaling"] is not None:
        raise click.UsageError("--intercept-scaling has no meaning with --no-intercept.")
    options.require_one_stdin(*files)


def _read(path, n_features, zero_based=False):
    from fenchel.io.libsvm import read_libsvm

    return read_libsvm(path, n_features=n_features, zero_based=zero_based)


def _read_classes(data, settings, quiet):
    """Training data: two classes at least."""
    import fenchel.io.libsvm  # noqa: F401  before the clock starts: it imports Numba

    started = time.perf_counter()
    X, y = _read(data, settings["features"], settings["zero_based"])
    seconds = time.perf_counter() - started
    sizes = f"{count(X.shape[0], 'example')}, {count(X.shape[1], 'feature')}, {count(X.nnz, 'non-zero')}"
    say(f"{source(data)}: {sizes}, read in {seconds:.2g} s", quiet)
    classes = _classes(y)
    if len(classes) == 1:
        only = label_text(classes[0])
        raise Failure(f"{source(data)}: all labels are {only}, expected two classes or more")
    return X, y


def _read_like(path, n_features, classes, zero_based=False, quiet=False):
    """Labelled data for a model of these features and classes."""
    import numpy as np

    X, y = _read(path, n_features, zero_based)
    unseen = y[~np.isin(y, classes)]
    if unseen.size:
        raise Failure(
            f"{source(path)}: label {label_text(unseen[0])}, but the model's are {listed(classes.tolist())}"
        )
    say(f"{source(path)}: {count(X.shape[0], 'example')}", quiet)
    return X, y


def _classes(y):
    import numpy as np

    return np.unique(y)


def _some(y):
    """The classes of a part of the data; more than one."""
    classes = _classes(y)
    if len(classes) == 1:
        raise Failure("a fold leaves examples of one class only to train on; use a smaller --cv")
    return classes


# ---- training


def _estimator(settings):
    from fenchel.estimators.flat import LinearSVC, LogisticRegression

    estimator = LogisticRegression if settings["loss"] == "log" else LinearSVC
    return estimator(
        **options.estimator_settings(settings),
        fit_intercept=not settings["no_intercept"],
        intercept_scaling=settings["intercept_scaling"],
        class_weight=settings["class_weight"],
    )


def _shell(settings, classes, n_features):
    """The estimator for data of these sizes, without weights yet."""
    model = _estimator(settings)
    model.classes_, model.n_features_in_ = classes, n_features
    return model


def _validation(settings, classes, X, y):
    """validate(w, b) of `solve`: the accuracy on held-out data."""
    model = _shell(settings, classes, X.shape[1])

    def validate(w, b):
        model._keep(w, b)
        return model.score(X, y)

    return validate


# ---- the problem


def _problem(X, y, settings):
    """The problem the estimator would make of these data."""
    from fenchel.problems import binary, flat

    classes, weight = _some(y), None
    if settings["class_weight"]:
        from sklearn.utils.class_weight import compute_sample_weight

        weight = compute_sample_weight(settings["class_weight"], y)
    return (binary if classes.size == 2 else flat)(
        X,
        classes.searchsorted(y),
        loss=settings["loss"],
        fit_intercept=not settings["no_intercept"],
        intercept_scaling=settings["intercept_scaling"],
        sample_weight=weight,
        threads=settings["threads"],
        C=settings.get("C", 1.0),
    )


def _small(X, y, settings, size=20):
    """The problem of a few examples of each class: enough to compile every kernel."""
    import numpy as np

    few = np.concatenate([np.flatnonzero(y == label)[:size] for label in _classes(y)])
    return _problem(X[few], y[few], settings | {"class_weight": None})
