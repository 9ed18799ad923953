"""Numbers beside attributes: what sequences of vectors, of words, and of both take.

    python benchmarks/mixed.py [--sequences 3000] [--length 20] [--numbers 100] [--labels 9] [--tol 1e-3]
        [--solvers auto,lbfgs,eg-gap] [--c2 1] [--seconds 60]

Made-up tokens with a vector of standard normal numbers and ten words each, the r-th as often as 1/r, whose
labels depend on both and on the label before. `ChainCRF.fit_encoded` on vectors alone, words alone, and pairs
(vectors, words), proven to --tol; kernels compiled by a small fit before. Processor seconds and the clock's.
"""

import argparse
import time
import warnings

import numpy as np

from measure import machine

WORDS, EACH = 20_000, 10


def make_data(options, rng):
    """Vectors (N, d), words (N, EACH), labels (N,)."""
    N, K = options.sequences * options.length, options.labels
    vectors = rng.standard_normal((N, options.numbers))
    shares = 1.0 / np.arange(1, WORDS + 1)
    words = rng.choice(WORDS, size=(N, EACH), p=shares / shares.sum())
    scores = 2.0 * vectors @ rng.standard_normal((options.numbers, K)) / np.sqrt(options.numbers)
    scores += 2.0 * rng.standard_normal((WORDS, K))[words].sum(axis=1) / np.sqrt(EACH)
    scores += rng.gumbel(size=(N, K))
    follow, y = rng.standard_normal((K, K)), np.zeros(N, np.int64)
    for t in range(N):
        y[t] = np.argmax(scores[t] + (follow[y[t - 1]] if t % options.length else 0.0))
    return vectors, words, y


def as_sequences(options, vectors, words, y):
    """{what tokens have: X}, and labels as text."""
    parts = [slice(at, at + options.length) for at in range(0, y.size, options.length)]
    names = [[[f"w{word}" for word in set(row)] for row in words[part].tolist()] for part in parts]
    pairs = [(vectors[part], tokens) for part, tokens in zip(parts, names, strict=True)]
    kinds = {"vectors": [vectors[part] for part in parts], "words": names, "both": pairs}
    return kinds, [[str(label) for label in y[part]] for part in parts]


def measure(options, X, y, solver):
    """(seconds, processor seconds, the model) of a fit."""
    from fenchel import ChainCRF

    model = ChainCRF(c2=options.c2, tol=options.tol, solver=solver, max_iter=10**6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(max_iter=2).fit(X[:200], y[:200])
        data = model.encode_training(X, y)
        model.set_params(max_iter=10**6, max_seconds=options.seconds)
        wall, processor = time.perf_counter(), time.process_time()
        model.fit_encoded(data)
    return time.perf_counter() - wall, time.process_time() - processor, model


def main(options):
    """Print a line for each kind of tokens and solver."""
    kinds, y = as_sequences(options, *make_data(options, np.random.default_rng(0)))
    print(f"{machine()}\n\n{options}\n")
    print("| tokens | asked for | solver | s | processor s | passes | gap | objective |")
    print("|---|---|---|--:|--:|--:|--:|--:|")
    for name, X in kinds.items():
        for solver in options.solvers.split(","):
            wall, processor, model = measure(options, X, y, solver)
            told = model.certificate_
            cells = f"{wall:.2f}", f"{processor:.2f}", f"{told.passes:.1f}", f"{told.relative_gap:.1e}"
            print(
                "|",
                " | ".join([name, solver, model.trace_.solver, *cells, f"{told.primal:.6f}"]),
                "|",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, default in (("sequences", 3000), ("length", 20), ("numbers", 100), ("labels", 9)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("tol", 1e-3), ("c2", 1.0), ("seconds", 60.0)):
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--solvers", default="auto,lbfgs,eg-gap")
    main(parser.parse_args())
