"""Working sets of outputs made of several parts: too many to list, so the sets hold them one by one."""

from dataclasses import dataclass

import numpy as np

from fenchel._cache import njit
from fenchel.losses import block_gap, oracle
from fenchel.solvers import outputs
from fenchel.solvers.cuttingplane.outcomes import WorkingSets
from fenchel.solvers.outputs import Points
from fenchel.structures import base


@dataclass
class OutputSets(WorkingSets):
    """points: the outputs in the sets and their weights α, Σ α p = μ."""

    points: Points | None = None
    BYTES = 8 + 8  # mu, and as many numbers for what an extension finds

    def fill(self, problem, warm: bool) -> None:
        self.points = outputs.first_points(problem, self.mu, warm)

    def extend(self, problem, least: float) -> float:
        self.oracle_calls += problem.n
        found, sizes = np.empty(problem.shape), np.zeros(problem.n, np.uint64)
        gap = _find(problem.loss, problem.blocks, least, self.points, self.mu, self.v, found, sizes)
        self.points = outputs.added(problem, outputs.aged(self.points), found, sizes)
        return gap

    def reoptimise(self, problem, enough: float) -> float:
        gaps, order = np.empty(problem.n), np.arange(problem.n)
        outputs.go_over(problem.blocks, order, enough, self.points, self.mu, self.v, gaps)
        return float(problem.examples.mass @ gaps)


@njit(cache=True, nogil=True)
def _find(loss, blocks, least, points, mu, v, found, sizes):
    """The output each example violates most, and its size, or 0 if its set has one nearly as good.

    found like mu, sizes (n,) written. Returns the duality gap.
    """
    s, gap = np.empty(blocks.size), 0.0
    for i in range(sizes.size):
        nu = base.block_view(blocks, found, i)
        base.block_scores(blocks, i, v, s)
        value = oracle(loss, blocks, i, s, nu)
        mu_i = base.block_view(blocks, mu, i)
        gap += blocks.mass[i] * block_gap(loss, blocks, i, s, nu, mu_i, value, np.nan)
        top = 0.0
        for j in range(nu.size):
            if nu[j] != 0.0:
                top += nu[j] * s[j]
        inside = outputs.best_inside(points, i, s)
        sizes[i] = outputs.size_of(nu) if top - inside > least else np.uint64(0)
    return gap
