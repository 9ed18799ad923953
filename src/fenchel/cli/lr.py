"""The kind `lr`: logistic regression and support vector machines of two classes, on libsvm files."""

import time

import click

from fenchel.cli import options
from fenchel.cli.failures import Failure
from fenchel.cli.output import Table, count, label_text, say
from fenchel.cli.race import race_options, run_race
from fenchel.cli.train import finish, fit_and_save, require_places, training_options

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
        help="balanced: each class weighs the same in total, n / (2 · its examples) per example.",
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


@click.command(short_help="Two classes, from a libsvm file.")
@click.argument("data")
@training_options
@data_options
def train(data, output, valid, trace, quiet, **settings):
    """Train logistic regression (or, with --loss hinge, a support vector machine) on the libsvm file DATA.

    DATA has one example a line: label index:value ..., indices from 1 and increasing, two different labels.
    A name that ends in .gz is gunzipped, - is standard input.

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
    classes = _classes(y)
    held_out = valid and _read_like(valid, X.shape[1], classes, settings["zero_based"], quiet)
    model = _estimator(settings)
    validate = held_out and _validation(model, classes, *held_out)
    fit_and_save(model, lambda: model.fit(X, y), output=output, trace=trace, quiet=quiet, validate=validate)
    if held_out:
        _tell_accuracy(model, valid, *held_out, quiet)
    finish(model, output)


@click.command(short_help="Two classes, from a libsvm file.")
@click.argument("data")
@race_options
@data_options
def race(data, solvers, output, quiet, **settings):
    """Run several solvers on the same two-class problem, made of the libsvm file DATA.

    Prints a table, the first to reach tol on top. Seconds are the solver's own: neither compiling nor
    checking the gap is counted. --max-passes and --max-seconds hold for each solver.

    \b
    Example:
      fenchel race lr train.svm --solvers cd-dual,lbfgs,tron --tol 1e-6 --output race/

    Exit code 0: all converged. 1: some did not. 2: wrong usage or wrong input.
    """
    _check(settings, data)
    X, y = _read_classes(data, settings, quiet)
    few = _few(y)
    run_race(
        _problem(X, y, settings),
        _problem(X[few], y[few], settings | {"class_weight": None}),
        solvers,
        output,
        quiet,
        settings,
    )


def predict(model, data, *, probabilities, zero_based):
    """A line per example: its label, and behind it the probability of each class if asked for."""
    if probabilities and not hasattr(model, "predict_proba"):
        raise Failure(f"a {type(model).__name__} has no probabilities; train with --loss log")
    X, _ = _read(data, model.n_features_in_, zero_based)
    labels = [label_text(label) for label in model.classes_]
    codes = (model.decision_function(X) > 0.0).astype(int).tolist()
    if not probabilities:
        return (labels[code] for code in codes)
    rows = model.predict_proba(X).tolist()
    return (f"{labels[k]}\t{p[0]:.6g}\t{p[1]:.6g}" for k, p in zip(codes, rows, strict=True))


def evaluate(model, data, *, zero_based):
    """Accuracy, log-loss where there are probabilities, and the scores of each class."""
    from fenchel.metrics import accuracy, class_scores, log_loss

    X, y = _read_like(data, model.n_features_in_, model.classes_, zero_based, quiet=True)
    predicted = model.predict(X)
    facts = {"examples": f"{y.size}", "accuracy": f"{accuracy(y, predicted):.6g}"}
    if hasattr(model, "predict_log_proba"):
        loss = log_loss(y, model.predict_log_proba(X), model.classes_)
        facts["log-loss"] = f"{loss:.6g} nats an example"
    columns = ["class", "precision", "recall", "F1", "examples"]
    rows = [
        [label_text(label), *(f"{score:.4f}" for score in scores), str(support)]
        for label, *scores, support in zip(*class_scores(y, predicted, model.classes_), strict=True)
    ]
    return facts, Table(columns, rows, numbers=set(columns))


def inspect(model, top):
    """Classes and sizes, and the features that weigh most."""
    import numpy as np

    w = model.coef_[0]
    first, second = map(label_text, model.classes_)
    facts = {
        "classes": f"{first}, {second} (a positive score says {second})",
        "features": f"{w.size:,}, {np.count_nonzero(w):,} of them with a weight other than 0",
        "intercept": f"{model.intercept_[0]:.6g}",
    }
    heaviest = np.argsort(-np.abs(w), kind="stable")[:top]
    rows = [[str(j + 1), f"{w[j]:+.6g}", second if w[j] > 0.0 else first] for j in heaviest if w[j]]
    title = f"heaviest features, counted from 1 ({len(rows)} of {w.size:,})"
    return facts, Table(["feature", "weight", "speaks for"], rows, {"feature", "weight"}, title)


# ---- reading


def _check(settings, *files):
    if settings["no_intercept"] and settings["intercept_scaling"] is not None:
        raise click.UsageError("--intercept-scaling has no meaning with --no-intercept.")
    if files.count("-") > 1:
        raise click.UsageError("only one of DATA and --valid can be - (standard input).")


def _read(path, n_features, zero_based):
    from fenchel.io.libsvm import read_libsvm

    return read_libsvm(path, n_features=n_features, zero_based=zero_based)


def _read_classes(data, settings, quiet):
    """Training data: exactly two classes."""
    from fenchel.io.libsvm import read_libsvm  # before the clock starts: it imports Numba

    started = time.perf_counter()
    X, y = read_libsvm(data, n_features=settings["features"], zero_based=settings["zero_based"])
    seconds = time.perf_counter() - started
    sizes = f"{count(X.shape[0], 'example')}, {count(X.shape[1], 'feature')}, {count(X.nnz, 'non-zero')}"
    say(f"{_source(data)}: {sizes}, read in {seconds:.2g} s", quiet)
    classes = _classes(y)
    if len(classes) == 1:
        raise Failure(f"{_source(data)}: all labels are {label_text(classes[0])}, expected two classes")
    if len(classes) > 2:
        some = ", ".join(map(label_text, classes[:5])) + (", ..." if len(classes) > 5 else "")
        raise Failure(f"{_source(data)}: {len(classes)} classes ({some}), but lr takes two")
    return X, y


def _read_like(path, n_features, classes, zero_based, quiet):
    """Labelled data for a model of these features and classes."""
    import numpy as np

    X, y = _read(path, n_features, zero_based)
    unseen = y[~np.isin(y, classes)]
    if unseen.size:
        known = " and ".join(map(label_text, classes))
        raise Failure(f"{_source(path)}: label {label_text(unseen[0])}, but the model's are {known}")
    say(f"{_source(path)}: {count(X.shape[0], 'example')}", quiet)
    return X, y


def _classes(y):
    import numpy as np

    return np.unique(y)


def _source(path):
    return "<stdin>" if path == "-" else path


# ---- training


def _estimator(settings):
    from fenchel.estimators.flat import LinearSVC, LogisticRegression

    estimator = LogisticRegression if settings["loss"] == "log" else LinearSVC
    return estimator(
        C=settings["C"],
        solver=settings["solver"],
        tol=settings["tol"],
        fit_intercept=not settings["no_intercept"],
        intercept_scaling=settings["intercept_scaling"],
        class_weight=settings["class_weight"],
        max_iter=settings["max_passes"],
        max_seconds=settings["max_seconds"],
        random_state=settings["seed"],
        n_jobs=settings["threads"],
    )


def _validation(model, classes, X, y):
    """validate(w, b) of `solve`: the accuracy on held-out data."""
    from fenchel.metrics import accuracy

    truth = y == classes[1]

    def validate(w, b):
        w, b = model._unscaled(w, b)
        return accuracy(truth, X @ w + b > 0.0)

    return validate


def _tell_accuracy(model, path, X, y, quiet):
    from fenchel.metrics import accuracy

    say(f"accuracy {accuracy(y, model.predict(X)):.6g} on {_source(path)}", quiet)


# ---- the race


def _problem(X, y, settings):
    """The problem the estimator would make of these data."""
    from fenchel.problems import binary

    weight = None
    if settings["class_weight"]:
        from sklearn.utils.class_weight import compute_sample_weight

        weight = compute_sample_weight(settings["class_weight"], y)
    return binary(
        X,
        (y == _classes(y)[1]).astype(float),
        loss=settings["loss"],
        fit_intercept=not settings["no_intercept"],
        intercept_scaling=settings["intercept_scaling"],
        sample_weight=weight,
        threads=settings["threads"],
        C=settings["C"],
    )


def _few(y, size=20):
    """A few examples of each class: enough to compile every kernel."""
    import numpy as np

    return np.concatenate([np.flatnonzero(y == label)[:size] for label in _classes(y)])
