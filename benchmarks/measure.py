"""What the benchmarks measure: objective, a reference optimum, and seconds to reach a target.

P(w) = C sum_i loss_i(w) + 1/2 ||w||^2 is 1-strongly convex, so P(w) - P* is at most
||grad P(w)||^2 / 2. The excess of w is (P(w) - P*) / P*, a pure number; times are wall-clock seconds.
Nothing here is fenchel's: the same few lines of NumPy judge all solvers.
"""

import os
import platform
import time
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, logsumexp, softmax

from datasets import CACHE

PACKAGES = ("fenchel", "numpy", "scipy", "numba", "scikit-learn", "liblinear-official", "cyanure", "nltk")


@dataclass(frozen=True)
class Problem:
    """Examples X (n, d), labels y (n,), and the constant C."""

    X: object
    y: np.ndarray
    C: float

    def excess(self, best, w):
        """(P(w) - P*) / P*, where P* = best."""
        return (self.value(w) - best) / best

    def __str__(self):
        return f"C = {self.C:g} ({self.X.shape[0]:,} x {self.X.shape[1]:,}, {self.X.nnz:,} non-zeros"


class Binary(Problem):
    """loss_i(w) = log(1 + exp(-y_i w.x_i)), y_i = -1 or +1, w (d,)."""

    @property
    def shape(self):
        return self.X.shape[1:]

    def value(self, w):
        """P(w); margins of any size are safe."""
        return self.C * np.logaddexp(0.0, -self.y * (self.X @ w)).sum() + 0.5 * (w @ w)

    def derivatives(self, w):
        """(grad P(w), v -> Hessian times v, the Hessian's diagonal)."""
        X, y, C = self.X, self.y, self.C
        p = expit(-y * (X @ w))
        d = C * p * (1.0 - p)
        return w - C * (X.T @ (y * p)), lambda v: v + X.T @ (d * (X @ v)), 1.0 + X.power(2).T @ d


class Multinomial(Problem):
    """loss_i(W) = log sum_k exp(s_ik) - s_iy_i, where s_i = x_i W and y_i = 0, ..., K - 1; W (d, K)."""

    @property
    def shape(self):
        return self.X.shape[1], int(self.y.max()) + 1

    def value(self, W):
        """P(W); scores of any size are safe."""
        S = self.X @ W
        losses = logsumexp(S, axis=1) - S[np.arange(self.y.size), self.y]
        return self.C * losses.sum() + 0.5 * np.vdot(W, W)

    def derivatives(self, W):
        """(grad P(W), V -> Hessian times V, the Hessian's diagonal)."""
        X, C = self.X, self.C
        p = softmax(X @ W, axis=1)
        residual = p.copy()
        residual[np.arange(self.y.size), self.y] -= 1.0

        def product(V):
            S = X @ V
            return V + C * (X.T @ (p * (S - np.einsum("ik,ik->i", p, S)[:, None])))

        return W + C * (X.T @ residual), product, 1.0 + C * (X.power(2).T @ (p * (1.0 - p)))


def newton_step(g, product, diagonal, forcing):
    """Solve Hessian times step = -g to a relative residual `forcing`, by conjugate gradients.

    Features may occur five times or a hundred thousand times: dividing by the diagonal makes up for that.
    """
    flat = partial(LinearOperator, (g.size, g.size), dtype=np.float64)
    hessian = flat(matvec=lambda v: product(v.reshape(g.shape)).ravel())
    scale = flat(matvec=lambda v: v / diagonal.ravel())
    return cg(hessian, -g.ravel(), rtol=forcing, maxiter=2000, M=scale)[0].reshape(g.shape)


def backtrack(problem, w, g, step):
    """w plus the first of step, step/2, ... that lowers P by Armijo's rule; w itself if none does."""
    value, slope = problem.value(w), np.vdot(g, step)
    for halvings in range(40):
        rate = 0.5**halvings
        # The slack lets full steps pass near the optimum, where the decrease is below rounding.
        if problem.value(w + rate * step) <= value + 1e-4 * rate * slope + 1e-14 * value:
            return w + rate * step
    return w


def optimum(problem, precision=1e-13, max_iter=200):
    """(w, P(w)) with a certified excess ||g||^2 / 2 <= precision * P(w), by truncated Newton."""
    w = np.zeros(problem.shape)
    first = None
    for _ in range(max_iter):
        g, product, diagonal = problem.derivatives(w)
        norm = np.linalg.norm(g)
        first = first or norm
        value = problem.value(w)
        if 0.5 * norm**2 <= precision * value:
            return w, value
        step = newton_step(g, product, diagonal, min(0.1, np.sqrt(norm / first)))
        w = backtrack(problem, w, g, step)
    raise RuntimeError(
        f"truncated Newton stopped at a gap of {0.5 * norm**2 / value:.1e}, wanted {precision:.1e}"
    )


def reference(problem, name, precision=1e-13):
    """The optimal value P* of set `name`, proven to a relative `precision`, kept beside the cached sets."""
    path = CACHE / f"{name}-optimum-C{problem.C:g}.npz"
    if path.exists():
        return float(np.load(path)["value"])
    w, value = optimum(problem, precision)
    CACHE.mkdir(parents=True, exist_ok=True)
    np.savez(path, value=value, w=w)
    return float(value)


@dataclass(frozen=True)
class Timing:
    """How fast a target was reached: best seconds, tolerance given, worst excess; or why it was not."""

    target: float
    seconds: float | None = None
    tolerance: float | None = None
    excess: float | None = None
    reason: str = ""


clock = time.perf_counter  # what a second is; a script may say time.process_time instead


def timed(fit, tol):
    """(seconds, w) of one whole fit."""
    start = clock()
    w = fit(tol)
    return clock() - start, w


def seconds_to(fit, excess, tolerances, targets=(1e-3, 1e-6), repeat=3, patience=20.0, stride=1):
    """One Timing per target, at the loosest tolerance that reaches it in all of `repeat` runs.

    fit(tol) -> w; excess(w) -> (P(w) - P*) / P*; targets and tolerances run from loose to tight. A
    tolerance is tried by a single run, and repeated if that run reaches a target; the time is
    the best of the runs, the excess the worst. The walk goes `stride` tolerances at a time; at the first
    success it goes back to those left out. It ends when a run takes over `patience` seconds and still fails.
    """
    walk = _Walk(fit, excess, tolerances, repeat, patience)
    found, k = [], 0
    for target in targets:
        try:
            k = walk.loosest(target, k, stride)
        except NotReached as error:
            return found + [Timing(left, reason=str(error)) for left in targets[len(found) :]]
        best, worst = min(run[0] for run in walk.runs[k]), max(run[1] for run in walk.runs[k])
        found.append(Timing(target, best, tolerances[k], worst))
    return found


class NotReached(Exception):
    """Why a solver did not reach a target."""


class _Walk:
    """The runs at each tolerance tried, (seconds, excess) each, so that none is made twice."""

    def __init__(self, fit, excess, tolerances, repeat, patience):
        self.fit, self.excess, self.tolerances = fit, excess, tolerances
        self.repeat, self.patience = repeat, patience
        self.runs = {}

    def loosest(self, target, start, stride):
        """The index of the loosest tolerance, from `start` on, that reaches the target."""
        for low in range(start, len(self.tolerances), stride):
            high = min(low + stride, len(self.tolerances))
            if self.reaches(target, high - 1):
                return next(k for k in range(low, high) if self.reaches(target, k))
        raise NotReached("not reached at any tolerance")

    def reaches(self, target, k):
        """Do all runs at tolerance k reach the target? One that does not ends the question."""
        if k not in self.runs:
            self.runs[k] = [self.once(k)]
        runs = self.runs[k]
        seconds, excess = runs[0]
        if excess <= target:
            runs += [self.once(k) for _ in range(self.repeat - len(runs))]
        elif seconds > self.patience:
            tol = self.tolerances[k]
            raise NotReached(
                f"> {self.patience:g} s at tolerance {tol:.0e}, where the excess was {excess:.0e}"
            )
        return max(run[1] for run in runs) <= target

    def once(self, k):
        seconds, w = timed(self.fit, self.tolerances[k])
        return seconds, self.excess(w)


def machine():
    """The machine and the versions the times belong to: no host name, no path."""
    facts = {"CPU": cpu_model(), "cores": str(os.cpu_count()), "system": platform.system()}
    facts["Python"] = platform.python_version()
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def cpu_model():
    """The processor's name as the system gives it."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
