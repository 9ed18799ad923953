"""Sequences of dense tokens: P, its gradient and Hessian products, by several tokens at a time.

Token by token, the two products of 60,000 × 100 numbers with the weights of 9 labels took 130 ms of the 160
of a pass; by `dense_products.py` they take 17. Sequences come in groups of a few tokens, whose attributes
stay in the cache from one product to the other.

Where tokens have words beside a vector (`Mixed`), vectors of a group are first put side by side; words are
added one by one.

W and the nodes (tokens of a group, width) are padded as in `dense_products.py`.
"""

import numpy as np

from fenchel._cache import helper, njit
from fenchel._dispatch import kernel_by_type
from fenchel._mixed import Mixed
from fenchel._sparse import Table, column, row_begin, row_end
from fenchel.structures import base
from fenchel.structures.dense_products import add_transposed, padded, times
from fenchel.structures.layouts.tables import add_edges, edge_scores, tokens
from fenchel.structures.passes import sum_of_sizes

HEIGHT = np.uint64(64)  # tokens from which on a group is full


def value_and_pull(blocks, start, stop, w, scores, pull):
    """Σ m_i loss_i and Σ m_i ‖y_i − μ_i‖₁ over start ≤ i < stop; pull += Σ m_i A_iᵀ(y_i − μ_i), written.

    w, pull (dim,). scores: those of all examples, or empty: then at w.
    """
    W, sums = _padded_weights(blocks, w)
    answer = _value_and_pull(blocks, start, stop, W, w, scores, sums, pull)
    _add_unpadded(blocks, sums, pull)
    return answer


def all_scores(blocks, start, stop, w, scores):
    """A_i w for start ≤ i < stop; scores written."""
    _all_scores(blocks, start, stop, _padded_weights(blocks, w)[0], w, scores)


def add_scores(blocks, start, stop, scores, v):
    """v += Σ A_iᵀ scores_i over start ≤ i < stop; v written."""
    sums = _padded_weights(blocks, v)[1]
    _add_scores(blocks, start, stop, scores, sums, v)
    _add_unpadded(blocks, sums, v)


def _padded_weights(blocks, w):
    """The weights of attributes, (A, width), and zeros of that shape."""
    K = blocks.layout.labels
    W = padded(w[: blocks.layout.rows.n_columns * K], K)
    return W, np.zeros_like(W)


def _add_unpadded(blocks, sums, v):
    A, K = blocks.layout.rows.n_columns, blocks.layout.labels
    v[: A * K].reshape(A, K)[:] += sums[:, :K]


@njit(cache=True, nogil=True)
def _value_and_pull(blocks, start, stop, W, w, scores, sums, pull):
    """W, sums (A, width); sums written for attributes, pull for edges."""
    nodes, last = _room(blocks.layout, start, stop, W), np.uint64(start)
    s, mu, delta = np.empty(blocks.size), np.empty(blocks.size), np.empty(blocks.size)
    value, moved = 0.0, 0.0
    while last < np.uint64(stop):
        first, last = last, _group_end(blocks.layout, last, np.uint64(stop))
        if scores.size == 0:
            _node_scores(blocks.layout, first, last, W, nodes)
        for i in range(first, last):
            if scores.size == 0:
                _read(blocks.layout, first, i, nodes, w, s)
            else:
                base.block_read(blocks, scores, i, s)
            value += blocks.mass[i] * base.block_marginals(blocks, i, s, mu)
            base.block_residual(blocks, i, mu, delta)
            moved += blocks.mass[i] * sum_of_sizes(base.block_length(blocks, i), delta)
            _write(blocks.layout, first, i, blocks.mass[i], delta, nodes, pull)
        _add_nodes(blocks.layout, first, last, nodes, sums)
    return value, moved


@njit(cache=True, nogil=True)
def _all_scores(blocks, start, stop, W, w, scores):
    nodes, last, s = _room(blocks.layout, start, stop, W), np.uint64(start), np.empty(blocks.size)
    while last < np.uint64(stop):
        first, last = last, _group_end(blocks.layout, last, np.uint64(stop))
        _node_scores(blocks.layout, first, last, W, nodes)
        for i in range(first, last):
            _read(blocks.layout, first, i, nodes, w, s)
            base.block_write(blocks, i, s, scores)


@njit(cache=True, nogil=True)
def _add_scores(blocks, start, stop, scores, sums, v):
    nodes, last, s = _room(blocks.layout, start, stop, sums), np.uint64(start), np.empty(blocks.size)
    while last < np.uint64(stop):
        first, last = last, _group_end(blocks.layout, last, np.uint64(stop))
        for i in range(first, last):
            base.block_read(blocks, scores, i, s)
            _write(blocks.layout, first, i, 1.0, s, nodes, v)
        _add_nodes(blocks.layout, first, last, nodes, sums)


# ---- groups of sequences


@helper(cache=True, nogil=True)
def _group_end(layout, first, stop):
    """The sequence behind the group that begins with the first."""
    last = first + np.uint64(1)
    while last < stop and layout.starts[last] - layout.starts[first] < HEIGHT:
        last += np.uint64(1)
    return last


@helper(cache=True, nogil=True)
def _room(layout, start, stop, W):
    """(tokens, width) for the nodes of any group; padding is zero, and stays so."""
    longest = 0
    for i in range(start, stop):
        longest = max(longest, tokens(layout, i))
    return np.zeros((np.int64(HEIGHT) + longest, W.shape[1]))


@helper(cache=True, nogil=True)
def _node_scores(layout, first, last, W, nodes):
    """nodes = x W for the tokens of the sequences first … last − 1; written."""
    token = layout.starts[first]
    token_scores(layout.rows, token, layout.starts[last] - token, W, nodes)


@helper(cache=True, nogil=True)
def _add_nodes(layout, first, last, nodes, sums):
    """sums += xᵀ nodes over the same tokens; written."""
    token = layout.starts[first]
    add_tokens(layout.rows, token, layout.starts[last] - token, nodes, sums)


@kernel_by_type
def token_scores(rows, token, count, W, nodes):
    """nodes (count, width) = x W for so many tokens; written."""


@kernel_by_type
def add_tokens(rows, token, count, nodes, sums):
    """sums (A, width) += xᵀ nodes over the same tokens; written."""


@token_scores.implement(Table)
def _table_scores(rows, token, count, W, nodes):
    columns = np.uint64(rows.n_columns)
    times(
        rows.data[token * columns :], count, columns, W.reshape(-1), np.uint64(W.shape[1]), nodes.reshape(-1)
    )


@add_tokens.implement(Table)
def _add_table(rows, token, count, nodes, sums):
    columns, width = np.uint64(rows.n_columns), np.uint64(nodes.shape[1])
    x = rows.data[token * columns :]
    add_transposed(x, count, columns, nodes.reshape(-1), width, sums.reshape(-1))


@token_scores.implement(Mixed)
def _mixed_scores(rows, token, count, W, nodes):
    dense, width = np.uint64(rows.dense), np.uint64(W.shape[1])
    w = W.reshape(-1)[(np.uint64(rows.n_columns) - dense) * width :]
    times(_vectors(rows, token, count), count, dense, w, width, nodes.reshape(-1))
    for t in range(count):
        r = token + t
        for e in range(row_begin(rows, r), row_end(rows, r) - dense):
            x, j = rows.data[e], column(rows, r, e)
            for k in range(width):
                nodes[t, k] += x * W[j, k]


@add_tokens.implement(Mixed)
def _add_mixed(rows, token, count, nodes, sums):
    dense, width = np.uint64(rows.dense), np.uint64(nodes.shape[1])
    of_table = sums.reshape(-1)[(np.uint64(rows.n_columns) - dense) * width :]
    add_transposed(_vectors(rows, token, count), count, dense, nodes.reshape(-1), width, of_table)
    for t in range(count):
        r = token + t
        for e in range(row_begin(rows, r), row_end(rows, r) - dense):
            x, j = rows.data[e], column(rows, r, e)
            for k in range(width):
                sums[j, k] += x * nodes[t, k]


@helper(cache=True, nogil=True)
def _vectors(rows, token, count):
    """(count · dense,) the numbers of the table, of so many tokens."""
    dense = np.uint64(rows.dense)
    out = np.empty(np.int64(count * dense))
    for t in range(count):
        begin = row_end(rows, token + t) - dense
        for j in range(dense):
            out[t * dense + j] = rows.data[begin + j]
    return out


@helper(cache=True, nogil=True)
def _read(layout, first, i, nodes, w, s):
    """s = the scores of sequence i, of a group that begins with the first; written."""
    K, begin = np.uint64(layout.labels), layout.starts[i] - layout.starts[first]
    for t in range(np.uint64(tokens(layout, i))):
        for k in range(K):
            s[t * K + k] = nodes[begin + t, k]
    edge_scores(layout, i, w, 0.0, s)


@helper(cache=True, nogil=True)
def _write(layout, first, i, step, delta, nodes, v):
    """nodes = step · delta at the tokens of sequence i, and v += the share of its edges; both written."""
    K, begin = np.uint64(layout.labels), layout.starts[i] - layout.starts[first]
    for t in range(np.uint64(tokens(layout, i))):
        for k in range(K):
            nodes[begin + t, k] = step * delta[t * K + k]
    add_edges(layout, i, step, delta, v)
