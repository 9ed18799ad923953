"""LogisticRegression and LinearSVC, for two classes or more."""

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, validate_data

from fenchel import problems
from fenchel.estimators.base import Trained
from fenchel.estimators.exported import LinearExports
from fenchel.estimators.inputs import dense, is_plain, refuse_missing, weighted_by_class, whole_classes
from fenchel.estimators.labelled_rows import LabelledRows, rows_on_disk
from fenchel.estimators.linear_files import LinearFiles
from fenchel.estimators.matching import match_names, match_nothing, match_numbers
from fenchel.estimators.proving import ProvenRows
from fenchel.estimators.settings import check_settings
from fenchel.features.hashing import hashed_columns
from fenchel.io.shards import Shards


class LinearClassifier(ProvenRows, LinearExports, LinearFiles, ClassifierMixin, Trained):
    """A linear model of classes: fit, decision_function, predict. `loss` names what it minimises.

    Two classes share one weight vector; of more, each has its own.
    """

    loss: str
    hash_bits = None  # of a class that does not take it

    def __init__(
        self,
        C=1.0,
        *,
        solver="auto",
        tol=1e-3,
        fit_intercept=True,
        intercept_scaling=None,
        class_weight=None,
        hash_bits=None,
        max_iter=1000,
        max_seconds=None,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        verbose=0,
        callbacks=None,
    ):
        self.C = C
        self.solver = solver
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.hash_bits = hash_bits
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    def fit(self, X, y=None, sample_weight=None):
        """Fit the model to X (n, d), dense or sparse, and labels y (n,); or to `fenchel.Shards` alone.

        Returns
        -------
        self, with coef_, intercept_, classes_, n_iter_, certificate_ and trace_.
        """
        return self.fit_encoded(self.encode_training(X, y, sample_weight))

    def encode_training(self, X, y=None, sample_weight=None) -> LabelledRows:
        """The data of `fit`, looked at by scikit-learn's rules; learns the classes."""
        check_settings(self)
        if isinstance(X, Shards):
            data = rows_on_disk(self, X, y, sample_weight)
            self.n_features_in_ = data.X.n_columns
            return data
        X, y = self._validate(X, y)
        if self.hash_bits is not None:
            X, self.n_features_in_ = hashed_columns(X, self.hash_bits), 2**self.hash_bits
            vars(self).pop("feature_names_in_", None)
        classes, codes = self._encode(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        return self._of_weight(LabelledRows(X, codes, classes, sample_weight))

    def _of_weight(self, data: LabelledRows) -> LabelledRows:
        """The rows of the classes that have a weight: one of none says nothing, as if its rows were left out.

        So resampling by weights, as bagging does it, may miss a class.
        """
        weight = self.weights_of(data)
        if weight is None or weight.all():
            return data
        codes = data.codes.astype(np.intp)
        there = np.bincount(codes[weight != 0.0], minlength=data.classes.size) > 0
        if there.all() or not there.any():  # `problems` says what is wrong with the latter
            return data
        if there.sum() == 1:
            name = data.classes[there].tolist()[0]
            raise ValueError(f"only the class {name!r} has examples of positive weight; two are needed")
        rows = there[codes]
        own = None if data.weight is None else data.weight[rows]
        numbers = np.cumsum(there) - 1
        return LabelledRows(data.X[rows], numbers[codes[rows]], data.classes[there], own)

    def _validate(self, X, y):
        """Arrays of both, by scikit-learn's rules and in its words, but where those would mislead."""
        if is_plain(X, y):
            vars(self).pop("feature_names_in_", None)  # of an earlier fit
            self.n_features_in_ = X.shape[1]
            return X, y
        if isinstance(X, list | tuple) and X and isinstance(X[0], dict):
            raise TypeError(
                f"X[0] is a dict, but {type(self).__name__} takes a table of numbers; MaxEnt takes dicts"
            )
        try:  # `problems` looks for NaN and infinity: once is enough
            return validate_data(
                self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
            )
        except ValueError:
            refuse_missing(y)
            raise

    def problem(self, data: LabelledRows):
        """What this model minimises on the rows: one weight vector for two classes, one for each of more."""
        check_settings(self)
        codes, classes, weight = data.codes, data.classes, self.weights_of(data)
        settings = {
            "loss": self.loss,
            "fit_intercept": self.fit_intercept,
            "intercept_scaling": self.intercept_scaling,
            "sample_weight": weight,
            "threads": self.n_jobs,
            "disk": data.disk,
            **self._constants(),
        }
        if classes.size == 2:
            return problems.binary(data.X, codes, **settings)
        return problems.flat(data.X, codes, labels=classes.size, **settings)

    def _constants(self):
        """By the names of `fenchel.constants`."""
        return {"C": self.C}

    def _encode(self, y):
        """Sorted classes, and the number of each y among them."""
        found = whole_classes(y)
        if found is not None:
            return found
        if y.dtype == object:
            refuse_missing(y)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if classes.size == 1:
            raise ValueError(
                f"y holds only one class, {classes.tolist()[0]!r}; "
                f"{type(self).__name__} needs examples of two classes"
            )
        return classes, codes

    def weights_of(self, data):
        """Sample weights times class weights; None where all are one."""
        if self.class_weight is None:
            return data.weight
        return weighted_by_class(self.class_weight, data.classes, data.codes.astype(np.intp), data.weight)

    def shared_with(self, origin, data):
        """Classes by their labels; features by name where both have names, else by number."""
        names, old = getattr(self, "feature_names_in_", None), getattr(origin, "feature_names_in_", None)
        if names is not None and old is not None:
            features = match_names(names.tolist(), old.tolist())
        else:
            alike = match_numbers if self.hash_bits == origin.hash_bits else match_nothing
            features = alike(data.X.shape[1], origin.n_features_in_)
        return {"class": match_names(data.classes.tolist(), origin.classes_.tolist()), "feature": features}

    def _weights_from(self, origin, data, shared):
        """Of two classes a half of the one weight vector is each one's, so that their difference is that."""
        labels, features = shared["class"], shared["feature"]
        old = np.column_stack([dense(origin.coef_), origin.intercept_]).astype(np.float64)
        if origin.classes_.size == 2:
            old = np.vstack([-0.5 * old, 0.5 * old])
        new = np.zeros((labels.total, features.total + 1))
        columns = np.append(features.new, features.total), np.append(features.old, features.known)
        new[np.ix_(labels.new, columns[0])] = old[np.ix_(labels.old, columns[1])]
        if labels.total == 2:
            new = new[1:] - new[:1]
        return self._scaled(new[:, :-1].T, new[:, -1])

    @property
    def _scaled_intercept(self):
        """The value of the constant feature, or None where the intercept is free or absent."""
        if not self.fit_intercept:
            return None
        return 1.0 if self.intercept_scaling is None and self.loss == "hinge" else self.intercept_scaling

    def _unscaled(self, w, b, classes: int):
        """Weights (outputs, d) of the features and intercepts (outputs,); a constant's weights come last."""
        w = w.reshape(-1, 1 if classes == 2 else classes)
        if self._scaled_intercept:
            return w[:-1].T, w[-1] * self._scaled_intercept
        return w.T, np.zeros(w.shape[1]) + b

    def set_weights(self, data: LabelledRows, w, b=0.0):
        """Make this the model of weights w and intercept b, as `solve` gives them, for the rows' classes."""
        coef, intercept = self._unscaled(w, b, data.classes.size)
        learnt = {"classes_": data.classes, "n_features_in_": data.X.shape[1]}
        kind = np.float32 if data.single else np.float64
        learnt |= {"coef_": np.ascontiguousarray(coef, kind), "intercept_": np.asarray(intercept, kind)}
        vars(self).update(learnt)  # at once: Ctrl-C finds the old model or the new
        return self

    def decision_function(self, X):
        """Scores: of two classes (n,), positive for classes_[1]; of more (n, classes)."""
        check_is_fitted(self)
        X = self._known_columns(X)
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return scores.ravel() if self.classes_.size == 2 else scores

    def _known_columns(self, X, **settings):
        """The columns of X as those of coef_; where these are hashed, X may have any number of them."""
        if self.hash_bits is None:
            return validate_data(self, X, accept_sparse="csr", reset=False, **settings)
        return hashed_columns(check_array(X, accept_sparse="csr", **settings), self.hash_bits)

    def predict(self, X):
        """Labels (n,)."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LogisticRegression(LinearClassifier):
    """Regularised logistic regression, with a proof of how far it is from the optimum.

    Minimises  C Σ_i v_i log(1 + exp(−y_i (w·x_i + b))) + ½‖w‖²  over w and the free intercept b; of more
    than two classes  C Σ_i v_i (log Σ_k exp(w_k·x_i + b_k) − w_y·x_i − b_y) + ½ Σ_k ‖w_k‖²,  the multinomial
    model.

    Parameters
    ----------
    C : float, default 1.0
        Inverse regularisation strength, as in scikit-learn; inf means none.
    l1_ratio : float, default 0.0
        The share r of the L1 norm in the penalty, r ‖w‖₁ + (1 − r)/2 ‖w‖²: with r > 0 weights that do not pay
        are exactly 0. 1 is the lasso.
    solver : str or solver, default "auto"
        A name of `fenchel.solvers.SOLVERS`, an instance such as `fenchel.solvers.CDDual(xi=0.5)`, or "auto".
    tol : float, default 1e-3
        Stop when gap ≤ tol · objective: 1e-3 reads "proven within 0.1 % of the optimal objective".
    fit_intercept : bool, default True
        Whether to add an intercept, free of the penalty.
    intercept_scaling : float or None, default None
        If given, the intercept is the weight of a constant feature of this value and penalised, as in
        LIBLINEAR.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, multiplied into the sample weights.
    hash_bits : int or None, default None
        Columns share 2^hash_bits weights by the hash of their number, however many there are; `predict` then
        takes X of any number of columns, too.
    max_iter : int or inf, default 1000
        Passes over the data: none is begun at or past this many, but at least one is made. The look at the
        start of a warm start is not counted.
    max_seconds : float or None, default None
        Likewise in seconds. Compiling kernels, at the first fit on a machine, does not count.
    warm_start : bool, default False
        Start from the coefficients of the last fit.
    random_state : int, RandomState or None, default None
        Seed of the random order; None is seed 0. The same seed gives the same bits.
    n_jobs : int or None, default None
        Threads for passes over all examples; None uses up to all cores where it pays. The result is the same
        for any number.
    verbose : int, default 0
        1 prints a line to stderr after each check of the gap.
    callbacks : list of callables or None, default None
        Each is called with the trace after each check.

    Attributes
    ----------
    coef_ : array (1, d), or (classes, d);  intercept_ : array (1,), or (classes,);  classes_ : array; float32
        where X is, and then the certificate is of these rounded weights
    n_iter_ : array (1,), passes used
    certificate_ : Certificate with primal, dual, gap, relative_gap, status; str() of it is a sentence
    trace_ : Trace, a row per check

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from fenchel import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(C=0.1).fit(X, y)
    >>> model.certificate_.converged
    True
    """

    loss = "log"

    def __init__(
        self,
        C=1.0,
        *,
        l1_ratio=0.0,
        solver="auto",
        tol=1e-3,
        fit_intercept=True,
        intercept_scaling=None,
        class_weight=None,
        hash_bits=None,
        max_iter=1000,
        max_seconds=None,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        verbose=0,
        callbacks=None,
    ):
        super().__init__(
            C,
            solver=solver,
            tol=tol,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            class_weight=class_weight,
            hash_bits=hash_bits,
            max_iter=max_iter,
            max_seconds=max_seconds,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            callbacks=callbacks,
        )
        self.l1_ratio = l1_ratio

    def _remember(self, result, problem=None):
        super()._remember(result, problem)
        self.n_iter_ = np.array([self.n_iter_], np.int32)  # as scikit-learn has it

    def _from_file(self, arrays, facts):
        super()._from_file(arrays, facts)
        self.n_iter_ = np.array([self.n_iter_], np.int32)

    def _constants(self):
        return {"C": self.C, "l1_ratio": self.l1_ratio} if self.l1_ratio else {"C": self.C}

    def sparsify(self):
        """Keep coef_ as a SciPy matrix of its non-zeros, as in scikit-learn: less memory where most are 0."""
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self):
        """Keep coef_ as an array again."""
        check_is_fitted(self)
        self.coef_ = dense(self.coef_)
        return self

    def predict_proba(self, X):
        """Probabilities (n, classes) of classes_."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X):
        """Logarithms of the probabilities, exact at large scores."""
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return log_softmax(scores, axis=1)
        return -np.logaddexp(0.0, np.column_stack([scores, -scores]))


class LinearSVC(LinearClassifier):
    """Linear support vector machine with the hinge loss, with a proof of how far it is from the optimum.

    Minimises  C Σ_i v_i max(0, 1 − y_i (w·x_i + b)) + ½‖w‖².  The intercept b is the weight of a constant
    feature of value `intercept_scaling` (default 1) and penalised, as in scikit-learn's LinearSVC. Of more
    than two classes the loss is Crammer and Singer's, max_k (w_k·x_i + [k ≠ y_i]) − w_y·x_i. Parameters
    and attributes are those of `LogisticRegression`; there are no probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from fenchel import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(C=0.1).fit(X / X.max(axis=0), y)
    >>> model.certificate_.converged
    True
    """

    loss = "hinge"
