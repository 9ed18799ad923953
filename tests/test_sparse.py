"""Rows of any matrix: what users hand in, and the kernels that walk along them."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from fenchel import LogisticRegression, _sparse
from fenchel._prefetch import prefetch_row
from fenchel.design import Design
from fenchel.structures.layouts.candidates import row_product

DENSE = np.array([[0.0, 1.5, 0.0, -2.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.5, 4.0], [0.0, 0.0, 1.0, 0.0]])


def duplicates():
    """COO entries that meet in one cell."""
    row, column, data = sp.coo_matrix(DENSE).row, sp.coo_matrix(DENSE).col, sp.coo_matrix(DENSE).data
    return sp.coo_matrix((np.tile(data / 2, 2), (np.tile(row, 2), np.tile(column, 2))), shape=DENSE.shape)


def unsorted_with_duplicates():
    """A CSR matrix whose columns decrease within a row, with one cell in two parts."""
    indptr, indices = [0, 2, 2, 6, 7], [3, 1, 3, 2, 0, 3, 2]
    return sp.csr_matrix(([-2.0, 1.5, 1.0, 0.5, 3.0, 3.0, 1.0], indices, indptr), shape=DENSE.shape)


def wide_indices():
    X = sp.csr_matrix(DENSE)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def read_only(X):
    for part in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
        part.flags.writeable = False
    return X


INPUTS = {
    "list": lambda: DENSE.tolist(),
    "dense": lambda: DENSE,
    "fortran": lambda: np.asfortranarray(DENSE),
    "strided": lambda: np.repeat(DENSE, 2, axis=1)[:, ::2],
    "float32": lambda: DENSE.astype(np.float32),
    "csr": lambda: sp.csr_matrix(DENSE),
    "csr-array": lambda: sp.csr_array(DENSE),
    "csc": lambda: sp.csc_matrix(DENSE),
    "coo": lambda: sp.coo_matrix(DENSE),
    "coo-duplicates": duplicates,
    "csr-unsorted-duplicates": unsorted_with_duplicates,
    "csr-float32": lambda: sp.csr_matrix(DENSE.astype(np.float32)),
    "csr-int64-indices": wide_indices,
    "read-only-dense": lambda: read_only(DENSE.copy()),
    "read-only-csr": lambda: read_only(sp.csr_matrix(DENSE)),
}


@pytest.fixture(params=INPUTS)
def rows(request):
    return _sparse.as_rows(INPUTS[request.param]())


def test_any_matrix_becomes_the_same_rows(rows):
    expected = _sparse.as_rows(DENSE)
    assert rows.shape == DENSE.shape and rows.nnz == 6
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(expected, name))
        assert getattr(rows, name).dtype == getattr(expected, name).dtype
        assert getattr(rows, name).flags.c_contiguous
    np.testing.assert_array_equal(_sparse.as_csr(rows).toarray(), DENSE)


def test_a_large_dense_matrix_becomes_the_rows_of_its_parts():
    """Small ones are taken apart by NumPy, large ones by a kernel."""
    tall = np.tile(DENSE, (200, 1))
    assert DENSE.size <= _sparse.SMALL < tall.size
    made = _sparse.as_rows(tall)
    np.testing.assert_array_equal(_sparse.as_csr(made).toarray(), tall)
    assert all(a.dtype == b.dtype for a, b in zip(made[:3], _sparse.as_rows(DENSE)[:3], strict=True))


def test_bounds_of_columns(rows):
    low, high = _sparse.column_bounds(rows)
    np.testing.assert_array_equal(low, [3.0, 1.5, 0.5, -2.0])
    np.testing.assert_array_equal(high, [3.0, 1.5, 1.0, 4.0])
    nothing = _sparse.as_rows(np.zeros((2, 1)))
    assert tuple(map(float, np.ravel(_sparse.column_bounds(nothing)))) == (np.inf, -np.inf)
    table = _sparse.Table(DENSE.reshape(-1), 4, 4)
    np.testing.assert_array_equal(_sparse.column_bounds(table), [DENSE.min(axis=0), DENSE.max(axis=0)])


def test_the_users_matrix_is_left_alone():
    X = unsorted_with_duplicates()
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    _sparse.as_rows(X)
    for old, new in zip(before, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(old, new)


def test_integers_and_truth_values_are_numbers():
    X = DENSE.astype(int)
    np.testing.assert_array_equal(_sparse.as_csr(_sparse.as_rows(X)).toarray(), X)
    np.testing.assert_array_equal(_sparse.as_csr(_sparse.as_rows(sp.csr_matrix(X))).toarray(), X)
    np.testing.assert_array_equal(_sparse.as_csr(_sparse.as_rows(sp.csr_matrix(X != 0))).toarray(), X != 0)


def test_a_matrix_with_too_many_columns_is_refused():
    with pytest.raises(ValueError, match="3000000000 columns"):
        _sparse.as_rows(sp.csr_matrix((1, 3_000_000_000)))


def test_transpose_and_take(rows):
    np.testing.assert_array_equal(_sparse.as_csr(_sparse.transpose(rows)).toarray(), DENSE.T)
    kept = _sparse.take(rows, np.array([3, 0]))
    np.testing.assert_array_equal(_sparse.as_csr(kept).toarray(), DENSE[[3, 0]])
    kept = _sparse.take(rows, np.array([True, False, True, False]))
    np.testing.assert_array_equal(_sparse.as_csr(kept).toarray(), DENSE[[0, 2]])


def test_row_kernels_against_dense_arithmetic(rows):
    w, r = np.array([1.0, -2.0, 0.5, 3.0]), np.array([0.5, 2.0, -1.0, 0.0])
    out = np.empty(4)
    _sparse.dot_rows(rows, 0, 4, w, out)
    np.testing.assert_allclose(out, DENSE @ w, rtol=1e-15)
    assert _sparse.row_dot(rows, 2, w) == pytest.approx(DENSE[2] @ w)
    moved = w.copy()
    _sparse.row_add(rows, 2, -0.5, moved)
    np.testing.assert_allclose(moved, w - 0.5 * DENSE[2])
    moved = w.copy()
    _sparse.add_rows(rows, 0, 4, r, moved)
    np.testing.assert_allclose(moved, w + DENSE.T @ r)
    np.testing.assert_allclose(_sparse.squared_norms(rows), (DENSE**2).sum(axis=1))
    np.testing.assert_allclose(_sparse.row_sums(rows), DENSE.sum(axis=1))


def test_matrix_kernels_against_dense_arithmetic(rows):
    """W and the sums over outcomes as one array, row by row."""
    W, R = np.arange(8.0).reshape(4, 2) - 3.0, np.array([[0.5, 1.0], [2.0, 3.0], [-1.0, 0.0], [0.0, 4.0]])
    out = np.full((4, 2), 7.0)
    _sparse.dot_rows_matrix(rows, 0, 3, W.ravel(), out)
    np.testing.assert_allclose(out, np.vstack([DENSE[:3] @ W, [[7.0, 7.0]]]), rtol=1e-15)
    moved = W.copy()
    _sparse.add_rows_matrix(rows, 1, 4, R, moved.reshape(-1))
    np.testing.assert_allclose(moved, W + DENSE[1:].T @ R[1:])
    products = [[row_product(rows, i, j) for j in range(4)] for i in range(4)]
    np.testing.assert_allclose(products, DENSE @ DENSE.T, rtol=1e-15)


def test_kernels_equal_their_python_functions():
    rows = _sparse.as_rows(DENSE)
    # NumPy's unsigned scalars do not index a range; plain integers stand in for them.
    plain = rows._replace(indptr=rows.indptr.view(np.int64), indices=rows.indices.view(np.int32))
    w = np.array([1.0, -2.0, 0.5, 3.0])
    assert _sparse.row_dot(rows, 0, w) == _sparse.row_dot.py_func(plain, 0, w)
    one, other = w.copy(), w.copy()
    _sparse.row_add(rows, 2, 0.3, one)
    _sparse.row_add.py_func(plain, 2, 0.3, other)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(_sparse.row_sums(rows), _sparse.row_sums.py_func(plain))
    np.testing.assert_allclose(_sparse.squared_norms(rows), _sparse.squared_norms.py_func(plain), rtol=1e-15)


@pytest.mark.parametrize("density", [0.05, 1.0])
def test_the_gram_matrix_is_the_same_both_ways(density):
    X = sp.random(40, 30, density=density, format="csr", random_state=np.random.default_rng(0))
    weights = np.random.default_rng(1).uniform(size=40)
    design = Design(_sparse.as_rows(X), None)
    expected = X.toarray().T @ (weights[:, None] * X.toarray())
    np.testing.assert_allclose(design._gram_by_rows(weights, 1.0), expected, atol=1e-14)
    np.testing.assert_allclose(design._gram_by_blocks(weights), expected, atol=1e-14)
    backwards = design.rows._replace(indices=29 - design.rows.indices)
    unordered = Design(backwards, None)._gram_by_rows(weights, 1.0)
    np.testing.assert_allclose(unordered[::-1, ::-1], expected, atol=1e-14)
    np.testing.assert_allclose(design.gram(weights), expected, atol=1e-14)


def test_a_part_of_the_rows_is_only_that_part():
    rows = _sparse.as_rows(DENSE)
    w, out = np.array([1.0, -2.0, 0.5, 3.0]), np.full(4, 7.0)
    _sparse.dot_rows(rows, 1, 3, w, out)
    np.testing.assert_allclose(out, [7.0, 0.0, DENSE[2] @ w, 7.0])
    moved = np.zeros(4)
    _sparse.add_rows(rows, 2, 4, np.ones(4), moved)
    np.testing.assert_allclose(moved, DENSE[2] + DENSE[3])


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    """Large sums are split in a fixed number of parts, whoever adds them up."""
    monkeypatch.setattr("fenchel._threads.LARGE", 1)
    X = sp.random(101, 30, density=0.2, format="csr", random_state=np.random.default_rng(3))
    rng = np.random.default_rng(4)
    w, r = rng.normal(size=30), rng.uniform(size=101)
    one, two = (Design(_sparse.as_rows(X), None, threads=k) for k in (1, 2))
    np.testing.assert_array_equal(one.scores(w), two.scores(w))
    np.testing.assert_array_equal(one.adjoint(r), two.adjoint(r))
    np.testing.assert_array_equal(one.gram(r), two.gram(r))
    np.testing.assert_allclose(two.scores(w), X @ w, atol=1e-13)
    np.testing.assert_allclose(two.adjoint(r), X.T @ r, atol=1e-13)
    np.testing.assert_allclose(two.gram(r), (X.T @ sp.diags(r) @ X).toarray(), atol=1e-13)


def test_the_number_of_threads_changes_no_bit_of_several_outputs(monkeypatch):
    monkeypatch.setattr("fenchel._threads.LARGE", 1)
    X = sp.random(101, 30, density=0.2, format="csr", random_state=np.random.default_rng(3))
    rng = np.random.default_rng(5)
    W, R = rng.normal(size=(30, 4)), rng.uniform(size=(101, 4))
    one, two = (Design(_sparse.as_rows(X), 4, threads=k) for k in (1, 2))
    np.testing.assert_array_equal(one.scores(W.ravel()), two.scores(W.ravel()))
    np.testing.assert_array_equal(one.adjoint(R), two.adjoint(R))
    np.testing.assert_allclose(two.scores(W.ravel()), X @ W, atol=1e-13)
    np.testing.assert_allclose(two.adjoint(R), (X.T @ R).ravel(), atol=1e-13)
    np.testing.assert_allclose(two.transposed(R[:, 0]), X.T @ R[:, 0], atol=1e-13)


@njit
def touch_all(rows):
    for i in range(rows.indptr.size - 1):
        prefetch_row(rows, i)


def test_prefetching_changes_nothing():
    X = sp.random(50, 200, density=0.3, format="csr", random_state=np.random.default_rng(2))
    rows = _sparse.as_rows(X)
    before = [np.copy(part) for part in rows[:3]]
    touch_all(rows)
    touch_all(_sparse.as_rows(np.zeros((3, 0))))
    for old, new in zip(before, rows[:3], strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("shape", [(1, 1), (3, 0), (2, 5)])
def test_an_empty_matrix_has_empty_rows(shape):
    rows = _sparse.as_rows(np.zeros(shape))
    assert rows.shape == shape and rows.nnz == 0
    out = np.ones(shape[0])
    _sparse.dot_rows(rows, 0, shape[0], np.ones(shape[1]), out)
    np.testing.assert_array_equal(out, np.zeros(shape[0]))


def shuffled(X, rng):
    """The same matrix, the entries of each row in any order."""
    order = np.concatenate([rng.permutation(np.arange(a, b)) for a, b in pairwise(X.indptr)])
    return sp.csr_matrix((X.data[order], X.indices[order], X.indptr), X.shape)


def test_rows_in_any_order_are_shared_and_give_the_same_model():
    rng = np.random.default_rng(0)
    X = sp.random(60, 12, 0.4, "csr", rng=rng)
    other, y = shuffled(X, rng), rng.integers(3, size=60)
    assert not other.has_sorted_indices and np.shares_memory(_sparse.as_features(other).data, other.data)
    for solver in ("cd-dual", "newton", "tron", "gis"):
        same = [
            LogisticRegression(solver=solver, tol=1e-10, max_iter=20_000).fit(each, y) for each in (X, other)
        ]
        np.testing.assert_allclose(same[0].coef_, same[1].coef_, atol=1e-5)
    assert not other.has_sorted_indices  # it is the user's


def test_entries_that_occur_twice_are_added_up_in_any_order():
    X = unsorted_with_duplicates()
    np.testing.assert_array_equal(_sparse.as_csr(_sparse.as_features(X)).toarray(), X.toarray())
