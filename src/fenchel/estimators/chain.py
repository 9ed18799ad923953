"""ChainCRF: taggers. Linear-chain conditional random fields and max-margin Markov networks."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel import problems
from fenchel._mixed import Mixed
from fenchel.constants import CONSTANTS, SPARSE
from fenchel.estimators.base import Trained, classes_to_facts
from fenchel.estimators.exported import export_to_crfsuite
from fenchel.estimators.matching import match_names, match_nothing, match_numbers
from fenchel.estimators.restored import read_classes, read_weights
from fenchel.estimators.sequence_labels import (
    LabelledSequences,
    banned_pairs,
    check_sequence_weights,
    code_labels,
    join_token_weights,
    require_sequences,
)
from fenchel.estimators.sequence_predictions import SequencePredictions
from fenchel.estimators.settings import check_settings
from fenchel.estimators.stored import refuse_targets, sequences_on_disk
from fenchel.features.boundaries import boundary_names, with_boundaries
from fenchel.features.hashing import require_no_counts
from fenchel.features.sequences import SOURCES, source_for
from fenchel.io.shards import Shards


class ChainCRF(SequencePredictions, Trained):
    """Labels for the tokens of sequences, with a proof of how far the model is from the optimum.

    p(y | x) ∝ exp(Σ_t x_t · W[:, y_t] + Σ_t T[y_{t−1}, y_t]).  Minimises  C Σ_i v_i loss_i + ½‖w‖² over
    sequences i of weight v_i. With loss="log" a conditional random field, with "hinge" a max-margin Markov
    network whose margin is the Hamming distance.

    Parameters
    ----------
    C : float, default 1.0
        Inverse regularisation strength; inf means none.
    c1, c2 : float or None, default None
        Instead of C, CRFsuite's constants: minimises Σ_i v_i loss_i + c1 ‖w‖₁ + c2 ‖w‖². c2 alone is
        C = 1/(2 c2); with c1 > 0, log loss only, weights that do not pay are exactly 0.
    loss : "log" or "hinge", default "log"
    template : None, str, Template or function, default None
        How columns of strings become attributes: the name of a preset ("chunk", "pos", "ner"), a template
        file of CRF++ or Wapiti, or a function (sentence, position) -> dict or list of attributes. None: X
        holds attributes already.
    min_count : int, default 1
        An attribute that fewer tokens have is left out.
    hash_bits : int or None, default None
        Instead of names 2^hash_bits columns, which attributes share by chance: nothing is kept of them.
    observed : bool, default False
        Whether only pairs of attribute and label (and of neighbouring labels) that were seen have weights.
    transitions : bool, default True
        Whether neighbouring labels have weights; a CRF++ template without a B line sets it to False.
    bias, boundaries : bool, default False
        Weights for each label, and for each label in first and in last place.
    banned : list of (label, label) or None
        Pairs of labels that never follow each other, in training and prediction.
    solver, tol, max_iter, max_seconds, warm_start, random_state, n_jobs, verbose, callbacks
        As in LogisticRegression. A warm start keeps the weights of all attributes and labels it knows by
        name, so that training can go on with new data.

    Attributes
    ----------
    classes_ : array (K,) of the labels, sorted
    coef_ : array (K, A); attribute_names_ : list of A names
    transitions_ : array (K, K), from the label of the row to that of the column
    edge_coef_ : array (B, K, K), of attributes crossed with pairs of labels
    n_iter_, certificate_, trace_ : as in LogisticRegression

    Examples
    --------
    >>> from fenchel import ChainCRF
    >>> X = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"], ["barks"]]]
    >>> model = ChainCRF(C=10.0).fit(X, [["D", "N", "V"], ["D", "N", "V"]])
    >>> model.predict([[["a"], ["cat"], ["barks"]]])
    [['D', 'N', 'V']]
    """

    def __init__(
        self,
        C=1.0,
        *,
        c1=None,
        c2=None,
        loss="log",
        template=None,
        min_count=1,
        hash_bits=None,
        observed=False,
        transitions=True,
        bias=False,
        boundaries=False,
        banned=None,
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
        self.C = C
        self.c1 = c1
        self.c2 = c2
        self.loss = loss
        self.template = template
        self.min_count = min_count
        self.hash_bits = hash_bits
        self.observed = observed
        self.transitions = transitions
        self.bias = bias
        self.boundaries = boundaries
        self.banned = banned
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

    def fit(self, X, y=None, sample_weight=None, token_weight=None):
        """Fit the model to labelled sequences; or to `fenchel.Shards` alone.

        Parameters
        ----------
        X : sequences
            Each a list of tokens; a token is a dict name -> number, bool or string ({"tag": "NN"} is the
            attribute "tag=NN"), or a list of names. Or arrays or sparse matrices, a row per token. With a
            template: `Tokens` as `fenchel.io.columns` reads them, or lists of tuples of strings. Or pairs
            (array, list of tokens) of both.
        y : sequences of labels, one per token
        sample_weight : array (n,) or None
            How much each sequence counts.
        token_weight : sequences of numbers or None
            What a wrong label costs, with the hinge loss only.
        """
        return self.fit_encoded(self.encode_training(X, y, sample_weight, token_weight))

    def encode_training(
        self, X, y=None, sample_weight=None, token_weight=None, *, source=None
    ) -> LabelledSequences:
        """Labelled sequences as numbers; learns the attributes and labels.

        source: where attributes come from (`features.sequences`), where X and the template do not say it.
        """
        check_settings(self)
        if isinstance(X, Shards):
            refuse_targets(y, token_weight)
            return sequences_on_disk(self, X, sample_weight)
        require_sequences(X, template=self.template)
        require_no_counts(self.min_count, self.hash_bits)
        source = source_for(X, self.template, self.hash_bits) if source is None else source
        data = with_boundaries(source.learn(X, self.min_count), self.bias, self.boundaries)
        codes, classes = code_labels(y, data.starts)
        if data.rows.n_columns == 0 and data.edges.n_columns == 0:
            raise ValueError(
                "no token has an attribute that counts; lower min_count, or look at the template"
            )
        sample_weight = check_sequence_weights(sample_weight, data.n)
        token_weight = join_token_weights(token_weight, data.starts)
        return LabelledSequences(data, codes, classes, source, sample_weight, token_weight)

    def problem(self, data: LabelledSequences, **changes):
        """What this model minimises on the sequences, less the empty ones.

        changes: arguments of `problems.chain` that take the place of this model's, as c1 and c2 do of C.
        """
        check_settings(self)
        full = data.without_empty()
        settings = dict(
            loss=self.loss,
            labels=data.classes.size,
            edges=full.sequences.edges if full.sequences.edges.n_columns else None,
            transitions=self._has_table(data.source),
            observed=self.observed,
            banned=banned_pairs(self.banned, data.classes),
            sample_weight=full.weight,
            token_weight=full.token_weight,
            threads=self.n_jobs,
            disk=data.disk,
        )
        constant = {} if changes.keys() & (CONSTANTS.keys() | SPARSE.keys()) else self._constants()
        rows, starts = full.sequences.rows, full.sequences.starts
        rows = rows if isinstance(rows, Mixed) or data.disk is not None else rows.matrix
        return problems.chain(rows, full.codes, starts, **(settings | constant | changes))

    def weights_of(self, data):
        """How much each sequence counts; None where all count one."""
        return data.weight

    def _constants(self) -> dict:
        """By the names of `fenchel.constants`."""
        if self.c1 is None and self.c2 is None:
            return {"C": self.C}
        if self.c2 is None:
            raise ValueError(f"c1={self.c1:g} without c2; give both, c2=0 for none (C is not CRFsuite's)")
        if self.C != 1.0:
            raise ValueError(
                f"C={self.C:g} and c2={self.c2:g} are two ways to say the same; give one of them"
            )
        return {"c1": self.c1 or 0.0, "c2": self.c2}

    def _has_table(self, source):
        return bool(self.transitions and source.transitions)

    def shared_with(self, origin, data):
        """Labels, and attributes of tokens and of pairs of labels, by their names."""
        labels = match_names(data.classes.tolist(), origin.classes_.tolist())
        if self.hash_bits != origin.hash_bits:
            sizes = data.sequences.rows.n_columns, data.sequences.edges.n_columns
            nothing = [match_nothing(*some) for some in zip(sizes, origin.sizes_, strict=True)]
        elif self.hash_bits is not None:
            nothing = [match_numbers(data.sequences.rows.n_columns, origin.sizes_[0]), match_nothing(0, 0)]
        else:
            names = data.source.names() + boundary_names(self.bias, self.boundaries)
            pairs = data.source.edge_names(), origin.source_.edge_names()
            nothing = [match_names(names, origin.attribute_names_), match_names(*pairs)]
        return dict(zip(("label", "attribute", "attribute of pairs"), (labels, *nothing), strict=True))

    def _weights_from(self, origin, data, shared):
        labels, nodes, edges = shared.values()
        K, here, there = labels.total, labels.new, labels.old
        W, V = np.zeros((nodes.total, K)), np.zeros((edges.total, K, K))
        T = np.zeros((1 if self._has_table(data.source) else 0, K, K))
        W[np.ix_(nodes.new, here)] = origin.coef_.T[np.ix_(nodes.old, there)]
        V[np.ix_(edges.new, here, here)] = origin.edge_coef_[np.ix_(edges.old, there, there)]
        T[:, here[:, None], here] = origin.transitions_[np.ix_(there, there)]
        return np.concatenate([W.ravel(), V.ravel(), T.ravel()]), 0.0

    def set_weights(self, data: LabelledSequences, w, b=0.0):
        """Make this the model of weights w, as `solve` gives them; there is no intercept b."""
        sizes = data.sequences.rows.n_columns, data.sequences.edges.n_columns
        learnt = {"classes_": data.classes, "source_": data.source, "weights_": w, "sizes_": sizes}
        vars(self).update(learnt | self._layout(data.source))  # at once: Ctrl-C finds the old or the new
        return self

    def _layout(self, source) -> dict:
        """What the weights are of, so that settings changed for the next fit do not touch this model."""
        return {"_added": (bool(self.bias), bool(self.boundaries)), "_table": self._has_table(source)}

    # ---- what was learnt

    @property
    def coef_(self) -> np.ndarray:
        A, K = self.sizes_[0], self.classes_.size
        return self.weights_[: A * K].reshape(A, K).T

    @property
    def edge_coef_(self) -> np.ndarray:
        (A, B), K = self.sizes_, self.classes_.size
        return self.weights_[A * K : A * K + B * K * K].reshape(B, K, K)

    @property
    def transitions_(self) -> np.ndarray:
        K = self.classes_.size
        if not self._table:
            return np.zeros((K, K))
        return self.weights_[-K * K :].reshape(K, K)

    @property
    def attribute_names_(self) -> list:
        check_is_fitted(self, "weights_")
        return self.source_.names() + boundary_names(*self._added)

    # ---- the model file

    def to_crfsuite(self, path) -> None:
        """Write the model as CRFsuite's binary file; python-crfsuite's Tagger then gives the same labels.

        ValueError where the model has what such a file cannot hold: bias, boundaries, attributes of pairs of
        labels, banned transitions, labels that are no strings.
        """
        check_is_fitted(self, "weights_")
        export_to_crfsuite(self, path)

    def _to_file(self):
        facts, arrays = self.source_.to_file()
        facts = {"source": facts, "sizes": list(self.sizes_)} | classes_to_facts(self.classes_)
        return {"weights": self.weights_} | {f"source.{k}": a for k, a in arrays.items()}, facts

    def _from_file(self, arrays, facts):
        self.classes_ = read_classes(facts)
        banned_pairs(self.banned, self.classes_)
        own = {k.removeprefix("source."): a for k, a in arrays.items() if k.startswith("source.")}
        self.source_ = SOURCES[facts["source"]["kind"]].from_file(facts["source"], own)
        vars(self).update(self._layout(self.source_))
        (A, B), K = self.source_.sizes, self.classes_.size
        self.sizes_ = A + len(boundary_names(*self._added)), B
        if facts["sizes"] != list(self.sizes_):
            raise ValueError(f"sizes are {facts['sizes']!r}, expected {list(self.sizes_)}")
        self.weights_ = read_weights(arrays, "weights", (self.sizes_[0] * K + (B + self._table) * K * K,))
