"""Small problems of several labels and of candidate sets, and one dense reference for both.

Labels crossed with attributes are candidates too: f(x, k) is x in the k-th of K places, so that one naive
reference, of candidates written out row by row, serves both layouts.
"""

from functools import cache
from itertools import pairwise
from math import inf, isfinite
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, minimize

from fenchel import problems
from fenchel.losses import LOSSES
from fenchel.offers import REGULARISED, offered
from fenchel.solvers import SOLVERS, solver_class
from fenchel.structures.crossed import Crossed
from fenchel.structures.joint import Joint
from matrix import dense_features, sparse_features

N = 24


class Candidates:
    """P, D and their pieces: F (M, d) features of all candidates, y (M,) their targets, everything dense.

    free: K, where K offsets, one for each place in a candidate set of K, are.
    """

    def __init__(self, F, y, starts, lam, weight=None, free=0, hinge=False):
        self.F, self.y, self.lam, self.free, self.hinge = F, y, lam, free, hinge
        self.first, self.counts = starts[:-1], np.diff(starts)
        self.n = len(self.counts)
        self.owner = np.repeat(np.arange(self.n), self.counts)
        weight = np.ones(self.n) if weight is None else weight
        self.mass = weight / weight.sum()
        self.ones = np.tile(np.eye(free), (self.n, 1)) if free else np.zeros((len(y), 0))

    def scores(self, w, b=0.0):
        return self.F @ w + (self.ones @ b if self.free else 0.0)

    def cost(self):
        return 1.0 - self.y

    def losses(self, s):
        """(n,) of each example."""
        truth = np.add.reduceat(self.y * s, self.first)
        if self.hinge:
            return np.maximum.reduceat(s + self.cost(), self.first) - truth
        return np.logaddexp.reduceat(s, self.first) - truth

    def marginals(self, s):
        return np.exp(s - np.logaddexp.reduceat(s, self.first)[self.owner])

    def primal(self, w, b=0.0):
        return self.mass @ self.losses(self.scores(w, b)) + 0.5 * self.lam * w @ w

    def gradient(self, w, b=0.0):
        """(∂P/∂w, ∂P/∂b)."""
        residual = self.mass[self.owner] * (self.marginals(self.scores(w, b)) - self.y)
        return self.F.T @ residual + self.lam * w, self.ones.T @ residual

    def weights(self, mu):
        """w(μ) = (1/λ) Σ m_i A_iᵀ(y_i − μ_i)."""
        return self.F.T @ (self.mass[self.owner] * (self.y - mu)) / self.lam

    def dual(self, mu):
        w = self.weights(mu)
        p = np.where(mu > 0.0, mu, 1.0)
        concave = self.cost() * mu if self.hinge else -p * np.log(p)
        return self.mass[self.owner] @ concave - 0.5 * self.lam * w @ w

    def optimum(self, steps=200):
        """(P*, w, b) of the log loss: Newton on (w, b) with backtracking until P stands, and one more."""
        A = np.hstack([self.F, self.ones])
        ridge = np.repeat([self.lam, 0.0], [self.F.shape[1], self.free])
        mass, u = self.mass[self.owner], np.zeros(A.shape[1])
        gather = sp.csr_matrix((np.ones(len(A)), (self.owner, np.arange(len(A)))))

        def value(u):
            return self.mass @ self.losses(A @ u) + 0.5 * ridge @ u**2

        best = value(u)
        for _ in range(steps):
            p = self.marginals(A @ u)
            means = gather @ (p[:, None] * A)
            gradient = A.T @ (mass * (p - self.y)) + ridge * u
            hessian = (A.T * (mass * p)) @ A - (means.T * self.mass) @ means + np.diag(ridge)
            direction, *_ = np.linalg.lstsq(hessian, -gradient, rcond=1e-14)
            step, now = 1.0, inf
            while not now < best and step > 1e-12:
                now = value(u + step * direction)
                step *= 0.5
            if not now < best:
                u, best = u + direction, value(u + direction)
                break
            u, best = u + 2.0 * step * direction, now
        d = self.F.shape[1]
        return best, u[:d], u[d:] - u[d:].mean() if self.free else 0.0

    def hinge_optimum(self):
        """(P*, w) as a quadratic program in w and the slacks: slack_i ≥ cost_y + s_y − s_true for every y."""
        d, lam = self.F.shape[1], self.lam
        gather = sp.csr_matrix((self.y, (self.owner, np.arange(len(self.y)))))
        difference = (gather @ self.F)[self.owner] - self.F
        scale = 1.0 / np.sqrt(lam)  # w = scale · u has a Hessian of one
        A = np.hstack([scale * difference, np.eye(self.n)[self.owner]])
        found = minimize(
            lambda u: self.mass @ u[d:] + 0.5 * u[:d] @ u[:d],
            np.concatenate([np.zeros(d), np.ones(self.n)]),
            jac=lambda u: np.concatenate([u[:d], self.mass]),
            constraints=LinearConstraint(A, self.cost(), inf),
            method="SLSQP",
            options={"maxiter": 1000, "ftol": 1e-15},
        )
        w = scale * found.x[:d]
        return self.primal(w), w


class Case(NamedTuple):
    """A problem by its parts, so that other tools can be given the same.

    Crossed: X (n, A), y labels or (n, K) probabilities. Joint: X (M, d) and starts.
    """

    name: str
    X: object
    y: np.ndarray
    C: float = 1.0
    free: bool = False
    weight: np.ndarray | None = None
    labels: int | None = None
    starts: np.ndarray | None = None

    @property
    def joint(self):
        return self.starts is not None

    @property
    def n(self):
        return len(self.starts) - 1 if self.joint else len(self.y)

    @property
    def lam(self):
        return 1.0 / (self.C * (self.n if self.weight is None else self.weight.sum()))

    def problem(self, **settings):
        settings = {"C": self.C, "sample_weight": self.weight} | settings
        if self.joint:
            return problems.joint(self.X, self.y, self.starts, **settings)
        return problems.flat(self.X, self.y, labels=self.labels, fit_intercept=self.free, **settings)

    def targets(self):
        """(n, K) of a crossed case."""
        return np.eye(self.labels)[self.y] if self.y.ndim == 1 else self.y

    def dense(self, hinge=False):
        X = self.X.toarray() if sp.issparse(self.X) else self.X
        if self.joint:
            y = self.y
            if len(y) == self.n:
                y = np.zeros(len(X))
                y[self.starts[:-1] + self.y] = 1.0
            return Candidates(X, y, self.starts, self.lam, self.weight, hinge=hinge)
        F, starts = written_out(X, self.labels)
        parts = (F, self.targets().ravel(), starts, self.lam, self.weight)
        if not self.free:
            return Candidates(*parts, hinge=hinge)
        return Candidates(*parts, free=self.labels)

    def without_zero_weights(self):
        """The same crossed problem without the rows of weight zero, which the library drops."""
        if self.weight is None:
            return self
        keep = self.weight > 0.0
        return self._replace(X=self.X[keep], y=self.y[keep], weight=self.weight[keep])

    def __str__(self):
        return self.name


def written_out(X, labels):
    """kron(x_i, I_K) for every row, and where the candidates of each begin: crossed as joint features."""
    F = np.einsum("ia,jk->ijak", X, np.eye(labels)).reshape(len(X) * labels, -1)
    return F, np.arange(len(X) + 1) * labels


# ---- labels crossed with attributes


def label(X, rng, labels, noise=1.0):
    """Labels of a noisy linear rule, about equally frequent, each at least once."""
    X = X.toarray() if sp.issparse(X) else X
    scale = X.std(axis=0)
    s = (X / np.where(scale > 0.0, scale, 1.0)) @ rng.normal(size=(X.shape[1], labels))
    s = (s - s.mean(axis=0)) / np.maximum(s.std(axis=0), 1e-12)
    y = np.argmax(s + 0.5 * noise * rng.gumbel(size=s.shape), axis=1)
    y[:labels] = np.arange(labels)
    return y


def base(kind, labels=3, seed=0):
    rng = np.random.default_rng(seed)
    X = dense_features(rng, N, 6) if kind == "dense" else sparse_features(rng, N, 20, 0.15)
    return X, label(X, rng, labels)


def separable():
    rng = np.random.default_rng(2)
    y = np.arange(N) % 3
    return rng.uniform(0.0, 0.3, size=(N, 5)) + np.eye(5)[y], y


def with_zeros(rows=(), columns=()):
    X, y = base("dense", seed=4)
    X[list(rows)] = 0.0
    X[:, list(columns)] = 0.0
    return X, y


def soft(n=N, labels=3, seed=5):
    """Rows of probabilities: general ones, some with zeros, some certain."""
    y = np.random.default_rng(seed).dirichlet(np.ones(labels), size=n)
    y[:3, 0] = 0.0
    y /= y.sum(axis=1, keepdims=True)
    y[3:6] = np.eye(labels)[[0, 1, 2]]
    return y


def weights(n=N, seed=7):
    weight = np.random.default_rng(seed).integers(0, 5, size=n).astype(float)
    weight[:3] = 1.0
    return weight


def crossed_cases():
    out = []
    for kind in ("dense", "sparse"):
        for C in (1e-4, 1.0, 1e4):
            for free in (False, True):
                name = f"{kind}-C={C:g}{'-free' if free else ''}"
                out.append(Case(name, *base(kind), C, free, labels=3))
    for free in (False, True):
        tail = "-free" if free else ""
        for labels in (2, 7):
            kind = "dense" if labels == 7 else "sparse"
            out.append(Case(f"{kind}-K={labels}{tail}", *base(kind, labels), free=free, labels=labels))
        out.append(Case(f"weights{tail}", *base("sparse"), 0.1, free, weights(), labels=3))
        out.append(Case(f"soft{tail}", base("dense")[0], soft(), free=free, labels=3))
        out.append(Case(f"zero-rows{tail}", *with_zeros(rows=(3, 9, 20)), free=free, labels=3))
        out.append(Case(f"zero-columns{tail}", *with_zeros(columns=(0, 3)), free=free, labels=3))
        out.append(Case(f"separable{tail}", *separable(), free=free, labels=3))
        out.append(Case(f"K=1{tail}", base("dense")[0], np.zeros(N, int), free=free, labels=1))
    out.append(Case("separable-C=1e4", *separable(), C=1e4, labels=3))
    out.append(Case("unseen-label", *base("sparse"), labels=4))
    return out


# ---- candidate sets


def ragged(kind, seed=0, n=N, d=8, one=False):
    """Candidate sets of 1 to 6 whose features overlap; "binary" 0/1 or "real" numbers ≥ 0."""
    rng = np.random.default_rng(seed)
    counts = np.ones(n, int) if one else 1 + np.arange(n) % 6
    starts = np.concatenate([[0], np.cumsum(counts)])
    if kind == "binary":
        F = sp.csr_matrix((rng.uniform(size=(starts[-1], d)) < 0.3).astype(float))
    else:
        F = dense_features(rng, starts[-1], d)
    s = F @ rng.normal(size=d) / (1.0 if kind == "binary" else 0.1) + rng.gumbel(size=starts[-1])
    y = np.array([np.argmax(s[a:b]) for a, b in pairwise(starts)])
    return F, y, starts


def joint_cases():
    out = []
    for kind in ("real", "binary"):
        F, y, starts = ragged(kind)
        for C in (1e-4, 1.0, 1e4):
            out.append(Case(f"joint-{kind}-C={C:g}", F, y, C, starts=starts))
    F, y, starts = ragged("binary", 1)
    out.append(Case("joint-weights", F, y, weight=weights(), starts=starts))
    probabilities = np.random.default_rng(3).uniform(size=starts[-1])
    probabilities[[1, 4, 10]] = 0.0
    sums = np.add.reduceat(probabilities, starts[:-1])
    out.append(Case("joint-soft", F, probabilities / np.repeat(sums, np.diff(starts)), starts=starts))
    F, y, starts = ragged("real", 2, one=True)
    out.append(Case("joint-one-candidate", F, y, starts=starts))
    X, y = base("dense")
    F, starts = written_out(X, 3)
    out.append(Case("joint-written-out", F, y, starts=starts))
    return out


@cache
def cases():
    """Every case by its name, in a fixed order."""
    return {case.name: case for case in (*crossed_cases(), *joint_cases())}


@cache
def optimum(name):
    """(P*, w, b) of the log loss by the naive Newton method; proven by its own duality gap."""
    case = cases()[name]
    dense = case.dense()
    value, w, b = dense.optimum()
    gradient, slopes = dense.gradient(w, b)
    assert gradient @ gradient / (2.0 * case.lam) <= 1e-10 * value + 1e-300
    assert (np.abs(slopes) <= 1e-9).all()
    return value, w, b


@cache
def hinge_optimum(name, C=None):
    """P* of the hinge loss by the quadratic program; C: in the place of the case's own."""
    case = cases()[name]
    return case._replace(C=case.C if C is None else C).dense(hinge=True).hinge_optimum()[0]


# ---- what every run must show


def accepts(solver, case, loss="log"):
    """Whether the solver of that name takes the (regularised) problem."""
    given = offered(Joint if case.joint else Crossed, LOSSES[loss]) | REGULARISED
    return solver_class(solver).needs <= given


def pairs(names, loss="log"):
    """(solver, name) for every solver and case that go together, for parametrize."""
    return [(s, name) for s in SOLVERS for name in names if accepts(s, cases()[name], loss)]


def assert_certified(result, problem, dense, best, accuracy=1e-11):
    """The certificate is true: of the model returned, and on every row against the known optimum `best`."""
    rounding = accuracy * best + 1e-300
    primal = inf
    for row in result.trace:
        assert isfinite(row.primal) and isfinite(row.dual)
        assert row.primal >= row.dual - 1e-12 * abs(row.primal)
        assert row.dual <= best + rounding
        primal = min(primal, row.primal)
        assert primal >= best - rounding
        assert primal - best <= row.gap + rounding
    certificate = result.certificate
    assert certificate.primal <= primal  # less where w = 0 is better than all of them
    assert certificate.primal == pytest.approx(dense.primal(result.w, result.b), rel=1e-9, abs=1e-14)
    assert certificate.dual <= best + rounding
    assert certificate.primal - best <= certificate.gap + rounding
    if result.mu is not None:
        assert_distributions(result.mu, problem.examples.starts)


def assert_distributions(mu, starts):
    assert (mu >= 0.0).all()
    sums = mu.sum(axis=1) if starts is None else np.add.reduceat(mu, starts[:-1].astype(int))
    np.testing.assert_allclose(sums, 1.0, rtol=0.0, atol=1e-12)
