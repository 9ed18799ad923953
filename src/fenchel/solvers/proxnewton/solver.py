"""Newton's method for weights that may be exactly zero: Yuan, Ho and Lin (2012), newGLMNET.

A step minimises the quadratic model of P at w (`model.py`), the L1 term as it is, and moves towards its
minimum as far as P decreases by their (20). Coordinate descent finds out which weights are zero and what sign
the others have; once these hardly change, the minimum over the others is that of a plain quadratic
(`face.py`), to which coordinate descent would creep: features of text say much the same.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel._sparse import inner
from fenchel.solvers.base import BatchSolver, BatchState, evaluate
from fenchel.solvers.proxnewton.model import Model

SUFFICIENT, FLAT = 0.01, 1e-14  # share of the promised decrease; where P changes no more
ENOUGH, SWEEPS = 0.1, 50  # a sweep that adds less than this share of the model's decrease is the last
RIGHT, POOR = 0.7, 0.3  # shares of what the model promised: of a good one, and of one that needs damping
LITTLE, FIRST_DAMPING = 0.004, 0.25  # the least damping, and the first of several labels: they overshoot
SETTLED = 0.005  # share of the weights that may change their sign in a sweep


@dataclass
class ProxNewtonState(BatchState):
    """Adds the random numbers that order the weights, whether the model was right at its last minimum, and
    its damping where it was not.
    """

    rng: np.random.Generator | None = None
    trusted: bool = False
    damping: float = 0.0


@dataclass(frozen=True)
class ProxNewton(BatchSolver):
    """Newton steps over the weights that are not zero, or want not to be: the others cost nothing."""

    seed: int = 0
    needs: ClassVar[frozenset] = frozenset({"log", "descent", "columns"})
    by_shards: ClassVar[bool] = False

    def init(self, problem, start):
        begun = vars(super().init(problem, start))
        damping = 0.0 if problem.structure.name == "binary" else FIRST_DAMPING
        return ProxNewtonState(**begun, rng=np.random.default_rng(self.seed), damping=damping)

    def step(self, problem, state):
        before = state.evaluation
        model = Model(problem, before, state.damping)
        promised = _minimise(model, state.rng, state.trusted)
        state.passes += model.passes
        after = _search(problem, state, before, model.moved)
        state.stalled = after is None
        if after is None:
            return
        state.evaluation = after
        state.updates += 1
        share = (before.value - after.value) / max(promised, 1e-300)
        state.trusted = share >= RIGHT
        if share < POOR:
            state.damping = min(max(4.0 * state.damping, LITTLE), 1.0)
        elif state.trusted:
            state.damping = 0.25 * state.damping if state.damping > LITTLE else 0.0


def _minimise(model, rng, exactly) -> float:
    """Sweeps over the weights that count, and the minimum of the face they are on where that is settled.

    exactly: whether to go to that minimum: far from the optimum it is not where P has one. Returns by how
    much the model decreased.
    """
    order, total = model.wanting, 0.0
    for number in range(SWEEPS):
        before = np.sign(model.moved[order])
        decrease = model.sweep(rng.permutation(order))
        total += decrease
        if decrease <= ENOUGH * total:
            break
        changed = np.count_nonzero(np.sign(model.moved[order]) != before)
        order = order[model.moved[order] != 0.0]
        if exactly and number >= 2 and changed <= SETTLED * order.size:
            total += model.minimise_face(order)
    return total


def _search(problem, state, before, moved):
    """The evaluation at the first of w + d, w + d/2, ... where P is low enough; None where none is."""
    own, w = problem.penalised, before.w
    promised = inner(before.smooth, moved - w)
    promised += problem.l1 * float(np.abs(moved[:own]).sum() - np.abs(w[:own]).sum())
    step = 1.0
    for _ in range(40):
        after = evaluate(problem, state, moved if step == 1.0 else w + step * (moved - w))
        if after.value <= before.value + SUFFICIENT * step * promised:
            return after
        # Where P no longer changes in its last digit, the subgradient still tells progress.
        flat = abs(after.value - before.value) <= FLAT * before.value
        if flat and after.gradient_norm < 0.9 * before.gradient_norm:
            return after
        step *= 0.5
    return None
