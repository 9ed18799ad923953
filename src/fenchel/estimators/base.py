"""What every estimator shares: the way from data to a model, warning where it fell short, saving the model.

fit(X, y, ...) is fit_encoded(encode_training(X, y, ...)), and each step can be taken alone:

    encode_training(X, y, ...) -> data      the user's objects as numbers; what they stand for is learnt
    problem(data) -> Problem                what `solve` minimises on them
    fit_encoded(data) -> self               problem, solve, set_weights
    set_weights(data, w, b) -> self         the model of weights found elsewhere; set_result with certificate
"""

import dataclasses
import sys
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from math import ceil, inf
from types import MappingProxyType

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fenchel.choosing import solver_name
from fenchel.estimators.checkpoint import Checkpoint
from fenchel.estimators.elsewhere import active_client, at_workers
from fenchel.estimators.matching import Match
from fenchel.estimators.restored import read_certificate, read_count, read_options, read_settings
from fenchel.estimators.settings import check_settings
from fenchel.loop import solve
from fenchel.problem import Problem
from fenchel.results import Result
from fenchel.solvers.base import Start
from fenchel.trace import NO_OPTIMUM, Certificate, Status, percent

REMEDY = {
    Status.MAX_PASSES: "raise max_iter",
    Status.MAX_SECONDS: "raise max_seconds",
    Status.STALLED: "raise tol, or scale the features",
    Status.DIVERGED: "scale the features, or use another solver",
    Status.INTERRUPTED: "fit again with warm_start=True to go on",
}


class Trained(BaseEstimator):
    """An estimator that minimises a Problem and carries the certificate of how well it did."""

    # How the command line read the training data (format, ...), so that `predict` reads alike: saved.
    read_as: Mapping = MappingProxyType({})

    def _html_repr(self) -> str:
        """In a notebook: scikit-learn's picture of the estimator, and what is proven once it is fitted."""
        proven = self.certificate_._repr_html_() if hasattr(self, "certificate_") else ""
        return super()._html_repr() + proven

    def fit_encoded(self, data, *, origin=None, check_every=None, validate=None):
        """Fit the model to data that are numbers already, as `encode_training` makes them.

        origin : a fitted model of this class to go on from: the weights of labels and features that the data
            share with it (`shared_with`) are where training starts
        check_every, validate : as in `fenchel.solve`, for one who watches the run
        """
        with self._placed(data) as problem:
            result = self._solve(problem, self._start(problem, data, origin), check_every, validate)
            self.set_weights(data, result.w, result.b)
            self._certify_rounded(problem, data)
        return self

    def memory_of(self, data) -> int:
        """Bytes that training takes at most, about, on data of shards."""
        return data.disk.peak

    def _placed(self, data):
        """A context that gives the problem: here or, of shards, at the workers of an active Dask client."""
        disk = getattr(data, "disk", None)
        client = None if disk is None else disk.client or active_client()
        return nullcontext(self.problem(data)) if client is None else at_workers(self, data, client)

    def shared_with(self, origin, data) -> dict[str, Match]:
        """Which labels, features, ... of the data a fitted model of this class knows, by name."""
        raise NotImplementedError

    def _start(self, problem, data, origin=None) -> Start | None:
        """Where to begin: at the weights of `origin`, else of the last fit if warm_start asks for it."""
        if origin is None and self.warm_start and hasattr(self, "certificate_"):
            origin = self
        if origin is None:
            return None
        shared = self.shared_with(origin, data)
        w, b = self._weights_from(origin, data, shared)
        if not np.any(w):
            return None
        whole = origin is self and all(match.is_whole for match in shared.values())
        return Start(w, b if problem.free else 0.0, **(self._last_dual(problem) if whole else {}))

    def _weights_from(self, origin, data, shared: dict[str, Match]):
        """w and b for `problem(data)`: those that `origin` has of what is shared, 0 for the rest."""
        raise NotImplementedError

    def _certify_rounded(self, problem, data) -> None:
        """Make the certificate that of the weights as they are kept, where those are not the solver's own."""

    def set_result(self, data, result: Result):
        """Make this the model that `solve` found for `problem(data)`, with its certificate and trace."""
        self._remember(result)
        return self.set_weights(data, result.w, result.b)

    def _solve(self, problem: Problem, start, check_every, validate) -> Result:
        """Minimise, keep certificate_, trace_ and n_iter_, and warn where tol was not reached."""
        callbacks = list(self.callbacks or ())
        if self.verbose:
            callbacks.append(print_last_row)
        self._refits = getattr(self, "_refits", 0) + 1 if start is not None else 0
        result = solve(
            problem,
            self.solver,
            seed=self._seed(),
            tol=self.tol,
            max_passes=self.max_iter,
            max_seconds=inf if self.max_seconds is None else self.max_seconds,
            start=start,
            callbacks=callbacks,
            check_every=check_every,
            validate=validate,
            keeper=next((one for one in callbacks if isinstance(one, Checkpoint)), None),
        )
        self._remember(result, problem)
        if self.warm_start:
            self._dual = result.mu, problem.examples.starts, result.centre
        self._warn(result)
        return result

    def _remember(self, result: Result, problem: Problem | None = None) -> None:
        """What is kept of a run beside its weights; problem: what it was a run of, where that is at hand."""
        self.certificate_, self.trace_ = result.certificate, result.trace
        self.n_iter_ = max(1, ceil(result.certificate.passes))

    def _last_dual(self, problem):
        """mu and centre of a `Start`: those of the last fit, if they are of the shape of this problem's.

        Of sequences they are not kept: weights alone tell where to go on.
        """
        mu, starts, centre = getattr(self, "_dual", (None, None, None))
        same = mu is not None and mu.shape == problem.shape and problem.structure.listed
        if not (same and np.array_equal(starts, problem.examples.starts)):
            return {}
        return {"mu": mu, "centre": centre if problem.free else None}

    def _seed(self) -> int:
        """What random_state adds to the solver's seed, unless the user made the solver.

        Each fit that goes on from the last draws other numbers: the same would leave out the same examples.
        """
        seed = self.random_state if isinstance(self.solver, str) else None
        if seed is not None and not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(2**31)
        return int(seed or 0) + self._refits

    def _warn(self, result):
        if result.status is Status.CONVERGED or result.certificate.missing == NO_OPTIMUM:
            return
        reached = describe_gap(result.certificate, self.tol)
        warnings.warn(
            f"{type(self).__name__} {result.status.value} with {reached}; {REMEDY[result.status]}",
            ConvergenceWarning,
            stacklevel=level_of_caller(),
        )

    # ---- the model file (io/models.py knows its bytes)

    def save(self, path) -> None:
        """Write the fitted model to a file that `fenchel.load` reads; nothing in it can be executed."""
        from fenchel.io.models import write_model

        check_is_fitted(self)
        write_model(path, type(self).__name__, *self.to_file())

    def to_file(self) -> tuple[dict, dict, dict]:
        """Settings, facts and arrays of the fitted model, for `from_file`."""
        arrays, facts = self._to_file()
        facts |= {"certificate": self.certificate_.to_dict(), "n_iter": int(np.max(self.n_iter_))}
        if self.read_as:
            facts["read_as"] = dict(self.read_as)
        return settings_to_json(self.get_params(deep=False)), facts, arrays

    @classmethod
    def from_file(cls, settings, facts, arrays):
        """The fitted estimator from the parts of a model file."""
        model = cls(**read_settings(settings))
        check_settings(model)
        model.certificate_ = read_certificate(facts["certificate"])
        model.n_iter_ = read_count(facts, "n_iter")
        if "read_as" in facts:
            model.read_as = read_options(facts["read_as"])
        model._from_file(arrays, facts)
        return model


def describe_gap(certificate: Certificate, tol: float) -> str:
    """What a run that fell short has proven, in the words of a warning."""
    if np.isnan(certificate.gap):
        return f"a gradient norm of {certificate.gradient_norm:.2g} (unregularised: no gap)"
    if np.isinf(certificate.gap):
        return "a gap that is infinite: nothing is proven"
    if not certificate.proves_something:
        return f"a gap of {certificate.gap:.2g}, so nothing is proven: the optimum may lie anywhere from 0"
    return f"a gap of {percent(certificate.relative_gap)}, above tol={tol:g}"


def level_of_caller() -> int:
    """The stacklevel at which a warning points to the first line outside of fenchel."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("fenchel."):
        level, frame = level + 1, frame.f_back
    return level


def print_last_row(trace) -> None:
    """verbose=1: a line to stderr after each check."""
    row = trace[-1]
    print(
        f"{trace.solver}: {row.passes:8.1f} passes  {row.seconds:8.2f} s  objective {row.primal:.8g}  "
        f"{trace.measure} {trace.distances()[-1]:.2e}",
        file=sys.stderr,
    )


def settings_to_json(settings: dict) -> dict:
    """Constructor arguments as plain values, for `read_settings`; a solver by its name and options."""
    plain = dict(settings)
    plain["callbacks"] = None
    if not isinstance(plain["solver"], str):
        plain["solver"] = {
            "name": solver_name(plain["solver"]),
            "options": dataclasses.asdict(plain["solver"]),
        }
    if not isinstance(plain["random_state"], (int, np.integer)):
        plain["random_state"] = None
    if not isinstance(plain.get("template", ""), str):  # a function, or a Template, which the arrays hold
        plain["template"] = None
    if isinstance(plain.get("class_weight"), dict):
        plain["class_weight"] = [[_plain(label), float(w)] for label, w in plain["class_weight"].items()]
    return {name: _plain(value) for name, value in plain.items()}


def classes_to_facts(classes: np.ndarray) -> dict:
    """classes_ for the header, and for `read_classes`; an error where JSON would not bring a label back."""
    labels = classes.tolist()
    for label in labels:
        if type(label) not in (str, int, float, bool):
            kind = type(label).__name__
            raise ValueError(
                f"the label {label!r} is a {kind}, but a model file holds labels that are str, int, float "
                f"or bool; fit with such labels, for instance str(label)"
            )
    return {"classes": labels, "classes_dtype": classes.dtype.str if classes.dtype != object else "object"}


def _plain(value):
    """A NumPy scalar as the Python number JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value
