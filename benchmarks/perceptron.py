"""Averaged perceptrons of fenchel and CRFsuite, on the same attributes.

    python benchmarks/perceptron.py [--set conll2000] [--sentences N] [--passes 1,2,5,10,20]

For each number of passes both are trained from the start, python-crfsuite's `ap` and ChainCRF with
solver="perceptron", on the attributes of the preset `chunk` with observed weights. Seconds are processor
seconds of training alone, attributes read and kernels loaded; F1 is of spans of the test set.
"""

import argparse
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from pycrfsuite import Tagger, Trainer

from datasets import sentences
from fenchel import ChainCRF
from fenchel.spans import span_scores


def timed(task):
    start = time.process_time()
    result = task()
    return result, time.process_time() - start


def named(model, tokens):
    """The names of the attributes of each token, for CRFsuite."""
    data, names = model.encode(tokens), model.attribute_names_
    rows, starts = data.rows.indptr.astype(int).tolist(), data.starts.astype(int).tolist()
    each = [[names[k] for k in data.rows.indices[a:b]] for a, b in pairwise(rows)]
    return [each[a:b] for a, b in pairwise(starts)]


def rival(X, y, test, passes, path):
    """(labels of the test set, seconds of training) of CRFsuite."""
    trainer = Trainer("ap", {"max_iterations": passes}, verbose=False)
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, labels)
    _, seconds = timed(lambda: trainer.train(str(path)))
    tagger = Tagger()
    tagger.open(str(path))
    return [tagger.tag(x) for x in test], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--set", default="conll2000")
    parser.add_argument("--sentences", type=int, default=None)
    parser.add_argument("--passes", default="1,2,5,10,20")
    given = parser.parse_args()
    (train, labels), (held_out, truth) = (part.without_last() for part in sentences(given.set))
    train, labels = train[: given.sentences], labels[: given.sentences]
    y, gold = ([[t[0] for t in s] for s in part.sentences()] for part in (labels, truth))

    def model(passes):
        return ChainCRF(template="chunk", observed=True, solver="perceptron", max_iter=passes)

    model(1).fit(train[:50], labels[:50]).predict(held_out[:5])  # kernels
    data = model(1).encode_training(train, labels)
    first = model(1).fit_encoded(data)
    X, test = named(first, train), named(first, held_out)
    print("| passes | CRFsuite s | F1 | fenchel s | F1 |\n|--:|--:|--:|--:|--:|")
    for passes in map(int, given.passes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            theirs, seconds = rival(X, y, test, passes, Path(folder) / "model")
        ours, own = timed(lambda n=passes: model(n).fit_encoded(data))
        scores = [100 * span_scores(gold, found).f1 for found in (theirs, ours.predict(held_out))]
        print(f"| {passes} | {seconds:.2f} | {scores[0]:.2f} | {own:.2f} | {scores[1]:.2f} |", flush=True)
    print(f"\n{ours.certificate_}")


if __name__ == "__main__":
    main()
