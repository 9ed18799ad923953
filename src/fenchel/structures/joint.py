"""Candidate sets: every candidate of an example has its own sparse row f(x, y), and all share w (d,).

Scores, marginals and targets of all candidates lie one after the other, (M,); those of example i between
starts[i] and starts[i + 1].
"""

import numpy as np

from fenchel._math import TINY, ordered
from fenchel.structures import base
from fenchel.structures.flat import LISTED, CandidateOutcomes, settle, softmax
from fenchel.structures.layouts.candidates import CandidateRows


class Joint(base.Structure):
    """The structure of candidate sets, each candidate with its own features."""

    name = "flat joint"
    offers = LISTED
    outputs = None  # one weight vector
    per_row = 1  # outcomes per row of features

    def __init__(self, size: int):
        self.size = size

    def layout(self, examples, design) -> CandidateRows:
        rows, work = design.rows, np.zeros(design.dim)
        return CandidateRows(rows, examples.starts, design.norms, work, design.dim)

    def outcomes(self, examples) -> CandidateOutcomes:
        return CandidateOutcomes(examples.y, examples.starts)

    def largest(self, examples) -> int:
        return self.size

    def shape(self, examples):
        """Of the marginals of all candidates."""
        return (examples.y.size,)

    def cleaned(self, examples, mu):
        """mu made to sum to one over the candidates of each example; None where it does not nearly."""
        sums = np.add.reduceat(mu, examples.starts[:-1].astype(np.int64))
        return base.normalised(mu, np.repeat(sums, np.diff(examples.starts.astype(np.int64))))

    def sizes_of_choice(self, examples):
        counts = np.diff(examples.starts.astype(np.int64))
        return np.log(counts), (counts > 1).astype(float)

    def logarithms(self, mu):
        """(M,) scores whose marginals are μ."""
        return np.log(np.maximum(mu, TINY))


# ---- the kernels


@base.block_target.implement(CandidateOutcomes)
def _target(blocks, i, y):
    begin = blocks.outcomes.starts[i]
    for j in range(blocks.outcomes.starts[i + 1] - begin):
        y[j] = blocks.outcomes.y[begin + j]


@base.block_residual.implement(CandidateOutcomes)
def _residual(blocks, i, mu, delta):
    begin = blocks.outcomes.starts[i]
    for j in range(blocks.outcomes.starts[i + 1] - begin):
        delta[j] = blocks.outcomes.y[begin + j] - mu[j]
    settle(np.int64(blocks.outcomes.starts[i + 1] - begin), mu, delta)


@base.block_marginals.implement(CandidateOutcomes)
def _marginals(blocks, i, s, mu):
    begin = blocks.outcomes.starts[i]
    m = np.int64(blocks.outcomes.starts[i + 1] - begin)
    top, rest = softmax(m, s, mu)
    loss = 0.0
    for j in range(m):
        if blocks.outcomes.y[begin + j] > 0.0:
            loss += blocks.outcomes.y[begin + j] * ordered(top, s[j], rest)
    return loss
