"""The protocol between solvers and models: what a layout and what outcomes offer.

An example has parts, each with a score: labels, candidates, nodes and edges of a sequence, arcs of a tree.

    layout      how weights become scores of parts, and back: A_i and A_iᵀ; it knows which weights there are
    outcomes    what outputs are made of the parts, which one is true, what the others cost; the oracles

A `Structure` gives the two as named tuples of arrays, in `Blocks`. A kernel is declared here once and
implemented for a kind of layout or for a kind of outcomes. A solver's epoch calls it by name; Numba picks the
implementation by the type of the named tuple, compiles one specialised epoch per pair, and caches it. Where a
declaration has a body, that is the kernel of all that have none of their own. docs/extending.md has a table
of which solver calls which, and an example.

Conventions of the kernels. One example i at a time. The block of an example is its vector of marginals,
μ_i, block_length(blocks, i) numbers long, at most `blocks.size`; s holds the scores of the same parts.
Buffers may be longer. The weights v are those of `design.py`: penalised ones, then free coordinates.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from fenchel._dispatch import kernel_by_type

layout_kernel = partial(kernel_by_type, field="layout")
outcome_kernel = partial(kernel_by_type, field="outcomes")


class Blocks(NamedTuple):
    """What the kernels take: the examples of a problem by a layout and by their outcomes."""

    layout: NamedTuple  # structures/layouts
    outcomes: NamedTuple  # the other files of structures
    mass: np.ndarray  # (n,)
    lam: float
    size: int  # numbers of the largest block
    threshold: float = 0.0  # weights are read as soft(v, threshold): λ₁/λ for v = u/λ of a dual solver


class Structure:
    """What a structure says of itself unless it knows better. `name`, `outputs` and `shape` each has its own.

    listed: each part is an output of its own, so that marginals are probabilities of outputs, and their
    logarithms scores. If not, outputs are made of several parts.
    products: the scores of all examples are the product of one matrix with w.
    tells_entropy: marginals determine H.
    offers: what it has beyond gradients, see `offers.py`.
    """

    listed = True
    products = True
    tells_entropy = True
    offers: frozenset = frozenset({"entropy"})
    extra = 0  # weights beside those of attributes
    mask = None  # (d,) bool: the weights there are; None for all

    def blocks(self, examples, design, lam) -> Blocks:
        """The arrays of a problem."""
        layout, size = self.layout(examples, design), self.largest(examples)
        return Blocks(layout, self.outcomes(examples), examples.mass, lam, size)

    def layout(self, examples, design) -> NamedTuple:
        raise NotImplementedError

    def outcomes(self, examples) -> NamedTuple:
        raise NotImplementedError

    def begins(self, examples) -> np.ndarray | None:
        """(n + 1,) where the block of each example begins in an array of all; None where it is a row."""
        return None

    def room(self, examples) -> np.ndarray:
        """An array for the blocks of all examples, which is to be filled."""
        return examples.room(self.shape(examples), self.begins(examples))

    def largest(self, examples) -> int:
        """Numbers of the largest block."""
        return self.shape(examples)[1]

    def telling_entropy(self) -> "Structure | None":
        """The same with marginals that determine H; None where there are none."""
        return self if self.tells_entropy else None

    def cleaned(self, examples, mu):
        """mu as marginals to rounding, where it is within 1e-9 of some; None where not, or not known."""
        return None

    def sizes_of_choice(self, examples):
        """The logarithm of how many outputs each example has, and the most that one costs: (n,), or for all.

        None where that takes an oracle to find out: in the place of both, or of one.
        """
        return None

    def measures(self, examples) -> tuple[float, float, float]:
        """What rounding grows with: parts of an output, 0 where it is one; the most that a wrong part costs;

        the largest norm of what the weights behind those of attributes are multiplied by.
        """
        return 0.0, 1.0, 0.0

    def shares(self, examples):
        """How often each label is true, where a free offset can tell them apart."""
        raise NotImplementedError

    def prior(self, shares):
        """The best free offset where all weights are zero; shares: of each label."""
        raise NotImplementedError


def normalised(mu, sums):
    """mu divided by these sums of it; None where one is not within 1e-9 of one, or a number is negative."""
    near = (mu >= 0.0).all() and (np.abs(sums - 1.0) <= 1e-9).all()
    return mu / sums if near else None


# ---- kernels of a layout: where parts lie; unless it says so, those of example i from layout.offsets[i] on


@layout_kernel
def block_length(blocks, i):
    """How many parts example i has."""
    return np.int64(blocks.layout.offsets[i + 1] - blocks.layout.offsets[i])


@layout_kernel
def block_view(blocks, mu, i):
    """The part of mu, the marginals of all examples, that belongs to example i."""
    return mu[blocks.layout.offsets[i] : blocks.layout.offsets[i + 1]]


@layout_kernel
def block_read(blocks, scores, i, s):
    """s = the scores of example i out of the scores of all; s written."""
    begin, end = blocks.layout.offsets[i], blocks.layout.offsets[i + 1]
    for j in range(end - begin):
        s[j] = scores[begin + j]


@layout_kernel
def block_write(blocks, i, s, scores):
    """The inverse of `block_read`: scores written."""
    begin, end = blocks.layout.offsets[i], blocks.layout.offsets[i + 1]
    for j in range(end - begin):
        scores[begin + j] = s[j]


# ---- kernels of a layout: weights to scores and back


@layout_kernel
def block_scores(blocks, i, v, s):
    """s = A_i w, w = soft(v, blocks.threshold), free coordinates as they are; s written."""


@layout_kernel
def block_add(blocks, i, step, delta, v):
    """v += step · A_iᵀ delta; v written."""


@layout_kernel
def block_squared_norm(blocks, i, delta):
    """‖A_iᵀ delta‖²."""


@layout_kernel
def block_norms(blocks, i, norms):
    """The diagonal of K = A_i A_iᵀ, ‖f(x_i, y)‖² of each outcome y; norms written."""


@layout_kernel
def block_product(blocks, i, j, k):
    """K_jk of two outcomes."""


@layout_kernel
def block_move_pair(blocks, i, step, j, k, norms, slopes):
    """slopes += step · K(e_j − e_k), given the diagonal `norms` of K; slopes written."""


@layout_kernel
def block_move(blocks, i, step, delta, s, moved):
    """moved = s + step · A_i A_iᵀ delta: scores after such an update; written."""


@layout_kernel
def block_radius(blocks, i):
    """R_i = max over outputs y of ‖F(x_i, y) − F(x_i, y_i)‖², lepriol2018 (22) and Appendix C."""


@layout_kernel
def block_catch_up(blocks, i, now, drift, g, seen, v):
    """For each weight j of example i: v_j −= g_j (drift[now] − drift[seen_j]), seen_j = now. v, seen written.

    The postponed part of a dense update v ← v − step·g (just-in-time updates).
    """


# ---- kernels of outcomes: the truth and what differs from it


@outcome_kernel
def block_target(blocks, i, y):
    """y = y_i, the empirical marginals; y written."""


@outcome_kernel
def block_residual(blocks, i, mu, delta):
    """delta = y_i − μ, without cancellation where μ is near y_i; written."""
    block_target(blocks, i, delta)
    for j in range(block_length(blocks, i)):
        delta[j] -= mu[j]


@outcome_kernel
def block_settled(blocks, i, mu, room):
    """The marginals that `block_residual` takes μ for, in room where they are others: they sum to one.

    A solver that moves mass between outcomes a thousand times is off by 1e-13, which scores of 1e20 magnify.
    """
    return mu


@outcome_kernel
def block_cost(blocks, i, cost):
    """cost = Hamming cost of each part of example i; written. The default: what is not true costs one."""
    block_target(blocks, i, cost)
    for j in range(block_length(blocks, i)):
        cost[j] = 1.0 - cost[j]


@outcome_kernel
def block_augment(blocks, i, s, room):
    """s += cost; s and room written. Returns ⟨s, y_i⟩.

    A list of outcomes takes the score of the truth off first, where large scores would swallow the cost.
    """
    block_cost(blocks, i, room)
    for j in range(block_length(blocks, i)):
        s[j] += room[j]
    return block_truth(blocks, i, s)


@outcome_kernel
def block_truth(blocks, i, s):
    """⟨s, y_i⟩."""
    total, y = 0.0, np.empty(block_length(blocks, i))
    block_target(blocks, i, y)
    for j in range(y.size):
        if y[j] > 0.0:
            total += y[j] * s[j]
    return total


# ---- kernels of outcomes: oracles


@outcome_kernel
def block_marginals(blocks, i, s, mu):
    """μ = marginals at the scores s (written); returns log Z(s) − ⟨s, y_i⟩ ≥ 0 in full precision."""


@outcome_kernel
def block_argmax(blocks, i, s, mu):
    """μ = the output of largest score as a 0/1 vector (written); returns its score."""


@outcome_kernel
def block_covariance(blocks, i, at, s, t):
    """t = the change of the marginals when the scores change by s; written.

    at: the marginals themselves, whose covariance is diag μ − μ μᵀ; where outputs are not listed, the scores.
    """


@outcome_kernel
def block_loss(blocks, i, s, room):
    """log Z(s) − ⟨s, y_i⟩ less the entropy of y_i, which is 0 but for soft targets; room written."""
    return block_marginals(blocks, i, s, room)


@outcome_kernel
def block_weakest(blocks, i, s, mu):
    """The outcome of least score among those that have mass; −1 where they are not listed, or but two."""
    return -1


# ---- kernels of outcomes: entropy


@outcome_kernel
def block_entropy(blocks, i, mu):
    """H(μ_i); of marginals that do not tell it 0: no entropy is less."""
    return 0.0


@outcome_kernel
def block_entropy_slopes(blocks, i, mu, delta, gamma):
    """First and second derivative of γ ↦ H(μ_i + γ δ_i); not asked for where entropy is not offered."""
    return 0.0, 0.0


@outcome_kernel
def block_entropy_at(blocks, i, theta, mu, loss):
    """H of the marginals μ at the scores θ, less what rounding may have added to it, and that.

    loss: what `block_marginals` returned there, so that H = loss + ⟨θ, y_i − μ⟩.
    """
    size, along = 1.0 + loss, 0.0
    for j in range(block_length(blocks, i)):
        along += theta[j] * mu[j]
        size += abs(theta[j]) * mu[j]
    entropy = loss + (block_truth(blocks, i, theta) - along)
    return max(entropy - 4e-15 * size, 0.0), 4e-15 * size


@outcome_kernel
def block_divergence(blocks, i, mu, entropy, s, loss):
    """KL(μ_i ‖ marginals at s), never negative; loss is what `block_marginals` returned at s.

    entropy: H(μ_i), for structures whose marginals alone do not tell it; nan where they do.
    """
    if not entropy >= 0.0:
        entropy = block_entropy(blocks, i, mu)
    along = 0.0
    for j in range(block_length(blocks, i)):
        along += s[j] * mu[j]
    return max(loss + (block_truth(blocks, i, s) - along) - entropy, 0.0)
