"""Everybody's constant: our optimum minimises the objective as the other tool writes it."""

from math import inf, nan

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from brute import Dense
from fenchel import problems
from fenchel.constants import CONSTANTS, penalty
from fenchel.loop import solve
from matrix import base

# name: (value, objective of that tool in terms of the losses, their weights and w)
OBJECTIVES = {
    "C": (2.0, lambda c, loss, v, w: c * v @ loss + 0.5 * w @ w),
    "sigma2": (30.0, lambda c, loss, v, w: v / v.sum() @ loss + w @ w / (2.0 * c)),
    "collins_C": (0.3, lambda c, loss, v, w: v @ loss + c / 2.0 * w @ w),
    "lam": (0.01, lambda c, loss, v, w: v / v.sum() @ loss + c / 2.0 * w @ w),
    "alpha": (0.02, lambda c, loss, v, w: v / v.sum() @ loss + c / 2.0 * w @ w),
    "c2": (0.2, lambda c, loss, v, w: v @ loss + c * w @ w),
    "crfpp_C": (4.0, lambda c, loss, v, w: v @ loss + w @ w / (2.0 * c)),
    "rho2": (0.5, lambda c, loss, v, w: v @ loss + c / 2.0 * w @ w),
}


def test_every_constant_has_a_test():
    assert OBJECTIVES.keys() == CONSTANTS.keys()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_our_optimum_minimises_the_objective_of_the_other_tool(name, weighted):
    value, objective = OBJECTIVES[name]
    X, y = base("dense")
    rng = np.random.default_rng(0)
    v = rng.integers(1, 4, size=len(y)).astype(float) if weighted else np.ones(len(y))
    problem = problems.binary(X, y, sample_weight=v if weighted else None, **{name: value})
    w = solve(problem, "newton", tol=1e-13).w
    dense = Dense(X, y, 0.0)

    def theirs(w):
        return objective(value, dense.losses(X @ w), v, w)

    # A quadratic in the perturbation: with the wrong constant the slope along w would be negative somewhere.
    for direction in [w, -w, *np.eye(len(w)), *-np.eye(len(w)), *rng.normal(size=(5, len(w)))]:
        assert theirs(w + 1e-3 * direction) > theirs(w)
    step = 1e-4
    slope = [(theirs(w + step * e) - theirs(w - step * e)) / (2 * step) for e in np.eye(len(w))]
    np.testing.assert_allclose(slope, 0.0, atol=1e-7 * max(1.0, theirs(np.zeros_like(w))))


def test_C_is_that_of_scikit_learn():
    X, y = base("dense")
    model = LogisticRegression(C=2.0, fit_intercept=False, solver="newton-cholesky", tol=1e-12).fit(X, y)
    w = solve(problems.binary(X, y, C=2.0), "newton", tol=1e-13).w
    np.testing.assert_allclose(w, model.coef_[0], atol=1e-6)


@pytest.mark.parametrize("name", ["C", "sigma2", "crfpp_C"])
def test_infinity_means_no_regulariser_and_zero_is_refused(name):
    assert penalty(10.0, **{name: inf}) == 0.0
    for value in (0.0, -1.0):
        with pytest.raises(ValueError, match=rf"{name}=.*must be positive"):
            penalty(10.0, **{name: value})


@pytest.mark.parametrize("name", ["collins_C", "lam", "alpha", "c2", "rho2"])
def test_zero_means_no_regulariser_and_infinity_is_refused(name):
    assert penalty(10.0, **{name: 0.0}) == 0.0
    for value in (inf, -1.0):
        with pytest.raises(ValueError, match=rf"{name}=.*at least 0"):
            penalty(10.0, **{name: value})


def test_errors_name_the_offender():
    with pytest.raises(ValueError, match="exactly one constant is needed, got none"):
        penalty(10.0)
    with pytest.raises(ValueError, match=r"exactly one constant is needed, got \['C', 'lam'\]"):
        penalty(10.0, C=1.0, lam=1.0)
    with pytest.raises(ValueError, match="unknown constant 'D'; there are C, sigma2"):
        penalty(10.0, D=1.0)
    with pytest.raises(ValueError, match="C='a lot' is not a number"):
        penalty(10.0, C="a lot")
    with pytest.raises(ValueError, match="C is NaN"):
        penalty(10.0, C=nan)


def test_one_is_the_default_of_C():
    X, y = base("dense")
    assert problems.binary(X, y).lam == problems.binary(X, y, C=1.0).lam == 1.0 / len(y)


def test_sample_weights_scale_C_but_not_the_mean_based_constants():
    X, y = base("dense")
    v = np.full(len(y), 3.0)
    assert problems.binary(X, y, C=1.0, sample_weight=v).lam == pytest.approx(1.0 / (3.0 * len(y)))
    assert problems.binary(X, y, lam=0.1, sample_weight=v).lam == 0.1
