"""Examples: what every model is trained on, once strings and tables are gone."""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fenchel._cache import helper, njit
from fenchel._sparse import Rows, Table, as_csr, as_rows, column, row_begin, row_end, take
from fenchel.graphs import Graphs

MANY = 10_000  # examples of which a sixteenth must have others like them for those to be made one


def in_memory(shape, begins=None, kind=np.float64) -> np.ndarray:
    """`Examples.room` where examples are in memory."""
    return np.empty(shape, kind)


@dataclass(frozen=True)
class Examples:
    """n training examples as frozen arrays.

    rows: features, one row per example; or, with `starts`, one row per candidate output of an example.
    y: targets. Two classes: (n,), the empirical probability of the class +1 (0, 1, or between).
       K labels: Rows of a sparse (n, K) matrix, a distribution over the labels in each.
       Candidates: (M,), the empirical probability of each, those of an example summing to one.
       Sequences and graphs: (N,) uint32, the label of each token or node.
    mass: (n,) positive, summing to one: the empirical p(x_i), or normalised sample weights.
    starts: (n + 1,) where the candidates or tokens of each example begin; None where a row is an example.
    edges: of sequences, the attributes of the transition into each token, (N, B).
    cost: of sequences and graphs, (N,) what a wrong label costs under the hinge loss.
    graphs: the shapes of graphs, whose nodes then take the place of tokens.
    disk: where the arrays lie, if they are not in memory: `io.shards.Shards`. Of a part of some shards masses
       sum to its share of the whole.
    merged: how many more there were before those of equal features were made one.
    """

    rows: Rows | Table
    y: np.ndarray | Rows
    mass: np.ndarray
    starts: np.ndarray | None = None
    edges: Rows | None = None
    cost: np.ndarray | None = None
    graphs: Graphs | None = None
    disk: object | None = None
    merged: int = 0

    @property
    def n(self) -> int:
        return self.mass.size

    def room(self, shape, begins=None, kind=np.float64) -> np.ndarray:
        """An array that is to be filled, beside the examples; begins: as of `io.paging.Paged.room`."""
        return (in_memory if self.disk is None else self.disk.room)(shape, begins, kind)

    @property
    def larger_than_memory(self) -> bool:
        return self.disk is not None and self.disk.is_larger_than_memory

    def visits(self, order: np.ndarray):
        """Yield the examples of a pass in this random order; of a disk those in memory together at a time."""
        if self.disk is None or order.size == 0:
            yield order
        else:
            yield from self.disk.visits(order)

    def shuffled(self, rng):
        """The same in an order that is drawn here."""
        if self.disk is None:
            yield rng.permutation(self.n).view(np.uint64)
        else:
            yield from self.disk.shuffled(rng)


def weighted_examples(rows: Rows | Table, y, weight=None, starts=None, **more) -> tuple[Examples, float]:
    """Examples from features, targets and sample weights, and the sum of the weights.

    Examples of weight zero are dropped first: they are no part of the objective, and a mass of zero
    would leave its dual variable undetermined. Of a part of some shards the sum is that of the whole.
    """
    n = rows.shape[0] if starts is None else starts.size - 1
    whole = more["disk"].total if more.get("disk") is not None else None
    if n == 0:
        raise ValueError("X has no rows; at least one example is needed")
    if weight is None:
        total = float(n) if whole is None else whole
        mass = np.empty(n) if more.get("disk") is None else more["disk"].room(n)
        mass.fill(1.0 / total)
        return Examples(rows, y, mass, starts, **more), total
    weight = _checked_weights(weight, n)
    largest = float(weight.max())
    mass = weight / largest  # first, so that neither sums nor quotients overflow
    share = float(mass.sum()) if whole is None else whole / largest
    mass /= share
    examples = Examples(rows, y, mass, starts, **more)
    if not mass.all():
        examples = take_examples(examples, np.flatnonzero(mass))
    return examples, largest * share


def _checked_weights(weight, n):
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({n},)")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity")
    if (weight < 0).any():
        raise ValueError(f"sample_weight[{int(np.argmin(weight))}] is negative; weights must be at least 0")
    if not weight.any():
        raise ValueError("sample_weight is zero everywhere; at least one example must count")
    return weight


def take_examples(examples: Examples, keep: np.ndarray) -> Examples:
    """The examples of these numbers, in this order."""
    mass, starts = examples.mass[keep], examples.starts
    if starts is None:
        y = take(examples.y, keep) if isinstance(examples.y, Rows) else examples.y[keep]
        return Examples(take(examples.rows, keep), y, mass)
    first, counts = starts[keep].astype(np.int64), np.diff(starts)[keep].astype(np.int64)
    ends = np.cumsum(counts)
    candidates = np.repeat(first - (ends - counts), counts) + np.arange(ends[-1])
    new_starts = np.concatenate([[0], ends]).astype(np.uint64)
    edges = None if examples.edges is None else take(examples.edges, candidates)
    cost = None if examples.cost is None else examples.cost[candidates]
    graphs = None if examples.graphs is None else examples.graphs.take(keep)
    rows, y = take(examples.rows, candidates), examples.y[candidates]
    return Examples(rows, y, mass, new_starts, edges, cost, graphs)


# ---- merging


def merge_contexts(examples: Examples, by_target: bool = False) -> Examples:
    """Examples of equal features made one: p̃(x) the sum of their masses, p̃(y|x) the mean of their targets.

    huang2010 section 1, yu2011 (5). The log loss is linear in the target, so its objective is the same. The
    hinge loss is not: by_target merges only examples whose targets are equal too.
    """
    first, group = _groups(examples, by_target)
    fewer = examples.n - first.size
    few = 0 < fewer <= examples.n // 16 and examples.n >= MANY  # making them one takes as long as some passes
    if fewer == 0 or (few and not _disagree(examples, first, group)):
        return examples
    mass = np.bincount(group, weights=examples.mass)
    kept = replace(take_examples(examples, first), mass=mass, merged=fewer)
    if by_target:
        return kept  # a mean of equal targets may differ from them in its last digit
    if isinstance(examples.y, Rows):
        n = examples.n
        gather = sp.csr_matrix((examples.mass / mass[group], (group, np.arange(n))), (first.size, n))
        return replace(kept, y=_summing_to_one(as_rows(gather @ as_csr(examples.y))))
    counts = np.diff(examples.starts).astype(np.int64)
    share = np.repeat(examples.mass / mass[group], counts)
    begin = kept.starts.astype(np.int64)[group] - examples.starts[:-1].astype(np.int64)
    candidate = np.repeat(begin, counts) + np.arange(examples.y.size)
    y = np.bincount(candidate, weights=share * examples.y, minlength=kept.y.size)
    sizes = np.diff(kept.starts).astype(np.int64)
    return replace(kept, y=y / np.repeat(np.add.reduceat(y, kept.starts[:-1].astype(np.int64)), sizes))


def _disagree(examples, first, group) -> bool:
    """Whether examples of equal features have different targets.

    At large C dual coordinates hardly move such a pair, each of which undoes what the other does: with one of
    them in 20newsgroups, at C = 10,000, training took 42 s, and as one example 5.
    """
    later = np.flatnonzero(first[group] != np.arange(examples.n))
    one, other = (take_examples(examples, numbers).y for numbers in (later, first[group[later]]))
    if isinstance(one, Rows):
        return (as_csr(one) != as_csr(other)).nnz > 0
    return not np.array_equal(one, other)


def _summing_to_one(targets: Rows) -> Rows:
    """Each row divided by its sum: shares of a thousand examples leave that off by 1e-13."""
    begins, sizes = targets.indptr[:-1].astype(np.int64), np.diff(targets.indptr).astype(np.int64)
    return targets._replace(data=targets.data / np.repeat(np.add.reduceat(targets.data, begins), sizes))


def _groups(examples, by_target):
    """The first example of each group of equal ones, in order, and the number of every example's group."""
    n, rows = examples.n, examples.rows
    starts = np.arange(n + 1, dtype=np.uint64) if examples.starts is None else examples.starts
    target = np.zeros(n, np.int64)
    if by_target:
        target = _true_outcomes(examples)
    room = np.zeros(1 << (2 * n - 1).bit_length(), np.uint32)  # at most half full
    first, group = np.empty(n, np.int64), np.empty(n, np.int64)
    count = _number_groups(rows, rows.data.view(np.uint64), starts, target, room, first, group)
    return first[:count], group


def _true_outcomes(examples):
    """(n,) the number of the one outcome with a target, within its example."""
    if isinstance(examples.y, Rows):
        return examples.y.indices.astype(np.int64)
    return np.flatnonzero(examples.y) - examples.starts[:-1].astype(np.int64)


@njit(cache=True, nogil=True)
def _number_groups(rows, bits, starts, target, room, first, group):
    """group[i]: the number of i's group; first[g]: its first example; both written. Returns how many.

    room: zeros, a power of two of them, for the first examples (counted from 1) where their hash points, or
    next to it: hashes propose, a comparison decides. Sorting the hashes took ten times as long.
    """
    keys, count, last = np.empty(target.size, np.uint64), 0, np.uint64(room.size - 1)
    for i in range(target.size):
        keys[i] = _fingerprint(rows, bits, starts, target, i)
        at = (keys[i] ^ (keys[i] >> np.uint64(32))) & last
        while room[at] > 0:
            other = np.int64(room[at]) - 1
            near = keys[other] == keys[i] and target[other] == target[i]
            if near and _equal(rows, bits, starts, i, other):
                break
            at = (at + np.uint64(1)) & last
        if room[at] > 0:
            group[i] = group[np.int64(room[at]) - 1]
        else:
            room[at] = i + 1
            first[count], group[i] = i, count
            count += 1
    return count


@helper(cache=True, nogil=True)
def _fingerprint(rows, bits, starts, target, i):
    """A 64-bit hash of an example's rows and target."""
    odd, even = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
    a = np.uint64(target[i] + 1)
    for r in range(starts[i], starts[i + 1]):
        a = (a ^ np.uint64(0x5851F42D4C957F2D)) * odd
        for e in range(row_begin(rows, r), row_end(rows, r)):
            a = (a ^ column(rows, r, e)) * odd
            a = (a ^ (a >> np.uint64(29)) ^ bits[e]) * even
    return a ^ (a >> np.uint64(31))


@helper(cache=True, nogil=True)
def _equal(rows, bits, starts, i, j):
    """Whether two examples have the same rows."""
    if starts[i + 1] - starts[i] != starts[j + 1] - starts[j]:
        return False
    for k in range(starts[i + 1] - starts[i]):
        r, q = starts[i] + k, starts[j] + k
        if row_end(rows, r) - row_begin(rows, r) != row_end(rows, q) - row_begin(rows, q):
            return False
        for e in range(row_end(rows, r) - row_begin(rows, r)):
            at, other = row_begin(rows, r) + e, row_begin(rows, q) + e
            if column(rows, r, at) != column(rows, q, other) or bits[at] != bits[other]:
                return False
    return True
