"""A random small problem from a seed: given to the library, and with every output listed."""

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import scipy.sparse as sp

from fenchel import problems

from .objective import Listed

KINDS = ("binary", "crossed", "joint", "chain")
MOST = 500  # outputs of a problem


@dataclass
class Drawn:
    """A problem, its list of outputs, and what it was drawn from."""

    kind: str
    problem: object
    listed: Listed
    C: float
    scale: float  # the largest norm of a row
    parts: list | None = None  # of a chain: how often each output of an example holds each part

    @property
    def tame(self):
        """Whether C·scale² ≤ 1e3."""
        return np.log10(self.C) + 2.0 * np.log10(max(self.scale, 1e-300)) <= 3.0


def draw(rng, kinds=KINDS, loss=None, tame=False) -> Drawn:
    """A problem; `tame`: with C·scale² ≤ 1e3 and an L2 penalty. ValueError where the library refuses it."""
    kind = str(rng.choice(kinds))
    loss = loss or str(rng.choice(["log", "hinge"], p=[0.6, 0.4]))
    return {"binary": _binary, "crossed": _crossed, "joint": _joint, "chain": _chain}[kind](rng, loss, tame)


# ---- numbers


def matrix(rng, rows, columns, tame=False):
    """Features of many kinds: normal, counts, 0/1, uniform, timestamps, columns of different scales."""
    kind = rng.choice(["normal", "counts", "binary", "uniform", "stamp", "columns"], p=_SHARES)
    shape = rows, columns
    X = rng.standard_normal(shape)
    if kind in {"counts", "binary"}:
        X = (rng.random(shape) < 0.5) * (rng.integers(1, 4, shape) if kind == "counts" else 1.0)
    elif kind == "uniform":
        X = rng.random(shape)
    elif kind == "stamp":
        X[:, 0] += 10.0 ** rng.uniform(1, 9)
    elif kind == "columns":
        X *= 10.0 ** rng.uniform(-4, 4, columns)
    if rng.random() < 0.25:
        X[rng.random(rows) < 0.3] = 0.0
    if rng.random() < 0.3:
        X[rng.integers(rows, size=rows // 2)] = X[rng.integers(rows)]
    X = X * _scale(rng)
    if not tame and rng.random() < 0.06:
        X[rng.integers(rows), rng.integers(columns)] = 10.0 ** rng.choice([13.0, 16.0, 20.0, 80.0, 155.0])
    return X


_SHARES = [0.25, 0.2, 0.2, 0.2, 0.05, 0.1]


def _scale(rng):
    low, high = [(-1, 1), (-3, 3), (-6, 6), (6, 20)][rng.choice(4, p=[0.6, 0.25, 0.1, 0.05])]
    return 10.0 ** rng.uniform(low, high)


def constant(rng, scale, tame):
    """C from 1e-6 to 1e6, now and then far beyond."""
    chance = rng.random()
    C = 10.0 ** rng.uniform(-3, 3) if chance < 0.6 else 10.0 ** rng.uniform(-6, 6)
    if tame:
        return min(C, 10.0 ** (3.0 - rng.exponential()) / max(scale, 1e-150) ** 2)
    if chance > 0.98:
        return 10.0 ** rng.choice([-200.0, 100.0, 150.0, 160.0, 200.0])
    return 10.0 ** rng.uniform(6, 14) if chance > 0.92 else C


def _penalty(rng, loss, C, total, tame):
    """Constants as the library takes them, with λ and λ₁ as they should come out."""
    lam = np.longdouble(1.0) / (np.longdouble(C) * total)
    if loss == "log" and not tame and rng.random() < 0.15:
        ratio = float(rng.choice([1.0, 0.5, 0.1, 0.9, 1e-6]))
        return {"C": C, "l1_ratio": ratio}, (1.0 - ratio) * lam, ratio * lam
    if loss == "log" and not tame and rng.random() < 0.03:
        return {"C": np.inf}, 0.0, 0.0
    return {"C": C}, lam, 0.0


def _weights(rng, n):
    """Sample weights, or None, and what they mean."""
    chance = rng.random()
    if chance < 0.6:
        return None, np.ones(n)
    if chance < 0.85:
        weight = rng.integers(0, 4, n).astype(float)
        weight[rng.integers(n)] = 1.0
        return weight, weight
    weight = 10.0 ** rng.uniform(-8, 8, n) if chance > 0.95 else rng.exponential(size=n)
    return weight, weight


def _labels(rng, X, K, noise):
    """Labels of a linear rule, with noise (0: separable), or without any rule."""
    with np.errstate(all="ignore"):
        Z = X / np.maximum(np.abs(X).max(axis=0), 1e-300)
    if rng.random() < 0.2:
        return rng.integers(K, size=len(X))
    return np.argmax(Z @ rng.standard_normal((X.shape[1], K)) + noise * rng.gumbel(size=(len(X), K)), axis=1)


def _norms(F):
    """The largest norm of a row."""
    return float(np.sqrt((np.asarray(F, np.longdouble) ** 2).sum(axis=1)).max(initial=0.0))


def _maybe_sparse(rng, X):
    return sp.csr_matrix(X) if rng.random() < 0.5 else X


def _intercept(rng, X, loss):
    """Arguments, X with a constant column where one is meant, and whether the intercept is free."""
    if rng.random() < 0.4:
        return {}, X, False
    scaling = None if rng.random() < 0.6 else float(10.0 ** rng.uniform(-2, 2))
    given = {"fit_intercept": True, "intercept_scaling": scaling}
    if scaling is None and loss == "log":
        return given, X, True
    return given, np.hstack([X, np.full((len(X), 1), 1.0 if scaling is None else scaling)]), False


# ---- the structures


def _binary(rng, loss, tame):
    n, A = int(rng.integers(2, 13)), int(rng.integers(1, 6))
    X = matrix(rng, n, A, tame)
    y = _labels(rng, X, 2, rng.choice([0.0, 0.3, 1.0])).astype(float)
    y[:2] = [0.0, 1.0]
    if loss == "log" and rng.random() < 0.2:
        y = rng.random(n)
    weight, mass = _weights(rng, n)
    given, full, free = _intercept(rng, X, loss)
    scale = _norms(full)
    C = constant(rng, scale, tame)
    constants, lam, l1 = _penalty(rng, loss, C, mass.sum(), tame)
    problem = problems.binary(
        _maybe_sparse(rng, X), y, loss=loss, sample_weight=weight, threads=1, **given, **constants
    )
    return Drawn("binary", problem, listed_binary(full, y, mass, lam, l1, loss == "hinge", free), C, scale)


def listed_binary(X, y, weight, lam, l1, hinge, free):
    """+1 has the features x, −1 none; y the probability of +1."""
    n = len(y)
    F = np.zeros((2 * n, X.shape[1]), np.longdouble)
    F[::2] = X
    target = np.column_stack([y, 1.0 - y]).ravel()
    offsets = np.tile([[1.0], [0.0]], (n, 1)) if free else None
    return Listed(F, target, 2 * np.arange(n), weight, lam, l1, hinge, 1.0 - target, offsets)


def _crossed(rng, loss, tame):
    n, A, K = int(rng.integers(1, 11)), int(rng.integers(1, 5)), int(rng.integers(1, 5))
    X = matrix(rng, n, A, tame)
    codes = _labels(rng, X, K, rng.choice([0.0, 0.3, 1.0]))
    codes[: min(n, K)] = np.arange(min(n, K))
    target = np.eye(K)[codes]
    y = codes
    if loss == "log" and rng.random() < 0.25:
        target = rng.dirichlet(np.full(K, 0.5), size=n)
        target[rng.random(n) < 0.3] = np.eye(K)[0]
        y = _maybe_sparse(rng, target)
    weight, mass = _weights(rng, n)
    given, full, free = _intercept(rng, X, loss)
    scale = _norms(full)
    C = constant(rng, scale, tame)
    constants, lam, l1 = _penalty(rng, loss, C, mass.sum(), tame)
    more = {"merge": bool(rng.random() < 0.7), "labels": K, "threads": 1}
    problem = problems.flat(
        _maybe_sparse(rng, X), y, loss=loss, sample_weight=weight, **more, **given, **constants
    )
    listed = listed_crossed(full, target, mass, lam, l1, loss == "hinge", free)
    return Drawn("crossed", problem, listed, C, scale)


def listed_crossed(X, target, weight, lam, l1, hinge, free):
    """Label k has the features x in the k-th of K places; target (n, K)."""
    n, K = target.shape
    F = np.einsum("na,jk->njak", X.astype(np.longdouble), np.eye(K)).reshape(n * K, -1)
    target = (target.astype(np.longdouble) / target.sum(axis=1, keepdims=True)).ravel()
    offsets = np.tile(np.eye(K), (n, 1)) if free else None
    return Listed(F, target, K * np.arange(n), weight, lam, l1, hinge, 1.0 - target, offsets)


def _joint(rng, loss, tame):
    n, d = int(rng.integers(1, 9)), int(rng.integers(1, 7))
    counts = rng.integers(1, 6, size=n)
    starts = np.concatenate([[0], np.cumsum(counts)])
    F = matrix(rng, int(starts[-1]), d, tame)
    true = rng.integers(counts)
    target = np.zeros(len(F))
    target[starts[:-1] + true] = 1.0
    y = true
    if loss == "log" and rng.random() < 0.25:
        pieces = [rng.dirichlet(np.full(m, 0.5)) for m in counts]
        y = target = np.concatenate(pieces)
    weight, mass = _weights(rng, n)
    scale = _norms(F)
    C = constant(rng, scale, tame)
    constants, lam, l1 = _penalty(rng, loss, C, mass.sum(), tame)
    more = {"merge": bool(rng.random() < 0.7), "threads": 1}
    problem = problems.joint(
        _maybe_sparse(rng, F), y, starts, loss=loss, sample_weight=weight, **more, **constants
    )
    sums = np.add.reduceat(target.astype(np.longdouble), starts[:-1])
    target = target / np.repeat(sums, counts)
    listed = Listed(F, target, starts[:-1], mass, lam, l1, loss == "hinge", 1.0 - target)
    return Drawn("joint", problem, listed, C, scale)


# ---- chains


@cache
def sequences(T, K):
    """(K^T, T) all label sequences."""
    return np.array(list(product(range(K), repeat=T)), dtype=np.int64).reshape(K**T, T)


def features(X, E, y, K, transitions):
    """(M, d): [W | V | T] of the sequences y (M, T), for attributes X (T, A) of tokens, E (T, B) of edges."""
    eye = np.eye(K)
    node = eye[y]
    pair = np.einsum("mtj,mtk->mtjk", eye[y[:, :-1]], eye[y[:, 1:]])
    M, X, E = len(y), np.asarray(X, np.longdouble), np.asarray(E, np.longdouble)
    W = np.einsum("ta,mtk->mak", X, node).reshape(M, -1)
    V = np.einsum("tb,mtjk->mbjk", E[1:], pair).reshape(M, -1)
    table = pair.sum(axis=1).reshape(M, -1) if transitions else np.zeros((M, 0))
    return np.hstack([W, V, table])


def seen(X, E, y, starts, K, transitions, counted):
    """(d,) bool: the weights of pairs that sequences of positive weight show."""
    W, V = np.zeros((X.shape[1], K), bool), np.zeros((E.shape[1], K, K), bool)
    table = np.zeros((K, K) if transitions else (0, 0), bool)
    for i in np.flatnonzero(counted):
        for t in range(starts[i], starts[i + 1]):
            W[X[t] != 0.0, y[t]] = True
            if t > starts[i]:
                V[E[t] != 0.0, y[t - 1], y[t]] = True
                if transitions:
                    table[y[t - 1], y[t]] = True
    return np.concatenate([W.ravel(), V.ravel(), table.ravel()])


def listed_chain(X, E, y, starts, K, weight, lam, l1, hinge, costs, transitions, banned=None, mask=None):
    """All sequences of a chain problem, and those of each example as label arrays."""
    F, target, cost, first, kept = [], [], [], [0], []
    for i in range(len(starts) - 1):
        at = slice(int(starts[i]), int(starts[i + 1]))
        every = sequences(at.stop - at.start, K)
        if banned is not None:
            every = every[~banned[every[:, :-1], every[:, 1:]].any(axis=1)]
        F.append(features(X[at], E[at], every, K, transitions))
        target.append((every == y[at]).all(axis=1).astype(float))
        cost.append((every != y[at]) @ costs[at])
        first.append(first[-1] + len(every))
        kept.append(every)
    F, target, cost = np.vstack(F), np.concatenate(target), np.concatenate(cost)
    return Listed(F, target, first[:-1], weight, lam, l1, hinge, cost, mask=mask), kept


def _lengths(rng, K):
    """1 to 5 lengths from 1 to 6, with few outputs altogether."""
    lengths, total = [], 0
    for T in rng.integers(1, 7, size=rng.integers(1, 6)):
        if total + K ** int(T) <= MOST or not lengths:
            lengths.append(int(T) if K ** int(T) <= MOST else 4)
            total += K ** lengths[-1]
    return lengths


def _chain(rng, loss, tame):
    K, A = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    lengths = _lengths(rng, K)
    starts, N = np.concatenate([[0], np.cumsum(lengths)]), sum(lengths)
    X = matrix(rng, N, A, tame)
    B = int(rng.integers(1, 3)) if rng.random() < 0.3 else 0
    E = matrix(rng, N, B, tame) if B else np.zeros((N, 0))
    y = _labels(rng, X, K, rng.choice([0.0, 0.3, 1.0]))
    transitions = bool(rng.random() < 0.8)
    banned = _bans(rng, y, starts, K) if rng.random() < 0.25 else None
    weight, mass = _weights(rng, len(lengths))
    masked = bool(rng.random() < 0.25)
    mask = seen(X, E, y, starts, K, transitions, mass > 0.0) if masked else None
    costs, more = np.ones(N), {}
    if loss == "hinge" and rng.random() < 0.3:
        costs = rng.integers(0, 4, N) / 2.0
        more["token_weight"] = costs
    scale = _chain_scale(X, E, starts)
    C = constant(rng, scale, tame)
    constants, lam, l1 = _penalty(rng, loss, C, mass.sum(), tame)
    problem = problems.chain(
        _maybe_sparse(rng, X),
        y,
        starts,
        loss=loss,
        labels=K,
        edges=_maybe_sparse(rng, E) if B else None,
        transitions=transitions,
        observed=masked,
        banned=banned,
        sample_weight=weight,
        threads=1,
        **more,
        **constants,
    )
    listed, kept = listed_chain(
        X, E, y, starts, K, mass, lam, l1, loss == "hinge", costs, transitions, banned, mask
    )
    kept = [every for every, m in zip(kept, mass, strict=True) if m > 0.0]
    return Drawn("chain", problem, listed, C, scale, kept)


def _chain_scale(X, E, starts):
    """The largest norm of Σ_t x_t over a sequence, edges and a transition for each included."""
    Z = np.hstack([np.abs(X), np.abs(E), np.ones((len(X), 1))])
    return _norms(np.add.reduceat(Z.astype(np.longdouble), starts[:-1]))


def _bans(rng, y, starts, K):
    banned = rng.random((K, K)) < 0.4
    inside = np.ones(len(y), bool)
    inside[starts[:-1]] = False
    banned[y[:-1][inside[1:]], y[1:][inside[1:]]] = False
    return banned
