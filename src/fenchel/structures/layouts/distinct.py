"""The distinct columns of the rows of an example: so that a sum over its rows touches each weight once."""

from typing import NamedTuple

import numpy as np

from fenchel._cache import njit
from fenchel._dispatch import kernel_by_type
from fenchel._sparse import Table, column, row_begin, row_end
from fenchel.data import in_memory


class Distinct(NamedTuple):
    """A list for each example."""

    local: np.ndarray  # (nnz,) uint32, for each entry of the rows the place of its column in the list
    columns: np.ndarray  # uint32, the lists, one after the other
    starts: np.ndarray  # (n + 1,) uint64 where the list of each example begins


NO_COLUMNS = Distinct(np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.uint64))


class AllColumns(NamedTuple):
    """Of a dense table: every example has every column, and nothing is listed."""

    count: int


def distinct_columns(rows, starts, room=in_memory) -> Distinct | AllColumns:
    """The distinct columns of each example, in the order they are met; room: as of `Examples`."""
    if isinstance(rows, Table):
        return AllColumns(rows.n_columns)
    local = room(rows.nnz, rows.indptr[starts.view(np.int64)], np.uint32)
    ends = np.zeros(starts.size, np.uint64)
    columns = room(rows.nnz, None, np.uint32)
    count = int(_find_distinct(rows, starts, np.zeros(rows.n_columns, np.uint64), local, columns, ends))
    kept = room(count, ends, np.uint32)
    kept[:] = columns[:count]
    return Distinct(local, kept, ends)


@njit(cache=True, nogil=True)
def _find_distinct(rows, starts, place, local, columns, ends):
    """local, columns, ends written; place (columns,) holds where a column was last listed, plus one."""
    count = np.uint64(0)
    for i in range(starts.size - 1):
        begin = count
        for r in range(starts[i], starts[i + 1]):
            for e in range(row_begin(rows, r), row_end(rows, r)):
                j = column(rows, r, e)
                if place[j] <= begin:
                    columns[count] = j
                    count += np.uint64(1)
                    place[j] = count
                local[e] = place[j] - begin - np.uint64(1)
        ends[i + 1] = count
    return count


@kernel_by_type
def distinct_count(distinct, i):
    """How many distinct columns example i has."""


@kernel_by_type
def distinct_column(distinct, i, c):
    """The column at place c of its list."""


@kernel_by_type
def place_of(distinct, e, j):
    """The place in the list of entry e, which is in column j."""


@distinct_count.implement(Distinct)
def _listed_count(distinct, i):
    return distinct.starts[i + 1] - distinct.starts[i]


@distinct_column.implement(Distinct)
def _listed_column(distinct, i, c):
    return np.uint64(distinct.columns[distinct.starts[i] + c])


@place_of.implement(Distinct)
def _listed_place(distinct, e, j):
    return np.uint64(distinct.local[e])


@distinct_count.implement(AllColumns)
def _all_count(distinct, i):
    return np.uint64(distinct.count)


@distinct_column.implement(AllColumns)
def _same_column(distinct, i, c):
    return c


@place_of.implement(AllColumns)
def _same_place(distinct, e, j):
    return j
