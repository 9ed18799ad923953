"""What kinds print of predicted classes: lines of labels, and a table of scores."""

from fenchel.cli.output import in_pieces, json_line, label_text
from fenchel.report.tables import Table, Told, number

CONFUSED = 60  # classes that a table of confusions has at most


def label_lines(labels, names, shares, form):
    """Pieces of lines, a label each, and behind it probabilities if the form asks for them.

    labels: an iterable of texts; names: the labels that there are; shares: of each example their
    probabilities, or None.
    """
    return in_pieces(_lines(labels, names, shares, form))


def _lines(labels, names, shares, form):
    if shares is None:
        yield from (json_line({"label": label}) for label in labels) if form.json else labels
        return
    if form.probabilities and not form.json:
        yield "\t".join(["label", *names])
    for label, row in zip(labels, shares, strict=True):
        if form.json:
            told = dict(zip(names, row, strict=False)) if form.probabilities else max(row)
            yield json_line({"label": label, "probabilities" if form.probabilities else "probability": told})
        else:
            told = row if form.probabilities else [max(row)]
            yield "\t".join([label, *(f"{p:.6g}" for p in told)])


def class_table(truth, predicted, classes) -> Table:
    """Precision, recall and F1 of each class."""
    from fenchel.metrics import class_scores

    columns = ["class", "precision", "recall", "F1", "examples"]
    rows = [
        [label_text(label), *(number(score, ".4f") for score in scores), number(support)]
        for label, *scores, support in zip(*class_scores(truth, predicted, classes), strict=True)
    ]
    return Table(columns, rows, set(columns[1:] if truth.dtype.kind == "U" else columns), key="classes")


def confusion_table(truth, predicted) -> Table:
    """How many of each class (a row) were taken for each class (a column); of many, those mistaken most."""
    import numpy as np

    labels, codes = np.unique(np.concatenate([truth, predicted]), return_inverse=True)
    counts = np.zeros((labels.size, labels.size), dtype=int)
    np.add.at(counts, (codes[: len(truth)], codes[len(truth) :]), 1)
    title = "confusion: rows are the truth, columns what the model says"
    if labels.size > CONFUSED:
        wrong = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
        kept = np.sort(np.argsort(-wrong, kind="stable")[:CONFUSED])
        labels, counts = labels[kept], counts[np.ix_(kept, kept)]
        title += f"; the {CONFUSED} classes that are mistaken most"
    names = [label_text(label) for label in labels.tolist()]
    rows = [[name, *map(number, row)] for name, row in zip(names, counts.tolist(), strict=True)]
    return Table(["truth", *names], rows, set(names), title, heat=True, key="confusion")


def weights_fact(weights) -> Told:
    """How many weights there are, and how many are not 0."""
    import numpy as np

    used = int(np.count_nonzero(weights))
    return Told({"count": weights.size, "used": used}, f"{weights.size:,}, {used:,} of them other than 0")
