"""Dependency parsing: passes, seconds, attachment scores and throughput on three treebanks.

    FENCHEL_DATA=... python benchmarks/parsing.py solvers | spanish | wsj | ewt | speed | first

solvers: all of them on 200 sentences, one optimum. spanish, wsj, ewt: C by held-out sentences, then the test
set. speed: sentences a second, one core. first: what a first fit with an empty cache takes.
"""

import os
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
from fenchel.io.treebanks import read_treebank
from fenchel.loop import solve

DATA = Path(os.environ.get("FENCHEL_DATA", "data"))
HELD_OUT = 591  # sentences of the Spanish training set


def projective(found):
    """Sentences and heads of the trees whose arcs do not cross."""
    keep = [i for i, heads in enumerate(found.heads) if trees.is_projective(heads)]
    return found.tokens[keep], [found.heads[i] for i in keep]


def spanish(part="train"):
    return projective(read_treebank(DATA / f"conll2007/esp.{part}.gz"))


def ewt(part="train"):
    return projective(read_treebank(DATA / f"ud_english_ewt/en_ewt-ud-{part}.conllu.gz"))


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
        return projective(read_treebank(file.name))


def run_solvers():
    """All solvers on the first 200 Spanish sentences: the log loss to 1e-5, the hinge loss to 1 %."""
    tokens, heads = spanish()
    tokens, heads = tokens[:200], heads[:200]
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
                result = solve(problem, name, tol=tol, max_passes=most, max_seconds=120)
            took, found = time.process_time() - began, result.certificate
            print(
                f"{loss:5} {name:13} P {found.primal:.6f}  gap {found.relative_gap:8.1e}  "
                f"{found.passes:7.1f} passes {took:7.2f} s  {result.status.value}",
                flush=True,
            )


def run_treebank(load, test, held_out, constants):
    """The C that is best on held-out sentences of the training set, and the test set with it."""
    tokens, heads = load()
    cut = len(heads) - held_out
    scores = {}
    for C in constants:
        model = fitted(tokens[:cut], heads[:cut], C)
        scores[C] = model.score(tokens[cut:], heads[cut:])
        tell(f"C = {C:g}, held out", model, scores[C])
    best = max(scores, key=scores.get)
    model = fitted(tokens, heads, best)
    other, truth = test()
    tell(f"C = {best:g}, test set", model, model.score(other, truth))
    tell("... minimum Bayes risk", model, share(model.predict(other, decoding="mbr"), truth))


def fitted(tokens, heads, C):
    model, began = DependencyParser(C=C, tol=1e-2, n_jobs=1), time.process_time()
    data = model.encode_training(tokens, heads)
    model.read_seconds = time.process_time() - began
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit_encoded(data)
    model.seconds = time.process_time() - began
    return model


def share(found, truth):
    pairs = [a == b for one, two in zip(found, truth, strict=True) for a, b in zip(one, two, strict=True)]
    return float(np.mean(pairs))


def tell(what, model, score):
    certificate = model.certificate_
    print(
        f"{what:25} UAS {100 * score:.2f}  {model.coef_.size:,} features  {certificate.passes:.1f} passes "
        f"({model.trace_.solver}), gap {certificate.relative_gap:.2e}, {model.seconds:.1f} s, "
        f"features {model.read_seconds:.1f} s",
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


RUNS = {
    "solvers": run_solvers,
    "spanish": lambda: run_treebank(spanish, lambda: spanish_test(), HELD_OUT, (0.05, 0.1, 0.2, 0.4)),
    "wsj": lambda: run_treebank(wsj, lambda: wsj("test"), 300, (0.1, 0.3, 1.0)),
    "ewt": lambda: run_treebank(ewt, lambda: ewt("test"), 1000, (0.3,)),
    "speed": run_speed,
    "first": run_first,
}


def spanish_test():
    """All of it, trees whose arcs cross included."""
    found = read_treebank(DATA / "conll2007/esp.test.gz")
    return found.tokens, found.heads


if __name__ == "__main__":
    RUNS[sys.argv[1]]()
