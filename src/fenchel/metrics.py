"""How good predictions are: accuracy, log-loss, precision, recall and F1 of each class."""

from itertools import chain
from typing import NamedTuple
from unicodedata import category

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


def attachment_scores(words, heads, predicted, labels=None, predicted_labels=None) -> dict:
    """Of all words and of those that are no punctuation: how many there are, UAS, and LAS where labels are.

    UAS: the share of words whose head is right; LAS: head and label of the arc. words: of all sentences, one
    after the other; the others: lists of lists. Punctuation: all characters are of a Unicode category P, as
    the scorer of CoNLL-X has it.
    """
    right = _agree(heads, predicted)
    both = None if labels is None else right & _agree(labels, predicted_labels)
    spoken = np.array([not all(category(c).startswith("P") for c in word) for word in words], bool)
    out = {}
    for name, chosen in (("all", np.ones(right.size, bool)), ("without punctuation", spoken)):
        shares = [None if one is None else _mean(one[chosen]) for one in (right, both)]
        out[name] = (int(chosen.sum()), *shares)
    return out


LENGTHS = {"root": 0, "1": 1, "2": 2, "3 to 6": 6, "7 and more": np.inf}  # the largest distance of each


def scores_by_length(heads, predicted) -> dict[str, tuple]:
    """Precision, recall and F1 of arcs by their length |head − word|, and how many true ones there are.

    An arc from the root, head 0, has no length: it counts apart. heads, predicted: lists of lists.
    """
    lengths = [np.array(list(chain.from_iterable(map(_lengths, some)))) for some in (heads, predicted)]
    right, limits = _agree(heads, predicted), list(LENGTHS.values())
    true, found = (np.searchsorted(limits, some) for some in lengths)
    out = {}
    for k, name in enumerate(LENGTHS):
        both, support = np.sum(right & (true == k)), np.sum(true == k)
        given = np.sum(found == k)
        scores = _ratio(np.array([both, both, 2 * both]), np.array([given, support, given + support]))
        out[name] = (*scores.tolist(), int(support))
    return out


def _lengths(heads):
    """The distance of each word from its head; 0 where that is the root."""
    return [abs(head - word) if head else 0 for word, head in enumerate(heads, start=1)]


def _agree(truth, predicted) -> np.ndarray:
    """(N,) bool of lists of lists."""
    pairs = zip(chain.from_iterable(truth), chain.from_iterable(predicted), strict=True)
    return np.array([a == b for a, b in pairs], bool)


def _mean(values) -> float:
    return float(values.mean()) if values.size else 0.0
