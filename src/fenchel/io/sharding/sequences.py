"""Labelled sequences as shards, in memory that grows with attributes and labels alone."""

from collections.abc import Iterable
from itertools import chain

import numpy as np

from fenchel._sparse import Table, as_rows
from fenchel.features.boundaries import with_boundaries
from fenchel.features.hashing import require_no_counts
from fenchel.features.sequences import Sequences, source_for
from fenchel.features.tokens import Tokens
from fenchel.io.shard_writer import ShardWriter
from fenchel.io.sharding.streams import (
    ROWS,
    Partitions,
    RowStream,
    Transposed,
    between,
    cut_if_full,
    is_dask,
    portions,
    require_again,
)
from fenchel.io.shards import Shards

EDGE = "edge_"  # begins the names of the arrays of attributes of pairs of labels
SOURCE = "source."  # and of those by which attributes are known again


def shard_sequences(
    batches: Iterable,
    folder,
    *,
    template=None,
    min_count: int = 1,
    hash_bits: int | None = None,
    bias: bool = False,
    boundaries: bool = False,
    rows: int | None = None,
    overwrite: bool = False,
    read_as: dict | None = None,
) -> Shards:
    """Write labelled sequences as shards: what `ChainCRF.fit` then takes.

    Parameters
    ----------
    batches : iterable of (X, y) or (X, y, weight)
        Some sequences at a time, as `ChainCRF.fit` takes them. They are gone through twice, first for their
        attributes and labels: give a list, or an object that begins anew with each iter(). Or a Dask bag of
        sequences (x, y).
    template, min_count, hash_bits, bias, boundaries
        As of `ChainCRF`, which must have the same; with hash_bits memory grows with labels alone.
    folder, rows, overwrite, read_as
        As in `shard_events`; rows: sequences of a shard.
    """
    batches = Transposed(Partitions(batches)) if is_dask(batches) else batches
    require_again(batches, "sequences")
    require_no_counts(min_count, hash_bits)
    source, classes = _learnt(batches, template, min_count, hash_bits)
    places = {label: k for k, label in enumerate(classes)}
    kept, arrays = source.to_file()
    common = {SOURCE + name: array for name, array in arrays.items()}
    with ShardWriter(folder, "sequences", _types(source, common), overwrite) as writer:
        stream, total = _SequenceStream(writer, bool(source.sizes[1])), 0.0
        for X, y, *weight in batches:
            data = with_boundaries(source.read(X), bias, boundaries)
            labels = _flat_labels(y, data)
            codes = np.fromiter(map(places.__getitem__, labels), np.uint32, len(labels))
            own = np.ones(data.n) if not weight or weight[0] is None else np.asarray(weight[0], np.float64)
            stream.append(_without_empty(data), codes, own[np.diff(data.starts) > 0], rows)
            total += float(own[np.diff(data.starts) > 0].sum())
        writer.share(**common)
        facts = {"columns": stream.columns, "edge_columns": source.sizes[1], "classes": classes}
        facts["hash_bits"] = hash_bits
        facts |= {"min_count": min_count, "bias": bool(bias), "boundaries": bool(boundaries), "source": kept}
        writer.finish(facts | {"read_as": read_as or {}, "weight": total})
    return Shards(folder)


def _learnt(batches, template, min_count, hash_bits):
    """Where attributes come from, and the labels in order."""
    first = next(iter(batches), None)
    if first is None:
        raise ValueError("there are no sequences; at least one is needed")
    source, labels = source_for(first[0], template, hash_bits), {}
    if not hasattr(source, "learn_batches"):
        raise TypeError("shards hold sequences of attributes; arrays and pairs are trained on in memory")

    def sequences():
        for X, y, *_ in batches:
            labels.update(dict.fromkeys(_flat(y)))
            yield X

    source.learn_batches(sequences(), min_count)
    if not any(source.sizes):
        raise ValueError("no token has an attribute that counts; lower min_count, or look at the template")
    wrong = next((label for label in labels if not isinstance(label, str | int) or label != label), None)
    if wrong is not None:
        raise TypeError(f"the label {wrong!r} is no text and no whole number, but shards hold such labels")
    try:
        return source, sorted(labels)
    except TypeError:  # 1 < "a" has no answer
        return source, list(labels)


def _flat(y):
    return y.column(0) if isinstance(y, Tokens) else chain.from_iterable(y)


def _flat_labels(y, data: Sequences) -> list:
    """The label of each token, as many as the tokens of each sequence."""
    found = np.diff(y.starts) if isinstance(y, Tokens) else np.fromiter(map(len, y), np.int64)
    expected = np.diff(data.starts.astype(np.int64))
    if found.size != expected.size:
        raise ValueError(f"a batch has {expected.size} sequences but labels of {found.size}; they must match")
    wrong = np.flatnonzero(found != expected)
    if wrong.size:
        k = int(wrong[0])
        raise ValueError(f"sequence {k} of a batch has {expected[k]} tokens but {found[k]} labels")
    return list(_flat(y))


def _without_empty(data: Sequences) -> Sequences:
    """Sequences of no token have no part in the objective."""
    kept = np.concatenate([[True], np.diff(data.starts) > 0])
    rows = as_rows(data.rows.matrix) if isinstance(data.rows, Table) else data.rows
    return Sequences(rows, data.edges, data.starts[kept])


def _types(source, common) -> dict[str, str]:
    types = ROWS | {"starts": "uint64", "labels": "uint32", "weight": "float64"}
    if source.sizes[1]:
        types |= {EDGE + name: kind for name, kind in ROWS.items()}
    return types | {name: array.dtype.name for name, array in common.items()}


class _SequenceStream:
    """Sequences that come some at a time, as the arrays of shards."""

    def __init__(self, writer: ShardWriter, edges: bool):
        self._writer, self._tokens = writer, 0
        self._nodes = RowStream(writer)
        self._edges = RowStream(writer, EDGE) if edges else None
        writer.append(0, starts=np.zeros(1, np.uint64))

    @property
    def columns(self) -> int:
        return self._nodes.columns

    def append(self, data: Sequences, codes, weight, rows: int | None) -> None:
        starts = data.starts.astype(np.int64)
        for a, b in portions(data.n, rows):
            cut_if_full(self._writer, rows)
            first, last = starts[a], starts[b]
            ends = (starts[a + 1 : b + 1] + self._tokens).astype(np.uint64)
            if self._edges:
                self._edges.append(between(data.edges, first, last), 0)
            own = {"starts": ends, "labels": codes[first:last], "weight": weight[a:b]}
            self._nodes.append(between(data.rows, first, last), b - a, **own)
        self._tokens += int(starts[-1])
