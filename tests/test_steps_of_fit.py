"""encode_training, problem, solve, set_result: the steps of `fit`, for every estimator."""

import numpy as np
import pytest
from sklearn.base import clone

from fenchel import ChainCRF, LinearSVC, LogisticRegression, MaxEnt, MaxEntTagger, load, solve
from fenchel.features.tokens import Tokens

WORDS = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["the", "cat"], ["dog"]]
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["D", "N"], ["N"]]
EVENTS = [word for words in WORDS for word in [[w, w[-1]] for w in words]]
LABELS = [tag for tags in TAGS for tag in tags]
TABLE = np.random.default_rng(0).normal(size=(len(LABELS), 4))
TOKENS = [Tokens.from_sentences(sentences) for sentences in (WORDS, TAGS)]

CASES = {
    "two classes": (LogisticRegression(class_weight="balanced"), TABLE, np.array(LABELS) == "N"),
    "three classes": (LogisticRegression(class_weight={"N": 2.0}, intercept_scaling=2.0), TABLE, LABELS),
    "hinge": (LinearSVC(max_iter=10**5), TABLE, LABELS),
    "maxent": (MaxEnt(), EVENTS, LABELS),
    "tagger": (MaxEntTagger(rare=2), WORDS, TAGS),
    "tagger of tokens": (MaxEntTagger(rare=2), *TOKENS),
    "crf": (ChainCRF(bias=True, template="pos"), *TOKENS),
}


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return CASES[request.param]


def test_the_steps_of_fit_are_fit(case, tmp_path):
    estimator, X, y = case
    fitted, stepwise = clone(estimator).fit(X, y), clone(estimator)
    data = stepwise.encode_training(X, y)
    result = solve(stepwise.problem(data), max_passes=stepwise.max_iter)
    stepwise.set_result(data, result)
    np.testing.assert_array_equal(stepwise.coef_, fitted.coef_)
    assert stepwise.certificate_.primal == fitted.certificate_.primal
    assert stepwise.n_iter_ == fitted.n_iter_
    stepwise.save(tmp_path / "model")
    assert list(load(tmp_path / "model").predict(X)) == list(fitted.predict(X))


def test_weights_make_a_model_of_another_estimator(case):
    estimator, X, y = case
    fitted = clone(estimator).fit(X, y)
    data = clone(estimator).encode_training(X, y)
    result = solve(estimator.problem(data), max_passes=estimator.max_iter)
    judge = clone(estimator).set_weights(data, result.w, result.b)
    assert list(judge.predict(X)) == list(fitted.predict(X))
    assert judge.score(X, y) == fitted.score(X, y)


def test_one_who_watches_sees_every_pass_and_its_score(case):
    estimator, X, y = case
    data, judge = clone(estimator).encode_training(X, y), clone(estimator)

    def validate(w, b):
        return judge.set_weights(data, w, b).score(X, y)

    model = clone(estimator).fit_encoded(data, check_every=1.0, validate=validate)
    assert model.trace_[-1].validation == model.score(X, y)
