"""What a user may give in the place of a list, and the sentence for one who gave something else."""

import numpy as np
import scipy.sparse as sp
from sklearn.utils import compute_class_weight

_NO_LISTS = (str, bytes, dict, set, frozenset)


def describe(value) -> str:
    """None, the string 'ab', of type int: what comes after "y is"."""
    if value is None:
        return "None"
    if isinstance(value, str):
        return f"the string {value if len(value) < 40 else value[:37] + '...'!r}"
    return f"of type {type(value).__name__}"


def is_list(value) -> bool:
    """Whether it has a length and is gone through in order: a list, a tuple, an array, a Series."""
    if type(value) is list:  # as nearly always
        return True
    if isinstance(value, _NO_LISTS) or getattr(value, "shape", None) == () or sp.issparse(value):
        return False
    return hasattr(value, "__len__") and hasattr(value, "__iter__") and not hasattr(value, "columns")


def require_list(name: str, value, expected: str) -> None:
    """TypeError that names a value which cannot be gone through as a list; a generator can."""
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a table of pandas: a loop gives its columns
        raise TypeError(
            f"{name} is a DataFrame, expected {expected}; {name}.to_dict('records') makes dicts of its rows"
        )
    if isinstance(value, _NO_LISTS) or getattr(value, "shape", None) == () or not hasattr(value, "__iter__"):
        raise TypeError(f"{name} is {describe(value)}, expected {expected}")


def as_numbers(name: str, values) -> np.ndarray:
    """The values as an array of float64; ValueError that names what they are of."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        found = "holds something else than numbers" if is_list(values) else f"is {describe(values)}"
        raise ValueError(f"{name} {found}, expected a list of numbers") from None


def refuse_missing(y) -> None:
    """ValueError that names the first label that is None or NaN, among labels of any kind."""
    for number, label in enumerate(y if is_list(y) else ()):
        if label is None or (isinstance(label, float) and label != label):
            raise ValueError(f"y[{number}] is {label}, which is no label; leave such rows out")


def whole_classes(y) -> tuple[np.ndarray, np.ndarray] | None:
    """The values of a numeric y in order, and the number of each y among them, found without sorting.

    None unless there are two whole ones, or several in a range that is no longer than y; and where more than
    half of y is of a value of its own, which scikit-learn would warn of.
    """
    if y.ndim != 1 or y.size == 0 or y.dtype.kind not in "iuf":
        return None
    low, high = y.min(), y.max()
    if low == high or not (low == np.floor(low) and high == np.floor(high)):
        return None
    if ((y == low) | (y == high)).all():
        return np.array([low, high]), (y == high).astype(np.float64)
    if float(high) - float(low) >= y.size or abs(float(high)) > 2**53:
        return None
    steps = y.astype(np.int64) - int(low)
    counts = np.bincount(steps)
    found = np.flatnonzero(counts)
    if 2 * found.size > y.size or (y.dtype.kind == "f" and (y != np.floor(y)).any()):
        return None
    codes = steps if found.size == counts.size else (np.cumsum(counts > 0) - 1)[steps]
    return (found + int(low)).astype(y.dtype), codes


def is_plain(X, y) -> bool:
    """Whether X is a table of floating-point numbers, or CSR, and y as many whole ones.

    Of these scikit-learn's rules ask nothing more; finding that out takes it 0.1 ms.
    """
    if not (type(X) is np.ndarray or (sp.issparse(X) and X.format == "csr")):
        return False
    if X.ndim != 2 or min(X.shape) == 0 or X.dtype not in (np.float64, np.float32):
        return False
    return type(y) is np.ndarray and y.shape == X.shape[:1] and y.dtype.kind in "iu"


class TakesSequences:
    """An estimator whose X is a list of sequences, as scikit-learn's tags have it: no table of numbers."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def dense(coef) -> np.ndarray:
    """coef_ as an array, also where `sparsify` was called."""
    return coef.toarray() if sp.issparse(coef) else coef


def weighted_by_class(class_weight, classes, codes, weight) -> np.ndarray:
    """(n,) the weight of each example times that of its class, as scikit-learn's class_weight says it."""
    weight = np.ones(codes.size) if weight is None else weight
    settings = {"classes": classes, "y": classes[codes], "sample_weight": weight}
    if isinstance(class_weight, dict):
        _require_classes(class_weight, classes.tolist())
    of_classes = compute_class_weight(class_weight, **settings)
    wrong = np.flatnonzero(~(np.isfinite(of_classes) & (of_classes >= 0.0)))
    if wrong.size:
        name, value = classes.tolist()[wrong[0]], of_classes[wrong[0]]
        raise ValueError(f"class_weight[{name!r}] is {value:g}; weights must be finite and at least 0")
    return weight * of_classes[codes]


def _require_classes(class_weight, classes) -> None:
    """Refuse a weight of a label that is none, where others have no weight: it is a slip of the pen.

    Where all have one the weights are of a larger set of labels, of which some folds miss one.
    """
    strange = [label for label in class_weight if label not in classes]
    if strange and not set(classes) <= set(class_weight):
        some = ", ".join(map(repr, classes[:10])) + ", ..." * (len(classes) > 10)
        raise ValueError(f"class_weight has {strange[0]!r}, which is no label; there are {some}")
