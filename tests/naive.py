"""Plain-Python twins of three kernels: dense, no lazy updates, no bookkeeping, the same random stream."""

from math import log

import numpy as np

from brute import kl, marginals


def with_constant(dense, constant):
    """Features as solvers see them, with a constant one where the offset is free; and the first weights."""
    if not dense.free:
        return dense.X, np.zeros(dense.X.shape[1])
    ones = dense.mass @ dense.y
    X = np.hstack([dense.X, np.full((len(dense.X), 1), constant)])
    return X, np.append(np.zeros(dense.X.shape[1]), log(ones / (1.0 - ones)) / constant)


def cd_dual_pass(dense, constant, mu, rng):
    """yu2011 Algorithm 5: one pass from the dual point mu, whose residuals enter w with their first update.

    Each sub-problem min_p  p log p + (1 − p) log(1 − p) + a/2 (p − p₀)² − s (p − p₀)  by bisection on the
    log-odds of p. After the pass β moves once more by as much as it did. Returns the weights and μ.
    """
    (X, first), mu = with_constant(dense, constant), mu.copy()
    w = first.copy()
    for i in rng.permutation(len(X)):
        rate, y = dense.mass[i] / dense.lam, dense.y[i]
        s, a, p = X[i] @ w, rate * (X[i] @ X[i]), mu[i, 0]
        low, high = -800.0, 800.0
        for _ in range(200):
            odds = 0.5 * (low + high)
            if odds + a * (marginals(odds)[0] - p) - s > 0.0:
                high = odds
            else:
                low = odds
        mu[i] = marginals(0.5 * (low + high))
        w += rate * (y * mu[i, 1] - (1.0 - y) * mu[i, 0]) * X[i]
    d = dense.X.shape[1]
    w[d:] += w[d:] - first[d:]
    return w, mu


def penalties(dense):
    """λ of every weight, and 0 of β."""
    return np.append(np.full(dense.X.shape[1], dense.lam), [0.0] * dense.free)


def sgd_passes(dense, constant, eta0, passes, rng):
    """collins2008 7.1.3: w ← w − η(n m_i ∇loss_i + λ w), η = eta0/(1 + k/n); β is not shrunk."""
    (X, w), n, lam = with_constant(dense, constant), len(dense.y), penalties(dense)
    for k, i in enumerate(i for _ in range(passes) for i in rng.integers(n, size=n)):
        eta, y = eta0 / (1.0 + k / n), dense.y[i]
        s = X[i] @ w
        p = float(s + (1.0 - y) > y) if dense.hinge else marginals(s)[0]  # hinge: cost-augmented argmax
        slope = n * dense.mass[i] * (p - y)
        w = (1.0 - eta * lam) * w - eta * slope * X[i]
    return w


def sag_passes(dense, constant, non_uniform, passes, rng):
    """Schmidt et al. (2015): the mean of the gradients last seen, Lipschitz constants by line search."""
    (X, w), n, lam = with_constant(dense, constant), len(dense.y), dense.lam
    memory, known = np.zeros(n), np.zeros(n)  # slopes ∂loss_i/∂s_i
    reach = (X**2).sum(axis=1)  # how far a step along an example moves its own score
    L, bounds = np.zeros(n), np.maximum(n * dense.mass * reach, 4e-12)
    largest = 0.0 if non_uniform else 0.25 * bounds.max()
    for number in range(passes):
        largest = L.max() if non_uniform else largest
        order = rng.permutation(n) if number == 0 else None
        for k, (choice, u) in enumerate(rng.random((n, 2))):
            if order is not None:
                i = order[k]
            elif non_uniform and choice < 0.5:
                i = int(np.searchsorted(np.cumsum(L), u * L.sum(), side="right"))
            else:
                i = int(u * n)
            s, y, new = X[i] @ w, dense.y[i], known[i] == 0.0
            if new and non_uniform:
                L[i] = 0.5 * L.sum() / known.sum() if known.any() else 2.0**-20 * bounds[i]
            memory[i], known[i] = marginals(s)[0] - y, 1.0
            L[i] = search(
                L[i] if non_uniform else largest, s, y, memory[i], n * dense.mass[i], reach[i], n, non_uniform
            )
            largest = max(largest, L[i]) if non_uniform else L[i]
            alpha = 1.0 / (largest + lam)
            if non_uniform:
                alpha = 0.5 * alpha + 0.5 / (L.sum() / known.sum() + lam)
            alpha = min(alpha, 0.5 / lam)
            slopes = dense.mass * memory * n / known.sum()
            w = (1.0 - alpha * penalties(dense)) * w - alpha * (X.T @ slopes)
    return w


def search(L, s, y, slope, weight, reach, n, non_uniform):
    """Shrink L a little, then double it until f(w − ∇f/L) ≤ f(w) − ‖∇f‖²/(2L) for f = weight · loss_i."""
    squared, target = slope**2 * reach, [y, 1.0 - y]
    rounding = 1e-13 * (kl(target, s) + abs(s) * marginals(s)[0])
    if weight * squared <= rounding * L:
        return L
    L *= 0.9 if non_uniform else 0.5 ** (1.0 / n)
    while kl(target, s - weight / L * reach * slope) - kl(target, s) > rounding - 0.5 * weight * squared / L:
        L *= 2.0
    return L
