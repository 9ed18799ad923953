"""From streams of examples to shards on disk, in memory that does not grow with their number."""

from collections.abc import Iterable

import numpy as np

from fenchel import arrays
from fenchel._sparse import Rows, as_rows
from fenchel.io.shards import Shards, ShardWriter

LARGE = 2**22  # bytes of a shard, unless its number of examples is given
ROWS = {"indptr": "uint64", "indices": "uint32", "data": "float64"}


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
    classes = np.empty(0)
    with ShardWriter(folder, "rows", ROWS | {"labels": "float64"}, overwrite) as writer:
        stream = RowStream(writer)
        for X, y in batches:
            y = np.asarray(y, np.float64)
            X = as_rows(arrays.matrix(X))
            arrays.require_as_many(X, y)
            if not np.isfinite(y).all():
                raise ValueError("y contains NaN or infinity, which are no labels")
            classes = np.union1d(classes, y)
            stream.append(X, y.size, labels=y)
            cut_if_full(writer, rows)
        writer.finish({"columns": stream.columns, "classes": classes.tolist()})
    return Shards(folder)
