"""What a model file holds, looked at before it is used: kernels would read beyond the end of a wrong array.

All raise ValueError or TypeError, which `load` turns into the error that names the file.
"""

import re
from numbers import Real

import numpy as np

from fenchel.losses import LOSSES
from fenchel.solvers import SOLVERS, make
from fenchel.trace import NO_OPTIMUM, NOT_OURS, UNREGULARISED, Certificate

_NUMBERS = ("C", "sigma2", "c1", "c2", "l1_ratio", "tol", "max_iter", "max_seconds", "intercept_scaling")
_NUMBERS += ("random_state", "n_jobs", "hash_bits")
_COUNTS = ("min_count", "beam", "rare")
_LISTS = ("class_weight", "banned", "Cs", "l1_ratios")
_LABELS = (str, int, float, bool)
_DTYPE = re.compile(r"[<>|=][Ubiuf][0-9]{1,9}")
_MOST_TEXT = 2**28  # bytes of the labels as an array: a width that the header merely claims could be anything


def read_settings(settings) -> dict:
    """Constructor arguments, of the kinds prediction relies on; a solver is made of its name and options."""
    settings = dict(_dict("settings", settings))
    for name, value in settings.items():
        if isinstance(value, dict) and name not in ("solver", "class_weight"):
            raise ValueError(f"{name} is {value!r}")
        if isinstance(value, list) and name not in _LISTS:
            raise ValueError(f"{name} is {value!r}")
        if name in _NUMBERS and value is not None and (not isinstance(value, Real) or value != value):
            raise ValueError(f"{name} is {value!r}, expected a number")
        if name in _COUNTS and (type(value) is not int or value < 1):
            raise ValueError(f"{name} is {value!r}, expected a whole number of at least 1")
    if settings.get("loss", "log") not in LOSSES:
        raise ValueError(f"loss is {settings['loss']!r}, expected one of {', '.join(LOSSES)}")
    if isinstance(settings.get("class_weight"), list):
        settings["class_weight"] = dict(map(tuple, settings["class_weight"]))
    settings["solver"] = _read_solver(settings["solver"])
    return settings


def _read_solver(solver):
    """A name, or a solver; one of the user's own making, which no file can hold, becomes "auto"."""
    if isinstance(solver, dict):
        name, options = solver["name"], _dict("options", solver["options"])
        if not isinstance(name, str):
            raise ValueError(f"the name of the solver is {name!r}")
        return make(name, **options) if name in SOLVERS else "auto"
    if solver != "auto" and solver not in SOLVERS:
        raise ValueError(f"solver is {solver!r}")
    return solver


def read_certificate(values) -> Certificate:
    """The certificate; numbers that are None are not known."""
    for name, value in _dict("certificate", values).items():
        if name == "missing" and value not in (UNREGULARISED, NO_OPTIMUM, NOT_OURS):
            raise ValueError(f"missing of the certificate is {value!r}")
        if name in ("status", "missing") or value is None:
            continue
        if not isinstance(value, Real) or isinstance(value, bool):
            raise ValueError(f"{name} of the certificate is {value!r}, expected a number")
    return Certificate.from_dict(values)


def read_offset_range(ends, outputs: int) -> tuple:
    """Two numbers, or of several outputs two arrays of them, the first nowhere above the second."""
    low, high = np.asarray(ends, dtype=np.float64)
    if low.shape != (() if outputs == 1 else (outputs,)) or not (low <= high).all():
        raise ValueError(f"offset_range is {ends!r}")
    return (float(low), float(high)) if outputs == 1 else (low, high)


def read_count(facts, name, least=0) -> int:
    """A whole number of the facts."""
    if type(facts[name]) is not int or facts[name] < least:
        raise ValueError(f"{name} is {facts[name]!r}, expected a whole number of at least {least}")
    return facts[name]


def read_options(values) -> dict:
    """How the command line read the data: names and words or truth values."""
    for name, value in _dict("read_as", values).items():
        if not isinstance(value, str | bool):
            raise ValueError(f"read_as has {value!r} as {name}")
    return values


def read_classes(facts, least=1) -> np.ndarray:
    """classes_, at least so many, no two alike, of the very values and the type that were saved."""
    labels, kind = facts["classes"], facts["classes_dtype"]
    if not isinstance(labels, list) or len(labels) < least:
        raise ValueError(f"classes are {str(labels)[:60]}, expected a list of at least {least}")
    wrong = [label for label in labels if type(label) not in _LABELS or label != label]
    if wrong or len(set(labels)) != len(labels):
        raise ValueError(f"classes hold {wrong[0]!r}" if wrong else "a class comes twice")
    if kind == "object":
        return np.fromiter(labels, object, len(labels))
    if not isinstance(kind, str) or not _DTYPE.fullmatch(kind):  # NumPy would read a program's text in it
        raise ValueError(f"classes_dtype is {str(kind)[:60]!r}")
    dtype = np.dtype(kind)
    if dtype.itemsize * len(labels) > _MOST_TEXT:
        raise ValueError(f"classes_dtype is {kind!r}, wider than {_MOST_TEXT} bytes for all labels")
    classes = np.array(labels, dtype=dtype)
    if classes.tolist() != labels:
        raise ValueError(f"classes are no {dtype}")
    return classes


def read_weights(arrays, name, shape) -> np.ndarray:
    """An array of finite float64 of this shape."""
    array = read_array(arrays, name, np.float64, shape)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds values that are not finite")
    return array


def read_array(arrays, name, dtype, shape) -> np.ndarray:
    """An array of this type and shape."""
    array = arrays[name]
    if array.dtype != dtype or array.shape != shape:
        found = f"{array.dtype} of shape {array.shape}"
        raise ValueError(f"{name} is {found}, expected {np.dtype(dtype)} of shape {shape}")
    return array


def _dict(name, value) -> dict:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is a {type(value).__name__}, expected names and values")
    return value
