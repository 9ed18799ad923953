"""The rule behind solver="auto": what it sees of a problem."""

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel import problems
from fenchel.choosing import choose


def sequences(n, length, attributes):
    """n sequences, two labels, an attribute a token."""
    rng = np.random.default_rng(0)
    N = n * length
    X = sp.csr_matrix((np.ones(N), rng.integers(0, attributes, N), np.arange(N + 1)), (N, attributes))
    return problems.chain(X, rng.integers(0, 2, N), np.arange(0, N + 1, length), labels=2)


@pytest.mark.parametrize(
    "n, length, attributes, name",
    [
        (50, 20, 30, "eg-gap"),
        (1, 500, 50, "lbfgs"),  # 575 passes of eg-gap, 14 of lbfgs
        (40, 500, 50, "lbfgs"),
        (4, 500, 4000, "eg-gap"),
        (1, 4000, 8000, "lbfgs"),
    ],
)
def test_long_sequences(n, length, attributes, name):
    assert choose(sequences(n, length, attributes)) == name


def test_features_far_apart():
    """Too many columns for a matrix: L-BFGS scales them, and the others would take forever."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 600)), rng.integers(0, 3, 400)
    X[:, 0] *= 1e6
    assert choose(problems.flat(X, y)) == "lbfgs"
    assert choose(problems.flat(X[:, 1:], y, C=10.0)) == "tron"
    X[X < 1.5] = 0.0
    assert choose(problems.flat(X, y)) == "lbfgs"
    assert choose(problems.flat(X[:, 1:], y)) == "cd-dual"


def test_many_features_far_apart_and_few_examples():
    """All but separable: Newton alone proves its model, and the matrix is worth seconds."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 300)) * np.geomspace(1e-6, 1e9, 300), rng.integers(0, 2, 400)
    assert choose(problems.binary(X, y)) == "newton"
    assert choose(problems.binary(np.vstack([X] * 3), np.tile(y, 3))) == "lbfgs"


def test_a_matrix_that_does_not_fit(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(500, 20)), np.arange(500) % 2
    assert choose(problems.binary(X, y)) == "newton"
    monkeypatch.setattr("fenchel.choosing.available_bytes", lambda: 2 * 5 * 8 * 20**2 - 1)
    assert choose(problems.binary(X, y)) == "lbfgs"
