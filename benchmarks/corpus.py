"""A corpus of labelled sentences as the tagging benchmark needs it: columns, numbers, optimum, rival.

P(w) = sum_i loss_i + c2 ||w||^2 with c2 = C2, which is fenchel's C = 1/(2 c2).
"""

import sys
import time
import warnings
from functools import cached_property

import numpy as np

import datasets
from rivals import CRFsuite, attributes_of, looks_of, open_tagger, read_sentences

PRESETS = {"conll2000": "chunk", "ner": "ner", "pos": "pos", "brown": "pos"}
C2 = 1.0
TARGETS = (1e-2, 1e-3, 1e-4)
PRECISION = 1e-6  # of the optimum: a hundredth of the tightest target
FEW = 50  # sentences, to compile kernels with


class Corpus:
    """A set under `options` (sentences, threads, patience, observed); its files go to a folder of its own."""

    def __init__(self, name, options, folder):
        self.name, self.options, self.preset = name, options, PRESETS[name]
        self.train, self.test = (half[: options.sentences] for half in datasets.sentences(name))
        self.folder = folder / name
        self.folder.mkdir()
        self.train_file, self.test_file = self.folder / "train.txt", self.folder / "test.txt"
        datasets.write_columns(self.train, self.train_file)
        datasets.write_columns(self.test, self.test_file)

    @property
    def weights(self):
        """The setting for which weights there are."""
        return {"observed": True} if self.options.observed else {}

    def say(self, *words):
        print(f"{self.name}:", *words, file=sys.stderr, flush=True)

    def model(self, **settings):
        settings = (
            {"n_jobs": self.options.threads, "max_seconds": self.options.patience} | self.weights | settings
        )
        return make_model(self.preset, **settings)

    @cached_property
    def data(self):
        return self.model().encode_training(*self.train.without_last())

    @cached_property
    def problem(self):
        return self.model().problem(self.data)

    @property
    def n_weights(self):
        mask = self.problem.structure.mask
        return self.problem.dim if mask is None else int(mask.sum())

    @property
    def score_name(self):
        return "accuracy" if self.preset == "pos" else "F1"

    def excess(self, value):
        """(P - P*) / P*."""
        return (value - self.best) / self.best

    @cached_property
    def best(self):
        """P* to a relative PRECISION, proven; kept, for it takes longer than all else."""
        columns = self.data.sequences.rows.n_columns
        which = "-observed" if self.options.observed else ""
        path = datasets.CACHE / f"tagging-{self.name}-{len(self.train)}-{columns}-c2-{C2:g}{which}.npz"
        if not path.exists():
            self.say(f"the optimum, to {PRECISION:g}")
            model = fit(self.model(tol=PRECISION, max_iter=100_000, max_seconds=None), self.data)
            value = self.problem.total * model.certificate_.primal
            datasets.CACHE.mkdir(parents=True, exist_ok=True)
            np.savez(path, value=value, proven=model.certificate_.relative_gap)
        self.proven = float(np.load(path)["proven"])
        return float(np.load(path)["value"])

    @cached_property
    def fitted(self):
        """A model to tag with; how exact it is does not change its speed."""
        return fit(self.model(tol=TARGETS[0]), self.data)

    @cached_property
    def rival(self):
        """CRFsuite with all sentences appended, and the seconds of reading, attributes and appending."""
        return load_rival(self.train_file, self.preset, self.options.observed)

    @cached_property
    def truth(self):
        return labels_of(self.test)

    def score(self, predicted):
        """F1 of spans; of parts of speech, which are no spans, accuracy."""
        from fenchel.spans import span_scores

        scores = span_scores(self.truth, predicted)
        return scores.accuracy if self.preset == "pos" else scores.f1

    def rival_score(self, path):
        tagger = open_tagger(path)
        return self.score([tagger.tag(attributes) for attributes in rival_items(self.test_file, self.preset)])


def make_model(preset, **settings):
    from fenchel import ChainCRF

    return ChainCRF(C=1.0 / (2.0 * C2), template=preset, **settings)


def fit(model, data):
    """The model fitted; a run that ends at a limit says so by its certificate, not by a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit_encoded(data)


def warm_up(preset, path, **settings):
    """Compile: read, encode, fit and predict a few sentences; the kernels are the same for all.

    As many passes as it takes to meet what a solver does only now and then.
    """
    from fenchel.io.columns import read_columns

    X, y = read_columns(path)[:FEW].without_last()
    model = make_model(preset, tol=0.0, max_iter=30, **settings)
    fit(model, model.encode_training(X, y)).predict(X)


def labels_of(tokens):
    return [[token[-1] for token in sentence] for sentence in tokens.sentences()]


def rival_items(path, preset):
    """Yield the attributes of each sentence of a column file with labels, by the Python route."""
    for sentence in read_sentences(path):
        yield attributes_of(preset, [fields[:-1] for fields in sentence])


def load_rival(path, preset, observed=False):
    """(CRFsuite, seconds of reading, of making attributes, of appending)."""
    looks_of.cache_clear()
    rival, clock = CRFsuite(observed), time.perf_counter
    start = clock()
    made = appended = 0.0
    for sentence in read_sentences(path):
        before = clock()
        attributes = attributes_of(preset, [fields[:-1] for fields in sentence])
        between = clock()
        rival.append(attributes, [fields[-1] for fields in sentence])
        made += between - before
        appended += clock() - between
    return rival, (clock() - start - made - appended, made, appended)
