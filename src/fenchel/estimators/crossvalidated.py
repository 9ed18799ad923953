"""LogisticRegressionCV: C, and the share of the L1 norm, chosen by cross-validation over certified paths."""

import inspect
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import ceil, inf

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import check_cv

from fenchel._threads import thread_count
from fenchel.estimators.base import REMEDY, describe_gap, level_of_caller
from fenchel.estimators.flat import LogisticRegression
from fenchel.estimators.labelled_rows import LabelledRows
from fenchel.estimators.restored import read_array, read_certificate
from fenchel.estimators.settings import check_count, is_number, is_whole
from fenchel.io.shards import Shards
from fenchel.paths import path
from fenchel.trace import Certificate, Status

SHARED = ("solver", "tol", "fit_intercept", "intercept_scaling", "max_iter", "max_seconds", "random_state")
RANGE = -4.0, 4.0  # of Cs that are given by their number: powers of ten


@dataclass(frozen=True)
class Walk:
    """A path on one fold with one ratio, in the order of Cs: coefficients with the intercept behind them,
    scores on the rest of the data, certificates.
    """

    coefs: np.ndarray  # (Cs, outputs, d + 1), without intercept (Cs, outputs, d)
    scores: np.ndarray  # (Cs,)
    certificates: list[Certificate]


class LogisticRegressionCV(LogisticRegression):
    """Logistic regression whose C is chosen by cross-validation: scikit-learn's class over certified paths.

    For each fold and each of `l1_ratios` the constants `Cs` are fitted from the strongest regulariser to the
    weakest, each model from the one before, each to its own certificate; then the best of the mean scores is
    fitted to all data.

    Parameters
    ----------
    Cs : int or list of floats, default 10
        The constants tried; a number stands for so many between 1e-4 and 1e4, evenly spaced in the exponent.
    l1_ratios : list of floats, default (0.0,)
        The shares of the L1 norm tried, as `l1_ratio` of `LogisticRegression`.
    cv : int, splitter, iterable of (train, test) or None, default None
        Folds, as in scikit-learn: None and numbers are stratified, None is 5.
    scoring : str, callable or None, default None
        scikit-learn's scorer, or its name; None is the accuracy.
    refit : bool, default True
        Fit the best constants to all data. Otherwise coefficients, C and ratio are averages over the folds of
        what was best on each, and the certificate is that of the average on all data.
    use_legacy_attributes : bool, default False
        C_, l1_ratio_, coefs_paths_, scores_ and n_iter_ in the shapes scikit-learn had before version 1.10:
        by class.
    n_jobs : int or None, default None
        Threads, each with a fold at a time; None uses all cores. The result is the same for any number.
    solver, tol, fit_intercept, intercept_scaling, class_weight, max_iter, max_seconds, random_state, verbose
        As in `LogisticRegression`, of each fit. class_weight="balanced" is of all data.

    Attributes
    ----------
    C_ : float;  l1_ratio_ : float;  Cs_, l1_ratios_ : arrays
    scores_ : array (folds, ratios, Cs)
    coefs_paths_ : array (folds, ratios, Cs, classes, d + 1): the intercept last, if there is one; of two
        classes there is one row
    n_iter_ : array (folds, ratios, Cs), passes used
    certificates_ : array of Certificate (folds, ratios, Cs), one for each fit behind a score
    coef_, intercept_, classes_, certificate_, trace_ : of the last fit, as in `LogisticRegression`

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from fenchel import LogisticRegressionCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegressionCV(Cs=3, cv=3).fit(X / X.max(axis=0), y)
    >>> all(certificate.converged for certificate in model.certificates_.flat)
    True
    """

    warm_start, callbacks = False, None

    def __init__(
        self,
        *,
        Cs=10,
        l1_ratios=(0.0,),
        cv=None,
        scoring=None,
        refit=True,
        use_legacy_attributes=False,
        solver="auto",
        tol=1e-3,
        fit_intercept=True,
        intercept_scaling=None,
        class_weight=None,
        max_iter=1000,
        max_seconds=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.use_legacy_attributes = use_legacy_attributes
        self.solver = solver
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Choose the constants by cross-validation, and fit them to all data.

        groups: (n,) for a `cv` that keeps groups together, such as GroupKFold.

        Returns
        -------
        self, with C_, l1_ratio_, scores_, certificates_ and what `LogisticRegression` has.
        """
        if isinstance(X, Shards):
            raise TypeError("folds of shards are not made; choose C on a part of the data in memory")
        Cs, ratios = self._grid()
        data = self.encode_training(X, y, sample_weight)
        labels = data.classes[data.codes.astype(np.intp)]
        folds = self._folds(data.X, labels, groups)
        walks = self._walk_all(data, labels, folds, Cs, ratios)
        shape = len(folds), ratios.size, Cs.size
        certificates = np.empty(shape, dtype=object)
        certificates.reshape(-1)[:] = [each for walk in walks for each in walk.certificates]
        self.Cs_, self.l1_ratios_, self.certificates_ = Cs, ratios, certificates
        self.scores_ = np.reshape([walk.scores for walk in walks], shape)
        coefs = np.array([walk.coefs for walk in walks])
        self.coefs_paths_ = coefs.reshape(*shape, *coefs.shape[-2:])
        self._warn_of_paths()
        (self._fit_best if self.refit else self._average)(self._weighted(data))
        self.n_iter_ = _passes(certificates)
        if self.use_legacy_attributes:
            vars(self).update(_by_class(self))
        return self

    def _folds(self, X, labels, groups) -> list:
        """(train, test) of each fold."""
        folds = list(check_cv(self.cv, labels, classifier=True).split(X, labels, groups))
        if not folds:
            raise ValueError(f"cv={self.cv!r} makes no folds; at least one is needed")
        return folds

    def _grid(self):
        """The constants and the ratios as arrays; a sentence where they are none."""
        if is_whole(self.Cs):
            check_count("Cs", self.Cs)
            Cs = np.logspace(*RANGE, int(self.Cs))
        else:
            Cs = _numbers("Cs", self.Cs, 0.0, inf, "positive")
        return Cs, _numbers("l1_ratios", self.l1_ratios, -1e-300, 1.0, "between 0 and 1")

    def _model(self, threads, **constants) -> LogisticRegression:
        """One of the models fitted on the way; class weights are in the rows' weights already."""
        return LogisticRegression(
            **{name: getattr(self, name) for name in SHARED}, n_jobs=threads, **constants
        )

    def _weighted(self, data) -> LabelledRows:
        """The rows with the class weights of all data in their own."""
        return replace(data, weight=self.weights_of(data))

    # ---- the paths

    def _walk_all(self, data, labels, folds, Cs, ratios) -> list[Walk]:
        """A Walk for each fold and ratio, by threads."""
        scorer, weighted = _with_labels(self._scorer, data.classes), self._weighted(data)

        def walk(task):
            number, ratio = task
            train, test = folds[number]
            part = _rows(weighted, train)
            _require_every_class(part, number)
            model = self._model(1)
            fits = self._path(model.problem(part), Cs, float(ratio))
            given = {} if data.weight is None else {"sample_weight": data.weight[test]}
            models = [_coefficients(model.set_weights(part, fit.result.w, fit.result.b)) for fit in fits]
            scores = [scorer(_of(model, each), data.X[test], labels[test], **given) for each in models]
            return Walk(np.array(models), np.array(scores, float), [fit.result.certificate for fit in fits])

        tasks = [(number, ratio) for number in range(len(folds)) for ratio in ratios]
        threads = min(thread_count(self.n_jobs), len(tasks))
        if threads == 1:
            return list(map(walk, tasks))
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(walk, tasks))

    def _path(self, problem, Cs, ratio) -> list:
        """The fits in the order of Cs."""
        self._refits = 0
        fits = path(
            problem,
            self.solver,
            tol=self.tol,
            max_passes=self.max_iter,
            max_seconds=inf if self.max_seconds is None else self.max_seconds,
            seed=self._seed(),
            C=Cs,
            **({"l1_ratio": ratio} if ratio > 0.0 else {}),
        )
        by_constant = {fit.constant: fit for fit in fits}
        return [by_constant[float(C)] for C in Cs]

    def _warn_of_paths(self) -> None:
        """One sentence for all fits behind scores that fell short."""
        short = [each for each in self.certificates_.flat if not each.converged]
        if short:
            worst = max(short, key=lambda each: each.relative_gap)
            warnings.warn(
                f"{len(short)} of {self.certificates_.size} fits behind scores did not converge; the worst "
                f"{worst.status.value} with {describe_gap(worst, self.tol)}; {REMEDY[worst.status]}",
                ConvergenceWarning,
                stacklevel=level_of_caller(),
            )

    # ---- what is chosen

    def _fit_best(self, data) -> None:
        """The constants of the best mean score, of equals the first of Cs, fitted to all data."""
        sums = self.scores_.sum(axis=0).T  # (Cs, ratios), as scikit-learn looks for the largest
        c, r = np.unravel_index(np.argmax(sums), sums.shape)
        self.C_, self.l1_ratio_ = float(self.Cs_[c]), float(self.l1_ratios_[r])
        model = self._model(self.n_jobs, C=self.C_, l1_ratio=self.l1_ratio_).fit_encoded(data)
        self._take(model, "certificate_", "trace_")

    def _average(self, data) -> None:
        """Coefficients, C and ratio averaged over what was best on each fold, and what that proves."""
        number, (folds, ratios, Cs) = np.arange(len(self.scores_)), self.scores_.shape
        best = self.scores_.transpose(0, 2, 1).reshape(folds, -1).argmax(axis=1)
        c, r = np.unravel_index(best, (Cs, ratios))
        self.C_, self.l1_ratio_ = float(self.Cs_[c].mean()), float(self.l1_ratios_[r].mean())
        model = self._model(self.n_jobs, C=self.C_, l1_ratio=self.l1_ratio_)
        model.classes_, model.n_features_in_ = data.classes, data.X.shape[1]
        _of(model, self.coefs_paths_[number, r, c].mean(axis=0))
        problem = model.problem(data)
        weights = model._weights_from(model, data, model.shared_with(model, data))
        point = problem.primal_point(problem.design.join(*weights))
        known = point.primal, point.dual, point.gap, point.gradient_norm
        self.certificate_ = Certificate(*known, passes=0.0, seconds=0.0, status=Status.AVERAGED)
        self._take(model)

    def _take(self, model, *more) -> None:
        for name in ("coef_", "intercept_", "classes_", "n_features_in_", "_offsets", *more):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    # ---- scores, and the model file

    @property
    def _scorer(self):
        return get_scorer("accuracy" if self.scoring is None else self.scoring)

    def score(self, X, y, sample_weight=None):
        """The score by `scoring`."""
        return self._scorer(self, X, y, **({} if sample_weight is None else {"sample_weight": sample_weight}))

    def to_file(self):
        """As `Trained.to_file`; the coefficients of the paths are left out, folds and scorers that are no
        numbers and names too.
        """
        settings, facts, arrays = super().to_file()
        del settings["callbacks"]
        settings |= {"Cs": self.Cs_.tolist(), "l1_ratios": self.l1_ratios_.tolist()}
        settings["cv"] = int(self.cv) if is_whole(self.cv) else None
        settings["scoring"] = self.scoring if isinstance(self.scoring, str) else None
        facts |= {"C": float(np.ravel(self.C_)[0]), "l1_ratio": float(np.ravel(self.l1_ratio_)[0])}
        facts["certificates"] = [each.to_dict() for each in self.certificates_.flat]
        return settings, facts, arrays | {"scores": _scores(self)}

    def _from_file(self, arrays, facts):
        super()._from_file(arrays, facts)
        self.Cs_, self.l1_ratios_ = self._grid()
        self.C_, self.l1_ratio_ = (_positive(facts, name) for name in ("C", "l1_ratio"))
        shape = len(arrays["scores"]), self.l1_ratios_.size, self.Cs_.size
        self.scores_ = read_array(arrays, "scores", np.float64, shape)
        certificates = [read_certificate(each) for each in facts["certificates"]]
        if len(certificates) != self.scores_.size:
            raise ValueError(f"{len(certificates)} certificates of {self.scores_.size} scores")
        self.certificates_ = np.empty(shape, dtype=object)
        self.certificates_.reshape(-1)[:] = certificates
        self.n_iter_ = _passes(self.certificates_)


def _numbers(name, values, low, high, words) -> np.ndarray:
    """A list of numbers, each above `low` and at most `high`."""
    array = np.ravel(values) if isinstance(values, list | tuple | np.ndarray) else np.empty(0)
    if not array.size or not all(is_number(value) and low < value <= high for value in array.tolist()):
        raise ValueError(f"{name}={values!r} must be a list of numbers, each {words}")
    return array.astype(float)


def _positive(facts, name) -> float:
    if not is_number(facts[name]):
        raise ValueError(f"{name} is {facts[name]!r}, expected a number")
    return float(facts[name])


def _passes(certificates) -> np.ndarray:
    """n_iter_: whole passes, at least one."""
    counts = [max(1, ceil(each.passes)) for each in certificates.flat]
    return np.reshape(counts, certificates.shape)


def _rows(data, numbers) -> LabelledRows:
    weight = None if data.weight is None else data.weight[numbers]
    return replace(data, X=data.X[numbers], codes=data.codes[numbers], weight=weight)


def _require_every_class(part, number) -> None:
    missing = np.setdiff1d(np.arange(part.classes.size), part.codes)
    if missing.size:
        name = part.classes.tolist()[int(missing[0])]
        raise ValueError(
            f"fold {number} has no rows of the class {name!r} to train on; take a splitter that shuffles "
            f"rows or stratifies classes, or fewer folds"
        )


def _coefficients(model) -> np.ndarray:
    """(outputs, d), or (outputs, d + 1) with the intercepts behind."""
    return np.column_stack([model.coef_, model.intercept_]) if model.fit_intercept else model.coef_


def _of(model, coefficients):
    """The model of `_coefficients`; its attributes are written."""
    model.coef_ = coefficients[:, : model.n_features_in_]
    model.intercept_ = coefficients[:, -1] if model.fit_intercept else np.zeros(len(coefficients))
    return model


def _with_labels(scorer, classes):
    """The scorer, told of all classes where its measure asks for them: a fold may lack some."""
    measure = getattr(scorer, "_score_func", None)
    names = inspect.signature(measure).parameters if measure else ()
    if "labels" not in names:
        return scorer
    more = {"pos_label": classes[-1]} if classes.size == 2 and "pos_label" in names else {}
    return make_scorer(
        measure,
        response_method=scorer._response_method,
        greater_is_better=scorer._sign == 1,
        labels=classes,
        **more | scorer._kwargs,
    )


def _by_class(model) -> dict:
    """The attributes as scikit-learn had them before version 1.10: the same for each class but coefs_paths_,
    axes (folds, Cs, ratios).
    """
    classes = model.classes_[1:] if model.classes_.size == 2 else model.classes_
    scores, paths = model.scores_.swapaxes(1, 2), model.coefs_paths_.swapaxes(1, 2)
    return {
        "C_": np.full(classes.size, model.C_),
        "l1_ratio_": np.full(classes.size, model.l1_ratio_),
        "scores_": dict.fromkeys(classes.tolist(), scores),
        "coefs_paths_": {name: paths[:, :, :, k] for k, name in enumerate(classes.tolist())},
        "n_iter_": model.n_iter_.swapaxes(1, 2)[None],
    }


def _scores(model) -> np.ndarray:
    """(folds, ratios, Cs), however the attribute is laid out."""
    scores = model.scores_
    return next(iter(scores.values())).swapaxes(1, 2).copy() if isinstance(scores, dict) else scores
