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
from fenchel.structures.chain import Chain
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

    indptr: np.ndarray  # (strips + 1,) uint64
    tiles: np.ndarray  # uint32
    values: np.ndarray  # float64; empty where all are 1
    tile: np.uint64  # labels of a tile
    implied: bool  # whether the weight of the last label is minus the sum of the others, which are its tile
    single: np.ndarray  # (N,) Σ x² of the attributes that no other token has: they need no tile
    threshold: float  # λ₁/λ: weights are soft(v, threshold)
    uses: Uses
    masked: bool  # whether some weights are not there
    keep: np.ndarray  # (tiles,) uint8, then a bit for each weight that is
    edge_keep: np.ndarray  # (K·width,) the same of transitions, 0 or 1
    starts: np.ndarray  # (n + 1,) uint64
    y: np.ndarray  # (N,) uint64, places of labels
    rates: np.ndarray  # (n,) m_i/λ
    labels: Labels


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
    """Whether these kernels can do it: chains with the log loss, whose transitions have no attributes."""
    structure = problem.structure
    is_chain = isinstance(structure, Chain) and not problem.loss.hinge
    return is_chain and not (structure.unrolled or structure.edge_columns)


def arrange(problem, lam: float) -> tuple[Sentences, Origin]:
    """The examples by tiles, without those of attributes that only one token has.

    lam: the λ of these kernels, more than the problem's own where weights are drawn to a centre. Dense tokens
    are made sparse: the general kernels, which take them as they are, are three times slower.
    """
    examples, structure = problem.examples, problem.structure
    rows = as_rows(examples.rows.matrix) if isinstance(examples.rows, Table) else examples.rows
    N, K, binary = examples.y.size, structure.labels, bool((rows.data == 1.0).all())
    order = np.arange(K)
    if structure.mask is not None:
        order = np.argsort(-np.bincount(examples.y, minlength=K), kind="stable")
    labels = Labels.of(K, None if structure.banned is None else structure.banned[np.ix_(order, order)])
    mask, edge_keep = _masks(structure, rows.n_columns, labels, order)
    counts = np.bincount(rows.indices, minlength=rows.n_columns)
    useful = _may_have_weights(problem, rows, counts)
    y = np.argsort(order)[examples.y]
    # Σ x² would not do where each has a threshold or a centre of its own
    alike = (problem.l1 == 0.0 or binary) and (lam == problem.lam or mask is not None)
    single = _single(rows, useful & (counts == 1) & alike, mask, y)
    useful[single.columns] = False
    implied = bool(LANES + 1 == K) and mask is None and problem.l1 == 0.0 and lam == problem.lam
    tiles = _tiles(useful, counts, mask, int(LANES if implied else labels.width))
    listed = _listed(rows._replace(data=NOTHING) if binary else rows, tiles, int(labels.width))
    indptr, found, values = listed
    strips = np.uint64(int(labels.width) // tiles.size)
    sentences = Sentences(
        *listed,
        np.uint64(tiles.size),
        implied,
        np.bincount(single.tokens, weights=single.values**2, minlength=N).astype(float),
        problem.l1 / lam,
        _uses(indptr, found, values, examples.starts * strips, tiles.columns.size),
        mask is not None,
        tiles.keep,
        edge_keep,
        examples.starts,
        y.astype(np.uint64),
        examples.mass / lam,
        labels,
    )
    return sentences, _origin(tiles, single, order)


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
    """The mask of attributes (A, width), None for all, and that of transitions (K·width,)."""
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


def _tiles(useful, counts, mask, size) -> Tiles:
    """The tiles of useful attributes; counts (A,): their uses; size: labels of a tile without a mask."""
    columns = np.flatnonzero(useful)
    columns = columns[np.argsort(-counts[columns], kind="stable")]
    if mask is None:
        return Tiles(columns, np.zeros_like(columns), EVERYTHING, size)
    lanes = int(LANES)
    parts = mask[columns].reshape(columns.size, mask.shape[1] // lanes, lanes)
    bits = np.packbits(parts, axis=2, bitorder="little")[:, :, 0]
    which, strips = np.nonzero(bits)
    return Tiles(columns[which], strips, bits[which, strips], lanes)


def _listed(rows: Rows, tiles: Tiles, width: int):
    """indptr, tiles and values of `Sentences`."""
    strips, N = width // tiles.size, rows.indptr.size - 1
    numbers = np.zeros(rows.n_columns * strips, np.uint32)  # of a tile, plus one
    numbers[tiles.columns * strips + tiles.strips] = np.arange(1, tiles.columns.size + 1)
    indptr = np.zeros(N * strips + 1, np.uint64)
    _count_tiles(rows.indptr, rows.indices, numbers, indptr)
    np.cumsum(indptr, out=indptr)
    found, values = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1] if rows.data.size else 0)
    _list_tiles(rows.indptr, rows.indices, rows.data, numbers, indptr, found, values)
    return indptr, found, values


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
