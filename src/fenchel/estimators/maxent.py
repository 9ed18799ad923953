"""MaxEnt: maximum entropy models of events with named features, crossed with the labels or joint."""

from itertools import pairwise

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fenchel import problems
from fenchel._sparse import as_csr
from fenchel.estimators.base import Trained, classes_to_facts
from fenchel.estimators.encoded import (
    Encoded,
    as_labels,
    as_list,
    encode_events,
    encode_joint,
    events_on_disk,
    listed,
)
from fenchel.estimators.explanation import Explanation, FeatureWeight, heaviest
from fenchel.estimators.inputs import as_numbers, weighted_by_class
from fenchel.estimators.matching import match_names, match_nothing, match_numbers
from fenchel.estimators.proving import norms, proven_candidates, proven_tops, radius_of
from fenchel.estimators.restored import read_classes, read_weights
from fenchel.estimators.settings import check_settings, check_whole
from fenchel.estimators.stored import require_settings
from fenchel.features.hashing import read_names, require_no_counts
from fenchel.io.shards import Shards
from fenchel.losses import LOSSES


def _has_probabilities(model):
    if model.loss != "log":
        raise AttributeError(f"a MaxEnt with loss={model.loss!r} has no probabilities; fit with loss='log'")
    return True


class MaxEnt(ClassifierMixin, Trained):
    """Maximum entropy model of events with named features, with a proof of how far it is from the optimum.

    p(y | x) ∝ exp(Σ_j w_j f_j(x, y)).  Minimises  C Σ_i v_i loss_i + ½‖w‖², or if sigma2 is given
    Σ_i m_i loss_i + ‖w‖²/(2σ²); v_i is the weight of an event, m_i its share of all weight. There is no
    intercept: where one is wanted, give each event a feature of value 1.

    Two layouts of features. `fit` crosses each attribute of an event with each label: there is a weight for
    each pair. `fit_joint` takes any f(x, y): the features of each candidate label of each event.

    Parameters
    ----------
    sigma2 : float or None, default None
        The variance of the Gaussian prior in huang2010's scaling, mean loss + ‖w‖²/(2σ²); C is then ignored.
    C : float, default 1.0
        Inverse regularisation strength, as in LogisticRegression; inf means none.
    loss : "log" or "hinge", default "log"
        hinge makes it a max-margin model (Crammer and Singer's), without probabilities.
    min_count : int, default 1
        A feature that fewer events have is left out.
    hash_bits : int or None, default None
        Instead of names 2^hash_bits columns, which features share by chance: nothing is kept of them.
    observed : bool, default False
        Whether only pairs of attribute and label that were seen have weights; not of a joint model.
    l1_ratio : float, default 0.0
        The share of the L1 norm in the penalty, as in LogisticRegression; goes with C.
    class_weight : dict, "balanced" or None, default None
        Weights of the labels, multiplied into those of events; not of a joint model, nor with soft labels.
    solver, tol, max_iter, max_seconds, warm_start, random_state, n_jobs, verbose, callbacks
        As in LogisticRegression. A warm start keeps the weights of all features and labels it knows by name.

    Attributes
    ----------
    coef_ : array (labels, attributes); of a joint model (1, features)
    classes_ : array of the labels; a joint model has none, as each event brings its own
    vocabulary_ : Vocabulary, the names of the columns of coef_; with hash_bits what hashes them
    layout_ : "crossed" or "joint"
    n_iter_ : int, passes used
    certificate_ : Certificate with primal, dual, gap, relative_gap, status; str() of it is a sentence
    trace_ : Trace, a row per check

    Examples
    --------
    >>> from fenchel import MaxEnt
    >>> events = [{"suffix": "ing", "capital": False}, {"suffix": "son", "capital": True}, ["suffix=ed"]]
    >>> model = MaxEnt(C=10.0).fit(events, ["verb", "name", "verb"])
    >>> model.predict([{"suffix": "ing"}, {"capital": True, "suffix": "never seen"}]).tolist()
    ['verb', 'name']
    """

    def __init__(
        self,
        sigma2=None,
        C=1.0,
        *,
        loss="log",
        min_count=1,
        hash_bits=None,
        observed=False,
        l1_ratio=0.0,
        class_weight=None,
        solver="auto",
        tol=1e-3,
        max_iter=1000,
        max_seconds=None,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        verbose=0,
        callbacks=None,
    ):
        self.sigma2 = sigma2
        self.C = C
        self.loss = loss
        self.min_count = min_count
        self.hash_bits = hash_bits
        self.observed = observed
        self.l1_ratio = l1_ratio
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    # ---- training

    def fit(self, events, y=None, sample_weight=None):
        """Fit the model to events whose features are crossed with the labels; or to `fenchel.Shards` alone.

        Parameters
        ----------
        events : iterable of events, read once
            Each a dict name -> number, bool or string ({"tag": "NN"} is the feature "tag=NN"), or a list of
            names, each of value 1 (a repeated one adds up).
        y : list
            Of each event the label, anything hashable; or, with the log loss, a dict label -> probability.
        sample_weight : array (n,) or None
            How much each event counts.
        """
        return self.fit_encoded(self.encode_training(events, y, sample_weight))

    def fit_joint(self, candidates, y, sample_weight=None):
        """Fit the model to events each of whose candidate labels has features of its own.

        Parameters
        ----------
        candidates : iterable of events, read once
            Each a dict label -> features, the features as in `fit`; or a list of features, whose labels are
            then 0, 1, 2, ...
        y, sample_weight : as in `fit`; a label must be one of the event's candidates.
        """
        return self.fit_encoded(self.encode_training(candidates, y, sample_weight, joint=True))

    def encode_training(self, events, y=None, sample_weight=None, *, joint=False) -> Encoded:
        """Events as numbers, as `fit` takes them or, joint, as `fit_joint` does; learns the features."""
        check_settings(self)
        if isinstance(events, Shards) and not joint:
            return self._encode_stored(events, y, sample_weight)
        require_no_counts(self.min_count, self.hash_bits)
        encode = encode_joint if joint else encode_events
        return encode(events, y, sample_weight, min_count=self.min_count, hash_bits=self.hash_bits)

    def _encode_stored(self, shards, y, sample_weight):
        """The events of shards, whose features were chosen when they were written."""
        if y is not None:
            raise ValueError("shards hold their labels; call fit(shards) without y")
        data, least = events_on_disk(shards, sample_weight), shards.fact("min_count", int)
        if self.min_count not in (1, least):
            raise ValueError(f"the shards were written with min_count={least}; write them anew for another")
        require_settings(self, shards, ("hash_bits",))
        return data

    def problem(self, data: Encoded):
        """What this model minimises on the events."""
        check_settings(self)
        self._check(data)
        settings = {"loss": self.loss, "sample_weight": self.weights_of(data), "threads": self.n_jobs}
        settings |= {"C": self.C} if self.sigma2 is None else {"sigma2": self.sigma2}
        settings |= {"l1_ratio": self.l1_ratio} if self.l1_ratio else {}
        if not data.joint:
            X = as_csr(data.rows) if data.disk is None else data.rows
            settings |= {"labels": data.classes.size, "observed": self.observed, "disk": data.disk}
            return problems.flat(X, data.targets, **settings)
        if self.observed:
            raise ValueError("observed has no meaning for candidates, whose features are given; leave it out")
        return problems.joint(as_csr(data.rows), data.candidate_targets, data.starts, **settings)

    def weights_of(self, data):
        """Weights of events times those of their labels; None where all are one."""
        if self.class_weight is None:
            return data.weight
        if data.joint or data.soft:
            kind = "candidates, each event having its own" if data.joint else "probabilities"
            raise ValueError(f"class_weight has no meaning for labels that are {kind}; give sample_weight")
        return weighted_by_class(self.class_weight, data.classes, data.targets, data.weight)

    def _check(self, data):
        if data.n == 0:
            raise ValueError("there are no events; at least one is needed")
        if len(data.y) != data.n:
            raise ValueError(f"{data.n} events but {len(data.y)} labels in y; they must match")
        if len(data.vocabulary) == 0:
            if self.min_count > 1:
                raise ValueError(f"no feature occurs in min_count={self.min_count} events; lower min_count")
            raise ValueError("no event has a feature; at least one is needed")
        if self.loss in LOSSES and LOSSES[self.loss].hinge and data.soft:
            number = next(i for i, truth in enumerate(data.y) if isinstance(truth, dict))
            raise ValueError(
                f"event {number}: y gives probabilities, but the hinge loss takes one label per event; "
                f"use loss='log'"
            )

    def shared_with(self, origin, data):
        """Features and labels by their names; of candidates the features alone."""
        sizes = len(data.vocabulary), len(origin.vocabulary_)
        if origin.layout_ != _layout(data) or self.hash_bits != origin.hash_bits:
            return {"feature": match_nothing(*sizes)}
        if self.hash_bits is not None:
            features = match_numbers(*sizes)
        else:
            features = match_names(data.vocabulary.names, origin.vocabulary_.names)
        if data.joint:
            return {"feature": features}
        labels = match_names(data.classes.tolist(), origin.classes_.tolist())
        return {"label": labels, "feature": features}

    def _weights_from(self, origin, data, shared):
        features, labels = shared["feature"], shared.get("label", match_numbers(1, 1))
        W = np.zeros((features.total, labels.total))
        W[np.ix_(features.new, labels.new)] = origin.coef_.T[np.ix_(features.old, labels.old)]
        return W.ravel(), 0.0

    def set_weights(self, data: Encoded, w, b=0.0):
        """Make this the model of weights w, as `solve` gives them, of the events' features; there is no b."""
        learnt = {"layout_": _layout(data), "vocabulary_": data.vocabulary}
        learnt["coef_"] = w.reshape(len(data.vocabulary), -1).T
        if data.joint:
            vars(self).pop("classes_", None)
        else:
            learnt["classes_"] = data.classes
        vars(self).update(learnt)  # at once: Ctrl-C finds the old model or the new
        return self

    # ---- prediction

    def encode(self, events, y=(), sample_weight=None) -> Encoded:
        """Events as this model's numbers; features it does not know are left out."""
        check_is_fitted(self)
        if isinstance(events, Encoded):
            return events
        encoder = encode_joint if self.layout_ == "joint" else encode_events
        try:
            return encoder(events, y, sample_weight, vocabulary=self.vocabulary_)
        except TypeError as error:
            wanted = "candidates, as fit_joint" if self.layout_ == "joint" else "features, as fit"
            raise TypeError(f"{error}; the model takes each event's {wanted} did") from None

    def _scores(self, data):
        """(n, K), or of candidates (M,)."""
        scores = as_csr(data.rows) @ self.coef_.T
        return scores.ravel() if data.joint else scores

    def predict(self, events):
        """The label of highest score of each event, (n,); of a joint model, among its candidates."""
        data = self.encode(events)
        scores = self._scores(data)
        if not data.joint:
            return self.classes_[scores.argmax(axis=1)]
        places = data.first_of_each(scores).tolist() if data.n else []
        return as_labels([labels[k] for labels, k in zip(data.candidates, places, strict=True)])

    def proven(self, events) -> np.ndarray:
        """(n,) bool: whether the label that `predict` gives an event is that of the exact optimum.

        True where its lead over every other exceeds r ‖f(x, y) − f(x, y′)‖, r = certificate_.radius: no
        weights so near give another. A lower `tol` proves more.
        """
        data, radius = self.encode(events), radius_of(self)
        scores = self._scores(data)
        if not data.joint:
            return proven_tops(scores, radius * norms(data.rows))
        if data.n == 0:
            return np.empty(0, bool)
        return proven_candidates(data.rows, scores, data.starts, data.first_of_each(scores), radius)

    @available_if(_has_probabilities)
    def predict_log_proba(self, events):
        """Logarithms of `predict_proba`, exact where probabilities underflow."""
        data = self.encode(events)
        scores = self._scores(data)
        if not data.joint:
            return log_softmax(scores, axis=1)
        bounds = data.starts.tolist()
        slices = (scores[a:b] for a, b in pairwise(bounds))
        return [
            dict(zip(labels, log_softmax(s).tolist(), strict=True))
            for labels, s in zip(data.candidates, slices, strict=True)
        ]

    @available_if(_has_probabilities)
    def predict_proba(self, events):
        """Probabilities (n, K) of classes_; of a joint model a list of dicts label -> probability."""
        logarithms = self.predict_log_proba(events)
        if isinstance(logarithms, np.ndarray):
            return np.exp(logarithms)
        return [{label: float(np.exp(p)) for label, p in event.items()} for event in logarithms]

    def score(self, events, y, sample_weight=None):
        """Accuracy; where the truth is soft, the probability it gives to the predicted label."""
        predicted, y = self.predict(events).tolist(), as_list(y)
        if len(y) != len(predicted):
            raise ValueError(f"{len(predicted)} events but {len(y)} labels in y; they must match")
        if not y:
            raise ValueError("there are no events to score; at least one is needed")
        right = [
            truth.get(label, 0.0) if isinstance(truth, dict) else float(truth == label)
            for truth, label in zip(y, predicted, strict=True)
        ]
        weights = None if sample_weight is None else as_numbers("sample_weight", sample_weight)
        return float(np.average(right, weights=weights))

    # ---- looking inside

    def explain(self, event) -> Explanation:
        """Which feature of an event speaks for which label, and how loud: print() shows a table.

        event : one event as `fit` takes it; of a joint model, its candidates as `fit_joint` takes them
        """
        check_is_fitted(self)
        joint = self.layout_ == "joint"
        data = (encode_joint if joint else encode_events)([event])
        if joint:
            rows = ((label, k, 0) for k, label in enumerate(data.candidates[0]))
        else:
            rows = ((label, 0, k) for k, label in enumerate(self.classes_.tolist()))
        shares = {label: self._shares(data.named(row), output) for label, row, output in rows}
        unknown = [name for name in data.vocabulary.names if name not in self.vocabulary_]
        return Explanation.of(shares, unknown, log_loss=self.loss == "log")

    def _shares(self, features, output):
        """(name, value · weight) of the features that the model knows."""
        known = ((name, value, self.vocabulary_.get(name)) for name, value in features)
        return [(name, float(value * self.coef_[output, j])) for name, value, j in known if j >= 0]

    def top_features(self, n=10, label=None) -> list[FeatureWeight]:
        """The n heaviest weights, of one label or of all, as (feature, label, weight), the heaviest first."""
        check_is_fitted(self)
        check_whole("n", n)
        labels = [None] if self.layout_ == "joint" else self.classes_.tolist()
        if label is not None:
            if label not in labels:
                known = f"there are {listed(labels)}" if labels != [None] else "a joint model has none"
                raise ValueError(f"label {label!r} is unknown to the model; {known}")
            labels, weights = [label], self.coef_[[labels.index(label)]]
        else:
            weights = self.coef_
        names, places = self.vocabulary_.names, np.unravel_index(heaviest(weights.ravel(), n), weights.shape)
        found = [
            FeatureWeight(names[j], labels[k], float(weights[k, j])) for k, j in zip(*places, strict=True)
        ]
        return [one for one in found if one.weight]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.dict = False, True
        return tags

    # ---- the model file

    def _to_file(self):
        facts = {"layout": self.layout_}
        if self.layout_ == "crossed":
            facts |= classes_to_facts(self.classes_)
        return {"weights": self.coef_.T, **self.vocabulary_.to_arrays()}, facts

    def _from_file(self, arrays, facts):
        self.layout_ = facts["layout"]
        self.vocabulary_ = read_names(arrays)
        columns = 1
        if self.layout_ == "crossed":
            self.classes_ = read_classes(facts)
            columns = self.classes_.size
        elif self.layout_ != "joint":
            raise ValueError(f"the layout is {self.layout_!r}, expected crossed or joint")
        self.coef_ = read_weights(arrays, "weights", (len(self.vocabulary_), columns)).T


def _layout(data):
    return "joint" if data.joint else "crossed"
