"""Labels of arcs: a maximum entropy model on the features of the arc between a word and its head."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fenchel import problems
from fenchel._sparse import Rows
from fenchel.estimators.base import classes_to_facts
from fenchel.estimators.restored import read_array, read_certificate, read_classes, read_weights
from fenchel.loop import solve
from fenchel.trace import Certificate


@dataclass(frozen=True)
class ArcLabels:
    """Scores X[:, columns] W of the labels of arcs, X the rows of their features."""

    classes: np.ndarray  # (K,)
    columns: np.ndarray  # (A,) uint32, in order
    weights: np.ndarray  # (A, K)
    certificate: Certificate

    @classmethod
    def fit(cls, rows: Rows, codes, classes, min_count: int, settings: dict, **run) -> "ArcLabels":
        """rows: the features of each word's true arc; those that fewer than min_count have are left out.

        settings: of `problems.flat`; run: of `solve`.
        """
        columns = _frequent(rows, min_count)
        problem = problems.flat(_chosen(rows, columns), codes, labels=classes.size, **settings)
        result = solve(problem, **run)
        return cls(classes, columns, result.w.reshape(columns.size, -1), result.certificate)

    @staticmethod
    def memory(rows: Rows, classes, min_count: int) -> int:
        """Bytes that `fit` takes, about: weights four times, marginals three times, and the rows.

        24,215 words of 49 labels, 657,382 features: 122 MB of which 99 were seen, all features 262 of 216.
        """
        weights, marginals = _frequent(rows, min_count).size * classes.size, rows.shape[0] * classes.size
        return 32 * weights + 24 * marginals + 16 * (rows.n_columns + rows.indices.size)

    def predict(self, rows: Rows) -> np.ndarray:
        """(n,) the label of each row."""
        return self.classes[(_chosen(rows, self.columns) @ self.weights).argmax(axis=1)]

    def to_file(self) -> tuple[dict, dict]:
        """Facts and arrays."""
        facts = classes_to_facts(self.classes) | {"certificate": self.certificate.to_dict()}
        return facts, {"columns": self.columns, "weights": self.weights}

    @classmethod
    def from_file(cls, facts, arrays, n_columns: int) -> "ArcLabels":
        classes = read_classes(facts)
        columns = read_array(arrays, "columns", np.uint32, arrays["columns"].shape)
        if columns.ndim != 1 or (columns.size and columns.max() >= n_columns):
            raise ValueError(f"columns of labels must be below {n_columns}")
        weights = read_weights(arrays, "weights", (columns.size, classes.size))
        return cls(classes, columns, weights, read_certificate(facts["certificate"]))


def _frequent(rows: Rows, min_count: int) -> np.ndarray:
    """The columns of so many rows; of as many as any has, where that is less."""
    counts = np.bincount(rows.indices, minlength=rows.n_columns)
    return np.flatnonzero(counts >= min(max(min_count, 1), counts.max(initial=0))).astype(np.uint32)


def _chosen(rows: Rows, columns) -> sp.csr_matrix:
    """These columns of the rows."""
    place = np.full(rows.n_columns, -1, np.int64)
    place[columns] = np.arange(columns.size)
    kept = place[rows.indices]
    inside = kept >= 0
    before = np.concatenate([[0], np.cumsum(inside)])
    indptr = before[rows.indptr.astype(np.int64)]
    shape = rows.shape[0], columns.size
    return sp.csr_matrix((np.ones(int(inside.sum())), kept[inside], indptr), shape=shape)
