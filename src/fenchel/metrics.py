"""How good predictions are: accuracy, log-loss, precision, recall and F1 of each class."""

from typing import NamedTuple

import numpy as np


class ClassScores(NamedTuple):
    """One entry per class, in the order of `classes`; a ratio whose denominator is 0 is 0."""

    classes: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    support: np.ndarray


def accuracy(truth, predicted) -> float:
    """The fraction of labels predicted right."""
    truth, predicted = _pair(truth, predicted)
    return float(np.mean(truth == predicted))


def log_loss(truth, log_probabilities, classes) -> float:
    """−mean log p(truth), in nats; log_probabilities (n, K), one column for each of the sorted classes.

    Logarithms, not probabilities, go in: a sure and wrong answer then costs what it should, not infinity.
    """
    truth, classes = np.asarray(truth), np.asarray(classes)
    log_probabilities = np.asarray(log_probabilities, dtype=np.float64)
    if log_probabilities.shape != (truth.size, classes.size):
        raise ValueError(
            f"log_probabilities has shape {log_probabilities.shape}, expected ({truth.size}, {classes.size})"
        )
    if truth.size == 0:
        raise ValueError("no labels to score")
    unknown = truth[~np.isin(truth, classes)]
    if unknown.size:
        raise ValueError(f"label {unknown[0]!s} is not one of the classes {', '.join(map(str, classes))}")
    columns = np.searchsorted(classes, truth)
    return float(-np.mean(log_probabilities[np.arange(truth.size), columns]))


def class_scores(truth, predicted, classes=None) -> ClassScores:
    """Precision, recall, F1 and number of true examples of each class; by default of each label met."""
    truth, predicted = _pair(truth, predicted)
    classes = np.union1d(truth, predicted) if classes is None else np.asarray(classes)
    right = _counts(truth[truth == predicted], classes)
    guessed, support = _counts(predicted, classes), _counts(truth, classes)
    return ClassScores(
        classes=classes,
        precision=_ratio(right, guessed),
        recall=_ratio(right, support),
        f1=_ratio(2 * right, guessed + support),
        support=support,
    )


def _pair(truth, predicted):
    truth, predicted = np.asarray(truth), np.asarray(predicted)
    if truth.shape != predicted.shape or truth.ndim != 1:
        raise ValueError(
            f"truth has shape {truth.shape} and predicted {predicted.shape}, expected (n,) for both"
        )
    if truth.size == 0:
        raise ValueError("no labels to score")
    return truth, predicted


def _counts(labels, classes):
    return np.array([np.count_nonzero(labels == label) for label in classes])


def _ratio(part, whole):
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
