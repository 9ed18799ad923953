"""P and its gradient for two classes: scores, losses, gradient in one walk over the rows.

Row by row, with the exponential and the logarithm of libm, 200,000 × 30 took 17 ms. Here the scores of a few
rows wait in the first cache, with the rows themselves, until their losses are computed eight side by side.
"""

import numpy as np

from fenchel._cache import helper, njit
from fenchel._dispatch import kernel_by_type
from fenchel._lanes import chosen, exp_lanes, larger, load, log1p_lanes, smaller, spread, store, total, zeros
from fenchel._sparse import Rows, Table, row_add, row_dot

FOUR, EIGHT = np.uint64(4), np.uint64(8)
HEIGHT = np.uint64(64)  # rows


def value_and_pull(blocks, start, stop, w, known, scores, pull):
    """Σ m_i loss_i and Σ m_i ‖y_i − μ_i‖₁ over start ≤ i < stop; pull += Σ m_i A_iᵀ(y_i − μ_i), written.

    w, pull (dim,). scores (n,): those at w, where they are known; else written.
    """
    rows, constant = blocks.layout.rows, blocks.layout.constant
    return _value_and_pull(
        rows, constant, blocks.outcomes.y, blocks.mass, start, stop, w, known, scores, pull
    )


def all_marginals(blocks, start, stop, scores, mu):
    """Marginals at the scores (n,) of start ≤ i < stop; mu (n, 2) written, each with all its digits.

    By NumPy, whose exponential is as quick as ours and takes nothing to compile.
    """
    positive = scores[start:stop] > 0.0
    e = np.exp(-np.abs(scores[start:stop]))
    near = 1.0 / (1.0 + e)
    far = e * near
    mu[start:stop, 0] = np.where(positive, near, far)
    mu[start:stop, 1] = np.where(positive, far, near)


@njit(cache=True, nogil=True)
def _value_and_pull(rows, constant, targets, masses, start, stop, w, known, scores, pull):
    """Of the arrays that it reads: all of `Blocks` would be as much again to compile."""
    room = np.zeros((3, 64))
    s, y, mass = room[0], room[1], room[2]
    value, moved, stop = 0.0, 0.0, np.uint64(stop)
    offset = constant * w[-1] if constant > 0.0 else 0.0
    for first in range(np.uint64(start), stop, HEIGHT):
        count = min(HEIGHT, stop - first)
        if not known:
            several_scores(rows, first, count, w, offset, scores)
        for r in range(count):
            s[r], y[r], mass[r] = scores[first + r], targets[first + r], masses[first + r]
        for r in range(count, HEIGHT):
            mass[r] = 0.0
        loss, distance = _residuals(s, y, mass)
        value += loss
        moved += distance
        add_several(rows, first, count, s, pull)
        if constant > 0.0:
            excess = 0.0
            for r in range(count):
                excess += s[r]
            pull[w.size - 1] += constant * excess
    return value, moved


@kernel_by_type
def several_scores(rows, first, count, w, offset, scores):
    """scores[i] = x_i · w + offset for first ≤ i < first + count; written."""


@kernel_by_type
def add_several(rows, first, count, s, pull):
    """pull += Σ s_r x_i over the rows i = first + r, r < count; written."""


@several_scores.implement(Rows)
def _sparse_scores(rows, first, count, w, offset, scores):
    for i in range(first, first + count):
        scores[i] = row_dot(rows, i, w) + offset


@add_several.implement(Rows)
def _add_sparse(rows, first, count, s, pull):
    for r in range(count):
        row_add(rows, first + r, s[r], pull)


@several_scores.implement(Table)
def _dense_scores(rows, first, count, w, offset, scores):
    columns = np.uint64(rows.n_columns)
    _scores(rows.data[first * columns :], count, columns, w, offset, scores[first:])


@add_several.implement(Table)
def _add_dense(rows, first, count, s, pull):
    columns = np.uint64(rows.n_columns)
    _add(rows.data[first * columns :], count, columns, s, pull)


@njit(cache=True, nogil=True, forceinline=True)
def _residuals(s, y, mass):
    """s: scores become m (y − μ). Returns Σ m loss and Σ |m (y − μ)| over both classes.

    As in `binary._block_marginals`: loss = y log(1 + e⁻ˢ) + (1 − y) log(1 + eˢ), one exponential for all.
    """
    none = zeros(8)
    one, value, moved = spread(1.0, none), none, none
    for r in range(np.uint64(0), HEIGHT, EIGHT):
        margin, truth, m = load(s, r, none), load(y, r, none), load(mass, r, none)
        e = exp_lanes(none - larger(none - margin, margin))
        near = one / (one + e)
        far = e * near
        loss = log1p_lanes(e) + larger(none, margin) * (one - truth) - smaller(none, margin) * truth
        residual = truth * chosen(margin, far, near) - (one - truth) * chosen(margin, near, far)
        value = value + m * loss
        residual = m * residual
        moved = moved + larger(residual, none - residual)
        store(s, r, residual)
    return total(value), 2.0 * total(moved)


@njit(cache=True, nogil=True, forceinline=True)
def _scores(x, count, columns, w, offset, s):
    """s = x w + offset, written; x (count, columns) flat."""
    r, whole = np.uint64(0), columns - columns % FOUR
    while r < count:
        if r + FOUR <= count:
            _four_scores(x, r, columns, whole, w, offset, s)
            r += FOUR
        else:
            sums, dot = zeros(4), offset
            for j in range(np.uint64(0), whole, FOUR):
                sums = sums + load(x, r * columns + j, sums) * load(w, j, sums)
            for j in range(whole, columns):
                dot += x[r * columns + j] * w[j]
            s[r] = dot + total(sums)
            r += np.uint64(1)


@helper(cache=True, nogil=True, forceinline=True)
def _four_scores(x, r, columns, whole, w, offset, s):
    """Rows r … r + 3, which share what is loaded of w; columns from `whole` on do not fill a register."""
    a, b, c, d = zeros(4), zeros(4), zeros(4), zeros(4)
    first = r * columns
    second, third = first + columns, first + columns + columns
    fourth = third + columns
    for j in range(np.uint64(0), whole, FOUR):
        here = load(w, j, a)
        a = a + load(x, first + j, a) * here
        b = b + load(x, second + j, a) * here
        c = c + load(x, third + j, a) * here
        d = d + load(x, fourth + j, a) * here
    one, two, three, four = offset, offset, offset, offset
    for j in range(whole, columns):
        one += x[first + j] * w[j]
        two += x[second + j] * w[j]
        three += x[third + j] * w[j]
        four += x[fourth + j] * w[j]
    s[r], s[r + np.uint64(1)] = one + total(a), two + total(b)
    s[r + np.uint64(2)], s[r + np.uint64(3)] = three + total(c), four + total(d)


@njit(cache=True, nogil=True, forceinline=True)
def _add(x, count, columns, s, pull):
    """pull += xᵀ s, written, four rows at a time; s is zero from `count` on, up to a multiple of four."""
    r, whole = np.uint64(0), columns - columns % FOUR
    while r < count:
        if r + FOUR <= count:
            _add_four(x, r, columns, whole, s, pull)
            r += FOUR
        else:
            for j in range(columns):
                pull[j] += x[r * columns + j] * s[r]
            r += np.uint64(1)


@helper(cache=True, nogil=True, forceinline=True)
def _add_four(x, r, columns, whole, s, pull):
    """The share of rows r … r + 3."""
    none = zeros(4)
    one, two = s[r], s[r + np.uint64(1)]
    three, four = s[r + np.uint64(2)], s[r + np.uint64(3)]
    a, b, c, d = spread(one, none), spread(two, none), spread(three, none), spread(four, none)
    first = r * columns
    second, third = first + columns, first + columns + columns
    fourth = third + columns
    for j in range(np.uint64(0), whole, FOUR):
        here = load(pull, j, none) + load(x, first + j, none) * a + load(x, second + j, none) * b
        store(pull, j, here + load(x, third + j, none) * c + load(x, fourth + j, none) * d)
    for j in range(whole, columns):
        here = pull[j] + x[first + j] * one + x[second + j] * two
        pull[j] = here + x[third + j] * three + x[fourth + j] * four
