"""Max-margin sequences: seconds to a proven gap, solvers of the hinge loss one by one, and test scores.

    FENCHEL_DATA=folder python benchmarks/margin.py [--sets conll2000,ocr] [--parts whole,solvers,scores]
        [--sequences 200] [--patience 120] [--output file]

whole     a whole fit, attributes included, of all training sequences, to 1 % and to 0.1 %
solvers   each solver of the hinge loss on the first sequences, to 1 %
scores    on the test sequences: the max-margin model and the log loss's, to 0.1 %

conll2000 has C = 0.5 and the preset chunk, ocr (all folds but the first) C = 1 and its pixels. Kernels are
compiled before any clock starts. Processor seconds are those of all threads.
"""

import argparse
import time
import warnings
from pathlib import Path

import datasets
from corpus import labels_of
from measure import machine
from race import publish
from tagging import table

TARGETS = (1e-2, 1e-3)
SOLVERS = ("cd-outputs", "cutting-plane", "sdca", "eg", "eg-gap", "sgd")
FEW = 50  # sequences to compile kernels with


class Set:
    """Sequences to train on and to test with, C, and how to make a model of them."""

    def __init__(self, name):
        self.name, self.C = name, {"conll2000": 0.5, "ocr": 1.0}[name]
        if name == "ocr":
            self.train, (self.test, self.truth) = datasets.letters()
        else:
            train, test = datasets.sentences(name)
            self.train, self.test, self.truth = train.without_last(), test.without_last()[0], labels_of(test)

    def model(self, loss="hinge", **settings):
        from fenchel import ChainCRF

        own = {} if self.name == "ocr" else {"template": "chunk"}
        return ChainCRF(C=self.C, loss=loss, **own | settings)

    def first(self, count):
        X, y = self.train
        return X[:count], y[:count]

    def warm_up(self, solver="auto", loss="hinge"):
        fit(self.model(loss, solver=solver, tol=0.0, max_iter=30), self.first(FEW))

    def score(self, model):
        """Span F1, or the share of letters that are right."""
        from fenchel.spans import span_scores

        found = span_scores(self.truth, model.predict(self.test))
        return found.accuracy if self.name == "ocr" else found.f1


def fit(model, data):
    """(model, wall-clock seconds, processor seconds) of a whole fit; limits say so by the certificate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wall, processor = time.perf_counter(), time.process_time()
        model.fit(*data)
        return model, time.perf_counter() - wall, time.process_time() - processor


def whole(chosen, options):
    chosen.warm_up()
    lines = []
    for tol in TARGETS:
        model, wall, processor = fit(chosen.model(tol=tol, max_seconds=options.patience), chosen.train)
        lines.append([f"{tol:g}", *describe(model, wall, processor, len(chosen.train[0]))])
    return section(chosen, "a whole fit", ["tol", *HEADER], lines)


def solvers(chosen, options):
    lines = []
    for name in SOLVERS:
        chosen.warm_up(name)
        model = chosen.model(solver=name, tol=TARGETS[0], max_seconds=options.patience, max_iter=100_000)
        fitted = fit(model, chosen.first(options.sequences))
        lines.append([f"`{name}`", *describe(*fitted, options.sequences)])
    return section(chosen, f"the first {options.sequences} sequences", ["solver", *HEADER], lines)


HEADER = ["s", "processor s", "passes", "oracle calls a sequence", "objective", "proven within"]


def describe(model, wall, processor, n):
    last, proof = model.trace_[-1], model.certificate_
    return [
        f"{wall:.1f}",
        f"{processor:.1f}",
        f"{last.passes:.0f}",
        f"{last.oracle_calls / n:.1f}",
        f"{proof.primal:.6g}",
        f"{100 * proof.relative_gap:.2g} %",
    ]


def scores(chosen, options):
    lines = []
    for loss in ("hinge", "log"):
        chosen.warm_up(loss=loss)
        model, wall, _ = fit(chosen.model(loss, tol=TARGETS[-1], max_seconds=options.patience), chosen.train)
        proof = f"{100 * model.certificate_.relative_gap:.2g} %"
        lines.append([loss, f"{wall:.1f}", proof, f"{100 * chosen.score(model):.2f}"])
    measure = "letters right, %" if chosen.name == "ocr" else "F1"
    return section(chosen, "test scores", ["loss", "s", "proven within", measure], lines)


def section(chosen, title, header, lines):
    return f"## {chosen.name}, C = {chosen.C:g}: {title}\n\n{table(header, lines)}"


PARTS = {"whole": whole, "solvers": solvers, "scores": scores}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", default="conll2000,ocr")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--sequences", type=int, default=200)
    parser.add_argument("--patience", type=float, default=120.0)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    facts = ", ".join(f"{name} {value}" for name, value in machine().items())
    sets = [Set(name) for name in options.sets.split(",")]
    made = (PARTS[part](each, options) for each in sets for part in options.parts.split(","))
    publish(
        (text for texts in ([f"# Max-margin sequences\n\n{facts}"], made) for text in texts), options.output
    )


if __name__ == "__main__":
    main()
