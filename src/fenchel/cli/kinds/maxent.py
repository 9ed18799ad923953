"""The kind `maxent`: maximum entropy models of events with named features, on event files."""

import os

import fenchel
from fenchel.cli import events, options
from fenchel.cli.failures import Failure
from fenchel.cli.kinds.base import TERMINAL, WORDS, Calls, Kind, Weights
from fenchel.cli.kinds.classes import class_table, confusion_table, label_lines, weights_fact
from fenchel.cli.kinds.proven import proven_facts
from fenchel.cli.output import HASHED, label_text, listed, say, source
from fenchel.cli.stored import refuse_reading, take_over
from fenchel.cli.unlabelled import with_labels
from fenchel.report.tables import Table, Told, number

MANY = 10  # events of which no two have the same label: those are no labels
READING = (
    options.event_format(
        default=None,
        help="opennlp: on each line a label and its features. megam: the same, $$$WEIGHT and sections "
        "too. tadm: events of candidates with counts. Required, but for shards.",
    ),
    *options.event_marks,
)
NAMES = (
    options.count("--min-count", 1, "Leave out features that fewer events have."),
    options.hash_bits,
)


class Events(Kind):
    """MaxEnt, crossed or joint. Examples are encoded as they are read, so `data` are the examples."""

    classes = ("MaxEnt",)
    summary = "Labels of events with named features."
    compiling = 10
    makes = "a maximum entropy model (with --loss hinge: its max-margin counterpart)"
    file = "the event file DATA"
    about = """Features are names, crossed with all labels; or, in files of candidates (tadm, megam
    --explicit), each candidate's own. The model remembers the format: predict and evaluate need not be told.
    Gzip is gunzipped, - is standard input. There is no intercept: add a feature to all events for one. DATA
    may also be a folder that `fenchel shard maxent` has written, for data larger than memory."""
    calls = Calls(
        train=("train.events -o model.fenchel --format opennlp --sigma2 10 --valid test.events",),
        race=("train.events --format opennlp --solvers cd-dual,lbfgs,scgis --output race/",),
        path=("train.events --format opennlp --from 0.01 --to 10 --cv 5 -o best.fenchel",),
        shard=("part1.events.gz part2.events.gz -o shards/ --format opennlp --min-count 5",),
        cv="train.events --format opennlp -k 5",
    )
    options = (
        *READING,
        options.loss,
        *NAMES,
        options.flag("--observed", "Weights only for features with labels they were seen with."),
        options.l1_ratio,
        options.class_weight,
    )
    shard_options = (*READING, *NAMES)
    arguments = ("loss", "min_count", "hash_bits", "observed", "l1_ratio")
    other_constant = "sigma2"
    reads = frozenset({"format", "explicit", "values", "real_values", "section", "unlabelled"})
    noun = "event"

    # ---- training

    def estimator(self, settings):
        model = super().estimator(settings)
        model.class_weight = options.class_weights(settings["class_weight"])
        model.read_as = _reading(settings) if settings["format"] else {}  # shards tell: see `encode`
        return model

    def settings_of(self, model):
        return super().settings_of(model) | {"class_weight": options.class_weight_words(model.class_weight)}

    def read(self, path, settings):
        if os.path.isdir(path):
            if not options.given("valid"):  # the held-out file may be of another format
                refuse_reading(path, ("format", "explicit", "values", "real_values"))
            return events.read_stored(path)
        own = {name: settings[name] for name in ("min_count", "hash_bits")}
        return events.read(path, _reading(settings), **own)

    def read_like(self, path, examples, settings):
        stored = examples.disk is not None and not settings["format"]
        reading = examples.disk.fact("read_as", dict) if stored else _reading(settings)
        return events.read(path, reading, vocabulary=examples.vocabulary)

    def encode(self, model, examples):
        if examples.disk is not None:
            model.read_as = examples.disk.fact("read_as", dict)
            take_over(model, examples.disk, ("min_count", "hash_bits"))
            return model.encode_training(examples.disk)
        if not examples.joint and examples.n >= MANY and examples.classes.size == examples.n:
            raise Failure(
                f"each of the {examples.n} events has a label of its own; a line begins with its label, so "
                "is that missing?"
            )
        return examples

    def shard(self, paths, folder, settings):
        own = {name: settings[name] for name in ("rows", "overwrite", "min_count", "hash_bits")}
        return events.write_shards(paths, folder, _reading(settings), **own)

    def sizes(self, model, examples, data):
        return events.sizes(examples)

    def strata(self, examples):
        """The number of each event's label; of candidates there is nothing to balance by."""
        return super().strata(examples) if examples.joint else examples.targets

    def score(self, model, examples):
        return model.score(examples, examples.y, examples.weight)

    # ---- fitted models

    def predict(self, model, path, given, form):
        """A line per event: its label, and behind it probabilities if asked for."""
        examples, shares = _read_for(model, path, given), None
        if form.shares:
            shares = model.predict_proba(examples)
            shares = [list(row.values()) for row in shares] if examples.joint else shares.tolist()
        names = range(max(map(len, examples.candidates))) if examples.joint else model.classes_.tolist()
        labels = map(_text, model.predict(examples).tolist())
        return label_lines(labels, list(map(_text, names)), shares, form)

    def labelled(self, model, path, given):
        return _read_for(model, path, given)

    def scores(self, model, examples):
        """Accuracy, log-loss where there are probabilities, and the scores of each label."""
        import numpy as np

        facts, weight = {"events": number(examples.n)}, examples.weight
        if weight is not None:
            more = "; accuracy and log-loss count an event by its weight"
            facts["weight"] = number(weight.sum(), ".6g", more)
        facts["accuracy"] = number(self.score(model, examples), ".6g")
        if hasattr(model, "predict_log_proba"):
            facts["log-loss"] = _log_loss(model, examples)
        facts |= proven_facts(model, examples)
        if examples.joint:
            return facts, None
        return facts, class_table(np.array(examples.y), model.predict(examples), model.classes_)

    def details(self, model, examples):
        import numpy as np

        return [] if examples.joint else [confusion_table(np.array(examples.y), model.predict(examples))]

    def inspect(self, model, top, width=TERMINAL):
        """Labels and sizes, and the weights that are heaviest."""
        columns, crossed = ["feature", "weight"], model.layout_ == "crossed"
        facts = {"layout": "joint: each candidate of an event has features of its own"}
        if crossed:
            facts["layout"] = "crossed: each feature has a weight for each label"
            labels = model.classes_.tolist()
            facts["labels"] = Told(labels, listed([_text(label) for label in labels]))
            columns.append("label")
        facts["features"] = number(len(model.vocabulary_), ",")
        facts["weights"] = weights_fact(model.coef_)
        if model.read_as:
            words = ", ".join(f"{name}={value}" for name, value in model.read_as.items())
            facts["read as"] = Told(dict(model.read_as), words)
        if model.hash_bits is not None:
            return facts | {"hashed": HASHED}, []
        rows = [
            [one.feature, number(one.weight, "+.6g"), _text(one.label)][: len(columns)]
            for one in model.top_features(top)
        ]
        title = f"heaviest weights ({len(rows)} of {model.coef_.size:,})"
        return facts, [Table(columns, rows, {"weight"}, title, key="weights")]

    def weights(self, model):
        labels = [None] if model.layout_ == "joint" else list(map(_text, model.classes_.tolist()))
        names = model.vocabulary_.names if model.hash_bits is None else range(len(model.vocabulary_))
        return [Weights("feature", names, labels, model.coef_.T)]

    def compile(self):
        fenchel.MaxEnt().fit(WORDS, ["x", "y", "z", "x"] * 5).predict_proba(WORDS)


def _reading(settings):
    names = ("format", "explicit", "values", "real_values")
    return events.reading_of({name: settings[name] for name in names})


def _read_for(model, path, given):
    """Events for a model; a warning if it knows nothing of what they hold."""
    given, unlabelled = dict(given), given.get("unlabelled")
    given.pop("unlabelled", None)
    reading = events.reading_like(model, given)
    if unlabelled and events.is_joint(reading):
        raise Failure("--unlabelled is for labels and features; of candidates give any the count 1")
    data = with_labels(path, b"?") if unlabelled else path
    examples = events.read(data, reading, vocabulary=model.vocabulary_)
    if not (unlabelled or examples.joint):
        _warn_of_missing_labels(model, path, examples)
    if not examples.rows.nnz:
        unknown = f"{source(path)}: the model knows none of its features; is it of another format?"
        say(f"fenchel: warning: {unknown}")
    return examples


def _warn_of_missing_labels(model, path, examples):
    """Most lines may begin with a feature, which would be lost."""
    known = set(model.classes_.tolist())
    features = sum(label in model.vocabulary_ and label not in known for label in examples.y)
    if 2 * features > examples.n:
        lines = f"{source(path)}: {features} of {examples.n} lines begin with a feature of the model"
        say(f"fenchel: warning: {lines}, taken as the label; predict --unlabelled reads lines without")


def _text(label):
    return "" if label is None else label_text(label)


def _log_loss(model, examples):
    """−mean log p(truth), in nats; events whose label the model does not know are left out, and counted."""
    import numpy as np

    logarithms = model.predict_log_proba(examples)
    if not examples.joint:
        labels = model.classes_.tolist()
        logarithms = [dict(zip(labels, row, strict=True)) for row in logarithms.tolist()]
    losses, weights = [], np.ones(examples.n) if examples.weight is None else examples.weight
    for weight, truth, logs in zip(weights.tolist(), examples.y, logarithms, strict=True):
        shares = truth if isinstance(truth, dict) else {truth: 1.0}
        if shares.keys() <= logs.keys():
            losses.append((weight, -sum(share * logs[label] for label, share in shares.items())))
    if not losses:
        return Told(None, "none: the model knows no label of these events")
    missing = examples.n - len(losses)
    rest = f"; {missing} of {examples.n} events have a label that is new to the model" if missing else ""
    mean = sum(w * loss for w, loss in losses) / sum(w for w, _ in losses)
    return number(mean, ".6g", f" nats an event{rest}")
