"""Start-up in fresh processes: `import fenchel`, and a small fit with a warm and with a cold kernel cache.

    python benchmarks/startup.py [solver ...]

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
