"""metrics.py against scikit-learn, and its refusals."""

import numpy as np
import pytest
from sklearn import metrics as sk

from fenchel.metrics import accuracy, class_scores, log_loss

RNG = np.random.default_rng(0)
TRUTH, PREDICTED = RNG.integers(0, 4, 200), RNG.integers(0, 4, 200)


def test_accuracy_is_that_of_scikit_learn():
    assert accuracy(TRUTH, PREDICTED) == pytest.approx(sk.accuracy_score(TRUTH, PREDICTED))


def test_class_scores_are_those_of_scikit_learn():
    ours = class_scores(TRUTH, PREDICTED)
    theirs = sk.precision_recall_fscore_support(TRUTH, PREDICTED)
    for mine, other in zip(ours[1:], theirs, strict=True):
        np.testing.assert_allclose(mine, other)


def test_a_class_never_predicted_and_one_never_true_score_zero():
    truth, predicted = np.array(["a", "a", "b"]), np.array(["a", "c", "a"])
    ours = class_scores(truth, predicted, ["a", "b", "c"])
    theirs = sk.precision_recall_fscore_support(truth, predicted, labels=["a", "b", "c"], zero_division=0)
    for mine, other in zip(ours[1:], theirs, strict=True):
        np.testing.assert_allclose(mine, other)


def test_log_loss_is_that_of_scikit_learn():
    p = RNG.dirichlet(np.ones(4), 200)
    expected = sk.log_loss(TRUTH, p, labels=range(4))
    assert log_loss(TRUTH, np.log(p), range(4)) == pytest.approx(expected)


def test_log_loss_of_a_sure_and_wrong_answer_is_finite():
    assert log_loss([1.0], [[-1e-300, -1000.0]], [-1.0, 1.0]) == 1000.0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: accuracy([1, 2], [1]), r"truth has shape \(2,\) and predicted \(1,\)"),
        (lambda: accuracy([], []), "no labels to score"),
        (lambda: log_loss([1], [[0.0]], [0, 1]), r"shape \(1, 1\), expected \(1, 2\)"),
        (lambda: log_loss([], np.empty((0, 2)), [0, 1]), "no labels to score"),
        (lambda: log_loss([7], [[-1.0, -1.0]], [0, 1]), "label 7 is not one of the classes 0, 1"),
    ],
)
def test_what_cannot_be_scored_is_refused(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
