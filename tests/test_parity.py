"""What scikit-learn's users rely on beside the optimum: types of numbers, shapes of attributes, tags."""

import numpy as np
import pytest

import fenchel
from fenchel import ChainCRF, LinearSVC, LogisticRegression, MaxEntTagger
from fenchel.cli.sentences import Corpus, preset_for
from fenchel.compat import CRF
from fenchel.features.tokens import Tokens


@pytest.mark.parametrize("settings", [{}, {"intercept_scaling": 3.0}, {"fit_intercept": False}], ids=str)
def test_float32_features_give_float32_weights_with_their_own_certificate(settings, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5)).astype(np.float32)
    y = (X @ rng.normal(size=5) + rng.normal(size=80) > 0).astype(int)
    model = LogisticRegression(tol=1e-12, **settings).fit(X, y)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert model.n_iter_.shape == (1,) and model.n_iter_[0] >= 1
    w, b = model.coef_[0].astype(float), float(model.intercept_[0])
    penalised = w @ w + (b / 3.0) ** 2 * ("intercept_scaling" in settings)
    margins = np.where(y == 1, 1.0, -1.0) * (X.astype(float) @ w + b)
    assert model.certificate_.primal == pytest.approx(
        np.logaddexp(0.0, -margins).mean() + penalised / 160, rel=1e-14
    )
    exact = LogisticRegression(tol=1e-13, **settings).fit(X.astype(float), y).certificate_
    assert model.certificate_.primal - exact.primal <= model.certificate_.gap < 1e-11
    model.save(tmp_path / "m")
    again = fenchel.load(tmp_path / "m")
    assert again.coef_.dtype == np.float32 and again.n_iter_ == model.n_iter_
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_float64_stays_and_margins_too():
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 0.5]]), [0, 1, 1]
    assert LogisticRegression().fit(X, y).coef_.dtype == np.float64
    assert LinearSVC().fit(X.astype(np.float32), y).coef_.dtype == np.float32


def test_sequences_are_no_tables():
    for model in (ChainCRF(), MaxEntTagger(), CRF()):
        assert not model.__sklearn_tags__().input_tags.two_d_array
    assert LogisticRegression().__sklearn_tags__().input_tags.two_d_array


@pytest.mark.parametrize(
    "labels, columns, preset",
    [
        (("B-PER", "O"), 3, "ner"),
        (("I-loc", "O"), 3, "ner"),
        (("B-NP", "O"), 3, "chunk"),
        (("PER", "O"), 3, "chunk"),
        (("B-PER", "O"), 2, "pos"),
        (("B-NP", "O"), 4, "ner"),
        (("B-NP", "O"), 7, None),
    ],
)
def test_the_default_template_looks_at_the_labels(labels, columns, preset):
    y = Tokens.from_sentences([[(label,) for label in labels]])
    assert preset_for(Corpus("file", None, y, columns=columns)) == preset
