"""The working sets of cutting planes with a slack per example, and the quadratic program over one of them.

    max over α of D(μ),   μ_i = Σ_a α_ia p_ia,   α_i ≥ 0 with Σ_a α_ia = 1

where p_i1, p_i2, … are the outputs in the set of example i. Here outputs are listed, and a set is marked in
that list; `outputs.py` has those of outputs too many to list.
"""

from dataclasses import dataclass

import numpy as np

from fenchel._cache import helper, njit
from fenchel.solvers.base import State
from fenchel.solvers.cddual.lists import optimise_hinge, put_block
from fenchel.structures import base


@dataclass
class WorkingSets(State):
    """mu the dual variables, v = w(μ), the last known gap.

    extend(problem, least) adds to each set the output violated most, if by more than `least`, and returns the
    gap; reoptimise(problem, enough) goes over the sets once and returns the gap over them as met.
    """

    mu: np.ndarray | None = None
    v: np.ndarray | None = None
    gap: float = np.inf
    passes_left: int = 0  # over the working sets, before they are extended again


@dataclass
class OutcomeSets(WorkingSets):
    """working: 1 where an output is in its example's set."""

    working: np.ndarray | None = None
    BYTES = 8 + 1

    def fill(self, problem, warm: bool) -> None:
        self.working = (self.mu > 0.0).astype(np.uint8)

    def extend(self, problem, least: float) -> float:
        self.oracle_calls += problem.n
        return _extend(problem.blocks, least, self.mu, self.v, self.working)

    def reoptimise(self, problem, enough: float) -> float:
        self.oracle_calls += problem.n  # every output is scored
        return _reoptimise(problem.blocks, np.arange(problem.n), self.working, self.mu, self.v)


@helper(cache=True, nogil=True)
def _margins(blocks, i, v, s, cost):
    """s = scores at v plus cost; s, cost written. Returns the number of outputs."""
    base.block_scores(blocks, i, v, s)
    base.block_cost(blocks, i, cost)
    m = base.block_length(blocks, i)
    for j in range(m):
        s[j] += cost[j]
    return m


@njit(cache=True, nogil=True)
def _extend(blocks, least, mu, v, working):
    """Add to each working set the output violated most, if by more than `least`; working written.

    Returns the duality gap Σ m_i (max s_i − ⟨s_i, μ_i⟩).
    """
    s, cost = np.empty(blocks.size), np.empty(blocks.size)
    gap = 0.0
    for i in range(blocks.mass.size):
        m = _margins(blocks, i, v, s, cost)
        mu_i, set_i = base.block_view(blocks, mu, i), base.block_view(blocks, working, i)
        best, inside, mean = 0, -np.inf, 0.0
        for j in range(m):
            best = j if s[j] > s[best] else best
            mean += s[j] * mu_i[j]
            if set_i[j] > 0:
                inside = max(inside, s[j])
        gap += blocks.mass[i] * (s[best] - mean)
        if s[best] - inside > least:
            set_i[best] = 1
    return gap


@njit(cache=True, nogil=True)
def _reoptimise(blocks, order, working, mu, v):
    """One pass of pair updates within the working sets; mu, v written. Returns the gap over them as met."""
    s, slopes, z = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    norms, delta = np.empty(blocks.size), np.empty(blocks.size)
    gap = 0.0
    for i in order:
        m = _margins(blocks, i, v, s, delta)
        mu_i, set_i = base.block_view(blocks, mu, i), base.block_view(blocks, working, i)
        top, mean, count = -np.inf, 0.0, 0
        for j in range(m):
            # an output that is not in the set has no mass, and a slope that keeps it so
            z[j], slopes[j] = mu_i[j], -s[j] if set_i[j] > 0 else np.inf
            mean += s[j] * mu_i[j]
            if set_i[j] > 0:
                top = max(top, s[j])
                count += 1
        gap += blocks.mass[i] * (top - mean)
        if count > 1:
            rate = blocks.mass[i] / blocks.lam
            base.block_norms(blocks, i, norms)
            optimise_hinge(blocks, i, rate, norms, z[:m], slopes)
            put_block(blocks, i, rate, False, z, mu_i, delta, v)
    return gap
