"""Sequences: every token of a sequence has one of K labels, and neighbours depend on each other.

    score(y) = Σ_t x_t · W[:, y_t] + Σ_t (T + Σ_b z_tb V_b)[y_{t−1}, y_t]

with W (A, K) for the attributes x of the tokens, a table T (K, K) for the transitions, and, where attributes
speak of transitions too (z, lines B of CRF++ and b of Wapiti), a table V_b (K, K) for each of those.
w = [W | V | T], each row by row.

The parts of an example are its nodes and its edges, laid out as `lattice.py` says. All scores of T are the
same along a sequence, so that one table of edges serves all of it: the block of an example holds T·K + K²
numbers. Where edges have attributes, and where the entropy is asked of marginals alone (lepriol2018 (18)),
each edge has its own table: the chain is `unrolled`.
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from fenchel._cache import helper, njit
from fenchel._mixed import Mixed
from fenchel._sparse import Table, squared_norms
from fenchel.structures import base
from fenchel.structures.chain_outcomes import ChainOutcomes
from fenchel.structures.layouts.distinct import NO_COLUMNS, distinct_columns
from fenchel.structures.layouts.tables import LatticeTables

NONE = np.empty(0, np.uint8)


@dataclass(frozen=True)
class Chain(base.Structure):
    """The structure of label sequences.

    transitions: whether there is a table T. unrolled: whether each edge has its own table of marginals.
    banned (K, K) bool: transitions that cannot be. mask (d,) bool: the weights there are, None for all.
    """

    labels: int
    transitions: bool = True
    edge_columns: int = 0
    unrolled: bool = False
    banned: np.ndarray | None = None
    mask: np.ndarray | None = None
    name = "chain"
    listed = False
    products = False
    offers = frozenset({"hessian", "entropy", "vertices", "sequences"})

    @property
    def outputs(self) -> int:
        return self.labels

    @property
    def extra(self) -> int:
        """Weights beyond those of attributes and labels."""
        return (self.edge_columns + self.transitions) * self.labels**2

    @property
    def stride(self) -> int:
        """Numbers from one table of edges to the next; 0 where one serves all."""
        return self.labels**2 if self.unrolled else 0

    @property
    def tells_entropy(self) -> bool:
        """Sums over the edges of a sequence do not."""
        return self.unrolled

    def telling_entropy(self) -> "Chain":
        """The same chain with a table of marginals for each edge."""
        return self if self.unrolled else replace(self, unrolled=True)

    def offsets(self, starts) -> np.ndarray:
        """(n + 1,) where the block of each sequence begins; starts (n + 1,): its tokens."""
        lengths = np.diff(starts.astype(np.int64))
        tables = np.maximum(lengths - 1, 0) if self.unrolled else np.ones_like(lengths)
        ends = np.cumsum(lengths * self.labels + tables * self.labels**2)
        return np.concatenate([[0], ends]).astype(np.uint64)

    def shape(self, examples) -> tuple:
        """Of the marginals of all examples."""
        return (int(self.offsets(examples.starts)[-1]),)

    def begins(self, examples) -> np.ndarray:
        return self.offsets(examples.starts)

    def largest(self, examples) -> int:
        return int(np.diff(self.offsets(examples.starts).astype(np.int64)).max())

    def layout(self, examples, design) -> LatticeTables:
        of_rows = distinct_columns(examples.rows, examples.starts, examples.room)
        of_edges = distinct_columns(examples.edges, examples.starts, examples.room)
        return self.tables(examples, design.dim)._replace(distinct=of_rows, distinct_edges=of_edges)

    def tables(self, sequences, n_weights: int) -> LatticeTables:
        """The layout of sequences (rows, edges, starts) without their distinct columns: to score them."""
        return LatticeTables(
            rows=sequences.rows,
            edges=sequences.edges,
            starts=sequences.starts,
            offsets=self.offsets(sequences.starts),
            distinct=NO_COLUMNS,
            distinct_edges=NO_COLUMNS,
            mask=NONE if self.mask is None else self.mask.astype(np.uint8),
            labels=self.labels,
            stride=self.stride,
            tables=int(self.transitions),
            n_weights=n_weights,
        )

    def outcomes(self, examples) -> ChainOutcomes:
        y, cost, starts = examples.y, examples.cost, examples.starts
        return ChainOutcomes(y, cost, starts, self.banned_pairs, self.labels, self.stride)

    @property
    def banned_pairs(self) -> np.ndarray:
        """(K·K,) uint8, or empty: none is."""
        return NONE if self.banned is None else self.banned.astype(np.uint8).ravel()

    def observed(self, examples) -> np.ndarray:
        """(d,) bool: weights of attributes and labels, and of neighbouring labels, that the examples show."""
        K, y = self.labels, examples.y.astype(np.int64)
        first = np.zeros(y.size, bool)
        first[examples.starts[:-1].astype(np.int64)] = True
        pairs = np.where(first, -1, np.concatenate([[0], y[:-1]]) * K + y)
        W, V = _seen(examples.rows, y, K), _seen(examples.edges, pairs, K * K)
        T = np.bincount(pairs[pairs >= 0], minlength=K * K) > 0 if self.transitions else np.zeros(0, bool)
        return np.concatenate([W, V, T])

    def measures(self, examples):
        lengths = np.diff(examples.starts.astype(np.int64))
        parts = float(examples.mass @ (2.0 * lengths - 1.0))
        edges = squared_norms(examples.edges).max(initial=0.0)
        return parts, float(examples.cost.max()), sqrt(1.0 + edges)

    def cleaned(self, examples, mu):
        """mu made marginals of one distribution over label sequences; None where it is not near any.

        From the edges, whose sums must be the nodes: the Markov chain with their conditional probabilities.
        Sums over more than one edge do not tell whether they are anybody's: None too.
        """
        out, starts = mu.copy(), examples.starts
        found = _make_markov(self.labels, self.stride, starts, self.offsets(starts), self.banned_pairs, out)
        return out if found else None

    def sizes_of_choice(self, examples):
        lengths = np.diff(examples.starts.astype(np.int64))
        if self.banned is not None:
            return _logs_of_counts(~self.banned, int(lengths.max()))[lengths - 1], None
        costs = np.add.reduceat(examples.cost, examples.starts[:-1].astype(np.int64))
        return lengths * np.log(self.labels), costs * (self.labels > 1)


def _logs_of_counts(follows: np.ndarray, longest: int) -> np.ndarray:
    """log 1ᵀFᵗ1, t < longest: of how many sequences of t + 1 labels there are where j follows i if F_ij."""
    counts, scale, logs = np.ones(follows.shape[0]), 0.0, np.empty(longest)
    for t in range(longest):
        total = counts.sum()
        scale, counts = scale + np.log(total), (counts / total) @ follows
        logs[t] = scale
    return logs


CLOSE = 1e-9  # how far sums may be off
NOTHING, LOST = 1e-280, 1e-15  # a row of an edge's table that is none; what mass of its node may be lost


@njit(cache=True, nogil=True)
def _make_markov(K, stride, starts, offsets, banned, mu):
    """Whether each block of mu is nearly that of a Markov chain, which then takes its place; mu written."""
    for i in range(starts.size - 1):
        T = np.int64(starts[i + 1] - starts[i])
        if (stride == 0 and T > 2) or not _is_near(T, K, mu[offsets[i] : offsets[i + 1]], banned):
            return False
        _rebuild(T, K, mu[offsets[i] : offsets[i + 1]])
    return True


@helper(cache=True, nogil=True)
def _is_near(T, K, mu, banned):
    """Whether nodes sum to one, edges to the nodes on both sides, and nothing is negative or banned."""
    for j in range(mu.size):
        if not mu[j] >= 0.0 or (T == 1 and j >= K and mu[j] > 0.0):
            return False
        if j >= T * K and banned.size > 0 and banned[(j - T * K) % (K * K)] > 0 and mu[j] > 0.0:
            return False
    for t in range(T):
        total = 0.0
        for k in range(K):
            total += mu[t * K + k]
            for side in range(2):
                if (side == 0 and t < T - 1) or (side == 1 and t > 0):
                    beside, node = _side_sum(K, mu, T * K + (t - side) * K * K, side, k), mu[t * K + k]
                    if not abs(beside - node) <= CLOSE or (beside < NOTHING and node > LOST):
                        return False
        if not abs(total - 1.0) <= CLOSE:
            return False
    return True


@helper(cache=True, nogil=True)
def _side_sum(K, mu, edge, side, k):
    """Of the table at `edge`: the sum of row k (side 0) or of column k (side 1)."""
    total = 0.0
    for other in range(K):
        total += mu[edge + (k * K + other if side == 0 else other * K + k)]
    return total


@helper(cache=True, nogil=True)
def _rebuild(T, K, mu):
    """Nodes from left to right, each edge its node times its conditional probabilities; mu written."""
    total = 0.0
    for k in range(K):
        total += mu[k]
    for k in range(K):
        mu[k] /= total
    for t in range(1, T):
        edge = T * K + (t - 1) * K * K
        for b in range(K):
            mu[t * K + b] = 0.0
        for a in range(K):
            row = _side_sum(K, mu, edge, 0, a)
            share = mu[(t - 1) * K + a] / row if row >= NOTHING else 0.0
            for b in range(K):
                mu[edge + a * K + b] *= share
                mu[t * K + b] += mu[edge + a * K + b]
        total = 0.0
        for b in range(K):
            total += mu[t * K + b]
        for b in range(K):
            mu[t * K + b] /= total


def _seen(rows, labels, width):
    """(columns·width,) bool: which label, if any (≥ 0), each column has met."""
    if isinstance(rows, Table):
        return _seen_in_table(rows.matrix, labels, width)
    if isinstance(rows, Mixed):
        return np.concatenate([_seen(part, labels, width) for part in rows.apart()])
    counts = np.diff(rows.indptr.astype(np.int64))
    of_entry = np.repeat(labels, counts)
    seen = np.zeros(rows.n_columns * width, bool)
    known = of_entry >= 0
    seen[rows.indices[known].astype(np.int64) * width + of_entry[known]] = True
    return seen


def _seen_in_table(X, labels, width):
    """The same; a zero is no attribute, as in sparse rows."""
    seen = np.zeros((X.shape[1], width), bool)
    for label in range(width):
        seen[:, label] = (X[labels == label] != 0.0).any(axis=0)
    return seen.ravel()
