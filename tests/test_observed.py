"""Observed weights of flat models: the same problem as candidates whose rows lack the other columns."""

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel import problems
from fenchel.loop import solve
from fenchel.losses import LOSSES
from fenchel.offers import REGULARISED, offered
from fenchel.solvers import SOLVERS, solver_class
from fenchel.structures.crossed import Crossed

N, A, K, C = 40, 7, 4, 2.0
MOVES_ALL = {"sm-g1", "sm-g2", "sm-q"}
TOL = {"log": 1e-6, "hinge": 1e-4}


def data(seed=5):
    """X (n, A) ≥ 0, labels and weights; the last attribute is met with one label only."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 1.5, size=(N, A)) * (rng.random((N, A)) < 0.4)
    y = rng.integers(K, size=N)
    X[:, -1] = np.where(y == 2, X[:, -1], 0.0)
    X[0] = 0.0
    return X, y, rng.uniform(0.5, 2.0, N)


def masked(loss="log", observed=True, **settings):
    X, y, weight = data()
    return problems.flat(X, y, loss=loss, observed=observed, sample_weight=weight, **{"C": C} | settings)


def as_candidates(mask, loss="log", **settings):
    """The same as candidate sets: f(x, k) = x ⊗ e_k, without the columns that have no weight."""
    X, y, weight = data()
    F = sp.kron(sp.csr_matrix(X), sp.identity(K), format="csr")[:, np.flatnonzero(mask)]
    starts = np.arange(0, N * K + 1, K)
    return problems.joint(F, y, starts, loss=loss, sample_weight=weight, **{"C": C} | settings)


def seen_pairs():
    X, y, _ = data()
    return np.array([[(X[y == k, a] > 0.0).any() for k in range(K)] for a in range(A)])


def able(loss):
    given = offered(Crossed, LOSSES[loss]) | REGULARISED
    names = [name for name in SOLVERS if solver_class(name).needs <= given]
    return [name for name in names if name not in MOVES_ALL]


def test_the_mask_is_what_the_data_show():
    assert (masked().structure.mask == seen_pairs().ravel()).all()
    assert not seen_pairs().all()
    soft = problems.flat(np.eye(2), np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]), observed=True)
    assert soft.structure.mask.tolist() == [True, True, False, False, False, True]


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("seed", [None, 3])
def test_each_solver_finds_the_optimum_of_observed_weights(loss, seed):
    mask = seen_pairs().ravel()
    if seed is not None:
        mask = np.random.default_rng(seed).random(A * K) < 0.6
    problem = masked(loss, mask)
    best = solve(as_candidates(mask, loss), "cd-dual", tol=1e-9, max_passes=100_000).certificate
    for name in able(loss):
        tol = 2e-2 if name == "sgd" else TOL[loss]
        result = solve(problem, name, tol=tol, max_passes=20_000)
        assert not result.w[~mask].any(), name
        assert all(row.primal >= row.dual for row in result.trace), name
        assert result.certificate.dual <= best.primal * (1.0 + 1e-9), name
        assert best.dual * (1.0 - 1e-9) <= result.certificate.primal, name
        assert result.certificate.primal <= best.primal * (1.0 + 1.1 * tol), name


def test_free_offsets_beside_observed_weights():
    problem = masked(fit_intercept=True)
    results = [solve(problem, name, tol=1e-8) for name in ("lbfgs", "tron", "newton", "cd-dual", "eg-gap")]
    for result in results[1:]:
        assert result.certificate.primal == pytest.approx(results[0].certificate.primal, rel=1e-7)
        np.testing.assert_allclose(result.b, results[0].b, atol=1e-3)
        assert not result.w[~problem.structure.mask].any()


@pytest.mark.parametrize("solver", ["gis", "iis", "scgis", "sm-s", "cd-primal", "lbfgs"])
def test_without_regulariser_pairs_never_seen_are_no_obstacle(solver):
    """A label that no attribute tells from others for sure: the optimum is finite."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(60), rng.integers(0, 2, 60), np.arange(60) % 3 == 0]).astype(float)
    y = rng.integers(3, size=60)
    y[(X[:, 2] == 1.0) & (y == 2)] = 0
    problem = problems.flat(X, y, C=np.inf, observed=True)
    assert not problem.structure.mask.all()
    F = sp.kron(sp.csr_matrix(X), sp.identity(3), format="csr")[:, np.flatnonzero(problem.structure.mask)]
    reference = problems.joint(F, y, np.arange(0, 181, 3), C=np.inf)
    best = solve(reference, "newton", tol=1e-9).certificate.primal
    result = solve(problem, solver, tol=1e-5, max_passes=50_000)
    assert result.certificate.primal == pytest.approx(best, rel=1e-4)
    if solver != "lbfgs":
        return
    with pytest.raises(ValueError, match="train observed weights only"):
        solve(problems.flat(X, y, C=np.inf), "gis")


@pytest.mark.parametrize("solver", sorted(MOVES_ALL))
def test_methods_that_move_all_weights_say_so(solver):
    with pytest.raises(ValueError, match=f"{solver} moves all weights; for observed ones use sm-s"):
        solve(masked(), solver)


def test_a_mask_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"observed has shape \(3,\), expected True, False or a mask"):
        masked(observed=np.ones(3, bool))
