"""The interior point method: what it is for, where dual coordinates crawl, and data that rounding eats."""

import numpy as np
import pytest

from fenchel import problems, solve
from fenchel.choosing import relay, solver_name
from fenchel.trace import Status


def table(n, d, classes, scale=1.0, seed=0):
    """Counts far from centred, the first column `scale` times as large; labels that they tell poorly."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 15, size=(n, d)).astype(float)
    y = (X @ rng.standard_normal((d, classes)) + 5.0 * rng.standard_normal((n, classes))).argmax(axis=1)
    X[:, 0] *= scale
    y[:classes] = np.arange(classes)
    return X, y


def margins(X, y, C):
    if y.max() == 1:
        return problems.binary(X, y.astype(float), C=C, loss="hinge", fit_intercept=True)
    return problems.flat(X, y, C=C, loss="hinge", fit_intercept=True)


def objective(X, y, C, w, classes):
    """mean hinge loss + ‖w‖²/(2Cn) in plain NumPy; the constant feature is the last."""
    wide = np.column_stack([X, np.ones(len(y))])
    if classes == 2:
        losses = np.maximum(1.0 - (2.0 * y - 1.0) * (wide @ w), 0.0)
    else:
        scores = wide @ w.reshape(-1, classes)
        truth = scores[np.arange(y.size), y]
        scores += 1.0 - np.eye(classes)[y]
        losses = scores.max(axis=1) - truth
    return losses.mean() + w @ w / (2.0 * C * len(y))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("C, scale", [(1e-3, 1.0), (1e4, 1.0), (1.0, 1e4)])
def test_few_iterations_whatever_the_scales(classes, C, scale):
    X, y = table(80, 4, classes, scale)
    result = solve(margins(X, y, C), "interior-point", tol=1e-4)
    assert result.status is Status.CONVERGED
    assert result.trace[-1].updates <= 40 * 80
    assert all(row.primal >= row.dual for row in result.trace)
    assert result.certificate.primal == pytest.approx(objective(X, y, C, result.w, classes), rel=1e-9)


def test_no_model_is_better_than_the_bound_allows():
    X, y = table(80, 4, 3)
    result, rng = solve(margins(X, y, 10.0), "interior-point", tol=1e-7), np.random.default_rng(1)
    for size in 10.0 ** np.arange(-6.0, 1.0):
        other = result.w + size * rng.standard_normal(result.w.size)
        assert objective(X, y, 10.0, other, 3) >= result.certificate.dual


@pytest.mark.parametrize(
    "X, y",
    [
        (np.zeros((4, 2)), [0, 1, 0, 1]),
        (np.array([[1.0], [1.0]]), [0, 1]),
        (1e100 * np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [0, 1, 1]),
        (1e-100 * np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [0, 1, 2]),
        (np.array([[1.0, 0.0], [0.0, 1e8], [1.0, 1.0]]), [0, 1, 2]),
    ],
)
def test_hostile_tables_have_true_certificates(X, y):
    X, y = np.asarray(X), np.asarray(y)
    result = solve(margins(X, y, 1.0), "auto", tol=1e-6, max_passes=300)
    assert np.isfinite(result.w).all()
    assert all(row.primal >= row.dual for row in result.trace)


def test_auto_takes_it_where_coordinates_would_crawl():
    X, y = table(300, 5, 2)
    assert solver_name(relay("auto", margins(X, y, 100.0))[0].solver) == "interior-point"
    easy, *others = relay("auto", margins(X / 100.0, y, 0.1))
    assert solver_name(easy.solver) == "cd-dual"
    assert [solver_name(leg.solver) for leg in others] == ["interior-point"]
