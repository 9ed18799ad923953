"""The kernels of dual coordinate descent for two classes: yu2011 Algorithms 1, 4, 5 and 9.

In the notation of this library the dual variable of example i is its pair of marginals (μ₊, μ₋), kept
apart as the paper keeps α and C − α. The sub-problem (18) in z, the change of μ₊, is

    min_z (μ₊ + z) log(μ₊ + z) + (μ₋ − z) log(μ₋ − z) + a/2 z² + b z,   a = m‖x‖²/λ,  b = −(x·w + offset)

with c₁ = μ₊, c₂ = μ₋, c₁ + c₂ = 1. It is symmetric in its two borders; Z is the distance to the nearer one.
"""

from enum import IntEnum
from math import exp, log

import numpy as np

from fenchel._cache import helper, njit
from fenchel._math import TINY, xlogx
from fenchel._prefetch import prefetch, prefetch_row
from fenchel._sparse import row_add, row_dot, soft_dot

BETA, GAMMA = 0.5, 0.01  # line search (21)
XI0 = 0.1  # (35): where a variable begins that is nearer to the other border


class Method(IntEnum):
    """How the sub-problem (18) is solved."""

    NEWTON = 0
    BISECTION = 1
    LINE_SEARCH = 2
    MULTIPLIER = 3  # of a whole block of labels at once
    FROM_ZERO = 4  # Newton from (35)
    FROM_MIDDLE = 5  # Newton from the middle of the interval


@njit(cache=True, nogil=True)
def log_epoch(blocks, order, fresh, method, xi, precision, mu, odds, v):
    """Algorithm 5, one pass in the given order; mu, odds, v written. Returns Newton steps and the gap met.

    fresh: v does not hold the examples' first residuals y_i − μ_i yet; each is added with its first update,
    which saves the pass that w(μ) would cost. precision[0]: the slope at which a pair is solved.
    """
    rows, d = blocks.layout.rows, blocks.layout.n_weights
    beta = v[d] if blocks.layout.constant > 0.0 else 0.0
    scale = 1.0 / blocks.lam
    newtons, gap, tol = 0, 0.0, precision[0]
    for k in range(order.size):
        i = order[k]
        _prefetch_example(blocks, order[min(k + 1, order.size - 1)], mu)
        prefetch(odds, order[min(k + 1, order.size - 1)])
        if blocks.threshold == 0.0:
            score = row_dot(rows, i, v) + blocks.layout.constant * beta
        else:
            score = soft_dot(rows, i, v, blocks.threshold) + blocks.layout.constant * beta
        step = scale * blocks.mass[i]
        p, q, y = mu[i, 0], mu[i, 1], blocks.outcomes.y[i]
        before = 0.0 if fresh else y * q - (1.0 - y) * p
        slope = odds[i] - score
        met = p * q * slope * slope  # twice KL(μ_i ‖ marginals at the score), to second order
        if abs(slope) > tol:
            old = p
            p, q, odds[i], count = solve_pair(
                method, p, q, odds[i], step * blocks.layout.norms[i], -score, xi, tol
            )
            mu[i, 0], mu[i, 1] = p, q
            newtons += count
            met = max(met, abs((p - old) * slope))
        gap += 0.5 * blocks.mass[i] * met
        change = step * (y * q - (1.0 - y) * p - before)
        if change != 0.0:
            row_add(rows, i, change, v)
            beta += change * blocks.layout.constant
    if blocks.layout.constant > 0.0:
        v[d] = beta
    return newtons, gap


@helper(cache=True, forceinline=True)
def _prefetch_example(blocks, i, mu):
    """Bring what the next step needs into the cache; without this a step on a short row mostly waits."""
    prefetch_row(blocks.layout.rows, i)
    prefetch(blocks.outcomes.y, i)
    prefetch(blocks.mass, i)
    prefetch(blocks.layout.norms, i)
    prefetch(mu, i)


@helper(cache=True, forceinline=True)
def solve_pair(method, c1, c2, odds, a, b, xi, tol):
    """Solve (18) from the side (34) names; returns the new pair, its log-odds and the Newton steps taken."""
    if 0.5 * (c2 - c1) * a + b >= 0.0:
        z, odds, count = _solve_near(method, c1, odds, a, b, xi, tol)
        return z, 1.0 - z, odds, count
    z, odds, count = _solve_near(method, c2, -odds, a, -b, xi, tol)
    return 1.0 - z, z, -odds, count


@helper(cache=True, forceinline=True)
def _solve_near(method, c, odds, a, b, xi, tol):
    """Root Z ≤ ½ of g'(Z) = log(Z/(1 − Z)) + a(Z − c) + b, (32), given the log-odds of c."""
    z, slope = c, odds + b
    if method == Method.NEWTON:
        # Algorithm 4 may begin anywhere; a Newton step on the log-odds, in which (32) is nearly linear, lands
        # close to the root, and its logarithm comes for nothing.
        odds = min(odds - slope / (1.0 + a * c * (1.0 - c)), 0.0)
        z = max(exp(odds) / (1.0 + exp(odds)), TINY)
        slope = odds + a * (z - c) + b
    elif method == Method.FROM_MIDDLE:
        z, odds = 0.5, 0.0
        slope = a * (z - c) + b
    elif c >= 0.5 and method != Method.LINE_SEARCH:  # (35)
        z = XI0 * c
        odds = log(z / (1.0 - z))
        slope = odds + a * (z - c) + b
    if method == Method.BISECTION:
        while slope > 0.0 and z > TINY:
            z *= 0.5
            odds = log(z / (1.0 - z))
            slope = odds + a * (z - c) + b
    count = 0
    while abs(slope) > tol and count < 100:
        count += 1
        variance = z * (1.0 - z)
        move = -slope * variance / (a * variance + 1.0)
        if method == Method.LINE_SEARCH:
            move = _backtrack(z, c, a, b, slope, move)
        new = z + move if z + move > 0.0 else xi * z
        new = min(max(new, TINY), 1.0 - 1e-16)
        if new == z:
            break
        z = new
        odds = log(z / (1.0 - z))
        slope = odds + a * (z - c) + b
        if method == Method.LINE_SEARCH:
            break
    return z, odds, count


@helper(cache=True)
def _backtrack(z, c, a, b, slope, move):
    """Halve the Newton step until it stays inside (0, 1) and decreases g enough, (21)."""
    before = xlogx(z) + xlogx(1.0 - z) + 0.5 * a * (z - c) ** 2 + b * (z - c)
    for _ in range(60):
        new = z + move
        if 0.0 < new < 1.0:
            after = xlogx(new) + xlogx(1.0 - new) + 0.5 * a * (new - c) ** 2 + b * (new - c)
            if after - before <= GAMMA * slope * move:
                break
        move *= BETA
    return move


@njit(cache=True, nogil=True)
def hinge_epoch(blocks, order, mu, v, met):
    """Algorithm 1, one pass in the given order; mu, v written, and met (n,), the gaps of those visited."""
    rows = blocks.layout.rows
    for k in range(order.size):
        i = order[k]
        _prefetch_example(blocks, order[min(k + 1, order.size - 1)], mu)
        margin = row_dot(rows, i, v) + 1.0 - 2.0 * blocks.outcomes.y[i]  # cost-augmented: +1 over −1
        p, q = mu[i, 0], mu[i, 1]
        met[i] = q * margin if margin > 0.0 else -p * margin
        step = blocks.mass[i] / blocks.lam
        a = step * blocks.layout.norms[i]
        change = margin / a if abs(margin) < a else np.sign(margin)
        new = min(max(p + change, 0.0), 1.0)
        change = new - p
        if change != 0.0:
            mu[i, 0] = new
            mu[i, 1] = 1.0 - new
            row_add(rows, i, -step * change, v)
