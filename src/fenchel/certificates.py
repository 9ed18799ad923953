"""What is known at a point: the objective, bounds around the optimum, what rounding may have added to them.

The gap of a point is computed from scores ŝ_i and, for a dual point, weights ŵ; neither is what it stands
for exactly. With ŝ_i = A_i ŵ + ε_i the bound P − gap is D(μ) plus

    λ/2 ‖ŵ − w(μ)‖² − Σ m_i ⟨ε_i, y_i − μ_i⟩

and both are paid for here: a sum of numbers is off by a few units in the last place of the sum of their
absolute values. Of a score that is at most `reach`; Σ m_i ‖y_i − μ_i‖₁ is called `moved`. Where outputs have
several parts the loss itself is a difference of sums over all of them.
"""

from dataclasses import dataclass, replace
from math import inf, log, nan, sqrt
from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel._math import TINY
from fenchel._sparse import Rows, Table, column_bounds

FEW = 4.0 * np.finfo(float).eps  # units in the last place
LOST = 1e-150  # a bound below this rests on squares that underflow: it counts as none
BALANCED = 1e-13  # of what a free offset should have balanced, the most that counts as rounding
NEGLIGIBLE = 1e-12  # of P: every objective added up in double precision is uncertain by about this


@dataclass
class Evaluation:
    """P and its gradient at w, all weights; the scores where they were met on the way.

    With an L1 term `gradient` is the subgradient of least norm, and `smooth` the gradient without that term;
    else they are the same array.
    """

    w: np.ndarray
    value: float
    gradient: np.ndarray
    moved: float  # Σ m_i ‖y_i − μ_i‖₁
    scores: np.ndarray | None = None
    mu: np.ndarray | None = None
    smooth: np.ndarray | None = None

    @property
    def gradient_norm(self) -> float:
        return float(np.linalg.norm(self.gradient))


@dataclass(frozen=True)
class Point:
    """A model and bounds around the optimum: primal = P(w, b) and dual ≤ min P; gap = primal − dual.

    rounding: what primal itself may be off by. distance: a bound of ‖w − w*‖, w* those of the optimum, beside
    √(2·gap/λ).
    """

    w: np.ndarray
    b: float | np.ndarray
    primal: float
    dual: float
    gap: float
    gradient_norm: float = nan
    rounding: float = 0.0
    distance: float = nan

    @property
    def worst(self) -> float:
        """The most that P may be, where rounding is not negligible."""
        return self.primal + self.rounding if self.rounding > NEGLIGIBLE * self.primal else self.primal


def certified(w, b, primal: float, gap: float, scores: float, more: float, gradient_norm=nan) -> Point:
    """The point whose bound pays for rounding; its gap does too, unless that is negligible.

    scores: what rounding of scores may have changed; more: what the bound has to pay beside.
    """
    gap, rounding = max(gap, 0.0), scores + more
    if not rounding <= NEGLIGIBLE * primal:
        gap, rounding = gap + rounding, 0.0
    dual = primal - gap - rounding
    if 0.0 < dual < LOST:
        dual, gap = 0.0, primal
    return Point(w, b, float(primal), float(dual), float(gap), gradient_norm, float(scores))


def joined(one: Point, other: Point) -> Point:
    """The better model of two with the better of their bounds."""
    best, dual = min(one, other, key=lambda point: point.worst), max(one.dual, other.dual)
    return best if best.dual == dual else replace(best, dual=dual, gap=float(max(best.worst - dual, 0.0)))


class Extent(NamedTuple):
    """How large the features of a problem are."""

    peaks: np.ndarray  # (A,) the largest |x| of each column
    norm: float  # the largest ‖x‖ of a row
    edge_norm: float  # the same of what the weights behind those of attributes are multiplied by
    parts: float  # parts of an output, in the mean over the examples; 0 where outputs are listed
    depth: float  # how errors grow in a sum over all rows: like the root of their number
    outputs: int  # weights of a column
    cost: float  # the most that is added to a score


def extent_of(rows: Rows | Table, norms, outputs: int, parts, edge_norm, cost) -> Extent:
    """Of features as they are multiplied by weights, (n,) their ‖x‖², and the measures of a structure."""
    depth, (low, high) = 1.0 + sqrt(rows.shape[0]) / 16.0, column_bounds(rows)
    peaks = np.maximum(np.maximum(-low, high), 0.0)
    return Extent(peaks, sqrt(norms.max(initial=0.0)), edge_norm, parts, depth, outputs, cost)


def reach(extent: Extent, w, b) -> float:
    """No score is a sum of numbers whose absolute values are more than this, in all.

    Of Σ_j max|x_j| · max_k |w_jk|, which is little where columns have scales of their own, and
    max ‖x‖ · ‖w‖, which is little where rows are sparse, the less.
    """
    by_columns, norm, rest = _sizes(extent.peaks, extent.outputs, w)
    return min(by_columns, extent.norm * norm) + extent.edge_norm * rest + float(np.max(np.abs(b)))


def score_rounding(extent: Extent, reached: float, primal: float, gap: float, moved: float) -> float:
    """What the rounding of scores, losses and gaps may add to P − gap; reached: `reach` there."""
    return FEW * (primal + gap + (reached + extent.cost) * (moved + 2.0 * extent.parts))


class Imbalance(NamedTuple):
    """What is left of Σ m_i (μ_i − y_i), which a bound needs to be 0 where the offset is free.

    Either of the size that the sum itself is rounded by, or so much that a share of something else is to be
    mixed into all μ_i: `price_of_imbalance`.
    """

    rounding: float = 0.0
    share: float = 0.0

    @classmethod
    def of(cls, excess, shares) -> "Imbalance":
        """Of that sum, (K,), and of how often each label is true."""
        size = float(np.abs(excess).sum())
        return cls(rounding=size) if size <= BALANCED else cls(share=share_to_mix(excess, shares))


def share_to_mix(excess, shares) -> float:
    """The least ε with which (1 − ε)μ_i + ε q balances for some q that is a distribution of labels.

    excess (K,): Σ m_i (μ_i − y_i), of which shares = Σ m_i y_i are to be left: q = shares − excess (1 − ε)/ε,
    Σ m_i = 1. It is not negative where ε ≥ excess/(excess + shares).
    """
    above = np.maximum(excess, 0.0)
    return float((above / np.maximum(above + shares, TINY)).max())


def price_of_imbalance(left: Imbalance, extent: Extent, reached: float) -> float:
    """What it adds to the gap beside the change of u(μ).

    Of rounding ⟨excess, b⟩, b the optimum's, which is no larger than scores. Of a share of q mixed into all
    μ_i: the gap of an example is convex in μ_i, and at q it is at most log K + max s − min s: KL(q ‖ p) with
    the log loss; and costs, with the hinge loss.
    """
    if not left.share < 1.0:
        return inf
    farthest = log(max(extent.outputs, 2)) + 2.0 * (reached + extent.cost)
    return left.rounding * (1.0 + reached) + left.share * farthest


def doubts(extent: Extent, w, b, primal, gap, moved, left: Imbalance) -> tuple[float, float]:
    """What rounding of scores may have changed, and the price of an offset that does not balance."""
    reached = reach(extent, w, b)
    return score_rounding(extent, reached, primal, gap, moved), price_of_imbalance(left, extent, reached)


def change_of_sum(extent: Extent, moved: float, share: float = 0.0) -> float:
    """What ‖Σ m_i A_iᵀ(y_i − μ_i)‖ may be off by: rounding, and that share of something else in μ_i."""
    return FEW * extent.depth * (extent.norm + extent.edge_norm) * moved + share * sqrt(2.0) * extent.norm


@njit(cache=True, nogil=True)
def _sizes(peaks, outputs, w):
    """Σ_j peaks_j · max_k |w_jk|, ‖w‖ of the weights of columns, and of those behind them."""
    by_columns, columns = 0.0, np.uint64(peaks.size) * np.uint64(outputs)
    for j in range(np.uint64(peaks.size)):
        top = 0.0
        for k in range(j * np.uint64(outputs), (j + np.uint64(1)) * np.uint64(outputs)):
            top = max(top, abs(w[k]))
        by_columns += peaks[j] * top
    return by_columns, _norm(w, np.uint64(0), columns), _norm(w, columns, np.uint64(w.size))


@helper(cache=True, nogil=True)
def _norm(w, start, stop):
    """‖w‖ of start ≤ j < stop, and the largest |w| where the squares are lost to underflow."""
    square, top = 0.0, 0.0
    for j in range(start, stop):
        square += w[j] * w[j]
        top = max(top, abs(w[j]))
    return max(np.sqrt(square), top)
