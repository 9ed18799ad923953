"""Predictions that are proven: never one that the exact optimum does not make."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from chains import parts_of, sequences
from fenchel import ChainCRF, LinearSVC, LogisticRegression, MaxEnt
from fenchel.estimators.proving import costs_of_changes
from test_compat import make_corpus

TOLERANCES = (1e-1, 1e-3, 1e-5, 1e-9)


def make_rows(classes, n=120, d=8, seed=0):
    """Rows of very different norms, a third of them next to the border."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.choice([0.05, 1.0, 4.0], size=(n, 1))
    y = (X @ rng.normal(size=(d, classes)) + rng.gumbel(size=(n, classes))).argmax(axis=1)
    return X, y, rng.normal(size=(400, d)) * rng.choice([1e-3, 0.3, 3.0], size=(400, 1))


def check(make, fit, X):
    """None proven is wrong, the share grows, and in the end next to all are."""
    best, shares = fit(make(1e-12)).predict(X), []
    for tol in TOLERANCES:
        model = fit(make(tol))
        proven, predicted = model.proven(X), model.predict(X)
        assert proven.dtype == bool and proven.shape == (len(predicted),)
        for sure, found, expected in zip(proven, predicted, best, strict=True):
            assert not sure or np.array_equal(found, expected)
        shares.append(proven.mean())
    assert (np.diff(shares) >= -0.02).all() and shares[-1] > 0.9 and shares[0] < shares[-1]
    return model


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("settings", [{"fit_intercept": False}, {"intercept_scaling": 2.0}])
def test_rows(classes, settings):
    X, y, test = make_rows(classes)
    check(lambda tol: LogisticRegression(tol=tol, **settings), lambda model: model.fit(X, y), test)


@pytest.mark.parametrize("far", [0.0, 30.0])
def test_a_free_intercept_of_two_classes(far, tmp_path):
    """Also where a column is far from zero, and where rows are of one side only next to the border."""
    X, y, test = make_rows(2, seed=4)
    X[:, 0] += far
    test[:, 0] += far
    model = check(lambda tol: LogisticRegression(C=0.3, tol=tol), lambda model: model.fit(X, y), test)
    low, high = model.offset_range_
    assert low <= LogisticRegression(C=0.3, tol=1e-13).fit(X, y).intercept_[0] <= high
    model.save(tmp_path / "m")
    again = fenchel.load(tmp_path / "m")
    assert again.certificate_.radius == model.certificate_.radius
    np.testing.assert_array_equal(again.proven(sp.csr_matrix(test)), model.proven(test))


def test_free_intercepts_of_more_classes_are_refused_by_a_sentence():
    X, y, test = make_rows(3)
    with pytest.raises(ValueError, match="free intercepts of more than two classes; fit with"):
        LogisticRegression().fit(X, y).proven(test)


def test_without_a_regulariser_nothing_is_proven():
    X, y, test = make_rows(2)
    model = LogisticRegression(C=np.inf, tol=0.1).fit(X, y)
    with pytest.raises(ValueError, match="no prediction can be proven: the certificate of this Logistic"):
        model.proven(test)


def test_margins():
    X, y, test = make_rows(3)

    def make(tol):
        return LinearSVC(C=0.1, tol=max(tol, 1e-7), max_iter=10**5)

    check(make, lambda model: model.fit(X, y), test)


def test_events_and_candidates():
    rng = np.random.default_rng(1)
    words = [f"w{k}" for k in range(12)]
    events = [rng.choice(words, 3).tolist() for _ in range(80)]
    labels = [min(event) if rng.random() < 0.7 else max(event) for event in events]
    check(lambda tol: MaxEnt(tol=tol, C=0.3), lambda model: model.fit(events, labels), events)
    sets = [{label: [label, *(f"{label}{w}" for w in event)] for label in event} for event in events]
    check(lambda tol: MaxEnt(tol=tol, C=0.3), lambda model: model.fit_joint(sets, labels), sets)


SETTINGS = [{}, {"boundaries": True}, {"transitions": False}, {"c1": 0.1, "c2": 0.5}]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_sequences(settings):
    X, y = make_corpus(30)
    X = [[[f"{k}{v}" for k, v in token.items() if isinstance(v, str)] for token in x] for x in X]
    check(lambda tol: ChainCRF(tol=tol, **settings), lambda model: model.fit(X, y), [[], *X])


def test_costs_bound_the_distance_of_every_other_sequence():
    """‖F(x, y) − F(x, y′)‖ is at most the costs of the labels that differ, for all y′ of short sequences."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(T, 2)) * rng.choice([0.0, 0.3, 2.0]) for T in (1, 2, 3, 4) for _ in range(3)]
    y = [rng.choice(["P", "Q", "R"], size=len(x)).tolist() for x in X]
    layout = ChainCRF(max_iter=1, tol=1.0).fit(X, y)._unlabelled(X, None, None).layout
    cost, back = costs_of_changes(layout, 1.0)
    for x, begin in zip(X, layout.starts.astype(int), strict=False):
        T = len(x)
        every = sequences(T, 3)
        nodes, moves = np.split(parts_of(every, 3, 0), [3 * T], axis=1)
        F = np.einsum("mtk,td->mkd", nodes.reshape(-1, T, 3), x).reshape(len(every), -1)
        F = np.hstack([F, moves])
        for k in (0, len(every) // 2, len(every) - 1):
            differs = every != every[k]
            returns = differs & ~np.roll(differs, -1, axis=1)
            returns[:, -1] = False
            bounds = differs @ cost[begin : begin + T] + returns @ back[begin : begin + T]
            assert (np.linalg.norm(F - F[k], axis=1) <= bounds + 1e-12).all()
