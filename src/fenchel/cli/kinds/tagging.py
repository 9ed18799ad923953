"""What kinds of taggers share: labelled sentences, F1 of spans, lines with labels behind them."""

from abc import abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from fenchel.cli.kinds.base import Kind
from fenchel.cli.kinds.classes import class_table, confusion_table, weights_fact
from fenchel.cli.kinds.proven import proven_facts
from fenchel.cli.output import count, json_line, listed, say
from fenchel.cli.sentences import Corpus, are_spans
from fenchel.report.tables import Table, Told, number

BATCH = 1000  # sentences of a file that are labelled at a time


class Tagging(Kind):
    """A kind whose examples are a Corpus, and whose estimators predict lists of labels."""

    summary = "Labels of sequences, from a column file."
    reads = frozenset({"nbest"})
    noun = "sentence"
    top = 5  # of each label

    @abstractmethod
    def read_for(self, model, path: str) -> Corpus:
        """Labelled sentences for a fitted model."""

    @abstractmethod
    def sentences(self, model, path: str) -> Iterator[tuple]:
        """(lines, sentence) as they come in, to label; None for a sentence is lines to print as they are.

        lines: those of a column file, blank ones included; None where labels are printed alone.
        """

    def estimator(self, settings):
        """It remembers what is between the columns of its files."""
        model = super().estimator(settings)
        if settings.get("separator") == "tab":
            model.read_as = {"separator": "tab"}
        return model

    # ---- scores

    def measure(self, examples):
        return "F1" if are_spans(examples.labels) else "accuracy"

    def score(self, model, examples):
        """F1 of spans, or the fraction of labels that are right."""
        if not are_spans(model.classes_.tolist()):
            return super().score(model, examples)
        from fenchel.spans import span_scores

        return span_scores(examples.tags, model.predict(examples.X)).f1

    # ---- predict

    def predict(self, model, path, given, form):
        """Of a column file its own lines with the label behind; of a CRFsuite file labels alone.

        Yields a sentence at a time where they come in one by one, from standard input.
        """
        sentences, first = self.sentences(model, path), True
        while some := list(islice(sentences, 1 if path == "-" else BATCH)):
            if form.labels_only or form.json:
                some = [(None, sentence) for _, sentence in some if sentence is not None]
            if first and form.probabilities and not form.json:
                yield _header(some[0][0], model)
            X, first = [sentence for _, sentence in some if sentence is not None], False
            answers = iter(_answers(model, X, form, given.get("nbest")))
            blocks = [_block(lines, next(answers) if x is not None else (), form) for lines, x in some]
            if blocks:
                yield "\n".join(line for block in blocks for line in block)

    # ---- evaluate

    def labelled(self, model, path, given):
        return self.read_for(model, path)

    def scores(self, model, corpus):
        """Accuracy, and the scores of each type of span as conlleval gives them, else of each label."""
        import numpy as np

        predicted = _tagged(model, corpus)
        truth, guessed = _flat(corpus.tags), _flat(predicted)
        whole = sum(a == b for a, b in zip(corpus.tags, predicted, strict=True))
        counts = {"count": corpus.n, "right": whole}
        facts = {
            "sentences": Told(counts, f"{corpus.n}, {whole} of them without an error"),
            "tokens": number(truth.size),
            "accuracy": number(float(np.mean(truth == guessed)), ".6g"),
        }
        if hasattr(model, "proven"):
            facts |= proven_facts(model, corpus.X)
        known = [str(label) for label in model.classes_]
        _warn_of_new_labels(corpus, known)
        if are_spans(known):
            return facts, _span_table(corpus.tags, predicted)
        return facts, class_table(truth, guessed, np.array(sorted({*known, *corpus.labels})))

    def details(self, model, corpus):
        """Of spans the table of labels too."""
        truth, guessed = _flat(corpus.tags), _flat(_tagged(model, corpus))
        spans = are_spans([str(label) for label in model.classes_])
        return [*([class_table(truth, guessed, None)] if spans else []), confusion_table(truth, guessed)]


def _tagged(model, corpus):
    """What the model says of the sentences."""
    return [list(map(str, labels)) for labels in model.predict(corpus.X)]


def _flat(sentences):
    """The labels of all tokens, (N,)."""
    import numpy as np

    return np.array([label for labels in sentences for label in labels])


class _Answer(NamedTuple):
    """One labelling: labels, the cells of each token, and its log-probability where several are asked for."""

    labels: list
    cells: list
    log_probability: float | None = None
    shares: list | None = None


def _answers(model, X, form, nbest):
    """For each sentence a list of _Answers."""
    if not X:
        return []
    shares = model.predict_marginals(X) if form.shares else [None] * len(X)
    if nbest is None:
        several = [[(labels, None)] for labels in model.predict(X)]
    else:
        several = model.predict_nbest(X, nbest)
    names = [str(label) for label in model.classes_]
    return [
        [_answer(list(map(str, labels)), score, mu, names, form) for labels, score in found]
        for found, mu in zip(several, shares, strict=True)
    ]


def _answer(labels, score, mu, names, form):
    """A labelling with the probabilities that are asked for: of each label itself, or of all."""
    if mu is None:
        return _Answer(labels, [(label,) for label in labels], score)
    if form.probabilities:
        rows = mu.tolist()
        told = [dict(zip(names, row, strict=True)) for row in rows]
    else:
        place = {label: k for k, label in enumerate(names)}
        rows = [[mu[t, place[label]]] for t, label in enumerate(labels)]
        told = [float(row[0]) for row in rows]
    cells = [(label, *(f"{p:.6f}" for p in row)) for label, row in zip(labels, rows, strict=True)]
    return _Answer(labels, cells, score, told)


def _header(lines, model):
    """What stands in a line of probabilities: the columns of the file by number, the label, all labels."""
    own = lines[0].split("\t" if "\t" in lines[0] else None) if lines else []
    columns = [f"column{k}" for k in range(1, len(own) + 1)]
    between = "\t" if not lines or "\t" in lines[0] else " "
    return between.join([*columns, "label", *map(str, model.classes_)])


def _block(lines, answers, form):
    """The lines to print for a sentence: its own, blank ones included, with the cells behind."""
    if form.json:
        return [_json(answers)]
    if not answers:
        return lines
    if lines is not None and answers[0].log_probability is None:
        behind = iter(answers[0].cells)
        return [_append(line, next(behind)) if line.strip() else line for line in lines]
    out, tokens = [], [""] * len(answers[0].cells)
    if lines is not None:
        tokens = [line for line in lines if line.strip()]
    for rank, answer in enumerate(answers, start=1):
        if answer.log_probability is not None:
            out.append(f"# {rank} {answer.log_probability:.6f}")
        out += [_append(line, more) for line, more in zip(tokens, answer.cells, strict=True)]
        out.append("")
    return out


def _json(answers):
    """{"labels": [...]}, with probabilities; or of several labellings {"nbest": [...]}."""
    found = []
    for answer in answers:
        one = {"labels": answer.labels}
        if answer.log_probability is not None:
            one["log_probability"] = float(answer.log_probability)
        if answer.shares is not None:
            one["probabilities"] = answer.shares
        found.append(one)
    return json_line(found[0] if answers[0].log_probability is None else {"nbest": found})


def _append(line, cells):
    between = "\t" if "\t" in line or not line else " "
    return between.join([line.rstrip(), *cells] if line else cells)


def _warn_of_new_labels(corpus, known):
    new = [label for label in corpus.labels if label not in set(known)]
    if new:
        tokens = sum(label in new for labels in corpus.tags for label in labels)
        what = f"{count(len(new), 'label')} new to the model, counted as wrong ({count(tokens, 'token')})"
        say(f"fenchel: warning: {corpus.name} has {what}: {listed(new)}")


def _span_table(truth, predicted):
    from fenchel.spans import span_scores

    scores = span_scores(truth, predicted)
    columns = ["span", "precision %", "recall %", "F1 %", "true", "predicted", "right"]
    rows = [
        [name, *(number(100.0 * share, ".2f") for share in (row.precision, row.recall, row.f1))]
        + [number(count) for count in (row.n_true, row.n_predicted, row.n_right)]
        for name, row in (("all", scores), *scores.types.items())
    ]
    return Table(columns, rows, numbers=set(columns[1:]), key="spans")


# ---- inspect


def tagger_facts(model, attributes: Told, weights) -> dict:
    """Labels, attributes, and how many weights there are."""
    labels = [str(label) for label in model.classes_]
    return {
        "labels": Told(labels, listed(labels, 30)),
        "attributes": attributes,
        "weights": weights_fact(weights),
    }


def attribute_table(model, most: int) -> Table:
    """The heaviest attributes of each label."""
    import numpy as np

    names, rows = model.attribute_names_, []
    for label, weights in zip(model.classes_, model.coef_, strict=True):
        heaviest = np.argsort(-np.abs(weights), kind="stable")[:most]
        rows += [[str(label), names[a], number(weights[a], "+.4f")] for a in heaviest if weights[a]]
    title = "heaviest attributes of each label"
    return Table(["label", "attribute", "weight"], rows, {"weight"}, title, key="attributes")


def separator_of(model) -> str | None:
    """What was between columns in training: None for blanks and tabs."""
    return model.read_as.get("separator")
