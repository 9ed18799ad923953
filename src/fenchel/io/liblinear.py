"""LIBLINEAR's text models: lines of a header in any order, `w`, and then a row of weights for each feature.

solver_type L2R_LR          what was minimised
nr_class 2, label 1 -1      classes, whole numbers; of two a positive score says the first
nr_feature 123, bias 1      with bias ≥ 0 one more row, the weights of a constant feature of that value
w                           a column for each class, one for two (but MCSVM_CS: one each)
"""

from typing import NamedTuple

import numpy as np

from fenchel.errors import DataError
from fenchel.io._text import lines_of, open_text
from fenchel.io.files import open_output
from fenchel.io.models import ModelError

KEYS = ("solver_type", "nr_class", "label", "nr_feature", "bias")
LOGISTIC = {"L2R_LR", "L1R_LR", "L2R_LR_DUAL"}
MACHINES = {"L2R_L2LOSS_SVC_DUAL", "L2R_L2LOSS_SVC", "L2R_L1LOSS_SVC_DUAL", "MCSVM_CS", "L1R_L2LOSS_SVC"}
MOST = 1 << 31  # classes and features that a header may claim


class LinearModel(NamedTuple):
    """labels (k,) increasing; weights (k, d), intercepts (k,); of two classes one row, for the second."""

    labels: np.ndarray
    weights: np.ndarray
    intercepts: np.ndarray
    solver: str


def is_liblinear(path) -> bool:
    """Whether a file begins as such a model does."""
    try:
        with open_text(path) as (stream, _):
            return stream.readline(40).partition(b" ")[0].decode("latin-1") in KEYS
    except (OSError, DataError):
        return False  # whoever reads it says what is wrong


def write_liblinear(path, model: LinearModel) -> None:
    """Write a model; labels that are no whole numbers are refused."""
    labels = [_whole(label) for label in model.labels.tolist()]
    columns = model.weights
    if len(labels) == 2:
        labels = labels[::-1]  # of two a positive score says the first
    bias = bool(np.any(model.intercepts))
    rows = np.vstack([columns.T, model.intercepts]) if bias else columns.T
    header = {
        "solver_type": model.solver,
        "nr_class": len(labels),
        "label": " ".join(map(str, labels)),
        "nr_feature": columns.shape[1],
        "bias": 1 if bias else -1,
    }
    lines = [f"{key} {value}" for key, value in header.items()]
    lines += ["w", *("".join(f"{weight:.17g} " for weight in row) for row in rows.tolist())]
    with open_output(path) as stream:
        stream.write(("\n".join(lines) + "\n").encode())


def _whole(label) -> int:
    if isinstance(label, str) or label != int(label):
        raise ValueError(f"LIBLINEAR's labels are whole numbers, not {label!r}; fit with numbers for labels")
    return int(label)


# ---- reading


def read_liblinear(path) -> LinearModel:
    """The model of a file; ModelError names the line that is damaged."""
    try:
        with open_text(path) as (stream, source):
            lines = lines_of(stream)
            header = _header(lines, source)
            return _model(header, _rows(lines, header, source), source)
    except DataError as error:
        where = f"line {error.line}: " if error.line else ""
        raise ModelError(path, where + error.message) from None


def _header(lines, source) -> dict:
    """The fields up to the line `w`, each looked at."""
    found = {}
    for number, line in lines:
        key, *values = line.decode("latin-1").split()[:1_000_000] or [""]
        if key == "w":
            return _checked(found, source, number)
        if key not in (*KEYS, "rho") or key in found:
            raise DataError(source, number, f"{key[:40]!r}, expected one of {', '.join(KEYS)}, each once")
        found[key] = values
    raise DataError(source, None, "no line `w`: not a model of LIBLINEAR, or cut short")


def _checked(found, source, number) -> dict:
    missing = [key for key in KEYS if key not in found]
    if missing:
        raise DataError(source, number, f"`w`, but no {missing[0]} before it")
    solver = " ".join(found["solver_type"])
    if solver not in LOGISTIC | MACHINES:
        raise DataError(source, None, f"solver_type {solver[:40]}: not a classifier that fenchel knows")
    try:
        classes, features = int(*found["nr_class"]), int(*found["nr_feature"])
        labels, bias = [int(label) for label in found["label"]], float(*found["bias"])
    except (TypeError, ValueError):
        raise DataError(source, None, "the header has a field that is no number") from None
    if not (2 <= classes == len(set(labels)) == len(labels) and 1 <= features < MOST and np.isfinite(bias)):
        raise DataError(source, None, "the numbers of the header do not go together")
    return {"solver": solver, "labels": labels, "features": features, "bias": bias}


def _rows(lines, header, source) -> np.ndarray:
    """(d, columns), and with a bias one row more: exactly these, and numbers all."""
    columns = 1 if len(header["labels"]) == 2 and header["solver"] != "MCSVM_CS" else len(header["labels"])
    wanted, rows = header["features"] + (header["bias"] >= 0.0), []
    for number, line in lines:
        try:
            row = np.array(line.split(), dtype=np.float64)
        except ValueError:
            raise DataError(source, number, "a weight is no number") from None
        if row.size != columns or not np.isfinite(row).all() or len(rows) == wanted:
            raise DataError(source, number, f"expected {wanted} rows of {columns} finite weights")
        rows.append(row)
    if len(rows) < wanted:
        raise DataError(
            source, None, f"{len(rows)} rows of weights, expected {wanted}: the file is cut short"
        )
    return np.array(rows)


def _model(header, rows, source) -> LinearModel:
    """In fenchel's order: labels increase, and of two a positive score says the larger."""
    bias, labels = header["bias"], np.array(header["labels"])
    intercepts = bias * rows[-1] if bias >= 0.0 else np.zeros(rows.shape[1])
    weights = (rows[:-1] if bias >= 0.0 else rows).T
    order = np.argsort(labels)
    if labels.size > 2:
        return LinearModel(labels[order], weights[order], intercepts[order], header["solver"])
    if weights.shape[0] == 2:
        weights, intercepts = weights[:1] - weights[1:], intercepts[:1] - intercepts[1:]
    sign = 1.0 if order[0] == 1 else -1.0  # the first label is the larger: as here
    return LinearModel(labels[order], sign * weights, sign * intercepts, header["solver"])
