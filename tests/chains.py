"""Sequences listed one by one: a lattice by enumeration, and chain problems as candidate sets written out."""

from functools import cache
from itertools import product
from math import inf, isfinite

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag

from fenchel import problems
from flat_matrix import Candidates

NOTHING = np.empty(0, np.uint8)


@cache
def sequences(T, K):
    """(K^T, T): all of them, in alphabetical order."""
    return np.array(list(product(range(K), repeat=T)), dtype=np.int64).reshape(K**T, T)


def length(T, K, stride):
    """How many numbers the parts of a sequence are."""
    return T * K + (K * K if stride == 0 else (T - 1) * stride)


def parts_of(y, K, stride):
    """(M, parts): how often each sequence holds each part, in the layout of `lattice.py`."""
    M, T = y.shape
    parts, every = np.zeros((M, length(T, K, stride))), np.arange(M)
    for t in range(T):
        parts[every, t * K + y[:, t]] = 1.0
        if t > 0:
            parts[every, T * K + (t - 1) * stride + y[:, t - 1] * K + y[:, t]] += 1.0
    return parts


def allowed(y, banned):
    """(M,) bool: whether no two neighbours are a banned pair."""
    return ~banned[y[:, :-1], y[:, 1:]].any(axis=1)


class Lattice:
    """All sequences that can be, with their scores: log Z, marginals and the rest from the formulas."""

    def __init__(self, T, K, s, stride, banned=None):
        y = sequences(T, K)
        self.y = y if banned is None else y[allowed(y, banned)]
        self.parts = parts_of(self.y, K, stride)
        scores = np.where(self.parts > 0.0, s, 0.0)
        with np.errstate(invalid="ignore"):
            scores = (scores * self.parts).sum(axis=1)
        possible = scores > -inf
        self.y, self.parts, self.scores = self.y[possible], self.parts[possible], scores[possible]

    @property
    def probabilities(self):
        p = np.exp(self.scores - self.scores.max())
        return p / p.sum()

    @property
    def log_partition(self):
        if not len(self.scores):
            return -inf
        top = self.scores.max()
        return top + np.log(np.exp(self.scores - top).sum())

    @property
    def marginals(self):
        return self.probabilities @ self.parts if len(self.scores) else np.zeros(self.parts.shape[1])

    @property
    def entropy(self):
        p = self.probabilities[self.probabilities > 0.0]
        return -(p @ np.log(p))

    def covariance(self, direction):
        p, along = self.probabilities, self.parts @ direction
        return (p * (along - p @ along)) @ self.parts


# ---- whole problems


class WrittenOut(Candidates):
    """A chain problem whose outputs are all written out, each with its vector F(x, y).

    The dual variables are a probability for each sequence; `owner` says whose. Hamming costs for the hinge.
    """

    def __init__(self, data, lam, hinge=False):
        features, targets, costs, self.all_parts, starts = [], [], [], [], [0]
        for i in range(data.n):
            y = data.outputs(i)
            true = data.y[data.tokens(i)]
            features.append(np.array([data.features(i, labels) for labels in y]))
            targets.append((y == true).all(axis=1).astype(float))
            costs.append((y != true) @ data.costs[data.tokens(i)])
            self.all_parts.append(parts_of(y, data.K, data.K**2))
            starts.append(starts[-1] + len(y))
        super().__init__(
            np.vstack(features), np.concatenate(targets), np.array(starts), lam, data.weight, hinge=hinge
        )
        self.costs = np.concatenate(costs)

    def cost(self):
        return self.costs

    def part_marginals(self, mu):
        """Those of nodes and edges, a table for each edge, from the probabilities of sequences."""
        pieces = np.split(mu, self.first[1:])
        return np.concatenate([p @ parts for p, parts in zip(pieces, self.all_parts, strict=True)])


class Data:
    """The arrays of a chain problem, dense, before anything is made of them."""

    def __init__(self, X, y, starts, K, edges=None, transitions=True, banned=None, weight=None, costs=None):
        self.X, self.y, self.starts, self.K = X, y, starts, K
        self.edges = np.zeros((len(y), 0)) if edges is None else edges
        self.transitions, self.banned, self.weight = transitions, banned, weight
        self.costs = np.ones(len(y)) if costs is None else costs

    @property
    def n(self):
        return len(self.starts) - 1

    def tokens(self, i):
        return slice(self.starts[i], self.starts[i + 1])

    def outputs(self, i):
        """(M, T): the sequences that example i can have."""
        y = sequences(int(self.starts[i + 1] - self.starts[i]), self.K)
        return y if self.banned is None else y[allowed(y, self.banned)]

    def features(self, i, labels):
        """F(x_i, y) = [W | V | T] as one vector."""
        K, X, Z = self.K, self.X[self.tokens(i)], self.edges[self.tokens(i)]
        W, V = np.zeros((X.shape[1], K)), np.zeros((Z.shape[1], K, K))
        table = np.zeros((K, K) if self.transitions else 0)
        for t, label in enumerate(labels):
            W[:, label] += X[t]
            if t > 0:
                V[:, labels[t - 1], label] += Z[t]
            if t > 0 and self.transitions:
                table[labels[t - 1], label] += 1.0
        return np.concatenate([W.ravel(), V.ravel(), table.ravel()])

    def matrix(self, i, stride):
        """A_i (parts, d): what each weight adds to the score of each part."""
        K, X, Z = self.K, self.X[self.tokens(i)], self.edges[self.tokens(i)]
        T, B, pairs = len(X), Z.shape[1], np.eye(K**2)
        tables = T - 1 if stride else 1
        W = np.einsum("ta,jk->tjak", X, np.eye(K)).reshape(T * K, X.shape[1] * K)
        V = np.einsum("tb,jk->tjbk", Z[1:], pairs).reshape((T - 1) * K**2, B * K**2)
        table = np.tile(pairs, (tables, 1)) if self.transitions else np.zeros((tables * K**2, 0))
        edges = np.hstack([V if stride else np.zeros((K**2, 0)), table])
        return block_diag(W, edges)

    def problem(self, loss="log", **settings):
        edges = self.edges if self.edges.shape[1] else None
        costs = {"token_weight": self.costs} if loss == "hinge" else {}
        parts = {"labels": self.K, "edges": edges, "transitions": self.transitions, "banned": self.banned}
        given = {"loss": loss, "sample_weight": self.weight} | parts | costs | settings
        return problems.chain(sp.csr_matrix(self.X), self.y, self.starts, **given)

    def written_out(self, lam, hinge=False):
        return WrittenOut(self, lam, hinge)


def random_data(seed=0, lengths=(1, 2, 3, 4, 3, 1), A=5, K=3, B=0, negative=False, **more):
    """Sparse attributes, at least one per token, and labels of a noisy rule that likes to keep a label."""
    rng = np.random.default_rng(seed)
    N = sum(lengths)
    X = (rng.uniform(size=(N, A)) < 0.4) * rng.integers(1, 4, size=(N, A)) / 2.0
    X[np.arange(N), rng.integers(A, size=N)] = 1.0
    if negative:
        X *= rng.choice([-1.0, 1.0], size=X.shape)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    scores = X @ rng.normal(size=(A, K)) + rng.gumbel(size=(N, K))
    y = np.argmax(scores, axis=1)
    for t in range(1, N):
        if t not in starts and rng.uniform() < 0.3:
            y[t] = y[t - 1]
    if B:
        more["edges"] = (rng.uniform(size=(N, B)) < 0.5) * rng.normal(size=(N, B))
    return Data(X, y, starts, K, **more)


def allow_only(data, seed=0):
    """(K, K) bool: some of the pairs that the data do not hold."""
    banned = np.random.default_rng(seed).uniform(size=(data.K, data.K)) < 0.5
    for i in range(data.n):
        y = data.y[data.tokens(i)]
        banned[y[:-1], y[1:]] = False
    return banned


# ---- what every run must show


def assert_certified(result, best, accuracy=1e-11):
    """P ≥ D on every row, and the optimum `best` between them; the certificate says the truth."""
    rounding = accuracy * best + 1e-300
    primal = inf
    for row in result.trace:
        assert isfinite(row.primal) and isfinite(row.dual)
        assert row.primal >= row.dual - 1e-12 * abs(row.primal)
        assert row.dual <= best + rounding
        primal = min(primal, row.primal)
        assert primal >= best - rounding
        assert primal - best <= row.gap + rounding
    assert result.certificate.primal <= primal  # less where w = 0 is better than all of them
    assert result.certificate.dual <= best + rounding
