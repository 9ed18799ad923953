"""MaxEntTagger: tags the words of sentences one after the other, by maximum entropy and beam search."""

from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel import problems
from fenchel._sparse import Rows, as_csr
from fenchel.estimators.base import Trained, classes_to_facts
from fenchel.estimators.beam import Local, make_beam, search_all
from fenchel.estimators.encoded import as_labels, listed
from fenchel.estimators.explanation import Explanation, FeatureWeight, heaviest
from fenchel.estimators.inputs import TakesSequences
from fenchel.estimators.matching import match_names
from fenchel.estimators.restored import read_array, read_classes, read_weights
from fenchel.estimators.settings import check_count, check_settings, check_whole
from fenchel.features.ratnaparkhi import NEAR, Column, ContextFeatures, learn_features, number_words
from fenchel.features.tokens import Tokens
from fenchel.features.vocabulary import Vocabulary


@dataclass(frozen=True)
class TaggedRows:
    """What a MaxEntTagger is fitted to: of each token its attributes, the true tags before among them.

    rows: (n, A);  codes: (n,) numbers of tags;  dictionary: (frequent words, K) bool, the tags each word had.
    """

    rows: Rows
    codes: np.ndarray
    classes: np.ndarray
    features: ContextFeatures
    dictionary: np.ndarray


class MaxEntTagger(TakesSequences, Trained):
    """Maximum entropy tagger with beam search, with a proof of how far its training is from the optimum.

    p(y_t | x, y_{t−1}, y_{t−2}) ∝ exp(Σ_j w_{j, y_t} f_j),  f_j the attributes of Ratnaparkhi (1996): a
    frequent word, the spelling of a rare one, two words on either side, one and two tags before. Trained with
    the true tags before as a plain maximum entropy model of tokens, C Σ_t loss_t + ½‖w‖², or if sigma2 is
    given mean loss + ‖w‖²/(2σ²); so any solver for several labels trains it. huang2010, section 5.1.

    Parameters
    ----------
    sigma2, C : as in MaxEnt
    beam : int, default 5
        How many beginnings of a tag sequence the search keeps from word to word.
    rare : int, default 5
        A word seen less often in training is rare: known by its spelling.
    min_count : int, default 1
        An attribute that fewer tokens have is left out; frequent words stay.
    columns : int, default 0
        How many columns beside the word are looked at, such as parts of speech for a chunker: the value of
        each at the token and at two tokens on either side. X then holds tuples (word, value, ...).
    tag_dictionary : bool, default True
        A frequent word takes only tags it had in training.
    observed : bool, default False
        Whether only pairs of attribute and tag that were seen have weights, as in OpenNLP.
    solver, tol, max_iter, max_seconds, warm_start, random_state, n_jobs, verbose, callbacks
        As in LogisticRegression. A warm start keeps the weights of all attributes and tags it knows by name.

    Attributes
    ----------
    coef_ : array (tags, attributes)
    classes_ : array of the tags, sorted
    attribute_names_ : list of the names of the columns of coef_
    features_ : ContextFeatures, which attribute is which column of coef_
    n_iter_ : int, passes used
    certificate_ : Certificate with primal, dual, gap, relative_gap, status; str() of it is a sentence
    trace_ : Trace, a row per check

    Examples
    --------
    >>> from fenchel import MaxEntTagger
    >>> X = [["the", "dog", "barks"], ["a", "cat", "sleeps"]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> MaxEntTagger(rare=1).fit(X, y).predict([["the", "cat", "barks"]])
    [['DET', 'NOUN', 'VERB']]
    """

    def __init__(
        self,
        sigma2=None,
        C=1.0,
        *,
        beam=5,
        rare=5,
        min_count=1,
        columns=0,
        tag_dictionary=True,
        observed=False,
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
        self.beam = beam
        self.rare = rare
        self.min_count = min_count
        self.columns = columns
        self.tag_dictionary = tag_dictionary
        self.observed = observed
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

    def fit(self, X, y):
        """Fit the tagger.

        Parameters
        ----------
        X : list of sentences, each a list of words; or `Tokens` as `fenchel.io.columns` reads them, whose
            first column is the word; with `columns` lists of tuples instead of words
        y : list of as many lists of tags, a string for each word; or `Tokens` of one column
        """
        return self.fit_encoded(self.encode_training(X, y))

    def encode_training(self, X, y) -> TaggedRows:
        """Tagged sentences as numbers; learns the attributes and tags."""
        check_settings(self)
        text, tagged = self._texts(*read_tagged(X, y, self.columns))
        if text.word.size == 0:
            raise ValueError("there are no words in X; at least one is needed")
        classes, codes = _sorted_tags(tagged)
        features = learn_features(text, codes, classes.size, self.rare, self.min_count)
        if features.size == 0:
            raise ValueError(f"no attribute occurs min_count={self.min_count} times; lower min_count")
        tokens = features.tokens(text)
        had = np.zeros((features.n_frequent + 1, classes.size), bool)
        had[tokens.frequent[tokens.word], codes] = True  # the rare ones, −1, go to the last row
        return TaggedRows(features.rows(tokens, codes), codes, classes, features, had[:-1])

    def _texts(self, sentences, tags):
        return _number("X", sentences, self.columns), _number("y", tags)

    def problem(self, data: TaggedRows):
        """What this model minimises: an example per token."""
        check_settings(self)
        constant = {"C": self.C} if self.sigma2 is None else {"sigma2": self.sigma2}
        settings = {"labels": data.classes.size, "observed": self.observed, "threads": self.n_jobs}
        return problems.flat(as_csr(data.rows), data.codes, **settings, **constant)

    def shared_with(self, origin, data):
        """Attributes and tags by their names."""
        tags = data.classes.tolist()
        return {
            "tag": match_names(tags, origin.classes_.tolist()),
            "attribute": match_names(data.features.names(tags), origin.attribute_names_),
        }

    def _weights_from(self, origin, data, shared):
        tags, attributes = shared.values()
        W = np.zeros((attributes.total, tags.total))
        W[np.ix_(attributes.new, tags.new)] = origin.coef_.T[np.ix_(attributes.old, tags.old)]
        return W.ravel(), 0.0

    def set_weights(self, data: TaggedRows, w, b=0.0):
        """Make this the model of weights w, as `solve` gives them; there is no intercept b."""
        learnt = {"features_": data.features, "classes_": data.classes, "_dictionary": data.dictionary}
        learnt["coef_"] = w.reshape(data.features.size, data.classes.size).T
        vars(self).update(learnt)  # at once: Ctrl-C finds the old model or the new
        return self

    # ---- prediction

    def predict(self, X) -> list[list[str]]:
        """The tags of each sentence."""
        starts, tags, _ = self._search(X, 1)
        return [tags[0][a:b] for a, b in pairwise(starts)]

    def predict_nbest(self, X, k: int) -> list[list[tuple[list[str], float]]]:
        """For each sentence its k most probable tag sequences, the best first, as (tags, log-probability).

        The search is by a beam of at least k; there are fewer where a sentence has fewer sequences.
        """
        check_count("k", k)
        starts, tags, log_p = self._search(X, k)
        return [
            [(tags[r][a:b], p) for r, p in enumerate(of) if p > -np.inf]
            for (a, b), of in zip(pairwise(starts), log_p.tolist(), strict=True)
        ]

    def _search(self, X, best):
        """Where sentences start, the tags of all words for each rank, and log_p (sentences, best)."""
        check_is_fitted(self)
        check_count("beam", self.beam)
        columns = len(self.features_.further)
        tokens = self.features_.tokens(_number("X", read_sentences("X", X, columns), columns))
        longest = int(np.diff(tokens.starts).max(initial=1))
        beam = make_beam(max(longest, 1), self.classes_.size, max(self.beam, best))
        codes, log_p = np.zeros((best, tokens.word.size), np.int32), np.empty((tokens.starts.size - 1, best))
        search_all(tokens, self._local(), beam, best, codes, log_p)
        return tokens.starts.tolist(), self.classes_.astype(object)[codes].tolist(), log_p

    def _local(self):
        """What the search knows of the model."""
        allowed = np.ones((self.features_.n_frequent + 1, self.classes_.size), bool)
        if self.tag_dictionary:
            allowed[:-1] = self._dictionary
        features = self.features_
        return Local(np.ascontiguousarray(self.coef_.T), features.previous, features.pair, allowed)

    def score(self, X, y) -> float:
        """The fraction of words tagged right."""
        sentences, truth = read_tagged(X, y, len(self.features_.further))
        pairs = zip(chain.from_iterable(self.predict(sentences)), chain.from_iterable(truth), strict=True)
        right = [predicted == true for predicted, true in pairs]
        if not right:
            raise ValueError("there are no words to score; at least one is needed")
        return sum(right) / len(right)

    # ---- looking inside

    def explain(self, words, position: int) -> Explanation:
        """Which attribute of a word speaks for which tag, given the tags predicted before it.

        words : one sentence;  position : of the word, from 0
        """
        tags = self.predict([words])[0]
        check_whole("position", position)
        if not -len(tags) <= position < len(tags):
            raise ValueError(f"position {position} is outside of the sentence, which has {len(tags)} words")
        text = _number("words", [list(words)], len(self.features_.further))
        t, classes = position % len(tags), self.classes_.tolist()
        codes = np.array([classes.index(tag) for tag in tags])
        columns = as_csr(self.features_.rows(self.features_.tokens(text), codes))[t].indices
        names = self.attribute_names_
        shares = {
            tag: [(names[j], float(w[j])) for j in columns]
            for tag, w in zip(classes, self.coef_, strict=True)
        }
        names_of_words = text.words.names
        near = [names_of_words[v] for v in text.word[max(t - 2, 0) : t + 3]]
        return Explanation.of(shares, [w for w in near if w not in self.features_.words], log_loss=True)

    def top_features(self, n=10, label=None) -> list[FeatureWeight]:
        """The n heaviest weights, of one tag or of all, as (feature, label, weight), the heaviest first."""
        check_is_fitted(self)
        check_whole("n", n)
        labels, weights = self.classes_.tolist(), self.coef_
        if label is not None:
            if label not in labels:
                raise ValueError(f"tag {label!r} is unknown to the model; there are {listed(labels)}")
            labels, weights = [label], weights[[labels.index(label)]]
        names, places = self.attribute_names_, np.unravel_index(heaviest(weights.ravel(), n), weights.shape)
        found = [
            FeatureWeight(names[j], labels[k], float(weights[k, j])) for k, j in zip(*places, strict=True)
        ]
        return [one for one in found if one.weight]

    @property
    def attribute_names_(self) -> list:
        check_is_fitted(self, "features_")
        return self.features_.names(self.classes_.tolist())

    # ---- the model file

    def _to_file(self):
        features = self.features_
        arrays = {"weights": self.coef_.T, "dictionary": self._dictionary}
        arrays |= {name: getattr(features, name) for name in ("frequent", "around", "previous", "pair")}
        for kind in ("words", "spellings"):
            named = getattr(features, kind).to_arrays()
            arrays |= {f"{kind}_{part}": array for part, array in named.items()}
        for k, column in enumerate(features.further):
            named = column.values.to_arrays() | {"near": column.near}
            arrays |= {f"column{k}_{part}": array for part, array in named.items()}
        return arrays, classes_to_facts(self.classes_)

    def _from_file(self, arrays, facts):
        words, spellings = (
            Vocabulary.from_arrays(arrays[f"{kind}_text"], arrays[f"{kind}_offsets"])
            for kind in ("words", "spellings")
        )
        self.classes_ = read_classes(facts)
        V, K = len(words), self.classes_.size
        shapes = {"frequent": (V,), "around": (4, V + 1), "previous": (K + 1,), "pair": (K + 1, K + 1)}
        tables = {name: read_array(arrays, name, np.int32, shape) for name, shape in shapes.items()}
        further = sum(name.endswith("_near") for name in arrays)
        columns = tuple(self._column(arrays, k) for k in range(further))
        self.features_ = ContextFeatures(words=words, spellings=spellings, **tables, further=columns)
        self.features_.check()
        self.coef_ = read_weights(arrays, "weights", (self.features_.size, K)).T
        self._dictionary = read_array(arrays, "dictionary", np.bool_, (self.features_.n_frequent, K))
        if not self._dictionary.any(axis=1).all():
            raise ValueError("the dictionary has a word without a tag")

    def _column(self, arrays, k) -> Column:
        values = Vocabulary.from_arrays(arrays[f"column{k}_text"], arrays[f"column{k}_offsets"])
        shape = len(NEAR), len(values) + 1
        return Column(values, read_array(arrays, f"column{k}_near", np.int32, shape))


# ---- reading what the user gives


def read_sentences(name: str, X, columns: int = 0) -> list[list]:
    """Sentences as lists of words, or of tuples that hold `columns` values more; TypeError if one is none."""
    if isinstance(X, Tokens) and columns > 0:
        return list(X.sentences())
    if isinstance(X, Tokens):
        words = X.column(0)
        return [words[a:b] for a, b in pairwise(X.starts.tolist())]
    if isinstance(X, str | bytes | dict) or not hasattr(X, "__iter__"):
        raise TypeError(
            f"{name} is a {type(X).__name__}, expected a list of sentences, each a list of strings"
        )
    sentences = []
    for number, sentence in enumerate(X):
        if isinstance(sentence, str):
            raise TypeError(
                f"{name}, sentence {number}: the string {sentence!r}, expected a list of strings "
                f"(one sentence is a list in a list; a text is cut by split)"
            )
        if isinstance(sentence, bytes | dict) or not hasattr(sentence, "__iter__"):
            kind = type(sentence).__name__
            raise TypeError(f"{name}, sentence {number}: a {kind}, expected a list of strings")
        sentences.append(sentence.tolist() if isinstance(sentence, np.ndarray) else list(sentence))
    return sentences


def read_tagged(X, y, columns: int = 0) -> tuple[list, list]:
    """Sentences and their tags, as lists of equal lengths."""
    sentences, tags = read_sentences("X", X, columns), read_sentences("y", y)
    if len(sentences) != len(tags):
        raise ValueError(f"X has {len(sentences)} sentences but y has {len(tags)}; they must match")
    for number, (words, of) in enumerate(zip(sentences, tags, strict=True)):
        if len(words) != len(of):
            raise ValueError(f"sentence {number}: {len(words)} words but {len(of)} tags; they must match")
    return sentences, tags


def _number(name, sentences, columns: int = 0):
    """The sentences as a Text; TypeError that names the first word that is no string."""
    if columns > 0:
        _require_tuples(name, sentences, columns)
        parts = ([[token[j] for token in one] for one in sentences] for j in range(columns + 1))
        words, *further = (_number(name, part) for part in parts)
        return words._replace(further=tuple(further))
    try:
        return number_words(sentences)
    except TypeError:
        for number, sentence in enumerate(sentences):
            for place, word in enumerate(sentence):
                if not isinstance(word, str):
                    found = f"{word!r} is a {type(word).__name__}"
                    message = f"{name}, sentence {number}, position {place}: {found}, expected a string"
                    raise TypeError(message) from None
        raise


def _require_tuples(name, sentences, columns):
    """ValueError that names the first token without a value for each column."""
    for number, sentence in enumerate(sentences):
        for place, token in enumerate(sentence):
            if not isinstance(token, tuple | list) or len(token) <= columns:
                raise ValueError(
                    f"{name}, sentence {number}, position {place}: {token!r}, expected a tuple of a word and "
                    f"{columns} more, for columns={columns}"
                )


def _sorted_tags(tagged):
    """The tags, sorted, and the number of each token's among them."""
    names = tagged.words.names
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    return as_labels([names[k] for k in order]), rank[tagged.word]
