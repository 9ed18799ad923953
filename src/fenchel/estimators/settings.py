"""The settings that estimators share, and what may be given for each: a wrong one is named at once."""

import os
from collections.abc import Callable
from math import isfinite
from numbers import Integral, Real

import numpy as np

from fenchel.estimators.inputs import is_list
from fenchel.features.attributes import Extractor
from fenchel.features.templates import Template


def is_number(value, least: float = 0.0) -> bool:
    """Whether it is a number of at least so much; NaN and True are none."""
    return isinstance(value, Real) and not _is_bool(value) and bool(value >= least)


def is_whole(value, least: float = -np.inf) -> bool:
    return isinstance(value, Integral) and is_number(value, least)


def _is_bool(value):
    return isinstance(value, bool | np.bool_)


def _is_limit(value):
    """1000, but also 1e5 and inf."""
    return is_number(value) and (not isfinite(value) or value == int(value))


def _is_positive(value):
    return is_number(value) and 0.0 < value < np.inf


def _is_finite(value):
    return is_number(value) and value < np.inf


def _is_seed(value):
    return is_whole(value, 0) or isinstance(value, np.random.RandomState)


def _is_template(value):
    return isinstance(value, str | os.PathLike | Template | Extractor) or callable(value)


def _are_callables(value):
    return isinstance(value, list | tuple) and all(map(callable, value))


SWITCH = "True or False", _is_bool
SWITCH_OF_CRFSUITE = "True or False", lambda value: _is_bool(value) or (is_whole(value) and value in (0, 1))
COUNT = "a whole number of at least 1", lambda value: is_whole(value, 1)
LIMIT = "a whole number, at least 0, or inf for no limit", _is_limit
NUMBER = "a number, at least 0", is_number

# What may be given for a setting, in words and as a function.
EXPECTED: dict[str, tuple[str, Callable]] = {
    "tol": NUMBER,
    "max_iter": LIMIT,
    "max_iterations": LIMIT,
    "max_seconds": ("a number of seconds, at least 0, or None", is_number),
    "random_state": ("a whole number, at least 0, a RandomState or None", _is_seed),
    "n_jobs": ("a whole number other than 0, or None", lambda value: is_whole(value) and value != 0),
    "verbose": ("True, False or a whole number", lambda value: _is_bool(value) or is_whole(value, 0)),
    "template": ("None, the name of a preset or of a file, a Template or a function", _is_template),
    "banned": ("a list of pairs (label, label that must not follow), or None", is_list),
    "callbacks": ("a list of functions, or None", _are_callables),
    "intercept_scaling": ("a positive finite number, or None", _is_positive),
    "loss": ("'log' or 'hinge'", lambda value: isinstance(value, str)),  # `problems` knows which there are
    "min_freq": ("a number", lambda value: is_number(value, -np.inf)),
    "l1_ratio": ("a number between 0 and 1", lambda value: is_number(value) and value <= 1.0),
    "hash_bits": ("a whole number from 1 to 30, or None", lambda value: is_whole(value, 1) and value <= 30),
    "columns": ("a whole number, at least 0", lambda value: is_whole(value, 0)),
    "c1": ("a finite number, at least 0, or None", _is_finite),
    "c2": ("a finite number, at least 0, or None", _is_finite),
} | {
    **dict.fromkeys(["warm_start", "fit_intercept", "observed", "transitions", "single_root"], SWITCH),
    **dict.fromkeys(["bias", "boundaries", "tag_dictionary", "refit", "use_legacy_attributes"], SWITCH),
    **dict.fromkeys(["all_possible_states", "all_possible_transitions"], SWITCH_OF_CRFSUITE),
    **dict.fromkeys(["min_count", "beam", "rare", "num_memories"], COUNT),
}
MAY_BE_NONE = frozenset(
    {"max_seconds", "random_state", "n_jobs", "callbacks", "intercept_scaling", "template", "banned"}
    | {"c1", "c2", "hash_bits"}
)


def check_settings(estimator, may_be_none=MAY_BE_NONE) -> None:
    """ValueError that names the first setting of the estimator that is not what it should be."""
    for name, value in vars(estimator).items():  # get_params would look up the signature: 60 µs
        if name not in EXPECTED or (value is None and name in may_be_none):
            continue
        words, is_right = EXPECTED[name]
        if not is_right(value):
            raise ValueError(f"{name}={value!r} must be {words}")


def check_count(name: str, value) -> None:
    """ValueError that names an argument which is no whole number of at least 1."""
    check_whole(name, value, least=1)


def check_whole(name: str, value, least: float = -np.inf) -> None:
    """ValueError that names an argument which is no whole number, or too small a one."""
    if not is_whole(value, least):
        raise ValueError(f"{name}={value!r} must be a whole number" + f" of at least {least}" * (least > 0))
