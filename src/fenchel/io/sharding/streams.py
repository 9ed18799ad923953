"""Arrays of shards that come some at a time."""

import numpy as np

from fenchel._sparse import Rows
from fenchel.io.shard_writer import ShardWriter

LARGE = 2**22  # bytes of a shard, unless its number of examples is given
PORTION = 2**11  # examples that are written together: a shard ends between two portions
ROWS = {"indptr": "uint64", "indices": "uint32", "data": "float64"}


class RowStream:
    """Sparse rows that come some at a time, as the arrays of shards: names with a `prefix`."""

    def __init__(self, writer: ShardWriter, prefix: str = "", ones: bool = False):
        """ones: whether every entry is a 1, so that only columns are written."""
        self._writer, self._prefix, self._ones = writer, prefix, ones
        self._entries, self.columns = 0, 0
        writer.append(0, **{prefix + "indptr": np.zeros(1, np.uint64)})

    def append(self, rows: Rows, examples: int, **others) -> None:
        """So many more examples, and what else belongs to them."""
        ends = rows.indptr[1:] + np.uint64(self._entries)
        named = {"indptr": ends, "indices": rows.indices} | ({} if self._ones else {"data": rows.data})
        named = {self._prefix + name: array for name, array in named.items()}
        self._writer.append(examples, **named, **others)
        self._entries += rows.nnz
        self.columns = max(self.columns, rows.n_columns)


def cut_if_full(writer: ShardWriter, most: int | None) -> None:
    """End the shard once it has `most` examples, or is large."""
    if writer.examples >= most if most else writer.bytes >= LARGE:
        writer.cut()


def rows_at_once(rows: Rows) -> int:
    """How many rows make about a shard."""
    return max(1, min(PORTION, LARGE * rows.shape[0] // max(12 * rows.nnz, 1)))


def portions(count: int, rows: int | None, most: int = PORTION):
    """(first, behind the last) of the examples that are written together."""
    size = min(rows or most, most)
    return ((at, min(at + size, count)) for at in range(0, count, size))


def between(rows: Rows, begin: int, end: int) -> Rows:
    """The rows begin ≤ i < end."""
    first, last = int(rows.indptr[begin]), int(rows.indptr[end])
    pointers = rows.indptr[begin : end + 1] - np.uint64(first)
    return Rows(pointers, rows.indices[first:last], rows.data[first:last], rows.n_columns)


def is_dask(data) -> bool:
    """Whether these are a Dask array, dataframe, series or bag."""
    return hasattr(data, "to_delayed") and hasattr(data, "dask")


class Partitions:
    """What Dask holds in pieces: (piece, piece, ...) of collections cut alike, each computed in its turn."""

    def __init__(self, *collections):
        self._collections = collections

    def __iter__(self):
        pieces = [_pieces(collection) for collection in self._collections]
        if len(set(map(len, pieces))) > 1:
            counts = " and ".join(str(len(some)) for some in pieces)
            raise ValueError(f"Dask has them in {counts} pieces; rechunk or repartition them alike")
        return (tuple(piece.compute() for piece in some) for some in zip(*pieces, strict=True))


class Flattened:
    """The items of the partitions of a bag one by one."""

    def __init__(self, partitions: Partitions):
        self._partitions = partitions

    def __iter__(self):
        return (item for (piece,) in self._partitions for item in piece)


class Transposed:
    """The items of each partition of a bag, tuples, as a tuple of lists."""

    def __init__(self, partitions: Partitions):
        self._partitions = partitions

    def __iter__(self):
        return (tuple(map(list, zip(*piece, strict=True))) for (piece,) in self._partitions if len(piece))


def _pieces(collection) -> list:
    """The partitions along the rows."""
    found = np.asarray(collection.to_delayed(), dtype=object)
    if found.ndim > 1 and found.shape[1] > 1:
        raise ValueError("a Dask array is cut along its columns too; rechunk({1: -1}) makes rows whole")
    return found.ravel().tolist()


def require_again(batches, why: str) -> None:
    """Refuse what can be gone through once."""
    if iter(batches) is batches:
        raise TypeError(f"{why} are gone through twice, but these can be once; give a list")
