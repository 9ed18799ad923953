"""The examples of a chain problem, arranged so that a visit of a sentence is cheap: `chain.py` says why.

The scores of a token are a row of `width` numbers, cut into strips of `tile` labels. The weights that an
attribute has for the labels of a strip are a tile. Where all weights are there, a tile is a row of w. With a
mask it is LANES of them, and where an attribute has none of these there is no tile; labels then stand in the
order of their frequency, since most attributes were seen with few labels, which are frequent ones: CoNLL-2000
has 127,000 tiles of 8 weights in place of 352,000.

Nine labels, inside and beginning of four kinds of names and outside, are one more than a line of the cache
holds. Without mask, L1 term and centre the weights of an attribute sum to zero, as y − μ does over labels: a
tile has eight of them, and that of the last label is minus their sum (Dutch NER: 37 in place of 74 MB).
"""

from typing import NamedTuple

import numpy as np

from fenchel._cache import njit
from fenchel._packed import packed
from fenchel._sparse import Rows, Table, as_rows
from fenchel.solvers.eg.kinds import OneKind, Strips, by_kinds, inner_rows
from fenchel.solvers.eg.vectors import NoVectors, Vectors
from fenchel.structures.chain import Chain
from fenchel.structures.lattice_kinds import Kinds
from fenchel.structures.lattice_lanes import LANES, Labels

NOTHING, EVERYTHING = np.empty(0), np.empty(0, np.uint8)


class Uses(NamedTuple):
    """The distinct tiles of each sentence, and where it uses them."""

    starts: np.ndarray  # (n + 1,) uint64, into tiles
    tiles: np.ndarray  # uint32
    ends: np.ndarray  # (tiles.size + 1,) uint64, into strips and values
    strips: np.ndarray  # uint32, within the sentence
    values: np.ndarray  # float64; empty where all are 1


@packed
class Origin(NamedTuple):
    """Where the weights lie in those of the problem."""

    columns: np.ndarray  # (tiles,) uint64, the attribute of each tile, in order
    tiles: np.ndarray  # (tiles,) uint64, this tile
    places: np.ndarray  # (tiles,) uint64, where its first label stands
    tokens: np.ndarray  # uint64, those that have an attribute of their own, in order
    own: np.ndarray  # uint64, this attribute
    values: np.ndarray  # float64, its value there
    labels: np.ndarray  # (K,) uint64, the label at each place


@packed
class Sentences(NamedTuple):
    """Strips by the tiles that they use, sentences by the tiles, and where weights are."""

    indptr: np.ndarray  # as in `Strips`
    tiles: np.ndarray
    values: np.ndarray
    tile: np.uint64  # labels of a tile
    implied: bool  # whether the weight of the last label is minus the sum of the others, which are its tile
    single: np.ndarray  # (N,) Σ x² of the attributes that no other token has: they need no tile
    threshold: float  # λ₁/λ: weights are soft(v, threshold)
    uses: Uses
    masked: bool  # whether some weights are not there
    keep: np.ndarray  # (tiles,) uint8, then a bit for each weight that is
    edge_keep: np.ndarray  # (K·width,) the same of transitions, 0 or 1
    starts: np.ndarray  # (n + 1,) uint64
    begins: np.ndarray  # (n + 1,) uint64, where the numbers of a sentence begin: nodes, then strips of kinds
    kinds: Kinds | OneKind  # of edges
    vectors: Vectors | NoVectors  # dense numbers of tokens
    y: np.ndarray  # (N,) uint64, places of labels
    rates: np.ndarray  # (n,) m_i/λ
    labels: Labels

    @property
    def places(self) -> np.ndarray:
        """(N,) where the numbers of each token begin."""
        starts, width = self.starts.astype(np.int64), int(self.labels.width)
        before = self.begins[:-1].astype(np.int64) - starts[:-1] * width
        return np.repeat(before, np.diff(starts)) + np.arange(self.y.size) * width


class Tiles(NamedTuple):
    """Which there are, those of frequent attributes first."""

    columns: np.ndarray  # (tiles,) the attribute
    strips: np.ndarray  # (tiles,) the strip of a token
    keep: np.ndarray  # as in Sentences
    size: int  # labels of a tile


class Single(NamedTuple):
    """The attributes that only one token has, and that need no tile."""

    tokens: np.ndarray
    columns: np.ndarray
    values: np.ndarray


def suits(problem) -> bool:
    """Whether these kernels can do it: chains with the log loss, unless they were unrolled for a solver."""
    structure = problem.structure
    is_chain = isinstance(structure, Chain) and not problem.loss.hinge
    return is_chain and (not structure.unrolled or structure.edge_columns > 0)


def dual_numbers(problem) -> int:
    """How many dual variables there are at most: nodes, a table a sentence, strips of the kinds of edges."""
    examples, structure, K = problem.examples, problem.structure, problem.structure.labels
    counts = np.bincount(examples.edges.indices, minlength=structure.edge_columns)
    weights = np.full(structure.edge_columns, K * K)
    if structure.mask is not None:
        first = examples.rows.n_columns * K
        mask = structure.mask[first : first + weights.size * K * K].reshape(-1, K * K)
        weights = np.minimum(int(LANES) * mask.sum(axis=1), K * K)  # a strip for each, if they lie so
    strips = min(int(counts @ weights), (examples.y.size - problem.n) * K * K)
    return examples.y.size * K + problem.n * K * K + strips


def arrange(problem, lam: float, vectors: bool = False) -> tuple[Sentences, Origin]:
    """The examples by tiles, without those of attributes that only one token has.

    lam: the λ of these kernels, more than the problem's own where weights are drawn to a centre. vectors:
    whether dense numbers stay apart (`vectors.py`); else they are made sparse.
    """
    examples, structure = problem.examples, problem.structure
    rows, table = _apart(examples.rows, vectors)
    edges = inner_rows(examples.edges, examples.starts)
    N, K = examples.y.size, structure.labels
    binary = bool((rows.data == 1.0).all() and (edges.data == 1.0).all())
    order = np.arange(K)
    if structure.mask is not None:
        order = np.argsort(-np.bincount(examples.y, minlength=K), kind="stable")
    labels = Labels.of(K, None if structure.banned is None else structure.banned[np.ix_(order, order)])
    columns = rows.n_columns + table.n_columns
    mask, edge_keep = _masks(structure, columns + edges.n_columns * K, labels, order)
    counts, useful = _uses_of_rows(problem, rows, table, edges)
    y = np.argsort(order)[examples.y]
    # Σ x² would not do where each has a threshold or a centre of its own
    alike = (problem.l1 == 0.0 or binary) and (lam == problem.lam or mask is not None)
    once = useful & (counts == 1) & alike
    if problem.used_elsewhere is not None:
        once[: rows.n_columns] &= ~problem.used_elsewhere[: rows.n_columns]
    single = _single(rows, once, mask, y)
    useful[single.columns] = False
    implied = bool(LANES + 1 == K) and mask is None and problem.l1 == 0.0 and lam == problem.lam
    implied = implied and edges.n_columns == 0
    dense = np.arange(rows.n_columns, columns)
    tiles = _tiles(useful, counts, mask, int(LANES if implied else labels.width), dense)
    if binary:
        rows, edges = rows._replace(data=NOTHING), edges._replace(data=NOTHING)
    listed, begins, kinds = _strips(rows, columns, edges, tiles, labels, order, examples.starts, y)
    sentences = Sentences(
        *listed,
        np.uint64(tiles.size),
        implied,
        np.bincount(single.tokens, weights=single.values**2, minlength=N).astype(float),
        problem.l1 / lam,
        _uses(*listed, begins, tiles.columns.size),
        mask is not None,
        tiles.keep,
        edge_keep,
        examples.starts,
        begins * np.uint64(tiles.size),
        kinds,
        _vectors(table, tiles),
        y.astype(np.uint64),
        examples.mass / lam,
        labels,
    )
    return sentences, _origin(tiles, single, order)


def _apart(rows, vectors: bool) -> tuple[Rows, Table]:
    """Sparse columns, and the dense ones behind them, which are among the former unless they stay apart."""
    n = rows.shape[0]
    if isinstance(rows, Rows) or not vectors:
        return rows if isinstance(rows, Rows) else as_rows(rows.matrix), Table(NOTHING, n, 0)
    if isinstance(rows, Table):
        return Rows(np.zeros(n + 1, np.uint64), np.empty(0, np.uint32), NOTHING, 0), rows
    return rows.apart()


def _uses_of_rows(problem, rows, table, edges):
    """How often each row of labels is used, and whether it may have weights: of attributes of tokens, of
    dense columns, and K rows, of the labels before, for each attribute of edges.
    """
    counts = [np.bincount(each.indices, minlength=each.n_columns) for each in (rows, edges)]
    useful = [_may_have_weights(problem, *each) for each in zip((rows, edges), counts, strict=True)]
    counts.insert(1, np.full(table.n_columns, table.n_rows))
    useful.insert(1, np.ones(table.n_columns, bool))
    K = problem.structure.labels
    return tuple(np.concatenate([*some[:2], np.repeat(some[2], K)]) for some in (counts, useful))


def _vectors(table: Table, tiles) -> Vectors | NoVectors:
    if table.n_columns == 0:
        return NoVectors()
    first = int((tiles.columns == tiles.columns[0]).sum())
    return Vectors(table.data, np.uint64(table.n_columns), np.uint64(first))


def _may_have_weights(problem, rows, counts):
    """(A,) bool: attributes that occur, and more than λ₁ allows: no u_j exceeds Σ m_i |x|."""
    if problem.l1 == 0.0:
        return counts > 0
    starts = rows.indptr[problem.examples.starts.astype(np.int64)].astype(np.int64)
    mass = np.repeat(problem.examples.mass, np.diff(starts))
    return np.bincount(rows.indices, np.abs(rows.data) * mass, rows.n_columns) > problem.l1


def _single(rows, once, mask, y) -> Single:
    """Of the attributes `once` (A,) those which, with a mask, have the weight of their token's label alone.

    Observed weights are so.
    """
    entries = np.flatnonzero(once[rows.indices])
    columns = rows.indices[entries]
    tokens = np.searchsorted(rows.indptr, entries.astype(np.uint64), side="right") - 1
    if mask is not None:
        alone = mask[columns, y[tokens]] & (mask[columns].sum(axis=1) == 1)
        entries, columns, tokens = entries[alone], columns[alone], tokens[alone]
    return Single(tokens, columns, rows.data[entries])


def _masks(structure, columns, labels, order):
    """The mask of rows of labels (columns, width), None for all, and that of transitions (K·width,)."""
    K, width = structure.labels, int(labels.width)
    edge_keep, mask = np.zeros((K, width)), None
    if structure.transitions:
        edge_keep[:, :K] = 1.0
    if structure.mask is not None:
        mask = np.zeros((columns, width), bool)
        mask[:, :K] = structure.mask[: columns * K].reshape(columns, K)[:, order]
        if structure.transitions:
            edge_keep[:, :K] = structure.mask[columns * K :].reshape(K, K)[np.ix_(order, order)]
    return mask, edge_keep.ravel()


def _tiles(useful, counts, mask, size, dense) -> Tiles:
    """The tiles of useful attributes; counts (A,): their uses; size: labels of a tile without a mask.

    dense: columns that come first, with all their tiles.
    """
    others = useful.copy()
    others[dense] = False
    columns = np.flatnonzero(others)
    columns = np.concatenate([dense, columns[np.argsort(-counts[columns], kind="stable")]])
    if mask is None:
        return Tiles(columns, np.zeros_like(columns), EVERYTHING, size)
    lanes = int(LANES)
    parts = mask[columns].reshape(columns.size, mask.shape[1] // lanes, lanes)
    bits = np.packbits(parts, axis=2, bitorder="little")[:, :, 0]
    there = bits > 0
    there[: dense.size] = True
    which, strips = np.nonzero(there)
    return Tiles(columns[which], strips, bits[which, strips], lanes)


def _strips(rows: Rows, columns: int, edges: Rows, tiles: Tiles, labels, order, starts, y):
    """The strips of all sentences, (n + 1,) where those of each begin, and the kinds of edges.

    columns: of tokens, dense ones among them.
    """
    K, strips = order.size, int(labels.width) // tiles.size
    numbers = np.zeros((columns + edges.n_columns * K) * strips, np.uint32)  # of a tile, plus one
    numbers[tiles.columns * strips + tiles.strips] = np.arange(1, tiles.columns.size + 1)
    listed = _listed(rows, numbers, strips)
    if edges.n_columns == 0:
        return listed, starts * np.uint64(strips), OneKind()
    of_edges = numbers[columns * strips :].reshape(edges.n_columns, K, strips)[:, order]
    of_edges = of_edges.reshape(edges.n_columns, K * strips)
    return by_kinds(edges, starts, y, of_edges, labels, tiles.size, listed)


def _listed(rows: Rows, numbers, strips: int) -> Strips:
    """The strips of tokens."""
    N = rows.indptr.size - 1
    indptr = np.zeros(N * strips + 1, np.uint64)
    _count_tiles(rows.indptr, rows.indices, numbers, indptr)
    np.cumsum(indptr, out=indptr)
    found, values = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1] if rows.data.size else 0)
    _list_tiles(rows.indptr, rows.indices, rows.data, numbers, indptr, found, values)
    return Strips(indptr, found, values)


@njit(cache=True, nogil=True)
def _count_tiles(begins, columns, numbers, indptr):
    """indptr[strip + 1] = its tiles; written."""
    N, one = np.uint64(begins.size - 1), np.uint64(1)
    strips = np.uint64(indptr.size - 1) // max(N, one)
    for t in range(N):
        for e in range(begins[t], begins[t + one]):
            for b in range(strips):
                indptr[t * strips + b + one] += numbers[columns[e] * strips + b] > 0


@njit(cache=True, nogil=True)
def _list_tiles(begins, columns, data, numbers, indptr, found, values):
    """The tiles of each strip, and the values of their attributes; found, values written."""
    N, one = np.uint64(begins.size - 1), np.uint64(1)
    strips = np.uint64(indptr.size - 1) // max(N, one)
    for t in range(N):
        for b in range(strips):
            at = indptr[t * strips + b]
            for e in range(begins[t], begins[t + one]):
                tile = numbers[columns[e] * strips + b]
                if tile > 0:
                    found[at] = tile - one
                    if data.size > 0:
                        values[at] = data[e]
                    at += one


def _origin(tiles: Tiles, single: Single, order) -> Origin:
    at = np.lexsort((tiles.strips, tiles.columns))
    where = tiles.columns[at], at, tiles.strips[at] * tiles.size, single.tokens, single.columns
    return Origin(*(each.astype(np.uint64) for each in where), single.values, order.astype(np.uint64))


def _uses(indptr, tiles, values, starts, kept) -> Uses:
    """The tiles of each sentence, each once; starts (n + 1,): its strips."""
    found, strips = np.empty(tiles.size, np.uint32), np.empty(tiles.size, np.uint32)
    ends, order = np.zeros(tiles.size + 1, np.uint64), np.empty(values.size, np.uint64)
    of_sentence = np.zeros(starts.size, np.uint64)
    last = np.zeros(kept, np.uint64)  # where a tile was last listed, plus one
    count = int(_find_uses(indptr, tiles, starts, last, of_sentence, found, ends, strips, order))
    values = values if values.size == 0 else values[order]
    return Uses(of_sentence, found[:count].copy(), ends[: count + 1].copy(), strips, values)


@njit(cache=True, nogil=True)
def _find_uses(indptr, tiles, starts, last, of_sentence, found, ends, strips, order):
    """The arrays of `Uses`, and the entry that each use is; all but the first three written."""
    one, count = np.uint64(1), np.uint64(0)
    for i in range(starts.size - 1):
        begin, first, end = count, indptr[starts[i]], indptr[starts[i + 1]]
        for e in range(first, end):
            tile = tiles[e]
            if last[tile] <= begin:
                found[count] = tile
                count += one
                last[tile] = count
                ends[count] = np.uint64(0)
            ends[last[tile]] += one
        total = first
        for u in range(begin, count):  # ends[u + 1] counts the uses: where they begin
            here = ends[u + one]
            ends[u + one] = total
            total += here
        for t in range(starts[i], starts[i + 1]):
            for e in range(indptr[t], indptr[t + one]):
                at = ends[last[tiles[e]]]
                strips[at] = t - starts[i]
                if order.size > 0:
                    order[at] = e
                ends[last[tiles[e]]] += one
        of_sentence[i + 1] = count
    return count
