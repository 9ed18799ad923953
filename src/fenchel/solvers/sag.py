"""Stochastic average gradient, uniform or non-uniform: Schmidt et al. (2015), the rival of lepriol2018."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from fenchel import _sampling
from fenchel.design import TAIL
from fenchel.solvers.base import State
from fenchel.structures import base

MOST_SKIPPED = 8.0  # line searches in a row; with more, the estimates lag behind on ill-conditioned problems


@dataclass
class SAGState(State):
    """The last gradient of each example as marginals (n, size), their sum g, and Lipschitz estimates.

    lipschitz (n,) of n·m_i·loss_i; tree: their sampling weights; pauses (n, 2): line searches left to skip
    and how many to skip next; known (n,): examples whose gradient is in g.
    """

    v: np.ndarray | None = None
    g: np.ndarray | None = None
    memory: np.ndarray | None = None
    known: np.ndarray | None = None
    lipschitz: np.ndarray | None = None
    tree: np.ndarray | None = None
    pauses: np.ndarray | None = None
    rng: np.random.Generator | None = None


@dataclass(frozen=True)
class SAG:
    """Steps along the average of the gradients last seen of each example; a step costs the example.

    sampling "uniform": step size 1/(L + λ), L one estimate for all. "lipschitz" (SAG-NUS): half of the draws
    in proportion to each example's own estimate, step size the mean of 1/(max L + λ) and 1/(mean L + λ).
    line_search "skip": where the estimate held, pause it for 1, 2, 4, 8 visits (SAG-NUS*); "every" visit.
    """

    sampling: str = "uniform"
    line_search: str = "skip"
    seed: int = 0
    needs: ClassVar[frozenset] = frozenset({"log", "blocks", "dual"})
    free_check: ClassVar[bool] = False

    def __post_init__(self):
        if self.sampling not in {"uniform", "lipschitz"}:
            raise ValueError(f"sampling={self.sampling!r}; there are 'uniform', 'lipschitz'")
        if self.line_search not in {"skip", "every"}:
            raise ValueError(f"line_search={self.line_search!r}; there are 'skip', 'every'")

    def init(self, problem, start):
        w, b = (start.w, start.b) if start else (np.zeros(problem.dim), 0.0)
        if start is None and problem.free:
            b = problem.offset(np.zeros(problem.n))
        n, size = problem.n, problem.structure.block_size
        lipschitz = _first_lipschitz(problem.blocks)
        return SAGState(
            v=problem.design.augment(w, b),
            g=np.zeros(problem.dim + TAIL),
            memory=np.zeros((n, size)),
            known=np.zeros(n),
            lipschitz=lipschitz,
            tree=_sampling.make_tree(lipschitz, False),
            pauses=np.zeros((n, 2)),
            rng=np.random.default_rng(self.seed),
        )

    def step(self, problem, state):
        n = problem.n
        order = state.rng.permutation(n) if state.updates == 0 else np.full(n, -1)
        trials = _epoch(
            problem.blocks,
            self.sampling == "lipschitz",
            self.line_search == "skip",
            order,
            state.rng.random((n, 2)),
            state.lipschitz.max(),
            state.lipschitz.mean(),
            state.known.sum(),
            state.v,
            state.g,
            state.memory,
            state.known,
            state.lipschitz,
            state.tree,
            state.pauses,
        )
        state.passes += trials / n
        state.oracle_calls += trials
        state.updates += n
        self._estimate(problem, state)

    def _estimate(self, problem, state):
        """gap ≈ ‖g + λw‖²/(2λ): the stored gradients stand for the true one (lepriol2018 6.3)."""
        w, _ = problem.design.weights(state.v)
        g = state.g[: problem.dim] - state.g[problem.dim + 1] * problem.design.centre
        gap = float(np.sum((g + problem.lam * w) ** 2)) / (2.0 * problem.lam)
        value = gap + problem.regularizer.value(w)
        state.relative_gap_estimate = gap / value if value > 0.0 else 0.0

    def point(self, problem, state):
        return problem.primal_point(problem.design.weights(state.v)[0])


@njit(cache=True, nogil=True)
def _epoch(blocks, non_uniform, skip, order, uniforms, largest, mean, count, v, g, memory, known, lipschitz, tree, pauses):
    """n steps; all arrays from v on written. Returns the example visits, line-search trials included.

    v = scale·u shrinks by one multiplication, and the dense step along g is postponed for each weight until
    an example needs it: drift[k] sums the steps so far in units of u; weight j is paid up to step seen[j].
    """
    n, d, free = blocks.mass.size, blocks.n_weights, blocks.n_free
    s, nu, delta = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    drift, seen = np.zeros(n + 1), np.zeros(v.size, np.int64)
    scale, visits = 1.0, 0
    for k in range(n):
        i = order[k] if order[k] >= 0 else _pick(uniforms[k], non_uniform, tree, n)
        base.block_catch_up(blocks, i, k, drift, g, seen, v)
        _pay_tail(d, free, k, drift, g, seen, v)
        base.block_scores(blocks, i, v, s)
        for j in range(blocks.size):
            s[j] *= scale
        base.block_marginals(blocks, i, s, nu)
        visits += 1
        if known[i] == 0.0:
            known[i] = 1.0
            count += 1.0
            base.block_target(blocks, i, memory[i])
        for j in range(blocks.size):
            delta[j] = nu[j] - memory[i, j]
            memory[i, j] = nu[j]
        base.block_add(blocks, i, blocks.mass[i], delta, g)
        base.block_add_free(blocks, i, blocks.mass[i], delta, g)
        before = lipschitz[i]
        if not non_uniform:
            lipschitz[i] = largest
        visits += _line_search(blocks, i, skip, non_uniform, s, nu, delta, lipschitz, pauses)
        mean += (lipschitz[i] - before) / n
        largest = max(largest, lipschitz[i]) if non_uniform else lipschitz[i]
        _sampling.set_weight(tree, i, lipschitz[i], False)
        alpha = min(_step_size(non_uniform, largest, mean, blocks.lam), 0.5 / blocks.lam)
        shrink = 1.0 - alpha * blocks.lam
        scale *= shrink
        for j in range(d, d + free):
            v[j] /= shrink
        # Until every example is known, g sums fewer of them: scale it up to the average over those.
        drift[k + 1] = drift[k] + alpha / scale * n / max(count, 1.0)
        if scale < 1e-50:
            _pay_all(k + 1, drift, g, seen, scale, v)
            scale = 1.0
            drift[k + 1] = 0.0
    _pay_all(n, drift, g, seen, scale, v)
    return visits


@njit(cache=True)
def _pick(uniforms, non_uniform, tree, n):
    """Half of the draws in proportion to the Lipschitz estimates, if asked for; else uniform."""
    if non_uniform and uniforms[0] < 0.5:
        return _sampling.draw(tree, uniforms[1])
    return min(int(uniforms[1] * n), n - 1)


@njit(cache=True)
def _step_size(non_uniform, largest, mean, lam):
    if non_uniform:
        return 0.5 / (largest + lam) + 0.5 / (mean + lam)
    return 1.0 / (largest + lam)


@njit(cache=True)
def _pay_tail(d, free, now, drift, g, seen, v):
    """Bring the entries after the weights up to date; they are part of every score."""
    for j in range(d, v.size):
        v[j] -= g[j] * (drift[now] - drift[seen[j]])
        seen[j] = now


@njit(cache=True)
def _pay_all(now, drift, g, seen, scale, v):
    """Bring every weight up to date and multiply the scale in."""
    for j in range(v.size):
        v[j] = scale * (v[j] - g[j] * (drift[now] - drift[seen[j]]))
        seen[j] = now


@njit(cache=True)
def _first_lipschitz(blocks):
    """n m_i R_i/4, the smoothness of the logistic loss along the features; the line search corrects it."""
    n = blocks.mass.size
    out = np.empty(n)
    for i in range(n):
        radius = base.block_radius(blocks, i) + blocks.n_free
        out[i] = max(0.25 * n * blocks.mass[i] * radius, 1e-12)
    return out


@njit(cache=True)
def _line_search(blocks, i, skip, non_uniform, s, nu, trial, lipschitz, pauses):
    """Double the estimate L of f = n m_i loss_i until f(w − ∇f/L) ≤ f(w) − ‖∇f‖²/(2L); returns the trials.

    The trial point changes the scores of this example by a known multiple of its features, so it needs no
    pass over the weights. lipschitz, pauses written; nu, trial are scratch.
    """
    if skip and pauses[i, 0] > 0.0:
        pauses[i, 0] -= 1.0
        return 0
    weight = blocks.mass.size * blocks.mass[i]
    y, residual = np.empty(blocks.size), np.empty(blocks.size)
    base.block_target(blocks, i, y)
    for j in range(blocks.size):
        residual[j] = nu[j] - y[j]
    base.block_move(blocks, i, 1.0, residual, s, trial)
    squared = 0.0
    for j in range(blocks.size):
        squared += residual[j] * (trial[j] - s[j])
    value = base.block_kl(blocks, i, y, s)  # the loss less the constant entropy of y, in full precision
    if weight * squared <= 1e-13 * value * lipschitz[i]:
        return 0
    lipschitz[i] *= 0.9 if non_uniform else 0.5 ** (1.0 / blocks.mass.size)
    trials = 0
    for _ in range(60):
        trials += 1
        base.block_move(blocks, i, -weight / lipschitz[i], residual, s, trial)
        if base.block_kl(blocks, i, y, trial) - value <= -0.5 * weight * squared / lipschitz[i]:
            break
        lipschitz[i] *= 2.0
    pauses[i, 1] = min(max(2.0 * pauses[i, 1], 1.0), MOST_SKIPPED) if trials == 1 else 0.0
    pauses[i, 0] = pauses[i, 1]
    return trials
