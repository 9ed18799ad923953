"""The averaged structured perceptron: quick taggers without an objective."""

from dataclasses import dataclass
from math import nan
from typing import ClassVar

import numpy as np

from fenchel._cache import njit
from fenchel.certificates import Point
from fenchel.solvers.base import State
from fenchel.structures import base


@dataclass
class PerceptronState(State):
    """v the weights, moved what was added to them, times the number of the visit."""

    v: np.ndarray | None = None
    moved: np.ndarray | None = None
    visits: int = 0
    rng: np.random.Generator | None = None


@dataclass(frozen=True)
class Perceptron:
    """w ← w + n m_i (F(x_i, y_i) − F(x_i, ŷ)) where ŷ, the best output, is not y_i.

    The model is the mean of w over all visits: Collins 2002, Figure 2 and section 2.3, as CRFsuite's `ap`. It
    minimises nothing, so nothing is proven of it, and constants such as C have no part in it; it ends where
    no training example is labelled wrong.
    """

    seed: int = 0
    needs: ClassVar[frozenset] = frozenset({"blocks", "sequences"})
    by_shards: ClassVar[bool] = False
    free_check: ClassVar[bool] = True
    certifies: ClassVar[bool] = False

    def init(self, problem, start):
        v = problem.weights_at(start).copy()
        return PerceptronState(v=v, moved=np.zeros(v.size), rng=np.random.default_rng(self.seed))

    def step(self, problem, state):
        order = state.rng.permutation(problem.n)
        wrong = _visit_all(problem.blocks, order, state.visits, state.v, state.moved)
        state.visits += problem.n
        state.passes += 1.0
        state.oracle_calls += problem.n
        state.updates += wrong
        state.finished = wrong == 0

    def point(self, problem, state):
        """The mean of the weights over all visits: v_k − Σ_j≤k (j/k) Δ_j."""
        mean = state.v - state.moved / max(state.visits, 1)
        return Point(*problem.design.split(mean), primal=nan, dual=nan, gap=nan)


@njit(cache=True, nogil=True)
def _visit_all(blocks, order, visits, v, moved):
    """Visit the examples in this order; v and moved written. Returns how many were labelled wrong."""
    s, mu, residual = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    wrong = 0
    for k in range(order.size):
        i = order[k]
        base.block_scores(blocks, i, v, s)
        base.block_argmax(blocks, i, s, mu)
        base.block_residual(blocks, i, mu, residual)
        far = 0.0
        for j in range(base.block_length(blocks, i)):
            far += abs(residual[j])
        if far > 0.0:
            weight = order.size * blocks.mass[i]
            base.block_add(blocks, i, weight, residual, v)
            base.block_add(blocks, i, weight * (visits + k), residual, moved)
            wrong += 1
    return wrong
