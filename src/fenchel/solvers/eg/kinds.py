"""The edges of a chain problem by their kinds: which there are, where they stand, what they add to strips.

Where edges have no attributes they are all of one kind, `OneKind`, and its table is the transitions'. Else
edges of a sentence with the same attributes are of a kind (`structures/lattice_kinds.py`). The weights of an
attribute of edges are K rows of labels, one for each label before, and fall into tiles as those of tokens do.
The strips of its kinds follow those of the tokens of a sentence.
"""

from typing import NamedTuple

import numpy as np

from fenchel._packed import packed
from fenchel._sparse import Rows
from fenchel.structures.lattice_kinds import NOWHERE, Kinds


@packed
class OneKind(NamedTuple):
    """No attributes of edges."""


class Strips(NamedTuple):
    """Strips of labels by the tiles that they use: a sparse matrix."""

    indptr: np.ndarray  # (strips + 1,) uint64
    tiles: np.ndarray  # uint32
    values: np.ndarray  # float64; empty where all are 1


class _Edges(NamedTuple):
    """The edges of all sentences, in order."""

    tokens: np.ndarray  # those that they lead into
    sentences: np.ndarray
    rows: np.ndarray  # which of the distinct rows of attributes


class _RowStrips(NamedTuple):
    """The strips of distinct rows of attributes, in the order of rows and of places."""

    keys: np.ndarray  # row · places + place
    strips: Strips
    starts: np.ndarray  # (rows + 1,) those of each row


def inner_rows(edges: Rows, starts: np.ndarray) -> Rows:
    """Attributes of edges without those of first tokens, into which none leads."""
    counts = np.diff(edges.indptr.astype(np.int64))
    first = np.zeros(counts.size, bool)
    first[starts[:-1].astype(np.int64)] = True
    if not counts[first].any():
        return edges
    kept = np.repeat(~first, counts)
    indptr = np.concatenate([[0], np.cumsum(np.where(first, 0, counts))]).astype(np.uint64)
    return Rows(indptr, edges.indices[kept], edges.data[kept], edges.n_columns)


def by_kinds(rows: Rows, starts, y, numbers, labels, tile: int, nodes: Strips):
    """Strips of tokens and of kinds together, (n + 1,) where those of each sentence begin, and the kinds.

    rows: of edges, without data where all values are 1. y (N,) places of labels. numbers (B, places): the
    tile of an attribute at each place of a table, plus one. nodes: the strips of all tokens.
    """
    starts, width = starts.astype(np.int64), int(labels.width)
    edges, samples = _distinct(rows, starts)
    of_rows = _row_strips(rows, samples, numbers)
    key = edges.sentences * samples.size + edges.rows
    found, kind = np.unique(key, return_inverse=True)
    of_sentence, row = found // samples.size, found % samples.size
    firsts = _ends(np.bincount(of_sentence, minlength=starts.size - 1))
    strips = _ends(np.diff(of_rows.starts)[row])
    listed = _ranges(of_rows.starts[row], np.diff(strips))  # of rows, for each strip of a kind
    place = y[edges.tokens - 1] * width + y[edges.tokens]
    at, there = _find(of_rows, edges.rows * numbers.shape[1] + place // tile)
    at += strips[kind] - of_rows.starts[edges.rows] - strips[firsts[edges.sentences]]
    nodes_of = np.diff(starts)[edges.sentences] * width
    truth = np.full(y.size, NOWHERE)
    truth[edges.tokens] = np.where(there, (nodes_of + at * tile + place % tile).astype(np.uint64), NOWHERE)
    ends = _ends(np.bincount(kind, minlength=found.size))
    within = (edges.tokens - starts[edges.sentences])[np.argsort(kind, kind="stable")]
    arrays = firsts, ends, within, strips, of_rows.keys[listed] % numbers.shape[1] * tile
    kinds = Kinds(*(each.astype(np.uint64) for each in arrays), truth, np.uint64(tile))
    return *_woven(nodes, starts * (width // tile), of_rows.strips, listed, strips[firsts]), kinds


def _distinct(rows: Rows, starts):
    """The edges, and for each distinct row of attributes a token that has it."""
    lengths, N = np.diff(starts), rows.indptr.size - 1
    inner = np.ones(N, bool)
    inner[starts[:-1]] = False
    tokens, begins = np.flatnonzero(inner), rows.indptr.astype(np.int64)
    counts = np.diff(begins)[tokens]
    number = counts.copy()
    for k in range(int(counts.max(initial=0))):
        has = counts > k
        entry = begins[tokens[has]] + k
        number[has] = _joined(number[has], rows.indices[entry]) + number.max() + 1
        if rows.data.size:
            number[has] = _joined(number[has], rows.data[entry].view(np.int64)) + number.max() + 1
    _, samples, which = np.unique(number, return_index=True, return_inverse=True)
    return _Edges(tokens, np.repeat(np.arange(lengths.size), np.maximum(lengths - 1, 0)), which), tokens[
        samples
    ]


def _joined(a, b):
    """A number for each pair that occurs."""
    b = np.unique(b, return_inverse=True)[1]
    return np.unique(a * (b.max() + 1) + b, return_inverse=True)[1]


def _row_strips(rows: Rows, samples, numbers) -> _RowStrips:
    """Of the rows of these tokens."""
    places, begins = numbers.shape[1], rows.indptr.astype(np.int64)
    column, place = np.nonzero(numbers)
    of_column = np.searchsorted(column, np.arange(numbers.shape[0] + 1))
    counts = np.diff(begins)[samples]
    entries = _ranges(begins[samples], counts)
    columns = rows.indices[entries]
    many = np.diff(of_column)[columns]
    found = _ranges(of_column[columns], many)
    keys = np.repeat(np.repeat(np.arange(samples.size), counts), many) * places + place[found]
    order = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[order], return_index=True)
    tiles = (numbers[column[found], place[found]] - 1)[order].astype(np.uint32)
    values = np.repeat(rows.data[entries], many)[order] if rows.data.size else rows.data
    strips = Strips(np.append(first, order.size).astype(np.uint64), tiles, values)
    return _RowStrips(distinct, strips, np.searchsorted(distinct, np.arange(samples.size + 1) * places))


def _find(of_rows: _RowStrips, keys):
    """Where each key is among the strips of rows, and whether it is."""
    at = np.searchsorted(of_rows.keys, keys)
    there = at < of_rows.keys.size
    there[there] = of_rows.keys[at[there]] == keys[there]
    return at, there


def _woven(nodes: Strips, starts, of_rows: Strips, listed, of_kinds):
    """The strips of the tokens of each sentence, then those of its kinds; and where they begin.

    starts, of_kinds (n + 1,): where strips of tokens and of kinds begin; listed: for each of these the strip
    of `of_rows` that it is.
    """
    counts = np.diff(of_rows.indptr.astype(np.int64))[listed]
    entries = _ranges(of_rows.indptr.astype(np.int64)[listed], counts)
    strips = np.diff(starts), np.diff(of_kinds)
    used = np.diff(nodes.indptr[starts].astype(np.int64)), np.diff(_ends(counts)[of_kinds])
    indptr = _ends(_interleaved(np.diff(nodes.indptr), strips[0], counts, strips[1])).astype(np.uint64)
    values = of_rows.values
    if values.size or nodes.values.size:
        values = _interleaved(nodes.values, used[0], values[entries], used[1])
    woven = Strips(indptr, _interleaved(nodes.tiles, used[0], of_rows.tiles[entries], used[1]), values)
    return woven, (starts + of_kinds).astype(np.uint64)


def _interleaved(a, a_counts, b, b_counts):
    """For each sentence its entries of a, then those of b; counts (n,): how many it has."""
    of_a = np.repeat(np.tile([True, False], a_counts.size), np.stack([a_counts, b_counts], axis=1).ravel())
    out = np.empty(of_a.size, a.dtype)
    out[of_a], out[~of_a] = a, b
    return out


def _ends(counts):
    return np.concatenate([[0], np.cumsum(counts)])


def _ranges(begins, counts):
    """begins[j], begins[j] + 1, …: counts[j] of them, for each j."""
    before = np.cumsum(counts) - counts
    return np.repeat(begins - before, counts) + np.arange(int(counts.sum()))
