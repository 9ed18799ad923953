"""Other people's solvers of L2 logistic regression without intercept, behind one face; and CRFsuite.

RIVALS minimise  P(w) = C sum_i log(1 + exp(-y_i w.x_i)) + 1/2 ||w||^2  for y_i in {-1, +1}.
MULTINOMIAL minimise  P(W) = C sum_i (log sum_k exp(x_i.w_k) - x_i.w_{y_i}) + 1/2 ||W||^2  for y_i in
{0, ..., K - 1}. On 20newsgroups all come within 1e-6 of the same optimum, and lbfgs, newton-cg and Cyanure,
run at a tolerance of 1e-8, within 1e-9.

A rival has a `name`; `tolerances`, from loose to tight, in the unit of its own stopping test;
`skip(X)`, a reason not to run it on X, or None; and `fit(X, y, C, tol) -> w`, (d,) or (d, K), which does all
that a user's call would do: conversion to the rival's own format, copies, checks of the input.

`CRFsuite` trains linear chains. Its users make attributes in Python: `read_sentences` and `attributes_of` are
that route, for the attributes of fenchel's presets.
"""

import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

MAX_ITER = 10_000  # high enough that the tolerance, not the count, ends a run


def spaced(first, last, per_decade=4):
    """Tolerances from 10^first down to 10^last, evenly spaced in the exponent, to two digits."""
    count = round((first - last) * per_decade) + 1
    return [float(f"{10.0**e:.1e}") for e in np.linspace(first, last, count)]


class Liblinear:
    """LIBLINEAR through its own Python package: -s 0 (trust-region Newton) or -s 7 (dual coordinate descent).

    A SciPy csr_matrix is turned into LIBLINEAR's node array by the package's compiled loop. Weights are
    read from the model's array at once: `get_decfun` makes one foreign call per feature.
    -e bounds: -s 0, ||g(w)|| <= eps * min(pos, neg)/n * ||g(0)||; -s 7, the largest dual violation, which
    falls in jumps over the first passes: its loose tolerances stand closer, or it would pay for passes
    it did not need. Its random stream goes on from fit to fit, so its excess varies between runs.
    """

    def __init__(self, kind, label, tolerances):
        self.kind, self.name, self.tolerances = kind, f"liblinear -s {kind} ({label})", tolerances

    def skip(self, X):
        return None

    def fit(self, X, y, C, tol):
        from liblinear.liblinearutil import parameter, problem, train

        model = train(problem(y, X, bias=-1), parameter(f"-s {self.kind} -c {C!r} -e {tol!r} -B -1 -q"))
        # The weights speak for the first label LIBLINEAR lists. A copy, for the model frees its memory.
        return np.ctypeslib.as_array(model.w, (model.nr_feature,)) * float(model.label[0])


class ScikitLearn:
    """scikit-learn's LogisticRegression with one of its solvers.

    tol bounds: lbfgs, newton-cg and newton-cholesky, the largest entry of the gradient of P/(C n);
    liblinear, as -s 0 above; sag and saga, the change of the largest weight over a pass, relative
    to that weight.
    """

    def __init__(self, solver, tolerances, most_features=None):
        self.solver, self.name, self.tolerances = solver, f"scikit-learn {solver}", tolerances
        self.most_features = most_features

    def skip(self, X):
        p = X.shape[1]
        if self.most_features is None or p <= self.most_features:
            return None
        return f"the Hessian would be {p} x {p}, {8e-9 * p * p:.0f} GB"

    def fit(self, X, y, C, tol):
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            C=C, solver=self.solver, tol=tol, fit_intercept=False, max_iter=MAX_ITER, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X, y).coef_.T.squeeze()


class Cyanure:
    """Cyanure's Classifier, solver "auto" (MISO, accelerated when badly conditioned), on all cores.

    It minimises mean loss + lambda_1/2 ||w||^2, which is P/(C n) at lambda_1 = 1/(C n). tol bounds the
    duality gap relative to the objective, looked at every 5 passes (its default: each pass was no faster).
    """

    name = "cyanure auto"
    tolerances = spaced(1, -8)

    def __init__(self, loss="logistic"):
        self.loss = loss

    def skip(self, X):
        return None

    def fit(self, X, y, C, tol):
        from cyanure.estimators import Classifier

        model = Classifier(
            loss=self.loss,
            penalty="l2",
            fit_intercept=False,
            lambda_1=1.0 / (C * X.shape[0]),
            solver="auto",
            tol=tol,
            duality_gap_interval=5,
            max_iter=MAX_ITER,
            verbose=False,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.squeeze(model.fit(X, y).coef_)


RIVALS = [
    Liblinear(0, "trust region", spaced(1, -6)),
    Liblinear(7, "dual", spaced(1.5, 0, per_decade=12) + spaced(-0.25, -6)),
    ScikitLearn("lbfgs", spaced(-1, -9)),
    ScikitLearn("liblinear", spaced(1, -6)),
    ScikitLearn("newton-cg", spaced(-1, -8)),
    ScikitLearn("newton-cholesky", spaced(-1, -8), most_features=5000),
    ScikitLearn("sag", spaced(0, -8)),
    ScikitLearn("saga", spaced(0, -8)),
    Cyanure(),
]

# Not here: LIBLINEAR, whose only joint model of several classes is a support vector machine; newton-cholesky,
# whose Hessian has (d K)^2 entries; NLTK, which has no regulariser (see gis.py).
MULTINOMIAL = [
    ScikitLearn("lbfgs", spaced(-1, -9)),
    ScikitLearn("newton-cg", spaced(-1, -8)),
    ScikitLearn("sag", spaced(0, -8)),
    ScikitLearn("saga", spaced(0, -8)),
    Cyanure("multiclass-logistic"),
]


class CRFsuite:
    """python-crfsuite's trainer: minimises sum_i loss_i + c2 ||w||^2 over all weights there could be.

    feature.possible_states and possible_transitions are on: a weight for each pair of attribute and label,
    and of labels; `observed`, its default: only of pairs that occur. The data are handed over once, sentence
    by sentence, and stay in the trainer.
    """

    def __init__(self, observed=False):
        import pycrfsuite

        self.trainer = pycrfsuite.Trainer(verbose=False)
        self.possible = int(not observed)

    def append(self, attributes, labels):
        """One more sentence: a list of attribute names for each token, and the labels."""
        self.trainer.append(attributes, labels)

    def train(self, path, algorithm, **options):
        """Train by "lbfgs", "l2sgd" or "ap", write the model file, and give the TrainingLog."""
        lines, clock = [], time.perf_counter
        self.trainer.message = lambda line: lines.append((clock(), line))
        self.trainer.select(algorithm)
        names = "feature.possible_states", "feature.possible_transitions"
        self.trainer.set_params(dict.fromkeys(names, self.possible) | options)
        start = clock()
        self.trainer.train(str(path))
        return TrainingLog.parse([(when - start, line) for when, line in lines])


@dataclass(frozen=True)
class TrainingLog:
    """What CRFsuite wrote while training, in wall-clock seconds: those of its log are of the processor.

    generating: seconds until it had its features. steps: (seconds since then, objective) behind each
    iteration or epoch, the search for a learning rate included.
    """

    generating: float
    steps: list

    @classmethod
    def parse(cls, lines):
        """From (seconds, line) of each line of the log."""
        generating, loss, steps = 0.0, None, []
        for seconds, line in lines:
            if line.startswith("Number of features:"):
                generating = seconds
            elif line.startswith("Loss:"):
                loss = float(line.split()[1])
            elif line.startswith("Seconds required for this iteration:"):
                steps.append((seconds - generating, loss))
        return cls(generating, steps)

    def first(self, limit):
        """The number, from 1, of the first step whose objective is at most the limit; None if none is."""
        return next((k for k, (_, value) in enumerate(self.steps, 1) if value <= limit), None)


def open_tagger(path):
    """CRFsuite's tagger with the model of this file."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


def crfsuite_weights(path, names, labels):
    """[W (A, K) | transitions (K, K)] of a model file, row by row, in the order of these names and labels.

    They come from the text CRFsuite dumps, so have six decimals.
    """
    row = {name: k for k, name in enumerate(names)}
    column = {label: k for k, label in enumerate(labels)}
    W, T = np.zeros((len(names), len(labels))), np.zeros((len(labels), len(labels)))
    dump = Path(f"{path}.txt")
    open_tagger(path).dump(str(dump))
    with open(dump, encoding="utf-8", newline="\n") as file:
        for line in file:
            if line.startswith("  ("):
                what, _, value = line[6:].rpartition(": ")
                left, _, label = what.rpartition(" --> ")
                if line[3] == "1":
                    T[column[left], column[label]] = float(value)
                else:
                    W[row[left], column[label]] = float(value)
    dump.unlink()
    return np.concatenate([W.ravel(), T.ravel()])


def read_sentences(path):
    """Yield the sentences of a column file as lists of tuples of strings."""
    sentence = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = line.split()
            if fields:
                sentence.append(fields)
            elif sentence:
                yield sentence
                sentence = []
    if sentence:
        yield sentence


def attributes_of(preset, sentence):
    """The list of attribute names of each token: those of fenchel's preset, made as in a user's Python.

    Words are looked at once for each distinct one, and the text before the values is made beforehand: kinder
    than the functions most users write.
    """
    T = len(sentence)
    values = _values(preset, sentence)
    out = [[] for _ in sentence]
    for source, head, start, size in WINDOWS[preset]:
        column = values[source]
        for t in range(max(0, -start), min(T, T - start - size + 1)):
            run = column[t + start : t + start + size]
            if None not in run:
                out[t].append(head + "|".join(run))
    out[0].append("__BOS__")
    out[-1].append("__EOS__")
    return out


def _values(preset, sentence):
    """For each source of a preset its value at each token."""
    columns = list(zip(*sentence, strict=True))
    looks = zip(*(looks_of(preset, word) for word in columns[0]), strict=True)
    return dict(zip(LOOKS[preset], looks, strict=True)) | dict(zip(("w", "pos"), columns, strict=False))


@cache
def looks_of(preset, word):
    """What a preset sees in a word beside the word itself; None where there is nothing to see."""
    from fenchel.features.words import FUNCTIONS

    return tuple(FUNCTIONS[name](word) for name in LOOKS[preset])


def _windows(*runs):
    """(source, text before the values, first offset, length) of each attribute; a run has several sources."""
    made = []
    for sources, size, first, last in runs:
        for source in sources:
            for start in range(first, last - size + 2):
                places = "|".join(f"{source}[{k}]" for k in range(start, start + size))
                made.append((source, f"{places}=", start, size))
    return made


_AFFIXES = [f"{end}{n}" for end in ("prefix", "suffix") for n in range(1, 5)]
_TESTS = ["has_digit", "has_upper", "has_symbol"]
_SHAPES = ["lower", "shape", "short_shape", "type"]
_MORE_TESTS = ["starts_upper", "has_lower", "has_letter", "two_digits", "four_digits", "digits_sign"]
_MORE_TESTS += ["mixed", "initial"]
LOOKS = {"chunk": [], "pos": _AFFIXES + _TESTS, "ner": _SHAPES + _TESTS + _MORE_TESTS + _AFFIXES}
WINDOWS = {
    "chunk": _windows((["w"], 1, -2, 2), (["w"], 2, -1, 1), *((["pos"], n, -2, 2) for n in (1, 2, 3))),
    "pos": _windows((["w"], 1, -2, 2), (["w"], 2, -2, 2), (LOOKS["pos"], 1, 0, 0)),
    "ner": _windows((["w", "pos", *LOOKS["ner"]], 1, -2, 2), (["w", "pos", "short_shape", "type"], 2, -2, 2)),
}
