"""Dependency parsing: passes, seconds, attachment scores and throughput on three treebanks.

    FENCHEL_DATA=... python benchmarks/parsing.py solvers | spanish | wsj | ewt | speed | first

solvers: all of them on 200 sentences, one optimum. spanish, wsj, ewt: features, C and decoding by held-out
sentences, then the test set. speed: sentences a second, one core. first: what a first fit with an
empty cache takes.
"""

import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fenchel import DependencyParser, trees
from fenchel.estimators.parser import DECODINGS
from fenchel.io.treebanks import read_treebank
from fenchel.loop import solve

DATA = Path(os.environ.get("FENCHEL_DATA", "data"))
HELD_OUT = 591  # sentences of the Spanish training set


def conll(name):
    """Sentences and heads of a treebank, trees whose arcs cross included: a fit leaves them out."""
    found = read_treebank(DATA / name)
    return found.tokens, found.heads


def without_crossing(heads):
    """The numbers of the trees whose arcs do not cross."""
    return [i for i, found in enumerate(heads) if trees.is_projective(found)]


def spanish(part="train"):
    return conll(f"conll2007/esp.{part}.gz")


def ewt(part="train"):
    return conll(f"ud_english_ewt/en_ewt-ud-{part}.conllu.gz")


def wsj(part="train"):
    """The sample of the Penn Treebank: the last fifth of its files is the test set."""
    with tarfile.open(DATA / "dependency_treebank/dependency_treebank.tar.gz") as archive:
        names = sorted(name for name in archive.getnames() if name.endswith(".dp"))
        cut = int(0.8 * len(names))
        chosen = names[:cut] if part == "train" else names[cut:]
        text = b"\n".join(archive.extractfile(name).read() for name in chosen)
    with tempfile.NamedTemporaryFile(suffix=".dp") as file:
        file.write(text)
        file.flush()
        return conll(file.name)


def run_solvers():
    """All solvers on the first 200 Spanish sentences: the log loss to 1e-5, the hinge loss to 1 %."""
    tokens, heads = spanish()
    first = without_crossing(heads)[:200]
    tokens, heads = tokens[first], [heads[i] for i in first]
    names = {
        "log": ("lbfgs", "eg", "eg-gap", "eg-batch", "sag", "sag-nus", "sgd"),
        "hinge": ("eg", "sdca", "cutting-plane", "cd-outputs", "sgd"),
    }
    for loss, solvers in names.items():
        model = DependencyParser(C=0.1, loss=loss, n_jobs=1)
        problem = model.problem(model.encode_training(tokens, heads))
        for name in solvers:
            tol = (1e-5 if name != "sgd" else 1e-2) if loss == "log" else 1e-2
            for most in (1, 2000):  # the first run compiles
                began = time.process_time()
                result = solve(problem, name, tol=tol, max_passes=most, max_seconds=60)
            took, found = time.process_time() - began, result.certificate
            print(
                f"{loss:5} {name:13} P {found.primal:.6f}  gap {found.relative_gap:8.1e}  "
                f"{found.passes:7.1f} passes {took:7.2f} s  {result.status.value}",
                flush=True,
            )


def run_treebank(train, held_out, test, features, constants):
    """Features, C and decoding that are best on held-out sentences, and the test set with them, once.

    held_out: sentences and heads, or how many of the last training sentences; all are trained on at the end.
    """
    tokens, heads = train()
    whole = tokens, heads
    if isinstance(held_out, int):
        held_out = tokens[-held_out:], heads[-held_out:]
        tokens, heads = tokens[: -len(held_out[1])], heads[: -len(held_out[1])]
    found = {}
    for settings in features:
        model = DependencyParser(tol=1e-2, n_jobs=1, warm_start=True, **settings)
        data = model.encode_training(tokens, heads)
        for C in constants:
            fit(model.set_params(C=C), data)
            for decoding in DECODINGS:
                score = share(model.predict(held_out[0], decoding=decoding), held_out[1])
                found[score] = {"C": C, **settings}, decoding
                print(f"held out {settings} C {C:g} {decoding:4}: UAS {100 * score:.2f}", flush=True)
    settings, chosen = found[max(found)]
    print(f"chosen: {settings}, {chosen}", flush=True)
    model, began = DependencyParser(tol=1e-2, n_jobs=1, **settings), time.process_time()
    data = model.encode_training(*whole)
    reading, began = time.process_time() - began, time.process_time()
    fit(model, data)
    tell(model, reading, time.process_time() - began)
    other, truth = test()
    straight = without_crossing(truth)
    for decoding in DECODINGS:
        guessed = model.predict(other, decoding=decoding)
        some = share([guessed[i] for i in straight], [truth[i] for i in straight])
        print(
            f"test {decoding:4}: UAS {100 * share(guessed, truth):.2f} of {len(truth)} sentences, "
            f"{100 * some:.2f} of the {len(straight)} without arcs that cross",
            flush=True,
        )


def fit(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit_encoded(data)


def share(found, truth):
    pairs = [a == b for one, two in zip(found, truth, strict=True) for a, b in zip(one, two, strict=True)]
    return float(np.mean(pairs))


def tell(model, reading, training):
    found = model.certificate_
    print(
        f"{model.coef_.size:,} features, {len(model.left_out_)} sentences left out, {model.trace_.solver}: "
        f"{found.passes:.1f} passes, gap {found.relative_gap:.2e}, training {training:.1f} s, features "
        f"{reading:.1f} s, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB",
        flush=True,
    )


def run_speed():
    """Marginals a second on Spanish sentences of 25 words on average: features indexed, and extracted."""
    tokens, heads = spanish()
    model = DependencyParser(C=0.1, tol=0.1, n_jobs=1).fit(tokens[:500], heads[:500])
    some = tokens[1000:2000]
    problem = model.problem(model.encode_training(some, heads[1000:2000]))
    scores = problem.scores(np.zeros(problem.dim))
    problem.marginals(scores)
    began = time.process_time()
    problem.marginals(problem.scores(np.ones(problem.dim)))
    indexed = time.process_time() - began
    model.predict_marginals(some[:5])
    began = time.process_time()
    model.predict_marginals(some)
    extracted = time.process_time() - began
    words = some.n_tokens / len(some)
    print(f"{len(some)} sentences of {words:.1f} words: {len(some) / indexed:.0f} a second with features")
    print(f"indexed, {len(some) / extracted:.0f} a second extracting them")


def run_first():
    """The processor seconds of a first fit and prediction in a process with an empty cache."""
    program = (
        "import time; from fenchel import DependencyParser as D; began = time.process_time()\n"
        "X, y = [[('a', 'A'), ('b', 'B'), ('c', 'A')]] * 9, [[2, 0, 2]] * 9\n"
        "D(min_count=1).fit(X, y).predict(X); print(f'{time.process_time() - began:.1f} s')"
    )
    with tempfile.TemporaryDirectory() as folder:
        settings = os.environ | {"NUMBA_CACHE_DIR": folder}
        subprocess.run([sys.executable, "-c", program], env=settings, check=True)


ALL_ARCS = [{"observed": False, "min_count": least} for least in (2, 3, 5)]
TRUE_ARCS = [{"observed": True, "min_count": least} for least in (1, 2)]
RUNS = {
    "solvers": run_solvers,
    "spanish": lambda: run_treebank(
        spanish, HELD_OUT, lambda: spanish("test"), ALL_ARCS + TRUE_ARCS, (0.05, 0.1, 0.2, 0.4)
    ),
    "wsj": lambda: run_treebank(wsj, 300, lambda: wsj("test"), ALL_ARCS[1:] + TRUE_ARCS[:1], (0.1, 0.3, 1.0)),
    "ewt": lambda: run_treebank(ewt, ewt("dev"), lambda: ewt("test"), ALL_ARCS[1:2], (0.1, 0.3)),
    "speed": run_speed,
    "first": run_first,
}


if __name__ == "__main__":
    RUNS[sys.argv[1]]()
