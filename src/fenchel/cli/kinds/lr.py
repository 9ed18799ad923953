"""The kind `lr`: logistic regression and support vector machines of two classes or more, on libsvm files."""

import os
from dataclasses import dataclass

import click

import fenchel
from fenchel.cli import options
from fenchel.cli.failures import Failure
from fenchel.cli.kinds.base import TERMINAL, Calls, Kind, Weights
from fenchel.cli.kinds.classes import class_table, confusion_table, label_lines
from fenchel.cli.kinds.proven import proven_facts
from fenchel.cli.output import HASHED, count, label_text, listed, source
from fenchel.cli.stored import refuse_reading, take_over
from fenchel.cli.unlabelled import with_labels
from fenchel.report.tables import Table, Told, number


@dataclass(frozen=True)
class Rows:
    """A libsvm file: X (n, d) sparse, y (n,)."""

    X: object
    y: object

    @property
    def n(self) -> int:
        return self.y.size

    def take(self, numbers) -> "Rows":
        return Rows(self.X[numbers], self.y[numbers])


@dataclass(frozen=True)
class StoredRows(Rows):
    """The same on disk: a folder of shards."""

    shards: "fenchel.Shards"

    @classmethod
    def of(cls, folder) -> "StoredRows":
        shards = fenchel.Shards(folder)
        shards.require("rows", "lr")
        return cls(shards.rows, shards.array("labels"), shards)

    def take(self, numbers) -> Rows:
        from fenchel._sparse import take

        return Rows(take(self.X, numbers).matrix, self.y[numbers])


READING = (
    options.count(
        "--features",
        None,
        "Number of features, for when other files hold some that DATA lacks.",
        show_default="the largest index in DATA",
    ),
    options.zero_based,
    options.hash_bits,
)


class Linear(Kind):
    """LogisticRegression, or with --loss hinge LinearSVC."""

    classes = ("LogisticRegression", "LinearSVC", "LogisticRegressionCV")
    summary = "Two classes or more, from a libsvm file."
    makes = "logistic regression (or, with --loss hinge, a support vector machine)"
    file = "the libsvm file DATA"
    about = """DATA has one example a line: label index:value ..., indices from 1 and increasing. Of more than
    two different labels it makes a multinomial model (with --loss hinge: Crammer and Singer's machine). Gzip
    is gunzipped whatever its name, - is standard input. DATA may also be a folder that `fenchel shard lr` has
    written, for data larger than memory."""
    calls = Calls(
        train=("train.svm -o model.fenchel -C 0.1 --tol 1e-4 --valid test.svm",),
        race=("train.svm --solvers cd-dual,lbfgs,tron --tol 1e-6 --output race/",),
        path=("train.svm --from 0.001 --to 100 --cv 5 -o best.fenchel",),
        shard=("part1.svm.gz part2.svm.gz -o shards/",),
    )
    options = (
        options.loss,
        options.l1_ratio,
        options.flag("--no-intercept", "Leave the intercept out."),
        click.option(
            "--intercept-scaling",
            type=options.POSITIVE,
            default=None,
            show_default="free intercept; 1 for the hinge loss",
            metavar="S",
            help="Make the intercept the weight of a constant feature of this value, penalised like the "
            "others.",
        ),
        options.class_weight,
        *READING,
    )
    shard_options = READING
    reads = frozenset({"zero_based", "unlabelled"})
    few = 20
    compiling = 10

    # ---- training

    def estimator(self, settings):
        if settings["no_intercept"] and settings["intercept_scaling"] is not None:
            raise click.UsageError("--intercept-scaling has no meaning with --no-intercept.")
        hinge = settings["loss"] == "hinge"
        if hinge and settings["l1_ratio"] > 0.0:
            raise click.UsageError("--l1-ratio goes with --loss log; the hinge loss takes no L1 term.")
        own = {} if hinge else {"l1_ratio": settings["l1_ratio"]}
        return (fenchel.LinearSVC if hinge else fenchel.LogisticRegression)(
            **self.common_arguments(settings),
            **own,
            fit_intercept=not settings["no_intercept"],
            intercept_scaling=settings["intercept_scaling"],
            class_weight=options.class_weights(settings["class_weight"], _label),
            hash_bits=settings["hash_bits"],
        )

    def settings_of(self, model):
        import numpy as np

        own = {"C": float(np.ravel(model.C_)[0]) if hasattr(model, "C_") else model.C}
        own |= {"intercept_scaling": model.intercept_scaling, "loss": model.loss}
        own["class_weight"] = options.class_weight_words(model.class_weight, label_text)
        own |= {"no_intercept": not model.fit_intercept, "l1_ratio": getattr(model, "l1_ratio", None) or 0.0}
        own["hash_bits"] = model.hash_bits
        return own | ({"known_features": model.n_features_in_} if model.hash_bits is None else {})

    def read(self, path, settings):
        if os.path.isdir(path):
            return self._read_stored(path, settings)
        rows = _read(path, settings["features"], settings["zero_based"])
        n, d = rows.X.shape
        rows.X.resize((n, max(d, settings.get("known_features", 0))))
        if (rows.y == rows.y[0]).all():
            only = label_text(rows.y[0])
            raise Failure(f"{source(path)}: all labels are {only}, expected two classes or more")
        return rows

    def _read_stored(self, path, settings):
        """Shards have the features that they were written with; the held-out file may count from 0."""
        refuse_reading(path, ("features",) if options.given("valid") else ("features", "zero_based"))
        rows, known = StoredRows.of(path), settings.get("known_features", 0)
        if (found := rows.X.shape[1]) < known:
            raise Failure(
                f"{path}: has {count(found, 'feature')}, but the model of --init has {known:,}; write the "
                f"shards again with `fenchel shard lr --features {known}`"
            )
        return rows

    def read_like(self, path, examples, settings):
        import numpy as np

        stored = examples.shards.facts if isinstance(examples, StoredRows) else {}
        hashed = (stored.get("hash_bits") or settings["hash_bits"]) is not None
        columns = None if hashed else examples.X.shape[1]
        return _read_known(path, columns, np.unique(examples.y), settings["zero_based"])

    def encode(self, model, examples):
        if isinstance(examples, StoredRows):
            take_over(model, examples.shards, ("hash_bits",))
            return model.encode_training(examples.shards)
        if (examples.y == examples.y[0]).all():  # the file has more
            raise Failure("a fold leaves examples of one class only to train on; use a smaller --cv")
        return super().encode(model, examples)

    def shard(self, paths, folder, settings):
        from fenchel.io.libsvm import iterate_rows
        from fenchel.io.sharding import shard_rows

        batches = (
            some
            for path in paths
            for some in iterate_rows(path, settings["features"], settings["zero_based"])
        )
        own = {name: settings[name] for name in ("rows", "overwrite", "hash_bits")}
        return shard_rows(batches, folder, **own)

    def sizes(self, model, examples, data):
        n, d = examples.X.shape
        return f"{count(n, 'example')}, {count(d, 'feature')}, {count(examples.X.nnz, 'non-zero')}"

    def strata(self, examples):
        return examples.y

    # ---- fitted models

    def predict(self, model, path, given, form):
        """A line per example: its label, and behind it probabilities if asked for."""
        rest = {name: value for name, value in given.items() if name != "unlabelled"}
        data = with_labels(path, b"0") if "unlabelled" in given else path
        X = _read(data, _columns_of(model), **rest).X
        shares = model.predict_proba(X).tolist() if form.shares else None
        names = map(label_text, model.classes_.tolist())
        return label_lines(map(label_text, model.predict(X).tolist()), list(names), shares, form)

    def labelled(self, model, path, given):
        return _read_known(path, _columns_of(model), model.classes_, **given)

    def scores(self, model, examples):
        """Accuracy, log-loss where there are probabilities, and the scores of each class."""
        from fenchel.metrics import accuracy, log_loss

        X, y = examples.X, examples.y
        predicted = model.predict(X)
        facts = {"examples": number(examples.n), "accuracy": number(accuracy(y, predicted), ".6g")}
        if hasattr(model, "predict_log_proba"):
            loss = log_loss(y, model.predict_log_proba(X), model.classes_)
            facts["log-loss"] = number(loss, ".6g", " nats an example")
        facts |= proven_facts(model, X)
        return facts, class_table(y, predicted, model.classes_)

    def details(self, model, examples):
        return [confusion_table(examples.y, model.predict(examples.X))]

    def inspect(self, model, top, width=TERMINAL):
        """Classes and sizes, and the features that weigh most."""
        import numpy as np

        labels, w = [label_text(label) for label in model.classes_.tolist()], model.coef_
        used = int(np.count_nonzero(w.any(axis=0)))
        intercepts = ", ".join(f"{b:.6g}" for b in model.intercept_[:10]) + (", ..." if len(w) > 10 else "")
        positive = f" (a positive score says {labels[1]})" if len(labels) == 2 else ""
        facts = {
            "classes": Told(labels, listed(labels) + positive),
            "features": Told(
                {"count": w.shape[1], "used": used},
                f"{w.shape[1]:,}, {used:,} of them with a weight other than 0",
            ),
            "intercept": Told(model.intercept_.tolist(), intercepts),
        }
        if model.hash_bits is not None:
            facts["hashed"] = HASHED
            return facts, []
        return facts, [_heaviest(w, labels, top)]

    def weights(self, model):
        from fenchel.estimators.inputs import dense

        labels = [label_text(label) for label in model.classes_.tolist()]
        labels = labels[1:] if len(labels) == 2 else labels
        features = range(1, model.n_features_in_ + 1)
        return [
            Weights("intercept", labels, [None], model.intercept_[:, None]),
            Weights("feature", features, labels, dense(model.coef_).T),
        ]

    def compile(self):
        import numpy as np
        import scipy.sparse as sp

        # a dense table; its first rows are too few for one
        X = np.random.default_rng(0).normal(size=(1500, 20))
        for labels in (2, 5):
            y = np.arange(X.shape[0]) % labels
            for some in (X, X[:100], sp.csr_matrix(X[:100])):
                for name in self.classes[:2]:
                    getattr(fenchel, name)(tol=0.1).fit(some, y[: some.shape[0]]).predict(some)


def _label(text):
    """A label of a libsvm file, which is a number."""
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"--class-weight: {text!r} is no label of a libsvm file, a number.") from None


def _columns_of(model) -> int | None:
    """Features that files have for the model; None for any number."""
    return model.n_features_in_ if model.hash_bits is None else None


def _read(path, n_features, zero_based=False):
    from fenchel.io.libsvm import read_libsvm

    return Rows(*read_libsvm(path, n_features=n_features, zero_based=zero_based))


def _read_known(path, n_features, classes, zero_based=False):
    """Labelled data for a model of these features and classes."""
    import numpy as np

    rows = _read(path, n_features, zero_based)
    unseen = rows.y[~np.isin(rows.y, classes)]
    if unseen.size:
        known = listed(classes.tolist())
        raise Failure(f"{source(path)}: label {label_text(unseen[0])}, but the model's are {known}")
    return rows


def _heaviest(w, labels, top):
    """The heaviest weights: of two classes with the one each speaks for, of more with the one it is of."""
    import numpy as np

    from fenchel.estimators.explanation import heaviest

    places = zip(*np.unravel_index(heaviest(w.ravel(), top), w.shape), strict=True)
    two = len(labels) == 2
    rows = [
        [number(int(j) + 1), number(w[k, j], "+.6g"), labels[int(w[k, j] > 0.0) if two else k]]
        for k, j in places
        if w[k, j]
    ]
    title = f"heaviest features, counted from 1 ({len(rows)} of {w.size:,} weights)"
    columns = ["feature", "weight", "speaks for" if two else "class"]
    return Table(columns, rows, {"feature", "weight"}, title, key="weights")
