"""Start-up in fresh processes: `import fenchel`, and a small fit with a warm and with a cold kernel cache.

    python benchmarks/startup.py [solver ...]
    python benchmarks/startup.py --first [word ...]

--first: processor seconds of the first fit and prediction of each kind of model on tiny data, or of those
whose names have one of these words, imports not counted, with an empty kernel cache and again with what it
then holds.

"over" is the wall time of the fit less its second run in the same process (the solving) and less the imports
of Numba and scikit-learn, measured in a process that does only these.
"""

import os
import subprocess
import sys
import tempfile
import time

IMPORT = "import time; t = time.perf_counter(); import fenchel; print(time.perf_counter() - t)"
LIBRARIES = (
    "import time; t = time.perf_counter(); import numba, sklearn.linear_model, sklearn.utils.validation; "
    "print(time.perf_counter() - t)"
)
FIT = """
import time, warnings; t = time.perf_counter()
warnings.simplefilter("ignore")
import numpy as np
from fenchel import LogisticRegression, solvers
rng = np.random.default_rng(0)
X = np.abs(rng.normal(size=(200, 20))); y = X @ rng.normal(size=20) > 0
model = LogisticRegression(solver="{solver}", fit_intercept={intercept}, max_iter=300)
model.fit(X, y); first = time.perf_counter() - t
t = time.perf_counter(); model.fit(X, y); print(first - (time.perf_counter() - t))
"""


FIRST = """
import time, warnings
warnings.simplefilter("ignore")
import numpy as np, numba, scipy.sparse, sklearn.linear_model, sklearn.utils.validation
import fenchel, fenchel.compat, fenchel.features.templates
X = np.random.default_rng(0).normal(size=(60, 3)); y = np.arange(60)
S = [[["a"], ["b"]], [["a"], ["c"]]] * 5; T = [["x", "y"], ["y", "x"]] * 5
W = [["the", "dog", "runs"], ["a", "cat", "sits"]] * 5; V = [["D", "N", "V"]] * 10; D = [[{{"a": 1}}]] * 10
G = [fenchel.Graph([["a"], ["b"], ["c"]], [(0, 1), (1, 2)])] * 10; L = [["x", "y", "x"], ["y", "y", "x"]] * 5
B = [[("a", "A"), ("b", "B"), ("c", "A")]] * 9; H = [[2, 0, 2]] * 9
E = [(np.ones((3, 20)), [[word] for word in words]) for words in W * 10]
P = fenchel.features.templates.parse_template("U:%x[0,0]\\nB\\nB:%x[0,0]", "crf++")
t = time.process_time(); {code}; print(time.process_time() - t)
"""
MODELS = {
    "LogisticRegression, two classes": "fenchel.LogisticRegression().fit(X, y % 2).predict(X)",
    "LogisticRegression, five classes": "fenchel.LogisticRegression().fit(X, y % 5).predict(X)",
    "LinearSVC": "fenchel.LinearSVC().fit(X, y % 2).predict(X)",
    "MaxEnt": "fenchel.MaxEnt().fit(W, [v[0] for v in V[:9]] + ['N']).predict(W)",
    "MaxEntTagger": "fenchel.MaxEntTagger().fit(W, V).predict(W)",
    "ChainCRF": "fenchel.ChainCRF().fit(S, T).predict(S)",
    "ChainCRF, observed": "fenchel.ChainCRF(observed=True).fit(S, T).predict(S)",
    "ChainCRF, banned": "fenchel.ChainCRF(banned=[('x', 'x')]).fit(S, T).predict(S)",
    "ChainCRF, lines B": "fenchel.ChainCRF(template=P).fit(W, V).predict(W)",
    "ChainCRF, vectors and words": "fenchel.ChainCRF().fit(E, V * 10).predict(E)",
    "ChainCRF, hinge": "fenchel.ChainCRF(loss='hinge').fit(S, T).predict(S)",
    "GraphCRF": "fenchel.GraphCRF().fit(G, L).predict(G)",
    "GraphCRF, hinge": "fenchel.GraphCRF(loss='hinge').fit(G, L).predict(G)",
    "DependencyParser": "fenchel.DependencyParser(min_count=1).fit(B, H).predict(B)",
    "DependencyParser, hinge": "fenchel.DependencyParser(min_count=1, loss='hinge').fit(B, H).predict(B)",
    "compat.CRF, c1": "fenchel.compat.CRF(c1=1, c2=1).fit(D, [['x'], ['y']] * 5).predict(D)",
}


def first_fits(words):
    """A line for each kind of model whose name has one of these words, where there are some."""
    print("| first fit and prediction | empty cache, processor s | full cache |\n|---|--:|--:|")
    chosen = {name: code for name, code in MODELS.items() if not words or any(w in name for w in words)}
    for name, code in chosen.items():
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (run(FIRST.format(code=code), cache)[0] for _ in range(2))
            print(f"| {name} | {cold:.1f} | {warm:.2f} |", flush=True)


def run(code, cache):
    """The number a fresh process prints, and its whole wall time."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout), time.perf_counter() - start


def main():
    from fenchel.solvers import SOLVERS

    if sys.argv[1:2] == ["--first"]:
        first_fits(sys.argv[2:])
        return

    with tempfile.TemporaryDirectory() as empty:
        print(f"import fenchel: {min(run(IMPORT, empty)[0] for _ in range(5)):.3f} s")
        libraries = min(run(LIBRARIES, empty)[0] for _ in range(5))
        print(f"imports of Numba and scikit-learn: {libraries:.2f} s\n")
    print("| solver | cold cache, s | warm cache, s | warm, over |\n|---|---|---|---|")
    for solver in sys.argv[1:] or SOLVERS:
        with tempfile.TemporaryDirectory() as cache:
            code = FIT.format(solver=solver, intercept=True)
            cold = run(code, cache)[0]
            warm = min(run(code, cache)[0] for _ in range(3))
            print(f"| {solver} | {cold:.2f} | {warm:.2f} | {warm - libraries:.2f} |")


if __name__ == "__main__":
    main()
