"""Rows of numbers with a label each: what linear classifiers are fitted to, in memory or on disk."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight

from fenchel._sparse import Rows
from fenchel.design import AT_ONCE
from fenchel.estimators.stored import require_settings
from fenchel.io.shards import Shards


@dataclass(frozen=True)
class LabelledRows:
    """What a LinearClassifier is fitted to: rows X (n, d), the number of each one's class, their weights.

    disk: where the rows lie, if they are not in memory.
    """

    X: np.ndarray | sp.csr_matrix | Rows
    codes: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None = None
    disk: Shards | None = None

    @property
    def single(self) -> bool:
        """Whether the numbers came as float32."""
        return self.disk is None and self.X.dtype == np.float32


def rows_on_disk(model, shards: Shards, y, sample_weight) -> LabelledRows:
    """The rows and labels that shards hold, once they are known to be as they were written."""
    shards.require("rows", type(model).__name__)
    if y is not None:
        raise ValueError("shards hold their labels; call fit(shards) without y")
    require_settings(model, shards, ("hash_bits",))
    shards.verify()
    rows, labels = shards.rows, shards.array("labels")
    classes = np.array(shards.fact("classes", list), dtype=np.float64)
    codes = _codes(shards, classes, labels)
    if classes.size < 2:
        raise ValueError(f"{shards.folder}: all labels are the same, expected two classes or more")
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, labels[:, None], dtype=np.float64)
    return LabelledRows(rows, codes, classes, sample_weight, shards)


def _codes(shards, classes, labels) -> np.ndarray:
    """The number of each one's class; of two classes as the problem wants it, so that it is not copied."""
    codes = shards.room(labels.size) if classes.size == 2 else np.empty(labels.size, np.int64)
    for at in range(0, labels.size, AT_ONCE):
        codes[at : at + AT_ONCE] = np.searchsorted(classes, labels[at : at + AT_ONCE])
    return codes
