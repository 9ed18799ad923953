"""A_i and A_iᵀ: weights to scores, score vectors back to weights, and the layout of w.

The augmented vector v of the block kernels, for d penalised weights and one free coordinate:

    v[:d]   the weights of the features as they are given
    v[d]    b, the free offset (0 without one)
    v[d+1]  c, the sum of all changes made to v[:d], so that w = v[:d] − c·x̄
    v[d+2]  x̄ · v[:d], kept up with one multiplication a step

Centring decouples w from b: without it, alternating between them crawls. The features stay sparse.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from itertools import pairwise

import numpy as np

from fenchel import _sparse

TAIL = 3  # entries of the augmented vector after the d weights
PARTS = 4  # a large sum over rows is always split in this many, so that no number of threads changes its bits
IN_BLAS = 0.1  # time of a multiplication inside BLAS relative to one in our loop, about 1 ns
LARGE = 400_000  # multiplications from which splitting pays


class Design:
    """The linear map from weights to the scores of two-class examples: s_i = x_i · w."""

    def __init__(self, rows: _sparse.Rows, mass: np.ndarray, centred: bool, threads: int | None = None):
        self.rows = rows
        self.n, self.dim = rows.shape
        self.threads = thread_count(threads)
        self.centred = centred
        self.centre = self.adjoint(mass) if centred else np.zeros(self.dim)

    def _for_each_part(self, work: float, task) -> list:
        """[task(start, stop) for each part of the rows], by threads; one part where the work is small.

        The calling thread takes its share: handing all of it over would cost it a wait.
        """
        cuts = np.linspace(0, self.n, PARTS + 1 if work >= LARGE else 2).astype(np.int64)
        parts = list(pairwise(cuts))
        helpers = min(self.threads, len(parts)) - 1
        if helpers == 0:
            return [task(*part) for part in parts]

        def share(first):
            return {k: task(*parts[k]) for k in range(first, len(parts), helpers + 1)}

        others = [thread_pool(helpers).submit(share, first) for first in range(1, helpers + 1)]
        done = share(0)
        for other in others:
            done |= other.result()
        return [done[k] for k in range(len(parts))]

    def scores(self, w: np.ndarray) -> np.ndarray:
        """X w, (n,)."""
        out = np.empty(self.n)
        self._for_each_part(
            self.rows.nnz, lambda start, stop: _sparse.dot_rows(self.rows, start, stop, w, out)
        )
        return out

    def adjoint(self, r: np.ndarray) -> np.ndarray:
        """Xᵀ r, (d,)."""

        def part(start, stop):
            out = np.zeros(self.dim)
            _sparse.add_rows(self.rows, start, stop, r, out)
            return out

        return sum(self._for_each_part(self.rows.nnz, part))

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """Xᵀ diag(weights) X, (d, d): row by row where rows are sparse, by dense blocks otherwise."""
        by_rows, by_blocks = self._gram_work
        if by_rows <= by_blocks:
            return self._gram_by_rows(weights, by_rows)
        return self._gram_by_blocks(weights)

    @cached_property
    def _gram_work(self):
        """Work of the Gram matrix by sparse rows and by dense blocks, in multiplications of our own loop."""
        counts = np.diff(self.rows.indptr).astype(np.float64)
        return 0.5 * float(counts @ counts), IN_BLAS * self.n * self.dim**2

    @property
    def matrix_seconds(self) -> float:
        """About what a Gram matrix and its factorisation take, in seconds."""
        return 1e-9 * (min(self._gram_work) + IN_BLAS * self.dim**3)

    def _gram_by_rows(self, weights, work):
        def part(start, stop):
            out = np.zeros((self.dim, self.dim))
            _sparse.weighted_gram(self.rows, start, stop, weights, out)
            return out

        upper = sum(self._for_each_part(work, part))
        return upper + np.triu(upper, 1).T

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
            norms = np.maximum(norms - 2.0 * self.cross + self.centre_norm, 0.0)
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
        if not self.centred:
            return v[: self.dim].copy(), float(v[self.dim])
        w = v[: self.dim] - v[self.dim + 1] * self.centre
        return w, float(v[self.dim] - self.centre @ w)

    def squared_norm(self, v: np.ndarray) -> float:
        """‖w‖² of an augmented vector, without making w."""
        d, c = self.dim, v[self.dim + 1]
        return _sparse.sum_of_squares(v[:d]) - 2.0 * c * v[d + 2] + c * c * self.centre_norm

    @cached_property
    def centre_norm(self) -> float:
        """‖x̄‖²."""
        return _sparse.sum_of_squares(self.centre)


@cache
def thread_pool(threads: int) -> ThreadPoolExecutor:
    """Threads kept for the next pass: starting them costs as much as a small one."""
    return ThreadPoolExecutor(threads)


# A forked child has none of its parent's threads, and would wait for them forever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=thread_pool.cache_clear)


def thread_count(threads: int | None) -> int:
    """scikit-learn's n_jobs as a number of threads: None is all cores, −1 too, −2 all but one."""
    cores = os.process_cpu_count() if hasattr(os, "process_cpu_count") else len(os.sched_getaffinity(0))
    if threads is None:
        return cores
    threads = int(threads)
    if threads == 0:
        raise ValueError("n_jobs=0 has no meaning; use None, a positive number, or −1 for all cores")
    return threads if threads > 0 else max(1, cores + 1 + threads)
