"""The problems that more than one paper is about: documents with two classes, maximum entropy taggers."""

from functools import cache

import numpy as np
import scipy.sparse as sp

from experiments import data
from experiments.lab import Lab, Run, Task, optimum, shown
from fenchel import MaxEntTagger, problems, solvers
from fenchel._sparse import as_csr
from fenchel.spans import span_scores

DOCUMENTS = {"a9a": 4.0, "imdb": 8.0, "20newsgroups": 8.0}  # C, as yu2011 Table 2: 4 for a9a, 8 for TF-IDF
TEXTS = ("imdb", "20newsgroups")
BROWN_SHARE = 0.2
SIGMA2 = 10.0  # times the number of contexts
QUICK_ROWS, QUICK_SENTENCES = 1000, 150
BATCH = {
    "LBFGS": solvers.LBFGS(rounded=False),
    "TRON": solvers.TRON(rounded=False),
}  # as the papers have them


# ---- documents


@cache
def document_task(name: str, quick: bool, C: float | None = None, constant: bool = False) -> Task:
    """constant: with a feature that is 1 everywhere, as Lin et al. (2008) have it. The score is accuracy."""
    C = DOCUMENTS[name] if C is None else C
    ending = ("" if DOCUMENTS[name] == C else f"-C={C:g}") + ("-constant" if constant else "")

    def make():
        X, y, other, truth = data.documents(name)
        X, y = (X[:: len(y) // QUICK_ROWS], y[:: len(y) // QUICK_ROWS]) if quick else (X, y)
        settings = {"fit_intercept": True, "intercept_scaling": 1.0} if constant else {}
        problem = problems.binary(X, y, C=C, threads=1, **settings)

        def score(w, b):
            return float(
                np.mean((other @ w[: other.shape[1]] + w[other.shape[1] :].sum() > 0) == (truth > 0))
            )

        return problem, score

    return Task(f"{name}{ending}", make)


def document_tasks(lab: Lab, names=tuple(DOCUMENTS)) -> list[Task]:
    return [document_task(name, lab.quick) for name in names]


# ---- maximum entropy taggers


class Tagged:
    """A corpus of tagged sentences as a maximum entropy problem: one weight for each observed pair of
    attribute and tag, contexts that are alike merged, σ² = 10 times their number.
    """

    def __init__(self, halves, further: int, spans: bool):
        train, self.test = halves
        self.spans = spans
        self.model = MaxEntTagger(columns=further, min_count=CUTOFF, observed=True, n_jobs=1)
        self.data = self.model.encode_training(*train.without_last())
        self.problem = contexts(as_csr(self.data.rows), self.data.codes, self.data.classes.size)
        self.truth = [[token[-1] for token in sentence] for sentence in self.test.sentences()]

    def score(self, w, b) -> float:
        """Accuracy by beam search; of chunks F1."""
        predicted = self.model.set_weights(self.data, w).predict(self.test.without_last()[0])
        found = span_scores(self.truth, predicted)
        return found.f1 if self.spans else found.accuracy

    def counts(self) -> list[int]:
        """Contexts, labels, features and non-zero feature values, as huang2010 (4) counts them."""
        problem, examples = self.problem, self.problem.examples
        labels = problem.structure.mask.reshape(-1, problem.design.outputs).sum(axis=1)
        return [
            problem.n,
            problem.design.outputs,
            int(labels.sum()),
            int(labels[examples.rows.indices].sum()),
        ]


def contexts(X, codes, labels: int):
    """The problem of the tokens X (n, A) with labels `codes`: alike rows are one context x with p̃(x), p̃(y|x).

    The library makes them one where that saves time; here σ² goes by their number, so that they always are.
    """
    numbers: dict[bytes, int] = {}
    group = np.array([numbers.setdefault(row_bytes(X, i), len(numbers)) for i in range(X.shape[0])])
    first, counts = np.unique(group, return_index=True, return_counts=True)[1:]
    shares = sp.csr_matrix((1.0 / counts[group], (group, codes)), (counts.size, labels))
    settings = {"labels": labels, "observed": True, "sample_weight": counts, "merge": False, "threads": 1}
    problem = problems.flat(X[first], shares, **settings)
    return problem.with_penalty(1.0 / (SIGMA2 * problem.n))


def row_bytes(X, i: int) -> bytes:
    """Row i of a CSR matrix, columns in order, as bytes."""
    begin, end = X.indptr[i], X.indptr[i + 1]
    return X.indices[begin:end].tobytes() + X.data[begin:end].tobytes()


CUTOFF = 5  # OpenNLP's: attributes that fewer tokens have are left out
CORPORA = {
    "conll2000-pos": (data.parts_of_speech, 0, False),
    "conll2000-chunk": (data.chunks, 1, True),
    "brown": (lambda: data.brown(BROWN_SHARE), 0, False),
}


@cache
def corpus(name: str, quick: bool) -> Tagged:
    read, further, spans = CORPORA[name]
    halves = read()
    return Tagged(tuple(half[:QUICK_SENTENCES] for half in halves) if quick else halves, further, spans)


@cache
def tagging_task(name: str, quick: bool) -> Task:
    def make():
        found = corpus(name, quick)
        return found.problem, found.score

    return Task(name, make)


def tagging_tasks(lab: Lab, names=tuple(CORPORA)) -> list[Task]:
    return [tagging_task(name, lab.quick) for name in names]


TAGGING_SECONDS = {"conll2000-pos": 60.0, "conll2000-chunk": 60.0, "brown": 90.0}


# ---- what is drawn of them


def time_panels(results: dict[str, dict[str, Run]], scale=lambda name: 1.0, by_row=False) -> list:
    """For each set: relative function difference (55), ‖∇P‖ and test score against seconds.

    scale(set): what P is multiplied by in the paper. by_row: sets beside each other, measures below.
    """
    from experiments.figures import Panel

    columns = []
    for name, runs in results.items():
        best, factor, runs = optimum(runs.values()), scale(name), shown(runs)
        difference = {k: (run.column("seconds"), run.excess(best)) for k, run in runs.items()}
        norms = {
            k: (run.column("seconds"), [factor * g for g in run.column("gradient_norm")])
            for k, run in runs.items()
        }
        scores = {
            k: (run.column("seconds"), [100.0 * a for a in run.column("validation")])
            for k, run in runs.items()
        }
        end = common_end(runs)
        word = "F1, %" if "chunk" in name else "testing accuracy, %"
        top = max((a for _, values in scores.values() for a in values if a == a), default=100.0)
        columns.append(
            [
                Panel(
                    name,
                    "training time, s",
                    "relative function difference",
                    difference,
                    log_y=True,
                    x_limits=(0, end),
                ),
                Panel(name, "training time, s", "‖∇P(w)‖", norms, log_y=True, x_limits=(0, end)),
                Panel(
                    name, "training time, s", word, scores, x_limits=(0, end), y_limits=(top - 6.0, top + 0.5)
                ),
            ]
        )
    if by_row:
        return [panel for row in zip(*columns, strict=True) for panel in row]
    return [panel for column in columns for panel in column]


def common_end(runs: dict[str, Run]) -> float:
    """Where a time axis ends: at the second longest run, but at three times the second shortest at most, so
    that slow ones do not squeeze the others.
    """
    ends = sorted(run.column("seconds")[-1] for run in runs.values())
    return max(min(ends[-2:][0], 3.0 * ends[:2][-1]), 1e-3)
