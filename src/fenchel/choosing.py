"""Which solver: the rule behind "auto", and whether the one asked for can do it."""

from dataclasses import replace
from math import inf, log
from typing import NamedTuple

import numpy as np

from fenchel._memory import available_bytes
from fenchel._sparse import Table
from fenchel.coordinates import WORTH, passes_to_whiten
from fenchel.matrices import matrix_bytes
from fenchel.problem import Problem
from fenchel.solvers import SOLVERS, make, solver_class
from fenchel.solvers.base import Solver
from fenchel.solvers.dual import array_bytes
from fenchel.solvers.inrows import InRows

# Newton where its eight or so matrices take no longer than this many passes.
MATRICES, PASSES = 8.0, 12.0
AT_ONCE = 3e-5  # seconds of one matrix that is nothing beside the calls of a step: four steps, not a dozen
PATIENT = 10.0  # seconds that it may take where nothing else gets anywhere
# Dual coordinate descent first where c = m‖x‖²/λ, the curvature of a block, is neither so little that any
# method is done at once nor, times the share of non-zeros, more than this: for two classes, for several on
# dense features, for several on sparse ones.
LITTLE, MOST = (0.1, 0.1, 1.0), (2.0, 20.0, 200.0)
ROUND = (WORTH, 1.0, 1.0)  # L-BFGS before them where whitening its coordinates takes at most so many passes
DWARFED = 100.0  # and before them too where the mean square of columns is so many times the median
# Passes that a solver may still need, at a tolerance of 1e-3, before another one takes over, and after how
# many it is asked: dual coordinates in these three cases, and with fewer examples than features; batch ones.
FEW, MANY, BATCH = ((40.0, 8.0), (40.0, 8.0), (150.0, 8.0)), (1000.0, 60.0), (500.0, 100.0)
HARD_FOR_BATCH = (200.0, 100.0)  # where dual coordinates are worth a trial after a batch method
# With an L1 term: the threshold λ₁/λ of weights, in units of scores, up to which methods of the dual beat
# Newton's steps over the weights that are not zero; the same three cases.
NEAR = (5.0, 50.0, 50.0)
# Likewise with an L1 term, and of sequences: gaps of the first passes tell nothing of a centre that moves.
PATIENTLY = (1000.0, 100.0)
# The hinge loss: dual coordinates first where c is at most HARD, or where a step of the interior point takes
# longer than SWEEPS passes of theirs; it makes about STEPS. Seconds of a step for each dual variable and for
# its calls, and those that a pass takes beside its multiplications.
HARD, SWEEPS, STEPS = 1.0, 10.0, 15.0
SIZES, CALLS, SWEEP = 4e-8, 5e-4, 1e-4
APART, SAMPLE = 0.5, 64  # rows of tables overlap so little that dual coordinates are best; of how many rows
TURNED = 20.0  # passes that L-BFGS is taken to need, in those of all columns, in the space of the rows
QUICK = (25.0, 10.0)  # L-BFGS where a pass costs next to nothing, and Newton's matrices not much
# Exponentiated gradient where sequences have at most so many tokens on average, or, where there are more
# attributes than tokens, so many.
LONG, LONG_IF_RICH = 100, 3000


class Leg(NamedTuple):
    """A solver, the passes that may be left to it before the next one takes over, and when it is asked."""

    solver: Solver
    patience: float = inf
    look: float = inf


def relay(solver: Solver | str, problem: Problem, seed: int = 0, warm: bool = False) -> list[Leg]:
    """The solver, and those that may take over from it: none unless it was chosen by "auto".

    seed: added to that of each. warm: whether dual variables are known, to go on from.
    """
    if isinstance(solver, str) and solver == "auto":
        *first, last = problem.plan() if hasattr(problem, "plan") else plan(problem)
        if warm:
            first, last = _going_on(first, last)
        legs = [Leg(as_solver(each, problem), *limits) for each, limits in [*first, (last, ())]]
    else:
        legs = [Leg(as_solver(solver, problem))]
    return [leg._replace(solver=problem.adapted(reseeded(leg.solver, seed))) for leg in legs]


def _going_on(first, last):
    """The same plan where dual variables are known: the method that uses them has its turn at once.

    An interior point begins in the middle, wherever others were; L-BFGS knows only weights.
    """
    if first and first[0][0] == "interior-point":
        return [(last, FEW[0])], first[0][0]
    known = [leg for leg in first if leg[0] == "cd-dual"]
    return [*known, *(leg for leg in first if leg not in known)], last


def reseeded(solver: Solver, more: int) -> Solver:
    """The solver with another seed, if it has one."""
    return replace(solver, seed=solver.seed + more) if hasattr(solver, "seed") and more else solver


class Forecast:
    """How many passes are left, going by how the gap fell over the last half of those made."""

    def __init__(self, begun: float = 0.0):
        self.begun = begun  # passes of solvers before
        self.met: list[tuple[float, float]] = []  # passes, log of the gap relative to P

    def note(self, passes: float, gap: float) -> None:
        """A gap that did not change at all is that of a point that did not move: it says nothing."""
        if 0.0 < gap < inf and not (self.met and self.met[-1][1] == log(gap)):
            self.met.append((passes - self.begun, log(gap)))

    def passes_left(self, tol: float, look: float) -> float:
        """0 before `look` passes were made, or where a gap is known for less than half of them (before, the
        dual was worth nothing); tol: in the units of the gaps noted.
        """
        if not self.met or self.met[-1][0] < max(look, 2.0 * self.met[0][0]):
            return 0.0
        passes, gap = self.met[-1]
        if gap <= log(tol):
            return 0.0
        half = next(each for each in self.met if each[0] >= 0.5 * passes)
        if half[1] <= gap or half[0] == passes:
            return inf
        return (gap - log(tol)) * (passes - half[0]) / (half[1] - gap)


def as_solver(solver: Solver | str, problem: Problem) -> Solver:
    """The solver itself, or the one of that name."""
    if isinstance(solver, str):
        return relay(solver, problem)[0].solver if solver == "auto" else make(solver)
    if isinstance(solver, type) or not hasattr(solver, "needs"):
        raise ValueError(f"solver={solver!r} is neither a solver's name nor an instance such as CDDual()")
    return solver


def plan(problem: Problem) -> list:
    """The rule behind solver="auto": solvers or their names in turn, with limits but for the last one.

    docs/choosing.md has the measurements it rests on. With an L1 term a method of the dual where λ is not
    weak, else Newton steps over the weights that are not zero; for sequences then OWL-QN.
    Sequences: exponentiated gradient unless long or dense, or cached outputs for the hinge loss; so trees,
    however long; and weights of observed pairs alone, which dual coordinates take one by one. Otherwise:
    Newton where its matrices are next to nothing; where they are a little more, after a trial of L-BFGS if a
    pass is cheap or its coordinates are round. L-BFGS in round coordinates, or where a few columns dwarf
    others. Dual coordinate descent where there are fewer examples than features, or where its blocks are
    easy. Else, and where that is slow, a method of the primal: L-BFGS, or conjugate gradients on wide sparse
    tables.
    """
    if problem.l1 > 0.0:
        return _choose_for_l1(problem)
    if not problem.structure.listed:
        return _choose_for_sequences(problem)
    if problem.loss.hinge:
        return _choose_for_margins(problem)
    if problem.structure.mask is not None and problem.lam > 0.0 and _fits("eg-gap", problem):
        return [("eg-gap", MANY), ("lbfgs", BATCH), "tron"]
    dense, whitening = isinstance(problem.design.rows, Table), passes_to_whiten(problem)
    quickly, wide = dense or whitening <= WORTH, problem.design.n <= problem.design.n_columns
    lopsided = wide and _is_lopsided(problem)
    first, second = ("tron", "lbfgs") if wide and not (quickly or lopsided) else ("lbfgs", "tron")
    if _is_worth_a_matrix(problem):
        quick = [("lbfgs", QUICK)] if quickly and problem.design.matrix_seconds > AT_ONCE else []
        return [*quick, ("newton", BATCH), (first, BATCH), second]
    last = "newton" if _can_wait_for_a_matrix(problem) else second
    if not (problem.lam > 0.0 and _fits("cd-dual", problem)):
        return [(first, BATCH), last]
    kind = _kind(problem)
    if whitening <= ROUND[kind]:
        return [(first, BATCH), last]
    if wide and dense:
        begin = "cd-dual" if _rows_overlap(problem) <= APART else "lbfgs"
        return [(begin, _until_turned(problem, lopsided)), (InRows(make("lbfgs")), BATCH), last]
    if lopsided:
        return [(first, BATCH), last]
    if wide:
        return [("cd-dual", MANY), (first, BATCH), last if last == "newton" else "cd-dual"]
    if _suits_dual_coordinates(problem, MOST[kind], LITTLE[kind]):
        return [("cd-dual", FEW[kind]), (first, BATCH), last]
    if last == "newton":  # which minds nothing
        return [(first, BATCH), last]
    return [(first, HARD_FOR_BATCH), ("cd-dual", MANY), last]


def _rows_overlap(problem) -> float:
    """n times the mean of cos² of the angle between two rows of a table, by some of them: far below 1 a step
    in one dual coordinate leaves the others where they are.
    """
    rows = problem.design.rows.matrix[:: max(problem.n // SAMPLE, 1)]
    with np.errstate(all="ignore"):
        products = np.square(rows @ rows.T)
        sizes = products.diagonal()
        cosines = np.nan_to_num(products / np.sqrt(np.outer(sizes, sizes)), nan=1.0)  # of what overflows
    pairs = len(rows) * (len(rows) - 1)
    return problem.n * float(cosines.sum() - cosines.trace()) / max(pairs, 1)


def _until_turned(problem, lopsided) -> tuple[float, float]:
    """Limits of a solver after which turning a dense table into the space of its rows takes less time.

    Columns that dwarf others are hidden there; among the columns they are easily made small.
    """
    design = problem.design
    turning = design.turning_seconds / (3e-9 * design.work + SWEEP) * (3.0 if lopsided else 1.0)
    return turning + TURNED, max(0.5 * turning, FEW[0][1])


def _choose_for_margins(problem) -> list:
    """Dual coordinates where blocks are easy or matrices large; an interior point where it takes less time.

    Coordinates take more passes the larger c = m‖x‖²/λ is, the interior point never more than a few dozen.
    """
    waits = problem.lam > 0.0 and _can_wait_for_a_matrix(problem) and _fits("interior-point", problem)
    if not waits or problem.examples.larger_than_memory:
        return ["cd-dual"]
    design, sizes = problem.design, float(np.prod(problem.shape, dtype=float))
    step = design.matrix_seconds + SIZES * sizes + CALLS
    sweep = 3e-9 * design.work + SWEEP
    if _curvature(problem) > HARD and step <= SWEEPS * sweep:
        return [("interior-point", BATCH), "cd-dual"]
    patience = max(STEPS * step / sweep, FEW[0][0])
    return [("cd-dual", (patience, max(0.25 * patience, FEW[0][1]))), "interior-point"]


def _has_room_for_a_matrix(problem) -> bool:
    return matrix_bytes(problem.dim) <= 0.5 * available_bytes()


def _can_wait_for_a_matrix(problem) -> bool:
    """Whether Newton, which minds no scales, is there for the worst."""
    return _has_room_for_a_matrix(problem) and MATRICES * problem.design.matrix_seconds <= PATIENT


def _is_worth_a_matrix(problem) -> bool:
    design = problem.design
    return _has_room_for_a_matrix(problem) and (
        MATRICES * (design.matrix_seconds + 1e-4) <= PASSES * (3e-9 * design.work + 2e-4)
    )


def _fits(name, problem) -> bool:
    """Whether the dual variables of a solver take at most half of what memory there is, or lie on disk."""
    if problem.examples.disk is not None:
        return True
    return make(name).copies(problem) * array_bytes(problem) <= 0.5 * available_bytes()


def _choose_for_l1(problem) -> list:
    """Dual methods read weights through a threshold; where λ is weak or 0, Newton's over few weights."""
    if problem.loss.hinge:
        return ["lbfgs"]
    if not problem.structure.listed:
        return _choose_for_sequences(problem)
    first = "cd-dual" if problem.structure.name == "binary" else "eg-gap"
    last = "lbfgs" if problem.examples.larger_than_memory else "prox-newton"
    if problem.lam > 0.0 and _has_near_thresholds(problem) and _fits(first, problem):
        return [(first, PATIENTLY), last]
    return [last]


def _has_near_thresholds(problem) -> bool:
    """Whether the dual is quickly where weights begin to count, and its blocks are easy from there on."""
    kind, size = _kind(problem), np.sqrt(problem.design.norms.mean())  # of a row
    if problem.l1 * size > NEAR[kind] * problem.lam:
        return False
    few = problem.design.n <= problem.design.n_columns
    return few or _suits_dual_coordinates(problem, MOST[kind], 0.0)


def _kind(problem) -> int:
    """Of MOST and FEW: two classes, several on dense features, several on sparse ones."""
    if problem.structure.name == "binary":
        return 0
    return 1 if isinstance(problem.design.rows, Table) else 2


def _choose_for_sequences(problem) -> list:
    """A block of exponentiated gradient is a sequence: the longer, the slower.

    On dense tokens a pass over all of them takes several at a time, which one over blocks cannot.
    """
    if problem.loss.hinge and problem.examples.larger_than_memory:
        return ["eg-gap"]
    if problem.loss.hinge:
        return ["cd-outputs" if "vertices" in problem.offers and _fits("cd-outputs", problem) else "sgd"]
    if isinstance(problem.examples.rows, Table):
        return ["lbfgs"]
    tokens, attributes = problem.examples.rows.shape
    short = tokens <= problem.n * (LONG if attributes < tokens else LONG_IF_RICH)
    short = short or problem.structure.name == "projective"  # rows are arcs there, many to a word
    climbs = _has_blocks_to_climb(problem) and short and _fits("eg-gap", problem)
    return [("eg-gap", PATIENTLY), "lbfgs"] if climbs else ["lbfgs"]


def _has_blocks_to_climb(problem) -> bool:
    """Whether exponentiated gradient has a dual: of λ, or with an L1 term of a centre in its place."""
    solver = make("eg-gap")
    return problem.lam > 0.0 or (solver.needs <= problem.offers and solver.has_a_lane(problem))


def _is_lopsided(problem) -> bool:
    """Whether a few columns dwarf the others: dual coordinates hardly see those behind them."""
    squares = problem.extent.peaks**2
    squares = squares[squares > 0.0]
    return squares.size > 0 and bool(squares.mean() > DWARFED * np.median(squares))


def _suits_dual_coordinates(problem, most, least) -> bool:
    rows = problem.examples.rows
    density = rows.nnz / max(rows.shape[0] * rows.shape[1], 1)
    return _curvature(problem) >= least and _curvature(problem) * density <= most


def _curvature(problem) -> float:
    """The mean of c = m‖x‖²/λ."""
    return problem.examples.mass.mean() * problem.design.norms.mean() / problem.lam


def solver_name(solver: Solver) -> str:
    """The name of a solver in SOLVERS, the one with most options in common; else its class's.

    Of one that lets another work (`distributed.Rounds`, `InRows`) that other's, and where.
    """
    where, solver = getattr(solver, "where", ""), getattr(solver, "solver", solver)
    for name, (target, options) in sorted(SOLVERS.items(), key=lambda item: -len(item[1][1])):
        if target.endswith(f":{type(solver).__name__}") and all(
            getattr(solver, option) == value for option, value in options.items()
        ):
            return name + where
    return type(solver).__name__ + where


def require(problem: Problem, solver: Solver) -> None:
    """Refuse a solver that needs what the problem does not offer, and say what would do."""
    missing = sorted(solver.needs - problem.offers)
    if not missing:
        _require_at_hand(problem, solver)
        return
    if problem.l1 > 0.0 and problem.loss.hinge:
        raise ValueError("the hinge loss takes no L1 term; use the log loss, or only an L2 term")
    able = [name for name in SOLVERS if solver_class(name).needs <= problem.offers]
    raise ValueError(
        f"solver {solver_name(solver)!r} cannot train a {problem.structure.name} model with the "
        f"{problem.loss.name} loss here: {_lack(problem, missing)}; "
        + (f"use {', '.join(able)}" if able else "no solver can")
    )


def _require_at_hand(problem, solver) -> None:
    """Refuse a solver that goes to and fro among examples which do not fit memory."""
    if getattr(solver, "by_shards", True) or not problem.examples.larger_than_memory:
        return
    able = [name for name in SOLVERS if _goes_by_shards(solver_class(name), problem)]
    raise ValueError(
        f"solver {solver_name(solver)!r} wants all examples in memory, where these shards do not fit; "
        f"use {', '.join(able)}"
    )


def _goes_by_shards(solver, problem) -> bool:
    return getattr(solver, "by_shards", True) and solver.needs <= problem.offers


def _lack(problem, missing) -> str:
    """What the problem does not have, in words."""
    if problem.l1 > 0.0:
        return "its L1 term has corners"
    if missing in (["dual"], ["bound"]):
        return "it has no regulariser and so no dual"
    if missing == ["entropy"]:
        return "its marginals do not tell the entropy"
    return f"it offers no {'gradient' if 'log' in missing else missing[0]}"
