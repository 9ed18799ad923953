"""Matrices that are factorised: their digits, their memory, and the threads they may use."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg.lapack import dpotrf
from threadpoolctl import threadpool_info, threadpool_limits

from fenchel import matrices, problems, solve
from fenchel.matrices import matrix_bytes, solve_positive
from fenchel.trace import Status
from matrix import base

RNG = np.random.default_rng


def test_solve_positive_keeps_its_digits_on_bad_scales():
    rng = RNG(14)
    A = rng.normal(size=(30, 6))
    scale = 10.0 ** np.arange(-9.0, 9.0, 3.0)
    matrix, x = (A.T @ A) * np.outer(scale, scale), rng.normal(size=6) / scale
    np.testing.assert_allclose(solve_positive(matrix, matrix @ x), x, rtol=1e-9)


def test_solve_positive_of_a_singular_matrix_is_a_solution():
    A = RNG(15).normal(size=(3, 6))
    matrix = A.T @ A
    matrix[:, 2] = matrix[2, :] = 0.0
    rhs = matrix @ np.ones(6)
    np.testing.assert_allclose(matrix @ solve_positive(matrix, rhs), rhs, atol=1e-10)


def test_matrices_that_cannot_fit_are_refused_with_their_size(monkeypatch):
    monkeypatch.setattr("fenchel._memory.available_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match=r"a 10 × 10 matrix needs .* use a solver without one: lbfgs"):
        problems.binary(*base("dense")).quadratic(np.ones(48))


@pytest.mark.parametrize("solver", ["newton", "sm-q", "sm-g1"])
@pytest.mark.parametrize("limit, threads", [(8 * 11**2, 1), (8 * 11**2 + 1, 2)])
def test_a_large_matrix_is_factorised_by_one_thread(monkeypatch, solver, limit, threads):
    """From 2 GiB on LAPACK's threads crash; here the limit is lowered to a matrix of 11 rows."""
    seen = []

    def spy(matrix, **options):
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return dpotrf(matrix, **options)

    monkeypatch.setattr(matrices, "dpotrf", spy)
    monkeypatch.setattr(matrices, "ONE_CORE", limit)
    problem = problems.binary(*base("dense"), fit_intercept=True)
    with threadpool_limits(2, "blas"):
        result = solve(problem, solver, tol=1e-8)
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {2}
    assert set(seen) == {threads}
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("density", [0.1, 1.0])
def test_a_matrix_takes_no_more_memory_than_is_asked_for(density):
    """By rows in four parts, or by dense blocks; then the factorisation."""
    X = sp.random(3000, 700, density=density, format="csr", random_state=0)
    problem = problems.binary(X, np.arange(3000) % 2, fit_intercept=True)
    now = problem.evaluate(np.zeros(problem.dim))
    problem.marginals_at(now)
    assert (np.diff(problem.design.gram_work)[0] > 0.0) == (density < 1.0)
    blocks = 0 if density < 1.0 else 2 * 8 * 2**22  # of 32 MiB each, whatever the size of the matrix
    tracemalloc.start()
    solve_positive(problem.hessian(now), now.gradient)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= matrix_bytes(problem.dim) + blocks
