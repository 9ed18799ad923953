"""Rows of numbers with a label each, as shards."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from fenchel import arrays
from fenchel._sparse import as_rows
from fenchel.features.hashing import hashed_columns
from fenchel.io.shard_writer import ShardWriter
from fenchel.io.sharding.streams import (
    ROWS,
    Partitions,
    RowStream,
    between,
    cut_if_full,
    is_dask,
    portions,
    rows_at_once,
)
from fenchel.io.shards import Shards


def shard_rows(
    batches: Iterable,
    folder,
    *,
    hash_bits: int | None = None,
    rows: int | None = None,
    overwrite: bool = False,
) -> Shards:
    """Write batches (X, y) of labelled rows as shards: what `LogisticRegression.fit` then takes.

    Parameters
    ----------
    batches : iterable of (X, y), or a pair of Dask arrays or dataframes X, y
        X (n, d) dense or sparse, of any number of columns; y (n,) numbers. Read once; one is held at a time,
        of Dask's a partition.
    folder : str or Path
        A new folder. It is whole or not there, also after an error.
    hash_bits : int, optional
        As of `LogisticRegression`, which must have the same.
    rows : int, optional
        Examples of a shard, at least; by default a shard has 4 MB.
    overwrite : bool
        Whether shards that are in the folder already may be replaced.
    """
    counts = Counter()
    if isinstance(batches, tuple) and len(batches) == 2 and is_dask(batches[0]):
        batches = Partitions(*batches)
    with ShardWriter(folder, "rows", ROWS | {"labels": "float64"}, overwrite) as writer:
        stream = RowStream(writer)
        for X, y in batches:
            y = _labels(y)
            X = arrays.matrix(X)
            X = as_rows(X if hash_bits is None else hashed_columns(X, hash_bits))
            arrays.require_as_many(X, y)
            if not np.isfinite(y).all():
                raise ValueError("y contains NaN or infinity, which are no labels")
            counts.update(y.tolist())
            for a, b in portions(y.size, rows, rows_at_once(X)):
                stream.append(between(X, a, b), b - a, labels=y[a:b])
                cut_if_full(writer, rows)
        classes = sorted(counts)
        facts = {"columns": stream.columns, "classes": classes, "counts": [counts[c] for c in classes]}
        writer.finish(facts | {"hash_bits": hash_bits})
    return Shards(folder)


def _labels(y) -> np.ndarray:
    try:
        return np.asarray(y, np.float64)
    except (TypeError, ValueError):
        found = next(label for label in y if isinstance(label, str) or not np.isscalar(label))
    raise TypeError(f"y holds {found!r}, but labels of shards of rows are numbers; number the classes")
