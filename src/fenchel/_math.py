"""Scalar leaf kernels, right at scores of ±1e3 and at the borders of the simplex.

Every kernel takes and returns plain numbers, so that larger kernels inline it.
"""

from math import exp, inf, log, log1p

from fenchel._cache import helper, njit

# Sums may be reordered and fused, but nan, inf and signed zero keep their meaning:
# plain fastmath turned log-sum-exp of all −∞ into nan and made isnan always false.
REORDER = {"reassoc", "contract", "arcp", "nsz"}

# A kernel that says nothing of fastmath takes it over from whoever is compiled first: hence False below.

# The smallest probability a dual variable may take: its logarithm and its reciprocal are finite.
TINY = 1e-300


@njit(cache=True, fastmath=False)
def log1pexp(s):
    """log(1 + eˢ) without overflow, exact to rounding at s = ±1e3."""
    if s > 0.0:
        return s + log1p(exp(-s))
    return log1p(exp(s))


@njit(cache=True, fastmath=False)
def sigmoid_pair(s):
    """(σ(s), σ(−s)), each with full relative accuracy: neither is one minus the other."""
    if s > 0.0:
        e = exp(-s)
        return 1.0 / (1.0 + e), e / (1.0 + e)
    e = exp(s)
    return e / (1.0 + e), 1.0 / (1.0 + e)


@njit(cache=True, nogil=True, forceinline=True)
def soft(v, threshold):
    """sign(v) max(|v| − threshold, 0); v itself where the threshold is 0."""
    return v - min(max(v, -threshold), threshold)


@njit(cache=True, fastmath=False)
def ordered(a, b, c):
    """(a − b) + c in this order, also where the caller may reorder its sums."""
    return (a - b) + c


@njit(cache=True, fastmath=False)
def xlogx(p):
    """p log p, and 0 at p = 0."""
    return p * log(p) if p > 0.0 else 0.0


@njit(cache=True, fastmath=False)
def kl_term(mu, nu):
    """μ log(μ/ν) − μ + ν ≥ 0, the contribution of one outcome to KL(μ ‖ ν); ν = 0 < μ gives ∞.

    The terms −μ + ν cancel over a distribution; with them no term is negative,
    so a sum of terms cannot lose its sign to rounding.
    """
    if mu <= 0.0:
        return nu
    if nu <= 0.0:
        return inf
    if 0.5 * mu < nu < 2.0 * mu:  # close: no digits may cancel
        t = (nu - mu) / mu
        return max(mu * (t - log1p(t)), 0.0)
    return mu * (log(mu) - log(nu)) - mu + nu


@njit(cache=True, fastmath=False)
def kl_pair(p, q, s):
    """KL((p, q) ‖ (σ(s), σ(−s))), also where σ underflows: its logarithm is −log(1 + e⁻ˢ)."""
    nu_p, nu_q = sigmoid_pair(s)
    return _kl_term_or_log(p, nu_p, -s) + _kl_term_or_log(q, nu_q, s)


@helper(cache=True, fastmath=False)
def _kl_term_or_log(mu, nu, s):
    """kl_term(mu, nu) for ν = σ(−s), by its logarithm where ν has lost its digits."""
    if nu > TINY or mu <= 0.0:
        return kl_term(mu, nu)
    return max(mu * (log(mu) + log1pexp(s) - 1.0) + nu, 0.0)


@njit(cache=True, fastmath=False)
def solve_exponential(c, expected, rate, lam):
    """Root z of  expected·e^(rate z) + lam z = c  (increasing and convex in z), by Newton.

    The sub-problem of GIS and SCGIS, huang2010 (27), and of SM-S with a regulariser; without one
    (lam = 0) the closed form (25), (12). Newton starts at an upper bound of the root, from where it
    descends monotonically. Returns −inf or inf where no finite root exists.
    """
    if lam <= 0.0:
        if expected <= 0.0:
            return inf if c > 0.0 else 0.0
        return log(c / expected) / rate if c > 0.0 else -inf
    if expected <= 0.0:
        return c / lam
    z = 0.0
    if c > expected:
        z = min(log(c / expected) / rate, (c - expected) / lam)
    for _ in range(200):
        grown = expected * exp(rate * z)
        step = (grown + lam * z - c) / (rate * grown + lam)
        z -= step
        if step <= 1e-15 * max(abs(z), 1e-300):
            break
    return z
