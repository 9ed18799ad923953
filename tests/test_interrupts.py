"""Ctrl-C anywhere: a step either has happened or has not, and the certificate is of what there is."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fenchel
from fenchel import problems, solve, solvers
from fenchel.trace import Status

PACKAGE = str(Path(fenchel.__file__).parent / "solvers")


class InterruptAt:
    """Raises KeyboardInterrupt at the k-th line that the solvers run once a run is under way."""

    def __init__(self, k):
        self.left = k

    def __enter__(self):
        sys.settrace(self.call)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def call(self, frame, event, argument):
        inside = frame.f_code.co_filename.startswith(PACKAGE) and self._under_way(frame)
        return self.line if inside else None

    def _under_way(self, frame):
        """Whether the solver makes a step or is measured: before there is nothing to return, after it is."""
        while frame is not None and frame.f_code.co_name != "to_the_end":
            if frame.f_code.co_name in {"init", "_result"}:
                return False
            frame = frame.f_back
        return frame is not None

    def line(self, frame, event, argument):
        if event == "line":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.line


def chain(loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(14, 3)), rng.integers(0, 2, 14)
    return problems.chain(X, y, np.array([0, 3, 5, 9, 14]), C=5.0, loss=loss)


def flat(loss, free=False):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), rng.integers(0, 3, 12)
    return problems.flat(X, y, C=5.0, loss=loss, fit_intercept=free)


CASES = [
    ("hinge", solvers.CuttingPlane(slack="1")),
    ("hinge", solvers.CuttingPlane(slack="n")),
    ("hinge", solvers.CDOutputs()),
    ("hinge", solvers.SDCA()),
    ("hinge", solvers.EG()),
    ("hinge", solvers.SGD()),
    ("log", solvers.EG(anneal=10.0)),
    ("log", solvers.EG(batch=True)),
    ("log", solvers.EG(order="gap")),
    ("log", solvers.SDCA()),
    ("log", solvers.SAG()),
    ("log", solvers.LBFGS()),
    ("log", solvers.TRON()),
]


@pytest.mark.parametrize("make", [chain, flat], ids=["chain", "flat"])
@pytest.mark.parametrize("loss, solver", CASES, ids=lambda case: str(case).split("(")[0])
def test_an_interrupt_anywhere_returns_a_true_certificate(make, loss, solver):
    check_interrupts(make(loss), solver)


@pytest.mark.parametrize(
    "solver",
    [*(solver for loss, solver in CASES if loss == "log"), solvers.CDDual(), solvers.CDDual("newton")],
    ids=lambda case: str(case).split("(")[0],
)
def test_an_interrupt_anywhere_with_free_offsets_returns_a_true_certificate(solver):
    check_interrupts(flat("log", free=True), solver)


def check_interrupts(problem, solver):
    whole = solve(problem, solver, tol=1e-7, max_passes=300)
    for k in [*range(1, 60), *range(60, 600, 23)]:
        with InterruptAt(k) as trap:
            result = solve(problem, solver, tol=1e-7, max_passes=300, check_every=1)
        if trap.left > 0:
            break
        assert result.status is Status.INTERRUPTED
        assert result.certificate.dual <= whole.certificate.primal * (1.0 + 1e-12)
        value, _ = problem.value_at(result.w, result.b)
        assert value == pytest.approx(result.certificate.primal, rel=1e-10)


@pytest.mark.parametrize("k", range(1, 12))
def test_an_interrupt_while_a_model_is_kept_leaves_the_old_one_or_the_new(k):
    X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["X", "Y"], ["Y", "Y"]]
    model = fenchel.ChainCRF(solver="lbfgs", boundaries=True).fit(X, y)
    data = model.encode_training([[["c"], ["b"], ["d"]]], [["Z", "X", "Z"]])
    weights = np.ones(data.sequences.rows.n_columns * 2 + 4)
    tracer = InterruptAt(k)
    sys.settrace(lambda frame, *_: tracer.line if frame.f_code.co_filename.endswith("chain.py") else None)
    try:
        model.set_weights(data, weights)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    K, A = model.classes_.size, len(model.attribute_names_)
    assert model.weights_.size == A * K + K * K and model.coef_.shape == (K, A)
    assert len(model.predict(X)) == 2


INTERRUPTED_KERNELS = """
import os
import signal
from threading import Timer

import numpy as np

from fenchel.features import interning
from fenchel.features.arcs import ArcFeatures
from fenchel.features.interning import Grid, Plan
from fenchel.features.tokens import Tokens

zero = np.zeros(1, np.uint64)
plan = Plan(np.arange(2, dtype=np.uint64), zero, zero, zero, np.zeros(1, np.int64), zero, False)


def count(n):
    sentence = [(f"w{k}", f"t{k % 7}") for k in range(n)]
    ArcFeatures.learn(Tokens.from_sentences([sentence]), np.zeros(n, np.int64), observed=False)


def intern(n):
    grid = Grid(np.arange(n, dtype=np.uint32), np.array([0, n]), 0, n)
    numbers = np.empty((1, n), np.uint32)
    met = interning.intern_group(plan, grid, zero, interning.nothing_met(1), numbers)
    interning.renumber(numbers, zero, np.array([0, met.count], np.uint64), 1)


for learn, small, large in ((count, 3, 300), (intern, 3, 5_000_000)):
    learn(small)  # compiles
    Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        learn(large)
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_an_interrupt_while_features_are_counted_does_not_crash():
    program = [sys.executable, "-c", INTERRUPTED_KERNELS]
    finished = subprocess.run(program, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "interrupted\n" * 2
