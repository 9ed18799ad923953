"""A path of constants: each to its own certificate, warm from the one before, the best by validation."""

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel import path, problems, solve, solvers
from fenchel.trace import Status

RNG = np.random.default_rng(0)
X = np.abs(RNG.normal(size=(80, 6)))
Y = (X @ RNG.normal(size=(6, 3)) + RNG.normal(size=(80, 3))).argmax(axis=1)
HELD, HELD_Y = X[60:], Y[60:]
VALUES = [0.01, 10.0, 0.1, 1.0]


def flat(**options):
    return problems.flat(X[:60], Y[:60], labels=3, **options)


def accuracy(w, b):
    return float(np.mean((HELD @ w.reshape(6, 3) + b).argmax(axis=1) == HELD_Y))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("solver", ["cd-dual", "eg", "sdca", "lbfgs", "newton", "cd-primal"])
def test_every_fit_of_a_path_is_certified_and_near_the_optimum_of_its_own_constant(solver, free):
    result = path(flat(fit_intercept=free), solver, C=VALUES, tol=1e-4, max_passes=1e4)
    assert [fit.constant for fit in result] == sorted(VALUES)
    for fit in result:
        alone = solve(flat(fit_intercept=free, C=fit.constant), "newton", tol=1e-10)
        certificate = fit.result.certificate
        assert certificate.converged and certificate.relative_gap <= 1e-4
        assert certificate.dual <= alone.certificate.primal * (1 + 1e-12)
        assert certificate.primal <= alone.certificate.primal * (1 + 1.1e-4)


def test_the_dual_kept_between_constants_saves_passes():
    values = 0.7 ** np.arange(12) * 100.0
    together = path(flat(), solvers.EG(), collins_C=values, check_every=1.0)
    apart = sum(
        solve(flat(collins_C=c), solvers.EG(), check_every=1.0).certificate.passes for c in sorted(values)
    )
    assert together.passes < 0.7 * apart
    assert [fit.constant for fit in together] == sorted(values, reverse=True)


def test_the_hinge_loss_and_candidates_have_paths_too():
    F, starts = np.repeat(np.eye(3)[None], 20, axis=0).reshape(60, 3), np.arange(0, 61, 3)
    y = RNG.integers(3, size=20)
    for result in (
        path(flat(loss="hinge"), "cd-dual", C=[0.1, 1.0], tol=1e-3),
        path(problems.joint(F, y, starts), "cd-dual", C=[0.1, 1.0], tol=1e-3),
        path(problems.binary(X[:60], Y[:60] == 0), "cd-dual", C=[0.1, 1.0], tol=1e-3),
    ):
        assert all(fit.result.certificate.converged for fit in result)


def test_the_best_constant_is_that_of_the_highest_score_and_the_stronger_of_two_equals():
    result = path(flat(), "newton", C=VALUES, validate=accuracy)
    scores = [fit.score for fit in result]
    assert result.best is result[int(np.argmax(scores))]
    constant = path(flat(), "newton", C=VALUES, validate=lambda w, b: 0.5)
    assert constant.best.constant == min(VALUES)
    assert path(flat(), "newton", C=VALUES).best is None


def test_an_interrupted_path_keeps_what_it_has():
    seen = []

    def interrupt(trace):
        seen.append(trace)
        if len(seen) > 3:
            raise KeyboardInterrupt

    result = path(flat(), "lbfgs", C=VALUES, tol=1e-9, callbacks=[interrupt])
    assert 1 <= len(result) < len(VALUES)
    assert result[-1].result.status is Status.INTERRUPTED


def test_auto_is_chosen_anew_for_each_constant():
    """Without a regulariser there is no dual: what was right for the first constant is not for the last."""
    sparse = sp.random(60, 500, density=0.02, random_state=0, format="csr")
    result = path(problems.flat(sparse, Y[:60], labels=3), C=[0.1, np.inf], max_passes=20)
    assert [fit.result.trace.solver for fit in result] == ["cd-dual", "tron"]
    with pytest.raises(ValueError, match="no dual"):
        path(flat(), "cd-dual", C=[0.1, np.inf], after_fit=lambda fit: pytest.fail("a fit was made"))


def test_a_path_without_a_constant_or_with_two_is_refused():
    with pytest.raises(ValueError, match="no sequence"):
        path(flat(), "newton", C=1.0)
    with pytest.raises(ValueError, match="exactly one kind of constant"):
        path(flat(), "newton")
    with pytest.raises(ValueError, match="exactly one kind of constant"):
        path(flat(), "newton", C=[1.0], lam=[1.0])
    with pytest.raises(ValueError, match="no values"):
        path(flat(), "newton", C=[])
    with pytest.raises(ValueError, match="must be positive"):
        path(flat(), "newton", C=[-1.0])


def test_a_path_goes_on_from_duals_that_fit_the_next_constant():
    """With the same μ and a tenth of λ, w(μ) would be ten times as large: it is led towards the targets."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(300, 400)) * (rng.random((300, 400)) < 0.1), rng.integers(0, 3, 300)
    constants = [1.0, 10.0, 100.0, 1000.0]
    fits = path(problems.flat(X, y, fit_intercept=True), C=constants, tol=1e-4).fits
    for fit, C in zip(fits, constants, strict=True):
        alone = solve(problems.flat(X, y, C=C, fit_intercept=True), tol=1e-4)
        assert fit.result.certificate.relative_gap <= 1e-4
        assert fit.result.certificate.primal == pytest.approx(alone.certificate.primal, rel=2e-4)
        assert fit.result.certificate.passes <= 1.5 * alone.certificate.passes + 2
