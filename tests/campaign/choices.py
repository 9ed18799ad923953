"""Solver, options, start and interrupt of a run, drawn at random."""

import sys
from dataclasses import fields

import numpy as np

import fenchel
from fenchel.solvers import EG, SOLVERS, make, solver_class
from fenchel.solvers.base import Start

HOME = fenchel.__file__.removesuffix("__init__.py")
COMPILERS = {"_compile_for_args", "_find_and_load"}  # of Numba, of import
EVALUATIONS = ["each pass", "when asked"]
# Every option of every solver, with what it is drawn from; a test asks that none is forgotten.
OPTIONS = {
    "GIS": {},
    "IIS": {},
    "SCGIS": {"bound": ["linear", "log"], "order": ["random", "cyclic"], "evaluate": EVALUATIONS},
    "CDPrimal": {
        "line_search": ["fast", "plain"],
        "gamma": [0.01, 0.001, 0.4],
        "order": ["random", "cyclic"],
        "evaluate": EVALUATIONS,
    },
    "SM": {"variant": ["s", "g1", "g2", "q"], "damped": [True, False]},
    "Newton": {"damped": [True, False]},
    "LBFGS": {"memory": [10, 1, 3], "rounded": [True, False]},
    "TRON": {"accuracy": [0.1, 0.9, 1e-3], "rounded": [True, False]},
    "ProxNewton": {},
    "SGD": {"eta0": ["search", 1.0, 1e-3, 100.0]},
    "SAG": {"sampling": ["uniform", "lipschitz"], "line_search": ["skip", "every"]},
    "CDDual": {
        "subproblem": ["auto", "newton", "bisection", "line-search", "multiplier"],
        "xi": [0.1, 0.5, 0.9],
        "first": [1e-3, 0.5, 1e-9],
    },
    "EG": {
        "order": ["random", "cyclic", "gap"],
        "batch": [False, True],
        "eta": [0.5, "search", 0.01, 1.0],
        "first": [None, 0.0, 3.0, 30.0, 800.0],
        "anneal": [1.0, 1.0, 10.0, 1e6],
        "cap": [1.0, 0.1, 3.0],
        "adapt": [True, True, False],
        "lane": [True, True, False],
    },
    "SDCA": {
        "sampling": ["gap", "uniform", "importance", "gap-importance", "max", "residual"],
        "non_uniform": [0.8, 0.0, 1.0],
        "step_size": ["newton", "one-newton", "fixed"],
        "begin": ["middle", "last"],
        "precision": [1e-3, 1e-9, 1.0],
        "absolute": [False, True],
        "first": [1e-3, 0.0, 1.0, 1e-12],
        "renew": [10, 1, None],
    },
    "InteriorPoint": {},
    "CuttingPlane": {"slack": ["n", "1"]},
    "CDOutputs": {"cheap": [10, 0, 1]},
    "Perceptron": {},
}


def options_of(name) -> dict:
    """The fields of a solver but its seed, with what they are drawn from."""
    kind = solver_class(name)
    known = OPTIONS[kind.__name__]
    unknown = {f.name for f in fields(kind)} - known.keys() - {"seed"}
    if unknown:
        raise KeyError(f"{kind.__name__} has options that the campaign does not know: {sorted(unknown)}")
    return known


def able(problem) -> list:
    """The solvers that a problem offers all they need, by name; not those that prove nothing."""
    kinds = {name: solver_class(name) for name in SOLVERS if name != "perceptron"}
    names = [name for name, kind in kinds.items() if kind.needs <= problem.offers]
    return [name for name in names if not _needs_a_lane(name, problem) or make(name).has_a_lane(problem)]


def _needs_a_lane(name, problem) -> bool:
    """Whether it is a dual method on sequences without an L2 term, which it takes by its default settings."""
    return problem.lam == 0.0 and issubclass(solver_class(name), EG)


def draw_solver(rng, problem, names=None, plain=False):
    """The name of a solver and the solver itself; every other one has its default options."""
    name = str(rng.choice([name for name in able(problem) if names is None or name in names]))
    options = {}
    if not plain and rng.random() < 0.6 and not _needs_a_lane(name, problem):
        for option, values in options_of(name).items():
            if option not in SOLVERS[name][1] and rng.random() < 0.6:
                options[option] = values[rng.integers(len(values))]
    if any(f.name == "seed" for f in fields(solver_class(name))):
        options["seed"] = int(rng.integers(1000))
    return name, make(name, **options)


# ---- starts


def draw_start(rng, drawn, results):
    """None, weights or dual variables found before (for another λ too), or random ones; and its name."""
    kinds = ["none", "none", "w", "start", "random w", "random mu", "contradiction"]
    kind = kinds[rng.integers(len(kinds))]
    problem = drawn.problem
    if kind in {"w", "start"} and results:
        found = results[rng.integers(len(results))]
        return (Start(found.w, found.b) if kind == "w" else found.start), kind
    if kind == "none" or kind in {"w", "start"}:
        return None, "none"
    w = rng.standard_normal(problem.penalised) * 10.0 ** rng.uniform(-3, 5 if rng.random() < 0.3 else 1)
    if drawn.listed.mask is not None and rng.random() < 0.5:
        w *= drawn.listed.mask
    if kind == "random w":
        return Start(w), kind
    mu = random_marginals(rng, drawn)
    if kind == "contradiction":
        mu = _contradict(rng, mu)
    return Start(w if rng.random() < 0.5 else np.zeros(problem.penalised), 0.0, mu), kind


def random_marginals(rng, drawn):
    """Marginals of a random distribution over the outputs of every example, in the library's layout."""
    problem = drawn.problem.entropic
    if drawn.kind == "chain":
        stride = problem.blocks.layout.stride
        pieces = [_chain_marginals(rng, y, problem.structure.labels, stride) for y in drawn.parts]
        return np.concatenate(pieces)
    if drawn.kind == "joint":
        return np.concatenate([_distribution(rng, m) for m in np.diff(problem.examples.starts.astype(int))])
    n, K = problem.shape
    return np.array([_distribution(rng, K) for _ in range(n)])


def _distribution(rng, m):
    """Spread out, concentrated, or all on one outcome."""
    if rng.random() < 0.2:
        return np.eye(m)[rng.integers(m)]
    p = rng.dirichlet(np.full(m, 10.0 ** rng.uniform(-2, 1))) if m > 1 else np.ones(1)
    return p if np.isfinite(p).all() else np.eye(m)[0]


def _chain_marginals(rng, y, K, stride):
    p, eye = _distribution(rng, len(y)), np.eye(K)
    nodes = np.einsum("m,mtk->tk", p, eye[y])
    edges = np.einsum("m,mtj,mtk->tjk", p, eye[y[:, :-1]], eye[y[:, 1:]])
    return np.concatenate([nodes.ravel(), edges.ravel() if stride else edges.sum(axis=0).ravel()])


def _contradict(rng, mu):
    """Dual variables that no distribution has: to be refused, or to do no harm."""
    mu = mu.copy()
    flat = mu.reshape(-1)
    flat[rng.integers(flat.size)] += 10.0 ** rng.choice([-15.0, -12.0, -9.5, -6.0, -1.0])
    if rng.random() < 0.3:
        flat[rng.integers(flat.size)] = 0.0
    return mu


# ---- interrupts


def interrupt_from_callback(at):
    """A callback that presses Ctrl-C at its at-th call."""
    calls = [0]

    def callback(trace):
        calls[0] += 1
        if calls[0] == at:
            raise KeyboardInterrupt

    return callback


class Interrupt:
    """Presses Ctrl-C before the k-th line of the library's Python code that a run executes once it steps.

    Lines run while Numba compiles do not count, so that the same k is the same place with a warm cache.
    """

    def __init__(self, at):
        self.left, self.pressed = at, None
        self.armed = self.compiling = False

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *error):
        sys.settrace(self.before)

    def _call(self, frame, event, arg):
        if self.compiling:
            return None
        code = frame.f_code
        if code.co_name in COMPILERS:
            self.compiling, frame.f_trace_lines = True, False
            return self._compiled
        if not code.co_filename.startswith(HOME) or code.co_name == "to_the_end":
            return None
        self.armed = self.armed or code.co_name == "step"
        return self._line if self.armed else None

    def _compiled(self, frame, event, arg):
        if event == "return":
            self.compiling = False
        return self._compiled

    def _line(self, frame, event, arg):
        if event == "line" and self.left > 0:
            self.left -= 1
            if self.left == 0:
                self.pressed = f"{frame.f_code.co_name}:{frame.f_lineno}"
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._line
