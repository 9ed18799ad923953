"""Where the free offsets of labels lie at the optimum, whose weights are known to be near.

At the optimum offsets balance: with its scores s* the mean probability of each label is its share of mass.
Where the lead of no label over another in s*_i differs from that in the scores s_i by more than far_i, the
mean probability of l at offsets b is at least

    F_l(b) = Σ_i m_i e^(s_l + b_l) / (e^(s_l + b_l) + e^(far_i) Σ_{j ≠ l} e^(s_j + b_j))

which grows with b_l, falls with the others, and stays where all grow alike. So offsets b with F_l(b) ≥
share_l for all l but one, whose offset is 0 in b as in b*, are nowhere below b*: else, at the l where
d = b*_l − b_l is largest, share_l ≥ F_l(b*) > F_l(b + d) = F_l(b) ≥ share_l. With −far_i: nowhere above.
Of two labels, one of them held at 0, this is the root of Σ m_i (σ(s_i ± far_i + b) − y_i) = 0.
"""

import numpy as np

STEPS, LONGEST = 50, 2.0  # Newton's, and what an offset may change in one
FARTHEST = 600.0  # e to the power of it is still a number
NEAREST, FARTHER = 1e-10, 10.0  # by which share of what they are probabilities are moved past the shares


class OffsetRange:
    """What `offset_range` finds, when somebody asks: most models are never asked to prove a prediction.

    Until then it keeps the scores of the training set; a copy or a file gets the bounds alone.
    """

    def __init__(self, *given):
        self._given, self._ends = given, None

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """(low, high), (K,) each."""
        if self._given is not None:
            self._ends, self._given = offset_range(*self._given), None
        return self._ends

    def __getstate__(self):
        return {"_given": None, "_ends": self.ends}


def offset_range(scores, far, mass, shares, b) -> tuple[np.ndarray, np.ndarray]:
    """(low, high), (K,) each: bounds of b* less that of the label of most mass; infinite if none are known.

    scores (n, K); far, mass (n,); shares (K,) of the mass; b (K,) offsets that about balance the scores.
    """
    fixed = int(np.argmax(shares))
    far = np.minimum(far, FARTHEST)
    return tuple(_end(scores, mass, shares, fixed, b - b[fixed], side, side * far) for side in (-1.0, 1.0))


def _end(scores, mass, shares, fixed, b, side, far):
    """Offsets where F goes past the shares by next to nothing: above (side 1) or below (−1)."""
    others = np.arange(shares.size) != fixed
    for _ in range(STEPS):
        found, slopes = _probabilities(scores + b, mass, far)
        step = _solve(slopes, others, shares - found)
        b = b + np.clip(step, -LONGEST, LONGEST)
        if np.abs(step).max() <= NEAREST * (1.0 + np.abs(b).max()):
            break
    away, by = side * _solve(slopes, others, shares), NEAREST
    while by < 1.0:
        end = b + by * away
        past = side * (_probabilities(scores + end, mass, far)[0] - shares)
        if (past > NEAREST * shares)[others].all():
            return end
        by *= FARTHER
    return np.full(shares.size, side * np.inf)


def _probabilities(scores, mass, far):
    """F (K,) and its slopes (K, K); those of a row add up to nothing."""
    best = scores.argmax(axis=1)[:, None]
    e = np.exp(scores - np.take_along_axis(scores, best, axis=1))
    total = e.sum(axis=1, keepdims=True)
    rest = total - e
    np.put_along_axis(e, best, 0.0, axis=1)
    np.put_along_axis(rest, best, e.sum(axis=1, keepdims=True), axis=1)  # the difference would lose digits
    np.put_along_axis(e, best, 1.0, axis=1)
    factor = np.exp(far)[:, None]
    p = e / (e + factor * rest)
    weighted = mass[:, None] * p
    with np.errstate(divide="ignore", invalid="ignore"):
        drop = np.where(rest > 0.0, weighted * (1.0 - p) / rest, 0.0)
    slopes = -(drop.T @ e)
    np.fill_diagonal(slopes, 0.0)
    np.fill_diagonal(slopes, -slopes.sum(axis=1))
    return weighted.sum(axis=0), slopes


def _solve(slopes, others, wanted):
    """The change of the other offsets that changes F by so much; 0 of the one that is fixed, or of all."""
    step = np.zeros(others.size)
    try:
        step[others] = np.linalg.solve(slopes[np.ix_(others, others)], wanted[others])
    except np.linalg.LinAlgError:
        return step
    return step if np.isfinite(step).all() else np.zeros(others.size)
