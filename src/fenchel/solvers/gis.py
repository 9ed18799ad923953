"""Generalised iterative scaling: huang2010 section 2.2, (25), (27)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel import _sparse
from fenchel._cache import njit
from fenchel._math import solve_exponential
from fenchel.solvers.base import BatchSolver, evaluate


@dataclass(frozen=True)
class GIS(BatchSolver):
    """Updates all weights at once, each by the minimum of its own surrogate.

        A_t(z) = Q_t(z) + (e^{z f#} − 1)/f# · E_t,    Q_t(z) = λ(2 w_t z + z²)/2 − z P̃(f_t)

    with E_t = Σ p̃(x) p(y|x) f_t(x, y) and f# the largest sum of an output's features. Features must not be
    negative. Without a regulariser the minimum has the closed form (25).
    """

    needs: ClassVar[frozenset] = frozenset({"log", "gradient", "columns"})

    def init(self, problem, start):
        require_nonnegative(problem, "gis")
        require_seen(problem, "gis")
        return super().init(problem, start)

    def step(self, problem, state):
        now = state.evaluation
        w = scaled_update(problem, now, largest_row_sum(problem))
        state.evaluation = evaluate(problem, state, w)
        state.updates += problem.dim
        state.stalled = bool(np.array_equal(w, now.w))


def largest_row_sum(problem) -> float:
    """f# = max over x, y of Σ_t f_t(x, y)."""
    return problem.design.largest_row_sum + problem.design.constant or 1.0


def row_sums(problem) -> np.ndarray:
    """Σ_t f_t(x, y) of every row, the constant feature of a free offset included."""
    return _sparse.row_sums(problem.design.rows) + problem.design.constant


def scaled_update(problem, evaluation, rate) -> np.ndarray:
    """w + z with every z_t the minimum of A_t for f# = rate."""
    w, own = evaluation.w.copy(), slice(problem.penalised)
    expected = evaluation.gradient + problem.empirical
    expected[own] -= problem.lam * w[own]
    _update_all(w[own], expected, problem.empirical, rate, problem.lam)
    free = slice(problem.penalised, None)
    _update_all(w[free], expected[free], problem.empirical[free], rate, 0.0)
    return w


@njit(cache=True)
def _update_all(w, expected, empirical, rate, lam):
    for t in range(w.size):
        if expected[t] > 0.0 or lam > 0.0:
            w[t] += solve_exponential(empirical[t] - lam * w[t], max(expected[t], 0.0), rate, lam)


def require_nonnegative(problem, name: str) -> None:
    """Iterative scaling bounds e^{z f} by Jensen's inequality, which needs f ≥ 0: huang2010 (5)."""
    rows = problem.examples.rows
    least = float(rows.data.min()) if rows.nnz else problem.design.least_entry
    if least >= 0.0:
        return
    raise ValueError(
        f"{name} needs features ≥ 0, but {_negative(rows, least)}; shift that column (x − min x), "
        f"or use newton, lbfgs, cd-primal or cd-dual"
    )


def _negative(rows, least: float) -> str:
    """Where the first one is; of examples that are elsewhere, how small it gets."""
    if not rows.nnz:
        return f"there is {least:g}"
    matrix = _sparse.as_csr(rows).tocoo()
    entry = int(np.argmax(matrix.data < 0.0))
    return f"row {matrix.row[entry]}, column {matrix.col[entry]} holds {matrix.data[entry]:g}"


def require_seen(problem, name: str) -> None:
    """Without a regulariser a feature that no true output has sends its weight to −∞ in (25), (12)."""
    if problem.lam > 0.0:
        return
    design, examples = problem.design, problem.examples
    used = np.repeat(design.transposed(examples.mass[problem.columns.owner]), design.outputs)
    unseen = (problem.empirical[: problem.penalised] <= 0.0) & (used > 0.0)
    if problem.structure.mask is not None:
        unseen &= problem.structure.mask
    unseen = np.flatnonzero(unseen)
    if unseen.size:
        column, output = divmod(int(unseen[0]), design.outputs)
        whom = f"the label {output}" if design.matrix else "the class 1"
        if examples.starts is not None:
            whom = "a true candidate"
        raise ValueError(
            f"{name} without a regulariser has no optimum: feature {column} never occurs with {whom}, "
            f"so its weight goes to −∞; set a finite C, drop the feature, or train observed weights only"
        )
