"""Events with named features as shards, in memory that grows with the names alone."""

from collections.abc import Iterable
from itertools import islice
from math import fsum

from fenchel.features.counting import frequent_names
from fenchel.features.encode import encode
from fenchel.features.hashing import names_for, require_no_counts
from fenchel.io.events import Event
from fenchel.io.shard_writer import ShardWriter
from fenchel.io.sharding.streams import (
    ROWS,
    Flattened,
    Partitions,
    RowStream,
    between,
    cut_if_full,
    is_dask,
    portions,
    require_again,
)
from fenchel.io.shards import Shards

NAMES = {"text": "uint8", "offsets": "uint64"}  # a vocabulary, in common to all shards
BITS = {"hash_bits": "uint8"}  # of names that are hashed
AT_ONCE = 2**15  # events that are named together: each time costs a copy of the vocabulary


def shard_events(
    events: Iterable,
    folder,
    *,
    min_count: int = 1,
    hash_bits: int | None = None,
    rows: int | None = None,
    overwrite: bool = False,
    read_as: dict | None = None,
) -> Shards:
    """Write events with named features as shards: what `MaxEnt.fit` then takes. Memory grows with the names.

    Parameters
    ----------
    events : iterable, or Dask bag, of (label, features) or (label, features, weight)
        Features as `MaxEnt.fit` takes them; a label is a string or a number. With min_count they are gone
        through twice, so give a list, or an object that begins anew with each iter().
    min_count : int
        A feature that fewer events have is left out.
    hash_bits : int, optional
        As of `MaxEnt`, which must have the same: memory does not grow, then.
    read_as : dict, optional
        How a file was read, for the model to remember.
    folder, rows, overwrite
        As in `shard_rows`.
    """
    if is_dask(events):
        events = Flattened(Partitions(events))
    require_no_counts(min_count, hash_bits)
    if min_count > 1:
        require_again(events, "with min_count events")
    named = ((event.attributes for event in some) for _, some in _batches(events))
    counted = frequent_names(named, min_count) if min_count > 1 else None
    vocabulary, classes, total = counted or names_for(hash_bits), {}, 0.0
    types = ROWS | (NAMES if hash_bits is None else BITS) | {"labels": "uint32", "weight": "float64"}
    with ShardWriter(folder, "events", types, overwrite) as writer:
        stream = RowStream(writer)
        for first, some in _batches(events):
            features = (event.attributes for event in some)
            found, vocabulary = encode(features, vocabulary, grow=counted is None, first=first)
            codes = [_code(first + k, event.label, classes) for k, event in enumerate(some)]
            weight = [event.weight for event in some]
            total += fsum(weight)
            for a, b in portions(len(some), rows):
                cut_if_full(writer, rows)
                stream.append(between(found, a, b), b - a, labels=codes[a:b], weight=weight[a:b])
        if classes:
            _require_names(vocabulary, min_count)
            writer.share(**vocabulary.to_arrays())
        facts = {"columns": len(vocabulary), "classes": list(classes), "min_count": min_count}
        facts["hash_bits"] = hash_bits
        writer.finish(facts | {"read_as": read_as or {}, "weight": total})
    return Shards(folder)


def _batches(events):
    """(the number of the first, events) some at a time."""
    first, events = 0, (Event(*event) for event in events)
    while some := list(islice(events, AT_ONCE)):
        yield first, some
        first += len(some)


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
