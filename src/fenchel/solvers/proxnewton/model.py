"""The quadratic model of a Newton step, the penalty as it is:

    q(d) = ⟨∇L(w), d⟩ + ½ dᵀ(∇²L(w) + Δ) d + g(w + d),   L(w) = Σ m_i loss_i,   g(w) = λ₁‖w‖₁ + λ/2 ‖w‖²

Δ is diagonal, `damping` times that of the Hessian at even odds. The Hessian is never made. With p_o the
probability of outcome o at w, f_t(o) its feature t and s = A d

    ∂q/∂d_t = ∂P/∂w_t + (λ + Δ_t) d_t + Σ_i m_i Σ_o p_o f_t(o) (s_o − s̄_i),   s̄_i = Σ_o p_o s_o

costs the entries of a column, and so does changing d_t. With two outcomes p (s − s̄) is p(1 − p) s, which is
kept as one number for each example.
"""

import numpy as np

from fenchel._cache import helper, njit
from fenchel._math import REORDER
from fenchel._sparse import column, height, row_begin, row_end
from fenchel.solvers.proxnewton.face import Face

LEAST = 1e-12  # the smallest p(1 − p)
LARGEST, WORTH = 2000, 40.0  # rows of a matrix, and how many times the entries of its columns it may cost
FEW = 64  # rows of one of several labels, which is made by a product for each


class Model:
    """q around w: `moved` is w + d, `scores` s, `means` s̄; of two outcomes `scores` is m p(1 − p) s."""

    def __init__(self, problem, now, damping=0.0):
        self.problem, self.now, self.columns = problem, now, problem.columns
        self.moved, present = now.w.copy(), problem.present
        self.wanting = present[(now.w[present] != 0.0) | (now.gradient[present] != 0.0)]
        self.pair = problem.structure.name == "binary"
        mu = problem.marginals_at(now)
        shares = problem.examples.mass * np.maximum(mu[:, 0] * mu[:, 1], LEAST) if self.pair else mu
        self.shares = shares.reshape(-1)
        self.scores, self.means = self._nothing()
        self.curvature = np.zeros(problem.dim)
        self.own = np.where(np.arange(problem.dim) < problem.penalised, problem.lam, 0.0)
        self.touched = _curvatures(
            self.columns, self.wanting, self.pair, self.shares, damping, self.curvature, self.own
        )

    def _nothing(self):
        """s and s̄ of d = 0."""
        return np.zeros(self.shares.size), np.zeros(0 if self.pair else self.problem.n)

    @property
    def passes(self) -> float:
        """Entries read, relative to all."""
        return self.touched / max(self.columns.entries.nnz * self.columns.outputs, 1)

    def sweep(self, order) -> float:
        """Coordinate descent once through the weights in order; by how much q decreased."""
        around = self.own, self.curvature, self.now.smooth, self.now.w, self.shares
        touched, decrease = _sweep(
            self.columns, order, self.pair, self.problem.l1, *around, self.moved, self.scores, self.means
        )
        self.touched += touched
        return decrease

    def minimise_face(self, order) -> float:
        """q over the weights in order, none of them zero, as long as they keep their sign; its decrease."""
        face = self._face(order)
        step, decrease = face.by_matrix(self._matrix(order)) if self._affords(order) else face.by_products()
        if decrease > 0.0:
            scores, means = self._spread(order, step)
            self.scores += scores
            self.means += means
            self.moved[order] += step
        return decrease

    def _face(self, order) -> Face:
        w, own = self.moved[order], self.own[order]
        corner = self.problem.l1 * (order < self.problem.penalised)
        slopes = self.now.smooth[order] + own * (w - self.now.w[order])
        slopes += self._gather(order, self.scores, self.means)

        def product(v):
            return own * v + self._gather(order, *self._spread(order, v))

        return Face(w, slopes, corner, self.curvature[order] + own, product)

    def _spread(self, order, step):
        """s and s̄ of a step of the weights in order."""
        scores, means = self._nothing()
        self.touched += _spread(self.columns, order, self.pair, self.shares, step, scores, means)
        return scores, means

    def _gather(self, order, scores, means):
        """Σ_i m_i Σ_o p_o f_t(o) (s_o − s̄_i) of the weights in order."""
        out = np.empty(order.size)
        self.touched += _gather(self.columns, order, self.pair, self.shares, scores, means, out)
        return out

    def _affords(self, order) -> bool:
        """Whether the Hessian of these weights is worth its time; of several labels it seldom is."""
        if not self.pair:
            return order.size <= FEW
        if order.size > LARGEST:
            return False
        lengths = np.diff(self.columns.entries.indptr.view(np.int64))
        return float(lengths[order].sum()) <= WORTH * self.problem.n

    def _matrix(self, order) -> np.ndarray:
        """∂²q of the weights in order."""
        half = 0.5 * self._columns_of(order) if not self.pair else self._gram(order)
        matrix = half + half.T
        np.fill_diagonal(matrix, self.curvature[order] + self.own[order])
        return matrix

    def _columns_of(self, order) -> np.ndarray:
        """∂²L of the weights in order, each column by a product."""
        one = np.ones(1)
        return np.stack([self._gather(order, *self._spread(each, one)) for each in order.reshape(-1, 1)])

    def _gram(self, order) -> np.ndarray:
        """A half of ∂²L of the weights in order, for two outcomes."""
        design = self.problem.design
        places = np.full(self.problem.dim, -1)
        places[order] = np.arange(order.size)
        half = np.zeros((order.size, order.size))
        _add_gram(design.rows, self.shares, places, design.constant, half)
        return half


@njit(cache=True, nogil=True, fastmath=REORDER)
def _curvatures(columns, order, pair, shares, damping, curvature, own):
    """∂²L/∂w_t² of the weights in order, and what damping adds to `own`; both written.

    Returns the entries read.
    """
    touched = 0
    for t in order:
        a, k = np.uint64(t // columns.outputs), np.uint64(t % columns.outputs)
        begin, end = columns.entries.indptr[a], columns.entries.indptr[a + np.uint64(1)]
        total = 0.0
        if pair:
            for e in range(begin, end):
                x = columns.entries.data[e]
                total += x * x * shares[columns.entries.indices[e]]
        else:
            total = _variance(columns, begin, end, k, shares)
        curvature[t] = total
        touched += end - begin
        if damping > 0.0:
            most = 0.0
            for e in range(begin, end):
                x = columns.entries.data[e]
                most += columns.mass[columns.owner[columns.entries.indices[e]]] * x * x
            own[t] += 0.25 * damping * most
    return touched


@helper(cache=True, nogil=True)
def _variance(columns, begin, end, k, shares):
    """Σ m_i Var f_t of the entries of a column, those of an example one after the other."""
    total, e = 0.0, begin
    while e < end:
        i = columns.owner[columns.entries.indices[e]]
        mean, square, size = 0.0, 0.0, 0.0
        while e < end and columns.owner[columns.entries.indices[e]] == i:
            x = columns.entries.data[e]
            p = shares[columns.entries.indices[e] * np.uint64(columns.stride) + k]
            mean += p * x
            square += p * x * x
            size = max(size, x * x)
            e += np.uint64(1)
        total += columns.mass[i] * max(square - mean * mean, LEAST * size)
    return total


@njit(cache=True, nogil=True, fastmath=REORDER)
def _sweep(columns, order, pair, l1, own, curvature, gradient, w, shares, moved, scores, means):
    """One pass over the weights in order; moved = w + d, scores and means written.

    Returns the entries read, and by how much q decreased.
    """
    touched, decrease = 0, 0.0
    for t in order:
        a, k = np.uint64(t // columns.outputs), np.uint64(t % columns.outputs)
        begin, end = columns.entries.indptr[a], columns.entries.indptr[a + np.uint64(1)]
        corner, bend = l1 if t < columns.penalised else 0.0, curvature[t] + own[t]
        if not bend > 0.0:
            continue
        slope = gradient[t] + own[t] * (moved[t] - w[t])
        slope += _slope(columns, begin, end, k, pair, shares, scores, means)
        touched += end - begin
        target = moved[t] - slope / bend
        new = target - min(max(target, -corner / bend), corner / bend)
        z = new - moved[t]
        if z == 0.0:
            continue
        decrease -= z * (slope + 0.5 * bend * z) + corner * (abs(new) - abs(moved[t]))
        moved[t] = new
        touched += end - begin
        _add(columns, begin, end, k, z, pair, shares, scores, means)
    return touched, decrease


@njit(cache=True, nogil=True)
def _spread(columns, order, pair, shares, step, scores, means):
    """s and s̄ of the step; both added to. Returns the entries read."""
    touched = 0
    for j in range(order.size):
        a, k = np.uint64(order[j] // columns.outputs), np.uint64(order[j] % columns.outputs)
        begin, end = columns.entries.indptr[a], columns.entries.indptr[a + np.uint64(1)]
        _add(columns, begin, end, k, step[j], pair, shares, scores, means)
        touched += end - begin
    return touched


@njit(cache=True, nogil=True)
def _gather(columns, order, pair, shares, scores, means, out):
    """`_slope` of the weights in order; out written. Returns the entries read."""
    touched = 0
    for j in range(order.size):
        a, k = np.uint64(order[j] // columns.outputs), np.uint64(order[j] % columns.outputs)
        begin, end = columns.entries.indptr[a], columns.entries.indptr[a + np.uint64(1)]
        out[j] = _slope(columns, begin, end, k, pair, shares, scores, means)
        touched += end - begin
    return touched


@helper(cache=True, nogil=True, fastmath=REORDER)
def _slope(columns, begin, end, k, pair, shares, scores, means):
    """Σ_i m_i Σ_o p_o f_t(o) (s_o − s̄_i) over the entries of a column."""
    total = 0.0
    if pair:
        for e in range(begin, end):
            total += columns.entries.data[e] * scores[columns.entries.indices[e]]
        return total
    for e in range(begin, end):
        row = columns.entries.indices[e]
        i, o = columns.owner[row], row * np.uint64(columns.stride) + k
        total += columns.mass[i] * columns.entries.data[e] * shares[o] * (scores[o] - means[i])
    return total


@helper(cache=True, nogil=True)
def _add(columns, begin, end, k, z, pair, shares, scores, means):
    """s and s̄ after d_t grew by z; both written."""
    if pair:
        for e in range(begin, end):
            i = columns.entries.indices[e]
            scores[i] += z * columns.entries.data[e] * shares[i]
        return
    for e in range(begin, end):
        row = columns.entries.indices[e]
        i, o, x = columns.owner[row], row * np.uint64(columns.stride) + k, z * columns.entries.data[e]
        scores[o] += x
        means[i] += shares[o] * x


@njit(cache=True, nogil=True)
def _add_gram(rows, weights, places, constant, half):
    """half[a, b] + half[b, a] = Σ_i weights_i x_ia x_ib for the columns whose places are a and b; written."""
    seen, values = np.empty(rows.n_columns + 1, np.int64), np.empty(rows.n_columns + 1)
    for i in range(height(rows)):
        count = 0
        for e in range(row_begin(rows, i), row_end(rows, i)):
            place = places[column(rows, i, e)]
            if place >= 0:
                seen[count], values[count] = place, rows.data[e]
                count += 1
        if constant > 0.0 and places[rows.n_columns] >= 0:
            seen[count], values[count] = places[rows.n_columns], constant
            count += 1
        for e in range(count):
            scaled, place = weights[i] * values[e], seen[e]
            for f in range(e):
                half[place, seen[f]] += scaled * values[f]
