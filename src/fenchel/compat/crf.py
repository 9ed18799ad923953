"""CRF: the class of sklearn-crfsuite, trained to a proven distance from the optimum.

    from fenchel.compat import CRF  # instead of sklearn_crfsuite

The objective is CRFsuite's, Σ_i loss_i + c1 ‖w‖₁ + c2 ‖w‖², over the weights that CRFsuite would make.
"""

import os
import warnings

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from fenchel.compat.attributes import count_pairs, in_order_of_appearance, read_chain, without_zeros
from fenchel.estimators.base import describe_gap, print_last_row
from fenchel.estimators.chain import ChainCRF
from fenchel.estimators.inputs import TakesSequences
from fenchel.estimators.sequence_labels import label_lists, require_sequences
from fenchel.estimators.settings import EXPECTED, check_settings
from fenchel.features.naming import CRFSUITE
from fenchel.features.sequences import NamedAttributes
from fenchel.io.models import write_model
from fenchel.loop import solve
from fenchel.solvers import make
from fenchel.trace import Status

# Settings of CRFsuite's line search, its own stop, its step sizes, its other algorithms and its helpers.
WITHOUT_MEANING = (
    *("epsilon", "period", "delta", "linesearch", "max_linesearch"),
    *("calibration_eta", "calibration_rate", "calibration_samples"),
    *("calibration_candidates", "calibration_max_trials"),
    *("pa_type", "c", "error_sensitive", "averaging", "variance", "gamma"),
    *("keep_tempfiles", "trainer_cls"),
)
ONLY_LBFGS = {"l2sgd": ("c1", "num_memories"), "ap": ("c1", "c2", "num_memories", "tol")}
REMEDY = {Status.MAX_PASSES: "raise max_iterations or tol", Status.INTERRUPTED: "fit again for a better one"}
WITHOUT_SOLVER = ("pa", "arow")


class CRF(TakesSequences, BaseEstimator):
    """Linear-chain conditional random field, with the arguments of sklearn_crfsuite.CRF.

    Minimises Σ_i loss_i + c1 ‖w‖₁ + c2 ‖w‖².

    Parameters
    ----------
    algorithm : None, "lbfgs", "l2sgd" or "ap"
        The first three name ways to one optimum: the fastest that there is is taken. "l2sgd" leaves c1 out,
        as CRFsuite does; with num_memories it is L-BFGS, or OWL-QN where c1 > 0. "ap" is the averaged
        perceptron, quick and without an objective: its certificate is "none: not an optimum".
    min_freq : float, default 0
        Pairs of attribute and label, and of labels, whose values add up to less in training have no weight.
    all_possible_states, all_possible_transitions : bool, default False
        Whether pairs of attribute and label (of label and next label) that training does not show have one.
    c1, c2 : float, default 0 and 1
    max_iterations : int or inf, default 1000, for "ap" 100
        At most so many passes over the data. Where it was given, to end there is no warning.
    num_memories : int or None
        Pairs that L-BFGS remembers.
    model_filename : str or None
        Where `fit` writes the model as CRFsuite's binary file; one that is there can predict without `fit`.
    tol : float or None
        Stop when the objective is proven to be within this fraction of the optimum. None: 1e-4.
    verbose : bool
        A line to stderr after each check.
    others
        Accepted; a warning names those given that mean nothing here.

    Attributes
    ----------
    chain_ : the fitted ChainCRF, for `explain`, `predict_nbest` and constraints
    classes_, attributes_ : lists, in the order training first shows them; attributes with a weight only
    state_features_ : dict (attribute, label) -> weight; transition_features_ : dict (label, next) -> weight
    num_attributes_, size_ : attributes with a weight, bytes of the model
    certificate_, trace_ : how good the model provably is, and how it was reached

    Examples
    --------
    >>> from fenchel.compat import CRF
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> crf = CRF(c1=0.0, c2=0.01).fit(X, [["D", "N"], ["D", "N"]])
    >>> crf.predict([[{"word": "a"}, {"word": "cat"}]]).tolist()
    [['D', 'N']]
    """

    def __init__(
        self,
        algorithm=None,
        min_freq=None,
        all_possible_states=None,
        all_possible_transitions=None,
        c1=None,
        c2=None,
        max_iterations=None,
        num_memories=None,
        epsilon=None,
        period=None,
        delta=None,
        linesearch=None,
        max_linesearch=None,
        calibration_eta=None,
        calibration_rate=None,
        calibration_samples=None,
        calibration_candidates=None,
        calibration_max_trials=None,
        pa_type=None,
        c=None,
        error_sensitive=None,
        averaging=None,
        variance=None,
        gamma=None,
        verbose=False,
        model_filename=None,
        keep_tempfiles=False,
        trainer_cls=None,
        tol=None,
    ):
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.variance = variance
        self.gamma = gamma
        self.verbose = verbose
        self.model_filename = model_filename
        self.keep_tempfiles = keep_tempfiles
        self.trainer_cls = trainer_cls
        self.tol = tol

    # ---- training

    def fit(self, X, y, X_dev=None, y_dev=None):
        """Fit to sequences of tokens and their labels; accuracy on X_dev, y_dev is noted in the trace.

        A token is a dict or a list of names. {"k": "v"} is the attribute "k:v" of value 1; {"k": number or
        bool} is "k" of that value; dicts, lists and sets within put their key and ":" before each of their
        own; a list holds names of value 1.
        """
        self._check()
        if (X_dev is None) != (y_dev is None):
            raise ValueError("give both of X_dev and y_dev, or neither")
        chain, source = ChainCRF(), NamedAttributes(naming=CRFSUITE)
        data = in_order_of_appearance(chain.encode_training(_sequences(X), y, source=source))
        kept, data = self._weights(data), without_zeros(data)
        problem = chain.problem(data, observed=kept, **self._constants())
        chain.set_weights(data, np.zeros(problem.dim))
        result = solve(
            problem,
            self._solver(),
            tol=self._tolerance(),
            max_passes=self._passes(),
            callbacks=[print_last_row] if self.verbose else [],
            validate=None if X_dev is None else _accuracy_on(chain, data, X_dev, y_dev),
        )
        self.chain_ = chain.set_result(data, result)
        if self.model_filename is not None:
            self.to_crfsuite(self.model_filename)
        self._warn(result)
        return self

    def _check(self):
        check_settings(self, may_be_none=EXPECTED)
        if self.algorithm in WITHOUT_SOLVER:
            raise ValueError(
                f"algorithm={self.algorithm!r} is not here: it minimises no objective whose optimum could be "
                f"certified; use 'lbfgs' or 'l2sgd', 'ap' for speed, or for a margin "
                f"fenchel.ChainCRF(loss='hinge')"
            )
        if self.algorithm not in (None, "lbfgs", "l2sgd", "ap"):
            raise ValueError(f"unknown algorithm {self.algorithm!r}; there are 'lbfgs', 'l2sgd' and 'ap'")
        names = WITHOUT_MEANING + ONLY_LBFGS.get(self.algorithm, ())
        given = [name for name in names if getattr(self, name) not in (None, False, 0)]
        if given:
            warnings.warn(f"CRF ignores {', '.join(given)}: without meaning here", stacklevel=3)

    def _constants(self):
        """By the names of `fenchel.constants`."""
        if self.algorithm == "ap":
            return {"c1": 0.0, "c2": 0.0}
        c1 = 0.0 if self.c1 is None or self.algorithm == "l2sgd" else self.c1
        return {"c1": c1, "c2": 1.0 if self.c2 is None else self.c2}

    def _tolerance(self):
        return 1e-4 if self.tol is None else self.tol

    def _solver(self):
        if self.algorithm == "ap":
            return "perceptron"
        return "auto" if self.num_memories is None else make("lbfgs", memory=self.num_memories)

    def _passes(self):
        """At most so many, CRFsuite's where it says so."""
        if self.max_iterations is None:
            return 100 if self.algorithm == "ap" else 1000
        return self.max_iterations

    def _weights(self, data):
        """(d,) bool, the weights that CRFsuite would make: of pairs seen or all, of values that add up."""
        least = 0.0 if self.min_freq is None else self.min_freq
        states, moves = count_pairs(data)
        states = states.at_least(least, self.all_possible_states)
        return np.concatenate([states, moves.at_least(least, self.all_possible_transitions)])

    def _warn(self, result):
        asked_for = result.status is Status.MAX_PASSES and self.max_iterations is not None
        if result.status is Status.CONVERGED or asked_for or self.algorithm == "ap":
            return
        remedy = REMEDY.get(result.status, "raise tol")
        warnings.warn(
            f"CRF {result.status.value} at {result.certificate.passes:g} passes with "
            f"{describe_gap(result.certificate, self._tolerance())}; {remedy}",
            ConvergenceWarning,
            stacklevel=3,
        )

    # ---- prediction

    def predict(self, X) -> np.ndarray:
        """(n,) of objects: the labels of each sequence, as lists."""
        labels = self._fitted().predict(_sequences(X))
        return np.fromiter(labels, object, len(labels))

    def predict_single(self, xseq) -> list:
        """The labels of one sequence."""
        return self.predict([xseq])[0]

    def predict_marginals(self, X) -> list:
        """For each sequence a list that holds, for each token, a dict label -> probability."""
        labels = self.classes_
        return [
            [dict(zip(labels, row, strict=True)) for row in marginals.tolist()]
            for marginals in self._fitted().predict_marginals(_sequences(X))
        ]

    def predict_marginals_single(self, xseq) -> list:
        """The dicts label -> probability of one sequence."""
        return self.predict_marginals([xseq])[0]

    def log_probability(self, X, y) -> np.ndarray:
        """(n,) log p(y | x) of given labels."""
        return self._fitted().log_probability(_sequences(X), y)

    def score(self, X, y) -> float:
        """The fraction of tokens labelled right."""
        return self._fitted().score(_sequences(X), y)

    # ---- files

    def save(self, path) -> None:
        """Write the fitted model to a file that `fenchel.load` reads; nothing in it can be executed."""
        settings, facts, arrays = self._fitted().to_file()
        write_model(path, type(self).__name__, self._plain_settings(), facts | {"chain": settings}, arrays)

    def _plain_settings(self):
        """Arguments as JSON has them; a class of one's own, as trainer_cls, cannot be in a file."""
        settings = self.get_params(deep=False) | {"trainer_cls": None}
        if self.model_filename is not None:
            settings["model_filename"] = os.fspath(self.model_filename)
        return {name: v.item() if isinstance(v, np.generic) else v for name, v in settings.items()}

    @classmethod
    def from_file(cls, settings, facts, arrays):
        """The fitted model from the parts of a model file."""
        wrong = [name for name, value in settings.items() if isinstance(value, list | dict)]
        if wrong:
            raise ValueError(f"{wrong[0]} is {settings[wrong[0]]!r}")
        model = cls(**settings)
        check_settings(model, may_be_none=EXPECTED)
        model.chain_ = ChainCRF.from_file(facts["chain"], facts, arrays)
        if facts["source"].get("function"):
            raise ValueError("a CRF has no template that is a function")
        return model

    def to_crfsuite(self, path) -> None:
        """Write the model as CRFsuite's binary file, which python-crfsuite's Tagger opens."""
        self._fitted().to_crfsuite(path)

    @classmethod
    def from_crfsuite(cls, path):
        """The model of CRFsuite's binary file: it predicts, but nothing is proven of it."""
        model = cls()
        model.chain_ = read_chain(path)
        return model

    # ---- what was learnt

    def _fitted(self) -> ChainCRF:
        if not hasattr(self, "chain_") and self.model_filename and os.path.exists(self.model_filename):
            self.chain_ = read_chain(self.model_filename)
        check_is_fitted(self, "chain_")
        return self.chain_

    @property
    def classes_(self) -> list:
        return self._fitted().classes_.tolist()

    @property
    def attributes_(self) -> list:
        used = self._fitted().coef_.any(axis=0)
        return [name for name, kept in zip(self.chain_.attribute_names_, used, strict=True) if kept]

    @property
    def num_attributes_(self) -> int:
        return int(self._fitted().coef_.any(axis=0).sum())

    @property
    def state_features_(self) -> dict:
        return _features(self._fitted().coef_.T, self.chain_.attribute_names_, self.classes_)

    @property
    def transition_features_(self) -> dict:
        return _features(self._fitted().transitions_, self.classes_, self.classes_)

    @property
    def size_(self) -> int:
        names = self._fitted().attribute_names_
        return self.chain_.weights_.nbytes + sum(len(name.encode()) for name in names)

    @property
    def certificate_(self):
        return self._fitted().certificate_

    @property
    def trace_(self):
        return self._fitted().trace_

    @property
    def tagger_(self):
        raise AttributeError(
            "there is no tagger_ of CRFsuite here; call predict and predict_marginals, or use chain_"
        )

    @property
    def training_log_(self):
        raise AttributeError(
            "there is no training_log_ of CRFsuite here; trace_ holds the objective and gap of each check"
        )


def _accuracy_on(chain, data, X, y):
    """A function from weights to the fraction of tokens of X_dev that they label right."""
    held_out = chain.encode(_sequences(X, "X_dev"))
    y = label_lists("y_dev", y, np.diff(held_out.starts.astype(np.int64)))
    return lambda w, b: chain.set_weights(data, w).score(held_out, y)


def _features(weights, before, behind):
    """{(row's name, column's name): weight}, where it is not zero."""
    rows, columns = np.nonzero(weights)
    values = weights[rows, columns].tolist()
    pairs = zip(rows.tolist(), columns.tolist(), values, strict=True)
    return {(before[i], behind[j]): value for i, j, value in pairs}


def _sequences(X, name="X"):
    """Lists of tokens; pycrfsuite's ItemSequence, which has no way in but items(), becomes one."""
    require_sequences(X, name)
    return [x.items() if hasattr(x, "items") and not isinstance(x, dict) else x for x in X]
