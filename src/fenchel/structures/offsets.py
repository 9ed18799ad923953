"""The best free offset at given scores: Σ m_i (y_i − μ_i) = 0, for two classes and for K labels.

Solvers take the offset for a coordinate among others; it is optimised to rounding only where a certificate is
made, because a bound on the optimum rests on it. A Newton step costs an exponential for each score.

each_part(task): the list of task(start, stop) over parts of the examples, by threads.
The searches ask for sums over the examples only, `PairSums` or `LabelSums`: these may be elsewhere.
"""

from math import log, log1p
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from fenchel._cache import helper, njit
from fenchel._lanes import exp_lanes, load, store, zeros
from fenchel._math import TINY
from fenchel._sparse import inner

LANES, CHUNK = 8, 512  # exponentials side by side; numbers that stay in the first cache in between
FAR = 200.0  # the most that a tilt may add to a logarithm
FEW, LITTLE = 16, 3e5  # labels; multiplications that take no longer than the calls around them
POOR = 0.1  # of what is off balance, the most that a Newton step with the right Hessian leaves
ENOUGH = 1e-14  # of Σ m_i |y_i − μ_i|: what a Newton step leaves of it then is rounding


@njit(cache=True, nogil=True)
def _exponentials(numbers, begin, end):
    """eˣ in place of x, x ≤ 0, from begin to end of a flat array."""
    k = np.uint64(begin)
    while k + np.uint64(LANES) <= np.uint64(end):
        store(numbers, k, exp_lanes(load(numbers, k, zeros(LANES))))
        k += np.uint64(LANES)
    for j in range(k, np.uint64(end)):
        numbers[j] = np.exp(max(numbers[j], -708.0))


# ---- two classes


class PairSums:
    """What the search asks of examples of two classes at their scores (n,)."""

    def __init__(self, blocks, scores, each_part):
        self.y, self.mass, self.scores, self.each_part = blocks.outcomes.y, blocks.mass, scores, each_part

    def ends(self) -> tuple[float, float, float, float]:
        """The mass of either class, the least score and the largest."""
        ones, others = inner(self.mass, self.y), inner(self.mass, 1.0 - self.y)
        return ones, others, float(self.scores.min(initial=np.inf)), float(self.scores.max(initial=-np.inf))

    def excess(self, b: float) -> tuple[float, float, float]:
        """Σ m (1 − y) σ(s + b), Σ m y σ(−s − b) and Σ m σ σ'."""
        given = self.y, self.mass
        parts = self.each_part(lambda start, stop: _excess_of_two(*given, start, stop, self.scores, b))
        return tuple(map(sum, zip(*parts, strict=True)))


def offset_of_two(sums: PairSums, left=0.0) -> float:
    """Root b of Σ m_i (σ(s_i + b) − y_i), an increasing function, by Newton inside a shrinking bracket.

    Where every s_i + b is at most the log-odds of the mean target, the function is not positive, and where
    every one is at least that, not negative: a bracket to begin with. left: what may be off balance.
    """
    ones, others, least, most = sums.ends()
    middle = log(ones) - log(others)
    low, high = middle - most, middle - least
    b, left = min(max(0.0, low), high), np.min(left)
    for _ in range(200):
        above, below, slope = sums.excess(b)
        excess = above - below
        if not abs(excess) > max(ENOUGH * (above + below), left):  # relative: on separable data both are tiny
            break
        if excess > 0.0:
            high = b
        else:
            low = b
        new = b - excess / slope if slope > 0.0 else 0.5 * (low + high)
        if not low < new < high:
            new = 0.5 * (low + high)
        if new == b:
            break
        b = new
    return b


@njit(cache=True, nogil=True)
def _excess_of_two(y, mass, start, stop, scores, b):
    """Σ m (1 − y) σ(s + b), Σ m y σ(−s − b) and Σ m σ σ' over start ≤ i < stop."""
    e = np.empty(CHUNK)
    above, below, slope = 0.0, 0.0, 0.0
    for first in range(start, stop, CHUNK):
        last = min(first + CHUNK, stop)
        for i in range(first, last):
            e[i - first] = -abs(scores[i] + b)
        _exponentials(e, 0, last - first)
        for i in range(first, last):
            near = 1.0 / (1.0 + e[i - first])
            far, positive = e[i - first] * near, scores[i] + b > 0.0
            above += mass[i] * (1.0 - y[i]) * (near if positive else far)
            below += mass[i] * y[i] * (far if positive else near)
            slope += mass[i] * near * far
    return above, below, slope


# ---- K labels


class LabelSums:
    """What the search asks of examples of K labels at their scores (n, K). odds: those are exponentials."""

    def __init__(self, blocks, scores, each_part, odds=False):
        self.blocks, self.scores, self.each_part, self.odds = blocks, scores, each_part, odds

    @property
    def shape(self) -> tuple[int, int]:
        return self.scores.shape

    @property
    def largest(self) -> float:
        """Of the sizes of scores; 0 of odds, which are at most 1."""
        return 0.0 if self.odds else float(max(self.scores.max(initial=0.0), -self.scores.min(initial=0.0)))

    @property
    def centre(self) -> np.ndarray:
        """(K,) Σ m_i s_i."""
        return self.blocks.mass @ self.scores

    def moments(self, b, curved: bool) -> "Moments":
        return _moments(self.blocks, self.scores, b, self.each_part, self.odds, curved)

    def cooled(self, centre, temperature: float) -> "LabelSums":
        """The same at (scores − centre)/temperature."""
        return LabelSums(self.blocks, (self.scores - centre) / temperature, self.each_part)


def tilt_of_labels(sums: LabelSums) -> np.ndarray | None:
    """The δ (K,), mean zero, with which μ_i e^δ, divided by their sums, balance; None where δ is far.

    The best offset at the scores log μ, without a logarithm or an exponential for each of them: sums of odds.
    """
    delta, balanced = _balance(sums, np.zeros(sums.shape[1]), steps=40, halvings=10)
    return delta if balanced and np.abs(delta).max() < FAR else None


@njit(cache=True, nogil=True)
def tilt_rows(start, stop, growth, mu):
    """μ_i ← μ_i · growth divided by its sum, for start ≤ i < stop; mu written."""
    for i in range(start, stop):
        total = 0.0
        for k in range(growth.size):
            mu[i, k] *= growth[k]
            total += mu[i, k]
        for k in range(growth.size):
            mu[i, k] /= total


def offset_of_labels(sums: LabelSums, enough=0.0, left=0.0) -> np.ndarray:
    """The b (K,), mean zero, that minimises the log loss at scores + b: damped Newton.

    enough: of what is off balance at b = 0, the share that may be left; 0 goes on to rounding. left: what may
    be off balance, one number or (K,).

    Where scores lie far apart the loss is all but piecewise linear and Newton's steps are wild: then for
    scores divided by T, which are close, and T goes to one by halves.
    """
    size = sums.shape[1]
    b, balanced = _balance(sums, np.zeros(size), start=enough, steps=40, halvings=10, left=left)
    if balanced or enough > 0.0:
        return b
    centre = sums.centre
    temperature = max(sums.cooled(centre, 1.0).largest, 1.0)
    b = np.zeros(size)
    while 1.0 < temperature < np.inf:
        b, _ = _balance(sums.cooled(centre, temperature), b, enough=1e-2)
        cooler = max(0.5 * temperature, 1.0)
        b, temperature = b * (temperature / cooler), cooler
    return _centred(_balance(sums.cooled(centre, 1.0), b)[0] - centre)


def _balance(sums, b, enough=ENOUGH, start=0.0, steps=100, halvings=60, left=0.0):
    """b after Newton steps, each halved until the loss decreases; and whether it balances to rounding.

    Of more than a few labels the Hessian, which takes up to K/2 times as long as the rest, is that of where
    the search begins; the BFGS formula keeps it up, and where a step was poor it is computed anew.
    enough: of Σ m_i |y_i − μ_i|, what may be left off balance. start: likewise of what there was. left: in
    itself.
    """
    (n, size), largest, at = sums.shape, sums.largest, sums.moments
    depth = 1.0 + np.sqrt(n) / 16.0  # how errors grow in a sum over all examples
    few, now = size <= FEW or n * size**2 <= LITTLE, at(b, True)
    hessian, exact, most = now.hessian, True, start * np.abs(now.excess).sum()
    for _ in range(steps):
        much = np.abs(now.excess) > np.maximum(enough * depth * now.scale, left)
        if not much.any() or np.abs(now.excess).sum() <= most:
            break
        if hessian is None:
            hessian, exact = at(b, True).hessian, True
        step = _newton_step(hessian, now.excess, 4.0 * (1.0 + largest + np.abs(b).max()))
        found = _descend(now, step, halvings if exact else 1, lambda step, b=b: at(_centred(b - step), few))
        if found is None and exact:
            break
        if found is None:
            hessian = None
            continue
        (step, new), before = found, hessian
        hessian = new.hessian  # None of many labels
        if not few and np.abs(new.excess).sum() < POOR * np.abs(now.excess).sum():
            hessian = _updated(before, step, now.excess - new.excess)
        b, now, exact = _centred(b - step), new, few
    rounding = depth * np.maximum(1e-15 + 2.0 * np.spacing(largest + np.abs(b).max()), ENOUGH * now.scale)
    return b, bool((np.abs(now.excess) <= np.maximum(rounding, left)).all())


def _centred(b):
    return b - b.mean()


def _descend(now, step, trials, after):
    """The step, halved until the loss decreases, and the moments after(step) there; else None."""
    slope = now.excess @ step
    for _ in range(trials):
        new = after(step)
        if new.value <= now.value - 1e-4 * slope and slope > 1e-13 * now.value:
            return step, new
        if slope <= 1e-9 * now.value and np.abs(new.excess).sum() < np.abs(now.excess).sum():
            return step, new  # the value has no digits left to tell
        step, slope = 0.5 * step, 0.5 * slope
    return None


def _updated(hessian, moved, change):
    """The BFGS formula: the matrix nearest to the Hessian that sends `moved` to `change`."""
    along, product = hessian @ moved, float(moved @ change)
    curvature = float(moved @ along)
    if not (product > 0.0 and curvature > 0.0):
        return None
    return hessian + np.outer(change, change / product) - np.outer(along, along / curvature)


def _newton_step(hessian, excess, longest):
    """hessian⁻¹ excess, no entry longer than allowed; where the hessian has no digits, along the gradient."""
    if not np.isfinite(hessian).all():
        return np.zeros_like(excess)
    step = _solved(hessian, excess)
    if step is None:
        values, vectors = np.linalg.eigh(hessian)
        values = np.maximum(values, max(1e-15 * values[-1], 1e-150))
        step = vectors @ ((vectors.T @ excess) / values)
    step -= step.mean()
    return step * min(1.0, longest / max(np.abs(step).max(), TINY))


def _solved(hessian, excess):
    """hessian⁻¹ excess up to a constant, by Cholesky of what has ones on its diagonal; None where that fails.

    Labels moved together change nothing: along that direction the matrix is made regular.
    """
    roots = np.sqrt(hessian.diagonal())
    if not roots.all():
        return None
    together = roots / np.linalg.norm(roots)
    _, step, failed = dposv(hessian / roots / roots[:, None] + np.outer(together, together), excess / roots)
    step /= roots
    return step if not failed and float(excess @ step) > 0.0 else None


class Moments(NamedTuple):
    """Sums over the examples, at scores + b."""

    value: float  # Σ m_i loss_i
    excess: np.ndarray  # (K,) its gradient Σ m_i (μ_i − y_i)
    scale: np.ndarray  # (K,) the sum of what cancels in it
    hessian: np.ndarray | None  # (K, K) Σ m_i (diag μ_i − μ_i μ_iᵀ), where it was asked for


def _moments(blocks, scores, b, each_part, odds, curved) -> Moments:
    added, K = np.exp(np.clip(b, -FAR, FAR)) if odds else b, scores.shape[1]

    def part(start, stop):
        sums = np.zeros(K), np.zeros(K), np.zeros((K, K))
        return _sums(blocks, start, stop, scores, added, odds, curved, *sums), *sums

    value, excess, scale, products = map(sum, zip(*each_part(part), strict=True))
    if not curved:
        return Moments(value, excess, scale, None)
    np.fill_diagonal(products, 0.0)
    products += products.T
    hessian = np.diag(products.sum(axis=0)) - products  # its rows sum to zero: no digits cancel
    return Moments(value, excess, scale, hessian)


@njit(cache=True, nogil=True)
def _sums(blocks, start, stop, scores, b, odds, curved, excess, scale, products):
    """Value of `Moments`; added into these its excess, scale and, if curved, Σ m_i μ_ij μ_ik for j < k.

    Over start ≤ i < stop. odds: scores and b are the exponentials of what they stand for.
    """
    size, given, value = np.uint64(scores.shape[1]), scores.reshape(-1), 0.0
    height = np.uint64(max(CHUNK // scores.shape[1], 1))
    best, mu, stop = np.empty(height, np.uint64), np.empty(height * size), np.uint64(stop)
    for first in range(np.uint64(start), stop, height):
        last = min(first + height, stop)
        for i in range(first, last):
            row = mu[(i - first) * size :]
            if odds:
                best[i - first] = _shares_of_the_best(size, given[i * size :], b, row)
            else:
                best[i - first] = _below_the_best(size, given[i * size :], b, row)
            value += blocks.mass[i] * _distance(blocks, i, row, odds)
        if not odds:
            _exponentials(mu, np.uint64(0), (last - first) * size)
        for i in range(first, last):
            row = mu[(i - first) * size :]
            value += _settle_row(blocks, i, best[i - first], size, row, excess, scale)
            if curved:
                _add_products(blocks.mass[i], size, row, products.reshape(-1))
    return value


@helper(cache=True, nogil=True, forceinline=True)
def _below_the_best(size, scores, b, mu):
    """The label of largest score + b; mu = what all are below it, written."""
    best, top = np.uint64(0), -np.inf
    for k in range(size):
        mu[k] = scores[k] + b[k]
        if mu[k] > top:
            best, top = k, mu[k]
    for k in range(size):
        mu[k] -= top
    return best


@helper(cache=True, nogil=True, forceinline=True)
def _shares_of_the_best(size, odds, growth, mu):
    """The same of exponentials: mu = those of what all are below it, written."""
    best, top = np.uint64(0), -np.inf
    for k in range(size):
        mu[k] = odds[k] * growth[k]
        if mu[k] > top:
            best, top = k, mu[k]
    for k in range(size):
        mu[k] /= top
    return best


@helper(cache=True, nogil=True, forceinline=True)
def _distance(blocks, i, below, odds):
    """By how much the score of the true label is below the largest; below: as the functions above left it."""
    total = 0.0
    for e in range(blocks.outcomes.targets.indptr[i], blocks.outcomes.targets.indptr[i + np.uint64(1)]):
        here = below[blocks.outcomes.targets.indices[e]]
        total -= blocks.outcomes.targets.data[e] * (log(max(here, TINY)) if odds else here)
    return total


@helper(cache=True, nogil=True, forceinline=True)
def _settle_row(blocks, i, best, size, mu, excess, scale):
    """mu holds e^(score − the largest): divided by its sum, written. Adds to excess, scale.

    Returns m_i times the logarithm of that sum.

    1 − μ_k of the likeliest label, where that is the true one, is the sum of the others: no digits cancel.
    """
    mu[best], others = 0.0, 0.0
    for k in range(size):
        others += mu[k]
    share, mass, sure = 1.0 / (1.0 + others), blocks.mass[i], False
    for e in range(blocks.outcomes.targets.indptr[i], blocks.outcomes.targets.indptr[i + np.uint64(1)]):
        k, y = np.uint64(blocks.outcomes.targets.indices[e]), blocks.outcomes.targets.data[e]
        if k == best and y == 1.0:
            sure = True
        else:
            excess[k] -= mass * y
            scale[k] += mass * y
    for k in range(size):
        mu[k] *= share
        excess[k] += mass * mu[k]
        scale[k] += mass * mu[k]
    mu[best] = share
    excess[best] += -mass * others * share if sure else mass * share
    scale[best] += mass * others * share if sure else mass * share
    return mass * log1p(others)


@helper(cache=True, nogil=True, forceinline=True)
def _add_products(mass, size, mu, products):
    """products[j, k] += mass · μ_j μ_k for j < k, and on the diagonal; written."""
    for j in range(size):
        weight, at = mass * mu[j], j * size
        for k in range(j, size):
            products[at + k] += weight * mu[k]
