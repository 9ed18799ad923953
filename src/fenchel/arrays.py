"""The arrays that problems are made of: checked, and as kernels want them."""

import numpy as np
import scipy.sparse as sp

from fenchel._mixed import Mixed
from fenchel._sparse import Rows, as_rows

LARGEST = 1e140  # of a value: squares, and sums of many of them, stay finite


def matrix(X):
    """X as a SciPy matrix, `Mixed`, or a 2-D array of finite numbers; Rows are known to be."""
    if isinstance(X, Rows):
        return X
    if not (sp.issparse(X) or isinstance(X, Mixed)):
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions, expected 2: one row per example")
    values = X if isinstance(X, np.ndarray) else X.data
    low, high = float(values.min(initial=0)), float(values.max(initial=0))  # NaN comes through both
    largest = max(-low, high)
    if not np.isfinite(low + high):
        raise ValueError("X contains NaN or infinity; remove or impute those entries first")
    if largest > LARGEST:
        raise ValueError(f"X contains {largest:g}, whose square overflows; scale that column")
    return X


def probabilities(y, loss):
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


def distributions(y, labels, loss) -> Rows:
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
    return Rows(np.arange(n + 1, dtype=np.uint64), whole.astype(np.uint32), np.ones(n), size)


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


def label_codes(y, N, labels):
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


def codes_by_type(y, types, labels):
    """(N,) uint32, and how many labels each type has."""
    codes, _ = label_codes(y, types.size, None)
    most = np.zeros(int(types.max(initial=0)) + 1, np.int64)
    np.maximum.at(most, types, codes.astype(np.int64) + 1)
    if labels is None:
        return codes, tuple(np.maximum(most, 1).tolist())
    sizes = tuple(int(size) for size in np.atleast_1d(labels))
    if len(sizes) < most.size or (most > sizes[: most.size]).any():
        raise ValueError(
            f"labels={labels!r}, but y needs at least {most.tolist()}, one for each type of nodes"
        )
    return codes, sizes


def _are_whole(numbers) -> bool:
    if numbers.dtype.kind not in "biuf":
        return False
    return numbers.dtype.kind != "f" or bool(
        np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()
    )


def candidate_targets(y, starts, loss):
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


def starts_of(starts, rows: int, matrix: str, if_empty: str) -> np.ndarray:
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


def head_numbers(heads) -> np.ndarray:
    """(N,) int64 the head of each word."""
    given = np.asarray(heads)
    if given.ndim != 1 or not _are_whole(given):
        raise ValueError("heads must be whole numbers, one for each word: 0 for the root, else a word from 1")
    return given.astype(np.int64)


def token_costs(weight, N, loss):
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


def banned_pairs(banned, size, examples):
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


def scaling(value: float) -> float:
    """The value of a constant feature."""
    value = float(value)
    if not (np.isfinite(value) and value > 0.0):
        raise ValueError(f"intercept_scaling={value:g} must be a positive finite number")
    return value


def with_constant(X, value: float):
    """X with one more column, constant."""
    column = np.full((X.shape[0], 1), scaling(value))
    if sp.issparse(X):
        return sp.hstack([X, sp.csr_matrix(column)], format="csr")
    return np.hstack([X, column])


def require_as_many(X, y) -> None:
    if y.shape[0] != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows but y has {y.shape[0]} entries; they must match")


def require_every_label(examples) -> None:
    """A label without mass would send its free offset to −∞."""
    shares = np.bincount(examples.y.indices, weights=examples.y.data, minlength=examples.y.n_columns)
    if not shares.all():
        raise ValueError(
            f"label {int(np.argmin(shares))} has no examples of positive weight, so its free intercept goes "
            f"to −∞; leave the label out, or give intercept_scaling"
        )
