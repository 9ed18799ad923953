"""What a label structure offers: to batch solvers methods on arrays, to block solvers kernels.

A block kernel is declared here once and implemented by each structure for its own named tuple of
arrays ("blocks"). A solver's epoch calls it by name; Numba picks the implementation by the type of the
named tuple, compiles one specialised epoch per structure, and caches it. Where a declaration has a body, that
is the kernel of all structures without one of their own.

Conventions of the kernels. One example i at a time. The block of an example is its vector of marginals,
μ_i, block_length(blocks, i) numbers long, at most `blocks.size`; s holds the scores of the same outcomes.
Buffers may be longer. The weights v are those of `design.py`: penalised ones, then free coordinates.
"""

import numpy as np

from fenchel._cache import helper, njit
from fenchel._dispatch import kernel_by_type as block_kernel
from fenchel._math import ordered


class Structure:
    """What a structure says of itself unless it knows better."""

    linked = False  # scores are X w of a matrix X, and marginals determine the entropy
    extra = 0  # weights beside those of attributes
    mask = None  # (d,) bool: the weights there are; None for all

    def unroll(self) -> "Structure":
        """A structure whose marginals determine the entropy."""
        return self

    def cleaned(self, examples, mu):
        """mu as marginals to rounding, where it is within 1e-9 of some; None where it is not."""
        raise NotImplementedError

    def sizes_of_choice(self, examples):
        """The logarithm of how many outputs each example has, and the most that one costs: (n,), or for all.

        None where that takes an oracle to find out.
        """
        raise NotImplementedError

    def shares(self, examples):
        """How often each label is true, where a free offset can tell them apart."""
        raise NotImplementedError

    def prior(self, examples):
        """The best free offset where all weights are zero."""
        raise NotImplementedError


def normalised(mu, sums):
    """mu divided by these sums of it; None where one is not within 1e-9 of one, or a number is negative."""
    near = (mu >= 0.0).all() and (np.abs(sums - 1.0) <= 1e-9).all()
    return mu / sums if near else None


@block_kernel
def block_length(blocks, i):
    """How many outcomes example i has."""


@block_kernel
def block_view(blocks, mu, i):
    """The part of mu, the marginals of all examples, that belongs to example i."""


@block_kernel
def block_read(blocks, scores, i, s):
    """s = the scores of example i out of the scores of all; s written."""


@block_kernel
def block_write(blocks, i, s, scores):
    """The inverse of `block_read`: scores written."""


@block_kernel
def block_scores(blocks, i, v, s):
    """s = A_i w; s written."""


@block_kernel
def block_add(blocks, i, step, delta, v):
    """v += step · A_iᵀ delta; v written."""


@block_kernel
def block_squared_norm(blocks, i, delta):
    """‖A_iᵀ delta‖²."""


@block_kernel
def block_gram_row(blocks, i, j, row):
    """row = row j of A_i A_iᵀ; written."""


@block_kernel
def block_move(blocks, i, step, delta, s, moved):
    """moved = s + step · A_i A_iᵀ delta: scores after such an update; written."""


@block_kernel
def block_radius(blocks, i):
    """R_i = max over outputs y of ‖F(x_i, y) − F(x_i, y_i)‖², lepriol2018 (22) and Appendix C."""


@block_kernel
def block_catch_up(blocks, i, now, drift, g, seen, v):
    """For each weight j of example i: v_j −= g_j (drift[now] − drift[seen_j]), seen_j = now. v, seen written.

    The postponed part of a dense update v ← v − step·g (just-in-time updates).
    """


@block_kernel
def block_target(blocks, i, y):
    """y = y_i, the empirical marginals; y written."""


@block_kernel
def block_residual(blocks, i, mu, delta):
    """delta = y_i − μ, without cancellation where μ is near y_i; written."""


@block_kernel
def block_settled(blocks, i, mu, room):
    """The marginals that `block_residual` takes μ for, in room where they are others: they sum to one.

    A solver that moves mass between outcomes a thousand times is off by 1e-13, which scores of 1e20 magnify.
    """
    return mu


@block_kernel
def block_cost(blocks, i, cost):
    """cost = Hamming cost of each outcome of example i; written."""


@block_kernel
def block_marginals(blocks, i, s, mu):
    """μ = marginals at the scores s (written); returns log Z(s) − ⟨s, y_i⟩ ≥ 0 in full precision."""


@block_kernel
def block_argmax(blocks, i, s, mu):
    """μ = the outcome of largest score as a 0/1 vector (written); returns its score."""


@block_kernel
def block_weakest(blocks, i, s, mu):
    """The outcome of least score among those that have mass; −1 where they are not listed, or but two."""
    return -1


@block_kernel
def block_entropy(blocks, i, mu):
    """H(μ_i)."""


@block_kernel
def block_augment(blocks, i, s, room):
    """s += cost; s and room written. Returns ⟨s, y_i⟩.

    A list of outcomes takes the score of the truth off first, where large scores would swallow the cost.
    """


@block_kernel
def block_loss(blocks, i, s, room):
    """log Z(s) − ⟨s, y_i⟩ less the entropy of y_i, which is 0 but for soft targets; room written."""


@block_kernel
def block_entropy_at(blocks, i, theta, mu, loss):
    """H of the marginals μ at the scores θ, less what rounding may have added to it, and that.

    loss: what `block_marginals` returned there. The default is of marginals that tell it themselves.
    """
    entropy = block_entropy(blocks, i, mu)
    return entropy, 1e-15 * (1.0 + entropy)


@block_kernel
def block_divergence(blocks, i, mu, entropy, s, loss):
    """KL(μ_i ‖ marginals at s), never negative; loss is what `block_marginals` returned at s.

    entropy: H(μ_i), for structures whose marginals alone do not tell it; nan where they do.
    """


@block_kernel
def block_covariance(blocks, i, at, s, t):
    """t = the change of the marginals when the scores change by s; written.

    at: the marginals themselves, whose covariance is diag μ − μ μᵀ; of linked parts, the scores.
    """


@block_kernel
def block_entropy_slopes(blocks, i, mu, delta, gamma):
    """First and second derivative of γ ↦ H(μ_i + γ δ_i)."""


@njit(cache=True, nogil=True, forceinline=True)
def augment_list(blocks, i, s, room):
    """`block_augment` of a list of outcomes: the score of the truth becomes 0; s, room written."""
    truth = 0.0
    block_target(blocks, i, room)
    for j in range(block_length(blocks, i)):
        if room[j] > 0.0:
            truth += room[j] * s[j]
    block_cost(blocks, i, room)
    for j in range(block_length(blocks, i)):
        s[j] = ordered(s[j], truth, room[j])
    return 0.0


# ---- loops over examples, the same for every structure: these can be split among threads


@helper(cache=True, nogil=True, forceinline=True)
def read_scores(blocks, i, v, scores, s):
    """s = scores of example i: those given for all, or, where none are (an empty array), at the weights v."""
    if scores.size == 0:
        block_scores(blocks, i, v, s)
    else:
        block_read(blocks, scores, i, s)


@njit(cache=True, nogil=True)
def all_marginals(blocks, start, stop, v, scores, mu):
    """Marginals at the scores of start ≤ i < stop; mu written."""
    s = np.empty(blocks.size)
    for i in range(start, stop):
        read_scores(blocks, i, v, scores, s)
        block_marginals(blocks, i, s, block_view(blocks, mu, i))


@njit(cache=True, nogil=True)
def all_scores(blocks, start, stop, v, scores):
    """A_i w for start ≤ i < stop; scores written."""
    s = np.empty(blocks.size)
    for i in range(start, stop):
        block_scores(blocks, i, v, s)
        block_write(blocks, i, s, scores)


@njit(cache=True, nogil=True)
def add_scores(blocks, start, stop, scores, v):
    """v += Σ A_iᵀ scores_i over start ≤ i < stop; v written."""
    s = np.empty(blocks.size)
    for i in range(start, stop):
        block_read(blocks, scores, i, s)
        block_add(blocks, i, 1.0, s, v)


@njit(cache=True, nogil=True)
def all_targets(blocks, epsilon, mu):
    """μ_i = (1 − ε) y_i + ε · uniform, lepriol2018 (21); mu written. All scores 0 are uniform."""
    s, uniform = np.zeros(blocks.size), np.empty(blocks.size)
    for i in range(blocks.mass.size):
        mu_i = block_view(blocks, mu, i)
        block_target(blocks, i, mu_i)
        if epsilon > 0.0:
            block_marginals(blocks, i, s, uniform)
            for j in range(block_length(blocks, i)):
                mu_i[j] = (1.0 - epsilon) * mu_i[j] + epsilon * uniform[j]


@njit(cache=True, nogil=True)
def add_targets(blocks, start, stop, v):
    """v += Σ m_i A_iᵀ y_i over start ≤ i < stop; v written."""
    y = np.empty(blocks.size)
    for i in range(start, stop):
        block_target(blocks, i, y)
        block_add(blocks, i, blocks.mass[i], y, v)


@njit(cache=True, nogil=True)
def add_residuals(blocks, start, stop, mu, v):
    """v += Σ m_i A_iᵀ (y_i − μ_i) over start ≤ i < stop; v written."""
    delta = np.empty(blocks.size)
    for i in range(start, stop):
        block_residual(blocks, i, block_view(blocks, mu, i), delta)
        block_add(blocks, i, blocks.mass[i], delta, v)


@njit(cache=True, nogil=True)
def all_covariances(blocks, start, stop, at, scores):
    """scores_i ← m_i · covariance · scores_i for start ≤ i < stop, at as in `block_covariance`; written."""
    s, t = np.empty(blocks.size), np.empty(blocks.size)
    for i in range(start, stop):
        block_read(blocks, scores, i, s)
        block_covariance(blocks, i, block_view(blocks, at, i), s, t)
        for j in range(block_length(blocks, i)):
            t[j] *= blocks.mass[i]
        block_write(blocks, i, t, scores)
