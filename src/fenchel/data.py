"""Examples: what every model is trained on, once strings and tables are gone."""

from dataclasses import dataclass

import numpy as np

from fenchel._sparse import Rows, as_rows, take


@dataclass(frozen=True)
class Examples:
    """n training examples as frozen arrays.

    rows: features, one row per example.
    y: targets; for two classes (n,), the empirical probability of the class +1 (0, 1, or between).
    mass: (n,) positive, summing to one: the empirical p(x_i), or normalised sample weights.
    """

    rows: Rows
    y: np.ndarray
    mass: np.ndarray

    @property
    def n(self) -> int:
        return self.mass.size


def weighted_examples(X, y, weight=None) -> tuple[Examples, float]:
    """Examples from a matrix, targets and sample weights, and the sum of the weights.

    Rows of weight zero are dropped first: they are no part of the objective, and a mass of zero
    would leave its dual variable undetermined.
    """
    rows = as_rows(X)
    y = np.ascontiguousarray(y, dtype=np.float64)
    n = rows.shape[0]
    if y.shape[0] != n:
        raise ValueError(f"X has {n} rows but y has {y.shape[0]} entries; they must match")
    if n == 0:
        raise ValueError("X has no rows; at least one example is needed")
    if weight is None:
        return Examples(rows, y, np.full(n, 1.0 / n)), float(n)
    weight = _checked_weights(weight, n)
    largest = float(weight.max())
    mass = weight / largest  # first, so that neither sums nor quotients overflow
    share = float(mass.sum())
    mass /= share
    if not mass.all():
        keep = np.flatnonzero(mass)
        rows, y, mass = take(rows, keep), y[keep], mass[keep]
    return Examples(rows, y, mass), largest * share


def _checked_weights(weight, n):
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({n},)")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity")
    if (weight < 0).any():
        raise ValueError(f"sample_weight[{int(np.argmin(weight))}] is negative; weights must be at least 0")
    if not weight.any():
        raise ValueError("sample_weight is zero everywhere; at least one example must count")
    return weight
