"""Slow and obvious: the outputs of an example listed one by one, and the objectives from their formulas."""

from math import exp, fsum, inf, log, log1p

import numpy as np

# ---- one example: a list of the scores of its outputs; or a number s, the score of +1, that of −1 being 0


def outputs(s):
    """The score of every output."""
    return [s, 0.0] if np.ndim(s) == 0 else list(s)


def targets(y):
    """The empirical probability of every output; a number is that of +1."""
    return [y, 1.0 - y] if np.ndim(y) == 0 else list(y)


def _top_and_rest(s):
    """The largest score, and log Z less it, in full precision."""
    *others, top = sorted(outputs(s))
    if top == -inf:
        return -inf, log(1 + len(others))
    return top, log1p(fsum(exp(score - top) for score in others))


def log_partition(s):
    return sum(_top_and_rest(s))


def log_marginals(s):
    """log p of each output, exact where p underflows; uniform where no output is possible."""
    top, rest = _top_and_rest(s)
    return [-rest if top == -inf else (score - top) - rest for score in outputs(s)]


def marginals(s):
    return [exp(value) for value in log_marginals(s)]


def argmax(scores):
    """The first of largest score among (−1, +1): at a tie −1, as the library documents by its kernel."""
    best = 1 if scores[1] >= scores[0] else 0
    return best, scores[best]


def costs(y):
    """Hamming cost of each output: 1 − its target."""
    return [1.0 - t for t in targets(y)]


def entropy(mu):
    return -fsum(p * log(p) for p in mu if p > 0.0)


def kl(mu, s):
    """KL(μ ‖ marginals at s)."""
    return fsum(p * (log(p) - q) for p, q in zip(mu, log_marginals(s), strict=True) if p > 0.0)


def log_loss(s, y):
    """log Z − ⟨s, y⟩ for y the probability of +1, or of each output."""
    return -fsum(t * q for t, q in zip(targets(y), log_marginals(s), strict=True) if t > 0.0)


def augmented(s, y):
    """Score plus cost of each output."""
    return [score + cost for score, cost in zip(outputs(s), costs(y), strict=True)]


def hinge_loss(s, y):
    """Largest cost-augmented score less the score of the label."""
    truth = fsum(t * score for t, score in zip(targets(y), outputs(s), strict=True) if t > 0.0)
    return max(augmented(s, y)) - truth


def hinge_gap(mu, s, y):
    """Largest cost-augmented score less its mean under μ."""
    scores = augmented(s, y)
    return max(scores) - fsum(p * score for p, score in zip(mu, scores, strict=True) if p > 0.0)


def covariance(mu):
    """Of the indicators of the outputs: diag μ − μ μᵀ."""
    return np.diag(mu) - np.outer(mu, mu)


# ---- a whole problem, dense


class Dense:
    """P, D and their pieces from the formulas, with every matrix dense and every sum by NumPy."""

    def __init__(self, X, y, lam, weight=None, free=False, hinge=False):
        self.X = np.asarray(X.todense()) if hasattr(X, "todense") else np.asarray(X, dtype=float)
        self.y = np.asarray(y, dtype=float)
        weight = np.ones(len(self.y)) if weight is None else np.asarray(weight, dtype=float)
        self.mass = weight / weight.sum()
        self.lam, self.free, self.hinge = lam, free, hinge

    def losses(self, s):
        if self.hinge:
            return np.maximum(0.0, 1.0 - (2.0 * self.y - 1.0) * s)
        return self.y * np.logaddexp(0.0, -s) + (1.0 - self.y) * np.logaddexp(0.0, s)

    def primal(self, w, b=0.0):
        return self.mass @ self.losses(self.X @ w + b) + 0.5 * self.lam * w @ w

    def gradient(self, w, b=0.0):
        """(∂P/∂w, ∂P/∂b)."""
        residual = self.mass * (self._sigmoid(self.X @ w + b) - self.y)
        return self.X.T @ residual + self.lam * w, residual.sum()

    def weights(self, mu):
        """w(μ) = (1/λ) Σ m_i A_iᵀ(y_i − μ_i)."""
        return self.X.T @ (self.mass * (self.y - mu[:, 0])) / self.lam

    def dual(self, mu):
        w = self.weights(mu)
        if self.hinge:
            concave = (1.0 - self.y) * mu[:, 0] + self.y * mu[:, 1]
        else:
            concave = np.array([entropy(pair) for pair in mu])
        return self.mass @ concave - 0.5 * self.lam * w @ w

    def optimum(self, steps=200):
        """(P*, w, b) of the log loss: Newton on (w, b) with backtracking, until it moves no more."""
        A = np.hstack([self.X, np.ones((len(self.y), 1))]) if self.free else self.X
        ridge = np.full(A.shape[1], self.lam)
        ridge[self.X.shape[1] :] = 0.0
        scale = np.sqrt(self.mass @ A**2 + ridge)
        scale[scale == 0.0] = 1.0
        A, ridge = A / scale, ridge / scale**2

        def value(u):
            return self.mass @ self.losses(A @ u) + 0.5 * ridge @ u**2

        u = np.zeros(A.shape[1])
        best = value(u)
        for _ in range(steps):
            p = self._sigmoid(A @ u)
            gradient = A.T @ (self.mass * (p - self.y)) + ridge * u
            hessian = (A.T * (self.mass * p * (1.0 - p))) @ A + np.diag(ridge)
            direction, *_ = np.linalg.lstsq(hessian, -gradient, rcond=1e-15)
            step, now = 1.0, inf
            while not now < best and step > 1e-12:
                now = value(u + step * direction)
                step *= 0.5
            if not now < best:
                break
            u, best = u + 2.0 * step * direction, now
        u = u / scale
        d = self.X.shape[1]
        return best, u[:d], float(u[d]) if self.free else 0.0

    @staticmethod
    def _sigmoid(s):
        return np.exp(-np.logaddexp(0.0, -s))
