"""Predictions that are proven: never one that the exact optimum does not make."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

import fenchel
from chains import parts_of, sequences
from fenchel import ChainCRF, LinearSVC, LogisticRegression, MaxEnt
from fenchel.estimators.proving import costs_of_changes
from fenchel.structures.offset_range import offset_range
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
    assert (np.diff(shares) >= -0.02).all() and shares[-1] > 0.9
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


@pytest.mark.parametrize("classes", [3, 6])
def test_free_intercepts_of_more_classes(classes, tmp_path):
    """Also where a column is far from zero, and a class is rare."""
    X, y, test = make_rows(classes, seed=4)
    X[:, 0] += 3.0
    test[:, 0] += 3.0
    model = check(lambda tol: LogisticRegression(C=0.3, tol=tol), lambda model: model.fit(X, y), test)
    exact = LogisticRegression(C=0.3, tol=1e-13).fit(X, y).intercept_
    (low, high), common = model.offset_range_, np.bincount(y).argmax()
    assert (low <= exact - exact[common]).all() and (exact - exact[common] <= high).all()
    assert low[common] == high[common] == 0.0
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(fenchel.load(tmp_path / "m").proven(test), model.proven(test))


@pytest.mark.parametrize("seed", range(20))
def test_no_scores_within_reach_balance_outside_of_the_range(seed):
    """Offsets that balance scores moved at random, as far as they may, lie within the bounds."""
    rng = np.random.default_rng(seed)
    n, K = rng.integers(K := rng.integers(3, 6), 40), K
    scores, mass = rng.normal(size=(n, K)) * rng.choice([0.1, 2.0, 8.0]), rng.dirichlet(np.ones(n))
    y = np.concatenate([np.arange(K), rng.integers(K, size=n - K)])
    shares, far = np.bincount(y, mass, K), rng.random(n) * rng.choice([1e-9, 0.01, 0.5])
    low, high = offset_range(scores, far, mass, shares, np.zeros(K))
    common = shares.argmax()
    assert (low <= high).all()
    for part in (0.0, 1.0, 1.0):
        moves = rng.choice([-1.0, 1.0], size=(n, K)) if part else np.zeros((n, K))
        b = balanced(scores + 0.5 * part * far[:, None] * moves, mass, shares)
        assert (low <= b - b[common]).all() and (b - b[common] <= high).all()


def balanced(scores, mass, shares):
    """Offsets whose mean probabilities are the shares: the minimum of a convex function."""

    def loss(b):
        return mass @ logsumexp(scores + b, axis=1) - shares @ b, mass @ softmax(scores + b, axis=1) - shares

    b = minimize(loss, np.zeros(shares.size), jac=True, method="BFGS", options={"gtol": 1e-13}).x
    for _ in range(3):  # Newton, to the last digits
        p = softmax(scores + b, axis=1)
        hessian = np.diag(mass @ p) - (p.T * mass) @ p
        b = b - np.linalg.pinv(hessian) @ (mass @ p - shares)
    return b


def test_free_intercepts_of_too_many_classes_are_refused_by_a_sentence(monkeypatch):
    monkeypatch.setattr("fenchel.points.LARGEST_RANGE", 100)
    X, y, test = make_rows(3)
    with pytest.raises(ValueError, match="free intercepts of 3 classes on so many rows; fit with"):
        LogisticRegression(tol=1e-9).fit(X, y).proven(test)


@pytest.mark.parametrize("settings", [{}, {"l1_ratio": 0.5}, {"fit_intercept": False}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_weights_of_a_dual_point_are_nearer(classes, settings):
    """√(gap/λ) instead of √(2·gap/λ), and the optimum is no farther."""
    X, y, _ = make_rows(classes)
    exact = LogisticRegression(C=0.3, tol=1e-13, **settings).fit(X, y).coef_
    model = LogisticRegression(C=0.3, solver="sdca", tol=0.1, **settings).fit(X, y)
    certificate = model.certificate_
    assert len(model.trace_.rows) == 1  # so that one point has both bounds
    assert certificate.radius == pytest.approx(np.sqrt(certificate.gap / certificate.lam), rel=0.3)
    assert certificate.radius < np.sqrt(2.0 * certificate.gap / certificate.lam)
    assert 0.0 < np.linalg.norm(model.coef_ - exact) <= certificate.radius


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
