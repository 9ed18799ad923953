"""From streams of examples to shards on disk, in memory that does not grow with their number."""

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from math import fsum

import numpy as np

from fenchel import arrays
from fenchel._sparse import Rows, as_rows, take
from fenchel.features.encode import encode
from fenchel.features.vocabulary import Vocabulary
from fenchel.io.events import Event
from fenchel.io.shard_writer import ShardWriter
from fenchel.io.shards import Shards

LARGE = 2**22  # bytes of a shard, unless its number of examples is given
ROWS = {"indptr": "uint64", "indices": "uint32", "data": "float64"}
NAMES = {"text": "uint8", "offsets": "uint64"}  # a vocabulary, in common to all shards
AT_ONCE = 2**15  # events that are named together: each time costs a copy of the vocabulary
PORTION = 2**11  # of them, those that are written together: a shard ends between two portions


class RowStream:
    """Sparse rows that come some at a time, as the arrays of shards: names with a `prefix`."""

    def __init__(self, writer: ShardWriter, prefix: str = ""):
        self._writer, self._prefix = writer, prefix
        self._entries, self.columns = 0, 0
        writer.append(0, **{prefix + "indptr": np.zeros(1, np.uint64)})

    def append(self, rows: Rows, examples: int, **others) -> None:
        """So many more examples, and what else belongs to them."""
        ends = rows.indptr[1:] + np.uint64(self._entries)
        named = {"indptr": ends, "indices": rows.indices, "data": rows.data}
        named = {self._prefix + name: array for name, array in named.items()}
        self._writer.append(examples, **named, **others)
        self._entries += rows.nnz
        self.columns = max(self.columns, rows.n_columns)


def cut_if_full(writer: ShardWriter, most: int | None) -> None:
    """End the shard once it has `most` examples, or is large."""
    if writer.examples >= most if most else writer.bytes >= LARGE:
        writer.cut()


def shard_rows(batches: Iterable, folder, *, rows: int | None = None, overwrite: bool = False) -> Shards:
    """Write batches (X, y) of labelled rows as shards: what `LogisticRegression.fit` then takes.

    Parameters
    ----------
    batches : iterable of (X, y)
        X (n, d) dense or sparse, of any number of columns; y (n,) numbers. Read once; one is held at a time.
    folder : str or Path
        A new folder. It is whole or not there, also after an error.
    rows : int, optional
        Examples of a shard, at least; by default a shard has 4 MB.
    overwrite : bool
        Whether shards that are in the folder already may be replaced.
    """
    counts = Counter()
    with ShardWriter(folder, "rows", ROWS | {"labels": "float64"}, overwrite) as writer:
        stream = RowStream(writer)
        for X, y in batches:
            y = np.asarray(y, np.float64)
            X = as_rows(arrays.matrix(X))
            arrays.require_as_many(X, y)
            if not np.isfinite(y).all():
                raise ValueError("y contains NaN or infinity, which are no labels")
            counts.update(y.tolist())
            stream.append(X, y.size, labels=y)
            cut_if_full(writer, rows)
        classes = sorted(counts)
        facts = {"columns": stream.columns, "classes": classes, "counts": [counts[c] for c in classes]}
        writer.finish(facts)
    return Shards(folder)


def shard_events(
    events: Iterable,
    folder,
    *,
    min_count: int = 1,
    rows: int | None = None,
    overwrite: bool = False,
    read_as: dict | None = None,
) -> Shards:
    """Write events with named features as shards: what `MaxEnt.fit` then takes. Memory grows with the names.

    Parameters
    ----------
    events : iterable of (label, features) or (label, features, weight)
        Features as `MaxEnt.fit` takes them; a label is a string or a number. With min_count they are gone
        through twice, so give a list, or an object that begins anew with each iter().
    min_count : int
        A feature that fewer events have is left out.
    read_as : dict, optional
        How a file was read, for the model to remember.
    folder, rows, overwrite
        As in `shard_rows`.
    """
    if min_count > 1 and iter(events) is events:
        raise TypeError("with min_count events are gone through twice, but these can be once; give a list")
    counted = _frequent(events, min_count) if min_count > 1 else None
    vocabulary, classes, total = counted or Vocabulary(), {}, 0.0
    types = ROWS | NAMES | {"labels": "uint32", "weight": "float64"}
    with ShardWriter(folder, "events", types, overwrite) as writer:
        stream = RowStream(writer)
        for first, some in _batches(events):
            features = (event.attributes for event in some)
            found, vocabulary = encode(features, vocabulary, grow=counted is None, first=first)
            codes = [_code(first + k, event.label, classes) for k, event in enumerate(some)]
            weight = [event.weight for event in some]
            total += fsum(weight)
            for part in _portions(len(some), rows):
                cut_if_full(writer, rows)
                stream.append(
                    take(found, part), part.size, labels=np.take(codes, part), weight=np.take(weight, part)
                )
        if classes:
            _require_names(vocabulary, min_count)
            writer.share(**vocabulary.to_arrays())
        facts = {"columns": len(vocabulary), "classes": list(classes), "min_count": min_count}
        writer.finish(facts | {"read_as": read_as or {}, "weight": total})
    return Shards(folder)


def _batches(events):
    """(the number of the first, events) some at a time."""
    first, events = 0, (Event(*event) for event in events)
    while some := list(islice(events, AT_ONCE)):
        yield first, some
        first += len(some)


def _portions(count, rows):
    """The numbers of events that are written together."""
    size = min(rows or PORTION, PORTION)
    return (np.arange(at, min(at + size, count)) for at in range(0, count, size))


def _frequent(events, min_count) -> Vocabulary:
    """The features that so many events have."""
    vocabulary, counts = Vocabulary(), np.zeros(0, np.int64)
    for first, some in _batches(events):
        features = (event.attributes for event in some)
        found, vocabulary = encode(features, vocabulary, grow=True, first=first)
        more = np.bincount(found.indices, minlength=len(vocabulary))
        more[: counts.size] += counts
        counts = more
    return vocabulary.keep(counts >= min_count)


def _code(number, label, classes) -> int:
    """The number of a label, which becomes the next one if it is new."""
    if not isinstance(label, str | int | float) or label != label:
        raise TypeError(
            f"event {number}: the label is {label!r}; shards hold labels that are text or numbers"
        )
    return classes.setdefault(label, len(classes))


def _require_names(vocabulary, min_count):
    if not len(vocabulary):
        few = f"no feature occurs in min_count={min_count} events; lower min_count"
        raise ValueError(few if min_count > 1 else "no event has a feature; at least one is needed")
