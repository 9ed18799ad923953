"""Attributes that do not depend on the data: of every token, of first and of last ones."""

import numpy as np
import scipy.sparse as sp

from fenchel._mixed import Mixed, beside
from fenchel._sparse import Table, as_csr, as_features, as_rows
from fenchel.features.sequences import Sequences

BIAS, START, END = "__bias__", "__start__", "__end__"


def with_boundaries(data: Sequences, bias: bool, boundaries: bool) -> Sequences:
    """The sequences with columns behind the others: one on every token, one on the first, one on the last."""
    if not (bias or boundaries):
        return data
    N, starts = data.rows.shape[0], data.starts.astype(np.int64)
    columns = [np.ones(N)] if bias else []
    if boundaries:
        first, last, full = np.zeros(N), np.zeros(N), np.diff(starts) > 0
        first[starts[:-1][full]] = 1.0
        last[starts[1:][full] - 1] = 1.0
        columns += [first, last]
    more = np.column_stack(columns)
    if isinstance(data.rows, Table):
        rows = as_features(np.hstack([data.rows.matrix, more]))
    elif isinstance(data.rows, Mixed):
        sparse, table = data.rows.apart()
        rows = beside(sparse, np.hstack([table.matrix, more]))
    else:
        rows = as_rows(sp.hstack([as_csr(data.rows), sp.csr_matrix(more)], format="csr"))
    return Sequences(rows, data.edges, data.starts)


def boundary_names(bias: bool, boundaries: bool) -> list:
    return [BIAS] * bias + [START, END] * boundaries
