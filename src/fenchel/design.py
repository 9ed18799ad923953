"""A_i and A_iᵀ: weights to scores, score vectors back to weights, and the layout of w.

The augmented vector v of the block kernels, for d penalised weights and one free coordinate:

    v[:d]   the weights of the features as they are given
    v[d]    b, the free offset (0 without one)
    v[d+1]  c, the sum of all changes made to v[:d], so that w = v[:d] − c·x̄
    v[d+2]  x̄ · v[:d], kept up with one multiplication a step

Centring decouples w from b: without it, alternating between them crawls. The features stay sparse.
"""

from functools import cached_property

import numpy as np

from fenchel import _sparse

TAIL = 3  # entries of the augmented vector after the d weights


class Design:
    """The linear map from weights to the scores of two-class examples: s_i = x_i · w."""

    def __init__(self, rows: _sparse.Rows, mass: np.ndarray, centred: bool):
        self.rows = rows
        self.n, self.dim = rows.shape
        self.centre = self._mean_row(mass) if centred else np.zeros(self.dim)
        self.centred = centred

    def _mean_row(self, mass):
        mean = np.zeros(self.dim)
        _sparse.add_rows(self.rows, mass, mean)
        return mean

    def scores(self, w: np.ndarray) -> np.ndarray:
        """X w, (n,)."""
        out = np.empty(self.n)
        _sparse.dot_rows(self.rows, w, out)
        return out

    def adjoint(self, r: np.ndarray) -> np.ndarray:
        """Xᵀ r, (d,)."""
        out = np.zeros(self.dim)
        _sparse.add_rows(self.rows, r, out)
        return out

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """Xᵀ diag(weights) X, (d, d): row by row where rows are sparse, by dense blocks otherwise."""
        counts = np.diff(self.rows.indptr).astype(np.float64)
        sparse_cost = 0.5 * float(counts @ counts)
        dense_cost = 0.05 * self.n * self.dim**2  # a multiplication inside BLAS, relative to one in our loop
        if sparse_cost < dense_cost:
            out = np.zeros((self.dim, self.dim))
            _sparse.weighted_gram(self.rows, weights, out)
            return out + np.triu(out, 1).T
        return self._gram_by_blocks(weights)

    def _gram_by_blocks(self, weights):
        matrix = _sparse.as_csr(self.rows)
        height = max(1, 2**22 // max(self.dim, 1))
        out = np.zeros((self.dim, self.dim))
        for start in range(0, self.n, height):
            block = matrix[start : start + height].toarray()
            out += (block.T * weights[start : start + height]) @ block
        return out

    @cached_property
    def columns(self) -> _sparse.Rows:
        """The entries of each feature, for the methods that update one weight at a time."""
        return _sparse.transpose(self.rows)

    @cached_property
    def cross(self) -> np.ndarray:
        """x_i · x̄, (n,)."""
        return self.scores(self.centre) if self.centred else np.zeros(self.n)

    @cached_property
    def norms(self) -> np.ndarray:
        """‖x_i − x̄‖², (n,)."""
        norms = _sparse.squared_norms(self.rows)
        if self.centred:
            norms = np.maximum(norms - 2.0 * self.cross + self.centre @ self.centre, 0.0)
        return norms

    def augment(self, w: np.ndarray, b: float = 0.0) -> np.ndarray:
        """The augmented vector of (w, b)."""
        v = np.zeros(self.dim + TAIL)
        v[: self.dim] = w
        v[self.dim] = b + self.centre @ w  # b multiplies features that are not centred, v[d] centred ones
        v[self.dim + 2] = self.centre @ w
        return v

    def weights(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        """(w, b) of an augmented vector."""
        w = v[: self.dim] - v[self.dim + 1] * self.centre if self.centred else v[: self.dim].copy()
        return w, float(v[self.dim] - self.centre @ w)
