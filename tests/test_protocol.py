"""The protocol of structures is enough: one of a hundred lines goes through every solver that it allows."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from choosing_m import ChooseM
from fenchel._sparse import as_rows
from fenchel.data import weighted_examples
from fenchel.loop import solve
from fenchel.losses import LOSSES
from fenchel.offers import REGULARISED, offered
from fenchel.problem import Problem
from fenchel.regularizers import L2
from fenchel.solvers import SOLVERS, solver_class
from fenchel.structures import base

N, A, K, M, LAM = 20, 6, 5, 2, 0.05
TOL = {"log": 1e-5, "hinge": 1e-3}  # what methods without a rate on the hinge loss reach in a test
SUBSETS = np.array([[k in chosen for k in range(K)] for chosen in combinations(range(K), M)], float)


def made(loss="log", seed=3):
    """A problem, and the same as arrays: X (n, A), Y (n, K), masses."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, A)) * (rng.random((N, A)) < 0.7)
    scores = X @ rng.normal(size=(A, K)) + rng.normal(size=(N, K))
    Y = np.zeros((N, K))
    np.put_along_axis(Y, np.argsort(-scores, axis=1)[:, :M], 1.0, axis=1)
    weight = rng.uniform(0.5, 2.0, N)
    examples, _ = weighted_examples(as_rows(sp.csr_matrix(X)), as_rows(sp.csr_matrix(Y)), weight, None)
    problem = Problem(examples, ChooseM(K, M), LOSSES[loss], L2(LAM))
    return problem, X, Y, examples.mass


def objective(w, X, Y, mass, loss):
    """P by enumeration."""
    S = X @ w.reshape(A, K)
    truth = (S * Y).sum(axis=1)
    if loss == "log":
        values = np.logaddexp.reduce(S @ SUBSETS.T, axis=1)
    else:
        values = ((S + 1.0 - Y) @ SUBSETS.T).max(axis=1)
    return mass @ (values - truth) + 0.5 * LAM * w @ w


def able(loss):
    given = offered(ChooseM(K, M), LOSSES[loss]) | REGULARISED
    return [name for name in SOLVERS if solver_class(name).needs <= given]


def test_oracles_agree_with_enumeration():
    problem, X, Y, mass = made()
    rng = np.random.default_rng(0)
    for scale in (0.1, 3.0, 300.0):
        w = scale * rng.normal(size=problem.dim)
        S = X @ w.reshape(A, K)
        logs = S @ SUBSETS.T
        q = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
        np.testing.assert_allclose(problem.marginals(S), q @ SUBSETS, atol=1e-11)
        assert problem.value_at(w)[0] == pytest.approx(objective(w, X, Y, mass, "log"), rel=1e-12)
        mu = np.empty(K)
        for i in range(N):
            assert base.block_argmax(problem.blocks, i, S[i], mu) == pytest.approx(logs[i].max())
            np.testing.assert_array_equal(mu, SUBSETS[logs[i].argmax()])


def test_gradient_and_hessian_agree_with_differences():
    problem, X, Y, mass = made()
    rng = np.random.default_rng(1)
    w, d, h = rng.normal(size=problem.dim), rng.normal(size=problem.dim), 1e-5
    there, back = (problem.evaluate(w + sign * h * d) for sign in (1.0, -1.0))
    now = problem.evaluate(w)
    slope = (objective(w + h * d, X, Y, mass, "log") - objective(w - h * d, X, Y, mass, "log")) / (2 * h)
    assert now.gradient @ d == pytest.approx(slope, rel=1e-7)
    bend = (there.gradient - back.gradient) / (2 * h)
    np.testing.assert_allclose(problem.hessian_product(now, d), bend, rtol=1e-6, atol=1e-8)


def test_a_dozen_solvers_are_able():
    assert {"lbfgs", "tron", "eg", "eg-gap", "sgd", "sag", "sag-nus"} <= set(able("log"))
    assert {"eg", "sdca", "sgd", "cutting-plane", "cd-outputs"} <= set(able("hinge"))
    assert "sdca" not in able("log")


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_each_solver_finds_the_optimum(loss):
    problem, X, Y, mass = made(loss)
    best = lowest(loss, X, Y, mass)
    for name in able(loss):
        tol = TOL[loss] if name != "sgd" else 1e-2
        result = solve(problem, name, tol=tol, max_passes=20_000)
        point = result.certificate
        assert all(row.primal >= row.dual for row in result.trace.rows), name
        assert point.dual <= best * (1.0 + 1e-9), name
        value = objective(result.w, X, Y, mass, loss)
        assert value == pytest.approx(point.primal, rel=1e-9), name
        assert value <= best * (1.0 + 1.01 * tol), name


def lowest(loss, X, Y, mass):
    """min P by enumeration; with the hinge loss a quadratic program with a constraint for each subset."""
    if loss == "log":
        start = np.zeros(A * K)
        return minimize(objective, start, (X, Y, mass, loss), method="BFGS", options={"gtol": 1e-9}).fun
    costs = (1.0 - Y) @ SUBSETS.T
    features = np.einsum("na,nsk->nsak", X, SUBSETS[None] - Y[:, None]).reshape(N, -1, A * K)
    slacks = np.repeat(np.eye(N)[:, None], len(SUBSETS), axis=1)
    matrix = np.concatenate([-features, slacks], axis=2).reshape(-1, A * K + N)
    result = minimize(
        lambda z: mass @ z[A * K :] + 0.5 * LAM * z[: A * K] @ z[: A * K],
        np.concatenate([np.zeros(A * K), costs.max(axis=1)]),
        jac=lambda z: np.concatenate([LAM * z[: A * K], mass]),
        constraints={"type": "ineq", "fun": lambda z: matrix @ z - costs.ravel(), "jac": lambda z: matrix},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    assert result.success
    return result.fun


def test_a_solver_that_needs_the_entropy_is_refused_by_name():
    problem, *_ = made()
    with pytest.raises(ValueError, match=r"'sdca'.*do not tell the entropy.*use .*eg"):
        solve(problem, "sdca")
