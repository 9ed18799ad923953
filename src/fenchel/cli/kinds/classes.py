"""What kinds print of predicted classes: lines of labels, and a table of scores."""

from fenchel.cli.output import Table, in_pieces, label_text


def label_lines(labels, shares=None):
    """Pieces of lines, a label each, and behind it the probabilities if there are shares."""
    if shares is None:
        return in_pieces(labels)
    pairs = zip(labels, shares, strict=True)
    return in_pieces("\t".join([label, *(f"{p:.6g}" for p in row)]) for label, row in pairs)


def class_table(truth, predicted, classes) -> Table:
    """Precision, recall and F1 of each class."""
    from fenchel.metrics import class_scores

    columns = ["class", "precision", "recall", "F1", "examples"]
    rows = [
        [label_text(label), *(f"{score:.4f}" for score in scores), str(support)]
        for label, *scores, support in zip(*class_scores(truth, predicted, classes), strict=True)
    ]
    return Table(columns, rows, numbers=set(columns[1:] if truth.dtype.kind == "U" else columns))


def confusion_table(truth, predicted) -> Table:
    """How many of each class (a row) were taken for each class (a column)."""
    import numpy as np

    labels, codes = np.unique(np.concatenate([truth, predicted]), return_inverse=True)
    counts = np.zeros((labels.size, labels.size), dtype=int)
    np.add.at(counts, (codes[: len(truth)], codes[len(truth) :]), 1)
    names = [label_text(label) for label in labels.tolist()]
    rows = [[name, *map(str, row)] for name, row in zip(names, counts.tolist(), strict=True)]
    title = "confusion: rows are the truth, columns what the model says"
    return Table(["truth", *names], rows, set(names), title, heat=True)
