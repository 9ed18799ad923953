"""Rounds: any solver of the dual at all places at once (CoCoA+); `visiting.py` has the mathematics."""

import warnings
from dataclasses import dataclass
from math import inf, nan
from typing import ClassVar

import numpy as np

from fenchel._sparse import sum_of_squares
from fenchel.certificates import joined
from fenchel.distributed.places import Moved
from fenchel.distributed.vectors import Packed, dense, packed
from fenchel.distributed.visiting import name_and_options
from fenchel.distributed.widths import after, needed
from fenchel.solvers.base import Solver, State
from fenchel.solvers.dual import DualSolver
from fenchel.solvers.sdca import SDCA

ROUNDING = 1e-14  # of D: what it may seem to fall by
RENEWAL = 50  # rounds after which v is computed anew
LOOK = 16  # the round after which dual variables are first compared with the weights; then ever less often
UNDONE = 20  # rounds in turn that are undone, before nothing is expected any more


@dataclass
class RoundsState(State):
    """v: the common weights, u/λ and β, zeros for those that only one place has. The dual variables stay
    where the examples are.

    accepted, change: of the last round, as the places are to be told with the next question.
    """

    v: np.ndarray | None = None
    centre: np.ndarray | float = 0.0
    off_balance: float = inf
    dual: float = -inf  # D of what was accepted last, the offset's penalty taken off
    widths: np.ndarray | None = None  # σ′ of each group of columns, or one of all
    accepted: bool = True
    change: object = None
    rounds: int = 0
    undone: int = 0  # the last so many
    copied: int = 0  # which of two copies the places have written last, 0: none
    folder: str = ""  # where
    asked: bool = False  # whether a round was begun whose answer is not here: Ctrl-C came before
    alone: ClassVar[bool] = True

    def free_weights(self, problem) -> np.ndarray:
        """β, as a view."""
        return self.v[problem.penalised :]


@dataclass(frozen=True)
class Rounds(DualSolver):
    """A round: each place makes a step of the solver on its own examples, and all changes are added up.

    A round that lowers the exact dual is undone. `widths.py` says which σ′ the next one is made with.
    """

    solver: Solver
    free_check: ClassVar[bool] = False

    @property
    def needs(self) -> frozenset:
        return self.solver.needs

    def init(self, problem, start):
        """The solver's own first point, or the marginals at the weights of a warm start."""
        centre, most = problem.weights_at(start)[problem.penalised :], float(problem.places.count)
        given = None if start is None else (start.w, start.b)
        widths = problem.groups.first_widths(most)
        state = RoundsState(centre=centre, widths=widths, change=nothing(problem))
        try:
            share = problem.places.sum("begin", *name_and_options(self.solver), given)
            self._set_common(problem, state, share)
        except Moved:  # places that are made anew begin of their own
            self.renew(problem, state)
            state.dual = -inf
        return state

    def _set_common(self, problem, state, share) -> None:
        """Let v be the sum of the places' shares, and tell them."""
        state.v = np.zeros(problem.dim)
        state.v[problem.shared] = dense(share)
        state.free_weights(problem)[:] += state.centre
        problem.places.each("take", state.v[problem.shared])

    def whole(self, problem, state) -> np.ndarray:
        """v with the weights that only one place has."""
        return state.v + dense(problem.places.sum("alone"))

    def renew(self, problem, state, lost=(), copies=True) -> None:
        """v and D anew from the dual variables as they are: for the digits, and after a loss.

        lost: numbers of places whose dual variables were, and which go on from their last copy, if they may,
        else begin at the marginals of the weights that there are, if there are any.
        """
        lost, places = set(lost), problem.places
        while True:
            try:
                start = self._start(problem, state) if lost else None
                places.tell(
                    "restart", self._fresh_starts(problem, state, lost, start, copies and state.copied > 0)
                )
                lost = set()
                places.each("judge", True, None)
                share, concave = places.sum("share"), places.sum("concave_now")
                self._set_common(problem, state, share)
                break
            except Moved as moved:
                lost |= set(moved.args[0])
        state.accepted, state.change, state.asked = True, nothing(problem), False
        state.dual = concave - self._penalty(problem, state.v, state.centre)

    def _start(self, problem, state) -> tuple | None:
        """The weights that there are, as a warm start has them."""
        return None if state.v is None else problem.design.split(problem.read(self.whole(problem, state)))

    def _fresh_starts(self, problem, state, lost, start, copies) -> list[tuple]:
        """What each place is told: where to begin anew, if it has to, and the file of its last copy."""
        files = [("",)] * problem.places.count if not copies else _files(problem, state, state.folder)
        return [(start, path) if k in lost else (None, "") for k, (path,) in enumerate(files)]

    def step(self, problem, state):
        state.rounds += 1
        try:
            if state.rounds % RENEWAL == 0:
                self._told(problem, state)
                self.renew(problem, state)
            elif self._is_time_to_look(state) and self._can_lag(problem):
                self._told(problem, state)
                self._catch_up(problem, state)
            state.asked = True
            answer = problem.places.sum("round", state.accepted, state.change, state.widths)
            state.asked = False
        except Moved as moved:  # what the other places did is kept
            self.renew(problem, state, moved.args[0])
            return
        self._judge(problem, state, *answer)

    def _judge(self, problem, state, sent, concave, gap, visits, squares, alone):
        """Take the sum of the changes if it raises the dual."""
        state.passes += visits / problem.n
        state.oracle_calls += int(visits)
        change = np.zeros(problem.dim)
        change[problem.shared] = dense(sent)
        v = state.v + change
        dual = concave - self._penalty(problem, v, state.centre)
        state.accepted = bool(dual >= state.dual - ROUNDING * abs(state.dual))
        most = float(problem.places.count)
        together = problem.groups.squares(change, problem.design.outputs, problem.dim - problem.penalised)
        together += alone
        state.widths = after(state.widths, needed(together, squares, most), state.accepted, most)
        if not state.accepted:
            state.change, state.undone = nothing(problem), state.undone + 1
            state.stalled = state.undone >= UNDONE
            return
        state.updates += int(visits)
        state.undone, state.v, before = 0, v, v[problem.penalised :].copy()
        self.recentre(problem, state, gap)
        change[problem.penalised :] += state.free_weights(problem) - before
        state.change = packed(change[problem.shared])
        state.dual = concave - self._penalty(problem, state.v, state.centre)
        state.relative_gap_estimate = gap / state.dual if state.dual > 1e-300 else nan

    def _penalty(self, problem, v, centre) -> float:
        """g*(u), and what the proximal penalty of free offsets takes off the dual."""
        own = problem.regularizer.conjugate(problem.regularizer.read(v[: problem.penalised]))
        free = sum_of_squares(v[problem.penalised :]) - float(np.sum(np.square(centre)))
        return own + 0.5 * problem.lam * free

    def _told(self, problem, state) -> None:
        """Let the places know what became of the last round; nobody knows of one that was cut short."""
        if state.asked:
            self.renew(problem, state)
            return
        problem.places.each("judge", state.accepted, state.change)
        state.accepted, state.change = True, nothing(problem)

    # ---- checkpoints

    def keep_copies(self, problem, state, folder: str) -> None:
        """Let places write their dual variables beside a checkpoint: not over those of the last one."""
        number = 2 if state.copied == 1 else 1
        while True:
            try:
                self._told(problem, state)
                problem.places.tell("write_copy", _files(problem, state, folder, number))
                state.copied, state.folder = number, folder
                return
            except Moved as moved:
                self.renew(problem, state, moved.args[0])

    def go_on(self, problem, state, folder: str) -> None:
        """Let places go on from what they have written; from the weights, where that is lost."""
        found = problem.places.tell("read_copy", _files(problem, state, folder))
        lost = [number for number, whether in enumerate(found) if not whether]
        if lost:
            missing = f"{len(lost)} of {problem.places.count} workers' dual variables are missing or damaged"
            warnings.warn(
                f"{folder}: {missing}; they begin anew at the weights", RuntimeWarning, stacklevel=2
            )
            self.renew(problem, state, lost)

    def point(self, problem, state):
        while True:
            try:
                self._told(problem, state)
                return self._point(problem, state)
            except Moved as moved:
                self.renew(problem, state, moved.args[0])

    def _point(self, problem, state):
        """The certificate of the dual variables, or that of the weights where it is better."""
        last = problem.dual_point("mu", offset=state.free_weights(problem))
        if isinstance(self.solver, SDCA) and problem.loss.hinge and state.rounds > 0:
            return joined(last, problem.dual_point("mean"))
        if not self._can_lag(problem):
            return last
        return joined(last, problem.primal_point(problem.read(self.whole(problem, state))))

    def _is_time_to_look(self, state) -> bool:
        """After LOOK rounds, twice as many, and so on: beginning anew loses what places had agreed on."""
        return state.rounds >= LOOK and state.rounds & (state.rounds - 1) == 0

    def _can_lag(self, problem) -> bool:
        """Whether dual variables may be farther from the optimum than weights are."""
        return problem.places.count > 1 and not problem.loss.hinge

    def _catch_up(self, problem, state) -> None:
        """Let all places begin anew at the marginals of the weights, where D is larger there.

        With many places the weights are near the optimum long before: that one place has too much and another
        too little of something moves no weight, and slowly mends, since neither knows of the other.
        """
        last = problem.dual_point("mu", offset=state.free_weights(problem))
        if problem.primal_point(problem.read(self.whole(problem, state))).dual > last.dual:
            self.renew(problem, state, range(problem.places.count), copies=False)


def _files(problem, state, folder, copy=None) -> list[tuple[str]]:
    """The copy of each place: this one of two, or the last that all have written."""
    return [(f"{folder}/{place}-{copy or state.copied}.npz",) for place in range(problem.places.count)]


def nothing(problem) -> Packed:
    """No change of the weights."""
    return packed(np.zeros(problem.shared.size))
