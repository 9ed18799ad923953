"""Which predictions are proven: those that the exact optimum makes too.

P is λ-strongly convex, so the optimum's weights are within r = √(2·gap/λ) of the model's. A label whose lead
over another exceeds r ‖F(x, y) − F(x, y′)‖ is ahead of it at the optimum too.
"""

from itertools import pairwise
from math import isfinite

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from fenchel._sparse import Rows, Table, as_csr, as_features, squared_norms
from fenchel.estimators.inputs import dense
from fenchel.structures.offset_range import OffsetRange

SLACK = 1e-10  # of a score: what its rounding may come to


def radius_of(model) -> float:
    """r, or a ValueError that says why nothing is known."""
    radius = model.certificate_.radius
    if not isfinite(radius):
        raise ValueError(
            f"no prediction can be proven: the certificate of this {type(model).__name__} bounds no weights "
            f"({model.certificate_}); fit with an L2 term and a solver that certifies"
        )
    return radius


def norms(rows: Rows | Table) -> np.ndarray:
    """(n,) ‖x_i‖."""
    return np.sqrt(squared_norms(rows))


def proven_sides(scores, bounds, offsets=(0.0, 0.0)) -> np.ndarray:
    """(n,) bool, of two classes: scores w·x without the offset, whose optimum lies between `offsets`."""
    slack = SLACK * (1.0 + np.abs(scores))
    return (scores + offsets[0] > bounds + slack) | (scores + offsets[1] < -bounds - slack)


def proven_tops(scores, bounds, offsets=None) -> np.ndarray:
    """(n,) bool: whether the largest of the scores (n, K) is ahead of all others by √2 times the bound.

    offsets: what is in the scores, and what it may be less and more, (K,) each.
    """
    if scores.shape[1] == 1:
        return np.ones(len(scores), bool)
    b, low, high = (0.0, 0.0, 0.0) if offsets is None else offsets
    best = scores.argmax(axis=1)[:, None]
    first, others = np.take_along_axis(scores + (low - b), best, axis=1)[:, 0], scores + (high - b)
    np.put_along_axis(others, best, -np.inf, axis=1)
    slack = SLACK * (1.0 + np.abs(scores).max(axis=1, initial=0.0))
    return first - others.max(axis=1) > np.sqrt(2.0) * bounds + slack


def proven_candidates(rows, scores, starts, best, radius) -> np.ndarray:
    """(n,) bool: whether the best candidate of each event is ahead of the others by r ‖f(x, y) − f(x, y′)‖.

    best: (n,) its place among those of the event.
    """
    counts = np.diff(starts)
    top = np.repeat(starts[:-1] + best, counts)
    X = as_csr(rows)
    apart = X - X[top]
    lead = scores[top] - scores
    needed = radius * np.sqrt(np.asarray(apart.multiply(apart).sum(axis=1)).ravel())
    ahead = lead > needed + SLACK * (1.0 + np.abs(scores))
    ahead[starts[:-1] + best] = True
    return np.array([ahead[a:b].all() for a, b in pairwise(starts.tolist())], bool)


def costs_of_changes(layout, radius) -> tuple[np.ndarray, np.ndarray]:
    """(N,), (N,) r times bounds of what a changed label adds to ‖F(x, y) − F(x, y′)‖.

    The first: of the label of a token and the transition into it, √(2‖x‖² + 2q) with q = 1 + ‖z‖² of the
    weights of a transition. The second: how much more where the transition behind it changes too, which it
    does where the next label does not: that transition has 2q′, and may add to the same weights.
    """
    nodes, edges = squared_norms(layout.rows), squared_norms(layout.edges) + layout.tables
    starts = layout.starts[:-1][np.diff(layout.starts) > 0].astype(np.int64)
    edges[starts] = 0.0  # no transition leads into a first token
    behind = np.append(edges[1:], 0.0)
    alone = np.sqrt(2.0 * nodes + 2.0 * edges)
    both = np.sqrt(2.0 * nodes + 2.0 * (np.sqrt(edges) + np.sqrt(behind)) ** 2)
    return radius * alone, radius * (both - alone)


class ProvenRows:
    """The part of a linear classifier that proves predictions of rows, and knows its own rounding."""

    _offsets: OffsetRange | tuple | None = None

    def proven(self, X) -> np.ndarray:
        """(n,) bool: whether the label that `predict` gives a row is that of the exact optimum.

        True where its lead over every other label exceeds what weights within r = certificate_.radius of
        these can change, r ‖x‖ for two classes, √2 r ‖x‖ for more; free intercepts lie within bounds that
        the first call finds. A lower `tol` proves more.
        """
        check_is_fitted(self)
        radius = radius_of(self)
        X = self._known_columns(X, dtype=np.float64)
        squares, constant = squared_norms(as_features(X)), self._scaled_intercept
        bounds = radius * np.sqrt(squares + (constant or 0.0) ** 2)
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True)
        free = self.fit_intercept and not constant
        if self.classes_.size > 2:
            offsets = (self.intercept_, *self._known_offset_range) if free else None
            return proven_tops(scores + self.intercept_, bounds, offsets)
        ends = self._known_offset_range if free else (self.intercept_[0], self.intercept_[0])
        return proven_sides(scores.ravel(), bounds, ends)

    @property
    def _known_offset_range(self) -> tuple:
        """`offset_range_`, anywhere where no prediction can be proven; a sentence where it is not known."""
        found = self.offset_range_
        if found is None and radius_of(self) < np.linalg.norm(self._own_weights()[0]):
            raise ValueError(
                f"nothing is known of the free intercepts of {self.classes_.size} classes on so many rows; "
                "fit with intercept_scaling=1 or fit_intercept=False to have predictions proven"
            )
        return (-np.inf, np.inf) if found is None else found

    @property
    def offset_range_(self) -> tuple | None:
        """(low, high): where the optimum's free intercept is, of several less one of them, or None."""
        found = self._offsets.ends if isinstance(self._offsets, OffsetRange) else self._offsets
        if found is None or self.classes_.size > 2 or np.ndim(found[0]) == 0:
            return found
        if not np.isfinite(found).all():
            return -np.inf, np.inf
        low, high = (float(end[0] - end[1]) for end in found)
        return min(low, high), max(low, high)

    def _remember(self, result, problem=None):
        """Beside: bounds of free intercepts, unless no prediction can be proven."""
        super()._remember(result)
        free = problem is not None and problem.free
        near = free and self.certificate_.radius < np.linalg.norm(result.w)
        self._offsets = problem.offset_range(result.w, result.b, self.certificate_.radius) if near else None

    def _own_weights(self):
        """coef_ and intercept_ as `solve` has them: all weights with a penalty, and the offset."""
        return self._scaled(dense(self.coef_).T.astype(np.float64), self.intercept_.astype(np.float64))

    def _scaled(self, w, b):
        """Weights (d, outputs) and intercepts (outputs,) as `solve` has them."""
        if self._scaled_intercept:
            w = np.vstack([w, b / self._scaled_intercept])
        return w.ravel(), b if b.size > 1 else float(b[0])

    def _certify_rounded(self, problem, data):
        """Of float32 features the weights are float32 too: the certificate is of these."""
        if data.single:
            w, b = self._own_weights()
            primal, _ = problem.value_at(w, b if problem.free else 0.0)
            self.certificate_ = self.certificate_.moved_to(float(primal))
