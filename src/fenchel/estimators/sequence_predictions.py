"""What a fitted chain says of sequences: labels, marginals, n-best labellings, probabilities, reasons."""

from itertools import pairwise

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel._threads import for_each_share
from fenchel.estimators.inputs import TakesSequences
from fenchel.estimators.proving import SLACK, costs_of_changes, radius_of
from fenchel.estimators.sequence_explanation import SequenceExplanation, explain_sequence
from fenchel.estimators.sequence_labels import (
    allowed_labels,
    banned_pairs,
    cut,
    fraction_right,
    known_codes,
    label_lists,
    require_sequences,
)
from fenchel.estimators.settings import check_count
from fenchel.features.boundaries import with_boundaries
from fenchel.features.sequences import Sequences
from fenchel.structures import decoding
from fenchel.structures.chain import Chain
from fenchel.structures.decoding import Unlabelled


class SequencePredictions(TakesSequences):
    """Prediction of ChainCRF, from its classes_, source_ and weights_."""

    def encode(self, X):
        """Sequences as this model's numbers; attributes it does not know are left out."""
        check_is_fitted(self, "weights_")
        if isinstance(X, Sequences):
            return X
        if callable(self.template):  # a model file could not hold it
            self.source_.function = self.template
        require_sequences(X, template=self.template)
        return with_boundaries(self.source_.read(X), *self._added)

    def _unlabelled(self, X, allowed, banned):
        data = self.encode(X)
        pairs = banned_pairs(self.banned, self.classes_)
        more = banned_pairs(banned, self.classes_)
        pairs = more if pairs is None else pairs if more is None else pairs | more
        edges, labels = data.edges.n_columns, self.classes_.tolist()
        structure = Chain(self.classes_.size, self._table, edges, unrolled=edges > 0, banned=pairs)
        return Unlabelled(
            layout=structure.tables(data, self.weights_.size),
            w=self.weights_,
            banned=structure.banned_pairs,
            allowed=allowed_labels(allowed, data.starts, [{c: k for k, c in enumerate(labels)}]),
        )

    def predict(self, X, *, allowed=None, banned=None) -> list:
        """The labels of each sequence, as lists.

        allowed : for each sequence None or a list that holds, for each token, None (any label), a label that
            is known already, or a list of labels to choose from
        banned : list of (label, label) that must not follow each other, beside those of training
        """
        data = self._unlabelled(X, allowed, banned)
        return cut(self.classes_[self._best(data)], data.layout.starts)

    def _best(self, data):
        """(N,) codes of the best labels."""
        codes = np.empty(data.layout.rows.shape[0], np.int64)
        self._decode(data, lambda start, stop: decoding.best_labels(data, start, stop, codes))
        return codes

    def proven(self, X) -> np.ndarray:
        """(n,) bool: whether all labels that `predict` gives a sequence are those of the exact optimum.

        True where their score is ahead of that of every other labelling y′ by more than
        r ‖F(x, y) − F(x, y′)‖, r = certificate_.radius: no weights so near give others. A lower `tol` proves
        more.
        """
        radius, data = radius_of(self), self._unlabelled(X, None, None)
        labels, ahead = self._best(data), np.empty(data.layout.starts.size - 1)
        costs = costs_of_changes(data.layout, radius)

        def part(start, stop):
            decoding.leads(data, start, stop, labels, *costs, ahead)
            return -1

        self._decode(data, part)
        scale = np.abs(self.weights_).max(initial=0.0) * (1.0 + np.diff(data.layout.starts))
        return ahead > SLACK * (1.0 + scale)

    def _decode(self, data, task):
        n, work = data.layout.starts.size - 1, data.layout.rows.nnz * data.layout.labels
        stuck = max(for_each_share(n, work, self.n_jobs, task))
        if stuck >= 0:
            raise ValueError(f"sequence {stuck}: no labels satisfy the constraints; allow more labels there")

    def predict_marginals(self, X, *, allowed=None, banned=None) -> list:
        """The probability of each label at each token: for each sequence an array (T, K); log loss only."""
        self._require_probabilities("marginals")
        data = self._unlabelled(X, allowed, banned)
        mu, _ = self._marginals_and_levels(data)
        return [mu[a:b] for a, b in pairwise(data.layout.starts.astype(np.int64))]

    def _marginals_and_levels(self, data):
        """(N, K) the marginals of labels, and (n,) log Z."""
        layout = data.layout
        mu, levels = np.empty((layout.rows.shape[0], layout.labels)), np.empty(layout.starts.size - 1)
        self._decode(data, lambda start, stop: decoding.node_marginals(data, start, stop, mu, levels))
        return mu, levels

    def log_probability(self, X, y) -> np.ndarray:
        """(n,) log p(y_i | x_i) of given labels, −inf where a banned pair is among them; log loss only."""
        self._require_probabilities("probabilities")
        data = self._unlabelled(X, None, None)
        y = label_lists("y", y, np.diff(data.layout.starts.astype(np.int64)))
        codes, K = known_codes(y, self.classes_), self.classes_.size
        only = np.zeros(codes.size * K, np.uint8)
        only[np.arange(codes.size) * K + codes] = 1
        _, levels = self._marginals_and_levels(data)
        return self._levels(data._replace(allowed=only)) - levels

    def _levels(self, data):
        """(n,) log Z, −inf where no labels satisfy the constraints."""
        N, n = data.layout.rows.shape[0], data.layout.starts.size - 1
        mu, levels, at = np.empty((N, data.layout.labels)), np.empty(n), 0
        while 0 <= at < n:  # the kernel stops at such a sequence
            stuck = decoding.node_marginals(data, at, n, mu, levels)
            at = stuck + 1 if stuck >= 0 else n
        return levels

    def predict_nbest(self, X, k: int = 5, *, allowed=None, banned=None) -> list:
        """The k best labellings of each sequence: a list of (labels, log-probability), best first.

        With the hinge loss the score of the labels takes the place of their log-probability.
        """
        check_count("k", k)
        data = self._unlabelled(X, allowed, banned)
        if self.loss == "log":
            _, levels = self._marginals_and_levels(data)
        else:
            levels = np.zeros(data.layout.starts.size - 1)
        return [self._several(data, i, k, levels[i]) for i in range(levels.size)]

    def _several(self, data, i, k, level):
        T = int(data.layout.starts[i + 1] - data.layout.starts[i])
        if T == 0:
            return [([], 0.0)]
        labels, scores = np.zeros((k, T), np.int64), np.empty(k)
        count = decoding.several_best(data, i, labels, scores)
        return [(self.classes_[labels[r]].tolist(), float(scores[r] - level)) for r in range(count)]

    def _require_probabilities(self, what):
        if self.loss != "log":
            raise ValueError(f"a ChainCRF with loss={self.loss!r} has no {what}; fit with loss='log'")

    def score(self, X, y, sample_weight=None) -> float:
        """The fraction of tokens labelled right."""
        return fraction_right(self.predict(X), y, sample_weight)

    def explain(self, sequence) -> SequenceExplanation:
        """Why each token of one sequence gets its label; str() of the result is a table."""
        return explain_sequence(self, sequence)
