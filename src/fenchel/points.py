"""What a problem proves of a point: the certificates of primal and of dual solvers."""

from dataclasses import replace
from math import inf

import numpy as np

from fenchel import certificates
from fenchel._sparse import squared_norms
from fenchel.certificates import FEW, Evaluation, Imbalance, Point, certified, doubts
from fenchel.design import AT_ONCE
from fenchel.structures.offset_range import OffsetRange

NOTHING_LEFT = Imbalance()
NO_WEIGHTS = np.empty(0)  # for a kernel that is given scores
# n·K numbers up to which scores are kept for the range of free offsets, and n·K² up to which it is computed.
MOST_SCORES, LARGEST_RANGE = 1e7, 3e8
TRIAL, LITTLE = 1e-9, 0.1  # a share to mix, by which a price is asked; of the gap, what the price may be
FAR = 1e3  # the change of an offset after which scores are computed anew


class Certified:
    """The part of a `Problem` that makes certificates. Where the offset is free it is optimised first."""

    def estimate(self, evaluation: Evaluation) -> float:
        """The gap relative to P, if the offset were the best one."""
        own, smooth = evaluation.w[: self.penalised], evaluation.smooth[: self.penalised]
        gap = self.regularizer.gap(own, smooth, evaluation.value - self.regularizer.value(own))
        return gap / max(evaluation.value, 1e-300)

    def point_at(self, evaluation: Evaluation) -> Point:
        """The certificate of a primal solver: ‖∇P(w)‖²/(2λ), lepriol2018 (8), free with its gradient unless
        there is an offset to be optimised.

        With an L1 term the same bound, g(w) + g*(u) − ⟨w, u⟩ with g the regulariser: `ElasticNet.gap`.
        """
        if self.free:
            known, left = evaluation.scores, self._tolerable(evaluation)
            scores = None if known is None else known.copy()
            evaluation = self.evaluate(*self._balance(evaluation.w, scores, left=left))
        own, value, moved = evaluation.w[: self.penalised], evaluation.value, evaluation.moved
        loss = value - self.regularizer.value(own)
        gap = self.regularizer.gap(own, evaluation.smooth[: self.penalised], loss)
        inner, left = self._offset(evaluation.w), self._imbalance(evaluation.smooth)
        scores, price = self._doubts(own, inner, value, gap, moved, left)
        error = certificates.change_of_sum(self.extent, moved, left.share) + FEW * self.lam * np.linalg.norm(
            own
        )
        more = price + self.regularizer.slack(own, gap, loss, error)
        w, b = self.design.split(evaluation.w)
        return certified(w, b, value, gap, scores, more, evaluation.gradient_norm)

    def logarithms(self, mu) -> np.ndarray:
        """Scores whose marginals are μ; of examples on disk some at a time, beside them."""
        if self.examples.disk is None:
            return self.structure.logarithms(mu)
        out = None
        for at in range(0, self.n, AT_ONCE):
            some = self.structure.logarithms(mu[at : at + AT_ONCE])
            out = self.examples.room((self.n, *some.shape[1:])) if out is None else out
            out[at : at + AT_ONCE] = some
        return out

    def offset_range(self, w, b, radius: float) -> OffsetRange | None:
        """Bounds of the optimum's free offsets where its weights are within `radius` of w.

        Of two classes, of which the second has none, those of the first. None: too much to compute or keep.
        """
        labels = self.structure.outputs  # None of two classes
        size = labels or 2
        if self.n * size > MOST_SCORES or self.n * size**2 > LARGEST_RANGE:
            return None
        far = radius * np.sqrt(squared_norms(self.examples.rows))
        scores = self.scores(self.design.join(w, np.zeros(labels) if labels else 0.0))
        if labels:
            far, b = np.sqrt(2.0) * far, np.ravel(b)
        else:
            scores, b = np.stack([scores, np.zeros(self.n)], axis=1), np.array([float(np.ravel(b)[0]), 0.0])
        return OffsetRange(scores, far, self.examples.mass, self.shares, b)

    def _tolerable(self, evaluation: Evaluation) -> np.ndarray:
        """(K,) what may be off balance for each label, at a price that is little beside the gap."""
        own = evaluation.w[: self.penalised]
        gap = max(self.estimate(evaluation), 0.0) * evaluation.value
        reached = certificates.reach(self.extent, own, self._offset(evaluation.w))
        price = certificates.price_of_imbalance(Imbalance(share=TRIAL), self.extent, reached)
        error = certificates.change_of_sum(self.extent, 0.0, TRIAL)
        price += self.regularizer.slack(own, gap, evaluation.value, error)
        return LITTLE * gap / (price / TRIAL) * self.shares if price > 0.0 else 0.0 * self.shares

    def _balance(self, v, scores=None, enough=0.0, left=0.0, last=False):
        """v with the best offset at its other weights, and the scores there; as they are where none is free.

        scores: those at v, if known; written. enough, left: as in `Crossed.offset`.
        """
        if not self.free:
            return v, scores
        scores = self.scores(v) if scores is None else scores
        delta = self.best_offset(scores, enough, left)
        balanced = v.copy()
        balanced[self.penalised :] += delta / self.design.constant
        if not last and np.abs(delta).max() > FAR:  # there the scores have lost digits
            return self._balance(balanced, enough=enough, left=left, last=True)
        return balanced, self.moved_by(scores, delta)

    def best_offset(self, scores, enough=0.0, left=0.0):
        """The free offset that minimises the loss at scores + it; enough, left: as in `Crossed.offset`."""
        return self.structure.offset(self.blocks, scores, self.each_part, enough, left)

    def moved_by(self, scores, delta):
        """scores + delta, in their place."""
        return np.add(scores, delta, out=scores)

    def _offset(self, v):
        """The offset that is added to scores of the design's rows."""
        return self.design.constant * v[self.penalised :] if self.free else 0.0

    def primal_point(self, w) -> Point:
        """The certificate at w: one pass. Log loss only."""
        return self.point_at(self.evaluate(w))

    def dual_point(self, mu, entropies=NO_WEIGHTS, offset=0.0, overwrite=False) -> Point:
        """The certificate of a dual solver at w(μ): Σ m_i · block gap, lepriol2018 (11); two passes.

        w(μ) is computed anew: one kept up by increments drifts, and the bound rests on it. Where the offset
        is free μ is tilted first, and the search for the best offset begins at β = `offset`.
        entropies (n,): H(μ_i), where the marginals of the structure do not tell. overwrite: mu may be.
        """
        if self.free:
            mu = self.tilt(mu, overwrite)
        v = self.residuals(mu)
        left, own = self._imbalance(v), v[: self.penalised]
        self.regularizer.weights(own, out=own)
        v[self.penalised :] = offset
        v, scores = self._balance(v, enough=0.01)  # a bound does not rest on this one: P is off by its square
        return self.proven_point(v, *self.value_and_gap(v, scores, mu, entropies=entropies), left)

    def proven_point(self, v, value, gap, moved, left=NOTHING_LEFT) -> Point:
        """The certificate at all weights v, of which those with a penalty are w(μ); v is kept, not copied.

        value Σ m_i loss_i, gap Σ m_i · block gap, moved Σ m_i ‖y_i − μ_i‖₁, left: `_imbalance`.
        D* − D(μ) is at least λ/2 ‖w(μ) − w*‖² as P(w) − P* is: w is within √(gap/λ) of w*.
        """
        own = v[: self.penalised]
        primal = value + self.regularizer.value(own)
        rounding, price = self._doubts(own, self._offset(v), primal, gap, moved, left)
        error = certificates.change_of_sum(self.extent, moved, left.share)
        model = self.design.split(v) if self.free else (v, 0.0)
        point = certified(*model, primal, gap, rounding, price + error**2 / (2.0 * self.lam))
        distance = np.sqrt(max(point.primal - point.dual, point.gap) / self.lam) + 0.5 * error / self.lam
        return replace(point, distance=float(distance))

    def bounded_point(self, w, value, dual, moved) -> Point:
        """The certificate at w, where Σ m_i loss_i = value, with the bound of another point; no free b."""
        primal = value + self.regularizer.value(w)
        rounding, _ = self._doubts(w, 0.0, primal, max(primal - dual, 0.0), moved)
        return certified(w, 0.0, primal, primal - dual, rounding, 0.0)

    def bare_point(self, w) -> Point:
        """P at the penalised weights w and no bound: for `certificates.joined`, with one of another point."""
        primal, b = self.value_at(w)
        inner = self._offset(self.design.join(w, b))
        rounding, _ = self._doubts(w, inner, primal, 0.0, 2.0)
        return Point(w, b, float(primal), -inf, inf, rounding=float(rounding))

    def _doubts(self, own, inner, primal, gap, moved, left=NOTHING_LEFT):
        """As `certificates.doubts`; and what becomes of P by rounding the offset of features as given, which
        is the inner one less shift · W. It is the best one: P goes by the square of a small change.
        """
        rounding, price = doubts(self.extent, own, inner, primal, gap, moved, left)
        off = FEW * self.design.shift_reach(own)
        return rounding + min(2.0 * off, off * off), price

    def _imbalance(self, pulled) -> Imbalance:
        """What is left off balance where the offset is free, from Σ m_i (y_i − μ_i) multiplied by σ."""
        if not self.free:
            return NOTHING_LEFT
        excess = pulled[self.penalised :] / -self.design.constant
        excess = excess if self.structure.outputs else np.array([excess[0], -excess[0]])
        return Imbalance.of(excess, self.shares)
