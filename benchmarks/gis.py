"""NLTK's generalized iterative scaling beside ours, on a few contexts of the Brown corpus.

    FENCHEL_DATA=folder python benchmarks/gis.py [--contexts 500] [--iterations 20] [--rivals-only]

NLTK has no regulariser, so it takes no part in multiclass.py: here both maximise the bare likelihood, with a
feature for each attribute and label seen together, for the same number of iterations. NLTK adds a
feature of its own that fills each sum up to a constant, so that the two losses differ a little.
"""

import argparse
import math
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

import datasets
from measure import timed


def nltk_gis(X, y, iterations):
    """(seconds, mean loss) of NLTK.

    Its constant is given: the default is the number of all attributes, not the most that one context has, and
    steps would be as much smaller.
    """
    from nltk.classify.maxent import GISEncoding, MaxentClassifier

    events = [
        (dict.fromkeys(row.indices.tolist(), True), label) for row, label in zip(X, y.tolist(), strict=True)
    ]
    constant = int(np.diff(X.indptr).max()) + 1

    def fit(iterations):
        encoding = GISEncoding.train(events, C=constant)
        return MaxentClassifier.train(events, "gis", trace=0, encoding=encoding, max_iter=iterations)

    seconds, model = timed(fit, iterations)
    bits = [model.prob_classify(attributes).logprob(label) for attributes, label in events]
    return seconds, -math.log(2.0) * sum(bits) / len(bits)


def pairs(X, y):
    """(n K, features) CSR: row i K + k has a one for each attribute of i seen with label k anywhere."""
    n, K = X.shape[0], int(y.max()) + 1
    seen = sp.csr_matrix(X.T @ sp.csr_matrix((np.ones(n), y, np.arange(n + 1)), shape=(n, K)))
    seen.data = np.arange(1.0, seen.nnz + 1.0)  # the features' numbers, from 1 that none is lost as a zero
    chosen = seen[X.indices].tocoo()
    example = np.repeat(np.arange(n), np.diff(X.indptr))[chosen.row]
    columns = chosen.data.astype(np.int64) - 1
    return sp.csr_matrix((np.ones(chosen.nnz), (example * K + chosen.col, columns)), shape=(n * K, seen.nnz))


def fenchel_gis(X, y, iterations):
    """(seconds, mean loss) of our solver `gis`, without a regulariser; compilation is not counted."""
    from fenchel import problems, solve

    F, n, K = pairs(X, y), X.shape[0], int(y.max()) + 1
    starts = K * np.arange(n + 1)

    def fit(iterations):
        problem = problems.joint(F, y, starts, C=math.inf, merge=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # The first pass looks at the start, the others each at where an iteration led.
            return solve(problem, "gis", tol=0.0, max_passes=iterations + 1).w

    fit(1)
    seconds, w = timed(fit, iterations)
    scores = (F @ w).reshape(n, K)
    return seconds, float(np.mean(logsumexp(scores, axis=1) - scores[np.arange(n), y]))


def arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--contexts", type=int, default=500)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--rivals-only", action="store_true", help="leave fenchel's own solver out")
    return parser.parse_args()


def main():
    """Print a table: seconds, seconds an iteration, mean loss."""
    options = arguments()
    X, y = datasets.brown_contexts(options.contexts)
    print(f"{X.shape[0]:,} contexts, {X.nnz:,} non-zeros, {y.max() + 1} classes, {options.iterations} steps")
    print("\n| solver | seconds | ms an iteration | mean loss |\n|---|--:|--:|--:|")
    tasks = {"nltk gis": nltk_gis} | ({} if options.rivals_only else {"fenchel gis": fenchel_gis})
    for name, task in tasks.items():
        seconds, loss = task(X, y, options.iterations)
        each = 1e3 * seconds / options.iterations
        print(f"| {name} | {seconds:.3f} | {each:.2f} | {loss:.5f} |", flush=True)


if __name__ == "__main__":
    main()
