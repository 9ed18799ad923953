"""How many predictions are proven to be those of the exact optimum, and what it takes.

    python benchmarks/proven.py [--sets conll2000,imdb,20newsgroups,20newsgroups-free]
        [--tol 1e-3,1e-4,1e-6,1e-8]

ChainCRF with the preset `chunk` on the test sentences of CoNLL-2000; LogisticRegression with its free
intercept on imdb and, of 20 classes, with intercept_scaling=1 and with free ones on 20newsgroups, C = 1, a
fifth of the rows held out. For each tolerance: processor seconds of `fit` (kernels loaded) and of `proven`,
the radius, the share proven, and how many of those the model of the smallest tolerance contradicts (it must
be none).
"""

import argparse
import time

import numpy as np

from datasets import load, newsgroups20, sentences
from fenchel import ChainCRF, LogisticRegression


def chunks(tol):
    """A function that fits, the test set, and how many examples there are."""
    (train, labels), (test, _) = (part.without_last() for part in sentences("conll2000"))
    return ChainCRF(template="chunk", tol=tol, max_iter=10**5), (train, labels), test


def rows(tol, X, y, **settings):
    held_out = np.arange(X.shape[0]) % 5 == 0
    model = LogisticRegression(tol=tol, max_iter=10**5, **settings)
    return model, (X[~held_out], y[~held_out]), X[held_out]


CASES = {
    "conll2000": chunks,
    "imdb": lambda tol: rows(tol, *load("imdb")),
    "20newsgroups": lambda tol: rows(tol, *newsgroups20(), intercept_scaling=1.0),
    "20newsgroups-free": lambda tol: rows(tol, *newsgroups20()),
}


def timed(task):
    start = time.process_time()
    result = task()
    return result, time.process_time() - start


def lines(name, tolerances):
    """A row of the table for each tolerance, from the smallest on."""
    best = None
    for tol in sorted(tolerances):
        model, training, test = CASES[name](tol)
        _, fitting = timed(lambda model=model, training=training: model.fit(*training))
        predicted = list(map(np.asarray, model.predict(test)))
        proven, proving = timed(lambda model=model, test=test: model.proven(test))
        best = predicted if best is None else best
        wrong = sum(
            not np.array_equal(a, b) for a, b, sure in zip(predicted, best, proven, strict=True) if sure
        )
        cells = name, f"{tol:g}", f"{fitting:.2f}", f"{proving:.2f}", f"{model.certificate_.radius:.2g}"
        print(f"| {' | '.join(cells)} | {100 * proven.mean():.1f} % | {wrong} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", default=",".join(CASES))
    parser.add_argument("--tol", default="1e-3,1e-4,1e-6,1e-8")
    given = parser.parse_args()
    print("| set | tol | fit s | proven s | radius | proven | wrong |\n|---|--:|--:|--:|--:|--:|--:|")
    for name in given.sets.split(","):
        CASES[name](0.5)[0].fit(*(part[::150] for part in CASES[name](0.5)[1]))  # kernels
        lines(name, map(float, given.tol.split(",")))


if __name__ == "__main__":
    main()
