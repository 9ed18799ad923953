"""A structure for tests, and an example of one: choose m of K labels; a subset scores the sum of its labels.

The layout is there already (`CrossedRows`). What is written here is what a subset is: the true one, the best
one, marginals and covariance. Marginals do not tell the entropy in closed form, so it is not offered.
"""

from typing import NamedTuple

import numpy as np

from fenchel._cache import njit
from fenchel._sparse import Rows
from fenchel.structures import base
from fenchel.structures.layouts.rows import CrossedRows


class Subsets(NamedTuple):
    """The outcomes: subsets of `count` labels."""

    targets: Rows  # (n, K), `count` ones in each row
    count: int


class ChooseM(base.Structure):
    """m of K labels."""

    name = "choose m"
    listed = False
    tells_entropy = False
    offers = frozenset({"hessian", "vertices"})

    def __init__(self, labels: int, count: int):
        self.outputs, self.count = labels, count

    def shape(self, examples):
        return examples.n, self.outputs

    def layout(self, examples, design) -> CrossedRows:
        return CrossedRows(labels=self.outputs, **design.geometry())

    def outcomes(self, examples) -> Subsets:
        return Subsets(examples.y, self.count)

    def measures(self, examples):
        return float(self.count), 1.0, 0.0


@njit(cache=True, nogil=True)
def sums_over_subsets(s, size, without, m):
    """(m + 1,) log Σ e^score over subsets of each size up to m that lack a label, and the mean of t there.

    s (2, size): scores, and a second number t of each label; a subset has the sum of t of its labels.
    """
    logs, means = np.full(m + 1, -np.inf), np.zeros(m + 1)
    logs[0] = 0.0
    for k in range(size):
        if k == without:
            continue
        for c in range(m, 0, -1):
            if logs[c - 1] == -np.inf:
                continue
            taken, mean = logs[c - 1] + s[0, k], means[c - 1] + s[1, k]
            share = 1.0 / (1.0 + np.exp(logs[c] - taken))
            means[c] += share * (mean - means[c])
            logs[c] = np.logaddexp(logs[c], taken)
    return logs, means


@base.block_target.implement(Subsets)
def _target(blocks, i, y):
    targets = blocks.outcomes.targets
    for k in range(blocks.size):
        y[k] = 0.0
    for e in range(targets.indptr[i], targets.indptr[i + 1]):
        y[targets.indices[e]] = 1.0


@njit(cache=True, nogil=True)
def marginals(s, size, m, mu):
    """mu written; returns log Z."""
    both = np.zeros((2, size))
    both[0] = s[:size]
    level = sums_over_subsets(both, size, -1, m)[0][m]
    for k in range(size):
        mu[k] = np.exp(s[k] + sums_over_subsets(both, size, k, m - 1)[0][m - 1] - level)
    return level


@base.block_marginals.implement(Subsets)
def _marginals(blocks, i, s, mu):
    level = marginals(s, blocks.size, blocks.outcomes.count, mu)
    return max(level - base.block_truth(blocks, i, s), 0.0)


@base.block_argmax.implement(Subsets)
def _argmax(blocks, i, s, mu):
    order, best = np.argsort(-s[: blocks.size]), 0.0
    mu[: blocks.size] = 0.0
    for k in order[: blocks.outcomes.count]:
        mu[k] = 1.0
        best += s[k]
    return best


@njit(cache=True, nogil=True)
def covariance(scores, s, size, m, t):
    """t_k = μ_k (E[⟨s, z⟩ | z_k = 1] − E[⟨s, z⟩]); written."""
    both = np.zeros((2, size))
    both[0], both[1] = scores[:size], s[:size]
    logs, means = sums_over_subsets(both, size, -1, m)
    for k in range(size):
        own, rest = sums_over_subsets(both, size, k, m - 1)
        t[k] = np.exp(scores[k] + own[m - 1] - logs[m]) * (s[k] + rest[m - 1] - means[m])


@base.block_covariance.implement(Subsets)
def _covariance(blocks, i, scores, s, t):
    covariance(scores, s, blocks.size, blocks.outcomes.count, t)
