"""The kernels of dual coordinate descent for labels and candidates: yu2011 Algorithms 6 and 7, and the hinge.

The block of example i is μ_i, a distribution over its outcomes. With z its new value the sub-problem (42) is

    min_z Σ_y z_y log z_y − ⟨s, z⟩ + m/(2λ) (z − μ)ᵀ K (z − μ)   over the simplex,   K = A_i A_iᵀ

and with the hinge loss the same without the logarithms, and with the cost added to the scores s.
"""

from math import log

import numpy as np

from fenchel._cache import helper, njit
from fenchel._math import REORDER, TINY
from fenchel._sparse import column, row_begin, row_end
from fenchel.solvers.cddual.pair import solve_pair
from fenchel.structures import base

PAIRS = 20  # most pair updates of a block in a visit, for each of its outcomes


@njit(cache=True, nogil=True)
def spread_targets(blocks, epsilon, mu):
    """(51): outcomes never seen with example i share ε, the others keep 1 − ε of their target; mu written."""
    for i in range(blocks.mass.size):
        mu_i = base.block_view(blocks, mu, i)
        unseen = 0
        for j in range(mu_i.size):
            if mu_i[j] <= 0.0:
                unseen += 1
        if unseen > 0:
            for j in range(mu_i.size):
                mu_i[j] = epsilon / unseen if mu_i[j] <= 0.0 else (1.0 - epsilon) * mu_i[j]


@njit(cache=True, nogil=True)
def log_epoch(blocks, order, fresh, method, xi, precision, mu, logs, v):
    """Algorithm 7, one pass in the given order; mu, logs = log μ and v written.

    fresh: v does not hold the examples' first residuals y_i − μ_i yet; each is added with its first update.
    precision: the violation at which a block is solved; the share of the first one that a visit may leave.
    Returns the pair updates made beyond the first of each block, and the gap met.
    """
    s, slopes, z = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    norms, delta = np.empty(blocks.size), np.empty(blocks.size)
    extra, gap = 0, 0.0
    for i in order:
        mu_i, logs_i = base.block_view(blocks, mu, i), base.block_view(blocks, logs, i)
        base.block_scores(blocks, i, v, s)
        gap += blocks.mass[i] * base.block_divergence(blocks, i, mu_i, np.nan, s, 0.0)
        rate = blocks.mass[i] / blocks.lam
        for j in range(mu_i.size):
            z[j] = mu_i[j]
            slopes[j] = logs_i[j] - s[j]  # (46) less a constant
        base.block_norms(blocks, i, norms)
        pairs = _optimise(blocks, i, rate, method, xi, precision, norms, z[: mu_i.size], logs_i, slopes)
        extra += max(pairs - 1, 0)
        put_block(blocks, i, rate, fresh, z, mu_i, delta, v)
    return extra, gap


@helper(cache=True, nogil=True)
def _optimise(blocks, i, rate, method, xi, precision, norms, z, logs, slopes):
    """Algorithm 6, the maximal violating pair again and again; z, logs, slopes written. Returns the pairs.

    norms: the diagonal of K; where K has no other entries, (48), a pair changes two slopes alone, (49).
    """
    tol, leave = precision
    enough = tol
    for count in range(PAIRS * z.size):
        y1, y2 = 0, 0
        for j in range(z.size):
            y1 = j if slopes[j] > slopes[y1] else y1
            y2 = j if slopes[j] < slopes[y2] else y2
        if count == 0:
            enough = max(tol, leave * (slopes[y1] - slopes[y2]))
        if slopes[y1] - slopes[y2] <= enough:
            return count
        total, odds = z[y1] + z[y2], logs[y1] - logs[y2]
        # (45): on shares of the pair, c₁ + c₂ = 1, its curvature is multiplied by the total.
        a = rate * total * _curvature(blocks, i, y1, y2, norms)
        b = slopes[y1] - slopes[y2] - odds
        p, q, _, _ = solve_pair(method, z[y1] / total, z[y2] / total, odds, a, b, xi, tol)
        moved = total * p - z[y1]
        z[y1], z[y2] = max(total * p, TINY), max(total * q, TINY)
        base.block_move_pair(blocks, i, rate * moved, y1, y2, norms, slopes)
        for j in (y1, y2):
            slopes[j] -= logs[j]
            logs[j] = log(z[j])
            slopes[j] += logs[j]
    return PAIRS * z.size


@helper(cache=True, nogil=True)
def _curvature(blocks, i, y1, y2, norms):
    """‖f(x_i, y₁) − f(x_i, y₂)‖² of (45)."""
    return max(norms[y1] + norms[y2] - 2.0 * base.block_product(blocks, i, y1, y2), 0.0)


@helper(cache=True, nogil=True)
def put_block(blocks, i, rate, fresh, z, mu, delta, v):
    """μ_i ← z and w(μ) with it, (50); mu, v and delta written."""
    if fresh:
        for j in range(mu.size):
            mu[j] = z[j]
        base.block_residual(blocks, i, mu, delta)
        base.block_add(blocks, i, rate, delta, v)
        return
    for j in range(mu.size):
        delta[j] = z[j] - mu[j]
        mu[j] = z[j]
    base.block_add(blocks, i, -rate, delta, v)


# ---- the hinge loss


@njit(cache=True, nogil=True)
def hinge_epoch(blocks, order, mu, v, met):
    """Crammer and Singer's blocks, yu2011 (17), labels crossed with attributes: K is ‖x‖² times the identity,

    so the new block is the point of the simplex nearest to μ + (s + cost)/a, a = m‖x‖²/λ. One pass in the
    given order; mu, v written, and met (n,), the gap of each example visited.
    """
    s, room = np.empty(blocks.size), np.empty(blocks.size)
    moved, targets = np.empty(blocks.size, np.uint64), blocks.outcomes.targets
    for i in order:
        mu_i, rate = mu[i], blocks.mass[i] / blocks.lam
        base.block_scores(blocks, i, v, s)
        for e in range(targets.indptr[i], targets.indptr[i + 1]):
            s[targets.indices[e]] -= targets.data[e]  # cost-augmented, less one everywhere
        top, mean = _top_and_mean(s, mu_i)
        met[i] = max(top - mean, 0.0)
        a = rate * blocks.layout.norms[i]
        if met[i] > 0.0 and a > 0.0:
            for j in range(s.size):  # less the largest: where a is tiny, s/a would swallow μ
                s[j] = mu_i[j] + (s[j] - top) / a
            _put_few(blocks.layout, i, rate, s, _threshold(s), mu_i, room, moved, v)
        elif met[i] > 0.0:
            base.block_argmax(blocks, i, s, mu_i)


@helper(cache=True, nogil=True, fastmath=REORDER)
def _top_and_mean(s, mu):
    """max s and ⟨s, μ⟩."""
    top, mean = s[0], 0.0
    for j in range(s.size):
        top = max(top, s[j])
        mean += s[j] * mu[j]
    return top, mean


@helper(cache=True, nogil=True, fastmath=REORDER)
def _threshold(z):
    """θ for which max(z − θ, 0), the point of the simplex nearest to z, has the sum one (Michelot 1986).

    It rises from the largest z less one, below which it cannot be; each time what exceeds it is summed.
    """
    threshold = z[0]
    for j in range(z.size):
        threshold = max(threshold, z[j])
    threshold -= 1.0
    for _ in range(z.size):
        total, count = 0.0, 0.0
        for j in range(z.size):
            total += z[j] if z[j] > threshold else 0.0
            count += 1.0 if z[j] > threshold else 0.0
        if not total - 1.0 > threshold * count:
            break
        threshold = (total - 1.0) / count
    return threshold


@helper(cache=True, nogil=True)
def _put_few(layout, i, rate, z, threshold, mu, delta, moved, v):
    """μ_i ← max(z − threshold, 0), and v with it; mu, v, delta, moved written. Most labels do not move."""
    count, labels = np.uint64(0), np.uint64(layout.labels)
    for j in range(labels):
        new = max(z[j] - threshold, 0.0)
        if new != mu[j]:
            delta[count], moved[count] = rate * (mu[j] - new), j
            mu[j] = new
            count += np.uint64(1)
    for e in range(row_begin(layout.rows, i), row_end(layout.rows, i)):
        x, begin = layout.rows.data[e], column(layout.rows, i, e) * labels
        for c in range(count):
            v[begin + moved[c]] += x * delta[c]


@helper(cache=True, nogil=True)
def _augmented(blocks, i, v, mu, s, cost):
    """s = scores + cost (written); returns the block gap max s − ⟨s, μ⟩ of the hinge loss."""
    base.block_scores(blocks, i, v, s)
    base.block_cost(blocks, i, cost)
    best, mean = 0, 0.0
    for j in range(mu.size):
        s[j] += cost[j]
        mean += s[j] * mu[j]
        best = j if s[j] > s[best] else best
    return max(s[best] - mean, 0.0)


@njit(cache=True, nogil=True)
def hinge_pair_epoch(blocks, order, mu, v, met):
    """Candidates: pair updates of the hinge dual, clipped to the simplex; mu, v and met (n,) written.

    The pair is the outcome of largest slope that has mass, and the one of least slope.
    """
    s, slopes, z = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    norms, delta = np.empty(blocks.size), np.empty(blocks.size)
    for i in order:
        mu_i, rate = base.block_view(blocks, mu, i), blocks.mass[i] / blocks.lam
        met[i] = _augmented(blocks, i, v, mu_i, s, delta)
        for j in range(mu_i.size):
            z[j], slopes[j] = mu_i[j], -s[j]
        base.block_norms(blocks, i, norms)
        optimise_hinge(blocks, i, rate, norms, z[: mu_i.size], slopes)
        put_block(blocks, i, rate, False, z, mu_i, delta, v)


@helper(cache=True, nogil=True)
def optimise_hinge(blocks, i, rate, norms, z, slopes):
    """The block's quadratic problem by maximal violating pairs; z, slopes written."""
    for _ in range(PAIRS * z.size):
        y1, y2 = -1, 0
        for j in range(z.size):
            if z[j] > 0.0 and (y1 < 0 or slopes[j] > slopes[y1]):
                y1 = j
            y2 = j if slopes[j] < slopes[y2] else y2
        violation = slopes[y1] - slopes[y2]
        if violation <= 1e-10 * (1.0 + abs(slopes[y2])):
            return
        a = rate * _curvature(blocks, i, y1, y2, norms)
        moved = violation / a if violation < a * z[y1] else z[y1]
        z[y1] = z[y1] - moved if moved < z[y1] else 0.0
        z[y2] += moved
        base.block_move_pair(blocks, i, rate * moved, y2, y1, norms, slopes)
