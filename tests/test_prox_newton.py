"""Newton's method for weights that may be exactly zero: OWL-QN's optimum, with or without an L2 term."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from fenchel import LogisticRegression, path, problems, solve
from fenchel.choosing import plan
from fenchel.solvers.proxnewton import face
from test_sparse_dual import MADE, X, Y, best_gradient

FLAT = [name for name in MADE if not name.startswith(("chain", "graph", "trees"))]
CONSTANTS = [(0.5, 0.0), (3.0, 0.0), (0.5, 1e-3), (0.3, 2.0)]


@pytest.mark.parametrize("constants", CONSTANTS, ids=str)
@pytest.mark.parametrize("name", FLAT)
def test_it_finds_the_optimum_of_owl_qn(name, constants):
    c1, c2 = constants
    problem = MADE[name](c1=c1, c2=c2)
    best = solve(problem, "lbfgs", tol=1e-9, max_passes=50_000)
    result = solve(problem, "prox-newton", tol=1e-8, max_passes=5000)
    assert result.certificate.converged, result.certificate
    floor = best.certificate.primal
    assert floor * (1.0 - 2e-8) <= result.certificate.primal <= floor * (1.0 + 1.1e-8)
    for row in result.trace:
        assert row.primal >= row.dual and row.dual <= floor * (1.0 + 1e-9)
    u = problem.lam * best.w - best_gradient(problem, best)
    clear = np.abs(np.abs(u) - problem.l1) > 1e-2 * problem.l1
    np.testing.assert_array_equal((result.w == 0.0)[clear], (best.w == 0.0)[clear])


def text(n=300, d=2000, labels=2):
    """Sparse counts of which few columns tell the label, and one is the sum of two others."""
    rng = np.random.default_rng(5)
    A = rng.integers(1, 4, size=(n, d)) * (rng.uniform(size=(n, d)) < 0.03)
    A[:, 2] = A[:, 0] + A[:, 1]
    scores = A[:, :30] @ rng.normal(size=(30, labels)) + rng.gumbel(size=(n, labels))
    return sp.csr_matrix(A), scores.argmax(axis=1)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("C", [0.3, 100.0])
def test_more_features_than_examples_by_matrix_and_by_products(C, free, monkeypatch):
    A, y = text()
    problem = problems.binary(A, y, C=C, l1_ratio=1.0, fit_intercept=free)
    result = solve(problem, "prox-newton", tol=1e-7)
    monkeypatch.setattr("fenchel.solvers.proxnewton.model.LARGEST", 0)
    other = solve(problem, "prox-newton", tol=1e-7)
    assert result.certificate.converged and other.certificate.converged
    assert result.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-7)
    assert 0 < np.count_nonzero(result.w) < 300


def test_columns_that_add_up_to_a_constant_are_no_obstacle():
    """One-hot groups without intercept: directions along which only the penalty changes."""
    rng = np.random.default_rng(1)
    groups = [np.eye(k)[rng.integers(k, size=400)] for k in (3, 5, 7, 4)]
    A = np.hstack(groups)
    y = rng.uniform(size=400) < 1.0 / (1.0 + np.exp(-A @ rng.normal(size=A.shape[1])))
    problem = problems.binary(A, y, C=10.0, l1_ratio=1.0)
    result = solve(problem, "prox-newton", tol=1e-9, max_passes=2000)
    assert result.certificate.converged
    assert len(result.trace) < 40


def test_a_step_is_shortened_where_a_weight_would_change_its_sign():
    w, slopes, corner = np.array([1.0, 0.01]), np.array([-1.0, 5.0]), np.array([0.5, 0.5])
    matrix = np.array([[1.0, 0.9], [0.9, 1.0]])
    step = np.linalg.solve(matrix, -slopes)
    moved, curved, decrease = face.shortened(w, slopes, corner, step, matrix.__matmul__)
    assert (w + moved)[1] == 0.0 and decrease > 0.0
    np.testing.assert_allclose(curved, matrix @ moved)
    assert decrease == pytest.approx(-(slopes + 0.5 * curved) @ moved)


def test_auto_takes_it_without_an_l2_term():
    assert plan(problems.binary(X, Y > 0, l1=0.01)) == ["prox-newton"]
    assert plan(problems.flat(X, Y, l1=0.01, fit_intercept=True)) == ["prox-newton"]
    assert plan(problems.binary(X, Y > 0, l1=0.01, lam=0.1))[0][0] == "cd-dual"


def test_a_path_may_go_along_either_constant():
    problem = problems.binary(X, Y > 0, fit_intercept=True)
    for constants in ({"C": [0.1, 1.0], "l1_ratio": 0.5}, {"c1": [0.5, 2.0], "c2": 0.1}, {"l1": [0.1, 0.01]}):
        fits = path(problem, tol=1e-6, **constants)
        assert [fit.l1 for fit in fits] == sorted((fit.l1 for fit in fits), reverse=True)
        for fit in fits:
            ((name, _),) = [item for item in constants.items() if isinstance(item[1], list)]
            alone = problems.binary(X, Y > 0, fit_intercept=True, **constants | {name: fit.constant})
            assert (fit.lam, fit.l1) == (alone.lam, alone.l1)
            primal = solve(alone, "lbfgs", tol=1e-7, max_passes=5000).certificate.primal
            assert fit.result.certificate.primal == pytest.approx(primal, rel=2e-6)
    with pytest.raises(ValueError, match="exactly one kind of constant"):
        path(problem, C=[1.0], c2=[1.0])
    with pytest.raises(ValueError, match="l1_ratio=2 must be between 0 and 1"):
        path(problem, C=[1.0], l1_ratio=2.0)


def test_sparsify_and_densify_are_those_of_scikit_learn(tmp_path):
    from fenchel import load

    model = LogisticRegression(C=0.1, l1_ratio=1.0).fit(X, Y)
    coef, scores = model.coef_, model.decision_function(X)
    assert model.sparsify() is model and sp.issparse(model.coef_) and model.coef_.nnz < coef.size
    np.testing.assert_allclose(model.decision_function(X), scores)
    np.testing.assert_allclose(model.decision_function(sp.csr_matrix(X)), scores)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").coef_, coef)
    assert model.densify() is model
    np.testing.assert_array_equal(model.coef_, coef)


@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
def test_few_weights_of_several_classes_converge_at_any_constant(C):
    """By conjugate gradients alone a thousand passes were not enough at C = 100, 8 % above the optimum."""
    model = LogisticRegression(C=C, l1_ratio=1.0).fit(*load_iris(return_X_y=True))
    assert model.certificate_.converged and model.certificate_.relative_gap <= 1e-3


def test_a_face_on_which_every_weight_becomes_zero_is_left():
    """Nothing is then left for a Newton step to solve."""
    w, corner, matrix = np.array([0.1, -0.2]), np.ones(2), np.eye(2)
    found = face.Face(w, np.zeros(2), corner, np.ones(2), matrix.__matmul__)
    step, decrease = found.by_matrix(matrix)
    np.testing.assert_allclose(w + step, 0.0, atol=1e-15)
    assert decrease == pytest.approx(0.3 - 0.5 * (0.1**2 + 0.2**2), rel=1e-12)
