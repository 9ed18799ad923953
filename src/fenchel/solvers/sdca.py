"""Stochastic dual coordinate ascent with adaptive sampling: lepriol2018 Algorithms 1 and 2.

With the hinge loss the same step is block-coordinate Frank-Wolfe, whose line search has a closed form. Where
outcomes are listed it moves mass from the weakest one only, if that gains more (pairwise Frank-Wolfe).
"""

from dataclasses import dataclass
from enum import IntEnum
from math import sqrt
from typing import ClassVar

import numpy as np

from fenchel import _sampling
from fenchel._cache import helper, njit
from fenchel._math import TINY
from fenchel._sparse import inner
from fenchel.certificates import joined
from fenchel.losses import block_gap, oracle
from fenchel.solvers.dual import RENEWAL, DualSolver, DualState
from fenchel.structures import base

BORDER = 0.01  # no line search begins nearer to 0 or 1, where the entropy may have infinite slope
FIRST_GAP = 100.0  # so that nearly all examples are visited once before gaps decide (footnote 5)


class Sampling(IntEnum):
    """How the next example is chosen."""

    UNIFORM = 0
    IMPORTANCE = 1
    GAP = 2
    GAP_IMPORTANCE = 3
    MAX = 4
    RESIDUAL = 5


class Step(IntEnum):
    """How far to go along the ascent direction."""

    NEWTON = 0
    ONE_NEWTON = 1
    FIXED = 2


SAMPLINGS = {kind.name.lower().replace("_", "-"): kind for kind in Sampling}
STEPS = {kind.name.lower().replace("_", "-"): kind for kind in Step}


@dataclass
class SDCAState(DualState):
    """gaps (n,): the last known block gaps; tree: their sampling weights; smoothness (n,): λ + m_i R_i.

    begins (n,): γ that the next line search of an example begins with.
    mean: with the hinge loss, the average of μ over passes, later ones weighing more.
    """

    mean: np.ndarray | None = None
    known: float = 0.0  # Σ m_i gap_i after the last pass
    newtons: int = 0  # iterations of all line searches

    gaps: np.ndarray | None = None
    tree: np.ndarray | None = None
    smoothness: np.ndarray | None = None
    begins: np.ndarray | None = None


@dataclass(frozen=True)
class SDCA(DualSolver):
    """Moves one block towards the marginals at the current weights, as far as an exact line search says.

    sampling: "gap" in proportion to the last known m_i·gap_i; "uniform"; "importance" to λ + m_i R_i;
        "gap-importance" to their product; "max" the largest known gap; "residual" by (49).
    non_uniform: the fraction of draws that follow `sampling`, the rest being uniform.
    step_size: "newton" to relative `precision`; "one-newton"; "fixed", 1/(1 + max m_i R_i/λ).
    absolute: whether `precision` is that of γ itself, as in 6.2, and not relative to it.
    begin: γ where a line search begins: "middle", ½; "last", where the example's last one ended (footnote 4).
    first: ε of the first point (1 − ε)·truth + ε·uniform, (21).
    renew: epochs after which all gaps are computed anew, a pass; None: only visits do, as in the paper.
    """

    sampling: str = "gap"
    non_uniform: float = 0.8
    step_size: str = "newton"
    precision: float = 1e-3
    absolute: bool = False
    begin: str = "middle"
    first: float = 1e-3
    renew: int | None = RENEWAL
    seed: int = 0
    needs: ClassVar[frozenset] = frozenset({"blocks", "dual", "entropy"})

    def __post_init__(self):
        if self.sampling not in SAMPLINGS:
            raise ValueError(f"sampling={self.sampling!r}; there are {', '.join(map(repr, SAMPLINGS))}")
        if self.step_size not in STEPS:
            raise ValueError(f"step_size={self.step_size!r}; there are {', '.join(map(repr, STEPS))}")
        if self.begin not in {"middle", "last"}:
            raise ValueError(f"begin={self.begin!r} must be 'middle' or 'last'")
        for name in ("non_uniform", "precision", "first"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name}={getattr(self, name)!r} must be between 0 and 1")
        if self.renew is not None and not (isinstance(self.renew, int) and self.renew > 0):
            raise ValueError(f"renew={self.renew!r} must be a whole number of epochs, at least 1, or None")

    def copies(self, problem) -> int:
        return 3 if problem.loss.hinge else 2

    def init(self, problem, start):
        if self.sampling == "residual" and not problem.structure.listed:
            raise ValueError(
                "sampling='residual' needs outputs that can be listed, which sequences are not; use 'gap'"
            )
        problem = problem.entropic
        self.reserve(problem)
        epsilon = 0.0 if problem.loss.hinge else self.first
        mu = self.first_mu(problem, start, problem.near_target(epsilon))
        centre = self.first_centre(problem, start)
        state = SDCAState(mu=mu, v=problem.proximal_weights(mu, centre), centre=centre)
        state.rng = np.random.default_rng(self.seed)
        state.gaps = np.full(problem.n, FIRST_GAP)
        state.begins = np.full(problem.n, 0.5)
        state.smoothness = _smoothness(problem.blocks)
        state.tree = _sampling.make_tree(self._first_weights(problem, state), self.sampling == "max")
        return state

    def _first_weights(self, problem, state):
        """Sampling weights as if every block gap, or distance, were FIRST_GAP."""
        if self.sampling in {"uniform", "importance"}:
            return state.smoothness
        weights = FIRST_GAP * problem.examples.mass
        if self.sampling == "gap-importance":
            weights *= state.smoothness
        if self.sampling == "residual":
            weights *= np.sqrt(state.smoothness / problem.lam)
        return weights

    def point(self, problem, state):
        problem = problem.entropic
        last = super().point(problem, state)
        return last if state.mean is None else joined(last, problem.dual_point(state.mean))

    def step(self, problem, state):
        problem, n = problem.entropic, problem.n
        given = (
            int(SAMPLINGS[self.sampling]),  # Numba looks an enumeration up anew at each call: 0.3 ms
            self.non_uniform,
            int(STEPS[self.step_size]),
            (self.precision, self.absolute, self.begin == "last"),
            problem.lam / state.smoothness.max(),
            state.smoothness,
            state.mu,
            state.gaps,
            state.begins,
            state.tree,
            state.v,
        )
        for uniforms in self._draws(problem, state):
            state.newtons += _epoch(problem.loss, problem.dual_blocks, uniforms, *given)
        state.passes += 1.0
        state.oracle_calls += n
        state.updates += n
        self._average(problem, state)
        self.recentre(problem, state)
        self.refresh(problem, state)
        renewed = self.renew is not None and state.epochs % self.renew == 0
        if renewed:
            self._renew_gaps(problem, state, problem.scores(problem.read(state.v)))
            state.passes += 1.0
        self.note_gap(problem, state, self._estimate(problem, state, renewed))

    def _draws(self, problem, state):
        """Random numbers (steps, 2) for `_epoch`; of examples on disk those that draw what is in memory.

        There all examples of the pass are drawn before it, by the weights they have then, and visited some
        shards at a time. The largest weight is another after every step: it is looked for everywhere.
        """
        uniforms, n = state.rng.random((problem.n, 2)), problem.n
        if problem.examples.disk is None or self.sampling == "max":
            yield uniforms
            return
        order = (uniforms[:, 1] * n).astype(np.int64)
        if self.sampling != "uniform" and state.tree[1] > 0.0:
            adaptive = uniforms[:, 0] < self.non_uniform
            order[adaptive] = _sampling.draw_many(state.tree, n, uniforms[adaptive, 1])
        for some in problem.examples.visits(order):
            yield np.column_stack([np.full(some.size, 2.0), (some + 0.5) / n])  # none of them adaptive

    def _estimate(self, problem, state, fresh):
        """Σ m_i gap_i as last seen. Gaps are half a pass old on average, and shrink from pass to pass by what
        their sum did: without that factor it was 2 to 3 times the true gap on CoNLL-2000, with it 1.2 to 1.7.
        """
        mass = problem.examples.mass * (state.gaps != FIRST_GAP)  # of examples visited
        before, state.known = state.known, inner(mass, state.gaps) / max(mass.sum(), TINY)
        shrunk = state.known / before if 0.0 < state.known < before and not fresh else 1.0
        return state.known * sqrt(shrunk)

    def _average(self, problem, state):
        """Weights 2/(t + 2) for pass t, as of block Frank-Wolfe: its last point goes back and forth."""
        if not problem.loss.hinge:
            return
        if state.mean is None:
            state.mean = state.mu.copy()
        state.mean += 2.0 / (state.epochs + 2.0) * (state.mu - state.mean)

    def _renew_gaps(self, problem, state, scores):
        """All block gaps at the scores: many epochs leave those known stale."""
        state.gaps = problem.block_gaps(state.mu, scores)
        weights = problem.examples.mass * state.gaps
        if self.sampling == "gap-importance":
            weights *= state.smoothness
        if self.sampling in {"gap", "gap-importance", "max"}:
            state.tree = _sampling.make_tree(weights, self.sampling == "max")


@njit(cache=True)
def _smoothness(blocks):
    """λ + m_i R_i of every example."""
    out = np.empty(blocks.mass.size)
    for i in range(out.size):
        out[i] = blocks.lam + blocks.mass[i] * base.block_radius(blocks, i)
    return out


@njit(cache=True, nogil=True)
def _epoch(
    loss,
    blocks,
    uniforms,
    sampling,
    non_uniform,
    step,
    precision,
    fixed,
    smoothness,
    mu,
    gaps,
    begins,
    tree,
    v,
):
    """As many steps as `uniforms` has rows. Returns search iterations; mu, gaps, begins, tree, v written.

    precision: the number, whether it is absolute, whether a search begins where the example's last one ended.
    """
    s, nu, delta = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    newtons = 0
    for k in range(uniforms.shape[0]):
        i = _pick(uniforms[k, 0], uniforms[k, 1], sampling, non_uniform, tree, gaps.size)
        mu_i = base.block_view(blocks, mu, i)
        gap, slope = _direction(loss, blocks, i, v, mu_i, s, nu, delta)
        rate = blocks.mass[i] / blocks.lam
        curvature = rate * base.block_squared_norm(blocks, i, delta)
        if loss.hinge:
            gamma = _hinge_step(blocks, i, mu_i, s, nu, slope, curvature, delta)
        elif step == Step.FIXED:
            gamma = fixed
        else:
            gamma, count = _line_search(blocks, i, mu_i, delta, slope, curvature, step, precision, begins)
            newtons += count
        gaps[i] = gap
        if sampling >= Sampling.GAP:
            weight = _weight(sampling, blocks.mass[i], gap, delta[: mu_i.size], smoothness[i], blocks.lam)
            _sampling.set_weight(tree, i, weight, sampling == Sampling.MAX)
        if gamma > 0.0:
            for j in range(mu_i.size):
                mu_i[j] += gamma * delta[j]
            base.block_add(blocks, i, -rate * gamma, delta, v)
    return newtons


@njit(cache=True)
def _hinge_step(blocks, i, mu, s, nu, slope, curvature, delta):
    """The best γ along δ = ν − μ, or along ν − the weakest outcome if that gains more; nu, delta written."""
    gamma, gain = _best_step(slope, curvature, 1.0)
    away = base.block_weakest(blocks, i, s, mu)
    if away < 0 or nu[away] > 0.0:
        return gamma
    top = 0.0
    for j in range(mu.size):
        top += s[j] * nu[j]
    nu[away] -= 1.0
    rate = blocks.mass[i] / blocks.lam
    pair_gamma, pair_gain = _best_step(top - s[away], rate * base.block_squared_norm(blocks, i, nu), mu[away])
    if pair_gain <= gain:
        return gamma
    for j in range(mu.size):
        delta[j] = nu[j]
    return pair_gamma


@helper(cache=True)
def _best_step(slope, curvature, most):
    """argmax over 0 ≤ γ ≤ most of γ·slope − γ²/2·curvature, and the maximum."""
    if slope <= 0.0:
        return 0.0, 0.0
    gamma = slope / curvature if slope < curvature * most else most
    return gamma, gamma * (slope - 0.5 * gamma * curvature)


@helper(cache=True)
def _pick(choice, u, sampling, non_uniform, tree, n):
    """The next example: adaptive with probability non_uniform, else uniform."""
    if sampling == Sampling.UNIFORM or choice >= non_uniform or tree[1] <= 0.0:
        return min(int(u * n), n - 1)
    if sampling == Sampling.MAX:
        return _sampling.find_largest(tree)
    return _sampling.draw(tree, u)


@helper(cache=True)
def _weight(sampling, mass, gap, delta, smoothness, lam):
    """The sampling weight of an example just visited."""
    if sampling == Sampling.GAP_IMPORTANCE:
        return mass * gap * smoothness
    if sampling == Sampling.RESIDUAL:
        distance = 0.0
        for j in range(delta.size):
            distance += abs(delta[j])
        return mass * distance * sqrt(smoothness / lam)
    return mass * gap


@njit(cache=True)
def _direction(loss, blocks, i, v, mu, s, nu, delta):
    """δ = ν − μ with ν the oracle's answer at w; s, nu, delta written. Returns gap and ⟨s + cost, δ⟩."""
    base.block_scores(blocks, i, v, s)
    value = oracle(loss, blocks, i, s, nu)
    slope = 0.0
    for j in range(mu.size):
        delta[j] = nu[j] - mu[j]
        slope += s[j] * delta[j]
    return block_gap(loss, blocks, i, s, nu, mu, value, np.nan), slope


@helper(cache=True)
def _line_search(blocks, i, mu, delta, slope, curvature, step, precision, begins):
    """argmax over γ ∈ [0, 1] of H(μ + γδ) + γ·slope − γ²/2·curvature, (20), by Newton in a bracket.

    Returns it and the iterations made; precision as in `_epoch`, begins written if it is to be remembered.
    """
    count, (enough, absolute, remembered) = 0, precision
    low, high, gamma = 0.0, 1.0, begins[i]
    for _ in range(1 if step == Step.ONE_NEWTON else 50):
        count += 1
        first, second = base.block_entropy_slopes(blocks, i, mu, delta, gamma)
        first += slope - gamma * curvature
        second -= curvature
        if first > 0.0:
            low = gamma
        else:
            high = gamma
        new = gamma - first / second if second < 0.0 else 0.5 * (low + high)
        if not low <= new <= high:
            new = 0.5 * (low + high)
        moved = abs(new - gamma)
        gamma = new
        if moved <= (enough if absolute else enough * gamma):
            break
    if remembered:
        begins[i] = min(max(gamma, BORDER), 1.0 - BORDER)
    return gamma, count
