"""The settings that people bring from sklearn-crfsuite: dict tokens, observed weights, c1 and c2.

    python benchmarks/tutorial.py [--set ner] [--sentences N] [--iterations 100] [--repeat 1] [--limits]

For each pair of constants python-crfsuite trains for so many iterations of L-BFGS (OWL-QN with c1), as
sklearn-crfsuite calls it, from dict tokens to the model; then fenchel.compat.CRF is fitted to the same
tokens, with kernels loaded, to a proven 1e-3. Seconds are of the wall clock, of whole calls, one after the
other. P = sum loss + c1 |w|_1 + c2 |w|^2, as CRFsuite logs it; "to its P" is when fenchel is there, seen in a
second fit that is checked after every pass, where the clock of training stands still meanwhile. "encoding" is
what CRFsuite's append does, from dicts to numbers; "rest" is all else of the call that is not training: the
counts of pairs, the problem, certificates, the model. Both, of the first fit, are added for the whole.
--repeat: so many lines each; the first fit of a process also pays for its memory, up to half a second where
the system has to make room for large pages.
--limits: what an iteration of CRFsuite and a pass of fenchel take with max_iterations of 10, 50 and 100,
without reading tokens, in processor seconds; fenchel with tol=0, so that it makes them all.
"""

import argparse
import tempfile
import time
from functools import partial
from itertools import product
from pathlib import Path
from unittest.mock import patch

from datasets import sentences
from fenchel import ChainCRF, solve
from fenchel.compat import CRF
from rivals import CRFsuite, open_tagger

CONSTANTS = ((0.1, 0.1), (0.0, 1.0), (1.0, 1e-3))


def features(sentence, i):
    """A token as a dict: word, its ends and case, tag; the same of its neighbours, shorter."""
    word, tag = sentence[i][0], sentence[i][1]
    token = {
        "bias": 1.0,
        "low": word.lower(),
        "end3": word[-3:],
        "end2": word[-2:],
        "upper": word.isupper(),
        "title": word.istitle(),
        "digit": word.isdigit(),
        "tag": tag,
        "tag2": tag[:2],
    }
    for name, j in (("-1", i - 1), ("+1", i + 1)):
        if 0 <= j < len(sentence):
            other, tag = sentence[j][0], sentence[j][1]
            token[f"{name}:low"] = other.lower()
            token[f"{name}:title"] = other.istitle()
            token[f"{name}:upper"] = other.isupper()
            token[f"{name}:tag"] = tag
            token[f"{name}:tag2"] = tag[:2]
        else:
            token["BOS" if j < 0 else "EOS"] = True
    return token


def tokens_of(corpus, most):
    """(X, y): dict tokens and labels of the first sentences."""
    X, y = [], []
    for sentence in list(corpus.sentences())[:most]:
        X.append([features(sentence, i) for i in range(len(sentence))])
        y.append([token[-1] for token in sentence])
    return X, y


def rival(X, y, test, c1, c2, iterations, path):
    """(seconds of all, of append, of training, objective, seconds of tagging) of python-crfsuite."""
    start = time.perf_counter()
    crfsuite = CRFsuite(observed=True)
    for sentence, labels in zip(X, y, strict=True):
        crfsuite.append(sentence, labels)
    appended = time.perf_counter() - start
    options = {"c1": c1, "c2": c2, "max_iterations": iterations, "feature.possible_transitions": 1}
    log = crfsuite.train(path, "lbfgs", **options)
    whole = time.perf_counter() - start
    tagger, start = open_tagger(path), time.perf_counter()
    for sentence in test:
        tagger.tag(sentence)
    return whole, appended, whole - appended, log.steps[-1][1], time.perf_counter() - start


class Encoding:
    """ChainCRF.encode_training, and the seconds it took."""

    def __init__(self):
        self.encode, self.seconds = ChainCRF.encode_training, 0.0

    def __call__(self, *args, **kwargs):
        start = time.perf_counter()
        data = self.encode(*args, **kwargs)
        self.seconds = time.perf_counter() - start
        return data


def ours(X, y, test, c1, c2, iterations):
    """The model, and seconds of fit, of the encoding in it, and of predict."""
    model = CRF(
        algorithm="lbfgs", c1=c1, c2=c2, max_iterations=iterations, all_possible_transitions=True, tol=1e-3
    )
    encoding = Encoding()
    start = time.perf_counter()
    with patch.object(ChainCRF, "encode_training", lambda *args, **kwargs: encoding(*args, **kwargs)):
        model.fit(X, y)
    fitted = time.perf_counter() - start
    start = time.perf_counter()
    model.predict(test)
    return model, fitted, encoding.seconds, time.perf_counter() - start


def line(X, y, test, c1, c2, iterations):
    with tempfile.TemporaryDirectory() as folder:
        theirs = rival(X, y, test, c1, c2, iterations, Path(folder) / "model")
    ours(X[:50], y[:50], test[:5], c1, c2, 2)  # kernels
    model, fitted, encoded, predicted = ours(X, y, test, c1, c2, iterations)
    with patch(
        "fenchel.compat.crf.solve", partial(solve, check_every=1.0)
    ):  # the clock stands still meanwhile
        trace = ours(X, y, test[:1], c1, c2, iterations)[0].trace_
    n, certificate = len(X), model.certificate_
    besides = fitted - certificate.seconds
    reached = next((row.seconds for row in trace if n * row.primal <= theirs[3]), float("nan"))
    whole, append, training, value, tagged = theirs
    numbers = f"{whole:.1f}", f"{append:.2f}", f"{value:.0f}", f"{fitted:.1f}", f"{encoded:.2f}"
    numbers += f"{besides - encoded:.2f}", f"{n * certificate.primal:.0f}", f"{certificate.relative_gap:.1e}"
    numbers += f"{besides + reached:.1f}", f"{whole / (besides + reached):.1f}", f"{training / reached:.1f}"
    numbers += f"{tagged:.2f}", f"{predicted:.2f}"
    return f"| {c1:g}, {c2:g} | " + " | ".join(numbers) + " |"


def limits(X, y):
    """Processor seconds of an iteration and of a pass, whatever their number."""
    print(
        "| c1, c2 | max_iterations | CRFsuite s an iteration | P | fenchel s a pass | P |\n|---|" + "--:|" * 5
    )
    CRF(c1=0.1, c2=0.1, max_iterations=2).fit(X[:50], y[:50])  # kernels
    for (c1, c2), most in product(CONSTANTS, (10, 50, 100)):
        crfsuite = CRFsuite(observed=True)
        for sentence, labels in zip(X, y, strict=True):
            crfsuite.append(sentence, labels)
        options = {"c1": c1, "c2": c2, "max_iterations": most, "feature.possible_transitions": 1}
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            steps = crfsuite.train(Path(folder) / "model", "lbfgs", **options).steps
            theirs = (time.process_time() - start) / len(steps)
        model = CRF(c1=c1, c2=c2, max_iterations=most, all_possible_transitions=True, tol=0.0)
        fitting = timed(lambda model=model: model.fit(X, y))
        reading = timed(lambda model=model: model.chain_.encode(X))
        certificate = model.certificate_
        ours = (fitting - reading) / certificate.passes
        values = f"{theirs:.3f} | {steps[-1][1]:.0f} | {ours:.3f} | {len(X) * certificate.primal:.0f}"
        print(f"| {c1:g}, {c2:g} | {most} | {values} |", flush=True)


def timed(task):
    """Processor seconds."""
    start = time.process_time()
    task()
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--set", default="ner")
    parser.add_argument("--sentences", type=int, default=None)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--limits", action="store_true")
    given = parser.parse_args()
    train, held_out = sentences(given.set)
    (X, y), (test, _) = tokens_of(train, given.sentences), tokens_of(held_out, None)
    if given.limits:
        return limits(X, y)
    print(f"{given.set}: {len(X):,} sentences, {given.iterations} iterations; {len(test):,} to predict\n")
    heads = "c1, c2", "CRFsuite s", "append s", "P", "fenchel s", "encoding s", "rest s", "P"
    heads += "proven", "to its P s", "whole ratio", "training ratio", "tag s", "predict s"
    print("| " + " | ".join(heads) + " |\n|---|" + "--:|" * (len(heads) - 1))
    for (c1, c2), _ in product(CONSTANTS, range(given.repeat)):
        print(line(X, y, test, c1, c2, given.iterations), flush=True)


if __name__ == "__main__":
    main()
