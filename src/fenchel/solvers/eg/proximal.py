"""Weak regularisers: exponentiated gradient on a proximal problem whose centre follows the weights.

    min P(w) + κ/2 ‖w − w₀‖²,    w₀ ← w after every pass

Its dual has the same blocks with λ + κ in the place of λ: a visit costs as few trials as under a strong
regulariser. Its weights are w = soft(v, λ₁/(λ + κ)), v = (u + κ w₀)/(λ + κ), u = Σ m_i A_iᵀ(y_i − μ_i). (The
proximal point method; for the dual the method of multipliers.)

The certificate is of P itself. That at w(μ) of a weak λ would be worth little; P at w and D at mixtures of μ
with the truth are near each other:

    μ_i' = t μ_i + (1 − t) y_i,   u' = t u,   H(μ_i') exact, since the truth is one output of many

and with an L1 term few |t u_j| exceed λ₁; without λ none may.
"""

import numpy as np

from fenchel._cache import helper, njit
from fenchel._math import REORDER, soft
from fenchel._packed import tail
from fenchel._sparse import inner
from fenchel.certificates import FEW, change_of_sum
from fenchel.solvers.eg.edges import true_pairs
from fenchel.structures.lattice_lanes import KERNEL, ONE

# Of λ + κ, as `proximal_penalty` says, without and with an L1 term: measured on corpora of 18 and 80
# attributes a token. Zeros are found sooner where weights move less.
REACH, SPARSE_REACH = 0.17, 0.4
NOTHING = np.empty(0)
MIXTURES = np.concatenate([[1.0], 1.0 - np.geomspace(1e-7, 0.5, 60)])  # t


def proximal_penalty(problem) -> float:
    """κ: what λ lacks to what makes visits easy; 0 where that is not worth a centre."""
    squares, entries = float(problem.design.norms.sum()), problem.examples.rows
    size = squares / np.sqrt(max(entries.shape[0] * entries.nnz, 1))  # √(mean ‖x_t‖² · mean x² of an entry)
    enough = (SPARSE_REACH if problem.l1 > 0.0 else REACH) * problem.examples.mass.mean() * size
    enough = enough or float(problem.lam == 0.0)  # of attributes that are all zero anything does
    return enough - problem.lam if problem.lam < 0.5 * enough else 0.0


class Centre:
    """κ w₀/(λ + κ), as `weights.Dual` has v: of rows and transitions; of single attributes it is q.own.

    Once a pass leaves little to gain for the centre that there is, the next one lies beyond the weights,
    w₀ ← w + β (w − w before), β = (k − 1)/(k + 2) at the k-th move in turn that goes on where the last one
    went (Güler 1992; O'Donoghue, Candès 2015): weights that have far to go need a fifth of the moves. Earlier
    than that moves follow errors.
    """

    def __init__(self, dual, share: float):
        """share: κ/(λ + κ)."""
        self.share, self.rows, self.edges = share, np.zeros_like(dual.v), np.zeros_like(dual.edge_v)
        likes = dual.v, dual.edge_v, dual.own
        self._moves, self._last = tuple(map(np.zeros_like, likes)), tuple(map(np.zeros_like, likes))
        self._onward, self._count = True, 0

    def restore(self, q) -> None:
        """q.v, q.edge_v of weights that are nothing but the centre's; written."""
        q.v[:], q.edge_v[:] = self.rows, self.edges

    def squared_distance(self, d, q) -> float:
        """‖w − w₀‖²; `follow` will go where the weights are now."""
        (rows, edges, own), last = self._moves, self._last
        sums = _moves_of(q.v, self.rows, d.threshold, self.share, last[0], rows)
        sums += _moves_of(q.edge_v, self.edges, d.threshold, self.share, last[1], edges)
        sums += _moves_of_own(d, q, self.share, last[2], own)
        self._onward = sums[1] >= 0.0
        return sums[0] / self.share**2

    def follow(self, d, q, settled: bool) -> None:
        """w₀ ← w as `squared_distance` met it, and beyond if that is settled; v, table and own written."""
        self._count = self._count + 1 if self._onward and settled else 1
        beyond = (self._count - 1) / (self._count + 2)
        parts = (self.rows, q.v), (self.edges, q.edge_v), (q.own, NOTHING)
        for (place, v), move, last in zip(parts, self._moves, self._last, strict=True):
            _go(place, move, last, beyond, v)
        q.table[:] = q.edge_v - np.clip(q.edge_v, -d.threshold, d.threshold)


@njit(cache=True, nogil=True, fastmath=REORDER)
def _moves_of(v, centre, threshold, share, last, moves):
    """moves = share · w − centre, written; the sum of their squares and of moves · (share · w − last)."""
    square, onward = 0.0, 0.0
    for j in range(np.uint64(v.size)):
        target = share * soft(v[j], threshold)
        moves[j] = target - centre[j]
        square += moves[j] * moves[j]
        onward += moves[j] * (target - last[j])
    return np.array([square, onward])


@njit(cache=True, nogil=True)
def _moves_of_own(d, q, share, last, moves):
    """The same of attributes of one token, which have the weight of its label alone; moves (N,) written."""
    square, onward = 0.0, 0.0
    for i in range(np.uint64(d.starts.size - 1)):
        for t in range(d.starts[i], d.starts[i + ONE]):
            if d.single[t] > 0.0:
                target = share * soft(q.own[t] + _pull(d, q, i, t), d.threshold)
                moves[t] = target - q.own[t]
                square += d.single[t] * moves[t] * moves[t]
                onward += d.single[t] * moves[t] * (target - last[t])
    return np.array([square, onward])


@njit(cache=True, nogil=True)
def _go(place, moves, last, beyond, v):
    """place += moves + beyond (place + moves − last), and v likewise, if there is one; last; all written."""
    for j in range(np.uint64(place.size)):
        target = place[j] + moves[j]
        step = moves[j] + beyond * (target - last[j])
        place[j] += step
        last[j] = target
        if v.size > 0:
            v[j] += step


@helper(cache=True, nogil=True)
def _pull(d, q, i, t):
    """c (1 − μ) of the label of token t."""
    return d.rates[i] * (1.0 - q.mu[d.begins[i] + (t - d.starts[i]) * d.labels.width + d.y[t]])


# ---- the bound


def best_bound(problem, d, q, centre, lam: float, entropies, moved: float) -> float:
    """max over t of D at the mixtures, less what rounding may have added; lam: λ + κ, moved as in `Point`.

    D is concave along them: bisection by whether the next mixture is better.
    """
    u, counts = _pulls(problem, d, q, centre, lam)
    likelihoods = np.empty(problem.n)
    _log_likelihoods(d, q, likelihoods)
    error, mass = change_of_sum(problem.extent, moved), problem.examples.mass
    if problem.lam == 0.0:  # the conjugate is 0 where all |t u_j| ≤ λ₁, else ∞
        t = min(1.0, problem.l1 / (u.max(initial=problem.l1) + error))
        return inner(mass, _mixed_entropies(t, entropies, likelihoods)) * (1.0 - FEW)

    def bound(number):
        t = MIXTURES[number]
        over = np.maximum(t * u - problem.l1, 0.0)
        square = inner(counts, over * over)
        concave = inner(mass, _mixed_entropies(t, entropies, likelihoods))
        penalty = square / (2.0 * problem.lam)
        off = (np.sqrt(square) * error + 0.5 * error**2) / problem.lam + FEW * (concave + penalty)
        return concave - penalty - off

    low, high, best = 0, MIXTURES.size - 1, -np.inf
    while low < high:
        middle = (low + high) // 2
        here, farther = bound(middle), bound(middle + 1)
        low, high = (low, middle) if here > farther else (middle + 1, high)
        best = max(best, here, farther)
    return best


def _pulls(problem, d, q, centre, lam):
    """|u_j| of the weights where it exceeds λ₁, and how many weights have it."""
    own = np.repeat(lam * d.rates, np.diff(d.starts.astype(np.int64)))
    own = own * (1.0 - q.mu[d.places + d.y.astype(np.int64)])
    parts = lam * np.abs(q.v - centre.rows), lam * np.abs(q.edge_v - centre.edges), own
    counts = np.ones(parts[0].size), np.ones(parts[1].size), d.single
    kept = [(part > problem.l1) & (count > 0.0) for part, count in zip(parts, counts, strict=True)]
    return tuple(np.concatenate([a[k] for a, k in zip(each, kept, strict=True)]) for each in (parts, counts))


def _mixed_entropies(t, entropies, likelihoods):
    """H(t μ + (1 − t) y), from H(μ) and log μ(y): the other outputs are scaled by t, and more likely is y."""
    truth = np.exp(likelihoods)
    p, others = t * truth + (1.0 - t), t * (1.0 - truth)
    rest = np.maximum(entropies + truth * likelihoods, 0.0)  # −Σ μ(z) log μ(z) over outputs other than y
    return t * rest - others * np.log(t) - p * np.log(p)


@njit(**KERNEL)
def _log_likelihoods(d, q, out):
    """log μ_i(y_i) = ⟨θ, y⟩ − log Z(θ), not below the true one: likelier truths leave mixtures less entropy.

    out (n,) written.
    """
    width, size = d.labels.width, np.uint64(d.edge_keep.size)
    for i in range(np.uint64(d.starts.size - 1)):
        first, reach = d.starts[i], abs(q.levels[i])
        truth = true_pairs(d, i, tail(q.theta, d.begins[i]))
        reach += abs(truth)
        for t in range(first, d.starts[i + ONE]):
            here = q.theta[d.begins[i] + (t - first) * width + d.y[t]]
            if t > first:
                here += q.edge_theta[i * size + d.y[t - ONE] * width + d.y[t]]
            truth += here
            reach += 1.0 + abs(here)
        out[i] = min(truth - q.levels[i] + 4e-15 * (1.0 + reach), 0.0)
