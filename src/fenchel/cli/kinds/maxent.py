"""The kind `maxent`: maximum entropy models of events with named features, on event files."""

import fenchel
from fenchel.cli import events, options
from fenchel.cli.kinds.base import WORDS, Calls, Kind
from fenchel.cli.kinds.classes import class_table, confusion_table, label_lines
from fenchel.cli.kinds.proven import proven_facts
from fenchel.cli.output import Table, label_text, listed, say, source


class Events(Kind):
    """MaxEnt, crossed or joint. Examples are encoded as they are read, so `data` are the examples."""

    classes = ("MaxEnt",)
    summary = "Labels of events with named features."
    makes = "a maximum entropy model (with --loss hinge: its max-margin counterpart)"
    file = "the event file DATA"
    about = """Features are names, crossed with all labels; or, in files of candidates (tadm, megam
    --explicit), each candidate's own. The model remembers the format: predict and evaluate need not be told.
    Gzip is gunzipped, - is standard input. There is no intercept: add a feature to all events for one."""
    calls = Calls(
        train=("train.events -o model.fenchel --format opennlp --sigma2 10 --valid test.events",),
        race=("train.events --format opennlp --solvers cd-dual,lbfgs,scgis --output race/",),
        path=("train.events --format opennlp --from 0.01 --to 10 --cv 5 -o best.fenchel",),
    )
    options = (
        options.event_format(
            required=True,
            help="opennlp: on each line a label and its features. megam: the same, $$$WEIGHT and sections "
            "too. tadm: events of candidates with counts.",
        ),
        *options.event_marks,
        options.loss,
        options.count("--min-count", 1, "Leave out features that fewer events have."),
        options.flag("--observed", "Weights only for features with labels they were seen with."),
        options.l1_ratio,
    )
    arguments = ("loss", "min_count", "observed", "l1_ratio")
    other_constant = "sigma2"
    reads = frozenset({"format", "explicit", "values", "real_values", "section"})
    noun = "event"

    # ---- training

    def estimator(self, settings):
        model = super().estimator(settings)
        model.read_as = _reading(settings)
        return model

    def read(self, path, settings):
        return events.read(path, _reading(settings), min_count=settings["min_count"])

    def read_like(self, path, examples, settings):
        return events.read(path, _reading(settings), vocabulary=examples.vocabulary)

    def encode(self, model, examples):
        return examples

    def sizes(self, model, examples, data):
        return events.sizes(examples)

    def strata(self, examples):
        """The number of each event's label; of candidates there is nothing to balance by."""
        return super().strata(examples) if examples.joint else examples.targets

    def score(self, model, examples):
        return model.score(examples, examples.y, examples.weight)

    # ---- fitted models

    def predict(self, model, path, given, probabilities):
        """A line per event: its label, and behind it the probability of each label if asked for."""
        examples, shares = _read_for(model, path, given), None
        if probabilities:
            shares = model.predict_proba(examples)
            shares = [list(row.values()) for row in shares] if examples.joint else shares.tolist()
        return label_lines(map(_text, model.predict(examples).tolist()), shares)

    def labelled(self, model, path, given):
        return _read_for(model, path, given)

    def scores(self, model, examples):
        """Accuracy, log-loss where there are probabilities, and the scores of each label."""
        import numpy as np

        facts, weight = {"events": f"{examples.n}"}, examples.weight
        if weight is not None:
            facts["weight"] = f"{weight.sum():.6g}; accuracy and log-loss count an event by its weight"
        facts["accuracy"] = f"{self.score(model, examples):.6g}"
        if hasattr(model, "predict_log_proba"):
            facts["log-loss"] = _log_loss(model, examples)
        facts |= proven_facts(model, examples)
        if examples.joint:
            return facts, None
        return facts, class_table(np.array(examples.y), model.predict(examples), model.classes_)

    def confusion(self, model, examples):
        import numpy as np

        return None if examples.joint else confusion_table(np.array(examples.y), model.predict(examples))

    def inspect(self, model, top):
        """Labels and sizes, and the weights that are heaviest."""
        import numpy as np

        columns, crossed = ["feature", "weight"], model.layout_ == "crossed"
        facts = {"layout": "joint: each candidate of an event has features of its own"}
        if crossed:
            facts["layout"] = "crossed: each feature has a weight for each label"
            facts["labels"] = listed([_text(label) for label in model.classes_.tolist()])
            columns.append("label")
        facts["features"] = f"{len(model.vocabulary_):,}"
        facts["weights"] = f"{model.coef_.size:,}, {np.count_nonzero(model.coef_):,} of them other than 0"
        if model.read_as:
            facts["read as"] = ", ".join(f"{name}={value}" for name, value in model.read_as.items())
        rows = [
            [one.feature, f"{one.weight:+.6g}", _text(one.label)][: len(columns)]
            for one in model.top_features(top)
        ]
        title = f"heaviest weights ({len(rows)} of {model.coef_.size:,})"
        return facts, [Table(columns, rows, {"weight"}, title)]

    def compile(self):
        fenchel.MaxEnt().fit(WORDS, ["x", "y", "z", "x"] * 5).predict_proba(WORDS)


def _reading(settings):
    names = ("format", "explicit", "values", "real_values")
    return events.reading_of({name: settings[name] for name in names})


def _read_for(model, path, given):
    """Events for a model; a warning if it knows nothing of what they hold."""
    examples = events.read(path, events.reading_like(model, given), vocabulary=model.vocabulary_)
    if not examples.rows.nnz:
        unknown = f"{source(path)}: the model knows none of its features; is it of another format?"
        say(f"fenchel: warning: {unknown}")
    return examples


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
        return "none: the model knows no label of these events"
    missing = examples.n - len(losses)
    rest = f"; {missing} of {examples.n} events have a label that is new to the model" if missing else ""
    return f"{sum(w * loss for w, loss in losses) / sum(w for w, _ in losses):.6g} nats an event{rest}"
