"""The scalar kernels, at the scores and probabilities where naive formulas break."""

from itertools import product
from math import exp, inf, isfinite, log, log1p

import numpy as np
import pytest

import brute
from fenchel import _math

SCORES = [0.0, 1e-12, -1e-12, 1.0, -1.0, 30.0, -30.0, 700.0, -700.0, 720.0, -720.0, 1e3, -1e3, 1e300]
SUBNORMAL = [5e-324, 1e-310]
PROBABILITIES = [0.0, 1e-300, 1e-17, 1e-3, 0.25, 0.5, 0.75, 1.0 - 1e-16, 1.0]


@pytest.mark.parametrize("s", SCORES)
def test_log1pexp_is_the_log_partition(s):
    assert _math.log1pexp(s) == pytest.approx(brute.log_partition(s), rel=1e-14, abs=0.0)


def test_log1pexp_of_the_infinities():
    assert _math.log1pexp(-inf) == 0.0
    assert _math.log1pexp(inf) == inf


@pytest.mark.parametrize("s", SCORES)
def test_sigmoid_pair_has_full_relative_accuracy_on_both_sides(s):
    p, q = _math.sigmoid_pair(s)
    expected = brute.marginals(s)
    tolerance = 1e-12 if abs(s) < 708.0 else 1e-8  # subnormal results have fewer digits
    assert p == pytest.approx(expected[0], rel=tolerance, abs=1e-322)
    assert q == pytest.approx(expected[1], rel=tolerance, abs=1e-322)
    assert (p, q) == _math.sigmoid_pair(-s)[::-1]


@pytest.mark.parametrize("p", PROBABILITIES)
def test_xlogx(p):
    assert _math.xlogx(p) == (p * log(p) if p > 0.0 else 0.0)


def check_kl_term(mu, nu):
    value = _math.kl_term(mu, nu)
    assert value >= 0.0
    if mu == 0.0:
        assert value == nu
    elif nu == 0.0:
        assert value == inf
    else:
        assert isfinite(value)
        expected = mu * (log(mu) - log(nu)) - mu + nu
        assert value == pytest.approx(expected, rel=1e-9, abs=2e-16)


def test_kl_term_is_never_negative_nor_nan():
    for mu, nu in product(PROBABILITIES, repeat=2):
        check_kl_term(mu, nu)


def test_kl_term_of_subnormal_probabilities_is_neither_infinite_nor_nan():
    """Where μ/ν or ν/μ overflows: a marginal at a score of 710 is such a number."""
    for small, other in product(SUBNORMAL, PROBABILITIES):
        check_kl_term(small, other)
        check_kl_term(other, small)


def test_kl_term_keeps_its_digits_where_the_plain_formula_has_none():
    """KL of nearby probabilities is (μ − ν)²/(2μ) to second order; the plain formula gives rounding noise."""
    mu, nu = 0.3, 0.3 * (1.0 + 1e-7)
    assert _math.kl_term(mu, nu) == pytest.approx(mu * 1e-14 / 2.0, rel=1e-6)


def check_kl_pair(p, s):
    expected = brute.kl([p, 1.0 - p], s)
    value = _math.kl_pair(p, 1.0 - p, s)
    assert value >= 0.0
    assert value == pytest.approx(expected, rel=1e-10, abs=1e-15)


def test_kl_pair_against_enumeration():
    for p, s in product(PROBABILITIES, [score for score in SCORES if abs(score) != 720.0 and score < 1e300]):
        check_kl_pair(p, s)


def test_kl_pair_where_a_probability_is_subnormal_against_enumeration():
    for p, s in product(SUBNORMAL, SCORES[:-1]):
        check_kl_pair(p, s)
        check_kl_pair(1.0 - p, s)
    for p, s in product(PROBABILITIES, (709.0, -715.0, 720.0, -720.0, 744.0, -746.0)):
        check_kl_pair(p, s)


def test_kl_pair_is_zero_at_the_marginals():
    for s in SCORES:
        assert _math.kl_pair(*_math.sigmoid_pair(s), s) <= 1e-15


@pytest.mark.parametrize("lam", [1e-6, 1e-2, 1.0, 1e4])
@pytest.mark.parametrize("rate", [0.1, 1.0, 50.0])
@pytest.mark.parametrize("expected", [0.0, 1e-300, 1e-12, 0.3, 1e3])
@pytest.mark.parametrize("c", [-1e3, -0.2, 0.0, 0.2, 1e3])
def test_solve_exponential_finds_the_root(c, expected, rate, lam):
    z = _math.solve_exponential(c, expected, rate, lam)
    grown = expected * exp(rate * z) if expected > 0.0 else 0.0
    size = max(abs(c), grown, lam * abs(z), 1e-300)
    slope = (rate * grown + lam) * max(abs(z), 1e-300)
    assert abs(grown + lam * z - c) <= 1e-13 * (size + slope)


def test_solve_exponential_without_a_regulariser_has_a_closed_form():
    assert _math.solve_exponential(0.6, 0.3, 2.0, 0.0) == pytest.approx(log(2.0) / 2.0, rel=1e-15)
    assert _math.solve_exponential(0.0, 0.3, 2.0, 0.0) == -inf
    assert _math.solve_exponential(0.3, 0.0, 2.0, 0.0) == inf
    assert _math.solve_exponential(0.0, 0.0, 2.0, 0.0) == 0.0


@pytest.mark.parametrize("kernel", ["log1pexp", "sigmoid_pair"])
def test_kernels_equal_their_python_functions(kernel):
    compiled = getattr(_math, kernel)
    for s in SCORES:
        np.testing.assert_allclose(compiled(s), compiled.py_func(s), rtol=1e-15)


def test_reordered_sums_still_know_infinity():
    assert "nnan" not in _math.REORDER and "ninf" not in _math.REORDER
    assert log1p(exp(-1e3)) == _math.log1pexp(-1e3)
