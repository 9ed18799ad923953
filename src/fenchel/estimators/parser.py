"""DependencyParser: heads of words. Conditional random fields and max-margin models over projective trees."""

from itertools import chain, pairwise

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel import problems
from fenchel._memory import require_memory
from fenchel._threads import for_each_share
from fenchel.estimators.arc_labels import ArcLabels
from fenchel.estimators.base import Trained
from fenchel.estimators.head_explanation import HeadExplanation, explain_head
from fenchel.estimators.matching import Match
from fenchel.estimators.restored import read_weights
from fenchel.estimators.sequence_labels import check_sequence_weights, cut, label_lists
from fenchel.estimators.settings import check_count, check_settings
from fenchel.estimators.stored import refuse_targets, trees_on_disk
from fenchel.estimators.treebank import Treebank, as_heads, as_tokens, usable
from fenchel.features.arcs import PRESETS, ArcFeatures
from fenchel.io.shards import PROGRAM, Shards
from fenchel.structures import tree_decoding
from fenchel.trees import arc_offsets

DECODINGS = ("tree", "mbr")


class DependencyParser(Trained):
    """Heads for the words of sentences, with a proof of how far the model is from the optimum.

    p(tree | sentence) ∝ exp(Σ_m w · f(head of m, m)) over projective trees. Minimises
    C Σ_i v_i loss_i + ½‖w‖² over sentences i of weight v_i. With loss="log" a conditional random field, with
    "hinge" a max-margin model whose margin is the number of wrong heads.

    Parameters
    ----------
    C : float, default 1.0
        Inverse regularisation strength; inf means none. collins2008's constant is 1/C.
    loss : "log" or "hinge", default "log"
    template : "mcdonald"
        The features of an arc: those of McDonald, Crammer and Pereira (2005).
    min_count : int, default 3
        A feature that fewer arcs have is left out.
    observed : bool, default False
        Whether only features of true arcs have weights; else those of all arcs that could be.
    hash_bits : int or None, default None
        Instead of a table of features 2^hash_bits weights, which features share by chance; min_count and
        observed then have no meaning.
    single_root : bool, default True
        Whether only one word of a sentence has the root as its head.
    solver, tol, max_iter, max_seconds, warm_start, random_state, n_jobs, verbose, callbacks
        As in LogisticRegression. A warm start keeps the weights of all features it knows.

    Attributes
    ----------
    coef_ : array (d,); features_ : what they are of, features_.names()
    left_out_ : numbers of the sentences of `fit` whose arcs cross: they are no part of the objective
    labels_ : the model of arc labels, or None
    n_iter_, certificate_, trace_ : as in LogisticRegression

    Examples
    --------
    >>> from fenchel import DependencyParser
    >>> sentences = [[("the", "D"), ("cat", "N"), ("sleeps", "V")], [("dogs", "N"), ("bark", "V")]]
    >>> model = DependencyParser(min_count=1).fit(sentences, [[2, 3, 0], [2, 0]])
    >>> model.predict([[("the", "D"), ("dogs", "N"), ("bark", "V")]])
    [[2, 3, 0]]
    """

    def __init__(
        self,
        C=1.0,
        *,
        loss="log",
        template="mcdonald",
        min_count=3,
        observed=False,
        hash_bits=None,
        single_root=True,
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
        self.loss = loss
        self.template = template
        self.min_count = min_count
        self.observed = observed
        self.hash_bits = hash_bits
        self.single_root = single_root
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

    def fit(self, sentences, heads=None, labels=None, sample_weight=None):
        """Fit the model to sentences with the heads of their words; or to `fenchel.Shards` alone.

        Parameters
        ----------
        sentences : list of sentences, each a list of (word, tag); or `Tokens`, as the readers give them
        heads : for each sentence the head of each word: 0 for the root, else a word from 1
        labels : for each sentence a list of the labels of these arcs, or None
        sample_weight : array (n,) or None
            How much each sentence counts.
        """
        return self.fit_encoded(self.encode_training(sentences, heads, labels, sample_weight))

    def encode_training(self, sentences, heads=None, labels=None, sample_weight=None) -> Treebank:
        """Sentences and heads as numbers; learns the features."""
        check_settings(self)
        if isinstance(sentences, Shards):
            refuse_targets(heads, labels)
            return trees_on_disk(self, sentences, sample_weight)
        if self.template not in PRESETS:
            raise ValueError(f"template={self.template!r}; there is {', '.join(map(repr, PRESETS))}")
        tokens = as_tokens(sentences)
        weight = check_sequence_weights(sample_weight, len(tokens))
        heads = as_heads(heads, tokens, self.single_root)
        tokens, flat, codes, classes, weight, crossing = usable(tokens, heads, labels, weight)
        kept = {"min_count": self.min_count, "observed": self.observed, "hash_bits": self.hash_bits}
        features = ArcFeatures.learn(tokens, flat, **kept)
        if features.n_columns == 0:
            raise ValueError(f"no feature is of min_count={self.min_count} arcs; lower min_count")
        rows, true = features.rows(tokens), None if codes is None else features.rows(tokens, flat)
        return Treebank(tokens.starts, flat, rows, features, codes, classes, weight, crossing, true)

    def fit_encoded(self, data, **how):
        """As of all estimators; the model of labels, which comes last, is refused here if it does not fit."""
        require_memory(self._memory_of_labels(data), "the model of labels of arcs", "fit without labels")
        return super().fit_encoded(data, **how)

    def memory_of(self, data: Treebank) -> int:
        return max(super().memory_of(data), PROGRAM + self._memory_of_labels(data))

    def _memory_of_labels(self, data) -> int:
        """Bytes, with the weights of arcs that are there by then."""
        if data.classes is None or self.C in data.models_of_labels:
            return 0
        own = ArcLabels.memory(data.true_rows, data.classes, self.min_count)
        return own + 8 * data.features.n_columns

    def problem(self, data: Treebank):
        """What this model minimises on the sentences."""
        check_settings(self)
        settings = {"loss": self.loss, "single_root": self.single_root, "sample_weight": data.weight}
        settings |= {"threads": self.n_jobs, "C": self.C, "disk": data.disk}
        return problems.projective(data.rows, data.heads, data.starts, **settings)

    def weights_of(self, data):
        """How much each sentence counts; None where all count one."""
        return data.weight

    def shared_with(self, origin, data):
        """Features by their names; of hashed ones all, or none where words and tags have other numbers."""
        places = data.features.places_in(origin.features_)
        return {"feature": Match(*places, data.features.n_columns, origin.features_.n_columns)}

    def _weights_from(self, origin, data, shared):
        features = shared["feature"]
        w = np.zeros(features.total)
        w[features.new] = origin.coef_[features.old]
        return w, 0.0

    def set_weights(self, data: Treebank, w, b=0.0):
        """Make this the model of weights w, as `solve` gives them; there is no intercept b.

        Where the data have labels, the model of labels is fitted here.
        """
        labels = self._labels_of(data) if data.codes is not None else None
        learnt = {"coef_": w, "features_": data.features, "left_out_": data.left_out, "labels_": labels}
        vars(self).update(learnt)  # at once: Ctrl-C finds the old or the new
        return self

    def _labels_of(self, data) -> ArcLabels:
        if self.C not in data.models_of_labels:
            settings = {"C": self.C, "threads": self.n_jobs}
            run = {"solver": "auto", "tol": self.tol, "max_passes": self.max_iter}
            fitted = ArcLabels.fit(data.true_rows, data.codes, data.classes, self.min_count, settings, **run)
            data.models_of_labels[self.C] = fitted
        return data.models_of_labels[self.C]

    # ---- prediction

    def encode(self, sentences):
        """Sentences as this model takes them."""
        check_is_fitted(self, "coef_")
        return as_tokens(sentences)

    def _scores(self, tokens):
        return self.features_.scores(tokens, self.coef_, self.n_jobs)

    def predict(self, sentences, *, decoding=None) -> list:
        """The heads of the words of each sentence, as lists: 0 for the root, else a word from 1.

        decoding : "mbr" for the tree with the most right heads to be expected (minimum Bayes risk; log loss
            only, and its default), "tree" for the likeliest tree
        """
        if decoding not in (None, *DECODINGS):
            raise ValueError(f"decoding={decoding!r}; there are {', '.join(map(repr, DECODINGS))}")
        tokens = self.encode(sentences)
        return cut(self._heads(tokens, decoding), tokens.starts)

    def _heads(self, tokens, decoding=None) -> np.ndarray:
        """(N,) the heads that `predict` finds."""
        by_marginals = self.loss == "log" if decoding is None else decoding == "mbr"
        return self._best(tokens, self._marginals(tokens)[0] if by_marginals else self._scores(tokens))

    def _best(self, tokens, scores) -> np.ndarray:
        """(N,) the heads of the trees of largest score."""
        heads = np.zeros(tokens.n_tokens, np.int64)
        fixed = tokens.starts.astype(np.uint64), arc_offsets(tokens.starts)
        given = scores, bool(self.single_root), heads
        self._share(tokens, lambda a, b: tree_decoding.all_best_trees(*fixed, a, b, *given))
        return heads

    def _share(self, tokens, task):
        lengths = np.diff(tokens.starts).astype(float)
        for_each_share(len(tokens), float((lengths**3).sum()), self.n_jobs, task)

    def _marginals(self, tokens):
        """(M,) marginals of all arcs, and (n,) log Z."""
        self._require_probabilities("probabilities")
        scores = self._scores(tokens)
        mu, levels = np.empty(scores.size), np.empty(len(tokens))
        fixed = tokens.starts.astype(np.uint64), arc_offsets(tokens.starts)
        given = scores, bool(self.single_root), mu, levels
        self._share(tokens, lambda a, b: tree_decoding.all_marginals(*fixed, a, b, *given))
        return mu, levels

    def predict_marginals(self, sentences) -> list:
        """The probability of each head of each word: for each sentence an array (n, n + 1); log loss only.

        Column 0 is the root, column h the word h; a word is never its own head.
        """
        tokens = self.encode(sentences)
        mu, out = self._marginals(tokens)[0], []
        for a, b in pairwise(arc_offsets(tokens.starts).tolist()):
            n = int(np.sqrt(b - a) + 0.5)
            table = np.zeros((n, n + 1))
            table[~np.eye(n, n + 1, 1, dtype=bool)] = mu[a:b]
            out.append(table)
        return out

    def predict_nbest(self, sentences, k: int = 5) -> list:
        """The k best trees of each sentence: a list of (heads, log-probability), best first.

        With the hinge loss the score of the tree takes the place of its log-probability.
        """
        check_count("k", k)
        tokens = self.encode(sentences)
        levels = self._marginals(tokens)[1] if self.loss == "log" else np.zeros(len(tokens))
        bounds, scores = arc_offsets(tokens.starts).tolist(), self._scores(tokens)
        return [self._several(scores[a:b], k, levels[i]) for i, (a, b) in enumerate(pairwise(bounds))]

    def _several(self, scores, k, level):
        n = int(np.sqrt(scores.size) + 0.5)
        if n == 0:
            return [([], 0.0)]
        heads, values = np.zeros((k, n), np.int64), np.empty(k)
        count = tree_decoding.best_trees(n, scores, bool(self.single_root), heads, values)
        return [(heads[r].tolist(), float(values[r] - level)) for r in range(count)]

    def predict_labels(self, sentences, heads=None) -> list:
        """The label of the arc of each word, for these heads or those that `predict` finds."""
        tokens = self.encode(sentences)
        if self.labels_ is None:
            raise ValueError("the model was fitted without labels of arcs; give them to fit")
        if heads is None:
            flat = self._heads(tokens)
        else:
            flat = np.fromiter(chain.from_iterable(as_heads(heads, tokens, False)), np.int64)
        return cut(self.labels_.predict(self.features_.rows(tokens, flat)), tokens.starts)

    def _require_probabilities(self, what):
        if self.loss != "log":
            raise ValueError(f"a DependencyParser with loss={self.loss!r} has no {what}; fit with loss='log'")

    def score(self, sentences, heads, sample_weight=None) -> float:
        """The unlabelled attachment score: the fraction of words whose head is right."""
        tokens = self.encode(sentences)
        predicted = self._heads(tokens)
        truth = label_lists("heads", heads, np.diff(tokens.starts).tolist())
        right = predicted == np.fromiter(chain.from_iterable(truth), np.int64)
        weights = check_sequence_weights(sample_weight, len(tokens))
        weights = np.ones(len(tokens)) if weights is None else weights
        each = np.repeat(weights, np.diff(tokens.starts))
        return float(np.average(right, weights=each)) if each.size else 0.0

    def explain(self, sentence, word: int, head=None, other=None) -> HeadExplanation:
        """Which features speak for a head of a word rather than for another; str() of it is a table.

        word : from 1. head : the one that `predict` finds unless given. other : unless given the one of
            largest score beside it.
        """
        tokens = self.encode([sentence])
        n = tokens.n_tokens
        if not 1 <= word <= n:
            raise ValueError(f"word={word!r}; the sentence has words 1 to {n}")
        scores = self._scores(tokens).reshape(n, n)[word - 1]
        if head is None:
            head = self.predict([sentence])[0][word - 1]
        choices = [h for h in range(n + 1) if h not in (word, head)]
        if other is None:
            other = max(choices, key=lambda h: scores[h - (h > word)]) if choices else head
        for h in (head, other):
            if not 0 <= h <= n or h == word:
                raise ValueError(f"head {h!r} of word {word} must be 0 or another word up to {n}")
        return explain_head(self, tokens, int(word), int(head), int(other))

    # ---- the model file

    def _to_file(self):
        facts, arrays = self.features_.to_file()
        facts = {"features": facts, "left_out": list(self.left_out_)}
        arrays = {"weights": self.coef_} | {f"features.{name}": array for name, array in arrays.items()}
        if self.labels_ is not None:
            facts["labels"], own = self.labels_.to_file()
            arrays |= {f"labels.{name}": array for name, array in own.items()}
        return arrays, facts

    def _from_file(self, arrays, facts):
        def own(prefix):
            return {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}

        self.features_ = ArcFeatures.from_file(facts["features"], own("features."))
        self.left_out_ = [int(i) for i in facts["left_out"]]
        self.coef_ = read_weights(arrays, "weights", (self.features_.n_columns,))
        self.labels_ = None
        if "labels" in facts:
            found = facts["labels"], own("labels."), self.features_.n_columns
            self.labels_ = ArcLabels.from_file(*found)
