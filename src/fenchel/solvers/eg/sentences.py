"""The examples of a chain problem, arranged so that a visit of a sentence is cheap: `chain.py` says why."""

from typing import NamedTuple

import numpy as np

from fenchel._cache import njit
from fenchel._sparse import as_csr, as_rows
from fenchel.structures.chain import Chain
from fenchel.structures.lattice_lanes import LANES, Labels

NOTHING, EVERYTHING = np.empty(0), np.empty(0, np.uint8)


class Uses(NamedTuple):
    """The distinct rows of w of each sentence, and where it uses them."""

    starts: np.ndarray  # (n + 1,) uint64, into rows
    rows: np.ndarray  # uint32
    ends: np.ndarray  # (rows.size + 1,) uint64, into tokens and values
    tokens: np.ndarray  # uint32, within the sentence
    values: np.ndarray  # float64; empty where all are 1


class Origin(NamedTuple):
    """Where the weights lie in those of the problem."""

    columns: np.ndarray  # (rows of w,) uint64, attributes that have a row, in order
    rows: np.ndarray  # (rows of w,) uint64, this row
    tokens: np.ndarray  # uint64, those that have an attribute of their own, in order
    own: np.ndarray  # uint64, this attribute
    values: np.ndarray  # float64, its value there


class Sentences(NamedTuple):
    """Tokens by the rows of w that they use, sentences by the rows, and where weights are."""

    indptr: np.ndarray  # (N + 1,) uint64
    rows: np.ndarray  # uint32, rows of w
    values: np.ndarray  # float64; empty where all are 1
    single: np.ndarray  # (N,) Σ x² of the attributes that no other token has: they need no row
    threshold: float  # λ₁/λ: weights are soft(v, threshold)
    uses: Uses
    masked: bool  # whether some weights are not there
    keep: np.ndarray  # (rows of w · width/8,) uint8, then a bit for each weight that is
    edge_keep: np.ndarray  # (K·width,) the same of transitions, 0 or 1
    starts: np.ndarray  # (n + 1,) uint64
    y: np.ndarray  # (N,) uint64
    rates: np.ndarray  # (n,) m_i/λ
    labels: Labels


def suits(problem) -> bool:
    """Whether these kernels can do it: chains with the log loss, whose transitions have no attributes."""
    structure = problem.structure
    is_chain = isinstance(structure, Chain) and not problem.loss.hinge
    return is_chain and not (structure.unrolled or structure.edge_columns)


def arrange(problem, lam: float) -> tuple[Sentences, Origin]:
    """The examples in rows of w by frequency, without those of attributes that only one token has.

    lam: the λ of these kernels, more than the problem's own where weights are drawn to a centre. Dense tokens
    are made sparse: the general kernels, which take them as they are, are three times slower.
    """
    examples, structure = problem.examples, problem.structure
    rows, N = as_rows(as_csr(examples.rows), ordered=False), examples.y.size
    labels = Labels.of(structure.labels, structure.banned)
    mask, edge_keep = _masks(structure, rows.n_columns, labels)
    counts = np.bincount(rows.indices, minlength=rows.n_columns)
    tokens = np.repeat(np.arange(N), np.diff(rows.indptr.astype(np.int64)))
    useful = _may_have_weights(problem, rows, tokens)
    binary = bool((rows.data == 1.0).all())
    once = useful & _of_one_token(rows, counts, mask, examples.y[tokens])
    if (problem.l1 > 0.0 and not binary) or (lam > problem.lam and mask is None):
        once[:] = False  # Σ x² would not do: each has a threshold or a centre of its own
    columns = np.flatnonzero(useful & ~once)
    columns = columns[np.argsort(-counts[columns], kind="stable")]
    place = np.zeros(rows.n_columns, np.uint32)
    place[columns] = np.arange(columns.size, dtype=np.uint32)
    many, alone = (useful & ~once)[rows.indices], once[rows.indices]
    values = NOTHING if binary else rows.data[many]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tokens[many], minlength=N))]).astype(np.uint64)
    places = place[rows.indices[many]]
    single = tokens[alone], rows.indices[alone], rows.data[alone]
    sentences = Sentences(
        indptr,
        places,
        values,
        np.bincount(single[0], weights=single[2] ** 2, minlength=N).astype(float),
        problem.l1 / lam,
        _uses(indptr, places, values, examples.starts, columns.size),
        mask is not None,
        EVERYTHING if mask is None else _bits(mask[columns], int(labels.width)),
        edge_keep,
        examples.starts,
        examples.y.astype(np.uint64),
        examples.mass / lam,
        labels,
    )
    columns = np.sort(columns)
    where = columns, place[columns], single[0], single[1]
    return sentences, Origin(*(each.astype(np.uint64) for each in where), single[2])


def _may_have_weights(problem, rows, tokens):
    """(A,) bool: attributes that occur, and more than λ₁ allows: no u_j exceeds Σ m_i |x|.

    tokens: of each entry.
    """
    starts = problem.examples.starts.astype(np.int64)
    mass = np.repeat(problem.examples.mass, np.diff(starts))[tokens]
    return np.bincount(rows.indices, np.abs(rows.data) * mass, rows.n_columns) > problem.l1


def _of_one_token(rows, counts, mask, labels):
    """(A,) bool: attributes that one token has; with a mask those which have the weight of its label alone.

    labels: of the token of each entry. Observed weights are so.
    """
    once = counts == 1
    if mask is None:
        return once
    label = np.zeros(rows.n_columns, np.int64)
    label[rows.indices] = labels
    return once & (mask.sum(axis=1) == 1) & mask[np.arange(rows.n_columns), label]


def _masks(structure, columns, labels):
    """The mask of attributes (A, K), None for all, and that of transitions (K·width,)."""
    K, width = structure.labels, int(labels.width)
    edge_keep = np.zeros((K, width))
    if structure.transitions:
        edge_keep[:, :K] = 1.0 if structure.mask is None else structure.mask[columns * K :].reshape(K, K)
    mask = None if structure.mask is None else structure.mask[: columns * K].reshape(columns, K)
    return mask, edge_keep.ravel()


def _bits(mask, width):
    """(rows · width/8,) uint8 of a mask (rows, K)."""
    wide = np.zeros((mask.shape[0], width), bool)
    wide[:, : mask.shape[1]] = mask
    return np.packbits(wide.reshape(-1, int(LANES)), axis=1, bitorder="little").ravel()


def _uses(indptr, rows, values, starts, kept) -> Uses:
    """The rows of each sentence, each once."""
    found, tokens = np.empty(rows.size, np.uint32), np.empty(rows.size, np.uint32)
    ends, order = np.zeros(rows.size + 1, np.uint64), np.empty(rows.size, np.uint64)
    of_sentence = np.zeros(starts.size, np.uint64)
    last = np.zeros(kept, np.uint64)  # where a row was last listed, plus one
    count = int(_find_uses(indptr, rows, starts, last, of_sentence, found, ends, tokens, order))
    values = values if values.size == 0 else values[order]
    return Uses(of_sentence, found[:count].copy(), ends[: count + 1].copy(), tokens, values)


@njit(cache=True, nogil=True)
def _find_uses(indptr, rows, starts, last, of_sentence, found, ends, tokens, order):
    """The arrays of `Uses`, and the entry that each use is; all but the first three written."""
    one, count = np.uint64(1), np.uint64(0)
    for i in range(starts.size - 1):
        begin, first, end = count, indptr[starts[i]], indptr[starts[i + 1]]
        for e in range(first, end):
            row = rows[e]
            if last[row] <= begin:
                found[count] = row
                count += one
                last[row] = count
                ends[count] = np.uint64(0)
            ends[last[row]] += one
        total = first
        for u in range(begin, count):  # ends[u + 1] counts the uses: where they begin
            here = ends[u + one]
            ends[u + one] = total
            total += here
        for t in range(starts[i], starts[i + 1]):
            for e in range(indptr[t], indptr[t + one]):
                at = ends[last[rows[e]]]
                tokens[at], order[at] = t - starts[i], e
                ends[last[rows[e]]] += one
        of_sentence[i + 1] = count
    return count
