"""Problems from arrays: the level below the estimators.

from fenchel import problems, solvers, solve
result = solve(problems.binary(X, y, C=1.0), solvers.CDDual(), tol=1e-6)
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fenchel._memory import require_memory
from fenchel._sparse import Rows, as_features, as_rows
from fenchel.data import merge_contexts, weighted_examples
from fenchel.losses import LOSSES
from fenchel.problem import Problem
from fenchel.regularizers import regularizer
from fenchel.structures.binary import Binary
from fenchel.structures.chain import Chain, observed_weights
from fenchel.structures.crossed import Crossed
from fenchel.structures.joint import Joint

LARGEST = 1e140  # of a value: squares, and sums of many of them, stay finite


def binary(
    X,
    y,
    *,
    loss="log",
    fit_intercept=False,
    intercept_scaling=None,
    sample_weight=None,
    threads=None,
    **constant,
) -> Problem:
    """Two classes: logistic regression (loss="log") or the linear support vector machine (loss="hinge").

    X: (n, d) dense or sparse. y: (n,) labels 0/1 or −1/+1; with the log loss also probabilities of the
    class 1. One regularisation constant of `fenchel.constants`, by name: C=1.0 unless given; for weights that
    are exactly zero one of ‖w‖₁ too: c1 with c2, rho1 with rho2, l1 with lam, l1_ratio with C or alpha.
    fit_intercept adds a free (unpenalised) offset; with intercept_scaling=s, and always with the hinge
    loss, a penalised constant feature s (default 1) instead, as LIBLINEAR does. threads: for passes over all
    examples; None uses all cores where it pays. The numbers do not depend on it.
    """
    loss = _loss(loss)
    X, y = _matrix(X), _probabilities(y, loss)
    _require_as_many(X, y)
    X, free = _with_intercept(X, loss, fit_intercept, intercept_scaling)
    _require_room(X.shape[1])
    examples, total = weighted_examples(as_features(X), y, sample_weight)
    if not (examples.y < 1.0).any() or not (examples.y > 0.0).any():
        raise ValueError("only one class has examples of positive weight; two are needed")
    return Problem(examples, Binary(), loss, regularizer(total, constant), free, threads, total)


def flat(
    X,
    y,
    *,
    loss="log",
    labels=None,
    fit_intercept=False,
    intercept_scaling=None,
    sample_weight=None,
    merge=True,
    threads=None,
    **constant,
) -> Problem:
    """K labels crossed with attributes: multinomial logistic regression, or the Crammer-Singer machine.

    X: (n, A) dense or sparse. y: (n,) labels 0 … K − 1; with the log loss also (n, K) probabilities, dense or
    sparse, each row summing to one. labels: K, where y alone does not tell. Constant, intercept, weights and
    threads as in `binary`; free intercepts have mean zero over the labels. The weights of the result are
    W (A, K) row by row. merge: make examples of equal features one (with the hinge loss: of equal features
    and label), unless X is a large dense table; the objective is the same.
    """
    loss = _loss(loss)
    X, targets = _matrix(X), _distributions(y, labels, loss)
    _require_as_many(X, targets)
    X, free = _with_intercept(X, loss, fit_intercept, intercept_scaling)
    _require_room(X.shape[1] * targets.shape[1])
    examples, total = weighted_examples(as_features(X), targets, sample_weight)
    if free:
        _require_every_label(examples)
    if merge and isinstance(examples.rows, Rows):
        examples = merge_contexts(examples, by_target=loss.hinge)
    return Problem(
        examples, Crossed(targets.shape[1]), loss, regularizer(total, constant), free, threads, total
    )


def joint(F, y, starts, *, loss="log", sample_weight=None, merge=True, threads=None, **constant) -> Problem:
    """Candidate sets: maximum entropy with any features f(x, y), or its max-margin counterpart.

    F: (M, d) dense or sparse, a row per candidate, those of an example one after the other. starts: (n + 1,)
    where the candidates of each example begin, from 0 to M. y: (n,) which candidate of the example is
    true, from 0; with the log loss also (M,) probabilities of the candidates. Constant, weights, threads and
    merging as in `flat`; there is no intercept.
    """
    loss, F = _loss(loss), _matrix(F)
    starts = _starts(starts, F.shape[0], "F", "example {} has no candidates; at least one is needed")
    y = _candidate_targets(y, starts, loss)
    _require_room(F.shape[1])
    examples, total = weighted_examples(as_rows(F), y, sample_weight, starts)
    examples = merge_contexts(examples, by_target=loss.hinge) if merge else examples
    size = int(np.diff(examples.starts).max())
    return Problem(examples, Joint(size), loss, regularizer(total, constant), False, threads, total)


def chain(
    X,
    y,
    starts,
    *,
    loss="log",
    labels=None,
    edges=None,
    transitions=True,
    observed=False,
    banned=None,
    sample_weight=None,
    token_weight=None,
    threads=None,
    **constant,
) -> Problem:
    """Sequences of labels: linear-chain conditional random fields, or max-margin Markov networks.

    X: (N, A) dense or sparse, a row of attributes per token, those of a sequence one after the other.
    y: (N,) labels 0 … K − 1. starts: (n + 1,) where the tokens of each sequence begin, from 0 to N.
    edges: (N, B) attributes of the transition into each token, each with a weight for every pair of labels.
    transitions: whether each pair of neighbouring labels has a weight. observed: only pairs of attribute and
    label, and of neighbouring labels, that the data show have one; or (d,) bool, the weights there are, in
    the order of the result. banned: (K, K) bool, pairs that cannot be.
    token_weight: (N,) what a wrong label costs under the hinge loss; 1 unless given. Constant, sample_weight
    (per sequence), labels and threads as in `flat`. The weights of the result are [W (A, K) | V (B, K, K) |
    transitions (K, K)], row by row. Start, end and bias of a label are attributes that X holds.
    """
    loss, X = _loss(loss), _matrix(X)
    N = X.shape[0]
    starts = _starts(starts, N, "X", "sequence {} has no tokens; at least one is needed")
    codes, size = _label_codes(y, N, labels)
    E = sp.csr_matrix((N, 0)) if edges is None else _matrix(edges)
    if E.shape[0] != N:
        raise ValueError(f"edges has {E.shape[0]} rows but X has {N}; they must match")
    _require_room(X.shape[1] * size + (E.shape[1] + transitions) * size**2)
    more = {"edges": as_rows(E), "cost": _token_costs(token_weight, N, loss)}
    examples, total = weighted_examples(as_rows(X), codes, sample_weight, starts, **more)
    structure = Chain(size, bool(transitions), E.shape[1], unrolled=E.shape[1] > 0)
    structure = replace(structure, banned=_banned(banned, size, examples))
    structure = replace(structure, mask=_mask(observed, structure, examples))
    return Problem(examples, structure, loss, regularizer(total, constant), False, threads, total)


def _mask(observed, structure, examples):
    """(d,) bool, the weights there are; None for all."""
    if isinstance(observed, (bool, np.bool_)):
        return observed_weights(structure, examples) if observed else None
    mask = np.asarray(observed, dtype=bool)
    size = examples.rows.n_columns * structure.labels + structure.extra
    if mask.shape != (size,):
        raise ValueError(f"observed has shape {mask.shape}, expected True, False or a mask ({size},)")
    return None if mask.all() else mask


def _label_codes(y, N, labels):
    """(N,) uint32, and K."""
    codes = np.asarray(y)
    if codes.shape != (N,):
        raise ValueError(f"y has shape {codes.shape}, expected ({N},), one label per row of X")
    if not _are_whole(codes) or (codes < 0).any():
        raise ValueError("y must hold labels 0, 1, … K − 1; the estimators take labels of any kind")
    most = int(codes.max(initial=0))
    if labels is not None and not (labels == int(labels) and labels >= 1):
        raise ValueError(f"labels={labels!r} must be a positive whole number")
    size = most + 1 if labels is None else int(labels)
    if most >= size:
        raise ValueError(f"y holds the label {most}, but labels={size} allows 0 … {size - 1}")
    return codes.astype(np.uint32), size


def _are_whole(numbers) -> bool:
    if numbers.dtype.kind not in "biuf":
        return False
    return numbers.dtype.kind != "f" or bool(
        np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()
    )


def _token_costs(weight, N, loss):
    if weight is None:
        return np.ones(N)
    if not loss.hinge:
        raise ValueError(
            "token_weight has a meaning only with loss='hinge', where it is the cost of a wrong label; "
            "with the log loss weigh whole sequences by sample_weight"
        )
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (N,):
        raise ValueError(f"token_weight has shape {weight.shape}, expected ({N},), one per token")
    if not (np.isfinite(weight).all() and (weight >= 0.0).all()):
        raise ValueError("token_weight must hold finite numbers, at least 0")
    return weight


def _banned(banned, size, examples):
    """(K, K) bool or None; the labels of the examples must respect it."""
    if banned is None:
        return None
    banned = np.asarray(banned, dtype=bool)
    if banned.shape != (size, size):
        raise ValueError(f"banned has shape {banned.shape}, expected ({size}, {size})")
    first = np.zeros(examples.y.size, bool)
    first[examples.starts[:-1].astype(np.int64)] = True
    pairs = banned[examples.y[:-1], examples.y[1:]] & ~first[1:]
    if pairs.any():
        at = int(np.argmax(pairs))
        before, after = int(examples.y[at]), int(examples.y[at + 1])
        raise ValueError(f"label {after} follows label {before} at row {at + 1}, but that pair is banned")
    return banned if banned.any() else None


def _loss(name):
    if not isinstance(name, str) or name not in LOSSES:
        raise ValueError(f"unknown loss {name!r}; there are {', '.join(LOSSES)}")
    return LOSSES[name]


def _with_intercept(X, loss, fit_intercept, scaling):
    """X, with a constant column where the intercept is penalised, and whether it is free instead."""
    if not fit_intercept:
        return X, False
    if loss.hinge and scaling is None:
        scaling = 1.0
    return (X, True) if scaling is None else (with_constant(X, scaling), False)


def _require_room(weights: int) -> None:
    require_memory(6 * 8 * weights, f"training {weights} weights", "hash or renumber the features")


def _require_as_many(X, y) -> None:
    if y.shape[0] != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows but y has {y.shape[0]} entries; they must match")


def _require_every_label(examples) -> None:
    """A label without mass would send its free offset to −∞."""
    shares = np.bincount(examples.y.indices, weights=examples.y.data, minlength=examples.y.n_columns)
    if not shares.all():
        raise ValueError(
            f"label {int(np.argmin(shares))} has no examples of positive weight, so its free intercept goes "
            f"to −∞; leave the label out, or give intercept_scaling"
        )


def with_constant(X, value: float):
    """X with one more column, constant."""
    value = float(value)
    if not (np.isfinite(value) and value > 0.0):
        raise ValueError(f"intercept_scaling={value:g} must be a positive finite number")
    column = np.full((X.shape[0], 1), value)
    if sp.issparse(X):
        return sp.hstack([X, sp.csr_matrix(column)], format="csr")
    return np.hstack([X, column])


def _matrix(X):
    """X as a SciPy matrix or a 2-D array of finite numbers."""
    if not sp.issparse(X):
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions, expected 2: one row per example")
    values = X.data if sp.issparse(X) else X
    low, high = float(values.min(initial=0)), float(values.max(initial=0))  # NaN comes through both
    largest = max(-low, high)
    if not np.isfinite(low + high):
        raise ValueError("X contains NaN or infinity; remove or impute those entries first")
    if largest > LARGEST:
        raise ValueError(f"X contains {largest:g}, whose square overflows; scale that column")
    return X


def _probabilities(y, loss):
    """(n,) probabilities of the class 1."""
    y = np.asarray(y, dtype=np.float64)
    if y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}, expected one label per row")
    if np.isin(y, (-1.0, 1.0)).all():
        y = (y + 1.0) / 2.0
    if not ((y >= 0.0) & (y <= 1.0)).all():
        raise ValueError("y must hold labels 0/1 or −1/+1, or probabilities between 0 and 1")
    if loss.hinge and not np.isin(y, (0.0, 1.0)).all():
        raise ValueError("the hinge loss takes labels, not probabilities")
    return np.ascontiguousarray(y)


def _distributions(y, labels, loss) -> Rows:
    """Rows of the (n, K) matrix of targets: the labels as 0/1, or the probabilities given."""
    if sp.issparse(y) or np.ndim(y) == 2:
        return _soft_targets(sp.csr_matrix(y, dtype=np.float64), labels, loss)
    codes = np.asarray(y)
    if codes.ndim != 1:
        raise ValueError(f"y has shape {codes.shape}, expected (n,) labels or (n, K) probabilities")
    if codes.dtype.kind not in "biuf":
        raise ValueError("y must hold numbers 0, 1, … K − 1; the estimators take labels of any kind")
    if labels is not None and not int(labels) >= 1:
        raise ValueError(f"labels={labels!r} must be a positive whole number")
    whole = codes.astype(np.int64)
    if codes.size and ((whole != codes).any() or whole.min() < 0):
        raise ValueError("y must hold labels 0, 1, … K − 1, or be a matrix of probabilities")
    size = int(labels) if labels is not None else int(whole.max(initial=0)) + 1
    if codes.size and whole.max() >= size:
        raise ValueError(f"y holds the label {whole.max()}, but labels={size} allows 0 … {size - 1}")
    n = whole.size
    return as_rows(sp.csr_matrix((np.ones(n), whole, np.arange(n + 1)), shape=(n, size)))


def _soft_targets(y, labels, loss):
    if labels is not None and y.shape[1] != labels:
        raise ValueError(f"y has {y.shape[1]} columns, but labels={labels}")
    if not np.isfinite(y.data).all() or (y.data < 0.0).any():
        raise ValueError("y contains NaN, infinity or a negative probability")
    sums = np.asarray(y.sum(axis=1)).ravel()
    if (np.abs(sums - 1.0) > 1e-6).any():
        worst = int(np.argmax(np.abs(sums - 1.0)))
        raise ValueError(
            f"row {worst} of y sums to {sums[worst]:g}; the probabilities of a row must sum to 1"
        )
    y = sp.csr_matrix(sp.diags(1.0 / sums) @ y)
    y.eliminate_zeros()
    if loss.hinge and (np.diff(y.indptr) != 1).any():
        raise ValueError("the hinge loss takes one label per example, not probabilities")
    return as_rows(y)


def _starts(starts, rows: int, matrix: str, if_empty: str) -> np.ndarray:
    given = np.asarray(starts)
    if not _are_whole(given):
        raise ValueError("starts must hold whole numbers: the row where each example begins")
    starts = given.astype(np.int64)
    if starts.ndim != 1 or starts.size < 2 or starts[0] != 0 or starts[-1] != rows:
        raise ValueError(f"starts must run from 0 to {rows}, the number of rows of {matrix}")
    empty = np.flatnonzero(np.diff(starts) <= 0)
    if empty.size:
        raise ValueError(if_empty.format(empty[0]))
    return starts.astype(np.uint64)


def _candidate_targets(y, starts, loss):
    """(M,) probabilities of the candidates; those of an example sum to one."""
    y = np.asarray(y)
    if y.dtype.kind not in "biuf":
        raise ValueError("y must hold numbers: which candidate is true, or the candidates' probabilities")
    first, counts = starts[:-1].astype(np.int64), np.diff(starts.astype(np.int64))
    if y.shape == first.shape and (y.size != starts[-1] or not _is_distribution(y, first)):
        true = y.astype(np.int64)
        wrong = np.flatnonzero((true != y) | (true < 0) | (true >= counts))
        if wrong.size:
            i = wrong[0]
            raise ValueError(f"y[{i}] is {y[i]}, but example {i} has candidates 0 … {counts[i] - 1}")
        targets = np.zeros(int(starts[-1]))
        targets[first + true] = 1.0
        return targets
    y = np.asarray(y, dtype=np.float64)
    if y.shape != (int(starts[-1]),):
        raise ValueError(f"y has shape {y.shape}, expected ({first.size},) or ({int(starts[-1])},)")
    if not np.isfinite(y).all() or (y < 0.0).any() or not _is_distribution(y, first):
        raise ValueError("the probabilities of an example's candidates must be at least 0 and sum to 1")
    if loss.hinge and ((y != 0.0) & (y != 1.0)).any():
        raise ValueError("the hinge loss takes one true candidate per example, not probabilities")
    return y / np.repeat(np.add.reduceat(y, first), counts)


def _is_distribution(y, first) -> bool:
    return bool((np.abs(np.add.reduceat(y, first) - 1.0) <= 1e-6).all())
