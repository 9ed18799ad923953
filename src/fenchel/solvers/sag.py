"""Stochastic average gradient, uniform or non-uniform: Schmidt et al. (2015), the rival of lepriol2018."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fenchel import _sampling
from fenchel._cache import helper, njit
from fenchel.solvers.base import State
from fenchel.structures import base

MOST_SKIPPED = 8.0  # line searches in a row; with more, the estimates lag behind on ill-conditioned problems
LOW = 2.0**-20  # the very first estimate relative to its bound; the line search doubles it until it holds


class Memory(NamedTuple):
    """What is remembered of the examples, written by the kernels."""

    g: np.ndarray  # Σ m_i · last gradient of example i, in the layout of the weights
    marginals: np.ndarray  # of every example at its last visit
    known: np.ndarray  # (n,) 1 where the gradient is in g
    bounds: np.ndarray  # (n,) n·m_i·R_i, the most that n·m_i·loss_i curves
    lipschitz: np.ndarray  # (n,) estimates of that, 0 of examples not met yet
    tree: np.ndarray  # their sampling weights
    pauses: np.ndarray  # (n, 2) line searches left to skip, and how many were skipped last


@dataclass
class SAGState(State):
    """v the weights, the memory, and the largest Lipschitz estimate (uniform: the one for all)."""

    v: np.ndarray | None = None
    largest: float = 0.0
    memory: Memory | None = None
    rng: np.random.Generator | None = None


@dataclass(frozen=True)
class SAG:
    """Steps along the average of the gradients last seen of each example; a step costs the example.

    sampling "uniform": step size 1/(L + λ), L one estimate for all. "lipschitz" (SAG-NUS): half of the draws
    in proportion to each example's own estimate, step size the mean of 1/(max L + λ) and 1/(mean L + λ).
    An example's first own estimate is half the mean of those met before, doubled until it holds.
    From the bound R_i/4 instead, which is hundreds of times too large for sequences, steps stay short: 20
    passes over letters (OCR) came to 2.5 % of the optimum, now to 0.04 %.
    line_search "skip": where the estimate held, pause it for 1, 2, 4, 8 visits (SAG-NUS*); "every" visit.
    """

    sampling: str = "uniform"
    line_search: str = "skip"
    seed: int = 0
    needs: ClassVar[frozenset] = frozenset({"log", "blocks", "l2"})
    by_shards: ClassVar[bool] = False
    free_check: ClassVar[bool] = False

    def __post_init__(self):
        if self.sampling not in {"uniform", "lipschitz"}:
            raise ValueError(f"sampling={self.sampling!r}; there are 'uniform', 'lipschitz'")
        if self.line_search not in {"skip", "every"}:
            raise ValueError(f"line_search={self.line_search!r}; there are 'skip', 'every'")

    def init(self, problem, start):
        n = problem.n
        lipschitz, bounds = np.zeros(n), _bounds(problem.blocks)
        memory = Memory(
            g=np.zeros(problem.dim),
            marginals=np.zeros(problem.shape),
            known=np.zeros(n),
            bounds=bounds,
            lipschitz=lipschitz,
            tree=_sampling.make_tree(lipschitz, False),
            pauses=np.zeros((n, 2)),
        )
        rng = np.random.default_rng(self.seed)
        largest = 0.25 * bounds.max() if self.sampling == "uniform" else 0.0  # two labels: the bound
        return SAGState(v=problem.weights_at(start), memory=memory, rng=rng, largest=largest)

    def step(self, problem, state):
        n, memory = problem.n, state.memory
        if self.sampling == "lipschitz":  # estimates shrink too: the largest of today, not of all time
            state.largest = memory.lipschitz.max()
        # The first pass meets every example once, so that g is complete after it.
        order = state.rng.permutation(n) if state.updates == 0 else np.full(n, -1)
        visits, state.largest = _epoch(
            problem.blocks,
            self.sampling == "lipschitz",
            self.line_search == "skip",
            order,
            state.rng.random((n, 2)),
            (state.largest, memory.lipschitz.sum(), memory.known.sum()),
            memory,
            state.v,
        )
        state.passes += visits / n
        state.oracle_calls += visits
        state.updates += n
        self._estimate(problem, state)

    def _estimate(self, problem, state):
        """gap ≈ ‖g + λw‖²/(2λ): the stored gradients stand for the true one (lepriol2018 6.3)."""
        if problem.lam == 0.0:
            return
        w, g = state.v[: problem.penalised], state.memory.g[: problem.penalised]
        gap = float(np.sum((g + problem.lam * w) ** 2)) / (2.0 * problem.lam)
        value = gap + problem.regularizer.value(w)
        state.relative_gap_estimate = gap / value if value > 0.0 else 0.0

    def point(self, problem, state):
        return problem.primal_point(state.v.copy())


@njit(cache=True, nogil=True)
def _epoch(blocks, non_uniform, skip, order, uniforms, totals, memory, v):
    """n steps; memory and v written. Returns example visits, line-search trials included, and the largest L.

    v = scale·u shrinks by one multiplication, and the dense step along g is postponed for each weight until
    an example needs it: drift[k] sums the steps so far in units of u; weight j is paid up to step seen[j].
    totals: the largest Lipschitz estimate and the sum of all, and how many examples g knows.
    """
    n, d, g = blocks.mass.size, blocks.layout.n_weights, memory.g
    s, nu, scratch = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    drift, seen = np.zeros(n + 1), np.zeros(v.size, np.int64)
    largest, total, count = totals
    scale, visits = 1.0, n
    for k in range(n):
        i = order[k] if order[k] >= 0 else _pick(uniforms[k], non_uniform, memory.tree, n)
        base.block_catch_up(blocks, i, k, drift, g, seen, v)
        _pay(d, k, drift, g, seen, 1.0, v)  # what comes after the weights is part of every score
        base.block_scores(blocks, i, v, s)
        for j in range(base.block_length(blocks, i)):
            s[j] *= scale
        before, new = memory.lipschitz[i], _remember(blocks, i, s, memory, nu, scratch)
        if not non_uniform:
            memory.lipschitz[i] = largest
        elif new:
            memory.lipschitz[i] = 0.5 * total / count if count > 0.0 else LOW * memory.bounds[i]
        visits += _line_search(blocks, i, skip, non_uniform, s, nu, scratch, memory)
        count += new
        total += memory.lipschitz[i] - before
        largest = max(largest, memory.lipschitz[i]) if non_uniform else memory.lipschitz[i]
        alpha = _step_size(non_uniform, largest, total / count, blocks.lam)
        alpha = min(alpha, 0.5 / blocks.lam) if blocks.lam > 0.0 else alpha
        shrink = 1.0 - alpha * blocks.lam
        scale *= shrink
        for j in range(d, v.size):  # free of the penalty
            v[j] /= shrink
        # Until every example is known, g sums fewer of them: scale it up to the average over those.
        drift[k + 1] = drift[k] + alpha / scale * n / max(count, 1.0)
        if scale < 1e-50:
            _pay(0, k + 1, drift, g, seen, scale, v)
            scale, drift[k + 1] = 1.0, 0.0
    _pay(0, n, drift, g, seen, scale, v)
    return visits, largest


@njit(cache=True)
def _remember(blocks, i, s, memory, nu, delta):
    """Replace the gradient of example i in g by that at the scores s; memory, nu, delta written.

    Returns 1 where the example was not known before, else 0.
    """
    new, before = 1.0 - memory.known[i], base.block_view(blocks, memory.marginals, i)
    if new > 0.0:
        memory.known[i] = 1.0
        base.block_target(blocks, i, before)
    base.block_marginals(blocks, i, s, nu)
    for j in range(before.size):
        delta[j] = nu[j] - before[j]
        before[j] = nu[j]
    base.block_add(blocks, i, blocks.mass[i], delta, memory.g)
    return new


@helper(cache=True)
def _pick(uniforms, non_uniform, tree, n):
    """Half of the draws in proportion to the Lipschitz estimates, if asked for; else uniform."""
    if non_uniform and uniforms[0] < 0.5:
        return _sampling.draw(tree, uniforms[1])
    return min(int(uniforms[1] * n), n - 1)


@helper(cache=True)
def _step_size(non_uniform, largest, mean, lam):
    if non_uniform:
        return 0.5 / (largest + lam) + 0.5 / (mean + lam)
    return 1.0 / (largest + lam)


@helper(cache=True)
def _pay(start, now, drift, g, seen, scale, v):
    """Bring the entries of v from `start` on up to date and multiply the scale in; seen, v written."""
    for j in range(start, v.size):
        v[j] = scale * (v[j] - g[j] * (drift[now] - drift[seen[j]]))
        seen[j] = now


@njit(cache=True)
def _bounds(blocks):
    """n m_i R_i of each example."""
    n = blocks.mass.size
    out = np.empty(n)
    for i in range(n):
        out[i] = max(n * blocks.mass[i] * base.block_radius(blocks, i), 4e-12)
    return out


@helper(cache=True)
def _line_search(blocks, i, skip, non_uniform, s, nu, trial, memory):
    """Double the estimate L of f = n m_i loss_i until f(w − ∇f/L) ≤ f(w) − ‖∇f‖²/(2L); returns the trials.

    The trial point changes the scores of this example by a known multiple of its features, so it needs no
    pass over the weights. memory, trial written.
    """
    lipschitz, pauses = memory.lipschitz, memory.pauses
    if skip and pauses[i, 0] > 0.0:
        pauses[i, 0] -= 1.0
        return 0
    weight = blocks.mass.size * blocks.mass[i]
    m, room, residual = base.block_length(blocks, i), np.empty(blocks.size), np.empty(blocks.size)
    base.block_residual(blocks, i, nu, residual)
    base.block_move(blocks, i, 1.0, residual, s, trial)
    squared, size = 0.0, 0.0
    for j in range(m):
        squared += residual[j] * (trial[j] - s[j])
        size += abs(s[j]) * nu[j]
    value = base.block_loss(blocks, i, s, room)
    rounding = 1e-13 * (value + size)  # a decrease that is smaller is not seen
    if weight * squared <= rounding * lipschitz[i]:
        _sampling.set_weight(memory.tree, i, lipschitz[i], False)
        return 0
    lipschitz[i] *= 0.9 if non_uniform else 0.5 ** (1.0 / blocks.mass.size)
    trials = 0
    for _ in range(60):
        trials += 1
        base.block_move(blocks, i, weight / lipschitz[i], residual, s, trial)
        change = base.block_loss(blocks, i, trial, room) - value
        if change <= rounding - 0.5 * weight * squared / lipschitz[i] or lipschitz[i] >= memory.bounds[i]:
            break
        lipschitz[i] = min(2.0 * lipschitz[i], memory.bounds[i])
    pauses[i, 1] = min(max(2.0 * pauses[i, 1], 1.0), MOST_SKIPPED) if trials == 1 else 0.0
    pauses[i, 0] = pauses[i, 1]
    _sampling.set_weight(memory.tree, i, lipschitz[i], False)
    return trials
