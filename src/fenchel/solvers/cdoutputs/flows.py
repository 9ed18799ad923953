"""Sparse flows in the place of lists of outputs: label sequences whose transitions have no attributes.

A token keeps the pairs of labels that carry mass; that stands for exponentially many outputs, and holds them
in less room than a list. `paths.py` has the visits, `weights.py` the weights. Examples are arranged as for
`eg` (`eg/sentences.py`): with a mask labels have other places.
"""

import numpy as np

from fenchel._cache import helper, njit
from fenchel._memory import available_bytes
from fenchel.solvers.cdoutputs import paths, weights
from fenchel.solvers.cdoutputs.paths import QUANTUM, Flow, Gram, Room, shift
from fenchel.solvers.cdoutputs.weights import HALF, LOWER, ZERO
from fenchel.solvers.dual import RENEWAL
from fenchel.solvers.eg.sentences import arrange
from fenchel.structures.chain import Chain
from fenchel.structures.lattice_lanes import KERNEL, ONE

FEW = 2  # slots of a token at first; they are doubled where that is too few
ROUNDS, CHEAP_ROUNDS = 5, 10  # of steps in a visit that asks the oracle, and in one that does not
SKIP, ALL = 0.3, 5  # a cheap pass leaves out what has less than so much of the mean gap; not every fifth


def suits(problem) -> bool:
    """Whether this can be done: chains whose transitions have no attributes."""
    structure = problem.structure
    if not isinstance(structure, Chain) or structure.unrolled or structure.edge_columns:
        return False
    lengths = np.diff(problem.examples.starts.astype(np.int64))
    room = 12.0 * float(np.square(lengths, dtype=float).sum())  # of the Gram matrices, at most
    fits = structure.mask is not None or room <= 0.25 * available_bytes()
    return fits and structure.labels < 2**16


class Flows:
    """The flow of each sentence, and marginals and weights that they make."""

    def __init__(self, problem, mu=None):
        """At a warm start's μ, or at the truth."""
        self.sentences, self.origin = arrange(problem, problem.lam)
        examples, structure, d = problem.examples, problem.structure, self.sentences
        N, tiles = examples.y.size, self.origin.columns.size
        self.weights = weights.new_weights(d, examples, bool(structure.transitions), tiles)
        self.flow = _new_flow(np.full(N, FEW))
        _begin(d, self.flow)
        self.offsets = structure.offsets(examples.starts)
        if mu is not None:
            self._begin_at(mu)
        self.gram = gram_of(d)
        self.room = self._new_room()
        self.mass, self.shape, self.lam = examples.mass, problem.shape, problem.lam
        self.stretches = np.full(N, np.inf)  # gaps, at the first token of each
        self.cheap = 0  # passes made
        self.weigh()

    def _new_room(self) -> Room:
        """For a thread."""
        longest = int(np.diff(self.sentences.starts.astype(np.int64)).max())
        size = longest * int(self.sentences.labels.width)
        numbers, labels = np.zeros((3, size)), np.zeros((2, longest), np.uint64)
        return Room(*numbers, np.zeros(size, np.uint64), *labels)

    def weigh(self) -> None:
        """μ of labels and the weights anew: what is kept up by increments drifts."""
        q = self.weights
        q.mu[:], q.v[:] = 0.0, 0.0
        q.edges[np.isfinite(q.edges)] = 0.0
        weights.weigh(self.sentences, self.flow, q)

    def visit(self, problem, order, least: float, gaps) -> None:
        """Ask the oracle for each sentence of the order, and step; gaps (n,) written."""
        self._visit(order, True, ROUNDS, least, gaps, 0.0)
        self.stretches[:] = np.inf

    def go_over(self, problem, rng, enough: float) -> tuple[float, float]:
        """A cheap pass over the stretches of tokens with more than one pair of labels.

        Returns the gap over them as met, and the tokens visited, as a share of all.
        """
        known = self.stretches[np.isfinite(self.stretches)]
        skip = SKIP * known.mean() if self.cheap % ALL and known.size else 0.0
        order = rng.permutation(problem.n)
        tokens = self._visit(order, False, CHEAP_ROUNDS, enough, self.stretches, skip)
        self.cheap += 1
        left = np.where(np.isfinite(self.stretches), self.stretches, 0.0)
        sums = np.add.reduceat(left, self.sentences.starts[:-1].astype(np.int64))
        return float(self.mass @ sums), tokens / self.stretches.size

    def _visit(self, order, ask, rounds, enough, gaps, skip) -> int:
        fixed = self.sentences, self.gram, self.flow, self.weights, order.astype(np.uint64)
        tokens = paths.visit_all(*fixed, ask, rounds, enough, gaps, skip, self.room)
        if self.flow.wanted.any():
            self.flow = _widened(self.flow)
        return int(tokens)

    def refresh(self, problem, epochs: int) -> None:
        """Now and then the weights anew."""
        if epochs % RENEWAL == 0:
            self.weigh()

    def dual(self, problem) -> float:
        """D(μ)."""
        cost, square = weights.cost_and_square(self.sentences, self.weights, self.mass)
        finite = self.weights.edges[np.isfinite(self.weights.edges)]
        return cost - 0.5 * self.lam * (square + float(finite @ finite))

    def point(self, problem):
        """The certificate at w(μ), computed anew."""
        self.weigh()

        def part(start, stop):
            fixed = self.sentences, self.flow, self.weights, np.uint64(start), np.uint64(stop)
            return paths.certify(*fixed, self.mass, self._new_room())

        parts = problem.design.for_each_part(problem.n, problem.design.work, part)
        value, gap, moved = map(sum, zip(*parts, strict=True))
        w = weights.own_weights(self.sentences, self.origin, self.weights, problem)
        return problem.proven_point(w, value, gap, moved)

    def marginals(self) -> np.ndarray:
        """μ as the problem lays it out."""
        out = np.zeros(self.shape)
        _hand_out(self.sentences, self.origin.labels, self.offsets, self.flow, out)
        return out

    def _begin_at(self, mu) -> None:
        """A flow with the marginals of labels that mu has: its sums over transitions do not tell the pairs.

        Where no such flow is found, since pairs are banned, a sentence begins at the truth.
        """
        nodes, counts = np.zeros(self.weights.mu.size), np.zeros(self.flow.used.size, np.int64)
        _read_nodes(self.sentences, self.origin.labels, self.offsets, mu, nodes, counts)
        self.flow = _new_flow(counts + np.concatenate([[0], counts[:-1]]))
        _begin(self.sentences, self.flow)
        _couple(self.sentences, self.origin.labels, self.offsets, mu, nodes, self.flow)


def _new_flow(slots) -> Flow:
    """Slots for so many pairs at each token; none is used."""
    begin = np.concatenate([[0], np.cumsum(slots)]).astype(np.uint64)
    size = int(begin[-1])
    used, wanted = np.zeros(slots.size, np.uint64), np.zeros(slots.size, np.uint8)
    return Flow(begin, used, np.zeros(size, np.uint32), np.zeros(size), wanted)


def _widened(flow: Flow) -> Flow:
    """The same with twice the slots where a pair found none."""
    slots = np.diff(flow.begin.astype(np.int64))
    new = _new_flow(slots * (1 + flow.wanted))
    _copy(flow, new)
    return new


@njit(**KERNEL)
def _copy(flow, new):
    for token in range(np.uint64(flow.used.size)):
        new.used[token] = flow.used[token]
        for e in range(flow.used[token]):
            new.pairs[new.begin[token] + e] = flow.pairs[flow.begin[token] + e]
            new.mass[new.begin[token] + e] = flow.mass[flow.begin[token] + e]


@njit(**KERNEL)
def _begin(d, flow):
    """All mass on the true labels; flow written."""
    for i in range(np.uint64(d.starts.size - 1)):
        _begin_sentence(d, i, flow)


@helper(**KERNEL)
def _begin_sentence(d, i, flow):
    """The same of one sentence."""
    for t in range(d.starts[i], d.starts[i + ONE]):
        before = d.y[t - ONE] << HALF if t > d.starts[i] else ZERO
        flow.used[t] = ONE
        flow.pairs[flow.begin[t]], flow.mass[flow.begin[t]] = before + d.y[t], 1.0


@njit(**KERNEL)
def _hand_out(d, labels, offsets, flow, out):
    """μ in the layout of the problem, which holds zeros; out written. labels (K,): the one at each place."""
    K = d.labels.count
    for i in range(np.uint64(d.starts.size - 1)):
        first, T = d.starts[i], d.starts[i + ONE] - d.starts[i]
        for t in range(T):
            for e in range(flow.begin[first + t], flow.begin[first + t] + flow.used[first + t]):
                pair = np.uint64(flow.pairs[e])
                here = labels[pair & LOWER]
                out[offsets[i] + t * K + here] += flow.mass[e]
                if t > ZERO:
                    out[offsets[i] + (T + labels[pair >> HALF]) * K + here] += flow.mass[e]


@njit(**KERNEL)
def _read_nodes(d, labels, offsets, mu, nodes, counts):
    """The marginals of labels in multiples of QUANTUM, and how many are not 0; nodes, counts (N,) written."""
    K, width = d.labels.count, d.labels.width
    for i in range(np.uint64(d.starts.size - 1)):
        for t in range(d.starts[i], d.starts[i + ONE]):
            begin, best, others = offsets[i] + (t - d.starts[i]) * K, ZERO, 0.0
            for k in range(K):
                mass = mu[begin + labels[k]]
                best = k if mass > mu[begin + labels[best]] else best
                nodes[t * width + k] = np.floor(max(mass, 0.0) / QUANTUM) * QUANTUM
                others += nodes[t * width + k]
            nodes[t * width + best] += 1.0 - others
            for k in range(K):
                counts[t] += nodes[t * width + k] > 0.0


@njit(**KERNEL)
def _couple(d, labels, offsets, mu, nodes, flow):
    """Pairs of labels whose sums are the nodes, if any are found; flow, which is at the truth, written."""
    for i in range(np.uint64(d.starts.size - 1)):
        first, end = d.starts[i], d.starts[i + ONE]
        sums = offsets[i] + (end - first) * d.labels.count
        flow.used[first] = ZERO
        for k in range(d.labels.count):
            if nodes[first * d.labels.width + k] > 0.0:
                shift(flow, first, k, nodes[first * d.labels.width + k])
        for t in range(first + ONE, end):
            if not _couple_token(d, labels, mu, sums, nodes, t, flow):
                _begin_sentence(d, i, flow)
                break


@helper(**KERNEL)
def _couple_token(d, labels, mu, sums, nodes, t, flow):
    """The pairs at token t: those that mu has at first, then others; written. Returns whether all mass is.

    sums: where the sums over pairs of this sentence begin in mu. Every pair takes all that one of its labels
    has left, so that there are fewer pairs than labels on both sides.
    """
    K, width, left = d.labels.count, d.labels.width, 1.0
    before, here = np.empty(K), np.empty(K)
    for k in range(K):
        before[k], here[k] = nodes[(t - ONE) * width + k], nodes[t * width + k]
    flow.used[t] = ZERO
    for strange in range(2):
        for a in range(K):
            for b in range(K):
                mass = min(before[a], here[b])
                known = mu[sums + labels[a] * K + labels[b]] > 0.0 or strange > 0
                if mass > 0.0 and known and d.labels.allowed[a * width + b] > 0.0:
                    shift(flow, t, (a << HALF) + b, mass)
                    before[a] -= mass
                    here[b] -= mass
                    left -= mass
    return left == 0.0


def gram_of(d) -> Gram:
    """The Gram matrices of the sentences; none where some weights are not there."""
    longest = int(np.diff(d.starts.astype(np.int64)).max())
    begin, square = np.zeros(d.y.size + 1, np.uint64), np.zeros(longest * longest)
    none = Gram(begin, np.empty(0, np.uint32), np.empty(0))
    if d.masked:
        return none
    size = int(_fill_gram(d, square, none))
    gram = none._replace(tokens=np.empty(size, np.uint32), values=np.empty(size))
    _fill_gram(d, square, gram)
    return gram


@njit(**KERNEL)
def _fill_gram(d, square, gram):
    """⟨x_t, x_u⟩ by the rows that both use; written, or where there is no room yet counted. square: zeros."""
    count = ZERO
    for i in range(np.uint64(d.starts.size - 1)):
        first, T = d.starts[i], d.starts[i + ONE] - d.starts[i]
        for t in range(T):
            square[t * T + t] = d.single[first + t]
        for u in range(d.uses.starts[i], d.uses.starts[i + ONE]):
            for e in range(d.uses.ends[u], d.uses.ends[u + ONE]):
                x, row = 1.0 if d.values.size == 0 else d.uses.values[e], np.uint64(d.uses.strips[e]) * T
                for f in range(d.uses.ends[u], d.uses.ends[u + ONE]):
                    z = 1.0 if d.values.size == 0 else d.uses.values[f]
                    square[row + np.uint64(d.uses.strips[f])] += x * z
        for t in range(T):
            for u in range(T):
                if square[t * T + u] != 0.0:
                    if gram.tokens.size > 0:
                        gram.tokens[count], gram.values[count] = u, square[t * T + u]
                    count += ONE
                    square[t * T + u] = 0.0
            gram.begin[first + t + ONE] = count
    return count
