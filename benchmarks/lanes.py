"""What other values than 0 and 1, bans and masks cost a chain: seconds beside those of the plain lane.

    FENCHEL_DATA=folder python benchmarks/lanes.py [--sentences N] [--tol 1e-3] [--repeat 3]

CoNLL-2000 with the attributes of the preset chunk, c2 = 1: all weights; the observed ones; attributes of
value .9 and 1.1 in turn instead of 1; transitions that do not occur banned. Whole `fit_encoded`, proven to
--tol, kernels compiled before; the least processor seconds of --repeat rounds, all lanes in turn.
"""

import argparse
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np

import datasets
from corpus import FEW, labels_of, make_model


def lanes(train):
    """The name, settings and data of each lane."""
    labels = labels_of(train)
    met, names = {pair for row in labels for pair in pairwise(row)}, sorted(set().union(*labels))
    banned = [(a, b) for a in names for b in names if (a, b) not in met]
    plain = make_model("chunk").encode_training(*train.without_last())
    yield "all weights", {}, plain
    yield "observed", {"observed": True}, plain
    yield "values .9 and 1.1", {}, valued(plain)
    yield f"{len(banned)} pairs banned", {"banned": banned}, plain


def valued(data):
    """The same sequences with values .9 and 1.1 in turn."""
    rows = data.sequences.rows
    rows = rows._replace(data=np.where(np.arange(rows.nnz) % 2, 1.1, 0.9))
    return replace(data, sequences=replace(data.sequences, rows=rows))


def seconds(settings, data, tol):
    model = make_model("chunk", tol=tol, **settings)
    start = time.process_time()
    model.fit_encoded(data)
    return time.process_time() - start, model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sentences", type=int)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    train = datasets.sentences("conll2000")[0]
    for _, settings, data in lanes(train[:FEW]):
        seconds(settings, data, options.tol)
    all_lanes, least = list(lanes(train[: options.sentences])), {}
    for _ in range(options.repeat):
        for name, settings, data in all_lanes:
            taken, model = seconds(settings, data, options.tol)
            least[name] = min(least.get(name, (np.inf,)), (taken, model.trace_[-1].passes))
    print("| lane | processor s | of all weights | passes |\n|---|--:|--:|--:|")
    for name, (taken, passes) in least.items():
        print(f"| {name} | {taken:.2f} | {taken / least['all weights'][0]:.2f} | {passes:.1f} |")


if __name__ == "__main__":
    main()
