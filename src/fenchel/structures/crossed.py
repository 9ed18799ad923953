"""K labels crossed with attributes: W (A, K), a weight for each pair; f(x, y) is never written out.

Scores and marginals of all examples are (n, K). Targets are rows of a sparse (n, K) matrix: one label, or a
distribution over several (soft labels, merged contexts).
"""

import numpy as np

from fenchel._math import TINY, ordered
from fenchel._sparse import as_csr
from fenchel.structures import base, offsets
from fenchel.structures.flat import LISTED, LabelOutcomes, settle, softmax
from fenchel.structures.layouts.rows import NO_MASK, CrossedRows


class Crossed(base.Structure):
    """The structure of K labels with a weight for each pair of attribute and label."""

    name = "flat crossed"
    offers = LISTED | {"surrogates"}

    def __init__(self, labels: int, mask: np.ndarray | None = None):
        """mask (A·K,) bool: the weights there are, None for all."""
        self.outputs = self.per_row = self.size = labels
        self.mask = mask

    def layout(self, examples, design) -> CrossedRows:
        mask = NO_MASK if self.mask is None else self.mask.astype(np.uint8)
        return CrossedRows(labels=self.size, mask=mask, **design.geometry())

    def outcomes(self, examples) -> LabelOutcomes:
        return LabelOutcomes(examples.y)

    def observed(self, examples) -> np.ndarray:
        """(A·K,) bool: the pairs of attribute and label that the examples show."""
        x, y = as_csr(examples.rows).astype(bool), as_csr(examples.y).astype(bool)
        pairs = (x.T @ y).tocoo()
        seen = np.zeros(pairs.shape, bool)
        seen[pairs.row, pairs.col] = True
        return seen.ravel()

    def shape(self, examples):
        """Of the marginals of all examples."""
        return examples.n, self.size

    def cleaned(self, examples, mu):
        """The rows of mu made to sum to one; None where they do not nearly, or are negative."""
        return base.normalised(mu, mu.sum(axis=1, keepdims=True))

    def sizes_of_choice(self, examples):
        return np.log(self.size), float(self.size > 1)

    def shares(self, examples):
        """The mass of each label."""
        y = examples.y
        mass = np.repeat(examples.mass, np.diff(y.indptr.astype(np.int64)))
        return np.bincount(y.indices, weights=mass * y.data, minlength=self.size)

    def prior(self, shares):
        """(K,) the logarithms of how often each label is true, with mean zero."""
        logs = np.log(shares)
        return logs - logs.mean()

    def logarithms(self, mu):
        """(n, K) scores whose marginals are μ."""
        logs = np.maximum(mu, TINY)
        return np.log(logs, out=logs)

    def offset(self, blocks, scores, each_part, enough=0.0, left=0.0):
        """The free b (K,), mean zero, that minimises the log loss at scores + b.

        enough and left end it earlier: of what was off balance, and (K,) of each label.
        """
        return offsets.offset_of_labels(offsets.LabelSums(blocks, scores, each_part), enough, left)

    def tilted(self, blocks, mu, each_part, overwrite=False):
        """μ_i e^δ, divided by its sum, with the δ that balances them; None where δ is far.

        overwrite: mu is written; a copy of a large one took as long as a pass.
        """
        delta = offsets.tilt_of_labels(offsets.LabelSums(blocks, mu, each_part, odds=True))
        if delta is None:
            return None
        mu, growth = mu if overwrite else mu.copy(), np.exp(delta)
        each_part(lambda start, stop: offsets.tilt_rows(start, stop, growth, mu))
        return mu


# ---- the kernels


@base.block_target.implement(LabelOutcomes)
def _target(blocks, i, y):
    for k in range(blocks.size):
        y[k] = 0.0
    for e in range(blocks.outcomes.targets.indptr[i], blocks.outcomes.targets.indptr[i + 1]):
        y[blocks.outcomes.targets.indices[e]] = blocks.outcomes.targets.data[e]


@base.block_residual.implement(LabelOutcomes)
def _residual(blocks, i, mu, delta):
    for k in range(blocks.size):
        delta[k] = -mu[k]
    for e in range(blocks.outcomes.targets.indptr[i], blocks.outcomes.targets.indptr[i + 1]):
        delta[blocks.outcomes.targets.indices[e]] += blocks.outcomes.targets.data[e]
    settle(blocks.size, mu, delta)


@base.block_marginals.implement(LabelOutcomes)
def _marginals(blocks, i, s, mu):
    top, rest = softmax(blocks.size, s, mu)
    loss = 0.0
    for e in range(blocks.outcomes.targets.indptr[i], blocks.outcomes.targets.indptr[i + 1]):
        loss += blocks.outcomes.targets.data[e] * ordered(top, s[blocks.outcomes.targets.indices[e]], rest)
    return loss
