"""The matrix of small problems that every solver is run on: realistic, features ≥ 0, made from seeds."""

from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from brute import Dense
from fenchel import problems

N = 48


class Case(NamedTuple):
    """A problem by its parts, so that other tools can be given the same."""

    name: str
    X: object
    y: np.ndarray
    C: float = 1.0
    free: bool = False
    weight: np.ndarray | None = None
    scaled: bool = True  # columns of comparable size

    @property
    def lam(self):
        return 1.0 / (self.C * (len(self.y) if self.weight is None else self.weight.sum()))

    def problem(self):
        return problems.binary(self.X, self.y, C=self.C, fit_intercept=self.free, sample_weight=self.weight)

    def dense(self):
        return Dense(self.X, self.y, self.lam, self.weight, self.free)

    def __str__(self):
        return self.name


def labels(X, rng, noise=1.0, bias=0.0):
    """0/1 labels of a noisy linear rule; both classes about equally frequent and overlapping."""
    X = np.asarray(X.todense()) if sp.issparse(X) else X
    scale = X.std(axis=0)
    w = rng.normal(size=X.shape[1]) / np.where(scale > 0.0, scale, 1.0)
    s = X @ w
    s = (s - np.median(s)) / max(s.std(), 1e-12) + bias
    return (s + noise * rng.logistic(size=len(s)) * 0.5 > 0.0).astype(float)


def dense_features(rng, n=N, d=10):
    """Many small values and few large ones, up to 0.3."""
    return 0.3 * rng.uniform(0.0, 1.0, size=(n, d)) ** 3


def sparse_features(rng, n=N, d=60, density=0.1):
    X = sp.random(n, d, density=density, format="csr", random_state=rng)
    X.data = np.ceil(3.0 * X.data)
    return X


def base(kind, seed=0):
    rng = np.random.default_rng(seed)
    X = dense_features(rng) if kind == "dense" else sparse_features(rng)
    return X, labels(X, rng)


def unscaled():
    """Columns up to 0.03, 0.1, ... 30: the condition number of the Gram matrix grows a millionfold."""
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(N, 7)) * 10.0 ** np.linspace(-1.5, 1.5, 7)
    return X, labels(X, rng)


def separable():
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(N, 8))
    s = X @ np.array([3.0, -2.0, 1.0, 0.5, -1.0, 0.0, 2.0, -3.0])
    keep = np.abs(s - np.median(s)) > 0.15
    X, s = X[keep], s[keep] - np.median(s)
    return X, (s > 0.0).astype(float)


def with_zero_rows(X, y):
    X = X.copy()
    X[[3, 17, 30]] = 0.0
    return X, y


def with_zero_columns(X, y):
    X = X.copy()
    X[:, [0, 5]] = 0.0
    return X, y


@cache
def cases():
    """Every case of the matrix, in a fixed order."""
    out = []
    for kind in ("dense", "sparse"):
        X, y = base(kind)
        for C in (1e-4, 1.0, 1e4):
            for free in (False, True):
                out.append(Case(f"{kind}-C={C:g}{'-free' if free else ''}", X, y, C, free))
    X, y = unscaled()
    for C in (1e-4, 1.0, 1e4):
        for free in (False, True):
            out.append(Case(f"unscaled-C={C:g}{'-free' if free else ''}", X, y, C, free, scaled=False))
    X, y = base("dense", 3)
    out.append(
        Case("duplicate-rows", np.vstack([X, X[:10], X[:10]]), np.concatenate([y, y[:10], 1 - y[:10]]))
    )
    for free in (False, True):
        tail = "-free" if free else ""
        out.append(Case(f"zero-rows{tail}", *with_zero_rows(*base("dense", 4)), free=free))
        out.append(Case(f"zero-columns{tail}", *with_zero_columns(*base("dense", 5)), free=free))
        out.append(Case(f"separable{tail}", *separable(), free=free))
        X, y = base("sparse", 6)
        weight = np.random.default_rng(7).integers(0, 5, size=N).astype(float)
        out.append(Case(f"weights{tail}", X, y, free=free, weight=weight))
    out.append(Case("separable-C=1e4", *separable(), C=1e4))
    return tuple(out)


@cache
def optimum(name):
    """(P*, w, b) of a case by the naive dense Newton method; proven by its own duality gap."""
    case = next(case for case in cases() if case.name == name)
    dense = case.dense()
    value, w, b = dense.optimum()
    gradient, slope = dense.gradient(w, b)
    assert gradient @ gradient / (2.0 * case.lam) <= 1e-10 * value
    assert abs(slope) <= 1e-9 or not case.free
    return value, w, b
