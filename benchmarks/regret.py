"""How much solver="auto" leaves to be desired: its time over that of the best solver, ours and others'.

    python benchmarks/regret.py [--seconds 30] [--only 12 13] [--precision 1e-3] [--no-rivals] [--hinge]
                                [--ours auto lbfgs] [--processor] [--seed 2026]

A grid of made-up problems: n from 200 to 200,000, d from 5 to 100,000, 2 to 100 classes, dense to 1 % of
non-zeros, C from .01 to 100, standardised, raw, or with one huge column, with and without intercept,
separable and not. Each is fitted by `LogisticRegression` with every solver that may be the right one, and by
scikit-learn's and Cyanure, from the user's arrays to the model, kernels loaded. Ours stop at a proven gap of
`--precision`; a rival is run at ever tighter tolerances until its objective is within that of the optimum,
and the run that got there counts. So there are two ratios: "proof", our time until that is proven, which no
rival does, over the rival's; and "objective", for which our tolerances too go down from 0.1 until the
objective is there. The optimum is the best of ours and of a run to a hundredth of the precision, not timed.
What a solver has not solved in --seconds counts as "-", and as a ratio of 0 where that is the rival.
--processor counts the seconds of all processors instead of those of a clock on the wall: for cores that have
other work to do, with OMP_NUM_THREADS=1.
"""

import argparse
import signal
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from fenchel import LinearSVC, LogisticRegression

OURS = ("auto", "cd-dual", "lbfgs", "tron", "newton")
OURS_HINGE = ("auto", "cd-dual", "sdca", "eg-gap")
LOOSER = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)  # tolerances, tried in this order
LIMIT = 4e8  # numbers of a Hessian beyond which a solver that makes one is not tried


@dataclass(frozen=True)
class Problem:
    """What a problem of the grid is made from."""

    n: int
    d: int
    classes: int
    density: float
    C: float
    scales: str  # "standard", "raw" or "huge column"
    intercept: bool
    separable: bool
    seed: int

    def __str__(self):
        kind = "dense" if self.density == 1.0 else f"{100 * self.density:g} %"
        more = " separable" * self.separable + " no intercept" * (not self.intercept)
        return f"{self.n} x {self.d} {kind}, K {self.classes}, C {self.C:g}, {self.scales}{more}"

    def data(self):
        """X, dense or CSR, and y (n,)."""
        rng = np.random.default_rng(self.seed)
        if self.density == 1.0:
            X = rng.standard_normal((self.n, self.d))
        else:
            X = sp.random(self.n, self.d, self.density, "csr", rng=rng, data_rvs=rng.standard_normal)
        means = rng.standard_normal((self.d, self.classes)) / np.sqrt(self.d * self.density)
        scores = (8.0 if self.separable else 2.0) * np.asarray(X @ means)
        if not self.separable:
            scores += rng.gumbel(size=scores.shape)
        y = scores.argmax(axis=1)
        y[: self.classes] = np.arange(self.classes)  # each class occurs
        return self._scaled(X, rng), y

    def _scaled(self, X, rng):
        if self.scales == "standard":
            return X
        if self.scales == "raw":  # counts of 0 to 15, far from centred
            factors = np.exp(rng.normal(size=self.d))
            if self.density == 1.0:
                return np.clip(np.round(4.0 * X + 7.5), 0.0, 15.0) * factors
            X.data = 1.0 + np.abs(np.round(3.0 * X.data))
            return sp.csr_matrix(X.multiply(factors))
        factors = np.ones(self.d)
        factors[0] = 1e4
        return X * factors if self.density == 1.0 else sp.csr_matrix(X.multiply(factors))


def grid(seed=2026):
    """At least 60 problems that a laptop can do; the same ones each time."""
    rng = np.random.default_rng(seed)
    sizes = [(200, 5), (200, 100), (500, 3000), (1000, 20), (2000, 500), (5000, 50), (20000, 16)]
    sizes += [(20000, 200), (60000, 20), (200000, 30), (3000, 20000), (10000, 100000), (100000, 5000)]
    made = []
    for n, d in sizes:
        for k in range(5):
            classes = int(rng.choice([2, 2, 3, 10, 30, 100]))
            density = float(rng.choice([1.0, 1.0, 0.1, 0.01]))
            if n * d * density > 1.2e7:
                density = 0.01 if d > 1000 or n * d > 1.2e8 else 0.1
            if d < 50 and density < 1.0:
                density = 1.0 if d < 20 else 0.1
            while n * d * density * classes > 4e8 or d * classes > 2e6 or classes * 4 > n:
                classes = max(2, classes // 3)
            scales = str(rng.choice(["standard", "standard", "raw", "huge column"]))
            C, intercept = float(rng.choice([0.01, 1.0, 100.0])), bool(rng.random() < 0.7)
            separable = bool(rng.random() < 0.25)
            made.append(
                Problem(n, d, classes, density, C, scales, intercept, separable, 100 * n + k + seed - 2026)
            )
    return made


def objective(X, y, C, coef, intercept, hinge=False):
    """C sum of losses + 1/2 ||w||^2, in plain NumPy."""
    scores = np.asarray(X @ coef.T) + intercept
    if scores.shape[1] == 1:
        margins = np.where(y > 0, 1.0, -1.0) * scores[:, 0]
        losses = np.maximum(1.0 - margins, 0.0) if hinge else np.logaddexp(0.0, -margins)
    elif hinge:
        truth = scores[np.arange(y.size), y]
        scores = scores + 1.0
        scores[np.arange(y.size), y] -= 1.0
        losses = scores.max(axis=1) - truth
    else:
        losses = logsumexp(scores, axis=1) - scores[np.arange(y.size), y]
    penalised = np.sum(coef**2) + (np.sum(intercept**2) if hinge else 0.0)
    return C * losses.sum() + 0.5 * penalised


def timed(make, X, y, options):
    """(seconds, model) of the fastest of up to five fits, the others only where the first is quick."""
    clock = time.process_time if options.processor else time.perf_counter
    best, model = np.inf, None
    for again in range(5):
        model = make()
        if hasattr(model, "prepare"):
            model.prepare(X, y)
        start = clock()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        best = min(best, clock() - start)
        if best > 0.1 * options.seconds or best > 0.5 or (again and best > 0.02):
            break
    return best, model


def ours(problem, name, X, y, options, tol=None):
    """Seconds to a proven gap of `tol`, options.precision unless given; the objective; who got there."""
    if name == "newton" and (problem.d * max(problem.classes, 1)) ** 2 > LIMIT / 4:
        return np.inf, None, "-"
    kind = LinearSVC if options.hinge else LogisticRegression

    def make():
        return kind(
            C=problem.C,
            solver=name,
            tol=options.precision if tol is None else tol,
            fit_intercept=problem.intercept,
            max_seconds=options.seconds,
            max_iter=np.inf,
        )

    try:
        seconds, model = timed(make, X, y, options)
    except (ValueError, MemoryError):
        return np.inf, None, "-"
    value = objective(X, y, problem.C, model.coef_, model.intercept_, options.hinge)
    done = model.certificate_.converged
    return seconds if done else np.inf, value, getattr(model.trace_, "solver", name)


def rivals(problem, options):
    """name: function of a tolerance that makes the estimator."""
    from sklearn.linear_model import LogisticRegression as Theirs
    from sklearn.svm import LinearSVC as TheirSVC

    passes = options.seconds / (4e-9 * problem.n * problem.d * problem.density * problem.classes)
    if options.hinge:
        multi = "crammer_singer" if problem.classes > 2 else "ovr"

        def svc(tol):
            return TheirSVC(
                C=problem.C,
                loss="hinge",
                multi_class=multi,
                tol=tol,
                fit_intercept=problem.intercept,
                max_iter=int(np.clip(passes, 100, 100000)),
                random_state=0,
            )

        return {"LinearSVC": svc, "LIBLINEAR": lambda tol: Liblinear(problem, tol)}

    def with_solver(solver, most=20000):
        def make(tol):
            return Theirs(C=problem.C, solver=solver, tol=tol, fit_intercept=problem.intercept, max_iter=most)

        return make

    named = {f"sklearn {name}": with_solver(name) for name in ("lbfgs", "newton-cg")}
    named["sklearn saga"] = with_solver("saga", int(np.clip(passes, 10, 1000)))
    if (problem.d * (1 if problem.classes == 2 else problem.classes)) ** 2 <= LIMIT / 16:
        named["sklearn newton-cholesky"] = with_solver("newton-cholesky")
    if problem.classes == 2 and not problem.intercept:
        named["sklearn liblinear"] = with_solver("liblinear")
    named |= cyanure(problem)
    return named


class Liblinear:
    """LIBLINEAR's own program, -s 3 or for several classes -s 4; reading its input is not timed."""

    def __init__(self, problem, tol):
        bias = 1 if problem.intercept else -1
        self.problem, self.kind = problem, 3 if problem.classes == 2 else 4
        self.options = f"-s {self.kind} -c {problem.C} -e {tol} -B {bias} -q"

    def prepare(self, X, y):
        from liblinear import liblinearutil

        self.data = liblinearutil.problem(y, sp.csr_matrix(X), bias=1 if self.problem.intercept else -1)

    def fit(self, X, y):
        from liblinear import liblinearutil

        self.model = liblinearutil.train(self.data, self.options)

    @property
    def _weights(self):
        """(K, d + 1) in the order of the classes, the bias last."""
        own, columns = self.model, self.problem.d + self.problem.intercept
        count = 1 if self.kind == 3 else own.nr_class
        w = np.ctypeslib.as_array(own.w, (columns * count,)).reshape(columns, count).T
        labels = own.get_labels()
        return (w if labels[0] else -w) if count == 1 else w[np.argsort(labels)]

    @property
    def coef_(self):
        return self._weights[:, : self.problem.d]

    @property
    def intercept_(self):
        return self._weights[:, self.problem.d] if self.problem.intercept else np.zeros(1)


def cyanure(problem):
    """Cyanure, where it is installed and minimises the same: without a free intercept it does."""
    try:
        from cyanure.estimators import Classifier
    except ImportError:
        return {}
    if problem.intercept:
        return {}

    def make(tol):
        loss = "logistic" if problem.classes == 2 else "multiclass-logistic"
        lam = 1.0 / (problem.C * problem.n)
        return Classifier(
            loss=loss, penalty="l2", lambda_1=lam, fit_intercept=False, tol=tol, max_iter=2000, verbose=False
        )

    return {"cyanure": make}


@contextmanager
def at_most(seconds):
    """TimeoutError after so many seconds of a clock, where Python gets to see it."""

    def give_up(number, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def rival_seconds(make, X, y, problem, target, options):
    """Seconds of the loosest tolerance whose objective is at most `target`."""
    spent = 0.0
    for tol in LOOSER:
        try:
            with at_most(2.0 * options.seconds + 1.0):
                seconds, model = timed(lambda tol=tol: make(tol), X, y, options)
        except (ValueError, np.linalg.LinAlgError, TimeoutError):
            return np.inf
        coef = model.coef_.reshape(-1, X.shape[1]) if model.coef_.shape[-1] == X.shape[1] else model.coef_.T
        intercept = np.atleast_1d(getattr(model, "intercept_", 0.0))
        if objective(X, y, problem.C, coef, intercept, options.hinge) <= target:
            return seconds if seconds <= options.seconds else np.inf
        spent += seconds
        if spent > options.seconds:
            break
    return np.inf


def our_seconds(problem, X, y, target, options):
    """Likewise of solver="auto", down to options.precision; infinite where that is not there either."""
    for tol in LOOSER:
        if tol <= options.precision:
            break
        seconds, value, _ = ours(problem, "auto", X, y, options, tol)
        if value is not None and value <= target:
            return seconds
    return np.inf


def optimum(problem, X, y, found, options):
    """The least objective known: of the models found, or of one more, much more exact and not timed."""
    patient = argparse.Namespace(**vars(options) | {"seconds": max(30.0, options.seconds)})
    exact = ours(problem, "auto", X, y, patient, 0.01 * options.precision)
    return min((value for _, value, _ in [*found.values(), exact] if value is not None), default=np.inf)


def warm(options):
    """Kernels of every solver, loaded before anything is timed."""
    for classes in (2, 3, 50):  # more than forty have kernels of their own
        for density in (1.0, 0.1):
            small = Problem(600, 50, classes, density, 1.0, "standard", True, False, 0)
            X, y = small.data()
            for name in (*OURS_HINGE, "interior-point") if options.hinge else OURS:
                ours(small, name, X, y, options)


def measure(problem, options):
    """What auto took, its seconds, those to the objective; our best and its seconds, a rival's."""
    X, y = problem.data()
    found = {name: ours(problem, name, X, y, options) for name in options.ours}
    target = (1.0 + options.precision) * optimum(problem, X, y, found, options)
    proof, _, took = found.pop("auto")
    there = min(proof, our_seconds(problem, X, y, target, options))
    others = rivals(problem, options) if not options.no_rivals else {}
    times = {name: rival_seconds(make, X, y, problem, target, options) for name, make in others.items()}
    own = {name: seconds for name, (seconds, _, _) in found.items()}
    return took, proof, there, *best_of(own), *best_of(times)


def best_of(times):
    """Name and seconds of the fastest; "none" where there is none."""
    name = min(times, key=times.get, default="none")
    return name, times.get(name, np.inf)


def main():
    options = parse()
    warm(options)
    print("| problem | auto took | proof s | objective s | our best | ratio | rival | proof | objective |")
    print("|---|---|--:|--:|---|--:|---|--:|--:|", flush=True)
    ratios, lost = [], 0
    for number, problem in enumerate(grid(options.seed)):
        if options.only is not None and number not in options.only:
            continue
        took, proof, there, name, own, rival, other = measure(problem, options)
        lost += not np.isfinite(proof) and np.isfinite(min(own, other))
        ratios.append([proof / own, proof / other, there / other] if np.isfinite(proof) else [np.nan] * 3)
        print(
            f"| {number}: {problem} | {took} | {proof:.4f} | {there:.4f} | {name} {own:.4f} "
            f"| {ratios[-1][0]:.2f} | {rival} {other:.4f} | {ratios[-1][1]:.2f} | {ratios[-1][2]:.2f} |",
            flush=True,
        )
    summarise(np.array(ratios), lost)


def summarise(ratios, lost):
    """Median and worst of each column of ratios (problems, 3); NaN where auto did not get there."""
    known = ratios[~np.isnan(ratios[:, 0])]
    for words, column in zip(("our best, proof", "rivals, proof", "rivals, objective"), known.T, strict=True):
        print(f"over {words}: median {np.median(column):.2f}, worst {column.max():.2f}, n = {column.size}")
    print(f"not converged where another was: {lost}; not converged at all: {len(ratios) - len(known) - lost}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--precision", type=float, default=1e-3)
    parser.add_argument("--only", type=int, nargs="+")
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--seed", type=int, default=2026, help="of another grid")
    parser.add_argument("--hinge", action="store_true", help="LinearSVC instead of LogisticRegression")
    parser.add_argument(
        "--ours", nargs="+", help="our solvers, auto among them; all that may be right unless given"
    )
    parser.add_argument("--processor", action="store_true", help="processor seconds")
    options = parser.parse_args()
    options.ours = options.ours or (OURS_HINGE if options.hinge else OURS)
    return options


if __name__ == "__main__":
    main()
