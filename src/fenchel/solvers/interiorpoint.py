"""The interior point method for the hinge loss of listed outputs: Mehrotra 1992, Ferris and Munson 2002.

The optimum has λw = Σ m_i A_iᵀ(y_i − μ_i), each μ_i ≥ 0 with sum one, and for each example a ν_i with

    z_i = ν_i − cost_i − A_i w ≥ 0   and   μ_ik z_ik = 0.

Newton's method on these equations, with μ_ik z_ik = τ > 0 instead of 0: all stay positive, and the gap is
Σ m_i ⟨μ_i, z_i⟩ = Σ m_i K_i τ as τ falls. What example i changes by is known once Δw is: with d = μ/z, t the
sum of d, π = d/t, and r the change that the products μz are to make,

    Δμ_i = ρ_i + t_i (diag π_i − π_i π_iᵀ) A_i Δw,   ρ = r/z − π Σ r/z,
    (λI + Σ m_i t_i A_iᵀ (diag π_i − π_i π_iᵀ) A_i) Δw = −(λw − Σ m_i A_iᵀ(y_i − μ_i)) − Σ m_i A_iᵀ ρ_i :

the matrix is that of Newton's method for the log loss, at marginals π and masses m t.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from fenchel.certificates import joined
from fenchel.matrices import Scaled
from fenchel.solvers.dual import DualSolver, DualState

FIRST = 2.0  # ν: products μz then differ by a factor of two, and no w comes close to a border
SHORT = 0.99  # of the way to the border that a step goes
CORRECTORS = 2  # at most, of an iteration
NARROW, WIDE = 0.1, 10.0  # products that correctors leave alone, and the most they ask for, in τ
LEAST = 1e-16, 1e-8  # mean product, and length of a step: less is rounding
WORTH = 0.01  # longer steps that a corrector must bring to be worth another


class Move(NamedTuple):
    """A direction."""

    w: np.ndarray  # (dim,)
    mu: np.ndarray
    z: np.ndarray

    def plus(self, other):
        return Move(self.w + other.w, self.mu + other.mu, self.z + other.z)


@dataclass
class InteriorState(DualState):
    """mu and the weights v, with the slacks z, of the shape of mu; truth: y of that shape."""

    z: np.ndarray | None = None
    truth: np.ndarray | None = None


@dataclass(frozen=True)
class InteriorPoint(DualSolver):
    """Newton steps towards points where all products μz are equal, ever smaller; a matrix each.

    Seven to twenty iterations, whatever C and the scales of features: for few weights, however many examples.
    Correctors after Mehrotra (second order, limited to WIDE times the mean product) and Gondzio 1996
    (products far from the mean are drawn to it) make steps longer: one product out of millions can end one.
    """

    needs: ClassVar[frozenset] = frozenset({"hinge", "matrix", "dual"})
    by_shards: ClassVar[bool] = False

    def copies(self, problem) -> float:
        return 16

    def init(self, problem, start):
        self.reserve(problem)
        truth = problem.near_target(0.0)
        even = problem.near_target(1.0)
        return InteriorState(mu=even, v=np.zeros(problem.dim), z=FIRST - 1.0 + truth, truth=truth)

    def step(self, problem, state):
        try:
            equations = Equations(problem, state)
        except LinAlgError:
            state.stalled = True
            return
        move, length = self._direction(equations, state)
        length = min(1.0, SHORT * length)
        mu = state.mu + length * move.mu
        mu /= equations.lists.total(mu)
        if not (np.isfinite(mu).all() and np.isfinite(move.w).all()):
            state.stalled = True
            return
        state.mu, state.z, state.v = mu, state.z + length * move.z, state.v + length * move.w
        state.passes += equations.solved
        state.oracle_calls += problem.n * equations.solved
        state.updates += problem.n
        self._note(problem, state, equations, length)

    def _direction(self, equations, state):
        """The direction, and how far it goes to the border."""
        products = state.mu * state.z
        affine = equations.solve(-products)
        reach = _reach(state, affine)
        left = equations.mean((state.mu + reach * affine.mu) * (state.z + reach * affine.z))
        mean = equations.mean(products)
        tau = mean * max(left / mean, 1.0 - reach) ** 3
        second = np.clip(affine.mu * affine.z, -WIDE * mean, WIDE * mean)
        move = equations.solve(tau - products - second)
        reach = _reach(state, move)
        for _ in range(CORRECTORS):
            more = move.plus(equations.solve(_drawn(state, move, reach, tau), centring=True))
            longer = _reach(state, more)
            if longer < reach + WORTH:
                break
            move, reach = more, longer
        return move, reach

    def point(self, problem, state):
        """P at the weights themselves: scores at w(μ) are off by what rounding takes from μ, over λ."""
        return joined(problem.dual_point(state.mu), problem.bare_point(state.v.copy()))

    def _note(self, problem, state, equations, length):
        """The gap if the weights were w(μ): what they are off by falls with every step."""
        off, mean = (1.0 - length) * equations.residual, equations.mean(state.mu * state.z)
        state.stalled = mean < LEAST[0] or length < LEAST[1]
        gap = equations.parts * mean + 0.5 * float(off @ off) / problem.lam
        dual = self.concave(problem, state) - problem.regularizer.conjugate(state.v)
        state.relative_gap_estimate = gap / dual if dual > 1e-300 else np.nan


class Lists:
    """Arrays of all outputs, (n, K) or, of candidates, one after the other: sums for each example."""

    def __init__(self, problem):
        examples = problem.examples
        self.pair, self.starts = problem.structure.name == "binary", None
        if examples.starts is not None:
            self.starts = examples.starts[:-1].astype(np.int64)
            self.counts = np.diff(examples.starts.astype(np.int64))
        self.mass = self.spread(examples.mass)

    def spread(self, each):
        """A number for each example, to be multiplied with arrays of all outputs."""
        return each[:, None] if self.starts is None else np.repeat(each, self.counts)

    def sums(self, array):
        """(n,) the sum of each example."""
        if self.starts is None:
            return array @ np.ones(array.shape[1])
        return np.add.reduceat(array, self.starts)

    def total(self, array):
        """The same, spread."""
        return self.spread(self.sums(array))

    def widened(self, scores):
        """Scores of all outputs: of two classes the second has none."""
        return np.column_stack([scores, np.zeros(scores.size)]) if self.pair else scores

    def narrowed(self, array):
        return np.ascontiguousarray(array[:, 0]) if self.pair else array


class Equations:
    """The linear equations of a step, factorised at the state's point."""

    def __init__(self, problem, state):
        self.problem, self.z, self.lists = problem, state.z, Lists(problem)
        self.parts = float(self.lists.sums(np.ones(state.mu.shape)) @ problem.examples.mass)  # Σ m_i K_i
        self.ratio = state.mu / state.z
        sums = self.lists.sums(self.ratio)
        self.sums = self.lists.spread(sums)
        self.share = self.ratio / self.sums
        self.residual = problem.lam * state.v - self._pulled(state.truth - state.mu)
        self.matrix = Scaled(problem.covariances(problem.examples.mass * sums, self.share))
        self.solved = 1.0

    def _pulled(self, array):
        """Σ m_i A_iᵀ array_i: a pass."""
        return self.problem.adjoint(self.lists.narrowed(self.lists.mass * array))

    def mean(self, products) -> float:
        """Σ m_i ⟨1, products_i⟩ / Σ m_i K_i."""
        return float(np.vdot(self.lists.mass * products, np.ones(products.shape))) / self.parts

    def solve(self, change, centring=False) -> Move:
        """The move by which the products change so; unless it is for centring only, w is to become w(μ)."""
        change = change / self.z
        total = self.lists.total(change)
        own = change - self.share * total
        rhs = -self._pulled(own)
        if not centring:
            rhs -= self.residual
        w = _centred(self.problem, self.matrix.solve(rhs))
        scores = self.lists.widened(self.problem.scores(w))
        centre = self.lists.total(self.share * scores)
        scores -= centre
        self.solved += 1.0
        return Move(w, own + self.ratio * scores, total / self.sums - scores)


def _centred(problem, w):
    """w without what labels have in common: w(μ) has none, and there the matrix is hardly positive."""
    labels = problem.design.outputs
    if labels == 1 or problem.structure.mask is not None:
        return w
    table = w.reshape(-1, labels)
    return (table - table.mean(axis=1, keepdims=True)).reshape(-1)


def _reach(state, move) -> float:
    """How far the move goes to the border, at most once."""
    most = max(float((-move.mu / state.mu).max()), float((-move.z / state.z).max()))
    return 1.0 / most if most > 1.0 else 1.0


def _drawn(state, move, reach, tau):
    """What products a little beyond the border lack to be near τ, Gondzio 1996 section 4."""
    ahead = min(1.0, (1.0 + 0.08) * reach + 0.08)
    products = (state.mu + ahead * move.mu) * (state.z + ahead * move.z)
    return np.maximum(np.clip(products, NARROW * tau, WIDE * tau) - products, -WIDE * tau)
